"""The comparison of a run with its export: what is counted, what is a loss, and where held-out text comes from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.data.store import prepare
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error
from dragoman.export.verify import ExportComparison, compare_export, held_out
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.models.families import TransformerConfig
from dragoman.quality.scores import EvaluationConfig
from dragoman.quality.test_set import TestSet
from dragoman.runs import checkpoint
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.corpus import FilesSource
from dragoman.text.tokenizers.pair import save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

LINES = ["a b c d", "b c d e", "c d e a"]
TOKENIZERS = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))
MODEL = {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_encoder_layers": 1, "num_decoder_layers": 1}


class Says(SearchTranslator):
    """Knows its translations by heart."""

    def __init__(self, *translations: tuple[str, float]) -> None:
        self.known = [Translation(text, value, value) for text, value in translations]
        self.tokenizers = TOKENIZERS

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        return [[item] for item in self.known[: len(sentences)]]


def compared(ours: list[tuple[str, float]], theirs: list[tuple[str, float]], *refs: str) -> ExportComparison:
    text = TestSet(LINES[: len(ours)], [list(refs)] if refs else [], name="some")
    return compare_export(Says(*ours), Says(*theirs), text, EvaluationConfig(), "en")


class WritesSpaces(Says):
    """Writes a space for `_`, as Argos Translate does."""

    writes = "a space for `_`"

    def as_written(self, text: str) -> str:
        return text.replace("_", " ")


def test_what_a_program_writes_otherwise_is_named_and_the_rest_compared() -> None:
    theirs = WritesSpaces(("a b", -1.0), ("c", -2.0))
    text = TestSet(LINES[:2], [["a_b", "c"]], name="some")
    found = compare_export(Says(("a_b", -1.0), ("c", -2.0)), theirs, text, EvaluationConfig(), "en")
    assert (found.differences, found.token_agreement, found.complaint(exact=True)) == ([], 1.0, None)
    assert found.remarks == ["1 translations compared as it writes them: a space for `_`"]


def test_equal_translations_are_no_loss() -> None:
    found = compared([("a b", -1.0), ("c", -2.0)], [("a b", -1.0), ("c", -2.00001)], "a b", "c d")
    assert found.differences == []
    assert found.token_agreement == 1.0
    assert found.score_difference == pytest.approx(1e-5)
    assert found.bleu is not None
    assert found.bleu[0] == found.bleu[1]
    assert found.complaint(exact=True) is None
    assert found.lines((2**20, 2**19))[:2] == [
        "sentences                 2 of some",
        "equal                     2 (100.0%), near-ties 0",
    ]


def test_a_near_tie_is_listed_and_no_loss() -> None:
    found = compared([("a b c d", -1.0)], [("a b c e", -1.000004)])
    assert len(found.near_ties) == 1
    assert found.token_agreement == 0.75
    assert found.complaint(exact=True) is None
    assert "near-tie: 'a b c d': 'a b c d' (-1.000000) by PyTorch, 'a b c e' (-1.000004) by the export" in found.lines(
        (1, 1)
    )


def test_other_translations_and_scores_are_a_loss() -> None:
    differs = compared([("a", -1.0), ("b", -1.0)], [("a", -1.0), ("c", -1.1)])
    assert "1 of 2 sentences differ" in str(differs.complaint(exact=True))
    for value in (-1.01, float("nan")):
        assert "scores of equal translations" in str(compared([("a", -1.0)], [("a", value)]).complaint(exact=True))


def test_quantized_weights_may_lose_a_little() -> None:
    right, wrong = ("a b c d e", -1.0), ("a b c d a", -1.2)
    refs = ["a b c d e"]
    assert compared([right], [right], *refs).complaint(exact=False) is None
    assert "more than 0.3 lost" in str(compared([right], [wrong], *refs).complaint(exact=False))
    assert compared([wrong], [right], *refs).complaint(exact=False) is None  # better is no loss
    assert "only 80.0% of tokens agree" in str(compared([right], [wrong]).complaint(exact=False))
    better_by_far = compared([("d d", -1.0)], [right], *refs)
    assert "tokens agree; at least 50% should" in str(better_by_far.complaint(exact=False))


def test_another_search_is_judged_by_its_tokens() -> None:
    right, wrong = ("a b c d e", -1.0), ("a b c d a", -1.2)
    assert compared([right], [right]).complaint(exact=True, same_search=False) is None
    assert "only 80.0% of tokens agree" in str(compared([right], [wrong]).complaint(exact=True, same_search=False))
    rescored = compared([right], [(right[0], -1.2)])
    assert "scores of equal translations" in str(rescored.complaint(exact=True, same_search=False))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    for name in ("valid", "test"):
        for side in ("de", "en"):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    source = {name: {"type": "files", "src": f"{name}.de", "tgt": f"{name}.en"} for name in ("valid", "test")}
    corpus: dict[str, Any] = {"src_lang": "de", "tgt_lang": "en", "train": source["valid"], "valid": source["valid"]}
    corpus["test"] = {"news": source["test"]}
    recipe = config.parse(
        TranslationRecipe, {"run_dir": str(folder), "corpus": corpus, "model": {"type": "transformer", **MODEL}}
    )
    folder.mkdir()
    (folder / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    save_tokenizers(TOKENIZERS, folder / "tokenizer")
    files = FilesSource(src="valid.de", tgt="valid.en")
    prepare(files, TOKENIZERS, folder / "prepared" / "valid", normalize="nfc", max_tokens=9, workers=1)
    torch.manual_seed(1)
    weights = checkpoint.weights(build_model(TransformerConfig(**MODEL), TOKENIZERS))
    checkpoint.save(folder, 1, {"model": weights}, {"step": 1, "score": 1.0})
    return folder


def test_held_out_text_is_looked_for_where_it_may_be(run: Path, tmp_path: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    assert held_out(run, translator, 2) == TestSet(LINES[:2], [LINES[:2]], name="news")
    (tmp_path / "test.de").unlink()
    assert held_out(run, translator, 9) == TestSet(LINES, [LINES], name="the validation set")
    (tmp_path / "valid.en").unlink()
    assert held_out(run, translator, 2) == TestSet(
        LINES[:2], [LINES[:2]], name="the validation pairs that the run keeps"
    )
    (run / "prepared" / "valid" / "meta.json").unlink()
    with raises_error(Error.EMPTY):
        held_out(run, translator, 2)


def test_held_out_text_may_be_given(run: Path, tmp_path: Path) -> None:
    translator = SearchTranslator(torch.nn.Identity(), TOKENIZERS, decoding=DecodingConfig())  # type: ignore[arg-type]
    given, reference = tmp_path / "given.de", tmp_path / "given.en"
    given.write_text("x\ny\n", encoding="utf-8")
    reference.write_text("z\n\n", encoding="utf-8")
    assert held_out(run, translator, 9, src=given) == TestSet(["x", "y"], [], name=str(given))
    assert held_out(run, translator, 1, src=given, ref=reference) == TestSet(["x"], [["z"]], name=str(given))
    with raises_error(Error.MISSING_OPTION, "src"):
        held_out(run, translator, 9, ref=reference)
    given.write_text("\n\n", encoding="utf-8")
    with raises_error(Error.EMPTY):
        held_out(run, translator, 9, src=given)


def test_a_loop_of_one_side_does_not_outweigh_the_others() -> None:
    """Two sentences are equal, and the third goes on for 200 tokens in one of the programs."""
    ours = [("a b", -1.0), ("c", -1.0), ("a", -1.0)]
    found = compared(ours, [*ours[:2], ("a " * 200, -9.0)])
    assert 0.66 <= found.token_agreement < 0.68
