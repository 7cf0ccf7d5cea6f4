"""Terms of a glossary in the place of the words that a model wrote for them.

A model is asked which words of its translation are there because of a source term: it reads the translation once with
the source, and once with the source without the term. The words that become improbable are the term's (prediction
difference: Li et al. 2019, "On the word alignment from neural machine translation"). That needs no attention, and
finds the place more surely than attention does (docs/log.md). The target term takes the place of that word, and of its
neighbours that make sense only beside it ("officer" of "police officer"). The rest of the translation stays.
"""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dragoman.alignment.attention import links, owners
from dragoman.errors import DragomanError
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Part, Translation
from dragoman.languages.codes import articles
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.glossary import Found, Glossary
from dragoman.text.words import Word

RENDERED = 0.8
"""A word is a term's if it loses so much without it (nats); if no word does, the translation has left the term out."""
LEFTOVER, GAIN = 1.5, 4.5
"""A neighbour goes as well if it loses so much without the term, and the sentence gains so much without it (nats)."""
SHORT = 4
"""A word of fewer letters may be an article or a preposition, which stands by a term's word and is none."""
PER_LETTER = 2.0
"""A letter of a script without spaces goes if it costs more than this without the term (nats)."""
ATTENDING = 0.3
"""The least attention to a term of a word that is sure without it, if it attends to another word more."""
ATTENDED = 0.4
"""It attends to the term, in a model with attention: on the left more than to any other word, on the right this much of
what it attends to any other."""
NEIGHBOURS = 3
"""Neighbours that may go, at most."""

_WORD = re.compile(r"\w+(?:-\w+)*")
"""With its hyphens a word is one word: `t-shirt`."""


class Placed(NamedTuple):
    """A translation with terms in it, the characters where they stand, and the terms that found no place."""

    text: str
    spans: tuple[Word, ...] = ()
    without_place: tuple[Found, ...] = ()


class _Row(NamedTuple):
    """A sentence in work: its source, the source without the term in question, its translation so far."""

    src: str
    erased: str
    placed: Placed
    term: Found


def bound(
    translator: SearchTranslator, glossary: Glossary | None, banned: BannedPhrases | None = None
) -> SearchTranslator:
    """The translator whose translations hold the terms of a glossary, and no banned phrase."""
    return translator.with_terms(glossary, banned, place_terms=None if glossary is None else with_terms)


def with_terms(
    translator: SearchTranslator, glossary: Glossary, parts: Sequence[Part], translations: Sequence[list[Translation]]
) -> list[list[Translation]]:
    """The translations of each part with the terms of the glossary in the place of what the model wrote for them.

    Where a term has no place, as the model has left it out, or where the translation's beginning is given, it is
    searched for (`decoding/constrained.py`), and a warning says so.
    """
    results = [list(of_part) for of_part in translations]
    terms = [glossary.find(part.text) for part in parts]
    rows = [row for row in range(len(parts)) if terms[row] and not parts[row].prefix]
    each = [(row, item) for row in rows for item in results[row]]
    sources, texts = [parts[row].text for row, _ in each], [item.text for _, item in each]
    placed = place_terms(translator, sources, texts, [terms[row] for row, _ in each])
    rescored = iter(_rescored(translator, sources, [item for _, item in each], placed))
    missing: dict[int, Sequence[Found]] = {row: terms[row] for row, part in enumerate(parts) if part.prefix}
    of_best = {row: found for (row, _), found in reversed(list(zip(each, placed, strict=True)))}
    missing |= {row: found.without_place for row, found in of_best.items()}
    for row in rows:
        unique: dict[str, Translation] = {}
        for item in itertools.islice(rescored, len(results[row])):
            unique.setdefault(item.text, item)
        results[row] = list(unique.values())
    for row, lost in missing.items():
        if lost:
            results[row] = _searched_for(translator, parts[row], terms[row], lost) or [
                replace(item, warnings=(*item.warnings, Warning(WarningKind.TERM_LEFT_OUT, _named(lost))))
                for item in results[row]
            ]
    return results


def _rescored(
    translator: SearchTranslator, sources: Sequence[str], items: Sequence[Translation], placed: Sequence[Placed]
) -> list[Translation]:
    """The translations with their new texts, and with the model's own scores where a text has changed."""
    longest, encode = translator.model.max_target_length or math.inf, translator.tokenizers.tgt.encode_part
    results = [replace(item, text=found.text) for item, found in zip(items, placed, strict=True)]
    changed = [
        row
        for row, (item, found) in enumerate(zip(items, placed, strict=True))
        if found.text != item.text and 0 < len(encode(found.text)) < longest
    ]
    scored = score(translator, [(sources[row], placed[row].text) for row in changed]) if changed else []
    for row, of_row in zip(changed, scored, strict=True):
        own = items[row].score if translator.decoding.mbr != "none" else of_row.score
        results[row] = replace(results[row], score=own, log_prob=of_row.log_prob)
    return results


