"""What `dragoman bench` measures: operations against numbers worked out by hand, parts against the whole."""

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import nn
from typer.testing import CliRunner

from dragoman.backends.accelerate import accelerate
from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.experiments.bench import bench
from dragoman.experiments.bench.batches import RandomPairs, subject
from dragoman.experiments.bench.parts import GROUPS, PARTS, Stopwatch, time_by_group
from dragoman.experiments.bench.products import Counted, Product, best_seconds, peak_flops
from dragoman.models.families import TransformerConfig
from dragoman.tasks import recipes

CPU = torch.device("cpu")
TINY = """
corpus:
  src_lang: de
  tgt_lang: en
  train: {type: demo, pair: de-en, split: train, size: 400}
  valid: {type: demo, pair: de-en, split: valid, size: 20}
tokenizer: {type: words}
model: {type: transformer, d_model: 16, num_heads: 2, d_ff: 24, num_encoder_layers: 1, num_decoder_layers: 1}
training: {batch_tokens: 256, precision: float32}
device: cpu
"""
TEXTS = Path(__file__).parents[2] / "recipes" / "language-id-demo.yaml"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_operations_of_a_transformer_equal_those_worked_out_by_hand(precision: str) -> None:
    """In bfloat16 another attention is taken on a CPU than in float32, and rows are filled up: the same operations."""
    batch, src_len, tgt_len, d_model, d_ff, vocab = 3, 7, 5, 16, 24, 29
    model = TransformerConfig(
        d_model=d_model, num_heads=2, d_ff=d_ff, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0
    ).build(src_vocab_size=vocab, tgt_vocab_size=vocab, shared_vocab=True, pad_id=0)  # fmt: skip
    accelerate(model, torch.device("cpu"), precision)
    src, tgt_in = torch.randint(4, vocab, (batch, src_len)), torch.randint(4, vocab, (batch, tgt_len))
    with Counted() as counted:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(src, torch.ones_like(src, dtype=torch.bool), tgt_in)
        logits.float().sum().backward()

    def attention(queries: int, keys: int) -> tuple[int, int]:
        """Multiplications of a sentence: (in the four projections, in Q K^T and its product with V)."""
        return (2 * queries + 2 * keys) * d_model**2, 2 * queries * keys * d_model

    attentions = [attention(src_len, src_len), attention(tgt_len, tgt_len), attention(tgt_len, src_len)]
    linear = sum(projections for projections, _ in attentions)
    linear += (src_len + tgt_len) * 2 * d_model * d_ff + tgt_len * d_model * vocab
    inner = sum(scores for _, scores in attentions)
    # An addition comes with each multiplication, and backward there are two products for each of forward.
    assert counted.flops == 2 * batch * 3 * (linear + inner)
    seen = sum(_multiplications(product) * count for product, count in counted.products.items())
    assert seen == batch * 3 * (linear + (inner if precision == "bfloat16" else 0))
    assert not counted.uncounted


def _multiplications(product: Product) -> int:
    left, right = (shape for shape, _, _ in product.operands[-2:])
    return torch.Size(left).numel() * right[-1]


def test_products_are_told_apart_by_shape_strides_and_dtype() -> None:
    with Counted() as counted:
        x = torch.randn(4, 6)
        for other in (torch.randn(6, 5), torch.randn(6, 5), torch.randn(5, 6).T):
            x @ other
        x.bfloat16() @ torch.randn(6, 5).bfloat16()
        torch.randn(2, 3, 4) @ torch.randn(2, 4, 5)
    assert sorted(counted.products.values()) == [1, 1, 1, 2]
    assert counted.flops == 2 * (4 * 4 * 6 * 5 + 2 * 3 * 4 * 5)
    assert all(product.seconds(CPU) > 0 for product in counted.products)


def test_kernels_that_hide_their_products_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with Counted() as counted:
        nn.LSTM(4, 4, batch_first=True)(torch.randn(2, 3, 4))
    if not counted.flops:  # one kernel for all of it, which depends on how PyTorch was built
        assert counted.uncounted == {"aten.mkldnn_rnn_layer"}
    monkeypatch.setattr("dragoman.experiments.bench.products.UNCOUNTED", ("cumsum",))
    with Counted() as counted:
        torch.randn(2, 3).cumsum(0) @ torch.randn(3, 4)
    assert counted.uncounted == {"aten.cumsum"}
    assert counted.flops == 2 * 2 * 3 * 4


def test_the_best_of_several_trials_counts_and_not_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now, trials = 0.0, iter([9.0, 3.0, 0.25])

    def compute() -> None:
        nonlocal now
        now += next(trials, 0.5)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr("dragoman.experiments.bench.products.TRIAL_S", 6.0)  # two calls of 3 s in each trial
    assert best_seconds(compute, CPU) == (0.25 + 0.5) / 2


