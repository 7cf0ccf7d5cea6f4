"""A model made of several: the mean of the weights of runs that began alike.

Runs that were trained on from the same weights (`--init-from`), with other seeds or on other text, end near each
other. The mean of their weights can translate better than each run, at the cost of a single model (Wortsman et al.
2022, "Model soups"). The mean of runs that began apart is of no use: `--ensemble` is for them.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.alignment.learnt_memory import copy_links
from dragoman.errors import Error, writing
from dragoman.inference.classifier import LABELS
from dragoman.languages.codes import tag_of
from dragoman.runs import checkpoint
from dragoman.runs.directory import check_run_dir, tokenizer_files
from dragoman.runs.new_run import write_run
from dragoman.tasks import recipes
from dragoman.training.ema import mean


def average(runs: Sequence[str | Path], out: Path, which: str = "best") -> Path:
    """Write the new run directory `out`: what the first run is, with the mean of the weights of all, as to be used.

    `which`: the checkpoint of each, `best`, `last` or a step. It can do what a run can but train on: begin another run
    with it (`--init-from`). Returns `out`.

    Raises DragomanError where `out` is there, or runs differ in what they are built of or in what they read and write.
    """
    if len(runs) < 2:
        raise Error.TOO_FEW("a mean takes two runs or more")
    if out.exists():
        raise Error.ALREADY_THERE("is there already", "name a new run directory", file=out)
    paths = [check_run_dir(run) for run in runs]
    for other in paths[1:]:
        _require_alike(paths[0], other)
    chosen = [checkpoint.select(path, which) for path in paths]
    shapes = [checkpoint.inference_shapes(path) for path in chosen]
    for held, path in zip(shapes, chosen, strict=True):
        checkpoint.require_equal_shapes(shapes[0], held, str(path))
    weights = [checkpoint.load_inference_weights(path) for path in chosen]
    digests = {str(path): checkpoint.inference_digest(path) for path in chosen}
    with writing(out):
        settings = replace(recipes.of_run(paths[0]), run_dir=str(out), adapter=None)
        write_run(out, settings, mean(weights), "mean", digests, key=checkpoint.MEAN_OF)
        for name in ("tokenizer", LABELS):
            if (paths[0] / name).is_dir():
                shutil.copytree(paths[0] / name, out / name)
            elif (paths[0] / name).is_file():
                shutil.copyfile(paths[0] / name, out / name)
        copy_links(paths[0], out)
    return out


def _require_alike(first: Path, other: Path) -> None:
    """Raises DragomanError unless both runs are of one model, tokenizer, labels and languages."""
    if differences := config.changes(_kind(first), _kind(other)):
        text = "; ".join(f"{key}: {before!r} -> {now!r}" for key, before, now in differences)
        raise Error.MISMATCH(f"is another model than {first} ({text}): there is no mean of both", file=other)
    if tokenizer_files(first) != tokenizer_files(other) or _labels(first) != _labels(other):
        raise Error.MISMATCH(
            f"its vocabulary or labels are others than those of {first}: there is no mean of both. Have one begin "
            "with the other's weights (`init_from`) and reuse its tokenizer (tokenizer={type: reuse, run: ...})",
            file=other,
        )


def _kind(run: Path) -> dict[str, Any]:
    """The settings that say what a model computes; dropout is of training alone."""
    data = config.to_dict(recipes.of_run(run))
    model = {name: value for name, value in data["model"].items() if not name.endswith("dropout")}
    languages = {name: tag_of(data["corpus"].get(name, "")) for name in ("src_lang", "tgt_lang")}
    return {"task": data["task"], "model": model, "corpus": languages}


def _labels(run: Path) -> bytes:
    return (run / LABELS).read_bytes() if (run / LABELS).is_file() else b""
