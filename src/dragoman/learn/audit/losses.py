"""The audit of a learner's loss: what it is for logits that are known."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.learn.audit.finding import Finding, number
from dragoman.learn.audit.subject import BATCH, TGT_LEN, TGT_VOCAB, Subject, of_type

NAMES = ("loss", "loss_fn", "compute_loss", "masked_loss", "sequence_loss", "criterion")


def loss_of(subject: Subject) -> Callable[[Tensor, Tensor], Tensor] | None:
    """The learner's loss as loss(logits, tgt_out), (batch, length, vocab) and (batch, length); None: there is none."""
    function = next((subject.space[name] for name in NAMES if callable(subject.space.get(name))), None)
    if function is None or isinstance(function, type):
        return None

    def flat(logits: Tensor, tgt_out: Tensor) -> Any:
        return function(logits.reshape(-1, logits.size(-1)), tgt_out.reshape(-1))

    def swapped(logits: Tensor, tgt_out: Tensor) -> Any:
        return function(logits.transpose(1, 2), tgt_out)

    def with_lengths(logits: Tensor, tgt_out: Tensor) -> Any:
        return function(logits, tgt_out, (tgt_out != subject.specials["pad"]).sum(dim=1))

    logits, tgt_out = example(subject)
    for way in (function, flat, swapped, with_lengths):
        try:
            with of_type(subject.dtype):
                value = way(logits, tgt_out)
        except Exception:
            continue
        if isinstance(value, Tensor) and bool(value.isfinite().all()):
            return way
    return None


def example(subject: Subject) -> tuple[Tensor, Tensor]:
    """Random logits, and targets of 7, 4 and 2 tokens with padding behind them."""
    torch.manual_seed(3)
    logits = 2 * torch.randn(BATCH, TGT_LEN, TGT_VOCAB, dtype=subject.dtype)
    tgt_out = subject.tgt()
    tgt_out[:, 0] = 5
    pad = torch.arange(TGT_LEN) >= torch.tensor([TGT_LEN, 4, 2])[:, None]
    return logits, tgt_out.masked_fill(pad, subject.specials["pad"])


def losses(subject: Subject) -> Iterator[Finding]:
    """The loss is the mean cross-entropy of real tokens."""
    loss = loss_of(subject)
    if loss is None:
        return
    logits, tgt_out = example(subject)
    with of_type(subject.dtype):
        value = float(loss(logits, tgt_out).mean())
        real = tgt_out != subject.specials["pad"]
        noise = torch.randn_like(logits).masked_fill(real[..., None], 0.0)
        moved = abs(float(loss(logits + noise, tgt_out).mean()) - value)
        double = float(loss(logits.softmax(dim=-1), tgt_out).mean())
    if moved > 1e-6 * max(1.0, abs(value)):
        yield Finding("loss-padding", None, {"moved": number(moved), "value": number(value)})
        return
    each = F.cross_entropy(logits.transpose(1, 2), tgt_out, reduction="none")[real]
    mean, tokens = float(each.mean()), int(real.sum())
    again = float(F.cross_entropy(logits.softmax(-1).transpose(1, 2), tgt_out, reduction="none")[real].mean())
    ratios = {
        "positions": (BATCH * TGT_LEN, tokens / (BATCH * TGT_LEN)),
        "nothing": (tokens, float(tokens)),
        "sentences": (BATCH, tokens / BATCH),
    }
    if math.isclose(value, again, rel_tol=1e-5):
        yield Finding("two-softmaxes", None, {"mean": number(mean), "value": number(value)})
        return
    for name, (count, ratio) in ratios.items():
        if math.isclose(value, mean * ratio, rel_tol=1e-5):
            values = {"count": count, "tokens": tokens, "mean": number(mean), "value": number(value)}
            yield Finding(f"loss-mean/{name}", None, values)
    yield from _of_probabilities(subject, math.isclose(double, again, rel_tol=1e-5))


def _of_probabilities(subject: Subject, is_of_logits: bool) -> Iterator[Finding]:
    """A model that ends in a softmax, and a loss that takes logits."""
    output = subject.output(subject.src(), subject.tgt())
    if is_of_logits and float(output.min()) >= 0 and float((output.sum(dim=-1) - 1).abs().max()) < 1e-4:
        value = math.log(1 + (TGT_VOCAB - 1) / math.e)
        yield Finding("two-softmaxes/model", None, {"value": number(value)})
