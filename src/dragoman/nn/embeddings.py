"""Token embeddings and the projection back to the vocabulary."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.errors import Error


class TokenEmbedding(nn.Module):
    """Ids to vectors, multiplied by sqrt(d_model) if `scaled` (Vaswani et al. 2017, section 3.4).

    Scaling lets one matrix serve twice: as output matrix it needs a standard deviation of d_model^-0.5, and as input a
    size that compares with positions of size 1. The vector of `pad_id` is zero at first and stays zero unless an output
    is tied to the matrix, whose loss trains that row too. The vector of `zero_id` is zero always, whatever its row is.
    """

    zero_id: int | None = None

    def __init__(self, vocab_size: int, d_model: int, pad_id: int, scaled: bool) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.embedding.weight.data[pad_id].zero_()

    def forward(self, ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape d_model"]:
        vectors = self.embedding(ids) * self.scale
        return vectors if self.zero_id is None else vectors.masked_fill((ids == self.zero_id)[..., None], 0.0)

    def vectors(self) -> Float[Tensor, "vocab_size d_model"]:
        """The embedding matrix, without the scale."""
        weight = self.embedding.weight.detach()
        if self.zero_id is None:
            return weight
        return weight.index_fill(0, torch.tensor([self.zero_id], device=weight.device), 0.0)

    @torch.no_grad()
    def load_vectors(self, rows: Mapping[int, np.ndarray | Tensor]) -> None:
        """Initialise some rows with pretrained word vectors (id to vector); other ids keep their random ones.

        Published vectors have components of about 0.1 to 0.5. All of them are multiplied by one factor. It makes the
        root mean square of their components d_model^-0.5, as in the random rows. Angles and proportions of lengths
        stay. The vector of padding stays zero. Training changes these rows too.

        Raises DragomanError if a vector does not have d_model numbers, or one of them is not finite, or all are zero.
        """
        vectors = {row: torch.as_tensor(vector) for row, vector in rows.items() if row != self.pad_id}
        if not vectors:
            return
        size = self.embedding.embedding_dim
        for row, vector in vectors.items():
            if vector.shape != (size,):
                raise Error.MISMATCH(
                    f"the pretrained vector of id {row} has {vector.numel()} numbers, but model.d_model is {size}",
                    "set model.d_model to the size of the vectors, or take vectors of that size",
                )
        ids = torch.tensor(list(vectors), device=self.embedding.weight.device)
        table = torch.stack(list(vectors.values())).to(self.embedding.weight)  # (rows, d_model)
        root_mean_square = table.square().mean().sqrt()
        if not bool(root_mean_square.isfinite()) or root_mean_square == 0:
            raise Error.DAMAGED(
                f"the {len(vectors)} pretrained vectors are all zero or hold numbers that are not finite",
                "is the file of vectors damaged?",
            )
        self.embedding.weight[ids] = table * (size**-0.5 / root_mean_square)


class OutputProjection(nn.Module):
    """Hidden states to logits over the vocabulary. Tied: the matrix is the one of `tied_to` (Press and Wolf 2017).

    `bias`: a number of its own for each entry, zero at first.
    """

    def __init__(self, vocab_size: int, d_model: int, tied_to: TokenEmbedding | None, bias: bool = False) -> None:
        super().__init__()
        self.weight = tied_to.embedding.weight if tied_to else nn.Parameter(_xavier(vocab_size, d_model))
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None

    def forward(self, hidden: Float[Tensor, "*shape d_model"]) -> Float[Tensor, "*shape vocab_size"]:
        return F.linear(hidden, self.weight, self.bias)


def _xavier(rows: int, columns: int) -> Tensor:
    return nn.init.xavier_uniform_(nn.Linear(columns, rows, bias=False).weight.data)
