"""The encoding of a file of text: told by its first bytes or by what it declares, kept when it is written again."""

import codecs
import re
from typing import Literal, NamedTuple

from dragoman.errors import Error

Declares = Literal["", "xml", "html", "po"]
"""The way in which a kind of file says its encoding; "": it says none."""

_XML = r"""^<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)"""
_DECLARATIONS: dict[Declares, re.Pattern[str]] = {
    "xml": re.compile(_XML),
    "html": re.compile(rf"""{_XML}|<meta\b[^<>]{{0,200}}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE),
    "po": re.compile(r"Content-Type:[^\n]{0,100}charset=([\w.:-]+)", re.IGNORECASE),
}
_LOOKED_AT = 8192
"""Bytes in which a declaration stands."""
_OF_BROWSERS = dict.fromkeys(("latin-1", "iso8859-1", "ascii"), "cp1252")
"""Encodings that HTML's own rules read as another one, which holds them."""


class Encoding(NamedTuple):
    """The way in which text is written as bytes: the codec, and the byte order mark before it."""

    codec: str
    mark: bytes = b""


def declared(data: bytes, declares: Declares) -> str:
    """The codec that a file declares; UTF-8 where it declares none."""
    pattern = _DECLARATIONS.get(declares)
    match = pattern.search(data[:_LOOKED_AT].decode("latin-1")) if pattern else None
    said = next(filter(None, match.groups()), "") if match else ""
    if not said or (declares == "po" and said == "CHARSET"):  # a template's header, which nobody has filled in
        return "utf-8"
    try:
        codec = codecs.lookup(said).name
    except LookupError:
        return said
    if declares != "html" or codec.startswith("utf"):
        return "utf-8" if codec.startswith("utf-16") else codec  # UTF-16 could not be read until here
    return _OF_BROWSERS.get(codec, codec)


def decoded(data: bytes, name: str, declares: Declares = "") -> tuple[str, Encoding]:
    """The text of bytes, and how it was written. Raises DragomanError, with the line, for what is no text."""
    for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            encoding = Encoding(codec, mark)
            break
    else:
        encoding = Encoding(declared(data, declares))
    try:
        text = data[len(encoding.mark) :].decode(encoding.codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Error.NOT_UTF8(
            f"byte 0x{data[error.start]:02X} is not {encoding.codec.upper()}",
            "convert the file from the encoding that it is in to UTF-8: `iconv -f ENCODING -t UTF-8`",
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
    """The bytes of a text. What an encoding lacks is written as XML and HTML do, or the file declares UTF-8 from now
    on, or it is refused."""
    try:
        return encoding.mark + text.encode(encoding.codec, "strict" if declares in ("", "po") else "xmlcharrefreplace")
    except UnicodeEncodeError as error:
        if match := declares == "po" and _DECLARATIONS["po"].search(text):
            return f"{text[: match.start(1)]}UTF-8{text[match.end(1) :]}".encode()
        raise Error.CANNOT_WRITE(
            f"{text[error.start]!r} cannot be written in {encoding.codec}", "convert the file to UTF-8 first", file=name
        ) from error
