"""A subset of DeepL's API: texts, documents, glossaries, usage (developers.deepl.com, version 2).

What our models cannot do is refused by its name (`REFUSED`, and a formality that is insisted on). `context` is read
by a run that has learnt that (`corpus.context`); of others the answer's header X-Ignored-Parameters names it.
"""

import re
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import ErrorDetails
from starlette.responses import PlainTextResponse, Response

from dragoman.errors import DragomanError
from dragoman.formats import tagged
from dragoman.formats.base import Tags
from dragoman.formats.pdf import output_path
from dragoman.languages.codes import closest, language_of, names_of, tag_of
from dragoman.languages.punctuation import ENDS
from dragoman.serve.api import Api, Call, respond
from dragoman.serve.documents import DocumentTask
from dragoman.serve.errors import ApiError
from dragoman.serve.http import as_list, route_path
from dragoman.serve.requests import check_size, check_terms, new_task, planned, require, result_of, served_pair
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, TranslateParams
from dragoman.serve.store import StoredGlossary
from dragoman.text.case import capitalized, lower
from dragoman.text.glossary import Glossary

VARIANTS = {
    "en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH-HANS", "ZH-HANT"),
}  # fmt: skip
"""Target codes of languages with several codes."""
REFUSED = ("style_id", "custom_instructions", "translation_memory_id")
"""Parameters that no model here has anything for."""
MAX_GLOSSARIES = 5
"""Glossaries of a request, as at DeepL."""
Dictionaries = dict[tuple[str, str], str]
NO_LIMIT = 10**12
"""Characters a month that a client without a limit is told."""


def _lower(value: Any) -> str:
    return str(value).lower()


def _names(value: Any) -> Any:
    """Names of tags: a list, or one text with commas between them."""
    return [name.strip() for one in as_list(value) for name in str(one).split(",") if name.strip()]


Texts = Annotated[list[str], BeforeValidator(as_list)]
Formality = Annotated[Literal["", "default", "more", "less", "prefer_more", "prefer_less"], BeforeValidator(_lower)]
TagNames = Annotated[list[str], BeforeValidator(_names), Field(examples=[["x"]])]


Target = Annotated[str, Field(min_length=1, examples=["EN-GB"])]
Named = Annotated[str, Field(min_length=1, examples=["pub"])]


class Options(BaseModel):
    """Parameters of texts and of documents."""

    target_lang: Target
    source_lang: str = Field("", examples=["DE"])
    glossary_id: str = ""
    glossary_ids: Texts = []
    formality: Formality = ""
    style_id: str = Field("", description="Refused: there are no style rules.")
    custom_instructions: Texts = Field([], description="Refused: no model here follows instructions.")
    translation_memory_id: str = Field("", description="Refused: corrections are used without being named.")
    translation_memory_threshold: int = 0
    enable_beta_languages: bool = Field(False, description="Changes nothing: no language here is a beta.")

    @property
    def glossaries(self) -> list[str]:
        return [self.glossary_id] if self.glossary_id else self.glossary_ids


class TranslateRequest(Options):
    text: Annotated[Texts, Field(min_length=1, examples=[["Ich möchte ein Bier."]])]
    context: str = Field(
        "", description="What stands before the texts, for a run that has learnt to read it; else the header names it."
    )
    tag_handling: Literal["", "xml", "html"] = ""
    tag_handling_version: Literal["", "v1", "v2"] = ""
    ignore_tags: TagNames = []
    splitting_tags: TagNames = []
    non_splitting_tags: TagNames = []
    outline_detection: bool = True
    split_sentences: Annotated[Literal["0", "1", "nonewlines", "true", "false"], BeforeValidator(_lower)] = "1"
    preserve_formatting: bool = Field(
        False, description="The case of the first letter and the mark at the end stay those of the text."
    )
    show_billed_characters: bool = True
    model_type: Literal["", "quality_optimized", "prefer_quality_optimized", "latency_optimized"] = Field(
        "", description="There is one model: the answer's `model_type_used` says which kind."
    )


class LanguagesQuery(BaseModel):
    type: Literal["", "source", "target"] = ""


class DocumentRequest(Options):
    filename: str = ""
    output_format: str = Field("", description="Only the format that the document comes back in anyway.")


class KeyOfDocument(BaseModel):
    document_key: str = ""


class Pair(BaseModel):
    source_lang: str = Field("", examples=["de"])
    target_lang: str = Field("", examples=["en"])


