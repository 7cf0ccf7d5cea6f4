"""Chapter 12: decoding."""

import math
import random
from collections.abc import Callable
from typing import Any

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_greedy() -> list[str]:
    """Predict what this code returns: the tokens that greedy search writes."""
    after = {
        "<s>": {"i": 0.6, "beer": 0.4},
        "i": {"want": 0.5, "see": 0.3, "am": 0.2},
        "want": {"beer": 0.7, "it": 0.3},
        "beer": {"</s>": 0.9, "please": 0.1},
    }
    written = ["<s>"]
    while written[-1] != "</s>":
        following = after[written[-1]]
        written.append(max(following, key=lambda token: following[token]))
    return written[1:]


def length_score(total: float, length: int, alpha: float) -> float:
    """Compute the score of a translation: its log probability by the length penalty of Wu et al. 2016. Fill in the gap ____.

    The penalty is ((5 + length) / 6) to the power of `alpha`; with alpha 0 nothing is changed.
    """
    return total / ((5 + length) / 6) ** alpha


def greedy(next_log_probs: Callable[[list[int]], list[float]], bos: int, eos: int, max_len: int) -> list[int]:
    """Search for a translation: the most probable token, again and again, until it is `eos` or `max_len` tokens are written.

    `next_log_probs(tokens)` gives the log probability of each next token after `tokens`, which begin with `bos`. The
    answer has neither `bos` nor `eos`.
    """
    tokens = [bos]
    while len(tokens) <= max_len:
        log_probs = next_log_probs(tokens)
        best = max(range(len(log_probs)), key=lambda token: log_probs[token])
        if best == eos:
            break
        tokens.append(best)
    return tokens[1:]


def beam_search(
    next_log_probs: Callable[[list[int]], list[float]], bos: int, eos: int, max_len: int, beam: int
) -> list[tuple[list[int], float]]:
    """Search with a beam: the finished translations and their scores, the best first.

    In each step every living prefix is continued by every token. Of all continuations the `beam` most probable are
    looked at: those that end in `eos` are finished, with the score sum of log probabilities / number of tokens, `eos`
    counted; the others live on. It ends when none is alive, or after `max_len` tokens. Answers have neither bos nor eos.
    """
    alive: list[tuple[list[int], float]] = [([bos], 0.0)]
    finished = []
    for length in range(1, max_len + 1):
        continued = [
            ([*tokens, token], total + log_prob)
            for tokens, total in alive
            for token, log_prob in enumerate(next_log_probs(tokens))
        ]
        best = sorted(continued, key=lambda item: -item[1])[:beam]
        finished += [(tokens[1:-1], total / length) for tokens, total in best if tokens[-1] == eos]
        alive = [(tokens, total) for tokens, total in best if tokens[-1] != eos]
    return sorted(finished, key=lambda item: -item[1])


def model(seed: int) -> Callable[[list[int]], list[float]]:
    """A made-up model over seven tokens: what comes next depends on all tokens so far."""

    def next_log_probs(tokens: list[int]) -> list[float]:
        assert tokens[0] == 2, "tokens begin with <s>"
        rng = random.Random(f"{seed} {tokens}")
        weights = [math.exp(1.5 * rng.gauss(0, 1)) for _ in range(7)]
        weights[3] *= 0.15 * len(tokens) ** 2
        weights[0] = weights[1] = weights[2] = 1e-9
        return [math.log(weight / sum(weights)) for weight in weights]

    return next_log_probs


WORDS = ["i", "want", "a", "beer", "see", "</s>"]
REFERENCE = "i want a beer"


def beam_worse() -> dict[str, dict[str, float]]:
    """Choose a model with which beam search with beam 5 is worse than greedy search.

    The keys are what is written so far ("" at the start, then "i", "i want" ...); the values are the probabilities of the
    next tokens, of i, want, a, beer, see and </s>, that sum to 1. After anything else comes </s>. Greedy search has to
    write "i want a beer". Beam search (scores divided by the length) has to choose another translation.
    """
    return {
        "": {"i": 0.6, "beer": 0.4},
        "i": {"want": 0.5, "see": 0.3, "a": 0.2},
        "i want": {"a": 0.5, "beer": 0.3, "i": 0.2},
        "i want a": {"beer": 0.5, "see": 0.3, "</s>": 0.2},
    }


def grade_beam_worse(answer: Callable[[], Any]) -> None:
    table = answer()
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        raise Wrong(message("a dict of dicts is asked for: what is written, and the next tokens' probabilities"))
    for prefix, row in table.items():
        if not set(row) <= set(WORDS):
            raise Wrong(
                message(
                    "after {prefix} comes {token}, which is no token here",
                    prefix=repr(prefix),
                    token=sorted(set(row) - set(WORDS))[0],
                )
            )
        if min(row.values(), default=0) < 0 or not math.isclose(sum(row.values()), 1, abs_tol=1e-6):
            raise Wrong(
                message(
                    "the probabilities after {prefix} sum to {sum}", prefix=repr(prefix), sum=f"{sum(row.values()):.6g}"
                )
            )

    def next_log_probs(tokens: list[int]) -> list[float]:
        row = table.get(" ".join(WORDS[token] for token in tokens[1:]), {"</s>": 1.0})
        return [math.log(max(row.get(word, 0.0), 1e-30)) for word in WORDS]

    bos, eos = -1, len(WORDS) - 1
    written = " ".join(WORDS[token] for token in greedy(next_log_probs, bos, eos, 8))
    if written != REFERENCE:
        raise Wrong(
            message(
                "greedy search writes {written}, and has to write {reference}",
                written=repr(written),
                reference=repr(REFERENCE),
            )
        )
    tokens, score = beam_search(next_log_probs, bos, eos, 8, 5)[0]
    best = " ".join(WORDS[token] for token in tokens)
    if best == REFERENCE:
        text = "beam search finds {reference} too, with {score} per token: another path has to begin worse and be more probable as a whole"
        raise Wrong(message(text, reference=repr(REFERENCE), score=f"{score:.3f}"))


def draw_greedy(rng: random.Random) -> tuple[Any, ...]:
    return model(rng.randrange(10**6)), 2, 3, rng.choice([1, 2, 12, 12])


def draw_beam(rng: random.Random) -> tuple[Any, ...]:
    return model(rng.randrange(10**6)), 2, 3, rng.choice([2, 5, 5]), rng.choice([1, 2, 3])


EXERCISES = [
    Exercise(12, predict_greedy),
    Exercise(
        12,
        length_score,
        lambda rng: (rng.uniform(-30, -1), rng.randrange(1, 40), rng.choice([0.0, 0.6, 1.0])),
        gap="((5 + length) / 6) ** alpha",
    ),
    Exercise(12, greedy, draw_greedy),
    Exercise(12, beam_search, draw_beam),
    Exercise(12, beam_worse, grade=grade_beam_worse),
]
