"""Subtitles of Advanced SubStation Alpha (.ass, .ssa): the texts of dialogues. Styles, times and drawings stay.

What stands in braces is formatting or a note; `\\N` and `\\n` are line ends, `\\h` is a blank that does not break.
"""

import re
from collections.abc import Iterator

from dragoman.errors import Error
from dragoman.formats.base import Options, Unit
from dragoman.formats.subtitles import Cue, Syntax, seconds, units_of_cues

KARAOKE = "karaoke, timed by syllables"
COMMENTS = "lines that are comments"
TOO_FEW = "lines with too few fields, which players leave out"

_FIELDS = ("Layer", "Start", "End", "Style", "Name", "MarginL", "MarginR", "MarginV", "Effect", "Text")
_LINE = re.compile(r"^[ \t]*(?P<kind>\[Events\]|\[[^\]\r\n]*\]|Format|Dialogue|Comment)(?::[ \t]*(?P<rest>[^\r\n]*))?",
                   re.MULTILINE | re.IGNORECASE)  # fmt: skip
_KARAOKE = re.compile(r"\\[kK][fot]?\d")
_SYNTAX = Syntax(
    re.compile(
        r"\{(?=[^{}\n]*+\})(?:[^{}\n]*\\p[1-9][^{}\n]*+\}"
        r".*?(?:\{(?=[^{}\n]*+\})[^{}\n]*\\p0?(?=[\\}])[^{}\n]*+\}|$)|[^{}\n]*\})",
        re.MULTILINE,
    ),
    "\\N",
    lambda text: text.replace("\\h", "\u00a0"),
    lambda text: re.sub(r"([{}])", r"\\\1", text.replace("\u00a0", "\\h")),
)
"""A drawing goes from `{\\p1}` to `{\\p0}`."""


def units(text: str, options: Options) -> Iterator[Unit]:
    """Sentences over dialogues, or one dialogue."""
    fields: tuple[str, ...] = _FIELDS
    cues, in_events = [], False
    for line in _LINE.finditer(text):
        kind = line["kind"].lower()
        if kind.startswith("["):
            in_events = kind == "[events]"
        elif in_events and kind == "format" and line["rest"] is not None:
            fields = tuple(name.strip() for name in line["rest"].split(","))
        elif in_events and line["rest"] is not None:
            cues.append(_cue(line, fields, kind))
    if not cues and "[events]" not in text.lower():
        raise Error.WRONG_SHAPE("no [Events]", "are they subtitles of SubStation Alpha?", file=options.name)
    yield from units_of_cues(text, cues, options, _SYNTAX)


def _cue(line: re.Match[str], fields: tuple[str, ...], kind: str) -> Cue:
    values = line["rest"].split(",", len(fields) - 1)
    of = {name.casefold(): value.strip() for name, value in zip(fields, values, strict=False)}
    is_whole = len(values) == len(fields)
    end = line.end("rest")
    start = end - len(values[-1])
    kept = COMMENTS if kind == "comment" else KARAOKE if len(_KARAOKE.findall(values[-1])) > 1 else ""
    style = ",".join(of.get(name, "") for name in ("layer", "style", "name", "actor", "effect"))
    begins, ends = (seconds(of.get(name, "")) for name in ("start", "end"))
    return Cue(start, end, begins, ends, style, kept if is_whole else TOO_FEW)
