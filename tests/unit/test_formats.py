"""Formats: texts out, translations in, and every other character where it was."""

import io
import random
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin
from tests.errors import raises_error
from tests.steps import steps_of

from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Code, Item, Limit, Options, Unit, plain
from dragoman.formats.document import FORMATS, MIMETYPES, Document, format_of
from dragoman.formats.html import text_units
from dragoman.formats.html_pieces import scan

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
    assert out == data.replace("one", "eno").replace("two", "owt").replace("three", "eerht").encode()
    assert texts("a.xml", "<xliff><file><trans-unit><source>one</source></trans-unit></file></xliff>") == ["one"]
    with raises_error(Error.WRONG_SHAPE, "a.xml:2"):
        texts("a.xml", "<?xml version='1.0'?>\n<thing>one</thing>")
    cut = "<xliff><file><trans-unit><source>one two</source><seg-source><mrk mtype='seg' mid='1'>one</mrk> two</seg-source></trans-unit></file></xliff>"
    assert (
        b"<target state=\"needs-review-translation\"><mrk mtype='seg' mid='1'>eno</mrk> two</target></trans-unit>"
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


HARD_PIECES = ("<", "<a ", '<a b="', "<!--", "<b>", "<script>", "</", "<![CDATA[", "&", "<p>")


@pytest.mark.parametrize("piece", HARD_PIECES)
def test_html_of_any_kind_takes_linear_time(piece: str) -> None:
    def read(count: int) -> None:
        list(scan(piece * count))
        list(text_units(piece * count, OPTIONS))

    read(1)  # what is made once
    assert steps_of(lambda: read(2000)) < 2.2 * steps_of(lambda: read(1000))


@pytest.mark.timeout(120)  # it takes half a second; quadratic time would take many minutes
@pytest.mark.parametrize("piece", [piece for piece in HARD_PIECES if piece not in ("<b>", "<p>")])
def test_a_long_page_of_any_kind_is_searched_in_linear_time(piece: str) -> None:
    """Searches of expressions are no steps that could be counted."""
    text = piece * (500_000 // len(piece))
    assert list(scan(text))
    list(text_units(text, OPTIONS))


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
        "xl/sharedStrings.xml": "<sst><si><t>Name</t></si><si><t>a &quot;b&quot;</t></si><si><t>a word</t></si><si><r><t>two </t></r><r><rPr><b/></rPr><t>runs</t></r></si></sst>",
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Type="http://x/table" Target="tables/table1.xml"/></Relationships>',
        "xl/tables/table1.xml": '<table><tableColumns><tableColumn id="1" name="Name"/><tableColumn id=\'2\' name=\'a "b"\'/></tableColumns></table>',
    })  # fmt: skip
    document = read("a.xlsx", data)
    assert {plain(unit.items): bool(unit.kept) for unit in document.texts()} == {
        "Name": True,
        'a "b"': True,
        "a word": False,
        "two runs": False,
    }
    with zipfile.ZipFile(io.BytesIO(document.translated(reversed_words))) as file:
        assert b"<si><t>Name</t></si><si><t>a &quot;b&quot;</t></si><si><t>a drow</t></si>" in file.read(
            "xl/sharedStrings.xml"
        )


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

    for page, written in (  # a page that says nothing is windows-1252 for a browser
        ("<!doctype html><head><title>a</title>", '<!doctype html><head><meta charset="utf-8"><title>ω</title>'),
        ("<HTML><title>a</title>", '<HTML><meta charset="utf-8"><title>ω</title>'),
        ("<html xmlns='x'><head/><p>a", "<html xmlns='x'><head/><meta charset=\"utf-8\" /><p>ω"),
        ("<p>a</p>", "<p>ω</p>"),
        ("<head><title>a</title>ä", "<head><title>ω</title>ω"),
        ("\ufeff<head><title>a</title>", "\ufeff<head><title>ω</title>"),
    ):
        assert read("a.html", page.encode()).translated(greek).decode() == written
    assert b"<p>&#969;</p>" in read("a.html", b"<meta charset=latin1><p>a</p>").translated(greek)
    # For browsers latin1 is windows-1252, for readers of XML it is not: what differs is written so that both agree.
    dash = "<?xml version='1.0' encoding='latin1'?><html xmlns='x'><p>a\u00e4 &mdash; b</p></html>".encode("latin1")
    assert b"&#8212;" in read("a.html", dash).translated(reversed_words)
    assert b"\x97" in read("a.html", dash.replace(b"&mdash;", b"\x97")).translated(reversed_words)
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
    assert table('id, text\n1, "ab, cd"\n2, "ef" ,x\n3 ,gh', "text") == 'id, text\n1, ",ba dc"\n2, "fe" ,x\n3 ,hg'
    assert table("ab;cd\r\nef;gh", "2") == "ab;dc\r\nef;hg"
    assert table('ab\t"cd\nef\tgh', "1", "2", name="a.tsv") == 'ba\tdc"\nfe\thg'
    assert table("t\nab,cd\n", "t") == "t\nba,cd\n"
    with raises_error(Error.MISSING_OPTION, "a.csv", "id, text, note"):
        table(text)
    with raises_error(Error.UNKNOWN_NAME, "a.csv"):
        table(text, "none")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<ul><li translate=no>ab<li>cd</ul><p>ef", "<ul><li translate=no>ab<li>dc</ul><p>fe"),
        ("<div translate=no>ab <p translate=yes>cd</p> ef</div>gh", "<div translate=no>ab <p translate=yes>dc</p> ef</div>hg"),
        ("ab <code>cd <i translate=yes>ef</i></code> gh", "ba <code>cd <i translate=yes>fe</i></code> hg"),
        ("<img alt=ab src=x>cd", '<img alt="ba" src=x>dc'),
        ("<img alt=ab><i title='cd&quot;ef'>x</i>", "<img alt=\"ba\"><i title='fe&quot;dc'>x</i>"),
        ("<% if (a > b) { %><p>ab</p><% } %>cd", "<% if (a > b) { %><p>ba</p><% } %>dc"),
        ("ab <?php if ($a > 1) { echo '<p>x</p>'; } ?> cd", "ba <?php if ($a > 1) { echo '<p>x</p>'; } ?> dc"),
        ("<p>ab</p><?php echo 'cd';", "<p>ba</p><?php echo 'cd';"),
        ("<p {% if a > b %}class=x{% endif %}>ab {{ c > d }} ef", "<p {% if a > b %}class=x{% endif %}>ba {{ c > d }} fe"),
        ('<a title="ab {{ "c"|d }} ef" href="{% url "x" %}">gh', '<a title="ba {{ "c"|d }} fe" href="{% url "x" %}">hg'),
        ("<b>{{</b> ab <i>}}</i> {% cd <i>%}</i>", "<b>{{</b> ba <i>}}</i> %{ dc <i>}%</i>"),
        ("ab <kbd>Ctrl</kbd> <samp>cd</samp> ef", "ba <kbd>Ctrl</kbd> <samp>cd</samp> fe"),
        ("<a>ab</a><a>cd</a> | <button>ef</button>", "<a>ba</a><a>dc</a> | <button>fe</button>"),
        ("ab <select><option>cd<option label=gh>ef</select> ij", "ba <select><option>dc<option label=\"hg\">fe</select> ji"),
        ("<title>ab <b> cd</title><meta property=og:title content='ef gh'>", "<title>ba &gt;b&lt; dc</title><meta property=og:title content='fe hg'>"),
        ("<p>ab</p><textarea>cd<p>ef</textarea><p>gh", "<p>ba</p><textarea>cd<p>ef</textarea><p>hg"),
        ("<svg><title>ab</title><metadata>cd</metadata></svg> ef", "<svg><title>ba</title><metadata>cd</metadata></svg> fe"),
        ("<svg><text><tspan x=1>ab</tspan><tspan x=1>cd <tspan>ef</tspan></tspan></text></svg>",
         "<svg><text><tspan x=1>ba</tspan><tspan x=1>dc <tspan>fe</tspan></tspan></text></svg>"),
        ("<li><a href=http://x/>ab</a><li><a href=/>cd</a> ef", "<li><a href=http://x/>ba</a><li><a href=/>dc</a> fe"),
        ("<textarea placeholder=ab>cd</textarea><pre title=ef translate=no>gh</pre>", "<textarea placeholder=\"ba\">cd</textarea><pre title=ef translate=no>gh</pre>"),
        ("<template><p>ab</template>cd", "<template><p>ba</template>dc"),
        ("<!--[if mso]><td><v:rect alt='ab'><center>cd</center></td><![endif]-->ef", "<!--[if mso]><td><v:rect alt='ba'><center>dc</center></td><![endif]-->fe"),
        ("<!--[if !mso]><!-->ab<!--<![endif]--><!-- cd -->", "<!--[if !mso]><!-->ba<!--<![endif]--><!-- cd -->"),
        ("<ruby>ab<rp>(<rt>cd<rp>)</ruby> ef <ruby>gh<rt>ij</rt></ruby>", "<ruby>ba<rp><rt><rp></ruby> fe <ruby>hg<rt></rt></ruby>"),
        ("<?xml version='1.0'?><html xmlns='x'><p><![CDATA[ab < c]]></p></html>", "<?xml version='1.0'?><html xmlns='x'><p>ba &lt; c</p></html>"),
        ("<a><i>\n ab\n </i> </a>\n<i>\n<b> cd </b></i>", "<a><i> ba</i> </a><i><b>dc </b></i>"),
        ("ab &own.name; cd", "ba &own.name; dc"),
        ("<i>ab \n</i> \n<b> cd</b>\n ef", "<i>ba</i> <b>dc</b> fe"),
        ('<a href="x#{{{">{{{</a>\nab <a href="x#}}}">}}}</a>', '<a href="x#{{{">{{{</a> ba <a href="x#}}}">}}}</a>'),
        ("<p translate=no>ab <b translate=yes>cd</b> ef</p>", "<p translate=no>ab <b translate=yes>dc</b> ef</p>"),
        ("{{#if a}}ab{{else}}cd{{/if}} {{#each b}}ef{{/each}}", "{{#if a}}ba{{else}}dc{{/if}} {{#each b}}fe{{/each}}"),
        ("{% if a %}ab{% else %}cd{% endif %} <?php if ($a): ?>ef<?php else: ?>gh<?php endif ?>",
         "{% if a %}ba{% else %}dc{% endif %} <?php if ($a): ?>fe<?php else: ?>hg<?php endif ?>"),
        ("<% a.each do |b| %>ab<% end %><% if (a) { %>cd<% } else { %>ef<% } %>", "<% a.each do |b| %>ba<% end %><% if (a) { %>dc<% } else { %>fe<% } %>"),
        ("{{!-- ab {{cd}} <b>ef</b> --}}{{{ ab }}}gh{# <b>ij</b>\n #}", "{{!-- ab {{cd}} <b>ef</b> --}}{{{ ab }}}hg{# <b>ij</b>\n #}"),
        ("@if (f(a, (b)) <c; as d) { <b>ab</b> cd } @else{<p>ef</p>} @for (a of b; track a) { gh {{ a }} } @empty { {ij} }\n@let x = {y: 1}; kl",
         "@if (f(a, (b)) <c; as d) { <b>ba</b> dc } @else{<p>fe</p>} @for (a of b; track a) { hg {{ a }} } @empty { }ji{ }\n@let x = {y: 1}; lk"),
        ("<p>x@if.de @if ab } @media {cd}</p>", "<p>ed.fi@x fi@ ba } aidem@ }dc{</p>"),
        ("<p>{n, plural, =1 {ab <b>cd</b>} other {<i>{{n}}</i> ef}} gh</p>", "<p>{n, plural, =1 {ba <b>dc</b>} other {<i>{{n}}</i> fe}} hg</p>"),
        ("<p>ab <3 cd & ef</p>", "<p>ba 3&lt; dc &amp; fe</p>"),
        ("<!--[if mso]><p>ab <img alt='cd'> ef</p><![endif]-->", "<!--[if mso]><p>ba <img alt='dc'> fe</p><![endif]-->"),
        ("<p>ab <iframe srcdoc=\"&lt;p&gt;cd &amp;amp; &#39;ef &lt;b&gt;gh&lt;/b&gt;&lt;img alt='ij'&gt;\"></iframe> kl</p>",
         "<p>ba <iframe srcdoc=\"&lt;p&gt;dc &amp;amp; fe&#x27; &lt;b&gt;hg&lt;/b&gt;&lt;img alt='ji'&gt;\"></iframe> lk</p>"),
        ("<iframe translate=no srcdoc='<p>ab</p>'></iframe>", "<iframe translate=no srcdoc='<p>ab</p>'></iframe>"),
        ('<html lang=en><script type="application/ld+json">{"@type":"Question","inLanguage":"en-US","url":"ab cd","name":"ab",'
         '"author":{"name":"cd","@type":"Person","description":"e \\"f\\" &"},"text":"<p>gh</p><p>ij <b>kl</b> mn</p>"}</script>',
         '<html lang=de><script type="application/ld+json">{"@type":"Question","inLanguage":"de","url":"ab cd","name":"ba",'
         '"author":{"name":"cd","@type":"Person","description":"e \\"f\\" &"},"text":"<p>hg</p><p>ji <b>lk<\\/b> nm</p>"}</script>'),
        ("<p>ab <del>cd</del><ins>ef</ins> gh</p>", "<p>ba <del>dc</del> <ins>fe</ins> hg</p>"),
    ],
)  # fmt: skip
def test_a_page_is_read_as_browsers_read_it(before: str, after: str) -> None:
    assert read("a.html", before).translated(reversed_words).decode() == after


