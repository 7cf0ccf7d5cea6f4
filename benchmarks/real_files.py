"""Real files of all formats, translated by a program that writes nonsense: is everything but their texts as it was?

    python benchmarks/real_files.py fetch data/real-files            # the packages that real_files.txt names
    python benchmarks/real_files.py check data/real-files/files --report real_files.md
    python benchmarks/real_files.py check FOLDER FILE ...            # any others

Of each format the same files each time, at most `--most`, from as many packages as possible. Each is translated twice:

1. every sentence by itself: the file must come back byte for byte;
2. every sentence with its words in reverse order and each of their letters 13 places on in its alphabet: what another
   reader of the format sees (`real_file_readers.py`) must be built as before, and each of its words must be there
   once, as it was or turned. A word that was left and that no text which is counted as left has, is counted.

Of office files a sample is printed by LibreOffice before and after (`--office`), and the words that a reader of the
print still sees are looked up in the same way.
"""

import argparse
import codecs
import hashlib
import itertools
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pypdf
from real_file_readers import READERS, Reading, Unread, words_of

from dragoman.alignment.links import aligned_pair, proportional
from dragoman.corpora.apt import SOURCE, Apt
from dragoman.errors import DragomanError
from dragoman.formats import archive
from dragoman.formats.base import Code, Item, Options, Unit
from dragoman.formats.document import FORMATS, SUFFIXES, Document, format_of, is_known
from dragoman.inference.translation import Translation
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.guarded import GuardedTranslator
from dragoman.pipeline.splitter import Splitter
from dragoman.progress import Progress, say
from dragoman.special_tokens import UNK_ID
from dragoman.text.placeholders import has_same_spans, keeps_part_numbers, span_pattern

LIST = Path(__file__).with_suffix(".txt")
LANGUAGES = ("en", "de")
MAX_BYTES = 2**19
"""Larger files are left out: they take long, and hold more of the same."""
SECONDS = 60
"""Of the processor, that a file may take."""
OFFICE = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "odg")
PRINTED_AT_ONCE = 20
"""Files that LibreOffice prints before it is started anew: some of its own tests end it."""
MAX_PAGES = 20
SHORT = 4
"""Letters that a word has at least to be looked for in what was left."""


# -- fetching ------------------------------------------------------------------------------------------------------


