"""Spans that a translation must keep as they are: `%1$s`, `{name}`, `{{x}}`, tags, URLs, e-mail addresses, emoji.

A model that never saw them leaves them out, doubles them or translates what is in them. A span that stands for a word
or a number is then replaced by a word that the model knows, a name or a number, and takes the place of that word's
translation. Any other one is taken out of the source, and put back where its neighbours went: beside the target word
that looks at the source word next to it most. So each survives, once for each time it stands in the source.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.text.words import UNSPACED, Word, words

_CJK = "\u3000-\u9fff\uff00-\uffef"  # a URL among Chinese characters ends where they begin
_EMOJI = (
    "\u00a9\u00ae\u2122\u2300-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u3297\u3299"
    "\U0001f000-\U0001faff"
)
# Bounded everywhere: a line of a megabyte may hold anything.
_KINDS = (
    rf"(?:https?://|www\.)[^\s<>\"{_CJK}]*[^\s<>\".,;:!?)\]}}'»{_CJK}]",  # URL
    r"(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}",  # e-mail address
    r"\{\{[^{}]{0,200}\}\}|\$?\{[^{}]{0,200}\}|\$\([^()]{0,200}\)",  # {{x}}, {name}, ${name}, $(name)
    r"\$[A-Za-z_]\w{0,63}|`[^`\n]{1,200}`",  # $HOME, `code`
    r"\]\([^()\s]{1,1000}\)|\[(?=[^\[\]]{1,500}\]\([^()\s]{1,1000}\))",  # the two halves around a Markdown link's text
    # printf: %s, %1$s, %(name)s, %.2f, %ld; a unit may follow %d
    r"%(?:\d{1,3}\$|\(\w{1,64}\))?[-+#0]{0,4}(?:[1-9]\d{0,4})?(?:\.\d{1,4})?(?:hh?|ll?|[zjtL])?"
    r"(?:d|[sifgxXcu@](?![A-Za-z0-9_]))|%%",
    r"</?[A-Za-z][^<>]{0,1000}>|&(?:[A-Za-z]{1,32}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});",  # tags, entities
    r"[\ue100-\uf8ff]",  # private use: stands for a piece of a document that is not translated
    "[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3",  # flags, keycaps
    f"[{_EMOJI}](?:[\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f][{_EMOJI}]?)*",  # emoji with joiners
)
_SPAN = re.compile("|".join(f"(?:{kind})" for kind in _KINDS))
_CODES = (
    r"(?<![A-Za-z0-9_./-])(?<!\d,)(?:"
    # a version, which is neither a date nor a number with marks between its thousands
    r"(?!(?:\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})|\d{1,3}(?:\.\d{3}){2,8})(?!\.?\d))v?\d{1,9}(?:\.\d{1,9}){2,8}(?:-[A-Za-z0-9]{1,32})?"
    r"|(?=[A-Z/_-]{1,32}\d)[A-Z0-9]{1,32}(?:[-/_][A-Z0-9]{1,32}){0,8}"  # part number
    r")(?![A-Za-z0-9_]|[./-][A-Za-z0-9])",
)
SPANS_AND_CODES = re.compile("|".join(f"(?:{kind})" for kind in (*_KINDS, *_CODES)))
"""Finds codes too, `ABC-123` and `2.3.1`: most models write them as they are; where one does not, they are kept."""
_NOTHING = ("", " ", "\t", "\u00a0", "\u3000")
_OPENING, _CLOSING = "([{«“„¿¡", ".,;:!?)]}»”…。，；：！？）"


class Removed(NamedTuple):
    """A span that was taken out of a text."""

    span: str
    offset: int
    """Where it stood, in characters of the text without it."""
    before: str
    """The character before it; empty at the beginning."""
    after: str


def spans(text: str) -> list[str]:
    """The spans of a text that must survive, from left to right.

    >>> spans("Hi {name}, see https://x.org/a?b=1. 100%% of <b>%1$s</b>")
    ['{name}', 'https://x.org/a?b=1', '%%', '<b>', '%1$s', '</b>']
    """
    return [match.group() for match in _SPAN.finditer(text)]


def span_ranges(text: str) -> list[tuple[int, int]]:
    """Where the spans of a text begin and end."""
    return [match.span() for match in _SPAN.finditer(text)]


def keeps_codes(src: str, translation: str) -> bool:
    """True if each code of a source is in its translation.

    >>> keeps_codes("Version 2.3.1 of ABC-123.", "Version 2.3.1.1 von ABC-123."), keeps_codes("on 1.2.2024", "am 2.1.")
    (False, True)
    """
    before, after = (Counter(SPANS_AND_CODES.findall(text)) - Counter(spans(text)) for text in (src, translation))
    return before <= after


def kept_apart(
    text: str, never: frozenset[int] = frozenset(), pattern: re.Pattern[str] = _SPAN
) -> tuple[str, list[tuple[str, str]]]:
    """(the text with a known word in the place of each span that stands for one, [(the word, its span)]).

    A span that is a part of a word (`module.py$method`) stands for none, nor do those whose numbers are in `never`.

    >>> kept_apart("{name} has %d cats <b>here</b>.")
    ('Tom has 7 cats <b>here</b>.', [('Tom', '{name}'), ('7', '%d')])
    """
    names = iter([name for name in STAND_INS["name"] if name not in text])
    numbers = iter([number for number in STAND_INS["number"] if number not in text])
    out, done, pairs = "", 0, []
    places: dict[int, tuple[int, int]] = {}  # of each span with a word: where that is
    for number, match in enumerate(pattern.finditer(text)):
        span = match.group()
        word = None
        if number in never or _is_part_of_a_word(text, *match.span()):
            continue
        if _NUMBER.fullmatch(span) or _VERSION.match(span):
            word = next(numbers, None)
        elif not _NO_WORD.match(span):
            word = next(names, None)
        if word is not None:
            out += text[done : match.start()]
            places[number] = len(out), len(out) + len(word)
            out += word
            done = match.end()
            pairs.append((word, span))
    out += text[done:]
    # A word may have made a span, or a word, of what stands around it: `{2-{}}`, `{a}{b}`.
    covered = span_ranges(out)
    lost = {
        number
        for number, place in places.items()
        if _is_part_of_a_word(out, *place) or any(start <= place[0] < end for start, end in covered)
    }
    return kept_apart(text, never | lost, pattern) if lost else (out, pairs)


def _is_part_of_a_word(text: str, start: int, end: int) -> bool:
    """True for a span with a letter of a script with spaces right beside it."""
    neighbours = text[max(start - 1, 0) : start] + text[end : end + 1]
    return re.search(rf"[^\W{UNSPACED}]", neighbours) is not None


STAND_INS = {
    "name": ("Tom", "Maria", "Peter", "Anna", "Paul", "Eva", "Max", "Nina", "David", "Laura", "Martin", "Julia"),
    "number": ("7", "12", "35", "48", "63", "74", "89", "96"),
}
"""Words that most models know, in the place of placeholders."""

_NUMBER = re.compile(r"%(?:\d+\$|\(\w+\))?[-+#0 ]*\d*(?:\.\d+)?(?:hh?|ll?|[zjtL])?[difuxX]|\{#\}")
_VERSION = re.compile(r"\d+\.")
_NO_WORD = re.compile(rf"[<&\]\[]|%%|[0-9#*]\ufe0f?\u20e3|[{_EMOJI}\U0001f1e6-\U0001f1ff]")


def survive(src: str, translation: str) -> bool:
    """True if a translation holds exactly the spans of its source."""
    return Counter(spans(src)) == Counter(spans(translation))


def without_spans(text: str, pattern: re.Pattern[str] = _SPAN) -> tuple[str, list[Removed]]:
    """(the text without its spans, what was taken out, from left to right).

    >>> without_spans("Click {name}.")
    ('Click.', [Removed(span='{name}', offset=5, before=' ', after='.')])
    """
    left, removed, done = "", [], 0
    for match in pattern.finditer(text):
        left += text[done : match.start()]
        done = match.end()
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        # One space of two goes with the span; before punctuation none is left.
        if before.isspace() and (not after or after.isspace() or after in _CLOSING):
            left = left.rstrip()
        elif before.isalnum() and after.isalnum():  # "one<br>two" is two words
            left += " "
        removed.append(Removed(match.group(), len(left.rstrip()), before, after))
    left += text[done:]
    dropped = len(left) - len(left.lstrip())
    return left.strip(), [item._replace(offset=max(0, item.offset - dropped)) for item in removed]


def put_back(
    translation: str,
    removed: Sequence[Removed],
    src_words: Sequence[Word],
    links: np.ndarray,
    between: str = " ",
    whole: Sequence[tuple[int, int]] = (),
) -> str:
    """The translation with the spans of its source.

    `links[t, s]`: how much target word t looks at source word s, of the texts without spans (`words`). A span goes
    before the word that stands for its right neighbour where it leans on that one, else after that of its left one.
    `between`: what stands between words in the target language. `whole`: ranges of the translation's characters that
    no span may part; it goes beside them.
    """
    tgt_words = words(translation)
    places: list[int] = []  # of each span: its offset in the translation
    for item in removed:
        before = [i for i, word in enumerate(src_words) if word.end <= item.offset]
        after = [i for i, word in enumerate(src_words) if word.start >= item.offset]
        leans_right = item.before in _NOTHING and item.after not in _NOTHING and item.after not in _CLOSING
        if not before:
            places.append(0)
        elif not after or not tgt_words:
            places.append(len(translation))
        elif leans_right:
            places.append(tgt_words[int(links[:, after[0]].argmax())].start)
        else:
            places.append(tgt_words[int(links[:, before[-1]].argmax())].end)
        for start, end in whole:
            if start < places[-1] < end:
                places[-1] = start if leans_right else end
    out, done = "", 0
    for place, item in sorted(
        zip(places, removed, strict=True), key=lambda pair: pair[0]
    ):  # stable: the source's order
        out += translation[done:place]
        done = place
        left, right = out.rstrip(), translation[place:].lstrip()
        out = left + (between if _apart(left[-1:], item.before, _OPENING) else "") + item.span
        tokenised = right[:1] in _CLOSING and translation[place:][:1].isspace()  # this text has a space before marks
        out += between if (right and tokenised) or _apart(right[:1], item.after, _CLOSING) else ""
        done += len(translation) - place - len(right)
    return (out + translation[done:]).strip()


def _apart(neighbour: str, in_source: str, leaning: str) -> bool:
    """True if a space belongs between a span and its neighbour in the translation, a letter or nothing.

    `in_source`: what stood there in the source. `leaning`: marks that stand close to what is on this side of them.
    """
    if not neighbour or neighbour in leaning:
        return False
    if in_source in _NOTHING:
        return True
    return not in_source.isalnum() and neighbour.isalnum()
