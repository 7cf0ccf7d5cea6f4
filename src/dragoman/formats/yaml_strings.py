"""YAML with messages of a program (Rails, Symfony ...): the values that are texts; keys, anchors and notes stay.

PyYAML says where each value stands. One keeps the quotes that it has, unless its translation needs others; the lines of
`|` are read as plain text, and those of `>` as paragraphs.
"""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import yaml

from dragoman.errors import Error
from dragoman.formats import plain_text
from dragoman.formats.base import Edit, Item, Options, Unit, has_letters, plain, spliced
from dragoman.formats.encoding import as_java_escape
from dragoman.formats.json_strings import SETTINGS, reasons
from dragoman.formats.language import tag_like
from dragoman.formats.messages import has_arms, items_of, message, whole_characters
from dragoman.formats.plural_forms import Form, forms_in
from dragoman.languages.codes import language_of
from dragoman.languages.plurals import FORMS

OTHER_TYPES = "true, false, null, dates, values with a tag"
CODE = "code between ```"
_STRING = "tag:yaml.org,2002:str"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER = yaml.resolver.Resolver()
_SETTINGS = re.compile(
    r"^(?:apiVersion|markdown_extensions|site_url|baseurl|repos|openapi|swagger)[ \t]*:"
    r"|^[ \t]+(?:-[ \t]+)?(?:image|uses)[ \t]*:[ \t]*[\"']?[\w.-]+[:/@][\w.:/@-]+[\"']?[ \t]*$"
    r"|^[ \t]+runs-on[ \t]*:",
    re.MULTILINE,
)
"""Lines of settings of well-known programs: Kubernetes, MkDocs, Jekyll, Docker, GitHub ..."""
_SYMBOL = re.compile(r"(?<=[\[,\s]):(?=[a-z_]+[ \t]*[,\]])")
_LOCALE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PROPERTIES = re.compile(r"(?:&[\w-]+\s*|![^\s,\[\]{}]*\s+)*")
_NOT_PLAIN = re.compile(r"^[\s,\[\]{}#&*!|>'\"%@`?:-]|^\.\.\.|:(?=\s|$)|\s#|\s$")
_MUST_BE_ESCAPED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class _Scalar(NamedTuple):
    """A scalar, and its place in the file."""

    value: str
    style: str
    """Its quotes, or `|` or `>`."""
    start: int
    end: int
    line: int
    """From 1."""
    column: int
    is_text: bool

    @classmethod
    def of(cls, event: yaml.ScalarEvent) -> "_Scalar":
        begin, end = event.start_mark, event.end_mark
        assert begin is not None
        assert end is not None
        is_text = event.tag in (None, "!", _STRING) and (not event.implicit[0] or _is_string(event.value))
        return cls(event.value, event.style or "", begin.index, end.index, begin.line + 1, begin.column, is_text)


@dataclass
class _Frame:
    """A list, or a mapping and the key of the next value: None before a key, "" for a key that is no scalar."""

    number: int
    is_mapping: bool
    is_flow: bool
    key: str | None = None
    scalar: _Scalar | None = None


class _Value(NamedTuple):
    """A scalar that is no key, the keys that lead to it, and the mapping or list around it."""

    scalar: _Scalar
    path: tuple[str, ...]
    frame: _Frame
    key: _Scalar | None


def units(text: str, options: Options) -> Iterator[Unit]:
    """The texts among the values, and the plural forms that the target language has beside those of the source."""
    values = list(_values(text, options))
    is_of_settings = _SETTINGS.search(text) is not None
    reason = reasons(dict.fromkeys(value.path[0] for value in values if value.path))
    roots = {value.path[0] if len(value.path) > 1 else "" for value in values}
    is_of_locale = len(roots) == 1 and _LOCALE.fullmatch(min(roots)) is not None
    siblings: dict[int, list[_Value]] = {}
    for value in values:
        siblings.setdefault(value.frame.number, []).append(value)
    kept = {}
    for value in values:
        why = SETTINGS if is_of_settings else reason(value.path[is_of_locale:], value.scalar.value)
        kept[value.scalar.start] = why if value.scalar.is_text else OTHER_TYPES
    plurals = {
        number
        for number, family in siblings.items()
        if _are_forms(family) and not any(kept[value.scalar.start] for value in family)
    }
    for value in values:
        path, family = value.path[is_of_locale:], siblings[value.frame.number]
        if value.frame.number in plurals:
            yield from _forms(text, family, path[:-1], options) if value is family[-1] else ()
            continue
        where = f"line {value.scalar.line}, {'.'.join(filter(None, path))}"
        why = kept[value.scalar.start]
        yield from (replace(unit, kept=why or unit.kept) for unit in _units(text, value, where))


