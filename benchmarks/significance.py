"""The randomisation test of `dragoman compare`: p-values against a count over texts, and errors of the first kind.

    python benchmarks/significance.py exact --sets 500
    python benchmarks/significance.py errors --draws 2000 --trials 199

exact: small test sets of which a few sentences were translated anew; every exchange of the texts is scored by sacreBLEU
and counted. errors: two systems that are one (each changed sentence is spoilt twice in the same way, by chance), so
that at a level of 5 % at most 5 % of the draws may be called different; sacreBLEU's two p-values beside.
"""

import argparse
import random
from collections.abc import Iterator
from itertools import product

from sacrebleu.metrics import BLEU, CHRF

from dragoman.corpora.embedded import sentences
from dragoman.quality.metrics import metric
from dragoman.quality.significance import SIGNIFICANCE_LEVEL, Test, paired_test
from dragoman.quality.test_set import TestSet

LEVELS = {"p": "p", "sacreBLEU bs": "p_sacrebleu_bs", "sacreBLEU ar": "p_sacrebleu_ar"}


def spoilt(line: str, words: list[str], rng: random.Random, share: float) -> str:
    """A sentence with a share of its words exchanged and as many left out."""
    kept = (word for word in line.split() if rng.random() > share)
    return " ".join(rng.choice(words) if rng.random() < share else word for word in kept)


def outputs(references: list[str], changed: int, rng: random.Random) -> tuple[list[str], list[str]]:
    """Two outputs that differ in `changed` sentences, both spoilt with the same probability."""
    words = " ".join(references).split()
    first = [spoilt(line, words, rng, 0.2) for line in references]
    second = list(first)
    for row in rng.sample(range(len(references)), changed):
        second[row] = spoilt(references[row], words, rng, 0.2)
    return first, second


def counted(name: str, references: list[str], first: list[str], second: list[str]) -> float:
    """The p-value by sacreBLEU's scores of the texts of every exchange."""
    scorer = {"bleu": BLEU(force=True), "chrf": CHRF()}[name]
    rows = [row for row, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]]
    differences = []
    for swaps in product((False, True), repeat=len(rows)):
        one, other = list(first), list(second)
        for row, swap in zip(rows, swaps, strict=True):
            if swap:
                one[row], other[row] = other[row], one[row]
        scores = [scorer.corpus_score(lines, [references]).score for lines in (one, other)]
        differences.append(abs(scores[0] - scores[1]))
    return sum(it >= differences[0] - 1e-9 for it in differences) / len(differences)


def tested(name: str, references: list[str], first: list[str], second: list[str], trials: int) -> Test:
    test, by = TestSet(references, [references]), metric(name)
    return paired_test(
        by, by.statistics(test, first), by.statistics(test, second), resamples=min(trials, 1000), trials=trials
    )


def exact(pool: list[str], sets: int, seed: int) -> Iterator[tuple[float, float]]:
    """(our p-value, the counted one) of small sets."""
    rng = random.Random(seed)
    for number in range(sets):
        references = rng.sample(pool, rng.randint(5, 25))
        pair = outputs(references, rng.randint(0, min(7, len(references))), rng)
        name = ("bleu", "chrf")[number % 2]
        yield tested(name, references, *pair, trials=100).p, counted(name, references, *pair)


def errors(pool: list[str], draws: int, changed: int, lines: int, seed: int, trials: int = 199) -> dict[str, float]:
    """The share of draws called different at the level of 5 %, by each p-value."""
    rng = random.Random(seed)
    called = dict.fromkeys(LEVELS, 0)
    for _ in range(draws):
        references = rng.sample(pool, lines)
        found = tested("bleu", references, *outputs(references, changed, rng), trials=trials)
        for title, name in LEVELS.items():
            called[title] += getattr(found, name) < SIGNIFICANCE_LEVEL
    return {title: count / draws for title, count in called.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "errors"))
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--changed", type=int, nargs="+", default=[1, 2, 4, 6, 8, 12, 16, 24, 40])
    parser.add_argument("--trials", type=int, default=199, help="of the sampled test, and of sacreBLEU's two")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    pool = sorted({pair[1] for pair in sentences("de-en")})
    if args.what == "exact":
        pairs = list(exact(pool, args.sets, args.seed))
        print(f"{sum(ours == theirs for ours, theirs in pairs)} of {len(pairs)} p-values are the counted ones")
        return
    print(f"| changed of {args.lines} | " + " | ".join(LEVELS) + " |")
    print("|---" * (len(LEVELS) + 1) + "|")
    for changed in args.changed:
        shares = errors(pool, args.draws, changed, args.lines, args.seed, args.trials)
        print(f"| {changed} | " + " | ".join(f"{100 * share:.1f} %" for share in shares.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
