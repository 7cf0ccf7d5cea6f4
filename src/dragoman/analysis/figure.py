"""The look of all pictures, their layout, and how they are saved.

Colours are Okabe and Ito's, which stay apart for the colour-blind; lines differ in dash or marker as well, so that a
black-and-white print can be read. Pyplot, which has global state, is never used.
"""

import functools
import io
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from dragoman.analysis import fonts
from dragoman.errors import Error
from dragoman.progress import say

P = ParamSpec("P")
T = TypeVar("T")

INK, MUTED, GRID = "#1f2328", "#656d76", "#d0d7de"
TRAIN, VALID = "#0072b2", "#d55e00"
PALETTE = (TRAIN, VALID, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))

STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": [fonts.FAMILY],  # comes with matplotlib: the same widths on every machine
    "text.parse_math": False,  # a "$" is a dollar sign
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: selectable, searchable, and drawn in a font that has the glyph
    "svg.hashsalt": "dragoman",
    **dict.fromkeys(("font.size", "axes.labelsize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5),
    **dict.fromkeys(("text.color", "axes.titlecolor"), INK),
    **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), GRID),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.spines.left", "ytick.left"), False),
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that draws, so that it draws in `STYLE`."""

    @functools.wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> T:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return in_style


def new_figure(width: float, height: float, title: str) -> Figure:
    """An empty figure, sizes in inches, in which titles, labels and panels never overlap."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.06)
    figure = Figure(figsize=(width, height), layout=layout)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def line_style(color: int, dash: int | None = None) -> dict[str, Any]:
    """Colour and dashes by number (one number for both, unless `dash` is given)."""
    dash = color if dash is None else dash
    return {"color": PALETTE[color % len(PALETTE)], "linestyle": DASHES[dash % len(DASHES)]}


def step_axis(axes: Axes) -> None:
    """Whole numbers of steps along the x axis."""
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")


def shades() -> Colormap:
    """White to blue, for values from 0 up: attention weights, masks."""
    return LinearSegmentedColormap.from_list("dragoman shades", ["#ffffff", "#9ecae9", TRAIN, "#003a5d"])


def poles() -> Colormap:
    """Blue through white to orange, for values on both sides of 0."""
    return LinearSegmentedColormap.from_list("dragoman poles", [TRAIN, "#ffffff", VALID])


def draw_matrix(
    axes: Axes, values: Any, low: float, high: float, cmap: Any = None, aspect: Literal["auto", "equal"] = "auto"
) -> Any:
    """Draw a matrix as coloured cells, row 0 on top; one pixel a cell, so that an .svg stays small and sharp."""
    axes.grid(False)
    return axes.imshow(
        np.asarray(values), vmin=low, vmax=high, cmap=cmap or shades(), aspect=aspect, interpolation="none"
    )


def token_axes(axes: Axes, rows: Sequence[str] | None, columns: Sequence[str] | None, *, fontsize: float = 8.5) -> None:
    """Tokens along the sides of a matrix, single characters upright; None leaves a side without."""
    axes.set_xticks(range(len(columns or ())), labels=columns or (), fontsize=fontsize)
    for tick, token in zip(axes.get_xticklabels(), columns or (), strict=True):
        tick.set_rotation(90 if len(token) > 1 else 0)
    axes.set_yticks(range(len(rows or ())), labels=rows or (), fontsize=fontsize)
    axes.tick_params(length=0)


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as its path ends: .svg, .png or .pdf. The same figure gives the same bytes.

    Characters that no installed font can draw are named on stderr. Raises DragomanError for another ending.
    """
    path = Path(path)
    check_suffix(path)
    if path.suffix.lower() == ".svg":
        path.write_text(to_svg(figure) + "\n", encoding="utf-8", newline="\n")
        return path
    missing = fonts.use_fallbacks(figure)
    if missing:
        shown = missing if len(missing) <= 12 else f"{missing[:12]}…"
        say(
            f"{path}: no font on this machine can draw {shown!r}, so boxes stand there: use .svg, for which a browser "
            "finds a font, or install one (`pip install dragoman[cjk]`)"
        )
    metadata = {".png": {"Software": None}, ".pdf": {"CreationDate": None, "Creator": None, "Producer": None}}
    _savefig(figure, path, dpi=200, metadata=metadata[path.suffix.lower()])
    return path


def check_suffix(path: Path) -> None:
    """Raise DragomanError unless a picture can be saved under this name."""
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise Error.UNKNOWN_FORMAT(
            f"cannot save a picture as {path.suffix or 'a file without a suffix'}", "use .svg, .png or .pdf", file=path
        )


def to_svg(figure: Figure) -> str:
    """The figure as an <svg> element that can stand in a page or alone: no date, no version, a clear background."""
    fonts.use_fallbacks(figure)
    buffer = io.StringIO()
    _savefig(figure, buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(<g) id="[a-z0-9]+_\d+"', r"\1", svg)  # figure_1, axes_1: unused, and not unique in a page of many
    return svg.strip()


@styled
def _savefig(figure: Figure, target: Any, **options: Any) -> None:
    with warnings.catch_warnings():  # `save` names missing characters; in an .svg the browser finds them
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.savefig(target, **options)
