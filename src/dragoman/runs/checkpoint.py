"""Checkpoints: directories that are written atomically and verified by their hashes.

    RUN/checkpoints/step-00000800/
      model.safetensors       the weights              averaged.safetensors   their running average, where one is kept
      optimizer.safetensors   its moments              state.json             step, schedule, best score, patience ...
      MANIFEST.json           size and SHA-256 of each file, written last

One is written as `step-00000800.tmp`, synced and renamed. The newest one that verifies is the one a run goes on from;
no pointer file can be wrong. Nothing is pickled and nothing read from a checkpoint is executed.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dragoman.errors import DragomanError, Error
from dragoman.progress import say
from dragoman.runs import adapter, atomic_io
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG
from dragoman.runs.events import rank

_NAME = re.compile(r"step-(\d{8,})")
MANIFEST = "MANIFEST.json"
M = TypeVar("M", bound=nn.Module)
Complain = Callable[[str], None]
MEAN_OF = "mean_of"
"""The key, in the state of an averaged checkpoint (`experiments/model_soup.py`), for the checkpoints that it is the
mean of."""


def step_of(path: Path) -> int:
    """The step that a checkpoint's directory is named after; -1 for any other name."""
    named = _NAME.fullmatch(path.name)
    return int(named[1]) if named else -1


def checkpoints_dir(run_dir: Path) -> Path:
    return run_dir / "checkpoints"


def save(run_dir: Path, step: int, groups: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> Path:
    """Write checkpoint `step` with one safetensors file for each group of tensors; returns its directory.

    Raises DragomanError (path, bytes needed) when the disk refuses; checkpoints written before stay as they are.
    """
    final = checkpoints_dir(run_dir) / f"step-{step:08d}"
    try:
        with atomic_io.replaced(final) as partial:  # one of the same step is there if it failed to verify
            atomic_io.make_directory(partial)
            for name, tensors in groups.items():
                atomic_io.write_tensors(partial / f"{name}.safetensors", tensors)
            atomic_io.write_text(partial / "state.json", atomic_io.to_json(state))
            files = {path.name: _size_and_digest(path) for path in sorted(partial.iterdir())}
            atomic_io.write_text(partial / MANIFEST, atomic_io.to_json({"step": step, "files": files}))
    except (OSError, SafetensorError) as error:
        needed = sum(tensor.numel() * tensor.element_size() for group in groups.values() for tensor in group.values())
        raise Error.CANNOT_WRITE(
            f"the checkpoint could not be written ({error}); it needs {needed:,} bytes. Free space or mend "
            "permissions and run the same command again: earlier checkpoints are intact",
            file=final,
        ) from error
    return final


def verify(path: Path) -> None:
    """Raise DragomanError, naming the file, unless every file of the checkpoint is as its manifest says."""
    try:
        _verify(path)
    except OSError as error:  # a disk that cannot read a file holds a damaged one
        raise Error.CANNOT_READ(f"cannot be read: {error.strerror or error}", file=error.filename or path) from error


def _verify(path: Path) -> None:
    manifest = _read_json(path / MANIFEST)
    files = manifest.get("files")
    if not isinstance(files, dict) or "state.json" not in files:
        raise Error.DAMAGED("lists no files; the checkpoint is damaged", file=path / MANIFEST)
    if manifest.get("step") != step_of(path):
        raise Error.DAMAGED(
            f"is of step {manifest.get('step')}; the folder was renamed or mixed up", file=path / MANIFEST
        )
    visible = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}  # file managers leave others
    unlisted = visible - files.keys() - {MANIFEST}
    if unlisted:
        raise Error.DAMAGED("not in the manifest; it was put there afterwards", file=path / min(unlisted))
    for name, expected in files.items():
        if not re.fullmatch(r"[a-z]+\.(safetensors|json)", name):
            raise Error.DAMAGED(f"{name!r} is no name of a checkpoint file", file=path / MANIFEST)
        if not (path / name).is_file() or (path / name).is_symlink():
            raise Error.DAMAGED("missing; the checkpoint is damaged", file=path / name)
        if _size_and_digest(path / name) != expected:
            raise Error.DAMAGED("size or SHA-256 differ from the manifest; the file is damaged", file=path / name)


def list_checkpoints(run_dir: Path) -> list[Path]:
    """Every directory that is named step-N, oldest first; verified or not."""
    directory = checkpoints_dir(run_dir)
    paths = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)] if directory.is_dir() else []
    return sorted(paths, key=step_of)


def verified(paths: Iterable[Path], complain: Complain = lambda text: None, what: str = "skipped") -> Iterator[Path]:
    """The checkpoints that verify. `complain` gets a message for each damaged checkpoint, with `what` becomes of it."""
    for path in paths:
        try:
            verify(path)
        except DragomanError as error:
            complain(f"{what}: {error}")
        else:
            yield path


