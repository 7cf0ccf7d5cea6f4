"""A request for translations, as all APIs understand it: checked, counted, its languages identified, and done."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from starlette.responses import FileResponse, Response

from dragoman.cancellation import check
from dragoman.errors import DragomanError, Error
from dragoman.formats.base import Options
from dragoman.languages.codes import closest, names_of
from dragoman.languages.identification import likely_languages, source_language
from dragoman.pipeline.memory import in_lines
from dragoman.pipeline.pipeline import Translated
from dragoman.serve.api import Call, Load
from dragoman.serve.corrections import Correction
from dragoman.serve.documents import DocumentTask, NoRoom, TooMany
from dragoman.serve.errors import ApiError
from dragoman.serve.http import file_of
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, DEFAULT_OPTIONS, DEFAULT_PARAMS, TranslateParams, as_it_is
from dragoman.serve.state import Server
from dragoman.text.glossary import Glossary

MIN_NAMED_PROBABILITY = 0.01
"""Probability from which on a language is named."""


def served_pair(server: Server, source: str, target: str) -> tuple[str | None, str | None]:
    """The served languages that a client's codes stand for, None for others; `auto` stays.

    Of several variants those are taken between which there is a way: `zh` is `zh-Hant` where that alone is a source.
    """
    served = server.service.languages()
    is_auto = source.lower() == AUTO
    reached = [tgt for src, targets in served.items() if is_auto or closest(source, [src]) for tgt in targets]
    tgt = closest(target, reached) or closest(target, served)
    if is_auto:
        return AUTO, tgt
    return closest(source, [src for src in served if tgt in served[src]]) or closest(source, served), tgt


@dataclass(frozen=True)
class Detected:
    """A language, how sure it is from 0 to 1, and whether it can be translated from or to."""

    language: str
    name: str
    confidence: float
    served: bool


class Answer(NamedTuple):
    """A translation, the language of its source, and how that was told where it was not given."""

    item: Translated
    src: str
    detected: Detected | None


def detect(call: Call, text: str) -> list[Detected]:
    """The languages that a text may be in, best first; at least one. Those of little probability are left out."""
    served = list(call.server.service.languages())
    check()
    ranked = likely_languages(text, served)
    likely = [one for one in ranked if one[1] >= MIN_NAMED_PROBABILITY]
    return [_detected(one, served, call.reader) for one in likely or ranked]


def _detected(guess: tuple[str, float], served: Collection[str], reader: str) -> Detected:
    code, share = guess
    return Detected(code, names_of([*served, code], reader)[code], round(share, 4), code in served)


def sources_of(call: Call, texts: Sequence[str], tgt: str) -> list[Detected]:
    """The language that each text is to be translated from. Raises ApiError for texts that are surely in a language
    that is not served: they are never translated as another language."""
    served = call.server.service.languages()
    sources = [code for code, targets in served.items() if tgt in targets]
    detected: list[Detected] = []
    for number, text in enumerate(texts):
        check()
        one = _detected(source_language(text, sources, tgt, list(served)), served, call.reader)
        detected.append(one)
        if not one.served:
            place = f"text[{number}]: " if len(texts) > 1 else ""
            *known, name = names_of([*served, one.language]).values()
            sure = "" if one.confidence >= 0.5 else "perhaps "
            message = f"{place}{sure}{name}, which is not served here; there are {', '.join(known)}"
            details = {"detected": asdict(one), **({"item": number} if len(texts) > 1 else {})}
            raise ApiError(400, message, cause=Error.LANGUAGE_NOT_SERVED(message), details=details)
    return detected


def check_size(server: Server, texts: Sequence[str]) -> None:
    """Raises ApiError for more texts, or longer ones, than are translated at once."""
    limits = server.limits
    if len(texts) > limits.batch:
        raise ApiError(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({limits.batch})")
    sizes = [len(text) for text in texts]
    for size, most in ((max(sizes, default=0), limits.text_characters), (sum(sizes), limits.characters_per_batch)):
        if most and size > most:
            raise ApiError(400, f"Invalid request: request ({size}) exceeds text limit ({most})")


def check_terms(server: Server, glossary: Glossary) -> Glossary:
    """The glossary of a request. Raises ApiError for a term or a translation that is longer than a text may be."""
    most = server.limits.text_characters
    for side in (glossary.targets.keys(), glossary.targets.values()):
        if longest := next((text for text in side if most and len(text) > most), None):
            raise ApiError(400, f"glossary: {longest[:20]!r}... has {len(longest)} characters: at most {most}")
    return glossary


def planned(
    call: Call, texts: Sequence[str], src: str, tgt: str, params: TranslateParams
) -> tuple[Callable[[RequestHandle], list[Answer]], Load]:
    """The work that translates texts, and how much it is: what `Call.run` takes. With `src` `auto` the language of each
    text is identified by itself. Nothing is done yet: how much it is, is a guess from the number of characters.

    Raises DragomanError for languages that are not served.
    """
    service, params = call.server.service, _own(call, params)

    def work(handle: RequestHandle) -> list[Answer]:
        detected = sources_of(call, texts, tgt) if src == AUTO else [None] * len(texts)
        languages = [src if source is None else source.language for source in detected]
        groups: dict[str, list[int]] = {}
        for place, code in enumerate(languages):
            if code != tgt and texts[place].strip():
                groups.setdefault(code, []).append(place)
        items = [as_it_is(text) for text in texts]
        for code, places in groups.items():
            made = service.translate(handle, code, tgt, [texts[place] for place in places], params)
            for place, item in zip(places, made, strict=True):
                items[place] = item
        return [Answer(*answer) for answer in zip(items, languages, detected, strict=True)]

    tokens = 0 if src == tgt else service.tokens(src, tgt, texts, params)
    return work, Load(tokens, sum(map(len, texts)))


def _own(call: Call, params: TranslateParams) -> TranslateParams:
    """Choices with the corrections of the client itself."""
    return replace(params, author=call.corrector.own_author)


def new_task(
    call: Call, languages: tuple[str, str], params: TranslateParams = DEFAULT_PARAMS, name: str = "",
    complaint: str = "", options: Options = DEFAULT_OPTIONS,
) -> DocumentTask:  # fmt: skip
    """Queue the document in a request, under another `name` if one is given. Raises ApiError: 429
    where too many wait, 400 for one that cannot be read, which begins with `complaint`."""
    server = call.server
    file_name, data = file_of(call.parameters, server.limits)
    try:
        return server.tasks.add(
            name or file_name, data, *languages, _own(call, params), options, client=call.client.name,
            reserve=lambda characters: server.gate.usage.reserve(call.client.key, characters),
        )  # fmt: skip
    except NoRoom as error:
        raise ApiError(503, "No room for documents now: come back later", {"Retry-After": "300"}) from error
    except TooMany as error:
        raise ApiError(429, "Slowdown: too many documents wait", {"Retry-After": "30"}) from error
    except DragomanError as error:
        raise ApiError(400, f"{complaint}{error}", cause=error) from error


def correction(server: Server, source: str, target: str, text: str, translation: str) -> Correction:
    """A correction in a request. Raises ApiError for languages that are not served, or texts that are too long."""
    check_size(server, [text, translation])
    src, tgt = served_pair(server, source, target)
    if src is None or tgt is None:
        raise ApiError(400, f"{source if src is None else target} is not supported")
    return Correction(src, tgt, in_lines(text), translation.strip())


def require(allowed: bool, refusal: str) -> None:
    """Raises ApiError (403) for a part of the server that is switched off."""
    if not allowed:
        raise ApiError(403, refusal)


def result_of(task: DocumentTask, waiting: str) -> Response:
    """The file of a translated document. Raises ApiError: 400 if that failed, 503 (`waiting`) if it is not done."""
    if task.state == "error":
        raise ApiError(400, task.error, cause=task.cause)
    if task.state != "done":
        raise ApiError(503, waiting, {"Retry-After": str(task.seconds_left)})
    task.is_fetched = True
    return FileResponse(task.result, filename=task.result_name, media_type="application/octet-stream")
