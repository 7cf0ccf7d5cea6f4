"""The repair of a corpus: damaged lines are repaired or their pairs dropped, each with its reason."""

import itertools
import shutil
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.doctor.examine import CHUNK_PAIRS, Examination, Line, sides_of, wrong_with_pair
from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.shifts import Shift
from dragoman.errors import Error, writing
from dragoman.languages.codes import MIN_CHARS_FOR_LANGUAGE, language_of
from dragoman.languages.identification import other_language
from dragoman.progress import Progress
from dragoman.quality.text_faults import repaired, wrong_with
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import COMPRESSIONS, language_of_file

NumberedPair = tuple[int, Line | None, Line | None]  # (source line from 1, source, target)

REPORT = "dropped.tsv"
UNSURE_PAIRS = 5  # pairs that are dropped on either side of a shift, as its exact beginning is not known
BEYOND_MENDING = ("not UTF-8", "NUL", "private use character", "replacement character", "very long line")


@dataclass
class FixReport:
    """The files written, and the numbers of pairs."""

    src: Path
    tgt: Path
    report: Path
    read: int = 0
    kept: int = 0
    repaired: int = 0  # kept with a changed side
    dropped: Counter[str] = field(default_factory=Counter)  # by reason


def fix(examination: Examination, out: Path) -> FixReport:
    """Write the repaired corpus into the new folder `out`, with a table of the dropped pairs.

    Shifted lines are paired with their translations again. Raises DragomanError where `out` holds something already, or
    where the files cannot be repaired.
    """
    _require_mendable(examination)
    require_new(out)
    names = _names(examination)
    report = FixReport(out / names[0], out / names[1], out / REPORT)
    with writing(out):
        made = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
    try:
        with writing(out):
            _write(examination, report)
    except BaseException:
        for path in (report.src, report.tgt, report.report):
            path.unlink(missing_ok=True)
        if made:
            shutil.rmtree(out, ignore_errors=True)
        raise
    return report


def _names(examination: Examination) -> tuple[str, str]:
    """Plain names that end in their languages: `corpus.de` of `corpus.de.gz`, `guide.fr` of `fr/guide.txt`."""
    is_single = not isinstance(examination.source, FilesSource)
    names = []
    for name, code, side in zip(examination.names, examination.codes, ("src", "tgt"), strict=True):
        path = Path(Path(name).name)
        path = path.with_suffix("") if path.suffix in COMPRESSIONS else path
        bare = path.name.partition(".")[0] if is_single else path.stem
        plain = path.stem if path.suffix.lower() == ".txt" else path.name
        named = next((known for known in (plain, path.stem) if not is_single and language_of_file(known)), "")
        names.append((named or f"{bare}.{code or side}", f"{bare}.{side}"))
    (src, plain_src), (tgt, plain_tgt) = names
    return (src, tgt) if src != tgt else (plain_src, plain_tgt)


def _require_mendable(examination: Examination) -> None:
    diagnosis, shifts = examination.diagnosis, examination.shifts
    for finding in diagnosis.findings:
        if finding.kind in ("unreadable", "same file", "empty file", "swapped sides", "not parallel"):
            raise Error.BAD_CORPUS(
                f"{finding.kind} cannot be repaired ({finding.example})", file=finding.file, line=finding.line
            )
    longer = diagnosis.tgt_lines - diagnosis.src_lines
    explained = bool(shifts) and shifts[-1].until is None and shifts[-1].offset in (None, longer)
    if longer and not explained:
        raise Error.BAD_CORPUS(
            f" has {diagnosis.src_lines:,} lines but {examination.names[1]} has {diagnosis.tgt_lines:,}, and no "
            "shift was found that says where: nothing can be put together again",
            file=examination.names[0],
        )


def _write(examination: Examination, report: FixReport) -> None:
    """Write the pairs that are kept and the table of the others, and count them in the report."""
    with ExitStack() as stack:
        sides: list[Any] = [stack.enter_context(path.open("wb")) for path in (report.src, report.tgt)]
        table = stack.enter_context(report.report.open("w", encoding="utf-8", newline="\n"))
        bar = stack.enter_context(Progress("mending", examination.diagnosis.src_lines))
        table.write("line\treason\tsource\ttarget\n")
        for number, src, tgt, reason in judged(examination):
            report.read += 1
            bar.advance()
            if reason:
                report.dropped[reason] += 1
                columns = [text.replace("\t", " ").replace("\0", "\\0") for text in (src, tgt)]
                table.write("\t".join([str(number), reason, *columns]) + "\n")
                continue
            texts = repaired_pair(examination, src, tgt)
            assert not any("\n" in text for text in texts), "a line for each pair"
            report.kept += 1
            report.repaired += texts != (src, tgt)
            for side, text in zip(sides, texts, strict=True):
                side.write(text.encode() + b"\n")


