"""A run as a package for Argos Translate (and LibreTranslate), which people install and use without a network.

A package is a zip file: a folder with `metadata.json`, the SentencePiece model that text is encoded and decoded with,
and in `model/` what CTranslate2 reads. What we do to a text before its pieces are looked for (the recipe's
normalisation, white space) has no code there, so it goes into the SentencePiece model, as the table of replacements
that such a model may have. Argos Translate's ways are its own, and `nearest` goes with them as far as it can:

- It cuts a text at the ends of sentences, with a splitter of its own, and translates them one by one.
- It searches with a beam of 4, a length penalty of 0.2 and for 1 to 256 tokens, whatever a recipe says, and stops when
  enough hypotheses are finished, where ours stops when none can be overtaken.
- It does not ban `<unk>`: it writes the source word there that was most attended to.
- It writes a space for every `_`.
- Unless told otherwise (`ARGOS_COMPUTE_TYPE`), it computes in int8 where a processor can, also of float32 weights.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sentencepiece as spm
import torch

from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.penalties import AveragePenalty
from dragoman.errors import Error
from dragoman.export import ctranslate2
from dragoman.export.normalization import sentencepiece_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.languages.codes import fits, name_of, parsed, tag_of
from dragoman.runs import atomic_io
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pieces import PiecesTokenizer
from dragoman.text.tokenizers.resampling import WORD_START
from dragoman.text.tokenizers.sentencepiece import SentencePieceTokenizer
from dragoman.version import __version__

BEAM_SIZE, ALPHA, MAX_TOKENS = 4, 0.2, 256
"""Of Argos Translate's search; CTranslate2's own for the longest translation."""

VERSIONS = {"package_version": "1.0", "argos_version": "1.9"}
"""Of a package made here, and the Argos Translate from which on its tokenizer is read as it is written."""

CODES = {"pb": "pt_BR", "zt": "zh_Hant", "nb": "no"}
"""Languages that have a code of their own there."""


def problems(translator: SearchTranslator) -> list[str]:
    """Why there can be no package of this translator, one line each with what to change; none: there can."""
    reasons = ctranslate2.problems(translator)
    tokenizers = translator.tokenizers
    if tokenizers.languages is not None and tokenizers.languages.tags:
        reasons.append("the model is told languages, and a package has no place to tell them: have it teach one of two")
    elif isinstance(tokenizers.src, PiecesTokenizer) and isinstance(tokenizers.tgt, PiecesTokenizer):
        # Pieces are joined there without a model, so that of the source is enough; it normalises by itself.
        if translator.normalize is not NORMALIZERS["none"]:
            reasons.append("corpus.normalize: a package leaves it to the imported SentencePiece model (none)")
    elif not tokenizers.shared:
        reasons.append(
            "tokenizer {type: separate}: a package has one SentencePiece model for both languages: train with "
            "tokenizer {type: sentencepiece}"
        )
    elif not isinstance(tokenizers.src, SentencePieceTokenizer):
        reasons.append(
            f"tokenizer {{type: {tokenizers.src.config.type}}}: Argos Translate knows SentencePiece alone: train with "
            "tokenizer {type: sentencepiece}"
        )
    limit = translator.model.max_target_length
    if limit is not None and limit < MAX_TOKENS:
        reasons.append(
            f"model.position: learned positions end at {limit}, and Argos Translate goes on to {MAX_TOKENS}: train "
            "with sinusoidal or rotary positions, or a larger max_len"
        )
    codes = [_code(language) for language in translator.languages or ("", "")]
    known = [re.fullmatch("[a-z]{2,3}", code) is not None for code in codes]
    if not all(known) or codes[0] == codes[1]:
        reasons.append(
            f"corpus.src_lang {codes[0]!r}, corpus.tgt_lang {codes[1]!r}: Argos Translate finds a package by two "
            "different ISO 639 codes, such as en and de"
        )
    return reasons


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """Argos Translate's search, in our terms."""
    followed = ctranslate2.nearest(decoding)
    return replace(followed, n_best=1, min_length=1, beam_size=BEAM_SIZE, length_penalty=AveragePenalty(alpha=ALPHA))


# -- writing -------------------------------------------------------------------------------------------------------


