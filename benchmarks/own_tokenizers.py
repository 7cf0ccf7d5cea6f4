"""Tokenizers that people bring along: for each kind of file the ids of real text, here and by the original library.

    python benchmarks/own_tokenizers.py TEXT.hi TEXT.ar ... --lines 10000

Each kind of file is made of the text itself by its own library: models of SentencePiece (specials in their usual and in
other places, nmt_nfkc, lower case, bytes for unknown letters, symbols of their own), fairseq's dict.txt, Marian's
vocab.yml and a vocab.json beside one; tokenizer.json files (pairs of bytes, WordPiece, a unigram model); codes of
subword-nmt with and without a vocabulary and a threshold, of version 0.1 and of fastBPE; vocabularies of text that is
cut already. Our ids are told in the numbers of the original file, so that equal is equal.
"""

import argparse
import collections
import contextlib
import io
import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece as spm
import yaml

from dragoman import config
from dragoman.text.lines import read_lines
from dragoman.text.tokenizers.pair import TokenizerConfig, TokenizerPair, train_tokenizers


class Kind(NamedTuple):
    """A kind of file: our settings for it, the original's ids of a text, and its id of each piece of ours."""

    settings: dict[str, Any]
    ids: Callable[[str], list[int]]
    id_of: Callable[[str], int]


@config.settings
class _Recipe:
    tokenizer: TokenizerConfig


def taken_in(settings: dict[str, Any], lines: Sequence[str]) -> TokenizerPair:
    """The tokenizers of a recipe's settings."""
    recipe = config.parse(_Recipe, {"tokenizer": settings})
    return train_tokenizers(recipe.tokenizer, lambda: iter(lines), lambda: iter(lines))


def differences(kind: Kind, lines: Sequence[str]) -> Iterator[tuple[str, list[int], list[int]]]:
    """The lines whose ids differ, with ours in their numbers and theirs."""
    tokenizer = taken_in(kind.settings, lines).src
    numbers = [kind.id_of(piece) for piece in tokenizer.pieces(range(tokenizer.vocab_size))]
    for line in lines:
        ours, theirs = [numbers[index] for index in tokenizer.encode(line)], kind.ids(line)
        if ours != theirs:
            yield line, ours, theirs


def kinds(folder: Path, lines: Sequence[str], size: int = 8000) -> dict[str, Kind]:
    """Each kind of file, made of the lines in a folder."""
    return {**_sentencepiece(folder, lines, size), **_hub(folder, lines, size), **_codes(folder, lines, size)}


