"""Chapter 1: one sentence."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message
from dragoman.learn.one_sentence import train_one_sentence


def predict_first_loss() -> float:
    """Predict what this code returns: the loss of a model that finds all 8 tokens of its vocabulary equally probable.

    The natural logarithm of 2 is 0.693.
    """
    logits = torch.zeros(1, 8)
    target = torch.tensor([5])
    return F.cross_entropy(logits, target).item()


def descend(weight: Tensor, x: Tensor, y: Tensor, lr: float) -> Tensor:
    """Take one step of gradient descent: the weights after it. Fill in the gap ____.

    The model is `x @ weight`, its loss the mean of the squared errors. `lr` is the learning rate.
    """
    start = weight.clone().requires_grad_()
    loss = (x @ start - y).square().mean()
    (gradient,) = torch.autograd.grad(loss, start)
    return weight - lr * gradient


def shift(tgt: list[int], bos: int, eos: int) -> tuple[list[int], list[int]]:
    """Make what the decoder reads and what it must say of the ids of a target sentence: (tgt_in, tgt_out).

    Both are equally long. At each position the decoder has read <s> and the tokens before, and must say the next one;
    after the last token it must say </s>.
    """
    return [bos, *tgt], [*tgt, eos]


def settings() -> dict[str, Any]:
    """Choose settings with which 44 million parameters learn one sentence pair in 20 steps of Adam.

    The keys are norm_placement ("pre" or "post"), lr (the highest rate), warmup_steps (from 0 on) and dropout. The
    check builds d_model 512 with 6 + 6 layers, trains 20 steps, and asks for a loss below 0.1 at the last.
    """
    return {"norm_placement": "pre", "lr": 3e-4, "warmup_steps": 4, "dropout": 0.0}


def grade_settings(answer: Callable[[], dict[str, Any]]) -> None:
    """Train by them; say what is the likely cause where that fails."""
    values = answer()
    keys = {"norm_placement", "lr", "warmup_steps", "dropout"}
    if not isinstance(values, dict) or set(values) != keys:
        raise Wrong(message("a dict with the keys {keys} is asked for", keys=", ".join(sorted(keys))))
    if values["norm_placement"] not in ("pre", "post"):
        raise Wrong(message("norm_placement is pre or post, not {value}", value=repr(values["norm_placement"])))
    problem = settings_problem(train_one_sentence(seed=random.randrange(1000), **values), values)
    if problem:
        raise Wrong(problem)


def settings_problem(losses: list[float], values: dict[str, Any]) -> str:
    if losses[-1] < 0.1:
        return ""
    values_of_both = {"one": f"{losses[-2]:.2f}", "other": f"{losses[-1]:.2f}"}
    ending = message("{one} and {other}, and should end below 0.1", **values_of_both)
    if values["lr"] < 8e-6:
        return message("the losses end with {ending}: the rate is too low for 20 steps", ending=ending)
    if values["warmup_steps"] > 20:
        text = "the losses end with {ending}: the warm-up is longer than the training, which never reaches its rate"
        return message(text, ending=ending)
    if values["dropout"] > 0.3:
        return message(
            "the losses end with {ending}: so much dropout hides what is to be learnt by heart", ending=ending
        )
    if values["norm_placement"] == "post" and losses[-1] < 1:
        text = "the losses end with {ending}: it is learning, and twenty steps are too few for post-norm; try pre-norm"
        return message(text, ending=ending)
    if values["norm_placement"] == "post":
        text = "the losses end with {ending}: post-norm at this depth needs a lower rate and a warm-up, or pre-norm"
        return message(text, ending=ending)
    text = (
        "the losses end with {ending}: the rate is too high for this model; without a warm-up it throws weights far off"
    )
    return message(text, ending=ending)


def draw_regression(rng: random.Random) -> tuple[Any, ...]:
    rows, width = rng.randrange(1, 7), rng.randrange(1, 5)
    return torch.randn(width), torch.randn(rows, width), torch.randn(rows), rng.uniform(0.05, 0.5)


def draw_target(rng: random.Random) -> tuple[Any, ...]:
    bos, eos = rng.sample(range(4), 2)
    return [rng.randrange(4, 50) for _ in range(rng.randrange(1, 8))], bos, eos


EXERCISES = [
    Exercise(1, predict_first_loss),
    Exercise(1, descend, draw_regression, gap="weight - lr * gradient"),
    Exercise(1, shift, draw_target),
    Exercise(1, settings, grade=grade_settings, seconds=300.0),
]
