"""Sublayers with their residual connection, for training on a CPU: the fast implementations of
`PreNorm.forward` around attention over short sentences and around a feed-forward network.

Each is one autograd function made of the kernels of `kernels.py`. All positions of a batch are rows of one matrix, from
the norm to the residual sum. Modules inside a sublayer are not called, and neither are their hooks.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dragoman.backends.cpu_training import kernels, projection
from dragoman.backends.cpu_training.kernels import Matrix, multiply, multiply_add, weight_gradient
from dragoman.backends.cpu_training.projection import has_relu_alone, has_textbook_heads, trains_in
from dragoman.backends.cpu_training.short_attention import rotary_phase
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.residual import PreNorm


def attend(
    x: Float[Tensor, "batch query_len d_model"],
    residual: nn.Module,
    attention: MultiHeadAttention,
    memory: Float[Tensor, "batch key_len d_model"] | None,
    mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None,
    maps: list[Tensor] | None = None,
    dtype: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "batch query_len d_model"]:
    """`attention` in its `residual` connection, with products in `dtype`. Cross-attention over `memory`; self-attention
    if None."""
    around = _connection(x, residual, dtype)
    output: Tensor
    if around is not None and maps is None and _is_short(x, attention, memory):
        projections = attention.query_proj, attention.key_proj, attention.value_proj, attention.output_proj
        sublayer = _AttentionSettings(
            around,
            attention.query_proj.out_features // attention.d_head,
            mask.contiguous() if mask is not None else None,
            rotary_phase(attention.positions, 0, x.size(1)),
        )
        weights, biases = [linear.weight for linear in projections], [linear.bias for linear in projections]
        output = _AttentionSublayer.apply(sublayer, x, memory, around.gain, around.bias, *weights, *biases)
    else:
        output = residual(x, lambda y: attention(y, y if memory is None else memory, mask, maps))
    return output


def feed_forward(
    x: Float[Tensor, "batch len d_model"],
    residual: nn.Module,
    network: nn.Module,
    dtype: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "batch len d_model"]:
    """`network` in its `residual` connection, with products in `dtype`."""
    around = _connection(x, residual, dtype)
    output: Tensor
    if (
        around is not None
        and isinstance(network, FeedForward)
        and has_relu_alone(network)
        and network.expand.out_features % kernels.LANES == 0
    ):
        parameters = around.gain, around.bias, *network.expand.parameters(), *network.contract.parameters()
        output = _FeedForwardSublayer.apply(around, x, *parameters)
    else:
        output = residual(x, network)
    return output


@dataclass(frozen=True)
class _Connection:
    """x + dropout(sublayer(norm(x))): the norm, the dropout rate in units of 1/256, and the type of products."""

    gain: Tensor
    bias: Tensor
    eps: float
    dropped: int
    dtype: torch.dtype


def _connection(x: Tensor, residual: nn.Module, dtype: torch.dtype) -> _Connection | None:
    """Settings of a connection for the fast implementation; None if there is none."""
    if not (
        trains_in(dtype, x)
        and projection.KERNEL_ROWS > 1
        and x.dtype == torch.float32
        and x.size(-1) % kernels.LANES == 0
        and isinstance(residual, PreNorm)
        and residual.dropout.rate < 0.99
        and type(norm := residual.norm) is nn.LayerNorm
        and norm.bias is not None
        and norm.weight.dtype == norm.bias.dtype == torch.float32
        and kernels.available(dtype)
    ):
        return None
    dropped = round(256 * residual.dropout.rate) if residual.dropout.training else 0
    return _Connection(norm.weight, norm.bias, norm.eps, dropped, dtype)


def _is_short(x: Tensor, attention: MultiHeadAttention, memory: Tensor | None) -> bool:
    """True if there is a fast implementation of this attention."""
    return (
        has_textbook_heads(attention)
        and (memory is None or len(memory) == len(x))
        and max(x.size(1), 0 if memory is None else memory.size(1)) <= kernels.SHORT
        and attention.d_head % kernels.LANES == 0
        and attention.d_head <= kernels.WIDEST_HEAD
        and not attention.positions.has_bias
    )


def _seed(dropped: int) -> int:
    """Seed for the dropout of a sublayer, from torch's global generator."""
    return int(torch.empty((), dtype=torch.int64).random_(-(2**63), None)) % 2**64 if dropped else 0


@dataclass(frozen=True)
class _AttentionSettings:
    """Settings of the sublayer beside its tensors."""

    around: _Connection
    num_heads: int
    mask: Tensor | None
    phase: Tensor | None

    def heads(self, shape: torch.Size, key_len: int, q: Tensor, k: Tensor, v: Tensor) -> kernels.Heads:
        phase = None if self.phase is None else torch.view_as_real(self.phase)
        return kernels.Heads(shape[0], self.num_heads, shape[1], key_len, q, k, v, self.mask, phase)


