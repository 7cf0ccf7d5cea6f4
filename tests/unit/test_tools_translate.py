"""Lines from a pipe that stays open are answered as they come, in whole batches where they come fast."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pytest

import dragoman
from dragoman.text.lines import LiveInput, in_chunks, lines_in

pytestmark = pytest.mark.timeout(120)  # a line that is not answered would be waited for

FIXTURE = Path(__file__).parent.parent / "fixtures" / "run_4f9e9c2"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def test_a_chunk_ends_where_the_next_line_has_not_come(pipe: tuple[int, int]) -> None:
    read, write = pipe
    live = LiveInput(read)
    chunks = in_chunks(lines_in(cast(BinaryIO, live), "a pipe"), 3, live.waiting)
    os.write(write, b"one\ntwo\nthr")  # the third is not complete: it is not waited for
    assert next(chunks) == ["one", "two"]
    os.write(write, b"ee\n\xc3\xa4\r\nfive\nsix")
    assert next(chunks) == ["three", "ä", "five"]
    os.close(write)
    assert list(chunks) == [["six"]]


def test_lines_that_come_fast_fill_whole_chunks(pipe: tuple[int, int]) -> None:
    read, write = pipe
    text = "".join(f"line {number} {'x' * (number % 90)}\n" for number in range(20_000)).encode()

    def pour() -> None:
        with open(write, "wb", closefd=True) as file:
            file.write(text)

    writer = threading.Thread(target=pour)
    writer.start()
    live = LiveInput(read)
    chunks = list(in_chunks(lines_in(cast(BinaryIO, live), "a pipe"), 2048, live.waiting))
    writer.join()
    assert [len(chunk) for chunk in chunks] == [*[2048] * 9, 20_000 - 9 * 2048]
    assert "".join(f"{line}\n" for chunk in chunks for line in chunk).encode() == text


def test_a_long_line_is_refused_as_in_a_file(pipe: tuple[int, int]) -> None:
    read, write = pipe
    os.write(write, b"abcdef\ng\n")
    live = LiveInput(read)
    assert [live.readline(4), live.readline(4), live.readline(4)] == [b"abcd", b"ef\n", b"g\n"]
    os.close(write)
    assert live.readline(4) == b""


@pytest.mark.system
def test_dragoman_translate_answers_a_line_while_its_input_stays_open() -> None:
    lines = (FIXTURE / "test.en").read_text(encoding="utf-8").splitlines()
    at_once = dragoman.load(FIXTURE / "finished", device="cpu").translate(lines[:2])
    command = [sys.executable, "-m", "dragoman", "translate", str(FIXTURE / "finished"), "--device", "cpu"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    ) as live:
        assert live.stdin
        assert live.stdout
        kill = threading.Timer(300, live.kill)  # a test that fails must not wait for ever
        kill.start()
        answers = []
        for line in lines[:2]:
            live.stdin.write(line + "\n")
            live.stdin.flush()
            answers.append(live.stdout.readline())
            time.sleep(0.1)
        live.stdin.close()
        kill.cancel()
        assert live.wait(300) == 0
    assert answers == [f"{text}\n" for text in at_once]
