"""Messy copies of training pairs: capitals, no final mark, typing errors, placeholders, so that a model has met them.

Every change is a pure function of the random generator that it is given, which is keyed by (seed, epoch, row): a run
that resumes meets the same texts.
"""

import random
import re
from collections import Counter
from typing import Annotated, Protocol

from pydantic import Field

from dragoman.config import settings
from dragoman.languages.punctuation import ENDS
from dragoman.text.case import capitalized, lower, upper
from dragoman.text.placeholders import in_place_of
from dragoman.text.words import split_words, tells_words

Share = Annotated[float, Field(ge=0, le=1)]


class Augment(Protocol):
    """A way to change training pairs."""

    @property
    def is_on(self) -> bool:
        """True where any pair is changed."""
        ...

    def __call__(
        self, src: str, tgt: str, rng: random.Random, languages: tuple[str | None, str | None] | None = None
    ) -> tuple[str, str]:
        """The pair as a model shall read it. `languages`: their codes."""
        ...


@settings
class TextAugmentConfig:
    """Shares of the training pairs that are changed, drawn anew in each epoch; all 0: no pair is changed. At most one
    of `upper`, `title` and `lower` is applied to a pair; other changes are drawn independently.
    """

    upper: Share = 0.0  #: Both sides in capitals.
    title: Share = 0.0  #: Source With A Capital In Each Word.
    lower: Share = 0.0  #: Source in lower case.
    unpunctuated: Share = 0.0  #: Both sides without their final mark.
    typos: Share = 0.0  #: Source with a typing error in about every tenth word, at least one.
    spaces: Share = 0.0  #: Source with doubled spaces, and spaces before marks.
    placeholders: Share = 0.0
    """Both sides with the same placeholder, tag or URL: in the place of a word that both have, else at their ends."""
    tags: Share = 0.0
    """Both sides with numbered pieces for codes, around words that translate each other, so that a model learns to
    carry formatting and placeholders over. With it, pairs that have tags always have pieces in their place."""
    fuzzy: Share = 0.0
    """Source with the translation of a similar source behind it, from the other pairs, so that a model learns to use
    the matches of a translation memory."""
    terms: Share = 0.0
    """Source with the translation of some of its phrases behind them, as lemmas, so that a model learns to use the
    terms of a glossary, and to inflect them. Lemmas take the extra `lemmas`; else the most frequent form is given."""

    def __post_init__(self) -> None:
        if self.upper + self.title + self.lower > 1:
            raise ValueError("upper, title and lower exclude each other: their shares add up to at most 1")

    @property
    def is_on(self) -> bool:
        """True where any pair is changed."""
        return any(vars(self).values())

    def __call__(
        self, src: str, tgt: str, rng: random.Random, languages: tuple[str | None, str | None] | None = None
    ) -> tuple[str, str]:
        """The pair as a reader may write it. `languages`: their codes.

        >>> TextAugmentConfig(upper=1.0, unpunctuated=1.0)("Ein Hund.", "A dog.", random.Random(1))
        ('EIN HUND', 'A DOG')
        """
        src_lang, tgt_lang = (code or "" for code in languages or ("", ""))
        case, unpunctuated, typos, spaces, placeholders = (rng.random() for _ in range(5))
        if placeholders < self.placeholders:
            src, tgt = with_placeholder(src, tgt, rng)
        if unpunctuated < self.unpunctuated:
            src, tgt = without_final_mark(src), without_final_mark(tgt)
        if typos < self.typos:
            src = with_typos(src, rng)
        if case < self.upper:
            src, tgt = upper(src, src_lang), upper(tgt, tgt_lang)
        elif case < self.upper + self.title:
            src = " ".join(capitalized(word, src_lang) for word in src.split(" "))
        elif case < self.upper + self.title + self.lower:
            # What stood in capitals before has "ss" for "ß".
            src = lower(upper(src, src_lang) if rng.random() < 0.5 else src, src_lang)
        if spaces < self.spaces:
            src = re.sub(r" |(?=[.,;:!?])", lambda gap: gap.group() + " " * (rng.random() < 0.2), src)
        return src, tgt


