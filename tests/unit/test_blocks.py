"""Norms, placements, feed-forward networks, embeddings: each against its formula; settings against their tables."""

import typing
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import OneOf, parse, to_dict
from dragoman.errors import Error
from dragoman.models.blocks import BlockConfig, DecoderLayer, EncoderLayer
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.nn.feedforward import FEED_FORWARDS, SwiGLU
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.nn.residual import NORM_PLACEMENTS, NORMS


@pytest.mark.parametrize(
    ("setting", "table"), [("norm", NORMS), ("norm_placement", NORM_PLACEMENTS), ("activation", FEED_FORWARDS)]
)
def test_what_a_recipe_may_name_is_what_the_table_holds(setting: str, table: Any) -> None:
    [marker] = typing.get_type_hints(BlockConfig, include_extras=True)[setting].__metadata__
    assert isinstance(marker, OneOf)
    assert marker.names == list(table)


def test_position_settings_survive_a_round_trip() -> None:
    for position in ({"type": "none"}, {"type": "rotary", "base": 500.0}, {"type": "alibi"}):
        config = parse(BlockConfig, {"position": position})
        assert to_dict(config)["position"] == position
        assert parse(BlockConfig, to_dict(config)) == config


@pytest.mark.parametrize("norm", NORMS)
def test_norms_by_their_formulas(norm: str) -> None:
    x = torch.randn(3, 8, dtype=torch.float64) * 3 + 1
    found = BlockConfig(d_model=8, norm=norm, norm_eps=0.5).new_norm().double()
    gain = torch.linspace(0.5, 2, 8, dtype=torch.float64)
    found.weight.data.copy_(gain)
    centred = x - x.mean(-1, keepdim=True) if norm == "layer" else x
    torch.testing.assert_close(found(x), centred / (centred.square().mean(-1, keepdim=True) + 0.5).sqrt() * gain)


@pytest.mark.parametrize("placement", NORM_PLACEMENTS)
def test_placements_by_their_formulas(placement: str) -> None:
    x, sublayer = torch.randn(2, 3, 8), nn.Linear(8, 8)
    residual = BlockConfig(d_model=8, norm_placement=placement, dropout=0.0).residual()
    norm = residual.norm
    expected = {
        "post": lambda: norm(x + sublayer(x)),
        "pre": lambda: x + sublayer(norm(x)),
        "output": lambda: x + norm(sublayer(x)),
    }[placement]()
    assert torch.equal(residual(x, sublayer), expected)


@pytest.mark.parametrize("placement", NORM_PLACEMENTS)
def test_dropout_spares_the_residual_path(placement: str) -> None:
    torch.manual_seed(0)
    x = torch.full((4, 50, 8), 7.0)
    residual = BlockConfig(d_model=8, norm_placement=placement, dropout=0.5).residual()
    residual.norm = nn.Identity()
    added = residual(x, lambda y: torch.ones_like(y)) - x
    assert set(added.unique().tolist()) == {0.0, 2.0}


ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    "gelu_tanh": lambda x: x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward_by_its_formula(activation: str) -> None:
    network, x = FEED_FORWARDS[activation](4, 6, 0.0).double(), torch.randn(2, 3, 4, dtype=torch.float64)
    inner = ACTIVATIONS[activation](x @ network.expand.weight.T + network.expand.bias)
    torch.testing.assert_close(network(x), inner @ network.contract.weight.T + network.contract.bias)


def test_swiglu_by_its_formula() -> None:
    network, x = SwiGLU(4, 6), torch.randn(2, 3, 4)
    gate, value = x @ network.gate.weight.T, x @ network.expand.weight.T
    torch.testing.assert_close(network(x), (gate * torch.sigmoid(gate) * value) @ network.contract.weight.T)
    plain = FEED_FORWARDS["relu"](120, 480, 0.0)
    weights = [sum(p.numel() for p in each.parameters() if p.dim() == 2) for each in (SwiGLU(120, 320), plain)]
    assert weights[0] == weights[1]


