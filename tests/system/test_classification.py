"""Classifiers through the real command line: train, evaluate, label lines and pictures, and be refused clearly."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

RECIPE = Path(__file__).parents[2] / "recipes/language-id-demo.yaml"
SHORTER = ["training.max_steps=120", "training.validate_every=60", "device=cpu", "run_dir=run"]


def dragoman(*arguments: object, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, input=text, capture_output=True, text=True, encoding="utf-8", check=False)


def succeed(*arguments: object, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    done = dragoman(*arguments, cwd=cwd, text=text)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's language identifier in `run`."""
    folder = tmp_path_factory.mktemp("classifier")
    done = succeed("train", RECIPE, *SHORTER, cwd=folder)
    for heading in ("1 read examples", "7 train", "best validation accuracy", "dragoman predict run"):
        assert heading in done.stderr
    return folder


def test_the_languages_are_told_apart(folder: Path) -> None:
    scores = json.loads(succeed("evaluate", "run", "--json", cwd=folder).stdout)["test"]
    assert scores["accuracy"] > 99
    assert scores["labels"] == ["de", "en", "zh"]
    (folder / "texts").write_text("Das Kind schläft.\nThe child sleeps.\n孩子在睡觉。\n", encoding="utf-8")
    (folder / "labels").write_text("de\nen\nde\n", encoding="utf-8")
    table = succeed("evaluate", "run", "--src", "texts", "--ref", "labels", cwd=folder).stdout.splitlines()
    assert table[0].split() == ["examples", "accuracy", "macro", "F1"]
    assert table[1].split()[:3] == ["texts", "3", "66.67"]
    assert table[3].split()[:4] == ["de", "100.00", "50.00", "66.67"]


def test_lines_in_labels_out(folder: Path) -> None:
    lines = ["Das Kind schläft.", "", "The child sleeps. \u2028 x", "   ", "孩子在睡觉。", "word " * 500, "я"]
    done = succeed("predict", "run", cwd=folder, text="\n".join(lines))
    labels = done.stdout.split("\n")
    assert labels[:5] == ["de", "", "en", "", "zh"]
    assert len(labels) == len(lines) + 1
    shown = succeed("predict", "run", "--probabilities", "--top", 2, cwd=folder, text="Guten Morgen\n\n").stdout
    assert shown.split("\n")[1:] == ["", ""]
    first, sure, second, rest = shown.split("\n")[0].split("\t")
    assert first == "de"
    assert second in ("en", "zh")
    assert 0.5 < float(sure) <= 1 - float(rest) + 1e-4
    (folder / "some.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    succeed("predict", "run", "-i", "some.txt", "-o", "out.jsonl", "--json", cwd=folder)
    records = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record["labels"][0]["label"] if record["labels"] else "" for record in records] == labels[:-1]


def test_the_run_says_what_it_is_for(folder: Path) -> None:
    for arguments, message in [
        (["translate", "run"], "a run for classification, not for translation: use it with `dragoman predict run`"),
        (["predict", "run", "a.png"], "run labels texts, line by line: give a.png with -i"),
    ]:
        done = dragoman(*arguments, cwd=folder)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert message in done.stderr.strip().splitlines()[-1]


def test_pictures_are_labelled(tmp_path: Path) -> None:
    """A few steps on made-up pictures: bright at the top or at the bottom."""
    from matplotlib.image import imsave

    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 200).astype(np.uint8)
    pixels = rng.integers(0, 60, (200, 8, 8)).astype(np.uint8)
    for image, label in zip(pixels, labels, strict=True):
        image[4 * label : 4 * label + 4] += 150
    for name, values in (("images", pixels), ("labels", labels)):
        header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
        (tmp_path / f"{name}-ubyte").write_bytes(header + values.tobytes())
    (tmp_path / "recipe.yaml").write_text(
        """
task: image_classification
corpus:
  train: {type: idx, images: images-ubyte, labels: labels-ubyte}
  label_names: {"0": top, "1": bottom}
model: {type: vit, image_size: 8, d_model: 16, num_heads: 2, d_ff: 16, num_layers: 1, dropout: 0.0}
training:
  max_steps: 40
  batch_tokens: 160
  validate_every: 40
  schedule: {type: linear, lr: 0.01, warmup_steps: 2}
run_dir: run
device: cpu
""",
        encoding="utf-8",
    )
    succeed("train", "recipe.yaml", cwd=tmp_path)
    imsave(tmp_path / "top.png", np.repeat(np.array([[1.0], [0.0]]), 20, axis=0).repeat(30, axis=1), cmap="gray")
    out = succeed("predict", "run", "top.png", "images-ubyte", cwd=tmp_path).stdout.splitlines()
    assert out[0] == "top.png\ttop"
    expected = [f"images-ubyte:{row}\t{['top', 'bottom'][label]}" for row, label in enumerate(labels, start=1)]
    assert sum(a == b for a, b in zip(out[1:], expected, strict=True)) > 190
