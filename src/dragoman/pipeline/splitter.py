"""Texts cut into the pieces that are translated, and put together again with the white space between them kept."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.alignment.markup import PROTECTED
from dragoman.cancellation import check
from dragoman.formats.html_pieces import VOID
from dragoman.languages.punctuation import CLOSING, ENDS, joined_by
from dragoman.quality.faults import UNITS
from dragoman.text.message_format import masked
from dragoman.text.placeholders import span_ranges, without_spans
from dragoman.text.segment import Span, sentences
from dragoman.text.words import UNSPACED, borders

MAX_SHARE_OF_SEVERAL = 0.5
"""A corpus of which a larger share of lines has several sentences teaches to translate such lines as a whole.

Where fewer have, sentence by sentence is better all the same: LibreOffice's help, a fifth of whose lines have several,
gains 1.5 BLEU by it (benchmarks/log/2026-11.md, "sentences, memories, messy text").
"""

MAX_TOGETHER = 8
"""Sentences of a text that may have a translation together, at most."""
MAX_CHARS = 20_000
"""Characters that the rules see at once: a longer text is cut before, at a space behind a mark if it can be."""

_LETTER = re.compile(r"[^\W\d_]")
_BREAK = re.compile(
    r"(?P<path>(?<![A-Za-z])[A-Za-z]:\\(?:[\w.+@~()-]{1,64}(?: [\w.+@~()-]{1,64}){0,2}(?<!\.)\\){0,16}[\w.+@~()-]*)"
    r"|(?:[\t\n\v\f\r\u2028\u2029]|_x000[9A-Da-d]_)+"
    r"|(?:(?i:</?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|h[1-6]|table|tr|td|th|blockquote|pre)\b)[^<>]{0,1000}>\s*)+"
    r"|(?:\\[rnt])*(?:\\[nt](?![a-z0-9_])|(?<=[.!?:;]\\)n|\\N(?![a-z]))"
    r"|[ \u00a0]?(?<!\|)\|(?!\||[\w.:-]{1,60}\|(?!\w))[ \u00a0]?|(?<=\w)\|(?=\w)"
    r"|(?:(?<![ \u00a0])[ \u00a0]+)?(?:\.{5,}|_{5,}|…{2,}|(?:\. ){4,}\.?)[ \u00a0]*"
)
"""Line ends, tabs, tags that part paragraphs or lines, `\n` and Excel's `_x000D_` as programs write them, the bar
between forms of a plural, and leaders. In a path of Windows, whose folders
end in no full stop, is none."""
_MAY_BREAK = re.compile(
    r"[\\\t\n\v\f\r\u2028\u2029|<_.…](?:(?<=[^<_.…])|(?<=_)(?:x000|____)|(?<=\.)(?:\.{4}| \. \. \.)|(?<=…)…"
    r"|(?<=<)/?[PDBHLOUTpdbhlout])"
)
"""A part of each such break. The search begins with one set of characters, and takes a fiftieth of the time."""
_INTERVAL = re.compile(r"\s*\((?:\d{1,9}|inf)?(?:-(?:\d{1,9}|inf)?)?\)\[(?P<text>[^;]*)\]\s*(?:;|\Z)")
_INTERVALS = re.compile(rf"(?:{_INTERVAL.pattern.replace('?P<text>', '?:')})+\s*")
"""A text for each interval of numbers, as i18next writes them: `(1)[one dog];(2-7)[a few dogs];(7-inf)[many dogs];`."""
_MARK = re.compile(
    r"(?:(?:[-–—*+•◦▪●‣·○■□➢►]|\[[ xX]\]|\[\d{1,3}\]|[\[\]](?:-?\d{1,9}|-Inf|\*),(?:\d{1,9}|\+?Inf|\*)[\[\]]"
    r"|\[\^[^\]\s]{1,50}\]:?|\(?(?:\d{1,3}|[A-Za-z])\))\s+)+"
)
"""Marks of a list, of a dialogue or of a note before a text, and intervals of numbers (`[2,19]`, `]19,Inf[`)."""
_TAG = re.compile(r"</?[A-Za-z0-9][^<>]{0,1000}>")
_ENDED = re.compile(rf"[{ENDS}][{CLOSING}]{{0,3}}$")
"""The end of a sentence before a tag."""
_MAY_CUT = re.compile(rf"[{ENDS}]\s|[\n。！？।။។]")
_BEGINS = "\"'„“‘«¿¡("
_NO_SENTENCE = re.compile(
    r"(?:https?://|www\.)\S+|[^\s@]{1,200}@\S{1,200}\.\w{1,63}|[\w./\\-]+\.\w{2,5}|--?\w[\w-]*|\(?[A-Za-z][.)]?|\(?[ivxIVX]{1,5}[.)]|TRUE|FALSE|NULL|N/A|nplurals\s*=.*|\w+_\w+|(?=[a-f-]*\d)[0-9a-f-]+"
)
"""Addresses, files, options of commands, constants, rules of plurals: nothing to translate."""
_CODE = re.compile(r"(?=\D*\d)(?!\d+(?:st|nd|rd|th|er|e|s)$)(?!.*(?=[A-Za-z]{4})[A-Z]*[a-z])[\x21-\x7e]+")
"""A word with digits and without four letters in a row that are not all capitals: `PX200/B`, `x86_64`, `24h`."""
_ACRONYM = re.compile(r"[A-Z]{2,4}")


class Piece(NamedTuple):
    """A piece of a text, and whether there is anything in it to translate."""

    span: Span
    text: str
    is_text: bool
    again: int = 0
    """Pieces of the same text before it, where each is translated for itself."""

    @property
    def key(self) -> str:
        """The name of a piece, by which its translation is looked up: its text, if the text is there once."""
        return f"{self.text}\0{self.again}" if self.again else self.text


def each_for_itself(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of a text, so that two of the same text may have two translations."""
    times = Counter[str]()
    numbered = []
    for piece in pieces:
        numbered.append(piece._replace(again=times[piece.text]))
        times[piece.text] += 1
    return numbered


