"""User-defined pieces: strings that are never cut, kept white space among them; parts of long lines to learn from."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from dragoman.errors import Error
from dragoman.progress import say
from dragoman.special_tokens import SPECIALS
from dragoman.text.tokenizers.base import sample_lines
from dragoman.text.tokenizers.resampling import WORD_START

MARKS = "▁￭￮"
"""Marks of words in pieces; no symbol has them."""
WHITE_SPACE = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace() and letter not in " \n")
"""The characters that `str.split` takes for white space, but for the space and the end of a line."""
RESERVED = "\u2585"
"""SentencePiece's own mark of an unknown piece: it leaves out lines with this mark."""
LONGEST_PART = 4096
"""SentencePiece leaves out lines of more than 4,192 bytes, and BPE counts places in 16 bits. [bytes]"""


def _checked(symbols: list[str]) -> list[str]:
    for symbol in symbols:
        if any(letter.isspace() for letter in symbol):
            raise ValueError(f"{symbol!r} has white space in it; for white space itself there is white_space: keep")
        if symbol in SPECIALS or any(mark in symbol for mark in MARKS):
            raise ValueError(f"{symbol!r} is a name or has a mark ({' '.join(MARKS)}) that vocabularies use themselves")
    if repeated := [symbol for symbol in symbols if symbols.count(symbol) > 1]:
        raise ValueError(f"{repeated[0]!r} is there twice")
    return symbols


Symbols = Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_checked)]
"""Strings that are always pieces of their own."""
WhiteSpace = Literal["normalize", "keep"]


def symbol_pattern(symbols: Iterable[str]) -> str:
    """A regular expression for the longest symbol at each place; without symbols it matches nowhere."""
    return "|".join(map(re.escape, sorted(symbols, key=len, reverse=True))) or r"(?!)"


def white_space_in(texts: Iterable[str]) -> list[str]:
    """The white space in texts other than the space, in code point order."""
    return sorted(set().union(*texts).intersection(WHITE_SPACE))


def unknown_white_space(is_known: Callable[[str], bool]) -> dict[int, str]:
    """A table for `str.translate` that makes a space of all white space without a piece."""
    return {ord(letter): " " for letter in WHITE_SPACE if not is_known(letter)}


def parts(text: str, longest: int = LONGEST_PART) -> Iterator[str]:
    """The text in parts of at most so many bytes, cut at spaces where it has some.

    >>> list(parts("one two three", 8))
    ['one two', 'three']
    """
    data = text.encode()
    begin = 0
    while len(data) - begin > longest:
        end = data.rfind(b" ", begin + 1, begin + longest + 1)
        skipped = 1
        if end < 0:
            end, skipped = begin + longest, 0
            while data[end] & 0xC0 == 0x80:  # not inside of a character
                end -= 1
        yield data[begin:end].decode()
        begin = end + skipped
    yield data[begin:].decode()


def check_spelling(settings: Sequence[Any], spelling: Callable[[str], str]) -> str:
    """Why the spelling of a corpus leaves no text with what tokenizers are to keep; "" if it does not."""
    for one in settings:
        if getattr(one, "normalizes", False) and spelling("e\u0301") != "e\u0301":
            return "tokenizer.model normalises texts itself, as it was learnt: set corpus.normalize=none beside it"
        for symbol in getattr(one, "user_defined_symbols", ()):
            if spelling(symbol) != symbol:
                return f"tokenizer.user_defined_symbols: no text has {symbol}: the corpus spells it {spelling(symbol)}"
        if getattr(one, "white_space", "") == "keep" and spelling("\u00a0") == " ":
            return "tokenizer.white_space: keep: corpus.normalize: nfkc makes spaces of no-break spaces; take nfc"
    return ""


def kept_white_space(config: Any, is_known: Callable[[str], bool]) -> dict[int, str] | None:
    """The table for white space that is kept; None: all white space becomes one space."""
    return unknown_white_space(is_known) | {ord(WORD_START): " "} if config.white_space == "keep" else None


def plain(text: str, spaces: dict[int, str] | None) -> str:
    """The text with its white space prepared; SentencePiece itself knows only U+0020 as a space."""
    return " ".join(text.replace(WORD_START, " ").split()) if spaces is None else text.translate(spaces)


def sample_of(config: Any, lines: Iterator[str]) -> tuple[list[str], list[str]]:
    """The text to learn from, of which SentencePiece leaves nothing out, and the symbols.

    What it would leave out are lines with its mark of the unknown, long ones, and characters that spell a special.
    """
    spaces = kept_white_space(config, lambda letter: True)
    count = itertools.count()
    texts = (
        text for line in lines if (text := plain(line, spaces).replace(RESERVED, " ")).strip() and next(count) >= 0
    )
    sample = sample_lines(texts, config.max_sentences)
    if not sample:
        raise Error.EMPTY("the tokenizer has no text to learn from: every line is blank")
    if (total := next(count)) > len(sample):
        say(f"the tokenizer learns from {len(sample):,} of {total:,} lines (tokenizer.max_sentences)")
    if long := sum(len(text.encode()) > LONGEST_PART for text in sample):
        say(f"the tokenizer learns from {long:,} lines of more than {LONGEST_PART:,} bytes in parts")
    kept = white_space_in(sample) if spaces is not None else []
    for special in SPECIALS:
        sample = [text.replace(special, " ".join(special)) for text in sample]
    return [part for text in sample for part in parts(text)], [*config.user_defined_symbols, *kept]
