"""Optimizers: Muon against the SVD and against PyTorch's own, Lion by hand, and the state of each."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import parse, to_dict
from dragoman.models.families import MODELS
from dragoman.models.text_classifier import TextClassifierConfig
from dragoman.training.config import TrainingConfig
from dragoman.training.optim import (
    NEWTON_SCHULZ,
    AdamWConfig,
    LionConfig,
    MuonConfig,
    OptimizerConfig,
    hidden_matrices,
    load_state_tensors,
    orthogonalised,
    set_rate,
    state_tensors,
)

SHAPES = [(16, 16), (12, 40), (40, 12)]


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_orthogonalised_keeps_the_singular_vectors_and_puts_the_values_through_the_quintic(
    shape: tuple[int, int], size: float
) -> None:
    stack = drawn(3, *shape) * size
    for matrix, result in zip(stack, orthogonalised(stack), strict=True):
        u, values, v = torch.linalg.svd(matrix.double(), full_matrices=False)
        values = values / values.norm()
        for _ in range(5):
            values = sum(c * values**power for c, power in zip(NEWTON_SCHULZ, (1, 3, 5), strict=True))
        torch.testing.assert_close(result.double(), u @ values.diag() @ v, rtol=1e-3, atol=1e-4)
        found = torch.linalg.svdvals(result)
        assert found.min() > 0.65
        assert found.max() < 1.25


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stack_equals_its_matrices_one_by_one(shape: tuple[int, int]) -> None:
    stack = drawn(4, *shape)
    one_by_one = torch.cat([orthogonalised(matrix[None]) for matrix in stack])
    torch.testing.assert_close(orthogonalised(stack), one_by_one, rtol=1e-4, atol=1e-5)


def test_a_matrix_of_zeros_stays_one() -> None:
    assert torch.equal(orthogonalised(torch.zeros(2, 4, 8)), torch.zeros(2, 4, 8))


def test_products_are_in_the_precision_of_the_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        rough = orthogonalised(drawn(3, 16, 16))
    assert rough.dtype == torch.bfloat16
    torch.testing.assert_close(rough.float(), orthogonalised(drawn(3, 16, 16)), rtol=0.1, atol=0.05)


def two_layers(hidden: int = 24) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Embedding(7, 12), nn.Linear(12, hidden), nn.Tanh(), nn.Linear(hidden, 12), nn.Linear(12, 12)
    )


def fill_gradients(model: nn.Module, seed: int) -> None:
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = drawn(*parameter.shape, seed=100 * seed + number)


def take_steps(model: nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
    for step in range(first, last + 1):
        fill_gradients(model, step)
        set_rate(optimizer, 0.1 / step)
        optimizer.step()


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="PyTorch has its own from 2.9")
@pytest.mark.parametrize(
    "settings",
    [{}, {"momentum": 0.8, "weight_decay": 0.3, "newton_schulz_steps": 3, "others": AdamWConfig(eps=0.5)}],
)
def test_steps_equal_those_of_pytorchs_muon_and_adamw(settings: dict[str, Any]) -> None:
    """PyTorch's Muon computes in bfloat16: so does ours for once, by the autocast."""
    ours, theirs = two_layers(), two_layers()
    config = MuonConfig(lr_ratio=0.5, **settings)
    optimizer = config.build(ours)
    matrices = hidden_matrices(theirs)
    muon = torch.optim.Muon(
        matrices,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        ns_steps=config.newton_schulz_steps,
        adjust_lr_fn="match_rms_adamw",
    )
    rest = [p for p in theirs.parameters() if not any(p is matrix for matrix in matrices)]
    adamw = torch.optim.AdamW(rest, betas=(0.9, 0.98), eps=config.others.eps, weight_decay=0.0)
    for step in range(1, 6):
        for model in (ours, theirs):
            fill_gradients(model, step)
        set_rate(optimizer, 0.1 / step)
        with torch.autocast("cpu", torch.bfloat16):
            optimizer.step()
        muon.param_groups[0]["lr"], adamw.param_groups[0]["lr"] = 0.05 / step, 0.1 / step
        muon.step()
        adamw.step()
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=2e-2, atol=2e-3, msg=name)


def test_the_first_step_is_as_large_as_one_of_adamw() -> None:
    model = two_layers(hidden=12)
    before = [matrix.detach().clone() for matrix in hidden_matrices(model)]
    take_steps(model, MuonConfig().build(model), 1, 1)
    for matrix, old in zip(hidden_matrices(model), before, strict=True):
        step = (matrix - old).square().mean().sqrt().item()
        assert step == pytest.approx(0.1 * 0.2, rel=0.2)  # singular values are near 1, not at it


@pytest.mark.parametrize("eps", [1e-9, 1e-3])
def test_adamws_eps_holds_back_tiny_gradients(eps: float) -> None:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(layer.weight)
    layer.weight.grad = torch.full((1, 1), 1e-9)
    optimizer = AdamWConfig(eps=eps).build(layer)
    set_rate(optimizer, 1.0)
    optimizer.step()
    assert layer.weight.item() == pytest.approx(-1e-9 / (1e-9 + eps), rel=1e-3)


