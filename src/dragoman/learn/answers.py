"""A learner's own files: answers to exercises, a fixed function, and what is done so far."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.learn.exercise import Exercise, Wrong, answers_file
from dragoman.learn.exercises import exercises_of
from dragoman.runs.atomic_io import replace_text

PROGRESS = Path("dragoman-learn.json")
"""In the current folder, beside notebooks and answers."""


def answers_path(chapter: int) -> Path:
    return Path(f"answers{chapter:02}.py")


def write_answers(chapter: int) -> Path:
    """The file for a chapter's answers, written unless it is there."""
    path = answers_path(chapter)
    if not path.exists():
        replace_text(path, answers_file(exercises_of(chapter)))
    return path


def read_answers(chapter: int) -> dict[str, Any]:
    """The names that a learner's file defines. Raises DragomanError where it is not there, or is no Python."""
    path = answers_path(chapter)
    if not path.exists():
        raise Error.MISSING_FILE(" is not in this folder", f"`dragoman learn {chapter}` writes it", file=path)
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    except Exception as error:
        line = getattr(error, "lineno", None)
        raise Error.WRONG_ANSWER(f"{type(error).__name__}: {error}", file=path, line=line) from error
    return space


def graded(exercise: Exercise, answers: dict[str, Any]) -> str:
    """The verdict on an answer: "right", "not written yet", or what is wrong."""
    answer: Callable[..., Any] | None = answers.get(exercise.name)
    if not callable(answer):
        return f"there is no function {exercise.name} in the file any more"
    try:
        exercise.check(answer)
    except NotImplementedError:
        return "not written yet"
    except Wrong as wrong:
        return str(wrong).removeprefix(f"{exercise.name}: ")
    return "right"


def progress() -> dict[str, list[str]]:
    """Everything that is solved: {"exercises": ["3-sequence_mask", ...], "bugs": ["7", ...]}."""
    try:
        done = json.loads(PROGRESS.read_text(encoding="utf-8"))
        return {kind: [str(one) for one in done[kind]] for kind in ("exercises", "bugs")}
    except (OSError, ValueError, KeyError, TypeError):
        return {"exercises": [], "bugs": []}


def record(kind: str, name: str) -> None:
    """Note that something is done."""
    done = progress()
    if name not in done[kind]:
        done[kind].append(name)
        replace_text(PROGRESS, json.dumps(done, indent=1) + "\n")
