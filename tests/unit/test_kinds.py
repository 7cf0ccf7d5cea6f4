"""What can stand in a text of any format: one table of how each format writes it, and what must become of it.

A new format gets every test of this page by its row in `ROWS`.
"""

import codecs
import html
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman.formats.base import Options
from dragoman.formats.document import FORMATS, MIMETYPES, Document
from dragoman.inference.translation import Translation
from dragoman.pipeline import document as module
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.splitter import Splitter
from dragoman.text.placeholders import spans
from dragoman.text.words import words

PLACE = "◊"
"""The place of a text in the file of a row."""
CODE = "¤"
"""A code in a text as it is shown."""


@dataclass(frozen=True)
class Row:
    """How a format writes what can stand in a text. An empty field: it has no such thing."""

    file: str
    """A file with one text, which stands at `PLACE`."""
    codes: tuple[str, ...] = ()
    """What stands alone in a text and is seen: a picture, a field, a note."""
    breaks: tuple[str, ...] = ()
    """Ends of lines and of paragraphs."""
    tabs: tuple[str, ...] = ()
    spaces: tuple[str, ...] = ()
    """A blank that counts as it is, where the format would drop one."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Marks of formatting: before and after the words."""
    protected: tuple[str, ...] = ()
    """A placeholder that the format itself marks as one."""
    words: Callable[[str], str] = str
    """Writes words."""
    reads: Callable[[str], str] = str
    """Reads words, and drops what else may stand around them."""
    part: str = ""
    """The part of a package that `file` is."""
    package: dict[str, str] = field(default_factory=dict)
    """The other parts."""
    target: tuple[str, str] = ("", "")
    """What stands before the translation and after it, where it stands beside its source."""
    options: dict[str, Any] = field(default_factory=dict)


def runs(prefix: str) -> Callable[[str], str]:
    space = ' xml:space="preserve"' if prefix == "w" else ""

    def written(text: str) -> str:
        return f"<{prefix}:r><{prefix}:t{space}>{html.escape(text, quote=False)}</{prefix}:t></{prefix}:r>"

    return written


def without_tags(text: str) -> str:
    return html.unescape(re.sub(r"<[^<>]*>", "", text))


def escaped(text: str) -> str:
    return html.escape(text, quote=False)


