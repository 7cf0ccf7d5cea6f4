"""Warnings of a translation: what looks wrong with it or with its source, and notes on how it came about.

Every check is a function of a `Line` that returns a warning or None, and stands in a table at the foot of this file.
They are for lines that are whole sentences; where a check would cry wolf, it keeps silent (docs/log.md has the rates).
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from dragoman.languages.codes import language_of, name_of
from dragoman.languages.identification import other_language
from dragoman.quality.text_faults import script_of, script_of_language
from dragoman.text.numbers import has_words, numbers_in, parts_of, values_in, words_in
from dragoman.text.placeholders import without_spans

MAX_RATIO = 4.0
"""A translation this many times as long as its source, or as short, has been cut or has run on (in characters)."""
FEWEST_OF_SCRIPT = 4
"""Letters from which on a text's script counts."""
SHORTER = 0.75
"""A translation that has lost a sentence is shorter than this share of its source."""

_WORD = re.compile(r"\w+")
_OPENS, _CLOSES = "\"'“„«‘(¿¡\\[", "\"'”’“»)\\]"
_END = re.compile(
    rf"(?P<word>[^\W\d_]*)(?P<mark>[.!?…]+)[{_CLOSES}]*(?=\s+[{_OPENS}]*[^\W\d_a-zß-öø-ÿ]|\s*$)|(?P<dense>[。！？]+)"
)
_QUOTES, _BRACKETS = '"“”„«»「」『』‹›', "()（）"
_DOUBLED = re.compile(r"\b([^\W\d_]{2,}) \1\b", re.IGNORECASE)
_MAY_DOUBLE = frozenset(
    {"that", "had", "is", "very", "so", "no", "bye", "ha"}
    | {"sie", "die", "der", "das", "den", "dem", "nous", "vous", "si", "on", "du", "que", "se", "lo", "la", "le"}
)
"""Words that stand twice in sound sentences ("die, die" without its comma)."""


_ABBREVIATIONS = frozenset({
    "dr", "mr", "mrs", "ms", "prof", "st", "nr", "bzw", "etc", "vs", "ca", "usw", "evtl", "ggf", "inkl", "exkl",
    "fig", "jr", "sr", "inc", "vol", "al", "art", "cf", "tel", "abb", "bd", "hr", "fr", "sog", "mio", "mrd", "min",
    "max", "std", "mme", "mlle", "pp", "resp", "approx", "dept", "est", "ltd",
})  # fmt: skip


class WarningKind(StrEnum):
    """The kind of a warning: a code that stays the same, whatever the sentence says.

    >>> WarningKind.NUMBERS_LOST.label
    'numbers lost'
    """

    EMPTY = "empty"
    REPETITION = "repetition"
    SOURCE_ECHOED = "source-echoed"
    TOO_LONG = "too-long"
    TOO_SHORT = "too-short"
    NUMBERS_LOST = "numbers-lost"
    NUMBERS_ADDED = "numbers-added"
    UNITS_LOST = "units-lost"
    SENTENCES_LOST = "sentences-lost"
    QUESTIONS_LOST = "questions-lost"
    WORD_DOUBLED = "word-doubled"
    MARKS_LOST = "marks-lost"
    TARGET_LANGUAGE = "target-language"
    SOURCE_LANGUAGE = "source-language"
    SOURCE_SCRIPT = "source-script"
    SOURCE_CAPITALS = "source-capitals"
    UNKNOWN_WORDS = "unknown-words"
    PLACEHOLDERS_LOST = "placeholders-lost"
    TERM_OUT_OF_PLACE = "term-out-of-place"
    TERM_LEFT_OUT = "term-left-out"
    NOT_TRANSLATED = "not-translated"
    LOW_CONFIDENCE = "low-confidence"
    NOT_THE_FIRST = "not-the-first"
    SEARCHED_AGAIN = "searched-again"
    PLACEHOLDERS_PUT_BACK = "placeholders-put-back"
    FROM_MEMORY = "from-memory"

    @property
    def label(self) -> str:
        """The kind in words, for counts of them."""
        return self.value.replace("-", " ")


