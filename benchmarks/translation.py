"""The speed of translation engines on the same models, sentences and searches, in turn on one machine.

    python benchmarks/translation.py [--shapes demo 7.6M 60M] [--beams 1 5] [--threads 1 2] [--passes 3]
    python benchmarks/translation.py --run RUN --src test.de [--ref test.en] ...
    python benchmarks/translation.py --passes 0 --results FILE          # the tables of passes of other days
    python benchmarks/translation.py --profile [--shapes demo] ...      # microseconds of a step of the search, by part

Without a run: random weights in three shapes, whose translations all have the same length. ENGINE is NAME:PRECISION or
NAME:PRECISION:RULE, RULE being when a beam is done (`DecodingConfig.stopping`): `dragoman`; `pytorch`, the same without
a C compiler; `engine` (our `--engine ctranslate2`); `ctranslate2` itself; `marian` (pymarian of the Python that
DRAGOMAN_MARIAN names); `huggingface` (transformers' `generate`). What is not installed is a line of the table.

What is fair, and how it goes wrong elsewhere, is in `translation.md`. Each pass of each engine is a process of its own,
and the engines take turns; so what else happens on the machine hits all of them. The clock runs from text to text, the
model loaded, after sentences that do not count. Passes are added to FILE, a line of JSON each.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from peers.untouched import ENVIRONMENT
from translation_engines import ENGINES, NAMES, OWN_RULE, SHAPES, Cell, Loaded, NotThere, model_folder, seconds

from dragoman.device import cpu_capabilities
from dragoman.errors import DragomanError
from dragoman.text.lines import read_lines

OURS = "dragoman:float32"
BASE = "ctranslate2"
DEFAULT = [
    OURS, "dragoman:float32:full", "dragoman:bfloat16", "dragoman:bfloat16:full", "dragoman:int8", "dragoman:int8:full",
    "ctranslate2:float32", "ctranslate2:bfloat16", "ctranslate2:int8", "marian:float32", "marian:int8",
    "huggingface:float32", "huggingface:bfloat16",
]  # fmt: skip
WARM_UP = 256
"""Sentences that do not count: the memory of batches as large as any is there when the clock starts."""
WARM_SECONDS = 2.0
FEWEST = 32
"""Of slow engines, for so long, and so many at least."""
ALONE_SECONDS = 4.0
"""For so long sentences are translated one by one, at most."""
FLAGS = {"avx2": "AVX2", "avx512_f": "AVX-512", "avx512_vnni": "AVX-512 VNNI", "avx_vnni": "AVX-VNNI",
         "avx512_bf16": "AVX-512 bf16", "amx_int8": "AMX int8", "amx_bf16": "AMX bf16"}  # fmt: skip
IMITATED = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "CT2_FORCE_CPU_ISA": "AVX2", "INTGEMM_CPUID": "AVX2",
        "CC": f"{os.environ.get('CC', 'cc')} -mno-avx512f -mno-avxvnni",
    }
}  # fmt: skip
"""What an older processor is imitated by; a compiler's own option wins over -march=native."""


# -- one pass ------------------------------------------------------------------------------------------------------


def one_pass(order: dict[str, Any]) -> None:
    """Load one engine and time it; a line of JSON."""
    cell, sentences = Cell(**order["cell"]), order["sentences"]
    if cell.engine not in ("dragoman", "pytorch", "engine"):  # limits that are read when the first product is computed
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
    started = time.perf_counter()
    try:
        loaded = ENGINES[cell.engine](cell)
        row = {"load_seconds": time.perf_counter() - started, "versions": loaded.versions}
        row |= timed(loaded, sentences, order["alone"], order["most_seconds"])
    except ImportError as error:
        row = {"not_there": f"not installed: pip install {error.name}"}
    except (NotThere, DragomanError) as error:
        row = {"not_there": " ".join(str(error).split())}
    else:
        if order["references"]:
            row["bleu"] = bleu(row["translations"], order["references"], order["tokenize"])
        row["translations"] = [zlib.crc32(line.encode()) for line in row["translations"]]
    print(json.dumps(row))


