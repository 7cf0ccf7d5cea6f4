"""Spans that a translation must keep as they are: `%1$s`, `{name}`, `{{x}}`, tags, URLs, e-mail addresses, emoji.

`SYSTEMS` has the kinds by who writes them.

A model that never saw them leaves them out, doubles them or translates what is in them. A span that stands for a word
or a number is then replaced by a word that the model knows, a name or a number, and takes the place of that word's
translation. Any other one is taken out of the source, and put back where its neighbours went: beside the target word
that looks at the source word next to it most. So each survives, once for each time it stands in the source.
"""

import functools
import html
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.text.words import CLOSING, OPENING, UNSPACED, Word, is_letter, places, tells_words, words

_BARE = rf"{UNSPACED}\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"  # these follow a URL without a space, Korean too
_ENDS = re.escape("".join(mark for mark in CLOSING if not mark.isascii()))
_MIDDLE = ".,;:!?)\\]}'’"  # a URL has them inside, but does not end in one
_PLAIN = rf"[^\s<>\"“„‹›«\u055a-\u055f\u3000-\u3004\u3008-\u303f\uff00-\uffef{_ENDS}{_BARE}{_MIDDLE}(/]"
_NATIVE = rf"(?:(?![{_ENDS}])[{_BARE}])++"
_URL_PART = (
    rf"{_PLAIN}++|\((?:{_PLAIN}++|{_NATIVE})++\)|\((?={_PLAIN})|[{_MIDDLE}]++(?=[(/]|{_PLAIN})"
    rf"|(?<=[=#&_~+%-])(?!を){_NATIVE}|(?<=[{_BARE}])\.{_NATIVE}"
)
_TITLE = rf"(?<=/wiki/)(?:{_PLAIN}++(?:(?![{_ENDS}\u3041-\u309f])[{_BARE}])++)++"  # wiki/C言語
_SIMPLE = rf"(?=[A-Za-z0-9])[A-Za-z0-9._~/?#@!$&*+,;=%:-]*(?<![.,;:!?])(?=[{_MIDDLE}]*+(?:[\s<>\"]|\Z))"
"""Most URLs, and what follows them: so they take half the time."""
_URL = (
    rf"(?:https?://|www\.)(?:{_SIMPLE}|(?={_PLAIN}|[{_BARE}])(?:{_NATIVE})?(?:{_URL_PART})*+"
    # letters right behind `example.com/` are a path where a path may end after them
    rf"(?:/(?:(?:(?![\u3041-\u309f]){_NATIVE}(?=[\s/?#&=_.-]|\Z)|(?!{_NATIVE}))"
    rf"(?:{_TITLE}|{_URL_PART}|/(?:(?!を){_NATIVE})?)*+)?+)?)"
)
"""A URL. Letters of scripts without spaces belong to it where a part of its host or path begins with them."""
_EMOJI = (
    "\u00a9\u00ae\u2122\u2300-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u3297\u3299"
    "\U0001f000-\U0001faff"
)


class System(NamedTuple):
    """A way to write placeholders."""

    name: str
    pattern: str
    """Bounded everywhere: a line of a megabyte may hold anything."""
    specified: str = ""
    """The place of the placeholder."""
    at_letter: bool = False
    """It may begin with a letter or a digit."""


