"""Faults of a translation, each defined once: what is visible in it and in its source.

A fault is a function of a `Line` that returns its detail, which may be empty, or None where there is no such fault. The
tables at the foot of this file are the guards' (benchmarks/log/2026-11.md, "guards, and false alarms" has the rates of
false alarms): there is no reference, so that a fault keeps silent where it would cry wolf. `dragoman evaluate`
(`output_checks.py`), `dragoman compare` (`differences.py`) and the doctor use the same functions; the first two ask
whether a reference has the fault as well.
"""

import functools
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from dragoman.languages.cldr import UNITS, babel_locale, unit_forms, unit_names
from dragoman.languages.codes import facts, is_chinese, language_of, name_of, parsed, script_of
from dragoman.languages.identification import other_language
from dragoman.languages.punctuation import CASELESS, ENDS, QUESTIONS, QUOTES
from dragoman.languages.scripts import han_variants, letters_in, script_and_letters, script_of_language
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.case import is_in_capitals
from dragoman.text.negation import negations
from dragoman.text.numbers import has_words, numbers_in, parts_of, values_in, words_in
from dragoman.text.placeholders import spans, without_spans
from dragoman.text.segment import sentences
from dragoman.text.words import LETTERS, MARKS, folded

MAX_RATIO = 4.0
"""A translation this many times as long as its source, or as short, has been cut or has run on (in characters)."""
MIN_LETTERS_OF_SCRIPT, MIN_HAN_LETTERS = 4, 2
"""Letters from which on a text's script counts; those that only simplified, or only traditional, Chinese has."""
FEWEST_OF_SENTENCE = 5
"""From so many words in small letters, without a word in the usual script, a text is a sentence and no name."""
LETTERS_OF_NAMES = 6
"""Letters of names for each letter of the usual script, at most: `LibreOffice 帮助`."""
MIN_LENGTH_SHARE, MIN_UNMARKED_LENGTH_SHARE = 0.75, 0.55
"""A translation that has lost a sentence is shorter than this share of the usual length; the second share is for
scripts without marks at the ends of sentences."""

_QUOTES, _BRACKETS = re.compile(f"[{QUOTES}]"), "()（）[]［］【】﴾﴿"
_IN_BRACKETS = re.compile(
    r"(?<!\w)[(（][^()（）]*[^\W\d_]{2}[^()（）]*\s[^()（）]*[^\W\d_]{2}[^()（）]*[)）]|（[^()（）]{4,}）"
)
"""Words in brackets; `cell(s)` and `(0 to 9)` may well stand without."""
_WORD, _DENSE = re.compile(LETTERS), re.compile("[\u3040-\u9fff]")
_DOUBLED = re.compile(rf"(?<![\w{MARKS}])(?=[^\W\d_][\w{MARKS}])({LETTERS}) \1(?![\w{MARKS}])", re.IGNORECASE)
_MAY_DOUBLE = frozenset(
    {"that", "had", "is", "very", "so", "no", "bye", "ha"}
    | {"sie", "die", "der", "das", "den", "dem", "nous", "vous", "si", "on", "du", "que", "se", "lo", "la", "le"}
)
"""Words that stand twice in sound sentences ("die, die" without its comma)."""
_LETTERS_AGAIN = re.compile(r"(?!(.)\1\1)([^\W\d_]\S{2,39}?)\2\2")  # "Aaaaaaaaah" is no fault


class Line(NamedTuple):
    """A source and its translation, with the codes of their languages where these are known."""

    src: str
    tgt: str
    languages: tuple[str, str] = ("", "")


Fault = Callable[[Line], str | None]


def warnings_of(src: str, translation: str, languages: tuple[str, str] | None = None) -> list[Warning]:
    """The faults of a translation; empty if there is none.

    >>> [str(fault) for fault in warnings_of("Seite 12 und 13", "page 12")]
    ['numbers lost: 13']
    >>> warnings_of("Ein Hund läuft.", "A dog runs.")
    []
    """
    return _warnings(FAULTS, src, translation, languages)


