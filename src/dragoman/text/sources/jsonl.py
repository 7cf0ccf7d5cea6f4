"""Pairs in a file of one JSON object a line. A record without its text stops the reading."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from dragoman.config import settings
from dragoman.errors import DragomanError, Error
from dragoman.runs.atomic_io import json_problem
from dragoman.text.lines import find, read_lines, refuse_array
from dragoman.text.sources.base import Pair, SingleFileSource, check_one_line


@settings
class JsonlSource(SingleFileSource):
    """One JSON object a line, with the two texts under two keys; other keys are ignored.

    `translation.de` is the key `de` of an object under `translation`.
    """

    type: Literal["jsonl"] = "jsonl"
    path: str  #: The file, plain or `.gz`.
    src_key: str = "src"  #: Key of the source.
    tgt_key: str = "tgt"  #: Key of the target.
    document_key: str | None = None
    """Key of the name of a pair's document, for `corpus.context`; null: the file is one."""

    def __post_init__(self) -> None:
        if self.src_key == self.tgt_key:
            raise ValueError("src_key and tgt_key must differ")

    def first(self) -> dict[str, Any]:
        """The first record; empty where it cannot be read, which `read` says."""
        record = None
        with contextlib.suppress(DragomanError, ValueError, RecursionError):
            record = json.loads(next(read_lines(find(self.path))))
        return record if isinstance(record, dict) else {}

    def read(self, path: Path) -> Iterator[Pair]:
        for number, line in enumerate(read_lines(path), start=1):
            try:
                record = json.loads(line, object_pairs_hook=_distinct)
            except (ValueError, RecursionError) as error:
                if not line.strip():
                    raise Error.BLANK("blank", file=path, line=number) from error
                if number == 1:
                    refuse_array(line, path)
                raise Error.BAD_SYNTAX(f"not a JSON object: {json_problem(error)}", file=path, line=number) from error
            if number == 1:
                refuse_array(line, path)
            if not isinstance(record, dict):
                raise Error.WRONG_SHAPE(f"expected a JSON object, found {_json_type(record)}", file=path, line=number)
            src, tgt = (text_of(record, key, path, number) for key in (self.src_key, self.tgt_key))
            document = "" if self.document_key is None else text_of(record, self.document_key, path, number)
            yield Pair(number, src, tgt, document=document)


def _distinct(items: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(items)
    if len(record) < len(items):
        names = [key for key, _ in items]
        raise ValueError(f"key {next(key for key in names if names.count(key) > 1)!r} twice")
    return record


def text_of(record: dict[str, Any], key: str, file: Path, line: int) -> str:
    """The text under a key of a record, or under a key of an object in it (`translation.de`)."""
    for outer in key.split(".")[:-1] if key not in record else ():
        if not isinstance(record.get(outer), dict):
            break
        record, key = record[outer], key.partition(".")[2]
    if key not in record:
        raise Error.WRONG_SHAPE(
            f"no key {key!r}; it has {', '.join(map(repr, record)) or 'none'}", file=file, line=line
        )
    text = record[key]
    if not isinstance(text, str):
        raise Error.WRONG_SHAPE(f"{key!r} must be a string, found {_json_type(text)}", file=file, line=line)
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise Error.NOT_TEXT(f"{key!r} holds a NUL character or half a surrogate pair", file=file, line=line)
    check_one_line(text, file, line, f"{key!r}: ")
    return text


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    if isinstance(value, float) and value != value:
        return "nothing (NaN)"  # an empty cell of a table
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
