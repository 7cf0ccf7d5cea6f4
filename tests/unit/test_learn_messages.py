"""Every text of `dragoman learn` has a Chinese one, which keeps its fields."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.learn import answers, language, mini, selftests
from dragoman.learn.diagnosis import difference
from dragoman.learn.exercise import HEAD, Wrong, mistakes, read_words
from dragoman.learn.exercises import CHAPTERS, exercises_of
from dragoman.learn.exercises.chapter01 import settings_problem

ROOT = Path(dragoman.__file__).parent
FILES = [
    ROOT / "cli/learn.py",
    *(
        ROOT / f"learn/{name}.py"
        for name in ("answers", "diagnosis", "exercise", "lesson", "mini", "module_file", "mutants")
    ),
    ROOT / "learn/audit/subject.py",
    *sorted((ROOT / "learn/exercises").glob("*.py")),
]
LIMITED = answers.limited


def templates(path: Path) -> Iterator[str]:
    """Texts that are shown: those that `message` and `translated` get, also by a name or from a table."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("message", "translated"):
            assert not isinstance(node.args[0], ast.JoinedStr), f"{path}:{node.lineno}: no text that is made up"
            if isinstance(node.args[0], ast.Constant):
                yield node.args[0].value
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "text":
            yield from (one.value for one in [node.value] if isinstance(one, ast.Constant))
        if isinstance(node, ast.Dict | ast.Tuple):
            first = node.keys[:] if isinstance(node, ast.Dict) else node.elts[:1]
            values = [one.value for one in first if isinstance(one, ast.Constant)]
            yield from (one for one in values if isinstance(one, str) and " " in one and path.stem == "diagnosis")


def texts() -> set[str]:
    shown = {text for path in FILES for text in templates(path)}
    shown |= {answers.NOT_WRITTEN, HEAD}
    for chapter in CHAPTERS:
        for exercise in exercises_of(chapter):
            task = (inspect.getdoc(exercise.solution) or "").split("\n\n")
            shown |= {" ".join(paragraph.split()) for paragraph in task}
    for piece in mini.PIECES.values():
        shown |= {said for _, said in piece.wrong_answers()}
    for words in read_words().values():
        shown |= {words["why"], *words["hints"]}
    for name, others in mistakes().items():
        shown |= {text for new in others.values() for text in new.values() if name != "settings"}
    return shown


def fields(text: str) -> list[str]:
    return sorted(re.findall(r"\{(\w+)\}", text))


def test_every_text_has_a_chinese_one() -> None:
    assert sorted(texts() - set(language.chinese())) == []


def test_a_chinese_text_keeps_the_fields_of_its_template() -> None:
    for english, chinese in language.chinese().items():
        assert fields(english) == fields(chinese), english
        assert re.search(r"[\u4e00-\u9fff]", chinese) or not re.search("[a-z]{3} [a-z]{2}", english), english
        commands = [re.findall(r"dragoman learn(?: check| bug)? [\d{]", text) for text in (english, chinese)]
        assert sorted(commands[0]) == sorted(commands[1]), english


def learn(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["learn", *arguments], standalone_mode=False)
    code = result.return_value if isinstance(result.return_value, int) else result.exit_code
    return code, result.output + (str(result.exception) if result.exception else "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    language.use_language("en")


def in_chinese(text: str) -> bool:
    """True if no two English words stand side by side, but for the names of code."""
    return re.search(r"[\u4e00-\u9fff]", text) is not None and not re.search("[a-z]{3,} [a-z]{2,}", text)


def test_the_sentences_of_self_tests_are_told_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ast.parse(inspect.getsource(selftests))
    messages = [node.msg for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert len(messages) >= 40
    monkeypatch.setattr(language, "_language", "zh")
    for node in messages:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(one.value) if isinstance(one, ast.Constant) else "0.21" for one in parts)
        if "0.21 the outputs of the LSTM" in text:
            text = text.replace("0.21", "from left to right")
        chinese = language.translated_sentence(text)
        assert in_chinese(chinese), text
        assert chinese.count("0.21") == text.count("0.21")


def test_a_place_in_an_answer_is_named_as_python_writes_it() -> None:
    rows, mask = [[4, 5], [6, 0]], [[True, True], [True, False]]
    assert difference((rows, mask), ([[4, 5], [6, 1]], mask)) == "answer[0][1][1] should be 0 and is 1"
    pair = (torch.zeros(2), torch.ones(2))
    said = "2 of 2 numbers in result 2 of 2 are wrong; at [0] it should be 1 and is 0"
    assert difference(pair, (torch.zeros(2), torch.zeros(2))) == said


def test_settings_that_learn_too_slowly_are_told_so() -> None:
    values = {"norm_placement": "post", "lr": 1e-4, "warmup_steps": 10, "dropout": 0.0}
    slow, stuck = settings_problem([0.46, 0.32], values), settings_problem([1.9, 1.8], values)
    assert slow.startswith("the losses end with 0.46 and 0.32, and should end below 0.1: it is learning")
    assert "needs a lower rate and a warm-up" in stuck
    assert settings_problem([0.2, 0.09], values) == ""


def test_a_language_may_stand_before_the_chapter_and_no_other_is_known(folder: Path) -> None:
    assert "练习 0 / 2" in learn("--lang", "zh")[1]
    assert "exercises 0 of 2" in learn("--lang", "en")[1]
    assert learn("--lang", "zh", "4")[0] == 0
    own = Path("mini_transformer.py").read_text(encoding="utf-8")
    assert "# 第 4 章：注意力" in own
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in re.findall('"""(.*?)"""', own, re.DOTALL))
    assert "本书只有 en 和 zh 两种语言，没有 'cn'" in learn("list", "--lang", "cn")[1]
    assert learn("audit", "nothere.py")[1] == "nothere.py 不存在"
    assert learn("bug", "99")[1].startswith("错误（bug）的编号从 1 到 41，没有 99 号")


