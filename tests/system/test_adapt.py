"""A run learns from corrections, and is handed over only if that did it good."""

import random
import shutil
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.evaluation.comparison import Compared, Test
from dragoman.experiments.adapt import _refusal, adapt
from dragoman.inference.search_translator import SearchTranslator

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "valid"):  # nothing in its own text says what the corrections of "today" say
        kept = [pair for pair in pairs(split) if "today" not in pair[0]]
        for side, code in enumerate(("en", "de")):
            (data / f"{split}.{code}").write_text("".join(pair[side] + "\n" for pair in kept), encoding="utf-8")
    monkeypatch.setenv("DRAGOMAN_DATA", str(data))
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(FIXTURE / "finished", tmp_path / "run"))


def pairs(split: str = "train") -> list[tuple[str, str]]:
    sides = [(FIXTURE / f"{split}.{code}").read_text(encoding="utf-8").splitlines() for code in ("en", "de")]
    return list(zip(*sides, strict=True))


def written(path: Path, found: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in found), encoding="utf-8")
    return path


def test_good_corrections_are_learnt_and_the_rest_stays(run: Path, tmp_path: Path) -> None:
    corrected = [(src, tgt.replace("heute", "hier")) for src, tgt in pairs() if src.endswith("today")][:200]
    result = adapt(run, written(tmp_path / "corrections.tsv", corrected), tmp_path / "new", device="cpu")
    assert result.refusal == ""
    assert result.run == tmp_path / "new"
    assert [one.name for one in result.compared] == ["corrections held out", "corrections learnt", "validation"]
    assert result.compared[0].verdict == "better"
    assert result.compared[2].verdict != "worse"
    [said] = SearchTranslator.load(tmp_path / "new", device="cpu").translate(["the dog sees a man today"])
    assert said.endswith("hier")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corrections.tsv", "data", "new", "run"]


def test_bad_corrections_are_refused_and_the_model_put_aside(run: Path, tmp_path: Path) -> None:
    text = pairs()[:60]
    targets = [tgt for _, tgt in text]
    random.Random(1).shuffle(targets)
    nonsense = [(src, tgt) for (src, _), tgt in zip(text, targets, strict=True)]
    result = adapt(run, written(tmp_path / "corrections.tsv", nonsense), tmp_path / "new", device="cpu")
    assert result.refusal
    assert [one.name for one in result.compared] == ["corrections held out", "corrections learnt", "validation"]
    assert result.compared[0].sentences == 12
    assert result.run == tmp_path / "new.refused"
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_learnt_from_is_told(run: Path, tmp_path: Path) -> None:
    few = written(tmp_path / "few.tsv", pairs()[:5])
    with raises_error(Error.TOO_FEW, "3 more are needed", "datastore"):
        adapt(run, few, tmp_path / "new", device="cpu")
    (tmp_path / "there").mkdir()
    with raises_error(Error.ALREADY_THERE):
        adapt(run, few, tmp_path / "there", device="cpu")


def test_a_refusal_says_how_many_more_corrections_would_tell() -> None:
    def of(difference: float) -> Compared:
        interval = difference - 5, difference + 5
        test = Test(
            "bleu", 30.0, 30 + difference, difference, *interval, 0.2, 5, 4, 0.2, 10_000, False, 0.2, 0.2, 0.2
        )  # fmt: skip
        return Compared("corrections held out", 12, (test,))

    assert "would be sure with about 180 more corrections" in _refusal(
        [of(2.5), of(0)]
    )  # 48 held out, of which 12 are there
    assert "gained nothing there (-1.00 BLEU)" in _refusal([of(-1.0), of(0)])
    assert "datastore" in _refusal([of(2.5), of(0)])
