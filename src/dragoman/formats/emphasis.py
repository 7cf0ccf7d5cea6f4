"""Emphasis of Markdown beside letters, so that CommonMark renders it.

A mark closes emphasis behind a letter, and behind punctuation only where no letter follows; it opens the other way
round (CommonMark 0.31, 6.2). In texts without spaces between words, `**開く。**次` and `は**「字」**は` are asterisks.
"""

import itertools
import unicodedata
from collections.abc import Sequence

from dragoman.formats.base import Code, Item

APART = Code("&#8203;", "alone")
"""A space without width: between a mark and a letter it is punctuation to the parser, and nothing to readers."""
_CLOSING = dict(zip('「『（【《〈〔［｛“‘(«„"', '」』）】》〉〕］｝”’)»“"', strict=True))
MAX_MARKS = 200
"""Marks of a text in which other emphasis is looked for around each one."""
_STAYS = "\\`*_[]<>&~|#$'" + "".join(_CLOSING) + "".join(_CLOSING.values())
"""Punctuation that does not leave emphasis by itself."""


def beside_letters(items: Sequence[Item]) -> list[Item]:
    """Items whose emphasis is rendered beside letters, too.

    Punctuation at an end of emphasis goes outside, brackets around all of it do so together, and `_` becomes `*`. Where
    none of these helps, a space without width stands between the mark and the letter.

    >>> strong = [Code("**", kind, 0, True) for kind in ("open", "close")]
    >>> [item if isinstance(item, str) else item.raw for item in beside_letters([strong[0], "開。", strong[1], "次"])]
    ['**', '開', '**', '。次']
    """
    return _Emphasis(items).repaired() if any(map(_mark, items)) else list(items)


def _mark(item: Item) -> str:
    """The kind of a mark of emphasis; "" for any other text."""
    return item.kind if isinstance(item, Code) and item.repeats and item.raw[:1] in "*_~" else ""


class _Emphasis:
    """The items of a text, with a text, be it empty, on both sides of marks that begin or end together."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items: list[Item] = [""]
        for item in items:
            last = self.items[-1]
            if isinstance(item, Code) and isinstance(last, Code) and not (_mark(item) and _mark(item) == _mark(last)):
                self.items.append("")
            self.items.append(item)
        self.items.append("")
        self.pairs: dict[int, int] = {}
        """The places of the marks of each pair, both ways."""
        self.apart: set[int] = set()
        """The places before which a space without width stands."""
        opened: list[int] = []
        for place, item in enumerate(self.items):
            if _mark(item) == "open":
                opened.append(place)
            elif _mark(item) == "close" and opened:
                self.pairs |= {opened[-1]: place, place: opened.pop()}

    def repaired(self) -> list[Item]:
        for kind in ("close", "open"):
            for of_kind, group in itertools.groupby(range(len(self.items)), lambda place: _mark(self.items[place])):
                if of_kind == kind:
                    self._mend(list(group), 1 if kind == "close" else -1)
        out: list[Item] = []
        for place, item in enumerate(self.items):
            out += [APART] if place in self.apart else []
            out += [item] if item != "" else []
        return out

    def _mend(self, group: Sequence[int], step: int) -> None:
        """Mend the marks that end together (`step` 1), or begin together (-1)."""
        inner, outer = (group[0] - 1, group[-1] + 1)[::step]
        beside = self._letter(outer, step)
        if step < 0 and outer in self.apart and not self.items[outer]:
            return
        following = self.items[outer + step] if 0 <= outer + step < len(self.items) else ""
        if self.items[outer] or not _mark(following):
            if not beside or beside.isspace() or _is_punctuation(beside):
                return
            for place in group:
                self._as_asterisk(place, group)
            marks = {self._raw(place)[:1] for place in group}
            if len(marks) == 1 and "_" not in marks:
                edge = self._letter(inner, -step)
                if not _is_punctuation(edge, symbols=True):
                    return
                if self._brackets_outside(group) or self._punctuation_outside(inner, outer, step):
                    return
        self.apart.add(group[-1] + 1 if step > 0 else group[0])

    def _raw(self, place: int) -> str:
        item = self.items[place]
        return item.raw if isinstance(item, Code) else item

    def _letter(self, place: int, step: int) -> str:
        """The character next to marks: the first one of what follows from a place on, or the last one before."""
        raw = self._raw(place) or (self._raw(place + step) if 0 <= place + step < len(self.items) else "")
        return raw[:1] if step > 0 else raw[-1:]

    def _as_asterisk(self, place: int, group: Sequence[int]) -> None:
        """`*` in the place of `_`, unless other emphasis stands around it or inside."""
        if "_" not in self._raw(place):
            return
        pair = self.pairs.get(place, place)
        begin, end = sorted((place, pair))
        own = {place, pair, *group, *(self.pairs.get(other, other) for other in group)}
        is_nested = len(self.pairs) > MAX_MARKS or any(
            (begin < one < end) or (one < begin and self.pairs[one] > end) for one in self.pairs if one not in own
        )
        if not is_nested:
            for one in (place, pair):
                item = self.items[one]
                if isinstance(item, Code):
                    self.items[one] = item._replace(raw=item.raw.replace("_", "*"))

    def _brackets_outside(self, group: Sequence[int]) -> bool:
        """Put brackets around all of the emphasis outside; False if there are none."""
        begin, end = sorted((group[0], self.pairs.get(group[0], group[0])))
        places = (begin - 1, begin + 1, end - 1, end + 1)
        text = "".join(item for item in self.items[begin + 1 : end] if isinstance(item, str))
        if begin == end or not all(isinstance(self.items[place], str) for place in places) or len(text.strip()) < 3:
            return False
        first, inside, last = text[0], text[1:-1], text[-1]
        is_whole = self._raw(begin + 1)[:1] == first and self._raw(end - 1)[-1:] == last
        if not is_whole or _CLOSING.get(first) != last or {first, last} & set(inside) or " " in (inside[0], inside[-1]):
            return False
        self.items[begin + 1] = self._raw(begin + 1)[1:]
        self.items[end - 1] = self._raw(end - 1)[:-1]
        self.items[begin - 1] = self._raw(begin - 1) + first
        self.items[end + 1] = last + self._raw(end + 1)
        return True

    def _punctuation_outside(self, inner: int, outer: int, step: int) -> bool:
        text = self._raw(inner)[::-step]
        count = sum(
            1 for _ in itertools.takewhile(lambda letter: _is_punctuation(letter) and letter not in _STAYS, text)
        )
        if not count or not text[count : count + 1].strip() or isinstance(self.items[inner], Code):
            return False
        self.items[inner] = text[count:][::-step]
        self.items[outer] = "".join([text[:count][::-step], self._raw(outer)][::step])
        return True


def _is_punctuation(letter: str, *, symbols: bool = False) -> bool:
    """True for punctuation; of symbols beyond ASCII CommonMark 0.31 says that they are, and 0.30 that they are not."""
    kind = unicodedata.category(letter) if letter else ""
    return kind[:1] == "P" or (kind[:1] == "S" and (symbols or letter.isascii()))