def test_lion_by_hand() -> None:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 3.0)
    optimizer = LionConfig(weight_decay=0.5).build(layer)
    weight, momentum = 3.0, 0.0
    for gradient, sign in [(2.0, 1.0), (-1.0, -1.0), (0.05, 1.0), (0.0, 1.0)]:
        layer.weight.grad = torch.full((1, 1), gradient)
        set_rate(optimizer, 0.1)
        optimizer.step()
        assert math.copysign(1.0, 0.9 * momentum + 0.1 * gradient) == sign
        weight -= 0.1 * (sign + 0.5 * weight)
        momentum = 0.99 * momentum + 0.01 * gradient
        assert layer.weight.item() == pytest.approx(weight, rel=1e-6)


@pytest.mark.parametrize(
    "config", [AdamWConfig(weight_decay=0.1), MuonConfig(weight_decay=0.1), LionConfig(weight_decay=0.1)]
)
def test_what_goes_on_from_its_state_takes_the_same_steps(config: OptimizerConfig) -> None:
    straight, stopped = two_layers(), two_layers()
    one, two = config.build(straight), config.build(stopped)
    take_steps(straight, one, 1, 6)
    take_steps(stopped, two, 1, 3)
    saved = {name: tensor.clone() for name, tensor in state_tensors(two, stopped).items()}
    assert {name.rpartition("/")[0] for name in saved} == dict(stopped.named_parameters()).keys()
    resumed = config.build(stopped)
    load_state_tensors(resumed, stopped, saved)
    take_steps(stopped, resumed, 4, 6)
    for mine, other in zip(straight.parameters(), stopped.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_frozen_weights_stay_as_they_are_and_take_no_state() -> None:
    model = two_layers()
    frozen = hidden_matrices(model)[0].requires_grad_(False)
    before = frozen.clone()
    optimizer = MuonConfig(weight_decay=0.1, others=AdamWConfig(weight_decay=0.1)).build(model)
    set_rate(optimizer, 0.1)
    model(torch.tensor([1, 2])).sum().backward()
    optimizer.step()
    assert torch.equal(frozen, before)
    assert "1.weight/momentum" not in state_tensors(optimizer, model)


def test_a_rate_of_zero_changes_nothing_and_a_cleared_state_begins_anew() -> None:
    model, fresh = two_layers(), two_layers()
    optimizer = MuonConfig(weight_decay=0.1).build(model)
    fill_gradients(model, 1)
    set_rate(optimizer, 0.0)
    optimizer.step()
    for mine, other in zip(model.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(mine, other)
    optimizer.state.clear()
    take_steps(model, optimizer, 1, 2)
    take_steps(fresh, MuonConfig(weight_decay=0.1).build(fresh), 1, 2)
    for mine, other in zip(model.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(mine, other)


def named(model: nn.Module) -> set[str]:
    hidden = hidden_matrices(model)
    return {name for name, parameter in model.named_parameters() if any(parameter is matrix for matrix in hidden)}


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize("tied", ["all", "none"])
def test_hidden_matrices_of_a_transformer(activation: str, tied: str) -> None:
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_encoder_layers": 2, "num_decoder_layers": 1}
    settings = MODELS["transformer"](**sizes, activation=activation, tie_embeddings=tied)
    model = settings.build(src_vocab_size=11, tgt_vocab_size=11, shared_vocab=True, pad_id=0)
    found = named(model)
    rest = {name for name, parameter in model.named_parameters() if parameter.dim() == 2} - found
    assert len(found) == 3 * 4 + 4 + 3 * (3 if activation == "swiglu" else 2)
    assert all("embedding" in name or name == "output.weight" for name in rest)


def test_hidden_matrices_of_other_families() -> None:
    lstm = MODELS["recurrent"](d_embedding=8, d_model=16, attention="additive", bidirectional=True)
    model = lstm.build(src_vocab_size=11, tgt_vocab_size=11, shared_vocab=True, pad_id=0)
    assert not any(
        "lstm" in name or "fast" in name or "score_proj" in name or "context_proj" in name for name in named(model)
    )
    assert any("readout" in name for name in named(model))
    classifier = TextClassifierConfig(d_model=16, num_heads=2, d_ff=32, num_layers=1, convolution=3)
    found = named(classifier.build(vocab_size=11, num_labels=4, pad_id=0, unk_id=1))
    assert len(found) == 6
    assert all(name.startswith("encoder.") for name in found)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("config", "lr"), [(MuonConfig(), 0.03), (LionConfig(), 0.005)])
def test_a_small_map_is_learnt(config: OptimizerConfig, lr: float, seed: int) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    x = drawn(256, 6, seed=seed)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs(), x[:, 3:].sum(dim=1)], dim=1)
    optimizer = config.build(model)
    for step in range(150):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        set_rate(optimizer, lr * (1 - step / 150))
        optimizer.step()
    assert math.isfinite(loss.item())
    assert loss < 0.1 * y.square().mean()


def test_settings_are_told_apart_by_type() -> None:
    config = parse(TrainingConfig, {"optimizer": {"type": "muon", "others": {"weight_decay": 0.1}}})
    assert config.optimizer == MuonConfig(others=AdamWConfig(weight_decay=0.1))
    assert parse(TrainingConfig, to_dict(config)) == config
