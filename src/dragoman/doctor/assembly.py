"""One corpus from a collection of files: cleaned, without conflicts, copies and leaks, split by document.

    record = assemble(CollectionConfig(paths=["memories"]), ("en", "fr"), Path("corpus"))

writes `train.en`, `train.fr`, `valid.*`, `test.*`, `origins.tsv` (file and line of each pair of `train`),
`left_out.tsv` (each pair that is not in it, with the reason) and `files.json`, which says what came from where. The
time is in proportion to the size.
"""

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.alignment.learnt_markup import has_tags, without_tags
from dragoman.data.random import hash64
from dragoman.doctor.collection import SAME_BYTES, TEXTS, FileRecord, collect
from dragoman.doctor.examine import Examination
from dragoman.doctor.findings import Diagnosis
from dragoman.doctor.fix import judged, repaired_pair
from dragoman.doctor.shifts import Shift
from dragoman.errors import Error, writing
from dragoman.formats.accelerators import without_accelerators
from dragoman.formats.base import Entry
from dragoman.languages.invisible import in_one_line
from dragoman.quality.leakage import Leakage, key
from dragoman.runs import atomic_io
from dragoman.text.conflicts import RULE, preferred
from dragoman.text.corpus import CollectionConfig
from dragoman.text.placeholders import spans, unescaped
from dragoman.text.sources.base import Pair, PairSource

RECORD = "files.json"
ORIGINS = "origins.tsv"
LEFT_OUT = "left_out.tsv"
SPLITS = ("train", "valid", "test")
LARGEST_SHARE = 50
"""Validation and test have at most one pair of so many each."""
MAX_EXAMPLES = 20
"""Conflicts that the record shows."""

_QUALIFIER = re.compile(r"_: [^\n]*\n|\?[\w ()-]+:|[\w .,:/-]+\|(?=[^|]+$)")
"""Words for the translator before a message: `Script|Arabic`, `_: a verb` in old catalogues, `?plural:Elves`."""
_STEM = 4
"""Letters that two forms of a word have in common."""
_SCRIPT = re.compile(r"\|/\|.*", re.DOTALL)
"""A rule for a form of the translation that KDE's catalogues put behind it."""
_TAG = re.compile(r"</?([A-Za-z][\w.-]{0,60}(?::[\w-]{1,60})?)(\s[^<>]{0,1000}|/)?>")
_POSITION = re.compile(r"(?<=%)\d{1,3}\$")
_ALONE = frozenset({"br", "hr", "img", "wbr", "p", "li"})
"""Elements of HTML that stand without an end."""
_LOOKS = frozenset({
    "b", "i", "u", "s", "em", "strong", "big", "small", "tt", "code", "span", "font", "center", *_ALONE - {"img"}
})  # fmt: skip
"""Elements that change the look of a text, and not what it says."""
_OLD_QUOTES = re.compile(r"`([^`'\n]{1,80})'")
"""Quotes of ASCII, `so', which are no code."""
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
    coded: tuple[str, str] | None = None
    """The pair with its tags, as it was read; it is counted, compared and split without."""

    @property
    def trained(self) -> tuple[str, str]:
        """The pair as a model that learns codes is trained on it: with its tags, where it is the same without (the
        doctor may have repaired it)."""
        if self.coded is None:
            return self.src, self.tgt
        bare = (without_tags(text) for text in self.coded)
        is_same = all("".join(one.split()) == "".join(other.split()) for one, other in zip(bare, self[:2], strict=True))
        return self.coded if is_same else (self.src, self.tgt)


