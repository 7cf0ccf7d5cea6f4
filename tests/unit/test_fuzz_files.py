"""Files of every format with something wrong in them: translated, or refused in one line, and never anything else."""

import io
import random
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.formats.base import Item, Options, Unit
from dragoman.formats.document import FORMATS, Document, format_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLES = sorted(
    path
    for folder in ("formats", "documents")
    for path in (FIXTURES / folder).iterdir()
    if ".reversed" not in path.name
)
ODD = [bytes([byte]) for byte in b"\xff\x00\r<>&\\{}[]\"'`|\t"]
ODD += [
    text.encode()
    for text in (
        "\ufeff", "\n\n", "</", "<![CDATA[", "]]>", "&#55357;", "\\uD83D", "\\u12", "$$", "{{", "%>", "<?php", ":::",
        "[^1]:", "-->", "00:00:01,000 --> 00:00:00,000\n", "1\n", 'msgstr[1] "a"\n', "#, fuzzy\n", "<x id='1'/>",
        "+++\n", "<mrk mtype='seg' mid='1'/>", "{n, plural, one {a} other {", "\u2028\u00a0\U0001f600", "<pre>",
        "translate=no",
    )
]  # fmt: skip


def changed(rng: random.Random, data: bytes) -> bytes:
    """The bytes with some of them changed: taken out, put in, doubled, moved."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        stop = min(len(data), at + rng.choice([1, 1, 2, 8, 40]))
        piece = data[at:stop]
        match rng.randrange(5):
            case 0:
                data = data[:at] + data[stop:]
            case 1:
                data = data[:at] + rng.choice(ODD) + data[at:]
            case 2:
                data = data[:stop] + piece * rng.randint(1, 3) + data[stop:]
            case 3:
                place = rng.randrange(len(data) + 1)
                data = data[:place] + piece + data[place:]
            case 4:
                data = data[:at] + bytes(rng.randrange(256) for _ in piece) + data[stop:]
    return data


def changed_file(rng: random.Random, path: Path) -> bytes:
    """A file, or one of the parts of a package, with some bytes changed."""
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        return changed(rng, data)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        parts = [info for info in old.infolist() if info.filename.endswith((".xml", ".rels", ".xhtml", ".opf", ".ncx"))]
        one = rng.choice(parts)
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info, changed(rng, content) if info is one else content)
    return out.getvalue()


def translated(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
    return [
        None if unit.kept else tuple(
            re.sub(r"[^\W\d_]+", lambda word: word[0][::-1] + "x", item) if isinstance(item, str) else item
            for item in unit.items
        )
        for unit in units
    ]  # fmt: skip


def goes_through(name: str, data: bytes) -> bool:
    """True for a file that is translated; False for one that is refused in one line. What is written can be read."""
    options = Options(name, ("en", "de"), columns=("1",))
    try:
        document = Document(data, format_of(Path(name), data), options)
        list(document.texts())
        out = document.translated(translated)
    except DragomanError as error:
        return "\n" in str(error) and pytest.fail(str(error))
    again = Document(out, document.format, options)
    assert again.translated(lambda units: [None for _ in units]) == out
    list(again.texts())
    return True


def try_changed(path: Path, times: int, seed: int) -> None:
    rng = random.Random(f"{path.name} {seed}")
    for _ in range(times):
        data = changed_file(rng, path)
        try:
            goes_through(path.name, data)
        except Exception as error:
            raise AssertionError(f"{path.name}: {data[:2000]!r}") from error


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_changed_files_are_translated_or_refused(path: Path) -> None:
    try_changed(path, 8, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_many_changed_files_are_translated_or_refused(path: Path, seed: int) -> None:
    try_changed(path, 20 if path.stat().st_size > 5000 else 200, seed)


def test_samples_as_they_are_go_through() -> None:
    assert all(goes_through(path.name, path.read_bytes()) for path in SAMPLES)
    suffixes = {path.suffix for path in SAMPLES}
    assert {".docx", ".odt", ".xlsx", ".ods", ".epub"} <= suffixes
    plain = [kind for kind in FORMATS.values() if kind.parts_of is None and kind is not FORMATS["pdf"]]
    assert all(suffixes & set(kind.suffixes) for kind in plain)
