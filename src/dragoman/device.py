"""Which device to compute on, and in which precision."""

from typing import Any, Literal

import torch

from dragoman.errors import DragomanError

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
PrecisionName = Literal["auto", "float32", "bfloat16"]


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; `auto` takes a GPU where there is one. Raises DragomanError where it is not there."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    if name.split(":")[0] not in available:
        raise DragomanError(f"device {name!r}: known are auto, cpu, cuda, mps")
    if not available[name.split(":")[0]]:
        raise DragomanError(f"device {name!r} is not available on this machine; use --device auto or cpu")
    return torch.device(name)


def pick_precision(name: PrecisionName, device: torch.device) -> Literal["float32", "bfloat16"]:
    """`auto`: bfloat16 matrix products where the hardware has them, float32 otherwise."""
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if device.type == "cpu" and _cpu_has_bf16() else "float32"


def _cpu_has_bf16() -> bool:
    capabilities = cpu_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def cpu_capabilities() -> dict[str, Any]:
    """What PyTorch knows of the processor (`cpu_name`, `avx512_bf16` ...); nothing where it is too old to say."""
    return dict(torch.cpu.get_capabilities()) if hasattr(torch.cpu, "get_capabilities") else {}


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Matrix products in `precision`; weights, sums and norms stay in float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
