"""ONNX: encoder and decoder step as two graphs, and all that a program in any language needs beside them.

The folder holds `encoder.onnx`, `step.onnx` (`onnx_graph.py` says what is in them), `dragoman.json` and the tokenizer.
With `m` for what `dragoman.json` holds, greedy search in any runtime is:

    state = encoder(src, src_mask)                      # ids that end in </s>; True at real tokens, padding at the end
    prev = [m.specials.bos_id] for each sentence
    until every sentence has written m.specials.eos_id:
        logits, next.* = step(prev, state)
        state[name] = next[name]                        # for each of m.state that is renewed; the others stay
        prev = argmax of each row of logits

A beam gives each sentence as many rows, side by side: the renewed tensors of the state are selected by row, the others
stay as they are, once for each sentence.
"""

import copy
import importlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman import config
from dragoman.config import settings
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error, not_installed, writing
from dragoman.export.onnx_graph import NEXT, OPSET, StateTensor, write_graphs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.base import Seq2SeqModel, kept_sentences
from dragoman.models.ensemble import Ensemble
from dragoman.models.recurrent import Recurrent
from dragoman.models.transformer import Transformer
from dragoman.nn.ssru import SSRU
from dragoman.runs.atomic_io import read_json, write_json
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import load_tokenizers, save_tokenizers
from dragoman.version import __version__

ENCODER, STEP, DESCRIPTION, TOKENIZER = "encoder.onnx", "step.onnx", "dragoman.json", "tokenizer"

MAX_BYTES = 2**31
"""Of a file of protocol buffers, which a graph is with its weights."""

NO_MAPS = "its graphs give no attention maps, which a coverage penalty needs: set decoding.coverage_penalty to 0"


@dataclass(frozen=True)
class SpecialIds:
    """The ids that whoever writes a search in another language has to know."""

    pad_id: int = PAD_ID
    unk_id: int = UNK_ID
    bos_id: int = BOS_ID
    eos_id: int = EOS_ID


@settings
class OnnxDescription:
    """The content of `dragoman.json`. A field that is removed or means something else raises `format_version`."""

    format: Literal["dragoman-onnx"] = "dragoman-onnx"
    format_version: Literal[1] = 1
    dragoman: str = __version__
    opset: int = OPSET
    quantize: Literal["int8"] | None = None
    src_vocab_size: int
    tgt_vocab_size: int
    max_target_length: int | None  #: Tokens that a translation may have with its `</s>`; null: as many as one likes.
    state: tuple[StateTensor, ...]
    specials: SpecialIds = SpecialIds()
    normalize: str
    """The Unicode normal form of a text before it is tokenized: `none`, `nfc` or `nfkc`."""
    max_src_tokens: int  #: A longer text is cut into parts before it is translated.
    join: str  #: What stands between the translations of parts.
    decoding: DecodingConfig
    languages: tuple[str, str] | None = None  #: From and to, which the tokenizers say to a model of several languages.


def problems(translator: SearchTranslator) -> list[str]:
    """Why this model cannot become ONNX, one line each with what to change; empty: it can."""
    model = translator.model
    if isinstance(model, Ensemble):
        return [f"it is an ensemble of {len(model.models)} models: export each run by itself"]
    if not isinstance(model, Transformer | Recurrent):
        return [f"models of the class {type(model).__name__} have no ONNX form: train a transformer or a recurrent one"]
    if isinstance(model, Transformer) and isinstance(model.decoder_layers[0].self_attention, SSRU):
        return ["model.decoder_autoreg: rnn has no ONNX form: train with self-attention"]
    # The largest matrix comes twice where it is both embedding and output: it stands there in two layouts.
    weights = list(model.parameters())
    size = 4 * (sum(one.numel() for one in weights) + max(one.numel() for one in weights))
    if size >= MAX_BYTES:
        return [f"its weights need {size:,} bytes and an ONNX file has less than {MAX_BYTES:,}: train a smaller model"]
    return [NO_MAPS] if translator.decoding.coverage_penalty else []


def write(translator: SearchTranslator, folder: Path, quantize: str | None) -> None:
    """Write the export into an existing empty folder.

    `quantize`: "int8" makes the matrices of products 8-bit integers, one scale a column, and what is multiplied with
    them while it runs. Embeddings stay as they are, and so does a GRU's encoder: ONNX Runtime has no 8-bit GRU.

    Raises DragomanError for another `quantize`, a missing library or a disk that refuses.
    """
    if quantize not in (None, "int8"):
        raise Error.UNKNOWN_NAME(f"onnx has no quantization {quantize!r}", "choose int8, or none for float32")
    onnx = _library("onnx")
    files = folder / ENCODER, folder / STEP
    with writing(folder):
        state = write_graphs(translator.model, *files)
        for file in files:
            if quantize is not None:
                _quantize(file)
            onnx.checker.check_model(str(file), full_check=True)
        description = OnnxDescription(
            quantize="int8" if quantize else None,
            src_vocab_size=translator.model.src_vocab_size,
            tgt_vocab_size=translator.model.tgt_vocab_size,
            max_target_length=translator.model.max_target_length,
            state=state,
            normalize=next(name for name, function in NORMALIZERS.items() if function is translator.normalize),
            max_src_tokens=translator.max_src_tokens,
            join=translator.join,
            decoding=translator.decoding,
            languages=translator.languages,
        )
        write_json(folder / DESCRIPTION, config.to_dict(description))
    save_tokenizers(translator.tokenizers, folder / TOKENIZER)


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """These settings: the search is ours."""
    return decoding


