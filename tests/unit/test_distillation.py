"""Word-level distillation: the loss by hand and by PyTorch's own functions, and who teaches whom."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor
from torch.nn import functional as F

from dragoman import config
from dragoman.backends.chunked_loss import ROWS_AT_ONCE, token_loss
from dragoman.config import parse
from dragoman.errors import Error
from dragoman.runs import checkpoint
from dragoman.runs import log as runlog
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.training.distillation import Teachers
from dragoman.training.loss import textbook_loss


def textbook(logits: Tensor, teachers: list[Tensor], targets: Tensor, label_smoothing: float, weight: float) -> Tensor:
    """Cross-entropy to the mean of the teachers' distributions beside that to the corpus, by PyTorch's functions."""
    taught = torch.stack([teacher.float().softmax(dim=-1) for teacher in teachers]).mean(dim=0)
    to_teachers = F.cross_entropy(logits.float(), taught, reduction="sum")
    return (1 - weight) * textbook_loss(logits, targets, label_smoothing) + weight * to_teachers


def test_one_position_by_hand() -> None:
    logits = torch.tensor([[[math.log(3.0), 0.0]]])  # 3/4 and 1/4
    teacher = torch.zeros(1, 1, 2)  # 1/2 and 1/2
    loss = token_loss(logits, torch.tensor([[1]]), torch.ones(1, 1).bool(), 0.0, teachers=[teacher], weight=0.4)
    # The second token is right: its share of the target is 0.6 + 0.4 / 2, that of the first 0.4 / 2.
    assert loss.item() == pytest.approx(-0.8 * math.log(0.25) - 0.2 * math.log(0.75), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("label_smoothing", "weight"), [(0.0, 0.5), (0.1, 0.3), (0.1, 1.0)])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("in_place", [False, True])
def test_equals_the_textbook_in_value_and_gradient(
    dtype: torch.dtype, label_smoothing: float, weight: float, count: int, in_place: bool
) -> None:
    generator = torch.Generator().manual_seed(1)
    batch, length, vocab = 2, ROWS_AT_ONCE + 3, 11
    mine, *teachers = ((2 * torch.randn(batch, length, vocab, generator=generator)).to(dtype) for _ in range(count + 1))
    targets = torch.randint(0, vocab, (batch, length), generator=generator)
    mask = torch.arange(length)[None] < torch.tensor([[length], [length - 7]])
    expected_leaf = mine.clone().requires_grad_()
    expected = textbook(expected_leaf[mask], [one[mask] for one in teachers], targets[mask], label_smoothing, weight)
    (expected_gradient,) = torch.autograd.grad(expected, expected_leaf)

    leaf = mine.clone().requires_grad_()
    logits = leaf * 1.0 if in_place else leaf
    found = token_loss(logits, targets, mask, label_smoothing, in_place=in_place, teachers=teachers, weight=weight)
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-4)
    (gradient,) = torch.autograd.grad(found, leaf)
    tolerance = 1e-5 if dtype == torch.float32 else 2**-7
    torch.testing.assert_close(gradient, expected_gradient, rtol=tolerance, atol=tolerance)


def test_without_teachers_a_weight_changes_no_bit() -> None:
    logits = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(1))
    targets, mask = torch.zeros(2, 5, dtype=torch.long), torch.ones(2, 5).bool()
    assert torch.equal(token_loss(logits, targets, mask, 0.1, weight=0.5), token_loss(logits, targets, mask, 0.1))


def test_teachers_keep_still() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5))
    teachers = Teachers([model], 0.5)
    x = torch.ones(2, 3)
    first, second = teachers.logits(x), teachers.logits(x)
    assert torch.equal(first[0], second[0])
    assert not first[0].requires_grad
    assert not any(parameter.requires_grad for parameter in model.parameters())


# -- whole runs ------------------------------------------------------------------------------------------------------


def settings(folder: Path, name: str, *changes: str, english: str = "one two\nthree four\n") -> dict[str, Any]:
    """A recipe for a tiny run."""
    for lang, text in (("de", "eins zwei\ndrei vier\n"), ("en", english)):
        (folder / f"{name}.{lang}").write_text(text, encoding="utf-8")
    files = {"type": "files", "src": str(folder / f"{name}.de"), "tgt": str(folder / f"{name}.en")}
    data = {
        "run_dir": str(folder / name),
        "device": "cpu",
        "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files},
        "tokenizer": {"type": "whitespace"},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8, "num_encoder_layers": 1,
                  "num_decoder_layers": 1},
        "training": {"max_steps": 6, "validate_every": 3, "averaging": {"type": "none"},
                     "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 1}},
    }  # fmt: skip
    return config.override(data, changes)


def run(data: dict[str, Any]) -> Path:
    recipe = parse(TranslationRecipe, data)
    recipes.run(recipe)
    return Path(recipe.run_dir)


def weights(path: Path) -> dict[str, Tensor]:
    return checkpoint.load_inference_weights(checkpoint.select(path, "last"))


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return run(settings(tmp_path, "teacher", "seed=2", "training.max_steps=3"))


def test_a_model_taught_by_itself_alone_learns_nothing_else(tmp_path: Path, teacher: Path) -> None:
    """Where student and teacher agree, the gradient towards the teacher is zero; towards the corpus it is not."""
    same = ["training.max_steps=1", "training.validate_every=1", "model.dropout=0", "training.clip_norm=0",
            "training.optimizer.weight_decay=0", "training.optimizer.type=adamw", f"init_from={teacher}"]  # fmt: skip
    taught_by = [f"distillation.teachers=[{teacher}]"]
    norms = {}
    for name, weight in (("all", 1.0), ("half", 0.5)):
        where = run(settings(tmp_path, name, *same, *taught_by, f"distillation.weight={weight}"))
        norms[name] = next(
            event["grad_norm"] for event in runlog.read_events(where / "metrics.jsonl") if "grad_norm" in event
        )
    assert norms["all"] < 1e-5 < 1e-2 < norms["half"]


def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path: Path, teacher: Path) -> None:
    taught_by = f"distillation.teachers=[{teacher}]"
    schedule = "training.schedule.type=constant"  # which does not depend on how long the run is meant to be
    whole = weights(run(settings(tmp_path, "whole", taught_by, schedule)))
    run(settings(tmp_path, "parts", taught_by, schedule, "training.max_steps=3"))
    parts = weights(run(settings(tmp_path, "parts", taught_by, schedule)))
    assert all(torch.equal(parts[name], tensor) for name, tensor in whole.items())
    untaught = weights(run(settings(tmp_path, "untaught", schedule)))
    assert not all(torch.equal(untaught[name], tensor) for name, tensor in whole.items())


def test_a_run_does_not_go_on_with_another_teacher(tmp_path: Path, teacher: Path) -> None:
    data = settings(tmp_path, "student", f"distillation.teachers=[{teacher}]", "training.max_steps=3")
    run(data)
    run(settings(tmp_path, "teacher", "seed=2", "training.max_steps=6"))
    with raises_error(Error.OTHER_CONTENT, "student"):
        run(config.override(data, ["training.max_steps=6"]))


def test_who_cannot_teach(tmp_path: Path, teacher: Path) -> None:
    short = run(settings(tmp_path, "short", "training.max_steps=3", "corpus.max_tokens=8",
                         "model.position={type: learned, max_len: 9}"))  # fmt: skip
    with raises_error(Error.WRONG_SETTING):
        run(settings(tmp_path, "student", f"distillation.teachers=[{short}]"))
    other = run(settings(tmp_path, "other", "training.max_steps=3", english="uno due\ntre quattro\n"))
    with raises_error(Error.MISMATCH, "other"):
        run(settings(tmp_path, "student", f"distillation.teachers=[{other}]"))
    back = run(settings(tmp_path, "back", "training.max_steps=3", "corpus.src_lang=en", "corpus.tgt_lang=de"))
    with raises_error(Error.LANGUAGES_DIFFER, "back"):
        run(settings(tmp_path, "student", f"distillation.teachers=[{back}]"))
    with raises_error(Error.NOT_A_RUN, "nowhere"):
        run(settings(tmp_path, "pupil", "distillation.teachers=[nowhere]"))
    with raises_error(Error.WRONG_SETTING):
        parse(TranslationRecipe, settings(tmp_path, "x", f"distillation.teachers=[{teacher}]", "training.r_drop=1"))
