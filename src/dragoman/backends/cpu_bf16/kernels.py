"""The operations of a training step in bfloat16 on a CPU, in C (`kernels.c`).

PyTorch reads and writes memory once for each operation, and a sublayer has some tens of them; a matrix product takes
little longer. oneDNN's products, as fast as those here, pack weights at each call and round gradients to bfloat16.
Each function here is the fast implementation of a few lines of PyTorch, named in its docstring. The machine's own C
compiler compiles the file on first use, in two seconds, into the user's cache. Without a compiler `available` is False,
and PyTorch's operations are used.
"""

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from jaxtyping import BFloat16, Bool, Float, Int
from torch import Tensor
from torch.profiler import record_function

from dragoman.backends import c_library
from dragoman.device import cpu_capabilities

SOURCE = Path(__file__).with_name("kernels.c")
LANES = 16
"""Numbers in a vector: all widths are multiples of it."""
BLOCKS = 16
"""In which sums over rows are taken."""
SHORT, WIDEST_HEAD = 64, 64
"""The longest sentence and the widest head of attention."""
PANEL = 64
"""Columns of a packed matrix's panel."""
SIZES = {"LANES": LANES, "BLOCKS": BLOCKS, "PANEL": PANEL, "SHORT": SHORT, "WIDEST_HEAD": WIDEST_HEAD}
FLAGS = ("-fopenmp", *(f"-D{name}={size}" for name, size in SIZES.items()))
"""Without OpenMP's library the file shares PyTorch's, and its threads."""


@cache
def available() -> bool:
    """True on Linux with a processor whose vectors (AVX-512) take bfloat16, and GCC 10 or newer (`cc`, or `CC` of the
    environment). A message says once if only the compiler is missing.

    Where the processor multiplies whole matrices (AMX), the compiler and the system have to know that too (GCC 11,
    Linux 5.16): else False, as oneDNN's products are then faster than these.
    """
    return _library() is not None


@cache
def _library() -> ctypes.CDLL | None:
    capabilities = cpu_capabilities()
    if sys.platform != "linux" or not capabilities.get("avx512_bf16"):
        return None
    library = c_library.load(SOURCE, FLAGS, "training by PyTorch's own operations alone")
    can_multiply = library is None or not capabilities.get("amx_bf16") or library.may_multiply_matrices()
    return library if can_multiply else None


def _call(name: str, *arguments: object) -> None:
    library = _library()
    assert library is not None
    function = getattr(library, name)
    if function.argtypes is None:  # every call has the types of the first
        function.argtypes = [_type_of(argument) for argument in arguments]
    values = [argument.data_ptr() if isinstance(argument, Tensor) else argument for argument in arguments]
    if torch.autograd._profiler_enabled():
        with record_function(f"kernels::{name}"):
            function(*values)
    else:
        function(*values)


def _type_of(argument: object) -> type:
    if isinstance(argument, float):
        return ctypes.c_float
    return ctypes.c_int64 if isinstance(argument, int) else ctypes.c_void_p  # address of a tensor or a structure


def norm_forward(
    x: Float[Tensor, "rows width"],
    gain: Float[Tensor, " width"],
    bias: Float[Tensor, " width"],
    eps: float,
) -> tuple[BFloat16[Tensor, "rows width"], Float[Tensor, "rows 2"]]:
    """(`F.layer_norm(x, ...)`, mean and 1 / standard deviation of each row)."""
    rows, width = x.shape
    out, moments = torch.empty_like(x, dtype=torch.bfloat16), x.new_empty(rows, 2)
    _call("norm_forward", rows, width, x, gain, bias, float(eps), out, moments)
    return out, moments


def norm_backward(
    grad_output: BFloat16[Tensor, "rows width"],
    x: Float[Tensor, "rows width"],
    gain: Float[Tensor, " width"],
    moments: Float[Tensor, "rows 2"],
    residual: Float[Tensor, "rows width"],
) -> tuple[Float[Tensor, "rows width"], Float[Tensor, " width"], Float[Tensor, " width"]]:
    """Gradients of `norm_forward` by x, gain and bias; `residual` is added to the first of them."""
    rows, width = x.shape
    grad_x, grad_gain, grad_bias = torch.empty_like(x), torch.empty_like(gain), torch.empty_like(gain)
    buffer = x.new_empty(2 * BLOCKS, width)
    _call("norm_backward", rows, width, grad_output, x, gain, moments, residual, grad_x, grad_gain, grad_bias, buffer)
    return grad_x, grad_gain, grad_bias


