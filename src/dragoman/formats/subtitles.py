"""Subtitles, SubRip (.srt), WebVTT (.vtt), YouTube's (.sbv): times stay, texts are translated.

A sentence that goes on in the next cue, without a pause, is translated as a whole and shared among its cues by length.
Where neither capitals nor marks show that it does (Thai; Chinese as subtitles have it), each cue is a text by itself.
`units_of_cues` does so for subtitles of every kind (`ass.py`, `ttml.py`).
"""

import bisect
import html
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from dragoman.errors import Error
from dragoman.formats.base import Code, Edit, Item, Options, Unit, has_letters, line_of
from dragoman.formats.inline import Token, escaped, units_of, without_reading
from dragoman.languages.codes import written_without_spaces
from dragoman.languages.line_breaks import DENSE, columns, line_breaks
from dragoman.languages.punctuation import CASELESS, END

MAX_CUES = 6
"""The most cues that one sentence may go over."""
MAX_PAUSE = 1.0
"""Seconds between two cues, from which on the second one begins a sentence of its own."""
LINE_WIDTH = 42
"""Characters of a line, at least: as broadcasters have them. A file with longer lines keeps its own width."""
SHORTEST_LINE = 4
"""Columns of a line, at least, that is made of a text without spaces."""
DATA = "data of a program (JSON)"
UNTIMED = "text without a time, which players leave out"
DASHES = ("-", "–", "—", "‐", ">>", "&gt;&gt;")
"""Marks of who speaks."""

