"""BLEU by the length of the source: does a system keep a long sentence in mind? (Bahdanau et al. 2015, figure 2)"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dragoman.analysis.figure import DASHES, PALETTE, sheet, styled
from dragoman.analysis.plots import GRID, MUTED
from dragoman.errors import DragomanError
from dragoman.evaluation.translation import EvaluationConfig, score
from dragoman.inference.translator import Translator
from dragoman.text.corpus import Pair
from dragoman.text.tokenizers.words import WordsConfig, tokens_of

if TYPE_CHECKING:
    import matplotlib.figure

EDGES = (5, 10, 15, 20, 25, 30, 40, 50)
"""The longest source, in words, of each bucket; a last bucket takes what is longer."""

FEW = 30
"""Below so many sentences a corpus BLEU says little; such points are drawn hollow."""

Result = tuple[int, str, str]
"""(length of the source, translation, reference)"""


@dataclass(frozen=True)
class Bucket:
    """The sentences of `shortest` to `longest` words (None: no limit), and the BLEU of each system on them."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: dict[str, float]

    @property
    def title(self) -> str:
        return f"{self.shortest}–{self.longest}" if self.longest else f"{self.shortest}+"


def translated(translator: Translator, pairs: Sequence[Pair]) -> list[Result]:
    """Translate a test set, and measure its sources in words, punctuation included (Han characters, kana: each one)."""
    rules = WordsConfig(rules="characters")
    hypotheses = translator.translate([pair.src for pair in pairs])
    return [
        (len(tokens_of(pair.src, rules)), hypothesis, pair.tgt)
        for pair, hypothesis in zip(pairs, hypotheses, strict=True)
    ]


def bleu_by_length(
    results: Mapping[str, Sequence[Result]],
    edges: Sequence[int] = EDGES,
    *,
    config: EvaluationConfig | None = None,
    tgt_lang: str = "",
) -> list[Bucket]:
    """Corpus BLEU in buckets of source length; a bucket without sentences is left out.

    Raises DragomanError unless all systems translated the same sentences and the edges rise.
    """
    sources = [[(length, ref) for length, _, ref in rows] for rows in results.values()]
    if not sources or not sources[0]:
        raise DragomanError("there is nothing to score: no sentences")
    if any(other != sources[0] for other in sources):
        raise DragomanError("the systems to compare must have translated the same sentences")
    check_edges(edges)
    buckets = []
    for below, longest in pairwise([0, *edges, None]):
        rows = [i for i, (length, _) in enumerate(sources[0]) if _within(length, below or 0, longest)]
        if rows:
            bleu = {
                name: score(
                    [found[i][1] for i in rows],
                    [found[i][2] for i in rows],
                    config or EvaluationConfig(),
                    tgt_lang,
                    with_ter=False,
                ).bleu
                for name, found in results.items()
            }
            buckets.append(Bucket((below or 0) + 1, longest, len(rows), bleu))
    return buckets


def check_edges(edges: Sequence[int]) -> None:
    """Raises DragomanError unless the edges are positive and rise."""
    if list(edges) != sorted({edge for edge in edges if edge > 0}):
        raise DragomanError(f"edges of length buckets must be positive and rise: {', '.join(map(str, edges))}")


def _within(length: int, below: int, longest: int | None) -> bool:
    return max(length, 1) > below and (longest is None or length <= longest)


def lengths_table(buckets: Sequence[Bucket]) -> str:
    """The buckets as text: words, sentences, BLEU of each system."""
    names = list(buckets[0].bleu)
    widths = [max(6, len(name)) for name in names]
    lines = [f"{'words':<7}  {'sentences':>9}  " + "  ".join(f"{n:>{w}}" for n, w in zip(names, widths, strict=True))]
    for bucket in buckets:
        values = "  ".join(f"{bucket.bleu[n]:>{w}.2f}" for n, w in zip(names, widths, strict=True))
        lines.append(f"{bucket.title:<7}  {bucket.sentences:>9,}  {values}")
    return "\n".join(lines)


@styled
def lengths_figure(buckets: Sequence[Bucket]) -> "matplotlib.figure.Figure":
    """Above, a line for each system; below, how many sentences each bucket has."""
    figure = sheet(max(6.0, 1.6 + 0.85 * len(buckets)), 5.2, "BLEU by source length")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    places = list(range(len(buckets)))
    enough = [bucket.sentences >= FEW for bucket in buckets]
    for number, name in enumerate(buckets[0].bleu):
        color, dash = PALETTE[number % len(PALETTE)], DASHES[number % len(DASHES)]
        values = [bucket.bleu[name] for bucket in buckets]
        above.plot(places, values, color=color, linestyle=dash, label=name)
        for place, value, solid in zip(places, values, enough, strict=True):
            face = color if solid else "white"
            above.plot([place], [value], color=color, marker="o", markerfacecolor=face, clip_on=False)
    above.set_ylabel("BLEU (0 to 100)")
    above.set_ylim(0, 1.12 * max(1.0, *(value for bucket in buckets for value in bucket.bleu.values())))
    above.legend(loc="best")
    if not all(enough):
        above.set_title(f"○ fewer than {FEW} sentences: read with care", loc="right", fontsize=8.5)
    above.tick_params(labelbottom=False, bottom=False)
    bars = below.bar(places, [bucket.sentences for bucket in buckets], color=GRID, width=0.7)
    below.bar_label(bars, [f"{bucket.sentences:,}" for bucket in buckets], fontsize=8, color=MUTED)
    below.set_ylim(0, 1.25 * max(bucket.sentences for bucket in buckets))
    below.set(xlabel="words in the source sentence", ylabel="sentences")
    below.set_xticks(places, labels=[bucket.title for bucket in buckets])
    return figure
