"""Inline codes of a source transferred to its translation: around the words that translate those they stood around.

Which words those are says a matrix of links (`links.py`). A pair of codes goes around the window of target words that
has most of its source words' links and least of others', and about as many words; pairs inside of a pair stay inside,
and pairs side by side stay apart. So every code comes once, and all are well nested, whatever the links are.
"""

import bisect
import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dragoman.alignment.links import AlignedPair, Links
from dragoman.formats.base import Code, Item
from dragoman.text.segment import Span
from dragoman.text.words import CLOSING as MARKS_CLOSING
from dragoman.text.words import OPENING, Word, borders, is_letter

FIRST_PROTECTED = 0xE100
"""The first character that stands for protected content: private use, so that no text has it."""
MAX_PROTECTED = 6144
PROTECTED = re.compile(f"[{chr(FIRST_PROTECTED)}-{chr(FIRST_PROTECTED + MAX_PROTECTED - 1)}]+")

UNLINKED_TO_PAIR_COST = 0.5
"""Cost of a target word without a link to the pair's words. A target word whose links all go to the pair gains 1."""

UNLINKED_COST = 0.1
"""Cost of each target word, whatever its links: a word with hardly any link does not pay."""

LENGTH_RATIO_COST = 0.5
"""Cost of a window that is e times as long as its pair, or e times as short. It keeps out words with chance links, and
keeps together words with weak links."""

TAKEN_WORD_GAIN = -1e6
"""Gain of a target word that another pair is around: no window goes over it."""

CLOSING, _OPENING = (*MARKS_CLOSING, "%"), tuple(OPENING)
"""Marks without a blank before them, and marks without a blank behind them."""
_MARKS = "".join(mark for mark in MARKS_CLOSING if mark not in ")]}»”…") + "-–—"
"""Marks between parts of a sentence."""


def is_protected(char: str) -> bool:
    """True for a character that stands for a protected piece."""
    return FIRST_PROTECTED <= ord(char) < FIRST_PROTECTED + MAX_PROTECTED


def text_and_codes(items: Sequence[Item]) -> tuple[str, list[tuple[int, Code]], list[str]]:
    """(text with a character for each protected piece, codes with their places in it, the protected pieces).

    Of blanks on both sides of a code one is left, and before a mark none: the text reads as if no code were in it
    (`with_blanks` has them again).
    """
    text = ""
    codes: list[tuple[int, Code]] = []
    protected: list[str] = []
    solid = {place for first, last in _solid(items) for place in range(first, last + 1)}
    for place, item in enumerate(items):
        if isinstance(item, str):
            if text[-1:] == " " and place - 1 in solid:
                if item[:1] == " ":
                    item = item[1:]
                elif item[:1] in CLOSING:
                    text = text[:-1]
                    codes = [(min(at, len(text)), code) for at, code in codes]
            # A character of that range in a file (a font's symbol) is protected as well.
            for char in item:
                if is_protected(char):
                    protected.append(char)
                    text += chr(FIRST_PROTECTED + len(protected) - 1)
                else:
                    text += char
        elif item.kind == "protected" and len(protected) < MAX_PROTECTED:
            text += chr(FIRST_PROTECTED + len(protected))
            protected.append(item.raw)
        else:
            codes.append((len(text), item))
    return text, codes, protected


def unprotected(items: Sequence[Item], protected: Sequence[str]) -> list[Item]:
    """Items with the protected pieces in the place of the characters that stood for them."""
    pattern = re.compile(f"({PROTECTED.pattern[:-1]})")
    out: list[Item] = []
    for item in items:
        if not isinstance(item, str):
            out.append(item)
            continue
        for piece in pattern.split(item):
            if len(piece) == 1 and FIRST_PROTECTED <= ord(piece) < FIRST_PROTECTED + len(protected):
                raw = protected[ord(piece) - FIRST_PROTECTED]
                out.append(raw if len(raw) == 1 else Code(raw, "protected"))
            elif piece:
                out.append(piece)
    joined: list[Item] = []
    for is_text, group in itertools.groupby(out, key=lambda one: isinstance(one, str)):
        pieces = list(group)
        joined += ["".join(map(str, pieces))] if is_text else pieces
    return joined


