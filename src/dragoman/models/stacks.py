"""A stack of layers: their first weights, which layers share weights, and which layers a forward pass uses."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.errors import Error

Layer = TypeVar("Layer", bound=nn.Module)


class Block(nn.Module):
    """A layer that a pass of a training may leave out, or compute twice."""

    layer_drop = 0.0  #: Probability that a pass leaves it out.
    is_checkpointed = False  #: Its inner values are computed again in the backward pass, not kept.


def stack(layers: Iterable[Layer], tied: Sequence[int] = ()) -> Sequence[Layer]:
    """An `nn.ModuleList` that knows the type of its layers.

    `tied`: the layer, from 1, that stands in the place of each. Raises DragomanError for numbers that do not fit.
    """
    own = list(layers)
    if tied and (len(tied) != len(own) or not all(1 <= number <= len(own) for number in tied)):
        raise Error.WRONG_SETTING(
            f"model.tied_layers, model.tied_encoder_layers: each of the {len(own)} layers needs the number of the one "
            f"whose weights it has, from 1 to {len(own)}; there is {list(tied)}"
        )
    return cast(Sequence[Layer], nn.ModuleList([own[number - 1] for number in tied] or own))


def taken(layers: Sequence[Layer], kept: int | None = None) -> Iterator[tuple[int, Callable[..., Any]]]:
    """The layers of one pass with their numbers, from 0: all, but for those that training drops (Fan et al. 2020).

    `kept`: a number that is never dropped, and whose inner values stay: its attention map is looked at.
    """
    for number, layer in enumerate(layers):
        drop, is_checkpointed = cast(Block, layer).layer_drop, cast(Block, layer).is_checkpointed
        if number == kept or not layer.training:
            yield number, layer
        elif not drop or float(torch.rand(())) >= drop:
            yield number, partial(checkpoint, layer, use_reentrant=False) if is_checkpointed else layer


def refuse_dropped(model: nn.Module) -> None:
    """Raise DragomanError where a pass may leave layers out: PyTorch's DDP needs the gradient of each parameter."""
    if any(isinstance(module, Block) and module.layer_drop for module in model.modules()):
        raise Error.WRONG_SETTING("model.layer_drop: PyTorch's DDP needs every gradient", "set training.reduce=exact")


def checkpoint_layers(model: nn.Module) -> None:
    """Keep each layer's input alone for the backward pass (Chen et al. 2016): less memory, one forward pass more.

    Raises DragomanError for a model without such layers.
    """
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    if not blocks:
        raise Error.WRONG_SETTING("training.gradient_checkpointing: a recurrent model has no layers to compute twice")
    for block in blocks:
        block.is_checkpointed = True


# -- first weights -----------------------------------------------------------------------------------------------------


def init_linear(model: nn.Module, how: str = "xavier_uniform") -> None:
    """First weights of every projection by INITIALIZATIONS, zero for its bias."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            INITIALIZATIONS[how](module.weight, name)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@torch.no_grad()
def shrink_residuals(layers: Iterable[nn.Module]) -> None:
    """Multiply what every sublayer of a stack adds to the residual path by N^-0.5, for its N sublayers.

    So the path's variance does not grow with depth (Radford et al. 2019, GPT-2, section 2.3), and what the stack begins
    with are its tokens more than the noise of layers that have learnt nothing.
    """
    named = [one for layer in layers for one in layer.named_parameters()]
    added = [weight for name, weight in named if name.endswith(("output_proj.weight", "contract.weight"))]
    for weight in {id(weight): weight for weight in added}.values():  # one that is shared is there once
        weight.mul_(len(added) ** -0.5)


def _fairseq(weight: Tensor, name: str) -> None:
    inner = name.endswith(("query_proj", "key_proj", "value_proj"))
    nn.init.xavier_uniform_(weight, gain=2**-0.5 if inner else 1.0)


def _depth_scaled(weight: Tensor, name: str) -> None:
    number = re.search(r"layers\.(\d+)\.", name)
    nn.init.xavier_uniform_(weight, gain=(int(number[1]) + 1) ** -0.5 if number else 1.0)


INITIALIZATIONS: dict[str, Callable[[Tensor, str], Any]] = {
    "xavier_uniform": lambda weight, name: nn.init.xavier_uniform_(weight),
    "xavier_normal": lambda weight, name: nn.init.xavier_normal_(weight),
    "normal": lambda weight, name: nn.init.normal_(weight, std=0.02),
    "fairseq": _fairseq,
    "depth_scaled": _depth_scaled,
}
"""Given a projection's weight and its name. Xavier: Glorot and Bengio 2010; `normal`: GPT-2's and BERT's; `fairseq`:
Xavier with queries, keys and values smaller by 2^-0.5; `depth_scaled`: Xavier times l^-0.5 in layer l (Zhang et al.
2019, DS-Init; Marian)."""
