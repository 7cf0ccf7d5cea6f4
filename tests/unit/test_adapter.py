"""Adapters: corrections that begin as nothing, are saved alone, and are merged into their base for everything else."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from tests.scripts import script
from tests.unit.test_init_from import FIRST, SECOND, settings
from torch import nn

from dragoman import config
from dragoman.config import parse
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.languages.codes import name_of
from dragoman.nn import lora
from dragoman.runs import adapter, checkpoint
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.state import Server
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.translation.job import TranslationJob

LINES = ["eins zwei", "drei vier", "zwei", "vier drei eins"]


@pytest.fixture(scope="module")
def only_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("only")
    recipes.run(parse(TranslationRecipe, settings(folder, "base", *FIRST)))
    return folder / "base"


@pytest.fixture
def base(tmp_path: Path, only_base: Path) -> Path:
    """A copy for each test, as some move it."""
    return Path(shutil.copytree(only_base, tmp_path / "base"))


def adapter_settings(base: Path, name: str = "adapter", *changes: str) -> dict[str, Any]:
    data = settings(base.parent, name, *FIRST)
    data["tokenizer"] = {"type": "reuse", "run": str(base)}
    data["training"]["schedule"]["lr"] = 0.1
    return config.override(data, [f"init_from={base}", "adapter.r=2", *changes])


def trained(base: Path, name: str = "adapter", *changes: str) -> Path:
    return recipes.run_to_end(parse(TranslationRecipe, adapter_settings(base, name, *changes))).run_dir


def logits(run: Path, which: str = "best") -> torch.Tensor:
    model = SearchTranslator.load(run, which=which, device="cpu").model
    src = torch.tensor([[4, 5, 6, 3]])
    return model(src, src > 0, torch.tensor([[2, 4, 5]]))


def test_an_adapter_that_is_not_trained_changes_nothing(base: Path) -> None:
    job = TranslationJob(parse(TranslationRecipe, adapter_settings(base)))
    job.prepare()
    model = job.training_step().model.eval()
    src = torch.tensor([[4, 5, 6, 3]])
    before = logits(base)
    assert torch.equal(model(src, src > 0, torch.tensor([[2, 4, 5]])), before)
    assert {name.rpartition(".lora_")[2] for name, _ in model.named_parameters()} == {"A.weight", "B.weight"}


def test_checkpoints_hold_the_adapter_alone_and_translate_merged(base: Path) -> None:
    run = trained(base)
    path = checkpoint.select(run)
    own, weights = checkpoint.load_group(path, "averaged"), checkpoint.load_inference_weights(checkpoint.select(base))
    assert own.keys().isdisjoint(weights)
    assert checkpoint.adapter_of(path) == {"base": checkpoint.inference_digest(checkpoint.select(base)), "scale": 8.0}
    found = checkpoint.load_inference_weights(path)
    changed = {name for name in found if not torch.equal(found[name], weights[name])}
    assert changed == {name.replace(adapter.A, ".weight") for name in own if name.endswith(adapter.A)}
    name = min(changed)
    layer = name.removesuffix(".weight")
    b, a = own[layer + adapter.B], own[layer + adapter.A]
    assert torch.allclose(found[name], weights[name] + 8.0 * b @ a)
    assert not torch.equal(logits(run), logits(base))
    assert checkpoint.inference_digest(path) != checkpoint.inference_digest(checkpoint.select(base))


def test_the_trained_model_and_the_merged_one_compute_the_same(base: Path) -> None:
    run = trained(base, "adapter", "training.averaging.type=none", "adapter.lora_dropout=0.5")
    job = TranslationJob(parse(TranslationRecipe, adapter_settings(base, "again", "adapter.lora_dropout=0.5")))
    job.prepare()
    model = job.training_step().model.eval()
    checkpoint.load_weights(model, checkpoint.load_group(checkpoint.select(run, "last"), "model"), "adapter")
    src = torch.tensor([[4, 5, 6, 3]])
    assert torch.allclose(model(src, src > 0, torch.tensor([[2, 4, 5]])), logits(run, "last"), atol=1e-5)


def test_training_goes_on_from_the_adapter(base: Path) -> None:
    trained(base, "whole", "training.max_steps=6")
    half = parse(TranslationRecipe, adapter_settings(base, "half", "training.max_steps=6"))
    recipes.run(half, watch=lambda trainer: setattr(trainer, "stop_when", lambda step: step == 2))
    recipes.run_to_end(half)
    one, other = (checkpoint.select(base.parent / name, "last") for name in ("whole", "half"))
    for file in ("model.safetensors", "optimizer.safetensors", "averaged.safetensors", "state.json"):
        assert (one / file).read_bytes() == (other / file).read_bytes(), file


def test_an_adapter_of_an_adapter_and_a_run_that_begins_with_one(base: Path) -> None:
    first = trained(base)
    second = trained(first, "second")
    assert not torch.equal(logits(second), logits(first))
    whole = trained(second, "whole", "adapter=null")
    assert checkpoint.adapter_of(checkpoint.select(whole)) is None
    shutil.rmtree(base)
    assert logits(whole).isfinite().all()
    with raises_error(Error.MISSING_FILE, str(first)):
        logits(second)


def test_a_base_may_be_moved_with_its_adapter_and_is_missed_else(base: Path) -> None:
    run = trained(base)
    before = logits(run)
    (base.parent / "elsewhere").mkdir()
    for one in (base, run):
        one.rename(base.parent / "elsewhere" / one.name)
    moved = base.parent / "elsewhere" / "adapter"
    assert torch.equal(logits(moved), before)
    (moved.parent / "base").rename(base.parent / "other")
    with raises_error(Error.MISSING_FILE, str(moved)):
        logits(moved)
    again = adapter_settings(base.parent / "other", "elsewhere/adapter", "training.max_steps=5")
    for side in ("src", "tgt"):  # the text and the tokenizer lie where they lay
        for split in ("train", "valid"):
            again["corpus"][split][side] = again["corpus"][split][side].replace("elsewhere/adapter", "adapter")
    recipes.run(parse(TranslationRecipe, again))
    assert logits(moved).isfinite().all()


def test_a_base_that_was_trained_again_is_told(base: Path) -> None:
    run = trained(base)
    shutil.rmtree(base)
    recipes.run(parse(TranslationRecipe, settings(base.parent, "base", *FIRST) | {"seed": 2}))
    with raises_error(Error.CHANGED, str(run)):
        logits(run)
    with raises_error(Error.CHANGED, str(run)):
        trained(base, "adapter", "training.max_steps=9")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (["init_from=null"], Error.WRONG_SETTING),
        (["adapter.r=0"], Error.WRONG_SETTING),
        (["adapter.target_modules=[query_proj, FAKE]"], Error.UNKNOWN_NAME),
        (["adapter.target_modules=[output]"], Error.UNKNOWN_NAME),
        (["adapter.target_modules=[embedding]"], Error.UNKNOWN_NAME),
        (["training.freeze=[embeddings]"], Error.WRONG_SETTING),
        (["adapter.use_dora=true"], Error.UNKNOWN_SETTING),
        (["model.d_model=16"], Error.MISMATCH),
    ],
)
def test_what_does_not_go_with_an_adapter_is_refused(base: Path, changes: list[str], code: Error) -> None:
    with raises_error(code):
        trained(base, "adapter", *changes)


def test_another_vocabulary_is_refused(base: Path) -> None:
    data = settings(base.parent, "other", *SECOND)
    with raises_error(Error.MISMATCH):
        recipes.run(parse(TranslationRecipe, config.override(data, [f"init_from={base}", "adapter.r=2"])))


def test_targets_are_the_ends_of_names(base: Path) -> None:
    run = trained(
        base, "adapter", "adapter.target_modules=[self_attention.query_proj, decoder_layers.0.feed_forward.expand]"
    )
    own = checkpoint.load_group(checkpoint.select(run), "model")
    assert sorted({name.rpartition(".lora_")[0] for name in own}) == [
        "decoder_layers.0.feed_forward.expand",
        "decoder_layers.0.self_attention.query_proj",
        "encoder_layers.0.self_attention.query_proj",
    ]


def test_a_correction_survives_the_merge_in_bfloat16() -> None:
    """Products of bfloat16 factors, rounded twice, lose what one rounding keeps."""
    weight, a, b = torch.randn(64, 64).bfloat16(), torch.randn(4, 64).bfloat16(), torch.randn(64, 4).bfloat16() * 0.01
    exact = weight.double() + 2 * b.double() @ a.double()
    assert torch.equal(adapter.merged(weight, a, b, 2.0), exact.bfloat16())


def test_a_copy_shares_all_but_the_factors(base: Path) -> None:
    model = SearchTranslator.load(base, device="cpu").model
    copies = [lora.sharing(model) for _ in range(2)]
    for one in copies:
        lora.add_lora(one, ["encoder_layers.0.self_attention.query_proj"], 2, 1.0)
    held = {tensor.data_ptr() for tensor in model.parameters()}
    for one in copies:
        own = {name for name, tensor in one.named_parameters() if tensor.data_ptr() not in held}
        assert {name.rpartition(".lora_")[0] for name in own} == {"encoder_layers.0.self_attention.query_proj"}
    assert isinstance(model.get_submodule("encoder_layers.0.self_attention.query_proj"), nn.Linear)


def test_adapters_of_one_base_are_served_over_its_tensors(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Service, "_warm_up", lambda self, run: None
    )  # which refuses models that say nothing, as these do
    runs = [trained(base, name, f"seed={seed}") for seed, name in enumerate(["one", "law_Texts2"], start=3)]
    server = Server(Settings([*runs, base], "cpu", threads=1))
    server.start()
    try:
        server.loading.join()
        assert server.problem is None
        assert set(server.service.runs) == {("de", "en"), ("de", "en-x-one"), ("de", "en-x-law-texts2")}
        assert sorted(map(name_of, server.service.languages()["de"])) == [
            "English", "English (law-texts2)", "English (one)",
        ]  # fmt: skip
        models = {pair[1]: run.own.model for pair, run in server.service.runs.items()}
        held = {tensor.data_ptr() for tensor in models["en"].parameters()}
        for name, run in zip(["en-x-one", "en-x-law-texts2"], runs, strict=True):
            own = {key for key, tensor in models[name].named_parameters() if tensor.data_ptr() not in held}
            assert own == set(checkpoint.load_group(checkpoint.select(run), "model"))
            src = torch.tensor([[4, 5, 6, 3]])
            with torch.inference_mode():
                found = models[name](src, src > 0, torch.tensor([[2, 4, 5]]))
                assert torch.allclose(found, logits(run), atol=1e-5)
        server.reload()
        assert len(server.service.runs) == 3
    finally:
        server.stop()


def test_the_benchmark_has_a_row_for_each_way(base: Path, tmp_path: Path) -> None:
    benchmark = script("benchmarks/adapters.py")
    for number, side in enumerate(("de", "en")):
        (tmp_path / f"new.{side}").write_text("\n".join(SECOND[number].splitlines() * 20) + "\n", encoding="utf-8")
    files = [str(tmp_path / "new.de"), str(tmp_path / "new.en")]
    found = benchmark.table(benchmark.parsed([
        str(base), str(tmp_path / "out"), "--src", files[0], "--tgt", files[1], "--valid", *files,
        "--test", f"new:{files[0]}:{files[1]}", "--lines", "2", "--seeds", "1", "--ranks", "2",
        "--set", "training.max_steps=2", "training.validate_every=2", "training.schedule.warmup_steps=1",
    ]))  # fmt: skip
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in found.splitlines()]
    assert [row[0] for row in rows] == ["", "---", "the base", "all weights", "LoRA, r = 2"]
    whole, small = (int(row[2].replace(",", "")) for row in rows[3:])
    assert whole > small > 0
