"""LibreTranslate's API, for the clients that speak it (docs.libretranslate.com; the routes of version 1.6).

On purpose other than there: HTML comes back escaped as it was, the case and the final mark of a text are the model's,
`auto` identifies the language of each text of a list by itself, and a wrong `alternatives` is answered with 400.
"""

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic_core import ErrorDetails
from starlette.responses import FileResponse, Response

from dragoman.formats.document import SUFFIXES
from dragoman.languages.codes import names_of
from dragoman.serve.api import Api, Call, Load
from dragoman.serve.documents import DocumentTask
from dragoman.serve.errors import CLIENT_GONE, ApiError
from dragoman.serve.requests import check_size, correction, detect, new_task, planned, require, served_pair
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, TranslateParams

Text = Annotated[str, Field(examples=["Ich möchte ein Bier."])]
Texts = Annotated[str | list[str], Field(examples=["Ich möchte ein Bier."])]
Source = Annotated[str, Field(examples=["de"])]
Target = Annotated[str, Field(examples=["en"])]


class DetectRequest(BaseModel):
    q: Texts


class Pair(BaseModel):
    source: Source
    target: Target


class TranslateRequest(BaseModel):
    q: Texts
    source: Source
    target: Target
    alternatives: int = 0
    format: str = "text"


class Suggestion(BaseModel):
    q: Text
    s: Annotated[str, Field(examples=["I would like a beer."])]
    source: Source
    target: Target


def error_body(error: ApiError) -> dict[str, Any]:
    return {"error": error.message}