def fetch(folder: Path) -> None:
    """Download what `real_files.txt` names, and unpack its files of formats that can be translated."""
    archives = folder / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    rows = [line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    apt = Apt(folder / "apt", [])
    apt.update()
    with Progress("downloading", len(rows)) as bar:
        for kind, name, *part in rows:
            download(apt, kind, name, "".join(part), archives)
            bar.advance(package=name)
    paths = sorted(path for path in archives.iterdir() if path.is_file())
    with Progress("unpacking", len(paths)) as bar:
        for path in paths:
            unpack(path, folder / "files" / path.name)
            bar.advance(file=path.name)


def download(apt: Apt, kind: str, name: str, part: str, into: Path) -> None:
    if kind in ("package", "source"):
        offers = apt.offers([SOURCE + name if kind == "source" else name])
        offers = [offer for offer in offers if kind == "package" or (part or ".orig.") in offer.file]
        missing = [offer for offer in offers if not (into / offer.file).exists()]
        problems = apt.download(missing, into) if missing else []
        if not offers or problems:
            say(f"{name}: {problems[-1] if problems else 'is not to be had'}")
        return
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    command = [*pip, "--ignore-requires-python", name] if kind == "pypi" else ["npm", "pack", "-s", name]
    if subprocess.run(command, cwd=into, capture_output=True).returncode:
        say(f"{name}: is not to be had")
    for path in into.glob("*.tgz"):
        path.rename(path.with_suffix(".tar.gz"))


def unpack(path: Path, into: Path) -> None:
    """Write the files of known kinds of an archive to a folder; of each kind of file those with another content."""
    if into.exists():
        return
    for name, data in archive.files(path, is_wanted):
        if 0 < len(data) <= MAX_BYTES:
            to = into / name
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(data)


def is_wanted(name: str) -> bool:
    path = Path(name)
    return path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".pdf" and not path.name.startswith(".")


# -- choosing ------------------------------------------------------------------------------------------------------


def kind_by_name(path: Path, data: bytes) -> str | None:
    """The format that a file's name and first element say; None for one that is of no interest."""
    suffix = path.suffix.lower()
    if not is_known(path, data) or suffix == ".pdf" or not data.strip():
        return None
    if suffix == ".xml":
        try:
            kind = format_of(path, data)
        except DragomanError:
            return None
        if kind is FORMATS["xml"] and not re.search(
            rb"DocBook|<(book|article|chapter|refentry|topic|concept|task)\b", data
        ):
            return None
        return next(name for name, one in FORMATS.items() if one is kind)
    return next(name for name, one in FORMATS.items() if suffix in one.suffixes)


def chosen(folders: Sequence[Path], most: int) -> dict[str, list[Path]]:
    """Files by format: of each package first the one whose hash is least, then the second one of each, and so on."""
    found: dict[str, dict[str, dict[str, Path]]] = defaultdict(lambda: defaultdict(dict))
    seen: set[str] = set()
    for folder in folders:
        inside = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else [folder]
        for path in inside:
            if path.suffix.lower() not in SUFFIXES or path.stat().st_size > MAX_BYTES:
                continue
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            if digest in seen or (kind := kind_by_name(path, data)) is None:
                continue
            seen.add(digest)
            package = path.relative_to(folder).parts[0] if folder.is_dir() else ""
            found[kind][package][digest] = path
    out = {}
    for kind in FORMATS:
        ranks = [
            (rank, digest, path)
            for of_package in found.get(kind, {}).values()
            for rank, (digest, path) in enumerate(sorted(of_package.items()))
        ]
        out[kind] = [path for _, _, path in sorted(ranks)[:most]]
    return {kind: paths for kind, paths in out.items() if paths}


# -- translating ---------------------------------------------------------------------------------------------------

_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_TURNED = str.maketrans(
    _CYRILLIC + _CYRILLIC.upper(), "".join(side[16:] + side[:16] for side in (_CYRILLIC, _CYRILLIC.upper()))
)


def turned(text: str) -> str:
    """The text with each letter half an alphabet on: done twice, it is the text again."""
    return codecs.encode(text, "rot13").translate(_TURNED)


def chunks_of(text: str) -> list[tuple[int, int]]:
    """Where the words of a text with what stands at them begin and end; a placeholder is in one with its blanks."""
    held = bytearray(len(text))
    for match in span_pattern(codes=True).finditer(text):
        held[match.start() : match.end()] = b"\1" * len(match.group())
    read = "".join("x" if held[at] else char for at, char in enumerate(text))
    return [match.span() for match in re.finditer(r"\S+", read)]


def reversed_words(text: str, change: Callable[[str], str]) -> str:
    """The words in reverse order, each of them changed; placeholders and a mark at the end stay."""
    mark = text[-1:] if text[-1:] in (".", "!", "?") else ""
    body = text.removesuffix(mark)
    out = []
    for start, end in reversed(chunks_of(body)):
        at, said = start, ""
        for match in span_pattern(codes=True).finditer(body, start, end):
            said += change(body[at : match.start()]) + match.group()
            at = match.end()
        out.append(said + change(body[at:end]))
    blank = "\u00a0" if "\u00a0" in text else " "
    return blank.join(out) + mark


def links_of_reversed(src: str, tgt: str) -> np.ndarray:
    """Which word of a reversed text comes from which."""
    pair = aligned_pair(src, tgt)
    own, made = pair.src_words, pair.tgt_words
    mark = 1 if src[-1:] in (".", "!", "?") and len(src) > 1 else 0
    groups = [
        [number for number, word in enumerate(own) if start <= word.start < end]
        for start, end in chunks_of(src[: len(src) - mark])
    ]
    order = [*itertools.chain.from_iterable(reversed(groups)), *range(len(own) - mark, len(own))]
    if len(order) != len(own) or len(made) != len(own):
        return proportional(len(made), len(own))
    return np.eye(len(own))[order]


def nonsense(text: str) -> str:
    """The text with its words reversed and turned; only reversed, or as it is, where that would make a placeholder."""
    ways = (reversed_words(text, turned), reversed_words(text, str))
    return next((way for way in ways if has_same_spans(text, way) and keeps_part_numbers(text, way)), text)


class Nonsense:
    """A translator of sentences by a function, with the interface of a search."""

    glossary = None
    decoding = SimpleNamespace(beam_size=1, num_candidates=1, n_best=1)
    tokenizers = SimpleNamespace(**dict.fromkeys(("src", "tgt"), SimpleNamespace(id_of=lambda piece: UNK_ID)))

    def __init__(self, write: Callable[[str], str]) -> None:
        self.write = write

    def with_decoding(self, **_: Any) -> "Nonsense":
        return self

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        return [[Translation(self.write(text), 0.0, 0.0)] for text in sentences]


class Observed(DocumentTranslator):
    """A document's translator that remembers the words of what is left as it is."""

    def __init__(self, write: Callable[[str], str]) -> None:
        def written(text: str) -> str:
            made = write(text)
            if turned(made) != text and sorted(made) == sorted(text):  # not turned
                self.left.update(words_of(text))
            return made

        self.left: set[str] = set()
        splitter = Splitter(LANGUAGES)
        search: Any = Nonsense(written)
        stage = GuardedTranslator(search, guard=False, warn=False, splitter=splitter)
        pipeline: Any = SimpleNamespace(
            splitter=splitter, by_sentence=stage.n_best, own=search, carries_codes=False, context=(0, 0), memory=None
        )
        super().__init__(pipeline)

    def __call__(self, units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
        made = super().__call__(units)
        for unit, items in zip(units, made, strict=True):
            is_left = items is None or items == unit.items
            for item in unit.items:
                raw = item.raw if isinstance(item, Code) else item
                held = [raw] if is_left or isinstance(item, Code) else span_pattern(codes=True).findall(raw)
                self.left.update(word for text in held for word in words_of(text))
        return made

    def _links(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], np.ndarray]:
        return {pair: links_of_reversed(*pair) for pair in pairs}


# -- checking ------------------------------------------------------------------------------------------------------


@dataclass
class Checked:
    """What came of the files of a format."""

    files: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    texts: int = 0
    translated: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    wrapped: int = 0
    identical: int = 0
    same_structure: int = 0
    unread: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)
    """(file, what is wrong)."""
    words: int = 0
    left: Counter[str] = field(default_factory=Counter)
    """Words of the source that stand in the result and in no text that is counted as left."""
    printed: Counter[str] = field(default_factory=Counter)
    printed_files: int = 0