class _Blanks(NamedTuple):
    """The sides of a code on which its source has a blank, be it behind other codes."""

    before: bool
    after: bool


def with_blanks(items: Sequence[Item], source: Sequence[Item]) -> list[Item]:
    """The items of a translation with a blank on each side of a code where the source has one.

    Codes are those that stand alone, and pairs with no text in them.

    >>> note = Code("<x/>", "alone")
    >>> with_blanks(["one", note, "two."], ["eins ", note, " zwei."])
    ['one ', Code(raw='<x/>', kind='alone', pair=-1, repeats=False), ' two.']
    """
    blanks_of: dict[Item, list[_Blanks]] = {}
    texts = _texts(source)
    for first, last in _solid(source):
        left, right = (str(source[at]) if at is not None else "" for at in (texts[first][0], texts[last][1]))
        is_apart = right[:1].isspace() or (right.startswith(CLOSING) and left[-1:].isspace())  # no word is glued to it
        blanks_of.setdefault(source[first], []).append(_Blanks(left[-1:].isspace(), is_apart))
    glued = set(itertools.pairwise(source))
    out = list(items)
    texts = _texts(items)
    apart = False  # does a blank stand before what comes next?
    inserted: list[int] = []  # numbers of the items that a new blank stands before, as negative numbers in order
    handed_on = False  # does the code on the right leave its blank to this one, which stands before it?
    spans = _solid(items)
    for number, (first, last) in reversed([*enumerate(spans)]):
        blanks = blanks_of[out[first]].pop() if blanks_of.get(out[first]) else _Blanks(before=False, after=False)
        blanks = blanks._replace(before=blanks.before or handed_on)
        following = out[last + 1] if last + 1 < len(out) else ""
        before, after = texts[first][0], texts[last][1]
        if after is not None:
            after += len(inserted) - bisect.bisect_left(inserted, -after)
        if inserted:
            after = min(-inserted[-1], len(out) if after is None else after)
        if apart and blanks.after and isinstance(following, Code) and (out[last], following) not in glued:
            out.insert(last + 1, " ")
            inserted.append(-(last + 1))
            after = last + 1
        apart = blanks.before
        is_row = number > 0 and spans[number - 1][1] == first - 1
        handed_on = is_row and apart and before is not None and _are_all("close", out, range(before + 1, before + 2))
        blanks = blanks._replace(before=apart and not handed_on)
        inserted += _put_blanks(out, (first, last), (before, after), blanks)
    return out


def _texts(items: Sequence[Item]) -> list[tuple[int | None, int | None]]:
    """Of each item the numbers of the nearest texts before it and after it; None where there is none."""

    def nearest(places: Iterable[int]) -> list[int | None]:
        numbers: list[int | None] = []
        at = None
        for place in places:
            numbers.append(at)
            at = place if isinstance(items[place], str) else at
        return numbers

    count = len(items)
    return list(zip(nearest(range(count)), reversed(nearest(range(count - 1, -1, -1))), strict=True))


def _solid(items: Sequence[Item]) -> list[tuple[int, int]]:
    """(first, last) item number of each code that stands alone, and of each pair without text together with all items
    inside of it."""
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(items):
        item, last = items[at], at
        if isinstance(item, Code) and item.kind == "open":
            while last + 1 < len(items) and isinstance(following := items[last + 1], Code):
                last += 1
                if following.kind == "close" and following.pair == item.pair:
                    spans.append((at, last))
                    break
            else:
                last = at
        elif isinstance(item, Code) and item.kind == "alone":
            spans.append((at, at))
        at = last + 1
    return spans