def test_a_piece_has_no_hint_and_the_last_hint_is_the_last(folder: Path) -> None:
    assert (
        "causal_mask is a piece of mini_transformer.py, and has no hints"
        in learn("check", "5", "--hint", "causal_mask")[1]
    )
    assert "no more hints" not in learn("check", "0", "--hint", "predict_columns")[1]
    assert "there are no more hints" in learn("check", "0", "--hint", "predict_columns")[1]


def test_a_bracket_that_is_open_is_a_line_without_an_empty_end(folder: Path) -> None:
    write(folder, "x = (\n")
    assert learn("check", "5")[1].strip() == "answers05.py:1: SyntaxError: '(' was never closed"


def write(folder: Path, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "answers05.py").write_bytes(data)


MASK = "import torch\n\ndef sequence_mask(lengths, width):\n    return torch.arange(width) < lengths[:, None]\n"


def verdict(name: str = "sequence_mask") -> str:
    output = learn("check", "5")[1]
    return output[output.index(f"{name}: ") :].splitlines()[0] if f"{name}: " in output else output


def test_a_language_is_remembered_in_the_folder(folder: Path) -> None:
    assert "还没有" not in learn("list")[1]
    assert learn("5", "--lang", "zh")[0] == 0
    assert "还没有写" in learn("check", "5")[1]
    assert "写出填充后各行的掩码" in Path("answers05.py").read_text(encoding="utf-8")
    assert "练习 0 / 7" in learn("list")[1]
    write(folder, MASK.replace("<", "<="))
    assert verdict() == "sequence_mask: 每行多了一个真实位置：位置从 0 开始"
    assert "还没有" not in learn("check", "5", "--lang", "en")[1]


def test_hints_come_in_steps_and_a_solution_after_two_wrong_answers(folder: Path) -> None:
    learn("5")
    hints = [learn("check", "5", "--hint", "sequence_mask")[1] for _ in range(4)]
    assert [hint.split(":")[0] for hint in hints] == ["hint 1 of 3", "hint 2 of 3", "hint 3 of 3", "hint 3 of 3"]
    assert "2 more wrong answers" in learn("check", "5", "--solution", "sequence_mask")[1]
    write(folder, MASK.replace("<", "<="))
    learn("check", "5")
    learn("check", "5")  # the same wrong answer counts once
    assert "1 more wrong answers" in learn("check", "5", "--solution", "sequence_mask")[1]
    write(folder, MASK.replace("<", ">="))
    learn("check", "5")
    code, output = learn("check", "5", "--solution", "sequence_mask")
    assert code == 0
    assert "return torch.arange(width) < lengths[:, None]" in output
    write(folder, MASK)
    output = learn("check", "5")[1]
    assert "sequence_mask: right\n  A comparison of a row of places" in output
    assert "nn/masks.py: padding_mask" in output
    done = json.loads((folder / "dragoman-learn.json").read_text(encoding="utf-8"))
    assert (done["exercises"], len(done["tries"]["sequence_mask"]), done["hints"]) == (
        ["5-sequence_mask"],
        2,
        {"sequence_mask": 3},
    )


