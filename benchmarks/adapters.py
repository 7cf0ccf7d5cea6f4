"""An adapter beside the fine-tuning of all weights: scores on the new text and on the old, bytes of a checkpoint, time.

    python benchmarks/adapters.py BASE OUT --src new.de --tgt new.en --test new:a.de:a.en --test old:b.de:b.en

Every way is trained with each seed, on the new text alone, as `dragoman train --from BASE` would (`--set` changes
settings of all). The table has the mean over the seeds, and their range.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.runs import checkpoint
from dragoman.tasks import recipes
from dragoman.tasks.fine_tuning import fine_tuning_recipe


def scores(run: Path, tests: Sequence[str], lines: int) -> dict[str, tuple[float, float]]:
    """(BLEU, chrF) of a run on each of the tests, NAME:SOURCE:REFERENCE."""
    translator, found = SearchTranslator.load(run, device="cpu", beam_size=1), {}
    for test in tests:
        name, *files = test.split(":")
        src, ref = (Path(file).read_text(encoding="utf-8").splitlines()[:lines] for file in files)
        of_test = score(translator.translate(src), ref, EvaluationConfig(), with_ter=False)
        found[name] = of_test.bleu, of_test.chrf
    return found


def trained(base: Path, out: Path, way: dict[str, Any] | None, options: argparse.Namespace, seed: int) -> float:
    """Train one way; seconds of the processor."""
    files = str(options.src), str(options.tgt)
    recipe = fine_tuning_recipe(str(base), *files, str(out), adapter=way, valid=options.valid, doctor="skip")
    recipe = config.override({**recipe, "seed": seed, "device": "cpu"}, options.set)
    started = time.process_time()
    recipes.run_to_end(config.parse(recipes.TranslationRecipe, recipe, "benchmark"))
    return time.process_time() - started


def table(options: argparse.Namespace) -> str:
    """The rows of all ways."""
    names = [test.split(":")[0] for test in options.test]
    rows = ["| | " + " | ".join(names) + " | bytes of the weights | seconds |"]
    rows.append("|---" * (len(names) + 3) + "|")
    before = scores(options.base, options.test, options.lines)
    rows.append("| the base | " + " | ".join(f"{bleu:.1f} / {chrf:.1f}" for bleu, chrf in before.values()) + " | | |")
    ways: dict[str, dict[str, Any] | None] = {
        "all weights": None,
        **{f"LoRA, r = {r}": {"r": r} for r in options.ranks},
    }
    for way, adapter in ways.items():
        found, seconds, size = [], [], 0
        for seed in options.seeds:
            out = options.out / f"{'-'.join(way.split())}-{seed}".replace(",", "").replace("=-", "")
            seconds.append(trained(options.base, out, adapter, options, seed))
            found.append(scores(out, options.test, options.lines))
            size = (checkpoint.select(out) / "model.safetensors").stat().st_size
        cells = [" / ".join(map(_spread, zip(*(each[name] for each in found), strict=True))) for name in names]
        rows.append(f"| {way} | {' | '.join(cells)} | {size:,} | {_spread(seconds, 0)} |")
        print("\n".join(rows), flush=True)
    return "\n".join(rows)


def _spread(values: Sequence[float], digits: int = 1) -> str:
    mean = sum(values) / len(values)
    return f"{mean:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--valid", nargs=2)
    parser.add_argument("--test", action="append", required=True, metavar="NAME:SOURCE:REFERENCE")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 16], help="of adapters")
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    table(parsed())
