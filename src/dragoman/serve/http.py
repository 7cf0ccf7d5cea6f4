"""Bodies of HTTP requests, read within limits, and the parameters and files in them."""

import asyncio
import codecs
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote_to_bytes

from pydantic_core import from_json
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request

from dragoman.serve.errors import ApiError
from dragoman.serve.settings import Limits

MAX_FIELDS = 1000
"""Fields of a form, at most."""
_PART = re.compile(r"(\w+)\[(\w*)\](?:\.(\w+))?")
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


def route_path(request: Request) -> str:
    """The address that a request asks for, without the path that the server stands under."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", "")) or "/"


def body_length(request: Request) -> int:
    """The number of bytes that a body is to have; 0 where its client does not say so."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() else 0


async def read_body(request: Request, limits: Limits, take: Callable[[int], bool], *, files: bool) -> bytes:
    """The bytes of a body. `take`: takes room for some; False where there is none.

    Raises ApiError for a body that is too large (413), too slow (408), or too much beside others (429).
    """
    most = limits.body_bytes + (limits.file_bytes if files else 0)
    if (length := body_length(request)) > most:
        raise ApiError(413, f"The body has {length:,} bytes: at most {most:,} are read")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise ApiError(413, f"The body is too large: at most {most:,} bytes are read")
                if not take(len(chunk)):
                    raise ApiError(429, "Slowdown: too much is sent at the same time", {"Connection": "close"})
    except TimeoutError as error:
        raise ApiError(
            408, f"The body did not come within {limits.body_seconds:g} s", {"Connection": "close"}
        ) from error
    return bytes(body)


def parameters_of(request: Request, body: bytes) -> dict[str, Any]:
    """The parameters of a request: from the query string and the body (JSON or a form); the body goes first.

    A parameter that comes several times is a list. Raises ApiError for a body that cannot be read. It takes its time:
    call it in a thread.
    """
    _decoded(unquote_to_bytes(request.scope["query_string"]))
    parameters = _merged(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        return parameters | _nested(_merged(asyncio.run(_form(request, body, kind)))) if body else parameters
    if body and (kind == "application/json" or body.lstrip()[:1] == b"{"):
        return parameters | _json(body)
    return parameters


def _json(body: bytes) -> dict[str, Any]:
    try:
        parameters = from_json(body.removeprefix(codecs.BOM_UTF8), allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, "Invalid JSON format") from error
    if not isinstance(parameters, dict):
        raise ApiError(400, "Invalid JSON format")
    return parameters


def _decoded(data: bytes) -> str:
    """The text of bytes. Raises ApiError for bytes that are not UTF-8: letters in the place of others would be
    translated, and half surrogates cannot be written anywhere."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ApiError(400, f"Invalid request: not UTF-8: byte {data[error.start]:#04x}") from error


async def _form(request: Request, body: bytes, kind: str) -> Sequence[tuple[str, Any]]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    try:
        if kind == "multipart/form-data":
            # The parser decodes with any codec that a client names, or guesses: let it give the bytes back.
            headers = Headers({"content-type": f"{request.headers['content-type']}; charset=latin-1"})
            parser = MultiPartParser(headers, stream(), max_files=8, max_fields=MAX_FIELDS, max_part_size=len(body) + 1)
            return _as_sent(await parser.parse())
        _decoded(unquote_to_bytes(body))
        # Letters that a client has not escaped are UTF-8, as the escaped ones are.
        body = re.sub(rb"[\x80-\xff]", lambda match: b"%%%02X" % match[0][0], body)
        form = await FormParser(request.headers, stream()).parse()
    except (MultiPartException, KeyError, ValueError, AssertionError) as error:
        raise ApiError(400, f"Invalid form: {error}") from error
    if len(form.multi_items()) > MAX_FIELDS:
        raise ApiError(400, f"Invalid form: more than {MAX_FIELDS} fields")
    return form.multi_items()


def _as_sent(form: FormData) -> list[tuple[str, Any]]:
    """The fields of a form whose letters stand for bytes. A file's name, which is only shown, may have any bytes."""
    fields: list[tuple[str, Any]] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            value.filename = (value.filename or "").encode("latin-1").decode(errors="replace")
        else:
            value = _decoded(value.encode("latin-1"))
        fields.append((_decoded(name.encode("latin-1")), value))
    return fields


def _merged(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {}
    for name, value in items:
        values.setdefault(name, []).append(value)
    return {name: several if len(several) > 1 else several[0] for name, several in values.items()}


def _nested(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a form, with parts of a field put together: `text[]`, `text[0]`, and
    `dictionaries[0].source_lang`, as deepl-node sends it."""
    whole: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        if (match := _PART.fullmatch(name)) is None:
            whole[name] = value
            continue
        outer, place, inner = match.groups()
        if inner:
            parts.setdefault(outer, {}).setdefault(place, {})[inner] = value
        else:
            parts.setdefault(outer, {}).update({f"{place} {row}": one for row, one in enumerate(as_list(value))})
    return {name: list(several.values()) for name, several in parts.items()} | whole


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@contextmanager
def closing_files(parameters: Mapping[str, Any]) -> Iterator[None]:
    """Close the files of a form, whether they were read or not."""
    try:
        yield
    finally:
        for value in parameters.values():
            for one in as_list(value):
                if isinstance(one, UploadFile):
                    one.file.close()


def file_of(parameters: Mapping[str, Any], limits: Limits) -> tuple[str, bytes]:
    """The name and the bytes of the file in a form. Raises ApiError if there is none or it does not fit."""
    upload = parameters.get("file")
    if not isinstance(upload, UploadFile):
        raise ApiError(400, "Invalid request: missing file parameter")
    data = upload.file.read()
    if not upload.filename or not data:
        raise ApiError(400, "Invalid request: empty file")
    if len(data) > limits.file_bytes:
        raise ApiError(413, f"The file has {len(data):,} bytes: at most {limits.file_bytes:,} are read")
    return upload.filename, data
