"""The speed run's script: its recipe builds, its arithmetic is that of its rules, and it runs on the demo corpus."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.scripts import script

from dragoman.tasks import recipes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def speedrun() -> ModuleType:
    return script("speedrun/run.py")  # type: ignore[no-any-return]


def test_the_recipe_builds_and_scores_one_test_set_by_the_metric_of_the_rules() -> None:
    recipe: Any = recipes.load(ROOT / "speedrun/recipe.yaml")
    assert recipes.check(recipe) > 1e6
    assert list(recipe.corpus.test) == ["test_2016_flickr"]
    assert (recipe.evaluation.tokenize, recipe.decoding.beam_size) == ("none", 5)


def test_a_run_counts_with_its_whole_time_for_what_its_final_score_reaches(speedrun: ModuleType) -> None:
    assert speedrun.seconds_to(600.04, 41.0) == {"38": 600.0, "40": 600.0, "41": 600.0, "42": None}
    assert speedrun.seconds_to(600.0, 37.99) == {"38": None, "40": None, "41": None, "42": None}


@pytest.mark.parametrize(
    ("seconds", "median"),
    [([3.0, 1.0, 2.0], 2.0), ([None, 1.0, 2.0], 2.0), ([None, None, 2.0], None), ([5.0], 5.0), ([1.0, None], None)],
)
def test_a_seed_that_stays_below_takes_for_ever(
    speedrun: ModuleType, seconds: list[float | None], median: float | None
) -> None:
    results = [{"seconds_to": {"41": value}} for value in seconds]
    assert speedrun.median_seconds(results, 41.0) == median


TINY = [
    "model.d_model=32", "model.num_heads=2", "model.d_ff=64", "model.num_encoder_layers=1",
    "model.num_decoder_layers=1", "training.batch_tokens=512", "training.max_steps=20", "training.validate_every=10",
    "training.schedule={type: linear, lr: 0.005, warmup_steps: 5}", "corpus.valid.size=10", "corpus.test.test.size=20",
]  # fmt: skip


def arguments(folder: Path, *more: str) -> list[str]:
    recipe = str(ROOT / "recipes/demo.yaml")
    places = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    return ["--recipe", recipe, *places, "--seeds", "5", *TINY, *more]


def test_it_trains_scores_and_writes_a_result(
    speedrun: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    speedrun.main(arguments(tmp_path))
    printed = capsys.readouterr().out.splitlines()
    [path] = (tmp_path / "results").iterdir()
    assert path.name.endswith("-seed5.json")
    result = json.loads(path.read_text(encoding="utf-8"))
    assert [point["step"] for point in result["validations"]] == [10, 20]
    assert 0 < result["training_seconds"] < result["seconds"]
    assert 0 <= result["validations"][0]["seconds"] <= result["validations"][1]["seconds"] <= result["seconds"] + 1
    assert result["test"]["signatures"]["bleu"].startswith("nrefs:1")
    assert (result["settings"]["seed"], result["seed"], result["max_steps"]) == (5, 5, 20)
    assert {"commit", "machine", "versions", "command", "threads"} <= result.keys()
    assert any("step 10" in line and line.lstrip()[0].isdigit() for line in printed)  # with the seconds in front
    table = [line for line in (ROOT / "speedrun/README.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert printed[-1].count("|") == table[0].count("|")
    with pytest.raises(SystemExit, match="is there already"):
        speedrun.main(arguments(tmp_path))


def test_a_trial_leaves_the_test_set_alone_and_writes_nothing(
    speedrun: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run_seed(recipe: Path, seed: int, run_dir: Path, changes: list[str]) -> dict[str, Any]:
        asked.append((seed, run_dir, recipes.load(recipe, changes)))
        return {"seed": seed, "validations": [], "test": None, "seconds": 1.0}

    monkeypatch.setattr(speedrun, "run_seed", run_seed)
    speedrun.main(arguments(tmp_path, "--trial", "--seeds", "5,7"))
    assert [(seed, run_dir.name) for seed, run_dir, _ in asked] == [(5, "seed-5"), (7, "seed-7")]
    assert all(recipe.corpus.test == {} and recipe.training.max_steps == 20 for _, _, recipe in asked)
    assert not (tmp_path / "results").exists()


def test_a_training_that_fails_is_no_result(speedrun: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="seed 5: the training ended with code 2"):
        speedrun.main(arguments(tmp_path, "model.num_heads=3"))
    assert not (tmp_path / "results").exists()
