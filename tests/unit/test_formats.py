"""Formats: texts out, translations in, and every other character where it was."""

import io
import random
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Item, Options, Unit, plain
from dragoman.formats.document import FORMATS, MIMETYPES, Document, format_of
from dragoman.formats.html import scan, text_units

FOLDER = Path(__file__).parents[1] / "fixtures" / "formats"
SAMPLES = sorted(path for path in FOLDER.iterdir() if ".reversed" not in path.name)
OPTIONS = Options(languages=("en", "de"), columns=("text",))


def reversed_words(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    for unit in units:
        items = (
            " ".join(word[::-1] for word in item.split(" ")) if isinstance(item, str) else item for item in unit.items
        )
        yield None if unit.kept else tuple(items)


def unchanged(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    return [None if unit.kept else unit.items for unit in units]


def read(name: str, text: str | bytes, *, everything: bool = False) -> Document:
    data = text.encode() if isinstance(text, str) else text
    return Document(data, format_of(Path(name), data), Options(name, ("en", "de"), everything))


def texts(name: str, text: str | bytes) -> list[str]:
    return [plain(unit.items) for unit in read(name, text).texts() if not unit.kept]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_reversed_words_change_nothing_but_texts(path: Path) -> None:
    """Against files that were looked at by a person."""
    stem, _, suffix = path.name.partition(".")
    wanted = path.with_name(f"{stem}.reversed.{suffix}").read_bytes()
    document = Document.load(path, OPTIONS)
    assert document.translated(reversed_words) == wanted
    if not any(unit.bilingual for unit in document.texts()):
        assert document.translated(unchanged) == path.read_bytes()


def test_every_format_has_a_sample_or_is_a_package() -> None:
    seen = {path.suffix for path in SAMPLES}
    for name, kind in FORMATS.items():
        assert kind.parts_of is not None or name == "pdf" or seen & set(kind.suffixes), name


def test_encodings_and_line_ends_stay() -> None:
    for codec, mark in (
        ("utf-8", b""),
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
    ):
        data = mark + "Größe one\r\ntwo\r\n".encode(codec)
        assert read("a.txt", data).translated(reversed_words) == mark + "eßörG eno\r\nowt\r\n".encode(codec)
    data = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<resources><string name="a">Größe</string></resources>'.encode(
        "latin-1"
    )
    assert read("a.xml", data).translated(reversed_words) == data.replace(
        "Größe".encode("latin-1"), "eßörG".encode("latin-1")
    )

    def greek(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [("ω",) for _ in units]

    assert b"&#969;" in read("a.xml", data).translated(greek)


def test_texts_of_a_page() -> None:
    page = "<p>one <b>two</b></p><td>three<td>four<div>five<p>six</div><a title='seven' href=x>eight</a>"
    assert texts("a.html", page) == ["seven", "one two", "three", "four", "five", "six", "eight"]
    assert texts("a.html", "<p>a<span class='notranslate'>b</span>c</p>") == ["a<span class='notranslate'>b</span>c"]
    assert texts("a.html", "<style>p {}</style><textarea>x</textarea><!-- <p>no</p> -->") == []
    assert texts("a.html", "<p>5 < 6 and <3 you") == ["5 < 6 and <3 you"]
    assert texts("a.html", "<input type=submit value=Send><input value=kept>") == ["Send"]


def test_a_unit_keeps_codes_at_its_edges_out() -> None:
    [unit] = text_units("<p><img src=x> <b>bold</b> <br></p>", OPTIONS)
    assert unit.items == ("bold",)
    [unit] = text_units("<p><b>bold</b> text</p>", OPTIONS)
    assert plain(unit.items) == "bold text"


def test_translations_that_are_there_stay_unless_all_are_wanted() -> None:
    po = 'msgid "a word"\nmsgstr "ein Wort"\n\nmsgid "two"\nmsgstr ""\n'
    assert b'msgstr "ein Wort"' in read("a.po", po).translated(reversed_words)
    assert b'#, fuzzy\nmsgid "a word"\nmsgstr "a drow"' in read("a.po", po, everything=True).translated(reversed_words)
    assert [unit.kept for unit in read("a.po", po).texts()] == ["translated already", ""]


def test_cdata_other_xml_and_line_ends() -> None:
    data = '<resources><string name="a"><![CDATA[one <b>two</b> & three]]></string></resources>'
    assert read("a.xml", data).translated(unchanged) == data.encode()
    out = read("a.xml", data).translated(reversed_words)
    assert b"<![CDATA[" not in out
    assert texts("a.xml", out) == ["eno >b/<owt>b< & eerht"]
    assert texts("a.xml", "<xliff><file><trans-unit><source>one</source></trans-unit></file></xliff>") == ["one"]
    with raises_error(Error.WRONG_SHAPE, "a.xml:2"):
        texts("a.xml", "<?xml version='1.0'?>\n<topic>one</topic>")
    cut = "<xliff><file><trans-unit><source>one two</source><seg-source><mrk mtype='seg' mid='1'>one</mrk> two</seg-source></trans-unit></file></xliff>"
    assert (
        b"<target state=\"needs-review-translation\"><mrk mtype='seg' mid='1'>eno</mrk> owt</target></trans-unit>"
        in read("a.xlf", cut).translated(reversed_words)
    )
    po = 'msgid "one\\n"\r\n"two"\r\nmsgstr ""\r\n'
    assert read("a.po", po).translated(reversed_words).count(b"\n") == read("a.po", po).translated(
        reversed_words
    ).count(b"\r\n")


def test_what_is_written_can_be_read_again() -> None:
    """Characters that mean something to a format are written so that they do not."""
    hard = "* a_b_ <tag> & [x](y) `c` \\ \"q\" 'p' {n} # 1. - +"

    def put(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [(hard,) for _ in units]

    for name, text in {
        "a.md": "text\n", "a.html": "<p>text</p>", "a.po": 'msgid "a"\nmsgstr ""\n', "a.json": '{"a": "text"}',
        "a.properties": "a=text\n", "a.xml": '<resources><string name="a">text</string></resources>',
    }.items():  # fmt: skip
        document = read(name, text)
        out = document.translated(put)
        if name == "a.po":
            assert b'\\"q\\"' in out
        else:
            assert texts(name, out) == [hard], name


def test_html_of_any_kind_takes_linear_time() -> None:
    for text in ("<" * 1_000_000, "<a " * 300_000, '<a b="' * 150_000 + ">", "<!--" * 250_000, "<b>" * 300_000,
                 "<script>" * 100_000, "</" * 500_000, "<![CDATA[" * 100_000, "&" * 1_000_000, "<p>" * 300_000):  # fmt: skip
        started = time.process_time()
        pieces = list(scan(text))
        list(text_units(text, OPTIONS))
        assert pieces
        assert time.process_time() - started < 30  # it takes about a second; quadratic time would take hours


def test_html_is_covered_by_its_pieces() -> None:
    rng = random.Random(1)
    for _ in range(3_000):
        text = "".join(
            rng.choice(["<", ">", "/", "a", "b ", '"', "'", "=", "!--", "-->", "<p>", "</p>", "script", " "])
            for _ in range(rng.randrange(25))
        )
        at = 0
        for piece in scan(text):
            start, end = piece if isinstance(piece, tuple) else (piece.start, piece.end)
            assert at <= start < end
            assert at == start
            at = end
        assert at == len(text)


def package(parts: dict[str, str | bytes], *, mimetype: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        if mimetype:
            file.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name, content in parts.items():
            file.writestr(name, content)
    return out.getvalue()


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def office(main: str, parts: dict[str, str | bytes]) -> bytes:
    """A package whose main part is that of the name."""
    root = f'<Relationships><Relationship Id="r" Type="http://x/officeDocument" Target="{main}"/></Relationships>'
    return package({"_rels/.rels": root, **parts})


def word(body: str) -> bytes:
    return office("word/document.xml", {"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"})


def runs(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read("word/document.xml").decode().partition("<w:body>")[2].partition("</w:body>")[0]


def test_runs_of_equal_formatting_are_one_text() -> None:
    body = (
        "<w:p><w:pPr/><w:r><w:t>Hel</w:t></w:r><w:r><w:rPr><w:lang w:val='en'/></w:rPr><w:t xml:space='preserve'>lo </w:t></w:r>"
        "<w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r><w:r><w:tab/><w:t> end</w:t></w:r></w:p>"
    )
    document = read("a.docx", word(body))
    [unit] = document.texts()
    assert plain(unit.items) == "Hello bold end"
    assert [item.kind for item in unit.items if not isinstance(item, str)] == ["open", "close", "break"]
    out = runs(document.translated(reversed_words))
    assert "<w:b/></w:rPr><w:t>dlob</w:t>" in out
    assert out.count("<w:tab/>") == 1
    assert out.startswith('<w:p><w:pPr/><w:r><w:t xml:space="preserve">olleH </w:t></w:r>')


def test_fields_deletions_and_text_boxes_of_word() -> None:
    body = (
        "<w:p><w:r><w:t>Page </w:t></w:r><w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r>"
        "<w:r><w:fldChar w:fldCharType='separate'/></w:r><w:r><w:t>7</w:t></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r>"
        "<w:r><w:t> of it</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        "<w:p><w:r><w:t>outer </w:t></w:r><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>inner</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
        "<w:r><w:t>words</w:t></w:r></w:p>"
    )
    out = runs(read("a.docx", word(body)).translated(reversed_words))
    assert "<w:t>7</w:t>" in out
    assert "<w:delText>gone</w:delText>" in out
    assert "<w:t>renni</w:t>" in out
    assert ">retuo </w:t>" in out
    assert out.count("fldChar ") == 3


def test_a_tables_headings_stay_in_a_workbook() -> None:
    data = office("xl/workbook.xml", {
        "xl/workbook.xml": "<workbook/>",
        "xl/sharedStrings.xml": "<sst><si><t>Name</t></si><si><t>a word</t></si><si><r><t>two </t></r><r><rPr><b/></rPr><t>runs</t></r></si></sst>",
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Type="http://x/table" Target="tables/table1.xml"/></Relationships>',
        "xl/tables/table1.xml": '<table><tableColumns><tableColumn id="1" name="Name"/></tableColumns></table>',
    })  # fmt: skip
    document = read("a.xlsx", data)
    assert {plain(unit.items): bool(unit.kept) for unit in document.texts()} == {
        "Name": True,
        "a word": False,
        "two runs": False,
    }
    with zipfile.ZipFile(io.BytesIO(document.translated(reversed_words))) as file:
        assert b"<si><t>Name</t></si><si><t>a drow</t></si>" in file.read("xl/sharedStrings.xml")


def test_notes_of_opendocument_are_texts_of_their_own() -> None:
    content = (
        "<office:text><text:p>one<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>a note</text:p>"
        "</text:note-body></text:note> two <text:span text:style-name='T1'>styled</text:span><text:s text:c='2'/>end</text:p>"
        "<text:tracked-changes><text:p>old</text:p></text:tracked-changes></office:text>"
    )
    data = package({"content.xml": content}, mimetype=MIMETYPES["odt"])
    out = read("a.odt", data).translated(reversed_words)
    with zipfile.ZipFile(io.BytesIO(out)) as file:
        assert file.infolist()[0].filename == "mimetype"
        assert file.infolist()[0].compress_type == zipfile.ZIP_STORED
        text = file.read("content.xml").decode()
    assert "<text:p>a eton</text:p>" in text
    assert "owt <text:span text:style-name='T1'>delyts</text:span><text:s text:c='2'/>dne" in text
    assert "<text:p>old</text:p>" in text


def broken(path: Path, content: bytes) -> DragomanError:
    path.write_bytes(content)
    with pytest.raises(DragomanError) as caught:
        list(Document.load(path, OPTIONS).texts())
    assert "\n" not in str(caught.value)
    assert (caught.value.file or "").startswith(str(path))
    return caught.value


def test_bad_files_are_told_in_a_line(tmp_path: Path) -> None:
    bomb = office("word/document.xml", {"word/document.xml": b" " * 300_000_000})
    locked = bytearray(word("<w:p/>"))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    cases = {
        "a.docx": (b"PK\x03\x04 broken", Error.DAMAGED, None),
        "b.docx": (bomb, Error.TOO_LARGE, None),
        "c.docx": (bytes(locked), Error.LOCKED, None),
        "d.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", Error.LOCKED, None),
        "e.docx": (office("xl/workbook.xml", {"xl/workbook.xml": "<workbook/>"}), Error.WRONG_FILE_TYPE, None),
        "f.docx": (b"plain text", Error.WRONG_FILE_TYPE, None),
        "g.docx": (word("<w:p><w:r></w:p>"), Error.BAD_SYNTAX, 1),
        "h.xlf": (b'<!DOCTYPE x [<!ENTITY a "b">]><xliff/>', Error.UNSAFE, 1),
        "i.xlf": (b"<xliff>\n<file>\n</xliff>", Error.BAD_SYNTAX, 3),
        "j.txt": (b"good\nbad \xff\n", Error.NOT_UTF8, 2),
        "k.json": (b'{"a": 1,}', Error.BAD_SYNTAX, 1),
        "l.po": (b'msgid "a"\nnonsense\n', Error.WRONG_SHAPE, 2),
        "m.xyz": (b"what", Error.UNKNOWN_FORMAT, None),
        "n.txt": (b"a\0b", Error.NOT_TEXT, 1),
        "o.xlf": (b"<a>" * 300 + b"</a>" * 300, Error.TOO_LARGE, 1),
        "p.txt": (b"%PDF-1.4 broken", Error.WRONG_FILE_TYPE, None),
        "q.pdf": (b"%PDF-1.4 broken", Error.DAMAGED, None),
        "r.xml": (b'<?xml version="1.0" encoding="nonsense"?><r/>', Error.NOT_UTF8, None),
    }  # fmt: skip
    for name, (content, code, line) in cases.items():
        error = broken(tmp_path / name, content)
        assert (error.code, error.line) == (code, line), error


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(101 * 2**20)
    with raises_error(Error.TOO_LARGE, "large.txt"):
        Document.load(path, OPTIONS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [ ] ab cd\n- [X] ef\n1. [x] gh", "- [ ] ba dc\n- [X] fe\n1. [x] hg"),
        ("ab[^1].\n\n[^1]: cd ef\n\n[^2]: gh", "ba[^1].\n\n[^1]: dc fe\n\n[^2]: hg"),
        ("> [!NOTE]\n> ab cd", "> [!NOTE]\n> ba dc"),
        (":::tip ab\n\ncd\n\n:::", ":::tip ba\n\ndc\n\n:::"),
        ("!!! note ab", "!!! note ba"),
        ("ab\n: cd ef", "ba\n: dc fe"),
        ("ab $x_1$ cd {{< ef gh >}}", "ba $x_1$ dc {{< ef gh >}}"),
        ("$$\nab cd\n$$", "$$\nab cd\n$$"),
        ("ab\n$$\ncd\n$$\nef $$gh$$ ij\n$$kl$$", "ba\n$$\ncd\n$$\nfe $$gh$$ ji\n$$kl$$"),
        ("+++\nab = 1\n+++\ncd", "+++\nab = 1\n+++\ndc"),
        ("| ab \\| cd | ef |\n|---|---|\n| gh | i \\| j |", "| ba \\| dc | fe |\n|---|---|\n| hg | i \\| j |"),
        ("see [ab] and [cd][] or [ef][ab]\n\n[ab]: x\n[cd]: y",
         "ees [ba][ab] dna [dc][cd] ro [fe][ab]\n\n[ab]: x\n[cd]: y"),
        ("ab<br>cd *ef*", "ba<br>dc *fe*"),
    ],
)  # fmt: skip
def test_marks_of_markdown_are_no_part_of_a_text(before: str, after: str) -> None:
    assert read("a.md", before).translated(reversed_words).decode() == after


@pytest.mark.parametrize(
    ("name", "codec", "text"),
    [
        ("a.html", "latin-1", '<head><meta charset="iso-8859-1"></head><p>Größe</p>'),
        ("a.html", "cp1251", "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'><p>мир</p>"),
        ("a.xhtml", "latin-1", '<?xml version="1.0" encoding="ISO-8859-1"?><p>Größe</p>'),
        ("a.html", "utf-8", '<meta charset="utf-16"><p>Größe</p>'),
        ("a.html", "cp1252", '<meta charset="ascii"><p>5 € “ab”</p>'),
        (
            "a.po",
            "iso8859-2",
            'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-2\\n"\n\nmsgid "Łódź"\nmsgstr ""\n',
        ),
    ],
)
def test_a_file_is_read_as_it_declares_and_written_back_so(name: str, codec: str, text: str) -> None:
    document = read(name, text.encode(codec))
    [unit] = document.texts()
    assert plain(unit.items) in text
    assert plain(unit.items)[::-1] in document.translated(reversed_letters).decode(codec)


def reversed_letters(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
    return [(plain(unit.items)[::-1],) for unit in units]


def test_what_the_declared_encoding_lacks_is_written_all_the_same() -> None:
    def greek(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [("ω",) for _ in units]

    assert b"<p>&#969;</p>" in read("a.html", b"<meta charset=latin1><p>a</p>").translated(greek)
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=%s\\n"\n\nmsgid "a"\nmsgstr ""\n'
    out = read("a.po", header % "ISO-8859-1").translated(greek).decode()
    assert "charset=UTF-8" in out
    assert 'msgstr "ω"' in out
    assert 'msgstr "ω"' in read("a.po", header % "CHARSET").translated(greek).decode()


def test_a_text_without_letters_is_its_own_translation_beside_its_source() -> None:
    po = 'msgid "100%"\nmsgstr ""\n'
    assert 'msgstr "100%"' in read("a.po", po).translated(unchanged).decode()
    xliff = '<xliff version="1.2"><trans-unit><source><g id="1">42</g> %</source></trans-unit></xliff>'
    out = read("a.xlf", xliff).translated(unchanged).decode()
    assert '<target state="needs-review-translation"><g id="1">42</g> %</target>' in out
    tmx = '<tmx><tu><tuv xml:lang="en"><seg>42</seg></tuv></tu></tmx>'
    assert '<tuv xml:lang="de"><seg>42</seg></tuv>' in read("a.tmx", tmx).translated(unchanged).decode()


def table(text: str, *columns: str, name: str = "a.csv") -> str:
    options = Options(name, ("en", "de"), columns=columns)
    return Document(text.encode(), FORMATS["csv"], options).translated(reversed_words).decode()


def test_named_columns_of_a_table_are_translated() -> None:
    text = 'id,text,note\n1,"ab, cd",keep\n2,ef,\n\n3,"g ""hi"""," x"\n'
    assert table(text, "Text") == 'id,text,note\n1,",ba dc",keep\n2,fe,\n\n3,"g ""ih"""," x"\n'
    assert table("ab;cd\r\nef;gh", "2") == "ab;dc\r\nef;hg"
    assert table('ab\t"cd\nef\tgh', "1", "2", name="a.tsv") == 'ba\tdc"\nfe\thg'
    assert table("t\nab,cd\n", "t") == "t\nba,cd\n"
    with raises_error(Error.MISSING_OPTION, "a.csv", "id, text, note"):
        table(text)
    with raises_error(Error.UNKNOWN_NAME, "a.csv"):
        table(text, "none")
