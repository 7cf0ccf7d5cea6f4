"""Fetching Multi30k, with three made-up files in the place of the real ones."""

import gzip
import hashlib
import io
import urllib.error
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.corpora import multi30k
from dragoman.errors import Error

TEXTS = {"train.de": b"Ein Igel.\n", "train.en": b"A hedgehog.\n", "val.en": b"A snail.\n"}
NAMES = [f"{name}.gz" for name in TEXTS]


@pytest.fixture(autouse=True)
def made_up_files(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = {name: hashlib.sha256(text).hexdigest() for name, text in TEXTS.items()}
    monkeypatch.setattr(multi30k, "SHA256", sums)

    def no_network(url: str, timeout: float) -> io.BytesIO:
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr("urllib.request.urlopen", no_network)


def fill(folder: Path, names: list[str] = NAMES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(gzip.compress(TEXTS[name.removesuffix(".gz")], mtime=1))
    return folder


def test_the_real_table() -> None:
    table = Path(multi30k.__file__).with_suffix(".sha256").read_text(encoding="utf-8")
    assert table.count(".de\n") == table.count(".en\n") == table.count(".fr\n") == 5
    assert table.count(".cs\n") == 3


@pytest.mark.parametrize("below", ["", "multi30k", "data/task1/raw"])
def test_copies_from_a_folder(tmp_path: Path, below: str) -> None:
    fill(tmp_path / "copy" / below)
    paths = multi30k.fetch(tmp_path / "new" / "multi30k", tmp_path / "copy")
    assert [path.name for path in paths] == NAMES
    assert {path.name: gzip.decompress(path.read_bytes()) for path in paths} == {f"{k}.gz": v for k, v in TEXTS.items()}
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(NAMES)
    assert multi30k.fetch(tmp_path / "new" / "multi30k", tmp_path / "copy") == paths


def test_incomplete_or_wrong_folder(tmp_path: Path) -> None:
    with raises_error(Error.MISSING_FILE):
        multi30k.fetch(tmp_path / "new", tmp_path)
    fill(tmp_path, NAMES[:2])
    with raises_error(Error.MISSING_FILE):
        multi30k.fetch(tmp_path / "new", tmp_path)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (gzip.compress(b"A slug.\n", mtime=0), (Error.CHANGED, "val.en.gz")),
        (gzip.compress(b"A snail.\n", mtime=0)[:-9], (Error.DAMAGED, "val.en.gz")),
        (b"A snail.\n", (Error.DAMAGED, "val.en.gz")),
    ],
)
def test_a_wrong_file_gets_no_name(tmp_path: Path, content: bytes, error: tuple[Any, ...]) -> None:
    copy = fill(tmp_path / "copy")
    (copy / "val.en.gz").write_bytes(content)
    with raises_error(*error):
        multi30k.fetch(tmp_path / "new", copy)
    assert not (tmp_path / "new" / "val.en.gz").exists()
    with raises_error(*error):
        multi30k.fetch(copy)


def test_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        if multi30k.REVISIONS[0] in url:
            raise urllib.error.HTTPError(url, 404, "Not Found", {}, None)  # type: ignore[arg-type]
        return io.BytesIO(gzip.compress(TEXTS[url.rsplit("/", 1)[1].removesuffix(".gz")]))

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    assert [path.name for path in multi30k.fetch(tmp_path)] == NAMES
    assert asked[1] == "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.de.gz"


def test_without_network(tmp_path: Path) -> None:
    with raises_error(Error.NO_NETWORK, "train.de.gz"):
        multi30k.fetch(tmp_path)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with raises_error(Error.CANNOT_READ, "file"):
        multi30k.fetch(tmp_path / "file")
