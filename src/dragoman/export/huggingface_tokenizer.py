"""Our tokenizers as the one file `tokenizer.json` that every tokenizer of Hugging Face is made from.

It does all that a `Translator` does to a text before the model sees it: the recipe's normalisation, white space, then
the pieces and their `</s>`. Its parts come from the `tokenizers` library, which segments as SentencePiece does:

- BPE merges by rank where SentencePiece merges by score; one piece may be put together in several ways, which have one
  score there and neighbouring ranks here.
- Unigram is the same search for the best path, in float64 where SentencePiece adds in float32: paths that tie in the
  last bit may come out the other way round.
- Text that spells a special ("<s>") is text here too: `split_special_tokens` keeps the library from looking for it, and
  the search for pieces must not find it either (`_unmatched`, `_cut`).
- Bytes that a model with `byte_fallback` writes and that are no UTF-8 are shown as one U+FFFD each, where SentencePiece
  still reads the characters beside them.

Two vocabularies become one: source pieces keep their ids, target pieces stand behind them under names that begin with
a line feed, which no text has any more when pieces are looked for.
"""

import itertools
import json
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from dragoman.runs.atomic_io import write_json
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.hub import HubTokenizer
from dragoman.text.tokenizers.language_tags import SRC, TGT, FramedTokenizer, bare
from dragoman.text.tokenizers.pair import TokenizerPair, pieces_of
from dragoman.text.tokenizers.pieces import PiecesTokenizer
from dragoman.text.tokenizers.resampling import WORD_START
from dragoman.text.tokenizers.sentencepiece import SentencePieceTokenizer
from dragoman.text.tokenizers.symbols import symbol_pattern, unknown_white_space

TARGET_MARK = "\n"
"""The beginning of the names of target pieces where source and target have a vocabulary each."""

_SWAPPED = "\U0010ffff"
"""Stands for one of two characters while they change places; Unicode promises that no text has it."""

_STANDS_IN = [chr(0xFDD0 + place) for place in range(32)] + [
    chr(0x10000 * plane + last) for plane in range(16) for last in (0xFFFE, 0xFFFF)
]
"""Code points that no text has either, each for a symbol that is to be one character while pieces are looked for."""

_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""The white space of `str.split`; the library's own is less."""


@dataclass(frozen=True)
class Vocabulary:
    """Where the ids of both tokenizers are in the exported model's one vocabulary."""

    size: int
    src_ids: list[int]
    tgt_ids: list[int]

    @classmethod
    def of(cls, tokenizers: TokenizerPair) -> "Vocabulary":
        src, tgt = tokenizers.src.vocab_size, tokenizers.tgt.vocab_size
        if tokenizers.shared:
            return cls(src, list(range(src)), list(range(src)))
        specials = len(SPECIALS)
        behind = range(src, src + tgt - specials)
        return cls(src + len(behind), list(range(src)), [*range(specials), *behind])


class _Parts(NamedTuple):
    """The parts of a tokenizer of ours there; `decoders` may be asked for by itself, of the target's."""

    normalizers: list[Any]
    pre_tokenizer: Any
    model: Any
    decoders: list[Any]


def problems(tokenizers: TokenizerPair) -> list[str]:
    """Why `tokenizer.json` cannot be written, one line each."""
    kinds = dict.fromkeys((tokenizers.src.config.type, tokenizers.tgt.config.type))
    if kinds.keys() == {"pieces"}:
        return (
            []
            if _is_m2m100(tokenizers) or _is_marian(tokenizers)
            else ["tokenizer {type: pieces}: its tags stand where neither MarianTokenizer nor M2M100Tokenizer has them"]
        )
    if "hub" in kinds:
        same = bare(tokenizers.src) is bare(tokenizers.tgt)
        return [] if same else ["tokenizer {type: separate}: two tokenizer.json files, and a model there has one"]
    most = max(len(getattr(side, "symbols", ())) for side in (bare(tokenizers.src), bare(tokenizers.tgt)))
    if most > len(_STANDS_IN):
        return [f"tokenizer.user_defined_symbols: {most:,}, and tokenizer.json has room for {len(_STANDS_IN)}"]
    return [
        f"tokenizer {{type: {kind}}}: its rules are code, which tokenizer.json has no place for: train with tokenizer "
        f"{{type: sentencepiece}} (or {', '.join(other for other in PARTS if other != 'sentencepiece')})"
        for kind in kinds
        if kind not in PARTS
    ]


