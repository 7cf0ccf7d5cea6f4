"""Plural forms that a file has one by one, by name: `one`, `other`, and the forms of the target language."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from dragoman.formats.base import Item, Unit, plain
from dragoman.languages.plurals import plurals_of

_BLANKS_SEEN = 200
"""Characters in which the line break and the blanks before a form are looked for."""


class Form(NamedTuple):
    """A form of a text, with its name, from `start` to `end` of a file."""

    name: str
    name_at: int
    start: int
    end: int
    unit: Unit | None
    """The unit of the form; None if it has nothing to translate."""


def forms_in(text: str, forms: Sequence[Form], language: str, between: str, zero_is_0: bool = False) -> Iterator[Unit]:
    """The units of forms, and of those that the target language has beside them, each made of the one for other
    numbers.

    A form for one thing that does not say the number (`a file`) is made of it, too, where a language has that form for
    other counts as well: 21 things in Russian. Where it is 0 alone, as in French, `zero` is made in its place if
    programs read it for 0 in every language (`zero_is_0`). `between`: what stands between two forms.
    """
    plurals = plurals_of(language)
    like = next((form for form in forms if form.name == "other"), forms[-1])
    names = [*plurals.forms] if plurals else []
    for form in forms:
        if form.unit is None:
            continue
        is_shared = form.name == "one" and not form.unit.kept and plurals is not None and not plurals.one_is_1
        is_shared = is_shared and like.unit is not None and _is_unsaid(form.unit, like.unit)
        if is_shared and zero_is_0 and plurals is not None and plurals.counted_as_one == (0, 1):
            names.insert(0, "zero")
            is_shared = False
        if is_shared and like.unit is not None:
            yield replace(like.unit, start=form.unit.start, end=form.unit.end, where=form.unit.where, bilingual=True)
        else:
            yield form.unit
    if like.unit is None or like.unit.kept or not like.name:
        return
    unit, end = like.unit, max(form.end for form in forms)
    before = between + text[like.start : like.name_at]
    behind = text[like.name_at + len(like.name) : unit.start], text[unit.end : like.end]
    there = {form.name for form in forms}
    for name in names:
        if name not in there:
            render = partial(_around, before + name + behind[0], behind[1], unit)
            where = name.join(unit.where.rsplit(like.name, 1))
            yield replace(unit, start=end, end=end, render=render, where=where, bilingual=True)


def blanks_before(text: str, at: int) -> str:
    """The line break and the blanks before a place."""
    blanks = re.search(r"\s*$", text[max(0, at - _BLANKS_SEEN) : at])
    return blanks[0] if blanks else ""


def _around(before: str, after: str, unit: Unit, items: Sequence[Item]) -> str:
    return before + unit.render(items) + after


def _is_unsaid(one: Unit, other: Unit) -> bool:
    return not says_number(plain(one.items), plain(other.items))


def says_number(singular: str, plural: str) -> bool:
    """True if the text for one thing has as many placeholders as the text for several: it has the number, too.

    >>> says_number("%d file", "%d files"), says_number("a file", "%d files"), says_number("a file", "files")
    (True, False, True)
    """
    return len(re.findall("[%{]", singular)) >= len(re.findall("[%{]", plural))
