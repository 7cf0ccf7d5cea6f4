"""Placement of inline markup alone: LibreOffice's help, codes carried to the translators' own text.

    python benchmarks/markup.py RUN SOURCE.markup.gz TARGET.markup.gz [LINES]

A pair agrees where a pair of the same tag in the translators' text stands around the same words, marks and spaces at
its edges aside. Codes go there by the links of words (projection); by a run that has learnt codes
(`corpus.augment.tags`) also as pieces: the most probable places of the pieces in the translators' text, which the
search may not change. `-v` shows paragraphs where one does not agree.
"""

import gzip
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localisation import items_of

from dragoman.alignment.learnt_markup import coded
from dragoman.alignment.links import AlignedPair, Links, aligned_pair
from dragoman.alignment.markup import text_and_codes, transfer_markup
from dragoman.alignment.word_links import word_links
from dragoman.decoding.rules import Step
from dragoman.decoding.search import search_together
from dragoman.errors import DragomanError
from dragoman.formats.base import Code, Item
from dragoman.inference.search_translator import SearchTranslator
from dragoman.special_tokens import EOS_ID
from dragoman.text.annotations import has_learnt, number_of

LinksOf = Callable[[AlignedPair], Links]
Paragraphs = list[tuple[list[Item], list[Item]]]
Placement = Callable[[Sequence[Item], str], Sequence[Item]]
"""The items of a translation, of its source's items and its text."""


def pairs_of(items: Sequence[Item]) -> Counter[tuple[str, str]]:
    """(tag, the text in it) of each pair."""
    found: Counter[tuple[str, str]] = Counter()
    opened: list[tuple[Code, str]] = []
    for item in items:
        if isinstance(item, str):
            opened = [(code, text + item) for code, text in opened]
        elif item.kind == "open":
            opened.append((item, ""))
        elif item.kind == "close":
            code, text = opened.pop()
            found[code.raw, re.sub(r"^[\W_]+|[\W_]+$", "", text)] += 1
    return found


