"""The state of a training: all that must survive its process, besides tensors and pace.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dragoman.training.schedules import Schedule
from dragoman.training.window import Window


@dataclass(kw_only=True)
class TrainingState:
    """The place where a training stands. A checkpoint's state.json holds every field, so a new field is saved too."""

    step: int = 0
    best_step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    """The figures of the best validation (`Validation.ranked_by`), empty before the first."""
    bad_validations: int = 0
    """Validations since the best one."""
    skipped: int = 0
    rollbacks: int = 0
    schedule: Schedule
    window: Window = field(default_factory=Window)
    precision: str
    """The number format that the training began in, whatever `auto` is where it goes on."""

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON can hold it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {"schedule": self.schedule.state_dict(), "window": self.window.state_dict()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], schedule: Schedule) -> "TrainingState":
        """The state that `to_dict` made plain; what a checkpoint says beyond it is for people to read."""
        values = {each.name: saved[each.name] for each in fields(cls)}
        schedule.load_state_dict(values["schedule"])
        window = Window()
        window.load_state_dict(values["window"])
        return cls(**{**values, "schedule": schedule, "window": window})
