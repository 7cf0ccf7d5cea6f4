"""XLIFF 1.2 and 2.x, and TMX: a source, and beside it its translation.

What has no translation yet gets one, in a `<target>` that says that it is to be reviewed. In a TMX, a unit without the
target language gets it.
"""

import functools
import html
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from xml.sax.saxutils import quoteattr

from dragoman.formats.base import Code, Edit, Item, Limit, Options, Unit, line_of, spliced
from dragoman.formats.inline import Kind, Token, as_markup, units_of
from dragoman.formats.messages import with_arms
from dragoman.formats.xml import Event, attribute, elements, events, local, tokens
from dragoman.languages.codes import fits, nearness, tag_of
from dragoman.languages.scripts import SAME_STANDARD, best_variant
from dragoman.progress import say

PAIRS = ("g", "pc", "mrk", "hi")
_TAG = re.compile(
    r"(?:START|(?P<id_end>CLOSE))_(?P<id>[A-Z][A-Z0-9_]*)|<(?P<end>/)?(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?(?<!/)>"
)
"""The words of a code for one tag of a pair: `START_LINK` and `CLOSE_LINK` (Angular), `<b>` and `</b>`."""
_BREAK = re.compile(r"(?:^|[|:-])(?:lb|pb|br|tab)(?:\||$)|<br\s*/?>|\|[\r\n\t]+$|\\[nt](?:\||$)")
"""The words of a code for a line break or a tab: `ctype="lb"`, `equiv-text="&lt;br/&gt;"`, `&lt;br&gt;` in it."""


@dataclass(frozen=True)
class _Says:
    """The facts that an element states for all that is in it."""

    kept: str = ""
    """The reason why nothing is translated; "" if there is none."""
    approved: bool = False
    space: str = ""
    """`preserve` where white space counts."""
    limit: Limit | None = None

    def inside(self, event: Event) -> "_Says":
        """The facts for an element inside of this element."""
        translate, space = attribute(event, "translate"), attribute(event, "space")
        approved = attribute(event, "approved") == "yes" or attribute(event, "state") in ("final", "reviewed")
        kept = 'translate="no"' if translate == "no" else "" if translate == "yes" else self.kept
        limit = _limit(event) or self.limit
        return _Says(LOCKED if _is_locked(event) else kept, approved, space or self.space, limit)


def _limit(event: Event) -> Limit | None:
    """The most that a translation may have: `maxwidth` and `maxbytes` (1.2), restrictions of size (2), Weblate's flag.

    A width in pixels, which is meant where no `size-unit` stands, cannot be known here.
    """
    unit, width = attribute(event, "size-unit"), attribute(event, "maxwidth")
    size, storage = (attribute(event, f"{name}Restriction").rpartition(",")[2] for name in ("size", "storage"))
    characters = (width if unit == "char" else "") or size
    if characters.isdecimal():
        return Limit(int(characters))
    if in_flags := Limit.in_flags(attribute(event, "weblate-flags")):
        return in_flags
    in_bytes = (width if unit == "byte" else "") or attribute(event, "maxbytes") or storage
    return Limit(int(in_bytes), "bytes") if in_bytes.isdecimal() else None


def _is_locked(event: Event) -> bool:
    """True for what nobody may change: `mq:locked="locked"` (memoQ), `m:locked="true"` (Phrase), `locked="true"`."""
    return attribute(event, "locked") in ("true", "locked")


LOCKED = "locked"
IN_CODES = "texts inside of codes (<sub>)"
_FRAMES = ("xliff", "file", "body", "group", "trans-unit", "unit", "segment")


def xliff_units(text: str, options: Options) -> Iterator[Unit]:
    """The sources without a translation; all, if translations are to be made again."""
    says = [_Says()]
    unit: list[Event] = []
    version, name = "1.2", ""
    data: dict[str, str] = {}  # the codes of XLIFF 2, which stand in front of the segments
    for event in events(text, options):
        tag = local(event.name)
        if event.kind == "start" and tag == "xliff":
            version = attribute(event, "version", "1.2")
        if event.kind == "start" and tag in _FRAMES:
            says.append(says[-1].inside(event))
        if tag in ("trans-unit", "segment") and event.kind == "start":
            unit = []
        if tag == "data":
            name = attribute(event, "id") if event.kind == "start" else ""
            data[name] = ""
        elif event.kind == "text" and name:
            data[name] += event.text
        elif "dataRef" in event.attributes:
            shown = data.get(event.attributes["dataRef"], "")
            event = event._replace(attributes={**event.attributes, "disp": shown})
        unit.append(event)
        if event.kind == "end" and tag in ("trans-unit", "segment"):
            yield from _TransUnit(text, unit, version, says[-1], options).units()
            unit = []
        if event.kind == "end" and tag in _FRAMES:
            says.pop()


