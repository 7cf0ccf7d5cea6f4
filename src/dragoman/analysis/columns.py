"""Columns of words on a screen."""

from collections.abc import Collection, Sequence

from dragoman.formats.paragraphs import display_width


def columns(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Rows of words under each other, columns `left` to the left; a Chinese character is two columns wide."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        blanks = [" " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [f"{cell}{blanks[at]}" if at in left else f"{blanks[at]}{cell}" for at, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
