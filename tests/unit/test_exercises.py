"""Solutions pass their checks; each known mistake fails with the message that names it."""

import inspect
import random

import pytest
import torch

from dragoman.learn.book import source_of_symbol
from dragoman.learn.diagnosis import difference
from dragoman.learn.exercise import GAP, Exercise, Wrong, answers_file, mistakes, read_words
from dragoman.learn.exercises import CHAPTERS, exercises_of

ALL = [one for chapter in CHAPTERS for one in exercises_of(chapter)]
BY_VALUES = [one for one in ALL if one.kind != "experiment"]
LEAST_MISTAKES = {"predict": 6, "fill": 8, "write": 10}


def names(exercise: Exercise) -> str:
    return f"{exercise.chapter}-{exercise.name}"


def as_answer(exercise: Exercise, value: object) -> object:
    """A prediction is written down."""
    space: dict[str, object] = {}
    exec(f"def {exercise.name}():\n    return {value!r}\n", space)
    return space[exercise.name]


def test_each_chapter_has_a_ladder() -> None:
    for chapter in CHAPTERS:
        kinds = [one.kind for one in exercises_of(chapter)]
        assert kinds == sorted(kinds, key=["predict", "fill", "write", "experiment"].index)
        assert set(kinds) == ({"predict"} if chapter == 0 else {"predict", "fill", "write", "experiment"})
    every = [one.name for one in ALL]
    assert len(set(every)) == len(every)
    assert list(read_words()) == every
    assert set(mistakes()) == {one.name for one in ALL if one.kind != "experiment"} | {"settings"}


@pytest.mark.parametrize("exercise", ALL, ids=names)
def test_each_exercise_has_hints_a_reason_and_a_place_in_the_code(exercise: Exercise) -> None:
    assert 2 <= len(exercise.words["hints"]) <= 4
    path, symbol = exercise.words["code"].split(": ")
    source_of_symbol(path, symbol)
    assert exercise.words["why"] in exercise.why()


@pytest.mark.parametrize("exercise", BY_VALUES, ids=names)
def test_the_solution_passes_and_its_mistakes_are_named(exercise: Exercise) -> None:
    is_prediction = exercise.kind == "predict"
    for _ in range(3):
        exercise.check(as_answer(exercise, exercise.solution()) if is_prediction else exercise.solution)  # type: ignore[arg-type]
    wrong = exercise.wrong_answers()
    assert len(wrong) >= LEAST_MISTAKES[exercise.kind]
    assert len({message for _, message in wrong}) == len(wrong)
    for answer, message in wrong:
        with pytest.raises(Wrong) as caught:
            exercise.check(as_answer(exercise, answer()) if is_prediction else answer, seed=1)  # type: ignore[arg-type]
        assert str(caught.value) == message


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_learner_gets_the_task_and_not_the_solution(chapter: int) -> None:
    text = answers_file(exercises_of(chapter))
    space: dict[str, object] = {}
    exec(compile(text, "answers.py", "exec"), space)
    for exercise in exercises_of(chapter):
        stub = space[exercise.name]
        task = inspect.getdoc(exercise.solution)
        assert (inspect.getdoc(stub) or "").startswith(task or "-")
        with pytest.raises(NotImplementedError):
            exercise.check(stub)  # type: ignore[arg-type]
        body = inspect.getsource(exercise.solution).rstrip().splitlines()[-1].strip()
        if exercise.kind == "predict":
            assert body in (inspect.getdoc(stub) or "")
        elif exercise.kind == "fill":
            assert text.count(GAP) >= 1
            assert exercise.gap not in text
        elif len(body) > 1:
            assert body not in text


def test_a_mistake_that_is_not_known_is_shown_by_its_first_difference() -> None:
    exercise = next(one for one in ALL if one.name == "noam")
    with pytest.raises(Wrong, match=r"the answer should be 0\.\d+ and is 5"):
        exercise.check(lambda step, d_model, warmup: 5.0)
    with pytest.raises(Wrong, match=r"ZeroDivisionError"):
        exercise.check(lambda step, d_model, warmup: 1 / 0)
    assert "2 values" in difference((1, 2), None)


def test_a_number_may_be_a_tensor_of_one() -> None:
    assert difference(2.5, torch.tensor(2.5)) == ""
    assert difference(torch.tensor(2.5), 2.5) == ""
    assert "should be 2.5 and is 2" in difference(2.5, torch.tensor(2.0))


def test_an_answer_that_changes_its_inputs_is_wrong() -> None:
    exercise = next(one for one in ALL if one.name == "pad")

    def in_place(rows: list[list[int]], pad_id: int) -> object:
        expected = exercise.solution([list(row) for row in rows], pad_id)
        rows.clear()
        return expected

    with pytest.raises(Wrong, match="it changes its argument `rows` in place"):
        exercise.check(in_place, seed=random.randrange(99))
