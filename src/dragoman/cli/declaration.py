"""The declaration of a command: its module without what its functions do.

To read arguments, to show help and to complete a word takes the signatures of a command's functions, and what they
name. This much of a module is taken from its syntax: a typing error need not wait until PyTorch is loaded. The module
itself is imported when a function is called.
"""

import ast
import gc
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def source_of(module: str) -> str:
    """The code of a module of this package, which is not imported."""
    return Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")


def declared(module: str) -> SimpleNamespace:
    """The `app`, the `Command` or the function of its name that a module of this package has, and what these name.

    The functions that are commands have their signatures and docstrings. Called, they import the module and call the
    function there.
    """
    tree = ast.parse(source_of(module))
    needed, kept = {"app", "Command", module}, []
    for node in reversed(tree.body):  # what is named stands above
        if isinstance(node, ast.FunctionDef) and (node.name == module or _names(node.decorator_list) & {"app"}):
            calls = ast.parse(f"return _call({node.name!r}, locals())").body
            node.body = [*([node.body[0]] if ast.get_docstring(node) else []), *calls]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in needed]
            if not node.names:
                continue
        elif not _bound(node) & needed:
            continue
        needed |= _names([node])
        kept.append(node)
    names = {"__name__": f"{__package__}.{module}", "__doc__": ast.get_docstring(tree), "_call": _caller(module)}
    exec(compile(ast.Module(kept[::-1], []), module, "exec"), names)  # noqa: S102 - code of this package
    return SimpleNamespace(**names)


def _names(nodes: list[Any]) -> set[str]:
    """The names that stand in some syntax."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement gives values to."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _caller(module: str) -> Any:
    """A function that imports a module, and calls a function of it."""

    def call(function: str, arguments: dict[str, Any]) -> Any:
        gc.disable()  # what is loaded stays: a fifth of the time would go into looking for garbage in it
        try:
            loaded = import_module(f"{__package__}.{module}")
        finally:
            gc.enable()
        gc.freeze()
        return getattr(loaded, function)(**arguments)

    return call
