"""A parallel corpus from Debian's packages: interfaces of programs, manuals, help, handbooks, descriptions of packages.

Two stages. `fetch` downloads the packages of `debian_packages.toml` by their names; `packages.tsv` keeps which ones
they were, so that anyone can fetch the same ones again. `unpack` writes what they have of two languages, one of them
English, to FOLDER/files/PACKAGE: catalogues (.mo, .po) as they are, and pages, whose paragraphs it aligns, as a
catalogue of its own. FOLDER/licences has the copyright file of each package.
"""

import csv
import functools
import gzip
import hashlib
import io
import json
import re
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dragoman.corpora import libreoffice_help, parallel_pages
from dragoman.corpora.apt import Apt, Offer
from dragoman.errors import Error, writing
from dragoman.formats import archive
from dragoman.languages.codes import language_of, locale_of
from dragoman.progress import Progress, say, size_text
from dragoman.runs import atomic_io

PACKAGES_PER_DOWNLOAD = 12
"""Packages that apt-get downloads in one go."""
TRANSLATION = "Translation-"
"""A file of descriptions of packages in a language; Debian calls it so."""
FILES, LICENCES = "files", "licences"
"""Folders of what was unpacked: texts by package, and each package's copyright file."""
NO_LICENCE = "see copyright"


# -- fetching ------------------------------------------------------------------------------------------------------


@functools.cache
def table() -> dict[str, list[str]]:
    """The names of packages by kind; `{lang}` stands for the language that is not English."""
    text = Path(__file__).with_name("debian_packages.toml").read_text(encoding="utf-8")
    return {kind: entry["packages"] for kind, entry in tomllib.loads(text).items()}


def fetch(pair: tuple[str, str], folder: Path, kinds: Sequence[str] = (), packages: Path | None = None) -> list[Path]:
    """Download the packages for a pair of languages into `packages` (or FOLDER/packages); their files.

    With a FOLDER/packages.tsv, exactly those of its list; what is there already is kept. Raises DragomanError where
    apt-get is missing, the network is, or a version is not to be had any more.
    """
    language = other_language(pair)
    into = packages or folder / "packages"
    with writing(into):
        into.mkdir(parents=True, exist_ok=True)
    listed = folder / "packages.tsv"
    if listed.exists():
        rows = _read_list(listed)
        if missing := [row for row in rows if not _is_there(into / row.file, row)]:
            _fetch_again(Apt(folder / "apt", ["en", language]), missing, language, into, listed)
    else:
        names = _names(language, kinds)
        apt = Apt(folder / "apt", ["en", language] if TRANSLATION in names else [])
        rows = _fetch_new(apt, names, language, into)
    with writing(folder):
        if not listed.exists():
            _write_list(listed, rows)
        atomic_io.remove(folder / "apt")
    return [into / row.file for row in rows]


def _names(language: str, kinds: Sequence[str]) -> list[str]:
    """The names of packages for a language, each once."""
    chosen = {kind: names for kind, names in table().items() if not kinds or kind in kinds}
    if unknown := sorted(set(kinds) - set(chosen)):
        raise Error.UNKNOWN_NAME(f"no kind of packages is called {unknown[0]!r}", f"there are {', '.join(table())}")
    spelled = language.lower().replace("_", "-").replace("@", "-")
    return list(dict.fromkeys(name.replace("{lang}", spelled) for names in chosen.values() for name in names))


def _fetch_new(apt: Apt, names: list[str], language: str, into: Path) -> list[Offer]:
    """Download what there is today."""
    say("reading the lists of the package sources")
    apt.update()
    rows = _descriptions_of(apt, ("en", language), into) if TRANSLATION in names else []
    offers = apt.offers([name for name in names if name != TRANSLATION])
    if unknown := sorted({*names} - {offer.package for offer in offers} - {TRANSLATION}):
        say(f"not in this machine's package sources: {', '.join(unknown)}")
    failed = _download(apt, [offer for offer in offers if not _is_there(into / offer.file, offer)], into)
    if failed and len(failed) == len({offer.package for offer in offers}):
        raise Error.NO_NETWORK(
            f"nothing can be downloaded: {next(iter(failed.values()))}",
            "look at the network, or give a folder of packages (`from`)",
        )
    if failed:
        say(f"cannot be downloaded, and left out: {', '.join(sorted(failed))}")
    return sorted(rows + [offer for offer in offers if offer.package not in failed])


