"""A folder of files in two languages, read as they are: which of them hold pairs, and which pairs each of them has.

Memories, catalogues and tables hold both languages. Of documents and texts there is one in each language, told by their
names: `en/guide.docx` and `fr/guide.docx`, `guide.en.txt` and `guide.fr.txt`.
"""

import glob
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.doctor.paragraphs import aligned
from dragoman.errors import DragomanError, Error, show
from dragoman.formats import bitext, table
from dragoman.formats.base import Entry, plain
from dragoman.formats.document import FORMATS, SUFFIXES, Document
from dragoman.formats.mo import mo_entries
from dragoman.languages.codes import fits, language_of
from dragoman.progress import Progress
from dragoman.text.corpus import CollectionConfig, source_of_file
from dragoman.text.lines import COMPRESSIONS, kind_of, open_bytes, read_lines

Languages = tuple[str, str]

KEYED = {suffix for name in ("json", "properties", "android") for suffix in FORMATS[name].suffixes}
"""Documents whose texts have names, the same in each language."""


TEXTS = ".txt"
"""The kind of two files of text, a line of one translating a line of the other."""


@dataclass
class FileRecord:
    """A file, or two that belong together, and the number of pairs of it by what became of them."""

    path: str
    document: str
    """Pairs of one document are all for training, or all held out."""
    kind: str = ""
    read: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    note: str = ""
    """Why it was not read."""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "fates": dict(self.fates)}


def collect(config: CollectionConfig, languages: Languages) -> Iterator[tuple[FileRecord, list[Entry]]]:
    """Each file with its entries, in the order of their names; files that cannot be read come with a note and none.

    Raises DragomanError where the collection names a path that is not there.
    """
    paths = paths_of(config)
    readers = _readers(paths, languages, config)
    with Progress("reading files", total=len(readers)) as bar:
        for record, read in readers:
            entries: list[Entry] = []
            if read is not None:
                try:
                    entries = list(read())
                except DragomanError as error:
                    record.note = str(error)
            record.read = len(entries)
            bar.advance()
            yield record, entries


def paths_of(config: CollectionConfig) -> dict[str, Path]:
    """Each file by its name inside of the folder that was named. Raises DragomanError for one that is not there."""
    found: dict[str, Path] = {}
    for given in config.paths:
        written = os.path.expanduser(given)
        matches = sorted(glob.glob(written, recursive=True)) if glob.has_magic(written) else [written]
        matches = [match for match in matches if os.path.exists(match)]
        if not matches:
            raise Error.MISSING_FILE("no such file or folder", file=given)
        for match in map(Path, matches):
            files = sorted(path for path in match.rglob("*") if path.is_file()) if match.is_dir() else [match]
            root = match if match.is_dir() else match.parent
            for path in files:
                name = path.relative_to(root).as_posix()
                if not any(part.startswith(".") for part in path.relative_to(root).parts):
                    found[name if found.get(name, path) == path else path.as_posix()] = path
    return found


Reader = tuple[FileRecord, Callable[[], Iterator[Entry]] | None]


def _readers(paths: dict[str, Path], languages: Languages, config: CollectionConfig) -> list[Reader]:
    """A reader for each file or pair of files, None for those that are not read."""
    sides = {name: _side(name, languages) for name in paths}
    twins: dict[str, dict[int, str]] = {}
    for name, side in sides.items():
        if side is not None and kind_of(name) not in (".po", ".mo", ".tmx", ".xlf", ".xliff"):
            twins.setdefault(side[0], {}).setdefault(side[1], name)
    pairs = {names[0]: names[1] for names in twins.values() if len(names) == 2}
    done = set(pairs) | set(pairs.values())
    readers: list[Reader] = []
    for name, path in paths.items():
        if name in pairs:
            other = pairs[name]
            key = sides[name][0]  # type: ignore[index]
            record = FileRecord(f"{name} and {Path(other).name}", _document(key, config), _kind(name))
            readers.append((record, _reader_of_twins(path, paths[other], languages)))
        elif name not in done:
            side = sides[name]
            record = FileRecord(name, _document(side[0] if side else name, config), kind_of(name))
            reader = _READERS.get(kind_of(name), _other if kind_of(name) in (".jsonl", ".parquet") else None)
            if reader is None:
                record.note = _why_not(name, side, languages)
            readers.append((record, None if reader is None else _bound(reader, path, name, languages, config)))
    return readers


def _bound(reader: Any, path: Path, name: str, languages: Languages, config: CollectionConfig) -> Any:
    return lambda: _turned(reader(path, languages, config), name, languages)


def _document(key: str, config: CollectionConfig) -> str:
    return key.partition("/")[0] if config.documents == "folder" else key


def _why_not(name: str, side: tuple[str, int] | None, languages: Languages) -> str:
    if side is not None and kind_of(name) in (*SUFFIXES, ".txt", f".{language_of(languages[side[1]])}"):
        return f"no file beside it is its translation ({languages[1 - side[1]]})"
    return "not of a kind that holds pairs"


def _kind(name: str) -> str:
    return kind_of(name) if kind_of(name) in SUFFIXES else TEXTS


# -- names ----------------------------------------------------------------------------------------------------------


