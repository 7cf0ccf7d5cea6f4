"""Step 1 for classifiers: texts with a label each, line by line (`lines.py`), strict about a missing one."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from dragoman.config import by_type, settings
from dragoman.corpora import embedded
from dragoman.errors import Error
from dragoman.text.lines import find, read_lines
from dragoman.text.sources.base import Source, SourceList


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Paths = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
"""One path, or a list of them."""


class Example(NamedTuple):
    """A labelled text and where it stands: its line in its own file, counted from 1."""

    line: int
    label: str
    text: str


@settings
class LabelledSource(Source):
    """A file, plain or `.gz`, of lines `label<TAB>text`; further tabs belong to the text."""

    type: Literal["labelled"] = "labelled"
    path: str  #: The file.
    named = ("path",)

    def examples(self) -> Iterator[Example]:
        path = find(self.path)
        for number, line in enumerate(read_lines(path), start=1):
            label, tab, text = line.partition("\t")
            if not tab:
                raise Error.WRONG_SHAPE("no tab", "write the label, a tab, and the text", file=path, line=number)
            for what, value in (("label", label), ("text", text)):
                if not value.strip():
                    raise Error.WRONG_SHAPE(f"the {what} is empty", file=path, line=number)
            yield Example(number, label, text)


@settings
class LanguagesSource(Source):
    """Text files by language: each line is a text, labelled with the language whose file it is in.

    Blank lines are passed over. `limit` takes only the first so many texts of each language.
    """

    type: Literal["languages"] = "languages"
    files: Annotated[dict[str, Paths], Field(min_length=1)]  #: Files of each label.
    limit: Annotated[int, Field(ge=1)] | None = None  #: Texts taken of each label; null: all. [texts]

    def __post_init__(self) -> None:
        paths = [path for listed in self.files.values() for path in listed]
        for path in paths:
            if paths.count(path) > 1:
                raise ValueError(f"{path} is named twice: each file belongs to one language")

    def paths(self) -> dict[str, list[Path]]:
        return {f"files.{label}": list(map(find, paths)) for label, paths in self.files.items()}

    def examples(self) -> Iterator[Example]:
        for label, paths in self.files.items():
            lines = itertools.chain.from_iterable(enumerate(read_lines(find(path)), start=1) for path in paths)
            texts = (Example(number, label, line) for number, line in lines if line.strip())
            yield from itertools.islice(texts, self.limit)


@settings
class EmbeddedLanguagesSource(Source):
    """German, English and Chinese sentences of the embedded corpus, in turn, `size` of each."""

    type: Literal["embedded_languages"] = "embedded_languages"
    split: Literal["train", "valid", "test"]  #: Part of the corpus.
    size: Annotated[int, Field(ge=1)] | None = None  #: Texts of each language; null: the split's own. [texts]
    seed: int = 1  #: Another seed, another corpus.

    def examples(self) -> Iterator[Example]:
        pairs = [embedded.sentences(pair, self.split, self.size, self.seed) for pair in ("de-en", "zh-en")]
        for number, ((german, english), (chinese, other_english)) in enumerate(zip(*pairs, strict=True), start=1):
            yield Example(number, "de", german)
            yield Example(number, "en", english if number % 2 else other_english)  # the grammars differ in their words
            yield Example(number, "zh", chinese)


@settings
class ConcatSource(SourceList):
    """Several sources, one after another."""

    type: Literal["concat"] = "concat"
    sources: Annotated[
        list[Annotated[LabelledSource | LanguagesSource | EmbeddedLanguagesSource, by_type]], Field(min_length=1)
    ]  #: The sources, in order.

    def examples(self) -> Iterator[Example]:
        return itertools.chain.from_iterable(part.examples() for part in self.sources)


ExampleSource = Annotated[LabelledSource | LanguagesSource | EmbeddedLanguagesSource | ConcatSource, by_type]
"""Each gives its `examples`, one after another; the first thing that is wrong is told with file and line."""
