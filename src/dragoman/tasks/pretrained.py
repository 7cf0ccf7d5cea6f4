"""Pretrained weights: a model that begins with the weights of another run, and everything else fresh."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import check_run_dir

Held = TypeVar("Held")
RowNames = tuple[Sequence[str], Sequence[str]]
"""The names of a matrix's rows (pieces of a vocabulary, labels): in the new model, and in the old one."""


def check_fits(model: nn.Module, run: str) -> None:
    """Raises DragomanError where `load_pretrained` will refuse the model, whatever rows the vocabularies decide on."""
    held, own = checkpoint.inference_shapes(checkpoint.select(check_run_dir(run))), checkpoint.shapes(model)
    if is_encoder_alone(run, own):
        held = encoder_of(held, own)
        own = {name: shape for name, shape in own.items() if is_of_encoder(name)}
    for name in own.keys() & held.keys():
        if own[name][1:] == held[name][1:]:
            held[name] = own[name]
    try:
        checkpoint.require_equal_shapes(own, held, run)
    except DragomanError as error:
        raise error.within("init_from: ", SAME_MODEL) from error


SAME_MODEL = "both runs need the same `model:`"


def load_pretrained(model: nn.Module, run: str, rows: Mapping[str, RowNames]) -> list[str]:
    """Copy the weights of `run`'s best checkpoint (its average, where it has one) into `model`; a line on each matrix.

    `rows`: for each part of the model whose rows have names, these. Where they differ, each row is copied from the one
    of the same name, and those that the other run did not know stay as they were initialised. Raises DragomanError,
    naming what differs, where the model is another one.
    """
    path = checkpoint.select(check_run_dir(run))
    theirs, own = checkpoint.load_inference_weights(path), checkpoint.weights(model)
    taken: dict[str, Tensor] = {}
    lines = [f"begins with the weights of {path}"]
    if is_encoder_alone(run, own):
        theirs = encoder_of(theirs, own)
        taken = {name: tensor for name, tensor in own.items() if not is_of_encoder(name)}
        lines = [f"begins with the encoder of {path}; all else is new"]
    for name, tensor in own.items():
        named = rows.get(name.partition(".")[0]) if has_named_rows(name) else None
        if named is None or name not in theirs or list(named[0]) == list(named[1]):
            if name in theirs:
                taken[name] = theirs[name]
            continue
        place = {row: number for number, row in enumerate(named[1])}
        known = [(number, place[row]) for number, row in enumerate(named[0]) if row in place]
        mapped, old = tensor.detach().clone(), theirs[name]
        if mapped.shape[1:] != old.shape[1:]:
            taken[name] = old  # told with all others that differ
            continue
        mine, others = [row for row, _ in known], [row for _, row in known]
        mapped[mine] = old[others].to(mapped)
        taken[name] = mapped
        lines.append(f"{name}: {len(known):,} of {len(named[0]):,} rows are those of the other run, the others are new")
    try:
        checkpoint.load_weights(model, {**taken, **{name: theirs[name] for name in theirs.keys() - own.keys()}}, run)
    except DragomanError as error:
        raise error.within("init_from: ", SAME_MODEL) from error
    return lines


ENCODER = {"embedding.": "src_embedding.", "encoder.layers.": "encoder_layers.", "encoder.norm.": "encoder_norm."}
"""The parts of an encoder by itself, which a classifier calls alike, and their names in a translator."""


def is_encoder_alone(run: str, own: Mapping[str, Any]) -> bool:
    """True where `run` is a masked language model and the model with the names `own` is something else."""
    task = read_yaml(check_run_dir(run) / "config.yaml").get("task")
    return (
        task == "masked_language_modelling" and not {"embedding.tokens.embedding.weight", "output.bias"} <= own.keys()
    )


def encoder_of(theirs: Mapping[str, Held], own: Mapping[str, Any]) -> dict[str, Held]:
    """The encoder of a masked language model, under the names that it has in a model with the names `own`."""
    in_translator = any(name.startswith("encoder_layers.") for name in own)
    encoder = {}
    for name, value in theirs.items():
        part = next((part for part in ENCODER if name.startswith(part)), None)
        if part is not None:
            encoder[f"{ENCODER[part] if in_translator else part}{name.removeprefix(part)}"] = value
    return encoder


def is_of_encoder(name: str) -> bool:
    """True for a parameter that an encoder by itself has too, under one of its names."""
    return name.startswith((*ENCODER, *ENCODER.values()))


def has_named_rows(name: str) -> bool:
    """False for parameters of an embedding that are not its table: learned positions, a norm. True for all others."""
    part, _, rest = name.partition(".")
    return not part.endswith("embedding") or rest in ("embedding.weight", "tokens.embedding.weight")
