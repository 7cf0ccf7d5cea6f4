"""Matches that training pairs get behind their source, from other pairs of the corpus (`alignment/learnt_memory.py`).

Which match it is is drawn: in a corpus whose pages repeat most best ones are nearly the same sentence, and a model that
has only met such ones would copy bad ones too.
"""

import random
from collections.abc import Iterable

from dragoman.alignment.learnt_memory import MAX_TRAINED_SIMILARITY, MIN_SIMILARITY, LinksOf, marked
from dragoman.text.alike import AlikeTexts, most_alike, uncased

MAX_MATCHED_PAIRS = 1_000_000
"""Pairs that matches come from, at most: they are held in memory."""
BOUNDS = (MAX_TRAINED_SIMILARITY, 0.9, 0.8, 0.7, 0.6, MIN_SIMILARITY)
"""Similarities below which the best match is taken, each as often."""
MIN_BAD_SIMILARITY = 0.3
"""The least similarity of a bad match, which a model learns to leave alone."""
BAD_MATCH_SHARE = 0.1
"""The share of bad matches."""


class TrainingMatches:
    """The pairs of a corpus, to look for matches of their sources in."""

    def __init__(self, pairs: Iterable[tuple[str, str]], links_of: LinksOf) -> None:
        self._tgt = {src: tgt for src, tgt in pairs if src.strip() and tgt.strip()}
        self._src = list(self._tgt)
        self._texts = AlikeTexts([_form(src) for src in self._src])
        self._links_of = links_of
        self._known: dict[str, tuple[int | None, ...]] = {}
        """Rows of the best matches below each bound, by the form of a source: an epoch asks what the one before did."""

    def __call__(self, src: str, rng: random.Random) -> str | None:
        """The translation of a match of a source, marked; None where the corpus has none of the class drawn or below.

        A function of the source and the random generator.
        """
        best = self._best(_form(src))
        place = rng.randrange(len(BOUNDS) - 1) if rng.random() >= BAD_MATCH_SHARE else len(BOUNDS) - 1
        row = best[place]
        if row is None:
            return None
        match = self._src[row]
        return marked(src, match, self._tgt[match], self._links_of)

    def _best(self, form: str) -> tuple[int | None, ...]:
        if form not in self._known:
            rows = self._texts.candidates(form, MIN_BAD_SIMILARITY)
            alike = most_alike(form, {int(row): self._texts.texts[row] for row in rows}, None, MIN_BAD_SIMILARITY)
            least = [*[MIN_SIMILARITY] * (len(BOUNDS) - 1), MIN_BAD_SIMILARITY]
            self._known[form] = tuple(
                next((row for row, similarity in alike if lower <= similarity < bound), None)
                for bound, lower in zip(BOUNDS, least, strict=True)
            )
        return self._known[form]


def _form(src: str) -> str:
    return uncased(" ".join(src.split()))
