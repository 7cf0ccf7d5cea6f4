"""The commands of `debian.py`: to train and score a variant, to show results."""

import argparse
import importlib.metadata
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from debian_peer import trained_by_peer
from debian_variants import VARIANTS, Bench, Change, by_budget, size_within

from dragoman.config import override
from dragoman.data.random import hash64
from dragoman.errors import DragomanError
from dragoman.runs import atomic_io
from dragoman.runs.events import METRICS, read_events
from dragoman.tasks import recipes
from dragoman.tasks.auto_recipe import settings_of
from dragoman.text.lines import find
from dragoman.version import __version__, commit

ROOT = Path(__file__).parents[1]
PEER = "huggingface"
DONE = "done"
"""File of a run directory that has been scored."""


@dataclass(frozen=True)
class Comparison:
    """Corpus, time and settings that all variants have in common."""

    arguments: argparse.Namespace

    @property
    def folder(self) -> Path:
        given = self.arguments.corpus
        return Path(find(f"debian-{self.arguments.pair}") if given is None else given).resolve()

    def run_dir(self, name: str) -> Path:
        given = self.arguments
        parts = [name, given.sizes, f"{given.minutes:g}min", f"{given.threads}threads", f"seed{given.seed}"]
        others = [given.changes, str(given.recipe), str(given.corpus)]
        return given.work / given.pair / "-".join([*parts, f"{hash64(json.dumps(others)):016x}"[:8]])

    def bench(self) -> Bench:
        given = self.arguments
        source, _, target = given.pair.partition("-")
        corpora = given.work / given.pair / "corpora"
        return Bench((source, target), self.folder, corpora, given.minutes, self.base, given.share)

    def base(self) -> Path:
        """The recipe's own run, which is trained now where it is not there."""
        if not (self.run_dir("recipe") / DONE).exists():
            self.measure("recipe")
        return self.run_dir("recipe")

    def recipe(self, bench: Bench) -> dict[str, Any]:
        """Plain settings of the recipe on the corpus, with the tests that are there."""
        given = self.arguments
        data = atomic_io.read_yaml(given.recipe or ROOT / "recipes" / f"debian-{given.pair}.yaml")
        corpus = data["corpus"]
        corpus |= {"train": bench.source("train"), "valid": bench.source("valid")}
        tests = {"own": bench.source("test"), **{name: test for name, test in corpus["test"].items() if name != "own"}}
        for name, source in list(tests.items()):
            try:
                find(source["src"])
            except DragomanError as error:
                print(f"without the test {name}: {error}", flush=True)
                del tests[name]
        corpus["test"] = tests
        if given.sizes == "budget":
            data |= self.sizes(bench)
        return {**data, "seed": given.seed, "device": "cpu"}

    def sizes(self, bench: Bench) -> dict[str, Any]:
        """The settings that `--budget` takes, the same for all variants: the speed is measured once."""
        given = self.arguments
        path = given.work / given.pair / f"sizes-{given.minutes:g}min-{given.threads}threads.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_io.replace_text(path, atomic_io.to_json(dict(by_budget(bench).settings)))
        return atomic_io.read_json(path, dict)

    def measure(self, name: str) -> dict[str, Any]:
        """Train and score a variant; its row, which is added to the results."""
        given, bench, run_dir = self.arguments, self.bench(), self.run_dir(name)
        shutil.rmtree(run_dir, ignore_errors=True)  # a run that was stopped: nobody knows how long it has taken
        if name == PEER:
            data = override({**self.recipe(bench), "run_dir": str(run_dir)}, given.changes)
            facts = trained_by_peer(data, given, versions)
        else:
            change = VARIANTS[name][1](bench)
            data = {**self.recipe(bench), **change.settings, "run_dir": str(run_dir)}
            data = override(data, [*given.changes, *change.overrides])
            facts = trained(data, change, 60 * given.minutes)
        row = {key: getattr(given, key) for key in ("pair", "minutes", "threads", "seed", "sizes", "changes")}
        row = {"name": name, **row, "command": command(name), **facts}
        given.results.parent.mkdir(parents=True, exist_ok=True)
        with given.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        (run_dir / DONE).touch()
        return row


