"""The page of a comparison: one HTML file that holds everything, works offline and runs no script."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from dragoman.analysis.marked import marked
from dragoman.evaluation.comparison import Comparison, Pair, Telling
from dragoman.languages.codes import name_of
from dragoman.quality.metrics import FloatArray
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


def write_page(comparison: Comparison, path: Path) -> None:
    """Write the page of a comparison."""
    template = (files("dragoman.analysis") / "comparison.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["p"] = shown_p
    page = environment.from_string(template).render(**_view(comparison))
    atomic_io.replace_text(path, page)


def shown_p(value: float) -> str:
    """A p-value in three digits.

    >>> shown_p(0.00012), shown_p(0.0312)
    ('< 0.001', '0.031')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _view(comparison: Comparison) -> dict[str, Any]:
    test = comparison.test
    titles = {metric.name: (metric.title, metric.higher_is_better) for metric in comparison.metrics}
    return {
        "test": test,
        "names": [comparison.first.name, *(pair.second.name for pair in comparison.pairs)],
        "languages": [name_of(code) if code else "" for code in test.languages],
        "codes": test.languages,
        "systems": [comparison.first, *(pair.second for pair in comparison.pairs)],
        "first": comparison.first.name,
        "pairs": [_pair(pair) for pair in comparison.pairs],
        "titles": titles,
        "signatures": comparison.signatures,
        "explained": EXPLAINED,
        "by": comparison.metrics[0].title,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    counts, _ = np.histogram(pair.differences, bins=BINS)
    top = max(1, int(counts.max()))
    bars = [
        {"from": low, "to": high, "count": int(count), "share": round(100 * int(count) / top, 1)}
        for low, high, count in zip(BINS, BINS[1:], counts, strict=False)
    ]
    kinds = list(dict.fromkeys(kind for it in pair.sentences for fault in it.faults for kind in fault))
    return {
        "name": pair.second.name,
        "verdict": pair.verdict,
        "tests": pair.tests,
        "parts": pair.parts,
        "classes": pair.classes,
        "bars": bars,
        "wins": _count(pair.differences, 1),
        "losses": _count(pair.differences, -1),
        "kinds": kinds,
        "sentences": [_sentence(it) for it in pair.sentences],
    }


def _count(differences: FloatArray, sign: int) -> int:
    return int((sign * differences > 0).sum())


def _sentence(it: Telling) -> dict[str, Any]:
    return {
        "line": it.line,
        "src": it.src,
        "ref": it.ref,
        "difference": it.difference,
        "runs": [marked(text, it.ref) for text in (it.first, it.second)],
        "faults": it.faults,
        "kinds": sorted({kind.replace(" ", "-") for fault in it.faults for kind in fault}),
    }
