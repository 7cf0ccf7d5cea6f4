"""Inline codes of a source put into its translation: around the words that translate those they stood around.

Which words those are says a matrix of links, the attention of each target word to each source word. A pair of codes
goes around the window of target words that has most of its source words' links and least of others'; pairs inside of a
pair stay inside, and pairs side by side stay apart. So every code comes once, and all are well nested, whatever the
links are.
"""

import bisect
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dragoman.formats.base import Code, Item
from dragoman.text.words import Word

FIRST = 0xE100
"""The first character that stands for protected content: private use, so that no text has it."""
MAX_PROTECTED = 6144

OTHERS = 0.5
"""Cost of a target word that has no link to a pair's words, beside the gain of 1 of one that has nothing else."""

NOTHING = 0.1
"""Cost of a target word that has hardly any link."""

_MARKS = ".,;:!?-–—。，；：！？、"
"""Marks between parts of a sentence."""


def is_protected(char: str) -> bool:
    """True for a character that stands for a protected piece."""
    return FIRST <= ord(char) < FIRST + MAX_PROTECTED


def text_and_codes(items: Sequence[Item]) -> tuple[str, list[tuple[int, Code]], list[str]]:
    """(text with a character for each protected piece, codes with their places in it, the protected pieces)."""
    text, codes, protected = "", [], []
    for item in items:
        if isinstance(item, str):
            # A character of that range in a file (a font's symbol) is protected as well.
            for char in item:
                if is_protected(char):
                    protected.append(char)
                    text += chr(FIRST + len(protected) - 1)
                else:
                    text += char
        elif item.kind == "protected" and len(protected) < MAX_PROTECTED:
            text += chr(FIRST + len(protected))
            protected.append(item.raw)
        else:
            codes.append((len(text), item))
    return text, codes, protected


class Pairing(NamedTuple):
    """A source and its translation, with the words of each between which links are sought."""

    src: str
    tgt: str
    src_words: Sequence[Word]
    tgt_words: Sequence[Word]


def carried(pair: Pairing, codes: Sequence[tuple[int, Code]], links: np.ndarray) -> list[Item]:
    """The items of a translation: its text with the codes of its source.

    `codes`: each with its place in characters of the source, in order. `links`: (target words, source words), not
    negative.
    """
    links = np.nan_to_num(np.asarray(links, dtype=float), posinf=0.0, neginf=0.0).clip(min=0)
    links = links / np.maximum(links.sum(axis=1, keepdims=True), 1)
    pair, links = _split(pair, codes, links)
    root = _tree(codes, len(pair.src))
    _Placement(pair, links).place(root, _Range(0, len(pair.tgt)))
    return _merged(_items(root, pair.tgt))


def _split(pair: Pairing, codes: Sequence[tuple[int, Code]], links: np.ndarray) -> tuple[Pairing, np.ndarray]:
    """Words that a code parts (`H<sub>2</sub>O`) as their parts, where the translation has the very same word."""
    src, tgt, src_words, tgt_words = pair
    inner: dict[int, list[int]] = {}
    starts = [word.start for word in src_words]
    for at, _ in codes:
        number = bisect.bisect_left(starts, at) - 1
        if number >= 0 and src_words[number].start < at < src_words[number].end:
            inner.setdefault(number, []).append(at - src_words[number].start)
    same: dict[int, int] = {}
    for number in inner:
        text = src[slice(*src_words[number])]
        rows = [row for row, word in enumerate(tgt_words) if tgt[slice(*word)] == text]
        if len(rows) == 1:
            same[number] = rows[0]
    if not same:
        return pair, links
    cuts_of_row = {row: inner[number] for number, row in same.items()}
    src_parts = [(n, part) for n, word in enumerate(src_words) for part in _parts(word, inner[n] if n in same else [])]
    tgt_parts = [(n, part) for n, word in enumerate(tgt_words) for part in _parts(word, cuts_of_row.get(n, []))]
    columns, rows_of = [n for n, _ in src_parts], [n for n, _ in tgt_parts]
    found = links[np.ix_(rows_of, columns)]
    for number, row in same.items():
        of_tgt = [place for place, (n, _) in enumerate(tgt_parts) if n == row]
        of_src = [place for place, (n, _) in enumerate(src_parts) if n == number]
        found[of_tgt] = 0
        found[of_tgt, of_src] = 1
    return Pairing(src, tgt, [part for _, part in src_parts], [part for _, part in tgt_parts]), found


