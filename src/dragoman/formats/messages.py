"""Messages of a program, whatever file they stand in: accelerators of menus, and halves of characters."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from dragoman.formats.accelerators import accelerator_in, with_accelerator, without_accelerator
from dragoman.formats.base import Code, Item

_HALF = re.compile("([\ud800-\udfff])")


def whole_characters(text: str) -> str:
    """A text with the halves of characters beyond U+FFFF put together, as `\\\\uD83D\\\\uDE00` writes them.

    >>> whole_characters("\\ud83d\\ude00!")
    '😀!'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def items_of(text: str) -> tuple[Item, ...]:
    """The items of a text: a half of a character, which is none, is a code.

    >>> [item if isinstance(item, str) else item.kind for item in items_of("one \\ud83d two")]
    ['one ', 'alone', ' two']
    """
    pieces = (piece for piece in _HALF.split(text) if piece)
    return tuple(Code(piece, "alone") if _HALF.fullmatch(piece) else piece for piece in pieces)


def joined(items: Sequence[Item]) -> str:
    """The text of items with that of all codes."""
    return "".join(item if isinstance(item, str) else item.raw for item in items)


def label(text: str) -> tuple[str, Callable[[Sequence[Item]], str]]:
    """(a text without its accelerator, what gives the text of a translation with one).

    >>> bare, written = label("_Datei öffnen")
    >>> bare, written(["Open file"])
    ('Datei öffnen', '_Open file')
    """
    mark = accelerator_in(text)
    if not mark:
        return text, joined
    bare = without_accelerator(text, mark)
    return bare, partial(_with_mark, text, bare, mark)


def _with_mark(text: str, bare: str, mark: str, items: Sequence[Item]) -> str:
    said = joined(items)
    return text if said == bare else with_accelerator(said, text, mark)
