"""Warnings of a translation: what looks wrong with it or with its source, and notes on how it came about."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class WarningKind(StrEnum):
    """The kind of a warning: a code that stays the same, whatever the sentence says.

    >>> WarningKind.NUMBERS_LOST.label
    'numbers lost'
    """

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> "WarningKind":
        kind = str.__new__(cls, value)
        kind._value_, kind.sentence = value, sentence
        return kind

    EMPTY = "empty", "empty"
    REPETITION = "repetition", "repetition: {} again and again"
    SOURCE_ECHOED = "source-echoed", "source echoed"
    TOO_LONG = "too-long", "far too long: {}"
    TOO_SHORT = "too-short", "far too short: {}"
    WORDS_LOST = "words-lost", "words lost, none is left: {}"
    NUMBERS_LOST = "numbers-lost", "numbers lost: {}"
    NUMBERS_ADDED = "numbers-added", "numbers added: {}"
    UNITS_LOST = "units-lost", "units lost: {}"
    SENTENCES_LOST = "sentences-lost", "sentences lost: {}"
    QUESTIONS_LOST = "questions-lost", "questions lost: {}"
    WORD_DOUBLED = "word-doubled", "doubled word: {}"
    MARKS_LOST = "marks-lost", "{} lost"
    TARGET_LANGUAGE = "target-language", "translation is {}"
    SOURCE_LANGUAGE = "source-language", "source is {}"
    SOURCE_SCRIPT = "source-script", "source is in {}"
    SOURCE_CAPITALS = "source-capitals", "source in capitals"
    UNKNOWN_WORDS = "unknown-words", "unknown to the model: {}"
    PLACEHOLDERS_LOST = "placeholders-lost", "placeholders lost: {}"
    TERM_OUT_OF_PLACE = "term-out-of-place", "term perhaps out of place: {}"
    TERM_LEFT_OUT = "term-left-out", "term left out: {}"
    NOT_TRANSLATED = "not-translated", "not translated: {}"
    OVER_LIMIT = "over-limit", "longer than the file allows: {}"
    LOW_CONFIDENCE = "low-confidence", "low confidence: {}"
    NOT_THE_FIRST = "not-the-first", "not the most probable translation, which looks worse"
    SEARCHED_AGAIN = "searched-again", "searched again without repetitions"
    PLACEHOLDERS_PUT_BACK = "placeholders-put-back", "placeholders put back"
    FROM_MEMORY = "from-memory", "from the memory"
    LIKE_MEMORY = "like-memory", "with a match of the memory: {}"

    @property
    def label(self) -> str:
        """The kind in words, for counts of them."""
        return self.replace("-", " ")


NOTES = frozenset({
    WarningKind.NOT_THE_FIRST, WarningKind.SEARCHED_AGAIN, WarningKind.PLACEHOLDERS_PUT_BACK, WarningKind.FROM_MEMORY,
    WarningKind.LIKE_MEMORY,
})  # fmt: skip
"""Kinds that report what was done, not faults."""

OF_STAGES = NOTES | {
    WarningKind.PLACEHOLDERS_LOST, WarningKind.TERM_OUT_OF_PLACE, WarningKind.TERM_LEFT_OUT,
    WarningKind.NOT_TRANSLATED, WarningKind.OVER_LIMIT, WarningKind.LOW_CONFIDENCE,
}  # fmt: skip
"""Kinds that the stages of a translation tell of themselves; the others come from checks of the text."""


@dataclass(frozen=True)
class Warning:
    """A warning of a translation, or a note on how it came about; as text the sentence that people read.

    >>> str(Warning(WarningKind.NUMBERS_LOST, "13"))
    'numbers lost: 13'
    """

    kind: WarningKind
    detail: str = ""
    place: tuple[int, int] | None = None
    """The characters of the source that the warning is about (from, to); None: the whole source."""

    @property
    def is_fault(self) -> bool:
        """True for what checks of the text have found; the stages of a translation tell the others of themselves."""
        return self.kind not in OF_STAGES

    @property
    def is_note(self) -> bool:
        """True where nothing looks wrong."""
        return self.kind in NOTES

    def __str__(self) -> str:
        return self.kind.sentence.format(self.detail)

    def record(self) -> dict[str, Any]:
        """The warning for JSON: its kind, its sentence, and its detail and place where it has these."""
        rest = {"detail": self.detail, "place": self.place and list(self.place)}
        return {"kind": str(self.kind), "text": str(self), **{name: value for name, value in rest.items() if value}}


def doubts(warnings: Iterable[Warning]) -> list[Warning]:
    """The warnings without notes; each sentence once."""
    return list({str(one): one for one in warnings if not one.is_note}.values())
