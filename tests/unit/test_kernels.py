"""The loops in C equal the lines of PyTorch that they are the twins of, and so do the sublayers made of them."""

import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.backends.accelerate import accelerate
from dragoman.backends.chunked_loss import token_loss
from dragoman.backends.cpu_training import kernels
from dragoman.backends.cpu_training import layers as sublayers
from dragoman.backends.cpu_training.projection import to_logits
from dragoman.backends.cpu_training.short_attention import rotary_phase
from dragoman.models.blocks import BlockConfig, DecoderLayer, RotaryConfig
from dragoman.nn.attention import scaled_dot_product_attention
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.nn.positions import RotaryPositions
from dragoman.training.loss import textbook_loss

needs_kernels = pytest.mark.skipif(not kernels.available(), reason="no AVX-512 for bfloat16, or no C compiler")
EXACT = {"atol": 2e-5, "rtol": 2e-5}
ROUNDED = {"atol": 1e-2, "rtol": 1e-2}
"""One rounding to bfloat16, which has 8 bits."""
SHAPES = [(1, 16), (16, 32), (37, 48), (200, 128)]


def in_rows(rows: int, width: int) -> Tensor:
    return torch.randn(rows, width).bfloat16()


@needs_kernels
@pytest.mark.parametrize(("rows", "width"), SHAPES)
def test_layer_norm_and_its_way_back(rows: int, width: int) -> None:
    torch.manual_seed(0)
    x, gain, bias = (torch.randn(*shape, requires_grad=True) for shape in ((rows, width), (width,), (width,)))
    out, moments = kernels.norm_forward(x.detach() * 1.0, gain.detach(), bias.detach(), 1e-5)
    plain = F.layer_norm(x, (width,), gain, bias, 1e-5)
    torch.testing.assert_close(out.float(), plain, **ROUNDED)
    above, past = in_rows(rows, width), torch.randn(rows, width)
    found = kernels.norm_backward(above, x.detach(), gain.detach(), moments, past)
    wanted = torch.autograd.grad(plain, (x, gain, bias), above.float())
    for mine, other in zip(found, (wanted[0] + past, *wanted[1:]), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


def split_mix(seed: int, rows: int, width: int) -> np.ndarray:
    """SplitMix64 as its authors wrote it: a word for each eight bytes, one after the other."""
    state, found = seed, []
    for _ in range(rows * width // 8):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        found.append(z ^ (z >> 31))
    return np.array(found, dtype="<u8").view(np.uint8).reshape(rows, width)


def dropout_bytes(rows: int, width: int, seed: int) -> Tensor:
    """Elements with one below round(256 x rate) are dropped."""
    random = torch.empty(rows, width, dtype=torch.uint8)
    kernels._call("dropout_bytes", rows * width, seed, random)
    return random


@needs_kernels
@pytest.mark.parametrize("seed", [0, 1234567, 2**64 - 1])
def test_random_bytes_are_those_of_split_mix(seed: int) -> None:
    assert (dropout_bytes(9, 48, seed).numpy() == split_mix(seed, 9, 48)).all()


@needs_kernels
def test_dropout_drops_as_many_as_it_should() -> None:
    bytes_of = dropout_bytes(1000, 512, 3)
    assert (bytes_of < 77).double().mean().item() == pytest.approx(77 / 256, abs=3e-3)
    assert not torch.equal(bytes_of[0], bytes_of[1])
    assert not torch.equal(bytes_of, dropout_bytes(1000, 512, 4))


PRODUCTS = [
    (rows, n, k) for rows in (0, 1, 6, 37, 530) for n, k in ((16, 16), (16, 80), (48, 32), (128, 64), (160, 416))
]


def operands(rows: int, n: int, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x (rows, k), above (rows, n), a weight of numbers that bfloat16 has, a bias."""
    torch.manual_seed(0)
    return in_rows(rows, k), in_rows(rows, n), torch.randn(n, k).bfloat16().float(), torch.randn(n)


def close(found: Tensor, wanted: Tensor) -> bool:
    """But for the order of sums in float32, or one rounding to bfloat16."""
    largest = wanted.abs().max().item() if wanted.numel() else 0.0
    tolerance = 2**-8 if found.dtype == torch.bfloat16 else 1e-5
    return found.shape == wanted.shape and bool(((found.float() - wanted).abs() <= tolerance * largest).all())


@needs_kernels
@pytest.mark.parametrize(("rows", "n", "k"), PRODUCTS)
def test_products(rows: int, n: int, k: int) -> None:
    x, above, weight, bias = operands(rows, n, k)
    matrix, gate = kernels.Matrix.of(weight), torch.randn(rows, n).relu().bfloat16()
    plain = x.float() @ weight.T
    assert close(kernels.multiply(x, matrix.across, n), plain)
    assert close(kernels.multiply(x, matrix.across, n, bias), plain + bias)
    assert close(kernels.multiply(x, matrix.across, n, bias, relu=True), (plain + bias).relu())
    assert close(kernels.multiply(x, matrix.across, n, gate=gate), plain * (gate > 0))
    assert close(kernels.multiply(above, matrix.down, k), above.float() @ weight)
    for found, wanted in zip(
        kernels.weight_gradient(above, x), (above.float().T @ x.float(), above.float().sum(dim=0)), strict=True
    ):
        assert found.dtype == torch.float32
        assert close(found, wanted)


@needs_kernels
@pytest.mark.parametrize("dropped", [0, 1, 77, 250])
@pytest.mark.parametrize(("rows", "n", "k"), PRODUCTS[::3])
def test_a_product_dropped_out_and_added(rows: int, n: int, k: int, dropped: int) -> None:
    x, _, weight, bias = operands(rows, n, k)
    past, above = torch.randn(rows, n), torch.randn(rows, n)
    factor = (dropout_bytes(rows, n, 5) >= dropped) * (256 / (256 - dropped))
    found = kernels.multiply_add(past, x, kernels.Matrix.of(weight).across, bias, 5, dropped)
    assert found.dtype == torch.float32
    assert close(found, past + (x.float() @ weight.T + bias) * factor)
    torch.testing.assert_close(kernels.dropout_backward(above, 5, dropped).float(), above * factor, **ROUNDED)


@needs_kernels
def test_weights_below_each_other_are_one_matrix() -> None:
    x, above, weight, _ = operands(37, 160, 48)
    matrix = kernels.Matrix.of(*weight.split([48, 16, 96]))
    assert (matrix.n, matrix.k) == (160, 48)
    assert torch.equal(
        kernels.multiply(x, matrix.across, 160), kernels.multiply(x, kernels.Matrix.of(weight).across, 160)
    )
    assert torch.equal(
        kernels.multiply(above, matrix.down, 48), kernels.multiply(above, kernels.Matrix.of(weight).down, 48)
    )


@needs_kernels
def test_weights_are_rounded_to_the_nearest_and_what_is_no_number_stays_so() -> None:
    weight = torch.randn(32, 48)
    found = kernels.multiply(torch.eye(48).bfloat16(), kernels.Matrix.of(weight).across, 32)
    assert torch.equal(found, weight.T.bfloat16())
    weight[3, 5] = torch.nan
    found = kernels.multiply(torch.ones(7, 48).bfloat16(), kernels.Matrix.of(weight).across, 32, relu=True)
    assert (found.isnan() == (torch.arange(32) == 3)).all()


@needs_kernels
def test_which_weights_can_be_multiplied_by() -> None:
    assert kernels.multiplies(torch.zeros(32, 48), torch.bfloat16)
    assert not kernels.multiplies(torch.zeros(33, 48), torch.bfloat16)
    assert not kernels.multiplies(torch.zeros(32, 40), torch.bfloat16)
    assert not kernels.multiplies(torch.zeros(32, 48, dtype=torch.float64), torch.bfloat16)


@needs_kernels
def test_the_logits_of_a_vocabulary_and_their_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(3, 11, 32, requires_grad=True), torch.randn(80, 32, requires_grad=True)
    above = torch.randn(3, 11, 80).bfloat16()
    found = []
    for fast in (True, False):
        monkeypatch.setattr(kernels, "available", lambda _, fast=fast: fast)
        logits = to_logits(hidden, weight)
        assert logits.dtype == torch.bfloat16
        found.append((logits, *torch.autograd.grad(logits, (hidden, weight), above)))
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        assert (one - other).float().norm() <= 1e-2 * other.float().norm()


def heads_of(lengths: tuple[int, int], d_head: int, masked: str, rotary: bool) -> kernels.Heads:
    """Three sentences, two heads; keys and values side by side, as a projection leaves them."""
    torch.manual_seed(0)
    query_len, key_len = lengths
    query, together = in_rows(3 * query_len, 2 * d_head), in_rows(3 * key_len, 4 * d_head)
    key, value = together.split(2 * d_head, dim=1)
    real = torch.rand(3, key_len) < 0.7
    real[:, 0] = True
    masks = {"no": None, "keys": padding_mask(real), "causal": causal_mask(key_len)[:, :, :query_len]}
    masks["each"] = torch.rand(3, 1, query_len, key_len) < 0.6
    masks["each"][..., 0] = True
    mask = masks[masked]
    turns = torch.view_as_real(rotary_phase(RotaryPositions(d_head), 0, query_len)) if rotary else None
    return kernels.Heads(3, 2, query_len, key_len, query, key, value, mask, turns)


@needs_kernels
@pytest.mark.parametrize(
    ("lengths", "d_head", "masked", "rotary"),
    [
        ((6, 21), 32, "each", False),
        ((1, 1), 16, "no", False),
        ((5, 3), 32, "keys", False),
        ((15, 15), 32, "causal", True),
        ((16, 17), 48, "keys", False),
        ((33, 33), 64, "causal", True),
        ((20, 64), 64, "keys", False),
        ((64, 64), 16, "causal", False),
    ],
)
def test_attention_and_its_way_back(lengths: tuple[int, int], d_head: int, masked: str, rotary: bool) -> None:
    heads = heads_of(lengths, d_head, masked, rotary)

    def apart(rows: Tensor, length: int) -> Tensor:
        return rows[: 3 * length].float().view(3, length, 2, d_head).transpose(1, 2).requires_grad_()

    q, k, v = apart(heads.query, lengths[0]), apart(heads.key, lengths[1]), apart(heads.value, lengths[1])
    positions = RotaryPositions(d_head)
    turned = (positions.rotate(q, 0), positions.rotate(k, 0)) if rotary else (q, k)
    plain, plain_weights = scaled_dot_product_attention(*turned, v, heads.mask)
    context, weights = kernels.attention_forward(heads)
    real = context[: 3 * lengths[0]].float().view(3, lengths[0], 2, d_head).transpose(1, 2)
    torch.testing.assert_close(real, plain, **ROUNDED)
    torch.testing.assert_close(weights[..., : lengths[1]].float(), plain_weights, **ROUNDED)
    assert not weights[..., lengths[1] :].any()
    assert not context[3 * lengths[0] :].any()
    above = in_rows(3 * lengths[0], 2 * d_head)
    gradients = torch.full_like(heads.query, 7.0), torch.full((len(heads.key), 4 * d_head), 7.0).bfloat16()
    kernels.attention_backward(heads, weights, above, (gradients[0], *gradients[1].split(2 * d_head, dim=1)))
    upstream = above[: 3 * lengths[0]].float().view(3, lengths[0], 2, d_head).transpose(1, 2)
    to_q, to_k, to_v = torch.autograd.grad(plain, (q, k, v), upstream)
    for mine, length, wanted in (
        (gradients[0], lengths[0], to_q),
        (gradients[1][:, : 2 * d_head], lengths[1], to_k),
        (gradients[1][:, 2 * d_head :], lengths[1], to_v),
    ):
        found = mine[: 3 * length].float().reshape(3, length, 2, d_head).transpose(1, 2)
        torch.testing.assert_close(found, wanted, atol=2e-2, rtol=1e-2)
        assert (mine[3 * length :] == 7.0).all()


@needs_kernels
@pytest.mark.parametrize("vocab", [3, 16, 50, 8000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient(vocab: int, smoothing: float) -> None:
    torch.manual_seed(0)
    logits = (4 * torch.randn(5, 7, vocab)).bfloat16()
    targets, real = torch.randint(vocab, (5, 7)), torch.rand(5, 7) < 0.8
    exact = logits.float().requires_grad_()
    wanted = textbook_loss(exact[real], targets[real], smoothing)
    (to_exact,) = torch.autograd.grad(wanted, exact)
    here = logits.clone().requires_grad_()
    found = token_loss(here * 1, targets, real, smoothing, in_place=True)
    torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-5)
    (to_logits,) = torch.autograd.grad(found, here)
    torch.testing.assert_close(to_logits.float(), to_exact, atol=2e-3, rtol=1e-2)
    assert not to_logits[~real].any()


@needs_kernels
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_loss_of_what_is_no_number_is_none(bad: float) -> None:
    logits = torch.randn(2, 40).bfloat16()
    logits[1, 33] = bad
    losses = kernels.cross_entropy(logits, torch.tensor([1, 2]), torch.tensor([True, True]), 0.9, 0.1)
    assert losses[0].isfinite()
    assert not losses[1].isfinite()


@needs_kernels
def test_a_logit_that_is_forbidden_leaves_the_loss_finite() -> None:
    logits = torch.randn(1, 20)
    logits[0, 5] = -torch.inf
    wanted = textbook_loss(logits, torch.tensor([1]), 0.0)
    here = logits.bfloat16()
    losses = kernels.cross_entropy(here, torch.tensor([1]), torch.tensor([True]), 1.0, 0.0)
    torch.testing.assert_close(losses.sum(), wanted, **ROUNDED)
    assert here[0, 5] == 0


@needs_kernels
@pytest.mark.parametrize("target", [-1, 20])
def test_a_target_outside_of_the_vocabulary_is_an_error(target: int) -> None:
    with pytest.raises(IndexError, match="in a vocabulary of 20"):
        kernels.cross_entropy(torch.randn(1, 20).bfloat16(), torch.tensor([target]), torch.tensor([True]), 1.0, 0.0)


@needs_kernels
def test_logits_that_are_needed_again_may_not_be_written_over() -> None:
    x = torch.randn(2, 3, 20).bfloat16().requires_grad_()
    logits = x.tanh()  # whose way back reads its result
    loss = token_loss(logits, torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool), in_place=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def decoder_layer(config: BlockConfig, cross_attention: bool = True) -> DecoderLayer:
    layer = DecoderLayer(config, cross_attention)
    accelerate(layer, torch.device("cpu"), "bfloat16")
    return layer


@needs_kernels
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    torch.manual_seed(0)
    config = BlockConfig(d_model=32, num_heads=2, d_ff=64, dropout=0.3, position=RotaryConfig())
    layer, x, memory = decoder_layer(config), torch.randn(9, 13, 32), torch.randn(9, 11, 32)
    threads = torch.get_num_threads()

    def gradients(count: int) -> list[Tensor]:
        torch.set_num_threads(count)
        torch.manual_seed(1)
        layer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(x, causal_mask(13), memory, None)
        out.square().sum().backward()
        return [out.detach(), *(parameter.grad.clone() for parameter in layer.parameters())]

    try:
        for one, several in zip(gradients(1), gradients(3), strict=True):
            assert torch.equal(one, several)
    finally:
        torch.set_num_threads(threads)


class Bytes(nn.Module):
    """The dropout of a fast sublayer, whose seed is known, in PyTorch."""

    def __init__(self, seed: int, rate: float) -> None:
        super().__init__()
        self.seed, self.rate = seed, rate

    def forward(self, x: Tensor) -> Tensor:
        dropped = round(256 * self.rate)
        found = dropout_bytes(x.size(0) * x.size(1), x.size(2), self.seed).view(x.shape)
        return x.float() * (found >= dropped) * (256 / (256 - dropped))


@needs_kernels
@pytest.mark.parametrize("kind", ["self", "rotary", "cross", "feed-forward"])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_a_sublayer_equals_its_residual_connection(kind: str, rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    position = {"position": RotaryConfig()} if kind == "rotary" else {}
    layer = decoder_layer(BlockConfig(d_model=64, num_heads=2, d_ff=96, dropout=rate, **position))
    x, memory = (torch.randn(4, length, 64, requires_grad=True) for length in (9, 6))
    real = torch.ones(4, 6, dtype=torch.bool)
    real[1, 3:] = False
    causal = causal_mask(9)
    monkeypatch.setattr(sublayers, "_seed", lambda dropped: 11)

    def sublayer(fast: bool) -> tuple[Tensor, ...]:
        monkeypatch.setattr(kernels, "available", lambda _: fast)
        residual = getattr(layer, {"cross": "cross_attention_residual", "feed-forward": "feed_forward_residual"}.get(
            kind, "self_attention_residual"))  # fmt: skip
        own = residual.dropout
        if not fast and rate:
            residual.dropout = Bytes(11, rate)
        with torch.autocast("cpu", torch.bfloat16):
            if kind == "feed-forward":
                out = sublayers.feed_forward(x, residual, layer.feed_forward)
            elif kind == "cross":
                out = sublayers.attend(x, residual, layer.cross_attention, memory, padding_mask(real))
            else:
                out = sublayers.attend(x, residual, layer.self_attention, None, causal)
        residual.dropout = own
        assert (type(out.grad_fn).__name__ == "AddBackward0") is not fast
        torch.manual_seed(2)
        wanted = [x, *([memory] if kind == "cross" else []), *layer.parameters()]
        found = torch.autograd.grad(out, wanted, torch.randn_like(out), allow_unused=True)
        return out, *(gradient for gradient in found if gradient is not None)

    for mine, other in zip(sublayer(True), sublayer(False), strict=True):
        assert mine.dtype == other.dtype == torch.float32
        assert (mine - other).norm() <= 2e-2 * other.norm() + 0.3  # that of a key's bias is zero but for rounding


@needs_kernels
def test_numbers_that_lie_otherwise_are_the_same_numbers() -> None:
    """A batch of one image comes out of its patches with columns for rows."""
    torch.manual_seed(0)
    layer = decoder_layer(BlockConfig(d_model=32, num_heads=2, d_ff=64, dropout=0.0), cross_attention=False)
    across = torch.randn(1, 32, 9).transpose(1, 2)
    found = []
    for x in (across, across.contiguous()):
        x = x.detach().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(x, causal_mask(9))
        found.append((out.detach(), *torch.autograd.grad(out.square().sum(), (x, *layer.parameters()))))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@needs_kernels
def test_frozen_parameters_and_a_memory_without_gradient() -> None:
    torch.manual_seed(0)
    layer = decoder_layer(BlockConfig(d_model=32, num_heads=2, d_ff=64, dropout=0.0))
    layer.cross_attention_residual.requires_grad_(False)
    layer.feed_forward.expand.requires_grad_(False)
    x = torch.randn(2, 5, 32)
    with torch.autocast("cpu", torch.bfloat16):
        layer(x, causal_mask(5), torch.randn(2, 4, 32), None).sum().backward()
    assert {name for name, parameter in layer.named_parameters() if parameter.grad is None} == {
        "cross_attention_residual.norm.weight", "cross_attention_residual.norm.bias",
        "feed_forward.expand.weight", "feed_forward.expand.bias",
    }  # fmt: skip


@needs_kernels
def test_where_there_is_no_twin_the_sublayer_is_as_it_is_written() -> None:
    """Not a number's difference: the very same computation."""
    torch.manual_seed(0)
    for changes in (
        {"norm_placement": "post"}, {"norm": "rms"}, {"attention_dropout": 0.1, "activation_dropout": 0.1},
        {"num_kv_heads": 1, "activation": "gelu"}, {"d_model": 24, "num_heads": 1},
    ):  # fmt: skip
        layer = decoder_layer(
            BlockConfig(**{"d_model": 32, "num_heads": 2, "d_ff": 64, "dropout": 0.1, **changes}), False
        )
        x = torch.randn(2, 5, layer.self_attention.query_proj.in_features, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(x, causal_mask(5))
        names, waiting = set(), [out.grad_fn]
        while waiting:
            node = waiting.pop()
            names.add(type(node).__name__)
            waiting += [following for following, _ in node.next_functions if following is not None]
        assert not any("Sublayer" in name for name in names), changes


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """As in a process that has not looked for a compiler yet, and a user whose cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kernels.available.cache_clear()
    kernels._library.cache_clear()
    yield tmp_path / "cache" / "dragoman"
    kernels.available.cache_clear()
    kernels._library.cache_clear()


@pytest.mark.system
@needs_kernels
def test_the_loops_are_compiled_once_and_kept_for_the_user_alone(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.available()
    (kept,) = anew.iterdir()
    assert stat.S_IMODE(anew.stat().st_mode) == 0o700
    made = kept.stat().st_mtime_ns
    kernels.available.cache_clear()
    kernels._library.cache_clear()
    monkeypatch.setattr(kernels, "FLAGS", kernels.FLAGS)
    assert kernels.available()
    assert kept.stat().st_mtime_ns == made
    monkeypatch.setattr(kernels, "FLAGS", (*kernels.FLAGS, "-DSOMETHING_ELSE"))
    kernels._library.cache_clear()
    assert kernels._library() is not None
    assert len(list(anew.iterdir())) == 2


@pytest.mark.system
@needs_kernels
def test_a_damaged_file_in_the_cache_is_made_anew(anew: Path) -> None:
    assert kernels.available()
    (kept,) = anew.iterdir()
    kept.unlink()  # not written over, as it is loaded
    kept.write_bytes(b"")
    kernels._library.cache_clear()
    assert kernels._library() is not None
    assert kept.stat().st_size > 0
    kept.chmod(0o777)  # somebody else may have put it there
    made = kept.stat().st_mtime_ns
    kernels._library.cache_clear()
    assert kernels._library() is not None
    assert kept.stat().st_mtime_ns != made
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@needs_kernels
@pytest.mark.parametrize("allowed", [0, 1])
def test_a_processor_s_units_for_matrices_are_used_where_compiler_and_system_know_them(
    allowed: int, anew: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = kernels.cpu_capabilities()
    monkeypatch.setattr(kernels, "cpu_capabilities", lambda: {**known, "amx_bf16": True})
    library = SimpleNamespace(may_multiply_matrices=lambda: allowed)
    monkeypatch.setattr(kernels.c_library, "load", lambda *_: library)
    assert kernels.available() == bool(allowed)


@needs_kernels
@pytest.mark.parametrize(("rows", "n", "k"), [(37, 48, 80), (530, 160, 416)])
def test_products_by_vectors_and_by_units_for_matrices_are_alike(
    rows: int, n: int, k: int, anew: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = kernels.cpu_capabilities()
    if not known.get("amx_bf16"):
        pytest.skip("no units for matrices")
    torch.manual_seed(0)
    weight, x, above = torch.randn(n, k), in_rows(rows, k), in_rows(rows, n)

    def products() -> tuple[Tensor, ...]:
        matrix = kernels.Matrix.of(weight)
        forward, back = kernels.multiply(x, matrix.across, n), kernels.multiply(above, matrix.down, k)
        return forward, back, *kernels.weight_gradient(above, x)

    here = products()
    monkeypatch.setattr(kernels, "cpu_capabilities", lambda: {**known, "amx_bf16": False})
    monkeypatch.setattr(kernels, "FLAGS", (*kernels.FLAGS, "-mno-amx-bf16"))
    kernels._library.cache_clear()
    for mine, other in zip(here, products(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-3, rtol=1e-2 if mine.dtype == torch.bfloat16 else 1e-4)


@needs_kernels
@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_cache_that_others_can_write_to_is_not_used(anew: Path, mode: int) -> None:
    anew.mkdir(parents=True)
    anew.chmod(mode)
    assert kernels.available()
    assert not list(anew.iterdir())


@needs_kernels
@pytest.mark.parametrize("compiler", ["a-compiler-that-is-not-there", "false", "it fails"])
def test_without_a_compiler_training_goes_on_without_them(
    compiler: str, anew: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if compiler == "it fails":
        script = tmp_path / compiler
        script.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\necho "kernels.c:1: no such thing" >&2; exit 1\n')
        script.chmod(0o700)
        compiler = str(script)
    monkeypatch.setenv("CC", compiler)
    assert not kernels.available()
    assert not kernels.available()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert compiler in lines[0]
    assert "training by PyTorch's own operations alone" in lines[0]
    layer = decoder_layer(BlockConfig(d_model=32, num_heads=2, d_ff=64), cross_attention=False)
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(2, 5, 32), causal_mask(5)).sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())


@needs_kernels
def test_a_compiler_that_hangs_is_said_in_one_line(
    anew: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "waits"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\necho "warning: no licence" >&2; exec sleep 60\n')
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(kernels.c_library, "TIMEOUT", 0.5)
    assert not kernels.available()
    (line,) = capsys.readouterr().err.splitlines()
    assert "has not ended after 0.5 seconds" in line


@needs_kernels
def test_a_compiler_does_not_read_the_lines_to_translate(tmp_path: Path) -> None:
    """A wrapper such as `docker run -i` reads whatever stands in standard input."""
    script = tmp_path / "reads"
    script.write_text('#!/bin/sh\ncat > /dev/null\nexec cc "$@"\n')
    script.chmod(0o700)
    command = "import sys, dragoman.backends.c_library as c; c._version((sys.argv[1],)); print(sys.stdin.read())"
    done = subprocess.run([sys.executable, "-c", command, script], input="Wo?", capture_output=True, text=True)
    assert done.stdout.strip() == "Wo?", done.stderr


@needs_kernels
def test_only_the_cache_need_be_for_programs(anew: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files is often mounted `noexec`."""
    open_library = kernels.c_library.ctypes.CDLL

    def of_programs(path: str) -> Any:
        if not path.startswith(str(anew)):
            raise OSError(f"{path}: failed to map segment from shared object")
        return open_library(path)

    monkeypatch.setattr(kernels.c_library.ctypes, "CDLL", of_programs)
    assert kernels.c_library.load(tiny(tmp_path), (), "without it") is not None


@needs_kernels
def test_a_full_cache_keeps_no_halves(
    anew: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def on_a_full_disk(made: Path, to: Path) -> None:
        to.write_bytes(made.read_bytes()[:100])
        raise OSError("No space left on device")

    monkeypatch.setattr(kernels.c_library.shutil, "copyfile", on_a_full_disk)
    assert kernels.c_library.load(tiny(tmp_path), (), "without it") is not None
    assert not list(anew.iterdir())


def tiny(folder: Path) -> Path:
    """A C file that is compiled at once."""
    source = folder / "tiny.c"
    source.write_text("int one(void) { return 1; }\n")
    return source