def test_what_was_struck_out_and_what_was_added_are_two_words() -> None:
    for page, expected in (
        ("<p>ab <del>cd</del><ins>ef</ins> gh</p>", "ab cd ef gh"),
        ("<p><s>12 ab</s><b>34 cd</b></p>", "12 ab 34 cd"),
        ("<p>ab<del>c</del><ins>d</ins>ef</p>", "abcdef"),
    ):
        assert texts("a.html", page) == [expected]
    same = "<p>ab <del>cd</del><ins>ef</ins> gh</p>"
    assert read("a.html", same).translated(unchanged).decode() == same


def test_names_in_data_for_search_engines_are_counted_as_left() -> None:
    page = '<script type="application/ld+json">{"@type":"Person","name":"ab","jobTitle":"cd"}</script>'
    assert kept("a.html", page) == {"ab": "names in JSON-LD"}
    broken = '<script type="application/ld+json">{ {{ab}} }</script>'
    assert kept("a.html", broken) == {"{ {{ab}} }": "JSON-LD that is no JSON"}


def test_elements_of_a_line_do_not_part_its_sentence() -> None:
    for code in ("<button>cd</button>", "<my-own>cd</my-own>", "<unknown>cd</unknown>", "<label>cd</label>"):
        [unit] = text_units(f"<p>ab {code} ef</p>", OPTIONS)
        assert plain(unit.items) == "ab cd ef"
    for code in ("<input>", "<picture><source><img></picture>", "<select><option>cd</select>", "<video>cd</video>",
                 "<script>cd</script>", "<svg><text>cd</text></svg>", "<rt>cd</rt>", "<iframe src=x></iframe>"):  # fmt: skip
        [unit] = text_units(f"<p>ab {code} ef</p>", OPTIONS)
        assert plain(unit.items) == "ab  ef"
    for page in ("<a>ab</a>\n<a>cd</a>", "<button>ab</button><button>cd</button>", "ab<input type=radio>cd"):
        items = [item for unit in text_units(page, OPTIONS) for item in (*unit.items, " ")]
        assert "ab" in items
        assert "cd" in items


def test_the_language_of_a_page_is_the_targets() -> None:
    page = '<html lang=en><p lang="en-GB">ab</p><p lang=fr>cd</p><code lang=en>ef</code></html>'
    out = read("a.html", page).translated(reversed_words).decode()
    assert out == '<html lang=de><p lang="de">ba</p><p lang=fr>dc</p><code lang=en>ef</code></html>'
    assert read("a.html", "<html><p>ab</html>").translated(reversed_words) == b"<html><p>ba</html>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1\n00:00:20,000 --> 00:00:24,000\nab cd\n2\n00:00:24,000 --> 00:00:27,000\nef", None),
        ("1\r00:00:20.0 --> 00:00:24.0\rab cd\r\r2\r0:00:24 --> 0:00:27\ref", None),
        ("1\n00:20 -> 00:24\n\nab cd.\n\n2\n00:24 --> 00:27\nef.\n\ngh\n", None),
        ("1\n00:00:01,000-->00:00:02,000\n-ab cd.\n– ef.\n", None),
        ("1\n00:00:01,000 --> 00:00:02,000\n<i>- ab\ncd.\n- ef.</i>\n", "1\n00:00:01,000 --> 00:00:02,000\n<i>- ba\ndc.\n- fe.</i>\n"),
        ("WEBVTT\n\nNOTE ab\n\nid\n00:01.000 --> 00:02.000 line:0\n<v Al>ab &amp; cd\n\nef\n", "WEBVTT\n\nNOTE ab\n\nid\n00:01.000 --> 00:02.000 line:0\n<v Al>ba &amp; dc\n\nef\n"),
        ("1\n00:00:01,000 --> 00:00:02,000\n{\\an8}♪ ab cd ♪\n", None),
        ("1\n00:00:01,000 --> 00:00:02,000\nab\\Ncd\n", None),
    ],
)  # fmt: skip
def test_cues_keep_their_form(before: str, after: str | None) -> None:
    name = "a.vtt" if before.startswith("WEBVTT") else "a.srt"
    swapped = (
        before.translate(str.maketrans("abcdefgh", "badcfehg")).replace("\\bm", "\\an").replace("{\\bn8}", "{\\an8}")
    )
    assert read(name, before).translated(reversed_letters_of_words).decode() == (after or swapped)


