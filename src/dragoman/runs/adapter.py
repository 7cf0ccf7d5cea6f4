"""Adapters in checkpoints: low-rank corrections of the weights of another run, the base, which is named by a digest.

The state of such a checkpoint has `"adapter": {"base": SHA-256 of the base's weights, "scale": 2.0}`, and its groups
hold two factors for each corrected matrix: `LAYER.lora_A.weight` and `LAYER.lora_B.weight`, as PEFT calls them.
"""

from collections.abc import Mapping

from torch import Tensor

from dragoman.errors import Error

KEY = "adapter"
A, B = ".lora_A.weight", ".lora_B.weight"


def merged(weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    """W + scale * B A, computed in float32 and rounded once: in bfloat16 small corrections would be lost."""
    return (weight.float() + scale * (b.float() @ a.float())).to(weight.dtype)


def layers(factors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], source: str) -> list[str]:
    """The layers that factors correct. Raises DragomanError where they do not fit weights of these shapes."""
    names = list(dict.fromkeys(name.removesuffix(A).removesuffix(B) for name in factors))
    for name in names:
        weight = shapes.get(f"{name}.weight", ())
        a, b = (tuple(getattr(factors.get(name + end), "shape", ())) for end in (A, B))
        if not (len(a) == len(b) == 2 and a[0] == b[1] > 0 and weight == (b[0], a[1])):
            there = f"{name} is {list(weight)} there" if weight else f"there is no {name} there"
            raise Error.MISMATCH(f"does not fit its base: {there}, and A is {list(a)}, B {list(b)}", file=source)
    return names


def merge(weights: Mapping[str, Tensor], factors: Mapping[str, Tensor], scale: float, source: str) -> dict[str, Tensor]:
    """The weights of a base with the corrections of an adapter in them. Raises DragomanError as `layers` does."""
    corrected = dict(weights)
    for name in layers(factors, {key: tuple(tensor.shape) for key, tensor in weights.items()}, source):
        corrected[f"{name}.weight"] = merged(weights[f"{name}.weight"], factors[name + A], factors[name + B], scale)
    return corrected