class Joined(NamedTuple):
    """The translation of a text, and (piece, where its translation begins, that translation) of each piece."""

    text: str
    places: list[tuple[Piece, int, str]]


@dataclass(frozen=True)
class Splitter:
    """The rules by which texts are cut: into sentences, or else into lines."""

    languages: tuple[str, str] = ("", "")
    sentences: bool = True
    numbers: bool = False
    """Pieces without letters are translated too: the run was trained on such text."""
    is_whole: Callable[[str], bool] | None = None
    """True for a text, or for sentences of a text, that must not be cut, because the whole has a translation
    already."""
    breaks_inside: Callable[[str, str], bool] | None = None
    """False if no line break between two texts is inside of what `is_whole`."""
    is_word: Callable[[str], bool] = lambda _: True
    """True for letters that the model knows as a word; a short text in capitals that is no word stays as it is."""
    count: Callable[[int], None] = lambda _: None
    """Is told the characters of each translation before it is put together."""

    def pieces(self, text: str, codes: Sequence[int] = ()) -> list[Piece]:
        """The pieces of a text, in order, without the white space, marks and tags before and after them.

        An argument with arms stays whole. `codes`: places where something stood that was taken out.
        """
        check()
        if len(text) > MAX_CHARS:
            parts = list(_parts(text))
            return [
                piece._replace(span=Span(start + piece.span.start, start + piece.span.end))
                for start, end in parts
                for piece in self.pieces(text[start:end], [at - start for at in codes if start < at < end])
            ]
        read = masked(text)
        if read is None or (self.is_whole is not None and self.is_whole(text)):
            spans = [_trimmed(text, 0, len(text))]
        else:
            spans = [span for section in self._sections(read) for span in self._cut(read, section, codes)]
            spans = list(self._over_breaks(text, spans))
        return [
            Piece(span, text[slice(*span)], self.is_text(text[slice(*span)])) for span in spans if span.start < span.end
        ]

    @staticmethod
    def _sections(text: str) -> Iterator[Span]:
        """The parts of a text between its breaks; a bar or a tab in a placeholder is none."""
        if _INTERVALS.fullmatch(text):
            yield from (Span(*match.span("text")) for match in _INTERVAL.finditer(text))
            return
        at = 0
        breaks = [match for match in _BREAK.finditer(text) if match["path"] is None] if _MAY_BREAK.search(text) else []
        spans = iter(span_ranges(text) if breaks else ())
        start, end = next(spans, (len(text), len(text)))
        for match in breaks:
            while end <= match.start() < len(text):
                start, end = next(spans, (len(text), len(text)))
            if start < match.start() or (start == match.start() and match.end() < end):
                continue
            yield Span(at, match.start())
            at = match.end()
        yield Span(at, len(text))

    def _cut(self, text: str, section: Span, codes: Sequence[int]) -> Iterator[Span]:
        """The sentences of a section, or all of it, without marks of a list before them.

        Tags and codes are looked through, and what stands between two sentences is part of neither.
        """
        check()
        read, places = _without_tags(text, section, codes)
        for cut in self._sentences(read):
            span = _trimmed(read, *cut)
            mark = None if self.numbers else _MARK.match(read, *span)
            span = span if mark is None else Span(mark.end(), span.end)
            if span.start < span.end:
                yield _with_own_tags(text, section, Span(places[span.start], places[span.end - 1] + 1))

    def _sentences(self, read: str) -> Iterator[Span]:
        """The sentences of a section. Sentences that have a translation together count as one. Where texts are not cut
        into sentences: the text between these, or the whole text."""
        if self.is_whole is None and not self.sentences:
            yield Span(0, len(read))
            return
        spans = sentences(read, self.languages[0])
        at = begun = 0
        while at < len(spans):
            together = self._together(read, spans[at : at + MAX_TOGETHER])
            if together and begun < at:
                yield Span(spans[begun].start, spans[at - 1].end)
            if together or self.sentences:
                end = at + max(1, together)
                yield Span(spans[at].start, spans[end - 1].end)
                begun = at = end
            else:
                at += 1
        if begun < at:
            yield Span(spans[begun].start, spans[-1].end)

    def _together(self, read: str, spans: Sequence[Span]) -> int:
        """The largest number of sentences, from the first on, that have a translation together; 0 if there are none."""
        if self.is_whole is None:
            return 0
        mark = None if self.numbers else _MARK.match(read, *spans[0])
        start = spans[0].start if mark is None else mark.end()
        return next((end for end in range(len(spans), 0, -1) if self.is_whole(read[start : spans[end - 1].end])), 0)

    def _over_breaks(self, text: str, spans: Sequence[Span]) -> Iterator[Span]:
        """The spans; spans that have a translation together become one span, though lines end between them."""
        if self.is_whole is None or self.breaks_inside is None:
            yield from spans
            return
        inside = [self._may_join(text, *pair) for pair in itertools.pairwise(spans)]
        at = 0
        while at < len(spans):
            ends = (end for end in range(min(at + MAX_TOGETHER, len(spans)), at + 1, -1) if any(inside[at : end - 1]))
            end = next((end for end in ends if self.is_whole(text[spans[at].start : spans[end - 1].end])), at + 1)
            yield Span(spans[at].start, spans[end - 1].end)
            at = end

    def _may_join(self, text: str, one: Span, other: Span) -> bool:
        before, end, after = text[one.end : other.start].partition("\n")
        after = after.rpartition("\n")[2] + text[slice(*other)]
        return bool(end) and self.breaks_inside is not None and self.breaks_inside(text[slice(*one)] + before, after)

    def is_text(self, piece: str) -> bool:
        """True if there is anything to translate: neither a code, an address or a number, nor placeholders alone."""
        if self.numbers:
            return True
        rest = without_spans(piece)[0]
        if not _LETTER.search(rest) or _NO_SENTENCE.fullmatch(piece):
            return False
        if _ACRONYM.fullmatch(piece):
            return self.is_word(piece)
        return not _is_code(rest.split())

    def joined(self, text: str, pieces: Sequence[Piece], translations: Mapping[str, str]) -> Joined:
        """The translation of a text from the translations of its pieces; the text as it was where all of them stay.

        `translations`: by the keys of the pieces.
        """
        check()
        made = [translations[piece.key] if piece.is_text else piece.text for piece in pieces]
        self.count(sum(map(len, made)))
        stays = all(translation == piece.text for piece, translation in zip(pieces, made, strict=True))
        out, at = "", 0
        places: list[tuple[Piece, int, str]] = []
        for piece, translation in zip(pieces, made, strict=True):
            check()
            gap = text[at : piece.span.start]
            out += self._gap(gap, text[at - 1 : at], piece.text[:1]) if places and not stays else gap
            places.append((piece, len(out), translation))
            out += translation
            at = piece.span.end
        return Joined(out + text[at:], places)

    def _gap(self, gap: str, before: str, after: str) -> str:
        """White space between two sentences, as the target language writes it. `before`, `after`: what is beside it."""
        if gap.strip(" "):
            return gap
        if not joined_by(self.languages[1]):
            return gap if len(gap) > 1 else ""
        glued = before.isascii() and not re.match(f"[{UNSPACED}]", after)  # by a code that stood there
        return gap or ("" if glued else " ")


