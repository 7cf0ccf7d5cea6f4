"""A run in Marian, in a browser's module, in CTranslate2 and in PyTorch: the same translations, and how fast.

    python benchmarks/marian.py equal RUN LINES [--ref FILE] [--marian PYTHON] [--bergamot FOLDER]
    python benchmarks/marian.py speed RUN LINES --results FILE --beam-size 1 --threads 1 [--marian PYTHON]
    python benchmarks/marian.py table FILE

`equal` counts the lines of which an export's runtime has the same translation as PyTorch, and lists others with the
scores that PyTorch gives to both. `--marian`: a Python that has pymarian; `--bergamot`: a folder of the npm package
`@browsermt/bergamot-translator`, which node runs. What is not there, or cannot hold the model, is told and left out.

`speed` loads each engine of `translation.py` in a process of its own, lets them translate all lines in turn, text to
text, `--rounds` times, and adds the seconds to a file. `table` prints the best rounds of a file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import translation
from peers.untouched import ENVIRONMENT

from dragoman import export
from dragoman.errors import DragomanError
from dragoman.export import bergamot, marian
from dragoman.export.verify import Difference, ExportComparison, compare_export
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig
from dragoman.quality.test_set import TestSet
from dragoman.text.lines import read_lines

COMPARED = [
    ("ctranslate2", 1, None),
    ("ctranslate2", 5, None),
    ("marian", 1, None),
    ("marian", 5, None),
    ("bergamot", 1, None),
    ("bergamot", 1, "int8"),
]
"""Targets with a beam and quantised weights; a browser's search is greedy."""
OURS = "dragoman"
ENGINES = [OURS, "engine", "engine:int8", "direct", "direct:int8", "marian", "marian:int8"]
NAMES = {
    "dragoman": "Dragoman (PyTorch)",
    "engine": "`--engine ctranslate2`",
    "direct": "CTranslate2",
    "marian": "Marian",
}


# -- the same translations -----------------------------------------------------------------------------------------


def equal(options: argparse.Namespace) -> None:
    translator = SearchTranslator.load(options.run, device="cpu")
    references = [list(read_lines(options.ref))] if options.ref else []
    text = TestSet(list(read_lines(options.lines)), references)
    print("| target | beam | weights | equal | largest score difference | BLEU, export's |\n|---|---|---|---|---|---|")
    differing = []
    for name, beam, quantize in COMPARED:
        try:
            found = compared(translator.with_decoding(beam_size=beam, n_best=1), text, name, quantize)
        except DragomanError as error:
            print(f"| {name} | {beam} | {quantize or 'float32'} | {' '.join(str(error).split())} | | |", flush=True)
            continue
        count = f"{len(text) - len(found.differences):,} of {len(text):,}"
        bleu = "{:.2f}, {:.2f}".format(*found.bleu) if found.bleu else ""
        scores = f"{found.score_difference:.1e}" if name != "bergamot" else ""
        print(f"| {name} | {beam} | {quantize or 'float32'} | {count} | {scores} | {bleu} |", flush=True)
        differing.append((f"{name}, beam {beam}, {quantize or 'float32'}", found.differences))
    for title, differences in differing:
        for line in listed(translator, differences[: options.listed]):
            print(f"- {title}: {line}")


def compared(translator: SearchTranslator, text: TestSet, name: str, quantize: str | None) -> ExportComparison:
    """Raises DragomanError where the target cannot hold the model, or its runtime is not there."""
    target = export.target(name)
    export.require_possible(target, translator, Path("the run"), name)
    translator = translator.with_decoding(**vars(target.nearest(translator.decoding)))
    with tempfile.TemporaryDirectory() as folder:
        target.write(translator, Path(folder), quantize)
        return compare_export(translator, target.load(Path(folder), translator), text, EvaluationConfig(), "")


def listed(translator: SearchTranslator, differences: Sequence[Difference]) -> list[str]:
    """Each of them with the scores of both translations, both by PyTorch."""
    lines = []
    for item in differences:
        scored = [
            f"{text!r} ({score(translator, [(item.src, text)])[0].score:.6f})" if text.strip() else "nothing"
            for text in (item.ours.text, item.theirs.text)
        ]
        lines.append(f"{item.src!r}: {scored[0]} by PyTorch, {scored[1]} by the export")
    return lines


