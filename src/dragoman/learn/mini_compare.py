"""The reader's Transformer beside Dragoman's: the same first weights and batches, then speed, loss and BLEU."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dragoman.analysis.examples import words_of
from dragoman.config import parse
from dragoman.corpora.embedded import sentences
from dragoman.data.batch import collate
from dragoman.decoding import search as searching
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error
from dragoman.learn import mini, mini_solution, module_file
from dragoman.learn.laboratory import CPU, IdPair, ToyTask
from dragoman.learn.language import translated
from dragoman.learn.limited import allow
from dragoman.progress import say
from dragoman.quality.metrics import metric
from dragoman.quality.test_set import TestSet
from dragoman.training.config import TrainingConfig
from dragoman.training.step import TrainingStep

SIZES = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_layers": 2}
NEEDED = ("Transformer", "batch", "train", "greedy")
"""Pieces that are compared."""
BATCH_SIZE = 32
TRIED = 6
"""Steps that say how long one takes."""


@dataclass(frozen=True)
class Row:
    """Speed, loss and BLEU of a model."""

    name: str
    seconds: float
    tokens_per_second: float
    """Target tokens, in training."""
    loss: float
    """Mean of the last ten steps, in nats a token."""
    bleu: float
    translated_per_second: float
    """Sentences."""


@dataclass(frozen=True)
class Corpus:
    """Ids of the training pairs, and held-out sentences."""

    pairs: list[IdPair]
    sources: list[list[int]]
    references: list[str]
    tokenizers: Any

    def bleu(self, translations: Sequence[Sequence[int]]) -> float:
        test = TestSet(sources=[""] * len(self.references), references=[self.references])
        hypotheses = [self.tokenizers.tgt.decode(ids) for ids in translations]
        bleu = metric("bleu")
        return bleu.score(bleu.statistics(test, hypotheses).sum(axis=0))


def corpus(size: int = 20_000, held_out: int = 100) -> Corpus:
    """The embedded German-English sentences; each word is a token."""
    train, valid = list(sentences("de-en", "train", size)), list(sentences("de-en", "valid", held_out))
    random.Random(1).shuffle(train)
    tokenizers = words_of([text for pair in train for text in pair])
    ids = [(tokenizers.src.encode(src), tokenizers.tgt.encode(tgt)) for src, tgt in train]
    return Corpus(ids, [tokenizers.src.encode(src) for src, _ in valid], [tgt for _, tgt in valid], tokenizers)


def compare(module: Any = mini_solution, seconds: float = 30.0, data: Corpus | None = None) -> list[Row]:
    """Train both for as many steps as the reader's model takes in `seconds`: the reader's row, then Dragoman's.

    `module` has the pieces of `mini_solution`. Raises DragomanError for one that lacks one.
    """
    for name in NEEDED:
        if not callable(getattr(module, name, None)):
            hint = "`dragoman learn 12` adds what is missing"
            raise Error.WRONG_ANSWER(translated("it has no {name}").format(name=name), hint, file=mini.PATH)
    data = data or corpus()
    torch.manual_seed(1)
    model = module.Transformer(data.tokenizers.src.vocab_size, data.tokenizers.tgt.vocab_size, **SIZES)
    other = mini.dragoman_model(model)
    usable = len(data.pairs) - len(data.pairs) % BATCH_SIZE
    batches = [module.batch(data.pairs[start : start + BATCH_SIZE]) for start in range(0, usable, BATCH_SIZE)]

    trial = module.Transformer(data.tokenizers.src.vocab_size, data.tokenizers.tgt.vocab_size, **SIZES)
    module.train(trial, batches, 1)  # PyTorch loads its optimizers
    trial_seconds, _ = _timed(lambda: module.train(trial, batches, TRIED))
    steps = max(10, round(seconds / trial_seconds * TRIED))
    warmup = max(1, steps // 2)
    allow(10 * seconds)
    say(translated("training both for {steps} steps").format(steps=steps))
    own = _timed(lambda: module.train(model, batches, steps, warmup))
    tokens = sum(int((batches[step % len(batches)][2] != mini_solution.PAD).sum()) for step in range(steps))
    ours = _timed(lambda: _train(other, data.pairs[: usable + BATCH_SIZE - 1], steps, warmup))

    def by_the_reader() -> list[list[int]]:
        return [module.greedy(model, torch.tensor([[*ids, mini_solution.EOS]])) for ids in data.sources]

    names = (mini.PATH.name, "Dragoman")
    searches = (by_the_reader, lambda: _translate(other, data.sources))
    rows = []
    for name, (took, losses), translate in zip(names, (own, ours), searches, strict=True):
        search_took, translations = _timed(translate)
        bleu, speed = data.bleu(translations), len(translations) / search_took
        rows.append(Row(name, took, tokens / took, sum(losses[-10:]) / 10, bleu, speed))
    return rows


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def _train(model: Any, pairs: Sequence[IdPair], steps: int, warmup: int) -> list[float]:
    """The reader's training, by Dragoman: Adam without clipping, Noam's rate, no smoothing, no dropout."""
    schedule = {"type": "noam", "warmup_steps": warmup}
    config = parse(
        TrainingConfig,
        {"max_steps": steps, "label_smoothing": 0.0, "clip_norm": 0.0, "compile": "none", "schedule": schedule},
    )
    task: Any = ToyTask(pairs, BATCH_SIZE)
    step = TrainingStep(config, model, task, device=CPU, precision="float32", seed=1)
    rates = config.schedule.build(steps, model.encoder_layers[0].self_attention.output_proj.out_features)
    return [float(step.take(number, rates.rate(number))[0]) for number in range(1, steps + 1)]


def _translate(model: Any, sources: Sequence[list[int]]) -> list[list[int]]:
    """Greedy translations, all in one batch, with a cache of keys and values."""
    batch = collate([(src, src) for src in sources])
    results = searching.search(model, batch.src, batch.src_mask, parse(DecodingConfig, {"beam_size": 1}))
    return [list(hypotheses[0].ids) for hypotheses in results]


def compare_file(path: str, seconds: float) -> list[Row]:
    """`compare` for the reader's file. Raises DragomanError where a piece is missing."""
    return compare(module_file.load(Path(path)), seconds=seconds)


def table(rows: Sequence[Row]) -> str:
    """The rows as lines of text."""
    heads = ("", *(translated(text) for text in ("training", "tokens/s", "loss", "BLEU", "sentences/s")))
    lines = [heads] + [
        (
            row.name,
            f"{row.seconds:.1f} s",
            f"{row.tokens_per_second:,.0f}",
            f"{row.loss:.3f}",
            f"{row.bleu:.1f}",
            f"{row.translated_per_second:,.0f}",
        )
        for row in rows
    ]
    return "\n".join(f"{line[0]:<20}" + "".join(f"{cell:>13}" for cell in line[1:]) for line in lines)