def _values(text: str, options: Options) -> Iterator[_Value]:
    """The scalars that are no keys. Raises DragomanError for text that is not YAML."""
    frames: list[_Frame] = []
    number = 0
    try:
        for event in _events(text):
            top = frames[-1] if frames else _Frame(0, is_mapping=False, is_flow=False)
            if isinstance(event, yaml.CollectionStartEvent):
                number += 1
                frames.append(_Frame(number, isinstance(event, yaml.MappingStartEvent), bool(event.flow_style)))
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                frames.pop()
                top = frames[-1] if frames else top
            elif isinstance(event, yaml.ScalarEvent):
                if top.is_mapping and top.key is None:
                    top.key, top.scalar = event.value, _Scalar.of(event)
                    continue
                path = tuple(frame.key or "" for frame in frames)
                yield _Value(_Scalar.of(event), path, top, top.scalar)
            elif not isinstance(event, yaml.AliasEvent):
                continue
            top.key, top.scalar = "" if top.is_mapping and top.key is None else None, None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise Error.BAD_SYNTAX(
            f"not YAML: {problem}", file=options.name, line=mark.line + 1 if mark else None
        ) from error


def _events(text: str) -> list[yaml.Event]:
    """The events of the file. Ruby's symbols in a list (`[:day, :month]`), which its YAML reads and PyYAML does not,
    are read as `/day`."""
    try:
        return list(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError:
        read = _SYMBOL.sub("/", text)
        if read == text:
            raise
        return list(yaml.parse(read, Loader=_LOADER))


def _is_string(plain: str) -> bool:
    """True if YAML takes a value without quotes for text."""
    return bool(_RESOLVER.resolve(yaml.ScalarNode, plain, (True, False)) == _STRING)


def _units(text: str, value: _Value, where: str) -> Iterator[Unit]:
    """The unit of a value, or the units of its lines and paragraphs."""
    scalar = value.scalar
    end = scalar.end
    if not has_letters(scalar.value):
        return
    if scalar.style in ("|", ">"):
        if has_arms(scalar.value) and any(line.count("{") != line.count("}") for line in scalar.value.split("\n")):
            yield _message_in_block(text, scalar, where)
            return
        begin = text.index("\n", scalar.start) + 1
        fences = [match.span() for match in _FENCED.finditer(text, begin, end)]
        of_style = plain_text.units if scalar.style == "|" else _folded
        for unit in of_style(text[begin:end], Options()):
            unit = replace(unit, start=begin + unit.start, end=begin + unit.end, where=where)
            is_code = any(start <= unit.start < stop for start, stop in fences)
            yield replace(unit, kept=CODE) if is_code else unit
        return
    properties = _PROPERTIES.match(text, scalar.start)
    start = properties.end() if properties else scalar.start
    blank = " " if start > scalar.start and not text[start - 1].isspace() else ""  # `&anchor://text`
    bare, written = message(whole_characters(scalar.value))
    quote = scalar.style
    ascii_only = quote == '"' and "\\u" in text[start:end] and text[start:end].isascii()

    def render(items: Sequence[Item]) -> str:
        return blank + _quoted(written(items), quote, ascii_only, is_flow=value.frame.is_flow)

    yield Unit(items_of(bare), start, end, render, where)


def _message_in_block(text: str, scalar: _Scalar, where: str) -> Unit:
    """The unit of a message of ICU's MessageFormat that goes over several lines of a block."""
    begin = text.index("\n", scalar.start) + 1
    block = text[begin : scalar.end]
    first = len(block) - len(block.lstrip())
    indent = block[:first].rpartition("\n")[2]
    bare, written = message(scalar.value.strip())

    def render(items: Sequence[Item]) -> str:
        translation = written(items)
        return translation.replace("\n", "\n" + indent) if scalar.style == "|" else " ".join(translation.split())

    return Unit(items_of(bare), begin + first, begin + len(block.rstrip()), render, where)


def _quoted(value: str, quote: str, ascii_only: bool, is_flow: bool) -> str:
    """A text as YAML reads it, with the quotes that its source has, unless it needs others."""
    is_plain = bool(value) and not _NOT_PLAIN.search(value) and not _CONTROL.search(value) and _is_string(value)
    if not quote and is_plain and not (is_flow and re.search(r"[,\[\]{}:]", value)):
        return value
    if (quote == "'" or (not quote and re.search(r'["\\]', value))) and not _CONTROL.search(value):
        return "'" + value.replace("'", "''") + "'"
    out = json.dumps(value, ensure_ascii=ascii_only)
    return _MUST_BE_ESCAPED.sub(lambda char: as_java_escape(char[0]), out)


def _folded(text: str, options: Options) -> Iterator[Unit]:
    """The paragraphs of `>`: lines that begin in the same column; further lines stay by themselves."""
    lines = list(re.finditer(r"(?P<indent> *)(?P<rest>[^\r\n]*)(?P<end>\r?\n|\Z)", text))
    column = min((len(line["indent"]) for line in lines if line["rest"].strip()), default=0)
    width = max((len(line["rest"].rstrip()) for line in lines), default=0)
    for is_base, group in itertools.groupby(
        lines, lambda line: bool(line["rest"].strip()) and len(line["indent"]) == column
    ):
        members = list(group)
        for paragraph in [members] if is_base else [[line] for line in members]:
            joined = " ".join(" ".join(line["rest"] for line in paragraph).split())
            if has_letters(joined):
                start, end = paragraph[0].start("rest"), paragraph[-1].end("rest")
                end -= len(paragraph[-1]["rest"]) - len(paragraph[-1]["rest"].rstrip())
                between = paragraph[0]["end"] + " " * column
                render = partial(plain_text.broken, width, 0, between) if is_base and len(paragraph) > 1 else plain
                yield Unit((joined,), start, end, render, "")


def _forms(text: str, family: Sequence[_Value], path: Sequence[str], options: Options) -> Iterator[Unit]:
    """The units of the plural forms in a mapping, and of the target language's further forms."""
    forms = []
    for value in family:
        assert value.key is not None
        where = f"line {value.scalar.line}, {'.'.join(filter(None, (*path, value.key.value)))}"
        unit = next(_units(text, value, where), None)
        name_at = text.index(value.key.value, value.key.start)
        forms.append(Form(value.key.value, name_at, value.key.start, value.scalar.end, unit))
    first = family[0].key
    assert first is not None
    newline = "\r\n" if "\r\n" in text else "\n"
    between = ", " if family[0].frame.is_flow else newline + " " * first.column
    yield from forms_in(text, forms, options.languages[1], between, zero_is_0=True)


def _are_forms(family: Sequence[_Value]) -> bool:
    """True if the values of a mapping are the forms of a plural."""
    names = [value.key.value if value.key else "" for value in family]
    is_block = any(value.scalar.style in ("|", ">") for value in family)
    return {"one", "other"} <= set(names) <= set(FORMS) and len(set(names)) == len(names) and not is_block


def with_locale(text: str, options: Options) -> str:
    """The file with the target language as its only key at the top, if that key is the source language (Rails)."""
    roots: list[_Scalar] = []
    depth = 0
    src, tgt = options.languages
    previous = None
    for event in _events(text):
        if depth == 1 and isinstance(previous, yaml.ScalarEvent) and isinstance(event, yaml.MappingStartEvent):
            roots.append(_Scalar.of(previous))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        previous = event
    if len(roots) != 1 or not tgt or not _LOCALE.fullmatch(roots[0].value):
        return text
    [root] = roots
    if language_of(root.value) != language_of(src):
        return text
    tag = tag_like(tgt, root.value)
    return spliced(text, [Edit(root.start, root.end, _quoted(tag, root.style, ascii_only=False, is_flow=False))])
