"""Where a model's parameters are: a nested table and a picture, each parameter counted once."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from dragoman.analysis.columns import columns
from dragoman.analysis.figure import MUTED, TRAIN, Figure, new_figure, styled

BAR_COLORS = (TRAIN, "#66aad1", "#b3d5e8")  # by depth: lighter for modules inside of another


@dataclass(frozen=True)
class ModuleCount:
    """A module, or neighbours built alike, with the parameters that are counted here for the first time."""

    path: str  # its own name; "0-3" for four alike
    depth: int
    kind: str
    copies: int
    parameters: int
    shared: str  # names of its parameters that are counted elsewhere


def parameter_counts(model: nn.Module, depth: int | None = None) -> list[ModuleCount]:
    """The modules that have parameters, outermost first, down to `depth`; layers alike are one row.

    A parameter that two modules use (tied embeddings) is counted with the first and named by the second.
    """
    owner = {id(parameter): name for name, parameter in model.named_parameters()}  # each under its first name
    return list(_walk([("", model)], type(model).__name__, 0, owner, depth))


def _walk(
    alike: Sequence[tuple[str, nn.Module]], name: str, level: int, owner: dict[int, str], depth: int | None
) -> Iterator[ModuleCount]:
    """Rows of modules built alike, given with their full paths, and of their children."""
    parameters = shared = 0
    tied: dict[str, None] = {}
    for path, module in alike:
        for inner, parameter in module.named_parameters(prefix=path):
            first = owner[id(parameter)]
            if first == inner:
                parameters += parameter.numel()
            elif path and not first.startswith(f"{path}."):
                shared += parameter.numel()
                tied[first] = None
    if not parameters and not shared:
        return
    copies = len(alike)
    kind = type(alike[0][1]).__name__
    yield ModuleCount(name, level, kind, copies, parameters, ", ".join(tied))
    if depth is not None and level >= depth:
        return
    children = [dict(module.named_children()) for _, module in alike]
    for group in _groups(alike[0][1]):
        inside = [
            (f"{path}.{n}".lstrip("."), of[n]) for (path, _), of in zip(alike, children, strict=True) for n in group
        ]
        title = group[0] if len(group) == 1 else f"{group[0]}-{group[-1]}"
        yield from _walk(inside, title, level + 1, owner, depth)


def _groups(module: nn.Module) -> list[list[str]]:
    """Names of the children; neighbours in a list that are built alike form one group."""

    def construction(child: tuple[str, nn.Module]) -> tuple[Any, ...]:
        name, part = child
        return name.isdecimal() or name, str(part), [parameter.shape for parameter in part.parameters()]

    return [[name for name, _ in group] for _, group in itertools.groupby(module.named_children(), construction)]


def parameter_table(counts: Sequence[ModuleCount]) -> str:
    """The rows as text: module, class, parameters, share of all."""
    total = counts[0].parameters
    rows = [["module", "class", f"{'parameters':>13}", f"{'share':>7}", ""]]
    for row in counts:
        kind = f"{row.copies} x {row.kind}" if row.copies > 1 else row.kind
        share = f"{100 * row.parameters / total:.1f} %" if total else ""
        note = f"+ shared: {row.shared}" if row.shared else ""
        rows.append(["  " * row.depth + row.path, kind, f"{row.parameters:,}", share, note])
    return columns(rows, left=(0, 1, 4))


@styled
def parameters_figure(counts: Sequence[ModuleCount]) -> Figure:
    """A bar for each row of the table but the first, which is the title."""
    whole, rows = counts[0], counts[1:]
    figure = new_figure(9, 1.2 + 0.23 * len(rows), f"{whole.path}: {whole.parameters:,} parameters")
    axes = figure.subplots()
    places = range(len(rows))
    top = min((row.depth for row in rows), default=1)
    colors = [BAR_COLORS[min(row.depth - top, len(BAR_COLORS) - 1)] for row in rows]
    bars = axes.barh(places, [row.parameters for row in rows], color=colors, height=0.72)
    notes = [f" {row.parameters:,}" + (f"  (+ shared: {row.shared})" if row.shared else "") for row in rows]
    axes.bar_label(bars, notes, fontsize=7.5, color=MUTED)
    names = [
        "    " * (row.depth - top) + (f"{row.path}  ({row.copies} x)" if row.copies > 1 else row.path) for row in rows
    ]
    axes.set_yticks(places, labels=names, ha="left")
    axes.tick_params(axis="y", length=0, pad=8 + 5.2 * max(map(len, names), default=0))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set(xlabel="parameters", xlim=(0, 1.45 * max((row.parameters for row in rows), default=1)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(False, axis="y")
    axes.grid(True, axis="x")
    return figure
