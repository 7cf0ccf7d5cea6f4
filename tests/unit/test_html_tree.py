"""Pages as browsers read them: our texts, and whether they are translated, are those of html5lib's tree."""

import html
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import html5lib
import pytest

from dragoman.formats.html_pieces import EMBEDDED, NOT_TRANSLATED, pieces

DOCUMENTATION = Path(os.environ.get("PAGES", "/usr/share/doc"))
"""A folder of pages: Debian's packages of documentation have thousands."""


def ours(page: str) -> list[tuple[str, bool, bool]]:
    """(words, is translated, is embedded) of the texts of a page."""
    found: list[tuple[str, bool, bool]] = []
    end = -1
    for piece in pieces(page):
        said = page[piece.start : piece.end]
        if piece.tag is None or (piece.tag.is_code and not said.startswith(("<?", "<!"))):
            before = found.pop()[0] if piece.start == end else ""  # code of a template is text for html5lib
            found.append((before + html.unescape(said), piece.is_translated, piece.is_embedded))
            end = piece.end
    return joined(found)


def theirs(page: str) -> list[tuple[str, bool, bool]]:
    tree = html5lib.parse(page, treebuilder="etree", namespaceHTMLElements=False)
    return joined(walked(tree, True, False))


def walked(element: Any, translated: bool, embedded: bool) -> Iterator[tuple[str, bool, bool]]:
    if not isinstance(element.tag, str):
        return
    name = element.tag.rpartition("}")[2]
    says = element.get("translate", "").lower() if "translate" in element.attrib else None
    if says == "no" or "notranslate" in element.get("class", "").split():
        translated = False
    elif says in ("yes", ""):
        translated = True
    elif name in NOT_TRANSLATED:
        translated = False
    embedded = embedded or name in EMBEDDED
    is_raw = name == element.tag and name in ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes")
    if not is_raw:
        yield element.text or "", translated, embedded
    for child in element:
        yield from walked(child, translated, embedded)
        if not is_raw:
            yield child.tail or "", translated, embedded


def joined(texts: Iterator[tuple[str, bool, bool]] | Sequence[tuple[str, bool, bool]]) -> list[tuple[str, bool, bool]]:
    """The words of the texts, each with what is said of it; in no order, as text in tables goes before them."""
    return sorted((word, *says) for text, *says in texts for word in text.split())


PARTS = """
<p> </p> <li> <ul> </ul> <b> </b> <i_translate=no> </i> <code> </code> <a_href='x>y'> </a> <a_class='a_notranslate'>
<div_translate='no'> </div> <span_translate=yes> </span> <table> <tr> <td_translate=no> </table> <dt> <dd_translate=no>
<dl> </dl> <br> <img_alt=a> <select> <option> </select> <script> </script> <title> </title> <!--a_>_b--> <pre> </pre>
<h1> </h1> <svg> </svg> <button> </button> < &amp; </ <! <3 <p_translate=no> <nobr_translate=no> <textarea> </textarea>
<my-own_translate=no> </my-own> <form> </form> <th> <caption> <tbody> <template> </template> <ruby> <rt> <rp> </ruby>
"""


@pytest.mark.parametrize("seed", range(20))
def test_random_pages_are_read_as_html5lib_reads_them(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        page = "".join(
            rng.choice(PARTS.split()).replace("_", " ") + f" w{number} " for number in range(rng.randrange(20))
        )
        assert ours(page) == theirs(page), page


def test_attributes_are_cut_as_html5lib_cuts_them() -> None:
    for tag in (
        "<img src=a.png alt=x/>", "<a b=c'd e='f\"g' h>", "<a =b c==d>", "<a b = c d= 'e > f'>", "<a/b/c=d/ >",
        "<a b='c'd>",
        "<A Title=\"x &amp; y &copy;\" TITLE=z>", "<a b=\"\" c=''>", "<a\n\tb\n=\nc>",
    ):  # fmt: skip
        [element] = [piece.tag for piece in pieces(tag) if piece.tag]
        found: dict[str, str] = {}
        for name, value, start, end in element.attributes():
            found.setdefault(name, value)
            assert "&" in tag or tag[start:end] == value
        tree = html5lib.parse(tag, treebuilder="etree", namespaceHTMLElements=False)
        [theirs] = [one for one in tree.iter() if one.tag in ("a", "img")]
        assert found == theirs.attrib, tag


@pytest.mark.slow
@pytest.mark.skipif(not DOCUMENTATION.exists(), reason="pages of Debian's packages")
def test_pages_of_debian_are_read_as_html5lib_reads_them() -> None:
    """With elements here and there that say that they are not translated, or are."""
    rng = random.Random(1)
    pages = sorted(path for path in DOCUMENTATION.rglob("*.html") if path.is_file() and path.stat().st_size < 300_000)
    for path in rng.sample(pages, min(2000, len(pages))):
        page = path.read_bytes().decode("utf-8", "replace").replace("\0", "").replace("\r", "")
        page = page.replace("xmlns", "xml-ns").replace("<?xml", "<?")  # read as HTML, not as XHTML
        tags = [piece.tag for piece in pieces(page) if piece.tag and piece.tag.opens and piece.tag.name]
        for tag in sorted(rng.sample(tags, len(tags) // 20), key=lambda one: one.start, reverse=True):
            at = tag.start + 1 + len(tag.name)
            page = page[:at] + rng.choice([" translate=no", " translate=yes", " class=notranslate"]) + page[at:]
        assert ours(page) == theirs(page), path
