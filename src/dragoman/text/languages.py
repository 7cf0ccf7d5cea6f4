"""What a language code says about how text is written."""

import re
from pathlib import Path


def language_of(code: str) -> str:
    """The language of a code, without region or script.

    >>> language_of("zh_CN"), language_of("zh-Hant"), language_of("DE")
    ('zh', 'zh', 'de')
    """
    return re.split("[-_]", code.lower())[0]


def of_file(path: str | Path) -> str:
    """The language code that a file name ends in, "" where it ends in none.

    >>> of_file("corpus.de"), of_file("corpus.en.gz"), of_file("corpus.txt")
    ('de', 'en', '')
    """
    path = Path(path)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    return suffix[1:] if re.fullmatch(r"\.[a-z]{2,3}", suffix) and suffix not in (".txt", ".gz") else ""


def is_chinese(code: str) -> bool:
    return language_of(code) in {"zh", "cmn", "yue", "wuu", "lzh"}


def written_without_spaces(code: str) -> bool:
    """Whether words, and so sentences too, follow each other without a space: Chinese, Japanese, Thai, Lao, Khmer,
    Burmese.

    >>> written_without_spaces("zh_CN"), written_without_spaces("ko")
    (True, False)
    """
    return is_chinese(code) or language_of(code) in {"ja", "th", "lo", "km", "my"}
