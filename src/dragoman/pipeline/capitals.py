"""Lines in capitals: read in lower case, answered in capitals, as most models have hardly seen any.

A model has learnt words as they are usually written; one in capitals is letter salad to it. In lower case it is read
well if training had some such lines (`corpus.augment.lower`), and better than in capitals if not
(benchmarks/log/2026-11.md, "sentences, memories, messy text").
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from dragoman.inference.translation import NBest, Translation
from dragoman.text.case import is_in_capitals, lower, upper
from dragoman.text.placeholders import span_ranges


def in_lower_case(
    n_best: NBest, sentences: Sequence[str], languages: tuple[str, str] = ("", "")
) -> list[list[Translation]]:
    """The translations of each sentence; of lines in capitals they are in capitals. Placeholders stay."""
    src, tgt = languages
    capitals = [is_in_capitals(text, src) for text in sentences]
    small, large = partial(lower, language=src), partial(upper, language=tgt)
    read = [_outside_of_spans(text, small) if loud else text for text, loud in zip(sentences, capitals, strict=True)]
    return [
        [replace(item, text=_outside_of_spans(item.text, large)) for item in items] if loud else items
        for items, loud in zip(n_best(read), capitals, strict=True)
    ]


def _outside_of_spans(text: str, change: Callable[[str], str]) -> str:
    """The text changed, but for its placeholders."""
    out, at = "", 0
    for start, end in span_ranges(text):
        out += change(text[at:start]) + text[start:end]
        at = end
    return out + change(text[at:])
