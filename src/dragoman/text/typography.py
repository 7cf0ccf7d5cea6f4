"""Spaces that hold punctuation, and quotation marks, as French, German and Russian have them.

One character takes the place of one: what a model wrote stays where it is. Placeholders, tags and addresses stay as
they are.
"""

import re

from dragoman.languages.codes import language_of, parsed
from dragoman.text.placeholders import span_ranges

_NARROW, _WIDE = "\u202f", "\xa0"
_FRENCH = ((re.compile(" (?=[;!?](?![\\w=]))"), _NARROW), (re.compile(" (?=[:»](?!\\w))|(?<=«) "), _WIDE))
"""Of France; in Canada a no-break space stands by guillemets and colons alone."""
_SPACES: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "fr": _FRENCH,
    "de": ((re.compile(r"(?<=\b[zuSdo]\.) (?=[BaÄäUhi]\.)|(?<=\d) (?=[%€°])"), _NARROW),),
    "ru": ((re.compile(" (?=[—–] )"), _WIDE), (re.compile(r"(?<=№) |(?<=\d) (?=[%₽€])"), _WIDE)),
}
_QUOTES = {"de": "„“", "ru": "«»", "uk": "«»", "be": "«»", "bg": "„“", "pl": "„”", "cs": "„“", "sk": "„“", "sl": "„“"}
_QUOTED = re.compile(r'(?<!\w)"(?=\S)([^"]*)(?<=\S)"(?!\w)')


def typeset(text: str, language: str) -> str:
    """The text with the spaces and quotation marks of its language; as it is where these are not known here.

    >>> typeset("Qui ? « Moi » !", "fr") == "Qui\\u202f? «\\xa0Moi\\xa0»\\u202f!", typeset('Das "Haus"', "de")
    (True, 'Das „Haus“')
    """
    code = language_of(language)
    rules = _SPACES.get(code, ())
    if code == "fr" and parsed(language).region == "CA":
        rules = _FRENCH[1:]
    made = text
    for pattern, space in rules:
        made = pattern.sub(space, made)
    if code in _QUOTES:
        first, last = tuple(_QUOTES[code])
        made = _QUOTED.sub(lambda quoted: f"{first}{quoted[1]}{last}", made)
    for start, end in span_ranges(text) if made != text else ():
        made = made[:start] + text[start:end] + made[end:]
    return made
