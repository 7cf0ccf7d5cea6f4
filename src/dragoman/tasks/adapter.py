"""An adapter in the place of a whole new model: settings, and the model that it makes of another run's."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from torch import nn

from dragoman.config import Field, settings
from dragoman.errors import DragomanError, Error
from dragoman.models.base import count_parameters
from dragoman.nn import lora
from dragoman.runs import adapter, checkpoint
from dragoman.tasks.pretrained import SAME_MODEL, RowNames


@settings
class LoraConfig:
    """Low-rank adaptation (Hu et al. 2021): the weights of `init_from` stay, and each projection gets a trained
    correction of rank `r`. Checkpoints hold the corrections alone. The names are PEFT's."""

    r: int = Field(default=8, ge=1)  #: Rank of the corrections.
    lora_alpha: float = Field(default=16.0, gt=0)  #: The correction is scaled by lora_alpha / r.
    lora_dropout: float = Field(default=0.0, ge=0, lt=1)  #: Dropout of what the corrections read.
    target_modules: Literal["all-linear"] | list[str] = "all-linear"
    """Linear layers that are corrected, by the ends of their names, such as `query_proj` or
    `decoder_layers.0.feed_forward.expand` (`dragoman inspect parameters` lists them); `all-linear`: those of attention
    and feed-forward networks."""
    use_rslora: bool = False  #: Scale by lora_alpha / sqrt(r) (Kalajdzievski 2023), for high ranks.

    @property
    def scale(self) -> float:
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)


def add_adapter(model: nn.Module, config: LoraConfig) -> int:
    """Put the corrections into a model, in place, and freeze the rest; the number of layers that have one.

    Raises DragomanError for names of layers that there are not.
    """
    try:
        layers = lora.targets(model, config.target_modules)
    except ValueError as error:
        raise Error.UNKNOWN_NAME(f"adapter.target_modules: {error}") from error
    lora.add_lora(model, layers, config.r, config.scale, config.lora_dropout)
    lora.freeze_base(model)
    return len(layers)


def adapt(model: nn.Module, config: LoraConfig, base: Path, rows: Mapping[str, RowNames]) -> str:
    """Give a model the weights of a base, and corrections that change nothing yet; says so in a line.

    `rows`: as of `load_pretrained`. Raises DragomanError unless the base is the same model, of the same vocabulary.
    """
    for part, (own, theirs) in rows.items():
        if list(own) != list(theirs):
            hint = "reuse its tokenizer (tokenizer={type: reuse, run: ...}), or train without `adapter`"
            raise Error.MISMATCH(f"adapter: the rows of {part} are others than in its base", hint, file=base)
    try:
        checkpoint.load_weights(model, checkpoint.load_inference_weights(base), str(base))
    except DragomanError as error:
        raise error.within("adapter: ", SAME_MODEL) from error
    whole = count_parameters(model)
    layers = add_adapter(model, config)
    return (
        f"an adapter of {base}: rank {config.r} on {layers} linear layers, {count_parameters(model):,} parameters are "
        f"trained, {whole:,} stay"
    )


def facts(config: LoraConfig, base: Path) -> dict[str, Any]:
    """The state of a checkpoint says so whose weights it corrects."""
    return {adapter.KEY: {"base": checkpoint.inference_digest(base), "scale": config.scale}}


def refuse(recipe: Any) -> None:
    """Raises DragomanError for settings that an adapter does not go with."""
    if not recipe.init_from:
        raise Error.WRONG_SETTING("adapter: of which run?", "name it with `init_from`")
    if recipe.training.freeze:
        raise Error.WRONG_SETTING("adapter and training.freeze: with an adapter all of the model's own weights stay")
