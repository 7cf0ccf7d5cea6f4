"""The loops in C in float32 (`training.backend=kernels`) equal the lines of PyTorch that they stand for, with AVX2 and
with AVX-512."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman import config
from dragoman.backends import chunked_loss
from dragoman.backends.accelerate import accelerate, exchange
from dragoman.backends.cpu_training import kernels
from dragoman.data.batch import Batch, collate
from dragoman.models.blocks import BlockConfig, DecoderLayer
from dragoman.models.families import MODELS
from dragoman.nn.attention import scaled_dot_product_attention
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.nn.positions import RotaryPositions
from dragoman.training.config import TrainingConfig
from dragoman.training.loss import textbook_loss
from dragoman.training.step import TrainingStep, pick_losses

FLOAT32, CPU = torch.float32, torch.device("cpu")
VECTORS = torch.backends.cpu.get_cpu_capability()
pytestmark = pytest.mark.skipif(not kernels.available(FLOAT32), reason="no AVX2, or no C compiler")
CLOSE = {"atol": 2e-4, "rtol": 2e-5}
"""Sums of some hundreds in another order."""


@pytest.fixture(params=["AVX2", "AVX512"], autouse=True)
def vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a processor with these vectors."""
    if request.param > VECTORS:
        pytest.skip("no such vectors here")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)
    kernels._library.cache_clear()
    assert kernels.Layout.of(FLOAT32).lanes == {"AVX2": 8, "AVX512": 16}[request.param]
    yield
    kernels._library.cache_clear()


@pytest.mark.parametrize("rows", [0, 1, 7, 37, 530])
@pytest.mark.parametrize(("n", "k"), [(16, 16), (16, 80), (48, 32), (160, 416), (80, 16)])
def test_products(rows: int, n: int, k: int) -> None:
    torch.manual_seed(0)
    x, above, past, weight, bias = (torch.randn(*shape) for shape in ((rows, k), (rows, n), (rows, n), (n, k), (n,)))
    matrix, gate = kernels.Matrix.of(weight[:16], weight[16:], dtype=FLOAT32), torch.randn(rows, n).relu()
    plain, close = x @ weight.T, torch.testing.assert_close
    close(kernels.multiply(x, matrix.across, n), plain, **CLOSE)
    close(kernels.multiply(x, matrix.across, n, bias, relu=True), (plain + bias).relu(), **CLOSE)
    close(kernels.multiply(x, matrix.across, n, gate=gate), plain * (gate > 0), **CLOSE)
    close(kernels.multiply(above, matrix.down, k), above @ weight, **CLOSE)
    random = torch.empty(rows, n, dtype=torch.uint8)
    kernels._call("dropout_bytes", rows * n, 5, random, dtype=FLOAT32)
    factor = (random >= 77) * (256 / (256 - 77))
    close(kernels.multiply_add(past, x, matrix.across, bias, 5, 77), past + (plain + bias) * factor, **CLOSE)
    close(kernels.dropout_backward(above, 5, 77, FLOAT32), above * factor)
    for mine, other in zip(kernels.weight_gradient(above, x), (above.T @ x, above.sum(dim=0)), strict=True):
        close(mine, other, **CLOSE)


def test_a_weight_s_gradient_over_more_rows_than_a_cache_holds() -> None:
    torch.manual_seed(0)
    above, x = torch.randn(1203, 48), torch.randn(1203, 32)
    for mine, other in zip(kernels.weight_gradient(above, x), (above.T @ x, above.sum(dim=0)), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)


@pytest.mark.skipif(VECTORS != "AVX512", reason="one kind of vectors")
def test_products_are_the_same_bytes_with_either_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    weight, x, above = torch.randn(80, 48), torch.randn(700, 48), torch.randn(700, 80)
    found = []
    for name in ("AVX2", "AVX512"):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda name=name: name)
        kernels._library.cache_clear()
        matrix = kernels.Matrix.of(weight, dtype=FLOAT32)
        product = kernels.multiply(x, matrix.across, 80), kernels.multiply(above, matrix.down, 48)
        found.append((*product, *kernels.weight_gradient(above, x)))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("rows", "width"), [(1, 16), (37, 48), (200, 128)])
def test_layer_norm_and_its_way_back(rows: int, width: int) -> None:
    torch.manual_seed(0)
    x, gain, bias = (torch.randn(*shape, requires_grad=True) for shape in ((rows, width), (width,), (width,)))
    out, moments = kernels.norm_forward(x.detach(), gain.detach(), bias.detach(), 1e-5, FLOAT32)
    plain = F.layer_norm(x, (width,), gain, bias, 1e-5)
    torch.testing.assert_close(out, plain.detach(), **CLOSE)
    above, past = torch.randn(rows, width), torch.randn(rows, width)
    back = kernels.norm_backward(above, x.detach(), gain.detach(), moments, past)
    to_x, *others = torch.autograd.grad(plain, (x, gain, bias), above)
    for mine, other in zip(back, (to_x + past, *others), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)


