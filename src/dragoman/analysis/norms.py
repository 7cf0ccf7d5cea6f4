"""LayerNorm against BatchNorm on a batch of sentences: which cells are taken together, and what follows from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.analysis.examples import labels, words_of
from dragoman.analysis.figure import draw_matrix, poles, sheet, styled, token_axes
from dragoman.analysis.plots import INK
from dragoman.data.batch import collate_src
from dragoman.nn.residual import NORMS

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure


@dataclass(frozen=True, eq=False)
class Normed:
    """What a norm makes of a batch (batch, len, features), and whether it looks beyond a sentence."""

    name: str
    values: np.ndarray
    group: str
    """Cells normalised together: "token" (a row), "feature" (a column through all sentences), "" for none."""
    neighbour_effect: float
    """How far a value of the first sentence moves when that sentence is normalised alone, without padding."""


@dataclass(frozen=True, eq=False)
class NormedBatch:
    tokens: list[list[str]]
    versions: list[Normed]


def normed_batch(sentences: Sequence[str], features: int = 10, seed: int = 1) -> NormedBatch:
    """Made-up vectors for the tokens of padded sentences, before and after every norm of `NORMS` and BatchNorm1d.

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

    versions = [Normed("before", values.numpy(), "", 0.0)]
    for name, (group, norm) in _norms(features).items():
        with torch.no_grad():
            after, alone = norm(values), norm(first)
        effect = float((after[:1, : first.size(1)] - alone).abs().max())
        versions.append(Normed(name, after.numpy(), group, effect))
    return NormedBatch([labels(tokenizer, ids.tolist()) for ids in src], versions)


def _norms(features: int) -> dict[str, tuple[str, Callable[[Tensor], Tensor]]]:
    names = {"layer": "LayerNorm", "rms": "RMSNorm"}
    table: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
        names.get(name, name): ("token", build(features)) for name, build in NORMS.items()
    }

    def batch_norm(values: Tensor) -> Tensor:
        after: Tensor = nn.BatchNorm1d(features)(values.transpose(1, 2))  # it wants (batch, features, len)
        return after.transpose(1, 2)

    return table | {"BatchNorm1d": ("feature", batch_norm)}


@styled
def norms_figure(batch: NormedBatch) -> "matplotlib.figure.Figure":
    """A column for each version; an outline marks one group of cells that are normalised together."""
    sentences, count = len(batch.tokens), len(batch.versions)
    length = len(batch.tokens[0])
    figure = sheet(1.6 + 2.5 * count, 1.5 + sentences * (0.24 * length + 0.2), "Norms on a batch of sentences")
    limit = 3.0
    panels = figure.subplots(sentences, count, squeeze=False)
    image = None
    for column, version in enumerate(batch.versions):
        for row, tokens in enumerate(batch.tokens):
            axes = panels[row][column]
            image = draw_matrix(axes, version.values[row], low=-limit, high=limit, cmap=poles())
            token_axes(axes, tokens if column == 0 else None, None)
            for side in ("top", "right", "left", "bottom"):
                axes.spines[side].set_visible(True)
            _outline(axes, version, row, sentences, length)
        panels[0][column].set_title(version.name + _group_note(version))
        panels[-1][column].set_xlabel("features\n" + _effect_note(version))
    assert image is not None
    figure.colorbar(image, ax=panels, label="value", shrink=0.6, aspect=30, extend="both")
    return figure


def _outline(axes: "matplotlib.axes.Axes", version: Normed, row: int, sentences: int, length: int) -> None:
    """One group of cells: a token of the first sentence, or a feature in all sentences, pads included."""
    from matplotlib.patches import Rectangle

    features = version.values.shape[-1]
    if version.group == "token" and row == 0:
        corner, width, height = (-0.5, 0.5), features, 1.0
    elif version.group == "feature":
        corner, width, height = (1.5, -0.5), 1.0, float(length)
    else:
        return
    axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=INK, linewidth=2, clip_on=False, zorder=5))


def _group_note(version: Normed) -> str:
    return {
        "token": "\none token's features together",
        "feature": "\none feature of all tokens together",
        "": "\nmade-up vectors, padding is 0",
    }[version.group]


def _effect_note(version: Normed) -> str:
    return (
        f"sentence 1 without the others\nchanges by up to {version.neighbour_effect:.2f}" if version.group else " \n "
    )
