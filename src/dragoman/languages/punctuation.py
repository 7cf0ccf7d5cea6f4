"""Marks at the end of sentences, and letters that have no capitals or no spaces between words, in every script."""

from dragoman.languages.codes import is_chinese, script_of

CLOSING = "\"'”’»›“‘)\\]}」』）】〉》＂"
"""Marks that may stand behind the end of a sentence, for a class of a pattern."""
WIDE = "。！？｡．"
"""Chinese and Japanese marks that may end a sentence."""
UNAMBIGUOUS_ENDS = "؝-؟۔܀-܂߹।॥။።፧፨༎།៓-៕៚᙮᠃᠉᱾᱿‼‽⁇-⁉⸮꓿꛳꛷꣎꣏꩝-꩟꯫﹒﹖﹗։"
"""Marks with no other use: Unicode's Sentence_Terminal, and Khmer and Tibetan ones. None of Armenian words."""
ENDS = ".!?…" + WIDE + UNAMBIGUOUS_ENDS
"""Marks that may end a sentence, for a class of a pattern."""
QUESTIONS = r"[?？؟⸮፧՞‽⁇⁈]+|(?<=[Ͱ-Ͽἀ-῿])[;\u037e]"
"""A pattern of a question's mark in any script."""
END = rf"(?:[{ENDS}]|{QUESTIONS}|(?<=[ሀ-ፚ])(?:፡፡|::)|၊၊)[{CLOSING}]*\s*$"
"""A pattern of the end of a text that ends with a sentence."""
CASELESS = "\u0590-\u109f\u1200-\u139f\u1780-\u18af\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff「『"
"""Letters of scripts without capitals, for a class of a pattern."""

UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\u3005-\u3007\u3040-\u30ff"
    "\u3400-\u9fff\ua980-\ua9ff\uaa60-\uaadf\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Characters of scripts that put no spaces between words, for a class of a pattern: Thai, Lao, Tibetan, Burmese, Khmer,
Tai, Balinese, Javanese, kana, Chinese."""
MARK = r"[\p{M}\u200c\u200d]"
CLUSTER = rf"\X(?:(?={MARK})\X)*+"  # UAX 29 parts a few vowel signs from their letter (Burmese \u102c): not here


QUOTES = '"“”„‟«»‹›「」『』﹁﹂﹃﹄〝〞〟｢｣《》〈〉״＂'
"""Marks of quotations in every script, for a class of a pattern; not those that are apostrophes, too."""


def joined_by(language: str) -> str:
    """The text between two sentences of a language: nothing in Chinese and Japanese, else a space.

    >>> [joined_by(code) for code in ("en", "ja", "zh_TW", "th", "km")]
    [' ', '', '', ' ', ' ']
    """
    return "" if is_chinese(language) or script_of(language) in {"Jpan", "Hira", "Kana", "Hrkt", "Yiii"} else " "
