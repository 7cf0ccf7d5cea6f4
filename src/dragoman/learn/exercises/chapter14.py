"""Chapter 14: three uses of the same blocks."""

import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message


def predict_patches() -> tuple[int, ...]:
    """Predict what this code returns: the shape of an image as a sequence."""
    image = torch.zeros(1, 3, 32, 48)
    convolution = nn.Conv2d(3, 10, kernel_size=16, stride=16)
    return tuple(convolution(image).flatten(2).transpose(1, 2).shape)


def patches(image: Tensor, size: int) -> Tensor:
    """Cut an image, (channels, height, width), into patches: (positions, channels * size * size). Fill in the gap ____.

    `cut` is (channels, rows, columns, size, size). Positions go along the first row of patches, then the second. The
    numbers of a patch are those of its first channel, row by row, then those of the second.
    """
    cut = image.unfold(1, size, size).unfold(2, size, size)
    return cut.permute(1, 2, 0, 3, 4).flatten(2).flatten(0, 1)


def mean_over_real(hidden: Tensor, real: Tensor) -> Tensor:
    """Pool an encoder's output, (batch, len, d), to one vector for each text, (batch, d): the mean of its real positions."""
    return (hidden * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


def next_token_pairs(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Make what a language model reads and must say of a window of ids, (batch, len): both (batch, len - 1)."""
    return ids[:, :-1], ids[:, 1:]


def hide_tokens(ids: Tensor, chosen: Tensor, mask_id: int) -> tuple[Tensor, Tensor]:
    """Make what a masked language model reads and must say: (inputs, labels), both (batch, len).

    `chosen` is True at the tokens to guess: inputs have `mask_id` there, and labels the token itself. Labels are -100
    everywhere else, which PyTorch's cross-entropy leaves out.
    """
    return ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)


SENTENCE = "i want a beer"


def text_for_a_model() -> list[str]:
    """Choose at most five sentences from which a language model learns "i want a beer", which is not among them.

    The model counts pairs of neighbouring words, <s> and </s> among them: the probability of a word is the share of its
    pair among those that begin alike. The perplexity of "i want a beer" has to be at most 1.6.
    """
    return ["i want a cat", "i want a beer please", "a beer", "a beer"]


def grade_text_for_a_model(answer: Callable[[], Any]) -> None:
    sentences = answer()
    if not isinstance(sentences, list) or not all(isinstance(one, str) for one in sentences):
        raise Wrong(message("a list of sentences is asked for, as texts"))
    if not 1 <= len(sentences) <= 5:
        raise Wrong(message("one to five sentences are asked for, not {count}", count=len(sentences)))
    if any(one.split() == SENTENCE.split() for one in sentences):
        raise Wrong(message("the sentence itself is in the text: a model is to be trained on other sentences"))
    perplexity, unseen = bigram_perplexity(sentences)
    if unseen:
        raise Wrong(
            message("the pair {pair} is not in the text: the model gives it no probability", pair=" ".join(unseen))
        )
    if perplexity > 1.6:
        text = "the perplexity is {perplexity}: other words follow too often where the sentence goes on"
        raise Wrong(message(text, perplexity=f"{perplexity:.2f}"))


def bigram_perplexity(sentences: list[str]) -> tuple[float, tuple[str, ...]]:
    """The perplexity of the sentence for a model of pairs of words; else the first pair that it has not seen."""
    texts = [["<s>", *one.split(), "</s>"] for one in [SENTENCE, *sentences]]
    sought, *seen = [list(pairwise(text)) for text in texts]
    pairs = Counter(pair for text in seen for pair in text)
    first = Counter(pair[0] for text in seen for pair in text)
    for pair in sought:
        if not pairs[pair]:
            return math.inf, pair
    return math.exp(-sum(math.log(pairs[pair] / first[pair[0]]) for pair in sought) / len(sought)), ()


def draw_image(rng: random.Random) -> tuple[Tensor, int]:
    size = rng.randrange(1, 4)
    return torch.randn(rng.randrange(1, 4), size * rng.randrange(1, 4), size * rng.randrange(1, 4)), size


def draw_ids(rng: random.Random) -> tuple[Tensor]:
    return (torch.randint(0, 30, (rng.randrange(1, 4), rng.randrange(2, 8))),)


def draw_hidden(rng: random.Random) -> tuple[Tensor, Tensor]:
    rows, width = rng.randrange(1, 4), rng.randrange(1, 7)
    lengths = torch.tensor([rng.randrange(1, width + 1) for _ in range(rows)])
    return torch.randn(rows, width, rng.randrange(1, 5)), torch.arange(width) < lengths[:, None]


def draw_chosen(rng: random.Random) -> tuple[Tensor, Tensor, int]:
    (ids,) = draw_ids(rng)
    chosen = torch.rand(ids.shape) < 0.4
    chosen[:, 0], chosen[:, 1] = True, False
    return ids, chosen, rng.choice([3, 5])


EXERCISES = [
    Exercise(14, predict_patches),
    Exercise(14, patches, draw_image, gap="cut.permute(1, 2, 0, 3, 4).flatten(2).flatten(0, 1)"),
    Exercise(14, mean_over_real, draw_hidden),
    Exercise(14, next_token_pairs, draw_ids),
    Exercise(14, hide_tokens, draw_chosen),
    Exercise(14, text_for_a_model, grade=grade_text_for_a_model),
]