# -- speed ---------------------------------------------------------------------------------------------------------


def worker(options: argparse.Namespace) -> None:
    """Load an engine, say so, and answer each line of stdin with the seconds that all sentences take."""
    with translation.loaded(options) as (translate, sentences):
        print(json.dumps({"words": sum(len(line.split()) for line in sentences), "lines": len(sentences)}), flush=True)
        for _ in sys.stdin:
            started = time.perf_counter()
            translate(sentences)
            print(json.dumps(time.perf_counter() - started), flush=True)


def speed(options: argparse.Namespace) -> None:
    engines = [name for name in options.engines or ENGINES if options.marian or not name.startswith("marian")]
    shared = ["--beam-size", str(options.beam_size)]
    environment = {**ENVIRONMENT, "OMP_NUM_THREADS": str(options.threads)}
    if options.marian:
        environment[marian.PYTHON] = options.marian
    workers = {
        name: subprocess.Popen(
            [sys.executable, __file__, "worker", str(options.run), str(options.lines), *shared, "--engines", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for name in engines
    }  # fmt: skip
    about = {name: answer(one) for name, one in workers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for number in range(options.rounds):
        for name in engines[:: -1 if number % 2 else 1]:
            print(file=workers[name].stdin, flush=True)
            seconds[name].append(answer(workers[name]))
    for one in workers.values():
        one.communicate()
    with options.results.open("a", encoding="utf-8") as file:
        for name in engines:
            row = {"run": str(options.run), "beam": options.beam_size, "threads": options.threads, "engine": name}
            print(json.dumps(row | about[name] | {"seconds": seconds[name]}), file=file)


def answer(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{process.args}: ended with {process.wait()}")
    return json.loads(line)


def table(options: argparse.Namespace) -> None:
    rows = [json.loads(line) for line in read_lines(options.results)]
    for run in dict.fromkeys(row["run"] for row in rows):
        best: dict[tuple[str, int, int], float] = {}
        for row in rows:
            if row["run"] == run:
                cell = row["engine"], row["beam"], row["threads"]
                best[cell] = max(best.get(cell, 0.0), row["lines"] / min(row["seconds"]))
        columns = sorted({cell[1:] for cell in best})
        print(f"{run}: lines a second, and times Dragoman's in float32\n")
        print(f"| engine | weights |{''.join(f' beam {beam}, threads {count} |' for beam, count in columns)}")
        print("|---" * (2 + len(columns)) + "|")
        for engine in dict.fromkeys(row["engine"] for row in rows):
            name, _, precision = engine.partition(":")
            cells = [shown(best.get((engine, *column)), best.get((OURS, *column))) for column in columns]
            print(f"| {NAMES[name]} | {precision or 'float32'} | {' | '.join(cells)} |")


def shown(rate: float | None, ours: float | None) -> str:
    if rate is None:
        return ""
    return f"{rate:,.0f} ({rate / ours:.2f})" if ours else f"{rate:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for command in (equal, speed, worker):
        one = commands.add_parser(command.__name__)
        one.set_defaults(command=command, forced=False)
        one.add_argument("run", type=Path)
        one.add_argument("lines", type=Path)
        one.add_argument("--marian", metavar="PYTHON", default=os.environ.get(marian.PYTHON))
        one.add_argument("--engines", nargs="+", metavar="ENGINE")
        if command is equal:
            one.add_argument("--bergamot", metavar="FOLDER")
            one.add_argument("--ref", type=Path)
            one.add_argument("--listed", type=int, default=20, help="at most, for each row")
        else:
            one.add_argument("--beam-size", type=int, default=1)
            one.add_argument("--threads", type=int, default=1)
            one.add_argument("--rounds", type=int, default=3)
            one.add_argument("--results", type=Path, required=command is speed)
    one = commands.add_parser("table")
    one.set_defaults(command=table)
    one.add_argument("results", type=Path)
    options = parser.parse_args()
    for name, value in ((marian.PYTHON, "marian"), (bergamot.PACKAGE, "bergamot")):
        if getattr(options, value, None):
            os.environ[name] = getattr(options, value)
    options.src = getattr(options, "lines", None)
    options.command(options)


if __name__ == "__main__":
    main()