def require_new(out: Path) -> None:
    """Raises DragomanError where a folder holds something already."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Error.ALREADY_THERE("is there already; `fix` takes a new folder", file=out)


def judged(examination: Examination) -> Iterator[tuple[int, str, str, str]]:
    """(line, source, target, reason for dropping it or "") of each pair, with shifted lines paired again."""
    repeated = _repeated(examination)
    seen: set[int] = set()
    pairs = _pairs(examination)
    while chunk := list(itertools.islice(pairs, CHUNK_PAIRS)):
        reasons = [_reason(examination, one, other) for _, one, other in chunk]
        foreign = _foreign(examination, [pair for pair, reason in zip(chunk, reasons, strict=True) if not reason])
        for (number, one, other), reason in zip(chunk, reasons, strict=True):
            src, tgt = one.text if one else "", other.text if other else ""
            reason = reason or ("wrong language" if number in foreign else "")
            if not reason and (pair := _hash(examination, src, tgt)) in repeated:
                reason = "duplicate" if pair in seen else ""
                seen.add(pair)
            yield number, src, tgt, reason


def _pairs(examination: Examination) -> Iterator[NumberedPair]:
    sides = sides_of(examination.source, examination.names, Diagnosis("", ""), examination.misread)
    return paired(*sides, examination.shifts)


def _repeated(examination: Examination) -> set[int]:
    """Hashes of the pairs that come more than once, so that the others need not be remembered."""
    pairs = _pairs(examination)
    hashes = array("q", (_hash(examination, one.text, other.text) for _, one, other in pairs if one and other))
    values, counts = np.unique(np.array(hashes), return_counts=True)
    return set(values[counts > 1].tolist())


def _hash(examination: Examination, src: str, tgt: str) -> int:
    """A hash of a pair as it will be written."""
    return hash(repaired_pair(examination, src, tgt))


def repaired_pair(examination: Examination, src: str, tgt: str) -> tuple[str, str]:
    """Both texts of a pair, with all damage repaired that can be."""
    of_src, of_tgt = examination.misread
    return repaired(src, of_src).strip(), repaired(tgt, of_tgt).strip()


def _foreign(examination: Examination, pairs: list[NumberedPair]) -> set[int]:
    """The numbers of pairs that have a side in a wrong language, as far as the identifier can tell."""
    if examination.identify is None and examination.limit is None and not examination.shifts:
        return {number for number, *_ in pairs if any(number in foreign for foreign in examination.foreign)}
    foreign: set[int] = set()
    for side, language in enumerate(examination.codes):
        reader = examination.misread[side]
        texts = {number: reader.repaired(line.text) for number, *lines in pairs if (line := lines[side])}
        if examination.identify is None:
            likely = examination.codes[1 - side]
            foreign |= {number for number, text in texts.items() if other_language(text.strip(), language, likely)}
            continue
        texts = {number: text for number, text in texts.items() if len(text) >= MIN_CHARS_FOR_LANGUAGE}
        language = (examination.src_lang, examination.tgt_lang)[side]
        if language and texts:
            codes = examination.identify(list(texts.values()))
            foreign |= {
                number for number, code in zip(texts, codes, strict=True) if language_of(code) != language_of(language)
            }
    return foreign


def _reason(examination: Examination, one: Line | None, other: Line | None) -> str:
    """The reason for dropping a pair; "" if the pair stays."""
    if one is None or other is None:
        return "shifted"
    src, tgt = repaired_pair(examination, one.text, other.text)
    for kind in (*one.wrong, *other.wrong, *wrong_with(src), *wrong_with(tgt)):  # an entity may stand for anything
        if kind in BEYOND_MENDING:
            return kind
    if findings := wrong_with_pair(src, tgt, examination.ratio, examination.expected):
        return findings[0][0]
    leak = examination.leaks.of(src, tgt)
    return leak[0] if leak else ""


def paired(src: Iterator[Line], tgt: Iterator[Line], shifts: Sequence[Shift]) -> Iterator[NumberedPair]:
    """Each source line with its translation, None where there is none or it is not sure."""
    if not shifts:
        for number, (one, other) in enumerate(itertools.zip_longest(src, tgt), start=1):
            yield number, one, other
        return
    behind = max([0, *(-shift.offset for shift in shifts if shift.offset is not None)])
    window: deque[Line] = deque()
    first = 1  # number of the target line window[0]
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
        while window and first < place - behind - 2 * UNSURE_PAIRS:
            window.popleft()
            first += 1
        yield number, one, window[place - first] if 0 <= place - first < len(window) else None


def _stretches(shifts: Sequence[Shift]) -> list[tuple[int, int | None]]:
    """(first source line, offset) of stretches, offset None where lines have no certain translation.

    >>> _stretches([Shift(100, 1, 199)])
    [(1, 0), (95, None), (105, 1), (195, None), (205, 0)]
    """
    changes: list[tuple[int, int | None]] = [(1, 0)]
    for shift in shifts:
        if changes[-1][0] == shift.line:
            changes.pop()
        changes.append((shift.line, shift.offset))
        if shift.until is not None:
            changes.append((shift.until + 1, 0))
    stretches = changes[:1]
    for line, offset in changes[1:]:
        stretches += [(max(1, line - UNSURE_PAIRS), None), (line + UNSURE_PAIRS, offset)]
    ends = [line for line, _ in stretches[1:]] + [None]
    return [(line, offset) for (line, offset), end in zip(stretches, ends, strict=True) if end is None or end > line]
