"""Packages by name, from the package sources of this machine, through apt-get.

apt-get works with lists, a cache and a state of its own in one folder: nothing of the system is changed and nobody has
to be root. Sources of packages (`deb-src`) are looked up wherever the machine looks up packages.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from dragoman.errors import Error
from dragoman.runs import atomic_io

SOURCE = "src:"
"""The prefix of a source package's name."""


class Offer(NamedTuple):
    """A file that a package source has: of a package by its name, or of a source package as `src:NAME`."""

    package: str
    version: str
    file: str
    bytes: int
    sha256: str


class Apt:
    """apt-get in a folder of its own."""

    def __init__(self, folder: Path, languages: Sequence[str]) -> None:
        self.folder = folder = folder.resolve()
        for inner in ("lists/partial", "cache/archives/partial", "sources.list.d", "empty"):
            (folder / inner).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        self._copy_sources()
        self.options = [
            f"Dir::Etc::SourceList={folder}/sources.list",
            f"Dir::Etc::SourceParts={folder}/sources.list.d",
            f"Dir::State={folder}",
            f"Dir::State::Lists={folder}/lists",
            f"Dir::State::Status={folder}/status",
            f"Dir::Cache={folder}/cache",
            f"Acquire::Languages={','.join(languages) or 'none'}",
            "Acquire::GzipIndexes=false",
            "Acquire::Retries=3",
            "APT::Sandbox::User=root",
        ]

    def update(self) -> None:
        """Fetch the lists of packages. Raises DragomanError if there is no network."""
        _, problems = self._run("update")
        if not any((self.folder / "lists").glob("*_Packages")):
            raise Error.NO_NETWORK(
                f"apt-get fetches no list of packages: {problems[-1] if problems else 'no package source is set up'}",
                "look at the network and at the machine's package sources, or give a folder of packages (`from`)",
            )

    def translations(self, language: str) -> bytes:
        """The descriptions of all packages in a language, as the package sources have them."""
        paths = sorted((self.folder / "lists").glob(f"*_i18n_Translation-{language}"))
        return b"\n".join(path.read_bytes().strip() + b"\n" for path in paths)

    def offers(self, names: Iterable[str]) -> list[Offer]:
        """The files of these packages, in their newest versions; none of unknown ones."""
        binary = [name for name in names if not name.startswith(SOURCE)]
        offers = self._offers(["download", "--print-uris", *binary]) if binary else []
        for name in names:
            if name.startswith(SOURCE):
                bare = name.removeprefix(SOURCE)
                offers += self._offers(["source", "--download-only", "--print-uris", bare], name)
        return offers

    def _offers(self, arguments: list[str], source: str = "") -> list[Offer]:
        out, _ = self._run(*arguments)
        offers = []
        built = re.search(r"_(\S+)\.dsc ", out)  # the version of a source package, whose files may have another one
        for file, size, sha256 in re.findall(r"^'[^']*' (\S+) (\d+) SHA256:(\w+)$", out, re.MULTILINE):
            package, version = [*unquote(file).split("_"), ""][:2]
            if not source:
                offers.append(Offer(package, version, file, int(size), sha256))
            elif ".tar." in file and not file.endswith(".asc"):
                offers.append(Offer(source, built[1] if built else version, file, int(size), sha256))
        return offers

    def download(self, offers: Sequence[Offer], into: Path) -> list[str]:
        """Download files of some packages; what apt-get says against it."""
        names = [f"{offer.package}={offer.version}" for offer in offers if not offer.package.startswith(SOURCE)]
        sources = dict.fromkeys(
            offer.package.removeprefix(SOURCE) for offer in offers if offer.package.startswith(SOURCE)
        )
        problems = self._run("download", *names, at=into)[1] if names else []
        for name in sources:
            problems += self._run("source", "--download-only", name, at=into)[1]
        return problems

    def _run(self, *arguments: str, at: Path | None = None) -> tuple[str, list[str]]:
        """apt-get's output, and its errors."""
        settings = [word for option in self.options for word in ("-o", option)]
        done = _done(["apt-get", "-q", *settings, *arguments], at or self.folder)
        lines = done.stderr.splitlines()
        problems = [line[3:] for line in lines if line.startswith("E: ")]
        return done.stdout, problems or (lines[-1:] if done.returncode else [])

    def _copy_sources(self) -> None:
        """Write the machine's own package sources into the folder, with those of source packages."""
        words = ["apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"]
        places = dict(word.split("=", 1) for word in shlex.split(_done(words, self.folder).stdout) if "=" in word)
        named = [Path(places.get("LIST", "")), *sorted(Path(places.get("PARTS", "/nowhere")).glob("*"))]
        for path in named:
            if path.suffix in (".list", ".sources") and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                if path.suffix == ".list":
                    text += "\n" + "".join(
                        f"deb-src{line}\n" for line in re.findall(r"^deb(\s.*)$", text, re.MULTILINE)
                    )
                else:
                    text = re.sub(r"^Types:\s*deb\s*$", "Types: deb deb-src", text, flags=re.MULTILINE)
                atomic_io.write_text(self.folder / "sources.list.d" / path.name, text)


def _done(words: list[str], at: Path) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=at,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise Error.NOT_INSTALLED(
            f"{words[0]} is not on this machine, which is no Debian or Ubuntu",
            "download the packages on one that is, and give their folder (`from`)",
        ) from error
