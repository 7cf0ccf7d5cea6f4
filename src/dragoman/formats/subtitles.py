"""Subtitles, SubRip (.srt) and WebVTT (.vtt): times stay, texts are translated.

A sentence that goes on in the next cue is translated as a whole, and shared among its cues by their length.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from dragoman.formats.base import Code, Item, Options, Unit, line_of
from dragoman.formats.inline import Token, units_of

MAX_CUES = 6
"""Cues that one sentence may go over."""
DASHES = ("-", "–", "—")
"""Marks of who speaks."""

_TIMES = re.compile(r"^[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]*-->[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[^\n]*(?:\n|$)", re.MULTILINE)
_CODE = re.compile(r"</?[A-Za-z0-9][^<>\n]{0,200}>|\{\\?[^{}\n]{1,100}\}|<\d+:\d+[^<>\n]{0,20}>")
_END = re.compile(r"[.!?…。！？♪][\"'”’»)\]]*\s*$")


def units(text: str, options: Options) -> Iterator[Unit]:
    """Sentences over cues, or one cue."""
    cues = [cue for cue in _cues(text) if text[cue[0] : cue[1]].strip()]
    at = 0
    while at < len(cues):
        group = [cues[at]]
        while not _is_whole(text, group[-1]) and len(group) < MAX_CUES and at + len(group) < len(cues):
            group.append(cues[at + len(group)])
        at += len(group)
        tokens: list[Token] = []
        for number, (start, end) in enumerate(group):
            if number:
                tokens.append(Token("cue", group[number - 1][1], start, text[group[number - 1][1] : start]))
            tokens += _tokens(text, start, end)
        render = partial(_written, [text[start:end] for start, end in group])
        yield from units_of(tokens, f"line {line_of(text, group[0][0])}", render, source=text)


def _cues(text: str) -> Iterator[tuple[int, int]]:
    """Where the text of each cue begins and ends; each line of a dialogue by itself."""
    for match in _TIMES.finditer(text):
        start = match.end()
        blank = re.compile(r"\n[ \t]*\r?\n|\Z").search(text, max(start - 1, 0))
        assert blank is not None
        end = max(start, blank.start())
        lines = text[start:end].split("\n")
        if len(lines) > 1 and sum(_bare(line).startswith(DASHES) for line in lines) > 1:
            for line in lines:
                yield start, start + len(line.rstrip())
                start += len(line) + 1
        else:
            yield start, start + len(text[start:end].rstrip())


def _is_whole(text: str, cue: tuple[int, int]) -> bool:
    said = _bare(text[cue[0] : cue[1]])
    return _END.search(said) is not None or said.startswith((*DASHES, "[", "♪")) or said.isupper()


def _bare(text: str) -> str:
    return _CODE.sub("", text).lstrip()


def _tokens(text: str, start: int, end: int) -> Iterator[Token]:
    done = start
    for match in _CODE.finditer(text, start, end):
        if match.start() > done:
            yield Token("text", done, match.start(), text[done : match.start()])
        raw = match.group()
        name = re.sub(r"[</>]|[ .].*", "", raw)
        if raw.startswith("</"):
            yield Token("close", *match.span(), raw, name, True)
        elif raw.startswith("<") and not raw[1].isdigit():
            yield Token("open", *match.span(), raw, name, True)
        else:
            yield Token("alone", *match.span(), raw)
        done = match.end()
    if done < end:
        yield Token("text", done, end, text[done:end])


def _written(sources: Sequence[str], items: Sequence[Item]) -> str:
    """A translation in as many lines a cue as its source has."""
    out, cue = "", ""
    left = iter(sources)
    for item in items:
        if isinstance(item, Code) and item.kind == "cue":
            out, cue = out + _wrapped(cue, next(left)) + item.raw, ""
        else:
            cue += item if isinstance(item, str) else item.raw
    return out + _wrapped(cue, next(left))


def _wrapped(text: str, source: str) -> str:
    """The text in about equally long lines, as many as its source has."""
    lines = source.count("\n") + 1
    text = text.strip()
    places = [
        match.start()
        for match in re.finditer(" ", text)
        if "<" not in text[max(0, match.start() - 20) : match.start()].rpartition(">")[2]
    ]
    if lines == 1 or not places:
        return text
    place = min(places, key=lambda at: abs(at - len(text) / lines))
    newline = "\r\n" if "\r\n" in source else "\n"
    return text[:place] + newline + _wrapped(text[place + 1 :], "\n" * (lines - 2))
