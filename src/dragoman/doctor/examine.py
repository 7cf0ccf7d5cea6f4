"""A pair of files, line by line and side by side: what is wrong with each line, each pair, and the whole."""

import itertools
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.leakage import Leakage, key
from dragoman.doctor.shifts import Shift, Shifts
from dragoman.doctor.text import script_of, script_of_language, wrong_with
from dragoman.errors import DragomanError
from dragoman.progress import Progress
from dragoman.text.corpus import FilesSource, MixSource, Pair, Source, files_of, read_pairs, unweighted
from dragoman.text.languages import TELLING, language_of
from dragoman.text.lines import open_bytes, raw_lines, show

CHUNK = 5000
"""Pairs that are looked at together."""
LONG_LINE = 5000
"""Characters of a line that can be no sentence."""
WORTH_COPYING = 12
"""Characters up to which a copy may be a name or a number, and as good as a translation."""
IDENTIFIED = 100
"""Lines of each chunk whose language is asked for, as a model takes its time."""
FEWEST_FOR_ALIGNMENT = 100
"""Pairs below which nothing can be said of how they belong together."""
LEAST_BELIEF = 1.0
"""Evidence that two lines belong together, in nats a line. Translations have 2 to 4 (docs/log.md), lines that were
shuffled 0.2 to 0.4, as what is learnt from them fits them by chance."""

Identify = Callable[[Sequence[str]], Sequence[str]]
"""The language code of each text."""


class HeldOut(NamedTuple):
    """A set that training pairs should not be in."""

    name: str
    src: Sequence[str]
    tgt: Sequence[str]


class Line(NamedTuple):
    """A line as it was found: its text, as well as it can be read, and the kinds of what is wrong with it."""

    text: str
    wrong: Sequence[str]


def sides_of(source: Source, names: tuple[str, str], diagnosis: Diagnosis) -> list[Iterator[Line]]:
    """The lines of both sides. What is found in each is added to the diagnosis as it is read."""
    if isinstance(source, FilesSource):
        return [lines_of(path, name, diagnosis) for path, name in zip(files_of(source), names, strict=True)]
    # One file has both sides: what breaks it breaks both, and its own reader says it best.
    src, tgt = itertools.tee(_readable(source, names[0], diagnosis))
    return [
        (_looked_at(pair.src, names[0], pair.line, diagnosis) for pair in src),
        (_looked_at(pair.tgt, names[1], pair.line, diagnosis) for pair in tgt),
    ]


def _readable(source: Source, name: str, diagnosis: Diagnosis) -> Iterator[Pair]:
    read = 0
    try:
        for pair in read_pairs(source):
            read = pair.line
            yield pair
    except DragomanError as error:
        diagnosis.add("unreadable", name, read + 1 if read else None, str(error))


def _looked_at(text: str, name: str, number: int, diagnosis: Diagnosis) -> Line:
    """A text with what is wrong with it, which is added to the diagnosis."""
    if len(text) > LONG_LINE:
        diagnosis.add("very long line", name, number, f"{len(text):,} characters: {text[:60]}")
        return Line(text[:LONG_LINE], ["very long line"])  # it is no sentence, and thousands of lines are held together
    wrong = wrong_with(text)
    for kind in wrong:
        diagnosis.add(kind, name, number, text)
    return Line(text, wrong)


def lines_of(path: Path, name: str, diagnosis: Diagnosis) -> Iterator[Line]:
    """The lines of a file by the rules of `text.lines`, but for going on where these would stop."""
    read = 0
    try:
        with open_bytes(path) as stream:
            for raw in raw_lines(stream, name):
                read += 1
                yield _line(raw, name, read, diagnosis)
    except DragomanError as error:
        diagnosis.add("unreadable", name, read + 1 if read else None, str(error))


def _line(raw: bytes, name: str, number: int, diagnosis: Diagnosis) -> Line:
    if raw.endswith(b"\r\n"):
        diagnosis.add("CRLF", name, number)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        diagnosis.add("not UTF-8", name, number, f"byte {error.start + 1} (0x{raw[error.start]:02X}): {text}")
        return Line(text[:LONG_LINE], ["not UTF-8"])
    text = text.removesuffix("\n").removesuffix("\r")
    if number == 1 and text.startswith("\ufeff"):
        diagnosis.add("byte order mark", name, 1)
        text = text.removeprefix("\ufeff")
    return _looked_at(text, name, number, diagnosis)


