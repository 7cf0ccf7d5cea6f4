"""Language modelling: windows of one long text, cross-entropy of each next token, nats per token of unseen text."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.backends import chunked_loss
from dragoman.data.windows import IntArray, WindowPlan, Windows, covering, cut
from dragoman.inference.generator import Generator
from dragoman.special_tokens import EOS_ID, UNK_ID
from dragoman.tasks.base import Scores
from dragoman.training.loss import TEXTBOOK, Losses, r_drop_loss
from dragoman.training.nonfinite import listed
from dragoman.training.task import PlannedTask, Validation

EVALUATION_TOKENS = 8192
"""Positions of a batch when nothing is learnt from it."""


@dataclass(frozen=True)
class TextScores(Scores):
    """Measures of how well a model foresees a text: lower is better everywhere.

    `loss` is in nats per token (line feeds are tokens), `bits_per_character` does not depend on the tokenizer.
    Each prediction has seen from `min_context` to `max_context` tokens, less only at the start of the text. A
    tokenizer with `unknown` tokens flatters the model: it foresees `<unk>`, not what stands there.
    """

    loss: float
    perplexity: float
    bits_per_character: float
    tokens: int
    characters: int
    unknown: int
    min_context: int
    max_context: int

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        return {
            "tokens": f"{self.tokens:,}",
            "unknown": f"{self.unknown:,}",
            "context": f"{self.min_context}-{self.max_context}",
            "nats/tok": f"{self.loss:.4f}",
            "ppl": f"{self.perplexity:.2f}",
            "bits/char": f"{self.bits_per_character:.4f}",
        }


@torch.inference_mode()
def score(
    model: nn.Module, ids: IntArray, characters: int, *, block_len: int, min_context: int, device: torch.device
) -> TextScores:
    """The loss of the whole text, each of its tokens predicted exactly once, the first from a line feed before it."""
    starts, first = covering(len(ids), block_len, min_context)
    text = np.concatenate([[EOS_ID], ids])
    length = min(block_len, len(ids))
    was_training = model.training
    model.eval()
    nats, count, rows = 0.0, 0, max(1, EVALUATION_TOKENS // length)
    for row in range(0, len(starts), rows):
        windows = cut(text, starts[row : row + rows], length, first[row : row + rows]).to(device)
        nats += float(chunked_loss.token_loss(model(windows.tgt_in), windows.tgt_out, windows.tgt_mask))
        count += windows.num_tokens
    model.train(was_training)
    assert count == len(ids)
    loss = nats / count
    return TextScores(
        loss=loss,
        perplexity=math.exp(min(loss, 50.0)),
        bits_per_character=nats / math.log(2) / characters,
        tokens=count,
        characters=characters,
        unknown=int((ids == UNK_ID).sum()),
        min_context=min_context,
        max_context=block_len,
    )


def samples(generator: Generator, ids: IntArray, count: int) -> list[dict[str, str]]:
    """Up to `count` places of a text, the same every time: (the text before, its continuation, the model's
    continuation)."""
    prompt_len = max(1, generator.max_context // 4)
    length = 2 * prompt_len
    room = len(ids) - prompt_len - length
    if room < 0 or not count:
        return []
    line_starts = np.flatnonzero(ids[:room] == EOS_ID) + 1
    places = line_starts if len(line_starts) >= count else np.arange(room + 1)
    chosen = [int(places[i * len(places) // count]) for i in range(min(count, len(places)))]
    prompts = [ids[place : place + prompt_len].tolist() for place in chosen]
    continuations = generator.continuations(prompts, max_tokens=length)
    return [
        {
            "src": generator.text(prompt),
            "ref": generator.text_after(prompt, ids[place + prompt_len : place + prompt_len + length].tolist()),
            "hyp": continuation,
        }
        for place, prompt, continuation in zip(chosen, prompts, continuations, strict=True)
    ]


@dataclass(eq=False)
class LanguageModellingTask(PlannedTask):
    """A `training.task.Task` over one training text and one validation text."""

    train: IntArray
    plan: WindowPlan
    valid: IntArray
    valid_characters: int
    _: KW_ONLY
    generator: Generator
    min_context: int
    shown: int
    r_drop: float = 0.0
    losses: Losses = TEXTBOOK

    def micro_batch(self, step: int, number: int) -> list[Windows]:
        return [cut(self.train, self.plan.step(*self.position(step))[number], self.plan.block_len)]

    def loss(self, model: nn.Module, batch: Windows, label_smoothing: float) -> tuple[Tensor, int, int]:
        if self.r_drop and model.training:
            passes = partial(model, batch.tgt_in)
            loss = r_drop_loss(passes, batch.tgt_out, batch.tgt_mask, label_smoothing, self.r_drop, self.losses)
            return loss, 2 * batch.num_tokens, batch.num_tokens
        logits = model(batch.tgt_in)
        loss = self.losses.token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing, in_place=True)
        return loss, batch.num_tokens, batch.num_tokens

    def worst_case_batch(self, batch_tokens: int) -> Windows:
        return cut(self.train, self.plan.worst_case_batch(batch_tokens), self.plan.block_len)

    def describe(self, batch: Windows) -> str:
        return listed("text from line", [int((self.train[:start] == EOS_ID).sum()) + 1 for start in batch.starts])

    def validate(self, model: nn.Module) -> Validation:
        """The loss of the whole validation text, and a few of its places continued."""
        scores = score(
            model,
            self.valid,
            self.valid_characters,
            block_len=self.plan.block_len,
            min_context=self.min_context,
            device=self.generator.device,
        )
        metrics = {name: getattr(scores, name) for name in ("loss", "perplexity", "bits_per_character")}
        return Validation(-scores.loss, metrics, samples(self.generator, self.valid, self.shown))
