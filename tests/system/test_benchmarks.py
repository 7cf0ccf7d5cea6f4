"""Scripts of `benchmarks/` that no other test runs, in small: each runs to its end and prints what it measured.

A script is a process of its own, as its users start it. The run is the trained one of the fixtures, English to German.
`COVERED` names the tests of all other scripts.
"""

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo

from dragoman.corpora import embedded

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "run_4f9e9c2"
RUN, SRC, REF = FIXTURE / "finished", FIXTURE / "test.en", FIXTURE / "test.de"
TINY = [
    "model.d_model=16", "model.num_heads=2", "model.d_ff=32", "model.num_encoder_layers=1",
    "model.num_decoder_layers=1", "training.batch_tokens=256",
]  # fmt: skip
RATE = r"[\d,]+(?:\.\d+)?"

Script = Callable[..., str]


@pytest.fixture
def script(multi30k: Path) -> Script:
    """`script(NAME, *arguments)`: what the script prints; `code=...` is run before it, in the same process."""

    def run(name: str, *arguments: str | Path, code: str = "") -> str:
        path = ROOT / "benchmarks" / name
        start = (
            [str(path)]
            if not code
            else ["-c", f"{code}; import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"]
        )
        environment = {**os.environ, "DRAGOMAN_DATA": str(multi30k), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *start, *map(str, arguments)],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


def rows_of(printed: str) -> list[list[str]]:
    """The cells of a table in Markdown, without its head."""
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line][1:]


