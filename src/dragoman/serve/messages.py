"""Texts of the pages that the server writes itself, in the language of whoever reads them.

They stand in the page's own files of messages (`page/messages`), by their English text.
"""

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from babel import Locale
from babel.numbers import format_decimal
from starlette.requests import Request

from dragoman.languages.codes import direction_of, language_of, names_of, script_of

FOLDER = Path(__file__).with_name("page")
LOCALES = ("en", "de", "fr", "es", "zh", "ar")
"""Languages of the page; the first is for who reads none of them."""
_QUALITY = re.compile(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*")


@functools.cache
def _catalogue(locale: str) -> dict[str, str]:
    texts: dict[str, str] = json.loads((FOLDER / "messages" / f"{locale}.json").read_text("utf-8"))
    return texts


@functools.cache
def words() -> dict[str, dict[str, str]]:
    """English texts for codes, which the page's scripts have, too: `remarks` by kind, `refusals` by status."""
    texts: dict[str, dict[str, str]] = json.loads((FOLDER / "words.json").read_text("utf-8"))
    return texts


class Messages:
    """The texts in a language of LOCALES.

    >>> t = Messages("de")
    >>> t("API key"), t("The server answers {status}.", status=418), t.number(5000), t.names(["fr"])
    ('API-Schlüssel', 'Der Server antwortet 418.', '5.000', {'fr': 'Französisch'})
    """

    def __init__(self, locale: str) -> None:
        self.locale, self.direction = locale, direction_of(locale)

    def __call__(self, text: str, **values: Any) -> str:
        return self.known(text, **values)

    def known(self, text: str, **values: Any) -> str:
        """A text from outside of this program; without a translation it stays as it is."""
        message = _catalogue(self.locale).get(text, text)
        return re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), message)

    def number(self, number: int) -> str:
        return format_decimal(number, locale=self.locale)

    def names(self, codes: Iterable[str]) -> dict[str, str]:
        """The names of languages that stand beside each other, by their codes."""
        return names_of(codes, self.locale)

    def pair(self, src: str, tgt: str) -> str:
        """The names of two languages, from one to the other as this language is read."""
        arrow = "←" if self.direction == "rtl" else "→"
        return f" {arrow} ".join(self.names([src, tgt])[code] for code in (src, tgt))


def messages_for(request: Request) -> Messages:
    """The texts in the language that a request names (`lang`), or that its browser prefers of those there are."""
    languages = [request.query_params.get("lang", ""), *preferred(request.headers.get("accept-language", ""))]
    return Messages(next((code for code in map(language_of, languages) if code in LOCALES), LOCALES[0]))


def preferred(header: str) -> list[str]:
    """The languages of an `Accept-Language`, the most wanted first.

    >>> preferred("de-AT, fr;q=0.2, es ; q=0.9,ar;q=0,*;q=0.1"), preferred("zh;q=high,en")
    (['de-AT', 'es', 'fr', '*'], ['en'])
    """
    weighted_tags = []
    for part in header.split(","):
        tag, has_quality, rest = part.partition(";")
        quality = _QUALITY.fullmatch(rest) if has_quality else None
        weighted_tags.append((float(quality[1]) if quality else float(not has_quality), tag.strip()))
    return [tag for quality, tag in sorted(weighted_tags, key=lambda one: -one[0]) if quality]


def own_name(locale: str) -> str:
    """The name that a language has in itself."""
    return str(Locale(locale).get_language_name(locale))


def locales() -> list[dict[str, str]]:
    """The languages of the page: codes, own names, and how each is written."""
    return [
        {"code": one, "name": own_name(one), "script": script_of(one), "direction": direction_of(one)}
        for one in LOCALES
    ]