def _model(lines: Sequence[str], **options: Any) -> Any:
    made = io.BytesIO()
    options = {"model_type": "unigram", "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 2, **options}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=made, **options)
    return made.getvalue()


def _sentencepiece(folder: Path, lines: Sequence[str], size: int) -> dict[str, Kind]:
    moved = {"pad_id": 3, "unk_id": 1, "bos_id": 2, "eos_id": 0}
    named = {"pad_piece": "[PAD]", "unk_piece": "[UNK]", "bos_piece": "[BOS]", "eos_piece": "[EOS]"}
    models = {
        "sentencepiece, unigram": {},
        "sentencepiece, bpe, bytes, as it is": {
            "model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False, "vocab_size": size + 256,
        },
        "sentencepiece, lower case, specials elsewhere": {"normalization_rule_name": "nmt_nfkc_cf", **moved, **named},
        "sentencepiece, symbols, no <s>": {"user_defined_symbols": ["<br>", "<b>"], "bos_id": -1},
    }  # fmt: skip
    found = {}
    for number, (name, options) in enumerate(models.items()):
        path = folder / f"{number}.model"
        path.write_bytes(_model(lines, **{"vocab_size": size, **options}))
        theirs = spm.SentencePieceProcessor(model_file=str(path))
        found[name] = Kind({"type": "sentencepiece", "model": str(path)}, theirs.EncodeAsIds, _id_of(theirs))
    theirs = spm.SentencePieceProcessor(model_file=str(folder / "0.model"))
    counts = collections.Counter(piece for line in lines for piece in theirs.EncodeAsPieces(line))
    common = [piece for piece, count in counts.most_common() if count > 1]  # rarer ones are unknown there
    for path, table in tables(folder / "beside", common):
        settings = {"type": "sentencepiece", "model": str(folder / "0.model"), "vocab": str(path)}
        found[f"sentencepiece with {path.name}"] = _tabled(settings, table, theirs.EncodeAsPieces)
    return found


def _id_of(theirs: Any) -> Callable[[str], int]:
    names = {"<unk>": theirs.unk_id(), "<s>": theirs.bos_id(), "</s>": theirs.eos_id(), "<pad>": theirs.pad_id()}
    return lambda piece: int(names[piece] if piece in names else theirs.PieceToId(piece))


def tables(folder: Path, pieces: Sequence[str]) -> Iterator[tuple[Path, dict[str, int]]]:
    """Vocabularies of the pieces, as other programs write them, and the ids that they give to each piece."""
    specials = {
        "dict.txt": ["<s>", "<pad>", "</s>", "<unk>"],
        "vocab.yml": ["</s>", "<unk>"],
        "vocab.json": ["<pad>", "<unk>", "<s>", "</s>"],
        "vocab.opennmt": ["<unk>", "<blank>", "<s>", "</s>"],
        "vocab.lines": ["<unk>", "<pad>", "<s>", "</s>"],
    }
    folder.mkdir()
    for name, first in specials.items():
        path, table = folder / name, {piece: index for index, piece in enumerate([*first, *pieces])}
        if name == "vocab.yml":
            text = yaml.safe_dump(table, allow_unicode=True, sort_keys=False, width=2**31)
        elif name == "vocab.json":
            text = json.dumps(table, ensure_ascii=False)
        else:
            written = {"dict.txt": "{} {}\n", "vocab.opennmt": "{}\t{}\n", "vocab.lines": "{}\n"}[name]
            own = pieces if name == "dict.txt" else list(table)  # fairseq's specials are in no file
            text = "".join(written.format(piece, 999 - place % 900) for place, piece in enumerate(own))
        path.write_text(text, encoding="utf-8", newline="\n")
        yield path, table


def _tabled(settings: dict[str, Any], table: dict[str, int], cut: Callable[[str], list[str]]) -> Kind:
    unknown = table["<unk>"]
    return Kind(
        settings, lambda text: [table.get(piece, unknown) for piece in cut(text)], lambda piece: table.get(piece, -1)
    )


def _hub(folder: Path, lines: Sequence[str], size: int) -> dict[str, Kind]:
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    def made(model: Any, trainer: Any, **parts: Any) -> Any:
        tokenizer = tokenizers.Tokenizer(model)
        for name, part in parts.items():
            setattr(tokenizer, name, part)
        tokenizer.train_from_iterator(lines, trainer)
        return tokenizer

    plain = {"vocab_size": size, "show_progress": False}
    unigram = trainers.UnigramTrainer(unk_token="<unk>", special_tokens=["<s>", "</s>", "<pad>", "<unk>"], **plain)
    spaces = pre_tokenizers.Metaspace()
    found = {
        "tokenizer.json, pairs of bytes": made(
            models.BPE(), trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                              special_tokens=["<|endoftext|>"], **plain),
            pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True), decoder=decoders.ByteLevel(),
        ),
        "tokenizer.json, WordPiece, lower case": made(
            models.WordPiece(unk_token="[UNK]"),
            trainers.WordPieceTrainer(special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], **plain),
            normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
            decoder=decoders.WordPiece(),
        ),
        "tokenizer.json, unigram": made(
            models.Unigram(), unigram, normalizer=normalizers.NFKC(), pre_tokenizer=spaces,
            decoder=decoders.Metaspace(),
        ),
    }  # fmt: skip
    kinds = {}
    for number, (name, theirs) in enumerate(found.items()):
        path = folder / f"{number}.json"
        theirs.save(str(path))
        theirs = tokenizers.Tokenizer.from_file(str(path))  # scores in a file may differ in their last bit
        unknown = next((one for one in ("[UNK]", "<unk>") if theirs.token_to_id(one) is not None), "<unk>")
        kinds[name] = Kind(
            {"type": "hub", "model": str(path)},
            lambda text, theirs=theirs: theirs.encode(text, add_special_tokens=False).ids,
            lambda piece, theirs=theirs, unknown=unknown: theirs.token_to_id(unknown if piece == "<unk>" else piece),
        )
    return kinds