def dropout_backward(
    grad_output: Float[Tensor, "rows width"], seed: int, dropped: int
) -> BFloat16[Tensor, "rows width"]:
    """Gradient by the product in `multiply_add`, at a dropout rate of dropped / 256."""
    grad_x = torch.empty_like(grad_output, dtype=torch.bfloat16)
    _call("dropout_backward", *grad_output.shape, grad_output, seed, dropped, grad_x)
    return grad_x


@dataclass(frozen=True)
class Matrix:
    """Weights, one below the other, rounded to bfloat16 and packed for products."""

    n: int
    k: int
    across: Int[Tensor, "panels_of_n half_k panel"]
    """For x @ matrix.T."""
    down: Int[Tensor, "panels_of_k half_n panel"]
    """For y @ matrix."""

    @classmethod
    def of(cls, *weights: Float[Tensor, "_n k"]) -> "Matrix":
        n, k = sum(map(len, weights)), weights[0].size(1)
        across, down = _panels(n, k), _panels(k, n)
        first = 0
        for weight in weights:
            assert weight.size(1) == k
            assert len(weight) % LANES == k % LANES == 0
            _call("pack", len(weight), k, first, n, weight.float().contiguous(), across, down)
            first += len(weight)
        return cls(n, k, across, down)


def multiplies(weight: Float[Tensor, "n k"]) -> bool:
    """True if the kernels can multiply by this weight."""
    return (
        weight.dtype == torch.float32
        and weight.device.type == "cpu"
        and weight.size(0) % LANES == weight.size(1) % LANES == 0
        and available()
    )


