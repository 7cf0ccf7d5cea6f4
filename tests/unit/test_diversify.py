"""More pairs out of a corpus: which are written, and that what is broken off goes on."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.cli import main as cli
from dragoman.errors import Error
from dragoman.experiments import diversify as module
from dragoman.experiments.diversify import diversify
from dragoman.text.corpus import FilesSource


class Stub:
    """A translator that does `change` to each line."""

    def __init__(self, change: Callable[[str], str], languages: tuple[str, str] = ("en", "de")) -> None:
        self.change, self.languages = change, languages

    def translate(self, lines: list[str]) -> list[str]:
        return [self.change(line) for line in lines]


@pytest.fixture
def source(tmp_path: Path) -> FilesSource:
    (tmp_path / "train.en").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "train.de").write_text("eins\nzwei\ndrei\n", encoding="utf-8")
    return FilesSource(src=str(tmp_path / "train.en"), tgt=str(tmp_path / "train.de"))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Stub]:
    """Runs by name, in the place of run directories."""
    found: dict[str, Stub] = {}

    class Loaded:
        @staticmethod
        def load(run: Path, **options: Any) -> Stub:
            return found[str(run)]

    monkeypatch.setattr(module, "SearchTranslator", Loaded)
    monkeypatch.setattr(module, "languages_of", lambda run: found[str(run)].languages)
    monkeypatch.setattr(module, "identity", lambda run, translator: [str(run)])
    return found


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_each_translation_stands_beside_what_it_was_made_from(
    source: FilesSource, runs: dict[str, Stub], tmp_path: Path
) -> None:
    runs["f1"], runs["f2"] = Stub(lambda line: f"{line}-f"), Stub(lambda line: f"{line}-g")
    runs["b"] = Stub(lambda line: f"{line}-b", ("de", "en"))
    found = diversify(source, tmp_path / "out", forward=["f1", "f2"], backward=["b"])
    assert lines(found.src) == ["one", "two", "three", *["one", "two", "three"] * 2, "eins-b", "zwei-b", "drei-b"]
    assert lines(found.tgt) == [
        *["eins", "zwei", "drei", "one-f", "two-f", "three-f", "one-g", "two-g", "three-g", "eins", "zwei", "drei"]
    ]
    assert (found.src.name, found.tgt.name) == ("train.en", "train.de")
    assert (found.pairs, found.added) == (3, {"f1": 3, "f2": 3, "b": 3})


def test_a_run_that_goes_both_ways_is_counted_for_both(
    source: FilesSource, runs: dict[str, Stub], tmp_path: Path
) -> None:
    runs["both"] = Stub(lambda line: f"{line}-x", ("mul", "mul"))
    found = diversify(source, tmp_path / "out", forward=["both"], backward=["both"])
    assert (found.pairs, found.added) == (3, {"both": 6})
    assert len(lines(found.src)) == len(lines(found.tgt)) == 9


def test_what_is_there_already_or_blank_is_not_added(
    source: FilesSource, runs: dict[str, Stub], tmp_path: Path
) -> None:
    runs["f1"] = Stub({"one": "eins", "two": "", "three": "drittens"}.__getitem__)
    runs["f2"] = Stub({"one": "ein", "two": "zwei", "three": "drittens"}.__getitem__)
    found = diversify(source, tmp_path / "out", forward=["f1", "f2"])
    assert found.added == {"f1": 1, "f2": 1}
    assert list(zip(lines(found.src), lines(found.tgt), strict=True))[3:] == [("three", "drittens"), ("one", "ein")]


@pytest.mark.parametrize(
    ("second", "error"),
    [(("de", "en"), (Error.LANGUAGES_DIFFER, "f2")), (("en", "fr"), (Error.LANGUAGES_DIFFER, "f2"))],
    ids=["turned", "other"],
)
def test_runs_between_other_languages_are_refused(
    second: tuple[str, str], error: tuple[Any, ...], source: FilesSource, runs: dict[str, Stub], tmp_path: Path
) -> None:
    runs["f1"], runs["f2"] = Stub(str.upper), Stub(str.upper, second)
    with raises_error(*error):
        diversify(source, tmp_path / "out", forward=["f1", "f2"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ways", [{"backward": ["f"]}, {"forward": ["b"]}], ids=["backward", "forward"])
def test_runs_that_go_the_other_way_than_the_files_are_refused(
    ways: dict[str, list[str]], source: FilesSource, runs: dict[str, Stub], tmp_path: Path
) -> None:
    runs["f"], runs["b"] = Stub(str.upper), Stub(str.upper, ("de", "en"))
    with raises_error(Error.LANGUAGES_DIFFER):
        diversify(source, tmp_path / "out", **ways)
    assert not (tmp_path / "out").exists()


def test_every_run_is_loaded_before_the_first_one_translates(
    source: FilesSource, runs: dict[str, Stub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    runs["f1"], runs["f2"] = Stub(lambda line: read.append(line) or line), Stub(str.upper)
    load = module.SearchTranslator.load

    def damaged(run: Path, **options: Any) -> Any:
        if str(run) == "f2":
            raise Error.NO_CHECKPOINT("no checkpoint verifies", file="f2")
        return load(run, **options)

    monkeypatch.setattr(module.SearchTranslator, "load", damaged)
    with raises_error(Error.NO_CHECKPOINT):
        diversify(source, tmp_path / "out", forward=["f1", "f2"])
    assert read == []


def test_what_was_broken_off_goes_on_and_ends_in_the_same_bytes(
    source: FilesSource, runs: dict[str, Stub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STREAM_LINES", 1)
    asked: list[str] = []
    broken_at = ["b3"]

    def stub(name: str) -> Callable[[str], str]:
        def change(line: str) -> str:
            asked.append(name + line)
            if name + line in broken_at:
                raise KeyboardInterrupt
            return f"{line}-{name}"

        return change

    runs["a"], runs["b"] = Stub(stub("a")), Stub(stub("b"), ("de", "en"))
    (tmp_path / "train.de").write_text("1\n2\n3\n", encoding="utf-8")
    whole, broken = tmp_path / "whole", tmp_path / "new" / "broken"
    with pytest.raises(KeyboardInterrupt):
        diversify(source, broken, forward=["a"], backward=["b"])
    assert asked == ["aone", "atwo", "athree", "b1", "b2", "b3"]
    with (broken / "2-b.part").open("a", encoding="utf-8") as part:
        part.write("half a li")  # as a kill may leave it
    with raises_error(Error.OTHER_CONTENT, "broken"):
        diversify(source, broken, forward=["a"])
    asked.clear()
    broken_at.clear()
    found = diversify(source, broken, forward=["a"], backward=["b"])
    assert asked == ["b3"]
    expected = diversify(source, whole, forward=["a"], backward=["b"])
    assert (found.added, found.pairs) == (expected.added, expected.pairs) == ({"a": 3, "b": 3}, 3)
    assert {path.name: path.read_bytes() for path in broken.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }
    assert sorted(path.name for path in broken.iterdir()) == ["train.de", "train.en"]


def test_a_folder_that_holds_something_stays_as_it_is(
    source: FilesSource, runs: dict[str, Stub], tmp_path: Path
) -> None:
    with raises_error(Error.ALREADY_THERE):
        diversify(source, tmp_path, forward=["f1"])
    with raises_error(Error.MISSING_OPTION):
        diversify(source, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.de", "train.en"]


def test_two_files_of_one_name_get_two(runs: dict[str, Stub], tmp_path: Path) -> None:
    paths = []
    for language, text in (("en", "one\n"), ("de", "eins\n")):
        folder = tmp_path / language
        folder.mkdir()
        (folder / "train.txt").write_text(text, encoding="utf-8")
        paths.append(str(folder / "train.txt"))
    runs["f1"] = Stub(str.upper)
    found = diversify(FilesSource(src=paths[0], tgt=paths[1]), tmp_path / "out", forward=["f1"])
    assert (found.src.name, found.tgt.name) == ("src-train.txt", "tgt-train.txt")


def test_on_the_command_line(
    source: FilesSource,
    runs: dict[str, Stub],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs["f1"] = Stub(str.upper)
    out = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["dragoman", "diversify", source.src, source.tgt, "--forward", "f1", "-o", out])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    told = capsys.readouterr()
    assert (stopped.value.code or 0, told.out) == (0, "")
    assert "6 pairs: 3 of the corpus, 3 by f1" in told.err