def newest(run_dir: Path, complain: Complain = lambda text: None, among: Sequence[Path] | None = None) -> Path | None:
    """The newest checkpoint (`among` some) that verifies, or None. `complain` is told of each that does not."""
    return next(verified(reversed(list_checkpoints(run_dir) if among is None else among), complain), None)


def best(run_dir: Path, complain: Complain = lambda text: None) -> Path | None:
    """The best validated checkpoint (`events.rank`) that verifies; the newest if none was validated."""
    return next(verified(_best_first(run_dir), complain), None) or newest(run_dir)


def select(run_dir: Path, which: str = "best") -> Path:
    """The checkpoint called `best`, `last`, or by its step; a damaged one is skipped, with a message.

    Raises DragomanError if there is none.
    """
    if not run_dir.is_dir():
        raise Error.MISSING_FILE("no such run directory", file=run_dir)
    path: Path | None
    if which == "best":
        path = best(run_dir, say)
    elif which == "last":
        path = newest(run_dir, say)
    elif which.isdecimal():
        path = checkpoints_dir(run_dir) / f"step-{int(which):08d}"
        if not path.is_dir():
            there = ", ".join(f"{step_of(other):,}" for other in list_checkpoints(run_dir)) or "none"
            raise Error.NO_CHECKPOINT(f"has no checkpoint of step {int(which):,}; there are: {there}", file=run_dir)
        verify(path)
    else:
        raise Error.WRONG_OPTION(f"checkpoint {which!r}", "say best, last, or the number of a step")
    if path is None:
        if list_checkpoints(run_dir):
            raise none_verifies(run_dir)
        raise Error.NO_CHECKPOINT("holds no checkpoint", "train it first", file=run_dir)
    return path


def none_verifies(run_dir: Path) -> DragomanError:
    """The error for a run whose checkpoints are all damaged."""
    complaints: list[str] = []
    newest(run_dir, complaints.append)
    return Error.DAMAGED(
        f"no checkpoint verifies, the newest {complaints[0]}",
        "mend that, or move the folder away to train from the beginning",
        file=checkpoints_dir(run_dir),
    )


def is_mean(run_dir: Path) -> bool:
    """True if a run directory holds the mean of several runs, which has nothing to train on from."""
    return any(MEAN_OF in _state_or_empty(path) for path in list_checkpoints(run_dir))


def load_state(path: Path) -> dict[str, Any]:
    return _read_json(path / "state.json")


def load_group(path: Path, group: str) -> dict[str, Tensor]:
    """The tensors of one group. Raises DragomanError when the file cannot be read as safetensors."""
    file = path / f"{group}.safetensors"
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise Error.CANNOT_READ(f"cannot be read ({error})", file=file) from error


class _NothingDrawn(TorchFunctionMode):
    """Leaves weights as they lie in memory, where a module would draw them: those of a checkpoint follow.

    Without memory (`meta`), PyTorch would load its compiler for a second, to draw numbers or to compute with them. So
    tables, which have no part in the shapes of weights, are made of no numbers there.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        if func is torch.arange and kwargs.get("device") == torch.device("meta"):
            return torch.empty(0, dtype=kwargs.get("dtype"))
        return func(*args, **kwargs)


def restored(path: Path, build: Callable[[], M]) -> M:
    """The model that `build` makes, with the weights of a checkpoint to translate with.

    What the settings ask for is compared with what the file holds before memory is taken for either, as both may come
    from strangers. Raises DragomanError where they do not fit each other.
    """
    with _NothingDrawn():
        with torch.device("meta"):  # shapes without memory
            expected = shapes(build())
        require_equal_shapes(expected, inference_shapes(path), str(path))
        model = build()
    load_weights(model, load_inference_weights(path), str(path))
    return model


def _inference_group(path: Path) -> str:
    return "averaged" if (path / "averaged.safetensors").exists() else "model"


def adapter_of(path: Path) -> dict[str, Any] | None:
    """The base's digest and the scale, for a checkpoint of an adapter; None for a checkpoint of a whole model."""
    return _state_or_empty(path).get(adapter.KEY)


def base_of(path: Path, named: str | None = None) -> Path:
    """The checkpoint whose weights the adapter in `path` corrects.

    The base is looked for in the run `named` (None: the recipe's `init_from`), and beside the adapter's run under the
    same name. Raises DragomanError where it is not there, or holds no such weights any more.
    """
    run = path.parents[1]
    named = named or str(read_yaml(run / CONFIG).get("init_from"))
    digest = (adapter_of(path) or {}).get("base")
    places = [place for place in (Path(named), run.parent / Path(named).name) if (place / CONFIG).is_file()]
    for place in places:
        for one in verified(reversed(list_checkpoints(place))):
            if inference_digest(one) == digest:
                return one
    if not places:
        hint = f"put that run back, or say in {run / CONFIG} where it is (`init_from`)"
        raise Error.MISSING_FILE(f"an adapter of {named}, which is not there", hint, file=run)
    hint = f"put the checkpoint back whose weights have the SHA-256 {str(digest)[:12]}..."
    raise Error.CHANGED(f"an adapter of other weights than {places[0]} has now", hint, file=run)


