"""The Vision Transformer (Dosovitskiy et al. 2021): the same encoder over patches of an image."""

from dataclasses import replace
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor, nn

from dragoman.config import Field, settings
from dragoman.errors import Error
from dragoman.models.blocks import Activation, BlockConfig, LearnedConfig, PositionConfig
from dragoman.models.encoder_classifier import PooledEncoder, Pooling
from dragoman.models.stacks import init_linear
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
        return ViT(self, num_labels)


@final
class ViT(nn.Module):
    """Images to logits over labels. `ViTConfig.build` assembles one."""

    def __init__(self, config: ViTConfig, num_labels: int) -> None:
        super().__init__()
        position = config.position
        if isinstance(position, LearnedConfig):
            position = replace(position, max_len=config.num_patches)
        self.patches = PatchEmbedding(config.channels, config.patch_size, config.d_model)
        self.positions = position.build(config.d_model)
        self.norm = config.new_norm() if config.embedding_norm else nn.Identity()
        self.encoder = PooledEncoder(config, config.num_layers, config.pooling)
        self.head, self.dropout = nn.Linear(config.d_model, num_labels), Dropout(config.dropout)
        init_linear(self, config.initialization)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch num_labels"]:
        x = self.patches(images)  # (batch, patches, d_model)
        x = self.dropout(self.norm(x + self.positions(0, x.size(1))))
        return self.head(self.encoder(x, None))
