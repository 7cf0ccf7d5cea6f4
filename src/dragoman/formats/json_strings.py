"""JSON with messages of a program (i18n files): the values that are texts; keys stay."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dragoman.errors import Error
from dragoman.formats.base import Edit, Item, Options, Unit, has_letters, line_of, spliced
from dragoman.formats.encoding import as_java_escape, is_escaped
from dragoman.formats.language import tag_like
from dragoman.formats.messages import items_of, message
from dragoman.formats.plural_forms import Form, blanks_before, forms_in
from dragoman.languages.codes import language_of
from dragoman.languages.plurals import FORMS, plurals_of

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_NO_TEXT = re.compile(
    r"(?:https?:|mailto:|data:|/|\./|#)\S*|[\w.+-]+@[\w.-]+|\S+\.(?:png|jpe?g|svg|gif|html?|css|js|json|md|txt|pdf)"
    r"|[a-z]{2,3}[-_][A-Z]{2}|\$\w+|[a-z0-9]+(?:[_.:][a-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+){2,}"
    r"|:[a-z_]+|(?:%[-^_#0]?[A-Za-z](?![A-Za-z])|[^\w%]|\d)+"
)
"""Values that are names, addresses, files, Ruby's symbols or formats of dates."""
NAMES = "names, addresses, files"
SKIPPED_KEYS = frozenset(
    {"@@locale", "@@last_modified", "locale", "lang", "language", "id", "key", "type", "version", "$schema"}
)
"""Keys whose values are codes, unless they have several words."""
CODES = "keys of codes such as id, type, lang"
NOTES = "keys of notes for translators"
SETTINGS = "keys of a program's settings, not of messages"
_OF_SETTINGS = frozenset({
    "dependencies", "devDependencies", "peerDependencies", "lockfileVersion", "compilerOptions", "eslintConfig",
    "manifest_version", "require-dev", "autoload",
})  # fmt: skip
"""Keys that files of messages have not: `package.json`, `tsconfig.json`, `composer.json` ..."""
_VERSION = re.compile(r"v?\d+\.\d+")


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts among the values."""
    reason = reasons(content_of(text, options))
    values = [value for value in values_of(text) if text[value.start] == '"']
    of = partial(_unit, text, reason, is_escaped(text))
    plurals = _plurals(text, values, options.languages[0])
    for value in values:
        group = plurals.get((value.parent, value.key_at))
        if group is None:
            yield from of(value)
        elif value is group[0][0]:
            forms = [
                Form(name, one.key_end - 1 - len(name), one.key_at, one.end, next(of(one), None)) for one, name in group
            ]
            between = "," + blanks_before(text, forms[-1].start)
            yield from forms_in(text, forms, options.languages[1], between, zero_is_0=True)


def content_of(text: str, options: Options) -> Any:
    """The content of JSON. Raises DragomanError for what is none, or is nested too deep."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Error.BAD_SYNTAX(f"not JSON: {error.msg}", file=options.name, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise Error.BAD_SYNTAX("not JSON: nested too deep", file=options.name) from error


def with_locale(text: str, options: Options) -> str:
    """The file with the target language where its top names the source's: `"locale": "en"`, or as its only key."""
    src, tgt = options.languages
    content = content_of(text, options)
    edits = []
    for value in values_of(text) if tgt and isinstance(content, dict) else ():
        [name, *deeper] = value.path or ("", "")
        is_root = len(content) == 1 and isinstance(content[name], dict) if not deeper else False
        code = name if is_root else content.get(name) if name in _NAMING_LANGUAGE and not deeper else ""
        if isinstance(code, str) and _CODE.fullmatch(code) and language_of(code) == language_of(src):
            start, end = (value.key_at, value.key_end) if is_root else (value.start, value.end)
            edits.append(Edit(start, end, as_json(tag_like(tgt, code))))
    return spliced(text, edits)


_NAMING_LANGUAGE = ("@@locale", "locale", "lang", "language")
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z]+)*")


class Value(NamedTuple):
    """A text, an object or a list in JSON, from `start` to `end`, with the place of its key, if it has one."""

    path: tuple[str, ...]
    """The keys that lead there, "" for the place in a list."""
    start: int
    end: int
    key_at: int = -1
    key_end: int = -1
    parent: int = -1
    """The place of the object or list around it."""