def c_escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def c_read(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OFFICE = "application/vnd.openxmlformats-officedocument."
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:m="m" xmlns:r="r"'
_A = 'xmlns:p="p" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


def office(main: str, kind: str, **more: tuple[str, str]) -> dict[str, str]:
    """The parts that say which part is what. `more`: media type and relationship of parts, by name."""
    form = '<Override PartName="/{}" ContentType="' + OFFICE + '{}+xml"/>'
    types = "".join(form.format(name, type) for name, (type, _) in more.items())
    folder, _, name = main.rpartition("/")
    inner = "".join(
        f'<Relationship Id="r{number}" Type="{RELS}/{relation}" Target="{part.removeprefix(folder + "/")}"/>'
        for number, (part, (_, relation)) in enumerate(more.items())
    )
    space = "http://schemas.openxmlformats.org/package/2006"
    return {
        "[Content_Types].xml": f'<Types xmlns="{space}/content-types"><Default Extension="xml" '
        f'ContentType="application/xml"/>{form.format(main, kind + ".main")}{types}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{space}/relationships"><Relationship Id="r" '
        f'Type="{RELS}/officeDocument" Target="{main}"/></Relationships>',
        f"{folder}/_rels/{name}.rels": f'<Relationships xmlns="{space}/relationships">{inner}</Relationships>',
    }


def field_of_word(code: str) -> str:
    steps = [f'<w:fldChar w:fldCharType="{step}"/>' for step in ("begin", "separate", "end")]
    inner = (steps[0], f"<w:instrText> {code} </w:instrText>", steps[1], "<w:t>7</w:t>", steps[2])
    return "".join(f"<w:r>{part}</w:r>" for part in inner)


HTML = Row(
    "<p>◊</p>",
    codes=('<img src="a.png">', '<i class="icon"></i>', "<a id=x><span></span></a>", "<input>", "<svg><path/></svg>"),
    breaks=("<br>", "<br/>", "<hr>", "<br>\n<br>"),
    spaces=("&nbsp;",),
    pairs=(("<b>", "</b>"), ('<a href="x">', "</a>"), ("<span>", "</span>")),
    protected=("<code>x y</code>",),
    words=escaped,
    reads=without_tags,
)
OPENDOCUMENT = Row(
    '<office:body xmlns:text="t" xmlns:draw="d" xmlns:office="o"><text:p>◊</text:p></office:body>',
    codes=("<text:page-number>7</text:page-number>", '<draw:frame draw:name="a"/>', '<text:bookmark text:name="a"/>'),
    breaks=("<text:line-break/>",),
    tabs=("<text:tab/>", '<text:s text:c="9"/>'),
    spaces=("<text:s/>",),
    pairs=(
        ('<text:span text:style-name="T1">', "</text:span>"),
        ('<text:a xlink:href="x" xmlns:xlink="l">', "</text:a>"),
    ),
    words=escaped,
    reads=without_tags,
    part="content.xml",
)
XLIFF = Row(
    '<xliff version="1.2"><file source-language="en"><body><trans-unit id="1"><source>◊</source></trans-unit></body>'
    "</file></xliff>",
    codes=('<x id="1"/>', '<ph id="1">&lt;img/&gt;</ph>', '<g id="1"/>', '<it id="1" pos="open">&lt;i&gt;</it>'),
    breaks=('<x id="1" ctype="lb"/>', '<ph id="1">&lt;br/&gt;</ph>', '<x id="1" equiv-text="&lt;br&gt;"/>'),
    tabs=('<x id="1" ctype="x-tab"/>', '<ph id="1">\\t</ph>'),
    pairs=(
        ('<g id="5">', "</g>"),
        ('<bpt id="6">&lt;b></bpt>', '<ept id="6">&lt;/b></ept>'),
        ('<ph id="7">&lt;b></ph>', '<ph id="8">&lt;/b></ph>'),
        ('<x id="START_LINK"/>', '<x id="CLOSE_LINK"/>'),
        ('<x id="9" equiv-text="&lt;a href=&quot;x&quot;>"/>', '<x id="10" equiv-text="&lt;/a>"/>'),
    ),
    protected=('<mrk mtype="protected">x y</mrk>',),
    words=escaped,
    reads=without_tags,
    target=('<target state="needs-review-translation">', "</target>"),
)
PLIST = '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "x.dtd"><plist version="1.0"><dict>'
TAGS = (("<b>", "</b>"), ("<a href='x'>", "</a>"), ("<0>", "</0>"))
ROWS: dict[str, Row] = {
    "txt": Row("◊\n", breaks=("\n", "\r\n", "<br>"), tabs=("\t",), pairs=TAGS),
    "md": Row(
        "◊\n",
        codes=('<img src="a.png">', "![](a.png)", "[^1]", "^[7]", "{{< x y >}}"),
        breaks=("  \n", "\\\n", "<br>"),
        pairs=(("**", "**"), ("[", "](x)"), ("<b>", "</b>")),
        protected=("`x y`",),
        spaces=("&nbsp;",),
        reads=lambda text: html.unescape(re.sub(r"\\(\W)", r"\1", text)),
    ),
    "rest": Row(
        "◊\n",
        codes=("[1]_",),
        breaks=("\n\n", "\n\n- "),
        pairs=(("**", "**"), ("*", "*"), (":guilabel:`", "`"), ("`", " <x>`_")),
        protected=("``x y``", ":class:`x y`", "|x y|"),
        words=lambda text: re.sub(r"[\\`*]", r"\\\g<0>", text),
        reads=lambda text: re.sub(r"\\(\W)", r"\1", text.replace("\\ ", "")),
    ),
    "asciidoc": Row(
        "◊\n",
        codes=("image:a.png[]", "((( x )))", "footnote:[7]"),
        breaks=(" +\n", "\n\n", "\n\n* "),
        pairs=(("**", "**"), ("__", "__"), ("link:x[", "]"), ("<<x,", ">>")),
        protected=("`x y`", "kbd:[x y]", "+x y+"),
        words=lambda text: text,
        reads=lambda text: text.replace("\\", ""),
    ),
    "html": HTML,
    "srt": Row(
        "1\n00:00:01,000 --> 00:00:02,000\n◊\n",
        codes=("{\\an8}",),
        pairs=(("<i>", "</i>"), ("{\\i1}", "{\\i0}")),
        reads=lambda text: re.sub(r"\s", " ", text),
    ),
    "vtt": Row(
        "WEBVTT\n\n00:01.000 --> 00:02.000\n◊\n",
        codes=("<00:01.500>",),
        pairs=(("<i>", "</i>"), ("<c.red>", "</c>")),
        reads=lambda text: re.sub(r"\s", " ", text),
    ),
    "sbv": Row(
        "0:00:01.000,0:00:02.000\n◊\n",
        pairs=(("<i>", "</i>"),),
        reads=lambda text: re.sub(r"\s", " ", text),
    ),
    "ass": Row(
        "[Events]\nFormat: Layer, Start, End, Style, Text\nDialogue: 0,0:00:01.00,0:00:02.00,Default,◊\n",
        codes=("{\\an8}", "{\\p1}m 0 0 l 9 9{\\p0}", "{a note}"),
        spaces=("\\h",),
        pairs=(("{\\i1}", "{\\i0}"), ("{\\i1\\c&HFF00FF&}", "{\\c\\i0}")),
        reads=lambda text: text.replace("\\N", " ").replace("\\h", "\u00a0"),
    ),
    "ttml": Row(
        '<tt xmlns:tts="t"><body><div><p begin="1s" end="2s">◊</p></div></body></tt>',
        codes=('<metadata a="b"/>', "<!-- x -->"),
        pairs=(('<span tts:fontStyle="italic">', "</span>"),),
        words=escaped,
        reads=lambda text: html.unescape(re.sub(r"<br/>", " ", text)),
    ),
    "docx": Row(
        f"<w:document {_W}><w:body><w:p>◊</w:p></w:body></w:document>",
        codes=(
            field_of_word("PAGE"),
            '<w:fldSimple w:instr=" NUMPAGES "><w:r><w:t>7</w:t></w:r></w:fldSimple>',
            '<w:r><w:sym w:font="Wingdings" w:char="F04A"/></w:r>',
            "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>",
            "<w:r><w:drawing/></w:r>",
            '<w:r><w:footnoteReference w:id="1"/></w:r>',
            '<w:hyperlink r:id="r"><w:r><w:drawing/></w:r></w:hyperlink>',
            "<mc:AlternateContent xmlns:mc='c'><mc:Choice><w:r><w:drawing/></w:r></mc:Choice></mc:AlternateContent>",
            "<w:sdt><w:sdtPr/><w:sdtContent><w:r><w:drawing/></w:r></w:sdtContent></w:sdt>",
        ),
        breaks=("<w:r><w:br/></w:r>", "<w:r><w:cr/></w:r>", '<w:r><w:br w:type="page"/></w:r>'),
        tabs=("<w:r><w:tab/></w:r>", '<w:r><w:ptab w:alignment="right"/></w:r>'),
        pairs=(('<w:hyperlink r:id="r">', "</w:hyperlink>"),),
        words=runs("w"),
        reads=without_tags,
        part="word/document.xml",
        package=office("word/document.xml", "wordprocessingml.document"),
    ),
    "pptx": Row(
        f"<p:sld {_A}><p:txBody><a:p>◊</a:p></p:txBody></p:sld>",
        codes=('<a:fld id="1" type="slidenum"><a:rPr/><a:t>7</a:t></a:fld>',),
        breaks=("<a:br/>", "<a:br><a:rPr/></a:br>", "<a:r><a:t>_x000B_</a:t></a:r>"),
        words=runs("a"),
        reads=without_tags,
        part="ppt/slides/slide1.xml",
        package={
            **office(
                "ppt/presentation.xml",
                "presentationml.presentation",
                **{"ppt/slides/slide1.xml": ("presentationml.slide", "slide")},
            ),
            "ppt/presentation.xml": "<p:presentation xmlns:p='p'/>",
        },
    ),
    "xlsx": Row(
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<si><t xml:space="preserve">◊</t></si></sst>',
        breaks=("\n", "\n\n", "_x000D_\n"),
        tabs=("\t", "_x0009_"),
        words=escaped,
        reads=lambda text: re.sub(r"_x([0-9A-F]{4})_", lambda match: chr(int(match[1], 16)), without_tags(text)),
        part="xl/sharedStrings.xml",
        package={
            **office(
                "xl/workbook.xml",
                "spreadsheetml.sheet",
                **{
                    "xl/sharedStrings.xml": ("spreadsheetml.sharedStrings", "sharedStrings"),
                    "xl/worksheets/sheet1.xml": ("spreadsheetml.worksheet", "worksheet"),
                },
            ),
            "xl/workbook.xml": f'<workbook xmlns:r="{RELS}"><sheets><sheet name="S" sheetId="1" r:id="r2"/></sheets>'
            "</workbook>",
            "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row>'
            "</sheetData></worksheet>",
        },
    ),
    **{
        kind: Row(**{**vars(OPENDOCUMENT), "package": {"mimetype": type}})
        for kind, type in MIMETYPES.items()
        if kind != "epub"
    },
    "fodt": Row(**{**vars(OPENDOCUMENT), "part": ""}),
    "epub": Row(
        **{
            **vars(HTML),
            "file": '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>◊</p></body></html>',
            "codes": ('<img src="a.png"/>', '<i class="icon"></i>'),
            "breaks": ("<br/>",),
            "spaces": ("&#160;",),
            "part": "OPS/a.xhtml",
            "package": {
                "mimetype": MIMETYPES["epub"],
                "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/a.opf" '
                'media-type="application/oebps-package+xml"/></rootfiles></container>',
                "OPS/a.opf": '<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
                '</manifest><spine><itemref idref="a"/></spine></package>',
            },
        }
    ),
    "po": Row(
        'msgid "◊"\nmsgstr ""\n',
        breaks=("<br/>", "</p><p>"),
        tabs=("\\t",),
        pairs=TAGS,
        words=c_escaped,
        reads=c_read,
        target=('msgstr "', '"\n'),
    ),
    "xliff": XLIFF,
    "tmx": Row(
        '<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>◊</seg></tuv></tu></body></tmx>',
        codes=('<ph x="1">&lt;img/&gt;</ph>',),
        breaks=("<ph x='1'>&lt;br/&gt;</ph>",),
        pairs=(('<bpt i="1">&lt;b></bpt>', '<ept i="1">&lt;/b></ept>'),),
        words=escaped,
        reads=without_tags,
        target=('<tuv xml:lang="de"><seg>', "</seg>"),
    ),
    "json": Row(
        '{"a": "◊"}',
        breaks=("\\n", "\\r\\n", "<br>", "</p><p>", " | "),
        tabs=("\\t",),
        spaces=("  ", "\\u00a0"),
        pairs=TAGS,
        words=c_escaped,
        reads=lambda text: c_read(text.replace("\\u00a0", "\u00a0")),
    ),
    "yaml": Row(
        'a: "◊"\n',
        breaks=("\\n", "\\r\\n", "<br>", "</p><p>", " | "),
        tabs=("\\t",),
        spaces=("  ", "\\u00a0"),
        pairs=TAGS,
        words=c_escaped,
        reads=lambda text: c_read(text.replace("\\u00a0", "\u00a0")),
    ),
    "properties": Row(
        "a=◊\n",
        breaks=("\\n", "<br>"),
        tabs=("\\t",),
        spaces=("  ",),
        pairs=TAGS,
        words=lambda text: text.replace("\\", "\\\\"),
        reads=c_read,
    ),
    "android": Row(
        '<resources><string name="a">◊</string></resources>',
        breaks=("\\n", "\\n\\n"),
        tabs=("\\t",),
        spaces=("\\u0020",),
        pairs=(("<b>", "</b>"), ("<i>", "</i>")),
        protected=('<xliff:g xmlns:xliff="x" id="a">x y</xliff:g>',),
        words=lambda text: escaped(re.sub(r"""(['"\\])""", r"\\\1", text)),
        reads=lambda text: html.unescape(c_read(text.replace("\\u0020", " "))),
    ),
    "strings": Row(
        '"a" = "◊";\n',
        breaks=("\\n", "\\n\\n", "\n", "<br>"),
        tabs=("\\t", "\t"),
        spaces=("  ",),
        pairs=TAGS,
        words=c_escaped,
        reads=c_read,
    ),
    "stringsdict": Row(
        f"{PLIST}<key>a</key><string>◊</string></dict></plist>",
        breaks=("\n", "&lt;br&gt;"),
        tabs=("\t",),
        spaces=("  ",),
        pairs=(("&lt;b&gt;", "&lt;/b&gt;"),),
        words=escaped,
        reads=without_tags,
    ),
    "xcstrings": Row(
        '{"sourceLanguage":"en","strings":{"◊":{}},"version":"1.0"}',
        breaks=("\\n", "<br>"),
        tabs=("\\t",),
        spaces=("  ",),
        pairs=TAGS,
        words=c_escaped,
        reads=c_read,
        target=('"state":"needs_review","value":"', '"}}}}'),
    ),
    "resx": Row(
        '<root><data name="a" xml:space="preserve"><value>◊</value></data></root>',
        breaks=("\n", "&#13;\n", "&lt;br&gt;"),
        tabs=("\t",),
        spaces=("  ",),
        pairs=(("&lt;b&gt;", "&lt;/b&gt;"),),
        words=escaped,
        reads=without_tags,
    ),
    "ts": Row(
        "<TS><context><message><source>◊</source></message></context></TS>",
        codes=('<byte value="x1b"/>',),
        breaks=("\n", "&lt;br&gt;", "&lt;/p&gt;&lt;p&gt;"),
        tabs=("\t",),
        spaces=("  ",),
        pairs=(("&lt;b&gt;", "&lt;/b&gt;"),),
        words=escaped,
        reads=without_tags,
        target=('<translation type="unfinished">', "</translation>"),
    ),
    "xml": Row(
        "<article><para>◊</para></article>",
        codes=('<inlinemediaobject id="a"/>', "<footnote><para>7</para></footnote>", "<?pi x?>"),
        pairs=(("<emphasis>", "</emphasis>"), ('<link href="x">', "</link>")),
        protected=("<literal>x y</literal>",),
        spaces=("&#160;",),
        words=escaped,
        reads=without_tags,
    ),
    "csv": Row(
        'a,text\n1,"◊"\n',
        breaks=("\n", "<br>"),
        tabs=("\t",),
        pairs=(("<b>", "</b>"),),
        words=lambda text: text.replace('"', '""'),
        reads=lambda text: text.replace('""', '"'),
        options={"columns": ("text",)},
    ),
}  # fmt: skip
VARIANTS: dict[str, Row] = {
    **ROWS,
    "yaml of lines": Row("a: |-\n  ◊\n", breaks=("\n  ", "<br>"), tabs=("\t",), pairs=TAGS),
    "yaml of paragraphs": Row("a: >\n  ◊\n", breaks=("\n\n  ", "<br>"), pairs=TAGS),
    "xliff 2": Row(
        '<xliff version="2.0" srcLang="en"><file id="f"><unit id="1">'
        '<originalData><data id="d">&lt;br/></data></originalData>'
        "<segment><source>◊</source></segment></unit></file></xliff>",
        codes=('<ph id="1"/>', '<ph id="1" disp="icon"/>'),
        breaks=(
            '<ph id="1" subType="xlf:lb" type="fmt"/>',
            '<ph id="1" disp="&lt;br/&gt;"/>',
            '<ph id="1" dataRef="d"/>',
        ),
        pairs=(('<pc id="5">', "</pc>"), ('<sc id="6"/>', '<ec startRef="6"/>')),
        words=escaped,
        reads=without_tags,
        target=("<target>", "</target>"),
    ),
    "xliff that keeps white space": Row(
        **{
            **vars(XLIFF),
            "file": XLIFF.file.replace("<source>", '<source xml:space="preserve">'),
            "target": ('<target state="needs-review-translation" xml:space="preserve">', "</target>"),
            "breaks": ("\n", "\n\n"),
            "tabs": ("\t",),
            "spaces": ("  ",),
        }
    ),
}
"""The rows, and other ways to write a format."""


def test_every_format_has_a_row() -> None:
    assert ROWS.keys() == FORMATS.keys() - {"pdf"}


class Model:
    """Writes the words of a sentence backwards, placeholders whole and its final mark at the end."""

    def __init__(self, pattern: Callable[[str], list[str]] = str.split) -> None:
        self.asked: list[str] = []

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        self.asked += sentences
        return [[Translation(self.said(text), 0.0, 0.0)] for text in sentences]

    @staticmethod
    def said(text: str) -> str:
        mark = text[-1] if text[-1:] in ".!?" else ""
        body = text.removesuffix(mark)
        kept = [span for span in spans(body) if " " in span]
        for number, span in enumerate(kept):
            body = body.replace(span, f"\0{number}\0", 1)
        body = " ".join(reversed(body.split()))
        return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], body) + mark


