"""A request for translations, as all APIs understand it: checked, counted, its languages told, and done."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from dragoman.errors import DragomanError
from dragoman.languages.identification import likely_languages
from dragoman.serve.clients import Client
from dragoman.serve.documents import Job, TooMany
from dragoman.serve.http import ApiError, run, text_of
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, Choices, Translated, same_language
from dragoman.serve.store import Correction
from dragoman.text.glossary import Glossary

if TYPE_CHECKING:
    from dragoman.serve.app import Server


ALIASES = {"pb": "pt-BR", "zh": "zh-Hans", "zt": "zh-Hant"}
"""LibreTranslate's codes for languages that have others elsewhere; both are understood."""


def language(server: "Server", code: str) -> str | None:
    """The served language that a client's code stands for."""
    known = {one for pair in server.service.runs for one in pair}
    lower = code.lower()
    for alias, full in ALIASES.items():
        if lower in (alias, full.lower()):
            return next((one for one in (full, alias) if one in known), None) or same_language(alias, known)
    return same_language(code, known)


class Detected(NamedTuple):
    """A language, and how sure that is, from 0 to 1."""

    language: str
    confidence: float


class Answer(NamedTuple):
    """A translation, the language of its source, and how that was told where it was not given."""

    item: Translated
    src: str
    detected: Detected | None


def detect(server: "Server", text: str) -> list[Detected]:
    """The languages that a text may be in, of those that are served, best first; at least one."""
    return [Detected(*found) for found in likely_languages(text, tuple(server.service.languages()))]


def check_size(server: "Server", texts: Sequence[str]) -> None:
    """Raises ApiError for more texts, or longer ones, than are translated at once."""
    limits = server.limits
    if len(texts) > limits.batch:
        raise ApiError(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({limits.batch})")
    longest = max(map(len, texts), default=0)
    if limits.text_characters and longest > limits.text_characters:
        raise ApiError(400, f"Invalid request: request ({longest}) exceeds text limit ({limits.text_characters})")
    if limits.characters_per_batch and sum(map(len, texts)) > limits.characters_per_batch:
        total = sum(map(len, texts))
        raise ApiError(400, f"Invalid request: request ({total}) exceeds text limit ({limits.characters_per_batch})")


async def translated(
    server: "Server", request: Request, client: Client, texts: Sequence[str], src: str, tgt: str, choices: Choices
) -> list[Answer]:
    """The answers to texts, in their order; with `src` `auto` the language of each of them is told by itself.

    Raises ApiError, Overloaded, DeadlineExceeded, and DragomanError for languages that are not served.
    """
    service = server.service
    detected = [detect(server, text)[0] if src == AUTO else None for text in texts]
    languages = [src if found is None else found.language for found in detected]
    groups: dict[str, list[int]] = {}
    for place, code in enumerate(languages):
        if code != tgt and texts[place].strip():
            groups.setdefault(code, []).append(place)
    tokens = sum(service.tokens(code, tgt, [texts[place] for place in places]) for code, places in groups.items())
    server.gate.count_quota(client, sum(map(len, texts)))

    def work(handle: RequestHandle) -> dict[int, Translated]:
        found: dict[int, Translated] = {}
        for code, places in groups.items():
            items = service.translate(handle, code, tgt, [texts[place] for place in places], choices)
            found.update(zip(places, items, strict=True))
        return found

    items = await run(server, request, work, tokens) if groups else {}
    return [
        Answer(items.get(place) or Translated(text), code, found)
        for place, (text, code, found) in enumerate(zip(texts, languages, detected, strict=True))
    ]


def new_job(
    server: "Server",
    client: Client,
    document: tuple[str, bytes],
    languages: tuple[str, str],
    glossary: Glossary | None = None,
    complaint: str = "",
) -> Job:
    """Queue a document, (name, bytes). Raises ApiError: 429 where too many wait, 400 for one that cannot be read, which
    begins with `complaint`."""
    try:
        return server.jobs.add(*document, *languages, glossary, lambda count: server.gate.count_quota(client, count))
    except TooMany as error:
        raise ApiError(429, "Slowdown: too many documents wait", {"Retry-After": "30"}) from error
    except DragomanError as error:
        raise ApiError(400, f"{complaint}{error}") from error


def correction(server: "Server", given: Mapping[str, Any], src_name: str, tgt_name: str) -> Correction:
    """A correction in a request. Raises ApiError for languages that are not served, or texts that are too long."""
    texts = text_of(given[src_name], src_name), text_of(given[tgt_name], tgt_name)
    check_size(server, texts)
    codes = [language(server, text_of(given[name], name)) for name in ("source", "target")]
    for name, code in zip(("source", "target"), codes, strict=True):
        if code is None:
            raise ApiError(400, f"{given[name]} is not supported")
    assert codes[0] is not None
    assert codes[1] is not None
    return Correction(codes[0], codes[1], texts[0].strip(), texts[1].strip())


def result_of(job: Job, waiting: str) -> Response:
    """The file of a translated document. Raises ApiError: 400 if that failed, 503 (`waiting`) if it is not done."""
    if job.state == "error":
        raise ApiError(400, job.error)
    if job.state != "done":
        raise ApiError(503, waiting, {"Retry-After": str(job.seconds_left)})
    return FileResponse(job.result, filename=job.result_name, media_type="application/octet-stream")