NOTES = frozenset({
    WarningKind.NOT_THE_FIRST, WarningKind.SEARCHED_AGAIN, WarningKind.PLACEHOLDERS_PUT_BACK, WarningKind.FROM_MEMORY,
})  # fmt: skip
"""Kinds that say what was done, not what looks wrong."""

_SENTENCES = {
    WarningKind.EMPTY: "empty",
    WarningKind.REPETITION: "repetition: {} again and again",
    WarningKind.SOURCE_ECHOED: "source echoed",
    WarningKind.TOO_LONG: "far too long: {}",
    WarningKind.TOO_SHORT: "far too short: {}",
    WarningKind.NUMBERS_LOST: "numbers lost: {}",
    WarningKind.NUMBERS_ADDED: "numbers added: {}",
    WarningKind.UNITS_LOST: "units lost: {}",
    WarningKind.SENTENCES_LOST: "sentences lost: {}",
    WarningKind.QUESTIONS_LOST: "questions lost: {}",
    WarningKind.WORD_DOUBLED: "doubled word: {}",
    WarningKind.MARKS_LOST: "{} lost",
    WarningKind.TARGET_LANGUAGE: "translation is {}",
    WarningKind.SOURCE_LANGUAGE: "source is {}",
    WarningKind.SOURCE_SCRIPT: "source is in {}",
    WarningKind.SOURCE_CAPITALS: "source in capitals",
    WarningKind.UNKNOWN_WORDS: "unknown to the model: {}",
    WarningKind.PLACEHOLDERS_LOST: "placeholders lost",
    WarningKind.TERM_OUT_OF_PLACE: "term perhaps out of place: {}",
    WarningKind.TERM_LEFT_OUT: "term left out: {}",
    WarningKind.NOT_TRANSLATED: "not translated: {}",
    WarningKind.LOW_CONFIDENCE: "low confidence: {}",
    WarningKind.NOT_THE_FIRST: "not the most probable translation, which looks worse",
    WarningKind.SEARCHED_AGAIN: "searched again without repetitions",
    WarningKind.PLACEHOLDERS_PUT_BACK: "placeholders put back",
    WarningKind.FROM_MEMORY: "from the memory",
}


@dataclass(frozen=True)
class Warning:
    """A warning of a translation, or a note on how it came about; as text the sentence that people read.

    >>> str(Warning(WarningKind.NUMBERS_LOST, "13"))
    'numbers lost: 13'
    """

    kind: WarningKind
    detail: str = ""
    place: tuple[int, int] | None = None
    """Characters of the source, from and to, that it is about; None: all of them."""

    @property
    def is_note(self) -> bool:
        """True where nothing looks wrong."""
        return self.kind in NOTES

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format(self.detail)

    def record(self) -> dict[str, Any]:
        """The warning for JSON: its kind, its sentence, and its detail and place where it has these."""
        rest = {"detail": self.detail, "place": self.place and list(self.place)}
        return {"kind": str(self.kind), "text": str(self), **{name: value for name, value in rest.items() if value}}


def doubts(warnings: Iterable[Warning]) -> list[Warning]:
    """The warnings that are no notes, each sentence once."""
    return list({str(one): one for one in warnings if not one.is_note}.values())


class Line(NamedTuple):
    """A source and its translation, with the codes of their languages where these are known."""

    src: str
    tgt: str
    languages: tuple[str, str] = ("", "")


Check = Callable[[Line], Warning | None]


def warnings_of(src: str, translation: str, languages: tuple[str, str] | None = None) -> list[Warning]:
    """The faults of a translation; empty if there is none.

    >>> [str(fault) for fault in warnings_of("Seite 12 und 13", "page 12")]
    ['numbers lost: 13']
    >>> warnings_of("Ein Hund läuft.", "A dog runs.")
    []
    """
    return _found(CHECKS, src, translation, languages)


