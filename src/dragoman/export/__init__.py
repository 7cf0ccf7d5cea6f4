"""A run in other programs: written in their format, and proved by them before it is called done.

A target is a module of this folder with four functions:

- `problems(translator) -> list[str]`: why it cannot represent the model, a line each; none: it can;
- `write(translator, folder, quantize)`: the export, into an empty folder;
- `nearest(decoding) -> DecodingConfig`: the settings that its search can follow, as near as may be;
- `load(folder, translator) -> Engine`: the export in its own runtime; for `--engine` a SearchTranslator (CTranslate2).

The model of an adapter's run is one with its base, but for a target that has `write_base(checkpoint, folder)`: it
writes the adapter alone, and of which base it is.
"""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch

from dragoman import config
from dragoman.alignment.learnt_memory import copy_links
from dragoman.errors import DragomanError, Error, writing
from dragoman.export import model_card, origin
from dragoman.export.verify import MADE_UP, Engine, ExportComparison, compare_export, held_out, settings_of
from dragoman.inference.loading import base_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG, check_run_dir
from dragoman.runs.lock import locked
from dragoman.version import __version__

__all__ = ["ENGINES", "TARGETS", "Engine", "engine", "export", "target"]

UNFINISHED = ".unfinished"
"""A file in a folder that is being written; it names the process that writes."""

MAX_COMPARED_SENTENCES = 1000
"""Held-out sentences that an export is compared on, at most."""


def target(to: str) -> ModuleType:
    """The module that exports to `to`. Raises DragomanError for a target that there is not."""
    if to not in TARGETS:
        raise Error.UNKNOWN_NAME(f"`to` {to}", f"known are {', '.join(TARGETS)}")
    return import_module(TARGETS[to])


def export(
    run: str | Path,
    to: str,
    folder: str | Path,
    *,
    quantize: str | None = None,
    shortlist: bool = False,
    verify: bool = True,
    src: Path | None = None,
    ref: Path | None = None,
    which: str = "best",
    sentences: int = MAX_COMPARED_SENTENCES,
    tell: Callable[[str], None] = say,
) -> None:
    """Write a run into `folder` for another program, which then has to translate held-out text as the run does.

    `shortlist`: the pieces that a source may need stand beside the model (`shortlist.py`). `tell` is
    given the comparison, line by line. Raises DragomanError when the folder is there already, the target
    cannot represent the model, or the comparison fails (`ExportComparison.complaint`); nothing is left behind then.
    """
    run_dir, final = check_run_dir(run), Path(folder)
    module = target(to)
    if shortlist and not hasattr(module, "write_shortlist"):
        raise Error.UNSUPPORTED(f"`shortlist`: CTranslate2 and bergamot alone read one, not {to}")
    if final.exists():
        raise Error.ALREADY_THERE("is there already", "name a new folder, or delete it first", file=final)
    if (task := read_yaml(run_dir / CONFIG).get("task", "translation")) != "translation":
        raise Error.WRONG_TASK(f"a run for {str(task).replace('_', ' ')}: translators alone are exported", file=run_dir)
    base = base_model(run_dir, which) if hasattr(module, "write_base") else None
    translator = SearchTranslator.load(run_dir, which=which, device="cpu", base=base)
    require_possible(module, translator, run_dir, to)
    text = held_out(run_dir, translator, sentences, src, ref) if verify else None
    if text is not None and text.name == MADE_UP and to in OTHER_SEARCHES:
        # Another beam search finds other translations of what means nothing; greedy search is the same everywhere.
        translator = translator.with_decoding(beam_size=1, n_best=1)
    translator = _as_it_searches(module, translator, f"{run_dir}: compared" if verify else "")
    partial = final.with_name(final.name + ".partial")
    if partial.exists() and not (partial / UNFINISHED).exists():
        raise Error.ALREADY_THERE("is in the way, and no unfinished export", "rename or delete it", file=partial)
    made = [path for path in final.parents if not path.exists()]
    with contextlib.ExitStack() as whole:
        with locked(partial, "name a folder that can be written", UNFINISHED):
            whole.callback(_remove, partial, made)
            with writing(final):
                _empty(partial)
                module.write(translator, partial, quantize)
                if base is not None:
                    module.write_base(checkpoint.select(run_dir, which), partial)
                if shortlist:
                    module.write_shortlist(run_dir / "prepared" / "train", partial, translator)
                _write_beside(run_dir, partial, to)
            if text is not None:
                comparison = compare_export(translator, module.load(partial, translator), text, *settings_of(run_dir))
                kind = ", ".join(filter(None, [quantize, "shortlist" if shortlist else None]))
                _judge(comparison, to, kind, (_bytes_of_weights(translator), _bytes_of(partial)), tell)
            with writing(final):
                _open_to_readers(partial)
        with writing(final):  # with no file of the folder open any more, as Windows wants it
            atomic_io.publish(partial, final)


def _write_beside(run_dir: Path, folder: Path, to: str) -> None:
    """Write what is no part of the other program's format: the model card, and the word links beside the tokenizers."""
    if (own := folder / origin.TOKENIZER).is_dir():
        copy_links(run_dir, own)
    atomic_io.replace_text(folder / model_card.FILE, model_card.card(run_dir, to))


