"""Faults of a whole output that a score does not tell: shifted, swapped, cut, untranslated, and what lines have lost.

An output that is one line off costs all of its score and looks like a bad model; five hundred copied sources look like
a mediocre one. Each check names its fault and the lines. The references say what is usual: where a reference, too, has
another number than its source, nothing is said of the translation. A fault is told from the slips of an ordinary system
by its share of the lines that could have it (docs/judging.md has the shares that were measured).
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.languages.punctuation import CLOSING, END
from dragoman.quality.faults import (
    Fault,
    Line,
    beyond_references,
    empty,
    is_copy,
    negation_lost,
    numbers_lost,
    repetition,
    target_language,
    written_densely,
)
from dragoman.quality.leakage import Leakage, key
from dragoman.quality.misread import Misread
from dragoman.quality.test_set import TestSet
from dragoman.quality.text_forms import ESCAPES, FRAMES, SPECIAL_TOKENS, forms_of
from dragoman.text.negation import negations
from dragoman.text.numbers import numbers_in
from dragoman.text.placeholders import without_spans
from dragoman.text.words import folded

Array = np.ndarray[Any, np.dtype[Any]]

MAX_OFFSET_LINES = 8
"""Lines up and down that a shift is looked for."""
HASH_BUCKETS = 4096
"""Places of the hashed words and n-grams of a line; collisions only add a little noise."""
BLOCK_LINES = 2000
"""The most lines among which displaced lines are looked for: each is compared with each."""

MIN_COPY_LETTERS = 8
"""Letters of a source whose copy is no name by chance."""
MIN_SHIFT_LINES = 6
MIN_SHIFT_GAIN = 0.12
"""By how much lines resemble another reference more than their own, in the mean, before they count as shifted."""
MIN_SWAP_GAIN = 0.5
"""The same for two lines that resemble each other's reference, both together."""
_END = re.compile(rf"{END}|[:;{CLOSING}]\s*$")


@dataclass(frozen=True)
class OutputFault:
    """A fault of an output: its name, what it is in words, and the lines, counted from 1."""

    kind: str
    message: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}{named(self.lines)}"


def named(lines: Sequence[int], most: int = 8) -> str:
    """The lines of a finding in brackets.

    >>> named([3, 4, 9]), named(range(1, 20), 2)
    (' (lines 3, 4, 9)', ' (lines 1, 2 and 17 more)')
    """
    if not lines:
        return ""
    more = f" and {len(lines) - most:,} more" if len(lines) > most else ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(f'{line:,}' for line in lines[:most])}{more})"


def check_output(test: TestSet, hypotheses: Sequence[str]) -> list[OutputFault]:
    """The faults of an output of a test set with references, the gravest first.

    Of shifted lines nothing more is said: they are compared with what they do not translate. Where references stand in
    the place of a source that is not known, what needs none is looked for.
    """
    output = _Output(test, hypotheses)
    findings: list[OutputFault] = []
    for name in OF_REFERENCES if output.sources == output.references else CHECKS:
        findings += CHECKS[name](output)
        if any(fault.kind == "shifted" for fault in findings):
            break
    return findings


class _Output:
    """An output beside its test set, with what several checks want to know."""

    def __init__(self, test: TestSet, hypotheses: Sequence[str]) -> None:
        self.test, self.hypotheses = test, [line.strip() for line in hypotheses]
        self.sources = [line.strip() for line in test.sources]
        self.references = [line.strip() for line in test.references[0]]

    def __len__(self) -> int:
        return len(self.hypotheses)

    def lines(self, fault: Fault, rows: Iterable[int] | None = None) -> tuple[int, ...]:
        """The lines, counted from 1, whose translation has a fault that its reference has not."""
        return tuple(
            row + 1
            for row in (rows if rows is not None else range(len(self)))
            if beyond_references(fault, self.line(row), self.references[row : row + 1]) is not None
        )

    def line(self, row: int, translations: Sequence[str] | None = None) -> Line:
        """A source with its translation, or with the translation in `translations`."""
        return Line(self.sources[row], (translations or self.hypotheses)[row], self.test.languages)


Check = Callable[[_Output], Iterable[OutputFault]]


def _finding(kind: str, lines: Sequence[int], message: str, least: float = 1) -> list[OutputFault]:
    """The finding of some lines, where they are `least` or more; its message begins with their number."""
    return [OutputFault(kind, f"{len(lines):,} lines {message}", tuple(lines))] if len(lines) >= least else []