@dataclass
class Assembly:
    """A corpus that was made of files, and the record of how."""

    splits: dict[str, list[Row]]
    files: list[FileRecord]
    left_out: list[tuple[Row, str]] = field(default_factory=list)
    """The pairs that were left out, with the reason."""
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    """The first sources with several translations: the one that was kept, and the others."""
    conflicting: int = 0
    """Sources that had several translations."""
    split_by: str = "document"
    diagnosis: Diagnosis | None = None

    def leave_out(self, row: Row, reason: str) -> None:
        """Count a pair that is left out, by its file and the reason."""
        self.files[row.file].fates[reason] += 1
        self.left_out.append((row, reason))

    def examples(self) -> dict[str, list[dict[str, str]]]:
        """Some pairs for each reason why pairs are left out: the first, the tenth, the hundredth and so on."""
        examples: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
        times = Counter[str]()
        for row, reason in self.left_out:
            times[reason] += 1
            if times[reason] == 10 ** len(examples[reason]):
                examples[reason].append({"src": row.src, "tgt": row.tgt, "place": self.place(row)})
        return dict(examples)

    def place(self, row: Row) -> str:
        """The file of a row and its line there."""
        return f"{self.files[row.file].path}:{row.line}"

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
            "left_out": self.examples(),
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


def gathered(config: CollectionConfig, languages: tuple[str, str], *, codes: bool = False) -> Assembly:
    """Read, clean and split a collection; with `codes`, its rows keep them beside their texts.

    Raises DragomanError where a path is not there, or nothing is left to train on.
    """
    assembly = Assembly({}, [])
    rows: list[Row] = []
    for record, entries in collect(config, languages):
        assembly.files.append(record)
        for entry in entries:
            is_approved, changed = entry.state == "approved", _time(entry.changed)
            pairs = list(cleaned(entry))
            coded = _with_tags(entry, len(pairs)) if codes else [None] * len(pairs)
            for (src, tgt, reason), with_tags in zip(pairs, coded, strict=True):
                row = Row(src, tgt, len(assembly.files) - 1, entry.line, is_approved, changed, with_tags)
                if reason:
                    assembly.leave_out(row, reason)
                else:
                    rows.append(row)
    if not rows:
        raise Error.EMPTY(
            f"no pair from {languages[0]} to {languages[1]} in {', '.join(config.paths)}", _first_notes(assembly.files)
        )
    rows = _without_conflicts(rows, assembly)
    rows = _without_copies(rows, assembly)
    rows = _healthy(rows, languages, assembly)
    _split(rows, config, assembly)
    for name, split in assembly.splits.items():
        for row in split:
            assembly.files[row.file].fates[name] += 1
    return assembly


def assemble(config: CollectionConfig, languages: tuple[str, str], out: Path, *, codes: bool = False) -> Assembly:
    """Make the corpus of a collection in the new folder `out`; with `codes`, its training text has tags for them.

    Raises DragomanError as `gathered` does.
    """
    assembly = gathered(config, languages, codes=codes)
    building = out.with_name(out.name + ".tmp")
    try:
        with writing(out):
            atomic_io.remove(building)
            building.mkdir(parents=True)
            for name, rows in assembly.splits.items():
                for side, code in enumerate(languages):
                    texts = ((row.trained if name == "train" else (row.src, row.tgt))[side] for row in rows)
                    _write(building / f"{name}.{code}", texts)
            origins = (f"{assembly.files[row.file].path}\t{row.line}" for row in assembly.splits["train"])
            _write(building / ORIGINS, origins)
            _write(building / LEFT_OUT, itertools.chain(("file\tline\treason\tsource\ttarget",), _left_out(assembly)))
            atomic_io.write_text(building / RECORD, json.dumps(assembly.to_dict(), indent=1, ensure_ascii=False) + "\n")
            atomic_io.publish(building, out)
    finally:
        atomic_io.remove(building)
    return assembly


def _left_out(assembly: Assembly) -> Iterator[str]:
    for row, reason in assembly.left_out:
        texts = (" ".join(text.split()) for text in (row.src, row.tgt))
        yield "\t".join([assembly.files[row.file].path, str(row.line), reason, *texts])


