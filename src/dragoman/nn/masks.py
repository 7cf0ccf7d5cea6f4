"""Masks. One meaning everywhere: **True = a real token that may be attended to**.

`data/batch.py` makes `src_mask` and `tgt_mask`, (batch, len), from the lengths of the sentences. Attention scores have
the shape (batch, num_heads, query_len, key_len), and both masks here broadcast to it. Where both must hold, `&` joins
them. Dragoman's decoders need the causal mask alone: padding stands at the end of a target, where no real position
looks.
"""

import torch
from jaxtyping import Bool
from torch import Tensor


def padding_mask(real: Bool[Tensor, "batch key_len"]) -> Bool[Tensor, "batch 1 1 key_len"]:
    """`src_mask` or `tgt_mask` in the shape of attention scores: every head and every query sees the same real keys."""
    return real[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 length length"]:
    """Row i (a query) may attend to columns 0..i (keys): itself and what came before, never the future.

    Vaswani et al. 2017, section 3.2.3. With it, all positions of a target are trained at once although each is
    predicted only from its own past.

    >>> causal_mask(3)[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])

    Joined with the padding of a sentence that has two real tokens, the last column is hidden from every row:

    >>> (causal_mask(3) & padding_mask(torch.tensor([[True, True, False]])))[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True, False]])
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
