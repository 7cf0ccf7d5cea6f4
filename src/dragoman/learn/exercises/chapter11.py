"""Chapter 11: training."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_rates() -> list[float]:
    """Predict what this code returns: learning rates at steps 200 and 1600, as shares of the rate at step 400."""
    warmup = 400

    def rate(step: int) -> float:
        return min(step**-0.5, step * warmup**-1.5)

    return [rate(200) / rate(400), rate(1600) / rate(400)]


def clip(gradients: list[Tensor], max_norm: float) -> list[Tensor]:
    """Scale gradients so that the norm of all of them together is at most `max_norm`. Fill in the gap ____.

    Gradients whose norm is smaller stay as they are.
    """
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    scale = min(1.0, max_norm / norm)
    return [gradient * scale for gradient in gradients]


def noam(step: int, d_model: int, warmup: int) -> float:
    """Compute the paper's learning rate: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5). Steps count from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def smooth(target: int, vocab: int, epsilon: float) -> Tensor:
    """Make the smoothed target distribution, (vocab): 1 - epsilon at the target, and epsilon spread over all entries,
    the target among them."""
    distribution = torch.full((vocab,), epsilon / vocab)
    distribution[target] += 1 - epsilon
    return distribution


def smooth_without_pad(target: int, vocab: int, epsilon: float, pad: int) -> Tensor:
    """Make the annotated notebook's target: 1 - epsilon at the target, epsilon spread over all but target and padding.

    Where the target itself is padding, all of it is 0: nothing is asked for.
    """
    distribution = torch.full((vocab,), epsilon / (vocab - 2))
    distribution[target] = 1 - epsilon
    distribution[pad] = 0.0
    return torch.zeros(vocab) if target == pad else distribution


STEPS = 200


def schedule(step: int) -> float:
    """Choose a learning rate for each step, from 1 to 200, with which noisy gradient descent ends at a low loss.

    The loss is 25 x^2 + y^2 / 2, from (1, 1). Each gradient has noise of standard deviation 1 in x and 0.2 in y. The mean
    loss after step 200, of 50 trainings, has to be below 0.006.
    """
    return 0.03 if step < 130 else 0.03 * (201 - step) / 70


def grade_schedule(answer: Callable[[int], float]) -> None:
    rates = [float(answer(step)) for step in range(1, STEPS + 1)]
    if not all(math.isfinite(rate) and rate >= 0 for rate in rates):
        raise Wrong(message("a rate is a finite number, and not negative"))
    loss, steep, flat = noisy_descent(rates)
    values = {"loss": f"{loss:.3g}", "steep": f"{steep:.3g}", "flat": f"{flat:.3g}", "rate": f"{max(rates):.3g}"}
    if loss < 0.006:
        return
    if steep > 1 or not math.isfinite(loss):
        raise Wrong(
            message("the loss ends at {loss}: a rate of {rate} is too high for x, whose steps overshoot", **values)
        )
    if flat > steep:
        raise Wrong(
            message("the loss ends at {loss}, {flat} of it in y: the rates are too low for y to get there", **values)
        )
    text = (
        "the loss ends at {loss}, {steep} of it in x: the noise of the last steps stays; let the rate fall at the end"
    )
    raise Wrong(message(text, **values))


def noisy_descent(rates: list[float]) -> tuple[float, float, float]:
    """The mean loss at the end of 50 trainings, and its parts in x and in y."""
    torch.manual_seed(1)
    x = y = torch.ones(50, dtype=torch.float64)
    for rate in rates:
        x = x - rate * (50 * x + torch.randn(50, dtype=torch.float64))
        y = y - rate * (y + 0.2 * torch.randn(50, dtype=torch.float64))
    steep, flat = float((25 * x.square()).mean()), float((y.square() / 2).mean())
    return steep + flat, steep, flat


def draw_gradients(rng: random.Random) -> tuple[Any, ...]:
    gradients = [torch.randn(rng.randrange(1, 4), rng.randrange(1, 4)) for _ in range(rng.randrange(1, 4))]
    return gradients, rng.choice([0.1, 1.0, 2.0, 50.0])


def draw_step(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([rng.randrange(1, 300), rng.randrange(400, 9000)]), rng.choice([128, 512]), rng.choice([350, 390])


def draw_target(rng: random.Random) -> tuple[Any, ...]:
    vocab = rng.randrange(3, 9)
    return rng.randrange(0, vocab), vocab, rng.uniform(0.05, 0.4)


def draw_padded(rng: random.Random) -> tuple[Any, ...]:
    target, vocab, epsilon = draw_target(rng)
    return target, vocab, epsilon, rng.choice([0, 0, 1, target])


EXERCISES = [
    Exercise(11, predict_rates),
    Exercise(11, clip, draw_gradients, gap="min(1.0, max_norm / norm)"),
    Exercise(11, noam, draw_step),
    Exercise(11, smooth, draw_target),
    Exercise(11, smooth_without_pad, draw_padded),
    Exercise(11, schedule, grade=grade_schedule),
]
