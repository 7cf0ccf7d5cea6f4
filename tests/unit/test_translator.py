"""Text in, text out, on a model that knows nothing: order, blanks, long lines, settings."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.backends.cpu_search.fast_transformer import FastTransformer
from dragoman.decoding.rules import ngrams
from dragoman.decoding.search import DecodingConfig
from dragoman.errors import Error
from dragoman.inference.loading import build_model
from dragoman.inference.long_input import split_long
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import TransformerConfig
from dragoman.pipeline.translator import Translator
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.tokenizers.pair import save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

MODEL = {
    "type": "transformer",
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 16,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
LINES = ["the cat sees the dog .", "a dog runs .", "the bird sings today .", "we see a cat and a bird ."]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a random model, put together by hand."""
    folder = tmp_path_factory.mktemp("run")
    source = {"type": "files", "src": "x", "tgt": "y"}
    corpus = {"src_lang": "en", "tgt_lang": "en", "train": source, "valid": source, "max_tokens": 12}
    recipe = config.parse(TranslationRecipe, {"run_dir": str(folder), "corpus": corpus, "model": MODEL})
    (folder / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))
    save_tokenizers(tokenizers, folder / "tokenizer")
    torch.manual_seed(3)
    model = build_model(TransformerConfig(**MODEL), tokenizers)
    checkpoint.save(folder, 1, {"model": checkpoint.weights(model)}, {"step": 1, "score": 1.0})
    return folder


