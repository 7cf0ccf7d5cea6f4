"""A model drawn as the papers draw it: a box for each part, with the shapes that its weights really have."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from matplotlib.patches import FancyBboxPatch
from torch import nn

from dragoman.analysis.figure import GRID, INK, MUTED, PALETTE, TRAIN, Figure, new_figure, styled
from dragoman.errors import Error
from dragoman.models.blocks import DecoderLayer, EncoderLayer, PositionedEmbedding
from dragoman.models.language_model import LanguageModel
from dragoman.models.recurrent import AttentionalDecoder, Recurrent
from dragoman.models.text_classifier import TextClassifier
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.embeddings import OutputProjection
from dragoman.nn.feedforward import FeedForward, SwiGLU
from dragoman.nn.positions import LearnedPositions, NoPositions, SinusoidalPositions
from dragoman.nn.residual import OutputNorm, PostNorm


@dataclass(frozen=True)
class Box:
    """A part of a model."""

    name: str
    shape: str = ""
    kind: str = "other"
    """A key of `COLORS`."""
    reads: str = ""
    """The name of a column whose top this box reads too."""


@dataclass(frozen=True)
class Column:
    """Boxes from the input (first) to the output, and which of them are one layer of several."""

    name: str
    boxes: list[Box] = field(default_factory=list)
    repeated: tuple[int, int, int] | None = None
    """(first box, last box, times)."""


COLORS = {
    "embedding": PALETTE[3],
    "attention": PALETTE[4],
    "feed-forward": PALETTE[5],
    "norm": PALETTE[2],
    "recurrent": TRAIN,
    "output": PALETTE[1],
    "other": MUTED,
}


def columns_of(model: nn.Module) -> list[Column]:
    """The parts of a model. Raises DragomanError for a family that has no drawing."""
    if isinstance(model, Transformer):
        return [
            _stack(
                "encoder", "source ids, (batch, src_len)", model.src_embedding, model.encoder_layers,
                model.encoder_norm,
            ),
            _ended(
                _stack(
                    "decoder", "target ids from <s> on, (batch, tgt_len)", model.tgt_embedding, model.decoder_layers,
                    model.decoder_norm,
                ),
                model.output, model.src_embedding.tokens, model.tgt_embedding.tokens,
            ),
        ]  # fmt: skip
    if isinstance(model, LanguageModel):
        stack = _stack("language model", "ids, (batch, len)", model.embedding, model.layers, model.norm)
        return [_ended(stack, model.output, model.embedding.tokens)]
    if isinstance(model, TextClassifier):
        stack = _stack("classifier", "ids, (batch, len)", model.embedding, model.encoder.layers, model.encoder.norm)
        head = Box("linear to labels", f"{model.head.in_features} → {model.head.out_features}", "output")
        return [_more(stack, [Box("pooling, len → 1"), head, Box("softmax")])]
    if isinstance(model, Recurrent):
        return _recurrent(model)
    raise Error.UNSUPPORTED(f"{type(model).__name__}: translators, language models and text classifiers are drawn")


def _stack(
    name: str, reads: str, embedding: PositionedEmbedding, layers: Iterable[nn.Module], norm: nn.Module
) -> Column:
    every = list(layers)
    boxes = [Box(reads), *_embedding(embedding)]
    first = len(boxes)
    boxes += _layer(cast(EncoderLayer | DecoderLayer, every[0]), name)
    repeated = (first, len(boxes) - 1, len(every))
    if not isinstance(norm, nn.Identity):
        boxes.append(Box(_norm(norm), "", "norm"))
    return Column(name, boxes, repeated)


def _embedding(module: PositionedEmbedding) -> list[Box]:
    rows, width = module.tokens.embedding.weight.shape
    scale = "" if module.tokens.scale == 1.0 else f", × √{width}"
    boxes = [Box("token embedding", f"{rows:,} × {width}{scale}", "embedding")]
    positions = module.positions
    if isinstance(positions, SinusoidalPositions):
        boxes.append(Box("+ sinusoidal positions", f"base {positions.base:,g}", "embedding"))
    elif isinstance(positions, LearnedPositions):
        boxes.append(Box("+ learned positions", f"{positions.max_len:,} × {width}", "embedding"))
    if not isinstance(module.norm, nn.Identity):
        boxes.append(Box(_norm(module.norm), "", "norm"))
    return boxes


def _layer(layer: EncoderLayer | DecoderLayer, side: str) -> list[Box]:
    causal = isinstance(layer, DecoderLayer)
    parts = [
        _sublayer(
            layer.self_attention_residual,
            _attention(layer.self_attention, "causal self-attention" if causal else "self-attention"),
        )
    ]
    cross = getattr(layer, "cross_attention", None)
    if cross is not None:
        parts.append(
            _sublayer(
                cast(DecoderLayer, layer).cross_attention_residual,
                _attention(cross, "attention to the source", "encoder"),
            )
        )
    parts.append(_sublayer(layer.feed_forward_residual, _feed_forward(layer.feed_forward)))
    return [box for part in parts for box in part]


def _sublayer(residual: nn.Module, inside: Box) -> list[Box]:
    norm = Box(_norm(cast(Any, residual).norm), "", "norm")
    add = Box("+ residual")
    if isinstance(residual, PostNorm):
        return [inside, add, norm]
    if isinstance(residual, OutputNorm):
        return [inside, norm, add]
    return [norm, inside, add]


def _attention(module: MultiHeadAttention, name: str, reads: str = "") -> Box:
    heads = module.query_proj.out_features // module.d_head
    kept = module.key_proj.out_features // module.d_head
    shape = f"{heads} heads of {module.d_head}" + (f", keys and values of {kept}" if kept != heads else "")
    if not isinstance(module.positions, NoPositions) and reads == "":
        kind = type(module.positions).__name__.removesuffix("Positions").lower()
        shape += "" if kind == "attention" else f", {kind}"
    return Box(name, shape, "attention", reads)


def _feed_forward(module: nn.Module) -> Box:
    if isinstance(module, SwiGLU):
        sizes, kind = (module.expand.in_features, module.expand.out_features), "SwiGLU"
    else:
        forward = cast(FeedForward, module)
        sizes, kind = (forward.expand.in_features, forward.expand.out_features), type(forward.activation).__name__
    return Box("feed-forward", f"{sizes[0]} → {sizes[1]} → {sizes[0]}, {kind}", "feed-forward")


def _norm(module: nn.Module) -> str:
    return type(module).__name__


def _ended(column: Column, output: OutputProjection, *embeddings: Any) -> Column:
    rows, width = output.weight.shape
    tied = ", the embedding's matrix" if any(output.weight is one.embedding.weight for one in embeddings) else ""
    return _more(column, [Box("linear to the vocabulary", f"{width} → {rows:,}{tied}", "output"), Box("softmax")])


def _more(column: Column, boxes: Sequence[Box]) -> Column:
    return Column(column.name, [*column.boxes, *boxes], column.repeated)


def _recurrent(model: Recurrent) -> list[Column]:
    tables = [one.embedding.weight for one in (model.src_embedding, model.tgt_embedding)]
    shapes = [f"{len(table):,} × {table.size(1)}" for table in tables]
    encoder = Column("encoder", [Box("source ids, (batch, src_len)"), Box("token embedding", shapes[0], "embedding")])
    encoder = _more(encoder, _cells(model.encoder))
    boxes = [Box("target ids from <s> on, (batch, tgt_len)"), Box("token embedding", shapes[1], "embedding")]
    attends = isinstance(model.decoder, AttentionalDecoder)
    if isinstance(model.decoder, AttentionalDecoder):
        kind = type(model.decoder.attention).__name__.removesuffix("Attention")
        boxes.append(Box(f"{kind} attention to the source", "query: the state before", "attention", "encoder"))
    first, *others = _cells(model.decoder)
    told = f"{first.shape}, begins with the encoder's last state"
    boxes += [Box(first.name, told, first.kind, "" if attends else "encoder"), *others]
    readout = model.decoder.readout
    boxes.append(Box("readout, tanh", f"{readout.in_features} → {readout.out_features}", "feed-forward"))
    return [encoder, _ended(Column("decoder", boxes), model.output, model.src_embedding, model.tgt_embedding)]


def _cells(stack: nn.Module) -> list[Box]:
    """The recurrent layers of a side, from the first on; of two directions the one from the right comes second."""
    found = [(name, module) for name, module in stack.named_modules() if isinstance(module, nn.LSTM | nn.GRU)]
    boxes = []
    for name, module in found:
        way = ", from the right" if re.fullmatch(r"layers\.\d+\.1\..*", name) else ""
        boxes.append(Box(type(module).__name__ + way, f"{module.input_size} → {module.hidden_size}", "recurrent"))
    return boxes


@styled
def architecture_figure(model: nn.Module) -> Figure:
    """The columns of a model beside each other, inputs at the bottom; a frame around what comes several times."""
    columns = columns_of(model)
    tallest = max(len(column.boxes) for column in columns)
    total = sum(parameter.numel() for parameter in model.parameters())
    figure = new_figure(0.9 + 4.1 * len(columns), 1.3 + 0.52 * tallest, f"{type(model).__name__}, {total:,} parameters")
    axes: Any = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-0.6, 4.0 * len(columns) - 0.5)
    axes.set_ylim(-0.7, tallest + 0.5)
    tops = {column.name: (4.0 * place, len(column.boxes) - 1) for place, column in enumerate(columns)}
    for place, column in enumerate(columns):
        x = 4.0 * place
        axes.text(x + 1.35, len(column.boxes) - 0.05, column.name, ha="center", fontsize=9.5, fontweight="bold")
        for y, box in enumerate(column.boxes):
            color = COLORS[box.kind]
            axes.add_patch(
                FancyBboxPatch(
                    (x, y - 0.3), 2.7, 0.6, boxstyle="round,pad=0.02", facecolor="white", edgecolor=color, linewidth=1.4
                )
            )
            told = f"{box.name}\n{box.shape}" if box.shape else box.name
            axes.text(x + 1.35, y, told, ha="center", va="center", fontsize=7.5, color=INK, linespacing=1.25)
            if y:
                axes.annotate(
                    "", (x + 1.35, y - 0.32), (x + 1.35, y - 0.68), arrowprops={"arrowstyle": "->", "color": MUTED}
                )
            if box.reads:
                left, top = tops[box.reads]
                middle = (left + 2.7 + x) / 2
                axes.plot([left + 2.72, middle, middle], [top, top, y], color=MUTED, linewidth=1)
                axes.annotate("", (x - 0.02, y), (middle, y), arrowprops={"arrowstyle": "->", "color": MUTED})
        if column.repeated is not None:
            first, last, times = column.repeated
            axes.add_patch(
                FancyBboxPatch(
                    (x - 0.18, first - 0.44), 3.06, last - first + 0.88, boxstyle="round,pad=0.02", facecolor="none",
                    edgecolor=GRID, linewidth=1.5, linestyle="--",
                )
            )  # fmt: skip
            axes.text(x + 2.98, (first + last) / 2, f"× {times}", ha="left", va="center", fontsize=10, color=MUTED)
    return figure
