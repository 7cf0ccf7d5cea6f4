"""LayerNorm against BatchNorm on a batch of sentences: which cells are taken together, and what follows from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from dragoman.analysis.examples import words_of
from dragoman.analysis.figure import INK, Axes, Figure, draw_matrix, new_figure, poles, styled, token_axes
from dragoman.data.batch import collate_src
from dragoman.inference.attention_maps import labels
from dragoman.nn.residual import NORMS

GROUPS = {
    "token": "one token's features together",
    "feature": "one feature of all tokens together",
    "": "made-up vectors, padding is 0",
}
"""Cells that are normalised together."""


@dataclass(frozen=True, eq=False)
class Normed:
    """A batch after one norm."""

    values: np.ndarray  # (batch, len, features)
    group: str  # of `GROUPS`
    neighbour_effect: float
    """Largest change of a value of the first sentence when that sentence is normalised alone, without padding."""


def normed_batch(
    sentences: Sequence[str], features: int = 10, seed: int = 1
) -> tuple[list[list[str]], dict[str, Normed]]:
    """Tokens of padded sentences, and made-up vectors of them before and after each norm, by the norm's name.

    Tokens and features differ in size, as they do inside a network; padding is zeros, as the embedding makes it.
    """
    tokenizer = words_of(sentences).src
    src, src_mask = collate_src([tokenizer.encode(sentence) for sentence in sentences])
    generator = torch.Generator().manual_seed(seed)
    batch, length = src.shape
    values = torch.randn(batch, length, features, generator=generator)
    values = values * (0.3 + 1.5 * torch.rand(batch, length, 1, generator=generator))
    values = (values + torch.randn(features, generator=generator)) * src_mask[..., None]
    first = values[:1, : int(src_mask[0].sum())]

    versions = {"before": Normed(values.numpy(), "", 0.0)}
    for name, (group, norm) in _norms(features).items():
        with torch.no_grad():
            after, alone = norm(values), norm(first)
        effect = float((after[:1, : first.size(1)] - alone).abs().max())
        versions[name] = Normed(after.numpy(), group, effect)
    return [labels(tokenizer, ids.tolist()) for ids in src], versions


def _norms(features: int) -> dict[str, tuple[str, Callable[[Tensor], Tensor]]]:
    """(group, norm) by name."""
    names = {"layer": "LayerNorm", "rms": "RMSNorm"}
    batch_norm = nn.BatchNorm1d(features)  # takes (batch, features, len)
    return {
        **{names.get(name, name): ("token", build(features)) for name, build in NORMS.items()},
        "BatchNorm1d": ("feature", lambda values: batch_norm(values.transpose(1, 2)).transpose(1, 2)),
    }


@styled
def norms_figure(sentences: Sequence[Sequence[str]], versions: Mapping[str, Normed]) -> Figure:
    """A column for each version; an outline marks one group of cells that are normalised together."""
    height = 1.5 + len(sentences) * (0.24 * len(sentences[0]) + 0.2)
    figure = new_figure(1.6 + 2.5 * len(versions), height, "Norms on a batch of sentences")
    panels = figure.subplots(len(sentences), len(versions), squeeze=False)
    for column, (name, version) in enumerate(versions.items()):
        for row, tokens in enumerate(sentences):
            axes = panels[row, column]
            draw_matrix(axes, version.values[row], low=-3.0, high=3.0, cmap=poles())
            token_axes(axes, tokens if column == 0 else None, None)
            axes.spines[:].set_visible(True)
            _outline(axes, version, row)
        panels[0, column].set_title(f"{name}\n{GROUPS[version.group]}")
        effect = f"\nsentence 1 without the others\nchanges by up to {version.neighbour_effect:.2f}"
        panels[-1, column].set_xlabel("features" + (effect if version.group else "\n \n "))
    figure.colorbar(panels[0, 0].images[0], ax=panels, label="value", shrink=0.6, aspect=30, extend="both")
    return figure


def _outline(axes: Axes, version: Normed, row: int) -> None:
    """One group of cells: a token of the first sentence, or a feature in all sentences, pads included."""
    _, length, features = version.values.shape
    if version.group == "token" and row == 0:
        corner, width, height = (-0.5, 0.5), features, 1
    elif version.group == "feature":
        corner, width, height = (1.5, -0.5), 1, length
    else:
        return
    axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=INK, linewidth=2, clip_on=False, zorder=5))
