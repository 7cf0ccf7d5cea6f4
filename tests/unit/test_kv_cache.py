"""The cache of a search holds what the textbook's holds, whatever a search does with it."""

from typing import Any

import pytest
import torch

from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.attention import KVCache
from dragoman.nn.kv_cache import GROWTH_STEPS, MAX_SHARING, SharedKVCache

VOCAB = 23
SMALL = {"d_model": 16, "d_ff": 32, "num_encoder_layers": 2, "num_decoder_layers": 2}
VARIANTS: list[dict[str, Any]] = [
    {"num_heads": 2},
    {"num_heads": 4, "num_kv_heads": 2, "position": {"type": "rotary"}},
    {"num_heads": 3, "d_head": 10, "position": {"type": "rotary"}},
    {"num_heads": 4, "num_kv_heads": 1, "position": {"type": "alibi"}, "norm_placement": "post"},
]


def build(variant: dict[str, Any]) -> Transformer:
    torch.manual_seed(3)
    config = TransformerConfig(**SMALL, **variant)
    return config.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0).eval()


def both_states(model: Transformer) -> tuple[Any, Any]:
    src = torch.randint(4, VOCAB, (3, 6), generator=torch.Generator().manual_seed(1))
    memory = model.encode(src, torch.ones(3, 6, dtype=torch.bool))
    return model.start(memory), model.start_search(memory, rows_per_sentence=4)


@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_a_search_with_either_cache_sees_the_same(variant: dict[str, Any]) -> None:
    """Beams that widen, change places at random, lose sentences and outgrow a table, against rows that are copied."""
    model, rng = build(variant), torch.Generator().manual_seed(2)
    plain, shared = both_states(model)
    sentences, beam = 3, 1
    for step in range(GROWTH_STEPS + 6):
        if step == 2:  # three sentences with a beam of 1 become three with a beam of 4
            beam, rows = 4, torch.arange(3).repeat_interleave(4)
        elif step == GROWTH_STEPS + 2:  # the middle one is done
            sentences, rows = 2, torch.tensor([3, 2, 1, 1, 8, 9, 8, 11])
        else:
            places = torch.randint(0, beam, (sentences, beam), generator=rng)
            rows = (torch.arange(sentences)[:, None] * beam + places).flatten()
        plain, shared = plain.reorder(rows), shared.reorder(rows)
        prev = torch.randint(4, VOCAB, (sentences * beam,), generator=rng)
        (expected, plain), (found, shared) = model.decode_step(prev, plain), model.decode_step(prev, shared)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert shared.past[0].length == plain.past[0].length == GROWTH_STEPS + 6


@torch.no_grad()
def test_states_that_came_of_one_do_not_disturb_each_other() -> None:
    """The table is written in place, so a second continuation of a state has to take a copy."""
    model = build(VARIANTS[0])
    plain, shared = both_states(model)
    for tokens in ([4, 5, 6], [7, 8, 9]):
        plain, shared = (model.decode_step(torch.tensor(tokens), state)[1] for state in (plain, shared))
    one, other, after = (torch.tensor(tokens) for tokens in ([4, 5, 6], [10, 11, 12], [13, 14, 15]))
    first, second = model.decode_step(one, shared)[1], model.decode_step(other, shared)[1]
    for state, tokens in ((first, one), (second, other)):
        expected, _ = model.decode_step(after, model.decode_step(tokens, plain)[1])
        torch.testing.assert_close(model.decode_step(after, state)[0], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_reordering_within_sentences_moves_no_keys() -> None:
    model = build(VARIANTS[0])
    _, state = model.decode_step(torch.tensor([4, 5, 6]), both_states(model)[1])
    moved = state.reorder(torch.tensor([0, 0, 1, 1, 2, 2]))
    assert moved.past[0].table is state.past[0].table
    assert moved.reorder(torch.tensor([1, 0, 3, 3, 4, 4])).past[1].table is state.past[1].table
    assert moved.reorder(torch.tensor([1, 0, 4, 4])).past[1].table is not state.past[1].table


def test_a_wide_search_copies() -> None:
    model = build(VARIANTS[0])
    memory = model.encode(torch.tensor([[4, 5, 6]]), torch.ones(1, 3, dtype=torch.bool))
    narrow, wide = (model.start_search(memory, rows) for rows in (MAX_SHARING, MAX_SHARING + 1))
    assert all(isinstance(layer, SharedKVCache) for layer in narrow.past)
    assert all(isinstance(layer, KVCache) for layer in wide.past)