def source_warnings(src: str, languages: tuple[str, str] | None = None) -> list[Warning]:
    """The reasons why a source is not what a model has learnt to translate.

    >>> [str(reason) for reason in source_warnings("The man is walking down the street.", ("de", "en"))]
    ['source is English, not German']
    """
    return _warnings(SOURCE_FAULTS, src, "", languages)


def _warnings(
    faults: dict[WarningKind, Fault], src: str, translation: str, languages: tuple[str, str] | None
) -> list[Warning]:
    if not src.strip():
        return []
    line = Line(src.strip(), translation.strip(), languages or ("", ""))
    return [Warning(kind, detail) for kind, fault in faults.items() if (detail := fault(line)) is not None]


def beyond_references(fault: Fault, line: Line, references: Iterable[str]) -> str | None:
    """The detail of a fault that a translation has and none of its references."""
    detail = fault(line)
    if detail is None or any(fault(line._replace(tgt=reference)) is not None for reference in references):
        return None
    return detail


def empty(line: Line) -> str | None:
    """Nothing was written."""
    return None if line.tgt else ""


def repetition(line: Line) -> str | None:
    """The same words again and again, which the source does not say."""
    again = said_again(line.tgt)
    return repr(again) if again is not None and said_again(line.src) is None else None


def said_again(text: str) -> str | None:
    """Words that a text says again and again: one to four words three times in a row (a single one: four times), a
    longer run of letters three times, or its first half, of three words or more, once more.

    >>> said_again("A man in a hat in a hat in a hat"), said_again("有一个人在那里有一个人在那里有一个人在那里")
    ('in a hat', '有一个人在那里')
    """
    words, dense = folded(text), written_densely(text)
    between = "" if dense else " "
    for size in range(1, 5):
        times = 4 if size == 1 else 3
        for start in range(len(words) - times * size + 1):
            unit = words[start : start + size]
            if all(words[start + i * size : start + (i + 1) * size] == unit for i in range(1, times)):
                return between.join(unit)
    letters = _LETTERS_AGAIN.search("".join(text.split()) if dense else text)
    if letters:
        return letters[2]
    half = len(words) // 2
    return between.join(words[:half]) if half >= 3 and words[:half] == words[half : 2 * half] else None


def echoed(line: Line) -> str | None:
    """The source itself, of four words or more: a name, a number or an address may well stay as it is."""
    fewest = 8 if written_densely(line.src) else 4
    return "" if is_copy(line.src, line.tgt) and len(folded(without_spans(line.src)[0])) >= fewest else None


def is_copy(src: str, tgt: str) -> bool:
    """True if a text has the words of its source, whatever their case and the marks between them.

    >>> is_copy("Ein Hund läuft.", "ein Hund läuft"), is_copy("Nein!", "No!")
    (True, False)
    """
    return abs(len(src) - len(tgt)) <= 3 and folded(src) == folded(tgt) != []


def too_long(line: Line) -> str | None:
    """Far longer than the source. Short sentences and scripts that need fewer letters are given room."""
    return _sizes(line) if _length_ratio(line) > MAX_RATIO else None


def too_short(line: Line) -> str | None:
    """Far shorter than the source."""
    return _sizes(line) if _length_ratio(line) < 1 / MAX_RATIO else None


def _sizes(line: Line) -> str:
    return f"{len(line.tgt)} characters for {len(line.src)}"


def _length_ratio(line: Line) -> float:
    is_comparable = line.tgt and written_densely(line.src) == written_densely(line.tgt)
    return length_ratio(line.tgt, line.src) if is_comparable else 1.0


def length_ratio(text: str, other: str, room: int = 10) -> float:
    """The ratio of two texts' lengths, with `room` characters added to both, because short texts differ by chance."""
    return (len(text) + room) / (len(other) + room)


