"""Dragoman's own API: translations with everything that is known of them, parts of long texts as they come, words to
choose from, corrections, documents."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import Any

from pydantic_core import ErrorDetails, to_json
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dragoman.alignment.markup import SentenceSpans
from dragoman.formats.base import Options
from dragoman.formats.bitext import tmx_of
from dragoman.formats.document import SUFFIXES
from dragoman.formats.table import names_in
from dragoman.inference.translation import Translation
from dragoman.languages.codes import direction_of, names_of, script_of, tag_of
from dragoman.pipeline.files import SHOWN_DOUBTS
from dragoman.pipeline.memory import Memory
from dragoman.pipeline.pipeline import Translated
from dragoman.serve.api import Api, Call, Load, api_error, respond
from dragoman.serve.apis import v1_models as models
from dragoman.serve.corrections import Filter
from dragoman.serve.documents import DocumentTask
from dragoman.serve.errors import ApiError
from dragoman.serve.http import file_of
from dragoman.serve.requests import (
    Answer,
    Detected,
    check_size,
    check_terms,
    correction,
    detect,
    new_task,
    planned,
    require,
    result_of,
    served_pair,
    sources_of,
)  # fmt: skip
from dragoman.serve.scheduler import DeadlineExceeded, RequestHandle
from dragoman.serve.service import AUTO, ServedRun, TranslateParams, as_it_is
from dragoman.text.glossary import Glossary
from dragoman.text.segment import Span

PartOf = Callable[[int, str], Callable[[RequestHandle], list[Answer]]]
"""The work that translates a part of a text, by its number and its language."""
DOCUMENT_KEY = "X-Document-Key"
"""The header for a document's key; in the query, as `key`, it stands in the logs of proxies."""
MIN_STREAMED_CHARS = 400
"""Characters from which on lines of a streamed text make a part of their own."""


def _complaint(error: ErrorDetails) -> str:
    name = "".join([str(error["loc"][0]), *(f"[{part}]" for part in error["loc"] if isinstance(part, int))])
    if error["type"] in ("missing", "string_too_short", "string_pattern_mismatch"):
        return f"{name}: missing"
    return f"{name}: {error['msg'].removeprefix('Value error, ')}"


api = Api("Dragoman", ApiError.as_dict, _complaint)


def languages_of(call: Call, given: models.Pair, *, auto: bool) -> tuple[str, str]:
    """The languages of a request, as they are served. Raises ApiError for others."""
    served = call.server.service.languages()
    source = given.source or AUTO
    if source.lower() == AUTO and not auto:
        raise ApiError(400, "source: missing: give a language code")
    src, tgt = served_pair(call.server, source, given.target)
    if src is None or tgt is None:
        name, code = ("source", source) if src is None else ("target", given.target)
        raise ApiError(400, f"{name}: {code!r} is not served; there are {', '.join(sorted(served))}")
    if src not in (AUTO, tgt) and tgt not in served.get(src, ()):
        raise ApiError(400, f"{src} to {tgt}: no model for it")
    return src, tgt


def _choices(call: Call, given: models.StreamRequest) -> TranslateParams:
    """The wishes of a request. Raises ApiError for more alternatives than there may be."""
    _check_count("alternatives", given.alternatives, call.server.limits.alternatives)
    alike = given.model_dump(include={"alternatives", "prefix", "memory", "split", "beam_size"})
    return TranslateParams(kind=given.format, glossary=_glossary(call, given.glossary), **alike)


def _check_count(name: str, count: int, most: int) -> None:
    if count > most:
        raise ApiError(400, f"{name}: {count}: at most {most}")


def _glossary(call: Call, terms: models.Terms) -> Glossary | None:
    return check_terms(call.server, Glossary(terms)) if terms else None


@api.operation("GET", "/v1/languages", "Languages, each with those it can be translated to",
               [{"code": "de", "name": "German", "tag": "de", "script": "Latn", "direction": "ltr", "targets": ["en"]}],
               public=True)  # fmt: skip
