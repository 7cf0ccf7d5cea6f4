"""What every classifier in the table promises, in each of its variants."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.data.batch import collate_src
from dragoman.models.families import CLASSIFIERS
from dragoman.runs import checkpoint

VOCAB, LABELS = 23, 3
SMALL = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 2}
SHAPES: list[dict[str, Any]] = [
    {"pooling": pooling, "norm_placement": placement, "position": position, "activation": activation}
    for pooling, placement, position, activation in [
        ("class_token", "pre", {"type": "sinusoidal"}, "relu"),
        ("class_token", "post", {"type": "learned", "max_len": 64}, "gelu"),
        ("class_token", "pre", {"type": "rotary"}, "swiglu"),
        ("mean", "output", {"type": "alibi"}, "gelu_tanh"),
        ("mean", "pre", {"type": "none"}, "gelu"),
        ("max", "pre", {"type": "learned", "max_len": 64}, "gelu"),
    ]
]
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "text_classifier": [*SHAPES, {**SHAPES[0], "convolution": 3, "word_dropout": 0.2}],
    "vit": [{**shape, "image_size": 6, "patch_size": 2} for shape in [*SHAPES, {**SHAPES[0], "embedding_norm": True}]],
}
CASES = [(family, {**SMALL, **variant}) for family in CLASSIFIERS for variant in VARIANTS[family]]
TEXTS = [[4, 5, 6, 7, 8], [12, 13], [20], [22, 4, 9], [5, 6, 4, 8, 10], [13, 14], [21], [9, 4, 21]]

Build = Callable[..., nn.Module]


def test_every_classifier_has_variants_here() -> None:
    assert VARIANTS.keys() == CLASSIFIERS.keys()


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, list(case[1].values())[4:])]))
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param


@pytest.fixture
def build(case: tuple[str, dict[str, Any]]) -> Build:
    family, variant = case
    sizes = {"vocab_size": VOCAB, "pad_id": 0, "unk_id": 1} if family == "text_classifier" else {}

    def make(dropout: float = 0.0) -> nn.Module:
        torch.manual_seed(1)
        return CLASSIFIERS[family](**variant, dropout=dropout).build(num_labels=LABELS, **sizes)

    return make


@pytest.fixture
def inputs(case: tuple[str, dict[str, Any]]) -> tuple[Tensor, ...]:
    """Eight rows as the family's `forward` takes them."""
    if case[0] == "text_classifier":
        return collate_src(TEXTS)
    return (torch.rand(8, 1, 6, 6, generator=torch.Generator().manual_seed(2)) * 2 - 1,)


def test_a_row_does_not_depend_on_its_neighbours(build: Build, inputs: tuple[Tensor, ...]) -> None:
    model = build().eval()
    with torch.no_grad():
        together = model(*inputs)
        assert together.shape == (8, LABELS)
        for row in range(8):
            # Of its own width: what is beside a text decides how much padding it has.
            alone = model(*(collate_src([TEXTS[row]]) if len(inputs) == 2 else [inputs[0][row : row + 1]]))
            torch.testing.assert_close(together[row : row + 1], alone, atol=1e-5, rtol=1e-5)


def test_overfits_eight_examples(build: Build, inputs: tuple[Tensor, ...]) -> None:
    model, labels = build(), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs), labels)
        loss.backward()
        optimizer.step()
        if loss.item() < 0.02:
            break
    assert torch.equal(model.eval()(*inputs).argmax(dim=-1), labels)


def test_gradients_reach_every_parameter_and_are_finite(build: Build, inputs: tuple[Tensor, ...]) -> None:
    model = build(dropout=0.1).train()
    F.cross_entropy(model(*inputs), torch.zeros(8, dtype=torch.long)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_bfloat16_trains(build: Build, inputs: tuple[Tensor, ...]) -> None:
    model = build().eval()
    exact = model(*inputs).detach()
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(*inputs)
        F.cross_entropy(logits, torch.zeros(8, dtype=torch.long)).backward()
    torch.testing.assert_close(logits.float(), exact, atol=0.1, rtol=0.1)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_saved_and_loaded_is_equal(build: Build, inputs: tuple[Tensor, ...], tmp_path: Any) -> None:
    model, other = build().eval(), build().eval()
    path = checkpoint.save(tmp_path, 1, {"model": checkpoint.weights(model)}, {"step": 1})
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.rand_like(parameter))
        assert not torch.equal(other(*inputs), model(*inputs))
        checkpoint.load_weights(other, checkpoint.load_inference_weights(path), "test")
        assert torch.equal(other(*inputs), model(*inputs))


def test_dropped_words_are_unknown_ones() -> None:
    settings = CLASSIFIERS["text_classifier"](**SMALL, word_dropout=0.9)
    model = settings.build(vocab_size=VOCAB, num_labels=LABELS, pad_id=0, unk_id=1)
    read: list[Tensor] = []
    model.embedding.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    ids, mask = torch.full((8, 50), 7), torch.ones(8, 50, dtype=torch.bool)
    for training in (True, False):
        model.train(training)(ids, mask)
    assert set(read[0].flatten().tolist()) == {1, 7}
    assert 0.8 < (read[0] == 1).float().mean() < 1
    assert torch.equal(read[1], ids)


@pytest.mark.parametrize("variant", VARIANTS["text_classifier"], ids=lambda variant: str(list(variant.values())))
def test_padding_may_be_no_number(variant: dict[str, Any]) -> None:
    torch.manual_seed(1)
    settings = CLASSIFIERS["text_classifier"](**SMALL, **variant)
    model = settings.build(vocab_size=VOCAB, num_labels=LABELS, pad_id=0, unk_id=1).eval()
    ids, mask = collate_src(TEXTS)
    clean = model(ids, mask)
    pads = ~mask[:, :, None]
    model.embedding.register_forward_hook(lambda _, given, vectors: vectors.masked_fill(pads, torch.nan))
    logits = model(ids.masked_fill(~mask, 11), mask)
    assert torch.equal(logits, clean)
    logits.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
