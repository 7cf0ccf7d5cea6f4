"""Facts of a run beside an export of it, so that `dragoman import` makes the same run of it again."""

from pathlib import Path
from typing import Annotated, Literal

from dragoman import config
from dragoman.config import OneOf, settings
from dragoman.decoding.search import DecodingConfig
from dragoman.inference.search_translator import SearchTranslator
from dragoman.nn.positions import SINUSOID_BASE, SinusoidalPositions
from dragoman.runs.atomic_io import read_json, write_json
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import save_tokenizers

FILE, TOKENIZER = "dragoman.json", "tokenizer"


@settings
class Origin:
    """The content of `dragoman.json` beside a model of CTranslate2 or Hugging Face."""

    format: Literal["dragoman-export"] = "dragoman-export"
    languages: tuple[str, str] | None
    normalize: Annotated[str, OneOf(NORMALIZERS)]
    max_src_tokens: int
    position_layout: str | None  #: Of sinusoids; Hugging Face has the dimensions in an order of its own.
    position_base: float = SINUSOID_BASE
    decoding: DecodingConfig


def write_origin(translator: SearchTranslator, folder: Path) -> None:
    """Write the tokenizers as they are here, and `dragoman.json`."""
    positions = getattr(getattr(translator.model, "src_embedding", None), "positions", None)
    origin = Origin(
        languages=translator.languages,
        normalize=next(name for name, function in NORMALIZERS.items() if function is translator.normalize),
        max_src_tokens=translator.max_src_tokens,
        position_layout=positions.layout if isinstance(positions, SinusoidalPositions) else None,
        position_base=positions.base if isinstance(positions, SinusoidalPositions) else SINUSOID_BASE,
        decoding=translator.decoding,
    )
    save_tokenizers(translator.tokenizers, folder / TOKENIZER)
    write_json(folder / FILE, config.to_dict(origin))


def read_origin(folder: Path) -> Origin | None:
    """The facts that `write_origin` wrote; None: the model came from elsewhere.

    Raises DragomanError for a damaged file.
    """
    path = folder / FILE
    return config.parse(Origin, read_json(path, dict), str(path)) if path.exists() else None
