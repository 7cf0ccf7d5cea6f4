"""Terms of a glossary in the place of the words that a model wrote for them.

Which words of a translation are there because of a source term says erasure (`erasure.py`): without the term in the
source they become improbable. That needs no attention, and finds the place more surely than attention does
(benchmarks/log/2026-11.md, "a glossary's term in the place of its word"). The stages of a term: its word is looked for
(`_rendering`), and the target term takes the place of that word; neighbours that make sense only beside that word go as
well ("officer" of "police officer", `_absorb`); an article before it gets the form that the model finds most probable
(`_articles`). The rest of the translation stays.
"""

import functools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dragoman.alignment.attention import attention_links
from dragoman.alignment.erasure import word_losses
from dragoman.alignment.links import AlignedPair, token_ids
from dragoman.cancellation import check
from dragoman.decoding.base import Hypothesis
from dragoman.errors import DragomanError
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment, Translation
from dragoman.languages.codes import articles
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.annotations import PIECE, has_learnt
from dragoman.text.case import capitalized
from dragoman.text.glossary import Glossary, TermMatch
from dragoman.text.learnt_terms import annotated, inflected
from dragoman.text.lookup import words_like
from dragoman.text.words import MARKS, Word, borders, is_letter

# Tuned on LibreOffice's help: benchmarks/log/2026-11.md, "2026-11-25: a glossary's term in the place of its word".
MIN_TERM_LOSS_NATS = 0.8
"""A word is a term's if it loses so much without it; if no word does, the translation has left the term out."""
MIN_NEIGHBOUR_LOSS_NATS, MIN_GAIN_NATS = 1.5, 4.5
"""A neighbour goes as well if it loses so much without the term, and the sentence gains so much without it."""
MIN_LETTER_NATS = 2.0
"""A letter of a script without spaces goes if it costs more than this without the term."""
MAX_NEIGHBOURS = 3
"""Neighbours that may go, at most."""
MAX_TERM_TOKENS = 48
"""Tokens of terms that are searched for together, at most: such a search keeps two hypotheses for each token."""
LONGEST_TOKEN = 12
"""Letters of a token in which the part that is a term's is looked for: each of its parts is tried."""
SHORT_WORD_LETTERS = 4
"""A word of fewer letters may be an article or a preposition, which stands by a term's word and is none."""
MIN_TERM_ATTENTION = 0.3
"""The least attention to a term of a word that is sure without it, if it attends to another word more."""
MIN_ATTENTION_RATIO = 0.4
"""A neighbour on the right goes if its attention to the term is this much of its attention to any other word. One on
the left has to attend to the term most."""

_WORD = re.compile(rf"[\w{MARKS}]+(?:-[\w{MARKS}]+)*")
"""With its hyphens a word is one word: `t-shirt`."""

Loss = tuple[float, Word]
"""The loss (nats) of a word of a translation without the term in the source, and the place of the word."""


class Placed(NamedTuple):
    """A translation with terms in it, the characters where they stand, and the terms that found no place."""

    text: str
    spans: tuple[Word, ...] = ()
    without_place: tuple[TermMatch, ...] = ()


class _Row(NamedTuple):
    """A sentence in work: its source, the source without the term in question, its translation so far."""

    src: str
    erased: str
    placed: Placed
    term: TermMatch


class _Wish(NamedTuple):
    """A part of the source, its terms, and the terms that have no place in a free translation."""

    part: Segment
    terms: Sequence[TermMatch]
    missing: Sequence[TermMatch]


# -- translations with their terms ---------------------------------------------------------------------------------


def with_glossary(
    translator: SearchTranslator, glossary: Glossary | None, banned: BannedPhrases | None = None
) -> SearchTranslator:
    """The translator whose translations hold the terms of a glossary, and no banned phrase.

    A model that has learnt terms reads their targets beside them, and may inflect them.
    """
    if glossary is not None:
        is_learnt = has_learnt("terms", translator.tokenizers)
        plain = replace(glossary, inflections=None)
        glossary = inflected(plain, translator.languages or ("", "")) if is_learnt else plain
    other = translator.with_terms(
        glossary, banned, apply_glossary=None if glossary is None else translations_with_terms
    )
    other.annotate = str
    if other.glossary is not None and other.glossary.inflections is not None:
        other.annotate = functools.partial(annotated, other.glossary)
    return other


