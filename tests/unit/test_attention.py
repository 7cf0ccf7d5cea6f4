"""The textbook's attention and the fused one agree, in outputs and gradients, in every variant."""

import pytest
import torch
from torch import Tensor

from dragoman.backends.fused_attention import FusedAttention, fused_attention
from dragoman.nn.attention import KVCache, MultiHeadAttention, scaled_dot_product_attention
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.nn.positions import AlibiPositions, AttentionPositions, RotaryPositions

CLOSE = {"atol": 2e-5, "rtol": 1e-4}
MASK = causal_mask(7) & padding_mask(torch.arange(7) < torch.tensor([[7], [4], [1]]))
SCHEMES = [AttentionPositions, lambda: RotaryPositions(4), lambda: AlibiPositions(4)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
def test_textbook_equals_fused(masked: bool, biased: bool, num_kv_heads: int) -> None:
    torch.manual_seed(0)
    query = torch.randn(3, 4, 7, 8, requires_grad=True)
    key, value = (torch.randn(3, num_kv_heads, 7, 8, requires_grad=True) for _ in range(2))
    mask, bias = MASK if masked else None, AlibiPositions(4).bias(query, 0, 7) if biased else None
    textbook, weights = scaled_dot_product_attention(query, key, value, mask, bias=bias)
    fused = fused_attention(query, key, value, mask, bias=bias)
    torch.testing.assert_close(textbook, fused, **CLOSE)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 7))
    upstream = torch.randn_like(fused)
    for ours, theirs in zip(
        torch.autograd.grad(textbook, (query, key, value), upstream),
        torch.autograd.grad(fused, (query, key, value), upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, **CLOSE)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("num_kv_heads", [None, 1])
def test_collecting_maps_changes_neither_output_nor_gradients(scheme: type, num_kv_heads: int | None) -> None:
    """The twin's two ways, the textbook's when maps are asked for, are one function."""
    torch.manual_seed(0)
    attention = FusedAttention(16, 4, num_kv_heads=num_kv_heads, positions=scheme())
    x = torch.randn(3, 7, 16, requires_grad=True)
    wanted = [x, *attention.parameters()]
    maps: list[Tensor] = []
    textbook, fused = attention(x, x, MASK, maps), attention(x, x, MASK)
    torch.testing.assert_close(textbook, fused, **CLOSE)
    assert [tuple(weights.shape) for weights in maps] == [(3, 4, 7, 7)]
    upstream = torch.randn_like(fused)
    for ours, theirs in zip(
        torch.autograd.grad(textbook, wanted, upstream), torch.autograd.grad(fused, wanted, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs, **CLOSE)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bfloat16_takes_both_ways(scheme: type) -> None:
    """Under autocast on a CPU training takes the textbook's way and decoding the fused one: no type may clash."""
    torch.manual_seed(0)
    attention, x = FusedAttention(16, 4, num_kv_heads=2, positions=scheme()), torch.randn(3, 7, 16)
    exact = attention(x, x, MASK)
    with torch.autocast("cpu", torch.bfloat16):
        trained = attention(x, x, MASK)
        with torch.no_grad():
            decoded = attention(x, x, MASK)
    for rounded in (trained, decoded):
        assert rounded.dtype == torch.bfloat16
        torch.testing.assert_close(rounded.float(), exact, atol=0.03, rtol=0.03)


def test_grouped_queries_are_repeated_keys_and_values() -> None:
    """Each of 2 heads of keys serves 2 neighbouring heads of queries: plain attention with the projections copied."""
    torch.manual_seed(0)
    grouped, plain = MultiHeadAttention(16, 4, num_kv_heads=2), MultiHeadAttention(16, 4)
    assert grouped.key_proj.weight.shape == (8, 16)
    state = grouped.state_dict()
    for name in ("key_proj", "value_proj"):
        for part in ("weight", "bias"):
            heads = state[f"{name}.{part}"].unflatten(0, (2, 4))
            state[f"{name}.{part}"] = torch.stack([heads[0], heads[0], heads[1], heads[1]]).flatten(0, 1)
    plain.load_state_dict(state)
    x, memory = torch.randn(3, 5, 16), torch.randn(3, 7, 16)
    torch.testing.assert_close(grouped(x, memory, None), plain(x, memory, None), **CLOSE)
    assert grouped.project_kv(memory).key.shape == (3, 2, 7, 4)


def test_as_many_heads_of_keys_is_plain_attention() -> None:
    torch.manual_seed(0)
    same, plain = MultiHeadAttention(16, 4, num_kv_heads=4), MultiHeadAttention(16, 4)
    plain.load_state_dict(same.state_dict())
    x = torch.randn(3, 5, 16)
    assert torch.equal(same(x, x, None), plain(x, x, None))


def test_heads_of_full_width_are_those_of_the_formula() -> None:
    """Each head projects to all of d_model; their outputs, side by side, are projected back, as a loop over heads."""
    torch.manual_seed(0)
    d_model, num_heads = 16, 3
    attention = MultiHeadAttention(d_model, num_heads, d_head=d_model)
    x, memory = torch.randn(2, 5, d_model), torch.randn(2, 7, d_model)
    contexts = []
    for number in range(num_heads):
        own = slice(number * d_model, (number + 1) * d_model)
        query, key, value = (
            side @ linear.weight[own].T + linear.bias[own]
            for side, linear in (
                (x, attention.query_proj),
                (memory, attention.key_proj),
                (memory, attention.value_proj),
            )
        )
        contexts.append((query @ key.transpose(1, 2) / d_model**0.5).softmax(dim=-1) @ value)
    expected = torch.cat(contexts, dim=-1) @ attention.output_proj.weight.T + attention.output_proj.bias
    torch.testing.assert_close(attention(x, memory, None), expected, **CLOSE)
    parameters = sum(one.numel() for one in attention.parameters())
    assert parameters == 4 * num_heads * d_model**2 + (3 * num_heads + 1) * d_model


def test_heads_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"d_model \(10\) must be a multiple of num_heads \(4\)"):
        MultiHeadAttention(10, 4)
    with pytest.raises(ValueError, match=r"num_heads \(4\) must be a multiple of num_kv_heads \(3\)"):
        MultiHeadAttention(16, 4, num_kv_heads=3)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_keys_projected_in_two_parts_are_those_projected_at_once(scheme: type) -> None:
    """The cache: keys of later positions join those of earlier ones, and a late query knows where it stands."""
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(16, 4, positions=scheme()), torch.randn(3, 7, 16)
    first, rest = attention.project_kv(x[:, :5]), attention.project_kv(x[:, 5:], start=5)
    cache = first.appended(rest)
    assert cache.length == 7
    at_once = attention(x, x, causal_mask(7))
    in_parts = attention.attend(x[:, 5:], cache, causal_mask(7)[:, :, 5:], start=5)
    torch.testing.assert_close(in_parts, at_once[:, 5:], **CLOSE)


def test_rows_of_a_cache_are_selected() -> None:
    key = torch.arange(24.0).view(3, 1, 4, 2)
    cache = KVCache(key, -key).select(torch.tensor([2, 0, 2, 1]))
    assert torch.equal(cache.key, key[[2, 0, 2, 1]])
    assert torch.equal(cache.value, -cache.key)
