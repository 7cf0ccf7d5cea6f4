"""The book's sentence, "ich möchte ein bier", with the same ids in every chapter, and its training by a model of any
size."""

from typing import Any

import torch

from dragoman.config import parse
from dragoman.data.batch import Batch, collate
from dragoman.models.families import TransformerConfig
from dragoman.models.transformer import Transformer
from dragoman.special_tokens import SPECIALS
from dragoman.training.loss import token_loss
from dragoman.training.schedules import warm_up

SRC_VOCAB = (*SPECIALS, "ich", "möchte", "ein", "bier")
"""Place n is the token of id n: ich 4, möchte 5, ein 6, bier 7."""
TGT_VOCAB = (*SPECIALS, "i", "want", "a", "beer")
"""Place n is the token of id n: i 4, want 5, a 6, beer 7."""
SIZES = {"d_model": 512, "num_heads": 8, "d_ff": 2048, "num_encoder_layers": 6, "num_decoder_layers": 6}
"""The sizes of graykode's script (`5-1.Transformer`): 44 million parameters, for one sentence pair."""
SMALL = {
    "d_model": 64,
    "num_heads": 4,
    "d_ff": 256,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "norm_placement": "pre",
    "dropout": 0.0,
}
"""Sizes with which the pair is learnt in a second."""


def one_sentence() -> Batch:
    """The pair as a batch. Ids 0 to 3 are Dragoman's specials, words follow."""
    return collate([([4, 5, 6, 7], [4, 5, 6, 7])])


def build(seed: int, **settings: Any) -> Transformer:
    torch.manual_seed(seed)
    config = parse(TransformerConfig, {**SIZES, "tie_embeddings": "none", **settings})
    return config.build(src_vocab_size=8, tgt_vocab_size=8, shared_vocab=False, pad_id=0)


def train_one_sentence(
    seed: int = 1, steps: int = 20, lr: float = 1e-3, warmup_steps: int = 0, **model: Any
) -> list[float]:
    """The loss of each step, in nats per token, of Adam on the one pair."""
    return _train(build(seed, **model), steps, lr, warmup_steps)


def learned_model(seed: int = 1, **model: Any) -> Transformer:
    """A small model that has learnt the pair by heart, ready to translate it. It takes about a second."""
    built = build(seed, **{**SMALL, **model})
    _train(built, steps=40, lr=3e-3, warmup_steps=5)
    return built.eval()


def _train(built: Transformer, steps: int, lr: float, warmup_steps: int) -> list[float]:
    """The loss of each step, in nats per token."""
    batch = one_sentence()
    built.train()
    optimizer = torch.optim.Adam(built.parameters(), lr=lr)
    losses = []
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = lr * warm_up(step, warmup_steps)
        loss = (
            token_loss(built(batch.src, batch.src_mask, batch.tgt_in), batch.tgt_out, batch.tgt_mask) / batch.num_tokens
        )
        take_step(optimizer, loss)
        losses.append(float(loss.detach()))
    return losses


def take_step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Go one step along the gradient of this loss alone."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
