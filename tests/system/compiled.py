"""Compiled and plain trainings side by side, in a process of its own: `test_compilation.py` reads the JSON it prints.

The wrappers with which tests check shapes (conftest.py) cannot be compiled; here they are not there.

    python tests/system/compiled.py BACKEND CASE PRECISION STEPS
"""

import json
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from dragoman.backends import compile as compilation
from dragoman.config import parse
from dragoman.data.batch import collate
from dragoman.data.inputs import LabelledBatch
from dragoman.models.families import TransformerConfig
from dragoman.models.language_model import LanguageModelConfig
from dragoman.models.vit import ViTConfig
from dragoman.runs import checkpoint
from dragoman.runs.log import RunLog
from dragoman.training.config import TrainingConfig
from dragoman.training.loop import Trainer
from dragoman.training.loss import textbook_loss, token_loss
from dragoman.training.step import TrainingStep
from dragoman.training.task import Validation

VOCAB = 19
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.0}
STACK = {"num_encoder_layers": 2, "num_decoder_layers": 2}
CASES: dict[str, Any] = {
    "pre": (TransformerConfig, {**STACK, "norm_placement": "pre", "position": {"type": "rotary"}}),
    "post": (
        TransformerConfig,
        {
            **STACK,
            "norm_placement": "post",
            "activation": "swiglu",
            "norm": "rms",
            "num_kv_heads": 1,
            "position": {"type": "alibi"},
        },
    ),
    "relative": (TransformerConfig, {**STACK, "position": {"type": "relative", "max_distance": 4}}),
    "ssru": (TransformerConfig, {**STACK, "decoder_autoreg": "rnn", "tied_layers": [1, 1]}),
    "dropout": (TransformerConfig, {**STACK, "dropout": 0.2, "attention_dropout": 0.1}),
    "lm": (LanguageModelConfig, {"num_layers": 2}),
    "vit": (ViTConfig, {"num_layers": 2, "image_size": 12}),
}


def built(case: str) -> nn.Module:
    torch.manual_seed(1)
    settings, values = CASES[case]
    config = parse(settings, {**SIZES, **values})
    if case == "vit":
        return config.build(num_labels=3)
    if case == "lm":
        return config.build(vocab_size=VOCAB, pad_id=0)
    return config.build(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, shared_vocab=True, pad_id=0)


class Shapes:
    """A task: in every step a batch of another shape."""

    def __init__(self, case: str) -> None:
        self.case = case
        self.seen: list[Tensor] = []

    def position(self, step: int) -> tuple[int, int]:
        return 0, step - 1

    def count(self, step: int) -> int:
        return 1

    def micro_batch(self, step: int, number: int) -> list[Any]:
        draw = torch.Generator().manual_seed(step)
        rows, *widths = (3 + int(size) for size in torch.randint(0, 12, (3,), generator=draw))
        if self.case == "vit":
            images = torch.randn(rows, 1, 12, 12, generator=draw)
            return [LabelledBatch((images,), torch.arange(rows) % 3, rows, np.arange(rows))]
        lengths = [torch.randint(1, width, (rows,), generator=draw).tolist() for width in widths]
        pairs = [
            ([4 + (7 * i + step) % 15 for i in range(src)], [4 + (3 * i + src) % 15 for i in range(tgt)])
            for src, tgt in zip(*lengths, strict=True)
        ]
        return [collate(pairs)]

    def loss(self, model: nn.Module, batch: Any, label_smoothing: float) -> tuple[Tensor, int, int]:
        if self.case == "vit":
            return textbook_loss(model(*batch.inputs), batch.labels, label_smoothing), len(batch), len(batch)
        logits = model(batch.tgt_in) if self.case == "lm" else model(batch.src, batch.src_mask, batch.tgt_in)
        return token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing), batch.num_tokens, batch.num_tokens

    @torch.inference_mode()
    def validate(self, model: nn.Module) -> Validation:
        model.eval()
        for step in range(3):
            self.seen.append(self.loss(model, self.micro_batch(step, 0)[0], 0.0)[0])
        return Validation(0.0, {"loss": float(self.seen[-1])})


def trainer(case: str, compiled: str, precision: str, log: RunLog, run_dir: Path) -> Trainer:
    settings = {"compile": compiled, "max_steps": 3, "validate_every": 3, "averaging": {"type": "none"}}
    config, cpu = parse(TrainingConfig, settings), torch.device("cpu")
    step = TrainingStep(config, built(case), Shapes(case), device=cpu, precision=precision, seed=1)
    return Trainer(config, step, run_dir=run_dir, log=log, d_model=16)


def main(backend: str, case: str, precision: str, steps: int) -> dict[str, Any]:
    compilation.BACKEND = backend
    with TemporaryDirectory() as folder, RunLog(folder, loggers=()) as log:
        plain, compiled = (trainer(case, how, precision, log, Path(folder) / how) for how in ("none", "layers"))
        counters.clear()
        losses, gradients = [], []
        for step in range(1, steps + 1):
            sums, whole = [], []
            for one in (plain, compiled):
                sums.append(float(one.training_step.gradients(step)[0]))
                found = [parameter.grad.flatten() for parameter in one.model.parameters()]
                whole.append(torch.cat(found))
            losses.append(abs(sums[0] - sums[1]) / abs(sums[0]))
            gradients.append(float((whole[0] - whole[1]).norm() / whole[0].norm()))
        repeated = [float(compiled.training_step.gradients(2)[0]) for _ in range(2)]
        compilations = counters["stats"]["unique_graphs"]
        breaks = sum(counters["graph_break"].values())
        for one in (plain, compiled):
            one.rate = lambda step: 0.0  # type: ignore[method-assign]  # both keep the weights that they began with
            one.train()
        equal = [map(torch.equal, plain.task.seen, compiled.task.seen)]  # type: ignore[attr-defined]
        return {
            "compiled": compiled.training_step.compiled,
            "loss": max(losses),
            "gradient": max(gradients),
            "repeats": repeated[0] == repeated[1],
            "compilations": compilations,
            "breaks": breaks,
            "validated by eager code": all(*equal) and compilations == counters["stats"]["unique_graphs"],
            "names": list(checkpoint.weights(plain.model)) == list(checkpoint.weights(compiled.model)),
        }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
