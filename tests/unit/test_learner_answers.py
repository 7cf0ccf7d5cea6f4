"""Answers as learners write them: wrong ones are named for what they are, right ones are accepted."""

import inspect
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn import functional as F

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.exercises import CHAPTERS, exercises_of

ALL = {one.name: one for chapter in CHAPTERS for one in exercises_of(chapter)}
NOT_NAMED = {
    ("shift", 6),
    ("shift", 9),
    ("predict_ids", 4),
    ("merge_pair", 6),
    ("pad", 3),
    ("lstm_step", 7),
    ("attention", 10),
    ("masked_cross_entropy", 2),
    ("rotate", 5),
    ("sinusoid", 7),
    ("layer_norm", 6),
    ("as_convolution", 6),
    ("smooth_without_pad", 4),
    ("length_score", 7),
    ("modified_precision", 6),
    ("modified_precision", 7),
    ("bleu", 1),
    ("read_signature", 4),
    ("patches", 3),
}
"""(exercise, number among its wrong answers) of those that are refused without a name."""
BARE = re.compile(
    r"(^|else: |of \d+: )([^:]* numbers in .* are wrong; at|[^:]* should (be|have) \S+( values)? and (is|has) )"
)
"""A message that shows the first difference, and no more."""


class Answer(NamedTuple):
    exercise: str
    number: int
    says: str
    body: str


def read(name: str) -> list[Answer]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    answers: list[Answer] = []
    count: Counter[str] = Counter()
    for block in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        exercise, _, says = head.partition(": ")
        count[exercise] += 1
        answers.append(Answer(exercise, count[exercise], says, body.rstrip()))
    return answers


WRONG, RIGHT = read("wrong_answers.txt"), read("right_answers.txt")


def function(answer: Answer) -> Callable[..., Any]:
    parameters = ", ".join(inspect.signature(ALL[answer.exercise].solution).parameters)
    space: dict[str, Any] = {"torch": torch, "F": F, "math": math, "Counter": Counter}
    exec(f"def {answer.exercise}({parameters}):\n{textwrap.indent(answer.body, '    ')}\n", space)
    written: Callable[..., Any] = space[answer.exercise]
    return written


def test_there_are_enough_of_them_and_nine_of_ten_are_named() -> None:
    """Each that is not listed in NOT_NAMED is named: the test below asks for it."""
    assert len(WRONG) >= 200
    assert len(RIGHT) >= 60
    assert len(NOT_NAMED) <= 0.1 * len(WRONG)
    exercises = {name for name, one in ALL.items() if one.name != "settings"}
    assert {answer.exercise for answer in WRONG} >= exercises
    assert {answer.exercise for answer in RIGHT} == exercises - {"transformer", "beam_worse", "one_million"}


@pytest.mark.parametrize("exercise", ALL.values(), ids=lambda one: one.name)
def test_wrong_answers_are_refused_and_named(exercise: Exercise) -> None:
    for answer in WRONG:
        if answer.exercise != exercise.name:
            continue
        with pytest.raises((Wrong, NotImplementedError)) as caught:
            exercise.check(function(answer), seed=7)
        if (answer.exercise, answer.number) not in NOT_NAMED:
            assert re.search(answer.says, str(caught.value)), answer
            assert not BARE.search(str(caught.value)), answer


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: f"{answer.exercise}-{answer.number}")
def test_right_answers_in_other_codings_are_accepted(answer: Answer) -> None:
    ALL[answer.exercise].check(function(answer))