def reversed_letters_of_words(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
    """With marks where they were: reversed words of two letters."""
    return [
        unit.items
        if unit.kept
        else tuple(
            re.sub(r"\w\w", lambda word: word[0][::-1], item) if isinstance(item, str) else item for item in unit.items
        )
        for unit in units
    ]


def test_a_sentence_goes_over_cues_without_a_pause_or_an_end() -> None:
    def cues(*lines: tuple[str, str], join: bool = True, src: str = "en") -> list[str]:
        text = "".join(f"{n}\n{times}\n{said}\n\n" for n, (times, said) in enumerate(lines, 1))
        document = Document(text.encode(), FORMATS["srt"], Options("a.srt", (src, "de"), join_cues=join))
        return [plain(unit.items) for unit in document.texts()]

    one, soon, late = "00:00:01,000 --> 00:00:02,000", "00:00:02,100 --> 00:00:03,000", "00:10:00,000 --> 00:10:02,000"
    assert cues((one, "ab"), (soon, "cd")) == ["ab cd"]
    assert cues((one, "ab\r\ncd")) == cues((one, "ab\rcd")) == ["ab cd"]
    assert cues((one, "ab"), (soon, "cd"), join=False) == ["ab", "cd"]
    assert cues((one, "<i>ab</i>"), (soon, "<i>cd</i>")) == ["ab cd"]
    for first, second in (
        ("ab.", "cd"),
        ("ab", "- cd"),
        ("<i>ab</i>", "cd"),
        ("<v Al>ab", "<v Bo>cd"),
        ("ab <b>cd</b>", "ef"),
    ):
        assert len(cues((one, first), (soon, second))) == 2
    assert cues((one, "ab"), (soon, "3"), (soon.replace("02,1", "02,2"), "cd")) == ["ab", "cd"]
    assert cues((one, "ab"), (late, "cd")) == ["ab", "cd"]
    assert cues((one, "ab"), (one, "cd")) == ["ab", "cd"]


def test_lines_of_cues_are_not_longer_than_those_of_the_file() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"

    def longer(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [("ab cd ef " * 12,) for _ in units]

    out = read("a.srt", text.format("ab " * 10 + "\n" + "cd " * 10)).translated(longer).decode().split("\n")[2:]
    assert len(out) == 4
    assert max(map(len, out)) <= 42


def test_subtitles_without_times_are_refused() -> None:
    with raises_error(Error.WRONG_SHAPE, "a.srt"):
        texts("a.srt", "1\nat one o'clock\nab\n")


ASS = "[Events]\nFormat: Layer, Start, End, Style, Text\nDialogue: 0,0:00:01.00,0:00:02.00,Default,{}\n"
VTT = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n"
TTML = '<tt xmlns:tts="t"><body><p begin="7304400001t" dur="1.5s">{}</p></body></tt>'


@pytest.mark.parametrize(
    ("name", "frame", "before", "after"),
    [
        ("a.ass", ASS, "{\\an8}over\\Nthere, so", "{\\an8}revo\\N,ereht os"),
        ("a.ass", ASS, "- ab cd.\\N{\\i1}- ef!{\\i0}", "- ba .dc\\N{\\i1}- !fe{\\i0}"),
        ("a.ass", ASS, "{\\i1}{\\c&H00ff00&}ab. Cd.{\\c}{\\i0}", "{\\i1}{\\c&H00ff00&}.ba .dC{\\c}{\\i0}"),
        ("a.ass", ASS, "{\\an8\\b1\\t(2275,2276,\\alpha&HFF&)}AB CD\\NEFGHI", "{\\an8\\b1\\t(2275,2276,\\alpha&HFF&)}BA DC\\NIHGFE"),
        ("a.ass", ASS, "{\\pos(1,2)\\p1}m 0 0 l 9 9", None),
        ("a.ass", ASS, "{\\k20}ka{\\k30}ra", None),
        ("a.ssa", ASS, "ab {\\1c&HFF&}cd{\\r}\\nefgh", "ba {\\1c&HFF&}dc{\\r}\\nhgfe"),
        ("a.ttml", TTML, "ab <span>cd</span> ef,<br/>\n ghijklm", "ba <span>dc</span> ,fe<br/>mlkjihg"),
        ("a.dfxp", TTML, "abcdef<br />gh<span> i </span>j.", "fedcba<br />hg<span> i </span>.j"),
        ("a.xml", TTML, "<span>ab </span><br></br>\n<span>cd</span>", "<span>ba</span><br></br><span>dc</span>"),
        ("a.ttml", TTML, "&gt;&gt; caf&#xE9; &amp; ab", "&gt;&gt; éfac &amp; ba"),
        ("a.ttml", TTML, "- ab<br/>\n- cd", "- ba<br/>\n- dc"),
        ("a.vtt", VTT, "ab&nbsp;cd <ruby>ef<rt>x y</rt></ruby> &amp; g", "dc&nbsp;ba <ruby>fe<rt></rt></ruby> &amp; g"),
        ("a.vtt", VTT, "<v Al Bo>ab <b>cd</b> ef.</v>\n<v Cy>gh.</v>", "<v Al Bo>ba <b>dc</b> .fe</v>\n<v Cy>.hg</v>"),
        ("a.ttml", TTML, "<metadata><a>b c</a></metadata>ab cd", "<metadata><a>b c</a></metadata>ba dc"),
        ("a.vtt", VTT, "<i>ab\ncd</i>\n<i>- ef</i>", "<i>ba\ndc</i>\n<i>- fe</i>"),
    ],
)  # fmt: skip
def test_marks_of_subtitles_stay(name: str, frame: str, before: str, after: str | None) -> None:
    def filled(cue: str) -> bytes:
        return frame.replace("{}", cue).encode()

    out = read(name, filled(before)).translated(reversed_words)
    assert out == filled(after or before)


def test_times_inside_of_a_cue_stay_in_order() -> None:
    text = VTT.format("ab <00:01.200>cd <00:01.500><c>ef</c> <00:01.800>")
    out = read("a.vtt", text).translated(lambda units: [tuple(reversed(unit.items[:4])) for unit in units]).decode()
    assert "<00:01.200>cd <00:01.500>ab <00:01.800>" in out


def test_what_is_left_of_subtitles_is_counted() -> None:
    lines = ["Comment: 0,0:00:01.00,0:00:02.00,Default,ab", "Dialogue: 0,cd", "Dialogue: 0,1,2,Song,{\\k1}ef {\\k2}gh"]
    text = ASS.format("{\\i1}ij, kl") + "\n".join(lines)
    reasons = [unit.kept for unit in read("a.ass", text).texts()]
    assert reasons[0] == ""
    assert all(reasons[1:])
    assert len(set(reasons)) == 4
    for name, broken in (("a.ass", "ab"), ("a.sbv", "ab"), ("a.ttml", "<html><p>ab</p></html>")):
        with raises_error(Error.WRONG_SHAPE, name):
            texts(name, broken)
    between = "\n\nef\ngh\n\nNOTE ij\n\nname\n00:03.000 --> 00:04.000\nkl\n\nmn"
    units = list(read("a.vtt", VTT.replace("T\n", "T\n\nSTYLE\nab\n\ncd\n", 1).format("ab" + between)).texts())
    data = list(read("a.vtt", VTT.format('{\n"a": "bc",\n"d": [1]\n}\n\n00:03.000 --> 00:04.000\n[ef] gh')).texts())
    assert [(plain(unit.items)[-2:], bool(unit.kept)) for unit in data] == [(" }", True), ("gh", False)]
    assert [(plain(unit.items), bool(unit.kept)) for unit in units] == [
        ("cd", True), ("ab", False), ("ef gh", True), ("kl", False), ("mn", True)
    ]  # fmt: skip
    assert texts("a.ass", ASS.replace("Format:", "Format").format("ab")) == []  # of ten fields, as players have it


@pytest.mark.parametrize(
    ("before", "put", "after"),
    [
        ("a: ab cd  # ef", "gh: ij", 'a: "gh: ij"  # ef'),
        ("a: ab cd", 'say "x"', 'a: say "x"'),
        ("a: ab cd", '"x" is', "a: '\"x\" is'"),
        ("a: ab cd", "no", 'a: "no"'),
        ("a: ab cd", "- x\ty", 'a: "- x\\ty"'),
        ("a: {b: ab cd}", "x, y", 'a: {b: "x, y"}'),
        ("a: 'ab ''cd'''", "it's", "a: 'it''s'"),
        ("a: 'ab'", "x\ny", 'a: "x\\ny"'),
        ('a: "\\u00e9 ab"', "é", 'a: "\\u00e9"'),
        ("a: &x !!str ab cd\nb: *x", "ef", "a: &x !!str ef\nb: *x"),
        ("a: ab\n  cd\nb: 1", "ef", "a: ef\nb: 1"),
        ("? a\n: ab cd", "ef", "? a\n: ef"),
        ("a: &b://c d", "ef", "a: &b ef"),
        ("a: >\n  ab\tcd\n  ef\n", "gh ij", "a: >\n  gh ij\n"),
        ("a: >-\n  {n, plural,\n      one {ab}\n      other {cd}\n  }\nb: 1", "{n, plural, one {x} other {y}}",
         "a: >-\n  {n, plural, one {x} other {y}}\nb: 1"),
        ("a: |\n\n    ab {n, plural,\n     one {cd}\n    other {ef}}\n", "{n, plural, one {x}\nother {y}}",
         "a: |\n\n    {n, plural, one {x}\n    other {y}}\n"),
        ("a: ab''cd {b}", "d'e", "a: d''e"),
    ],
)  # fmt: skip
def test_values_of_yaml_keep_the_quotes_that_they_need(before: str, put: str, after: str) -> None:
    def translation(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [(put,) for _ in units]

    out = read("a.yml", before).translated(translation).decode()
    assert out == after
    assert put in [plain(unit.items) for unit in read("a.yml", out).texts()]


def test_files_of_rails_get_the_targets_locale_and_plural_forms() -> None:
    text = (
        'en: # the locale\n  yes: true\n  n:\n    one: ab\n    other: "%{count} cd"\n'
        '  f: {"one": ab, "other": cd}\n  t: |\n    ef\n    ```\n    gh ij\n    ```\n  d: "%d %b"\n  s: :day\n'
    )
    document = Document(text.encode(), FORMATS["yaml"], Options("en.yml", ("en", "pl")))
    out = document.translated(reversed_words).decode()
    assert out == (
        'pl: # the locale\n  yes: true\n  n:\n    one: ba\n    other: "}tnuoc{% dc"\n'
        '    few: "}tnuoc{% dc"\n    many: "}tnuoc{% dc"\n'
        '  f: {"one": ba, "other": dc, "few": dc, "many": dc}\n'
        '  t: |\n    fe\n    ```\n    gh ij\n    ```\n  d: "%d %b"\n  s: :day\n'
    )
    assert len({unit.kept for unit in document.texts() if unit.kept}) == 3
    document = Document(b"en:\n  a: ab cd\n", FORMATS["yaml"], Options("en.yml", ("en", "no")))
    assert document.translated(reversed_words) == b'"no":\n  a: ba dc\n'
    zero = "n:\n  zero: ab\n  one: cd\n  other: ef\n"
    assert read("a.yml", zero).translated(reversed_words).decode() == "n:\n  zero: ba\n  one: dc\n  other: fe\n"


def test_settings_in_yaml_are_left_and_broken_yaml_is_refused() -> None:
    for text in (
        "apiVersion: v1\na: ab cd\n",
        "jobs:\n  a:\n    runs-on: ab\n",
        "services:\n  a:\n    image: ab:cd\n",
    ):
        assert texts("a.yml", text) == []
        assert kept("a.yml", text)
    for text, line in (("a: 'x\nb: y", 2), ("a:\n\t- x\n", 2), ("{% if %}", 1)):
        with raises_error(Error.BAD_SYNTAX, f"a.yml:{line}"):
            texts("a.yml", text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ab cd\n-----\n\nef", "ba dc\n-----\n\nfe"),
        ("====\n ab\n====\n", "====\n ba\n====\n"),
        ("ab::\n\n  cd ef\n\ngh\n", "ba::\n\n  cd ef\n\nhg\n"),
        ("ab ::\n\n> cd\n> ef\n\ngh\n", "ba ::\n\n> cd\n> ef\n\nhg\n"),
        (".. ab cd\n   ef\n\n.. _ab: cd\n.. |ab| image:: cd\n\n__ ab\n", None),
        (".. |ab| replace:: cd ef\n", ".. |ab| replace:: dc fe\n"),
        (".. note:: ab\n   cd\n\n     ef\n", ".. note:: ba\n   dc\n\n     fe\n"),
        (".. tip::\n   :class: x\n\n   ab cd\n", ".. tip::\n   :class: x\n\n   ba dc\n"),
        (".. code:: ab\n\n   cd ef\n\ngh\n", ".. code:: ab\n\n   cd ef\n\nhg\n"),
        ("ab\n\n----\n\ncd\n\n-----\nef\n", "ba\n\n----\n\ndc\n\n-----\nfe\n"),
        ("ab `cd <ef>`__ cd_\n\n.. _cd: gh\n", "ba `dc <ef>`__ cd_\n\n.. _cd: gh\n"),
        ("ab :literal:`:cd:`ef`` gh `:ij:`kl`` mn", "ba :literal:`:cd:`ef`` hg `:ij:`kl`` nm"),
        (".. confval:: ab\n\n   cd ef\n   ~~~~~\n\n   gh\n", ".. confval:: ab\n\n   dc fe\n   ~~~~~\n\n   hg\n"),
        ("ab `<https://ef.gh/ij>`_ cd", "ba `<https://ef.gh/ij>`_ dc"),
        ("* x\n\n\tab\n\tcd\n\tef\n", "* x\n\n\tba dc fe\n"),
        (".. tip:: ab\n\tcd\n\n\tef\n", ".. tip:: ba\n\tdc\n\n\tfe\n"),
        (".. [#] .. versionadded:: 3.2 ab\n\ncd\n", ".. [#] .. versionadded:: 3.2 ba\n\ndc\n"),
        ("ab _`cd` _`ef gh`, cd_\n", "ba _`cd` _`fe hg`, cd_\n"),
        (".. ab::cd:: ef\n\n   gh\n", None),
        (".. unknown:: ab\n\n   cd\n\nef\n", ".. unknown:: ab\n\n   cd\n\nfe\n"),
        (".. versionadded:: 2.0 Ab cd\n", ".. versionadded:: 2.0 bA dc\n"),
        (".. py:function:: ab(cd)\n\n   ef\n", ".. py:function:: ab(cd)\n\n   fe\n"),
        (".. glossary::\n\n   ab\n      cd\n", ".. glossary::\n\n   ab\n      dc\n"),
        (".. toctree::\n   :caption: ab\n\n   cd/ef\n", ".. toctree::\n   :caption: ba\n\n   cd/ef\n"),
        (".. toctree::\n\n   ab cd <ef>\n   gh <ij>\n", ".. toctree::\n\n   ba dc <ef>\n   hg <ij>\n"),
        (
            ".. meta::\n   :description lang=en: ab\n   :keywords: cd\n   :robots: ef\n",
            ".. meta::\n   :description lang=de: ba\n   :keywords: dc\n   :robots: ef\n",
        ),
        ("* - ab\n  - cd\n* - ef\n  - gh\n", "* - ba\n  - dc\n* - fe\n  - hg\n"),
        ("1. ab\n\n   cd\n\n#. ef\n", "1. ba\n\n   dc\n\n#. fe\n"),
        ("| ab\n| cd\n", "| ba\n| dc\n"),
        (">>> ab\ncd\n\nef\n", ">>> ab\ncd\n\nfe\n"),
        ("-f, --ab=CD  ef\n-x           gh\n", "-f, --ab=CD  fe\n-x           hg\n"),
        (":type ab: cd\n:return: ef\n", ":type ab: cd\n:return: fe\n"),
        ("=== ===\nab  cd\n=== ===\nef  gh\n=== ===\n\nij\n", "=== ===\nba  dc\n=== ===\nfe  hg\n=== ===\n\nji\n"),
        ("ab *cd ef* **gh** ``ij kl`` |mn| [1]_ op_ end", "ba *dc fe* **hg** ``ij kl`` |mn| [1]_ op_ dne"),
        ("ab :ref:`cd <ef>` :doc:`gh` :sup:`ij` `kl`__", "ba :ref:`dc <ef>` :doc:`gh` :sup:`ji` `lk`__"),
        ("ab `cd`_.\n\n.. _cd: x\n", "ba `dc <cd_>`__.\n\n.. _cd: x\n"),
        ("ab `cd <ef>`_ gh `cd`_ end", "ba `dc <ef>`_ hg `dc <ef>`__ dne"),
        ("Ab\n==\n\ncd `Ab`_ ef", ".. _`ab`:\n\nbA\n==\n\ndc `bA <Ab_>`__ fe"),
        ("ab\\ **cd**\\ ef 2\\*3 gh\\_ x", "ba\\ **dc**\\ fe 3\\*2 _hg x"),
        ("ab\r\n  cd\r\n", "ba\r\n  dc\r\n"),
    ],
)
def test_restructured_text_is_read_as_docutils_reads_it(before: str, after: str | None) -> None:
    assert read("a.rst", before).translated(reversed_words).decode() == (before if after is None else after)


def test_marks_below_titles_are_as_long_as_these() -> None:
    def longer(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [("a longer title",) for _ in units]

    assert read("a.rst", "ab\n==\n").translated(longer) == b"a longer title\n==============\n"
    assert (
        read("a.rst", "====\n ab\n====\n").translated(longer)
        == b"================\n a longer title\n================\n"
    )
    wide = read("a.rst", "ab\n--\n").translated(lambda units: [("文件",) for _ in units])
    assert wide.decode() == "文件\n----\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("= Ab\nCd <e@f>\n\ngh\n", "= bA\nCd <e@f>\n\nhg\n"),
        (":ab: cd\n:description: ef gh\n", ":ab: cd\n:description: fe hg\n"),
        ("[source]\n.Ab\n----\ncd\n----\nef\n", "[source]\n.bA\n----\ncd\n----\nfe\n"),
        ("[,ruby]\nab\n\n[NOTE]\n====\ncd\n====\n", "[,ruby]\nab\n\n[NOTE]\n====\ndc\n====\n"),
        ("[source%unbreakable,bash]\n----\n|===|\n| ab |\n----\n", None),
        ("```ruby\nab\n```\n\n  cd\n\nef\n", "```ruby\nab\n```\n\n  cd\n\nfe\n"),
        ("* ab\n** cd\n+\nef\n. gh\n", "* ba\n** dc\n+\nfe\n. hg\n"),
        ("ab:: cd\nef::\n  gh\n", "ba:: dc\nfe::\n  hg\n"),
        ("NOTE: ab\n\n____\ncd\n____\n", "NOTE: ba\n\n____\ndc\n____\n"),
        ("|===\n|Ab: |CD_E|\n|Fg |h\n\n2+|ij\nl|kl\n|===\n", "|===\n|:bA |E_DC|\n|gF |h\n\n2+|ji\nl|kl\n|===\n"),
        ("|===\n|ab\n|cd\n\nimage::ef.png[alt=\"Gh\"]\n\nij\n|===\n", "|===\n|ba\n|dc\n\nimage::ef.png[alt=\"hG\"]\n\nji\n|===\n"),
        ("[format=csv]\n|===\nab,cd\n|===\n\n,===\nef\n,===\n", "[format=csv]\n|===\nba,dc\n|===\n\n,===\nfe\n,===\n"),
        ("ab *cd ef* __gh__i `jk lm` {no} end", "ba *dc fe* __hg__i `jk lm` {no} dne"),
        ("ab link:cd[ef^] https://gh.ij[kl] <<mn,op>> <<qr>> end", "ba link:cd[fe^] https://gh.ij[lk] <<mn,po>> <<qr>> dne"),
        ("image:ab.png[Cd ef] gh footnote:[ij kl].", "image:ab.png[dC fe] hg footnote:[ji lk]."),
        ("ab +\ncd\n", "ba +\ndc\n"),
        ("[verse]\nab\ncd\n", "[verse]\nba\ndc\n"),
        ("ab\n--\n\nifdef::cd[ef gh]\ninclude::ij.adoc[]\n", "ba\n--\n\nifdef::cd[fe hg]\ninclude::ij.adoc[]\n"),
        ("// ab\n////\ncd\n////\nef\n", "// ab\n////\ncd\n////\nfe\n"),
        ("ab {cd}[ef gh^] {ij}/kl[mn] op", "ba {cd}[fe hg^] {ij}/kl[nm] po"),
        ("ab(R) ((cd ef)) (((gh, \"ij (kl)\"))) mn", "ba(R) ((dc fe)) (((gh, \"ij (kl)\"))) nm"),
        ("[#ab]#_cd_ ef# gh *_ij_*", "[#ab]#_dc_ fe# hg *_ji_*"),
        ("Ab\n==\n\n'cd ef' `gh` ``ij kl'' m'n\n", "bA\n==\n\n'dc fe' `gh` ``ji lk'' n'm\n"),
        ("== Ab\n\ncd 'ef gh'\n", "== bA\n\ndc fe' 'hg\n"),
        ("ab cd +\n\nef", "ba dc +\n\nfe"),
        ("= ab(1)\n:cd ef: gh\n\n== Ij\n\nab - kl - mn\n\nop - qr\n", "= ab(1)\n:cd ef: gh\n\n== jI\n\nab - lk - nm\n\npo - rq\n"),
        ("ab(1)\n=====\n\nIj\n--\nab - kl\n", "ab(1)\n=====\n\njI\n--\nab - lk\n"),
        ("|===\n|ab\n// cd\n|ef\n|===\n", "|===\n|ba\n// cd\n|fe\n|===\n"),
        ("[[ab, cd ef]]\n== gh\n\n[[ij,kl]]mn <<ab>>", "[[ab, dc fe]]\n== hg\n\n[[ij,lk]]nm <<ab>>"),
        ("== Ab cd-ef\n\n<<_ab_cd_ef>> gh\n", "[[_ab_cd_ef]]\n== bA fe-dc\n\n<<_ab_cd_ef>> hg\n"),
        ("Ab\n--\n\nxref:_ab[cd]\n", "[[_ab]]\nbA\n--\n\nxref:_ab[dc]\n"),
        ('[ab,title="cd"]\n----\nef\n----\n', '[ab,title="dc"]\n----\nef\n----\n'),
        ("* ab\n+\n  cd\n\nef::\n  gh\n", "* ba\n+\n  cd\n\nfe::\n  hg\n"),
        ("> ab cd\n>\n> * ef\n> * gh\n\nij\n", "> ba dc\n>\n> * fe\n> * hg\n\nji\n"),
        ("---\nab: cd\n---\nef\n", "---\nab: cd\n---\nfe\n"),
        ("abfootnote:[cd] ef `footnote:[gh]`\n", "bafootnote:[dc] fe `footnote:[gh]`\n"),
    ],
)  # fmt: skip
def test_asciidoc_is_read_as_asciidoctor_reads_it(before: str, after: str | None) -> None:
    assert read("a.adoc", before).translated(reversed_words).decode() == (before if after is None else after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Ab `c`!\n\n[d](#ab-c)\n", '## <a id="ab-c"></a>bA `c`!\n\n[d](#ab-c)\n'),
        ("# Ab\n\n# Ab\n\n[d](#ab-1)\n", '# bA\n\n# <a id="ab-1"></a>bA\n\n[d](#ab-1)\n'),
        ("Äb\n==\n\n[d]\n\n[d]: #%C3%A4b\n", '<a id="äb"></a>bÄ\n==\n\n[d]\n\n[d]: #%C3%A4b\n'),
        ("# Ab {#ab}\n\n[d](#ab)\n", "# bA {#ab}\n\n[d](#ab)\n"),
        ('<a name="ab"></a>\n# Ab\n\n[d](#ab)\n', '<a name="ab"></a>\n# bA\n\n[d](#ab)\n'),
        ("# Ab\n\n[d](#other)\n", "# bA\n\n[d](#other)\n"),
    ],
)
def test_links_to_headings_that_are_translated_find_them(before: str, after: str) -> None:
    assert read("a.md", before).translated(reversed_words).decode() == after
    assert read("a.md", before).translated(unchanged).decode() == before


def test_no_translation_begins_a_block_of_asciidoc() -> None:
    text = "a" * 40 + " one two\n" + "b" * 40 + " three\n"
    for said, expected in (
        (f"{'c' * 48} - {'d' * 40}", f"{'c' * 48} - {'d' * 40}"),
        (f"{'c' * 46} + {'d' * 40}", f"{'c' * 46} + {'d' * 40}"),
        ("ab:: cd", "ab{two-colons} cd"),
        ("> ab", "{empty}> ab"),
        ("# ab", "{empty}# ab"),
        (".ab cd", "{empty}.ab cd"),
        ("[ab | cd]", "{empty}[ab | cd]"),
    ):
        assert read("a.adoc", text).translated(lambda units, said=said: [(said,)]).decode() == f"{expected}\n"
    moved = read("a.adoc", "ab *cd ef* gh").translated(
        lambda units: [(units[0].items[0], units[0].items[1], " cd ", units[0].items[3], "ef")]
    )
    assert moved == b"ab  *cd* ef"
    empty = read("a.adoc", "ab *cd* gh").translated(lambda units: [("ab ", units[0].items[1], units[0].items[3], "gh")])
    assert empty == b"ab gh"


def test_marks_beside_letters_are_written_twice() -> None:
    def joined(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [
            tuple(item.replace(" ", "") if isinstance(item, str) else item for item in unit.items) for unit in units
        ]

    assert read("a.adoc", "ab *cd* ef _gh_.").translated(joined) == b"ab**cd**ef__gh__."


DESKTOP = '<component type="desktop"><name alt="ab cd">ef <b>gh</b> ij</name><not_name>kl</not_name></component>'
RULES = """<its:rules xmlns:its="http://www.w3.org/2005/11/its" version="1.0">
<its:translateRule translate="no" selector="/component"/><its:translateRule translate="yes" selector="/component/name"/>
<its:withinTextRule withinText="yes" selector="//b | //i"/><its:translateRule translate="yes" selector="//name/@alt"/>
</its:rules>"""


def by_rules(text: str, path: Path, rules: str) -> Document:
    path.write_text(rules, encoding="utf-8")
    return Document(text.encode(), format_of(Path("a.xml"), text.encode()), Options("a.xml", ("en", "de"), its=path))


def test_xml_is_translated_by_rules(tmp_path: Path) -> None:
    for rules in (RULES, "translate: [//name, //name/@alt]\nwithin_text: //b\n"):
        document = by_rules(DESKTOP, tmp_path / "rules", rules)
        out = document.translated(reversed_words).decode()
        assert out == DESKTOP.replace("ab cd", "ba dc").replace("ef <b>gh</b> ij", "fe <b>hg</b> ji")
        assert [plain(unit.items) for unit in document.texts() if unit.kept] == ["kl"]
    spaced = '<a xmlns:d="u"><d:b>ab\ncd</d:b><c>ef</c></a>'
    rules = "namespaces: {x: u}\nleave: //c\nkeep_spaces: //x:b\n"
    assert [unit.items for unit in by_rules(spaced, tmp_path / "rules", rules).texts() if not unit.kept] == [
        ("ab\ncd",)
    ]
    own = DESKTOP.replace("<name", f"{RULES}<name")
    assert texts("a.xml", own) == ["ab cd", "ef gh ij"]


def test_rules_that_cannot_be_read_are_told_in_a_line(tmp_path: Path) -> None:
    for rules, code in (
        ("translate: ['//a[contains(@x, 1)]']\n", Error.BAD_SYNTAX),
        ("translate: [//x:a]\n", Error.BAD_SYNTAX),
        ("foo: [//a]\n", Error.UNKNOWN_NAME),
        ("<a/>", Error.WRONG_SHAPE),
        ("a: [\n", Error.BAD_SYNTAX),
    ):
        with raises_error(code, "rules"):
            list(by_rules(DESKTOP, tmp_path / "rules", rules).texts())
    with raises_error(Error.CANNOT_READ, "none"):
        list(Document(b"<a>b</a>", FORMATS["xml"], Options("a.xml", its=tmp_path / "none")).texts())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<article><title>ab</title><para>cd <emphasis>ef</emphasis> <code>gh</code> &amp; &ij;</para></article>",
         "<article><title>ba</title><para>dc <emphasis>fe</emphasis> <code>gh</code> &amp; &ij;</para></article>"),
        ("<chapter><para>ab<footnote><para>cd ef</para></footnote>.<screen>gh</screen> ij</para></chapter>",
         "<chapter><para>ba<footnote><para>dc fe</para></footnote>.<screen>gh</screen> ji</para></chapter>"),
        ("<section><para its:translate='no' xmlns:its='http://www.w3.org/2005/11/its'>ab</para><para>cd</para></section>",
         "<section><para its:translate='no' xmlns:its='http://www.w3.org/2005/11/its'>ab</para><para>dc</para></section>"),
        ("<article><literallayout>ab\n cd</literallayout><programlisting>ef</programlisting></article>",
         "<article><literallayout>ba\n dc</literallayout><programlisting>ef</programlisting></article>"),
        ('<map xml:lang="en"><topicref href="a" navtitle="ab cd"/></map>',
         '<map xml:lang="de"><topicref href="a" navtitle="ba dc"/></map>'),
        ("<task><cmd>ab <image href='a'><alt>cd</alt></image> <!-- x -->ef</cmd></task>",
         "<task><cmd>ba <image href='a'><alt>dc</alt></image> <!-- x -->fe</cmd></task>"),
    ],
)  # fmt: skip
def test_docbook_and_dita_need_no_rules(before: str, after: str) -> None:
    declared = f'<!DOCTYPE x PUBLIC "a" "b">\n{before}'
    assert read("a.xml", declared).translated(reversed_words_apart).decode() == f'<!DOCTYPE x PUBLIC "a" "b">\n{after}'


