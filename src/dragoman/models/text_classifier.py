"""The text classifier: an encoder, one vector, one logit for each label (Devlin et al. 2019, without pretraining)."""

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.models.blocks import BlockConfig, PositionedEmbedding, init_linear
from dragoman.models.encoder_classifier import PooledEncoder, Pooling
from dragoman.nn.convolution import TokenConvolution
from dragoman.nn.dropout import Dropout
from dragoman.nn.embeddings import TokenEmbedding


@settings
class TextClassifierConfig(BlockConfig):
    """Sizes and variants of the text classifier."""

    type: Literal["text_classifier"] = "text_classifier"
    num_layers: int = Field(default=2, ge=1, le=1000)  #: Encoder layers.
    pooling: Pooling = "class_token"  #: How positions become one vector.
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Fraction of the tokens that training replaces by <unk>, so that no single word is relied on (after Iyyer et al.
    2015, who leave them out)."""
    convolution: int | None = Field(default=None, ge=3, le=1001)
    """Width, an odd number of tokens, of a convolution over neighbours before the first layer; null: none."""
    scale_embeddings: bool = True  #: Multiply embeddings by sqrt(d_model).

    def __post_init__(self) -> None:
        if self.convolution is not None and self.convolution % 2 == 0:
            raise ValueError(f"convolution must be odd, as many tokens to the left as to the right: {self.convolution}")

    def build(self, *, vocab_size: int, num_labels: int, pad_id: int, unk_id: int) -> "TextClassifier":
        """A freshly initialised model. Raises DragomanError when sizes do not fit each other."""
        self.check_sizes()
        embedding = TokenEmbedding(vocab_size, self.d_model, pad_id, self.scale_embeddings)
        return TextClassifier(
            self.positioned(embedding),
            PooledEncoder(self, self.num_layers, self.pooling),
            nn.Linear(self.d_model, num_labels),
            convolution=TokenConvolution(self.d_model, self.convolution, self.dropout) if self.convolution else None,
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
        convolution: TokenConvolution | None,
        dropout: float,
        word_dropout: float,
        unk_id: int,
    ) -> None:
        super().__init__()
        self.embedding, self.convolution, self.encoder, self.head = embedding, convolution, encoder, head
        self.dropout, self.word_dropout, self.unk_id = Dropout(dropout), word_dropout, unk_id
        init_linear(self)

    def forward(
        self, ids: Int[Tensor, "batch len"], padding_mask: Bool[Tensor, "batch len"], maps: list[Tensor] | None = None
    ) -> Float[Tensor, "batch num_labels"]:
        if self.training and self.word_dropout:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, self.unk_id)
        # Zeros at pads: even with weight 0, a NaN there would spoil a sum.
        x = self.embedding(ids).masked_fill(~padding_mask[..., None], 0.0)
        if self.convolution is not None:
            x = self.convolution(x).masked_fill(~padding_mask[..., None], 0.0)
        return self.head(self.dropout(self.encoder(x, padding_mask, maps)))

    def attention_maps(
        self, ids: Int[Tensor, "batch len"], padding_mask: Bool[Tensor, "batch len"]
    ) -> dict[str, Tensor]:
        """The attention weights of every layer, `encoder.0.self`: (batch, num_heads, queries, keys)."""
        maps: list[Tensor] = []
        self(ids, padding_mask, maps)
        return self.encoder.attention_maps(maps)
