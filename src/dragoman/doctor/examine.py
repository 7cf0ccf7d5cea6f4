"""The examination of a parallel corpus: each line, each pair, and the whole."""

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.shifts import Shift, Shifts
from dragoman.errors import DragomanError, show
from dragoman.languages import identification as identifier
from dragoman.languages.codes import MIN_CHARS_FOR_LANGUAGE, is_chinese, language_of, name_of, parsed, script_of
from dragoman.languages.scripts import script_and_letters, script_of_language
from dragoman.progress import Progress
from dragoman.quality.faults import is_copy, length_ratio, other_script
from dragoman.quality.leakage import Leaks
from dragoman.quality.misread import Misread
from dragoman.quality.test_set import TestSet
from dragoman.quality.text_faults import wrong_with
from dragoman.text.corpus import FilesSource, MixSource
from dragoman.text.lines import is_same_file, open_bytes, raw_lines, refuse_json
from dragoman.text.sources.base import PairSource, files_of

CHUNK_PAIRS = 5000  # pairs that are examined at a time
LONG_LINE = 5000  # characters of a line that is too long for a sentence; the rest of it is not kept
WORTH_COPYING = 12  # characters up to which a copy may be a name or a number, and a correct translation
IDENTIFIED_LINES = 100  # lines of each chunk whose language is identified, as a model is slow
MIN_PAIRS_FOR_ALIGNMENT = 100  # pairs of the smallest corpus whose alignment is examined
MIN_BOILERPLATE_PAIRS, MIN_BOILERPLATE_SHARE = 20, 0.01
"""A pair that comes so often, and is such a share of all, is no language but a form."""
MAX_MARKUP_SHARE = 0.5
"""A file with tags in a larger share of its lines is no text."""
MIN_LOG_EVIDENCE_NATS = 1.0
"""Evidence that lines correspond, in nats a line. Translations have 2 to 4 (benchmarks/log/2026-11.md, "2026-11-21:
where lines have shifted"), shuffled lines 0.2 to 0.4, as lexicon and tables fit the lines that they were learnt from by
chance."""

Identify = Callable[[Sequence[str]], Sequence[str]]  # returns the language code of each text


class Line(NamedTuple):
    """A line's text, as far as it can be decoded, and the kinds of its findings."""

    text: str
    wrong: Sequence[str]


Pairs = list[tuple[int, Line, Line]]  # (line number, source, target)
T = TypeVar("T")


def sides_of(
    source: PairSource, names: tuple[str, str], diagnosis: Diagnosis, misread: Sequence[Misread]
) -> tuple[Iterator[Line], Iterator[Line]]:
    """The lines of both sides. Findings in a line are added to the diagnosis when it is read."""
    if isinstance(source, FilesSource):
        src, tgt = files_of(source)
        return _file_lines(src, names[0], diagnosis, misread[0]), _file_lines(tgt, names[1], diagnosis, misread[1])
    # One file has both sides: its own reader reports damage, which concerns both.
    numbered = ((pair.line, pair) for pair in source.pairs())
    src_pairs, tgt_pairs = itertools.tee(_readable(numbered, names[0], diagnosis))
    return (
        (_examined(pair.src, names[0], number, diagnosis, misread[0]) for number, pair in src_pairs),
        (_examined(pair.tgt, names[1], number, diagnosis, misread[1]) for number, pair in tgt_pairs),
    )


def _file_lines(path: Path, name: str, diagnosis: Diagnosis, misread: Misread) -> Iterator[Line]:
    def numbered() -> Iterator[tuple[int, bytes]]:
        with open_bytes(path) as stream:
            for number, raw in enumerate(raw_lines(stream, name), start=1):
                if number == 1:
                    refuse_json(raw.decode("utf-8", "replace"), path)
                yield number, raw

    for number, raw in _readable(numbered(), name, diagnosis):
        yield _decoded(raw, name, number, diagnosis, misread)


