"""The notes' smallest training: "ich mochte ein bier", by a model of any size."""

from typing import Any

import torch

from dragoman.config import parse
from dragoman.data.batch import Batch, collate
from dragoman.models.families import TransformerConfig
from dragoman.models.transformer import Transformer
from dragoman.training.loss import token_loss
from dragoman.training.schedules import warm_up

SRC_WORDS = ("P", "ich", "mochte", "ein", "bier")
"""The notes' source vocabulary; `P` is padding. Dragoman's four specials come before these words in a real run."""
TGT_WORDS = ("P", "i", "want", "a", "beer", "S", "E")
SIZES = {"d_model": 512, "num_heads": 8, "d_ff": 2048, "num_encoder_layers": 6, "num_decoder_layers": 6}
"""The settings of the notes: 44 million parameters, for one sentence pair."""


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
    built, batch = build(seed, **model).train(), one_sentence()
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
