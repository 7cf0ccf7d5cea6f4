"""Files to translate from strangers: whatever stands in them, they are read and written in linear time."""

import resource
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest

from dragoman.errors import DragomanError
from dragoman.formats.base import Item, Options, Unit
from dragoman.formats.document import FORMATS, Document

SRT, VTT = "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"
XLIFF = '<xliff version="1.2"><file source-language="de" target-language="en"><body><trans-unit id="1"><source>'
ASS = "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,"

PATTERNS: list[tuple[str, str, str, str]] = [
    ("md", "", "![", ""),
    ("md", "", "[", ""),
    ("md", "", "[a", "]" * 30),
    ("md", "", "](", ""),
    ("md", "", "*a", ""),
    ("md", "", "`a", ""),
    ("md", "", "a  \n", ""),
    ("md", "a | b\n--- | ---\n", "a\\|b | ", "\n"),
    ("md", "[", "a\n", "]"),
    ("md", "", "^[a", ""),
    ("asciidoc", "", "|===\n", ""),
    ("asciidoc", "", "----\na", ""),
    ("asciidoc", "|===\n", "a|a\n", "|==="),
    ("asciidoc", "", "[a]\n", ""),
    ("asciidoc", "", "*a* b ", ""),
    ("asciidoc", "", "// a\nimage:a[b]", ""),
    ("rest", "", "*a* b ", ""),
    ("rest", "", "+--+\n", ""),
    ("srt", SRT, "a\n", ""),
    ("srt", SRT, "a ", ""),
    ("srt", SRT, "<i>", "a"),
    ("srt", SRT, "</i>", "a"),
    ("srt", SRT, "a<br>", ""),
    ("srt", SRT, "\n<i>", "a"),
    ("srt", SRT, "a\n\n", ""),
    ("vtt", VTT, "<00:01.000>a", ""),
    ("vtt", VTT, "a\n", ""),
    ("ass", ASS, "\\Na", ""),
    ("xliff", XLIFF, "<mrk mtype='seg'>a</mrk>", "</source></trans-unit></body></file></xliff>"),
    ("ass", ASS, "{\\i1}a", ""),
]  # fmt: skip
"""Format, what stands before, what comes again and again, what stands behind."""

REGEX: list[tuple[str, str, str, str]] = [
    ("md", "", "**", ""),
    ("md", "", "> ", "a"),
    ("md", "", "- ", "a"),
    ("md", "a\n", "-- ", ""),
    ("asciidoc", "", "a", ""),
    ("asciidoc", "", "\n", "="),
    ("srt", SRT, " ", "a"),
    ("srt", SRT, "\n ", "a"),
    ("ass", ASS + "{", "\\p1", ""),
]
"""Patterns that regular expressions alone see."""

BLANK = [(kind, "", "\n", "") for kind, made in FORMATS.items() if made.passes and kind != "pdf"]


def document(kind: str, before: str, piece: str, behind: str, size: int) -> Document:
    text = before + piece * (size // len(piece)) + behind
    return Document(text.encode(), FORMATS[kind], Options("the file", ("de", "en")))


def loud(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    """A translation of every text by a longer one."""
    return [
        None if unit.kept else tuple(f"{item.upper()} x" if isinstance(item, str) else item for item in unit.items)
        for unit in units
    ]


def work(document: Document) -> None:
    """All that is done with a file; one that is refused is well read, too."""
    try:
        list(document.texts())
        document.translated(loud)
    except DragomanError:
        pass


def calls(document: Document) -> int:
    """Calls of functions, Python's and C's, that the work takes."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work(document)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("pattern", [*PATTERNS, *BLANK], ids=lambda one: f"{one[0]} {one[2][:20]!r}")
def test_twice_the_file_is_twice_the_work(pattern: tuple[str, str, str, str]) -> None:
    work(document(*pattern, 100))  # what is made once and kept
    once, twice = (calls(document(*pattern, size)) for size in (1500, 3000))
    assert twice < 2.5 * once + 1000


def test_regular_expressions_take_linear_time() -> None:
    """Their steps are not seen from outside: a step for each pair of characters would take hours."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _read_all() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    for pattern in REGEX:
        print(pattern, flush=True)
        work(document(*pattern, 300_000))


if __name__ == "__main__":
    _read_all()
