"""What the documents say of the files and the layers is so."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUMMED_UP = ("text/tokenizers", "text/embedded")
"""Folders that the README's tree names without their files."""


def in_the_tree() -> Iterator[Path]:
    """Every path of the README's tree."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text[text.index("```\nsrc/dragoman/") :].split("```")[1].strip("\n")
    folders: list[Path] = []
    for line in tree.split("\n"):
        depth = (len(line) - len(line.lstrip())) // 2
        folder = folders[depth - 1] if depth else ROOT
        names = re.match(r"(?:[\w.]+(?:/\w+/|/|\.py|\.yaml|\.j2)(?:\s|$)\s*)+", line.lstrip())
        assert names, line
        paths = [folder / name for name in names.group().split()]
        folders[depth:] = [paths[0]]
        yield from paths


def test_the_tree_of_the_readme_is_the_tree() -> None:
    named = set(in_the_tree())
    assert not {str(path) for path in named if not path.exists()}
    package = ROOT / "src/dragoman"
    files = {path for path in package.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")}
    left_out = {path.relative_to(package) for path in files - named}
    assert not {str(path) for path in left_out if not str(path).startswith(SUMMED_UP)}


def test_the_architecture_has_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert " > ".join(layers).replace("dragoman.", "") in text
