"""A fault that the audit has found, in one sentence."""

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.learn.audit.trace import Place
from dragoman.learn.language import translated
from dragoman.runs.atomic_io import read_yaml


@functools.cache
def sentences() -> dict[str, str]:
    """The sentence of each fault, with places for the numbers that were measured."""
    return read_yaml(Path(__file__).with_name("faults.yaml"))


@dataclass(frozen=True)
class Finding:
    """A fault: the key of its sentence, the learner's line where there is one, and the numbers measured."""

    key: str
    place: Place | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def fault(self) -> str:
        """The fault's name: the key without the variant of its sentence."""
        return self.key.partition("/")[0]

    @property
    def line(self) -> int | None:
        return self.place[1] if self.place else None

    @property
    def sentence(self) -> str:
        return translated(sentences()[self.key]).format(**self.values)

    def __str__(self) -> str:
        return f"{self.place[0]}:{self.place[1]}: {self.sentence}" if self.place else self.sentence


def number(value: float) -> str:
    return f"{value:.2g}"
