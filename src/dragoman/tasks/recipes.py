"""A recipe says everything about a run; `run` carries it out, from raw data to a scored model.

recipe = load("recipes/multi30k-en-de.yaml", ["training.max_steps=2000"])
run(recipe)
"""

import contextlib
import copy
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.device import threads_for, undisturbed
from dragoman.errors import Error
from dragoman.evaluation.evaluate_output import references_of, titles_of
from dragoman.progress import say_once
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG, check_run_dir
from dragoman.runs.lock import locked
from dragoman.runs.new_run import ANOTHER, require_same_run
from dragoman.tasks.base import Job, RecipeSettings, Result, Scores, Watch, WriteReport
from dragoman.tasks.classification.job import ClassificationJob, ImageClassificationJob
from dragoman.tasks.collection import with_sources
from dragoman.tasks.language_modelling.job import LanguageModellingJob
from dragoman.tasks.masked_language_modelling.job import MaskedLanguageModellingJob
from dragoman.tasks.translation.job import TranslationJob
from dragoman.tasks.translation.job import TranslationRecipe as TranslationRecipe
from dragoman.text.sources.base import PairSource
from dragoman.text.sources.digests import remembered
from dragoman.text.sources.stream import StreamSource
from dragoman.training.distributed import Ranks, joined
from dragoman.version import folder_of

DIGESTS = "digests.json"
"""File of a run directory: the digests of its large corpus files, which are not read for them at each start."""

JOBS: dict[str, type[Job]] = {
    "translation": TranslationJob,
    "classification": ClassificationJob,
    "image_classification": ImageClassificationJob,
    "language_modelling": LanguageModellingJob,
    "masked_language_modelling": MaskedLanguageModellingJob,
}
"""Each `task:` of a recipe and what carries it out."""


Recipe = str | Path | Mapping[str, Any] | RecipeSettings
"""A recipe: its file, its name in RECIPES, a run directory, its text, plain settings, or the settings themselves."""

RECIPES = (Path("recipes"), folder_of("recipes"))
"""Folders in which a recipe's name is looked up: the working folder's, and Dragoman's own."""


def load(recipe: Recipe, overrides: Sequence[str] | None = None) -> RecipeSettings:
    """A recipe with dotted overrides. Without `run_dir` the run goes to `runs/NAME-OF-THE-RECIPE`."""
    data, source = read(recipe)
    changes = list(overrides or ())
    task = str(config.override(data, changes).get("task", "translation"))
    return parsed(config.override(data, changes, JOBS[task].settings if task in JOBS else None, say_once), source)


def read(recipe: Recipe) -> tuple[dict[str, Any], str]:
    """(plain settings of a recipe, its name in messages). Raises DragomanError where it is none."""
    if isinstance(recipe, RecipeSettings):
        return config.to_dict(recipe), "recipe"
    if isinstance(recipe, Mapping):
        return copy.deepcopy(dict(recipe)), "recipe"
    if not isinstance(recipe, str | Path):
        raise Error.WRONG_SHAPE(f"a recipe is a file, a name, a text or a mapping, not {type(recipe).__name__}")
    if isinstance(recipe, str) and ("\n" in recipe or ": " in recipe):
        return config.from_yaml(recipe, "recipe"), "recipe"
    path = file_of(recipe)
    data = read_yaml(path)
    if path != Path(recipe) and path.name == CONFIG:
        here = str(path.parent)
        return {**_moved(data, str(data.get("run_dir", here)), here), "run_dir": here}, str(path)
    return {**data, "run_dir": data.get("run_dir", f"runs/{path.stem}")}, str(path)


def _moved(settings: Any, there: str, here: str) -> Any:
    r"""The settings of a run that stood elsewhere, on Windows perhaps: its own files are where it stands now.

    >>> _moved({"train": {"src": "a/split/train.src", "tgt": "ab"}, "valid": r"a\split\b", "sizes": [1]}, "a", "b")
    {'train': {'src': 'b/split/train.src', 'tgt': 'ab'}, 'valid': 'b/split/b', 'sizes': [1]}
    """
    if isinstance(settings, dict):
        return {key: _moved(value, there, here) for key, value in settings.items()}
    if isinstance(settings, list):
        return [_moved(value, there, here) for value in settings]
    is_own = isinstance(settings, str) and settings.startswith((f"{there}/", f"{there}\\"))
    return here + settings[len(there) :].replace("\\", "/") if is_own else settings


def file_of(recipe: str | Path) -> Path:
    """The file of a recipe, of a run directory, or of a name in RECIPES, such as `demo` or `recipes/demo.yaml`."""
    path = Path(recipe)
    if (path / CONFIG).is_file():
        return path / CONFIG
    if not path.exists() and path.parent in (Path(), Path("recipes")):
        path = next((known for folder in RECIPES if (known := folder / f"{path.stem}.yaml").is_file()), path)
    if not path.exists() and not path.suffix:
        names = sorted({known.stem for folder in RECIPES for known in folder.glob("*.yaml")})
        raise Error.MISSING_FILE("no such recipe", config.hint_of(str(recipe), names), file=path)
    return path


