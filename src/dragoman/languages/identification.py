"""The language of a text, told by py3langid: naive Bayes over byte n-grams of 140 languages (Lui and Baldwin 2012)."""

import functools
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dragoman.errors import writing
from dragoman.languages.codes import facts, is_known, language_of, parsed, script_of
from dragoman.languages.scripts import LETTERS, several, telling_script, written_in

MIN_PROBABILITY, MIN_PROBABILITY_OF_TWO = 0.9, 0.99
"""Probability from which the language of a text counts as sure, among all languages, and among two."""
MIN_LETTERS = 12
"""In shorter texts nothing is sure; a letter of a script without spaces counts for three."""

NO_LANGUAGE = "zxx"
"""The identifier's code for formulas, numbers and the like."""
EXPECTED_PRIOR, RARE_FACTOR = 0.5, 0.1
"""The prior probability that a text is in an expected language; and how much less likely a rare language is than a
common language (which has a name in `languages.toml`). `benchmarks/language_id.py`: no text in an expected language is
taken for another language, and nearly all texts in other languages are."""
GREETING_WORDS, GREETING_FACTOR, FIRST_GREETING_FACTOR = 3, 20.0, 5.0
"""Words of a text, at most, that may be a greeting, and how many times as probable as by its letters that makes its
languages: letters say little of one word, and a greeting is what a person tries first. The last one is for a greeting
that a sentence begins with, among languages near to the likely one: `God morgen, ...` is two words in Norwegian."""
SAMPLE_LETTERS = (400, 200)
"""Letters of the beginning, and of the middle, that a language is told from."""
OTHER_SCRIPT_PROBABILITY = 0.02
"""The probability that a text is of the variants that are written in another script than most of its letters."""
COMMON_LANGUAGE_SAMPLE, MIN_SURE_TEXTS = 500, 10
"""The number of texts that are looked at for their common language, and how many of them have to be sure."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE = re.compile(r"[,.!?;:\n]")
_LETTER = re.compile(r"[^\W\d_]")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")
_NEAR = [
    {"zh", "yue", "wuu", "cmn"}, {"no", "nb", "nn", "da"}, {"hr", "sr", "bs", "sh"}, {"id", "ms", "jv"}, {"cs", "sk"},
    {"es", "gl", "an"}, {"fr", "oc", "wa"}, {"de", "lb", "nds"}, {"nl", "af"}, {"ru", "uk", "be"}, {"bg", "mk"},
    {"tr", "az"}, {"en", "pcm"},
]  # fmt: skip
"""Languages that cannot be told apart by one line."""
MIN_HAN_WITHOUT_KANA = 20
"""Characters of Japanese that are rarely without kana; fewer are as often Japanese as Chinese."""
_TOLD_BY_LETTERS = frozenset({"ru", "uk", "be", "bg", "mk", "cs", "sk", "tr", "az"})
"""Languages of `_NEAR` with letters that their neighbours do not have."""
MIN_OWN_LETTERS = 2
"""From so many letters that only the other language has, and no letter that only this language has, a text is in the
other language."""


def identify(text: str, among: tuple[str, ...] = ()) -> tuple[str, float]:
    """The language of a text and its probability, of all languages or `among` some that are known.

    >>> identify("Ein Mann schläft in einem grünen Raum auf einem Sofa.")[0]
    'de'
    """
    shares = _shares(text, among)
    language = max(shares, key=shares.__getitem__)
    return language_of(language), shares[language]


def _shares(text: str, among: tuple[str, ...] = ()) -> dict[str, float]:
    """The probability of each of the identifier's languages, of all or `among` some. Chinese without a letter that only
    Cantonese or Wu has is `zh`: of 1,500 lines of a Taiwanese interface the identifier has 449 as Cantonese."""
    shares = {str(label): float(share) for label, share in _identifier(among).rank(text)}
    for label, letters in _OWN_LETTERS.items():
        if "zh" in shares and not letters.search(text):
            shares["zh"] += shares.pop(label, 0.0)
    return shares


_OWN_LETTERS = {"yue": re.compile("[嘅咗喺唔哋佢嚟冇啲嗰咁攞嘢乜]"), "wuu": re.compile("[侬覅伲搿]")}


def likely_languages(text: str, expected: Sequence[str]) -> list[tuple[str, float]]:
    """The languages that a text may be in, with their probabilities, best first. Languages that are expected are so by
    half before the text is looked at; all others that are known here may be it too, rare ones least. Those that are
    one language in several scripts, or of several regions, share its probability (`_variants`); where all are in
    another script than the text, the language comes in the script of the text: `zh-Hans` where `zh-Hant` is expected.

    A text without letters may be in all that are expected, and so may one whose languages are not known here: their
    probability is 0. No more of a text is looked at than `SAMPLE_LETTERS` letters, with spaces around them: its first
    and last word end there, which tells the language of a few words better (benchmarks/log/2026-11.md, "one way
    through").

    >>> [likely_languages(text, ["de", "en"])[0][0] for text in ("Je voudrais une bière.", "Hola!", "Hallo!")]
    ['fr', 'es', 'de']
    """
    codes: dict[str, list[str]] = {}
    for code in dict.fromkeys(expected):
        codes.setdefault(_label(code), []).append(code)
    awaited = [label for label in codes if label in _known()]
    if not awaited or not any(letter.isalpha() for letter in text):
        return [(code, 0.0) for code in expected]
    likelihoods = _shares(f" {sample(text)} ")
    likelihoods.pop(NO_LANGUAGE, None)
    weights = {label: 1.0 if label in facts("name") else RARE_FACTOR for label in likelihoods}
    others = sum(weight for label, weight in weights.items() if label not in codes)
    priors = {
        label: EXPECTED_PRIOR / len(awaited) if label in codes else (1 - EXPECTED_PRIOR) * weight / others
        for label, weight in weights.items()
    }
    shares = {label: share * priors[label] for label, share in likelihoods.items()}
    for label in _greeted(_CLAUSE.split(text, maxsplit=1)[0]) & _near(max(shares, key=shares.__getitem__)):
        shares[label] = FIRST_GREETING_FACTOR * shares.get(label, 0.0)
    if greeted := _greeted(text) & shares.keys():
        bonus = GREETING_FACTOR * sum(shares.values()) / sum(priors[label] for label in greeted)
        shares.update({label: shares[label] + bonus * priors[label] for label in greeted})
    total = sum(shares.values()) or 1.0
    of_codes = [
        (code, share / total * part)
        for label, share in shares.items()
        for code, part in _variants(sample(text), codes.get(label, [label])).items()
    ]
    ranked = sorted(of_codes, key=lambda one: -one[1])
    return ranked + [(code, 0.0) for code in expected if _label(code) not in awaited]


def _variants(text: str, codes: Sequence[str]) -> dict[str, float]:
    """The part that each of some codes of one language has in the probability of the language, by the script of a text.

    A code without script and region may be in any. Where none is in the script of the text, a code that is is added.
    """
    script = telling_script(text, codes[0]) if several(codes[0]) else ""
    if not script:
        return {code: 1 / len(codes) for code in codes}
    fitting = [code for code in codes if script_of(code) == script]
    fitting = fitting or [code for code in codes if not any(parsed(code)[1:3])]
    fitting = fitting or [f"{parsed(codes[0]).language}-{script}"]
    others = [code for code in codes if code not in fitting]
    rest = OTHER_SCRIPT_PROBABILITY if others else 0.0
    return {code: (1 - rest) / len(fitting) for code in fitting} | {code: rest / len(others) for code in others}


def _greeted(text: str) -> set[str]:
    """The languages in which a text is a greeting, thanks and the like; none for more than a few words."""
    words = set(_WORD.findall(text[:100].lower().replace("’", "'")))
    if not words or len(words) > GREETING_WORDS or len(text) > 100:
        return set()
    return {_label(code) for code, known in facts("greetings").items() if words <= set(known.split())}


def source_language(text: str, sources: Sequence[str], target: str, served: Sequence[str] = ()) -> tuple[str, float]:
    """The language that a text is to be translated from, one of `sources`, and its probability. A text that is surely
    in none of them gets another language: `target`, and then the text stays as it is, or a language that cannot be
    translated. `served`: all expected languages, where these are more.

    >>> source_language("Hallo", ["de"], "en")[0], source_language("The dog sleeps in the house.", ["de"], "en")[0]
    ('de', 'en')
    """
    candidates = [*sources, *([target] if target not in sources else [])]
    ranked = likely_languages(text, list(dict.fromkeys([*candidates, *served])))
    shares = dict(ranked)
    here = sum(shares[code] for code in candidates) if all(map(known, candidates)) else 1.0
    best = ranked[0]
    if best[0] not in candidates and 1 - here >= MIN_PROBABILITY:
        return best
    if shares[target] and shares[target] >= MIN_PROBABILITY * here:
        return target, shares[target]
    return max(((code, shares[code]) for code in sources or served), key=lambda one: one[1], default=best)


def sample(text: str) -> str:
    """The part of a text that is looked at: its beginning, and a piece of its middle.

    >>> sample("a" * 10), len(sample("a" * 100_000))
    ('aaaaaaaaaa', 601)
    """
    if len(text) <= sum(SAMPLE_LETTERS):
        return text
    first, middle = SAMPLE_LETTERS
    start = max(first, (len(text) - middle) // 2)
    return f"{text[:first]} {text[start : start + middle]}"


def known(code: str) -> bool:
    """True if a language can be told from others."""
    return bool(code) and _label(code) in _known()


def is_long_enough(text: str) -> bool:
    """True if a text has so many letters that its language can be told."""
    return len(_LETTER.findall(text)) + 2 * len(_DENSE.findall(text)) >= MIN_LETTERS


def common_language(texts: Sequence[str]) -> str:
    """The language that most of some texts are surely in; "" where that cannot be said."""
    identified = [identify(text) for text in texts[:COMMON_LANGUAGE_SAMPLE] if is_long_enough(text)]
    sure = Counter(language for language, probability in identified if probability >= MIN_PROBABILITY)
    language, count = sure.most_common(1)[0] if sure else ("", 0)
    return language if count >= MIN_SURE_TEXTS and count > 0.7 * sure.total() else ""


def recognised(texts: Sequence[str]) -> str:
    """The language that some texts are in, few short ones together; "" where it cannot be said. With the script where
    that is not the usual one: `zh-Hant`, `sr-Latn`.

    >>> recognised(["我们去公园。", "今天天气很好。"]), recognised(["7", "?"])
    ('zh', '')
    """
    text = sample(" ".join(texts[:COMMON_LANGUAGE_SAMPLE]))
    if language := common_language(texts):
        return written_in(language, text)
    shares = {language_of(label): share for label, share in _shares(text).items()}
    language = max(shares, key=shares.__getitem__)
    sure = sum(shares.get(near, 0.0) for near in _near(language)) >= MIN_PROBABILITY_OF_TWO
    return written_in(language, text) if is_long_enough(text) and sure and language != NO_LANGUAGE else ""


def language_or_recognised(code: str, texts: Sequence[str]) -> str:
    """The code of a language; for a placeholder such as `tgt` the language of the texts, where it can be recognised.

    >>> language_or_recognised("tgt", ["Ein Mann schläft in einem grünen Raum."]), language_or_recognised("xy", ["1"])
    ('de', 'xy')
    """
    return code if is_known(code) else recognised(texts) or code


def other_language(text: str, code: str, likely: str = "") -> str | None:
    """The language of a text that is surely not in language `code`; None for a text that is or may be. `likely`: the
    probable language of a mistake, such as the other language of a pair.

    >>> other_language("The man is walking down the street.", "de", "en")
    'en'
    """
    code, likely = _label(code), _label(likely)
    if not is_long_enough(text) or not known(code):
        return None
    near = _near(code)
    if neighbour := _neighbour(text, code, near):
        return neighbour
    language, probability = identify(text)
    if language in near or language == NO_LANGUAGE:
        return None
    if {code, language} == {"ja", "zh"} and len(text) < MIN_HAN_WITHOUT_KANA and not _KANA.search(text):
        return None
    if probability >= MIN_PROBABILITY:
        return language
    if likely and likely not in near and known(likely):
        language, probability = identify(text, (code, likely))
        return likely if language == likely and probability >= MIN_PROBABILITY_OF_TWO else None
    return None


def _neighbour(text: str, code: str, near: set[str]) -> str | None:
    """The language near to `code` that a text is in by its letters: Russian has ы, Ukrainian і."""
    if text.isascii() or code not in _TOLD_BY_LETTERS:
        return None
    lower, own = text.lower(), set(LETTERS[code])
    for other in sorted(near & _TOLD_BY_LETTERS - {code}):
        letters = set(LETTERS[other])
        of_other = sum(letter in letters and letter not in own for letter in lower)
        if of_other >= MIN_OWN_LETTERS and not own.difference(letters).intersection(lower):
            return other
    return None


_KANA = re.compile("[\u3041-\u30fa]")


def _near(language: str) -> set[str]:
    return next((group for group in _NEAR if language in group), {language})


def _label(code: str) -> str:
    """The identifier's code for a language."""
    language = language_of(code)
    return _labels().get(language, language)


def _known() -> frozenset[str]:
    return frozenset(_labels().values())


@functools.cache
def _labels() -> dict[str, str]:
    """The identifier's code for each of its languages."""
    return {
        language_of(label): label
        for label in sorted(_identifier(()).labels, key=lambda label: label == language_of(label))
    }


@functools.cache
def _identifier(languages: tuple[str, ...]) -> Any:
    with writing(tempfile.gettempdir(), "free space there, or name another folder in TMPDIR"):  # it is unpacked there
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    if languages:
        identifier.set_languages(list(languages))
    return identifier