def test_an_embeddings_norm_follows_positions() -> None:
    config = BlockConfig(d_model=8, embedding_norm=True, norm="rms", dropout=0.0)
    embedding = config.positioned(TokenEmbedding(9, 8, 0, scaled=True))
    ids = torch.tensor([[4, 5, 6]])
    summed = embedding.tokens(ids) + embedding.positions(2, 3)
    torch.testing.assert_close(embedding(ids, start=2), F.rms_norm(summed, (8,), eps=1e-5))
    without = BlockConfig(d_model=8, dropout=0.0).positioned(embedding.tokens)
    assert torch.equal(without(ids, start=2), summed)
    assert not list(without.norm.parameters())


def test_an_encoder_layer_needs_no_mask() -> None:
    layer, x = EncoderLayer(BlockConfig(d_model=16, dropout=0.0)), torch.randn(2, 5, 16)
    torch.testing.assert_close(layer(x, None), layer(x, padding_mask(torch.ones(2, 5, dtype=torch.bool))))


@pytest.mark.parametrize("cross_attention", [True, False])
@pytest.mark.parametrize("position", [{"type": "rotary"}, {"type": "alibi"}])
def test_several_new_positions_at_once(cross_attention: bool, position: dict[str, str]) -> None:
    """A cached step may take more than one position, for several hypotheses of a sentence too."""
    torch.manual_seed(0)
    config = BlockConfig(d_model=16, dropout=0.0, position=position, num_kv_heads=2)
    layer, x = DecoderLayer(config, cross_attention), torch.randn(4, 6, 16)
    memory, mask = torch.randn(2, 5, 16), padding_mask(torch.arange(5) < torch.tensor([[5], [3]]))
    causal, of_sentences = causal_mask(6), [0, 0, 1, 1]
    wide = (memory[of_sentences], mask[of_sentences]) if cross_attention else ()
    memories = [(layer.project_memory(memory), mask)] if cross_attention else []
    at_once = layer(x, causal, *wide)
    nothing = layer.self_attention.project_kv(x[:, :0])
    first, pasts = layer.decode_step(x[:, :4], [nothing], causal[:, :, :4, :4], memories)
    rest, [past] = layer.decode_step(x[:, 4:], pasts, causal[:, :, 4:], memories)
    assert past.key.shape == (4, 2, 6, 4)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), at_once, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("scaled", [True, False])
def test_pretrained_vectors_come_out_at_the_size_of_the_others(scaled: bool) -> None:
    torch.manual_seed(0)
    embedding = TokenEmbedding(2000, 64, 0, scaled)
    before = embedding.embedding.weight.detach().clone()
    rows: dict[int, np.ndarray | Tensor] = {i: np.random.default_rng(i).normal(size=64) * 5 for i in range(900)}
    rows[900] = torch.ones(64) * 20
    embedding.load_vectors(rows)
    weight = embedding.embedding.weight.detach()
    assert torch.equal(weight[901:], before[901:])
    assert not weight[0].any()  # padding
    given = torch.stack([torch.as_tensor(rows[i]).float() for i in range(1, 901)])
    factor = weight[1, 0] / given[0, 0]
    torch.testing.assert_close(weight[1:901], given * factor)
    came_out = embedding(torch.arange(1, 901)).detach().square().mean().sqrt().item()
    assert came_out == pytest.approx(1.0 if scaled else 64**-0.5, rel=1e-4)
    of_the_others = embedding(torch.arange(901, 2000)).detach().square().mean().sqrt().item()
    assert came_out == pytest.approx(of_the_others, rel=0.05)


def test_pretrained_vectors_that_do_not_fit_are_refused() -> None:
    embedding = TokenEmbedding(9, 8, 0, scaled=True)
    with raises_error(Error.MISMATCH):
        embedding.load_vectors({4: np.ones(8), 5: np.ones(7)})
    for broken in (0.0, np.nan, np.inf):
        with raises_error(Error.DAMAGED):
            embedding.load_vectors({4: np.full(8, broken)})
    before = embedding.embedding.weight.detach().clone()
    embedding.load_vectors({})
    assert torch.equal(embedding.embedding.weight, before)
