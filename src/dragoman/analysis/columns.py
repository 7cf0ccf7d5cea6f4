"""Columns of words on a screen."""

import unicodedata
from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Rows of words under each other, columns `left` to the left; a Chinese character is two columns wide."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        blanks = [" " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [f"{cell}{blanks[at]}" if at in left else f"{blanks[at]}{cell}" for at, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def display_width(text: str) -> int:
    """Columns that a text takes on a screen."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
