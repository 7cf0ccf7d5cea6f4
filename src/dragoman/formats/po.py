"""Gettext catalogues (.po, .pot): what is not translated yet gets a translation, marked as fuzzy."""

import gettext
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.formats.base import Edit, Entry, Item, Limit, Options, State, Unit, plain, refuse
from dragoman.formats.messages import label, with_numbered_arguments
from dragoman.formats.plural_forms import says_number
from dragoman.languages.codes import is_known, language_of, locale_of
from dragoman.languages.names import named
from dragoman.languages.plurals import plurals_of

_LINE = re.compile(r"(?P<name>msgctxt|msgid_plural|msgid|msgstr(?:\[(?P<number>\d+)\])?)?[ \t]*(?P<text>\".*\")[ \t]*$")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{2})|(.))")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = str.maketrans({char: f"\\{letter}" for letter, char in {**_SIMPLE, "\\": "\\", '"': '"'}.items()})
MIN_COUNTS_OF_FORM = 5
"""Counts up to 1,000 that a form may have, for `msgfmt`, if its texts do not say the number."""
_NUMBERED = frozenset({"c-format", "objc-format", "java-printf-format", "php-format"})
"""Flags of messages whose arguments may have a number."""


class Field(NamedTuple):
    """A string of an entry: its text, where its quoted lines begin and end, and the number of its first line."""

    text: str
    start: int
    end: int
    line: int