def _readable(lines: Iterator[tuple[int, T]], name: str, diagnosis: Diagnosis) -> Iterator[tuple[int, T]]:
    """Numbered lines until one cannot be read, which is a finding."""
    number = 0
    try:
        for number, line in lines:
            yield number, line
    except DragomanError as error:
        diagnosis.add("unreadable", name, number + 1 if number else None, str(error))


def _decoded(raw: bytes, name: str, number: int, diagnosis: Diagnosis, misread: Misread) -> Line:
    """A line of a file by the rules of `text.lines`; where these refuse one, it is a finding."""
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
    return _examined(text, name, number, diagnosis, misread)


def _examined(text: str, name: str, number: int, diagnosis: Diagnosis, misread: Misread) -> Line:
    if len(text) > LONG_LINE:
        diagnosis.add("very long line", name, number, f"{len(text):,} characters: {text[:60]}")
        return Line(text[:LONG_LINE], ["very long line"])  # thousands of lines are held at a time
    wrong = wrong_with(text, misread)
    for kind in wrong:
        diagnosis.add(kind, name, number, text)
    return Line(text, wrong)


@dataclass(eq=False)
class Examination:
    """The examination of a parallel corpus, by `run`; of its first `limit` pairs, if that is given.

    Languages are codes (`de`); "" if unknown: they are told from the text. Pairs are compared with those of `tests`;
    `identify` tells the language of texts, in the place of `languages/identification.py`. Nothing inside of a file
    raises an error: an unreadable file is a finding. Raises DragomanError for a file that does not exist.
    """

    source: PairSource
    src_lang: str = ""
    tgt_lang: str = ""
    tests: Sequence[TestSet] = ()
    identify: Identify | None = None
    limit: int | None = None
    ordered: bool = True
    """False for pairs that belong together by themselves and not by their order: no shift is looked for."""
    diagnosis: Diagnosis = field(init=False)

    def __post_init__(self) -> None:
        self.source = self.source.unweighted()
        files = files_of(self.source) or [Path(f"the {self.source.type} corpus")]
        mixed = isinstance(self.source, MixSource)
        self.names = ("the mix's source", "the mix's target") if mixed else (show(files[0]), show(files[-1]))
        self.diagnosis = Diagnosis(*self.names)
        self.leaks = Leaks(self.tests)
        self.hashes = array("q")
        self.side_hashes = array("q"), array("q")
        self.codes = [self.src_lang, self.tgt_lang]  # as they are given, or told from the text
        self.misread = Misread(self.src_lang), Misread(self.tgt_lang)
        self.aligner = Shifts()
        self.shifts: list[Shift] = []
        self.scripts = Counter[str](), Counter[str]()
        self.expected: list[str | None] = [None, None]  # the usual script of each side
        self.ratio: tuple[float, float] | None = None
        """The usual log ratio of lengths, and the tolerated distance from it."""
        self.languages = Counter[str](), Counter[str]()
        self.foreign: tuple[set[int], set[int]] = set(), set()
        """The numbers of the lines in a wrong language, for each side; only compared lines are looked at."""
        self.texts = [0, 0]  # lines of each side that are not blank

    def run(self) -> Diagnosis:
        diagnosis = self.diagnosis
        if isinstance(self.source, FilesSource) and is_same_file(*files_of(self.source)):
            diagnosis.add("same file", self.names[0])
            return diagnosis
        with Progress("examining", None) as bar:
            sides = sides_of(self.source, self.names, diagnosis, self.misread)
            all_pairs: Iterator[tuple[Line | None, Line | None]] = itertools.zip_longest(*sides)
            pairs = itertools.islice(all_pairs, self.limit)
            first = 1
            while chunk := list(itertools.islice(pairs, CHUNK_PAIRS)):
                self._chunk(first, chunk)
                first += len(chunk)
                bar.advance(len(chunk))
            complete = next(all_pairs, None) is None
        if not diagnosis.has("unreadable"):
            self._whole(complete)
        return diagnosis

    def _chunk(self, first: int, chunk: list[tuple[Line | None, Line | None]]) -> None:
        src, tgt = [one.text for one, _ in chunk if one], [other.text for _, other in chunk if other]
        self.diagnosis.src_lines += len(src)
        self.diagnosis.tgt_lines += len(tgt)
        for side, texts in enumerate((src, tgt)):
            self.texts[side] += sum(1 for text in texts if text.strip())
        if self.ordered:
            self.aligner.add(src, tgt)
        pairs = [(number, one, other) for number, (one, other) in enumerate(chunk, start=first) if one and other]
        if first == 1:
            self._first_look(pairs)
        for pair in pairs:
            self._pair(*pair)
        if self.identify:
            self._identify(pairs, self.identify)
        else:
            self._compare_languages(pairs)

    def _first_look(self, pairs: Pairs) -> None:
        """Set the usual script of each side and the usual ratio of lengths, from the first pairs."""
        for side, language in enumerate((self.src_lang, self.tgt_lang)):
            counts = Counter(script_and_letters(lines[side].text)[0] for _, *lines in pairs)
            counts.pop("", None)
            known = script_of_language(language) if language else None
            self.expected[side] = _chinese(language) or known or max(counts, key=counts.__getitem__, default=None)
        texts = [(one.text, other.text) for _, one, other in pairs]
        for side, code in enumerate(self.codes):
            if not identifier.known(code):
                self.codes[side] = identifier.common_language([pair[side] for pair in texts]) or code
        ratios = np.array([_log_ratio(src, tgt) for src, tgt in texts if len(src) + len(tgt) >= 40])
        if len(ratios) >= 50:
            median = float(np.median(ratios))
            spread = 1.4826 * float(np.median(np.abs(ratios - median)))
            self.ratio = median, max(math.log(3.0), 6.0 * spread)

    def _pair(self, number: int, one: Line, other: Line) -> None:
        add, (src, tgt) = self.diagnosis.add, self.as_written(one, other)
        for kind, side in wrong_with_pair(src, tgt, self.ratio, self.expected):
            add(kind, self.names[side], number, (src, tgt)[side])
        for side, text in enumerate((src, tgt)):
            self.scripts[side][script_and_letters(text)[0]] += 1
        # Blank pairs have their own kind of finding and are not each other's duplicates.
        self.hashes.append(hash((src, tgt)) if src or tgt else -number)
        for hashes, text in zip(self.side_hashes, (src, tgt), strict=True):
            hashes.append(hash(text) if text else -number)
        if leak := self.leaks.of(src, tgt):
            kind, test = leak
            add(kind, self.names[0], number, f"{test}: {src}")

    def as_written(self, one: Line, other: Line) -> tuple[str, str]:
        """The stripped texts of a pair, each read in the encoding that it is written in."""
        of_src, of_tgt = (
            (reader.repaired(line.text) if "mojibake" in line.wrong else line.text).strip()
            for reader, line in zip(self.misread, (one, other), strict=True)
        )
        return of_src, of_tgt

    def _identify(self, pairs: Pairs, identify: Identify) -> None:
        """Identify the languages of some lines of a chunk."""
        chosen = [pair for pair in pairs if min(len(pair[1].text), len(pair[2].text)) >= MIN_CHARS_FOR_LANGUAGE]
        chosen = chosen[:IDENTIFIED_LINES]
        for side, language in enumerate((self.src_lang, self.tgt_lang)):
            texts = [lines[side].text for _, *lines in chosen]
            for (number, *_), text, code in zip(chosen, texts, identify(texts) if texts else (), strict=True):
                self.languages[side][language_of(code)] += 1
                if language and language_of(code) != language_of(language):
                    self.diagnosis.add("wrong language", self.names[side], number, f"{code}: {text}")
            self.diagnosis.sampled["wrong language", self.names[side]] = self.languages[side].total()

    def _compare_languages(self, pairs: Pairs) -> None:
        """Compare each line with the languages of its side and of the other one."""
        for number, *lines in pairs:
            texts = self.as_written(*lines)
            others: list[str | None] = [None, None]
            for side, text in enumerate(texts):
                code, likely = self.codes[side], self.codes[1 - side]
                if identifier.is_long_enough(text) and identifier.known(code):
                    others[side] = identifier.other_language(text, code, likely)
                    self.languages[side][others[side] or language_of(code)] += 1
                if others[side]:
                    self.foreign[side].add(number)
            if tuple(others) == tuple(map(language_of, self.codes[::-1])):
                self.diagnosis.add("swapped pair", self.names[0], number, texts[0])
            elif texts[0] != texts[1]:
                for side, other in enumerate(others):
                    if other:
                        self.diagnosis.add("wrong language", self.names[side], number, f"{other}: {texts[side]}")
        for side, name in enumerate(self.names):
            self.diagnosis.sampled["wrong language", name] = self.languages[side].total()
            code, looked_at = language_of(self.codes[side]), self.languages[side].total()
            if looked_at:
                reason = "" if code == language_of((self.src_lang, self.tgt_lang)[side]) else ", as its text says"
                share = 100 * self.languages[side][code] / looked_at
                text = f"{name_of(code)}{reason}, in {share:.1f} % of {looked_at:,} lines"
            else:
                why = "it is not among the languages that are told apart"
                if identifier.known(self.codes[side]):
                    why = "no line is long enough to tell"
                text = f"{code or 'unknown'}, not looked at: {why}"
            self.diagnosis.languages[name] = text

    def _whole(self, complete: bool) -> None:
        """Add the findings about the whole corpus; `complete`: it was read to its end."""
        diagnosis, add = self.diagnosis, self.diagnosis.add
        lines = diagnosis.src_lines, diagnosis.tgt_lines
        for name, count in zip(self.names, lines, strict=True):
            tagged = diagnosis.by_place.get(("HTML", name))
            if tagged and tagged.count > MAX_MARKUP_SHARE * count:
                add("markup file", name, None, tagged.example)
        for name, count, texts in zip(self.names, lines, self.texts, strict=True):
            if not texts:
                add("empty file", name, None, f"{count:,} lines, all of them blank" if count else "")
        if 0 in self.texts:
            return
        if lines[0] != lines[1]:
            add("unequal line counts", self.names[0], min(lines) + 1, f"{lines[0]:,} against {lines[1]:,} lines")
        for name, reader in zip(self.names, self.misread, strict=True):
            if later := [text for text in list(reader.doubtful) if reader.is_misread(text)]:
                add("mojibake", name, None, later[0], len(later))
        self._duplicates()
        self._swapped()
        if self.ordered and min(lines) >= MIN_PAIRS_FOR_ALIGNMENT and not diagnosis.has("swapped sides"):
            self._alignment(self.aligner.finish(complete=complete), lines)

    def _duplicates(self) -> None:
        _, first, counts = np.unique(np.array(self.hashes), return_index=True, return_counts=True)
        if repeated := int((counts - 1).sum()):
            line = int(first[counts > 1].min()) + 1
            self.diagnosis.add("duplicate", self.names[0], line, f"line {line:,} comes again", count=repeated)
        self._boilerplate()

    def _boilerplate(self) -> None:
        """Look for a pair that comes very often, and for a line with very many different translations."""
        pairs = np.array(self.hashes)
        fewest = max(MIN_BOILERPLATE_PAIRS, MIN_BOILERPLATE_SHARE * len(pairs))
        for name, hashes in zip((self.names[0], *self.names), (pairs, *map(np.array, self.side_hashes)), strict=True):
            _, first, inverse, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
            if (times := int(counts.max())) < fewest:
                continue
            line = int(first[counts.argmax()]) + 1
            different = len(np.unique(pairs[inverse == counts.argmax()]))
            if different == 1 or different >= fewest:
                text = f"line {line:,} comes {times:,} times"
                text += f", {different:,} times with another translation" if different > 1 else ""
                self.diagnosis.add("boilerplate", name, line, text, count=times)
                return

    def _swapped(self) -> None:
        """Compare each side with the other's language, by the identifier or else by script."""
        codes = language_of(self.codes[0]), language_of(self.codes[1])
        reason = ""
        if all(self.languages) and all(codes) and codes[0] != codes[1]:
            if tuple(counts.most_common(1)[0][0] for counts in self.languages) == codes[::-1]:
                reason = f"it is {codes[1]} and {codes[0]}"
        else:
            expected = tuple(map(script_of_language, self.codes))
            usual = tuple(max(counts, key=counts.__getitem__, default=None) for counts in self.scripts)
            if None not in expected and expected[0] != expected[1] and usual == expected[::-1]:
                reason = f"its script is {usual[0]}"
        if reason:
            self.diagnosis.add("swapped sides", self.names[0], None, reason)
            for place in list(self.diagnosis.by_place):
                if place[0] in ("swapped pair", "wrong language"):  # of which swapped sides are the reason
                    del self.diagnosis.by_place[place]

    def _alignment(self, shifts: list[Shift], lines: tuple[int, int]) -> None:
        lost = sum((shift.until or lines[0]) - shift.line + 1 for shift in shifts if shift.offset is None)
        log_evidence = self.aligner.log_evidence / lines[0]
        if lost > 0.9 * lines[0] or log_evidence < MIN_LOG_EVIDENCE_NATS:
            if abs(lines[0] - lines[1]) <= self.aligner.max_offset:  # beyond, no line could meet its translation
                each = f"{log_evidence:.2f} nats a line"
                text = f"nothing says that lines belong together ({each}; translations have 2 to 4)"
                self.diagnosis.add("not parallel", self.names[0], None, text)
            return
        self.shifts = shifts
        for shift in shifts:
            until = f"to line {shift.until:,}" if shift.until else "to the end"
            if shift.offset is None:
                text = f"from here {until} no target line near by is the translation"
            else:
                count = f"{abs(shift.offset)} line{'s' if abs(shift.offset) > 1 else ''}"
                text = f"from here {until} the translation stands {count} {'later' if shift.offset > 0 else 'earlier'}"
            self.diagnosis.add("shift", self.names[0], shift.line, text)


