"""The model families. A family is its file and one row here; the contract tests run over every row."""

from typing import Annotated

from dragoman.config import by_type
from dragoman.models.base import DecoderState, Seq2SeqModel
from dragoman.models.recurrent import RecurrentConfig
from dragoman.models.text_classifier import TextClassifierConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.vit import ViTConfig

MODELS = {"recurrent": RecurrentConfig, "transformer": TransformerConfig}

ModelConfig = Annotated[RecurrentConfig | TransformerConfig, by_type]
"""What `model:` in a recipe may hold."""

CLASSIFIERS = {"text_classifier": TextClassifierConfig, "vit": ViTConfig}
"""What `model:` in a recipe for classification may be of, for texts and for images."""

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