@functools.lru_cache(64)  # each fault asks
def _bare(line: Line) -> Line:
    """The line without placeholders, tags and addresses: their digits are no numbers."""
    return line._replace(src=without_spans(line.src)[0], tgt=without_spans(line.tgt)[0])


def words_lost(line: Line) -> str | None:
    """No word is left, though the source has some beside its placeholders and numbers: `%d shirts were blue.` as `%d.`

    A sign or a number that the source lacks stands for two words at most: `%d percent`, `from %d to %d`, `half past 8`.
    """
    src, tgt, (code, _) = _bare(line)
    signs = Counter(_SIGN.findall(tgt)) - Counter(_SIGN.findall(src))
    if not line.tgt or re.search(r"[^\W\d_]", tgt) or not set(spans(line.tgt)) <= set(spans(line.src)):
        return None
    if any(map(str.isdigit, signs)) and not has_words(code):
        return None
    lost = [word for word in _SPELLED.findall(src) if not words_in(word, code)]
    return " ".join(lost[:_SHOWN_WORDS]) if len(lost) > 2 * signs.total() else None


_SHOWN_WORDS = 8
_SPELLED = re.compile(r"(?<!\w)[^\W\d_]+(?:['’.][^\W\d_]+)*(?!\w)")
_SIGN = re.compile(r"""\d+|[^\w\s.,;:!?…¡¿"'“”„‚‘’«»‹›()\[\]{}。，、！？：；「」『』（）⁇]""")


def numbers_lost(line: Line) -> str | None:
    """A number, a date or a version is missing: by its value, however it is written."""
    line = _bare(line)
    left: dict[str, deque[int]] = {}
    for place, value in enumerate(values_in(line.tgt, line.languages[1])):
        left.setdefault(value, deque()).append(place)
    inside, lost, of_words = _digits_inside(line.tgt), [], set(_OF_WORDS.findall(line.src))
    for number in numbers_in(line.src, line.languages[0]):
        if not has_words(line.languages[1]) and (len(number.text) == 1 or number.text in of_words):
            continue  # it may well be written as a word that is not known here
        if number.kind == "time" and number.text.split(":")[0] and _holds_time(number.text, left):
            continue
        for part in parts_of(number):
            written = min((value for value in part if left.get(value)), key=lambda value: left[value][0], default=None)
            if written is not None:
                left[written].popleft()
            elif not any(map(inside, part)):
                lost.append(number.text)
                break
    return " ".join(dict.fromkeys(lost)) if lost else None


_OF_WORDS = re.compile(r"(?<=[^\W\d_]-)\d{1,2}(?!\w)|(?<!\w)\d{1,2}(?=-[^\W\d_])")
"""Numbers that are parts of words: base-10, 7-bit."""


def _holds_time(text: str, left: Mapping[str, Collection[int]]) -> bool:
    hours, minutes = (str(int(field)) for field in text.split(":")[:2])
    hour_is_left = left.get(hours) or left.get(str(int(hours) % 12 or 12))
    return bool((minutes == "0" or left.get(minutes)) and hour_is_left)


def _digits_inside(text: str) -> Callable[[str], bool]:
    """Tells whether a number stands beside a letter of the text ("3D", "A4")."""

    @functools.cache
    def is_inside(value: str) -> bool:
        at = text.find(value)
        while at >= 0:
            before, after = text[max(0, at - 1) : at], text[at + len(value) :][:1]
            if (_is_letter(before) and not after.isdecimal()) or (_is_letter(after) and not before.isdecimal()):
                return True
            at = text.find(value, at + 1)
        return False

    return is_inside


def _is_letter(character: str) -> bool:
    return character.isalnum() and not character.isdecimal()


