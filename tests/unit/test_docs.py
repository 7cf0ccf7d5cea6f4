"""What the documents say of the layers is so."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_architecture_has_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert " > ".join(layers).replace("dragoman.", "") in text