def _put_blanks(
    items: list[Item], code: tuple[int, int], texts: tuple[int | None, int | None], blanks: _Blanks
) -> list[int]:
    """Put the blanks in that a code lacks between the texts before it and after it, all by their numbers; the numbers
    of new items, as negative numbers in order.

    A blank on the wrong side changes sides. One beside a pair stands outside of it: `** bold**` is no emphasis.
    """
    (first, last), (before, after) = code, texts
    left, right = ("" if at is None else str(items[at]) for at in texts)
    has_after = right[:1].isspace()
    new: list[int] = []
    if after is not None and blanks.after and not (has_after or right.startswith(CLOSING)):
        if after > last + 1 and _are_all("open", items, range(last + 1, after)):
            items.insert(last + 1, " ")
            new.append(-(last + 1))
        else:
            items[after] = " " + right
    if before is not None and blanks.before and not (left[-1:].isspace() or left.endswith(_OPENING)):
        if before < first - 1 and _are_all("close", items, range(first - 1, before, -1)):
            items.insert(first, " ")
            new.append(-first)
        else:
            items[before] = left + " "
    elif before == first - 1 and blanks.after and not blanks.before and not has_after:
        items[before] = left.removesuffix(" ")
    return new


def _are_all(kind: str, items: Sequence[Item], numbers: range) -> bool:
    return all(isinstance(item := items[number], Code) and item.kind == kind for number in numbers)


class SentenceSpans(NamedTuple):
    """A sentence, or a gap between two, and its translation: characters from and to in the two texts."""

    src: Span
    tgt: Span


def transfer_markup(
    pair: AlignedPair, codes: Sequence[tuple[int, Code]], links: Links, pieces: Sequence[SentenceSpans] = ()
) -> list[Item]:
    """The items of a translation: its text with the codes of its source.

    `codes`: each with its place in characters of the source, in order. `pieces`: the sentences of a text of several,
    a code between two sentences stays between them, and a pair around a whole sentence stays around all of it.
    """
    links = np.nan_to_num(np.asarray(links, dtype=float), posinf=0.0, neginf=0.0).clip(min=0)
    links = links / np.maximum(links.sum(axis=1, keepdims=True), 1)
    root = _tree(codes, len(pair.src))
    root.place = Span(0, len(pair.tgt))
    placement = _Placement(*_parted_words(pair, codes, links), pieces)
    nodes = [root]
    for node in nodes:  # grows as it goes: a node has its place before its children have theirs
        placement.place_children(node)
        nodes += node.children
    return [item for item in _items(root, pair.tgt) if item != ""]


def _parted_words(pair: AlignedPair, codes: Sequence[tuple[int, Code]], links: Links) -> tuple[AlignedPair, Links]:
    """Words that a code parts (`H<sub>2</sub>O`) as their parts, where the translation has the very same word, or where
    several pairs share one: each then has its share of the word that translates it."""
    starts = [word.start for word in pair.src_words]
    cuts_of: dict[int, list[int]] = {}  # of a source word: the letters that a code stands before
    for at, _ in codes:
        number = bisect.bisect_left(starts, at) - 1
        if number >= 0 and at < pair.src_words[number].end:
            cuts_of.setdefault(number, []).append(at - pair.src_words[number].start)
    row_of: dict[int, int] = {}  # of a source word: the target word that is parted with it
    shared = _shared(pair.src_words, codes) if cuts_of else frozenset()
    for number in cuts_of:
        text = pair.src[slice(*pair.src_words[number])]
        rows = [row for row, word in enumerate(pair.tgt_words) if pair.tgt[slice(*word)] == text]
        if not rows and number in shared and links[:, number].any():
            rows = [int(links[:, number].argmax())]
        if len(rows) == 1 and rows[0] not in row_of.values():
            row_of[number] = rows[0]
    cuts = {number: _in_proportion(cuts_of[number], pair.src_words[number], pair.tgt[slice(*pair.tgt_words[row])])
            for number, row in row_of.items()}  # fmt: skip
    row_of = {number: row for number, row in row_of.items() if cuts[number]}
    if not row_of:
        return pair, links
    src_parts = _parts(pair.src_words, {number: cuts_of[number] for number in row_of})
    tgt_parts = _parts(pair.tgt_words, {row: cuts[number] for number, row in row_of.items()})
    columns, rows = ([number for number, _ in parts] for parts in (src_parts, tgt_parts))
    links = links[np.ix_(rows, columns)]
    for number, row in row_of.items():
        of_tgt, of_src = np.flatnonzero(np.equal(rows, row)), np.flatnonzero(np.equal(columns, number))
        links[of_tgt] = 0
        links[of_tgt, of_src] = 1
    return AlignedPair(pair.src, pair.tgt, [part for _, part in src_parts], [part for _, part in tgt_parts]), links