def terms_of(translator: SearchTranslator, text: str) -> list[tuple[int, int]]:
    """Where the terms of a translator's glossary stand in a text; none without one."""
    return [(term.start, term.end) for term in translator.glossary.find(text)] if translator.glossary else []


def translations_with_terms(
    translator: SearchTranslator,
    glossary: Glossary,
    parts: Sequence[Segment],
    translations: Sequence[list[Translation]],
) -> list[list[Translation]]:
    """The translations of each part with the terms of the glossary in the place of what the model wrote for them.

    Where a term has no place, as the model has left it out, or where the translation's beginning is given, it is
    searched for (`decoding/constrained.py`), and a warning says so. What a model that has learnt terms has written, in
    whatever form, stays.
    """
    results = [list(of_part) for of_part in translations]
    terms = [glossary.find(part.text) for part in parts]
    missing: dict[int, Sequence[TermMatch]] = {row: terms[row] for row, part in enumerate(parts) if part.prefix}
    # 1. Put each term into each translation, in the place of the words that stand for it.
    each = [(row, item) for row in range(len(parts)) if terms[row] and row not in missing for item in results[row]]
    sources = [parts[row].text for row, _ in each]
    written = [_written(glossary, item.text, terms[row]) for row, item in each]
    left, taken = [put for put, _ in written], [places for _, places in written]
    placed = place_terms(translator, sources, [item.text for _, item in each], left, taken)
    placed = [_without_written(glossary, put) for put in placed]
    rescored = _rescored(translator, sources, [item for _, item in each], placed)
    # 2. Terms may make two translations of a part equal: only the better one stays.
    unique: dict[int, dict[str, Translation]] = {}
    for (row, _), put, item in zip(each, placed, rescored, strict=True):
        missing.setdefault(row, put.without_place)  # of the best translation, which comes first
        unique.setdefault(row, {}).setdefault(item.text, item)
    for row, items in unique.items():
        results[row] = list(items.values())
    # 3. Search again for parts that lack a term, now with the term as a constraint.
    wishes = {row: _Wish(parts[row], terms[row], lost) for row, lost in missing.items() if lost}
    for row, forced in (_searched_for(translator, wishes) if wishes else {}).items():
        left_out = Warning(WarningKind.TERM_LEFT_OUT, _named(wishes[row].missing))
        results[row] = forced or [replace(item, warnings=(*item.warnings, left_out)) for item in results[row]]
    return results


def _written(
    glossary: Glossary, translation: str, terms: Sequence[TermMatch]
) -> tuple[Sequence[TermMatch], list[Word]]:
    """(the terms that a translation lacks, the places of the other terms and of annotation pieces). For a model
    that has not learnt terms, all terms count as missing."""
    taken = [Word(*match.span()) for match in PIECE.finditer(translation)]
    if glossary.inflections is None:
        return terms, taken
    left = []
    for term in terms:
        places = (
            one for one in glossary.written(term.target, translation) if not any(_overlap(one, it) for it in taken)
        )
        if place := next(places, None):
            taken.append(place)
        else:
            left.append(term)
    return left, taken


def _without_written(glossary: Glossary, placed: Placed) -> Placed:
    """A translation in which a term that stands there once is not missed where it could stand once more."""
    if glossary.inflections is None:
        return placed
    missing = (term for term in placed.without_place if not glossary.written(term.target, placed.text))
    return placed._replace(without_place=tuple(missing))


def _rescored(
    translator: SearchTranslator, sources: Sequence[str], items: Sequence[Translation], placed: Sequence[Placed]
) -> list[Translation]:
    """The translations with their new texts, and with the model's own scores where a text has changed."""
    results = [replace(item, text=put.text) for item, put in zip(items, placed, strict=True)]
    changed = [
        row
        for row, (item, put) in enumerate(zip(items, placed, strict=True))
        if put.text != item.text and _is_readable(translator, sources[row], put.text)
    ]
    scored = score(translator, [(sources[row], placed[row].text) for row in changed], as_read=True)
    for row, of_row in zip(changed, scored, strict=True):
        value = items[row].score if translator.decoding.mbr != "none" else of_row.score
        results[row] = replace(results[row], score=value, log_prob=of_row.log_prob)
    return results


