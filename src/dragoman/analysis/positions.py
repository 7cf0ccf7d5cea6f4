"""Position schemes: the sinusoidal table in its layouts, rotary turns, ALiBi's biases, positions that were learned."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.patches import Circle
from torch import Tensor, nn

from dragoman.analysis.figure import (
    GRID,
    INK,
    MUTED,
    PALETTE,
    Axes,
    Figure,
    draw_matrix,
    line_style,
    new_figure,
    poles,
    shades,
    styled,
)
from dragoman.errors import Error
from dragoman.nn.positions import AlibiPositions, LearnedPositions, RotaryPositions, sinusoidal_table

# --- sinusoidal ------------------------------------------------------------------------------------------------------


def sinusoidal_layouts(length: int, d_model: int, base: float = 10_000.0) -> dict[str, Float[Tensor, "length d_model"]]:
    """The same waves put together in four ways; with one kind alone, twice as many frequencies fill the columns."""
    sine, cosine = sinusoidal_table(length, 2 * d_model, base=base, layout="half_split").chunk(2, dim=1)
    return {
        "sine only": sine,
        "cosine only": cosine,
        "interleaved (the paper)": sinusoidal_table(length, d_model, base=base),
        "half-split": sinusoidal_table(length, d_model, base=base, layout="half_split"),
    }


def similarity(table: Float[Tensor, "length d_model"], start: int) -> Float[Tensor, " distances"]:
    """The dot products of position `start` with itself and the positions after it, divided by the first."""
    return table[start:] @ table[start] / (table[start] @ table[start])


@styled
def sinusoidal_figure(length: int, d_model: int, base: float = 10_000.0, rows: Sequence[int] = ()) -> Figure:
    """Heat maps of the four layouts; below, a few dimensions as curves (or the given rows), and how alike two
    positions are."""
    layouts = sinusoidal_layouts(length, d_model, base)
    figure = new_figure(12, 7.6, f"Sinusoidal positions, d_model {d_model}, base {base:,g}")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.1, 1), squeeze=False)[:, 0]
    maps = upper.subplots(1, 4, sharey=True)
    for axes, (name, table) in zip(maps, layouts.items(), strict=True):
        draw_matrix(axes, table, low=-1, high=1, cmap=poles())
        axes.set(title=name, xlabel="dimension")
    maps[0].set_ylabel("position")
    upper.colorbar(maps[0].images[0], ax=maps, label="value", aspect=30)
    waves, alike = lower.subplots(1, 2)
    if rows:
        _draw_rows(waves, {place: sinusoidal_table(1, d_model, base=base, offset=place)[0] for place in rows})
    else:
        _draw_waves(waves, layouts["interleaved (the paper)"], base)
    _draw_similarity(alike, layouts)
    return figure


def _draw_waves(axes: Axes, table: Tensor, base: float) -> None:
    length, d_model = table.shape
    pairs = sorted({d_model // 2 * part // 8 for part in (1, 2, 3)})
    for number, pair in enumerate(pairs):
        wavelength = 2 * math.pi * base ** (2 * pair / d_model)
        for offset, wave, dash in ((0, "sin", "-"), (1, "cos", "--")):
            name = f"{2 * pair + offset}, {wave}, wavelength {wavelength:,.0f}"
            axes.plot(range(length), table[:, 2 * pair + offset], color=PALETTE[number], linestyle=dash, label=name)
    axes.set(title="a few dimensions of the interleaved table", xlabel="position", ylabel="value", ylim=(-1.1, 1.95))
    axes.set_yticks([-1, 0, 1])
    axes.legend(loc="upper left", ncols=3, fontsize=7.5, columnspacing=1.2)


def _draw_rows(axes: Axes, rows: Mapping[int, Tensor]) -> None:
    for number, (position, values) in enumerate(rows.items()):
        axes.plot(range(len(values)), values, marker="o", markersize=3, label=f"{position}", **line_style(number))
    axes.set(title="rows of the interleaved table", xlabel="dimension", ylabel="value", ylim=(-1.1, 1.6))
    axes.set_yticks([-1, 0, 1])
    axes.legend(title="position", loc="upper left", ncols=8, fontsize=7.5, title_fontsize=7.5)


def _draw_similarity(axes: Axes, layouts: Mapping[str, Tensor]) -> None:
    for color, name in enumerate(("interleaved (the paper)", "sine only")):
        table = layouts[name]
        for dash, start in enumerate(_starts(len(table))):
            values = similarity(table, start)[: len(table) // 2]
            label = f"{name.split(' (')[0]}, from position {start}"
            axes.plot(range(len(values)), values, label=label, linewidth=1.3, **line_style(color, dash))
    axes.set(title="with sine and cosine, likeness depends on the distance alone", xlabel="distance of two positions")
    axes.set_ylabel("dot product (with itself: 1)")
    axes.set_ylim(top=1.45 * axes.get_ylim()[1])
    axes.legend(loc="upper left", ncols=2, fontsize=7.5)


def _starts(length: int) -> list[int]:
    """Three positions to count distances from."""
    return sorted({1, length // 10, length // 3})


# --- rotary ----------------------------------------------------------------------------------------------------------


def rotary_angles(length: int, d_head: int) -> Float[Tensor, "length pairs"]:
    """The angle by which each pair of dimensions is turned at each position, in radians from -pi to pi."""
    right = torch.tensor([1.0, 0.0]).repeat(d_head // 2).expand(1, 1, length, -1)
    turned = RotaryPositions(d_head).rotate(right, 0)[0, 0].unflatten(-1, (-1, 2))  # (length, pairs, 2)
    return torch.atan2(turned[..., 1], turned[..., 0])


def rotary_scores(length: int, d_head: int, starts: list[int], seed: int = 1) -> dict[int, Float[Tensor, " distances"]]:
    """The dot product of one vector as the query at position `start + distance` and as the key at `start`."""
    vector = torch.randn(d_head, generator=torch.Generator().manual_seed(seed))
    turned = RotaryPositions(d_head).rotate(vector.expand(1, 1, max(starts) + length, -1), 0)[0, 0]
    return {start: turned[start : start + length] @ turned[start] for start in starts}


@styled
def rotary_figure(length: int, d_head: int) -> Figure:
    """Pairs of dimensions as clock hands; the angles; a score that knows the distance and not the positions."""
    figure = new_figure(12, 7.0, f"Rotary positions, {d_head} dimensions a head")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.25), squeeze=False)[:, 0]
    angles = rotary_angles(length, d_head)
    _draw_hands(upper.subplots(), angles[: min(length, 22)])
    heat, scores = lower.subplots(1, 2)
    image = draw_matrix(heat, angles, low=-math.pi, high=math.pi, cmap="twilight_shifted")
    heat.set(title="angle by which a pair is turned", xlabel="pair of dimensions", ylabel="position")
    bar = lower.colorbar(image, ax=heat, label="angle")
    bar.set_ticks([-math.pi, 0, math.pi], labels=["−π", "0", "π"])
    for number, (start, values) in enumerate(rotary_scores(length // 2, d_head, _starts(length)).items()):
        width = 5.5 - 1.9 * number  # thinner each time, so that all of the curves can be seen, which coincide
        scores.plot(range(len(values)), values, label=f"key at position {start}", linewidth=width, **line_style(number))
    scores.set(title="one vector as query and as key: the curves coincide", ylabel="dot product")
    scores.set_xlabel("query position − key position")
    scores.legend(loc="best", fontsize=7.5)
    return figure


def _draw_hands(axes: Axes, angles: Tensor) -> None:
    """A clock for each position (column) and a few pairs (rows), its hand at the angle of the turn."""
    length, pairs = angles.shape
    shown = sorted({0, pairs // 8, pairs // 4, pairs // 2} - {pairs})
    for row, pair in enumerate(shown):
        color = PALETTE[row % len(PALETTE)]
        for position, angle in enumerate(angles[:, pair].tolist()):
            x, y = position + 0.42 * math.cos(angle), -row + 0.42 * math.sin(angle)
            axes.add_patch(Circle((position, -row), 0.42, fill=False, edgecolor=color, linewidth=0.5, alpha=0.6))
            axes.plot([position, x], [-row, y], color=color, linewidth=1.6)
            axes.plot([x], [y], color=color, marker="o", markersize=3)
    axes.set_title("each pair of dimensions is a hand that turns on at every position, at its own speed")
    axes.set_yticks([-row for row in range(len(shown))], labels=[f"pair {pair}" for pair in shown])
    axes.set_xticks(range(0, length, 2))
    axes.set(xlabel="position", xlim=(-0.6, length - 0.4), ylim=(-len(shown) + 0.4, 0.6), aspect="equal")
    axes.grid(False)


# --- ALiBi -----------------------------------------------------------------------------------------------------------


@styled
def alibi_figure(length: int, num_heads: int) -> Figure:
    """The bias against the distance for each head, how far a head looks, and the biases of some heads as matrices."""
    biases = AlibiPositions(num_heads).bias(torch.empty(1, num_heads, length, 0), 0, length)[
        0
    ]  # (num_heads, queries, keys)
    figure = new_figure(12, 7.4, f"ALiBi, {num_heads} heads")
    upper, lower = figure.subfigures(2, 1, squeeze=False)[:, 0]
    lines, weights = upper.subplots(1, 2)
    last_row = biases[:, -1].flip(-1)  # by distance from the last query
    for head, row in enumerate(last_row):
        style = line_style(head, head // len(PALETTE))
        lines.plot(range(length), row, label=f"{head}: slope {-float(row[1]):.3g}", **style)
        weights.plot(range(length), row.softmax(-1), label=str(head), **style)
    lines.set(title="added to the score, by head", xlabel="distance", ylabel="bias")
    lines.legend(title="head", loc="lower left", fontsize=7.5)
    weights.set(title="attention if the scores are all equal", xlabel="distance", ylabel="weight", yscale="log")
    weights.set_ylim(1e-4, 1.5)
    side = min(length, 48)
    future = np.triu(np.ones((side, side), dtype=np.bool_), 1)
    heads = sorted({num_heads * part // 4 for part in range(4)})
    panels = lower.subplots(1, len(heads), squeeze=False)[0]
    for axes, head in zip(panels, heads, strict=True):
        visible = np.where(future, np.nan, biases[head, :side, :side].numpy())
        draw_matrix(axes, visible, low=-6, high=0, aspect="equal", cmap=shades().with_extremes(bad=GRID))
        axes.set(title=f"head {head} (grey: masked)", xlabel="key position")
    panels[0].set_ylabel("query position")
    lower.colorbar(panels[0].images[0], ax=panels, label="bias", extend="min", shrink=0.7)
    return figure


# --- learned ---------------------------------------------------------------------------------------------------------


def learned_tables(model: nn.Module) -> dict[str, Float[Tensor, "max_len d_model"]]:
    """Every table of learned positions in a model, by its module's name. Raises DragomanError when there is none."""
    tables = {
        name: module.embedding.weight.detach().cpu()
        for name, module in model.named_modules()
        if isinstance(module, LearnedPositions)
    }
    if not tables:
        raise Error.UNSUPPORTED("this run has no learned positions (model.position: {type: learned})")
    return tables