def kept(name: str, text: str) -> dict[str, str]:
    return {plain(unit.items): unit.kept for unit in read(name, text).texts()}


def test_halves_of_characters_are_put_together_or_left_alone() -> None:
    for name, text in (("a.json", '{"a": "ab \\ud83d\\ude00 cd"}'), ("a.properties", "a=ab \\uD83D\\uDE00 cd")):
        assert texts(name, text) == ["ab 😀 cd"]
        out = read(name, text).translated(reversed_words).decode()
        assert out.lower() == text.replace("ab", "ba").replace("cd", "dc").lower()
        half = text.replace("\\ude00", "").replace("\\uDE00", "")
        out = read(name, half).translated(reversed_words).decode()
        assert out == half.replace("ab", "ba").replace("cd", "dc")
    assert texts("a.xml", '<resources><string name="a">ab \\uD83D\\uDE00</string></resources>') == ["ab 😀"]
    half = '<resources><string name="a">ab \\uD83D cd</string></resources>'
    assert read("a.xml", half).translated(reversed_words).decode() == half.replace("ab", "ba").replace("cd", "dc")
    with raises_error(Error.BAD_SYNTAX, "a.xml:1"):
        texts("a.xml", '<resources><string name="a">ab &#55357;&#56832;</string></resources>')


