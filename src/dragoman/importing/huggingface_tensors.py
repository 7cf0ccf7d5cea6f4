"""The weights of a folder of Hugging Face under the names that its library gives them, held to what it expects.

The library itself says what a config.json asks for: its model, made without memory, has every name, shape and tie. A
file is held to that by its header. Only then is anything read, so that no size in a damaged file costs memory.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import Error
from dragoman.export.huggingface import quietly, transformers_library
from dragoman.importing.base import refusal
from dragoman.importing.safetensors_files import DTYPES, Stored, header, loaded
from dragoman.runs.atomic_io import read_json

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
"""Files of weights that are never opened."""
PREFIX = "model."
"""Of the inner model's names, which files of the inner model alone do not have."""
BIAS = "final_logits_bias"
SHARED = "model.shared.weight"
"""The tensor that the embeddings are tied to; where they are not, transformers computes nothing with it."""
EMBEDDINGS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")


@dataclass
class Expected:
    """The tensors of the library's model of a config.json."""

    shapes: dict[str, tuple[int, ...]]
    tied: dict[str, str]
    """For each tied tensor, the name of the tensor that it is tied to."""
    computed: set[str]
    """Names that a file may lack."""
    ignored: list[str] = field(default_factory=list)
    """Patterns of names that stand for nothing."""


def read_tensors(folder: Path, described: Any) -> dict[str, Tensor]:
    """All weights in float32, by the library's names, tied ones under each of theirs.

    Raises DragomanError where they are pickled, missing or damaged, or with each tensor that is not as expected.
    """
    stored = [entry for path in _files(folder) for entry in header(path)]
    for side in ("encoder", "decoder"):  # a wrong number would be built, module by module
        pattern = re.compile(rf"(?:model\.)?{side}\.layers\.(\d+)\.")
        numbers = {match[1] for entry in stored if (match := pattern.match(entry.name))}
        if (layers := getattr(described, f"{side}_layers")) != len(numbers):
            raise Error.MISMATCH(
                f"{side}_layers is {layers}, and the weights have {len(numbers)}", file=folder / "config.json"
            )
    expected = _expected(described)
    named, reasons = _named(stored, expected)
    reasons += _missing(named, expected)
    if reasons:
        raise refusal(folder, reasons)
    tensors, reasons = loaded(named, infinite={BIAS})
    reasons += _tie(tensors, expected)
    if reasons:
        raise refusal(folder, reasons)
    tensors.pop(SHARED, None)
    return tensors


def _files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    if index.is_file():
        parts = read_json(index, dict).get("weight_map", {})
        names = sorted(set(parts.values())) if isinstance(parts, dict) else []
        if not names or any(not isinstance(name, str) or Path(name).name != name for name in names):
            raise Error.CANNOT_IMPORT("does not say which files hold the weights", file=index)
        return [folder / name for name in names]
    if pickles := [path.name for pattern in PICKLES for path in sorted(folder.glob(pattern))]:
        raise Error.UNSAFE(
            "a pickle, which may run any code and is not opened; where you trust its maker, convert it: python "
            '-c "from transformers import AutoModelForSeq2SeqLM as M, AutoTokenizer as T; '
            f"M.from_pretrained('{folder}').save_pretrained('NEW'); "
            f"T.from_pretrained('{folder}').save_pretrained('NEW')\", and import NEW",
            file=folder / pickles[0],
        )
    raise Error.MISSING_FILE("has no model.safetensors", file=folder)


def _expected(described: Any) -> Expected:
    """The tensors of the library's model. Raises DragomanError for sizes that no model can have."""
    transformers = transformers_library()
    try:
        with quietly(), torch.device("meta"):
            theirs = transformers.AutoModelForSeq2SeqLM.from_config(described, trust_remote_code=False)
    except Exception as error:  # of any kind: a division by no heads, a negative size
        raise Error.CANNOT_IMPORT(f"config.json: {' '.join(str(error).split())[:300]}") from error
    absent = theirs._keys_to_ignore_on_load_missing or ()
    shapes = {name: tuple(tensor.shape) for name, tensor in theirs.state_dict().items()}
    return Expected(
        shapes,
        dict(theirs.all_tied_weights_keys),
        {name for name in shapes if any(re.search(pattern, name) for pattern in absent)},
        list(theirs._keys_to_ignore_on_load_unexpected or ()),
    )


def _named(stored: list[Stored], expected: Expected) -> tuple[dict[str, Stored], list[str]]:
    """The file's tensors by the library's names, and what is wrong with them."""
    by_name: dict[str, Stored] = {}
    reasons = []
    for entry in sorted(stored, key=lambda entry: entry.name):
        name = entry.name if entry.name in expected.shapes else PREFIX + entry.name
        if name not in expected.shapes:
            if not any(re.search(pattern, entry.name) for pattern in expected.ignored):
                reasons.append(f"{entry.name}: nothing here has its part")
        elif name in by_name:
            reasons.append(f"{entry.name}: it is there twice")
        elif entry.shape != expected.shapes[name]:
            reasons.append(f"{entry.name}: it is {entry.shape}, and by config.json {expected.shapes[name]}")
        elif entry.dtype not in DTYPES:
            reasons.append(f"{entry.name}: its numbers are {entry.dtype}, and {', '.join(DTYPES)} are read")
        else:
            by_name[name] = entry
            continue
        by_name.setdefault(name, entry)
    return by_name, reasons


def _missing(named: Mapping[str, Stored], expected: Expected) -> list[str]:
    there = {expected.tied.get(name, name) for name in named}
    return [
        f"the weights have no {name}"
        for name in expected.shapes
        if name not in named and expected.tied.get(name, name) not in there and name not in expected.computed
    ]


def _tie(tensors: dict[str, Tensor], expected: Expected) -> list[str]:
    """Give tied tensors that a file lacks those that they are tied to; of several that differ each stays its own."""
    reasons = []
    for source in sorted(set(expected.tied.values())):
        group = [source, *(name for name, other in expected.tied.items() if other == source)]
        there = [name for name in group if name in tensors]
        if source not in tensors and any(not torch.equal(tensors[there[0]], tensors[name]) for name in there[1:]):
            lacking = [name for name in EMBEDDINGS if name in group and name not in tensors]
            reasons += [f"{' and '.join(there)} differ, and {name} may be any of them" for name in lacking]
        for name in group:
            tensors.setdefault(name, tensors[source if source in tensors else there[0]])
    return reasons
