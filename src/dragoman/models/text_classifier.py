"""The text classifier: an encoder, one vector, one logit for each label (Devlin et al. 2019, without pretraining)."""

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import Field, settings
from dragoman.models.blocks import BlockConfig
from dragoman.models.encoder_classifier import PooledEncoder, Pooling
from dragoman.models.stacks import init_linear
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
        tokens = TokenEmbedding(vocab_size, self.d_model, pad_id, self.scale_embeddings)
        return TextClassifier(self, tokens, num_labels, unk_id)


class TokenConvolution(nn.Module):
    """x + dropout(gelu(convolution of x)): each position sees its neighbours (the filters of Kim 2014).

    Attention has to learn from data that neighbours belong together. Vectors at padding must be zero, as those beyond
    the ends are.
    """

    def __init__(self, d_model: int, width: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d_model, d_model, width, padding="same")
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch len d_model"]) -> Float[Tensor, "batch len d_model"]:
        return x + self.dropout(F.gelu(self.convolution(x.transpose(1, 2)).transpose(1, 2)))


@final
class TextClassifier(nn.Module):
    """Token ids to logits over labels. `TextClassifierConfig.build` assembles one."""

    def __init__(self, config: TextClassifierConfig, tokens: TokenEmbedding, num_labels: int, unk_id: int) -> None:
        super().__init__()
        width, d_model, dropout = config.convolution, config.d_model, config.dropout
        embedding, encoder = config.positioned(tokens), PooledEncoder(config, config.num_layers, config.pooling)
        head = nn.Linear(d_model, num_labels)
        self.embedding = embedding
        self.convolution = TokenConvolution(d_model, width, dropout) if width else None
        self.encoder, self.head = encoder, head
        self.dropout, self.word_dropout, self.unk_id = Dropout(dropout), config.word_dropout, unk_id
        init_linear(self, config.initialization)

    def forward(
        self, ids: Int[Tensor, "batch len"], real: Bool[Tensor, "batch len"]
    ) -> Float[Tensor, "batch num_labels"]:
        if self.training and self.word_dropout:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.word_dropout, self.unk_id)
        # Zeros at pads: even with weight 0, a NaN there would spoil a sum.
        x = self.embedding(ids).masked_fill(~real[..., None], 0.0)
        if self.convolution is not None:
            x = self.convolution(x).masked_fill(~real[..., None], 0.0)
        return self.head(self.dropout(self.encoder(x, real)))
