"""A bug as a lesson: its symptom measured and drawn, its function as a file to fix, the fixed function judged."""

import functools
import math
import random
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dragoman.analysis.figure import MUTED, TRAIN, VALID, new_figure
from dragoman.errors import DragomanError, Error
from dragoman.learn import laboratory
from dragoman.learn.bug import Bug, Curve
from dragoman.learn.bugs import BUGS
from dragoman.learn.chapter import chapters
from dragoman.learn.language import current_language, message, translated, translated_sentence, use_language
from dragoman.learn.limited import allow, limited, reason
from dragoman.learn.selftests import SELF_TESTS
from dragoman.learn.trials import first_difference
from dragoman.runs.atomic_io import replace_text

LETTERS = "abcd"
SECONDS = 20.0
"""The time that each part of judging a learner's function has, beside a multiple of what the sound one takes."""


def bug_of(number: int) -> Bug:
    """A bug by its number, from 1. Raises DragomanError where there is none."""
    if not 1 <= number <= len(BUGS):
        words = translated("there are bugs 1 to {last}, and no bug {number}").format(last=len(BUGS), number=number)
        raise Error.UNKNOWN_NAME(words, "dragoman learn bug --list")
    return BUGS[number - 1]


def bug_path(number: int) -> Path:
    return Path(f"bug{number:02}.py")


def names_to_choose_from(number: int) -> list[str]:
    """The bug's name and three others, in an order that is always the same: names of its chapter and those before it,
    as others use words that a reader does not know yet."""
    bug, rng, first = bug_of(number), random.Random(number), _first_chapters()
    others = sorted((one for one in first if one != number), key=lambda one: first[one])
    known = sum(first[one] <= first[number] for one in others)
    chosen = [bug.name, *(BUGS[one - 1].name for one in rng.sample(others[: max(known, 3)], len(LETTERS) - 1))]
    rng.shuffle(chosen)
    return chosen


@functools.cache
def _first_chapters() -> dict[int, int]:
    """By a bug's number the first chapter that hunts it."""
    pairs = [(number, chapter.number) for chapter in reversed(chapters()) for number in chapter.bugs()]
    return dict.fromkeys(range(1, len(BUGS) + 1), len(chapters())) | dict(pairs)


def write_bug(number: int) -> Path:
    """The function with the bug, as a file to mend; written unless it is there."""
    bug, path = bug_of(number), bug_path(number)
    if not path.exists():
        text = "{place}, with bug {number} in it. Mend it, then: dragoman learn bug {number} {check}"
        head = message(text, place=bug.place, number=number, check="--check")
        replace_text(path, f'"""{head}"""\n\n# {message("Names of its module are known here.")}\n\n{bug.source()}')
    return path


def figures(bug: Bug, seed: int = 1) -> tuple[float, float]:
    """The bug's figure, (without, with) it. A figure that cannot be computed with it is infinite."""
    sound = bug.figure.measure(seed)
    with bug.planted():
        return sound, bug.figure.measure(seed)


def curve_of(bug: Bug) -> Curve:
    """The line that is drawn of a bug: its own, or the losses of its toy training."""
    title, loss = "training of a toy task", "loss [nats per token]"
    return bug.curve or Curve(title, "step", loss, lambda seed: laboratory.train(seed, **bug.toy).losses)


def curves(bug: Bug, seed: int = 1) -> tuple[list[float], list[float]]:
    """The heights of a bug's line, (without, with) it."""
    sound = curve_of(bug).measure(seed)
    with bug.planted():
        return sound, curve_of(bug).measure(seed)


