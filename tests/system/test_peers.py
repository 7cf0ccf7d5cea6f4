"""The scripts that measure Dragoman beside other toolkits, in small, where no other environment is needed."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.corpora import embedded

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


def script(name: str, *arguments: str, data: Path) -> str:
    command = [sys.executable, str(PEERS / name), *arguments]
    environment = {**os.environ, "DRAGOMAN_DATA": str(data)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has a corpus under the names of the recipe's, and `corpus`, which is made of it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "multi30k-tok").mkdir()
    for split, name, size in (("train", "train", 3_000), ("valid", "val", 30)):
        for place, language in enumerate(("de", "en")):
            lines = "".join(f"{pair[place]}\n" for pair in embedded.sentences("de-en", split, size, 1))
            path = folder / "multi30k-tok" / f"{name}.lc.norm.tok.{language}.gz"
            path.write_bytes(gzip.compress(lines.encode()))
    script("prepare.py", str(folder / "corpus"), data=folder)
    return folder


@pytest.mark.parametrize("name", ["dragoman", "torch"])
def test_the_clock_ends_a_training(name: str, data: Path) -> None:
    said = script(
        f"train_{name}.py", str(data / "corpus"), "small", "float32", "--warm-up", "1", "--steps", "3", data=data
    )
    result = json.loads(said.split("RESULT ")[1])
    assert result["steps"] == 3
    assert result["real_tokens"] > 3 * 1_500
    assert result["padded_tokens"] >= result["real_tokens"]


def test_they_have_the_same_batches(data: Path) -> None:
    """Both trained on the same first rows: real tokens of the same steps are equal."""
    arguments = [str(data / "corpus"), "small", "float32", "--warm-up", "0", "--steps", "2"]
    results = [
        json.loads(script(f"train_{name}.py", *arguments, data=data).split("RESULT ")[1])
        for name in ("dragoman", "torch")
    ]
    assert results[0]["real_tokens"] == results[1]["real_tokens"]