def languages(call: Call) -> list[dict[str, Any]]:
    """Names are in the language of the reader (`Accept-Language`) where it is one of the page's."""
    known = call.server.service.languages()
    names = names_of(known, call.reader)
    return [
        {
            "code": code, "name": names[code], "tag": tag_of(code), "script": script_of(code),
            "direction": direction_of(code), "targets": targets,
        }
        for code, targets in known.items()
    ]  # fmt: skip


@api.operation("GET", "/v1/limits", "What a client may ask for", {"text_characters": 5000, "batch": 128}, public=True)
def limits(call: Call) -> dict[str, Any]:
    settings = call.server.settings
    return {
        **asdict(settings.limits),
        "key_required": settings.key_required,
        "corrections": call.corrector.as_dict(),
        "documents": settings.documents,
        "explain": settings.explain,
        "formats": SUFFIXES,
        "glossary_terms": models.MAX_TERMS,
    }


@api.operation("GET", "/v1/key", "The key that is sent: its name, its limits, and what is left of them",
               {"name": "pub", "per_minute": 60, "per_month": 500000, "used": 1200, "left": 498800})  # fmt: skip
def key(call: Call) -> dict[str, Any]:
    known = call.client.key
    if known is None:
        raise ApiError(403, "Invalid API key")
    used = call.server.gate.usage.characters(known.name)
    left = None if known.per_month is None else max(0, known.per_month - used)
    return {**known._asdict(), "used": used, "left": left}


@api.operation("POST", "/v1/translate", "Translate a text, or a list of them", models.Translation | models.Translations,
               translates=True)  # fmt: skip
def translate(call: Call, given: models.TranslateRequest) -> Awaitable[Response]:
    texts = given.text if isinstance(given.text, list) else [given.text]
    check_size(call.server, texts)
    src, tgt = languages_of(call, given, auto=True)
    params = replace(_choices(call, given), warnings=given.warnings)
    work, load = planned(call, texts, src, tgt, params)

    def answer(handle: RequestHandle) -> Response:
        records = [_record(call, text, tgt, one, given) for text, one in zip(texts, work(handle), strict=True)]
        return respond(models.Translations(translations=records) if isinstance(given.text, list) else records[0])

    return call.run(answer, load)


def _record(call: Call, text: str, tgt: str, answer: Answer, details: models.Details) -> models.Translation:
    """A translation with the details that were asked for. Of a text in its own target language there are none."""
    service, item = call.server.service, answer.item
    explained = answer.src, tgt, text, item
    is_made = answer.src != tgt
    record = models.Translation(
        **_common(answer, item.sentences), target=tgt, score=item.best.score, log_prob=item.best.log_prob
    )
    if details.alignments:
        record.alignments = service.alignment(*explained) if is_made else []
    if details.confidence:
        record.confidence = service.confidence(*explained) if is_made else []
    if details.warnings:
        record.warnings = _records(item, notes=False)
        record.memory = [
            {"source": match.src, "target": match.tgt, "similarity": round(match.similarity, 4)}
            for match in service.similar(answer.src, tgt, text, call.corrector.own_author)
        ]
    return record


def _records(item: Translated, *, notes: bool) -> list[dict[str, Any]]:
    """The notes of a translation, or its other warnings."""
    return [one.record() for one in item.best.warnings if one.is_note == notes]


def _common(answer: Answer, sentences: Sequence[SentenceSpans]) -> dict[str, Any]:
    """The fields of a translation of a whole text or of a part of a text."""
    item = answer.item
    return {
        "text": item.best.text,
        "source": answer.src,
        "detected": answer.detected,
        "alternatives": item.alternatives,
        "notes": _records(item, notes=True),
        "sentences": [(*one.src, *one.tgt) for one in sentences],
    }


def parts_of(text: str, memory: Memory | None = None) -> list[str]:
    """Parts of a text to be translated one after another, cut at the ends of lines, where the memory has none inside.

    >>> [len(part) for part in parts_of("a" * 300 + chr(10) + "b" * 300 + chr(10) + "c")]
    [602, 1]
    """
    parts: list[str] = []
    for line in text.splitlines(keepends=True):
        if parts and (len(parts[-1]) < MIN_STREAMED_CHARS or _stays(parts[-1], line, memory)):
            parts[-1] += line
        else:
            parts.append(line)
    return parts


