"""The model families. A family is its file and one row here; the contract tests run over every row."""

from typing import Annotated

from dragoman.config import by_type
from dragoman.models.base import DecoderState, Seq2SeqModel
from dragoman.models.recurrent import RecurrentConfig
from dragoman.models.transformer import TransformerConfig

MODELS = {"recurrent": RecurrentConfig, "transformer": TransformerConfig}

ModelConfig = Annotated[RecurrentConfig | TransformerConfig, by_type]
"""What `model:` in a recipe may hold."""

__all__ = ["MODELS", "DecoderState", "ModelConfig", "RecurrentConfig", "Seq2SeqModel", "TransformerConfig"]
