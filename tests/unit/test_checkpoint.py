"""Checkpoints: whole or not there, verified before use, chosen, averaged and dropped."""

import errno
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tests.errors import raises_error
from torch import nn

from dragoman.errors import DragomanError, Error
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.checkpoint import MANIFEST, checkpoints_dir

FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]


def write(run: Path, step: int, score: float | None = None) -> Path:
    """A checkpoint whose only weight is its step."""
    groups = {"model": {"weight": torch.full((3,), float(step))}, "optimizer": {"weight/moment": torch.ones(2)}}
    return checkpoint.save(run, step, groups, {"step": step, "score": score})


def write_all(run: Path, scores: dict[int, float | None]) -> None:
    for step, score in scores.items():
        write(run, step, score)


def kept(run: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in checkpoint.list_checkpoints(run)]


def flip(path: Path, position: int = -2) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


def refusal(path: Path) -> str:
    with pytest.raises(DragomanError) as caught:
        checkpoint.verify(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path = write(tmp_path, 800, 12.5)
    checkpoint.verify(path)
    assert path == tmp_path / "checkpoints" / "step-00000800"
    assert sorted(file.name for file in path.iterdir()) == sorted([MANIFEST, *FILES])
    assert checkpoint.load_state(path) == {"step": 800, "score": 12.5}
    assert torch.equal(checkpoint.load_group(path, "model")["weight"], torch.full((3,), 800.0))
    assert json.loads((path / MANIFEST).read_text())["files"].keys() == set(FILES)


def test_tied_weights_are_saved_once_and_stay_tied(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    path = checkpoint.save(tmp_path, 1, {"model": checkpoint.weights(model)}, {})
    assert load_file(path / "model.safetensors").keys() == {"0.weight", "0.bias", "1.bias"}
    with torch.no_grad():
        saved = model[0].weight.clone()
        model[0].weight.zero_()
    checkpoint.load_weights(model, checkpoint.load_group(path, "model"), "test")
    assert torch.equal(model[1].weight, saved)
    assert model[1].weight is model[0].weight


def test_weights_to_translate_with_are_the_average_where_there_is_one(tmp_path: Path) -> None:
    groups = {"model": {"w": torch.zeros(1)}, "averaged": {"w": torch.ones(1)}}
    assert checkpoint.load_inference_weights(checkpoint.save(tmp_path, 1, groups, {}))["w"] == 1
    del groups["averaged"]
    assert checkpoint.load_inference_weights(checkpoint.save(tmp_path, 2, groups, {}))["w"] == 0


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["flip", "truncate", "lengthen", "delete"])
def test_a_damaged_file_is_named_and_the_checkpoint_before_is_used(tmp_path: Path, name: str, harm: str) -> None:
    older, newer = write(tmp_path, 1), write(tmp_path, 2)
    file = newer / name
    if harm == "flip":
        flip(file)
    elif harm == "delete":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] if harm == "truncate" else file.read_bytes() + b"\n")
    assert refusal(newer).startswith(f"{file}: ")
    complaints: list[str] = []
    assert checkpoint.newest(tmp_path, complaints.append) == older
    assert [str(file) in complaint for complaint in complaints] == [True]


def test_every_flipped_byte_every_cut_and_every_swap_is_seen_by_file(tmp_path: Path) -> None:
    """1,000 flips of one bit or more, 100 cuts, 20 swaps of a file with that of another step."""
    rng = random.Random(1)
    older, newer = write(tmp_path, 1, 1.0), write(tmp_path, 2, 2.0)
    names = sorted(path.name for path in newer.iterdir())
    originals = {name: (newer / name).read_bytes() for name in names}
    harms = [("flip", rng.choice(names)) for _ in range(1000)] + [("cut", rng.choice(names)) for _ in range(100)]
    harms += [("swap", rng.choice(names)) for _ in range(20)]
    for harm, name in harms:
        data = originals[name]
        if harm == "flip":
            place = rng.randrange(len(data))
            harmed = data[:place] + bytes([data[place] ^ rng.randrange(1, 256)]) + data[place + 1 :]
        else:
            harmed = data[: rng.randrange(len(data))] if harm == "cut" else (older / name).read_bytes()
        if harmed == data:
            continue  # the optimizers of the two steps are equal
        (newer / name).write_bytes(harmed)
        complaints: list[str] = []
        assert checkpoint.newest(tmp_path, complaints.append) == older, (harm, name)
        # A byte of the manifest may be what it says of another file.
        assert str(newer) in complaints[0]
        assert name == MANIFEST or f"{newer / name}: " in complaints[0], complaints
        (newer / name).write_bytes(data)
    assert checkpoint.newest(tmp_path) == newer


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"files": []}', b'{"files": {}}', b"\xff\xfe"])
def test_a_damaged_manifest_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, 1)
    (path / MANIFEST).write_bytes(content)
    assert refusal(path).startswith(f"{path / MANIFEST}:")
    (path / MANIFEST).unlink()
    assert refusal(path).startswith(f"{path / MANIFEST}: missing")


