"""`dragoman --version --verbose`: this machine and what is installed on it, for reports of bugs."""

import platform
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata

from dragoman.errors import DragomanError
from dragoman.version import __version__, commit, folder_of

GIB = 2**30
_REQUIREMENT = re.compile(r"^([\w.-]+).*extra == [\"']([\w-]+)[\"']")


def lines() -> Iterator[str]:
    """One line for each thing that a bug may depend on.

    A part that fails is a line with its error: a broken installation is what many reports are about. So PyTorch and
    what needs it are imported by their parts.
    """
    yield f"dragoman {__version__}" + (f", commit {commit()}" if commit() else "")
    yield f"Python {platform.python_version()}, {platform.platform()}, {sys.getfilesystemencoding()} names"
    for part in (_processor, _torch, _kernels, _extras, _folders):
        try:
            yield from part()
        except Exception as error:
            yield f"{part.__name__.lstrip('_')}: {type(error).__name__}: {' '.join(str(error).split())}"


def _processor() -> Iterator[str]:
    import psutil
    import torch

    from dragoman.device import cpu_capabilities, machine_name

    memory = psutil.virtual_memory()
    yield f"processor: {machine_name(torch.device('cpu'))}, memory {memory.total / GIB:.1f} GiB"
    units = sorted(name for name, is_there in cpu_capabilities().items() if is_there is True)
    yield f"units: {' '.join(units) or 'not known to this PyTorch'}"


def _torch() -> Iterator[str]:
    import torch

    yield f"torch {torch.__version__}, {torch.get_num_threads()} threads, {_gpu()}"


def _gpu() -> str:
    from dragoman.device import machine_name, pick_device

    try:
        device = pick_device("auto")
    except (DragomanError, RuntimeError) as error:
        return f"no GPU: {error}"
    return "no GPU" if device.type == "cpu" else f"GPU {machine_name(device)}"


def _kernels() -> Iterator[str]:
    from dragoman.backends.c_library import cache_folder, compiler_command

    compiler = compiler_command()
    is_there = shutil.which(compiler[0])
    yield f"C compiler: {shlex.join(compiler) if is_there else f'no {compiler[0]}: kernels in C are not used'}"
    yield f"compiled kernels: {cache_folder() or 'in no folder, made anew by each process'}"


def _folders() -> Iterator[str]:
    yield f"recipes: {folder_of('recipes')}"
    yield f"temporary files: {tempfile.gettempdir()}"


def _extras() -> Iterator[str]:
    """Each extra of Dragoman: the versions of its packages, or what to install."""
    packages: dict[str, list[str]] = {}
    for requirement in metadata.requires("dragoman") or ():
        if (match := _REQUIREMENT.match(requirement)) and match[2] != "dev":
            packages.setdefault(match[2], []).append(match[1])
    for extra, names in sorted(packages.items()):
        versions = {name: _version(name) for name in names}
        missing = [name for name, version in versions.items() if version is None]
        if missing:
            yield f"extra {extra}: without {', '.join(missing)} (pip install 'dragoman[{extra}]')"
        else:
            yield f"extra {extra}: {', '.join(f'{name} {version}' for name, version in versions.items())}"


def _version(package: str) -> str | None:
    """The version that the package's files tell, without importing it; None where there are none to read."""
    try:
        return metadata.version(package)
    except (ImportError, OSError, ValueError, KeyError):  # not there, or damaged
        return None
