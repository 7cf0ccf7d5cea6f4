"""JSON with messages of a program (i18n files): the values that are texts; keys stay."""

import json
import re
from collections.abc import Iterator, Sequence

from dragoman.errors import Error
from dragoman.formats.base import Item, Options, Unit, has_letters, line_of, plain

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_NO_TEXT = re.compile(
    r"(?:https?:|mailto:|data:|/|\./|#)\S*|[\w.+-]+@[\w.-]+|\S+\.(?:png|jpe?g|svg|gif|html?|css|js|json|md|txt|pdf)"
    r"|[a-z]{2,3}[-_][A-Z]{2}|\$\w+|[a-z0-9]+(?:[_.:-][a-z0-9]+)+"
)
"""Values that are names, addresses or files."""
SKIPPED_KEYS = frozenset(
    {"@@locale", "@@last_modified", "locale", "lang", "language", "id", "key", "type", "version", "$schema"}
)


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts among the values."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise Error.BAD_SYNTAX(f"not JSON: {error.msg}", file=options.name, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise Error.BAD_SYNTAX("not JSON: nested too deep", file=options.name) from error
    ascii_only = text.isascii()
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
            yield from _value(text, pending, [*path, key], ascii_only)
            pending = None
        if token in "{[":
            path.append(key)
            key = ""
        elif token in "}]" and path:
            path.pop()
        if token == ",":
            key = ""
    if pending is not None:
        yield from _value(text, pending, [], ascii_only)


def _value(text: str, match: re.Match[str], path: list[str], ascii_only: bool) -> Iterator[Unit]:
    said = json.loads(match.group())
    if not has_letters(said) or _NO_TEXT.fullmatch(said.strip()):
        return
    if path and (path[-1] in SKIPPED_KEYS or any(name.startswith("@") for name in path)):
        return
    where = f"line {line_of(text, match.start())}, {'.'.join(filter(None, path))}"

    def render(items: Sequence[Item]) -> str:
        return json.dumps(plain(items), ensure_ascii=ascii_only)

    yield Unit((said,), match.start(), match.end(), render, where)