def _remove(partial: Path, made: Sequence[Path]) -> None:
    """Remove what is left of an export, and the folders that were made for it and hold nothing."""
    atomic_io.remove(partial)
    with contextlib.suppress(OSError):
        for path in made:
            path.rmdir()


def engine(
    run: str | Path,
    name: str,
    translator: SearchTranslator,
    which: str = "best",
    quantize: str | None = None,
    threads: int | None = None,
) -> SearchTranslator:
    """`translator`, the run's own, with the search of another runtime on so many threads (None: PyTorch's).

    The run is converted on first use and kept in RUN/engines, under a name that follows from the checkpoint, once it
    has translated held-out text as well as the run does. `quantize`: such as "int8". Raises DragomanError as `export`
    does.
    """
    if name not in ENGINES:
        raise Error.UNKNOWN_NAME(f"`engine` {name}", f"known are pytorch, {', '.join(ENGINES)}")
    run_dir, target_name = check_run_dir(run), ENGINES[name]
    module = target(target_name)
    require_possible(module, translator, run_dir, name)
    module.check_decoding(translator.decoding)
    if translator.banned is not None:
        raise Error.UNSUPPORTED(
            f"`avoid`: {name} does not search again without a phrase", f"translate without `engine` {name}"
        )
    if next(translator.model.parameters()).dtype != torch.float32:
        raise Error.UNSUPPORTED(
            f"`precision`: {name} computes as its weights are kept", f"leave it with `engine` {name}"
        )
    kind = target_name if quantize is None else f"{target_name}-{quantize}"
    folder = run_dir / "engines" / f"{kind}-{_identity(checkpoint.select(run_dir, which))}"
    if made := not folder.is_dir():
        elsewhere = f"translate without `engine` {name}, or with it once where the run can be written"
        with locked(folder.parent, elsewhere):
            say(f"{folder}: converting this checkpoint, once; it may translate some sentences otherwise than PyTorch")
            # Figures of held-out text promise nothing of the text that is translated now.
            export(run_dir, target_name, folder, quantize=quantize, which=which, tell=lambda line: None)
    try:
        loaded: SearchTranslator = module.load(folder, translator, threads=threads)
    except DragomanError as error:
        if made:
            raise
        raise error.within("", f"delete {folder}: it is made again when it is needed") from error
    return loaded


def require_possible(module: ModuleType, translator: SearchTranslator, run: Path, to: str) -> None:
    """Raises DragomanError with all the reasons why a target cannot represent a model."""
    if reasons := module.problems(translator):
        raise Error.CANNOT_EXPORT(f"cannot be exported to {to}: {'; '.join(reasons)}", file=run)


def _as_it_searches(module: ModuleType, translator: SearchTranslator, note: str) -> SearchTranslator:
    """The translator with the settings that a target can follow; says which they are, after `note`."""
    followed = module.nearest(translator.decoding)
    changes = config.changes(config.to_dict(translator.decoding), config.to_dict(followed))
    if changes and note:
        settings = ", ".join(f"decoding.{name} {value}" for name, _, value in changes)
        say(f"{note} with {settings}: the recipe's own this program does not search with")
    return translator.with_decoding(**{item.name: getattr(followed, item.name) for item in fields(followed)})


def _judge(
    comparison: ExportComparison, to: str, kind: str, sizes: tuple[int, int], tell: Callable[[str], None]
) -> None:
    """`kind`: what makes the export another model than the run's own, such as "int8"; empty: nothing does."""
    for line in comparison.lines(sizes):
        tell(line)
    if complaint := comparison.complaint(exact=not kind, same_search=to not in OTHER_SEARCHES):
        raise Error.EXPORT_DIFFERS(
            f"the export to {to}{f' ({kind})' if kind else ''} does not translate as the run does and was deleted: "
            f"{complaint}"
        )


def _empty(partial: Path) -> None:
    """Remove what an export that was broken off has left."""
    for left in partial.iterdir():
        if not left.name.startswith(UNFINISHED):
            atomic_io.remove(left)


def _open_to_readers(folder: Path) -> None:
    """Give all files the permissions of a file that is made here: some libraries make theirs for the owner alone."""
    mode = (folder / UNFINISHED).stat().st_mode
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)


def _identity(path: Path) -> str:
    """A digest of what an engine depends on: the bytes of the checkpoint, and the program that converts it."""
    digest = hashlib.sha256((path / checkpoint.MANIFEST).read_bytes())
    digest.update(__version__.encode())
    return digest.hexdigest()[:16]


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _bytes_of_weights(translator: SearchTranslator) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in checkpoint.weights(translator.model).values())


TARGETS = {
    "argos": "dragoman.export.argos",
    "bergamot": "dragoman.export.bergamot",
    "ctranslate2": "dragoman.export.ctranslate2",
    "huggingface": "dragoman.export.huggingface",
    "marian": "dragoman.export.marian",
    "onnx": "dragoman.export.onnx",
    "peft": "dragoman.export.peft",
}
"""The targets of an export and their modules, imported when they are asked for."""

OTHER_SEARCHES = ("argos", "bergamot", "ctranslate2", "marian")
"""The targets that do not find what our search finds, though their probabilities are the same."""

ENGINES = {"ctranslate2": "ctranslate2", "ctranslate2-fast": "ctranslate2"}
"""The engines beside PyTorch, and the target that each is converted to; both names mean the same."""