def units(text: str, options: Options) -> Iterator[Unit]:
    """The strings of entries that have no translation; of all, if translations are to be made again.

    A plural gets as many forms as the catalogue's header says, or else the target language has.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    rule = Rule()
    for start, fields, flags, flags_at in _entries(text, options):
        source = fields.get("msgid")
        if source is None:
            continue
        if not source.text and "msgctxt" not in fields:
            rule = rule_for(_joined(fields), options.languages[1])
        if not source.text:
            continue
        mark = _fuzzy(start, flags, flags_at, newline)
        is_open = options.translated_too or "fuzzy" in flags
        for unit in _of_entry(fields, rule, flags, newline, is_open):
            also, mark = (unit.also, mark) if unit.kept else ((*unit.also, *mark), ())
            unit = replace(unit, also=also, limit=Limit.in_flags(" ".join(flags)))
            yield with_numbered_arguments(unit) if _NUMBERED.intersection(flags) else unit


def _of_entry(
    fields: dict[str, Field], rule: "Rule", flags: Sequence[str], newline: str, is_open: bool
) -> Iterator[Unit]:
    """The units of an entry. `is_open`: its translations are made again."""
    source, plural = fields["msgid"], fields.get("msgid_plural")
    targets = {name: field for name, field in fields.items() if name.startswith("msgstr")}
    done = [field for field in targets.values() if field.text and not is_open]
    is_whole = [*targets] == [f"msgstr[{number}]" for number in range(len(targets))]
    count = rule.size if plural is not None and rule.size and not done and is_whole else len(targets)
    of_one = rule.of_singular(source.text, plural.text, flags) if plural is not None else 0
    where = f"line {source.line}"
    surplus: tuple[Edit, ...] = ()
    if 0 < count < len(targets):
        ends = [field.end for field in targets.values()]
        surplus = (Edit(ends[count - 1], ends[-1], ""),)
    for number, target in enumerate([*targets.values()][:count]):
        original = source if plural is None or number == of_one else plural
        if target in done:
            yield Unit((), target.start, target.end, plain, where, kept="translated already", bilingual=True)
            continue
        items, render = _message(original.text, newline)
        yield Unit(items, target.start, target.end, render, where, surplus, bilingual=True)
        surplus = ()
    for number in range(len(targets), count):
        assert plural is not None
        original = source if number == of_one else plural
        items, render = _message(original.text, newline, f"{newline}msgstr[{number}] ")
        end = [*targets.values()][-1].end
        yield Unit(items, end, end, render, where, bilingual=True)


def _message(string: str, newline: str, before: str = "") -> tuple[tuple[Item, ...], Callable[[Sequence[Item]], str]]:
    """The items of a string, and what writes its translation."""
    bare, written = label(string.strip("\n"))

    def render(items: Sequence[Item]) -> str:
        return before + _written(string, newline, written(items))

    return (bare,), render


def _written(source: str, newline: str, translation: str) -> str:
    """A string with the line ends of its source: on one line, or from the second on where it has several."""
    before = source[: len(source) - len(source.lstrip("\n"))]
    after = source[len(source.rstrip("\n")) :] if source.strip("\n") else ""
    lines = re.findall(r"[^\n]*\n|[^\n]+", before + translation + after) or [""]
    quoted = [f'"{line.translate(_ESCAPED)}"' for line in lines]
    return newline.join(quoted if len(quoted) == 1 else ['""', *quoted])


def _unquoted(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        octal, code, simple = match.groups()
        return chr(int(octal, 8)) if octal else chr(int(code, 16)) if code else _SIMPLE.get(simple, simple)

    return _ESCAPE.sub(char, text[1:-1])


def _fuzzy(start: int, flags: Sequence[str], flags_at: int, newline: str) -> tuple[Edit, ...]:
    if "fuzzy" in flags:
        return ()
    if flags_at >= 0:
        return (Edit(flags_at + 2, flags_at + 2, " fuzzy,"),)
    return (Edit(start, start, f"#, fuzzy{newline}"),)


def _entries(text: str, options: Options) -> Iterator[tuple[int, dict[str, Field], list[str], int]]:
    """(where its first string begins, strings by name, flags, where those begin or -1) of each entry."""
    fields: dict[str, Field] = {}
    flags: list[str] = []
    flags_at = first = -1
    name = ""
    at = 0
    for number, line in enumerate([*text.split("\n"), ""], start=1):  # the last one ends the last entry
        bare = line.rstrip("\r")
        stripped = bare.strip()
        match = _LINE.match(bare.lstrip()) if stripped and not stripped.startswith("#") else None
        offset = at + len(bare) - len(bare.lstrip())
        starts_new = stripped.startswith("#") or (match is not None and match["name"] in ("msgctxt", "msgid"))
        if (not stripped or starts_new) and any(key.startswith("msgstr") for key in fields):
            yield first, fields, flags, flags_at
            fields, flags, flags_at, first = {}, [], -1, -1
        if stripped.startswith("#~"):  # an old entry, whose flags are not those of the next one
            flags, flags_at = [], -1
        elif stripped.startswith(("#,", "#=")):  # of old tools in several lines, of gettext 1.0 in two kinds of lines
            flags += [flag.strip() for flag in stripped[2:].split(",")]
            flags_at = offset if stripped.startswith("#,") else flags_at
        elif match is not None:
            begin, end = offset + match.start("text"), offset + match.end("text")
            string = _unquoted(match["text"])
            if match["name"]:
                name = match["name"]
                if name in fields:
                    raise refuse(options, text, at, f"{name} twice in one entry")
                fields[name] = Field(string, begin, end, number)
                first = offset if first < 0 else first
            elif name in fields:
                fields[name] = fields[name]._replace(text=fields[name].text + string, end=end)
            else:
                raise refuse(options, text, at, "a string that belongs to nothing")
        elif stripped and not stripped.startswith("#"):
            raise refuse(options, text, at, f"not a line of a PO file: {stripped[:40]!r}")
        at += len(line) + 1


class Rule(NamedTuple):
    """The plural forms of a catalogue's translations."""

    size: int = 0
    """Number of forms; 0: as many as are there."""
    form: Callable[[int], int] | None = None
    """The number of the form for a count."""
    stated: str = ""
    """The rule as the header has to say it; "": it says it already."""

    def of_singular(self, singular: str, plural: str, flags: Sequence[str]) -> int:
        """The number of the form that translates the singular, the one of 1; -1 if none does.

        None does where one form stands for all counts, or stands for many and does not say which in a message with
        arguments: `msgfmt --check` refuses that.
        """
        if self.form is None or self.size == 1:
            return -1 if self.form else 0
        one = self.form(1)
        is_format = any(flag.endswith("-format") and not flag.startswith("no-") for flag in flags)
        is_often = sum(self.form(count) == one for count in range(1000)) > MIN_COUNTS_OF_FORM
        return -1 if is_format and is_often and not says_number(singular, plural) else one


def rule_for(header: str, language: str) -> Rule:
    """The rule of a catalogue with that header, whose translations are in a language."""
    facts = header_of(header)
    stated = re.search(r"nplurals\s*=\s*(\d)", header)
    fits = facts.languages is None or language_of(facts.languages[1]) == language_of(language)
    if stated and facts.form is not None and (fits or not language):
        return Rule(int(stated[1]), facts.form)
    plurals = plurals_of(language) if language else None
    if plurals is None:
        return Rule()
    count = re.search(r"\d", plurals.rule)
    return Rule(int(count[0]) if count else 0, header_of(f"Plural-Forms: {plurals.rule}\n").form, plurals.rule)