def source_warnings(src: str, languages: tuple[str, str] | None = None) -> list[Warning]:
    """The reasons why a source is not what a model has learnt to translate.

    >>> [str(reason) for reason in source_warnings("The man is walking down the street.", ("de", "en"))]
    ['source is English, not German']
    """
    return _found(SOURCE_CHECKS, src, "", languages)


def _found(checks: dict[str, Check], src: str, translation: str, languages: tuple[str, str] | None) -> list[Warning]:
    if not src.strip():
        return []
    line = Line(src.strip(), translation.strip(), languages or ("", ""))
    return [found for check in checks.values() if (found := check(line)) is not None]


def empty(line: Line) -> Warning | None:
    """Nothing was written."""
    return None if line.tgt else Warning(WarningKind.EMPTY)


def repetition(line: Line) -> Warning | None:
    """The same one to four words three times in a row or more, which the source has not."""
    found = longest_loop(_WORD.findall(line.tgt.lower()))
    if found is None or longest_loop(_WORD.findall(line.src.lower())) is not None:
        return None
    return Warning(WarningKind.REPETITION, repr(found))


def longest_loop(words: list[str]) -> str | None:
    """One to four words that stand three times in a row or more (a single one: four times), the shortest such.

    >>> longest_loop("a man in a hat in a hat in a hat".split())
    'in a hat'
    """
    for size in range(1, 5):
        times = 4 if size == 1 else 3
        for start in range(len(words) - times * size + 1):
            unit = words[start : start + size]
            if all(words[start + i * size : start + (i + 1) * size] == unit for i in range(1, times)):
                return " ".join(unit)
    return None


def echo(line: Line) -> Warning | None:
    """The source itself, of four words or more: a name, a number or an address may well stay as it is."""
    if len(_WORD.findall(without_spans(line.src)[0])) >= 4 and line.src.lower() == line.tgt.lower():
        return Warning(WarningKind.SOURCE_ECHOED)
    return None


def length(line: Line) -> Warning | None:
    """Far longer or shorter than the source. Short sentences and scripts that need fewer letters are given room."""
    if not line.tgt or written_densely(line.src) != written_densely(line.tgt):
        return None
    sizes = len(line.src) + 10, len(line.tgt) + 10
    detail = f"{len(line.tgt)} characters for {len(line.src)}"
    if sizes[1] > MAX_RATIO * sizes[0]:
        return Warning(WarningKind.TOO_LONG, detail)
    if sizes[0] > MAX_RATIO * sizes[1]:
        return Warning(WarningKind.TOO_SHORT, detail)
    return None


def numbers(line: Line) -> Warning | None:
    """A number, a date or a version is missing: by its value, however it is written."""
    left = values_in(line.tgt, line.languages[1])
    lost = []
    for number in numbers_in(without_spans(line.src)[0]):
        if len(number.text) == 1 and not has_words(line.languages[1]):
            continue  # it may well be written as a word that is not known here
        if number.kind == "time" and number.text.split(":")[0] and _holds_time(number.text, left):
            continue
        for part in parts_of(number):
            said = next((value for value in left if value in part), None)
            if said is None and not _as_digits_inside(part, line.tgt):
                lost.append(number.text)
                break
            if said in left:
                left.remove(said)
    return Warning(WarningKind.NUMBERS_LOST, " ".join(dict.fromkeys(lost))) if lost else None


def _holds_time(text: str, values: list[str]) -> bool:
    hours, minutes = (str(int(field)) for field in text.split(":")[:2])
    return (minutes in values or minutes == "0") and (hours in values or str(int(hours) % 12 or 12) in values)


def _as_digits_inside(part: frozenset[str], text: str) -> bool:
    """True if a number stands beside a letter ("3D", "A4")."""
    letter = r"[^\W\d_]"
    return any(
        re.search(rf"{letter}{re.escape(value)}(?!\d)|(?<!\d){re.escape(value)}{letter}", text) for value in part
    )


