"""Reading pairs: what is kept as it is, and what each kind of damage is told as."""

import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import parse, to_dict
from dragoman.errors import DragomanError
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


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0\ufeff")), min_size=1))
def test_lines_come_back(lines: list[str]) -> None:
    stream = io.BytesIO("".join(line + "\n" for line in lines).encode())
    assert list(lines_in(stream, "memory")) == lines


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"gut\nsch\xf6n\n", r"text.de:2: byte 4 of the line \(0xF6\) is not UTF-8 .*WINDOWS-1252"),
        (b"gut\ngut\xc3", r"text.de:2: ends in the middle of a character"),
        (b"\xc0\xafx\n", r"text.de:1: byte 1 .* not UTF-8"),
        (b"\xed\xa0\x80\n", r"text.de:1: byte 1 .* not UTF-8"),
        (b"\xff\xff\xff\n", r"text.de:1: byte 1 .* not UTF-8"),
        ("Hund\n".encode("utf-16"), r"text.de looks like UTF-16: convert it with `iconv -f UTF-16"),
        ("Hund\n".encode("utf-16-be"), r"text.de looks like UTF-16"),
        ("Hund\nHund\n".encode("utf-16-le"), r"text.de looks like UTF-16"),
        (b"ein\nein Hund\0 und\n", r"text.de:2: a NUL byte \(byte 9 of the line\)"),
        (b"ein\na\0\n", r"text.de:2: a NUL byte \(byte 2 of the line\)"),
        (b"", r"text.de is empty"),
        (b"PK\x03\x04rest", r"text.de is a zip file"),
        (b"\xfd7zXZ\x00rest", r"text.de is xz data: rename it to text.de.xz"),
        (b"\x28\xb5\x2f\xfdrest", r"text.de is zstd data: rename it to text.de.zst"),
        (gzip.compress(b"Hund\n", mtime=0), r"text.de is gzip data: rename it to text.de.gz"),
    ],
)
def test_what_is_no_utf8_text_is_refused(write: Write, content: bytes, complaint: str) -> None:
    with pytest.raises(DragomanError, match=complaint) as caught:
        list(read_lines(write(content)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(gzip.compress(b"Hund\n", mtime=0), "gzip data"), (b"PK\x03\x04rest", "a zip file"), (b"BZh9", "bzip2 data")],
)
def test_a_stream_that_is_packed_is_refused(content: bytes, kind: str) -> None:
    with pytest.raises(DragomanError, match=f"^standard input is {kind}: unpack it first"):
        list(lines_in(io.BytesIO(content), "standard input"))