_CONVERSION = r"(?:hh?|ll?|[zjtLq]|I(?:32|64))?(?:d|[bsSifFgGeExXuoOcCpnaA@](?![A-Za-z0-9_\u00c0-\u024f]))"
SYSTEMS = (
    System("URL", _URL, "RFC 3986, RFC 3987", at_letter=True),
    System(
        "e-mail address",
        r"(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}",
        "RFC 5322",
        at_letter=True,
    ),
    System("blocks of Jinja, Django, Twig, Liquid", r"\{%.{0,500}?%\}|\{#[^{}]{1,500}#\}", "jinja.palletsprojects.com"),
    System("blocks of ERB, EJS, PHP", r"(?<!%)<%.{0,1000}?%>|<\?(?:php\b|=).{0,1000}?\?>", "docs.ruby-lang.org/ERB"),
    System(
        "FreeMarker",
        r"(?<!%)</?[#@][A-Za-z][^<>]{0,500}>|\[/?#(?:if|elseif|else|list|items|sep|macro|assign|include)\b[^\[\]]{0,500}\]",
        "freemarker.apache.org",
    ),
    System(
        "Mustache, Handlebars, Jinja, Angular, Vue, Go, Hugo",
        r"\{\{\{[^{}]{0,200}\}\}\}|\{\{[^{}]{0,200}\}\}",
        "mustache(5)",
    ),
    System(
        "i18next's nesting", r"\$t\((?:[^()\n]|\([^()\n]{0,100}\)){0,200}\)", "i18next.com/translation-function/nesting"
    ),
    System("shell, JavaScript, Kotlin", r"\$\{[^{}]{0,200}\}|\$\([^()]{0,200}\)", "POSIX, Shell Command Language"),
    System("C's <inttypes.h>", r"%[-+#0]{0,4}\d{0,4}<PRI[a-zA-Z]{1,6}\d{0,3}>", "gettext, c-format"),
    System(
        "Ruby",
        r"%\{[^{}]{0,200}\}|(?<!\d)%<[A-Za-z_]\w{0,63}>(?:[-+0]?\d{0,4}(?:\.\d{1,4})?[bdiouxXeEfgGaAcps](?![A-Za-z0-9_]))?",
        "Ruby, Kernel#format",
    ),
    System(
        "ICU's quoted marks",
        r"'</?[A-Za-z][^<>']{0,500}>'|'<'/?[A-Za-z][^<>]{0,500}'>'|'[{}]'",
        "unicode-org.github.io/icu, MessageFormat",
    ),
    System("Java's MessageFormat, .NET, Python's format, ICU, Fluent", r"\{[^{}]{0,200}\}", "java.text.MessageFormat"),
    System("Vue I18n's links", r"@(?:\.\w{1,20})?:(?:\([\w.]{1,100}\)|[\w.]{0,99}\w)", "vue-i18n.intlify.dev"),
    System("Chrome's messages", r"\$[A-Za-z_]\w{0,63}\$", "developer.chrome.com, chrome.i18n"),
    System("variables of shell, PHP, Perl", r"\$[A-Za-z_]\w{0,63}", "POSIX, Shell Command Language"),
    System(
        "i18next's older form", r"(?<!\w)__[A-Za-z][A-Za-z0-9-]{0,60}(?:_[A-Za-z0-9-]{1,60}){0,4}__(?!\w)", "i18next"
    ),
    System("MediaWiki, WebExtensions", r"\$[1-4](?![\d$]|[.,]\d)", "mediawiki.org, Localisation"),
    System(
        "Sphinx's roles and reStructuredText",
        r":[A-Za-z][\w.+-]{0,30}(?::[A-Za-z][\w.+-]{0,30}){0,2}:`[^`]{1,300}`|\[[#*]?\w{0,30}\]_(?!\w)"
        r"|(?<![\w|])\|[\w.:-]{1,60}\|(?!\w)",
        "docutils, reStructuredText Markup Specification",
    ),
    System("code", r"``[^\n]{1,200}?``|`[^`\n]{1,200}`_{0,2}", "CommonMark, docutils"),
    System(
        "the two halves around a Markdown link's text",
        r"\]\([^()\s]{1,1000}\)|\[(?=[^\[\]]{1,500}\]\([^()\s]{1,1000}\))",
        "CommonMark",
    ),
    System("BBCode", r"\[/?(?:b|i|u|s|url|img|quote|code|color|size)(?:=[^\[\]\n]{1,200})?\]", "phpBB"),
    System("Maketext", r"\[_\d{1,2}\]|\[(?:quant|numf|sprintf|\*|#),[^\[\]\n]{1,200}\]", "Locale::Maketext"),
    System("Apple's plurals", r"%(?:\d{1,2}\$)?(?:#@\w{1,64}@|arg\b)", "NSLocalizedString, stringsdict"),
    System(
        "Symfony, Windows' variables",
        r"%[A-Za-z_][\w.-]{1,62}[A-Za-z0-9]%(?![%A-Za-z0-9(])",
        "symfony.com/doc, translation",
    ),
    System(  # a unit may follow %d
        "printf of C, Python, PHP, Java, Objective-C",
        r"%(?:\d{1,3}\$|\([^()\s]{1,64}\))?(?:'[^\s\w]|[-+#0'])?[-+#0]{0,4}(?:[1-9]\d{0,4}|\*(?:\d{1,2}\$)?)?"
        rf"(?:\.(?:\d{{1,4}}|\*))?{_CONVERSION}|%%",
        "POSIX printf, gettext's *-format",
    ),
    System("strftime", r"%[-_0^#]?[YmHMSjBIyZTFDR](?![A-Za-z0-9_])", "POSIX strftime"),
    System("GCC's quotes", r"(?<!\d)%[<>](?![\w/]{1,64}>)", "GCC, diagnostics"),
    System("Boost, Windows' FormatMessage", r"%\d{1,2}(?:%|![^!\s]{1,10}!)", "boost.org, FormatMessage"),
    System("Qt", r"(?<!\d)%L?(?:\d{1,2}(?!\d)|n(?![A-Za-z]))", "doc.qt.io, QString::arg"),
    System(
        "Laravel, short names of emoji",
        r"(?<![\w:/]):[a-z][a-z0-9_+-]{1,60}:?(?![\w:])",
        "laravel.com/docs, localization",
    ),
    System(
        "Drupal, Razor, mentions",
        r"(?<![\w.@/])@[A-Za-z_][\w.]{0,62}\w|(?<![\w!])![a-z]\w{1,62}(?!\w)"
        r"|(?<![\w%])(?<![\d%] )%[a-z]\w{2,62}(?![\w%])",
        "drupal.org, FormattableMarkup",
    ),
    System(
        "tags, those of React by number", r"</?[A-Za-z][^<>]{0,1000}>|</?\d{1,3}/?>", "WHATWG HTML, react.i18next.com"
    ),
    System("entities", r"&(?:[A-Za-z]{1,32}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});", "WHATWG HTML"),
    System("a piece of a document that is not translated", r"[\ue100-\uf8ff]", "alignment/markup.py"),
    System(
        "flags, keycaps, marks shown as emoji",
        "[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3|[\u203c\u2049\u2139\u2194-\u21aa]\ufe0f",
        "UTS 51",
        at_letter=True,
    ),
    System(
        "emoji with joiners",
        f"[{_EMOJI}](?:[\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f][{_EMOJI}]?)*",
        "UTS 51",
    ),
)
"""The kinds of placeholders. Where two fit, the first is taken."""


