"""Every recipe that ships builds; every command that the README shows exists."""

import re
from pathlib import Path

import pytest

from dragoman import recipe as recipes

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


def test_there_are_recipes() -> None:
    assert {"demo", "multi30k-en-de", "multi30k-en-de-tok"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_builds(path: Path) -> None:
    recipe = recipes.load(path)
    assert recipe.run_dir == f"runs/{path.stem}"
    parameters = recipes.check(recipe)
    assert 1e4 < parameters < 1e9


def test_a_recipe_survives_being_written_and_read(tmp_path: Path) -> None:
    from dragoman import config

    for path in RECIPES:
        recipe = recipes.load(path)
        copy = tmp_path / path.name
        copy.write_text(config.to_yaml(recipe), encoding="utf-8")
        assert recipes.load(copy) == recipe


def test_readme_commands_exist() -> None:
    """Recipes named in the README are there, and so are the commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"recipes/[\w-]+\.yaml", text):
        assert (ROOT / name).is_file(), name
    help_text = (ROOT / "src/dragoman/cli.py").read_text(encoding="utf-8")
    for command in re.findall(r"^\s*(?:\.venv/bin/)?dragoman (\w+)", text, flags=re.MULTILINE):
        assert f"def {command}(" in help_text or f'name="{command}"' in help_text, command
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w[\w-]*)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