def _parts(word: Word, cuts: Sequence[int]) -> list[Word]:
    """A word cut at some of its letters."""
    places = sorted({word.start, *(word.start + cut for cut in cuts), word.end})
    return [Word(start, end) for start, end in itertools.pairwise(places)]


@dataclass
class _Range:
    """Characters `start` to `end` of the translation."""

    start: int
    end: int


@dataclass
class _Node:
    """A pair of codes around characters `start` to `end` of the source, or a code that stands alone there."""

    start: int
    end: int
    codes: tuple[Code, ...] = ()
    children: list["_Node"] = field(default_factory=list)
    place: _Range = field(default_factory=lambda: _Range(0, 0))

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


class _Placement:
    """The places of codes in a translation."""

    def __init__(self, pair: Pairing, links: np.ndarray) -> None:
        self.src, self.tgt, self.src_words, self.tgt_words = pair
        self.links = links
        self.attended = links.argmax(axis=1) if links.size else np.zeros(len(self.tgt_words), dtype=int)
        self.src_starts = np.array([word.start for word in self.src_words], dtype=int)
        self.src_ends = np.array([word.end for word in self.src_words], dtype=int)
        self.tgt_starts = np.array([word.start for word in self.tgt_words], dtype=int)
        self.tgt_ends = np.array([word.end for word in self.tgt_words], dtype=int)

    def place(self, node: _Node, within: _Range) -> None:
        """Give each child of `node` its place inside of the node's own."""
        node.place = within
        first, last = self._words_of(within)
        pairs = [child for child in node.children if child.is_pair and self._inside(child)]
        windows = self._windows([self._inside(child) for child in pairs], first, last)
        taken: list[_Range] = []
        windows = [self._without_marks(child, *window) for child, window in zip(pairs, windows, strict=True)]
        order = sorted(range(len(pairs)), key=lambda number: windows[number])
        for place, number in enumerate(order):
            following = order[place + 1] if place + 1 < len(order) else None
            child, (begin, end) = pairs[number], windows[number]
            limit = taken[-1].end if taken else within.start
            upto = within.end
            if following is not None and windows[following][0] < len(self.tgt_words):
                upto = min(upto, int(self.tgt_starts[windows[following][0]]))
            child.place = self._with_blanks(child, begin, end, limit, upto, within)
            taken.append(child.place)
            self.place(child, child.place)
        by_node = {id(child) for child in pairs}
        at = within.start
        for child in node.children:
            if id(child) in by_node:
                continue
            place = self._beside(child, node, within, taken)
            if not child.is_pair or not child.children:
                place = max(place, at) if _is_free(max(place, at), taken) else place
                at = max(at, place)
            child.place = _Range(place, place)
            self.place(child, child.place)

    def _inside(self, node: _Node) -> list[int]:
        """The source words of a pair: those with most of their letters in it."""
        low = max(int(np.searchsorted(self.src_starts, node.start)) - 1, 0)
        high = int(np.searchsorted(self.src_starts, node.end))
        ends = np.minimum(self.src_ends[low:high], node.end)
        common = ends - np.maximum(self.src_starts[low:high], node.start)
        longer = 2 * common > self.src_ends[low:high] - self.src_starts[low:high]
        found: list[int] = (low + np.flatnonzero(longer)).tolist()
        if not found and self.src[node.start : node.end].strip():  # the smaller part of one word
            found = list(range(low, min(low + 1, len(self.src_words))))
        return found

    def _windows(self, inside: Sequence[Sequence[int]], first: int, last: int) -> list[tuple[int, int]]:
        """A window of target words, from `first` to `last`, for each group of source words; none has another's."""
        count = last - first
        if not inside:
            return []
        if count <= 0:
            return [(first, first)] * len(inside)
        mass = np.stack([self.links[first:last][:, list(group)].sum(axis=1) for group in inside])  # (groups, words)
        best = mass.argmax(axis=0)
        others = self.links[first:last].sum(axis=1)[None] - mass
        gains = mass - OTHERS * others - NOTHING
        gains = np.where((best[None] == np.arange(len(inside))[:, None]) | (mass == 0), gains, -OTHERS)
        free = np.ones(count, dtype=bool)
        windows: list[tuple[int, int] | None] = [None] * len(inside)
        order = sorted(range(len(inside)), key=lambda group: -float(np.clip(gains[group], 0, None).sum()))
        for group in order:
            windows[group] = _best_window(np.where(free, gains[group], -np.inf))
            window = windows[group]
            if window is not None:
                free[slice(*window)] = False
        for group in order:
            if windows[group] is None:
                at = self._fallback(mass[group], inside[group], free, first, last)
                windows[group] = at
                free[slice(*at)] = False
        return [(first + window[0], first + window[1]) for window in windows if window is not None]

    def _without_marks(self, node: _Node, begin: int, end: int) -> tuple[int, int]:
        """A window without marks at its edges, where the source has none at that edge of the pair."""
        inner = self.src[node.start : node.end].strip()
        while end - begin > 1 and inner[-1:] not in _MARKS and self.tgt[self.tgt_words[end - 1].start] in _MARKS:
            end -= 1
        while end - begin > 1 and inner[:1] not in _MARKS and self.tgt[self.tgt_words[begin].start] in _MARKS:
            begin += 1
        return begin, end

    def _fallback(
        self, mass: np.ndarray, group: Sequence[int], free: np.ndarray, first: int, last: int
    ) -> tuple[int, int]:
        """One word: that which looks at the group most, or else the one as far from the beginning; none if all are
        taken."""
        if not free.any():
            return len(free), len(free)
        allowed = np.where(free, mass, -1.0)
        at = int(allowed.argmax())
        if allowed[at] <= 0:
            share = (group[0] + group[-1]) / 2 / max(len(self.src_words) - 1, 1)
            wanted = share * (len(self.tgt_words) - 1) - first
            at = int(min(np.flatnonzero(free), key=lambda place: (abs(place - wanted), place)))
        return at, at + 1

    def _with_blanks(self, node: _Node, begin: int, end: int, limit: int, upto: int, within: _Range) -> _Range:
        """The characters of a window of words, with a blank at an edge where the source has one there."""
        if begin >= end:
            at = max(limit, min(within.end, self.tgt_words[begin].start if begin < len(self.tgt_words) else within.end))
            return _Range(at, at)
        start, stop = self.tgt_words[begin].start, self.tgt_words[end - 1].end
        inner = self.src[node.start : node.end]
        before = len(inner) - len(inner.lstrip())
        after = len(inner) - len(inner.rstrip())
        while before and start > limit and self.tgt[start - 1].isspace():
            start, before = start - 1, before - 1
        while after and stop < upto and self.tgt[stop].isspace():
            stop, after = stop + 1, after - 1
        return _Range(max(start, limit), max(start, limit, stop))

    def _beside(self, node: _Node, parent: _Node, within: _Range, taken: Sequence[_Range]) -> int:
        """The place of a code that stands alone: beside the word that stands for its neighbour."""
        at = node.start
        if node.codes[0].kind == "break":
            return self._proportional(at, within)
        before = int(np.searchsorted(self.src_ends, at, side="right")) - 1  # the last word that has ended
        after = int(np.searchsorted(self.src_starts, at))
        has_before = before >= 0 and self.src_ends[before] > parent.start
        has_after = after < len(self.src_words) and self.src_starts[after] < parent.end
        if not has_after and not self.src[at : parent.end].strip():
            return _free(within.end, taken, within)
        if not has_before and not self.src[parent.start : at].strip():
            return _free(within.start, taken, within)
        following = self.src[at : at + 1]
        leans_left = not self.src[at - 1 : at].isspace() and (following.isspace() or not following.isalnum())
        is_left = has_before and (leans_left or not has_after)
        looked = self._looked_at(before if is_left else after, within)
        if looked is None:
            return _free(self._proportional(at, within), taken, within)
        word = self.tgt_words[looked]
        if is_left:
            place = word.end
            blank = at - len(self.src[:at].rstrip()) if self.src[at - 1 : at].isspace() else 0
            while blank and place < within.end and self.tgt[place : place + 1].isspace():
                place, blank = place + 1, blank - 1
        else:
            place = word.start
            rest = self.src[at : at + 40]
            blank = len(rest) - len(rest.lstrip())
            while blank and place > within.start and self.tgt[place - 1].isspace():
                place, blank = place - 1, blank - 1
        return _free(place, taken, within)

    def _looked_at(self, number: int, within: _Range) -> int | None:
        """The target word that looks at a source word most, of those inside of a range; None where none does."""
        first, last = self._words_of(within)
        if first >= last or not 0 <= number < self.links.shape[1]:
            return None
        column = self.links[first:last, number] + (self.attended[first:last] == number)
        best = int(column.argmax())
        return first + best if column[best] > 0 and self.links[first + best, number] > 0 else None

    def _words_of(self, within: _Range) -> tuple[int, int]:
        """The target words inside of a range: from, to."""
        first = int(np.searchsorted(self.tgt_starts, within.start))
        return first, max(first, int(np.searchsorted(self.tgt_ends, within.end, side="right")))

    def _proportional(self, at: int, within: _Range) -> int:
        """The end of the word that is as far from the beginning as a place in the source."""
        wanted = at / max(len(self.src), 1) * len(self.tgt)
        first, last = self._words_of(within)
        starts = [int(start) for start in self.tgt_starts[first:last] if start > within.start]
        starts = [start for start in starts if self.tgt[start - 1].isspace()] or starts
        return min(starts, key=lambda start: abs(start - wanted), default=within.end)


