"""Codes of a text of a document that a model carries over itself, sentence by sentence.

A code inside of a sentence goes through the model as a piece (`alignment/learnt_markup.py`). A code between sentences,
or at the edge of a sentence, stays there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dragoman.alignment.learnt_markup import Coded, around_terms, coded
from dragoman.formats.base import Code, Item
from dragoman.inference.translation import Translation
from dragoman.pipeline.splitter import Joined, Piece


@dataclass(frozen=True)
class CarriedCodes:
    """The sentences of a text that were translated with the codes inside of them."""

    translations: dict[str, Translation]
    """The translation of each of them, without codes."""
    with_codes: dict[str, list[Item]]
    inside: frozenset[int]
    """Numbers of the codes that are inside of sentences."""

    def items(self, codes: Sequence[tuple[int, Code]], joined: Joined) -> list[Item]:
        """The items of the text's translation."""
        items: list[Item] = []
        outside = [one for number, one in enumerate(codes) if number not in self.inside]
        src_done = tgt_done = 0
        for piece, at, translation in joined.places:
            items += self._gap(outside, src_done, piece.span.start, joined.text[tgt_done:at])
            items += self.with_codes.get(piece.text, [translation])
            src_done, tgt_done = piece.span.end, at + len(translation)
        items += self._gap(outside, src_done, None, joined.text[tgt_done:])
        return [item for item in items if item != ""]

    @staticmethod
    def _gap(outside: list[tuple[int, Code]], start: int, end: int | None, text: str) -> list[Item]:
        """The text between two sentences with the codes there, which are taken out of `outside`."""
        items: list[Item] = []
        done = 0
        while outside and (end is None or outside[0][0] <= end):
            place, code = outside.pop(0)
            at = max(done, min(place - start, len(text)))
            items += [text[done:at], code]
            done = at
        return [*items, text[done:]]


class Plan(NamedTuple):
    """The sentences of a text that go through the model with pieces, by their text without."""

    coded: dict[str, Coded]
    inside: frozenset[int]

    def restore_codes(self, answers: Mapping[str, Translation]) -> CarriedCodes | None:
        """The text's sentences with their codes; None where one has lost some."""
        translations, with_codes = dict[str, Translation](), dict[str, list[Item]]()
        for text, one in self.coded.items():
            made = answers[one.text]
            items = one.items(made.text)
            if items is None:
                return None
            plain = "".join(item for item in items if isinstance(item, str))
            translations[text], with_codes[text] = replace(made, text=plain), items
        return CarriedCodes(translations, with_codes, self.inside)


@dataclass
class _Sentence:
    """The codes inside of a sentence, with their places in it, and their numbers in the text."""

    codes: list[tuple[int, Code]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def codes_of_sentences(
    codes: Sequence[tuple[int, Code]],
    pieces: Sequence[Piece],
    is_known: Callable[[str], bool],
    terms_of: Callable[[str], Iterable[tuple[int, int]]] = lambda text: (),
) -> Plan | None:
    """The sentences of a text that have codes inside; None where a pair begins inside of one and ends in another, or a
    sentence is known as it is, without its codes.

    `codes`: with their places in the text, in order; `pieces`: its sentences. `terms_of`: where a sentence has terms,
    which no code parts.
    """
    place_of = {}
    for number, (at, _) in enumerate(codes):
        holding = (row for row, piece in enumerate(pieces) if piece.span.start < at < piece.span.end)
        place_of[number] = next(holding, None)
    halves: dict[int, list[int]] = {}
    for number, (_, code) in enumerate(codes):
        if code.kind in ("open", "close"):
            halves.setdefault(code.pair, []).append(number)
    for numbers in halves.values():
        row = next((place_of[number] for number in numbers if place_of[number] is not None), None)
        if row is None:
            continue
        span = pieces[row].span
        for number in numbers:  # one half at the edge of the sentence goes along
            if not span.start <= codes[number][0] <= span.end:
                return None
            place_of[number] = row
    sentences: dict[int, _Sentence] = {}
    for number, row in place_of.items():
        if row is not None:
            one = sentences.setdefault(row, _Sentence())
            one.codes.append((codes[number][0] - pieces[row].span.start, codes[number][1]))
            one.numbers.append(number)
    texts = [piece.text for piece in pieces]
    result: dict[str, Coded] = {}
    for row, one in sentences.items():
        text = texts[row]
        sentence = coded(text, around_terms(one.codes, terms_of(text)))
        if sentence is None or not pieces[row].is_text or texts.count(text) > 1 or is_known(text):
            return None
        result[text] = sentence
    inside = frozenset(number for one in sentences.values() for number in one.numbers)
    return Plan(result, inside) if result else None