def _searched_for(
    translator: SearchTranslator, part: Part, terms: Sequence[Found], missing: Sequence[Found]
) -> list[Translation]:
    """The translations of a search for the terms that the vocabulary can write, with warnings; none if there is none.

    `missing`: those of them that have no place in a free translation.
    """
    encode, decode = translator.tokenizers.tgt.encode_part, translator.tokenizers.tgt.decode
    writable = [term for term in terms if decode(encode(term.target)) == term.target]
    if not writable:
        return []
    settings = translator.decoding
    n_best = min(settings.n_best, settings.beam_size)
    searching = translator.searched_by(None).with_decoding(sampling=None, mbr="none", diversity=0.0, n_best=n_best)
    try:
        [found] = searching.free_hypotheses([part._replace(terms=tuple(tuple(encode(t.target)) for t in writable))])
    except DragomanError:
        return []
    lost = [term for term in missing if term not in writable]
    unsure = [] if part.prefix else [term for term in missing if term in writable]
    named = {WarningKind.TERM_OUT_OF_PLACE: unsure, WarningKind.TERM_LEFT_OUT: lost}
    warnings = tuple(Warning(kind, _named(of_kind)) for kind, of_kind in named.items() if of_kind)
    return [replace(item, warnings=warnings) for item in searching.ranked(found)]


def _named(terms: Sequence[Found]) -> str:
    return ", ".join(dict.fromkeys(repr(term.target) for term in terms))


def place_terms(
    translator: SearchTranslator,
    sources: Sequence[str],
    translations: Sequence[str],
    terms: Sequence[Sequence[Found]],
    taken: Sequence[Sequence[Word]] = (),
) -> list[Placed]:
    """Put the terms found in each (normalised) source into its translation, one after another.

    `taken`: places of each translation that no term may take.
    """
    places = taken or [()] * len(sources)
    placed = [Placed(text, tuple(spans)) for text, spans in zip(translations, places, strict=True)]
    for number in range(max(map(len, terms), default=0)):
        chosen = [row for row in range(len(sources)) if number < len(terms[row])]
        rows = [
            _Row(sources[row], without(sources[row], terms[row][number]), placed[row], terms[row][number])
            for row in chosen
        ]
        for row, result in zip(chosen, _place(translator, rows), strict=True):
            placed[row] = result
    return placed


def without(text: str, term: Found) -> str:
    """A text without a term.

    >>> without("Ein Hund, ein Pferd.", Found(4, 8, "dog"))
    'Ein, ein Pferd.'
    """
    before, after = text[: term.start].rstrip(" "), text[term.end :].lstrip(" ")
    apart = before and after and after[0].isalnum() and text[term.end : term.end + 1] == " "
    return before + " " * bool(apart) + after


def _place(translator: SearchTranslator, rows: Sequence[_Row]) -> list[Placed]:
    """One term of each row."""
    results: list[Placed] = []
    replaced: list[int] = []
    for number, (row, losses) in enumerate(zip(rows, _losses(translator, rows), strict=True)):
        placed, term = row.placed, row.term
        word = _place_of(translator, row, losses or [])
        if not _WORD.search(row.erased):  # the source is nothing but the term
            word = Word(0, len(placed.text.rstrip(" .,!?。，！？")))
        if word is None or word.start == word.end:
            results.append(placed._replace(without_place=(*placed.without_place, term)))
        elif said := [one for one in _said(placed.text, term.target) if _overlap(one, word)]:
            results.append(placed._replace(spans=(*placed.spans, said[0])))  # the model wrote it by itself
        else:
            results.append(_replaced(placed, word if translator.join else _inside(translator, row, word), term.target))
            replaced.append(number)
    rows = _absorbed(translator, [rows[number]._replace(placed=results[number]) for number in replaced])
    for number, placed in zip(replaced, _with_articles(translator, rows), strict=True):
        results[number] = placed
    return results


