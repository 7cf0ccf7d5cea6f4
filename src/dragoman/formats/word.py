"""Word documents (.docx): the text, its headers, notes and comments, and what else a reader sees of the file."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from dragoman.formats import bilingual_word, opc
from dragoman.formats.base import Edit, Item, Options, Part, Pass, Unit, aside, has_letters, joined, plain
from dragoman.formats.encoding import decoded
from dragoman.formats.inline import Token, as_markup, escaped, units_of
from dragoman.formats.language import of_office
from dragoman.formats.office import (
    FIELDS,
    NESTED,
    Beside,
    described,
    is_field_of_text,
    paragraphs,
    parts_by_kind,
    prefix_of,
    tokens_of,
    unit_of_runs,
)
from dragoman.formats.package import Package
from dragoman.formats.xml import Event, attribute, elements, events, local
from dragoman.formats.xml_texts import as_value, values_of

SHOWN = {
    "tblCaption": ("val",), "tblDescription": ("val",), "hyperlink": ("tooltip",), "listItem": ("displayText",),
    "listEntry": ("val",), "alias": ("val",), "helpText": ("val",), "statusText": ("val",), "default": ("val",),
}  # fmt: skip
"""Attributes that people read: descriptions of tables, tips, entries of lists, titles and helps of form fields."""
DELETED = ("del", "moveFrom")
FORMULA, INSTRUCTIONS = "formulas", "texts in the instructions of fields"
_PROMPTS = ("IF", "QUOTE", "FILLIN", "ASK", "AUTOTEXTLIST")
"""Fields whose instructions hold texts that Word shows; instructions of other fields are addresses and formats."""
_SWITCHES = {"HYPERLINK": "o", "MERGEFIELD": "bf", "XE": "t", "FILLIN": "d", "ASK": "d", "AUTOTEXTLIST": "t"}
"""The switches of fields that a text follows."""


def parts(package: Package) -> dict[str, Part]:
    """The parts of a document that hold text.

    A control may show what stands in a part of data: Word writes it over the control's text when it opens the document.
    """
    kinds = opc.kinds(package)

    @cache
    def texts() -> dict[str, str]:
        whole = (package.read(name) for name, kind in kinds.items() if kind in _BODY)
        return {text.casefold(): text for part in whole for text in _texts_of_controls(decoded(part, "", "xml")[0])}

    @cache
    def styles() -> Mapping[str, bilingual_word.Place]:
        name = next((name for name, kind in kinds.items() if kind == "styles"), None)
        return {} if name is None else bilingual_word.places_by_style(decoded(package.read(name), "", "xml")[0])

    def below(
        text: str, inside: Sequence[Event], options: Options, unit: Unit, items: Sequence[Item]
    ) -> Iterator[Edit]:
        yield from bilingual_word.beside(text, inside, styles(), options, unit, items)

    return parts_by_kind(package, {**_parts_of_kinds(below), "customxml": Part((data_of_controls(texts),))})


def _texts_of_controls(text: str) -> Iterator[str]:
    """The texts of controls that show data of another part."""
    for level in (0, 1) if "dataBinding" in text else ():
        for _, control in elements(events(text, Options()), ("sdt",), level):
            if any(local(event.name) == "dataBinding" for event in control):
                shown = (event.text for _, part in elements(control, ("t",)) for event in part)
                yield "".join(shown).strip()


def data_of_controls(texts: Callable[[], Mapping[str, str]]) -> Pass:
    """The pass for a part of data: what a control shows is translated as its text is."""

    def units(text: str, options: Options) -> Iterator[Unit]:
        if options.bilingual:  # the source's control shows it
            return
        before = ""
        for kind, group in itertools.groupby(events(text, options), lambda event: event.kind):
            inside = list(group)
            content = "".join(event.text for event in inside).strip()
            if kind == "text" and before == "start" and has_letters(content) and content.casefold() in texts():
                shown = texts()[content.casefold()]
                yield Unit((shown,), inside[0].start, inside[-1].end, as_markup, "data of a control")
            before = kind

    return units


def deletions(text: str, options: Options) -> Iterator[Unit]:
    """The texts that were deleted while changes were tracked."""
    if not re.search(r"<(?:\w+:)?(?:delText|moveFrom)\b", text):
        return
    for number, inside in elements(events(text, options), DELETED):
        tokens = list(tokens_of(text, inside[1:-1]))
        tag = "t" if local(inside[0].name) == "moveFrom" else "delText"
        yield from unit_of_runs(tokens, prefix_of(inside), f"deletion {number}", tag)


def left_out(text: str, options: Options) -> Iterator[Unit]:
    """Texts that stay, to be counted: those in formulas and in the instructions of fields, and what fields show that
    Word works out by itself."""
    reasons = {"oMath": FORMULA, "fldSimple": FIELDS}
    has_any = re.search(rf"[<:](?:{'|'.join(reasons)})\b", text)
    for number, inside in elements(events(text, options), reasons) if has_any else ():
        reason = reasons[local(inside[0].name)]
        if reason != FIELDS:
            yield from _kept(inside[1:-1], f"{reason} {number}", reason)
            continue
        yield from _in_instructions(attribute(inside[0], "instr"), inside[0])
        if not is_field_of_text(attribute(inside[0], "instr")):
            yield from _kept(inside[1:-1], f"field {number}", FIELDS)
    fields: list[list[Event]] = []
    results: list[bool | None] = []  # of each field that is open: is it one to count? None before its result
    for event in events(text, options) if "fldChar" in text else ():
        if event.kind == "start" and local(event.name) == "fldChar":
            kind = attribute(event, "fldCharType")
            if kind == "begin":
                fields.append([])
                results.append(None)
            elif kind == "separate" and fields:
                instructions = "".join(held.text for held in fields[-1])
                yield from _in_instructions(instructions, event)
                results[-1], fields[-1] = not is_field_of_text(instructions), []
            elif kind == "end" and fields:
                inside, is_result = fields.pop(), results.pop()
                if is_result:
                    yield from _kept(inside, "field", FIELDS)
                elif is_result is None:
                    yield from _in_instructions("".join(held.text for held in inside), event)
        elif fields and event.kind == "text":
            fields[-1].append(event)


def _kept(inside: Sequence[Event], where: str, reason: str) -> Iterator[Unit]:
    content = "".join(event.text for event in inside if event.kind == "text")
    if re.search(r"[^\W\d_]{3}", content):  # letters of formulas are no words
        yield Unit((content,), inside[0].start, inside[-1].end, plain, where, kept=reason)


def _in_instructions(instructions: str, at: Event) -> Iterator[Unit]:
    """The texts in the instructions of a field: `HYPERLINK "x" \\o "a tip"`."""
    name = (instructions.split() or [""])[0].upper()
    for match in re.finditer(r"(?:\\(\S)\s*)?[\"“„]([^\"“„”]*+)[\"“”]", instructions):
        is_text = match[1] in _SWITCHES.get(name, "") if match[1] else name in _PROMPTS
        if is_text and re.search(r"[^\W\d_]{3}", match[2]):
            yield Unit((match[2],), at.start, at.end, plain, f"field {name}", kept=INSTRUCTIONS)


def index_entries(text: str, options: Options) -> Iterator[Unit]:
    """The entries of indexes and of tables of contents that stand in the text as fields (`XE "shirt:blue"`)."""
    for match in _ENTRY.finditer(text):
        start, end = match.span("entry")
        pieces = re.split(r"(<[^<>]*>)", match["entry"])
        tags = "".join(pieces[1::2])
        for place in re.finditer(r"[^:]+", entry := _unescaped("".join(pieces[::2]))):
            if not has_letters(place.group()):
                return
        tokens = [
            Token("break" if piece == ":" else "text", start, end, piece, fixed=True)
            for piece in re.split("(:)", entry)
            if piece
        ]

        def render(items: Sequence[Item], tags: str = tags) -> str:
            return escaped(joined(items)) + tags

        yield from units_of(tokens, "entry of an index", render, collapse=False)


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


_TAGS = r"(?:<[^<>]*+>\s*+)*+"
_LETTER = r"(?:(?!&quot;)[^<\"„“”])"
_ENTRY = re.compile(
    rf"<(?:\w+:)?instrText\b[^<>]*+>\s*+(?:XE|TC)\s*+{_TAGS}(?:&quot;|[\"„“”]){_TAGS}"
    rf"(?P<entry>{_LETTER}++(?:(?:</?(?:\w+:)?(?:r|rPr|instrText|lang|noProof|b|i)\b[^<>]*+>\s*+)++{_LETTER}++)*+)"
    rf"{_TAGS}(?:&quot;|[\"“”])"
)


def numbering(text: str, options: Options) -> Iterator[Unit]:
    """The words around the numbers of lists and headings: `Article %1`."""
    for match in re.finditer(r"<(?:\w+:)?lvlText\b[^<>]*?\s(?:\w+:)?val=([\"'])((?:(?!\1)[^<])*)\1", text):
        tokens = [
            Token("protected" if piece.startswith("%") else "text", *match.span(2), _unescaped(piece), fixed=True)
            for piece in re.split(r"(%\d)", match[2])
            if piece
        ]
        if re.search(r"[^\W\d_]{2}", match[2]):  # `a)` and `o`, a bullet, are no words
            yield from units_of(tokens, "numbering", as_value, collapse=False)


def _text(*passes: Pass) -> Part:
    return Part(passes, of_office)


_SHOWN = values_of(SHOWN, "what programs show")
_BODY = ("officedocument", "document", "glossarydocument", "glossary", "header", "footer")


def _parts_of_kinds(below: Beside) -> dict[str, Part]:
    """The way in which the parts are read that Word alone has, by their kind. `below`: of bilingual documents."""
    passes = (
        left_out, *aside("changes", deletions), index_entries, described, _SHOWN,
        *(paragraphs(nested, below) for nested in NESTED),
    )  # fmt: skip
    return {
        **dict.fromkeys(_BODY, _text(*passes)),
        **dict.fromkeys(("footnotes", "endnotes"), _text(*aside("notes", *passes))),
        "comments": _text(*aside("comments", *passes)),
        "numbering": _text(numbering),
        **dict.fromkeys(("styles", "styleswitheffects", "settings"), Part(finish=of_office)),
    }