def no_translation(output: _Output) -> list[OutputFault]:
    """Lines without a word, where source and reference have some."""
    lines = output.lines(empty, [row for row, src in enumerate(output.sources) if src])
    blank = _lines(hyp and not ref for hyp, ref in zip(output.hypotheses, output.references, strict=True))
    return [
        *_finding("empty", lines, "have no translation"),
        *_finding("no reference", blank, "are scored against a blank reference: leave them out of all files"),
    ]


def wrong_form(output: _Output) -> Iterator[OutputFault]:
    """Lines that are not plain text: cut into subwords, escaped, tokenised, garbled, without capitals, with columns or
    numbers around them, or several lines for one source."""
    hyps, refs = output.hypotheses, output.references
    shown = [(set(forms_of(hyp)), set(forms_of(ref))) for hyp, ref in zip(hyps, refs, strict=True)]
    least = max(2, 0.05 * len(output))
    for form, advice in (
        ("cut into subwords", "are pieces (@@, ▁, ##): join them before scoring"),
        ("tokenised", "are tokenised and their references are not: detokenise them before scoring"),
    ):
        yield from _finding(form, _lines(form in hyp - ref for hyp, ref in shown), advice, least)
    both = _lines("tokenised" in hyp & ref for hyp, ref in shown)
    advice = "are tokenised, and their references too: such BLEU is comparable with none of plain text"
    yield from _finding("tokenised", both, advice, max(5, 0.5 * len(output)))
    pairs = list(zip(hyps, refs, strict=True))
    for form, pattern, advice in (
        ("escaped", ESCAPES, "have &apos; or the like for a character: unescape them"),
        ("special tokens", SPECIAL_TOKENS, "have </s>, <unk> or the like in them: decode without special tokens"),
    ):
        lines = _lines(pattern.search(hyp) and not pattern.search(ref) for hyp, ref in pairs)
        yield from _finding(form, lines, advice, least)
    for form, pattern, advice in FRAMES:
        framed = [(bool(pattern.search(hyp)), bool(pattern.search(ref))) for hyp, ref in pairs]
        yield from _finding(form, _lines(hyp > ref for hyp, ref in framed), advice, max(3, 0.5 * len(output)))
    tabs = _lines("\t" in ref and "\t" not in hyp for hyp, ref in pairs)
    advice = "have a tab in their reference alone: one reference in a file (cut -f1), `ref` twice for two"
    yield from _finding("columns", tabs, advice, max(3, 0.5 * len(output)))
    misread = Misread(output.test.languages[1])
    garbled = _lines(misread.is_misread(hyp) and not misread.is_misread(ref) for hyp, ref in pairs)
    yield from _finding("mojibake", garbled, "were read in another encoding than they are written in", least)
    listed = _lines(" ||| " in hyp and " ||| " not in ref for hyp, ref in pairs)
    yield from _finding("several outputs", listed, "have ||| in them: keep the text of the first alone", least)
    for form, cased, advice in (
        ("lower-cased", str.lower, "have no capital and their references have some"),
        ("upper-cased", str.upper, "have capitals alone and their references have others"),
    ):
        rows = [row for row, ref in enumerate(refs) if ref != cased(ref)]
        same = [row + 1 for row in rows if hyps[row] and hyps[row] == cased(hyps[row])]
        if len(same) > 0.9 * len(rows):
            yield from _finding(form, same, advice, max(5, 0.3 * len(output)))


def _lines(has_fault: Iterable[object]) -> list[int]:
    """The numbers, from 1, of the lines that have a fault."""
    return [number for number, fault in enumerate(has_fault, 1) if fault]


def references_given(output: _Output) -> Iterator[OutputFault]:
    """The references themselves."""
    pairs = list(zip(output.hypotheses, output.references, strict=True))
    words = sum(len(folded(line)) for line in output.references)
    if len(pairs) >= 20 and words > 5 * len(pairs) and all(hyp == ref for hyp, ref in pairs):
        yield OutputFault("references", "every line is its reference: is this the file of references?", ())


def shifted(output: _Output) -> Iterator[OutputFault]:
    """Stretches of lines that translate the lines before or after them."""
    stretches = _shifts(_vectors(output.hypotheses), _vectors(output.references))
    for first, last, offset in stretches:
        where = f"lines {first:,} to {last:,}" if last < len(output) else f"from line {first:,} on, lines"
        side = "further down" if offset > 0 else "further up"
        yield OutputFault(
            "shifted",
            f"{where} hold the translations of sources {abs(offset)} line{'s' if abs(offset) > 1 else ''} {side}",
            (first,),
        )


