"""Text that was read in another encoding than it is written in (mojibake), and its repair.

Whatever pair of encodings did it: the text is written in the one that it was read in, and read in each that its
language has. The reading counts that is far more probable as text of the language: by its letters (their ranks in
`languages/letters.toml`, the levels of East Asian standards), by marks that no text has, and by capitals inside of
words. UTF-8 read as anything is one of the pairs.
"""

import functools
import math
import re
import unicodedata
from collections import Counter

import regex

from dragoman.languages.codes import language_of, script_of
from dragoman.languages.scripts import LETTERS, letters_in, script_of_language

MIN_GAIN_NATS, MANY_GAIN_NATS, MANY_LINES = 6.0, 2.0, 3
"""Nats by which a reading has to be more probable; after so many lines that another reading has repaired, fewer do."""
MAX_DOUBTFUL_LINES = 10_000
RARE_ENCODING_NATS = (4.0, 8.0)
"""Nats more for two encodings that are less often taken for each other than UTF-8, or what is read as Windows-1252: for
those in `_OFTEN`, and for others."""
_OFTEN = frozenset({"cp1251", "koi8-r", "koi8-u", "cp866", "gb18030", "cp950", "cp932", "euc_jp", "cp949", "cp1250"})

_READ_AS = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "iso8859-2", "iso8859-5",
    "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-13", "iso8859-15", "koi8-r", "cp437", "cp850", "cp852",
    "cp866", "mac-roman", "mac-cyrillic", "cp874", "gb18030", "cp950", "cp932", "cp949", "euc_jp",
)  # fmt: skip
"""Encodings that text is read in by mistake."""
_WRITTEN_IN = {
    "Latn": "utf-8 cp1252 mac-roman cp850 cp437", "Cyrl": "utf-8 cp1251 koi8-r cp866 iso8859-5 mac-cyrillic",
    "Grek": "utf-8 cp1253 iso8859-7 cp737", "Hebr": "utf-8 cp1255 iso8859-8 cp862", "Thai": "utf-8 cp874",
    "Arab": "utf-8 cp1256 iso8859-6 cp864", "Jpan": "utf-8 cp932 euc_jp", "Kore": "utf-8 cp949",
    "Hans": "utf-8 gb18030", "Hant": "utf-8 cp950 gb18030", "Armn": "utf-8", "": "utf-8",
}  # fmt: skip
_WRITTEN_IN |= {
    **dict.fromkeys(
        ("pl", "cs", "sk", "hu", "sl", "hr", "bs", "sr_Latn", "ro", "sq"), "utf-8 cp1250 iso8859-2 cp852 cp1252"
    ),
    **dict.fromkeys(("et", "lv", "lt"), "utf-8 cp1257 iso8859-13 iso8859-4 cp775"),
    **dict.fromkeys(("tr", "az"), "utf-8 cp1254 cp857"), "vi": "utf-8 cp1258", "uk": "utf-8 cp1251 koi8-u cp866",
}  # fmt: skip
"""Encodings that a language, or else a script, was written in."""

_TYPOGRAPHIC = frozenset("“”„‚‘’‹›«»–—…·•№§°€£©®™¿¡\xa0\u200b\u200c\u200d\u200e\u200f\xad\ufeff×←→↑↓ªº²³½¼¾±µ")
_EAST_ASIAN = frozenset({"Jpan", "Kore", "Hans", "Hant"})
_BEYOND = re.compile(r"[^\x00-\x7f]")
_LETTER = regex.compile(r"[\p{L}--[A-Za-zªº]]", regex.V1)
_OTHER_WORD = regex.compile(r"(?<!\p{L})[\p{L}--\p{Latin}]+(?!\p{L})", regex.V1)
_CAPITAL = regex.compile(r"[\p{Lu}--[A-Z]]", regex.V1)
_INNER_CAPITAL = regex.compile(r"(?<=\p{Ll})[\p{Lu}--[A-Z]]", regex.V1)
"""A capital beyond ASCII right behind a small letter, as in `оПХБЕР`."""
_INSIDE_WORD = re.compile(r"(?<=[^\W\d_])[^\s\w\x00-\x7f’\xad\u200b-\u200f–—…·](?=[^\W\d_])")
"""A mark beyond ASCII between two letters."""
_MIXED, LETTERS_PER_MIXED = re.compile(r"[A-Za-z](?=[^\W\d_a-zA-Z])|(?<=[^\W\d_a-zA-Z])[A-Za-z]"), 5
"""A Latin letter beside a letter of another script: at most one of five letters may be so."""
_NO_LETTER = re.compile(rf"{_INSIDE_WORD.pattern}|[²³¹¼½¾µªº±·×¬\xad¿¡](?=[^\W\d_])|(?<=[^\W\d_])[²³¹¼½¾µªº±·×¬\xad¿¡]")
"""A mark that stands where a letter should."""
USUAL_NATS, ODD_NATS, NEVER_NATS = 7.2, 8.0, 10.0
"""Nats of a letter of an East Asian text at most, of what texts of a language hardly have, and of what no text has."""
_LOST_SPACE = re.compile(b"([\xc2-\xf4]|[\xe0-\xef][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\x20")
"""Where a no-break space, the last byte of a letter in UTF-8, has become a space."""


