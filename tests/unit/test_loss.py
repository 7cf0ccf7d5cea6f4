"""The loss against numbers computed by hand, against the textbook form, and against PyTorch's own function."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.backends.chunked_loss import ROWS_AT_ONCE, token_loss
from dragoman.training.loss import textbook_loss

SMOOTHING = [0.0, 0.1, 0.3]


def case(rows: int = 3, length: int = 5, vocab: int = 11, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, targets, and a mask whose rows are of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, length, vocab, generator=generator)
    targets = torch.randint(0, vocab, (rows, length), generator=generator)
    lengths = torch.randint(1, length + 1, (rows,), generator=generator)
    lengths[0] = length
    return logits, targets, torch.arange(length)[None] < lengths[:, None]


def value_and_gradient(logits: Tensor, targets: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    leaf = logits.clone().requires_grad_()
    loss = token_loss(leaf, targets, mask, smoothing)
    loss.backward()
    assert leaf.grad is not None
    return loss.detach(), leaf.grad


def reference(logits: Tensor, targets: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """PyTorch's function in double precision, over the real positions only."""
    leaf = logits.double().requires_grad_()
    loss = F.cross_entropy(leaf[mask], targets[mask], reduction="sum", label_smoothing=smoothing)
    loss.backward()
    assert leaf.grad is not None
    return loss.detach().float(), leaf.grad.float()


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_equal_logits_cost_the_logarithm_of_the_vocabulary_at_each_position(smoothing: float) -> None:
    loss = token_loss(torch.zeros(2, 3, 7), torch.ones(2, 3).long(), torch.ones(2, 3).bool(), smoothing)
    assert loss.item() == pytest.approx(6 * math.log(7), rel=1e-6)


def test_without_smoothing_it_is_the_negative_log_probability_of_the_target() -> None:
    logits = torch.tensor([[[math.log(0.5), math.log(0.3), math.log(0.2)]]])
    for target, probability in enumerate([0.5, 0.3, 0.2]):
        loss = token_loss(logits, torch.tensor([[target]]), torch.ones(1, 1).bool())
        assert loss.item() == pytest.approx(-math.log(probability), rel=1e-6)


