"""The coverage penalty: a translation that never looks at a part of its source has probably left it out.

cp = beta * sum over source positions i of log(min(sum over target positions j of a_ij, 1)), Wu et al. 2016, "Google's
Neural Machine Translation System", eq. 14. It is never positive, and 0 where every position got all the attention of
one step. The weights a_ij come from `cross_attention`, the weights of `</s>` too.
"""

import dataclasses
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.decoding.base import Hypothesis
from dragoman.device import float64_device
from dragoman.errors import Error
from dragoman.models.base import Seq2SeqModel
from dragoman.special_tokens import BOS_ID, PAD_ID

MIN_ATTENTION = 1e-6
"""A position that was not looked at at all has this much attention: its logarithm has to be a number."""


def cross_attention(
    model: Seq2SeqModel,
    src: Int[Tensor, "batch src_len"],
    src_mask: Bool[Tensor, "batch src_len"],
    tgt_in: Int[Tensor, "batch tgt_len"],
) -> Float[Tensor, "batch tgt_len src_len"]:
    """Where in the source each target position looks to say its next token (`Seq2SeqModel.alignment`).

    Raises DragomanError for a model without attention.
    """
    attention = model.alignment(src, src_mask, tgt_in)
    if attention is None:
        raise Error.UNSUPPORTED(
            "this model has no attention: it cannot say which source words a translation comes from"
        )
    return attention


def coverage(attention: Float[Tensor, "tgt_len src_len"], src_mask: Bool[Tensor, " src_len"]) -> float:
    """The penalty of one hypothesis with beta 1. `attention` has the rows of this hypothesis; pads of the source do not
    count.

    >>> round(coverage(torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]), torch.tensor([True, True, True])), 4)
    -1.3863
    """
    looked = attention.sum(dim=0).clamp(MIN_ATTENTION, 1.0)[src_mask]
    return float(looked.to(float64_device(looked.device)).double().log().sum())


def rank_by_coverage(
    model: Seq2SeqModel,
    src: Int[Tensor, "batch src_len"],
    src_mask: Bool[Tensor, "batch src_len"],
    hypotheses: Sequence[Sequence[Hypothesis]],
    beta: float,
    read: Int[Tensor, "batch read_len"] | None = None,
) -> list[list[Hypothesis]]:
    """Add each hypothesis' penalty, times beta, to its score, and put the best first. `read`: tokens that stand before
    the hypotheses of each sentence, `<s>` first."""
    ranked: list[list[Hypothesis]] = []
    for row, of_sentence in enumerate(hypotheses):
        # A batch of its own for each sentence: nothing depends on its neighbours.
        lengths = [len(item.ids) + (not item.cut) for item in of_sentence]  # a cut one has no </s> to look for
        longest = max(lengths)
        before = [BOS_ID] if read is None else read[row].tolist()
        tgt_in = torch.full((len(of_sentence), len(before) - 1 + longest), PAD_ID, device=src.device)
        for place, item in enumerate(of_sentence):
            ids = [*before, *item.ids][: tgt_in.size(1)]
            tgt_in[place, : len(ids)] = torch.tensor(ids, device=src.device)
        count = len(of_sentence)
        attention = cross_attention(model, src[row].expand(count, -1), src_mask[row].expand(count, -1), tgt_in)
        attention = attention[:, len(before) - 1 :]
        scored = [
            dataclasses.replace(item, score=item.score + beta * coverage(weights[:length], src_mask[row]))
            for item, weights, length in zip(of_sentence, attention, lengths, strict=True)
        ]
        ranked.append(sorted(scored, key=lambda item: -item.score))
    return ranked
