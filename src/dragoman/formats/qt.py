"""Translations of Qt Linguist (.ts): what is not finished gets a translation, marked as unfinished."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dragoman.formats.base import Code, Edit, Entry, Item, Options, State, Unit, line_of, refuse, spliced
from dragoman.formats.inline import as_markup, escaped
from dragoman.formats.messages import label
from dragoman.formats.xml import Event, attribute, children, elements, events, local, tokens
from dragoman.languages.codes import language_of, tag_of

_FORMS = {
    1: "bi my zh dz fj gn hu id ja jv ko ms na om fa su tt th bo tr vi yo za yue cmn",
    3: "lv dv iu ik ga gv mi se sm sa sk cs mk lt bs be hr ru sr uk pl ro fil",
    4: "gd sl mt",
    5: "cy",
    6: "ar",
}
"""Plural forms of languages, where they are not two, as Qt has them (`numerus.cpp`), which is not as CLDR does."""
_GONE = ("vanished", "obsolete")


def units(text: str, options: Options) -> Iterator[Unit]:
    """The sources of messages without a finished translation; of all, if translations are to be made again.

    A plural gets as many forms as the target language has.
    """
    for message in _messages(text, options):
        yield from _of_message(text, message, options)


def _messages(text: str, options: Options) -> Iterator[Sequence[Event]]:
    inside = list(events(text, options))
    root = next(event for event in inside if event.kind == "start")
    if local(root.name) != "TS":
        raise refuse(options, text, root.start, f"<{root.name}>, not <TS>: no translations of Qt")
    return (message for _, message in elements(inside, ("message",)))


def _of_message(text: str, message: Sequence[Event], options: Options) -> Iterator[Unit]:
    parts = {local(part[0].name): part for part in children(message)}
    source, target = parts.get("source"), parts.get("translation")
    items, written = _items(text, source[1:-1] if source else ())
    if source is None or not items:
        return
    where = f"line {line_of(text, source[0].start)}"
    blanks = re.search(r"\r?\n[ \t]*$", text[max(0, source[0].start - 200) : source[0].start])
    indent = blanks[0] if blanks else ""
    kept = _reason(target, options)
    opening, closing = '<translation type="unfinished">', "</translation>"
    if target is None:  # behind what belongs to the source
        last = [part for name, part in parts.items() if name != "userdata" and not name.startswith("extra-")][-1]
        start = end = max(last[0].end, last[-1].end)
        opening = indent + opening
    else:
        start, end = target[0].start, max(target[0].end, target[-1].end)
    if kept or attribute(message[0], "numerus") != "yes":
        render = partial(_around, opening, closing, written)
        yield Unit(items, start, end, render, where, kept=kept, bilingual=True)
        return
    deep = indent + "    " if indent else ""
    count = _number_of_forms(options.languages[1])
    for number in range(count):
        before = f"{'' if number else opening}{deep}<numerusform>"
        after = "</numerusform>" + (indent + closing if number == count - 1 else "")
        render = partial(_around, before, after, written)
        yield Unit(items, end if number else start, end, render, where, bilingual=True)


def _reason(target: Sequence[Event] | None, options: Options) -> str:
    """The reason why a translation stays as it is."""
    state = attribute(target[0], "type") if target else ""
    if state in _GONE:
        return "not in the program any more"
    is_done = state != "unfinished" and target is not None and bool(_said(target))
    return "translated already" if is_done and not options.translated_too else ""


def _said(element: Sequence[Event]) -> str:
    return "".join(event.text for event in element).strip()


def _items(text: str, inside: Sequence[Event]) -> tuple[tuple[Item, ...], Callable[[Sequence[Item]], str]]:
    """The items of a source, and what writes its translation. Codes are characters that XML has not."""
    items: list[Item] = []
    for token in tokens(text, inside, lambda _: ("alone", "")):
        if token.kind != "text":
            items.append(Code(token.text, "alone"))
        elif items and isinstance(items[-1], str):
            items[-1] += token.text
        else:
            items.append(token.text)
    if len(items) == 1 and isinstance(items[0], str):
        bare, written = label(items[0])
        return ((bare,), lambda items: escaped(written(items))) if bare.strip() else ((), as_markup)
    return tuple(items), as_markup


def _around(before: str, after: str, written: Callable[[Sequence[Item]], str], items: Sequence[Item]) -> str:
    return before + written(items) + after


def _number_of_forms(language: str) -> int:
    """The number of plural forms that Qt has for a language.

    >>> [_number_of_forms(code) for code in ("de", "pl", "zh_CN", "ar")]
    [2, 3, 1, 6]
    """
    return next((number for number, codes in _FORMS.items() if language_of(language) in codes.split()), 2)


def entries(text: str, options: Options) -> Iterator[Entry]:
    """The pairs of a catalogue, including unfinished pairs; of a plural, the pair for many."""
    root = re.search(r"<TS\b[^<>]*>", text)
    attributes = dict(re.findall(r"(\w+)\s*=\s*[\"']([^\"']*)[\"']", root[0])) if root else {}
    languages = (attributes.get("sourcelanguage", "en"), attributes["language"]) if attributes.get("language") else None
    for message in _messages(text, options):
        parts = {local(part[0].name): part for part in children(message)}
        source, target = parts.get("source"), parts.get("translation", ())
        state = attribute(target[0], "type") if target else "unfinished"
        if source is None or state in _GONE:
            continue
        forms = [_said(form) for _, form in elements(target, ("numerusform",))] or [_said(target)]
        comment = _said(parts.get("comment", ()))
        line = line_of(text, source[0].start)
        guess: State = "fuzzy" if state == "unfinished" else ""
        yield Entry(line, _said(source), forms[-1], guess if forms[-1] else "untranslated", "", languages, comment)


def with_language(text: str, options: Options) -> str:
    """The catalogue with the language of its translations, if it declares no language or the sources' language."""
    root = re.search(r"<TS\b[^<>]*>", text)
    if root is None or not options.languages[1]:
        return text
    language = re.search(r"\slanguage\s*=\s*[\"']([^\"']*)[\"']", root[0])
    if language and language_of(language[1]) not in ("", language_of(options.languages[0])):
        return text
    tag = tag_of(options.languages[1], language[1] if language else "").replace("-", "_")
    start, end = (root.start() + place for place in (language.span(1) if language else [len(root[0].rstrip("/>"))] * 2))
    return spliced(text, [Edit(start, end, tag if language else f' language="{tag}"')])
