"""Translators that are served: runs by their languages, routes between languages, texts and documents translated."""

import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from dragoman.alignment.links import AlignedPair, strong
from dragoman.alignment.word_links import word_links
from dragoman.cancellation import check, turn
from dragoman.errors import DragomanError, Error
from dragoman.formats import tagged
from dragoman.formats.base import NO_TAGS, Format, Item, Options, Tags, Unit
from dragoman.formats.document import FORMATS, Document, TranslateUnits
from dragoman.inference.next_words import next_words
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import NBest, Translation
from dragoman.languages.codes import language_of, names_of
from dragoman.languages.identification import source_language
from dragoman.pipeline import confidence
from dragoman.pipeline.document import DocumentTranslator, Report
from dragoman.pipeline.in_context import Before
from dragoman.pipeline.memory import Match, Memory
from dragoman.pipeline.options import TranslateOptions, build_pipeline
from dragoman.pipeline.pipeline import Pipeline, Translated
from dragoman.progress import say
from dragoman.quality.faults import source_warnings, warnings_of
from dragoman.runs import checkpoint
from dragoman.serve.document_process import DocumentProcess
from dragoman.serve.scheduler import BatchScheduler, RequestHandle
from dragoman.text.glossary import Glossary
from dragoman.text.placeholders import span_pattern
from dragoman.text.words import words

Kind = Literal["text", "html", "xml"]
Languages = tuple[str, str]

AUTO = "auto"
"""In the place of a source language: the text shows which it is."""
WARM_UP = 64
"""Sentences that a model translates before it is served: its speed is measured, its kernels are made."""
TOKENS_PER_CHARACTER = 0.3
"""Source tokens of a character, before any text was translated."""
MEASURED_CHARACTERS = 10_000
"""So many characters of earlier texts count as much as one character of a new text."""
MIN_DENSITY = 0.05
"""Source tokens of a character, at least: texts that corrections answer need no search."""
MAX_LINKED_WORDS = 1000
"""Words of a sentence, at most, whose links are shown: a table of 5,000 by 5,000 words takes 200 MB."""
MIN_SHOWN_LINK_SHARE = 0.25
"""The least share of a word's links that a link must have to be shown."""


@dataclass(frozen=True)
class TranslateParams:
    """Wishes of a request beside the translation."""

    kind: Kind = "text"
    alternatives: int = 0
    """Further translations of each text."""
    glossary: Glossary | None = None
    prefix: str = ""
    """The beginning of the translation."""
    memory: bool = True
    """Corrections are used."""
    author: str | None = None
    """The author whose own corrections are used, before everybody's."""
    split: bool | None = None
    """Texts are translated sentence by sentence; None: where the run was trained on single sentences."""
    beam_size: int | None = None
    warnings: bool = False
    """Translations carry what looks wrong with them."""
    tags: Tags = NO_TAGS
    """The meaning of tags in a text with markup."""
    context: str = ""
    """Text before each of the texts, for a run that has learnt to read it."""


DEFAULT_OPTIONS = Options()
DEFAULT_PARAMS = TranslateParams()


def as_it_is(text: str) -> Translated:
    """A text that no model has a score for."""
    return Translated([Translation(text, 0.0, 0.0)])


MAX_GROWTH_RATIO, MAX_GROWTH_CHARS = 20, 10_000
"""Translations of a request may have so many times as many characters as its texts, and so many more: a glossary or a
correction can make much of little."""
MAX_LANGUAGES = 24
"""The most languages of a model that is served in all of its directions."""


