"""A subset of DeepL's API: texts, documents, glossaries, usage (developers.deepl.com, version 2).

Formality, context, style rules and custom instructions are taken and change nothing: our models know none of them.
"""

import csv
import io
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dragoman.languages.codes import name_of
from dragoman.serve.clients import Client
from dragoman.serve.documents import Job
from dragoman.serve.http import ApiError, answering, file_in, parameters, text_of
from dragoman.serve.requests import check_size, language, new_job, result_of, translated
from dragoman.serve.service import AUTO, Choices, Kind
from dragoman.serve.store import StoredGlossary
from dragoman.text.glossary import Glossary

if TYPE_CHECKING:
    from dragoman.serve.app import Server

VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH-HANS",)}
"""Target codes of languages that have several."""
VARIANT_NAMES = {
    "EN-GB": "English (British)", "EN-US": "English (American)", "PT-BR": "Portuguese (Brazilian)",
    "PT-PT": "Portuguese (European)", "ZH-HANS": "Chinese (simplified)",
}  # fmt: skip
FORMAL = ("de", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru")
"""Languages for which a formality is taken, as DeepL does; our models have no such choice: it changes nothing."""
FORMALITIES = ("default", "more", "less", "prefer_more", "prefer_less")
NO_LIMIT = 10**12
"""Characters a month that a client without a limit is told."""


def as_error(status: int, message: str) -> dict[str, Any]:
    return {"message": message}


async def _asked(server: "Server", request: Request, *, files: bool = False) -> tuple[dict[str, Any], Client]:
    client = server.gate.authenticate(request)
    return await parameters(server, request, files=files), client


def _languages(server: "Server", given: Mapping[str, Any]) -> tuple[str, str]:
    """The languages of a request, as they are served; `auto` where no source is given."""
    target = given.get("target_lang")
    if not target:
        raise ApiError(400, "Bad request: Value for 'target_lang' missing.")
    tgt = language(server, text_of(target, "target_lang"))
    if tgt is None:
        raise ApiError(400, "Value for 'target_lang' not supported.")
    source = given.get("source_lang")
    src = AUTO if not source else language(server, text_of(source, "source_lang"))
    if src is None:
        raise ApiError(400, "Value for 'source_lang' not supported.")
    if src not in (AUTO, tgt) and tgt not in server.service.languages().get(src, ()):
        raise ApiError(400, "Value for 'target_lang' not supported.")
    return src, tgt


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _flag(value: Any) -> bool:
    return value is True or str(value) in ("1", "true", "True")


@answering(as_error)
async def translate(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    texts = [text_of(text, "text") for text in _list(given.get("text"))]
    if not texts:
        raise ApiError(400, "Bad request: Parameter 'text' not specified.")
    check_size(server, texts)
    src, tgt = _languages(server, given)
    kind: Kind = {"xml": "xml", "html": "html"}.get(given.get("tag_handling") or "", "text")  # type: ignore[assignment]
    if given.get("tag_handling") not in (None, "", "xml", "html"):
        raise ApiError(400, "Value for 'tag_handling' not supported.")
    glossary = _glossary(server, client, given, src, tgt)
    split = str(given.get("split_sentences", "1"))
    if split not in ("0", "1", "nonewlines", "True", "False"):
        raise ApiError(400, "Value for 'split_sentences' not supported.")
    formality = str(given.get("formality") or "default").lower()
    if formality not in FORMALITIES:
        raise ApiError(400, "Value for 'formality' not supported.")
    if formality in ("more", "less") and tgt not in FORMAL:
        raise ApiError(400, "Target language does not support the formality parameter.")
    choices = Choices(kind=kind, glossary=glossary, split=False if split in ("0", "False") else None)
    answers = await translated(server, request, client, texts, src, tgt, choices)
    records = []
    for text, answer in zip(texts, answers, strict=True):
        record: dict[str, Any] = {"detected_source_language": _code(answer.src), "text": answer.item.text}
        if _flag(given.get("show_billed_characters", True)):
            record["billed_characters"] = len(text)
        if given.get("model_type"):
            record["model_type_used"] = "quality_optimized"
        records.append(record)
    return JSONResponse({"translations": records})


def _code(code: str) -> str:
    return code.split("-")[0].upper()


@answering(as_error)
async def languages(server: "Server", request: Request) -> Response:
    given, _ = await _asked(server, request)
    kind = given.get("type") or "source"
    if kind not in ("source", "target"):
        raise ApiError(400, "Value for 'type' not supported.")
    known = server.service.languages()
    if kind == "source":
        return JSONResponse([{"language": _code(code), "name": name_of(code)} for code in known if known[code]])
    targets = sorted({tgt for reach in known.values() for tgt in reach})
    records = []
    for code in targets:
        for variant in VARIANTS.get(code, (code.upper(),)):
            name = VARIANT_NAMES.get(variant, name_of(code))
            records.append({"language": variant, "name": name, "supports_formality": code in FORMAL})
    return JSONResponse(records)


@answering(as_error)
async def usage(server: "Server", request: Request) -> Response:
    _, client = await _asked(server, request)
    limit = client.key.per_month if client.key else None
    count = server.store.characters(client.name) if client.key else 0
    return JSONResponse({"character_count": count, "character_limit": NO_LIMIT if limit is None else limit})


@answering(as_error)
async def add_document(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request, files=True)
    if not server.settings.documents:
        raise ApiError(403, "Documents are not taken by this server")
    name, data = await file_in(server, given)
    name = text_of(given.get("filename") or name, "filename")
    src, tgt = _languages(server, given)
    glossary = _glossary(server, client, given, src, tgt)
    job = new_job(server, client, (name, data), (src, tgt), glossary, "Invalid file: ")
    return JSONResponse({"document_id": job.id, "document_key": job.key})


async def _job(server: "Server", request: Request) -> Job:
    given, _ = await _asked(server, request)
    job = server.jobs.job(request.path_params["id"])
    if job is None or given.get("document_key") != job.key:
        raise ApiError(404, "Document not found")
    return job


@answering(as_error)
async def document(server: "Server", request: Request) -> Response:
    job = await _job(server, request)
    record: dict[str, Any] = {"document_id": job.id, "status": job.state}
    if job.state in ("queued", "translating"):
        record["seconds_remaining"] = job.seconds_left
    if job.state == "done":
        record["billed_characters"] = job.characters
    if job.error:
        record["error_message"] = job.error
    return JSONResponse(record)


@answering(as_error)
async def document_result(server: "Server", request: Request) -> Response:
    return result_of(await _job(server, request), "Document is not ready")


def _glossary(server: "Server", client: Client, given: Mapping[str, Any], src: str, tgt: str) -> Glossary | None:
    """The glossary that a request names."""
    identity = given.get("glossary_id")
    if not identity:
        return None
    if src == AUTO:
        raise ApiError(400, "Use of a glossary requires the source_lang parameter to be specified.")
    return _terms(_stored(server, client, text_of(identity, "glossary_id")), src, tgt)


def _terms(stored: StoredGlossary, src: str, tgt: str) -> Glossary:
    entries = stored.dictionaries.get((src, tgt))
    if entries is None:
        raise ApiError(400, "The glossary is of other languages.")
    return Glossary(dict(line.split("\t") for line in entries.splitlines()))


def _stored(server: "Server", client: Client, id: str) -> StoredGlossary:
    if not re.fullmatch(r"[0-9a-fA-F-]{36}", id):
        raise ApiError(400, "Invalid or missing glossary id")
    found = next((one for one in server.store.glossaries(client.name) if one.id == id), None)
    if found is None:
        raise ApiError(404, "Glossary not found")
    return found


def _entries(text: str, kind: str) -> str:
    """Entries of a glossary as lines of two columns. Raises ApiError, naming the line, for others."""
    if kind not in ("tsv", "csv"):
        raise ApiError(400, "Value for 'entries_format' not supported.")
    rows = csv.reader(io.StringIO(text)) if kind == "csv" else (line.split("\t") for line in re.split(r"\r?\n", text))
    found: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if not any(column.strip() for column in row):
            continue
        columns = [column.strip() for column in row[:2]]
        if len(columns) < 2 or not all(columns) or any("\t" in column or "\n" in column for column in columns):
            raise ApiError(400, f"Invalid glossary entries provided: line {number}: two columns are needed")
        if columns[0] in found:
            raise ApiError(400, f"Invalid glossary entries provided: line {number}: {columns[0]!r} stands there twice")
        found[columns[0]] = columns[1]
    if not found:
        raise ApiError(400, "Invalid glossary entries provided: there are none")
    return "\n".join(f"{term}\t{target}" for term, target in found.items())


def _dictionary(server: "Server", given: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    """The languages and entries of a dictionary in a request."""
    for name in ("source_lang", "target_lang", "entries", "entries_format"):
        if not given.get(name):
            raise ApiError(400, f"Bad request: Value for '{name}' missing.")
    languages = _glossary_languages(server, given)
    return languages, _entries(text_of(given["entries"], "entries"), str(given["entries_format"]))


def _glossary_languages(server: "Server", given: Mapping[str, Any]) -> tuple[str, str]:
    src, tgt = (language(server, text_of(given.get(name) or "", name)) for name in ("source_lang", "target_lang"))
    if src is None or tgt is None or (src, tgt) not in server.service.runs:
        raise ApiError(400, "Unsupported glossary source and target language pair")
    return src, tgt


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def _one_dictionary(stored: StoredGlossary) -> dict[str, Any]:
    """A glossary as version 2 knows it: of one pair of languages."""
    [(languages, entries)] = list(stored.dictionaries.items())[:1]
    return {
        "glossary_id": stored.id,
        "ready": True,
        "name": stored.name,
        "source_lang": languages[0],
        "target_lang": languages[1],
        "creation_time": _time(stored.created),
        "entry_count": len(entries.splitlines()),
    }


def _dictionary_record(languages: tuple[str, str], entries: str) -> dict[str, Any]:
    return {"source_lang": languages[0], "target_lang": languages[1], "entry_count": len(entries.splitlines())}


def _all_dictionaries(stored: StoredGlossary) -> dict[str, Any]:
    """A glossary as version 3 knows it."""
    return {
        "glossary_id": stored.id,
        "name": stored.name,
        "dictionaries": [_dictionary_record(*item) for item in stored.dictionaries.items()],
        "creation_time": _time(stored.created),
    }


@answering(as_error)
async def add_glossary(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    name = text_of(given.get("name") or "", "name")
    if not name:
        raise ApiError(400, "Bad request: Value for 'name' missing.")
    if request.url.path.startswith("/v3"):
        listed = given.get("dictionaries")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed) or not listed:
            raise ApiError(400, "Bad request: Value for 'dictionaries' missing.")
        made = server.store.put_glossary(name, dict(_dictionary(server, one) for one in listed), client.name)
        return JSONResponse(_all_dictionaries(made), 201)
    made = server.store.put_glossary(name, dict([_dictionary(server, given)]), client.name)
    return JSONResponse(_one_dictionary(made), 201)


@answering(as_error)
async def glossaries(server: "Server", request: Request) -> Response:
    _, client = await _asked(server, request)
    found = [one for one in server.store.glossaries(client.name) if one.dictionaries]
    if request.url.path.startswith("/v3"):
        return JSONResponse({"glossaries": [_all_dictionaries(one) for one in found]})
    return JSONResponse({"glossaries": [_one_dictionary(one) for one in found if len(one.dictionaries) == 1]})


@answering(as_error)
async def glossary(server: "Server", request: Request) -> Response:
    _, client = await _asked(server, request)
    stored = _stored(server, client, request.path_params["id"])
    return JSONResponse(_all_dictionaries(stored) if request.url.path.startswith("/v3") else _one_dictionary(stored))


@answering(as_error)
async def change_glossary(server: "Server", request: Request) -> Response:
    """A new name, or entries that come to those that are there or take their place."""
    given, client = await _asked(server, request)
    stored = _stored(server, client, request.path_params["id"])
    dictionaries = dict(stored.dictionaries)
    for one in _list(given.get("dictionaries")):
        languages, entries = _dictionary(server, one if isinstance(one, dict) else {})
        lines = [*dictionaries.get(languages, "").splitlines(), *entries.splitlines()]
        merged = {line.partition("\t")[0]: line for line in lines}  # later ones count
        dictionaries[languages] = "\n".join(merged.values())
    name = text_of(given.get("name") or stored.name, "name")
    return JSONResponse(_all_dictionaries(server.store.put_glossary(name, dictionaries, client.name, stored)))


@answering(as_error)
async def put_dictionary(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    stored = _stored(server, client, request.path_params["id"])
    languages, entries = _dictionary(server, given)
    server.store.put_glossary(stored.name, {**stored.dictionaries, languages: entries}, client.name, stored)
    return JSONResponse(_dictionary_record(languages, entries))


@answering(as_error)
async def remove_dictionary(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    stored = _stored(server, client, request.path_params["id"])
    languages = _glossary_languages(server, given)
    if languages not in stored.dictionaries:
        raise ApiError(404, "Dictionary not found")
    left = {key: entries for key, entries in stored.dictionaries.items() if key != languages}
    server.store.put_glossary(stored.name, left, client.name, stored)
    return Response(status_code=204)


@answering(as_error)
async def glossary_entries(server: "Server", request: Request) -> Response:
    given, client = await _asked(server, request)
    stored = _stored(server, client, request.path_params["id"])
    if not request.url.path.startswith("/v3"):
        entries = next(iter(stored.dictionaries.values()))
        return PlainTextResponse(entries, media_type="text/tab-separated-values")
    src, tgt = languages = _glossary_languages(server, given)
    if languages not in stored.dictionaries:
        raise ApiError(404, "Dictionary not found")
    record = {"source_lang": src, "target_lang": tgt, "entries": stored.dictionaries[languages]}
    return JSONResponse({"dictionaries": [{**record, "entries_format": "tsv"}]})


@answering(as_error)
async def remove_glossary(server: "Server", request: Request) -> Response:
    _, client = await _asked(server, request)
    stored = _stored(server, client, request.path_params["id"])
    server.store.remove_glossary(stored.id, client.name)
    return Response(status_code=204)


@answering(as_error)
async def glossary_pairs(server: "Server", request: Request) -> Response:
    await _asked(server, request)
    pairs = [{"source_lang": src.lower(), "target_lang": tgt.lower()} for src, tgt in server.service.runs]
    return JSONResponse({"supported_languages": pairs})


ROUTES = [
    Route("/v2/translate", translate, methods=["POST"]),
    Route("/v2/languages", languages, methods=["GET", "POST"]),
    Route("/v2/usage", usage, methods=["GET", "POST"]),
    Route("/v2/document", add_document, methods=["POST"]),
    Route("/v2/document/{id}", document, methods=["GET", "POST"]),
    Route("/v2/document/{id}/result", document_result, methods=["GET", "POST"]),
    Route("/v2/glossaries", add_glossary, methods=["POST"]),
    Route("/v2/glossaries", glossaries, methods=["GET"]),
    Route("/v2/glossaries/{id}", glossary, methods=["GET"]),
    Route("/v2/glossaries/{id}", remove_glossary, methods=["DELETE"]),
    Route("/v2/glossaries/{id}/entries", glossary_entries, methods=["GET"]),
    Route("/v3/glossaries", add_glossary, methods=["POST"]),
    Route("/v3/glossaries", glossaries, methods=["GET"]),
    Route("/v3/glossaries/{id}", glossary, methods=["GET"]),
    Route("/v3/glossaries/{id}", change_glossary, methods=["PATCH"]),
    Route("/v3/glossaries/{id}", remove_glossary, methods=["DELETE"]),
    Route("/v3/glossaries/{id}/entries", glossary_entries, methods=["GET"]),
    Route("/v3/glossaries/{id}/dictionaries", put_dictionary, methods=["PUT"]),
    Route("/v3/glossaries/{id}/dictionaries", remove_dictionary, methods=["DELETE"]),
    Route("/v2/glossary-language-pairs", glossary_pairs, methods=["GET"]),
]
