"""A peer of `debian.py`: what it is given, and the scores of what it gives back."""

import argparse
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dragoman.device import machine_name, pick_device
from dragoman.quality.scores import score
from dragoman.tasks import recipes
from dragoman.text.normalize import NORMALIZERS

SCRIPT = Path(__file__).parent / "peers" / "minutes_huggingface.py"


def trained_by_peer(
    data: dict[str, Any], given: argparse.Namespace, versions: Callable[[str], dict[str, str]]
) -> dict[str, Any]:
    """Train and score Hugging Face's model on the pairs and pieces of a recipe; what came of it."""
    if not given.python:
        raise SystemExit(
            "--python: the interpreter of an environment that has transformers (benchmarks/peers/README.md)"
        )
    recipe: Any = recipes.parsed(data, "the recipe")
    job = recipes.job(recipe)
    job.prepare()
    folder = Path(recipe.run_dir) / "peer"
    folder.mkdir(parents=True)
    _write(folder / "train.src", map(job.train.src, range(len(job.train))))
    _write(folder / "train.tgt", map(job.train.tgt, range(len(job.train))))
    normalize = NORMALIZERS[recipe.corpus.normalize]
    for name, pairs in job.tests.items():
        sources = (job.tokenizers.src.encode(normalize(pair.src)) for pair in pairs)
        _write(folder / f"{name}.src", (ids[: recipe.corpus.max_tokens] for ids in sources))
    settings = _settings(recipe, given, list(job.tests))
    settings["vocab_size"] = job.tokenizers.tgt.vocab_size
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    subprocess.run([given.python, str(SCRIPT), str(folder)], env=given.environment, check=True)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    scores = {}
    for name, pairs in job.tests.items():
        lines = (folder / f"{name}.out").read_text(encoding="ascii").splitlines()
        outputs = [job.tokenizers.tgt.decode([int(word) for word in line.split()]) for line in lines]
        references = [pair.tgt for pair in pairs]
        scores[name] = score(outputs, references, recipe.evaluation, recipe.corpus.tgt_lang, with_ter=False)
    return {
        **result,
        "pairs": len(job.train),
        "dropped": job.train_report.dropped,
        "machine": machine_name(pick_device("cpu")),
        "versions": {**versions(""), **result["versions"]},
        "rate": settings["rate"],
        "average": settings["average"],
        "scores": {name: {"bleu": found.bleu, "chrf": found.chrf} for name, found in scores.items()},
        "signatures": next((found.signatures for found in scores.values()), {}),
    }


def _settings(recipe: Any, given: argparse.Namespace, tests: list[str]) -> dict[str, Any]:
    names = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers", "dropout")
    training = recipe.training
    return {
        **{name: getattr(recipe.model, name) for name in names},
        "batch_tokens": training.batch_tokens,
        "label_smoothing": training.label_smoothing,
        "clip_norm": training.clip_norm,
        "rate": given.peer_rate or training.schedule.lr,
        "warmup_steps": training.schedule.warmup_steps,
        "average": given.peer_average,
        "seed": recipe.seed,
        "minutes": given.minutes,
        "threads": given.threads,
        "beam_size": 5,
        "tests": tests,
    }


def _write(path: Path, sentences: Iterable[Any]) -> None:
    with path.open("w", encoding="ascii") as file:
        file.writelines(" ".join(map(str, ids)) + "\n" for ids in sentences)
