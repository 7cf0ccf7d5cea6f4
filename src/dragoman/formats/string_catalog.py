"""Apple's string catalogues (.xcstrings): what has no translation yet gets one, which needs a review."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dragoman.errors import Error
from dragoman.formats.base import Entry, Item, Options, State, Unit, line_of
from dragoman.formats.json_strings import Value, as_json, content_of, values_of
from dragoman.formats.messages import items_of, joined, with_numbered_arguments
from dragoman.formats.plural_forms import says_number
from dragoman.languages.codes import fits, language_of, nearness, script_of, tag_of
from dragoman.languages.plurals import FORMS, plurals_of

_HERE = "\ufdd0"
"""Stands for a text while the surrounding JSON is written: a noncharacter, which no file has."""


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts without a translation; all, if translations are to be made again.

    A text is that of the source language, or else its key. Raises DragomanError for a catalogue of other languages.
    """
    sources, tgt = _sources(text, options)
    layout = _Layout.of(text)
    for key, (entry, source) in sources.items():
        yield from _of_entry(text, key, entry, _copy(source, "", tgt), tgt, layout, options)


def _sources(text: str, options: Options) -> tuple[dict[str, tuple[Any, Any]], str]:
    """(each entry by its key, with its localization in the source language; the name of the target language)."""
    content = content_of(text, options)
    strings = content.get("strings") if isinstance(content, Mapping) else None
    if not isinstance(strings, Mapping):
        raise Error.WRONG_SHAPE('no string catalogue: it has no "strings"', file=options.name)
    names = {name: None for entry in strings.values() for name in _localizations(entry)}
    own = str(content.get("sourceLanguage", ""))
    src, tgt = (_name(code, [own, *names]) for code in options.languages)
    keys_are_texts = nearness(own, src or own) > 0
    if not keys_are_texts and src not in names:
        raise Error.NO_SUCH_LANGUAGE(f"its texts are in {own!r}, not in {src!r}", file=options.name)
    sources = {}
    for key, entry in strings.items():
        source = _localizations(entry).get(src or own)
        if source is None and keys_are_texts:
            source = {"stringUnit": {"value": key}}
        if source is not None and isinstance(entry, Mapping):
            sources[key] = entry, source
    return sources, tgt


def entries(text: str, options: Options) -> Iterator[Entry]:
    """The pairs of a catalogue; of a plural, the pairs of its forms, if both languages have equally many."""
    sources, tgt = _sources(text, options)
    lines = {value.path: line_of(text, value.start) for value in values_of(text) if len(value.path) == 2}
    for key, (entry, source) in sources.items():
        there = _localizations(entry).get(tgt)
        theirs = [*_texts(there)]
        is_guess = not _states(there).isdisjoint({"needs_review", "new"})
        for src_text, tgt_text in zip([*_texts(source)], theirs or [""], strict=False):
            if len(theirs) in (0, len([*_texts(source)])):
                state: State = "untranslated" if not tgt_text else "fuzzy" if is_guess else ""
                yield Entry(lines["strings", key], src_text, tgt_text, state)


def _localizations(entry: Any) -> Mapping[str, Any]:
    localizations = entry.get("localizations") if isinstance(entry, Mapping) else None
    return localizations if isinstance(localizations, Mapping) else {}


def _name(code: str, names: Sequence[str]) -> str:
    """The name that a catalogue has for a language, or would have: `pt-BR`, `zh-Hans`."""
    best = max(names, key=lambda name: (fits(name, code), name == tag_of(code, name)))
    if fits(best, code) or not code:
        return best if code else ""
    if language_of(code) == "zh":
        return f"zh-{script_of(code)}"
    return tag_of(code)


def _copy(node: Any, key: str, language: str) -> Any:
    """A localization, to be reviewed, with the plural forms of a language."""
    if key in ("stringUnit", "stringSet") and isinstance(node, Mapping):
        return {"state": "needs_review", **{name: value for name, value in node.items() if name != "state"}}
    if key == "plural" and isinstance(node, Mapping):
        node = _plural(node, language)
    return {name: _copy(of, name, language) for name, of in node.items()} if isinstance(node, Mapping) else node


def _plural(forms: Mapping[str, Any], language: str) -> Mapping[str, Any]:
    """The forms of a language, each as the source has it, or else as its form for other numbers."""
    plurals = plurals_of(language)
    if plurals is None or "other" not in forms:
        return forms
    unsaid = not says_number(*("".join(_texts(forms.get(name))) for name in ("one", "other")))
    has_zero = "zero" in forms or (unsaid and plurals.counted_as_one == (0, 1))
    names = [name for name in FORMS if name in plurals.forms or (name == "zero" and has_zero)]
    of_21 = unsaid and not plurals.one_is_1 and not has_zero
    like = {name: name if name in forms and not (name == "one" and of_21) else "other" for name in names}
    return {name: forms[like[name]] for name in sorted(names)}