_TIME = r"-?(?:\d{1,3}[ \t]*:[ \t]*){1,2}\d{1,2}(?:[ \t]*[.,:;][ \t]*\d{1,3})?"
_TIMES = re.compile(rf"^[ \t\ufeff]*({_TIME})[ \t]*(?:-{{1,2}}[ \t]?>|[–—→]>?)[ \t]*({_TIME})(?!\d).*$")
_SBV_TIME = r"\d{1,3}:\d\d:\d\d\.\d{1,3}"
_SBV_TIMES = re.compile(rf"^[ \t\ufeff]*({_SBV_TIME}),({_SBV_TIME})$")
_NOTE = re.compile(r"(?:NOTE|STYLE|REGION)(?!\S)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_NEWLINE = re.compile(r"\r\n|\r(?!\n)|\n")
_WRITTEN_BREAK = re.compile(
    r"\\[Nn]|\[br\]|<(?:\w+:)?br\b[^<>]*>\s*</(?:\w+:)?br\s*>|</?(?:\w+:)?br\b[^<>]*>", re.IGNORECASE
)
"""A line end that is written as a code. In a cue with such a code, line ends of the file are blanks."""
_BREAKS = re.compile(rf"(?<![ \t])[ \t]*+(?:(?:{_NEWLINE.pattern}|{_WRITTEN_BREAK.pattern})[ \t]*+)+", re.IGNORECASE)
_CODE = re.compile(r"<rt>[^<>]*</rt>|</?[A-Za-z0-9][^<>\n]{0,200}>|\{\\?[^{}\n]{1,100}\}|<\d+:\d+[^<>\n]{0,20}>|\\h")
"""A tag, or the reading of a word above it."""
_BLANK_OR_BRACKET = re.compile("[ <>{}]")
_TIME_INSIDE = re.compile(rf"<{_TIME}>")
_ENTITY = re.compile(r"&(?:amp|lt|gt|nbsp|quot|lrm|rlm|#\d{1,7}|#x[0-9A-Fa-f]{1,6});")
_OVERRIDE = re.compile(r"\\(bord|blur|shad|be|fsp|fs|fn|alpha|[1-4][ac]|c|[ibus](?=\d*[\\}]))([^\\{}]*)")
"""Formatting of words by a tag of Advanced SubStation Alpha, which players of SubRip know, too."""
_OPENED = r"\s|<[A-Za-z][^<>\n]{0,200}>|\{\\[^{}\n]{1,100}\}"
_LEAD = re.compile(rf"(?:{_OPENED})*+")
_LONGEST_TAG = 204
_TRAILING = re.compile(r"</[A-Za-z][^<>\n]{0,200}>|\{\\[^{}\n]{1,100}\}")
_PART = re.compile(
    rf"(?:{_NEWLINE.pattern})(?:[ \t]*(?:{_NEWLINE.pattern}))+"
    rf"|(?:{_NEWLINE.pattern}|{_WRITTEN_BREAK.pattern})(?=(?:{_OPENED}){{0,64}}+(?:{'|'.join(DASHES)})|<v[ .])",
    re.IGNORECASE,
)
"""Marks between the texts of a cue: blank lines, and the line end before the words of another speaker."""
_MARK = re.compile(r"(?:[-–—‐]+(?!\d)|(?:>|&gt;)+|[♪♫#*]+(?=\s))\s*")
"""A dash before what somebody says, or a note before a song."""
_END = re.compile(rf"{END}|[♪♫]\s*$")
_UNENDED = re.compile(rf"[{CASELESS}](?<![،؛၊፣፥])\s*$")
"""The end of a text in a script without capitals that has no mark, not even a comma."""


class Syntax(NamedTuple):
    """The way in which a kind of subtitles writes what people read."""

    code: re.Pattern[str] = _CODE
    newline: str = "\n"
    """A line end in a cue without codes for line ends."""
    read: Callable[[str], str] = str
    write: Callable[[str], str] = str


class Cue(NamedTuple):
    """Characters `start` to `end` of a file: the text of a cue, or a part of a cue that is a text by itself.

    `begins` and `ends` are its times in seconds. `kept`: the reason why it is left as it is.
    """

    start: int
    end: int
    begins: float
    ends: float
    style: str = ""
    """A sentence goes on in cues of the same style alone."""
    kept: str = ""


def units(text: str, options: Options, times: re.Pattern[str] = _TIMES) -> Iterator[Unit]:
    """Sentences over cues, or one cue."""
    cues = list(_cues(text, times))
    if not cues and text.strip() and not text.startswith("WEBVTT"):
        example = "0:00:01.000,0:00:02.000" if times is _SBV_TIMES else "00:00:01,000 --> 00:00:02,000"
        raise Error.WRONG_SHAPE("no times of subtitles", f"are they written as {example}?", file=options.name)
    syntax = Syntax(newline=(_NEWLINE.search(text) or ["\n"])[0])
    if text.startswith("WEBVTT") or _ENTITY.search(text):
        syntax = syntax._replace(read=html.unescape, write=lambda content: escaped(content).replace("\u00a0", "&nbsp;"))
    yield from units_of_cues(text, cues, options, syntax)


sbv_units = partial(units, times=_SBV_TIMES)


def units_of_cues(text: str, cues: Sequence[Cue], options: Options, syntax: Syntax) -> Iterator[Unit]:
    """Sentences over several cues, or over parts of a cue."""
    of_cue = [[cue._replace(start=start, end=end) for start, end in _parts(text, cue)] for cue in cues]
    parts = [(number, part) for number, parts in enumerate(of_cue) for part in parts]
    width = max([LINE_WIDTH, *(len(line) for _, part in parts for line in _lines(syntax, text[part.start : part.end]))])
    ended = sum(_END.search(text[slice(*_core(text, part))]) is not None for _, part in parts)
    has_marks = ended * MAX_CUES >= len(parts)
    at = 0
    while at < len(parts):
        group = [parts[at]]
        while len(group) < MAX_CUES and at + len(group) < len(parts) and options.join_cues:
            (number, last), (following, part) = group[-1], parts[at + len(group)]
            if not has_marks and _UNENDED.search(text[slice(*_core(text, last))]):
                break
            if not _goes_on(text, last, part, is_same_cue=number == following, syntax=syntax):
                break
            group.append((following, part))
        at += len(group)
        yield from _unit(text, [part for _, part in group], width, syntax, options)


def _unit(text: str, group: Sequence[Cue], width: int, syntax: Syntax, options: Options) -> Iterator[Unit]:
    """The unit of a text that goes over some parts. Tags around each of them stay where they are."""
    cores = [_core(text, part) for part in group] if len(group) > 1 else [(group[0].start, group[0].end)]
    tokens: list[Token] = []
    for number, (start, end) in enumerate(cores):
        if number:
            before = cores[number - 1][1]
            tokens.append(Token("cue", before, start, text[before:start]))
            if not written_without_spaces(options.languages[0]):
                tokens.append(Token("text", start, start, " "))
        tokens += _tokens(text, start, end, syntax)
    render = partial(_written, [text[start:end] for start, end in cores], width, syntax)
    beside = partial(_beside, text, cores, width, syntax) if options.bilingual else None
    for unit in units_of(tokens, f"line {line_of(text, group[0].start)}", render, source=text):
        yield replace(unit, kept=group[0].kept, beside=beside)


def _cues(text: str, times: re.Pattern[str]) -> Iterator[Cue]:
    """The text of each cue, which stands between the lines of times."""
    lines = [match.span() for match in _LINE.finditer(text) if match.end() > match.start()]
    timed = [
        (number, match) for number, line in enumerate(lines) if (match := times.match(text[slice(*line)].rstrip()))
    ]
    is_vtt = text.startswith("WEBVTT")
    if is_vtt:
        until = timed[0][0] if timed else len(lines)
        header = itertools.takewhile(lambda line: text[slice(*line)].strip(), lines[:until])
        yield from _untimed(text, lines[len(list(header)) : until], is_end=not timed)
    for cue, (number, match) in enumerate(timed):
        following = timed[cue + 1][0] if cue + 1 < len(timed) else len(lines)
        last = following - 1
        if following < len(lines) and last > number and text[slice(*lines[last])].strip().isdigit():
            following -= 1  # the number of the next cue
        own = lines[number + 1 : following]
        if is_vtt:  # what follows a blank line belongs to no cue
            own = list(itertools.takewhile(lambda line: text[slice(*line)].strip(), own))
        if own:
            kept = DATA if _is_data(text[own[0][0] : own[-1][1]]) else ""
            yield Cue(own[0][0], own[-1][1], seconds(match[1]), seconds(match[2]), kept=kept)
        if is_vtt:
            until = timed[cue + 1][0] if cue + 1 < len(timed) else len(lines)
            yield from _untimed(text, lines[number + 1 + len(own) : until], is_end=until == len(lines))


def _is_data(content: str) -> bool:
    """True for a cue with JSON for a program, as a track of metadata has it."""
    if not re.match(r"\s*[{\[]\s*[{\"]", content):
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _untimed(text: str, lines: Sequence[tuple[int, int]], *, is_end: bool) -> Iterator[Cue]:
    """The blocks between two cues of WebVTT that are neither notes nor styles, nor the name of the next cue: one line
    right before its times."""
    for is_blank, group in itertools.groupby(lines, lambda line: not text[slice(*line)].strip()):
        block = list(group)
        is_name = not is_end and block == [lines[-1]]
        if not is_blank and not is_name and not _NOTE.match(text, block[0][0]):
            yield Cue(block[0][0], block[-1][1], math.nan, math.nan, kept=UNTIMED)


def _parts(text: str, cue: Cue) -> Iterator[tuple[int, int]]:
    """The texts of a cue: what blank lines part, and what each one says."""
    done = cue.start
    for match in [*_PART.finditer(text, cue.start, cue.end), None]:
        piece = text[done : match.start() if match else cue.end]
        if piece.strip():
            yield done + len(piece) - len(piece.lstrip()), done + len(piece.rstrip())
        done = match.end() if match else cue.end


def seconds(written: str) -> float:
    """Seconds of a time; NaN where there is none.

    >>> seconds("00:01:02,500"), seconds("1:02.5"), seconds("0:01:02")
    (62.5, 62.5, 62.0)
    """
    numbers = re.findall(r"\d+", written)
    if not numbers:
        return math.nan
    marks = re.sub(r"[\d\s-]", "", written)
    fraction = float(f"0.{numbers.pop()}") if marks[-1:] in ".,;" or len(numbers) > 3 else 0.0
    return sum(int(number) * 60**power for power, number in enumerate(reversed(numbers))) + fraction


def _core(text: str, part: Cue) -> tuple[int, int]:
    """Where a part's text begins and ends, without the tags around it."""
    piece = text[part.start : part.end]
    lead = _LEAD.match(piece)
    assert lead is not None
    return part.start + lead.end(), part.start + max(_end_of_words(piece), lead.end())


def _end_of_words(piece: str) -> int:
    """Where the blanks and the tags at the end of a text begin."""
    end = len(piece.rstrip())
    while end and piece[end - 1] in ">}":
        begin = piece.rfind("<" if piece[end - 1] == ">" else "{", max(0, end - _LONGEST_TAG), end)
        if begin < 0 or not _TRAILING.fullmatch(piece, begin, end):
            break
        end = begin
        while end and piece[end - 1].isspace():
            end -= 1
    return end


def _goes_on(text: str, part: Cue, following: Cue, is_same_cue: bool, syntax: Syntax) -> bool:
    """True if a sentence goes on in the next part: there is no end, no pause, and no other speaker."""
    if not is_same_cue and not part.begins < following.begins <= part.ends + MAX_PAUSE:
        return False
    if part.style != following.style or part.kept or following.kept:
        return False
    cores = [text[slice(*_core(text, one))] for one in (part, following)]
    if not all(map(has_letters, cores)):  # a countdown
        return False
    leads = [text[one.start : _core(text, one)[0]].strip() for one in (part, following)]
    if leads[0] != leads[1] or any(_codes(syntax, core, 0, len(core)) for core in cores) or _END.search(cores[0]):
        return False
    return not any(core.startswith((*DASHES, "[", "(", "♪", "♫", "#")) or core.isupper() for core in cores)


def _codes(syntax: Syntax, text: str, start: int, end: int) -> list[re.Match[str]]:
    return [match for match in syntax.code.finditer(text, start, end) if not _WRITTEN_BREAK.fullmatch(match.group())]


def _tokens(text: str, start: int, end: int, syntax: Syntax) -> Iterator[Token]:
    """The tokens of one text, without a dash before it."""
    is_begin = True
    done = start
    for match in [*_codes(syntax, text, start, end), None]:
        stop = match.start() if match else end
        if done < stop and is_begin and (mark := _MARK.match(text, done, stop)):
            yield Token("alone", *mark.span(), mark.group())
            done = mark.end()
        if done < stop:
            yield Token("text", done, stop, syntax.read(_BREAKS.sub(" ", text[done:stop])))
            is_begin = is_begin and not text[done:stop].strip()
        if match:
            yield _code(match)
            done = match.end()


def _code(match: re.Match[str]) -> Token:
    raw = match.group()
    if raw.startswith("<rt>"):
        return Token("alone", *match.span(), without_reading(raw), fixed=True)
    tags = _OVERRIDE.findall(raw)
    if tags and raw == "{" + "".join(f"\\{name}{value}" for name, value in tags) + "}":
        is_end = all(value in ("", "0") for _, value in tags)
        return Token(
            "close" if is_end else "open", *match.span(), raw, "\\".join(sorted(name for name, _ in tags)), True
        )
    name = re.sub(r"[</>]|[ .].*", "", raw, flags=re.DOTALL)
    if raw.startswith("</"):
        return Token("close", *match.span(), raw, name, True)
    is_open = raw.startswith("<") and raw[1].isalnum() and not raw[1].isdigit() and not raw.endswith("/>")
    return Token("open" if is_open else "alone", *match.span(), raw, name, is_open)


def _written(sources: Sequence[str], width: int, syntax: Syntax, items: Sequence[Item]) -> str:
    """A translation, and the file's characters between its cues."""
    between = [item.raw for item in items if isinstance(item, Code) and item.kind == "cue"]
    wrapped = _cues_of(sources, width, syntax, items)
    return "".join(itertools.chain(*itertools.zip_longest(wrapped, between, fillvalue="")))


def _beside(
    text: str, cores: Sequence[tuple[int, int]], width: int, syntax: Syntax, unit: Unit, items: Sequence[Item]
) -> Iterator[Edit]:
    """The lines of a translation below those of their source, in each cue; the mark of who speaks comes again."""
    sources = [text[start:end] for start, end in cores]
    for (start, end), source, translation in zip(cores, sources, _cues_of(sources, width, syntax, items), strict=False):
        begin, end = max(start, unit.start), min(end, unit.end)
        lead = _LEAD.match(text, start, begin)
        mark = _MARK.match(text, lead.end() if lead else start, begin)
        if translation and translation != text[begin:end]:
            newline = (_line_ends(source.strip()) or [syntax.newline])[0]
            yield Edit(end, end, newline + (mark.group() if mark and mark.end() == begin else "") + translation)


def _cues_of(sources: Sequence[str], width: int, syntax: Syntax, items: Sequence[Item]) -> list[str]:
    """A translation cue by cue, in as many lines as its source has, or more where they would be too long."""
    cues = [
        "".join(syntax.write(item) if isinstance(item, str) else item.raw for item in group)
        for is_cue, group in itertools.groupby(
            _in_order(items), lambda item: isinstance(item, Code) and item.kind == "cue"
        )
        if not is_cue
    ]
    return [_wrapped(cue, source, width, syntax) for cue, source in itertools.zip_longest(cues, sources, fillvalue="")]


def _in_order(items: Sequence[Item]) -> list[Item]:
    """Items whose times inside of a cue (karaoke) come one after the other, as players need them."""
    is_time = [isinstance(item, Code) and _TIME_INSIDE.fullmatch(item.raw) is not None for item in items]
    times = [item for item in itertools.compress(items, is_time) if isinstance(item, Code)]
    following = iter(sorted(times, key=lambda code: seconds(code.raw)))
    return [next(following) if one else item for item, one in zip(items, is_time, strict=True)]


def _line_ends(text: str) -> list[str]:
    return _WRITTEN_BREAK.findall(text) or _NEWLINE.findall(text)


def _lines(syntax: Syntax, text: str) -> list[str]:
    """The lines of a part as people see them."""
    ends = _WRITTEN_BREAK if _WRITTEN_BREAK.search(text) else _NEWLINE
    return [_bare(syntax, line).strip() for line in ends.split(text)]


def _bare(syntax: Syntax, text: str) -> str:
    return syntax.code.sub("", text).lstrip()


def _wrapped(text: str, source: str, width: int, syntax: Syntax) -> str:
    """The text in about equally long lines, as many as its source has."""
    text = text.strip()
    ends = _line_ends(source.strip())
    newline = ends[0] if ends else syntax.newline
    # Of each character: the columns that a reader sees.
    sizes = bytearray(b"\1" * len(text)) if text.isascii() else bytearray(map(columns, text))
    for code in syntax.code.finditer(text):
        sizes[slice(*code.span())] = bytes(len(code[0]))
    seen = [0, *itertools.accumulate(sizes)]  # of each place: the columns before it
    prices = _breaks_in_words(text, syntax) if DENSE.search(text) else {}
    blanks = _blanks(text)
    prices |= dict.fromkeys(blanks, 0.0) if prices else {}
    places = sorted(prices) or blanks
    before, costs = [seen[at] for at in places], [prices.get(at, 0.0) for at in places]
    begin = _first_seen(text, sizes, 0)
    lines: list[str] = []
    done = first = 0
    for left in range(max(len(ends) + 1, -(-(seen[-1] - seen[begin]) // width)), 1, -1):
        if first == len(places):
            break
        begin = _first_seen(text, sizes, max(begin, done))
        share = (seen[-1] - seen[begin]) / left
        if prices and share < SHORTEST_LINE:
            break
        if prices:
            chosen = _cheapest(before, costs, seen[begin], share, first)
        else:
            chosen = _nearest(before, seen[begin], seen[begin] + share, first)
        lines.append(text[done : places[chosen]].rstrip(" "))
        done, first = places[chosen] + (text[places[chosen]] == " "), chosen + 1
    return newline.join([*lines, text[done:]])


def _breaks_in_words(text: str, syntax: Syntax) -> dict[int, float]:
    """The places where a line may end in scripts without spaces, and their prices; end tags stay with their line."""
    codes = {match.start(): match.end() for match in syntax.code.finditer(text)}
    read = [
        at for start, end in zip([0, *codes.values()], [*codes, len(text)], strict=True) for at in range(start, end)
    ]
    prices = {}
    for place, price in line_breaks("".join(text[at] for at in read)):
        at = read[place - 1] + 1
        while text.startswith("</", at) and at in codes:
            at = codes[at]
        prices[at] = price
    return prices


def _cheapest(before: Sequence[int], prices: Sequence[float], begin: int, share: float, first: int) -> int:
    """The number of the place for a line's end, from `first` on: near to a `share` of columns behind `begin`, at a low
    price."""
    near = range(
        bisect.bisect_left(before, begin + share / 2, first), bisect.bisect_right(before, begin + share * 1.5, first)
    )
    if not near:
        return min(bisect.bisect_left(before, begin + share, first), len(before) - 1)
    return min(near, key=lambda number: abs(before[number] - begin - share) + prices[number] * share)


def _blanks(text: str) -> list[int]:
    """The places of the blanks that stand in no tag."""
    places = []
    is_inside = False
    for match in reversed([*_BLANK_OR_BRACKET.finditer(text)]):
        if match[0] != " ":
            is_inside = match[0] in ">}"
        elif not is_inside:
            places.append(match.start())
    return places[::-1]


def _first_seen(text: str, sizes: bytearray, at: int) -> int:
    """The first place from `at` on of something that a reader sees, no blank."""
    while at < len(text) and (not sizes[at] or text[at].isspace()):
        at += 1
    return at


def _nearest(counts: Sequence[int], least: int, share: float, first: int) -> int:
    """The index, from `first` on, of the number nearest to a share; of equally near numbers the first. Numbers below
    `least` count as `least`."""
    after = bisect.bisect_left(counts, share, first)
    if after == first or (after < len(counts) and counts[after] - share < share - max(counts[after - 1], least)):
        return after
    return bisect.bisect_left(counts, counts[after - 1], first) if counts[after - 1] > least else first
