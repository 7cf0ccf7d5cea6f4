"""The curves of a training run, drawn from its log."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dragoman.analysis.figure import INK, MUTED, TRAIN, VALID, step_axis, styled
from dragoman.runs.events import Event, best_validation, last_event, without_repeats


@styled
def training_curves(events: Iterable[Event], panels: Sequence[str] = ()) -> Figure:
    """Small multiples against the step: loss, score, rate and tokens per second; the best validation is marked.

    `panels` picks some of them (keys of `PANELS`; none: those of `panels_for`). A panel without readings says so.
    """
    events = without_repeats(events)
    names = list(panels) or panels_for(events)
    columns = min(2, len(names))
    rows = math.ceil(len(names) / columns)
    best = best_validation(events)
    last_step = max((event["step"] for event in events if event.get("step") is not None), default=0)
    figure = _panel_figure(rows, columns)
    for position, name in enumerate(names, start=1):
        _, unit, draw = PANELS[name]
        title = panel_title(name, events)
        axes = figure.add_subplot(rows, columns, position)
        axes.set(title=title, xlabel="step", ylabel=unit)
        axes.yaxis.set_label_coords(-0.15, 0.5)
        if not draw(axes, events, best):
            axes.set(xticks=[], yticks=[])
            axes.text(0.5, 0.5, "no readings yet", color=MUTED, ha="center", va="center", transform=axes.transAxes)
            continue
        axes.set_xlim(0, 1.03 * max(1, last_step))
        step_axis(axes)
        if best is not None:
            axes.axvline(best["step"], color=MUTED, linewidth=0.9, linestyle=(0, (2, 3)), zorder=1)
    return figure


def panels_for(events: Sequence[Event]) -> list[str]:
    """The panels that suit a run: its task's score (BLEU where nothing is known yet) between loss and rate."""
    scores = [name for name in SCORES if any(event.get(name) is not None for event in events)]
    return ["loss", *(scores[:1] or ["bleu"]), "lr", "tokens_per_s"]


def panel_title(panel: str, events: Sequence[Event]) -> str:
    """The title of a panel; the title of BLEU names its tokenizer, if the run does."""
    titles = last_event(events, "plan").get("titles") or {}
    return PANELS[panel][0].replace("BLEU", titles.get("bleu", "BLEU"))


def _panel_figure(rows: int, columns: int) -> Figure:
    """An empty figure whose panels have one size and one margin, in inches, so that panels drawn apart align too."""
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


def _loss(axes: Axes, events: list[Event], best: Event | None) -> bool:
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

    def draw(axes: Axes, events: list[Event], best: Event | None) -> bool:
        steps, values = _series(events, "valid", name)
        if not steps or best is None or best.get(name) is None:
            return False
        axes.plot(steps, values, color=VALID, linewidth=1.3, marker="o", markersize=3.5)
        _star(axes, best, name)
        axes.set_title(f"★ {best[name]:.2f} at step {best['step']:,}", loc="right", fontsize=8.5)
        axes.set_ylim(0, 1.12 * max([1.0, *filter(math.isfinite, values)]))
        return True

    return draw


def _from_zero(name: str, form: str) -> Any:
    """The drawing of a field of training's events, on an axis that begins at 0."""

    def draw(axes: Axes, events: list[Event], best: Event | None) -> bool:
        steps, values = _series(events, "train", name)
        highest = max(filter(math.isfinite, values), default=0.0)
        if highest <= 0:
            return False
        axes.plot(steps, values, color=TRAIN, linewidth=1.3, marker="o" if len(steps) == 1 else "")
        axes.set_ylim(0, 1.12 * highest)
        axes.yaxis.set_major_formatter(form)
        return True

    return draw


def _series(events: list[Event], kind: str, name: str) -> tuple[list[float], list[float]]:
    """Steps and readings of one field; a reading that was not finite (null in the log) is a gap in the line."""
    readings = [event for event in events if event["event"] == kind and "step" in event and name in event]
    if all(event[name] is None for event in readings):
        return [], []
    values = [math.nan if event[name] is None else float(event[name]) for event in readings]
    return [float(event["step"]) for event in readings], values


def _star(axes: Axes, best: Event, name: str) -> None:
    axes.plot([best["step"]], [best[name]], color=INK, marker="*", markersize=9, linestyle="", zorder=5)


SCORES: dict[str, tuple[str, str]] = {
    "bleu": ("BLEU on the validation set", "BLEU (0 to 100)"),
    "accuracy": ("Accuracy on the validation set", "% right"),
    "bits_per_character": ("Bits per character on the validation set", "bits"),
}
"""Title and unit of what tasks are scored by; a run shows the first that it logs."""

PANELS: dict[str, tuple[str, str, Any]] = {
    "loss": ("Loss", "nats", _loss),  # per target token, or per example: as the task counts
    **{name: (title, unit, _score(name)) for name, (title, unit) in SCORES.items()},
    "lr": ("Learning rate", "learning rate", _from_zero("lr", "{x:g}")),
    "tokens_per_s": ("Training speed", "tokens/s", _from_zero("tokens_per_s", "{x:,.0f}")),
}
"""Title, unit and drawing of each panel; a drawing returns False where there is nothing to draw."""