class Links:
    """Links of words: those of `Model`, or any."""

    def __init__(self, seed: int | None = None) -> None:
        self.rng = None if seed is None else np.random.default_rng(seed)

    def __call__(self, translator: Any, pairs: Sequence[Any]) -> list[np.ndarray]:
        found = []
        for pair in pairs:
            rows, columns = len(words(pair.tgt)), len(words(pair.src))
            if self.rng is not None:
                found.append(self.rng.random((rows, columns)) * self.rng.integers(0, 2, (rows, columns)))
            else:
                marks = sum(pair.src[word.start] in ".!?" for word in words(pair.src)[-1:])
                order = [*reversed(range(columns - marks)), *range(columns - marks, columns)]
                found.append(np.eye(columns)[order] if rows == columns else np.ones((rows, columns)) / columns)
        return found


@dataclass
class Workshop:
    """Translates a text of a row's file; `asked` is what the model was asked."""

    monkeypatch: pytest.MonkeyPatch
    asked: list[str] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)

    def output(self, name: str, row: Row, text: str, seed: int | None = None) -> tuple[bytes, bytes]:
        """(the file with the text, what it was translated to)."""
        self.monkeypatch.setattr(module, "word_links", Links(seed))
        model = Model()
        pipeline: Any = SimpleNamespace(
            splitter=Splitter(("en", "de")),
            by_sentence=model.n_best,
            own=SimpleNamespace(glossary=None),
            carries_codes=False,
            context=(0, 0),
            memory=None,
        )
        data = packed(row, row.file.replace(PLACE, text))
        options = Options("a", ("en", "de"), **row.options)
        out = Document(data, FORMATS[name.split()[0]], options).translated(DocumentTranslator(pipeline))
        self.asked = model.asked
        self.words = Counter(word for said in model.asked for word in words_in(said))
        return data, out

    def written(self, name: str, row: Row, text: str, seed: int | None = None) -> str:
        """The translation of a text as the format writes it."""
        _, out = self.output(name, row, text, seed)
        content = unpacked(row, out)
        before, after = row.target if row.target[0] else row.file.split(PLACE)
        assert before in content
        place = content.index(before) + len(before)
        end = content.index(after, place) if after in content[place:] else len(content)
        return content[place:end] if row.target[0] else content[place : len(content) - len(after)]


