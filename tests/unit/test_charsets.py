"""Files that are not UTF-8: what they declare is read and written, and what they are likely in is named."""

import re
from pathlib import Path

import html5lib
import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.formats.base import Options
from dragoman.formats.document import Document, format_of
from dragoman.text.lines import read_lines

ARABIC = "صباح الخير جميعا."


def document(name: str, data: bytes, languages: tuple[str, str]) -> Document:
    return Document(data, format_of(Path(name), data), Options(name, languages))


def translated(name: str, data: bytes, said: str) -> bytes:
    return document(name, data, ("en", "ja")).translated(lambda units: [(said,) for _ in units])


@pytest.mark.parametrize(
    ("language", "text", "codec", "named"),
    [
        ("ar", ARABIC, "cp1256", "WINDOWS-1256"),
        ("fa", "سلام دنيا", "cp1256", "WINDOWS-1256"),
        ("ru", "Добрый день", "cp1251", "WINDOWS-1251"),
        ("tr", "Günaydın, iyi akşamlar", "cp1254", "WINDOWS-1254"),
        ("he", "בוקר טוב", "cp1255", "WINDOWS-1255"),
        ("el", "Καλημέρα", "cp1253", "WINDOWS-1253"),
        ("th", "อรุณสวัสดิ์", "cp874", "CP874"),
        ("ja", "おはよう", "cp932", "CP932"),
        ("ko", "안녕하세요", "cp949", "CP949"),
        ("zh_TW", "早安", "cp950", "CP950"),
        ("zh", "早上好", "gb18030", "GB18030"),
        ("de", "Schöne Grüße", "cp1252", "WINDOWS-1252"),
    ],
)
def test_a_hint_names_the_code_page_of_the_language(
    language: str, text: str, codec: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.txt", "a.json", "a.vtt", "a.md", "a.strings"):
        with raises_error(Error.NOT_UTF8, f"iconv -f {named} -t UTF-8"):
            list(document(name, f'"k" = "{text}";\n'.encode(codec), (language, "en")).texts())
    lines = tmp_path / f"corpus.{language}"
    lines.write_bytes(f"{text}\n".encode(codec))
    with raises_error(Error.NOT_UTF8, f"iconv -f {named} -t UTF-8"):
        list(read_lines(lines))
    cue = f"1\n00:00:01,000 --> 00:00:03,000\n{text}\n".encode(codec)  # players read it so: it is read
    assert [unit.items for unit in document("a.srt", cue, (language, "en")).texts()] == [(text,)]
    document("a.srt", cue, (language, "en")).translated(lambda units: [("Good morning.",) for _ in units])
    assert codec.replace("cp", "windows-") in capsys.readouterr().err


def test_of_what_is_mostly_utf_8_no_other_encoding_is_named() -> None:
    with raises_error(Error.NOT_UTF8, "iconv -f ENCODING"):
        list(document("a.txt", "Größe, Maß, Öl".encode() + b"\xe4", ("de", "en")).texts())


@pytest.mark.parametrize(
    ("charset", "declaration"),
    [
        ("iso-8859-1", '<meta charset="iso-8859-1">'),
        ("Shift_JIS", '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">'),
        ("windows-1256", "<meta charset=windows-1256>"),
        ("utf-8", '<meta charset="utf-8">'),
    ],
)
def test_what_a_page_declares_is_how_it_is_written(charset: str, declaration: str) -> None:
    page = f"<html><head>{declaration}<title>Settings</title></head><body><p>Settings</p></body></html>"
    for said in ("الإعدادات", "設定", "Ünïcode"):
        out = translated("a.html", page.encode(charset), said)
        tree = html5lib.parse(out, namespaceHTMLElements=False)
        assert tree.findtext("head/title") == tree.findtext("body/p") == said
        assert re.search(rb"charset=.?([\w-]+)", out)


@pytest.mark.parametrize("said", ["設定", "Größe"])
def test_what_xml_and_catalogues_declare_is_how_they_are_written(said: str) -> None:
    for name, text in (
        (
            "a.xml",
            '<?xml version="1.0" encoding="ISO-8859-1"?><resources><string name="a">Settings</string></resources>',
        ),
        (
            "a.resx",
            '<?xml version="1.0" encoding="us-ascii"?><root><data name="a"><value>Settings</value></data></root>',
        ),
        ("a.po", 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "Settings"\nmsgstr ""\n'),
        ("a.properties", "a=é Settings\n"),
    ):
        out = translated(name, text.encode("latin-1"), said)
        read = document(name, out, ("en", "ja"))
        if name == "a.po":
            codec = re.search(rb"charset=([\w-]+)", out)
            assert codec is not None
            assert f'msgstr "{said}"' in out.decode(codec[1].decode())
        else:
            assert [unit.items for unit in read.texts()] == [(said,)]