def _shared(words: Sequence[Word], codes: Sequence[tuple[int, Code]]) -> frozenset[int]:
    """The numbers of words that several pairs share, one beside the other."""
    starts = [word.start for word in words]
    opened: dict[int, int] = {}
    ends: dict[int, int] = {}  # of a word: where the last pair in it ends
    shared = set()
    for at, code in codes:
        if code.kind == "open":
            opened[code.pair] = at
        elif code.kind == "close" and (begin := opened.get(code.pair, at)) < at:
            number = bisect.bisect_right(starts, begin) - 1
            if number >= 0 and at <= words[number].end:
                shared |= {number} if ends.get(number, at) <= begin else set()
                ends[number] = at
    return frozenset(shared)


def _in_proportion(cuts: Sequence[int], src: Word, tgt: str) -> list[int]:
    """The letters of a target word for some letters of a source word: at the same shares of the word's length. No
    letters if the target word is too short to have one for each part."""
    allowed = borders(tgt)
    ends = [place for place in range(len(tgt) + 1) if place in allowed]
    made = sorted({min(ends, key=lambda end: abs(end - cut / (src.end - src.start) * len(tgt))) for cut in cuts})
    return made if len(made) == len(set(cuts)) and made[0] > 0 and made[-1] < len(tgt) else []


def _parts(words: Sequence[Word], cuts: Mapping[int, Sequence[int]]) -> list[tuple[int, Word]]:
    """(number of the word, its part): words cut before some of their letters."""
    parts = []
    for number, word in enumerate(words):
        places = sorted({word.start, *(word.start + cut for cut in cuts.get(number, ())), word.end})
        parts += [(number, Word(*ends)) for ends in itertools.pairwise(places)]
    return parts


@dataclass
class _Node:
    """A pair of codes around characters `start` to `end` of the source, or a code that stands alone there."""

    start: int
    end: int
    codes: tuple[Code, ...] = ()
    children: list["_Node"] = field(default_factory=list)
    place: Span = field(default=Span(0, 0))
    """Where it stands in the translation."""

    @property
    def is_pair(self) -> bool:
        return len(self.codes) == 2


def _tree(codes: Sequence[tuple[int, Code]], length: int) -> _Node:
    """Pairs and what is in them; a code whose other half is missing or does not nest stands alone."""
    root = _Node(0, length)
    stack = [root]
    closing = {code.pair for _, code in codes if code.kind == "close"}
    for at, code in codes:
        if code.kind == "open" and code.pair in closing:
            node = _Node(at, at, (code,))
            stack[-1].children.append(node)
            stack.append(node)
        elif code.kind == "close" and len(stack) > 1 and stack[-1].codes[0].pair == code.pair:
            node = stack.pop()
            node.end, node.codes = at, (*node.codes, code)
        else:
            stack[-1].children.append(_Node(at, at, (code,)))
    while len(stack) > 1:  # was never closed in order: alone, and what seemed to be in it beside it
        node = stack.pop()
        stack[-1].children += node.children
        node.children = []
    return root


