"""Placement of inline markup alone: LibreOffice's help, codes carried to the translators' own text.

    python benchmarks/markup.py RUN SOURCE.markup.gz TARGET.markup.gz [LINES]

A pair agrees where a pair of the same tag in the translators' text stands around the same words, marks and spaces at
its edges aside. `-v` shows paragraphs where one does not.
"""

import gzip
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from localisation import items_of

from dragoman.alignment.links import AlignedPair, Links, aligned_pair
from dragoman.alignment.markup import text_and_codes, transfer_markup
from dragoman.alignment.word_links import word_links
from dragoman.formats.base import Code, Item
from dragoman.inference.search_translator import SearchTranslator

LinksOf = Callable[[AlignedPair], Links]


def pairs_of(items: list[Item] | tuple[Item, ...]) -> Counter[tuple[str, str]]:
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


def rows_of(src_path: str, tgt_path: str, count: int | None = None) -> list[tuple[list[Item], list[Item]]]:
    """The paragraphs of two files that have markup on both sides."""
    sides = []
    for path in (src_path, tgt_path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sides.append([line.rstrip("\n") for line in file][:count])
    rows = [(items_of(src), items_of(tgt)) for src, tgt in zip(*sides, strict=True) if "<" in src and "<" in tgt]
    return [(src, tgt) for src, tgt in rows if src and tgt and pairs_of(src)]


def agreement(rows: list[tuple[list[Item], list[Item]]], links_of: LinksOf, shown: int = 0) -> tuple[float, int]:
    """(percentage around the translators' words, number) of the pairs of codes that both sides have."""
    agree = common = 0
    for src, tgt in rows:
        src_text, codes, _ = text_and_codes(src)
        tgt_text, _, _ = text_and_codes(tgt)
        pair = aligned_pair(src_text, tgt_text)
        ours = pairs_of(transfer_markup(pair, codes, links_of(pair)))
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
    share, common = agreement(rows, lambda pair: word_links(translator, [pair])[0], 40 if "-v" in sys.argv else 0)
    print(f"{len(rows):,} paragraphs with markup on both sides, {common:,} pairs of codes that both have")
    print(f"around the translators' words in the translators' text: {share:.1f} %")


if __name__ == "__main__":
    main()
