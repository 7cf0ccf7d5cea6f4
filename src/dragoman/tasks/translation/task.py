"""Translation: batches of sentence pairs, cross-entropy of the target, BLEU of real translations."""

import math
import random
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batch import Batch, Ids, collate
from dragoman.data.batching import BatchPlan
from dragoman.data.eval_batches import eval_batches
from dragoman.data.random import hash64
from dragoman.data.store import IdCorpus
from dragoman.data.stream_blocks import StreamBlocks
from dragoman.evaluation.translation import evaluate, spread, translate
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.special_tokens import UNK_ID
from dragoman.text.augment import Augment, TextAugmentConfig
from dragoman.text.corpus import Pair
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.training.distillation import Teachers
from dragoman.training.distributed import Ranks
from dragoman.training.guided_alignment import GuidedAlignment
from dragoman.training.loss import TEXTBOOK, Losses, r_drop_loss
from dragoman.training.nonfinite import listed
from dragoman.training.task import PlannedTask, Validation

DRY_RUN_PAIRS = 300
"""Validation pairs that are translated before training begins: enough to fill the batches of two searches."""


@dataclass(eq=False)
class TranslationTask(PlannedTask):
    """A `training.task.Task` over one training corpus and one validation corpus."""

    train: IdCorpus
    plan: BatchPlan
    valid: IdCorpus
    valid_pairs: Sequence[Pair]
    tokenizers: TokenizerPair
    _: KW_ONLY
    translator: SearchTranslator
    evaluation: EvaluationConfig
    tgt_lang: str
    seed: int
    samples: int
    r_drop: float = 0.0
    losses: Losses = TEXTBOOK
    teachers: Teachers = field(default_factory=Teachers)
    guide: GuidedAlignment = field(default_factory=GuidedAlignment)
    augment: Augment = field(default_factory=TextAugmentConfig)
    origin: str = "the training corpus"
    unit: str = "line"
    """The files that hold the training pairs, and the unit of them that `describe` numbers."""
    weights: np.ndarray | None = None
    """The multiplier of each pair's loss by the pair's line; None: 1."""
    ranks: Ranks = field(default_factory=Ranks)
    stream: StreamBlocks | None = None
    """Where the training pairs come from in blocks; `train` and `plan` are then the first."""

    def __post_init__(self) -> None:
        self.lines = self.train.lines  # for `describe`; of a stream, the lines of the block in use

    @property
    def from_disk(self) -> bool:
        return self.train.is_read

    def position(self, step: int) -> tuple[int, int]:
        return super().position(step) if self.stream is None else self.stream.position(step)

    def count(self, step: int) -> int:
        return len(self._rows(step)[2])

    def micro_batch(self, step: int, number: int) -> list[Batch]:
        corpus, epoch, rows = self._rows(step)
        return self._collate(corpus, rows[number], epoch)

    def _rows(self, step: int) -> tuple[IdCorpus, int, list[np.ndarray]]:
        """(corpus, epoch, the rows of each micro-batch) of a step."""
        if self.stream is None:
            epoch, step_in_epoch = self.position(step)
            return self.train, epoch, self.plan.step(epoch, step_in_epoch)
        block, within = self.stream.at(step)
        self.lines = block.corpus.lines
        return block.corpus, block.number, block.plan.step(block.number, within)

    def loss(self, model: nn.Module, batch: Batch, label_smoothing: float) -> tuple[Tensor, int, int]:
        inputs = batch.src, batch.src_mask, batch.tgt_in
        maps: list[Tensor] | None = [] if model.training and batch.alignment is not None else None
        forward, passes = partial(model, *inputs) if maps is None else partial(model, *inputs, maps), 1
        if self.r_drop and model.training:
            loss = r_drop_loss(forward, batch.tgt_out, batch.tgt_mask, label_smoothing, self.r_drop, self.losses)
            passes = 2
        else:
            counts = batch.tgt_mask if batch.weights is None else batch.tgt_mask * batch.weights[:, None]
            taught = self.teachers.logits(*inputs) if model.training else []
            loss = self.losses.token_loss(
                forward(),
                batch.tgt_out,
                counts,
                label_smoothing,
                in_place=True,
                teachers=taught,
                weight=self.teachers.weight,
            )
        if maps and batch.alignment is not None:
            loss = loss + sum(self.guide.loss(weights, batch.alignment) for weights in maps[1::2])  # self, cross
        return loss, passes * batch.num_tokens, batch.num_src_tokens + batch.num_tokens

    def worst_case_batch(self, batch_tokens: int) -> Batch:
        rows = self.plan.worst_case_batch(batch_tokens)
        return collate(self.train.pairs(rows), rows)

    def describe(self, batch: Batch) -> str:
        return f"{listed(self.unit, self.lines[batch.rows])} of {self.origin}"

    def validate(self, model: nn.Module) -> Validation:
        """Loss without smoothing over the validation pairs that were kept; BLEU and chrF over all of them, decoded.

        Each rank takes a part: translations do not depend on their batch, and losses are added in one order.
        """
        loss = self._validation_loss(model, self.ranks)
        hypotheses = self.ranks.dealt(translate(self.translator, self.valid_pairs[self.ranks.rank :: self.ranks.world]))
        references = [pair.tgt for pair in self.valid_pairs]
        scores = score(hypotheses, references, self.evaluation, self.tgt_lang, with_ter=False)
        return Validation(
            score=scores.bleu,
            metrics={"loss": loss, "perplexity": math.exp(min(loss, 50.0)), "bleu": scores.bleu, "chrf": scores.chrf},
            samples=spread(self.valid_pairs, hypotheses, self.samples),
            titles={} if scores.titles["bleu"] == "BLEU" else {"bleu": scores.titles["bleu"]},
        )

    def dry_run_validation(self, model: nn.Module) -> float:
        start = time.monotonic()
        self._validation_loss(model, Ranks())
        loss_s = time.monotonic() - start
        pairs = self.valid_pairs[:: max(1, len(self.valid_pairs) // DRY_RUN_PAIRS)]
        # An untrained model does not stop; a trained model makes translations about as long as their sources.
        translator = self.translator.with_decoding(max_length_ratio=1.0, max_length_extra=2)
        evaluated = evaluate(translator, pairs, self.evaluation, self.tgt_lang, with_ter=False)
        return loss_s + evaluated.decode_s * len(self.valid_pairs) / len(pairs)

    @torch.inference_mode()
    def _validation_loss(self, model: nn.Module, ranks: Ranks) -> float:
        model.eval()
        losses = []
        lengths = np.maximum(self.valid.src_lengths, self.valid.tgt_lengths)
        batches = list(eval_batches(lengths, self.plan.batch_tokens))
        for rows in batches[ranks.rank :: ranks.world]:
            batch = collate(self.valid.pairs(rows)).to(self.translator.device)
            loss, tokens, _ = self.loss(model, batch, 0.0)
            losses.append((float(loss), tokens))
        total, count = 0.0, 0
        for loss, tokens in ranks.dealt(losses):
            total, count = total + loss, count + tokens
        return total / count

    def _collate(self, corpus: IdCorpus, rows: np.ndarray, epoch: int) -> list[Batch]:
        """The pairs of a planned batch: a single batch, or several if the pairs became longer than planned.

        Another text or segmentation may be longer than what the plan has counted. Such a batch is cut into several
        batches that keep to the budget. The gradient stays the same, as losses are summed over a step.
        """
        if not (self.augment.is_on or self.tokenizers.src.sampling or self.tokenizers.tgt.sampling):
            return [self._batch(corpus.pairs(rows), rows, corpus)]
        pairs = []
        for row, (src_ids, tgt_ids) in zip(rows, corpus.pairs(rows), strict=True):
            # What a pair is changed to is keyed by (seed, epoch, row), whatever batch it comes in.
            rng = random.Random(hash64(f"({self.seed}, {epoch}, {row})"))
            src, tgt = self._augmented(src_ids.tolist(), tgt_ids.tolist(), rng)
            src = self._if_it_fits(self.tokenizers.src.sample_segmentation(src, rng), src)
            pairs.append((src, self._if_it_fits(self.tokenizers.tgt.sample_segmentation(tgt, rng), tgt)))
        widest = [max(len(src), len(tgt)) for src, tgt in pairs]
        parts = eval_batches(widest, self.plan.batch_tokens)
        return [self._batch([pairs[at] for at in part], rows[part], corpus) for part in parts]

    def _batch(self, pairs: Sequence[tuple[Ids, Ids]], rows: np.ndarray, corpus: IdCorpus) -> Batch:
        batch = self.guide.guided(collate(pairs, rows), corpus)
        if self.weights is None:
            return batch
        return replace(batch, weights=torch.from_numpy(self.weights[corpus.lines[rows]]))

    def _augmented(self, src: list[int], tgt: list[int], rng: random.Random) -> tuple[list[int], list[int]]:
        """The ids of the pair's text as `corpus.augment` changes it; the same ids where a changed side would be
        empty."""
        if not self.augment.is_on or UNK_ID in src or UNK_ID in tgt:
            return src, tgt
        before = self.tokenizers.src.decode(src), self.tokenizers.tgt.decode(tgt)
        after = self.augment(*before, rng, self.translator.languages)
        if after == before:
            return src, tgt
        normalize = self.translator.normalize
        src_ids = self.tokenizers.src.encode_like(src, normalize(after[0]))
        tgt_ids = self.tokenizers.tgt.encode_like(tgt, normalize(after[1]))
        fit = src_ids and tgt_ids and self._fits(src_ids) and self._fits(tgt_ids)
        return (src_ids, tgt_ids) if fit else (src, tgt)

    def _if_it_fits(self, ids: list[int], usual: list[int]) -> list[int]:
        return ids if self._fits(ids) else usual

    def _fits(self, ids: list[int]) -> bool:
        """True unless it is too long for a batch, or of more than `corpus.max_tokens`: a model may have no positions
        for it."""
        return len(ids) <= min(self.translator.max_src_tokens, self.plan.batch_tokens - 1)
