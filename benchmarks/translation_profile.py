"""Microseconds of a step of the search by part, on one thread: by PyTorch's operations, and in C (`translation.py`).

By PyTorch's operations each part's functions are timed, without what they call of other parts. In C nothing is built
in: `perf` looks a few thousand times a second which line of `search.c` is under way, and in which function's service.

    python translation_profile.py                 # an order in JSON from stdin (`translation.py --profile`)
    python translation_profile.py --work          # the same: what runs while perf looks
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peers.untouched import ENVIRONMENT
from translation_engines import Cell, dragoman

from dragoman.backends.cpu_search import library
from dragoman.decoding import beam, greedy
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import TransformerState
from dragoman.nn.kv_cache import SharedKVCache

COMPILER = f"{os.environ.get('CC', 'cc')} -g"
"""With line numbers; the code is the same."""
RATE = 997
"""Looks a second: not the beat of anything else."""
PARTS = [
    "reading the source", "embedding", "products: query, key, value", "products: query of the source",
    "products: behind attention", "products: feed-forward", "products: output", "attention to the past",
    "attention to the source", "norms", "best candidates", "the beam's books", "reordering caches",
    "Python and the rest",
]  # fmt: skip
(READING, EMBEDDING, QKV, QUERY, BEHIND, FORWARD, OUTPUT, PAST, SOURCE, NORMS, BEST, BOOKS, CACHES, REST) = PARTS


# -- by PyTorch's operations ---------------------------------------------------------------------------------------


class Clock:
    """Seconds of parts that call each other: each has those in which none of the others runs."""

    def __init__(self) -> None:
        self.times: dict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.open, self.last = [REST], time.perf_counter()

    def turn(self) -> None:
        now = time.perf_counter()
        self.times[self.open[-1]] += now - self.last
        self.last = now

    def timed(self, part: str, function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self.calls[name] += 1
            self.open.append(READING if READING in self.open else part)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self.open.pop()

        return call


MODULES = {
    r"tgt_embedding$": EMBEDDING,
    r"decoder_layers\.\d+\.self_attention\.(query|key|value)_proj$": QKV,
    r"decoder_layers\.\d+\.cross_attention\.query_proj$": QUERY,
    r"decoder_layers\.\d+\.\w+_attention\.output_proj$": BEHIND,
    r"decoder_layers\.\d+\.feed_forward$": FORWARD,
    r"output$": OUTPUT,
    r"(.*\.norm|decoder_norm)$": NORMS,
    r"decoder_layers\.\d+\.self_attention$": PAST,
    r"decoder_layers\.\d+\.cross_attention$": SOURCE,
}
BOOKKEEPING = [
    "rank_candidates",
    "finishing",
    "going_on",
    "may_stop",
    "extend",
    "add_finished",
    "as_finished",
    "collect",
]


def by_pytorch(cell: Cell, sentences: Sequence[str], least: float) -> tuple[dict[str, float], int, int]:
    """(seconds of each part, steps, sentences)."""
    os.environ["CC"] = "false"
    translator = SearchTranslator.load(cell.run, device="cpu", beam_size=cell.beam, n_best=1)
    translator.translate(sentences)
    clock = Clock()
    for name, module in translator.model.named_modules():
        for pattern, part in MODULES.items():
            if re.match(pattern, name):
                module.forward = clock.timed(part, module.forward)
        if name.endswith("self_attention"):  # called by its parts, without `forward`
            module.attend_heads = clock.timed(PAST, module.attend_heads)
        if name.endswith("cross_attention"):
            module.attend_heads = clock.timed(SOURCE, module.attend_heads)
    own = type(translator.model)
    changed: list[tuple[Any, str, str]] = [
        (own, "encode", READING), (own, "decode_steps", REST), (TransformerState, "reorder", CACHES),
        (SharedKVCache, "attend", PAST), (beam, "best_tokens", BEST), (greedy, "best_tokens", BEST),
        *((beam, name, BOOKS) for name in BOOKKEEPING),
    ]  # fmt: skip
    kept = [getattr(owner, name) for owner, name, _ in changed]
    for (owner, name, part), function in zip(changed, kept, strict=True):
        setattr(owner, name, clock.timed(part, function, name))
    count, clock.last, until = 0, time.perf_counter(), time.perf_counter() + least
    while not count or time.perf_counter() < until:
        translator.translate(sentences)
        count += len(sentences)
    clock.turn()
    for (owner, name, _), function in zip(changed, kept, strict=True):
        setattr(owner, name, function)
    return dict(clock.times), clock.calls["decode_steps"], count


# -- in C ----------------------------------------------------------------------------------------------------------

MATRICES = {
    "qkv": QKV, "cross_query": QUERY, "self_out": BEHIND, "cross_out": BEHIND, "cross_kv": READING, "expand": FORWARD,
    "gate": FORWARD, "contract": FORWARD, "output": OUTPUT,
    "feed_forward": FORWARD,  # whose last call leaves no frame of its own
}  # fmt: skip
FUNCTIONS = {
    "attend_past": PAST, "attend_memory": SOURCE, "norm": NORMS, "norm_rows": NORMS, "embed": EMBEDDING,
    "best_tokens": BEST, "normaliser": BEST, "activate": FORWARD, "put_in_cache": PAST, "rotate": PAST,
    "memory_room": READING, "fill_memory": READING, "decode_step": REST,
}  # fmt: skip
"""Functions of `search.c` and the parts that they serve; others are the beam's books."""