def _unlikeliness(codecs: tuple[str, str]) -> float:
    read_as, written_in = codecs
    if written_in == "utf-8" or read_as == "cp1252":
        return 0.0
    return RARE_ENCODING_NATS[not _OFTEN.issuperset(codecs)]


@functools.cache
def _bytes_of(codec: str) -> dict[str, int]:
    """The byte of each character of an encoding of single bytes; what it does not define is a control character."""
    table = {chr(code): code for code in range(0x80, 0x100)}
    for code in range(256):
        char = bytes([code]).decode(codec, "ignore")
        if char:
            table[char] = code
    return table


@functools.cache
def _is_multibyte(codec: str) -> bool:
    return codec.startswith(("gb", "cp93", "cp94", "cp95", "euc", "iso2022"))


def _written(text: str, codec: str) -> bytes | None:
    """The bytes of a text, None where the encoding has not all of its characters."""
    try:
        if _is_multibyte(codec):
            return text.encode(codec)
        table = _bytes_of(codec)
        return bytes([table[char] for char in text])
    except (UnicodeEncodeError, KeyError):
        return None


def _read(data: bytes, codec: str) -> str | None:
    """The text of bytes, None where they are none in an encoding."""
    for attempt in (data, _LOST_SPACE.sub(b"\\1\xa0", data)) if codec == "utf-8" else (data,):
        try:
            return attempt.decode(codec)
        except UnicodeDecodeError:
            continue
    return None


