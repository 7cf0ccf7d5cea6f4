"""Marian's own training loop (`python -m pymarian train`) on sentences of Dragoman's first steps.

Marian cuts a batch where its source words go past `--mini-batch-words`. It is given the sentences in the order in which
such batches of one length follow each other at random, and is told not to shuffle: so what each step has is known, and
is held against the sentences and target words that Marian itself writes into its log. The batch of a step is shared out
among the threads (`--sync-sgd`).

The clock reads the log: it goes from the line that ends the last step of the warm-up to the line that ends the last
step.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from result import Result
from task import BETAS, CLIP_NORM, EOS, LABEL_SMOOTHING, LEARNING_RATE, NEVER, SOURCE, TARGET, UNK, Options
from task import parse_options as parse

STEP = re.compile(r"Up\. (\d+) : Sen\. ([\d,]+) : Cost \S+ \* ([\d,]+) @")
"""A step's line: its number, the sentences so far, its target words."""
WORKSPACE_MIB = 1024


class Batch(NamedTuple):
    """Lengths of sentences with their </s>; `rows` are their numbers in the corpus."""

    rows: Sequence[int]
    src: Sequence[int]
    tgt: Sequence[int]

    @property
    def real_tokens(self) -> int:
        return sum(self.src) + sum(self.tgt)

    @property
    def padded_tokens(self) -> int:
        return len(self.rows) * (max(self.src) + max(self.tgt))


def batches_of(options: Options) -> list[Batch]:
    """Batches for all steps, as Marian cuts them, at random."""
    steps = options.warm_up + options.steps
    src, tgt = (
        [1 + len(line.split(" ")) for line in options.corpus.lines("train", language)] for language in (SOURCE, TARGET)
    )
    ours: list[list[int]] = json.loads(options.corpus.batches.read_text(encoding="utf-8"))[options.shape_name]
    # Marian's batches may have more sentences than Dragoman's.
    rows = sorted((row for batch in ours[: 2 * steps + 1] for row in batch), key=lambda row: (tgt[row], src[row]))
    batches: list[list[int]] = [[]]
    words = 0
    for row in rows:
        batches[-1].append(row)
        words += src[row]
        if words > options.shape.batch_tokens:
            batches.append([])
            words = 0
    del batches[-1]  # it is not full
    if len(batches) < steps:
        raise SystemExit(
            f"{options.corpus.batches} has no more batches: take fewer steps, or have prepare.py write more"
        )
    random.Random(1).shuffle(batches)
    return [Batch(rows, [src[row] for row in rows], [tgt[row] for row in rows]) for rows in batches[:steps]]


def write_text(options: Options, batches: Sequence[Batch], folder: Path) -> None:
    """Write the sentences last first: without sorting Marian takes what it has read from the end."""
    for language in (SOURCE, TARGET):
        lines = options.corpus.lines("train", language)
        text = [lines[row] for batch in batches for row in batch.rows]
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in reversed(text)), encoding="utf-8")
    table = {piece: number for number, piece in enumerate([EOS, UNK, *options.corpus.read_pieces()])}
    (folder / "vocabulary.yml").write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")  # JSON is YAML


def arguments(options: Options, folder: Path, threads: int) -> list[str]:
    shape = options.shape
    settings = {
        "model": folder / "model.npz",
        "train-sets": [folder / f"train.{SOURCE}", folder / f"train.{TARGET}"],
        "vocabs": [folder / "vocabulary.yml"] * 2,
        "tempdir": folder,
        "type": "transformer",
        "dim-emb": shape.d_model,
        "transformer-dim-ffn": shape.d_ff,
        "transformer-heads": shape.num_heads,
        "enc-depth": shape.num_encoder_layers,
        "dec-depth": shape.num_decoder_layers,
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-top": "n",
        "transformer-postprocess-emb": "d",
        "transformer-ffn-activation": "relu",
        "transformer-dropout": shape.dropout,
        "label-smoothing": LABEL_SMOOTHING,
        "cost-type": "ce-sum",  # with this one the log has the target words of each step
        "optimizer": "adam",
        "optimizer-params": [*BETAS, 1e-9],
        "learn-rate": LEARNING_RATE,
        "clip-norm": CLIP_NORM,
        "precision": [options.precision] * 2,
        "max-length": 1000,
        "mini-batch-words": shape.batch_tokens,
        "maxi-batch": NEVER,
        "maxi-batch-sort": "none",
        "shuffle": "none",
        "cpu-threads": threads,
        "data-threads": 1,
        "workspace": WORKSPACE_MIB,
        "seed": 1,
        "disp-freq": "1u",
        "after": f"{options.warm_up + options.steps}u",
    }
    switches = ["--tied-embeddings-all", "--sync-sgd"]
    for name, value in settings.items():
        switches += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return switches


def steps_of(command: Sequence[str]) -> Iterator[tuple[float, int, int]]:
    """The time at which each step ended, the sentences so far, the step's target words."""
    # The threads that compute are Marian's own: those of a library under them would be more than there are cores.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", env=environment
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        now = time.perf_counter()
        lines.append(line)
        if step := STEP.search(line):
            yield now, *(int(number.replace(",", "")) for number in step.groups()[1:])
    if process.wait():
        raise SystemExit(f"pymarian ended with {process.returncode}:\n{''.join(lines[-15:])}")


def num_parameters(model: Path) -> int:
    with np.load(model) as arrays:
        return sum(arrays[name].size for name in arrays.files if not name.startswith("special:"))


def main() -> None:
    options = parse("marian", __doc__)
    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    batches = batches_of(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_text(options, batches, folder)
        ends, sentences = [], 0
        command = [sys.executable, "-m", "pymarian", "train", *arguments(options, folder, threads)]
        start = time.perf_counter()
        for batch, (end, all_sentences, words) in zip(batches, steps_of(command), strict=True):
            sentences += len(batch.rows)
            if (sentences, sum(batch.tgt)) != (all_sentences, words):
                raise SystemExit(f"step {1 + len(ends)} has other sentences than were meant for it: count them anew")
            ends.append(end)
        parameters = num_parameters(folder / "model.npz")
    counted = batches[options.warm_up :]
    Result(
        name=options.name,
        version=version("pymarian"),
        torch="",
        shape=options.shape_name,
        precision=options.precision,
        threads=threads,
        parameters=parameters,
        steps=options.steps,
        seconds=ends[-1] - (ends[options.warm_up - 1] if options.warm_up else start),
        real_tokens=sum(batch.real_tokens for batch in counted),
        padded_tokens=sum(batch.padded_tokens for batch in counted),
        sentences=sum(len(batch.rows) for batch in counted),
    ).show()


if __name__ == "__main__":
    main()
