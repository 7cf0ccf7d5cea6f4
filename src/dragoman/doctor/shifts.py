"""Where two sides of a corpus stop belonging together: a line too many or too few, a line cut in two, a lost block.

Line i of the source belongs to line i + offset of the target. The offset is a hidden state that rarely changes, and
what is seen of a pair of lines (their lengths, their last characters, words and numbers that look alike, words that
translate each other) is more probable where they belong together. The most probable sequence of offsets (Viterbi 1967)
then says where a shift begins. Nothing has to be known of the languages: how telling each kind of evidence is, and
which words translate each other, is learnt from the pair itself, first along the path that lengths alone suggest.

Corpora of any size are read in one pass and in bounded memory.
"""

import functools
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 20_000
"""Source lines that are looked at together."""
HELD_BACK = 200
"""Lines at the end of a chunk that are looked at again with the next: a change shows only some lines later."""
VOCABULARY = 4000
"""The most frequent words of a side, which are all that is looked at."""
LOOKS = 2048
"""Hashes of what words look like; two of them may fall together, which then tells a little less."""
TRANSLATIONS = 3
"""Most probable translations of a word that are kept."""
ROUNDS = 3
"""How often lexicon and path are made from each other."""
SWITCH = -25.0
"""Log probability of another offset at the next line, in nats: a shift must be more probable than that."""
LOST = -40.0
"""The same of no offset at all."""
BINS = 12
SHORTEST = 6
"""A stretch of fewer lines is no shift but a few loose translations."""


@dataclass(frozen=True)
class Shift:
    """From source line `line` on (counted from 1), its translation stands `offset` lines further down in the target.

    `offset` is None where no line near by is its translation. `until` is the last source line of which this is true,
    None where it goes on to the end.
    """

    line: int
    offset: int | None
    until: int | None


@dataclass(eq=False)
class Side:
    """What is looked at in the lines of one side."""

    lengths: Array
    """(lines) log of 1 + characters."""
    ends: Array
    """(lines) the place of the last character in `_ENDS`, 0 for all that are not there."""
    words: list[list[int]]
    """Numbers of the frequent words of each line."""
    looks: list[list[int]]
    """Hashes of numbers as they are and of the first letters of longer words: what may look alike in the other
    language."""


class Shifts:
    """Give it both sides, part by part; `finish` says what it found.

    `max_offset` is how many lines apart translations are looked for. Each part may have another number of lines on
    either side.
    """

    def __init__(self, max_offset: int = 8) -> None:
        self.max_offset = max_offset
        self.src: list[str] = []
        self.tgt: list[str] = []
        self.tgt_first = 0
        """Target lines before `tgt[0]`."""
        self.done = 0
        """Source lines whose offset is settled."""
        self.learnt: _Learnt | None = None
        self.state: int | None = None
        self.segments: list[tuple[int, int | None]] = []
        """(first source line counted from 0, offset), one after another."""
        self.belief = 0.0
        """Evidence that lines belong together, in nats, summed over all source lines."""

    def add(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        self.src += src
        self.tgt += tgt
        while min(len(self.src), len(self.tgt) + self.tgt_first - self.done) >= CHUNK + HELD_BACK + self.max_offset:
            self._look(CHUNK, last=False)
        # Far beyond the end of the other side nothing has a translation, and there may be millions of such lines.
        ahead = self.done + len(self.src) - self.tgt_first - len(self.tgt)
        if ahead > CHUNK:
            del self.src[CHUNK - ahead :]
        elif -ahead > CHUNK:
            del self.tgt[CHUNK + ahead :]

    def finish(self, *, complete: bool = True) -> list[Shift]:
        """The shifts of everything that was added, first to last; `complete`: both files have come to their ends."""
        if self.src:
            self._look(len(self.src), last=True, complete=complete)
        merged = _without_blips(self.segments, self.done)
        starts = [start for start, _ in merged[1:]] + [None]
        return [
            Shift(start + 1, offset, end) for (start, offset), end in zip(merged, starts, strict=True) if offset != 0
        ]

    def _look(self, count: int, *, last: bool, complete: bool = True) -> None:
        """Settle the offsets of the next `count` source lines."""
        looked = len(self.src) if last else count + HELD_BACK
        src, tgt = self.src[:looked], self.tgt[: looked + 2 * self.max_offset + (self.done - self.tgt_first)]
        if self.learnt is None:
            self.learnt = _learn(src, tgt, self.max_offset)
        evidence = self.learnt.evidence(src, tgt, self.done - self.tgt_first)
        # At the very end both sides must end together: nothing else would explain all of their lines.
        end = self.tgt_first + len(self.tgt) - self.done - len(self.src) if last and complete else None
        path = _viterbi(evidence, self.state, end, self.max_offset)[:count]
        self.belief += float(np.append(evidence, np.zeros((looked, 1)), axis=1)[np.arange(count), path].sum())
        for place in [0, *(np.flatnonzero(np.diff(path)) + 1).tolist()]:
            self.segments.append((self.done + place, self._offset(int(path[place]))))
        self.state = int(path[-1])
        del self.src[:count]
        self.done += count
        drop = max(0, self.done - self.max_offset - self.tgt_first)
        del self.tgt[:drop]
        self.tgt_first += drop

    def _offset(self, state: int) -> int | None:
        return None if state == 2 * self.max_offset + 1 else state - self.max_offset


# -- what is seen ----------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\d+(?:[.,:]\d+)*"
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # scripts without spaces
    r"|[^\W\d_]+"
)


