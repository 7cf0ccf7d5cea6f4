"""reStructuredText as docutils reads it: with other words, the tree of a document is the same but for its texts."""

import io
import itertools
import os
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import docutils.core
import pytest
from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles

from dragoman.formats.base import Code, Item, Options, Unit
from dragoman.formats.document import FORMATS, Document

MANUALS = [
    Path(folder) for folder in os.environ.get("DRAGOMAN_RST", "").split(":") if folder
] or sorted(Path("/usr/share").glob("cmake-*/Help"))  # fmt: skip
"""Folders of real files: those that `DRAGOMAN_RST` names, or the manual of CMake, which Debian installs."""
SKIPPED = (nodes.Text, nodes.system_message, nodes.problematic, nodes.target, nodes.substitution_definition)
KEPT = (nodes.literal, nodes.literal_block, nodes.comment, nodes.math, nodes.math_block, nodes.doctest_block, nodes.raw)
"""Nodes whose text is no language."""


class AnyDirective(Directive):
    """A directive that docutils does not know: what it holds is read on."""

    has_content = True
    optional_arguments = 99
    final_argument_whitespace = True

    class _AnyOption(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return str

        def __bool__(self) -> bool:
            return True

    option_spec: ClassVar[Any] = _AnyOption()

    def run(self) -> list[nodes.Node]:
        inside = nodes.container("", names_of_options=sorted(self.options))
        self.state.nested_parse(self.content, self.content_offset, inside)
        return [inside]


def any_role(role: str, raw: str, text: str, *_: Any, **__: Any) -> Any:
    """A role that docutils does not know: its target is a literal, its title is none."""
    titled = re.fullmatch(r"(?P<title>.*?\S)\s*<(?P<target>[^<>]+)>", text, re.DOTALL)
    is_read = role in ("guilabel", "abbr", "dfn", "menuselection")
    inside = [nodes.inline("", titled["title"])] if titled else [nodes.inline("", text)] if is_read else []
    target = titled["target"] if titled else "" if is_read else text
    return [nodes.inline("", "", *inside, nodes.literal("", target), role=role)], []


@pytest.fixture(autouse=True)
def sphinx_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What docutils does not know (Sphinx has it) is no error."""
    directive, role = directives.directive, roles.role

    def any_directive(name: str, *rest: Any) -> Any:
        known, _ = directive(name, *rest) if ":" not in name else (None, [])
        return known if known and name not in ("include", "csv-table") else AnyDirective, []

    def any_known_role(name: str, *rest: Any) -> Any:
        known, _ = role(name, *rest) if ":" not in name else (None, [])
        return known or any_role, []

    monkeypatch.setattr(directives, "directive", any_directive)
    monkeypatch.setattr(roles, "role", any_known_role)


def tree(text: str) -> tuple[list[str], int]:
    """The nodes of a document, each with its depth and what is no text of it, and the number of its errors.

    Targets are left out: links that were known by their text get one of their own.
    """
    errors = io.StringIO()
    settings = {
        "warning_stream": errors, "report_level": 2, "halt_level": 5, "file_insertion_enabled": False,
        "raw_enabled": False, "syntax_highlight": "none", "_disable_config": True,
    }  # fmt: skip
    document = docutils.core.publish_doctree(text, settings_overrides=settings)
    return list(_walked(document, 0)), len(re.findall(r"\((?:WARNING|ERROR|SEVERE)", errors.getvalue()))


def _walked(node: nodes.Node, depth: int) -> Iterator[str]:
    if isinstance(node, SKIPPED):
        return
    said = " ".join(node.astext().split()) if isinstance(node, KEPT) else ""
    if isinstance(node, nodes.reference):
        said = node.get("refuri") or ("to a name" if "refid" in node or "refname" in node else "to nothing")
    options = " ".join(node.get("names_of_options", ())) if isinstance(node, nodes.Element) else ""
    yield f"{'  ' * depth}{node.tagname} {options} {said}".rstrip()
    for child in node.children:
        yield from _walked(child, depth + 1)


def other_words(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    """Words from right to left; what has anything but letters in it (an address, a name) stays, as it would."""
    for unit in units:
        items = (item if isinstance(item, Code) else _reversed(item) for item in unit.items)
        yield None if unit.kept else tuple(items)


def _reversed(text: str) -> str:
    return re.sub(r"(?<![^\s(\"'])[^\W\d_]+(?=[.,:;!?)\"']*(?:\s|$))", lambda word: word[0][::-1].lower(), text)


def differences(text: str) -> str:
    """The nodes that are other ones when the words are; "" if all are the same."""
    written = Document(text.encode(), FORMATS["rest"], Options("a.rst")).translated(other_words).decode()
    (before, faults), (after, new_faults) = tree(text), tree(written)
    pairs = zip(before, after, strict=False)
    lines = [f"{one.strip()!r} became {other.strip()!r}" for one, other in pairs if one != other]
    more = [f"{len(before)} nodes became {len(after)}"] if len(before) != len(after) else []
    return "\n".join(lines[:3] + more + [f"{new_faults - faults} more errors"] * (new_faults > faults))


SAMPLE = Path(__file__).parents[1] / "fixtures" / "formats" / "y.rst"


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.read_text(encoding="utf-8"),
        "ab\n\n----\n\ncd\n\n====  ==\nab     cd\n----  --\nef gh\n",
        ".. note:: ab\n   cd::\n\n      ef\n\n.. [1] ab\n   cd\n\n     ef\n\n:ab: cd\n  ef\n\n    gh\n",
        "+----+--------+\n| ab | - cd   |\n|    | - `ef` |\n+----+--------+\n| gh *ij*     |\n+-------------+\n",
        "==  ==  ==\nab cd   ef\n------  --\ngh  ij  kl\n==  ==  ==\nmn  op  qr\n        st\n==  ==  ==\n",
        '.. csv-table:: ab\n   :header: "cd", ef\n\n   "gh, ""ij""", *kl*\n',
        "Ab.\\ ``cd``\\ Ef gh.\\ *ij*\\ Kl [1]_, re\\ ``st``\\ s.\n\n.. [1] mn\n",
    ],
)
def test_the_tree_stays_when_words_change(text: str) -> None:
    assert not differences(text)


