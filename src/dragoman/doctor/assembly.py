"""One corpus from a collection of files: cleaned, without conflicts, copies and leaks, split by document.

    record = assemble(CollectionConfig(paths=["memories"]), ("en", "fr"), Path("corpus"))

writes `train.en`, `train.fr`, `valid.*`, `test.*`, `origins.tsv` (file and line of each pair of `train`) and
`files.json`, which says what came from where. The time is in proportion to the size.
"""

import html
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.random import hash64
from dragoman.doctor.collection import TEXTS, FileRecord, collect
from dragoman.doctor.examine import Examination
from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.fix import judged
from dragoman.doctor.shifts import Shift
from dragoman.errors import Error, writing
from dragoman.formats.base import Entry
from dragoman.quality.leakage import Leakage, key
from dragoman.runs import atomic_io
from dragoman.text.accelerators import without_accelerators
from dragoman.text.corpus import CollectionConfig
from dragoman.text.placeholders import spans
from dragoman.text.sources.base import Pair, PairSource

RECORD = "files.json"
ORIGINS = "origins.tsv"
SPLITS = ("train", "valid", "test")
LARGEST_SHARE = 50
"""Validation and test have at most one pair of so many each."""
EXAMPLES = 20
"""Conflicts that the record shows."""

_QUALIFIER = re.compile(r"[\w .-]+\|(?=[^|]+$)")
"""Words for the translator that old catalogues put before a message: `Script|Arabic`."""
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
_DIGITS = re.compile(r"\d+")


class Row(NamedTuple):
    """A pair of the corpus, and where it comes from."""

    src: str
    tgt: str
    file: int
    """Number of its file."""
    line: int
    approved: bool
    changed: str


@dataclass
class Assembly:
    """A corpus that was made of files, and the record of how."""

    splits: dict[str, list[Row]]
    files: list[FileRecord]
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    """The first sources with several translations: the one that was kept, and the others."""
    conflicting: int = 0
    """Sources that had several translations."""
    split_by: str = "document"
    diagnosis: Diagnosis | None = None

    def totals(self) -> Counter[str]:
        """The number of entries by what became of them."""
        total = Counter[str]()
        for record in self.files:
            total.update(record.fates)
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "pairs": {name: len(rows) for name, rows in self.splits.items()},
            "read": sum(record.read for record in self.files),
            "totals": dict(self.totals()),
            "conflicting_sources": self.conflicting,
            "conflicts": self.conflicts,
            "split_by": self.split_by,
            "doctor": [finding.to_dict() for finding in self.diagnosis.findings] if self.diagnosis else [],
            "files": [record.to_dict() for record in self.files],
        }


class CollectedSource(PairSource):
    """The pairs of rows, as the doctor reads a corpus."""

    type = "collected"

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def paths(self) -> dict[str, list[Path]]:
        return {}

    def pairs(self) -> Iterator[Pair]:
        return (Pair(number, row.src, row.tgt) for number, row in enumerate(self.rows, start=1))


def gathered(config: CollectionConfig, languages: tuple[str, str]) -> Assembly:
    """Read, clean and split a collection.

    Raises DragomanError where a path is not there, or nothing is left to train on.
    """
    files: list[FileRecord] = []
    rows: list[Row] = []
    for record, entries in collect(config, languages):
        for entry in entries:
            for src, tgt, fate in cleaned(entry):
                if fate:
                    record.fates[fate] += 1
                else:
                    rows.append(Row(src, tgt, len(files), entry.line, entry.state == "approved", entry.changed))
        files.append(record)
    assembly = Assembly({}, files)
    if not rows:
        raise Error.EMPTY(
            f"no pair from {languages[0]} to {languages[1]} in {', '.join(config.paths)}", _first_notes(files)
        )
    rows = _settled(rows, assembly)
    rows = _without_copies(rows, files)
    rows = _healthy(rows, languages, assembly)
    _split(rows, config, assembly)
    for name, split in assembly.splits.items():
        for row in split:
            files[row.file].fates[name] += 1
    return assembly


def assemble(config: CollectionConfig, languages: tuple[str, str], out: Path) -> Assembly:
    """Make the corpus of a collection in the new folder `out`. Raises DragomanError as `gathered` does."""
    assembly = gathered(config, languages)
    building = out.with_name(out.name + ".tmp")
    try:
        with writing(out):
            atomic_io.remove(building)
            building.mkdir(parents=True)
            for name, rows in assembly.splits.items():
                _write(building / f"{name}.{languages[0]}", (row.src for row in rows))
                _write(building / f"{name}.{languages[1]}", (row.tgt for row in rows))
            origins = (f"{assembly.files[row.file].path}\t{row.line}" for row in assembly.splits["train"])
            _write(building / ORIGINS, origins)
            (building / RECORD).write_text(json.dumps(assembly.to_dict(), indent=1, ensure_ascii=False) + "\n")
            atomic_io.publish(building, out)
    finally:
        atomic_io.remove(building)
    return assembly


