"""Token embeddings and the projection back to the vocabulary."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class TokenEmbedding(nn.Module):
    """Ids to vectors, multiplied by sqrt(d_model) when `scaled` (Vaswani et al. 2017, section 3.4).

    Scaling lets one small matrix serve twice: as logits weights it wants a standard deviation of d_model^-0.5, as
    input it should not drown in positions of size 1. The vector of `pad_id` stays zero.
    """

    def __init__(self, vocab_size: int, d_model: int, pad_id: int, scaled: bool) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.embedding.weight.data[pad_id].zero_()

    def forward(self, ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape d_model"]:
        return self.embedding(ids) * self.scale


class OutputProjection(nn.Module):
    """Hidden states to logits over the vocabulary. Tied: the very matrix of `tied_to` (Press and Wolf 2017)."""

    def __init__(self, vocab_size: int, d_model: int, tied_to: TokenEmbedding | None) -> None:
        super().__init__()
        self.weight = tied_to.embedding.weight if tied_to else nn.Parameter(_xavier(vocab_size, d_model))

    def forward(self, hidden: Float[Tensor, "*shape d_model"]) -> Float[Tensor, "*shape vocab_size"]:
        return F.linear(hidden, self.weight)


def _xavier(rows: int, columns: int) -> Tensor:
    return nn.init.xavier_uniform_(nn.Linear(columns, rows, bias=False).weight.data)