def test_damaged_gzip_is_refused(write: Write) -> None:
    rng = random.Random(1)  # incompressible, so that the stream has many bytes to lose
    whole = gzip.compress("".join(f"{rng.random()}\n" for _ in range(5000)).encode())
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    damages = {
        "is cut off after line": whole[: len(whole) // 2],
        "is damaged .* after line": bytes(flipped),
        "is damaged .* after line 5,000": whole + b"garbage",
        "not gzip data, although its name ends in .gz": b"plain text\n",
        "text.gz is empty": gzip.compress(b""),
    }
    for complaint, content in damages.items():
        with pytest.raises(DragomanError, match=complaint):
            list(read_lines(write(content, "text.gz")))
    assert list(read_lines(write(gzip.compress(b"a\n") + gzip.compress(b"b\n"), "text.gz"))) == ["a", "b"]


def test_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    monkeypatch.setattr("dragoman.text.lines.MAX_LINE_BYTES", 100)
    assert list(read_lines(write("x" * 99 + "\n"))) == ["x" * 99]
    with pytest.raises(DragomanError, match=r"text.de:2: a line of more than 100 bytes"):
        list(read_lines(write("a\n" + "x" * 101)))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DragomanError, match="is a directory"):
        list(read_lines(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(DragomanError, match="is a pipe or device"):
            list(read_lines(path))
    with pytest.raises(DragomanError, match="cannot be read: No such file"):
        list(read_lines(tmp_path / "missing"))
    with pytest.raises(DragomanError, match=r"'.*two\\nlines': cannot be read"):
        list(read_lines(tmp_path / "two\nlines"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(write: Write) -> None:
    path = write("text")
    path.chmod(0)
    with pytest.raises(DragomanError, match="Permission denied"):
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
    with pytest.raises(
        DragomanError, match=rf"b.de: no such file; looked for b.de, {corpora}/b.de, data/b.de \(.*DATA"
    ):
        find("b.de")
    (here / "a.de").unlink()
    with pytest.raises(DragomanError, match=rf"no such file: did you mean {corpora}/a.de\?"):
        find("a.de.gz")
    (here / "link").symlink_to("nowhere")
    (here / "loop").symlink_to("loop")
    for name in ("link", "loop"):
        with pytest.raises(DragomanError, match=f"{name} is a symbolic link"):
            find(name)


@pytest.mark.parametrize(("src_lines", "tgt_lines"), [(3, 4), (4, 3), (1, 1200), (0, 2)])
def test_unequal_counts_stop_with_both(write: Write, src_lines: int, tgt_lines: int) -> None:
    src, tgt = write("a\n" * src_lines or "\n", "train.de"), write("b\n" * tgt_lines, "train.en")
    expected = rf"train.de has {max(src_lines, 1):,} lines but .*train.en has {tgt_lines:,}: line n of one must be"
    with pytest.raises(DragomanError, match=expected):
        list(FilesSource(src=str(src), tgt=str(tgt)).pairs())


def test_pairs_of_files_keep_blank_lines(write: Write) -> None:
    src, tgt = write("ein\n\nzwei", "a.de"), write("one\r\nx\r\n\r\n", "a.en")
    source = FilesSource(src=str(src), tgt=str(tgt))
    assert list(source.pairs()) == [Pair(1, "ein", "one"), Pair(2, "", "x"), Pair(3, "zwei", "")]
    assert files_of(source) == [src, tgt]
    with pytest.raises(DragomanError, match="both src and tgt"):
        list(FilesSource(src=str(src), tgt=str(src)).pairs())


def test_tsv(write: Write) -> None:
    path = write('id\t"ein" Hund\ta dog\n1\t\tx\u2028y\n')
    assert tsv(path, src_column=2, tgt_column=3) == [Pair(1, '"ein" Hund', "a dog"), Pair(2, "", "x\u2028y")]
    assert tsv(path, src_column=3, tgt_column=1)[0] == Pair(1, "a dog", "id")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("ein Hund\n", "text.de:1: 1 tab-separated column, but column 2 is asked for"),
        ("a\tb\nc\n", "text.de:2: 1 tab-separated column, but column 2"),
        ("a\tb\nc\td\te\n", "text.de:2: 3 tab-separated columns, but line 1 has 2: is there a tab"),
        ("a\tb\tc\nd\te\n", "text.de:2: 2 tab-separated columns, but line 1 has 3"),
        ("a\tb\n\n", "text.de:2: 1 tab-separated column"),
        ("a\tb\nc\td\re\n", "text.de:2: a line break inside of a text"),
    ],
)
def test_ragged_tsv_is_refused(write: Write, content: str, complaint: str) -> None:
    with pytest.raises(DragomanError, match=complaint):
        tsv(write(content))


def test_jsonl(write: Write) -> None:
    path = write('{"src": "ein\\u2028Hund", "tgt": "a dog", "id": 7}\n{"tgt": "", "src": "\\ud83d\\ude00"}\n')
    assert jsonl(path) == [Pair(1, "ein\u2028Hund", "a dog"), Pair(2, "😀", "")]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"src": "a", "tgt": ', "not a JSON object: Expecting value"),
        ("", "blank"),
        ('["a", "b"]', "expected a JSON object, found a list"),
        ('{"src": "a"}', "no key 'tgt'; it has 'src'"),
        ("{}", "no key 'src'; it has none"),
        ('{"src": null, "tgt": "b"}', "'src' must be a string, found null"),
        ('{"src": "a", "tgt": 3}', "'tgt' must be a string, found a number"),
        ('{"src": "a", "tgt": ["b"]}', "'tgt' must be a string, found a list"),
        ('{"src": "a", "tgt": true}', "'tgt' must be a string, found true or false"),
        ('{"src": "a", "tgt": "b", "src": "c"}', "key 'src' twice"),
        ('{"src": "a\\u0000", "tgt": "b"}', "'src' holds a NUL character"),
        ('{"src": "a", "tgt": "\\ud83d"}', "'tgt' holds .* half a surrogate pair"),
        ('{"src": "a\\nb", "tgt": "c"}', "'src': a line break inside of a text"),
        ('{"src": "a", "tgt": "c\\r"}', "'tgt': a line break inside of a text"),
        ("[" * 100_000, "not a JSON object"),
    ],
)
def test_broken_jsonl_is_refused(write: Write, line: str, complaint: str) -> None:
    with pytest.raises(DragomanError, match=f"text.de:2: .*{complaint}|text.de:2: {complaint}") as caught:
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
    with pytest.raises(DragomanError, match="is a directory"):
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
    with pytest.raises(DragomanError, match="src_column and tgt_column must differ"):
        parse(CorpusConfig, {**data, "train": tsv_data})
    with pytest.raises(DragomanError, match="src_column"):
        parse(CorpusConfig, {**data, "train": {**tsv_data, "src_column": 0}})


def test_normalizers() -> None:
    text = "e\u0301 ﬁ Ａ"
    assert [NORMALIZERS[name](text) for name in ("none", "nfc", "nfkc")] == [text, "é ﬁ Ａ", "é fi A"]
