"""Words that say no, by language."""

import functools
import re

from dragoman.languages.codes import facts, language_of


@functools.cache
def _pattern(code: str) -> re.Pattern[str] | None:
    """The pattern of the words of a language; None where they are not known. Chinese and Japanese: signs anywhere."""
    words = facts("negation").get(code)
    if words is None:
        return None
    if code in ("zh", "ja"):
        return re.compile("|".join(map(re.escape, words.split())))
    parts = []
    for word in words.split():
        stem = re.escape(word.rstrip("*"))
        if word == "n't":
            parts.append(r"(?<=\w)n['’]t\b")
        elif word == "n'":
            parts.append(r"\bn['’](?=\w)")
        else:
            parts.append(rf"\b{stem}" + ("" if word.endswith("*") else r"\b"))
    return re.compile("|".join(parts), re.IGNORECASE)


def negations(text: str, code: str) -> int:
    """The number of words that say no; 0 in a language whose words are not known here.

    >>> negations("It isn't here, and never was.", "en"), negations("Er hat keine Zeit.", "de")
    (2, 1)
    """
    pattern = _pattern(language_of(code))
    return len(pattern.findall(text)) if pattern else 0
