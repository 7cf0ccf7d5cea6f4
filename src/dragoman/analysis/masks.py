"""The masks of a batch as a target: padding, causal, and both at once.

Both at once is the textbook's mask of a decoder. Dragoman's has the causal mask alone: pads stand at the end, where
the triangle hides them from every real position, and what pads themselves see is never looked at.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Patch

from dragoman.analysis.figure import GRID, INK, MUTED, TRAIN, Figure, draw_matrix, new_figure, styled, token_axes
from dragoman.data.batch import collate
from dragoman.inference.attention_maps import labels
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.text.tokenizers.base import Tokenizer


def sentence_masks(sentences: Sequence[str], tokenizer: Tokenizer) -> list[tuple[list[str], dict[str, np.ndarray]]]:
    """(tokens, masks by name) of target sentences in one batch; (query, key) each, True = may be attended to."""
    ids = [tokenizer.encode(sentence) for sentence in sentences]
    batch = collate(list(zip(ids, ids, strict=True)))
    causal = causal_mask(batch.tgt_in.size(1))  # (1, 1, query_len, key_len)
    padding = padding_mask(batch.tgt_mask)  # (batch, 1, 1, key_len)
    masks = {"padding": padding, "causal": causal, "padding & causal": padding & causal}
    expanded = {name: mask.expand(len(batch), 1, *causal.shape[2:])[:, 0].numpy() for name, mask in masks.items()}
    return [
        (labels(tokenizer, row_ids.tolist()), {name: mask[row] for name, mask in expanded.items()})
        for row, row_ids in enumerate(batch.tgt_in)
    ]


@styled
def masks_figure(masks: Sequence[tuple[list[str], dict[str, np.ndarray]]]) -> Figure:
    """A row of three grids for each sentence."""
    side = max(1.8, 0.24 * len(masks[0][0]))
    token_len = max(len(token) for tokens, _ in masks for token in tokens)
    height = 1.3 + len(masks) * (side + 0.45 + 0.07 * token_len)
    figure = new_figure(3 * side + 1.6 + 0.08 * token_len, height, "Masks of one batch")
    panels = figure.subplots(len(masks), 3, squeeze=False)
    for row, (tokens, by_name) in zip(panels, masks, strict=True):
        row[0].set_ylabel("query (looks)")
        for axes, (name, mask) in zip(row, by_name.items(), strict=True):
            axes.set_title(name, fontsize=9)
            draw_matrix(axes, mask, low=0, high=1.5, aspect="equal")
            token_axes(axes, tokens, tokens)
            borders = np.arange(len(tokens) - 1) + 0.5
            axes.set_xticks(borders, minor=True)
            axes.set_yticks(borders, minor=True)
            axes.grid(True, which="minor", color=GRID, linewidth=0.8)
            axes.set_axisbelow(False)
            axes.tick_params(which="minor", length=0)
            for (query, key), attended in np.ndenumerate(mask) if len(tokens) <= 24 else ():  # beyond, cells are small
                color = "white" if attended else MUTED
                axes.text(key, query, str(int(attended)), ha="center", va="center", fontsize=7, color=color)
    for axes in panels[-1]:
        axes.set_xlabel("key (is looked at)")
    true = Patch(facecolor=TRAIN, edgecolor=INK, linewidth=0.5, label="1 = True: may be attended to")
    false = Patch(facecolor="white", edgecolor=INK, linewidth=0.5, label="0 = False: hidden, its weight is 0")
    figure.legend(handles=[true, false], loc="outside lower center", ncols=2)
    return figure
