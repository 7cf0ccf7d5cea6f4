"""Training on what a pipe says: blocks, a kill in between, the end of the stream."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.corpora import embedded
from dragoman.data.batching import BatchPlan
from dragoman.data.store import prepare
from dragoman.data.stream_blocks import StreamBlocks
from dragoman.errors import Error
from dragoman.runs.events import read_events
from dragoman.text.corpus import CorpusConfig
from dragoman.text.sources.stream import Stream, StreamEnded, StreamSource
from dragoman.text.tokenizers.pair import WhitespaceConfig, train_tokenizers

RECIPE: dict[str, Any] = {
    "corpus": {
        "src_lang": "de",
        "tgt_lang": "en",
        "train": {"type": "stream", "block_pairs": 500},
        "valid": {"type": "demo", "pair": "de-en", "split": "valid", "size": 20},
    },
    "tokenizer": {"type": "words"},
    "model": {"type": "transformer", "d_model": 32, "num_heads": 4, "d_ff": 64, "num_encoder_layers": 1}
    | {"num_decoder_layers": 1},
    "training": {"max_steps": 1000, "batch_tokens": 256, "validate_every": 10, "samples": 0, "log_every": 5},
}
PAIRS = [f"{src}\t{tgt}\n" for src, tgt in embedded.sentences("de-en", "train", 1700, 1)]
"""Three blocks of 500 and one of 200."""


def command(recipe: Path, run: Path) -> list[str]:
    return [sys.executable, "-m", "dragoman", "train", str(recipe), f"run_dir={run}"]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(RECIPE))
    return path


def weights(run: Path, step: int) -> bytes:
    return (run / "checkpoints" / f"step-{step:08d}" / "model.safetensors").read_bytes()


def test_training_ends_with_the_stream_and_a_kill_loses_no_block(recipe: Path, tmp_path: Path) -> None:
    straight = tmp_path / "straight"
    done = subprocess.run(command(recipe, straight), input="".join(PAIRS), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    events = read_events(straight / "metrics.jsonl")
    end = next(event for event in events if event["event"] == "end")
    assert end["reason"] == "stream"
    last = end["step"]
    assert 20 < last < 1000
    assert weights(straight, last)
    epochs = [event["epoch"] for event in events if event["event"] == "train"]
    assert (epochs[0], epochs[-1]) == (0, 3)

    run = tmp_path / "killed"
    with subprocess.Popen(command(recipe, run), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        assert started.stdin is not None
        started.stdin.write("".join(PAIRS[:1200]))  # two blocks and a half, and then nothing more
        started.stdin.flush()
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if list(run.glob("checkpoints/step-????????")):
                break
            time.sleep(0.05)
        started.send_signal(signal.SIGKILL)
    # The writer goes on behind the last block that is there.
    there = Stream(parse(StreamSource, RECIPE["corpus"]["train"]), run / "prepared" / "stream").numbers()
    rest = "".join(PAIRS[500 * (max(there) + 1) :])
    done = subprocess.run(command(recipe, run), input=rest, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "going on from step" in done.stderr
    assert weights(run, last) == weights(straight, last)


def test_nothing_comes(recipe: Path, tmp_path: Path) -> None:
    done = subprocess.run(command(recipe, tmp_path / "run"), input="", text=True, capture_output=True)
    assert done.returncode == 2
    assert "nothing came through -" in done.stderr
    done = subprocess.run(
        [*command(recipe, tmp_path / "r"), "corpus.train.path=nowhere"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "nowhere: no such pipe" in done.stderr
    with raises_error(Error.WRONG_SETTING, "valid"):  # a set that is read again and again
        parse(CorpusConfig, {**RECIPE["corpus"], "valid": {"type": "stream"}})


def test_blocks_make_way_for_new_ones(tmp_path: Path) -> None:
    fifo, words = tmp_path / "fifo", [f"w{number}" for number in range(30)]
    os.mkfifo(fifo)
    text = "".join(f"{words[row % 30]} {words[row % 7]}\t{words[row % 11]}\n" for row in range(95))
    writer = threading.Thread(target=lambda: fifo.write_text(text))
    writer.start()
    tokenizers = train_tokenizers(WhitespaceConfig(), lambda: iter(words), lambda: iter(words))
    stream = Stream(StreamSource(path=str(fifo), block_pairs=10), tmp_path / "stream")

    def encode(name: str, text: Any) -> Any:
        return prepare(text, tokenizers, tmp_path / "stream" / name, normalize="nfc", max_tokens=8, workers=1)[0]

    def opened() -> StreamBlocks:
        return StreamBlocks(
            stream, encode, lambda corpus: BatchPlan(corpus.src_lengths, corpus.tgt_lengths, batch_tokens=12, seed=1)
        )

    blocks = opened()
    assert blocks.first().number == 0
    assert blocks.position(1) == (0, 0)
    each = blocks.steps[0]
    assert blocks.position(each + 1) == (1, 0)
    block, within = blocks.at(6 * each + 2)
    assert (block.number, within) == (6, 1)
    assert stream.numbers() == [3, 4, 5, 6]
    assert block.corpus.src(0).tolist() == tokenizers.src.encode(f"{words[60 % 30]} {words[60 % 7]}")
    again = opened()
    assert again.steps == blocks.steps
    assert again.first().number == 3
    assert again.at(6 * each + 2)[0].number == 6
    assert again.at(2)[0].number == 3  # the trial of a run that goes on
    with pytest.raises(StreamEnded):
        again.position(1000)
    assert sum(again.steps) == again.position(sum(again.steps))[1] + 1 + sum(again.steps[:-1])
    writer.join()
