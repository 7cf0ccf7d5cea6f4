"""Compiled gettext catalogues (.mo): a table of messages and a table of their translations, by offsets.

The format: https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html
"""

import struct
from collections.abc import Iterator

from dragoman.errors import Error
from dragoman.formats.base import Entry
from dragoman.formats.po import languages_of_header, plural_forms

MAGIC = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}
"""The first bytes of a catalogue, and the byte order that they tell."""


def mo_entries(data: bytes, name: str) -> Iterator[Entry]:
    """The messages of a compiled catalogue, in its order (sorted by message); contexts are left aside.

    `line` counts messages. Raises DragomanError for a file that is none, or is cut off.
    """
    order = MAGIC.get(data[:4])
    if order is None:
        raise Error.WRONG_FILE_TYPE(" is no compiled catalogue, although its name ends in .mo", "rename it", file=name)
    try:
        _, count, originals, translations = struct.unpack_from(f"{order}4I", data, 4)
        languages: tuple[str, str] | None = None
        for number in range(count):
            message, translation = (
                _string(data, order, table + 8 * number, name) for table in (originals, translations)
            )
            if not message:
                languages = languages_of_header(translation)
                continue
            src, _, plural = message.rpartition("\x04")[2].partition("\0")
            for one, other in plural_forms(src, plural, translation.split("\0")):
                yield Entry(number + 1, one, other, "" if other else "untranslated", languages=languages)
    except struct.error as error:
        raise Error.DAMAGED("the catalogue is cut off", "fetch it again", file=name) from error


def _string(data: bytes, order: str, place: int, name: str) -> str:
    length, start = struct.unpack_from(f"{order}2I", data, place)
    if start + length > len(data):
        raise Error.DAMAGED("the catalogue is cut off", "fetch it again", file=name)
    try:
        return data[start : start + length].decode()
    except UnicodeDecodeError as error:
        raise Error.NOT_UTF8(f"message at byte {start} is not UTF-8", "take the .po file", file=name) from error
