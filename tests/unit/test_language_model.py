"""What a language model promises, in its variants: the contracts of the translation models, without a source."""

from typing import Any

import pytest
import torch

from dragoman.models.language_model import LanguageModel, LanguageModelConfig

VOCAB, PAD = 19, 0
VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm_placement": "post", "position": {"type": "learned", "max_len": 16}, "activation": "gelu_tanh"},
    {"norm": "rms", "position": {"type": "rotary"}, "activation": "swiglu", "num_kv_heads": 1, "tie_embeddings": False},
    {"norm_placement": "output", "position": {"type": "alibi"}, "embedding_norm": True, "scale_embeddings": False},
    {"position": {"type": "none"}},
]
IDS = torch.tensor([[2, 5, 6, 7, 8, 9, 10], [2, 11, 12, 13, 3, 0, 0], [2, 18, 4, 14, 6, 3, 0]])


@pytest.fixture(params=VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())) or "default")
def model(request: pytest.FixtureRequest) -> LanguageModel:
    torch.manual_seed(1)
    config = LanguageModelConfig(d_model=16, num_heads=2, d_ff=32, num_layers=2, dropout=0.1, **request.param)
    return config.build(vocab_size=VOCAB, pad_id=PAD).eval()


@torch.no_grad()
def test_step_and_prefill_equal_decode_at_every_position(model: LanguageModel) -> None:
    at_once, state = model(IDS), model.start(3)
    for position in range(7):
        logits, state = model.decode_step(IDS[:, position], state)
        torch.testing.assert_close(logits, at_once[:, position], atol=1e-5, rtol=1e-5)
    prompt, state = model.prefill(IDS[:, :4], model.start(3))
    rest, state = model.prefill(IDS[:, 4:], state)
    torch.testing.assert_close(torch.cat([prompt, rest], dim=1), at_once, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_state_is_reordered_and_never_changed(model: LanguageModel) -> None:
    _, state = model.prefill(IDS[:, :3], model.start(3))
    straight, _ = model.decode_step(IDS[:, 3], state)
    again, _ = model.decode_step(IDS[:, 3], state)
    assert torch.equal(straight, again)
    rows = torch.tensor([2, 0, 0, 1])
    moved, _ = model.decode_step(IDS[rows, 3], state.reorder(rows))
    torch.testing.assert_close(moved, straight[rows], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_neither_future_nor_padding_reaches_back(model: LanguageModel) -> None:
    before = model(IDS)
    for now in range(1, 7):
        changed = IDS.clone()
        changed[:, now:] = 4 + (changed[:, now:] + 3) % (VOCAB - 4)
        after = model(changed)
        assert torch.equal(before[:, :now], after[:, :now])
        assert (before[:, now] != after[:, now]).any(dim=-1).all()
    torch.testing.assert_close(model(IDS[1:2, :5])[0], before[1, :5], atol=1e-5, rtol=1e-5)


def test_gradients_reach_every_parameter_and_are_finite(model: LanguageModel) -> None:
    model.train()
    torch.nn.functional.cross_entropy(model(IDS[:, :-1]).flatten(0, 1), IDS[:, 1:].flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_it_learns_a_text_by_heart(model: LanguageModel) -> None:
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(IDS[:, :-1]).flatten(0, 1), IDS[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    logits, state = model.eval().prefill(IDS[:, :2], model.start(3))
    found = [logits[:, -1].argmax(-1)]
    for _ in range(3):
        logits, state = model.decode_step(found[-1], state)
        found.append(logits.argmax(-1))
    assert torch.equal(torch.stack(found, dim=1), IDS[:, 2:6])


def test_residual_projections_begin_smaller() -> None:
    sizes: dict[str, Any] = {"d_model": 16, "num_heads": 2, "num_layers": 8}
    models = []
    for shrink in (True, False):
        torch.manual_seed(1)
        models.append(LanguageModelConfig(shrink_residuals=shrink, **sizes).build(vocab_size=VOCAB, pad_id=PAD))
    plain = dict(models[1].named_parameters())
    shrunk = []
    for name, parameter in models[0].named_parameters():
        if not torch.equal(parameter, plain[name]):
            torch.testing.assert_close(parameter, plain[name] / 4)
            shrunk.append(name.split(".", 2)[2])
    assert shrunk == ["self_attention.output_proj.weight", "feed_forward.contract.weight"] * 8
