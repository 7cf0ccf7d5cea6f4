"""Solutions pass their checks; each known mistake fails with the message that names it."""

import inspect
import random

import pytest
import torch

from dragoman.learn.exercise import Exercise, Wrong, answers_file, difference
from dragoman.learn.exercises import CHAPTERS, exercises_of

ALL = [one for chapter in CHAPTERS for one in exercises_of(chapter)]
BY_VALUES = [one for one in ALL if one.grade is None]


def names(exercise: Exercise) -> str:
    return f"{exercise.chapter}-{exercise.name}"


@pytest.mark.parametrize("exercise", BY_VALUES, ids=names)
def test_the_solution_passes_and_ten_mistakes_are_named(exercise: Exercise) -> None:
    for _ in range(3):
        exercise.check(exercise.solution)
    wrong = exercise.wrong_answers()
    assert len(wrong) >= 10
    assert len({message for _, message in wrong}) == len(wrong)
    for answer, message in wrong:
        with pytest.raises(Wrong) as caught:
            exercise.check(answer, seed=1)
        assert str(caught.value) == f"{exercise.name}: {message}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_learner_gets_the_task_and_not_the_solution(chapter: int) -> None:
    text = answers_file(exercises_of(chapter))
    space: dict[str, object] = {}
    exec(compile(text, "answers.py", "exec"), space)
    for exercise in exercises_of(chapter):
        stub = space[exercise.name]
        assert inspect.getdoc(stub) == inspect.getdoc(exercise.solution)
        with pytest.raises(NotImplementedError):
            exercise.check(stub)  # type: ignore[arg-type]
        body = inspect.getsource(exercise.solution).rstrip().splitlines()[-1]
        assert body not in text


def test_a_mistake_that_is_not_known_is_shown_by_its_first_difference() -> None:
    [exercise, *_] = exercises_of(11)
    with pytest.raises(Wrong, match=r"the answer should be 0\.\d+ and is 5"):
        exercise.check(lambda step, d_model, warmup: 5.0)
    with pytest.raises(Wrong, match=r"raises ZeroDivisionError"):
        exercise.check(lambda step, d_model, warmup: 1 / 0)
    assert "2 values" in difference((1, 2), None)


def test_a_number_may_be_a_tensor_of_one() -> None:
    assert difference(2.5, torch.tensor(2.5)) == ""
    assert difference(torch.tensor(2.5), 2.5) == ""
    assert "should be 2.5 and is 2" in difference(2.5, torch.tensor(2.0))


def test_an_answer_cannot_change_what_the_solution_is_given() -> None:
    exercise = exercises_of(2)[1]

    def in_place(rows: list[list[int]], pad_id: int) -> object:
        expected = exercise.solution([list(row) for row in rows], pad_id)
        rows.clear()
        return expected

    exercise.check(in_place, seed=random.randrange(99))