def _complaint(error: ErrorDetails) -> str:
    name = error["loc"][0]
    if error["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    kind = "not a number" if error["type"].startswith(("int_", "finite_")) else "not a text"
    return f"Invalid request: {name} parameter is {kind}"


api = Api("LibreTranslate", error_body, _complaint, absent=(None, "", []), key_in_body=True)


@api.operation("POST", "/translate", "Translate; q is a text or a list",
               {"translatedText": "I would like a beer.", "alternatives": ["I want a beer."],
                "detectedLanguage": {"confidence": 99, "language": "de"}}, translates=True)  # fmt: skip
def translate(call: Call, given: TranslateRequest) -> Awaitable[dict[str, Any]]:
    most = call.server.limits.alternatives
    if given.alternatives > most:
        raise ApiError(400, f"Invalid request: alternatives parameter must be <= {most}")
    texts = given.q if isinstance(given.q, list) else [given.q]
    check_size(call.server, texts)
    src, tgt = _languages(call, given.source, given.target)
    kind = given.format.lower()
    if kind not in ("text", "html"):
        raise ApiError(400, f"{kind} format is not supported")
    _require_route(call, src, tgt)
    alternatives = max(0, given.alternatives)
    params = TranslateParams(kind="html" if kind == "html" else "text", alternatives=alternatives)
    work, load = planned(call, texts, src, tgt, params)

    def answer(handle: RequestHandle) -> dict[str, Any]:
        answers = work(handle)
        record: dict[str, list[Any]] = {"translatedText": [answer.item.best.text for answer in answers]}
        if src == AUTO:
            record["detectedLanguage"] = [
                {"confidence": round(100 * answer.detected.confidence), "language": answer.detected.language}
                for answer in answers
                if answer.detected is not None
            ]
        if alternatives:
            record["alternatives"] = [answer.item.alternatives for answer in answers]
        return record if isinstance(given.q, list) else {name: values[0] for name, values in record.items()}

    return call.run(answer, load)


def _languages(call: Call, source: str, target: str) -> tuple[str, str]:
    """The languages of a request, as they are served."""
    src, tgt = served_pair(call.server, source, target)
    if src is None or tgt is None:
        raise ApiError(400, f"{source if src is None else target} is not supported")
    return src, tgt


def _require_route(call: Call, src: str, tgt: str) -> None:
    if src not in (AUTO, tgt) and tgt not in call.server.service.languages().get(src, ()):
        names = names_of([src, tgt])
        raise ApiError(400, f"{names[tgt]} ({tgt}) is not available as a target language from {names[src]} ({src})")


@api.operation("POST", "/detect", "Identify the language of a text", [{"confidence": 99, "language": "de"}])
def detect_language(call: Call, given: DetectRequest) -> Awaitable[list[dict[str, Any]]]:
    text = given.q[0] if isinstance(given.q, list) else given.q
    check_size(call.server, [text])

    def work(handle: RequestHandle) -> list[dict[str, Any]]:
        guesses = detect(call, text)
        return [{"confidence": round(100 * one.confidence), "language": one.language} for one in guesses]

    return call.run(work, Load(0, len(text)))


@api.operation("GET", "/languages", "Languages and their targets",
               [{"code": "de", "name": "German", "targets": ["de", "en"]}], public=True)  # fmt: skip
def languages(call: Call) -> list[dict[str, Any]]:
    """Names are in the language of the reader, as there (`Accept-Language`)."""
    known = call.server.service.languages()
    names = names_of(known, call.reader)
    return [{"code": code, "name": names[code], "targets": sorted({code, *known[code]})} for code in known]


@api.operation("POST", "/translate_file", "Translate a file; answers when it is done",
               {"translatedFileUrl": "http://localhost:5000/download_file/..."}, files=True)  # fmt: skip
def translate_file(call: Call, given: Pair) -> Awaitable[dict[str, str]]:
    """The document of a client that goes away is dropped."""
    require(call.server.settings.documents, "Files translation are disabled on this server.")
    src, tgt = _languages(call, given.source, given.target)
    _require_route(call, src, tgt)
    return _finished(call, new_task(call, (src, tgt), complaint="Invalid request: "))


async def _finished(call: Call, task: DocumentTask) -> dict[str, str]:
    while not task.ended:
        await asyncio.sleep(0.05)
        if await call.request.is_disconnected():
            await asyncio.to_thread(call.server.tasks.remove, task)
            raise ApiError(CLIENT_GONE, "The client has gone")
    if task.state == "error":
        raise ApiError(400, f"Invalid request: {task.error}", cause=task.cause)
    url = f"{str(call.request.base_url).rstrip('/')}/download_file/{task.id}-{task.key}{task.result.suffix}"
    return {"translatedFileUrl": url}


@api.operation("GET", "/download_file/{name}", "A translated file, by its link", "(a file)", public=True,
               media=("application/octet-stream",))  # fmt: skip
def download_file(call: Call) -> Response:
    """The link holds the document's secret, so that nobody guesses another's."""
    id, _, rest = call.request.path_params["name"].partition("-")
    key, dot, suffix = rest.partition(".")
    task = call.server.tasks.find(id, key)
    if task is None or task.state != "done" or dot + suffix != task.result.suffix:
        raise ApiError(404, "Invalid filename")
    return FileResponse(task.result, filename=task.result_name, media_type="application/octet-stream")


@api.operation("POST", "/suggest", "Suggest a better translation", {"success": True})
def suggest(call: Call, given: Suggestion) -> dict[str, bool]:
    call.corrector.require("Suggestions are disabled on this server.")
    call.corrector.add(correction(call.server, given.source, given.target, given.q, given.s))
    return {"success": True}


@api.operation("GET", "/frontend/settings", "What a page has to know", {"charLimit": 5000}, public=True)
def frontend_settings(call: Call) -> dict[str, Any]:
    server = call.server
    first = next(iter(server.service.runs), None)
    names = names_of(server.service.languages(), call.reader)
    source, target = ({"code": code, "name": names[code]} for code in first) if first else (None, None)
    return {
        "charLimit": server.limits.text_characters or -1,
        "frontendTimeout": 400,
        "apiKeys": server.settings.key_required,
        "keyRequired": server.settings.key_required,
        "suggestions": call.corrector.may_correct,
        "filesTranslation": server.settings.documents,
        "supportedFilesFormat": SUFFIXES,
        "language": {"source": source, "target": target},
    }
