"""One real process for each promise of docs/promises.md; tests/system holds them to many more cases."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run in `run`."""
    folder = tmp_path_factory.mktemp("promises")
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    python("-m", "dragoman", "train", "recipe.yaml", "run_dir=run", cwd=folder)
    return folder


def checkpoints(run: Path) -> dict[str, str]:
    files = [path for path in (run / "checkpoints").rglob("*") if path.is_file()]
    return {str(path.relative_to(run)): sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_killed_run_ends_in_the_same_bytes(folder: Path) -> None:
    in_a_save = '{"in": "save", "count": 1, "operation": 3}'
    python(KILLED, in_a_save, "train", "recipe.yaml", "run_dir=killed", cwd=folder, exit_code=-9)
    python("-m", "dragoman", "train", "recipe.yaml", "run_dir=killed", cwd=folder)
    assert checkpoints(folder / "killed") == checkpoints(folder / "run")


def test_a_translation_does_not_depend_on_its_batch(folder: Path) -> None:
    lines = ["ich möchte ein bier", "der hund", "", "das kind sieht den kleinen hund und die frau", "die katze schläft"]
    alone = [python("-m", "dragoman", "translate", "run", cwd=folder, text=f"{lines[3]}\n")]
    out = python("-m", "dragoman", "translate", "run", cwd=folder, text="".join(f"{line}\n" for line in lines))
    assert out.splitlines(keepends=True)[3:4] == alone


def test_every_door_gives_the_same_answer(folder: Path) -> None:
    texts = ["ICH MÖCHTE EIN BIER", "ich möchte ein bier. Die katze schläft.", "", "der {hund} schläft ", "12 + 30"]
    (folder / "doors.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    python("-m", "dragoman", "translate", "run", "doors.txt", "-o", "doors.en.txt", cwd=folder)
    lines = python("-m", "dragoman", "translate", "run", cwd=folder, text="".join(f"{text}\n" for text in texts))
    assert lines == (folder / "doors.en.txt").read_text(encoding="utf-8")
    code = f"import dragoman; print(*dragoman.load('run').translate({texts!r}), sep='\\n')"
    assert python("-c", code, cwd=folder) == lines


def test_an_export_translates_the_same(folder: Path) -> None:
    """Greedily: with a beam CTranslate2 stops elsewhere, and is held to scores and BLEU."""
    python("-m", "dragoman", "export", "run", "exported", "--to", "ctranslate2", cwd=folder)
    lines = "ich möchte ein bier\nder hund\n\ndas kind sieht den kleinen hund und die frau\n"
    command = ("-m", "dragoman", "translate", "run", "--beam-size", 1)
    ours = python(*command, cwd=folder, text=lines)
    theirs = python(*command, "--engine", "ctranslate2", cwd=folder, text=lines)
    assert theirs == ours


def test_two_processes_train_to_the_bytes_of_one(folder: Path) -> None:
    changes = ("training.micro_batches=2", "training.batch_tokens=256")
    for processes in (1, 2):
        command = ("-m", "dragoman", "train", "recipe.yaml", f"run_dir=by{processes}", *changes)
        python(*command, "--processes", processes, cwd=folder)
    assert checkpoints(folder / "by1") == checkpoints(folder / "by2")


def test_shards_of_a_bulk_translation_make_the_bytes_of_one_command(folder: Path) -> None:
    text = "ich möchte ein bier\nder hund\n\n" * 7
    (folder / "lines.txt").write_text(text, encoding="utf-8")
    for shard in ("2/2", "1/2"):
        python("-m", "dragoman", "translate", "run", "lines.txt", "--bulk", "--shard", shard, "-o", "out", cwd=folder)
    assert (folder / "out" / "lines.txt").read_text() == python(
        "-m", "dragoman", "translate", "run", cwd=folder, text=text
    )