def timed(loaded: Loaded, sentences: Sequence[str], alone: int, most_seconds: float) -> dict[str, Any]:
    """Seconds of all sentences in one call (of the first ones, where all would take too long), and of single ones."""
    warm = sentences[:FEWEST]
    loaded.many(warm)
    rate = len(warm) / seconds(lambda: loaded.many(warm))
    warm = sentences[: max(FEWEST, min(WARM_UP, int(rate * WARM_SECONDS)))]
    loaded.tune(warm)
    rate = len(warm) / seconds(lambda: loaded.many(warm))
    if len(sentences) > rate * most_seconds:
        sentences = sentences[: max(FEWEST, int(rate * most_seconds))]
    wall, cpu = time.perf_counter(), cpu_seconds(loaded)
    translations = loaded.many(sentences)
    wall, cpu = time.perf_counter() - wall, cpu_seconds(loaded) - cpu
    for sentence in warm[:3]:
        loaded.alone(sentence)
    times, until = [], time.perf_counter() + ALONE_SECONDS
    for sentence in sentences[:alone]:
        times.append(seconds(lambda sentence=sentence: loaded.alone(sentence)))  # type: ignore[misc]
        if time.perf_counter() > until:
            break
    return {
        "sentences": len(translations), "seconds": wall, "cpu_seconds": cpu, "translations": translations,
        **loaded.batches, "alone": len(times), "alone_ms": 1000 * statistics.median(times),
    }  # fmt: skip


def cpu_seconds(loaded: Loaded) -> float:
    """The processor time of this process, and of the one in which an engine translates."""
    return time.process_time() + sum(loaded.elsewhere)


def bleu(translations: Sequence[str], references: Sequence[str], tokenize: str) -> float | None:
    import sacrebleu

    if len(translations) < len(references):
        return None
    return sacrebleu.BLEU(tokenize=tokenize, force=True).corpus_score(translations, [references]).score


# -- all passes ----------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, models: dict[str, tuple[Path, int]]) -> Iterator[dict[str, Any]]:
    """A row for each pass; who is not there is asked once."""
    cells = [
        (name, replace(cell, beam=beam, threads=threads, model=str(folder), forced=forced))
        for name, (folder, forced) in models.items()
        for beam in options.beams
        for threads in options.threads
        for cell in map(cell_of, options.engines)
        if not cell.rule or (beam > 1 and not forced)  # where nothing ends before its length rules are one
    ]
    missing: set[Cell] = set()
    done, clock = 0, time.perf_counter()
    about = {"machine": machine(), "commit": commit(), "date": str(datetime.date.today()), "imitated": options.imitate}
    for number in range(options.passes):
        for name, cell in cells:
            done += 1
            if cell in missing:
                continue
            row = child(options, cell)
            if "not_there" in row:
                missing.add(cell)
            row = {**about, **asdict(cell), "model": name, **row}
            left = (time.perf_counter() - clock) / done * (len(cells) * options.passes - done) / 60
            print(f"pass {number + 1}: {shown(row)}; {left:.0f} min left", file=sys.stderr, flush=True)
            yield row


def profiles(options: argparse.Namespace, models: dict[str, tuple[Path, int]]) -> None:
    """Print where a step of our search spends its time, for each model and beam."""
    print(f"{machine()}; commit {commit()}, {datetime.date.today()}")
    for folder, forced in models.values():
        for beam in options.beams:
            cell = Cell(str(folder), "dragoman", "float32", "", beam, 1, forced)
            order = {"cell": asdict(cell), "sentences": sentences_of(options, cell), "least": options.profile}
            script = Path(__file__).with_name("translation_profile.py")
            subprocess.run(
                [sys.executable, script],
                input=json.dumps(order),
                text=True,
                env=environment_of(options, cell),
                check=True,
            )


def sentences_of(options: argparse.Namespace, cell: Cell) -> list[str]:
    if cell.forced:
        return SHAPES[Path(cell.model).name].sentences(options.lines)
    return list(read_lines(options.src))[: options.lines]


def environment_of(options: argparse.Namespace, cell: Cell) -> dict[str, str]:
    return {**ENVIRONMENT, **IMITATED.get(options.imitate, {}), "OMP_NUM_THREADS": str(cell.threads)}


def child(options: argparse.Namespace, cell: Cell) -> dict[str, Any]:
    references = list(read_lines(options.ref))[: options.lines] if options.ref and not cell.forced else []
    order = {
        "cell": asdict(cell), "sentences": sentences_of(options, cell), "references": references,
        "tokenize": options.tokenize, "alone": options.alone, "most_seconds": options.most_seconds,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, __file__, "--one-pass"], input=json.dumps(order), text=True,
        env=environment_of(options, cell), stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{cell}: ended with {done.returncode}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def cell_of(text: str) -> Cell:
    name, precision, rule = (*text.split(":"), "", "")[:3]
    if name not in ENGINES:
        raise SystemExit(f"{text}: no such engine; there are {', '.join(ENGINES)}")
    return Cell("", name, precision or "float32", rule, 0, 0)


