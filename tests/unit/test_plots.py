"""Plots: drawn from few readings or none, the same bytes each time, and never through pyplot."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.errors import raises_error

from dragoman.analysis import plots
from dragoman.analysis.figure import save, to_svg
from dragoman.errors import Error

Event = dict[str, Any]


def train(step: int, **fields: Any) -> Event:
    return {"event": "train", "step": step, "loss": 9.0 / step, "lr": 1e-4 * step, "tokens_per_s": 9000.0, **fields}


def valid(step: int, **fields: Any) -> Event:
    return {"event": "valid", "step": step, "loss": 8.0 / step, "bleu": 2.0 * step, **fields}


FULL = [event for step in range(1, 11) for event in (train(step), valid(step))]


def texts(events: list[Event]) -> list[str]:
    root = ElementTree.fromstring(to_svg(plots.training_curves(events)))
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_panel_has_a_title_and_labels_and_the_best_validation_is_named() -> None:
    shown = texts(FULL)
    panels = ["loss", "bleu", "lr", "tokens_per_s"]
    for title, unit, _ in (plots.PANELS[panel] for panel in panels):
        assert title in shown
        assert unit in shown
    assert shown.count("step") == len(panels)
    assert "★ 20.00 at step 10" in shown
    assert "no readings yet" not in shown


@pytest.mark.parametrize("score", plots.SCORES)
def test_each_kind_of_task_shows_its_own_score(score: str) -> None:
    events = [train(1), {"event": "valid", "step": 1, "loss": 1.0, "perplexity": 2.7, score: 3.25, "score": 3.25}]
    assert plots.panels_for(events) == ["loss", score, "lr", "tokens_per_s"]
    assert plots.SCORES[score][0] in texts(events)
    assert "★ 3.25 at step 1" in texts(events)


@pytest.mark.parametrize(
    ("events", "empty"),
    [
        ([], 4),
        ([{"event": "start"}], 4),
        ([valid(5)], 2),
        ([train(5)], 1),
        ([train(1), train(2, loss=None, lr=None), valid(2, bleu=None)], 1),
        ([valid(2, bleu=None, loss=None), train(1, loss=None, lr=0.0, tokens_per_s=None)], 4),
        ([valid(2, bleu=0.0)], 2),
    ],
)
def test_few_readings_or_none(events: list[Event], empty: int) -> None:
    assert texts(events).count("no readings yet") == empty


def test_a_resumed_run_is_drawn_once() -> None:
    figure = plots.training_curves([train(1), train(2), train(3), train(2, loss=0.5)], ["loss"])
    (line,) = figure.axes[0].get_lines()
    assert list(line.get_xdata()) == [1, 2]
    assert list(line.get_ydata()) == [9.0, 0.5]


def test_the_svg_is_the_same_each_time_and_names_no_date() -> None:
    first, second = (to_svg(plots.training_curves(FULL)) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert first.endswith("</svg>")
    assert "metadata" not in first
    assert "date" not in first


@pytest.mark.parametrize("name", ["curves.svg", "curves.png", "curves.pdf"])
def test_saving(tmp_path: Path, name: str) -> None:
    paths = [save(plots.training_curves(FULL), tmp_path / (number + name)) for number in "12"]
    assert paths[0].stat().st_size > 1000
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_saving_as_something_else_is_refused(tmp_path: Path) -> None:
    with raises_error(Error.UNKNOWN_FORMAT, "curves.docx"):
        save(plots.training_curves([]), tmp_path / "curves.docx")


def test_neither_pyplot_nor_pytorch_is_loaded_for_curves() -> None:
    code = (
        "import sys; from dragoman.analysis import figure, plots, report; assert 'torch' not in sys.modules;"
        "figure.to_svg(plots.training_curves([])); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
