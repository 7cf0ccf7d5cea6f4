"""The plural forms of languages, by CLDR."""

import functools
from typing import NamedTuple

from babel.messages.plurals import get_plural

from dragoman.languages.cldr import FORMS, babel_locale

_COUNTS = range(1001)
"""Counts that the forms are looked up for."""


class Plurals(NamedTuple):
    """The forms that a language has for numbers: `one`, `few`, `other` ..., and gettext's rule for them."""

    forms: tuple[str, ...]
    """All that CLDR has, of fractions (Czech `many`) and of millions (French `many`) too: programs ask for each."""
    rule: str
    counted_as_one: tuple[int, ...] = (1,)
    """The counts to 1,000 that have the form `one`: 0 too in French, 21 too in Russian."""

    @property
    def one_is_1(self) -> bool:
        """False where `one` is the form of other counts, too."""
        return self.counted_as_one in ((), (1,))


@functools.cache
def plurals_of(code: str) -> Plurals | None:
    """The plural forms of a language; None for one that CLDR does not know.

    >>> plurals_of("pl").forms, plurals_of("ja").forms, plurals_of("fr").forms
    (('one', 'few', 'many', 'other'), ('other',), ('one', 'many', 'other'))
    >>> plurals_of("ru").counted_as_one[:3], plurals_of("hi").counted_as_one, plurals_of("de").one_is_1
    ((1, 21, 31), (0, 1), True)
    >>> plurals_of("de_AT").rule, plurals_of("xx")
    ('nplurals=2; plural=(n != 1);', None)
    """
    locale = babel_locale(code)
    if locale is None:
        return None
    names = {*locale.plural_form.tags, "other"}
    of_one = tuple(count for count in _COUNTS if locale.plural_form(count) == "one")
    return Plurals(tuple(form for form in FORMS if form in names), str(get_plural(locale)), of_one)
