"""One real process for each promise of docs/promises.md, held to what this process does.

tests/system holds them to many more cases.
"""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import dragoman
from dragoman.cli.main import app

KILLED = Path(__file__).parent.parent / "system" / "killed.py"
RECIPE = """
task: translation
corpus:
  src_lang: de
  tgt_lang: en
  train: {type: demo, split: train, size: 400}
  valid: {type: demo, split: valid, size: 40}
  doctor: skip
tokenizer: {type: words}
model: {type: transformer, d_model: 32, num_heads: 2, d_ff: 64, num_encoder_layers: 1, num_decoder_layers: 1}
training:
  max_steps: 20
  batch_tokens: 512
  schedule: {type: linear, lr: 5.0e-3, warmup_steps: 5}
  validate_every: 10
decoding: {max_length_ratio: 1.0, max_length_extra: 5}
device: cpu
"""


def python(*arguments: object, cwd: Path, exit_code: int = 0, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd, input=text, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == exit_code, done.stderr
    return done.stdout


def here(*arguments: object, cwd: Path, text: str = "") -> str:
    """What a command of Dragoman prints that runs in this process, which saves two seconds."""
    stdin, stdout = cwd / "stdin", cwd / "stdout"
    stdin.write_text(text, encoding="utf-8")
    with (
        stdin.open(encoding="utf-8") as typed,
        stdout.open("w", encoding="utf-8") as printed,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(cwd)
        patch.setattr(sys, "stdin", typed)
        patch.setattr(sys, "stdout", printed)
        assert app([str(argument) for argument in arguments], standalone_mode=False) in (None, 0)
    return stdout.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run in `run`."""
    folder = tmp_path_factory.mktemp("promises")
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    here("train", "recipe.yaml", "run_dir=run", cwd=folder)
    return folder


def checkpoints(run: Path) -> dict[str, str]:
    files = [path for path in (run / "checkpoints").rglob("*") if path.is_file()]
    return {str(path.relative_to(run)): sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_killed_run_ends_in_the_same_bytes(folder: Path) -> None:
    in_a_save = '{"in": "save", "count": 1, "operation": 3}'
    python(KILLED, in_a_save, "train", "recipe.yaml", "run_dir=killed", cwd=folder, exit_code=-9)
    here("train", "recipe.yaml", "run_dir=killed", cwd=folder)
    assert checkpoints(folder / "killed") == checkpoints(folder / "run")


def test_a_translation_does_not_depend_on_its_batch(folder: Path) -> None:
    lines = ["ich möchte ein bier", "der hund", "", "das kind sieht den kleinen hund und die frau", "die katze schläft"]
    alone = [here("translate", "run", cwd=folder, text=f"{lines[3]}\n")]
    out = python("-m", "dragoman", "translate", "run", cwd=folder, text="".join(f"{line}\n" for line in lines))
    assert out.splitlines(keepends=True)[3:4] == alone


def test_every_door_gives_the_same_answer(folder: Path) -> None:
    texts = ["ICH MÖCHTE EIN BIER", "ich möchte ein bier. Die katze schläft.", "", "der {hund} schläft ", "12 + 30"]
    (folder / "doors.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    here("translate", "run", "doors.txt", "-o", "doors.en.txt", cwd=folder)
    lines = python("-m", "dragoman", "translate", "run", cwd=folder, text="".join(f"{text}\n" for text in texts))
    assert lines == (folder / "doors.en.txt").read_text(encoding="utf-8")
    assert "".join(f"{text}\n" for text in dragoman.load(folder / "run").translate(texts)) == lines


def test_an_export_translates_the_same(folder: Path) -> None:
    """Greedily: with a beam CTranslate2 stops elsewhere, and is held to scores and BLEU."""
    here("export", "run", "exported", "--to", "ctranslate2", cwd=folder)
    lines = "ich möchte ein bier\nder hund\n\ndas kind sieht den kleinen hund und die frau\n"
    command = ("translate", "run", "--beam-size", 1)
    ours = here(*command, cwd=folder, text=lines)
    theirs = python("-m", "dragoman", *command, "--engine", "ctranslate2", cwd=folder, text=lines)
    assert theirs == ours


def test_two_processes_train_to_the_bytes_of_one(folder: Path) -> None:
    changes = ("training.micro_batches=2", "training.batch_tokens=256")
    here("train", "recipe.yaml", "run_dir=by1", *changes, cwd=folder)
    python("-m", "dragoman", "train", "recipe.yaml", "run_dir=by2", *changes, "--processes", 2, cwd=folder)
    assert checkpoints(folder / "by1") == checkpoints(folder / "by2")


def test_shards_of_a_bulk_translation_make_the_bytes_of_one_command(folder: Path) -> None:
    text = "ich möchte ein bier\nder hund\n\n" * 7
    (folder / "lines.txt").write_text(text, encoding="utf-8")
    bulk = ("translate", "run", "lines.txt", "--bulk", "-o", "out")
    python("-m", "dragoman", *bulk, "--shard", "2/2", cwd=folder)
    here(*bulk, "--shard", "1/2", cwd=folder)
    assert (folder / "out" / "lines.txt").read_text() == here("translate", "run", cwd=folder, text=text)