def inference_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of `load_inference_weights`, read without the numbers."""
    if adapter_of(path):
        return inference_shapes(base_of(path))
    file = path / f"{_inference_group(path)}.safetensors"
    try:
        with safe_open(file, framework="pt") as tensors:
            return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise Error.CANNOT_READ(f"cannot be read ({error})", file=file) from error


def inference_digest(path: Path) -> str:
    """SHA-256 of the weights to translate with, as the manifest of a verified checkpoint has it; of an adapter, that of
    its own and its base's together."""
    digest = _read_json(path / MANIFEST)["files"][f"{_inference_group(path)}.safetensors"]["sha256"]
    if corrects := adapter_of(path):
        digest = hashlib.sha256(f"{corrects} {digest}".encode()).hexdigest()
    return str(digest)


def load_own_weights(path: Path) -> dict[str, Tensor]:
    """As `load_inference_weights`; of an adapter its factors alone."""
    return load_group(path, _inference_group(path))


def load_inference_weights(path: Path) -> dict[str, Tensor]:
    """The weights to translate with: the average where one was kept, otherwise the last; an adapter merged into its
    base."""
    own = load_own_weights(path)
    if corrects := adapter_of(path):
        return adapter.merge(load_inference_weights(base_of(path)), own, corrects["scale"], str(path))
    return own


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once under its first name (tied ones share it), as safetensors wants it."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy tensors into the model. Raises DragomanError listing what is missing, unknown or of another shape."""
    require_equal_shapes(shapes(model), {name: tuple(tensor.shape) for name, tensor in tensors.items()}, source)
    with torch.no_grad():
        for name, tensor in weights(model).items():
            tensor.copy_(tensors[name])


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """The shapes of its `weights`."""
    return {name: tuple(tensor.shape) for name, tensor in weights(model).items()}


def require_equal_shapes(
    expected: Mapping[str, tuple[int, ...]], held: Mapping[str, tuple[int, ...]], source: str
) -> None:
    """Raises DragomanError listing what `source` lacks of what is expected, has beyond it, or has in another shape."""
    wrong = [f"lacks {name}" for name in expected.keys() - held.keys()]
    wrong += [f"has an unknown {name}" for name in held.keys() - expected.keys()]
    wrong += [
        f"{name} is {held[name]} and should be {expected[name]}"
        for name in expected.keys() & held.keys()
        if held[name] != expected[name]
    ]
    if wrong:
        shown = "; ".join(sorted(wrong)[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise Error.MISMATCH(f"does not fit the model in config.yaml: {shown}", file=source)


def prune(run_dir: Path, keep_last: int, keep_best: int) -> None:
    """Drop all but the newest, the last `keep_last` and the `keep_best` best of the validated checkpoints.

    One that was saved because a run was stopped has no score and goes as soon as there is a newer one. Nothing goes
    unless the newest verifies.
    """
    paths = list_checkpoints(run_dir)
    if not paths or newest(run_dir) != paths[-1]:
        return
    kept = {paths[-1], *validated(run_dir)[-keep_last:], *_best_first(run_dir)[:keep_best]}
    for path in paths:
        if path not in kept:
            atomic_io.drop(path)
    for leftover in checkpoints_dir(run_dir).glob("step-*.tmp"):
        atomic_io.remove(leftover)


def drop_after(run_dir: Path, step: int) -> None:
    """Drop the checkpoints of steps after `step`, to which a run goes back.

    Otherwise it would go on from them if it were interrupted before it is as far again.
    """
    for path in list_checkpoints(run_dir):
        if step_of(path) > step:
            atomic_io.drop(path)


def _best_first(run_dir: Path) -> list[Path]:
    """The validated checkpoints, best first. Ties: earliest step first, as the training loop counts its best step."""
    ranked = [(rank(_state_or_empty(path)), path) for path in validated(run_dir)]
    return [path for _, path in sorted(ranked, key=lambda item: item[0], reverse=True)]  # a stable sort


def validated(run_dir: Path) -> list[Path]:
    """The checkpoints that were written after a validation, oldest first."""
    return [path for path in list_checkpoints(run_dir) if _state_or_empty(path).get("score") is not None]


def _state_or_empty(path: Path) -> dict[str, Any]:
    try:
        return load_state(path)
    except DragomanError:
        return {}


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise Error.DAMAGED("missing; the checkpoint is not complete", file=path)
    return atomic_io.read_json(path, dict)


def _size_and_digest(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}