ENTITY = re.compile(r"&(?:[A-Za-z]{2,31}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")


def unescaped(text: str) -> str:
    """The text with characters for entities; a lone `&` and unknown names stay.

    >>> unescaped("a &lt; b &#38; c"), unescaped("AT&T &E2;")
    ('a < b & c', 'AT&T &E2;')
    """
    return ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text


_MAY_BEGIN = re.compile(rf"[%${{}}<&@`\[\]|:_\u20e3\ufe0f\ue100-\uf8ff{_EMOJI}]|www\.|![a-z]")
"""A character that some span has: most sentences have none, and need not be searched."""
_CODES = (
    System(  # a version is neither a date nor a number with marks between its thousands
        "version, part number",
        r"(?<![A-Za-z0-9_./-])(?<!\d,)(?:"
        r"(?!(?:\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})|\d{1,3}(?:\.\d{3}){2,8})(?!\.?\d))v?\d{1,9}(?:\.\d{1,9}){2,8}(?:-[A-Za-z0-9]{1,32})?"
        r"|(?=[A-Z/_-]{1,32}\d)[A-Z0-9]{1,32}(?:[-/_][A-Z0-9]{1,32}){0,8}"
        r")(?![A-Za-z0-9_]|[./-][A-Za-z0-9])",
        at_letter=True,
    ),
    System(
        "path of a file, with a folder in it",
        r"(?<![\w.:/~-])(?:~|\.{1,2})?/(?:[\w.+@-]{1,64}/){1,16}(?:[\w.+@-]{0,63}[\w+-])?(?![\w/])",
    ),
    System(
        "path of Windows",
        r"(?<![A-Za-z0-9])[A-Za-z]:\\(?:[\w.+@~-]{1,64}\\){0,16}(?:[\w.+@~-]{0,63}[\w~-])?(?![\w\\])",
        at_letter=True,
    ),
)
_MAY_BE_CODE = re.compile(r"[\d/\\]")  # every code has one of these
_NOTHING = ("", " ", "\t", "\u00a0", "\u3000")