def _parts(text: str) -> Iterator[Span]:
    """Parts of a text, of MAX_CHARS characters or less, that are cut by themselves."""
    start = 0
    while len(text) - start > MAX_CHARS:
        ends = [match.end() for match in _MAY_CUT.finditer(text, start + MAX_CHARS // 2, start + MAX_CHARS)]
        end = ends[-1] if ends else text.rfind(" ", start + MAX_CHARS // 2, start + MAX_CHARS) + 1
        if not end:
            allowed = borders(text[start : start + MAX_CHARS + 1])
            end = next(end for end in range(start + MAX_CHARS, start, -1) if end - start in allowed or end == start + 1)
        yield Span(start, end)
        start = end
    yield Span(start, len(text))


def _without_tags(text: str, section: Span, codes: Sequence[int]) -> tuple[str, Sequence[int]]:
    """(a section of a text without its tags, the place in the text of each character).

    A blank is put where a tag or a code stands between the end of a sentence and a capital letter. A protected piece
    that stands at the end of a sentence is read as a tag.
    """
    tags = [Span(*match.span()) for match in _TAG.finditer(text, *section)]
    tags += [Span(at, at) for at in codes if section.start < at < section.end]
    tags += [
        Span(*match.span())
        for match in PROTECTED.finditer(text, *section)
        if _ENDED.search(text[max(0, match.start() - 4) : match.start()])
    ]
    if not tags:
        return text[slice(*section)], range(*section)
    read, done = "", section.start
    places: list[int] = []
    for start, stop in sorted(tags):
        if start < done:  # a code in a tag
            continue
        read += text[done:start]
        places += range(done, start)
        done = stop
        following = text[stop : stop + 1]
        begins = (following.isalpha() and following.lower() == following.upper()) or following.isupper()
        if _ENDED.search(read[-4:]) and (begins or following in tuple(_BEGINS) or _TAG.match(text, stop)):
            read += " "
            places.append(stop)
    read += text[done : section.end]
    places += range(done, section.end)
    return read, places


def _with_own_tags(text: str, section: Span, span: Span) -> Span:
    """A piece with the tags beside it whose other half is in it."""
    start, end = span
    opened: list[str] = []
    closed: list[str] = []
    for match in _TAG.finditer(text, start, end):
        _note_tag(match.group(), opened, closed)
    while opened and text.startswith(f"</{opened[-1]}>", end):
        end += len(opened.pop()) + 3
    before = [one.span() for one in _TAG.finditer(text, section.start, start)] if closed else []
    while closed and before and before[-1][1] == start and _name(text[slice(*before[-1])]) == closed[0]:
        start, _ = before.pop()
        closed.pop(0)
    return Span(start, end)


def _note_tag(tag: str, opened: list[str], closed: list[str]) -> None:
    """Keep account of open tags, and of tags that were closed without having been opened."""
    name = _name(tag)
    if not tag.startswith("</"):
        if not tag.endswith("/>") and name not in VOID:
            opened.append(name)
    elif name in opened:
        while opened.pop() != name:
            pass
    else:
        closed.append(name)


def _name(tag: str) -> str:
    return re.sub(r"[</>]|\s.*", "", tag, flags=re.DOTALL)


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return Span(start, start + len(piece.strip()))


def _is_code(parts: Sequence[str]) -> bool:
    """True for codes, with units and abbreviations beside them.

    >>> [_is_code(text.split()) for text in ("DE89 3704 0044", "12 kg", "Art.-Nr. 7781-B", "Fig. 3", "3 cats")]
    [True, True, True, False, False]
    """
    left = [part for part in parts if part not in UNITS and not _CODE.fullmatch(part)]
    if not left:
        return True
    if not all(part.endswith(".") and len(part) <= 8 for part in left):
        return False
    return any(_CODE.fullmatch(part) and _LETTER.search(part) for part in parts)


def are_single_sentences(lines: Iterable[str], language: str) -> bool:
    """True if most lines of a corpus are one sentence each."""
    counts = [len(sentences(line, language)) > 1 for line in lines if line.strip()]
    return bool(counts) and sum(counts) / len(counts) <= MAX_SHARE_OF_SEVERAL


def are_numbers(lines: Iterable[str]) -> bool:
    """True if most lines of a corpus have no letter."""
    counts = [_LETTER.search(line) is None for line in lines if line.strip()]
    return bool(counts) and sum(counts) / len(counts) > MAX_SHARE_OF_SEVERAL
