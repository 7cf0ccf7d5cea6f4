"""A model of Marian as a run directory: the inverse of `export.marian`.

A folder holds one `.npz` with the options of the model inside, and the vocabularies: SentencePiece models (`.spm`) or
lists of tokens (`.yml`), found by `decoder.yml` (or `model.npz.decoder.yml`, as Marian's training leaves it), or by
their names. What the options say has to have a counterpart here, as every array has.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman import config
from dragoman.errors import Error
from dragoman.export.marian_format import read_npz
from dragoman.export.marian_weights import DEFAULTS, EPSILONS, NEW, OLD, Naming, parameters
from dragoman.export.origin import TOKENIZER, read_origin
from dragoman.importing.base import NEVER_BIAS, Imported, Weights, fill_rows, languages_of, positions, refusal, tying
from dragoman.importing.vocabularies import Sides, languages_in, tokenizer_of
from dragoman.inference.loading import build_model
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.nn.positions import SINUSOID_BASE, LearnedPositions
from dragoman.runs.atomic_io import read_bytes
from dragoman.special_tokens import EOS_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import Tokenizer, Vocabulary
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers
from dragoman.text.tokenizers.pieces import PiecesConfig, PiecesTokenizer
from dragoman.text.tokenizers.sentencepiece import MAX_MODEL_BYTES
from dragoman.text.tokenizers.vocabulary_files import yaml_rows

MAX_YAML = 64 * 2**20
CONFIGS = ("decoder.yml", "*.npz.decoder.yml", "config.yml", "config.intgemm8bitalpha.yml")
"""Files that say which model and which vocabularies belong together; the first file counts."""
SET = {
    "type", "version", "dim-vocabs", "dim-emb", "enc-depth", "dec-depth", "transformer-heads", "transformer-dim-ffn",
    "transformer-ffn-activation", "transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top",
    "transformer-postprocess-emb", "transformer-train-position-embeddings", "transformer-tied-layers",
    "transformer-decoder-autoreg", "tied-embeddings-all", "tied-embeddings", "tied-embeddings-src", "output-omit-bias",
}  # fmt: skip
"""Options that become settings here."""
SILENT = re.compile(
    "bert-.*|comet-.*|char-.*|enc-(cell|type).*|dec-cell.*|dim-rnn|skip|layer-normalization|transformer-.*aan.*|"
    "transformer-depth-scaling|transformer-guided-alignment-layer|transformer-rnn-projection|transformer-alibi-.*|"
    "separator-symbol|factors-combine|original-type|embedding-.*"
)
"""Options that say nothing about the probabilities of a Transformer with self-attention."""
MORE = {"transformer-attention-mask": "default"}
"""Of newer versions, with their only value here."""


def load(folder: Path, src_lang: str | None, tgt_lang: str | None, spm: Sequence[Path] = ()) -> Imported:
    """Read a folder; `spm`: the SentencePiece model that cuts its texts where its vocabularies are lists of tokens, or
    one for each side.

    Raises DragomanError with all the reasons why it cannot be represented exactly.
    """
    origin = read_origin(folder)
    languages = languages_of(folder, origin, src_lang, tgt_lang)
    described = _config(folder)
    path = _model(folder, described)
    arrays, options = read_npz(path)
    if reasons := [*_reasons(options), *_types(arrays)]:
        raise refusal(folder, reasons)
    weights = Weights({name: torch.from_numpy(np.array(values, np.float32)) for name, values in arrays.items()})
    shape = _shape(options, weights, path)
    sides = _sides(folder, described, shape, spm)
    settings, reasons = _settings(options, weights, sides, shape)
    if reasons:
        raise refusal(folder, reasons)
    model = cast(Transformer, build_model(settings, sides.tokenizers).eval())
    try:
        with torch.no_grad():
            _fill(model, weights, sides, options)
    except (RuntimeError, IndexError, ValueError) as error:
        raise Error.MISMATCH(f"its arrays do not fit its options: {error}", file=path) from error
    if left := weights.left():
        raise refusal(folder, left)
    if origin is None:
        if sides.tokenizers.languages is not None:
            languages = sides.tokenizers.languages.codes(*languages)
        return Imported(settings, model, sides.tokenizers, languages, "none", _decoding(described))
    decoding = config.to_dict(origin)["decoding"]
    return Imported(settings, model, sides.tokenizers, languages, origin.normalize, decoding, origin.max_src_tokens)


def is_marian(folder: Path) -> bool:
    """True if a folder holds a model of Marian."""
    return bool(_models(folder))


# -- files ---------------------------------------------------------------------------------------------------------


def _models(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.npz")) if not path.name.endswith(".optimizer.npz")]


def _config(folder: Path) -> dict[str, Any]:
    """The file that says which files belong together; nothing where there is no such file."""
    for path in (path for name in CONFIGS for path in sorted(folder.glob(name))):
        try:
            return config.from_yaml(read_bytes(path, MAX_YAML).decode("utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise Error.NOT_UTF8(f"is no UTF-8: {error}", file=path) from error
    return {}


def _names(described: dict[str, Any], key: str) -> list[str]:
    """File names that an option has, whatever folder they were in."""
    names = described.get(key, [])
    return [Path(str(one)).name for one in (names if isinstance(names, list) else [names])]


def _model(folder: Path, described: dict[str, Any]) -> Path:
    names = [name for name in _names(described, "models") if (folder / name).is_file()]
    paths = [folder / name for name in names] or _models(folder)
    if len(paths) != 1:
        raise Error.CANNOT_IMPORT(
            f"holds {len(paths)} models ({', '.join(path.name for path in paths)}): an ensemble is no single run",
            "leave one .npz in the folder",
            file=folder,
        )
    return paths[0]


def _types(arrays: dict[str, np.ndarray]) -> Iterator[str]:
    for name, values in arrays.items():
        if values.dtype not in (np.float32, np.float16):
            yield f"{name} is {values.dtype}: arrays have to be float32 or float16"


# -- options -------------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """Sizes that options and arrays agree on."""

    vocab_sizes: tuple[int, int]
    d_model: int
    heads: int
    d_ff: int
    depths: tuple[int, int]


def _reasons(options: dict[str, Any]) -> Iterator[str]:
    """The options that have no counterpart here."""
    kind = options.get("type")
    if kind not in EPSILONS:
        yield f"type: {kind}, where {OLD} and {NEW} are known"
        return
    for name, value in options.items():
        if name in SET or SILENT.fullmatch(name) or value == {**DEFAULTS, **MORE}.get(name, "") or value in ([], None):
            continue
        if name == "transformer-decoder-dim-ffn" and value == options.get("transformer-dim-ffn"):
            continue
        if name == "transformer-decoder-ffn-depth" and value == DEFAULTS["transformer-ffn-depth"]:
            continue
        if name == "input-types" and set(value if isinstance(value, list) else [value]) == {"sequence"}:
            continue
        yield f"{name}: {value}, which nothing here does"
    autoreg = options.get("transformer-decoder-autoreg", "self-attention")
    if autoreg != "self-attention" and (autoreg, options.get("dec-cell")) != ("rnn", "ssru"):
        yield f"transformer-decoder-autoreg: {autoreg} (dec-cell: {options.get('dec-cell')}): known are SSRUs"
    if options.get("transformer-ffn-activation", "swish") not in ("swish", "relu"):
        yield f"transformer-ffn-activation: {options['transformer-ffn-activation']}, where swish and relu are known"
    if _placement(options) is None:
        shown = [f"{name}: {options.get(name, '')!r}" for name in PLACES]
        yield f"{', '.join(shown)}: known are post-norm (dan) and pre-norm (n, da, n at the top)"
    elif _placement(options) == "pre" and kind == OLD:
        yield (
            "transformer-preprocess: n in a decoder of the type transformer: Marian does not translate with it as it "
            "was trained (keys are normalised in training alone)"
        )
    if set(_operations(options, "transformer-postprocess-emb")) - set("nr"):
        yield f"transformer-postprocess-emb: {options['transformer-postprocess-emb']}"


PLACES = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")


def _operations(options: dict[str, Any], name: str) -> str:
    """The operations at a place when a model translates: all but dropout."""
    return str(options.get(name) or "").replace("d", "")


def _placement(options: dict[str, Any]) -> str | None:
    """Setting `norm_placement`; None for a way without a setting here."""
    before, after, top = (_operations(options, name).replace("r", "n") for name in PLACES)
    if (before, after, top) == ("", "an", ""):
        return "post"
    return "pre" if (before, after, top) == ("n", "a", "n") else None


def _shape(options: dict[str, Any], weights: Weights, path: Path) -> Shape:
    """Sizes, before anything is made of them. Raises DragomanError where options and arrays differ."""
    try:
        vocab_sizes = tuple(int(size) for size in options["dim-vocabs"])
        d_model, heads, d_ff, *depths = (
            int(options[name])
            for name in ("dim-emb", "transformer-heads", "transformer-dim-ffn", "enc-depth", "dec-depth")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Error.CANNOT_IMPORT(f"its options lack a size, or it is no number: {error}", file=path) from error
    naming = _naming(options)
    first = naming.names("model.encoder.layers.0.fc1", nn.Linear(1, 1))[0]
    sizes = {
        "dim-vocabs": (vocab_sizes, tuple(len(_embedding(weights, options, side)) for side in ("encoder", "decoder"))),
        "dim-emb": (d_model, _embedding(weights, options, "encoder").size(-1)),
        "transformer-dim-ffn": (d_ff, weights[first].size(-1)),
    }
    for name, (stated, there) in sizes.items():
        if stated != there:
            raise Error.MISMATCH(f"{name} is {stated}, and the arrays have {there}", file=path)
    for depth, side in zip(depths, ("encoder", "decoder"), strict=True):
        last = naming.names(f"model.{side}.layers.{depth - 1}.fc1", nn.Linear(1, 1))[0]
        if depth < 1 or depth > len(weights.tensors) or last not in weights:
            raise Error.MISMATCH(f"{side[:3]}-depth is {depth}, and there is no {last}", file=path)
    if heads < 1 or d_model % heads:
        raise Error.MISMATCH(f"transformer-heads {heads} do not divide dim-emb {d_model}", file=path)
    return Shape(cast(tuple[int, int], vocab_sizes), d_model, heads, d_ff, (depths[0], depths[1]))


def _naming(options: dict[str, Any]) -> Naming:
    tied = tuple(int(one) for one in options.get("transformer-tied-layers") or ())
    activation = str(options.get("transformer-ffn-activation", "swish"))
    rnn = options.get("transformer-decoder-autoreg") == "rnn"
    return Naming(options["type"], _placement(options) == "pre", activation, tied, rnn)


def _embedding(weights: Weights, options: dict[str, Any], side: str) -> Tensor:
    joint = options.get("tied-embeddings-all") or options.get("tied-embeddings-src")
    matrix = weights["Wemb" if joint else f"{side}_Wemb"]
    if matrix.dim() != 2:
        raise Error.CANNOT_IMPORT("its embeddings are no matrix")
    return matrix


def _output(weights: Weights, options: dict[str, Any]) -> Tensor:
    if options.get("tied-embeddings-all") or options.get("tied-embeddings"):
        return _embedding(weights, options, "decoder")
    legacy = weights.get("decoder_ff_logit_out_W")
    return weights["decoder_ff_logit_out_Wt"] if legacy is None else legacy.T


def _bias(weights: Weights, options: dict[str, Any], size: int) -> Tensor:
    if options.get("output-omit-bias"):
        return torch.zeros(size)
    return weights["decoder_ff_logit_out_b"].flatten()


def _settings(
    options: dict[str, Any], weights: Weights, sides: Sides, shape: Shape
) -> tuple[TransformerConfig, list[str]]:
    """The settings, and reasons why they are not the whole truth."""
    matrices = [_embedding(weights, options, side) for side in ("encoder", "decoder")]
    output = _output(weights, options)
    reasons: list[str] = []
    if output.shape != matrices[1].shape:
        raise Error.MISMATCH(f"the output matrix is {tuple(output.shape)}, for {tuple(matrices[1].shape)} embeddings")
    position: dict[str, Any] = {"type": "sinusoidal", "layout": "fairseq"}
    table = bool(options["type"] == NEW and options.get("transformer-train-position-embeddings"))
    if table:
        tables = [weights[_naming(options).position_table(side)] for side in ("encoder", "decoder")]
        position, reasons = positions(tables[0], tables[1], SINUSOID_BASE)
    bias = _bias(weights, options, shape.vocab_sizes[1])
    norms = "".join(_operations(options, name) for name in (*PLACES, "transformer-postprocess-emb"))
    if "n" in norms and "r" in norms:
        reasons.append("norms of two kinds (n and r)")
    rms = "r" in norms
    settings = {
        "d_model": shape.d_model,
        "num_heads": shape.heads,
        "d_ff": shape.d_ff,
        "num_encoder_layers": shape.depths[0],
        "num_decoder_layers": shape.depths[1],
        "activation": "relu" if options.get("transformer-ffn-activation") == "relu" else "silu",
        "norm": "rms" if rms else "layer",
        "norm_eps": EPSILONS[options["type"]],
        "norm_placement": _placement(options),
        "embedding_norm": bool(_operations(options, "transformer-postprocess-emb")),
        "position": position,
        "tied_layers": list(_naming(options).tied_layers),
        "decoder_autoreg": "rnn" if _naming(options).rnn else "self-attention",
        "tie_embeddings": tying(matrices[0], matrices[1], output, sides.tgt_rows, sides.tokenizers.shared),
        "scale_embeddings": not table,
        "output_bias": -1 in sides.tgt_rows or bool(bias.any()),
        "zero_start": True,
    }
    return config.parse(TransformerConfig, settings, "settings of the imported model"), reasons


def _decoding(described: dict[str, Any]) -> dict[str, Any]:
    """Our settings of the search that `decoder.yml` describes."""
    settings: dict[str, Any] = {}
    numbers = {
        name: float(value)
        for name in ("beam-size", "normalize", "word-penalty", "max-length-factor")
        if isinstance(value := described.get(name), int | float) and not isinstance(value, bool) and value >= 0
    }
    if numbers.get("beam-size", 0.0) >= 1:
        settings["beam_size"] = int(numbers["beam-size"])
    if "normalize" in numbers:
        alpha = numbers["normalize"]
        settings["length_penalty"] = {"type": "average", "alpha": alpha} if alpha else {"type": "none"}
    if "word-penalty" in numbers:
        settings["word_penalty"] = numbers["word-penalty"]
    if "max-length-factor" in numbers:
        settings |= {"max_length_ratio": numbers["max-length-factor"], "max_length_extra": 0}
    if described.get("allow-unk") is True:
        settings["ban_unk"] = False
    return settings


# -- vocabularies --------------------------------------------------------------------------------------------------


def _sides(folder: Path, described: dict[str, Any], shape: Shape, spm: Sequence[Path]) -> Sides:
    """The tokenizers of both sides: the files that `dragoman export` wrote beside the model, or tokenizers made of the
    vocabularies."""
    if (folder / TOKENIZER / "tokenizers.json").exists():
        pair = load_tokenizers(folder / TOKENIZER)
        rows = [_own_rows(one, size, folder) for one, size in zip((pair.src, pair.tgt), shape.vocab_sizes, strict=True)]
        return Sides(pair, rows[0], rows[1], start="")
    paths = _vocabularies(folder, described)
    tokens = [_tokens(path, size) for path, size in zip(paths, shape.vocab_sizes, strict=True)]
    models = [read_bytes(path, MAX_MODEL_BYTES) if path.suffix == ".spm" else None for path in paths]
    if given := [read_bytes(path, MAX_MODEL_BYTES) for path in spm]:
        if any(models):
            raise Error.CONFLICT("`spm`: its vocabularies are SentencePiece models themselves", file=folder)
        models = [given[0], given[-1]]
    if any(token.endswith("@@") for token in tokens[0]):
        raise Error.CANNOT_IMPORT("its vocabulary has pieces of subword-nmt (@@), which are not cut here", file=folder)
    src = tokenizer_of(tokens[0], folder, models[0], "")
    same = tokens[0] == tokens[1]
    tgt = src if same and models[0] == models[1] else tokenizer_of(tokens[1], folder, models[1], "")
    return Sides(TokenizerPair(src[0], tgt[0], same, languages_in(folder, tokens[0])), src[1], tgt[1], "")


def _own_rows(tokenizer: Tokenizer, size: int, folder: Path) -> list[int]:
    """Their row of each id of a tokenizer of our own export."""
    if size == tokenizer.vocab_size:
        return list(range(size))
    pieces = tokenizer.model_pieces() if isinstance(tokenizer, PiecesTokenizer) else []
    if len(pieces) != size:
        raise Error.MISMATCH("has other pieces than the model's vocabulary", file=folder / TOKENIZER)
    named = {SPECIALS[EOS_ID]: EOS_ID, SPECIALS[UNK_ID]: UNK_ID}
    rows = [-1] * tokenizer.vocab_size
    for row, piece in enumerate(pieces):
        rows[named.get(piece, tokenizer.id_of(piece))] = row
    return rows


def _vocabularies(folder: Path, described: dict[str, Any]) -> list[Path]:
    """The vocabularies of source and target."""
    paths = [folder / name for name in _names(described, "vocabs")]
    if not paths:
        files = sorted(folder.glob("*vocab*.spm")) or sorted(folder.glob("*vocab*.y*ml"))
        paths = files * 2 if len(files) == 1 else files
    if len(paths) != 2:
        raise Error.CANNOT_IMPORT(
            f"has {len(paths)} vocabularies, and source and target need one each",
            "name them in decoder.yml (vocabs: [vocab.spm, vocab.spm])",
            file=folder,
        )
    for path in paths:
        if not path.is_file():
            raise Error.MISSING_FILE("no such vocabulary, which its configuration names", file=path)
    return paths


def _tokens(path: Path, size: int) -> list[str]:
    """The token of each row; a row without one gets its number for a name."""
    if path.suffix == ".spm":
        empty = PiecesTokenizer(
            PiecesConfig(vocab_size=5), Vocabulary(["-"]), read_bytes(path, MAX_MODEL_BYTES), str(path)
        )
        tokens = dict(enumerate(empty.model_pieces()))
    else:
        tokens = yaml_rows(path)
    if not tokens or min(tokens) < 0 or max(tokens) >= size:
        raise Error.CANNOT_IMPORT(f"{len(tokens):,} tokens, where the model has {size:,} rows", file=path)
    return [tokens.get(row, f"<{row}>") for row in range(size)]


# -- weights -------------------------------------------------------------------------------------------------------


def _fill(model: Transformer, weights: Weights, sides: Sides, options: dict[str, Any]) -> None:
    """Copy every array into its place."""
    for side, embedding, rows in (
        ("encoder", model.src_embedding, sides.src_rows),
        ("decoder", model.tgt_embedding, sides.tgt_rows),
    ):
        fill_rows(embedding.tokens.embedding.weight, _embedding(weights, options, side), rows)
        name = _naming(options).position_table(side)
        if isinstance(embedding.positions, LearnedPositions):
            embedding.positions.embedding.weight.copy_(weights[name])
        else:
            weights.get(name)
    output = _output(weights, options)
    fill_rows(model.output.weight, output, sides.tgt_rows)
    bias = _bias(weights, options, len(output))
    if model.output.bias is not None:
        fill_rows(model.output.bias, bias, sides.tgt_rows, missing=NEVER_BIAS)
    naming = _naming(options)
    for one in parameters(model, naming):
        theirs = weights[one.name]
        one.ours.copy_(theirs.T if one.ours.dim() == 2 else theirs.flatten())
    for name, theirs in weights.tensors.items():  # the biases of RMSNorms, which have none here
        if "norm->bias" in name and name not in weights.used and not theirs.any():
            weights.get(name)
