"""Dropout: its rate, its expectation, its key, and its gradient."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.backends.byte_dropout import ByteDropout, _decisions, byte_dropout
from dragoman.nn.dropout import Dropout

RATES = [0.05, 0.1, 0.2, 0.3, 0.5, 0.9]
CPU = torch.device("cpu")
COUNT = 200_000


def keep_mask(shape: torch.Size, rate: float) -> tuple[Tensor, float]:
    """(True = keep, the exact rate)."""
    decisions, dropped = _decisions(shape, rate, CPU)
    return decisions >= dropped, dropped / 256


@pytest.mark.parametrize("rate", RATES)
def test_so_many_elements_are_dropped_as_the_rate_says(rate: float) -> None:
    torch.manual_seed(1)
    mask, exact = keep_mask(torch.Size([COUNT]), rate)
    assert abs(exact - rate) <= 1 / 512
    spread = math.sqrt(exact * (1 - exact) / COUNT)
    assert abs((~mask).double().mean().item() - exact) < 4 * spread


@pytest.mark.parametrize("rate", RATES)
def test_the_expectation_stays(rate: float) -> None:
    torch.manual_seed(2)
    mean = byte_dropout(torch.ones(COUNT), rate).double().mean().item()
    assert abs(mean - 1.0) < 4 * math.sqrt(rate / (1 - rate) / COUNT) + 1e-6


def test_neighbours_and_all_eight_bytes_of_a_word_are_independent_and_alike() -> None:
    torch.manual_seed(3)
    dropped = (~keep_mask(torch.Size([COUNT // 8, 8]), 0.5)[0]).double()
    spread = 0.5 / math.sqrt(COUNT // 8)
    assert ((dropped.mean(dim=0) - 0.5).abs() < 5 * spread).all()
    correlations = torch.corrcoef(dropped.T) - torch.eye(8)
    assert (correlations.abs() < 5 / math.sqrt(COUNT // 8)).all()


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (3, 5, 7), (0, 4), ()])
def test_every_shape_has_a_mask_of_its_shape(shape: tuple[int, ...]) -> None:
    mask, _ = keep_mask(torch.Size(shape), 0.5)
    assert (mask.shape, mask.dtype) == (torch.Size(shape), torch.bool)


@pytest.mark.parametrize("kind", [Dropout, ByteDropout])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.995])
def test_it_is_the_identity_when_evaluating(kind: type[Dropout], rate: float) -> None:
    x = torch.randn(50)
    assert torch.equal(kind(rate).eval()(x), x)


@pytest.mark.parametrize("kind", [Dropout, ByteDropout])
def test_without_a_rate_it_is_the_identity_and_draws_nothing(kind: type[Dropout]) -> None:
    x = torch.randn(50)
    before = torch.get_rng_state()
    assert torch.equal(kind(0.0).train()(x), x)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kind", [Dropout, ByteDropout])
@pytest.mark.parametrize("rate", [0.3, 0.995])
def test_the_seed_decides(kind: type[Dropout], rate: float) -> None:
    x, dropout = torch.ones(4000), kind(rate).train()
    results = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        results.append(dropout(x))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert not torch.equal(dropout(x), dropout(x))  # one call after the other draws anew


def test_kept_elements_are_scaled_and_dropped_ones_are_zero() -> None:
    x = torch.randn(6, 50)
    torch.manual_seed(7)
    mask, exact = keep_mask(x.shape, 0.3)
    torch.manual_seed(7)
    torch.testing.assert_close(byte_dropout(x, 0.3), torch.where(mask, x / (1 - exact), 0.0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_the_gradient_goes_through_the_very_mask_that_was_applied(rate: float) -> None:
    x = torch.randn(400).requires_grad_()
    torch.manual_seed(8)
    ByteDropout(rate).train()(x).backward(torch.full((400,), 2.0))
    torch.manual_seed(8)
    mask, exact = keep_mask(x.shape, rate)
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(mask, 2.0 / (1 - exact), 0.0))


def test_given_the_same_mask_it_does_what_pytorchs_dropout_does() -> None:
    x, weight = torch.randn(1000).requires_grad_(), torch.randn(1000)
    torch.manual_seed(9)
    expected = F.dropout(x, 0.25)  # 64 / 256: a rate that both have exactly
    (expected * weight).sum().backward()
    assert x.grad is not None
    expected_gradient, x.grad = x.grad, None
    mask = expected.detach() != 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dragoman.backends.byte_dropout._decisions", lambda shape, rate, device: (mask * 255, round(rate * 256))
        )
        result = ByteDropout(0.25).train()(x)
        (result * weight).sum().backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(x.grad, expected_gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_factor_made_at_once_is_the_mask_times_its_scale(dtype: torch.dtype) -> None:
    x = torch.randn(40, 25).to(dtype)
    torch.manual_seed(8)
    mask, exact = keep_mask(x.shape, 0.3)
    torch.manual_seed(8)
    assert torch.equal(byte_dropout(x, 0.3), x * (mask.to(dtype) * (1.0 / (1.0 - exact))))


@pytest.mark.parametrize("kind", [Dropout, ByteDropout])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dtype_stays(kind: type[Dropout], dtype: torch.dtype) -> None:
    assert kind(0.3).train()(torch.ones(16, dtype=dtype)).dtype == dtype
