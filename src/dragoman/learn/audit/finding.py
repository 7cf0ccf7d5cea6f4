"""A fault that the audit has found, in one sentence."""

from dataclasses import dataclass, field
from typing import Any

from dragoman.learn.audit.trace import Place
from dragoman.learn.language import translated


@dataclass(frozen=True)
class Finding:
    """A fault: its kind, the sentence with the number that was measured, and the learner's line where there is one."""

    fault: str
    text: str
    place: Place | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> int | None:
        return self.place[1] if self.place else None

    @property
    def sentence(self) -> str:
        return translated(self.text).format(**self.values)

    def __str__(self) -> str:
        return f"{self.place[0]}:{self.place[1]}: {self.sentence}" if self.place else self.sentence


def number(value: float) -> str:
    return f"{value:.2g}"