@settings
class ContextConfig:
    """The sentences before each one, which a model reads with it (Tiedemann and Scherrer 2017, "Neural Machine
    Translation with Extended Context"); as many as fit, with large numbers (Sun et al. 2022, "Rethinking Document-level
    Neural Machine Translation").

    A file is a document, in its order; in line files blank lines stand between documents. A sentence that is left out,
    as it is too long, ends a document as well. Sentences before are left out until a pair has at most `max_tokens`.
    """

    src: Annotated[int, Field(ge=0)] = 0  #: Source sentences before, at most; 0: none. [sentences]
    tgt: Annotated[int, Field(ge=0)] = 0
    """Of these the last that are given with their translation, too: the target side begins with it. [sentences]"""
    share: Share = 0.8  #: Pairs that are given with them, drawn anew in each epoch; others train single sentences.
    documents: str | None = None
    """A file with a line for each training pair, whose first column (before a tab) names its document."""

    def __post_init__(self) -> None:
        if self.tgt > self.src:
            raise ValueError(f"tgt={self.tgt}: translations of sentences that are not given: src is {self.src}")
        if self.documents and not self.src:
            raise ValueError("documents: for how many sentences before? give src")


def without_final_mark(text: str) -> str:
    """The text without a full stop, question mark or exclamation mark at its end.

    >>> without_final_mark("你好。"), without_final_mark("Wait...")
    ('你好', 'Wait...')
    """
    return re.sub(rf"(?<![{ENDS}\s])\s*(?!…)[{ENDS}]$", "", text.rstrip())


def with_typos(text: str, rng: random.Random) -> str:
    """The text with about one typing error in ten words: letters exchanged, lost, doubled or hit beside the right key.

    The first letter of a word is left alone, as people seldom miss it, and so are numbers and short words.
    """
    places = [match.span() for match in re.finditer(r"[^\W\d_]{4,}", text)]
    if not places:
        return text
    count = max(1, round(len(places) / 10))
    for start, end in sorted(rng.sample(places, count), reverse=True):
        at = rng.randrange(start + 1, end - 1)
        first, second = text[at], text[at + 1]
        wrong = rng.choice((second + first, second, first + first + second, _beside(first, rng) + second))
        text = text[:at] + wrong + text[at + 2 :]
    return text


_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _beside(letter: str, rng: random.Random) -> str:
    """A letter of a neighbouring key; the letter itself where the keyboard has none."""
    for row in _ROWS:
        if (place := row.find(letter)) >= 0:
            return rng.choice(row[max(0, place - 1) : place] + row[place + 1 : place + 2])
    return letter


def with_placeholder(src: str, tgt: str, rng: random.Random) -> tuple[str, str]:
    """Both texts with one placeholder that has to be copied.

    It replaces a word that both sides have once, a name or a number; or else it goes to the beginning or before the
    final mark of both.
    """
    made = _placeholder(rng)
    words = [Counter(word for word in split_words(text) if tells_words(word[0])) for text in (src, tgt)]
    both = sorted(word for word, count in words[0].items() if count == 1 and words[1][word] == 1)
    if both:
        word = rng.choice(both)
        return in_place_of(word, made, src), in_place_of(word, made, tgt)
    if rng.random() < 0.5:
        return f"{made} {src}", f"{made} {tgt}"
    return _before_the_mark(src, made), _before_the_mark(tgt, made)


def _before_the_mark(text: str, made: str) -> str:
    end = len(without_final_mark(text))
    return f"{text[:end]} {made}{text[end:]}"


def _placeholder(rng: random.Random) -> str:
    name = "_".join(
        "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 7)))
        for _ in range(rng.randint(1, 2))
    )
    number = rng.randrange(10)
    kinds = (
        f"{{{name}}}", f"{{{{{name}}}}}", f"${{{name}}}", f"{{{number}}}", f"%{number + 1}$s", "%s", "%d",
        f"%({name})s", f"`{name}()`", f"<{name}/>", f"{name}@example.org",
        f"https://www.{name}.org/{rng.randrange(1000)}",
    )  # fmt: skip
    return rng.choice(kinds)
