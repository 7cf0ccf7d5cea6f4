"""Matches of a translation memory that a model has learnt to read behind the sentence (Bulté and Tezcan 2019, "Neural
Fuzzy Repair").

    Open the file.⟦memory⟧ Die Datei⟦other⟧ schließen⟦/other⟧.

The words of the match's translation that do not belong to what both sources have in common are marked: those that its
own source's other words are linked to (Xu et al. 2020, "Boosting Neural Machine Translation with Similar Translations";
Tezcan et al. 2021).
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from rapidfuzz.distance import Indel

from dragoman.alignment.lexicon import WordAligner
from dragoman.runs.atomic_io import replace_bytes
from dragoman.text.annotations import END_OF_OTHER, MEMORY, OTHER, Placed, with_pieces
from dragoman.text.words import words

MIN_SIMILARITY = 0.5
"""The least similarity of a match."""
MAX_TRAINED_SIMILARITY = 0.99
"""Matches of at least this similarity are left out of training: they say what the reference says."""
LEXICON = "lexicon.safetensors"
"""The file of a run with the word links that its training pairs were marked by."""

LinksOf = Callable[[Sequence[str], Sequence[str]], list[tuple[int, int]]]
"""Links (source word, target word) of the words of a pair."""


def with_match(text: str, marked_match: str) -> str:
    """A sentence, which may have pieces, with the translation of a match behind it."""
    return f"{text.rstrip()}{MEMORY} {marked_match}"


def marked(text: str, src: str, tgt: str, links_of: LinksOf) -> str:
    """The translation of a match with marks around the words that do not belong to what `text` and the source of the
    match have in common.

    >>> marked("open the file", "close the file", "die Datei schließen", lambda src, tgt: [(0, 2), (1, 0), (2, 1)])
    'die Datei⟦other⟧ schließen⟦/other⟧'
    """
    sides = [words(side) for side in (src, tgt)]
    ours, theirs, tgt_words = ([side[slice(*word)] for word in words(side)] for side in (text, src, tgt))
    blocks = Indel.opcodes([word.lower() for word in theirs], [word.lower() for word in ours])
    common = {at for block in blocks if block.tag == "equal" for at in range(block.src_start, block.src_end)}
    linked: dict[int, list[int]] = {}
    for src_word, tgt_word in links_of(theirs, tgt_words):
        linked.setdefault(tgt_word, []).append(src_word)
    belongs = [
        2 * len(common.intersection(srcs)) > len(srcs) if (srcs := linked.get(at)) else None
        for at in range(len(tgt_words))
    ]
    pieces: list[Placed] = []
    for start, end in _runs(belongs):
        first, last = sides[1][start], sides[1][end - 1]
        pieces += [Placed(first.start, OTHER), Placed(last.end, END_OF_OTHER)]
    return with_pieces(tgt, pieces)


def _runs(belongs: Sequence[bool | None]) -> list[tuple[int, int]]:
    """(from, to) of each run of words that do not belong. A word without links (None) belongs to the run that it stands
    inside of."""
    runs: list[tuple[int, int]] = []
    for at, one in enumerate(belongs):
        if one is not False:
            continue
        if runs and all(between is None for between in belongs[runs[-1][1] : at]):
            runs[-1] = runs[-1][0], at + 1
        else:
            runs.append((at, at + 1))
    return runs


def links_of_run(run: Path | None) -> LinksOf:
    """The word links of a run that has learnt matches; no links where the run has no lexicon, and then no word is
    marked."""
    path = None if run is None else run / LEXICON
    if path is None or not path.is_file():
        return lambda src, tgt: []
    return _aligner(path, path.stat().st_mtime_ns).links


def copy_links(run: Path, to: Path) -> None:
    """Copy the word links, if there are any, from a run to a run that is made of it."""
    if (path := run / LEXICON).is_file():
        replace_bytes(to / LEXICON, path.read_bytes())


@functools.lru_cache(4)
def _aligner(path: Path, changed: int) -> WordAligner:
    return WordAligner.load(path)
