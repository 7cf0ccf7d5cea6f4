"""A folder of files in two languages, read as they are: which of them hold pairs, and which pairs each of them has.

Memories, catalogues and tables hold both languages. Of documents and texts there is one in each language, told by their
names: `en/guide.docx` and `fr/guide.docx`, `guide.en.txt` and `guide.fr.txt`.
"""

import contextlib
import functools
import glob
import hashlib
import itertools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.doctor.coded_texts import CodedText, coded_pairs, numbered
from dragoman.doctor.paragraphs import aligned
from dragoman.errors import DragomanError, Error, show
from dragoman.formats import bitext, qt, string_catalog, table
from dragoman.formats.base import Entry, Options, State, asides_of, plain
from dragoman.formats.document import FORMATS, SUFFIXES, Document
from dragoman.formats.encoding import Declares, decoded
from dragoman.formats.mo import mo_entries
from dragoman.languages.codes import fits, is_known, language_of, name_of
from dragoman.languages.scripts import written_in
from dragoman.progress import Progress
from dragoman.text.corpus import CollectionConfig, source_of_file
from dragoman.text.lines import COMPRESSIONS, kind_of, open_bytes, read_lines
from dragoman.text.words import UNSPACED

Languages = tuple[str, str]

KEYED = {
    suffix
    for name in ("json", "yaml", "properties", "android", "strings", "stringsdict", "resx")
    for suffix in FORMATS[name].suffixes
}
"""Documents whose texts have names, the same in each language."""


TEXTS = ".txt"
"""The kind of two files of text, a line of one translating a line of the other."""


SAME_BYTES = "the same bytes as"
"""The beginning of the note of a file that is a copy."""
MAX_LENGTH_RATIO, LENGTH_SLACK_CHARS = 3.0, 100
"""A document is at most so many times longer than its translation, but for some characters."""
_DENSE = re.compile(f"[{UNSPACED}]")
"""A character of a script without spaces, which stands for about three letters."""


@dataclass
class FileRecord:
    """A file, or two that belong together, and the number of pairs of it by what became of them."""

    path: str
    document: str
    """All pairs of a document are for training, or all are held out."""
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
    readers = _readers(paths_of(config), languages, config)
    with Progress("reading files", total=len(readers)) as bar:
        for record, codes, read in readers:
            entries: list[Entry] = []
            if read is not None:
                try:
                    entries = _turned(list(read()), codes, record, languages)
                except DragomanError as error:
                    record.note = str(error)
            bar.advance()
            yield record, entries


def paths_of(config: CollectionConfig) -> dict[str, Path]:
    """Each file by its name inside of the folder that was named, once, in the order of their names.

    Links to folders are followed, files and folders whose names begin with a dot are left out. Raises DragomanError for
    a path that is not there.
    """
    named: dict[str, Path] = {}
    seen: set[str] = set()
    for given in config.paths:
        written = os.path.expanduser(given)
        matches = [written] if os.path.exists(written) else sorted(glob.glob(written, recursive=True))
        if not matches:
            raise Error.MISSING_FILE("no such file or folder", file=given)
        for match in map(Path, matches):
            for name, path in sorted(_files_below(match)) if match.is_dir() else [(match.name, match)]:
                if (real := os.path.realpath(path)) not in seen:
                    seen.add(real)
                    named[path.as_posix() if name in named else name] = path
    return named