@pytest.mark.parametrize(
    "name", ["../outside.json", "/etc/hosts", "sub/model.json", "..", "", "model.pt", "state.json\n"]
)
def test_a_manifest_cannot_name_files_elsewhere_or_of_other_kinds(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, 1)
    shutil.copy(path / "state.json", path.parent / "outside.json")
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["files"][name] = manifest["files"]["state.json"]
    (path / MANIFEST).write_text(json.dumps(manifest))
    assert f"{name!r} is no name of a checkpoint file" in refusal(path)


def test_a_file_that_was_put_there_afterwards_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    (path / ".DS_Store").write_bytes(b"a file manager's")
    checkpoint.verify(path)
    planted = path / "averaged.safetensors"  # would be translated with
    shutil.copy(path / "model.safetensors", planted)
    assert refusal(path).startswith(f"{planted}: not in the manifest")


def test_what_was_being_written_when_a_run_was_killed_is_ignored_and_cleared_away(tmp_path: Path) -> None:
    whole = write(tmp_path, 1, 1.0)
    shutil.copytree(whole, whole.with_name("step-00000002.tmp"))
    assert checkpoint.list_checkpoints(tmp_path) == [whole]
    assert checkpoint.newest(tmp_path) == whole
    assert checkpoint.load_state(write(tmp_path, 2, 2.0))["step"] == 2  # over the leftover
    shutil.copytree(whole, whole.with_name("step-00000003.tmp"))
    checkpoint.prune(tmp_path, keep_last=5, keep_best=1)
    assert sorted(path.name for path in checkpoints_dir(tmp_path).iterdir()) == ["step-00000001", "step-00000002"]


def test_newest_goes_by_the_number_of_the_step_even_when_it_is_long(tmp_path: Path) -> None:
    write_all(tmp_path, {99_999_999: None, 100_000_000: None, 5: None})
    assert kept(tmp_path) == [5, 99_999_999, 100_000_000]
    assert checkpoint.newest(tmp_path) == checkpoint.list_checkpoints(tmp_path)[-1]
    assert checkpoint.newest(tmp_path / "elsewhere") is None


def test_best_has_the_highest_score_the_first_of_equals_and_must_verify(tmp_path: Path) -> None:
    write_all(tmp_path, {1: 3.0, 2: 9.5, 3: 10.0, 4: 10.0, 5: 2.0, 6: None})
    first, second, third = (checkpoints_dir(tmp_path) / f"step-0000000{step}" for step in (3, 4, 2))
    assert checkpoint.best(tmp_path) == first
    flip(first / "model.safetensors")
    assert checkpoint.best(tmp_path) == second
    flip(second / "state.json", 0)
    assert checkpoint.best(tmp_path) == third


def test_best_is_the_newest_where_nothing_was_validated(tmp_path: Path) -> None:
    assert checkpoint.best(tmp_path) is None
    write_all(tmp_path, {1: None, 2: None})
    assert checkpoint.best(tmp_path) == checkpoint.list_checkpoints(tmp_path)[-1]


def test_a_damaged_best_checkpoint_is_skipped_with_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write(tmp_path, 1, 5.0), write(tmp_path, 2, 9.0)
    flip(second / "model.safetensors")
    assert checkpoint.select(tmp_path) == first
    assert f"skipped: {second}" in capsys.readouterr().err.replace("\n", "")


def test_select_takes_best_last_or_a_step(tmp_path: Path) -> None:
    write_all(tmp_path, {1: 5.0, 20: 1.0})
    one, twenty = checkpoint.list_checkpoints(tmp_path)
    assert [checkpoint.select(tmp_path, which) for which in ("best", "last", "1", "20")] == [one, twenty, one, twenty]
    assert checkpoint.select(tmp_path) == one