def _searched_for(translator: SearchTranslator, wishes: dict[int, _Wish]) -> dict[int, list[Translation]]:
    """The translations of each part with those of its terms that the vocabulary can write, up to MAX_TERM_TOKENS of
    them, and with warnings; none where there is none."""
    settings = translator.decoding
    n_best = min(settings.n_best, settings.beam_size)
    searching = translator.searched_by(None).with_decoding(
        sampling=None, mbr="none", diversity=0.0, diversity_groups=1, n_best=n_best
    )
    encode = translator.tokenizers.tgt.encode_part
    writable = {row: _writable(translator, wish.terms) for row, wish in wishes.items()}
    parts = {
        row: wish.part._replace(terms=tuple(tuple(encode(term.target)) for term in writable[row]))
        for row, wish in wishes.items()
        if writable[row]
    }
    results: dict[int, list[Translation]] = {row: [] for row in wishes}
    for row, hypotheses in _hypotheses_where_any(searching, parts).items():
        part, _, missing = wishes[row]
        lost = [term for term in missing if term not in writable[row]]
        unsure = [] if part.prefix else [term for term in missing if term in writable[row]]
        named = {WarningKind.TERM_OUT_OF_PLACE: unsure, WarningKind.TERM_LEFT_OUT: lost}
        warnings = tuple(Warning(kind, _named(of_kind)) for kind, of_kind in named.items() if of_kind)
        results[row] = [replace(item, warnings=warnings) for item in searching.ranked(hypotheses, part)]
    return results


def _writable(translator: SearchTranslator, terms: Sequence[TermMatch]) -> list[TermMatch]:
    """The terms that the vocabulary can write, as many as may be searched for together."""
    tokenizer, writable, room = translator.tokenizers.tgt, [], MAX_TERM_TOKENS
    for term in terms:
        tokens = tokenizer.encode_part(term.target)
        if len(tokens) <= room and tokenizer.decode(tokens) == term.target:
            writable.append(term)
            room -= len(tokens)
    return writable


def _hypotheses_where_any(searching: SearchTranslator, parts: dict[int, Segment]) -> dict[int, list[Hypothesis]]:
    """The hypotheses of each part for which the search finds one. Where the search for all parts fails, each part is
    searched for alone."""
    try:
        return dict(zip(parts, searching.hypotheses_without_banned(list(parts.values())), strict=True))
    except DragomanError:
        each = (
            [_hypotheses_where_any(searching, {number: part}) for number, part in parts.items()]
            if len(parts) > 1
            else []
        )
        return {number: hypotheses for one in each for number, hypotheses in one.items()}


def _named(terms: Sequence[TermMatch]) -> str:
    return ", ".join(dict.fromkeys(repr(term.target) for term in terms))


def _is_readable(translator: SearchTranslator, src: str, tgt: str) -> bool:
    return token_ids(translator, AlignedPair(src, tgt, (), ())) is not None


# -- places --------------------------------------------------------------------------------------------------------


def place_terms(
    translator: SearchTranslator,
    sources: Sequence[str],
    translations: Sequence[str],
    terms: Sequence[Sequence[TermMatch]],
    taken: Sequence[Sequence[Word]] = (),
) -> list[Placed]:
    """Put the terms found in each (normalised) source into its translation, one after another.

    `taken`: places of each translation that no term may take.
    """
    places = taken or [()] * len(sources)
    placed = [Placed(text, tuple(spans)) for text, spans in zip(translations, places, strict=True)]
    placing = _Placing(translator)
    for number in range(max(map(len, terms), default=0)):
        chosen = [row for row in range(len(sources)) if number < len(terms[row])]
        rows = [
            _Row(sources[row], without(sources[row], terms[row][number]), placed[row], terms[row][number])
            for row in chosen
        ]
        for row, result in zip(chosen, placing.place(rows), strict=True):
            placed[row] = result
    return placed


