"""`learn audit` finds every planted fault in models of many styles, names it and its line, and finds nothing in sound
ones."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.learn import mini_solution
from dragoman.learn.audit import audit
from dragoman.learn.audit.finding import sentences

FOLDER = Path(__file__).parents[1] / "audit"
FAULTS: dict[str, list[dict[str, Any]]] = yaml.safe_load((FOLDER / "faults.yaml").read_text(encoding="utf-8"))
REPORTS = FAULTS.pop("reports")
PLANTED = [
    *(
        pytest.param(style, one, id=f"{style}-{number}-{one['fault']}")
        for style, several in FAULTS.items()
        for number, one in enumerate(several, start=1)
    ),
    *(pytest.param(one["style"], one, id=one["report"].replace("/", "-")) for one in REPORTS),
]


def planted(style: str, one: dict[str, Any]) -> str:
    """The model's source with the fault in it."""
    text = (FOLDER / f"{style}.py").read_text(encoding="utf-8")
    for old, new in ((one["old"], one["new"]), *one.get("also", {}).items()):
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {style}"
        text = text.replace(old, new)
    return text


def changed_lines(style: str, text: str) -> set[str]:
    before = (FOLDER / f"{style}.py").read_text(encoding="utf-8").splitlines()
    return set(text.splitlines()) - set(before)


@pytest.mark.parametrize("style", FAULTS)
def test_nothing_is_reported_of_a_sound_model(style: str) -> None:
    assert list(map(str, audit(str(FOLDER / f"{style}.py")))) == []


def first_of_each(planted: list[Any]) -> list[Any]:
    """All of them, the second and further ones of a kind marked as slow."""
    kinds: set[str] = set()
    marked = []
    for param in planted:
        fault = param.values[1]["fault"]
        marks = [pytest.mark.slow] if fault in kinds else []
        marked.append(pytest.param(*param.values, id=param.id, marks=marks))
        kinds.add(fault)
    return marked


@pytest.mark.parametrize(("style", "one"), first_of_each(PLANTED))
def test_a_planted_fault_is_named_with_its_line(style: str, one: dict[str, Any], tmp_path: Path) -> None:
    text = planted(style, one)
    path = tmp_path / f"{style}.py"
    path.write_text(text, encoding="utf-8")
    findings = audit(str(path))
    named = [finding for finding in findings if finding.fault == one["fault"]]
    assert named, f"not found; found are {[str(finding) for finding in findings]}"
    assert not [finding for finding in findings if finding.fault == "stopped"]
    if named[0].line is not None:
        line = text.splitlines()[named[0].line - 1]
        if "line" in one:
            assert one["line"] in line
        else:
            assert line in changed_lines(style, text)


def learn(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["learn", *arguments], standalone_mode=False)
    code = result.return_value if isinstance(result.return_value, int) else result.exit_code
    return code, result.stdout + (str(result.exception) if result.exception else "")


def test_the_command_says_the_fault_its_number_and_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "compact.py"
    path.write_text(planted("compact", FAULTS["compact"][0]), encoding="utf-8")
    code, output = learn("audit", "compact.py")
    assert code == 1
    assert re.fullmatch(
        r"\S*compact.py:33: attention's scores are q . k times 0.18, and should be times 1/sqrt\(8\) = 0.35: .*\n",
        output,
    )
    assert learn("audit", str(FOLDER / "packed_lstm.py")) == (0, "no fault is there to be seen: 21 checks\n")


def test_an_adapter_says_how_a_model_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / "many_classes.py").read_text(encoding="utf-8").partition("def forward(model, src, tgt)")[0]
    Path("mine.py").write_text(text, encoding="utf-8")
    assert "its forward takes masks" in learn("audit", "mine.py")[1]
    assert learn("audit", "mine.py", "--template") == (0, "mine_adapter.py\n")
    assert "is there already" in learn("audit", "mine.py", "--template")[1]
    adapter = Path("mine_adapter.py").read_text(encoding="utf-8")
    adapter = adapter.replace("    raise NotImplementedError", "    return make_model(src_vocab, tgt_vocab)")
    adapter = adapter.replace(
        "return model(src, tgt_in)", "return model.generator(model(src, tgt_in, *masks(src, tgt_in)))"
    )
    Path("mine_adapter.py").write_text(adapter, encoding="utf-8")
    assert learn("audit", "mine.py", "--adapter", "mine_adapter.py")[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "mine.py is not there"),
        ("def build(:\n", "mine.py:1: SyntaxError"),
        ("import torch\nx = 1 / 0\n", "mine.py:2: ZeroDivisionError"),
        ("raise SystemExit\n", "it ends the program while it is loaded"),
        ("x = 1\n", "there is no function build(src_vocab, tgt_vocab)"),
    ],
    ids=["missing", "syntax", "error", "exit", "no model"],
)
def test_a_file_that_is_no_model_is_one_line(
    text: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("mine.py").write_text(text, encoding="utf-8")
    output = learn("audit", "mine.py")[1]
    assert message in output
    assert "\n" not in output.strip()
    assert "NoModel" not in output
    assert ("`dragoman learn audit mine.py --template` writes an adapter" in output) == (text == "x = 1\n")


def test_the_readers_own_transformer_needs_no_adapter() -> None:
    assert list(map(str, audit(mini_solution.__file__))) == []


def test_every_sentence_has_a_fault_that_was_planted() -> None:
    """But for those of which no model is told apart from others that are worse."""
    names = {one["fault"] for several in [*FAULTS.values(), REPORTS] for one in several}
    rare = {"stopped", "does-not-learn", "shift", "target-padding"}
    assert {key.partition("/")[0] for key in sentences()} - names == rare
