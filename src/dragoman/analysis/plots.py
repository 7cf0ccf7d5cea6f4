"""Pictures from run logs. Matplotlib is loaded when a picture is drawn, and pyplot's global state never.

Colours are Okabe and Ito's, which stay apart for the colour-blind; lines differ in marker and weight as well, so that
a black-and-white print can be read.
"""

import io
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.analysis import fonts
from dragoman.errors import DragomanError
from dragoman.progress import say
from dragoman.runs.log import Event, best_validation, without_repeats

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

INK, MUTED, GRID = "#1f2328", "#656d76", "#d0d7de"
TRAIN, VALID = "#0072b2", "#d55e00"

STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": [fonts.FAMILY],  # comes with matplotlib: the same widths on every machine
    "text.parse_math": False,  # a "$" is a dollar sign
    "font.size": 9,
    "text.color": INK,
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": 9,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "ytick.left": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",  # text stays text: selectable, searchable, and drawn in a font that has the glyph
    "svg.hashsalt": "dragoman",
}


def training_curves(events: Iterable[Event], panels: Sequence[str] = ()) -> "matplotlib.figure.Figure":
    """Small multiples against the step: loss, score, rate and tokens per second; the best validation is marked.

    `panels` picks some of them (keys of `PANELS`; none: those of `panels_for`). A panel without readings says so.
    """
    import matplotlib
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    events = without_repeats(events)
    names = list(panels) or panels_for(events)
    columns = min(2, len(names))
    rows = math.ceil(len(names) / columns)
    best = best_validation(events)
    last_step = max((event["step"] for event in events if event.get("step") is not None), default=0)
    with matplotlib.rc_context(STYLE):
        figure = _sheet(rows, columns)
        for position, name in enumerate(names, start=1):
            title, unit, draw = PANELS[name]
            axes = figure.add_subplot(rows, columns, position)
            axes.set_title(title)
            axes.set_xlabel("step")
            axes.set_ylabel(unit)
            axes.yaxis.set_label_coords(-0.15, 0.5)
            if not draw(axes, events, best):
                _say_empty(axes)
                continue
            axes.set_xlim(0, 1.03 * max(1, last_step))
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
            if best is not None:
                axes.axvline(best["step"], color=MUTED, linewidth=0.9, linestyle=(0, (2, 3)), zorder=1)
    return figure


def panels_for(events: Sequence[Event]) -> list[str]:
    """The panels that suit a run: its task's score (BLEU where nothing is known yet) between loss and rate."""
    scores = [name for name in SCORES if any(event.get(name) is not None for event in events)]
    return ["loss", *(scores[:1] or ["bleu"]), "lr", "tokens_per_s"]


def save(figure: "matplotlib.figure.Figure", path: str | Path) -> Path:
    """Write a figure as what the name ends in: .svg, .png or .pdf. The same figure gives the same bytes.

    Says on stderr which characters no installed font can draw. Raises DragomanError for another ending.
    """
    import matplotlib

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
    with matplotlib.rc_context(STYLE), fonts.without_glyph_warnings():
        figure.savefig(path, dpi=200, metadata=metadata[path.suffix.lower()])
    return path


def check_suffix(path: Path) -> None:
    """Raise DragomanError unless a picture can be saved under this name."""
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise DragomanError(
            f"{path}: cannot save a picture as {path.suffix or 'a file without a suffix'}: use .svg, .png or .pdf"
        )


def to_svg(figure: "matplotlib.figure.Figure") -> str:
    """The figure as an <svg> element that can stand in a page or alone: no date, no version, a clear background."""
    import matplotlib

    fonts.use_fallbacks(figure)
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE), fonts.without_glyph_warnings():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(<g) id="[a-z0-9]+_\d+"', r"\1", svg)  # figure_1, axes_1: unused, and not unique in a page of many
    return svg.strip()


def _sheet(rows: int, columns: int) -> "matplotlib.figure.Figure":
    """An empty figure whose panels have one size and one margin, in inches, so that panels drawn apart align too."""
    from matplotlib.figure import Figure

    width, height = 5.0, 2.9
    left, right, bottom, top = 0.78, 0.12, 0.52, 0.38
    figure = Figure(figsize=(width * columns, height * rows))
    figure.subplots_adjust(
        left=left / (width * columns),
        right=1 - right / (width * columns),
        bottom=bottom / (height * rows),
        top=1 - top / (height * rows),
        wspace=(left + right) / (width - left - right),
        hspace=(bottom + top) / (height - bottom - top),
    )
    return figure


