"""Texts of documents: sentences and codes together, by a translator that reverses words and knows its links."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman.formats import (
    android,
    html,
    json_strings,
    markdown,
    office,
    opendocument,
    plain_text,
    po,
    properties,
    workbook,
)
from dragoman.formats.base import Format, Limit, Options, Unit
from dragoman.formats.document import FORMATS, Document
from dragoman.inference.translation import Translation
from dragoman.pipeline import document as module
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.splitter import Splitter
from dragoman.text.glossary import Glossary
from dragoman.text.words import words


class Backwards:
    """Puts the words of a sentence into the opposite order, its final mark left at the end."""

    languages = ("en", "de")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        self.asked += sentences
        return [[Translation(backwards(text), 0.0, 0.0)] for text in sentences]


def backwards(text: str) -> str:
    mark = text[-1] if text[-1:] in ".!?" else ""
    return " ".join(reversed(text.removesuffix(mark).split())) + mark


def links(translator: Any, pairings: Sequence[Any]) -> list[np.ndarray]:
    found = []
    for pair in pairings:
        count = len(words(pair.src))
        marks = count - sum(
            pair.src[word.start].isalnum() or ord(pair.src[word.start]) > 0xE000 for word in words(pair.src)
        )
        order = [*reversed(range(count - marks)), *range(count - marks, count)]
        found.append(np.eye(count)[order])
    return found


@pytest.fixture
def translate(monkeypatch: pytest.MonkeyPatch) -> DocumentTranslator:
    monkeypatch.setattr(module, "word_links", links)
    pipeline: Any = SimpleNamespace(
        splitter=Splitter(("en", "de")),
        by_sentence=Backwards().n_best,
        own=SimpleNamespace(glossary=None),
        carries_codes=False,
        context=(0, 0),
        memory=None,
    )
    return DocumentTranslator(pipeline)


def page(translate: DocumentTranslator, text: str) -> str:
    return Document(text.encode(), FORMATS["html"], Options("x", ("en", "de"))).translated(translate).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>one <b>two</b> three.</p>", "<p>three <b>two</b> one.</p>"),
        ("<p>One <b>two</b>. Three <i>four</i>!</p>", "<p><b>two</b> One. <i>four</i> Three!</p>"),
        ("<p>One <b>two. Three</b> four.</p>", "<p><b>two One. four Three</b>.</p>"),
        ("<p>one <a href=x><b>two</b></a> three</p>", "<p>three <a href=x><b>two</b></a> one</p>"),
        ("<p>one <code>f(x)</code> two</p>", "<p>two <code>f(x)</code> one</p>"),
        ("<p> one<br> two three </p>", "<p> one<br> three two </p>"),
        ("<p>a <b>b</b> c <b>d</b> e</p>", "<p>e <b>d</b> c <b>b</b> a</p>"),
        ("<p>one <img> two</p>", "<p><img> two one</p>"),
        ("<p>a <img> b.</p>", "<p><img> b a.</p>"),
        (
            "<p>one<a href=x>1</a> two<sup><a href=y>[2]</a></sup>.</p>",
            "<p>two one<a href=x>1</a><sup><a href=y>[2]</a></sup>.</p>",
        ),
        ("<p>One two.   Three four.\n</p>", "<p>two One. four Three.\n</p>"),
        ("<p>one two<sup>1</sup> three.<sup>[2]</sup></p>", "<p>three two<sup>1</sup> one.<sup>[2]</sup></p>"),
        ("<p>one 5 m<sup>2</sup> three</p>", "<p>three m<sup>2</sup> 5 one</p>"),
        ("<p>one <img> <b>two</b></p>", "<p><img> <b>two</b> one</p>"),
    ],
)
def test_codes_go_with_their_words(translate: DocumentTranslator, before: str, after: str) -> None:
    assert page(translate, before) == after
    assert translate.report.wrapped == 0


def test_an_equal_sentence_is_asked_once(translate: DocumentTranslator) -> None:
    page(translate, "<p>a b.</p><p>a b.</p><td>a b.")
    asked: Any = translate.by_sentence
    assert asked.__self__.asked == ["a b."]
    assert translate.report.texts == translate.report.translated == 3


def test_codes_of_a_text_that_is_too_long_go_around_it_well_nested(
    translate: DocumentTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINKS", 3)
    assert page(translate, "<p>x <b>one</b> <i>two</i><img> y</p>") == "<p><b><i><img> y two one x</i></b></p>"
    assert translate.report.wrapped == 1


def test_a_translation_that_is_longer_than_its_file_allows_is_in_doubt(translate: DocumentTranslator) -> None:
    translate([Unit(("äb c",), 0, 1, str, "x", limit=limit) for limit in (Limit(4), Limit(3), Limit(4, "bytes"), None)])
    assert [str(doubt.reasons[0]) for doubt in translate.report.doubts] == [
        "longer than the file allows: 4 characters for 3", "longer than the file allows: 5 bytes for 4",
    ]  # fmt: skip


def test_units_that_are_kept_are_counted_by_reason(translate: DocumentTranslator) -> None:
    units = [Unit(("a",), 0, 1, str, "x", kept="approved"), Unit(("b c",), 1, 2, str, "x")]
    assert translate(units) == [None, ("c b",)]
    assert dict(translate.report.kept) == {"approved": 1}


WORD = '<w:p xmlns:w="w"><w:r><w:t>{}</w:t></w:r><w:r>{}</w:r><w:r><w:t>{}</w:t></w:r></w:p>'
ODT = '<text:p xmlns:text="t">{}{}{}</text:p>'
BREAKS = [
    (office.paragraphs(0), WORD, ("<w:br/>", "<w:cr/>", "<w:tab/>", '<w:br w:type="page"/>')),
    (office.paragraphs(0), '<a:p xmlns:a="a"><a:r><a:t>{}</a:t></a:r>{}<a:r><a:t>{}</a:t></a:r></a:p>', ("<a:br/>",)),
    (workbook.cells(frozenset()), "<si><t>{}{}{}</t></si>", ("\n", "\n\n", "\t")),
    (opendocument.paragraphs(0, dict), ODT, ("<text:line-break/>", "<text:tab/>", '<text:s text:c="9"/>')),
    (html.text_units, "<p>{}{}{}</p>", ("<br>", "<br/>", "<hr>")),
    (markdown.units, "{}{}{}\n", ("<br>", "  \n", "\\\n", "<br/> ")),
    (plain_text.units, "{}{}{}\n", ("\t", "\n", "\r\n")),
    (json_strings.units, '{{"a": "{}{}{}"}}', ("\\n", "\\t", "<br>", "</p><p>")),
    (po.units, 'msgid "{}{}{}"\nmsgstr ""\n', ("\\t", "<br/>")),
    (properties.units, "a={}{}{}\n", ("\\n", "\\t", "<br>")),
    (android.units, '<resources><string name="a">{}{}{}</string></resources>', ("\\n", "\\t")),
]


@pytest.mark.parametrize(
    ("units", "form", "mark"), [(units, form, mark) for units, form, marks in BREAKS for mark in marks]
)
def test_breaks_part_texts_in_every_format(translate: DocumentTranslator, units: Any, form: str, mark: str) -> None:
    kind = Format("a file", (), (units,))
    before, after = form.format("one two", mark, "three four"), form.format("two one", mark, "four three")
    if form.startswith("msgid"):
        after = f'#, fuzzy\nmsgid "one two{mark}three four"\nmsgstr "two one{mark}four three"\n'
    assert Document(before.encode(), kind, Options("x", ("en", "de"))).translated(translate).decode() == after


@pytest.mark.parametrize(
    "code",
    [
        '<x id="1" ctype="lb"/>',
        '<x id="1" equiv-text="&lt;br/&gt;"/>',
        '<ph id="1">&lt;br/&gt;</ph>',
        '<ph id="1">\\n</ph>',
    ],
)
def test_codes_of_xliff_that_stand_for_a_break_part_texts(translate: DocumentTranslator, code: str) -> None:
    source = f"<trans-unit><source><g id='2'>one two{code}three</g> four</source></trans-unit>"
    out = Document(f"<xliff>{source}</xliff>".encode(), FORMATS["xliff"], Options("x", ("en", "de"))).translated(
        translate
    )
    target = out.decode().partition('translation">')[2].partition("</target>")[0]
    assert target == f"<g id='2'>two one{code}four three</g>"
    assert translate.report.codes == 3


def test_tags_stand_around_a_term_and_never_around_bare_marks(
    translate: DocumentTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's own links are of no use: its words were replaced by the term's."""
    monkeypatch.setattr(module, "word_links", lambda _, pairs: [links_to_the_mark(pair) for pair in pairs])
    assert page(translate, "<p><b>Open</b> the file.</p>") == "<p><b>file</b> the Open.</p>"
    assert page(translate, "<p><b>Open</b><i>.</i></p>") == "<p><b>Open</b><i>.</i></p>"
    translate.pipeline.own.glossary = Glossary({"open": "unfold it"})
    monkeypatch.setattr(
        translate, "by_sentence", lambda texts: [[Translation("Unfold it the file.", 0, 0)] for _ in texts]
    )
    assert page(translate, "<p><b>Open</b> the file.</p>") == "<p><b>Unfold it</b> the file.</p>"
    assert page(translate, "<p>The <i>file</i> <b>open</b>.</p>").startswith("<p><b>Unfold it</b> ")


def links_to_the_mark(pair: Any) -> np.ndarray:
    found = np.zeros((len(pair.tgt_words), len(pair.src_words)))
    found[-1] = 1 / len(pair.src_words)
    return found


def test_codes_around_a_dash_stay_there_and_each_speaker_has_a_line(translate: DocumentTranslator) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n{}\n"
    for before, after in (
        (("<i>- </i> one two", "- three four"), ("<i>- </i> two one", "- four three")),
        (("<i>- one two</i>", "<i>- three.</i>"), ("<i>- two one</i>", "<i>- three.</i>")),
        (("- one <i>two</i>", "- <i>three four</i>"), ("- <i>two</i> one", "- <i>four three</i>")),
    ):
        document = Document(cue.format(*before).encode(), FORMATS["srt"], Options("x", ("en", "de")))
        assert document.translated(translate).decode() == cue.format(*after)
