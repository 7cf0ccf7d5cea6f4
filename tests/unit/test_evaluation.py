"""Scores are sacreBLEU's own, with signatures that say how they were computed."""

import json

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.evaluation.translation import evaluate, spread
from dragoman.quality.metrics import bleu_tokenizer
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.text.corpus import Pair

HYPOTHESES = ["The cat sat on the mat.", "A man is riding a Horse, slowly.", "", "Two dogs play in the snow"]
REFERENCES = ["The cat is sitting on the mat.", "A man rides a horse slowly.", "Nothing.", "Two dogs play in the snow."]
ZH_HYPOTHESES = ["我想喝一杯啤酒。", "他今天不来上课"]
ZH_REFERENCES = ["我想要一杯啤酒。", "他今天没来上课。"]


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_are_sacrebleus(lowercase: bool) -> None:
    scores = score(HYPOTHESES, REFERENCES, EvaluationConfig(lowercase=lowercase), "en")
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=lowercase).score
    assert scores.chrf == CHRF(lowercase=lowercase).corpus_score(HYPOTHESES, [REFERENCES]).score
    assert scores.ter == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES], case_sensitive=not lowercase).score
    assert scores.sentences == 4
    assert 0 < scores.bleu < 100


def test_case_counts_unless_lowercase_is_asked_for() -> None:
    hypotheses, references = ["a man is riding a HORSE"], ["A man is riding a horse"]
    strict, lenient = (score(hypotheses, references, EvaluationConfig(lowercase=low)) for low in (False, True))
    assert (lenient.bleu, lenient.chrf, lenient.ter) == (pytest.approx(100), pytest.approx(100), 0)
    assert strict.bleu < 100
    assert strict.chrf < 100
    assert strict.ter == 0  # as sacreBLEU's command has it


def test_a_perfect_translation_has_100_100_and_0() -> None:
    scores = score(REFERENCES, REFERENCES, EvaluationConfig())
    assert (scores.bleu, scores.chrf, scores.ter) == (pytest.approx(100), pytest.approx(100), 0)


def test_chinese_is_scored_by_the_character() -> None:
    scores = score(ZH_HYPOTHESES, ZH_REFERENCES, EvaluationConfig(), "zh")
    assert scores.bleu == BLEU(tokenize="zh").corpus_score(ZH_HYPOTHESES, [ZH_REFERENCES]).score
    assert scores.bleu > 10 * BLEU(tokenize="none", force=True).corpus_score(ZH_HYPOTHESES, [ZH_REFERENCES]).score
    assert "tok:zh" in scores.signatures["bleu"]


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        *[(language, "zh") for language in ("zh", "zh-Hans", "cmn", "yue")],
        *[(language, "char") for language in ("ja", "th", "lo", "km", "my")],
        *[(language, "13a") for language in ("en", "de", "ko", "")],
    ],
)
def test_auto_is_by_the_character_where_there_are_no_spaces_and_13a_elsewhere(language: str, tokenizer: str) -> None:
    assert bleu_tokenizer("auto", language) == tokenizer


def test_a_tokenizer_that_is_named_is_the_one_that_is_used() -> None:
    assert bleu_tokenizer("13a", "zh") == "13a"
    for tokenize in ("char", "intl", "none"):
        scores = score(HYPOTHESES, REFERENCES, parse(EvaluationConfig, {"tokenize": tokenize}), "zh")
        expected = BLEU(tokenize=tokenize, force=True).corpus_score(HYPOTHESES, [REFERENCES]).score
        assert scores.bleu == expected
        assert f"tok:{tokenize}" in scores.signatures["bleu"]


def test_signatures_tell_version_tokenizer_and_case() -> None:
    signatures = score(HYPOTHESES, REFERENCES, EvaluationConfig(lowercase=True), "en").signatures
    assert signatures.keys() == {"bleu", "chrf", "ter"}
    for signature in signatures.values():
        assert f"version:{sacrebleu.__version__}" in signature
        assert "case:lc" in signature
    assert "tok:13a" in signatures["bleu"]
    assert "nc:6" in signatures["chrf"]  # chrF2 over characters, no words
    assert "nw:0" in signatures["chrf"]
    plain = BLEU()
    plain.corpus_score(HYPOTHESES, [REFERENCES])
    assert score(HYPOTHESES, REFERENCES, EvaluationConfig()).signatures["bleu"] == str(plain.get_signature())


