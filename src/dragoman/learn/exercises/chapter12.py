"""Chapter 12: decoding."""

import math
import random
from collections.abc import Callable

from dragoman.learn.exercise import Exercise


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


EXERCISES = [
    Exercise(12, greedy, lambda rng: (model(rng.randrange(10**6)), 2, 3, rng.choice([2, 12, 12]))),
    Exercise(12, beam_search, lambda rng: (model(rng.randrange(10**6)), 2, 3, 7, rng.choice([2, 3]))),
]