@styled
def learned_figure(tables: Mapping[str, Tensor], length: int) -> Figure:
    """A row for each table: its values, how alike its positions are, and their size (where training never came)."""
    figure = new_figure(12, 0.6 + 3.6 * len(tables), "Learned positions")
    panels = figure.subplots(len(tables), 3, squeeze=False)
    for (values, alike, norms), (name, table) in zip(panels, tables.items(), strict=True):
        table = table[:length]
        limit = float(table.abs().quantile(0.99)) or 1.0
        image = draw_matrix(values, table, low=-limit, high=limit, cmap=poles())
        values.set(title=name, xlabel="dimension", ylabel="position")
        figure.colorbar(image, ax=values, label="value", extend="both")
        unit = nn.functional.normalize(table, dim=-1)
        image = draw_matrix(alike, unit @ unit.T, low=-1, high=1, cmap=poles(), aspect="equal")
        alike.set(title="how alike two positions are", xlabel="position", ylabel="position")
        figure.colorbar(image, ax=alike, label="cosine similarity")
        norms.plot(range(len(table)), table.norm(dim=-1), color=INK)
        norms.axhline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
        norms.set(title="size of the vectors (dashed: untrained)", xlabel="position", ylabel="norm")
        norms.set_ylim(bottom=0)
    return figure
