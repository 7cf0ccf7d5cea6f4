"""The way from the first step of a training to its last, and the clock that may move the last.

Without a time budget a training has `max_steps` steps. With one, the steps that the time allows are estimated anew
every few seconds, and what is left of the learning-rate schedule is stretched or squeezed over them: the rate goes on
from where it is, without a jump, and ends where the schedule wants it to end, at the step that is really the last.

The clock is not the same in two runs. So what it decided is in RUN/pace.json before a step is taken by it: a training
that is killed takes the same steps again, and the clock decides only about those beyond.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.runs import atomic_io
from dragoman.training.config import TrainingConfig

TIME_BUDGET_FILE = "pace.json"
"""Its name since the first version: half-done runs have it."""

REESTIMATE_SHARE = 0.05
"""The time until the next estimate, as a share of the time that is left."""
MIN_REESTIMATE_INTERVAL_S = 0.5
MAX_SPEED_SAMPLES = 3
"""Estimates back in time that the speed is measured over."""

MIN_VALIDATION_INTERVAL_SHARE = 0.2
"""Validations by the clock come no more often than after this share of the time that is spent."""
MAX_VALIDATION_SHARE = 0.1
"""The share of the time that validations by the clock may take."""
SAVE_S, SAVE_SHARE, SAVE_COST = 30.0, 0.05, 0.02
"""A checkpoint is written after so many seconds, after this share of the time that is spent, and takes at most this
share of it: so a kill loses a twentieth of the work, or half a minute of it."""


@dataclass(frozen=True)
class ScheduleStretch:
    """After `step` steps a training stood at step `at` of its schedule; after `end` steps it will stand at `end_at`.

    The fields have the names that they have in pace.json.
    """

    step: int
    at: float
    end: int
    end_at: int


@dataclass
class Deadline:
    """A point in time by which a training has to be over, on the clock of `time.monotonic`."""

    time: float
    seconds_per_step: float
    """Estimates of the trial before the first step, until there are measurements."""
    seconds_per_validation: float
    after: Callable[[float], float] = lambda slower: 0.0
    """Seconds that have to be left after the last validation; it is given how many times longer than it was estimated
    a validation took."""


@dataclass
class TimeBudget:
    """Where a training ends, where on its schedule each step stands, and when it validates and saves by the clock."""

    config: TrainingConfig
    run_dir: Path
    deadline: Deadline | None = None
    clock: Callable[[], float] = time.monotonic
    stretches: list[ScheduleStretch] = field(default_factory=list)
    validations: list[int] = field(default_factory=list)
    """Steps after which the clock asked for a validation."""
    writes: bool = True
    """False: another process keeps pace.json."""

    def __post_init__(self) -> None:
        if (self.run_dir / TIME_BUDGET_FILE).exists():
            self._read(self.run_dir / TIME_BUDGET_FILE)
        self.seconds_per_validation = self.deadline.seconds_per_validation if self.deadline else 0.0
        self.seconds_per_save = 0.0
        self.speed_samples: deque[tuple[int, float]] = deque(maxlen=MAX_SPEED_SAMPLES)
        self._start_clock(0, 0.0)

    def start(self, step: int, elapsed_s: float) -> None:
        """Begin, or go on, after `step` steps and `elapsed_s` seconds of training."""
        self._start_clock(step, elapsed_s)
        # The recipe may have been given another length since.
        if self.stretches and self.stretches[-1].end_at != self.config.max_steps:
            self._add_stretch(step, math.ceil(self.config.max_steps - self.schedule_step(step)))
        self.reestimate(step)

    def _start_clock(self, step: int, elapsed_s: float) -> None:
        now = self.clock()
        self.began = now - elapsed_s
        self.validated_at = self.saved_at = now
        self.pauses = 0.0
        self.next_estimate = now
        self.speed_samples.clear()
        self.speed_samples.append((step, now))

    @property
    def end(self) -> int:
        """The number of steps of the whole training, as it is planned now."""
        if not self.stretches:
            return self.config.max_steps
        # `max_steps` and `end_at` were equal when the stretch began.
        return self.stretches[-1].end + self.config.max_steps - self.stretches[-1].end_at

    def schedule_step(self, step: int) -> float:
        """The step of the schedule that a step of the training stands at: the same, where no clock has moved the end.

        >>> stretches = [ScheduleStretch(step=40, at=40.0, end=70, end_at=100)]
        >>> budget = TimeBudget(TrainingConfig(max_steps=100), Path("nowhere"), stretches=stretches)
        >>> budget.schedule_step(40), budget.schedule_step(55), budget.schedule_step(70)
        (40, 70.0, 100.0)
        """
        stretch = next((stretch for stretch in reversed(self.stretches) if stretch.step < step), None)
        if stretch is None:
            return step
        done = (step - stretch.step) / (stretch.end - stretch.step)
        return stretch.at + (stretch.end_at - stretch.at) * done

    def reestimate(self, step: int) -> bool:
        """Estimate anew, after a step, how many the deadline still allows, if it is time to; True if it was."""
        if self.deadline is None or step < self._decided() or (step >= self.end and self.stretches):
            return False
        now = self.clock()
        if now < self.next_estimate:
            return False
        left = self.deadline.time - now - self._after() - self._validations_to_come(now)
        self._add_stretch(step, round(left / self._seconds_per_step(step, now)))
        self.speed_samples.append((step, now - self.pauses))
        self.next_estimate = now + max(MIN_REESTIMATE_INTERVAL_S, REESTIMATE_SHARE * left)
        return True

    def plain_stretches(self) -> list[dict[str, Any]]:
        """The stretches as JSON can hold them."""
        return [asdict(stretch) for stretch in self.stretches]

    def should_validate(self, step: int) -> bool:
        """True if the training is validated after this step: by its number, at the end, or by the clock."""
        if step % self.config.validate_every == 0 or step == self.end or step in self.validations:
            return True
        now = self.clock()
        if step < self._decided() or now - self.validated_at < self._interval(now):
            return False
        self.validations.append(step)
        self._write()
        return True

    def should_save(self) -> bool:
        """True if the last checkpoint was written so long ago that a kill would lose too much."""
        now = self.clock()
        wait = max(SAVE_S, SAVE_SHARE * (now - self.began), self.seconds_per_save / SAVE_COST)
        return now - self.saved_at >= wait

    def validated(self, seconds: float) -> None:
        """Take note of a validation that is over."""
        self.seconds_per_validation, self.validated_at = seconds, self.clock()
        self.pauses += seconds

    def saved(self, seconds: float) -> None:
        """Take note of a checkpoint that is written."""
        self.seconds_per_save, self.saved_at = seconds, self.clock()
        self.pauses += seconds

    def _seconds_per_step(self, step: int, now: float) -> float:
        first_step, then = self.speed_samples[0]
        if step == first_step:
            assert self.deadline is not None
            return self.deadline.seconds_per_step
        return (now - self.pauses - then) / (step - first_step)

    def _after(self) -> float:
        """Seconds of the last validation and of what comes after it."""
        assert self.deadline is not None
        slower = self.seconds_per_validation / max(self.deadline.seconds_per_validation, 1e-9)
        return self.seconds_per_validation + self.seconds_per_save + self.deadline.after(slower)

    def _validations_to_come(self, now: float) -> float:
        """Seconds of the validations by the clock between now and the last one."""
        assert self.deadline is not None
        seconds, at, end = 0.0, self.validated_at, self.deadline.time - self._after()
        while (at := at + self._interval(at)) + seconds <= end:
            seconds += self.seconds_per_validation + self.seconds_per_save
        return seconds

    def _interval(self, now: float) -> float:
        """Seconds between two validations by the clock."""
        if self.config.validate_seconds is None:
            return math.inf
        share = self.seconds_per_validation / MAX_VALIDATION_SHARE
        return max(self.config.validate_seconds, MIN_VALIDATION_INTERVAL_SHARE * (now - self.began), share)

    def _decided(self) -> int:
        """The last step that something was decided after."""
        return max([stretch.step for stretch in self.stretches[-1:]] + self.validations[-1:], default=0)

    def _add_stretch(self, step: int, steps_left: int) -> None:
        stretch = ScheduleStretch(step, self.schedule_step(step), step + max(1, steps_left), self.config.max_steps)
        self.stretches = [*(earlier for earlier in self.stretches if earlier.step < step), stretch]
        self._write()

    def _write(self) -> None:
        if not self.writes:
            return
        record = {"marks": self.plain_stretches(), "validations": self.validations}
        atomic_io.replace_text(self.run_dir / TIME_BUDGET_FILE, atomic_io.to_json(record))

    def _read(self, path: Path) -> None:
        record = atomic_io.read_json(path, dict)
        try:
            self.stretches = [ScheduleStretch(**stretch) for stretch in record["marks"]]
            self.validations = [int(step) for step in record["validations"]]
        except (KeyError, TypeError, ValueError) as error:
            raise Error.DAMAGED(f"damaged, it is no time budget of a training ({error!r})", file=path) from error
