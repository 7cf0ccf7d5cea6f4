"""Sentences of a text, told by rules: where one ends, in characters of the text, which stays as it is.

A mark that may end a sentence (`. ! ? …`, and those of other scripts) does so unless its surroundings speak against it:
an abbreviation, an initial, an ordinal number, a small letter after it (in a text with capitals). Marks that have no
other use, as `。` and `।`, need no space behind them. Thai and Lao have no mark at all: a text of theirs is one
sentence, cut at line breaks and at `!` and `?` only.
"""

import functools
import re
from typing import NamedTuple

from dragoman.languages.codes import facts, language_of
from dragoman.languages.punctuation import CASELESS, CLOSING, ENDS, UNAMBIGUOUS_ENDS, WIDE
from dragoman.text.case import capitalized, is_small
from dragoman.text.words import MARKS


class Span(NamedTuple):
    """Characters `start` to `end` of a text."""

    start: int
    end: int


def sentences(text: str, language: str = "") -> list[Span]:
    """The sentences of a text, without the white space around them, in order.

    `language`: its code, which decides on abbreviations and ordinals; without one, those of all languages count.

    >>> text = "Dr. Maier kam am 3. Mai. Er ging!  Wann?"
    >>> [text[start:end] for start, end in sentences(text, "de")]
    ['Dr. Maier kam am 3. Mai.', 'Er ging!', 'Wann?']
    """
    rules = _rules(language)
    is_lower = text.islower()
    spans: list[Span] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        if match.end() > start and rules.ends(text, start, match, is_lower=is_lower):
            spans.append(_trimmed(text, start, match.end()))
            start = match.end()
    spans.append(_trimmed(text, start, len(text)))
    return [span for span in spans if span.start < span.end]


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return Span(start, max(start, start + len(piece.strip())))


_BREAKS = "\r\n\u2028\u2029"
_WIDE_CLOSING = "\"'”’\\]）」』】〉》＂"
# Runs are bounded, so that a megabyte of marks takes linear time. The class at the front makes the search fast.
_BEHIND = rf"[{CLOSING}]{{0,5}}"
_CANDIDATE = re.compile(
    rf"[{ENDS};\u037e:፡၊{_BREAKS}](?:(?<=[{_BREAKS}])[{_BREAKS}]*"
    rf"|(?:(?<=[{WIDE}])|(?<=[!?])(?=[{CASELESS}]))[{ENDS}]{{0,20}}[{_WIDE_CLOSING}]{{0,5}}"  # no space is needed
    rf"|(?<=[{UNAMBIGUOUS_ENDS}])[{ENDS}]{{0,20}}(?:[^\S{_BREAKS}](?=[{UNAMBIGUOUS_ENDS}]))?[{UNAMBIGUOUS_ENDS}]{{0,20}}{_BEHIND}"
    rf"|(?<=[.!?…])[{ENDS}]{{0,20}}(?:\s(?=[»›]))?{_BEHIND}(?:\[\d{{1,3}}\]){{0,3}}(?=\s|$)"
    rf"|(?<=[Ͱ-Ͽἀ-῿][;\u037e]){_BEHIND}(?=\s|$)"  # Greek questions
    rf"|(?<=[ա-և]:){_BEHIND}(?=\s+[Ա-Ֆ])"  # for the Armenian full stop, ։
    rf"|(?<=[ሀ-ፚ][፡:])[፡:]{_BEHIND}"  # two wordspaces, for ።
    rf"|(?<=၊)၊{_BEHIND})"  # two commas, for ။
)
_BLANK = re.compile(r"\s*")
_OPENING = re.compile(r"[\"'“‘«‹„‚(\[{¿¡「『（【〈《*_\-–—•\s]*")
_LETTER = rf"(?:[^\W_]|[{MARKS}])"
_LAST_WORD = re.compile(rf"[\w.’'\-·/&{MARKS}]+$")
_DOTTED = re.compile(rf"(?:(?!\d){_LETTER}{{1,3}}\.)+(?!\d){_LETTER}{{1,3}}")
_INITIAL = re.compile("[א-ת؀-ۿա-ևა-ჿก-ฮກ-ຮሀ-ፚ]")
"""Letters that stand alone as an initial or an abbreviation alone, in scripts without capitals."""


