"""The one way from a text to its translation, with the same stages and the same defaults at every door.

    a text
      is converted between two kinds of Chinese                 chinese.py
      is cut into sentences, or lines, and put together again   splitter.py
      each of which
        the memory may have already                             memory.py
        or has a match of, which the model reads                learnt_matches.py
        is read as it looks                                     invisible.py
        the glossary may have as a term                         pipeline.py
        has the spaces and quotation marks of the language      pipeline.py
        is told how sure the model is of it                     confidence.py
        is read in lower case where it is in capitals           capitals.py
        keeps its placeholders, and is watched by guards        guarded.py
        is searched for, cut where it is too long, with the
        glossary's terms put in their places, and reranked      inference/search_translator.py
        behind the sentences before it, if the run learnt that  in_context.py

The command (lines, files, bulk), the server's APIs and `dragoman.load(run)` ask a `Pipeline`. Validation, evaluation
and exports measure the model by the plain search alone.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.alignment.markup import SentenceSpans
from dragoman.alignment.term_placement import with_glossary
from dragoman.errors import DragomanError, Error
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import NBest, Translation
from dragoman.pipeline.capitals import in_lower_case
from dragoman.pipeline.chinese import Conversion
from dragoman.pipeline.confidence import Calibration, with_confidence
from dragoman.pipeline.guarded import GuardedTranslator
from dragoman.pipeline.in_context import Asking, Before, Said, answers, before_each, in_order, together, without_markup
from dragoman.pipeline.invisible import as_it_looks
from dragoman.pipeline.learnt_matches import LearntMatches
from dragoman.pipeline.memory import KNOWN, Memory, from_memory
from dragoman.pipeline.splitter import Joined, Piece, Splitter, are_numbers, are_single_sentences, each_for_itself
from dragoman.text.annotations import has_learnt
from dragoman.text.glossary import Glossary
from dragoman.text.segment import Span
from dragoman.text.typography import typeset

BY_CONTEXT = "one of several translations, by the sentences beside it"
"""The note on such a sentence."""

CONTEXTS = ("auto", "previous", "none")
"""Choices for what a model reads before a sentence: its text or document up to it, the texts before, nothing."""
FEW_TOKENS = 1_000
"""A vocabulary of fewer tokens may be of letters or bytes, and knows no word."""
LINES_LOOKED_AT = 2_000
"""Lines of the training corpus that show what a run was trained on."""


class Translated(NamedTuple):
    """The translations of a text, best first, and the sentences of the best."""

    items: list[Translation]
    sentences: tuple[SentenceSpans, ...] = ()

    @property
    def best(self) -> Translation:
        return self.items[0]

    @property
    def alternatives(self) -> list[str]:
        return [item.text for item in self.items[1:]]


@dataclass(frozen=True)
class Pipeline:
    """All stages of a translation. A text's translation depends on no other texts but the texts of its document."""

    search: SearchTranslator
    own: SearchTranslator
    """The same without another engine, which cannot do everything."""
    keep: bool = True
    """Placeholders, tags, URLs, addresses and emoji survive as they are; plain text is not changed by it."""
    guard: bool = False
    """Translations that look wrong are avoided."""
    warn: bool = True
    """Translations carry the warnings of what looks wrong with them."""
    sentences: bool = True
    """Texts are translated sentence by sentence."""
    numbers: bool = False
    """Texts without letters are translated, too."""
    typography: bool = False
    """Translations have the no-break spaces and the quotation marks of their language (`text/typography.py`)."""
    memory: Memory | None = None
    run: Path | None = None
    """The folder of the model, which may have word links (`alignment/learnt_memory.py`)."""
    calibration: Calibration | None = None
    min_confidence: float = 0.0
    """Translations with less confidence carry a warning."""
    context: tuple[int, int] = (0, 0)
    """The numbers of sentences before each that the model reads, and of their translations that it begins with."""
    chinese: Conversion | None = None
    """Between the script that is asked for and the model's own."""
    count: Callable[[int], None] = lambda characters: None
    """Is told the characters of each translation before it is put together; it may refuse by raising."""

    @property
    def languages(self) -> tuple[str, str]:
        return self.own.languages or ("", "") if self.chinese is None else self.chinese.languages

    @property
    def n_best(self) -> int:
        """Translations of each text, at most."""
        return self.own.decoding.n_best

    def with_search(self, change: Callable[[SearchTranslator], SearchTranslator]) -> "Pipeline":
        """This pipeline over another search."""
        own = change(self.own)
        return replace(self, own=own, search=own if self.search is self.own else change(self.search))

    def between(self, src_lang: str, tgt_lang: str) -> "Pipeline":
        """This pipeline between two other languages that the model knows."""
        return self.with_search(lambda search: search.between(src_lang, tgt_lang))

    def reading(self, context: str) -> "Pipeline":
        """This pipeline, which reads what stands before a sentence, or nothing. Raises DragomanError for another choice
        and, with lines in order, for a run that has learnt to read none."""
        if context not in CONTEXTS:
            raise Error.WRONG_OPTION(f"`context` {context}: {', '.join(CONTEXTS)}")
        if context == "previous" and not self.context[0]:
            raise Error.UNSUPPORTED(
                "`context` previous: this run has learnt to read no sentences before", "leave it out"
            )
        return replace(self, context=(0, 0)) if context == "none" else self

    def with_decoding(self, **changes: Any) -> "Pipeline":
        """This pipeline with some fields of its search's `DecodingConfig` changed."""
        return self.with_search(lambda search: search.with_decoding(**changes)) if changes else self

    def with_terms(self, glossary: Glossary | None, banned: BannedPhrases | None = None) -> "Pipeline":
        """This pipeline with terms that must be so translated, and phrases that no translation may hold."""
        return self.with_search(lambda search: with_glossary(search, glossary, banned))

    @functools.cached_property
    def by_sentence(self) -> NBest:
        """The stages that a sentence goes through."""
        search, own = self.search, self.own
        learnt = LearntMatches.of(self.memory, own, self.run)
        if learnt is not None:
            search, own = learnt.read_by(search), learnt.read_by(own)
        elif self.memory is not None and own.reranker is None and own.decoding.mbr == "none":
            every = own.decoding.num_candidates  # the memory chooses among them
            search, own = search.with_decoding(n_best=every), own.with_decoding(n_best=every)
        warn = self.warn or self.guard or self.memory is not None
        guarded = GuardedTranslator(
            search, keep=self.keep, guard=self.guard, warn=warn, fallback=own, splitter=self.splitter
        )
        stage: NBest = functools.partial(in_lower_case, guarded.n_best, languages=self.splitter.languages)
        if self.calibration is not None:
            stage = functools.partial(with_confidence, stage, self.own, self.calibration, self.min_confidence)
        if self.typography:
            stage = functools.partial(as_typeset, stage, self.languages[1])
        if own.glossary is not None:
            stage = functools.partial(as_whole_terms, stage, own.glossary)
        stage = functools.partial(as_it_looks, stage, own.tokenizers.src)
        if self.chinese is not None:
            stage = functools.partial(self.chinese.converted, stage)
        if self.memory is None:
            return stage
        with_matches = None if learnt is None else learnt.with_matches
        return functools.partial(from_memory, stage, self.memory, self.n_best, with_matches=with_matches)

    @functools.cached_property
    def carries_codes(self) -> bool:
        """True where the model has learnt to carry codes over as pieces."""
        return has_learnt("tags", self.own.tokenizers)

    @functools.cached_property
    def splitter(self) -> Splitter:
        """The rules by which texts are cut."""
        memory = self.memory

        def is_word(letters: str) -> bool:
            tokenizer = self.own.tokenizers.src
            forms = (letters, letters.lower(), letters.capitalize())
            return tokenizer.vocab_size < FEW_TOKENS or any(len(tokenizer.encode(form)) == 1 for form in forms)

        return Splitter(
            self.languages, self.sentences, self.numbers, None if memory is None else memory.__contains__,
            None if memory is None else memory.breaks_inside, is_word, self.count,
        )  # fmt: skip

    @functools.cached_property
    def in_context(self) -> NBest:
        """The stages that a sentence goes through, for sentences with those before them (`in_context.question`)."""
        return functools.partial(answers, self)

    def texts(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        documents: Sequence[Before] | None = None,
    ) -> list[Translated]:
        """The translations of each text, with the white space around it and between its sentences.

        `prefixes`: how each translation begins; a text with one is searched for as a whole, and goes through no stage.
        `documents`: the sentences before each text, which its own are added to; texts with the same list are read in
        order. Without, each text is a document. Runs that have not learnt to read context do not read it.
        """
        begin = prefixes if prefixes is not None else [""] * len(texts)
        before: Sequence[Before] = documents if documents is not None else [[] for _ in texts]
        before = [one for one, prefix in zip(before, begin, strict=True) if not prefix.strip()]
        free = [text for text, prefix in zip(texts, begin, strict=True) if not prefix.strip()]
        begun = [pair for pair in zip(texts, begin, strict=True) if pair[1].strip()]
        pieces = [self.splitter.pieces(text) for text in free]
        if self.context[0]:
            pieces = list(map(each_for_itself, pieces))
        translations = self._found(pieces, before)
        of_free = (self._translated(*row) for row in zip(free, pieces, translations, strict=True))
        held = iter(self.own.n_best(*zip(*begun, strict=True)) if begun else ())
        return [Translated(next(held), ()) if prefix.strip() else next(of_free) for prefix in begin]

    def before(self, text: str) -> Before:
        """The last sentences of a text that stands before others, as far as the model reads them; with their
        translations, where it begins with these."""
        count, begun = self.context
        sentences = [piece.text for piece in self.splitter.pieces(text) if piece.is_text] if count else []
        if not begun:
            return [Said(without_markup(sentence), "") for sentence in sentences[-count:]]
        document = Before()
        self.texts(sentences[-count:], documents=[document] * len(sentences[-count:]))
        return document

    def _found(
        self, pieces: Sequence[Sequence[Piece]], documents: Sequence[Before]
    ) -> Sequence[Mapping[str, list[Translation]]]:
        """The translations of the sentences of each text, by their keys."""
        if not self.context[0]:
            translations = self.translations(piece.text for of_text in pieces for piece in of_text if piece.is_text)
            return [translations] * len(pieces)
        rows: dict[int, list[int]] = {}
        for row, document in enumerate(documents):
            rows.setdefault(id(document), []).append(row)
        if not self.context[1]:
            documents = [*documents]
            for own in rows.values():
                before = before_each(documents[own[0]], [pieces[row] for row in own], self.context[0])
                for row, one in zip(own, before, strict=True):
                    documents[row] = one
            rows = {row: [row] for row in range(len(pieces))}

        def of_document(rows: Sequence[int]) -> Asking[list[dict[str, list[Translation]]]]:
            results = []
            for row in rows:
                results.append((yield from in_order(documents[row], pieces[row], self.context[0])))
            return results

        made = together(self.in_context, [of_document(of_rows) for of_rows in rows.values()])
        of_row = zip(itertools.chain.from_iterable(rows.values()), itertools.chain.from_iterable(made), strict=True)
        return [of_text for _, of_text in sorted(of_row, key=lambda one: one[0])]

    def translations(self, sentences: Iterable[str]) -> dict[str, list[Translation]]:
        """The translations of each different sentence."""
        texts = list(dict.fromkeys(sentences))
        return dict(zip(texts, self.by_sentence(texts), strict=True)) if texts else {}

    def _translated(self, text: str, pieces: Sequence[Piece], by_key: Mapping[str, list[Translation]]) -> Translated:
        """The translations of a text from the translations of its pieces; an alternative differs in one sentence."""
        best = by_context(self.memory, pieces, {piece.key: by_key[piece.key][0] for piece in pieces if piece.is_text})
        joined = self._joined(text, pieces, best)
        items = {joined.text: self._translation(joined, best, moved=len(pieces) > 1)}
        others = [(src, item) for src in best for item in by_key[src][1:]]
        if len(best) > 1:
            times = Counter(piece.key for piece in pieces)
            others.sort(key=lambda one: times[one[0]] * (best[one[0]].score - one[1].score))
        for src, item in others:
            if len(items) >= self.n_best:
                break
            changed = {**best, src: item}
            other = self._joined(text, pieces, changed)
            items.setdefault(other.text, self._translation(other, changed, moved=len(pieces) > 1))
        places = tuple(SentenceSpans(piece.span, Span(at, at + len(tgt))) for piece, at, tgt in joined.places)
        return Translated(list(items.values()), places)

    def _joined(self, text: str, pieces: Sequence[Piece], chosen: Mapping[str, Translation]) -> Joined:
        return self.splitter.joined(text, pieces, {src: item.text for src, item in chosen.items()})

    @staticmethod
    def _translation(joined: Joined, chosen: Mapping[str, Translation], *, moved: bool) -> Translation:
        """The translation of a text of several pieces; `moved`: its warnings say which piece they are about."""
        items = [(piece, at, chosen[piece.key]) for piece, at, _ in joined.places if piece.is_text]
        warnings = itertools.chain.from_iterable(
            (replace(one, place=(piece.span.start, piece.span.end)) if moved else one for one in item.warnings)
            for piece, _, item in items
        )
        words = tuple((at + begin, at + end, sure) for _, at, item in items for begin, end, sure in item.words)
        confidence = sum(sure for _, _, sure in words) / len(words) if words else None
        score, log_prob = (sum(getattr(item, name) for _, _, item in items) for name in ("score", "log_prob"))
        return Translation(
            joined.text, score / max(1, len(items)), log_prob, tuple(dict.fromkeys(warnings)), confidence, words
        )


