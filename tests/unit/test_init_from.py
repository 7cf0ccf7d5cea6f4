"""Fine-tuning: what is taken from another run, row by row where its vocabulary is another one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.config import parse
from dragoman.errors import Error
from dragoman.runs import checkpoint
from dragoman.tasks import recipes
from dragoman.tasks.fine_tuning import fine_tuning_recipe
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.translation.job import TranslationJob
from dragoman.text.tokenizers.pair import load_tokenizers


def settings(folder: Path, name: str, german: str, english: str, **model: Any) -> dict[str, Any]:
    """A recipe for a tiny run on these lines."""
    for lang, text in (("de", german), ("en", english)):
        (folder / f"{name}.{lang}").write_text(text, encoding="utf-8")
    files = {"type": "files", "src": str(folder / f"{name}.de"), "tgt": str(folder / f"{name}.en")}
    return {
        "run_dir": str(folder / name),
        "device": "cpu",
        "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files},
        "tokenizer": {"type": "whitespace"},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8, "num_encoder_layers": 1,
                  "num_decoder_layers": 1, **model},
        "training": {"max_steps": 3, "validate_every": 3,
                     "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 1}},
    }  # fmt: skip


FIRST = ("eins zwei\ndrei vier\n", "one two\nthree four\n")
SECOND = ("zwei drei fünf\nsechs\n", "two three five\nsix\n")


@pytest.fixture
def first(tmp_path: Path) -> Path:
    recipes.run(parse(TranslationRecipe, settings(tmp_path, "first", *FIRST)))
    return tmp_path / "first"


def begun(data: dict[str, Any], first: Path) -> Any:
    """The model that a run begins with, before its first step."""
    job = TranslationJob(parse(TranslationRecipe, config.override(data, [f"init_from={first}"])))
    job.prepare()
    return job.training_step().model


def test_the_same_vocabulary_takes_every_weight(tmp_path: Path, first: Path) -> None:
    model = begun(settings(tmp_path, "second", *FIRST), first)
    weights = checkpoint.load_inference_weights(checkpoint.select(first))
    assert all(torch.equal(tensor, weights[name]) for name, tensor in checkpoint.weights(model).items())


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_rows_go_to_the_words_that_they_stand_for(tmp_path: Path, position: str) -> None:
    recipes.run(parse(TranslationRecipe, settings(tmp_path, "first", *FIRST, position={"type": position})))
    data = settings(tmp_path, "second", *SECOND, position={"type": position})
    model = begun(data, tmp_path / "first")
    fresh = begun({**data, "run_dir": str(tmp_path / "third")}, tmp_path / "first")  # initialised alike
    old, new = (load_tokenizers(tmp_path / name / "tokenizer").src for name in ("first", "second"))
    weights = checkpoint.load_inference_weights(checkpoint.select(tmp_path / "first"))
    (name,) = (name for name in weights if name.endswith("tokens.embedding.weight"))
    table, before = checkpoint.weights(model)[name], weights[name]
    for word in ("<pad>", "<s>", "</s>", "zwei", "drei", "two", "three"):
        assert torch.equal(table[new.id_of(word)], before[old.id_of(word)]), word
    for word in ("fünf", "six"):
        assert not (table[new.id_of(word)] == before).all(dim=1).any(), word
        assert torch.equal(table[new.id_of(word)], checkpoint.weights(fresh)[name][new.id_of(word)])
    rest = {key for key in weights if key != name}
    assert all(torch.equal(checkpoint.weights(model)[key], weights[key]) for key in rest)


def test_the_run_is_trained_from_there_with_everything_else_fresh(tmp_path: Path, first: Path) -> None:
    data = config.override(settings(tmp_path, "second", *SECOND), [f"init_from={first}"])
    result = recipes.run(parse(TranslationRecipe, data))
    assert result.outcome.step == 3
    assert recipes.of_run(tmp_path / "second").init_from == str(first)
    # Once it has a checkpoint of its own it needs the other run no more.
    first.rename(tmp_path / "gone")
    assert recipes.run(parse(TranslationRecipe, config.override(data, ["training.max_steps=4"]))).outcome.step == 4


def test_another_model_or_no_run_is_refused(tmp_path: Path, first: Path) -> None:
    with raises_error(Error.MISMATCH, "first"):
        begun(settings(tmp_path, "second", *SECOND, d_model=16), first)
    with raises_error(Error.NOT_A_RUN, "nowhere"):
        begun(settings(tmp_path, "third", *SECOND), tmp_path / "nowhere")


@pytest.mark.parametrize("change", [{"d_model": 16}, {"d_ff": 16}, {"num_encoder_layers": 2}])
def test_another_model_is_refused_before_anything_is_written(
    tmp_path: Path, first: Path, change: dict[str, Any]
) -> None:
    data = config.override(settings(tmp_path, "second", *SECOND, **change), [f"init_from={first}"])
    with raises_error(Error.MISMATCH, "first"):
        recipes.run(parse(TranslationRecipe, data))
    assert not (tmp_path / "second").exists()


def test_labels_that_have_nothing_in_common_begin_anew(tmp_path: Path) -> None:
    from torch import nn

    from dragoman.tasks.pretrained import load_pretrained

    run = tmp_path / "old"
    run.mkdir()
    (run / "config.yaml").write_text("task: classification\n")
    head = nn.ModuleDict({"head": nn.Linear(2, 3)})
    old = {name: torch.ones_like(tensor) for name, tensor in checkpoint.weights(head).items()}
    checkpoint.save(run, 1, {"model": old}, {"step": 1, "score": 1.0})
    before = head["head"].weight.clone()
    lines = load_pretrained(head, str(run), {"head": (["a", "b", "c"], ["x", "y", "z"])})
    assert torch.equal(head["head"].weight, before)
    assert any("0 of 3 rows" in line for line in lines)
    load_pretrained(head, str(run), {"head": (["a", "y", "c"], ["x", "y", "z"])})
    assert head["head"].weight[1].tolist() == [1.0, 1.0]
    assert torch.equal(head["head"].weight[0], before[0])


def test_a_run_of_damaged_checkpoints_does_not_begin_with_the_other_run_again(tmp_path: Path, first: Path) -> None:
    data = config.override(settings(tmp_path, "second", *SECOND), [f"init_from={first}", "training.max_steps=3"])
    recipes.run(parse(TranslationRecipe, data))
    for path in checkpoint.list_checkpoints(tmp_path / "second"):
        (path / "state.json").write_text("{}")
    log = (tmp_path / "second/metrics.jsonl").read_bytes()
    with raises_error(Error.DAMAGED, "checkpoints"):
        recipes.run(parse(TranslationRecipe, data))
    assert (tmp_path / "second/metrics.jsonl").read_bytes() == log


@pytest.mark.system
def test_two_files_and_a_run_take_its_model_and_its_tokenizer(tmp_path: Path, first: Path) -> None:
    lines = [(f"eins zwei {number}", f"one two {number}") for number in range(60)]
    for lang, side in (("de", 0), ("en", 1)):
        (tmp_path / f"news.{lang}").write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    files = str(tmp_path / "news.de"), str(tmp_path / "news.en")
    data = fine_tuning_recipe(str(first), *files, str(tmp_path / "news"), languages=("de", "en"))
    assert data["model"]["d_model"] == 8
    own = config.to_dict(recipes.of_run(first))["training"]["schedule"]["lr"]
    assert data["training"]["schedule"]["lr"] == pytest.approx(0.1 * own)
    result = recipes.run(parse(TranslationRecipe, config.override(data, ["training.max_steps=2", "device=cpu"])))
    assert result.outcome.step == 2
    files_of = [
        {path.name: path.read_bytes() for path in (run / "tokenizer").rglob("*.json")}
        for run in (first, tmp_path / "news")
    ]
    assert files_of[0] == files_of[1]
    first.rename(tmp_path / "gone")  # the tokenizer is its own now
    settings_now = parse(TranslationRecipe, config.override(data, ["training.max_steps=3", "device=cpu"]))
    assert recipes.run(settings_now).outcome.step == 3
