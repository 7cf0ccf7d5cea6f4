"""The result of an import: a model with everything that a run needs, or the reasons why the import fails."""

import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.errors import DragomanError, Error
from dragoman.export.origin import Origin
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.positions import LAYOUTS, SINUSOID_BASE, sinusoidal_table
from dragoman.text.tokenizers.pair import TokenizerPair

NEVER_BIAS = -100.0
"""The bias of an entry that their vocabulary lacks: it is never said, and has no part in the normaliser in float32.

Not minus infinity: smoothed labels have a share of every entry."""


@dataclass(frozen=True)
class Imported:
    """A model with the settings and tokenizers of a run."""

    settings: TransformerConfig
    model: Transformer
    tokenizers: TokenizerPair
    languages: tuple[str, str]
    """Codes, from and to, as the tokenizers know them."""
    normalize: str = "nfc"
    decoding: dict[str, Any] = field(default_factory=dict)
    """Settings of the search that came with it."""
    max_tokens: int | None = None
    """Longest source that is translated at once; None: as usual."""


class Weights:
    """The tensors of a model by name, and which of them nobody has asked for yet."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.tensors, self.used = tensors, set[str]()

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def get(self, *names: str) -> Tensor | None:
        """The first of these names that exists: a tied tensor may be stored under any of its names."""
        self.used.update(names)
        return next((self.tensors[name] for name in names if name in self.tensors), None)

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of a name. Raises DragomanError where it is missing."""
        if (tensor := self.get(name)) is None:
            raise Error.CANNOT_IMPORT(f"the weights have no {name}")
        return tensor

    def of_shape(self, name: str, *sizes: int | None) -> Tensor:
        """A tensor of these sizes; None: any. Raises DragomanError for another shape."""
        tensor = self[name]
        if tensor.dim() != len(sizes) or any(
            size not in (None, there) for size, there in zip(sizes, tensor.shape, strict=True)
        ):
            shape = ", ".join("any" if size is None else str(size) for size in sizes)
            raise Error.MISMATCH(f"{name} is {tuple(tensor.shape)}, for ({shape}) here")
        return tensor

    def left(self) -> list[str]:
        """Reasons to refuse: each tensor that nobody has asked for."""
        return [f"{name}: nothing here has its part" for name in sorted(self.tensors.keys() - self.used)]


def refusal(folder: Path, reasons: Sequence[str]) -> DragomanError:
    """The error that says why a model cannot be represented exactly."""
    shown = [*reasons[:8], *([f"and {len(reasons) - 8} more"] if len(reasons) > 8 else [])]
    return Error.CANNOT_IMPORT(f"cannot be imported exactly: {'; '.join(shown)}", converter_for(folder), file=folder)


def converter_for(folder: Path, file: Path | None = None) -> str | None:
    """The command of CTranslate2 that converts a model of Marian, fairseq or OpenNMT-py, whose folder can be imported;
    None where the folder has no such model."""
    for pattern, command in CONVERTERS.items():
        if files := [file] if file and file.match(pattern) else sorted(folder.glob(pattern)):
            if command.startswith("ct2-fairseq") and not any(folder.glob("dict.*.txt")):
                continue
            line = command.format(model=shlex.quote(str(files[0])), folder=shlex.quote(str(folder)))
            return f"try CTranslate2's converter: {line} --output_dir NEW, then `dragoman import NEW RUN`"
    return None


CONVERTERS = {
    "*.npz": "ct2-marian-converter --model_path {model} --vocab_paths SRC.yml TGT.yml",
    "*best*.pt": "ct2-fairseq-converter --model_path {model} --data_dir {folder} --unsafe_deserialization",
    "*.pt": "ct2-opennmt-py-converter --model_path {model} --unsafe_deserialization",
}
"""Files of a model, and the command that converts it; a .pt is a pickle, so unsafe, of whoever made it."""


def scheme(table: Tensor, base: float = SINUSOID_BASE) -> dict[str, Any] | None:
    """The settings whose vectors a table of positions holds, to the last bit; None: there are none, it was learnt.

    `base`: the sinusoids' that are looked for."""
    if not table.any():
        return {"type": "none"}
    length, d_model = table.shape
    for layout, offset in itertools.product(LAYOUTS, (0, 1, 2)):
        if layout == "fairseq" and (d_model < 4 or d_model % 2):
            continue
        if torch.equal(table, sinusoidal_table(length, d_model, base=base, layout=layout, offset=offset)):
            return {"type": "sinusoidal", "layout": layout, "offset": offset, "base": base}
    return None


def positions(src: Tensor, tgt: Tensor, base: float) -> tuple[dict[str, Any], list[str]]:
    """The settings of two tables of positions, and why they are not the whole truth."""
    if (fixed := scheme(src, base)) is not None and fixed == scheme(tgt, base):
        return fixed, []
    if src.shape != tgt.shape:
        return {}, [f"tables of {len(src):,} and {len(tgt):,} positions: ours have one length"]
    return {"type": "learned", "max_len": len(src)}, []


def tying(src: Tensor, tgt: Tensor, output: Tensor, rows: list[int], shared: bool) -> str:
    """Setting `tie_embeddings` of these matrices; `rows`: those of the target that are in use.

    Rows of a side's own are not in the other's matrix, so two vocabularies are never tied three ways.
    """
    if not torch.equal(tgt[rows], output[rows]):
        return "none"
    return "all" if shared and src.shape == tgt.shape and torch.equal(src, tgt) else "output"


def fill_rows(ours: Tensor, theirs: Tensor, rows: Sequence[int], missing: float = 0.0) -> None:
    """Copy row `rows[i]` of theirs into row i of ours; -1: a row of `missing`."""
    index = torch.tensor(rows)
    values = theirs[index.clamp(min=0)]
    values[index < 0] = missing
    ours.copy_(values)


def languages_of(folder: Path, origin: Origin | None, src_lang: str | None, tgt_lang: str | None) -> tuple[str, str]:
    """The given languages, or else the languages that our own export recorded. Raises DragomanError if there are
    neither."""
    exported = origin.languages if origin is not None and origin.languages else (None, None)
    src, tgt = src_lang or exported[0], tgt_lang or exported[1]
    if src is None or tgt is None:
        raise Error.MISSING_OPTION("say with `src_lang` and `tgt_lang` what it translates", file=folder)
    return src, tgt


def whole_number(value: Any, name: str) -> int:
    """Raises DragomanError for another value of a setting."""
    if type(value) is not int:
        raise Error.CANNOT_IMPORT(f"{name}: {value!r} is no whole number")
    return value


def texts(value: Any, name: str) -> list[str]:
    """A list of texts; empty for none. Raises DragomanError for another value of a setting."""
    if not isinstance(value or [], list) or not all(isinstance(text, str) for text in value or []):
        raise Error.CANNOT_IMPORT(f"{name}: {value!r} is no list of texts")
    return value or []


def fill_modules(modules: Iterable[tuple[nn.Module, str]], weights: Weights) -> None:
    """Copy the weight and bias of each module from the tensors of a name; a missing bias is zero.

    Raises DragomanError for a weight that is missing or has another shape.
    """
    for module, name in modules:
        for kind, ours in module.named_parameters(recurse=False):
            theirs = weights[f"{name}.{kind}"] if kind == "weight" else weights.get(f"{name}.{kind}")
            if theirs is None:
                ours.zero_()
            elif theirs.shape != ours.shape:
                raise Error.MISMATCH(f"{name}.{kind} is {tuple(theirs.shape)}, for {tuple(ours.shape)} here")
            else:
                ours.copy_(theirs)
