"""Translation: batches of sentence pairs, cross-entropy of the target, BLEU of real translations."""

import hashlib
import math
import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batch import Batch, collate
from dragoman.data.plan import BatchPlan
from dragoman.data.store import IdCorpus
from dragoman.evaluation import EvaluationConfig, evaluate, spread
from dragoman.text.corpus import Pair
from dragoman.text.tokenizers import TokenizerPair
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.training.loop import Validation
from dragoman.training.loss import token_loss
from dragoman.translator import Translator


class TranslationTask:
    """A `training.loop.Task` over one training corpus and one validation corpus."""

    def __init__(
        self,
        train: IdCorpus,
        plan: BatchPlan,
        valid: IdCorpus,
        valid_pairs: Sequence[Pair],
        tokenizers: TokenizerPair,
        *,
        translator: Translator,
        evaluation: EvaluationConfig,
        tgt_lang: str,
        seed: int,
        samples: int,
    ) -> None:
        self.train, self.plan, self.valid, self.valid_pairs = train, plan, valid, valid_pairs
        self.tokenizers, self.translator = tokenizers, translator
        self.evaluation, self.tgt_lang, self.seed, self.samples = evaluation, tgt_lang, seed, samples

    def position(self, step: int) -> tuple[int, int]:
        # Batches are cut from sorted lengths, so every epoch has the same number of steps.
        return divmod(step - 1, self.plan.steps_per_epoch())

    def batches(self, step: int) -> list[Batch]:
        epoch, step_in_epoch = self.position(step)
        return [self._collate(rows, epoch) for rows in self.plan.step(epoch, step_in_epoch)]

    def loss(self, model: nn.Module, batch: Batch, label_smoothing: float) -> tuple[Tensor, int, int]:
        logits = model(batch.src, batch.src_mask, batch.tgt_in)
        loss = token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing)
        return loss, batch.num_tokens, batch.num_src_tokens + batch.num_tokens

    def validate(self, model: nn.Module) -> Validation:
        """Loss without smoothing over the validation pairs that were kept; BLEU and chrF over all of them, decoded."""
        loss = self._validation_loss(model)
        found = evaluate(self.translator, self.valid_pairs, self.evaluation, self.tgt_lang, with_ter=False)
        bleu, chrf = found.scores.bleu, found.scores.chrf
        return Validation(
            score=bleu,
            metrics={"loss": loss, "perplexity": math.exp(min(loss, 50.0)), "bleu": bleu, "chrf": chrf},
            samples=spread(self.valid_pairs, found.hypotheses, self.samples),
        )

    @torch.inference_mode()
    def _validation_loss(self, model: nn.Module) -> float:
        model.eval()
        total, count = 0.0, 0
        lengths = np.maximum(self.valid.src_lengths, self.valid.tgt_lengths)
        for rows in BatchPlan.eval_batches(lengths, self.plan.batch_tokens):
            batch = collate([(self.valid.src(row), self.valid.tgt(row)) for row in rows]).to(self.translator.device)
            loss, tokens, _ = self.loss(model, batch, 0.0)
            total, count = total + float(loss), count + tokens
        return total / count

    def _collate(self, rows: np.ndarray, epoch: int) -> Batch:
        pairs = [(self.train.src(row), self.train.tgt(row)) for row in rows]
        if self.tokenizers.src.sampling or self.tokenizers.tgt.sampling:
            # A sentence's segmentation is keyed by (seed, epoch, row), whatever batch it comes in. It is a bit longer
            # than the one that the batch was planned with, so the batch is too: by 20 to 30 % at usual rates.
            resampled = []
            for row, (src, tgt) in zip(rows, pairs, strict=True):
                rng = random.Random(_key(self.seed, epoch, int(row)))
                src_ids = self._resample(self.tokenizers.src, src, rng)
                resampled.append((src_ids, self._resample(self.tokenizers.tgt, tgt, rng)))
            return collate(resampled, rows)
        return collate(pairs, rows)

    def _resample(self, tokenizer: Tokenizer, ids: np.ndarray, rng: random.Random) -> list[int]:
        """Another segmentation, but none of more than `corpus.max_tokens`: a model may have no positions for it."""
        other = tokenizer.resample(ids.tolist(), rng)
        return other if len(other) <= self.translator.max_src_tokens else ids.tolist()


def _key(*numbers: int) -> int:
    return int.from_bytes(hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest(), "little")