def values_of(text: str) -> Iterator[Value]:
    """The texts, objects and lists of JSON, inner ones first."""
    opened: list[tuple[int, str, re.Match[str] | None]] = []  # place, name and key of the objects and lists around
    name, key = "", None
    pending: re.Match[str] | None = None

    def value(start: int, end: int) -> Value:
        path = (*(one for _, one, _ in opened), name)
        place = key.span() if key else (-1, -1)
        return Value(path[1:], start, end, *place, opened[-1][0] if opened else -1)

    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == '"':
            pending = match
            continue
        if token == ":":
            assert pending is not None
            name, key, pending = json.loads(pending.group()), pending, None
            continue
        if pending is not None:
            yield value(*pending.span())
            pending = None
        if token in "{[":
            opened.append((match.start(), name, key))
            name, key = "", None
        elif token in "}]":
            start, name, key = opened.pop()
            yield value(start, match.end())
        if token == ",":
            name, key = "", None
    if pending is not None:
        yield value(*pending.span())


def _plurals(text: str, values: Sequence[Value], language: str) -> dict[tuple[int, int], list[tuple[Value, str]]]:
    """The texts of each plural, with the names of their forms, by the object that each is in and the place of its key:
    i18next's `key_one` and `key_other`, or `one` and `other` alone in an object.

    Names of forms that the source language has not are words: `choice_two`.
    """
    plurals = plurals_of(language)
    names = {*(plurals.forms if plurals else FORMS), "other", "zero"}
    groups: defaultdict[tuple[int, str], list[tuple[Value, str]]] = defaultdict(list)
    others: set[int] = set()
    """Objects that hold more than forms."""
    for value in values:
        base, mark, form = value.path[-1].rpartition("_") if value.key_at >= 0 else ("", "", "")
        if form not in FORMS or (mark and not base) or base.endswith("_ordinal"):
            others.add(value.parent)
            continue
        groups[value.parent, base].append((value, form))
    by_place = {}
    for (parent, base), group in groups.items():
        forms = [form for _, form in group]
        if len(forms) > 1 and "other" in forms and names.issuperset(forms) and (base or parent not in others):
            by_place.update({(parent, value.key_at): group for value, _ in group})
    return by_place


def reasons(content: Any) -> Callable[[Sequence[str], str], str]:
    """Gives the reason why a value is left as it is, by its keys; "" for a text."""
    is_package = isinstance(content, Mapping) and "name" in content and _VERSION.match(str(content.get("version")))
    if isinstance(content, Mapping) and (is_package or not _OF_SETTINGS.isdisjoint(content)):
        return lambda path, value: SETTINGS
    entries = list(content.values()) if isinstance(content, Mapping) else []
    is_arb = bool(entries) and any(key[:2] == "@@" or (key[:1] == "@" and key[1:] in content) for key in content)
    # Browsers' extensions: {"name": {"message": "...", "description": "..."}}
    is_of_browser = bool(entries) and all(isinstance(entry, Mapping) and "message" in entry for entry in entries)

    def reason(path: Sequence[str], value: str) -> str:
        keys = [key for key in path if key]
        if any(key.startswith("@") and key != "@@locale" for key in keys) or (
            is_of_browser and keys[-1:] != ["message"]
        ):
            return NOTES
        is_label = value[:1].isupper() and value.lower() == keys[-1] if keys else False  # "language": "Language"
        if keys and keys[-1] in SKIPPED_KEYS and len(value.split()) < 2 and not is_label:
            return "" if is_arb and len(keys) == 1 and keys[-1] != "@@locale" else CODES
        return NAMES if _NO_TEXT.fullmatch(value.strip()) else ""

    return reason


def _unit(text: str, reason: Callable[[Sequence[str], str], str], ascii_only: bool, value: Value) -> Iterator[Unit]:
    content = json.loads(text[value.start : value.end])
    if not has_letters(content):
        return
    where = f"line {line_of(text, value.start)}, {'.'.join(filter(None, value.path))}"
    bare, written = message(content)
    render = partial(_written, written, ascii_only)
    yield Unit(items_of(bare), value.start, value.end, render, where, kept=reason(value.path, content))


def _written(written: Callable[[Sequence[Item]], str], ascii_only: bool, items: Sequence[Item]) -> str:
    return as_json(written(items), ascii_only=ascii_only)


def as_json(text: str, *, ascii_only: bool = False) -> str:
    """A text as JSON has it, halves of characters as `\\ud83d`."""
    out = json.dumps(text, ensure_ascii=ascii_only)
    return re.sub("[\ud800-\udfff]", lambda half: as_java_escape(half[0]).lower(), out)
