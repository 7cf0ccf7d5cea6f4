"""Pairs in a file of one JSON object a line. A record without its text stops the reading."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from dragoman.config import settings
from dragoman.errors import DragomanError
from dragoman.text.lines import read_lines, show
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

    def __post_init__(self) -> None:
        if self.src_key == self.tgt_key:
            raise ValueError("src_key and tgt_key must differ")

    def read(self, path: Path) -> Iterator[Pair]:
        for number, line in enumerate(read_lines(path), start=1):
            where = f"{show(path)}:{number}"
            try:
                record = json.loads(line, object_pairs_hook=_distinct)
            except (ValueError, RecursionError) as error:
                raise DragomanError(
                    f"{where}: not a JSON object: {error}" if line.strip() else f"{where}: blank"
                ) from error
            if not isinstance(record, dict):
                raise DragomanError(f"{where}: expected a JSON object, found {_json_type(record)}")
            yield Pair(number, text_of(record, self.src_key, where), text_of(record, self.tgt_key, where))


def _distinct(items: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(items)
    if len(record) < len(items):
        names = [key for key, _ in items]
        raise ValueError(f"key {next(key for key in names if names.count(key) > 1)!r} twice")
    return record


def text_of(record: dict[str, Any], key: str, where: str) -> str:
    """The text under a key of a record, or under a key of an object in it (`translation.de`)."""
    for outer in key.split(".")[:-1] if key not in record else ():
        if not isinstance(record.get(outer), dict):
            break
        record, key = record[outer], key.partition(".")[2]
    if key not in record:
        raise DragomanError(f"{where}: no key {key!r}; it has {', '.join(map(repr, record)) or 'none'}")
    text = record[key]
    if not isinstance(text, str):
        raise DragomanError(f"{where}: {key!r} must be a string, found {_json_type(text)}")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise DragomanError(f"{where}: {key!r} holds a NUL character or half a surrogate pair")
    check_one_line(text, f"{where}: {key!r}")
    return text


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
