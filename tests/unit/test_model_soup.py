"""The mean of several runs: a run like any other, of what began alike alone."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.errors import raises_error

import dragoman
from dragoman import config
from dragoman.analysis.report import write_report
from dragoman.cli import main as cli
from dragoman.errors import Error
from dragoman.experiments.model_soup import average
from dragoman.runs import checkpoint
from dragoman.tasks import recipes


def recipe(folder: Path, run: str, **settings: Any) -> Any:
    """A translation recipe on four small files."""
    for side, text in (("de", "eins zwei\ndrei\nvier fünf\n"), ("en", "one two\nthree\nfour five\n")):
        (folder / f"text.{side}").write_text(text, encoding="utf-8")
    files = {"type": "files", "src": str(folder / "text.de"), "tgt": str(folder / "text.en")}
    data = {
        "task": "translation",
        "run_dir": str(folder / run),
        "workers": 1,
        "device": "cpu",
        "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files},
        "tokenizer": {"type": "whitespace"},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8, "dropout": 0.1},
        "training": {"max_steps": 3, "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 1}},
    }
    changes = [f"{key}={value}" for key, value in settings.items()]
    return config.parse(recipes.TranslationRecipe, config.override(data, changes))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `first`, and `a` and `b`, which began with its weights; `c` has other heads."""
    folder = tmp_path_factory.mktemp("runs")
    recipes.run(recipe(folder, "first"))
    begun = {"init_from": folder / "first", "tokenizer": f"{{type: reuse, run: {folder / 'first'}}}"}
    recipes.run(recipe(folder, "a", seed=2, **begun))
    recipes.run(recipe(folder, "b", seed=3, **begun, **{"model.dropout": 0.3}))
    recipes.run(recipe(folder, "c", **{"model.num_heads": 4}))
    return folder


def weights(run: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load_inference_weights(checkpoint.select(run))


def test_it_is_the_mean_and_a_run_like_any_other(runs: Path, tmp_path: Path) -> None:
    out = average([runs / "a", runs / "b"], tmp_path / "new" / "mean")
    a, b, both = weights(runs / "a"), weights(runs / "b"), weights(out)
    assert any(not torch.equal(a[name], b[name]) for name in a)
    for name in a:
        torch.testing.assert_close(both[name], (a[name] + b[name]) / 2)
        assert both[name].dtype == a[name].dtype
    assert len(dragoman.load(str(out)).translate(["eins zwei", "drei"])) == 2
    assert recipes.of_run(out).run_dir == str(out)
    state = checkpoint.load_state(checkpoint.select(out))
    assert [Path(path).parents[1].name for path in state[checkpoint.MEAN_OF]] == ["a", "b"]
    assert "mean" in write_report(out).read_text(encoding="utf-8")


def test_of_equal_runs_it_is_the_run(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "a", tmp_path / "again")
    out = average([runs / "a", tmp_path / "again", runs / "a"], tmp_path / "mean")
    assert all(torch.equal(tensor, weights(out)[name]) for name, tensor in weights(runs / "a").items())


def test_it_is_not_trained_on_but_begun_with(runs: Path, tmp_path: Path) -> None:
    out = average([runs / "a", runs / "b"], tmp_path / "mean")
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with raises_error(Error.UNSUPPORTED, "mean"):
        recipes.run(config.parse(recipes.TranslationRecipe, config.to_dict(recipes.of_run(out))))
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    begun = recipe(runs, "begun", init_from=out, tokenizer=f"{{type: reuse, run: {out}}}")
    assert recipes.run(begun).outcome.step == 3


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["a"], (Error.TOO_FEW,)),
        (["a", "c"], (Error.MISMATCH, "c")),
        (["a", "nowhere"], (Error.NOT_A_RUN, "nowhere")),
    ],
)
def test_what_has_no_mean_is_refused(runs: Path, tmp_path: Path, names: list[str], error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        average([runs / name for name in names], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_other_vocabularies_and_a_folder_that_is_there_are_refused(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(runs / "b", other)
    vocabulary = next(path for path in (other / "tokenizer").rglob("*.json") if "zwei" in path.read_text("utf-8"))
    vocabulary.write_text(vocabulary.read_text("utf-8").replace("zwei", "zwo"), encoding="utf-8")
    with raises_error(Error.MISMATCH, "other"):
        average([runs / "a", other], tmp_path / "mean")
    with raises_error(Error.ALREADY_THERE, "other"):
        average([runs / "a", runs / "b"], other)


def test_on_the_command_line(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mean"
    monkeypatch.setattr(sys, "argv", ["dragoman", "average", str(runs / "a"), str(runs / "b"), "-o", str(out)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    told = capsys.readouterr()
    assert (stopped.value.code or 0, told.out, told.err) == (0, "", f"written: {out}\n")
    assert (out / "config.yaml").is_file()