def swapped(output: _Output) -> list[OutputFault]:
    """Pairs of lines that each hold the other's translation."""
    hyp, ref = _vectors(output.hypotheses), _vectors(output.references)
    lines: list[int] = []
    for begin in range(0, len(output), BLOCK_LINES):
        likeness = hyp[begin : begin + BLOCK_LINES] @ ref[begin : begin + BLOCK_LINES].T
        own = likeness.diagonal()
        gain = likeness + likeness.T - own[:, None] - own[None, :]
        np.fill_diagonal(gain, 0.0)
        best = gain.argmax(axis=1)
        for row, other in enumerate(best.tolist()):
            if row < other and best[other] == row and gain[row, other] > MIN_SWAP_GAIN:
                lines += (begin + row + 1, begin + other + 1)
    return _finding("swapped", lines, "hold each other's translation, two by two", max(6, 0.012 * len(output)))


def duplicated(output: _Output) -> list[OutputFault]:
    """One translation for several sources that have different references."""
    seen: dict[str, list[int]] = {}
    for row, line in enumerate(output.hypotheses):
        if len(folded(line)) >= (6 if written_densely(line) else 4):
            seen.setdefault(line, []).append(row)
    lines = []
    for rows in seen.values():
        different = {(output.sources[row], output.references[row]) for row in rows}
        if len({src for src, _ in different}) > 1 and len({ref for _, ref in different}) > 1:
            lines += [row + 1 for row in rows[1:]]
    message = "repeat the translation of another line whose source is different"
    return _finding("duplicated", sorted(lines), message, max(3, 0.03 * len(output)))


