"""A SentencePiece model that does what a recipe does to a text before its pieces are looked for.

Programs that know SentencePiece alone have no place for our normalisation: it stands in the model, as the table of
replacements that such a model may have.
"""

import itertools
import unicodedata
from collections.abc import Callable
from typing import cast

import sentencepiece as spm

from dragoman.errors import Error
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pieces import PiecesTokenizer
from dragoman.text.tokenizers.resampling import WORD_START
from dragoman.text.tokenizers.sentencepiece import SentencePieceTokenizer


def sentencepiece_model(tokenizer: Tokenizer, normalize: Callable[[str], str]) -> bytes:
    """The tokenizer's model, which normalises by itself as `normalize` does before it; an imported one does already.

    Raises DragomanError when the library is too old to make it.
    """
    if isinstance(tokenizer, PiecesTokenizer):
        return tokenizer.model
    try:
        spm.SetMinLogLevel(2)  # no word of what it builds
        normalizer = spm.SentencePieceNormalizer(
            norm_map=replacements(normalize),
            add_dummy_prefix=True,
            escape_whitespaces=True,
            remove_extra_whitespaces=True,
        )
    except (AttributeError, TypeError) as error:
        raise Error.NOT_INSTALLED(
            "SentencePiece cannot write its normalisation", "pip install -U sentencepiece"
        ) from error
    # Both are messages of one type (protobuf), of which the second holds the normalisation alone: one message that
    # goes on with another is both of them merged.
    model: bytes = cast(SentencePieceTokenizer, tokenizer).model
    return model + bytes(normalizer.serialized_model_proto())


def replacements(normalize: Callable[[str], str]) -> list[tuple[str, str]]:
    """Replacements for a text's normalisation and the white space between its pieces: (old, new), longest match first.

    Letters with several marks are known in any order of those; a mark that belongs to none of Unicode's letters stays
    where it is, though normalisation might move others over it.
    """
    table: dict[str, str] = {}
    composes = normalize("e\u0301") == "\u00e9"
    for character in map(chr, itertools.chain(range(1, 0xD800), range(0xE000, 0x110000))):  # all but surrogates
        if unicodedata.is_normalized("NFKD", character) and not character.isspace() and character != WORD_START:
            continue  # no normalisation does anything to it
        whole = normalize(character)
        table[character] = "".join(" " if part.isspace() or part == WORD_START else part for part in whole)
        apart = unicodedata.normalize("NFD", character)  # a letter and its marks
        if composes and len(apart) > 1:
            for order in itertools.permutations(apart[1:]):
                spelt = apart[0] + "".join(order)
                for cut in range(1, len(spelt)):
                    part = unicodedata.normalize("NFC", spelt[:cut]) + spelt[cut:]
                    if normalize(part) == whole:
                        table[part] = whole
    return [(old, new) for old, new in table.items() if old != new]