def _best_window(gains: np.ndarray) -> tuple[int, int] | None:
    """The window of the greatest sum (Kadane's algorithm); None where no word gains."""
    best, window = 0.0, None
    total, start = 0.0, 0
    for place, gain in enumerate(gains):
        if total <= 0:
            total, start = 0.0, place
        total += float(gain)
        if total > best + 1e-12:
            best, window = total, (start, place + 1)
    return window


def _free(place: int, taken: Sequence[_Range], within: _Range) -> int:
    """The place itself, or the nearer end of the pair that it would fall into."""
    for found in taken:
        if found.start < place < found.end:
            place = found.start if place - found.start <= found.end - place else found.end
    return min(max(place, within.start), within.end)


def _is_free(place: int, taken: Sequence[_Range]) -> bool:
    return not any(found.start < place < found.end for found in taken)


def _items(node: _Node, tgt: str) -> list[Item]:
    """The items of a node's place."""
    out: list[Item] = []
    at = node.place.start
    # At one place the source's order holds; what comes before a pair that begins there is before it.
    order = sorted(
        range(len(node.children)), key=lambda i: (node.children[i].place.start, node.children[i].place.end, i)
    )
    for number in order:
        child = node.children[number]
        out.append(tgt[at : child.place.start])
        if child.is_pair:
            out += [child.codes[0], *_items(child, tgt), child.codes[1]]
        else:
            out += child.codes
        at = child.place.end
    out.append(tgt[at : node.place.end])
    return out


def _merged(items: Sequence[Item]) -> list[Item]:
    """Items without empty texts."""
    return [item for item in items if item != ""]


def unprotected(items: Sequence[Item], protected: Sequence[str]) -> list[Item]:
    """Items with the protected pieces in the place of the characters that stood for them."""
    pattern = re.compile(f"([{chr(FIRST)}-{chr(FIRST + MAX_PROTECTED - 1)}])")
    out: list[Item] = []
    for item in items:
        if not isinstance(item, str):
            out.append(item)
            continue
        for piece in pattern.split(item):
            if len(piece) == 1 and FIRST <= ord(piece) < FIRST + len(protected):
                raw = protected[ord(piece) - FIRST]
                out.append(raw if len(raw) == 1 else Code(raw, "protected"))
            elif piece:
                out.append(piece)
    joined: list[Item] = []
    for item in out:
        if isinstance(item, str) and joined and isinstance(joined[-1], str):
            joined[-1] += item
        else:
            joined.append(item)
    return joined
