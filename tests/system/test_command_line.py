"""The real command line, as a newcomer uses it: each test runs `dragoman` in a process of its own."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sacrebleu

DRAGOMAN = [sys.executable, "-m", "dragoman"]
TINY = [
    "tokenizer={type: words}",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ff=64",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "training.schedule={type: linear, lr: 0.005, warmup_steps: 20}",
    "training.batch_tokens=512",
    "training.max_steps=40",
    "training.validate_every=20",
]


def dragoman(*arguments: object, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DRAGOMAN, *map(str, arguments)],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def succeed(*arguments: object, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    done = dragoman(*arguments, cwd=cwd, text=text)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


def refuse(*arguments: object, cwd: Path) -> str:
    """The one line with which a command refuses: exit code 2, nothing on stdout, no traceback."""
    done = dragoman(*arguments, cwd=cwd)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("dragoman: ")
    return line


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with demo text in data/demo, a small run of two bare files in runs/mine, its recipe in mine.yaml."""
    folder = tmp_path_factory.mktemp("newcomer")
    succeed("data", "demo", "--train-size", 2000, cwd=folder)
    files = ["--src", "data/demo/train.de", "--tgt", "data/demo/train.en"]
    done = succeed("train", *files, "--run", "runs/mine", *TINY, cwd=folder)
    assert done.stdout == ""
    for heading in ("1 read pairs", "4 batch", "7 train", "best validation BLEU", "runs/mine/report.html"):
        assert heading in done.stderr
    shutil.copy(folder / "runs/mine/config.yaml", folder / "mine.yaml")
    return folder


def test_training_leaves_a_run_directory(run: Path) -> None:
    folder = run / "runs/mine"
    assert {"config.yaml", "tokenizer", "prepared", "checkpoints", "metrics.jsonl", "tensorboard", "report.html"} <= {
        path.name for path in folder.iterdir()
    }
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["step"] for event in events if event["event"] == "valid"] == [20, 40]
    held_out = set((folder / "split/valid.src").read_text(encoding="utf-8").splitlines())
    trained_on = set((folder / "split/train.src").read_text(encoding="utf-8").splitlines())
    assert held_out
    assert not held_out & trained_on


def test_one_line_in_one_line_out(run: Path) -> None:
    lines = ["Das Kind schläft.", "", "   ", "ich möchte ein bier", "Das Kind schläft.", "word " * 700, "你好 \u2028 x"]
    done = succeed("translate", "runs/mine", "--beam-size", 2, cwd=run, text="\n".join(lines) + "\n")
    out = done.stdout.split("\n")
    assert out[-1] == ""
    assert len(out) == len(lines) + 1
    assert out[1:3] == ["", "   "]
    assert out[0] == out[4]
    succeed("translate", "runs/mine", "--beam-size", 2, "-i", "data/demo/test.de", "-o", "out.en", cwd=run)
    assert len((run / "out.en").read_bytes().split(b"\n")) == len((run / "data/demo/test.de").read_bytes().split(b"\n"))


def test_a_last_line_without_line_end_is_a_line(run: Path) -> None:
    assert len(succeed("translate", "runs/mine", cwd=run, text="Das Kind schläft.").stdout.splitlines()) == 1
    assert succeed("translate", "runs/mine", cwd=run, text="").stdout == ""


def test_n_best_lists_are_numbered_and_ordered(run: Path) -> None:
    done = succeed(
        "translate", "runs/mine", "--beam-size", 3, "--n-best", 3, cwd=run, text="Das Kind schläft.\n\nJa.\n"
    )
    rows = [line.split(" ||| ") for line in done.stdout.splitlines()]
    assert {int(row[0]) for row in rows} == {1, 2, 3}
    scores = [float(row[2]) for row in rows if row[0] == "1"]
    assert scores == sorted(scores, reverse=True)


