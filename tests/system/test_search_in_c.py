"""Translations by the search in C are the textbook's: every recipe's model, drawn settings, any batch, threads."""

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.backends.accelerate import accelerate_inference
from dragoman.backends.cpu_search import library
from dragoman.backends.cpu_search.fast_transformer import FastTransformer
from dragoman.config import from_yaml, parse
from dragoman.decoding.base import DecodingConfig, Hypothesis
from dragoman.errors import Error
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.models.families import MODELS as MODELS_BY_TYPE
from dragoman.models.families import TransformerConfig
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.whitespace import WhitespaceConfig

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(library.library() is None, reason="no C compiler"),
]
WORDS = [f"w{number}" for number in range(120)]
RECIPES = Path(__file__).parents[2] / "recipes"
MODELS = {
    path.stem: from_yaml(path.read_text(encoding="utf-8"), str(path))["model"]
    for path in sorted(RECIPES.glob("*.yaml"))
}
TRANSFORMERS = {name: model for name, model in MODELS.items() if model["type"] == "transformer"}


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    return train_tokenizers(WhitespaceConfig(), lambda: iter([" ".join(WORDS)]), lambda: iter([" ".join(WORDS)]))


def two(
    model: dict[str, Any], tokenizers: TokenizerPair, **precision: Any
) -> tuple[SearchTranslator, SearchTranslator]:
    """A translator by the textbook, and one as a run is loaded, of a model that is sure of what it writes."""
    torch.manual_seed(3)
    config = parse(TransformerConfig, {key: value for key, value in model.items() if key != "type"})
    textbook = build_model(config, tokenizers).eval()
    with torch.no_grad():
        for parameter in textbook.parameters():
            parameter.mul_(1.5) if parameter.dim() > 1 else parameter.add_(torch.randn_like(parameter) * 0.1)
    fast = copy.deepcopy(textbook)
    accelerate_inference(fast, packed=True, **precision)
    decoding = DecodingConfig(max_length_ratio=0.5, max_length_extra=6)
    by_textbook, in_c = (SearchTranslator(one, tokenizers, decoding=decoding) for one in (textbook, fast))
    return by_textbook, in_c


def alike(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> bool:
    """Equal scores, and equal tokens where no other hypothesis is as good within rounding."""
    for mine, other in zip(ours, theirs, strict=True):
        scores, others = ([item.score for item in of_sentence] for of_sentence in (mine, other))
        if scores != pytest.approx(others, abs=3e-4, rel=1e-4):
            return False
        for a, b in zip(mine, other, strict=True):
            near = sum(abs(b.score - c.score) < 3e-4 for c in other)
            if a.ids != b.ids and near == 1 and len(other) > 1:
                return False
    return True


def parts_of(rng: random.Random, tokenizers: TokenizerPair, count: int) -> list[Segment]:
    sentences = [" ".join(rng.choices(WORDS, k=rng.choice([1, 2, 3, 5, 8, 13, 20]))) for _ in range(count)]
    return [Segment(tokenizers.src.encode(sentence), [], sentence) for sentence in sentences]


@pytest.mark.parametrize("recipe", TRANSFORMERS)
def test_every_recipe(recipe: str, tokenizers: TokenizerPair) -> None:
    by_textbook, in_c = two(TRANSFORMERS[recipe], tokenizers)
    assert isinstance(in_c.model, FastTransformer) == (TRANSFORMERS[recipe].get("decoder_autoreg") is None)
    parts = parts_of(random.Random(recipe), tokenizers, 12)
    for beam in (1, 4):
        results = in_c.with_decoding(beam_size=beam).hypotheses(parts)
        assert alike(results, by_textbook.with_decoding(beam_size=beam).hypotheses(parts))


@pytest.mark.parametrize(
    "model", [{"type": "recurrent"}, {"type": "transformer", "position": {"type": "alibi"}}], ids=["recurrent", "alibi"]
)
def test_int8_of_another_model_is_refused(model: dict[str, Any], tokenizers: TokenizerPair) -> None:
    kind = MODELS_BY_TYPE[model["type"]]
    other = build_model(parse(kind, {key: value for key, value in model.items() if key != "type"}), tokenizers)
    with raises_error(Error.UNSUPPORTED, "without relative positions"):
        accelerate_inference(other, packed=True, precision="int8")


SMALL = {
    "type": "transformer",
    "d_model": 48,
    "num_heads": 4,
    "d_ff": 96,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
}
DECODINGS = st.fixed_dictionaries(
    {
        "beam_size": st.integers(1, 6),
        "stopping": st.sampled_from(["exact", "likely", "full", "first"]),
        "length_penalty": st.sampled_from(
            [{"type": "none"}, {"type": "average", "alpha": 0.6}, {"type": "gnmt", "alpha": 1.0}]
        ),
        "min_length": st.integers(0, 3),
        "ban_unk": st.booleans(),
        "no_repeat_ngram": st.sampled_from([0, 0, 2]),
        "repetition_penalty": st.sampled_from([1.0, 1.0, 1.3]),
        "word_penalty": st.sampled_from([0.0, 0.0, 0.2]),
        "coverage_penalty": st.sampled_from([0.0, 0.0, 0.3]),
        "max_length_extra": st.integers(4, 9),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    decoding=DECODINGS,
    wish=st.sampled_from(["", "", "n best", "prefix", "banned", "diverse"]),
    seed=st.integers(0, 999),
)
def test_drawn_settings(tokenizers: TokenizerPair, decoding: dict[str, Any], wish: str, seed: int) -> None:
    rng = random.Random(seed)
    parts = parts_of(rng, tokenizers, 6)
    if wish == "n best":
        decoding = {**decoding, "n_best": decoding["beam_size"]}
    if wish == "diverse" and decoding["beam_size"] > 1:
        decoding = {**decoding, "diversity": 0.4}
    if wish == "prefix":
        parts = [part._replace(prefix=tokenizers.tgt.encode("w1 w2")) for part in parts]
    if wish == "banned":
        parts = [part._replace(banned=((rng.randrange(4, 120),),)) for part in parts]
    by_textbook, in_c = (one.with_decoding(**decoding) for one in two(SMALL, tokenizers))
    together = in_c.hypotheses(parts)
    assert alike(together, by_textbook.hypotheses(parts)), decoding
    some = rng.sample(range(6), 3)
    assert in_c.hypotheses([parts[row] for row in some]) == [together[row] for row in some]
    # The other door, for whoever steps a search, has the same bits.
    if not wish:
        parts = [part._replace(banned=((0,),)) for part in parts]  # what is never written anyway
        assert in_c.hypotheses(parts) == together


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_threads_and_batches_do_not_matter(tokenizers: TokenizerPair, precision: str) -> None:
    wide = {**SMALL, "d_model": 256, "d_ff": 1024}  # products that several threads share
    in_c = two(wide, tokenizers, precision=precision)[1].with_decoding(n_best=3)
    parts = parts_of(random.Random(1), tokenizers, 40)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(in_c.hypotheses(parts))
            results.append([in_c.hypotheses([part])[0] for part in parts])
    finally:
        torch.set_num_threads(before)
    assert all(result == results[0] for result in results)