@pytest.fixture(scope="session")
def catalogues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a German catalogue, as /usr/share/locale: sentences of the demo, and titles of two words."""
    folder = tmp_path_factory.mktemp("locale")
    catalogue = Catalog("de")
    for german, english in embedded.sentences("de-en", "train", 1500, 1):
        catalogue.add(english, german)
        catalogue.add(" ".join(english.split()[:2]).strip(".,"), " ".join(german.split()[:2]).strip(".,"))
    (folder / "de" / "LC_MESSAGES").mkdir(parents=True)
    with (folder / "de" / "LC_MESSAGES" / "demo.mo").open("wb") as file:
        write_mo(file, catalogue)
    return folder


# -- training ------------------------------------------------------------------------------------------------------


def test_training_beside_a_plain_loop(script: Script) -> None:
    printed = script("training.py", "recipes/demo.yaml", *TINY, "--rounds", "1", "--steps", "1")
    assert re.findall(rf"^(\S+): {RATE} tokens/s", printed, re.MULTILINE) == ["Dragoman", "torch.nn.Transformer"]


def test_training_by_threads(script: Script) -> None:
    waiting = ["PyTorch's own", "OMP_WAIT_POLICY=PASSIVE"]
    options = ["--rounds", "1", "--seconds", "0.01", "--waiting", *waiting]
    rows = rows_of(script("threads.py", "recipes/toy-beer.yaml", *options))
    assert [row[1] for row in rows] == [waiting[0], *waiting]
    assert all(re.fullmatch(RATE, rate) for row in rows for rate in row[2:])


def test_training_in_several_processes(script: Script) -> None:
    more = [*TINY, "corpus.valid.size=5", "corpus.train.size=2000"]
    printed = script("processes.py", "recipes/demo.yaml", *more, "--rounds", "1", "--steps", "30", "--only", "fast")
    assert re.search(rf"^2 processes of 1 thread, fast +{RATE} tokens/s .*, 1\.00 times$", printed, re.MULTILINE)


def test_a_run_behind_servers_of_several_searches(script: Script) -> None:
    rows = {row[0]: row[1:] for row in rows_of(script("serving_engines.py", RUN, SRC, "--count", "4"))}
    assert {"our search", "int8"} <= set(rows)
    assert all(float(cell.replace(",", "")) >= 0 for row in rows.values() for cell in row)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc, which Linux has")
def test_the_growth_of_cost(script: Script, tmp_path: Path) -> None:
    sizes = ["--lengths", "16", "--vocabularies", "1000", "--pairs", "3000", "--train-steps", "100"]
    printed = script("cost_growth.py", "recipes/demo.yaml", *TINY, "--out", tmp_path / "growth", *sizes)
    assert [row[0] for row in rows_of(printed) if row[0].replace(",", "").isdigit()] == ["16", "1,000", "3,000"]
    written = json.loads((tmp_path / "growth.json").read_text(encoding="utf-8"))
    measured = [row for kind in ("length", "vocabulary", "corpus") for row in written[kind].values()]
    assert all(value > 0 for row in measured for value in row.values())
    assert "<svg" in (tmp_path / "growth.svg").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc, which Linux has")
def test_a_big_corpus(script: Script, tmp_path: Path) -> None:
    """What it prepares and trains is in `test_the_growth_of_cost`, which calls the same functions."""
    command = ["--dragoman", shutil.which("dragoman", path=Path(sys.executable).parent) or "dragoman"]
    result = json.loads(script("big_corpus.py", "--pairs", "500", "--dir", tmp_path, "--doctor", *command))
    assert result["doctor"]["peak_pss_mib"] > 10
    assert len((tmp_path / "train.de").read_text(encoding="utf-8").splitlines()) == 500


def test_the_record_of_a_run(script: Script, tmp_path: Path) -> None:
    script("record.py", RUN, "--folder", tmp_path)
    assert "<svg" in (tmp_path / "finished.svg").read_text(encoding="utf-8")
    events = [json.loads(line) for line in (tmp_path / "finished.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"start", "plan", "train", "end"} <= {event["event"] for event in events}
    assert not any("samples" in event for event in events)


@pytest.mark.parametrize("name", ["both_directions", "four_languages"])
def test_a_corpus_of_a_section_of_multi30k(name: str, script: Script, tmp_path: Path) -> None:
    sides = [f"multi30k-tok/train.lc.norm.tok.{language}.gz" for language in ("en", "de")]
    printed = script(f"{name}.py", *sides, tmp_path / "out")
    src, tgt = (
        (tmp_path / "out" / side).read_text(encoding="utf-8").splitlines() for side in ("train.src", "train.tgt")
    )
    assert f"{len(src):,} pairs" in printed
    assert len(src) == len(tgt) >= 4 * 2_000


# -- translating ---------------------------------------------------------------------------------------------------


ENGINES = {"ctranslate2": "ctranslate2:float32", "transformers": "huggingface:float32:likely"}
SMALL = ["--passes", "1", "--threads", "1", "--alone", "2", "--lines", "40"]


def test_translation_beside_other_engines(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are installed translate, others are a line that says so; the same rule gives the same translations."""
    there = [engine for package, engine in ENGINES.items() if importlib.util.find_spec(package)]
    engines = ["dragoman:float32", "dragoman:float32:full", *ENGINES.values(), "marian:float32"]
    shared = ["--run", RUN, "--src", SRC, "--ref", REF, *SMALL, "--beams", "2", "--results", tmp_path / "passes"]
    monkeypatch.delenv("DRAGOMAN_MARIAN", raising=False)
    printed = script("translation.py", *shared, "--engines", *engines)
    many, alone = printed.split("One alone")
    rows = {":".join(row[:3]): row for row in rows_of(many)}
    assert rows["Dragoman:float32:exact"][5] == f"0 of {len(SRC.read_text(encoding='utf-8').splitlines()[:40])}"
    if not importlib.util.find_spec("pymarian"):
        assert rows["Marian:float32:Marian's"][3].startswith("not installed: pip install pymarian")
    for name, engine in (("CTranslate2:float32:full", "ctranslate2"), ("Hugging Face:float32:likely", "transformers")):
        assert (re.match(RATE, rows[name][3]) is not None) == (ENGINES[engine] in there)
    if ENGINES["ctranslate2"] in there:
        assert rows["CTranslate2:float32:full"][4:] == rows["Dragoman:float32:full"][4:]
        assert rows["CTranslate2:float32:full"][3].endswith(" 1.00x")
    assert len(rows_of(alone)) == len(rows)
    # The passes are kept, and tables of them are printed without another one.
    assert script("translation.py", "--passes", "0", "--results", tmp_path / "passes") == printed