class Misread:
    """The repair of lines of a language that were read in another encoding; it remembers which encodings these were.

    >>> Misread("tr").repaired("Temel Tümleþik Geliþtirme"), Misread("ru").repaired("Ïðèâåò, ìèð")
    ('Temel Tümleşik Geliştirme', 'Привет, мир')
    """

    def __init__(self, language: str) -> None:
        """`language`: its code; a text in an unknown language is not examined."""
        self.script, self.script_name = script_of(language), script_of_language(language)
        known = f"{language_of(language)}_{self.script}" in LETTERS
        name = f"{language_of(language)}_{self.script}" if known else language_of(language)
        self.letters = LETTERS.get(name, "") if known or self.script == script_of(name) else ""
        self.is_known = bool(self.letters) or self.script not in ("", "Latn", "Cyrl", "Arab")
        self.codecs = (_WRITTEN_IN.get(name) or _WRITTEN_IN.get(self.script, "utf-8")).split()
        self.seen: Counter[tuple[str, str]] = Counter()
        """Lines by the encodings that they were read and written in."""
        self.doubtful: list[str] = []
        """Lines that would be repaired if more of their kind were seen."""
        usual = re.escape(self.letters + self.letters.upper() + "".join(_TYPOGRAPHIC))
        self._usual = re.compile(f"[\x20-\x7e{usual}]*")
        self._costs: dict[str, float] = {}

    def repaired(self, text: str) -> str:
        """The text as it was written, or as it is where nothing says that it was misread."""
        return self.reading_of(text)[0]

    def is_misread(self, text: str) -> bool:
        """True for a text that `repaired` would change; such texts are counted."""
        reading, codecs = self.reading_of(text)
        if reading == text:
            if codecs != ("", "") and len(self.doubtful) < MAX_DOUBTFUL_LINES:
                self.doubtful.append(text)
            return False
        self.seen[codecs] += 1
        return True

    def reading_of(self, text: str) -> tuple[str, tuple[str, str]]:
        """The text as it was written and the encodings of which that is so, read and written; the text itself with
        those that it may be of where they are too rarely seen."""
        best: tuple[str, tuple[str, str]] = (text, ("", ""))
        if text.isascii() or not self.is_known or not self._may_be_misread(text):
            return best
        cost = self._cost(text)
        lowest = math.inf
        for read_as in _READ_AS:
            if (data := _written(text, read_as)) is None:
                continue
            for written_in in self.codecs:
                if written_in == read_as or (reading := _read(data, written_in)) is None or reading == text:
                    continue
                codecs = read_as, written_in
                margin = (
                    MIN_GAIN_NATS + _unlikeliness(codecs)
                    if self.seen[codecs] < MANY_LINES
                    else MANY_GAIN_NATS + _unlikeliness(codecs) / 2
                )
                other = self._cost(reading) + margin
                if other < min(lowest, cost + margin - MANY_GAIN_NATS) and self._is_sound(reading, written_in, text):
                    best, lowest = (reading if other <= cost else text, codecs), other
        return best

    def _may_be_misread(self, text: str) -> bool:
        """False for most sound texts, at a glance."""
        if self.script in _EAST_ASIAN:
            beyond = _BEYOND.findall(text)
            return sum(map(self._cost_of, beyond)) > USUAL_NATS * len(beyond)
        if not self._usual.fullmatch(text) and max(map(self._cost_of, _BEYOND.findall(text))) >= ODD_NATS:
            return True
        if _INNER_CAPITAL.search(text):
            return True
        return self.script == "Cyrl" and 3 * len(_CAPITAL.findall(text)) > len(_BEYOND.findall(text))

    def _is_sound(self, text: str, written_in: str, read: str) -> bool:
        """True for a text of letters and marks that texts of the language have, but for a few. A code page has one
        letter for any byte: there no mark stands inside of a word, all letters are the language's own, and words in
        another script that were `read` (`а, б (Russian)`) are of letters."""
        beyond = list(map(self._cost_of, _BEYOND.findall(text)))
        if self.script not in ("Latn", *_EAST_ASIAN) and LETTERS_PER_MIXED * len(_MIXED.findall(text)) > len(beyond):
            return False
        if written_in == "utf-8" or self.script not in ("Latn", "Cyrl", "Grek"):
            return (
                sum(cost >= ODD_NATS for cost in beyond) <= len(beyond) / 10 and max(beyond, default=0.0) < NEVER_NATS
            )
        if (
            self.script == "Latn"
            and _OTHER_WORD.search(read)
            and len(_LETTER.findall(text)) < len(_LETTER.findall(read))
        ):
            return False
        return max(beyond, default=0.0) < ODD_NATS and not (_INNER_CAPITAL.search(text) or _NO_LETTER.search(text))

    def _cost(self, text: str) -> float:
        """The improbability of a text, in nats."""
        return (
            2.0 * len(_INNER_CAPITAL.findall(text))
            + 4.0 * len(_INSIDE_WORD.findall(text))
            + sum(map(self._cost_of, text))
        )

    def _cost_of(self, char: str) -> float:
        if (cost := self._costs.get(char)) is None:
            cost = self._costs[char] = self._new_cost(char)
        return cost

    def _new_cost(self, char: str) -> float:
        if char.isascii():
            return 2.5 if char.isalnum() else 9.0 if char < " " else 2.0
        if char in _TYPOGRAPHIC:
            return 5.0
        category = unicodedata.category(char)
        if category[0] == "C":
            return 10.0
        if category == "So" and char >= "\u2600":
            return 6.0  # an emoji
        if self.script in _EAST_ASIAN:
            return _east_asian_cost(char, self.script)
        rank = max(self.letters.find(char), self.letters.find(char.lower()))
        if rank >= 0:
            return (1.5 if len(self.letters) > 20 else 3.0) + math.log(rank + 1) * 0.6 + 0.3 * char.isupper()
        is_own = self.script_name and letters_in(char, self.script_name)
        if is_own and (not self.letters or category[0] in "MNP" or category == "Lm"):
            return 3.5 if category[0] == "L" or not self.letters else 5.0
        return 8.0


@functools.cache
def _east_asian_cost(char: str, script: str) -> float:
    """The improbability of a letter: common letters are in the first level of the national standards."""
    if unicodedata.category(char)[0] not in "LM":
        return 4.0 if "\u3000" <= char <= "\u303f" or "\uff00" <= char <= "\uffee" else 8.0
    if "\u3041" <= char <= "\u30fc":
        return 4.5 if script == "Jpan" else 8.5
    codec, first, last = {
        "Hans": ("gb2312", 0xB0, 0xD7), "Hant": ("big5", 0xA4, 0xC6), "Jpan": ("euc_jp", 0xB0, 0xCF),
        "Kore": ("euc_kr", 0xB0, 0xC8),
    }[script]  # fmt: skip
    data = char.encode(codec, "ignore")
    if len(data) == 2 and first <= data[0] <= last:
        return 6.5
    if script == "Kore":
        return 9.0 if len(data) == 2 else 11.0
    return 9.0 if len(data) == 2 and char.isalpha() and char >= "\u3400" else 11.0
