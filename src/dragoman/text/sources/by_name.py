"""The source that a single file is, told by its name."""

from typing import Any

from dragoman.errors import Error
from dragoman.text.lines import kind_of
from dragoman.text.sources.base import SingleFileSource
from dragoman.text.sources.exchange import PoSource, TmxSource, XliffSource
from dragoman.text.sources.jsonl import JsonlSource
from dragoman.text.sources.parquet import ParquetSource
from dragoman.text.sources.tsv import TsvSource

SINGLE_FILES: dict[str, type[SingleFileSource]] = {
    ".tsv": TsvSource,
    ".jsonl": JsonlSource,
    ".tmx": TmxSource,
    ".xlf": XliffSource,
    ".xliff": XliffSource,
    ".po": PoSource,
    ".parquet": ParquetSource,
}
"""The sources of one file by the end of its name."""


def source_of_file(path: str, src_lang: str, tgt_lang: str) -> Any:
    """The source that a single file is, by the end of its name; None for another kind.

    Raises DragomanError for a file whose languages have to be said.
    """
    cls = SINGLE_FILES.get(kind_of(path))
    if cls is TmxSource:
        if not (src_lang and tgt_lang):
            raise Error.MISSING_OPTION("say with `src_lang` and `tgt_lang` which of its languages are meant", file=path)
        return TmxSource(path=path, src_lang=src_lang, tgt_lang=tgt_lang)
    return None if cls is None else cls(path=path)  # type: ignore[call-arg]
