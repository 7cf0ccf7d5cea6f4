"""A corpus of Python objects, kept in RUN/corpus as files of lines: from there it is read like any other."""

import filecmp
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dragoman.errors import Error, writing
from dragoman.progress import Progress
from dragoman.runs import atomic_io, checkpoint
from dragoman.tasks.auto_recipe import hold_out
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import STREAM_LINES, in_chunks
from dragoman.text.sources.records import LABELLED, PAIR, TEXT, Corpus, is_settings, records

CORPUS = "corpus"
"""Folder of a run directory that holds the corpus."""

FIELDS = {
    "translation": PAIR,
    "classification": LABELLED,
    "language_modelling": TEXT,
    "masked_language_modelling": TEXT,
}
"""The fields of a record for each task."""


def kept(corpus: Corpus, task: str, languages: tuple[str, str], run_dir: Path) -> dict[str, Any]:
    """Plain settings of the sources (`train`, `valid`, `test`) of a corpus, whose texts are now in RUN/corpus; pairs
    are held out where there are none to validate on.

    Raises DragomanError for records that are none, and where the run was trained on others; its own stay then.
    """
    if task not in FIELDS:
        raise Error.UNSUPPORTED(f"`corpus`: pictures for task {task} are named in the recipe")
    columns = corpus.columns
    folder = run_dir / CORPUS

    def source(name: str, split: Any, file: str = "") -> dict[str, Any]:
        if is_settings(split):
            return {key: str(value) if isinstance(value, Path) else value for key, value in split.items()}
        rows = records(split, FIELDS[task], name, columns, languages)
        return write_records(rows, folder / (file or name), task, languages, run_dir)

    sources: dict[str, Any] = {"train": source("train", corpus.train)}
    if corpus.valid is not None:
        sources["valid"] = source("valid", corpus.valid)
    elif task == "translation" and sources["train"].get("type", "files") == "files":
        src, tgt = sources["train"]["src"], sources["train"]["tgt"]
        count = sum(1 for _ in FilesSource(src=src, tgt=tgt).pairs())
        train, valid = hold_out(src, tgt, count, run_dir / "split")
        sources |= {name: _of_files(pair) for name, pair in (("train", train), ("valid", valid))}
    else:
        raise Error.MISSING_OPTION("`corpus` has no `valid`", "give Corpus(train=..., valid=...)")
    tests = corpus.tests()
    files = atomic_io.file_names(["train", "valid", *tests])[2:]
    sources["test"] = {
        name: source(name, split, file) for (name, split), file in zip(tests.items(), files, strict=True)
    }
    return sources


def _of_files(files: Sequence[str | Path]) -> dict[str, str]:
    return {"type": "files", **dict(zip(PAIR, map(str, files), strict=True))}


def write_records(
    rows: Iterator[Any], path: Path, task: str, languages: tuple[str, str], run_dir: Path
) -> dict[str, str]:
    """Write the records of a split as lines of `path` with an ending each; the plain settings of their source.

    Files that hold the same already are left as they are. Raises DragomanError where they hold something else that the
    run was trained on.
    """
    ends = [f".{language}" for language in languages] if task == "translation" else [".txt"]
    if len(set(ends)) < len(ends):
        ends = [f".{side}" for side in PAIR]
    files = [path.with_name(path.name + end) for end in ends]
    partial = [file.with_name(f".{file.name}.partial") for file in files]
    try:
        with ExitStack() as stack:
            with writing(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                opened = [stack.enter_context(file.open("w", encoding="utf-8", newline="\n")) for file in partial]
            bar = stack.enter_context(Progress(f"reading {path.name}", total=None))
            for chunk in in_chunks(rows, STREAM_LINES):  # what a generator raises is its own
                lines = chunk if task == "translation" else [("\t".join(reversed(row)),) for row in chunk]
                with writing(path.parent):
                    for stream, texts in zip(opened, zip(*lines, strict=True), strict=True):
                        stream.writelines(f"{text}\n" for text in texts)
                        stream.flush()
                bar.advance(len(chunk))
        for new, file in zip(partial, files, strict=True):
            if file.exists() and filecmp.cmp(new, file, shallow=False):
                continue  # and its time of change, by which digests of large files are known
            if file.exists() and path.name in ("train", "valid") and checkpoint.list_checkpoints(run_dir):
                raise Error.OTHER_CONTENT(
                    f"holds a run that was trained on other pairs than those of `corpus` ({path.name})",
                    f"give the same ones, or choose another run_dir=..., with its weights: `init_from` {run_dir}",
                    file=run_dir,
                )
            atomic_io.publish(new, file)
    finally:
        for file in partial:
            atomic_io.remove(file)
    if task == "translation":
        return _of_files(files)
    return {"type": "labelled" if task == "classification" else "text", "path": str(files[0])}
