"""XLIFF 1.2 and 2.x, and TMX: a source, and beside it its translation.

What has no translation yet gets one, in a `<target>` that says that it is to be reviewed. In a TMX, a unit without the
target language gets it.
"""

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import quoteattr

from dragoman.formats.base import Code, Edit, Item, Options, Unit, line_of
from dragoman.formats.inline import Kind, Token, as_markup, units_of
from dragoman.formats.xml import Event, attribute, elements, events, local, tokens
from dragoman.languages.codes import language_of

PAIRS = ("g", "pc", "mrk", "hi")
_BREAK = re.compile(r"(?:^|[|:-])(?:lb|pb|br|tab)(?:\||$)|<br\s*/?>|\|[\r\n\t]+$|\\[nt](?:\||$)")
"""The words of a code for a line break or a tab: `ctype="lb"`, `equiv-text="&lt;br/&gt;"`, `&lt;br&gt;` in it."""


def xliff_units(text: str, options: Options) -> Iterator[Unit]:
    """The sources without a translation; all, if translations are to be made again."""
    kept: list[bool] = []
    approved: list[bool] = []
    segment: list[Event] = []
    version = "1.2"
    for event in events(text, options):
        tag = local(event.name)
        if event.kind == "start" and tag == "xliff":
            version = attribute(event, "version", "1.2")
        if event.kind == "start" and tag in ("file", "group", "trans-unit", "unit", "segment"):
            says = attribute(event, "translate")
            kept.append(says == "no" or (says != "yes" and any(kept[-1:])))
            approved.append(attribute(event, "approved") == "yes" or attribute(event, "state") in ("final", "reviewed"))
        if tag in ("trans-unit", "segment") and event.kind == "start":
            segment = []
        segment.append(event)
        if event.kind == "end" and tag in ("trans-unit", "segment"):
            yield from _segment(text, segment, version, kept[-1], approved[-1], options)
            segment = []
        if event.kind == "end" and tag in ("file", "group", "trans-unit", "unit", "segment"):
            kept.pop()
            approved.pop()


def _segment(
    text: str, inside: Sequence[Event], version: str, kept: bool, approved: bool, options: Options
) -> Iterator[Unit]:
    # A tool that has cut the source into sentences wants them marked in the target, too.
    source, target = _element(inside, "seg-source") or _element(inside, "source"), _element(inside, "target")
    if source is None:
        return
    where = f"line {line_of(text, source[0].start)}"
    collapse = attribute(source[0], "space") != "preserve"
    found = units_of(_tokens(text, source), where, source=text if collapse else None, collapse=collapse)
    unit = next(found, None) or _without_letters(text, source, where)
    if unit is None:
        return
    has_target = target is not None and any(event.kind == "text" and event.text.strip() for event in target)
    reason = 'translate="no"' if kept else "approved" if approved and has_target else ""
    if not reason and has_target and not options.translated_too:
        assert target is not None
        if not attribute(target[0], "state").startswith(("new", "needs-translation", "initial")):
            reason = "translated already"
    before, after = text[source[0].end : unit.start], text[unit.end : source[-1].start]
    start, end = (target[0].start, target[-1].end) if target is not None else (source[-1].end, source[-1].end)
    if reason:
        yield Unit(unit.items, start, end, as_markup, where, kept=reason, bilingual=True)
        return
    name = source[0].name[: -len(local(source[0].name))] + "target"
    state = ' state="needs-review-translation"' if version.startswith("1") else ""
    opening = f"<{name}{state}>"
    if target is not None:
        written = text[target[0].start : target[0].end]
        opening = re.sub(r"\s*/?>$", ">", re.sub(r"\s(?:state|state-qualifier)=(\"[^\"]*\"|'[^']*')", "", written))
        opening = opening[:-1] + state + ">"
    indent = "" if target is not None else _indent(text, source[0].start)
    also = () if version.startswith("1") else _initial(text, inside[0])

    def render(items: Sequence[Item]) -> str:
        return f"{indent}{opening}{before}{as_markup(items)}{after}</{name}>"

    yield Unit(unit.items, start, end, render, where, also, bilingual=True)


def _without_letters(text: str, source: Sequence[Event], where: str) -> Unit | None:
    """A source with nothing to translate, which is its own translation; None for one with nothing in it."""
    start, end = source[0].end, source[-1].start
    content = text[start:end]
    return Unit((Code(content, "protected"),), start, end, as_markup, where) if content.strip() else None


