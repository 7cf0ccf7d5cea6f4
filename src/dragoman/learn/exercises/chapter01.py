"""Chapter 1: one sentence."""

import random
from collections.abc import Callable
from typing import Any

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.one_sentence import train_one_sentence


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
        raise Wrong(f"settings: a dict with the keys {', '.join(sorted(keys))} is asked for")
    if values["norm_placement"] not in ("pre", "post"):
        raise Wrong(f"settings: norm_placement is pre or post, not {values['norm_placement']!r}")
    losses = train_one_sentence(seed=random.randrange(1000), **values)
    if losses[-1] < 0.1:
        return
    ending = f"the losses end with {losses[-2]:.2f}, {losses[-1]:.2f}"
    if values["lr"] < 8e-6:
        raise Wrong(f"settings: {ending}: the rate is too low for 20 steps")
    if values["warmup_steps"] > 20:
        raise Wrong(f"settings: {ending}: the warm-up is longer than the training, which never reaches its rate")
    if values["dropout"] > 0.3:
        raise Wrong(f"settings: {ending}: so much dropout hides what is to be learnt by heart")
    if values["norm_placement"] == "post":
        raise Wrong(f"settings: {ending}: post-norm at this depth needs a lower rate and a warm-up, or pre-norm")
    raise Wrong(f"settings: {ending}: the rate is too high for this model; without a warm-up it throws weights far off")


EXERCISES = [
    Exercise(1, shift, lambda rng: ([rng.randrange(4, 50) for _ in range(rng.randrange(2, 8))], 2, 3)),
    Exercise(1, settings, lambda rng: (), grade_settings),
]
