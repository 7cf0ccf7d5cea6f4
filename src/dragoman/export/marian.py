"""A run in Marian, whose models Firefox's and other translators without a network are made from.

A folder holds `model.npz`, the vocabularies and `decoder.yml`, which `marian-decoder` and pymarian take as `--config`.
Text is cut by SentencePiece, whose model normalises by itself; where Marian cannot cut as we do (an imported table of
ids, words), it gets pieces with spaces between them, from `vocab.yml`. Its search is its own: a beam loses a place
with each hypothesis that is finished, and ends when none is left, so greedy search finds the same, and a beam
nearly always.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.penalties import AveragePenalty, NoPenalty
from dragoman.errors import Error
from dragoman.export import marian_format, marian_weights
from dragoman.export.ctranslate2 import MIN_POSITIONS
from dragoman.export.normalization import sentencepiece_model
from dragoman.export.origin import write_origin
from dragoman.inference.long_input import split_long
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.models.transformer import Transformer
from dragoman.runs import atomic_io
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pair import TokenizerPair, pieces_of
from dragoman.text.tokenizers.pieces import PiecesTokenizer
from dragoman.text.tokenizers.sentencepiece import SentencePieceTokenizer
from dragoman.text.tokenizers.subword_nmt import SubwordNmtTokenizer
from dragoman.text.tokenizers.whitespace import WhitespaceTokenizer
from dragoman.version import __version__

MODEL, CONFIG = "model.npz", "decoder.yml"
PYTHON = "DRAGOMAN_MARIAN"
"""Environment variable: the Python that has pymarian, which is large; without it, the one that runs Dragoman."""
NEVER_BIAS = -50.0
"""A bias below which an entry has no part in the normaliser in float32."""
FOLLOWED = ("beam_size", "length_penalty", "max_length_ratio", "n_best", "ban_unk", "word_penalty")
"""The search settings that are followed; all other search settings must have their defaults."""


# -- what can be exported ------------------------------------------------------------------------------------------


def problems(
    translator: SearchTranslator, kinds: Sequence[str] = (marian_weights.OLD, marian_weights.NEW)
) -> list[str]:
    """Why Marian cannot represent this translator: a line for each reason, with what to change; none: it can."""
    model, tokenizers = translator.model, translator.tokenizers
    if not isinstance(model, Transformer):
        kind = type(model).__name__.lower()
        return [f"the model is of the type {kind}: train with model {{type: transformer}}"]
    reasons = marian_weights.problems(model, kinds)
    if tokenizers.languages is not None and tokenizers.languages.tags:
        reasons.append("the model is told languages, and Marian has no place to tell them: have it teach one of two")
    for kind in dict.fromkeys(one.config.type for one in (tokenizers.src, tokenizers.tgt) if not isinstance(one, CUT)):
        reasons.append(f"tokenizer {{type: {kind}}} is not Marian's: train with tokenizer {{type: sentencepiece}}")
    return reasons


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """These settings as near as Marian's search follows them: it bounds a length by a multiple of the source's."""
    default = DecodingConfig()
    names = {setting.name for setting in fields(cast(Any, decoding))} - set(FOLLOWED)
    kept = replace(decoding, n_best=1, **{name: getattr(default, name) for name in names})
    penalty = kept.length_penalty
    if not isinstance(penalty, AveragePenalty | NoPenalty):
        penalty = AveragePenalty(alpha=min(penalty.alpha, 1.0))
    # As long as ours are for a source of four tokens; a long one may have more than ours.
    ratio = decoding.max_length_ratio + decoding.max_length_extra / 4
    return replace(
        kept,
        length_penalty=penalty,
        max_length_ratio=ratio,
        max_length_extra=0,
        n_best=min(decoding.n_best, kept.num_candidates),
    )


# -- writing -------------------------------------------------------------------------------------------------------


class Side(NamedTuple):
    """A vocabulary as Marian has it."""

    rows: list[int]
    """Our id of each of its own."""
    file: str
    content: bytes
    cut: bool
    """It cuts text by itself; otherwise pieces are given to it with spaces between them."""


def write(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> None:
    """Write the model, vocabularies and settings of its search into an empty folder.

    Raises DragomanError for a `quantize`: Marian's tools quantise, and --to bergamot does for browsers.
    """
    if quantize is not None:
        raise Error.UNKNOWN_NAME(f"`quantize` {quantize}: model.npz is in float32", "leave it, or export to bergamot")
    model = cast(Transformer, translator.model)
    kind = marian_weights.kind_of(model)
    assert kind is not None
    sides = vocabularies(translator)
    write_vocabularies(folder, translator.tokenizers, sides)
    length = num_positions(translator)
    sizes = len(sides[0].rows), len(sides[1].rows)
    marian_format.write_npz(
        folder / MODEL,
        marian_weights.arrays(model, kind, (sides[0].rows, sides[1].rows), length),
        marian_weights.options(model, kind, sizes, f"v1.12.0 Dragoman {__version__}"),
    )
    settings = {
        "relative-paths": True,
        "models": [MODEL],
        "vocabs": [side.file for side in sides],
        **search_settings(translator.decoding),
        "max-length": length,
        "max-length-crop": True,
        "mini-batch": 16 if kind == marian_weights.OLD else 1,  # `transformer-new` gets padded sentences wrong
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
    }
    atomic_io.write_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False))
    write_origin(translator, folder)


def search_settings(decoding: DecodingConfig) -> dict[str, Any]:
    """Marian's settings of the search that `nearest` gives."""
    followed = nearest(decoding) if decoding.max_length_extra else decoding
    penalty = followed.length_penalty
    return {
        "beam-size": followed.beam_size,
        "normalize": penalty.alpha if isinstance(penalty, AveragePenalty) else 0.0,
        "word-penalty": followed.word_penalty,
        "max-length-factor": followed.max_length_ratio,
        "allow-unk": not followed.ban_unk,
    }


