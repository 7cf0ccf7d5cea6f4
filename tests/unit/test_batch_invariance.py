"""A translation and its scores are the same, to the last bit, whatever is translated beside it."""

import random
from typing import Any

import pytest
import torch
from torch.nn import functional

from dragoman.backends.accelerate import accelerate_inference
from dragoman.data.batch import collate_src
from dragoman.data.eval_batches import even_batches
from dragoman.decoding.search import DecodingConfig
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.base import ROW_MULTIPLE
from dragoman.models.families import MODELS
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.whitespace import WhitespaceConfig

WORDS = [f"w{number}" for number in range(150)]
LENGTHS = [1, 2, 3, 5, 7, 8, 9, 11, 14, 15, 16, 23]
SENTENCES = 60
SIZES: dict[str, dict[str, Any]] = {
    "transformer": {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_encoder_layers": 3, "num_decoder_layers": 3},
    "recurrent": {"d_model": 64, "d_embedding": 64},
}


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    text = [" ".join(WORDS)]
    return train_tokenizers(WhitespaceConfig(), lambda: iter(text), lambda: iter(text))


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("family", SIZES)
def test_alone_and_in_two_orders(tokenizers: TokenizerPair, family: str, beam_size: int) -> None:
    torch.manual_seed(1)
    model = build_model(MODELS[family](**SIZES[family]), tokenizers).eval()
    decoding = DecodingConfig(beam_size=beam_size, max_length_ratio=0.2, max_length_extra=2)
    translator = SearchTranslator(model, tokenizers, decoding=decoding)
    rng = random.Random(5)
    sentences = [" ".join(rng.choices(WORDS, k=rng.choice(LENGTHS))) for _ in range(SENTENCES)]
    together = translator.n_best(sentences)
    order = rng.sample(range(SENTENCES), SENTENCES)
    shuffled = dict(zip(order, translator.n_best([sentences[i] for i in order]), strict=True))
    assert [i for i in range(SENTENCES) if shuffled[i] != together[i]] == []
    assert [i for i in range(SENTENCES) if translator.n_best([sentences[i]])[0] != together[i]] == []
    assert translator.n_best(sentences[:37]) == together[:37]


def test_all_rows_of_a_batch_are_as_wide_as_each_would_be_alone() -> None:
    rng = random.Random(2)
    lengths = [rng.randint(0, 60) for _ in range(200)]
    batches = list(even_batches(lengths, batch_tokens=128, multiple=8))
    assert sorted(row for rows in batches for row in rows) == list(range(200))
    for rows in batches:
        widths = {collate_src([[5] * lengths[row]], 8)[0].size(1) for row in rows}
        src, _ = collate_src([[5] * lengths[row] for row in rows], 8)
        assert widths == {src.size(1)}
        assert src.size(1) % 8 == 0
        assert src.numel() <= 128
    assert [rows.tolist() for rows in even_batches([1000], 128, 8)] == [[0]]


def test_padding_goes_no_further_than_the_longest_sentence_may_be() -> None:
    src, mask = collate_src([[7] * 9, [7]], 8, longest=12)
    assert src.shape == (2, 13)
    assert mask.sum(dim=1).tolist() == [10, 2]
    assert collate_src([[7] * 9], 8, longest=9)[0].size(1) == 10
    assert collate_src([[7] * 9], 8, longest=3)[0].size(1) == 10
    assert collate_src([[7] * 9], 8)[0].size(1) == 16


@pytest.mark.parametrize("family", SIZES)
def test_packed_and_on_several_threads(tokenizers: TokenizerPair, family: str) -> None:
    """As a run is loaded: packed weights or a search in C, several threads; and a sentence alone, on one thread."""
    torch.manual_seed(1)
    model = build_model(MODELS[family](**SIZES[family]), tokenizers).eval()
    accelerate_inference(model, packed=True)
    translator = SearchTranslator(model, tokenizers, decoding=DecodingConfig(max_length_ratio=0.2, max_length_extra=12))
    rng = random.Random(6)
    sentences = [" ".join(rng.choices(WORDS, k=rng.choice(LENGTHS))) for _ in range(SENTENCES)]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        together = translator.n_best(sentences)
        alone = [translator.n_best([sentence])[0] for sentence in sentences]
        torch.set_num_threads(1)
        assert translator.n_best(sentences) == together
    finally:
        torch.set_num_threads(before)
    assert [i for i in range(SENTENCES) if alone[i] != together[i]] == []


@pytest.mark.parametrize("inputs", [64, 128, 512])
def test_a_row_of_a_product_does_not_depend_on_the_number_of_rows(inputs: int) -> None:
    x = torch.randn(256, inputs)
    for outputs in (64, 512):
        weight, bias = torch.randn(outputs, inputs), torch.randn(outputs)
        few = functional.linear(x[:ROW_MULTIPLE], weight, bias)
        different = [
            rows
            for rows in range(ROW_MULTIPLE, 257, ROW_MULTIPLE)
            if not torch.equal(functional.linear(x[:rows], weight, bias)[:ROW_MULTIPLE], few)
        ]
        assert different == []
