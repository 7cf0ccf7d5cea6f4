"""A model drawn as the papers draw it: a box for each part, with the shapes that its weights really have."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
from dragoman.nn.feedforward import SwiGLU
from dragoman.nn.positions import LearnedPositions, NoPositions, SinusoidalPositions
from dragoman.nn.residual import OutputNorm, PostNorm
from dragoman.nn.ssru import SSRU


@dataclass(frozen=True)
class Box:
    """A part of a model."""

    name: str
    shape: str = ""
    kind: str = "other"
    """A key of `COLORS`."""
    reads: str = ""
    """The name of a column whose top this box reads too."""
    skips: int = 0
    """Of a sum: boxes below it that the residual connection goes round."""
    inputs: tuple[str, str] = ("", "")
    """The names of what an attention makes of the box below, and of the column that it reads."""


@dataclass
class Column:
    """Boxes from the input (first) to the output, and which of them are one layer of several."""

    name: str
    boxes: list[Box]
    repeated: tuple[int, int, int] | None = None
    """(first box, last box, times)."""


WIDE = 4.3
"""The distance of two columns; a box has a width of 2.7."""
SOURCE, TARGET = "source ids, (batch, src_len)", "target ids from <s> on, (batch, tgt_len)"
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
        encoder = _stack("encoder", SOURCE, model.src_embedding, model.encoder_layers)
        decoder = _stack("decoder", TARGET, model.tgt_embedding, model.decoder_layers)
        encoder.boxes += _norm(model.encoder_norm)
        decoder.boxes += _norm(model.decoder_norm)
        decoder.boxes += _output(model.output, model.src_embedding.tokens, model.tgt_embedding.tokens)
        return [encoder, decoder]
    if isinstance(model, LanguageModel):
        column = _stack("language model", "ids, (batch, len)", model.embedding, model.layers)
        column.boxes += _norm(model.norm) + _output(model.output, model.embedding.tokens)
        return [column]
    if isinstance(model, TextClassifier):
        column = _stack("classifier", "ids, (batch, len)", model.embedding, model.encoder.layers)
        head = Box("linear to labels", f"{model.head.in_features} → {model.head.out_features}", "output")
        column.boxes += [*_norm(model.encoder.norm), Box("pooling, len → 1"), head, Box("softmax")]
        return [column]
    if isinstance(model, Recurrent):
        return _recurrent(model)
    raise Error.UNSUPPORTED(f"{type(model).__name__}: translators, language models and text classifiers are drawn")


def _stack(
    name: str, reads: str, embedding: PositionedEmbedding, layers: Sequence[EncoderLayer] | Sequence[DecoderLayer]
) -> Column:
    boxes, layer = [Box(reads), *_embedding(embedding)], _layer(layers[0])
    return Column(name, boxes + layer, (len(boxes), len(boxes) + len(layer) - 1, len(layers)))


def _norm(norm: nn.Module) -> list[Box]:
    return [] if isinstance(norm, nn.Identity) else [Box(type(norm).__name__, "", "norm")]


def _embedding(module: PositionedEmbedding) -> list[Box]:
    rows, width = module.tokens.embedding.weight.shape
    scale = "" if module.tokens.scale == 1.0 else f", × √{width}"
    boxes = [Box("token embedding", f"{rows:,} × {width}{scale}", "embedding")]
    positions = module.positions
    if isinstance(positions, SinusoidalPositions):
        boxes.append(Box("+ sinusoidal positions", f"base {positions.base:,g}", "embedding"))
    elif isinstance(positions, LearnedPositions):
        boxes.append(Box("+ learned positions", f"{positions.max_len:,} × {width}", "embedding"))
    return boxes + _norm(module.norm)


def _layer(layer: EncoderLayer | DecoderLayer) -> list[Box]:
    causal = "causal " if isinstance(layer, DecoderLayer) else ""
    boxes = _sublayer(layer.self_attention_residual, _attention(layer.self_attention, f"{causal}self-attention"))
    if isinstance(layer, DecoderLayer) and layer.cross_attention is not None:
        cross = _attention(layer.cross_attention, "attention to the source", "encoder")
        boxes += _sublayer(layer.cross_attention_residual, cross)
    return boxes + _sublayer(layer.feed_forward_residual, _feed_forward(layer.feed_forward))


def _sublayer(residual: Any, inside: Box) -> list[Box]:
    norm, skipped = Box(type(residual.norm).__name__, "", "norm"), 1 if isinstance(residual, PostNorm) else 2
    add = Box("+ residual", skips=skipped)
    if isinstance(residual, PostNorm):
        return [inside, add, norm]
    return [inside, norm, add] if isinstance(residual, OutputNorm) else [norm, inside, add]


def _attention(module: MultiHeadAttention | SSRU, name: str, reads: str = "") -> Box:
    if isinstance(module, SSRU):
        return Box("SSRU", "", "recurrent")
    heads = module.query_proj.out_features // module.d_head
    kept = module.key_proj.out_features // module.d_head
    shape = f"{heads} heads of {module.d_head}" + (f", keys and values of {kept}" if kept != heads else "")
    if not isinstance(module.positions, NoPositions) and reads == "":
        kind = type(module.positions).__name__.removesuffix("Positions").lower()
        shape += "" if kind == "attention" else f", {kind}"
    return Box(name, shape, "attention", reads, inputs=("q", "k, v") if reads else ("q, k, v", ""))


def _feed_forward(module: Any) -> Box:
    narrow, wide = module.expand.in_features, module.expand.out_features
    kind = "SwiGLU" if isinstance(module, SwiGLU) else type(module.activation).__name__
    return Box("feed-forward", f"{narrow} → {wide} → {narrow}, {kind}", "feed-forward")


def _output(output: OutputProjection, *embeddings: Any) -> list[Box]:
    rows, width = output.weight.shape
    tied = ", the embedding's matrix" if any(output.weight is one.embedding.weight for one in embeddings) else ""
    return [Box("linear to the vocabulary", f"{width} → {rows:,}{tied}", "output"), Box("softmax")]


def _recurrent(model: Recurrent) -> list[Column]:
    tables = [one.embedding.weight for one in (model.src_embedding, model.tgt_embedding)]
    src, tgt = (Box("token embedding", f"{len(table):,} × {table.size(1)}", "embedding") for table in tables)
    encoder = [Box(SOURCE), src, *_cells(model.encoder)]
    decoder = [Box(TARGET), tgt]
    reads = "encoder"
    if isinstance(model.decoder, AttentionalDecoder):
        kind = type(model.decoder.attention).__name__.removesuffix("Attention")
        name, shape = f"{kind} attention to the source", "query: the state before"
        decoder.append(Box(name, shape, "attention", reads, inputs=("", "k, v")))
        reads = ""
    first, *others = _cells(model.decoder)
    decoder += [Box(first.name, f"{first.shape}, begins with the encoder's last state", first.kind, reads), *others]
    readout = model.decoder.readout
    decoder.append(Box("readout, tanh", f"{readout.in_features} → {readout.out_features}", "feed-forward"))
    decoder += _output(model.output, model.src_embedding, model.tgt_embedding)
    return [Column("encoder", encoder), Column("decoder", decoder)]


def _cells(stack: nn.Module) -> list[Box]:
    """The recurrent layers of a side, from the first on; of two directions the one from the right comes second."""
    cells = [(name, module) for name, module in stack.named_modules() if isinstance(module, nn.LSTM | nn.GRU)]
    boxes = []
    for name, module in cells:
        way = ", from the right" if re.fullmatch(r"layers\.\d+\.1\..*", name) else ""
        boxes.append(Box(type(module).__name__ + way, f"{module.input_size} → {module.hidden_size}", "recurrent"))
    return boxes


@styled
def architecture_figure(model: nn.Module) -> Figure:
    """The columns of a model beside each other, inputs at the bottom; a frame around what comes several times.
    Residual connections stand at the right."""
    columns = columns_of(model)
    tallest = max(len(column.boxes) for column in columns)
    total = sum(parameter.numel() for parameter in model.parameters())
    figure = new_figure(0.9 + 4.4 * len(columns), 1.3 + 0.52 * tallest, f"{type(model).__name__}, {total:,} parameters")
    axes: Any = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-0.6, WIDE * len(columns) - 0.6)
    axes.set_ylim(-0.7, tallest + 0.5)
    rounded, arrow = "round,pad=0.02", {"arrowstyle": "->", "color": MUTED}
    tops = {column.name: (WIDE * place, len(column.boxes) - 1) for place, column in enumerate(columns)}
    for place, column in enumerate(columns):
        x = WIDE * place
        axes.text(x + 1.35, len(column.boxes) - 0.05, column.name, ha="center", fontsize=9.5, fontweight="bold")
        for y, box in enumerate(column.boxes):
            color = COLORS[box.kind]
            frame = FancyBboxPatch((x, y - 0.3), 2.7, 0.6, rounded, facecolor="white", edgecolor=color, linewidth=1.4)
            axes.add_patch(frame)
            label = f"{box.name}\n{box.shape}" if box.shape else box.name
            axes.text(x + 1.35, y, label, ha="center", va="center", fontsize=7.5, color=INK, linespacing=1.25)
            if y:
                axes.annotate("", (x + 1.35, y - 0.32), (x + 1.35, y - 0.68), arrowprops=arrow)
                axes.text(x + 1.45, y - 0.5, box.inputs[0], va="center", fontsize=7, color=MUTED)
            if box.reads:
                left, top = tops[box.reads]
                middle = (left + 3.05 + x) / 2
                axes.plot([left + 2.72, middle, middle], [top, top, y], color=MUTED, linewidth=1)
                axes.annotate("", (x - 0.02, y), (middle, y), arrowprops=arrow)
                axes.text(x - 0.22, y + 0.1, box.inputs[1], ha="right", va="bottom", fontsize=7, color=MUTED)
            if box.skips:  # from the arrow into the sublayer round it to the sum
                start, right = y - box.skips - 0.5, x + 2.92
                axes.plot([x + 1.35, right, right], [start, start, y], color=TRAIN, linewidth=1)
                axes.annotate("", (x + 2.72, y), (right, y), arrowprops={**arrow, "color": TRAIN})
        if column.repeated is not None:
            first, last, times = column.repeated
            dashed: Any = {"facecolor": "none", "edgecolor": GRID, "linewidth": 1.5, "linestyle": "--"}
            axes.add_patch(FancyBboxPatch((x - 0.18, first - 0.56), 3.26, last - first + 1.0, rounded, **dashed))
            axes.text(x + 3.14, (first + last) / 2, f"× {times}", ha="left", va="center", fontsize=10, color=MUTED)
    return figure
