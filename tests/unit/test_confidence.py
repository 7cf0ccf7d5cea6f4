"""Calibration: numbers that mean what they say, kept with the run, told where they are too low."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.errors import raises_error
from tests.unit.test_translator import run  # noqa: F401 (a fixture)
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.corpora import embedded
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline import confidence
from dragoman.pipeline.confidence import confidences, ece, project, with_confidence
from dragoman.quality.warnings import Warning, WarningKind

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
LINES = ["the cat sees the dog .", "a dog", "the small cat", "the dog sees a cat .", "a cat sees"]


@pytest.fixture(scope="module")
def translator(run: Path) -> SearchTranslator:  # noqa: F811
    return SearchTranslator.load(run, device="cpu", beam_size=1)


@pytest.fixture(scope="module")
def calibration(translator):
    """Of references that are the model's own translations with every third word exchanged."""
    sources = [f"{LINES[number % 5]} {LINES[number % 7 % 5]}" for number in range(120)]
    references = []
    for number, text in enumerate(translator.translate(sources)):
        words = text.split()
        references.append(" ".join("other" if (place + number) % 3 == 0 else word for place, word in enumerate(words)))
    return confidence.calibrate(translator, list(zip(sources, references, strict=True)), "step-1")


def test_confidence_is_the_share_of_words_that_a_human_has(translator, calibration):
    sources = [" ".join(LINES[number % 4 : number % 4 + 2]) for number in range(20)]
    found = confidences(translator, calibration, list(zip(sources, translator.translate(sources), strict=True)))
    assert all(0.4 < it.line < 0.9 for it in found)
    assert calibration.word_ece < 0.15
    for it in found:
        assert it.line == pytest.approx(np.mean([value for _, _, value in it.words]))
        assert 0 <= it.chrf <= 100


def test_words_are_those_of_the_text(translator, calibration):
    texts = ["the cat, sees", "don't  x"]
    found = confidences(translator, calibration, [("a cat", text) for text in texts])
    spans = [[text[begin:end] for begin, end, _ in it.words] for text, it in zip(texts, found, strict=True)]
    assert spans == [["the", "cat", ",", "sees"], ["don", "'", "t", "x"]]


def test_a_line_does_not_depend_on_the_others_and_blanks_have_none(translator, calibration):
    pairs = [(line, line) for line in LINES]
    alone = [confidences(translator, calibration, [pair])[0] for pair in pairs]
    assert confidences(translator, calibration, pairs) == alone
    assert confidences(translator, calibration, [("", "x"), ("a", " ")]) == [None, None]


def test_low_confidence_is_a_warning(translator, calibration):
    found = with_confidence(translator.n_best, translator, calibration, 1.0, [LINES[0], ""])
    assert found[0][0].warnings[-1] == Warning(WarningKind.LOW_CONFIDENCE, f"{found[0][0].confidence:.2f}")
    assert with_confidence(translator.n_best, translator, calibration, 0.0, LINES[:1])[0][0].warnings == ()


def test_a_projection_has_an_error_that_grows_with_the_distance(translator, calibration):
    found = confidences(translator, calibration, [(line, line) for line in LINES] * 20)
    near = project(calibration, found)
    assert near.lines == 100
    assert 0 <= near.chrf <= 100
    far = project(calibration, [it if it is None else type(it)(it.line, it.words, it.chrf / 4) for it in found])
    assert far.chrf < near.chrf
    assert far.error > near.error
    with raises_error(Error.EMPTY):
        project(calibration, [None])


def test_a_regression_finds_what_made_its_text():
    rng = np.random.default_rng(1)
    features = rng.normal(2, 3, (20_000, 2))
    chance = 1 / (1 + np.exp(-(features @ [0.5, -0.2] + 0.3)))
    words = confidence._fitted(features, (rng.random(20_000) < chance).astype(float), logistic=True)
    inner = (chance > np.quantile(chance, 0.02)) & (chance < np.quantile(chance, 0.98))
    assert np.abs(words(features) - chance)[inner].max() < 0.03
    assert words(features + 100).max() <= words(features).max()
    line = confidence._fitted(features, features @ [2.0, 1.0] - 7, logistic=False)
    seen = features[np.abs(features - 2).max(axis=1) < 3]
    assert line(seen) == pytest.approx(seen @ [2.0, 1.0] - 7, abs=0.01)


def test_calibration_errors():
    rng = np.random.default_rng(1)
    expected = rng.random(20_000)
    assert ece(expected, (rng.random(20_000) < expected).astype(float)) < 0.02
    assert ece(expected, (rng.random(20_000) < expected / 2).astype(float)) > 0.2


def test_few_lines_are_refused(translator):
    with raises_error(Error.TOO_FEW):
        confidence.calibrate(translator, [("a", "b")] * 3, "step-1")


def test_on_the_command_line(tmp_path):
    folder = shutil.copytree(FIXTURE, tmp_path / "run")  # English to German
    pairs = list(embedded.sentences("de-en", "test", 80, 1))
    for name, lines in (("src", [en for _, en in pairs]), ("ref", [de for de, _ in pairs])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = ["translate", str(folder), "-i", str(tmp_path / "src"), "--device", "cpu", "--beam-size", "1"]
    assert "dragoman calibrate" in str(CliRunner().invoke(app, [*text, "--min-confidence", "0.5"]).exception)
    files = ["--src", str(tmp_path / "src"), "--ref", str(tmp_path / "ref"), "--device", "cpu"]
    made = CliRunner().invoke(app, ["calibrate", str(folder), *files])
    assert made.exit_code == 0, made.output
    assert "lines with references" in made.stdout
    shown = CliRunner().invoke(app, [*text, "--min-confidence", "1", "--json", "-o", str(tmp_path / "out")])
    lines = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["translations"][0] for line in lines]
    first = next(it for it in found if it["text"])
    assert "low-confidence" in [one["kind"] for one in first["warnings"]]
    assert "".join(word for word, _ in first["words"]) == first["text"].replace(" ", "")
    assert "lines in doubt" in shown.stderr
    told = CliRunner().invoke(app, ["evaluate", str(folder), "--src", str(tmp_path / "src"), "--device", "cpu"])
    assert "expected chrF" in told.stdout
    path = folder / confidence.FILE
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace('"format": 2', '"format": 1'), encoding="utf-8")
    assert "format 1 is of another version" in str(CliRunner().invoke(app, [*text, "--min-confidence", "1"]).exception)
    path.write_text(content, encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("step-", "stop-"), encoding="utf-8")
    assert "belongs to stop-" in str(CliRunner().invoke(app, [*text, "--min-confidence", "1"]).exception)
