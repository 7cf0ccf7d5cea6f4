"""Minimum Bayes risk over several runs: each has one vote, the translation that is most like all of them is taken."""

import shutil
import sys
from pathlib import Path

import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_reranking import tokenizers, translator  # noqa: F401 (a fixture)
from tests.unit.test_translator import LINES, run  # noqa: F401 (a fixture)
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import DragomanError, Error
from dragoman.inference.mbr import expected_utility
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.pipeline.several_runs import SeveralRuns, expected_figures
from dragoman.quality.external_metrics import any_metric
from dragoman.quality.metrics import metric
from dragoman.runs import checkpoint


class Fixed:
    """A translator whose translations are given."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.decoding = type("Decoding", (), {"num_candidates": 2})

    def with_decoding(self, **changes: int) -> "Fixed":
        return self

    def n_best(self, sources: list[str]) -> list[list[Translation]]:
        return [[Translation(text, -1.0, -2.0) for text in self.texts] for _ in sources]


def test_most_runs_decide_against_the_first() -> None:
    own = [[Translation("eine katze schläft", -0.1, -0.3), Translation("ein hund rennt", -0.5, -1.5)]]
    [ranked] = SeveralRuns([Fixed("ein hund rennt"), Fixed("der hund rennt")])(["x"], own)  # type: ignore[list-item]
    assert {item.text for item in ranked} == {"eine katze schläft", "ein hund rennt", "der hund rennt"}
    assert ranked[0].text == "ein hund rennt"
    assert ranked[0].log_prob == -1.5
    assert [item.score for item in ranked] == sorted((item.score for item in ranked), reverse=True)


def test_a_run_has_one_vote_however_many_translations_it_gives() -> None:
    own = [[Translation("a b c", 0.0, 0.0)]]
    [ranked] = SeveralRuns([Fixed("x y z", "x y w"), Fixed("a b c")])(["x"], own)  # type: ignore[list-item]
    assert ranked[0].text == "a b c"
    weighed = expected_utility(["a", "b"], "chrf", weights=[3.0, 1.0])
    assert weighed == {"a": 75.0, "b": 25.0}
    assert expected_utility(["a", "a", "a", "b"], "chrf") == weighed


def test_translations_do_not_depend_on_their_batch(tokenizers) -> None:  # noqa: F811
    forward, other = translator(tokenizers, 1), translator(tokenizers, 2)
    asked = forward.reranked_by(SeveralRuns([other]))
    sentences = ["w1 w2 w3", "w4", "", "w5 w6 w7"]
    together = asked.translate(sentences)
    assert [asked.translate([line])[0] for line in sentences] == together


def test_the_command_takes_further_runs(run: Path, tmp_path: Path) -> None:  # noqa: F811
    second = shutil.copytree(run, tmp_path / "second")
    shutil.rmtree(second / "checkpoints")
    model = SearchTranslator.load(run, device="cpu").model
    torch.manual_seed(8)
    for parameter in model.parameters():
        parameter.data += torch.randn_like(parameter) * 0.1
    checkpoint.save(second, 1, {"model": checkpoint.weights(model)}, {"step": 1, "score": 1.0})
    lines, out = tmp_path / "lines", tmp_path / "out"
    lines.write_text(LINES[0] + "\n", encoding="utf-8")
    command = ["translate", str(run), f"-i{lines}", f"-o{out}"]
    told = CliRunner().invoke(app, [*command, "--mbr", str(second), "--n-best", "3"])
    assert told.exit_code == 0, told.output
    own, other = (SearchTranslator.load(each, device="cpu").n_best(LINES[:1], n_best=5)[0] for each in (run, second))
    [expected] = SeveralRuns([SearchTranslator.load(second, device="cpu")])(LINES[:1], [own])
    assert [line.split(" ||| ")[1] for line in out.read_text(encoding="utf-8").splitlines()] == [
        item.text for item in expected[:3]
    ]
    assert {item.text for item in expected} == {item.text for item in (*own, *other)}
    config = (second / "config.yaml").read_text(encoding="utf-8").replace("src_lang: en", "src_lang: fr")
    (second / "config.yaml").write_text(config, encoding="utf-8")
    with raises_error(Error.LANGUAGES_DIFFER):
        CliRunner().invoke(app, [*command, "--mbr", str(second)], catch_exceptions=False)
    with raises_error(Error.CONFLICT):
        CliRunner().invoke(app, [*command, "--mbr", str(run), "--rerank", str(run)], catch_exceptions=False)


PROGRAM = """#!{python}
import argparse
import sys

