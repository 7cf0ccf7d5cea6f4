"""The batching promise at full size: 1,000 sentences in 20 random batchings, to the last bit.

Of random models: what one of them writes hangs on the last bit of its logits far more than a trained one's words do.
The quick version is tests/unit/test_batch_invariance.py.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from dragoman import config
from dragoman.cli.main import app
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.runs import checkpoint
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.tokenizers.pair import save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.whitespace import WhitespaceConfig

WORDS = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrs"]  # no digits, which would be kept
SENTENCES, BATCHINGS = 1000, 20
MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"type": "recurrent", "attention": "none", "d_model": 64, "d_embedding": 64},
    "attentional-lstm": {"type": "recurrent", "attention": "additive", "d_model": 64, "d_embedding": 64},
    "transformer": {"type": "transformer", "d_model": 64, "num_heads": 4, "d_ff": 128},
}


def sentences() -> list[str]:
    """1 to 120 words, blank lines and duplicates among them."""
    rng = random.Random(8)
    found = [
        " ".join(rng.choices(WORDS, k=rng.choice([1, 2, 3, rng.randint(4, 30), rng.randint(4, 120)])))
        for _ in range(SENTENCES - 100)
    ]
    found += [""] * 20 + rng.choices(found, k=80)
    rng.shuffle(found)
    return found


def run_with(folder: Path, model: dict[str, Any]) -> Path:
    """A run directory with a random model."""
    source = {"type": "files", "src": "x", "tgt": "y"}
    corpus = {"src_lang": "en", "tgt_lang": "en", "train": source, "valid": source, "max_tokens": 128}
    decoding = {"max_length_ratio": 0.2, "max_length_extra": 3}
    recipe = config.parse(
        TranslationRecipe, {"run_dir": str(folder), "corpus": corpus, "model": model, "decoding": decoding}
    )
    (folder / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    text = [" ".join(WORDS)]
    tokenizers = train_tokenizers(WhitespaceConfig(), lambda: iter(text), lambda: iter(text))
    save_tokenizers(tokenizers, folder / "tokenizer")
    torch.manual_seed(1)
    built = build_model(recipe.model, tokenizers)
    checkpoint.save(folder, 1, {"model": checkpoint.weights(built)}, {"step": 1, "score": 1.0})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4, 8])
@pytest.mark.parametrize("name", MODELS)
def test_20_batchings_of_1000_sentences(name: str, beam_size: int, tmp_path: Path) -> None:
    run = run_with(tmp_path, MODELS[name])
    translator = SearchTranslator.load(run, device="cpu", beam_size=beam_size)
    text = sentences()
    expected = translator.n_best(text)
    # A random model says little, but never with the same probability of two sentences.
    assert len({item[0].text for item in expected}) > 50
    assert len({item[0].log_prob for item in expected}) > 850
    rng = random.Random(beam_size)
    same = 0
    for _ in range(BATCHINGS):
        order, start = rng.sample(range(SENTENCES), SENTENCES), 0
        while start < SENTENCES:
            rows = order[start : start + rng.randint(1, 64)]
            start += len(rows)
            same += sum(
                found == expected[row]
                for row, found in zip(rows, translator.n_best([text[row] for row in rows]), strict=True)
            )
    assert same == SENTENCES * BATCHINGS
    (tmp_path / "in").write_text("".join(line + "\n" for line in text), encoding="utf-8")
    arguments = ["translate", str(run), "-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--device", "cpu"]
    CliRunner().invoke(app, [*arguments, "--beam-size", str(beam_size)], catch_exceptions=False)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "".join(item[0].text + "\n" for item in expected)


def test_bfloat16_is_no_exception(tmp_path: Path) -> None:
    translator = SearchTranslator.load(run_with(tmp_path, MODELS["transformer"]), device="cpu", beam_size=4)
    translator.model.to(torch.bfloat16)
    text = sentences()[:40]
    expected = translator.n_best(text)
    assert [translator.n_best([line])[0] for line in text] == expected
    assert translator.n_best(text[::-1])[::-1] == expected