def _codes(folder: Path, lines: Sequence[str], size: int) -> dict[str, Kind]:
    from subword_nmt.apply_bpe import BPE, read_vocabulary
    from subword_nmt.learn_bpe import learn_bpe

    path, old, fast = folder / "codes", folder / "codes.0.1", folder / "codes.fast"
    with path.open("w", encoding="utf-8") as out, contextlib.redirect_stderr(io.StringIO()):
        learn_bpe(io.StringIO("\n".join(lines)), out, min(size, 2000), min_frequency=2)
    merges = path.read_text(encoding="utf-8").split("\n")[1:-1]
    old.write_text("\n".join(merges) + "\n", encoding="utf-8", newline="\n")
    fast.write_text("".join(f"{merge} 7\n" for merge in merges), encoding="utf-8", newline="\n")

    def cutter(codes: Path, vocabulary: Any = None) -> Any:
        theirs = BPE(io.StringIO(codes.read_text(encoding="utf-8")), vocab=vocabulary)
        return lambda text: theirs.segment_tokens(text.strip("\r\n ").split(" "))

    cuts = {path: cutter(path), old: cutter(old), fast: cutter(path)}
    counts = collections.Counter(piece for line in lines for piece in cuts[path](line))
    restricted = folder / "vocab.counts"
    restricted.write_text("".join(f"{piece} {count}\n" for piece, count in counts.most_common()), encoding="utf-8")
    seen = cutter(path, read_vocabulary(io.StringIO(restricted.read_text(encoding="utf-8")), 5))
    found, common = {}, [piece for piece, count in counts.most_common() if count > 1]
    for vocab, table in tables(folder / "cut", common):
        settings = {"type": "subword_nmt", "codes": str(path), "vocab": str(vocab)}
        found[f"subword-nmt with {vocab.name}"] = _tabled(settings, table, cuts[path])
        cut = {"type": "whitespace", "vocab": str(vocab)}
        found[f"pieces of subword-nmt with {vocab.name}"] = _tabled(cut, table, str.split)
    vocab, table = next(
        tables(folder / "more", [*dict.fromkeys([*common, *(one for line in lines for one in seen(line))])])
    )
    for name, codes in (("codes of version 0.1", old), ("codes of fastBPE", fast)):
        settings = {"type": "subword_nmt", "codes": str(codes), "vocab": str(vocab)}
        found[f"subword-nmt, {name}"] = _tabled(settings, table, cuts[codes])
    settings = {"type": "subword_nmt", "codes": str(path), "vocab": str(vocab), "filter": str(restricted)}
    found["subword-nmt, a threshold of 5"] = _tabled({**settings, "threshold": 5}, table, seen)
    return found


def sample(paths: Sequence[Path], count: int) -> list[str]:
    """As many lines of each text, in an order of their own."""
    of_each = [list(dict.fromkeys(filter(None, map(str.strip, read_lines(path))))) for path in paths]
    rng = random.Random(1)
    for lines in of_each:
        rng.shuffle(lines)
    return list(itertools.islice(itertools.chain.from_iterable(zip(*of_each, strict=False)), count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", type=Path, help="text files, one for each language")
    parser.add_argument("--lines", type=int, default=10_000)
    options = parser.parse_args()
    lines = sample(options.text, options.lines)
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in kinds(Path(folder), lines).items():
            wrong = list(differences(kind, lines))
            print(f"{name}: {len(lines) - len(wrong):,} of {len(lines):,} lines have equal ids", flush=True)
            for line, ours, theirs in wrong[:3]:
                print(f"  {line[:100]!r}: {ours[:12]} and {theirs[:12]}")


if __name__ == "__main__":
    main()