def truncated(output: _Output) -> list[OutputFault]:
    """Lines that stop early: shorter than their references, and without the mark that ends these."""
    sizes = sorted(len(hyp) / len(ref) for hyp, ref in zip(output.hypotheses, output.references, strict=True) if ref)
    usual = sizes[len(sizes) // 2] if sizes else 1.0
    lines = tuple(
        number
        for number, (hyp, ref) in enumerate(zip(output.hypotheses, output.references, strict=True), 1)
        if hyp and len(ref) >= 12 and len(hyp) < 0.75 * usual * len(ref) and _END.search(ref) and not _END.search(hyp)
    )
    return _finding("truncated", lines, "stop before their sentence does", max(2, 0.015 * len(output)))


def untranslated(output: _Output) -> list[OutputFault]:
    """Lines that equal their source although the reference does not."""
    rows = [row for row, src in enumerate(output.sources) if len(src) >= MIN_COPY_LETTERS]
    lines = output.lines(lambda line: "" if is_copy(line.src, line.tgt) else None, rows)
    return _finding("untranslated", lines, "are their source", max(2, 0.01 * len(output)))


def wrong_language(output: _Output) -> Iterator[OutputFault]:
    """Lines in another language than the references are in."""
    src, tgt = output.test.languages
    if not src or not tgt:
        return
    lines = output.lines(target_language)
    if len(lines) >= max(2, 0.03 * len(output)):
        languages = Counter(target_language(output.line(line - 1)) for line in lines)
        yield OutputFault("wrong language", f"{len(lines):,} lines are in {languages.most_common(1)[0][0]}", lines)


def numbers_changed(output: _Output) -> Iterator[OutputFault]:
    """Numbers of the source that the reference has and the translation has not."""
    bearing = [row for row, src in enumerate(output.sources) if numbers_in(without_spans(src)[0])]
    kept = [row for row in bearing if numbers_lost(output.line(row, output.references)) is None]
    lines = output.lines(numbers_lost, kept)
    if _is_telling(len(lines), len(kept)):
        message = f"{len(lines):,} of {len(kept):,} lines with numbers have lost or changed one"
        yield OutputFault("numbers changed", message, lines)


def negation_dropped(output: _Output) -> Iterator[OutputFault]:
    """Sources and references say no, and the translation does not."""
    src_lang, tgt_lang = output.test.languages
    rows = [
        row
        for row, (src, ref) in enumerate(zip(output.sources, output.references, strict=True))
        if negations(src, src_lang) and negations(ref, tgt_lang)
    ]
    lines = output.lines(negation_lost, [row for row in rows if output.hypotheses[row]])
    if _is_telling(len(lines), len(rows)):
        message = f"{len(lines):,} of {len(rows):,} lines that say no have lost it"
        yield OutputFault("negation dropped", message, lines)


def repeated(output: _Output) -> list[OutputFault]:
    """Words again and again, or the same half twice."""
    message = "say the same words again and again"
    return _finding("repeated", output.lines(repetition), message, max(2, 0.035 * len(output)))


def _is_telling(wrong: int, count: int) -> bool:
    """Of the few lines with a number or a negation a weak system loses many: either most, or many are wrong."""
    return wrong >= max(3, 0.35 * count) and (wrong >= 20 or wrong >= 0.8 * count)


CHECKS: dict[str, Check] = {
    "wrong form": wrong_form,
    "references": references_given,
    "shifted": shifted,
    "swapped": swapped,
    "empty": no_translation,
    "untranslated": untranslated,
    "wrong language": wrong_language,
    "truncated": truncated,
    "duplicated": duplicated,
    "repeated": repeated,
    "numbers changed": numbers_changed,
    "negation dropped": negation_dropped,
}
"""By the name of the fault."""

OF_REFERENCES = ("wrong form", "references", "shifted", "swapped", "empty")
"""The checks that need no source."""


def leaks(test: TestSet, training: Iterable[str]) -> list[OutputFault]:
    """Sources of a test set that stand in the training text, exactly or nearly: their scores say nothing."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(test.sources, 1):
        places.setdefault(key(line), []).append(number)
    held, leaked = Leakage(test.sources), set[int]()
    for src in training:
        spelt = key(src)
        if held.exactly(spelt):
            leaked.update(places[spelt])
    if not leaked:
        return []
    message = f"{len(leaked):,} source lines ({100 * len(leaked) / len(test):.1f} %) are in the training text"
    return [OutputFault("leaked", message, tuple(sorted(leaked)))]


def _shifts(hyp: Array, ref: Array) -> list[tuple[int, int, int]]:
    """(first line, last line, offset) of stretches that resemble the references so many lines further down."""
    own = (hyp * ref).sum(axis=1)
    stretches: list[tuple[int, int, int]] = []
    for offset in sorted(range(-MAX_OFFSET_LINES, MAX_OFFSET_LINES + 1), key=abs):
        if not offset or abs(offset) >= len(own):
            continue
        rows = slice(max(0, -offset), len(own) - max(0, offset))
        others = slice(rows.start + offset, rows.stop + offset)
        gains = (hyp[rows] * ref[others]).sum(axis=1) - own[rows]
        first, last = _best_stretch(gains - MIN_SHIFT_GAIN / 2)
        if last - first + 1 >= MIN_SHIFT_LINES and gains[first : last + 1].mean() >= MIN_SHIFT_GAIN:
            begin, end = rows.start + first + 1, rows.start + last + 1
            if not any(begin <= other_end and other_begin <= end for other_begin, other_end, _ in stretches):
                stretches.append((begin, len(own) if end >= len(own) - abs(offset) else end, offset))
    return sorted(stretches)


def _best_stretch(gains: Array) -> tuple[int, int]:
    """The first and last place of the stretch with the largest sum; (0, -1): no sum is above 0."""
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    last = int((sums - np.minimum.accumulate(sums)).argmax())
    return int(sums[: last + 1].argmin()), last - 1


def _vectors(lines: Sequence[str]) -> Array:
    """(lines, HASH_BUCKETS): what words and parts of words a line has, rare ones with more weight (TF-IDF), of length
    1."""
    counts = np.zeros((len(lines), HASH_BUCKETS), dtype=np.float32)
    for row, line in enumerate(lines):
        text = line.lower()
        grams = folded(text) + [text[place : place + 4] for place in range(len(text) - 3)]
        if written_densely(text):
            grams += [text[place : place + 2] for place in range(len(text) - 1)]
        places = [zlib.crc32(gram.encode("utf-8", "surrogatepass")) % HASH_BUCKETS for gram in grams]
        np.add.at(counts[row], places, 1.0)
    seen = (counts > 0).sum(axis=0)
    weights = np.log1p(counts) * np.log((len(lines) + 1) / (seen + 1)) ** 2
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    return weights / np.where(lengths > 0, lengths, 1.0)