class _TransUnit:
    """A `<trans-unit>`, or a `<segment>` of XLIFF 2: a source, and a target that is there or not."""

    def __init__(self, text: str, inside: Sequence[Event], version: str, says: _Says, options: Options) -> None:
        self.text, self.inside, self.says, self.options = text, inside, says, options
        self.is_old = version.startswith("1")
        self.source, self.target = _element(inside, "source"), _element(inside, "target")
        # A tool that has cut the source into segments wants them marked in the target, too.
        if (cut := _element(inside, "seg-source")) is not None:
            self.source = cut

    def units(self) -> Iterator[Unit]:
        """The units, one for each segment."""
        if self.source is None:
            return
        yield from _texts_of_codes(self.text, self.source)
        segments = _segments(self.source)
        theirs = {attribute(one[0], "mid"): one for one in _segments(self.target or ())}
        if not segments:
            yield from self._one(self.source)
        elif self.target is not None and (theirs or _has_text(self.target)):
            for segment in segments:
                yield from self._beside(segment, theirs)
        else:
            yield from self._all(segments)

    def _one(self, source: Sequence[Event]) -> Iterator[Unit]:
        """The unit of a source without segments."""
        unit = self._unit(source)
        if unit is None:
            return
        start, end = self._place()
        if reason := self._reason(self.target):
            yield replace(unit, start=start, end=end, kept=reason, bilingual=True)
            return
        before, after = self.text[source[0].end : unit.start], self.text[unit.end : source[-1].start]
        opening, closing = self._opening()
        also = () if self.is_old else _initial(self.text, self.inside[0])
        render = partial(_around, opening + before, after + closing)
        yield replace(unit, start=start, end=end, render=render, also=also, bilingual=True)

    def _all(self, segments: Sequence[Sequence[Event]]) -> Iterator[Unit]:
        """The units of the segments of a source whose target is made: each writes what stands before it, too."""
        assert self.source is not None
        start, end = self._place()
        opening, closing = self._opening()
        before = opening + self.text[self.source[0].end : segments[0][0].start]
        for number, segment in enumerate(segments):
            following = segments[number + 1][0].start if number + 1 < len(segments) else self.source[-1].start
            unit = self._unit(segment)
            if unit is None:  # nothing is in it
                before += self.text[segment[0].start : following]
                continue
            before += self.text[segment[0].start : unit.start]
            after = self.text[unit.end : following] + (closing if following == self.source[-1].start else "")
            kept = self._reason(None, segment)
            render = partial(_around, before, after)
            yield replace(
                unit, start=start, end=end, render=render, also=self._draft(segment), kept=kept, bilingual=True
            )
            before, start = "", end

    def _beside(self, segment: Sequence[Event], theirs: dict[str, Sequence[Event]]) -> Iterator[Unit]:
        """The unit of a segment whose target has segments of its own."""
        assert self.target is not None
        unit, target = self._unit(segment), theirs.get(attribute(segment[0], "mid"))
        if unit is None:
            return
        if target is None and not theirs:  # what is there belongs to all of them
            yield replace(unit, kept=self._reason(self.target) or "translated already", bilingual=True)
        elif target is None:
            end = self.target[-1].start
            before, after = self.text[segment[0].start : unit.start], self.text[unit.end : segment[-1].end]
            render = partial(_around, " " + before, after)
            kept = self._reason(None, segment)
            yield replace(unit, start=end, end=end, render=render, also=self._draft(segment), kept=kept, bilingual=True)
        else:
            place = target[0].start, max(target[0].end, target[-1].end)
            before, after = self.text[segment[0].start : unit.start], self.text[unit.end : segment[-1].end]
            kept, also = self._reason(target, segment), self._draft(segment)
            yield replace(
                unit, start=place[0], end=place[1], render=partial(_around, before, after), also=also, kept=kept,
                bilingual=True,
            )  # fmt: skip

    def _unit(self, source: Sequence[Event]) -> Unit | None:
        """The unit of the content of an element; None for an empty element."""
        where = f"line {line_of(self.text, source[0].start)}"
        preserve = self._preserves(source[0])
        content = None if preserve else self.text
        units = units_of(_tokens(self.text, source), where, source=content, collapse=not preserve)
        unit = next(units, None)
        if unit is None:
            return _without_letters(self.text, source, where)
        return replace(unit, items=with_arms(unit.items), limit=self.says.limit)

    def _preserves(self, event: Event) -> bool:
        """True if white space counts in an element of the unit."""
        return (attribute(event, "space") or self.says.space) == "preserve"

    def _reason(self, target: Sequence[Event] | None, segment: Sequence[Event] = ()) -> str:
        """The reason why nothing is to be translated; "" if there is none."""
        has_text = target is not None and _has_text(target)
        if self.says.kept or (segment and any(map(_is_locked, self._of_trados(segment)))):
            return self.says.kept or LOCKED
        if self.says.approved and has_text:
            return "approved"
        if not has_text or self.options.translated_too or target is None:
            return ""
        state = attribute(target[0], "state") or ("" if self.is_old else attribute(self.inside[0], "state"))
        return "" if state.startswith(("new", "needs-translation", "initial")) else "translated already"

    def _place(self) -> tuple[int, int]:
        if self.target is not None:
            return self.target[0].start, max(self.target[0].end, self.target[-1].end)
        assert self.source is not None
        return self.source[-1].end, self.source[-1].end

    def _opening(self) -> tuple[str, str]:
        """The tags around the translation: the tags of the file, with the state that asks for a review."""
        assert self.source is not None
        name = self.source[0].name[: -len(local(self.source[0].name))] + "target"
        state = ' state="needs-review-translation"' if self.is_old else ""
        space = ' xml:space="preserve"' if self._preserves(self.source[0]) else ""
        if self.target is None:
            return f"{_indent(self.text, self.source[0].start)}<{name}{state}{space}>", f"</{name}>"
        written = self.text[self.target[0].start : self.target[0].end]
        opening = re.sub(r"\s*/?>$", ">", re.sub(r"\s(?:state|state-qualifier)=(\"[^\"]*\"|'[^']*')", "", written))
        space = "" if attribute(self.target[0], "space") else space
        return f"{opening[:-1]}{state}{space}>", f"</{name}>"

    def _draft(self, segment: Sequence[Event]) -> tuple[Edit, ...]:
        """The state of a segment: Trados says of each how far it is."""
        for event in self._of_trados(segment):
            written = self.text[event.start : event.end]
            if match := re.search(r"\sconf=(\"[^\"]*\"|'[^']*')", written):
                return (Edit(event.start + match.start(1), event.start + match.end(1), '"Draft"'),)
        return ()

    def _of_trados(self, segment: Sequence[Event]) -> Sequence[Event]:
        """The tags in which Trados keeps what it knows of a segment."""
        return self._trados.get(attribute(segment[0], "mid"), ())

    @functools.cached_property
    def _trados(self) -> dict[str, list[Event]]:
        """The tags of Trados by the segment's number."""
        known: dict[str, list[Event]] = {}
        for event in self.inside:
            if event.kind == "start" and event.name == "sdl:seg" and "id" in event.attributes:
                known.setdefault(event.attributes["id"], []).append(event)
        return known


