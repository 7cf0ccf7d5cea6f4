"""Chapter 13: measuring a translation."""

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from sacrebleu import sentence_bleu

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_matches() -> list[int]:
    """Predict what this code returns: the matches of single words, then those of pairs of words."""
    hypothesis, reference = (text.split() for text in ("the the the cat", "the cat sees the dog"))
    matches = []
    for n in (1, 2):
        ours, theirs = (
            Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (hypothesis, reference)
        )
        matches.append((ours & theirs).total())
    return matches


def brevity_penalty(c: int, r: int) -> float:
    """Compute BLEU's penalty of translations that are too short. Fill in the gap ____.

    c is the length of the translations, r that of the references. The penalty is exp(1 - r/c) where c is smaller, else 1.
    """
    return math.exp(1 - r / c) if c < r else 1.0


def modified_precision(hypothesis: str, reference: str, n: int) -> tuple[int, int]:
    """Count the n-grams of a translation that the reference has: (matches, all n-grams of the translation).

    Words are split at blanks. An n-gram matches no more often than it stands in the reference.
    """

    def ngrams(text: str) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    hyp, ref = ngrams(hypothesis), ngrams(reference)
    return sum(min(count, ref[gram]) for gram, count in hyp.items()), sum(hyp.values())


def bleu(hypotheses: list[str], references: list[str]) -> float:
    """Compute the BLEU of a corpus, from 0 to 100, from n-grams of 1 to 4 words, without smoothing.

    100 * exp(mean of the four log precisions) * brevity penalty; a precision is all matches of the corpus by all its
    n-grams. The penalty is exp(1 - r/c) where the corpus has fewer words, c, than the references, r; else 1.
    """
    logs = []
    for n in (1, 2, 3, 4):
        counts = [modified_precision(h, r, n) for h, r in zip(hypotheses, references, strict=True)]
        logs.append(math.log(sum(match for match, _ in counts) / sum(total for _, total in counts)))
    c, r = (sum(len(text.split()) for text in texts) for texts in (hypotheses, references))
    penalty = math.exp(1 - r / c) if c < r else 1.0
    return 100 * math.exp(sum(logs) / 4) * penalty


def read_signature(signature: str) -> dict[str, str]:
    """Read sacreBLEU's signature, "nrefs:1|case:mixed|tok:13a|smooth:exp|version:2.6.0": {"nrefs": "1", ...}."""
    return dict(part.split(":", 1) for part in signature.split("|"))


WORDS = ["the", "a", "dog", "man", "runs", "sits", "in", "on", "grass", "red"]


def draw_pair(rng: random.Random) -> tuple[Any, ...]:
    reference = rng.choices(WORDS, k=rng.choice([1, 2, 5, 11]))
    hypothesis = [word if rng.random() < 0.7 else rng.choice(WORDS) for word in reference] + ["the"] * rng.choice(
        [0, 3]
    )
    return " ".join(hypothesis), " ".join(reference), rng.choice([1, 2, 3])


def draw_corpus(rng: random.Random) -> tuple[Any, ...]:
    references = [rng.choices(WORDS, k=rng.randrange(8, 15)) for _ in range(rng.randrange(1, 7))]
    hypotheses = [[w if rng.random() < 0.85 else rng.choice(WORDS) for w in one] for one in references]
    shorter = rng.random() < 0.5
    hypotheses = [one[:-2] if shorter else [*one, "in"] for one in hypotheses]
    hypotheses[0] = references[0] = ["the", "dog", "runs", "in", "the", "grass", "today"]
    return [" ".join(one) for one in hypotheses], [" ".join(one) for one in references]


def draw_signature(rng: random.Random) -> tuple[Any, ...]:
    fields = [
        f"nrefs:{rng.randrange(1, 9)}",
        f"case:{rng.choice(['mixed', 'lc'])}",
        "eff:no",
        f"tok:a:{rng.randrange(9)}",
    ]
    return ("|".join([*fields[: rng.randrange(1, 5)], "version:2.6.0"]),)


NEGATIONS = {"not", "no", "never", "nothing", "without", "n't", "don't", "dont", "hardly"}
NOT_TODAY = "i do not want to drink a beer with you today"


def better_bleu_worse_meaning() -> tuple[str, str]:
    """Choose two translations of one sentence: the first says the opposite and has the higher BLEU.

    The reference is "i do not want to drink a beer with you today". The first translation has no word like not, no or
    never. The second keeps one, and has at least six words. The BLEU of the first has to be at least 10 points higher.
    """
    return "i do want to drink a beer with you today", "today i would rather not have any beer with you"


def grade_better_bleu_worse_meaning(answer: Callable[[], Any]) -> None:
    pair = answer()
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
        raise Wrong(message("two translations are asked for, as texts"))
    first, second = (one.lower().split() for one in pair)
    if NEGATIONS & set(first):
        raise Wrong(
            message(
                "the first translation has {word}, and is to say the opposite", word=repr(min(NEGATIONS & set(first)))
            )
        )
    if not NEGATIONS & set(second):
        raise Wrong(message("the second translation has no word like not: it has to keep the meaning"))
    if len(second) < 6:
        raise Wrong(message("the second translation has fewer than six words"))
    worse, better = (sentence_bleu(one, [NOT_TODAY]).score for one in pair)
    if worse < better + 10:
        text = "the BLEU of the first is {first}, that of the second {second}: which says the same in other words?"
        raise Wrong(message(text, first=f"{worse:.1f}", second=f"{better:.1f}"))


def draw_lengths(rng: random.Random) -> tuple[int, int]:
    r = rng.randrange(2, 60)
    return rng.choice([rng.randrange(1, r), r, r + 3]), r


EXERCISES = [
    Exercise(13, predict_matches),
    Exercise(13, brevity_penalty, draw_lengths, gap="math.exp(1 - r / c) if c < r else 1.0"),
    Exercise(13, modified_precision, draw_pair),
    Exercise(13, bleu, draw_corpus),
    Exercise(13, read_signature, draw_signature),
    Exercise(13, better_bleu_worse_meaning, grade=grade_better_bleu_worse_meaning),
]