def _tokens(line: str) -> list[str]:
    return _TOKEN.findall(line.casefold())


def _vocabulary(lines: list[list[str]]) -> dict[str, int]:
    counts = Counter(word for words in lines for word in set(words))
    frequent = [word for word, count in counts.most_common(VOCABULARY) if count >= 3]
    return {word: number for number, word in enumerate(frequent)}


def _side(lines: Sequence[str], tokens: list[list[str]], vocabulary: dict[str, int]) -> Side:
    return Side(
        lengths=np.log1p(np.array([len(line) for line in lines], dtype=np.float64)),
        ends=np.array([_ENDS.get(line[-1:], 0) for line in map(str.rstrip, lines)], dtype=np.int64),
        words=[list({vocabulary[word] for word in words if word in vocabulary}) for words in tokens],
        looks=[list({look for look in map(_look, words) if look >= 0}) for words in tokens],
    )


@functools.lru_cache(maxsize=100_000)
def _look(word: str) -> int:
    """What a word looks like, -1 for short ones."""
    if word[0].isdigit() or len(word) >= 4:
        return zlib.crc32((word if word[0].isdigit() else word[:5]).encode()) % LOOKS
    return -1


_ENDS = {char: number for number, char in enumerate(".!?:;,\"'”。！？…)", start=1)}


# -- how telling it is -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Learnt:
    """What was learnt from the first chunk: the lexicon, and the weight of each kind of evidence."""

    max_offset: int
    src_vocabulary: dict[str, int]
    tgt_vocabulary: dict[str, int]
    lexicon: Array
    """(source words, TRANSLATIONS) numbers of target words, -1 where there is none."""
    telling: Array
    """(source words, TRANSLATIONS) how much each tells, in nats."""
    tables: list["_Table"]

    def evidence(self, src: Sequence[str], tgt: Sequence[str], shift: int) -> Array:
        """(lines, offsets) log of how much more probable each pair of lines is where they belong together."""
        src_tokens, tgt_tokens = list(map(_tokens, src)), list(map(_tokens, tgt))
        sides = (_side(src, src_tokens, self.src_vocabulary), _side(tgt, tgt_tokens, self.tgt_vocabulary))
        seen = _Seen(*sides, shift, self.lexicon, self.telling, len(self.tgt_vocabulary))
        offsets = range(-self.max_offset, self.max_offset + 1)
        columns = [_weigh(self.tables, seen.features(offset)) for offset in offsets]
        return np.stack(columns, axis=1)


class _Seen:
    """The features of pairs of lines of two sides."""

    def __init__(self, src: Side, tgt: Side, shift: int, lexicon: Array, telling: Array, tgt_words: int) -> None:
        self.src, self.shift, self.size = src, shift, len(tgt.words)
        self.lengths, self.ends = np.append(tgt.lengths, 0.0), np.append(tgt.ends, 0)
        rows, words = _flat(src.words)
        known = telling[words, 0] > 0
        self.rows, words = rows[known], words[known]
        self.wanted, self.weights = lexicon[words], telling[words]  # (words of all lines, TRANSLATIONS)
        self.possible = np.bincount(self.rows, self.weights[:, 0], minlength=len(src.words))
        self.has = _table(tgt.words, tgt_words + 1)  # whose last column stays False, for words without translations
        self.look_rows, self.looks = _flat(src.looks)
        self.looked = np.bincount(self.look_rows, minlength=len(src.looks)) > 0
        self.looks_like = _table(tgt.looks, LOOKS)
        self.shown: Array = np.asarray(self.looks_like.any(axis=1))

    def features(self, offset: int) -> list[Array]:
        """For each source line and the target line `offset` further: one bin number for each kind, -1: nothing seen."""
        count = len(self.src.words)
        places = np.arange(count) + offset + self.shift
        there = (places >= 0) & (places < self.size)
        places = np.where(there, places, self.size)
        lengths = self.lengths[places] - self.src.lengths
        found = np.where(self.has[places[self.rows][:, None], self.wanted], self.weights, 0.0).max(axis=1, initial=0.0)
        explained = np.bincount(self.rows, found, minlength=count)
        share = explained / np.maximum(self.possible, 1e-9)
        shared = np.bincount(self.look_rows, self.looks_like[places[self.look_rows], self.looks], minlength=count)
        alike = np.where(self.looked & self.shown[places], np.minimum(shared, 3).astype(int), -1)
        translated = np.where(self.possible > 0, np.minimum(share * (BINS - 1), BINS - 1).astype(int), -1)
        binned = np.clip(np.round(lengths * 6) + 12, 0, 24).astype(int)
        both = self.src.ends * (len(_ENDS) + 1) + self.ends[places]
        return [np.where(there, feature, -1) for feature in (binned, both, alike, translated)]


