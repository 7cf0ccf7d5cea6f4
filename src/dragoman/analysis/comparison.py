"""The page of a comparison: one HTML file that holds everything, works offline and runs no script."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from jinja2 import Environment, StrictUndefined

from dragoman.analysis.marked import marked
from dragoman.evaluation.comparison import ExampleSentence, SystemComparison, SystemPair
from dragoman.languages.codes import name_of, tag_of
from dragoman.quality.significance import Test
from dragoman.runs import atomic_io

BINS = (-100, -40, -25, -15, -8, -3, -0.5, 0.5, 3, 8, 15, 25, 40, 100)
"""Bounds of the bars of differences, in points of sentence chrF."""
EXPLAINED = {
    "length": "longer or shorter than the reference by more than a third",
    "negation": "says no where source and reference do not, or the other way round",
    "numbers": "a number is missing or another one",
    "names": "a name that source and reference share is missing",
    "terms": "a term of the glossary is missing",
    "word order": "the reference's words in another order",
    "repetition": "the same words again and again",
    "untranslated": "words of the source that no reference has",
    "hallucinated": "words that the alignment of training text does not find in the source",
}


def write_page(comparison: SystemComparison, path: Path) -> None:
    """Write the page of a comparison."""
    template = (files("dragoman.analysis") / "comparison.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"p": shown_p, "exchanges": exchanges, "bars": _bars, "kinds": _kinds}
    environment.filters |= {"marked": marked, "tag": tag_of}
    page = environment.from_string(template).render(
        test=comparison.test,
        first=comparison.first.name,
        systems=[comparison.first, *(pair.second for pair in comparison.pairs)],
        pairs=comparison.pairs,
        languages=[name_of(code) if code else "" for code in comparison.test.languages],
        titles={metric.name: (metric.title, metric.higher_is_better) for metric in comparison.metrics},
        by=comparison.metrics[0].title,
        signatures=comparison.signatures,
        explained=EXPLAINED,
    )
    atomic_io.replace_text(path, page)


def shown_p(value: float) -> str:
    """A p-value in three digits.

    >>> shown_p(0.00012), shown_p(0.0312)
    ('< 0.001', '0.031')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def exchanges(test: Test) -> str:
    """The exchanges that a p-value is a share of."""
    if test.exchanges == 1:
        return "no sentence differs"
    return f"all {test.exchanges:,} exchanges" if test.exact else f"{test.exchanges:,} random exchanges"


def _bars(pair: SystemPair) -> list[dict[str, float]]:
    """The number of sentences by their difference, and the height of each bar in per cent of the highest."""
    counts, _ = np.histogram(pair.differences, bins=BINS)
    top = max(1, int(counts.max()))
    return [
        {"from": low, "to": high, "count": int(count), "share": round(100 * int(count) / top, 1)}
        for low, high, count in zip(BINS, BINS[1:], counts, strict=False)
    ]


def _kinds(sentences: Sequence[ExampleSentence]) -> list[str]:
    """The kinds of faults that sentences have."""
    return list(dict.fromkeys(kind for it in sentences for fault in it.faults for kind in fault))
