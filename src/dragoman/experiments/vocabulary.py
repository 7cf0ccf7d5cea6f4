"""The work of `dragoman vocabulary`: a run with fewer entries in its vocabulary, or with further ones.

A model of two hundred languages has 256,000 entries, most of its weights, and a text in two languages uses a tenth of
them. Without the others it translates the same text in the same way (Abdaoui et al. 2020, "Load What You Need"; the
scores of those that are gone leave the normaliser), and is trained in a part of the memory. Entries that are added
begin as the mean of the pieces that spelt them, the tag of a new language as the tag of a similar one.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman import config
from dragoman.alignment.learnt_memory import copy_links
from dragoman.errors import Error, writing
from dragoman.inference.loading import build_model
from dragoman.progress import Progress
from dragoman.runs import checkpoint
from dragoman.runs.directory import TOKENIZER, check_run_dir, read_run
from dragoman.runs.new_run import write_run
from dragoman.special_tokens import SPECIALS, UNK_ID
from dragoman.tasks import recipes
from dragoman.tasks.pretrained import has_named_rows
from dragoman.text.annotations import PIECES
from dragoman.text.lines import find, read_lines
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.base import Tokenizer, Vocabulary
from dragoman.text.tokenizers.cased import CasedTokenizer
from dragoman.text.tokenizers.hub import HubTokenizer
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers, pieces_of, save_tokenizers, tokenizer_settings
from dragoman.text.tokenizers.pieces import PiecesTokenizer
from dragoman.text.tokenizers.sentencepiece import SentencePieceTokenizer
from dragoman.text.tokenizers.sentencepiece_model import with_symbols
from dragoman.text.tokenizers.subword_nmt import SubwordNmtTokenizer
from dragoman.text.tokenizers.whitespace import WhitespaceTokenizer

Growing = SentencePieceTokenizer | CasedTokenizer | SubwordNmtTokenizer
"""Tokenizers that get new entries, and lose none."""
MeanRows = list[list[int]]
"""For each new entry, the old entries whose mean initialises it; a kept entry has only itself."""


@dataclass(frozen=True)
class Changes:
    """The vocabulary that a run is to have."""

    text: Sequence[Path] = ()
    """Files, of either language, whose pieces are kept; without files all pieces are kept."""
    symbols: Sequence[str] = ()
    """New entries, each a piece of its own wherever a text has it."""
    languages: Mapping[str, str] | None = None
    """Codes of new languages, each with that of a language whose tag its own begins as."""
    teach: Sequence[str] = ()
    """Settings of `corpus.augment`, or `context`, whose pieces the vocabulary is to have; what it has already stays."""


@dataclass(frozen=True)
class Sizes:
    """Entries of both sides and parameters in all, before and after."""

    entries: tuple[tuple[int, int], tuple[int, int]]
    parameters: tuple[int, int]


def change_vocabulary(run: Path, out: Path, changes: Changes) -> Sizes:
    """Write the new run `out`: the run with another vocabulary. It can do what a run can but train on.

    Raises DragomanError where `out` is there, for a tokenizer that cannot be changed so, and for what is in the
    vocabulary already or not to be had.
    """
    if out.exists():
        raise Error.ALREADY_THERE("is there already", "name a new run directory", file=out)
    if not (changes.text or changes.symbols or changes.languages or changes.teach):
        raise Error.MISSING_OPTION(
            "nothing to change", "give `trim` FILE, `add` TOKEN, `teach` tags or `add_language` CODE=LIKE"
        )
    recipe: Any = recipes.of_run(check_run_dir(run))
    read_run(run, "translation")
    old = load_tokenizers(run / TOKENIZER)
    new, rows = changed(old, changes, recipe.corpus.normalize)
    source = checkpoint.select(run)
    weights = checkpoint.load_inference_weights(source)
    parts = {"src_embedding": rows[0], "tgt_embedding": rows[1], "output": rows[1]}
    weights = {name: _rows_of(tensor, parts, name) for name, tensor in weights.items()}
    settings = config.to_dict(replace(recipe, run_dir=str(out), init_from=None, adapter=None))
    settings["tokenizer"] = tokenizer_settings(new)
    made = config.parse(recipes.TranslationRecipe, settings, "the new run")
    before, model = build_model(recipe.model, old), build_model(recipe.model, new)
    checkpoint.load_weights(model, weights, str(source))
    with writing(out):
        write_run(out, made, checkpoint.weights(model), "vocabulary", str(run))
        save_tokenizers(new, out / TOKENIZER)
        copy_links(run, out)
    sizes = [sum(tensor.numel() for tensor in one.parameters()) for one in (before, model)]
    entries = [(pair.src.vocab_size, pair.tgt.vocab_size) for pair in (old, new)]
    return Sizes((entries[0], entries[1]), (sizes[0], sizes[1]))


def changed(pair: TokenizerPair, changes: Changes, normalize: str) -> tuple[TokenizerPair, tuple[MeanRows, MeanRows]]:
    """The tokenizers with the changed vocabulary, and where the weights of each side's entries come from."""
    sides = [pair.src] if pair.src is pair.tgt else [pair.src, pair.tgt]
    if unknown := [name for name in changes.teach if name not in PIECES]:
        raise Error.UNKNOWN_NAME(f"`teach` {unknown[0]}: no such setting has pieces", f"known: {', '.join(PIECES)}")
    taught = [piece for name in changes.teach for piece in PIECES[name]]
    new = [piece for piece in taught if any(side.id_of(piece) == UNK_ID for side in sides)]
    changes = replace(changes, symbols=[*changes.symbols, *new])
    for side in sides:
        grows = isinstance(side, Growing) and not (changes.text or changes.languages)
        if not (grows or isinstance(side, PiecesTokenizer | HubTokenizer | WhitespaceTokenizer)):
            can = "it gets new entries alone" if isinstance(side, Growing) else "its vocabulary stays as it is"
            raise Error.UNSUPPORTED(
                f"tokenizer {{type: {side.config.type}}}: {can}",
                "train with another, or begin with this run's weights (`init_from`)",
            )
        for symbol in changes.symbols:
            if not symbol.strip() or any(character.isspace() for character in symbol):
                raise Error.WRONG_OPTION(f"`add` {symbol!r}: a token without white space in it")
            if side.id_of(symbol) != UNK_ID or symbol in SPECIALS:
                raise Error.ALREADY_THERE(f"`add` {symbol}: the vocabulary has it already")
    tags = _new_tags(pair, changes.languages or {})
    kept = _kept(pair, changes.text, normalize)
    made = [
        _side(side, ids, [*changes.symbols, *tags], [_spelt(side, symbol) for symbol in changes.symbols] + [
            [side.id_of(like)] for like in tags.values()
        ], set(tags))
        for side, ids in zip(sides, kept, strict=True)
    ]  # fmt: skip
    languages = pair.languages
    if languages is not None:
        codes = dict(zip(changes.languages or {}, tags, strict=True))
        languages = replace(languages, tags={**languages.tags, **codes})
    src, tgt = made[0], made[-1]
    return TokenizerPair(src[0], tgt[0], pair.shared, languages), (src[1], tgt[1])