def _initial(text: str, segment: Event) -> tuple[Edit, ...]:
    """XLIFF 2 says of the segment that it is translated, not of the target."""
    written = text[segment.start : segment.end]
    match = re.search(r"\sstate=(\"[^\"]*\"|'[^']*')", written)
    if match:
        return (Edit(segment.start + match.start(1), segment.start + match.end(1), '"translated"'),)
    return ()


def _element(inside: Sequence[Event], name: str) -> Sequence[Event] | None:
    """The events of the first element of a name, its two tags included; not those of other translations offered."""
    skipped = ("alt-trans", "notes", "originalData")
    return next((found for _, found in elements(inside, (name,), skipped=skipped)), None)


def _indent(text: str, at: int) -> str:
    """The line break and the spaces before a tag."""
    match = re.search(r"\r?\n[ \t]*$", text[max(0, at - 200) : at])
    return match.group() if match else ""


def _tokens(text: str, element: Sequence[Event]) -> list[Token]:
    return list(tokens(text, element[1:-1], _whole))


def _whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
    event = element[0]
    tag = local(event.name)
    if tag in PAIRS:
        if attribute(event, "translate") == "no" or attribute(event, "mtype") == "protected":
            return "protected", ""
        return ("alone", "") if len(element) == 2 else None
    if tag in ("bpt", "sc", "bx"):
        return "open", f"i{_number(event)}"
    if tag in ("ept", "ec", "ex"):
        return "close", f"i{_number(event)}"
    says = "|".join([*event.attributes.values(), "".join(inner.text for inner in element)])
    return ("break" if _BREAK.search(says) else "alone"), ""


def _number(event: Event) -> str:
    """The number that the beginning and the end of a pair have in common."""
    names = {"sc": ("id",), "ec": ("startRef",)}.get(local(event.name), ("i", "rid", "id"))
    return next(filter(None, (attribute(event, name) for name in names)), "")


def tmx_units(text: str, options: Options) -> Iterator[Unit]:
    """The units of a TMX that lack the target language; all, if translations are to be made again."""
    src, tgt = options.languages
    for _, unit in elements(events(text, options), ("tu",)):
        yield from _tu(text, unit, src, tgt, options)


def _tu(text: str, inside: Sequence[Event], src: str, tgt: str, options: Options) -> Iterator[Unit]:
    variants: dict[str, Sequence[Event]] = {}
    for _, variant in elements(inside, ("tuv",)):
        variants.setdefault(language_of(attribute(variant[0], "lang")), variant)
    source = variants.get(language_of(src))
    segment = _element(source, "seg") if source else None
    if source is None or segment is None:
        return
    where = f"line {line_of(text, segment[0].start)}"
    unit = next(units_of(_tokens(text, segment), where, source=text), None) or _without_letters(text, segment, where)
    if unit is None:
        return
    before, after = text[segment[0].end : unit.start], text[unit.end : segment[-1].start]
    target = variants.get(language_of(tgt))
    if target is not None:
        theirs = _element(target, "seg")
        if theirs is None:
            return
        if not options.translated_too and any(event.text.strip() for event in theirs):
            yield Unit(
                unit.items, theirs[0].start, theirs[-1].end, as_markup, where, kept="translated already", bilingual=True
            )
            return
        start_at, end_at, opening, closing = theirs[0].start, theirs[-1].end, "", ""
    else:
        start_at = end_at = source[-1].end
        opening = f"{_indent(text, source[0].start)}<tuv xml:lang={quoteattr(tgt)}>"
        closing = "</tuv>"

    def render(items: Sequence[Item]) -> str:
        return f"{opening}<seg>{before}{as_markup(items)}{after}</seg>{closing}"

    yield Unit(unit.items, start_at, end_at, render, where, bilingual=True)


def with_target_language(text: str, options: Options) -> str:
    """The file with its target language, where it does not say one."""
    tgt = options.languages[1]
    for event in events(text, options):
        tag = local(event.name)
        if event.kind != "start" or not tgt:
            continue
        src, name = {"xliff": ("srcLang", "trgLang"), "file": ("source-language", "target-language")}.get(tag, ("", ""))
        if name and attribute(event, src) and not attribute(event, name):
            end = event.end - (2 if text[event.start : event.end].endswith("/>") else 1)
            return f"{text[:end]} {name}={quoteattr(tgt)}{text[end:]}"
    return text
