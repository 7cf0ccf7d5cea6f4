"""Lines that are JSON objects, each with its own constraints."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.errors import DragomanError, Error
from dragoman.pipeline.line_requests import translate_objects

RUN = Path(__file__).parents[1] / "fixtures" / "run_learnt" / "run"


@pytest.fixture(scope="module")
def translator() -> dragoman.Translator:
    return dragoman.load(RUN, device="cpu")


def translated(translator: dragoman.Translator, *lines: Any) -> list[str]:
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    [chunk] = translate_objects(translator.pipeline, [rows], Path("in.jsonl"))
    return [items.best.text for _, items in chunk]


def test_an_object_with_nothing_but_a_text_is_that_text(translator: dragoman.Translator) -> None:
    texts = ["open the file now.", "", "print the <b>text</b> now. close the window."]
    assert translated(translator, *({"text": text} if text else "" for text in texts)) == translator.translate(texts)


def test_each_line_has_constraints_of_its_own(translator: dragoman.Translator) -> None:
    text = "open the file now."
    plain, held, other = translated(
        translator, {"text": text}, {"text": text, "constraints": ["Fenster", "alte"]}, {"text": text}
    )
    assert plain == other == translator.translate([text])[0]
    assert "Fenster" in held
    assert "alte" in held


def test_terms_avoided_phrases_and_beginnings_are_of_the_line_alone(translator: dragoman.Translator) -> None:
    text = "open the file now."
    [plain] = translator.translate([text])
    word = next(word for word in plain.split() if word.isalpha() and word[0].isupper())
    avoiding, term, begun, both = translated(
        translator,
        {"text": text, "avoid": [word]},
        {"text": text, "terms": {"file": "Fenster"}},
        {"text": text, "target_prefix": "alte"},  # Sockeye's name
        {"text": text, "terms": {"file": "Fenster", "page": "Seite"}, "constraints": ["alte"], "avoid": [word]},
    )
    assert word not in avoiding
    assert "Fenster" in term
    assert begun.startswith("alte")
    assert "Fenster" in both
    assert "alte" in both
    assert "Seite" not in both  # a term whose source is not there
    assert word not in both


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ("open the file now.", Error.WRONG_SHAPE, "in.jsonl:2"),
        ('["open"]', Error.WRONG_SHAPE, "in.jsonl:2"),
        ('{"text": "open", "constraint": ["x"]}', Error.UNKNOWN_SETTING, "constraints"),
        ('{"constraints": ["x"]}', Error.WRONG_SETTING, "text"),
        ('{"text": "open", "constraints": ["水"]}', Error.UNKNOWN_TOKEN, "in.jsonl:2"),
        ('{"text": "open", "constraints": ["<s> alte"]}', Error.UNKNOWN_TOKEN, "in.jsonl:2"),  # Sockeye 710
        ('{"text": "open", "prefix": "水"}', Error.UNKNOWN_TOKEN, "in.jsonl:2"),
    ],
)
def test_a_line_that_is_wrong_is_named(translator: dragoman.Translator, line: str, code: Error, word: str) -> None:
    with raises_error(code, word):
        translated(translator, {"text": "open"}, line)


def test_the_command_reads_objects(translator: dragoman.Translator, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "open the file now."}\n{"text": "open", "constraints": ["Fenster"]}\n', encoding="utf-8")
    out = tmp_path / "out"
    command = ["translate", str(RUN), "-i", str(path), "-o", str(out), "--json-input", "--device", "cpu"]
    assert CliRunner().invoke(app, command).exit_code == 0
    first, second = out.read_text(encoding="utf-8").splitlines()
    assert first == translator.translate(["open the file now."])[0]
    assert "Fenster" in second
    refused = CliRunner().invoke(app, [*command, "--prefix", str(path)]).exception
    assert isinstance(refused, DragomanError)
    assert refused.code is Error.CONFLICT
