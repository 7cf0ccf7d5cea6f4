"""Long work shows itself on stderr: plain lines where there is no terminal, with an ETA."""

import sys
from types import SimpleNamespace

import pytest

from dragoman import progress
from dragoman.progress import Progress, clock


def test_plain_lines_carry_fields_and_an_eta(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("counting", total=4, interval_s=0.0) as bar:
        bar.advance(2, loss="3.1")
        bar.say("half way")
    out = capsys.readouterr()
    assert out.out == ""
    first, second = out.err.splitlines()
    assert first.startswith("counting: 2/4  loss 3.1  elapsed 0:00  ETA 0:0")
    assert second == "half way"


def test_lines_keep_their_distance(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("counting", total=None, interval_s=3600.0) as bar:
        for _ in range(100):
            bar.advance()
    assert capsys.readouterr().err == ""


def test_silent_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("counting", total=2, interval_s=0.0, shown=False) as bar:
        bar.advance()
    assert capsys.readouterr().err == ""


def test_work_that_goes_on_counts_what_was_done_before(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("training", total=10, done=5, interval_s=0.0) as bar:
        bar.advance()
    assert capsys.readouterr().err.startswith("training: 6/10")


def test_clock_never_shows_negative_time() -> None:
    assert clock(-3) == "0:00"


def test_in_a_notebook_one_bar_is_updated_below_the_cell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data))

    def display(data: dict[str, str], raw: bool, display_id: bool) -> SimpleNamespace:
        shown.append(data)
        return handle

    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    with Progress("short", total=4) as bar:
        bar.advance(4)
    assert shown == []
    monkeypatch.setattr(progress, "CELL_INTERVAL_S", 0.0)
    with Progress("<counting>", total=4) as bar:
        for _ in range(4):
            bar.advance(loss="3.1")
    assert shown[0]["text/html"].startswith('<progress value="1" max="4">')
    assert "&lt;counting&gt;: 4/4  loss 3.1" in shown[-1]["text/html"]
    assert capsys.readouterr().err == ""
