"""The quick starts of docs/coming-from: theirs and ours run, on one text and few steps, and end with a score.

Ours take what theirs left. Where the other toolkit is in no environment, that is what it left before
(tests/fixtures/quick_starts); with it (in the Python that a variable names: `make test-clients`) it is made anew. Its
model then goes through CTranslate2's converter and an import, as our refusals say, and translates as it did there.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.main import app
from dragoman.importing.import_run import import_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment

SCRIPTS = Path(__file__).parents[2] / "docs" / "coming-from" / "quick-starts"
LEFT = Path(__file__).parents[1] / "fixtures" / "quick_starts"
STEPS = "20"
LINES = 50
PYTHONS = {
    "joeynmt": "DRAGOMAN_JOEYNMT", "opennmt-py": "DRAGOMAN_OPENNMT", "fairseq": "DRAGOMAN_FAIRSEQ",
    "sockeye": "DRAGOMAN_SOCKEYE", "marian": "DRAGOMAN_MARIAN", "moses": "DRAGOMAN_MOSES",
}  # fmt: skip
"""Toolkits that have an environment of their own, and the variable that names its Python."""
TOKENS = {
    "joeynmt": ["bpe.codes", "model/src_vocab.txt", "model/trg_vocab.txt"],
    "opennmt-py": ["run/example.vocab.src", "run/example.vocab.tgt"],
    "fairseq": ["bpe.codes", "data-bin/dict.de.txt", "data-bin/dict.en.txt"],
    "sockeye": ["bpe.codes", "prepared/vocab.src.0.json"],
}
"""What they leave of pieces and vocabularies, in a folder of their name."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A twentieth of the embedded corpus, and a command `dragoman` that is the one under test."""
    monkeypatch.chdir(tmp_path)
    app(["data", "demo"], standalone_mode=False)
    for path in (tmp_path / "data" / "demo").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = lines[4::20] if path.name.startswith("train") else lines[:LINES]
        path.write_text("".join(kept), encoding="utf-8")
    command = tmp_path / "bin" / "dragoman"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dragoman "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


