"""Find where two sides of a corpus stop corresponding: a line too many or too few, a line cut in two, a lost block.

Line i of the source corresponds to line i + offset of the target. The offset is a hidden state that rarely changes, and
the features of a pair of lines (their lengths, their last characters, words and numbers that look alike, words that
translate each other) are more probable where they correspond. The most probable sequence of offsets (Viterbi 1967) then
says where a shift begins. No language is known in advance: the weight of each feature and the lexicon are learnt from
the corpus itself, first along the path that lengths alone suggest.

Corpora of any size are read in one pass and in bounded memory.
"""

import functools
import itertools
import operator
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.text.placeholders import without_spans
from dragoman.text.words import UNSPACED

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_LINES = 20_000  # source lines whose offsets are found at a time
HELD_BACK_LINES = 200  # at the end of a chunk, decided with the next: a change shows only some lines later
MAX_WORDS = 4000  # the most frequent words of a side; others are ignored
NUM_SPELLING_HASHES = 2048  # number of hashes of spellings; collisions only weaken the evidence a little
MAX_TRANSLATIONS = 3  # most probable translations of a word that are kept
LEARNING_ROUNDS = 3  # in each, the path is found by the lexicon and the lexicon is counted along the path
SWITCH_LOG_PROB = -25.0  # log probability of another offset at the next line, in nats
LOST_LOG_PROB = -40.0  # log probability that the next line has no translation nearby, in nats
LOST_LINE_LOG_PROB = -0.1  # a line without translation is this much less probable than one of which nothing can be said
BINS = 12
MIN_SHIFT_LINES = 6  # lines of the shortest shift; fewer are a few loose translations


@dataclass(frozen=True)
class Shift:
    """Source lines whose translations stand `offset` lines further down in the target."""

    line: int  # the first of them, counted from 1
    offset: int | None  # None: no line nearby is the translation
    until: int | None  # the last of them, None: to the end


@dataclass(eq=False)
class Side:
    """The features of the lines on one side."""

    lengths: Array  # (lines) log of 1 + characters
    ends: Array  # (lines) the number of the last character in `_ENDS`, 0 for any other
    words: list[list[int]]  # numbers of the frequent words of each line
    spelling_hashes: list[list[int]]  # of numbers and first letters of longer words, alike on both sides
    bare: Array  # (lines) True for placeholders and tags alone, of which any fits any
    vocabulary: dict[str, int]