def num_positions(translator: SearchTranslator) -> int:
    """Positions that a source, or a translation of it, may reach there."""
    limit = translator.model.max_target_length
    ratio = search_settings(translator.decoding)["max-length-factor"]
    return limit or max(MIN_POSITIONS, int(max(ratio, 1.0) * (translator.max_src_tokens + 1)))


def vocabularies(translator: SearchTranslator) -> tuple[Side, Side]:
    """Source and target; the same where they are shared."""
    tokenizers, normalize = translator.tokenizers, translator.normalize
    bias = cast(Transformer, translator.model).output.bias
    silent = bias is not None and max(bias[PAD_ID].item(), bias[BOS_ID].item()) < NEVER_BIAS
    src = _side(tokenizers.src, normalize, "source" if not tokenizers.shared else "vocab", silent)
    return src, src if tokenizers.shared else _side(tokenizers.tgt, normalize, "target", silent)


def _side(tokenizer: Tokenizer, normalize: Callable[[str], str], name: str, silent: bool) -> Side:
    """`silent`: entries for padding and the start are never said, and may be left out."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        rows = list(range(tokenizer.vocab_size))
        return Side(rows, f"{name}.spm", sentencepiece_model(tokenizer, normalize), cut=True)
    if isinstance(tokenizer, PiecesTokenizer) and tokenizer.model_pieces() == pieces_of(tokenizer):
        return Side(list(range(tokenizer.vocab_size)), f"{name}.spm", tokenizer.model, cut=True)
    if isinstance(tokenizer, PiecesTokenizer) and silent:
        named = {SPECIALS[EOS_ID]: EOS_ID, SPECIALS[UNK_ID]: UNK_ID}
        rows = [named.get(piece, tokenizer.id_of(piece)) for piece in tokenizer.model_pieces()]
        if sorted(rows) == [UNK_ID, EOS_ID, *range(len(SPECIALS), tokenizer.vocab_size)]:
            return Side(rows, f"{name}.spm", tokenizer.model, cut=True)
    table = {piece: index for index, piece in enumerate(pieces_of(tokenizer))}
    text = yaml.safe_dump(table, allow_unicode=True, sort_keys=False, width=2**31)
    return Side(list(table.values()), f"{name}.yml", text.encode(), cut=False)


def write_vocabularies(folder: Path, tokenizers: TokenizerPair, sides: tuple[Side, Side]) -> None:
    for side, tokenizer in zip(sides, (tokenizers.src, tokenizers.tgt), strict=True):
        atomic_io.replace_bytes(folder / side.file, side.content)
        if not side.cut and isinstance(tokenizer, PiecesTokenizer):  # what cuts a text before Marian
            name = "source" if tokenizer is tokenizers.src else "target"
            atomic_io.replace_bytes(folder / f"{name}.spm", tokenizer.model)


# -- translating ---------------------------------------------------------------------------------------------------


def load(folder: Path, translator: SearchTranslator) -> "MarianEngine":
    """The written model, run by pymarian. Of `translator`, only how it cuts, joins and limits is asked."""
    return MarianEngine(translator, lambda texts, widths: pymarian(folder, translator.decoding, texts, widths))


Run = Callable[[Sequence[str], Sequence[int]], list[list[Translation]]]
"""Texts and how many tokens each of them has, to the translations of each."""


class MarianEngine:
    """A decoder of another program over whole texts, as a `SearchTranslator` is over its search."""

    def __init__(self, translator: SearchTranslator, run: Run, *, scored: bool = True) -> None:
        """`scored`: its translations have scores."""
        self.translator, self.run, self.scored = translator, run, scored
        sides = vocabularies(translator)
        self.cut = [side.cut for side in sides]

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The best translations of each sentence, as `SearchTranslator.n_best`."""
        parts = [self._parts(sentence) for sentence in sentences]
        whole = list(itertools.chain.from_iterable(parts))
        translations = iter(self.run([self._given(part) for part in whole], [self._count(part) for part in whole]))
        joined = self.translator._joined
        return [joined([self._read(next(translations)) for _ in of_sentence]) for of_sentence in parts]

    def _parts(self, sentence: str) -> list[str]:
        if not sentence.strip() or not self._count(sentence):
            return []
        limit = self.translator.max_src_tokens
        return [sentence] if self._count(sentence) <= limit else split_long(sentence, self._count, limit)

    def _count(self, text: str) -> int:
        return len(self.translator.tokenizers.src.encode(self.translator.normalize(text)))

    def _given(self, text: str) -> str:
        """A line for Marian."""
        if self.cut[0]:
            return text.replace("\n", " ")
        src = self.translator.tokenizers.src
        return " ".join(src.pieces(src.encode(self.translator.normalize(text))))

    def _read(self, best: list[Translation]) -> list[Translation]:
        if self.cut[1]:
            kept = best
        else:
            tgt = self.translator.tokenizers.tgt
            kept = [replace(one, text=tgt.decode([tgt.id_of(piece) for piece in one.text.split()])) for one in best]
        return list({one.text: one for one in reversed(kept)}.values())[::-1]