def test_keys_of_json_that_are_left_alone_are_counted() -> None:
    text = (
        '{"a": {"language": "ab cd", "type": "string", "id": "x"}, "@a": {"description": "a note"}, "b": "img/a.png",'
        ' "@@locale": "en", "c": ["check-in", "a_b"]}'
    )
    reasons = kept("a.json", text)
    assert [said for said, reason in reasons.items() if not reason] == ["ab cd", "check-in"]
    assert len(set(reasons.values())) == 4
    assert '"@@locale": "de"' in read("a.json", text).translated(reversed_words).decode()
    settings = '{"name": "a", "description": "ab cd", "dependencies": {"b": "^1.0"}}'
    assert read("a.json", settings).translated(reversed_words) == settings.encode()
    assert len(kept("a.json", settings)) == 2
    browser = '{"a": {"message": "ab cd", "description": "a note", "placeholders": {"n": {"content": "$1", "example": "Al"}}}}'
    assert texts("a.json", browser) == ["ab cd"]


@pytest.mark.parametrize(
    ("value", "items", "put", "written"),
    [
        ("ab {0} cd", ["ab {0} cd"], "isn't {0}", "isn''t {0}"),
        ("isn''t ab", ["isn't ab"], "wasn't ab", "wasn''t ab"),
        ("isn't {0}", ["isn't {0}"], "wasn't {0}", "wasn't {0}"),
        ("isn't ab", ["isn't ab"], "wasn't ab", "wasn't ab"),
        ("ab '{'0'}' cd", ["ab ", "'{'", "0", "'}'", " cd"], None, "ab '{'0'}' cd"),
    ],
)
def test_apostrophes_of_message_formats(value: str, items: list[str], put: str | None, written: str) -> None:
    document = read("a.properties", f"a={value}\n")
    [unit] = document.texts()
    assert [item if isinstance(item, str) else item.raw for item in unit.items] == items
    assert unit.render([put] if put else unit.items) == written


