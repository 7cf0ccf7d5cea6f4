"""How cost grows: time per token against sentence length, vocabulary and corpus, with the plot of it.

    python benchmarks/cost_growth.py recipes/multi30k-en-de-tok.yaml --out benchmarks/cost_growth [KEY=VALUE ...]

Length and vocabulary: a training step (all of it, on random ids, 4,096 positions a side), and greedy translation of
as many tokens as the source has. Corpus: `dragoman prepare` (tokenizer, ids) by pairs, `dragoman train` by tokens, on
pairs generated from the embedded corpus (`big_corpus.py`). Best of the rounds. Writes OUT.json and OUT.svg.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from big_corpus import generate, measure, write_recipe
from matplotlib.figure import Figure

from dragoman.analysis import figure as pictures
from dragoman.backends.packed_linear import pack
from dragoman.data.batching import BatchPlan
from dragoman.decoding.search import DecodingConfig, search
from dragoman.device import machine_name
from dragoman.experiments.bench.batches import RandomPairs, subject
from dragoman.models.base import ROW_MULTIPLE
from dragoman.runs.events import METRICS, read_events
from dragoman.special_tokens import SPECIALS
from dragoman.tasks import recipes
from dragoman.training.loop import Trainer
from dragoman.version import commit

BATCH_TOKENS, TRANSLATED_TOKENS = 4096, 2048
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
VOCABULARIES = (4_000, 8_000, 16_000, 32_000, 64_000)
CORPORA = (10_000, 100_000, 1_000_000, 5_000_000)
USUAL_LENGTH, USUAL_VOCABULARY = 16, 8_000
STEPS, ROUNDS = 2, 4
PREPARE, TRAIN, TRANSLATE = "prepare, µs a pair", "train, µs a token", "translate (greedy), µs a token"

Row = dict[str, float]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def best_us(work: Callable[[int], int]) -> float:
    """Microseconds a token, where `work(round)` does some and says how many tokens; round 0 does not count."""
    times = []
    for turn in range(ROUNDS + 1):
        start = time.perf_counter()
        tokens = work(turn)
        times.append((time.perf_counter() - start) / tokens)
    return 1e6 * min(times[1:])


def make_even(task: RandomPairs, length: int, vocab_size: int) -> None:
    """Let every sentence of both sides have `length` tokens, `</s>` among them."""
    rng, rows = np.random.default_rng(1), 32 * BATCH_TOKENS // length
    task.sides = [rng.integers(len(SPECIALS), vocab_size, (rows, length - 1)) for _ in range(2)]
    task.lengths = [np.full(rows, length - 1, dtype=np.int32) for _ in range(2)]
    task.plan = BatchPlan(*task.lengths, batch_tokens=BATCH_TOKENS, seed=1)


def trained(trainer: Trainer) -> float:
    """Microseconds of a training step for each source and target token."""

    def work(turn: int) -> int:
        return sum(trainer.train_step(1 + turn * STEPS + step)[2] for step in range(STEPS))

    return best_us(work)


def translated(model: Any, length: int, vocab_size: int) -> float:
    """Microseconds of greedy search for each token written, `length` of them for a source of as many."""
    torch.manual_seed(1)
    src = torch.randint(len(SPECIALS), vocab_size, (max(ROW_MULTIPLE, TRANSLATED_TOKENS // length), length))
    config = DecodingConfig(beam_size=1, min_length=length - 1, max_length_ratio=1.0, max_length_extra=0)

    def work(turn: int) -> int:
        found = search(model, src, torch.ones_like(src, dtype=torch.bool), config)
        assert all(len(of_sentence[0].ids) >= length - 1 for of_sentence in found)
        return src.numel()

    return best_us(work)


def at(recipe_path: str, overrides: Sequence[str], length: int, vocab_size: int) -> Row:
    """Both measurements for sentences of this length and this vocabulary."""
    changes = [*overrides, "device=cpu", f"tokenizer.vocab_size={vocab_size}", f"training.batch_tokens={BATCH_TOKENS}"]
    recipe: Any = recipes.load(recipe_path, changes)
    with subject(recipe, synthetic=True) as trainer:
        size = int(trainer.model.tgt_vocab_size)  # type: ignore[arg-type]
        assert isinstance(trainer.task, RandomPairs)
        make_even(trainer.task, length, size)
        row = {TRAIN: trained(trainer)}
        model = trainer.model.eval()
        pack(model)
        row[TRANSLATE] = translated(model, length, size)
    return row


def corpus_of(pairs: int, steps: int) -> Row:
    """Preparing a corpus of so many pairs, and training on it for so many steps."""
    with TemporaryDirectory(prefix="dragoman-growth-") as name:
        folder = Path(name)
        generate(folder, pairs)
        recipe = str(write_recipe(folder))
        command = [sys.executable, "-m", "dragoman"]
        prepared = measure([*command, "prepare", recipe])["seconds"]
        measure([*command, "train", recipe, f"training.max_steps={steps}"])
        events = read_events(folder / "run" / METRICS)
        rates = [event["tokens_per_s"] for event in events if event["event"] == "train"]
    return {PREPARE: 1e6 * prepared / pairs, TRAIN: 1e6 / max(rates)}


def draw(found: dict[str, dict[int, Row]], path: Path) -> None:
    import matplotlib

    titles = {
        "length": "tokens of a sentence, each side",
        "vocabulary": "tokens of the vocabulary",
        "corpus": "pairs of the corpus",
    }
    with matplotlib.rc_context(pictures.STYLE):
        figure = Figure(figsize=(12.0, 3.4), layout="constrained")
        for axes, (kind, rows) in zip(figure.subplots(1, 3), found.items(), strict=True):
            for name in next(iter(rows.values())):
                color, marker = (pictures.TRAIN, "o") if name == TRAIN else (pictures.VALID, "s")
                values = [row[name] for row in rows.values()]
                axes.plot(list(rows), values, color=color, marker=marker, markersize=4, linewidth=1.3, label=name)
            axes.set_xscale("log", base=10 if kind == "corpus" else 2)
            axes.set_xticks(list(rows), [f"{size:,}" for size in rows])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_xlabel(titles[kind])
            axes.legend(loc="best")
        pictures.save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--out", type=Path, required=True, help="where to write, without an ending")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=VOCABULARIES)
    parser.add_argument("--pairs", type=int, nargs="+", default=CORPORA, help="of the corpora")
    parser.add_argument("--train-steps", type=int, default=300, help="on each corpus")
    options = parser.parse_intermixed_args()
    found: dict[str, dict[int, Row]] = {"length": {}, "vocabulary": {}, "corpus": {}}
    for length in options.lengths:
        found["length"][length] = at(options.recipe, options.overrides, length, USUAL_VOCABULARY)
        say(f"length {length:,}: {found['length'][length]}")
    for vocab_size in options.vocabularies:
        found["vocabulary"][vocab_size] = at(options.recipe, options.overrides, USUAL_LENGTH, vocab_size)
        say(f"vocabulary {vocab_size:,}: {found['vocabulary'][vocab_size]}")
    for pairs in options.pairs:
        found["corpus"][pairs] = corpus_of(pairs, options.train_steps)
        say(f"corpus {pairs:,}: {found['corpus'][pairs]}")
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine_name(torch.device("cpu")),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "commit": commit(),
        "command": " ".join(["python", "benchmarks/cost_growth.py", *sys.argv[1:]]),
    }
    options.out.with_suffix(".json").write_text(json.dumps({**about, **found}, indent=1, ensure_ascii=False) + "\n")
    draw(found, options.out.with_suffix(".svg"))
    for kind, rows in found.items():
        print(f"\n| {kind} | {' | '.join(next(iter(rows.values())))} |")
        print("|---|---|---|")
        for size, row in rows.items():
            print(f"| {size:,} | {' | '.join(f'{value:.1f}' for value in row.values())} |")


if __name__ == "__main__":
    main()
