"""Texts of a document translated: sentence by sentence, with codes around the same words and white space as it was."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dragoman.alignment.learnt_markup import Coded, around_terms
from dragoman.alignment.links import MAX_LINKS, AlignedPair, aligned_pair, proportional, with_terms_linked
from dragoman.alignment.markup import SentenceSpans, text_and_codes, transfer_markup, unprotected, with_blanks
from dragoman.alignment.term_placement import terms_of
from dragoman.alignment.word_links import word_links
from dragoman.formats.base import Code, Item, Unit, plain
from dragoman.inference.translation import NBest, Translation
from dragoman.languages.codes import written_without_spaces
from dragoman.pipeline.carried_codes import CarriedCodes, Plan, codes_of_sentences
from dragoman.pipeline.in_context import Asking, Before, Said, before_each, question, together, without_markup
from dragoman.pipeline.pipeline import Pipeline, by_context
from dragoman.pipeline.splitter import Joined, Piece, each_for_itself
from dragoman.quality.warnings import Warning, WarningKind, doubts
from dragoman.text.case import is_in_capitals, lower
from dragoman.text.segment import Span
from dragoman.text.words import Word, words

NOTHING_TO_TRANSLATE = "codes, numbers, placeholders"
"""The reason why a text is left as it is that has nothing to translate."""


class Doubt(NamedTuple):
    """A text of a document of whose translation there is something to be told: why it may be wrong, above all."""

    where: str
    text: str
    reasons: tuple[Warning, ...]


@dataclass
class Report:
    """Counts of what was done with a document's texts."""

    texts: int = 0
    translated: int = 0
    remembered: int = 0
    """Texts with a sentence that came from the memory."""
    matches: list[Doubt] = field(default_factory=list)
    """Texts that were translated with matches of the memory."""
    codes: int = 0
    wrapped: int = 0
    """Texts whose codes went around the whole, as nothing else was safe."""
    kept: Counter[str] = field(default_factory=Counter)
    """Texts that were left as they are, by the reason."""
    doubts: list[Doubt] = field(default_factory=list)


class _Made(NamedTuple):
    """The items of a text's translation, the warnings of its sentences, and whether any was translated."""

    items: list[Item]
    warnings: list[Warning]
    is_text: bool


