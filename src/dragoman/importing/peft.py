"""An adapter in PEFT's format as a run: the inverse of `export.peft`, for a base that is a run already.

Only what a LoRA adapter of linear layers computes is taken; whatever else a config asks for is refused by its name.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from dragoman.alignment.learnt_memory import copy_links
from dragoman.errors import DragomanError, Error, writing
from dragoman.export.huggingface import problems
from dragoman.export.peft import BASE, CONFIG, PREFIX, WEIGHTS, Target, order, targets
from dragoman.importing.base import refusal
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import Transformer
from dragoman.nn.lora import short_names
from dragoman.runs import adapter, checkpoint
from dragoman.runs.atomic_io import read_json
from dragoman.runs.directory import TOKENIZER, check_run_dir
from dragoman.runs.new_run import write_run
from dragoman.tasks import recipes
from dragoman.tasks.adapter import LoraConfig, facts

SETTINGS = ("r", "lora_alpha", "lora_dropout", "use_rslora")
SAYS_NOTHING = (*SETTINGS, "auto_mapping", "base_model_name_or_path", "inference_mode", "revision", "target_modules",
                "task_type", "peft_type", "peft_version", "loftq_config", "eva_config", "layers_to_transform",
                "layers_pattern", "exclude_modules", "runtime_config", "megatron_core", "megatron_config",
                "init_lora_weights", "bias", "qalora_group_size")  # fmt: skip
"""Settings that change nothing of what the tensors say, or are looked at by themselves."""
PLAIN_STARTS = (True, False, "gaussian", "orthogonal", "eva")
"""Values of `init_lora_weights` with which the base stays as it is; others, such as pissa, change its weights too."""
TENSOR = re.compile(r"(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")
"""A factor; some programs leave the adapter's name in it (`lora_A.default.weight`)."""


def import_adapter(folder: Path, run: Path, base: Path) -> Path:
    """Write an adapter of the run `base` as the new run directory `run`; return it.

    Raises DragomanError with all the reasons why it cannot be taken over exactly, or does not fit its base.
    """
    settings = read_json(folder / CONFIG, dict)
    if not (folder / WEIGHTS).is_file():
        hint = "save it as safetensors: a pickle runs whatever its maker wrote into it"
        raise Error.MISSING_FILE(f"has no {WEIGHTS}", hint, file=folder)
    chosen = checkpoint.select(check_run_dir(base))
    translator = SearchTranslator.load(base, device="cpu")
    if reasons := [*_reasons(settings), *problems(translator)]:
        raise refusal(folder, reasons)
    if (folder / BASE).is_file() and read_json(folder / BASE, dict).get("base") != checkpoint.inference_digest(chosen):
        raise Error.MISMATCH(f"an adapter of another model than {base}", file=folder)
    model = cast(Transformer, translator.model)
    known = {target.theirs: target for target in targets(model)}
    weights = _factors(checkpoint.load_group(folder, WEIGHTS.removesuffix(".safetensors")), known, model, folder)
    layers = adapter.layers(weights, checkpoint.shapes(model), str(folder / WEIGHTS))
    lora = _lora_settings(settings, weights, layers, [target.ours for target in known.values()], folder)
    recipe = replace(cast(Any, recipes.of_run(base)), run_dir=str(run), init_from=str(base), adapter=lora)
    with writing(run):
        write_run(run, recipe, weights, "imported", str(folder), state=facts(lora, chosen))
        shutil.copytree(base / TOKENIZER, run / TOKENIZER)
        copy_links(base, run)
    return run


def _reasons(settings: dict[str, Any]) -> list[str]:
    """Why a config is of something else than a LoRA adapter of linear layers."""
    if settings.get("peft_type") != "LORA":
        return [f"peft_type: {settings.get('peft_type')} is no LORA"]
    unknown = {key: value for key, value in settings.items() if key not in SAYS_NOTHING and value not in UNSET_VALUES}
    if settings.get("bias", "none") != "none":
        unknown["bias"] = settings["bias"]
    if settings.get("init_lora_weights", True) not in PLAIN_STARTS:
        unknown["init_lora_weights"] = settings["init_lora_weights"]
    return [f"{key}: {str(value)[:60]} is not known here" for key, value in unknown.items()]


UNSET_VALUES: tuple[Any, ...] = (None, False, {}, [], "", 0)


def _factors(
    tensors: dict[str, Tensor], known: dict[str, Target], model: Transformer, folder: Path
) -> dict[str, Tensor]:
    """The tensors by our names. Raises DragomanError for tensors that are no factor of a layer of the model."""
    factors, reasons, back = {}, [], order(model).argsort()
    for name, tensor in tensors.items():
        matched = TENSOR.fullmatch(name)
        layer = matched[1] if matched else ""
        while layer.startswith(PREFIX):  # an adapter of a model that was wrapped already has it twice
            layer = layer.removeprefix(PREFIX)
        target = known.get(layer)
        if matched is None or target is None:
            reasons.append(f"{name}: no factor of a linear layer of the model")
            continue
        dimension = 1 if matched[2] == "A" else 0
        moved = target.reads == (matched[2] == "A") and tensor.dim() == 2 and tensor.size(dimension) == len(back)
        factors[f"{target.ours}.lora_{matched[2]}.weight"] = (
            tensor.index_select(dimension, back) if moved else tensor
        ).float()
    if reasons or not factors:
        raise refusal(folder, reasons or ["it holds no tensors"])
    return factors


def _lora_settings(
    settings: dict[str, Any], weights: dict[str, Tensor], layers: list[str], known: list[str], folder: Path
) -> LoraConfig:
    """The settings of the adapter. Raises DragomanError where they contradict the tensors."""
    named = settings.get("target_modules")
    theirs = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    if lacking := [name for name in theirs if not any(end in name for end in PARTS)]:
        raise refusal(folder, [f"target_modules: {name} names no layer of the model" for name in lacking])
    try:
        given = {key: settings[key] for key in SETTINGS if key in settings}
        lora = LoraConfig(**given, target_modules=short_names(layers, known))
    except (TypeError, ValueError, DragomanError) as error:
        raise Error.CANNOT_IMPORT(f"{' '.join(str(error).split())[:200]}", file=folder / CONFIG) from error
    ranks = {weights[name + adapter.A].size(0) for name in layers}
    if ranks != {lora.r}:
        raise refusal(folder, [f"r: {lora.r}, and the factors have {', '.join(map(str, sorted(ranks)))}"])
    return lora


PARTS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")
"""The linear layers of their encoder-decoders."""