@dataclass(eq=False)
class Examination:
    """A parallel corpus being examined; `run` reads it to its end (or for `limit` pairs) and says what is wrong.

    Languages are codes (`de`), or "" where they are not known; training pairs should not be in `tests`; `identify`
    tells the language of texts. Nothing that is in a file makes this raise: what keeps one from being read is a finding
    too. Raises DragomanError for a file that is not there.
    """

    source: Source
    src_lang: str = ""
    tgt_lang: str = ""
    tests: Sequence[HeldOut] = ()
    identify: Identify | None = None
    limit: int | None = None
    diagnosis: Diagnosis = field(init=False)

    def __post_init__(self) -> None:
        self.source = unweighted(self.source)
        files = files_of(self.source) or [Path(f"the {self.source.type} corpus")]
        mixed = isinstance(self.source, MixSource)
        self.names = ("the mix's source", "the mix's target") if mixed else (show(files[0]), show(files[-1]))
        self.diagnosis = Diagnosis(*self.names)
        self.leakage = [(test.name, Leakage(test.src), Leakage(test.tgt)) for test in self.tests]
        self.hashes = array("q")
        self.shifts = Shifts()
        self.found_shifts: list[Shift] = []
        self.scripts = Counter[str](), Counter[str]()
        self.expected: list[str | None] = [None, None]
        self.ratio: tuple[float, float] | None = None
        self.languages = Counter[str](), Counter[str]()
        self.cut = False
        """Whether there is more than `limit` pairs."""
        self.texts = [0, 0]
        """Lines of each side that are not blank."""

    def run(self) -> Diagnosis:
        diagnosis = self.diagnosis
        if isinstance(self.source, FilesSource) and os.path.samefile(*files_of(self.source)):
            diagnosis.add("same file", self.names[0])
            return diagnosis
        with Progress("examining", None) as bar:
            sides = sides_of(self.source, self.names, diagnosis)
            both: Iterator[tuple[Line | None, Line | None]] = itertools.zip_longest(sides[0], sides[1])
            pairs = itertools.islice(both, self.limit)
            first = 1
            while chunk := list(itertools.islice(pairs, CHUNK)):
                self._chunk(first, chunk)
                first += len(chunk)
                bar.advance(len(chunk))
            self.cut = next(both, None) is not None
        if not any(kind == "unreadable" for kind, _ in diagnosis.found):
            self._whole()
        return diagnosis

    def _chunk(self, first: int, chunk: list[tuple[Line | None, Line | None]]) -> None:
        src, tgt = ([pair[side] for pair in chunk if pair[side] is not None] for side in (0, 1))
        self.diagnosis.src_lines += len(src)
        self.diagnosis.tgt_lines += len(tgt)
        for side, lines in enumerate((src, tgt)):
            self.texts[side] += sum(1 for line in lines if line and line.text.strip())
        # Thousands of lines wait there for their turn, which may be a megabyte each where they are no sentences.
        self.shifts.add(*([line.text[:LONG_LINE] for line in lines if line] for lines in (src, tgt)))
        both = [(number, *pair) for number, pair in enumerate(chunk, start=first) if pair[0] and pair[1]]
        if first == 1:
            self._first_look([(one.text, other.text) for _, one, other in both if one and other])
        for number, one, other in both:
            assert one is not None
            assert other is not None
            self._pair(number, one, other)
        if self.identify:
            self._identify([(number, one.text, other.text) for number, one, other in both if one and other])

    def _first_look(self, pairs: list[tuple[str, str]]) -> None:
        """What is usual in this corpus, from its first pairs: the script of each side, and the ratio of lengths."""
        for side, language in enumerate((self.src_lang, self.tgt_lang)):
            counts = Counter(script_of(pair[side])[0] for pair in pairs)
            counts.pop("", None)
            usual = counts.most_common(1)[0][0] if counts else None
            self.expected[side] = script_of_language(language_of(language)) if language else None
            if self.expected[side] is None:
                self.expected[side] = usual
        ratios = np.array([_log_ratio(src, tgt) for src, tgt in pairs if len(src) + len(tgt) >= 40])
        if len(ratios) >= 50:
            middle = float(np.median(ratios))
            spread = 1.4826 * float(np.median(np.abs(ratios - middle)))
            self.ratio = middle, max(math.log(3.0), 6.0 * spread)

    def _pair(self, number: int, one: Line, other: Line) -> None:
        add, (src, tgt) = self.diagnosis.add, (one.text.strip(), other.text.strip())
        for kind, side in wrong_with_pair(src, tgt, self.ratio, self.expected):
            add(kind, self.names[side], number, (src, tgt)[side])
        for side, text in enumerate((src, tgt)):
            self.scripts[side][script_of(text)[0]] += 1
        if src or tgt:
            self.hashes.append(hash((src, tgt)))
        else:
            self.hashes.append(-number)  # blank pairs are counted as such, and not as each other's duplicates
        if leak := self.leak(src, tgt):
            kind, test = leak
            add(kind, self.names[0], number, f"{test}: {src}")

    def leak(self, src: str, tgt: str) -> tuple[str, str] | None:
        """(kind of finding, test set) where one side of a pair is in a test set, exactly or nearly."""
        if not self.leakage or not src or not tgt:
            return None
        src, tgt = key(src), key(tgt)
        for name, sources, targets in self.leakage:
            if sources.exactly(src) or targets.exactly(tgt):
                return "in the test set", name
        for name, sources, targets in self.leakage:
            if sources.nearly(src) or targets.nearly(tgt):
                return "nearly in the test set", name
        return None

    def _identify(self, pairs: list[tuple[int, str, str]]) -> None:
        """The languages of some lines of a chunk."""
        assert self.identify is not None
        chosen = [pair for pair in pairs if min(len(pair[1]), len(pair[2])) >= TELLING][:IDENTIFIED]
        if not chosen:
            return
        numbers, *sides = zip(*chosen, strict=True)
        for side, (texts, language) in enumerate(zip(sides, (self.src_lang, self.tgt_lang), strict=True)):
            for number, text, found in zip(numbers, texts, self.identify(texts), strict=True):
                self.languages[side][found] += 1
                if language and found != language_of(language):
                    self.diagnosis.add("wrong language", self.names[side], number, f"{found}: {text}")
            self.diagnosis.sampled["wrong language", self.names[side]] = self.languages[side].total()

    def _whole(self) -> None:
        """What can be said once everything was read."""
        diagnosis = self.diagnosis
        add, lines = diagnosis.add, (diagnosis.src_lines, diagnosis.tgt_lines)
        for name, count, texts in zip(self.names, lines, self.texts, strict=True):
            if not texts:
                add("empty file", name, None, f"{count:,} lines, all of them blank" if count else "")
        if 0 in self.texts:
            return
        if lines[0] != lines[1]:
            add("unequal line counts", self.names[0], min(lines) + 1, f"{lines[0]:,} against {lines[1]:,} lines")
        self._duplicates()
        self._swapped()
        if min(lines) >= FEWEST_FOR_ALIGNMENT and ("swapped sides", self.names[0]) not in diagnosis.found:
            self.found_shifts = self.shifts.finish(complete=not self.cut)
            self._alignment(self.found_shifts, lines)

    def _duplicates(self) -> None:
        values = np.frombuffer(self.hashes, dtype=np.int64) if self.hashes else np.zeros(0, dtype=np.int64)
        _, first, counts = np.unique(values, return_index=True, return_counts=True)
        if repeated := int((counts - 1).sum()):
            example = int(first[counts > 1].min())
            self.diagnosis.add(
                "duplicate", self.names[0], example + 1, f"line {example + 1:,} comes again", count=repeated
            )

    def _swapped(self) -> None:
        """Whether each side is in the other's language, by the identifier or else by script."""
        codes = language_of(self.src_lang), language_of(self.tgt_lang)
        if all(self.languages) and all(codes) and codes[0] != codes[1]:
            if tuple(counts.most_common(1)[0][0] for counts in self.languages) == codes[::-1]:
                self.diagnosis.add("swapped sides", self.names[0], None, f"it is {codes[1]} and {codes[0]}")
            return
        wanted = tuple(map(script_of_language, codes))
        usual: tuple[str | None, ...] = tuple(
            counts.most_common(1)[0][0] if counts else None for counts in self.scripts
        )
        if None not in wanted and wanted[0] != wanted[1] and usual == wanted[::-1]:
            self.diagnosis.add("swapped sides", self.names[0], None, f"its script is {usual[0]}")

    def _alignment(self, shifts: Sequence[Shift], lines: tuple[int, int]) -> None:
        lost = sum((shift.until or lines[0]) - shift.line + 1 for shift in shifts if shift.offset is None)
        belief = self.shifts.belief / lines[0]
        if lost > 0.9 * lines[0] or belief < LEAST_BELIEF:
            self.found_shifts = []
            if abs(lines[0] - lines[1]) > self.shifts.max_offset:
                return  # that is enough to keep lines from belonging together
            text = f"nothing says that lines belong together ({belief:.2f} nats a line; translations have 2 to 4)"
            self.diagnosis.add("not parallel", self.names[0], None, text)
            return
        for shift in shifts:
            until = f"to line {shift.until:,}" if shift.until else "to the end"
            if shift.offset is None:
                text = f"from here {until} no target line near by is the translation"
            else:
                count = f"{abs(shift.offset)} line{'s' if abs(shift.offset) > 1 else ''}"
                text = f"from here {until} the translation stands {count} {'later' if shift.offset > 0 else 'earlier'}"
            self.diagnosis.add("shift", self.names[0], shift.line, text)


def wrong_with_pair(
    src: str, tgt: str, ratio: tuple[float, float] | None, expected: Sequence[str | None] = (None, None)
) -> list[tuple[str, int]]:
    """(kind of finding, side: 0 or 1) of two texts (stripped) that stand for each other.

    `ratio`: usual log ratio of lengths, and how far from it is odd. `expected`: the script of each side.
    """
    if not src or not tgt:
        return [("blank on one side", 1 if src else 0) if src or tgt else ("blank on both sides", 0)]
    if not any(map(_has_letters, (src, tgt))):
        return [("no letters", 0)]
    found = []
    if src == tgt and len(src) > WORTH_COPYING:
        found.append(("copy of the source", 1))
    for side, (text, usual) in enumerate(zip((src, tgt), expected, strict=True)):
        script, count = script_of(text)
        if usual and script and script != usual and count >= 4:
            found.append(("wrong script", side))
    if ratio and len(src) + len(tgt) >= 40 and abs(_log_ratio(src, tgt) - ratio[0]) > ratio[1]:
        found.append(("odd length ratio", 0))
    return found


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _log_ratio(src: str, tgt: str) -> float:
    return math.log((len(tgt) + 1) / (len(src) + 1))