def write(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> None:
    """Write the package, `translate-en_de-1_0.argosmodel` say, into an empty folder.

    Raises DragomanError for a quantization that CTranslate2 has not, or when it is not installed.
    """
    metadata = _metadata(translator)
    name = "translate-{from_code}_{to_code}-{}".format(metadata["package_version"].replace(".", "_"), **metadata)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        root = Path(place) / name
        (root / "model").mkdir(parents=True)
        ctranslate2.write_model(translator, root / "model", quantize)
        (root / "sentencepiece.model").write_bytes(sentencepiece_model(translator.tokenizers.src, translator.normalize))
        atomic_io.write_text(root / "metadata.json", json.dumps(metadata, indent=4, ensure_ascii=False) + "\n")
        atomic_io.write_text(root / "README.md", README.format(version=__version__, **metadata))
        package = shutil.make_archive(str(root), "zip", place, name)
        atomic_io.rename(Path(package), folder / f"{name}.argosmodel")


def _metadata(translator: SearchTranslator) -> dict[str, str]:
    assert translator.languages is not None
    src, tgt = translator.languages
    names = {"from_code": _code(src), "from_name": name_of(src), "to_code": _code(tgt), "to_name": name_of(tgt)}
    return {**VERSIONS, **names}


def _code(language: str) -> str:
    """The code of Argos Translate: of two or three letters, with some of its own for variants."""
    is_brazilian = parsed(language).region == "BR"
    own = (code for code, like in CODES.items() if fits(language, like) and (code != "pb" or is_brazilian))
    return next(own, tag_of(language).partition("-")[0])


README = """# {from_name} to {to_name}

A package for Argos Translate and LibreTranslate, made by Dragoman {version} of a model that was trained with it.
Install it with `argospm install` or `argostranslate.package.install_from_path`.

What the model was trained on, and under which licence it may be passed on, is for its maker to say here.
"""


# -- translating ---------------------------------------------------------------------------------------------------


def load(folder: Path, translator: SearchTranslator) -> "ArgosEngine":
    """The package in `folder`, translated with as Argos Translate does it.

    Raises DragomanError for a package that cannot be read.
    """
    return ArgosEngine(folder, translator)


class ArgosEngine:
    """The translations of Argos Translate: by its own code where it is installed, else by the same calls.

    For its code it stands in the place of the sentence splitter and of CTranslate2, to keep the pieces.
    """

    writes = "its decoder writes `_` as a space"

    def __init__(self, folder: Path, translator: SearchTranslator) -> None:
        self.decoding = translator.decoding
        with tempfile.TemporaryDirectory() as place:
            try:
                (path,) = folder.glob("*.argosmodel")
                shutil.unpack_archive(path, place, "zip")  # noqa: TID251 - what `write` has made
                (root,) = Path(place).iterdir()
                self.runtime = ctranslate2.library().Translator(
                    str(root / "model"), compute_type="default", inter_threads=1, intra_threads=torch.get_num_threads()
                )
                self.processor: Any = spm.SentencePieceProcessor(model_file=str(root / "sentencepiece.model"))
                self._by_argos = self._own_code(root)
            except (OSError, RuntimeError, ValueError, shutil.ReadError) as error:
                raise Error.CANNOT_READ(f"not a package that can be read: {error}", file=folder) from error
        self.last: tuple[list[list[str]], list[list[str]]] = [], []

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The translation of each sentence, as the only one."""
        return [[self._translation(sentence)] for sentence in sentences]

    def remarks(self) -> list[str]:
        """Who translated, and what was left out."""
        if self._by_argos is None:
            return [
                "argostranslate is not installed: its calls to SentencePiece and CTranslate2 were made without it, "
                "each line as one sentence"
            ]
        return ["translated by argostranslate itself, but for its splitter: each line as one sentence"]

    def as_written(self, text: str) -> str:
        """A translation of ours as Argos Translate's decoder writes it."""
        return text.replace("_", " ").removeprefix(" ")

    def _translation(self, sentence: str) -> Translation:
        if not sentence.strip() or not self.processor.encode(sentence):
            return Translation("", 0.0, 0.0)
        text = (self._by_argos or self._by_the_same_calls)(sentence)
        # Of the search itself, scores would be without the probability of the </s> that may not come first.
        log_probs = self.runtime.score_batch(*self.last)[0].log_probs
        log_prob = sum(log_probs)
        return Translation(text, log_prob / self.decoding.length_penalty.divisor(len(log_probs)), log_prob)

    def _own_code(self, root: Path) -> Callable[[str], str] | None:
        try:
            from argostranslate.package import Package
            from argostranslate.translate import apply_packaged_translation
        except ImportError:
            return None
        package = Package(root)
        package.tokenizer.encode("")  # which reads its file now
        return lambda sentence: str(apply_packaged_translation(package, sentence, self, self, 1)[0].value)

    def _by_the_same_calls(self, sentence: str) -> str:
        answers = self.translate_batch(
            [self.processor.encode(sentence, out_type=str)],
            replace_unknowns=True,
            beam_size=BEAM_SIZE,
            length_penalty=ALPHA,
        )
        text = str(self.processor.decode_pieces(answers[0].hypotheses[0]))
        return self.as_written(text.replace(WORD_START, " "))

    def split_sentences(self, text: str) -> list[str]:
        """As Argos Translate asks its splitter."""
        return [text]

    def translate_batch(self, pieces: list[list[str]], **options: Any) -> Any:
        """As Argos Translate asks CTranslate2; keeps the last pieces, of source and translation."""
        answers = self.runtime.translate_batch(pieces, **options)
        self.last = pieces, [answer.hypotheses[0] for answer in answers]
        return answers