class Dictionary(BaseModel):
    source_lang: Annotated[str, Field(min_length=1, examples=["de"])]
    target_lang: Annotated[str, Field(min_length=1, examples=["en"])]
    entries: Annotated[str, Field(min_length=1, examples=["Bier\tale"])]
    entries_format: Literal["tsv", "csv"]


class NewGlossary(Dictionary):
    name: Named


class NewGlossaries(BaseModel):
    name: Named
    dictionaries: list[Dictionary] = Field(min_length=1)


class ChangedGlossary(BaseModel):
    name: str = Field("", examples=["inn"])
    dictionaries: Annotated[list[Dictionary], BeforeValidator(as_list)] = []


def _complaint(error: ErrorDetails) -> str:
    names = [str(part) for part in error["loc"] if isinstance(part, str)]
    if error["type"] in ("missing", "string_too_short", "too_short"):
        return f"Bad request: Value for '{names[-1]}' missing."
    return f"Value for '{names[-1]}' not supported."


api = Api("DeepL", lambda error: {"message": error.message}, _complaint)


def _languages(call: Call, given: Options) -> tuple[str, str]:
    """The languages of a request, as they are served; `auto` where no source is given. Raises ApiError for others, and
    for what cannot be done in them."""
    src, tgt = served_pair(call.server, given.source_lang or AUTO, given.target_lang)
    if src is None:
        raise ApiError(400, "Value for 'source_lang' not supported.")
    if tgt is None or (src not in (AUTO, tgt) and tgt not in call.server.service.languages().get(src, ())):
        raise ApiError(400, "Value for 'target_lang' not supported.")
    if given.formality in ("more", "less"):
        raise ApiError(400, "Target language does not support the formality parameter.")
    for name in REFUSED:
        if getattr(given, name):
            raise ApiError(400, f"Value for '{name}' not supported: this server has none.")
    return src, tgt


@api.operation("POST", "/v2/translate", "Translate up to 128 texts",
               {"translations": [{"detected_source_language": "DE", "text": "I would like a beer."}]},
               translates=True)  # fmt: skip
def translate(call: Call, given: TranslateRequest) -> Awaitable[Response]:
    check_size(call.server, given.text)
    src, tgt = _languages(call, given)
    split = False if given.split_sentences in ("0", "false") else None
    joined = given.split_sentences not in ("1", "true") and not given.tag_handling
    texts = [_LINE_END.sub(" ", text) for text in given.text] if joined else given.text
    params = TranslateParams(
        given.tag_handling or "text", glossary=_glossary(call, given, src, tgt), split=split, tags=_tags(given),
        context=given.context,
    )  # fmt: skip
    work, load = planned(call, texts, src, tgt, params)

    def answer(handle: RequestHandle) -> Response:
        records = []
        answers = work(handle)
        for text, one in zip(given.text, answers, strict=True):
            made = one.item.best.text
            if given.preserve_formatting:
                made = with_edges_of(text, made, tgt)
            record: dict[str, Any] = {"detected_source_language": _code(one.src), "text": made}
            if given.show_billed_characters:
                record["billed_characters"] = len(text)
            if given.model_type:
                record["model_type_used"] = "quality_optimized"
            records.append(record)
        response = respond({"translations": records})
        if given.context and not any(call.server.service.reads_context(one.src, tgt) for one in answers):
            response.headers["X-Ignored-Parameters"] = "context"
        return response

    return call.run(answer, load)


_LINE_END = re.compile(r"(?<=\S)[^\S\n]*\n\s*(?=\S)")
_AROUND = re.compile(r"\s+|<[^<>]*>")
_MARKS = re.compile(rf"[{ENDS}:;,：；，،؛]+$")


def with_edges_of(text: str, translation: str, language: str = "") -> str:
    """A translation whose first letter has the case of the text's, and that ends with a mark only where the text does.

    >>> with_edges_of("hund", "Dog."), with_edges_of("<b>Guten Tag!</b>", "<b>good day</b>"), with_edges_of("ja", "USA")
    ('dog', '<b>Good day!</b>', 'USA')
    """
    (_, old, _), (start, new, end) = _parted(text), _parted(translation)
    if not old or not new:
        return translation
    mark = "".join(_MARKS.findall(old))
    bare = _MARKS.sub("", new)
    new = bare + ((new[len(bare) :] or mark) if mark else "")
    if old[0].isupper():
        new = capitalized(new, language)
    elif old[0].islower() and not new[1:2].isupper() and new[1:2].isalpha():
        new = lower(new[0], language) + new[1:]
    return start + new + end