def _stays(part: str, line: str, memory: Memory | None) -> bool:
    """True for a line that has to be translated together with the lines before it."""
    return memory is not None and (not line.strip() or memory.breaks_inside(part, line))


@api.operation("GET POST", "/v1/translate/stream", "Translate part by part: server-sent events part, details, done",
               "event: part\ndata: {...}\n\n", media=("text/event-stream",), translates=True)  # fmt: skip
def stream(call: Call, given: models.StreamRequest) -> Awaitable[Response]:
    """The first part is translated before the stream begins: what is refused is refused with a status of its own."""
    check_size(call.server, [given.text])
    src, tgt = languages_of(call, given, auto=True)
    params = replace(_choices(call, given), warnings=True)
    if params.kind != "text":
        raise ApiError(400, "format: text alone comes in parts")

    def answer(handle: RequestHandle) -> AdmittedStream:
        guess = sources_of(call, [given.text], tgt)[0] if src == AUTO else None
        known = src if guess is None else guess.language
        own = call.corrector.own_author
        parts = parts_of(given.text, call.server.service.memory((known, tgt), own) if given.memory else None)

        def part_of(number: int, src: str) -> Callable[[RequestHandle], list[Answer]]:
            return planned(call, parts[number : number + 1], src, tgt, params)[0]

        [first] = part_of(0, known)(handle) or [Answer(as_it_is(""), known, None)]
        admission = ExitStack()
        return AdmittedStream(_events(call, parts, first._replace(detected=guess), tgt, part_of, admission), admission)

    return _stream(call, answer, planned(call, [given.text], src, tgt, params)[1])


class AdmittedStream(StreamingResponse):
    """Server-sent events of a text that was admitted as a whole, and is so until their end."""

    def __init__(self, events: AsyncIterator[bytes], admission: ExitStack) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self.admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.admission:
            await super().__call__(scope, receive, send)


async def _stream(call: Call, answer: Callable[[RequestHandle], AdmittedStream], load: Load) -> Response:
    """A stream that is let in as a whole before its first part is translated: nothing refuses it later."""
    with ExitStack() as stack:
        stack.enter_context(call.admitted(load))
        response = await call.run(answer, None)
        response.admission.push(stack.pop_all())
        return response


async def _events(
    call: Call,
    parts: Sequence[str],
    first: Answer,
    tgt: str,
    part_of: PartOf,
    admission: ExitStack,
) -> AsyncIterator[bytes]:
    """The events of a stream; `first` is the answer to the first part. What fails leaves its `admission`: it does not
    count."""
    try:
        with admission:
            async for event in _parts(call, parts, first, tgt, part_of):
                yield event
        yield _event("done", {})
    except asyncio.CancelledError:
        raise
    except Exception as exception:
        error = api_error(exception, call.server)
        yield _event("error", {"status": error.status, **error.as_dict()})


async def _parts(
    call: Call,
    parts: Sequence[str],
    first: Answer,
    tgt: str,
    part_of: PartOf,
) -> AsyncIterator[bytes]:
    """The translated parts of a text, and then the details of the whole."""
    whole, src_at = first._replace(item=as_it_is("")), 0
    for number, part in enumerate(parts):
        answer = first
        if number:
            [answer] = await call.run(part_of(number, first.src), None)
        before, here = whole.item, _moved(answer.item, src_at, len(whole.item.best.text))
        yield _event("part", models.Part(**_common(first._replace(item=answer.item), here.sentences)))
        joined = Translation(before.best.text + here.best.text, 0.0, 0.0, (*before.best.warnings, *here.best.warnings))
        whole = whole._replace(item=Translated([joined], (*before.sentences, *here.sentences)))
        src_at += len(part)
    text, every = "".join(parts), models.Details(alignments=True, confidence=True, warnings=True)
    if first.src != tgt and text.strip():
        with suppress(DeadlineExceeded):  # the translation is there, and stays without them
            yield _event("details", await call.run(lambda _: _record(call, text, tgt, whole, every), None))


