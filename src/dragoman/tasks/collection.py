"""A run on a folder of files: the corpus that was made of them is in RUN/files, and a page says how."""

import hashlib
import json
from pathlib import Path
from typing import Any

from dragoman.analysis.collection_page import write_collection_page
from dragoman.config import to_dict
from dragoman.doctor.assembly import RECORD, SPLITS, assemble, summary
from dragoman.doctor.collection import paths_of
from dragoman.errors import Error
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.text.corpus import CollectionConfig
from dragoman.text.sources.digests import sha256_of
from dragoman.version import __version__

FILES = "files"
"""Folder of a run directory that holds the corpus."""
FINGERPRINT = "fingerprint.txt"
HELD_OUT = "held_out"
"""Name of the test set."""


def sources(languages: tuple[str, str], run_dir: str) -> dict[str, Any]:
    """Plain settings of the sources that a run on files has: `train`, `valid` and the test set."""

    def source(name: str) -> dict[str, str]:
        src, tgt = (str(Path(run_dir) / FILES / f"{name}.{code}") for code in languages)
        return {"type": "files", "src": src, "tgt": tgt}

    train, valid, test = map(source, SPLITS)
    return {"train": train, "valid": valid, "test": {HELD_OUT: test}}


def with_sources(data: dict[str, Any]) -> dict[str, Any]:
    """The plain settings of a recipe; where it names `corpus.files`, with the sources that are made of them."""
    corpus = data.get("corpus")
    if not isinstance(corpus, dict) or not corpus.get("files"):
        return data
    languages = str(corpus.get("src_lang", "src")), str(corpus.get("tgt_lang", "tgt"))
    made = sources(languages, str(data.get("run_dir", "")))
    given = [name for name in ("train", "valid") if not _is_made(corpus.get(name), name, languages[0])]
    if given:
        raise Error.CONFLICT(f"corpus.files and corpus.{given[0]}", "files make it: leave out one of them")
    tests = {**(corpus.get("test") or {}), **made["test"]}
    return {**data, "corpus": {"doctor": "skip", **corpus, **made, "test": tests}}


def _is_made(source: Any, name: str, language: str) -> bool:
    """True for the source that a run on files has, and for none."""
    return source is None or Path(str(source.get("src"))).parts[-2:] == (FILES, f"{name}.{language}")


def prepare_collection(
    collection: CollectionConfig, languages: tuple[str, str], run_dir: Path, *, codes: bool = False
) -> int:
    """Make the corpus of a run from its files, where it is not there yet; the number of its training pairs. With
    `codes` these have tags for them.

    Raises DragomanError where the files have nothing to train on, or are others than those that the run was begun with.
    """
    folder = run_dir / FILES
    say(f"comparing the files with those of {folder}" if folder.is_dir() else "looking through the files")
    fingerprint = _fingerprint(collection, languages, codes)
    if not (folder / FINGERPRINT).is_file() or (folder / FINGERPRINT).read_text(encoding="utf-8") != fingerprint:
        if checkpoint.list_checkpoints(run_dir):
            raise Error.OTHER_CONTENT(
                "holds a run that was not trained on these files",
                f"choose another `run`, beginning with its weights: `init_from` {run_dir}",
                file=run_dir,
            )
        assembly = assemble(collection, languages, folder, codes=codes)
        for line in summary(assembly):
            say(line)
        if not assembly.splits["valid"]:
            raise Error.TOO_FEW(f"{len(assembly.splits['train']):,} pairs are too few to hold some out", "give more")
        atomic_io.replace_text(folder / FINGERPRINT, fingerprint)
        say(f"what came from where: {write_collection_page(folder)}")
    return int(json.loads((folder / RECORD).read_text(encoding="utf-8"))["pairs"]["train"])


def _fingerprint(collection: CollectionConfig, languages: tuple[str, str], codes: bool) -> str:
    """SHA-256 over the files, their names, and the way to read them."""
    read = [to_dict(collection), languages, __version__, *(["codes"] if codes else [])]
    total = hashlib.sha256(json.dumps(read).encode())
    for name, path in paths_of(collection).items():
        with path.open("rb") as stream:
            total.update(name.encode() + sha256_of(path, stream))
    return total.hexdigest()
