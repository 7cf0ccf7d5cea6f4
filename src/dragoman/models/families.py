"""The model families. A family is its file and one entry of a union here; the contract tests run over every entry."""

from typing import Annotated

from dragoman.config import by_type, settings_classes, tag
from dragoman.models.base import DecoderState, Seq2SeqModel
from dragoman.models.recurrent import RecurrentConfig
from dragoman.models.text_classifier import TextClassifierConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.vit import ViTConfig

ModelConfig = Annotated[RecurrentConfig | TransformerConfig, by_type]
"""Settings `model:` of a recipe for translation."""

MODELS = {str(tag(cls)): cls for cls in settings_classes(ModelConfig)}
CLASSIFIERS = {str(tag(cls)): cls for cls in (TextClassifierConfig, ViTConfig)}
"""Settings `model:` of a recipe for classification, of texts and of images, by `type`."""

__all__ = [
    "CLASSIFIERS",
    "MODELS",
    "DecoderState",
    "ModelConfig",
    "RecurrentConfig",
    "Seq2SeqModel",
    "TextClassifierConfig",
    "TransformerConfig",
    "ViTConfig",
]
