"""XML by its events, each with its place in the file, so that text can be replaced and all else stays."""

import itertools
import re
import xml.parsers.expat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.errors import Error
from dragoman.formats.base import Options
from dragoman.formats.inline import Kind, Token

CHUNK_BYTES = 1 << 16
MAX_DEPTH = 256
_STEPS = {"start": 1, "end": -1}


class Event(NamedTuple):
    """Characters `start` to `end` of a file: a `start` or `end` tag, `text`, or `other` (comments, declarations).

    An empty tag is two events: its start, and an end of no length.
    """

    kind: str
    start: int
    end: int
    name: str = ""
    """The name of a tag as it is written, with its prefix."""
    attributes: dict[str, str] = {}  # noqa: RUF012
    text: str = ""


def events(text: str, options: Options) -> Iterator[Event]:
    """The events of a document, in order; together they cover it.

    Raises DragomanError, with the line, for what is not well-formed, for a DTD and for more than 256 levels.
    """
    reader = _Reader(text.encode(), options.name)
    for at in range(0, len(reader.data) + 1, CHUNK_BYTES):
        reader.read(at)
        yield from reader.finished()
    reader.pending.append((len(reader.data), "other", "", {}))
    yield from reader.finished()


class _Reader:
    """Expat's events with their places. The end of one is the place of the next."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name
        self.pending: list[tuple[int, str, str, dict[str, str]]] = []  # (byte offset, kind, name or text, attributes)
        self.depth = self.at_byte = self.at_char = 0
        self.cdata: list[str] | None = None
        self.parser = parser = xml.parsers.expat.ParserCreate("utf-8")
        parser.StartElementHandler, parser.EndElementHandler = self.start, self.end
        parser.CharacterDataHandler = self.chars
        parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = self.start_cdata, self.end_cdata
        parser.StartDoctypeDeclHandler = self.doctype
        parser.CommentHandler = lambda _: self.add("other")
        parser.ProcessingInstructionHandler = lambda *_: self.add("other")
        parser.DefaultHandlerExpand = lambda _: self.add("other")

    def read(self, at: int) -> None:
        """Parse the next piece."""
        try:
            self.parser.Parse(self.data[at : at + CHUNK_BYTES], at + CHUNK_BYTES > len(self.data))
        except xml.parsers.expat.ExpatError as error:
            reason = xml.parsers.expat.ErrorString(error.code)
            raise Error.BAD_SYNTAX(f"broken XML: {reason}", file=self.name, line=error.lineno) from error

    def add(self, kind: str, name: str = "", attributes: dict[str, str] | None = None) -> None:
        self.pending.append((self.parser.CurrentByteIndex, kind, name, attributes or {}))

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Error.TOO_LARGE(
                f"tags more than {MAX_DEPTH} deep", file=self.name, line=self.parser.CurrentLineNumber
            )
        self.add("start", name, attributes)

    def end(self, name: str) -> None:
        self.depth -= 1
        self.add("end", name)

    def chars(self, text: str) -> None:
        if self.cdata is None:
            self.add("text", text)
        else:
            self.cdata.append(text)

    def start_cdata(self) -> None:
        """A section is one event with its marks: its text is written without them, escaped."""
        self.add("text")
        self.cdata = []

    def end_cdata(self) -> None:
        self.pending[-1] = (self.pending[-1][0], "text", "".join(self.cdata or ()), {})
        self.cdata = None

    def doctype(self, name: str, system: str | None, public: str | None, defines: bool) -> None:
        if defines:  # a mere name of a DTD is never looked up
            raise Error.UNSAFE(
                "a DTD, which may define anything",
                "remove what stands in [ ] of the <!DOCTYPE>",
                file=self.name,
                line=self.parser.CurrentLineNumber,
            )
        self.add("other")

    def finished(self) -> Iterator[Event]:
        """All events but the last, whose end is not known yet."""
        for (offset, kind, name, attributes), following in itertools.pairwise(self.pending):
            begin, stop = self._place(offset), self._place(following[0])
            tag, words = ("", name) if kind == "text" else (name, "")
            yield Event(kind, begin, stop, tag, attributes, words)
        del self.pending[:-1]

    def _place(self, offset: int) -> int:
        """The character at a byte; bytes are asked for in order."""
        if offset > self.at_byte:
            self.at_char += len(self.data[self.at_byte : offset].decode(errors="ignore"))
            self.at_byte = offset
        return self.at_char


def after(inside: Sequence[Event], at: int) -> int:
    """The place after the element whose start tag is at `at`."""
    depth = 0
    for place in range(at, len(inside)):
        depth += _STEPS.get(inside[place].kind, 0)
        if depth == 0:
            return place + 1
    return len(inside)


def children(element: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """The events of each element that stands directly in an element."""
    at = 1
    while at < len(element) - 1:
        begin, at = at, after(element, at)
        if element[begin].kind == "start":
            yield element[begin:at]


def depth_of(text: str, names: Collection[str]) -> int:
    """The most elements of some names that stand in each other; names are without a prefix."""
    depth = deepest = 0
    for tag in re.finditer(rf"<(/?)(?:[\w.-]+:)?(?:{'|'.join(names)})(?=[\s/>])[^<>]*?(/?)>", text):
        depth += -1 if tag[1] else 1 - len(tag[2])
        deepest = max(deepest, depth)
    return deepest


def elements(
    events: Iterable[Event], names: Collection[str], level: int = 0, skipped: Collection[str] = ()
) -> Iterator[tuple[int, list[Event]]]:
    """(number, events) of the elements of some names that stand inside of `level` others, none inside of `skipped`.

    Names are with a prefix or without; of `skipped` without.
    """
    opened: list[list[Event]] = []
    number = depth = 0
    for event in events:
        if local(event.name) in skipped:
            depth += _STEPS[event.kind]
        is_one = not depth and (event.name in names or local(event.name) in names)
        if is_one and event.kind == "start":
            opened.append([])
            number += 1
        for held in opened:
            held.append(event)
        if is_one and event.kind == "end" and opened:
            element = opened.pop()
            if len(opened) == level:
                yield number, element


def tokens(
    text: str,
    inside: Sequence[Event],
    whole: Callable[[Sequence[Event]], tuple[Kind, str] | None],
    repeats: Collection[str] = (),
    read: Callable[[str], str] = str,
) -> Iterator[Token]:
    """The tokens of a paragraph.

    `whole` gives the kind and the name of an element that is one token; None makes its two tags a pair. `repeats`:
    names of elements that may be opened and closed again.
    """
    at = 0
    while at < len(inside):
        event = inside[at]
        start, end, name = event.start, event.end, event.name
        at += 1
        if event.kind == "text":
            yield Token("text", start, end, read(event.text))
            continue
        kind: Kind = "close" if event.kind == "end" else "alone"
        if event.kind == "start":
            stop = after(inside, at - 1)
            one = whole(inside[at - 1 : stop])
            if one is not None:
                (kind, name), end, at = one, inside[stop - 1].end, stop
            else:
                kind = "open"
        yield Token(kind, start, end, text[start:end], name, local(event.name) in repeats and kind != "alone")


def local(name: str) -> str:
    """A tag's name without its prefix.

    >>> local("w:p")
    'p'
    """
    return name.rpartition(":")[2]


def attribute(event: Event, name: str, default: str = "") -> str:
    """An attribute's value, whatever its prefix."""
    for key, value in event.attributes.items():
        if key == name or key.rpartition(":")[2] == name:
            return value
    return default
