"""Texts of documents with their inline codes: a sentence of one, and a pair with numbered tags for them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.formats.base import Code, Item, plain
from dragoman.pipeline.sentence_pairs import sentence_pairs

_ELEMENT = re.compile(r"<([A-Za-z][^\s<>/]*)[^<>]*>")
"""A single tag: what its attributes say differs between languages."""


class CodedText(NamedTuple):
    """A text of a document."""

    where: str
    """Its place there, or its name."""
    text: str
    """Without codes."""
    items: Sequence[Item]

    def part(self, start: int, end: int) -> list[Item]:
        """The items of characters `start` to `end` of the text, with the codes that belong to them."""
        items: list[Item] = []
        at = 0
        for item in self.items:
            if isinstance(item, Code) and item.kind != "protected":
                is_closing = item.kind == "close"
                items += [item] if start + is_closing <= at < end + is_closing else []
                continue
            raw = plain([item])
            items += [raw[max(0, start - at) : max(0, end - at)]]
            at += len(raw)
        return items


def coded_pairs(
    src: CodedText, tgt: CodedText, languages: tuple[str, str]
) -> Iterator[tuple[str, str, tuple[str, str] | None]]:
    """(source, target, both with numbered tags) of two texts that translate each other, cut into sentences where those
    align; None where neither has codes."""
    done = [0, 0]
    for pair in sentence_pairs(src.text, tgt.text, languages) or [(src.text, tgt.text)]:
        parts: list[list[Item]] = []
        for side, (one, text) in enumerate(zip((src, tgt), pair, strict=True)):
            start = one.text.find(text, done[side])
            if start < 0:  # the splitter has joined its lines
                break
            done[side] = start + len(text)
            parts.append(one.part(start, done[side]))
        yield *pair, numbered(*parts) if len(parts) == 2 else None


def numbered(src: Sequence[Item], tgt: Sequence[Item]) -> tuple[str, str] | None:
    """Both texts with numbered tags, one number for codes of one kind: None where neither has any.

    >>> bold, link = (Code("<b>", "open", 1), Code("</b>", "close", 1)), Code("<br/>", "alone")
    >>> numbered([bold[0], "Save", bold[1], link], [link, bold[0], "Sichern", bold[1]])
    ('<1>Save</1><2/>', '<2/><1>Sichern</1>')
    """
    numbers: dict[str, int] = {}
    texts = tuple("".join(_tagged(items, numbers)) for items in (src, tgt))
    return (texts[0], texts[1]) if numbers else None


def _tagged(items: Sequence[Item], numbers: dict[str, int]) -> Iterator[str]:
    opened: dict[int, int] = {}
    for item in items:
        if isinstance(item, str) or item.kind == "protected":
            yield plain([item])
        elif item.kind == "close":
            yield f"</{opened[item.pair]}>" if item.pair in opened else ""
        elif item.kind in ("open", "alone"):
            element = _ELEMENT.fullmatch(item.raw)
            number = numbers.setdefault(element[1] if element else item.raw, len(numbers) + 1)
            if item.kind == "open":
                opened[item.pair] = number
            yield f"<{number}>" if item.kind == "open" else f"<{number}/>"
