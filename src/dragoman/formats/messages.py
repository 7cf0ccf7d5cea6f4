"""Messages of a program, whatever file they stand in: accelerators of menus, halves of characters, arguments."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dragoman.formats.accelerators import accelerator_in, with_accelerator, without_accelerator
from dragoman.formats.base import Code, Item, Unit, joined

_HALF = re.compile("([\ud800-\udfff])")


def whole_characters(text: str) -> str:
    """A text with the halves of characters beyond U+FFFF put together, as `\\\\uD83D\\\\uDE00` writes them.

    >>> whole_characters("\\ud83d\\ude00!")
    '😀!'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def items_of(text: str) -> tuple[Item, ...]:
    """The items of a text: a half of a character, which is none, is a code.

    >>> [item if isinstance(item, str) else item.kind for item in items_of("one \\ud83d two")]
    ['one ', 'alone', ' two']
    """
    pieces = (piece for piece in _HALF.split(text) if piece)
    return tuple(Code(piece, "alone") if _HALF.fullmatch(piece) else piece for piece in pieces)


def label(text: str) -> tuple[str, Callable[[Sequence[Item]], str]]:
    """(a text without its accelerator, what gives the text of a translation with one).

    >>> bare, written = label("_Datei öffnen")
    >>> bare, written(["Open file"])
    ('Datei öffnen', '_Open file')
    """
    mark = accelerator_in(text)
    if not mark:
        return text, joined
    bare = without_accelerator(text, mark)
    return bare, partial(_with_mark, text, bare, mark)


def _with_mark(text: str, bare: str, mark: str, items: Sequence[Item]) -> str:
    translation = joined(items)
    return text if translation == bare else with_accelerator(translation, text, mark)


def message(text: str) -> tuple[str, Callable[[Sequence[Item]], str]]:
    """As `label`, of a text that may be a message of ICU's MessageFormat, in which an apostrophe may stand for more.

    Doubled ones are read as one. One before a brace or a tag would quote it: a translation has `’` there.

    >>> bare, written = message("You''re {name}")
    >>> bare, written(["C'est l'{name}"])
    ("You're {name}", "C''est l''{name}")
    >>> message("<b>Water</b>")[1](["L'<b>eau</b>"])
    'L’<b>eau</b>'
    """
    single = text.replace("''", "'")
    is_doubled = re.search(r"\w''\w", text) is not None and not _QUOTE.search(single)
    bare, written = label(single if is_doubled else text)
    if is_doubled:
        return bare, lambda items: written(items).replace("'", "''")
    if _QUOTE.search(text):
        return bare, written
    return bare, lambda items: _QUOTING.sub("’", written(items))


_QUOTE = re.compile(r"'[<{}#|]")
_QUOTING = re.compile(r"(?<=\w)'(?=[<}]|\{(?!\{))")
_ARGUMENT = re.compile(
    r"%(?:%|(?P<number>\d+\$)?(?P<rest>#@\w+@|[-+#0']*\d*(?:\.\d+)?(?:hh?|ll?|[qLztj])?[@diouxXeEfFgGaAcCsSpDUO]))"
)
"""An argument of printf as Apple and Java have it, or a percent sign."""


def with_numbered_arguments(unit: Unit) -> Unit:
    """A unit whose translations number their arguments where these stand in another order than in the source.

    Arguments without a number are taken in their order: a number that is written as a text ends a program. Where the
    source has a percent sign of another kind (`%*d`, `%<PRIu64>`), nothing is numbered.

    >>> unit = with_numbered_arguments(Unit(("%lld%% of its %@ used",), 0, 0, joined, ""))
    >>> unit.render(["%@: %lld%%"]), unit.render(["%lld%% of %@"])
    ('%2$@: %1$lld%%', '%lld%% of %@')
    """
    source = [match for item in unit.items if isinstance(item, str) for match in _arguments(item)]
    kinds = [match["rest"] for match in source]
    others = "".join(_ARGUMENT.sub("", item) for item in unit.items if isinstance(item, str))
    if len(set(kinds)) < 2 or any(match["number"] for match in source) or "%" in others:
        return unit

    def render(items: Sequence[Item]) -> str:
        arguments = [match["rest"] for item in items if isinstance(item, str) for match in _arguments(item)]
        if arguments == kinds or sorted(arguments) != sorted(kinds):
            return unit.render(items)
        places = defaultdict(list)
        for number, kind in enumerate(kinds, start=1):
            places[kind].append(number)

        def numbered(match: re.Match[str]) -> str:
            return f"%{places[match['rest']].pop(0)}${match['rest']}" if match["rest"] else match[0]

        return unit.render([_ARGUMENT.sub(numbered, item) if isinstance(item, str) else item for item in items])

    return replace(unit, render=render)


def _arguments(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _ARGUMENT.finditer(text) if match["rest"])


def has_arms(text: str) -> bool:
    """True for a text with an argument of ICU's MessageFormat that has texts in it: `{n, plural, other {files}}`."""
    return _HEAD.search(text) is not None


def with_arms(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Items of a message with codes in its arms (ICU's MessageFormat) with what is around the arms as breaks: each arm
    is a text by itself.

    >>> codes = with_arms(("{n, plural, one {ein ", Code("<x/>", "alone"), " Hemd} other {# {a} Hemden}}"))
    >>> [item if isinstance(item, str) else item.raw for item in codes]
    ['{n, plural, one {', 'ein ', '<x/>', ' Hemd', '} other {', '# {a} Hemden', '}}']
    """
    if all(isinstance(item, str) or item.kind == "protected" for item in items) or not any(
        has_arms(item) for item in items if isinstance(item, str)
    ):
        return items
    out: list[Item] = []
    opened: list[str] = []
    for item in items:
        if isinstance(item, Code):
            out.append(item)
            continue
        for piece in _ARMS.findall(item):
            if _HEAD.fullmatch(piece):
                opened.append("argument")
            is_syntax = bool(opened) and opened[-1] == "argument"
            if not is_syntax and piece == "}" and opened and opened[-1] == "arm":
                opened.pop()
                is_syntax = True
            elif piece == "}" and opened:
                opened.pop()
            elif piece == "{":
                opened.append("arm" if is_syntax else "placeholder")
            last = out[-1] if out else None
            if is_syntax and isinstance(last, Code) and last.kind == "break":
                out[-1] = last._replace(raw=last.raw + piece)
            elif is_syntax:
                out.append(Code(piece, "break"))
            elif isinstance(last, str):
                out[-1] = last + piece
            else:
                out.append(piece)
    return tuple(out)


_HEAD = re.compile(r"\{\s*\w{1,64}\s*,\s*(?:plural|select|selectordinal)\s*,\s*(?:offset:\d{1,3}\s*)?")
_ARMS = re.compile(rf"{_HEAD.pattern}|[{{}}]|[^{{}}]+")
