"""The first losses of a tiny training, against recorded ones: a change of numerics shall be seen, not slip in.

A refactoring must leave them as they are. Where numbers are meant to change (initialisation, dropout, the optimizer,
the model), record them anew and say so in the changelog, with the reason:

    DRAGOMAN_RECORD=1 python -m pytest tests/golden

and commit losses.json. They are float32 on one CPU thread. With PyTorch 2.13, its code for plain x86, AVX2 and AVX-512
differs by at most 3e-7 of a loss; the tolerance of 1e-5 leaves room for other processors.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import parse
from dragoman.data.batch import Batch, collate
from dragoman.models.families import TransformerConfig
from dragoman.runs.log import RunLog
from dragoman.training.config import TrainingConfig
from dragoman.training.loop import Trainer
from dragoman.training.loss import Losses
from dragoman.training.step import TrainingStep, pick_losses
from dragoman.training.task import Validation

RECORDED = Path(__file__).with_name("losses.json")
STEPS, VOCAB = 8, 37
VARIANTS: dict[str, dict[str, Any]] = {
    "pre-norm, joint": {"norm_placement": "pre", "tie_embeddings": "all"},
    "post-norm, untied, learned": {
        "norm_placement": "post",
        "tie_embeddings": "none",
        "position": {"type": "learned", "max_len": 32},
        "activation": "gelu",
        "attention_dropout": 0.1,
        "activation_dropout": 0.1,
    },
    "pre-norm, joint, backend: textbook": {"norm_placement": "pre", "tie_embeddings": "all"},
}


class MadeUp:
    """A training task over ids that a formula makes: the target is the source backwards, each id moved by one."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses

    def position(self, step: int) -> tuple[int, int]:
        return 0, step - 1

    def count(self, step: int) -> int:
        return 2

    def micro_batch(self, step: int, number: int) -> list[Batch]:
        return [collate([self.pair(step, number, row) for row in range(6)])]

    def pair(self, step: int, micro_batch: int, row: int) -> tuple[list[int], list[int]]:
        length = 3 + (5 * row + step + micro_batch) % 7
        src = [4 + (7 * step + 11 * row + 13 * micro_batch + 3 * i * i) % (VOCAB - 5) for i in range(length)]
        return src, [token + 1 for token in reversed(src)]

    def loss(self, model: nn.Module, batch: Batch, label_smoothing: float) -> tuple[Tensor, int, int]:
        logits = model(batch.src, batch.src_mask, batch.tgt_in)
        loss = self.losses.token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing)
        return loss, batch.num_tokens, batch.num_tokens

    def validate(self, model: nn.Module) -> Validation:
        raise NotImplementedError


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def first_losses(variant: dict[str, Any], run_dir: Path, backend: str) -> list[float]:
    torch.manual_seed(1)
    sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "num_encoder_layers": 2, "num_decoder_layers": 2}
    config = parse(TransformerConfig, {**sizes, "dropout": 0.1, **variant})
    schedule = {"type": "linear", "lr": 0.005, "warmup_steps": 2}
    given = {"max_steps": 20, "schedule": schedule, "averaging": {"type": "none"}, "backend": backend}
    training = parse(TrainingConfig, given)
    with RunLog(run_dir, loggers=()) as log:
        model = config.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0)
        task = MadeUp(pick_losses(backend))
        step = TrainingStep(training, model, task, device=torch.device("cpu"), precision="float32", seed=5)
        trainer = Trainer(training, step, run_dir=run_dir, log=log, d_model=config.d_model)
        return [trainer.train_step(step)[0].item() for step in range(1, STEPS + 1)]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.usefixtures("one_thread")
def test_the_first_losses_are_those_recorded(name: str, tmp_path: Path) -> None:
    losses = first_losses(VARIANTS[name], tmp_path, "textbook" if name.endswith("textbook") else "auto")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    if os.environ.get("DRAGOMAN_RECORD"):
        recorded[name] = losses
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        pytest.skip("recorded anew")
    assert losses == pytest.approx(recorded[name], rel=1e-5)


def test_every_variant_is_recorded_and_learns() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert recorded.keys() == VARIANTS.keys()
    for losses in recorded.values():
        assert len(losses) == STEPS
        assert losses[-1] < losses[0]
