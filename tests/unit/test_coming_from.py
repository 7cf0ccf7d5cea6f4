"""The tables of docs/coming-from: every name of ours exists, and every setting takes the value that stands there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import config
from dragoman.cli.main import load
from dragoman.tasks.recipes import TranslationRecipe

PAGES = sorted((Path(__file__).parents[2] / "docs" / "coming-from").glob("*.md"))
PACKAGE = Path(dragoman.__file__).parent
BARE: dict[str, Any] = {
    "run_dir": "run",
    "corpus": {name: {"type": "files", "src": "a", "tgt": "b"} for name in ("train", "valid")}
    | {"src_lang": "de", "tgt_lang": "en"},
}
"""A recipe that says no more than it must."""


def rows(page: Path) -> list[tuple[str, list[str], str]]:
    """Theirs, our names, the note of each row of the tables, without their headings."""
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.read_text("utf-8").splitlines() if line[:1] == "|"]
    body = [[cell.strip() for cell in row] for row in cells if set("".join(row)) - set("- ")]
    return [
        (row[0], re.findall(r"`([^`]+)`", row[1]), row[-1] if len(row) > 2 else "") for row in body if row[1] != "here"
    ]


ROWS = [pytest.param(*row, id=f"{page.stem} {row[0]}") for page in PAGES for row in rows(page)]


def test_most_options_have_a_name_here() -> None:
    named = [bool(row.values[1]) for row in ROWS]
    assert len(named) >= 120
    assert sum(named) >= 0.95 * len(named)


@pytest.mark.parametrize(("theirs", "ours", "note"), ROWS)
def test_a_name_of_ours_is_there(theirs: str, ours: list[str], note: str) -> None:
    assert theirs
    assert ours or note, "what is left out says why"
    settings = [name for name in ours if re.match(r"[\w.]+=", name)]
    check_settings(settings)
    for name in ours:
        if name.startswith("dragoman "):
            check_command(name)
        elif name.startswith("dragoman."):
            check_python(name)
        elif name.endswith(".py"):
            assert (PACKAGE / name).exists()
        elif name not in settings:
            assert set_to(config.to_dict(config.parse(TranslationRecipe, BARE)), name) is not None


def check_settings(changes: list[str]) -> None:
    """They are in the recipe as they were given."""
    recipe = config.to_dict(config.parse(TranslationRecipe, config.override(BARE, changes)))
    for change in changes:
        key, _, value = change.partition("=")
        assert holds(set_to(recipe, key), set_to(config.override({}, [f"it={value}"]), "it"))


def holds(value: Any, given: Any) -> bool:
    """True where a value is as it was given, with defaults beside it."""
    if isinstance(given, dict):
        return all(holds(value[key], part) for key, part in given.items())
    if isinstance(given, list):
        return len(value) == len(given) and all(map(holds, value, given))
    return bool(value == given)


def check_command(text: str) -> None:
    name, *words = shlex.split(text.removeprefix("dragoman "))
    parameters = load(name).params
    given = {word for word in words if word.startswith("-")}
    assert given <= {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
    assert all(given & set(one.opts) for one in parameters if one.required and one.opts[0].startswith("-"))


def check_python(text: str) -> None:
    assert hasattr(dragoman, re.match(r"dragoman\.(\w+)", text)[1])  # type: ignore[index]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_the_scripts_of_its_quick_start(page: Path) -> None:
    """They are run by tests/system/test_quick_starts.py: what a reader copies is what has run."""
    scripts = [page.parent / "quick-starts" / folder / f"{page.stem}.sh" for folder in ("theirs", ".")]
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks == [script.read_text("utf-8") for script in scripts if script.exists()]
    assert scripts[-1].exists()


def set_to(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values[part]
    return values