def save(tokenizers: TokenizerPair, normalize: Callable[[str], str], longest: int, src_end: bool, folder: Path) -> None:
    """Write the files that `AutoTokenizer` reads, its ids being those of `Vocabulary.of`.

    `longest`: tokens of the longest source; `src_end`: each text has its `</s>`.
    """
    if isinstance(bare(tokenizers.src), PiecesTokenizer):
        _save_pieces(tokenizers, longest, folder)
    else:
        wrap(build(tokenizers, normalize, src_end), longest).save_pretrained(folder)


def build(tokenizers: TokenizerPair, normalize: Callable[[str], str], src_end: bool = True) -> Any:
    """The `tokenizers.Tokenizer` whose ids are those of `Vocabulary.of`, each text's with its `</s>`."""
    from tokenizers import AddedToken, decoders, normalizers
    from tokenizers import Tokenizer as Target

    src, tgt = bare(tokenizers.src), bare(tokenizers.tgt)
    if isinstance(src, HubTokenizer):
        return _framed(_renumbered(src), tokenizers, src_end)
    behind = [] if tokenizers.shared else [TARGET_MARK + piece for piece in pieces_of(tgt)[len(SPECIALS) :]]
    parts = PARTS[src.config.type](src, behind)
    made = Target(parts.model)
    made.normalizer = normalizers.Sequence([*unicode_normalizers(normalize), *parts.normalizers])
    made.pre_tokenizer = parts.pre_tokenizer
    reading = parts.decoders if tokenizers.shared else PARTS[tgt.config.type](tgt, []).decoders
    made.decoder = decoders.Sequence([decoders.Replace(TARGET_MARK, ""), *reading] if behind else reading)
    tags = tokenizers.languages.tags.values() if tokenizers.languages else ()
    made.add_special_tokens([AddedToken(special, special=True, normalized=False) for special in (*SPECIALS, *tags)])
    return _framed(made, tokenizers, src_end)


def _framed(made: Any, tokenizers: TokenizerPair, src_end: bool) -> Any:
    """The tokenizer with what stands around a source: the tag of a language, `</s>`."""
    from tokenizers import processors

    around = tokenizers.src if isinstance(tokenizers.src, FramedTokenizer) else None
    before, after = (around.before, around.after) if around else ([], [])
    ids = [*before, *after, *([EOS_ID] if src_end else [])]
    names = dict(zip(ids, tokenizers.src.pieces(ids), strict=True))
    single = [*(names[index] for index in before), "$A", *(names[index] for index in ids[len(before) :])]
    specials = [(name, index) for index, name in names.items()]
    made.post_processor = processors.TemplateProcessing(single=single, special_tokens=specials)
    return made


