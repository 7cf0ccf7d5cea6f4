"""Multi30k, the image captions that most small translation results are reported on: 29,000 pairs, 4 languages.

The files are those of `data/task1/raw` in github.com/multi30k/dataset (Elliott et al. 2016, 2017; Barrault et al.
2018). They are for non-commercial research and education, so they are fetched, never shipped. The checksums are those
of the text: how it was compressed does not matter.
"""

import gzip
import hashlib
import http.client
import urllib.request
import zlib
from pathlib import Path

from dragoman.errors import Error
from dragoman.progress import Progress
from dragoman.runs import atomic_io

URL = "https://raw.githubusercontent.com/multi30k/dataset/{revision}/data/task1/raw/{name}"
REVISIONS = ("a3d2e0d", "master")
"""The second in case that the first cannot be named any more; the checksums tell whether it still has these files."""

TIMEOUT_S = 60.0

_TABLE = Path(__file__).with_suffix(".sha256").read_text(encoding="utf-8")
SHA256 = {name: digest for digest, name in map(str.split, _TABLE.splitlines())}
"""SHA-256 of the uncompressed text of each file."""


def fetch(directory: Path, from_dir: Path | None = None) -> list[Path]:
    """The 18 files as `directory`/NAME.gz, copied from `from_dir` (or its multi30k/ or data/task1/raw/), or downloaded.

    Every file is verified before it gets its name; files that are there already are verified and kept. Raises
    DragomanError when one is missing or is not the expected one, or when the download fails.
    """
    source = None if from_dir is None else _folder(from_dir)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        paths = []
        with Progress(f"multi30k into {directory}", total=len(SHA256)) as bar:
            for name in SHA256:
                paths.append(_fetch_one(name, directory, source))
                bar.advance()
    except OSError as error:
        raise Error.CANNOT_READ(f"{error.strerror or error}", file=error.filename or directory) from error
    return paths


def _fetch_one(name: str, directory: Path, source: Path | None) -> Path:
    path = directory / f"{name}.gz"
    if path.exists():
        _verify(name, path.read_bytes(), str(path), "move it away and fetch again")
        return path
    if source is None:
        data = _download(path.name)
        _verify(name, data, URL.format(revision=REVISIONS[0], name=path.name), "try again, or give its folder (`from`)")
    else:
        data = (source / path.name).read_bytes()
        _verify(name, data, str(source / path.name), "get it again from github.com/multi30k/dataset")
    with atomic_io.replaced(path) as unfinished:
        unfinished.write_bytes(data)
    return path


def _folder(given: Path) -> Path:
    """The folder at or under `given` that holds the files."""
    folders = [given, given / "multi30k", given / "data" / "task1" / "raw"]
    for folder in folders:
        missing = [name for name in SHA256 if not (folder / f"{name}.gz").is_file()]
        if not missing:
            return folder
        if len(missing) < len(SHA256):
            raise Error.MISSING_FILE(f" lacks {', '.join(f'{name}.gz' for name in missing)}", file=folder)
    raise Error.MISSING_FILE(f"no Multi30k files (train.en.gz and so on) in {', '.join(map(str, folders))}")


def _download(file_name: str) -> bytes:
    for revision in REVISIONS:
        url = URL.format(revision=revision, name=file_name)
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                data: bytes = response.read()
                return data
        except (OSError, http.client.HTTPException) as error:
            if getattr(error, "code", None) == 404 and revision != REVISIONS[-1]:
                continue
            raise Error.NO_NETWORK(
                f"cannot be downloaded ({getattr(error, 'reason', None) or error})",
                "with a copy of github.com/multi30k/dataset on this machine, give its folder (`from`)",
                file=url,
            ) from error
    raise AssertionError("no revision to try")


def _verify(name: str, data: bytes, where: str, remedy: str) -> None:
    try:
        digest = hashlib.sha256(gzip.decompress(data)).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise Error.DAMAGED(" is not intact gzip data", remedy, file=where) from error
    if digest != SHA256[name]:
        raise Error.CHANGED(
            f" is not the expected text (SHA-256 {digest[:12]}, not {SHA256[name][:12]})", remedy, file=where
        )
