import ast
import json
import pickle
import sys
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman import errors
from dragoman.cli.main import main
from dragoman.decoding.rows import FoundNothing
from dragoman.errors import DragomanError, Error

PACKAGE = Path(errors.__file__).parent
PAGE = PACKAGE.parents[1] / "docs/errors.md"


def test_an_error_is_one_line_of_place_what_is_wrong_and_what_to_do() -> None:
    assert str(Error.EMPTY(" is empty", file=Path("a.de"))) == "a.de is empty"
    assert str(Error.WRONG_SHAPE("no tab", "write one", file="a.tsv", line=3)) == "a.tsv:3: no tab: write one"
    assert str(Error.CONFLICT("both", "give one")) == "both: give one"
    assert str(Error.MISSING_FILE("no such file", file="a\nb")) == r"'a\nb': no such file"


def test_an_error_within_another_keeps_code_and_place() -> None:
    outer = Error.MISMATCH("no", file="run", line=2).within("init_from: ", "give another")
    assert str(outer) == "init_from: run:2: no: give another"
    assert outer.as_dict() == {
        "error": str(outer), "code": "mismatch", "file": "run", "line": 2, "hint": "give another"
    }  # fmt: skip


@pytest.mark.parametrize(
    "error", [Error.WRONG_SHAPE("no tab", "write one", file="a.tsv", line=3), FoundNothing(Error.DIVERGED, 2, "NaN")]
)
def test_errors_come_from_other_processes_as_they_are(error: DragomanError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert (type(again), again.as_dict()) == (type(error), error.as_dict())


def test_every_error_has_a_code_and_every_code_an_error() -> None:
    used: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error":
                used.add(node.attr)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DragomanError":
                assert path.name == "errors.py", f"{path}:{node.lineno}: raise Error.CODE(...) says what kind it is"
    assert used == set(Error.__members__)


def test_the_page_has_every_code() -> None:
    rows = "".join(f"| `{error}` | {error.meaning} |\n" for error in Error)
    assert f"| code | meaning |\n| --- | --- |\n{rows}" in PAGE.read_text(encoding="utf-8")


def test_json_is_asked_for_and_errors_are_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dragoman", "doctor", "--json", "not_there.de", "not_there.en"])
    with pytest.raises(SystemExit) as stopped:
        main()
    told, err = capsys.readouterr()
    assert (stopped.value.code, told) == (2, "")
    found = json.loads(err)
    assert (found["code"], found["file"], found["line"]) == ("missing-file", "not_there.de", None)
    assert found["error"].startswith("not_there.de: no such file")


def test_raises_error_asks_for_code_and_names() -> None:
    error = Error.WRONG_SHAPE("no tab", file="folder/a.tsv", line=3)
    with raises_error(Error.WRONG_SHAPE, "a.tsv:3") as caught:
        raise error
    assert caught.value is error
    for code, *names in [
        (Error.EMPTY, "a.tsv"), (Error.WRONG_SHAPE, "a.tsv:2"), (error.code, "b.tsv"), (error.code, "a.t"),
    ]:  # fmt: skip
        with pytest.raises(AssertionError), raises_error(code, *names):
            raise error
