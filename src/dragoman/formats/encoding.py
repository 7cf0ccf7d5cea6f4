"""The encoding of a file of text: told by its first bytes, kept when it is written again."""

import codecs
import re
from typing import NamedTuple

from dragoman.errors import Error

_XML_ENCODING = re.compile(rb"""^<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


class Encoding(NamedTuple):
    """The way in which text is written as bytes: the codec, and the byte order mark before it."""

    codec: str
    mark: bytes = b""


def decoded(data: bytes, name: str, xml: bool) -> tuple[str, Encoding]:
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
        declared = _XML_ENCODING.match(data) if xml else None
        encoding = Encoding(declared.group(1).decode() if declared else "utf-8")
    try:
        text = data[len(encoding.mark) :].decode(encoding.codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Error.NOT_UTF8(
            f"byte 0x{data[error.start]:02X} is not {encoding.codec.upper()}",
            "convert the file, for example with `iconv -f WINDOWS-1252 -t UTF-8`",
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


def encoded(text: str, encoding: Encoding, name: str, xml: bool) -> bytes:
    """The bytes of a text. What an encoding lacks is written as XML does, or refused."""
    try:
        return encoding.mark + text.encode(encoding.codec, "xmlcharrefreplace" if xml else "strict")
    except UnicodeEncodeError as error:
        raise Error.CANNOT_WRITE(
            f"{text[error.start]!r} cannot be written in {encoding.codec}", "convert the file to UTF-8 first", file=name
        ) from error
