"""Of the translations that a search holds, the one in which a run of the opposite direction finds its source again.

A model that reads English and writes German says how probable a translation y of x is. A model that reads German and
writes English says how probable x is, given y. The second model sees that a translation leaves something out, or puts
something in. Both together are the noisy channel's view of translation, here without its language model, as the first
model has learnt language already (Yee, Dauphin and Auli 2019, "Simple and Effective Noisy Channel Modeling for Neural
Machine Translation", equation 5):

    score(y)  +  weight * log P(x | y) / (tokens of x with its </s>)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.errors import Error
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.languages.codes import same_languages

SOURCES_AT_ONCE = 256
"""Sources whose translations are scored together: enough for full batches, little to be held."""
DEFAULT_WEIGHT = 0.3
"""The best weight on the validation set of Multi30k; 0.2 to 0.5 did nearly as well (benchmarks/log/2026-11.md,
"2026-11-22: a run back ranks the n best (noisy channel)").

Beside the search's usual score, the mean log probability of a token. Translations then become longer, by 1 to 3 %
there. With `--length-penalty 0` that score is a sum, a weight of 3.5 is about as much, and they keep their length:
better where they are long enough already.
"""


@dataclass(frozen=True)
class NoisyChannelReranker:
    """A way to rank translations, for `SearchTranslator.reranked_by`."""

    back: SearchTranslator
    """A run from the language of the translations to the language of their sources."""
    weight: float = DEFAULT_WEIGHT

    def __call__(self, sources: Sequence[str], translations: Sequence[list[Translation]]) -> list[list[Translation]]:
        """The translations of each source, best first, with the sums above as their scores.

        Translations that the run back cannot judge come last: they are blank, or longer than what it reads at once.
        Where the source is blank or longer than what it writes, all stay as they are.
        """
        ranked: list[list[Translation]] = []
        for start in range(0, len(translations), SOURCES_AT_ONCE):
            end = start + SOURCES_AT_ONCE
            ranked += self._ranked(sources[start:end], translations[start:end])
        return ranked

    def _ranked(self, sources: Sequence[str], translations: Sequence[list[Translation]]) -> list[list[Translation]]:
        judged = [self._judged(src, items) for src, items in zip(sources, translations, strict=True)]
        pairs = [(item.text, src) for src, items in zip(sources, judged, strict=True) for item in items]
        scored = iter(score(self.back, pairs))
        ranked = []
        for items, of_source in zip(translations, judged, strict=True):
            seen = [(item, next(scored)) for item in of_source]
            sums = [replace(item, score=item.score + self.weight * x.log_prob / len(x.tokens)) for item, x in seen]
            others = [item for item in items if item not in of_source]
            ranked.append([*sorted(sums, key=lambda item: -item.score), *others])  # stable: equals stay in their order
        return ranked

    def _judged(self, source: str, items: list[Translation]) -> list[Translation]:
        """The translations that the run back can judge."""
        back, longest = self.back, self.back.model.max_target_length
        written = len(back.tokenizers.tgt.encode(back.normalize(source)))
        if not 0 < written < (longest or written + 1):
            return []
        read = [len(back.tokenizers.src.encode(back.normalize(item.text))) for item in items]
        return [item for item, length in zip(items, read, strict=True) if 0 < length <= back.max_src_tokens]


def require_opposite(forward: SearchTranslator, back: SearchTranslator, name: str) -> None:
    """Raises DragomanError unless `back`, the run called `name`, translates in the direction opposite to `forward`."""
    if forward.languages is None or back.languages is None or same_languages(forward.languages, back.languages[::-1]):
        return
    (reads, writes), (src, tgt) = back.languages, forward.languages
    raise Error.LANGUAGES_DIFFER(
        f"translates from {reads} to {writes}; to rank translations, give one from {tgt} to {src}", file=name
    )
