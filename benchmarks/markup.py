"""Placement of inline markup alone: LibreOffice's help, codes carried to the translators' own text.

    python benchmarks/markup.py RUN SOURCE.markup.gz TARGET.markup.gz [LINES]

A pair agrees where a pair of the same tag in the translators' text stands around the same words, marks and spaces at
its edges aside. `-v` shows paragraphs where one does not.
"""

import gzip
import re
import sys
from collections import Counter
from pathlib import Path

from localisation import items_of

from dragoman.alignment.erasure import erasure_links
from dragoman.alignment.links import aligned_pair
from dragoman.alignment.markup import text_and_codes, transfer_markup
from dragoman.formats.base import Code, Item
from dragoman.inference.search_translator import SearchTranslator


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


def main() -> None:
    run, src_path, tgt_path = sys.argv[1:4]
    sides = []
    for path in (src_path, tgt_path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sides.append([line.rstrip("\n") for line in file][: int(sys.argv[4]) if len(sys.argv) > 4 else None])
    rows = [(items_of(src), items_of(tgt)) for src, tgt in zip(*sides, strict=True) if "<" in src and "<" in tgt]
    rows = [(src, tgt) for src, tgt in rows if src and tgt and pairs_of(src)]
    translator = SearchTranslator.load(Path(run))
    agree = common = 0
    shown = 0
    for src, tgt in rows:
        src_text, codes, _ = text_and_codes(src)
        tgt_text, _, _ = text_and_codes(tgt)
        if len(translator.tokenizers.src.encode(src_text)) >= translator.max_src_tokens:
            continue
        pair = aligned_pair(src_text, tgt_text)
        [links] = erasure_links(translator, [pair])
        ours = pairs_of(transfer_markup(pair, codes, links))
        theirs = pairs_of(tgt)
        tags_ours = Counter(tag for tag, _ in ours.elements())
        tags_theirs = Counter(tag for tag, _ in theirs.elements())
        both = tags_ours & tags_theirs
        common += both.total()
        same = Counter(tag for tag, _ in (ours & theirs).elements())
        agree += (same & both).total()
        if "-v" in sys.argv and (same & both).total() < both.total() and shown < 40:
            shown += 1
            print(f"SRC {''.join(i if isinstance(i, str) else i.raw for i in src)}")
            print(f"REF {''.join(i if isinstance(i, str) else i.raw for i in tgt)}")
            print(f"    {sorted((ours - theirs).elements())}")
    print(f"{len(rows):,} paragraphs with markup on both sides, {common:,} pairs of codes that both have")
    print(f"around the translators' words in the translators' text: {100 * agree / common:.1f} %")


if __name__ == "__main__":
    main()
