"""Messages in ICU's MessageFormat: `{n, plural, one {# book} other {# books}}` holds a text for each form of a number.

A translation needs the whole sentence for each form. So each arm is translated with what stands around the argument,
and the translation is one argument with a whole sentence in each arm, as ICU's own guide advises. Where there are
several such arguments, beside each other or one in another, each arm of the first holds the whole of the others.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.languages.plurals import plurals_of

_HEAD = re.compile(
    r"\{\s*(?P<name>[^\s{},#'|<>]{1,64})\s*,\s*(?P<kind>plural|select|selectordinal|choice)\s*,\s*(?P<offset>offset:\d{1,3}\s*)?"
)
_KEY = re.compile(r"\s*(=\d{1,9}|[\w-]{1,64})\s*\{")
_LIMIT = re.compile(r"\s*-?[\d.\u221e]{1,20}\s*[#<\u2264]")
"""The key of an arm of Java's `choice`."""
NUMBER = "{#}"
"""Stands for `#`, the number itself, while an arm is translated: a placeholder like others."""
_SENTENCE_END = re.compile(r"[.!?]\s*\}\s*\}$")
MAX_ARMS = 100
"""Sentences of a message, at most: a message with more is left as it is."""


class Message(NamedTuple):
    """A text with arguments that have arms: the first argument's beginning, and the key and the sentence, or the
    message, of each of its arms."""

    head: str
    arms: "list[tuple[str, str | Message]]"

    def sentences(self) -> Iterator[str]:
        """The whole sentence of each arm, arms inside of arms included."""
        for _, arm in self.arms:
            yield from _sentences_of(arm)

    def in_language(self, language: str) -> "Message":
        """The message with `=1` in the place of `one` where a language has that form for 21 things, too, and the arm
        does not say the number.

        >>> message = parse("{n, plural, one {a cat} other {# cats}}")
        >>> [key for key, _ in message.in_language("ru").arms], [key for key, _ in message.in_language("de").arms]
        (['=1', 'other'], ['one', 'other'])
        """
        arms = [(key, arm.in_language(language) if isinstance(arm, Message) else arm) for key, arm in self.arms]
        plurals = plurals_of(language)
        head = _HEAD.match(self.head)
        if plurals is None or plurals.one_is_1 or head is None or head["kind"] != "plural" or head["offset"]:
            return self._replace(arms=arms)
        number = re.compile(rf"\{{(?:#|{re.escape(head['name'])}(?!\w))")
        says = {key: any(number.search(text) for text in _sentences_of(arm)) for key, arm in arms}
        is_unsaid = says.get("other", False) and not says.get("one", True) and "=1" not in says
        return self._replace(arms=[("=1" if is_unsaid and key == "one" else key, arm) for key, arm in arms])

    def with_texts(self, texts: Iterator[str]) -> str:
        """The message with the next texts as its sentences."""
        arms = [
            (key, arm.with_texts(texts) if isinstance(arm, Message) else next(texts).replace(NUMBER, "#"))
            for key, arm in self.arms
        ]
        if _is_choice(self.head):
            return self.head + "|".join(key + arm for key, arm in arms) + "}"
        return self.head + " ".join(f"{key} {{{arm}}}" for key, arm in arms) + "}"


def _is_choice(head: str) -> bool:
    match = _HEAD.match(head)
    return match is not None and match["kind"] == "choice"


def _sentences_of(arm: str | Message) -> Iterator[str]:
    if isinstance(arm, Message):
        yield from arm.sentences()
    else:
        yield arm


def parse(text: str) -> Message | None:
    """The message in a text; None for a text without an argument with arms, or with too many arms.

    >>> parse("Sie haben {n, plural, one {# Buch} other {# Bücher}}.")
    Message(head='{n, plural, ', arms=[('one', 'Sie haben {#} Buch.'), ('other', 'Sie haben {#} Bücher.')])
    >>> parse("{a, select, x {{b, select, y {Z} other {A}} B} other {C}}").arms[0]
    ('x', Message(head='{b, select, ', arms=[('y', 'Z B'), ('other', 'A B')]))
    >>> parse("Hallo {name}")
    """
    try:
        message = _parsed(text, [MAX_ARMS])
    except ValueError:
        return None
    return message if isinstance(message, Message) else None


