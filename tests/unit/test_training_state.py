"""How a training takes note of its validations."""

import pytest

from dragoman.training.config import TrainingConfig
from dragoman.training.schedules import ConstantConfig
from dragoman.training.state import TrainingState, is_out_of_patience
from dragoman.training.task import Validation


def after(figures: list[float], min_improvement: float, best_by: tuple[str, ...] = ()) -> TrainingState:
    state = TrainingState(schedule=ConstantConfig().build(10, 8), precision="float32")
    for step, figure in enumerate(figures, start=1):
        state.step = step
        metrics = {"loss": 9.0 - figure / 10, "bleu": figure}
        state.observe(Validation(figure, metrics), best_by, min_improvement)
    return state


@pytest.mark.parametrize(("least", "waited", "best_step"), [(0.0, 0, 4), (0.5, 2, 4), (3.0, 3, 4)])
def test_patience_waits_for_as_much_as_it_is_told(least: float, waited: int, best_step: int) -> None:
    """Keras' `min_delta`, Hugging Face's `early_stopping_threshold`; the best checkpoint is the best all the same."""
    state = after([20.0, 21.0, 21.3, 21.5], least)
    assert (state.bad_validations, state.best_step) == (waited, best_step)
    assert is_out_of_patience(vars(state), TrainingConfig(patience=2)) == (waited >= 2)


def test_each_figure_waits_by_itself() -> None:
    state = after([20.0, 21.0, 21.3], 0.5, ("bleu", "loss"))
    assert state.stalled == {"bleu": 1, "loss": 2}
    assert state.peaks == {"bleu": 21.3, "loss": pytest.approx(-6.87)}
