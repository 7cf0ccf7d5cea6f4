"""The corpus without what is wrong with it, and a report of what went and why."""

import gzip
import itertools
import shutil
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from dragoman.doctor.examine import CHUNK, Examination, Line, sides_of, wrong_with_pair
from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.shifts import Shift
from dragoman.doctor.text import mended, wrong_with
from dragoman.errors import DragomanError, writing
from dragoman.progress import Progress
from dragoman.text.languages import TELLING, language_of

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
    require_new(out)
    shifts, longer = examination.found_shifts, diagnosis.tgt_lines - diagnosis.src_lines
    explained = bool(shifts) and shifts[-1].until is None and shifts[-1].offset in (None, longer)
    if longer and not explained:
        raise DragomanError(
            f"{examination.names[0]} has {diagnosis.src_lines:,} lines but {examination.names[1]} has "
            f"{diagnosis.tgt_lines:,}, and no shift was found that says where: nothing can be put together again"
        )
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
                    assert not any("\n" in text for text in texts), "a line for each pair"
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


def require_new(out: Path) -> None:
    """Raises DragomanError where a folder holds something already."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DragomanError(f"{out}: is there already; --fix takes a new folder")


def _judged(examination: Examination) -> Iterator[tuple[int, str, str, str]]:
    """(line, source, target, why it is dropped or "") of each pair, put together again where they had shifted."""
    repeated = _repeated(examination)
    seen: set[int] = set()
    pairs = _pairs(examination)
    while chunk := list(itertools.islice(pairs, CHUNK)):
        reasons = [
            "shifted" if one is None or other is None else _why_dropped(examination, one, other)
            for _, one, other in chunk
        ]
        foreign = _foreign(examination, [pair for pair, reason in zip(chunk, reasons, strict=True) if not reason])
        for (number, one, other), reason in zip(chunk, reasons, strict=True):
            src, tgt = one.text if one else "", other.text if other else ""
            reason = reason or ("wrong language" if number in foreign else "")
            if not reason and (pair := _hash(src, tgt)) in repeated:
                reason = "duplicate" if pair in seen else ""
                seen.add(pair)
            yield number, src, tgt, reason


def _pairs(examination: Examination) -> Iterator[tuple[int, Line | None, Line | None]]:
    src, tgt = sides_of(examination.source, examination.names, Diagnosis(*examination.names))
    return paired(src, tgt, examination.found_shifts)


def _repeated(examination: Examination) -> set[int]:
    """Hashes of the pairs that come more than once, so that the others need not be remembered."""
    hashes = array("q", (_hash(one.text, other.text) for _, one, other in _pairs(examination) if one and other))
    values, counts = np.unique(np.frombuffer(hashes, dtype=np.int64), return_counts=True)
    return set(values[counts > 1].tolist())


def _hash(src: str, tgt: str) -> int:
    """Of a pair as it will be written."""
    return hash((mended(src).strip(), mended(tgt).strip()))


def _foreign(examination: Examination, pairs: list[tuple[int, Line | None, Line | None]]) -> set[int]:
    """The numbers of pairs of which a side is in another language than it should be, where that can be told."""
    identify, wanted = examination.identify, (examination.src_lang, examination.tgt_lang)
    found: set[int] = set()
    for side, language in enumerate(wanted):
        texts = {number: line.text for number, *lines in pairs if (line := lines[side]) and len(line.text) >= TELLING}
        if identify is not None and language and texts:
            said = identify(list(texts.values()))
            found |= {number for number, code in zip(texts, said, strict=True) if code != language_of(language)}
    return found


def _why_dropped(examination: Examination, one: Line, other: Line) -> str:
    src, tgt = mended(one.text).strip(), mended(other.text).strip()
    for kind in (*one.wrong, *other.wrong, *wrong_with(src), *wrong_with(tgt)):  # an entity may stand for anything
        if kind in BEYOND_MENDING:
            return kind
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
    behind = max([0, *(-shift.offset for shift in shifts if shift.offset is not None)])
    window: deque[Line] = deque()
    first = 1  # the target line that window[0] is
    stretches = deque(_stretches(shifts))
    for number, one in enumerate(src, start=1):
        while len(stretches) > 1 and stretches[1][0] <= number:
            stretches.popleft()
        offset = stretches[0][1]
        if offset is None:
            yield number, one, None
            continue
        place = number + offset
        while first + len(window) <= place and (other := next(tgt, None)) is not None:
            window.append(other)
        while window and first < place - behind - 2 * UNSURE:
            window.popleft()
            first += 1
        yield number, one, window[place - first] if 0 <= place - first < len(window) else None


def _stretches(shifts: Sequence[Shift]) -> list[tuple[int, int | None]]:
    """(first source line, offset) of stretches, None where lines have no translation or it is not sure which.

    >>> _stretches([Shift(100, 1, 199)])
    [(1, 0), (95, None), (105, 1), (195, None), (205, 0)]
    """
    plain: list[tuple[int, int | None]] = [(1, 0)]
    for shift in shifts:
        if plain[-1][0] == shift.line:
            plain.pop()
        plain.append((shift.line, shift.offset))
        if shift.until is not None:
            plain.append((shift.until + 1, 0))
    found: list[tuple[int, int | None]] = []
    for line, offset in plain:
        if line > 1:
            found.append((max(1, line - UNSURE), None))
        found.append((line + UNSURE if line > 1 else 1, offset))
    ends = [line for line, _ in found[1:]] + [None]
    return [
        (max(line, 1), offset) for (line, offset), end in zip(found, ends, strict=True) if end is None or end > line
    ]


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(path, "wb", mtime=0))
    return path.open("wb")
