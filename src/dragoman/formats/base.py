"""The interface of file formats: units of text with inline codes out, translations in, everything else left as it is.

A format finds the places of a file's text and never writes the file anew: a translation takes the place of its text,
and every character around it stays (`spliced`).
"""

import bisect
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from dragoman.errors import DragomanError, Error
from dragoman.formats.encoding import Declares
from dragoman.formats.package import Package


class Code(NamedTuple):
    """A piece of a file inside of a text that is no text: a tag, a change of formatting, a footnote's mark.

    `open` and `close` come in pairs around words; `alone` stands between words; `protected` stands for words that are
    not translated, and takes part in the sentence; `break` parts texts, as a line break or a tab does; `cue` parts a
    text that is shared among several places (subtitles) by length. `repeats`: formatting, which may be opened and
    closed again, unlike links and things with a name.
    """

    raw: str
    kind: Literal["open", "close", "alone", "protected", "break", "cue"]
    pair: int = -1
    """Number that the two of a pair have in common."""
    repeats: bool = False


Item = str | Code


class Edit(NamedTuple):
    """Characters `start` to `end` of a file, and the text that takes their place."""

    start: int
    end: int
    text: str


class Limit(NamedTuple):
    """The most that a translation may have of what is counted in it."""

    most: int
    counted: Literal["characters", "bytes"] = "characters"

    @classmethod
    def in_flags(cls, flags: str) -> "Limit | None":
        """The limit in flags as Weblate has them: `read-only, max-length:20`; None if there is none."""
        match = re.search(r"\bmax-length:(\d{1,9})", flags)
        return cls(int(match[1])) if match else None

    def exceeded(self, text: str) -> str:
        """The excess of a text, in words; "" if there is none.

        >>> Limit(3).exceeded("äöüß"), Limit(3).exceeded("äöü"), Limit(3, "bytes").exceeded("äö")
        ('4 characters for 3', '', '4 bytes for 3')
        """
        size = len(text if self.counted == "characters" else text.encode(errors="surrogatepass"))
        return f"{size} {self.counted} for {self.most}" if size > self.most else ""


@dataclass(frozen=True)
class Unit:
    """A text of a file with its codes, and the place where its translation goes.

    `render` writes a translation's items as the file has them. `also`: edits that go with it (a state, a mark).
    `kept`: the reason why it is left as it is; "" for a text that is to be translated.
    """

    items: tuple[Item, ...]
    start: int
    end: int
    render: Callable[[Sequence[Item]], str]
    where: str
    also: tuple[Edit, ...] = ()
    kept: str = ""
    bilingual: bool = False
    """True if the translation does not replace its source: the two stand side by side in the file."""
    beside: "Callable[[Unit, Sequence[Item]], Iterable[Edit]] | None" = None
    """Edits that put a translation beside its source, in a file that holds one language until then."""
    limit: Limit | None = None
    """The most that its translation may have, as the file says."""

    def edits(self, items: Sequence[Item]) -> Iterable[Edit]:
        """The edits that write a translation."""
        written = self.beside(self, items) if self.beside else [Edit(self.start, self.end, self.render(items))]
        return [*written, *self.also]


ASIDES = {
    "comments": "comments",
    "notes": "notes",
    "hidden": "hidden text",
    "metadata": "title, description and keywords",
    "changes": "tracked deletions",
}
"""The kinds of text beside the main text. Notes are speakers' notes and footnotes."""


@dataclass(frozen=True)
class Tags:
    """The meaning of tags in a text with markup, as whoever sends it says. Names are as the text has them."""

    ignored: frozenset[str] = frozenset()
    """Elements whose content is not translated."""
    splitting: frozenset[str] = frozenset()
    """Elements that part texts."""
    non_splitting: frozenset[str] = frozenset()
    """Elements that part none, whatever they look like."""
    outline: bool = True
    """Which elements of XML part texts is seen from how they stand; False: those of `splitting` alone do."""


NO_TAGS = Tags()
NOTE_MARK = r"[\[(]?(?:\d{1,3}|[*†‡§¶]{1,3})[\])]?"
"""The pattern of a note's mark in a text: a number or a sign, in brackets or not."""


@dataclass(frozen=True)
class Options:
    """Choices for reading a file."""

    name: str = "the file"
    """The file's name for messages."""
    languages: tuple[str, str] = ("", "")
    """Codes, from and to."""
    translated_too: bool = False
    """Texts that have a translation already (PO, XLIFF, TMX) are translated again."""
    columns: tuple[str, ...] = ()
    """The columns of a table to translate, by heading or by number from 1."""
    asides: frozenset[str] = frozenset(set(ASIDES) - {"changes"})
    """The kinds of text beside the main text that are translated; other kinds are kept as they are, and counted."""
    join_cues: bool = True
    """A sentence of subtitles that goes on in the next cue is translated as one."""
    bilingual: bool = False
    """Translations are put below their sources, not in their place."""
    its: Path | None = None
    """A file of rules for XML: which elements are text, and which stand in a line."""
    tags: Tags = NO_TAGS
    """The meaning of tags in a text with markup."""


