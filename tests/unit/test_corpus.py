"""Reading pairs: what is kept as it is, and what each kind of damage is told as."""

import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.config import parse, to_dict
from dragoman.errors import Error
from dragoman.text.corpus import CorpusConfig, DemoSource, FilesSource, JsonlSource, Pair, Source, TsvSource
from dragoman.text.labelled import LanguagesSource
from dragoman.text.lines import find, lines_in, read_lines
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.sources.base import files_of, fingerprint

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: bytes | str, name: str = "text.de") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def tsv(path: Path, **columns: int) -> list[Pair]:
    return list(TsvSource(path=str(path), **columns).pairs())


def jsonl(path: Path) -> list[Pair]:
    return list(JsonlSource(path=str(path)).pairs())


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("ein Hund\nzwei\n", ["ein Hund", "zwei"]),
        ("no final line end", ["no final line end"]),
        ("\n\n", ["", ""]),
        ("windows\r\nlines\r\n", ["windows", "lines"]),
        ("two\r\r\n", ["two\r"]),
        ("lone\rreturn\n", ["lone\rreturn"]),
        ("a\u2028b\u2029c\x85d\ve\ff\x1cg\n", ["a\u2028b\u2029c\x85d\ve\ff\x1cg"]),
        ("\ufeffmark\nin \ufeffside\n", ["mark", "in \ufeffside"]),
        (" \t \n", [" \t "]),
        ("e\u0301 A\u030a \u200b\u200f \ue000\n", ["e\u0301 A\u030a \u200b\u200f \ue000"]),
    ],
)
def test_lines_are_kept_as_they_are(write: Write, content: str, lines: list[str]) -> None:
    assert list(read_lines(write(content))) == lines
    assert list(read_lines(write(gzip.compress(content.encode()), "text.gz"))) == lines


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0\ufeff")), min_size=1))
def test_lines_come_back(lines: list[str]) -> None:
    stream = io.BytesIO("".join(line + "\n" for line in lines).encode())
    assert list(lines_in(stream, "memory")) == lines


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"gut\nsch\xf6n\n", (Error.NOT_UTF8, "text.de:2")),
        (b"gut\ngut\xc3", (Error.DAMAGED, "text.de:2")),
        (b"\xc0\xafx\n", (Error.NOT_UTF8, "text.de:1")),
        (b"\xed\xa0\x80\n", (Error.NOT_UTF8, "text.de:1")),
        (b"\xff\xff\xff\n", (Error.NOT_UTF8, "text.de:1")),
        ("Hund\n".encode("utf-16"), (Error.NOT_UTF8, "text.de")),
        ("Hund\n".encode("utf-16-be"), (Error.NOT_UTF8, "text.de")),
        ("Hund\nHund\n".encode("utf-16-le"), (Error.NOT_UTF8, "text.de")),
        (b"ein\nein Hund\0 und\n", (Error.NOT_TEXT, "text.de:2")),
        (b"ein\na\0\n", (Error.NOT_TEXT, "text.de:2")),
        (b"", (Error.EMPTY, "text.de")),
        (b"PK\x03\x04rest", (Error.WRONG_FILE_TYPE, "text.de")),
        (b"\xfd7zXZ\x00rest", (Error.WRONG_FILE_TYPE, "text.de")),
        (b"\x28\xb5\x2f\xfdrest", (Error.WRONG_FILE_TYPE, "text.de")),
        (gzip.compress(b"Hund\n", mtime=0), (Error.WRONG_FILE_TYPE, "text.de")),
    ],
)
def test_what_is_no_utf8_text_is_refused(write: Write, content: bytes, error: tuple[Any, ...]) -> None:
    with raises_error(*error) as caught:
        list(read_lines(write(content)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (gzip.compress(b"Hund\n", mtime=0), (Error.WRONG_FILE_TYPE, "standard input")),
        (b"PK\x03\x04rest", (Error.WRONG_FILE_TYPE, "standard input")),
        (b"BZh9", (Error.WRONG_FILE_TYPE, "standard input")),
    ],
)
def test_a_stream_that_is_packed_is_refused(content: bytes, error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        list(lines_in(io.BytesIO(content), "standard input"))


def test_damaged_gzip_is_refused(write: Write) -> None:
    rng = random.Random(1)  # incompressible, so that the stream has many bytes to lose
    whole = gzip.compress("".join(f"{rng.random()}\n" for _ in range(5000)).encode())
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    damages = {
        whole[: len(whole) // 2]: Error.DAMAGED,
        bytes(flipped): Error.DAMAGED,
        whole + b"garbage": Error.DAMAGED,
        b"plain text\n": Error.WRONG_FILE_TYPE,
        gzip.compress(b""): Error.EMPTY,
    }
    for content, code in damages.items():
        with raises_error(code, "text.gz"):
            list(read_lines(write(content, "text.gz")))
    assert list(read_lines(write(gzip.compress(b"a\n") + gzip.compress(b"b\n"), "text.gz"))) == ["a", "b"]


def test_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    monkeypatch.setattr("dragoman.text.lines.MAX_LINE_BYTES", 100)
    assert list(read_lines(write("x" * 99 + "\n"))) == ["x" * 99]
    with raises_error(Error.TOO_LARGE, "text.de:2"):
        list(read_lines(write("a\n" + "x" * 101)))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with raises_error(Error.WRONG_FILE_TYPE):
        list(read_lines(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with raises_error(Error.WRONG_FILE_TYPE):
            list(read_lines(path))
    with raises_error(Error.CANNOT_READ, "missing"):
        list(read_lines(tmp_path / "missing"))
    with raises_error(Error.CANNOT_READ):
        list(read_lines(tmp_path / "two\nlines"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(write: Write) -> None:
    path = write("text")
    path.chmod(0)
    with raises_error(Error.CANNOT_READ):
        list(read_lines(path))


def test_find_looks_in_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, corpora = tmp_path / "here", tmp_path / "corpora"
    for folder in (here / "data", corpora):
        folder.mkdir(parents=True)
        (folder / "a.de").write_text("x")
    monkeypatch.chdir(here)
    monkeypatch.delenv("DRAGOMAN_DATA", raising=False)
    assert find("a.de") == Path("data/a.de")
    monkeypatch.setenv("DRAGOMAN_DATA", str(corpora))
    assert find("a.de") == corpora / "a.de"
    (here / "a.de").write_text("x")
    assert find("a.de") == Path("a.de")
    assert find(corpora / "a.de") == corpora / "a.de"
    with raises_error(Error.MISSING_FILE, "b.de"):
        find("b.de")
    (here / "a.de").unlink()
    with raises_error(Error.MISSING_FILE, "a.de.gz"):
        find("a.de.gz")
    (here / "link").symlink_to("nowhere")
    (here / "loop").symlink_to("loop")
    for name in ("link", "loop"):
        with raises_error(Error.MISSING_FILE):
            find(name)


@pytest.mark.parametrize(("src_lines", "tgt_lines"), [(3, 4), (4, 3), (1, 1200), (0, 2)])
def test_unequal_counts_stop_with_both(write: Write, src_lines: int, tgt_lines: int) -> None:
    src, tgt = write("a\n" * src_lines or "\n", "train.de"), write("b\n" * tgt_lines, "train.en")
    rf"train.de has {max(src_lines, 1):,} lines but .*train.en has {tgt_lines:,}: line n of one must be"
    with raises_error(Error.UNEQUAL_COUNTS, "train.de"):
        list(FilesSource(src=str(src), tgt=str(tgt)).pairs())


def test_pairs_of_files_keep_blank_lines(write: Write) -> None:
    src, tgt = write("ein\n\nzwei", "a.de"), write("one\r\nx\r\n\r\n", "a.en")
    source = FilesSource(src=str(src), tgt=str(tgt))
    assert list(source.pairs()) == [Pair(1, "ein", "one"), Pair(2, "", "x"), Pair(3, "zwei", "")]
    assert files_of(source) == [src, tgt]
    with raises_error(Error.SAME_FILE, "a.de"):
        list(FilesSource(src=str(src), tgt=str(src)).pairs())


def test_tsv(write: Write) -> None:
    path = write('id\t"ein" Hund\ta dog\n1\t\tx\u2028y\n')
    assert tsv(path, src_column=2, tgt_column=3) == [Pair(1, '"ein" Hund', "a dog"), Pair(2, "", "x\u2028y")]
    assert tsv(path, src_column=3, tgt_column=1)[0] == Pair(1, "a dog", "id")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("ein Hund\n", (Error.WRONG_SHAPE, "text.de:1")),
        ("a\tb\nc\n", (Error.WRONG_SHAPE, "text.de:2")),
        ("a\tb\nc\td\te\n", (Error.WRONG_SHAPE, "text.de:2")),
        ("a\tb\tc\nd\te\n", (Error.WRONG_SHAPE, "text.de:2")),
        ("a\tb\n\n", (Error.WRONG_SHAPE, "text.de:2")),
        ("a\tb\nc\td\re\n", (Error.WRONG_SHAPE, "text.de:2")),
    ],
)
def test_ragged_tsv_is_refused(write: Write, content: str, error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        tsv(write(content))


def test_jsonl(write: Write) -> None:
    path = write('{"src": "ein\\u2028Hund", "tgt": "a dog", "id": 7}\n{"tgt": "", "src": "\\ud83d\\ude00"}\n')
    assert jsonl(path) == [Pair(1, "ein\u2028Hund", "a dog"), Pair(2, "😀", "")]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"src": "a", "tgt": ', (Error.BAD_SYNTAX, "text.de:2")),
        ("", (Error.BLANK, "text.de:2")),
        ('["a", "b"]', (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": "a"}', (Error.WRONG_SHAPE, "text.de:2")),
        ("{}", (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": null, "tgt": "b"}', (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": "a", "tgt": 3}', (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": "a", "tgt": ["b"]}', (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": "a", "tgt": true}', (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": "a", "tgt": "b", "src": "c"}', (Error.BAD_SYNTAX, "text.de:2")),
        ('{"src": "a\\u0000", "tgt": "b"}', (Error.NOT_TEXT, "text.de:2")),
        ('{"src": "a", "tgt": "\\ud83d"}', (Error.NOT_TEXT, "text.de:2")),
        ('{"src": "a\\nb", "tgt": "c"}', (Error.WRONG_SHAPE, "text.de:2")),
        ('{"src": "a", "tgt": "c\\r"}', (Error.WRONG_SHAPE, "text.de:2")),
        ("[" * 100_000, (Error.BAD_SYNTAX, "text.de:2")),
    ],
)
def test_broken_jsonl_is_refused(write: Write, line: str, error: tuple[Any, ...]) -> None:
    with raises_error(*error) as caught:
        jsonl(write('{"src": "a", "tgt": "b"}\n' + line + "\n"))
    assert "\n" not in str(caught.value)


def test_demo_is_made_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def sentences(pair: str, split: str, size: int | None, seed: int) -> Iterator[tuple[str, str]]:
        yield from [(f"{pair} {split}", f"{size} {seed}")] * 2

    monkeypatch.setattr("dragoman.corpora.embedded.sentences", sentences)
    source = DemoSource(split="valid", size=2)
    assert list(source.pairs()) == [Pair(1, "de-en valid", "2 1"), Pair(2, "de-en valid", "2 1")]
    assert files_of(source) == []
    assert fingerprint(source) == fingerprint(DemoSource(split="valid", size=2))
    assert fingerprint(source) != fingerprint(DemoSource(split="train", size=2))


def test_fingerprint_covers_settings_and_content(write: Write) -> None:
    path = write("a\tb\tc\n")
    source: Source = TsvSource(path=str(path))
    first = fingerprint(source)
    assert first == fingerprint(source)
    assert first != fingerprint(TsvSource(path=str(path), tgt_column=3))
    write("a\tb\td\n")
    assert first != fingerprint(source)
    with raises_error(Error.WRONG_FILE_TYPE):
        fingerprint(TsvSource(path=str(path.parent)))


def test_fingerprint_goes_by_bytes_and_their_roles_not_by_paths(write: Write) -> None:
    a, b, copy = str(write("a\n", "a")), str(write("b\n", "b")), str(write("a\n", "copy"))
    assert fingerprint(FilesSource(src=a, tgt=b)) == fingerprint(FilesSource(src=copy, tgt=b))
    assert fingerprint(FilesSource(src=a, tgt=b)) != fingerprint(FilesSource(src=b, tgt=a))
    languages = LanguagesSource(files={"de": [a], "en": [b]})
    assert fingerprint(languages) == fingerprint(LanguagesSource(files={"de": [copy], "en": [b]}))
    assert fingerprint(languages) != fingerprint(LanguagesSource(files={"en": [a], "de": [b]}))
    assert languages.contents().keys() == {"files.de", "files.en"}
    assert DemoSource(split="train").contents() == {}


def test_settings() -> None:
    files = {"type": "files", "src": "a.de", "tgt": "a.en"}
    data = {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": {"type": "demo", "split": "valid"}}
    config = parse(CorpusConfig, data)
    assert config.train == FilesSource(src="a.de", tgt="a.en")
    assert config.test == {}
    assert parse(CorpusConfig, to_dict(config)) == config
    tsv_data = {"type": "tsv", "path": "x", "src_column": 2}
    with raises_error(Error.WRONG_SETTING):
        parse(CorpusConfig, {**data, "train": tsv_data})
    with raises_error(Error.WRONG_SETTING, "src_column"):
        parse(CorpusConfig, {**data, "train": {**tsv_data, "src_column": 0}})


def test_normalizers() -> None:
    text = "e\u0301 ﬁ Ａ"
    assert [NORMALIZERS[name](text) for name in ("none", "nfc", "nfkc")] == [text, "é ﬁ Ａ", "é fi A"]
