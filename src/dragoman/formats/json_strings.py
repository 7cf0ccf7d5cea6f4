"""JSON with messages of a program (i18n files): the values that are texts; keys stay."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.errors import Error
from dragoman.formats.base import Item, Options, Unit, has_letters, line_of
from dragoman.formats.encoding import as_java_escape
from dragoman.formats.messages import items_of, label

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


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts among the values."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise Error.BAD_SYNTAX(f"not JSON: {error.msg}", file=options.name, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise Error.BAD_SYNTAX("not JSON: nested too deep", file=options.name) from error
    reason = reasons(content)
    for match, path in _values(text):
        yield from _unit(text, match, path, reason)


def _values(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """The strings among the values of JSON, and the keys that lead there, "" for the place in a list."""
    path: list[str] = []
    key = ""
    pending: re.Match[str] | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == '"':
            pending = match
            continue
        if token == ":":
            assert pending is not None
            key, pending = json.loads(pending.group()), None
            continue
        if pending is not None:
            yield pending, [*path, key]
            pending = None
        if token in "{[":
            path.append(key)
            key = ""
        elif token in "}]" and path:
            path.pop()
        if token == ",":
            key = ""
    if pending is not None:
        yield pending, []


def reasons(content: Any) -> Callable[[Sequence[str], str], str]:
    """Gives the reason why a value is left as it is, by its keys; "" for a text."""
    if isinstance(content, Mapping) and not _OF_SETTINGS.isdisjoint(content):
        return lambda path, said: SETTINGS
    entries = list(content.values()) if isinstance(content, Mapping) else []
    # Browsers' extensions: {"name": {"message": "...", "description": "..."}}
    is_of_browser = bool(entries) and all(isinstance(entry, Mapping) and "message" in entry for entry in entries)

    def reason(path: Sequence[str], said: str) -> str:
        keys = [key for key in path if key]
        if any(key.startswith("@") and key != "@@locale" for key in keys) or (
            is_of_browser and keys[-1:] != ["message"]
        ):
            return NOTES
        if keys and keys[-1] in SKIPPED_KEYS and len(said.split()) < 2:
            return CODES
        return NAMES if _NO_TEXT.fullmatch(said.strip()) else ""

    return reason


def _unit(
    text: str, match: re.Match[str], path: Sequence[str], reason: Callable[[Sequence[str], str], str]
) -> Iterator[Unit]:
    said = json.loads(match.group())
    if not has_letters(said):
        return
    where = f"line {line_of(text, match.start())}, {'.'.join(filter(None, path))}"
    ascii_only = text.isascii()
    bare, written = label(said)

    def render(items: Sequence[Item]) -> str:
        out = json.dumps(written(items), ensure_ascii=ascii_only)
        return re.sub("[\ud800-\udfff]", lambda half: as_java_escape(half[0]).lower(), out)

    kept = reason(path, said)
    yield Unit(items_of(bare), match.start(), match.end(), render, where, kept=kept)