def _flat(lines: list[list[int]]) -> tuple[Array, Array]:
    """(row, number) of all numbers of all lines."""
    counts = [len(numbers) for numbers in lines]
    numbers = np.fromiter(itertools.chain.from_iterable(lines), dtype=np.int64, count=sum(counts))
    return np.repeat(np.arange(len(lines)), counts), numbers


def _table(lines: list[list[int]], width: int) -> Array:
    """(lines + 1, width) whether a line has a number; the last row is that of lines that are not there."""
    table = np.zeros((len(lines) + 1, width), dtype=bool)
    table[_flat(lines)] = True
    return table


_Table = Array
"""(bins) log of how much more probable each bin is where lines belong together."""

_SIZES = (25, (len(_ENDS) + 1) ** 2, 4, BINS)
_TRUST = 0.7
"""The kinds of evidence are not independent of each other, so each counts for less than it says."""


def _weigh(tables: list[_Table], features: list[Array]) -> Array:
    """The evidence of all kinds together."""
    return _TRUST * sum(
        (np.where(feature >= 0, table[feature], 0.0) for table, feature in zip(tables, features, strict=True)),
        start=np.zeros(len(features[0])),
    )


def _tables(seen: _Seen, path: Array, kinds: int) -> list[_Table]:
    """How often each bin is seen along the path, and how often at pairs of lines that are far from it."""
    together = [np.ones(size) for size in _SIZES]
    apart = [np.ones(size) for size in _SIZES]
    for offset in np.unique(path).tolist():
        _count(together, seen.features(offset), path == offset)
        for far in (-31, -19, 17, 29):
            _count(apart, seen.features(offset + far), path == offset)
    tables = []
    for kind, (yes, no) in enumerate(zip(together, apart, strict=True)):
        table = np.log(yes / yes.sum()) - np.log(no / no.sum())
        tables.append(np.clip(table, -4.0, 4.0) if kind < kinds else np.zeros_like(table))
    return tables


def _count(totals: list[Array], features: list[Array], where: Array) -> None:
    for total, feature in zip(totals, features, strict=True):
        chosen = feature[where & (feature >= 0)]
        total += np.bincount(chosen, minlength=len(total))


# -- learning --------------------------------------------------------------------------------------------------------


def _learn(src: Sequence[str], tgt: Sequence[str], max_offset: int) -> _Learnt:
    """Lexicon and tables of a first chunk, from the path that each other's last version suggests."""
    src_tokens, tgt_tokens = list(map(_tokens, src)), list(map(_tokens, tgt))
    src_vocabulary, tgt_vocabulary = _vocabulary(src_tokens), _vocabulary(tgt_tokens)
    sides = _side(src, src_tokens, src_vocabulary), _side(tgt, tgt_tokens, tgt_vocabulary)
    path = _path_by_length(sides[0].lengths, sides[1].lengths, max_offset)
    lexicon, telling = _no_lexicon(len(src_vocabulary))
    tables: list[_Table] = []
    offsets = range(-max_offset, max_offset + 1)
    for round in range(ROUNDS):
        seen = _Seen(*sides, 0, lexicon, telling, len(tgt_vocabulary))
        tables = _tables(seen, path, kinds=3 if round == 0 else 4)
        evidence = np.stack([_weigh(tables, seen.features(offset)) for offset in offsets], axis=1)
        states = _viterbi(evidence, None, len(tgt) - len(src), max_offset)
        path = np.where(states == 2 * max_offset + 1, path, states - max_offset)
        lexicon, telling = _lexicon(sides, path, len(src_vocabulary), len(tgt_vocabulary))
    seen = _Seen(*sides, 0, lexicon, telling, len(tgt_vocabulary))
    tables = _tables(seen, path, kinds=4)
    return _Learnt(max_offset, src_vocabulary, tgt_vocabulary, lexicon, telling, tables)


