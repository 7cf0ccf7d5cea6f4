"""Pictures of attention maps (`inference/attention_maps.py`)."""

import itertools

import numpy as np

from dragoman.analysis.figure import Axes, Figure, draw_matrix, new_figure, styled, token_axes
from dragoman.inference.attention_maps import AttentionKind

LABELS = {
    "encoder.self": ("Encoder self-attention", "source token", "looks at source token"),
    "decoder.self": ("Decoder self-attention", "decoder input", "looks at decoder input"),
    "decoder.cross": ("Cross-attention", "token to be said next", "looks at source token"),
}
"""Title, label of the queries and label of the keys of each kind of attention."""


@styled
def attention_figure(kind: AttentionKind, layer: int | None = None, head: int | None = None) -> Figure:
    """A row for each layer, a column for each head; one layer and head alone is drawn large, with its weights."""
    title, query_label, key_label = LABELS[kind.name]
    rows = list(range(len(kind.layers))) if layer is None else [layer]
    columns = list(range(len(kind.layers[0]))) if head is None else [head]
    large = len(rows) == len(columns) == 1
    cell = 0.36 if large else 0.17
    width, height = max(1.3, cell * len(kind.keys)), max(1.1, cell * len(kind.queries))
    key_inches, query_inches = (0.085 * max(map(len, tokens)) + 0.3 for tokens in (kind.keys, kind.queries))
    figure = new_figure(
        max(4.5, 1.3 + query_inches + len(columns) * (width + 0.25)),
        1.0 + key_inches + len(rows) * (height + 0.45),
        title + (f", layer {rows[0]}, head {columns[0]}" if large else ""),
    )
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for (row, layer), (column, head) in itertools.product(enumerate(rows), enumerate(columns)):
        axes, weights = panels[row, column], kind.layers[layer][head]
        draw_matrix(axes, weights, low=0, high=1, aspect="equal")
        queries, keys = kind.queries if column == 0 else None, kind.keys if layer == rows[-1] else None
        token_axes(axes, queries, keys, fontsize=9 if large else 7)
        axes.spines[:].set_visible(True)
        if large:
            _write_percentages(axes, weights)
        else:
            axes.set_title(f"layer {layer}, head {head}", fontsize=8, pad=4)
    figure.supxlabel(key_label, fontsize=9)
    figure.supylabel(query_label, fontsize=9)
    unit = "attention weight (in cells: %)" if large else "attention weight"
    shrink = min(0.8, 1.6 / len(rows) + 0.2)
    bar_inches = 0.2
    aspect = shrink * figure.get_figheight() / bar_inches
    figure.colorbar(panels[0, 0].images[0], ax=panels, label=unit, shrink=shrink, aspect=aspect)
    return figure


def _write_percentages(axes: Axes, weights: np.ndarray) -> None:
    """Write weights of at least 5 % into their cells."""
    for (query, key), weight in np.ndenumerate(weights):
        if weight >= 0.05:
            color = "white" if weight > 0.4 else "black"
            axes.text(key, query, f"{100 * weight:.0f}", ha="center", va="center", fontsize=7, color=color)