def without(text: str, term: TermMatch) -> str:
    """A text without a term.

    >>> without("Ein Hund, ein Pferd.", TermMatch(4, 8, "dog"))
    'Ein, ein Pferd.'
    """
    before, after = text[: term.start].rstrip(" "), text[term.end :].lstrip(" ")
    apart = before and after and is_letter(after[0]) and text[term.end : term.end + 1] == " "
    return before + " " * bool(apart) + after


class _Placing:
    """The stages of placing one term in each of many sentences. The model reads all sentences together."""

    def __init__(self, translator: SearchTranslator) -> None:
        self.translator = translator
        self.has_spaces = bool(translator.join)
        self.language = translator.languages[1] if translator.languages else ""
        self.articles = articles(self.language)

    def place(self, rows: Sequence[_Row]) -> list[Placed]:
        results: list[Placed] = []
        replaced: list[int] = []
        for number, (row, losses) in enumerate(zip(rows, self._losses(rows), strict=True)):
            check()
            placed, term = row.placed, row.term
            word = self._rendering(row, losses)
            if not _WORD.search(row.erased):  # the source is nothing but the term
                word = Word(0, len(placed.text.rstrip(" .,!?。，！？")))
            if word is None or word.start == word.end:
                results.append(placed._replace(without_place=(*placed.without_place, term)))
            elif written := [one for one in _occurrences(placed.text, term.target) if _overlap(one, word)]:
                results.append(placed._replace(spans=(*placed.spans, written[0])))  # the model wrote it by itself
            else:
                is_short = word.end - word.start <= LONGEST_TOKEN
                word = self._part_of_token(row, word) if is_short and not self.has_spaces else word
                results.append(_replaced(placed, word, term.target, self.language))
                replaced.append(number)
        # The words beside a new term are made to fit it, in all rows at once.
        absorbed = self._absorb([rows[number]._replace(placed=results[number]) for number in replaced])
        for number, placed in zip(replaced, self._articles(absorbed), strict=True):
            results[number] = placed
        return results

    def _losses(self, rows: Sequence[_Row]) -> list[list[Loss]]:
        """For each row, the loss of each word outside of terms; no losses for a row that is too long to be read at
        once."""
        pairs = [AlignedPair(row.src, row.placed.text, (), self._free_words(row.placed)) for row in rows]
        ids = {n: tokens for n, pair in enumerate(pairs) if (tokens := token_ids(self.translator, pair)) is not None}
        encode, normalize = self.translator.tokenizers.src.encode, self.translator.normalize
        erased = {n: source for n in ids if (source := encode(normalize(rows[n].erased)))}
        losses = word_losses(
            self.translator, [pairs[n] for n in erased], [ids[n] for n in erased], [[erased[n]] for n in erased]
        )
        results: list[list[Loss]] = [[] for _ in rows]
        for n, of_row in zip(erased, losses, strict=True):
            results[n] = list(zip(of_row[:, 0].tolist(), pairs[n].tgt_words, strict=True))
        return results

    def _rendering(self, row: _Row, losses: Sequence[Loss]) -> Word | None:
        """The word of a translation that is there because of the term; None if there is none."""
        if not losses:
            return None
        words = [word for _, word in losses]
        values = np.maximum([loss for loss, _ in losses], 0.0)
        attention = self._attention(row, words)
        if values.max() < MIN_TERM_LOSS_NATS:
            return None if attention is None else self._attending(words, *attention)
        # Where a model has attention, the losses are weighted by it.
        best = int((values if attention is None else values * attention[0][:, attention[1]]).argmax())
        if self.has_spaces and self._is_short(words[best]):
            # A preposition may be as sure as its noun: then it is the noun beside it.
            end = words[best].end
            for loss, other in zip(values[best + 1 : best + 3], words[best + 1 : best + 3], strict=True):
                close = re.fullmatch(rf"[\w{MARKS} ]+", row.placed.text[end : other.start])
                if close and loss >= MIN_TERM_LOSS_NATS and not self._is_short(other):
                    return other
        return words[best]

    def _attending(self, words: Sequence[Word], weights: np.ndarray, term: int) -> Word | None:
        """The word that attends to the term most, where all words are sure without their source ("a middle-aged ...").

        It has to attend to nothing else more, or else to be a long word that attends to the term enough.
        """
        best = int(weights[:, term].argmax())
        if int(weights[best].argmax()) == term:
            return words[best]
        best = int((weights[:, term] * [not self._is_short(word) for word in words]).argmax())
        return words[best] if weights[best, term] >= MIN_TERM_ATTENTION else None

    def _attention(self, row: _Row, words: Sequence[Word]) -> tuple[np.ndarray, int] | None:
        """The links by attention of words of a translation, and the column of the term; None: there is no attention."""
        term = Word(row.term.start, row.term.end)
        src_words = sorted([term, *(word for word in _words_in(row.src) if not _overlap(word, term))])
        try:
            links = attention_links(self.translator, AlignedPair(row.src, row.placed.text, src_words, words))
        except DragomanError:
            return None
        return links, src_words.index(term)

    def _part_of_token(self, row: _Row, token: Word) -> Word:
        """The part of a token that is the term's, where words have no spaces and a token may be several words.

        It is the part whose letters are not worth their place once the term is there instead.
        """
        allowed = borders(row.placed.text)
        ends = [place for place in range(token.start, token.end + 1) if place in allowed]
        parts = [Word(start, end) for start in ends for end in ends if start < end]
        texts = [_replaced(row.placed, part, row.term.target, self.language).text for part in parts]
        values = self._log_probs([(row.erased, text) for text in texts])
        worth = [value - MIN_LETTER_NATS * (part.end - part.start) for value, part in zip(values, parts, strict=True)]
        return parts[worth.index(max(worth))]

    def _absorb(self, rows: Sequence[_Row]) -> list[_Row]:
        """The rows without the neighbours of their last term that were a part of what it has replaced."""
        rows, work = list(rows), list(range(len(rows)))
        for _ in range(MAX_NEIGHBOURS):
            losses = self._losses([rows[number] for number in work])
            # Translations with one neighbour less, and how much more probable each is without the term and with it.
            candidates = [
                (number, *candidate)
                for number, of_row in zip(work, losses, strict=True)
                for candidate in self._neighbours(rows[number], of_row)
            ]
            gains = self._gains([(rows[n].erased, rows[n].placed, placed) for n, _, placed in candidates])
            full_gains = self._gains([(rows[n].src, rows[n].placed, placed) for n, _, placed in candidates])
            best: dict[int, tuple[float, Placed]] = {}
            for (number, is_short, placed), gain, full in zip(candidates, gains, full_gains, strict=True):
                # An article has to be superfluous beside the whole source as well.
                if gain >= max(MIN_GAIN_NATS, best[number][0] if number in best else MIN_GAIN_NATS) and not (
                    is_short and full < 0
                ):
                    best[number] = gain, placed
            for number, (_, placed) in best.items():
                rows[number] = rows[number]._replace(placed=placed)
            work = list(best)  # a neighbour that goes makes the next word a neighbour
        return rows

    def _neighbours(self, row: _Row, losses: Sequence[Loss]) -> Iterator[tuple[bool, Placed]]:
        """(True for a short word, the translation without it) of each neighbour of a row's last term that may be a part
        of what the term has replaced."""
        text, term = row.placed.text, row.placed.spans[-1]
        for loss, word in losses:
            is_left = word.end <= term.start
            first, second = (word, term) if is_left else (term, word)
            is_short = self._is_short(word)
            is_beside = text[first.end : second.start].strip() in ("", "'", "’")
            if loss < MIN_NEIGHBOUR_LOSS_NATS or (is_left and is_short) or not is_beside:
                continue
            attention = self._attention(row, [word])
            share = 1.0 if attention is None else attention[0][0][attention[1]] / attention[0][0].max()
            if share >= (1.0 if is_left else MIN_ATTENTION_RATIO):
                kept = row.placed._replace(spans=row.placed.spans[:-1])
                yield (
                    is_short,
                    _replaced(kept, Word(first.start, second.end), text[term.start : term.end], self.language),
                )

    def _articles(self, rows: Sequence[_Row]) -> list[Placed]:
        """The rows with that form of the word before their last term that the model finds most probable (a, an)."""
        variants: list[tuple[int, Placed]] = []
        for number, row in enumerate(rows):
            match = re.search(rf"([\w{MARKS}]+) $", row.placed.text[: row.placed.spans[-1].start])
            if match is None:
                continue
            for form in next((group for group in self.articles if match[1].lower() in group), ()):
                form = form.capitalize() if match[1][0].isupper() else form
                variants.append((number, _with_text(row.placed, Word(*match.span(1)), form)))
        results = [row.placed for row in rows]
        best: dict[int, float] = {}
        values = self._log_probs([(rows[number].src, placed.text) for number, placed in variants])
        for (number, placed), value in zip(variants, values, strict=True):
            if value > best.get(number, -np.inf):
                best[number], results[number] = value, placed
        return results

    def _gains(self, changes: Sequence[tuple[str, Placed, Placed]]) -> list[float]:
        """The log probability that each change of a source's translation gains."""
        before = self._log_probs([(src, old.text) for src, old, _ in changes])
        after = self._log_probs([(src, new.text) for src, _, new in changes])
        return [new - old for old, new in zip(before, after, strict=True)]

    def _log_probs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Of each translation of a pair; -inf where it is too long to be read."""
        readable = [row for row, pair in enumerate(pairs) if _is_readable(self.translator, *pair)]
        losses = [-math.inf] * len(pairs)
        for row, scored in zip(readable, score(self.translator, [pairs[row] for row in readable]), strict=True):
            losses[row] = scored.log_prob
        return losses

    def _is_short(self, word: Word) -> bool:
        return word.end - word.start < (SHORT_WORD_LETTERS if self.has_spaces else 2)

    def _free_words(self, placed: Placed) -> list[Word]:
        """The words of a translation that are in no term."""
        words = words_of(self.translator, placed.text)
        return [word for word in words if not any(_overlap(word, span) for span in placed.spans)]


# -- texts ---------------------------------------------------------------------------------------------------------


def words_of(translator: SearchTranslator, text: str) -> list[Word]:
    """The words of a translation; its tokens where words have no spaces between them."""
    if translator.join:
        return _words_in(text)
    letters = [place for place, letter in enumerate(text) if not letter.isspace()]
    allowed, done = borders(text), 0
    spans: list[Word] = []
    for count in translator.tokenizers.tgt.letters(text):
        if count:
            start, end = letters[done], letters[done + count - 1] + 1
            if spans and start not in allowed:  # a token of nothing but signs of the letter before it
                spans[-1] = Word(spans[-1].start, end)
            elif text[start:end].strip(".,!?。，！？、；：“”\"'（）() "):
                spans.append(Word(start, end))
        done += count
    return spans


def _words_in(text: str) -> list[Word]:
    return [Word(*match.span()) for match in _WORD.finditer(text)]


def _replaced(placed: Placed, span: Word, target: str, language: str = "") -> Placed:
    """`target` in the place of `span`, with a capital where the sentence begins with one."""
    begins = not _WORD.search(placed.text[: span.start])
    if begins and placed.text[span.start].isupper() and target[0].islower():
        target = capitalized(target, language)
    changed = _with_text(placed, span, target)
    return changed._replace(spans=(*changed.spans, Word(span.start, span.start + len(target))))


def _with_text(placed: Placed, span: Word, new: str) -> Placed:
    """A translation with another text in the place of `span`; the places of terms after it move along."""
    moved = len(new) - (span.end - span.start)
    spans = tuple(Word(a + moved, b + moved) if a >= span.end else Word(a, b) for a, b in placed.spans)
    return placed._replace(text=placed.text[: span.start] + new + placed.text[span.end :], spans=spans)


def _occurrences(text: str, target: str) -> list[Word]:
    return words_like(target, text)


def _overlap(one: Word, other: Word) -> bool:
    return one.start < other.end and other.start < one.end