def _side(name: str, languages: Languages) -> tuple[str, int] | None:
    """(the name with * for its language, 0 for the source's or 1 for the target's); None for a name without either."""
    best: tuple[int, str, int] | None = None
    for match in re.finditer(r"(?<![^/._-])[A-Za-z]{2,3}(?:[_-][A-Za-z0-9]{2,8})?(?:@[a-z]+)?(?![^/._-])", name):
        for side, code in enumerate(languages):
            agreement = fits(match.group(), code)
            if agreement and (best is None or agreement >= best[0]):
                best = agreement, f"{name[: match.start()]}*{name[match.end() :]}", side
    return None if best is None else (best[1], best[2])


def _turned(entries: Iterator[Entry], name: str, languages: Languages) -> Iterator[Entry]:
    """The entries from source to target: a catalogue from English serves for both directions.

    Raises DragomanError for a file that names other languages.
    """
    in_name = _language_in_name(name) if kind_of(name) in (".po", ".mo") else ""
    for entry in entries:
        codes = entry.languages or (("en", in_name) if in_name else languages)
        if fits(codes[0], languages[0]) and fits(codes[1], languages[1]):
            yield entry
        elif fits(codes[0], languages[1]) and fits(codes[1], languages[0]):
            yield entry._replace(src=entry.tgt, tgt=entry.src)
        else:
            raise Error.NO_SUCH_LANGUAGE(
                f"from {codes[0]} to {codes[1]}", f"not from {languages[0]} to {languages[1]}: left out", file=name
            )


def _language_in_name(name: str) -> str:
    """The language of a catalogue by its name: `po/fr.po`, `fr/LC_MESSAGES/app.mo`, `app.fr.po`."""
    path = Path(name.removesuffix(".gz"))
    code = re.compile(r"[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?(?:@[a-z]+)?")
    if len(path.parts) > 2 and path.parts[-2] == "LC_MESSAGES":
        return path.parts[-3]
    last = re.split(r"[.]", path.stem)[-1]
    return last if code.fullmatch(last) and len(language_of(last)) in (2, 3) else ""


# -- files that hold both languages ---------------------------------------------------------------------------------


def _tmx(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    with open_bytes(path) as stream:
        yield from bitext.tmx_entries(stream, show(path), *languages)


def _xliff(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    with open_bytes(path) as stream:
        yield from bitext.xliff_entries(stream, show(path))


def _po(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    yield from bitext.po_entries(_bytes(path), show(path))


def _mo(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    yield from mo_entries(_bytes(path), show(path))


def _table(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    name = str(path.with_suffix("") if path.suffix in COMPRESSIONS else path)
    # In reading only, as openpyxl cannot read a stream that is not a file.
    data = path.read_bytes() if path.suffix == ".xlsx" else _bytes(path)
    rows = table.rows(data, name)
    first = list(itertools.islice(rows, table.LOOKED_AT))
    columns = table.columns_of(first, languages, config.columns, show(path))
    for row in itertools.islice(itertools.chain(first, rows), int(columns.heading), None):
        src, tgt = (row.cells[place] if place < len(row.cells) else "" for place in columns[:2])
        yield Entry(row.line, src, tgt, "" if tgt else "untranslated")


def _other(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    for pair in source_of_file(str(path), *languages).pairs():
        yield Entry(pair.line, pair.src, pair.tgt)


def _bytes(path: Path) -> bytes:
    with open_bytes(path) as stream:
        return stream.read()


_READERS: dict[str, Any] = {
    ".tmx": _tmx,
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff"), _xliff),
    ".po": _po,
    ".mo": _mo,
    **dict.fromkeys(table.SUFFIXES, _table),
}


# -- a file in each language ----------------------------------------------------------------------------------------


def _reader_of_twins(src: Path, tgt: Path, languages: Languages) -> Callable[[], Iterator[Entry]]:
    def read() -> Iterator[Entry]:
        if kind_of(src) not in SUFFIXES or kind_of(src) == ".txt":
            lines = [list(read_lines(path, may_be_empty=True)) for path in (src, tgt)]
            if len(lines[0]) == len(lines[1]):
                yield from (Entry(number, *pair) for number, pair in enumerate(zip(*lines, strict=True), start=1))
                return
            paragraphs = [[line for line in texts if line.strip()] for texts in lines]
        elif kind_of(src) in KEYED:
            yield from _by_name(*(_texts(path) for path in (src, tgt)))
            return
        else:
            paragraphs = [[text for _, text in _texts(path)] for path in (src, tgt)]
        pairs = aligned(paragraphs[0], paragraphs[1], languages)
        yield from (Entry(number, *pair) for number, pair in enumerate(pairs, start=1))

    return read


def _texts(path: Path) -> list[tuple[str, str]]:
    """(place, text) of the texts of a document."""
    return [(unit.where, plain(unit.items)) for unit in Document.load(path).texts() if not unit.kept]


def _by_name(src: Sequence[tuple[str, str]], tgt: Sequence[tuple[str, str]]) -> Iterator[Entry]:
    """The texts of two files that have the same name in both."""
    translations = {where.partition(", ")[2]: text for where, text in tgt}
    for number, (where, text) in enumerate(src, start=1):
        translation = translations.get(where.partition(", ")[2], "")
        yield Entry(number, text, translation, "" if translation else "untranslated")