class Shifts:
    """Finds shifts in two sides that are added part by part; parts may have unequal numbers of lines.

    Translations are searched up to `max_offset` lines away.
    """

    def __init__(self, max_offset: int = 8) -> None:
        self.max_offset = max_offset
        self.src: list[str] = []
        self.tgt: list[str] = []
        self.tgt_first = 0  # target lines before `tgt[0]`
        self.done = 0  # source lines whose offset is settled
        self.learnt: _Learnt | None = None
        self.state: int | None = None
        self.segments: list[tuple[int, int | None]] = []  # (first source line from 0, offset)
        self.log_evidence = 0.0  # evidence that lines correspond, in nats, summed over all source lines

    def add(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        self.src += src
        self.tgt += tgt
        while (
            min(len(self.src), len(self.tgt) + self.tgt_first - self.done)
            >= CHUNK_LINES + HELD_BACK_LINES + self.max_offset
        ):
            self._settle(CHUNK_LINES, last=False)
        # Far beyond the end of the other side nothing has a translation, and there may be millions of such lines.
        surplus = self.done + len(self.src) - self.tgt_first - len(self.tgt)
        if surplus > CHUNK_LINES:
            del self.src[CHUNK_LINES - surplus :]
        elif -surplus > CHUNK_LINES:
            del self.tgt[CHUNK_LINES + surplus :]

    def finish(self, *, complete: bool = True) -> list[Shift]:
        """All shifts, first to last; `complete`: both files have been added to their ends."""
        if self.src:
            self._settle(len(self.src), last=True, complete=complete)
        merged = _without_blips(self.segments, self.done)
        ends = [start for start, _ in merged[1:]] + [None]
        return [Shift(start + 1, offset, end) for (start, offset), end in zip(merged, ends, strict=True) if offset != 0]

    def _settle(self, count: int, *, last: bool, complete: bool = True) -> None:
        """Settle the offsets of the next `count` source lines."""
        # 1. How much each pair of lines looks like a translation, at each offset. Lines beyond `count` are read too,
        # as a shift near the end of the chunk is seen by the lines behind it.
        num_lines = len(self.src) if last else count + HELD_BACK_LINES
        src, tgt = self.src[:num_lines], self.tgt[: num_lines + 2 * self.max_offset + (self.done - self.tgt_first)]
        if self.learnt is None:
            self.learnt = _learn(src, tgt, self.max_offset)
        sides = _side(src, self.learnt.src_vocabulary), _side(tgt, self.learnt.tgt_vocabulary)
        features = _Features(*sides, self.done - self.tgt_first, self.learnt.lexicon)
        evidence = features.evidence(self.learnt.tables, self.max_offset)
        # 2. The most probable path. At the very end both sides must end together: nothing else would explain all lines.
        end = self.tgt_first + len(self.tgt) - self.done - len(self.src) if last and complete else None
        path = _viterbi(features.novelty * evidence, self.state, end, self.max_offset)[:count]
        self.log_evidence += float(np.append(evidence, np.zeros((num_lines, 1)), axis=1)[np.arange(count), path].sum())
        # 3. A new segment wherever the path changes its offset.
        for line in [0, *(np.flatnonzero(np.diff(path)) + 1).tolist()]:
            lost = path[line] == 2 * self.max_offset + 1
            self.segments.append((self.done + line, None if lost else int(path[line]) - self.max_offset))
        # 4. Forget settled lines. Target lines stay as long as a source line may still stand opposite them.
        self.state = int(path[-1])
        del self.src[:count]
        self.done += count
        drop = max(0, self.done - self.max_offset - self.tgt_first)
        del self.tgt[:drop]
        self.tgt_first += drop


# -- features --------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(rf"\d+(?:[.,:]\d+)*|[{UNSPACED}]|[^\W\d_]+")
_MARKS = re.compile(r"[%{<&$`]")  # one of these is in every placeholder and tag
_ENDS = {char: number for number, char in enumerate(".!?:;,\"'”。！？…)", start=1)}


def _side(lines: Sequence[str], vocabulary: dict[str, int] | None = None) -> Side:
    """The features of lines; without a vocabulary, that of these lines is made."""
    tokens = [_TOKEN.findall(line.casefold()) for line in lines]
    if vocabulary is None:
        counts = Counter(word for words in tokens for word in set(words))
        frequent = [word for word, count in counts.most_common(MAX_WORDS) if count >= 3]
        vocabulary = {word: number for number, word in enumerate(frequent)}
    return Side(
        lengths=np.log1p(np.array([len(line) for line in lines], dtype=np.float64)),
        ends=np.array([_ENDS.get(line[-1:], 0) for line in map(str.rstrip, lines)], dtype=np.int64),
        words=[list({vocabulary[word] for word in words if word in vocabulary}) for words in tokens],
        spelling_hashes=[list({code for code in map(_spelling_hash, words) if code >= 0}) for words in tokens],
        bare=np.array([_is_bare(line) for line in lines], dtype=bool),
        vocabulary=vocabulary,
    )


def _is_bare(line: str) -> bool:
    return bool(_MARKS.search(line)) and not any(map(str.isalnum, without_spans(line)[0]))


@functools.lru_cache(maxsize=100_000)
def _spelling_hash(word: str) -> int:
    """A hash of a word's spelling that its translation may share, -1 for short words."""
    if word[0].isdigit() or len(word) >= 4:
        return zlib.crc32((word if word[0].isdigit() else word[:5]).encode()) % NUM_SPELLING_HASHES
    return -1


Lexicon = tuple[Array, Array]
"""(source words, MAX_TRANSLATIONS) each: numbers of target words, -1 for none, and the evidence of each, in nats."""

Table = Array  # (bins) log of how much more probable each bin of a feature is where lines correspond

_SIZES = (25, (len(_ENDS) + 1) ** 2, 4, BINS)  # bins of each feature
_TRUST = 0.7  # weight of the summed evidence: the features are not independent of each other
NEIGHBOUR_LINES = 4  # lines before a line that its words are compared with
MIN_WEIGHT = 0.1  # of a line that says nothing new


class _Features:
    """The features of pairs of lines; source line i stands opposite target line i + `shift`."""

    def __init__(self, src: Side, tgt: Side, shift: int, lexicon: Lexicon) -> None:
        self.src, self.shift, self.tgt_lines = src, shift, len(tgt.words)
        self.lengths, self.ends = np.append(tgt.lengths, 0.0), np.append(tgt.ends, 0)
        self.tgt_is_bare = np.append(tgt.bare, True)
        translations, weights = lexicon
        rows, words = _flat(src.words)
        known = weights[words, 0] > 0
        self.rows, words = rows[known], words[known]
        self.translations, self.weights = translations[words], weights[words]  # (words of all lines, MAX_TRANSLATIONS)
        self.possible = np.bincount(self.rows, self.weights[:, 0], minlength=len(src.words))
        # The last column of this table stays False, for words without translations.
        self.tgt_has_word = _membership(tgt.words, len(tgt.vocabulary) + 1)
        self.hash_rows, self.spelling_hashes = _flat(src.spelling_hashes)
        self.src_has_hashes = np.bincount(self.hash_rows, minlength=len(src.spelling_hashes)) > 0
        self.tgt_has_hash = _membership(tgt.spelling_hashes, NUM_SPELLING_HASHES)
        self.tgt_has_hashes: Array = np.asarray(self.tgt_has_hash.any(axis=1))
        self.novelty = _novelty(src.words)

    def bins(self, offset: int) -> list[Array]:
        """(source lines) for each feature: its bin for the pair with the target line `offset` further, -1 for none."""
        count = len(self.src.words)
        places = np.arange(count) + offset + self.shift
        exists = (places >= 0) & (places < self.tgt_lines)
        places = np.where(exists, places, self.tgt_lines)
        lengths = self.lengths[places] - self.src.lengths
        is_there = self.tgt_has_word[places[self.rows][:, None], self.translations]
        explained = np.bincount(
            self.rows, np.where(is_there, self.weights, 0.0).max(axis=1, initial=0.0), minlength=count
        )
        share = explained / np.maximum(self.possible, 1e-9)
        shared = np.bincount(
            self.hash_rows, self.tgt_has_hash[places[self.hash_rows], self.spelling_hashes], minlength=count
        )
        comparable = self.src_has_hashes & self.tgt_has_hashes[places]
        alike = np.where(comparable, np.minimum(shared, 3).astype(int), -1)
        translated = np.where(self.possible > 0, np.minimum(share * (BINS - 1), BINS - 1).astype(int), -1)
        length_bins = np.clip(np.round(lengths * 6) + 12, 0, 24).astype(int)
        end_pairs = self.src.ends * (len(_ENDS) + 1) + self.ends[places]
        telling = exists & ~self.src.bare & ~self.tgt_is_bare[places]
        return [np.where(telling, bins, -1) for bins in (length_bins, end_pairs, alike, translated)]

    def evidence(self, tables: list[Table], max_offset: int) -> Array:
        """(lines, offsets) log of how much more probable the features of each pair are where lines correspond."""
        columns = []
        for offset in range(-max_offset, max_offset + 1):
            features = zip(tables, self.bins(offset), strict=True)
            columns.append(sum(np.where(bins >= 0, table[bins], 0.0) for table, bins in features))
        return _TRUST * np.stack(columns, axis=1)

    def tables(self, path: Array, num_learnt: int) -> list[Table]:
        """Tables of the first `num_learnt` features (0 for others), counted along the path and far from it."""
        near = [np.ones(size) for size in _SIZES]
        far = [np.ones(size) for size in _SIZES]
        for offset in np.unique(path).tolist():
            self._count(near, offset, path == offset)
            for distance in (-31, -19, 17, 29):
                self._count(far, offset + distance, path == offset)
        tables = [np.log(yes / yes.sum()) - np.log(no / no.sum()) for yes, no in zip(near, far, strict=True)]
        return [np.clip(table, -4.0, 4.0) if i < num_learnt else np.zeros_like(table) for i, table in enumerate(tables)]

    def _count(self, totals: list[Array], offset: int, lines: Array) -> None:
        for total, bins in zip(totals, self.bins(offset), strict=True):
            total += np.bincount(bins[lines & (bins >= 0)], minlength=len(total))


def _novelty(lines: list[list[int]]) -> Array:
    """(lines, 1) the weight of each line: 1 where half of its words or more are not in the lines just before it.

    Lines that repeat the words of the lines before them ("on the third Friday", "on the third Monday" ...) are not
    independent evidence of a shift: one word with an unusual translation would count in all of them.
    """
    weights = np.ones(len(lines))
    recent: Counter[int] = Counter()
    for row, words in enumerate(lines):
        if words:
            new = sum(1 for word in words if not recent[word]) / len(words)
            weights[row] = max(MIN_WEIGHT, min(1.0, 2 * new))
        recent.update(words)
        if row >= NEIGHBOUR_LINES:
            recent.subtract(lines[row - NEIGHBOUR_LINES])
    return weights[:, None]


def _flat(lines: list[list[int]]) -> tuple[Array, Array]:
    """(row, number) of all numbers of all lines."""
    counts = [len(numbers) for numbers in lines]
    numbers = np.fromiter(itertools.chain.from_iterable(lines), dtype=np.int64, count=sum(counts))
    return np.repeat(np.arange(len(lines)), counts), numbers


def _membership(lines: list[list[int]], width: int) -> Array:
    """(lines + 1, width) True where a line has a number; the last row stands for lines that do not exist."""
    table = np.zeros((len(lines) + 1, width), dtype=bool)
    table[_flat(lines)] = True
    return table


# -- learning --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Learnt:
    """The lexicon and the tables of the first chunk."""

    src_vocabulary: dict[str, int]
    tgt_vocabulary: dict[str, int]
    lexicon: Lexicon
    tables: list[Table]


def _learn(src: Sequence[str], tgt: Sequence[str], max_offset: int) -> _Learnt:
    """Learn lexicon and tables from a first chunk, in turns with the path."""
    # As in expectation maximisation: a path gives tables and a lexicon, and these give a better path.
    sides = _side(src), _side(tgt)
    path = _path_by_length(sides[0].lengths, sides[1].lengths, max_offset)
    lexicon = _empty_lexicon(len(sides[0].vocabulary))
    for round in range(LEARNING_ROUNDS):
        features = _Features(*sides, 0, lexicon)
        tables = features.tables(path, num_learnt=3 if round == 0 else 4)  # the fourth feature needs a lexicon
        evidence = features.novelty * features.evidence(tables, max_offset)
        states = _viterbi(evidence, None, len(tgt) - len(src), max_offset)
        # A line without a translation keeps its old offset: the lexicon needs an offset for each line.
        path = np.where(states == 2 * max_offset + 1, path, states - max_offset)
        lexicon = _lexicon(*sides, path)
    tables = _Features(*sides, 0, lexicon).tables(path, num_learnt=4)
    return _Learnt(sides[0].vocabulary, sides[1].vocabulary, lexicon, tables)


def _path_by_length(src: Array, tgt: Array, max_offset: int, block: int = 250) -> Array:
    """A first guess: in each block, the offset at which the lengths of lines correlate most."""
    path = np.zeros(len(src), dtype=np.int64)
    for start in range(0, len(src), block):
        best = (-2.0, 0)
        for offset in sorted(range(-max_offset, max_offset + 1), key=abs):
            places = np.arange(start, min(start + block, len(src))) + offset
            inside = (places >= 0) & (places < len(tgt))
            if inside.sum() >= 20:
                pair = src[places[inside] - offset], tgt[places[inside]]
                if all(values.std() > 0 for values in pair):
                    best = max(best, (float(np.corrcoef(*pair)[0, 1]), offset), key=operator.itemgetter(0))
        path[start : start + block] = best[1]
    return path


def _empty_lexicon(words: int) -> Lexicon:
    return np.full((words, MAX_TRANSLATIONS), -1), np.zeros((words, MAX_TRANSLATIONS))


def _lexicon(src: Side, tgt: Side, path: Array) -> Lexicon:
    """The target words that each source word meets far more often than by chance."""
    src_words, tgt_words = len(src.vocabulary), len(tgt.vocabulary)
    translations, weights = _empty_lexicon(src_words)
    # 1. Count how often each pair of words meets in lines that correspond; a pair of words is one number.
    pairs: list[Array] = []
    src_count, tgt_count = np.zeros(src_words), np.zeros(tgt_words)
    for words, place in zip(src.words, (np.arange(len(path)) + path).tolist(), strict=True):
        if 0 <= place < len(tgt.words) and words and tgt.words[place]:
            mine, others = np.array(words), np.array(tgt.words[place])
            src_count[mine] += 1
            tgt_count[others] += 1
            pairs.append((mine[:, None] * tgt_words + others).ravel())
    if not pairs:
        return translations, weights
    pair, meetings = np.unique(np.concatenate(pairs), return_counts=True)
    often = meetings >= 3
    pair, meetings = pair[often], meetings[often]
    mine, others = pair // tgt_words, pair % tgt_words
    dice = 2 * meetings / (src_count[mine] + tgt_count[others])
    # How much more often they meet than by chance; one meeting is left out, which may be that of the line in question.
    weight = np.log(np.maximum(meetings - 1, 0.5) * len(pairs) / (src_count[mine] * tgt_count[others]))
    # 2. Keep the TRANSLATIONS target words of each source word with the greatest Dice coefficient.
    good = weight > 0.5
    order = np.lexsort((-dice[good], mine[good]))
    mine, others, weight = mine[good][order], others[good][order], weight[good][order]
    rank = np.arange(len(mine)) - np.searchsorted(mine, mine)
    kept = rank < MAX_TRANSLATIONS
    translations[mine[kept], rank[kept]] = others[kept]
    weights[mine[kept], rank[kept]] = weight[kept]
    # 3. The surest translation comes first.
    best = np.argsort(-weights, axis=1, kind="stable")
    return np.take_along_axis(translations, best, axis=1), np.take_along_axis(weights, best, axis=1)


# -- the most probable path ------------------------------------------------------------------------------------------


def _viterbi(evidence: Array, begin: int | None, end: int | None, max_offset: int) -> Array:
    """(lines) the most probable states: offset + max_offset, or 2 * max_offset + 1 for lines without a translation.

    `begin` is the state of the line before, None at the beginning of the corpus (offset 0). `end` is the offset at
    which both sides end together, if it is known.
    """
    count, offsets = evidence.shape
    states = offsets + 1
    score = np.full(states, SWITCH_LOG_PROB)
    score[-1] = LOST_LOG_PROB
    score[max_offset if begin is None else begin] = 0.0
    enter = np.full(states, SWITCH_LOG_PROB)
    enter[-1] = LOST_LOG_PROB
    came_from = np.zeros((count, states), dtype=np.int16)
    stay = np.arange(states)
    for line in range(count):
        if line:
            # A change costs the same from every state, so only the best state is worth leaving.
            best = int(score.argmax())
            moved = score[best] + enter
            switch = moved > score
            came_from[line] = np.where(switch, best, stay)
            score = np.where(switch, moved, score)
        score = score + np.append(evidence[line], LOST_LINE_LOG_PROB)
    if end is not None and abs(end) <= max_offset:
        score += np.where(stay == end + max_offset, 0.0, SWITCH_LOG_PROB)
    # Back from the best last state, along the states that were come from.
    path = np.zeros(count, dtype=np.int64)
    path[-1] = int(score.argmax())
    for line in range(count - 1, 0, -1):
        path[line - 1] = came_from[line, path[line]]
    return path


def _without_blips(segments: list[tuple[int, int | None]], lines: int) -> list[tuple[int, int | None]]:
    """(first line, offset) of stretches without those shorter than `MIN_SHIFT_LINES`; equal neighbours become one.

    >>> _without_blips([(0, 0), (50, 1), (53, 0), (90, 2)], lines=200)
    [(0, 0), (90, 2)]
    """
    merged: list[tuple[int, int | None]] = []
    ends = [start for start, _ in segments[1:]] + [lines]
    for (start, offset), end in zip(segments, ends, strict=True):
        if not merged or (offset != merged[-1][1] and end - start >= MIN_SHIFT_LINES):
            merged.append((start, offset))
    if len(merged) > 1 and merged[1][0] < MIN_SHIFT_LINES:  # the first lines of all
        merged = [(0, merged[1][1]), *merged[2:]]
    return merged
