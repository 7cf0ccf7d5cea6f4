"""A run learns from corrections, and is handed over only if that did it good."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.cli.corrections import read_corrections
from dragoman.errors import Error
from dragoman.evaluation.comparison import Compared, Test
from dragoman.experiments import adapt as adapting
from dragoman.experiments.adapt import MIN_CORRECTIONS, Adaptation, _Given, _refusal
from dragoman.experiments.corrections import Corrections
from dragoman.inference.search_translator import SearchTranslator
from dragoman.serve.corrections import Correction
from dragoman.serve.store import Store

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


def adapt(run: Path, file: Path, output: Path, **options: Any) -> Adaptation:
    return adapting.adapt(run, Corrections.read(file, run), output, device="cpu", **options)


def written(path: Path, found: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in found), encoding="utf-8")
    return path


def test_good_corrections_are_learnt_and_the_rest_stays(run: Path, tmp_path: Path) -> None:
    corrected = [(src, tgt.replace("heute", "hier")) for src, tgt in pairs() if src.endswith("today")][:200]
    result = adapt(run, written(tmp_path / "corrections.tsv", corrected), tmp_path / "new")
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
    result = adapt(run, written(tmp_path / "corrections.tsv", nonsense), tmp_path / "new")
    assert result.refusal
    assert [one.name for one in result.compared] == ["corrections held out", "corrections learnt", "validation"]
    assert result.compared[0].sentences == 12
    assert result.run == tmp_path / "new.refused"
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_learnt_from_is_told(run: Path, tmp_path: Path) -> None:
    few = written(tmp_path / "few.tsv", pairs()[:5])
    command = f"dragoman datastore {run} {few} -o {run}/corrections"
    with raises_error(
        Error.TOO_FEW, f"{MIN_CORRECTIONS - 5} more are needed", command, f"--datastore {run}/corrections"
    ):
        adapt(run, few, tmp_path / "new")
    (tmp_path / "there").mkdir()
    with raises_error(Error.ALREADY_THERE):
        adapt(run, few, tmp_path / "there")


def test_a_refusal_says_what_would_help() -> None:
    def of(difference: float, name: str = "corrections held out", half: float = 5) -> Compared:
        interval, p = (difference - half, difference + half), 0.01 if abs(difference) > half else 0.2
        test = Test(
            "bleu", 30.0, 30 + difference, difference, *interval, 0.2, 5, 4, p, 10_000, False, p, p, p
        )  # fmt: skip
        return Compared(name, 12, (test,))

    given = _Given(Path("my run"), Path("c.tsv"))

    def refusal(first: float, learnt: float = 30, validation: float = 0) -> str:
        sets = [of(learnt, "corrections learnt"), of(validation, "validation", 0.1)]
        return _refusal([of(first), *sets] if first else sets, 100, given)

    assert refusal(30) == ""
    many = refusal(2.5)
    assert "would be sure with about 180 more corrections" in many  # 48 held out, of which 12 are there
    assert "--steps" not in many
    assert "gained nothing there (-1.00 BLEU)" in refusal(-1.0)
    assert "dragoman adapt 'my run' c.tsv --steps 300" in refusal(2.5, learnt=1)  # not learnt yet: time lacks
    assert "more corrections" not in refusal(0, learnt=1)
    assert "--steps 33" in refusal(30, validation=-1)
    assert all(text.endswith(given.for_few()) for text in (many, refusal(0, learnt=1), refusal(30, validation=-1)))


def test_a_servers_store_is_learnt_from_as_a_file_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "serve.sqlite")
    for src, tgt, author, state in (
        ("a", "old", "anna", "own"), ("a", "b", "", "shared"), ("c", "d", "ben", "own"), ("e", "f", "ben", "pending"),
    ):  # fmt: skip
        store.corrections.add(Correction("en", "de", src, tgt), author, state)  # type: ignore[arg-type]
    store.corrections.add(Correction("de", "en", "x", "y"))
    store.close()
    assert read_corrections(tmp_path / "serve.sqlite", FIXTURE / "finished").pairs == [("a", "b"), ("c", "d")]
    file = written(tmp_path / "c.tsv", [("a", "b")])
    assert read_corrections(file, FIXTURE / "finished") == Corrections(file, [("a", "b")])
    with raises_error(Error.EMPTY, "none.sqlite"):
        Store(tmp_path / "none.sqlite").close()
        read_corrections(tmp_path / "none.sqlite", FIXTURE / "finished")
