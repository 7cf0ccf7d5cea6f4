"""The operations of a training step on a CPU, in bfloat16 or in float32, in C (`kernels.c`).

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
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.profiler import record_function

from dragoman.backends import c_library
from dragoman.device import cpu_capabilities
from dragoman.progress import say

SOURCE = Path(__file__).with_name("kernels.c")
LANES = 16
"""Numbers in the longest vector (AVX-512): all widths are multiples of it."""
BLOCKS = 16
"""In which sums over rows are taken."""
SHORT, WIDEST_HEAD = 64, 64
"""The longest sentence and the widest head of attention."""
FLAGS = ("-fopenmp", f"-DBLOCKS={BLOCKS}", f"-DSHORT={SHORT}", f"-DWIDEST_HEAD={WIDEST_HEAD}")
"""Without OpenMP's library the file shares PyTorch's, and its threads."""


@dataclass(frozen=True)
class Layout:
    """The place of numbers that are multiplied in vectors and in packed matrices."""

    flags: tuple[str, ...]
    lanes: int
    """Numbers in a vector."""
    panel: int
    """Columns of a packed matrix's panel."""
    cell: int
    """Numbers of a column that are multiplied and added up at once."""

    @classmethod
    def of(cls, dtype: torch.dtype) -> "Layout":
        if dtype == torch.bfloat16:
            return cls(("-DLANES=16", "-DPANEL=64"), 16, 64, 2)
        if torch.backends.cpu.get_cpu_capability() == "AVX512":
            return cls(("-DFLOAT32", "-DLANES=16", "-DPANEL=64"), 16, 64, 1)
        return cls(("-DFLOAT32", "-DLANES=8", "-DPANEL=16", "-mno-avx512f"), 8, 16, 1)

    def in_lanes(self, length: int) -> int:
        """`length` rounded up to whole vectors."""
        return length + -length % self.lanes

    def panels(self, width: int, height: int) -> Int[Tensor, "panels cells panel"]:
        """Empty panels for so many columns and rows."""
        shape = -(-width // self.panel), -(-height // self.cell), self.panel
        return torch.empty(shape, dtype=torch.int32, device="cpu")


@cache
def available(dtype: torch.dtype = torch.bfloat16) -> bool:
    """True on Linux with GCC 10 or newer (`cc`, or `CC` of the environment) and a processor whose vectors take these
    numbers: AVX-512 for bfloat16, AVX2 for float32. A message says once what float32 lacks, or if only the compiler is
    missing.

    Where the processor multiplies whole matrices (AMX), the compiler and the system have to know that too (GCC 11,
    Linux 5.16): else False, as oneDNN's products are then faster than these.
    """
    return _library(dtype) is not None


@cache
def _library(dtype: torch.dtype = torch.bfloat16) -> ctypes.CDLL | None:
    capabilities, in_float32 = cpu_capabilities(), dtype == torch.float32
    vectors = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    if sys.platform != "linux" or not (vectors if in_float32 else capabilities.get("avx512_bf16")):
        if in_float32:
            say("training.backend=kernels: float32 needs Linux and AVX2: training by PyTorch's own operations alone")
        return None
    flags = [*FLAGS, *Layout.of(dtype).flags]
    library = c_library.load(SOURCE, flags, "training by PyTorch's own operations alone")
    tiles = not in_float32 and capabilities.get("amx_bf16")
    return None if library is not None and tiles and not library.may_multiply_matrices() else library


def _loaded(dtype: torch.dtype) -> ctypes.CDLL:
    library = _library(dtype)
    assert library is not None
    return library


def _call(name: str, *arguments: object, dtype: torch.dtype = torch.bfloat16) -> None:
    library = _loaded(dtype)
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
    dtype: torch.dtype = torch.bfloat16,
) -> tuple[Float[Tensor, "rows width"], Float[Tensor, "rows 2"]]:
    """(`F.layer_norm(x, ...)` in `dtype`, mean and 1 / standard deviation of each row)."""
    rows, width = x.shape
    out, moments = torch.empty_like(x, dtype=dtype), x.new_empty(rows, 2)
    _call("norm_forward", rows, width, x, gain, bias, float(eps), out, moments, dtype=dtype)
    return out, moments


