"""Forms of a word: the lemma that a dictionary has it under, and whether two words are forms of one.

Lemmas are those of simplemma (the extra `lemmas`) in the languages that it knows; in others a word is its own lemma.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dragoman.languages.codes import language_of, written_without_spaces
from dragoman.text.case import capitalized
from dragoman.text.lookup import lookup_form
from dragoman.text.words import Word, is_of_letters, words

ENDING = 3
"""Letters at the ends of two forms of a word that differ, at most, where only their spelling is known."""
STEM = 4
"""Letters that two such forms share, at least; three where one has nothing but an ending more."""
_OTHER_CODES = {"bs": "hbs", "hr": "hbs", "sr": "hbs", "no": "nb"}
"""Codes of simplemma that are not those of ISO 639-1."""


@dataclass(frozen=True)
class Inflection:
    """The forms of the words of a language, told by its code.

    >>> Inflection("xx").are_forms("Tabellenblatt", "Tabellenblätter"), Inflection("xx").are_forms("Blatt", "Blume")
    (True, False)
    """

    language: str

    @property
    def has_lemmas(self) -> bool:
        """True where a lemmatiser knows the language."""
        return _lemmatizer(self.language) is not None

    def lemma(self, word: str) -> str:
        """The lemma of a word, with a capital where the word has one; the word itself where its lemma is not known, or
        hardly like it: such a lemma is too often another word's (`saw`, see)."""
        lemmatize = _lemmatizer(self.language)
        if lemmatize is None or not is_of_letters(word) or word[1:] != word[1:].lower():
            return word
        lemma = lemmatize(word)
        shared, ending, other = _shared(word, lemma)
        if not is_of_letters(lemma) or 2 * shared <= shared + min(ending, other):
            return word
        return capitalized(lemma, self.language) if word[0].isupper() else lemma

    def lemmas(self, phrase: str) -> list[tuple[Word, str]]:
        """The words and marks of a phrase, and the lemma of each, as it is looked up."""
        return [(word, lookup_form(self.lemma(phrase[slice(*word)]), cased=False)) for word in words(phrase)]

    def are_forms(self, one: str, other: str) -> bool:
        """True if two words have one lemma, or are alike but for their endings."""
        shared, *endings = _shared(one, other)
        if not shared:  # a lemma that is taken begins as its word does
            return one == other
        is_stem = max(endings) <= ENDING and shared >= STEM - (min(endings) == 0)
        if is_stem and is_of_letters(one) and is_of_letters(other):
            return True
        return lookup_form(self.lemma(one), cased=False) == lookup_form(self.lemma(other), cased=False)

    def places(self, phrase: str, text: str) -> Iterator[Word]:
        """The places where the words of a phrase stand in a text, each in any of its forms; none in a language that
        has no spaces between words.

        >>> [place[:] for place in Inflection("xx").places("open file", "Two opened files, an open file")]
        [(4, 16), (21, 30)]
        """
        if written_without_spaces(self.language):
            return
        wanted, of_text = ([one[slice(*word)] for word in words(one)] for one in (phrase, text))
        spans = words(text)
        for first in range(len(spans) - len(wanted) + 1 if wanted else 0):
            last = first + len(wanted) - 1
            if all(self.are_forms(*pair) for pair in zip(wanted, of_text[first : last + 1], strict=True)):
                yield Word(spans[first].start, spans[last].end)


def _shared(one: str, other: str) -> tuple[int, int, int]:
    """(letters that two words begin with, letters behind them in each), whatever their case and accents."""
    forms = [_bare(word) for word in (one, other)]
    count = next((n for n, pair in enumerate(zip(*forms, strict=False)) if pair[0] != pair[1]), min(map(len, forms)))
    return count, len(forms[0]) - count, len(forms[1]) - count


@functools.lru_cache(10_000)
def _bare(word: str) -> str:
    letters = unicodedata.normalize("NFD", lookup_form(word, cased=False))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@functools.cache
def _lemmatizer(language: str) -> Callable[[str], str] | None:
    """The lemma of a word by simplemma; None where that is not installed, or does not know the language."""
    try:
        from simplemma import lemmatize
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
    except ImportError:
        return None
    code = language_of(language)
    code = _OTHER_CODES.get(code, code)
    return functools.partial(lemmatize, lang=code) if code in SUPPORTED_LANGUAGES else None