class _Rules:
    """The rules of a language."""

    def __init__(self, language: str) -> None:
        known = language_of(language) if language else ""
        every, starters = facts("abbreviations"), facts("starters")
        lists = [every[code].split() for code in (("any", known) if known else every) if code in every]
        self.abbreviations = {word.lower().rstrip(".") for words in lists for word in words}
        self.final = {word.lower().rstrip(".") for word in facts("final")["any"].split()}
        self.in_names = set(facts("names")["any"].split())
        self.starters = set(starters.get(known, " ".join(starters.values())).split())
        self.in_shouts = set(facts("shouted")["any"].split())
        self.ordinals = known in facts("ordinals") or not known
        self.is_cased_noun = known in ("de", "lb")
        self.needs_starter = self.ordinals and (self.is_cased_noun or known in starters or not known)

    def ends(self, text: str, start: int, match: re.Match[str], *, is_lower: bool) -> bool:
        """True if the sentence that begins at `start` ends with the marks that `match` has; `is_lower`: the text has
        no capitals."""
        mark = match.group()
        if mark[0] in _BREAKS:
            return True
        blank = _BLANK.match(text, match.end())
        assert blank is not None
        if blank.end() == len(text):
            return False  # nothing comes after it
        if (
            mark[0] in "!?"
            and not text[match.end()].isspace()
            and self._is_shouted(text[max(start, match.start() - 40) : match.start()])
        ):
            return False
        if mark[0] in WIDE or (mark[0] in "!?" and blank.end() == match.end()):
            return text[match.end()] not in "，、；：,;:）」』】》〉”’" and not _goes_on_after_quote(text, match)
        opening = _OPENING.match(text, match.end())
        assert opening is not None
        following = text[opening.end() : opening.end() + 40]
        if _IS_SURE.match(mark) or mark[0] in "፡:၊":
            return not _in_brackets(text, start, match) and following[:1] not in (*",،;؛:၊)]",)
        if (is_small(following[:1]) and not is_lower) or following[:1] in (*".,;:!?&+",):
            return False
        if "\n" in blank.group() and blank.group().count("\n") > 1:
            return True
        if mark[0] in "!?;\u037e":
            return not _in_brackets(text, start, match)
        if mark[0] == "…" or mark.startswith(".."):
            return following[:1].isupper() and not set(opening.group()) & set("-–—•*_")
        return self._full_stop_ends(text, start, match, following)

    def _is_shouted(self, before: str) -> bool:
        """True behind a name that ends with the mark: Yahoo!"""
        word = _LAST_WORD.search(before)
        return word is not None and word.group().lower() in self.in_shouts

    def _full_stop_ends(self, text: str, start: int, match: re.Match[str], following: str) -> bool:
        """True if a full stop ends its sentence, and not an abbreviation, an initial or a number.

        What decides is the word before the stop, and whether the word behind it often starts sentences.
        """
        before = text[max(start, match.start() - 40) : match.start()]
        last_word = _LAST_WORD.search(before)
        word = last_word.group() if last_word else ""
        if len(match.group()) > 1 and match.group()[1] in CLOSING and _is_alone(text, start, match):
            return False
        next_word = re.match(r"[^\W\d_]*", following)
        starts = next_word is not None and capitalized(next_word.group()) in self.starters
        if not word:
            return bool(before.strip())
        if not text[start : match.start() - len(word)].strip() and re.fullmatch(
            r"\d{1,3}|[A-Za-z]|[ivxIVX]{1,4}", word
        ):
            return False  # "1. Open the file": the number of an item
        # One letter: an initial ("J. Smith") or a part of an abbreviation.
        lowered = word.lower()
        last = re.split(r"[.\-’'/]", lowered)[-1]
        is_letter = len(word) == 1 and word.isalpha()
        if is_letter and (word.isupper() or is_small(following[:1]) or _INITIAL.match(word)):
            return starts and not _after_initial(before[: -len(word)])
        if _DOTTED.fullmatch(word):  # e.g, z.B, U.S, a.m
            return starts and (lowered not in self.abbreviations or lowered in self.final)
        if lowered in ("г", "гг"):  # a year's, which may end a sentence; a town's does not
            return re.search(r"\d\s*$", before[: -len(word)]) is not None
        if lowered in self.abbreviations or (last in self.abbreviations and last != lowered and len(last) > 1):
            # An abbreviation that may stand last ("etc.") ends a sentence if a capital follows that is no name's.
            may_be_name = self.is_cased_noun or lowered in self.in_names
            return lowered in self.final and (starts or (following[:1].isupper() and not may_be_name))
        if self.is_cased_noun and is_letter:  # "z. B.", "d. h."
            return False
        # "3. Mai", "XIV. Jahrhundert": a number with a stop is an ordinal.
        if self.ordinals and re.fullmatch(r"\d{1,2}|[IVX]{1,5}", word):
            return starts or (word.isdigit() and not self.needs_starter)
        return True


_IS_SURE = re.compile(f"[{UNAMBIGUOUS_ENDS}]")
_rules = functools.cache(_Rules)


def _goes_on_after_quote(text: str, match: re.Match[str]) -> bool:
    """True for 「好。」と: a quotation of a sentence that goes on."""
    return match.group()[-1] in "」』”" and text[match.end() : match.end() + 1] in tuple("とという说道")


def _is_alone(text: str, start: int, match: re.Match[str]) -> bool:
    """True where the mark stands by itself in brackets or quotes: "the full stop (.) ends it"."""
    return match.start() > start and text[match.start() - 1] in "(\"'“‘«「"


def _in_brackets(text: str, start: int, match: re.Match[str]) -> bool:
    """True for a mark alone in brackets: "he came (!) Tuesday"."""
    return match.start() > start and text[match.start() - 1] in "([" and match.group()[-1:] in ")]"


def _after_initial(before: str) -> bool:
    return re.search(r"(?:^|\s)[^\W\d_]\.\s*$", before) is not None