def trained(data: dict[str, Any], change: Change, seconds: float) -> dict[str, Any]:
    """Train and score a recipe on the pairs of a change; what came of it."""
    if change.train is not None:
        data["corpus"]["train"] = change.train
    recipe: Any = recipes.parsed(data, "the variant")
    recipes.run_to_end(recipe, seconds)
    events = read_events(Path(recipe.run_dir) / METRICS)
    last = {event["event"]: event for event in events}
    plan, end, start = last["plan"], last["end"], last["start"]
    tests = [event for event in events if event["event"] == "test"]
    return {
        "pairs": plan["pairs_kept"],
        "dropped": plan["dropped"],
        "parameters": plan["parameters"],
        "steps": end["step"],
        "epochs": round(end["step"] / plan["steps_per_epoch"], 2),
        "valid_bleu": end["best_score"],
        "precision": start["precision"],
        "machine": start["machine"],
        "versions": versions(start["torch"]),
        "scores": {test["name"]: {"bleu": test["bleu"], "chrf": test["chrf"]} for test in tests},
        "signatures": tests[0]["signatures"] if tests else {},
        **change.facts,
    }


def versions(torch: str) -> dict[str, str]:
    return {
        "dragoman": f"{__version__} ({commit()})",
        "torch": torch,
        "sacrebleu": importlib.metadata.version("sacrebleu"),
        "Python": sys.version.split()[0],
    }


def command(name: str) -> str:
    """The command line of a variant, without what says where this machine keeps things."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    if len(words) > 1 and words[1] in (*VARIANTS, PEER):
        words[1] = name
    return " ".join(["python benchmarks/debian.py", *words])


# -- the commands ----------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> None:
    if arguments.name not in (*VARIANTS, PEER):
        raise SystemExit(f"no variant is called {arguments.name}: `python benchmarks/debian.py list`")
    print(json.dumps(Comparison(arguments).measure(arguments.name)["scores"]))


def table(arguments: argparse.Namespace) -> None:
    """Print a table for each corpus, time, number of threads and machine."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in map(json.loads, arguments.results.read_text(encoding="utf-8").splitlines()):
        groups.setdefault((row["pair"], row["minutes"], row["threads"], row["sizes"], row["machine"]), []).append(row)
    for (pair, minutes, threads, sizes, machine), rows in sorted(groups.items()):
        print(f"\n{pair}, {minutes:g} minutes, {threads} threads, sizes of the {sizes}; {machine}\n")
        tests = list(dict.fromkeys(name for row in rows for name in row["scores"]))
        columns = ["variant", "seed", "pairs", "epochs", "parameters", *(f"{test}: BLEU | chrF" for test in tests)]
        print(f"| {' | '.join(columns)} |\n{'|---' * (5 + 2 * len(tests))}|")
        for row in rows:
            print(f"| {' | '.join(_cells(row, tests))} |")
        print()
        texts = (", ".join(f"{key} {value}" for key, value in row["versions"].items()) for row in rows)
        print(*(f"{text}." for text in dict.fromkeys(texts)), sep="\n")
        print("", *(f"    {text}" for text in dict.fromkeys(row["command"] for row in rows)), sep="\n")


def _cells(row: Mapping[str, Any], tests: list[str]) -> list[str]:
    found = (row["scores"].get(test) for test in tests)
    scores = [f"{score['bleu']:.1f} | {score['chrf']:.1f}" if score else "- | -" for score in found]
    sizes = [str(row["seed"]), f"{row['pairs']:,}", f"{row['epochs']:.1f}", f"{row['parameters'] / 1e6:.1f}M"]
    return [" ".join([row["name"], *row["changes"]]), *sizes, *scores]


def sizes(arguments: argparse.Namespace) -> None:
    """Print the settings that `--budget` takes for the corpus on this machine."""
    size, explained = size_within(Comparison(arguments).bench())
    print(f"# {explained}\n{yaml.safe_dump(settings_of(size), sort_keys=False)}", end="")


def variants(arguments: argparse.Namespace) -> None:
    for name, (what, _) in VARIANTS.items():
        print(f"{name:24}{what}")
    print(f"{PEER:24}Hugging Face's MarianMTModel in a plain loop: same pieces, shape and schedule (--python)")


COMMANDS = {"run": run, "table": table, "sizes": sizes, "list": variants}
