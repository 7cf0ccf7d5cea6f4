"""A recipe says everything about a run; `run` carries it out, from raw data to a scored model.

recipe = load("recipes/multi30k-en-de.yaml", ["training.max_steps=2000"])
run(recipe)
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.device import threads_for
from dragoman.errors import Error
from dragoman.evaluation.judging import references_of, titles_of
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import check_run_dir
from dragoman.runs.lock import locked
from dragoman.tasks.base import Job, RecipeSettings, Result, Scores, WriteReport
from dragoman.tasks.classification.job import ClassificationJob, ImageClassificationJob
from dragoman.tasks.collection import with_sources
from dragoman.tasks.language_modelling.job import LanguageModellingJob
from dragoman.tasks.masked_language_modelling.job import MaskedLanguageModellingJob
from dragoman.tasks.translation.job import TranslationJob
from dragoman.tasks.translation.job import TranslationRecipe as TranslationRecipe
from dragoman.text.sources.digests import remembered
from dragoman.training.distributed import Ranks, joined

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


def load(path: str | Path, overrides: list[str] | None = None) -> RecipeSettings:
    """A recipe file with dotted overrides. Without `run_dir` the run goes to `runs/NAME-OF-THE-RECIPE`."""
    data = config.override(read_yaml(path), overrides or [])
    data.setdefault("run_dir", f"runs/{Path(path).stem}")
    return parsed(data, str(path))


def of_run(run_dir: str | Path) -> RecipeSettings:
    """The recipe of a run directory. Raises DragomanError when it is none."""
    path = check_run_dir(run_dir) / "config.yaml"
    return parsed(read_yaml(path), str(path))


def parsed(data: dict[str, Any], source: str) -> RecipeSettings:
    """A recipe of plain data, as `config.to_dict` makes it of one."""
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
    stop_when: Callable[[int], bool] | None = None,
    report: WriteReport | None = None,
) -> Result:
    """Carry out a recipe: prepare, train (from the newest checkpoint, if there is one), score the tests.

    `seconds_left`: choose the number of steps so that all of it takes so long. `ranks`: those that train together, all
    of which call this. `stop_when`: asked after each step whether to save and stop there, as Ctrl-C would. `report`:
    writes a page about the run at its end (`analysis.report.write_report`).
    """
    with contextlib.ExitStack() as stack:
        if ranks is None:
            ranks = stack.enter_context(joined())
        ranks.first(lambda: stack.enter_context(locked(Path(recipe.run_dir))))
        stack.enter_context(remembered(Path(recipe.run_dir) / DIGESTS))
        stack.enter_context(threads_for(recipe.training.batch_tokens * recipe.model.d_model))
        return job(recipe, ranks).run(seconds_left, stop_when, report)


def run_to_end(recipe: Any, seconds_left: float | None = None, report: WriteReport | None = None) -> Result:
    """As `run`, for callers that use the model. Raises DragomanError where the training was stopped (Ctrl-C, SIGTERM):
    a training that stops and saves takes the signal, so that they would go on with half a model."""
    result = run(recipe, seconds_left, report=report)
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
