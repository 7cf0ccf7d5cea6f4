"""A corpus of Python objects: pairs, labelled texts or texts in lists, iterators, and tables of any library.

Tables of pandas, polars, Arrow and `datasets` are known by their methods; none of these libraries is imported. Each
split is read once, a record at a time.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.languages.scripts import best_variant
from dragoman.text.sources.jsonl import text_of

PAIR, LABELLED, TEXT = ("src", "tgt"), ("text", "label"), ("text",)
"""The fields of a record, in the order in which a tuple has them."""

USUAL: dict[tuple[str, ...], list[tuple[str, ...]]] = {
    PAIR: [PAIR, ("source", "target")],
    LABELLED: [LABELLED, ("sentence", "label"), ("text", "labels")],
    TEXT: [TEXT, ("sentence",)],
}
"""Columns that are taken if no columns are named: the first of these that exist."""

VALID = ("valid", "validation", "dev", "val")
"""Names of the validation split in a mapping of splits."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The splits of a corpus, each of them pairs in any form that Python has.

        Corpus(train=[("ein hund", "a dog"), ...], valid=..., test=..., src_lang="de", tgt_lang="en")
        Corpus(train=frame, columns=("german", "english"))                # pandas, polars, Arrow
        Corpus.of(load_dataset("wmt14", "de-en"), src_lang="de", tgt_lang="en")   # splits, nested `translation`

    A split is an iterable of (source, target) or of mappings, a table or a mapping of columns, a function that returns
    one of these, or plain settings of a source (`{"type": "tsv", "path": ...}`). For classifiers a record is (text,
    label), for language models a text. Iterators are read once, into the run directory, and need not fit into memory.
    """

    train: Any
    valid: Any = None
    """Without it, 2 % of the training pairs are held out."""
    test: Any = None
    """One split, or several by name."""
    src_lang: str = ""
    tgt_lang: str = ""
    columns: tuple[str, ...] | None = None
    """Names of the columns, `translation.de` for a nested one. Without: the language codes, alone or in `translation`,
    or `src` and `tgt`, `source` and `target`; `text` and `label`."""

    @classmethod
    def of(cls, data: Any, **options: Any) -> "Corpus":
        """The corpus of a mapping of splits (as a `DatasetDict` is one), or of training pairs alone."""
        if isinstance(data, Corpus):
            return data
        if not isinstance(data, Mapping) or "train" not in data:
            return cls(train=data, **options)
        valid = next((data[name] for name in VALID if name in data), None)
        return cls(**{"train": data["train"], "valid": valid, "test": data.get("test"), **options})

    def tests(self) -> dict[str, Any]:
        """The test sets by name."""
        if isinstance(self.test, Mapping) and not is_settings(self.test) and not _is_table(self.test):
            return dict(self.test)
        return {} if self.test is None else {"test": self.test}


def is_settings(split: Any) -> bool:
    """True for plain settings of a source, which name files."""
    return isinstance(split, Mapping) and any(
        isinstance(split.get(name), str | Path) for name in ("type", "path", "src")
    )


def _is_table(split: Mapping[str, Any]) -> bool:
    """True for a mapping of columns; False where its values are splits themselves."""
    first: Any = next(iter(split.values()), None)
    return not isinstance(first, Mapping) and hasattr(first, "__len__") and isinstance(next(iter(first), None), str)


def records(
    split: Any, fields: tuple[str, ...], name: str, columns: tuple[str, ...] | None, languages: tuple[str, str]
) -> Iterator[tuple[str, ...]]:
    """The texts of each record of a split, as `fields` names them, checked.

    Raises DragomanError for the first record that is none, with its number from 1 as the line of `name`.
    """
    chosen: tuple[str, ...] | None = None
    number = 0
    for number, row in enumerate(_rows(split, name), start=1):
        if isinstance(row, Mapping):
            chosen = chosen or columns_of(row, fields, columns, languages, name)
            record, keys = dict(row), chosen
        else:
            values = [row] if fields == TEXT or not isinstance(row, Iterable) or isinstance(row, str) else list(row)
            if len(values) != len(fields):
                given = f"{type(row).__name__} {row!r:.60}"
                raise Error.WRONG_SHAPE(f"expected ({', '.join(fields)}), found {given}", file=name, line=number)
            record, keys = dict(zip(fields, values, strict=True)), fields
        if fields == LABELLED:
            record[keys[-1]] = label = _label(split, keys[-1], record.get(keys[-1]))
            if "\t" in str(label):
                raise Error.WRONG_SHAPE("a tab inside of a label", file=name, line=number)
        for key, value in record.items():
            if isinstance(value, str):
                record[key] = value.rstrip("\r\n")  # a line of a file has its end
        yield tuple(text_of(record, key, Path(name), number) for key in keys)
    if not number:
        hint = "an iterator can be read but once: give a list, or a function that returns it"
        raise Error.EMPTY(" is empty", hint, file=name)


def _label(split: Any, key: str, label: Any) -> Any:
    """A label as text: a number by its name, where the split (of `datasets`) has names of classes."""
    if not isinstance(label, int) or isinstance(label, bool):
        return label
    names = getattr((getattr(split, "features", None) or {}).get(key), "names", None)
    return names[label] if names else str(label)


def _rows(split: Any, name: str) -> Iterator[Any]:
    """The records of a split: mappings of a table's rows, or whatever an iterable has."""
    if callable(split) and not hasattr(split, "__iter__"):
        split = split()
    if isinstance(split, str | bytes | Path | Set) or not (hasattr(split, "__iter__") or hasattr(split, "__getitem__")):
        what = "a set, which has no order" if isinstance(split, Set) else f"{type(split).__name__} {split!r:.60}"
        hint = "give a list of pairs; files are named in a recipe, or by `src` and `tgt`"
        raise Error.WRONG_SHAPE(f"{name} is {what}", hint)
    if hasattr(split, "itertuples"):  # pandas
        names = list(map(str, split.columns))
        if twice := [column for column in names if names.count(column) > 1]:
            raise Error.WRONG_SHAPE(f"two columns {twice[0]}", "leave out one of them", file=name)
        return (dict(zip(names, row, strict=True)) for row in split.itertuples(index=False, name=None))
    if hasattr(split, "iter_rows"):  # polars
        rows: Callable[..., Iterator[Any]] = split.iter_rows
        return rows(named=True)
    if hasattr(split, "to_batches"):  # Arrow
        return itertools.chain.from_iterable(batch.to_pylist() for batch in split.to_batches())
    if isinstance(split, Mapping):
        sizes = {key: len(values) for key, values in split.items()}
        if len(set(sizes.values())) > 1:
            raise Error.UNEQUAL_COUNTS(f"{name}: " + ", ".join(f"{key} has {size:,}" for key, size in sizes.items()))
        columns: list[Any] = list(split.values())
        return (dict(zip(split, row, strict=True)) for row in zip(*columns, strict=True))
    return iter(split)


