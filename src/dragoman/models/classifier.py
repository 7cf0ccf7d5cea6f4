"""The text classifier: an encoder, one vector, one logit for each label (Devlin et al. 2019, without pretraining)."""

from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.models.blocks import BlockConfig, PositionedEmbedding, init_linear
from dragoman.models.pooled import PooledEncoder, Pooling
from dragoman.nn.dropout import Dropout
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.nn.ngrams import NgramEmbedding


@settings
class NgramConfig:
    """Vectors of n-grams, added to those of tokens: what stands together is seen without learning to look for it."""

    order: int = Field(default=2, ge=2, le=8)
    """The longest n-grams; all from 2 on are taken."""
    buckets: int = Field(default=20_000, ge=1)
    """Rows of the table that n-grams are hashed into."""


@settings
class TextClassifierConfig(BlockConfig):
    """Sizes and variants of the text classifier."""

    type: Literal["text_classifier"] = "text_classifier"
    num_layers: int = Field(default=2, ge=1)
    pooling: Pooling = "class_token"
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the tokens that training replaces by <unk>: no single word can then be relied on (Iyyer et al. 2015)."""
    ngrams: NgramConfig | None = None
    scale_embeddings: bool = True

    def build(self, *, vocab_size: int, num_labels: int, pad_id: int, unk_id: int) -> "TextClassifier":
        """A freshly initialised model. Raises DragomanError when sizes do not fit each other."""
        self.check_sizes()
        embedding = TokenEmbedding(vocab_size, self.d_model, pad_id, self.scale_embeddings)
        return TextClassifier(
            self.positioned(embedding),
            PooledEncoder(self, self.num_layers, self.pooling),
            nn.Linear(self.d_model, num_labels),
            ngrams=NgramEmbedding(self.ngrams.order, self.ngrams.buckets, self.d_model) if self.ngrams else None,
            dropout=self.dropout,
            word_dropout=self.word_dropout,
            unk_id=unk_id,
        )


@final
class TextClassifier(nn.Module):
    """Token ids to logits over labels. `TextClassifierConfig.build` assembles one."""

    def __init__(
        self,
        embedding: PositionedEmbedding,
        encoder: PooledEncoder,
        head: nn.Linear,
        *,
        ngrams: NgramEmbedding | None,
        dropout: float,
        word_dropout: float,
        unk_id: int,
    ) -> None:
        super().__init__()
        self.embedding, self.ngrams, self.encoder, self.head = embedding, ngrams, encoder, head
        self.dropout, self.word_dropout, self.unk_id = Dropout(dropout), word_dropout, unk_id
        init_linear(self)

    def forward(
        self, ids: Int[Tensor, "batch len"], mask: Bool[Tensor, "batch len"], maps: list[Tensor] | None = None
    ) -> Float[Tensor, "batch num_labels"]:
        if self.training and self.word_dropout:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, self.unk_id)
        x = self.embedding(ids)
        if self.ngrams is not None:
            x = x + self.dropout(self.ngrams(ids))
        # Zeros at pads, so that not even a NaN there gets into a sum with weight 0.
        x = x.masked_fill(~mask[..., None], 0.0)
        return self.head(self.dropout(self.encoder(x, mask, maps)))

    def attention_maps(self, ids: Int[Tensor, "batch len"], mask: Bool[Tensor, "batch len"]) -> dict[str, Tensor]:
        """The attention weights of every layer, `encoder.0.self`: (batch, num_heads, queries, keys)."""
        maps: list[Tensor] = []
        self(ids, mask, maps)
        return self.encoder.attention_maps(maps)

    def load_vectors(self, rows: Mapping[int, Any], freeze: bool) -> None:
        """Pretrained word vectors by token id (`TokenEmbedding.load_vectors`); frozen, no embedding is trained."""
        self.embedding.tokens.load_vectors(rows)
        self.embedding.tokens.embedding.weight.requires_grad_(not freeze)
