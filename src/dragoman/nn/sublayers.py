"""A sublayer in its residual connection, for training in bfloat16 on a CPU: the fast twins of `PreNorm.forward` around
attention over short sentences and around a feed-forward network.

Each is one function with a way back of its own: matrix products, and between them the loops of `nn/kernels.py`. What
comes out of a product goes into the next one as it is, in rows (`nn/projection.py`). Modules inside of a sublayer are
not called, so their hooks are not either.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dragoman.nn import kernels, projection
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.norms import PreNorm
from dragoman.nn.projection import from_rows, in_bfloat16, linear, padded, to_rows, to_weight, trains_in_bfloat16


def attend(
    x: Float[Tensor, "batch query_len d_model"],
    residual: nn.Module,
    attention: MultiHeadAttention,
    memory: Float[Tensor, "batch key_len d_model"] | None,
    mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    maps: list[Tensor] | None = None,
) -> Float[Tensor, "batch query_len d_model"]:
    """`attention` in its `residual` connection, to `memory` or, where that is None, to what it is itself given."""
    around = _connection(x, residual)
    found: Tensor
    if around is not None and maps is None and _is_short(x, attention, memory):
        projections = attention.query_proj, attention.key_proj, attention.value_proj, attention.output_proj
        sublayer = _AttentionSettings(
            around.eps,
            around.dropped,
            attention.query_proj.out_features // attention.d_head,
            mask.contiguous() if mask is not None else None,
            attention.positions.turns(0, x.size(1)),
        )
        weights, biases = [linear.weight for linear in projections], [linear.bias for linear in projections]
        found = _AttentionSublayer.apply(sublayer, x, memory, around.gain, around.bias, *weights, *biases)
    else:
        found = residual(x, lambda y: attention(y, y if memory is None else memory, mask, maps))
    return found


def feed_forward(
    x: Float[Tensor, "batch len d_model"], residual: nn.Module, network: nn.Module
) -> Float[Tensor, "batch len d_model"]:
    """`network` in its `residual` connection."""
    around = _connection(x, residual)
    found: Tensor
    if (
        around is not None
        and isinstance(network, FeedForward)
        and network.is_plain
        and network.expand.out_features % kernels.LANES == 0
    ):
        parameters = around.gain, around.bias, *network.expand.parameters(), *network.contract.parameters()
        found = _FeedForwardSublayer.apply(around.eps, around.dropped, x, *parameters)
    else:
        found = residual(x, network)
    return found


@dataclass(frozen=True)
class _Connection:
    """x + dropout(sublayer(norm(x))): its norm, and in how many cases of 256 it drops what the sublayer says."""

    gain: Tensor
    bias: Tensor
    eps: float
    dropped: int


def _connection(x: Tensor, residual: nn.Module) -> _Connection | None:
    """What a fast twin needs to know of a connection; None where there is no twin, or no use for it."""
    if not (
        trains_in_bfloat16(x)
        and projection.ROWS > 1
        and x.dtype == torch.float32
        and x.size(-1) % kernels.LANES == 0
        and x.size(-1) <= kernels.WIDEST
        and isinstance(residual, PreNorm)
        and residual.dropout.rate < 0.99
        and type(norm := residual.norm) is nn.LayerNorm
        and norm.bias is not None
        and norm.weight.dtype == norm.bias.dtype == torch.float32
        and kernels.available()
    ):
        return None
    dropped = round(256 * residual.dropout.rate) if residual.dropout.training else 0
    return _Connection(norm.weight, norm.bias, norm.eps, dropped)


def _is_short(x: Tensor, attention: MultiHeadAttention, memory: Tensor | None) -> bool:
    """Whether there is a fast twin of this attention."""
    return (
        attention.is_plain
        and (memory is None or len(memory) == len(x))
        and max(x.size(1), 0 if memory is None else memory.size(1)) <= kernels.SHORT
        and attention.d_head % kernels.LANES == 0
        and attention.d_head <= kernels.WIDEST_HEAD
        and not attention.positions.has_bias
    )


def _seed(dropped: int) -> int:
    """For the dropout of a sublayer, from torch's global generator."""
    return int(torch.empty((), dtype=torch.int64).random_(-(2**63), None)) % 2**64 if dropped else 0


@dataclass(frozen=True)
class _AttentionSettings:
    """What the sublayer is told beside its numbers."""

    eps: float
    dropped: int
    num_heads: int
    mask: Tensor | None
    turns: Tensor | None

    def heads(self, shape: torch.Size, key_len: int, q: Tensor, k: Tensor, v: Tensor) -> kernels.Heads:
        turns = None if self.turns is None else torch.view_as_real(self.turns)
        return kernels.Heads(shape[0], self.num_heads, shape[1], key_len, q, k, v, self.mask, turns)