class TooLong(Exception):
    pass


def late(*_: object) -> None:
    raise TooLong(f"takes more than {SECONDS} s")


def check_safely(path: Path, kind: str, row: Checked) -> tuple[bytes, set[str]] | None:
    """As `check`; whatever goes wrong is a fault of the file."""
    number = len(row.faults)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return check(path, kind, row)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        row.faults.append((str(path), f"{type(error).__name__}: {error} ({place.name}:{place.lineno})"))
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for file, fault in row.faults[number:]:
            say(f"{file}: {fault[:700]}")


def check(path: Path, kind: str, row: Checked) -> tuple[bytes, set[str]] | None:
    """Count what comes of a file; its translation and the words that are counted as left."""
    row.files += 1
    columns = tuple(str(number) for number in range(1, 400)) if kind == "csv" else ()
    options = Options(languages=LANGUAGES, columns=columns)
    try:
        if kind == "csv":
            first = READERS["csv"][1](path.read_bytes()).structure[0]
            options = Options(languages=LANGUAGES, columns=columns[:first])
        document = Document.load(path, options)
        identity = document.translated(Observed(str))
        translator = Observed(nonsense)
        made = document.translated(translator)
    except DragomanError as error:
        row.refused[re.sub(r"\d+|'[^']*'|`[^`]*`", "…", f"{error.code}: {error}".replace(str(path), "FILE"))[:120]] += 1
        return None
    report = translator.report
    row.texts += report.texts
    row.translated += report.translated
    row.kept += report.kept
    row.wrapped += report.wrapped
    before = document.data
    if identity == before:
        row.identical += 1
    elif kind not in BILINGUAL:
        row.faults.append((str(path), f"identity differs {difference(before, identity)}"))
    compare(path, kind, row, before, made, translator.left)
    return made, translator.left


UNSEEN = ("txt", "asciidoc", "rest", "csv", *OFFICE)
"""Formats of which the readers cannot tell what a person sees."""
BILINGUAL = ("po", "xliff", "tmx", "ts", "xcstrings")
"""Formats with the translation beside its source."""