def _parsed(text: str, left: list[int]) -> str | Message:
    """The message in a text, or the text if it has no arms. Raises ValueError for a broken message. `left`: the number
    of arms that are still allowed.
    """
    head = _HEAD.search(text)
    if head is None:
        left[0] -= 1
        if left[0] < 0:
            raise ValueError("too many arms")
        return text
    arms, place = [], head.end()
    if head["kind"] == "choice":
        place = _closing(text, head.end())
        arms = list(_choices(text[head.end() : place]))
    while match := _KEY.match(text, place):
        end = _closing(text, match.end())
        arms.append((match[1], text[match.end() : end]))
        place = end + 1
    rest = re.match(r"\s*\}", text[place:])
    if not arms or rest is None:
        raise ValueError("no arms")
    around = text[: head.start()], text[place + rest.end() :]
    return Message(head[0], [(key, _parsed(_sentence(head, arm, around), left)) for key, arm in arms])


def _choices(text: str) -> Iterator[tuple[str, str]]:
    """The key and the text of each arm of Java's `choice`. Raises ValueError for what is none."""
    depth = begin = 0
    for place, letter in enumerate(text + "|"):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "|" and depth == 0:
            limit = _LIMIT.match(text, begin, place)
            if limit is None:
                raise ValueError("a choice without a limit")
            yield limit[0], text[limit.end() : place]
            begin = place + 1


def _sentence(head: re.Match[str], arm: str, around: tuple[str, str]) -> str:
    """An arm with what stands around its argument, its `#` as a placeholder."""
    if head["kind"] in ("select", "choice"):  # it has no number: a `#` is that of the argument around it, if any
        return arm.join(around)
    if _HEAD.search(arm) or _HEAD.search("".join(around)):
        # In an arm of another number `#` would be that one: it is named.
        if head["offset"] and "#" in _without_inner(arm):
            raise ValueError("a number with an offset in another number's arm")
        named = f"{{{head['name']}, number}}"
        return _with_number(arm, named).join(around)
    return _with_number(arm, NUMBER).join(around)


def _with_number(arm: str, number: str) -> str:
    """An arm with something in the place of its own `#`: those of another number's arms in it stay."""
    inner = re.search(_HEAD.pattern.replace("|select|", "|"), arm)
    if inner is None:
        return re.sub(r"(?<!\{)#", lambda _: number, arm)
    end = _closing(arm, inner.end())
    before, after = arm[: inner.start()], arm[end + 1 :]
    return re.sub(r"(?<!\{)#", lambda _: number, before) + arm[inner.start() : end + 1] + _with_number(after, number)


def _without_inner(arm: str) -> str:
    head = _HEAD.search(arm)
    return arm if head is None else arm[: head.start()] + _without_inner(arm[_closing(arm, head.end()) + 1 :])


def masked(text: str) -> str | None:
    """A text of the same length with letters in the place of arguments with arms; None if an argument is broken. An
    argument whose last arm ends a sentence ends a sentence here, too.

    >>> masked("So. {n, plural, other {#}} cats.")
    'So. XXXXXXXXXXXXXXXXXXXXXX cats.'
    """
    out, place = "", 0
    while head := _HEAD.search(text, place):
        try:
            end = _closing(text, head.end()) + 1
        except ValueError:
            return None
        ends = _SENTENCE_END.search(text, head.end(), end) is not None
        out += text[place : head.start()] + "X" * (end - head.start() - ends) + "." * ends
        place = end
    return out + text[place:]


def is_message(text: str) -> bool:
    """True if a text has an argument with arms, be it one that `parse` takes or not."""
    return _HEAD.search(text) is not None


def _closing(text: str, place: int) -> int:
    """The place of the brace that closes what was opened before `place`. Raises ValueError where there is none.

    Braces between apostrophes stand for themselves.
    """
    depth = 1
    quoted = False
    for offset, letter in enumerate(text[place : place + 10_000]):
        if letter == "'" and (quoted or text[place + offset + 1 : place + offset + 2] in ("{", "}", "#", "|")):
            quoted = not quoted
        if not quoted:
            depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0:
            return place + offset
    raise ValueError("a brace that is not closed")
