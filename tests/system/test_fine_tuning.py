"""`train --from RUN`: a recipe that suits the text, other text mixed in, and what was gained and lost."""

import json
from pathlib import Path

import pytest

from dragoman.cli import main as cli
from dragoman.inference.search_translator import SearchTranslator
from dragoman.runs.atomic_io import read_yaml

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2"
RUN = FIXTURE / "finished"
QUICK = ["training.max_steps=4", "training.validate_every=2", "training.samples=0", "device=cpu", "corpus.doctor=skip"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty pairs of one's own; the run's text is not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "nowhere"))
    for code in ("en", "de"):
        lines = (FIXTURE / f"train.{code}").read_text(encoding="utf-8").splitlines()
        (tmp_path / f"own.{code}").write_text("\n".join(lines[:60]) + "\n", encoding="utf-8")
        (tmp_path / f"general.{code}").write_text("\n".join(lines[60:]) + "\n", encoding="utf-8")
    return tmp_path


def train(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    command = ["dragoman", "train", "--from", str(RUN), "--src", "own.en", "--tgt", "own.de", "--run", "new"]
    monkeypatch.setattr("sys.argv", [*command, *arguments, *QUICK])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def compared(run: Path) -> list[str]:
    events = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [event["name"] for event in events if event.get("event") == "compared"]


def test_general_text_in_one_language_is_translated_by_the_run_itself(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--general-src", "general.en", monkeypatch=monkeypatch) == 0
    folder = own / "new" / "general-own"
    sources, made = ((folder / f"general.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "tgt"))
    assert sources == list(dict.fromkeys((own / "general.en").read_text(encoding="utf-8").splitlines()))
    assert made == SearchTranslator.load(RUN, device="cpu").translate(sources)
    corpus = read_yaml(own / "new" / "config.yaml")["corpus"]
    assert corpus["train"]["type"] == "mix"
    mine, others = corpus["train"]["weights"]
    assert mine * 58 == pytest.approx(others * 177, rel=0.2)  # as much of the other text as of one's own
    assert compared(own / "new") == ["your text", "general text"]
    assert "general text (" in capsys.readouterr().err


def test_pairs_of_general_text_and_none_of_it(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--general-tgt", "general.de", monkeypatch=monkeypatch) == 2
    assert "--general-tgt needs --general-src" in capsys.readouterr().err
    assert train("--general-src", "general.en", "--general-tgt", "general.de", monkeypatch=monkeypatch) == 0
    assert not (own / "new" / "general-own").exists()
    assert compared(own / "new") == ["your text", "general text"]


def test_without_any_other_text_it_says_so(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--freeze", "embeddings", monkeypatch=monkeypatch) == 0
    told = capsys.readouterr().err
    assert "its training text is gone" in told
    assert compared(own / "new") == ["your text"]
    recipe = read_yaml(own / "new" / "config.yaml")
    assert recipe["training"]["freeze"] == ["embeddings"]
    assert recipe["init_from"] == str(RUN)
    assert recipe["tokenizer"] == {"type": "reuse", "run": str(RUN)}
