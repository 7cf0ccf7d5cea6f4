"""Labelled texts: what each source yields, and what each kind of damage is told as."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.config import parse, settings, to_dict
from dragoman.corpora import embedded
from dragoman.errors import Error
from dragoman.text.labelled import (
    ConcatSource,
    EmbeddedLanguagesSource,
    Example,
    ExampleSource,
    LabelledSource,
    LanguagesSource,
)
from dragoman.text.sources.base import files_of, fingerprint


@settings
class Holder:
    """A recipe in small: the union of sources as a recipe has it."""

    train: ExampleSource


def source_of(data: dict[str, Any]) -> ExampleSource:
    return parse(Holder, {"train": data}).train


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of corpora with a few files."""
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    files = {"trec.tsv": "0\tWhat is it ?\n1\tWho\tis\u2028it ?\r\n", "a.en": "one\n\n \ntwo\n", "b.en": "three\n",
             "a.de": "eins\nzwei\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    (tmp_path / "trec.tsv.gz").write_bytes(gzip.compress(files["trec.tsv"].encode()))
    return tmp_path


@pytest.mark.parametrize("name", ["trec.tsv", "trec.tsv.gz"])
def test_labelled_lines(name: str, data: Path) -> None:
    source = source_of({"type": "labelled", "path": name})
    assert list(source.examples()) == [Example(1, "0", "What is it ?"), Example(2, "1", "Who\tis\u2028it ?")]
    assert files_of(source) == [data / name]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"no tab", (Error.WRONG_SHAPE, "bad.tsv:2")),
        (b"", (Error.WRONG_SHAPE, "bad.tsv:2")),
        (b"\ttext", (Error.WRONG_SHAPE, "bad.tsv:2")),
        (b" \ttext", (Error.WRONG_SHAPE, "bad.tsv:2")),
        (b"0\t", (Error.WRONG_SHAPE, "bad.tsv:2")),
        (b"0\t \t", (Error.WRONG_SHAPE, "bad.tsv:2")),
        (b"0\tsch\xf6n", (Error.NOT_UTF8, "bad.tsv:2")),
    ],
)
def test_damaged_lines_are_told_by_file_and_line(line: bytes, error: tuple[Any, ...], data: Path) -> None:
    (data / "bad.tsv").write_bytes(b"0\tfine\n" + line + b"\n")
    examples = LabelledSource(path="bad.tsv").examples()
    assert next(examples) == Example(1, "0", "fine")
    with raises_error(*error):
        next(examples)


def test_languages_are_the_labels_of_their_files(data: Path) -> None:
    source = source_of({"type": "languages", "files": {"en": ["a.en", "b.en"], "de": "a.de"}})
    assert list(source.examples()) == [
        Example(1, "en", "one"), Example(4, "en", "two"), Example(1, "en", "three"),
        Example(1, "de", "eins"), Example(2, "de", "zwei"),
    ]  # fmt: skip
    assert files_of(source) == [data / "a.en", data / "b.en", data / "a.de"]
    assert parse(Holder, to_dict(Holder(train=source))).train == source


@pytest.mark.parametrize(("limit", "texts"), [(1, ["one", "eins"]), (2, ["one", "two", "eins", "zwei"])])
def test_limit_is_for_each_language(limit: int, texts: list[str]) -> None:
    source = LanguagesSource(files={"en": ["a.en", "b.en"], "de": ["a.de"]}, limit=limit)
    assert [example.text for example in source.examples()] == texts


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"type": "languages", "files": {}}, (Error.WRONG_SETTING, "train.files")),
        ({"type": "languages", "files": {"en": []}}, (Error.WRONG_SETTING, "train.files.en")),
        ({"type": "languages", "files": {"en": 3}}, (Error.WRONG_SETTING, "train.files.en")),
        ({"type": "languages", "files": {"en": "a.en"}, "limit": 0}, (Error.WRONG_SETTING, "train.limit")),
        ({"type": "languages", "files": {"en": "a.en", "de": "a.en"}}, (Error.WRONG_SETTING, "a.en")),
        ({"type": "language", "files": {}}, (Error.WRONG_SETTING, "languages")),
        ({"type": "concat", "sources": []}, (Error.WRONG_SETTING, "train.sources")),
        (
            {"type": "concat", "sources": [{"type": "labelled", "pth": "x"}]},
            (Error.UNKNOWN_SETTING, "train.sources.0.pth", "path"),
        ),
        ({"type": "concat", "sources": [{"type": "concat", "sources": []}]}, (Error.WRONG_SETTING, "concat")),
        ({"type": "embedded_languages", "split": "dev"}, (Error.WRONG_SETTING, "train.split")),
    ],
)
def test_settings_that_make_no_sense_are_refused(data: dict[str, Any], error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        source_of(data)


@pytest.mark.parametrize("source", [LabelledSource(path="x"), LanguagesSource(files={"en": ["x"]})])
def test_a_missing_file_is_told_with_the_places_looked_at(source: ExampleSource) -> None:
    with raises_error(Error.MISSING_FILE, "x"):
        list(source.examples())


def test_embedded_languages_in_turn() -> None:
    examples = list(EmbeddedLanguagesSource(split="valid", size=20, seed=3).examples())
    assert [example.label for example in examples] == ["de", "en", "zh"] * 20
    assert [example.line for example in examples] == [line for line in range(1, 21) for _ in range(3)]
    german, chinese = (list(embedded.sentences(pair, "valid", 20, 3)) for pair in ("de-en", "zh-en"))
    by_label = {label: [text for _, of, text in examples if of == label] for label in ("de", "en", "zh")}
    assert by_label["de"] == [src for src, _ in german]
    assert by_label["zh"] == [src for src, _ in chinese]
    assert by_label["en"][0::2] == [tgt for _, tgt in german[0::2]]
    assert by_label["en"][1::2] == [tgt for _, tgt in chinese[1::2]]


def test_concat_reads_one_after_another_and_its_fingerprint_covers_every_part(data: Path) -> None:
    parts = [
        {"type": "labelled", "path": "trec.tsv"},
        {"type": "languages", "files": {"de": "a.de"}},
        {"type": "embedded_languages", "split": "test", "size": 1},
    ]
    source = source_of({"type": "concat", "sources": parts})
    assert isinstance(source, ConcatSource)
    examples = list(source.examples())
    assert examples == [example for part in parts for example in source_of(part).examples()]
    assert [example.label for example in examples] == ["0", "1", "de", "de", "de", "en", "zh"]
    assert files_of(source) == [data / "trec.tsv", data / "a.de"]
    first = fingerprint(source)
    assert first == fingerprint(source_of({"type": "concat", "sources": parts}))
    (data / "a.de").write_text("eins\ndrei\n", encoding="utf-8")
    assert fingerprint(source) != first


def test_fingerprint_of_made_text_changes_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    made: ExampleSource = EmbeddedLanguagesSource(split="test")
    sources = {"made": made, "both": ConcatSource(sources=[made]), "file": LabelledSource(path="trec.tsv")}
    before = {name: fingerprint(source) for name, source in sources.items()}
    monkeypatch.setattr("dragoman.text.sources.base.__version__", "another")
    changed = {name for name, source in sources.items() if fingerprint(source) != before[name]}
    assert changed == {"made", "both"}