def test_properties_of_latin_1_are_read_and_written_so() -> None:
    def greek(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [("üω",) for _ in units]

    assert read("a.properties", "a=Größe".encode("latin-1")).translated(greek) == "a=ü\\u03C9".encode("latin-1")


@pytest.mark.parametrize(
    ("name", "text", "bare", "written"),
    [
        ("a.json", '{"a": "&Save as"}', "Save as", '{"a": "&So wie"}'),
        ("a.properties", "a=E_xit now\n", "Exit now", "a=_So wie\n"),
        ("a.po", 'msgid "_Save as"\nmsgstr ""\n', "Save as", '#, fuzzy\nmsgid "_Save as"\nmsgstr "_So wie"\n'),
    ],
)
def test_accelerators_are_not_read_and_come_back(name: str, text: str, bare: str, written: str) -> None:
    def put(units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        return [("So wie",) for _ in units]

    assert texts(name, text) == [bare]
    assert read(name, text).translated(put).decode() == written


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ab cd\\u0020", "ba dc\\u0020"),
        ('"  ab cd  "', '"  ba dc  "'),
        ("&quot; ab&quot; cd", "&quot; ba&quot; dc"),
        ("ab\\n\\n cd\\t ef", "\\n\\nba \\tdc fe"),
        ("<![CDATA[ab <b>cd</b> &amp; ef]]>", "<![CDATA[ba <b>dc</b> &amp; fe]]>"),
        ("<![CDATA[<p>ab</p><p>cd</p>]]>", "<![CDATA[<p>ba</p><p>dc</p>]]>"),
        ("<![CDATA[ab & cd < ef]]>", "<![CDATA[ba & dc < fe]]>"),
        ("ab <![CDATA[<b>cd</b>]]>", "ba <![CDATA[<b>]]>dc<![CDATA[</b>]]>"),
        ("<![CDATA[ab]]> &amp; <![CDATA[cd & ef]]>", "ba &amp; dc &amp; fe"),
        ("<b>ab</b> <xliff:g id='a'>%1$s</xliff:g> it\\'s", "<b>ba</b> <xliff:g id='a'>%1$s</xliff:g> s\\'ti"),
        ("ab\\u0020\\u0020cd ef", "ba \\u0020dc fe"),
        ("ab@", "\\@ba"),
        ("@string/ab", "@string/ab"),
    ],
)
def test_escapes_of_android(before: str, after: str) -> None:
    text = '<resources xmlns:xliff="x"><string name="a">{}</string></resources>'
    out = read("a.xml", text.format(before)).translated(reversed_words).decode()
    assert out == text.format(after)


def test_plurals_have_the_forms_of_the_target_language() -> None:
    android = '<resources><plurals name="a">\n  <item quantity="one">ab</item>\n  <item quantity="other">%d cd</item>\n</plurals></resources>'
    document = Document(android.encode(), FORMATS["android"], Options("a.xml", ("en", "pl")))
    out = document.translated(reversed_words).decode()
    assert re.findall(r'quantity="(\w+)">([^<]*)<', out) == [
        ("one", "ba"), ("other", "d% dc"), ("few", "d% dc"), ("many", "d% dc")]  # fmt: skip
    po = 'msgid ""\nmsgstr "Language: en\\n"\n\nmsgid "ab"\nmsgid_plural "%d cd"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    document = Document(po.encode(), FORMATS["po"], Options("a.po", ("en", "pl")))
    out = document.translated(reversed_words).decode()
    assert re.findall(r'msgstr\[(\d)\] "(.*)"', out) == [("0", "ba"), ("1", "d% dc"), ("2", "d% dc")]
    assert '"Language: pl\\n"' in out
    assert "nplurals=3" in out
    document = Document(po.encode(), FORMATS["po"], Options("a.po", ("en", "ja")))
    out = document.translated(reversed_words).decode()
    assert re.findall(r'msgstr\[(\d)\] "(.*)"', out) == [("0", "d% dc")]
    stated = po.replace("Language: en", "Plural-Forms: nplurals=3; plural=n%3;")
    out = read("a.po", stated).translated(reversed_words).decode()
    assert re.findall(r'msgstr\[(\d)\] "(.*)"', out) == [("0", "d% dc"), ("1", "ba"), ("2", "d% dc")]
    assert "plural=n%3;" in out


