"""`dragoman --version --verbose`: this machine and what is installed on it, for reports of bugs."""

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata

import psutil
import torch

from dragoman.device import cpu_capabilities, machine_name, pick_device
from dragoman.errors import DragomanError
from dragoman.version import __version__, commit, folder_of

GIB = 2**30
_REQUIREMENT = re.compile(r"^([\w.-]+).*extra == [\"']([\w-]+)[\"']")


def lines() -> Iterator[str]:
    """One line for each thing that a bug may depend on."""
    yield f"dragoman {__version__}" + (f", commit {commit()}" if commit() else "")
    yield f"Python {platform.python_version()}, {platform.platform()}, {sys.getfilesystemencoding()} names"
    memory = psutil.virtual_memory()
    yield f"processor: {machine_name(torch.device('cpu'))}, memory {memory.total / GIB:.1f} GiB"
    units = sorted(name for name, is_there in cpu_capabilities().items() if is_there is True)
    yield f"units: {' '.join(units) or 'not known to this PyTorch'}"
    yield f"torch {torch.__version__}, {torch.get_num_threads()} threads, {_gpu()}"
    yield f"C compiler: {shutil.which(os.environ.get('CC') or 'cc') or 'none: kernels in C are not used'}"
    yield from _extras()
    yield f"temporary files: {tempfile.gettempdir()}"
    yield f"recipes: {folder_of('recipes')}"


def _gpu() -> str:
    try:
        device = pick_device("auto")
    except (DragomanError, RuntimeError) as error:
        return f"no GPU: {error}"
    return "no GPU" if device.type == "cpu" else f"GPU {machine_name(device)}"


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
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
