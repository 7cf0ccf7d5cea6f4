"""The laboratory: toy tasks that train in seconds, and the figures in which a planted bug shows.

All of it is Dragoman's own: the toy corpus, batches, models, losses, optimizer steps, searches. Layers are the textbook
ones, so that what is planted in them runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.config import parse
from dragoman.data.batch import Batch, collate
from dragoman.decoding import search as searching
from dragoman.decoding.base import DecodingConfig
from dragoman.models.base import Seq2SeqModel
from dragoman.models.families import TransformerConfig
from dragoman.models.recurrent import RecurrentConfig
from dragoman.text.sources.toy import ToySource
from dragoman.training import loss as losses
from dragoman.training.config import TrainingConfig
from dragoman.training.nonfinite import NotFinite
from dragoman.training.step import TrainingStep

CPU = torch.device("cpu")
VOCAB = 14
"""Four specials and ten symbols."""
SRC, TGT = [5, 9, 4, 12, 7, 8], [8, 7, 12, 4, 9]
"""A pair of symbols to try things with."""
TRANSFORMER: dict[str, Any] = {
    "d_model": 48,
    "num_heads": 4,
    "d_ff": 96,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "dropout": 0.0,
}
LSTM = {"d_embedding": 32, "d_model": 48, "dropout": 0.0, "attention": "additive"}
IdPair = tuple[list[int], list[int]]


def pairs(task: str, split: str, size: int, seed: int = 1) -> list[IdPair]:
    """Pairs of ids of a toy task: symbol n is id n + 3."""
    source = ToySource(task=task, split=split, size=size, max_length=6, seed=seed)  # type: ignore[arg-type]
    return [([int(n) + 3 for n in p.src.split()], [int(n) + 3 for n in p.tgt.split()]) for p in source.pairs()]


@dataclass
class ToyTask:
    """Batches and loss of a toy task: what `TrainingStep` asks of a task."""

    data: Sequence[IdPair]
    batch_size: int = 48

    def count(self, step: int) -> int:
        return 1

    def micro_batch(self, step: int, number: int) -> list[Batch]:
        start = (step - 1) * self.batch_size % (len(self.data) - self.batch_size + 1)
        return [collate(self.data[start : start + self.batch_size])]

    def loss(self, model: nn.Module, batch: Batch, label_smoothing: float) -> tuple[Tensor, int, int]:
        logits = model(batch.src, batch.src_mask, batch.tgt_in)
        loss = losses.token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing)
        return loss, batch.num_tokens, batch.num_tokens

    def describe(self, batch: Batch) -> str:
        return "toy pairs"


@dataclass
class Trained:
    """The result of a training: the loss of each step (up to the one that was no number), and the model."""

    model: Seq2SeqModel
    losses: list[float] = field(default_factory=list)

    @property
    def last_loss(self) -> float:
        """The mean of the last ten steps; infinite where the training ended with a loss that was no number."""
        return sum(self.losses[-10:]) / 10 if len(self.losses) >= 10 else math.inf

    def exact(self, task: str, beam_size: int = 1) -> float:
        """The share of a hundred unseen sequences that come out right."""
        data = pairs(task, "test", 100)
        try:
            translations = translate(self.model, [src for src, _ in data], beam_size)
        except (RuntimeError, ValueError):  # a planted bug may not even get as far as a translation
            return 0.0
        return sum(one == tgt for one, (_, tgt) in zip(translations, data, strict=True)) / len(data)


def build(seed: int, **settings: Any) -> Seq2SeqModel:
    """A fresh toy model; `type` is transformer or recurrent."""
    torch.manual_seed(seed)
    recurrent = settings.pop("type", "transformer") == "recurrent"
    family: Any = RecurrentConfig if recurrent else TransformerConfig
    config = parse(family, {**(LSTM if recurrent else TRANSFORMER), **settings})
    built: Seq2SeqModel = config.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0)
    return built


def train(
    seed: int = 1, task: str = "reverse", steps: int = 250, training: dict[str, Any] | None = None, **model: Any
) -> Trained:
    """Train a toy model."""
    settings: dict[str, Any] = {
        "max_steps": steps,
        "backend": "textbook",
        "compile": "none",
        "label_smoothing": 0.0,
        "schedule": {"type": "linear", "lr": 5e-3, "warmup_steps": 50},
        **(training or {}),
    }
    config = parse(TrainingConfig, settings)
    built = build(seed, **model)
    data = ToyTask(pairs(task, "train", 48 * 250, seed))
    step = TrainingStep(config, built, data, device=CPU, precision="float32", seed=seed)  # type: ignore[arg-type]
    schedule = config.schedule.build(steps, 48)
    trained = Trained(built)
    for number in range(1, steps + 1):
        try:
            loss, _, _ = step.take(number, schedule.rate(number))
        except NotFinite:
            break
        trained.losses.append(float(loss))
    return trained


def translate(model: Seq2SeqModel, sources: Sequence[list[int]], beam_size: int = 1) -> list[list[int]]:
    """The best translation of each source, all in one batch."""
    batch = collate([(src, src) for src in sources])
    config = parse(DecodingConfig, {"beam_size": beam_size, "max_length_ratio": 1.0, "max_length_extra": 4})
    results = searching.search(model, batch.src, batch.src_mask, config)
    return [list(hypotheses[0].ids) for hypotheses in results]
