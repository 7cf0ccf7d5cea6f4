"""The language and direction that translated files say they are in: pages, books, and files of messages."""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from dragoman.formats.base import Item, Options, Unit
from dragoman.formats.document import Document, format_of

WORDS = {
    "one": "\u0648\u0627\u062d\u062f", "Settings": "\u0625\u0639\u062f\u0627\u062f",
}  # fmt: skip
BACK = {arabic: english for english, arabic in WORDS.items()}
INTO, FROM, SAME = ("en", "ar"), ("ar", "en"), ("en", "de")


def translated(data: bytes, name: str, languages: tuple[str, str]) -> bytes:
    """A file of which texts in the table of words are translated, and all others left."""
    words: Mapping[str, str] = {INTO: WORDS, FROM: BACK}.get(languages, dict.fromkeys(WORDS, "eins"))

    def translate(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
        for unit in units:
            said = tuple(words.get(item, item) if isinstance(item, str) else item for item in unit.items)
            yield None if unit.kept else said

    return Document(data, format_of(Path(name), data), Options(name, languages)).translated(translate)


def page(text: str, languages: tuple[str, str], name: str = "a.html") -> str:
    """A translated text file; the words of the table are written in English, in Arabic files too."""
    if languages == FROM:
        for english, arabic in WORDS.items():
            text = text.replace(english, arabic)
    out = translated(text.encode(), name, languages).decode()
    for english, arabic in WORDS.items():
        out = out.replace(arabic, english).replace(json.dumps(arabic)[1:-1], english)
    return out


@pytest.mark.parametrize(
    ("languages", "before", "expected"),
    [
        (INTO, '<html lang="en"><p dir="ltr" lang="en-US">one</p>',
         '<html lang="ar" dir="rtl"><p dir="rtl" lang="ar">one</p>'),
        (INTO, '<html lang="en" dir="ltr"><p>one', '<html lang="ar" dir="rtl"><p>one'),
        (INTO, "<HTML LANG=en><p>one", "<HTML LANG=ar dir=\"rtl\"><p>one"),
        (INTO, '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en"><p>one</p></html>',
         '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="ar" lang="ar" dir="rtl"><p>one</p></html>'),
        (INTO, "<body><p>one", '<body dir="rtl"><p>one'),
        (INTO, '<p lang="en" dir="ltr">one</p>', '<p lang="ar" dir="rtl">one</p>'),
        (INTO, '<html><body dir="ltr"><p>one', '<html dir="rtl"><body dir="rtl"><p>one'),
        (FROM, '<html lang="ar" dir="rtl"><body dir="rtl" style="text-align:right"><p lang="ar-SA">one',
         '<html lang="en" dir="ltr"><body dir="ltr" style="text-align:left"><p lang="en">one'),
                (SAME, '<html lang="en" dir="ltr"><p style="text-align:left">one',
         '<html lang="de" dir="ltr"><p style="text-align:left">eins'),
    ],
)  # fmt: skip
def test_pages_say_the_language_and_direction_of_the_target(
    languages: tuple[str, str], before: str, expected: str
) -> None:
    assert page(before, languages) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('<blockquote lang="fr" dir="ltr"><p dir="ltr">Le chat</p></blockquote><p dir="ltr">one</p>',
         '<blockquote lang="fr" dir="ltr"><p dir="ltr">Le chat</p></blockquote><p dir="rtl">one</p>'),
        ('<q lang="fr">chat</q><p>one', '<q lang="fr" dir="ltr">chat</q><p>one'),
        ('<q lang="fa">\u06af\u0631\u0628\u0647</q><p>one', '<q lang="fa">\u06af\u0631\u0628\u0647</q><p>one'),
        ('<q lang="fr" dir="ltr">one</q>', '<q lang="fr" dir="rtl">one</q>'),  # it was translated all the same
        ('<p lang="{{ lang }}">7 km<p>one', '<p lang="{{ lang }}">7 km<p>one'),
        ("<pre>x = <code>f(7)</code></pre><p>one<p><code>f()</code>",
         '<pre dir="ltr">x = <code>f(7)</code></pre><p>one<p><code dir="ltr">f()</code>'),
        ("<iframe srcdoc='<p lang=\"en\" dir=ltr>one</p>'></iframe>",
         "<iframe srcdoc='&lt;p lang=&quot;ar&quot; dir=rtl&gt;one&lt;/p&gt;'></iframe>"),
        ('<!--[if mso]><td dir="ltr">one</td><![endif]-->', '<!--[if mso]><td dir="rtl">one</td><![endif]-->'),
        ('<p dir="auto">one</p><img align="left" alt="one">', '<p dir="auto">one</p><img align="right" alt="one">'),
    ],
)  # fmt: skip
def test_quotations_in_a_third_language_and_code_keep_their_direction(before: str, expected: str) -> None:
    assert page(f"<html>{before}", INTO) == f'<html dir="rtl">{expected}'


