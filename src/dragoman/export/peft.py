"""An adapter in PEFT's format, for whoever has its base as a model of Hugging Face (`huggingface.py` writes one).

A folder holds `adapter_config.json` and `adapter_model.safetensors`: the two factors of each layer under the layer's
name in their model. Where the residual path has another order there, so have the sides of the factors that lie on it.
Every other export writes base and adapter as one model.
"""

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import Tensor

from dragoman.errors import Error, not_installed
from dragoman.export import huggingface, huggingface_weights
from dragoman.export.huggingface_weights import order_of, reads_residual
from dragoman.export.parameter_names import named
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import Transformer
from dragoman.nn.lora import LoRALinear, lora_layers, sharing, short_names
from dragoman.runs import atomic_io, checkpoint

CONFIG, WEIGHTS, BASE = "adapter_config.json", "adapter_model.safetensors", "dragoman.json"
PREFIX = "base_model.model."
"""Of every name in PEFT's files."""

nearest = huggingface.nearest


class Target(NamedTuple):
    """A linear layer by its names here and there, and whether its columns lie on the residual path, else its rows."""

    ours: str
    theirs: str
    reads: bool


def targets(model: Transformer) -> Iterator[Target]:
    """The linear layers that an adapter may correct."""
    ours = {id(module): name for name, module in model.named_modules()}
    for module, _, theirs, *_ in named(model):
        if hasattr(module, "in_features"):
            yield Target(ours[id(module)], theirs, reads_residual(theirs))


def order(model: Transformer) -> Tensor:
    """The dimensions of the residual path in the order of theirs."""
    return order_of(model.src_embedding.tokens.embedding.embedding_dim, huggingface_weights.is_reordered(model))


def problems(translator: SearchTranslator) -> list[str]:
    """Why there is no such adapter, one line each."""
    if not lora_layers(translator.model):
        return ["it is no adapter: train one with `adapter.r=8`"]
    return huggingface.problems(translator)


def write(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> None:
    """Write the adapter of a model that has it beside its base. Raises DragomanError for a `quantize`."""
    if quantize is not None:
        raise Error.UNSUPPORTED(f"`quantize` {quantize}: an adapter is written in float32")
    model = cast(Transformer, translator.model)
    layers, dimensions = lora_layers(model), order(model)
    tensors: dict[str, Tensor] = {}
    for target in targets(model):
        if target.ours in layers:
            a, b = layers[target.ours].lora_A.weight, layers[target.ours].lora_B.weight
            name = PREFIX + target.theirs
            tensors[f"{name}.lora_A.weight"] = a[:, dimensions] if target.reads else a
            tensors[f"{name}.lora_B.weight"] = b if target.reads else b[dimensions]
    atomic_io.write_tensors(folder / WEIGHTS, tensors)
    theirs = {target.theirs: target.ours in layers for target in targets(model)}
    atomic_io.write_json(folder / CONFIG, _config(next(iter(layers.values())), theirs))


def write_base(path: Path, folder: Path) -> None:
    """Write the digest of the base of the adapter in checkpoint `path`, for `dragoman import`."""
    atomic_io.write_json(folder / BASE, {"base": (checkpoint.adapter_of(path) or {}).get("base")})


def _config(layer: LoRALinear, adapted: dict[str, bool]) -> dict[str, Any]:
    """PEFT's settings. All layers have one rank and scale, as they come from one recipe."""
    r = layer.lora_A.out_features
    return {
        "peft_type": "LORA",
        "task_type": "SEQ_2_SEQ_LM",
        "base_model_name_or_path": None,
        "r": r,
        "lora_alpha": layer.scale * r,
        "lora_dropout": layer.dropout.rate,
        "target_modules": short_names([name for name, there in adapted.items() if there], list(adapted)),
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }


def load(folder: Path, translator: SearchTranslator) -> huggingface.HuggingFaceEngine:
    """The written adapter, put by PEFT onto the base as Hugging Face runs it."""
    try:
        import peft
    except ImportError as error:
        raise not_installed("proving an adapter takes peft, which is not installed", "peft") from error
    base = copy.copy(translator)
    base.model = cast(Any, sharing(translator.model))
    for layer in lora_layers(base.model).values():
        layer.scale = 0.0
    with tempfile.TemporaryDirectory() as place:
        huggingface.write(base, Path(place))
        engine = huggingface.load(Path(place), translator)
    engine.model = peft.PeftModel.from_pretrained(engine.model, str(folder)).merge_and_unload()
    return engine