def random_table(rng: random.Random) -> str:
    """A grid table, some of whose cells go over several rows and columns."""
    rows, columns = rng.randint(1, 4), rng.randint(1, 4)
    across = list(itertools.accumulate((rng.randint(5, 9) for _ in range(columns)), initial=0))
    cells = {(row, column): (row, column, row + 1, column + 1) for row in range(rows) for column in range(columns)}
    for _ in range(rng.randint(0, 3)):
        top, left = rng.choice(list(cells))
        bottom, right = rng.randint(top + 1, rows), rng.randint(left + 1, columns)
        inside = [(row, column) for row in range(top, bottom) for column in range(left, right)]
        if all(cells[place] == (*place, place[0] + 1, place[1] + 1) for place in inside):
            cells |= dict.fromkeys(inside, (top, left, bottom, right))
    canvas = [[" "] * (across[-1] + 1) for _ in range(2 * rows + 1)]
    for top, left, bottom, right in set(cells.values()):
        for at in range(across[left], across[right] + 1):
            canvas[2 * top][at] = canvas[2 * bottom][at] = "-"
    for top, left, bottom, right in set(cells.values()):
        for at in range(2 * top, 2 * bottom + 1):
            for side in (across[left], across[right]):
                canvas[at][side] = "+" if at in (2 * top, 2 * bottom) or canvas[at][side] in "+-" else "|"
        canvas[2 * top + 1][across[left] + 2 : across[left] + 4] = rng.choice(["ab", "cd", "12", "  "])
    return "".join("".join(line) + "\n" for line in canvas)


def longer_words(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    for unit in units:
        items = (item if isinstance(item, Code) else item + " and more" * (ord(item[0]) % 3) for item in unit.items)
        yield None if unit.kept else tuple(items)


@pytest.mark.parametrize("seed", range(100))
def test_random_tables_are_drawn_again_as_docutils_reads_them(seed: int) -> None:
    text = random_table(random.Random(seed))
    before = tree(text)
    assert before[1] or {unit.kept for unit in Document(text.encode(), FORMATS["rest"], Options("a")).texts()} <= {""}
    out = Document(text.encode(), FORMATS["rest"], Options("a.rst")).translated(longer_words).decode()
    assert tree(out) == before, f"{text}\n{out}"


@pytest.mark.slow
@pytest.mark.skipif(not MANUALS, reason="no folder of real files")
def test_the_trees_of_real_files_stay() -> None:
    found = {}
    for path in sorted(path for folder in MANUALS for path in folder.rglob("*.rst")):
        text = path.read_text(encoding="utf-8")
        if said := differences(text):
            found[str(path)] = said
    assert not found, f"{len(found)}: " + "\n".join(f"{path}:\n{said}" for path, said in found.items())