def _around(before: str, after: str, items: Sequence[Item]) -> str:
    return before + as_markup(items) + after


def _segments(source: Sequence[Event]) -> list[Sequence[Event]]:
    """The segments that a tool has cut a source or a target into."""
    marks = (mark for _, mark in elements(source, ("mrk",)))
    return [mark for mark in marks if attribute(mark[0], "mtype") == "seg"]


def _texts_of_codes(text: str, element: Sequence[Event]) -> Iterator[Unit]:
    """The texts inside of codes (`<ph>&lt;img alt="<sub>a dog</sub>"&gt;</ph>`), which stay."""
    for _, inside in elements(element, ("sub",)):
        for unit in units_of(_tokens(text, inside), f"line {line_of(text, inside[0].start)}"):
            yield replace(unit, kept=IN_CODES)


def _has_text(element: Sequence[Event]) -> bool:
    return any(event.kind == "text" and event.text.strip() for event in element)


def _without_letters(text: str, source: Sequence[Event], where: str) -> Unit | None:
    """A source with nothing to translate, which is its own translation; None for an empty source."""
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
    return next((element for _, element in elements(inside, (name,), skipped=skipped)), None)


def _indent(text: str, at: int) -> str:
    """The line break and the spaces before a tag."""
    match = re.search(r"\r?\n[ \t]*$", text[max(0, at - 200) : at])
    return match.group() if match else ""


def _tokens(text: str, element: Sequence[Event]) -> list[Token]:
    content = _with_ranges_kept(text, list(tokens(text, element[1:-1], _whole)))
    return list(_with_tags_of_phrase(text, content) if "memsource" in text[:4096] else content)


def _with_ranges_kept(text: str, tokens: list[Token]) -> Iterator[Token]:
    """Tokens in which all tokens from `<sm translate="no"/>` to its `<em/>` are joined into one, or only their texts if
    the joined token would part a pair."""
    at = 0
    while at < len(tokens):
        begin, ended = at, tokens[at].name.replace("sm ", "em ", 1)
        if tokens[at].name.startswith("sm "):
            at = next((place for place in range(at, len(tokens)) if tokens[place].name == ended), len(tokens) - 1)
        at += 1
        inside = tokens[begin:at]
        depths = list(itertools.accumulate({"open": 1, "close": -1}.get(token.kind, 0) for token in inside))
        if len(inside) > 1 and min(depths) == depths[-1] == 0:
            raw = text[inside[0].start : inside[-1].end]
            yield Token("protected", inside[0].start, inside[-1].end, raw)
        elif len(inside) > 1:
            for token in inside:
                raw = text[token.start : token.end]
                yield token._replace(kind="protected", text=raw) if token.kind == "text" else token
        else:
            yield from inside


