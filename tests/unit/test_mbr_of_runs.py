"""Minimum Bayes risk over several runs: each has one vote, the translation that is most like all of them is taken."""

import shutil
from pathlib import Path

import torch
from tests.errors import raises_error
from tests.unit.test_reranking import tokenizers, translator  # noqa: F401 (a fixture)
from tests.unit.test_translator import LINES, run  # noqa: F401 (a fixture)
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.inference.mbr import expected_utility
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.pipeline.several_runs import SeveralRuns
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
