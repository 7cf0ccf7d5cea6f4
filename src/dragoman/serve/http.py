"""The common ground of all APIs: bodies read within limits, errors told, requests run and given up."""

import asyncio
import functools
import json
import re
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dragoman.errors import DragomanError
from dragoman.progress import say
from dragoman.serve.scheduler import Cancelled, DeadlineExceeded, Overloaded, RequestHandle

if TYPE_CHECKING:
    from dragoman.serve.app import Server

Result = TypeVar("Result")
Handler = Callable[["Server", Request], Awaitable[Response]]

CLIENT_GONE = 499
"""The status of an answer to a client that did not wait; it sees nothing of it."""
FIELDS = 1000
"""Fields of a form, at most."""
DEPTH = 64
"""Levels of a JSON body, at most."""


@dataclass(frozen=True)
class Limits:
    """Limits of what a client may ask for."""

    body_bytes: int = 2**20
    file_bytes: int = 10 * 2**20
    text_characters: int = 5000
    batch: int = 128
    """Texts of a request."""
    alternatives: int = 10
    deadline_s: float = 8.0
    """An interactive request is answered in this time, or told that it cannot be."""
    body_s: float = 20.0
    """A body has to have come in this time."""
    requests_per_minute: int = 0
    """Of a client without a key, by its address; 0: no limit."""
    characters_per_batch: int = 0
    """Characters of all texts of a request; 0: batch times text_characters."""


class ApiError(Exception):
    """A request that is not done, with the status and a text for whoever sent it."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


ErrorShape = Callable[[int, str], dict[str, Any]]


def as_error(status: int, message: str) -> dict[str, Any]:
    """The shape of errors of LibreTranslate's API and ours."""
    return {"error": message}


def refused(error: BaseException, server: "Server") -> ApiError:
    """The answer to a client about an error."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Overloaded):
        server.metrics.rejected("overloaded")
        seconds = str(max(1, round(error.retry_after)))
        return ApiError(429, f"Slowdown: too much work waits, try again in {seconds} s", {"Retry-After": seconds})
    if isinstance(error, DeadlineExceeded):
        server.metrics.rejected("deadline")
        return ApiError(504, f"Not done within {server.limits.deadline_s:g} s: send less text at once")
    if isinstance(error, Cancelled):
        if server.stopping:
            return ApiError(503, "The server is stopping", {"Retry-After": "5"})
        return ApiError(CLIENT_GONE, "The client has gone")
    if isinstance(error, DragomanError):
        return ApiError(400, str(error))
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, str(error.detail), error.headers)
    say("".join(traceback.format_exception(error)).rstrip())
    return ApiError(500, "Internal error: the server's log has more")


def answering(shape: ErrorShape) -> Callable[[Handler], Callable[[Request], Awaitable[Response]]]:
    """A handler whose errors are answered in an API's own shape."""

    def decorate(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        @functools.wraps(handler)
        async def answer(request: Request) -> Response:
            server: Server = request.app.state.server
            try:
                return await handler(server, request)
            except Exception as error:
                told = refused(error, server)
                return JSONResponse(shape(told.status, told.message), told.status, headers=told.headers)

        return answer

    return decorate


async def body_of(server: "Server", request: Request, limit: int) -> bytes:
    """The bytes of a body. Raises ApiError for one that is too large (413) or too slow (408)."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > limit:
        raise ApiError(413, f"The body has {int(said):,} bytes: at most {limit:,} are read")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(server.limits.body_s):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise ApiError(413, f"The body is too large: at most {limit:,} bytes are read")
                chunks.append(chunk)
    except TimeoutError as error:
        raise ApiError(
            408, f"The body did not come within {server.limits.body_s:g} s", {"Connection": "close"}
        ) from error
    return b"".join(chunks)


async def parameters(server: "Server", request: Request, *, files: bool = False) -> dict[str, Any]:
    """The parameters of a request: those of the query string, and over them those of a JSON body or a form.

    A parameter that comes several times is a list. Raises ApiError for a body that cannot be read.
    """
    found: dict[str, Any] = _merged(request.query_params.multi_items())
    limits = server.limits
    body = await body_of(server, request, limits.file_bytes + limits.body_bytes if files else limits.body_bytes)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return found
    if kind == "application/json" or (kind not in _FORMS and body.lstrip()[:1] == b"{"):
        return {**found, **_json(body)}
    if kind in _FORMS:
        form = await _form(request, body, kind)
        return {**found, **_merged(form.multi_items())}
    return found


_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid JSON format") from error
    if not isinstance(found, dict):
        raise ApiError(400, "Invalid JSON format")
    if _is_deeper(found, DEPTH):
        raise ApiError(400, "Invalid JSON format: nested too deeply")
    if b"\\ud" in body.lower():
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ApiError(400, "Invalid JSON format: half a surrogate pair") from error
    return found


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


async def _form(request: Request, body: bytes, kind: str) -> FormData:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    try:
        if kind == "multipart/form-data":
            parser = MultiPartParser(
                request.headers, stream(), max_files=8, max_fields=FIELDS, max_part_size=len(body) + 1
            )
            return await parser.parse()
        # Letters that a client has not escaped are UTF-8, as the escaped ones are.
        body = re.sub(rb"[\x80-\xff]", lambda found: b"%%%02X" % found[0][0], body)
        form = await FormParser(request.headers, stream()).parse()
    except (MultiPartException, KeyError, ValueError, AssertionError) as error:
        raise ApiError(400, f"Invalid form: {error}") from error
    if len(form.multi_items()) > FIELDS:
        raise ApiError(400, f"Invalid form: more than {FIELDS} fields")
    return form


def _merged(items: "list[tuple[str, Any]]") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in items:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


async def file_in(server: "Server", given: Mapping[str, Any], name: str = "file") -> tuple[str, bytes]:
    """The name and the bytes of a file in a form. Raises ApiError where there is none, or it is empty or too large."""
    upload = given.get(name)
    if not isinstance(upload, UploadFile):
        raise ApiError(400, f"Invalid request: missing {name} parameter")
    data = await upload.read()
    await upload.close()
    if not upload.filename or not data:
        raise ApiError(400, "Invalid request: empty file")
    if len(data) > server.limits.file_bytes:
        raise ApiError(413, f"The file has {len(data):,} bytes: at most {server.limits.file_bytes:,} are read")
    return upload.filename, data


async def run(server: "Server", request: Request, work: Callable[[RequestHandle], Result], tokens: int) -> Result:
    """The result of `work`, done in a thread with a handle that ends at the deadline, or when the client goes away.

    `tokens`: how much work it is. Raises Overloaded at once where too much waits.
    """
    handle = RequestHandle(server.service.scheduler, time.monotonic() + server.limits.deadline_s)
    with server.service.scheduler.admitted(tokens):
        working = asyncio.get_running_loop().run_in_executor(server.threads, work, handle)
        watching = asyncio.ensure_future(_gone(request))
        both: set[asyncio.Future[Any]] = {working, watching}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                handle.cancel()
            return await working
        except asyncio.CancelledError:
            handle.cancel()
            raise
        finally:
            watching.cancel()


async def _gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def text_of(value: Any, name: str) -> str:
    """A parameter that is a text. Raises ApiError for another."""
    if not isinstance(value, str):
        raise ApiError(400, f"Invalid request: {name} must be a text")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ApiError(400, f"Invalid request: {name} holds half a surrogate pair")
    return value


def new_threads() -> ThreadPoolExecutor:
    """Threads that requests wait in: most of the time for the engine."""
    return ThreadPoolExecutor(max_workers=64, thread_name_prefix="request")
