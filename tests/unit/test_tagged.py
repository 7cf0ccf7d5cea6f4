"""Texts with tags, as DeepL's documentation has them, and as its users report them."""

import re
from collections.abc import Iterable

import pytest

from dragoman.errors import DragomanError
from dragoman.formats import html, tagged
from dragoman.formats.base import NO_TAGS, Code, Options, Tags, Unit, plain

BOOK = """<?xml version="1.0"?>
<document>
  <meta>
    <title>A document's title</title>
  </meta>
  <content>
    <par>This is the first sentence. Followed by a second one.</par>
    <par>This is the third sentence.</par>
  </content>
</document>
"""
TEXTS_OF_BOOK = [
    "A document's title", "This is the first sentence. Followed by a second one.", "This is the third sentence."
]  # fmt: skip
SPLIT = "<content><par>The firm said it had been </par><par> conducting an inquiry.</par></content>"


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def texts(markup: str, tags: Tags = NO_TAGS) -> list[str]:
    return said(tagged.units(markup, Options(tags=tags)))


def said(units: Iterable[Unit]) -> list[str]:
    return [re.sub(" +", " ", plain(unit.items)) for unit in units]


@pytest.mark.parametrize(
    ("markup", "tags", "expected"),
    [
        ("Press <i>Continue</i> to advance to the next page.", Tags(), ["Press Continue to advance to the next page."]),
        ("Please open the page <x>Settings</x> to configure your system.", Tags(ignored=names("x")),
         ["Please open the page <x>Settings</x> to configure your system."]),
        (BOOK, Tags(), TEXTS_OF_BOOK),
        (BOOK, Tags(outline=False, splitting=names("par title")), TEXTS_OF_BOOK),
        (SPLIT, Tags(), ["The firm said it had been", "conducting an inquiry."]),
        (SPLIT, Tags(non_splitting=names("par")), ["The firm said it had been conducting an inquiry."]),
        # DeepL/deepl-python#61
        ("<p><em>Wait! Did we </em>not<em> tell her?!</em></p>", Tags(), ["Wait! Did we not tell her?!"]),
        # DeepL/deepl-node#30: any name, any attribute
        ('That is the <fontcolor="#007af2">timer</fontcolor>!', Tags(), ["That is the timer!"]),
        ("Das ist ein <foo:x a='1'/> Wort, <Bar>groß</Bar> und <p>klein</p>.", Tags(),
         ["Das ist ein Wort, groß und klein."]),
        # DeepL/deepl-php#47
        ("<strong wg-1=''>30k of <skip>ingresos</skip></strong> and <strong wg-2=''>80 new ones</strong>",
         Tags(ignored=names("skip")), ["30k of <skip>ingresos</skip> and 80 new ones"]),
        # DeepL/deepl-python#143
        ("<?xml version='1.0'?>\n<!DOCTYPE d[\n<!NOTATION cgm PUBLIC 'x'>\n<!ENTITY a SYSTEM 'b' NDATA cgm >\n]>"
         "\n<d><par>One.</par></d>", Tags(), ["One."]),
        ("<par>See: <list><item>one thing</item><item>two things</item></list></par>", Tags(),
         ["See:", "one thing", "two things"]),
        ("<d><par>One <b>two</b>.</par><par><b>Three</b></par></d>", Tags(), ["One two.", "Three"]),
        ("<d>One<br/>two</d>", Tags(splitting=names("br")), ["One", "two"]),
        ("<d><code>x one</code><par>Two three.</par><par>Four</par></d>", Tags(ignored=names("code")),
         ["Two three.", "Four"]),
    ],
)  # fmt: skip
def test_tags_mean_what_the_request_says(markup: str, tags: Tags, expected: list[str]) -> None:
    assert texts(markup, tags) == expected
    for unit in tagged.units(markup, Options(tags=tags)):
        written = re.sub(r"[ \t\n]+", " ", markup[unit.start : unit.end])
        assert unit.render(unit.items) == written.replace(" </par><par> ", " </par><par>")  # one blank, to a reader


def test_names_of_xml_have_cases() -> None:
    assert texts("<d>One <X>two</X> three</d>", Tags(ignored=names("x"))) == ["One two three"]


def test_what_is_not_well_formed_is_read_as_html() -> None:
    assert texts("One <b>two. <i>Three", Tags()) == ["One two. Three"]
    assert texts("AT&T <x>one</x> two", Tags(ignored=names("x"))) == ["AT&T <x>one</x> two"]
    with pytest.raises(DragomanError):
        tagged.check("One <b>two")
    tagged.check("One <b>two</b> &amp; three")


def of_html(page: str, **tags: frozenset[str]) -> list[str]:
    return said(html.text_units(page, Options(tags=Tags(**tags))))


def test_tags_of_html() -> None:
    page = "<p title='a b'>One <ins title='c'>two <b>three</b></ins> four.</p><p>Five</p>"
    options = Options(tags=Tags(ignored=names("ins")))
    ignored = "<ins title='c'>two <b>three</b></ins>"
    assert Code(ignored, "protected") in next(html.text_units(page, options)).items
    assert of_html(page, ignored=names("ins")) == [f"One {ignored} four.", "Five"]
    assert said(html.attribute_units(page, options)) == ["a b"]
    assert of_html("One <div>two</div>", non_splitting=names("div")) == ["One two"]
    assert of_html("One <q>two</q>", splitting=names("q")) == ["One", "two"]
    assert of_html("One <own-tag>two</own-tag> <foo>three</foo>") == ["One two three"]