def ran(script: Path, python: str = sys.executable, steps: str = STEPS) -> str:
    """What a script writes on its standard output, with the programs of an environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    own = python == sys.executable
    environment = {**os.environ, "STEPS": steps, "PORT": port, "OMP_NUM_THREADS": "1"}
    environment |= {"PATH": os.pathsep.join([str(Path("bin").resolve()), str(Path(python).parent), os.environ["PATH"]])}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path) if own else ""}
    done = subprocess.run(["sh", script], env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def python_of(name: str) -> str:
    if not os.environ.get(PYTHONS[name]):
        pytest.skip(f"{PYTHONS[name]} names no Python")
    return os.environ[PYTHONS[name]]


def figures(output: str) -> list[float]:
    """The row of the test set: lines, BLEU, chrF, TER."""
    [row] = re.findall(r"^test(?:\.true)?\.\w+ +(\d.*)$", output, re.MULTILINE)
    numbers = [float(number) for number in row.split()]
    assert numbers[0] == LINES
    return numbers[1:]


@pytest.mark.parametrize("name", sorted(path.name for path in LEFT.iterdir()))
def test_ours_takes_what_theirs_left(folder: Path, name: str) -> None:
    shutil.copytree(LEFT / name, folder / name)
    assert len(figures(ran(SCRIPTS / f"{name}.sh"))) >= 3


@pytest.mark.parametrize("name", ["annotated-transformer", "libretranslate"])
def test_ours_runs(folder: Path, name: str) -> None:
    # After 20 steps a model says "the the the ..." as long as it may, and a busy server refuses so much work.
    assert figures(ran(SCRIPTS / f"{name}.sh", steps="150"))


def test_marian_takes_a_sentencepiece_model(folder: Path) -> None:
    import sentencepiece

    (folder / "marian").mkdir()
    files = [str(folder / "data" / "demo" / f"train.{code}") for code in ("de", "en")]
    sentencepiece.SentencePieceTrainer.train(
        input=files, model_prefix="marian/vocab", vocab_size=400, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2
    )
    (folder / "marian" / "vocab.model").rename(folder / "marian" / "vocab.spm")
    assert figures(ran(SCRIPTS / "marian.sh"))


def test_sacrebleu_and_ours_have_the_same_figures(folder: Path) -> None:
    """Its command takes translations and references alone, and so does ours (no `--src`)."""
    theirs, ours = ran(SCRIPTS / "theirs" / "sacrebleu.sh"), ran(SCRIPTS / "sacrebleu.sh")
    assert figures(ours) == [float(figure) for figure in re.findall(r" = ([\d.]+)", theirs) if "." in figure][:1] + [
        float(re.search(rf"{name}\|.* = ([\d.]+)$", theirs, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("chrF2", "TER")
    ]
    for signature in re.findall(r"\|(nrefs\S+)", theirs):
        assert signature in ours


def test_ctranslate2_runs_the_export_and_the_import(folder: Path) -> None:
    pytest.importorskip("ctranslate2")
    assert figures(
        ran(SCRIPTS / "ctranslate2.sh", steps="150")
    )  # after fewer it says nothing but specials, which ours bans
    assert "score" in json.loads(ran(SCRIPTS / "theirs" / "ctranslate2.sh"))
    pairs = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("output", "their-output")]
    assert sum(ours == theirs for ours, theirs in zip(*pairs, strict=True)) > LINES / 2
    # What does not end is cut at other lengths.
    assert all(ours.startswith(theirs) or theirs.startswith(ours) for ours, theirs in zip(*pairs, strict=True))


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_hugging_face_trains_and_ours_takes_its_files(folder: Path) -> None:
    pytest.importorskip("accelerate")
    assert float(ran(SCRIPTS / "theirs" / "huggingface.sh").splitlines()[-1].split()[-1]) > 0
    assert figures(ran(SCRIPTS / "huggingface.sh"))
    assert (folder / "huggingface" / "trained" / "model.safetensors").exists()


@pytest.mark.parametrize("name", PYTHONS)
def test_theirs_runs_and_ours_takes_what_it_leaves(folder: Path, name: str) -> None:
    ran(SCRIPTS / "theirs" / f"{name}.sh", python_of(name))
    for file in TOKENS.get(name, []) if (LEFT / name).exists() else []:
        assert (folder / name / file).read_bytes() == (LEFT / name / file).read_bytes(), file
    assert figures(ran(SCRIPTS / f"{name}.sh"))


CONVERTERS = {
    "marian": "ct2-marian-converter --model_path marian/fixed.npz --vocab_paths marian/vocab.yml marian/vocab.yml",
    "opennmt-py": f"ct2-opennmt-py-converter --model_path opennmt-py/run/model_step_{STEPS}.pt "
    "--unsafe_deserialization",
    "fairseq": "ct2-fairseq-converter --model_path fairseq/checkpoints/checkpoint_best.pt --data_dir fairseq/data-bin "
    "--source_lang de --target_lang en --unsafe_deserialization",
}
"""The commands that our refusals name, on what the quick starts left."""
MARIANS = """
import json, numpy, sentencepiece
arrays = dict(numpy.load("marian/model.npz"))
options = arrays["special:model.yml"].tobytes().rstrip(b"\\0") + b"\\0"
numpy.savez("marian/fixed.npz", **{**arrays, "special:model.yml": numpy.frombuffer(options, dtype=numpy.int8)})
model = sentencepiece.SentencePieceProcessor(model_file="marian/vocab.spm")
with open("marian/vocab.yml", "w", encoding="utf-8") as file:
    file.writelines(f"{json.dumps(model.id_to_piece(i), ensure_ascii=False)}: {i}\\n" for i in range(len(model)))
"""
"""What docs/importing.md says of Marian's files before CTranslate2's converter: options with one zero byte, no .spm."""
GREEDY = """
import ctranslate2, json, sys
pieces = json.load(sys.stdin)
limits = {"max_decoding_length": 30, "min_decoding_length": 0}
answers = ctranslate2.Translator("converted").translate_batch(pieces, beam_size=1, **limits)
print(json.dumps([answer.hypotheses[0] for answer in answers]))
"""


@pytest.mark.parametrize("name", CONVERTERS)
def test_a_model_of_theirs_comes_in_by_the_converter(folder: Path, name: str) -> None:
    """What CTranslate2 makes of the model in greedy search, the imported run makes too."""
    python = Path(python_of(name))
    ran(SCRIPTS / "theirs" / f"{name}.sh", str(python))
    if name == "marian":
        subprocess.run([python, "-c", MARIANS], check=True)
    program, *arguments = CONVERTERS[name].split()
    subprocess.run([python.with_name(program), *arguments, "--output_dir", "converted"], check=True)
    spm = [Path("marian/vocab.spm")] if name == "marian" else []
    run = import_model(Path("converted"), Path("run"), "de", "en", spm)
    ours = SearchTranslator.load(run, device="cpu", ban_unk=False, beam_size=1, max_length_ratio=0, max_length_extra=30)
    src, tgt = ours.tokenizers.src, ours.tokenizers.tgt
    file = Path(name if name == "fairseq" else "data/demo") / "test.de"  # fairseq's text is in pieces
    encoded = [src.encode(line) for line in file.read_text(encoding="utf-8").splitlines()]
    answers = subprocess.run(
        [python, "-c", GREEDY],
        input=json.dumps([src.pieces(ids) for ids in encoded]),
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ).stdout
    found = ours.hypotheses([Segment(ids, []) for ids in encoded])
    assert [tgt.pieces(best.ids) for [best] in found] == json.loads(answers)
