"""Forms of text that is no plain text any more: cut into subwords, escaped, tokenised; and lists of several outputs."""

import re

ESCAPES = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124|bar|bra|ket);")
"""Of Moses' tokenizer, and of markup."""
FORMS = {
    "cut into subwords": re.compile(r"[^\s@]@@(?: |$)|(?:^|\s)▁\S|\w ##\w|\S￭(?:\s|$)|(?:^|\s)￭\S"),
    "tokenised": re.compile(r"\w [.,](?: |$)| @[-/]@ |\w (?:&apos;|['’])(?:s|re|ve|ll|d|m|t) "),
}
"""By the finding's name: `@@` of subword-nmt, `▁` of SentencePiece, `##` of WordPiece, `￭` of OpenNMT; Moses' `@-@`,
marks and endings that stand apart. French has a space before other marks."""
_HINTS = ("@@", "▁", "##", "￭", " .", " ,", "@-@", "@/@", " '", " ’", " &apos;")
FORMATS = (
    (re.compile(r"\s*\d+ \|\|\| "), "a list of several translations of each source",
     "keep the text of the first of each number: awk -F ' [|][|][|] ' '!n[$1]++ {print $2}'"),
    (re.compile(r"[STHDP]-\d+\t"), "what fairseq prints, with sources and scores",
     "keep the translations: grep ^D- | sort -V | cut -f3"),
    (re.compile(r"\{\s*\"[^\"]*\"\s*:"), "JSON, an object a line", "keep the translations: jq -r .translation"),
)  # fmt: skip
"""Of lines that hold more than a translation: their beginning, what they are, and how to come to the text."""


def forms_of(text: str) -> list[str]:
    """The names of the forms that a line shows.

    >>> forms_of("a coff@@ ee"), forms_of("▁a ▁cup"), forms_of("a cup ."), forms_of("Oui !")
    (['cut into subwords'], ['cut into subwords'], ['tokenised'], [])
    """
    if not any(hint in text for hint in _HINTS):
        return []
    return [form for form, pattern in FORMS.items() if pattern.search(text)]