@functools.cache
def span_pattern(*, codes: bool) -> re.Pattern[str]:
    """A pattern of any span, compiled when it is first needed: that takes 0.1 s, and most texts have no span.

    With `codes` it finds `ABC-123` and `2.3.1` too: most models write them as they are; where one does not, they are
    kept. Few kinds are tried at a letter and none at a blank, so a search takes a third of the time.
    """
    kinds = (*SYSTEMS, *_CODES) if codes else SYSTEMS

    def any_of(kinds: Iterable[System]) -> str:
        return "|".join(f"(?:{kind.pattern})" for kind in kinds)

    at_letter = any_of(kind for kind in kinds if kind.at_letter)
    return re.compile(
        rf"(?=[A-Za-z\d])(?:{at_letter})|(?![A-Za-z\d\u00c0-\u1fff\u3040-\u318f\u3400-\ud7a3 ])(?:{any_of(kinds)})"
    )


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
    return [match.group() for match in span_pattern(codes=False).finditer(text)] if _MAY_BEGIN.search(text) else []


def span_ranges(text: str) -> list[tuple[int, int]]:
    """Where the spans of a text begin and end."""
    return [match.span() for match in span_pattern(codes=False).finditer(text)] if _MAY_BEGIN.search(text) else []


def keeps_part_numbers(src: str, translation: str) -> bool:
    """True if each part number, version or other code of a source is in its translation.

    >>> keeps_part_numbers("Version 2.3.1 of ABC-123.", "Version 2.3.1.1 von ABC-123.")
    False
    >>> keeps_part_numbers("on 1.2.2024", "am 2.1.")
    True
    """
    return not (before := _codes(src)) or before <= _codes(translation)


def _codes(text: str) -> Counter[str]:
    """The codes of a text, without its spans. Each has a digit or is a path, so most sentences need not be searched."""
    if not _MAY_BE_CODE.search(text):
        return Counter()
    return Counter(span_pattern(codes=True).findall(text)) - Counter(spans(text))


def mask_spans(
    text: str, never: frozenset[int] = frozenset(), codes: bool = False
) -> tuple[str, list[tuple[str, str]]]:
    """(the text with a known word in the place of each span that stands for a word, [(the word, its span)]). A span
    inside of a word (`module.py$method`) is not replaced, nor are the spans whose numbers are in `never`.

    >>> mask_spans("{name} has %d cats <b>here</b>.")
    ('Tom has 7 cats <b>here</b>.', [('Tom', '{name}'), ('7', '%d')])
    """
    names = iter([name for name in MASK_WORDS["name"] if name not in text])
    numbers = iter([number for number in MASK_WORDS["number"] if number not in text])
    out, done, pairs = "", 0, []
    places: dict[int, tuple[int, int]] = {}  # of each span with a word: where that is
    for number, match in enumerate(span_pattern(codes=codes).finditer(text)):
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
    if not lost:
        return out, pairs
    return mask_spans(text, never | lost, codes) if len(never) < MAX_LOST_SPANS else (text, [])


def _is_part_of_a_word(text: str, start: int, end: int) -> bool:
    """True for a span with a letter of a script with spaces right beside it."""
    neighbours = text[max(start - 1, 0) : start] + text[end : end + 1]
    return "_" in neighbours or any(map(tells_words, neighbours))


