"""The run log: what is written is valid JSON lines, and what a killed run leaves can still be read."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.runs.events import best_validation, read_events, without_repeats
from dragoman.runs.log import RunLog


def test_events_come_back_as_they_were_logged(tmp_path: Path) -> None:
    samples = [{"src": "ein Satz\u2028mit Zeilen", "ref": "猫が好き", "hyp": 'a "quote"\n<script>'}]
    with RunLog(tmp_path / "runs" / "one", loggers=()) as log:
        log.event("start", elapsed_s=0.0, threads=2)
        log.event("valid", step=10, bleu=np.float32(12.5), perplexity=np.int64(3), samples=samples)
    first, second = read_events(tmp_path / "runs" / "one" / "metrics.jsonl")
    assert first["event"] == "start"
    assert first["threads"] == 2
    assert first["time"].endswith("+00:00")
    assert (second["bleu"], second["perplexity"]) == (12.5, 3)
    assert second["samples"] == samples
    assert "猫" in (tmp_path / "runs" / "one" / "metrics.jsonl").read_text(encoding="utf-8")
    assert not (tmp_path / "runs" / "one" / "tensorboard").exists()


def test_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    with RunLog(tmp_path, loggers=()) as log:
        log.event("train", loss=float("nan"), nested={"a": [float("inf"), 1.0, np.float64("-inf")]}, flag=True)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    record = json.loads((tmp_path / "metrics.jsonl").read_text(encoding="utf-8"), parse_constant=refuse)
    assert record["loss"] is None
    assert record["nested"] == {"a": [None, 1.0, None]}
    assert record["flag"] is True


def test_an_event_is_on_disk_before_the_log_is_closed(tmp_path: Path) -> None:
    with RunLog(tmp_path, loggers=()) as log:
        log.event("train", step=1)
        assert [event["step"] for event in read_events(log.path)] == [1]


@pytest.mark.parametrize("tail", ['{"event": "train", "st', '{"event": "train", "hyp": "é', "5"])
def test_a_last_line_that_was_cut_off_is_left_out_and_then_overwritten(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"event": "train", "step": 1}\n' + tail.encode()[: -1 if tail.endswith("é") else None])
    assert [event["step"] for event in read_events(path)] == [1]
    with RunLog(tmp_path, loggers=()) as log:
        log.event("train", step=2)
    assert [event["step"] for event in read_events(path)] == [1, 2]


def test_a_last_line_that_lacks_only_its_line_feed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"event": "train", "step": 1}', encoding="utf-8")
    assert [event["step"] for event in read_events(path)] == [1]
    with RunLog(tmp_path, loggers=()) as log:
        log.event("train", step=2)
    assert [event["step"] for event in read_events(path)] == [1, 2]


@pytest.mark.parametrize("line", ["{half", "[1]", '{"step": 1}', "\xff"])
def test_a_damaged_line_before_the_last_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"event": "start"}\n' + line.encode("latin-1") + b'\n{"event": "end"}\n')
    with raises_error(Error.WRONG_SHAPE, "metrics.jsonl:2") as caught:
        read_events(path)
    assert "\n" not in str(caught.value)


def test_a_missing_or_unreadable_log_is_named(tmp_path: Path) -> None:
    with raises_error(Error.MISSING_FILE, "metrics.jsonl"):
        read_events(tmp_path / "metrics.jsonl")
    with raises_error(Error.CANNOT_READ):
        read_events(tmp_path)
    (tmp_path / "metrics.jsonl").touch()
    assert read_events(tmp_path / "metrics.jsonl") == []


def test_tensorboard_gets_scalars_and_samples(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RunLog(tmp_path) as log:
        log.event("start", torch="2")
        log.event("train", step=5, loss=2.5, lr=1e-3, grad_norm=float("nan"), tokens_per_s=9000.0)
        log.event("valid", step=5, loss=2.0, perplexity=7.4, bleu=20.0, samples=[{"src": "a", "ref": "b", "hyp": "c"}])
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    tags = board.Tags()
    assert set(tags["scalars"]) == {
        *("train/loss", "train/lr", "train/tokens_per_s"),
        *("valid/loss", "valid/perplexity", "valid/bleu"),
    }
    assert tags["tensors"] == ["valid/samples/text_summary"]
    (reading,) = board.Scalars("valid/bleu")
    assert (reading.step, reading.value) == (5, 20.0)


def test_repeats_of_a_resumed_run_are_dropped() -> None:
    steps = [("train", 1), ("valid", 2), ("train", 2), ("train", 3), ("start", None), ("train", 2), ("valid", 2)]
    events = [{"event": kind, "step": step, "place": place} for place, (kind, step) in enumerate(steps)]
    assert [event["place"] for event in without_repeats(events)] == [0, 4, 5, 6]


def test_rollbacks_are_told_apart_by_their_number_and_not_by_where_they_began() -> None:
    rollbacks = [
        {"event": "rollback", "step": step, "rollbacks": number} for step, number in ((18, 1), (18, 2), (13, 3))
    ]
    assert without_repeats(rollbacks) == rollbacks
    assert without_repeats([*rollbacks, {**rollbacks[1]}]) == rollbacks[:2]


def test_the_best_validation() -> None:
    def valid(step: int, score: float | None, loss: float | None) -> dict[str, object]:
        return {"event": "valid", "step": step, "score": score, "loss": loss}

    best = best_validation([valid(1, 3.0, 1.0), valid(2, 5.0, 2.0), valid(3, 5.0, 3.0), valid(4, None, 0.1)])
    assert best is not None
    assert best["step"] == 2
    best = best_validation([valid(1, 5.0, 0.3), valid(2, 5.0, 0.2), valid(3, 5.0, 0.2), valid(4, 4.0, 0.1)])
    assert best is not None
    assert best["step"] == 2
    best = best_validation([valid(1, None, 2.0), valid(2, None, 1.0), valid(3, None, None)])
    assert best is not None
    assert best["step"] == 2
    assert best_validation([{"event": "start"}, valid(1, None, None)]) is None