@dataclass(frozen=True)
class ServedRun:
    """A run that is served."""

    path: Path
    languages: Languages
    pipeline: Pipeline
    digest: str
    """Of its weights."""
    calibration: confidence.Calibration | None = None
    """Of its confidence, where `dragoman calibrate` has made one."""

    @property
    def own(self) -> SearchTranslator:
        """The run's translator without another engine and without stages."""
        return self.pipeline.own

    @classmethod
    def load(cls, options: TranslateOptions) -> "ServedRun":
        """Read a run. Raises DragomanError for a run that cannot be served."""
        path, pipeline = options.run, build_pipeline(options)
        if not all(pipeline.languages):
            raise Error.UNSUPPORTED("says no languages: it cannot be served", file=path)
        chosen = checkpoint.select(path)
        calibration = None
        if (path / confidence.FILE).exists():
            try:
                calibration = confidence.load(path, chosen.name)
            except DragomanError as error:
                say(f"served without confidence: {error}")
        return cls(path, pipeline.languages, pipeline, checkpoint.inference_digest(chosen), calibration)

    def directions(self) -> "list[ServedRun]":
        """This run in every direction that it knows, of a model of several languages; with more than MAX_LANGUAGES in
        its own direction alone."""
        known = self.own.tokenizers.languages
        if known is None or len(known.tags) < 2 or len(known.tags) > MAX_LANGUAGES or not known.names_target:
            return [self]
        return [
            replace(self, languages=pair, pipeline=self.pipeline.between(*pair))
            for pair in itertools.permutations(known.tags, 2)
        ]


