"""Compiled gettext catalogues (.mo): a table of messages and a table of their translations, by offsets.

The format: https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html
"""

import struct
from collections.abc import Iterator

from dragoman.errors import Error
from dragoman.formats.base import Entry, State
from dragoman.formats.encoding import declared
from dragoman.formats.po import Header, header_of, plural_forms

MAGIC = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}
"""The first bytes of a catalogue, and the byte order that they tell."""


def mo_entries(data: bytes, name: str) -> Iterator[Entry]:
    """The messages of a compiled catalogue, in its order (sorted by context and message).

    `line` counts messages. Raises DragomanError for a file that is none, or is cut off.
    """
    order = MAGIC.get(data[:4])
    if order is None:
        raise Error.WRONG_FILE_TYPE(" is no compiled catalogue, although its name ends in .mo", "rename it", file=name)
    try:
        _, count, originals, translations = struct.unpack_from(f"{order}4I", data, 4)
        header, charset = Header(), "utf-8"
        for number in range(count):
            sides = [_bytes(data, order, table + 8 * number, name) for table in (originals, translations)]
            if not sides[0]:  # the header, which stands first
                charset = declared(sides[1], "po")
                header = header_of(_decoded(sides[1], charset, number, name))
                continue
            message, translation = (_decoded(side, charset, number, name) for side in sides)
            context, _, message = message.rpartition("\x04")
            src, _, plural = message.partition("\0")
            for one, other in plural_forms(src, plural, translation.split("\0"), header):
                state: State = "" if other else "untranslated"
                yield Entry(number + 1, one, other, state, languages=header.languages, context=context)
    except struct.error as error:
        raise Error.DAMAGED("the catalogue is cut off", "fetch it again", file=name) from error


def _bytes(data: bytes, order: str, place: int, name: str) -> bytes:
    length, start = struct.unpack_from(f"{order}2I", data, place)
    if start + length > len(data):
        raise Error.DAMAGED("the catalogue is cut off", "fetch it again", file=name)
    return data[start : start + length]


def _decoded(text: bytes, charset: str, number: int, name: str) -> str:
    try:
        return text.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        raise Error.NOT_UTF8(
            f"message {number + 1} is not {charset.upper()}", "take the .po file", file=name
        ) from error
