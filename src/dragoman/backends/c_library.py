"""C files of ours, compiled by the machine's own compiler when they are first needed, and kept for the user.

A file is plain C for plain pointers, called through `ctypes`: no build step, no headers of PyTorch, nothing to install.
What is compiled is kept in the user's cache, where others cannot write, under a name made from the source, the compiler
and the processor.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch

from dragoman.device import cpu_capabilities
from dragoman.progress import say

MACHINE = "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"
TIMEOUT = 60
"""Seconds that a compiler may take."""
FLAGS = ("-std=gnu11", "-O3", MACHINE, "-fno-math-errno", "-fno-trapping-math", "-fPIC")


def load(source: Path, flags: Sequence[str], otherwise: str) -> ctypes.CDLL | None:
    """The library of a C file; None where it cannot be compiled, and a message says so with what happens `otherwise`,
    which is slower."""
    compiler = compiler_command()
    if not shutil.which(compiler[0]):
        say(f"there is no C compiler ({compiler[0]}) here: {otherwise}, which is slower")
        return None
    try:
        return _compiled(source, compiler, [*FLAGS, *flags])
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines() or [str(error)]
        why = next((line for line in lines if "error" in line), lines[0])
        say(f"{shlex.join(compiler)} cannot compile {source.name} ({why}): {otherwise}, which is slower")
        return None


def shares_threads() -> bool:
    """True if code that this compiler makes with `-fopenmp` finds its threads in PyTorch's own OpenMP library: GCC's on
    Linux."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return sys.platform == "linux" and "Free Software Foundation" in _version(tuple(compiler_command()))
    return False


def compiler_command() -> list[str]:
    """The C compiler and its first arguments: `CC` of the environment, a path or words as `ccache gcc`, or `cc`."""
    compiler = os.environ.get("CC", "")
    return [compiler] if shutil.which(compiler) else shlex.split(compiler) or ["cc"]


def _compiled(source: Path, compiler: Sequence[str], flags: Sequence[str]) -> ctypes.CDLL:
    """The library from the cache, or compiled now and put there. It is linked without OpenMP's library."""
    folder = cache_folder()
    kept = folder / f"{source.stem}-{_fingerprint(source, compiler, flags)}.so" if folder else None
    if kept is not None and kept.exists() and _is_ours(kept):
        with contextlib.suppress(OSError):  # damaged: made anew
            return ctypes.CDLL(str(kept))
    with tempfile.TemporaryDirectory() as made:
        compiled, linked = Path(made, "c.o"), Path(made, "c.so")
        _run(*compiler, *flags, "-c", str(source), "-o", str(compiled))
        _run(*compiler, "-shared", str(compiled), "-o", str(linked), "-lm")
        if kept is not None:
            with contextlib.suppress(OSError):  # disk full or no permission: the next process compiles for itself
                _put(linked, kept)
        with contextlib.suppress(OSError):  # folders for temporary files are often mounted `noexec`
            return ctypes.CDLL(str(linked))
        return ctypes.CDLL(str(kept or linked))


def _run(*command: str) -> str:
    """The command's output. It reads nothing: what stands in standard input may be the lines to translate.

    Raises subprocess.SubprocessError if it fails or takes a minute."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
        return done.stdout
    except subprocess.TimeoutExpired as error:  # whose `stderr` is bytes
        raise subprocess.SubprocessError(f"it has not ended after {TIMEOUT} seconds") from error


def _fingerprint(source: Path, compiler: Sequence[str], flags: Sequence[str]) -> str:
    """Hash of everything that the compiled file depends on."""
    machine = [platform.machine(), sorted(cpu_capabilities().items()), compiler, flags, torch.__version__]
    made = repr([machine, _version(tuple(compiler))])
    return hashlib.sha256(source.read_bytes() + made.encode()).hexdigest()[:16]


@cache
def _version(compiler: tuple[str, ...]) -> str:
    return _run(*compiler, "--version")


def cache_folder() -> Path | None:
    """A folder where no other user can write, because its files are executed; None if there is none."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_ours(folder) else None
    except (OSError, RuntimeError):  # no home, or one that cannot be written to
        return None


def _is_ours(path: Path) -> bool:
    stat = path.stat()
    return stat.st_uid == os.getuid() and not stat.st_mode & 0o022


def _put(made: Path, kept: Path) -> None:
    """Copy atomically, for its owner alone: several processes may do so at once. What a full disk cut is removed."""
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        copy = Path(shutil.copyfile(made, Path(folder, kept.name)))
        copy.chmod(0o600)
        copy.replace(kept)
