"""The seam for speed: every twin equals its textbook, and `backend: textbook` does without any of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman import config
from dragoman.backends import chunked_loss
from dragoman.backends.accelerate import accelerate, accelerate_inference, exchange, textbook_class
from dragoman.backends.byte_dropout import ByteDropout
from dragoman.backends.cpu_training.fast_layers import BFLOAT16_LAYERS
from dragoman.backends.fused_attention import FusedAttention
from dragoman.models.families import MODELS
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.dropout import Dropout
from dragoman.training import loss as textbook

CPU = torch.device("cpu")
SIZES = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"norm_placement": "post", "activation": "gelu"},
    "pre": {"activation": "gelu"},
    "rotary": {"position": {"type": "rotary"}, "activation": "swiglu", "norm": "rms"},
    "alibi": {"position": {"type": "alibi"}, "activation": "gelu_tanh", "tie_embeddings": "none"},
    "full width": {"d_head": 32, "activation": "gelu"},
    "grouped": {"num_heads": 4, "num_kv_heads": 2, "activation": "gelu"},
}
"""Without ReLU: a unit near zero may be on in one type and off in the other."""


def built(**settings: Any) -> nn.Module:
    torch.manual_seed(0)
    model = config.parse(MODELS["transformer"], {**SIZES, **settings}, "model")
    return model.build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0)


def output_and_gradients(model: nn.Module, *, bfloat16: bool = False) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    src, tgt_in = torch.randint(4, 19, (3, 7)), torch.randint(4, 19, (3, 5))
    src_mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        logits = model(src, src_mask, tgt_in).float()
    logits.logsumexp(dim=-1).sum().backward()
    gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return logits.detach(), torch.cat(gradients)


@pytest.mark.parametrize("variant", VARIANTS)
def test_in_float32_outputs_and_gradients_are_the_textbooks(variant: str) -> None:
    model = built(**VARIANTS[variant])
    expected = output_and_gradients(model)
    accelerate(model, CPU, "float32")
    for mine, other in zip(output_and_gradients(model), expected, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_in_bfloat16_they_are_as_near_to_float32_as_the_textbooks_under_autocast(variant: str) -> None:
    model = built(**VARIANTS[variant])
    exact, under_autocast = output_and_gradients(model), output_and_gradients(model, bfloat16=True)
    accelerate(model, CPU, "bfloat16")
    assert {type(module) for module in model.modules()} & set(BFLOAT16_LAYERS.values())
    for mine, rounded, wanted in zip(output_and_gradients(model, bfloat16=True), under_autocast, exact, strict=True):
        assert (mine - wanted).norm() < 1.3 * (rounded - wanted).norm() < 0.1 * wanted.norm()


def test_layers_stay_where_they_are_and_change_their_class_there_and_back() -> None:
    model = built(position={"type": "rotary"}, activation="swiglu")
    modules, weights = dict(model.named_modules()), {name: id(value) for name, value in model.named_parameters()}
    classes = {name: type(module) for name, module in modules.items()}
    for precision, kind in (("float32", FusedAttention), ("bfloat16", BFLOAT16_LAYERS[MultiHeadAttention])):
        accelerate(model, CPU, precision)
        assert all(type(module) is kind for module in model.modules() if isinstance(module, MultiHeadAttention))
        assert all(type(module) is ByteDropout for module in model.modules() if isinstance(module, Dropout))
    accelerate_inference(model, packed=False)
    assert not any(type(module) in BFLOAT16_LAYERS.values() for module in model.modules())
    exchange(model, {})
    assert {name: type(module) for name, module in model.named_modules()} == classes
    assert all(modules[name] is module for name, module in model.named_modules())
    assert {name: id(value) for name, value in model.named_parameters()} == weights


def test_where_a_processor_cannot_multiply_bfloat16_its_weights_are_multiplied_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.backends.accelerate.cpu_has_bfloat16", lambda: False)
    model = built().to(torch.bfloat16)
    rounded = {name: value.detach().float() for name, value in model.named_parameters()}
    accelerate_inference(model, packed=True, precision="bfloat16")
    for name, value in model.named_parameters():
        assert value.dtype == torch.float32
        assert torch.equal(value, rounded[name])


def test_a_twin_is_a_subclass_without_parameters_of_its_own() -> None:
    for kind, twin in {**BFLOAT16_LAYERS, MultiHeadAttention: FusedAttention, Dropout: ByteDropout}.items():
        assert issubclass(twin, kind)
        assert textbook_class(twin) is kind
        assert "__init__" not in vars(twin)


@pytest.mark.parametrize("teachers", [0, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_losses_are_the_textbooks(teachers: int, smoothing: float) -> None:
    torch.manual_seed(0)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    logits, others = torch.randn(3, 5, 11, requires_grad=True), [torch.randn(3, 5, 11) for _ in range(teachers)]
    targets = torch.randint(0, 11, (3, 5))
    values = [
        loss.token_loss(logits, targets, mask, smoothing, teachers=others, weight=0.4 if teachers else 0.0)
        for loss in (chunked_loss, textbook)
    ]
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in values))


STEP = """
import json, sys
import torch
from dragoman import config
from dragoman.models.families import CLASSIFIERS, MODELS
from dragoman.models.language_model import LanguageModelConfig
from dragoman.training.config import TrainingConfig
from dragoman.training.step import TrainingStep

