"""Each family learns the notes' toy tasks through the command line: every unseen sequence right, whatever the seed."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

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
