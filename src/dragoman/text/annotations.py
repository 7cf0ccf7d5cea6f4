"""Pieces of the vocabulary that tell a model more than the text alone: codes, terms, a similar translation, context.

    Click⟦1⟧ Open⟦/1⟧ in the⟦2/⟧ menu.                               codes: pairs around words, and one that is alone
    Open the⟦term⟧ spreadsheet⟦as⟧ Tabellenkalkulation⟦/term⟧.       a term and its translation
    Open the file.⟦memory⟧ Die Datei⟦other⟧ schließen⟦/other⟧.       a match of the memory; words that do not belong
    The pump runs.⟦break⟧ It is red.                                 the sentence before, on either side

A piece stands right behind the word before it, whatever space follows: so the words around it are cut into the same
tokens as without it. They are symbols of the tokenizer (`user_defined_symbols`), and a model learns them from training
pairs that have them (`corpus.augment`, `corpus.context`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.special_tokens import UNK_ID
from dragoman.text.tokenizers.pair import TokenizerPair

NUM_CODES = 16
"""Codes of a sentence, at most: a pair is one."""
CODE_PIECES = tuple(
    f"⟦{piece}⟧" for number in range(1, NUM_CODES + 1) for piece in (number, f"/{number}", f"{number}/")
)
TERM, AS, END_OF_TERM = TERM_PIECES = ("⟦term⟧", "⟦as⟧", "⟦/term⟧")
MEMORY, OTHER, END_OF_OTHER = MEMORY_PIECES = ("⟦memory⟧", "⟦other⟧", "⟦/other⟧")
BREAK = "⟦break⟧"
"""Stands behind each sentence before the one to translate."""
PIECES = {"tags": CODE_PIECES, "terms": TERM_PIECES, "fuzzy": MEMORY_PIECES, "context": (BREAK,)}
"""The pieces that a setting of `corpus.augment`, or `corpus.context`, puts into pairs."""

ON_BOTH_SIDES = frozenset({"tags"})
"""Settings whose pieces a model also writes; pieces of other settings are only read."""

PIECE = re.compile(r"⟦(?:/?[1-9][0-9]?|[1-9][0-9]?/|/?term|as|memory|/?other|break)⟧")
_CODE = re.compile(r"⟦(/?)([1-9][0-9]?)(/?)⟧")


def has_learnt(setting: str, tokenizers: TokenizerPair) -> bool:
    """True where the vocabularies that need them have the pieces of a setting."""
    sides = (tokenizers.src, tokenizers.tgt) if setting in ON_BOTH_SIDES else (tokenizers.src,)
    return all(side.id_of(PIECES[setting][0]) != UNK_ID for side in sides)


class Placed(NamedTuple):
    """A piece and its place in the text without pieces."""

    place: int
    piece: str


def opening(number: int) -> str:
    """The piece that begins the pair of a number, from 1.

    >>> opening(1), closing(1), alone(2)
    ('⟦1⟧', '⟦/1⟧', '⟦2/⟧')
    """
    return f"⟦{number}⟧"


def closing(number: int) -> str:
    return f"⟦/{number}⟧"


def alone(number: int) -> str:
    return f"⟦{number}/⟧"


def number_of(piece: str) -> int:
    """The number of a code's piece; 0 for another piece."""
    match = _CODE.fullmatch(piece)
    return int(match[2]) if match else 0


def with_pieces(text: str, pieces: Iterable[Placed]) -> str:
    """The text with pieces, given in order of their places.

    >>> with_pieces("Click Open.", [Placed(6, "⟦1⟧"), Placed(10, "⟦/1⟧")]), with_pieces("Open", [Placed(0, "⟦1/⟧")])
    ('Click⟦1⟧ Open⟦/1⟧.', '⟦1/⟧ Open')
    """
    parts = [""]  # of the text, each behind a piece but the first
    done = 0
    chosen = list(pieces)
    for place, _ in chosen:
        at = max(done, len(text[:place].rstrip()))
        parts[-1] = text[done:at]
        parts.append("")
        done = at
    parts[-1] = text[done:]
    behind = next((number for number, part in enumerate(parts) if part), 0)
    if behind and not parts[behind][0].isspace():  # the first word begins as without a piece before it
        parts[behind] = " " + parts[behind]
    return parts[0] + "".join(piece + part for (_, piece), part in zip(chosen, parts[1:], strict=True))