def test_the_peak_is_that_of_the_best_product(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, shapes = iter([4.0, 2.0, 8.0, 0.5]), []

    def measure(compute: Callable[[], torch.Tensor], _: torch.device) -> float:
        shapes.append(compute().shape)
        return next(seconds)

    monkeypatch.setattr("dragoman.experiments.bench.products.PEAK_SIZES", {"cpu": (64, 128)})
    monkeypatch.setattr("dragoman.experiments.bench.products.best_seconds", measure)
    assert peak_flops(CPU, torch.float32) == 2 * 128**3 / 0.5
    assert shapes == [(64, 64)] * 2 + [(128, 128)] * 2


def test_parts_add_up_to_the_whole_and_leave_no_trace(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on by one each time it is looked at, so no part is without."""
    with subject(recipes.load(tiny)) as trainer:
        trainer.train_step(1)
        with Stopwatch(trainer, waiting=False) as watch:
            looks = itertools.count()
            monkeypatch.setattr(time, "perf_counter", lambda: float(next(looks)))
            for step in range(2, 12):
                trainer.train_step(step)
            whole = next(looks)
        assert set(watch.seconds) == set(PARTS)
        assert sum(watch.seconds.values()) == whole - 10  # all but what lies between two steps
        assert all(watch.seconds[part] > 0 for part in PARTS)
        for owner in (trainer, trainer.training_step, trainer.averager, trainer.task, trainer.model):
            assert not {"train_step", "gradients", "update", "batches", "loss", "forward"} & set(vars(owner))
        before = dict(watch.seconds)
        trainer.train_step(12)
        assert watch.seconds == before


def test_operations_are_put_into_groups(tiny: Path) -> None:
    with subject(recipes.load(tiny)) as trainer:
        groups = time_by_group(trainer, range(1, 3))
    assert groups is not None
    assert tuple(groups) == GROUPS
    assert sum(groups.values()) == pytest.approx(1.0)
    assert all(groups[name] > 0 for name in GROUPS)


def test_the_command_prints_figures_and_a_line_for_a_report(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.experiments.bench.products.PEAK_SIZES", {"cpu": (64,)})
    done = CliRunner().invoke(app, ["bench", str(tiny), "--steps", "3", "--json"])
    assert done.exit_code == 0, done.output
    figures: dict[str, Any] = json.loads(done.stdout)
    assert figures["steps"] == 3
    assert figures["batches"] == "the recipe's own corpus"
    assert 0 < figures["fill"] <= 1
    assert figures["padded_tokens_per_s"] == pytest.approx(figures["tokens_per_s"] / figures["fill"])
    assert figures["flops_per_s"] == pytest.approx(figures["flops_per_step"] / figures["s_per_step"])
    assert figures["utilisation"] == pytest.approx(figures["flops_per_s"] / figures["peak_flops_per_s"]["float32"])
    assert 0 < figures["best_s_per_step"] <= figures["s_per_step"]
    for name, seconds in (("step_by_products", "best_s_per_step"), ("mean_step_by_products", "s_per_step")):
        assert figures[name] == pytest.approx(figures[seconds] / figures["products_s_per_step"])
    assert set(figures["parts"]) == set(PARTS)
    assert all(seconds > 0 for seconds in figures["parts"].values())
    assert figures["peak_bytes"] > 2**20
    for part in (figures["machine"], f"torch {torch.__version__}", "float32", "tokens/s", figures["commit"]):
        assert part in figures["line"]


def test_without_its_files_a_translation_is_measured_on_random_ids(tiny: Path) -> None:
    recipe = recipes.load(tiny, ["corpus.train={type: files, src: nowhere.de, tgt: nowhere.en}"])
    with subject(recipe) as trainer:
        assert isinstance(trainer.task, RandomPairs)
        (batch,) = trainer.task.batches(1)
        assert batch.src.min() == 0 or batch.src_mask.all()
        assert max(batch.src.shape[1], batch.tgt_in.shape[1]) * len(batch) <= 256
        loss, _, tokens = trainer.train_step(1)
        assert loss.isfinite()
        assert tokens == batch.num_tokens + batch.num_src_tokens


def test_other_tasks_are_measured_on_their_own_corpora_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.experiments.bench.products.PEAK_SIZES", {"cpu": (64,)})
    recipe = recipes.load(TEXTS, ["training.batch_tokens=128", "corpus.crop=null", "device=cpu"])
    found = bench(recipe, steps=2)
    assert 0 < found.fill <= 1
    with raises_error(Error.WRONG_TASK):
        bench(recipe, synthetic=True)


def test_a_step_without_a_finite_loss_is_one_line(tiny: Path) -> None:
    recipe = recipes.load(tiny)
    schedule = {"training": replace(recipe.training, schedule=replace(recipe.training.schedule, lr=1e30))}
    with raises_error(Error.DIVERGED):
        bench(replace(recipe, **schedule), steps=3, synthetic=True)
