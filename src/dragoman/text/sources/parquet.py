"""Pairs in a Parquet file, in the two ways of publishing them: a `translation` of languages, or two columns."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, cast

from dragoman.config import settings
from dragoman.errors import DragomanError, Error
from dragoman.text.lines import check_is_file, find
from dragoman.text.sources.base import Pair, SingleFileSource
from dragoman.text.sources.jsonl import text_of

BATCH_ROWS = 10_000


@settings
class ParquetSource(SingleFileSource):
    """A Parquet file whose records have the two texts under two keys, or under `translation.KEY`."""

    type: Literal["parquet"] = "parquet"
    path: str  #: The file.
    src_key: str = "src"  #: Column of the source, such as `de`, `translation.de`, `sentence1`.
    tgt_key: str = "tgt"  #: Column of the target.

    def __post_init__(self) -> None:
        if self.src_key == self.tgt_key:
            raise ValueError("src_key and tgt_key must differ")

    def first(self) -> dict[str, Any]:
        """The first record; empty where it cannot be read, which `read` says."""
        with contextlib.suppress(DragomanError, ImportError, OSError, ValueError, IndexError, StopIteration):
            import pyarrow.parquet

            batches = pyarrow.parquet.ParquetFile(find(self.path)).iter_batches(1)
            return cast(dict[str, Any], next(batches).to_pylist()[0])
        return {}

    def read(self, path: Path) -> Iterator[Pair]:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise Error.NOT_INSTALLED("Parquet needs pyarrow", "pip install 'dragoman[parquet]'", file=path) from error
        check_is_file(path)
        columns = {self.src_key.split(".")[0], self.tgt_key.split(".")[0]}
        try:
            file = pyarrow.parquet.ParquetFile(path)
            if missing := sorted(columns - set(file.schema_arrow.names)):
                names = ", ".join(file.schema_arrow.names)
                raise Error.WRONG_SHAPE(f"no column {missing[0]!r}; it has {names}", file=path)
            number = 0
            for batch in file.iter_batches(BATCH_ROWS, columns=sorted(columns)):
                for record in batch.to_pylist():
                    number += 1
                    src, tgt = (text_of(record, key, path, number) for key in (self.src_key, self.tgt_key))
                    yield Pair(number, src, tgt)
        except pyarrow.ArrowException as error:
            raise Error.WRONG_FILE_TYPE(f"no Parquet file: {str(error).splitlines()[0]}", file=path) from error