class _AttentionSublayer(torch.autograd.Function):
    """x + dropout(attention(norm(x))), over `memory` or over norm(x) itself."""

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(
        ctx: Any, sublayer: _AttentionSettings, x: Tensor, memory: Tensor | None, *parameters: Tensor
    ) -> Tensor:
        (gain, bias), weights, biases = parameters[:2], parameters[2:6], parameters[6:]  # queries, keys, values, output
        around, dtype = sublayer.around, sublayer.around.dtype
        x = x.contiguous()
        x_rows, width = x.flatten(0, 1), len(weights[0])
        rows, moments = kernels.norm_forward(x_rows, gain, bias, around.eps, dtype)
        output = Matrix.of(weights[3], dtype=dtype)
        if memory is None:
            matrices, key_rows, key_len = [Matrix.of(*weights[:3], dtype=dtype)], None, x.size(1)
            q, k, v = multiply(rows, matrices[0].across, 3 * width, torch.cat(biases[:3])).chunk(3, dim=1)
        else:
            matrices = [Matrix.of(weights[0], dtype=dtype), Matrix.of(*weights[1:3], dtype=dtype)]
            key_rows, key_len = memory.flatten(0, 1).to(dtype).contiguous(), memory.size(1)
            q = multiply(rows, matrices[0].across, width, biases[0])
            k, v = multiply(key_rows, matrices[1].across, 2 * width, torch.cat(biases[1:3])).chunk(2, dim=1)
        context, attn_weights = kernels.attention_forward(sublayer.heads(x.shape, key_len, q, k, v))
        downs = [matrix.down for matrix in (output, *matrices)]
        ctx.save_for_backward(x_rows, gain, moments, rows, key_rows, q, k, v, attn_weights, context, *downs)
        ctx.sublayer, ctx.seed, ctx.x_shape, ctx.key_len = sublayer, _seed(around.dropped), x.shape, key_len
        return multiply_add(x_rows, context, output.across, biases[3], ctx.seed, around.dropped).view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x_rows, gain, moments, rows, key_rows, q, k, v, attn_weights, context, output, *downs = ctx.saved_tensors
        grad_output, d_model, width = grad_output.contiguous().flatten(0, 1), x_rows.size(1), q.size(1)
        grad_sublayer = kernels.dropout_backward(grad_output, ctx.seed, ctx.sublayer.around.dropped, rows.dtype)
        grad_output_weight, grad_output_bias = weight_gradient(grad_sublayer, context)
        grad_context = multiply(grad_sublayer, output, width)
        # Gradients by projections have their layout: those by queries, keys and values are side by side, or apart.
        of = [rows] if key_rows is None else [rows, key_rows]
        parts = (3,) if key_rows is None else (1, 2)
        sides = [one.new_empty(len(one), count * width) for one, count in zip(of, parts, strict=True)]
        grad_heads = [part for side in sides for part in side.split(width, dim=1)]
        kernels.attention_backward(
            ctx.sublayer.heads(ctx.x_shape, ctx.key_len, q, k, v), attn_weights, grad_context, grad_heads
        )
        grad_parameters = [weight_gradient(side, one) for side, one in zip(sides, of, strict=True)]
        grad_weights = [part for grad_weight, _ in grad_parameters for part in grad_weight.split(width)]
        grad_biases = [part for _, grad_bias in grad_parameters for part in grad_bias.split(width)]
        grad_x, grad_gain, grad_bias = kernels.norm_backward(
            multiply(sides[0], downs[0], d_model), x_rows, gain, moments, grad_output
        )
        grad_memory = None
        if key_rows is not None:
            grad_memory = multiply(sides[1], downs[1], key_rows.size(1)).float().view(ctx.x_shape[0], ctx.key_len, -1)
        return (
            None, grad_x.view(ctx.x_shape), grad_memory, grad_gain, grad_bias,
            *grad_weights, grad_output_weight, *grad_biases, grad_output_bias,
        )  # fmt: skip


class _FeedForwardSublayer(torch.autograd.Function):
    """x + dropout(contract(relu(expand(norm(x)))))."""

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(ctx: Any, around: _Connection, x: Tensor, *parameters: Tensor) -> Tensor:
        gain, bias, expand_weight, expand_bias, contract_weight, contract_bias = parameters
        expand, contract = Matrix.of(expand_weight, dtype=around.dtype), Matrix.of(contract_weight, dtype=around.dtype)
        x = x.contiguous()
        x_rows = x.flatten(0, 1)
        rows, moments = kernels.norm_forward(x_rows, gain, bias, around.eps, around.dtype)
        hidden = multiply(rows, expand.across, expand.n, expand_bias, relu=True)  # (rows, d_ff)
        ctx.save_for_backward(x_rows, gain, moments, rows, hidden, expand.down, contract.down)
        ctx.dropped, ctx.seed, ctx.x_shape = around.dropped, _seed(around.dropped), x.shape
        return multiply_add(x_rows, hidden, contract.across, contract_bias, ctx.seed, ctx.dropped).view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x_rows, gain, moments, rows, hidden, expand, contract = ctx.saved_tensors
        grad_output, (d_model, d_ff) = grad_output.contiguous().flatten(0, 1), (x_rows.size(1), hidden.size(1))
        grad_sublayer = kernels.dropout_backward(grad_output, ctx.seed, ctx.dropped, rows.dtype)
        grad_hidden = multiply(grad_sublayer, contract, d_ff, gate=hidden)  # includes the gradient of ReLU
        grad_x, grad_gain, grad_bias = kernels.norm_backward(
            multiply(grad_hidden, expand, d_model), x_rows, gain, moments, grad_output
        )
        return (
            None, grad_x.view(ctx.x_shape), grad_gain, grad_bias,
            *weight_gradient(grad_hidden, rows), *weight_gradient(grad_sublayer, hidden),
        )  # fmt: skip