def test_smoothing_spreads_its_share_over_the_whole_vocabulary_the_target_included() -> None:
    logits = torch.tensor([[[math.log(0.5), math.log(0.3), math.log(0.2)]]])
    by_hand = -0.7 * math.log(0.3) - 0.3 / 3 * (math.log(0.5) + math.log(0.3) + math.log(0.2))
    value, gradient = value_and_gradient(logits, torch.tensor([[1]]), torch.ones(1, 1).bool(), 0.3)
    assert value.item() == pytest.approx(by_hand, rel=1e-6)
    assert gradient.flatten().tolist() == pytest.approx([0.5 - 0.1, 0.3 - 0.1 - 0.7, 0.2 - 0.1], abs=1e-6)


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_equals_pytorch_in_value_and_gradient(smoothing: float) -> None:
    logits, targets, mask = case()
    value, gradient = value_and_gradient(logits, targets, mask, smoothing)
    expected_value, expected_gradient = reference(logits, targets, mask, smoothing)
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(value, textbook_loss(logits[mask], targets[mask], smoothing), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_bfloat16_logits_cost_as_much_as_the_same_numbers_in_float32(smoothing: float) -> None:
    logits, targets, mask = case()
    logits = logits.bfloat16()
    value, gradient = value_and_gradient(logits, targets, mask, smoothing)
    expected_value, expected_gradient = reference(logits, targets, mask, smoothing)
    assert (value.dtype, gradient.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=1e-6)  # only the gradient is rounded
    torch.testing.assert_close(gradient.float(), expected_gradient, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_masked_positions_give_neither_loss_nor_gradient(smoothing: float) -> None:
    logits, targets, mask = case()
    value, gradient = value_and_gradient(logits, targets, mask, smoothing)
    other = torch.where(mask[..., None], logits, -50 * logits)
    other_value, other_gradient = value_and_gradient(other, torch.where(mask, targets, 0), mask, smoothing)
    assert not mask.all()
    assert torch.equal(value, other_value)
    assert torch.equal(gradient, other_gradient)
    assert not gradient[~mask].any()
    assert gradient[mask].any(dim=-1).all()


def test_nothing_real_costs_nothing() -> None:
    logits, targets, mask = case()
    value, gradient = value_and_gradient(logits, targets, torch.zeros_like(mask), 0.1)
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("positions", [ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 2 * ROWS_AT_ONCE + 3])
def test_working_through_the_rows_in_parts_changes_nothing(positions: int) -> None:
    logits, targets, mask = case(rows=1, length=positions, vocab=5)
    value, gradient = value_and_gradient(logits, targets, mask, 0.1)
    expected_value, expected_gradient = reference(logits, targets, mask, 0.1)
    torch.testing.assert_close(value, expected_value, rtol=1e-5, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_scaled_loss_has_a_scaled_gradient(dtype: torch.dtype) -> None:
    logits, targets, mask = case()
    _, gradient = value_and_gradient(logits.to(dtype), targets, mask, 0.1)
    leaf = logits.to(dtype).requires_grad_()
    (0.25 * token_loss(leaf, targets, mask, 0.1)).backward()
    assert leaf.grad is not None
    assert torch.equal(leaf.grad, 0.25 * gradient)  # a power of two: exactly


@pytest.mark.parametrize("in_place", [False, True])
def test_float16_keeps_gradients_that_are_smaller_than_it_can_hold(in_place: bool) -> None:
    """Of a scaled loss: a probability of 1e-8 is 0 in float16, and 128 times that is not."""
    logits = torch.tensor([[[12.0, 0.0, -6.0]]], dtype=torch.float16, requires_grad=True)
    targets, mask = torch.tensor([[0]]), torch.tensor([[True]])
    computed = logits * 1.0
    (gradient,) = torch.autograd.grad(128.0 * token_loss(computed, targets, mask, in_place=in_place), computed)
    exact = 128.0 * (logits.detach().double().softmax(dim=-1) - torch.tensor([[[1.0, 0.0, 0.0]]]))
    assert gradient.dtype == torch.float16
    torch.testing.assert_close(gradient.double(), exact, rtol=0.02, atol=1e-6)


def test_the_loss_of_a_batch_is_the_sum_of_its_parts() -> None:
    logits, targets, mask = case(rows=6)
    whole, gradient = value_and_gradient(logits, targets, mask, 0.1)
    parts = [value_and_gradient(logits[part], targets[part], mask[part], 0.1) for part in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(whole, parts[0][0] + parts[1][0], rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, torch.cat([parts[0][1], parts[1][1]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_logits_that_it_is_given_stay_as_they_are(dtype: torch.dtype) -> None:
    logits, targets, mask = case()
    logits = logits.to(dtype).requires_grad_()
    before = logits.detach().clone()
    token_loss(logits, targets, mask, 0.1).backward()
    assert torch.equal(logits.detach(), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_place_gives_the_same_and_takes_no_further_room(dtype: torch.dtype) -> None:
    logits, targets, mask = case()
    results = []
    for in_place in (False, True):
        given = logits.to(dtype).requires_grad_()
        computed = given * 1.0  # what a model gives is no leaf either
        loss = token_loss(computed, targets, mask, 0.1, in_place=in_place)
        (gradient,) = torch.autograd.grad(loss, computed)
        assert (gradient.data_ptr() == computed.data_ptr()) is in_place
        results.append((loss.detach(), gradient))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_in_place_without_a_gradient_leaves_the_logits_alone() -> None:
    logits, targets, mask = case()
    before = logits.clone()
    with torch.no_grad():
        token_loss(logits, targets, mask, in_place=True)
    assert torch.equal(logits, before)


def test_very_large_logits_do_not_overflow() -> None:
    logits = torch.tensor([[[1e4, -1e4, 0.0]]])
    value, gradient = value_and_gradient(logits, torch.tensor([[1]]), torch.ones(1, 1).bool(), 0.0)
    assert value.item() == pytest.approx(2e4)
    assert gradient.flatten().tolist() == [1.0, -1.0, 0.0]


def test_the_value_is_the_same_where_no_gradient_is_wanted() -> None:
    logits, targets, mask = case()
    value, _ = value_and_gradient(logits, targets, mask, 0.1)
    assert torch.equal(token_loss(logits, targets, mask, 0.1), value)
