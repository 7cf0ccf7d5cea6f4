"""Translation memory: what was translated before is said again, and what is much like it is offered.

An entry that differs from a text in its numbers alone is used with the numbers of the text. Like texts are found by the
words that they share, rare ones first, and compared letter by letter (RapidFuzz, indel distance). An entry of several
sentences is one of each of them, too, where they align (`sentence_pairs.py`).
"""

import itertools
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rapidfuzz import fuzz

from dragoman.cancellation import check
from dragoman.errors import Error, show
from dragoman.inference.translation import NBest, Translation
from dragoman.languages.invisible import in_one_line
from dragoman.pipeline.sentence_pairs import sentence_pairs
from dragoman.progress import say
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.alike import AlikeTexts, most_alike, uncased
from dragoman.text.case import upper
from dragoman.text.conflicts import RULE, preferred
from dragoman.text.corpus import source_of_file
from dragoman.text.lookup import lookup_form
from dragoman.text.sources.base import Pair
from dragoman.text.sources.tsv import TsvSource

MIN_OFFERED_SIMILARITY = 0.75
"""The least similarity of a match."""

MIN_HINT_SIMILARITY = 0.85
"""The least similarity of an entry whose translation decides between those that are about as probable
(benchmarks/log/2026-11.md, "2026-11-25: sentences, memories, messy text")."""

_MAX_UNINDEXED = 1000
"""Entries that came after the index was made, at most; with more it is made anew."""

KNOWN = Warning(WarningKind.FROM_MEMORY)

MIN_CAPITALS = 4
"""Letters of a text in capitals, at least, that may be one in small letters: fewer are an acronym (`US`, us)."""

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")


class Match(NamedTuple):
    """An entry that is like a text: its two sides, and how much, from 0 to 1."""

    src: str
    tgt: str
    similarity: float
    place: str = ""
    """File and line of the entry, or what else says where it is from."""

    def __str__(self) -> str:
        """The match in words. Only an identical text is 100 % similar.

        >>> str(Match("Open it", "Öffnen", 0.998, "a.tmx:7"))
        '99 %, a.tmx:7: Open it'
        """
        percent = f"{min(99, int(100 * self.similarity))} %"
        return f"{', '.join(filter(None, (percent, self.place)))}: {self.src}"


class InContext(NamedTuple):
    """A translation, and the sources before and after its own in the file."""

    tgt: str
    before: str
    after: str


