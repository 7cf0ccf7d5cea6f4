"""Translation for people who cannot read the target language: placeholders survive, and what looks wrong is said.

It stands over a `SearchTranslator` and works with any model: it looks at texts, asks again, and chooses.
"""

from collections.abc import Sequence
from dataclasses import replace

from dragoman.alignment.attention import attention_links_if_any
from dragoman.alignment.learnt_markup import around_terms, coded, has_markup, items_of_line, without_tags
from dragoman.alignment.links import AlignedPair, Links, proportional, with_terms_linked
from dragoman.alignment.markup import text_and_codes, unprotected, with_blanks
from dragoman.alignment.term_placement import place_terms, terms_of
from dragoman.cancellation import check
from dragoman.errors import DragomanError
from dragoman.formats.base import Item, joined
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.pipeline.splitter import Splitter
from dragoman.quality.faults import source_warnings, warnings_of
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.special_tokens import UNK_ID
from dragoman.text.annotations import has_learnt, plain_text
from dragoman.text.glossary import TermMatch
from dragoman.text.message_format import is_message, parse
from dragoman.text.placeholders import (
    Removed,
    has_same_spans,
    in_place_of,
    keeps_part_numbers,
    lost_or_added,
    mask_spans,
    restore_spans,
    spans,
    without_spans,
)
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.words import Word, places, words

FALLBACK = {"beam_size": 5, "no_repeat_ngram": 3}
"""Settings of the second search of a sentence, if all translations of the first look wrong."""

NESTED = Warning(WarningKind.NOT_TRANSLATED, "a message whose arms cannot be told apart, or are too many")
_OF_TERMS = (WarningKind.TERM_OUT_OF_PLACE, WarningKind.TERM_LEFT_OUT)


