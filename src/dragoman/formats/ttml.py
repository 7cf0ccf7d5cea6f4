"""Subtitles as XML, TTML (.ttml, .dfxp, .itt): the contents of `<p>`, whose `<br/>` is a line end."""

import html
import math
import re
from collections.abc import Iterator

from dragoman.formats.base import Options, Unit, refuse
from dragoman.formats.inline import escaped
from dragoman.formats.subtitles import Cue, Syntax, seconds, units_of_cues
from dragoman.formats.xml import Event, attribute, elements, events, local

_SYNTAX = Syntax(
    re.compile(
        r"<!--.*?-->|<((?:\w+:)?metadata)\b[^<>]*(?<!/)>.*?</\1>|<!\[CDATA\[.*?\]\]>|</?[\w:.-]+(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
        re.DOTALL,
    ),
    "<br/>",
    html.unescape,
    escaped,
)
_OFFSET = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|f|t)")


def units(text: str, options: Options) -> Iterator[Unit]:
    """Sentences over paragraphs, or one paragraph."""
    every_event = list(events(text, options))
    root = next(event for event in every_event if event.kind == "start")
    if local(root.name) != "tt":
        raise refuse(options, text, root.start, f"<{local(root.name)}>, not <tt>: no subtitles of TTML")
    rates = {
        "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001,
        "f": 1 / _rate(root, "frameRate", 30), "t": 1 / _rate(root, "tickRate", 10_000_000),
    }  # fmt: skip
    cues = []
    for _, element in elements(every_event, ("p",)):
        of = element[0]
        begins, ends, length = (_time(attribute(of, name), rates) for name in ("begin", "end", "dur"))
        style = " ".join(attribute(of, name) for name in ("region", "style", "agent"))
        cues.append(Cue(of.end, element[-1].start, begins, begins + length if math.isnan(ends) else ends, style))
    yield from units_of_cues(text, cues, options, _SYNTAX)


def _rate(root: Event, name: str, usual: float) -> float:
    value = attribute(root, name)
    return float(value) if value.isdigit() and int(value) else usual


def _time(written: str, rates: dict[str, float]) -> float:
    """Seconds of a time: `00:00:01.5`, `1.5s`, `36t`; NaN where there is none."""
    if offset := _OFFSET.fullmatch(written.strip()):
        return float(offset[1]) * rates[offset[2]]
    return seconds(written)
