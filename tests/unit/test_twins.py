"""The broken functions of the laboratory are those of the package but for their fault, so that none grows old."""

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.learn.bugs import BUGS

REWRITTEN = {
    "batches from long to short": 20,
    "the loss counts padding": 14,
    "the LSTM reads padding": 8,
}
"""Bugs whose fault is in how the function is written, and the lines in which they differ at most."""
FAULT_LINES = 6
"""Lines, taken out or put in, of any other fault."""


def lines_of(function: Callable[..., Any]) -> list[str]:
    """The statements of a function, one layout for all, without annotations, decorators and its docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list, tree.returns = [], None
    for argument in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]:
        argument.annotation = None
    tree.body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    return ast.unparse(tree).splitlines()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_broken_function_is_the_sound_one_but_for_its_fault(bug: Any) -> None:
    compared = difflib.ndiff(lines_of(bug.sound), lines_of(bug.broken))
    differing = [line for line in compared if line[:1] in "+-"]
    assert 0 < len(differing) <= REWRITTEN.get(bug.name, FAULT_LINES), "\n".join(differing)
