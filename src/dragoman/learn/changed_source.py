"""A function with one place of its source written otherwise: how a mistake or a bug is planted."""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function, without the indentation of the class that it may stand in."""
    return textwrap.dedent(inspect.getsource(inspect.unwrap(function)))


def changed(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """`function` with `new` in the place of `old`, which stands once in what follows its docstring."""
    return compiled(function, replaced(source_of(function), old, new))


def replaced(source: str, old: str, new: str) -> str:
    """The source of a function with another piece of code."""
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    first = definition.body[0]
    described = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    lines = source.splitlines(keepends=True)
    end = first.end_lineno if described else 0
    head, code = "".join(lines[:end]), "".join(lines[end:])
    assert code.count(old) == 1, f"{old!r} stands {code.count(old)} times in {definition.name}"
    return head + code.replace(old, new)


def compiled(function: Callable[..., Any], source: str) -> Callable[..., Any]:
    """`source`, a definition of that name, in the place where `function` stands: its module's names, its class.

    `super()` without arguments asks for a variable `__class__`, which Python makes within a class only; a function
    around the definition has it here.
    """
    plain = inspect.unwrap(function)
    owner = owner_of(plain)
    name = f"<changed {plain.__qualname__} {abs(hash(source)):x}>"
    text = f"def _around(__class__):\n{textwrap.indent(source, '    ')}\n    return {plain.__name__}\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # a traceback shows these lines
    found: dict[str, Any] = {}
    exec(compile(text, name, "exec"), plain.__globals__, found)
    made: Callable[..., Any] = found["_around"](owner)
    return made


def owner_of(function: Callable[..., Any]) -> Any:
    """The class in which a function is written; None for one of a module."""
    owner: Any = None
    for name in function.__qualname__.split(".")[:-1]:
        owner = function.__globals__[name] if owner is None else getattr(owner, name)
    return owner
