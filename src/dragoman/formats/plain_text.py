"""Plain text: each line is a text."""

import re
from collections.abc import Iterator, Sequence

from dragoman.formats.base import Item, Options, Unit, plain

_LETTER = re.compile(r"[^\W\d_]")


def units(text: str, options: Options) -> Iterator[Unit]:
    """Each line that has letters."""
    for number, match in enumerate(re.finditer(r"[^\n]*\n|[^\n]+$", text), start=1):
        line = match.group().rstrip("\r\n")
        said = line.strip()
        if _LETTER.search(said):
            start = match.start() + len(line) - len(line.lstrip())
            yield Unit((said,), start, start + len(said), _render, f"line {number}")


def _render(items: Sequence[Item]) -> str:
    return plain(items)