def load(folder: Path, translator: SearchTranslator) -> SearchTranslator:
    """The export under the same search: a translator of its model and its tokenizers, with the settings of
    `translator`.

    Raises DragomanError for a missing library and for a file that is missing, damaged or of another version.
    """
    path = folder / DESCRIPTION
    description = config.parse(OnnxDescription, read_json(path, dict), str(path))
    other = copy.copy(translator)
    other.model, other.device = OnnxModel(folder, description), torch.device("cpu")
    other.tokenizers = load_tokenizers(folder / TOKENIZER)
    if description.languages is not None:
        other.tokenizers = other.tokenizers.between(*description.languages)
    return other


@dataclass(frozen=True)
class OnnxState:
    """The tensors of a state by their names: what a step renews, a row for each hypothesis, and what stays, one for
    each sentence."""

    renewed: dict[str, Tensor]
    kept: dict[str, Tensor]
    pads_rows: ClassVar[bool] = False

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "OnnxState":
        """Row i of the result is row `rows[i]` of this state."""
        renewed = {name: tensor.index_select(0, rows) for name, tensor in self.renewed.items()}
        if not self.kept:
            return OnnxState(renewed, {})
        num_rows, num_sentences = (len(next(iter(part.values()))) for part in (self.renewed, self.kept))
        sentences = kept_sentences(rows, num_rows, num_sentences)
        if sentences is None:
            return OnnxState(renewed, self.kept)
        return OnnxState(renewed, {name: tensor.index_select(0, sentences) for name, tensor in self.kept.items()})


class OnnxModel(Seq2SeqModel):
    """The two graphs in ONNX Runtime on the CPU, behind the interface that every search knows."""

    def __init__(self, folder: Path, description: OnnxDescription) -> None:
        super().__init__()
        self.src_vocab_size, self.tgt_vocab_size = description.src_vocab_size, description.tgt_vocab_size
        self.max_target_length = description.max_target_length
        self.encoder, self.decoder = _session(folder / ENCODER), _session(folder / STEP)
        self.renewed = [tensor.name for tensor in description.state if tensor.renewed]
        self.kept = [tensor.name for tensor in description.state if not tensor.renewed]

    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> OnnxState:
        outputs = _run(self.encoder, {"src": src, "src_mask": src_mask})
        return OnnxState({name: outputs[name] for name in self.renewed}, {name: outputs[name] for name in self.kept})

    def decode(self, tgt_in: Int[Tensor, "batch tgt_len"], memory: OnnxState) -> Float[Tensor, "batch tgt_len vocab"]:
        """Step by step: a whole target at once is no graph of its own."""
        logits, state = [], self.start(memory)
        for prev in tgt_in.unbind(1):
            after, state = self.decode_step(prev, state)
            logits.append(after)
        return torch.stack(logits, dim=1)

    def start(self, memory: OnnxState) -> OnnxState:
        return memory

    def decode_step(
        self, prev: Int[Tensor, " rows"], state: OnnxState
    ) -> tuple[Float[Tensor, "rows vocab"], OnnxState]:
        outputs = _run(self.decoder, {"prev": prev, **state.renewed, **state.kept})
        return outputs["logits"], OnnxState({name: outputs[NEXT + name] for name in self.renewed}, state.kept)


def _session(path: Path) -> Any:
    """An ONNX Runtime session with as many threads as PyTorch has."""
    runtime = _library("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3  # errors; its warnings are about what its optimiser would like
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own classes have no other name in common
        raise Error.CANNOT_READ(f"ONNX Runtime cannot load it: {error}", file=path) from error


def _run(session: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    names = [output.name for output in session.get_outputs()]
    arrays = session.run(names, {name: tensor.numpy() for name, tensor in tensors.items()})
    return {name: torch.from_numpy(array) for name, array in zip(names, arrays, strict=True)}


def _quantize(file: Path) -> None:
    """Replace a graph by its dynamically quantized form."""
    quantization = _library("onnxruntime.quantization")
    exact = file.with_suffix(".float32.onnx")
    file.rename(exact)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it advises a preparation that is for convolutions
    try:
        quantization.quantize_dynamic(
            exact,
            file,
            # Embeddings (Gather) would have one scale for all words, and more translations would change.
            op_types_to_quantize=["MatMul", "LSTM"],
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            # Seven bits of weights: two products of eight overflow the 16-bit sums of processors without VNNI.
            reduce_range=True,
        )
    finally:
        logging.disable(before)
    exact.unlink()


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise not_installed(f"an export to ONNX needs {name.partition('.')[0]}", "onnx") from error
