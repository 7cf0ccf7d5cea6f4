"""The laboratory accepts sound mends and no others, its bugs have no scars, and no text gives them away."""

import ast
import functools
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.errors import DragomanError
from dragoman.learn import language, lesson
from dragoman.learn.bug import Bug
from dragoman.learn.bugs import BUGS
from dragoman.learn.chapter import chapters
from dragoman.learn.selftests import SELF_TESTS
from dragoman.learn.trials import first_difference

ROOT = Path(__file__).parents[2]
MENDS = yaml.safe_load((ROOT / "tests/fixtures/mends.yaml").read_text(encoding="utf-8"))
BY_NAME = {bug.name: bug for bug in BUGS}
QUICK = 7
"""Of so many mends one is judged by the quick tests."""

Mend = str | dict[str, str]


def mended(bug: Bug, mend: Mend) -> Callable[..., Any]:
    """The function that a learner has written: the broken one with a body, or with edits."""
    source = bug.source()
    if isinstance(mend, str):
        source = source[: source.index("):\n") + 3] + textwrap.indent(mend, "    ") + "\n"
    else:
        for old, new in mend.items():
            assert old in source, f"{old!r} is not in the broken function"
            source = source.replace(old, new)
    assert source != bug.source()
    return bug.fixed(source, "mend.py")


def cases(kind: str) -> Iterator[Any]:
    number = 0
    for name, mends in MENDS[kind].items():
        for label, mend in mends.items() if isinstance(mends, dict) else enumerate(mends, start=1):
            marks = [pytest.mark.system] if number % QUICK else []
            yield pytest.param(BY_NAME[name], mend, id=f"{name}: {label}", marks=marks)
            number += 1


def test_there_are_many_mends_for_each_bug_and_no_two_are_the_same() -> None:
    assert list(MENDS["good"]) == list(MENDS["bad"]) == [bug.name for bug in BUGS]
    assert all(len(mends) >= 2 for mends in MENDS["good"].values())
    assert all(len(mends) >= 5 for mends in MENDS["bad"].values())
    assert sum(map(len, MENDS["good"].values())) >= 100
    assert sum(map(len, MENDS["bad"].values())) >= 340
    for mends in MENDS["bad"].values():
        assert len({repr(mend) for mend in mends.values()}) == len(mends)
    for place, report in MENDS["reports"].items():
        name, _, label = place.partition(": ")
        assert label in MENDS["bad"][name]
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", report)


@pytest.mark.parametrize(("bug", "mend"), list(cases("good")))
def test_a_good_mend_is_accepted(bug: Bug, mend: Mend) -> None:
    lesson.judge(bug, mended(bug, mend), seed=1)


