"""LibreTranslate's API, for the clients that speak it (docs.libretranslate.com; the routes of version 1.6).

On purpose other than there: HTML comes back escaped as it was, the case and the final mark of a text are the model's,
`auto` tells the language of each text of a list by itself, and a wrong `alternatives` is answered with 400.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dragoman.formats.document import SUFFIXES
from dragoman.languages.codes import name_of
from dragoman.serve.http import ApiError, answering, as_error, file_in, parameters, text_of
from dragoman.serve.requests import check_size, correction, detect, language, new_job, translated
from dragoman.serve.service import AUTO, Choices

if TYPE_CHECKING:
    from dragoman.serve.app import Server


@answering(as_error)
async def translate(server: "Server", request: Request) -> Response:
    given = await parameters(server, request)
    client = server.gate.authenticate(request, given.get("api_key"))
    q, source, target = given.get("q"), given.get("source"), given.get("target")
    for name, value in (("q", q), ("source", source), ("target", target)):
        if not value:
            raise ApiError(400, f"Invalid request: missing {name} parameter")
    alternatives = _alternatives(server, given.get("alternatives", 0))
    is_list = isinstance(q, list)
    texts = [text_of(text, "q") for text in (q if isinstance(q, list) else [q])]
    check_size(server, texts)
    src, tgt = _languages(server, source, target)
    kind = text_of(given.get("format") or "text", "format").lower()
    if kind not in ("text", "html"):
        raise ApiError(400, f"{kind} format is not supported")
    if src not in (AUTO, tgt):
        _require_route(server, src, tgt)
    choices = Choices(kind="html" if kind == "html" else "text", alternatives=alternatives)
    answers = await translated(server, request, client, texts, src, tgt, choices)
    found: dict[str, list[Any]] = {"translatedText": [answer.item.text for answer in answers]}
    if src == AUTO:
        found["detectedLanguage"] = [
            {"confidence": round(100 * answer.detected.confidence), "language": answer.detected.language}
            for answer in answers
            if answer.detected is not None
        ]
    if alternatives:
        found["alternatives"] = [list(answer.item.alternatives) for answer in answers]
    return JSONResponse(found if is_list else {name: values[0] for name, values in found.items()})


def _languages(server: "Server", source: Any, target: Any) -> tuple[str, str]:
    """The languages of a request, as they are served."""
    source, target = text_of(source, "source"), text_of(target, "target")
    src = AUTO if source.lower() == AUTO else language(server, source)
    tgt = language(server, target)
    if src is None or tgt is None:
        raise ApiError(400, f"{source if src is None else target} is not supported")
    return src, tgt


def _alternatives(server: "Server", value: Any) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError) as error:
        raise ApiError(400, "Invalid request: alternatives parameter is not a number") from error
    if count > server.limits.alternatives:
        raise ApiError(400, f"Invalid request: alternatives parameter must be <= {server.limits.alternatives}")
    return max(0, count)


def _require_route(server: "Server", src: str, tgt: str) -> None:
    if tgt not in server.service.languages().get(src, ()):
        raise ApiError(
            400,
            f"{name_of(tgt)} ({tgt}) is not available as a target language from {name_of(src)} ({src})",
        )


@answering(as_error)
async def detect_language(server: "Server", request: Request) -> Response:
    given = await parameters(server, request)
    server.gate.authenticate(request, given.get("api_key"))
    if not given.get("q"):
        raise ApiError(400, "Invalid request: missing q parameter")
    q = given["q"]
    text = text_of(q[0] if isinstance(q, list) else q, "q")
    check_size(server, [text])
    return JSONResponse(
        [{"confidence": round(100 * found.confidence), "language": found.language} for found in detect(server, text)]
    )


@answering(as_error)
async def languages(server: "Server", request: Request) -> Response:
    return JSONResponse(
        [
            {"code": code, "name": name_of(code), "targets": sorted({code, *targets})}
            for code, targets in server.service.languages().items()
        ]
    )


@answering(as_error)
async def translate_file(server: "Server", request: Request) -> Response:
    """Answer when the document is done; a client that goes away has it dropped."""
    given = await parameters(server, request, files=True)
    client = server.gate.authenticate(request, given.get("api_key"))
    if not server.settings.documents:
        raise ApiError(403, "Files translation are disabled on this server.")
    source, target = given.get("source"), given.get("target")
    for name, value in (("source", source), ("target", target)):
        if not value:
            raise ApiError(400, f"Invalid request: missing {name} parameter")
    name, data = await file_in(server, given)
    src, tgt = _languages(server, source, target)
    if src != AUTO:
        _require_route(server, src, tgt)
    job = new_job(server, client, (name, data), (src, tgt), complaint="Invalid request: ")
    while not job.finished.is_set():
        await asyncio.sleep(0.05)
        if await request.is_disconnected():
            server.jobs.remove(job)
            raise ApiError(499, "The client has gone")
    if job.state == "error":
        raise ApiError(400, f"Invalid request: {job.error}")
    url = f"{str(request.base_url).rstrip('/')}/download_file/{job.id}-{job.key[:32]}{job.result.suffix}"
    return JSONResponse({"translatedFileUrl": url})


@answering(as_error)
async def download_file(server: "Server", request: Request) -> Response:
    """The link holds the document's secret, so that nobody guesses another's."""
    id, _, rest = request.path_params["name"].partition("-")
    job = server.jobs.job(id)
    if job is None or job.state != "done" or rest != f"{job.key[:32]}{job.result.suffix}":
        raise ApiError(404, "Invalid filename")
    return FileResponse(job.result, filename=job.result_name, media_type="application/octet-stream")


@answering(as_error)
async def suggest(server: "Server", request: Request) -> Response:
    given = await parameters(server, request)
    client = server.gate.authenticate(request, given.get("api_key"))
    if not server.settings.suggestions:
        raise ApiError(403, "Suggestions are disabled on this server.")
    for name in ("q", "s", "source", "target"):
        if not given.get(name):
            raise ApiError(400, f"Invalid request: missing {name} parameter")
    server.correct(correction(server, given, "q", "s"), client.name)
    return JSONResponse({"success": True})


@answering(as_error)
async def frontend_settings(server: "Server", request: Request) -> Response:
    codes = sorted(server.service.languages())
    first = next(iter(server.service.runs), ("", ""))
    names = [{"code": code, "name": name_of(code)} for code in first]
    return JSONResponse(
        {
            "charLimit": server.limits.text_characters or -1,
            "frontendTimeout": 400,
            "apiKeys": server.settings.key_required,
            "keyRequired": server.settings.key_required,
            "suggestions": server.settings.suggestions,
            "filesTranslation": server.settings.documents,
            "supportedFilesFormat": SUFFIXES,
            "language": {"source": names[0] if codes else None, "target": names[1] if codes else None},
        }
    )


ROUTES = [
    Route("/translate", translate, methods=["POST"]),
    Route("/detect", detect_language, methods=["POST"]),
    Route("/languages", languages, methods=["GET"]),
    Route("/translate_file", translate_file, methods=["POST"]),
    Route("/download_file/{name}", download_file, methods=["GET"]),
    Route("/suggest", suggest, methods=["POST"]),
    Route("/frontend/settings", frontend_settings, methods=["GET"]),
]
