"""LibreOffice's help in some 35 languages: parallel paragraphs of software documentation, with their inline markup.

Debian's packages `libreoffice-help-XX` (MPL-2.0) hold one HTML page a topic; paragraphs of equal page and id translate
each other. A page is in one split alone, so that no test paragraph has its neighbours in training.

    apt-get download libreoffice-help-en-us libreoffice-help-eu
    for package in *.deb; do dpkg-deb -x $package help; done
    dragoman data libreoffice-help --from help --src en-US --tgt eu
"""

import gzip
import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import Error, writing
from dragoman.formats.html import BLOCK
from dragoman.formats.html_pieces import VOID, Tag, scan
from dragoman.languages.codes import short_tag, tag_of
from dragoman.languages.invisible import in_one_line
from dragoman.progress import Progress
from dragoman.runs import atomic_io

SPLITS = {"test": 4, "valid": 6}
"""Percent of the pages."""

_PARAGRAPHS = ("p", "h1", "h2", "h3", "h4", "h5", "h6")


class Paragraph(NamedTuple):
    """A paragraph of a page: its text, and its text with markup."""

    text: str
    markup: str


def write(from_dir: Path, src: str, tgt: str, to: Path) -> dict[str, int]:
    """Write SPLIT.LANG.gz, SPLIT.markup.LANG.gz and SPLIT.ids.gz for each split; the number of pairs of each.

    Raises DragomanError where a language's pages are not there.
    """
    folders = {language: _folder(from_dir, language) for language in (src, tgt)}
    pages = sorted(path.relative_to(folders[src]).as_posix() for path in folders[src].rglob("*.html"))
    written: set[tuple[str, str]] = set()  # many a paragraph stands on several pages: the first one has it
    rows: dict[str, list[tuple[str, Paragraph, Paragraph]]] = {"train": [], "valid": [], "test": []}
    with Progress("reading pages", total=len(pages)) as bar:
        for page in pages:
            bar.advance()
            if not (folders[tgt] / page).is_file():
                continue
            own, theirs = (dict(paragraphs(_read(folders[language] / page))) for language in (src, tgt))
            for name, paragraph in own.items():
                other = theirs.get(name)
                if other is None or other.text == paragraph.text:
                    continue
                if (paragraph.text, other.text) not in written:
                    written.add((paragraph.text, other.text))
                    rows[_split(page)].append((f"{page}\t{name}", paragraph, other))
    if not rows["train"]:
        raise Error.EMPTY(f"no paragraph of {src} has a translation in {tgt}", file=from_dir)
    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
        for split, pairs in rows.items():
            _write(to / f"{split}.ids.gz", [name for name, _, _ in pairs])
            for code, side in zip(codes_of(src, tgt), (1, 2), strict=True):
                _write(to / f"{split}.{code}.gz", [row[side].text for row in pairs])  # type: ignore[union-attr]
                _write(to / f"{split}.markup.{code}.gz", [row[side].markup for row in pairs])  # type: ignore[union-attr]
    return {split: len(pairs) for split, pairs in rows.items()}


def codes_of(src: str, tgt: str) -> tuple[str, str]:
    """The codes that the files of two languages are named by. Raises DragomanError for one language.

    >>> codes_of("en-US", "de"), codes_of("zh-CN", "zh-TW"), codes_of("pt", "pt-BR"), codes_of("en-US", "en-GB")
    (('en', 'de'), ('zh', 'zh-TW'), ('pt', 'pt-BR'), ('en', 'en-GB'))
    """
    for code in (short_tag, tag_of):
        if code(src) != code(tgt):
            return code(src), code(tgt)
    raise Error.WRONG_OPTION(f"{src} and {tgt} are one language", "name two: zh-CN and zh-TW")


def paragraphs(page: str) -> Iterator[tuple[str, Paragraph]]:
    """(id, paragraph) of the paragraphs of a page that have an id and text; the first of an id counts.

    What is for one operating system alone (`class="MAC"`) is left out, as it is for a reader on another one.
    """
    seen: set[str] = set()
    name, opened, parts = "", "", list[str]()
    skipped = 0
    for piece in scan(page):
        if isinstance(piece, tuple):
            if name and not skipped:
                parts.append(page[slice(*piece)])
            continue
        if piece.name in _PARAGRAPHS:
            if name and piece.name == opened and not piece.opens:
                paragraph = _paragraph("".join(parts))
                if paragraph.text and name not in seen:
                    seen.add(name)
                    yield name, paragraph
            name = (piece.get("id") or "") if piece.opens else ""
            opened, parts, skipped = piece.name, [], 0
        elif not name:
            continue
        elif skipped or (piece.name == "span" and piece.opens and piece.get("class") == "MAC"):
            skipped += (1 if piece.opens else -1) if piece.name == "span" else 0
        elif piece.name and piece.name not in BLOCK:
            parts.append(_shortened(piece))


def _shortened(tag: Tag) -> str:
    """A tag with its class alone; none for anchors, switches and what has no meaning."""
    kind = tag.get("class") if tag.opens else ""
    if tag.name in VOID:
        return f"<{tag.name}/>"
    if not tag.opens:
        return f"</{tag.name}>"
    return f'<{tag.name} class="{kind}">' if kind else f"<{tag.name}>"


def _paragraph(markup: str) -> Paragraph:
    """A paragraph of one line, without empty pairs and without spans that carry no information."""
    for _ in range(4):
        markup = re.sub(r"<(\w+)(?: [^<>]*)?></\1>", "", markup)
    markup = in_one_line(_without_bare_spans(markup))
    return Paragraph(in_one_line(html.unescape(re.sub(r"<[^<>]*>", "", markup))), markup)


def _without_bare_spans(markup: str) -> str:
    out, held = "", list[bool]()
    for piece in re.split(r"(<span>|<span [^<>]*>|</span>)", markup):
        if piece == "<span>" or piece.startswith(('<span class="switch', '<span class="WIN', '<span class="UNIX')):
            held.append(False)
        elif piece.startswith("<span"):
            held.append(True)
            out += piece
        elif piece == "</span>" and held:
            out += piece if held.pop() else ""
        else:
            out += piece
    return out


def _split(page: str) -> str:
    number = int.from_bytes(hashlib.sha256(page.encode()).digest()[:8]) % 100
    if number < SPLITS["test"]:
        return "test"
    return "valid" if number < sum(SPLITS.values()) else "train"


def _folder(from_dir: Path, language: str) -> Path:
    """The folder of a language's pages."""
    unpacked = "usr/share/libreoffice/help"
    for path in (from_dir, from_dir / unpacked, *sorted(from_dir.glob(f"*/{unpacked}"))):
        if (path / language / "text").is_dir():
            return path / language / "text"
    raise Error.MISSING_FILE(
        f"no pages of {language} there",
        f"unpack the package libreoffice-help-{language.lower()} into it (dpkg-deb -x PACKAGE.deb FOLDER)",
        file=from_dir,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Error.CANNOT_READ(f"cannot be read: {error}", file=path) from error


def _write(path: Path, lines: list[str]) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    atomic_io.replace_bytes(path, gzip.compress(data, mtime=0))
