"""A training that learns tags, terms and matches, or sentences before: stopped and gone on with, it ends in the same
bytes."""

from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.run_learnt.make import PAIRS, recipe

from dragoman import config
from dragoman.config import parse
from dragoman.runs import checkpoint
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe


def trained(folder: Path, steps: int, workers: int, context: dict[str, Any]) -> dict[str, bytes]:
    data: dict[str, Any] = config.to_dict(recipe())
    data["run_dir"], data["workers"] = str(folder), workers
    data["training"] |= {"max_steps": steps, "validate_every": 2, "schedule": {"type": "constant", "lr": 0.003}}
    if context:
        data["corpus"] |= {"context": context, "augment": {}}
    recipes.run(parse(TranslationRecipe, data))
    newest = checkpoint.newest(folder)
    assert newest is not None
    assert checkpoint.step_of(newest) == steps
    files = [*newest.glob("*.safetensors"), *(folder / "prepared").rglob("*.bin"), *folder.glob("lexicon.safetensors")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "context", [{}, {"src": 2, "tgt": 1, "share": 0.6, "documents": "names"}], ids=["all", "context"]
)
def test_a_training_that_goes_on_ends_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    for split, times in (("train", 8), ("valid", 1)):
        for side, code in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in PAIRS * times)
            Path(f"{split}.{code}").write_text(text, encoding="utf-8")
    Path("names").write_text("".join(f"{row // 5}\t{row}\n" for row in range(8 * len(PAIRS))), encoding="utf-8")
    whole = trained(tmp_path / "whole", 4, 1, context)
    assert trained(tmp_path / "halves", 2, 2, context) != whole
    stored = tmp_path / "halves" / "prepared" / "train" / "src.bin"
    before = stored.stat()
    assert trained(tmp_path / "halves", 4, 2, context) == whole
    assert (stored.stat().st_ino, stored.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
