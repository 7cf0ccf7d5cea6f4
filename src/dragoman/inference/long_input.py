"""Sentences that are longer than any that a model was trained on: cut, translated in parts, joined."""

import re
from collections.abc import Callable

from dragoman.languages.punctuation import ENDS

_SENTENCE_END = re.compile(rf"(?<=[{ENDS}])(?=\s)|(?<=[。！？।။។])")


def split_long(text: str, count: Callable[[str], int], limit: int) -> list[str]:
    """Cut `text` into parts of at most `limit` tokens: between sentences, or else between words, or else anywhere.

    >>> split_long("One two. Three four five. Six.", lambda part: len(part.split()), limit=4)
    ['One two.', 'Three four five. Six.']
    """
    pieces = [piece for piece in _SENTENCE_END.split(text) if piece.strip()]  # each with the spaces before it
    if len(pieces) == 1:
        pieces = re.findall(r"\s*\S+", text)
    if len(pieces) == 1:
        middle = len(text) // 2
        if middle == 0:
            return [text]
        pieces = [text[:middle], text[middle:]]
    parts: list[str] = []
    held = ""
    for piece in pieces:
        if count(held + piece) <= limit:
            held += piece
            continue
        parts.append(held)
        held = piece
        if count(piece) > limit:
            parts += split_long(piece.strip(), count, limit)
            held = ""
    return [part.strip() for part in [*parts, held] if part.strip()]
