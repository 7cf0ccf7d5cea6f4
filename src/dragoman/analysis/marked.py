"""Words of a translation that its reference does not have there, for pages that mark them."""

import difflib
import itertools
import operator
import re
import string

from dragoman.text.words import MARKS, UNSPACED

_PUNCTUATION = re.escape(string.punctuation) + "“”„‘’«»…–—¿¡،؟؛।。、，！？：；「」『』（）"
_WORD = re.compile(rf"\s+|[{UNSPACED}][{MARKS}]*|[{_PUNCTUATION}]|[^\s{UNSPACED}{_PUNCTUATION}]+")


def marked(hyp: str, ref: str) -> list[tuple[str, bool]]:
    """`hyp` as (text, whether the reference has it there) runs, by words (by characters in scripts without spaces).

    >>> marked("a cat sleeps here", "the cat sleeps")
    [('a', False), (' cat sleeps ', True), ('here', False)]
    """
    words, expected = _WORD.findall(hyp), [word for word in _WORD.findall(ref) if not word.isspace()]
    places = [place for place, word in enumerate(words) if not word.isspace()]
    matcher = difflib.SequenceMatcher(None, [words[place] for place in places], expected, autojunk=False)
    same = {places[i] for block in matcher.get_matching_blocks() for i in range(block.a, block.a + block.size)}
    flags: list[bool] = []
    for place, word in enumerate(words):
        if word.isspace():  # between two different words it belongs to them, else to the text around
            flags.append(not (flags and not flags[-1] and place + 1 < len(words) and place + 1 not in same))
        else:
            flags.append(place in same)
    runs = itertools.groupby(zip(words, flags, strict=True), key=operator.itemgetter(1))
    return [("".join(word for word, _ in run), is_same) for is_same, run in runs]
