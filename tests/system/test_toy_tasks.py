"""Small recipes do what they say, through the command line: toy tasks, "Why do we work?", Multi30k word by word."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dragoman.corpora import embedded
from dragoman.tasks import recipes

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["copy", "reverse", "sort", "copy-lstm", "reverse-lstm", "sort-lstm"])
def test_every_unseen_sequence_is_right(recipe: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1, 10**6)
    print(f"seed {seed}")  # pytest shows it when the test fails
    splits = [f"corpus.{split}.seed={seed}" for split in ("train", "valid", "test.test")]
    command = [sys.executable, "-m", "dragoman"]
    settings = [*splits, "corpus.test.test.size=200", f"seed={seed}", "run_dir=run"]
    subprocess.run([*command, "train", RECIPES / f"toy-{recipe}.yaml", *settings], cwd=tmp_path, check=True)
    said = subprocess.run([*command, "evaluate", "run", "--json"], cwd=tmp_path, check=True, stdout=subprocess.PIPE)
    assert json.loads(said.stdout)["test"]["exact_match"] == 100.0


WHY, THEY = "Why do we work?", "Why do they work?"


def test_the_recipe_says_how_often_its_sentences_are_in_training() -> None:
    times = Counter(source for source, _ in embedded.sentences("en-zh", "train"))
    assert (times[WHY], times[THEY]) == (21, 0)
    text = (RECIPES / "why-en-zh.yaml").read_text(encoding="utf-8")
    assert "21 times over" in text
    assert all(sentence in text for sentence in (WHY, THEY))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_why_do_we_work_is_right_character_by_character(seed: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman"]
    settings = ["run_dir=run", f"seed={seed}", "device=cpu"]
    subprocess.run([*command, "train", RECIPES / "why-en-zh.yaml", *settings], cwd=tmp_path, check=True)
    done = subprocess.run(
        [*command, "translate", "run"], cwd=tmp_path, check=True, input=f"{WHY}\n{THEY}\n", capture_output=True,
        encoding="utf-8",
    )  # fmt: skip
    assert done.stdout.splitlines() == ["为什么要工作？", "他们为什么工作？"]


def test_multi30k_word_by_word_lowers_its_rate_and_stops(multi30k: Path, tmp_path: Path) -> None:
    """Few steps on made-up sentences under the names of Multi30k's files."""
    recipe = recipes.load(RECIPES / "multi30k-en-de-words.yaml")
    assert (recipe.training.schedule.type, recipe.training.clip_norm, recipe.training.patience) == ("plateau", 1.0, 8)
    settings = [
        "run_dir=run", "device=cpu", "model.d_model=32", "model.num_heads=2", "model.d_ff=64", "training.max_steps=200",
        "model.num_encoder_layers=1", "model.num_decoder_layers=1", "training.validate_every=4",
        "training.schedule={type: plateau, lr: 1.0, warmup_steps: 0, factor: 0.8, patience: 1}",
        "training.patience=3", "training.log_every=4",
    ]  # fmt: skip
    if importlib.util.find_spec("spacy") is None:  # the extra is not installed: Dragoman's own word boundaries
        settings += ["tokenizer.src.rules=rule", "tokenizer.tgt.rules=rule"]
    command = [sys.executable, "-m", "dragoman", "train", RECIPES / "multi30k-en-de-words.yaml", *settings]
    environment = {**os.environ, "DRAGOMAN_DATA": str(multi30k), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in log]
    rates = [event["lr"] for event in events if event["event"] == "train"]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1.0 > rates[-1]  # lowered where nothing had got better
    assert max(event.get("step", 0) for event in events) < 200  # patience ended it
    tokenizers = {path.parent.name for path in (tmp_path / "run/tokenizer").rglob("*") if path.is_file()}
    assert {"src", "tgt"} <= tokenizers  # a vocabulary for each side
