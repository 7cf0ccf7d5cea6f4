"""The documents and the help say what is so."""

import inspect
import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import GROUPS, app, help_of, load

ROOT = Path(__file__).parents[2]


def layers() -> list[str]:
    """The layers of packages that import-linter checks, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    assert contract["name"] == "imports run one way"
    return [layer.replace("dragoman.", "") for layer in contract["layers"]]


def test_the_picture_of_the_architecture_has_the_layers_that_are_checked() -> None:
    rows = [layer.replace(" | ", " & ") for layer in layers()]
    drawn = [f"    {row} --> {below}" for row, below in itertools.pairwise(rows)]
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert text.split("```mermaid\n")[1].split("```")[0].splitlines() == ["flowchart TB", *drawn]


def test_the_packages_are_few_and_each_stands_in_one_of_at_most_twenty_layers() -> None:
    named = [name for layer in layers() for name in layer.split(" | ")]
    packages = {path.parent.name for path in (ROOT / "src/dragoman").glob("*/__init__.py")}
    assert packages <= set(named)
    assert len(packages) <= 25
    assert len(layers()) <= 20


def test_the_help_has_every_command_in_a_group() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).stdout
    for group, commands in GROUPS.items():
        assert f"─ {group} ─" in text
        for name in commands:
            assert f"│ {name} " in text.split(f"─ {group} ─")[1]
    assert "dragoman settings" in CliRunner().invoke(app, ["train", "--help"]).stdout


@pytest.mark.parametrize("name", [name for names in GROUPS.values() for name in names])
def test_the_help_of_a_command_that_is_not_loaded_is_its_own(name: str) -> None:
    assert help_of(name) == inspect.cleandoc(load(name).help)


def test_the_help_loads_no_command() -> None:
    code = "import sys; from dragoman.cli.main import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("\n")[-2].split())
    assert loaded.isdisjoint({"torch", "numpy", "pydantic", "dragoman.tasks", "dragoman.inference"})
    assert {name for name in loaded if name.startswith("dragoman.cli.")} == {
        "dragoman.cli.declaration",
        "dragoman.cli.main",
    }


def test_the_index_lists_every_page() -> None:
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = [path.name for path in ROOT.glob("docs/*.md") if path.name != "index.md"]
    assert [page for page in pages if f"]({page})" not in text] == []


def test_the_names_of_the_glossary_are_in_the_code() -> None:
    table = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").split("## Other names")[1]
    named = re.findall(r"^\| `(\S+\.py): (\w+)`", table, re.MULTILINE)
    assert len(named) >= 20
    for path, name in named:
        source = (ROOT / "src/dragoman" / path).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(def|class) {name}\b", source, re.MULTILINE), (path, name)


def test_the_table_of_threats_names_tests_and_attacks_that_there_are() -> None:
    table = (ROOT / "docs/open-internet.md").read_text(encoding="utf-8").split("## What is defended")[1]
    rows = [row.split(" | ") for row in table.split("## ")[0].splitlines() if row.startswith("| ")][1:]
    attacks = (ROOT / "benchmarks/attacks.py").read_text(encoding="utf-8")
    assert len(rows) >= 10
    for threat, _, tests, attack in rows:
        named = re.findall(r"`tests/((?:unit|system)/test_\w+\.py)(?:::(test_\w+))?`", tests)
        assert named, threat
        for file, name in named:
            assert f"def {name}" in (ROOT / "tests" / file).read_text(encoding="utf-8"), (file, name)
        for name in re.findall(r"`([\w-]+)`", attack):
            assert re.search(rf'attack\(\s*"{name}"|document\(\s*"{name.removeprefix("document-")}"', attacks), name
