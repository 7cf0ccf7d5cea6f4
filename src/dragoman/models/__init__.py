"""The model families. A family is its file and one row here; the contract tests run over every row."""

from dragoman.models.base import DecoderState, Seq2SeqModel
from dragoman.models.classifier import TextClassifierConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.vit import ViTConfig

MODELS = {"transformer": TransformerConfig}

ModelConfig = TransformerConfig
"""What `model:` in a recipe may hold; a union told apart by `type:` as soon as there is a second family."""

CLASSIFIERS = {"text_classifier": TextClassifierConfig, "vit": ViTConfig}
"""What `model:` in a recipe for classification may be of, for texts and for images."""

__all__ = [
    "CLASSIFIERS",
    "MODELS",
    "DecoderState",
    "ModelConfig",
    "Seq2SeqModel",
    "TextClassifierConfig",
    "TransformerConfig",
    "ViTConfig",
]