def _fetch_again(apt: Apt, missing: list[Offer], language: str, into: Path, listed: Path) -> None:
    """Download packages in the versions of a list."""
    apt.update()
    _descriptions_of(apt, ("en", language), into)
    _download(apt, [row for row in missing if not row.package.startswith(TRANSLATION)], into)
    if missing := [row for row in missing if not _is_there(into / row.file, row)]:
        others = f", and {len(missing) - 1} others" if len(missing) > 1 else ""
        raise Error.MISSING_FILE(
            f"lists {missing[0].package} {missing[0].version}{others}, which the package sources of this machine do "
            "not have any more",
            "delete it to take what there is today, or give a folder that has the files (`from`)",
            file=listed,
        )


def _descriptions_of(apt: Apt, codes: Iterable[str], into: Path) -> list[Offer]:
    """Write the descriptions of packages in these languages."""
    rows = []
    for code in codes:
        if text := apt.translations(code):
            data = gzip.compress(text, mtime=0)
            digest = hashlib.sha256(data).hexdigest()
            path = into / f"{TRANSLATION}{code}.{digest[:12]}.gz"
            atomic_io.replace_bytes(path, data)
            rows.append(Offer(f"{TRANSLATION}{code}", "", path.name, len(data), digest))
    return rows


def _download(apt: Apt, offers: list[Offer], into: Path) -> dict[str, str]:
    """Download files; the packages that cannot be had, and why."""
    failed: dict[str, str] = {}
    title = f"downloading {len(offers)} files, {size_text(sum(offer.bytes for offer in offers))} (in KiB)"
    with Progress(title, total=sum(offer.bytes for offer in offers) // 1024) as bar:
        for start in range(0, len(offers), PACKAGES_PER_DOWNLOAD):
            batch = offers[start : start + PACKAGES_PER_DOWNLOAD]
            problems = apt.download(batch, into)
            for offer in batch:
                if not _is_there(into / offer.file, offer):
                    why = [text for text in problems if offer.file in text] or problems or ["apt-get does not say why"]
                    failed[offer.package] = why[-1]
            bar.advance(sum(offer.bytes for offer in batch) // 1024)
    return failed


def _is_there(path: Path, row: Offer) -> bool:
    return (
        path.is_file()
        and path.stat().st_size == row.bytes
        and hashlib.sha256(path.read_bytes()).hexdigest() == row.sha256
    )


def _write_list(path: Path, rows: Iterable[Offer]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerows([Offer._fields, *rows])
    atomic_io.replace_text(path, text.getvalue())


def _read_list(path: Path) -> list[Offer]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                Offer(row["package"], row["version"], row["file"], int(row["bytes"]), row["sha256"])
                for row in csv.DictReader(file, delimiter="\t")
            ]
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise Error.DAMAGED(f"is not a list of packages ({error})", "delete it to make a new one", file=path) from error
    if any(row.file != PurePosixPath(row.file).name for row in rows):
        raise Error.UNSAFE("names a file in another folder", file=path)
    return rows


def in_folder(folder: Path) -> list[Path]:
    """The packages, archives and lists of descriptions in a folder."""
    paths = sorted(path for path in folder.glob("*") if archive.is_archive(path) or path.name.startswith(TRANSLATION))
    if not paths:
        raise Error.MISSING_FILE("no packages (.deb, .tar.*) there", file=folder)
    return paths


def other_language(pair: tuple[str, str]) -> str:
    """The other language of a pair with English. Raises DragomanError where both languages are English, or neither
    is."""
    others = [code for code in pair if language_of(code) != "en"]
    if len(others) != 1:
        raise Error.UNSUPPORTED(
            f"{'-'.join(pair)}: one of the two must be English", "Debian's catalogues translate from English"
        )
    return locale_of(others[0])


# -- unpacking -----------------------------------------------------------------------------------------------------


class Page(NamedTuple):
    """A page in one language: where it stands, and its text."""

    package: str
    path: str
    data: bytes


class Unpacked(NamedTuple):
    """The result of `unpack`: packages with texts, catalogues, aligned paragraphs by kind."""

    packages: int
    catalogues: int
    pages: int
    paragraphs: Mapping[str, int]


def unpack(paths: Sequence[Path], pair: tuple[str, str], folder: Path) -> Unpacked:
    """Write the texts that packages have in both languages to FOLDER/files, which is made anew, and their licences to
    FOLDER/licences."""
    language = other_language(pair)
    unfinished = {name: folder / f"{name}.tmp" for name in (FILES, LICENCES)}
    with writing(folder):
        for path in unfinished.values():
            atomic_io.remove(path)
        unpacking = _Unpacking(language, unfinished[FILES])
        with Progress("unpacking", total=len(paths)) as bar:
            for path in sorted(paths, key=lambda path: path.name):
                if path.name.startswith(TRANSLATION):
                    unpacking.descriptions(path)
                else:
                    unpacking.archive(path)
                bar.advance()
        unpacking.align()
        if not unpacking.packages:
            raise Error.EMPTY(f"no text in {language} in these {len(paths)} packages", file=folder)
        unpacking.write_licences(unfinished[LICENCES])
        for name, path in unfinished.items():
            atomic_io.remove(folder / name)
            atomic_io.rename(path, folder / name)
    return Unpacked(len(unpacking.packages), unpacking.catalogues, unpacking.pages, dict(unpacking.paragraphs))


_PAGES = (
    ("help", re.compile(r"usr/share/help/(?P<lang>[^/]+)/(?P<page>.+\.(?:page|docbook|xml))")),
    ("libreoffice", re.compile(r"usr/share/libreoffice/help/(?P<lang>[^/]+)/text/(?P<page>.+\.html)")),
    ("help", re.compile(r"usr/share/doc/HTML/(?P<lang>[^/]+)/(?P<page>.+\.docbook)")),
    ("manual", re.compile(r"usr/share/man/(?:(?P<lang>[^/]+)/)?(?P<page>man[^/]+/.+)\.gz")),
)
"""Pages by their kind, with their language and their name; a manual without a language is English."""
_ANY_LANGUAGE = re.compile(r"(?:^|[/.])[a-z]{2}(?:[-_][A-Za-z]+)?(?=[/.])")
_ENTITIES = re.compile(r"usr/share/kf5/kdoctools/customization/(?:([\w@]+)/)?(?:entities/)?[^/]+\.entities")
_LETTER = re.compile(r"[^\W\d_]")


class _Unpacking:
    def __init__(self, language: str, folder: Path) -> None:
        self.language, self.folder = language, folder
        self.spellings = spellings(language)
        self.english = spellings("en") | {"c"}
        self.pages_by_name: dict[tuple[str, str], dict[str, Page]] = defaultdict(dict)  # (kind, page): language: page
        self.entities: dict[str, dict[str, str]] = {"en": {}, language: {}}
        self.licences: dict[str, bytes] = {}
        self.described: dict[str, dict[str, tuple[str, Paragraphs]]] = {}
        self.packages: set[str] = set()
        self.catalogues = self.pages = 0
        self.paragraphs: dict[str, int] = defaultdict(int)

    def archive(self, path: Path) -> None:
        """Read the wanted files of a package or of an archive of sources."""
        package = path.name.partition("_")[0]
        is_source = path.suffix != ".deb"
        done: set[str] = set()
        handbook = _is_handbook(package)

        def is_read(name: str) -> bool:
            return self._role(name, handbook) != _NOTHING or self._is_licence(name, package)

        for name, data in archive.files(path, is_read):
            if self._is_licence(name, package):
                self.licences[package] = data
                continue
            role, language, page = self._role(name, handbook)
            if role == "catalogue" and name.removesuffix(".po") + ".mo" in done:
                continue  # the same one, not yet compiled
            done.add(name)
            if role == "catalogue":
                self.catalogues += 1
                inner = name.partition("/")[2] if is_source else name
                self._write(package, inner, data)
            elif role == "entities":
                text = data.decode("utf-8", "replace")
                for code in (language,) if language else ("en", self.language):
                    self.entities[code].update(parallel_pages.entities(text))
            else:
                self.pages_by_name[role, page].setdefault(language, Page(package, name, data))

    def _role(self, name: str, handbook: bool) -> tuple[str, str, str]:
        """The part of a file: its kind, its language and the name of its page; none where it is not read."""
        suffix = PurePosixPath(name).suffix
        if suffix in (".mo", ".po"):
            return ("catalogue", self.language, "") if self._is_in(name, self.spellings) else _NOTHING
        if match := _ENTITIES.fullmatch(name):
            code = self._code(match[1]) if match[1] and match[1] != "entities" else ""
            return ("entities", code, "") if code or match[1] in (None, "entities") else _NOTHING
        for kind, pattern in _PAGES:
            if match := pattern.fullmatch(name):
                code = self._code(match["lang"]) if match["lang"] else "en"
                return (kind, code, match["page"]) if code else _NOTHING
        if handbook and suffix in (".html", ".xhtml"):
            for code, own in ((self.language, self.spellings), ("en", self.english)):
                if (page := _unmarked(name, own)) != name:
                    return "handbook", code, page
            return _NOTHING if _ANY_LANGUAGE.search(name) else ("handbook", "en", name)
        return _NOTHING

    def _code(self, spelled: str) -> str:
        """The language that a folder is called after, of the two; "" if it is another one."""
        spelled = _normal(spelled)
        return self.language if spelled in self.spellings else "en" if spelled in self.english else ""

    def _is_in(self, name: str, own: frozenset[str]) -> bool:
        """True if a folder, or the end of the file's name, says the language."""
        path = PurePosixPath(name)
        stem = _normal(path.stem)
        return (
            any(_normal(part) in own for part in path.parts[:-1])
            or stem in own
            or any(stem.endswith((f"-{code}", f".{code}")) for code in own)
        )

    def _is_licence(self, name: str, package: str) -> bool:
        return (
            name == f"usr/share/doc/{package}/copyright"
            or name.endswith("/debian/copyright")
            or name == "debian/copyright"
        )

    def _write(self, package: str, name: str, data: bytes) -> None:
        target = self.folder / package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        self.packages.add(package)

    def descriptions(self, path: Path) -> None:
        """Read a file of descriptions of packages."""
        code = path.name.removeprefix(TRANSLATION).partition(".")[0]
        try:
            text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode("utf-8")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise Error.DAMAGED(f"is cut off or damaged ({error})", "get it again", file=path) from error
        side = "en" if code == "en" else self.language if _normal(code) in self.spellings else ""
        self.described.setdefault(side, {}).update(_descriptions(text))

    def align(self) -> None:
        """Write the paragraphs of pages that are there in both languages, a catalogue for each package and kind."""
        entries: dict[tuple[str, str], dict[str, tuple[str, str]]] = defaultdict(dict)
        with Progress("aligning pages", total=len(self.pages_by_name)) as bar:
            for (kind, page), sides in sorted(self.pages_by_name.items()):
                bar.advance()
                if "en" not in sides or self.language not in sides:
                    continue
                into = entries[sides[self.language].package, kind]
                self.pages += 1
                for text, translation in self._aligned(kind, sides["en"], sides[self.language]):
                    if _LETTER.search(text) and _LETTER.search(translation):
                        into.setdefault(text, (translation, page))
        own, others = self.described.get("en", {}), self.described.get(self.language, {})
        for name, text, translation in _described(own, others):
            if text != translation and _LETTER.search(text) and _LETTER.search(translation):
                entries["descriptions", "descriptions"].setdefault(text, (translation, name))
        for (package, kind), pairs in sorted(entries.items()):
            if pairs:
                self.paragraphs[kind] += len(pairs)
                self._write(package, f"{kind}.{self.language}.po", _catalogue(pairs, self.language).encode())

    def write_licences(self, folder: Path) -> None:
        """Write the copyright files of the packages that have texts."""
        folder.mkdir(parents=True)
        for package in sorted(self.packages & self.licences.keys()):
            (folder / package).write_bytes(self.licences[package])

    def _aligned(self, kind: str, source: Page, target: Page) -> Iterator[tuple[str, str]]:
        """The paragraphs of two pages that translate each other."""
        texts = [self._text(page) for page in (source, target)]
        if kind == "libreoffice":  # its paragraphs have names
            own, others = (dict(libreoffice_help.paragraphs(text)) for text in texts)
            for name in [name for name in own if name in others]:
                if own[name].text != others[name].text:
                    yield own[name].text, others[name].text
            return
        if kind == "manual":
            blocks = [parallel_pages.roff(text) for text in texts]
        else:
            codes = ("en", self.language)
            blocks = [parallel_pages.markup(text, self.entities[code]) for text, code in zip(texts, codes, strict=True)]
        yield from parallel_pages.pairs(*blocks)

    def _text(self, page: Page) -> str:
        try:
            data = gzip.decompress(page.data) if page.path.endswith(".gz") else page.data
        except (OSError, EOFError, zlib.error) as error:
            raise Error.DAMAGED(f"its {page.path} is damaged: {error}", file=page.package) from error
        return data.decode("utf-8", "replace")


_NOTHING = ("", "", "")


def _normal(spelled: str) -> str:
    return spelled.lower().replace("_", "-")


def spellings(code: str) -> frozenset[str]:
    """Names that the folders of packages have for a language: lower case, with hyphens.

    >>> sorted(spellings("pt_BR")), sorted(spellings("de")), sorted(spellings("zh_CN"))
    (['pt-br'], ['de', 'de-de'], ['zh-cn', 'zh-hans', 'zh-hans-cn'])
    """
    normal = _normal(code)
    return frozenset({normal, *_SPELLINGS.get(normal, (f"{normal}-{normal}",) if normal.isalpha() else ())})


_SPELLINGS = {
    "en": ("en-us",), "zh-cn": ("zh-hans", "zh-hans-cn"), "zh-tw": ("zh-hant", "zh-hant-tw"), "pt-br": (),
    "sr@latin": ("sr-latn", "sr@latn"), "nb": ("nb-no", "no"), "cs": ("cs-cz",), "da": ("da-dk",), "sv": ("sv-se",),
    "ja": ("ja-jp",), "ko": ("ko-kr",), "uk": ("uk-ua",), "el": ("el-gr",), "he": ("he-il",), "sl": ("sl-si",),
    "et": ("et-ee",), "fa": ("fa-ir",), "hi": ("hi-in",), "eu": ("eu-es",), "gl": ("gl-es",), "ca": ("ca-es",),
    "ga": ("ga-ie",), "cy": ("cy-gb",), "sr": ("sr-rs",), "vi": ("vi-vn",), "be": ("be-by",), "kk": ("kk-kz",),
}  # fmt: skip
"""Spellings of a language but its code and, as in de-DE, its code as a country's."""


def _unmarked(name: str, own: frozenset[str]) -> str:
    """A path without what says the language: a folder or an ending of its own, or the end of a folder's name.

    >>> _unmarked("doc/guide-de/de/ch1.de.html", frozenset({"de"}))
    'doc/guide/ch1.html'
    """
    parts = []
    for part in name.split("/"):
        bare = ".".join(piece for piece in part.split(".") if _normal(piece) not in own)
        ending = next((code for code in own if "." not in bare and _normal(bare).endswith(f"-{code}")), None)
        parts.append(bare if ending is None else bare[: -len(ending) - 1])
    return "/".join(part for part in parts if part)


def _is_handbook(package: str) -> bool:
    """True for the packages whose HTML is read."""
    names = (name.removesuffix("-{lang}") for name in table().get("handbooks", []))
    return any(package == name or package.startswith(f"{name}-") for name in names)


Paragraphs = list[list[str]]
"""The first line of a description and its paragraphs; of each the text, the items of a list, lines that stand alone."""

_ITEM = re.compile(r"( +)(?:[-*+•o]|\d{1,2}[.)]) +(?=\S)")


def _descriptions(text: str) -> Iterator[tuple[str, tuple[str, Paragraphs]]]:
    """(checksum of the English text, (package, paragraphs)) of each description."""
    for stanza in text.split("\n\n"):
        package = checksum = ""
        paragraphs: Paragraphs = []
        lines: list[str] = []
        for line in stanza.split("\n"):
            if line.startswith("Package: "):
                package = line[9:]
            elif line.startswith("Description-md5: "):
                checksum = line[17:]
            elif line.startswith("Description-"):
                paragraphs = [[line.partition(": ")[2]]]
            elif line == " .":
                paragraphs.append(list(_blocks(lines)))
                lines = []
            else:
                lines.append(line)
        if checksum:
            yield checksum, (package, [*paragraphs, list(_blocks(lines))])


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """The texts of a paragraph: lines after one space are one text, an item goes on where lines are indented."""
    block: list[str] = []
    own, is_item = 0, False  # the spaces before the first line of the text
    for line in lines:
        item, spaces = _ITEM.match(line), len(line) - len(line.lstrip())
        if item or not (spaces >= own if is_item else spaces == own == 1):
            if block:
                yield " ".join(block)
            block, own, is_item = [], spaces, item is not None
        block += (line[item.end() :] if item else line).split()
    if block:
        yield " ".join(block)


def _described(
    own: Mapping[str, tuple[str, Paragraphs]], others: Mapping[str, tuple[str, Paragraphs]]
) -> Iterator[tuple[str, str, str]]:
    """(package, text, its translation) of descriptions, where both have as many paragraphs, and those as many items."""
    for checksum in sorted(own.keys() & others.keys(), key=lambda checksum: (own[checksum][0], checksum)):
        package, paragraphs = own[checksum]
        translations = others[checksum][1]
        if len(paragraphs) != len(translations):
            paragraphs, translations = paragraphs[:1], translations[:1]
        for blocks, theirs in zip(paragraphs, translations, strict=True):
            if len(blocks) == len(theirs):
                for text, translation in zip(blocks, theirs, strict=True):
                    yield package, text, translation


def _catalogue(pairs: Mapping[str, tuple[str, str]], language: str) -> str:
    """A gettext catalogue; the place of a text stands in a comment."""
    head = f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: {language}\\n"\n'
    entries = (
        f"\n#: {place}\nmsgid {_quoted(text)}\nmsgstr {_quoted(translation)}\n"
        for text, (translation, place) in pairs.items()
    )
    return head + "".join(entries)


def _quoted(text: str) -> str:
    return json.dumps("".join(char if char.isprintable() else " " for char in text), ensure_ascii=False)


KINDS = ("manual", "help", "handbook", "libreoffice", "descriptions")
"""Names of the catalogues that `unpack` makes of aligned pages; all others are of programs."""


def kind_of(path: str) -> str:
    """The kind of a file that `unpack` has written, by its path in the folder.

    >>> kind_of("dpkg/manual.de.po"), kind_of("dpkg/usr/share/locale/de/LC_MESSAGES/dpkg.mo")
    ('manual', 'catalogue')
    """
    name = PurePosixPath(path).name.partition(".")[0]
    return name if name in KINDS and path.count("/") == 1 else "catalogue"


def licence(folder: Path, package: str) -> str:
    """The licence of a package that was unpacked into FOLDER."""
    path = folder / LICENCES / package
    return licence_of(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else NO_LICENCE


def licence_of(copyright_text: str) -> str:
    """The licence of most files of a package by its machine-readable copyright file.

    >>> licence_of("Format: https://...\\n\\nFiles: *\\nCopyright: 2020 A\\nLicense: GPL-2+\\n")
    'GPL-2+'
    """
    match = re.search(r"^Files:\s*\*\s*$(?:\n(?!\n).*)*?\n[Ll]icense:[ \t]*(\S.*)$", copyright_text, re.MULTILINE)
    return match[1].strip() if match else NO_LICENCE
