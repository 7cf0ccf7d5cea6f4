"""Copies of a function with one thing changed in its code: an operator, a number, a name, a step left out.

The values of a wrong answer may be those of such a copy, which then says what is wrong with the answer.
"""

import ast
import copy
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from dragoman.learn.bug import source_of

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
EXCHANGED = {"min": "max", "sin": "cos", "sum": "mean", "exp": "log", "amax": "amin", "tril": "triu", "zeros": "ones"}
EXCHANGED |= {other: one for one, other in EXCHANGED.items()}


def mutants(function: Callable[..., Any]) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """(old text, new text, function) for each. A function with a `while` has none: they might never end."""
    tree = ast.parse(textwrap.dedent(source_of(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    names = [argument.arg for argument in definition.args.args]
    if any(isinstance(node, ast.While) for node in ast.walk(definition)):
        return
    for number, (node, keyword) in enumerate(_nodes(tree)):
        for new in changes(node, names):
            mutant = copy.deepcopy(tree)
            _Replace(_nodes(mutant)[number][0], new).visit(mutant)
            ast.fix_missing_locations(mutant)
            namespace = dict(function.__globals__)
            exec(compile(mutant, "<mutant>", "exec"), namespace)
            yield keyword + ast.unparse(node), keyword + ast.unparse(new), namespace[function.__name__]


def _nodes(tree: ast.Module) -> list[tuple[ast.expr, str]]:
    """The expressions of a function's body, outer ones first, with the keyword of an argument, "dim="."""
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    nodes: list[tuple[ast.expr, str]] = []
    waiting: list[tuple[ast.AST, str]] = [(one, "") for one in definition.body[1:]]  # after the docstring
    while waiting:
        node, keyword = waiting.pop(0)
        if isinstance(node, ast.expr):
            nodes.append((node, keyword))
        if _is_negative(node):
            continue
        keyword = f"{node.arg}=" if isinstance(node, ast.keyword) else ""
        waiting += [(child, keyword) for child in ast.iter_child_nodes(node)]
    return nodes


def _is_negative(node: ast.AST) -> bool:
    """True for a number as -1, which is an operator before a constant."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def changes(node: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    """Expressions that may stand in the place of an expression; `names` are the function's parameters."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right, ast.BinOp(node.right, node.op, node.left))
        yield from (ast.BinOp(node.left, kind(), node.right) for kind in OPERATORS if not isinstance(node.op, kind))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from (
            ast.Compare(node.left, [k()], node.comparators) for k in COMPARISONS if not isinstance(node.ops[0], k)
        )
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
        if _is_negative(node) and isinstance(ast.literal_eval(node), int):
            yield from (ast.Constant(ast.literal_eval(node) + one) for one in (1, 2, -1))
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _values(node.value))
    elif isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
        yield from (ast.Name(name, ast.Load()) for name in names if name != node.id)
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield ast.Tuple(node.elts[::-1], ast.Load())
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _values(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    return [value * 10, value / 10, 0.0] if isinstance(value, float) else []


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    called = node.func
    if isinstance(called, ast.Attribute):
        yield called.value  # x.exp() -> x
        if called.attr in EXCHANGED:
            yield ast.Call(ast.Attribute(called.value, EXCHANGED[called.attr], ast.Load()), node.args, node.keywords)
    if isinstance(called, ast.Name) and called.id in EXCHANGED:
        yield ast.Call(ast.Name(EXCHANGED[called.id], ast.Load()), node.args, node.keywords)
    if len(node.args) == 1:
        yield node.args[0]  # f(x) -> x


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return copy.deepcopy(self.new) if node is self.old else super().visit(node)
