"""Plain text: each line is a text."""

import re
from collections.abc import Iterator

from dragoman.formats.base import Options, Unit, has_letters, plain


def units(text: str, options: Options) -> Iterator[Unit]:
    """Each line that has letters."""
    for number, match in enumerate(re.finditer(r"[^\n]*\n|[^\n]+$", text), start=1):
        line = match.group().rstrip("\r\n")
        said = line.strip()
        if has_letters(said):
            start = match.start() + len(line) - len(line.lstrip())
            yield Unit((said,), start, start + len(said), plain, f"line {number}")
