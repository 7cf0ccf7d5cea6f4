"""The language of a text, told by py3langid: naive Bayes over byte n-grams of 97 languages (Lui and Baldwin 2012)."""

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dragoman.languages.codes import language_of

SURE, SURE_OF_TWO = 0.9, 0.99
"""Probability from which a text counts as one of all languages, or as one of two."""
FEWEST_LETTERS = 12
"""In shorter texts nothing is sure; a letter of a script without spaces counts for three."""

NO_LANGUAGE = "zxx"
"""The identifier's code for formulas, numbers and the like."""
COMMON, FEWEST_SURE = 500, 10
"""Texts that are looked at for their common language, and those of them that have to be sure."""

_LETTER = re.compile(r"[^\W\d_]")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")
_NEAR = [
    {"zh", "yue", "wuu", "cmn"}, {"no", "nb", "nn", "da"}, {"hr", "sr", "bs", "sh"}, {"id", "ms", "jv"}, {"cs", "sk"},
    {"es", "gl", "an"}, {"fr", "oc", "wa"}, {"de", "lb", "nds"}, {"nl", "af"}, {"ru", "uk", "be"}, {"bg", "mk"},
    {"tr", "az"}, {"en", "pcm"},
]  # fmt: skip
"""Languages that one line does not tell apart."""


def identify(text: str, among: tuple[str, ...] = ()) -> tuple[str, float]:
    """The language of a text and its probability, of all languages or `among` some that are known.

    >>> identify("Ein Mann schläft in einem grünen Raum auf einem Sofa.")[0]
    'de'
    """
    language, probability = _identifier(among).classify(text)
    return str(language), float(probability)


def likely_languages(text: str, among: Sequence[str]) -> list[tuple[str, float]]:
    """Languages of a few that a text may be in, with their probabilities, best first. A text without letters may be in
    all of them alike; so may one whose languages are not known here.

    The text is asked for with spaces around it: its first and last word end there, which tells the language of a few
    words better (docs/log.md).
    """
    by_language = {language_of(code): code for code in among}
    known_ones = tuple(sorted(code for code in by_language if known(code)))
    if len(known_ones) < 2 or not any(letter.isalpha() for letter in text):
        return [(code, 1.0 if len(among) == 1 and text.strip() else 0.0) for code in among]
    shares = {str(code): float(share) for code, share in _identifier(known_ones).rank(f" {text} ")}
    ranked = sorted(((by_language[code], share) for code, share in shares.items()), key=lambda item: -item[1])
    return ranked + [(code, 0.0) for code in among if language_of(code) not in known_ones]


def known(code: str) -> bool:
    """True if a language can be told from others."""
    return bool(code) and language_of(code) in _known()


def is_long_enough(text: str) -> bool:
    """True if a text has so many letters that its language can be told."""
    return len(_LETTER.findall(text)) + 2 * len(_DENSE.findall(text)) >= FEWEST_LETTERS


def common_language(texts: Sequence[str]) -> str:
    """The language that most of some texts are surely in; "" where that cannot be said."""
    told = [identify(text) for text in texts[:COMMON] if is_long_enough(text)]
    sure = Counter(language for language, probability in told if probability >= SURE)
    language, count = sure.most_common(1)[0] if sure else ("", 0)
    return language if count >= FEWEST_SURE and count > 0.7 * sure.total() else ""


def other_language(text: str, code: str, likely: str = "") -> str | None:
    """The language of a text that is surely not of language `code`; None for one that is, or may be.

    `likely`: a language that a mistake would be in, the other one of a pair.

    >>> other_language("The man is walking down the street.", "de", "en")
    'en'
    """
    code, likely = language_of(code), language_of(likely)
    if not is_long_enough(text) or not known(code):
        return None
    near = next((group for group in _NEAR if code in group), {code})
    language, probability = identify(text)
    if language in near or language == NO_LANGUAGE:
        return None
    if probability >= SURE:
        return language
    if likely and likely not in near and known(likely):
        language, probability = identify(text, (code, likely))
        return likely if language == likely and probability >= SURE_OF_TWO else None
    return None


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(_identifier(()).labels)


@functools.cache
def _identifier(languages: tuple[str, ...]) -> Any:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    if languages:
        identifier.set_languages(list(languages))
    return identifier
