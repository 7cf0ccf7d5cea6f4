"""The plural forms of languages, by CLDR."""

import functools
from typing import NamedTuple

from babel.messages.plurals import get_plural

from dragoman.languages.cldr import FORMS, babel_locale

_COUNTS = range(1001)
"""Counts that are asked for their form: what only millions have, or fractions, no message needs."""


class Plurals(NamedTuple):
    """The forms that a language has for counts: `one`, `few`, `other` ..., and gettext's rule for them."""

    forms: tuple[str, ...]
    rule: str
    one_is_1: bool = True
    """False where `one` is the form of 21 things, too."""


@functools.cache
def plurals_of(code: str) -> Plurals | None:
    """The plural forms of a language; None for one that CLDR does not know.

    >>> plurals_of("pl").forms, plurals_of("ja").forms
    (('one', 'few', 'many'), ('other',))
    >>> plurals_of("ru").one_is_1, plurals_of("fr").one_is_1
    (False, True)
    >>> plurals_of("de_AT").rule, plurals_of("xx")
    ('nplurals=2; plural=(n != 1);', None)
    """
    locale = babel_locale(code)
    if locale is None:
        return None
    of_counts = [locale.plural_form(count) for count in _COUNTS]
    forms = tuple(form for form in FORMS if form in of_counts)
    return Plurals(forms, str(get_plural(locale)), "one" not in of_counts[2:])