def _items(root: _Node, tgt: str) -> list[str | Code]:
    """The text and the codes of a tree in which every node has its place."""
    items: list[str | Code] = []
    done = 0
    work: list[_Node | tuple[int, tuple[Code, ...]]] = [root]  # nodes to write, and where closing codes come
    while work:
        top = work.pop()
        at, codes = (top.place.start, top.codes[:1]) if isinstance(top, _Node) else top
        items += [tgt[done:at], *codes]
        done = at
        if isinstance(top, _Node):
            work.append((top.place.end, top.codes[1:]))
            # At one place the source's order holds; what comes before a pair that begins there is before it.
            work += sorted(top.children, key=lambda child: (child.place.start, child.place.end))[::-1]
    return items


class _Placement:
    """The places of codes in a translation.

    Pairs have their places first: each goes around the window of words that translate its own (`_windows`), without
    marks (`_without_marks`) and with blanks (`_with_blanks`) at its edges where the source is so. Then each code that
    stands alone goes beside the word that translates its neighbour (`_beside`).
    """

    def __init__(self, pair: AlignedPair, links: Links, pieces: Sequence[SentenceSpans]) -> None:
        self.src, self.tgt, self.src_words, self.tgt_words = pair
        self.links, self.pieces = links, pieces
        self.attended = links.argmax(axis=1) if links.size else np.zeros(len(self.tgt_words), dtype=int)
        self.src_starts, self.src_ends = np.array(self.src_words, dtype=int).reshape(-1, 2).T
        self.tgt_starts, self.tgt_ends = np.array(self.tgt_words, dtype=int).reshape(-1, 2).T

    def place_children(self, node: _Node) -> None:
        """Give each child of `node` its place inside of the node's own."""
        # Pairs around words come first, because codes that stand alone have to keep out of the middle of them.
        inside = {id(child): self._inside(child) for child in node.children if child.is_pair}
        pairs = [child for child in node.children if inside.get(id(child))]
        taken = self._place_pairs(pairs, [inside[id(child)] for child in pairs], node.place)
        at = node.place.start  # codes that stand alone keep their order
        for child in node.children:
            if inside.get(id(child)):
                continue
            place = self._beside(child, node, taken)
            if not child.is_pair or not child.children:
                place = max(place, at) if _is_free(max(place, at), taken) else place
                at = max(at, place)
            child.place = Span(place, place)

    def _place_pairs(self, pairs: Sequence[_Node], inside: Sequence[Sequence[int]], within: Span) -> list[Span]:
        """Give each pair its place in a range; returns the places from left to right."""
        # 1. Which target words are in each pair.
        first, last = self._words_of(within)
        whole = {number: window for number, child in enumerate(pairs) if (window := self._whole(child, first, last))}
        windows = [
            window if number in whole else self._without_marks(pairs[number], *window)
            for number, window in enumerate(self._windows(inside, first, last, whole))
        ]
        # 2. From words to characters, from left to right: the blanks between two pairs go to one of them only.
        order = sorted(zip(windows, pairs, strict=True), key=lambda entry: entry[0])
        taken: list[Span] = []
        for number, (window, child) in enumerate(order):
            left = taken[-1].end if taken else within.start
            following = order[number + 1][0][0] if number + 1 < len(order) else len(self.tgt_words)
            right = within.end
            if following < len(self.tgt_words):
                right = min(right, int(self.tgt_starts[following]))
            child.place = self._with_blanks(child, window, left, right, within)
            taken.append(child.place)
        return taken

    def _inside(self, node: _Node) -> list[int]:
        """The source words of a pair: those with most of their letters in it."""
        low = max(int(np.searchsorted(self.src_starts, node.start)) - 1, 0)
        high = int(np.searchsorted(self.src_starts, node.end))
        starts, ends = self.src_starts[low:high], self.src_ends[low:high]
        common = np.minimum(ends, node.end) - np.maximum(starts, node.start)
        src_words: list[int] = (low + np.flatnonzero(2 * common > ends - starts)).tolist()
        if not src_words and len(common) and common.max() > 0:  # the smaller part of one word
            src_words = [low + int(common.argmax())]
        return src_words

    def _whole(self, node: _Node, first: int, last: int) -> tuple[int, int] | None:
        """The target words, among those from `first` to `last`, of a pair around whole pieces; None for other pairs."""
        start, end = self._place_between(node.start, starts=True), self._place_between(node.end)
        if start is None or end is None or start >= end:
            return None
        begin = max(first, int(np.searchsorted(self.tgt_starts, start)))
        stop = min(last, int(np.searchsorted(self.tgt_ends, end, side="right")))
        return (begin, stop) if begin < stop else None

    def _place_between(self, at: int, starts: bool = False) -> int | None:
        """The translation's place for a place of the source between two pieces, or at an end; None inside a piece.

        A place before the marks at a piece's end becomes the place before the marks of the piece's translation.
        `starts`: something begins there.
        """
        # `following`: the first piece that ends at the place or behind it.
        ends = [piece for piece in self.pieces if piece.src.end >= at]
        following = ends[0] if ends else None
        if following is None:
            return len(self.tgt)
        # Before a piece, or at the end of a piece where something begins: as far before the next piece's translation.
        if at <= following.src.start or (at == following.src.end and starts and len(ends) > 1):
            following = following if at <= following.src.start else ends[1]
            number = self.pieces.index(following)
            least = self.pieces[number - 1].tgt.end if number else 0  # the translation may have no gap there
            return max(following.tgt.start - (following.src.start - at), least)
        # At the end of a piece, or before its last marks. Any other place is inside of the piece.
        left = self.src[at : following.src.end]
        if left.strip(_MARKS):
            return None
        translation = self.tgt[slice(*following.tgt)]
        return following.tgt.end - (len(translation) - len(translation.rstrip(_MARKS)) if left else 0)

    def _windows(
        self, inside: Sequence[Sequence[int]], first: int, last: int, whole: Mapping[int, tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """A window of target words, from `first` to `last`, for each group of source words; none has another's.

        `whole`: those that are known by the number of the group.
        """
        count = last - first
        if not inside:
            return []
        if count <= 0:
            return [(first, first)] * len(inside)
        # 1. What each group gains by each target word: the links to its own words, less those to other words.
        links = self.links[first:last]
        mass = np.stack([links[:, list(group)].sum(axis=1) for group in inside])  # (groups, words)
        gains = mass - UNLINKED_TO_PAIR_COST * (links.sum(axis=1) - mass) - UNLINKED_COST
        # A word that has more links to another group costs as much as one without any link to this group.
        is_best = mass.argmax(axis=0) == np.arange(len(inside))[:, None]
        gains = np.where(is_best | (mass == 0), gains, -UNLINKED_TO_PAIR_COST)
        # 2. Windows that sentences decide are taken before all others.
        free = np.ones(count, dtype=bool)
        windows: dict[int, tuple[int, int]] = {}
        for group, (begin, stop) in whole.items():
            windows[group] = (begin - first, stop - first)
            free[begin - first : stop - first] = False
        # 3. The group with most gain chooses first. Marks alone are no window of a group that has words.
        unknown = [group for group in range(len(inside)) if group not in windows]
        surest = sorted(unknown, key=lambda group: -float(np.clip(gains[group], 0, None).sum()))
        is_mark = np.array([_is_mark(self.tgt, word) for word in self.tgt_words[first:last]])
        of_marks = [all(_is_mark(self.src, self.src_words[word]) for word in group) for group in inside]
        for group in surest:
            window = _best_window(np.where(free, gains[group], TAKEN_WORD_GAIN), len(inside[group]))
            if window is not None and not of_marks[group] and is_mark[slice(*window)].all():
                window = _best_window(np.where(free & ~is_mark, gains[group], TAKEN_WORD_GAIN), len(inside[group]))
            if window is not None:
                windows[group] = window
                free[slice(*window)] = False
        # 4. A group that no target word is linked to: the place of a group of the same words, or one free word.
        for group in surest:
            twin = next((other for other in windows if inside[other] == inside[group]), None)
            if group not in windows and twin is not None:  # both in one word, which the other one has
                windows[group] = (windows[twin][group > twin],) * 2
            elif group not in windows:
                allowed = free if of_marks[group] else free & ~is_mark
                windows[group] = self._fallback(mass[group], inside[group], allowed, first)
                free[slice(*windows[group])] = False
        return [(first + windows[group][0], first + windows[group][1]) for group in range(len(inside))]

    def _fallback(self, mass: np.ndarray, group: Sequence[int], free: np.ndarray, first: int) -> tuple[int, int]:
        """One word: the word with the most links to the group; without links, the word as far from the beginning; no
        word if all are taken."""
        if not free.any():
            return len(free), len(free)
        allowed = np.where(free, mass, -1.0)
        at = int(allowed.argmax())
        if allowed[at] <= 0:
            share = (group[0] + group[-1]) / 2 / max(len(self.src_words) - 1, 1)
            nearest = share * (len(self.tgt_words) - 1) - first
            at = int(min(np.flatnonzero(free), key=lambda place: (abs(place - nearest), place)))
        return at, at + 1

    def _without_marks(self, node: _Node, begin: int, end: int) -> tuple[int, int]:
        """A window without marks at its edges, where the source has none at that edge of the pair."""
        inner = self.src[node.start : node.end].strip()
        while end - begin > 1 and inner[-1:] not in _MARKS and self.tgt[self.tgt_words[end - 1].start] in _MARKS:
            end -= 1
        while end - begin > 1 and inner[:1] not in _MARKS and self.tgt[self.tgt_words[begin].start] in _MARKS:
            begin += 1
        return begin, end

    def _with_blanks(self, node: _Node, window: tuple[int, int], left: int, right: int, within: Span) -> Span:
        """The characters of a window of words, with a blank at an edge where the source has one there."""
        begin, end = window
        if begin >= end:
            at = self.tgt_words[begin].start if begin < len(self.tgt_words) else within.end
            at = left if begin and left == self.tgt_words[begin - 1].end else at
            at = max(left, min(within.end, at))
            return Span(at, at)
        inner = self.src[node.start : node.end]
        before, after = len(inner) - len(inner.lstrip()), len(inner) - len(inner.rstrip())
        start = self._over_blanks(self.tgt_words[begin].start, before, -1, left)
        stop = self._over_blanks(self.tgt_words[end - 1].end, after, 1, right)
        return Span(max(start, left), max(start, left, stop))

    def _over_blanks(self, place: int, count: int, step: int, limit: int) -> int:
        """A place moved to the left (`step` -1) or to the right over up to `count` blanks, not beyond `limit`."""
        while count and (limit - place) * step > 0 and self.tgt[min(place, place + step)].isspace():
            place, count = place + step, count - 1
        return place

    def _beside(self, node: _Node, parent: _Node, taken: Sequence[Span]) -> int:
        """The place of a code that stands alone: beside the word that stands for its neighbour."""
        at, within = node.start, parent.place
        if node.codes[0].kind == "cue":
            return self._proportional(at, within)
        # 1. At an edge of the source, or of the pair that it stands in: at the same edge of the translation.
        before = int(np.searchsorted(self.src_ends, at, side="right")) - 1  # the last word that has ended
        after = int(np.searchsorted(self.src_starts, at))
        has_before = before >= 0 and self.src_ends[before] > parent.start
        has_after = after < len(self.src_words) and self.src_starts[after] < parent.end
        if not has_after and not self.src[at : parent.end].strip():
            return _free(within.end, taken, within)
        if not has_before and not self.src[parent.start : at].strip():
            return _free(within.start, taken, within)
        # 2. Between two sentences: between their translations.
        if len(self.pieces) > 1 and (place := self._place_between(at)) is not None:
            return _free(place, taken, within)
        # 3. Inside of a sentence: beside the translation of the word that it is glued to, or of the word before it.
        following = self.src[at : at + 1]
        leans_left = not self.src[at - 1 : at].isspace() and (following.isspace() or not is_letter(following))
        is_left = has_before and (leans_left or not has_after)
        linked = self._linked_to(before if is_left else after, within)
        if linked is None:  # no word translates its neighbour
            place = self._proportional(at, within)
        elif is_left:
            blanks = at - len(self.src[:at].rstrip())
            place = self._over_blanks(self.tgt_words[linked].end, blanks, 1, within.end)
        else:
            blanks = len(self.src) - at - len(self.src[at:].lstrip())
            place = self._over_blanks(self.tgt_words[linked].start, blanks, -1, within.start)
        return _free(place, taken, within)

    def _linked_to(self, number: int, within: Span) -> int | None:
        """The target word in a range with the strongest link to a source word; None where there is no link."""
        first, last = self._words_of(within)
        if first >= last or not 0 <= number < self.links.shape[1]:
            return None
        column = self.links[first:last, number] + (self.attended[first:last] == number)
        best = int(column.argmax())
        return first + best if self.links[first + best, number] > 0 else None

    def _words_of(self, within: Span) -> tuple[int, int]:
        """The target words inside of a range: from, to."""
        first = int(np.searchsorted(self.tgt_starts, within.start))
        return first, max(first, int(np.searchsorted(self.tgt_ends, within.end, side="right")))

    def _proportional(self, at: int, within: Span) -> int:
        """The beginning of the word that is as far from the beginning as a place in the source."""
        nearest = at / max(len(self.src), 1) * len(self.tgt)
        first, last = self._words_of(within)
        starts = [int(start) for start in self.tgt_starts[first:last] if start > within.start]
        starts = [start for start in starts if self.tgt[start - 1].isspace()] or starts
        return min(starts, key=lambda start: abs(start - nearest), default=within.end)


def _is_mark(text: str, word: Word) -> bool:
    return all(unicodedata.category(char).startswith("P") for char in text[slice(*word)])


def _best_window(gains: np.ndarray, length: int) -> tuple[int, int] | None:
    """The window with a gaining word that has the greatest sum, less what it costs not to be `length` words long; None
    where no word gains."""
    gaining = np.flatnonzero(gains > 0)
    if not len(gaining):
        return None
    # Windows that reach further than `length` words beyond all gaining words only cost more.
    first, last = max(int(gaining[0]) - length, 0), min(int(gaining[-1]) + length + 1, len(gains))
    sums = np.concatenate([[0.0], np.cumsum(gains[first:last])])
    costs = LENGTH_RATIO_COST * np.abs(np.log(np.arange(1, last - first + 1) / length))
    # For each begin the best end. The sum of a window is the difference of two cumulative sums.
    best, window = -np.inf, None
    for begin in range(last - first):
        stop = begin + 1 + int(np.argmax(sums[begin + 1 :] - costs[: last - first - begin]))
        total = float(sums[stop] - sums[begin] - costs[stop - begin - 1])
        if total > best + 1e-12 and (gains[first + begin : first + stop] > 0).any():
            best, window = total, (first + begin, first + stop)
    return window


def _free(place: int, taken: Sequence[Span], within: Span) -> int:
    """The place itself, or the nearer end of the pair that it would fall into."""
    for pair in taken:
        if pair.start < place < pair.end:
            place = pair.start if place - pair.start <= pair.end - place else pair.end
    return min(max(place, within.start), within.end)


def _is_free(place: int, taken: Sequence[Span]) -> bool:
    return not any(pair.start < place < pair.end for pair in taken)