def _parted(text: str) -> tuple[str, str, str]:
    """White space and tags before a text, the text, and those after it."""
    around = [match.span() for match in _AROUND.finditer(text)]
    start, end = 0, len(text)
    for first, last in around:
        if first == start:
            start = last
    for first, last in reversed(around):
        if last == end and first >= start:
            end = first
    return text[:start], text[start:end], text[end:]


def _tags(given: TranslateRequest) -> Tags:
    """The meaning of tags. Raises ApiError for XML that is not well-formed, where version 2 is asked for."""
    if given.tag_handling == "xml" and given.tag_handling_version == "v2":
        try:
            for text in given.text:
                tagged.check(text)
        except DragomanError as error:
            raise ApiError(400, f"Tag handling parsing failed, please check input: {error}", cause=error) from error
    ignored, splitting = frozenset(given.ignore_tags), frozenset(given.splitting_tags)
    return Tags(ignored, splitting, frozenset(given.non_splitting_tags), given.outline_detection)


def _code(code: str) -> str:
    """The code of a language there, without region or script."""
    return tag_of(code).partition("-")[0].upper()


def _variants(code: str) -> list[str]:
    """The codes that a served target language has there: of several those that it may be asked for by."""
    if "-x-" in code:  # an adapter's
        return [code.upper()]
    return [one for one in VARIANTS.get(language_of(code), ()) if closest(one, [code])] or [_code(code)]