def _renumbered(tokenizer: HubTokenizer) -> Any:
    """An imported tokenizer.json with our ids and our names of the specials."""
    from tokenizers import Tokenizer as Target

    described = json.loads(tokenizer.model)
    names = pieces_of(tokenizer)
    by_theirs = {theirs: names[ours] for ours, theirs in enumerate(tokenizer.order)}
    model = described["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {name: index for index, name in enumerate(names)}
        model["unk_token"] = SPECIALS[UNK_ID] if model.get("unk_token") else None
    else:
        scores = [score for _, score in model["vocab"]]
        # An entry without a piece there has a name that no text holds.
        model["vocab"] = [
            [names[ours], scores[theirs]] if theirs < len(scores) else [f"{_SWAPPED}{theirs}", 0.0]
            for ours, theirs in enumerate(tokenizer.order)
        ]
        model["unk_id"] = UNK_ID
    kept = [one for one in described["added_tokens"] if one["id"] in by_theirs]
    place = {name: index for index, name in enumerate(names)}
    described["added_tokens"] = sorted(
        ({**one, "content": by_theirs[one["id"]], "id": place[by_theirs[one["id"]]]} for one in kept),
        key=lambda one: one["id"],
    )
    described |= {"post_processor": None, "truncation": None, "padding": None}
    return Target.from_str(json.dumps(described))


def _is_marian(tokenizers: TokenizerPair) -> bool:
    """True if no tag, or `>>de<<` before the source, tells the language."""
    known = tokenizers.languages
    return known is None or (
        known.src_before == [TGT]
        and not (known.src_after or known.tgt_before)
        and all(re.fullmatch(">>.+<<", tag) for tag in known.tags.values())
    )


def _is_m2m100(tokenizers: TokenizerPair) -> bool:
    """True if `__de__` stands before both sides, and the tags are the last entries, in the order of theirs."""
    known = tokenizers.languages
    if known is None or known.src_before != [SRC] or known.tgt_before != [TGT] or known.src_after:
        return False
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    codes = FAIRSEQ_LANGUAGE_CODES["m2m100"]
    ids = [tokenizers.src.id_of(f"__{code}__") for code in codes]
    return list(known.tags) == codes and ids == list(range(ids[0], ids[0] + len(ids)))


def _save_pieces(tokenizers: TokenizerPair, longest: int, folder: Path) -> None:
    """SentencePiece with a table of ids: the files of Marian's tokenizer, or of M2M100's."""
    import transformers

    src, tgt = (cast(PiecesTokenizer, bare(one)) for one in (tokenizers.src, tokenizers.tgt))
    ids, names = Vocabulary.of(tokenizers), (pieces_of(src), pieces_of(tgt))
    with tempfile.TemporaryDirectory() as there:
        files = [Path(there) / name for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json")]
        for path, content in zip(files, (src.model, tgt.model), strict=False):
            path.write_bytes(content)
        tables = [
            dict(zip(one, places, strict=True)) for one, places in zip(names, (ids.src_ids, ids.tgt_ids), strict=True)
        ]
        if _is_m2m100(tokenizers):
            assert tokenizers.languages is not None
            end = min(map(src.id_of, tokenizers.languages.tags.values()))
            write_json(files[2], {name: index for name, index in tables[0].items() if index < end})
            codes = {tag: code for code, tag in tokenizers.languages.tags.items()}
            pair = [codes[src.pieces(one.before)[0]] for one in (tokenizers.src, tokenizers.tgt)]
            made: Any = transformers.M2M100Tokenizer(
                str(files[2]), str(files[0]), src_lang=pair[0], tgt_lang=pair[1], model_max_length=longest,
                additional_special_tokens=list(tokenizers.languages.tags.values()),  # so that decoding leaves them out
            )  # fmt: skip
        else:
            for path, table in zip(files[2:], tables, strict=True):
                write_json(path, table)
            options: dict[str, Any] = {"model_max_length": longest}
            if not tokenizers.shared:
                options |= {"target_vocab_file": str(files[3]), "separate_vocabs": True}
            made = cast(Any, transformers.MarianTokenizer)(*map(str, files[:3]), **options)
        made.save_pretrained(folder)


def unicode_normalizers(normalize: Callable[[str], str]) -> list[Any]:
    """The library's normalisation of that name, after what its older tables of Unicode do not know yet."""
    from tokenizers import normalizers

    known = {"none": None, "nfc": normalizers.NFC(), "nfkc": normalizers.NFKC()}
    theirs: Any = known[next(name for name, function in NORMALIZERS.items() if function is normalize)]
    if theirs is None:
        return []
    code_points = itertools.chain(range(0xD800), range(0xE000, 0x110000))  # all but surrogates
    changed = ((old, new) for old in map(chr, code_points) if (new := normalize(old)) != old)
    return [*(normalizers.Replace(old, new) for old, new in changed if theirs.normalize_str(old) != new), theirs]


def wrap(made: Any, longest: int) -> Any:
    """A tokenizer that `AutoTokenizer` finds again once it is saved. `longest`: tokens that the model was made for."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=SPECIALS[PAD_ID],
        unk_token=SPECIALS[UNK_ID],
        bos_token=SPECIALS[BOS_ID],
        eos_token=SPECIALS[EOS_ID],
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=longest,
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )


def _single_spaces(more: str = "") -> list[Any]:
    """`" ".join(text.split())`, where `more` counts as white space too."""
    from tokenizers import Regex, normalizers

    return [normalizers.Replace(Regex(f"[{re.escape(_SPACES + more)}]+"), " "), normalizers.Strip()]


def _sentencepiece(tokenizer: SentencePieceTokenizer, behind: list[str]) -> _Parts:
    from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

    bytes_too, keeps = tokenizer.config.byte_fallback, tokenizer.config.white_space == "keep"
    # A symbol is one character that nothing is merged with, the longest symbols first.
    ordered = sorted(tokenizer.symbols.items(), key=lambda one: -len(one[1]))
    stands_in = {index: (symbol, one) for (index, symbol), one in zip(ordered, _STANDS_IN, strict=False)}
    pieces = [stands_in[index][1] if index in stands_in else piece for index, piece in enumerate(pieces_of(tokenizer))]
    words: Any = pre_tokenizers.Metaspace(WORD_START, "always", split=True)
    spaces = _single_spaces(more=WORD_START)
    if keeps:
        unknown = "".join(map(chr, unknown_white_space(lambda letter: letter in tokenizer.symbols.values())))
        space = normalizers.Replace(Regex(f"[{re.escape(unknown + WORD_START)} ]"), WORD_START)
        spaces, words = [space, normalizers.Prepend(WORD_START)], pre_tokenizers.Split(WORD_START, "merged_with_next")
    before = [normalizers.Replace(symbol, one) for symbol, one in stands_in.values()]
    if tokenizer.config.algorithm == "bpe":
        ids = {piece: index for index, piece in enumerate([*pieces, *behind])}
        merges = [
            (piece[:cut], piece[cut:])
            for piece in pieces[len(SPECIALS) :]  # best score first
            for cut in range(1, len(piece))
            if not tokenizer.is_control(ids[piece]) and piece[:cut] in ids and piece[cut:] in ids
        ]
        model: Any = models.BPE(ids, merges, unk_token=SPECIALS[UNK_ID], fuse_unk=True, byte_fallback=bytes_too)
    else:
        scores = [
            _unmatched(piece, tokenizer)
            if index < len(SPECIALS) or tokenizer.is_control(index)
            else tokenizer.score(index)
            for index, piece in enumerate(pieces)
        ]
        scores += [0.0] * len(behind)
        model = models.Unigram(list(zip([*pieces, *behind], scores, strict=True)), UNK_ID, bytes_too)
        if cuts := [cut for special in SPECIALS if (cut := _cut(special, tokenizer))]:
            words = pre_tokenizers.Sequence(
                [words, pre_tokenizers.Split(Regex("|".join(cuts)), "merged_with_previous")]
            )
    reading = [
        decoders.Replace(WORD_START, " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", left=1 if keeps else 2**31, right=0),
        *(decoders.Replace(one, symbol) for symbol, one in stands_in.values()),
    ]
    return _Parts([*before, *spaces], words, model, reading)


def _unmatched(special: str, tokenizer: SentencePieceTokenizer) -> float:
    """A score at which the best path goes through other pieces than this one, which spell the same text."""
    own = [tokenizer.id_of(character) for character in special]
    return sum(tokenizer.score(index) for index in own) - 1.0


def _cut(special: str, tokenizer: SentencePieceTokenizer) -> str | None:
    """Where a text that spells the special has to be cut, as a pattern: at a character that no piece has."""
    unknown = [place for place, character in enumerate(special) if tokenizer.id_of(character) == UNK_ID]
    if not unknown:
        return None
    place = max(unknown[0], 1)
    return f"{special[:place]}(?={special[place:]})"


def _whitespace(tokenizer: Tokenizer, behind: list[str]) -> _Parts:
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    spelt = "|".join(SPECIALS)
    return _Parts(
        # A token that spells a special is an unknown one.
        [*_single_spaces(), normalizers.Replace(Regex(f"(?<![^ ])(?:{spelt})(?![^ ])"), "\n")],
        pre_tokenizers.Split(" ", "removed"),
        _word_level(tokenizer, behind),
        [decoders.WordPiece(prefix=2 * TARGET_MARK, cleanup=False)],  # a space before every token but the first
    )


def _characters(tokenizer: Tokenizer, behind: list[str]) -> _Parts:
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    swap = [(WORD_START, _SWAPPED), (" ", WORD_START), (_SWAPPED, " ")]
    return _Parts(
        [normalizers.Replace(old, new) for old, new in swap],
        pre_tokenizers.Split(Regex(rf"{symbol_pattern(tokenizer.config.user_defined_symbols)}|[\s\S]"), "isolated"),
        _word_level(tokenizer, behind),
        [decoders.Replace(old, new) for old, new in swap] + [decoders.Fuse()],
    )


def _word_level(tokenizer: Tokenizer, behind: Iterable[str]) -> Any:
    from tokenizers import models

    ids = {piece: index for index, piece in enumerate([*pieces_of(tokenizer), *behind])}
    return models.WordLevel(ids, unk_token=SPECIALS[UNK_ID])


PARTS: dict[str, Callable[[Any, list[str]], _Parts]] = {
    "sentencepiece": _sentencepiece,
    "whitespace": _whitespace,
    "characters": _characters,
}
"""By the type of our tokenizer; from the tokenizer and the names of target pieces behind its own."""
