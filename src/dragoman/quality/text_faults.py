"""Damage inside a line of text, and its repair."""

import contextlib
import re
import unicodedata

from dragoman.languages.invisible import FORMATTING, ZERO_WIDTH_SPACE
from dragoman.quality.misread import Misread
from dragoman.quality.text_forms import forms_of
from dragoman.text.placeholders import ENTITY, unescaped
from dragoman.text.words import is_letter

_SEPARATORS = "\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE = FORMATTING.removesuffix("\ufeff")  # not the joiners: scripts need those
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010fffd"
_CONTROL = "\x01-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"

_PATTERNS = {
    "NUL": re.compile("\0"),
    "line separator inside": re.compile(f"[{_SEPARATORS}]"),
    "control character": re.compile(f"[{_CONTROL}]"),
    "byte order mark inside": re.compile("\ufeff"),
    "invisible character": re.compile(f"[{_INVISIBLE}]|{ZERO_WIDTH_SPACE}"),
    "private use character": re.compile(f"[{_PRIVATE}]"),
    "replacement character": re.compile("\ufffd"),
}
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>]{0,200}|/)?>|<!--.*?-->")  # <https://x.org> is none
_TAGS = re.compile(f"(?:{_TAG.pattern})+")
_INSIDE_WORDS = re.compile(r"(?:</?(?:b|big|em|font|i|mark|s|small|span|strong|sub|sup|u)(?:\s[^<>]{0,200})?>)+", re.I)
"""Tags that may stand in the middle of a word; others separate words."""
_SUSPECT = re.compile(
    f"[\0{_SEPARATORS}{_CONTROL}\ufeff{_INVISIBLE}\u200b{_PRIVATE}\ufffd\xc2-\xf4]|{_TAG.pattern}|{ENTITY.pattern}"
)
"""One fast search that most lines pass."""


def wrong_with(text: str, misread: Misread | None = None) -> list[str]:
    """The kinds of findings (`findings.KINDS`) in the characters of a line; `misread` knows its language.

    >>> wrong_with("Tom &amp; Jerry"), wrong_with("schÃ¶n"), wrong_with("schön")
    (['HTML'], ['mojibake'], [])
    """
    if misread and misread.is_misread(text):  # what else it seems to have comes of that
        return ["mojibake", *wrong_with(misread.repaired(text))]
    kinds = forms_of(text)
    if text.isascii() and text.isprintable() and "<" not in text and "&" not in text:
        return kinds
    if _SUSPECT.search(text):
        kinds += [kind for kind, pattern in _PATTERNS.items() if pattern.search(text)]
        if _TAG.search(text) or unescaped(text) != text:
            kinds.append("HTML")
        if decoded_twice(text) != text:
            kinds.append("mojibake")
    if not unicodedata.is_normalized("NFC", text):
        kinds.append("not normalised")
    return kinds


def repaired(text: str, misread: Misread | None = None) -> str:
    """The line with all damage repaired that can be repaired safely; `misread` knows its language.

    >>> repaired("Tom &amp; <b>Jerry</b>\\u2028schÃ¶n"), repaired("one<br/>two &lt;i&gt;three&lt;/i&gt;")
    ('Tom & Jerry schön', 'one two three')
    """
    text = misread.repaired(text) if misread else text
    while wrong_with(text) and (better := _repaired_once(text)) != text:  # an entity may stand for half of a tag
        text = better
    return text


def _repaired_once(text: str) -> str:
    text = _TAGS.sub(_without_tags, unescaped(decoded_twice(text)))
    text = _PATTERNS["line separator inside"].sub(" ", text.replace("\n", " "))  # an entity may stand for a line end
    for kind in ("control character", "byte order mark inside", "invisible character"):
        text = _PATTERNS[kind].sub("", text)
    return unicodedata.normalize("NFC", text).strip()


def _without_tags(tags: re.Match[str]) -> str:
    neighbours = tags.string[: tags.start()][-1:] + tags.string[tags.end() :][:1]
    parts_words = len(neighbours) == 2 and all(map(is_letter, neighbours)) and not _INSIDE_WORDS.fullmatch(tags[0])
    return " " if parts_words else ""


# -- UTF-8 that was read as another encoding and encoded again ---------------------------------------------------------

_BYTES = {chr(code): code for code in range(0x80, 0x100)}
for _code in range(0x80, 0xA0):
    with contextlib.suppress(UnicodeDecodeError):  # five codes that Windows-1252 does not use stand for themselves
        _BYTES[bytes([_code]).decode("cp1252")] = _code
_RUN = re.compile(f"[{re.escape(''.join(_BYTES))}]{{2,}}")
_SURE = re.compile("Ã[\x80-\xff‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|Â[\xa0-\xbf]|â€|ï»¿|[\x80-\x9f]")


def decoded_twice(text: str) -> str:
    """The text with runs of characters that are UTF-8 read as another encoding decoded.

    One such pair may stand in undamaged text (`CAFÉ»`): a run is decoded only if it begins as most European letters do,
    has two pairs or more, or stands inside of a word.
    """
    return _RUN.sub(_decoded_run, text)


def _decoded_run(match: re.Match[str]) -> str:
    run = match[0]
    try:
        decoded = bytes(_BYTES[char] for char in run).decode("utf-8")
    except UnicodeDecodeError:
        return run
    inside = match.string[match.end() : match.end() + 1].islower()
    return decoded if _SURE.search(run) or len(decoded) >= 2 or inside else run