def _chinese(code: str) -> str | None:
    """The script of Chinese that a code names."""
    _, script, region, *_ = parsed(code)
    return script_of(code) if is_chinese(code) and (script or region) else None


def wrong_with_pair(
    src: str, tgt: str, ratio: tuple[float, float] | None, expected: Sequence[str | None] = (None, None)
) -> list[tuple[str, int]]:
    """(kind of finding, side: 0 or 1) of a pair of stripped texts.

    `ratio`: usual log ratio of lengths, and the tolerated distance from it. `expected`: the script of each side.
    """
    if not src or not tgt:
        return [("blank on one side", 1 if src else 0) if src or tgt else ("blank on both sides", 0)]
    if not any(map(str.isalpha, src + tgt)):
        return [("no letters", 0)]
    findings = []
    if len(src) > WORTH_COPYING and is_copy(src, tgt):
        findings.append(("copy of the source", 1))
    for side, (text, usual) in enumerate(zip((src, tgt), expected, strict=True)):
        if other_script(text, usual, (tgt, src)[side]):
            findings.append(("wrong script", side))
    if ratio and len(src) + len(tgt) >= 40 and abs(_log_ratio(src, tgt) - ratio[0]) > ratio[1]:
        findings.append(("odd length ratio", 0))
    return findings


def _log_ratio(src: str, tgt: str) -> float:
    return math.log(length_ratio(tgt, src, room=1))
