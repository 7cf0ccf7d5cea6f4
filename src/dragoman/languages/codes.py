"""Facts of writing that follow from a language code."""

import re

TELLING = 20
"""Characters from which on the language of a text can be told."""


def language_of(code: str) -> str:
    """The language of a code, without region or script.

    >>> language_of("zh_CN"), language_of("zh-Hant"), language_of("DE")
    ('zh', 'zh', 'de')
    """
    return re.split("[-_]", code.lower())[0]


def is_chinese(code: str) -> bool:
    return language_of(code) in {"zh", "cmn", "yue", "wuu", "lzh"}


def written_without_spaces(code: str) -> bool:
    """True if words, and so sentences too, follow each other without a space: Chinese, Japanese, Thai, Lao, Khmer,
    Burmese.

    >>> written_without_spaces("zh_CN"), written_without_spaces("ko")
    (True, False)
    """
    return is_chinese(code) or language_of(code) in {"ja", "th", "lo", "km", "my"}


def articles(code: str) -> list[tuple[str, ...]]:
    """Forms of articles, one of which stands before a noun: which one depends on the noun.

    >>> articles("en")
    [('a', 'an')]
    """
    return ARTICLES.get(language_of(code), [])


ARTICLES: dict[str, list[tuple[str, ...]]] = {
    "en": [("a", "an")],
    "de": [("der", "die", "das", "den", "dem", "des"), ("ein", "eine", "einen", "einem", "einer", "eines")],
    "es": [("el", "la"), ("los", "las"), ("un", "una")],
    "fr": [("le", "la"), ("un", "une")],
    "it": [("il", "lo", "la"), ("un", "uno", "una")],
    "nl": [("de", "het")],
    "pt": [("o", "a"), ("os", "as"), ("um", "uma")],
}


def name_of(code: str) -> str:
    """The English name of a language, or its code where it is not a common one.

    >>> name_of("de"), name_of("pt_BR"), name_of("xyz")
    ('German', 'Portuguese', 'xyz')
    """
    return NAMES.get(language_of(code), language_of(code))


NAMES = {
    "ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer",
    "ko": "Korean", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay",
    "my": "Burmese", "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
