"""Dragoman's own API: translations with everything that is known of them, parts of long texts as they come, words to
choose from, corrections, documents."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dragoman.formats.bitext import tmx_of
from dragoman.formats.document import SUFFIXES
from dragoman.languages.codes import name_of
from dragoman.serve.clients import Client
from dragoman.serve.documents import Job
from dragoman.serve.http import ApiError, answering, as_error, file_in, parameters, refused, run, text_of
from dragoman.serve.requests import Answer, check_size, correction, detect, language, new_job, result_of, translated
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, Choices, Sentence, Translated
from dragoman.text.glossary import Glossary

if TYPE_CHECKING:
    from dragoman.serve.app import Server

MAX_TERMS = 1000
"""Terms of a glossary that comes with a request."""
CHUNK = 400
"""Characters from which on lines of a streamed text make a part of their own."""


async def _asked(server: "Server", request: Request, *, files: bool = False) -> tuple[dict[str, Any], Client]:
    given = await parameters(server, request, files=files)
    return given, server.gate.authenticate(request, given.get("api_key"))


def languages_of(server: "Server", given: Mapping[str, Any], *, auto: bool) -> tuple[str, str]:
    """The languages of a request, as they are served. Raises ApiError for others."""
    found = []
    for name in ("source", "target"):
        code = given.get(name)
        if not code and name == "source" and auto:
            code = AUTO
        if not code:
            raise ApiError(400, f"{name}: missing: give a language code")
        code = text_of(code, name)
        known: str | None = AUTO if auto and name == "source" and code.lower() == AUTO else language(server, code)
        if known is None:
            served = ", ".join(sorted(server.service.languages()))
            raise ApiError(400, f"{name}: {code!r} is not served; there are {served}")
        found.append(known)
    src, tgt = found
    if src not in (AUTO, tgt) and tgt not in server.service.languages().get(src, ()):
        raise ApiError(400, f"{src} to {tgt}: no model for it")
    return src, tgt


def choices_of(given: Mapping[str, Any], limit: int) -> Choices:
    """The wishes of a request. Raises ApiError, naming the parameter, for what cannot be meant."""
    kind = given.get("format", "text")
    if kind not in ("text", "html", "xml"):
        raise ApiError(400, f"format: {kind!r}: text, html or xml")
    beam = given.get("beam_size")
    return Choices(
        kind=kind,
        alternatives=_number(given, "alternatives", 0, limit) or 0,
        glossary=_glossary(given.get("glossary")),
        prefix=text_of(given.get("prefix") or "", "prefix"),
        memory=_flag(given, "memory", True),
        split=None if given.get("split") in (None, "auto") else _flag(given, "split", True),
        beam_size=None if beam is None else _number(given, "beam_size", 1, 16),
    )


def _number(given: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = given.get(name, least)
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise ApiError(400, f"{name}: {value!r} is no number") from error
    if not least <= number <= most:
        raise ApiError(400, f"{name}: {number}: from {least} to {most}")
    return number


def _flag(given: Mapping[str, Any], name: str, default: bool) -> bool:
    value = given.get(name, default)
    if isinstance(value, bool):
        return value
    known = {"true": True, "1": True, "false": False, "0": False, "always": True, "never": False}
    if str(value).lower() not in known:
        raise ApiError(400, f"{name}: {value!r}: true or false")
    return known[str(value).lower()]


def _glossary(value: Any) -> Glossary | None:
    """Terms as an object, or as text of two columns."""
    if not value:
        return None
    if isinstance(value, str):
        rows = [line.split("\t") for line in value.splitlines() if line.strip()]
        if any(len(row) > 2 for row in rows):
            raise ApiError(400, "glossary: a line is a term, a tab, its translation")
        value = {row[0].strip(): row[-1].strip() for row in rows}
    if not isinstance(value, dict) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise ApiError(400, "glossary: an object of terms and translations, or lines of two columns")
    if len(value) > MAX_TERMS:
        raise ApiError(400, f"glossary: {len(value):,} terms: at most {MAX_TERMS:,}")
    if not all(text.strip() for pair in value.items() for text in pair):
        raise ApiError(400, "glossary: an empty term")
    return Glossary(value)


@answering(as_error)
async def languages(server: "Server", request: Request) -> Response:
    return JSONResponse(
        [
            {"code": code, "name": name_of(code), "targets": targets}
            for code, targets in server.service.languages().items()
        ]
    )


@answering(as_error)
async def limits(server: "Server", request: Request) -> Response:
    known = server.limits
    return JSONResponse(
        {
            "text_characters": known.text_characters,
            "batch": known.batch,
            "file_bytes": known.file_bytes,
            "alternatives": known.alternatives,
            "deadline_seconds": known.deadline_s,
            "requests_per_minute": known.requests_per_minute,
            "key_required": server.settings.key_required,
            "corrections": server.settings.suggestions,
            "documents": server.settings.documents,
            "formats": SUFFIXES,
        }
    )


@answering(as_error)
async def translate(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    texts, is_list = _texts(given)
    check_size(server, texts)
    src, tgt = languages_of(server, given, auto=True)
    choices = choices_of(given, server.limits.alternatives)
    answers = await translated(server, request, client, texts, src, tgt, choices)
    wanted = {name: _flag(given, name, False) for name in ("alignments", "warnings", "confidence")}

    def work(handle: RequestHandle) -> list[Details]:
        return [
            _details(server, handle, text, tgt, answer, links=wanted["alignments"], confidence=wanted["confidence"])
            for text, answer in zip(texts, answers, strict=True)
        ]

    needed = wanted["alignments"] or wanted["confidence"]
    details = await run(server, request, work, 0) if needed else [Details()] * len(answers)
    records = [
        _record(server, text, tgt, answer, found, warnings=wanted["warnings"])
        for text, answer, found in zip(texts, answers, details, strict=True)
    ]
    return JSONResponse({"translations": records} if is_list else records[0])


def _texts(given: Mapping[str, Any]) -> tuple[list[str], bool]:
    value = given.get("text", given.get("texts"))
    if value is None:
        raise ApiError(400, "text: missing: give a text, or a list of them")
    if isinstance(value, list):
        return [text_of(item, "text") for item in value], True
    return [text_of(value, "text")], False


class Details(NamedTuple):
    """Links of words, and their confidence, where these were asked for."""

    links: Sequence[tuple[int, int, int, int]] | None = None
    confidence: Sequence[tuple[int, int, float]] | None = None


def _details(
    server: "Server", handle: RequestHandle, text: str, tgt: str, answer: Answer, *, links: bool, confidence: bool
) -> Details:
    if answer.src == tgt:
        return Details([] if links else None, [] if confidence else None)
    asked = handle, answer.src, tgt, text, answer.item
    return Details(
        server.service.alignment(*asked) if links else None,
        server.service.confidence(*asked) if confidence else None,
    )


def _record(
    server: "Server", text: str, tgt: str, answer: Answer, details: Details, *, warnings: bool
) -> dict[str, Any]:
    item = answer.item
    record: dict[str, Any] = {"text": item.text, "source": answer.src, "target": tgt}
    if answer.detected is not None:
        record["detected"] = {"language": answer.detected.language, "confidence": round(answer.detected.confidence, 4)}
    record |= {"score": item.score, "log_prob": item.log_prob, "alternatives": list(item.alternatives)}
    record |= {"notes": [one.record() for one in item.notes], "sentences": _sentences(item)}
    if details.links is not None:
        record["alignments"] = [list(link) for link in details.links]
    if details.confidence is not None:
        record["confidence"] = [list(word) for word in details.confidence]
    if warnings:
        found = [] if answer.src == tgt else server.service.warnings(answer.src, tgt, text, item.text)
        record["warnings"] = [one.record() for one in found]
        record["memory"] = [
            {"source": match.src, "target": match.tgt, "similarity": round(match.similarity, 4)}
            for match in server.service.similar(answer.src, tgt, text)
        ]
    return record


def _sentences(item: Translated) -> list[list[int]]:
    """Characters from and to in the source, and in the translation."""
    return [[*one.src, *one.tgt] for one in item.sentences]


def parts_of(text: str) -> list[str]:
    """Parts of a text to be translated one after another, cut at the ends of lines.

    >>> [len(part) for part in parts_of("a" * 300 + chr(10) + "b" * 300 + chr(10) + "c")]
    [602, 1]
    """
    parts: list[str] = []
    for line in text.splitlines(keepends=True):
        if parts and len(parts[-1]) < CHUNK:
            parts[-1] += line
        else:
            parts.append(line)
    return parts


@answering(as_error)
async def stream(server: "Server", request: Request) -> Response:
    """Server-sent events: `part` for each part of the text, then `details`, then `done`."""
    given, client = await _asked(server, request)
    text = text_of(given.get("text", ""), "text")
    check_size(server, [text])
    src, tgt = languages_of(server, given, auto=True)
    choices = choices_of(given, server.limits.alternatives)
    if choices.kind != "text":
        raise ApiError(400, "format: text alone comes in parts")
    detected = detect(server, text)[0] if src == AUTO else None
    code = src if detected is None else detected.language
    parts = parts_of(text)
    first = Answer(Translated(""), code, detected)
    if parts:  # whatever is refused is refused with a status of its own, before the stream begins
        [answer] = await translated(server, request, client, parts[:1], code, tgt, choices)
        first = answer._replace(detected=detected)

    events = _events(server, request, client, parts, first, tgt, choices)
    return StreamingResponse(
        events, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


async def _events(
    server: "Server",
    request: Request,
    client: Client,
    parts: Sequence[str],
    first: Answer,
    tgt: str,
    choices: Choices,
) -> AsyncIterator[str]:
    """The events of a stream; `first` is the answer to the first part."""
    whole, src_at, code = first._replace(item=Translated("")), 0, first.src
    try:
        for number, part in enumerate(parts):
            answer = first
            if number:
                [answer] = await translated(server, request, client, [part], code, tgt, choices)
            moved = _moved(answer.item, src_at, len(whole.item.text))
            yield _event(
                "part",
                {
                    "text": answer.item.text,
                    "sentences": _sentences(moved),
                    "alternatives": list(answer.item.alternatives),
                    "notes": [one.record() for one in answer.item.notes],
                    "source": code,
                    "detected": None if first.detected is None else first.detected._asdict(),
                },
            )
            item = Translated(whole.item.text + answer.item.text, sentences=(*whole.item.sentences, *moved.sentences))
            whole = whole._replace(item=item)
            src_at += len(part)
        text = "".join(parts)
        if code != tgt and text.strip():
            details = await run(
                server,
                request,
                lambda handle: _details(server, handle, text, tgt, whole, links=True, confidence=True),
                0,
            )
            yield _event("details", _record(server, text, tgt, whole, details, warnings=True))
        yield _event("done", {})
    except asyncio.CancelledError:
        raise
    except Exception as error:
        told = refused(error, server)
        yield _event("error", {"status": told.status, "error": told.message})


def _moved(item: Translated, src_at: int, tgt_at: int) -> Translated:
    """A translation whose sentences stand further back in both texts."""
    sentences = tuple(
        Sentence((one.src[0] + src_at, one.src[1] + src_at), (one.tgt[0] + tgt_at, one.tgt[1] + tgt_at))
        for one in item.sentences
    )
    return replace(item, sentences=sentences)


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


@answering(as_error)
async def words(server: "Server", request: Request) -> Response:
    """Other translations of a sentence that begin alike: what else could stand at a word."""
    given, _ = await _asked(server, request)
    text = text_of(given.get("text", ""), "text")
    check_size(server, [text])
    src, tgt = languages_of(server, given, auto=False)
    prefix = text_of(given.get("prefix") or "", "prefix")
    check_size(server, [prefix])
    count = _number({"count": 6, **given}, "count", 1, server.limits.alternatives)
    service = server.service
    found = await run(
        server,
        request,
        lambda handle: service.words_instead(handle, src, tgt, text, prefix, count),
        4 * service.tokens(src, tgt, [text]),
    )
    return JSONResponse({"translations": [{"text": item.text, "score": item.score} for item in found]})


@answering(as_error)
async def detect_languages(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    texts, is_list = _texts(given)
    check_size(server, texts)
    found = [
        [{"language": one.language, "confidence": round(one.confidence, 4)} for one in detect(server, text)]
        for text in texts
    ]
    return JSONResponse(found if is_list else found[0])


def _require_corrections(server: "Server") -> None:
    if not server.settings.suggestions:
        raise ApiError(403, "Corrections are not taken by this server")


@answering(as_error)
async def add_correction(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    _require_corrections(server)
    for name in ("text", "translation", "source", "target"):
        if not isinstance(given.get(name), str) or not given[name].strip():
            raise ApiError(400, f"{name}: missing")
    server.correct(correction(server, given, "text", "translation"), client.name)
    return JSONResponse({"kept": True})


@answering(as_error)
async def corrections(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    _require_corrections(server)
    src, tgt = (language(server, str(given.get(name, ""))) or "" for name in ("source", "target"))
    found = server.store.corrections(src, tgt)
    if given.get("format") == "tmx":
        if not (src and tgt):
            raise ApiError(400, "a TMX is of two languages: give source and target")
        data = tmx_of([(item.src, item.tgt) for item in found], src, tgt)
        name = f"corrections.{src}-{tgt}.tmx"
        return Response(
            data, media_type="application/x-tmx+xml", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )
    return JSONResponse(
        [{"source": one.src_lang, "target": one.tgt_lang, "text": one.src, "translation": one.tgt} for one in found]
    )


@answering(as_error)
async def forget_correction(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    _require_corrections(server)
    src, tgt = languages_of(server, given, auto=False)
    if not server.forget(src, tgt, text_of(given.get("text", ""), "text").strip()):
        raise ApiError(404, "There is no correction of this text")
    return JSONResponse({"forgotten": True})


@answering(as_error)
async def add_document(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request, files=True)
    if not server.settings.documents:
        raise ApiError(403, "Documents are not taken by this server")
    name, data = await file_in(server, given)
    src, tgt = languages_of(server, given, auto=True)
    job = new_job(server, client, (name, data), (src, tgt), _glossary(given.get("glossary")))
    return JSONResponse({"id": job.id, "key": job.key, **_job_record(job)}, 202)


def _job(server: "Server", request: Request, given: Mapping[str, Any]) -> Job:
    job = server.jobs.job(request.path_params["id"])
    if job is None or given.get("key") != job.key:
        raise ApiError(404, "There is no such document")
    return job


def _job_record(job: Job) -> dict[str, Any]:
    record: dict[str, Any] = {"state": job.state, "name": job.result_name, "done": job.done, "total": job.total}
    if job.state in ("queued", "translating"):
        record["seconds_left"] = job.seconds_left
    if job.state == "done":
        record |= {"characters": job.characters, "texts": job.texts, "doubts": job.doubts}
    if job.error:
        record["error"] = job.error
    return record


@answering(as_error)
async def document(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    return JSONResponse(_job_record(_job(server, request, given)))


@answering(as_error)
async def document_result(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    return result_of(_job(server, request, given), "The document is not translated yet")


@answering(as_error)
async def remove_document(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    server.jobs.remove(_job(server, request, given))
    return JSONResponse({"removed": True})


ROUTES = [
    Route("/v1/languages", languages, methods=["GET"]),
    Route("/v1/limits", limits, methods=["GET"]),
    Route("/v1/translate", translate, methods=["POST"]),
    Route("/v1/translate/stream", stream, methods=["GET", "POST"]),
    Route("/v1/words", words, methods=["POST"]),
    Route("/v1/detect", detect_languages, methods=["POST"]),
    Route("/v1/corrections", add_correction, methods=["POST"]),
    Route("/v1/corrections", corrections, methods=["GET"]),
    Route("/v1/corrections", forget_correction, methods=["DELETE"]),
    Route("/v1/documents", add_document, methods=["POST"]),
    Route("/v1/documents/{id}", document, methods=["GET"]),
    Route("/v1/documents/{id}", remove_document, methods=["DELETE"]),
    Route("/v1/documents/{id}/result", document_result, methods=["GET"]),
]