def norm_backward(
    grad_output: Float[Tensor, "rows width"],
    x: Float[Tensor, "rows width"],
    gain: Float[Tensor, " width"],
    moments: Float[Tensor, "rows 2"],
    residual: Float[Tensor, "rows width"],
) -> tuple[Float[Tensor, "rows width"], Float[Tensor, " width"], Float[Tensor, " width"]]:
    """Gradients of `norm_forward` by x, gain and bias; `residual` is added to the first of them."""
    rows, width = x.shape
    grad_x, grad_gain, grad_bias = torch.empty_like(x), torch.empty_like(gain), torch.empty_like(gain)
    buffer = x.new_empty(2 * BLOCKS, width)
    gradients = grad_x, grad_gain, grad_bias
    given = grad_output, x, gain, moments, residual
    _call("norm_backward", rows, width, *given, *gradients, buffer, dtype=grad_output.dtype)
    return gradients


def dropout_backward(
    grad_output: Float[Tensor, "rows width"], seed: int, dropped: int, dtype: torch.dtype = torch.bfloat16
) -> Float[Tensor, "rows width"]:
    """Gradient by the product in `multiply_add`, in `dtype`, at a dropout rate of dropped / 256."""
    grad_x = torch.empty_like(grad_output, dtype=dtype)
    _call("dropout_backward", *grad_output.shape, grad_output, seed, dropped, grad_x, dtype=dtype)
    return grad_x


@dataclass(frozen=True)
class Matrix:
    """Weights, one below the other, rounded to a type and packed for products."""

    n: int
    k: int
    across: Int[Tensor, "panels_of_n cells_of_k panel"]
    """For x @ matrix.T."""
    down: Int[Tensor, "panels_of_k cells_of_n panel"]
    """For y @ matrix."""

    @classmethod
    def of(cls, *weights: Float[Tensor, "_n k"], dtype: torch.dtype = torch.bfloat16) -> "Matrix":
        n, k, layout = sum(map(len, weights)), weights[0].size(1), Layout.of(dtype)
        across, down = layout.panels(n, k), layout.panels(k, n)
        first = 0
        for weight in weights:
            assert weight.size(1) == k
            assert len(weight) % LANES == k % LANES == 0
            _call("pack", len(weight), k, first, n, weight.float().contiguous(), across, down, dtype=dtype)
            first += len(weight)
        return cls(n, k, across, down)


def multiplies(weight: Float[Tensor, "n k"], dtype: torch.dtype) -> bool:
    """True if the kernels can multiply by this weight."""
    return (
        weight.dtype == torch.float32
        and weight.device.type == "cpu"
        and weight.size(0) % LANES == weight.size(1) % LANES == 0
        and available(dtype)
    )


class _Ending(ctypes.Structure):
    _fields_ = [
        ("bias", ctypes.c_void_p), ("relu", ctypes.c_int64), ("gate", ctypes.c_void_p),
        ("residual", ctypes.c_void_p), ("seed", ctypes.c_uint64), ("dropped", ctypes.c_int64),
    ]  # fmt: skip


def _pointer(tensor: Tensor | None, dtype: torch.dtype = torch.float32) -> int | None:
    assert tensor is None or (tensor.dtype == dtype and tensor.is_contiguous())
    return None if tensor is None else tensor.data_ptr()


def multiply(
    x: Float[Tensor, "rows k"],
    panels: Int[Tensor, "panels cells_of_k panel"],
    n: int,
    bias: Float[Tensor, " n"] | None = None,
    *,
    relu: bool = False,
    gate: Float[Tensor, "rows n"] | None = None,
    out: Float[Tensor, "rows n"] | None = None,
) -> Float[Tensor, "rows n"]:
    """x times the panels of a `Matrix`, n columns: x @ matrix.T + bias with `across`, x @ matrix with `down`.

    `relu` sets negative results to zero; `gate`, those where it is not positive (the gradient of ReLU). The result is
    written into `out`, if given.
    """
    out = x.new_empty(len(x), n) if out is None else out
    _multiply(out, x, panels, _Ending(bias=_pointer(bias), relu=relu, gate=_pointer(gate, x.dtype)))
    return out