def _with_tags_of_phrase(text: str, tokens: Iterable[Token]) -> Iterator[Token]:
    """Tokens with the pairs of tags that Phrase writes as text: `{b&gt;bold&lt;b}`."""
    for kind, group in itertools.groupby(tokens, lambda token: token.kind):
        run = list(group)
        if kind != "text":
            yield from run
            continue
        done, end = run[0].start, run[-1].end
        for tag in [*_TAG_OF_PHRASE.finditer(text, done, end), None]:
            stop = tag.start() if tag else end
            if done < stop:
                yield Token("text", done, stop, html.unescape(text[done:stop]))
            if tag:
                yield Token("open" if tag["begin"] else "close", *tag.span(), tag.group(), tag["begin"] or tag["end"])
                done = tag.end()


_TAG_OF_PHRASE = re.compile(r"\{(?P<begin>\w+)(?:&gt;|>)|&lt;(?P<end>\w+)\}")


def _whole(element: Sequence[Event]) -> tuple[Kind, str] | None:
    event = element[0]
    tag = local(event.name)
    if tag in PAIRS:
        if attribute(event, "mtype") == "x-sdl-deleted":
            return "alone", ""
        if attribute(event, "translate") == "no" or attribute(event, "mtype") == "protected":
            return "protected", ""
        return ("alone", "") if len(element) == 2 else None
    if tag in ("bpt", "sc", "bx"):
        return "open", f"i{_number(event)}"
    if tag in ("ept", "ec", "ex"):
        return "close", f"i{_number(event)}"
    if tag == "em" or (tag == "sm" and attribute(event, "translate") == "no"):
        return "alone", f"{tag} {attribute(event, 'startRef' if tag == 'em' else 'id')}"
    content = "".join(inner.text for inner in element)
    says = "|".join([*event.attributes.values(), content])
    if _BREAK.search(says):
        return "break", ""
    shown = (attribute(event, name) for name in ("id", "equiv", "equiv-text", "disp"))
    one = next((match for text in (content, *shown) if (match := _TAG.fullmatch(text.strip()))), None)
    if one is None:
        return "alone", ""
    return ("close" if one["id_end"] or one["end"] else "open"), f"<{one['id'] or one['name']}>"


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
        variants.setdefault(attribute(variant[0], "lang"), variant)
    texts = {code: "".join(event.text for event in variant) for code, variant in variants.items()}
    own = best_variant(texts, src) or ""
    source = variants.get(own)
    segment = _element(source, "seg") if source else None
    if source is None or segment is None:
        return
    yield from _texts_of_codes(text, segment)
    where = f"line {line_of(text, segment[0].start)}"
    unit = next(units_of(_tokens(text, segment), where, source=text), None) or _without_letters(text, segment, where)
    if unit is None:
        return
    before, after = text[segment[0].end : unit.start], text[unit.end : segment[-1].start]
    theirs_is = best_variant({code: text for code, text in texts.items() if code != own}, tgt, SAME_STANDARD)
    target = None if theirs_is is None else variants[theirs_is]
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
    """The file with its target language, wherever it says none or the source's, as a template does."""
    tgt = options.languages[1]
    edits: list[Edit] = []
    for event in events(text, options):
        names = _LANGUAGES.get(local(event.name)) if event.kind == "start" and tgt else None
        if names is None or not attribute(event, names[0]):
            continue
        value = re.search(rf"\s{names[1]}\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", text[event.start : event.end])
        src, declared = (attribute(event, name) for name in names)
        if value is None:
            end = event.end - (2 if text[event.start : event.end].endswith("/>") else 1)
            edits.append(Edit(end, end, f" {names[1]}={quoteattr(tag_of(tgt))}"))
        elif not declared or (nearness(declared, src) and not fits(declared, tgt)):
            start, end = (event.start + place for place in value.span(value.lastindex or 0))
            edits.append(Edit(start, end, tag_of(tgt)))
        elif not fits(declared, tgt):
            say(f"{options.name}: says that it is translated into {declared!r}, not {tgt!r}; this stays as it is")
    return spliced(text, edits)


_LANGUAGES = {"xliff": ("srcLang", "trgLang"), "file": ("source-language", "target-language")}
"""The attributes of elements that name the two languages."""
