"""The demo: the whole way on the embedded corpus, and a sentence of your own at its end."""

import select
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dragoman.analysis.report import write_report
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import say
from dragoman.tasks import recipes

RECIPE = recipes.RECIPES[-1] / "demo.yaml"
SENTENCE = "ich möchte ein bier"
PATIENCE_S = 20.0
"""Seconds that the demo waits for a typed sentence before it takes SENTENCE."""


def run_demo(recipe_path: Path | None, overrides: list[str]) -> str:
    """Train by RECIPE or another one, score, translate a typed sentence; returns the line that sums it up."""
    recipe: Any = recipes.load(recipe_path or RECIPE, overrides)
    if recipe.task != "translation" or not recipe.corpus.test:
        raise Error.MISSING_OPTION(
            "the demo ends with a scored translation", "give a recipe with a test set for one", file=recipe_path
        )
    result = recipes.run(recipe, report=write_report)
    if not result.tests:
        raise Error.INTERRUPTED("the demo was stopped before it was scored", "run it again and it goes on")
    sentence = ask_for_sentence()
    translation = SearchTranslator.load(result.run_dir, device=recipe.device).translate([sentence])[0]
    say(f"\n  {sentence}\n  -> {translation}\n")
    can_serve = all(map(find_spec, ("h11", "prometheus_client", "python_multipart", "starlette", "uvicorn")))
    first = "" if can_serve else "pip install 'dragoman[serve]', then "
    say(f"a page to translate on: {first}{_command()} serve {result.run_dir}, and open http://localhost:5000/")
    scores = next(iter(result.tests.values()))
    return (
        f"demo: {scores.titles['bleu']} {scores.bleu:.1f} on {scores.sentences} unseen sentences, trained in "
        f"{result.outcome.elapsed_s:.0f} s, run {result.run_dir}, report {result.report}"
    )


def _command() -> str:
    """The name that this program is called by from here."""
    own = Path(sys.executable).with_name("dragoman")
    return str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else "dragoman"


def ask_for_sentence() -> str:
    """A sentence typed at a terminal; where there is no terminal, or nobody types, the notes' own example."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or sys.platform == "win32":  # which selects among sockets alone
        return SENTENCE
    say(f"type a German sentence of the demo's world and press Enter (or wait {PATIENCE_S:.0f} s):")
    ready, _, _ = select.select([sys.stdin], [], [], PATIENCE_S)
    return (sys.stdin.readline().strip() if ready else "") or SENTENCE
