"""The corpus without what is wrong with it, and a report of what went and why."""

import gzip
import itertools
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from dragoman.doctor.examine import Examination, Line, sides_of, wrong_with_pair
from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.shifts import Shift
from dragoman.doctor.text import mended
from dragoman.errors import DragomanError, writing
from dragoman.progress import Progress

REPORT = "dropped.tsv"
UNSURE = 5
"""Pairs on either side of a shift that are dropped: where exactly it begins is not known better."""
BEYOND_MENDING = ("not UTF-8", "NUL", "private use character", "replacement character", "very long line")


@dataclass
class FixReport:
    """What became of the pairs of a corpus."""

    src: Path
    tgt: Path
    report: Path
    read: int = 0
    kept: int = 0
    mended: int = 0
    """Pairs of which a side was changed and kept."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Pairs by the reason for which they were left out."""


def fix(examination: Examination, out: Path) -> FixReport:
    """Write what is left of an examined pair of files into the new folder `out`, with a table of what was dropped.

    Lines that are shifted against each other are put together again where the translation stands near by. Raises
    DragomanError where `out` holds something already, or where the files cannot be mended.
    """
    diagnosis = examination.diagnosis
    hopeless = {"unreadable", "same file", "empty file", "swapped sides", "not parallel"}
    for finding in diagnosis.findings:
        if finding.kind in hopeless:
            raise DragomanError(f"{finding.where}: {finding.kind} cannot be mended ({finding.example})")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DragomanError(f"{out}: is there already; --fix takes a new folder")
    src_name, tgt_name = (Path(name).name for name in examination.names)
    names = (src_name, tgt_name) if src_name != tgt_name else (f"src-{src_name}", f"tgt-{tgt_name}")
    report = FixReport(out / names[0], out / names[1], out / REPORT)
    with writing(out):
        made = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
    try:
        with writing(out), ExitStack() as stack:
            sides = [stack.enter_context(_opened(path)) for path in (report.src, report.tgt)]
            table = stack.enter_context(report.report.open("w", encoding="utf-8", newline="\n"))
            table.write("line\treason\tsource\ttarget\n")
            with Progress("mending", examination.diagnosis.src_lines) as bar:
                for number, src, tgt, reason in _judged(examination):
                    report.read += 1
                    bar.advance()
                    if reason:
                        report.dropped[reason] += 1
                        shown = [text.replace("\t", " ").replace("\0", "\\0") for text in (src, tgt)]
                        table.write(f"{number}\t{reason}\t{shown[0]}\t{shown[1]}\n")
                        continue
                    texts = mended(src), mended(tgt)
                    report.kept += 1
                    report.mended += texts != (src, tgt)
                    for side, text in zip(sides, texts, strict=True):
                        side.write(text.encode() + b"\n")
    except BaseException:
        for path in (report.src, report.tgt, report.report):
            path.unlink(missing_ok=True)
        if made:
            shutil.rmtree(out, ignore_errors=True)
        raise
    return report


def _judged(examination: Examination) -> Iterator[tuple[int, str, str, str]]:
    """(line, source, target, why it is dropped or "") of each pair, put together again where they had shifted."""
    scratch = Diagnosis(*examination.names)
    src_lines, tgt_lines = sides_of(examination.source, examination.names, scratch)
    shifts = examination.found_shifts
    seen: set[int] = set()
    for number, one, other in paired(src_lines, tgt_lines, shifts):
        if one is None or other is None:
            yield number, one.text if one else "", other.text if other else "", "shifted"
            continue
        src, tgt = one.text, other.text
        reason = _why_dropped(examination, one, other)
        if not reason:
            pair = hash((src.strip(), tgt.strip()))
            reason = "duplicate" if pair in seen else ""
            if shifts or pair in examination.repeated:  # a pair that is there once need not be remembered
                seen.add(pair)
        yield number, src, tgt, reason


def _why_dropped(examination: Examination, one: Line, other: Line) -> str:
    for kind in (*one.wrong, *other.wrong):
        if kind in BEYOND_MENDING:
            return kind
    src, tgt = mended(one.text).strip(), mended(other.text).strip()
    found = wrong_with_pair(src, tgt, examination.ratio, examination.expected)
    if found:
        return found[0][0]
    leak = examination.leak(src, tgt)
    return leak[0] if leak else ""


def paired(
    src: Iterator[Line], tgt: Iterator[Line], shifts: Sequence[Shift]
) -> Iterator[tuple[int, Line | None, Line | None]]:
    """(source line, source, target) with each source line's translation, None where there is none or it is not sure."""
    if not shifts:
        for number, (one, other) in enumerate(itertools.zip_longest(src, tgt), start=1):
            yield number, one, other
        return
    changes = [edge for shift in shifts for edge in (shift.line, shift.until and shift.until + 1) if edge]
    behind = max([0, *(-shift.offset for shift in shifts if shift.offset is not None)])
    window: deque[Line] = deque()
    first = 1  # the target line that window[0] is
    for number, one in enumerate(src, start=1):
        shift = next((shift for shift in shifts if shift.line <= number <= (shift.until or number)), None)
        offset = 0 if shift is None else shift.offset
        if offset is None or any(-UNSURE <= number - edge < UNSURE for edge in changes):
            yield number, one, None
            continue
        place = number + offset
        while first + len(window) <= place and (other := next(tgt, None)) is not None:
            window.append(other)
        while window and first < place - behind - 2 * UNSURE:
            window.popleft()
            first += 1
        yield number, one, window[place - first] if 0 <= place - first < len(window) else None


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(path, "wb", mtime=0))
    return path.open("wb")
