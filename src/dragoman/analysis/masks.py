"""The masks of a batch as a target: padding, causal, and both at once.

Both at once is the textbook's mask of a decoder. Dragoman's has the causal mask alone: pads stand at the end, where
the triangle hides them from every real position, and what pads themselves see is never looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.analysis.examples import labels
from dragoman.analysis.figure import (
    GRID,
    INK,
    MUTED,
    TRAIN,
    Axes,
    Figure,
    draw_matrix,
    new_figure,
    styled,
    token_axes,
)
from dragoman.data.batch import collate
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.text.tokenizers.base import Tokenizer


@dataclass(frozen=True, eq=False)
class SentenceMasks:
    """The tokens of one row of a batch and its masks, (query, key) each; True = may be attended to."""

    tokens: list[str]
    padding: np.ndarray
    causal: np.ndarray
    combined: np.ndarray


def sentence_masks(sentences: Sequence[str], tokenizer: Tokenizer) -> list[SentenceMasks]:
    """The masks of sentences that stand in one batch as targets."""
    ids = [tokenizer.encode(sentence) for sentence in sentences]
    batch = collate(list(zip(ids, ids, strict=True)))
    causal = causal_mask(batch.tgt_in.size(1))  # (1, 1, query_len, key_len)
    padding = padding_mask(batch.tgt_mask)  # (batch, 1, 1, key_len)
    combined = padding & causal  # (batch, 1, query_len, key_len)
    return [
        SentenceMasks(
            labels(tokenizer, row_ids.tolist()),
            row_padding[0].expand_as(causal[0, 0]).numpy(),
            causal[0, 0].numpy(),
            row_combined[0].numpy(),
        )
        for row_ids, row_padding, row_combined in zip(batch.tgt_in, padding, combined, strict=True)
    ]


@styled
def masks_figure(masks: Sequence[SentenceMasks]) -> Figure:
    """A row of three grids for each sentence."""
    from matplotlib.patches import Patch

    side = max(1.8, 0.24 * len(masks[0].tokens))
    token_len = max(len(token) for row in masks for token in row.tokens)
    height = 1.3 + len(masks) * (side + 0.45 + 0.07 * token_len)
    figure = new_figure(3 * side + 1.6 + 0.08 * token_len, height, "Masks of one batch")
    panels = figure.subplots(len(masks), 3, squeeze=False)
    for (left, middle, right), row in zip(panels, masks, strict=True):
        _draw(left, row.padding, row.tokens, "padding")
        _draw(middle, row.causal, row.tokens, "causal")
        _draw(right, row.combined, row.tokens, "padding & causal")
        left.set_ylabel("query (looks)")
    for axes in panels[-1]:
        axes.set_xlabel("key (is looked at)")
    true = Patch(facecolor=TRAIN, edgecolor=INK, linewidth=0.5, label="1 = True: may be attended to")
    false = Patch(facecolor="white", edgecolor=INK, linewidth=0.5, label="0 = False: hidden, its weight is 0")
    figure.legend(handles=[true, false], loc="outside lower center", ncols=2)
    return figure


def _draw(axes: Axes, mask: np.ndarray, tokens: list[str], title: str) -> None:
    draw_matrix(axes, mask, low=0, high=1.5, aspect="equal")
    token_axes(axes, tokens, tokens)
    borders = np.arange(len(tokens) - 1) + 0.5
    axes.set_xticks(borders, minor=True)
    axes.set_yticks(borders, minor=True)
    axes.grid(True, which="minor", color=GRID, linewidth=0.8)
    axes.set_axisbelow(False)
    axes.tick_params(which="minor", length=0)
    axes.set_title(title, fontsize=9)
    if len(tokens) <= 24:  # beyond, cells are too small for numbers
        for (query, key), attended in np.ndenumerate(mask):
            color = "white" if attended else MUTED
            axes.text(key, query, str(int(attended)), ha="center", va="center", fontsize=7, color=color)
