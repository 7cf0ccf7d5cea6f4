"""Settings by hand against the rule of `--budget`: trainings in equal times, the curve that is fitted to them, tables.

    python benchmarks/budget.py run --corpus help --minutes 5              # all settings of the list, one after another
    python benchmarks/budget.py run --corpus help --minutes 5 --only d128-v6000 --seed 2 --threads 1
    python benchmarks/budget.py fit                                        # the numbers of tasks/sizes.py: CURVE
    python benchmarks/budget.py table                                      # the tables of benchmarks/budget.md

The clock of a training is the processor time of its process by the number of its threads: other work on the machine
makes it longer, but not worse. Two threads or one imitate a faster and a slower machine. Results: runs/budget.jsonl.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from peers.processor_time import start_clock

RESULTS = Path(__file__).parent / "runs" / "budget.jsonl"
RULE, BEFORE = "rule", "by-pairs"
"""Names of the settings that `--budget` takes, and of those that the number of pairs alone gives."""
LEARNT = 15
"""BLEU of a model that looks at its source, on the corpora of these runs."""
DATA = Path(os.environ.get("DRAGOMAN_DATA", "data"))


def settings() -> dict[str, Any]:
    """Twenty settings by hand: each differs from the first in a thing or two."""
    from dragoman.tasks.sizes import TrainingSize

    base = TrainingSize(6_000, 128, 4, 2, 0.05, 2048, 1, 5e-3, 0.99)
    return {
        "d128-v6000": base,
        "d64": replace(base, d_model=64, lr=6e-3),
        "d96": replace(base, d_model=96, lr=6e-3),
        "d192": replace(base, d_model=192, lr=4e-3),
        "d256": replace(base, d_model=256, lr=3e-3),
        "d256-v16000": replace(base, d_model=256, vocab_size=16_000, lr=2e-3, batch_tokens=4096),
        "v2000": replace(base, vocab_size=2_000),
        "v4000": replace(base, vocab_size=4_000),
        "v12000": replace(base, vocab_size=12_000),
        "batch1024": replace(base, batch_tokens=1024),
        "batch512": replace(base, batch_tokens=512, lr=4e-3),
        "batch4096": replace(base, batch_tokens=4096),
        "lr3": replace(base, lr=3e-3),
        "lr8": replace(base, lr=8e-3),
        "dropout0": replace(base, dropout=0.0),
        "dropout15": replace(base, dropout=0.15),
        "ema98": replace(base, ema_decay=0.98),
        "ema999": replace(base, ema_decay=0.999),
        "e6d1": replace(base, encoder_layers=6, decoder_layers=1),
        "e3d3": replace(base, encoder_layers=3, decoder_layers=3),
        "e2d2": replace(base, encoder_layers=2, decoder_layers=2),
        "e2d2-batch1024": replace(base, encoder_layers=2, decoder_layers=2, batch_tokens=1024),
        "e1d1-batch1024": replace(base, encoder_layers=1, decoder_layers=1, batch_tokens=1024),
        "e3d2-batch1024": replace(base, encoder_layers=3, decoder_layers=2, batch_tokens=1024),
        "e2d1-batch1024": replace(base, encoder_layers=2, decoder_layers=1, batch_tokens=1024),
        "e2d2-batch1024-d192": replace(
            base, encoder_layers=2, decoder_layers=2, batch_tokens=1024, d_model=192, lr=4e-3
        ),
        "e2d2-batch1024-v4000": replace(base, encoder_layers=2, decoder_layers=2, batch_tokens=1024, vocab_size=4_000),
        "e4d4": replace(base, decoder_layers=4, lr=3e-3, ema_decay=0.999),
        "e2d2-d192": replace(base, encoder_layers=2, decoder_layers=2, d_model=192, vocab_size=8_000, lr=4e-3),
        "e2d2-d256": replace(base, encoder_layers=2, decoder_layers=2, d_model=256, vocab_size=8_000, lr=3e-3),
    }


def by_rule(corpus: str, minutes: float, *, budget: bool = True) -> Any:
    """What `--budget` takes; `budget=False`: what the number of pairs says alone."""
    from dragoman.experiments.speed import measured_speed
    from dragoman.tasks import recipes, sizes

    recipe: Any = recipes.parsed({"run_dir": "rule", "corpus": corpora()[corpus]}, corpus)
    source = recipe.corpus.train
    if not budget:
        return sizes.size_for(sum(1 for _ in source.pairs()))
    budget_there = sizes.Budget(60 * minutes, lambda: measured_speed("cpu", 60 * minutes))
    return sizes.size_within(budget_there, sizes.PIECES_A_WORD * sizes.words_of(source))


def corpora() -> dict[str, dict[str, Any]]:
    """Plain settings of the sources of each corpus that is there."""

    def pair(folder: str, train: str, valid: str, src: str, tgt: str, end: str = ".gz") -> dict[str, Any]:
        def source(name: str) -> dict[str, str]:
            return {
                "type": "files",
                "src": f"{DATA}/{folder}/{name}.{src}{end}",
                "tgt": f"{DATA}/{folder}/{name}.{tgt}{end}",
            }

        return {"src_lang": src, "tgt_lang": tgt, "train": source(train), "valid": source(valid)}

    return {
        "help": pair("libreoffice-help-en-de", "train", "valid", "en", "de"),
        "captions": pair("multi30k", "train", "val", "en", "de"),
        "packages": pair("packages-en-fr", "train", "valid", "en", "fr", ""),
        "debian": pair("debian-en-de", "train", "valid", "en", "de", ""),
        "toy": {
            "src_lang": "de",
            "tgt_lang": "en",
            "train": {"type": "demo", "split": "train", "size": 2_000},
            "valid": {"type": "demo", "split": "valid", "size": 50},
        },
    }


def train(corpus: str, size: Any, minutes: float, seed: int, changes: list[str]) -> dict[str, Any]:
    """Train in a time; the sizes, the loss and the BLEU of the last validation."""
    from dragoman.config import override
    from dragoman.runs.events import METRICS, read_events
    from dragoman.tasks import recipes
    from dragoman.tasks.auto_recipe import settings_of

    plain = settings_of(size)
    plain["training"] |= {"max_steps": 10**6, "validate_every": 10**9, "validate_seconds": 1e9}
    if size.max_steps == 1:  # by hand: a fifth of the steps, where those are fewer than 5,000
        plain["training"]["schedule"]["warmup_steps"] = 1_000
    with tempfile.TemporaryDirectory() as folder:
        data = {"run_dir": folder, "seed": seed, "corpus": {**corpora()[corpus], "doctor": "skip"}, **plain}
        recipe: Any = recipes.parsed(override(data, changes), "settings by hand")
        outcome = recipes.run_to_end(recipe, 60 * minutes).outcome
        events = read_events(Path(folder) / METRICS)
        pairs = recipes.of_run(folder).corpus.valid.pairs()
        words = sum(len(pair.tgt.split()) for pair in pairs)
        stored = json.loads((Path(folder) / "prepared" / "valid" / "meta.json").read_text(encoding="utf-8"))
    plan = next(event for event in events if event["event"] == "plan")
    valid = [event for event in events if event["event"] == "valid"][-1]
    return {
        "shrink_residuals": recipe.model.shrink_residuals,
        "parameters": plan["parameters"],
        "pairs": plan["pairs_kept"],
        "steps": outcome.step,
        "steps_per_epoch": plan["steps_per_epoch"],
        "epochs": outcome.step / plan["steps_per_epoch"],
        "bleu": outcome.best_score,
        # A token of a larger vocabulary says more: losses are compared by word.
        "loss": valid["loss"] * stored["report"]["tgt_tokens"] / words,
    }


def run(arguments: argparse.Namespace) -> None:
    chosen = settings()
    for name in arguments.only or [RULE, BEFORE, *chosen]:
        size = chosen[name] if name in chosen else by_rule(arguments.corpus, arguments.minutes, budget=name == RULE)
        for seed in arguments.seed:
            result = train(arguments.corpus, size, arguments.minutes, seed, arguments.set)
            row = {"corpus": arguments.corpus, "minutes": arguments.minutes, "threads": arguments.threads, "name": name,
                   "seed": seed, "changes": arguments.set, **asdict(size), **result}  # fmt: skip
            arguments.results.parent.mkdir(exist_ok=True)
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name}: BLEU {row['bleu']:.2f}, loss {row['loss']:.3f}, {row['epochs']:.1f} epochs", flush=True)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def fit(arguments: argparse.Namespace) -> None:
    """Least squares of the logarithm of the loss, with a floor for each corpus.

    Runs that have not learnt to look at their source follow another curve, and so do deep models whose layers do not
    begin small, as those of the rule do.
    """
    import torch

    begun = [row for row in rows_of(arguments.results) if row["encoder_layers"] <= 2 or row["shrink_residuals"]]
    rows = [row for row in begun if row["bleu"] >= LEARNT] or begun
    names = sorted({row["corpus"] for row in rows})
    parameters = torch.tensor([float(row["parameters"]) for row in rows])
    unique = torch.tensor([row["steps_per_epoch"] * row["batch_tokens"] * 2.0 for row in rows])
    epochs = torch.tensor([row["epochs"] for row in rows])
    loss = torch.tensor([row["loss"] for row in rows])
    corpus = torch.tensor([names.index(row["corpus"]) for row in rows])
    floor = torch.full((len(names),), 0.5, requires_grad=True)
    # log(params), alpha, log(tokens), beta, log(half life), as numbers without bounds
    free = torch.tensor([3.0, 0.3, 6.0, 0.4, 2.5], requires_grad=True)
    optimizer = torch.optim.LBFGS([floor, free], max_iter=2_000, line_search_fn="strong_wolfe")

    def predicted() -> Any:
        log_params, alpha, log_tokens, beta, log_life = free
        life = log_life.exp()
        seen = unique * (epochs.clamp(max=1) + life * (1 - torch.exp(-(epochs - 1).clamp(min=0) / life)))
        return (
            floor[corpus].exp()
            + torch.exp(log_params - alpha * parameters.log())
            + torch.exp(log_tokens - beta * seen.log())
        )

    def closure() -> Any:
        optimizer.zero_grad()
        # The exponents of Hoffmann et al. 2022, 0.34 and 0.28, held to loosely, as few runs say little about both.
        error = (predicted().log() - loss.log()).square().mean() + 1e-3 * (
            (free[1] - 0.34) ** 2 + (free[3] - 0.28) ** 2
        )
        error.backward()
        return error

    optimizer.step(closure)
    free, floor = free.detach(), floor.detach()
    numbers = [floor.exp().mean(), free[0].exp(), free[1], free[2].exp(), free[3], free[4].exp()]
    fields = ("floor", "params", "alpha", "tokens", "beta", "half_life")
    print(
        "CURVE = Curve("
        + ", ".join(f"{name}={float(number):.4g}" for name, number in zip(fields, numbers, strict=True))
        + ")"
    )
    off = (predicted().log() - loss.log()).abs()
    mean, most = 100 * float(off.mean()), 100 * float(off.max())
    print(f"{len(rows)} runs; the loss is off by {mean:.1f} % in the mean, {most:.1f} % at most")


def table(arguments: argparse.Namespace) -> None:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows_of(arguments.results):
        groups.setdefault((row["corpus"], row["minutes"], row["threads"]), []).append(row)
    for (corpus, minutes, threads), rows in sorted(groups.items()):
        print(f"\n{corpus}, {rows[0]['pairs']:,} pairs, {minutes:g} minutes, {threads} threads\n")
        print("| setting | seed | parameters | epochs | loss | BLEU |\n|---|---|---|---|---|---|")
        for row in sorted(rows, key=lambda row: -row["bleu"]):
            name = " ".join([row["name"], *row["changes"]])
            print(f"| {name} | {row['seed']} | {row['parameters'] / 1e6:.1f}M | {row['epochs']:.1f} "
                  f"| {row['loss']:.3f} | {row['bleu']:.2f} |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "fit", "table"])
    parser.add_argument("--corpus", default="help")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seed", nargs="*", type=int, default=[1])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", nargs="*", default=[], metavar="key=value", help="further settings of the recipe")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    {"run": run, "fit": fit, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    if "run" in sys.argv[1:]:
        start_clock(int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 2)
    main()