def _path_by_length(src: Array, tgt: Array, max_offset: int, block: int = 250) -> Array:
    """A first guess: in each block, the offset at which long lines meet long lines and short ones short ones."""
    path = np.zeros(len(src), dtype=np.int64)
    for start in range(0, len(src), block):
        best = (-2.0, 0)
        for offset in sorted(range(-max_offset, max_offset + 1), key=abs):
            places = np.arange(start, min(start + block, len(src))) + offset
            inside = (places >= 0) & (places < len(tgt))
            if inside.sum() >= 20:
                pair = src[places[inside] - offset], tgt[places[inside]]
                if all(values.std() > 0 for values in pair):
                    best = max(best, (float(np.corrcoef(*pair)[0, 1]), offset), key=lambda found: found[0])
        path[start : start + block] = best[1]
    return path


def _no_lexicon(words: int) -> tuple[Array, Array]:
    return np.full((words, TRANSLATIONS), -1), np.zeros((words, TRANSLATIONS))


def _lexicon(sides: tuple[Side, Side], path: Array, src_words: int, tgt_words: int) -> tuple[Array, Array]:
    """The words of the other side that each word meets far more often than by chance, and how much they tell."""
    src, tgt = sides
    lexicon, telling = _no_lexicon(src_words)
    keys: list[Array] = []
    src_count, tgt_count, lines = np.zeros(src_words), np.zeros(tgt_words), 0
    for words, place in zip(src.words, (np.arange(len(path)) + path).tolist(), strict=True):
        if 0 <= place < len(tgt.words) and words and tgt.words[place]:
            mine, others = np.array(words), np.array(tgt.words[place])
            src_count[mine] += 1
            tgt_count[others] += 1
            keys.append((mine[:, None] * tgt_words + others).ravel())
            lines += 1
    if not keys:
        return lexicon, telling
    pairs, together = np.unique(np.concatenate(keys), return_counts=True)
    often = together >= 3
    pairs, together = pairs[often], together[often]
    mine, others = pairs // tgt_words, pairs % tgt_words
    dice = 2 * together / (src_count[mine] + tgt_count[others])
    # How much more often they meet than by chance; one meeting is left out, which may be that of the line in question.
    tells = np.log(np.maximum(together - 1, 0.5) * lines / (src_count[mine] * tgt_count[others]))
    good = tells > 0.5
    order = np.lexsort((-dice[good], mine[good]))
    mine, others, tells = mine[good][order], others[good][order], tells[good][order]
    first = np.searchsorted(mine, mine)
    rank = np.arange(len(mine)) - first
    kept = rank < TRANSLATIONS
    lexicon[mine[kept], rank[kept]] = others[kept]
    telling[mine[kept], rank[kept]] = tells[kept]
    best = np.argsort(-telling, axis=1, kind="stable")
    return np.take_along_axis(lexicon, best, axis=1), np.take_along_axis(telling, best, axis=1)


# -- the most probable path ------------------------------------------------------------------------------------------


def _viterbi(evidence: Array, begin: int | None, end: int | None, max_offset: int) -> Array:
    """(lines) states: offset + max_offset, or 2 * max_offset + 1 where lines belong to none near by.

    `begin` is the state of the line before, None at the beginning of the corpus, which is at offset 0. `end` is the
    offset at which both sides end together, where that is known.
    """
    count, offsets = evidence.shape
    states = offsets + 1
    score = np.full(states, SWITCH)
    score[-1] = LOST
    score[max_offset if begin is None else begin] = 0.0
    enter = np.full(states, SWITCH)
    enter[-1] = LOST
    came_from = np.zeros((count, states), dtype=np.int16)
    stay = np.arange(states)
    for line in range(count):
        if line:
            best = int(score.argmax())
            moved = score[best] + enter
            switch = moved > score
            came_from[line] = np.where(switch, best, stay)
            score = np.where(switch, moved, score)
        score = score + np.append(evidence[line], 0.0)
    if end is not None and abs(end) <= max_offset:
        score += np.where(stay == end + max_offset, 0.0, SWITCH)
    path = np.zeros(count, dtype=np.int64)
    path[-1] = int(score.argmax())
    for line in range(count - 1, 0, -1):
        path[line - 1] = came_from[line, path[line]]
    return path


def _without_blips(segments: list[tuple[int, int | None]], lines: int) -> list[tuple[int, int | None]]:
    """(first line, offset) of stretches, without those that are too short to be believed, and none like the one before.

    >>> _without_blips([(0, 0), (50, 1), (53, 0), (90, 2)], lines=200)
    [(0, 0), (90, 2)]
    """
    merged: list[tuple[int, int | None]] = []
    ends = [start for start, _ in segments[1:]] + [lines]
    for (start, offset), end in zip(segments, ends, strict=True):
        together = bool(merged) and merged[-1][1] == offset
        if not together and (end - start >= SHORTEST or not merged):
            merged.append((start, offset))
    if len(merged) > 1 and merged[1][0] < SHORTEST:  # the first lines of all
        merged = [(0, merged[1][1]), *merged[2:]]
    return merged
