"""Inline codes as pieces that a model has learnt to carry over (Hanneman and Dinu 2020, "How Should Markup Tags Be
Translated?").

A sentence is given to the model with a numbered piece for each code (`text/annotations.py`). Its translation counts if
it has each piece once and well nested; else the codes go around the words that their words are linked to
(`markup.py`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.alignment.markup import is_protected, text_and_codes
from dragoman.formats.base import Code, Item
from dragoman.text.annotations import (
    NUM_CODES,
    PIECE,
    Placed,
    alone,
    are_whole,
    closing,
    number_of,
    opening,
    with_pieces,
    without_pieces,
)
from dragoman.text.placeholders import span_ranges, unescaped
from dragoman.text.words import is_letter, words

CodesAt = Sequence[tuple[int, Code]]
"""Codes with their places in a text without them, in order."""


class Coded(NamedTuple):
    """A sentence with pieces for its codes; those around all of it need none."""

    text: str
    """The sentence as the model reads it."""
    before: tuple[Code, ...]
    inside: tuple[tuple[str, Code], ...]
    """Each piece and its code."""
    after: tuple[Code, ...]
    worded: frozenset[int]
    """Numbers of the pairs that have a letter in them."""
    parts_words: bool
    """True if a code stands inside of a word, as in `H<sub>2</sub>O`."""

    def items(self, translation: str) -> list[Item] | None:
        """The translation with its codes in the place of their pieces; None where some are lost, double or crossed, or
        a pair has no word in it any more.

        Codes stand inside of a word only where one does in the source; elsewhere a pair goes around the whole word.
        """
        plain, placed = without_pieces(translation)
        plain = plain.rstrip()
        if not are_whole([piece for _, piece in placed], [piece for piece, _ in self.inside]):
            return None
        code_of = dict(self.inside)
        at_words = {} if self.parts_words else _ends_of_words(plain)
        items: list[Item] = [*self.before]
        begun: dict[int, int] = {}  # number of a pair -> where it begins
        done = 0
        for place, piece in placed:
            code, at = code_of[piece], min(place, len(plain))
            if code.kind != "close":  # a space belongs before what opens
                at += len(plain[at:]) - len(plain[at:].lstrip())
            at = at_words.get(at, (at, at))[code.kind != "open"]
            if plain[at:done].strip():
                return None
            at = max(at, done)
            items += [plain[done:at], code]
            done = at
            number = number_of(piece)
            if code.kind == "open":
                begun[number] = at
            elif number in self.worded and not any(map(is_letter, plain[begun[number] : at])):
                return None
        return [item for item in [*items, plain[done:], *self.after] if item != ""]


def _ends_of_words(text: str) -> dict[int, tuple[int, int]]:
    """Where the word begins and ends that has a place strictly inside of it."""
    return {place: (word.start, word.end) for word in words(text) for place in range(word.start + 1, word.end)}


def coded(text: str, codes: CodesAt, first: int = 1) -> Coded | None:
    """The sentence with pieces numbered from `first`; None if there are more than there are pieces, or of another kind.

    >>> bold = Code("<b>", "open", 0), Code("</b>", "close", 0)
    >>> one = coded("Click Open.", [(6, bold[0]), (10, bold[1])])
    >>> one.text, "".join(getattr(item, "raw", item) for item in one.items("⟦1⟧ Öffnen⟦/1⟧ wählen."))
    ('Click⟦1⟧ Open⟦/1⟧.', '<b>Öffnen</b> wählen.')
    """
    if any(code.kind not in ("open", "close", "alone") for _, code in codes):
        return None
    before, inside, after = outside(text, codes)
    opened = {code.pair for _, code in inside if code.kind == "open"}
    whole = opened & {code.pair for _, code in inside if code.kind == "close"}
    numbers: dict[int, int] = {}
    placed: list[Placed] = []
    for place, code in inside:
        if code.kind != "alone" and code.pair in whole:
            number = numbers.setdefault(code.pair, first + len({number_of(piece) for _, piece in placed}))
            piece = (opening if code.kind == "open" else closing)(number)
        else:
            piece = alone(first + len({number_of(piece) for _, piece in placed}))
        placed.append(Placed(place, piece))
    if any(number_of(piece) > NUM_CODES for _, piece in placed):
        return None
    pieces = [piece for _, piece in placed]
    if not are_whole(pieces, pieces):  # the source's own codes cross
        return None
    of_pieces = tuple((piece, code) for piece, (_, code) in zip(pieces, inside, strict=True))
    inner = _ends_of_words(text)
    ends = {number_of(piece): place for place, piece in placed if piece.startswith("⟦/")}
    starts = {number_of(piece): place for place, piece in placed if not piece.startswith("⟦/")}
    worded = frozenset(n for n, end in ends.items() if n in starts and any(map(is_letter, text[starts[n] : end])))
    parts_words = any(place in inner for place, _ in placed)
    return Coded(with_pieces(text, placed), tuple(before), of_pieces, tuple(after), worded, parts_words)


def around_terms(codes: CodesAt, terms: Iterable[tuple[int, int]]) -> CodesAt:
    """The codes of a text, moved so that no code stands inside of a term (from, to): a pair that would part a term goes
    around the whole term.

    >>> bold = Code("<b>", "open", 0), Code("</b>", "close", 0)
    >>> [at for at, _ in around_terms([(4, bold[0]), (9, bold[1])], [(4, 14)])]
    [4, 14]
    """
    moved = list(codes)
    for start, end in terms:
        moved = [
            (end if code.kind == "close" else start, code) if start < at < end else (at, code) for at, code in moved
        ]
    if moved == list(codes):
        return codes
    begins = {code.pair: (at, number) for number, (at, code) in enumerate(moved) if code.kind == "open"}
    ends = {code.pair: at for at, code in moved if code.kind == "close"}

    def order(numbered: tuple[int, tuple[int, Code]]) -> tuple[int, ...]:
        """At one place what ends comes before what begins; the outer begins first and ends last."""
        number, (at, code) = numbered
        begin, own = begins.get(code.pair, (at, number))
        if code.kind == "alone" or begin == ends.get(code.pair, begin):
            return at, 1, number
        return (at, 2, -ends[code.pair], own) if code.kind == "open" else (at, 0, -begin, -own)

    return [one for _, one in sorted(enumerate(moved), key=order)]


def outside(text: str, codes: CodesAt) -> tuple[list[Code], list[tuple[int, Code]], list[Code]]:
    """(codes before the whole text, codes inside of it, codes behind it). A pair around the whole text counts as
    outside."""
    inside = list(codes)
    before: list[Code] = []
    after: list[Code] = []
    while inside:
        (start, first), (end, last) = inside[0], inside[-1]
        begins, ends = not text[:start].strip(), not text[end:].strip()
        if begins and first.kind == "alone":
            before.append(inside.pop(0)[1])
        elif ends and last.kind == "alone":
            after.insert(0, inside.pop()[1])
        elif begins and ends and (first.kind, last.kind) == ("open", "close") and first.pair == last.pair:
            before.append(inside.pop(0)[1])
            after.insert(0, inside.pop()[1])
        else:
            break
    return before, inside, after


_TAG = re.compile(r"[<⟦](/?)([A-Za-z][^\s<>/]*|\d{1,3})(?:\s[^<>]*?)?(/?)[>⟧]|\[(/?)([a-z]{1,5})(?:=[^\[\]]*)?\]")
"""A tag, a piece or a mark of BBCode: whether it closes, its name, whether it closes itself."""


def items_of_line(text: str, *, tags_only: bool = False) -> list[Item]:
    """A line with its placeholders (`text/placeholders.py`) as codes: tags in pairs, all others alone. With `tags_only`
    it is markup, and characters stand for its entities.

    >>> [getattr(item, "kind", item) for item in items_of_line("Open <b>%s</b>")]
    ['Open ', 'open', 'alone', 'close']
    """
    items: list[Item] = []
    opened: list[tuple[str, int]] = []  # (name, number of the item)
    done = pairs = 0
    for start, end in _ranges(text):
        match = _TAG.fullmatch(text, start, end)
        if tags_only and match is None:
            continue
        items += [text[done:start]] if done < start else []
        raw, done = text[start:end], end
        name = (match[2] or match[5]) if match else ""
        if match is None or match[3]:
            items.append(Code(raw, "alone"))
        elif not (match[1] or match[4]):
            opened.append((name, len(items)))
            items.append(Code(raw, "alone"))  # until it is closed
        elif name in (one for one, _ in opened):
            while opened[-1][0] != name:
                opened.pop()
            at = opened.pop()[1]
            items[at] = Code(items[at].raw, "open", pairs)  # type: ignore[union-attr]
            items.append(Code(raw, "close", pairs))
            pairs += 1
        else:
            items.append(Code(raw, "alone"))
    items += [text[done:]] if done < len(text) else []
    return [unescaped(item) if isinstance(item, str) else item for item in items] if tags_only else items


def _ranges(text: str) -> list[tuple[int, int]]:
    """Where spans and pieces stand; a piece in a span is a part of it."""
    ranges = span_ranges(text)
    if "⟦" not in text:
        return ranges
    pieces = [match.span() for match in PIECE.finditer(text)]
    return sorted(ranges + [one for one in pieces if not any(start < one[1] and one[0] < end for start, end in ranges)])


def without_tags(text: str) -> str:
    """The text of a line without its tags and pieces, as a model that learns codes is scored on it.

    >>> without_tags("Open <b>the</b> %s"), without_tags("3 < 4")
    ('Open the %s', '3 < 4')
    """
    return text_and_codes(items_of_line(text, tags_only=True))[0] if has_tags(text) else unescaped(text)


def has_tags(text: str) -> bool:
    """True for a line with a tag or a piece."""
    return bool(_TAG.search(text)) and any(_TAG.fullmatch(text, *ends) for ends in _ranges(text))


def has_markup(text: str) -> bool:
    """True for a text with tags, with pieces, or with pieces of a document: nothing that a model knows as it is."""
    return any(_TAG.fullmatch(text, *ends) or is_protected(text[ends[0]]) for ends in _ranges(text))
