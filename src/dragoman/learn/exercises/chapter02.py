"""Chapter 2: text to ids."""

import random
from collections import Counter
from typing import Any

from dragoman.learn.exercise import Exercise


def build_vocabulary(sentences: list[str], min_count: int, specials: list[str]) -> list[str]:
    """Make the entries of a vocabulary of words, in the order of their ids.

    The specials come first, in their order. Then come the words (split at blanks) that stand at least `min_count` times
    in the sentences, the most frequent first, and of equally frequent ones in the order of the alphabet.
    """
    counts = Counter(word for sentence in sentences for word in sentence.split())
    frequent = [word for word, count in counts.items() if count >= min_count]
    return [*specials, *sorted(frequent, key=lambda word: (-counts[word], word))]


def pad(rows: list[list[int]], pad_id: int) -> tuple[list[list[int]], list[list[bool]]]:
    """Make rows of ids equally long: (padded rows, mask). Padding comes at the end; the mask is True at real ids."""
    longest = max(len(row) for row in rows)
    padded = [row + [pad_id] * (longest - len(row)) for row in rows]
    return padded, [[place < len(row) for place in range(longest)] for row in rows]


def draw_sentences(rng: random.Random) -> tuple[Any, ...]:
    words = ["bier", "ein", "Ein", "ich", "möchte", "wir", "zwei", "<pad>x"]
    weights = [9, 9, 5, 5, 3, 2, 1, 1]
    sentences = [" ".join(rng.choices(words, weights, k=rng.randrange(3, 9))) for _ in range(9)]
    return sentences, 2, ["<pad>", "<unk>", "<s>", "</s>"]


def draw_rows(rng: random.Random) -> tuple[Any, ...]:
    rows = [[rng.randrange(4, 99) for _ in range(rng.randrange(1, 7))] for _ in range(4)] + [[9] * 7]
    rows[0][-1] = pad_id = rng.randrange(1, 4)  # a real id may look like padding: lengths say what is real
    return rows, pad_id


EXERCISES = [Exercise(2, build_vocabulary, draw_sentences), Exercise(2, pad, draw_rows)]