def _moved(item: Translated, src_at: int, tgt_at: int) -> Translated:
    """A translation with the places of its sentences moved back in both texts."""
    sentences = tuple(
        SentenceSpans(*(Span(span.start + by, span.end + by) for span, by in zip(one, (src_at, tgt_at), strict=True)))
        for one in item.sentences
    )
    warnings = tuple(
        replace(one, place=(one.place[0] + src_at, one.place[1] + src_at)) if one.place else one
        for one in item.best.warnings
    )
    return Translated([replace(item.best, warnings=warnings)], sentences)


def _event(name: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_json(data, exclude_none=True, inf_nan_mode="null"))


@api.operation("POST", "/v1/words", "Translations of a sentence that begin with prefix and go on differently",
               {"translations": [{"text": "I want a beer.", "score": -0.4}]})  # fmt: skip
def words(call: Call, given: models.WordsRequest) -> Awaitable[dict[str, Any]]:
    service = call.server.service
    for text in (given.text, given.prefix):
        check_size(call.server, [text])
    src, tgt = languages_of(call, given, auto=False)
    _check_count("count", given.count, call.server.limits.alternatives)

    def work(handle: RequestHandle) -> dict[str, Any]:
        items = service.words_instead(handle, src, tgt, given.text, given.prefix, given.count)
        return {"translations": [{"text": item.text, "score": item.score} for item in items]}

    return call.run(work, Load(4 * service.tokens(src, tgt, [given.text]), len(given.text)))


def _explained(call: Call, given: models.ExplainRequest | models.WayRequest) -> tuple[ServedRun, Load]:
    """The run that explains a text, and how much that is. Raises ApiError where that is switched off or too much."""
    require(call.server.settings.explain, "Sentences are not explained by this server")
    check_size(call.server, [given.text])
    src, tgt = languages_of(call, given, auto=False)
    legs = call.server.service.route(src, tgt)
    if len(legs) > 1:
        raise ApiError(400, f"{src} to {tgt} goes through {legs[1].languages[0]}: explain either half")
    return legs[0], Load(4 * call.server.service.tokens(src, tgt, [given.text]), len(given.text))


@api.operation("POST", "/v1/explain", "How a sentence is translated: what the page /explain shows",
               {"src": {"pieces": ["Ich", "</s>"]}, "ways": [{"text": "I"}]})  # fmt: skip
def explain(call: Call, given: models.ExplainRequest) -> Awaitable[dict[str, Any]]:
    run, load = _explained(call, given)
    return call.run(lambda _: call.server.explainer.explain(run, given.text, given.beam_size), load)


@api.operation("POST", "/v1/explain/way", "The way of a translation that begins with tokens and goes on greedily",
               {"ids": [4, 3], "pieces": ["I", "</s>"], "text": "I", "log_probs": [-0.4, -0.1]})  # fmt: skip
def explain_way(call: Call, given: models.WayRequest) -> Awaitable[dict[str, Any]]:
    run, load = _explained(call, given)
    return call.run(lambda _: call.server.explainer.way(run, given.text, given.begin), load)


@api.operation("POST", "/v1/glossary", "Read a file of terms (.csv, .tsv, .tbx, .xlsx, lines), and say what is no term",
               {"terms": {"Bier": "ale"}, "faults": [{"line": 2, "code": "wrong-shape", "text": "..."}]},
               files=True)  # fmt: skip
def read_glossary(call: Call, given: models.GlossaryRequest) -> dict[str, Any]:
    name, data = file_of(call.parameters, call.server.limits)
    if len(data) > call.server.limits.body_bytes:
        raise ApiError(413, f"The file has {len(data):,} bytes: at most {call.server.limits.body_bytes:,} are read")
    name = f"terms{PurePath(name).suffix.lower()}"
    read = Glossary.read(data, name, (given.source, given.target), strict=False)
    faults = [
        {"line": one.line, "code": one.code, "text": str(one).removeprefix(f"{name}:{one.line}: ")}
        for one in read.left_out
    ]
    return {"terms": read.targets, "faults": faults}


