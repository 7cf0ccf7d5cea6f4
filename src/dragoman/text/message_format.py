"""Messages in ICU's MessageFormat: `{n, plural, one {# book} other {# books}}` holds a text for each form of a number.

A translation needs the whole sentence for each form. So each arm is translated with what stands around the argument,
and the translation is one argument with a whole sentence in each arm, as ICU's own guide advises.
"""

import re
from typing import NamedTuple

_HEAD = re.compile(r"\{\s*\w{1,64}\s*,\s*(?:plural|select|selectordinal)\s*,\s*(?:offset:\d{1,3}\s*)?")
_KEY = re.compile(r"\s*(=\d{1,9}|[\w-]{1,64})\s*\{")
NUMBER = "{#}"
"""Stands for `#`, the number itself, while an arm is translated: a placeholder like others."""


class Message(NamedTuple):
    """A text with one argument that has arms: the argument's beginning, and each arm's key and whole sentence."""

    head: str
    arms: list[tuple[str, str]]

    def with_texts(self, texts: list[str]) -> str:
        """The message with other sentences in its arms."""
        written = [text.replace(NUMBER, "#") for text in texts]
        return (
            self.head + " ".join(f"{key} {{{text}}}" for (key, _), text in zip(self.arms, written, strict=True)) + "}"
        )


def parse(text: str) -> Message | None:
    """The message that a text is; None for one without such an argument, or with more than one or one in another.

    >>> parse("Sie haben {n, plural, one {# Buch} other {# Bücher}}.")
    Message(head='{n, plural, ', arms=[('one', 'Sie haben {#} Buch.'), ('other', 'Sie haben {#} Bücher.')])
    >>> parse("Hallo {name}")
    """
    heads = list(_HEAD.finditer(text))
    if len(heads) != 1:
        return None
    [head] = heads
    arms, place = [], head.end()
    while match := _KEY.match(text, place):
        end = _closing(text, match.end())
        if end is None:
            return None
        arms.append((match[1], text[match.end() : end]))
        place = end + 1
    rest = re.match(r"\s*\}", text[place:])
    if not arms or rest is None:
        return None
    before, after = text[: head.start()], text[place + rest.end() :]
    sentences = [(key, before + arm.replace("#", NUMBER) + after) for key, arm in arms]
    return Message(head[0], sentences)


def is_message(text: str) -> bool:
    """True if a text has an argument with arms, be it one that `parse` takes or not."""
    return _HEAD.search(text) is not None


def _closing(text: str, place: int) -> int | None:
    """The place of the brace that closes what was opened before `place`."""
    depth = 1
    for offset, letter in enumerate(text[place : place + 10_000]):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0:
            return place + offset
    return None
