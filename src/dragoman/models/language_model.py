"""The language model: the decoder's blocks without an encoder (Radford et al. 2018, GPT)."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.models.blocks import BlockConfig, DecoderLayer
from dragoman.models.stacks import init_linear, shrink_residuals, stack, taken
from dragoman.nn import masks
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding
from dragoman.nn.kv_cache import DecodingCache


@settings
class LanguageModelConfig(BlockConfig):
    """Sizes and variants of the language model."""

    type: Literal["language_model"] = "language_model"
    num_layers: int = Field(default=4, ge=1, le=1000)  #: Decoder layers.
    tie_embeddings: bool = True  #: Use the embedding as the output matrix too.
    scale_embeddings: bool = True  #: Multiply embeddings by sqrt(d_model).
    shrink_residuals: bool = True
    """Scale what every layer adds at the start of training by (2 num_layers)^-0.5, as in GPT-2."""

    def build(self, *, vocab_size: int, pad_id: int) -> "LanguageModel":
        """A freshly initialised model. Raises DragomanError when sizes do not fit each other."""
        self.check_sizes()
        tokens = TokenEmbedding(vocab_size, self.d_model, pad_id, self.scale_embeddings)
        model = LanguageModel(self, tokens)
        if self.shrink_residuals:
            shrink_residuals(model.layers)
        return model


@dataclass(frozen=True)
class LanguageModelState:
    """The caches, one for each layer."""

    past: tuple[DecodingCache, ...]
    pads_rows: ClassVar[bool] = False

    def reorder(self, rows: Int[Tensor, " new_rows"]) -> "LanguageModelState":
        """Row i of the result is row `rows[i]` of this state."""
        return LanguageModelState(tuple(layer.reorder(rows, None) for layer in self.past))


@final
class LanguageModel(nn.Module):
    """A stack of causal blocks that gives logits of each next token. `LanguageModelConfig.build` assembles one.

    Its input may begin anywhere in a text (`data/windows.py`): there is no `<s>`, and nothing is padded.
    `start`, `decode_step` and `reorder` are as in `models/base.py`, except that there is no memory to start from.
    """

    def __init__(self, config: LanguageModelConfig, tokens: TokenEmbedding) -> None:
        super().__init__()
        self.vocab_size = tokens.embedding.num_embeddings
        self.embedding, self.norm = config.positioned(tokens), config.final_norm()
        layers = [DecoderLayer(config, cross_attention=False) for _ in range(config.num_layers)]
        self.output = OutputProjection(self.vocab_size, config.d_model, tokens if config.tie_embeddings else None)
        self.layers = stack(layers, config.tied_layers)
        init_linear(self, config.initialization)

    def decode(self, ids: Int[Tensor, "batch len"]) -> Float[Tensor, "batch len vocab"]:
        """Logits of the next token after every prefix of `ids`."""
        x = self.embedding(ids)
        causal_mask = masks.causal_mask(ids.size(1), ids.device)
        for _, layer in taken(self.layers):
            x = layer(x, causal_mask)
        return self.output(self.norm(x))

    def forward(self, ids: Int[Tensor, "batch len"]) -> Float[Tensor, "batch len vocab"]:
        """Logits for training: `decode(ids)`."""
        return self.decode(ids)

    def start(self, rows: int) -> LanguageModelState:
        """The state of `rows` sequences before their first token."""
        nothing = self.embedding(torch.empty(rows, 0, dtype=torch.long, device=self.output.weight.device))
        return LanguageModelState(tuple(layer.self_attention.project_kv(nothing) for layer in self.layers))

    def prefill(
        self, ids: Int[Tensor, "rows new"], state: LanguageModelState
    ) -> tuple[Float[Tensor, "rows new vocab"], LanguageModelState]:
        """`decode_step` for each column of `ids`, for example of a prompt, in one pass."""
        start = state.past[0].length
        x, new = self.embedding(ids, start=start), ids.size(1)
        # A single new position may see everything.
        causal_mask = masks.causal_mask(start + new, ids.device)[:, :, start:] if new > 1 else None
        caches = []
        for layer, cache in zip(self.layers, state.past, strict=True):
            x, new_caches = layer.decode_step(x, [cache], causal_mask)
            caches += new_caches
        return self.output(self.norm(x)), LanguageModelState(tuple(caches))

    def decode_step(
        self, prev: Int[Tensor, " rows"], state: LanguageModelState
    ) -> tuple[Float[Tensor, "rows vocab"], LanguageModelState]:
        """Logits of the token after `prev`, and the state that includes `prev`. `state` itself is not changed."""
        logits, state = self.prefill(prev[:, None], state)
        return logits[:, 0], state