def _files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name inside of the folder, path) of all files below it."""
    entered = {os.path.realpath(folder)}
    for parent, folders, files in os.walk(folder, followlinks=True):
        kept = []
        for name in sorted(folder for folder in folders if not folder.startswith(".")):
            real = os.path.realpath(os.path.join(parent, name))
            if real not in entered:  # a link may lead to a folder that stands there too, or around it in a circle
                entered.add(real)
                kept.append(name)
        folders[:] = kept
        for path in (Path(parent, name) for name in files if not name.startswith(".")):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path


Reader = tuple[FileRecord, Languages, Callable[[], Iterable[Entry]] | None]
"""The record of a file, its languages where its entries name none, and what reads it."""


def _readers(paths: dict[str, Path], languages: Languages, config: CollectionConfig) -> list[Reader]:
    """A reader for each file or pair of files; None for a file that is not read."""
    pairs = _pairs(paths, languages)
    of_pairs = {name for pair in pairs.values() for name in pair}
    copies = _copies({name: path for name, path in paths.items() if name not in of_pairs})
    readers: list[Reader] = []
    for name, path in paths.items():
        record = FileRecord(name, _document(name, config), kind_of(name))
        codes = languages
        reader: Callable[[], Iterable[Entry]] | None = None
        if name in pairs:
            src, tgt = pairs[name]
            record = FileRecord(f"{src} and {tgt}", _document(name, config), _kind(name))
            reader = functools.partial(_twins, paths[src], paths[tgt], languages)
        elif name in of_pairs:
            continue
        elif name in copies:
            record.note = f"{SAME_BYTES} {copies[name]}"
        elif (read := _READERS.get(kind_of(name), _other if kind_of(name) in OTHER else None)) is not None:
            codes = _languages_of_name(name, languages) if kind_of(name) in (".po", ".mo", ".ts") else languages
            reader = functools.partial(read, path, languages, config)
        else:
            record.note = _why_not(name, path, languages)
        readers.append((record, codes, reader))
    return readers


def _copies(paths: dict[str, Path]) -> dict[str, str]:
    """Each file with the same bytes as an earlier file, and the name of the earlier file."""
    by_size: defaultdict[int, list[str]] = defaultdict(list)
    for name, path in paths.items():
        by_size[path.stat().st_size].append(name)
    copies: dict[str, str] = {}
    for names in by_size.values():
        first: dict[bytes, str] = {}
        for name in names if len(names) > 1 else ():
            with (
                contextlib.suppress(OSError),
                paths[name].open("rb") as stream,
            ):  # its reader says what is wrong with it
                digest = hashlib.file_digest(stream, "sha256").digest()
                if first.setdefault(digest, name) != name:
                    copies[name] = first[digest]
    return copies


def _document(name: str, config: CollectionConfig) -> str:
    return name.partition("/")[0] if config.documents == "folder" else name


def _why_not(name: str, path: Path, languages: Languages) -> str:
    with contextlib.suppress(DragomanError):
        first = next(read_lines(path)) if kind_of(name) in (TEXTS, ".json") else ""
        if kind_of(name) == TEXTS and "\t" in first:
            return "columns with tabs between them: let its name end in .tsv"
        if first.lstrip().startswith("["):
            return "a JSON array: write an object in each line (jq -c '.[]'), and let its name end in .jsonl"
    side = next((side for side, code in enumerate(languages) if _keys(name, code)), None)
    if side is not None and (kind_of(name) in (*SUFFIXES, TEXTS) or fits(kind_of(name), languages[side])):
        return f"no file beside it is its translation ({languages[1 - side]})"
    return "not of a kind that holds pairs"


def _kind(name: str) -> str:
    return kind_of(name) if kind_of(name) in SUFFIXES else TEXTS


# -- names ----------------------------------------------------------------------------------------------------------

_WITH_REGION = re.compile(
    r"(?<![^/._-])(?:b\+)?[A-Za-z]{2,3}(?:[_+-][A-Za-z0-9]{2,8}){1,2}(?:@[a-z]+)?(?![^/._-])"
    r"|(?<![^/._-])[A-Za-z]{2,3}[_-][A-Za-z0-9]{2,8}(?![^/._-])"
)
_BARE = re.compile(r"(?<![^/._-])[A-Za-z]{2,12}(?:@[a-z]+)?(?![^/._-])")
"""Parts of a name that may be a language: `pt-rBR`; `fr`, `sr@latin`, `French`."""


def _pairs(paths: Iterable[str], languages: Languages) -> dict[str, tuple[str, str]]:
    """(source, target) of each two files that translate each other, by the first of their names."""
    apart = "en" in map(language_of, languages)  # a catalogue holds English and one language
    names = [
        name for name in paths if kind_of(name) not in (_CATALOGUES if apart else ()) and kind_of(name) not in ALONE
    ]
    names.sort(key=lambda name: min(_rank(name, code) for code in languages))  # the nearest variant first
    sides: tuple[dict[str, str], dict[str, str]] = {}, {}
    keys = {name: [_keys(name, code) for code in languages] for name in names}
    for name in names:
        for side in (0, 1):
            for key in keys[name][side]:
                sides[side].setdefault(key, name)
    pairs: dict[str, tuple[str, str]] = {}
    done: set[str] = set()
    for name in names:
        for side in (0, 1):
            # The file beside it, in its place in the same folder or tree; or the one without a language in its name.
            others = [sides[1 - side].get(key) for key in keys[name][side]]
            others += [bare for key in keys[name][side] for bare in _bare(key) if bare in keys and not any(keys[bare])]
            other = next((other for other in others if other and not {name, other} & done), None)
            if other is not None and other != name:
                pairs[min(name, other)] = (name, other) if side == 0 else (other, name)
                done |= {name, other}
                break
    return pairs


def _keys(name: str, code: str) -> list[str]:
    """The name with `*` for a language, as the files of other languages have it; none for a name without it.

    >>> _keys("help-de/de/a.html", "de"), _keys("values-pt-rBR/strings.xml", "pt_BR")
    (['help-de/*/a.html', 'help-*/*/a.html'], ['values-*/strings.xml'])
    """
    places = _places(name, code)
    best = max(places.values(), default=0)
    last = [place for place, agreement in places.items() if agreement == best][-1:]
    return list(dict.fromkeys(_starred(name, spans) for spans in (last, list(places)) if spans))


def _places(name: str, code: str) -> dict[tuple[int, int], int]:
    """The parts of a name that are a language, in their order, and how far they agree with it."""
    places: dict[tuple[int, int], int] = {}
    for pattern in (_WITH_REGION, _BARE):
        for match in pattern.finditer(name):
            is_inside = any(start <= match.start() and match.end() <= end for start, end in places)
            if not is_inside and (agreement := _agreement(match.group(), code)):
                places[match.span()] = agreement
    return dict(sorted(places.items()))


def _rank(name: str, code: str) -> tuple[int, int]:
    """The rank of a name among those of a language's files: of the same agreement a code without a region is first."""
    places = _places(name, code).items()
    return min(((-near, end - start) for (start, end), near in places), default=(0, 0))


