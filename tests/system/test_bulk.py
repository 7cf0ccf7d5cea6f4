"""`dragoman translate --bulk` with a real model: the bytes of one command, from shards, workers that die, and Ray."""

import gzip
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dragoman.corpora import embedded

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
COUNT = 400


def dragoman(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    lines = [src for src, _ in embedded.sentences("de-en", "test", COUNT, 1)]
    lines[7] = ""
    (folder / "text.txt").write_text("".join(line + "\n" for line in lines))
    with gzip.open(folder / "text.txt.gz", "wt") as file:
        file.writelines(line + "\n" for line in lines)
    return folder


@pytest.fixture(scope="module")
def serial(text: Path) -> str:
    done = dragoman("translate", RUN, "--beam-size", "1", "-i", text / "text.txt")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_bytes_are_those_of_one_command(text: Path, serial: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for shard in ("2/2", "1/2"):
        done = dragoman("translate", RUN, text / "text.txt.gz", "--beam-size", "1", "-o", out, "--shard", shard)
        assert done.returncode == 0, done.stderr
    assert (out / "text.txt").read_text() == serial
    again = dragoman("translate", RUN, text / "text.txt.gz", "--beam-size", "1", "-o", out)
    assert again.stdout.strip() == str(out / "text.txt")
    other = dragoman("translate", RUN, text / "text.txt.gz", "--beam-size", "2", "-o", out)
    assert other.returncode == 2
    assert "another weights or options" in other.stderr
    plain = dragoman("translate", RUN, text / "text.txt", "--bulk", "--json", "--beam-size", "1", "-o", tmp_path / "j")
    assert plain.returncode == 0, plain.stderr
    records = [json.loads(line) for line in (tmp_path / "j" / "text.txt").read_text().splitlines()]
    assert [record["line"] for record in records] == list(range(1, COUNT + 1))
    assert [record["translations"][0]["text"] for record in records] == serial.splitlines()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("text.txt", "--bulk"), "say with -o FOLDER"),
        (("text.txt", "--shard", "1/2", "-o", "out"), "with --bulk"),
        (("text.txt", "text.txt", "--bulk", "-o", "out"), "one file of lines"),
        (("nowhere.txt.gz", "-o", "out"), "one file of lines"),
        (("text.txt", "--bulk", "--shard", "3/2", "-o", "out"), "write it as 1/8 to 8/8"),
        (("text.txt", "--bulk", "--resume", "-o", "out"), "--resume: does not go with --bulk"),
        (("text.txt", "--processes", "2", "-o", "out"), "--processes: with --bulk"),
        (("text.txt", "--bulk", "--processes", "2", "--ray", "2", "-o", "out"), "--processes: not with --ray"),
        (("text.txt", "--bulk", "--processes", "2", "--engine", "ctranslate2", "-o", "out"), "another --engine"),
    ],
)
def test_what_does_not_go_together(text: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    folders = {"text": text, "out": tmp_path}
    own = [folders[name.partition(".")[0]] / name if name.partition(".")[0] in folders else name for name in arguments]
    done = dragoman("translate", RUN, *own)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="copies of a process are of Linux")
def test_processes_of_one_command(text: Path, serial: str, tmp_path: Path) -> None:
    """Copies of a process that has computed, each on two threads: OpenMP's must not be waited for."""
    shared = ("translate", RUN, text / "text.txt", "--bulk", "--beam-size", "1", "--block-lines", "40")
    done = dragoman(*shared, "-o", tmp_path / "one", "--processes", "3", OMP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "one" / "text.txt").read_text() == serial
    for number, more in enumerate(([], ["--processes", "2"])):  # links are computed by PyTorch
        done = dragoman(*shared, "--alignments", "-o", tmp_path / f"links{number}", *more, OMP_NUM_THREADS="2")
        assert done.returncode == 0, done.stderr
    assert len({(tmp_path / f"links{number}" / "text.txt").read_text() for number in (0, 1)}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="copies of a process are of Linux")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_processes_end_with_their_command(sent: signal.Signals, code: int, text: Path, tmp_path: Path) -> None:
    long, out = tmp_path / "long.txt", tmp_path / "out"
    long.write_text((text / "text.txt").read_text() * 20)
    command = [sys.executable, "-m", "dragoman", "translate", str(RUN), str(long), "--bulk", "--processes", "2"]
    command += ["--beam-size", "1", "--block-lines", "100", "-o", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((out / "blocks").glob("*.txt")):
        time.sleep(0.05)
    copies = psutil.Process(process.pid).children()
    process.send_signal(sent)
    assert process.wait(60) == code
    assert len(copies) == 2
    assert not psutil.wait_procs(copies, timeout=60)[1], "they go on alone"


WORKER = """
import os, signal, sys
from dragoman.pipeline import bulk

after, write = int(sys.argv.pop()), bulk.Work.write
written = 0


def writing(self, *arguments):
    global written
    if written == after:
        os.kill(os.getpid(), signal.SIGKILL)
    written += 1
    write(self, *arguments)


bulk.Work.write = writing
from dragoman.cli.main import main

main()
"""


def test_workers_that_die(text: Path, serial: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["translate", str(RUN), str(text / "text.txt.gz"), "--beam-size", "1", "-o", str(out)]
    arguments += ["--block-lines", "40"]
    for after, code in ((2, -signal.SIGKILL), (0, -signal.SIGKILL), (3, -signal.SIGKILL), (99, 0)):
        done = subprocess.run([sys.executable, "-c", WORKER, *arguments, str(after)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    assert (out / "text.txt").read_text() == serial


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: make test-clients")
def test_ray(text: Path, serial: str, tmp_path: Path) -> None:
    """Through a cluster on this machine."""
    done = dragoman("translate", RUN, text / "text.txt.gz", "--beam-size", "1", "-o", tmp_path / "ray", "--ray", "2")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ray" / "text.txt").read_text() == serial