def test_styles_of_a_page_are_of_the_other_direction() -> None:
    styles = (
        "<style>p { DIRECTION: ltr; text-align : left; float:right; border-left-width:1px } .margin-left{x:0}</style>"
    )
    expected = (
        "<style>p { DIRECTION: rtl; text-align : right; float:left; border-right-width:1px } .margin-left{x:0}</style>"
    )
    assert page(f"<html>{styles}<p>one", INTO) == f'<html dir="rtl">{expected}<p>one'
    assert page(f"<html>{styles}<p>one", SAME) == f"<html>{styles}<p>eins"


BOOK = {
    "mimetype": b"application/epub+zip",
    "META-INF/container.xml": b'<container><rootfile full-path="b.opf"/></container>',
    "b.opf": b'<package version="3.0" xml:lang="en" dir="ltr"><metadata><dc:language>en</dc:language></metadata>'
    b'<item href="a.xhtml" media-type="application/xhtml+xml"/><item href="s.css" media-type="text/css"/>'
    b'<item href="t.css" media-type="text/css"/><spine toc="n"/></package>',
    "a.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><body><p>one</p></body></html>',
    "s.css": b"/* B\xe4r */ p { direction: ltr }",
    "t.css": b"\xff\xfep\0{\0}\0",
}


def packed(parts: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return out.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_a_book_is_written_from_the_right_and_back() -> None:
    there = unpacked(translated(packed(BOOK), "a.epub", INTO))
    assert there["b.opf"] == BOOK["b.opf"].replace(b'"en"', b'"ar"').replace(b">en<", b">ar<").replace(
        b'"ltr"', b'"rtl"'
    ).replace(b"<spine ", b'<spine page-progression-direction="rtl" ')
    assert there["a.xhtml"].startswith(b'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="ar" dir="rtl">')
    assert there["s.css"] == b"/* B\xe4r */ p { direction: rtl }"
    back = unpacked(translated(packed(there), "a.epub", FROM))
    assert {name: back[name] for name in ("s.css", "t.css")} == {name: BOOK[name] for name in ("s.css", "t.css")}
    assert b'page-progression-direction="ltr"' in back["b.opf"]
    assert back["a.xhtml"] == BOOK["a.xhtml"].replace(b'"en">', b'"en" dir="ltr">')


def test_a_book_in_the_same_direction_changes_its_language_alone() -> None:
    out = unpacked(translated(packed(BOOK), "a.epub", SAME))
    expected = {name: data.replace(b'"en"', b'"de"').replace(b">en<", b">de<") for name, data in BOOK.items()}
    assert out == {**expected, "a.xhtml": expected["a.xhtml"].replace(b"one", b"eins")}


def test_a_book_of_epub_2_has_no_side_of_its_next_page() -> None:
    old = {**BOOK, "b.opf": BOOK["b.opf"].replace(b"3.0", b"2.0")}
    assert b"page-progression" not in unpacked(translated(packed(old), "a.epub", INTO))["b.opf"]


XLIFF = (
    '<xliff version="1.2"><file source-language="en-US"{}><trans-unit id="1"><source>one</source>{}</trans-unit></file>'
    "</xliff>"
)
TTML = (
    '<tt xmlns:tts="http://www.w3.org/ns/ttml#styling" xml:lang="{0}"><body{2}>'
    '<p xml:lang="{1}" begin="0s" end="1s">one</p></body></tt>'
)


@pytest.mark.parametrize(
    ("name", "languages", "before", "expected"),
    [
        ("a.arb", INTO, '{"@@locale": "en", "a": "one"}', '{"@@locale": "ar", "a": "one"}'),
        ("a.json", INTO, '{"locale": "en_US", "a": {"locale": "en", "b": "one"}}',
         '{"locale": "ar_EG", "a": {"locale": "en", "b": "one"}}'),
        ("a.json", INTO, '{"en": {"a": "one"}}', '{"ar": {"a": "one"}}'),
        ("a.json", FROM, '{"ar-EG": {"a": "one"}}', '{"en-US": {"a": "one"}}'),
        ("a.json", INTO, '{"en": {"a": "one"}, "b": "one"}', '{"en": {"a": "one"}, "b": "one"}'),
        ("a.json", INTO, '{"de": {"a": "one"}}', '{"de": {"a": "one"}}'),
        ("a.yml", INTO, "en:\n  a: one\n", "ar:\n  a: one\n"),
        ("a.md", INTO, "---\nlang: en\ndir: ltr\n---\n\none\n", "---\nlang: ar\ndir: rtl\n---\n\none\n"),
        ("a.md", SAME, "---\nlang: en\ndir: ltr\n---\n\none\n", "---\nlang: de\ndir: ltr\n---\n\neins\n"),
        ("a.md", FROM, '<div dir="rtl" lang="ar">\n\none\n\n`<p dir="rtl">`\n\n```html\n<p dir="rtl">\n```\n</div>\n',
         '<div dir="ltr" lang="en">\n\none\n\n`<p dir="rtl">`\n\n```html\n<p dir="rtl">\n```\n</div>\n'),
        ("a.md", INTO, '<p align="left">\none\n</p>\n', '<p align="right">\none\n</p>\n'),
        ("a.md", SAME, '<p align="left" dir="ltr">\none\n</p>\n', '<p align="left" dir="ltr">\neins\n</p>\n'),
        ("a.adoc", INTO, "= Settings\n:lang: en\n\none\n", "= Settings\n:lang: ar\n\none\n"),
        ("a.rst", INTO, ".. meta::\n   :description lang=en: one\n", ".. meta::\n   :description lang=ar: one\n"),
        ("a.vtt", INTO, "WEBVTT\nLanguage: en\n\n00:01.000 --> 00:02.000\none\n",
         "WEBVTT\nLanguage: ar\n\n00:01.000 --> 00:02.000\none\n"),
        ("a.ttml", INTO, TTML.format("en", "en", ""), TTML.format("ar", "ar", ' tts:direction="rtl"')),
        ("a.ttml", FROM, TTML.format("ar", "ar", ' tts:direction="rtl"'),
         TTML.format("en", "en", ' tts:direction="ltr"')),
        ("a.ttml", INTO, TTML.format("en", "fr", ' tts:direction="ltr"'),
         TTML.format("ar", "fr", ' tts:direction="rtl"')),
        ("a.dita", INTO, '<topic xml:lang="en-US" dir="ltr"><p xml:lang="en">one</p><p xml:lang="fr">chat</p></topic>',
         '<topic xml:lang="ar-EG" dir="rtl"><p xml:lang="ar">one</p><p xml:lang="fr">chat</p></topic>'),
        ("a.dbk", INTO, '<article lang="en"><para>one</para></article>',
         '<article lang="ar"><para>one</para></article>'),
        ("a.xml", INTO, '<resources xmlns:tools="t" tools:locale="en"><string name="a">one</string></resources>',
         '<resources xmlns:tools="t" tools:locale="ar"><string name="a">one</string></resources>'),
        *(("a.xlf", INTO, XLIFF.format(before, ""),
           XLIFF.format(' target-language="ar"', '<target state="needs-review-translation">one</target>'))
          for before in ("", ' target-language=""', ' target-language="en"')),
        ("a.xlf", INTO, '<xliff version="2.0" srcLang="en" trgLang=""><file id="f"><unit id="1"><segment>'
         "<source>one</source></segment></unit></file></xliff>",
         '<xliff version="2.0" srcLang="en" trgLang="ar"><file id="f"><unit id="1"><segment>'
         "<source>one</source><target>one</target></segment></unit></file></xliff>"),
        ("a.ts", INTO, '<TS version="2.1" sourcelanguage="en" language=""><message><source>one</source></message></TS>',
         '<TS version="2.1" sourcelanguage="en" language="ar"><message><source>one</source>'
         '<translation type="unfinished">one</translation></message></TS>'),
    ],
)  # fmt: skip
def test_files_that_name_their_language_name_the_target(
    name: str, languages: tuple[str, str], before: str, expected: str
) -> None:
    assert page(before, languages, name) == expected


@pytest.mark.parametrize("src", ["en-US", "fr"])  # French: the file is no template, whatever the languages are
def test_an_xliff_into_another_language_says_so(src: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = page(XLIFF.format(' target-language="de"', "").replace("en-US", src), INTO, "a.xlf")
    assert 'target-language="de"' in out
    assert "says that it is translated into 'de', not 'ar'; this stays as it is" in capsys.readouterr().err
