"""Sentences of a document read with those before them, by the model of a run that has learnt it (`corpus.context`).

    The pump runs.⟦break⟧ It is red.                    the source, as the encoder reads it
    Die Pumpe läuft.⟦break⟧                             the beginning that the search is held to

Each sentence goes through all stages of the pipeline by itself. What stands before it is added at the search alone: so
memory, glossary, codes and placeholders are the sentence's own. The sentences of a document are searched for one after
another, sentences of several documents together.
"""

import contextvars
import json
import re
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from dragoman.alignment.learnt_markup import has_markup, items_of_line
from dragoman.alignment.markup import PROTECTED, text_and_codes
from dragoman.decoding.base import Hypothesis
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Searcher, Segment, Translation
from dragoman.pipeline.splitter import Piece
from dragoman.special_tokens import UNK_ID
from dragoman.text.annotations import BREAK

MAX_SENTENCES_TOGETHER = 64
"""Sentences of as many documents that are searched for together, at most."""
MAX_LENGTH_RATIO = 2.0
"""Tokens of a translation for each of its source: the room that is left for it behind its beginning."""

Result = TypeVar("Result")
Asking = Generator[str, list[Translation], Result]
"""Work that asks for the translations of one sentence after another, each written by `question`."""


class Said(NamedTuple):
    """A sentence of a document and its translation, both without codes."""

    src: str
    tgt: str


Before = list[Said]
"""The sentences of a document that have been translated, in order."""


def without_markup(text: str) -> str:
    """A sentence as it is read before another sentence: without tags."""
    text = text_and_codes(items_of_line(text))[0] if has_markup(text) else text
    return re.sub(r"\s+", " ", PROTECTED.sub("", text)).strip()


def question(before: Sequence[Said], sentence: str) -> str:
    """A sentence and those before it as one text, which a journal may keep translations by."""
    return json.dumps([before, sentence], ensure_ascii=False)


def together(ask: Callable[[Sequence[str]], list[list[Translation]]], works: Sequence[Asking[Result]]) -> list[Result]:
    """The results of works that ask for sentences, step by step: what each asks next is answered for all at once."""
    results: dict[int, Result] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(works)))
    while answers:
        questions: dict[int, str] = {}
        for number, answer in answers.items():
            try:
                questions[number] = works[number].send(answer)
            except StopIteration as done:
                results[number] = done.value
        answers = dict(zip(questions, ask(list(questions.values())) if questions else (), strict=True))
    return [results[number] for number in range(len(works))]


def in_order(before: Before, pieces: Sequence[Piece], count: int) -> Asking[dict[str, list[Translation]]]:
    """The translations of the sentences of a text, by their keys; each is added to those `before`, of which the last
    `count` are read."""
    translations: dict[str, list[Translation]] = {}
    for piece in pieces:
        if piece.is_text:
            translations[piece.key] = items = yield question(before[-count:], piece.text)
            before.append(Said(without_markup(piece.text), without_markup(items[0].text)))
    return translations


def before_each(document: Before, texts: Sequence[Sequence[Piece]], count: int) -> list[Before]:
    """The last `count` sentences before each text of a document, without translations; those of the texts are added to
    it. A model that reads no translations needs none, so that all texts can be searched for at once."""
    result = []
    for pieces in texts:
        result.append(document[-count:])
        document += [Said(without_markup(piece.text), "") for piece in pieces if piece.is_text]
    return result


def answers(pipeline: Any, questions: Sequence[str]) -> list[list[Translation]]:
    """The translations of sentences, each in the form that `question` gives it."""
    read = [json.loads(one) for one in questions]
    first = [sentence for before, sentence in read if not before]
    alone = iter(pipeline.by_sentence(first) if first else ())
    behind = [([Said(*one) for one in before], sentence) for before, sentence in read if before]
    made: list[list[Translation]] = []
    for start in range(0, len(behind), MAX_SENTENCES_TOGETHER):
        made += _side_by_side(pipeline, behind[start : start + MAX_SENTENCES_TOGETHER])
    others = iter(made)
    return [next(others if before else alone) for before, _ in read]


def _side_by_side(pipeline: Any, questions: Sequence[tuple[Sequence[Said], str]]) -> list[list[Translation]]:
    """The translations of sentences, each in a thread of its own; their searches are made together."""
    if len(questions) == 1:
        return [_behind(pipeline, questions[0][0]).by_sentence([questions[0][1]])[0]]
    meeting = Meeting(len(questions))

    def translations(before: Sequence[Said], sentence: str) -> list[Translation]:
        try:
            return _behind(pipeline, before, meeting).by_sentence([sentence])[0]
        finally:
            meeting.leave()

    with ThreadPoolExecutor(len(questions)) as pool:
        contexts = [contextvars.copy_context() for _ in questions]  # what cancels this work cancels theirs
        return list(pool.map(lambda context, one: context.run(translations, *one), contexts, questions))