def summary(assembly: Assembly) -> list[str]:
    """Lines that say what came of the files."""
    record, totals = assembly.to_dict(), assembly.totals()
    unread = sum(1 for file in assembly.files if file.note)
    lines = [f"{len(assembly.files) - unread:,} files read, {unread:,} not; {record['read']:,} entries"]
    left_out = [f"{fate} {count:,}" for fate, count in totals.most_common() if fate not in SPLITS]
    lines.append(f"left out: {', '.join(left_out) or 'nothing'}")
    if assembly.conflicting:
        lines.append(f"{assembly.conflicting:,} sources had several translations: {RULE}")
    kept = ", ".join(f"{name} {count:,}" for name, count in record["pairs"].items())
    lines.append(f"pairs by {assembly.split_by}: {kept}")
    return lines


RULE = "the approved one was kept, else the newest, the most frequent, the first"


def _first_notes(files: Sequence[FileRecord]) -> str:
    notes = [f"{record.path}: {record.note}" for record in files if record.note]
    return "; ".join(notes[:3]) or "look at what the files hold"


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(line + "\n" for line in lines)


# -- one entry ------------------------------------------------------------------------------------------------------


def cleaned(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """(source, target, why it is left out or "") of each paragraph of an entry, as a localiser would read it.

    >>> list(cleaned(Entry(1, "<b>_Open</b>", "<b>_Öffnen</b>")))
    [('Open', 'Öffnen', '')]
    """
    if entry.state == "fuzzy":
        yield entry.src, entry.tgt, "fuzzy"
        return
    if entry.state == "untranslated" or not entry.tgt.strip() or not entry.src.strip():
        yield entry.src, entry.tgt, "not translated"
        return
    sides = [re.split(r"\n[ \t]*\n", text.strip()) for text in (entry.src, entry.tgt)]
    if len(sides[0]) != len(sides[1]):
        sides = [[text] for text in (entry.src, entry.tgt)]
    for src, tgt in zip(*sides, strict=True):
        if "|" not in tgt:
            src = _QUALIFIER.sub("", src, count=1) if _QUALIFIER.match(src) else src
        src, tgt = without_accelerators(src, tgt)
        src, tgt = _without_tags(src, tgt)
        src, tgt = " ".join(src.split()), " ".join(tgt.split())
        yield src, tgt, _fault(src, tgt)


def _without_tags(src: str, tgt: str) -> tuple[str, str]:
    """Both texts without their tags, and with characters in the place of entities, where both have the same tags."""
    tags = [Counter(tag.split()[0].rstrip(">") for tag in _TAG.findall(text)) for text in (src, tgt)]
    if tags[0] != tags[1]:
        return src, tgt
    bare = [_TAG.sub("", text) if tags[0] else text for text in (src, tgt)]
    if all("&" in text for text in bare):
        bare = [html.unescape(text) for text in bare]
    return bare[0], bare[1]


def _fault(src: str, tgt: str) -> str:
    """The reason why a pair teaches nothing or something wrong; "" for a good one."""
    placeholders = [spans(text) for text in (src, tgt)]
    words = [_without(text, found) for text, found in zip((src, tgt), placeholders, strict=True)]
    if not all(any(map(str.isalpha, text)) for text in words):
        return "no words"
    if src == tgt:
        return "same on both sides"
    if Counter(placeholders[0]) != Counter(placeholders[1]):
        return "placeholders differ"
    return ""


def _without(text: str, parts: Sequence[str]) -> str:
    for part in parts:
        text = text.replace(part, " ", 1)
    return text


# -- all pairs ------------------------------------------------------------------------------------------------------


def _settled(rows: list[Row], assembly: Assembly) -> list[Row]:
    """The rows with one translation of each source: the approved one, else the newest, most frequent, first."""
    by_source: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row.src].append(row)
    kept: list[Row] = []
    for src, group in by_source.items():
        times = Counter(row.tgt for row in group)
        if len(times) == 1:
            kept += group
            continue
        best = max(group, key=lambda row: (row.approved, row.changed, times[row.tgt]))  # the first of equal ones
        assembly.conflicting += 1
        if len(assembly.conflicts) < EXAMPLES:
            others = [{"tgt": tgt, "times": count} for tgt, count in times.most_common() if tgt != best.tgt]
            place = f"{assembly.files[best.file].path}:{best.line}"
            assembly.conflicts.append({"src": src, "kept": best.tgt, "place": place, "others": others})
        for row in group:
            if row.tgt == best.tgt:
                kept.append(row)
            else:
                assembly.files[row.file].fates["another translation"] += 1
    return sorted(kept, key=lambda row: (row.file, row.line))


def near_key(text: str) -> str:
    """A text but for case, punctuation, spaces and the numbers in it.

    >>> near_key("Page 12 of 40"), near_key("page 7 of 9.")
    ('page 0 of 0', 'page 0 of 0')
    """
    return _DIGITS.sub("0", key(text)) or text


