"""Coverage and where a model looks."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_search import EOS, TableModel, enumerated, random_model, sources
from torch import Tensor

from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.coverage import MIN_ATTENTION, coverage, cross_attention
from dragoman.decoding.penalties import AveragePenalty, GnmtPenalty, NoPenalty
from dragoman.decoding.search import search
from dragoman.errors import Error
from dragoman.models.blocks import LearnedConfig
from dragoman.models.families import TransformerConfig


class LookingModel(TableModel):
    """Token t looks at source position t - 4 with half of its attention, at the others with the rest."""

    def attention_maps(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> dict[str, Tensor]:
        said = tgt_in.roll(-1, dims=1)
        look = torch.full((*tgt_in.shape, src.size(1)), 0.5 / (src.size(1) - 1))
        look.scatter_(2, (said - 4).clamp(0, src.size(1) - 1)[:, :, None], 0.5)
        wrong = torch.full_like(look, 1 / src.size(1))
        return {"decoder.0.cross": wrong[:, None], "decoder.1.cross": look[:, None], "decoder.2.cross": wrong[:, None]}


@pytest.mark.parametrize("penalty", [NoPenalty(), AveragePenalty(), GnmtPenalty()], ids=str)
@pytest.mark.parametrize("beta", [0.2, 1.0])
def test_a_beam_as_wide_as_the_space_finds_what_enumeration_finds(penalty: Any, beta: float) -> None:
    model = LookingModel(random_model(8, vocab=7).table)
    src = torch.tensor([[0, 9, 9], [1, 9, 9]])
    mask = torch.ones_like(src, dtype=torch.bool)
    config = DecodingConfig(beam_size=120, n_best=4, length_penalty=penalty, coverage_penalty=beta)
    results = search(model, src, mask, config, max_lengths=torch.tensor([4, 4]))
    changed = 0
    for sentence, found in enumerate(results):
        every = enumerated(model, sentence, [4, 5, 6], penalty, longest=4)
        scores = []
        for item in every:
            looked = [0.0] * 3
            for token in [*item.ids, 2]:  # after the last token the model looks where <s>, rolled round, says
                for place in range(3):
                    looked[place] += 0.5 if place == min(max(token - 4, 0), 2) else 0.25
            scores.append(item.score + beta * sum(math.log(min(value, 1.0)) for value in looked))
        order = sorted(range(len(every)), key=lambda i: -scores[i])[:4]
        assert [item.ids for item in found] == [every[i].ids for i in order]
        assert [item.score for item in found] == pytest.approx([scores[i] for i in order], abs=1e-4)
        changed += order != [0, 1, 2, 3]
    assert changed


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_that_was_cut_has_looked_for_no_end(beam_size: int) -> None:
    model = LookingModel(random_model(8, vocab=7).table)
    src = torch.tensor([[0, 9, 9]])
    mask = torch.ones_like(src, dtype=torch.bool)
    config = DecodingConfig(beam_size=beam_size, min_length=4, length_penalty=NoPenalty())
    plain, ranked = (
        search(model, src, mask, replace(config, coverage_penalty=beta), max_lengths=torch.tensor([3]))[0][0]
        for beta in (0.0, 1.0)
    )
    assert plain.cut
    tgt_in = torch.tensor([[2, *ranked.ids[:-1]]])
    attention = cross_attention(model, src, mask, tgt_in)[0]
    assert len(ranked.ids) == len(attention) == 3
    assert ranked.score - ranked.log_prob == pytest.approx(coverage(attention, mask[0]), abs=1e-5)


def test_what_nobody_looked_at_costs_much_and_pads_nothing() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert coverage(weights, torch.tensor([True, True, False])) == pytest.approx(math.log(MIN_ATTENTION))
    assert coverage(weights, torch.tensor([True, False, False])) == 0.0


def test_a_model_without_attention_says_so() -> None:
    model = random_model(1)
    with raises_error(Error.UNSUPPORTED):
        search(model, *sources(0), DecodingConfig(coverage_penalty=0.2), max_lengths=torch.tensor([4]))
    with raises_error(Error.UNSUPPORTED):
        cross_attention(model, *sources(0), torch.tensor([[2, EOS]]))


def test_a_translation_that_was_cut_at_the_longest_target_has_its_coverage_too() -> None:
    torch.manual_seed(3)
    config = TransformerConfig(
        d_model=16, num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, position=LearnedConfig(max_len=6)
    )
    model = config.build(src_vocab_size=12, tgt_vocab_size=12, shared_vocab=True, pad_id=0)
    src = torch.tensor([[5, 6, 3], [7, 8, 3]])
    found = search(model, src, src > 0, DecodingConfig(coverage_penalty=0.2, min_length=5, beam_size=2))
    assert all(item.ids and math.isfinite(item.score) for of_sentence in found for item in of_sentence)