class TranslationMemory:
    """Pairs to look up: `exact` ones first, then `like` ones.

    >>> memory = TranslationMemory([("Seite 3 von 7", "Page 3 of 7"), ("Datei öffnen", "Open file")])
    >>> memory.exact("Datei öffnen"), memory.exact("Seite 12 von 40")
    ('Open file', 'Page 12 of 40')
    >>> [match.tgt for match in memory.like("Datei öffnen ...", least=0.6)]
    ['Open file']
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], languages: tuple[str, str] = ("", ""), name: str = "") -> None:
        """Of several entries with one source the last one counts, and before it an entry over a sentence of another. An
        entry of several lines is of these lines: other white space makes no difference. `name`: where they are from."""
        self.languages, self.name = languages, name
        self._lines: dict[str, int] = {}
        """The line in the file of each source."""
        self._several: dict[str, list[InContext]] = {}
        """The translations of each source that has several in the file."""
        self._exact = dict(_entry(src, tgt) for src, tgt in pairs if src.strip() and tgt.strip())
        parts: dict[str, list[tuple[str, str]]] = {}
        for src, tgt in self._exact.items():
            for one, other in self._parts(src, tgt):
                parts.setdefault(one, []).append((src, other))
        self._sentences = {one: tuple(entries) for one, entries in parts.items()}
        """(entry, translation in it) of each sentence of the entries, in the order they came."""
        self._spelt = {key: src for src in self._sources() if (key := lookup_form(src)) != src}
        """Sources by the form in which they are looked up, where the form differs; sources of removed entries stay."""
        self._uncased: dict[str, str] | None = None
        """Sources by their form without case. Made when a text in capitals comes."""
        self._breaks = {words for src in self._exact for words in _beside_breaks(src)}
        """The words before and after each line break in a source; those of removed entries stay."""
        self._numbered: dict[str, dict[str, None]] = {}
        """Sources with numbers, by their text without the numbers, in the order they came."""
        self._numbering = threading.Lock()
        for src in self._sources():
            self._note_numbers(src)
        self._indexed: AlikeTexts | None = None
        """Made when it is needed: exact matches need none, and a million texts take seconds."""
        self._recent: tuple[str, ...] = ()
        """Sources that came after the index was made: they are compared one by one."""
        self._changing = threading.Lock()

    def add(self, src: str, tgt: str) -> None:
        """Put an entry in, in the place of one with the same source. Other threads may look up meanwhile."""
        src, tgt = _entry(src, tgt)
        if not (src and tgt):
            return
        parts = self._parts(src, tgt)
        with self._changing:
            self._several.pop(src, None)
            self._part_with_sentences(src)
            self._breaks.update(_beside_breaks(src))
            for one in (src, *(one for one, _ in parts)):
                self._note_source(one)
            for one, other in parts:
                self._sentences[one] = (*self._sentences.get(one, ()), (src, other))
            self._exact[src] = tgt

    def remove(self, src: str) -> None:
        """Take the entry of a source out, if there is one, with its sentences. Other threads may look up meanwhile."""
        src = in_lines(src)
        with self._changing:
            self._several.pop(src, None)
            self._part_with_sentences(src)
            if self._exact.pop(src, None) is not None:
                self._forget_numbers(src)

    def _parts(self, src: str, tgt: str) -> list[tuple[str, str]]:
        """The sentences of an entry, each once, as they are looked up."""
        pairs = sentence_pairs(src, tgt, self.languages)
        return list(
            {one: other for pair in pairs for one, other in [_entry(*pair)] if other and one not in ("", src)}.items()
        )

    def _part_with_sentences(self, src: str) -> None:
        """Take the sentences of an entry out, but for those of other entries."""
        for one, _ in self._parts(src, self._exact.get(src, "")):
            left = tuple(part for part in self._sentences[one] if part[0] != src)
            if left:
                self._sentences[one] = left
            else:
                del self._sentences[one]
                self._forget_numbers(one)

    def _sources(self) -> Iterator[str]:
        """The entries' sources, then the sentences of entries that are no entries themselves."""
        yield from self._exact
        yield from (one for one in self._sentences if one not in self._exact)

    def _tgt(self, src: str) -> str | None:
        """The translation of an entry, or else of a sentence of the last entry that has it."""
        tgt = self._exact.get(src)
        return self._sentences.get(src, ((src, None),))[-1][1] if tgt is None else tgt

    def _note_source(self, src: str) -> None:
        """Add a new source to the index."""
        if self._tgt(src) is not None:
            return
        self._note_numbers(src)
        self._spelt[lookup_form(src)] = src
        if self._uncased is not None:
            self._uncased[uncased(src)] = src
        self._recent = (*self._recent, src)
        if len(self._recent) > _MAX_UNINDEXED:
            self._indexed = None

    def _note_numbers(self, src: str) -> None:
        if _NUMBER.search(src):
            with self._numbering:
                self._numbered.setdefault(_numbered(src), {})[src] = None

    def _forget_numbers(self, src: str) -> None:
        key = _numbered(src)
        if self._tgt(src) is None and key in self._numbered:
            with self._numbering:
                self._numbered[key].pop(src, None)

    def _index(self) -> tuple[AlikeTexts, tuple[str, ...]]:
        """The index, and the sources that are not in it. Either may hold sources whose entries were removed."""
        with self._changing:
            if self._indexed is None:
                self._indexed, self._recent = AlikeTexts(list(self._sources())), ()
            return self._indexed, self._recent

    def __len__(self) -> int:
        """The number of entries, without the sentences of other entries."""
        return len(self._exact)

    def __contains__(self, text: str) -> bool:
        return self.exact(text) is not None

    @classmethod
    def load(cls, path: Path, languages: tuple[str, str]) -> "TranslationMemory":
        """Read a TMX, an XLIFF, a PO file, or two tab-separated columns.

        Of several translations of one source one is kept by the rule of `text/conflicts.py`, and their number told.
        Raises DragomanError for a file that is broken or has no pair of these languages.
        """
        pairs = list(_pairs_of(path, languages))
        kept = _deduplicated(pairs, path)
        if not kept:
            raise Error.EMPTY(f"no pair of {languages[0]} and {languages[1]} in it", file=path)
        memory = cls([(src, pair.tgt) for src, pair in kept], languages, show(path))
        memory._lines = {in_lines(src): pair.line for src, pair in kept}
        memory._several = _several(pairs)
        return memory

    def _place(self, src: str) -> str:
        """File and line of an entry, or of the entry that it is a sentence of."""
        entry = src if src in self._exact else self._sentences.get(src, ((src, ""),))[-1][0]
        line = self._lines.get(entry)
        return self.name if line is None else f"{self.name}:{line}"

    def exact(self, text: str) -> str | None:
        """The translation of a text that is in the memory, but for white space, the values of numbers, and spellings
        that read the same (`text/lookup.py`). That of a text in capitals is in capitals, too."""
        lines, line = in_lines(text) if self._breaks else "", _spaced(text)
        translation = self._of(lines) if "\n" in lines else None
        translation = self._of(line) if translation is None else translation
        return self._in_capitals(line) if translation is None and line.isupper() else translation

    def _in_capitals(self, text: str) -> str | None:
        if sum(map(str.isalpha, text)) < MIN_CAPITALS:
            return None
        with self._changing:
            if self._uncased is None:
                self._uncased = {uncased(src): src for src in self._sources()}
            tgt = self._tgt(self._uncased.get(uncased(text), ""))
        return None if tgt is None else upper(tgt, self.languages[1])

    def in_context(self, text: str, before: str, after: str) -> str | None:
        """For a text with several translations in the file: the translation between the same neighbours, or beside one
        same neighbour; None if there is none."""
        src, sides = _spaced(text), (_spaced(before), _spaced(after))

        def alike(one: InContext) -> int:
            return sum(bool(side) and side == there for side, there in zip(sides, one[1:], strict=True))

        best = max(self._several.get(src, ()), key=alike, default=None)
        return best.tgt if best is not None and alike(best) and src in self._exact else None

    def breaks_inside(self, before: str, after: str) -> bool:
        """False if no entry has a line break between the end of one text and the beginning of another."""
        return bool(self._breaks) and (*before.rsplit(None, 1)[-1:], *after.split(None, 1)[:1]) in self._breaks

    def _of(self, text: str) -> str | None:
        form = lookup_form(text)
        for src in (text, form, self._spelt.get(form, "")):
            if (translation := self._tgt(src)) is not None:
                return translation
        with self._numbering:
            entry = next(iter(self._numbered.get(_numbered(text), ())), None)
        tgt = None if entry is None else self._tgt(entry)
        return None if entry is None or tgt is None else _with_numbers(lookup_form(entry), tgt, form)

    def like(self, text: str, count: int = 3, least: float = MIN_OFFERED_SIMILARITY) -> list[Match]:
        """The entries most like a text, best first; none less than `least`."""
        check()
        form = uncased(_spaced(text))
        index, recent = self._index()
        forms = {index.texts[row]: index.forms[row] for row in index.candidates(form, least)}
        forms |= {src: uncased(src) for src in recent}
        entries = {src: tgt for src in forms if (tgt := self._tgt(src)) is not None}
        matches = most_alike(form, {src: forms[src] for src in entries}, count, least)
        return [Match(src, entries[src], similarity, self._place(src)) for src, similarity in matches]