def _behind(pipeline: Any, before: Sequence[Said], meeting: "Meeting | None" = None) -> Any:
    """The pipeline whose model reads sentences before the one to translate."""

    def reading(search: SearchTranslator) -> SearchTranslator:
        engine = search.engine if meeting is None else _AtMeeting(meeting, search.engine)
        return search.searched_by(ReadingContext(tuple(before), pipeline.context, engine))

    return pipeline.with_search(reading)


@dataclass(frozen=True)
class ReadingContext:
    """A search of sentences with those before them (a `Searcher`): as many of the last as fit."""

    before: tuple[Said, ...]
    count: tuple[int, int]
    """Sentences that the run has learnt to read, and those of them whose translations it begins with."""
    engine: Searcher | None

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses for each part, read behind the sentences before it."""
        longer = [self._part(translator, part) for part in parts]
        hypotheses = translator.searched_by(self.engine).hypotheses(longer)
        return [
            [_own(one, translator) if part.read else one for one in of_part]
            for part, of_part in zip(longer, hypotheses, strict=True)
        ]

    def _part(self, translator: SearchTranslator, part: Segment) -> Segment:
        """The part with the sentences before it."""
        tokenizers = translator.tokenizers
        src: list[int] = []
        tgt: list[int] = []
        for number, one in enumerate(self.before[: -self.count[0] - 1 : -1]):  # from the nearest on
            longer = _ids(translator, tokenizers.src, one.src) + src
            begun = (_ids(translator, tokenizers.tgt, one.tgt) + tgt) if number < self.count[1] else tgt
            room = translator.max_src_tokens - len(part.ids)
            if len(longer) > room or len(begun) > room - (MAX_LENGTH_RATIO - 1) * len(part.ids) or UNK_ID in begun:
                break
            src, tgt = longer, begun
        at, begins = len(tokenizers.src.before), len(tokenizers.tgt.before)
        return part._replace(
            ids=[*part.ids[:at], *src, *part.ids[at:]],
            prefix=part.prefix[begins:] if tgt else part.prefix,
            read=(*part.prefix[:begins], *tgt) if tgt else (),
        )


def _own(hypothesis: Hypothesis, translator: SearchTranslator) -> Hypothesis:
    """A hypothesis up to its first break piece, with the tokens that every target begins with."""
    tokenizer = translator.tokenizers.tgt
    ids, end = hypothesis.ids, tokenizer.id_of(BREAK)
    ids = ids[: ids.index(end)] if end in ids and end != UNK_ID else ids
    return replace(hypothesis, ids=[*tokenizer.before, *ids])


def _ids(translator: SearchTranslator, tokenizer: Any, text: str) -> list[int]:
    ids = tokenizer.encode_part(translator.normalize(text))
    return [*ids, tokenizer.id_of(BREAK)] if ids else []


@dataclass
class _Request:
    """A search that a thread waits for."""

    translator: SearchTranslator
    parts: Sequence[Segment]
    done: threading.Event = field(default_factory=threading.Event)
    hypotheses: list[list[Hypothesis]] = field(default_factory=list)
    error: Exception | None = None

    @property
    def key(self) -> tuple[int, str]:
        """Searches with the same key are made together."""
        return id(self.translator.engine), repr(self.translator.decoding)


class Meeting:
    """Threads that translate side by side. As soon as all of them wait for a search, one search is made for all."""

    def __init__(self, count: int) -> None:
        self._changing = threading.Lock()
        self._here = count
        self._waiting: list[_Request] = []

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses for parts, once the others wait for theirs. Raises what the search raises for them."""
        request = _Request(translator, parts)
        self._come(lambda: self._waiting.append(request))
        request.done.wait()
        if request.error is not None:
            raise request.error
        return request.hypotheses

    def leave(self) -> None:
        """A thread has ended."""

        def less() -> None:
            self._here -= 1

        self._come(less)

    def _come(self, change: Callable[[], None]) -> None:
        with self._changing:
            change()
            requests = self._waiting if len(self._waiting) == self._here else []
            if requests:
                self._waiting = []
        groups: dict[tuple[int, str], list[_Request]] = {}
        for request in requests:
            groups.setdefault(request.key, []).append(request)
        for group in groups.values():
            _search(group)


def _search(requests: Sequence[_Request]) -> None:
    """Answer requests by one search. If it fails, search for each request alone, so that one fault does not end the
    others."""
    try:
        hypotheses = iter(requests[0].translator.hypotheses([part for one in requests for part in one.parts]))
        for request in requests:
            request.hypotheses = [next(hypotheses) for _ in request.parts]
    except Exception as error:
        if len(requests) > 1:
            for request in requests:
                _search([request])
            return
        requests[0].error = error
    for request in requests:
        request.done.set()


@dataclass(frozen=True)
class _AtMeeting:
    """The search of a thread that is at a meeting (a `Searcher`)."""

    meeting: Meeting
    engine: Searcher | None

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        return self.meeting.hypotheses(translator.searched_by(self.engine), parts)