def _starred(name: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(places):
        name = f"{name[:start]}*{name[end:]}"
    return name


def _agreement(part: str, code: str) -> int:
    """The degree to which a part of a name is a language, or its name."""
    return fits(part, code) or int(part.lower() == name_of(code).lower())


def _bare(key: str) -> list[str]:
    """The names that a file in the first language may have: `strings_*.properties`, `values-*/x`, `*/guide.md`."""
    return [re.sub(pattern, "", key, count=1) for pattern in (r"[._-]\*", r"\*/") if re.search(pattern, key)]


def _turned(entries: list[Entry], codes: Languages, record: FileRecord, languages: Languages) -> list[Entry]:
    """The entries from source to target: a catalogue from English serves for both directions. Entries in other
    languages are counted. Raises DragomanError for a file with entries in other languages only.
    """
    turned: list[Entry] = []
    others: Counter[Languages] = Counter()
    for entry in entries:
        one, other = entry.languages or codes
        if not fits(other, languages[1]):
            other = written_in(other, entry.tgt)
        if fits(one, languages[0]) and fits(other, languages[1]):
            turned.append(entry)
        elif fits(one, languages[1]) and fits(other, languages[0]):
            turned.append(entry._replace(src=entry.tgt, tgt=entry.src))
        else:
            others[one, other] += 1
    if others and not turned:
        (one, other), _ = others.most_common(1)[0]
        raise Error.NO_SUCH_LANGUAGE(f"from {one} to {other}", f"not from {languages[0]} to {languages[1]}: left out")
    record.read = len(entries)
    if others:
        record.fates["other languages"] = others.total()
    return turned


def _languages_of_name(name: str, languages: Languages) -> Languages:
    """The languages of a catalogue by its name: `po/fr.po`, `fr/LC_MESSAGES/app.mo`, `app.fr.po`.

    A name without a language: from English, if English is one of the two languages.
    """
    path = Path(name.removesuffix(".gz"))
    if len(path.parts) > 2 and path.parts[-2] == "LC_MESSAGES":
        return "en", path.parts[-3]
    last = re.split(r"[.]", path.stem)[-1]
    if re.fullmatch(r"[a-z]{2,3}(?:[_-][A-Za-z0-9]{2,8})*(?:@[a-z]+)?", last) and is_known(last):
        return "en", last
    return (languages[1], languages[0]) if language_of(languages[1]) == "en" else languages


# -- files that hold both languages ---------------------------------------------------------------------------------


def _tmx(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    with open_bytes(path) as stream:
        yield from bitext.tmx_entries(stream, show(path), languages, least=1)


def _xliff(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    with open_bytes(path) as stream:
        yield from bitext.xliff_entries(stream, show(path))


def _po(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    yield from bitext.po_entries(_bytes(path), show(path))


def _qt(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    yield from qt.entries(_text(path, "xml"), Options(show(path)))


def _string_catalog(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    yield from string_catalog.entries(_text(path), Options(show(path), languages))


def _mo(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    yield from mo_entries(_bytes(path), show(path))


def _table(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    name = str(path.with_suffix("") if path.suffix in COMPRESSIONS else path)
    # In reading only, as a workbook is a zip file, which is none of lines.
    data = path.read_bytes() if path.suffix.lower() == ".xlsx" else _bytes(path)
    yield from table.entries(data, show(name), languages, config.columns)


def _other(path: Path, languages: Languages, config: CollectionConfig) -> Iterator[Entry]:
    for pair in source_of_file(str(path), *languages, config.columns).pairs():
        yield Entry(pair.line, pair.src, pair.tgt)


def _text(path: Path, declares: Declares = "") -> str:
    return decoded(_bytes(path), show(path), declares)[0]


def _bytes(path: Path) -> bytes:
    with open_bytes(path) as stream:
        return stream.read()


_READERS: dict[str, Any] = {
    ".tmx": _tmx,
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff"), _xliff),
    ".po": _po,
    ".ts": _qt,
    ".xcstrings": _string_catalog,
    ".mo": _mo,
    **dict.fromkeys(table.SUFFIXES, _table),
}


# -- a file in each language ----------------------------------------------------------------------------------------


def _twins(src: Path, tgt: Path, languages: Languages) -> Iterator[Entry]:
    """The pairs of two files that translate each other."""
    kind = kind_of(src)
    if kind in _CATALOGUES:
        yield from _through_english(src, tgt, languages)
        return
    if kind in KEYED:
        yield from _by_name(*(_texts(path) for path in (src, tgt)))
        return
    if kind in SUFFIXES and kind != TEXTS:
        paragraphs = [_texts(path) for path in (src, tgt)]
    else:
        lines = [list(read_lines(path, may_be_empty=True)) for path in (src, tgt)]
        if len(lines[0]) == len(lines[1]):
            yield from (Entry(number, *pair) for number, pair in enumerate(zip(*lines, strict=True), start=1))
            return
        paragraphs = [[CodedText("", line, [line]) for line in texts if line.strip()] for texts in lines]
    texts = [[one.text for one in side] for side in paragraphs]
    _require_alike(*texts)
    beside = ((paragraphs[0][row], paragraphs[1][column]) for row, column in aligned(*texts))
    pairs = itertools.chain.from_iterable(coded_pairs(*pair, languages) for pair in beside)
    for number, (one, other, coded) in enumerate(pairs, start=1):
        yield Entry(number, one, other, coded=coded)


def _require_alike(src: Sequence[str], tgt: Sequence[str]) -> None:
    """Raises DragomanError for two documents of which one is far too short for a translation of the other."""
    sizes = [sum(len(text) + 2 * len(_DENSE.findall(text)) for text in side) for side in (src, tgt)]
    if min(sizes) + LENGTH_SLACK_CHARS < max(sizes) / MAX_LENGTH_RATIO:
        raise Error.UNEQUAL_COUNTS(
            f"{sum(map(len, src)):,} characters against {sum(map(len, tgt)):,}: hardly translations of each other",
            "leave one of them out, or give the whole translation",
        )


def _texts(path: Path) -> list[CodedText]:
    """The texts of a document; what programs write into its properties is no text of its author."""
    options = Options(asides=asides_of((), ("metadata",)))
    units = (unit for unit in Document.load(path, options).texts() if not unit.kept)
    return [CodedText(unit.where, plain(unit.items), unit.items) for unit in units]


def _by_name(src: Sequence[CodedText], tgt: Sequence[CodedText]) -> Iterator[Entry]:
    """The texts of two files that have the same name in both."""
    translations = dict(zip(_names(tgt), tgt, strict=True))
    for number, (name, one) in enumerate(zip(_names(src), src, strict=True), start=1):
        other = translations.get(name, CodedText("", "", ()))
        state: State = "" if other.text else "untranslated"
        yield Entry(number, one.text, other.text, state, coded=numbered(one.items, other.items))


def _names(texts: Sequence[CodedText]) -> list[tuple[str, int]]:
    """The name of each text without its line, and how many texts before it have the same name: all items of a list have
    one name."""
    times: Counter[str] = Counter()
    names = []
    for where, *_ in texts:
        name = re.sub(r"^line \d+, ", "", where)
        names.append((name, times[name]))
        times[name] += 1
    return names


def _through_english(src: Path, tgt: Path, languages: Languages) -> Iterator[Entry]:
    """The translations of the messages that two catalogues have in common, by message and context."""
    sides = []
    for path, code in zip((src, tgt), languages, strict=True):
        messages: dict[tuple[str, str], Entry] = {}
        for entry in _READERS[kind_of(path)](path, ("en", code), CollectionConfig(paths=[str(path)])):
            messages.setdefault((entry.context, entry.src), entry)
        sides.append(messages)
    for message, one in sides[0].items():
        other = sides[1].get(message)
        if other is None or not (one.is_translated and other.is_translated):
            yield Entry(one.line, one.tgt, "" if other is None else other.tgt, "untranslated")
        else:
            approved = one.state == other.state == "approved"
            yield Entry(one.line, one.tgt, other.tgt, "approved" if approved else "", max(one.changed, other.changed))


_CATALOGUES = (".po", ".mo", ".ts", ".xlf", ".xliff")
OTHER = (".jsonl", ".parquet")
"""Corpora of pairs in one file."""
ALONE = frozenset({".tmx", ".xcstrings", *OTHER, ".csv", ".tsv", ".tab", ".sdlxliff", ".mxliff", ".mqxliff"})
"""Kinds that hold both languages: a language in their names does not make two of them a pair."""