def numbers_added(line: Line) -> Warning | None:
    """A number of the translation is not in the source. Of a source with numbers in words nothing is said."""
    src = without_spans(line.src)[0]
    if not has_words(line.languages[0]) or words_in(src, line.languages[0]) or _DIGITS_AS_WORDS.search(src.lower()):
        return None
    if numbers(line):
        return None  # a changed number is said once
    known = values_in(src)
    has_time = any(number.kind == "time" for number in numbers_in(src))
    added = [
        number.text
        for number in numbers_in(line.tgt)
        if not (has_time and number.kind == "time")
        and not any(value in known or _as_digits_inside(frozenset({value}), src) for value in number.values)
        and not any(len(part & set(known)) for part in parts_of(number))
    ]
    return Warning(WarningKind.NUMBERS_ADDED, " ".join(added)) if added else None


_DIGITS_AS_WORDS = re.compile("zwanzig|dreißig|hundert|tausend|million|dutzend|dozen|score|百|千|万|亿")


def units(line: Line) -> Warning | None:
    """A unit or a currency that stands by a number of the source is missing."""
    said = line.tgt.lower()
    lost = []
    for match in _AMOUNT.finditer(line.src):
        unit = match["after"] or match["before"]
        if not any(form in said for form in UNITS[unit]):
            lost.append(unit)
    return Warning(WarningKind.UNITS_LOST, " ".join(dict.fromkeys(lost))) if lost else None


def sentences(line: Line) -> Warning | None:
    """Of several sentences one is missing; or of several questions."""
    wanted, said = sentence_count(line.src), sentence_count(line.tgt)
    questions = [len(re.findall(r"[?？]+", text)) for text in (line.src, line.tgt)]
    if line.tgt and questions[1] < questions[0] and wanted > 1:
        return Warning(WarningKind.QUESTIONS_LOST, f"{questions[0]} in the source, {questions[1]} here")
    if not line.tgt or said >= wanted:
        return None
    if written_densely(line.src) != written_densely(line.tgt):
        missing = 2 * said <= wanted and wanted > 2
    else:
        missing = len(line.tgt) < SHORTER * len(line.src)
    return Warning(WarningKind.SENTENCES_LOST, f"{wanted} in the source, {said} here") if missing else None


def sentence_count(text: str) -> int:
    """Number of sentences, those of abbreviations and initials not counted.

    >>> sentence_count("Dr. Maier kam. Wo war er?"), sentence_count("一。二！")
    (2, 2)
    """
    ends = 0
    for match in _END.finditer(text):
        word, at_end = match["word"] or "", match.end() == len(text.rstrip())
        ordinal = not word and re.search(r"(?<!\d)\d{1,2}$", text[: match.start()])
        abbreviated = len(word) == 1 or word.lower() in _ABBREVIATIONS or ordinal
        ends += bool(at_end or match["mark"] != "." or not abbreviated)
    return max(1, ends)


def doubled(line: Line) -> Warning | None:
    """A word stands twice, one after the other, where the source has no such thing."""
    if _DOUBLED.search(line.src) or longest_loop(_WORD.findall(line.tgt.lower())):
        return None
    found = next((m for m in _DOUBLED.finditer(line.tgt) if m[1].lower() not in _MAY_DOUBLE), None)
    return Warning(WarningKind.WORD_DOUBLED, repr(found[0])) if found else None


def quotes(line: Line) -> Warning | None:
    """Quotation marks or brackets of the source are missing."""
    lost, src = [], without_spans(line.src)[0]
    if sum(src.count(mark) for mark in _QUOTES) >= 2 and not any(mark in line.tgt for mark in _QUOTES + "'‘’"):
        lost.append("quotation marks")
    if re.search(r"[(（]\w+\W+\w", src) and not any(mark in line.tgt for mark in _BRACKETS + "[]"):
        lost.append("brackets")
    return Warning(WarningKind.MARKS_LOST, " and ".join(lost)) if lost and line.tgt else None


