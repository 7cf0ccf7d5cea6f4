"""A student learns what its teacher does, from the teacher's own translations, and is exported with a shortlist."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.errors import raises_error

from dragoman.cli import main as cli
from dragoman.errors import Error
from dragoman.experiments import distil as module
from dragoman.experiments.distil import distil
from dragoman.export import ctranslate2 as target
from dragoman.export import export
from dragoman.export.shortlist import FILE, frequent, shortlist
from dragoman.inference.search_translator import SearchTranslator

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2"
TEACHER = FIXTURE / "finished"
QUICK = ["model.d_model=32", "model.d_ff=64", "model.num_encoder_layers=1", "training.max_steps=250"]
QUICK += ["training.validate_every=250", "training.batch_tokens=512", "training.samples=0"]
QUICK += ["training.schedule={type: linear, lr: 1e-2, warmup_steps: 25}", "training.optimizer={type: adamw}"]


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", str(FIXTURE))
    monkeypatch.chdir(tmp_path)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_a_student_learns_from_its_teacher_and_goes_out_with_a_shortlist(tmp_path: Path) -> None:
    found = distil(TEACHER, tmp_path / "small", device="cpu", changes=QUICK)
    assert found.compared is not None
    assert found.compared.tests[0].second > 30
    assert found.parameters[0] == 6656
    student = SearchTranslator.load(tmp_path / "small", device="cpu")
    assert student.decoding.beam_size == 2
    assert len(student.model.decoder_layers) == 1
    sources, taught = (lines(tmp_path / "small" / "taught" / f"train.{side}") for side in ("src", "tgt"))
    assert sources == list(dict.fromkeys(lines(FIXTURE / "train.en")))
    teacher = SearchTranslator.load(TEACHER, device="cpu")
    assert teacher.translate(sources[:20]) == taught[:20]

    pytest.importorskip("ctranslate2")
    # Of so small a model and 16 sentences, what int8 and another search cost is chance: the proof is for real ones.
    export(tmp_path / "small", "ctranslate2", tmp_path / "ct2", quantize="int8", shortlist=True, verify=False)
    listed = target.load(tmp_path / "ct2", student)
    assert type(listed.engine).__name__ == "CTranslate2Engine"
    pairs = zip(student.translate(sources), listed.translate(sources), strict=True)
    assert sum(ours == theirs for ours, theirs in pairs) > 0.6 * len(sources)
    table = dict(line.split("\t") for line in lines(tmp_path / "ct2" / FILE))
    vocabulary = set(student.tokenizers.tgt.pieces(range(student.tokenizers.tgt.vocab_size)))
    assert all(set(targets.split(" ")) <= vocabulary for targets in table.values())
    assert "▁rote" in table["▁red"].split(" ")[:8]
    with raises_error(Error.UNSUPPORTED, "shortlist"):
        export(tmp_path / "small", "onnx", tmp_path / "onnx", shortlist=True)


def test_broken_off_teaching_goes_on_and_another_teacher_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = tmp_path / "more.en"
    more.write_text("the dog sees a man\n\nthe  dog sees a man\nthe dog sees a cat\n", encoding="utf-8")
    asked: list[str] = []
    translate = SearchTranslator.translate

    def broken(self: SearchTranslator, texts: list[str], **options: Any) -> list[str]:
        asked.extend(texts)
        if len(asked) > len(texts):
            raise KeyboardInterrupt
        return translate(self, texts, **options)

    monkeypatch.setattr(SearchTranslator, "translate", broken)
    monkeypatch.setattr("dragoman.experiments.diversify.STREAM_LINES", 50)
    with pytest.raises(KeyboardInterrupt):
        distil(TEACHER, tmp_path / "small", src=[more], device="cpu", changes=QUICK)
    assert len(lines(tmp_path / "small" / "taught" / "translations.part")) == 50
    monkeypatch.setattr(SearchTranslator, "translate", translate)
    with raises_error(Error.OTHER_CONTENT):
        distil(TEACHER, tmp_path / "small", device="cpu", changes=QUICK)
    found = distil(TEACHER, tmp_path / "small", src=[more], device="cpu", changes=[*QUICK, "training.max_steps=2"])
    assert found.result.outcome.step == 2
    sources = lines(tmp_path / "small" / "taught" / "train.src")
    assert "the dog sees a man" in sources
    assert not (tmp_path / "small" / "taught" / "translations.part").exists()
    assert not any("  " in line for line in sources)


def test_without_text_or_with_a_size_that_there_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with raises_error(Error.UNKNOWN_NAME, "huge"):
        distil(TEACHER, tmp_path / "small", "huge")
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["dragoman", "distil", str(TEACHER), "--run", str(tmp_path / "small")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "the text that it was trained on is not here: give text to translate with --src FILE" in (
        capsys.readouterr().err.replace("\n", " ")
    )


class _Corpus:
    """An `IdCorpus` of lists."""

    def __init__(self, pairs: list[tuple[list[int], list[int]]]) -> None:
        self.pairs = pairs
        self.src_lengths, self.tgt_lengths = (np.array([len(pair[side]) for pair in pairs]) for side in (0, 1))

    def __len__(self) -> int:
        return len(self.pairs)

    def src(self, row: int) -> np.ndarray:
        return np.array(self.pairs[row][0])

    def tgt(self, row: int) -> np.ndarray:
        return np.array(self.pairs[row][1])


def test_model_1_finds_what_translates_what_and_not_what_only_stands_beside_it() -> None:
    """Piece 10 stands beside 20 and 21 always; that 21 is of 11 shows in the pairs without 10."""
    corpus: Any = _Corpus([([10, 11], [20, 21]), ([11], [21]), ([11, 12], [22, 21]), ([10, 12], [20, 22])] * 3)
    found = shortlist(corpus, 30, count=1)
    assert found == {10: [20], 11: [21], 12: [22]}
    assert frequent(corpus, 30, count=1) == [21]
    # 10 is frequent and says 22 at times; 21 stands beside it more often and is 11's.
    pairs = [([10], [20])] * 6 + [([10], [22])] + [([10, 11], [20, 21])] * 4
    often: Any = _Corpus(pairs)
    assert shortlist(often, 30, count=2)[10] == [20, 22]


def test_a_teacher_of_several_languages_or_a_large_vocabulary_gets_a_student_with_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    teacher = SearchTranslator.load(TEACHER, device="cpu")
    files = str(FIXTURE / "train.en"), str(FIXTURE / "train.de")
    kept = module._recipe(TEACHER, teacher, tmp_path / "small", "tiny", files)
    assert kept["tokenizer"] == {"type": "reuse", "run": str(TEACHER)}
    monkeypatch.setattr(module, "MAX_VOCAB_SIZE", 10)
    own = module._recipe(TEACHER, teacher, tmp_path / "small", "tiny", files)
    assert own["tokenizer"]["type"] == "sentencepiece"
    assert (own["model"]["num_encoder_layers"], own["model"]["num_decoder_layers"]) == (4, 1)


def test_a_student_as_wide_as_its_teacher_begins_with_its_layers(tmp_path: Path) -> None:
    changes = [
        "training.max_steps=1",
        "training.batch_tokens=512",
        "training.samples=0",
        "training.averaging.decay=0.5",
    ]
    changes += ["training.schedule={type: linear, lr: 1e-12, warmup_steps: 1}", "training.optimizer={type: adamw}"]
    wide = [f"model.{name}={value}" for name, value in (("d_model", 16), ("d_ff", 32), ("num_heads", 2))]
    wide += ["model.num_encoder_layers=1", "model.dropout=0.1"]
    distil(TEACHER, tmp_path / "small", device="cpu", changes=[*changes, *wide])
    theirs, ours = (
        SearchTranslator.load(run, device="cpu").model.state_dict() for run in (TEACHER, tmp_path / "small")
    )
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert (tensor - theirs[name]).abs().max() < 1e-6, name