def numbers_added(line: Line) -> str | None:
    """A number of the translation is not in the source. Of a source with numbers in words nothing is said."""
    if numbers_lost(line):
        return None  # a changed number is said once
    line = _bare(line)
    src, code = line.src, line.languages[0]
    if not has_words(code) or words_in(src, code) or _DIGITS_AS_WORDS.search(src.lower()):
        return None
    known, inside = set(values_in(src, code)), _digits_inside(src)
    has_time = any(number.kind == "time" for number in numbers_in(src, code))
    added = [
        number.text
        for number in numbers_in(line.tgt, line.languages[1])
        if not (has_time and number.kind == "time")
        and not any(value in known or inside(value) for value in number.values)
        and not any(part & known for part in parts_of(number))
    ]
    return " ".join(added) if added else None


_DIGITS_AS_WORDS = re.compile("zwanzig|dreißig|hundert|tausend|million|dutzend|dozen|score|百|千|万|亿")


def units_lost(line: Line) -> str | None:
    """A unit or a currency that stands by a number of the source is missing, in whatever form."""
    line = _bare(line)
    code, lower, lost = line.languages[1], line.tgt.lower(), []
    if babel_locale(code) is None:
        return None  # its words are not known
    amounts, units = _amounts(line.languages[0])
    for match in amounts.finditer(line.src):
        unit = units[match["after"] or match["before"]]
        if not any(form in lower for form in unit_forms(unit, code)):
            lost.append(match["after"] or match["before"])
    return " ".join(dict.fromkeys(lost)) if lost else None