def with_term_pieces(text: str, pieces: Iterable[Placed], terms: Iterable[tuple[int, int, str]]) -> str:
    """The text with its pieces, and with the target of each term behind it. `terms`: (start, end, target).

    Codes that begin or end where a term does stand around it.

    >>> with_term_pieces("Click Open.", [Placed(5, "⟦1⟧"), Placed(10, "⟦/1⟧")], [(6, 10, "Öffnen")])
    'Click⟦1⟧⟦term⟧ Open⟦as⟧ Öffnen⟦/term⟧⟦/1⟧.'
    """
    placed = [((piece.place, 1), piece) for piece in pieces]
    for start, end, target in terms:
        placed.append(((start, 2), Placed(start, TERM)))
        placed.append(((end, 0), Placed(end, f"{AS} {target}{END_OF_TERM}")))
    return with_pieces(text, [piece for _, piece in sorted(placed, key=lambda one: one[0])])


def without_pieces(text: str) -> tuple[str, list[Placed]]:
    """(the text without its pieces, the pieces), whatever spaces stand around them.

    >>> without_pieces("⟦1⟧ Open⟦/1⟧ the⟦2/⟧ file.")
    ('Open the file.', [Placed(place=0, piece='⟦1⟧'), Placed(place=4, piece='⟦/1⟧'), Placed(place=8, piece='⟦2/⟧')])
    """
    plain, done = "", 0
    pieces: list[Placed] = []
    for match in PIECE.finditer(text):
        plain = _joined(plain, text[done : match.start()])
        pieces.append(Placed(len(plain), match.group()))
        done = match.end()
    plain = _joined(plain, text[done:]) if pieces else text
    return plain, [Placed(min(place, len(plain)), piece) for place, piece in pieces]


def _joined(before: str, after: str) -> str:
    """Two parts of a text between which a piece stood: spaces on both sides of it were one."""
    if not before:
        return after.lstrip()
    return before + (after.lstrip() if before[-1].isspace() else after)


def plain_text(text: str) -> str:
    """The text without its pieces; most texts have none."""
    return without_pieces(text)[0].rstrip() if "⟦" in text else text


def in_context(before: Sequence[str], text: str) -> str:
    """The text behind the sentences before it, which are plain: without pieces.

    >>> in_context(["The pump runs.", "It is⟦1⟧ red⟦/1⟧."], "Paint it.")
    'The pump runs.⟦break⟧ It is red.⟦break⟧ Paint it.'
    """
    return "".join(f"{plain_text(sentence)}{BREAK} " for sentence in before) + text


def out_of_context(text: str) -> tuple[list[str], str]:
    """(the sentences before, the text itself) of what `in_context` has made."""
    *before, own = text.split(BREAK)
    return [sentence.strip() for sentence in before], own.lstrip() if before else own


def are_whole(pieces: Sequence[str], source: Sequence[str]) -> bool:
    """True if the code pieces of a translation are those of its source, each once, and well nested.

    >>> are_whole(["⟦2/⟧", "⟦1⟧", "⟦/1⟧"], ["⟦1⟧", "⟦/1⟧", "⟦2/⟧"]), are_whole(["⟦/1⟧", "⟦1⟧"], ["⟦1⟧", "⟦/1⟧"])
    (True, False)
    """
    if sorted(pieces) != sorted(source):
        return False
    opened: list[str] = []
    for piece in pieces:
        match = _CODE.fullmatch(piece)
        if match is None:
            return False
        if match[1] and (not opened or opened.pop() != match[2]):
            return False
        if not match[1] and not match[3]:
            opened.append(match[2])
    return not opened