def _place_of(translator: SearchTranslator, row: _Row, losses: Sequence[tuple[float, Word]]) -> Word | None:
    """The word of a translation that is there because of the term; None if there is none.

    Where a model has attention, that has a say, too. Some words are sure even without their source ("a middle-aged
    ..."): then it is the word that attends to the term more than any other does, if it attends to nothing else more.
    A short word may be a preposition that is as sure as its noun: then the noun beside it is taken.
    """
    if not losses:
        return None
    words = [word for _, word in losses]
    values = np.maximum([loss for loss, _ in losses], 0.0)
    attention = _attention(translator, row, words)
    if values.max() < RENDERED:
        if attention is None:
            return None
        weights, term = attention
        best = int(weights[:, term].argmax())
        if int(weights[best].argmax()) == term:
            return words[best]
        best = int((weights[:, term] * [not _is_short(translator, word) for word in words]).argmax())
        return words[best] if weights[best, term] >= ATTENDING else None
    weighed = values if attention is None else values * attention[0][:, attention[1]]
    best = int(weighed.argmax())
    if translator.join and _is_short(translator, words[best]):
        text, end = row.placed.text, words[best].end
        for loss, other in zip(values[best + 1 : best + 3], words[best + 1 : best + 3], strict=True):
            close = re.fullmatch(r"[\w ]+", text[end : other.start])
            if close and loss >= RENDERED and not _is_short(translator, other):
                return other
    return words[best]


def _inside(translator: SearchTranslator, row: _Row, token: Word) -> Word:
    """The part of a token that is the term's, where words have no spaces and a token may be several words.

    It is the part whose letters are not worth their place once the term is there instead.
    """
    places = range(token.start, token.end + 1)
    parts = [Word(start, end) for start in places for end in places if start < end]
    texts = [_replaced(row.placed, part, row.term.target).text for part in parts]
    values = _log_probs(translator, [(row.erased, text) for text in texts])
    worth = [value - PER_LETTER * (part.end - part.start) for value, part in zip(values, parts, strict=True)]
    return parts[worth.index(max(worth))]


def _attention(translator: SearchTranslator, row: _Row, words: Sequence[Word]) -> tuple[np.ndarray, int] | None:
    """The attention of words of a translation to those of the source, and the column of the term among these."""
    term = Word(row.term.start, row.term.end)
    src_words = sorted([term, *(word for word in _words_in(row.src) if not _overlap(word, term))])
    try:
        return links(translator, row.src, row.placed.text, src_words, words), src_words.index(term)
    except DragomanError:
        return None


def _is_short(translator: SearchTranslator, word: Word) -> bool:
    return word.end - word.start < (SHORT if translator.join else 2)


def _close(text: str, one: Word, other: Word) -> bool:
    """True if nothing but a space or an apostrophe stands between two words, the left one first."""
    return text[one.end : other.start].strip() in ("", "'", "’")


def _absorbed(translator: SearchTranslator, rows: Sequence[_Row]) -> list[_Row]:
    """The rows without the neighbours of their last term that were a part of what it has replaced."""
    rows, work = list(rows), list(range(len(rows)))
    for _ in range(NEIGHBOURS):
        losses = _losses(translator, [rows[number] for number in work])
        candidates = [
            (number, *candidate)
            for number, of_row in zip(work, losses, strict=True)
            for candidate in _neighbours(translator, rows[number], of_row or [])
        ]
        erased = _gains(translator, [(rows[n].erased, rows[n].placed, placed) for n, _, placed in candidates])
        full = _gains(translator, [(rows[n].src, rows[n].placed, placed) for n, _, placed in candidates])
        best: dict[int, tuple[float, Placed]] = {}
        for (number, short, placed), gain, of_source in zip(candidates, erased, full, strict=True):
            if gain >= max(GAIN, best[number][0] if number in best else GAIN) and not (short and of_source < 0):
                best[number] = gain, placed
        for number, (_, placed) in best.items():
            rows[number] = rows[number]._replace(placed=placed)
        work = list(best)
    return rows


def _neighbours(
    translator: SearchTranslator, row: _Row, losses: Sequence[tuple[float, Word]]
) -> Iterator[tuple[bool, Placed]]:
    """(True for a short word, the translation without it) of each neighbour of a row's last term that may be a part of
    what the term has replaced."""
    text, term = row.placed.text, row.placed.spans[-1]
    for loss, word in losses:
        left = word.end <= term.start
        first, second = (word, term) if left else (term, word)
        short = _is_short(translator, word)
        if loss < LEFTOVER or (left and short) or not _close(text, first, second):
            continue
        attention = _attention(translator, row, [word])
        share = 1.0 if attention is None else attention[0][0][attention[1]] / attention[0][0].max()
        if share < (1.0 if left else ATTENDED):
            continue
        whole = Word(first.start, second.end)
        kept = row.placed._replace(spans=row.placed.spans[:-1])
        yield short, _replaced(kept, whole, text[term.start : term.end])


