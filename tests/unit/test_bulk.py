"""Bulk translation: blocks that workers share, each exactly once, whoever dies on the way."""

import contextlib
import gzip
import hashlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.pipeline import bulk
from dragoman.pipeline.bulk import Blocks, Translate, Work, run_worker, shard_of
from dragoman.pipeline.bulk_processes import run_processes

LINES = [f"line {number} {'x' * (number % 7)}" for number in range(95)]


def upper(first: int, lines: list[str]) -> list[str]:
    """A translator that says which lines it has seen."""
    return [f"{number} {line.upper()}\n" for number, line in enumerate(lines, start=first)]


EXPECTED = "".join(upper(1, LINES))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(line + "\n" for line in LINES)
    return path


def test_one_worker(source: Path, tmp_path: Path) -> None:
    work = Work(source, tmp_path / "out", "how", block_lines=10)
    assert work.manifest.blocks == 10
    assert work.manifest.sha256 == hashlib.sha256("".join(line + "\n" for line in LINES).encode()).hexdigest()
    run_worker(work, upper)
    assert (tmp_path / "out" / "text.txt").read_text() == EXPECTED
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", "manifest.lock", "text.txt"]
    record = json.loads((tmp_path / "out/manifest.json").read_text())
    assert record["output_sha256"] == hashlib.sha256(EXPECTED.encode()).hexdigest()

    def never(first: int, lines: list[str]) -> list[str]:
        raise AssertionError

    again = Work(source, tmp_path / "out", "how", block_lines=10)
    assert again.is_done
    assert again.left() == []
    run_worker(again, never)
    assert (tmp_path / "out" / "text.txt").read_text() == EXPECTED


