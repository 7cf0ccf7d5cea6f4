"""Ensembles: the probabilities of several models, averaged token by token, behind the interface of one model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.models.base import AttentionMaps, DecoderState, Seq2SeqModel, SourceIds, SourceMask, TargetIds
from dragoman.models.stacks import stack


@dataclass(frozen=True)
class EnsembleState:
    """The states of the models."""

    states: tuple[DecoderState, ...]

    @property
    def pads_rows(self) -> bool:
        return all(state.pads_rows for state in self.states)

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "EnsembleState":
        return EnsembleState(tuple(state.reorder(rows) for state in self.states))


class Ensemble(Seq2SeqModel):
    """Models of any families with the same vocabularies.

    The logits are log probabilities: the logarithm of the mean of the models' probabilities, in float32.
    """

    def __init__(self, models: Sequence[Seq2SeqModel]) -> None:
        super().__init__()
        first = models[0]
        sizes = {(model.src_vocab_size, model.tgt_vocab_size) for model in models}
        assert len(sizes) == 1, "models of one vocabulary"
        self.models = stack(models)
        self.src_vocab_size, self.tgt_vocab_size = first.src_vocab_size, first.tgt_vocab_size
        limits = [model.max_target_length for model in models if model.max_target_length is not None]
        self.max_target_length = min(limits, default=None)
        self.reads_at_once = all(model.reads_at_once for model in models)

    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> tuple[Any, ...]:
        return tuple(model.encode(src, src_mask) for model in self.models)

    def decode(
        self, tgt_in: Int[Tensor, "batch tgt_len"], memory: tuple[Any, ...]
    ) -> Float[Tensor, "batch tgt_len vocab"]:
        return _mean([model.decode(tgt_in, part) for model, part in zip(self.models, memory, strict=True)])

    def start(self, memory: tuple[Any, ...]) -> EnsembleState:
        return EnsembleState(tuple(model.start(part) for model, part in zip(self.models, memory, strict=True)))

    def start_search(
        self, memory: tuple[Any, ...], rows_per_sentence: int, read: TargetIds | None = None
    ) -> EnsembleState:
        of_models = zip(self.models, memory, strict=True)
        return EnsembleState(tuple(model.start_search(part, rows_per_sentence, read) for model, part in of_models))

    def decode_step(
        self, prev: Int[Tensor, " rows"], state: EnsembleState
    ) -> tuple[Float[Tensor, "rows vocab"], EnsembleState]:
        return self.decode_steps([prev], [state])[0]

    def decode_steps(
        self, prevs: Sequence[Int[Tensor, " _rows"]], states: Sequence[EnsembleState]
    ) -> list[tuple[Float[Tensor, "_rows vocab"], EnsembleState]]:
        of_models = zip(*(state.states for state in states), strict=True)
        steps = [model.decode_steps(prevs, parts) for model, parts in zip(self.models, of_models, strict=True)]
        return [
            (_mean([logits for logits, _ in of_state]), EnsembleState(tuple(part for _, part in of_state)))
            for of_state in zip(*steps, strict=True)
        ]

    def attention_maps(self, src: SourceIds, src_mask: SourceMask, tgt_in: TargetIds) -> AttentionMaps:
        """One map: the mean of the alignments (`alignment`) of all models that have attention."""
        maps = [model.alignment(src, src_mask, tgt_in) for model in self.models]
        weights = [one.float() for one in maps if one is not None]
        return {"decoder.cross": torch.stack(weights).mean(dim=0)[:, None]} if weights else {}


def _mean(logits: list[Tensor]) -> Tensor:
    """log of the mean of softmax(logits)."""
    log_probs = torch.stack([one.log_softmax(dim=-1, dtype=torch.float32) for one in logits])
    return log_probs.logsumexp(dim=0) - math.log(len(logits))
