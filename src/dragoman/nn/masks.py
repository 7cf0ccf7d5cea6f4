"""Masks. One meaning everywhere: **True = a real token that may be attended to**.

Attention scores have shape (batch, num_heads, query_len, key_len), so a mask is made to broadcast against that:
a padding mask is about keys only (batch, 1, 1, key_len), the subsequent mask about (query, key) pairs of one
sentence (query_len, key_len). Where both must hold, `&` joins them. Our decoders need the subsequent mask alone: pads
stand at the end of a target, where no real position looks.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "batch len"], pad_id: int) -> Bool[Tensor, "batch len"]:
    """True where `ids` holds a real token. (`data/batch.py` makes the same from the lengths that it knows already.)

    >>> padding_mask(torch.tensor([[5, 6, 3], [7, 3, 0]]), pad_id=0)
    tensor([[ True,  True,  True],
            [ True,  True, False]])
    """
    return ids != pad_id


def key_mask(mask: Bool[Tensor, "batch key_len"]) -> Bool[Tensor, "batch 1 1 key_len"]:
    """A padding mask shaped for attention scores: every head and every query sees the same real keys."""
    return mask[:, None, None, :]


def subsequent_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "length length"]:
    """Row i (a query) may attend to columns 0..i (keys): itself and what came before, never the future.

    Vaswani et al. 2017, section 3.2.3. With it, all positions of a target are trained at once although each is
    predicted only from its own past.

    >>> subsequent_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])

    Joined with the padding of a sentence that has two real tokens, the last column is hidden from every row:

    >>> (subsequent_mask(3) & key_mask(torch.tensor([[True, True, False]])))[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True, False]])
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
