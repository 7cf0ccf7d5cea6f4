"""Figures and signatures are those of sacreBLEU's own command for the same flags; its test sets are taken from where it
keeps them."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu.dataset
from sacrebleu.utils import args_to_dict
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.experiments.evaluate import evaluate
from dragoman.quality.metrics import metric
from dragoman.quality.scores import scores_of
from dragoman.quality.significance import RESAMPLES
from dragoman.quality.test_set import TestSet, files_of_sacrebleu

with pytest.MonkeyPatch.context() as own:
    # A command, it has SIGPIPE end its process: here a write to a closed connection, of any test, would end all tests.
    own.setattr(signal, "signal", lambda *_: None)
    from sacrebleu.sacrebleu import METRICS, parse_args

HYPOTHESES = ["My Dog barks .", "the cat sat on mat", "Er sagt: nein!", "今天天气很好", "one two three four five"]
REFERENCES = [
    ["my dog barks.", "the cat sat on the mat", "er sagt nein", "今天 天气 好", "one two four three five"],
    ["My hound barks.", "a cat sat on a mat", "Er sagt: Nein!", "今天天气真好", "one two three four"],
]
FLAGS = {
    "bleu": "",
    "bleu:lowercase": "-lc",
    "bleu:tokenize=intl": "-tok intl",
    "bleu:tokenize=zh": "-tok zh",
    "bleu:tokenize=char": "-tok char",
    "bleu:tokenize=none": "-tok none --force",
    "bleu:smooth_method=floor:smooth_value=0.2": "-s floor -sv 0.2",
    "bleu:smooth_method=add-k": "-s add-k",
    "bleu:smooth_method=none": "-s none",
    "chrf": "-m chrf",
    "chrf++": "-m chrf -cw 2",
    "chrf:lowercase": "-m chrf --chrf-lowercase",
    "chrf:whitespace": "-m chrf --chrf-whitespace",
    "chrf:char_order=4:beta=3": "-m chrf -cc 4 --chrf-beta 3",
    "chrf:eps_smoothing": "-m chrf --chrf-eps-smoothing",
    "ter": "-m ter",
    "ter:case_sensitive": "-m ter --ter-case-sensitive",
    "ter:asian_support:normalized": "-m ter --ter-asian-support --ter-normalized",
    "ter:no_punct": "-m ter --ter-no-punct",
}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("resamples", [0, RESAMPLES])
@pytest.mark.parametrize("ours", FLAGS)
def test_figure_interval_and_signature_are_those_of_the_command(
    monkeypatch: pytest.MonkeyPatch, ours: str, count: int, resamples: int
) -> None:
    """sacrebleu#98: a signature is to say all that a figure depends on."""
    if resamples and count == 2:
        return  # the rows are drawn alike
    monkeypatch.setattr(sys, "argv", ["sacrebleu", "ref", *FLAGS[ours].split(), *(["-ci"] if resamples else [])])
    args, references = parse_args(), REFERENCES[:count]
    name = args.metrics[0]
    theirs = METRICS[name.upper()](**args_to_dict(args, name, strip_prefix=True), references=references)
    expected = theirs.corpus_score(HYPOTHESES, None, n_bootstrap=args.confidence_n if resamples else 1)
    test = TestSet(HYPOTHESES, references, ("", "en"))
    scores = scores_of(test, HYPOTHESES, [metric(ours, "en")], resamples=resamples)
    [own] = scores.values
    assert scores.values[own] == pytest.approx(expected.score, abs=1e-9)
    assert scores.signatures[own] == theirs.get_signature().format()
    if resamples:
        assert scores.intervals[own] == pytest.approx(
            (expected._mean, expected._ci), abs=1e-4
        )  # theirs are added up in single precision
        assert "±" in scores.figures()[scores.titles[own]]


def test_ter_leaves_case_out_unless_it_is_asked_for() -> None:
    """multeval#22: no way to say so."""
    test = TestSet(["x"], [["my dog"]])
    assert scores_of(test, ["My Dog"], [metric("ter")]).ter == 0
    assert scores_of(test, ["My Dog"], [metric("ter:case_sensitive")]).ter == 100


