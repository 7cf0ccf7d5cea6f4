"""A plain training loop on Dragoman's batches, for models that come without a loop."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from clock import StepClock
from plain import build_optimizer, take_step
from task import BETAS, BOS, CLIP_NORM, EOS, LABEL_SMOOTHING, LEARNING_RATE, PAD, SOURCE, SPECIALS, TARGET, Options
from torch import Tensor, nn

PAD_ID, BOS_ID, EOS_ID = (SPECIALS.index(special) for special in (PAD, BOS, EOS))


@dataclass(frozen=True)
class Pairs:
    """Padded pairs; `src` and `tgt_out` end with </s>, `tgt_in` begins with <s>; the mask is True at real tokens."""

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor


def dragomans_batches(options: Options) -> Iterator[Pairs]:
    """The pairs that Dragoman has in each of its first steps, padded as there."""
    ids_of = {piece: number for number, piece in enumerate(options.corpus.read_pieces(), start=len(SPECIALS))}
    sources, targets = (
        [[ids_of[piece] for piece in line.split(" ")] for line in options.corpus.lines("train", language)]
        for language in (SOURCE, TARGET)
    )
    for rows in json.loads(options.corpus.batches.read_text(encoding="utf-8"))[options.shape_name]:
        yield padded(sources, targets, rows)
    raise SystemExit(f"{options.corpus.batches} has no more batches: take fewer steps, or have prepare.py write more")


def padded(sources: list[list[int]], targets: list[list[int]], rows: list[int]) -> Pairs:
    """The pairs of some rows of a corpus of ids."""
    src = _pad([[*sources[row], EOS_ID] for row in rows])
    tgt_in = _pad([[BOS_ID, *targets[row]] for row in rows])
    tgt_out = _pad([[*targets[row], EOS_ID] for row in rows])
    return Pairs(src, src != PAD_ID, tgt_in, tgt_out)


def batches_of_alike(
    sources: list[list[int]], targets: list[list[int]], batch_tokens: int, seed: int
) -> Iterator[list[int]]:
    """Rows of batches without end: pairs of about one length, cut where the longer side has `batch_tokens` positions,
    in another order each epoch."""
    lengths = [1 + max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
    rng = random.Random(seed)
    while True:
        order = sorted(range(len(lengths)), key=lambda row: (lengths[row], rng.random()))
        batches: list[list[int]] = [[]]
        for row in order:  # the longest one is the last
            if batches[-1] and (1 + len(batches[-1])) * lengths[row] > batch_tokens:
                batches.append([])
            batches[-1].append(row)
        rng.shuffle(batches)
        yield from batches


def _pad(sentences: list[list[int]]) -> Tensor:
    width = max(map(len, sentences))
    return torch.tensor([sentence + [PAD_ID] * (width - len(sentence)) for sentence in sentences])


def train(model: nn.Module, options: Options, package: str) -> None:
    """Steps on Dragoman's batches until the clock ends them."""
    clock, optimizer = StepClock(options, package), build_optimizer(model, LEARNING_RATE, BETAS)
    model.train()
    for batch in dragomans_batches(options):
        clock.step(model, batch.src, batch.tgt_out, PAD_ID)
        take_step(model, optimizer, [batch], options.precision, LABEL_SMOOTHING, CLIP_NORM)