def _texts(node: Any) -> Iterator[str]:
    """The texts of a localization, in order."""
    for unit in _units_in(node):
        values = unit.get("values")
        yield from (
            value for value in (values if isinstance(values, list) else [unit.get("value")]) if isinstance(value, str)
        )


def _units_in(node: Any) -> Iterator[Mapping[str, Any]]:
    """The texts of a localization with their states."""
    for name, of in node.items() if isinstance(node, Mapping) else ():
        if name in ("stringUnit", "stringSet") and isinstance(of, Mapping):
            yield of
        else:
            yield from _units_in(of)


def _states(node: Any) -> set[Any]:
    """The states of the texts of a localization; none for one without a text."""
    return {unit.get("state") for unit in _units_in(node) if any(_texts({"stringUnit": unit}))}


class _Layout(NamedTuple):
    """The way in which a catalogue is written, and the places of its objects."""

    indent: str
    """Blanks that indent a level; "" for a catalogue in one line."""
    newline: str
    colon: str
    places: dict[tuple[str, ...], Value]
    members: dict[int, list[Value]]
    """The values of the object at each place."""

    @classmethod
    def of(cls, text: str) -> "_Layout":
        indent, colon = re.search(r"\{\s*?\n([ \t]+)\"", text), re.search(r"\"(\s*:\s*)[{\"]", text)
        members: defaultdict[int, list[Value]] = defaultdict(list)
        places = {}
        for value in values_of(text):
            if len(value.path) <= 4:
                places[value.path] = value
                members[value.parent].append(value)
        newline = "" if indent is None else "\r\n" if "\r\n" in text else "\n"
        return cls(indent[1] if indent else "", newline, colon[1] if colon else ":", places, members)

    def written(self, node: Any, depth: int) -> str:
        """JSON for a place inside of `depth` others."""
        out = json.dumps(node, ensure_ascii=False, indent=self.indent or None, separators=(",", self.colon))
        return out.replace("\n", self.newline + self.indent * depth)

    def member(self, path: tuple[str, ...], name: str, node: Any) -> tuple[int, int, str]:
        """(from, to, what takes the place) that writes a member into an object, by the order of names, as Xcode."""
        place, depth = self.places[path], len(path) + 1
        member, gap = f"{as_json(name)}{self.colon}{self.written(node, depth)}", self.newline + self.indent * depth
        inside = sorted(self.members[place.start], key=lambda value: value.start)
        following = next((value for value in inside if value.path[-1] >= name), None)
        if following is not None and following.path[-1] == name:
            return following.start, following.end, self.written(node, depth)
        if following is not None:
            return following.key_at, following.key_at, f"{member},{gap}"
        if inside:
            return inside[-1].end, inside[-1].end, f",{gap}{member}"
        return place.start + 1, place.end - 1, f"{gap}{member}{self.newline}{self.indent * (depth - 1)}"


def _of_entry(
    text: str, key: str, entry: Any, made: Any, language: str, layout: _Layout, options: Options
) -> Iterator[Unit]:
    """The units of a text, of its plural forms and of its forms for kinds of devices; each unit writes the JSON before
    it."""
    there = _localizations(entry).get(language)
    kept = ""
    if entry.get("shouldTranslate") is False:
        kept = "shouldTranslate: false"
    elif entry.get("extractionState") == "stale":
        kept = "not in the program any more"
    elif _states(there) - {"new"} and not options.translated_too:
        kept = "translated already"
    sources = [source for source in _texts(made) if source.strip()]
    path = ("strings", key)
    where = f"line {line_of(text, layout.places[path].start)}, {key}"
    if kept or not sources:
        yield from (Unit(items_of(source), 0, 0, joined, where, kept=kept, bilingual=True) for source in sources)
        return
    if (*path, "localizations") in layout.places:
        start, end, written = layout.member((*path, "localizations"), language, _with_places(made))
    else:
        start, end, written = layout.member(path, "localizations", {language: _with_places(made)})
    *before, after = written.split(f'"{_HERE}"')
    for number, (source, own) in enumerate(zip(sources, before, strict=True)):
        render = partial(_rendered, own, after if number == len(sources) - 1 else "")
        unit = Unit(items_of(source), end if number else start, end, render, where, bilingual=True)
        yield with_numbered_arguments(unit)


def _with_places(node: Any) -> Any:
    """A localization with a mark in the place of each text."""
    if not isinstance(node, Mapping):
        return node
    out = {name: _with_places(of) for name, of in node.items()}
    for name in {"stringUnit", "stringSet"}.intersection(out):
        for place, of in out[name].items() if isinstance(out[name], Mapping) else ():
            if place == "value" and isinstance(of, str) and of.strip():
                out[name][place] = _HERE
            elif place == "values" and isinstance(of, list):
                out[name][place] = [_HERE if isinstance(value, str) and value.strip() else value for value in of]
    return out


def _rendered(before: str, after: str, items: Sequence[Item]) -> str:
    return before + as_json(joined(items)) + after
