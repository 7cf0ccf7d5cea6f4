"""Metrics that are computed elsewhere: figures in a file, a command that prints them, a Python file of one's own.

COMET and MetricX need versions of libraries that do not fit beside ours, so they run in an environment of their own:

    dragoman evaluate --hypotheses out.en --src test.de --ref test.en \\
        --metric "comet=!comet-score -s {src} -t {hyp} -r {ref}"

A file of one's own has a function `score(sources, hypotheses, references)` that gives a number for each sentence; the
figure is their mean. It may have `NAME` and `HIGHER_IS_BETTER`.

These come from the command line alone. A run's recipe never names any: a run of strangers executes nothing.
"""

import importlib.util
import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import Error, show
from dragoman.quality.metrics import FloatArray, Metric, metric
from dragoman.quality.test_set import TestSet
from dragoman.text.lines import find, read_lines

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan", re.IGNORECASE)
_SEGMENT = re.compile(r"\bsegment\s+\d+", re.IGNORECASE)
_FIELDS = ("score", "prediction", "COMET", "comet", "metricx", "value")
"""Where a record of JSON has its figure."""


class MeanMetric(Metric):
    """The mean of a figure that each sentence has by itself."""

    def __init__(self, name: str, origin: str, figures: Callable[..., list[float]], higher_is_better: bool) -> None:
        self.name, self.title, self.higher_is_better = name, name, higher_is_better
        self._origin, self._figures = origin, figures

    def statistics(self, test: TestSet, hypotheses: Sequence[str]) -> FloatArray:
        figures = self._figures(test, list(hypotheses))
        if len(figures) != len(test):
            raise Error.UNEQUAL_COUNTS(
                f"`metric` {self.name}: {self._origin} has {len(figures):,} figures for {len(test):,} sentences of "
                f"{test.name}: there must be one for each, in their order"
            )
        if not np.isfinite(figures).all():
            line = int(np.flatnonzero(~np.isfinite(figures))[0]) + 1
            raise Error.WRONG_SHAPE(f"`metric` {self.name}: {self._origin} has no number for sentence {line}")
        return np.stack([np.array(figures, dtype=np.float64), np.ones(len(figures))], axis=1)

    def score(self, sums: FloatArray) -> float:
        return float(sums[0] / sums[1]) if sums[1] else 0.0

    def signature(self) -> str:
        return f"mean over sentences, from {self._origin}"


def any_metric(
    text: str, tgt_lang: str = "", *, system: str = "", tokenize: str = "auto", lowercase: bool = False
) -> Metric:
    """The metric that a --metric stands for: a name with settings, NAME=FILE, NAME=!COMMAND, or FILE.py.

    `NAME:lower` says that lower is better. In a file's name {system} is the name of the system that is scored.
    """
    head, equals, rest = text.partition("=")
    if text.endswith(".py") and not equals:
        return _plug_in(Path(text))
    if not equals or ":" in head.removesuffix(":lower").removesuffix(":higher"):
        return metric(text, tgt_lang, tokenize=tokenize, lowercase=lowercase)
    name, _, direction = head.partition(":")
    if not name or not rest:
        raise Error.WRONG_OPTION(f"`metric` {text}", "write NAME=FILE or NAME=!COMMAND")
    higher = direction != "lower"
    if rest.startswith("!"):
        command = rest[1:].strip()
        return MeanMetric(name, f"`{command}`", lambda test, lines: _called(name, command, test, lines), higher)
    path = Path(rest.replace("{system}", system))
    return MeanMetric(name, show(path), lambda test, _: figures_of(path, len(test)), higher)


def figures_of(path: Path, count: int) -> list[float]:
    """The figures of a file: the last number of each line, or a field of each record of JSON, a line each or a list.

    Of lines such as COMET's ("Segment 3   score: 0.81") those of segments count, and the one of the whole does not.
    Raises DragomanError for a line without a number.
    """
    return _figures("\n".join(read_lines(find(path))), show(path), count)


def _figures(text: str, origin: str, count: int) -> list[float]:
    if text.lstrip()[:1] in "[{" and text.strip():
        return _json_figures(text, origin, count)
    lines = [line for line in text.splitlines() if line.strip()]
    segments = [line for line in lines if _SEGMENT.search(line)]
    figures = []
    for number, line in enumerate(segments or lines, 1):
        numbers = _NUMBER.findall(line)
        if not numbers:
            raise Error.WRONG_SHAPE(f"there is no number: {line[:60]!r}", file=origin, line=number)
        figures.append(float(numbers[-1]))
    if len(figures) == count + 1 and not segments:
        figures.pop()  # the figure of the whole stands last
    return figures


def _json_figures(text: str, origin: str, count: int) -> list[float]:
    try:
        records = json.loads(text)
    except ValueError:
        try:
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise Error.WRONG_SHAPE(f"neither JSON nor a number a line ({error})", file=origin) from error
    fields = [records] if isinstance(records, list) else dict(records).values()
    lists = [field for field in fields if isinstance(field, list)]
    for entries in lists:
        if len(entries) == count or len(lists) == 1:
            return [_field(entry, origin, number) for number, entry in enumerate(entries, 1)]
    raise Error.WRONG_SHAPE(f"there is no list of {count:,} figures in it", file=origin)


def _field(entry: Any, origin: str, number: int) -> float:
    value = entry
    if isinstance(entry, dict):
        value = next((entry[name] for name in _FIELDS if name in entry), None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Error.WRONG_SHAPE(f"record {number} has no figure; it is looked for in {', '.join(_FIELDS)}", file=origin)
    return float(value)


def _called(name: str, command: str, test: TestSet, hypotheses: list[str]) -> list[float]:
    """The figures that a command prints for the files that it is given in place of {src}, {hyp} and {ref}."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        places = {"src": test.sources, "hyp": hypotheses}
        places |= {f"ref{number or ''}": lines for number, lines in enumerate(test.references)}
        files = {}
        for place, lines in places.items():
            files[place] = Path(folder) / f"{place}.txt"
            files[place].write_text("".join(" ".join(line.splitlines()) + "\n" for line in lines), encoding="utf-8")
        words = []
        for word in shlex.split(command):
            for place, file in files.items():
                word = word.replace("{" + place + "}", str(file))
            words.append(word)
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Error.EXTERNAL_FAILED(f"`metric` {name}: `{words[0]}` cannot be run: {error.strerror}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Error.EXTERNAL_FAILED(f"`metric` {name}: `{words[0]}` ended with code {done.returncode}: {last[:200]}")
    return _figures(done.stdout, f"what `{words[0]}` printed", len(test))


def _plug_in(path: Path) -> Metric:
    """The metric of a Python file of the user's own."""
    where = find(path)
    spec = importlib.util.spec_from_file_location(f"dragoman_metric_{where.stem}", where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Error.EXTERNAL_FAILED(f"`metric` {show(path)}: {type(error).__name__}: {error}") from error
    if not callable(getattr(module, "score", None)):
        raise Error.EXTERNAL_FAILED(f"`metric` {show(path)}: it has no function score(sources, hypotheses, references)")

    def figures(test: TestSet, hypotheses: list[str]) -> list[float]:
        try:
            return [float(value) for value in module.score(test.sources, hypotheses, test.references)]
        except Exception as error:
            raise Error.EXTERNAL_FAILED(f"`metric` {show(path)}: score(): {type(error).__name__}: {error}") from error

    name = str(getattr(module, "NAME", where.stem))
    return MeanMetric(name, show(path), figures, bool(getattr(module, "HIGHER_IS_BETTER", True)))
