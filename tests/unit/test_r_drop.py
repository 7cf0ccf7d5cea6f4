"""R-Drop against the paper's formula written out, and in each task that takes it."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dragoman.backends.chunked_loss import ROWS_AT_ONCE, divergence, token_loss
from dragoman.data.batch import collate
from dragoman.data.inputs import LabelledBatch
from dragoman.data.windows import cut
from dragoman.models.families import MODELS
from dragoman.models.language_model import LanguageModelConfig
from dragoman.models.text_classifier import TextClassifierConfig
from dragoman.tasks.classification.task import ClassificationTask
from dragoman.tasks.language_modelling.task import LanguageModellingTask
from dragoman.tasks.translation.task import TranslationTask
from dragoman.training import loss as textbook
from dragoman.training.distillation import Teachers
from dragoman.training.loss import r_drop_loss, textbook_loss
from dragoman.training.step import seed_for


def case(rows: int = 3, length: int = 5, vocab: int = 11) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Logits of two passes, targets, and a mask whose rows are of different lengths."""
    generator = torch.Generator().manual_seed(1)
    first, second = (2 * torch.randn(rows, length, vocab, generator=generator) for _ in range(2))
    targets = torch.randint(0, vocab, (rows, length), generator=generator)
    lengths = torch.randint(1, length + 1, (rows,), generator=generator)
    return first, second, targets, torch.arange(length)[None] < lengths[:, None]


def gradients(loss: Tensor, *leaves: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, leaves)


def test_the_divergence_of_two_coins_by_hand() -> None:
    fair, bent = torch.zeros(1, 1, 2), torch.tensor([[[math.log(3.0), 0.0]]])
    by_hand = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25) + 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert divergence(fair, bent, torch.ones(1, 1).bool(), 1.0).item() == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize("length", [5, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equals_the_textbook_in_value_and_gradients(length: int, dtype: torch.dtype) -> None:
    first, second, _, mask = case(length=length)
    first, second = (logits.to(dtype).requires_grad_() for logits in (first, second))
    found, expected = (one(first, second, mask, 2.5) for one in (divergence, textbook.divergence))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    tolerance = 1e-5 if dtype == torch.float32 else 2**-6
    for mine, other in zip(gradients(found, first, second), gradients(expected, first, second), strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
        assert not mine[~mask].any()


def test_away_from_a_cpu_no_more_logits_are_taken_together_than_the_loss_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, softmax = [], Tensor.log_softmax
    monkeypatch.setattr(Tensor, "log_softmax", lambda logits, dim: seen.append(len(logits)) or softmax(logits, dim))
    monkeypatch.setattr("dragoman.backends.chunked_loss.GPU_LOGITS_AT_ONCE", 4 * 11)
    first, second, _, mask = (tensor.to("meta") for tensor in case(rows=3, length=5, vocab=11))
    divergence(first, second, mask, 1.0)
    assert seen == [4, 4] * 3 + [3, 3]


@pytest.mark.parametrize("losses", [textbook.TEXTBOOK, textbook.Losses(token_loss, divergence)])
def test_equals_half_of_the_papers_loss_in_value_and_gradients(losses: textbook.Losses) -> None:
    first, second, targets, mask = case()
    first, second = first.requires_grad_(), second.requires_grad_()
    passes = iter([first, second])
    found = r_drop_loss(lambda: next(passes), targets, mask, 0.1, 5.0, losses) / 2
    nll = sum(textbook_loss(logits[mask], targets[mask], 0.1) for logits in (first, second))
    p, q = first[mask].softmax(dim=-1), second[mask].softmax(dim=-1)
    kl = 0.5 * ((p * (p / q).log()).sum() + (q * (q / p).log()).sum())  # equation 2
    expected = (nll + 5.0 * kl) / 2  # equation 4
    torch.testing.assert_close(found, expected)
    for mine, other in zip(gradients(found, first, second), gradients(expected, first, second), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


SMALL: dict[str, Any] = {"d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.3}


def translation() -> tuple[Any, nn.Module, Any]:
    config = MODELS["transformer"](**SMALL, num_encoder_layers=1, num_decoder_layers=1)
    model = config.build(src_vocab_size=13, tgt_vocab_size=13, shared_vocab=True, pad_id=0)
    return TranslationTask, model, collate([([4, 5, 6], [7, 8]), ([9], [10, 11, 12, 4])])


def classification() -> tuple[Any, nn.Module, Any]:
    model = TextClassifierConfig(**SMALL, num_layers=1).build(vocab_size=9, num_labels=3, pad_id=0, unk_id=1)
    ids = torch.tensor([[4, 5], [6, 0]])
    batch = LabelledBatch((ids, ids != 0), torch.tensor([0, 2]), num_positions=3, rows=np.arange(2))
    return ClassificationTask, model, batch


def language_modelling() -> tuple[Any, nn.Module, Any]:
    model = LanguageModelConfig(**SMALL, num_layers=1).build(vocab_size=9, pad_id=0)
    return LanguageModellingTask, model, cut(torch.arange(8).numpy(), torch.tensor([0, 3]).numpy(), 4)


@pytest.mark.parametrize("kind", [translation, classification, language_modelling])
def test_every_task_takes_it_while_training_alone(kind: Any) -> None:
    torch.manual_seed(1)
    task, model, batch = kind()

    def loss(r_drop: float) -> tuple[float, int, int]:
        seed_for(1, 1, 0)
        total, count, processed = task.loss(
            SimpleNamespace(r_drop=r_drop, teachers=Teachers(), losses=textbook.TEXTBOOK), model, batch, 0.1
        )
        return total.item(), count, processed

    model.train()
    (one, count, processed), (some, twice, _), (more, _, again) = loss(0.0), loss(1e-9), loss(5.0)
    assert (twice, again) == (2 * count, processed)
    assert more > some + 1e-3
    assert more == loss(5.0)[0]
    model.eval()
    assert loss(5.0) == loss(0.0)
    assert one != some / 2  # the second pass had other dropout
