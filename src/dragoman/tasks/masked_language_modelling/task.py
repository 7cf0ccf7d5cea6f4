"""Masked language modelling: texts with hidden tokens, the cross-entropy of these, the share that is guessed."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batching import BatchPlan
from dragoman.data.eval_batches import eval_batches
from dragoman.data.inputs import TextInputs
from dragoman.data.masked_tokens import MaskedLMBatch, MaskingConfig, mask_tokens
from dragoman.inference.fill_mask import FillMask
from dragoman.special_tokens import SPECIALS
from dragoman.tasks.base import Scores
from dragoman.training.loss import TEXTBOOK, Losses
from dragoman.training.nonfinite import listed
from dragoman.training.task import PlannedTask, Validation

EVALUATION_TOKENS = 4096
"""Positions of a batch when nothing is learnt from it."""
EVALUATION_SEED = 1
"""The same tokens of a text are hidden in every evaluation, whatever a run's seed."""


@dataclass(frozen=True)
class MaskedLMScores(Scores):
    """Measures of how well a model guesses hidden tokens: loss in nats a token, the share in percent that is right."""

    loss: float
    perplexity: float
    accuracy: float
    tokens: int

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        return {
            "tokens": f"{self.tokens:,}",
            "nats/tok": f"{self.loss:.4f}",
            "ppl": f"{self.perplexity:.2f}",
            "right": f"{self.accuracy:.2f} %",
        }


@torch.inference_mode()
def score(
    model: nn.Module, texts: TextInputs, hiding: MaskingConfig, vocab_size: int, device: torch.device
) -> MaskedLMScores:
    """The loss of all tokens that are hidden in a text, the same ones each time."""
    was_training = model.training
    model.eval()
    loss, right, count = 0.0, 0, 0
    for rows in eval_batches(texts.lengths, EVALUATION_TOKENS):
        batch = mask_tokens(texts, rows, hiding, vocab_size, EVALUATION_SEED, 0).to(device)
        logits = model(batch.ids, batch.mask)[batch.guessed].float()
        targets = batch.targets[batch.guessed]
        loss += float(nn.functional.cross_entropy(logits, targets, reduction="sum"))
        right += int((logits.argmax(dim=-1) == targets).sum())
        count += batch.num_tokens
    model.train(was_training)
    mean = loss / count
    return MaskedLMScores(mean, math.exp(min(mean, 50.0)), 100 * right / count, count)


@dataclass(eq=False)
class MaskedLanguageModellingTask(PlannedTask):
    """A `training.task.Task` over lines of text."""

    train: TextInputs
    plan: BatchPlan
    valid: TextInputs
    valid_lines: Sequence[str]
    _: KW_ONLY
    filler: FillMask
    hiding: MaskingConfig
    seed: int
    shown: int
    losses: Losses = TEXTBOOK

    def __post_init__(self) -> None:
        self.vocab_size = self.filler.tokenizer.vocab_size

    def micro_batch(self, step: int, number: int) -> list[MaskedLMBatch]:
        epoch, step_in_epoch = self.position(step)
        rows = self.plan.step(epoch, step_in_epoch)[number]
        return [mask_tokens(self.train, np.sort(rows), self.hiding, self.vocab_size, self.seed, epoch)]

    def loss(self, model: nn.Module, batch: MaskedLMBatch, label_smoothing: float) -> tuple[Tensor, int, int]:
        logits = model(batch.ids, batch.mask)
        loss = self.losses.token_loss(logits, batch.targets, batch.guessed, label_smoothing, in_place=True)
        return loss, batch.num_tokens, batch.num_positions

    def worst_case_batch(self, batch_tokens: int) -> MaskedLMBatch:
        rows = self.plan.worst_case_batch(batch_tokens)
        return mask_tokens(self.train, rows, self.hiding, self.vocab_size, self.seed, 0)

    def describe(self, batch: MaskedLMBatch) -> str:
        return listed("line", batch.rows + 1)

    def validate(self, model: nn.Module) -> Validation:
        """The loss of the validation text's hidden tokens, and a few lines with the guesses."""
        scores = score(model, self.valid, self.hiding, self.vocab_size, self.filler.device)
        metrics = {"loss": scores.loss, "perplexity": scores.perplexity, "accuracy": scores.accuracy}
        return Validation(-scores.loss, metrics, self.samples())

    def samples(self) -> list[dict[str, str]]:
        """A few lines with hidden tokens, the guesses in their places, and the lines as they were."""
        rows = np.arange(min(self.shown, len(self.valid_lines)))
        if not len(rows):
            return []
        batch = mask_tokens(self.valid, rows, self.hiding, self.vocab_size, EVALUATION_SEED, 0)
        guesses = self.filler.guesses(batch.ids, batch.mask)
        tokenizer, samples = self.filler.tokenizer, []
        for row in range(len(rows)):
            real = int(batch.mask[row].sum()) - 1
            filled = torch.where(batch.guessed[row], guesses[row], batch.ids[row])[:real].tolist()
            pieces = tokenizer.pieces(batch.ids[row, :real].tolist())
            guessed = batch.guessed[row, :real].tolist()
            shown = " ".join("[?]" if one else piece for piece, one in zip(pieces, guessed, strict=True))
            readable = [index for index in filled if index >= len(SPECIALS)]
            samples.append({"src": shown, "ref": self.valid_lines[row], "hyp": tokenizer.decode(readable)})
        return samples