def lesson_figure(bug: Bug, values: tuple[float, float], seed: int = 1) -> Figure:
    """The bug's line, without the bug and with it, and the figure that was measured: `values`."""
    figure = new_figure(9, 3.6, "A sound model, and one with the bug")
    axes, right = figure.subplots(1, 2, width_ratios=(2, 1))
    labels = ("sound", "with the bug")
    right.bar(labels, [value if math.isfinite(value) else 0.0 for value in values], color=(TRAIN, VALID))
    for place, value in enumerate(values):
        if not math.isfinite(value):
            right.text(place, 0, "no number", ha="center", va="bottom")
    right.axhline(bug.figure.limit, color=MUTED, linestyle=":")
    right.set_xlabel(f"dotted: a sound model is {bug.figure.sound} it", fontsize=8)
    right.set_title("\n".join(textwrap.wrap(bug.figure.words, 38)), fontsize=8)
    curve, both = curve_of(bug), curves(bug, seed)
    same = "; the bug does not show here" if both[0] == both[1] else ""
    axes.set_title(f"{curve.title}{same}", fontsize=8)
    for heights, label, color, dash in zip(both, labels, (TRAIN, VALID), ("-", "--"), strict=True):
        places = curve.places or range(1, len(heights) + 1)
        axes.plot(places, heights, color=color, label=label, linestyle=dash)
    axes.set_xlabel(curve.x)
    axes.set_ylabel(curve.y)
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def check_fix(number: int) -> None:
    """Raise DragomanError with the fault of a learner's function; return if it is fixed."""
    bug_of(number)
    path = bug_path(number)
    if not path.exists():
        hint = translated("`{command}` writes it").format(command=f"dragoman learn bug {number}")
        raise Error.MISSING_FILE(translated(" is not in this folder"), hint, file=path)
    limited(judge_file, number, str(path), random.randrange(1000), current_language(), seconds=SECONDS)


def judge_file(number: int, path: str, seed: int, language: str) -> None:
    """Judge the function in a learner's file; in a process of its own, as all that a learner wrote."""
    use_language(language)
    bug = bug_of(number)
    try:
        function = bug.fixed(Path(path).read_text(encoding="utf-8"), path)
    except SyntaxError as error:
        raise Error.BAD_SYNTAX(
            translated("this is no Python: {why}").format(why=error.msg), file=path, line=error.lineno
        ) from error
    except DragomanError:
        raise
    except Exception as error:
        raise Error.WRONG_ANSWER(reason(error), file=path) from error
    judge(bug, function, seed)


def judge(bug: Bug, function: Callable[..., Any], seed: int) -> None:
    """Raise DragomanError with the first fault of a function in the place of the sound one; return if it has none.

    The bug's own self-test says most; then all others; then the sound function itself, on drawn inputs.
    """
    start = time.monotonic()
    if why := failure(bug, bug.sound, bug.selftest):
        raise Error.FAULT(f"{bug.selftest} fails without a bug: {why}")
    seconds = SECONDS + 20 * (time.monotonic() - start)
    own, another = "{test}: {why}", "it passes its own self-test, and not another: {test}: {why}"
    for name in (bug.selftest, *(name for name in SELF_TESTS if name != bug.selftest)):
        allow(seconds)
        if why := failure(bug, function, name):
            words = translated(own if name == bug.selftest else another)
            raise Error.WRONG_ANSWER(
                words.format(test=translated(name.replace("_", " ")), why=translated_sentence(why))
            )
    allow(seconds)
    if why := first_difference(bug.sound, function, seed):
        words = translated("it passes all self-tests, and does not do what it should everywhere; {why}")
        raise Error.WRONG_ANSWER(words.format(why=why))


def failure(bug: Bug, function: Callable[..., Any], selftest: str) -> str:
    """The reason why a self-test fails with `function` in its place, or nothing."""
    with bug.planted(function):
        try:
            SELF_TESTS[selftest]()
        except AssertionError as error:
            return str(error) or "it fails"
        except Exception as error:
            return reason(error)
    return ""


def symptoms_page() -> str:
    """docs/not-learning.md."""
    lines = [
        "# Why does my Transformer not learn?",
        "",
        "Symptoms first. Each row is a bug of the laboratory: `dragoman learn bug N` plants it in Dragoman's own",
        "code, trains a toy task with it and shows what it does. The self-test beside it is a function of",
        "`src/dragoman/learn/selftests.py` that fails with the bug. Each takes about a second, and most ask for a",
        "property that any Transformer should have: try them on yours.",
        "",
        "| N | what you see | what it may be | the self-test that catches it |",
        "|---|---|---|---|",
    ]
    for number, bug in enumerate(BUGS, start=1):
        cells = (str(number), bug.symptom, f"*{bug.name[0].upper()}{bug.name[1:]}.* {bug.why}", f"`{bug.selftest}`")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|').replace('<', '&lt;') for cell in cells)} |")
    return "\n".join([*lines, ""])