def multiply_add(
    residual: Float[Tensor, "rows n"],
    x: Float[Tensor, "rows k"],
    panels: Int[Tensor, "panels cells_of_k panel"],
    bias: Float[Tensor, " n"],
    seed: int,
    dropped: int,
) -> Float[Tensor, "rows n"]:
    """residual + dropout(x times a matrix, as in `multiply`), at a rate of dropped / 256."""
    out = torch.empty_like(residual)
    _multiply(out, x, panels, _Ending(bias=_pointer(bias), residual=_pointer(residual), seed=seed, dropped=dropped))
    return out


def _multiply(out: Tensor, x: Tensor, panels: Tensor, ending: _Ending) -> None:
    assert x.is_contiguous()
    assert out.is_contiguous()
    assert panels.size(1) == x.size(1) // Layout.of(x.dtype).cell
    _call("multiply", *x.shape, out.size(1), x, panels, ctypes.byref(ending), out, dtype=x.dtype)


def weight_gradient(
    grad_output: Float[Tensor, "rows n"], x: Float[Tensor, "rows k"]
) -> tuple[Float[Tensor, "n k"], Float[Tensor, " n"]]:
    """Gradients of `multiply` by weight and bias, (grad_output.T @ x, grad_output.sum(dim=0)), in float32."""
    rows, n, k = *grad_output.shape, x.size(1)
    assert len(x) == rows
    assert grad_output.is_contiguous()
    assert x.is_contiguous()
    layout, threads = Layout.of(x.dtype), _loaded(x.dtype).most_threads()
    grad_weight, grad_bias = _empty(n, k), _empty(n)
    height = layout.cell * layout.in_lanes(-(-rows // layout.cell))
    buffer = layout.panels(min(n, k) + SHORT * threads, height)
    _call("weight_gradient", rows, n, k, grad_output, x, grad_weight, grad_bias, buffer, dtype=x.dtype)
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
    query: Float[Tensor, "query_rows d_model"]
    key: Float[Tensor, "key_rows d_model"]
    value: Float[Tensor, "key_rows d_model"]
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
) -> tuple[Float[Tensor, "query_rows d_model"], Float[Tensor, "batch num_heads query_len columns"]]:
    """(contexts as of `scaled_dot_product_attention`, heads side by side; weights, padded to whole vectors)."""
    context, dtype = heads.query.new_empty(heads.query.shape), heads.query.dtype
    columns = Layout.of(dtype).in_lanes(heads.key_len)
    weights = context.new_empty(heads.batch, heads.num_heads, heads.query_len, columns)
    _call("attention_forward", ctypes.byref(heads.described()), context, weights, dtype=dtype)
    return context, weights


def attention_backward(
    heads: Heads,
    weights: Float[Tensor, "batch num_heads query_len columns"],
    grad_output: Float[Tensor, "query_rows d_model"],
    grad_heads: Sequence[Tensor],
) -> None:
    """Write the gradients by queries, keys and values into `grad_heads`, in the layout of those."""
    described = ctypes.byref(heads.described())
    _call("attention_backward", described, weights, grad_output, *grad_heads, dtype=grad_output.dtype)


def cross_entropy(
    logits: Float[Tensor, "rows vocab"],
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
    dtype, shares = logits.dtype, (float(at_target), float(everywhere))
    losses, buffer = _empty(rows), _empty(_loaded(dtype).most_threads(), Layout.of(dtype).in_lanes(vocab))
    _call("cross_entropy", rows, vocab, logits, targets, real, *shares, losses, buffer, dtype=dtype)
    return losses


def _empty(*shape: int) -> Tensor:
    """An empty float32 tensor on the CPU, whatever PyTorch's defaults are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")
