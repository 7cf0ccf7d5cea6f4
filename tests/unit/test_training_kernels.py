"""The fast projections and attention of training equal their readable twins, outputs and gradients."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.backends.accelerate import accelerate, exchange
from dragoman.backends.chunked_loss import token_loss
from dragoman.backends.cpu_training.fast_layers import Bfloat16Attention
from dragoman.backends.cpu_training.projection import (
    KERNEL_ROWS,
    from_rows,
    padded,
    project,
    to_logits,
    trains_in_bfloat16,
)
from dragoman.backends.cpu_training.short_attention import Sizes, rotary_phase, short_attention
from dragoman.models.families import TransformerConfig
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import scaled_dot_product_attention
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.nn.positions import AlibiPositions, AttentionPositions, RotaryPositions

ROUNDED = {"atol": 2e-2, "rtol": 2e-2}
"""bfloat16 has 8 bits: the twins round at other places."""
REAL = torch.tensor([[True] * 7, [True] * 4 + [False] * 3, [True] + [False] * 6])


def autocast() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16)


@pytest.mark.parametrize("rows", [1, KERNEL_ROWS - 1, KERNEL_ROWS, 3 * KERNEL_ROWS + 5])
@pytest.mark.parametrize(("widths", "bias"), [((24,), True), ((24,), False), ((16, 8, 8), True), ((8, 16), False)])
def test_projections_equal_linear_layers_under_autocast(rows: int, widths: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    linears = [nn.Linear(12, width, bias=bias) for width in widths]
    x = torch.randn(rows, 1, 12, requires_grad=True)
    upstream = [torch.randn(rows, 1, width).bfloat16() for width in widths]
    parameters = [parameter for linear in linears for parameter in linear.parameters()]
    with autocast():
        assert trains_in_bfloat16(x)
        fast, plain = project(x, *linears), tuple(linear(x) for linear in linears)
    for mine, other in zip(fast, plain, strict=True):
        assert mine.dtype == other.dtype == torch.bfloat16
        torch.testing.assert_close(mine, other, atol=1e-2, rtol=1e-2)
    gradients = [torch.autograd.grad(outputs, (x, *parameters), upstream) for outputs in (fast, plain)]
    for mine, other in zip(*gradients, strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, other, **ROUNDED, msg=str((mine - other).abs().max()))


@pytest.mark.parametrize("rows", [1, KERNEL_ROWS, KERNEL_ROWS + 5])
def test_the_feed_forward_network_equals_its_layers_under_autocast(rows: int) -> None:
    torch.manual_seed(0)
    network = FeedForward(12, 40, activation=nn.ReLU())
    x = torch.randn(rows, 1, 12, requires_grad=True)
    wanted = (x, *network.parameters())
    upstream = torch.randn(rows, 1, 12).bfloat16()
    with autocast():
        fast = network(x)
        plain = network.contract(network.activation(network.expand(x)))
    torch.testing.assert_close(fast, plain, atol=1e-2, rtol=1e-2)
    gradients = [torch.autograd.grad(outputs, wanted, upstream) for outputs in (fast, plain)]
    for mine, other in zip(*gradients, strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, other, **ROUNDED, msg=str((mine - other).abs().max()))


@pytest.mark.parametrize("rows", [1, KERNEL_ROWS, KERNEL_ROWS + 5])
@pytest.mark.parametrize("in_place", [False, True])
def test_logits_and_what_the_loss_sends_back_equal_those_of_a_linear_layer_under_autocast(
    rows: int, in_place: bool
) -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(rows, 1, 12, requires_grad=True), torch.randn(19, 12, requires_grad=True)
    targets, real = torch.randint(0, 19, (rows, 1)), torch.rand(rows, 1) < 0.9
    for _ in range(2):  # the second time in the memory of the first
        with autocast():
            fast, plain = to_logits(hidden, weight), F.linear(hidden, weight)
        assert fast.dtype == plain.dtype == torch.bfloat16
        assert torch.equal(fast, plain)
        losses = token_loss(fast, targets, real, 0.1, in_place=in_place), token_loss(plain, targets, real, 0.1)
        gradients = [torch.autograd.grad(loss, (hidden, weight)) for loss in losses]
        del fast, losses
        for mine, other in zip(*gradients, strict=True):
            assert mine.dtype == torch.float32
            torch.testing.assert_close(mine, other, atol=1e-2, rtol=1e-2)


def test_memory_is_used_again_only_where_nobody_holds_it() -> None:
    hidden, weight = torch.randn(2, 3, 12), torch.randn(19, 12, requires_grad=True)

    def logits() -> Tensor:
        with autocast():
            return to_logits(hidden, weight)

    first = logits()
    place, second = first.data_ptr(), logits()
    assert second.data_ptr() != place
    part = first[0]
    del first
    third = logits()
    assert third.data_ptr() not in (place, second.data_ptr())
    del part
    assert logits().data_ptr() == place


@pytest.mark.parametrize("start", [0, 3])
def test_rotary_positions_turn_by_the_same_angles_in_either_way(start: int) -> None:
    torch.manual_seed(0)
    rotary = RotaryPositions(8)
    rows = torch.randn(3, 5, 16).bfloat16().requires_grad_()
    heads = rows.unflatten(-1, (2, 8)).transpose(1, 2)  # as they come out of a projection
    with autocast():
        fast = rotary.rotate(heads, start)
    plain = rotary.rotate(heads, start)
    assert fast.dtype == plain.dtype == torch.bfloat16
    upstream = torch.randn_like(plain)
    for mine, other in (
        (fast, plain),
        *zip(torch.autograd.grad(fast, rows, upstream), torch.autograd.grad(plain, rows, upstream), strict=True),
    ):
        torch.testing.assert_close(mine, other, atol=2e-2, rtol=1e-2)


def test_without_autocast_or_gradients_projections_are_the_layers_themselves() -> None:
    linears = [nn.Linear(12, 8), nn.Linear(12, 16)]
    x = torch.randn(5, 12)
    for mine, linear in zip(project(x, *linears), linears, strict=True):
        assert torch.equal(mine, linear(x))
    with autocast(), torch.no_grad():
        assert not trains_in_bfloat16(x)
        assert torch.equal(project(x, linears[0])[0], linears[0](x))


def rows_of(*heads: Tensor) -> Tensor:
    """(batch, num_heads, len, d_head) each -> the rows that a projection to all of them makes."""
    side_by_side = torch.cat([part.transpose(1, 2).flatten(2).flatten(0, 1) for part in heads], dim=1)
    return F.pad(side_by_side, (0, 0, 0, padded(len(side_by_side)) - len(side_by_side)))


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
def test_short_attention_equals_the_textbook(alone: bool, causal: bool, with_bias: bool, rotary: bool) -> None:
    torch.manual_seed(0)
    length = 7 if alone or causal or rotary else 5
    sizes = Sizes(batch=3, query_len=length, key_len=7, num_heads=2)
    q, k, v = (torch.randn(3, 2, n, 8, requires_grad=True) for n in (length, 7, 7))
    mask = causal_mask(7) if causal else padding_mask(REAL)
    bias = AlibiPositions(2).bias(q, 0, 7) if with_bias else None
    positions = RotaryPositions(8) if rotary else AttentionPositions()
    queries, memory = (rows_of(q, k, v), None) if alone else (rows_of(q), rows_of(k, v))
    fast = short_attention(queries, memory, sizes, mask, bias, rotary_phase(positions, 0, length))
    turned = positions.rotate(q, 0), positions.rotate(k, 0)
    plain = scaled_dot_product_attention(*turned, v, mask, None, bias)[0].transpose(1, 2).flatten(2)
    assert len(fast) == KERNEL_ROWS
    assert not fast[3 * length :].any()
    fast = from_rows(fast, (3, length))
    torch.testing.assert_close(fast, plain)
    upstream = torch.randn_like(plain)
    for mine, other in zip(
        torch.autograd.grad(fast, (q, k, v), upstream), torch.autograd.grad(plain, (q, k, v), upstream), strict=True
    ):
        torch.testing.assert_close(mine, other)


def test_short_attention_in_bfloat16_is_within_its_rounding() -> None:
    torch.manual_seed(0)
    heads = [torch.randn(2, 2, 5, 8).bfloat16().requires_grad_() for _ in range(3)]
    with autocast():
        fast = short_attention(rows_of(*heads), None, Sizes(2, 5, 5, 2), None)
    assert fast.dtype == torch.bfloat16
    fast = from_rows(fast, (2, 5))
    exact = scaled_dot_product_attention(*(part.float() for part in heads), None)[0].transpose(1, 2).flatten(2)
    torch.testing.assert_close(fast.float(), exact, **ROUNDED)
    pairs = zip(*(torch.autograd.grad(out.float().square().sum(), heads) for out in (fast, exact)), strict=True)
    for mine, other in pairs:
        assert mine.dtype == torch.bfloat16
        torch.testing.assert_close(mine, other, atol=5e-2, rtol=5e-2)


def test_short_attention_takes_its_softmax_in_float32_without_a_mask_too() -> None:
    torch.manual_seed(0)
    rows, sizes = rows_of(*(torch.randn(2, 2, 5, 8).bfloat16() for _ in range(3))), Sizes(2, 5, 5, 2)
    unmasked = short_attention(rows, None, sizes, None)
    assert torch.equal(unmasked, short_attention(rows, None, sizes, torch.ones(1, 1, 1, 5, dtype=torch.bool)))


@pytest.mark.parametrize("positions", [None, RotaryPositions(8), AlibiPositions(2)])
@pytest.mark.parametrize("cross", [False, True])
def test_multi_head_attention_is_the_same_by_either_way(positions: nn.Module | None, cross: bool) -> None:
    torch.manual_seed(0)
    attention = Bfloat16Attention(16, 2, positions=None if cross else positions)
    query = torch.randn(3, 5 if cross else 7, 16, requires_grad=True)
    memory = torch.randn(3, 7, 16, requires_grad=True) if cross else query
    inputs = (query, memory) if cross else (query,)
    with autocast():
        fast = attention(query, memory, padding_mask(REAL))
        plain = attention(query, memory, padding_mask(REAL), maps=[])
    torch.testing.assert_close(fast, plain, **ROUNDED)
    upstream = torch.randn(fast.shape).bfloat16()
    wanted = (*inputs, *attention.parameters())
    for mine, other in zip(
        torch.autograd.grad(fast, wanted, upstream), torch.autograd.grad(plain, wanted, upstream), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])  # ReLU may turn on a last bit
def test_a_whole_transformer_is_as_near_to_float32_as_under_plain_autocast(
    activation: str,
) -> None:
    torch.manual_seed(0)
    model: Transformer = TransformerConfig(
        d_model=16, num_heads=2, d_ff=32, num_encoder_layers=2, num_decoder_layers=2, dropout=0.0, activation=activation
    ).build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0)  # fmt: skip
    src, tgt_in = torch.randint(4, 19, (3, 7)), torch.randint(4, 19, (3, 5))

    def gradients(enabled: bool) -> Tensor:
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = model(src, REAL, tgt_in)
        logits.float().logsumexp(dim=-1).sum().backward()
        return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])

    exact = gradients(False)
    accelerate(model, torch.device("cpu"), "bfloat16")
    fast = gradients(True)
    exchange(model, {})
    plain = gradients(True)
    assert not torch.equal(fast, plain)
    assert (fast - exact).norm() < 1.2 * (plain - exact).norm() < 0.05 * exact.norm()