def work(cell: Cell, sentences: Sequence[str], least: float) -> None:
    """Translate for a while; a line of JSON with the beginning and the end by the clock that perf has, and steps."""
    loaded, run, steps = dragoman(cell), library.library(), [0]
    if run is None:
        raise SystemExit("there is no search in C")
    plain = run.search_run

    def search_run(*args: Any) -> Any:
        steps[0] += 1
        return plain(*args)

    loaded.many(sentences)
    run.search_run = search_run
    started, count = time.monotonic(), 0
    while not count or time.monotonic() < started + least:
        loaded.many(sentences)
        count += len(sentences)
    print(json.dumps({"start": started, "end": time.monotonic(), "steps": steps[0], "sentences": count}))


def in_c(cell: Cell, sentences: Sequence[str], least: float) -> tuple[dict[str, float], int, int]:
    """As `by_pytorch`. Raises OSError or subprocess.SubprocessError where perf, or the compiler, is not there."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "perf.data")
        command = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", RATE]
        command += ["--call-graph", "dwarf,4096", "-o", record]
        order = {"cell": asdict(cell), "sentences": list(sentences), "least": least}
        done = subprocess.run(
            [*map(str, command), "--", sys.executable, __file__, "--work"], input=json.dumps(order), text=True,
            env={**ENVIRONMENT, "CC": COMPILER, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        looked = json.loads(done.stdout.splitlines()[-1])
        fields = ["perf", "script", "-i", str(record), "--no-inline", "-F", "time,ip,sym,symoff,dso"]
        script = subprocess.run(fields, capture_output=True, text=True, check=True).stdout
    looks = [chain for when, chain in samples(script) if looked["start"] <= when <= looked["end"]]
    lines = places({frame for chain in looks for frame in chain if "search-" in frame[2]})
    parts = Counter(part_of([line for frame in chain for line in lines.get(frame, [])]) for chain in looks)
    whole = looked["end"] - looked["start"]
    times = {part: count / len(looks) * whole for part, count in parts.items()}
    return times, looked["steps"], looked["sentences"]


Frame = tuple[str, int, str]
"""A function, bytes after its beginning, its library."""


def samples(script: str) -> Iterator[tuple[float, list[Frame]]]:
    """Each look of perf: seconds, and the functions under way, the innermost first."""
    for block in script.split("\n\n"):
        lines = block.strip().splitlines()
        if not lines or not (when := re.match(r"\s*([\d.]+):", lines[0])):
            continue
        frames = [re.match(r"\s*[0-9a-f]+ (.+)\+0x([0-9a-f]+) \((.*)\)", line) for line in lines[1:]]
        yield float(when[1]), [(frame[1], int(frame[2], 16), frame[3]) for frame in frames if frame]


def places(frames: set[Frame]) -> dict[Frame, list[tuple[str, str]]]:
    """(function, line of source) of each frame, and of those that are inlined there: the innermost first."""
    result: dict[Frame, list[tuple[str, str]]] = {}
    for path in {frame[2] for frame in frames}:
        names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        starts = {line.split()[2]: int(line.split()[0], 16) for line in names.splitlines() if len(line.split()) == 3}
        own = [frame for frame in frames if frame[2] == path and frame[0] in starts]
        given = [hex(starts[frame[0]] + frame[1]) for frame in own]
        done = subprocess.run(
            ["addr2line", "-a", "-f", "-i", "-e", path],
            input="\n".join(given),
            capture_output=True,
            text=True,
            check=True,
        )
        blocks = re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.MULTILINE)[1:]
        for frame, block in zip(own, blocks, strict=True):
            pairs = block.splitlines()
            plain = [name.split(".")[0] for name in pairs[::2]]  # `linear._omp_fn.0` is a part of `linear`
            result[frame] = [(name, source_line(place)) for name, place in zip(plain, pairs[1::2], strict=True)]
    return result


SOURCE_LINES = library.SOURCE.read_text(encoding="utf-8").splitlines()


def source_line(place: str) -> str:
    number = re.search(r"search\.c:(\d+)", place)
    return SOURCE_LINES[int(number[1]) - 1] if number else ""


def part_of(chain: Sequence[tuple[str, str]]) -> str:
    """The part that a chain of functions of `search.c`, the innermost first, is at work for."""
    names = [name for name, _ in chain]
    if not names:
        return REST
    if "encode" in names:
        return READING
    if "linear" in names:
        for _, line in chain[names.index("linear") :]:
            for matrix in re.findall(r"\w+", line):
                if matrix in MATRICES:
                    return MATRICES[matrix]
    return next((FUNCTIONS[name] for name in names if name in FUNCTIONS), BOOKS)


# -- both ----------------------------------------------------------------------------------------------------------


def profile(cell: Cell, sentences: Sequence[str], least: float) -> Iterator[str]:
    """A table in Markdown; `least` seconds of each way are looked at. PyTorch has to have one thread."""
    columns, why = {"PyTorch's operations": by_pytorch(cell, sentences, least)}, ""
    try:
        columns["in C"] = in_c(cell, sentences, least)
    except (OSError, subprocess.SubprocessError) as error:
        why = f"; in C not measured, for it takes perf, addr2line and a compiler ({type(error).__name__})"
    yield f"\n### {Path(cell.model).name}, beam {cell.beam}: where a step of the search spends its time\n"
    yield f"float32, one thread, {len(sentences):,} sentences in one call{why}.\n"
    yield f"| microseconds of a step (of a row) | {' | '.join(columns)} |"
    yield "|---" * (1 + len(columns)) + "|"
    # A sentence has a row for each place of its beam; without a forced length its rows are not known.
    rows = [count * (cell.forced or 1) * cell.beam for _, _, count in columns.values()]
    for part in [*PARTS, "all"]:
        values = [times.get(part, sum(times.values()) if part == "all" else 0.0) for times, _, _ in columns.values()]
        cells = [
            f"{1e6 * value / steps:,.0f}" + (f" ({1e6 * value / count:.2f})" if cell.forced else "")
            for value, (_, steps, _), count in zip(values, columns.values(), rows, strict=True)
        ]
        yield f"| {part} | {' | '.join(cells)} |"


def main() -> None:
    order = json.load(sys.stdin)
    if sys.argv[1:] == ["--work"]:
        work(Cell(**order["cell"]), order["sentences"], order["least"])
    else:
        print("\n".join(profile(Cell(**order["cell"]), order["sentences"], order["least"])))


if __name__ == "__main__":
    main()