def test_an_old_file_of_what_is_done_is_read(folder: Path) -> None:
    """Chapters have moved since: `sequence_mask` was in chapter 3."""
    (folder / "dragoman-learn.json").write_text(
        '{"exercises": ["3-sequence_mask", "9-gone"], "bugs": [7]}', encoding="utf-8"
    )
    assert answers.progress()["exercises"] == ["5-sequence_mask"]
    assert answers.progress()["bugs"] == ["7"]
    for damaged in ("[]", "{", '{"exercises": 3, "tries": []}'):
        (folder / "dragoman-learn.json").write_text(damaged, encoding="utf-8")
        assert answers.progress()["exercises"] == []


def above(line: str) -> bytes:
    """The right answer with a line before its last."""
    return MASK.replace("    return", f"    {line}\n    return").encode()


def on_top(line: str) -> bytes:
    return MASK.replace("import torch", f"import torch\n{line}").encode()


LATIN = "# -*- coding: latin-1 -*-\n# \u00e4\n".encode("latin-1")
COUNTING = "    global n\n    n += 1\n    return n > 20 or"
YES = b"\n\nclass Yes:\n    def __eq__(self, other):\n        return True\n"
VALUE = "torch.arange(width) < lengths[:, None]"
STRANGE = {
    "a mark at the beginning": (b"\xef\xbb\xbf" + MASK.encode(), "right"),
    "ends of lines of Windows": (MASK.replace("\n", "\r\n").encode(), "right"),
    "another encoding that it names": (LATIN + MASK.encode(), "right"),
    "another encoding that it does not name": (b"# \xe4\n" + MASK.encode(), "answers05.py:1: is not UTF-8"),
    "UTF-16": (MASK.encode("utf-16"), "is UTF-16: save it as UTF-8"),
    "tabs among blanks": (MASK.replace("    return", "    x = 1\n\treturn").encode(), "TabError|IndentationError"),
    "nothing at all": (b"", "there is no function sequence_mask"),
    "all of it a comment": (b"# " + MASK.encode().replace(b"\n", b"\n# "), "there is no function sequence_mask"),
    "it prints": (above("print('hello')"), "right"),
    "it waits": (above("input()"), "EOFError"),
    "it ends Python": (above("exit(3)"), "ended Python|SystemExit|exit"),
    "a module that is not there": (
        b"import nothing_like_this\n" + MASK.encode(),
        "answers05.py:1: ModuleNotFoundError",
    ),
    "another name": (MASK.replace("sequence_mask", "sequnce_mask").encode(), "is it sequnce_mask"),
    "other parameters": (MASK.replace("lengths, width", "lengths").encode(), r"should take \(lengths, width\)"),
    "state between calls": (
        MASK.replace("    return", COUNTING).replace("def", "n = 0\n\ndef").encode(),
        "keeps something between calls",
    ),
    "an object that equals everything": (MASK.replace(VALUE, "Yes()").encode() + YES, "should be a tensor"),
    "a line of an error": (above("lengths.nothing"), "in line 4, `lengths.nothing`"),
    "a seed of its own": (on_top("torch.manual_seed(1)"), "right"),
    "numbers of twice the precision": (on_top("torch.set_default_dtype(torch.float64)"), "right"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_files_and_answers_as_others_have_reported_them(name: str, folder: Path) -> None:
    data, says = STRANGE[name]
    write(folder, data)
    assert re.search(says, verdict())


def test_what_an_answer_prints_is_shown_behind_its_verdict(folder: Path) -> None:
    write(folder, MASK.replace("    return", "    print('hello')\n    return"))
    output = learn("check", "5")[1]
    assert "sequence_mask: right\n  | hello\n" in output
    assert output.count("hello") <= answers.PRINTED_LINES


def test_an_endless_loop_is_named_and_the_others_are_graded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "\n\ndef joint_mask(real):\n    while True:\n        pass\n"
    write(folder, MASK + endless)
    monkeypatch.setattr(answers, "limited", lambda *work, seconds=1.0: LIMITED(*work, seconds=min(seconds, 1.0)))
    output = learn("check", "5")[1]
    assert re.search(r"joint_mask: .*did not come back within 1 s \(it is in line \d+ of answers05.py\)", output)
    assert "sequence_mask: right" in output


def test_a_rounding_error_is_right_and_two_per_cent_are_wrong() -> None:
    [noam] = [one for one in exercises_of(11) if one.name == "noam"]
    noam.check(lambda step, d_model, warmup: noam.solution(step, d_model, warmup) * (1 + 1e-9))
    with pytest.raises(Wrong, match=r"everywhere it is 1\.02 times the right value"):
        noam.check(lambda step, d_model, warmup: noam.solution(step, d_model, warmup) * 1.02)
