"""The sizes of a model for a corpus, and for the time that there is to train on it: the rule, as tables.

Without a time, the number of pairs decides (`size_for`). With one, the validation loss of each shape of `SHAPES` is
predicted by a curve from its parameters, the tokens that it sees in the time, and how often it sees each of them; the
lowest one is taken (`size_within`). `benchmarks/budget.py` fits the curve and compares the rule with settings by hand.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.text.sources.base import PairSource
from dragoman.text.words import UNSPACED


@dataclass(frozen=True)
class TrainingSize:
    """The sizes of a training."""

    vocab_size: int
    d_model: int
    encoder_layers: int
    decoder_layers: int
    dropout: float
    batch_tokens: int
    max_steps: int
    lr: float
    ema_decay: float = 0.999

    @property
    def parameters(self) -> int:
        """Parameters of the model, biases and norms left aside: three-way tied embeddings, layers of 12 and 16 d²."""
        layers = 12 * self.encoder_layers + 16 * self.decoder_layers
        return self.vocab_size * self.d_model + layers * self.d_model**2

    @property
    def operations(self) -> float:
        """Floating-point operations of a step for each token, source and target tokens alike, attention left aside."""
        layers = 12 * self.encoder_layers + 16 * self.decoder_layers
        return 3.0 * (layers * self.d_model**2 + self.vocab_size * self.d_model)


SIZES: list[tuple[float, TrainingSize]] = [
    (2_000, TrainingSize(1_000, 64, 2, 2, 0.3, 1024, 2_000, 3e-3)),
    (15_000, TrainingSize(4_000, 128, 3, 3, 0.3, 2048, 4_000, 3e-3)),
    (100_000, TrainingSize(8_000, 128, 4, 4, 0.25, 2048, 8_000, 3e-3)),
    (1_000_000, TrainingSize(16_000, 256, 4, 4, 0.15, 4096, 30_000, 1.5e-3)),
    (float("inf"), TrainingSize(32_000, 512, 6, 6, 0.1, 8192, 100_000, 7e-4)),
]
"""(fewer pairs than this, sizes without a budget), smallest first."""


class Shape(NamedTuple):
    """A row of `SHAPES`."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    vocab_size: int
    """At most; a small corpus takes fewer pieces."""
    lr: float


SHAPES = [
    Shape(128, 2, 2, 6_000, 5e-3),
    Shape(128, 4, 2, 6_000, 3e-3),
    Shape(192, 2, 2, 8_000, 2.5e-3),
    Shape(192, 4, 2, 8_000, 2.5e-3),
    Shape(256, 2, 2, 8_000, 2e-3),
    Shape(256, 4, 2, 8_000, 2e-3),
    Shape(256, 6, 3, 16_000, 1.7e-3),
    Shape(384, 6, 3, 16_000, 1.4e-3),
    Shape(512, 6, 3, 32_000, 1e-3),
    Shape(512, 6, 6, 32_000, 7e-4),
]
"""The shapes that a budget chooses from, smallest first. Narrower ones save no time: a token costs by itself, and
processors take bfloat16 from 128 on. The decoder is half as deep as the encoder, as the search repeats it."""

DROPOUTS = [(6.0, 0.0), (15.0, 0.05), (30.0, 0.1), (60.0, 0.2), (float("inf"), 0.3)]
"""(fewer epochs than this, dropout): a pair that is seen a few times cannot be learnt by heart. Estimates."""

BATCHES = [(6_000, 1024), (20_000, 2048), (60_000, 4096), (float("inf"), 8192)]
"""(fewer steps of 2,048 tokens than this, tokens of a batch): where time is short, steps count, and not their size."""

STEPS_FOR_LAYERS = [(4, 0), (6, 2_000), (9, 10_000), (12, 40_000)]
"""(layers of both sides, steps of 2,048 tokens that so many need): a deep model takes longer until its attention finds
the source, also where its layers begin small. 4 and 6 are measured (benchmarks/budget.md), the others are estimates."""

STEPS_FOR_WIDTH = [(128, 0), (192, 2_500), (256, 4_000), (384, 8_000), (512, 12_000)]
"""(d_model, steps of 2,048 tokens that it needs). Measured: 256 are worse than 128 after 1,500, and better after 5,300
(benchmarks/budget.md); the others are estimates."""

GPU_BATCH_TOKENS = 25_000
"""Of the largest model on a GPU: about as many as its paper took (Vaswani et al. 2017, section 5.1)."""

PIECES_A_WORD = 1.6
"""Tokens for each word of a text in the vocabulary that is learnt from it: 1.6 of LibreOffice's help, 1.7 of Debian's
catalogues, in 8,000 pieces."""

PIECES_A_STRANGE_WORD = 2.0
"""Tokens for each word of a text in a vocabulary that was learnt from other text: 2.0 of Multi30k in the vocabulary of
Debian's catalogues."""

_DENSE = re.compile(f"[{UNSPACED}]")