@pytest.mark.parametrize(("bug", "mend"), list(cases("bad")))
def test_a_bad_mend_is_refused(bug: Bug, mend: Mend) -> None:
    """As `judge` does it, with what takes longest at the end."""
    function = mended(bug, mend)
    if lesson.failure(bug, function, bug.selftest) or first_difference(bug.sound, function, 1):
        return
    assert any(lesson.failure(bug, function, name) for name in SELF_TESTS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_drawn_inputs_know_the_broken_function_and_not_the_sound_one(bug: Bug) -> None:
    for seed in (1, 2):
        assert first_difference(bug.sound, bug.sound, seed) == ""
        assert first_difference(bug.sound, bug.broken, seed) != ""


def test_each_way_of_failing_is_said_in_a_sentence() -> None:
    bug = BY_NAME["the LSTM reads padding"]
    alone, state = (mended(bug, MENDS["bad"][bug.name][label]) for label in ("it reads padding alone", "an LSTM alone"))
    for function, start in (
        (bug.broken, "a sentence does not depend on its batch: "),
        (alone, "it passes its own self-test, and not another: the source matters: "),
        (state, "it passes all self-tests, and does not do what it should everywhere; GRU, "),
    ):
        with pytest.raises(DragomanError) as info:
            lesson.judge(bug, function, seed=1)
        assert str(info.value).startswith(start)
        assert "\n" not in str(info.value)


def test_a_position_that_sees_nothing_is_no_leak() -> None:
    bug = BY_NAME["the causal mask is the other triangle"]
    said = lesson.failure(bug, mended(bug, {"triu()": "tril(-1)"}), "no_position_sees_the_future")
    assert said == "logits are NaN: a position sees nothing, not even itself"


def test_a_learner_chooses_among_bugs_of_chapters_that_are_read() -> None:
    first = {one: chapter.number for chapter in reversed(chapters()) for one in chapter.bugs()}
    assert sorted(first) == list(range(1, len(BUGS) + 1))
    numbers = {bug.name: number for number, bug in enumerate(BUGS, start=1)}
    for number, bug in enumerate(BUGS, start=1):
        names = lesson.names_to_choose_from(number)
        assert (len(set(names)), bug.name in names) == (4, True)
        assert all(first[numbers[name]] <= max(first[number], 3) for name in names)


@pytest.mark.system
def test_the_dotted_line_of_a_lesson_is_named() -> None:
    bug = BUGS[3]
    figure = lesson.lesson_figure(bug, (0.1, 0.2))
    assert figure.axes[1].get_xlabel() == f"dotted: a sound model is {bug.figure.sound} it"


def judged(number: int, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The words of `--check` on a file."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(lesson, "SECONDS", 1.0)
    lesson.bug_path(number).write_text(text, encoding="utf-8")
    with pytest.raises(DragomanError) as info:
        lesson.check_fix(number)
    return str(info.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def causal_mask(length, device=None):\n    while True:\n        pass\n", "bug09.py"),
        ("while True:\n    pass\n", r"\(it is in line \d of bug09.py\): look for a loop that never ends"),
        ("def causal_mask(length, device=None):\n    return torch.ones(2**40)\n", "memory"),
        ("def causal_mask(length, device=None):\n    return causal_mask(length)\n", "it calls itself without end"),
        ("def causal_mask(:\n", "bug09.py:1: this is no Python"),
        ("import nothing_of_this_name\n", "bug09.py: ModuleNotFoundError"),
        ("def causal_masks(length):\n    return 1\n", "there is no function causal_mask in it any more"),
        ("import os\nos._exit(0)\n", "your code has ended Python"),
    ],
)
def test_a_file_that_loops_grows_or_breaks_is_one_line(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = judged(9, text, tmp_path, monkeypatch)
    assert re.search(words, message)
    assert "\n" not in message


def test_a_file_may_have_functions_and_imports_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    helper = "import torch\n\n\ndef lower(length):\n    return torch.ones(length, length).tril() > 0\n"
    sound = "\n\ndef causal_mask(length, device=None):\n    return lower(length)[None, None]\n"
    lesson.bug_path(9).write_text(helper + sound, encoding="utf-8")
    lesson.check_fix(9)


# -- no scars ------------------------------------------------------------------------------------------------------


IDLE: dict[type[ast.operator], tuple[Any, ...]] = {
    ast.Mult: (0, 1), ast.Div: (1,), ast.Add: (0,), ast.Sub: (0,), ast.BitAnd: (True,), ast.BitOr: (False,),
}  # fmt: skip
"""Constants that do nothing, or undo everything, on the right of an operator."""


def scars(function: ast.FunctionDef) -> Iterator[str]:
    """Code that a person would not have written so: it does nothing, or is never used."""
    for node in ast.walk(function):
        text = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
        if isinstance(node, ast.Pass):
            yield "pass"
        if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(node.test, ast.Constant):
            yield f"a condition that is always the same: {text}"
        if isinstance(node, ast.IfExp) and ast.unparse(node.body) == ast.unparse(node.orelse):
            yield f"two cases that are the same: {text}"
        if isinstance(node, ast.BinOp):
            sides = (node.right, node.left) if isinstance(node.op, ast.Mult | ast.Add) else (node.right,)
            if any(isinstance(side, ast.Constant) and side.value in IDLE.get(type(node.op), ()) for side in sides):
                yield f"a constant that does nothing: {text}"
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
            yield f"a constant: {text}"
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    yield from (
        f"{name.id} is not used" for name in names if isinstance(name.ctx, ast.Store) and name.id not in used | {"_"}
    )


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_broken_function_has_no_scars(bug: Bug) -> None:
    function = ast.parse(bug.source()).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(scars(function)) == []
    words = (ast.get_docstring(function) or "").lower()
    comments = " ".join(re.findall(r"#(.*)", bug.source())).lower()
    assert not re.search(r"\b(bug|wrong|broken|mistake|fixme|todo)\b", words + comments)


def test_scars_are_seen() -> None:
    for body in (
        "    pass\n",
        "    if False:\n        return x\n    return 2 * x\n",
        "    return x * 0.0\n",
        "    y = x\n    return x\n",
        "    return x if True else None\n",
        "    return x + 0\n",
        "    return 1.0\n",
        "    for a, b in x:\n        x.append(a)\n",
    ):
        function = ast.parse(f"def f(x):\n{body}").body[0]
        assert isinstance(function, ast.FunctionDef)
        assert list(scars(function)) != [], body


def test_what_a_learner_gets_says_the_place_and_the_number_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, bug in enumerate(BUGS, start=1):
        path = lesson.write_bug(number)
        assert path.name == f"bug{number:02}.py"
        head = path.read_text(encoding="utf-8").partition("def ")[0].lower()
        assert not set(telling(bug.name)) & set(telling(head.replace(bug.place.lower(), "")))


def test_all_words_of_the_laboratory_are_there_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "_language", "zh")
    words = [text for bug in BUGS for text in (bug.name, bug.symptom, bug.why, bug.figure.words)]
    for text in [*words, *(name.replace("_", " ") for name in SELF_TESTS)]:
        assert re.search(r"[\u4e00-\u9fff]", language.translated(text)), text
    bug = BY_NAME["the LSTM reads padding"]
    with pytest.raises(DragomanError, match="它通过了所有自检，但并不是处处都对"):
        lesson.judge(bug, mended(bug, MENDS["bad"][bug.name]["an LSTM alone"]), seed=1)


# -- no spoilers ---------------------------------------------------------------------------------------------------

COMMON = set(re.findall(r"\w+", "padding dropout layer token loss position encoder weight head state dimension with"))
"""Words that say where a symptom is seen."""


def telling(text: str) -> list[str]:
    """The words of a text that may give a cause away, without their endings."""
    words = re.findall(r"[a-z</>]{4,}", text.lower())
    return [word for word in (word.rstrip("s") for word in words) if word not in COMMON]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_symptom_does_not_say_the_cause(bug: Bug) -> None:
    assert bug.symptom != bug.why
    name, symptom = telling(bug.name), telling(bug.symptom)
    said = [word for word in name if word in symptom]
    assert len(said) <= len(name) // 2, said
    assert not re.search(r"\b(mask|transpose|softmax|zero_grad|tanh|residual|view|sqrt|cache|causal|warm)", bug.symptom)


TO_HUNT = (
    r"Bugs to hunt: `dragoman learn bug \d+`(, `\d+`)*\.",
    r"(待捉的错误|要找的错误|找错误)：`dragoman learn bug \d+`(、`\d+`)*。",
)
"""The line of a chapter that names bugs: by their numbers alone."""
COMMAND = r"\| `dragoman learn bug \d+` \|.*"
"""A row of a table says what the command does."""


@functools.cache
def prose(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#")]


def spoilers(lines: list[str]) -> list[str]:
    """The lines that name a bug by its number, and say more."""
    named = [line for line in lines if re.search(r"\b[Bb]ugs? ?`?\d|错误 ?`?\d", line)]
    return [line for line in named if not any(re.fullmatch(pattern, line) for pattern in (*TO_HUNT, COMMAND))]


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_a_chapter_names_bugs_by_their_numbers_alone(chapter: Any) -> None:
    lines = prose(chapter.path)
    assert spoilers(lines) == []
    to_hunt = [line for line in lines if any(re.fullmatch(pattern, line) for pattern in TO_HUNT)]
    assert {int(number) for line in to_hunt for number in re.findall(r"\d+", line)} <= set(range(1, len(BUGS) + 1))


def test_a_spoiler_is_seen() -> None:
    assert spoilers(["Bugs to hunt: `dragoman learn bug 4`, `5`, `14`.", "找错误：`dragoman learn bug 4`、`5`。"]) == []
    for line in (
        "Bugs 4, 5 (divided by what?)",
        "That is `zero_grad`, and bug 27.",
        "Bugs to hunt: `bug 4` (padding).",
    ):
        assert spoilers([line]) == [line]