class Service:
    """All that is served, and the scheduler under it."""

    def __init__(
        self, scheduler: BatchScheduler, memory: Callable[[Languages, str | None], Memory | None] = lambda *_: None
    ) -> None:
        """`memory`: the corrections between two languages that an author's texts are translated with."""
        self.scheduler, self.memory = scheduler, memory
        self.runs: dict[Languages, ServedRun] = {}
        self.on_warnings: Callable[[int], None] = lambda count: None
        self._densities: dict[Languages, float] = {}
        """Source tokens of a character, on all legs of a way."""
        self._reading = threading.Semaphore(max(1, scheduler.num_threads))

    def put(self, run: ServedRun) -> None:
        """Serve a run, in the place of another one of the same languages. It is tried first: one that fails changes
        nothing, and requests under way keep the model that they began with.

        Raises DragomanError for a run that does not translate.
        """
        self._warm_up(run)
        self.runs = {**self.runs, **{one.languages: one for one in run.directions()}}

    def _warm_up(self, run: ServedRun) -> None:
        """Translate pieces of the vocabulary: what they mean does not matter, that there is an answer does."""
        tokenizer = run.own.tokenizers.src
        ids = list(itertools.islice(itertools.cycle(range(4, tokenizer.vocab_size)), 12 * WARM_UP))
        lines = [tokenizer.decode(ids[12 * row : 12 * row + 12]) for row in range(WARM_UP)]
        handle = RequestHandle(self.scheduler)
        translator = handle.on(run.pipeline.search)
        translator.translate(lines[:1])
        began = time.perf_counter()
        translations = translator.translate(lines)
        self._on_leg(handle, run, lines[:1], DEFAULT_PARAMS)  # tables of languages and the like are read
        for codes in (False, True):
            span_pattern(codes=codes)  # compiled now, not while the first client waits
        self.scheduler.speed.guess(len(ids), time.perf_counter() - began)
        if not any(text.strip() for text in translations):
            raise Error.DIVERGED("translates everything as nothing: it is not served", file=run.path)

    def languages(self) -> dict[str, list[str]]:
        """The known languages, each with the languages that it can be translated to; some can only be targets."""
        codes = sorted({code for pair in self.runs for code in pair})
        return {src: [tgt for tgt in codes if tgt != src and self._legs(src, tgt)] for src in codes}

    def route(self, src: str, tgt: str) -> list[ServedRun]:
        """The runs from one language to another: one, or two through a language that both know.

        Raises DragomanError where there is no way.
        """
        legs = self._legs(src, tgt)
        if not legs:
            raise Error.NO_SUCH_LANGUAGE(f"{src} to {tgt}: no model for it")
        return legs

    def _legs(self, src: str, tgt: str) -> list[ServedRun]:
        runs = self.runs
        if (src, tgt) in runs:
            return [runs[src, tgt]]
        middles = [middle for first, middle in runs if first == src and (middle, tgt) in runs]
        middle = min(middles, key=lambda code: (language_of(code) != "en", code), default=None)
        return [] if middle is None else [runs[src, middle], runs[middle, tgt]]

    def tokens(self, src: str, tgt: str, texts: Iterable[str], params: TranslateParams = DEFAULT_PARAMS) -> int:
        """A guess of the source tokens of texts, on all legs of the way, from what earlier ones had; more where the
        search is wider than the run's own.

        Raises DragomanError where there is no way.
        """
        if src == AUTO:
            src = next((code for code in self.languages() if self._legs(code, tgt)), src)
        legs = self.route(src, tgt)
        own = legs[-1].own.decoding.beam_size
        width = max(params.beam_size or own, 1 + params.alternatives) / own
        characters = sum(len(text) + 1 for text in texts)
        return 1 + int(characters * self._density(src, tgt, legs) * max(1.0, width))

    def _density(self, src: str, tgt: str, legs: Sequence[ServedRun]) -> float:
        return self._densities.get((src, tgt), TOKENS_PER_CHARACTER * len(legs))

    def _measure(self, src: str, tgt: str, legs: Sequence[ServedRun], characters: int, tokens: int) -> None:
        """Take notice of how many tokens texts had."""
        known = self._density(src, tgt, legs)
        density = (known * MEASURED_CHARACTERS + tokens) / (MEASURED_CHARACTERS + characters)
        self._densities[src, tgt] = max(MIN_DENSITY, density)

    def translate(
        self, handle: RequestHandle, src: str, tgt: str, texts: Sequence[str], params: TranslateParams = DEFAULT_PARAMS
    ) -> list[Translated]:
        """The translations of texts. What a text's translation is does not depend on the others.

        Raises DragomanError for what cannot be done, and what `RequestHandle` raises.
        """
        legs = self.route(src, tgt)
        if len(legs) > 1 and (params.glossary or params.prefix):
            raise Error.UNSUPPORTED(
                f"{src} to {tgt} goes through {legs[1].languages[0]}: no glossary and no prefix there"
            )
        sources, begun = texts, handle.begun
        for number, run in enumerate(legs, start=1):
            last = number == len(legs)
            items = self._on_leg(handle, run, texts, params if last else replace(params, alternatives=0))
            params = replace(params, context="")  # it is in the source's language
            texts = [item.best.text for item in items]
        if len(legs) > 1:
            items = [self._through(src, tgt, text, item) for text, item in zip(sources, items, strict=True)]
        self._measure(src, tgt, legs, sum(len(text) + 1 for text in sources), handle.begun - begun)
        if params.warnings:
            self.on_warnings(sum(not one.is_note for item in items for one in item.best.warnings))
        return items

    @staticmethod
    def _through(src: str, tgt: str, text: str, item: Translated) -> Translated:
        """The translation of a text through another language: its warnings are told from both ends."""
        languages, (best, *others) = (src, tgt), item.items
        faults = [*warnings_of(text, best.text, languages), *source_warnings(text, languages)]
        notes = [one for one in best.warnings if one.is_note]
        return Translated([replace(best, warnings=(*notes, *faults)), *others])

    def _on_leg(
        self, handle: RequestHandle, run: ServedRun, texts: Sequence[str], params: TranslateParams
    ) -> list[Translated]:
        pipeline = self._pipeline(handle, run, params, sum(map(len, texts)))
        before = pipeline.before(params.context)
        if params.kind == "text":
            prefixes = [params.prefix] * len(texts) if params.prefix else None
            return pipeline.texts(texts, prefixes, [[*before] for _ in texts])
        if params.prefix:
            return [Translated(items) for items in pipeline.own.n_best(texts, [params.prefix] * len(texts))]
        return [self._of_markup(pipeline, text, params, before) for text in texts]

    def reads_context(self, src: str, tgt: str) -> bool:
        """True where the run that reads the source has learnt to read what stands before a sentence."""
        return src != tgt and bool(self.route(src, tgt)[0].pipeline.context[0])

    def _pipeline(self, handle: RequestHandle, run: ServedRun, params: TranslateParams, characters: int) -> Pipeline:
        """The pipeline of a run as a request of so many characters wants it, over the scheduler."""
        beam = max(params.beam_size or run.own.decoding.beam_size, 1 + params.alternatives)
        pipeline = run.pipeline.with_decoding(beam_size=beam, n_best=1 + params.alternatives)
        if params.glossary is not None:
            pipeline = pipeline.with_terms(params.glossary)
        return replace(
            pipeline.with_search(handle.on),
            memory=self.memory(run.languages, params.author) if params.memory else None,
            sentences=pipeline.sentences if params.split is None else params.split,
            warn=params.warnings,
            count=_limited((1 + params.alternatives) * (MAX_GROWTH_RATIO * characters + MAX_GROWTH_CHARS)),
        )

    @staticmethod
    def _of_markup(pipeline: Pipeline, text: str, params: TranslateParams, before: Before) -> Translated:
        options = Options("the text", pipeline.languages, tags=params.tags)
        document = Document(text.encode(), MARKUP[params.kind], options)
        known: dict[str, list[Translation]] = {}  # the sentences are translated once, for all versions

        def version(rank: int) -> Translation:
            def ranked(stage: NBest, sentences: Sequence[str]) -> list[list[Translation]]:
                new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
                known.update(zip(new, stage(new) if new else (), strict=True))
                return [known[sentence][min(rank, len(known[sentence]) - 1) :] for sentence in sentences]

            around = (lambda stage: stage) if pipeline.context[0] else (lambda stage: partial(ranked, stage))
            translate = DocumentTranslator(pipeline, around)
            translate.before = [*before]
            return Translation(document.translated(_in_steps(translate, lambda _: None)).decode(), 0.0, 0.0)

        versions = [version(rank) for rank in range(1 if pipeline.context[0] else 1 + params.alternatives)]
        return Translated(list({item.text: item for item in versions}.values()))

    def translate_document(
        self,
        handle: RequestHandle,
        src: str,
        tgt: str,
        document: DocumentProcess,
        *,
        params: TranslateParams = DEFAULT_PARAMS,
        advance: Callable[..., None] = lambda done, total: None,
        count: Callable[[int], None] = lambda characters: None,
    ) -> Report:
        """Write a translated file; what was done. `advance` is told how many of how many texts are done, `count` the
        number of characters, before it begins.

        Raises DragomanError for a file that cannot be read.
        """
        legs = self.route(src, tgt)
        texts, characters = document.sizes((src, tgt))
        count(characters)
        params = replace(params, glossary=params.glossary if len(legs) == 1 else None, warnings=True)
        stages = [DocumentTranslator(self._pipeline(handle, run, params, characters)) for run in legs]

        def through(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
            for translate in stages:
                translations = translate(units)
                units = [
                    unit if items is None else replace(unit, items=items)
                    for unit, items in zip(units, translations, strict=True)
                ]
            return translations

        document.translate(_in_steps(through, functools.partial(advance, total=texts)))
        report = stages[-1].report
        report.doubts[:0] = [doubt for stage in stages[:-1] for doubt in stage.report.doubts]
        return report

    def language_of_document(self, document: DocumentProcess, tgt: str) -> str:
        """The language that a file is in, of those that can be translated to `tgt`. Raises DragomanError as reading
        it does, for a language that is not served, and where there is none."""
        served = self.languages()
        sources = [code for code, targets in served.items() if tgt in targets]
        if not sources:
            raise Error.NO_SUCH_LANGUAGE(f"{tgt}: no model for it")
        code, _ = source_language(document.sample(), sources, tgt, list(served))
        name = names_of([*served, code])[code]
        if code not in served:
            raise Error.LANGUAGE_NOT_SERVED(f"{name}, which is not served here")
        if code == tgt:
            raise Error.CONFLICT(f"is in {name} already", "name its language if that is wrong")
        return code

    def similar(self, src: str, tgt: str, text: str, author: str | None = None) -> list[Match]:
        """Corrections of similar texts, the author's before everybody's."""
        memory = self.memory((src, tgt), author)
        return memory.like(text) if memory is not None and text.strip() else []

    def alignment(self, src: str, tgt: str, text: str, item: Translated) -> list[tuple[int, int, int, int]]:
        """Links of words: characters (from, to) of the source and (from, to) of the translation, sentence by sentence.
        None for a way through another language."""
        legs = self.route(src, tgt)
        if len(legs) > 1:
            return []
        pairs = [(text[slice(*one.src)], item.best.text[slice(*one.tgt)]) for one in item.sentences]
        every = [AlignedPair(*pair, *map(words, pair)) for pair in pairs]
        linked = [place for place, pair in enumerate(every) if max(map(len, pair[2:])) <= MAX_LINKED_WORDS]
        pairings = [every[place] for place in linked]
        with turn(self._reading):
            matrices = word_links(legs[0].own, pairings)
        out = []
        for place, pairing, links in zip(linked, pairings, matrices, strict=True):
            one = item.sentences[place]
            for row, column in strong(links, MIN_SHOWN_LINK_SHARE):
                read, made = pairing.src_words[column], pairing.tgt_words[row]
                src_at, tgt_at = one.src[0], one.tgt[0]
                out.append((src_at + read.start, src_at + read.end, tgt_at + made.start, tgt_at + made.end))
        return out

    def confidence(self, src: str, tgt: str, text: str, item: Translated) -> list[tuple[int, int, float]]:
        """Characters (from, to) of each word of a translation and its confidence, sentence by sentence. None for a way
        through another language, and of a run that is not calibrated."""
        legs = self.route(src, tgt)
        if len(legs) > 1 or legs[0].calibration is None:
            return []
        pairs = [(text[slice(*one.src)], item.best.text[slice(*one.tgt)]) for one in item.sentences]
        with turn(self._reading):
            judgements = confidence.confidences(legs[0].own, legs[0].calibration, pairs)
        return [
            (one.tgt[0] + begin, one.tgt[0] + end, round(value, 3))
            for one, it in zip(item.sentences, judgements, strict=True)
            for begin, end, value in (it.words if it is not None else ())
        ]

    def words_instead(
        self, handle: RequestHandle, src: str, tgt: str, text: str, prefix: str, count: int
    ) -> list[Translation]:
        """Translations that begin with `prefix` and go on with different words, the most probable first."""
        legs = self.route(src, tgt)
        if len(legs) > 1:
            raise Error.UNSUPPORTED(f"{src} to {tgt} goes through {legs[1].languages[0]}: no other words there")
        return next_words(handle.on(legs[0].own), text, prefix, count)


CANCEL_CHECK_TEXTS = 256
"""Texts of a document between two looks at whether it is given up."""

MARKUP = {
    "html": replace(FORMATS["html"], finish=None, declares=""),
    "xml": Format("XML", (), (tagged.units,)),
}
"""The formats of texts with markup."""


def _limited(most: int) -> Callable[[int], None]:
    """Counts characters. Raises DragomanError for more than `most`."""
    left = most

    def count(characters: int) -> None:
        nonlocal left
        left -= characters
        if left < 0:
            raise Error.TOO_LONG(f"the translations have more than {most:,} characters", "send less text at once")

    return count


def _in_steps(translate: TranslateUnits, advance: Callable[[int], None]) -> TranslateUnits:
    """Translate units a few at a time; `advance` is told how many are done."""
    done = 0

    def of_units(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
        nonlocal done
        for start in range(0, len(units), CANCEL_CHECK_TEXTS):
            check()
            part = units[start : start + CANCEL_CHECK_TEXTS]
            yield from translate(part)
            done += len(part)
            advance(done)

    return of_units