@pytest.mark.parametrize(
    ("which", "error"),
    [("2", Error.NO_CHECKPOINT), ("newest", Error.WRONG_OPTION), ("-1", Error.WRONG_OPTION)],
)
def test_select_refuses_what_is_not_there(tmp_path: Path, which: str, error: Error) -> None:
    write(tmp_path, 1)
    with raises_error(error):
        checkpoint.select(tmp_path, which)
    with raises_error(Error.MISSING_FILE, "absent"):
        checkpoint.select(tmp_path / "absent", "best")
    flip(checkpoint.list_checkpoints(tmp_path)[0] / "state.json")
    for name in ("best", "last", "1"):
        with raises_error(Error.DAMAGED):
            checkpoint.select(tmp_path, name)


@pytest.mark.parametrize(
    ("scores", "keep_last", "keep_best", "left"),
    [
        ({1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}, 2, 1, [3, 4]),
        ({1: 9.0, 2: 2.0, 3: 3.0, 4: 4.0}, 2, 1, [1, 3, 4]),
        ({1: 9.0, 2: 8.0, 3: 3.0, 4: 4.0}, 1, 2, [1, 2, 4]),
        ({1: 5.0, 2: 5.0, 3: 1.0}, 1, 1, [1, 3]),
        ({1: 1.0, 2: None, 3: 3.0, 4: None}, 1, 1, [3, 4]),  # stopped at 2 and 4; both were to be resumed from
        ({1: None}, 1, 1, [1]),
    ],
)
def test_prune_keeps_the_newest_the_last_validated_and_the_best(
    tmp_path: Path, scores: dict[int, float | None], keep_last: int, keep_best: int, left: list[int]
) -> None:
    write_all(tmp_path, scores)
    checkpoint.prune(tmp_path, keep_last, keep_best)
    assert kept(tmp_path) == left


def test_prune_drops_nothing_while_the_newest_does_not_verify(tmp_path: Path) -> None:
    write_all(tmp_path, {1: 1.0, 2: 2.0, 3: 3.0})
    flip(checkpoint.list_checkpoints(tmp_path)[-1] / "model.safetensors")
    checkpoint.prune(tmp_path, 1, 1)
    assert kept(tmp_path) == [1, 2, 3]


def test_what_is_later_than_a_step_is_dropped_whether_it_verifies_or_not(tmp_path: Path) -> None:
    write_all(tmp_path, {1: 1.0, 2: 2.0, 3: None, 4: 4.0})
    flip(checkpoint.list_checkpoints(tmp_path)[-1] / "model.safetensors")
    checkpoint.drop_after(tmp_path, 2)
    assert kept(tmp_path) == [1, 2]
    assert not list(checkpoints_dir(tmp_path).glob("*.tmp"))


def test_weights_that_do_not_fit_are_listed_and_nothing_is_loaded() -> None:
    model = nn.ModuleDict({"a": nn.Linear(2, 3, bias=False), "b": nn.Linear(2, 3, bias=False)})
    before = {name: tensor.clone() for name, tensor in checkpoint.weights(model).items()}
    wrong = {"a.weight": torch.ones(3, 4), "c.weight": torch.ones(1)}
    with raises_error(Error.MISMATCH, "there") as caught:
        checkpoint.load_weights(model, wrong, "there")
    assert str(caught.value) == (
        "there: does not fit the model in config.yaml: "
        "a.weight is (3, 4) and should be (3, 2); has an unknown c.weight; lacks b.weight"
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in checkpoint.weights(model).items())
    with raises_error(Error.MISMATCH, "there"):
        checkpoint.load_weights(nn.Linear(1, 1), {f"x{number}": torch.ones(1) for number in range(18)}, "there")


def _full(*args: Any, **kwargs: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _full_in_rust(*args: Any, **kwargs: Any) -> None:
    raise SafetensorError("I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize(
    ("owner", "name", "fail"),
    [
        pytest.param(atomic_io, "write_tensors", _full_in_rust, id="weights"),
        pytest.param(atomic_io, "write_text", _full, id="state"),
        pytest.param(atomic_io, "sync", _full, id="sync"),
        pytest.param(atomic_io, "rename", _full, id="rename"),
    ],
)
def test_a_full_disk_is_told_with_path_and_bytes_and_harms_no_earlier_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fail: Any
) -> None:
    earlier = write(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with raises_error(Error.CANNOT_WRITE, "step-00000002") as caught:
            write(tmp_path, 2)
    assert str(checkpoints_dir(tmp_path) / "step-00000002") in str(caught.value)
    assert "No space left on device" in str(caught.value)
    assert "needs 20 bytes" in str(caught.value)
    assert [path.name for path in checkpoints_dir(tmp_path).iterdir()] == [earlier.name]
    checkpoint.verify(earlier)
    checkpoint.verify(write(tmp_path, 2))  # the same command again, once there is space
