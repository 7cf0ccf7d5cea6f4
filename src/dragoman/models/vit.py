"""The Vision Transformer (Dosovitskiy et al. 2021): the same encoder over patches of an image."""

from dataclasses import replace
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.errors import Error
from dragoman.models.blocks import Activation, BlockConfig, LearnedConfig, PositionConfig, init_linear
from dragoman.models.encoder_classifier import PooledEncoder, Pooling
from dragoman.nn.dropout import Dropout
from dragoman.nn.patches import PatchEmbedding


@settings
class ViTConfig(BlockConfig):
    """Sizes and variants of the Vision Transformer: the paper's, but small."""

    type: Literal["vit"] = "vit"
    image_size: int = Field(default=28, ge=1, le=2**14)  #: Side of the square images. [pixels]
    channels: int = Field(default=1, ge=1, le=2**10)  #: Colour channels.
    patch_size: int = Field(default=4, ge=1, le=2**14)  #: Side of a patch. [pixels]
    num_layers: int = Field(default=4, ge=1, le=1000)  #: Encoder layers.
    pooling: Pooling = "class_token"  #: How positions become one vector.
    dropout: float = Field(default=0.1, ge=0, lt=1)
    activation: Activation = "gelu"
    position: PositionConfig = Field(default_factory=LearnedConfig)
    """Learned positions are as many as the patches, whatever their `max_len`."""

    @property
    def num_patches(self) -> int:
        return (self.image_size // self.patch_size) ** 2

    def build(self, *, num_labels: int) -> "ViT":
        """A freshly initialised model. Raises DragomanError when sizes do not fit each other."""
        self.check_sizes()
        if self.image_size % self.patch_size:
            raise Error.WRONG_SETTING(
                f"model.image_size ({self.image_size}) must be a multiple of model.patch_size ({self.patch_size})"
            )
        position = self.position
        if isinstance(position, LearnedConfig):
            position = replace(position, max_len=self.num_patches)
        return ViT(
            PatchEmbedding(self.channels, self.patch_size, self.d_model),
            position.build(self.d_model),
            self.new_norm() if self.embedding_norm else nn.Identity(),
            PooledEncoder(self, self.num_layers, self.pooling),
            nn.Linear(self.d_model, num_labels),
            dropout=self.dropout,
        )


@final
class ViT(nn.Module):
    """Images to logits over labels. `ViTConfig.build` assembles one."""

    def __init__(
        self,
        patches: PatchEmbedding,
        positions: nn.Module,
        norm: nn.Module,
        encoder: PooledEncoder,
        head: nn.Linear,
        *,
        dropout: float,
    ) -> None:
        super().__init__()
        self.patches, self.positions, self.norm = patches, positions, norm
        self.encoder, self.head, self.dropout = encoder, head, Dropout(dropout)
        init_linear(self)

    def forward(
        self, images: Float[Tensor, "batch channels height width"], maps: list[Tensor] | None = None
    ) -> Float[Tensor, "batch num_labels"]:
        x = self.patches(images)  # (batch, patches, d_model)
        x = self.dropout(self.norm(x + self.positions(0, x.size(1))))
        return self.head(self.encoder(x, None, maps))

    def attention_maps(self, images: Float[Tensor, "batch channels height width"]) -> dict[str, Tensor]:
        """The attention weights of every layer, `encoder.0.self`: (batch, num_heads, queries, keys)."""
        maps: list[Tensor] = []
        self(images, maps)
        return self.encoder.attention_maps(maps)
