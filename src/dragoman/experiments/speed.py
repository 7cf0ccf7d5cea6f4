"""The speed of training on this machine, from a few steps of two small models on random ids."""

import math
import time

import numpy as np

from dragoman import config
from dragoman.device import threads_for
from dragoman.experiments.bench.batches import subject
from dragoman.progress import say
from dragoman.tasks.auto_recipe import settings_of
from dragoman.tasks.sizes import Speed, TrainingSize
from dragoman.tasks.translation.job import TranslationRecipe

SMALL = TrainingSize(6_000, 128, 4, 2, 0.05, 2048, 1, 5e-3)
LARGE = TrainingSize(8_000, 256, 4, 2, 0.05, 2048, 1, 3e-3)
"""Two models of different cost: they tell what a token costs by itself, and what an operation costs."""
SHORT_BUDGET_S, TOKEN_TIME_SHARE = 120.0, 0.3
"""In a shorter budget only the small model is measured; this share of its time is taken for that of tokens, an
estimate."""
WARM_UP_STEPS = 3
MIN_MEASURED_S = 1.0
"""Time of the measured steps of a model, at least."""
MIN_STEPS = 4


def measured_speed(device: str, budget_s: float) -> Speed:
    """The time of a training per token and per operation, measured in a few seconds."""
    say("measuring the speed of this machine")
    small = _seconds_per_token(SMALL, device)
    if budget_s < SHORT_BUDGET_S:
        return Speed(TOKEN_TIME_SHARE * small, (1 - TOKEN_TIME_SHARE) * small / SMALL.operations)
    large = _seconds_per_token(LARGE, device)
    per_operation = max((large - small) / (LARGE.operations - SMALL.operations), 0.2 * small / SMALL.operations)
    return Speed(max(small - per_operation * SMALL.operations, 0.1 * small), per_operation)


def _seconds_per_token(size: TrainingSize, device: str) -> float:
    data = {
        "run_dir": "speed",
        "device": device,
        "corpus": {
            "src_lang": "src",
            "tgt_lang": "tgt",
            "train": {"type": "demo", "split": "train"},
            "valid": {"type": "demo", "split": "valid"},
        },
        **settings_of(size),
    }
    recipe = config.parse(TranslationRecipe, data, "the probe")
    with threads_for(size.batch_tokens * size.d_model), subject(recipe, synthetic=True) as trainer:
        for step in range(1, WARM_UP_STEPS + 1):
            trainer.train_step(step)
        times, tokens, step = list[float](), 0, WARM_UP_STEPS
        while len(times) < MIN_STEPS or math.fsum(times) < MIN_MEASURED_S:
            step += 1
            started = time.monotonic()
            tokens += trainer.train_step(step)[2]
            times.append(time.monotonic() - started)
    return float(np.median(times)) * len(times) / tokens