def with_options(changes: Sequence[str], **options: Path | str | None) -> list[str]:
    """Changes to the recipe, including changes by options. Raises DragomanError for a setting that is given in both
    ways."""
    known = {name: str(value) for name, value in options.items() if value}
    for name in known:
        if any(change.startswith(f"{name}=") for change in changes):
            raise Error.CONFLICT(f"{name}=... and its option say the same thing twice", "give one of them")
    return [
        *changes,
        *(f"{name}={json.dumps(value, ensure_ascii=not value.isprintable())}" for name, value in known.items()),
    ]


def of_run(run_dir: str | Path) -> RecipeSettings:
    """The recipe of a run directory. Raises DragomanError when it is none."""
    check_run_dir(run_dir)
    return parsed(*read(Path(run_dir)))


def parsed(data: dict[str, Any], source: str) -> RecipeSettings:
    """A recipe made of plain data, as `config.to_dict` gives it."""
    task = data.get("task", "translation")
    if not isinstance(task, str) or task not in JOBS:
        raise Error.UNKNOWN_NAME(f"`task`: no {task!r}", f"known: {', '.join(JOBS)}", file=source)
    if task == "translation":
        data = with_sources(data)
    recipe: RecipeSettings = config.parse(JOBS[task].settings, data, source)
    return recipe


def job(recipe: Any, ranks: Ranks | None = None) -> Job:
    """The job that carries out a recipe."""
    return JOBS[recipe.task](recipe, ranks)


def check(recipe: Any) -> int:
    """Build everything that a recipe describes, without its data: the number of the model's parameters."""
    return job(recipe).check()


def check_start(recipe: Any) -> int:
    """As `check`, and refuse all that `run` refuses before it reads the corpus: what the recipe names is to be there,
    and its run directory free or of the same run."""
    carried = job(recipe)
    parameters = carried.check_start()
    for part in (part for source in carried.sources() for part in getattr(source, "sources", [source])):
        if isinstance(part, PairSource) and not isinstance(part, StreamSource):  # a pipe is read once
            next(part.pairs(), None)
    if checkpoint.list_checkpoints(carried.run_dir):
        require_same_run(carried.run_dir, carried.recipe, carried.identity())
    place = next(path for path in (carried.run_dir, *carried.run_dir.absolute().parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise Error.CANNOT_WRITE("no folder that can be written to", ANOTHER, file=place)
    return parameters


def prepare(recipe: Any) -> list[str]:
    """Learn the tokenizer and store the corpus as ids, ahead of training; a line on each split.

    Raises DragomanError for settings that cannot be, before anything is read.
    """
    with locked(Path(recipe.run_dir)), remembered(Path(recipe.run_dir) / DIGESTS):
        carried = job(recipe)
        carried.check()
        return carried.prepare()


def run(
    recipe: Any,
    seconds_left: float | None = None,
    ranks: Ranks | None = None,
    report: WriteReport | None = None,
    watch: Watch | None = None,
) -> Result:
    """Carry out a recipe: prepare, train (from the newest checkpoint, if there is one), score the tests.

    `seconds_left`: choose the number of steps so that all of it takes so long. `ranks`: those that train together, all
    of which call this. `report`: writes a page about the run at its end (`analysis.report.write_report`). `watch`: is
    given the trainer before its first step, to say when it ends (`Trainer.stop_when`). Random numbers of the caller's
    process go on as if nothing had happened.
    """
    with contextlib.ExitStack() as stack:
        if ranks is None:
            ranks = stack.enter_context(joined())
        ranks.on_rank_zero(lambda: stack.enter_context(locked(Path(recipe.run_dir))))
        stack.enter_context(remembered(Path(recipe.run_dir) / DIGESTS))
        stack.enter_context(threads_for(recipe.training.batch_tokens * recipe.model.d_model))
        stack.enter_context(undisturbed())
        return job(recipe, ranks).run(seconds_left, report, watch)


def run_to_end(recipe: Any, seconds_left: float | None = None) -> Result:
    """As `run`, for callers that use the model. Raises DragomanError where the training was stopped (Ctrl-C, SIGTERM):
    a training that stops and saves takes the signal, so that they would go on with half a model."""
    result = run(recipe, seconds_left)
    if result.outcome.reason == "interrupted":
        text = f"stopped and saved at step {result.outcome.step:,}"
        raise Error.INTERRUPTED(text, "run it again and it goes on", file=result.run_dir)
    return result


def evaluate(
    run_dir: str | Path,
    *,
    sources: list[Path],
    references: list[Path],
    names: list[str],
    which: str = "best",
    device: str = "auto",
    **options: Any,
) -> Mapping[str, Scores]:
    """Scores of a run on files, or on its recipe's own test sets where none are given.

    Raises DragomanError when the lists do not match or there is nothing to score.
    """
    recipe: Any = of_run(run_dir)
    if not sources and not recipe.corpus.test:
        raise Error.MISSING_OPTION(
            "its recipe names no test set", "give `src` (and `ref`, where there is one)", file=run_dir
        )
    titles = titles_of(sources, names)
    each = references_of(sources, references)
    pairs = [(src, refs[0] if refs else None) for src, refs in zip(sources, each, strict=True)]
    carried = job(recipe)
    carried.run_dir = Path(run_dir)  # it may have been moved since
    if any(len(refs) > 1 for refs in each):
        options["more_references"] = {title: refs[1:] for title, refs in zip(titles, each, strict=True)}
    return carried.evaluate(dict(zip(titles, pairs, strict=True)), which, device, **options)