def summary(assembly: Assembly) -> list[str]:
    """Lines that say what came of the files."""
    record, totals = assembly.to_dict(), assembly.totals()
    notes = [file.note for file in assembly.files if file.note]
    copies = sum(note.startswith(SAME_BYTES) for note in notes)
    lines = [f"{len(assembly.files) - len(notes):,} files read; {record['read']:,} entries"]
    if copies:
        lines[0] += f"; copies of other files: {copies:,}"
    if len(notes) > copies:
        lines.append(f"not read: {len(notes) - copies:,} ({_first_notes(assembly.files)})")
    left_out = [f"{fate} {count:,}" for fate, count in totals.most_common() if fate not in SPLITS]
    lines.append(f"left out: {', '.join(left_out) or 'nothing'}")
    if assembly.conflicting:
        lines.append(f"{assembly.conflicting:,} sources had several translations: {RULE}")
    kept = ", ".join(f"{name} {count:,}" for name, count in record["pairs"].items())
    lines.append(f"pairs by {assembly.split_by}: {kept}" if assembly.split_by else f"pairs, too few to split: {kept}")
    return lines


REASONS = {
    "not translated": "the file has no translation, or says that it is none yet",
    "fuzzy": "the file says that the translation is a guess, or has to be looked at",
    "no words": "one side has no letters but those of placeholders",
    "same on both sides": "names, codes, and what nobody has translated",
    "placeholders differ": "tags, variables or addresses of the source are not all in the translation",
    "other languages": "texts in other languages or regions than those that were asked for",
    "another translation": "the same source has a translation that was kept in its place",
    "copy": "an earlier pair is the same but for capitals, punctuation, spaces and the digits of numbers",
    "in training too": "one side of a pair for validation or test stands in training as well, told as copies are",
    "nearly held out": "one side has 70 % of its groups of three words in common with a pair that is held out",
    "held out, not needed": "the rest of a document that is held out",
}
"""The reasons of this file why pairs are left out; the doctor has others."""


def _first_notes(files: Sequence[FileRecord]) -> str:
    notes = [
        f"{record.path}: {record.note}" for record in files if record.note and not record.note.startswith(SAME_BYTES)
    ]
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
    for src, tgt in _paragraphs(entry.src, entry.tgt):
        src, tgt = (in_one_line(text) for text in _without_tags(src, tgt))
        yield src, tgt, _fault(src, tgt)


def _with_tags(entry: Entry, count: int) -> Sequence[tuple[str, str] | None]:
    """The paragraphs of an entry with their tags, None for those without any, and for all if they are not `count`."""
    pairs = list(_paragraphs(*(entry.coded or (entry.src, entry.tgt))))
    if len(pairs) != count:
        return [None] * count
    coded = [tuple(in_one_line(unescaped(_parted(text))) for text in pair) for pair in pairs]
    return [(src, tgt) if any(map(has_tags, (src, tgt))) else None for src, tgt in coded]


def _paragraphs(src: str, tgt: str) -> Iterator[tuple[str, str]]:
    """The paragraphs of a text and of its translation, without what is written for translators and keys alone."""
    sides = [re.split(r"\n[ \t]*\n", text.strip()) for text in (src, tgt)]
    if len(sides[0]) != len(sides[1]):
        sides = [[src], [tgt]]
    for src, tgt in zip(*sides, strict=True):
        tgt = _SCRIPT.sub("", tgt)
        if src.startswith("_: "):
            src = _QUALIFIER.sub("", src, count=1)
        src, tgt = without_accelerators(src, tgt)  # before a bar is taken for that of a qualifier: `Open Inset|O`
        if _QUALIFIER.match(src) and "|" not in tgt and not tgt.startswith("?"):
            src = _QUALIFIER.sub("", src, count=1)
        yield src, _without_undo(src, tgt)


def _without_undo(src: str, tgt: str) -> str:
    """A translation without its second form, which KDE's programs show behind "Undo:".

    >>> _without_undo("Add resource", "Добавление ресурса\\nдобавление ресурса")
    'Добавление ресурса'
    >>> _without_undo("Add a line", "Eine Zeile\\nhinzufügen")
    'Eine Zeile\\nhinzufügen'
    """
    action, line_end, undo = tgt.partition("\n")
    both = [text.casefold()[:_STEM] for text in (action, undo)]
    return action if line_end and both[0] == both[1] and "\n" not in src + undo else tgt


def _time(changed: str) -> str:
    """The digits of a time, which sort as times do: `20240131T120000Z` and `2024-01-31 12:00` are of one day."""
    return re.sub(r"\D", "", changed)[:14]


