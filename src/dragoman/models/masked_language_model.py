"""The masked language model: an encoder that guesses hidden tokens (Devlin et al. 2019, BERT, task 1)."""

from typing import Literal, final

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.models.blocks import BlockConfig
from dragoman.models.encoder_classifier import PooledEncoder
from dragoman.models.stacks import init_linear
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding


@settings
class MaskedLanguageModelConfig(BlockConfig):
    """Sizes and variants of the masked language model."""

    type: Literal["masked_language_model"] = "masked_language_model"
    num_layers: int = Field(default=4, ge=1, le=1000)  #: Encoder layers.
    tie_embeddings: bool = True  #: Use the embedding as the output matrix too.
    scale_embeddings: bool = True  #: Multiply embeddings by sqrt(d_model).

    def build(self, *, vocab_size: int, pad_id: int) -> "MaskedLanguageModel":
        """A freshly initialised model. Raises DragomanError when sizes do not fit each other."""
        self.check_sizes()
        return MaskedLanguageModel(self, TokenEmbedding(vocab_size, self.d_model, pad_id, self.scale_embeddings))


@final
class MaskedLanguageModel(nn.Module):
    """Token ids, some hidden, to logits of each position's own token. `MaskedLanguageModelConfig.build` makes one.

    Its parts have the names of a text classifier's parts, so that a classifier can begin with its weights
    (`tasks/pretrained.py`).
    """

    def __init__(self, config: MaskedLanguageModelConfig, tokens: TokenEmbedding) -> None:
        super().__init__()
        vocab_size, tied_to = tokens.embedding.num_embeddings, tokens if config.tie_embeddings else None
        self.embedding = config.positioned(tokens)
        self.encoder = PooledEncoder(config, config.num_layers, "mean")
        self.output = OutputProjection(vocab_size, config.d_model, tied_to, bias=True)
        init_linear(self, config.initialization)

    def forward(
        self, ids: Int[Tensor, "batch len"], real: Bool[Tensor, "batch len"]
    ) -> Float[Tensor, "batch len vocab"]:
        # Zeros at pads: even with weight 0, a NaN there would spoil a sum.
        x = self.embedding(ids).masked_fill(~real[..., None], 0.0)
        return self.output(self.encoder.hidden(x, real))