def by_context(memory: Memory | None, pieces: Sequence[Piece], best: dict[str, Translation]) -> dict[str, Translation]:
    """The translations of a text's sentences. Where the memory has several for a sentence, the one that stands there
    beside the same sentences is taken."""
    if memory is None:
        return best
    texts = ["", *(piece.text for piece in pieces), ""]
    chosen: dict[str, Translation] = {}
    for piece, before, after in zip(pieces, texts, texts[2:], strict=False):
        if piece.key in best and best[piece.key].warnings == (KNOWN,) and piece.key not in chosen:
            tgt = memory.in_context(piece.text, before, after)
            if tgt is not None:
                noted = (replace(KNOWN, detail=BY_CONTEXT),)
                chosen[piece.key] = replace(best[piece.key], text=tgt, warnings=noted)
    return best | chosen


def as_typeset(n_best: NBest, language: str, sentences: Sequence[str]) -> list[list[Translation]]:
    """The translations of each sentence with the typography of their language."""
    return [[replace(one, text=typeset(one.text, language)) for one in items] for items in n_best(sentences)]


def as_whole_terms(n_best: NBest, glossary: Glossary, sentences: Sequence[str]) -> list[list[Translation]]:
    """The glossary's target for a text that is exactly a term; for other texts the translations of `n_best`."""

    def as_term(text: str) -> str | None:
        matches = glossary.find(text)[:1]
        return next((term.target for term in matches if term[:2] == (0, len(text)) and not term.is_inflected), None)

    terms = [as_term(text.strip()) for text in sentences]
    made = iter(n_best([text for text, term in zip(sentences, terms, strict=True) if term is None]))
    return [next(made) if term is None else [Translation(term, 0.0, 0.0)] for term in terms]


class LearntFrom(NamedTuple):
    """Facts of the text that a run was trained on, which decide how text for it is cut and read."""

    sentences: bool
    """Most of its lines are single sentences."""
    numbers: bool
    """Its lines have mostly no letter."""
    context: tuple[int, int] = (0, 0)
    """Sentences before each one, of the source and of the target, that it has learnt to read."""


def learnt_from(run: Path) -> LearntFrom:
    """The facts that the first lines of a run's training corpus show."""
    context = (0, 0)
    try:
        corpus = corpus_settings(run)
        context = (corpus.context.src, corpus.context.tgt)
        lines = [pair.src for pair in itertools.islice(corpus.train.pairs(), LINES_LOOKED_AT)]
    except DragomanError:  # it is not here any more; most corpora are of single sentences
        return LearntFrom(True, False, context)
    return LearntFrom(are_single_sentences(lines, corpus.src_lang), are_numbers(lines), context)