class Task:
    def count(self, step):
        return 1

    def micro_batch(self, step, number):
        return [self]

    def to(self, device):
        return self

    def loss(self, model, batch, label_smoothing):
        return model(*inputs[name]).float().logsumexp(dim=-1).sum(), 1, 1

ids, mask = torch.tensor([[5, 6, 3], [7, 3, 0]]), torch.tensor([[True, True, True], [True, True, False]])
inputs = {"language_model": (ids,), "text_classifier": (ids, mask), "vit": (torch.zeros(2, 1, 28, 28),)}
inputs |= {name: (ids, mask, ids) for name in MODELS}
pairs = {"src_vocab_size": 11, "tgt_vocab_size": 11, "shared_vocab": True, "pad_id": 0}
built = {
    "language_model": {"vocab_size": 11, "pad_id": 0},
    "text_classifier": {"vocab_size": 11, "num_labels": 3, "pad_id": 0, "unk_id": 1},
    "vit": {"num_labels": 3},
}
families = {**MODELS, **CLASSIFIERS, "language_model": LanguageModelConfig}
for backend in ("textbook", "auto"):
    training = config.parse(TrainingConfig, {"max_steps": 1, "backend": backend})
    for name, family in families.items():
        for precision in ("bfloat16", "float16"):
            model = config.parse(family, {"d_model": 16}).build(**built.get(name, pairs))
            before = [parameter.clone() for parameter in model.parameters()]
            step = TrainingStep(training, model, Task(), device=torch.device("cpu"), precision=precision, seed=1)
            step.take(1, 0.1)
            assert any(not torch.equal(*pair) for pair in zip(before, model.parameters())), name
    print(json.dumps([name for name in sys.modules if "cpu_training" in name]))
"""


def test_a_step_of_every_family_by_the_textbook_loads_no_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", STEP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    by_textbook, by_auto = map(json.loads, done.stdout.splitlines())
    assert not by_textbook
    assert by_auto


RECIPES = {
    "toy-reverse.yaml": {"model.position": "{type: rotary}", "training.r_drop": 1.0},
    "toy-reverse-lstm.yaml": {},
    "lm-demo.yaml": {},
    "language-id-demo.yaml": {},
}
LONG = {"toy-reverse-lstm.yaml", "lm-demo.yaml"}
"""In `make test-all`."""
TRAIN = """
import json, sys
from dragoman.tasks import recipes
recipes.run(recipes.load(sys.argv[1], sys.argv[2:]))
print(json.dumps([name for name in sys.modules if name.startswith("dragoman.backends")]))
"""


@pytest.mark.system
@pytest.mark.parametrize(
    "recipe",
    [pytest.param(one, marks=[pytest.mark.slow] if one in LONG else []) for one in RECIPES],
)
def test_every_family_trains_by_the_textbook_without_a_kernel(recipe: str, tmp_path: Path) -> None:
    changes = {
        "training.backend": "textbook", "training.precision": "bfloat16", "training.max_steps": 3, "device": "cpu",
        "training.validate_every": 3, "workers": 1, "run_dir": tmp_path / "run", **RECIPES[recipe],
    }  # fmt: skip
    path = Path(__file__).parents[2] / "recipes" / recipe
    command = [sys.executable, "-c", TRAIN, str(path), *(f"{name}={value}" for name, value in changes.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not [name for name in json.loads(done.stdout.splitlines()[-1]) if "cpu_training" in name]