MASK_WORDS = {
    "name": ("Tom", "Maria", "Peter", "Anna", "Paul", "Eva", "Max", "Nina", "David", "Laura", "Martin", "Julia"),
    "number": ("7", "12", "35", "48", "63", "74", "89", "96"),
}
"""Words that most models know, in the place of placeholders."""

MAX_LOST_SPANS = 40
"""Spans whose words made something else of what is around them, after which a text's spans stand for no words."""
_NUMBER = re.compile(r"%(?:\d+\$|\(\w+\))?[-+#0 ]*\d*(?:\.\d+)?(?:hh?|ll?|[zjtL])?[difuxX]|\{#\}")
_VERSION = re.compile(r"\d+\.")
_NO_WORD = re.compile(rf"[<&\]\[]|%%|\{{[%#]|:[a-z0-9_+-]+:$|.\ufe0f|[0-9#*]\u20e3|[{_EMOJI}\U0001f1e6-\U0001f1ff]")


def has_same_spans(src: str, translation: str) -> bool:
    """True if a translation holds exactly the spans of its source."""
    return not lost_or_added(src, translation)


def lost_or_added(src: str, translation: str) -> list[str]:
    """The spans of a source that its translation lacks; if it has all, those that it has beside them.

    An arrow that points to where the text goes on points the other way in a language written from the right.

    >>> lost_or_added("%s of {name}", "%s"), lost_or_added("one", "one %s"), lost_or_added("File ▸ Open", "ملف ◂ افتح")
    (['{name}'], ['%s'], [])
    """
    before, after = (Counter(span.translate(_MIRRORED) for span in spans(text)) for text in (src, translation))
    return list(((before - after) or (after - before)).elements())


_MIRRORED = str.maketrans("◀◁◂◃◄◅⬅◐◖", "▶▷▸▹►▻➡◑◗")


def without_spans(text: str) -> tuple[str, list[Removed]]:
    """(the text without its spans, what was taken out, from left to right).

    >>> without_spans("Click {name}.")
    ('Click.', [Removed(span='{name}', offset=5, before=' ', after='.')])
    """
    left, removed, done = "", [], 0
    for match in span_pattern(codes=False).finditer(text) if _MAY_BEGIN.search(text) else ():
        left += text[done : match.start()]
        done = match.end()
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        # One space of two goes with the span; before punctuation none is left.
        if before.isspace() and (not after or after.isspace() or after in CLOSING):
            left = left.rstrip()
        elif is_letter(before) and is_letter(after):  # "one<br>two" is two words
            left += " "
        removed.append(Removed(match.group(), len(left.rstrip()), before, after))
    left += text[done:]
    dropped = len(left) - len(left.lstrip())
    return left.strip(), [item._replace(offset=max(0, item.offset - dropped)) for item in removed]