def rows_of(src_path: str, tgt_path: str, count: int | None = None) -> Paragraphs:
    """The paragraphs of two files that have markup on both sides."""
    sides = []
    for path in (src_path, tgt_path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sides.append([line.rstrip("\n") for line in file][:count])
    rows = [
        (list(items_of(src)), list(items_of(tgt))) for src, tgt in zip(*sides, strict=True) if "<" in src and "<" in tgt
    ]
    return [(src, tgt) for src, tgt in rows if src and tgt and pairs_of(src)]


def by_links(links_of: LinksOf) -> Placement:
    """Codes around the words that their words are linked to."""

    def placed(src: Sequence[Item], tgt: str) -> Sequence[Item]:
        text, codes, _ = text_and_codes(src)
        pair = aligned_pair(text, tgt)
        return transfer_markup(pair, codes, links_of(pair))

    return placed


@dataclass(frozen=True)
class Only:
    """A rule that leaves a hypothesis nothing but the tokens of a text, with pieces of codes between them."""

    tokens: Sequence[int]
    pieces: frozenset[int]
    pairs: dict[int, int]
    """The piece that ends a pair, by the one that begins it."""
    space: int
    """The token of a space, which may stand before a piece at the beginning."""
    in_words: frozenset[int]
    """Numbers of tokens that go on with a word: no piece stands before them."""

    def __call__(self, step: Step) -> None:
        for row in range(step.log_probs.size(0)):
            own = step.log_probs[row].clone()
            step.log_probs[row] = -math.inf
            allowed = self._next(step.prefixes[row, 1:].tolist())
            step.log_probs[row, allowed] = own[allowed].clamp(min=-1e4)

    def _next(self, written: list[int]) -> list[int]:
        used = [token for token in written if token in self.pieces]
        said = len(written) - len(used)
        if written[:1] == [self.space] and self.tokens[:1] != [self.space]:
            said -= 1
        opened: list[int] = []
        for piece in used:
            if piece in self.pairs:
                opened.append(piece)
            elif opened and self.pairs[opened[-1]] == piece:
                opened.pop()
        left = self.pieces - set(used)
        closing = {self.pairs[opened[-1]]} if opened else set()
        free = (left - set(self.pairs.values())) | (left & closing)
        if not written:
            return [self.tokens[0], self.space] if left and self.tokens[0] != self.space else [self.tokens[0], *free]
        if len(written) == 1 and written == [self.space] != list(self.tokens[:1]):
            return sorted(free)
        if said in self.in_words:
            return [self.tokens[said]]
        if said < len(self.tokens):
            return [self.tokens[said], *free]
        return sorted(free) if left else [EOS_ID]


def by_pieces(translator: SearchTranslator) -> Placement:
    """Codes where their pieces are most probable in the text; by links where there are too many of them."""
    links = by_links(lambda pair: word_links(translator, [pair])[0])
    wide = translator.with_decoding(max_length_ratio=4.0, max_length_extra=100, n_best=1)
    tokenizer = translator.tokenizers.tgt

    def placed(src: Sequence[Item], tgt: str) -> Sequence[Item]:
        text, codes, _ = text_and_codes(src)
        sentence = coded(text, codes)
        if sentence is None:
            return links(src, tgt)
        if not sentence.inside:
            return sentence.items(tgt) or []
        ids = {piece: tokenizer.id_of(piece) for piece, _ in sentence.inside}
        ends = {number_of(piece): ids[piece] for piece in ids if piece.startswith("⟦/")}
        pairs = {
            ids[piece]: ends[number]
            for piece in ids
            if (number := number_of(piece)) in ends and ids[piece] != ends[number]
        }
        tokens = tokenizer.encode(translator.normalize(tgt))
        beside = itertools.pairwise(tokenizer.pieces(tokens))
        in_words = {n for n, (one, other) in enumerate(beside, start=1) if one[-1].isalnum() and other[0].isalnum()}
        in_words = set() if sentence.parts_words else in_words
        rule = Only(tokens, frozenset(ids.values()), pairs, tokenizer.id_of("▁"), frozenset(in_words))
        try:
            [[found]] = search_together(
                translator.model, [wide.search_steps(translator.parts(sentence.text), [rule])], translator.device
            )
        except DragomanError:
            return links(src, tgt)
        return sentence.items(tokenizer.decode(found[0].ids)) or links(src, tgt)

    return placed


def agreement(rows: Paragraphs, placement: Placement, shown: int = 0) -> tuple[float, int]:
    """(percentage around the translators' words, number) of the pairs of codes that both sides have."""
    agree = common = 0
    for src, tgt in rows:
        tgt_text, _, _ = text_and_codes(tgt)
        ours = pairs_of(placement(src, tgt_text))
        theirs = pairs_of(tgt)
        both = Counter(tag for tag, _ in ours.elements()) & Counter(tag for tag, _ in theirs.elements())
        common += both.total()
        same = Counter(tag for tag, _ in (ours & theirs).elements())
        agree += (same & both).total()
        if shown and (same & both).total() < both.total():
            shown -= 1
            print(f"SRC {''.join(i if isinstance(i, str) else i.raw for i in src)}")
            print(f"REF {''.join(i if isinstance(i, str) else i.raw for i in tgt)}")
            print(f"    {sorted((ours - theirs).elements())}")
    return 100 * agree / max(common, 1), common


def main() -> None:
    run, src_path, tgt_path, *count = [argument for argument in sys.argv[1:] if argument != "-v"]
    rows = rows_of(src_path, tgt_path, int(count[0]) if count else None)
    translator = SearchTranslator.load(Path(run))
    limit = translator.max_src_tokens
    rows = [row for row in rows if len(translator.tokenizers.src.encode(text_and_codes(row[0])[0])) < limit]
    ways = {"links of words": by_links(lambda pair: word_links(translator, [pair])[0])}
    if has_learnt("tags", translator.tokenizers):
        ways["pieces"] = by_pieces(translator)
    print(f"{len(rows):,} paragraphs with markup on both sides")
    for name, placement in ways.items():
        share, common = agreement(rows, placement, 40 if "-v" in sys.argv else 0)
        print(f"{common:,} pairs of codes that both have, by {name} around the translators' words: {share:.1f} %")


if __name__ == "__main__":
    main()
