"""The benchmarks of word links and of letter case, in small: they run, and print what they measured."""

import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_job import ENGLISH, GERMAN
from tests.unit.test_job import recipe as recipe  # a fixture

from dragoman.config import parse
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str | Path) -> str:
    command = [sys.executable, f"benchmarks/{script}", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.system
def test_links_and_letter_case_are_measured(recipe: dict[str, Any], tmp_path: Path) -> None:
    recipe["tokenizer"] = {"type": "cased", "vocab_size": 120}
    recipe["model"]["alignment_head"] = [2, 0]
    recipe["guided_alignment"] = {"type": "lexical"}
    recipe["corpus"]["augment"] = {"tags": 0.5, "fuzzy": 0.5}
    run_dir = recipes.run(parse(TranslationRecipe, recipe)).run_dir
    for side, texts in (("de", "<b>eins</b> zwei\ndrei\n"), ("en", "<b>one</b> two\nthree\n")):
        (tmp_path / f"markup.{side}.gz").write_bytes(gzip.compress(texts.encode()))
    for side, texts in (("de", GERMAN), ("en", ENGLISH)):
        (tmp_path / f"plain.{side}.gz").write_bytes(gzip.compress(texts.encode()))
    table = run("guided_alignment.py", tmp_path / "markup.de.gz", tmp_path / "markup.en.gz", run_dir)
    rows = re.findall(r"\| run \| (\w+) \| [\d.]+ % of 1 \| [\d.]+ \|", table)
    assert rows == ["head", "erasure", "lexicon"], table
    placed = run("markup.py", run_dir, tmp_path / "markup.de.gz", tmp_path / "markup.en.gz")
    assert re.findall(r"1 pairs of codes that both have, by (\w+)", placed) == ["links", "pieces"], placed
    plain = [tmp_path / f"plain.{side}.gz" for side in ("de", "en")]
    for side, texts in (("de", "ein Hund !\nnichts\n"), ("en", "a dog !\nnothing\n")):
        (tmp_path / f"memory.{side}.gz").write_bytes(gzip.compress(texts.encode()))
    table = run("matches.py", run_dir, tmp_path / "memory.de.gz", tmp_path / "memory.en.gz", *plain)
    assert "the run has learnt matches" in table
    assert re.findall(r"^\| (\S+) \| \d+ \| [\d.]+ \| [\d.]+ \| [\d.]+ \|$", table, re.MULTILINE)[-1] == "all", table
    sides = tmp_path / "markup.de.gz", tmp_path / "markup.en.gz"
    for way in ("pieces", "links"):
        assert "2 codes" in run("localisation.py", "translate", run_dir, sides[0], tmp_path / way, way)
        judged = run("localisation.py", "score", tmp_path / way, *sides)
        assert "1 paragraphs with markup: tags kept 100.00 %" in judged
        assert re.search(r"^\d pairs whose words are there as often, [\d.]+ % around them$", judged, re.MULTILINE)
    scores = run("messy.py", run_dir, tmp_path / "plain.de.gz", tmp_path / "plain.en.gz", "2")
    assert re.findall(r"^(\S.*?) +BLEU", scores, re.MULTILINE)[:3] == ["clean", "CAPITALS", "Title Case"]
