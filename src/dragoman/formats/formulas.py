"""Texts in the formulas of spreadsheets: a text that a formula compares with a cell's is translated as that cell is.

`COUNTIF(A:A,"Ja")` counts the cells that say `Ja`. When those say `Yes`, so must the formula. A text that stands in no
cell stays: it may be part of a word that is looked for, a format or an address.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from dragoman.formats.base import Item, Options, Pass, Unit, has_letters, plain
from dragoman.formats.xml_texts import as_value, places_of
from dragoman.progress import say

Texts = Callable[[], Mapping[str, str]]
"""The texts of cells, by themselves in lower case, as formulas compare them; read when they are first needed."""

FUNCTIONS_OF_CODES = frozenset({
    "ADDRESS", "CELL", "CONVERT", "DATEDIF", "DATEVALUE", "ENCODEURL", "FILTERXML", "HYPERLINK",
    "INDIRECT", "INFO", "NUMBERVALUE", "TEXT", "TIMEVALUE", "VALUE", "WEBSERVICE", "BASE", "IMPORTXML",
})  # fmt: skip
"""Functions whose texts are formats, units and addresses."""
LEFT = "texts in formulas"
RESULTS = "results of formulas"
SHEETS = "names of sheets, which formulas name"
MAX_TEXT_CHARS = 255
"""Characters of a text in a formula; Excel calls a file damaged that has more."""
FORMATS = "words in formats of numbers"
_QUOTE = r"(?:\"|&quot;|&#34;|&#x22;)"
_PIECE = re.compile(
    rf"'(?:[^']|'')*'|{_QUOTE}(?P<text>(?:(?!{_QUOTE}).|{_QUOTE}{_QUOTE})*){_QUOTE}|(?P<function>(?<![\w.])[\w.]*+)\(|\)",
    re.DOTALL,
)
"""The name of a sheet, a text, or a parenthesis with the function before it."""
_OPERATOR = re.compile(r"(?:&lt;|<)(?:&gt;|>)|(?:&lt;|&gt;|[<>])?=|&lt;|&gt;|[<>]")
"""The comparison that a criterion begins with."""


def by_lower_case(texts: Iterable[str]) -> dict[str, str]:
    """Texts as formulas look them up."""
    return {text.casefold(): text for text in texts}


def texts_of(text: str, start: int, end: int) -> Iterator[tuple[int, int, str, str]]:
    """(start, end, text, function that takes the text) of each string in a formula, as a file has it."""
    functions: list[str] = []
    for piece in _PIECE.finditer(text, start, end):
        if piece["function"] is not None:
            functions.append(piece["function"].rpartition(".")[2].upper())
        elif piece.group() == ")":
            del functions[-1:]
        elif piece["text"] is not None:
            content = html.unescape(piece["text"]).replace('""', '"')
            yield piece.start("text"), piece.end("text"), content, functions[-1] if functions else ""


def _as_literal(source: str, items: Sequence[Item]) -> str:
    """A text between quotes for a formula; the source text if the translation is too long for a formula."""
    translation = plain(items)
    if len(translation) > MAX_TEXT_CHARS:
        say(f"a text in a formula stays as it is: its translation has more than {MAX_TEXT_CHARS} characters")
        return source
    return as_value([translation.replace('"', '""')])


def in_formula(text: str, start: int, end: int, texts: Texts) -> Iterator[Unit]:
    """The texts of a formula: texts that are a cell's content are translated, other texts are kept."""
    for begin, stop, content, function in texts_of(text, start, end):
        if not has_letters(content):
            continue
        operator = _OPERATOR.match(text, begin, stop)  # COUNTIF(A:A,"<>Ja")
        if operator and (compared := html.unescape(text[operator.end() : stop])).casefold() in texts():
            begin, content = operator.end(), compared
        render = partial(_as_literal, text[begin:stop])
        cell = None if function in FUNCTIONS_OF_CODES else texts().get(content.casefold())
        if cell is not None:
            yield Unit((cell,), begin, stop, render, "text in a formula")
        elif function not in FUNCTIONS_OF_CODES:
            yield Unit((content,), begin, stop, render, "text in a formula", kept=LEFT)


def in_elements(names: Sequence[str], texts: Texts) -> Pass:
    """The pass for formulas that are the contents of elements."""
    tag = re.compile(rf"<(?:[\w.-]+:)?(?:{'|'.join(names)})(?=[\s>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>([^<]*)(?=<)")

    def units(text: str, options: Options) -> Iterator[Unit]:
        for element in tag.finditer(text):
            yield from in_formula(text, *element.span(1), texts)

    return units


def in_values(names: Mapping[str, Sequence[str]], texts: Texts) -> Pass:
    """The pass for formulas that are the values of attributes, by the names of elements."""
    places = places_of(names)

    def units(text: str, options: Options) -> Iterator[Unit]:
        for start, end in places(text):
            yield from in_formula(text, start, end, texts)

    return units


def copies(names: Mapping[str, Sequence[str]], texts: Texts) -> Pass:
    """The pass for values of attributes that repeat what a cell says: filters, the memory of pivot tables."""
    places = places_of(names)

    def units(text: str, options: Options) -> Iterator[Unit]:
        for start, end in places(text):
            cell = texts().get(html.unescape(text[start:end]).casefold())
            if cell is not None and has_letters(cell):
                yield Unit((cell,), start, end, as_value, "copy of a cell")

    return units
