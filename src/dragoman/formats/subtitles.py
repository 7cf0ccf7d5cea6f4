"""Subtitles, SubRip (.srt) and WebVTT (.vtt): times stay, texts are translated.

A sentence that goes on in the next cue, without a pause, is translated as a whole and shared among its cues by length.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from dragoman.errors import Error
from dragoman.formats.base import Code, Item, Options, Unit, line_of
from dragoman.formats.inline import Token, units_of

MAX_CUES = 6
"""Cues that one sentence may go over."""
MAX_PAUSE = 1.0
"""Seconds between two cues, from which on the second one begins a sentence of its own."""
LINE_WIDTH = 42
"""Characters of a line, at least: as broadcasters have them. A file with longer lines keeps its own width."""
DASHES = ("-", "–", "—", "‐")
"""Marks of who speaks."""

_TIME = r"-?(?:\d{1,3}[ \t]*:[ \t]*){1,2}\d{1,2}(?:[ \t]*[.,:;][ \t]*\d{1,3})?"
_TIMES = re.compile(rf"^[ \t\ufeff]*({_TIME})[ \t]*(?:-{{1,2}}[ \t]?>|[–—→]>?)[ \t]*({_TIME})(?!\d).*$")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_CODE = re.compile(
    r"</?[A-Za-z0-9][^<>\n]{0,200}>|\{\\?[^{}\n]{1,100}\}|<\d+:\d+[^<>\n]{0,20}>|&(?:[A-Za-z]{2,8}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});"
    r"|\\[Nnh]"
)
_LEAD = re.compile(r"(?:\s|<[A-Za-z][^<>\n]{0,200}>|\{\\[^{}\n]{1,100}\})*")
_TRAIL = re.compile(r"(?:\s|</[A-Za-z][^<>\n]{0,200}>)*\Z")
_MARK = re.compile(r"(?:[-–—‐]+(?!\d)|[♪♫#*]+(?=\s))\s*")
"""A dash before what somebody says, or a note before a song."""
_END = re.compile(r"[.!?…。！？♪♫؟۔।॥։።][\"'”’»)\]]*\s*$")


class Place(NamedTuple):
    """Characters `start` to `end` of a file that are one text of a cue, the cue's number, and its times in seconds."""

    start: int
    end: int
    cue: int
    begins: float
    ends: float


def units(text: str, options: Options) -> Iterator[Unit]:
    """Sentences over cues, or one cue."""
    places = list(_places(text))
    is_vtt = text.startswith("WEBVTT")
    if not places and text.strip() and not is_vtt:
        raise Error.WRONG_SHAPE(
            "no times of subtitles", "are they written as 00:00:01,000 --> 00:00:02,000?", file=options.name
        )
    width = max(
        [LINE_WIDTH, *(len(line) for place in places for line in _bare(text[place.start : place.end]).splitlines())]
    )
    at = 0
    while at < len(places):
        group = [places[at]]
        while len(group) < MAX_CUES and at + len(group) < len(places) and options.join_cues:
            if not _goes_on(text, group[-1], places[at + len(group)]):
                break
            group.append(places[at + len(group)])
        at += len(group)
        yield from _unit(text, group, width)


def _unit(text: str, group: Sequence[Place], width: int) -> Iterator[Unit]:
    """The unit of a text that goes over some places. Tags around each of them stay where they are."""
    cores = [_core(text, place) for place in group] if len(group) > 1 else [(group[0].start, group[0].end)]
    tokens: list[Token] = []
    for number, (start, end) in enumerate(cores):
        if number:
            before = cores[number - 1][1]
            tokens.append(Token("cue", before, start, text[before:start]))
        tokens += _tokens(text, start, end)
    render = partial(_written, [text[start:end] for start, end in cores], width)
    yield from units_of(tokens, f"line {line_of(text, group[0].start)}", render, source=text)


def _places(text: str) -> Iterator[Place]:
    """The texts of each cue: what blank lines part, and each speaker's."""
    lines = [match.span() for match in _LINE.finditer(text) if match.end() > match.start()]
    heads = [
        number
        for number, line in enumerate(lines)
        if "-" in text[slice(*line)] or "→" in text[slice(*line)] or "—" in text[slice(*line)]
    ]
    timed = [(number, match) for number in heads if (match := _TIMES.match(text[slice(*lines[number])].rstrip()))]
    is_vtt = text.startswith("WEBVTT")
    for cue, (number, times) in enumerate(timed):
        following = timed[cue + 1][0] if cue + 1 < len(timed) else len(lines)
        last = following - 1
        if following < len(lines) and last > number and text[slice(*lines[last])].strip().isdigit():
            following -= 1  # the number of the next cue
        own: list[tuple[int, int]] = []
        for start, end in [*lines[number + 1 : following], (0, 0)]:
            said = text[start:end]
            is_blank = not said.strip()
            if own and (is_blank or _bare(said).startswith(DASHES)):
                yield _place(text, own, cue, times)
                own = []
            if is_blank and is_vtt and end:
                break  # what follows belongs to no cue
            if not is_blank:
                own.append((start, end))


