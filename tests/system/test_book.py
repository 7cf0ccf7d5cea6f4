"""Every chapter runs in a process of its own; the laboratory's bugs show, and hard exercises fail as they should."""

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.learn import lesson
from dragoman.learn.bug import Bug
from dragoman.learn.bugs import BUGS
from dragoman.learn.chapter import chapters
from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.exercises import CHAPTERS, exercises_of

ROOT = Path(__file__).parents[2]
GRADED_BY_TRAINING = [one for number in CHAPTERS for one in exercises_of(number) if one.name == "settings"]


LONG = {1, 3, 4, 8, 9, 10, 11, 12, 13, 14}
"""Chapters that train for a quarter of a minute and more: in `make test-all`."""


@pytest.mark.parametrize(
    "chapter",
    [pytest.param(one, marks=[pytest.mark.slow] if one.number in LONG else [], id=one.name) for one in chapters()],
)
def test_a_chapter_becomes_a_page_and_a_notebook(chapter: object, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman.learn.book", str(tmp_path), str(chapter.number)]  # type: ignore[attr-defined]
    environment = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_DATA"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{chapter.name}.html").read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert "Traceback (most recent call last)" not in page
    assert "<math" in page or "$" not in chapter.path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert (tmp_path / f"{chapter.name}.ipynb").exists()  # type: ignore[attr-defined]
    assert (tmp_path / "index.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("exercise", GRADED_BY_TRAINING, ids=lambda exercise: exercise.name)
def test_settings_are_graded_by_training(exercise: Exercise) -> None:
    exercise.check(exercise.solution)
    wrong = exercise.wrong_answers()
    assert len(wrong) >= 10
    for answer, message in wrong:
        with pytest.raises(Wrong, match=message):
            exercise.check(answer)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_shows_with_three_seeds(bug: Bug) -> None:
    for seed in (1, 2, 3):
        sound = bug.figure.measure(seed)
        with bug.planted():
            wrong = bug.figure.measure(seed)
        assert bug.is_sound(sound)
        assert not bug.is_sound(wrong)
        assert math.isfinite(sound)


ONLY_IN_SEARCHES = {
    "dropout while translating",
    "stale cache",
    "every new token at position 0",
    "</s> is never allowed",
}
"""Bugs without effect on a training: their lines are equal, and their pictures say so."""


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_line_that_is_drawn_shows_the_bug(bug: Bug) -> None:
    sound, wrong = lesson.curves(bug)
    assert (sound == wrong) == (bug.name in ONLY_IN_SEARCHES)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=[pytest.mark.slow]) for seed in (2, 3))])
def test_old_gradients_make_a_loss_rise_again_and_again(seed: int) -> None:
    sound, wrong = lesson.curves(lesson.bug_of(27), seed)
    assert max(sound[20:]) < 0.05
    assert max(wrong[20:]) > 0.1
    rises = [loss > 0.05 and loss > max(wrong[n - 1], wrong[n + 1]) for n, loss in enumerate(wrong[:-1]) if n >= 10]
    assert sum(rises) >= 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_dropout_that_is_not_scaled_makes_numbers_smaller_the_more_of_it(seed: int) -> None:
    sound, wrong = lesson.curves(lesson.bug_of(29), seed)
    assert all(abs(mean - 1.0) < 0.05 for mean in sound)
    assert all(after < before - 0.05 for before, after in itertools.pairwise(wrong))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_batches_that_are_not_shuffled_get_shorter_within_an_epoch(seed: int) -> None:
    sound, wrong = lesson.curves(lesson.bug_of(36), seed)
    epoch = len(wrong) // 3
    assert wrong[:epoch] == sorted(wrong[:epoch], reverse=True)
    assert wrong[epoch] > wrong[epoch - 1] + 10
    assert sound[:epoch] != sorted(sound[:epoch], reverse=True)


def test_a_lesson_is_measured_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "dragoman", "learn", "bug", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "in a sound model, 0 with the bug" in done.stdout
    assert lesson.bug_path(9).exists()
    assert Path("bug09.png").stat().st_size > 5000
