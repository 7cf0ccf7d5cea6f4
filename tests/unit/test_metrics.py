"""Metrics by name and setting, figures from elsewhere, and what is wrong with either in one line."""

import json
import sys
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.quality.external_metrics import any_metric, figures_of
from dragoman.quality.metrics import metric
from dragoman.quality.scores import scores_of
from dragoman.quality.test_set import TestSet

TEST = TestSet(["ein hund .", "zwei katzen ."], [["a dog .", "two cats ."]], ("de", "en"))
HYPOTHESES = ["a dog .", "Two dogs ."]


def value(name, test=TEST, hypotheses=HYPOTHESES):
    each = any_metric(name, "en", system="mine")
    return each.score(each.statistics(test, hypotheses).sum(axis=0))


def test_figures_are_sacrebleus():
    from sacrebleu.metrics import BLEU, CHRF, TER

    references = TEST.references
    assert value("bleu") == BLEU(force=True).corpus_score(HYPOTHESES, references).score
    assert value("bleu:lowercase") == BLEU(force=True, lowercase=True).corpus_score(HYPOTHESES, references).score
    assert value("bleu:tokenize=char:max_ngram_order=2") == (
        BLEU(force=True, tokenize="char", max_ngram_order=2).corpus_score(HYPOTHESES, references).score
    )
    assert value("chrf") == CHRF().corpus_score(HYPOTHESES, references).score
    assert value("chrf++") == CHRF(word_order=2).corpus_score(HYPOTHESES, references).score
    assert value("ter") == TER().corpus_score(HYPOTHESES, references).score
    assert value("exact_match") == 50.0


def test_signatures_say_the_settings():
    each = metric("bleu:lowercase:tokenize=intl")
    each.statistics(TEST, HYPOTHESES)
    assert "case:lc" in each.signature()
    assert "tok:intl" in each.signature()


def test_the_best_of_several_references_counts():
    two = TestSet(TEST.sources, [["a hound .", "two cats ."], ["a dog .", "Two dogs ."]], ("de", "en"))
    assert value("exact_match", two) == 100.0
    assert value("chrf", two) > value("chrf")
    each = metric("bleu")
    each.statistics(two, HYPOTHESES)
    assert "nrefs:2" in each.signature()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("blue", Error.UNKNOWN_NAME),
        ("bleu:token=char", Error.UNKNOWN_SETTING),
        ("bleu:max_ngram_order=many", Error.WRONG_OPTION),
        ("bleu:lowercase=perhaps", Error.WRONG_OPTION),
        ("exact_match:beta=2", Error.UNKNOWN_SETTING),
        ("comet=", Error.WRONG_OPTION),
        ("comet=!no-such-program {src}", Error.EXTERNAL_FAILED),
        (f"comet=!{sys.executable} -c 'raise SystemExit(3)'", Error.EXTERNAL_FAILED),
    ],
)
def test_what_is_wrong_with_a_metric_is_said(text, error: Error):
    with raises_error(error):
        value(text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0.5\n0.25\n", [0.5, 0.25]),
        ("0.5\n-2e-1\n\n0.15\n", [0.5, -0.2]),  # the figure of the whole stands last
        ("hyp.txt\tSegment 0\tscore: 0.81\nhyp.txt\tSegment 1\tscore: 0.62\nhyp.txt\tscore: 0.715\n", [0.81, 0.62]),
        (json.dumps([{"COMET": 0.5}, {"COMET": 1}]), [0.5, 1.0]),
        (json.dumps({"hyp.txt": [{"src": "x", "COMET": 0.5}, {"src": "y", "COMET": 0.25}]}), [0.5, 0.25]),
        ('{"prediction": 3.5}\n{"prediction": 0}\n', [3.5, 0.0]),
        ("[1, 2]", [1.0, 2.0]),
    ],
)
def test_figures_are_read_in_the_forms_that_programs_write(tmp_path, content, expected):
    (tmp_path / "scores").write_text(content, encoding="utf-8")
    assert figures_of(tmp_path / "scores", 2) == expected


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("0.5\nnothing\n", (Error.WRONG_SHAPE, "scores:2")),
        ("0.5\n", (Error.UNEQUAL_COUNTS,)),
        ("0.5\n1\n2\n3\n", (Error.UNEQUAL_COUNTS,)),
        ("nan\n1\n", (Error.WRONG_SHAPE,)),
        ('{"a": 1}', (Error.WRONG_SHAPE, "scores")),
        ('{"prediction": "x"}\n{"prediction": 1}\n', (Error.WRONG_SHAPE, "scores")),
        ("{broken", (Error.WRONG_SHAPE, "scores")),
    ],
)
def test_figures_that_do_not_fit_are_refused(tmp_path, content, error: tuple[Any, ...]):
    (tmp_path / "scores").write_text(content, encoding="utf-8")
    with raises_error(*error):
        value(f"comet={tmp_path / 'scores'}")


def test_a_file_for_each_system(tmp_path):
    (tmp_path / "comet.mine.txt").write_text("1\n2\n", encoding="utf-8")
    assert value(f"comet={tmp_path}/comet.{{system}}.txt") == 1.5


def test_a_command_gets_files_and_its_numbers_are_read():
    script = "import sys; [print('seg', len(line)) for line in open(sys.argv[1])]"
    assert value(f'len:lower=!{sys.executable} -c "{script}" {{hyp}}') == (8 + 11) / 2
    assert not any_metric("len:lower=!true").higher_is_better


def test_a_file_of_ones_own(tmp_path):
    plug_in = tmp_path / "words.py"
    plug_in.write_text(
        "HIGHER_IS_BETTER = False\n"
        "def score(sources, hypotheses, references):\n"
        "    return [len(hyp.split()) - len(ref.split()) for hyp, ref in zip(hypotheses, references[0])]\n",
        encoding="utf-8",
    )
    assert value(str(plug_in), hypotheses=["a b c d", "a"]) == -0.5
    assert not any_metric(str(plug_in)).higher_is_better
    plug_in.write_text("def score(*_):\n    raise KeyError('x')\n", encoding="utf-8")
    with raises_error(Error.EXTERNAL_FAILED):
        value(str(plug_in))
    plug_in.write_text("x = 1\n", encoding="utf-8")
    with raises_error(Error.EXTERNAL_FAILED):
        value(str(plug_in))


def test_parts_are_scored_by_themselves():
    found = scores_of(TEST, HYPOTHESES, [metric("exact_match")], {"one": [0], "other": [1]})
    assert [found.parts[name].values["exact_match"] for name in ("one", "other")] == [100.0, 0.0]
    assert found.values["exact_match"] == 50.0
    assert found.to_dict()["parts"]["other"] == {"exact_match": 0.0, "sentences": 1}
