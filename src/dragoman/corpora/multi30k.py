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
        found = hashlib.sha256(gzip.decompress(data)).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise Error.DAMAGED(" is not intact gzip data", remedy, file=where) from error
    if found != SHA256[name]:
        raise Error.CHANGED(
            f" is not the expected text (SHA-256 {found[:12]}, not {SHA256[name][:12]})", remedy, file=where
        )


SHA256 = {
    "test_2016_flickr.cs": "45adb85f688de8407fddcbe1b36dca15d12aab868149b337e2576f2d6d2ff8d8",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "test_2017_flickr.de": "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    "test_2017_flickr.en": "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    "test_2017_flickr.fr": "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    "test_2017_mscoco.de": "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22",
    "test_2017_mscoco.en": "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2",
    "test_2017_mscoco.fr": "39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0",
    "train.cs": "2be68b38c8d586ff4f54eb13cc6e1baaaa053695b3f070d3038303a47f2268da",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "val.cs": "d53827e469b0a1ca8d57e9e26b2b64c4bc4b33f5479c7b03ae87ae5c882c3e33",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
}
"""SHA-256 of the uncompressed text of each file."""
