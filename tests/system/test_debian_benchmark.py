"""Variants of the recipe for Debian's translations: each is trained in small on a corpus that is made here."""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.corpora import embedded
from dragoman.doctor.assembly import assemble
from dragoman.text.corpus import CollectionConfig

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CHANGES = ["model.d_model=16", "model.d_ff=16", "model.num_heads=2", "model.num_encoder_layers=1",
           "model.num_decoder_layers=1", "tokenizer.vocab_size=300", "training.batch_tokens=512",
           "training.schedule.warmup_steps=2", "training.validate_seconds=60", "decoding.beam_size=1"]  # fmt: skip
LIBREOFFICE = 7
"""Number of the package that has LibreOffice's help; it is not held out."""
HELP = "In den Einstellungen legen Sie fest, wie die Datei gespeichert wird."


def entry(src: str, tgt: str) -> str:
    return f"msgid {json.dumps(src)}\nmsgstr {json.dumps(tgt, ensure_ascii=False)}\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `dragoman data debian` leaves it, and the test set of LibreOffice's help."""
    data = tmp_path_factory.mktemp("data")
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: de\\n"\n\n'
    pairs = [(src, tgt) for tgt, src in embedded.sentences("de-en", "train", 900, 1)]
    for number in range(60):
        package = data / "debian-en-de" / "files" / f"package{number}"
        package.mkdir(parents=True)
        name = "libreoffice.de.po" if number == LIBREOFFICE else "manual.de.po" if number % 5 == 0 else "program.po"
        own = "".join(entry(src, tgt) for src, tgt in pairs[15 * number : 15 * number + 15])
        own += entry(pairs[0][0], "Das ist eine andere Fassung.") + entry("Copy", "Copy") + entry("%s one", "eins")
        own += entry(f"<b>_Save</b> number {chr(97 + number % 26)}", "<b>_Sichern</b> dieser ersten Zahl")
        if number == LIBREOFFICE:
            own += entry("In the settings you choose how the file is saved.", HELP)
        (package / name).write_text(head + own, encoding="utf-8")
    corpus = data / "debian-en-de"
    config = CollectionConfig(paths=[str(corpus / "files")], documents="folder", held_out=20)
    assemble(config, ("en", "de"), corpus / "corpus")
    (corpus / "licences").mkdir()
    (corpus / "licences" / "package1").write_text("Files: *\nCopyright: A\nLicense: GPL-2+\n", encoding="utf-8")
    (data / "libreoffice-help-en-de").mkdir()
    (data / "libreoffice-help-en-de" / "test.en").write_text("Where a file is kept.\n", encoding="utf-8")
    (data / "libreoffice-help-en-de" / "test.de").write_text(HELP + "\n", encoding="utf-8")
    recipe = yaml.safe_load((BENCHMARKS.parent / "recipes" / "debian-en-de.yaml").read_text(encoding="utf-8"))
    help_test = recipe["corpus"]["test"]["libreoffice_help"]
    help_test |= {side: str(data / help_test[side].removesuffix(".gz")) for side in ("src", "tgt")}
    recipe["corpus"]["test"]["multi30k"]["src"] = str(data / "not-there.en")
    (data / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return data


USUAL: dict[str, Any] = {"minutes": 0.1, "threads": 1, "seed": 1, "pair": "en-de", "sizes": "recipe", "share": 0.1,
                         "changes": CHANGES, "python": None, "peer_rate": None, "peer_average": 0.0}  # fmt: skip
# Its clock goes on with each step of a training, so that a busy machine takes as many as an idle one.
MEASURE = """
import argparse, json, sys, time
from pathlib import Path

class Clock:
    now = 0.0
    def __call__(self, seconds=1e-5):
        self.now += seconds
        return self.now

clock = time.monotonic = Clock()
import debian_runs
from dragoman.training.step import TrainingStep

take = TrainingStep.take
TrainingStep.take = lambda self, *given: (clock(0.1), take(self, *given))[1]
given = json.loads(sys.argv[1])
places = {key: Path(given[key]) for key in ("corpus", "recipe", "work", "results")}
comparison = debian_runs.Comparison(argparse.Namespace(**{**given, **places}))
for name in sys.argv[2:]:
    comparison.measure(name)
"""


def places(folder: Path) -> dict[str, Path]:
    names = {"corpus": "debian-en-de", "recipe": "recipe.yaml", "work": "runs", "results": "results.jsonl"}
    return {key: folder / name for key, name in names.items()}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import debian_runs

    return debian_runs


def comparison_of(runs: Any, folder: Path) -> Any:
    return runs.Comparison(argparse.Namespace(**USUAL, **places(folder)))


NAMES = ["recipe", "raw", "unfiltered", "unfiltered-conflicts", "unfiltered-leaks", "scores", "temperature",
         "bpe-dropout", "distillation", "teacher", "no-averaging", "by-pairs"]  # fmt: skip


@pytest.fixture(scope="module")
def rows(folder: Path) -> dict[str, Any]:
    """The results of all variants, which one process trains."""
    given = json.dumps({**USUAL, **{key: str(path) for key, path in places(folder).items()}})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])}
    environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-c", MEASURE, given, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(NAMES)  # the recipe's own run serves those that need it
    return {row["name"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize("name", NAMES)
def test_a_variant_is_trained_and_scored(name: str, runs: Any, rows: dict[str, Any], folder: Path) -> None:
    row, comparison = rows[name], comparison_of(runs, folder)
    assert list(row["scores"]) == ["own", "libreoffice_help"]  # Multi30k is not there
    assert row["steps"] >= 1
    assert row["signatures"]["bleu"].startswith("nrefs:1")
    train = sum(1 for _ in comparison.bench().pairs("train"))
    leaks = row["dropped"].get("in the test set", 0)
    if name in ("unfiltered-leaks", "distillation"):  # a teacher's translation is another one than the test's
        assert leaks == 0
    else:  # the paragraph of LibreOffice's help, which a mixture has several times
        assert leaks == 1 or (name == "temperature" and leaks > 1)
    if name in ("raw", "unfiltered", "unfiltered-conflicts"):
        assert row["pairs"] > train
    elif name == "scores":
        assert 0.85 * train < row["pairs"] < 0.95 * train
    elif name == "temperature":
        assert row["kinds"].keys() == {"catalogue", "libreoffice", "manual"}
        assert sum(row["kinds"].values()) == train < row["pairs"]
    else:
        assert row["pairs"] == train - leaks
    assert ("before_minutes" in row) == (name in ("scores", "distillation"))


def test_the_card_of_a_run_has_kinds_of_text(rows: dict[str, Any], runs: Any, folder: Path) -> None:
    comparison = comparison_of(runs, folder)
    card = (comparison.run_dir("recipe") / "MODEL_CARD.md").read_text(encoding="utf-8")
    train = sum(1 for _ in comparison.bench().pairs("train"))
    table = card.split("| kind |")[1].split("\n\n")[0].splitlines()[2:]
    counts = Counter[str]()
    for line in table:
        _, kind, licence, _, pairs, _ = (cell.strip() for cell in line.split("|"))
        counts[kind] += int(pairs.replace(",", ""))
        assert licence in ("GPL-2+", "see copyright")
    assert counts.keys() == {"catalogue", "libreoffice", "manual"}
    assert sum(counts.values()) == train
    assert "from English to German" in card
    assert "Training pairs that stand in these test sets, or nearly do, were left out." in card


def test_raw_pairs_stand_as_in_the_files_and_are_none_of_the_tests(runs: Any, folder: Path) -> None:
    bench = comparison_of(runs, folder).bench()
    change = runs.VARIANTS["raw"][1](bench)
    sources = Path(change.train["src"]).read_text(encoding="utf-8").splitlines()
    assert any(text.startswith("<b>_Save</b>") for text in sources)
    assert Counter(sources)["Copy"] > 10
    held = {src for split in ("valid", "test") for src, _ in bench.pairs(split)}
    assert held
    assert not held & set(sources)


def test_each_variant_is_known(runs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(NAMES) <= runs.VARIANTS.keys()
    runs.COMMANDS["list"](argparse.Namespace())
    shown = capsys.readouterr().out
    assert all(f"{name} " in shown for name in (*runs.VARIANTS, runs.PEER))


def test_the_command_trains_on_its_clock_and_prints_a_table(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    script = [sys.executable, str(BENCHMARKS / "debian.py")]
    options = ["--corpus", str(folder / "debian-en-de"), "--recipe", str(folder / "recipe.yaml"), "--threads", "1"]
    options += ["--work", str(tmp_path / "runs"), "--results", str(results), "--minutes", "0.15"]
    subprocess.run([*script, "run", "bpe-dropout", *CHANGES, *options], check=True, capture_output=True)
    row = json.loads(results.read_text(encoding="utf-8"))
    assert row["command"].startswith("python benchmarks/debian.py run bpe-dropout model.d_model=16")
    assert str(tmp_path) not in json.dumps(row)
    shown = subprocess.run([*script, "table", "--results", str(results)], check=True, capture_output=True, text=True)
    assert "en-de, 0.15 minutes, 1 threads, sizes of the recipe" in shown.stdout
    assert "| bpe-dropout model.d_model=16" in shown.stdout
    assert "| own: BLEU | chrF |" in shown.stdout


def test_the_peer_has_the_same_pieces_and_is_scored_alike(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    results = tmp_path / "results.jsonl"
    options = ["--corpus", str(folder / "debian-en-de"), "--recipe", str(folder / "recipe.yaml"), "--threads", "1"]
    options += ["--work", str(tmp_path / "runs"), "--results", str(results), "--minutes", "0.02"]
    options += ["--python", sys.executable, "--peer-rate", "0.001", "--peer-average", "0.9"]
    script = [sys.executable, str(BENCHMARKS / "debian.py"), "run", "huggingface", *CHANGES, *options]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    row = json.loads(results.read_text(encoding="utf-8"))
    assert row["scores"].keys() == {"own", "libreoffice_help"}
    assert row["dropped"] == {"in the test set": 1}
    assert (row["rate"], row["average"]) == (0.001, 0.9)
    assert row["precision"] in ("float32", "bfloat16")
    assert row["versions"]["transformers"]
    (peer,) = (tmp_path / "runs").rglob("peer")
    assert len((peer / "train.src").read_text().splitlines()) == row["pairs"]
    assert len((peer / "own.out").read_text().splitlines()) == len((peer / "own.src").read_text().splitlines()) > 0
    settings = json.loads((peer / "settings.json").read_text(encoding="utf-8"))
    ids = {int(word) for word in (peer / "train.tgt").read_text().split()}
    assert min(ids) > 3  # none of the specials
    assert max(ids) < settings["vocab_size"]
