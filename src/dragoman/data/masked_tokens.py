"""Batches with hidden tokens, for a masked language model (Devlin et al. 2019, section 3.1)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.config import Field, settings
from dragoman.data.inputs import IntArray, TextInputs
from dragoman.data.movable import Movable
from dragoman.data.random import keyed_uniform
from dragoman.special_tokens import BOS_ID, SPECIALS

MASK_ID = BOS_ID
"""The id that stands for a hidden token: `<s>`, which no encoder reads otherwise. So the vocabulary stays as it is, and
a translator can begin with such an encoder."""
MASK = "<mask>"
"""A hidden token as people write it."""


@settings
class MaskingConfig:
    """Which tokens the model has to guess. Most of these are hidden, some are shown as they are, and some are replaced
    by another token, so that the model cannot know which tokens it has to guess."""

    share: float = Field(default=0.15, gt=0, le=0.9)  #: Share of the tokens that are to be guessed.
    hidden: float = Field(default=0.8, ge=0, le=1)  #: Share of these tokens that are hidden.
    random: float = Field(default=0.1, ge=0, le=1)  #: Share of these tokens that a random token replaces.

    def __post_init__(self) -> None:
        if self.hidden + self.random > 1:
            share = self.hidden + self.random
            raise ValueError(f"hidden and random are shares of the same tokens, and together {share:g}: at most 1")


@dataclass(frozen=True, eq=False)
class MaskedLMBatch(Movable):
    """Texts with hidden tokens. `targets` are the tokens as they were, `guessed` is True at those to be guessed."""

    ids: Int[Tensor, "batch len"]
    mask: Bool[Tensor, "batch len"]
    targets: Int[Tensor, "batch len"]
    guessed: Bool[Tensor, "batch len"]
    num_tokens: int
    """Tokens that are to be guessed: what a loss is divided by."""
    num_positions: int
    """Real positions, </s> included."""
    rows: IntArray

    def __len__(self) -> int:
        return len(self.ids)


def mask_tokens(
    inputs: TextInputs, rows: IntArray, hiding: MaskingConfig, vocab_size: int, seed: int, epoch: int
) -> MaskedLMBatch:
    """The texts of some rows with tokens hidden as the key (seed, epoch, row) says.

    At least one token of each text is to be guessed; `</s>` and padding never are.
    """
    ids, mask = inputs.collate(rows)
    width = ids.size(1)
    uniform = torch.from_numpy(keyed_uniform(seed, epoch, rows, 3 * width).reshape(len(rows), 3, width))
    lengths = mask.sum(dim=1, keepdim=True) - 1  # without </s>
    places = torch.arange(width)
    text = places < lengths
    first = (uniform[:, 0].masked_fill(~text, 2.0)).argmin(dim=1, keepdim=True)
    guessed = ((uniform[:, 0] < hiding.share) | (places == first)) & text
    hidden = guessed & (uniform[:, 1] < hiding.hidden)
    other = guessed & ~hidden & (uniform[:, 1] < hiding.hidden + hiding.random)
    words = len(SPECIALS) + (uniform[:, 2] * (vocab_size - len(SPECIALS))).long()
    shown = torch.where(other, words, ids.masked_fill(hidden, MASK_ID))
    return MaskedLMBatch(shown, mask, ids, guessed, int(guessed.sum()), int(mask.sum()), np.asarray(rows))