def _panels(width: int, height: int) -> Int[Tensor, "panels half_height panel"]:
    return torch.empty(-(-width // PANEL), height // 2, PANEL, dtype=torch.int32, device="cpu")


class _Ending(ctypes.Structure):
    _fields_ = [
        ("bias", ctypes.c_void_p), ("relu", ctypes.c_int64), ("gate", ctypes.c_void_p),
        ("residual", ctypes.c_void_p), ("seed", ctypes.c_uint64), ("dropped", ctypes.c_int64),
    ]  # fmt: skip


def _pointer(tensor: Tensor | None, dtype: torch.dtype = torch.float32) -> int | None:
    assert tensor is None or (tensor.dtype == dtype and tensor.is_contiguous())
    return None if tensor is None else tensor.data_ptr()


def multiply(
    x: BFloat16[Tensor, "rows k"],
    panels: Int[Tensor, "panels half_k panel"],
    n: int,
    bias: Float[Tensor, " n"] | None = None,
    *,
    relu: bool = False,
    gate: BFloat16[Tensor, "rows n"] | None = None,
    out: BFloat16[Tensor, "rows n"] | None = None,
) -> BFloat16[Tensor, "rows n"]:
    """x times the panels of a `Matrix`, n columns: x @ matrix.T + bias with `across`, x @ matrix with `down`.

    `relu` sets negative results to zero; `gate`, those where it is not positive (the gradient of ReLU). The result is
    written into `out`, if given.
    """
    out = x.new_empty(len(x), n) if out is None else out
    _multiply(out, x, panels, _Ending(bias=_pointer(bias), relu=relu, gate=_pointer(gate, torch.bfloat16)))
    return out


def multiply_add(
    residual: Float[Tensor, "rows n"],
    x: BFloat16[Tensor, "rows k"],
    panels: Int[Tensor, "panels half_k panel"],
    bias: Float[Tensor, " n"],
    seed: int,
    dropped: int,
) -> Float[Tensor, "rows n"]:
    """residual + dropout(x times a matrix, as in `multiply`), at a rate of dropped / 256."""
    out = torch.empty_like(residual)
    _multiply(out, x, panels, _Ending(bias=_pointer(bias), residual=_pointer(residual), seed=seed, dropped=dropped))
    return out


def _multiply(out: Tensor, x: Tensor, panels: Tensor, ending: _Ending) -> None:
    assert x.dtype == torch.bfloat16
    assert x.is_contiguous()
    assert out.is_contiguous()
    assert panels.size(1) == x.size(1) // 2
    _call("multiply", *x.shape, out.size(1), x, panels, ctypes.byref(ending), out)


def weight_gradient(
    grad_output: BFloat16[Tensor, "rows n"], x: BFloat16[Tensor, "rows k"]
) -> tuple[Float[Tensor, "n k"], Float[Tensor, " n"]]:
    """Gradients of `multiply` by weight and bias, (grad_output.T @ x, grad_output.sum(dim=0)), in float32."""
    rows, n, k = *grad_output.shape, x.size(1)
    assert len(x) == rows
    assert grad_output.is_contiguous()
    assert x.is_contiguous()
    library = _library()
    assert library is not None
    grad_weight, grad_bias = _empty(n, k), _empty(n)
    buffer = _panels(PANEL * (-(-min(n, k) // PANEL) + library.most_threads()), 2 * in_lanes(-(-rows // 2)))
    _call("weight_gradient", rows, n, k, grad_output, x, grad_weight, grad_bias, buffer)
    return grad_weight, grad_bias


class _Attention(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "heads", "width", "query_len", "key_len")),
        *((name, ctypes.c_int64) for name in ("query_stride", "key_stride", "context_stride")),
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "allowed")),
        *((name, ctypes.c_int64) for name in ("allowed_batch", "allowed_query")),
        ("phase", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values of an attention in the layout of projections: in rows, heads side by side."""

    batch: int
    num_heads: int
    query_len: int
    key_len: int
    query: BFloat16[Tensor, "query_rows d_model"]
    key: BFloat16[Tensor, "key_rows d_model"]
    value: BFloat16[Tensor, "key_rows d_model"]
    mask: Bool[Tensor, "#batch 1 #query_len key_len"] | None
    phase: Float[Tensor, "len half_d_head 2"] | None
    """Cosine and sine of rotary positions."""

    def described(self) -> _Attention:
        d_model, mask = self.query.size(1), self.mask
        assert mask is None or (
            mask.size(0) in (1, self.batch) and mask.size(2) in (1, self.query_len) and mask.size(3) == self.key_len
        )
        assert self.phase is None or len(self.phase) >= max(self.query_len, self.key_len)
        return _Attention(
            self.batch, self.num_heads, d_model // self.num_heads, self.query_len, self.key_len,
            self.query.stride(0), self.key.stride(0), d_model,
            self.query.data_ptr(), self.key.data_ptr(), self.value.data_ptr(),
            None if mask is None else mask.data_ptr(),  # the last dimension is contiguous
            0 if mask is None or mask.size(0) == 1 else mask.stride(0),
            0 if mask is None or mask.size(2) == 1 else mask.stride(2),
            None if self.phase is None else self.phase.data_ptr(),
        )  # fmt: skip


def attention_forward(
    heads: Heads,
) -> tuple[BFloat16[Tensor, "query_rows d_model"], BFloat16[Tensor, "batch num_heads query_len columns"]]:
    """(contexts as of `scaled_dot_product_attention`, heads side by side; weights, padded to whole vectors)."""
    context = heads.query.new_empty(heads.query.shape)
    weights = context.new_empty(heads.batch, heads.num_heads, heads.query_len, in_lanes(heads.key_len))
    _call("attention_forward", ctypes.byref(heads.described()), context, weights)
    return context, weights


def attention_backward(
    heads: Heads,
    weights: BFloat16[Tensor, "batch num_heads query_len columns"],
    grad_output: BFloat16[Tensor, "query_rows d_model"],
    grad_heads: Sequence[Tensor],
) -> None:
    """Write the gradients by queries, keys and values into `grad_heads`, in the layout of those."""
    _call("attention_backward", ctypes.byref(heads.described()), weights, grad_output, *grad_heads)


def cross_entropy(
    logits: BFloat16[Tensor, "rows vocab"],
    targets: Int[Tensor, " rows"],
    real: Bool[Tensor, " rows"],
    at_target: float,
    everywhere: float,
) -> Float[Tensor, " rows"]:
    """The loss of each row; its gradient replaces the logits. The fast implementation of `training.loss.token_loss`.

    Raises IndexError if a target is not in the vocabulary.
    """
    rows, vocab = logits.shape
    lowest, highest = targets.aminmax()
    if lowest < 0 or highest >= vocab:
        raise IndexError(f"a target of {int(lowest if lowest < 0 else highest)} in a vocabulary of {vocab}")
    targets, real = targets.long().contiguous(), real.contiguous()
    library = _library()
    assert library is not None
    losses, buffer = _empty(rows), _empty(library.most_threads(), in_lanes(vocab))
    _call("cross_entropy", rows, vocab, logits, targets, real, float(at_target), float(everywhere), losses, buffer)
    return losses


def _empty(*shape: int) -> Tensor:
    """An empty float32 tensor on the CPU, whatever PyTorch's defaults are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def in_lanes(length: int) -> int:
    """`length` rounded up to whole vectors."""
    return length + -length % LANES