class GuardedTranslator:
    """A translator whose translations keep the placeholders of their sources, or are watched by guards, or both.

    `keep`: spans that must survive (`text/placeholders.py`) do, as they are and as many. `guard`: of the `beam_size`
    best translations the first with the fewest warnings (`quality/faults.py`) is taken; where all have some, the
    sentence is searched again with no three tokens in a row twice. Every translation carries the warnings it is left
    with.
    """

    def __init__(
        self,
        translator: SearchTranslator,
        *,
        keep: bool = True,
        guard: bool = True,
        warn: bool = True,
        fallback: SearchTranslator | None = None,
        splitter: Splitter | None = None,
    ) -> None:
        """`warn`: translations carry their warnings, as with a guard they always do. `fallback`: what searches again,
        where the translator is one that cannot do everything (another engine). `splitter`: cuts the arms of messages
        into sentences."""
        self.translator, self.keep, self.guard, self.warn = translator, keep, guard, warn or guard
        decoding = translator.decoding
        self._wide = translator.with_decoding(n_best=decoding.num_candidates) if guard else translator
        wider = {**FALLBACK, "beam_size": max(FALLBACK["beam_size"], decoding.beam_size)}
        self.splitter = splitter or Splitter(sentences=False)
        self.has_learnt_codes = has_learnt("tags", translator.tokenizers)
        self._again = (fallback or translator).with_decoding(**wider, n_best=1, sampling=None, mbr="none")

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """As `SearchTranslator.n_best`."""
        results = self._kept(sentences)
        if not self.warn:
            return results
        return [self._with_source_warnings(src, item) for src, item in zip(sentences, results, strict=True)]

    def _kept(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The translations with the placeholders of their sources, those of messages with arms arm by arm."""
        if not self.keep:
            return self._watched(sentences)
        messages = {row: message for row, src in enumerate(sentences) if (message := parse(src)) is not None}
        nested = [row for row, src in enumerate(sentences) if row not in messages and is_message(src)]
        whole = [row for row in range(len(sentences)) if row not in messages and row not in nested]
        arms = {text: self.splitter.pieces(text) for message in messages.values() for text in message.sentences()}
        arm_texts = dict.fromkeys(piece.text for pieces in arms.values() for piece in pieces if piece.is_text)
        translations_of_all = iter(self._with_spans([*(sentences[row] for row in whole), *arm_texts]))
        results = {row: next(translations_of_all) for row in whole}
        results |= {row: [Translation(sentences[row], 0.0, 0.0, (NESTED,))] for row in nested}
        made = {text: next(translations_of_all)[0] for text in arm_texts}
        arm_translations = {text: item.text for text, item in made.items()}
        for row, message in messages.items():
            texts = [*message.sentences()]
            best = [made[piece.text] for text in texts for piece in arms[text] if piece.is_text]
            warnings = tuple(dict.fromkeys(warning for item in best for warning in item.warnings))
            translations = [self.splitter.joined(text, arms[text], arm_translations).text for text in texts]
            message = message.in_language(self.splitter.languages[1])
            text = sentences[row] if translations == texts else message.with_texts(iter(translations))
            score, log_prob = sum(item.score for item in best), sum(item.log_prob for item in best)
            count = max(1, len(best))
            results[row] = [Translation(text, score / count, log_prob / count, warnings)]
        return [results[row] for row in range(len(sentences))]

    def _with_spans(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The translations of sentences without arms, with the placeholders of their sources."""
        if not self.has_learnt_codes:
            return self._with_stand_ins(sentences, self._watched(sentences))
        carried = self._carried([src for src in sentences if has_markup(src)])
        others = [src for src in sentences if src not in carried]
        watched = dict(zip(others, self._watched(others), strict=True))
        lost = [src for src in others if not self._all_survive(src, watched[src]) and not has_markup(src)]
        carried |= self._carried(lost)
        left = [src for src in others if src not in carried]
        carried |= zip(left, self._with_stand_ins(left, [watched[src] for src in left]), strict=True)
        return [carried[src] for src in sentences]

    def _carried(self, sentences: Sequence[str]) -> dict[str, list[Translation]]:
        """The translations of those sentences whose codes the model itself has carried over, as pieces."""
        sources = {src: items_of_line(src) for src in sentences}
        read = {src: text_and_codes(items) for src, items in sources.items()}
        apart = {src: around_terms(codes, terms_of(self.translator, text)) for src, (text, codes, _) in read.items()}
        pieces = {src: one for src, codes in apart.items() if codes and (one := coded(read[src][0], codes))}
        every = self.translator.with_decoding(n_best=self.translator.decoding.num_candidates)
        candidates = every.n_best([one.text for one in pieces.values()]) if pieces else []
        results: dict[str, list[Translation]] = {}
        for (src, one), translations in zip(pieces.items(), candidates, strict=True):
            whole = [
                replace(item, text=self._spaced(items, sources[src], read[src][2]))
                for item in translations
                if (items := one.items(item.text)) is not None
            ]
            marked = [self._with_warnings(src, item) for item in whole]
            marked = sorted(marked, key=lambda item: len(item.warnings)) if self.guard else marked
            if marked:
                results[src] = _unique(marked)[: self.translator.decoding.n_best]
        return results

    def _spaced(self, items: Sequence[Item], source: Sequence[Item], protected: Sequence[str]) -> str:
        """The text of a translation's items, with blanks beside its codes as in the source."""
        return joined(unprotected(with_blanks(items, source) if self.translator.join else items, protected))

    def _all_survive(self, src: str, items: Sequence[Translation]) -> bool:
        return all(self._survive(src, item.text) for item in items)

    def _with_stand_ins(self, sentences: Sequence[str], watched: list[list[Translation]]) -> list[list[Translation]]:
        """The translations of sentences. A translation without its placeholders is replaced by one of the sentence with
        words in their place."""
        lost = [row for row, items in enumerate(watched) if not self._all_survive(sentences[row], items)]
        stood_in = [mask_spans(sentences[row], codes=True) for row in lost]
        bare = [without_spans(text) for text, _ in stood_in]
        translated = self._watched([text for text, _ in bare])
        for row, (_, pairs), (text, removed), items in zip(lost, stood_in, bare, translated, strict=True):
            watched[row] = _unique([self._restored(sentences[row], text, removed, pairs, item) for item in items])
        return watched

    def _survive(self, src: str, translation: str) -> bool:
        """True if a translation has the placeholders of its source, its codes where no term is one, and the terms that
        tags part."""
        if spans(src) and not has_same_spans(src, translation):
            return False
        glossary = self.translator.glossary
        if glossary and (bare := without_tags(src)) != src:
            here = {term.target for term in glossary.find(src)}
            parted = {term.target for term in glossary.find(bare)} - here
            if not all(glossary.written(target, without_tags(translation)) for target in parted):
                return False
        return bool(self.translator.glossary and self._terms(src, translation)) or keeps_part_numbers(src, translation)

    def _restored(
        self, src: str, text: str, removed: Sequence[Removed], pairs: Sequence[tuple[str, str]], item: Translation
    ) -> Translation:
        """A translation of `src`, made of the translation of `text`, in which words stand for some spans and other
        spans are missing."""
        check()
        translation = without_spans(item.text)[0]  # those that the model made up
        normalized = self.translator.normalize(text)
        missing = [word for word, _ in pairs if not _stands_once(word, translation)]
        if terms := [TermMatch(*place, word) for word in missing for place in places(word, normalized)[:1]]:
            taken = [Word(*span) for span in self._terms(text, translation)]
            [placed] = place_terms(self.translator, [normalized], [translation], [terms], [taken])
            translation = placed.text
        put = [(word, span) for word, span in pairs if _stands_once(word, translation)]
        left = [(word, span) for word, span in pairs if (word, span) not in put]
        for word, span in left:  # it has no place of its own: it goes beside its neighbours, like a tag
            text, item_removed = _without_word(text, word, span)
            removed = [*removed, item_removed]
            for start, end in reversed(places(word, translation)):
                translation = translation[:start] + translation[end:]
            translation = translation.strip()
        removed = sorted(removed, key=lambda one: one.offset)
        src_words = words(text)
        where = self._links(AlignedPair(text, translation, src_words, words(translation)))
        stand_ins = [place for word, _ in put for place in places(word, translation)]
        in_place = self._terms(text, translation)
        kept = restore_spans(translation, removed, src_words, where, self.translator.join, stand_ins, in_place)
        for word, span in put:
            kept = in_place_of(word, span, kept)
        notes = [one for one in item.warnings if one.is_note or one.kind in _OF_TERMS]
        names = lost_or_added(src, kept)
        lost = (Warning(WarningKind.PLACEHOLDERS_LOST, " ".join(names)),) if names else ()
        again = self._with_warnings(src, replace(item, text=kept, warnings=()))
        return replace(again, warnings=(*again.warnings, *lost, *notes, Warning(WarningKind.PLACEHOLDERS_PUT_BACK)))

    def _watched(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translations with their warnings, sorted by the number of warnings."""
        watched = [
            [self._with_warnings(src, self._without_strays(src, item)) for item in of_sentence]
            for src, of_sentence in zip(sentences, self._wide.n_best(sentences), strict=True)
        ]
        if not self.guard:
            return watched
        poor: list[int] = []
        for row, of_sentence in enumerate(watched):
            best = min(of_sentence, key=lambda item: len(item.warnings))
            if best is not of_sentence[0]:
                watched[row] = [
                    replace(best, warnings=(*best.warnings, Warning(WarningKind.NOT_THE_FIRST))),
                    *of_sentence,
                ]
            elif best.warnings:
                poor.append(row)
        for row, again in zip(poor, self._searched_again([sentences[row] for row in poor]), strict=True):
            other = [self._with_warnings(sentences[row], item) for item in again[:1]]
            if other and len(other[0].warnings) < len(watched[row][0].warnings):
                changed = replace(other[0], warnings=(*other[0].warnings, Warning(WarningKind.SEARCHED_AGAIN)))
                watched[row] = [changed, *watched[row]]
        return [_unique(of_sentence)[: self.translator.decoding.n_best] for of_sentence in watched]

    def _searched_again(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The translations of a search without repetitions; none for a sentence for which it finds nothing."""
        try:
            return self._again.n_best(sentences)
        except DragomanError:  # of one sentence: it takes no other with it
            return [self._searched_again([src])[0] for src in sentences] if len(sentences) > 1 else [[]]

    def _without_strays(self, src: str, item: Translation) -> Translation:
        """A translation without pieces of codes where its source has none."""
        stray = self.has_learnt_codes and "⟦" in item.text and "⟦" not in src
        return replace(item, text=plain_text(item.text)) if stray else item

    def _with_warnings(self, src: str, item: Translation) -> Translation:
        check()
        if not self.warn:
            return item
        faults = warnings_of(plain_text(src), plain_text(item.text), self.translator.languages)
        return replace(item, warnings=(*item.warnings, *faults))

    def _with_source_warnings(self, src: str, translations: Sequence[Translation]) -> list[Translation]:
        """The translations with the reasons why the model may not understand their source, of a message those of its
        arms."""
        if (message := parse(src)) is not None:
            src = " ".join(dict.fromkeys(message.sentences()))
        check()
        src = plain_text(src)
        reasons = source_warnings(src, self.translator.languages)
        if unknown := unknown_words(self.translator.tokenizers.src, self.translator.normalize(without_spans(src)[0])):
            reasons.append(Warning(WarningKind.UNKNOWN_WORDS, " ".join(unknown)))
        return [replace(item, warnings=(*item.warnings, *reasons)) for item in translations]

    def _links(self, pair: AlignedPair) -> Links:
        """Where words went; in the order they came for a model that has no attention to tell it. Terms go to terms."""
        links = attention_links_if_any(self.translator, pair)
        return with_terms_linked(pair, links if links.any() else proportional(*links.shape), self.translator.glossary)

    def _terms(self, src: str, tgt: str) -> list[tuple[int, int]]:
        """Where the glossary's terms stand in a translation."""
        glossary = self.translator.glossary
        return glossary.target_places(self.translator.normalize(src), tgt) if glossary else []


def _stands_once(word: str, text: str) -> bool:
    return len(places(word, text)) == 1


def _without_word(text: str, word: str, span: str) -> tuple[str, Removed]:
    """A text without a word, and the span that it stood for as a thing taken out there."""
    start, end = places(word, text)[0]
    before, after = text[:start], text[end:]
    left = before.rstrip() if before[-1:].isspace() and not after[:1].isalnum() else before
    return left + after, Removed(span, len(left.rstrip()), before[-1:], after[:1])


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words of a text that a tokenizer has no token for, each once."""
    return [word for word in dict.fromkeys(text.split()) if UNK_ID in tokenizer.encode(word)]


def _unique(translations: Sequence[Translation]) -> list[Translation]:
    """Each text once, where it comes first."""
    by_text: dict[str, Translation] = {}
    for item in translations:
        by_text.setdefault(item.text, item)
    return list(by_text.values())
