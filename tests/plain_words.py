"""Count words that a reader stumbles over, in all of `src`: part of `make check`.

    python tests/plain_words.py [--list] [FOLDER OR FILE ...]

Two kinds: names that say nothing (`found`, `told`, ...: say what it is), and docstrings in which the noun is dropped
and pointed back at ("that of those of one that ..."): the noun should be said again. `--list` names the places.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
NAMES = {"found", "told", "said", "asked", "wanted"}
MOST_NAMES = 5
"""Functions and classes with such a name in them, or called so: each name counts once in each."""
POINTERS = re.compile(r"\b(that of|those of|of one|one that|of which)\b", re.IGNORECASE)
MOST_DOCSTRINGS = 10
WORDS_EACH = 12
"""A docstring is dense in pointers if it has two or more, or one in as few words."""


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each variable, argument, attribute or function called by one of NAMES, once in a function."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module | ast.Lambda):
            first: dict[str, int] = {}
            for name, line in _own(scope):
                first[name] = min(line, first.get(name, line))
            yield from ((line, name) for name, line in first.items())


def _own(scope: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a scope binds itself, not those of the functions in it."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = scope.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg in NAMES:
                yield argument.arg, argument.lineno
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name in NAMES:
                yield node.name, node.lineno
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield node.id, node.lineno
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in NAMES:
            yield node.attr, node.lineno
        waiting += ast.iter_child_nodes(node)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, first sentence) of each docstring, attributes' too, that begins with a pointer or is dense in pointers."""
    for node in ast.walk(tree):
        for child in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant) and type(child.value.value) is str:
                text = child.value.value
                pointers = list(POINTERS.finditer(text))
                begins = bool(pointers) and len(text[: pointers[0].start()].split()) < 2
                if (
                    begins
                    or len(pointers) > max(1, len(text.split()) // (4 * WORDS_EACH))
                    or (pointers and len(text.split()) <= WORDS_EACH)
                ):
                    yield child.lineno, " ".join(text.split())[:100]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[SRC])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    files = sorted(file for path in options.paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    counts = {"names": 0, "docstrings": 0}
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for kind, places in (("names", names(tree)), ("docstrings", docstrings(tree))):
            for line, text in sorted(places):
                counts[kind] += 1
                if options.list:
                    print(f"{file}:{line}: {text}")
    print(f"{counts['names']} names that say nothing (at most {MOST_NAMES}),", end=" ")
    print(f"{counts['docstrings']} docstrings dense in pointers (at most {MOST_DOCSTRINGS})")
    return int(counts["names"] > MOST_NAMES or counts["docstrings"] > MOST_DOCSTRINGS)


if __name__ == "__main__":
    sys.exit(main())