@pytest.mark.parametrize("lengths", [(1, 1), (7, 7), (16, 9), (23, 64), (64, 33)])
@pytest.mark.parametrize(("d_head", "masked"), [(16, "padding"), (32, "causal"), (48, "no"), (64, "padding")])
def test_attention_and_its_way_back(lengths: tuple[int, int], d_head: int, masked: str) -> None:
    torch.manual_seed(0)
    query_len, key_len = lengths if masked != "causal" else (lengths[1], lengths[1])
    rotary = query_len == key_len
    real = torch.arange(key_len) < torch.tensor([[key_len], [1], [max(1, key_len // 2)]])
    mask = {"padding": padding_mask(real), "causal": causal_mask(key_len), "no": None}[masked]
    q, k, v = (torch.randn(3, n, 2, d_head, requires_grad=True) for n in (query_len, key_len, key_len))
    positions = RotaryPositions(d_head)
    sin, cos = positions.waves(0, query_len).chunk(2, dim=-1)
    by_head = [part.transpose(1, 2) for part in (q, k, v)]
    turned = [positions.rotate(part, 0) for part in by_head[:2]] if rotary else by_head[:2]
    plain, _ = scaled_dot_product_attention(*turned, by_head[2], mask)
    rows = [part.detach().reshape(-1, 2 * d_head) for part in (q, k, v)]
    phase = torch.stack([cos, sin], dim=-1) if rotary else None
    heads = kernels.Heads(3, 2, query_len, key_len, *rows, mask, phase)
    context, weights = kernels.attention_forward(heads)
    torch.testing.assert_close(context.view(3, query_len, 2, d_head).transpose(1, 2), plain.detach(), **CLOSE)
    above, gradients = torch.randn_like(context), [torch.empty_like(part) for part in rows]
    kernels.attention_backward(heads, weights, above, gradients)
    upstream = above.view(3, query_len, 2, d_head).transpose(1, 2)
    for mine, other in zip(gradients, torch.autograd.grad(plain, (q, k, v), upstream), strict=True):
        torch.testing.assert_close(mine.view(other.shape), other, **CLOSE)


@pytest.mark.parametrize("vocab", [3, 16, 50, 8000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient(vocab: int, smoothing: float) -> None:
    torch.manual_seed(0)
    logits, targets, real = 4 * torch.randn(5, 7, vocab), torch.randint(vocab, (5, 7)), torch.rand(5, 7) < 0.8
    logits[0, 0, 0] = -300.0  # its exponential is no float32
    exact = logits.clone().requires_grad_()
    plain = textbook_loss(exact[real], targets[real], smoothing)
    here = logits.clone().requires_grad_()
    mine = pick_losses("kernels").token_loss(here * 1, targets, real, smoothing, in_place=True)
    torch.testing.assert_close(mine, plain)
    for to_mine, to_plain in zip(torch.autograd.grad(mine, here), torch.autograd.grad(plain, exact), strict=True):
        torch.testing.assert_close(to_mine, to_plain, atol=1e-6, rtol=1e-4)


def test_a_loss_of_what_is_no_number_is_none_and_a_forbidden_logit_leaves_it_finite() -> None:
    logits = torch.randn(3, 40)
    logits[0, 33], logits[1, 33], logits[2, 33] = math.nan, math.inf, -math.inf
    losses = kernels.cross_entropy(logits, torch.tensor([1, 2, 3]), torch.ones(3, dtype=torch.bool), 1.0, 0.0)
    assert losses.isfinite().tolist() == [False, False, True]
    assert logits[2, 33] == 0


def model(**settings: Any) -> nn.Module:
    torch.manual_seed(0)
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_encoder_layers": 2, "num_decoder_layers": 2}
    parsed = config.parse(MODELS["transformer"], {**sizes, "dropout": 0.0, **settings}, "model")
    return parsed.build(src_vocab_size=48, tgt_vocab_size=48, shared_vocab=True, pad_id=0)


def batch(seed: int) -> Batch:
    torch.manual_seed(seed)
    lengths = [(3, 5), (9, 2), (4, 4)]
    return collate([tuple(torch.randint(4, 48, (n,)).tolist() for n in pair) for pair in lengths])


def nodes(tensor: Tensor) -> set[str]:
    names, waiting = set(), [tensor.grad_fn]
    while waiting:
        if (node := waiting.pop()) is not None:
            names.add(type(node).__name__)
            waiting += [following for following, _ in node.next_functions]
    return names


@pytest.mark.parametrize(
    ("settings", "fused"),
    [
        ({}, True),
        ({"position": {"type": "rotary"}}, True),
        ({"norm_placement": "post"}, False),
        ({"norm": "rms"}, False),
    ],
)
def test_a_model_s_loss_and_gradients_are_the_textbook_s(settings: dict[str, Any], fused: bool) -> None:
    net, pairs = model(**settings), batch(1)

    def gradients(backend: str) -> tuple[Tensor, Tensor, set[str]]:
        net.zero_grad()
        logits = net(pairs.src, pairs.src_mask, pairs.tgt_in)
        names = nodes(logits)
        loss = pick_losses(backend).token_loss(logits, pairs.tgt_out, pairs.tgt_mask, 0.1, in_place=True)
        loss.backward()
        return loss.detach(), torch.cat([one.grad.flatten() for one in net.parameters() if one.grad is not None]), names

    plain = gradients("textbook")
    accelerate(net, CPU, "float32", kernels=True)
    mine = gradients("kernels")
    assert any("Sublayer" in name for name in mine[2]) == fused
    assert not any("Sublayer" in name for name in plain[2])
    torch.testing.assert_close(mine[0], plain[0])
    torch.testing.assert_close(mine[1], plain[1], atol=2e-4, rtol=1e-3)
    with torch.no_grad():  # a validation computes as ever
        shown = net(pairs.src, pairs.src_mask, pairs.tgt_in)
    accelerate(net, CPU, "float32")
    with torch.no_grad():
        assert torch.equal(shown, net(pairs.src, pairs.src_mask, pairs.tgt_in))


class OneBatch:
    """A task of made-up pairs, whatever the step."""

    def __init__(self, backend: str) -> None:
        self.losses = pick_losses(backend)

    def position(self, step: int) -> tuple[int, int]:
        return 0, step - 1

    def count(self, step: int) -> int:
        return 1

    def micro_batch(self, step: int, number: int) -> list[Batch]:
        return [batch(step)]

    def loss(self, net: nn.Module, pairs: Batch, label_smoothing: float) -> tuple[Tensor, int, int]:
        logits = net(pairs.src, pairs.src_mask, pairs.tgt_in)
        loss = self.losses.token_loss(logits, pairs.tgt_out, pairs.tgt_mask, label_smoothing, in_place=True)
        return loss, pairs.num_tokens, pairs.num_tokens


def steps_of(backend: str, precision: str = "float32", **settings: Any) -> tuple[list[float], Tensor]:
    """The losses of five steps, and the weights after them."""
    training = config.parse(TrainingConfig, {"backend": backend, "averaging": {"type": "none"}})
    step = TrainingStep(training, model(**settings), OneBatch(backend), device=CPU, precision=precision, seed=5)
    losses = [float(step.take(number, 1e-3)[0]) for number in range(1, 6)]
    return losses, torch.cat([one.detach().flatten() for one in step.model.parameters()])


def test_steps_are_those_of_the_textbook_and_the_same_bytes_each_time() -> None:
    assert steps_of("kernels")[0] == pytest.approx(steps_of("textbook")[0], rel=1e-5)
    once, again = (steps_of("kernels", dropout=0.3) for _ in range(2))
    assert once[0] == again[0]
    assert torch.equal(once[1], again[1])


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    torch.manual_seed(0)
    layer = DecoderLayer(BlockConfig(d_model=32, num_heads=2, d_ff=64, dropout=0.3))
    accelerate(layer, CPU, "float32", kernels=True)
    x, memory, threads = torch.randn(9, 13, 32), torch.randn(9, 11, 32), torch.get_num_threads()

    def gradients(count: int) -> list[Tensor]:
        torch.set_num_threads(count)
        torch.manual_seed(1)
        layer.zero_grad()
        out = layer(x, causal_mask(13), memory, None)
        assert "Sublayer" in type(out.grad_fn).__name__
        out.square().sum().backward()
        return [out.detach(), *(parameter.grad.clone() for parameter in layer.parameters())]

    try:
        for one, several in zip(gradients(1), gradients(3), strict=True):
            assert torch.equal(one, several)
    finally:
        torch.set_num_threads(threads)


def test_in_bfloat16_the_setting_changes_nothing() -> None:
    auto, chosen = (steps_of(backend, "bfloat16", dropout=0.3) for backend in ("auto", "kernels"))
    assert auto[0] == chosen[0]
    assert torch.equal(auto[1], chosen[1])


def test_it_is_off_unless_asked_for() -> None:
    net, pairs = model(), batch(1)
    for exchanged in (lambda: accelerate(net, CPU, "float32"), lambda: exchange(net, {})):
        exchanged()
        logits = net(pairs.src, pairs.src_mask, pairs.tgt_in)
        assert not any("Sublayer" in name or "FastLogits" in name for name in nodes(logits))
    logits = torch.randn(2, 3, 48, requires_grad=True)
    targets, real = torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool)
    auto = pick_losses("auto").token_loss(logits * 1, targets, real, 0.1, in_place=True)
    assert torch.equal(auto, chunked_loss.token_loss(logits * 1, targets, real, 0.1, in_place=True))


def test_a_processor_without_these_vectors_trains_by_pytorch_s_operations(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    kernels.available.cache_clear()
    kernels._library.cache_clear()
    try:
        losses, _ = steps_of("kernels")
    finally:
        kernels.available.cache_clear()
    assert all(math.isfinite(loss) for loss in losses)
    lines = [line for line in capsys.readouterr().err.splitlines() if "training.backend=kernels" in line]
    assert len(lines) == 1
