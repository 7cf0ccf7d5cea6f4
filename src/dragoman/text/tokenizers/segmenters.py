"""Where words end: rules of our own, or those of spaCy and jieba where they are installed.

A segmenter takes text with single spaces and returns its words in order, each with True if it follows the one before
without a space; put together again, they are the text.
"""

import functools
import re
from collections.abc import Callable

from dragoman.errors import Error, not_installed
from dragoman.text.words import MARKS

Words = list[tuple[str, bool]]
Segmenter = Callable[[str], Words]

CJK = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters and kana, as ranges for a regular expression: scripts written without spaces."""


def segmenter(rules: str, lang: str) -> Segmenter:
    """The segmenter of that name. Raises DragomanError when the library that it needs is not installed.

    `rule`: words with their inner hyphens; URLs, e-mail addresses, numbers and abbreviations with dots whole.
    `characters`: the same, but each Han character or kana is a word.
    """
    match rules:
        case "spacy":
            return _spacy(lang)
        case "jieba":
            return _jieba(lang)
    return _by_pattern(CJK if rules == "characters" else "")


@functools.cache
def _spacy(lang: str) -> Segmenter:
    try:
        import spacy
    except ImportError as error:
        raise not_installed("`rules: spacy` needs spaCy", "spacy") from error
    if not re.fullmatch("[a-z]{2,3}", lang):  # it becomes part of a module's name
        raise Error.NO_SUCH_LANGUAGE(f"`lang: {lang}`: expected the code of a language, such as de")
    try:
        pipeline = spacy.blank(lang)
    except ImportError as error:
        raise Error.NO_SUCH_LANGUAGE(
            f"spaCy has no tokenizer for `lang: {lang}`: {' '.join(str(error).split())}"
        ) from error

    def segment(text: str) -> Words:
        words: Words = []
        joined = True
        for token in pipeline.make_doc(text):
            words.append((token.text, joined))
            joined = not token.whitespace_
        return words

    return segment


@functools.cache
def _jieba(lang: str) -> Segmenter:
    try:
        import jieba
    except ImportError as error:
        raise not_installed("`rules: jieba` needs jieba", "chinese") from error
    jieba.setLogLevel("WARNING")

    def segment(text: str) -> Words:
        words: Words = []
        joined = True
        for word in jieba.lcut(text):
            if word.isspace():
                joined = False
            else:
                words.append((word, joined))
                joined = True
        return words

    return segment


@functools.cache
def _by_pattern(apart: str) -> Segmenter:
    pattern = _pattern(apart)

    def segment(text: str) -> Words:
        return [
            (match.group(), place > 0) for chunk in text.split() for place, match in enumerate(pattern.finditer(chunk))
        ]

    return segment


def _pattern(apart: str) -> re.Pattern[str]:
    """One word of a stretch without spaces; the last alternative takes any character, so that nothing is lost.

    At an apostrophe, English endings stand for themselves (dog 's, we 'll) except n't; everything else is taken as an
    elision, which ends with its apostrophe (l' homme, dell' arte).
    """
    letter = rf"(?:[^\W{apart}]|[{MARKS}])"
    ending = rf"['’](?:s|re|ve|ll|d|m)(?!{letter})"
    return re.compile(
        rf"""
          (?:(?:https?|ftp)://|www\.)\S*[\w/]                  # a URL, without the punctuation behind it
        | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                         # an e-mail address
        | \d+(?:[.,:]\d+)*{letter}*                            # 1,234.5  12:30  3rd
        | (?:[^\W\d_{apart}]{{1,2}}\.){{2,}}                   # z.B.  e.g.  U.S.
        | {ending}
        | {letter}+(?:-{letter}+)*(?:['’]t(?!{letter})|(?!{ending})['’](?={letter}))?
        | ([^\w\s])\1*                                         # ...  --  ?!
        | .
        """,
        re.VERBOSE | re.IGNORECASE | re.DOTALL,
    )
