"""Files and folders through `dragoman translate`: where translations go, what is told, and going on after a stop."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.formats.base import Options
from dragoman.inference.translation import Translation
from dragoman.pipeline.capitals import in_lower_case
from dragoman.pipeline.files import FileOptions, FileTask, tasks_of, translate_files
from dragoman.pipeline.pipeline import Pipeline
from dragoman.pipeline.splitter import Splitter, are_numbers, are_single_sentences
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.serve.document_process import Bounds, DocumentProcess
from dragoman.serve.service import Service


@pytest.fixture(autouse=True)
def _few_texts_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.formats.document.UNITS_AT_A_TIME", 64)


class Upper:
    """A translator into capitals that can be stopped after some sentences."""

    languages = ("en", "de")

    def __init__(self, stop_after: int = 10**9) -> None:
        self.asked: list[str] = []
        self.stop_after = stop_after

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        if len(self.asked) + len(sentences) > self.stop_after:
            raise KeyboardInterrupt
        self.asked += sentences
        return [
            [
                Translation(
                    text.upper() + "!", -1.0, -1.0, (Warning(WarningKind.WORD_DOUBLED, "odd"),) if "odd" in text else ()
                )
            ]
            for text in sentences
        ]


def pipeline(translator: Any) -> Pipeline:
    """A pipeline whose sentences another translator makes."""
    found: Any = Pipeline(SimpleNamespace(languages=("en", "de"), decoding=SimpleNamespace(n_best=1)), None)  # type: ignore[arg-type]
    found = replace(found, own=found.search)
    found.__dict__.update(by_sentence=translator.n_best, carries_codes=False)
    return found


def test_a_file_is_written_whole_and_what_is_doubtful_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "new" / "b.txt"
    source.write_text("One.  Two odd.\n\n123\n", encoding="utf-8")
    assert translate_files(pipeline(Upper()), [FileTask(source, target)], FileOptions(), "x") == 1
    assert target.read_text(encoding="utf-8") == "ONE.!  TWO ODD.!\n\n123\n"
    told = capsys.readouterr().err
    assert "a.txt, line 1: doubled word: odd" in told
    assert "b.txt: 1 texts translated, 1 in doubt" in told
    assert [path.name for path in target.parent.iterdir()] == ["b.txt"]


def test_a_stopped_file_goes_on_and_ends_in_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, whole, target = tmp_path / "a.txt", tmp_path / "whole.txt", tmp_path / "b.txt"
    source.write_text("".join(f"Line {number} here.\n" for number in range(200)), encoding="utf-8")
    translate_files(pipeline(Upper()), [FileTask(source, whole)], FileOptions(), "x")
    with pytest.raises(KeyboardInterrupt):
        translate_files(pipeline(Upper(stop_after=130)), [FileTask(source, target)], FileOptions(), "x")
    assert not target.exists()
    journal = tmp_path / "b.txt.partial"
    assert "goes on" in capsys.readouterr().err
    journal.write_bytes(journal.read_bytes()[:-7])  # the process was killed in the middle of a line
    with raises_error(Error.OTHER_CONTENT, "b.txt.partial"):
        translate_files(pipeline(Upper()), [FileTask(source, target)], FileOptions(resume=True), "another")
    second = Upper()
    translate_files(pipeline(second), [FileTask(source, target)], FileOptions(resume=True), "x")
    assert len(second.asked) == 200 - 127
    assert target.read_bytes() == whole.read_bytes()
    assert not journal.exists()


def test_without_resume_everything_is_begun_again(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("".join(f"Line {number} here.\n" for number in range(100)), encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        translate_files(pipeline(Upper(stop_after=70)), [FileTask(source, target)], FileOptions(), "x")
    again = Upper()
    translate_files(pipeline(again), [FileTask(source, target)], FileOptions(), "x")
    assert len(again.asked) == 100


def test_folders_keep_their_shape_and_a_broken_file_stops_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "in" / "out"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("One.\n", encoding="utf-8")
    (folder / "sub" / "b.md").write_text("# Two\n", encoding="utf-8")
    (folder / "c.txt").write_bytes(b"\xff\n")
    (folder / "d.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("no\n", encoding="utf-8")
    out.mkdir()
    (out / "old.txt").write_text("no\n", encoding="utf-8")
    (folder / "sub" / "t.csv").write_text("a,b\n", encoding="utf-8")
    (folder / "a.txt.partial").write_text("{}\n", encoding="utf-8")
    tasks = tasks_of([folder], FileOptions(out), "de")
    assert [(task.source.name, task.is_copy) for task in tasks] == [
        ("a.txt", False), ("c.txt", False), ("d.png", True), ("b.md", False), ("t.csv", True),
    ]  # fmt: skip
    with raises_error(Error.INCOMPLETE):
        translate_files(pipeline(Upper()), tasks, FileOptions(), "x")
    assert (out / "a.txt").read_text(encoding="utf-8") == "ONE.!\n"
    assert (out / "sub" / "b.md").read_text(encoding="utf-8") == "# TWO!\n"
    assert not (out / "c.txt").exists()
    assert (out / "d.png").read_bytes() == b"\x89PNG"
    assert (out / "sub" / "t.csv").read_text(encoding="utf-8") == "a,b\n"
    assert "2 other files copied" in capsys.readouterr().err
    (folder / "c.txt").write_text("Three.\n", encoding="utf-8")
    again = Upper()
    translate_files(pipeline(again), tasks, FileOptions(resume=True), "x")
    assert again.asked == ["Three."]
    assert "a.txt: is there already" in capsys.readouterr().err


def test_where_translations_go(tmp_path: Path) -> None:
    a, b = tmp_path / "a.docx", tmp_path / "b.pdf"
    for path in (a, b):
        path.touch()
    assert tasks_of([a], FileOptions(), "de") == [FileTask(a, tmp_path / "a.de.docx")]
    assert tasks_of([a], FileOptions(tmp_path / "x.docx"), "de") == [FileTask(a, tmp_path / "x.docx")]
    assert tasks_of([b], FileOptions(), "de") == [FileTask(b, tmp_path / "b.de.txt")]
    into = FileOptions(tmp_path / "out", is_folder=True)
    assert tasks_of([a], into, "de") == [FileTask(a, tmp_path / "out" / "a.docx")]
    assert tasks_of([b], into, "de") == [FileTask(b, tmp_path / "out" / "b.txt")]
    with raises_error(Error.WRONG_FILE_TYPE, "a.docx"):
        tasks_of([b], FileOptions(a, is_folder=True), "de")
    assert [task.target for task in tasks_of([a, b], FileOptions(tmp_path / "out"), "de")] == [
        tmp_path / "out/a.docx",
        tmp_path / "out/b.txt",
    ]
    for paths, output, error in [
        ([a, b], None, (Error.MISSING_OPTION, "-o")),
        ([a, b], a, (Error.WRONG_FILE_TYPE, "a.docx")),
        ([a], a, (Error.SAME_FILE, "a.docx")),
        ([tmp_path / "none"], None, (Error.MISSING_FILE, "none")),
        ([tmp_path / "a.docx", tmp_path / "a.docx"], tmp_path / "out", (Error.CONFLICT, "a.docx")),
    ]:
        with raises_error(*error):
            tasks_of(paths, FileOptions(output), "de")
    (tmp_path / "empty").mkdir()
    with raises_error(Error.EMPTY, "empty"):
        tasks_of([tmp_path / "empty"], FileOptions(tmp_path / "out"), "de")


def test_compiled_files_in_a_folder_are_copied_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a.txt").write_text("One.\n", encoding="utf-8")
    compiled = {
        "a.strings": b"bplist00\xd1\x01\x02", "b.po": b"\xde\x12\x04\x95" + bytes(20), "c.xml": b"\x03\0\x08\0ab",
        "d.json": b"ab\0\0\0\0c",
    }  # fmt: skip
    for name, data in compiled.items():
        (folder / name).write_bytes(data)
    (folder / "e.txt").write_bytes("Two.\n".encode("utf-16-le"))
    options = FileOptions(out)
    assert translate_files(pipeline(Upper()), tasks_of([folder], options, "de"), options, "x") == 0
    said = capsys.readouterr().err
    for name, data in compiled.items():
        assert (out / name).read_bytes() == data
        assert f"{name}: no text, although its name is that of one: copied as it is" in said
    assert (out / "e.txt").read_bytes() == "TWO.!\n".encode("utf-16-le")
    with raises_error(Error.WRONG_FILE_TYPE, "a.strings"):
        translate_files(pipeline(Upper()), tasks_of([folder / "a.strings"], options, "de"), options, "x")


def test_lines_of_several_sentences_are_split_where_training_was_on_single_ones() -> None:
    texts = ["One.  Two.", "Three", "123", "", " Four.\n Five "]
    found = pipeline(Upper()).texts(texts)
    assert [one.items[0].text for one in found] == ["ONE.!  TWO.!", "THREE!", "123", "", " FOUR.!\n FIVE! "]
    assert [(src, tgt) for src, tgt in found[0].sentences] == [((0, 4), (0, 5)), ((6, 10), (7, 12))]
    whole = replace(pipeline(Upper()), sentences=False, numbers=True)
    whole.__dict__["by_sentence"] = Upper().n_best
    assert [one.items[0].text for one in whole.texts(texts)] == [
        "ONE.  TWO.!", "THREE!", "123!", "", " FOUR.!\n FIVE! ",
    ]  # fmt: skip
    assert are_numbers(["1 2 3", "4 5", "x"])
    assert Splitter().is_text("Three")
    assert are_single_sentences(["One.", "Two.", "Three."], "en")
    assert are_single_sentences(["One. Two.", "Three."], "en")
    assert not are_single_sentences(["One. Two.", "Three. Four.", "Five."], "en")
    loud = Upper()
    [[item]] = in_lower_case(loud.n_best, ["OPEN THE {FILE} NOW"])
    assert loud.asked == ["open the {FILE} now"]
    assert item.text == "OPEN THE {FILE} NOW!"
    assert sys.getrecursionlimit()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Name:\tValue", ["Name:", "Value"]),
        ("one<br/>two <b>three</b>", ["one", "two <b>three</b>"]),
        ("<b>One</b>\t<i class=x><u>two</u></i>", ["One", "two"]),
        ("<b>one</b> or <b>two</b>", ["<b>one</b> or <b>two</b>"]),
        ("<p>One.</p><p>Two.</p>", ["One.", "Two."]),
        ("- one\n- two\n\n* three", ["one", "two", "three"]),
        ("– Yes. – No.", ["Yes.", "No."]),
        ("[x] one\t12", ["one", "12"]),
        ("[^1]: one. (2) Two", ["one.", "Two"]),
        ("a) one", ["one"]),
        ("1. Mai", ["1. Mai"]),
        ("One two.\ue100Three.", ["One two.", "Three."]),
        ("One two!\ue100\ue101 Three.", ["One two!", "Three."]),
        ("One two.\ue100", ["One two."]),
        ("see e.g.\ue100and more", ["see e.g.\ue100and more"]),
        ("-5 degrees", ["-5 degrees"]),
        (r"Install to C:\Program Files\NSIS now", [r"Install to C:\Program Files\NSIS now"]),
        (r"See C:\NSIS\N1.txt.\NThen go on", [r"See C:\NSIS\N1.txt.", "Then go on"]),
        ("- ", ["-"]),
    ],
)
def test_breaks_part_texts_and_marks_of_lists_are_no_part_of_one(text: str, pieces: list[str]) -> None:
    for splitter in (Splitter(("en", "de")), Splitter(("en", "zh"))):
        found = splitter.pieces(text)
        assert [piece.text for piece in found] == pieces
        assert splitter.joined(text, found, {piece.text: piece.text for piece in found}).text == text
    assert [piece.text for piece in Splitter(("en", "de"), is_whole=lambda _: True).pieces(text)] == [text.strip()]


def test_blanks_between_sentences_are_those_of_the_source_where_none_changes() -> None:
    for languages, text in (
        (("zh", "en"), "\u4f60\u597d\u3002\u518d\u89c1\u3002"),
        (("en", "zh"), "One two. Three four."),
    ):
        splitter = Splitter(languages)
        pieces = splitter.pieces(text)
        assert len(pieces) == 2
        assert splitter.joined(text, pieces, {piece.text: piece.text for piece in pieces}).text == text
        one_changes = {pieces[0].text: "A.", pieces[1].text: pieces[1].text}
        assert ("A. " in splitter.joined(text, pieces, one_changes).text) == (languages[1] == "en")


@pytest.mark.parametrize(
    "text",
    [
        "PX200/B", "A-100", "SKU", "TRUE", "X", "kg", "12 kg", "DE89 3704 0044 0532 0130 00", "Art.-Nr. 7781-B",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "a@b.com", "100%", "%d MB", "{{name}}", "{a}, %s", "user_name",
        "x86_64", "UTF-8",
    ],
)  # fmt: skip
def test_codes_are_no_text(text: str) -> None:
    assert not Splitter(is_word=lambda letters: letters == "NEW").is_text(text)


@pytest.mark.parametrize(
    "text", ["NEW", "Version 2.3.1 of ABC-123.", "3 cats", "Fig. 3", "2nd", "3-jährig", "24-hour", "5шт", "Word1", "ab"]
)
def test_texts_with_codes_are_texts(text: str) -> None:
    assert Splitter(is_word=lambda letters: letters == "NEW").is_text(text)


def test_a_mistake_of_ours_ends_one_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("One.\n", encoding="utf-8")

    class Broken(Upper):
        def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
            if not self.asked:
                self.asked.append("")
                raise AssertionError("edits\noverlap")
            return super().n_best(sentences)

    tasks = tasks_of([tmp_path / "a.txt", tmp_path / "b.txt"], FileOptions(tmp_path / "out"), "de")
    with raises_error(Error.INCOMPLETE, "a.txt", "edits overlap"):
        translate_files(pipeline(Broken()), tasks, FileOptions(), "x")
    assert (tmp_path / "out" / "b.txt").read_text(encoding="utf-8") == "ONE.!\n"
    with raises_error(Error.FAULT, "a.txt"):
        translate_files(pipeline(Broken()), tasks[:1], FileOptions(), "x")


def test_a_folder_bilingual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "b.json").write_text('{"a": "one"}')
    (folder / "c.md").write_text("# one\n")
    options = FileOptions(tmp_path / "out", bilingual=True)
    with raises_error(Error.INCOMPLETE, "b.json"):
        translate_files(pipeline(Upper()), tasks_of([folder], options, "en-de"), options, "x")
    assert (tmp_path / "out" / "a.txt").read_text() == "one\nONE!\n"
    assert (tmp_path / "out" / "c.md").read_text() == "# one<br>ONE!\n"
    assert not (tmp_path / "out" / "b.json").exists()
    assert "bilingual" in capsys.readouterr().err


def test_a_bilingual_file_through_another_language_has_the_first_and_the_last(tmp_path: Path) -> None:
    class Other(Upper):
        def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
            return [[replace(items[0], text=f"{text}?", warnings=())]
                    for text, items in zip(sentences, super().n_best(sentences), strict=True)]  # fmt: skip

    legs = {"first": pipeline(Upper()), "second": pipeline(Other())}
    service: Any = SimpleNamespace(route=lambda *_: list(legs), _pipeline=lambda _, name, *__: legs[name])
    handle: Any = SimpleNamespace(check=lambda: None)
    options = Options(bilingual=True)
    for name, text, expected in (
        ("a.md", "# One\n\nTwo\n", "# One<br>ONE!?\n\nTwo\n\nTWO!?\n"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nOne\n", "1\n00:00:01,000 --> 00:00:02,000\nOne\nONE!?\n"),
        ("a.html", "<p>One</p>", '<p lang="en">One</p>\n<p lang="fr">ONE!?</p>'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with DocumentProcess(tmp_path / name, tmp_path / "result", options, Bounds()) as document:
            report = Service.translate_document(service, handle, "en", "fr", document)
        assert (tmp_path / "result").read_text(encoding="utf-8") == expected
        assert len(report.doubts) == 0
    (tmp_path / "b.txt").write_text("odd one\n", encoding="utf-8")
    with DocumentProcess(tmp_path / "b.txt", tmp_path / "result", options, Bounds()) as document:
        report = Service.translate_document(service, handle, "en", "fr", document)
    assert [doubt.text for doubt in report.doubts] == ["odd one"]