def target_language(line: Line) -> Warning | None:
    """The translation is in another language, often the source's own."""
    other = other_language(without_spans(line.tgt)[0], line.languages[1], line.languages[0])
    return _language(WarningKind.TARGET_LANGUAGE, other, line.languages[1])


def source_language(line: Line) -> Warning | None:
    """The source is in another language than the model translates from."""
    text = without_spans(line.src)[0]
    script, letters = script_of(text)
    usual = script_of_language(language_of(line.languages[0]))
    if usual and script and script != usual and letters >= FEWEST_OF_SCRIPT:
        return Warning(WarningKind.SOURCE_SCRIPT, f"{script} script, not in {usual}")
    other = other_language(text, line.languages[0], line.languages[1])
    return _language(WarningKind.SOURCE_LANGUAGE, other, line.languages[0])


def _language(kind: WarningKind, other: str | None, expected: str) -> Warning | None:
    return Warning(kind, f"{name_of(other)}, not {name_of(expected)}") if other else None


def capitals(line: Line) -> Warning | None:
    """The source is written in capitals, which most models know little of."""
    words = [word for word in _WORD.findall(without_spans(line.src)[0]) if word.isalpha()]
    cased = [word for word in words if word.lower() != word.upper()]
    long = [word for word in cased if len(word) > 2]
    is_loud = len(long) >= 2 and all(word.isupper() for word in cased)
    return Warning(WarningKind.SOURCE_CAPITALS) if is_loud else None


def written_densely(text: str) -> bool:
    """True if most of the letters are Chinese or Japanese characters, of which a sentence needs a third."""
    return 2 * sum("\u3040" <= letter <= "\u9fff" for letter in text) > len(text.replace(" ", ""))


UNITS: dict[str, tuple[str, ...]] = {
    "€": ("€", "eur", "欧元"),
    "$": ("$", "dol", "usd", "dól", "美元"),
    "£": ("£", "pound", "pfund", "gbp", "livre", "libra", "英镑"),
    "¥": ("¥", "yen", "yuan", "jpy", "cny", "元"),
    "%": ("%", "percent", "per cent", "prozent", "pour cent", "por c", "procent", "per cento", "百分", "％"),
    "°C": ("°c", "celsius", "degree", "grad", "degré", "grado", "度", "℃"),
    "km": ("km", "kilomet", "kilómet", "quilôm", "chilomet", "公里", "千米"),
    "cm": ("cm", "centimet", "zentimet", "厘米"),
    "mm": ("mm", "millimet", "毫米"),
    "kg": ("kg", "kilo", "quilo", "chilo", "公斤", "千克"),
    "KB": ("kb", "kilobyte", "kib", "ko"),
    "MB": ("mb", "megabyte", "mib", "mo"),
    "GB": ("gb", "gigabyte", "gib", "go"),
    "TB": ("tb", "terabyte", "tib", "to"),
    "kW": ("kw", "kilowatt"),
    "MHz": ("mhz", "megahertz"),
    "GHz": ("ghz", "gigahertz"),
    "ml": ("ml", "millilit", "毫升"),
}
"""Units that stand by numbers, and the beginnings of what they may be in a translation."""

_AMOUNT = re.compile(
    rf"(?P<before>[€$£¥])\s?(?=\d)|(?<=\d)[\s\u00a0]?(?P<after>{'|'.join(map(re.escape, UNITS))})(?![^\W\d_])"
)

CHECKS: dict[str, Check] = {
    "empty": empty,
    "repetition": repetition,
    "echo": echo,
    "length": length,
    "numbers": numbers,
    "numbers added": numbers_added,
    "units": units,
    "sentences": sentences,
    "doubled": doubled,
    "quotes": quotes,
    "language": target_language,
}

SOURCE_CHECKS: dict[str, Check] = {"language": source_language, "capitals": capitals}