def _place(text: str, lines: Sequence[tuple[int, int]], cue: int, times: re.Match[str]) -> Place:
    start, end = lines[0][0], lines[-1][1]
    return Place(start, start + len(text[start:end].rstrip()), cue, _seconds(times[1]), _seconds(times[2]))


def _seconds(written: str) -> float:
    """Seconds of a time.

    >>> _seconds("00:01:02,500"), _seconds("1:02.5"), _seconds("0:01:02")
    (62.5, 62.5, 62.0)
    """
    numbers = re.findall(r"\d+", written)
    marks = re.sub(r"[\d\s-]", "", written)
    fraction = float(f"0.{numbers.pop()}") if marks[-1:] in ".,;" or len(numbers) > 3 else 0.0
    return sum(int(number) * 60**power for power, number in enumerate(reversed(numbers))) + fraction


def _core(text: str, place: Place) -> tuple[int, int]:
    """Where a place's text begins and ends, without the tags around it."""
    said = text[place.start : place.end]
    lead, trail = _LEAD.match(said), _TRAIL.search(said)
    assert lead is not None
    assert trail is not None
    return place.start + lead.end(), max(place.start + trail.start(), place.start + lead.end())


def _goes_on(text: str, place: Place, following: Place) -> bool:
    """True if a sentence goes on in the next place: there is no end, no pause, and no other speaker."""
    if place.cue != following.cue and not place.begins < following.begins <= place.ends + MAX_PAUSE:
        return False
    cores = [text[slice(*_core(text, one))] for one in (place, following)]
    leads = [text[one.start : _core(text, one)[0]].strip() for one in (place, following)]
    if leads[0] != leads[1] or any(_CODE.search(core) for core in cores) or _END.search(cores[0]):
        return False
    return not any(core.startswith((*DASHES, "[", "(", "♪", "♫", "#")) or core.isupper() for core in cores)


def _bare(text: str) -> str:
    return _CODE.sub("", text).lstrip()


def _tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of one text. A dash before it is none of its words."""
    is_begin = True
    done = start
    for match in [*_CODE.finditer(text, start, end), None]:
        stop = match.start() if match else end
        if done < stop and is_begin and (mark := _MARK.match(text, done, stop)):
            yield Token("alone", *mark.span(), mark.group())
            done = mark.end()
        if done < stop:
            yield Token("text", done, stop, re.sub(r"[ \t]*(?:\r\n|\r|\n)[ \t]*", " ", text[done:stop]))
            is_begin = is_begin and not text[done:stop].strip()
        if match:
            yield _code(match)
            done = match.end()


def _code(match: re.Match[str]) -> Token:
    raw = match.group()
    name = re.sub(r"[</>]|[ .].*", "", raw)
    if raw.startswith("</"):
        return Token("close", *match.span(), raw, name, True)
    if raw.startswith("<") and not raw[1].isdigit():
        return Token("open", *match.span(), raw, name, True)
    return Token("break" if raw in ("\\N", "\\n") else "alone", *match.span(), raw)


def _written(sources: Sequence[str], width: int, items: Sequence[Item]) -> str:
    """A translation in as many lines a cue as its source has, or more where they would be too long."""
    cues = [
        "".join(item if isinstance(item, str) else item.raw for item in group)
        for is_cue, group in itertools.groupby(items, lambda item: isinstance(item, Code) and item.kind == "cue")
        if not is_cue
    ]
    between = [item.raw for item in items if isinstance(item, Code) and item.kind == "cue"]
    wrapped = [_wrapped(cue, source, width) for cue, source in itertools.zip_longest(cues, sources, fillvalue="")]
    return "".join(itertools.chain(*itertools.zip_longest(wrapped, between, fillvalue="")))


def _wrapped(text: str, source: str, width: int) -> str:
    """The text in about equally long lines, as many as its source has."""
    text = text.strip()
    newline = (re.search(r"\r\n|\r|\n", source) or ["\n"])[0]
    length = len(_bare(text))
    left = max(len(source.strip().splitlines()), -(-length // width))
    lines = []
    while left > 1:
        places = [match.start() for match in re.finditer(r" (?![^<{]*[>}])", text)]
        if not places:
            break
        share = len(_bare(text)) / left
        place = min(places, key=lambda at: abs(len(_bare(text[:at])) - share))
        lines.append(text[:place])
        text, left = text[place + 1 :], left - 1
    return newline.join([*lines, text])