def _without_tags(src: str, tgt: str) -> tuple[str, str]:
    """Both texts with characters in the place of entities, and without their tags, where both have the same.

    Tags that change nothing but the look of a text, `<b>` or `<br>`, may be on one side only. `<file>` is no tag: it
    has no end, and nothing but its name.

    >>> _without_tags("<b>Save</b> &amp; use <file>", "Save &#38; use <Datei>")
    ('Save & use <file>', 'Save & use <Datei>')
    >>> _without_tags("<a href='x'>Save</a>", "Save")
    ("<a href='x'>Save</a>", 'Save')
    """
    tags = [_tags(text) for text in (src, tgt)]
    bare = [src, tgt]
    own, others = (sorted(name for _, name in marks if name.strip("</").lower() not in _LOOKS) for marks in tags)
    if own == others:
        for side, marks in enumerate(tags):
            for (start, end), name in reversed(marks):
                between = " " if name.strip("</").lower() in _ALONE else ""
                bare[side] = bare[side][:start] + between + bare[side][end:]
    return unescaped(bare[0]), unescaped(bare[1])


def _parted(text: str) -> str:
    """The text with a space before a tag that parts words by itself: `one<br>two`."""
    for (start, _), name in reversed(_tags(text)):
        if name.strip("</").lower() in _ALONE and text[:start].strip():
            text = f"{text[:start]} {text[start:]}"
    return text


def _tags(text: str) -> list[tuple[tuple[int, int], str]]:
    """(place, name) of the tags of a text."""
    if "<" not in text:
        return []
    matches = list(_TAG.finditer(text))
    ended = {match[1] for match in matches if match.group().startswith("</")}
    return [
        (match.span(), match.group()[:2].rstrip(match[1][0]) + match[1])
        for match in matches
        if match[1] in ended or re.search("[=/]", match[2] or "") or match[1].lower() in _ALONE
    ]


def _fault(src: str, tgt: str) -> str:
    """The reason why a pair teaches nothing or something wrong; "" for a good one."""
    placeholders = [spans(_OLD_QUOTES.sub(r"'\1'", text)) for text in (src, tgt)]
    words = [_without(text, places) for text, places in zip((src, tgt), placeholders, strict=True)]
    if not all(any(map(str.isalpha, text)) for text in words):
        return "no words"
    if src == tgt:
        return "same on both sides"
    if Counter(_kept(placeholders[0], src)) != Counter(_kept(placeholders[1], tgt)):
        return "placeholders differ"
    return ""


def _kept(placeholders: Sequence[str], text: str) -> list[str]:
    """The placeholders that a translation has too: `%2$s` in another place than `%s`, `<file>` in its language."""
    tags = {text[slice(*place)] for place, _ in _tags(text)}
    return [_POSITION.sub("", span) for span in placeholders if not span.startswith("<") or span in tags]


def _without(text: str, parts: Sequence[str]) -> str:
    for part in parts:
        text = text.replace(part, " ", 1)
    return text


# -- all pairs ------------------------------------------------------------------------------------------------------


def _without_conflicts(rows: list[Row], assembly: Assembly) -> list[Row]:
    """The rows with one translation of each source, by the rule of `text/conflicts.py`."""
    by_source: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row.src].append(row)
    best: dict[str, str] = {}
    for src, group in by_source.items():
        chosen, times = preferred(group)
        if len(times) == 1:
            continue
        best[src] = chosen.tgt
        if len(assembly.conflicts) < MAX_EXAMPLES:
            others = [{"tgt": tgt, "times": count} for tgt, count in times.most_common() if tgt != chosen.tgt]
            kept_one = {"src": src, "kept": chosen.tgt, "times": times[chosen.tgt], "place": assembly.place(chosen)}
            assembly.conflicts.append({**kept_one, "others": others})
    assembly.conflicting = len(best)
    kept: list[Row] = []
    for row in rows:
        if best.get(row.src, row.tgt) == row.tgt:
            kept.append(row)
        else:
            assembly.leave_out(row, "another translation")
    return kept