Pass = Callable[[str, Options], Iterator[Unit]]
"""Finds units in the text of a file. Units are in order and do not overlap."""
Finish = Callable[[str, Options], str]
"""Writes the other things that a translated file says: its language."""


def asides_of(with_: Sequence[str], without: Sequence[str]) -> frozenset[str]:
    """The kinds of text beside the main text to translate: the default kinds, with some more or without some. Raises
    DragomanError for a name that is not in `ASIDES`, or is in both lists.
    """
    for name in (*with_, *without):
        if name not in ASIDES:
            raise Error.UNKNOWN_NAME(f"no kind of text {name!r}", f"there are {', '.join(ASIDES)}")
    if both := set(with_) & set(without):
        raise Error.CONFLICT(f"{min(both)!r} both with and without")
    return Options().asides.union(with_) - set(without)


def aside(kind: str, *passes: Pass) -> tuple[Pass, ...]:
    """Passes for a kind of text beside the main text (`ASIDES`), which is kept as it is unless it is chosen."""

    def chosen(one_pass: Pass) -> Pass:
        def units(text: str, options: Options) -> Iterator[Unit]:
            for unit in one_pass(text, options):
                yield unit if unit.kept or kind in options.asides else replace(unit, kept=left_aside(kind))

        return units

    return tuple(map(chosen, passes))


def left_aside(kind: str) -> str:
    """The reason why a text is left that stands beside the text itself."""
    return f"{ASIDES[kind]} (`with`: {kind})"


@dataclass(frozen=True)
class Part:
    """The way in which a text file, or a part of a package, is read: by `passes`, one after another."""

    passes: tuple[Pass, ...] = ()
    finish: Finish | None = None
    both: Finish | None = None
    """Writes into a bilingual part that it is in both languages."""
    is_file: bool = False
    """True for a part that is a file by itself, of whatever format."""
    codec: str = ""
    """The encoding to read the file in, whatever the file declares; "": as the file declares."""


@dataclass(frozen=True)
class Format:
    """A kind of file. A text file is decoded and read by `passes`, one after another: each sees what the one before has
    written, so that a text may stand inside of another's code. A package is read part by part (`parts_of`).
    """

    name: str
    suffixes: tuple[str, ...]
    passes: tuple[Pass, ...] = ()
    parts_of: Callable[[Package], Mapping[str, Part]] | None = None
    """Of a package: its parts that hold text, by name; the others are copied."""
    part_of: Callable[[str], Part] | None = None
    """Of the text of a file: how it is read, where that hangs on the text; without it `passes` and `finish` say it."""
    finish: Finish | None = None
    declares: Declares = ""
    """The way in which the file, or each part, says its encoding."""
    goes_bilingual: bool = False
    """True if translations can be put below their sources."""


def spliced(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits made. They are sorted by place and do not overlap."""
    out: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        assert edit.start >= done, "edits overlap"
        out += (text[done : edit.start], edit.text)
        done = edit.end
    return "".join([*out, text[done:]])


def joined(items: Sequence[Item]) -> str:
    """The text of items, with the text of all codes."""
    return "".join(item if isinstance(item, str) else item.raw for item in items)


def plain(items: Sequence[Item]) -> str:
    """The text of items without any code, protected ones as they are."""
    return joined([item for item in items if isinstance(item, str) or item.kind == "protected"])


def has_letters(text: str) -> bool:
    """True for a text with something to translate."""
    return re.search(r"[^\W\d_]", text) is not None


State = Literal["", "approved", "fuzzy", "untranslated"]
"""The state of a translation by its file: nothing is said, somebody has approved it, it is a guess, there is none."""


class Entry(NamedTuple):
    """A text and its translation in a file that holds both languages."""

    line: int
    """Line (or row, or number) in the file, from 1."""
    src: str
    tgt: str
    state: State = ""
    changed: str = ""
    """Time of the last change as the file has it; a later one sorts behind an earlier one (`20240131T120000Z`)."""
    languages: tuple[str, str] | None = None
    """Codes, from and to, that the file names."""
    context: str = ""
    """Words that tell the text from the same one elsewhere in a catalogue."""
    coded: tuple[str, str] | None = None
    """Both texts with numbered tags for their inline codes; None where neither has any."""

    @property
    def is_translated(self) -> bool:
        """True for a translation that exists and is not a guess."""
        return self.state in ("", "approved")


def line_of(text: str, offset: int) -> int:
    """Number of the line that a place stands in, from 1.

    >>> line_of("one\\ntwo", 3), line_of("one\\ntwo", 4)
    (1, 2)
    """
    return bisect.bisect_left(_line_ends(text), offset) + 1


@functools.lru_cache(maxsize=1)  # a file asks for the line of each of its texts: counting anew takes quadratic time
def _line_ends(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)]


def refuse(options: Options, text: str, offset: int, reason: str) -> DragomanError:
    """The error to raise for a file that is broken at a place."""
    return Error.WRONG_SHAPE(reason, file=options.name, line=line_of(text, offset))
