"""The statements of docs/other-notes.md about other notes: each one's mathematics, in our own code.

A row of the page names its test: `minus_1e9` is `test_minus_1e9`.
"""

import copy
import re
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.analysis.printed import without_pad
from dragoman.nn.masks import causal_mask, padding_mask
from dragoman.nn.positions import sinusoidal_table
from dragoman.nn.residual import PostNorm, PreNorm
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.training.schedules import NoamConfig

PAGE = Path(__file__).parents[2] / "docs/other-notes.md"


def test_each_statement_of_the_page_has_a_test_and_an_edition() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    names = [row[0].strip().strip("`") for row in rows]
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert sorted(names) == sorted(tests - {"each_statement_of_the_page_has_a_test_and_an_edition"})
    assert all(re.search(r"AT 20(18|22)|d2l 0\.\d+\.0|PyTorch|tensor2tensor", row[1]) for row in rows)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


@pytest.fixture
def module() -> nn.MultiheadAttention:
    return nn.MultiheadAttention(8, 2, batch_first=True).eval()


# --- masks -----------------------------------------------------------------------------------------------------------


def test_module_mask(module: nn.MultiheadAttention) -> None:
    x = torch.randn(2, 4, 8)
    hidden = torch.tensor([[False, False, False, True], [False, False, True, True]])
    _, weights = module(x, x, x, key_padding_mask=hidden)
    assert (weights.masked_select(hidden[:, None]) == 0).all()
    _, weights = module(x, x, x, attn_mask=~causal_mask(4)[0, 0])
    assert (weights.triu(1) == 0).all()


def test_function_mask() -> None:
    x = torch.randn(1, 1, 4, 8)
    visible = causal_mask(4)
    eye = torch.eye(4)[None, None]  # as values it gives the weights themselves
    weights = F.scaled_dot_product_attention(x, x, eye, attn_mask=visible)
    assert (weights.triu(1) == 0).all()
    turned_round = F.scaled_dot_product_attention(x, x, eye, attn_mask=~visible)
    assert (turned_round[..., :3, :].tril() == 0).all()


def test_subsequent_mask() -> None:
    visible = torch.ones(1, 5, 5).triu(1) == 0
    assert visible.equal(causal_mask(5)[0])
    weights = torch.randn(1, 5, 5).masked_fill(visible == 0, -1e9).softmax(-1)
    assert (weights.triu(1) == 0).all()


def test_minus_1e9() -> None:
    scores, hidden = torch.randn(2, 5), torch.tensor([[False, True, False, False, True], [True] * 5])
    for dtype in (torch.float32, torch.bfloat16):
        weights = scores.to(dtype).masked_fill(hidden, -1e9).softmax(-1)
        assert (weights[0, hidden[0]] == 0).all()
        assert (weights[1] - 0.2).abs().max() < 1e-3
    with pytest.raises(RuntimeError, match="overflow"):
        scores.half().masked_fill(hidden, -1e9)
    assert scores.masked_fill(hidden, -torch.inf).softmax(-1)[1].isnan().all()


def test_valid_len() -> None:
    scores, lengths = torch.randn(2, 3, 4), torch.tensor([2, 3])
    beyond = torch.arange(4) >= lengths.repeat_interleave(3)[:, None]
    filled = scores.flatten(0, 1).masked_fill(beyond, -1e6).softmax(-1).unflatten(0, (2, 3))
    real = torch.arange(4) < lengths[:, None]
    ours = scores[:, None].masked_fill(~padding_mask(real), -torch.inf).softmax(-1)[:, 0]
    assert torch.equal(filled, ours)


def test_tiled_lengths() -> None:
    """Row sentence * heads + head of the folded batch belongs to that sentence."""
    lengths, heads = torch.tensor([2, 7]), 2
    owners = torch.arange(2)[:, None].expand(2, heads).reshape(-1)
    assert lengths.repeat_interleave(heads).equal(lengths[owners])
    tiled = lengths.repeat(heads)
    assert tiled.tolist() == [2, 7, 2, 7]
    assert tiled[1] == lengths[1] != lengths[owners[1]]  # the first sentence's second head


# --- attention -------------------------------------------------------------------------------------------------------


def additive_weights(kind: str) -> Tensor:
    """Weights of three queries on five keys, (queries, keys)."""
    queries, keys = torch.randn(3, 1, 8), torch.randn(1, 5, 8)
    v = torch.randn(8)
    features = {
        "none": lambda: queries + keys,
        "before": lambda: queries.tanh() + keys.tanh(),
        "after": lambda: (queries + keys).tanh(),
    }[kind]()
    return (features @ v).softmax(-1)


def test_additive_without_tanh() -> None:
    weights = additive_weights("none")
    assert torch.allclose(weights, weights[:1].expand(3, 5), atol=1e-5)
    weights = additive_weights("after")
    assert (weights - weights[:1]).abs().max() > 0.05


def test_tanh_before_the_sum() -> None:
    weights = additive_weights("before")
    assert torch.allclose(weights, weights[:1].expand(3, 5), atol=1e-5)


def test_folded_heads() -> None:
    q, k, v = torch.randn(3, 2, 5, 8).unbind()

    def folded(x: Tensor) -> Tensor:
        return x.reshape(2, 5, 4, 2).permute(0, 2, 1, 3).reshape(8, 5, 2)

    ours = F.scaled_dot_product_attention(*(x.unflatten(-1, (4, 2)).transpose(1, 2) for x in (q, k, v)))
    theirs = torch.bmm((torch.bmm(folded(q), folded(k).mT) / 2**0.5).softmax(-1), folded(v))
    assert torch.allclose(theirs.unflatten(0, (2, 4)), ours, atol=1e-6)