parser = argparse.ArgumentParser()
for name in ("-s", "-t", "-r", "--model"):
    parser.add_argument(name)
options = parser.parse_args()
open({log!r}, "a").write("called\\n")
if options.model == "absent":
    print("Traceback (most recent call last):", file=sys.stderr)
    sys.exit("KeyError: 'absent' is not a model that is known")
sides = [open(path, encoding="utf-8").read().splitlines() for path in (options.s, options.t, options.r)]
for number, (src, text, ref) in enumerate(zip(*sides, strict=True)):
    common = len(set(text.split()) & set(ref.split())) - 3 * (src.split()[:1] == text.split()[:1])
    print(f"t.txt\\tSegment {{number}}\\tscore: {{common - 1.5:.4f}}")
print("t.txt\\tscore: 0.0")
"""
"""Speaks as `comet-score` does: words in common, negative for few, and less for a text that begins as its source."""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "comet-score"
    path.write_text(PROGRAM.format(python=sys.executable, log=str(tmp_path / "log")), encoding="utf-8")
    path.chmod(0o755)
    return f"comet=!{path} -s {{src}} -t {{hyp}} -r {{ref}} --model "


def test_a_program_of_its_own_decides_by_the_expected_figure(program: str, tmp_path: Path) -> None:
    own = [
        [Translation(text, -1.0, -2.0) for text in ("x a b c", "a b", "a b c", "q\nr s")],
        [Translation(" ", 0.0, 0.0)],
        [Translation("a b c", 0.0, -1.0)],
    ]
    ranked = SeveralRuns([], any_metric(program + "there"))(["x y", "", "x\u2028y"], own)
    # Against all four, itself among them: (4 - 3) + (2 - 3) + (3 - 3) + (0 - 3); 2 + 2 + 2 + 0; 3 + 2 + 3 + 0; 3.
    assert [(item.text, item.score) for item in ranked[0]] == [
        ("a b c", 8 / 4 - 1.5), ("a b", 6 / 4 - 1.5), ("q\nr s", 3 / 4 - 1.5), ("x a b c", -3 / 4 - 1.5),
    ]  # fmt: skip
    assert [(item.text, item.score) for item in ranked[1]] == [(" ", 0.0)]
    assert [(item.text, item.score, item.log_prob) for item in ranked[2]] == [("a b c", 1.5, -1.0)]
    assert (tmp_path / "log").read_text() == "called\n", "its model is loaded once for all sources"


def test_any_metric_decides_and_less_of_some_is_better() -> None:
    votes = [{"a b c": 1.0, "a b": 1.0, "x y": 3.0}]
    [by_ter] = expected_figures(metric("ter"), ["s"], votes)
    assert max(by_ter, key=by_ter.__getitem__) == "x y"
    assert by_ter["x y"] == pytest.approx(-(100 + 100) / 5, abs=1e-6)
    [by_chrf] = expected_figures(metric("chrf"), ["s"], votes)
    assert by_chrf == pytest.approx(expected_utility(list(votes[0]), "chrf", weights=[1.0, 1.0, 3.0]))


def test_the_command_takes_a_program_and_names_a_model_that_is_absent(
    run: Path,  # noqa: F811
    program: str,
    tmp_path: Path,
) -> None:
    lines, out = tmp_path / "lines", tmp_path / "out"
    lines.write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
    command = ["translate", str(run), f"-i{lines}", f"-o{out}", "--mbr-by"]
    done = CliRunner().invoke(app, [*command, program + "there"])
    assert done.exit_code == 0, done.output
    found = SearchTranslator.load(run, device="cpu").n_best(LINES, n_best=5)
    expected = SeveralRuns([], any_metric(program + "there"))(LINES, found)
    assert out.read_text(encoding="utf-8").splitlines() == [items[0].text for items in expected]
    for wrong, code, message in (
        ([program + "absent"], Error.EXTERNAL_FAILED, "comet-score` ended with code 1: KeyError: 'absent' is not"),
        (["comet=!no-such-program {src}"], Error.EXTERNAL_FAILED, "`no-such-program` cannot be run"),
        (["comte"], Error.UNKNOWN_NAME, "there is no such metric"),
        (["comet=!true", "--rerank", str(run)], Error.CONFLICT, "choose one of both"),
        (["chrf", "--beam-size", "1"], Error.CONFLICT, "one hypothesis"),
    ):
        refused = CliRunner().invoke(app, [*command, *wrong]).exception
        assert isinstance(refused, DragomanError)
        assert refused.code == code
        assert message in str(refused)
        assert "\n" not in str(refused)