def test_text_that_is_tokenised_already_is_scored_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """sacreBLEU warns from a hundred such lines on; the recipe's `tokenize: none` has answered it already."""
    lines = ["a man rides a horse ."] * 200
    with caplog.at_level("WARNING"):
        BLEU().corpus_score(lines, [lines])
        assert "tokenized period" in caplog.text
        caplog.clear()
        scores = score(lines, lines, EvaluationConfig(tokenize="none", lowercase=True), with_ter=False)
        assert caplog.text == ""
    assert scores.bleu == pytest.approx(100)


def test_ter_can_be_left_out() -> None:
    scores = score(HYPOTHESES, REFERENCES, EvaluationConfig(), with_ter=False)
    assert scores.ter is None
    assert scores.signatures.keys() == {"bleu", "chrf"}
    whole = score(HYPOTHESES, REFERENCES, EvaluationConfig())
    assert (scores.bleu, scores.chrf) == (whole.bleu, whole.chrf)


def test_exact_match_is_the_percentage_of_references_that_were_met() -> None:
    hypotheses, references = ["1 2 3", "1 2", "a B", "", "3  1"], ["1 2 3", "2 1", "a b", "", "3 1"]
    assert score(hypotheses, references, EvaluationConfig(tokenize="none")).exact_match == 40
    assert score(hypotheses, references, EvaluationConfig(tokenize="none", lowercase=True)).exact_match == 60


def test_scores_become_plain_data() -> None:
    scores = score(HYPOTHESES, REFERENCES, EvaluationConfig())
    assert json.loads(json.dumps(scores.to_dict())) == scores.to_dict()
    assert scores.to_dict().keys() == {"bleu", "chrf", "ter", "exact_match", "signatures", "sentences"}


@pytest.mark.parametrize(("count", "rows"), [(0, []), (2, [0, 2]), (3, [0, 1, 2]), (9, [0, 1, 2, 3])])
def test_samples_are_spread_over_the_test_set(count: int, rows: list[int]) -> None:
    pairs = [Pair(row + 1, f"src {row}", f"tgt {row}") for row in range(4)]
    expected = [{"src": f"src {row}", "ref": f"tgt {row}", "hyp": HYPOTHESES[row]} for row in rows]
    assert spread(pairs, HYPOTHESES, count) == expected


def test_unequal_counts_are_refused_with_both() -> None:
    with raises_error(Error.UNEQUAL_COUNTS):
        score(HYPOTHESES[:3], REFERENCES, EvaluationConfig())


def test_nothing_to_score_is_refused() -> None:
    with raises_error(Error.EMPTY):
        score([], [], EvaluationConfig())


def test_one_letter_in_two_spellings_is_no_difference() -> None:
    composed, decomposed = "Ein Mädchen läuft über die Straße.", "Ein Ma\u0308dchen la\u0308uft u\u0308ber die Straße."
    for said, reference in ((composed, decomposed), (decomposed, composed)):
        scores = score([said], [reference], EvaluationConfig(), "de")
        assert (scores.bleu, scores.exact_match) == (pytest.approx(100.0), 100.0)


@pytest.mark.parametrize("language", ["zh_CN", "ja"])
def test_ter_of_text_without_spaces_counts_characters(language: str) -> None:
    scores = score(["我爱你的狗和猫。"], ["我爱你的狗和鸟。"], EvaluationConfig(), language)
    assert scores.ter == pytest.approx(12.5)  # one of eight
    assert "asian:yes" in scores.signatures["ter"]


def test_a_missing_package_is_told_before_the_long_work() -> None:
    class Untouched:
        def translate(self, sentences: list[str]) -> list[str]:
            raise AssertionError

    pairs = [Pair(1, "a", "b")]
    with raises_error(Error.WRONG_OPTION):
        evaluate(Untouched(), pairs, EvaluationConfig(tokenize="ko-mecab"), "ko")  # type: ignore[arg-type]
