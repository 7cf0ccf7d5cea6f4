"""A run directory of weights that were not trained there: imported, averaged, with another vocabulary."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from dragoman import config
from dragoman.runs import checkpoint
from dragoman.runs.directory import CONFIG
from dragoman.runs.log import RunLog

STEP = 0
"""Of the one checkpoint: nothing was trained here."""


def write_run(out: Path, recipe: Any, weights: Mapping[str, Tensor], how: str, of: Any, key: str | None = None) -> None:
    """Write recipe, log and checkpoint into the new folder `out`; what it reads and writes with is to be added.

    `how` and `of` say where the weights come from, in the log and (as `key`) in the checkpoint.
    """
    out.mkdir(parents=True)
    (out / CONFIG).write_text(config.to_yaml(recipe), encoding="utf-8")
    with RunLog(out, tensorboard=False) as log:
        log.event(how, of=of)
    checkpoint.save(out, STEP, {"model": dict(weights)}, {"step": STEP, key or how: of})
