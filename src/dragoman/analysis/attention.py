"""Attention maps of one sentence pair: every layer and head as small multiples, or one of them large.

The maps are `Seq2SeqModel.attention_maps`, "encoder.0.self", "decoder.0.cross", or "decoder.cross" for a decoder
without numbered layers, so every family that attends is drawn by the same lines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dragoman.analysis.examples import labels
from dragoman.analysis.figure import draw_matrix, shades, sheet, styled, token_axes
from dragoman.data.batch import collate
from dragoman.decoding.search import search
from dragoman.errors import DragomanError
from dragoman.inference.translator import Translator

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure


@dataclass(frozen=True, eq=False)
class AttentionKind:
    """All maps of one kind: `layers[i]` is (num_heads, query_len, key_len)."""

    name: str
    title: str
    query_label: str
    key_label: str
    queries: list[str]
    keys: list[str]
    layers: list[np.ndarray]


def attention_of(translator: Translator, sentence: str, target: str | None = None) -> dict[str, AttentionKind]:
    """The attention of a run while it says `target`, or, without one, its own translation of `sentence`.

    Raises DragomanError for a blank sentence and for a model that has no attention.
    """
    tokenizers = translator.tokenizers
    src_ids = tokenizers.src.encode(translator.normalize(sentence))
    if not src_ids:
        raise DragomanError("there is no attention to show: the sentence is blank")
    said = translator.normalize(target) if target is not None else None
    tgt_ids = tokenizers.tgt.encode(said) if said is not None else _translate(translator, src_ids)
    batch = collate([(src_ids, tgt_ids)]).to(translator.device)
    # Of a translation that came to no end the last token was said, and there is no position to read it at.
    longest = translator.model.max_target_length if target is None else None
    tgt_in, tgt_out = batch.tgt_in[:, :longest], batch.tgt_out[:, :longest]
    with torch.inference_mode():
        maps = translator.model.attention_maps(batch.src, batch.src_mask, tgt_in)
    if not maps:
        raise DragomanError(f"{type(translator.model).__name__}: this model attends to nothing, so there are no maps")
    src = labels(tokenizers.src, batch.src[0].tolist())
    return attention_kinds(maps, src, *(labels(tokenizers.tgt, ids[0].tolist()) for ids in (tgt_in, tgt_out)))


def _translate(translator: Translator, src_ids: list[int]) -> list[int]:
    """The ids of the best translation: its text encoded again could be other pieces."""
    batch = collate([(src_ids, [])]).to(translator.device)
    decoding = replace(translator.decoding, n_best=translator.decoding.num_candidates)
    [found] = search(translator.model, batch.src, batch.src_mask, decoding)
    best = translator.ranked(found)[0].text
    said = [item for item in found if translator.tokenizers.tgt.decode(item.ids) == best]
    return max(said, key=lambda item: item.score).ids


def attention_kinds(
    maps: Mapping[str, Tensor], src: list[str], tgt_in: list[str], tgt_out: list[str]
) -> dict[str, AttentionKind]:
    """The maps of a batch of one, sorted by kind and layer, with the tokens of their sides."""
    kinds: dict[str, AttentionKind] = {}
    for name, weights in maps.items():
        side, *_, relation = name.split(".")
        kind = f"{side}-{relation}"
        if kind not in kinds:
            title, query_label, key_label, queries, keys = {
                "encoder-self": ("Encoder self-attention", "source token", "looks at source token", src, src),
                "decoder-self": ("Decoder self-attention", "decoder input", "looks at decoder input", tgt_in, tgt_in),
                "decoder-cross": ("Cross-attention", "token to be said next", "looks at source token", tgt_out, src),
            }[kind]
            kinds[kind] = AttentionKind(kind, title, query_label, key_label, queries, keys, [])
        kinds[kind].layers.append(weights[0].float().cpu().numpy())
    return kinds


def check_choice(kinds: Mapping[str, AttentionKind], layer: int | None, head: int | None) -> None:
    """Raise DragomanError for a layer or head, counted from 0, that no kind of attention has."""
    layers = max(len(kind.layers) for kind in kinds.values())
    heads = max(len(weights) for kind in kinds.values() for weights in kind.layers)
    for name, chosen, count in (("layer", layer, layers), ("head", head, heads)):
        if chosen is not None and not 0 <= chosen < count:
            raise DragomanError(f"there is no {name} {chosen}: {name}s are 0 to {count - 1}")


def attention_arrays(
    kinds: Mapping[str, AttentionKind], layer: int | None = None, head: int | None = None
) -> dict[str, np.ndarray]:
    """Maps as arrays of (num_heads, query_len, key_len), named `decoder.0.cross`, and the tokens of their sides.

    A layer or head that is chosen comes alone; a chosen head keeps its axis, of size 1.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, kind in kinds.items():
        side, relation = name.split("-")
        for number, weights in enumerate(kind.layers):
            if layer in (None, number):
                arrays[f"{side}.{number}.{relation}"] = weights if head is None else weights[head : head + 1]
        arrays |= {f"{name}.queries": np.array(kind.queries), f"{name}.keys": np.array(kind.keys)}
    return arrays