def test_random_weights_write_as_many_tokens_everywhere(script: Script, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="pip install ctranslate2")
    shared = ["--shapes", "tiny", *SMALL, "--beams", "3", "--imitate", "avx2", "--folder", tmp_path]
    printed = script(
        "translation.py", *shared, "--engines", "dragoman:float32", "pytorch:float32", "ctranslate2:float32"
    )
    assert "**avx2 imitated**" in printed
    many = rows_of(printed.split("One alone")[0])
    assert [row[0] for row in many] == ["Dragoman", "CTranslate2", "Dragoman without a compiler"]
    assert [row[-1] for row in many] == ["0 of 40"] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc, which Linux has")
def test_translation_by_threads_and_processes(script: Script) -> None:
    small = ["--counts", "1", "2", "--sentences", "200", "--seconds", "2", "--passes", "1", "--beam-size", "2"]
    printed = script("cores.py", RUN, SRC, *small)
    rows = {row[0]: row[1:] for row in rows_of(printed)}
    parts = ["tokens of sources", "search, in C", "search, around C", "tokens to texts"]
    assert all(float(rows[name][0].replace(",", "")) >= 0 for name in parts)
    assert float(re.findall(r"Python: (0\.\d+) of the time", printed)[0]) < 1
    copies, apart = (rows[f"2 processes, {how}, of 1 thread"] for how in ("copies", "apart"))
    assert float(copies[4]) <= float(apart[4]), "memory that a copy does not share"
    assert all(float(row[0].replace(",", "")) > 0 for name, row in rows.items() if name.startswith(("1 of ", "2 of ")))


def test_where_a_step_of_the_search_spends_its_time(script: Script, tmp_path: Path) -> None:
    shared = ["--shapes", "tiny", "--beams", "2", "--lines", "8", "--folder", tmp_path]
    rows = {row[0]: row[1:] for row in rows_of(script("translation.py", "--profile", "0.2", *shared))}
    parts = [[float(cell.split()[0].replace(",", "")) for cell in row] for row in rows.values()]
    assert rows["all"][0].endswith(")")
    for column in zip(*parts, strict=True):
        assert sum(column[:-1]) == pytest.approx(column[-1], abs=len(rows))
    assert parts[list(rows).index("products: output")][0] > 0


def test_ways_of_searching(script: Script) -> None:
    printed = script("search_options.py", "--run", RUN, "--ensemble", RUN, "--src", SRC, "--ref", REF, "--only", "e")
    names = [row[0] for row in rows_of(printed)]
    assert {"greedy", "beam 5", "ensemble of 2", "one sample", "terms: one word of each reference"} <= set(names)


def test_the_start_of_commands(script: Script) -> None:
    printed = script("start.py", RUN, "--rounds", "1", "--only", "TAB", "help", "translate", "serve")
    assert [row[0] for row in rows_of(printed)] == ['python -c "import torch"', "TAB", "help", "translate", "serve"]
    assert rows_of(printed)[0][2] == "1.00"


def test_a_student_beside_its_teacher(script: Script) -> None:
    pytest.importorskip("ctranslate2", reason="pip install ctranslate2")
    rows = rows_of(script("students.py", RUN, RUN, "--src", SRC, "--ref", REF, "--rounds", "1"))
    assert {(row[0], row[2]) for row in rows} == {("teacher", "no"), ("student", "yes"), ("student", "no")}


def test_a_server_whose_clients_go_away(script: Script) -> None:
    """Other parts take minutes; attacks are in test_attack.py."""
    assert script("serving.py", RUN, SRC, "aborts").endswith("stopped with exit code 0\n")


