"""What the pictures share: a sheet that makes room for its labels, a matrix with tokens on its axes, colours."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np

from dragoman.analysis.plots import INK, STYLE, TRAIN, VALID

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.colors
    import matplotlib.figure
    import matplotlib.image

P = ParamSpec("P")
T = TypeVar("T")
Aspect = Literal["auto", "equal"]

PALETTE = (TRAIN, VALID, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """A function that draws, with the look of `plots.STYLE`; matplotlib is loaded when it is called."""

    @functools.wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return in_style


def sheet(width: float, height: float, title: str = "") -> "matplotlib.figure.Figure":
    """An empty figure of so many inches, in which titles, labels and panels never overlap."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.06)
    figure = Figure(figsize=(width, height), layout=layout)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def shades() -> "matplotlib.colors.Colormap":
    """White to blue, for values from 0 up: attention weights, masks."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("dragoman shades", ["#ffffff", "#9ecae9", TRAIN, "#003a5d"])


def poles() -> "matplotlib.colors.Colormap":
    """Blue through white to orange, for values on both sides of 0."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("dragoman poles", [TRAIN, "#ffffff", VALID])


def draw_matrix(
    axes: "matplotlib.axes.Axes", values: Any, *, low: float, high: float, cmap: Any = None, aspect: Aspect = "auto"
) -> "matplotlib.image.AxesImage":
    """A matrix as coloured cells, row 0 on top; one pixel a cell, so that an .svg stays small and sharp."""
    axes.grid(False)
    return axes.imshow(
        np.asarray(values), vmin=low, vmax=high, cmap=cmap or shades(), aspect=aspect, interpolation="none"
    )


def token_axes(
    axes: "matplotlib.axes.Axes",
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    *,
    fontsize: float = 8.5,
) -> None:
    """Tokens along the sides of a matrix, single characters upright; None leaves a side without."""
    if columns is None:
        axes.set_xticks([])
    else:
        axes.set_xticks(range(len(columns)), labels=columns, fontsize=fontsize)
        for tick, token in zip(axes.get_xticklabels(), columns, strict=True):
            tick.set_rotation(90 if len(token) > 1 else 0)
        axes.tick_params(axis="x", length=0)
    if rows is None:
        axes.set_yticks([])
    else:
        axes.set_yticks(range(len(rows)), labels=rows, fontsize=fontsize)
        axes.tick_params(axis="y", length=0)


def cell_lines(axes: "matplotlib.axes.Axes", rows: int, columns: int, color: str = "#ffffff", width: float = 1) -> None:
    """Thin lines between the cells of a matrix, and none around it."""
    axes.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
    axes.grid(True, which="minor", color=color, linewidth=width)
    axes.set_axisbelow(False)
    axes.tick_params(which="minor", length=0)
