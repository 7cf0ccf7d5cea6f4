"""The encoding of a file of text: told by its first bytes or by what it declares, kept when it is written again."""

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import webencodings

from dragoman.errors import Error
from dragoman.languages.codes import language_of, script_of

Declares = Literal["", "xml", "html", "po", "properties", "player"]
"""The way in which a kind of file says its encoding; "": it says none. Java's properties are UTF-8 or ISO-8859-1; a
player of subtitles reads what is not UTF-8 in the encoding that Windows has for the language."""

_XML = r"""^<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)"""
_DECLARATIONS: dict[Declares, re.Pattern[str]] = {
    "xml": re.compile(_XML),
    "html": re.compile(rf"""{_XML}|<meta\b[^<>]{{0,200}}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE),
    "po": re.compile(r"Content-Type:[^\n]{0,100}charset=([\w.:-]+)", re.IGNORECASE),
}
_LOOKED_AT = 8192
"""Bytes in which a declaration stands."""
_SINGLE_BYTE = re.compile(r"iso8859|latin|cp\d|koi8|mac|ascii")
_UNDEFINED = "dragoman.undefined"
"""The name for what is done with bytes that a codec does not define: as in browsers, they are control characters."""


def _undefined(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError) and not error.encoding.startswith(("utf", "gb", "big5", "euc", "cp9")):
        return error.object[error.start : error.start + 1].decode("latin-1"), error.start + 1
    if isinstance(error, UnicodeEncodeError):
        char = error.object[error.start]
        known = "\x80" <= char <= "\x9f"
        return char.encode("latin-1") if known else f"&#{ord(char)};", error.start + 1
    raise error


codecs.register_error(_UNDEFINED, _undefined)


class Encoding(NamedTuple):
    """The way in which text is written as bytes: the codec, and the byte order mark before it."""

    codec: str
    mark: bytes = b""
    is_declared: bool = True
    """False if the file declares another one."""


def declared(data: bytes, declares: Declares) -> str:
    """The codec that a file declares; UTF-8 where it declares none."""
    name = _declaration(data, declares)
    if not name or (declares == "po" and name == "CHARSET"):  # a template's header, which nobody has filled in
        return "utf-8"
    label = webencodings.lookup(name) if declares == "html" else None
    try:
        codec = codecs.lookup(name).name
        if label and label.name == "windows-1252" and re.search(b"[\x80-\x9f]", data):
            return "cp1252"  # for browsers `latin1` is windows-1252, for XML it is what it says
        if label and _SINGLE_BYTE.match(codec) and label.name == "windows-1252":
            return codec if _is(data, codec) else "cp1252"
    except LookupError:
        if label is None:
            return name
    if label:
        return "utf-8" if label.name.startswith("utf-16") else label.codec_info.name
    return "utf-8" if codec.startswith("utf-16") else codec  # UTF-16 could not be read until here


def _declaration(data: bytes, declares: Declares) -> str:
    """The name of the encoding that a file declares, "" if it declares none."""
    pattern = _DECLARATIONS.get(declares)
    match = pattern.search(data[:_LOOKED_AT].decode("latin-1")) if pattern else None
    return next(filter(None, match.groups()), "") if match else ""


_CODE_PAGES = {
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "ro", "bs", "sq"), "cp1250"),
    **dict.fromkeys(("ru", "uk", "be", "bg", "sr", "mk", "kk"), "cp1251"),
    **dict.fromkeys(("et", "lv", "lt"), "cp1257"),
    "el": "cp1253", "tr": "cp1254", "az": "cp1254", "he": "cp1255", "ar": "cp1256", "fa": "cp1256", "vi": "cp1258",
    "th": "cp874", "ja": "cp932", "ko": "cp949", "zh": "gb18030", "zh_Hant": "cp950", "sr_Latn": "cp1250",
}  # fmt: skip
"""The encodings of Windows by language; of all others it is windows-1252."""


def code_page(data: bytes, languages: Sequence[str]) -> str:
    """The Windows encoding of one of these languages, for bytes that are not UTF-8; "" for UTF-8. Text with a few
    damaged bytes counts as UTF-8 if most of its non-ASCII characters can be read.

    >>> code_page("Größe".encode("cp1252"), ("en", "de")), code_page("Größe".encode() + b"\\xe4", ("en", "de"))
    ('cp1252', '')
    """
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data:
        return ""
    counts = Counter("\udc80" <= char <= "\udcff" for char in data.decode("utf-8", "surrogateescape") if char > "\x7f")
    if counts[True] <= counts[False]:
        return ""
    keys = [(f"{language_of(code)}_{script_of(code)}", language_of(code)) for code in languages]
    named = [_CODE_PAGES.get(exact) or _CODE_PAGES.get(language) for exact, language in keys]
    return next(filter(None, named), "cp1252")


def conversion(data: bytes, languages: Sequence[str]) -> str:
    """The command that converts bytes to UTF-8 from the Windows encoding of one of the languages.

    >>> conversion("Добрый день".encode("cp1251"), ("ru",)), conversion(b"a", ())
    ('`iconv -f WINDOWS-1251 -t UTF-8`', '`iconv -f ENCODING -t UTF-8`')
    """
    codec = code_page(data, languages) if any(languages) else ""
    likely = codec if codec and _is(data, codec) else "ENCODING"
    return f"`iconv -f {likely.replace('cp125', 'WINDOWS-125').upper()} -t UTF-8`"


def _encoding_of(data: bytes, declares: Declares) -> Encoding:
    """The way to read bytes: as their mark says, or else as the file declares.

    A file that was converted to UTF-8, and still declares what it was before, is UTF-8.
    """
    for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return Encoding(codec, mark)
    if b"\0" in (first := data[:2]) and len(data) % 2 == 0 and first != b"\0\0":
        return Encoding("utf-16-be" if first[0] == 0 else "utf-16-le")
    codec = declared(data, declares)
    if declares == "properties":
        return Encoding("utf-8" if _is(data, "utf-8") else "iso8859-1")
    if declares == "html" and data.isascii() and not _declaration(data, declares):
        return Encoding("ascii")
    if _SINGLE_BYTE.match(codec) and not data.isascii() and _is(data, "utf-8"):
        return Encoding("utf-8", is_declared=False)
    return Encoding(codec)


_BINARY = (
    b"bplist", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x7fELF", b"PK\x03\x04", b"%PDF-", b"\x1f\x8b", b"SQLite",
    b"\xde\x12\x04\x95", b"\x95\x04\x12\xde", b"\x03\0\x08\0", b"\xd0\xcf\x11\xe0",
)  # fmt: skip
"""The first bytes of property lists and resources that were compiled, of pictures, programs, packages, catalogues."""


def is_binary(data: bytes) -> bool:
    """True for bytes that are no text, not even a broken one: they begin as a known kind of file, or have many NULs."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or data[:2].count(0) == 1
    return data.startswith(_BINARY) or (not is_wide and data.count(b"\0") * 50 > len(data))


def _is(data: bytes, codec: str) -> bool:
    """True for bytes that a codec can read."""
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def decoded(
    data: bytes, name: str, declares: Declares = "", codec: str = "", languages: Sequence[str] = ()
) -> tuple[str, Encoding]:
    """The text of bytes, and how it was written: by the `codec`, or as their mark or their declaration says.

    `languages`: those that it is likely in, for the hint at another encoding. Raises DragomanError, with the line, for
    what is no text.
    """
    encoding = Encoding(codec) if codec else _encoding_of(data, declares)
    try:
        text = data[len(encoding.mark) :].decode(encoding.codec, _UNDEFINED if declares == "html" else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Error.NOT_UTF8(
            f"byte 0x{data[error.start]:02X} is not {encoding.codec.upper()}",
            f"convert the file from the encoding that it is in to UTF-8: {conversion(data, languages)}"
            + (", and let it declare UTF-8" if declares in _DECLARATIONS else ""),
            file=name,
            line=line,
        ) from error
    except LookupError as error:
        raise Error.NOT_UTF8(
            f"says that it is written in {encoding.codec!r}, which is no known encoding", file=name
        ) from error
    if "\0" in text:
        raise Error.NOT_TEXT(
            "a NUL byte", "is this a text file?", file=name, line=text.count(chr(10), 0, text.index(chr(0))) + 1
        )
    return text, encoding


def encoded(text: str, encoding: Encoding, name: str, declares: Declares = "") -> bytes:
    """The bytes of a text. What an encoding lacks is written as XML, HTML and Java do, or the file declares UTF-8 from
    now on, or it is refused."""
    if not encoding.is_declared:
        return encoding.mark + _declaring_utf8(text, declares).encode(encoding.codec)
    says_nothing = declares == "html" and not _DECLARATIONS[declares].search(text[:_LOOKED_AT])
    if says_nothing and encoding.codec == "ascii" and not text.isascii():  # browsers would take it for windows-1252
        return _SAYS_NOTHING.sub(_with_charset, text, count=1).encode()
    instead = {"xml": "xmlcharrefreplace", "html": _UNDEFINED}.get(declares, "strict")
    if declares == "properties" and encoding.codec == "iso8859-1":
        text = re.sub(r"[^\x00-\xff]", lambda char: as_java_escape(char[0]), text)
    try:
        return encoding.mark + text.encode(encoding.codec, instead)
    except UnicodeEncodeError as error:
        if declares == "po" and _DECLARATIONS["po"].search(text):
            return _declaring_utf8(text, declares).encode()
        if declares == "player":  # which knows UTF-8 for certain by its mark
            return codecs.BOM_UTF8 + text.encode()
        raise Error.CANNOT_WRITE(
            f"{text[error.start]!r} cannot be written in {encoding.codec}", "convert the file to UTF-8 first", file=name
        ) from error


_SAYS_NOTHING = re.compile(r"<head\b[^<>]*>|(?=<title\b)", re.IGNORECASE)


def _with_charset(head: re.Match[str]) -> str:
    end = " />" if "xmlns=" in head.string[: head.start()] else ">"
    return f'{head.group()}<meta charset="utf-8"{end}'


def _declaring_utf8(text: str, declares: Declares) -> str:
    match = _DECLARATIONS[declares].search(text[:_LOOKED_AT])
    assert match is not None
    start, end = match.span(match.lastindex or 0)
    return f"{text[:start]}UTF-8{text[end:]}"


_OF_CHARACTER = re.compile(r"(?<!\\)(?:\\\\)*\\[uU](?!00[0-7])[0-9A-Fa-f]{4}")


def is_escaped(text: str) -> bool:
    r"""True for a file of ASCII in which other characters are escapes (`\\u00e4`): new ones are to be escapes, too.

    >>> is_escaped(r'"\u00fcber"'), is_escaped(r'"a \u003c b"'), is_escaped(r'"über \u00fc"')
    (True, False, False)
    """
    return text.isascii() and _OF_CHARACTER.search(text) is not None


def as_java_escape(char: str) -> str:
    """A character as Java and JSON write it in ASCII, one beyond U+FFFF as its two halves.

    >>> as_java_escape("ü"), as_java_escape("😀")
    ('\\\\u00FC', '\\\\uD83D\\\\uDE00')
    """
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