@api.operation("POST", "/v1/detect", "Identify the language of a text, or of each of a list",
               list[Detected] | list[list[Detected]])  # fmt: skip
def detect_languages(call: Call, given: models.DetectRequest) -> Awaitable[list[Any]]:
    texts = given.text if isinstance(given.text, list) else [given.text]
    check_size(call.server, texts)

    def work(handle: RequestHandle) -> list[Any]:
        guesses = [detect(call, text) for text in texts]
        return guesses if isinstance(given.text, list) else guesses[0]

    return call.run(work, Load(0, sum(map(len, texts))))


_CORRECTION = {"id": 7, "source": "de", "target": "en", "text": "Bier", "translation": "beer", "author": "anna",
               "created": 1800000000.0, "state": "shared", "in_use": True}  # fmt: skip


@api.operation("POST", "/v1/corrections", "Keep a better translation; it is used from now on",
               {"kept": True, **_CORRECTION})  # fmt: skip
def add_correction(call: Call, given: models.Correction) -> dict[str, Any]:
    call.corrector.require()
    made = correction(call.server, given.source, given.target, given.text, given.translation)
    return {"kept": True, **call.corrector.record(call.corrector.add(made, given.scope))}


@api.operation("GET", "/v1/corrections", "The corrections that are in use, the newest first, or as TMX",
               {"corrections": [_CORRECTION], "total": 1},
               media=("application/json", "application/x-tmx+xml"))  # fmt: skip
def corrections(call: Call, given: models.CorrectionsQuery) -> dict[str, Any] | Response:
    """Everybody's, your own, and what waits for your review."""
    call.corrector.require()
    src, tgt = served_pair(call.server, given.source, given.target)
    src, tgt = src or given.source, tgt or given.target
    chosen = call.corrector.seen(Filter(src, tgt, given.q, given.state))
    kept = call.server.store.corrections
    if given.format != "tmx":
        listed = kept.matching(chosen, given.offset, given.limit)
        return {"corrections": [call.corrector.record(one) for one in listed], "total": kept.count(chosen)}
    if not (src and tgt):
        raise ApiError(400, "a TMX is of two languages: give source and target")
    pairs = [(one.correction.src, one.correction.tgt) for one in reversed(kept.matching(chosen))]
    headers = {"Content-Disposition": f'attachment; filename="corrections.{src}-{tgt}.tmx"'}
    return Response(tmx_of(pairs, src, tgt), media_type="application/x-tmx+xml", headers=headers)


@api.operation("DELETE", "/v1/corrections", "Forget the correction of a text", {"forgotten": True})
def forget_correction_of(call: Call, given: models.ForgetRequest) -> dict[str, bool]:
    """Your own, or else everybody's."""
    call.corrector.require()
    src, tgt = languages_of(call, given, auto=False)
    own, kept = call.corrector.own_author, call.server.store.corrections
    one = kept.find(src, tgt, given.text, own) if own is not None else None
    if (one := one or kept.find(src, tgt, given.text)) is None:
        raise ApiError(404, "There is no correction of this text")
    call.corrector.forget(one.id)
    return {"forgotten": True}


def _id(call: Call) -> int:
    """The id in the address of a request."""
    call.corrector.require()
    id = str(call.request.path_params["id"])
    if not (id.isascii() and id.isdecimal() and len(id) < 19):
        raise ApiError(404, "There is no such correction")
    return int(id)


@api.operation("GET", "/v1/corrections/{id}", "A correction, and what stood in its place before",
               {**_CORRECTION, "before": [_CORRECTION]})  # fmt: skip
def correction_by_id(call: Call) -> dict[str, Any]:
    one = call.corrector.get(_id(call))
    return {
        **call.corrector.record(one),
        "before": [call.corrector.record(old) for old in call.server.store.corrections.history(one)],
    }


@api.operation("DELETE", "/v1/corrections/{id}", "Forget a correction", {"forgotten": True})
def forget_correction(call: Call) -> dict[str, bool]:
    call.corrector.forget(_id(call))
    return {"forgotten": True}


