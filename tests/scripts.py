"""Scripts of the repository that stand outside of the package, as modules."""

import importlib.util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def script(path: str) -> Any:
    """The module of a script, by its path from the root of the repository."""
    spec = importlib.util.spec_from_file_location(path.removesuffix(".py").replace("/", "_"), ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