class DocumentTranslator:
    """Translates the units of a document, in order. What a text's translation is does not depend on the others, but
    for those before it where the run has learnt to read them."""

    def __init__(self, pipeline: Pipeline, around: Callable[[NBest], NBest] = lambda stage: stage) -> None:
        """`around` the stages of each sentence: what remembers them."""
        self.pipeline = pipeline
        self.by_sentence = around(pipeline.in_context if pipeline.context[0] else pipeline.by_sentence)
        self.before: Before = []
        self.report = Report()

    def __call__(self, units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
        """The items of each unit's translation; None for a unit that is kept as it is."""
        self.report.texts += len(units)
        self.report.kept.update(unit.kept for unit in units if unit.kept)
        translated = iter(self._translated([unit for unit in units if not unit.kept]))
        return [None if unit.kept else next(translated) for unit in units]

    def _translated(self, units: Sequence[Unit]) -> list[tuple[Item, ...]]:
        """The items of each unit's translation: those between its breaks, each by themselves, and the breaks."""
        groups = [[list(group) for _, group in itertools.groupby(unit.items, _is_break)] for unit in units]
        texts = [group for of_unit in groups for group in of_unit if not _is_break(group[0])]
        made = iter(self._of_texts(texts))
        out: list[tuple[Item, ...]] = []
        for unit, of_unit in zip(units, groups, strict=True):
            items: list[Item] = []
            warnings: list[Warning] = []
            is_text = False
            for group in of_unit:
                if _is_break(group[0]):
                    items += group
                    continue
                translation = next(made)
                items += translation.items
                warnings += translation.warnings
                is_text = is_text or translation.is_text
            if is_text and unit.limit and (excess := unit.limit.exceeded(plain(items))):
                warnings.append(Warning(WarningKind.OVER_LIMIT, excess))
            self._count(unit, warnings, is_text)
            out.append(tuple(items))
        return out

    def _of_texts(self, texts: Sequence[Sequence[Item]]) -> "list[_Made]":
        """The translation of each text."""
        read = [text_and_codes(items) for items in texts]
        splitter = self.pipeline.splitter
        pieces = [splitter.pieces(text, [at for at, _ in codes]) for text, codes, _ in read]
        if self.pipeline.context[0]:
            pieces = list(map(each_for_itself, pieces))
            if self.pipeline.context[1]:
                works = [self._in_order(read, pieces, self.before)]
            else:
                before = before_each(self.before, pieces, self.pipeline.context[0])
                works = [
                    self._in_order([one], [own], first) for one, own, first in zip(read, pieces, before, strict=True)
                ]
            ordered = list(itertools.chain.from_iterable(together(self.by_sentence, works)))
            carried, translations = [row for row, _ in ordered], [of_text for _, of_text in ordered]
        else:
            carried = self._carried(read, pieces)
            translations = [self._of_sentences(pieces, carried)] * len(read)
        chosen = []  # of each text's sentences
        for of_text, row, by_key in zip(pieces, carried, translations, strict=True):
            every = by_key if row is None else {**by_key, **row.translations}
            best = {piece.key: every[piece.key] for piece in of_text if piece.is_text}
            chosen.append(by_context(self.pipeline.memory, of_text, best))
        with_codes = [row for row, (_, codes, _) in enumerate(read) if codes and carried[row] is None]
        pairs = (
            (piece.text, chosen[row][piece.key].text) for row in with_codes for piece in pieces[row] if piece.is_text
        )
        links = self._links(list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])))
        out = []
        spaced = not written_without_spaces(self.pipeline.splitter.languages[1])
        rows = zip(texts, read, pieces, carried, chosen, strict=True)
        for source, (text, codes, protected), of_text, row, own in rows:
            if not any(piece.is_text for piece in of_text):
                out.append(_Made(list(source), [], is_text=False))
                continue
            joined = splitter.joined(text, of_text, {src: own[src].text for src in own})
            warnings = [one for piece in of_text if piece.is_text for one in own[piece.key].warnings]
            if joined.text == text:  # its codes stay as well, those around a blank or a part of a word too
                out.append(_Made(list(source), warnings, is_text=True))
                continue
            items: list[Item] = [joined.text]
            if codes:
                items = row.items(codes, joined) if row else self._with_codes(text, codes, joined, links)
                items = self._checked(items, codes, joined.text)
            items = with_blanks(items, source) if codes and spaced else items
            out.append(_Made(unprotected(items, protected), warnings, is_text=True))
        return out

    def _of_sentences(
        self, pieces: Sequence[Sequence[Piece]], carried: "Sequence[CarriedCodes | None]"
    ) -> dict[str, Translation]:
        """The translation of each different sentence but for those with codes that the model has carried over."""
        sentences = list(
            dict.fromkeys(
                piece.text
                for of_text, row in zip(pieces, carried, strict=True)
                for piece in of_text
                if piece.is_text and (row is None or piece.text not in row.translations)
            )
        )
        made = self.by_sentence(sentences) if sentences else []
        return {text: items[0] for text, items in zip(sentences, made, strict=True)}

    def _in_order(
        self,
        read: Sequence[tuple[str, list[tuple[int, Code]], list[str]]],
        pieces: Sequence[Sequence[Piece]],
        document: Before,
    ) -> "Asking[list[tuple[CarriedCodes | None, dict[str, Translation]]]]":
        """As `_carried` and `_of_sentences`, for each text: sentence by sentence. Each sentence is read with the
        sentences before it in the document, and is then added to them."""
        results = []
        plans = self._plans(read, pieces) if self.pipeline.carries_codes else [None] * len(read)
        for plan, of_text in zip(plans, pieces, strict=True):
            row, before = None, [*document]
            if plan is not None:
                translations = yield from self._behind(before, of_text, plan.coded)
                row = None if translations is None else plan.restore_codes(translations)
            if row is None:
                before = [*document]
                translations = yield from self._behind(before, of_text, {})
            assert translations is not None, "a sentence without codes loses none"
            document[:] = before[-self.pipeline.context[0] :]
            results.append((row, translations))
        return results

    def _behind(
        self, before: Before, pieces: Sequence[Piece], with_codes: Mapping[str, Coded]
    ) -> Asking[dict[str, Translation] | None]:
        """The translations of a text's sentences, read behind earlier sentences; None where a sentence has lost its
        codes."""
        translations: dict[str, Translation] = {}
        for piece in pieces:
            if not piece.is_text:
                continue
            coded = with_codes.get(piece.text)
            text = piece.text if coded is None else coded.text
            [made, *_] = yield question(before[-self.pipeline.context[0] :], text)
            translations[piece.key if coded is None else text] = made
            items = [made.text] if coded is None else coded.items(made.text)
            if items is None:
                return None
            tgt = "".join(item for item in items if isinstance(item, str))
            before.append(Said(without_markup(piece.text), without_markup(tgt)))
        return translations

    def _carried(
        self, read: Sequence[tuple[str, list[tuple[int, Code]], list[str]]], pieces: Sequence[Sequence[Piece]]
    ) -> "list[CarriedCodes | None]":
        """The sentences of each text whose codes the model has carried over; None for a text where it has not."""
        if not self.pipeline.carries_codes:
            return [None] * len(read)
        plans = self._plans(read, pieces)
        texts = list(dict.fromkeys(one.text for plan in plans if plan for one in plan.coded.values()))
        best = {text: items[0] for text, items in zip(texts, self.by_sentence(texts) if texts else (), strict=True)}
        return [None if plan is None else plan.restore_codes(best) for plan in plans]

    def _plans(
        self, read: Sequence[tuple[str, list[tuple[int, Code]], list[str]]], pieces: Sequence[Sequence[Piece]]
    ) -> "list[Plan | None]":
        """The sentences of each text that go through the model with their codes."""
        memory = self.pipeline.memory
        checks = (lambda text: memory is not None and text in memory), functools.partial(terms_of, self.pipeline.own)
        return [
            codes_of_sentences(codes, of_text, *checks) if codes else None
            for (_, codes, _), of_text in zip(read, pieces, strict=True)
        ]

    def _count(self, unit: Unit, warnings: Sequence[Warning], is_text: bool) -> None:
        if is_text:
            self.report.translated += 1
        else:
            self.report.kept[NOTHING_TO_TRANSLATE] += 1
        self.report.codes += sum(isinstance(item, Code) and item.kind != "protected" for item in unit.items)
        self.report.remembered += any(one.kind == WarningKind.FROM_MEMORY for one in warnings)
        matches = dict.fromkeys(one for one in warnings if one.kind == WarningKind.LIKE_MEMORY)
        for reasons, listed in ((matches, self.report.matches), (doubts(warnings), self.report.doubts)):
            if reasons:
                text = "".join(item if isinstance(item, str) else " " * _is_break(item) for item in unit.items)
                listed.append(Doubt(unit.where, text, tuple(reasons)))

    def _with_codes(
        self, text: str, codes: Sequence[tuple[int, Code]], joined: Joined, links: dict[tuple[str, str], np.ndarray]
    ) -> list[Item]:
        """The translation with its source's codes. The links of a text are those of its sentences, side by side."""
        src_words: list[Word] = []
        tgt_words: list[Word] = []
        blocks: list[np.ndarray] = []
        at = 0
        for piece, place, translation in joined.places:
            # What stands between sentences (a dash, a tag) is the same on both sides.
            gap = text[at : piece.span.start]
            for word in words(gap):
                src_words.append(Word(at + word.start, at + word.end))
                tgt_words.append(Word(place - len(gap) + word.start, place - len(gap) + word.end))
                blocks.append(np.eye(1))
            at = piece.span.end
            own = aligned_pair(piece.text, translation)
            src_words += [Word(word.start + piece.span.start, word.end + piece.span.start) for word in own.src_words]
            tgt_words += [Word(word.start + place, word.end + place) for word in own.tgt_words]
            same = piece.text == translation
            blocks.append(np.eye(len(own.src_words)) if same else links[piece.text, translation])
        if len(tgt_words) * len(src_words) > MAX_LINKS:
            return self._around(codes, joined.text)
        matrix = np.zeros((len(tgt_words), len(src_words)))
        row = column = 0
        for block in blocks:
            matrix[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        terms = [
            (piece.span.start + start, piece.span.start + end)
            for piece, *_ in joined.places
            for start, end in terms_of(self.pipeline.own, piece.text)
        ]
        parted = [(start, end) for start, end in terms if sum(start < at < end for at, _ in codes) == 1]
        codes = around_terms(codes, parted)
        pieces = [
            SentenceSpans(piece.span, Span(at, at + len(translation))) for piece, at, translation in joined.places
        ]
        return transfer_markup(AlignedPair(text, joined.text, src_words, tgt_words), codes, matrix, pieces)

    def _checked(self, items: list[Item], codes: Sequence[tuple[int, Code]], text: str) -> list[Item]:
        """The items of a translation where each code is there once; else all codes around it."""
        is_whole = Counter(item for item in items if isinstance(item, Code)) == Counter(code for _, code in codes)
        return items if is_whole else self._around(codes, text)

    def _around(self, codes: Sequence[tuple[int, Code]], text: str) -> list[Item]:
        """All codes around a text: pairs in their order, what stands alone before it.

        The half of a pair whose other half stands behind a break is outside of the pairs.
        """
        self.report.wrapped += 1
        opened = {code.pair for _, code in codes if code.kind == "open"}
        closing = {code.pair: code for _, code in codes if code.kind == "close"}
        ended = [code for pair, code in closing.items() if pair not in opened]
        begun = [code for _, code in codes if code.kind == "open" and code.pair not in closing]
        opening = [code for _, code in codes if code.kind != "close" and (code.kind != "open" or code.pair in closing)]
        closed = [closing[code.pair] for code in reversed(opening) if code.kind == "open"]
        return [*ended, *opening, text, *closed, *begun]

    def _links(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], np.ndarray]:
        """The links of sentence pairs by their texts; proportional ones where a sentence is too long to be asked."""
        if not pairs:
            return {}
        pairings, languages = [], self.pipeline.splitter.languages
        for src, tgt in pairs:
            small = lower(src, languages[0]), lower(tgt, languages[1])
            was_small = is_in_capitals(src, languages[0]) and [*map(len, small)] == [len(src), len(tgt)]
            texts = small if was_small else (src, tgt)  # as it was read
            pairings.append(AlignedPair(*texts, *aligned_pair(src, tgt)[2:]))
        matrices = {}
        glossary = self.pipeline.own.glossary
        for pair, pairing, links in zip(pairs, pairings, word_links(self.pipeline.own, pairings), strict=True):
            links = links if links.any() else proportional(*links.shape)
            matrices[pair] = with_terms_linked(pairing._replace(src=pair[0]), links, glossary)
        return matrices


def _is_break(item: Item) -> bool:
    return isinstance(item, Code) and item.kind == "break"