def test_a_test_set_that_sacrebleu_has_fetched_is_scored_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = sacrebleu.dataset.DATASETS["wmt14"]
    monkeypatch.setattr(dataset, "_outdir", str(tmp_path))
    monkeypatch.setattr(dataset, "process_to_text", lambda *_: pytest.fail("looked for a network"))
    with raises_error(Error.MISSING_FILE, "sacrebleu -t wmt14 -l en-de"):
        files_of_sacrebleu("wmt14", "en-de")
    for field in dataset.fieldnames("en-de"):
        Path(dataset._get_txt_file_path("en-de", field)).write_text("ein Hund\nzwei Hunde\n", encoding="utf-8")
    (tmp_path / "hyp").write_text("ein Hund\nzwei Katzen\n", encoding="utf-8")
    options = ["-t", "wmt14", "-l", "en-de", "--no-checks", "--metric", "exact_match", "--json", "--confidence"]
    done = CliRunner().invoke(app, ["evaluate", "--hypotheses", str(tmp_path / "hyp"), *options])
    assert done.exit_code == 0, done.output
    assert '"wmt14 en-de"' in done.stdout
    assert '"exact_match": 50.0' in done.stdout
    for name, pair in (("wmt41", "en-de"), ("wmt14", "en-xx")):
        with raises_error(Error.UNKNOWN_NAME, name if name != "wmt14" else pair):
            files_of_sacrebleu(name, pair)
    with raises_error(Error.CONFLICT, "`language_pair`"):
        evaluate(test_set="wmt14")


def test_translations_and_references_are_enough(tmp_path: Path) -> None:
    """sacreBLEU's own quick start has no source: `sacrebleu ref -i output`; what needs one says so."""
    for name, text in (
        ("out", "my dog sleeps here\nhe eats bread today\n"),
        ("ref", "my dog sleeps here\nhe eats bread today\n"),
        ("ref2", "a\nb\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "figures").write_text("1\n2\n", encoding="utf-8")
    files = ["evaluate", "--hypotheses", str(tmp_path / "out"), "--ref", str(tmp_path / "ref")]
    for more in ([], ["--ref", str(tmp_path / "ref2")], ["--metric", "bleu:tokenize=char"]):
        done = CliRunner().invoke(app, [*files, *more, "--json"])
        assert done.exit_code == 0, done.output
        assert '"bleu": 100.0' in done.stdout
        assert ("nrefs:2" in done.stdout) == ("--ref" in more)
    with raises_error(Error.MISSING_OPTION, "`src`"):
        evaluate(hypotheses=tmp_path / "out", ref=tmp_path / "ref", by=["length"])
    with raises_error(Error.MISSING_OPTION, "`src`"):
        evaluate(hypotheses=tmp_path / "out", ref=tmp_path / "ref", metric=[f"comet={tmp_path / 'figures'}"])
    with raises_error(Error.MISSING_OPTION, "`ref`"):
        evaluate(hypotheses=tmp_path / "out", src=tmp_path / "ref", metric=["bleu:tokenize=char"])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda line: line.replace(".", " ."), "tokenised"),
        (lambda line: line.replace("dog", "d@@ og"), "cut into subwords"),
        (str, ""),
    ],
    ids=["tokenised", "pieces", "plain"],
)
def test_without_a_source_too_a_wrong_form_is_told(
    change: Callable[[str], str], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """sacrebleu#162: "It looks like you forgot to detokenize your test data"; fairseq#253: pieces were left."""
    references = [f"my dog {number} barks at a cat." for number in range(30)]
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    output = [change(line.replace("at a", "at the")) for line in references]
    (tmp_path / "output").write_text("\n".join(output) + "\n", encoding="utf-8")
    evaluate(hypotheses=[tmp_path / "output"], ref=[tmp_path / "ref"], tgt_lang="en", src_lang="de", metric=["bleu"])
    printed = capsys.readouterr().err
    assert ("warning" in printed) == bool(fault)
    assert fault in printed