def with_header(text: str, options: Options) -> str:
    """The catalogue with a header that says the language of its translations, and its rule for plurals."""
    language = locale_of(options.languages[1])
    for _, fields, _, _ in _entries(text, options):
        source = fields.get("msgid")
        if source is None or source.text or "msgctxt" in fields or not language:
            continue
        header = _joined(fields)
        field = next(fields[name] for name in fields if name.startswith("msgstr"))
        facts = {}
        if (rule := rule_for(header, language).stated) and ("msgid_plural" in text or "Plural-Forms:" in header):
            facts["Plural-Forms"] = rule
        declared = language_named(dict(line.partition(": ")[::2] for line in header.split("\n")))
        if language_of(declared) in ("", language_of(options.languages[0])):
            facts["Language"] = language
        newline = "\r\n" if "\r\n" in text else "\n"
        written = text[field.start : field.end].replace("charset=CHARSET", "charset=UTF-8")
        for name, value in facts.items():
            line = f"{name}: {value}\\n"
            match = re.search(rf"(?<=[\"n]){name}:[^\\\"]*(?:\\n)?", written)
            written = (
                f"{written[: match.start()]}{line}{written[match.end() :]}" if match else f'{written}{newline}"{line}"'
            )
        return text[: field.start] + written + text[field.end :]
    return text


def _joined(fields: dict[str, Field]) -> str:
    return "".join(field.text for name, field in fields.items() if name.startswith("msgstr"))


class Header(NamedTuple):
    """The facts of a catalogue's header: its languages, and its rule for plurals."""

    languages: tuple[str, str] | None = None
    """From and to; None where it names no target."""
    form: Callable[[int], int] | None = None
    """The number of the form for a count; None where there is no rule."""


def entries(text: str, options: Options) -> Iterator[Entry]:
    """The pairs of a catalogue, including fuzzy and untranslated pairs; of a plural, the pairs for one and for many.

    The catalogue's header has no pair; its `Language` is that of every entry.
    """
    header = Header()
    for _, fields, flags, _ in _entries(text, options):
        source = fields.get("msgid")
        if source is None:
            continue
        forms = [fields[name].text for name in sorted(fields) if name.startswith("msgstr")]
        context, plural = (fields[name].text if name in fields else "" for name in ("msgctxt", "msgid_plural"))
        if not source.text and not context:
            header = header_of("".join(forms)) if header == Header() else header
            continue
        for src, tgt in plural_forms(source.text, plural, forms, header):
            state: State = "fuzzy" if "fuzzy" in flags else "" if tgt else "untranslated"
            yield Entry(source.line, src, tgt, state, languages=header.languages, context=context)


def plural_forms(src: str, plural: str, forms: Sequence[str], header: Header) -> list[tuple[str, str]]:
    """(source, translation) of a message; of a plural the forms for one and for many, which the catalogue's rule tells.

    Where one form stands for all numbers, it translates the plural.
    """
    if not plural:
        return [(src, forms[0] if forms else "")]
    one, many = (0, len(forms) - 1) if header.form is None else (header.form(1), header.form(COUNT_OF_MANY))
    if max(one, many) >= len(forms):
        one, many = 0, len(forms) - 1
    pairs = [(src, one), (plural, many)] if one != many else [(plural, many)]
    return [(text, forms[number] if forms else "") for text, number in pairs]


COUNT_OF_MANY = 5
"""A count that takes the form of many things in every language."""


def language_named(fields: Mapping[str, str]) -> str:
    """The language that a header names by code or by name, as `Language` or as older tools had it; "" for none.

    >>> language_named({"Language": "pt_BR"}), language_named({"Language": "Français"})
    ('pt_BR', 'fr')
    """
    values = (fields.get(name, "").strip() for name in ("Language", "X-Language", "X-Poedit-Language"))
    language = next(filter(None, values), "")
    return named(language, own=not is_known(language)) or language


def header_of(text: str) -> Header:
    """The facts of a catalogue's header.

    >>> header_of("Language: pl\\nPlural-Forms: nplurals=2; plural=n != 1;\\n").form(1)
    0
    """
    fields = dict(line.partition(": ")[::2] for line in text.split("\n"))
    language = language_named(fields)
    source = language_named({"Language": fields.get("X-Source-Language", "")})
    source = "en" if source in ("", "C", "POSIX") else source
    form: Callable[[int], int] | None = None
    if rule := re.search(r"plural\s*=\s*([^;]+)", fields.get("Plural-Forms", "").partition(";")[2]):
        try:
            form = gettext.c2py(rule[1])
            form(1)
        except (ValueError, RecursionError, ZeroDivisionError):
            form = None
    return Header((source, language) if language else None, form)
