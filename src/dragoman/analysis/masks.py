"""The masks of a batch as a target: padding, subsequent, and both at once.

Both at once is the textbook's mask of a decoder. Dragoman's has the subsequent mask alone: pads stand at the end, where
the triangle hides them from every real position, and what pads themselves see is never looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dragoman.analysis.examples import labels
from dragoman.analysis.figure import cell_lines, draw_matrix, sheet, styled, token_axes
from dragoman.analysis.plots import GRID, INK, MUTED, TRAIN
from dragoman.data.batch import collate
from dragoman.nn.masks import key_mask, subsequent_mask
from dragoman.text.tokenizers.base import Tokenizer

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure


@dataclass(frozen=True, eq=False)
class SentenceMasks:
    """The tokens of one row of a batch and its masks, (query, key) each; True = may be attended to."""

    tokens: list[str]
    padding: np.ndarray
    subsequent: np.ndarray
    combined: np.ndarray


def sentence_masks(sentences: Sequence[str], tokenizer: Tokenizer) -> list[SentenceMasks]:
    """The masks of sentences that stand in one batch as targets."""
    ids = [tokenizer.encode(sentence) for sentence in sentences]
    batch = collate(list(zip(ids, ids, strict=True)))
    subsequent = subsequent_mask(batch.tgt_in.size(1))
    padding = key_mask(batch.tgt_mask)  # (batch, 1, 1, key_len)
    combined = padding & subsequent  # (batch, 1, query_len, key_len)
    return [
        SentenceMasks(
            labels(tokenizer, row_ids.tolist()),
            row_padding[0].expand_as(subsequent).numpy(),
            subsequent.numpy(),
            row_combined[0].numpy(),
        )
        for row_ids, row_padding, row_combined in zip(batch.tgt_in, padding, combined, strict=True)
    ]


@styled
def masks_figure(masks: Sequence[SentenceMasks]) -> "matplotlib.figure.Figure":
    """A row of three grids for each sentence."""
    length = len(masks[0].tokens)
    side = max(1.8, 0.24 * length)
    longest = max(len(token) for row in masks for token in row.tokens)
    figure = sheet(
        3 * side + 1.6 + 0.08 * longest, 1.3 + len(masks) * (side + 0.45 + 0.07 * longest), "Masks of one batch"
    )
    panels = figure.subplots(len(masks), 3, squeeze=False)
    for (left, middle, right), row in zip(panels, masks, strict=True):
        _draw(left, row.padding, row.tokens, "padding")
        _draw(middle, row.subsequent, row.tokens, "subsequent")
        _draw(right, row.combined, row.tokens, "padding & subsequent")
        left.set_ylabel("query (looks)")
    for axes in panels[-1]:
        axes.set_xlabel("key (is looked at)")
    _legend(figure)
    return figure


def _draw(axes: "matplotlib.axes.Axes", mask: np.ndarray, tokens: list[str], title: str) -> None:
    draw_matrix(axes, mask, low=0, high=1.5, aspect="equal")
    token_axes(axes, tokens, tokens)
    cell_lines(axes, len(tokens), len(tokens), GRID, 0.8)
    axes.set_title(title, fontsize=9)
    if len(tokens) > 24:
        return
    for (query, key), seen in np.ndenumerate(mask):
        axes.text(
            key, query, "1" if seen else "0", ha="center", va="center", fontsize=7, color="white" if seen else MUTED
        )


def _legend(figure: "matplotlib.figure.Figure") -> None:
    from matplotlib.patches import Patch

    shown = Patch(facecolor=TRAIN, edgecolor=INK, linewidth=0.5, label="1 = True: may be attended to")
    hidden = Patch(facecolor="white", edgecolor=INK, linewidth=0.5, label="0 = False: hidden, its weight is 0")
    figure.legend(handles=[shown, hidden], loc="outside lower center", ncols=2)
