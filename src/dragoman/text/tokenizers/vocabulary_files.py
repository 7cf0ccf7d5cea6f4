"""Vocabularies as other programs write them: tokens, their ids or counts; the entries are in the order of the ids.

Tables of ids: JSON (Sockeye, Hugging Face, Nematus) and YAML (Marian). Lists, whose order is that of the ids: a token
on each line (JoeyNMT, OpenNMT-tf, plain text of Marian), with a count behind a space or a tab (fairseq's dict.txt,
subword-nmt, OpenNMT-py) or a score (SentencePiece's .vocab). Specials are left out: all vocabularies here have the
same four.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from dragoman.errors import Error
from dragoman.runs.atomic_io import read_bytes, read_json
from dragoman.text.lines import read_lines

MAX_BYTES = 256 * 2**20
_SPECIAL = re.compile(r"<(?:pad|blank|unk/?|/?s|bos|eos)>", re.IGNORECASE)
"""Names of specials in any of these."""
_COUNTED = re.compile(r"(.*[^ ]) (-?[0-9.]+(?:e-?[0-9]+)?)(?: #fairseq:overwrite)?")


class Entry(NamedTuple):
    """A token and its number of occurrences; 1 where the file has none."""

    token: str
    occurrences: float


def read_vocabulary(path: Path) -> list[Entry]:
    """The entries of a vocabulary but for its specials. Raises DragomanError for what is none."""
    suffix = path.suffix.lower()
    if suffix in (".spm", ".model"):
        raise Error.WRONG_FILE_TYPE("a SentencePiece model, no list of tokens", "name it as `model`", file=path)
    if suffix in (".json", ".yml", ".yaml"):
        table = read_table(path)
        named = table.keys() - {"eos", "UNK"} if table.get("eos") == 0 and table.get("UNK") == 1 else table.keys()
        if named == table.keys() and not table.keys() & {"<unk>", "<unk/>", "<UNK>"}:
            raise Error.WRONG_SHAPE("has no <unk>", file=path)
        entries = [Entry(token, 1) for token in sorted(named, key=table.__getitem__)]
    else:
        entries = _listed(path)
    own = [entry for entry in entries if not _SPECIAL.fullmatch(entry.token)]
    if not own:
        raise Error.EMPTY("has no token", file=path)
    return own


def read_table(path: Path) -> dict[str, int]:
    """The id of each token of a table. Raises DragomanError where two have the same, or one has none."""
    if path.suffix.lower() == ".json":
        table = read_json(path, cast(Any, object))
        if isinstance(table, list):
            return {str(token): index for index, token in enumerate(table)}
        if not isinstance(table, dict) or "model" in table:
            raise Error.WRONG_SHAPE(
                "no table of tokens and ids", "a tokenizer.json is the `model` of tokenizer {type: hub}", file=path
            )
    else:
        rows = yaml_rows(path)
        table = {token: index for index, token in rows.items()}
        if len(table) < len(rows):
            twice = next(token for index, token in rows.items() if table[token] != index)
            raise Error.WRONG_SHAPE(f"{twice!r} is there twice", file=path)
    if any(type(index) is not int or index < 0 for index in table.values()):
        raise Error.WRONG_SHAPE("has a token whose id is no number", file=path)
    if len(set(table.values())) < len(table):
        raise Error.WRONG_SHAPE("has two tokens with the same id", file=path)
    return table


def yaml_rows(path: Path) -> dict[int, str]:
    """The token of each row of a Marian vocabulary. Raises DragomanError for anything else."""
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        # Scalars as they are spelt: a token may be `no`, `1` or `~`.
        rows = cast(Any, yaml.compose(read_bytes(path, MAX_BYTES), Loader=loader)).value
        return {int(number.value): str(token.value) for token, number in rows}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise Error.DAMAGED(f"is no list of tokens and numbers: {reason}", file=path) from error


def _listed(path: Path) -> list[Entry]:
    lines = list(read_lines(path))
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise Error.EMPTY("has no token", file=path)
    split = _separator(lines)
    if lines[0].startswith("#version:"):
        raise Error.WRONG_FILE_TYPE("codes of subword-nmt, no list of tokens", "name it as `codes`", file=path)
    entries: list[Entry] = []
    places: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        token, count = split(line)
        if not token or (" " in token and "\t" not in line):
            hint = "each line is a token, or a token and its count, as the first ones are"
            raise Error.WRONG_SHAPE(f"{line[:80]!r} is none", hint, file=path, line=number)
        if token in places and not _SPECIAL.fullmatch(token):
            raise Error.WRONG_SHAPE(
                f"{token!r} is there twice (first on line {places[token]:,})", "take one of them out", file=path,
                line=number,
            )  # fmt: skip
        places[token] = number
        entries.append(Entry(token, count))
    return entries


def _separator(lines: Sequence[str]) -> Any:
    """The function that splits a line into token and number, as the first line has it that is more than a special."""
    first = next((line for line in lines if not _SPECIAL.fullmatch(line)), "")

    def tabbed(line: str) -> tuple[str, float]:
        token, _, number = line.rpartition("\t")
        return (token, _number(number)) if number else ("", 1)

    def counted(line: str) -> tuple[str, float]:
        match = _COUNTED.fullmatch(line)
        return (match[1], _number(match[2])) if match else ("", 1)

    split = tabbed if "\t" in first else counted if _COUNTED.fullmatch(first) else None
    return lambda line: (line, 1) if split is None or _SPECIAL.fullmatch(line) else split(line)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1
