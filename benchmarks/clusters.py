"""Codes and placeholders inside of letters: put into the translators' own text of many languages.

    python benchmarks/clusters.py NAME=SOURCE,TARGET [NAME=SOURCE,TARGET ...]

SOURCE and TARGET are files of parallel lines, plain or .gz. Each pair gets `{name}` between two words of its source,
and tags around one; both are carried to the target's text by links in the order of the words. Counted is what stands
inside of a grapheme cluster (UAX 29, counted apart from what placed it: a piece of text that begins with a mark or
joiner counts, too), and what parts a word: one between spaces, or one of ICU's dictionaries where these are
installed. `--time` gives the seconds for all of it.
"""

import gzip
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import regex

from dragoman.alignment.links import aligned_pair, proportional
from dragoman.alignment.markup import transfer_markup
from dragoman.formats.base import Code
from dragoman.languages.unspaced import word_borders
from dragoman.text.placeholders import restore_spans, without_spans
from dragoman.text.words import words

CODE, TAGS = "{name}", ("<b>", "</b>")
_MARK = regex.compile(r"[\p{M}\u200c\u200d]")
_SPACELESS = regex.compile(r"\p{Line_Break=SA}|\p{Han}|\p{Hiragana}|\p{Katakana}")


class Counted(NamedTuple):
    """What stands where, of `placed` codes of one kind."""

    placed: int
    in_letters: int
    in_words: int

    def __str__(self) -> str:
        return f"{self.in_letters:,} in letters, {self.in_words:,} in words of {self.placed:,}"


def count(texts: Sequence[tuple[str, str]], codes: Sequence[str]) -> Counted:
    """The codes in texts, each beside the text as it was without codes."""
    placed = in_letters = in_words = 0
    pattern = re.compile("|".join(map(re.escape, codes)))
    for text, original in texts:
        borders = {0}
        for match in regex.finditer(r"\X", original):
            if match[0].isspace() or not _MARK.match(original[match.end() :]):
                borders.add(len(re.sub(r"\s", "", original[: match.end()])))
        parted = word_borders(original)
        cuts = parted and {len(re.sub(r"\s", "", original[:place])) for place in parted}
        done, last = 0, 0
        for match in pattern.finditer(text):
            done += len(re.sub(r"\s", "", text[last : match.start()]))
            last = match.end()
            placed += 1
            beside = pattern.sub("", text[: match.start()])[-1:] + pattern.sub("", text[match.end() :])[:1]
            if done not in borders:
                in_letters += 1
            elif regex.fullmatch(r"[\p{L}\p{M}\u200c\u200d]{2}", beside):
                is_spaced = _SPACELESS.search(beside) is None
                in_words += is_spaced or (cuts is not None and done not in cuts)
    return Counted(placed, in_letters, in_words)


def with_placeholder(src: str, tgt: str, number: int) -> str | None:
    """The target with the placeholder of a source that has one between two of its words; None: it has too few."""
    parts = src.split()
    if len(parts) < 3:
        return None
    parts.insert(1 + number % (len(parts) - 1), CODE)
    bare, removed = without_spans(" ".join(parts))
    src_words = words(bare)
    return restore_spans(tgt, removed, src_words, proportional(len(words(tgt)), len(src_words)))


def with_tags(src: str, tgt: str, number: int) -> str | None:
    """The target with the tags around a word of its source."""
    pair = aligned_pair(src, tgt)
    if len(pair.src_words) < 3 or not pair.tgt_words:
        return None
    word = pair.src_words[1 + number % (len(pair.src_words) - 2)]
    codes = [(word.start, Code(TAGS[0], "open", 1)), (word.end, Code(TAGS[1], "close", 1))]
    items = transfer_markup(pair, codes, proportional(len(pair.tgt_words), len(pair.src_words)))
    return "".join(item if isinstance(item, str) else item.raw for item in items)


def placed(pairs: Sequence[tuple[str, str]]) -> tuple[Counted, Counted]:
    """(placeholders, tags) of the pairs whose texts have none of their own."""
    own = re.compile(r"[{}<>%$&▸]|https?:")
    pairs = [(src, tgt) for src, tgt in pairs if not own.search(src + tgt)]
    found = []
    for put, codes in ((with_placeholder, (CODE,)), (with_tags, TAGS)):
        made = [(put(*pair, number), pair[1]) for number, pair in enumerate(pairs)]
        found.append(count([(text, tgt) for text, tgt in made if text is not None], codes))
    return found[0], found[1]


def lines(path: str) -> list[str]:
    """The lines of a file."""
    content = Path(path).read_bytes()
    return (gzip.decompress(content) if path.endswith(".gz") else content).decode("utf-8").splitlines()


def main() -> None:
    for argument in sys.argv[1:]:
        if argument == "--time":
            continue
        name, files = argument.split("=", 1)
        pairs = list(zip(*map(lines, files.split(",")), strict=True))
        begun = time.perf_counter()
        placeholders, tags = placed(pairs)
        spent = f"; {time.perf_counter() - begun:.2f} s" if "--time" in sys.argv else ""
        print(f"{name}: {len(pairs):,} pairs; placeholders: {placeholders}; tags: {tags}{spent}", flush=True)


if __name__ == "__main__":
    main()
