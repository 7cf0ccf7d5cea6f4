"""Linear layers with weights packed for the processor's kernels: the fast implementation of `nn.Linear` for inference.

PyTorch multiplies float32 matrices on a CPU through MKL, which on some processors uses half of their vector units.
oneDNN, part of every build of PyTorch for such processors, uses all of them (2.3 times as fast on an AMD EPYC with
AVX512, benchmarks/log/2026-11.md, "translation twice as fast"), and packing once saves packing before each product.
"""

import copy
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.device import has_onednn, has_onednn_bf16
from dragoman.nn.embeddings import OutputProjection


class PackedLinear(nn.Linear):
    """`nn.Linear`, or an `OutputProjection`, with the same parameters and, from its first product on, a packed copy.

    The copy is made again when the model changes its type or device. Any other change of a weight is seen only with
    gradients on, where the parameters themselves are used.
    """

    packed: Tensor | None = None

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.weight, self.bias = cast(nn.Parameter, weight), cast(nn.Parameter, bias)

    def _can_be_packed(self) -> bool:
        return self.weight.device.type == "cpu" and (self.weight.dtype != torch.bfloat16 or has_onednn_bf16())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "PackedLinear":
        super()._apply(fn, recurse)
        self.packed = None
        return self

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() or not self._can_be_packed():
            return F.linear(x, self.weight, self.bias)
        packed = self.packed
        if packed is None:
            packed = self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), None)
        return cast(Tensor, torch.ops.mkldnn._linear_pointwise(x, packed, self.bias, "none", [], ""))

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLinear":
        # A packed tensor has no storage to copy; shared parameters stay shared.
        return PackedLinear(copy.deepcopy(self.weight, memo), copy.deepcopy(self.bias, memo))


def pack(model: nn.Module) -> None:
    """Replace every linear layer of a model on the CPU by a `PackedLinear`, if the build has oneDNN."""
    if not has_onednn():
        return
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear or isinstance(child, OutputProjection):
                setattr(module, name, PackedLinear(child.weight, child.bias))
