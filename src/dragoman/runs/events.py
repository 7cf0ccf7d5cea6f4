"""The events of a run, as they stand in metrics.jsonl, an object a line: reading them needs no PyTorch."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import Error

Event = dict[str, Any]

METRICS = "metrics.jsonl"

Rank = tuple[float, ...]

UNRANKED: Rank = (-math.inf, -math.inf)
"""The rank of what was never validated: below every other."""

LOWER_IS_BETTER = ("loss", "perplexity", "bits_per_character")

MIN_MEANINGFUL_BLEU = 1.0
"""BLEU below this is noise: a model that begins to learn may lose it while everything else improves."""


def goodness(figures: Mapping[str, float], name: str) -> float:
    """A figure of a validation as a number of which higher is better; of BLEU below 1 there is nothing to tell.

    >>> goodness({"loss": 2.5}, "loss"), goodness({"bleu": 0.4}, "bleu"), goodness({"bleu": 20.0}, "bleu")
    (-2.5, 0.0, 20.0)
    """
    value = figures[name]
    if name in LOWER_IS_BETTER:
        return -value
    is_bleu = name == "bleu" or (name == "score" and value == figures.get("bleu"))
    return 0.0 if is_bleu and value < MIN_MEANINGFUL_BLEU else value


def rank(validation: Mapping[str, Any]) -> Rank:
    """The key to compare validations by: its own `rank` (`Validation.ranked_by`), the first figure first.

    Without one (of an earlier version) the higher `score` is better, and of equal scores the lower `loss`; either may
    be missing. Scores do tie: a small validation set that is answered without a fault is answered so again and again,
    while the loss still falls.

    >>> max({"score": 100.0, "loss": 0.3}, {"score": 100.0, "loss": 0.1}, {"score": 99.0, "loss": 0.0}, key=rank)
    {'score': 100.0, 'loss': 0.1}
    """
    if validation.get("rank"):
        return tuple(validation["rank"])
    score, loss = validation.get("score"), validation.get("loss")
    return (-math.inf if score is None else float(score), -math.inf if loss is None else -float(loss))


def read_events(path: str | Path) -> list[Event]:
    """The events of a metrics.jsonl, in the order in which they were logged.

    A last line that was cut off (the run was killed, or is writing it right now) is left out. Raises DragomanError
    when the file is missing or cannot be read, and when any other line is not an event.
    """
    try:
        *lines, tail = Path(path).read_bytes().split(b"\n")
    except FileNotFoundError as error:
        raise Error.MISSING_FILE(
            "no such file", "is this a run directory, and has its training begun?", file=path
        ) from error
    except OSError as error:
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror}", file=path) from error
    events = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        event = parsed(line)
        if event is None:
            raise Error.WRONG_SHAPE(
                "not an event (a JSON object with `event`)", "mend or delete this line", file=path, line=number
            )
        events.append(event)
    last = parsed(tail)
    return [*events, last] if last is not None else events


def without_repeats(events: Iterable[Event]) -> list[Event]:
    """`events` less those that a resumed run logged again: where a kind of event goes back in steps, the later stay.

    >>> logged = [{"event": "train", "step": step} for step in (100, 200, 300, 200)]
    >>> [event["step"] for event in without_repeats(logged)]
    [100, 200]
    """
    kept: list[Event] = []
    lowest: dict[str, float] = {}  # per kind, the lowest step among the events that come later
    for event in reversed(list(events)):
        kind, step = str(event["event"]), place_of(event)
        if kind in REPEATED and isinstance(step, int | float):
            if step >= lowest.get(kind, math.inf):
                continue
            lowest[kind] = step
        kept.append(event)
    return kept[::-1]


def place_of(event: Event) -> Any:
    """The key of an event of a kind that is logged again: its step, but of a rollback, which goes back from any
    step, how many there were."""
    return event.get("rollbacks" if event["event"] == "rollback" else "step")


def best_validation(events: Iterable[Event]) -> Event | None:
    """The best validation (`rank`), the first of equals; None where none measured anything."""
    ranked = [(rank(event), event) for event in events if event["event"] == "valid"]
    return max((pair for pair in ranked if pair[0] > UNRANKED), key=lambda pair: pair[0], default=(UNRANKED, None))[1]


def last_event(events: Sequence[Event], kind: str) -> Event:
    """The last event of a kind; an empty one where there is none."""
    return next((event for event in reversed(events) if event["event"] == kind), {})


def parsed(line: bytes) -> Event | None:
    """The event on a line; None for half a line, and for a line that is no event."""
    try:
        value = json.loads(line)
    except ValueError:  # both half a JSON text and half a UTF-8 character
        return None
    return value if isinstance(value, dict) and "event" in value else None


SCALARS = {
    "train": ("loss", "lr", "tokens_per_s", "grad_norm", "loss_scale"),
    "valid": ("loss", "perplexity", "bleu", "chrf", "accuracy"),
}
"""The fields that TensorBoard draws, by kind of event."""

REPEATED = (*SCALARS, "checkpoint", "skip", "overflow", "rollback")
"""The kinds of events of single steps, which a run that goes on from an earlier step logs again."""