def test_order_and_blanks_are_kept(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    out = translator.translate([LINES[0], "", LINES[1], "  ", LINES[0]])
    assert out[1] == out[3] == ""
    assert out[0] == out[4] == translator.translate(LINES[:1])[0]
    assert translator.translate([]) == []


def test_a_stream_gives_what_one_call_gives(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    lines = [LINES[i % 4] if i % 7 else "" for i in range(50)]
    assert list(translator.stream(iter(lines), buffer=8)) == translator.n_best(lines)


def test_neighbours_do_not_change_a_translation(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    together = translator.translate(LINES)
    assert [translator.translate([line])[0] for line in LINES] == together


def test_ngrams_of_the_source_may_be_forbidden(run: Path) -> None:
    """As Hugging Face's `encoder_no_repeat_ngram_size`: each sentence's own."""
    translator = SearchTranslator.load(run, device="cpu")

    def shared(**decoding: Any) -> int:
        texts = zip(LINES, translator.translate(LINES, **decoding), strict=True)
        ids = [[ngrams(translator.tokenizers.src.encode(text), 1) for text in pair] for pair in texts]
        return sum(len({*src} & {*tgt}) for src, tgt in ids)

    assert shared(beam_size=4) > 0
    assert shared(beam_size=4, no_source_ngram=1) == shared(beam_size=1, no_source_ngram=1) == 0


def test_a_line_longer_than_the_model_knows_is_cut_and_joined(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    parts = split_long(" ".join(LINES), lambda text: len(translator.tokenizers.src.encode(text)), 12)
    assert len(parts) > 1
    assert translator.translate([" ".join(LINES)])[0] == " ".join(translator.translate(parts))
    # A prefix is where the first part's translation begins.
    [joined] = translator.n_best([" ".join(LINES)], ["we see"])[0]
    alone = [found[0] for found in translator.n_best(parts, ["we see", *[""] * (len(parts) - 1)])]
    assert joined.text == " ".join(item.text for item in alone)
    assert joined.log_prob == pytest.approx(sum(item.log_prob for item in alone))
    assert joined.score == pytest.approx(sum(item.score for item in alone) / len(parts))
    assert len(split_long("cat " * 500, lambda text: len(text.split()), 12)) == 42


def test_settings_can_be_changed_when_loading(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu", beam_size=3, n_best=2)
    assert translator.decoding == dataclasses.replace(DecodingConfig(), beam_size=3, n_best=2)
    found = translator.n_best(LINES[1:2])[0]
    assert len(found) == 2
    assert found[0].score >= found[1].score
    with raises_error(Error.UNKNOWN_SETTING, "decoding settings", "beam_size"):
        SearchTranslator.load(run, beam_sise=3)


def test_loading_names_what_is_wrong(run: Path, tmp_path: Path) -> None:
    with raises_error(Error.NOT_A_RUN, "none"):
        SearchTranslator.load(tmp_path / "none")
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "checkpoints")
    with raises_error(Error.NO_CHECKPOINT):
        SearchTranslator.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("a b c", 3, ["a b c"]),
        ("a b. c d. e", 2, ["a b.", "c d.", "e"]),
        ("a b c d e", 2, ["a b", "c d", "e"]),
        ("a. b. c. d.", 2, ["a. b.", "c. d."]),
    ],
)
def test_split_long(text: str, limit: int, parts: list[str]) -> None:
    assert split_long(text, lambda part: len(part.split()), limit) == parts


def test_split_long_keeps_every_character_of_text_without_spaces() -> None:
    text = "很" * 103
    parts = split_long(text, len, 10)
    assert max(map(len, parts)) <= 10
    assert "".join("".join(parts).split()) == text


def test_a_long_chinese_sentence_is_cut_without_spaces() -> None:
    assert split_long("我爱你。你爱我。他来了。", len, limit=8) == ["我爱你。你爱我。", "他来了。"]
    assert split_long("one two  three", lambda part: len(part.split()), limit=2) == ["one two", "three"]


def test_a_bare_string_is_refused() -> None:
    for method in (Translator.translate, Translator.n_best):
        with pytest.raises(TypeError, match=r"give a list of sentences.*\['ein bier'\]"):
            method(object.__new__(Translator), "ein bier")


def test_an_ensemble_needs_runs_of_one_tokenizer(run: Path, tmp_path: Path) -> None:
    alone = SearchTranslator.load(run, device="cpu", beam_size=3)
    twice = SearchTranslator.load(run, device="cpu", beam_size=3, ensemble=[run])
    assert twice.translate(LINES) == alone.translate(LINES)
    other = shutil.copytree(run, tmp_path / "other")
    assert SearchTranslator.load(run, device="cpu", ensemble=[other]).translate(LINES[:1])
    turned = shutil.copytree(run, tmp_path / "turned")
    recipe = read_yaml(turned / "config.yaml")
    recipe["corpus"]["src_lang"] = "xx"
    (turned / "config.yaml").write_text(json.dumps(recipe))  # which is YAML, too
    with raises_error(Error.LANGUAGES_DIFFER, "turned"):
        SearchTranslator.load(run, device="cpu", ensemble=[turned])
    learning = other / "tokenizer/shared/config.json"  # how it was learnt makes no difference to what it does
    learning.write_text(json.dumps(json.loads(learning.read_text()) | {"min_count": 7, "vocab_size": 99}))
    assert SearchTranslator.load(run, device="cpu", ensemble=[other]).translate(LINES[:1])
    learning.write_text(json.dumps(json.loads(learning.read_text()) | {"lowercase": True}))
    with raises_error(Error.MISMATCH, "other"):
        SearchTranslator.load(run, device="cpu", ensemble=[other])
    save_tokenizers(train_tokenizers(WordsConfig(), lambda: iter(LINES[:2]), lambda: iter(LINES)), other / "tokenizer")
    with raises_error(Error.MISMATCH, "other"):
        SearchTranslator.load(run, device="cpu", ensemble=[other])
    with raises_error(Error.NOT_A_RUN, "nowhere"):
        SearchTranslator.load(run, device="cpu", ensemble=[tmp_path / "nowhere"])


def test_an_ensemble_reads_as_much_as_each_of_its_runs(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    recipe = read_yaml(other / "config.yaml")
    recipe["corpus"]["max_tokens"] = 7
    (other / "config.yaml").write_text(json.dumps(recipe))
    assert SearchTranslator.load(run, device="cpu", ensemble=[other]).max_src_tokens == 7
    assert SearchTranslator.load(other, device="cpu", ensemble=[run]).max_src_tokens == 7


def test_no_text_comes_twice_among_the_n_best(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = SearchTranslator.load(run, device="cpu", beam_size=4, n_best=4)
    monkeypatch.setattr(type(translator.tokenizers.tgt), "decode", lambda self, ids: str(list(ids)[:1]))
    found = [item.text for item in translator.n_best(LINES[:1])[0]]
    assert len(found) == len(set(found)) < 4


def test_a_translation_that_was_found_has_the_score_that_it_was_found_with(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu", beam_size=4, n_best=4)
    pairs, expected = [], []
    for line, found in zip(LINES, translator.n_best(LINES), strict=True):
        for item in found:
            if item.text and translator.tokenizers.tgt.decode(translator.tokenizers.tgt.encode(item.text)) == item.text:
                pairs.append((line, item.text))
                expected.append(item)
    scored = score(translator, pairs)
    assert len(pairs) >= 5
    for one, item in zip(scored, expected, strict=True):  # some were cut at the longest length, before their </s>
        assert item.log_prob in (
            pytest.approx(one.log_prob, abs=1e-4),
            pytest.approx(one.log_prob - one.tokens[-1][1], abs=1e-4),
        )
    assert any(
        item.log_prob == pytest.approx(one.log_prob, abs=1e-4) for one, item in zip(scored, expected, strict=True)
    )
    for one in scored:
        assert one.tokens[-1][0] == "</s>"
        assert sum(value for _, value in one.tokens) == pytest.approx(one.log_prob, abs=1e-5)
        assert one.score == pytest.approx(one.log_prob / len(one.tokens), abs=1e-6)


@pytest.mark.parametrize("in_c", [True, False], ids=["in C", "by PyTorch"])
def test_a_score_that_is_no_number_is_refused(run: Path, in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by every search: `nan` is no JSON, and stands first or last in no ranking (mozilla/translations 244)."""
    if not in_c:
        monkeypatch.setattr(FastTransformer, "can_force", lambda own, pairs: False)
    translator = SearchTranslator.load(run, device="cpu")
    with torch.no_grad():
        translator.model.get_submodule("decoder_norm").weight[1] = float("nan")
    with raises_error(Error.DIVERGED, r"pair 7: the model gives no token a finite probability"):
        score(translator, [("a cat", "a")], first=7)


def test_scores_do_not_depend_on_neighbours_and_blanks_have_none(run: Path) -> None:
    translator = SearchTranslator.load(run, device="cpu")
    pairs = [(LINES[i % 4], LINES[(3 * i) % 4]) for i in range(9)]
    alone = [score(translator, [pair])[0] for pair in pairs]
    for one, other in zip(score(translator, pairs), alone, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
    for pair, side in [(("a", " "), "translation"), (("", "a"), "source")]:
        with raises_error(Error.BLANK, "pair 1", side):
            score(translator, [pair])
    with raises_error(Error.TOO_LONG):
        score(translator, [("a cat " * 20, "a")])
