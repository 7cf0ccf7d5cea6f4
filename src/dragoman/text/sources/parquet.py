"""Pairs in a Parquet file, in the two ways of publishing them: a `translation` of languages, or two columns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from dragoman.config import settings
from dragoman.errors import DragomanError
from dragoman.text.lines import check_is_file, find, show
from dragoman.text.sources.base import Pair, PairSource, check_one_line

BATCH_ROWS = 10_000


@settings
class ParquetSource(PairSource):
    """A Parquet file whose records have the two texts under two keys, or under `translation.KEY`."""

    type: Literal["parquet"] = "parquet"
    path: str  #: The file.
    src_key: str = "src"  #: Column of the source, such as `de`, `translation.de`, `sentence1`.
    tgt_key: str = "tgt"  #: Column of the target.

    def __post_init__(self) -> None:
        if self.src_key == self.tgt_key:
            raise ValueError("src_key and tgt_key must differ")

    def paths(self) -> dict[str, list[Path]]:
        return {"path": [find(self.path)]}

    def pairs(self) -> Iterator[Pair]:
        return self._pairs(find(self.path))

    def _pairs(self, path: Path) -> Iterator[Pair]:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise DragomanError(f"{show(path)}: Parquet needs pyarrow: pip install 'dragoman[parquet]'") from error
        check_is_file(path)
        columns = {self.src_key.split(".")[0], self.tgt_key.split(".")[0]}
        try:
            file = pyarrow.parquet.ParquetFile(path)
            if missing := sorted(columns - set(file.schema_arrow.names)):
                names = ", ".join(file.schema_arrow.names)
                raise DragomanError(f"{show(path)}: no column {missing[0]!r}; it has {names}")
            number = 0
            for batch in file.iter_batches(BATCH_ROWS, columns=sorted(columns)):
                for record in batch.to_pylist():
                    number += 1
                    where = f"{show(path)}: record {number}"
                    yield Pair(number, _text(record, self.src_key, where), _text(record, self.tgt_key, where))
        except pyarrow.ArrowException as error:
            raise DragomanError(f"{show(path)}: no Parquet file: {str(error).splitlines()[0]}") from error


def _text(record: dict[str, Any], key: str, where: str) -> str:
    found: Any = record
    for name in key.split("."):
        if not isinstance(found, dict) or name not in found:
            raise DragomanError(f"{where}: no {key!r}")
        found = found[name]
    if not isinstance(found, str):
        raise DragomanError(f"{where}: {key!r} is no text")
    check_one_line(found, where)
    return found
