"""The text that a reader sees: without characters that nobody sees, letters in their usual width and as one character.

Marks of direction, soft hyphens and zero-width spaces and joiners come from web pages and word processors. A zero-width
space parts the words of Thai, Lao, Khmer, Burmese and their neighbours, and joiners are part of what many scripts and
emoji look like: there they stay.
"""

import re
import unicodedata

FORMATTING = "\xad\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
"""Characters that no script needs, for a class of a pattern: soft hyphens, marks of direction, marks of byte order."""
_PARTED_BY_THEM = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\u1b00-\u1bff\ua980-\ua9ff\uaa00-\uaadf"
"""Characters of scripts whose words a zero-width space parts."""
_JOINED = "[^\0-\u058f\u1e00-\u200b\u200e-\u206f\u2c60-\u2c7f\ua720-\ua7ff]"
"""Characters of scripts other than Latin, Greek, Cyrillic and Armenian, which may need joiners."""
ZERO_WIDTH_SPACE = f"(?<![{_PARTED_BY_THEM}\u200b])\u200b+(?![{_PARTED_BY_THEM}\u200b])"
"""A pattern of zero-width spaces between letters that these do not part."""
_INVISIBLE = re.compile(f"[{FORMATTING}]+|{ZERO_WIDTH_SPACE}|(?<!{_JOINED})[\u200c\u200d]+(?!{_JOINED})")
_NOT_SEEN = re.compile(f"[{FORMATTING}\u200b-\u200d]")

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_WIDE_LETTERS = {code: plain for code, plain in _WIDE.items() if chr(plain).isalnum()}
_OF_OTHER_WIDTH = re.compile("[\uff01-\uff5e\uff61-\uffdc]")
_NARROW = re.compile("[\uff61-\uffdc]+")
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


_SPACES = re.compile("[^\\S\xa0\u2000-\u200a\u202f\u205f\u3000]+")


def in_one_line(text: str) -> str:
    """The text with one space for each run of white space, none at its ends. Spaces of typography stay as they are:
    those that hold words together, of a width, and the wide one of Chinese and Japanese.

    >>> in_one_line(" Qui \\n est\\xa0?  Moi. ")
    'Qui est\\xa0? Moi.'
    """
    return _SPACES.sub(" ", text).strip()


def visible(text: str) -> str:
    """The text without characters that nobody sees.

    >>> visible("Wasch\\xadmaschine\\u200b"), visible("می\\u200cخواهم") == "می\\u200cخواهم"
    ('Waschmaschine', True)
    """
    if not _NOT_SEEN.search(text):
        return text
    while (seen := _INVISIBLE.sub("", text)) != text:  # what was beside a mark has other neighbours without it
        text = seen
    return text


def in_usual_width(text: str) -> str:
    """The text with half-width kana and Hangul in full width, and full-width Latin letters and digits in half width;
    full-width marks too, but for Chinese, Japanese and Korean, which are written with them.

    >>> in_usual_width("ＰＤＦ（ﾃﾞｰﾀ）"), in_usual_width("Ｎａｍｅ！")
    ('PDF（データ）', 'Name!')
    """
    if not _OF_OTHER_WIDTH.search(text):
        return text
    text = _NARROW.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    return text.translate(_WIDE_LETTERS if _EAST_ASIAN.search(text) else _WIDE)


def as_seen(text: str) -> str:
    """The text as a reader sees it: all who see the same have the same text.

    >>> as_seen("\\u200eＣａｆｅ\\u0301\\u200f")
    'Café'
    """
    return unicodedata.normalize("NFC", in_usual_width(visible(text)))