class LayeredMemory:
    """Memories one over another: the entry of the upper memory counts.

    >>> own, shared = TranslationMemory([("Tor", "gate")]), TranslationMemory([("Tor", "goal"), ("Tür", "door")])
    >>> memory = LayeredMemory([own, shared])
    >>> memory.exact("Tor"), memory.exact("Tür"), [match.tgt for match in memory.like("Tor")]
    ('gate', 'door', ['gate'])
    """

    def __init__(self, layers: Sequence[TranslationMemory]) -> None:
        """`layers`: the uppermost first."""
        self.layers = layers

    def __len__(self) -> int:
        return sum(map(len, self.layers))

    def __contains__(self, text: str) -> bool:
        return self.exact(text) is not None

    def exact(self, text: str) -> str | None:
        """The translation of a text in the uppermost memory that has it."""
        return next((tgt for layer in self.layers if (tgt := layer.exact(text)) is not None), None)

    def in_context(self, text: str, before: str, after: str) -> str | None:
        """The translation between these neighbours, in the uppermost memory that has the text."""
        own = next((layer for layer in self.layers if text in layer), None)
        return None if own is None else own.in_context(text, before, after)

    def breaks_inside(self, before: str, after: str) -> bool:
        """False if no memory has an entry with a line break between two texts."""
        return any(layer.breaks_inside(before, after) for layer in self.layers)

    def like(self, text: str, count: int = 3, least: float = MIN_OFFERED_SIMILARITY) -> list[Match]:
        """The entries most like a text, best first. For each source only the entry of the uppermost memory counts."""
        matches: dict[str, Match] = {}
        for layer in self.layers:
            for match in layer.like(text, count, least):
                matches.setdefault(match.src, match)
        return sorted(matches.values(), key=lambda match: -match.similarity)[:count]


Memory = TranslationMemory | LayeredMemory
WithMatches = Callable[[Sequence[str], Sequence[list[Translation]]], list[list[Translation]]]
"""The translations of sentences, with what is to be told of them."""