def xliff(unit: str, frame: str = "") -> str:
    return f'<xliff version="1.2"><file source-language="en" target-language="de"{frame}><body>{unit}</body></file></xliff>'


SEG = "<mrk mtype='seg' mid='{}'>{}</mrk>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<source xml:space='preserve'>ab  cd\n ef</source>",
         '<source xml:space=\'preserve\'>ab  cd\n ef</source><target state="needs-review-translation" xml:space="preserve">'
         "ba  dc\n fe</target>"),
        (f"<source>1. ab</source><seg-source>{SEG.format(1, '1.')} {SEG.format(2, 'ab cd')}</seg-source>",
         f'... <target state="needs-review-translation">{SEG.format(1, "1.")} {SEG.format(2, "ba dc")}</target>'),
        (f"<source>x</source><seg-source>{SEG.format(1, 'ab')} {SEG.format(2, 'cd')}</seg-source><target>{SEG.format(1, 'By hand')}"
         " <mrk mtype='seg' mid='2'/></target>",
         f"... <target>{SEG.format(1, 'By hand')} {SEG.format(2, 'dc')}</target>"),
        (f"<source>x</source><seg-source><g id='1'>{SEG.format(1, 'ab')}</g>{SEG.format(2, 'cd')}</seg-source><target></target>",
         f"... <target state=\"needs-review-translation\"><g id='1'>{SEG.format(1, 'ba')}</g>{SEG.format(2, 'dc')}</target>"),
        ("<source>ab <mrk mtype='x-sdl-deleted'>cd</mrk><mrk mtype='x-sdl-added'>ef</mrk></source>",
         '... <target state="needs-review-translation">ba <mrk mtype=\'x-sdl-deleted\'>cd</mrk><mrk mtype=\'x-sdl-added\'>fe</mrk></target>'),
        ("<source>ab <sm id='1' translate='no'/>cd <g id='2'>ef</g><em startRef='1'/> gh</source>",
         "... <target state=\"needs-review-translation\">ba <sm id='1' translate='no'/>cd <g id='2'>ef</g><em startRef='1'/> hg</target>"),
        ("<source>ab <g id='2'>cd <sm id='1' translate='no'/>ef</g> gh<em startRef='1'/> ij <sm id='3'/>kl<em startRef='3'/></source>",
         "... <target state=\"needs-review-translation\">ba <g id='2'>dc <sm id='1' translate='no'/>ef</g> gh<em startRef='1'/> ji <sm id='3'/>lk<em startRef='3'/></target>"),
        ("<source>ab <sm id='1' translate='no'/>cd</source>",
         "... <target state=\"needs-review-translation\">ba <sm id='1' translate='no'/>cd</target>"),
        ("<source>ab</source><target state='new'>ab</target>",
         '... <target state="needs-review-translation">ba</target>'),
    ],
)  # fmt: skip
def test_xliff_of_other_tools(before: str, after: str) -> None:
    out = read("a.xlf", xliff(f"<trans-unit>{before}</trans-unit>")).translated(reversed_words_apart).decode()
    written = out.partition("<trans-unit>")[2].partition("</trans-unit>")[0]
    assert written == after.replace("... ", before.partition("<target")[0])


def reversed_words_apart(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    """Words reversed one by one, white space as it is."""
    return [
        None if unit.kept else tuple(
            re.sub(r"\w+", lambda word: word[0][::-1], item) if isinstance(item, str) else item for item in unit.items
        )
        for unit in units
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "limit"),
    [
        ("maxwidth='20' size-unit='char'", Limit(20)),
        ("maxwidth='20' size-unit='byte'", Limit(20, "bytes")),
        ("maxwidth='20'", None),  # pixels
        ("maxwidth='20' size-unit='glyph' maxbytes='30'", Limit(30, "bytes")),
        ("weblate-flags='read-only, max-length:20'", Limit(20)),
        ("xmlns:slr='s' slr:sizeRestriction='5,20'", Limit(20)),
        ("xmlns:slr='s' slr:sizeRestriction='5,*'", None),
    ],
)
def test_the_most_that_a_translation_may_have(attributes: str, limit: Limit | None) -> None:
    catalogue = '#, c-format, max-length:7\nmsgid "ab"\nmsgstr ""\n\nmsgid "cd"\nmsgstr ""\n'
    assert [one.limit for one in read("a.po", catalogue).texts()] == [Limit(7), None]
    for unit in (
        f"<trans-unit {attributes}>{{}}</trans-unit>",
        f"<group {attributes}><trans-unit>{{}}</trans-unit></group>",
    ):
        [text] = read("a.xlf", xliff(unit.format("<source>ab <g id='1'>cd</g></source>"))).texts()
        assert text.limit == limit


def test_states_and_languages_of_xliff() -> None:
    draft = f"<trans-unit><source>x</source><seg-source>{SEG.format(7, 'ab')}</seg-source><sdl:seg-defs><sdl:seg id='7' conf='X'/>"
    out = read("a.sdlxliff", xliff(draft + "</sdl:seg-defs></trans-unit>", " xmlns:sdl='s'")).translated(reversed_words)
    assert b'conf="Draft"' in out
    two = "".join(
        f'<file source-language="en"><trans-unit><source>{said}</source></trans-unit></file>' for said in ("ab", "cd")
    )
    assert read("a.xlf", f"<xliff>{two}</xliff>").translated(reversed_words).count(b'target-language="de"') == 2
    inherited = xliff("<group xml:space='preserve'><trans-unit><source>ab  cd</source></trans-unit></group>")
    [unit] = read("a.xlf", inherited).texts()
    assert unit.items == ("ab  cd",)
    assert b'<target state="needs-review-translation" xml:space="preserve">ba  dc<' in read(
        "a.xlf", inherited
    ).translated(reversed_words)
    approved = xliff("<trans-unit approved='yes'><source>ab</source><target>cd</target></trans-unit>")
    assert read("a.xlf", approved, everything=True).translated(reversed_words) == approved.encode()
    initial = '<xliff version="2.0" srcLang="en"><segment state="initial"><source>ab</source><target>ab</target></segment></xliff>'
    assert b'<segment state="translated"><source>ab</source><target>ba</target>' in read("a.xlf", initial).translated(
        reversed_words
    )


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("<trans-unit xmlns:m='m' m:locked='true'><source>ab</source></trans-unit>", "locked"),
        ("<trans-unit xmlns:m='m' m:locked='locked'><source>ab</source><target/></trans-unit>", "locked"),
        ("<trans-unit translate='no'><source>ab</source></trans-unit>", 'translate="no"'),
        (f"<trans-unit><source>x</source><seg-source>{SEG.format(1, 'ab')}</seg-source><target>{SEG.format(1, '')}</target>"
         "<sdl:seg-defs xmlns:sdl='s'><sdl:seg id='1' locked='true'/></sdl:seg-defs></trans-unit>", "locked"),
        ("<trans-unit><source><ph id='1'>x<sub>ab</sub></ph></source></trans-unit>", "texts inside of codes (<sub>)"),
    ],
)  # fmt: skip
def test_what_is_left_of_xliff_is_counted(before: str, reason: str) -> None:
    units = [unit for unit in read("a.mxliff", xliff(before)).texts() if unit.kept]
    assert [(plain(unit.items), unit.kept) for unit in units] == [("ab", reason)]


def test_tags_that_are_text_in_xliff_of_phrase_are_pairs() -> None:
    text = xliff(
        "<trans-unit><source>ab {b&gt;cd &amp; ef&lt;b} {1}</source></trans-unit>", " xmlns:m='http://memsource'"
    )
    [unit] = read("a.mxliff", text).texts()
    assert [item if isinstance(item, str) else item.kind for item in unit.items] == [
        "ab ", "open", "cd & ef", "close", " {1}"
    ]  # fmt: skip
    assert b">ba {b&gt;dc &amp; fe&lt;b} {1}</target>" in read("a.mxliff", text).translated(reversed_words_apart)


