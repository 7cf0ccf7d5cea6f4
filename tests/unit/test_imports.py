"""Imports: a core module loads little of the package, and no modules import each other in a circle."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dragoman

ROOT = Path(dragoman.__file__).parent


@pytest.mark.parametrize(
    ("module", "most"), [("nn.attention", 6), ("models.transformer", 16), ("inference.search_translator", 45)]
)
def test_a_core_module_loads_few_files_of_the_package(module: str, most: int) -> None:
    code = f"import dragoman.{module}, sys; print(*(name for name in sys.modules if name.split('.')[0] == 'dragoman'))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(loaded) <= most, sorted(loaded)


def imports_on_loading(statements: list[ast.stmt]) -> Iterator[str]:
    """Names of modules, or of things in them, that are imported while a module is loaded, not later in a function."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Try):
            yield from imports_on_loading([*node.body, *(line for each in node.handlers for line in each.body)])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from imports_on_loading([*node.body, *node.orelse])


def graph() -> dict[str, set[str]]:
    """The modules of the package, and those that each imports while it is loaded."""
    paths = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    edges: dict[str, set[str]] = {}
    for name, path in modules.items():
        imported = list(imports_on_loading(ast.parse(path.read_text(encoding="utf-8")).body))
        parents = [target.rpartition(".")[0] for target in imported]
        edges[name] = {
            target if target in modules else parent
            for target, parent in zip(imported, parents, strict=True)
            if target in modules or parent in modules
        }
    return edges


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_a_circle_would_be_found() -> None:
    edges = graph()
    assert "dragoman.nn.masks" in edges["dragoman.models.transformer"]
    edges["dragoman.nn.masks"].add("dragoman.models.transformer")
    with pytest.raises(CycleError):
        TopologicalSorter(edges).prepare()