# --- layers ----------------------------------------------------------------------------------------------------------


def test_residual() -> None:
    x, f, norm = torch.randn(2, 3, 8), nn.Linear(8, 8), nn.LayerNorm(8)
    assert PreNorm(norm, 0.0)(x, f).equal(x + f(norm(x)))
    assert PostNorm(norm, 0.0)(x, f).equal(norm(x + f(x)))
    assert not torch.allclose(x + f(norm(x)), x + norm(f(x)), atol=0.1)
    # dropout stands behind the sublayer: with all of it dropped, pre-norm leaves x as it is
    assert PreNorm(norm, 1.0)(x, f).equal(x)


def test_add_norm() -> None:
    x, f, norm = torch.randn(2, 3, 8), nn.Linear(8, 8), nn.LayerNorm(8)
    assert torch.allclose(norm(f(x) + x), PostNorm(norm, 0.0)(x, f))


@pytest.mark.parametrize(("width", "percent"), [(4, 15.47), (512, 0.098)])
def test_layer_norm(width: int, percent: float) -> None:
    x = torch.randn(3, width)
    theirs = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
    ratio = F.layer_norm(x, (width,)) / theirs
    assert 100 * (float(ratio.mean()) - 1) == pytest.approx(percent, rel=0.02)


def test_cloned_layers() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(3)])
    for parameter in layers.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    first, *others = layers
    for other in others:
        assert not first.linear1.weight.equal(other.linear1.weight)
        assert not first.self_attn.in_proj_weight.equal(other.self_attn.in_proj_weight)
        assert first.linear1.bias.equal(other.linear1.bias)
    assert first.linear1.bias.any()


def test_copied_layers() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    first, second = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).layers
    assert all(a.equal(b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_generator() -> None:
    logits, target = torch.randn(3, 7), torch.tensor([1, 0, 6])
    once = F.cross_entropy(logits, target)
    assert torch.allclose(F.cross_entropy(logits.log_softmax(-1), target), once)
    assert torch.allclose(F.nll_loss(logits.log_softmax(-1), target), once)


def test_speeds() -> None:
    d, position = 16, 9
    rates = 10_000 ** (-torch.arange(d // 2) / (d / 2 - 1))
    theirs = torch.cat([(position * rates).sin(), (position * rates).cos()])
    assert torch.allclose(theirs, sinusoidal_table(1, d, layout="fairseq", offset=position)[0], atol=1e-5)
    split = sinusoidal_table(1, d, layout="half_split", offset=position)[0]
    assert (theirs - split).abs().max() > 0.05
    assert torch.equal(split.sort().values, sinusoidal_table(1, d, offset=position)[0].sort().values)


# --- training and text -----------------------------------------------------------------------------------------------


def test_smoothing() -> None:
    size, target, epsilon = 5, 2, 0.4
    share = torch.full((size,), epsilon / (size - 2))
    share[target], share[0] = 1 - epsilon, 0.0
    assert without_pad(size, target, epsilon, 0) == pytest.approx(share.tolist())
    assert without_pad(size, 0, epsilon, 0) == pytest.approx([0.0] * size)
    log_probs = torch.randn(1, size).log_softmax(-1)
    ours = torch.full((size,), epsilon / size)
    ours[target] += 1 - epsilon
    by_pytorch = F.cross_entropy(log_probs, torch.tensor([target]), label_smoothing=epsilon)
    assert torch.allclose(by_pytorch, -(ours * log_probs[0]).sum())


def test_first_rate() -> None:
    noam = NoamConfig(warmup_steps=10)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam.rate_at(step or 1, 100, 64))
    rates = []
    for _ in range(3):
        rates += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    ours = [noam.rate_at(step, 100, 64) for step in (1, 2, 3)]
    assert rates == [ours[0], ours[0], ours[1]]


def test_vocabulary() -> None:
    train, test = ["ein hund", "ein mann"], ["ein lama", "das lama"]
    counts = Counter(" ".join(train + test).split())
    from_all = {word for word, count in counts.items() if count >= 2}
    from_train = {word for word, count in Counter(" ".join(train).split()).items() if count >= 2}
    assert from_all - from_train == {"lama"}  # an id, and an embedding that no training sentence ever changes


def test_specials() -> None:
    orders = {
        "AT 2022": ["<s>", "</s>", "<blank>", "<unk>"],
        "d2l 0.7.0": ["<pad>", "<bos>", "<eos>", "<unk>"],
        "d2l 0.17.0": ["<unk>", "<pad>", "<bos>", "<eos>"],
    }
    page = PAGE.read_text(encoding="utf-8")
    for edition, names in orders.items():
        assert f"{edition}: " + ", ".join(f"`{name}` {number}" for number, name in enumerate(names)) in page
    padding = {names.index(name) for names in orders.values() for name in names if name in ("<pad>", "<blank>")}
    assert padding == {0, 1, 2}
    ours = (PAD_ID, UNK_ID, BOS_ID, EOS_ID)
    assert ours == (0, 1, 2, 3)
    assert "`<pad>` 0, `<unk>` 1, `<s>` 2, `</s>` 3" in page


def test_recurrent() -> None:
    x = torch.randn(6, 2, 4)  # (time, batch, features)
    outputs, (h, c) = nn.LSTM(4, 3)(x)
    assert (outputs.shape, h.shape, c.shape) == ((6, 2, 3), (1, 2, 3), (1, 2, 3))
    outputs, state = nn.GRU(4, 3)(x)
    assert state.shape == (1, 2, 3)
    assert outputs[-1].equal(state[0])
    context = torch.cat([x, state[-1].expand(6, -1, -1)], dim=-1)
    assert nn.GRU(4 + 3, 3)(context)[0].shape == (6, 2, 3)
