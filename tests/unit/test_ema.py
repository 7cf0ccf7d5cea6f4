"""Averages of the weights: what they are, and that applying them leaves no trace."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn

from dragoman.errors import Error
from dragoman.runs import checkpoint
from dragoman.training.ema import EmaConfig, LastConfig, NoAveragingConfig, applied, mean


def model_of(values: list[float]) -> nn.Linear:
    model = nn.Linear(len(values), 1, bias=False)
    set_weights(model, values)
    return model


def set_weights(model: nn.Linear, values: list[float]) -> None:
    with torch.no_grad():
        model.weight.copy_(torch.tensor([values]))


def test_ema_equals_a_loop_with_its_early_decay(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    model = model_of([1.0, -2.0])
    averager = EmaConfig(decay=0.8).build(model, tmp_path)
    expected = model.weight.detach().double()
    decays = []
    for step in range(1, 61):
        values = torch.randn(2, generator=generator)
        set_weights(model, values.tolist())
        averager.update(step)
        decays.append(min(0.8, (1 + step) / (10 + step)))
        expected = decays[-1] * expected + (1 - decays[-1]) * values.double()
    average = averager.average(model, 9)
    assert average is not None
    torch.testing.assert_close(average["weight"], expected.float(), rtol=1e-5, atol=1e-6)
    assert decays[0] == 2 / 11  # the first weights, which are random, are soon forgotten
    assert decays[-1] == 0.8
    assert 34 < decays.index(0.8) + 1 < 36  # (1 + step) / (10 + step) reaches 0.8 at step 35


def test_ema_is_apart_from_the_weights(tmp_path: Path) -> None:
    model = model_of([1.0, 2.0])
    average = EmaConfig().build(model, tmp_path).average(model, 9)
    set_weights(model, [5.0, 5.0])
    assert average is not None
    assert average["weight"].tolist() == [[1.0, 2.0]]


def test_ema_goes_on_from_what_a_checkpoint_holds(tmp_path: Path) -> None:
    model = model_of([1.0, 2.0])
    straight, stopped = (EmaConfig(decay=0.9).build(model, tmp_path) for _ in range(2))
    for step in range(1, 11):
        set_weights(model, [float(step), -float(step)])
        if step == 5:
            saved = stopped.average(model, 9)
            assert saved is not None
            stopped = EmaConfig(decay=0.9).build(model, tmp_path)
            stopped.load(saved)
        straight.update(step)
        stopped.update(step)
    first, second = straight.average(model, 9), stopped.average(model, 9)
    assert first is not None
    assert second is not None
    assert torch.equal(first["weight"], second["weight"])


@pytest.mark.parametrize(
    ("count", "expected"), [(2, (8.0 + 4) / 2), (3, (8.0 + 4 + 2) / 3), (9, (8.0 + 4 + 2 + 1) / 4)]
)
def test_last_is_the_mean_of_now_and_the_validated_checkpoints_before(
    tmp_path: Path, count: int, expected: float
) -> None:
    for step in (1, 2, 3, 4):
        weights = {"weight": torch.full((1, 2), float(step))}
        score = None if step == 3 else 1.0  # 3 was saved because the run was stopped, which must change nothing
        checkpoint.save(tmp_path, step, {"model": weights}, {"step": step, "score": score})
    model = model_of([8.0, 8.0])
    average = LastConfig(checkpoints=count).build(model, tmp_path).average(model, 9)
    assert average is not None
    torch.testing.assert_close(average["weight"], torch.full((1, 2), expected))
    assert model.weight.tolist() == [[8.0, 8.0]]


def test_last_before_the_first_checkpoint_is_the_weights(tmp_path: Path) -> None:
    model = model_of([1.5, 2.5])
    average = LastConfig().build(model, tmp_path).average(model, 9)
    assert average is not None
    assert torch.equal(average["weight"], model.weight)


def test_last_leaves_out_a_damaged_checkpoint_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (1, 2):
        checkpoint.save(tmp_path, step, {"model": {"weight": torch.full((1, 2), float(step))}}, {"score": 1.0})
    damaged = checkpoint.list_checkpoints(tmp_path)[-1] / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    average = LastConfig(checkpoints=3).build(model_of([5.0, 5.0]), tmp_path).average(model_of([5.0, 5.0]), 9)
    assert average is not None
    assert torch.equal(average["weight"], torch.full((1, 2), 3.0))
    assert "left out of the average" in capsys.readouterr().err


def test_last_reads_no_more_checkpoints_than_it_takes_and_once_for_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(1, 6):
        checkpoint.save(tmp_path, step, {"model": {"weight": torch.full((1, 2), float(step))}}, {"score": 1.0})
    damaged = checkpoint.list_checkpoints(tmp_path)[3] / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    verify, seen = checkpoint.verify, []
    monkeypatch.setattr(checkpoint, "verify", lambda path: seen.append(checkpoint.step_of(path)) or verify(path))
    model = model_of([7.0, 7.0])
    averager = LastConfig(checkpoints=3).build(model, tmp_path)
    averager.update(9)
    first = averager.average(model, 9)
    assert first is not None
    assert torch.equal(first["weight"], torch.full((1, 2), 5.0))  # of 3, 5 and the weights
    assert averager.average(model, 9) is first
    assert seen == [5, 4, 3]
    set_weights(model, [10.0, 10.0])
    averager.update(10)
    second = averager.average(model, 10)
    assert second is not None
    assert torch.equal(second["weight"], torch.full((1, 2), 6.0))


def test_last_leaves_out_checkpoints_of_later_steps(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        checkpoint.save(tmp_path, step, {"model": {"weight": torch.full((1, 2), float(step))}}, {"score": 1.0})
    model = model_of([6.0, 6.0])
    averager = LastConfig(checkpoints=3).build(model, tmp_path)
    average = averager.average(model, 3)  # the run went back to step 2 and has come to 3 again
    assert average is not None
    assert torch.equal(average["weight"], torch.full((1, 2), 3.0))  # of 1, 2 and the weights


def test_what_is_small_beside_a_large_weight_counts_in_the_mean() -> None:
    """In float32 each sum of 1 and 2^-24 is 1."""
    values = [1.0, 2**-24, 2**-24, 2**-24]
    expected = torch.tensor(sum(values) / 4)  # a Python number has float64
    assert torch.equal(mean({"weight": torch.tensor(value)} for value in values)["weight"], expected)
    assert expected > 0.25


def test_none_keeps_no_average(tmp_path: Path) -> None:
    model = model_of([1.0])
    averager = NoAveragingConfig().build(model, tmp_path)
    averager.update(1)
    assert averager.average(model, 9) is None
    with applied(model, None):
        assert model.weight.item() == 1.0


class Interruption(Exception):
    """What goes wrong while the average is applied."""


def hard_model() -> tuple[nn.Module, dict[str, Tensor]]:
    """A model with tied weights and numbers that any arithmetic would change, and an average for it."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    with torch.no_grad():
        model[0].bias.copy_(torch.tensor([1e-42, -0.0, 3e38]))  # subnormal, negative zero, nearly too large
    return model, {name: torch.full_like(tensor, 0.25) for name, tensor in checkpoint.weights(model).items()}


def bits(model: nn.Module) -> list[bytes]:
    return [parameter.detach().numpy().tobytes() for parameter in model.parameters()]


@pytest.mark.parametrize("error", [None, Interruption, KeyboardInterrupt])
def test_applied_gives_the_weights_back_bit_for_bit_whatever_happens(error: type[BaseException] | None) -> None:
    model, average = hard_model()
    before, places = bits(model), [parameter.data_ptr() for parameter in model.parameters()]
    with pytest.raises(error) if error else nullcontext(), applied(model, average):
        assert all((parameter == 0.25).all() for parameter in model.parameters())
        if error:
            raise error
    assert bits(model) == before
    assert [parameter.data_ptr() for parameter in model.parameters()] == places  # what the optimizer holds


def test_an_average_that_does_not_fit_changes_nothing() -> None:
    model, average = hard_model()
    before = bits(model)
    del average["1.bias"]
    with raises_error(Error.MISMATCH, "the average"), applied(model, average):
        pass
    assert bits(model) == before