@api.operation("POST", "/v1/corrections/{id}/undo", "Take a correction back: what was before is in use again",
               {"in_use": _CORRECTION})  # fmt: skip
def undo_correction(call: Call) -> dict[str, Any]:
    before = call.corrector.undo(_id(call))
    return {"in_use": None if before is None else call.corrector.record(before)}


@api.operation("POST", "/v1/corrections/{id}/restore", "Use a correction again that is not in use", _CORRECTION)
def restore_correction(call: Call) -> dict[str, Any]:
    return call.corrector.record(call.corrector.restore(_id(call)))


@api.operation("POST", "/v1/corrections/{id}/approve", "Use a correction that waits for review for everybody",
               _CORRECTION)  # fmt: skip
def approve_correction(call: Call) -> dict[str, Any]:
    return call.corrector.record(call.corrector.review(_id(call), approved=True))


@api.operation("POST", "/v1/corrections/{id}/reject", "Leave a correction that waits for review to its author",
               _CORRECTION)  # fmt: skip
def reject_correction(call: Call) -> dict[str, Any]:
    return call.corrector.record(call.corrector.review(_id(call), approved=False))


@api.operation("POST", "/v1/documents", "Hand in a document", {"id": "9F2C...", "key": "51AB...", "state": "queued"},
               files=True, status=202)  # fmt: skip
def add_document(call: Call, given: models.DocumentRequest) -> dict[str, Any]:
    require(call.server.settings.documents, "Documents are not taken by this server")
    options = Options(columns=names_in(given.columns), bilingual=given.bilingual)
    params = TranslateParams(glossary=_glossary(call, given.glossary))
    task = new_task(call, languages_of(call, given, auto=True), params, options=options)
    return {"id": task.id, "key": task.key, **_task_record(task)}


def _task(call: Call, given: models.KeyOfDocument) -> DocumentTask:
    key = call.request.headers.get(DOCUMENT_KEY) or given.key
    task = call.server.tasks.find(call.request.path_params["id"], key)
    if task is None:
        raise ApiError(404, "There is no such document")
    return task


def _task_record(task: DocumentTask) -> dict[str, Any]:
    record: dict[str, Any] = {
        "state": task.state, "name": task.result_name, "source": task.src, "target": task.tgt, "done": task.done,
        "total": task.total,
    }  # fmt: skip
    if task.state in ("queued", "translating"):
        record["seconds_left"] = task.seconds_left
    if task.state == "done":
        record |= {"characters": task.characters, "texts": task.report.translated, "doubts": len(task.report.doubts)}
        record["in_doubt"] = [
            {
                "where": doubt.where,
                "text": doubt.text,
                "reasons": [str(one) for one in doubt.reasons],
                "warnings": [one.record() for one in doubt.reasons],
            }
            for doubt in task.report.doubts[:SHOWN_DOUBTS]
        ]
    if task.error:
        record |= ApiError(400, task.error, cause=task.cause).as_dict()
    return record


@api.operation("GET", "/v1/documents/{id}", "How far a document is",
               {"state": "translating", "done": 12, "total": 80, "seconds_left": 4}, polls=True,
               headers=(DOCUMENT_KEY,))  # fmt: skip
def document(call: Call, given: models.KeyOfDocument) -> dict[str, Any]:
    return _task_record(_task(call, given))


@api.operation("GET", "/v1/documents/{id}/result", "The translated document", "(a file)",
               media=("application/octet-stream",), headers=(DOCUMENT_KEY,))  # fmt: skip
def document_result(call: Call, given: models.KeyOfDocument) -> Response:
    return result_of(_task(call, given), "The document is not translated yet")


@api.operation("DELETE", "/v1/documents/{id}", "Give a document up, and delete it", {"removed": True},
               headers=(DOCUMENT_KEY,))  # fmt: skip
def remove_document(call: Call, given: models.KeyOfDocument) -> dict[str, bool]:
    call.server.tasks.remove(_task(call, given))
    return {"removed": True}
