"""The run directory: where `dragoman train` keeps everything, and how the other commands read it.

    RUN/config.yaml           the recipe as it was carried out        RUN/tokenizer/       the vocabularies
    RUN/identity.json         what it is trained on, by content       RUN/prepared/        the corpus as token ids
    RUN/checkpoints/          weights and state of the training       RUN/metrics.jsonl    the log

A run may come from a stranger: files are read up to a limit, and nothing in them is executed.
"""

from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.runs.atomic_io import read_json, read_yaml

CONFIG = "config.yaml"
"""The recipe; a folder that has it is a run directory."""
TOKENIZER = "tokenizer"

TRAINING_OF_TOKENIZER = ("sampling", "max_sentences", "vocab_size", "min_count", "character_coverage")
"""Settings of a tokenizer's training. How it encodes is decided by its files."""

COMMANDS = {
    "translation": "translate",
    "classification": "predict",
    "image_classification": "predict",
    "language_modelling": "generate",
}
"""The command that uses the runs of each task."""


def check_run_dir(run: str | Path) -> Path:
    """The run directory as a path. Raises DragomanError when there is none."""
    path = Path(run)
    if not (path / CONFIG).is_file():
        raise Error.NOT_A_RUN(f"not a run directory (it has no {CONFIG})", file=path)
    return path


def read_run(run: str | Path, *tasks: str) -> dict[str, Any]:
    """The recipe of a run directory, as plain data. Raises DragomanError unless its task is one of `tasks`."""
    path = check_run_dir(run)
    recipe = read_yaml(path / CONFIG)
    task = recipe.setdefault("task", "translation")
    if task not in tasks:
        hint = f"use it with `dragoman {COMMANDS[task]} {path}`" if task in COMMANDS else "it is of another version"
        raise Error.WRONG_TASK(
            f"a run for {task.replace('_', ' ')}, not for {tasks[0].replace('_', ' ')}", hint, file=path
        )
    return recipe


def languages_of(run: Path) -> tuple[str, str]:
    """(source, target) language of a translation run. Raises DragomanError for any other."""
    corpus = read_run(run, "translation").get("corpus", {})
    return str(corpus.get("src_lang")), str(corpus.get("tgt_lang"))


def tokenizer_files(run: Path) -> dict[Path, Any]:
    """The files that decide how the tokenizers of a run encode, with their content; to compare two runs by."""
    folder = run / TOKENIZER
    files: dict[Path, Any] = {}
    for path in folder.rglob("[!.]*"):
        name = path.relative_to(folder)
        if path.name == "config.json":
            settings = read_json(path, dict)
            # A setting that came with a later version is off in the run of an earlier one, which does not name it.
            files[name] = {key: value for key, value in settings.items() if value and key not in TRAINING_OF_TOKENIZER}
        elif path.suffix in (".json", ".model"):
            files[name] = path.read_bytes()
    return files


def require_alike(run_dir: Path, other: Path) -> None:
    """Raises DragomanError unless both runs translate between the same languages, with the same tokenizer."""
    own, theirs = languages_of(run_dir), languages_of(other)
    if own != theirs:
        raise Error.LANGUAGES_DIFFER(
            f"translates from {theirs[0]} to {theirs[1]}, and {run_dir} from {own[0]} to {own[1]}: models that work "
            "together must do the same",
            file=other,
        )
    if tokenizer_files(run_dir) != tokenizer_files(other):
        raise Error.MISMATCH(
            f"its tokenizer is another one than that of {run_dir}, and models that work together need one",
            "train them on the same corpus with the same `tokenizer:`, or have one reuse that of the other",
            file=other,
        )