def difference(before: bytes, after: bytes) -> str:
    at = next(
        (i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(after)),
    )
    return f"at {at}: {before[max(0, at - 30) : at + 30]!r} {after[max(0, at - 30) : at + 30]!r}"


def compare(path: Path, kind: str, row: Checked, before: bytes, after: bytes, left: set[str]) -> None:
    """Count what another reader sees in a file and in its translation."""
    read = READERS[kind][1]
    try:
        source = read(before)
    except (Unread, RecursionError) as error:
        row.unread += 1
        return say(f"{path}: the other reader: {error}")
    try:
        target = read(after)
    except Unread as error:
        return row.faults.append((str(path), f"cannot be read any more: {error}"))
    faults = list(faults_of(source, target))
    row.faults += [(str(path), fault) for fault in faults]
    row.same_structure += not faults
    texts = in_pairs(source, target)
    row.words += sum(1 for _ in words_of(texts[0]))
    if kind not in UNSEEN:
        row.left += still_there(*texts, left | target.unseen)


def in_pairs(source: Reading, target: Reading) -> tuple[str, str]:
    """(texts to translate, their translations)."""
    if source.targets is None or target.targets is None:
        return source.text, target.text
    new = [
        (src, tgt)
        for number, ((src, old), (_, tgt)) in enumerate(zip(source.targets, target.targets, strict=False))
        if (number in source.drafts or not old.strip()) and tgt.strip() and old != tgt
    ]
    return "\n".join(src for src, _ in new), "\n".join(tgt for _, tgt in new)


def faults_of(source: Reading, target: Reading) -> Iterator[str]:
    if source.structure != target.structure:
        gone, come = (Counter(map(str, one)) - Counter(map(str, two)) for one, two in
                      ((source.structure, target.structure), (target.structure, source.structure)))  # fmt: skip
        yield f"built otherwise: -{list(gone.items())[:4]} +{list(come.items())[:4]}"
    if source.targets is not None and target.targets is not None:
        pairs = enumerate(zip(source.targets, target.targets, strict=False))
        kept = ((old, new) for number, ((_, old), (_, new)) in pairs if old.strip() and number not in source.drafts)
        if changed := [(old, new) for old, new in kept if old != new]:
            yield f"an older translation has changed: {changed[:2]}"
    before, after = (
        Counter(min(word, turned(word)) for word in words_of(bare(text))) for text in in_pairs(source, target)
    )
    if before != after:
        yield f"other words: -{list((before - after).items())[:6]} +{list((after - before).items())[:6]}"


def bare(text: str) -> str:
    """The text without entities, marks of accelerators, fields of headers and characters that nobody sees."""
    text = re.sub(r"_(?=\S*_)", " ", text)  # a name, no mark
    return re.sub(r"[&_](?=\w)|[~\xad\u200b-\u200d\u2060\ufeff]", "", re.sub(r"&(?:#?\w+;|[LCR](?=[A-Z&]))", " ", text))


def still_there(before: str, after: str, left: set[str]) -> Counter[str]:
    """Words of a source that its translation has as they were, though they are not counted as left."""
    source, target = Counter(words_of(before)), Counter(words_of(after))
    return Counter(
        {
            word: target[word]
            for word in source.keys() & target.keys()
            if len(word) >= SHORT and word not in left and turned(word) not in source and turned(word) != word
        }
    )


# -- LibreOffice ---------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """A file of an office, its translation, and the words that are counted as left."""

    path: Path
    kind: str
    made: bytes
    left: set[str]


