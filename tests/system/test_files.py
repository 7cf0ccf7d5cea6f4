"""A folder of files to a trained run through the command, and every command and snippet of docs/files.md."""

import json
import lzma
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
import yaml
from tests.errors import raises_error
from tests.unit.test_assembly import catalogue, sentence
from tests.unit.test_collection import tmx, unit, write
from tests.unit.test_mo import compiled

from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.tasks import recipes

PAGE = (Path(__file__).parents[2] / "docs/files.md").read_text(encoding="utf-8")
TINY = {
    "training.max_steps": 4, "training.validate_every": 2, "training.batch_tokens": 512,
    "tokenizer.vocab_size": 150, "device": "cpu", "model.d_model": 32, "model.d_ff": 64,
    "model.num_encoder_layers": 1, "model.num_decoder_layers": 1, "model.num_heads": 2,
}  # fmt: skip
CHANGES = [f"{key}={value}" for key, value in TINY.items()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three hundred sentences in files of several kinds, a broken one among them."""
    monkeypatch.chdir(tmp_path)
    sentences = [sentence(number) for number in range(300)]
    memories = write(
        tmp_path / "memories",
        {
            "memory.tmx": tmx(*(unit(en=src, fr=tgt) for src, tgt in sentences[:80])).encode("utf-16"),
            "app/fr.po": catalogue(range(80, 160)),
            "app/de.po": catalogue([0], header="Language: de\\n"),
            "bin/fr/LC_MESSAGES/app.mo": compiled([("", "Language: fr\n"), *sentences[160:240]]),
            "guide.en.txt": "".join(f"{src}\n" for src, _ in sentences[240:280]),
            "guide.fr.txt": "".join(f"{tgt}\n" for _, tgt in sentences[240:280]),
            "broken.tmx": "<tmx><body><tu>",
        },
    )
    book = openpyxl.Workbook()
    for row in [("note", "French", "English"), *(("", tgt, src) for src, tgt in sentences[280:])]:
        book.active.append(row)
    book.save(memories / "terms.xlsx")
    return tmp_path


def dragoman(command: str) -> int:
    return app(shlex.split(command), standalone_mode=False) or 0


def test_training_on_a_folder_resumes_and_refuses_files_that_have_changed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"train --files memories --src-lang en --tgt-lang fr --run runs/mine {' '.join(CHANGES)}"
    assert dragoman(command) == 0
    said = capsys.readouterr().err
    assert "what came from where: runs/mine/files/files.html" in said
    record = json.loads(Path("runs/mine/files/files.json").read_text(encoding="utf-8"))
    assert {file["path"] for file in record["files"] if file["note"]} == {"app/de.po", "broken.tmx"}
    assert record["read"] == 300
    before = {path.name: path.read_bytes() for path in Path("runs/mine/files").iterdir()}

    assert dragoman(command.replace("max_steps=4", "max_steps=6")) == 0
    assert "what came from where" not in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("runs/mine/files").iterdir()} == before
    steps = [path.name for path in Path("runs/mine/checkpoints").iterdir()]
    assert any("6" in name for name in steps)
    assert dragoman("evaluate runs/mine --device cpu") == 0

    write(folder / "memories", {"one more.tmx": tmx(unit(en="A house", fr="Une maison"))})
    with raises_error(Error.OTHER_CONTENT):
        dragoman(command)
    assert {path.name: path.read_bytes() for path in Path("runs/mine/files").iterdir()} == before


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--files memories", Error.MISSING_OPTION),
        ("--files memories --src-lang en", Error.MISSING_OPTION),
        ("--files memories --src-lang en --tgt-lang fr --src a.en --tgt a.fr", Error.CONFLICT),
        ("--files memories --src-lang en --tgt-lang fr --columns one", Error.WRONG_OPTION),
        ("--files nowhere --src-lang en --tgt-lang fr", Error.MISSING_FILE),
        ("--src a.en --tgt a.fr --src-lang en", Error.MISSING_OPTION),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, options: str, code: Error) -> None:
    with raises_error(code):
        dragoman(f"train {options}")


def test_every_command_and_snippet_of_the_page_runs(folder: Path) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    commands = [line for kind, block in blocks if not kind for line in block.splitlines()]
    assert len(commands) == 7
    for line in commands:
        assert line.startswith("dragoman ")
        changes = CHANGES if line.startswith("dragoman train") else []
        assert dragoman(shlex.join([*shlex.split(line)[1:], *changes])) in (0, 1), line
    for path in ("corpus/train.en", "corpus/files.html", "clean/memory.en", "clean/memory.fr"):
        assert Path(path).is_file()

    [data] = [yaml.safe_load(block) for kind, block in blocks if kind == "yaml"]
    Path("mine.yaml").write_text(yaml.safe_dump({**data, **nested(TINY)}), encoding="utf-8")
    assert dragoman("train mine.yaml") == 0
    assert dragoman("doctor mine.yaml") in (0, 1)
    assert Path("runs/recipe/files/train.en").is_file()

    snippets = [block for kind, block in blocks if kind == "python"]
    assert len(snippets) == 2
    small = snippets[0].replace("settings = {", f"settings = {nested(TINY)!r} | {{")
    for snippet in (small, snippets[1]):
        Path("snippet.py").write_text(snippet, encoding="utf-8")
        runpy.run_path("snippet.py")
    assert Path("runs/python/files/train.en").is_file()
    assert Path("assembled/train.en").read_bytes() == Path("corpus/train.en").read_bytes()


def nested(settings: dict[str, object]) -> dict[str, object]:
    data: dict[str, dict[str, object]] = {"tokenizer": {"type": "sentencepiece"}, "model": {"type": "transformer"}}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if name:
            data.setdefault(section, {})[name] = value
    return {**data, "device": "cpu"}


def test_a_recipe_that_names_files_and_other_sources_is_refused(folder: Path) -> None:
    corpus = {"src_lang": "en", "tgt_lang": "fr", "files": {"paths": ["memories"]}}
    corpus["train"] = {"type": "files", "src": "a.en", "tgt": "a.fr"}
    with raises_error(Error.CONFLICT, "corpus.train"):
        recipes.parsed({"run_dir": "runs/x", "corpus": corpus}, "mine")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("doctor memories/memory.tmx --src-lang en --tgt-lang fr", ["memory.en", "memory.fr"]),
        ("doctor memories/guide.en.txt memories/guide.fr.txt", ["guide.en", "guide.fr"]),
        ("doctor en/guide.txt fr/guide.txt --src-lang en --tgt-lang fr", ["guide.en", "guide.fr"]),
        ("doctor corpus.tsv", ["corpus.en", "corpus.fr"]),
        ("doctor corpus.en.xz corpus.fr.xz", ["corpus.en", "corpus.fr"]),
        ("doctor memories/app/fr.po --src-lang en --tgt-lang fr", ["fr.en", "fr.fr"]),
        ("doctor memories/terms.xlsx --src-lang en --tgt-lang fr", ["train.en", "train.fr"]),
        ("doctor memories --src-lang fr --tgt-lang en", ["train.en", "train.fr"]),
    ],
)
def test_fix_writes_plain_text_under_names_that_end_in_their_languages(
    folder: Path, command: str, names: list[str]
) -> None:
    for code in ("en", "fr"):
        text = Path(f"memories/guide.{code}.txt").read_bytes()
        write(folder, {f"{code}/guide.txt": text, f"corpus.{code}.xz": lzma.compress(text)})
    rows = ["\t".join(sentence(number)) for number in range(40)]
    Path("corpus.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    shutil.rmtree("clean", ignore_errors=True)
    assert dragoman(f"{command} --fix clean") in (0, 1)
    lines = [Path("clean", name).read_text(encoding="utf-8").splitlines() for name in names]
    assert len(lines[0]) == len(lines[1]) > 15
    assert lines[0][0].startswith("The ")
    assert lines[1][0].startswith("La ")


def test_the_benchmark_of_readers_reads_every_kind() -> None:
    script = Path(__file__).parents[2] / "benchmarks/readers.py"
    done = subprocess.run(
        [sys.executable, str(script), "--entries", "60", "120"], capture_output=True, text=True, check=True
    )
    rows = [line for line in done.stdout.splitlines() if line.startswith(("read", "open", "collection"))]
    assert len(rows) > 20
    assert all(re.search(r"\d\.\d\d +\d+\.\d\d   \d", row) for row in rows)