def columns_of(
    row: Mapping[Any, Any],
    fields: tuple[str, ...],
    columns: tuple[str, ...] | None,
    languages: tuple[str, str],
    name: str,
) -> tuple[str, ...]:
    """The keys of a record's texts. Raises DragomanError if the record leaves several choices."""
    usual = ([languages] if fields == PAIR else []) + USUAL[fields]
    inner = row.get("translation")
    inner = inner if isinstance(inner, Mapping) else {}
    for keys in [tuple(map(str, columns))] if columns else usual:
        if len(keys) == len(fields) and all(key and (key in row or key.split(".")[0] in row) for key in keys):
            return keys
        if len(keys) == len(fields) and all(key in inner for key in keys):
            return tuple(f"translation.{key}" for key in keys)
    nearest = [best_variant(dict.fromkeys(inner or row, ""), code) for code in languages if fields == PAIR and code]
    if not columns and len(nearest) == 2 and None not in nearest and nearest[0] != nearest[1]:
        return tuple(f"translation.{key}" if inner else str(key) for key in nearest)
    there = ", ".join(map(str, [*row, *(f"translation.{key}" for key in inner)]))
    missing = ", ".join(map(str, columns)) if columns else " and ".join(fields)
    raise Error.WRONG_SHAPE(f"no columns {missing}; there are {there}", "name them with `columns`", file=name)