def shown(row: dict[str, Any]) -> str:
    kind = f"{row['model']} {row['engine']}:{row['precision']}{':' * bool(row['rule'])}{row['rule']}"
    if "not_there" in row:
        return f"{kind}: {row['not_there']}"
    rate = row["sentences"] / row["seconds"]
    return f"{kind} beam {row['beam']} threads {row['threads']}: {rate:,.0f}/s, one in {row['alone_ms']:.1f} ms"


def machine() -> str:
    """The processor, what of it matters here, and the system."""
    known = cpu_capabilities()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    fields = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    name = fields.get("model name") or known.get("cpu_name") or platform.processor() or platform.machine()
    family = f", family {fields['cpu family']} model {fields['model']}" if "cpu family" in fields else ""
    flags = [text for flag, text in FLAGS.items() if known.get(flag)]
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{name}{family}, {os.cpu_count()} cores, {', '.join(flags) or 'no vector instructions known'}, {system}"


def commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


# -- tables --------------------------------------------------------------------------------------------------------


def tables(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """For each machine and model: sentences a second of many in one call, and milliseconds of one alone."""
    versions = {name: text for row in rows for name, text in row.get("versions", {}).items()}
    yield ", ".join(f"{name} {text}" for name, text in versions.items())
    for key in dict.fromkeys((row["machine"], row["imitated"], row["model"]) for row in rows):
        mine = [row for row in rows if (row["machine"], row["imitated"], row["model"]) == key]
        commits = ", ".join(dict.fromkeys(f"{row['commit']} ({row['date']})" for row in mine))
        imitated = f"; **{key[1]} imitated**" if key[1] else ""
        forced = next((row["forced"] for row in mine), 0)
        what = f"random weights, {forced} tokens each" if forced else "as trained"
        yield f"\n### {key[2]}: {what}\n\n{key[0]}{imitated}; commit {commits}"
        yield from table(mine, "many")
        yield from table(mine, "alone")


def table(rows: Sequence[dict[str, Any]], what: str) -> Iterator[str]:
    columns = sorted({(row["beam"], row["threads"]) for row in rows})
    timed_rows = [row for row in rows if "not_there" not in row]
    heads = [f"beam {beam}, {threads} thread{'s' * (threads > 1)}" for beam, threads in columns]
    scored = ["BLEU", "differ"] if what == "many" else []
    many = "\nMany in one call: sentences a second, best of passes (median), and times CTranslate2's of the precision."
    single = "\nOne alone: milliseconds, median over sentences, best of passes (median), and times CTranslate2's speed."
    yield many if what == "many" else single
    yield f"\n| engine | precision | beam is done | {' | '.join([*heads, *scored])} |"
    yield "|---" * (3 + len(heads) + len(scored)) + "|"
    for engine, precision, rule in sorted(
        dict.fromkeys((row["engine"], row["precision"], row["rule"]) for row in rows), key=order
    ):
        mine = [
            row for row in timed_rows if (row["engine"], row["precision"], row["rule"]) == (engine, precision, rule)
        ]
        head = f"| {NAMES[engine]} | {precision} | {rule or OWN_RULE[engine]} |"
        if not mine:
            why = next(row["not_there"] for row in rows if (row["engine"], row["precision"]) == (engine, precision))
            yield f"{head} {why} |{' |' * (len(columns) + len(scored) - 1)}" if what == "many" else f"{head} |"
            continue
        cells = [speed(timed_rows, mine, column, what) for column in columns]
        cells += [scores(timed_rows, mine, columns, kind) for kind in scored]
        yield f"{head} {' | '.join(cells)} |"


def order(kind: tuple[str, str, str]) -> tuple[int, tuple[str, str, str]]:
    """Engines in the order of DEFAULT, others behind."""
    text = ":".join(kind).rstrip(":")
    return DEFAULT.index(text) if text in DEFAULT else len(DEFAULT), kind


def speed(rows: Sequence[dict[str, Any]], mine: Sequence[dict[str, Any]], column: tuple[int, int], what: str) -> str:
    """The best of the passes, the median of them, and times the base's."""
    own = passes(mine, column, what)
    if not own:
        return ""
    best, median = max(own), statistics.median(own)
    same = [row for row in rows if row["engine"] == BASE]
    base = passes([row for row in same if row["precision"] == mine[0]["precision"]], column, what)
    other = passes([row for row in same if row["precision"] == "float32"], column, what)
    ratio = f" {best / max(base):.2f}x" if base else f" [{best / max(other):.2f}x]" if other else ""
    if what == "many":
        return f"{best:,.0f} ({median:,.0f}){ratio}"
    return f"{1000 / best:.2f} ({1000 / median:.2f}){ratio}"


def passes(rows: Sequence[dict[str, Any]], column: tuple[int, int], what: str) -> list[float]:
    """Sentences a second of each pass."""
    chosen = [row for row in rows if (row["beam"], row["threads"]) == column]
    return [row["sentences"] / row["seconds"] if what == "many" else 1000 / row["alone_ms"] for row in chosen]


def scores(
    rows: Sequence[dict[str, Any]], mine: Sequence[dict[str, Any]], columns: Sequence[tuple[int, int]], kind: str
) -> str:
    """For each beam: BLEU, or how many translations are not those of ours in float32, of the same rule where it is."""
    cells = []
    for beam in dict.fromkeys(beam for beam, _ in columns):
        own = [row for row in mine if row["beam"] == beam]
        if kind == "BLEU":
            cells.append("".join(f"{value:.2f}" for value in [row.get("bleu") for row in own][:1] if value is not None))
            continue
        ours = [row for row in rows if (row["engine"], row["precision"], row["beam"]) == ("dragoman", "float32", beam)]
        rule = mine[0]["rule"] or OWN_RULE[mine[0]["engine"]]
        ours.sort(key=lambda row: (row["rule"] != rule, row["rule"]))
        if own and ours:
            pairs = list(zip(own[0]["translations"], ours[0]["translations"], strict=False))
            cells.append(f"{sum(one != other for one, other in pairs):,} of {len(pairs):,}")
    return ", ".join(filter(None, cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="*", choices=SHAPES)
    parser.add_argument("--run", type=Path, help="a trained run; --src is its text")
    parser.add_argument("--src", type=Path)
    parser.add_argument("--ref", type=Path)
    parser.add_argument("--tokenize", default="none", help="sacreBLEU's tokenizer for --ref")
    parser.add_argument("--engines", nargs="+", default=DEFAULT, metavar="ENGINE")
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, os.cpu_count() or 1])
    parser.add_argument("--lines", type=int, default=1000, help="sentences in one call")
    parser.add_argument("--alone", type=int, default=100, help="sentences one by one")
    parser.add_argument("--most-seconds", type=float, default=20.0, help="fewer sentences where they take longer")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--imitate", choices=IMITATED, default="", help="an older processor")
    parser.add_argument("--folder", type=Path, help="where models and exports are kept; a temporary one")
    parser.add_argument("--results", type=Path, help="file of all passes, which are added to it")
    parser.add_argument(
        "--profile", nargs="?", type=float, const=5.0, metavar="SECONDS",
        help="instead of speed: where a step of our search spends its time, looking for so long",
    )  # fmt: skip
    parser.add_argument("--one-pass", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_pass:
        one_pass(json.load(sys.stdin))
        return
    if options.run and not options.src:
        parser.error("--run: give its text with --src")
    options.threads = list(dict.fromkeys(options.threads))
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        shapes = options.shapes if options.shapes is not None else [] if options.run else ["demo", "7.6M", "60M"]
        models = {name: (model_folder(root, None, name), SHAPES[name].tokens) for name in shapes if options.passes}
        if options.run:
            models[options.run.name] = model_folder(root, options.run, ""), 0
        if options.profile is not None:
            profiles(options, models)
        else:
            run_all(options, models)


def run_all(options: argparse.Namespace, models: dict[str, tuple[Path, int]]) -> None:
    rows = [json.loads(line) for line in read_lines(options.results)] if known(options.results) else []
    for row in measure(options, models):
        rows.append(row)
        if options.results:
            with options.results.open("a", encoding="utf-8") as file:
                print(json.dumps(row), file=file)
    print("\n".join(tables(rows)))


def known(path: Path | None) -> bool:
    return path is not None and path.exists()


if __name__ == "__main__":
    main()
