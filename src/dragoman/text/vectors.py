"""Pretrained word vectors in the text format of word2vec and GloVe, of which only the wanted words are kept."""

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from dragoman.errors import Error, show
from dragoman.progress import say
from dragoman.text.lines import find, read_lines


def read_vectors(path: str | Path, words: Collection[str]) -> dict[str, Float32[np.ndarray, " dim"]]:
    """The vectors of the `words` that the file has, as they are written or else lower-cased.

    A line is a word and its numbers, between single spaces; a first line of two whole numbers is word2vec's header,
    count and dimension. Words may have spaces themselves (GloVe 840B has such): the last `dim` fields are the vector.
    Of a word that comes twice, the first counts. The numbers of other words are only counted.

    The file (plain or `.gz`) is read as a stream; how many words were found is told on stderr.
    Raises DragomanError, with file and line, for a line of another length or something else than a finite number.
    """
    path = find(path)
    keep = {form for word in words for form in (word, word.lower())}
    by_form: dict[str, np.ndarray] = {}
    promised: int | None = None
    dim: int | None = None
    read = 0
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2 and all(re.fullmatch("[0-9]{1,15}", field) for field in fields):
            promised, dim = map(int, fields)
            continue
        dim = len(fields) - 1 if dim is None else dim
        _check_length(fields, dim, path, number)
        read += 1
        word = " ".join(fields[:-dim])
        if word in keep and word not in by_form:
            by_form[word] = _vector(fields[-dim:], path, number)
    if promised is not None and promised != read:
        raise Error.DAMAGED(f"line 1 promises {promised:,} vectors, there are {read:,}", "is it cut off?", file=path)
    forms = {word: word if word in by_form else word.lower() for word in words}
    vectors = {word: by_form[form] for word, form in forms.items() if form in by_form}
    lowered = sum(word not in by_form for word in vectors)
    say(
        f"{show(path)}: vectors of {dim} numbers for {len(vectors):,} of {len(words):,} words, "
        f"{lowered:,} of them found lower-cased"
    )
    return vectors


def _check_length(fields: list[str], dim: int, file: Path, line: int) -> None:
    """Fields before the last `dim` are the word; one that is a decimal fraction is a number too many."""
    if dim < 1:
        raise Error.WRONG_SHAPE("expected a word and its numbers between spaces", file=file, line=line)
    if len(fields) <= dim:
        raise Error.WRONG_SHAPE(
            f"{len(fields) - 1} numbers after the word, but the vectors have {dim}", file=file, line=line
        )
    if len(fields) > dim + 1 and "." in fields[-dim - 1] and _is_number(fields[-dim - 1]):
        raise Error.WRONG_SHAPE(f"more numbers than the {dim} that the vectors have", file=file, line=line)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _vector(fields: list[str], file: Path, line: int) -> np.ndarray:
    for field in fields:
        if not _is_number(field):
            raise Error.WRONG_SHAPE(f"{field!r} is not a number", file=file, line=line)
    with np.errstate(over="ignore"):
        vector = np.array([float(field) for field in fields], dtype=np.float32)
    if not np.isfinite(vector).all():
        wrong = fields[int(np.flatnonzero(~np.isfinite(vector))[0])]
        raise Error.WRONG_SHAPE(f"{wrong!r} is not a finite number of 32 bits", file=file, line=line)
    return vector