def pymarian(
    folder: Path, decoding: DecodingConfig, texts: Sequence[str], widths: Sequence[int], threads: int = 1
) -> list[list[Translation]]:
    """The `n_best` translations of each text by Marian, in a process of its own: it ends that with an error.

    `widths`: tokens of the texts. Those of as many are translated together: a longest translation is of a whole batch.

    Raises DragomanError where pymarian is not installed, or complains.
    """
    groups = by_width(widths)
    lines = "".join(json.dumps([texts[number] for number in numbers]) + "\n" for numbers in groups)
    try:
        given = [*command(folder, decoding, threads), "--n-best"]
        done = subprocess.run(given, input=lines, capture_output=True, encoding="utf-8", check=False)
    except OSError as error:
        raise Error.NOT_INSTALLED(f"{PYTHON}={python()} cannot be run: {error}") from error
    if "No module named" in done.stderr:
        raise Error.NOT_INSTALLED(
            "pymarian is not installed",
            f"pip install pymarian, or name the Python of an environment that has it in {PYTHON}",
        )
    if done.returncode:
        message = " ".join(line for line in done.stderr.splitlines() if "Error:" in line) or done.stderr[-300:]
        raise Error.EXTERNAL_FAILED(f"Marian: {' '.join(message.split())}")
    blocks = [json.loads(line) for line in done.stdout.splitlines()[-len(groups) :]]
    translations: list[list[Translation]] = [[] for _ in texts]
    for numbers, block in zip(groups, blocks, strict=True):
        for line in filter(None, "\n".join(block).split("\n")):
            head, _, rest = line.partition(" ||| ")
            text, log_prob, score = rest.rsplit(" ||| ", 2)
            translations[numbers[int(head)]].append(Translation(text, float(score), float(log_prob.split("= ")[1])))
    return [best[: decoding.n_best] for best in translations]


def command(folder: Path, decoding: DecodingConfig, threads: int = 1) -> list[str]:
    """The command that translates lists of texts, one a line in JSON, to such lists of translations."""
    settings = search_settings(decoding)
    allow_unk = settings.pop("allow-unk")
    options = [item for name, value in settings.items() for item in (f"--{name}", str(value))]
    options += ["--allow-unk"] if allow_unk else []
    options += ["--cpu-threads", str(threads), "--mini-batch", "32", "--quiet"]
    return [python(), "-c", WORKER, "--config", str(folder / CONFIG), *options]


def by_width(widths: Sequence[int]) -> list[list[int]]:
    """The numbers of the texts of each width."""
    groups: dict[int, list[int]] = {}
    for number, width in enumerate(widths):
        groups.setdefault(width, []).append(number)
    return list(groups.values())


def python() -> str:
    """The Python that has pymarian."""
    return os.environ.get(PYTHON, sys.executable)


WORKER = """
import json, shlex, sys
from pymarian import Translator
translator = Translator(shlex.join(sys.argv[1:]))
for line in sys.stdin:
    print(json.dumps(translator.translate(json.loads(line))), flush=True)
"""
"""The script that the Python with pymarian runs."""

CUT = (SentencePieceTokenizer, PiecesTokenizer, WhitespaceTokenizer, SubwordNmtTokenizer)
"""Tokenizers that Marian's vocabularies hold."""
