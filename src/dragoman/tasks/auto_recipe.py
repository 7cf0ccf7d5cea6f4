"""A recipe for a corpus that comes as two bare files or as a folder of many, sized to its number of pairs."""

import filecmp
import heapq
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.config import merged, override, parse, to_dict
from dragoman.data.random import hash64
from dragoman.errors import DragomanError, Error, show, writing
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG
from dragoman.tasks import recipes
from dragoman.tasks.collection import prepare_collection, with_sources
from dragoman.tasks.sizes import (
    GPU_BATCH_TOKENS,
    PIECES_A_WORD,
    SIZES,
    Budget,
    TrainingSize,
    explanation,
    size_for,
    size_within,
    words_of,
)
from dragoman.tasks.translation.job import TranslationRecipe, examine
from dragoman.text.augment import TextAugmentConfig
from dragoman.text.corpus import CollectionConfig, FilesSource

COMPANY = recipes.RECIPES[-1] / "company.yaml"
"""The recipe of `train --files`."""
MAX_HELD_OUT = 1_000
"""Validation pairs that are taken from the training files if no validation files are given."""

_FILES = ("train.src", "train.tgt", "valid.src", "valid.tgt")


def default_recipe(
    src: str,
    tgt: str,
    run_dir: str,
    *,
    valid: tuple[str, str] | None = None,
    languages: tuple[str, str] = ("src", "tgt"),
    doctor: str = "refuse",
    on_gpu: bool = False,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Plain settings (for `config.parse`) to train on two files; where `valid` is not given, pairs are held out.

    `on_gpu`: batches of the largest model are those for a GPU.

    Raises DragomanError for what the readers and the doctor refuse, and when there are too few pairs to hold some out.
    """
    goes_on = bool(checkpoint.list_checkpoints(Path(run_dir)))
    if goes_on:
        say(f"reading {show(src)} and {show(tgt)}")
    elif valid is None:
        # Here, where lines have the numbers that they have in the files, and not where some are missing.
        examine(FilesSource(src=src, tgt=tgt), *languages, doctor)
        doctor = "skip"
    if valid is None:
        pairs = sum(1 for _ in FilesSource(src=src, tgt=tgt).pairs())
        train, valid = hold_out(src, tgt, pairs, Path(run_dir) / "split")
    else:
        train = (src, tgt)
    corpus = {
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "train": {"type": "files", "src": train[0], "tgt": train[1]},
        "valid": {"type": "files", "src": valid[0], "tgt": valid[1]},
        "doctor": doctor,
    }
    return sized_recipe(corpus, run_dir, on_gpu=on_gpu, budget=budget)


def recipe_for_collection(
    given: Mapping[str, Any],
    run_dir: str,
    changes: Sequence[str] = (),
    *,
    on_gpu: bool = False,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Plain settings to train on a folder of files, as a recipe has them (`given`); sizes are chosen that it lacks.

    Otherwise as `collected`.
    """
    sized = sized_recipe(collected(given, run_dir, changes), run_dir, on_gpu=on_gpu, budget=budget)
    return merged(sized, {**given, "run_dir": run_dir, "corpus": {}})


def collected(given: Mapping[str, Any], run_dir: str, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The plain settings `corpus` of a recipe with `corpus.files`: the corpus is made of these files now
    (`tasks/collection.py`). `changes`: what a command overrides.

    Raises DragomanError where the files have nothing to train on.
    """
    data = override({"corpus": given["corpus"]}, [change for change in changes if change.startswith("corpus.")])
    corpus = with_sources({**data, "run_dir": run_dir})["corpus"]
    collection = parse(CollectionConfig, corpus["files"], "corpus.files")
    augment = parse(TextAugmentConfig, corpus.get("augment") or {}, "corpus.augment")
    prepare_collection(collection, (corpus["src_lang"], corpus["tgt_lang"]), Path(run_dir), codes=augment.tags > 0)
    return {**corpus, "files": to_dict(collection)}


def company_recipe(
    recipe: Any, paths: Sequence[str], languages: tuple[str, str], columns: Sequence[str] | None
) -> dict[str, Any]:
    """Plain settings of a recipe for files (COMPANY if no recipe is named), changed by the settings that a command
    names."""
    named = {"paths": list(paths), **({"columns": columns} if columns else {})}
    corpus = {"src_lang": languages[0], "tgt_lang": languages[1], "files": named}
    return merged(read_yaml(recipes.file_of(recipe or COMPANY)), {"corpus": corpus})


def sized_recipe(
    corpus: dict[str, Any], run_dir: str, *, on_gpu: bool = False, budget: Budget | None = None
) -> dict[str, Any]:
    """Plain settings to train on a corpus, sized by its number of pairs or, in a budget, by the time.

    `on_gpu`: the largest model takes batches for a GPU.
    """
    if budget is not None and checkpoint.list_checkpoints(Path(run_dir)):  # another day's speed would choose another
        begun = read_yaml(Path(run_dir) / CONFIG)
        return {
            "run_dir": run_dir,
            "corpus": corpus,
            **{part: begun[part] for part in ("tokenizer", "model", "training")},
        }
    source = parse(FilesSource, corpus["train"], "the training pairs")
    if budget is None:
        size = size_for(sum(1 for _ in source.pairs()))
    else:
        tokens = PIECES_A_WORD * words_of(source)
        size = size_within(budget, tokens)
        say(explanation(size, budget, tokens))
    if on_gpu and size.d_model == SIZES[-1][1].d_model:
        size = replace(size, batch_tokens=GPU_BATCH_TOKENS)
    sized = settings_of(size)
    if checkpoint.list_checkpoints(Path(run_dir)):  # begun by a version that chose another
        sized["training"]["backend"] = read_yaml(Path(run_dir) / CONFIG)["training"].get("backend", "auto")
    return {"run_dir": run_dir, "corpus": corpus, **sized}


def settings_of(size: TrainingSize) -> dict[str, Any]:
    """Plain settings of tokenizer, model and training."""
    return {
        "tokenizer": {"type": "sentencepiece", "vocab_size": size.vocab_size},
        "model": {
            "type": "transformer",
            "d_model": size.d_model,
            "d_ff": 4 * size.d_model,
            "num_heads": max(1, min(8, size.d_model // 32)),
            "num_encoder_layers": size.encoder_layers,
            "num_decoder_layers": size.decoder_layers,
            "dropout": size.dropout,
            "shrink_residuals": True,
        },
        "training": {
            "max_steps": size.max_steps,
            "batch_tokens": size.batch_tokens,
            "validate_every": max(100, size.max_steps // 20),
            "validate_seconds": 60.0,
            "schedule": {"type": "linear", "lr": size.lr, "warmup_steps": max(1, min(1000, size.max_steps // 10))},
            "averaging": {"type": "ema", "decay": size.ema_decay},
            "backend": "kernels",  # the fastest: a new run has no earlier losses to repeat
        },
    }


def with_room(data: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The settings with batches in which the longest pair has room, where nobody chose `training.batch_tokens`."""
    longest = data["corpus"].get("max_tokens")
    if not isinstance(longest, int) or any(change.startswith("training.batch_tokens=") for change in changes):
        return data
    training = data["training"]
    return {**data, "training": {**training, "batch_tokens": max(training["batch_tokens"], longest + 1)}}


def check_changes(
    changes: Sequence[str], run_dir: str, init_from: str | None = None, given: Mapping[str, Any] | None = None
) -> None:
    """Raises DragomanError for changes of settings that suit a corpus of no size: before it is read, which is long.
    `given`: the settings of a recipe, which they change."""
    there = {"type": "files", "src": "corpus.src", "tgt": "corpus.tgt"}
    corpus = (given or {}).get("corpus") or {"src_lang": "src", "tgt_lang": "tgt", "train": there, "valid": there}
    theirs = {} if init_from is None else {"model": to_dict(recipes.of_run(init_from))["model"]}
    refused = None
    for _, size in SIZES:
        data = {"run_dir": run_dir, "corpus": corpus, **settings_of(size), **theirs}
        data = merged(data, {**(given or {}), "corpus": {}})
        try:
            recipes.check(recipes.parsed(override(data, changes, TranslationRecipe), "settings"))
            return
        except DragomanError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def hold_out(src: str, tgt: str, pairs: int, directory: Path) -> tuple[tuple[str, str], tuple[str, str]]:
    """Split a corpus of `pairs` pairs into `directory`: ((train src, train tgt), (valid src, valid tgt)).

    About 2 % of the different source sentences, at most MAX_HELD_OUT, are held out by a hash, with all of their pairs:
    so none of the validation sentences stands in the training set. The same corpus is always split in the same way.

    Raises DragomanError where too little is left, and where the folder around `directory` holds a run that was trained
    on something else; the split of that run stays as it is.
    """
    names = show(src), show(tgt)
    held_out = min(MAX_HELD_OUT, pairs // 50)
    if not held_out:
        raise Error.TOO_FEW(
            f"{pairs} pairs are too few to hold some out", "give `valid_src` and `valid_tgt`", file=names[0]
        )
    source = FilesSource(src=src, tgt=tgt)
    limit = heapq.nsmallest(held_out, {_hash(pair.src) for pair in source.pairs()})[-1]
    building = directory.with_name(directory.name + ".tmp")
    try:
        with writing(directory):
            sizes = _split(source, limit, building)
            if sizes["valid"] > sizes["train"]:
                raise Error.TOO_FEW(
                    f"so few different sentences that holding out {held_out} of them leaves {sizes['train']:,} pairs "
                    "to train on",
                    "give `valid_src` and `valid_tgt`",
                    file=names[0],
                )
            if not _same(building, directory):
                if checkpoint.list_checkpoints(directory.parent):
                    raise Error.OTHER_CONTENT(
                        f"holds a run that was not trained on the pairs of {' and '.join(names)}",
                        f"choose another `run`, beginning with its weights: `init_from` {directory.parent}",
                        file=directory.parent,
                    )
                atomic_io.publish(building, directory)
    finally:
        atomic_io.remove(building)
    train, valid = ((str(directory / f"{split}.src"), str(directory / f"{split}.tgt")) for split in ("train", "valid"))
    return train, valid


def _split(source: FilesSource, limit: int, directory: Path) -> dict[str, int]:
    """Write the pairs whose source hashes up to `limit` as validation pairs, the others for training; their numbers."""
    directory.mkdir(parents=True, exist_ok=True)
    sizes = {"train": 0, "valid": 0}
    with ExitStack() as stack:
        files = {
            name: stack.enter_context((directory / name).open("w", encoding="utf-8", newline="\n")) for name in _FILES
        }
        for pair in source.pairs():
            split = "valid" if _hash(pair.src) <= limit else "train"
            sizes[split] += 1
            files[f"{split}.src"].write(pair.src + "\n")
            files[f"{split}.tgt"].write(pair.tgt + "\n")
    return sizes


def _same(one: Path, other: Path) -> bool:
    return filecmp.cmpfiles(one, other, _FILES, shallow=False) == (list(_FILES), [], [])


def _hash(sentence: str) -> int:
    return hash64(sentence, "big")