def _new_tags(pair: TokenizerPair, languages: Mapping[str, str]) -> dict[str, str]:
    """The tag of each new language, with the tag of the language that it is like."""
    if languages and (pair.languages is None or not pair.languages.tags):
        raise Error.UNSUPPORTED("`add_language`: the model is not told languages")
    tags = {}
    for code, like in languages.items():
        assert pair.languages is not None
        if code in pair.languages.tags:
            raise Error.ALREADY_THERE(f"`add_language` {code}: the model has that language already")
        known = pair.languages.code(like)
        tag = pair.languages.tags[known]
        tags[tag.replace(known, code)] = tag
    return tags


def _spelt(side: Tokenizer, symbol: str) -> list[int]:
    """The entries that a symbol was spelt with until now."""
    return [index for index in side.encode(symbol) if index != UNK_ID] or [UNK_ID]


def _kept(pair: TokenizerPair, text: Sequence[Path], normalize: str) -> list[list[int]]:
    """The ids that stay, for each different tokenizer: the ids of the text, of tags, and of pieces that can spell the
    rest of a language (single bytes, letters of ASCII)."""
    sides = [pair.src] if pair.src is pair.tgt else [pair.src, pair.tgt]
    if not text:
        return [list(range(side.vocab_size)) for side in sides]
    known = pair.languages
    frames = {*known.tags.values(), *known.src_before, *known.src_after, *known.tgt_before} if known else set()
    kept = []
    for side in sides:
        names = pieces_of(side)
        used = {index for index, name in enumerate(names) if name in frames or _spells(name)} | set(
            range(len(SPECIALS))
        )
        with Progress("pieces of the text", None) as bar:
            for line in itertools.chain.from_iterable(read_lines(find(str(path))) for path in text):
                used.update(side.encode(NORMALIZERS[normalize](line)))
                bar.advance()
        kept.append(sorted(used))
    if pair.shared and len(kept) > 1:
        both = sorted({*kept[0], *kept[1]})
        kept = [both, both]
    return kept


def _spells(piece: str) -> bool:
    return bool(re.fullmatch(r"<0x[0-9A-F]{2}>|[▁Ġ]?[!-~]?", piece)) or (len(piece) == 1 and ord(piece) < 0x180)


def _side(
    side: Tokenizer, kept: list[int], new: Sequence[str], like: MeanRows, tags: set[str]
) -> tuple[Tokenizer, MeanRows]:
    """A tokenizer with the entries `kept` and the new ones behind them; `tags`: those that no text is cut into."""
    made: Tokenizer
    if isinstance(side, PiecesTokenizer):
        made = side.with_entries(kept, new, tags)
    elif isinstance(side, HubTokenizer):
        made, kept = side.with_entries(kept, new, tags)
    elif isinstance(side, WhitespaceTokenizer):
        vocabulary = Vocabulary([*side.pieces(kept[len(SPECIALS) :]), *new])
        made = WhitespaceTokenizer(replace(side.config, vocab_size=len(vocabulary)), vocabulary)
    else:
        assert isinstance(side, Growing)
        made = _grown(side, new)
    return made, [*([index] for index in kept), *like]


def _grown(side: Growing, new: Sequence[str]) -> Tokenizer:
    """A tokenizer with new symbols behind its pieces."""
    if isinstance(side, SubwordNmtTokenizer):
        own = side.config.user_defined_symbols
        return replace(side.config, user_defined_symbols=[*own, *new]).with_symbols(side)
    inner = side.inner if isinstance(side, CasedTokenizer) else side
    settings = replace(inner.config, user_defined_symbols=[*inner.config.user_defined_symbols, *new])
    grown = SentencePieceTokenizer(settings, with_symbols(inner.model, new))
    return CasedTokenizer(grown) if isinstance(side, CasedTokenizer) else grown


def _rows_of(tensor: Tensor, parts: Mapping[str, MeanRows], name: str) -> Tensor:
    """The rows of the new entries, of a tensor that has some for each entry."""
    rows = parts.get(name.partition(".")[0])
    if rows is None or not has_named_rows(name):
        return tensor
    return torch.stack([tensor[row[0]] if len(row) == 1 else tensor[row].mean(dim=0) for row in rows])