def _loss(axes: "matplotlib.axes.Axes", events: list[Event], best: Event | None) -> bool:
    train, valid = _series(events, "train", "loss"), _series(events, "valid", "loss")
    label = "validation"
    if best is not None and best.get("loss") is not None:
        _star(axes, best, "loss")
        label += f" (★ {best['loss']:.3f})"
    if train[0]:
        axes.plot(*train, color=TRAIN, linewidth=1.3, label="train (as optimised)")
    if valid[0]:
        axes.plot(*valid, color=VALID, linewidth=1.3, marker="o", markersize=3.5, label=label)
    if train[0] or valid[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1.02, 0.99), ncols=2, handlelength=1.6, columnspacing=1.2)
    return bool(train[0] or valid[0])


def _score(name: str) -> Any:
    """The drawing of a validation score."""

    def draw(axes: "matplotlib.axes.Axes", events: list[Event], best: Event | None) -> bool:
        steps, values = _series(events, "valid", name)
        if not steps or best is None or best.get(name) is None:
            return False
        axes.plot(steps, values, color=VALID, linewidth=1.3, marker="o", markersize=3.5)
        _star(axes, best, name)
        axes.set_title(f"★ {best[name]:.2f} at step {best['step']:,}", loc="right", fontsize=8.5)
        axes.set_ylim(0, 1.12 * max([1.0, *(value for value in values if math.isfinite(value))]))
        return True

    return draw


def _learning_rate(axes: "matplotlib.axes.Axes", events: list[Event], best: Event | None) -> bool:
    return _from_zero(axes, *_series(events, "train", "lr"), "{:g}")


def _throughput(axes: "matplotlib.axes.Axes", events: list[Event], best: Event | None) -> bool:
    return _from_zero(axes, *_series(events, "train", "tokens_per_s"), "{:,.0f}")


def _from_zero(axes: "matplotlib.axes.Axes", steps: list[float], values: list[float], form: str) -> bool:
    from matplotlib.ticker import FuncFormatter

    highest = max((value for value in values if math.isfinite(value)), default=0.0)
    if highest <= 0:
        return False
    axes.plot(steps, values, color=TRAIN, linewidth=1.3, marker="o" if len(steps) == 1 else "")
    axes.set_ylim(0, 1.12 * highest)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: form.format(y)))
    return True


def _series(events: list[Event], kind: str, name: str) -> tuple[list[float], list[float]]:
    """Steps and readings of one field; a reading that was not finite (null in the log) is a gap in the line."""
    found = [event for event in events if event["event"] == kind and "step" in event and name in event]
    if all(event[name] is None for event in found):
        return [], []
    return [float(event["step"]) for event in found], [math.nan if e[name] is None else float(e[name]) for e in found]


def _star(axes: "matplotlib.axes.Axes", best: Event, name: str) -> None:
    axes.plot([best["step"]], [best[name]], color=INK, marker="*", markersize=9, linestyle="", zorder=5)


def _say_empty(axes: "matplotlib.axes.Axes") -> None:
    axes.set(xticks=[], yticks=[])
    axes.text(0.5, 0.5, "no readings yet", color=MUTED, ha="center", va="center", transform=axes.transAxes)


SCORES: dict[str, tuple[str, str]] = {
    "bleu": ("BLEU on the validation set", "BLEU (0 to 100)"),
    "accuracy": ("Accuracy on the validation set", "% right"),
    "bits_per_character": ("Bits per character on the validation set", "bits"),
}
"""Title and unit of what tasks are scored by; a run shows the first that it logs."""

PANELS: dict[str, tuple[str, str, Any]] = {
    "loss": ("Loss", "nats", _loss),  # per target token, or per example: as the task counts
    **{name: (title, unit, _score(name)) for name, (title, unit) in SCORES.items()},
    "lr": ("Learning rate", "learning rate", _learning_rate),
    "tokens_per_s": ("Training speed", "tokens/s", _throughput),
}
"""Title, unit and drawing of each panel; a drawing returns whether there was anything to draw."""
