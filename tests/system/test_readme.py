"""Each command of the README and of the tour runs, in its order, on small corpora, and prints the line below it."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import docx
import pytest

from dragoman.cli.main import app
from dragoman.serve.corrections import Correction
from dragoman.serve.store import Store

ROOT = Path(__file__).parents[2]
README = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tour.md"))
TINY = {"training.max_steps": 6, "training.validate_every": 3, "training.batch_tokens": 512, "device": "cpu"}
SMALL_DEMO = {"corpus.train.size": 300, "corpus.valid.size": 20, "corpus.test.test.size": 20}
OF_RECIPES = {
    "recipes/demo.yaml": SMALL_DEMO,
    "recipes/lm-demo.yaml": {},
    "recipes/language-id-demo.yaml": {},
    "recipes/toy-reverse-lstm.yaml": {},
}
SMALL_MODEL = {"model.d_model": 32, "model.d_ff": 64, "model.num_encoder_layers": 1, "model.num_decoder_layers": 1}
ELSEWHERE = ("dragoman data multi30k", "source ", "dragoman train recipes/demo.yaml --budget")
"""They need a folder of files, an environment of one's own, and as much time as they say."""


def commands() -> list[tuple[str, str]]:
    """(command, the line that stands below it: what it prints)."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    lines = [line for language, block in blocks if not language for line in [*block.splitlines(), ""]]
    below = [line.removeprefix("# ") if line[:1] == "#" else "" for line in lines[1:]]
    pairs = zip(lines, below, strict=False)
    return [pair for pair in pairs if "dragoman " in pair[0] and not pair[0].startswith(("#", *ELSEWHERE))]


def prints(output: str, line: str) -> bool:
    """Whether a line is there; "…" stands for anything, and any white space for any other."""
    pattern = r"\s+".join(re.escape(word).replace("…", ".*") for word in line.split())
    return any(re.search(rf"^\s*{pattern}\s*$", row) for row in output.splitlines())


def run(command: str) -> str:
    """Run one line of a shell: `echo TEXT |`, `< FILE` and `> FILE` are what it may have beside a command.

    Returns all that it prints, on both streams.
    """
    text, _, command = command.rpartition(" | ")
    words = shlex.split(command)
    files = {"<": Path("stdin"), ">": Path("stdout")}
    files["<"].write_text(f"{shlex.split(text)[1]}\n" if text else "", encoding="utf-8")
    for sign in files:
        if sign in words:
            place = words.index(sign)
            files[sign] = Path(words[place + 1])
            del words[place : place + 2]
    arguments = words[1:]
    if arguments[0] == "train":
        changes = TINY | OF_RECIPES.get(arguments[1], {})
        if arguments[-1] == "runs/mine":  # an export of a model that has learnt nothing may be refused
            changes |= {
                "training.max_steps": 100,
                "training.validate_every": 50,
                **SMALL_MODEL,
                "model.shrink_residuals": "false",
            }
        arguments += [f"{key}={value}" for key, value in changes.items()]
    if arguments[0] == "distil":
        changes = {**TINY, **SMALL_MODEL, "training.max_steps": 100, "training.validate_every": 50}
        arguments += [f"{key}={value}" for key, value in changes.items() if key != "device"]
    if arguments[0] == "bench":
        arguments += ["--steps", "2"]
    if "--processes" in arguments:  # it starts its own command line again
        whole = [sys.executable, "-m", "dragoman", *arguments]
        done = subprocess.run(whole, capture_output=True, text=True, encoding="utf-8", check=True)
        return done.stdout + done.stderr
    stderr = io.StringIO()
    with (
        files["<"].open(encoding="utf-8") as stdin,
        files[">"].open("w", encoding="utf-8") as stdout,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", stderr)
        # 3: corrections of nothing did no good, a difference is undecided; 4: a fine-tuned run is worse
        fine = {"adapt": (None, 0, 3), "compare": (0, 3, 4)}.get(arguments[0], (None, 0))
        assert app(arguments, standalone_mode=False) in fine, command
    return files[">"].read_text(encoding="utf-8") + stderr.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the README's commands name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    run("dragoman data demo")
    for name, first, last in (("corpus", 0, 400), ("news", 400, 700), ("train", 700, 900), ("test", 900, 920)):
        for language in ("de", "en"):
            lines = (tmp_path / f"data/demo/train.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
            (tmp_path / f"{name}.{language}").write_text("".join(lines[first:last]), encoding="utf-8")
    shutil.copy("test.de", "letter.de")
    (tmp_path / "terms.tsv").write_text("bier\tbeer\n", encoding="utf-8")
    store = Store(tmp_path / "runs" / "serve.sqlite")
    for row in range(10):
        store.corrections.add(Correction("de", "en", f"ich möchte {row} bier", f"i want {row} ales"))
    store.close()
    document = docx.Document()
    document.add_paragraph("ich möchte ein ").add_run("bier").bold = True
    document.save("manual.docx")
    (tmp_path / "website").mkdir()
    (tmp_path / "website/index.html").write_text("<p>ich möchte <b>ein</b> bier</p>\n", encoding="utf-8")
    sides = "".join(
        f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("de", "bier"), ("en", "beer"))
    )
    (tmp_path / "earlier.tmx").write_text(f"<tmx><body><tu>{sides}</tu></body></tmx>", encoding="utf-8")
    run("dragoman train --src corpus.en --tgt corpus.de --run runs/back")
    run("dragoman train recipes/demo.yaml")
    return tmp_path


def test_every_command_of_the_readme_runs_and_prints_its_line(folder: Path) -> None:
    shown = commands()
    assert len(shown) > 30
    for command, line in shown:
        output = run(command)
        assert not line or line.startswith("about: ") or prints(output, line), (command, line, output)


def test_every_command_of_the_tour_has_a_line_below_it() -> None:
    tour = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
    assert [command for command, line in commands() if command in tour and not line] == []


def test_that_test_sees_another_output() -> None:
    assert prints("a  b 12 c\n3 d", "a b … c")
    assert not prints("a b 12 d", "a b … c")
    assert not prints("x a b 12 c", "a b … c")