@styled
def attention_figure(
    kind: AttentionKind, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
) -> "matplotlib.figure.Figure | None":
    """A row for each layer and a column for each head, of those chosen (None: all); None where nothing is left."""
    rows = [i for i in range(len(kind.layers)) if layers is None or i in layers]
    columns = [i for i in range(max(map(len, kind.layers))) if heads is None or i in heads]
    if not rows or not columns:
        return None
    large = len(rows) == len(columns) == 1
    cell = 0.36 if large else 0.17
    width, height = max(1.3, cell * len(kind.keys)), max(1.1, cell * len(kind.queries))
    key_room, query_room = (0.085 * max(map(len, tokens)) + 0.3 for tokens in (kind.keys, kind.queries))
    title = kind.title + (f", layer {rows[0]}, head {columns[0]}" if large else "")
    figure = sheet(
        max(4.5, 1.3 + query_room + len(columns) * (width + 0.25)),
        1.0 + key_room + len(rows) * (height + 0.45),
        title,
    )
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    image = None
    for panel_row, layer in zip(panels, rows, strict=True):
        for axes, head in zip(panel_row, columns, strict=True):
            if head >= len(kind.layers[layer]):
                axes.set_visible(False)
                continue
            image = draw_matrix(axes, kind.layers[layer][head], low=0, high=1, aspect="equal")
            token_axes(
                axes,
                kind.queries if head == columns[0] else None,
                kind.keys if layer == rows[-1] else None,
                fontsize=9 if large else 7,
            )
            _frame(axes)
            if large:
                _numbers(axes, kind.layers[layer][head])
            else:
                axes.set_title(f"layer {layer}, head {head}", fontsize=8, pad=4)
    figure.supxlabel(kind.key_label, fontsize=9)
    figure.supylabel(kind.query_label, fontsize=9)
    if image is None:  # the layers chosen have no such head
        return None
    unit = "attention weight (in cells: %)" if large else "attention weight"
    shrink = min(0.8, 1.6 / len(rows) + 0.2)
    bar_inches = 0.2
    figure.colorbar(image, ax=panels, label=unit, shrink=shrink, aspect=shrink * figure.get_figheight() / bar_inches)
    return figure


def _frame(axes: "matplotlib.axes.Axes") -> None:
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(True)


def _numbers(axes: "matplotlib.axes.Axes", weights: np.ndarray) -> None:
    """Hundredths in the cells, where they are large enough to be of interest."""
    dark = shades().N * 0.4
    for (query, key), weight in np.ndenumerate(weights):
        if weight >= 0.05:
            color = "white" if weight * shades().N > dark else "black"
            axes.text(key, query, f"{100 * weight:.0f}", ha="center", va="center", fontsize=7, color=color)