def _with_articles(translator: SearchTranslator, rows: Sequence[_Row]) -> list[Placed]:
    """The rows with that form of the word before their last term that the model finds most probable (a, an)."""
    groups = articles(translator.languages[1]) if translator.languages else []
    variants: list[tuple[int, Placed]] = []
    for number, row in enumerate(rows):
        text, term = row.placed.text, row.placed.spans[-1]
        match = re.search(r"(\w+) $", text[: term.start])
        for form in next((group for group in groups if match and match[1].lower() in group), ()):
            assert match is not None
            form = form.capitalize() if match[1][0].isupper() else form
            start, end = match.span(1)
            moved = len(form) - (end - start)
            spans = tuple(Word(a + moved, b + moved) if a >= end else Word(a, b) for a, b in row.placed.spans)
            variants.append((number, row.placed._replace(text=text[:start] + form + text[end:], spans=spans)))
    results = [row.placed for row in rows]
    best: dict[int, float] = {}
    values = _log_probs(translator, [(rows[number].src, placed.text) for number, placed in variants])
    for (number, placed), value in zip(variants, values, strict=True):
        if value > best.get(number, -np.inf):
            best[number], results[number] = value, placed
    return results


def _losses(translator: SearchTranslator, rows: Sequence[_Row]) -> list[list[tuple[float, Word]] | None]:
    """(what it loses without the term, its place) of each word of each row's translation that is in no term.

    None for a row that the model cannot read at once.
    """
    able = [number for number, row in enumerate(rows) if _readable(translator, row)]
    pairs = [(rows[n].src, rows[n].placed.text) for n in able] + [(rows[n].erased, rows[n].placed.text) for n in able]
    scored = score(translator, pairs) if pairs else []
    results: list[list[tuple[float, Word]] | None] = [None] * len(rows)
    for place, number in enumerate(able):
        whole, erased = scored[place].tokens, scored[place + len(able)].tokens
        loss = np.array([one[1] - other[1] for one, other in zip(whole, erased, strict=True)])[:-1]  # not of </s>
        placed = rows[number].placed
        words = [word for word in words_of(translator, placed.text) if not any(_overlap(word, s) for s in placed.spans)]
        shares = _shares(translator, placed.text, words)
        results[number] = [(float(value), word) for value, word in zip(loss @ shares, words, strict=True)]
    return results


def _gains(translator: SearchTranslator, changes: Sequence[tuple[str, Placed, Placed]]) -> list[float]:
    """The log probability that each change of a source's translation gains."""
    before = _log_probs(translator, [(src, old.text) for src, old, _ in changes])
    after = _log_probs(translator, [(src, new.text) for src, _, new in changes])
    return [new - old for old, new in zip(before, after, strict=True)]


def _log_probs(translator: SearchTranslator, pairs: Sequence[tuple[str, str]]) -> list[float]:
    return [scored.log_prob for scored in score(translator, pairs)] if pairs else []


def _readable(translator: SearchTranslator, row: _Row) -> bool:
    tokenizers, longest = translator.tokenizers, translator.model.max_target_length
    num_tokens = len(tokenizers.tgt.encode(row.placed.text))
    return bool(
        0 < len(tokenizers.src.encode(row.src)) <= translator.max_src_tokens
        and tokenizers.src.encode(row.erased)
        and num_tokens > 0
        and (longest is None or num_tokens < longest)
    )


def words_of(translator: SearchTranslator, text: str) -> list[Word]:
    """The words of a translation; its tokens where words have no spaces between them."""
    if translator.join:
        return _words_in(text)
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    spans, done = [], 0
    for count in translator.tokenizers.tgt.letters(text):
        if count and text[places[done] : places[done + count - 1] + 1].strip(".,!?。，！？、；：“”\"'（）() "):
            spans.append(Word(places[done], places[done + count - 1] + 1))
        done += count
    return spans


def _words_in(text: str) -> list[Word]:
    return [Word(*match.span()) for match in _WORD.finditer(text)]


def _shares(translator: SearchTranslator, text: str, words: Sequence[Word]) -> np.ndarray:
    return owners(translator.tokenizers.tgt, text, words)


def _replaced(placed: Placed, span: Word, target: str) -> Placed:
    """`target` in the place of `span`, with a capital where the sentence begins with one."""
    text = placed.text
    begins = not _WORD.search(text[: span.start])
    if begins and text[span.start].isupper() and target[0].islower():
        target = target[0].upper() + target[1:]
    new, moved = Word(span.start, span.start + len(target)), len(target) - (span.end - span.start)
    others = tuple(Word(a + moved, b + moved) if a >= span.end else Word(a, b) for a, b in placed.spans)
    return placed._replace(text=text[: span.start] + target + text[span.end :], spans=(*others, new))


def _said(text: str, target: str) -> list[Word]:
    return [Word(*match.span()) for match in re.finditer(rf"(?<!\w){re.escape(target)}(?!\w)", text, re.IGNORECASE)]


def _overlap(one: Word, other: Word) -> bool:
    return one.start < other.end and other.start < one.end
