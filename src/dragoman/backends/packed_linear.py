"""Linear layers whose weights lie as the processor's kernels read them: the fast twin of `nn.Linear` for inference.

PyTorch multiplies float32 matrices on a CPU through MKL, which on some processors uses half of the vector units that
they have. oneDNN, which every build of PyTorch for such processors brings along, uses all of them (2.3 times as fast on
an AMD EPYC with AVX512, docs/log.md), and spares the rearranging of weights before each product.
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
    """`nn.Linear`, or an `OutputProjection`, with the same parameters and a packed copy of them.

    The copy is made now, and anew when the model changes its type or device: a weight that changes otherwise is seen
    only where gradients are on, as there the parameters themselves are used.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.weight, self.bias = cast(nn.Parameter, weight), cast(nn.Parameter, bias)
        self._pack()

    def _pack(self) -> None:
        there = self.weight.device.type == "cpu" and (self.weight.dtype != torch.bfloat16 or has_onednn_bf16())
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), None) if there else None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "PackedLinear":
        super()._apply(fn, recurse)
        self._pack()
        return self

    def forward(self, x: Tensor) -> Tensor:
        if self.packed is None or torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        return cast(Tensor, torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], ""))

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLinear":
        # A packed tensor has no storage that could be copied; parameters keep being shared with whom they were.
        return PackedLinear(copy.deepcopy(self.weight, memo), copy.deepcopy(self.bias, memo))


def pack(model: nn.Module) -> None:
    """Put a `PackedLinear` in the place of every linear layer of a model on the CPU, where the build can do it."""
    if not has_onednn():
        return
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, PackedLinear(child.weight, child.bias))
            elif isinstance(child, OutputProjection):
                setattr(module, name, PackedLinear(child.weight, None))