def packed(row: Row, content: str) -> bytes:
    if not row.part:
        return content.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, other in {**row.package, row.part: content}.items():
            file.writestr(name, other)
    return out.getvalue()


def unpacked(row: Row, data: bytes) -> str:
    if not row.part:
        return data.decode()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read(row.part).decode()


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return Workshop(monkeypatch)


def each(kind: str) -> Any:
    """A test for each row and for each thing of a kind that it has."""
    found = [
        pytest.param(name, row, thing, id=f"{name}-{number}")
        for name, row in VARIANTS.items()
        for number, thing in enumerate(getattr(row, kind))
    ]
    return pytest.mark.parametrize(("name", "row", "thing"), found)


def shown(row: Row, text: str, code: str) -> str:
    """What a reader sees, with `CODE` in the place of each code."""
    if code not in text:  # written in another way
        return row.reads(text).replace(row.reads(code) or code, CODE)
    pattern = re.escape(code)
    return row.reads(re.sub(pattern, CODE, text))


@each("codes")
def test_spaces_beside_a_code_stay(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    write = row.words
    for seed in (None, 1, 2, 3):
        for before, after in (
            ("One two ", " three four."),
            ("One two three ", "."),
            ("One two. ", " Three four."),
            ("One two.", " Three four."),
            ("One ", " two {} three."),
        ):
            text = write(before) + thing + write(after.partition("{}")[0])
            if "{}" in after:
                text += thing + write(after.partition("{}")[2])
            count = text.count(thing)
            out = shown(row, workshop.written(name, row, text, seed), thing)
            case = f"{before!r} {after!r} {seed}: {out!r}"
            assert out.count(CODE) == count, case
            assert "  " not in out, case
            if before[-1] == " ":
                assert not re.search(rf"[^\s(]{CODE}", out), case
            if after[0] == " ":
                assert not re.search(rf"{CODE}\w", out), case
            assert not any("  " in said or said.endswith(" .") for said in workshop.asked), workshop.asked
            assert sorted(words_in(out)) == sorted(words_in(before + after)), case


def words_in(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@each("codes")
def test_codes_between_sentences_stay_there(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    for left, right in (("", ""), (" ", ""), ("", " ")) if name != "rest" else ((" ", " "),):
        text = row.words("One two." + left) + thing + row.words(right + "Three four.")
        for seed in (None, 1, 2, 3):
            out = shown(row, workshop.written(name, row, text, seed), thing)
            assert workshop.asked == ["One two.", "Three four."]
            assert out == f"two One.{left}{CODE}{right}four Three."


@each("breaks")
def test_breaks_part_texts(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    parted(workshop, name, row, thing)


@each("tabs")
def test_tabs_part_texts(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    parted(workshop, name, row, thing)
    for bullet in ("•", "1.", "a)", "–", "[1]"):
        text = row.words(bullet) + thing + row.words("One two.")
        out = shown(row, workshop.written(name, row, text), thing)
        assert workshop.asked == ["One two."]
        assert out == f"{bullet}{CODE}two One."


def parted(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    for before, after in (("One two.", "Three four."), ("one two", "three four"), ("7%", "three four")):
        text = row.words(before) + thing + row.words(after)
        out = shown(row, workshop.written(name, row, text), thing)
        assert workshop.asked == [said for said in (before, after) if said != "7%"]
        assert out == f"{Model.said(before)}{CODE}{Model.said(after)}"


@each("pairs")
def test_pairs_are_looked_through_for_sentences(
    workshop: Workshop, name: str, row: Row, thing: tuple[str, str]
) -> None:
    begin, end = thing
    write = row.words
    for gap in ("", " "):
        if gap == "" and ((name == "md" and begin == "**") or name == "rest"):
            continue  # CommonMark's own rule: no emphasis there; reStructuredText has none at all
        for source, wanted in (
            (f"{begin}One two.{end}{gap}Three four.", f"{begin}two One.{end}{gap}four Three."),
            (f"One two.{gap}{begin}Three four.{end}", f"two One.{gap}{begin}four Three.{end}"),
            (f"{begin}One two.{end}{gap}{begin}Three four.{end}", f"{begin}two One.{end}{gap}{begin}four Three.{end}"),
        ):
            source = in_words(source, thing, write)
            for seed in (None, 1, 2):
                out = workshop.written(name, row, source, seed)
                assert workshop.asked == ["One two.", "Three four."]
                assert plain_pairs(row, out, thing) == wanted


@each("pairs")
def test_a_pair_around_the_first_letter_goes_around_its_word(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str, row: Row, thing: tuple[str, str]
) -> None:
    begin, end = thing
    backwards = Model.said
    monkeypatch.setattr(Model, "said", staticmethod(lambda text: codecs.encode(backwards(text), "rot13")))
    if name == "rest":
        return  # its marks stand around words alone
    out = workshop.written(name, row, in_words(f"One {begin}t{end}wo three.", thing, row.words))
    if workshop.asked == ["One two three."]:  # tags of a text without markup are placeholders of it
        assert plain_pairs(row, out, thing) == f"guerr {begin}gjb{end} Bar."


def in_words(text: str, pair: tuple[str, str], write: Callable[[str], str]) -> str:
    pieces = re.split(f"({'|'.join(map(re.escape, pair))})", text)
    return "".join(piece if piece in pair else write(piece) for piece in pieces if piece)


def plain_pairs(row: Row, text: str, pair: tuple[str, str]) -> str:
    """What a reader sees, with the marks of a pair as they are written."""
    begin, end = pair
    marked = text.replace(begin, "\1").replace(end, "\2") if begin != end else text.replace(begin, "\1")
    return row.reads(marked).replace("\1", begin).replace("\2", end)


@each("spaces")
def test_preserved_spaces_stay(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    text = row.words("One two.") + thing + row.words("Three four.")
    space = row.reads(thing) or " "
    out = shown(row, workshop.written(name, row, text), thing).replace(CODE, space)
    assert out == f"two One.{space}four Three."
    out = shown(row, workshop.written(name, row, row.words("one") + thing + row.words("two")), thing)
    assert not any("onetwo" in said for said in workshop.asked)
    assert "onetwo" not in out
    assert "twoone" not in out


@each("protected")
def test_what_a_format_protects_stays(workshop: Workshop, name: str, row: Row, thing: str) -> None:
    text = row.words("One ") + thing + row.words(" two.")
    out = shown(row, workshop.written(name, row, text), thing)
    assert out == f"two {CODE} One."
    alone = row.file.replace(PLACE, thing)
    _, data = workshop.output(name, row, thing)
    assert workshop.asked == []
    assert row.target[0] or unpacked(row, data) == alone


BILINGUAL = [name for name in ROWS if FORMATS[name].goes_bilingual]


def things_in_a_text(row: Row) -> Iterator[str]:
    """Texts with each thing that a row can have in them."""
    yield row.words("One two.")
    for thing in (*row.codes, *row.spaces, *row.protected):
        yield row.words("One ") + thing + row.words(" two.")
        yield row.words("One two. ") + thing + row.words("Three four.")
    for begin, end in row.pairs:
        yield row.words("One ") + begin + row.words("two") + end + row.words(" three.")
        yield begin + row.words("One two.") + end
    for thing in (*row.breaks, *row.tabs):
        yield row.words("One two.") + thing + row.words("Three four.")


@pytest.mark.parametrize("name", BILINGUAL)
def test_bilingual_files_hold_both(workshop: Workshop, name: str) -> None:
    """Nothing of the source is lost, the translation is there, and the format's own reader finds both."""
    row = replace(ROWS[name], options={**ROWS[name].options, "bilingual": True})
    for text in things_in_a_text(row):
        data, out = workshop.output(name, row, text)
        before, after = unpacked(row, data), unpacked(row, out)
        characters = iter(after)
        assert all(char in characters for char in before), f"{text!r}: {after!r}"
        read = "".join(
            item if isinstance(item, str) else " " if item.kind == "break" else ""
            for unit in Document(out, FORMATS[name], Options("a", ("en", "de"))).texts()
            for item in (*unit.items, " ")
        )
        counts = Counter(words_in(read))
        assert {word: counts[word] for word in workshop.words} == {
            word: 2 * count for word, count in workshop.words.items()
        }, f"{text!r}: {after!r}"


def same(text: str) -> str:
    return text


@pytest.mark.parametrize("name", VARIANTS)
def test_a_translation_that_is_its_source_changes_nothing(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Wherever codes stand: around a blank, a part of a word, or in one another."""
    monkeypatch.setattr(Model, "said", staticmethod(same))
    row = VARIANTS[name]
    texts = [*things_in_a_text(row)]
    for begin, end in row.pairs if name != "rest" else ():
        texts += [
            row.words("One t") + begin + row.words("w") + end + row.words("o."),
            begin + "\u00a0" + end + row.words("One"),
        ]
    for text in texts:
        data, out = workshop.output(name, row, text, seed=1)
        if row.target[0]:
            assert row.reads(workshop.written(name, row, text, seed=1)) == row.reads(text)
        else:
            assert out == data, text


CUES = {
    "srt": ("1\n00:00:01,000 --> 00:00:02,000\nOne two\n\n", "2\n00:00:02,100 --> 00:00:03,000\nthree four.\n"),
    "vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nOne two\n\n", "00:02.100 --> 00:03.000\nthree four.\n"),
    "sbv": ("0:00:01.000,0:00:02.000\nOne two\n\n", "0:00:02.100,0:00:03.000\nthree four.\n"),
    "ass": (
        "[Events]\nFormat: Layer, Start, End, Style, Text\nDialogue: 0,0:00:01.00,0:00:02.00,Default,One two\n",
        "Dialogue: 0,0:00:02.10,0:00:03.00,Default,three four.\n",
    ),
    "ttml": (
        '<tt><body><div><p begin="1s" end="2s">One two</p>',
        '<p begin="2.1s" end="3s">three four.</p></div></body></tt>',
    ),
}
"""A sentence that goes on in the next cue."""


@pytest.mark.parametrize("name", CUES)
def test_words_on_two_sides_of_a_cue_stay_two(workshop: Workshop, name: str) -> None:
    first, second = CUES[name]
    _, out = workshop.output(name, Row(first + second), "")
    assert workshop.asked == ["One two three four."]
    assert sorted(words_in(out.decode())) == sorted(words_in(first + second))
    assert re.search(r"\bfour\b(?s:.*)\btwo One\b", out.decode())


PLACEHOLDERS_ALONE = (
    "%s",
    "{name}",
    "{{name}}",
    "${user}",
    "%1$s, %2$s",
    "{0} / {1}",
    "%(count)d%%",
    "$t(a.b)",
    "%{n}",
)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("text", PLACEHOLDERS_ALONE)
def test_texts_of_placeholders_alone_are_left_alone(workshop: Workshop, name: str, text: str) -> None:
    row = VARIANTS[name]
    data, out = workshop.output(name, row, row.words(text))
    assert workshop.asked == []
    if row.target[0]:
        assert row.reads(workshop.written(name, row, row.words(text))) == text
    else:
        assert out == data


@pytest.mark.parametrize(
    "text", ["One |version| two.", "One {{ name | upper }} two.", "One ``a | b`` two.", "One https://x.org/a|b two."]
)
def test_a_bar_in_a_placeholder_parts_nothing(text: str) -> None:
    assert [piece.text for piece in Splitter(("en", "de")).pieces(text)] == [text]
