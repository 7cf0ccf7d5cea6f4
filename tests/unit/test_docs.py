"""The documents and the help say what is so."""

import re
import tomllib
from pathlib import Path

import typer
from typer.testing import CliRunner

from dragoman.cli.main import GROUPS, app, name_of

ROOT = Path(__file__).parents[2]


def test_the_architecture_has_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert " > ".join(layers).replace("dragoman.", "") in text


def test_the_help_has_every_command_in_a_group() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).stdout
    for group, commands in GROUPS.items():
        assert f"─ {group} ─" in text
        for command in commands:
            name = command.info.name if isinstance(command, typer.Typer) else name_of(command)
            assert f"│ {name} " in text.split(f"─ {group} ─")[1]
    assert "dragoman settings" in CliRunner().invoke(app, ["train", "--help"]).stdout


def test_the_readme_lists_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md")]
    assert [page for page in pages if f"]({page})" not in text] == []
    assert len(text.splitlines()) <= 150


def test_the_names_of_the_glossary_are_in_the_code() -> None:
    table = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").split("## Other names")[1]
    named = re.findall(r"^\| `(\S+\.py): (\w+)`", table, re.MULTILINE)
    assert len(named) >= 20
    for path, name in named:
        source = (ROOT / "src/dragoman" / path).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(def|class) {name}\b", source, re.MULTILINE), (path, name)