def test_another_target_language_of_an_xliff_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = '<xliff><file source-language="en" target-language="fr"><trans-unit><source>ab</source></trans-unit></file></xliff>'
    assert b'target-language="fr"' in read("a.xlf", text).translated(reversed_words)
    assert "'fr', not 'de'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("**ab** *cd* ~~ef~~ ***gh*** a_b_c", "**ba** *dc* ~~fe~~ ***hg*** c_b_a"),
        ("ab [cd *ef*](x \"yz\") ![gh](z) <http://ab.cd> `ef`", "ba [dc *fe*](x \"zy\") ![hg](z) <http://ab.cd> `ef`"),
        ("ab ![cd][] ![ef][cd] [gh]\n\n[cd]: x", "ba ![dc][cd] ![fe][cd] \\]hg\\[\n\n[cd]: x"),
        ("> ab  \n> cd\\\n> ef\n> gh", "> ba  \n> dc\\\n> fe hg"),
        ("ab\n\n[^1]: cd\n\n    ef", "ba\n\n[^1]: dc\n\n    fe"),
        ("ab\n\n:   cd\n\n    ef", "ba\n\n:   dc\n\n    fe"),
        ("!!! note \"ab\"\n    cd\n\n    ef\n", "!!! note \"ba\"\n    dc\n\n    fe\n"),
        ("!!! note\n    cd\n", "!!! note\n    dc\n"),
        (":::tip ab\ncd\n:::\n", ":::tip ba\ndc\n:::\n"),
        ("=== \"ab\"\n\n    cd", "=== \"ba\"\n\n    dc"),
        ("---\ntitle: ab cd\nlayout: ef\ndescription: 'it''s' # gh\n---\nij", "---\ntitle: ba dc\nlayout: ef\ndescription: \"s'ti\" # gh\n---\nji"),
        ("+++\ntitle = \"ab \\\"cd\\\"\"\ndraft = false\n+++\nef", "+++\ntitle = \"ba \\\"dc\\\"\"\ndraft = false\n+++\nfe"),
        ("ab {%% if a %%}cd{%% endif %%} {#id} {ref}`ef gh`".replace("%%", "%"), "ba {% if a %}dc{% endif %} {#id} {ref}`ef gh`"),
        ("{{% ab %}}\ncd\n{{% /ab %}}", "{{% ab %}}\ndc\n{{% /ab %}}"),
        ("<p align=center>\n  <b>ab</b> cd <code>ef</code>\n</p>\n\n> <div>gh</div>\n\nij", "<p align=center>\n  <b>ba</b> dc <code>ef</code>\n</p>\n\n> <div>hg</div>\n\nji"),
        ("- ab\n\n    <details>\n      <summary>cd</summary>\n\n- <p>ef</p>\n", "- ba\n\n    <details>\n      <summary>dc</summary>\n\n- <p>fe</p>\n"),
        ("> <div title='ab'>\n>\n> cd\n>\n> <p>ef\n> gh</p>\n", "> <div title='ba'>\n>\n> dc\n>\n> <p>fe hg</p>\n"),
        ("- > <p>ab <b\n  > id=x>cd</b></p>\n  > <p>ef</p>\n", "- > <p>ab <b\n  > id=x>cd</b></p>\n  > <p>fe</p>\n"),
        ("<details><summary>ab</summary>\n\ncd\n\n</details>", "<details><summary>ba</summary>\n\ndc\n\n</details>"),
        ("ab &amp; cd \\* ef", "ba & dc \\* fe"),
        ("$5 ab $6 cd", "5$ ba 6$ dc"),
        ('[ab]({{< ref "x.md" >}}) [cd]({% post_url a-b %} "ef")', '[ba]({{< ref "x.md" >}}) [dc]({% post_url a-b %} "fe")'),
        ("ab [cd]{.ef} `gh`{.py} [ij](x){ .kl } [@ab, 5] @fig:ab", "ba [dc]{.ef} `gh`{.py} [ji](x){ .kl } [@ab, 5] @fig:ab"),
        ("> [!note]- ab\n> cd ![[ef|5]] ^gh-1\n", "> [!note]- ba\n> dc ![[ef|5]] ^gh-1\n"),
        ("[[ab]] [[cd|ef]] ![[gh]] \\new{ij} ++ctrl+k++", "[[ab]] [[cd|fe]] ![[gh]] \\new{ij} ++ctrl+k++"),
        ("\\[ab\\] ab", "\\]ba\\[ ba"),
        ("{% highlight c %}\nab\n\ncd\n{% endhighlight %}\n\nef {{< highlight c >}}gh{{< /highlight >}}",
         "{% highlight c %}\nab\n\ncd\n{% endhighlight %}\n\nfe {{< highlight c >}}gh{{< /highlight >}}"),
        ("{% if a %}ab{% else %}cd{% endif %}", "{% if a %}ba{% else %}dc{% endif %}"),
        ("import A from 'ab';\n\nab\n\n--8<-- \"ab\"", "import A from 'ab';\n\nba\n\n--8<-- \"ab\""),
        (":::note[ab]\n\ncd\n\n:::", ":::note[ba]\n\ndc\n\n:::"),
        ("% ab\n% cd\n\n| ef\n| gh\n\n(@) ij\n#. ab", "% ba\n% dc\n\n| fe\n| hg\n\n(@) ji\n#. ba"),
        ("*[ab]: cd\n*[ef]: gh", "*[ab]: dc\n*[ef]: hg"),
        ("+----+\n| ab |\n+----+\n\n ab  cd\n---  --\n ef  gh\n\nij", "+----+\n| ab |\n+----+\n\n ab  cd\n---  --\n ef  gh\n\nji"),
        ("[ab]\n\n[ab]: x 'cd'\n", "[ba][ab]\n\n[ab]: x 'dc'\n"),
        ("title: ab\nauthors: cd\n\nef", "title: ba\nauthors: cd\n\nfe"),
        ("---\ndescription: >-\n  ab\n  cd\ntitle: ef\n---\ngh", "---\ndescription: >-\n  ba\n  dc\ntitle: fe\n---\nhg"),
        ("| ab \\| `c\\|d` | *ef* |\n|---|---|\n", "| ba \\| `c\\|d` | *fe* |\n|---|---|\n"),
        ("1. ab\n   cd\n\n   ef <span title='x'>gh</span>", "1. ba dc\n\n   fe <span title='x'>hg</span>"),
    ],
)  # fmt: skip
def test_markdown_is_read_as_markdown_it_reads_it(before: str, after: str) -> None:
    assert read("a.md", before).translated(reversed_words).decode() == after


MARKDOWN = [
    "ab_cd",
    "*ef*",
    "**gh**",
    "`ij`",
    "[kl](mn)",
    "[op]",
    "![qr](st)",
    "<b>uv</b>",
    "<br>",
    "  \n",
    "\\\n",
    "\n",
    "\n\n",
    "- wx",
    "> yz",
    "# ab",
    "\\* cd",
    "$ef$",
    "[^1]",
    "&amp;",
    " gh ",
    "\n\n[op]: ij\n\n",
    "\n\n[^1]: kl\n\n",
    "~~mn~~",
    "1. op",
    "{{ qr }}",
    "st*uv*wx",
    "<http://x.y>",
    "\n\n",
    "\\",
    "",
]


@pytest.mark.parametrize("seed", range(10))
def test_markdown_has_the_same_marks_before_and_after(seed: int) -> None:
    rng = random.Random(seed)
    parser = markdown_parser()
    for _ in range(30):
        text = "".join(rng.choice(MARKDOWN) + rng.choice(["", " "]) for _ in range(rng.randrange(15)))
        out = read("a.md", text).translated(reversed_words_apart).decode()
        before, after = (
            re.findall(r"<(?!http)[^>]*>", re.sub(r"(?<=\"#fn)[^\"]*|(?<=alt=\")[^\"]*", "", parser.render(one)))
            for one in (text, out)
        )
        assert before == after, (text, out)


def markdown_parser() -> MarkdownIt:
    """A parser as it is, without our places."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return parser.use(footnote_plugin, inline=False, move_to_end=False, always_match_refs=True).use(deflist_plugin)


def test_subtitles_are_read_as_players_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    """SubtitleEdit and players take what is not UTF-8 for the encoding that Windows has for the language."""
    times = b"1\n00:00:01,000 --> 00:00:02,000\n"
    document = Document(times + "Größe".encode("cp1252"), FORMATS["srt"], Options("a.srt", ("de", "en")))
    assert document.translated(lambda units: [("größer",) for _ in units]) == times + "größer".encode("cp1252")
    assert "a.srt: not UTF-8: read as windows-1252" in capsys.readouterr().err
    assert (
        document.translated(lambda units: [("больше",) for _ in units]) == b"\xef\xbb\xbf" + times + "больше".encode()
    )
    russian = Document(times + "больше".encode("cp1251"), FORMATS["srt"], Options("a.srt", ("ru", "en")))
    assert [unit.items for unit in russian.texts()] == [("больше",)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Ein^[Eine *kurze* Note.] Wort.\n", "EIN^[EINE *KURZE* NOTE.] WORT.\n"),
        ("| Ein^[ja] |\n|---|\n| b |\n", "| EIN^[JA] |\n|---|\n| B |\n"),
        ('=== "Eins"\n\n    Text hier.\n\n    - ja\n', '=== "EINS"\n\n    TEXT HIER.\n\n    - JA\n'),
        ('```\n=== "Eins"\n```\n', '```\n=== "Eins"\n```\n'),
        ("<div title='Ein'><img alt=\"Bild\"></div>\n", "<div title='EIN'><img alt=\"BILD\"></div>\n"),
        ('Da <span title="Tipp">ja</span>.\n', 'DA <span title="TIPP">JA</span>.\n'),
    ],
)
def test_notes_tabs_and_attributes_in_markdown(source: str, expected: str) -> None:
    def shouted(units: Sequence[Unit]) -> Iterator[tuple[Item, ...]]:
        for unit in units:
            yield tuple(item if isinstance(item, Code) else item.upper() for item in unit.items)

    assert Document(source.encode(), FORMATS["md"], OPTIONS).translated(shouted).decode() == expected


def test_mdx_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.mdx").write_text("import A from './a'\n\n# Titel\n")
    with raises_error(Error.UNKNOWN_FORMAT, "a.mdx", "MDX"):
        Document.load(tmp_path / "a.mdx")