def test_shards(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    def translate(first: int, lines: list[str]) -> list[str]:
        seen.append(first // 10)
        return upper(first, lines)

    for number in (2, 0):
        run_worker(Work(source, tmp_path / "out", "how", block_lines=10), translate, (number, 3))
    assert seen == [2, 5, 8, 0, 3, 6, 9]
    assert not (tmp_path / "out/text.txt").exists()
    assert "this shard is done" in capsys.readouterr().err
    run_worker(Work(source, tmp_path / "out", "how", block_lines=10), translate, (1, 3))
    assert sorted(seen) == list(range(10))
    assert (tmp_path / "out/text.txt").read_text() == EXPECTED


def test_what_does_not_fit_is_refused(source: Path, tmp_path: Path) -> None:
    Work(source, tmp_path / "out", "how")
    with raises_error(Error.OTHER_CONTENT, "out"):
        Work(source, tmp_path / "out", "otherwise")
    with gzip.open(source, "at") as file:
        file.write("one more\n")
    with raises_error(Error.OTHER_CONTENT, "out"):
        Work(source, tmp_path / "out", "how")
    plain = tmp_path / "text.txt"
    plain.write_text("a\n")
    (tmp_path / "same").mkdir()
    os.link(plain, tmp_path / "same" / "text.txt")
    with raises_error(Error.SAME_FILE, "text.txt"):
        Work(plain, tmp_path / "same", "how")
    for text in ("0/3", "4/3", "x", "1/0", "-1/2"):
        with raises_error(Error.WRONG_OPTION):
            shard_of(text)


def test_nothing_to_translate(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_text("")
    run_worker(Work(path, tmp_path / "out", "how"), upper)
    assert (tmp_path / "out/empty.txt").read_text() == ""


def test_blocks_in_any_order(source: Path) -> None:
    blocks = Blocks(source, 10)
    for block in (0, 1, 5, 9, 3, 3, 9, 0):
        assert blocks[block] == LINES[10 * block : 10 * block + 10]


def test_a_block_that_another_is_at_is_left_to_it(source: Path, tmp_path: Path) -> None:
    work = Work(source, tmp_path / "out", "how", block_lines=10)
    with work.claimed(3) as first, Work(source, tmp_path / "out", "how", block_lines=10).claimed(3) as second:
        assert (first, second) == (True, False)
    with work.claimed(3) as again:
        assert again


def test_a_block_of_too_few_lines_is_no_block(source: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="an output for each line"):
        run_worker(Work(source, tmp_path / "out", "how", block_lines=10), lambda first, lines: lines[1:])
    assert Work(source, tmp_path / "out", "how", block_lines=10).left() == list(range(10))


needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no copies of processes")


def in_processes(source: Path, folder: Path, translate: Callable[[int, list[str]], list[str]], count: int) -> list[int]:
    """The processes that loaded the model for a translation of `source` by `count` processes."""
    loaded: list[int] = []

    def load() -> Translate:
        loaded.append(os.getpid())
        return translate

    run_processes(Work(source, folder, "how", block_lines=10), load, count)
    return loaded


@needs_fork
def test_processes_share_what_is_loaded_once(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before, log = torch.get_num_threads(), tmp_path / "log"

    def translate(first: int, lines: list[str]) -> list[str]:
        with log.open("a") as file:
            file.write(f"{os.getpid()} {first}\n")
        return upper(first, lines)

    assert in_processes(source, tmp_path / "out", translate, 3) == [os.getpid()]
    assert (tmp_path / "out/text.txt").read_text() == EXPECTED
    (own, _), *blocks = (line.split() for line in log.read_text().splitlines())
    assert own == str(os.getpid())  # the lines before the processes parted
    assert sorted(int(first) for _, first in blocks) == list(range(1, 96, 10))
    assert own not in {process for process, _ in blocks}
    assert capfd.readouterr().err.splitlines() == [f"{tmp_path / 'out/text.txt'}: 95 lines"]
    assert torch.get_num_threads() == before
    assert not multiprocessing.active_children()


@needs_fork
@pytest.mark.parametrize("survive", [True, False])
def test_processes_that_are_killed(
    survive: bool, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parent, killed = os.getpid(), tmp_path / "killed"

    def translate(first: int, lines: list[str]) -> list[str]:
        if os.getpid() != parent and not (survive and killed.exists()):
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return upper(first, lines)

    if survive:
        in_processes(source, tmp_path / "out", translate, 3)
        assert (tmp_path / "out/text.txt").read_text() == EXPECTED
    else:
        with raises_error(Error.PROCESS_FAILED, "out"):
            in_processes(source, tmp_path / "out", translate, 3)
    assert "a process was ended by SIGKILL; where memory ran out, use fewer `processes`" in capfd.readouterr().err


@needs_fork
def test_the_mistake_of_a_process_is_that_of_the_command(source: Path, tmp_path: Path) -> None:
    parent = os.getpid()

    def translate(first: int, lines: list[str]) -> list[str]:
        if os.getpid() == parent or first < 50:
            return upper(first, lines)
        raise Error.SEARCH_FAILED("nothing is found", file="here", line=first)

    with raises_error(Error.SEARCH_FAILED, "here:51"):
        in_processes(source, tmp_path / "out", translate, 2)
    assert not multiprocessing.active_children()


WORKER = """
import sys, time
from pathlib import Path
from dragoman.pipeline.bulk import Work, run_worker

def translate(first, lines):
    with open(sys.argv[3], "a") as log:
        log.write(f"{first}\\n")
    time.sleep(0.15)
    return [f"{number} {line.upper()}\\n" for number, line in enumerate(lines, start=first)]

run_worker(Work(Path(sys.argv[1]), Path(sys.argv[2]), "how", block_lines=100), translate)
"""


@pytest.mark.system
@pytest.mark.slow
def test_two_workers_twenty_kills_and_one_started_twice(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(30_000)]
    source, out, log = tmp_path / "big.txt", tmp_path / "out", tmp_path / "log"
    source.write_text("".join(line + "\n" for line in lines))
    chance = random.Random(1)

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WORKER, str(source), str(out), str(log)]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    workers = [start() for _ in range(3)]
    kills = 0
    while kills < 20:
        time.sleep(chance.uniform(0.3, 0.9))
        place = chance.randrange(3)
        with contextlib.suppress(ProcessLookupError):
            workers[place].send_signal(signal.SIGKILL)
        kills += workers[place].wait() == -signal.SIGKILL
        assert workers[place].returncode == -signal.SIGKILL, "done before so many kills: make the text longer"
        workers[place] = start()
    assert [worker.wait(300) for worker in workers] == [0, 0, 0]
    expected = "".join(f"{number} {line.upper()}\n" for number, line in enumerate(lines, start=1))
    assert (out / "big.txt").read_text() == expected
    begun = log.read_text().split()
    assert len(set(begun)) == 300
    assert len(begun) <= 300 + kills  # a kill loses one block at most; no two workers were at one
    assert not (out / bulk.BLOCKS).exists()
