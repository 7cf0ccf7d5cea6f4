"""Forms of text that is no plain text any more: cut into subwords, escaped, tokenised; and lists of several outputs."""

import re

ESCAPES = re.compile(r"&(?:#\d{2,6}|#x[\da-fA-F]{2,6}|[a-zA-Z]{2,8});")
"""Of Moses' tokenizer, and of markup."""
SPECIAL_TOKENS = re.compile(
    r"</?s>|<(?:pad|unk|bos|eos|mask|0x[\dA-F]{2})>|\[(?:CLS|SEP|PAD|UNK|MASK)\]|\b[a-z]{3}_[A-Z][a-z]{3}\b"
    r"|>>[a-z]{2,3}(?:_\w+)?<<|(?:^|\s)__[a-z]{2,3}(?:_\w+)?__(?:\s|$)|<2[a-z]{2,3}>|<extra_id_\d+>|<\|[a-z_]+\|>"
)
"""Tokens that a decoder leaves in a text: ends, unknown pieces, bytes, languages of NLLB, Marian, M2M100 and T5."""
FRAMES = (
    ("columns", re.compile(r"\t"), "have a tab, as a table has: keep the column of the translations (cut -f2)"),
    ("numbered", re.compile(r"^-?\d+(?:\.\d+)?[.):]?\s"), "begin with a number or a score: take that away (sed)"),
    (
        "in quotes",
        re.compile(r"^[\"'“”„«].*[\"'“”»]$"),
        "stand in quotation marks: take the text out of its table or JSON",
    ),
)
"""Things around each translation of a file that is more than its text: name, pattern, and what to do."""
MARKUP = re.compile(r"\s*<(?:\?xml|!DOCTYPE|tstset|refset|srcset|mteval|dataset)\b")
"""The beginning of a test set in the markup of NIST or WMT."""
FORMS = {
    "cut into subwords": re.compile(r"[^\s@]@@(?: |$)|(?:^|\s)[▁Ġ]\S|\w ##\w|\S￭(?:\s|$)|(?:^|\s)￭\S"),
    "tokenised": re.compile(r"\w [.,](?: |$)| @[-/]@ |\w (?:&apos;|['’])(?:s|re|ve|ll|d|m|t) "),
}
"""By the finding's name: `@@` of subword-nmt, `▁` of SentencePiece, `Ġ` of pairs of bytes, `##` of WordPiece, `￭` of
OpenNMT; Moses' `@-@`, marks and endings that stand apart. French has a space before other marks."""
_HINTS = ("@@", "▁", "Ġ", "##", "￭", " .", " ,", "@-@", "@/@", " '", " ’", " &apos;")
FORMATS = (
    (re.compile(r"\s*\d+ \|\|\| "), "a list of several translations of each source",
     "keep the text of the first of each number: awk -F ' [|][|][|] ' '!n[$1]++ {print $2}'"),
    (re.compile(r"[STHDP]-\d+\t"), "what fairseq prints, with sources and scores",
     "keep the translations: grep ^D- | sort -V | cut -f3"),
    (re.compile(r"\{\s*\"[^\"]*\"\s*:"), "JSON, an object a line", "keep the translations: jq -r .translation"),
)  # fmt: skip
"""Of lines that hold more than a translation: their beginning, what they are, and how to come to the text."""


def joined(line: str) -> str:
    """A line with the pieces of subword-nmt or SentencePiece joined to words; a line of words stays as it is.

    >>> joined("a coff@@ ee"), joined("▁a ▁coff ee ▁."), joined("a coffee .")
    ('a coffee', 'a coffee .', 'a coffee .')
    """
    return line.replace(" ", "").replace("▁", " ").strip() if "▁" in line else re.sub("@@(?: |$)", "", line)


def forms_of(text: str) -> list[str]:
    """The names of the forms that a line shows.

    >>> forms_of("a coff@@ ee"), forms_of("▁a ▁cup"), forms_of("a cup ."), forms_of("Oui !")
    (['cut into subwords'], ['cut into subwords'], ['tokenised'], [])
    """
    if not any(hint in text for hint in _HINTS):
        return []
    return [form for form, pattern in FORMS.items() if pattern.search(text)]
