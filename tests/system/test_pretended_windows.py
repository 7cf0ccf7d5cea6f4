"""The command line where what Windows does not have is not there, and files are as they are there."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("pretended_windows.py")
RECIPE = """
corpus:
  src_lang: de
  tgt_lang: en
  train: {type: files, src: "train.de", tgt: "train.en"}
  valid: {type: demo, pair: de-en, split: valid, size: 5}
  test: {test: {type: demo, pair: de-en, split: test, size: 5}}
tokenizer: {type: words}
model: {d_model: 16, num_heads: 2, d_ff: 32, num_encoder_layers: 1, num_decoder_layers: 1}
training: {max_steps: 4, validate_every: 2, batch_tokens: 200, schedule: {type: constant, lr: 0.01}}
device: cpu
"""


def dragoman(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, encoding="utf-8", check=False)


def succeed(folder: Path, *arguments: str, given: str = "") -> str:
    done = dragoman(folder, *arguments, given=given)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_help_of_every_command_is_there(tmp_path: Path) -> None:
    assert "translate" in succeed(tmp_path, "--help")
    code = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "import pretended_windows; pretended_windows.pretend()\n"
        "from dragoman.cli.main import GROUPS, load\n"
        "print(*(load(name).name for names in GROUPS.values() for name in names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert {"train", "serve", "evaluate", "export"} <= set(done.stdout.split())


def test_a_run_is_trained_goes_on_translates_is_scored_and_exported(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RECIPE, encoding="utf-8")
    for side, line in (("de", "ich möchte ein bier {}"), ("en", "i want a beer {}")):
        lines = [line.format(number) + "\n" for number in range(60)]
        (tmp_path / f"train.{side}").write_text("".join(lines), encoding="utf-8")
    succeed(tmp_path, "train", "r.yaml", "--run", "run")
    succeed(tmp_path, "train", "r.yaml", "training.max_steps=6", "--run", "run")
    assert [path.name for path in sorted((tmp_path / "run" / "checkpoints").iterdir())][-1] == "step-00000006"
    assert not list((tmp_path / "run").rglob("*.held"))
    assert len(succeed(tmp_path, "translate", "run", given="ich möchte ein bier 3\n").splitlines()) == 1
    assert "BLEU" in succeed(tmp_path, "evaluate", "run")
    sets = ["--src", "train.de", "--ref", "train.en"] * 3
    names = [word for name in ("wmt14: de/en", "News", "news") for word in ("--name", name)]
    succeed(tmp_path, "evaluate", "run", *sets, *names, "-o", "said")
    assert sorted(path.name for path in (tmp_path / "said").iterdir()) == ["News.en", "news_.en", "wmt14_ de_en.en"]
    succeed(tmp_path, "export", "run", "exported", "--to", "ctranslate2")
    assert (tmp_path / "exported" / "model.bin").is_file()
    files = ["exported", "r.yaml", "run", "said", "train.de", "train.en"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    # OpenNMT/CTranslate2 743, allennlp 4342: files have the same bytes as elsewhere.
    texts = [*(tmp_path / "run").rglob("*"), *(tmp_path / "said").iterdir()]
    endings = {".json", ".jsonl", ".txt", ".yaml", ".md", ".html", ".en"}
    assert not [path for path in texts if path.suffix in endings and b"\r\n" in path.read_bytes()]


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("import fcntl", "ModuleNotFoundError"),
        ("import os; os.pread", "AttributeError"),
        ("import signal; signal.SIGHUP", "AttributeError"),
        ("import os; os.open('.', 0)", "PermissionError"),
        ("import os; os.fsync(os.open('a', os.O_RDONLY))", "OSError"),
        ("import os, pathlib; file = open('a'); pathlib.Path('a').rename('b')", "PermissionError"),
        ("import os, pathlib; file = open('a'); pathlib.Path('a').unlink()", "PermissionError"),
        ("import numpy; held = numpy.memmap('a'); import os; os.replace('a', 'b')", "PermissionError"),
        ("import pathlib; pathlib.Path('c').symlink_to('a')", "PermissionError"),
        ("open('c', 'w').write('ä\\n'); assert open('c', 'rb').read() != b'\\xe4\\r\\n'", "AssertionError"),
        (
            "from pathlib import Path; p = Path('c'); p.write_text('ä\\n'); assert p.read_bytes() != b'\\xe4\\r\\n'",
            "AssertionError",
        ),
        ("import pathlib; pathlib.Path('aux.txt').write_text('')", "OSError"),
        ("import pathlib; pathlib.Path('12:30').mkdir()", "OSError"),
        ("import pathlib; open('c', 'w').close(); pathlib.Path('a').rename('c')", "FileExistsError"),
    ],
)
def test_the_imitation_refuses_what_windows_does(tmp_path: Path, code: str, refusal: str) -> None:
    """Where it did not, the tests above would show nothing."""
    (tmp_path / "a").write_text("some text")
    (tmp_path / "module.py").write_text(f"__name__ = 'dragoman.module'\n{code}\n")
    start = (
        f"import sys; sys.path[:0] = [{str(PROGRAM.parent)!r}, '.']; import numpy, pretended_windows\n"
        "pretended_windows.pretend()\nimport module"
    )
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert f"{refusal}:" in done.stderr or done.stderr.rstrip().endswith(refusal), done.stderr