def test_evaluate_several_sets_as_json(run: Path) -> None:
    for name in ("head.de", "head.en", "same.en"):
        side = name.split(".")[1]
        lines = (run / f"data/demo/valid.{side}").read_text(encoding="utf-8").split("\n")[:20]
        (run / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    sets = [
        "--src",
        "head.de",
        "--ref",
        "head.en",
        "--src",
        "head.en",
        "--ref",
        "same.en",
        "--name",
        "a",
        "--name",
        "b",
    ]
    done = succeed("evaluate", "runs/mine", *sets, "--beam-size", 1, "--json", cwd=run)
    scores = json.loads(done.stdout)
    assert scores.keys() == {"a", "b"}
    assert "tok:13a" in scores["a"]["signatures"]["bleu"]
    assert scores["a"]["sentences"] == 20
    succeed("translate", "runs/mine", "--beam-size", 1, "-i", "head.de", "-o", "head.out", cwd=run)
    found, references = ((run / name).read_text(encoding="utf-8").splitlines() for name in ("head.out", "head.en"))
    assert scores["a"]["bleu"] == pytest.approx(sacrebleu.corpus_bleu(found, [references]).score)
    assert scores["a"]["chrf"] == pytest.approx(sacrebleu.corpus_chrf(found, [references]).score)
    table = succeed("evaluate", "runs/mine", *sets, "--beam-size", 1, "--tokenize", "none", cwd=run).stdout
    assert "tok:none" in table


def test_the_same_command_goes_on_or_says_that_it_is_done(run: Path) -> None:
    assert "nothing to train: 40 of 40 steps are done" in succeed("train", "mine.yaml", cwd=run).stderr
    assert "going on from step 40" in succeed("train", "mine.yaml", "training.max_steps=45", cwd=run).stderr
    assert "training.label_smoothing: 0.1 -> 0.2" in refuse(
        "train", "mine.yaml", "training.label_smoothing=0.2", cwd=run
    )


def test_ctrl_c_saves_and_the_next_call_goes_on(run: Path) -> None:
    (run / "long.yaml").write_text((run / "runs/mine/config.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    command = [
        *DRAGOMAN,
        "train",
        "long.yaml",
        "--run",
        "runs/long",
        "training.max_steps=100000",
        "training.log_every=5",
    ]
    with subprocess.Popen(command, cwd=run, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        log = run / "runs/long/metrics.jsonl"
        deadline = time.monotonic() + 300
        while not (log.exists() and '"event": "train"' in log.read_text(encoding="utf-8")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert "stopped and saved at step" in stderr
    assert "Traceback" not in stderr
    stopped_at = max(int(path.name.removeprefix("step-")) for path in (run / "runs/long/checkpoints").glob("step-*"))
    again = succeed("train", "long.yaml", "--run", "runs/long", f"training.max_steps={stopped_at + 3}", cwd=run)
    assert f"going on from step {stopped_at:,} " in again.stderr


def test_ctrl_c_elsewhere_is_no_success(run: Path) -> None:
    command = [*DRAGOMAN, "translate", "runs/mine", "-o", "out.txt"]
    with subprocess.Popen(command, cwd=run, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        deadline = time.monotonic() + 300
        while not (run / "out.txt.partial").exists():  # then it has loaded and waits for text
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "stopped" in stderr
    assert "Traceback" not in stderr
    assert not (run / "out.txt").exists()


def test_a_reader_that_has_enough_is_no_failure_to_talk_about(run: Path) -> None:
    (run / "many.de").write_text("Das Kind schläft.\n" * 4500, encoding="utf-8")
    command = [*DRAGOMAN, "translate", "runs/mine", "-i", "many.de", "--beam-size", "1"]
    with subprocess.Popen(command, cwd=run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        stderr = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Traceback" not in stderr
    assert "Broken" not in stderr


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
@pytest.mark.parametrize("command", [["translate", "runs/mine", "-i", "data/demo/test.de"], ["report", "runs/mine"]])
def test_a_full_disk_is_told(run: Path, command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*DRAGOMAN, *command], cwd=run, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "standard output" in last
    assert "No space left on device" in last


def test_closed_streams_are_told(run: Path) -> None:
    for redirection, message in (("<&-", "standard input is closed"), (">&- </dev/null", "standard output is closed")):
        line = f"{sys.executable} -m dragoman translate runs/mine {redirection}"
        done = subprocess.run(line, shell=True, cwd=run, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_stdout_by_its_name_is_written_to_and_not_replaced(run: Path) -> None:
    (run / "one.de").write_text("Das Kind schläft.\n", encoding="utf-8")
    (run / "log.txt").write_text("earlier\n", encoding="utf-8")
    line = f"{sys.executable} -m dragoman translate runs/mine -i one.de -o /dev/stdout >> log.txt"
    subprocess.run(line, shell=True, cwd=run, stderr=subprocess.DEVNULL, check=True)
    lines = (run / "log.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert lines[0] == "earlier"


def test_an_empty_file_is_translated_to_an_empty_file(run: Path) -> None:
    (run / "empty.txt").write_bytes(b"")
    succeed("translate", "runs/mine", "-i", "empty.txt", "-o", "empty.out", cwd=run)
    assert (run / "empty.out").read_bytes() == b""


def test_a_prefix_too_many_is_told_and_nothing_is_lost(run: Path) -> None:
    (run / "begin.en").write_text("the\na\n\n", encoding="utf-8")
    (run / "two.de").write_text("Das Kind schläft.\nDas Kind schläft.\n", encoding="utf-8")
    said = refuse("translate", "runs/mine", "-i", "two.de", "--prefix", "begin.en", "-o", "two.en", cwd=run)
    assert "begin.en: more lines than the 2" in said
    assert not (run / "two.en").exists()
    assert len((run / "two.en.partial").read_text(encoding="utf-8").splitlines()) == 2


def test_two_files_go_where_run_dir_says(run: Path) -> None:
    files = ["--src", "data/demo/train.de", "--tgt", "data/demo/train.en"]
    succeed("train", *files, "run_dir=runs/said", *TINY, "training.max_steps=4", cwd=run)
    assert (run / "runs/said/split/valid.src").is_file()
    succeed("train", *files, "--run", "runs/😀", *TINY, "training.max_steps=4", cwd=run)
    assert (run / "runs/😀/split/valid.src").is_file()
    assert not (run / "runs/de-en").exists()


def test_a_run_of_damaged_checkpoints_does_not_begin_anew(run: Path) -> None:
    damaged = shutil.copytree(run / "runs/mine", run / "runs/damaged")
    for path in (damaged / "checkpoints").glob("step-*"):
        (path / "model.safetensors").write_bytes(b"")
    before = (damaged / "metrics.jsonl").read_bytes()
    files = ["--src", "data/demo/train.de", "--tgt", "data/demo/train.en"]
    said = refuse("train", *files, "--run", "runs/damaged", *TINY, "training.max_steps=60", cwd=run)
    assert "checkpoints: no checkpoint verifies" in said
    assert "model.safetensors" in said
    assert (damaged / "metrics.jsonl").read_bytes() == before
    assert "no checkpoint verifies" in refuse("translate", "runs/damaged", cwd=run)


def test_the_doctor_examines_all_of_a_recipe(run: Path) -> None:
    recipe = (run / "runs/mine/config.yaml").read_text(encoding="utf-8")
    (run / "odd.src").write_bytes("gut\nschön\n".encode("latin-1"))
    (run / "odd.tgt").write_bytes(b"good\nnice\n")
    odd = recipe.replace("valid.src", "../../../odd.src").replace("valid.tgt", "../../../odd.tgt")
    (run / "odd.yaml").write_text(odd, encoding="utf-8")
    done = dragoman("doctor", "odd.yaml", cwd=run)
    assert done.returncode == 2
    assert "odd.src" in done.stdout
    (run / "whole.yaml").write_text(recipe, encoding="utf-8")
    of_training = ["--test-src", "runs/mine/split/train.src", "--test-tgt", "runs/mine/split/train.tgt"]
    findings = {
        len(options): json.loads(dragoman("doctor", "whole.yaml", "--json", *options, cwd=run).stdout)["train"]
        for options in ([], of_training)
    }
    assert len(findings[4]["findings"]) > len(findings[0]["findings"])


def test_prepare_then_reuse(run: Path) -> None:
    assert "stored in" in succeed("prepare", "mine.yaml", "run_dir=runs/ahead", cwd=run).stderr
    assert "used what was stored" in succeed("prepare", "mine.yaml", "--run", "runs/ahead", cwd=run).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "no-such.yaml"], "no-such.yaml: no such file"),
        (["train", "mine.yaml", "training.max_stepz=3"], "did you mean `max_steps`"),
        (["train", "mine.yaml", "model.type=transfomer"], "transformer"),
        (["train"], "give a recipe, --files, or both --src and --tgt"),
        (["train", "mine.yaml", "--budget", "1min", "training.max_steps=9"], "--budget chooses training.max_steps"),
        (["train", "--src", "data/demo/train.de", "--tgt", "data/demo/valid.en", "--run", "runs/bad"], "lines"),
        (["train", "--src", "latin1.de", "--tgt", "latin1.en", "--run", "runs/bad"], "latin1.de"),
        (["translate", "runs/nothing-here"], "not a run directory"),
        (["translate", "runs/mine", "--checkpoint", "7"], "has no checkpoint of step 7"),
        (["translate", "runs/mine", "--beam-size", "0"], "beam_size"),
        (["translate", "runs/mine", "decoding.max_length_ratio=1e20"], "max_length_ratio"),
        (["translate", "runs/mine", "decoding.max_length_extra=99999999999999999999"], "max_length_extra"),
        (["translate", "runs/mine", "-i", "missing.txt"], "missing.txt"),
        (["translate", "runs/mine", "--device", "cud"], "device 'cud'"),
        (["evaluate", "runs/mine", "--src", "data/demo/test.de"], "--src needs a --ref"),
        (["evaluate", "runs/mine", "--src", "data/demo/test.de", "--ref", "data/demo/valid.en"], "lines"),
        (["evaluate", "runs/mine"], "names no test set"),
        (["data", "demo", "--pair", "de-xx"], "de-xx"),
        (["data", "multi30k", "--from", "nowhere"], "nowhere"),
        (["check", "mine.yaml", "model.d_model=30", "model.num_heads=4"], "multiple of model.num_heads"),
        (["doctor", "mine.yaml", "--src-lang", "de"], "corpus.src_lang"),
        (["doctor", "mine.yaml", "--test-src", "data/demo/test.de"], "give one for each"),
        (["demo", "--recipe", "mine.yaml"], "give a recipe with a test set"),
        (["trane"], "trane"),
        (["train", "--no-such-option"], "--no-such-option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_get_one_clear_line(run: Path, arguments: list[str], message: str) -> None:
    (run / "latin1.de").write_bytes("gut\nschön\n".encode("latin-1"))
    (run / "latin1.en").write_bytes(b"good\nnice\n")
    assert message in refuse(*arguments, cwd=run)


@pytest.mark.slow
def test_learns_to_reverse_digits(tmp_path: Path) -> None:
    """Quality through the command line: unseen digit strings come back reversed."""
    rng = random.Random(int(os.environ.get("DRAGOMAN_TEST_SEED", "1")))
    seen: set[str] = set()
    while len(seen) < 3300:
        seen.add(" ".join(rng.choices("0123456789", k=rng.randint(3, 6))))
    lines = sorted(seen)
    rng.shuffle(lines)
    for split, part in (("train", lines[:3000]), ("valid", lines[3000:3100]), ("test", lines[3100:])):
        (tmp_path / f"{split}.src").write_text("\n".join(part) + "\n", encoding="utf-8")
        (tmp_path / f"{split}.tgt").write_text("\n".join(line[::-1] for line in part) + "\n", encoding="utf-8")
    sizes = ["tokenizer={type: whitespace}", "model.d_model=64", "model.d_ff=128", "model.dropout=0.0"]
    layers = ["model.num_encoder_layers=2", "model.num_decoder_layers=2"]
    steps = ["training.max_steps=400", "training.batch_tokens=512", "training.validate_every=200"]
    schedule = "training.schedule={type: linear, lr: 0.003, warmup_steps: 50}"
    files = ["--src", "train.src", "--tgt", "train.tgt", "--valid-src", "valid.src", "--valid-tgt", "valid.tgt"]
    succeed("train", *files, "--run", "run", *sizes, *layers, *steps, schedule, cwd=tmp_path)
    out = succeed("translate", "run", "-i", "test.src", cwd=tmp_path).stdout.splitlines()
    expected = (tmp_path / "test.tgt").read_text(encoding="utf-8").splitlines()
    right = sum(got == want for got, want in zip(out, expected, strict=True))
    assert right >= 0.95 * len(expected), f"{right} of {len(expected)}"