def deduplicated_pairs(path: Path, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The pairs of a file of a known kind (`text/corpus.py`), or of two tab-separated columns.

    Of several translations of one source one is kept, and their number told.
    """
    return deduplicated(_pairs_of(path, languages), path)


def deduplicated(pairs: Iterable[Pair], path: Path) -> list[tuple[str, str]]:
    """The pairs of a file that are not blank, one for each source; a message gives the number of sources with several
    pairs."""
    return [(src, pair.tgt) for src, pair in _deduplicated(pairs, path)]


def _pairs_of(path: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    return (source_of_file(str(path), *languages) or TsvSource(path=str(path))).between(languages)


def _several(pairs: Sequence[Pair]) -> dict[str, list[InContext]]:
    """The different translations of each source that has several."""
    sources = ["", *(_spaced(pair.src) for pair in pairs), ""]
    translations: dict[str, dict[InContext, None]] = {}
    for before, pair, after in zip(sources, pairs, sources[2:], strict=False):
        if pair.src.strip() and pair.tgt.strip():
            translations.setdefault(_spaced(pair.src), {})[InContext(in_one_line(pair.tgt), before, after)] = None
    return {src: list(every) for src, every in translations.items() if len({one.tgt for one in every}) > 1}


def _deduplicated(pairs: Iterable[Pair], path: Path) -> list[tuple[str, Pair]]:
    """(source, the pair that is kept for it)."""
    by_source: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.src.strip() and pair.tgt.strip():
            by_source.setdefault(_spaced(pair.src), []).append(pair._replace(tgt=in_one_line(pair.tgt)))
    kept, conflicts = [], []
    for src, group in by_source.items():
        best, times = preferred(group)
        kept.append((src, best))
        if len(times) > 1:
            conflicts.append(f"{src!r} is {best.tgt!r}, not {next(tgt for tgt in times if tgt != best.tgt)!r}")
    if conflicts:
        say(f"{path}: {len(conflicts):,} sources have several translations: {RULE} (first: {conflicts[0]})")
    return kept


def _spaced(text: str) -> str:
    return " ".join(text.split())


def in_lines(text: str) -> str:
    """The lines of a text that are not empty; other white space makes no difference.

    >>> in_lines("  a   b \\n\\n c ")
    'a b\\nc'
    """
    return "\n".join(filter(None, map(_spaced, text.splitlines())))


def _entry(src: str, tgt: str) -> tuple[str, str]:
    """An entry as it is looked up. Of a single line the translation is a single line."""
    src = in_lines(src)
    lines = tgt.splitlines() if "\n" in src else [tgt]
    return src, "\n".join(filter(None, map(in_one_line, lines)))


def _beside_breaks(src: str) -> Iterator[tuple[str, str]]:
    for before, after in itertools.pairwise(src.split("\n") if "\n" in src else ()):
        yield before.rsplit(" ", 1)[-1], after.split(" ", 1)[0]


def _with_numbers(src: str, tgt: str, text: str) -> str | None:
    """A translation with the numbers of a text in the place of those of its own source; None where they do not tell
    which is which."""
    old, new = _NUMBER.findall(src), _NUMBER.findall(text)
    if len(old) != len(new) or len(set(old)) < len(old) or Counter(_NUMBER.findall(tgt)) != Counter(old):
        return None
    changed = dict(zip(old, new, strict=True))
    return _NUMBER.sub(lambda match: changed[match.group()], tgt)


def _numbered(text: str) -> str:
    return _NUMBER.sub("\0", lookup_form(text))


def from_memory(
    n_best: NBest, memory: Memory, count: int, sentences: Sequence[str], with_matches: WithMatches | None = None
) -> list[list[Translation]]:
    """The memory's translation alone of a text that it has; of others the `count` best that `n_best` makes.

    A model that has read the match of a sentence needs no more; `with_matches` notes which match it was.

    Where the memory has a text much like it, the search's translation with the greatest `score + similarity` of letters
    is taken: it is probable, and like the memory's (benchmarks/log/2026-11.md, "sentences, memories,
    messy text"). So `n_best` has to give all translations that the search holds.
    """
    known = [memory.exact(text) if text.strip() else None for text in sentences]
    unknown = [text for text, tgt in zip(sentences, known, strict=True) if tgt is None]
    every = n_best(unknown)
    made = iter(
        with_matches(unknown, every)
        if with_matches is not None
        else [_like_the_memory(memory, text, items)[:count] for text, items in zip(unknown, every, strict=True)]
    )
    return [next(made) if tgt is None else [Translation(tgt, 0.0, 0.0, (KNOWN,))] for tgt in known]


def _like_the_memory(memory: Memory, text: str, items: Sequence[Translation]) -> list[Translation]:
    matches = memory.like(text, count=1, least=MIN_HINT_SIMILARITY) if len(items) > 1 else []
    if not matches:
        return list(items)
    hint, faults = matches[0].tgt, len(items[0].warnings)
    sound = [item for item in items if len(item.warnings) <= faults]
    best = max(sound, key=lambda item: item.score + fuzz.ratio(item.text, hint) / 100)
    return [best, *(item for item in items if item is not best)]