def words_of(source: PairSource) -> int:
    """Words of both sides of a source; a letter of a script without spaces counts for half a word."""
    texts = (text for pair in source.pairs() for text in (pair.src, pair.tgt))
    return sum(len(text.split()) + len(_DENSE.findall(text)) // 2 for text in texts)


TRAINING_SHARE = 0.85
"""The share of a budget that is left for steps: an estimate; reading, validations, tests and report take the rest."""


class Curve(NamedTuple):
    """Validation loss (nats a word) = floor + params / parameters^alpha + tokens / seen^beta.

    It is equation 10 of Hoffmann et al. 2022. Tokens that are seen again count less, in all as much as `half_life`
    further epochs of new ones (Muennighoff et al. 2023, equation 5).
    """

    floor: float
    params: float
    alpha: float
    tokens: float
    beta: float
    half_life: float

    def loss(self, parameters: float, unique: float, epochs: float) -> float:
        """The loss after so many epochs of `unique` tokens."""
        again = self.half_life * (1 - math.exp(-max(0.0, epochs - 1) / self.half_life))
        seen = unique * (min(epochs, 1.0) + again)
        return self.floor + self.params / parameters**self.alpha + self.tokens / max(seen, 1.0) ** self.beta


CURVE = Curve(floor=0.4082, params=54.4, alpha=0.237, tokens=804.1, beta=0.3756, half_life=23.93)


class Speed(NamedTuple):
    """The time of a training on this machine: seconds for each token, and for each floating-point operation."""

    per_token: float
    per_operation: float

    def tokens_in(self, size: TrainingSize, seconds: float) -> float:
        """Source and target tokens that a training of a size takes in so many seconds."""
        return seconds / (self.per_token + self.per_operation * size.operations)


class Budget:
    """The time for a training, and the speed of the machine, which is measured on first use."""

    def __init__(self, seconds: float, measure: Callable[[], Speed]) -> None:
        self.seconds, self.measure = seconds, measure

    @functools.cached_property
    def speed(self) -> Speed:
        return self.measure()

    def times(self, factor: float) -> "Budget":
        """A longer time on the same machine."""
        return Budget(factor * self.seconds, lambda: self.speed)


def size_for(pairs: float) -> TrainingSize:
    """The sizes for so many pairs, trained as long as they need."""
    return next(size for limit, size in SIZES if pairs < limit)


def size_within(budget: Budget, tokens: float) -> TrainingSize:
    """The sizes with the lowest predicted loss for a corpus of so many tokens (both sides) and a time."""
    sizes = [_size(shape, budget, tokens) for shape in SHAPES]
    sizes = [size for size in sizes if size.max_steps * size.batch_tokens >= 2048 * _steps_needed(size)] or sizes[:1]
    return min(sizes, key=lambda size: CURVE.loss(size.parameters, tokens, epochs_of(size, budget, tokens)))


def epochs_of(size: TrainingSize, budget: Budget, tokens: float) -> float:
    """Epochs that the time allows."""
    return budget.speed.tokens_in(size, TRAINING_SHARE * budget.seconds) / tokens


def _size(shape: Shape, budget: Budget, tokens: float) -> TrainingSize:
    vocabulary = min(shape.vocab_size, max(1_000, _rounded(tokens / 250)))
    size = TrainingSize(vocabulary, *shape[:3], 0.0, 2048, 0, shape.lr)
    epochs = epochs_of(size, budget, tokens)
    steps = epochs * tokens / 2 / 2048  # positions of one side fill a batch
    batch = next(batch for limit, batch in BATCHES if steps < limit)
    steps = max(1, round(steps * 2048 / batch))
    dropout = next(dropout for limit, dropout in DROPOUTS if epochs < limit)
    # The average reaches over a sixteenth of the steps.
    decay = min(0.999, max(0.9, 1 - 16 / steps))
    return TrainingSize(vocabulary, *shape[:3], dropout, batch, steps, shape.lr, round(decay, 4))


def _steps_needed(size: TrainingSize) -> int:
    layers = size.encoder_layers + size.decoder_layers
    tables = (STEPS_FOR_LAYERS, layers), (STEPS_FOR_WIDTH, size.d_model)
    return max(next(steps for most, steps in table if here <= most) for table, here in tables)


def _rounded(number: float) -> int:
    return round(number / 500) * 500


def explanation(size: TrainingSize, budget: Budget, tokens: float) -> str:
    """The choice in words: its size, its epochs, and what more time would take."""
    epochs = epochs_of(size, budget, tokens)
    text = f"{size.parameters / 1e6:.1f}M parameters: {_time(budget.seconds)} allow {epochs:.1f} epochs"
    for times in (2, 4, 8, 16, 32, 64):
        longer = budget.times(times)
        other = size_within(longer, tokens)
        if other.parameters > 1.5 * size.parameters:
            return f"{text}; {_time(longer.seconds)} would take {other.parameters / 1e6:.1f}M"
    return text


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.0f} hours"
