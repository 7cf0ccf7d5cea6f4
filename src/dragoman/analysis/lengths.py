"""BLEU by the length of the source sentence (Bahdanau et al. 2015, figure 2)."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.analysis.columns import columns
from dragoman.analysis.figure import GRID, MUTED, Figure, line_style, new_figure, styled
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.text.corpus import Pair
from dragoman.text.tokenizers.words import WordsConfig, tokens_of

BUCKET_EDGES_WORDS = (5, 10, 15, 20, 25, 30, 40, 50)
"""The longest source of each bucket; a last bucket takes longer ones."""
FEW_SENTENCES = 30  # a corpus BLEU of fewer sentences says little; such points are drawn hollow

Result = tuple[int, str, str]  # (length of the source, translation, reference)


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


def translated(translator: SearchTranslator, pairs: Sequence[Pair]) -> list[Result]:
    """Translate a test set, and measure its sources in words, punctuation included (Han characters, kana: each one)."""
    rules = WordsConfig(rules="characters")
    hypotheses = translator.translate([pair.src for pair in pairs])
    return [
        (len(tokens_of(pair.src, rules)), hypothesis, pair.tgt)
        for pair, hypothesis in zip(pairs, hypotheses, strict=True)
    ]


def bleu_by_length(
    results: Mapping[str, Sequence[Result]],
    edges: Sequence[int] = BUCKET_EDGES_WORDS,
    *,
    config: EvaluationConfig | None = None,
    tgt_lang: str = "",
) -> list[Bucket]:
    """Corpus BLEU in buckets of source length; a bucket without sentences is left out.

    Raises DragomanError unless all systems translated the same sentences and the edges rise.
    """
    sources = [[(length, ref) for length, _, ref in rows] for rows in results.values()]
    if not sources or not sources[0]:
        raise Error.EMPTY("there is nothing to score: no sentences")
    if any(other != sources[0] for other in sources):
        raise Error.UNEQUAL_COUNTS("the systems to compare must have translated the same sentences")
    check_edges(edges)
    members: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    for number, (length, _) in enumerate(sources[0]):
        members[bisect_left(edges, length)].append(number)
    buckets = []
    for shortest, longest, rows in zip([1, *(edge + 1 for edge in edges)], [*edges, None], members, strict=True):
        bleu = {}
        for name, result in results.items() if rows else ():
            hypotheses, references = [result[i][1] for i in rows], [result[i][2] for i in rows]
            scores = score(hypotheses, references, config or EvaluationConfig(), tgt_lang, with_ter=False)
            bleu[name] = scores.bleu
        if rows:
            buckets.append(Bucket(shortest, longest, len(rows), bleu))
    return buckets


def check_edges(edges: Sequence[int]) -> None:
    """Raises DragomanError unless the edges are positive and rise."""
    if list(edges) != sorted({edge for edge in edges if edge > 0}):
        raise Error.WRONG_OPTION(f"edges of length buckets must be positive and rise: {', '.join(map(str, edges))}")


def lengths_table(buckets: Sequence[Bucket], title: str = "BLEU") -> str:
    """The buckets as text: words, sentences, BLEU of each system; `title`: what it is called, if not that."""
    rows = [["words  ", f"{'sentences':>9}", *(f"{name:>6}" for name in buckets[0].bleu)]]
    for bucket in buckets:
        rows.append([bucket.title, f"{bucket.sentences:,}", *(f"{value:.2f}" for value in bucket.bleu.values())])
    return (f"{title}\n" if title != "BLEU" else "") + columns(rows)


@styled
def lengths_figure(buckets: Sequence[Bucket], title: str = "BLEU") -> Figure:
    """At the top a line for each system, below it the number of sentences of each bucket."""
    figure = new_figure(max(6.0, 1.6 + 0.85 * len(buckets)), 5.2, f"{title} by source length")
    scores, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    places = list(range(len(buckets)))
    sentences = [bucket.sentences for bucket in buckets]
    for number, name in enumerate(buckets[0].bleu):
        style = line_style(number)
        values = [bucket.bleu[name] for bucket in buckets]
        scores.plot(places, values, label=name, **style)
        for place, value, count in zip(places, values, sentences, strict=True):
            face = style["color"] if count >= FEW_SENTENCES else "white"
            scores.plot([place], [value], color=style["color"], marker="o", markerfacecolor=face, clip_on=False)
    scores.set_ylabel(f"{title} (0 to 100)")
    scores.set_ylim(0, 1.12 * max(1.0, *(value for bucket in buckets for value in bucket.bleu.values())))
    scores.legend(loc="best")
    if min(sentences) < FEW_SENTENCES:
        scores.set_title(f"○ fewer than {FEW_SENTENCES} sentences: read with care", loc="right", fontsize=8.5)
    scores.tick_params(labelbottom=False, bottom=False)
    bars = counts.bar(places, sentences, color=GRID, width=0.7)
    counts.bar_label(bars, [f"{count:,}" for count in sentences], fontsize=8, color=MUTED)
    counts.set(ylim=(0, 1.25 * max(sentences)), xlabel="words in the source sentence", ylabel="sentences")
    counts.set_xticks(places, labels=[bucket.title for bucket in buckets])
    return figure