def check_prints(samples: Sequence[Sample], rows: dict[str, Checked]) -> None:
    """Count the words that a reader of LibreOffice's prints sees as they were."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (path, _, made, _) in enumerate(samples):
            shutil.copy(path, folder / f"{number}before{path.suffix}")
            (folder / f"{number}after{path.suffix}").write_bytes(made)
        command = ["soffice", f"-env:UserInstallation=file://{name}/profile", "--headless", "--convert-to", "pdf"]
        paths = sorted(map(str, folder.glob("*[re].*")))
        for start in range(0, len(paths), PRINTED_AT_ONCE):
            subprocess.run([*command, "--outdir", name, *paths[start : start + PRINTED_AT_ONCE]], capture_output=True)
        for number, (path, kind, _, left) in enumerate(samples):
            prints = [folder / f"{number}{side}.pdf" for side in ("before", "after")]
            if not all(one.exists() for one in prints):
                say(f"{path}: LibreOffice does not print it")
                continue
            found = still_there(*map(printed_text, prints), left)
            rows[kind].printed_files += 1
            rows[kind].printed += found
            if found:
                say(f"{path}: printed: {' '.join(itertools.islice(found, 12))}")


def printed_text(path: Path) -> str:
    return "\n".join(page.extract_text() for page in itertools.islice(pypdf.PdfReader(path).pages, MAX_PAGES))


# -- reporting -----------------------------------------------------------------------------------------------------


HEAD = (
    "format", "files", "refused", "texts", "translated", "left as they are", "back byte for byte",
    "built as before, with the same words", "words left uncounted", "the same in prints",
)  # fmt: skip


def table(rows: dict[str, Checked]) -> str:
    """The table of the report."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for kind, row in rows.items():
        done = row.files - row.refused.total()
        cells = (
            kind,
            row.files,
            row.refused.total(),
            f"{row.texts:,}",
            f"{row.translated:,}",
            ", ".join(f"{count:,} {reason}" for reason, count in row.kept.most_common()),
            f"{row.identical} of {done}" if kind not in BILINGUAL else "",
            f"{row.same_structure} of {done - row.unread} ({READERS[kind][0]})",
            f"{row.left.total():,} of {row.words:,}" if kind not in UNSEEN else "",
            f"{row.printed.total()} in {row.printed_files}" if row.printed_files else "",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    total = sum(row.files for row in rows.values())
    lines.append(f"\n{total:,} files, {sum(row.texts for row in rows.values()):,} texts.")
    lines.append("\nRefused:\n")
    lines += [f"- {kind}: {count} × {why}" for kind, row in rows.items() for why, count in row.refused.most_common()]
    return "\n".join(lines)


def run(folders: Sequence[Path], most: int, office: int, only: Iterable[str], minutes: float) -> dict[str, Checked]:
    """Check the files below some folders."""
    files = {kind: paths for kind, paths in chosen(folders, most).items() if not only or kind in only}
    rows = {kind: Checked() for kind in files}
    kinds = [kind for kind in files if kind in OFFICE] if shutil.which("soffice") else []
    samples: list[Sample] = []
    signal.signal(signal.SIGPROF, late)
    prints = dict.fromkeys(kinds, -(-office // max(1, len(kinds))))
    by_rank = itertools.zip_longest(*files.values())
    order = [(kind, path) for of_rank in by_rank for kind, path in zip(files, of_rank, strict=True) if path]
    started = time.monotonic()
    with Progress("checking", len(order)) as bar:
        for kind, path in order:
            if minutes and time.monotonic() - started > 60 * minutes:
                break
            result = check_safely(path, kind, rows[kind])
            if result is not None and prints.get(kind, 0) > 0:
                prints[kind] -= 1
                samples.append(Sample(path, kind, *result))
            bar.advance(format=kind)
    if samples:
        check_prints(samples, rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="download the packages of real_files.txt and unpack their files")
    fetching.add_argument("folder", type=Path)
    checking = commands.add_parser("check", help="translate files and compare")
    checking.add_argument("folders", type=Path, nargs="+")
    checking.add_argument("--most", type=int, default=80, help="files of each format (80)")
    checking.add_argument("--office", type=int, default=0, help="files that LibreOffice prints before and after (0)")
    checking.add_argument("--minutes", type=float, default=0, help="stop after these")
    checking.add_argument("--only", default="", help="formats, with commas")
    checking.add_argument("--report", type=Path, help="the table goes here, too")
    args = parser.parse_args()
    if args.command == "fetch":
        return fetch(args.folder)
    started = time.monotonic()
    rows = run(args.folders, args.most, args.office, [kind for kind in args.only.split(",") if kind], args.minutes)
    text = f"{table(rows)}\n\n{platform.python_version()}, {time.monotonic() - started:.0f} s\n"
    print(text)
    if args.report:
        args.report.write_text(text, encoding="utf-8")
    for kind, row in rows.items():
        if row.left:
            say(f"{kind}: left uncounted: {' '.join(word for word, _ in row.left.most_common(40))}")
    sys.exit(1 if any(row.faults for row in rows.values()) else 0)


if __name__ == "__main__":
    main()
