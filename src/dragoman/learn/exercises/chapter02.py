"""Chapter 2: text to ids."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_ids() -> list[int]:
    """Predict what this code returns: a list of ids."""
    tokens = ["<pad>", "<unk>", "<s>", "</s>", "ich", "möchte", "ein", "bier"]
    ids = {token: number for number, token in enumerate(tokens)}
    return [ids.get(word, 1) for word in ["ich", "möchte", "zwei", "bier"]]


def merge_pair(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    """Merge a pair of neighbours wherever it stands in a word, as byte-pair encoding does. Fill in the condition ____.

    `symbols` are the pieces of a word so far. Each place where the first of the pair stands before the second becomes
    one symbol; all others stay as they are.
    """
    merged: list[str] = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged


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


def text_for_merges() -> list[str]:
    """Choose a text, as a list of words, from which byte-pair encoding learns `bier` as one symbol in three merges.

    Each merge joins the most frequent pair of neighbouring symbols within words; of equally frequent ones the first in
    the order of the alphabet. The first merge has to be i + e. `bier` stands in the text at most twice, and there are
    at least five other words, all different.
    """
    return ["bier", "bier", "vier", "hier", "tier", "wie", "liebe"]


def learned_merges(words: list[str], count: int) -> list[tuple[str, str]]:
    """The first merges of byte-pair encoding."""
    pieces, merges = [list(word) for word in words], []
    for _ in range(count):
        pairs = Counter(pair for word in pieces for pair in pairwise(word))
        if not pairs:
            break
        merges.append(min(pairs, key=lambda pair: (-pairs[pair], pair)))
        pieces = [merge_pair(word, merges[-1]) for word in pieces]
    return merges


def grade_text_for_merges(answer: Callable[[], Any]) -> None:
    words = answer()
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Wrong(message("a list of words is asked for"))
    if len(set(words) - {"bier"}) < 5:
        raise Wrong(message("at least five words other than `bier` are asked for, all different"))
    if not 1 <= words.count("bier") <= 2:
        raise Wrong(
            message("`bier` stands in the text once or twice; here it stands {count} times", count=words.count("bier"))
        )
    merges = learned_merges(words, 3)
    shown = ", ".join(" + ".join(pair) for pair in merges)
    if merges[0] != ("i", "e"):
        raise Wrong(
            message("the merges are {merges}: the first has to be i + e, so no pair may be more frequent", merges=shown)
        )
    pieces = list("bier")
    for pair in merges:
        pieces = merge_pair(pieces, pair)
    if pieces != ["bier"]:
        values = {"merges": shown, "pieces": " ".join(pieces)}
        raise Wrong(message("the merges are {merges}: after them `bier` is still {pieces}", **values))


def draw_symbols(rng: random.Random) -> tuple[Any, ...]:
    pairs = [("a", "b"), ("ab", "c"), ("a", "a"), ("a", "bc")]
    pair = rng.choice(pairs)
    pieces = [*pair, *pair, "a", "b", "ab", "c", "bc"]
    word = [rng.choice(pieces) for _ in range(rng.randrange(0, 9))]
    if rng.random() < 0.6:  # the same letters in other symbols, or the pair the other way round
        word += rng.choice([["a", "bc"] if pair[0] == "ab" else ["ab", "c"], list(pair[::-1])])
    return word, pair


def draw_sentences(rng: random.Random) -> tuple[Any, ...]:
    words = ["bier", "ein", "Ein", "ich", "möchte", "wir", "zwei", "<pad>x"]
    weights = [9, 9, 5, 5, 3, 2, 1, 1]
    sentences = [" ".join(rng.choices(words, weights, k=rng.randrange(0, 9))) for _ in range(rng.randrange(1, 10))]
    specials = ["<pad>", "<unk>", "<s>", "</s>"]
    return sentences, rng.choice([1, 2, 2, 3]), specials[: rng.choice([2, 4, 4])]


def draw_rows(rng: random.Random) -> tuple[Any, ...]:
    rows = [[rng.randrange(4, 99) for _ in range(rng.randrange(0, 7))] for _ in range(rng.randrange(0, 5))]
    rows.insert(rng.randrange(len(rows) + 1), [9] * rng.choice([1, 4, 7]))
    pad_id = rng.randrange(0, 4)
    row = rng.choice([row for row in rows if row])
    row[-1] = pad_id  # a real id may look like padding: lengths say what is real
    return rows, pad_id


EXERCISES = [
    Exercise(2, predict_ids),
    Exercise(2, merge_pair, draw_symbols, gap="(merged[-1], symbol) == pair"),
    Exercise(2, build_vocabulary, draw_sentences),
    Exercise(2, pad, draw_rows),
    Exercise(2, text_for_merges, grade=grade_text_for_merges),
]