def near_key(text: str) -> str:
    """A text but for case, punctuation, spaces and the numbers in it.

    >>> near_key("Page 12 of 40"), near_key("page 7 of 9.")
    ('page 0 of 0', 'page 0 of 0')
    """
    return _DIGITS.sub("0", key(text)) or text


def _without_copies(rows: list[Row], assembly: Assembly) -> list[Row]:
    """The first row of each group of rows whose both sides differ in nothing but case, punctuation and numbers."""
    seen: set[int] = set()
    kept = []
    for row in rows:
        name = hash((near_key(row.src), near_key(row.tgt)))
        if name in seen:
            assembly.leave_out(row, "copy")
        else:
            seen.add(name)
            kept.append(row)
    return kept


def _healthy(rows: list[Row], languages: tuple[str, str], assembly: Assembly) -> list[Row]:
    """The rows without those that the doctor drops: another language or script, an odd length, damage."""
    ordered = any(record.kind == TEXTS for record in assembly.files)
    examination = Examination(CollectedSource(rows), *languages, ordered=ordered)
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
            assembly.leave_out(row, reason)
        else:
            src, tgt = repaired_pair(examination, src, tgt)
            kept.append(row._replace(src=src, tgt=tgt))
    return kept


def _is_of_entries(shift: Shift, rows: Sequence[Row], files: Sequence[FileRecord]) -> bool:
    """True for a shift among pairs that no line number has put together."""
    return not any(files[row.file].kind == TEXTS for row in rows[shift.line - 1 : shift.until])


# -- training, validation and test ----------------------------------------------------------------------------------


def _split(rows: list[Row], config: CollectionConfig, assembly: Assembly) -> None:
    """Share the rows among training, validation and test, no document to two of them; of a few none is held out."""
    held_out = min(config.held_out, len(rows) // LARGEST_SHARE)
    if not held_out:
        assembly.splits, assembly.split_by = {"train": rows, "valid": [], "test": []}, ""
        return
    documents = [record.document for record in assembly.files]
    held = _documents_held_out(Counter(documents[row.file] for row in rows), held_out)
    if held is None:
        assembly.split_by = "sentence"
        limit = 2**64 * held_out // len(rows)

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
        splits[name] = _new(splits[name], taken, assembly, held_out)
    splits["train"] = _without_leaks(splits, assembly)
    assembly.splits = splits


def _documents_held_out(sizes: Counter[str], held_out: int) -> dict[str, str] | None:
    """The split (validation or test) of each held-out document; None where documents are too few or too large to hold
    any out."""
    by_hash = sorted((document for document in sizes if sizes[document] <= held_out), key=hash64)
    held: dict[str, str] = {}
    for split in SPLITS[1:]:
        count = 0
        for document in by_hash:
            if document not in held and count < held_out:
                held[document] = split
                count += sizes[document]
        if count < held_out / 2:
            return None
    return held


def _new(rows: list[Row], taken: set[str], assembly: Assembly, held_out: int) -> list[Row]:
    """The rows whose sides are not in training, nor in an earlier split; `held_out` of them at most."""
    kept = []
    for row in rows:
        texts = near_key(row.src), near_key(row.tgt)
        if texts[0] in taken or texts[1] in taken:
            assembly.leave_out(row, "in training too")
        else:
            taken.update(texts)
            kept.append(row)
    chosen = set(sorted(range(len(kept)), key=lambda place: hash64(kept[place].src))[:held_out])
    for place, row in enumerate(kept):
        if place not in chosen:
            assembly.leave_out(row, "held out, not needed")
    return [row for place, row in enumerate(kept) if place in chosen]


def _without_leaks(splits: dict[str, list[Row]], assembly: Assembly) -> list[Row]:
    """The training rows without near-duplicates of validation and test rows."""
    held = list(itertools.chain(splits["valid"], splits["test"]))
    leakage = Leakage(row.src for row in held), Leakage(row.tgt for row in held)
    kept = []
    for row in splits["train"]:
        if leakage[0].nearly(key(row.src)) or leakage[1].nearly(key(row.tgt)):
            assembly.leave_out(row, "nearly held out")
        else:
            kept.append(row)
    return kept
