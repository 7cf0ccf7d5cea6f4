"""English as both embedded grammars write it: verb forms, articles, numbers, do-support, the order of a clause.

Persons count 0 to 5: I, you, he or she, we, you (many), they.
"""

import functools
from typing import NamedTuple

from .grammar import join

SUBJECTS = ("I", "you", "he", "we", "you", "they")
OBJECTS = ("me", "you", "him", "us", "you", "them")

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


class Verb(NamedTuple):
    """The forms of a verb; the particle of `pick up` stands after a pronoun (`pick him up`)."""

    base: str
    third: str
    past: str
    participle: str
    particle: str = ""

    @property
    def name(self) -> str:
        return join(self.base, self.particle)


BE = Verb("be", "is", "was", "been")

_BE_FORMS = {
    "present": ("am", "are", "is", "are", "are", "are"),
    "past": ("was", "were", "was", "were", "were", "were"),
}
_DO_FORMS = {"present": ("do", "do", "does", "do", "do", "do"), "past": ("did",) * 6}
_AUXILIARIES = {
    "perfect": ("have", "have", "has", "have", "have", "have"),
    "pluperfect": ("had",) * 6,
    **{modal: (modal,) * 6 for modal in ("will", "can", "could", "should", "may")},
}
_BEFORE_INFINITIVE = {
    "have to": ("have to", "has to", "had to", "had to"),
    "want to": ("want to", "wants to", "wanted to", "wanted to"),
    "like to": ("like to", "likes to", "liked to", "liked to"),
}


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z", "o")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def _with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if word.endswith("y") and word[-2] not in "aeiou" else word + "ed"


def verb(spec: str) -> Verb:
    """A verb from `work`, `write wrote written`, `pick|up` (a particle) or `look+for` (a preposition that stays).

    >>> verb("get|up got gotten").past, verb("look+for").third
    ('got', 'looks for')
    """
    first, *irregular = spec.split()
    first, _, particle = first.partition("|")
    base, _, preposition = first.partition("+")
    past, participle = irregular if irregular else (_with_ed(base), _with_ed(base))
    third = "has" if base == "have" else _with_s(base)
    forms = [join(form, preposition) for form in (base, third, past, participle)]
    return Verb(forms[0], forms[1], forms[2], forms[3], particle)


@functools.cache
def before_infinitive(phrase: str, inner: Verb) -> Verb:
    """`have to`, `want to` or `like to` with an infinitive, as one verb: `has to read`, `does not have to read`."""
    base, third, past, participle = (f"{form} {inner.base}" for form in _BEFORE_INFINITIVE[phrase])
    return Verb(base, third, past, participle, inner.particle)


def plural(noun: str) -> str:
    return _with_s(noun) if not noun.endswith("o") or noun in ("tomato", "potato") else noun + "s"


def with_article(phrase: str) -> str:
    """`a` or `an` before the phrase; by its first letter, which suffices for this vocabulary."""
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def number(value: int) -> str:
    """A number below 100 in words."""
    if value < len(_ONES):
        return _ONES[value]
    tens, ones = divmod(value, 10)
    return f"{_TENS[tens]}-{_ONES[ones]}" if ones else _TENS[tens]


def _verb_group(verb: Verb, tense: str, person: int, support: bool) -> tuple[str, str]:
    """(auxiliary, main verb); with `support`, a verb that has no auxiliary takes a form of `do`."""
    if verb is BE and tense in _BE_FORMS:
        return _BE_FORMS[tense][person], ""
    if tense in _AUXILIARIES:
        return _AUXILIARIES[tense][person], verb.participle if tense in ("perfect", "pluperfect") else verb.base
    if support:
        return _DO_FORMS[tense][person], verb.base
    if tense == "past":
        return "", verb.past
    return "", verb.third if person == 2 else verb.base


def statement(
    subject: str,
    person: int,
    verb: Verb,
    tense: str,
    *,
    rest: str,
    pronoun: str = "",
    adverb: str = "",
    negative: bool = False,
) -> str:
    """`The man does not often pick him up today`, without capital and period."""
    auxiliary, main = _verb_group(verb, tense, person, negative)
    if negative:
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    return join(subject, auxiliary, adverb, main, pronoun, verb.particle, rest)


def question(
    subject: str,
    person: int,
    verb: Verb,
    tense: str,
    *,
    rest: str,
    wh: str = "",
    pronoun: str = "",
    adverb: str = "",
    negative: bool = False,
) -> str:
    """`why does the man not pick him up today`, without capital and question mark."""
    auxiliary, main = _verb_group(verb, tense, person, True)
    return join(wh, auxiliary, subject, "not" if negative else "", adverb, main, pronoun, verb.particle, rest)


def infinitive(verb: Verb, rest: str, pronoun: str = "") -> str:
    return join("to", verb.base, pronoun, verb.particle, rest)
