"""The model families. A family is its file and one row here; the contract tests run over every row."""

from dragoman.models.base import DecoderState, Seq2SeqModel
from dragoman.models.transformer import TransformerConfig

MODELS = {"transformer": TransformerConfig}

ModelConfig = TransformerConfig
"""What `model:` in a recipe may hold; a union told apart by `type:` as soon as there is a second family."""

__all__ = ["MODELS", "DecoderState", "ModelConfig", "Seq2SeqModel", "TransformerConfig"]
