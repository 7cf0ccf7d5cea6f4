"""A new run directory: of a recipe to be trained, or of weights from elsewhere (imported, averaged, changed)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from dragoman import config
from dragoman.errors import Error, writing
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.atomic_io import read_json, read_yaml
from dragoman.runs.directory import CONFIG
from dragoman.runs.log import RunLog

MAY_CHANGE = ("training.max_", "training.min_improvement", "training.validate_every", "training.validate_seconds",
              "training.validation_beam_size", "training.patience", "training.keep_", "training.log_every",
              "training.loggers", "training.samples", "training.not_finite", "training.compile", "decoding",
              "evaluation", "corpus.test", "corpus.doctor", "run_dir", "device", "workers")  # fmt: skip
"""Settings that a run in progress may be given anew; any other difference makes it another run."""

ANOTHER = "choose another run_dir=..."

IDENTITY = "identity.json"
"""File of a run directory: what the run is trained on, by content."""

UNTRAINED_STEP = 0
"""Of the one checkpoint: nothing was trained here."""


def write_run(
    out: Path,
    recipe: Any,
    weights: Mapping[str, Tensor],
    how: str,
    of: Any,
    *,
    key: str | None = None,
    state: Mapping[str, Any] | None = None,
) -> None:
    """Write recipe, log and checkpoint into the new folder `out`; what it reads and writes with is to be added.

    `how` and `of` say where the weights come from, in the log and (as `key`) in the checkpoint; `state`: more for that.
    """
    out.mkdir(parents=True)
    atomic_io.write_text(out / CONFIG, config.to_yaml(recipe))
    with RunLog(out, loggers=()) as log:
        log.event(how, of=of)
    checkpoint.save(
        out, UNTRAINED_STEP, {"model": dict(weights)}, {"step": UNTRAINED_STEP, key or how: of, **(state or {})}
    )


def init_run_dir(run_dir: Path, recipe: Any, identity: Mapping[str, str]) -> None:
    """Make a run directory with its config.yaml and identity.json, or see that it is this recipe's.

    `identity`: SHA-256 of what the run is trained on, by the setting that names it. Raises DragomanError listing every
    difference when the directory belongs to a run with other settings or another corpus; the directory is then as it
    was.
    """
    require_same_run(run_dir, recipe, identity)
    with writing(run_dir, ANOTHER):
        run_dir.mkdir(parents=True, exist_ok=True)
        atomic_io.replace_text(run_dir / CONFIG, config.to_yaml(recipe))
        atomic_io.replace_text(run_dir / IDENTITY, atomic_io.to_json(identity))


def require_same_run(run_dir: Path, recipe: Any, identity: Mapping[str, str]) -> None:
    """Raises DragomanError for a run directory that `init_run_dir` refuses."""
    if checkpoint.list_checkpoints(run_dir) and (refused := _differences(run_dir, recipe, identity)):
        is_other_model = any(key.partition(".")[0] in ("task", "model", "tokenizer") for key in refused)
        from_here = "" if is_other_model else f" that begins with the weights of this one: `init_from` {run_dir}"
        raise Error.OTHER_CONTENT(
            f"holds a run with other settings ({'; '.join(refused.values())})",
            f"take those, or {ANOTHER}{from_here}",
            file=run_dir,
        )
    if recipe.training.max_epochs is None:  # whose steps are known when the corpus is read
        _refuse_fewer_steps(run_dir, recipe.training.max_steps)


def _refuse_fewer_steps(run_dir: Path, max_steps: int) -> None:
    """Raises DragomanError for a recipe that ends before the step that the run stands at."""
    path, written = checkpoint.newest(run_dir), run_dir / CONFIG
    if path is None or (done := checkpoint.step_of(path)) <= max_steps or not written.exists():
        return
    if read_yaml(written).get("training", {}).get("max_steps") != max_steps:
        raise Error.OUT_OF_RANGE(
            f"training.max_steps={max_steps}: {run_dir} has done {done:,} steps already",
            f"give as many or more, or {ANOTHER}",
        )


def _differences(run_dir: Path, recipe: Any, identity: Mapping[str, str]) -> dict[str, str]:
    """The differences of the recipe from that of the run directory, which holds checkpoints, by their setting.

    Files are compared by their bytes, so that a corpus may be moved. A run from before these were recorded is
    told by the names of its files.
    """
    path = run_dir / CONFIG
    written = read_yaml(path)
    if (task := written.get("task", "translation")) != recipe.task:
        return {"task": f"task: {task!r} -> {recipe.task!r}"}
    # A setting that is newer than the run takes today's default. So to change a default is to change what old runs
    # do when they go on, and CHANGELOG.md must name it.
    old = config.to_dict(config.parse(type(recipe), written, str(path)))
    recorded = read_json(run_dir / IDENTITY, dict) if (run_dir / IDENTITY).exists() else {}
    differences = config.changes(old, config.to_dict(recipe))
    changed = {key: f"{key}: {before!r} -> {now!r}" for key, before, now in differences}
    for key, digest in identity.items():
        if recorded.get(key) == digest:
            changed.pop(key, None)
        elif key in recorded:
            changed.setdefault(key, f"{key}: other content than the run was trained on")
    return {key: text for key, text in changed.items() if not key.startswith(MAY_CHANGE)}