@functools.cache
def _amounts(code: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern of amounts in a language, and the unit for each of the signs in it."""
    units = {sign: unit for unit in UNITS for sign in unit_names(unit, code) if len(sign) <= _LONGEST_SIGN}
    units |= {"％": "%", "٪": "%", **{unit: unit for unit in UNITS}}
    after = "|".join(re.escape(sign) for sign in sorted(units, key=len, reverse=True))
    before = "(?P<before>[€$£¥])\\s?(?=\\d)"
    return re.compile(rf"{before}|(?<=\d)\s?(?P<after>{after})(?![\w{MARKS}])"), units


_LONGEST_SIGN = 3
"""Letters of a unit's sign; longer ones are words, whose forms are many."""
_QUESTIONS = re.compile(rf"{QUESTIONS}|か(?=。)|(?:လား|လဲ)(?=။)")
"""The marks of questions, and the words that Japanese and Burmese have instead."""


def questions_lost(line: Line) -> str | None:
    """Of several sentences a question is missing: left out, or no question any more."""
    questions = [len(_QUESTIONS.findall(text)) for text in (line.src, line.tgt)]
    if not line.tgt or questions[1] >= questions[0]:
        return None
    counts = _sentences(line)
    if script_of(line.languages[1] or "und") in _UNASKED:
        return None
    is_lost = counts[0] > 1 and (counts[1] >= counts[0] or _is_shorter(line))  # else two may have become one
    return f"{questions[0]} in the source, {questions[1]} here" if is_lost else None


def sentences_lost(line: Line) -> str | None:
    """One of several sentences is missing. A lost question is reported once."""
    counts = _sentences(line)
    if not line.tgt or counts[1] >= counts[0] or questions_lost(line) is not None or not _is_shorter(line):
        return None
    return f"{counts[0]} in the source, {counts[1]} here"


@functools.lru_cache(64)
def _sentences(line: Line) -> tuple[int, int]:
    src, tgt = (len(sentences(text, code)) for text, code in zip(line[:2], line.languages, strict=True))
    return src, tgt


def _is_shorter(line: Line) -> bool:
    """True if a translation is so short that a sentence may be missing, as long as its language usually needs."""
    usual = _usual_length(line.tgt, line.languages[1]) / _usual_length(line.src, line.languages[0])
    has_marks = not _UNMARKED & {script_of(code) for code in line.languages if code}
    return len(line.tgt) < (MIN_LENGTH_SHARE if has_marks else MIN_UNMARKED_LENGTH_SHARE) * usual * len(line.src)


def _usual_length(text: str, code: str) -> float:
    script = script_of(code) if code else "Hans" if written_densely(text) else ""
    return LENGTHS.get(script, 1.0)


LENGTHS = {
    **dict.fromkeys(("Hans", "Hant", "Hani", "Hanb"), 0.3), "Jpan": 0.47, "Kore": 0.48, "Ethi": 0.66, "Hebr": 0.77,
    "Arab": 0.85, "Thai": 0.82, "Laoo": 0.82,
}  # fmt: skip
"""Characters that a script needs for one of English: medians of LibreOffice's interface (benchmarks/log/2026-11.md,
"guards in the punctuation, digits and counting of each language")."""
_UNASKED = {"Thai", "Laoo", "Tibt"}
"""Scripts whose questions have no mark."""
_UNMARKED = {"Thai", "Laoo", "Ethi", "Tibt"}
"""Scripts whose sentences often have no mark: their number is not known."""


def doubled(line: Line) -> str | None:
    """A word stands twice, one after the other, where the source has no such thing."""
    if _DOUBLED.search(line.src) or said_again(line.tgt) is not None:
        return None
    if language_of(line.languages[1]) in facts("reduplicates"):
        return None
    match = next((m for m in _DOUBLED.finditer(line.tgt) if m[1].lower() not in _MAY_DOUBLE), None)
    return repr(match[0]) if match else None


def marks_lost(line: Line) -> str | None:
    """Quotation marks or brackets of the source are missing."""
    lost, src = [], without_spans(line.src)[0]
    has_any = any(marks.search(line.tgt) for marks in (_QUOTES, _SINGLE_QUOTES))
    if len(_QUOTES.findall(src)) >= 2 and not has_any and not _are_names(line._replace(src=src)):
        lost.append("quotation marks")
    if _IN_BRACKETS.search(src) and not any(mark in line.tgt for mark in _BRACKETS):
        lost.append("brackets")
    return " and ".join(lost) if lost and line.tgt else None


def _are_names(line: Line) -> bool:
    """True where quotes stand around names that stay as they are, or, in a script without capitals, around what
    English writes in capitals; what is said is in quotes there, too."""
    quoted = [text.strip() for text in _QUOTED.findall(line.src)]
    others = [text for text in quoted if text not in line.tgt]
    if (
        language_of(line.languages[1]) != "en"
        or not quoted
        or not all(quoted)
        or any(text[-1] in ENDS for text in others)
    ):
        return False
    has_capitals = _CAPITAL.search(line.tgt) is not None
    return all(has_capitals and _UNCASED.match(text) for text in others)


_QUOTED = re.compile(f"[{QUOTES}]([^{QUOTES}]+)[{QUOTES}]")
_UNCASED = re.compile(f"[{CASELESS}]")
_CAPITAL = re.compile(r"[\w,()]\s(?!I\b)[A-Z]\w|\w[A-Z]")
_SINGLE_QUOTES = re.compile("['‘’‚‛׳´`]")


def negation_lost(line: Line) -> str | None:
    """The source says no, and the translation does not."""
    return "" if _says_no(line) == (True, False) else None


def negation_added(line: Line) -> str | None:
    """The translation says no, and the source does not."""
    return "" if _says_no(line) == (False, True) else None


def _says_no(line: Line) -> tuple[bool, bool]:
    return bool(negations(line.src, line.languages[0])), bool(negations(line.tgt, line.languages[1]))


def target_language(line: Line) -> str | None:
    """The translation is in another script, or in another language, often the source's own."""
    return _target_script(line) or _other_language(line.tgt, line.languages[1], line.languages[0])


def _target_script(line: Line) -> str | None:
    """The script of a translation, where the language has another one; words of the source may stay as they are."""
    code = line.languages[1]
    names_script = is_chinese(code) and (parsed(code).script or parsed(code).region)
    if names_script and _in_other_chinese(line.tgt, script_of(code)):
        is_simplified, forms = script_of(code) == "Hans", ("simplified", "traditional")
        return f"in {forms[is_simplified]} letters, not in {forms[not is_simplified]} ones"
    usual, kept = script_of_language(code), set(folded(line.src))
    text = " ".join(word for word in folded(without_spans(line.tgt)[0]) if word not in kept)
    script = other_script(text, usual)
    return f"in {script} script, not in {usual}" if script else None


def source_language(line: Line) -> str | None:
    """The source is in another language than the model translates from."""
    return _other_language(line.src, *line.languages) if source_script(line) is None else None


def _other_language(text: str, code: str, likely: str) -> str | None:
    if script_of(code) != script_of(language_of(code)):
        return None  # Punjabi in Arabic letters is not what the languages are told by
    other = other_language(without_spans(text)[0], code, likely)
    return f"{name_of(other)}, not {name_of(code)}" if other else None


def source_script(line: Line) -> str | None:
    """The source is in another script than its language is written in."""
    usual = script_of_language(line.languages[0])
    script = other_script(without_spans(line.src)[0], usual)
    return f"{script} script, not in {usual}" if script else None


def other_script(text: str, usual: str | None, beside: str = "") -> str | None:
    """The script of a text, where that is not the usual one; None where there are too few letters to tell.

    Words that its translation or source `beside` it has too are names, unless there is a sentence of them. `usual` may
    say which script of Chinese: `Hans`, `Hant`.
    """
    if usual in ("Hans", "Hant"):
        if _in_other_chinese(text, usual):
            return "Hant" if usual == "Hans" else "Hans"
        usual = "Han"
    script, letters = script_and_letters(text)
    if not usual or not script or script == usual or letters < MIN_LETTERS_OF_SCRIPT:
        return None
    words, beside = _WORD.findall(text), "".join(_WORD.findall(beside.lower()))
    new = [word for word in words if word.lower() not in beside]
    own, strange = (sum(letters_in(word, name) for word in new) for name in (usual, script))
    if own == 0 and sum(len(word) > 1 and word.islower() for word in words) >= FEWEST_OF_SENTENCE:
        return script
    return script if strange >= MIN_LETTERS_OF_SCRIPT and strange > LETTERS_OF_NAMES * own else None


def _in_other_chinese(text: str, script: str) -> bool:
    """True for a text in simplified letters where `script` is `Hant`, or in traditional ones where it is `Hans`."""
    own, other = han_variants(text) if script == "Hans" else han_variants(text)[::-1]
    return other >= MIN_HAN_LETTERS and other > 3 * own


def source_capitals(line: Line) -> str | None:
    """The source is written in capitals, which most models know little of."""
    return "" if is_in_capitals(line.src, line.languages[0]) else None


def written_densely(text: str) -> bool:
    """True if most of the letters are Chinese or Japanese characters, of which a sentence needs a third."""
    return not text.isascii() and 2 * len(_DENSE.findall(text)) > len(text.replace(" ", ""))


FAULTS: dict[WarningKind, Fault] = {
    WarningKind.EMPTY: empty,
    WarningKind.REPETITION: repetition,
    WarningKind.SOURCE_ECHOED: echoed,
    WarningKind.TOO_LONG: too_long,
    WarningKind.TOO_SHORT: too_short,
    WarningKind.WORDS_LOST: words_lost,
    WarningKind.NUMBERS_LOST: numbers_lost,
    WarningKind.NUMBERS_ADDED: numbers_added,
    WarningKind.UNITS_LOST: units_lost,
    WarningKind.QUESTIONS_LOST: questions_lost,
    WarningKind.SENTENCES_LOST: sentences_lost,
    WarningKind.WORD_DOUBLED: doubled,
    WarningKind.MARKS_LOST: marks_lost,
    WarningKind.TARGET_LANGUAGE: target_language,
}

SOURCE_FAULTS: dict[WarningKind, Fault] = {
    WarningKind.SOURCE_SCRIPT: source_script,
    WarningKind.SOURCE_LANGUAGE: source_language,
    WarningKind.SOURCE_CAPITALS: source_capitals,
}