class _AttentionSublayer(torch.autograd.Function):
    """x + dropout(attention(norm(x))), to `memory` or to norm(x) itself."""

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(
        ctx: Any, sublayer: _AttentionSettings, x: Tensor, memory: Tensor | None, *parameters: Tensor
    ) -> Tensor:
        (gain, bias), weights, biases = parameters[:2], parameters[2:6], parameters[6:]  # queries, keys, values, output
        x = x.contiguous()
        lines = x.flatten(0, 1)
        rows, moments = kernels.norm_forward(lines, gain, bias, sublayer.eps, padded(len(lines)))
        output = in_bfloat16(weights[3:])
        if memory is None:
            key_rows, matrices, key_len = None, [in_bfloat16(weights[:3])], x.size(1)
            q, k, v = linear(rows, matrices[0], in_bfloat16(biases[:3])).chunk(3, dim=1)
        else:
            key_rows, matrices = to_rows(memory), [in_bfloat16(weights[:1]), in_bfloat16(weights[1:3])]
            key_len = memory.size(1)
            q = linear(rows, matrices[0], in_bfloat16(biases[:1]))
            k, v = linear(key_rows, matrices[1], in_bfloat16(biases[1:3])).chunk(2, dim=1)
        context, shares = kernels.attention_forward(sublayer.heads(x.shape, key_len, q, k, v))
        found = linear(context, output, in_bfloat16(biases[3:]))
        ctx.save_for_backward(lines, gain, moments, rows, key_rows, q, k, v, shares, context, output, *matrices)
        ctx.sublayer, ctx.seed, ctx.x_shape, ctx.key_len = sublayer, _seed(sublayer.dropped), x.shape, key_len
        return kernels.dropout_add(x, found, ctx.seed, sublayer.dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        lines, gain, moments, rows, key_rows, q, k, v, shares, context, output, *matrices = ctx.saved_tensors
        above, d_model = above.contiguous().flatten(0, 1), lines.size(1)
        to_found, to_output_bias = kernels.dropout_backward(above, ctx.seed, ctx.sublayer.dropped, len(rows))
        to_output, to_context = to_weight(to_found, context), to_found @ output
        # Gradients by what projections have made lie as that does: of queries, keys and values side by side, or apart.
        sides = [_zero_below(rows, len(lines), len(matrices[0]))]
        if key_rows is not None:
            sides.append(_zero_below(key_rows, ctx.x_shape[0] * ctx.key_len, len(matrices[1])))
        heads = ctx.sublayer.heads(ctx.x_shape, ctx.key_len, q, k, v)
        to_heads = [part for side in sides for part in side.chunk(side.size(1) // d_model, dim=1)]
        kernels.attention_backward(heads, shares, to_context, to_heads)
        to_weights = [to_weight(side, of) for side, of in zip(sides, (rows, key_rows), strict=False)]
        to_biases = [kernels.column_sums(side) for side in sides]
        to_x, to_gain, to_bias = kernels.norm_backward(sides[0] @ matrices[0], lines, gain, moments, above)
        to_memory = None
        if key_rows is not None:
            to_memory = from_rows(sides[1] @ matrices[1], (ctx.x_shape[0], ctx.key_len)).float()
        parts = [part for whole in to_weights for part in whole.chunk(len(whole) // d_model)]
        bias_parts = [part for whole in to_biases for part in whole.chunk(len(whole) // d_model)]
        return None, to_x.view(ctx.x_shape), to_memory, to_gain, to_bias, *parts, to_output, *bias_parts, to_output_bias


def _zero_below(rows: Tensor, real: int, width: int) -> Tensor:
    """As many rows as `rows`, of another width, to be filled; those that are not real are zero."""
    made = rows.new_empty(len(rows), width)
    made[real:] = 0.0
    return made


class _FeedForwardSublayer(torch.autograd.Function):
    """x + dropout(contract(relu(expand(norm(x)))))."""

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(ctx: Any, eps: float, dropped: int, x: Tensor, *parameters: Tensor) -> Tensor:
        gain, bias, *matrices = parameters
        expand, expand_bias, contract, contract_bias = (parameter.bfloat16() for parameter in matrices)
        x = x.contiguous()
        lines = x.flatten(0, 1)
        rows, moments = kernels.norm_forward(lines, gain, bias, eps, padded(len(lines)))
        hidden = linear(rows, expand, expand_bias, "relu")  # (rows, d_ff)
        found = linear(hidden, contract, contract_bias)
        ctx.save_for_backward(lines, gain, moments, rows, hidden, expand, contract)
        ctx.dropped, ctx.seed, ctx.x_shape = dropped, _seed(dropped), x.shape
        return kernels.dropout_add(x, found, ctx.seed, dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        lines, gain, moments, rows, hidden, expand, contract = ctx.saved_tensors
        above = above.contiguous().flatten(0, 1)
        to_found, to_contract_bias = kernels.dropout_backward(above, ctx.seed, ctx.dropped, len(rows))
        to_hidden = to_found @ contract
        to_expand_bias = kernels.relu_backward(to_hidden, hidden)
        to_x, to_gain, to_bias = kernels.norm_backward(to_hidden @ expand, lines, gain, moments, above)
        return (
            None, None, to_x.view(ctx.x_shape), to_gain, to_bias,
            to_weight(to_hidden, rows), to_expand_bias, to_weight(to_found, hidden), to_contract_bias,
        )  # fmt: skip
