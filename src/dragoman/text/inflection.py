"""Forms of a word: the lemma that a dictionary has it under, and whether two words are forms of the same word.

Lemmas come from simplemma (the extra `lemmas`) in the languages that it knows. In others a word is its own lemma.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dragoman.languages.codes import language_of, written_without_spaces
from dragoman.text.case import capitalized
from dragoman.text.lookup import lookup_form
from dragoman.text.words import Word, is_of_letters, words

MAX_ENDING_LETTERS = 3
"""Letters at the ends of two forms of a word that differ, at most, where only their spelling is known."""
MIN_STEM_LETTERS = 4
"""Letters that two such forms share, at least; three where one has nothing but an ending more."""
ENDINGS = {
    "de": "d e em en er es n s st t tet",
    "fr": "a ai ais ait ant as at e ent er es ez iez nt ons ont r s z",
    "en": "d e ed es ies ing s y",
    "es": "a ais an ar as ba ban bas d das dos e eis en es ia ian ias is mos n ndo o on r s se sen ses ste",
    "it": "a are e era ere ero i in mmo n ndo no nte nti o on ono re sse ssi ste sti ta te ti to va van vi vo",
    "pt": "a am amo ao ar as de des do e ei eis em emo es i ia iam ias is m mo mos ndo o ou r s sse ste va vam vas",
    "nl": "al ar at d de den e en er ere ert f gen id je jes ken le len men n nen pen re ren s sen st ste t te ten "
    "tje ven zen",
    "sv": "a ar are ars as ast d e en ens er ers es et ets n na nas ns ors s t ts",
}
"""Endings of a form and of its lemma behind the letters that they share, of up to three letters without accents:
those of 95 % of simplemma's forms (benchmarks/log/2026-11.md, "a company's files with their codes, terms that codes
part")."""
_OTHER_CODES = {"bs": "hbs", "hr": "hbs", "sr": "hbs", "no": "nb"}
"""Codes of simplemma that differ from ISO 639-1."""


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
        return _like(word, lemma, self.language)

    def lemmas(self, phrase: str) -> list[tuple[Word, str]]:
        """The words and marks of a phrase, and the lemma of each, as it is looked up."""
        return [(word, lookup_form(self.lemma(phrase[slice(*word)]), cased=False)) for word in words(phrase)]

    def are_forms(self, one: str, other: str) -> bool:
        """True if two words have one lemma, or are alike but for their endings, and no dictionary has them, or the
        ends that make compounds of them, as two words."""
        shared, *endings = _shared(one, other)
        if not shared:  # a lemma that is taken begins as its word does
            return one == other
        is_stem = max(endings) <= MAX_ENDING_LETTERS and shared >= MIN_STEM_LETTERS - (min(endings) == 0)
        if is_stem and is_of_letters(one) and is_of_letters(other):
            usual = ENDINGS.get(language_of(self.language), "").split()
            ends = {_bare(word)[shared:] for word in (one, other)} - {""}
            is_usual = not usual or all(end in usual or not end.isascii() for end in ends)
            if is_usual and not self._are_apart(one, other):
                return True
        return lookup_form(self.lemma(one), cased=False) == lookup_form(self.lemma(other), cased=False)

    def _are_apart(self, one: str, other: str) -> bool:
        """True for two words of a dictionary, and for compounds whose last parts are two: `Druck` and `Drucker`,
        `Testdruck` and `Testdrucker`. A form of another word is none: dictionaries have participles as both."""
        known, lemmatize = _known(self.language), _lemmatizer(self.language)
        if known is None or lemmatize is None or len(_bare(one)) != len(one) or len(_bare(other)) != len(other):
            return False
        for start in (0, *range(MIN_STEM_LETTERS - 1, _shared(one, other)[0] - MIN_STEM_LETTERS + 2)):
            parts = [_like(word, word[start:], self.language) for word in (one, other)]
            if all(map(known, parts)):
                return all(lemmatize(part).lower() == part.lower() for part in parts)
        return False

    def places(self, phrase: str, text: str) -> Iterator[Word]:
        """The places where the words of a phrase stand in a text, each in any of its forms; none in a language that
        has no spaces between words.

        >>> [place[:] for place in Inflection("xx").places("open file", "Two opened files, an open file")]
        [(4, 16), (21, 30)]
        """
        if written_without_spaces(self.language):
            return
        of_phrase, of_text = ([one[slice(*word)] for word in words(one)] for one in (phrase, text))
        spans = words(text)
        for first in range(len(spans) - len(of_phrase) + 1 if of_phrase else 0):
            last = first + len(of_phrase) - 1
            if all(self.are_forms(*pair) for pair in zip(of_phrase, of_text[first : last + 1], strict=True)):
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


def _like(word: str, part: str, language: str) -> str:
    """A part of a word, with a capital where the word has one."""
    return capitalized(part, language) if word[0].isupper() else part


def _known(language: str) -> Callable[[str], bool] | None:
    """The check whether simplemma's dictionary has a word; None as for `_lemmatizer`."""
    if _lemmatizer(language) is None:
        return None
    from simplemma import is_known

    code = language_of(language)
    return functools.partial(is_known, lang=_OTHER_CODES.get(code, code))


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
