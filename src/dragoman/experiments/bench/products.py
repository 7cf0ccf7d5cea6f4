"""Matrix products: which a computation consists of, how many operations, and how fast each is by itself."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from dragoman.backends.compile import uncompiled
from dragoman.backends.cpu_training.projection import exact_rows
from dragoman.experiments.bench.parts import synchronize

PRODUCTS: dict[Any, Callable[..., Tensor]] = {
    torch.ops.aten.mm: torch.mm,
    torch.ops.aten.addmm: torch.addmm,
    torch.ops.aten.bmm: torch.bmm,
    torch.ops.aten.baddbmm: torch.baddbmm,
}
"""The products that are timed alone: every product of forward and backward is computed by one of these."""


def _attention_flops(query: tuple[int, ...], key: tuple[int, ...], *_: Any, **__: Any) -> int:
    """Q K^T, and what it makes of V: two products of (query_len x d_head x key_len) for each head."""
    return 4 * query[0] * query[1] * query[2] * query[3] * key[2]


def _attention_backward_flops(_: Any, query: tuple[int, ...], key: tuple[int, ...], *__: Any, **___: Any) -> int:
    """Two for each of forward. That a kernel computes Q K^T once more is its own affair, not the model's."""
    return 2 * _attention_flops(query, key)


ATTENTION_FLOPS = {
    getattr(torch.ops.aten, f"_scaled_dot_product_{name}{end}"): count
    for name in ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
    for end, count in (("", _attention_flops), ("_backward", _attention_backward_flops))
}
"""Fused attentions, counted as the textbook's lines: `flop_counter` leaves that of the CPU out."""

UNCOUNTED = ("rnn_layer", "cudnn_rnn", "lstm", "gru")
"""Parts of the names of kernels with products inside that a profiler does not count."""

PEAK_SIZES = {"cpu": (512, 1024, 2048), "mps": (1024, 2048, 4096), "cuda": (2048, 4096, 8192)}
TRIALS_PER_SIZE = 5
TRIAL_S = 1e-3
"""Seconds of a trial, at least: more than the clock's own grain, and short enough to fall between two neighbours."""


@dataclass(frozen=True)
class Product:
    """One matrix product: its kind, and shape, strides and dtype of each operand. The same in every one alike."""

    kind: Any
    operands: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]

    def seconds(self, device: torch.device) -> float:
        """Seconds that it takes by itself, warm, at its best."""
        operands = [_operand(shape, strides, dtype, device) for shape, strides, dtype in self.operands]
        return best_seconds(lambda: PRODUCTS[self.kind](*operands), device)


def _operand(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    places = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return torch.randn(max(1, places), device=device).to(dtype).as_strided(shape, strides)


class Counted(TorchDispatchMode):
    """A context manager: what of the computation inside is matrix products, forward and backward.

    Operations are counted from the shapes by `torch.utils.flop_counter`, a multiplication and an addition as two. Rows
    that are there only to make shapes alike (`nn.projection`) are left out. Compiled layers compute as they are written
    meanwhile: the products are the same, and can be seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: Counter[Product] = Counter()
        self.uncounted: set[str] = set()
        """Kernels that hold products which are in neither figure."""
        self._flops = FlopCounterMode(display=False, custom_mapping=ATTENTION_FLOPS)

    @property
    def flops(self) -> int:
        return int(self._flops.get_total_flops())

    def __enter__(self) -> "Counted":
        with contextlib.ExitStack() as stack:
            for context in (uncompiled(), exact_rows(), self._flops):
                stack.enter_context(context)
            self._stack = stack.pop_all()
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._stack.__exit__(*raised)

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kind = func.overloadpacket
        if kind in PRODUCTS:
            tensors = [argument for argument in args if isinstance(argument, Tensor)]
            described = tuple((tuple(tensor.shape), tensor.stride(), tensor.dtype) for tensor in tensors)
            if all(tensor.numel() for tensor in tensors):
                self.products[Product(kind, described)] += 1
        elif any(name in str(kind) for name in UNCOUNTED):
            self.uncounted.add(str(kind))
        return func(*args, **(kwargs or {}))


def best_seconds(compute: Callable[[], object], device: torch.device) -> float:
    """The shortest of several trials of a computation, the first of which do not count."""
    for _ in range(2):
        start = time.perf_counter()
        compute()
        synchronize(device)
        took = time.perf_counter() - start
    repeats = max(1, int(TRIAL_S / max(took, 1e-9)))
    best = took
    for _ in range(TRIALS_PER_SIZE):
        start = time.perf_counter()
        for _ in range(repeats):
            compute()
        synchronize(device)
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


@torch.no_grad()
def peak_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Operations a second of the best of several square matrix products, each in two layouts."""
    best = 0.0
    for size in PEAK_SIZES[device.type]:
        left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        for other in (right, right.T):
            seconds = best_seconds(lambda left=left, other=other: left @ other, device)  # type: ignore[misc]
            best = max(best, 2 * size**3 / seconds)
    return best