def _without_copies(rows: list[Row], files: Sequence[FileRecord]) -> list[Row]:
    """The first row of those that are equal but for case, punctuation and numbers, on both sides."""
    seen: set[int] = set()
    kept = []
    for row in rows:
        name = hash((near_key(row.src), near_key(row.tgt)))
        if name in seen:
            files[row.file].fates["copy"] += 1
        else:
            seen.add(name)
            kept.append(row)
    return kept


def _healthy(rows: list[Row], languages: tuple[str, str], assembly: Assembly) -> list[Row]:
    """The rows without those that the doctor drops: another language or script, an odd length, damage."""
    examination = Examination(CollectedSource(rows), *languages)
    assembly.diagnosis = examination.run()
    # Lines of two texts may have shifted; the two sides of an entry belong together.
    entries = [shift for shift in examination.shifts if _is_of_entries(shift, rows, assembly.files)]
    examination.shifts = [shift for shift in examination.shifts if shift not in entries]
    for shift in entries:
        del assembly.diagnosis.by_place["shift", f"{examination.names[0]}:{shift.line}"]
    kept = []
    for number, src, tgt, reason in judged(examination):
        row = rows[number - 1]
        if reason:
            assembly.files[row.file].fates[reason] += 1
        else:
            kept.append(row._replace(src=src, tgt=tgt))
    return kept


def _is_of_entries(shift: Shift, rows: Sequence[Row], files: Sequence[FileRecord]) -> bool:
    """True for a shift among pairs that no line number has put together."""
    return not any(files[row.file].kind == TEXTS for row in rows[shift.line - 1 : shift.until])


# -- training, validation and test ----------------------------------------------------------------------------------


def _split(rows: list[Row], config: CollectionConfig, assembly: Assembly) -> None:
    """Share the rows among training, validation and test, no document to two of them."""
    wanted = min(config.held_out, len(rows) // LARGEST_SHARE)
    if not wanted:
        raise Error.TOO_FEW(f"{len(rows):,} pairs are too few to hold some out", "give more files")
    documents = [record.document for record in assembly.files]
    held = _documents_held_out(Counter(documents[row.file] for row in rows), wanted)
    if held is None:
        assembly.split_by = "sentence"
        limit = 2**64 * wanted // len(rows)

        def split_of(row: Row) -> str:
            return SPLITS[1 + hash64(near_key(row.src)) // limit] if hash64(near_key(row.src)) < 2 * limit else "train"
    else:

        def split_of(row: Row) -> str:
            return held.get(documents[row.file], "train")

    splits: dict[str, list[Row]] = {name: [] for name in SPLITS}
    for row in rows:
        splits[split_of(row)].append(row)
    taken: set[str] = {text for row in splits["train"] for text in (near_key(row.src), near_key(row.tgt))}
    for name in SPLITS[1:]:
        splits[name] = _new(splits[name], taken, assembly.files, wanted)
    splits["train"] = _without_leaks(splits, assembly.files)
    assembly.splits = splits


def _documents_held_out(sizes: Counter[str], wanted: int) -> dict[str, str] | None:
    """The split of each document that is held out; None where documents are too few or too large for that."""
    by_hash = sorted((document for document in sizes if sizes[document] <= wanted), key=hash64)
    held: dict[str, str] = {}
    for split in SPLITS[1:]:
        count = 0
        for document in by_hash:
            if document not in held and count < wanted:
                held[document] = split
                count += sizes[document]
        if count < wanted / 2:
            return None
    return held


def _new(rows: list[Row], taken: set[str], files: Sequence[FileRecord], wanted: int) -> list[Row]:
    """The rows whose sides are not in training, nor in an earlier split; `wanted` of them at most."""
    kept = []
    for row in rows:
        texts = near_key(row.src), near_key(row.tgt)
        if texts[0] in taken or texts[1] in taken:
            files[row.file].fates["in training too"] += 1
        else:
            taken.update(texts)
            kept.append(row)
    chosen = set(sorted(range(len(kept)), key=lambda place: hash64(kept[place].src))[:wanted])
    for place, row in enumerate(kept):
        if place not in chosen:
            files[row.file].fates["held out, not needed"] += 1
    return [row for place, row in enumerate(kept) if place in chosen]


def _without_leaks(splits: dict[str, list[Row]], files: Sequence[FileRecord]) -> list[Row]:
    """The training rows without those that are nearly in validation or test."""
    held = list(itertools.chain(splits["valid"], splits["test"]))
    leakage = Leakage(row.src for row in held), Leakage(row.tgt for row in held)
    kept = []
    for row in splits["train"]:
        if leakage[0].nearly(key(row.src)) or leakage[1].nearly(key(row.tgt)):
            files[row.file].fates["nearly held out"] += 1
        else:
            kept.append(row)
    return kept
