"""Apple's .strings, and .stringsdict: property lists, as the old form writes them and as XML."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Item, Options, Unit, has_letters, joined, line_of, refuse
from dragoman.formats.encoding import as_java_escape, is_escaped
from dragoman.formats.messages import items_of, whole_characters, with_numbered_arguments
from dragoman.formats.plural_forms import Form, blanks_before, forms_in
from dragoman.formats.xml import Event, after, elements, events, local
from dragoman.formats.xml_texts import units_of_element
from dragoman.languages.cldr import FORMS

_TOKEN = re.compile(
    r"(?P<skipped>(?:[\s\ufeff]|//[^\r\n\u2028\u2029]*|/\*(?s:.*?)\*/)+)"
    r"|(?P<text>\"(?:[^\"\\]|\\(?s:.))*\"|'(?:[^'\\]|\\(?s:.))*'|[\w.$:/+-]+)|(?P<mark>[={};])"
)
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9A-Fa-f]{1,4})|([0-7]{3})|(.))", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = {char: f"\\{letter}" for letter, char in {**_SIMPLE, "\\": "\\", '"': '"'}.items()}
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|!--|plist)")
_CODES = ("NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey")
"""Keys whose values programs read."""
_IS_PLURAL = "NSStringPluralRuleType"


def strings_units(text: str, options: Options) -> Iterator[Unit]:
    """The values of .strings: `"key" = "value";`, quotes or none, comments anywhere."""
    if _XML.match(text):  # a property list may be XML, whatever its name
        yield from plist_units(text, options)
        return
    read: list[re.Match[str]] = []
    of = partial(_statement, text, is_escaped(text), options)
    for match in _tokens(text, options):
        read.append(match)
        if match["mark"] != ";" and not (match["mark"] and len(read) == 1):
            continue
        if len(read) == 1 and match["mark"] in ("{", "}"):  # braces around all
            read = []
            continue
        yield from of(read)
        read = []
    if read:
        raise _broken(text, read[0].start(), options)


def _tokens(text: str, options: Options) -> Iterator[re.Match[str]]:
    """The tokens of a file, without blanks and comments. Raises DragomanError where there is none."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _broken(text, at, options)
        if not match["skipped"]:
            yield match
        at = match.end()


def _statement(text: str, ascii_only: bool, options: Options, read: Sequence[re.Match[str]]) -> Iterator[Unit]:
    """The unit of `key = value;`; a key alone is its own value."""
    marks = [match["mark"] for match in read]
    if marks not in ([None, "=", None, ";"], [None, ";"]):
        raise _broken(text, read[0].start(), options)
    key, value = read[0], read[-2]
    written = value.group()
    content = _read(written[1:-1]) if written[0] in "\"'" else written
    if not has_letters(content):
        return
    where = f"line {line_of(text, key.start())}, {key.group().strip(chr(34))}"
    render = partial(_written, frozenset("\n\r\t").intersection(written), ascii_only)
    unit = with_numbered_arguments(Unit(items_of(content), value.start(), value.end(), render, where))
    if key is value:
        unit = replace(unit, render=partial(_behind, f"{key.group()} = ", unit))
    yield unit


def _behind(before: str, unit: Unit, items: Sequence[Item]) -> str:
    return before + unit.render(items)


def _broken(text: str, at: int, options: Options) -> DragomanError:
    return Error.WRONG_SHAPE(
        f'not `"key" = "value";`: {" ".join(text[at : at + 80].split())[:40]!r}',
        "is a `;` or a quote missing, or one too many?",
        file=options.name,
        line=line_of(text, at),
    )


def _read(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        code, octal, simple = match.groups()
        if octal:
            return bytes([int(octal, 8) & 255]).decode("latin-1")
        return chr(int(code, 16)) if code else _SIMPLE.get(simple, simple)

    return whole_characters(_ESCAPE.sub(char, text))


def _written(bare: Collection[str], ascii_only: bool, items: Sequence[Item]) -> str:
    """A value between quotes. `bare`: characters that the file has without a backslash."""
    text = "".join(char if char in bare else _ESCAPED.get(char, char) for char in joined(items))
    escaped = r"[^\x00-\x7f]" if ascii_only else "[\ud800-\udfff]"
    return '"' + re.sub(escaped, lambda char: as_java_escape(char[0]).replace("\\u", "\\U"), text) + '"'


def plist_units(text: str, options: Options) -> Iterator[Unit]:
    """The texts of a property list in XML, whose plurals get the forms of the target language."""
    inside = list(events(text, options))
    if not any(event.kind == "start" and local(event.name) == "plist" for event in inside):
        raise refuse(options, text, 0, "XML that is no property list: no <plist>")
    for _, each in elements(inside, ("plist",)):
        yield from _of_value(text, each[1:-1], "", options)


def _of_value(text: str, inside: Sequence[Event], where: str, options: Options) -> Iterator[Unit]:
    """The units of the values of a list, or of the one value of a key."""
    at = 0
    while at < len(inside):
        begin, at = at, after(inside, at) if inside[at].kind == "start" else at + 1
        tag = local(inside[begin].name)
        if tag == "dict" and inside[begin].kind == "start":
            yield from _of_dict(text, inside[begin + 1 : at - 1], where, options)
        elif tag == "array" and inside[begin].kind == "start":
            yield from _of_value(text, inside[begin + 1 : at - 1], where, options)
        elif tag == "string" and inside[begin].kind == "start":
            yield from _of_string(text, inside[begin:at], where)


def _of_dict(text: str, inside: Sequence[Event], where: str, options: Options) -> Iterator[Unit]:
    """The units of the values of a dictionary, by their keys."""
    entries: list[tuple[str, int, Sequence[Event]]] = []  # key, place of its element, its value
    at, key, key_at = 0, "", 0
    while at < len(inside):
        begin, at = at, after(inside, at) if inside[at].kind == "start" else at + 1
        if inside[begin].kind != "start":
            continue
        if local(inside[begin].name) == "key":
            key, key_at = "".join(event.text for event in inside[begin:at]), inside[begin].start
        else:
            entries.append((key, key_at, inside[begin:at]))
    is_plural = any(_said(value) == _IS_PLURAL for key, _, value in entries if key == _CODES[0])
    forms = [
        Form(
            key, text.index(key, start), start, max(value[-1].end, value[0].end),
            next(_of_string(text, value, f"{where}[{key}]"), None),
        )
        for key, start, value in entries
        if is_plural and key in FORMS and local(value[0].name) == "string"
    ]  # fmt: skip
    if forms:
        yield from forms_in(text, forms, options.languages[1], blanks_before(text, forms[-1].start), zero_is_0=True)
    for key, _, value in entries:
        if key not in _CODES and not (forms and key in FORMS):
            yield from _of_value(text, value, f"{where}.{key}" if where else key, options)


def _said(value: Sequence[Event]) -> str:
    return "".join(event.text for event in value)


def _of_string(text: str, element: Sequence[Event], where: str) -> Iterator[Unit]:
    for unit in units_of_element(text, element, f"line {line_of(text, element[0].start)}, {where}"):
        yield with_numbered_arguments(unit)