def _language_names(codes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The names of codes there, each with a language that is served by it. A code that stands for a single language
    has that language's name.

    >>> _language_names([("SR", "sr-Latn"), ("ZH", "zh_Hans"), ("ZH", "zh_Hant"), ("PT-PT", "pt")])
    {'SR': 'Serbian (Latin)', 'ZH': 'Chinese', 'PT-PT': 'European Portuguese'}
    """
    served: dict[str, set[str]] = {}
    for code, own in codes:
        served.setdefault(code, set()).add(own)
    of_codes = {code: code if len(own) > 1 or "-" in code else min(own) for code, own in served.items()}
    names = names_of(of_codes.values())
    return {code: names[own] for code, own in of_codes.items()}


@api.operation("GET POST", "/v2/languages", "Languages by type: source or target",
               [{"language": "DE", "name": "German"}])  # fmt: skip
def languages(call: Call, given: LanguagesQuery) -> list[dict[str, Any]]:
    known = call.server.service.languages()
    if given.type != "target":
        sources = _language_names((_code(code), code) for code in known if known[code])
        return [{"language": code, "name": name} for code, name in sources.items()]
    targets = sorted({tgt for reach in known.values() for tgt in reach})
    names = _language_names((variant, code) for code in targets for variant in _variants(code))
    return [{"language": variant, "name": name, "supports_formality": False} for variant, name in names.items()]


@api.operation(
    "GET POST", "/v2/usage", "Characters used this month", {"character_count": 42, "character_limit": 500000}
)
def usage(call: Call) -> dict[str, int]:
    key = call.client.key
    limit = key.per_month if key else None
    count = call.server.gate.usage.characters(call.client.name) if key else 0
    return {"character_count": count, "character_limit": NO_LIMIT if limit is None else limit}


@api.operation("POST", "/v2/document", "Hand in a document", {"document_id": "9F2C...", "document_key": "51AB..."},
               files=True)  # fmt: skip
def add_document(call: Call, given: DocumentRequest) -> dict[str, str]:
    require(call.server.settings.documents, "Documents are not taken by this server")
    src, tgt = _languages(call, given)
    name = given.filename or getattr(call.parameters.get("file"), "filename", "")
    comes_back = output_path(Path(name)) if name.lower().endswith(".pdf") else Path(name)
    if given.output_format and f".{given.output_format.lower().lstrip('.')}" != comes_back.suffix.lower():
        raise ApiError(400, "Value for 'output_format' not supported: a document comes back in the format it has.")
    params = TranslateParams(glossary=_glossary(call, given, src, tgt))
    task = new_task(call, (src, tgt), params, given.filename, "Invalid file: ")
    return {"document_id": task.id, "document_key": task.key}


def _task(call: Call, given: KeyOfDocument) -> DocumentTask:
    task = call.server.tasks.find(call.request.path_params["id"], given.document_key)
    if task is None:
        raise ApiError(404, "Document not found")
    return task


@api.operation("GET POST", "/v2/document/{id}", "How far a document is",
               {"document_id": "9F2C...", "status": "translating", "seconds_remaining": 4}, polls=True)  # fmt: skip
def document(call: Call, given: KeyOfDocument) -> dict[str, Any]:
    task = _task(call, given)
    record: dict[str, Any] = {"document_id": task.id, "status": task.state}
    if task.state in ("queued", "translating"):
        record["seconds_remaining"] = task.seconds_left
    if task.state == "done":
        record["billed_characters"] = task.characters
    if task.error:
        record["error_message"] = task.error
    return record


@api.operation("GET POST", "/v2/document/{id}/result", "The translated document", "(a file)",
               media=("application/octet-stream",))  # fmt: skip
def document_result(call: Call, given: KeyOfDocument) -> Response:
    return result_of(_task(call, given), "Document is not ready")


def _glossary(call: Call, given: Options, src: str, tgt: str) -> Glossary | None:
    """The glossary that a request names. Of several, the first that has a term counts."""
    if not given.glossaries:
        return None
    if len(given.glossaries) > MAX_GLOSSARIES or (given.glossary_id and given.glossary_ids):
        raise ApiError(400, f"Value for 'glossary_ids' not supported: at most {MAX_GLOSSARIES}, and no glossary_id.")
    if src == AUTO:
        raise ApiError(400, "Use of a glossary requires the source_lang parameter to be specified.")
    ids = [_checked(id) for id in given.glossaries]
    return check_terms(call.server, call.server.glossaries.terms(call.client, ids, (src, tgt)))


def _checked(id: str) -> str:
    """The id of a glossary. Raises ApiError for text that is no id."""
    if not re.fullmatch(r"[0-9a-fA-F-]{36}", id):
        raise ApiError(400, "Invalid or missing glossary id")
    return id


def _stored(call: Call) -> StoredGlossary:
    """The glossary that the address of a request names."""
    return call.server.glossaries.get(call.client, _checked(call.request.path_params["id"]))


def _entries(call: Call, text: str, kind: str) -> str:
    """Entries of a glossary as lines of two columns. Raises ApiError, naming the line, for others."""
    try:
        terms = check_terms(call.server, Glossary.of_text(text, f"entries.{kind}", plain=True)).targets
    except DragomanError as error:
        raise ApiError(400, f"Invalid glossary entries provided: {error}", cause=error) from error
    return "\n".join(f"{term}\t{target}" for term, target in terms.items())


def _dictionary(call: Call, given: Dictionary) -> tuple[tuple[str, str], str]:
    """The languages and entries of a dictionary in a request."""
    return _pair(call, given), _entries(call, given.entries, given.entries_format)


def _pair(call: Call, given: Pair | Dictionary) -> tuple[str, str]:
    src, tgt = served_pair(call.server, given.source_lang, given.target_lang)
    if src is None or tgt is None or (src, tgt) not in call.server.service.runs:
        raise ApiError(400, "Unsupported glossary source and target language pair")
    return src, tgt


def _put(call: Call, name: str, dictionaries: Dictionaries, old: StoredGlossary | None = None) -> StoredGlossary:
    return call.server.glossaries.put(call.client, name, dictionaries, old)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _one_dictionary(stored: StoredGlossary) -> dict[str, Any]:
    """A glossary as version 2 knows it: for a single pair of languages."""
    first = next(iter(stored.dictionaries.items()), (("", ""), ""))
    made = {"glossary_id": stored.id, "ready": True, "name": stored.name, "creation_time": _time(stored.created)}
    return {**made, **_dictionary_record(*first)}


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


_RECORD = {"glossary_id": "0c9a...", "name": "pub", "entry_count": 1}
_RECORD_3 = {"glossary_id": "0c9a...", "name": "pub", "dictionaries": [{"source_lang": "de", "entry_count": 1}]}


@api.operation("POST", "/v2/glossaries", "Keep a glossary", _RECORD, status=201)
def add_glossary(call: Call, given: NewGlossary) -> dict[str, Any]:
    return _one_dictionary(_put(call, given.name, dict([_dictionary(call, given)])))


@api.operation("POST", "/v3/glossaries", "Keep a glossary of several languages", _RECORD_3, status=201)
def add_glossaries(call: Call, given: NewGlossaries) -> dict[str, Any]:
    return _all_dictionaries(_put(call, given.name, dict(_dictionary(call, one) for one in given.dictionaries)))


def _is_3(call: Call) -> bool:
    return route_path(call.request).startswith("/v3/")


@api.operation("GET", "/v2/glossaries", "Your glossaries", {"glossaries": [_RECORD]})
@api.operation("GET", "/v3/glossaries", "Your glossaries", {"glossaries": [_RECORD_3]})
def glossaries(call: Call) -> dict[str, Any]:
    known = call.server.store.glossaries(call.client.name)
    if _is_3(call):
        return {"glossaries": [_all_dictionaries(one) for one in known if one.dictionaries]}
    return {"glossaries": [_one_dictionary(one) for one in known if len(one.dictionaries) == 1]}


@api.operation("GET", "/v2/glossaries/{id}", "A glossary", _RECORD)
@api.operation("GET", "/v3/glossaries/{id}", "A glossary", _RECORD_3)
def glossary(call: Call) -> dict[str, Any]:
    return (_all_dictionaries if _is_3(call) else _one_dictionary)(_stored(call))


@api.operation("PATCH", "/v3/glossaries/{id}", "Another name, or more entries", _RECORD_3)
def change_glossary(call: Call, given: ChangedGlossary) -> dict[str, Any]:
    """A new name, or entries that are added to the old entries or replace them."""
    with call.server.glossaries.changing:
        stored = _stored(call)
        dictionaries = dict(stored.dictionaries)
        for one in given.dictionaries:
            languages, entries = _dictionary(call, one)
            lines = [*dictionaries.get(languages, "").splitlines(), *entries.splitlines()]
            merged = {line.partition("\t")[0]: line for line in lines}  # later ones count
            dictionaries[languages] = "\n".join(merged.values())
        return _all_dictionaries(_put(call, given.name or stored.name, dictionaries, stored))


@api.operation("PUT", "/v3/glossaries/{id}/dictionaries", "Entries in the place of those of two languages",
               {"source_lang": "de", "target_lang": "en", "entry_count": 1})  # fmt: skip
def put_dictionary(call: Call, given: Dictionary) -> dict[str, Any]:
    languages, entries = _dictionary(call, given)
    with call.server.glossaries.changing:
        stored = _stored(call)
        _put(call, stored.name, {**stored.dictionaries, languages: entries}, stored)
    return _dictionary_record(languages, entries)


@api.operation("DELETE", "/v3/glossaries/{id}/dictionaries", "Delete the entries of two languages",
               status=204)  # fmt: skip
def remove_dictionary(call: Call, given: Pair) -> None:
    languages = _pair(call, given)
    with call.server.glossaries.changing:
        stored = _stored(call)
        dictionaries = dict(stored.dictionaries)
        if dictionaries.pop(languages, None) is None:
            raise ApiError(404, "Dictionary not found")
        _put(call, stored.name, dictionaries, stored)


@api.operation("GET", "/v2/glossaries/{id}/entries", "The entries of a glossary, tab-separated", "Bier\tale",
               media=("text/tab-separated-values",))  # fmt: skip
def glossary_entries(call: Call) -> Response:
    entries = next(iter(_stored(call).dictionaries.values()), "")
    return PlainTextResponse(entries, media_type="text/tab-separated-values")


@api.operation("GET", "/v3/glossaries/{id}/entries", "The entries of two languages",
               {"dictionaries": [{"entries": "Bier\tale", "entries_format": "tsv"}]})  # fmt: skip
def dictionary_entries(call: Call, given: Pair) -> dict[str, Any]:
    stored = _stored(call)
    src, tgt = languages = _pair(call, given)
    if languages not in stored.dictionaries:
        raise ApiError(404, "Dictionary not found")
    record = {"source_lang": src, "target_lang": tgt, "entries": stored.dictionaries[languages]}
    return {"dictionaries": [{**record, "entries_format": "tsv"}]}


@api.operation("DELETE", "/v2/glossaries/{id}", "Delete a glossary", status=204)
@api.operation("DELETE", "/v3/glossaries/{id}", "Delete a glossary", status=204)
def remove_glossary(call: Call) -> None:
    call.server.glossaries.remove(call.client, _checked(call.request.path_params["id"]))


@api.operation("GET", "/v2/glossary-language-pairs", "Languages of glossaries",
               {"supported_languages": [{"source_lang": "de", "target_lang": "en"}]})  # fmt: skip
def glossary_pairs(call: Call) -> dict[str, Any]:
    pairs = [{"source_lang": src.lower(), "target_lang": tgt.lower()} for src, tgt in call.server.service.runs]
    return {"supported_languages": pairs}
