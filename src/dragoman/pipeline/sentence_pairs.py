"""The sentences of a text beside those of its translation, as a splitter cuts both."""

import re
from collections.abc import Sequence

from dragoman.languages.punctuation import CLOSING, ENDS, QUESTIONS, UNAMBIGUOUS_ENDS, WIDE
from dragoman.pipeline.splitter import Piece, Splitter
from dragoman.quality.faults import Line, too_long, too_short
from dragoman.text.case import is_small
from dragoman.text.numbers import numbers_in, parts_of
from dragoman.text.placeholders import has_same_spans

LENGTH_VARIANCE_PER_CHAR = 6.8
"""Variance of the length of a translation, per character of the text (Gale and Church 1993, section 3.2)."""
MAX_DEVIATIONS = 2.0
"""Standard deviations that the length of a sentence's translation may be away from the text's share of it."""

_SEVERAL = re.compile(
    rf"[{ENDS}][{CLOSING}]{{0,5}}\s+\S|[{WIDE}{UNAMBIGUOUS_ENDS}][{CLOSING}]{{0,5}}\S|[!?]\S|(?<=[^\x00-\u036f])[;:]|[፡၊\u037e]"
    r"|[\t\n\v\f\r\u2028\u2029|]|\\[nrtN]|</|<[bh]r|\.{5}|…{2}|_{5}|_x00"
)
"""Any character that may end a sentence. A text without such a character is one sentence, and is not split."""
_QUESTION = re.compile(QUESTIONS)
_ENDED = re.compile(rf"[{ENDS}:][{CLOSING}]{{0,5}}$")


def sentence_pairs(src: str, tgt: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The pairs of sentences of a text of several, without list marks before them and without those that have nothing
    to translate; none of a single sentence, and where the two sides do not align sentence by sentence.

    They align where there are equally many, each is about as long as its share of the text (the rule of Gale and Church
    1993) and has the numbers and placeholders of its source, and equally many questions are the same ones.

    >>> sentence_pairs("Es regnet. Wir gehen um 8.", "It is raining. We leave at 8.", ("de", "en"))
    [('Es regnet.', 'It is raining.'), ('Wir gehen um 8.', 'We leave at 8.')]
    >>> sentence_pairs("Es regnet. Wir gehen um 8.", "It is raining at 8. We leave.", ("de", "en"))
    []
    """
    whole = Line(src, tgt, languages)
    if not (_SEVERAL.search(src) and _SEVERAL.search(tgt)) or too_long(whole) or too_short(whole):
        return []
    both = [Splitter(languages).pieces(src)]
    if len(both[0]) < 2 or any(map(_goes_on, both[0], both[0][1:])):
        return []
    both.append(Splitter((languages[1], languages[0])).pieces(tgt))
    if len(both[0]) != len(both[1]):
        return []
    questions = [[bool(_QUESTION.search(piece.text)) for piece in side] for side in both]
    if questions[0] != questions[1] and sum(questions[0]) == sum(questions[1]):
        return []
    lengths = [sum(len(piece.text) for piece in side) for side in both]
    pairs = [(one.text, other.text) for one, other in zip(*both, strict=True)]
    if not all(_aligned(Line(*pair, languages), lengths[1] / lengths[0]) for pair in pairs):
        return []
    return [pair for pair, one, other in zip(pairs, *both, strict=True) if one.is_text and other.is_text]


def with_sentences(pairs: Sequence[tuple[str, str]], languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Pairs, and behind them the pairs of their sentences that are not among them; each source once, with its last
    translation."""
    known = {src for src, _ in pairs}
    parts = (part for pair in pairs for part in sentence_pairs(*pair, languages) if part[0] not in known)
    return [*pairs, *dict(parts).items()]


def _goes_on(piece: Piece, following: Piece) -> bool:
    """True for a line that ends inside of a sentence."""
    return is_small(following.text[:1]) and not _ENDED.search(piece.text)


def _aligned(line: Line, ratio: float) -> bool:
    expected = ratio * len(line.src)
    away = abs(expected - len(line.tgt)) / (LENGTH_VARIANCE_PER_CHAR * (expected + len(line.tgt)) / 2) ** 0.5
    if away > MAX_DEVIATIONS or not has_same_spans(line.src, line.tgt):
        return False
    numbers = [numbers_in(text, code) for text, code in zip(line[:2], line.languages, strict=True)]
    known = [{value for number in side for part in parts_of(number) for value in part} for side in numbers]
    return all(
        part & others
        for side, others in zip(numbers, known[::-1], strict=True)
        for one in side
        for part in parts_of(one)
    )
