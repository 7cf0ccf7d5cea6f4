"""The training step that a page of a tutorial has, and `torch.nn.Transformer` as a model for it."""

import math
from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PAD_ID = 0
MAX_POSITIONS = 512


class Sizes(Protocol):
    """What a model is built by: a `task.Shape`, or Dragoman's settings of a Transformer."""

    d_model: int
    d_ff: int
    num_heads: int
    num_encoder_layers: int
    num_decoder_layers: int
    dropout: float


class PlainTransformer(nn.Module):
    """`torch.nn.Transformer` between tied embeddings."""

    def __init__(self, sizes: Sizes, vocab_size: int) -> None:
        super().__init__()
        d_model = sizes.d_model
        self.scale, self.dropout = math.sqrt(d_model), nn.Dropout(sizes.dropout)
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.transformer = nn.Transformer(
            d_model,
            sizes.num_heads,
            sizes.num_encoder_layers,
            sizes.num_decoder_layers,
            sizes.d_ff,
            sizes.dropout,
            batch_first=True,
            norm_first=True,
        )
        frequencies = torch.exp(torch.arange(0, d_model, 2) * -(math.log(1e4) / d_model))
        angles = torch.arange(MAX_POSITIONS)[:, None] * frequencies
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        length = tgt_in.size(1)
        hidden = self.transformer(
            self.embed(src),
            self.embed(tgt_in),
            tgt_mask=torch.ones(length, length, dtype=torch.bool, device=src.device).triu(1),
            tgt_is_causal=True,
            src_key_padding_mask=~src_mask,
            memory_key_padding_mask=~src_mask,
        )
        return F.linear(hidden, self.embedding.weight)


class PaddedPairs(Protocol):
    """What a step needs of a batch; Dragoman's `Batch` has it."""

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor


def build_optimizer(
    model: nn.Module, rate: float = 5e-4, betas: tuple[float, float] = (0.9, 0.98)
) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=rate, betas=betas)


def take_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[PaddedPairs],
    precision: str,
    label_smoothing: float,
    clip_norm: float = 1.0,
) -> None:
    """One optimizer step of a model that makes logits of (src, src_mask, tgt_in)."""
    optimizer.zero_grad(set_to_none=True)
    for batch in batches:
        with torch.autocast(batch.src.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(batch.src, batch.src_mask, batch.tgt_in)
        targets = batch.tgt_out.flatten()
        loss = F.cross_entropy(
            logits.float().flatten(0, 1), targets, ignore_index=PAD_ID, label_smoothing=label_smoothing
        )
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    optimizer.step()
