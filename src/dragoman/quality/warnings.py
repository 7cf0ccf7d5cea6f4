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

    EMPTY = "empty"
    REPETITION = "repetition"
    SOURCE_ECHOED = "source-echoed"
    TOO_LONG = "too-long"
    TOO_SHORT = "too-short"
    NUMBERS_LOST = "numbers-lost"
    NUMBERS_ADDED = "numbers-added"
    UNITS_LOST = "units-lost"
    SENTENCES_LOST = "sentences-lost"
    QUESTIONS_LOST = "questions-lost"
    WORD_DOUBLED = "word-doubled"
    MARKS_LOST = "marks-lost"
    TARGET_LANGUAGE = "target-language"
    SOURCE_LANGUAGE = "source-language"
    SOURCE_SCRIPT = "source-script"
    SOURCE_CAPITALS = "source-capitals"
    UNKNOWN_WORDS = "unknown-words"
    PLACEHOLDERS_LOST = "placeholders-lost"
    TERM_OUT_OF_PLACE = "term-out-of-place"
    TERM_LEFT_OUT = "term-left-out"
    NOT_TRANSLATED = "not-translated"
    LOW_CONFIDENCE = "low-confidence"
    NOT_THE_FIRST = "not-the-first"
    SEARCHED_AGAIN = "searched-again"
    PLACEHOLDERS_PUT_BACK = "placeholders-put-back"
    FROM_MEMORY = "from-memory"

    @property
    def label(self) -> str:
        """The kind in words, for counts of them."""
        return self.value.replace("-", " ")


NOTES = frozenset({
    WarningKind.NOT_THE_FIRST, WarningKind.SEARCHED_AGAIN, WarningKind.PLACEHOLDERS_PUT_BACK, WarningKind.FROM_MEMORY,
})  # fmt: skip
"""Kinds that say what was done, not what looks wrong."""

OF_STAGES = NOTES | {
    WarningKind.PLACEHOLDERS_LOST, WarningKind.TERM_OUT_OF_PLACE, WarningKind.TERM_LEFT_OUT,
    WarningKind.NOT_TRANSLATED, WarningKind.LOW_CONFIDENCE,
}  # fmt: skip
"""Kinds that the stages of a translation tell of themselves; the others come from checks of the text."""

_SENTENCES = {
    WarningKind.EMPTY: "empty",
    WarningKind.REPETITION: "repetition: {} again and again",
    WarningKind.SOURCE_ECHOED: "source echoed",
    WarningKind.TOO_LONG: "far too long: {}",
    WarningKind.TOO_SHORT: "far too short: {}",
    WarningKind.NUMBERS_LOST: "numbers lost: {}",
    WarningKind.NUMBERS_ADDED: "numbers added: {}",
    WarningKind.UNITS_LOST: "units lost: {}",
    WarningKind.SENTENCES_LOST: "sentences lost: {}",
    WarningKind.QUESTIONS_LOST: "questions lost: {}",
    WarningKind.WORD_DOUBLED: "doubled word: {}",
    WarningKind.MARKS_LOST: "{} lost",
    WarningKind.TARGET_LANGUAGE: "translation is {}",
    WarningKind.SOURCE_LANGUAGE: "source is {}",
    WarningKind.SOURCE_SCRIPT: "source is in {}",
    WarningKind.SOURCE_CAPITALS: "source in capitals",
    WarningKind.UNKNOWN_WORDS: "unknown to the model: {}",
    WarningKind.PLACEHOLDERS_LOST: "placeholders lost",
    WarningKind.TERM_OUT_OF_PLACE: "term perhaps out of place: {}",
    WarningKind.TERM_LEFT_OUT: "term left out: {}",
    WarningKind.NOT_TRANSLATED: "not translated: {}",
    WarningKind.LOW_CONFIDENCE: "low confidence: {}",
    WarningKind.NOT_THE_FIRST: "not the most probable translation, which looks worse",
    WarningKind.SEARCHED_AGAIN: "searched again without repetitions",
    WarningKind.PLACEHOLDERS_PUT_BACK: "placeholders put back",
    WarningKind.FROM_MEMORY: "from the memory",
}


@dataclass(frozen=True)
class Warning:
    """A warning of a translation, or a note on how it came about; as text the sentence that people read.

    >>> str(Warning(WarningKind.NUMBERS_LOST, "13"))
    'numbers lost: 13'
    """

    kind: WarningKind
    detail: str = ""
    place: tuple[int, int] | None = None
    """Characters of the source, from and to, that it is about; None: all of them."""

    @property
    def is_fault(self) -> bool:
        """True for what checks of the text have found; the stages of a translation tell the others of themselves."""
        return self.kind not in OF_STAGES

    @property
    def is_note(self) -> bool:
        """True where nothing looks wrong."""
        return self.kind in NOTES

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format(self.detail)

    def record(self) -> dict[str, Any]:
        """The warning for JSON: its kind, its sentence, and its detail and place where it has these."""
        rest = {"detail": self.detail, "place": self.place and list(self.place)}
        return {"kind": str(self.kind), "text": str(self), **{name: value for name, value in rest.items() if value}}


def doubts(warnings: Iterable[Warning]) -> list[Warning]:
    """The warnings that are no notes, each sentence once."""
    return list({str(one): one for one in warnings if not one.is_note}.values())