# -- a GPU's script, on the CPU ------------------------------------------------------------------------------------


def test_the_parts_of_the_gpu_script_that_compile_nothing(script: Script) -> None:
    parts = ["equal", "batches", "translate"]
    printed = script("gpu.py", *parts, "--device", "cpu", "--small", "--only", "LSTM, dot", "--run", RUN, "--src", SRC)
    assert re.findall(r"^-- (\w+): ", printed, re.MULTILINE) == parts
    assert "subwords drawn anew: " in printed
    assert "cpu float32 one by one: 2 of 2 as the first" in printed


@pytest.mark.skipif(shutil.which("bash") is None, reason="gpu.sh needs bash")
def test_the_shell_script_of_a_gpu_trains_and_translates(multi30k: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DRAGOMAN_DATA": str(multi30k),
        "PARTS": "speedrun translate",
        "PYTHON": sys.executable,
    }
    command = ["bash", "benchmarks/gpu.sh", str(tmp_path / "out"), "--small"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert re.findall(r"^(\S+) ended with code (\d+)$", done.stdout, re.MULTILINE) == [
        ("speedrun", "0"),
        ("translate", "0"),
    ]


# -- text ----------------------------------------------------------------------------------------------------------


def test_false_alarms_and_planted_faults_of_the_guards(script: Script, catalogues: Path) -> None:
    language, total = script("guards.py", catalogues, "--pairs", "40").splitlines()
    assert language.split()[:2] == ["de", "40"]
    assert total.split()[:2] == ["all", "40"]
    assert re.search(r"word doubled [1-9]\d*/[1-9]", language)


def test_the_language_of_short_texts(script: Script, catalogues: Path) -> None:
    """Accuracy among ten languages is left out: it needs the manual pages of ten packages of Debian."""
    printed = script("language_id.py", catalogues)
    assert "sentences in 1 languages" in printed
    assert float(re.findall(r"translated from German: ([\d.]+) %", printed)[0]) > 80


def test_cuts_between_sentences_of_catalogues(script: Script, catalogues: Path) -> None:
    assert re.search(r"catalogues.* de\b", script("sentences.py", "--catalogues", catalogues, "de", "--most", "40"))


def test_planted_mojibake(script: Script) -> None:
    printed = script("mojibake.py", f"de={FIXTURE / 'train.de'}", "--size", "60")
    assert re.match(r"de: \d+ pairs, [1-9]\d* planted, found [\d.]+ %, mended [\d.]+ %; 0 of 60 sound lines", printed)


def test_planted_faults_of_outputs(script: Script) -> None:
    files = [FIXTURE / "train.en", FIXTURE / "train.de"]
    printed = script("planted_faults.py", "--src", files[0], "--ref", files[1], "--languages", "en", "de", files[1])
    assert "shifted: 1 of 1" in printed
    assert "untranslated: 1 of 1" in printed


def test_codes_inside_of_letters(script: Script) -> None:
    files = f"{FIXTURE / 'train.en'},{FIXTURE / 'train.de'}"
    printed = script("clusters.py", f"de={files}")
    assert re.match(r"de: 240 pairs; placeholders: 0 in letters, 0 in words of [1-9]\d*", printed)


def test_tokenizers_that_people_bring_along(script: Script, multi30k: Path) -> None:
    pytest.importorskip("subword_nmt", reason="pip install subword-nmt")
    texts = [multi30k / f"multi30k-tok/train.lc.norm.tok.{language}.gz" for language in ("en", "de")]
    printed = script("own_tokenizers.py", *texts, "--lines", "1500").splitlines()
    counts = [re.fullmatch(r".*: ([\d,]+) of 1,500 lines have equal ids", line) for line in printed]
    equal = [int(count[1].replace(",", "")) for count in counts if count]
    assert len(equal) > 15
    # A letter so rare that SentencePiece's model lacks it may stand in a table of ids; for us it is unknown.
    assert min(equal) > 0.98 * 1500, printed


def test_p_values_beside_counted_ones(script: Script) -> None:
    assert script("significance.py", "exact", "--sets", "3") == "3 of 3 p-values are the counted ones\n"
    [row] = rows_of(script("significance.py", "errors", "--draws", "2", "--changed", "2", "--lines", "10"))
    assert row[0] == "2"


def test_the_peer_of_the_localisation_benchmark(script: Script, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install transformers")
    for split, size in (("train", 2_000), ("valid", 3), ("test", 3)):
        pairs = list(embedded.sentences("de-en", split, size, 1))
        for language in ("en", "de"):
            lines = "".join(f"{pair[language == 'en']}\n" for pair in pairs)
            (tmp_path / f"{split}.markup.{language}.gz").write_bytes(gzip.compress(lines.encode()))
    # The text of the demo has too few words for 8,000 pieces.
    trainer = "sentencepiece.SentencePieceTrainer"
    small = "lambda train=train, **given: train(**{**given, 'vocab_size': 500})"
    small = f"import sentencepiece; train = {trainer}.train; {trainer}.train = {small}"
    script("localisation_peer.py", tmp_path, "1steps", "1", tmp_path / "out.de", code=small)
    assert len((tmp_path / "out.de").read_text(encoding="utf-8").splitlines()) == 3


# -- all of them ---------------------------------------------------------------------------------------------------

COVERED = {
    "system/test_attack.py": ["attack", "attacks"],
    "system/test_budget.py": ["budget"],
    "system/test_debian_benchmark.py": ["debian", "debian_runs", "debian_variants", "debian_peer"],
    "system/test_files.py": ["readers"],
    "system/test_folder.py": ["folder"],
    "system/test_links_and_case.py": ["guided_alignment", "localisation", "markup", "matches", "messy"],
    "system/test_marian_benchmark.py": ["marian"],
    "system/test_real_files.py": ["real_files", "real_file_readers"],
    "unit/test_adapter.py": ["adapters"],
    "unit/test_embedded.py": ["embedded_corpus/__main__"],
    "unit/test_languages_page.py": ["languages"],
    "unit/test_learnt_context.py": ["context"],
    "unit/test_learnt_exactness.py": ["learnt_speed"],
    "unit/test_learnt_terms.py": ["terms"],
}
"""The scripts that another test runs, and the modules that only they use."""
PARTS = {
    "catalogues": "guards.py",
    "peers/minutes_huggingface": "debian_peer.py",
    "peers/plain": "training.py",
    "peers/processor_time": "debian_peer.py",
    "translation_engines": "translation.py",
    "translation_profile": "translation.py",
}
"""Modules that a script uses or starts."""


def test_every_script_is_run_by_a_test() -> None:
    benchmarks = ROOT / "benchmarks"
    scripts = {path.relative_to(benchmarks).with_suffix("").as_posix() for path in benchmarks.rglob("*.py")}
    scripts -= {name for name in scripts if name.startswith("embedded_corpus/") and name != "embedded_corpus/__main__"}
    peers = {name for name in scripts if name.startswith("peers/")} - PARTS.keys()
    ours = set(re.findall(r"script\(\"(\w+)\.py\"", Path(__file__).read_text(encoding="utf-8")))
    ours |= {"both_directions", "four_languages"}
    assert sorted(scripts - peers - ours - PARTS.keys() - {name for names in COVERED.values() for name in names}) == []
    for test in COVERED:
        assert (ROOT / "tests" / test).exists(), test


def test_every_command_has_a_row_in_the_table() -> None:
    table = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    named = [f"benchmarks/{name}" for name in re.findall(r"[\w*]+\.py", table)]
    commands = [path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")]
    assert sorted(path.name for path in commands if not any(path.match(name) for name in named)) == []
