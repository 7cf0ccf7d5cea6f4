"""The base of every source of text, pairs or images: it names its files, so its content is known again."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from dragoman.config import to_dict
from dragoman.errors import Error, show
from dragoman.progress import say_once
from dragoman.text.lines import check_is_file, container, find, reporting_os_errors
from dragoman.text.sources.digests import sha256_of
from dragoman.version import __version__


class Pair(NamedTuple):
    """A sentence pair and where it stands: its line (or record) number, counted from 1."""

    line: int
    src: str
    tgt: str
    languages: tuple[str, str] | None = None
    """From and to, where a corpus has several; None: those of the recipe."""
    approved: bool = False
    """True for a translation that its file calls approved."""
    changed: str = ""
    """Time of the last change, where the file has it; later ones sort behind earlier ones."""
    document: str = ""
    """The name of the document that it stands in, where the file says so."""


class Source:
    """Settings that say where text, pairs or images come from."""

    type: str
    named: ClassVar[tuple[str, ...]] = ()
    """Settings that name a file each; none for what the program makes."""

    def paths(self) -> dict[str, list[Path]]:
        """The files by the setting that names them, where `find` finds them."""
        return {setting: [find(getattr(self, setting))] for setting in self.named}

    def contents(self) -> dict[str, str]:
        """SHA-256 (hex) of the bytes behind each setting that names files: `{"src": "9f86...", "tgt": "60303..."}`.

        A corpus that was moved or is named by another path is the same corpus. Nothing for what the program makes.
        """
        return {setting: digest(paths) for setting, paths in self.paths().items()}


class PairSource(Source, ABC):
    """A source of sentence pairs."""

    @abstractmethod
    def pairs(self) -> Iterator[Pair]:
        """The pairs, one after another, blank ones included.

        Raises DragomanError at the first thing that is wrong, with file and line.
        """

    def unweighted(self) -> Self:
        """The same pairs, each of them once."""
        return self

    def with_weights(self) -> Iterator[tuple[Pair, float]]:
        """The pairs of `unweighted`, each with its weight."""
        return ((pair, 1.0) for pair in self.pairs())


class SingleFileSource(PairSource):
    """Pairs in one file, `path`. A missing file is an error at once; the file is read when the pairs are."""

    path: str
    named = ("path",)

    def pairs(self) -> Iterator[Pair]:
        return self.read(find(self.path))

    def between(self, languages: tuple[str, str]) -> Iterator[Pair]:
        """The pairs in two languages: all, where the file does not say its own."""
        return self.pairs()

    @abstractmethod
    def read(self, path: Path) -> Iterator[Pair]:
        """The pairs of the file."""


class SourceList(Source):
    """Several sources in one setting, `sources`."""

    sources: Sequence[Any]

    def paths(self) -> dict[str, list[Path]]:
        return {"sources": [path for part in self.sources for path in files_of(part)]}

    def contents(self) -> dict[str, str]:
        parts = "".join(map(fingerprint, self.sources))  # one setting names them all: how each is read counts here too
        return {"sources": hashlib.sha256(parts.encode()).hexdigest()}


def files_of(source: Source) -> list[Path]:
    """The files whose content makes up the source; none for what the program makes."""
    return [path for paths in source.paths().values() for path in paths]


def say_left_out(source: Source, count: int, read: int, why: str) -> None:
    """Say how many of the pairs that were read of a corpus are left out, and why; nothing for none."""
    if count:
        name = ", ".join(map(show, files_of(source))) or source.type
        say_once(f"{name}: {count:,} of {read:,} pairs are left out: {why}")


def fingerprint(source: Source) -> str:
    """SHA-256 (hex) over how the source is read and the bytes of its files: equal means the same content again.

    Where the program makes the text itself, its version stands for the content.
    """
    contents = source.contents()
    naming = {setting.split(".")[0] for setting in contents}
    reading = {key: value for key, value in to_dict(source).items() if key not in naming}
    return hashlib.sha256(json.dumps([reading, contents or __version__]).encode()).hexdigest()


def check_one_line(text: str, file: Path, line: int, field: str = "") -> None:
    """Refuse a line break: a text is one line in files that are split off, and in translations."""
    if "\n" in text or "\r" in text:
        raise Error.WRONG_SHAPE(
            f"{field}a line break inside of a text",
            "make it a pair for each line, or replace the break by a space",
            file=file,
            line=line,
        )


def digest(files: list[Path]) -> str:
    """SHA-256 (hex) of the bytes of files, one after another."""
    total = hashlib.sha256()
    for path in files:
        archive = container(path)
        check_is_file(archive)
        if archive != path:
            total.update(path.relative_to(archive).as_posix().encode())
        with reporting_os_errors(path), archive.open("rb") as stream:
            total.update(sha256_of(archive, stream))
    return total.hexdigest()
