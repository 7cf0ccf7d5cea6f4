"""Word vectors: the right numbers for the right words, and every kind of damage told by file and line."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.text.vectors import read_vectors

GLOVE = "the 0.1 -2 3e-1\nHund 1 2 3\n. . 4 5 6\n\u00a0 7 8 9\nhouse 10 11 12\n"


def write(tmp_path: Path, content: str, name: str = "vectors.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return path


def as_lists(vectors: dict[str, np.ndarray]) -> dict[str, list[float]]:
    assert all(vector.dtype == np.float32 for vector in vectors.values())
    return {word: vector.tolist() for word, vector in vectors.items()}


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", ["", "5 3\n"])
def test_wanted_words_are_kept(tmp_path: Path, name: str, header: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, header + GLOVE, name)
    found = as_lists(read_vectors(path, ["The", "Hund", "hund", ". .", "\u00a0", "3"]))
    assert found == {"The": pytest.approx([0.1, -2, 0.3]), "Hund": [1, 2, 3], ". .": [4, 5, 6], "\u00a0": [7, 8, 9]}
    assert capsys.readouterr().err == (f"{path}: vectors of 3 numbers for 4 of 6 words, 1 of them found lower-cased\n")


@pytest.mark.parametrize("content", ["us 1 1\nUS 2 2\nUS 3 3\n", "US 2 2\nus 1 1\nUS 3 3\n"])
def test_the_exact_word_goes_before_the_lower_cased_one_and_the_first_before_the_second(
    tmp_path: Path, content: str
) -> None:
    found = as_lists(read_vectors(write(tmp_path, content), ["US", "us", "Us", "uS"]))
    assert found == {"US": [2, 2], "us": [1, 1], "Us": [1, 1], "uS": [1, 1]}


@settings(max_examples=50)
@given(
    table=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1),
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
        min_size=1,
    ),
    header=st.booleans(),
)
def test_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[float]], header: bool
) -> None:
    lines = [" ".join([word, *map(repr, vector)]) + " \n" for word, vector in table.items()]  # word2vec ends in a space
    content = (f"{len(table)} 4\n" if header else "") + "".join(lines)
    first = next(iter(table))
    if first.startswith("\ufeff"):  # a byte order mark at the start of a file is no part of its text
        return
    assert as_lists(read_vectors(write(tmp_path_factory.mktemp("vectors"), content), set(table))) == table


def test_unwanted_words_are_not_parsed(tmp_path: Path) -> None:
    path = write(tmp_path, "a x y\nb 1 2\n")
    assert as_lists(read_vectors(path, ["b"])) == {"b": [1, 2]}
    assert read_vectors(path, []) == {}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("a 1 2\nb 1\n", (Error.WRONG_SHAPE, "vectors.txt:2")),
        ("2 3\na 1 2 3\nb 1 2\n", (Error.WRONG_SHAPE, "vectors.txt:3")),
        ("a 1 2\nb 0.5 1 2\n", (Error.WRONG_SHAPE, "vectors.txt:2")),
        ("a 1 2\nb -1.5e-3 1 2\n", (Error.WRONG_SHAPE, "vectors.txt:2")),
        ("a 1 2\n\n", (Error.WRONG_SHAPE, "vectors.txt:2")),
        ("a\t1\t2\n", (Error.WRONG_SHAPE, "vectors.txt:1")),
        ("5 0\na\n", (Error.WRONG_SHAPE, "vectors.txt:2")),
        ("a 1 x\n", (Error.WRONG_SHAPE, "vectors.txt:1")),
        ("a 1 2\na nan 2\nb nan 2\n", (Error.WRONG_SHAPE, "vectors.txt:3")),
        ("b 1 -inf\n", (Error.WRONG_SHAPE, "vectors.txt:1")),
        ("b 1 1e39\n", (Error.WRONG_SHAPE, "vectors.txt:1")),
        ("3 2\na 1 2\nb 1 2\n", (Error.DAMAGED, "vectors.txt")),
        ("1 2\na 1 2\nb 1 2\n", (Error.DAMAGED, "vectors.txt")),
        ("", (Error.EMPTY, "vectors.txt")),
    ],
)
def test_damage_is_told_by_file_and_line(tmp_path: Path, content: str, error: tuple[Any, ...]) -> None:
    with raises_error(*error):
        read_vectors(write(tmp_path, content), {"a", "b"})


def test_a_word_may_end_in_a_whole_number(tmp_path: Path) -> None:
    path = write(tmp_path, "a 0.1 0.2\nroute 66 0.3 0.4\n. . . 0.5 0.6\n")
    assert list(read_vectors(path, ["route 66", ". . ."])) == ["route 66", ". . ."]


def test_found_where_corpora_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a 1 2\n")
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    assert as_lists(read_vectors("vectors.txt", ["a"])) == {"a": [1, 2]}
    with raises_error(Error.MISSING_FILE, "other.txt"):
        read_vectors("other.txt", ["a"])
