"""`dragoman prepare`: the part of a training that comes before its first step."""

from dragoman.cli.options import Overrides, Recipe, RunDir
from dragoman.progress import say
from dragoman.tasks import recipes


def prepare(recipe: Recipe, overrides: Overrides = None, run_dir: RunDir = None) -> None:
    """Learn the tokenizer and store the corpus as ids, ahead of training."""
    for line in recipes.prepare(recipes.load(recipe, recipes.with_options(overrides or [], run_dir=run_dir))):
        say(line)