def restore_spans(
    translation: str,
    removed: Sequence[Removed],
    src_words: Sequence[Word],
    links: np.ndarray,
    between: str = " ",
    whole: Sequence[tuple[int, int]] = (),
    terms: Sequence[tuple[int, int]] = (),
) -> str:
    """The translation with the spans of its source.

    `links[t, s]`: how much target word t looks at source word s, of the texts without spans (`words`). A span goes
    before the word that stands for its right neighbour where it leans on that one, after that of its left one where it
    leans there, and else where the fewest links cross it (`_parting`).
    `between`: what stands between words in the target language. `whole`: ranges of the translation's characters that
    no span may part; it goes beside them. `terms`: ranges of terms, whose links are certain; no span parts them either.
    """
    tgt_words = words(translation)
    offsets: list[int] = []  # of each span, in the translation
    for item in removed:
        before = [i for i, word in enumerate(src_words) if word.end <= item.offset]
        after = [i for i, word in enumerate(src_words) if word.start >= item.offset]
        leans_right = item.before in _NOTHING and item.after not in _NOTHING and item.after not in CLOSING
        neighbour = after[:1] if leans_right else before[-1:]
        linked = tgt_words[int(links[:, neighbour[0]].argmax())] if neighbour and tgt_words else Word(0, 0)
        is_term = any(start <= linked.start < end for start, end in terms if neighbour)
        if not before and not (leans_right and is_term):
            offsets.append(0)
        elif not tgt_words or (not after and not is_term):
            offsets.append(len(translation))
        elif item.before in _NOTHING and item.after in _NOTHING:
            place = _parting(links, len(before))
            offsets.append(tgt_words[place - 1].end if place else 0)
        elif leans_right:
            offsets.append(linked.start)
        else:
            offsets.append(linked.end)
        for start, end in (*terms, *whole):
            if start < offsets[-1] < end:
                offsets[-1] = start if leans_right else end
    for start, end in terms:
        _part_term(offsets, start, end, [word for word in tgt_words if start <= word.start < end])
    out, done = "", 0
    for place, item in sorted(
        zip(offsets, removed, strict=True), key=lambda pair: pair[0]
    ):  # stable: the source's order
        out += translation[done:place]
        done = place
        left, right = out.rstrip(), translation[place:].lstrip()
        out = left + (between if _apart(left[-1:], item.before, OPENING, item.span) else "") + item.span
        tokenised = right[:1] in CLOSING and translation[place:][:1].isspace()  # this text has a space before marks
        apart = (right and tokenised) or _apart(right[:1], item.after, CLOSING, item.span)
        out += (between if apart else "") or (" " if _grows(item.span, right) else "")
        done += len(translation) - place - len(right)
    return (out + translation[done:]).strip()


def _part_term(offsets: list[int], start: int, end: int, term: Sequence[Word]) -> None:
    """Put spans that would cross around a term, as one ends in the middle of the source's and another begins there, in
    its middle; behind it if it is one word."""
    inside = [(number, place) for number, place in enumerate(offsets) if start <= place <= end]
    half = len(term) // 2
    for (one, left), (other, right) in itertools.combinations(inside, 2):
        if left > right:
            offsets[one] = term[half - 1].end if half else end
            offsets[other] = term[half].start if half else end


def in_place_of(word: str, span: str, text: str) -> str:
    """A text with a span in the place of a word that stands by itself in it, the first time it does.

    >>> in_place_of("Tom", "https://x.org/a/", "Tom的")
    'https://x.org/a/ 的'
    """
    for start, end in places(word, text)[:1]:
        return text[:start] + span + " " * _grows(span, text[end:]) + text[end:]
    return text


def _grows(span: str, right: str) -> bool:
    """True for a URL that would take in some of what follows it."""
    match = _url_here().match(span + right[:1]) if right else None
    return match is not None and match.end() > len(span)


def _parting(links: np.ndarray, number: int) -> int:
    """The number of target words before a place that parts them as the first `number` source words are parted.

    The nearer a source word is to its place, the more its links count, each as a share of all that the source word
    has: one that every target word looks at says nothing.
    """
    columns = links.shape[1]
    distance = np.where(np.arange(columns) < number, number - np.arange(columns), np.arange(columns) - number + 1)
    weighted = links / np.maximum(links.sum(axis=0), 1e-9) / distance
    left, right = weighted[:, :number].sum(axis=1), weighted[:, number:].sum(axis=1)
    scores = np.concatenate([[0.0], np.cumsum(left - right)])
    return int(len(scores) - 1 - scores[::-1].argmax())  # the last one of equals: behind a word that has no link


@functools.cache
def _url_here() -> re.Pattern[str]:
    return re.compile(_URL)


def _apart(neighbour: str, in_source: str, leaning: str, span: str) -> bool:
    """True if a space belongs between a span and its neighbour in the translation, a letter or nothing.

    `in_source`: what stood there in the source. `leaning`: marks that stand close to what is on this side of them.
    """
    if not neighbour or neighbour in leaning:
        return False
    if in_source in _NOTHING:
        return True
    return is_letter(neighbour) and (not is_letter(in_source) or _url_here().match(span) is not None)
