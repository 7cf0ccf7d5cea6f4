"""Chapter 11: training."""

import random
from typing import Any

import torch
from torch import Tensor

from dragoman.learn.exercise import Exercise


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


def draw_step(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([rng.randrange(1, 300), rng.randrange(400, 9000)]), rng.choice([128, 512]), 350


def draw_target(rng: random.Random) -> tuple[Any, ...]:
    return rng.randrange(1, 7), 7, rng.uniform(0.05, 0.4)


def draw_padded(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([0, rng.randrange(1, 7), rng.randrange(1, 7)]), 7, rng.uniform(0.05, 0.4), 0


RATE = "d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)"
EXERCISES = [
    Exercise(
        11,
        noam,
        draw_step,
        [
            ("min(", "max(", "the smaller of the two is taken: with max the first steps are the largest"),
            ("step * warmup**-1.5", "step * warmup**-1.6", "the exponent of the warm-up is -1.5"),
            (RATE, "min(step**-0.5, step * warmup**-1.5)", "d_model^-0.5 is missing"),
            ("d_model**-0.5", "d_model**0.5", "d_model's exponent is -0.5: wide models take small steps"),
            (RATE, "d_model**-0.5 * step**-0.5", "there is no warm-up"),
            (RATE, "d_model**-0.5 * step * warmup**-1.5", "the rate never falls"),
            ("min(step**-0.5,", "min(step**-1.0,", "the rate falls as step^-0.5"),
            (
                RATE,
                "d_model**-0.5 * min((step - 1 or 1) ** -0.5, (step - 1) * warmup**-1.5)",
                "steps count from 1: the first has a rate of its own, not 0",
            ),
            (
                RATE,
                "d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)",
                "the rate is that of the next step",
            ),
            ("d_model**-0.5", "d_model**-1.0", "d_model's exponent is -0.5, not -1"),
        ],
    ),
    Exercise(
        11,
        smooth,
        draw_target,
        [
            (
                "epsilon / vocab",
                "epsilon / (vocab - 1)",
                "epsilon is spread over all entries, V of them: this sums to more than 1",
            ),
            ("epsilon / vocab", "epsilon", "epsilon is spread over the entries: divide by their number"),
            ("epsilon / vocab", "0.0", "nothing is given to the others: the sum is 1 - epsilon"),
            ("+= 1 - epsilon", "= 1 - epsilon", "the target keeps its own share of epsilon too"),
            ("+= 1 - epsilon", "+= 1.0", "the target gets 1 - epsilon, and this sums to 1 + epsilon"),
            ("+= 1 - epsilon", "+= epsilon", "the target gets 1 - epsilon, not epsilon"),
            ("distribution[target]", "distribution[target - 1]", "that is the entry before the target"),
            ("distribution[target]", "distribution[(target + 1) % vocab]", "that is the entry after the target"),
            ("return distribution", "return distribution.log()", "a distribution is asked for, not its logarithm"),
            ("return distribution", "return distribution.softmax(0)", "it is a distribution already: no softmax"),
        ],
    ),
    Exercise(
        11,
        smooth_without_pad,
        draw_padded,
        [
            ("(vocab - 2)", "(vocab - 1)", "two entries get no share of epsilon, target and padding: divide by V - 2"),
            ("(vocab - 2)", "vocab", "epsilon is shared by V - 2 entries"),
            (
                "distribution[target] = 1",
                "distribution[target] += 1",
                "the target has 1 - epsilon and no share of epsilon",
            ),
            ("distribution[pad] = 0.0", "pass", "padding gets a share: a model learns to say <pad>"),
            (
                "torch.zeros(vocab) if target == pad else distribution",
                "distribution",
                "where the target is padding the row is all zeros",
            ),
            ("= 1 - epsilon", "= 1.0", "the target has 1 - epsilon"),
            ("distribution[pad] = 0.0", "distribution[-1] = 0.0", "padding is the entry `pad`, not the last one"),
            (
                "torch.zeros(vocab) if target == pad else distribution",
                "distribution / max(float(distribution.sum()), 1e-9)",
                "where the target is padding the row is all zeros, and is not divided by its sum",
            ),
            (
                "distribution[target] = 1 - epsilon",
                "distribution[target] = epsilon",
                "the target has 1 - epsilon, not epsilon",
            ),
            ("epsilon / (vocab - 2)", "0.0", "nothing is given to the other entries"),
        ],
    ),
]
