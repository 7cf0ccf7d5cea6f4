"""A learner's own files: answers to exercises, a fixed function, and what is done so far."""

import ast
import contextlib
import difflib
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, Error
from dragoman.learn import mini, module_file
from dragoman.learn.exercise import Exercise, Wrong, answers_file
from dragoman.learn.exercises import CHAPTERS, exercises_of
from dragoman.learn.language import current_language, message, translated, use_language
from dragoman.learn.limited import limited
from dragoman.runs.atomic_io import replace_text

PROGRESS = Path("dragoman-learn.json")
"""In the current folder, beside notebooks and answers."""
TRIES = 2
"""Wrong answers after which the solution may be seen."""
PRINTED_LINES = 5
NOT_WRITTEN = "not written yet"


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
        hint = message("`{command}` writes it", command=f"dragoman learn {chapter}")
        raise Error.MISSING_FILE(message(" is not in this folder"), hint, file=path)
    return vars(module_file.load(path))


def exercise_of(chapter: int, name: str) -> Exercise:
    """An exercise by its name. Raises DragomanError where the chapter has none of that name."""
    by_name = {one.name: one for one in exercises_of(chapter)}
    if name not in by_name and name in [piece.name for piece in mini.pieces_of(chapter)]:
        text = '{name} is a piece of {file}, and has no hints: see "In plain PyTorch" in the chapter'
        raise Error.UNKNOWN_NAME(message(text, name=name, file=mini.PATH))
    if name not in by_name:
        raise Error.UNKNOWN_NAME(
            message(
                "chapter {number} has no exercise {name}: {names}", number=chapter, name=name, names=", ".join(by_name)
            )
        )
    return by_name[name]


def verdicts(chapter: int) -> Iterator[tuple[Exercise, str, list[str]]]:
    """(exercise, verdict, the first lines that the answer has printed). A verdict is what is wrong, `NOT_WRITTEN`, or
    empty where the answer is right.

    Each is graded in a process of its own. Raises DragomanError where the file cannot be read at all.
    """
    language = current_language()
    limited(_can_be_read, chapter, language)
    for exercise in exercises_of(chapter):
        try:
            verdict, printed = limited(_verdict, chapter, exercise.name, language, seconds=exercise.seconds)
        except NotImplementedError:
            verdict, printed = NOT_WRITTEN, []
        except DragomanError as error:  # too late, too large, or ended
            verdict, printed = str(error), []
        yield exercise, verdict, printed


def _can_be_read(chapter: int, language: str) -> None:
    use_language(language)
    with _quiet():
        read_answers(chapter)


def _verdict(chapter: int, name: str, language: str) -> tuple[str, list[str]]:
    use_language(language)
    exercise = exercise_of(chapter, name)
    with _quiet() as printed:
        verdict = graded(exercise, read_answers(chapter))
    lines = printed.getvalue().splitlines()
    more = (
        [message("... and {count} lines more", count=len(lines) - PRINTED_LINES)] if len(lines) > PRINTED_LINES else []
    )
    return verdict, [*lines[:PRINTED_LINES], *more]


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """Keep what is printed, and have nothing to read."""
    printed, stdin = io.StringIO(), sys.stdin
    with open(os.devnull, encoding="utf-8") as nothing, contextlib.redirect_stdout(printed):
        sys.stdin = nothing
        try:
            yield printed
        finally:
            sys.stdin = stdin


def graded(exercise: Exercise, answers: dict[str, Any]) -> str:
    """The verdict on an answer: nothing if it is right, else what is wrong. Raises NotImplementedError."""
    answer = answers.get(exercise.name)
    if not callable(answer):
        near = difflib.get_close_matches(exercise.name, [name for name, value in answers.items() if callable(value)], 1)
        if answer is not None or not near:
            return message("there is no function {name} in the file any more", name=exercise.name)
        return message("there is no function {name} in the file; is it {other}?", name=exercise.name, other=near[0])
    try:
        exercise.check(answer)
    except Wrong as wrong:
        return str(wrong)
    return ""


# -- what is done ------------------------------------------------------------------------------------------------------


def progress() -> dict[str, Any]:
    """Everything that is solved and tried: {"exercises": ["5-sequence_mask", ...], "bugs": ["7", ...], "tries": {name:
    [a digest of each wrong answer]}, "hints": {name: how many were shown}, "language": "en"}.
    """
    empty: dict[str, Any] = {"exercises": [], "bugs": [], "tries": {}, "hints": {}, "language": "en"}
    try:
        read = json.loads(PROGRESS.read_text(encoding="utf-8"))
        done = {kind: read.get(kind, value) for kind, value in empty.items()}
    except (OSError, ValueError, AttributeError):
        return empty
    done = {kind: value if isinstance(value, type(empty[kind])) else empty[kind] for kind, value in done.items()}
    chapters = {one.name: chapter for chapter in CHAPTERS for one in exercises_of(chapter)}  # some have moved
    names = [str(name).partition("-")[2] for name in done["exercises"]]
    done["exercises"] = [f"{chapters[name]}-{name}" for name in names if name in chapters]
    done["bugs"] = [str(one) for one in done["bugs"]]
    return done


def record(kind: str, name: str) -> None:
    """Note that something is done."""
    done = progress()
    if name not in done[kind]:
        done[kind].append(name)
        _write(done)


def remember_language(language: str) -> None:
    done = progress()
    if done["language"] != language:
        _write({**done, "language": language})


def record_try(exercise: Exercise) -> int:
    """Note a wrong answer, the same one once, and give the number of all."""
    done = progress()
    tries = [one for one in done["tries"].get(exercise.name, []) if isinstance(one, str)]
    digest = _digest(exercise)
    if digest not in tries:
        done["tries"][exercise.name] = tries = [*tries, digest]
        _write(done)
    return len(tries)


def _digest(exercise: Exercise) -> str:
    """A short name of what a learner has written: comments and blanks do not matter."""
    tree = ast.parse(answers_path(exercise.chapter).read_bytes())
    written = [ast.dump(node) for node in tree.body if getattr(node, "name", None) == exercise.name]
    return hashlib.sha256("".join(written).encode()).hexdigest()[:12]


def next_hint(exercise: Exercise) -> tuple[int, int, str]:
    """(number of the hint, number of all hints, hint): each time the next one, at the end the last again."""
    done, hints = progress(), exercise.words["hints"]
    shown = done["hints"].get(exercise.name, 0)
    number = min(shown + 1 if isinstance(shown, int) else 1, len(hints))
    done["hints"][exercise.name] = number
    _write(done)
    return number, len(hints), translated(hints[number - 1])


def tries_left(exercise: Exercise) -> int:
    """The number of wrong answers until the solution may be seen; 0 if it may."""
    done = progress()
    if f"{exercise.chapter}-{exercise.name}" in done["exercises"]:
        return 0
    return max(0, TRIES - len(done["tries"].get(exercise.name, [])))


def _write(done: dict[str, Any]) -> None:
    replace_text(PROGRESS, json.dumps(done, indent=1) + "\n")
