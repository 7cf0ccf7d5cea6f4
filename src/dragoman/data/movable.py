"""Moving a batch of any kind to a device."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor


class Movable:
    """A dataclass whose tensors, and tuples of tensors, go to a device together."""

    def to(self, device: torch.device | str) -> Self:
        """This batch with its tensors on `device`. The program goes on before they are there if they are pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Self:
        """This batch in memory that the system leaves where it is, from which a GPU fetches by itself."""
        return self._each(Tensor.pin_memory)

    def _each(self, function: Callable[[Tensor], Tensor]) -> Self:
        changed: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                changed[name] = function(value)
            elif isinstance(value, tuple):
                changed[name] = tuple(function(tensor) for tensor in value)
        return replace(self, **changed)  # type: ignore[type-var]
