"""The description of the server's APIs for programs (OpenAPI 3.1), made from a table."""

from typing import Any, NamedTuple

from dragoman.version import __version__


class Operation(NamedTuple):
    """A route: what it is for, what goes in and comes out, as examples that can be tried."""

    method: str
    path: str
    summary: str
    group: str
    body: dict[str, Any] | None = None
    answer: Any = None
    form: bool = False
    """True if a file is sent."""
    query: tuple[str, ...] = ()


_FILE = {"file": "(a file)", "source": "de", "target": "en"}
_TRANSLATION = {
    "text": "I would like a beer.", "source": "de", "target": "en", "score": -0.21, "log_prob": -1.5,
    "alternatives": ["I want a beer."], "notes": [], "sentences": [[0, 21, 0, 20]],
}  # fmt: skip
_LIBRE, _OWN, _DEEPL, _STATE = "LibreTranslate", "Dragoman", "DeepL", "State"

OPERATIONS = (
    Operation("post", "/v1/translate", "Translate a text, or a list of them", _OWN,
              {"text": "Ich möchte ein Bier.", "source": "de", "target": "en", "format": "text", "alternatives": 2,
               "glossary": {"Bier": "ale"}, "prefix": "", "memory": True, "split": "auto", "alignments": True,
               "warnings": True, "confidence": True},
              {**_TRANSLATION, "alignments": [[0, 3, 0, 1]], "warnings": [], "memory": [],
               "confidence": [[0, 1, 0.93]]}),
    Operation("post", "/v1/translate/stream", "Translate part by part: server-sent events part, details, done", _OWN,
              {"text": "Ich möchte ein Bier.", "source": "de", "target": "en"}, "event: part\ndata: {...}\n\n"),
    Operation("post", "/v1/words", "Translations of a sentence that begin with prefix and go on differently", _OWN,
              {"text": "Ich möchte ein Bier.", "source": "de", "target": "en", "prefix": "I", "count": 5},
              {"translations": [{"text": "I want a beer.", "score": -0.4}]}),
    Operation("post", "/v1/detect", "Tell the language of a text, or of each of a list", _OWN,
              {"text": "Guten Morgen"}, [{"language": "de", "confidence": 0.99}]),
    Operation("get", "/v1/languages", "Languages, each with those it can be translated to", _OWN, None,
              [{"code": "de", "name": "German", "targets": ["en"]}]),
    Operation("get", "/v1/limits", "What a client may ask for", _OWN, None, {"text_characters": 5000, "batch": 128}),
    Operation("post", "/v1/corrections", "Keep a better translation; it is used from now on", _OWN,
              {"text": "Bier", "translation": "beer", "source": "de", "target": "en"}, {"kept": True}),
    Operation("get", "/v1/corrections", "The corrections, as JSON or TMX", _OWN, None,
              [{"source": "de", "target": "en", "text": "Bier", "translation": "beer"}],
              query=("source", "target", "format")),
    Operation("delete", "/v1/corrections", "Forget a correction", _OWN,
              {"text": "Bier", "source": "de", "target": "en"}, {"forgotten": True}),
    Operation("post", "/v1/documents", "Hand in a document", _OWN, _FILE,
              {"id": "9F2C...", "key": "51AB...", "state": "queued"}, form=True),
    Operation("get", "/v1/documents/{id}", "How far a document is", _OWN, None,
              {"state": "translating", "done": 12, "total": 80, "seconds_left": 4}, query=("key",)),
    Operation("get", "/v1/documents/{id}/result", "The translated document", _OWN, None, "(a file)", query=("key",)),
    Operation("delete", "/v1/documents/{id}", "Give a document up, and delete it", _OWN, None, {"removed": True},
              query=("key",)),
    Operation("post", "/translate", "Translate; q is a text or a list", _LIBRE,
              {"q": "Ich möchte ein Bier.", "source": "auto", "target": "en", "format": "text", "alternatives": 1},
              {"translatedText": "I would like a beer.", "alternatives": ["I want a beer."],
               "detectedLanguage": {"confidence": 99, "language": "de"}}),
    Operation("post", "/detect", "Tell the language of a text", _LIBRE, {"q": "Guten Morgen"},
              [{"confidence": 99, "language": "de"}]),
    Operation("get", "/languages", "Languages and their targets", _LIBRE, None,
              [{"code": "de", "name": "German", "targets": ["de", "en"]}]),
    Operation("post", "/translate_file", "Translate a file; answers when it is done", _LIBRE, _FILE,
              {"translatedFileUrl": "http://localhost:5000/download_file/..."}, form=True),
    Operation("post", "/suggest", "Suggest a better translation", _LIBRE,
              {"q": "Bier", "s": "beer", "source": "de", "target": "en"}, {"success": True}),
    Operation("get", "/frontend/settings", "What a page has to know", _LIBRE, None, {"charLimit": 5000}),
    Operation("post", "/v2/translate", "Translate up to 128 texts", _DEEPL,
              {"text": ["Ich möchte ein Bier."], "source_lang": "DE", "target_lang": "EN-GB", "tag_handling": "html"},
              {"translations": [{"detected_source_language": "DE", "text": "I would like a beer."}]}),
    Operation("get", "/v2/languages", "Languages by type: source or target", _DEEPL, None,
              [{"language": "DE", "name": "German"}], query=("type",)),
    Operation("get", "/v2/usage", "Characters used this month", _DEEPL, None,
              {"character_count": 42, "character_limit": 500000}),
    Operation("post", "/v2/document", "Hand in a document", _DEEPL,
              {"file": "(a file)", "source_lang": "DE", "target_lang": "EN-GB"},
              {"document_id": "9F2C...", "document_key": "51AB..."}, form=True),
    Operation("post", "/v2/document/{id}", "How far a document is", _DEEPL, {"document_key": "51AB..."},
              {"document_id": "9F2C...", "status": "translating", "seconds_remaining": 4}),
    Operation("post", "/v2/document/{id}/result", "The translated document", _DEEPL,
              {"document_key": "51AB..."}, "(a file)"),
    Operation("post", "/v2/glossaries", "Keep a glossary", _DEEPL,
              {"name": "pub", "source_lang": "de", "target_lang": "en", "entries": "Bier\tale",
               "entries_format": "tsv"},
              {"glossary_id": "0c9a...", "name": "pub", "entry_count": 1}),
    Operation("get", "/v2/glossaries", "Your glossaries", _DEEPL, None, {"glossaries": []}),
    Operation("get", "/v2/glossaries/{id}", "A glossary", _DEEPL, None, {"glossary_id": "0c9a..."}),
    Operation("get", "/v2/glossaries/{id}/entries", "The entries of a glossary, tab-separated", _DEEPL, None,
              "Bier\tale"),
    Operation("delete", "/v2/glossaries/{id}", "Delete a glossary", _DEEPL),
    Operation("post", "/v3/glossaries", "Keep a glossary of several languages", _DEEPL,
              {"name": "pub", "dictionaries": [{"source_lang": "de", "target_lang": "en", "entries": "Bier\tale",
                                                "entries_format": "tsv"}]},
              {"glossary_id": "0c9a...", "name": "pub", "dictionaries": [{"source_lang": "de", "entry_count": 1}]}),
    Operation("get", "/v3/glossaries", "Your glossaries", _DEEPL, None, {"glossaries": []}),
    Operation("get", "/v3/glossaries/{id}", "A glossary", _DEEPL, None, {"glossary_id": "0c9a..."}),
    Operation("patch", "/v3/glossaries/{id}", "Another name, or more entries", _DEEPL, {"name": "inn"},
              {"glossary_id": "0c9a...", "name": "inn"}),
    Operation("delete", "/v3/glossaries/{id}", "Delete a glossary", _DEEPL),
    Operation("get", "/v3/glossaries/{id}/entries", "The entries of two languages", _DEEPL, None,
              {"dictionaries": [{"entries": "Bier\tale", "entries_format": "tsv"}]},
              query=("source_lang", "target_lang")),
    Operation("put", "/v3/glossaries/{id}/dictionaries", "Entries in the place of those of two languages", _DEEPL,
              {"source_lang": "de", "target_lang": "en", "entries": "Bier\tale", "entries_format": "tsv"},
              {"source_lang": "de", "target_lang": "en", "entry_count": 1}),
    Operation("delete", "/v3/glossaries/{id}/dictionaries", "Delete the entries of two languages", _DEEPL,
              query=("source_lang", "target_lang")),
    Operation("get", "/v2/glossary-language-pairs", "Languages of glossaries", _DEEPL, None,
              {"supported_languages": [{"source_lang": "de", "target_lang": "en"}]}),
    Operation("get", "/health", "The process lives", _STATE, None, {"status": "ok"}),
    Operation("get", "/ready", "Models are loaded (else 503)", _STATE, None, {"status": "ready"}),
    Operation("get", "/metrics", "Counters for Prometheus", _STATE, None, "dragoman_queue_tokens 0.0"),
)  # fmt: skip


def openapi(address: str) -> dict[str, Any]:
    """The description of a server at an address."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": __version__,
            "description": "Translation. Errors are `{error: text}`, under /v2 `{message: text}`; 429 and 503 say in "
            "Retry-After when to come back. A key goes into `Authorization: Bearer KEY` or `api_key`.",
        },
        "servers": [{"url": address}],
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
        "paths": paths,
    }


def _described(operation: Operation) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "schema": {"type": "string"}} for name in operation.query
    ]
    if "{id}" in operation.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}})
    kind = "application/json" if isinstance(operation.answer, dict | list) else "text/plain"
    record: dict[str, Any] = {
        "summary": operation.summary,
        "tags": [operation.group],
        "responses": {
            "200": {"description": "Done", "content": {kind: {"example": operation.answer}}},
            "400": {"description": "What is wrong with the request"},
            "429": {"description": "Too much work, or too many requests"},
            "503": {"description": "Models are loaded, or the server stops"},
            "504": {"description": "Not done in time"},
        },
    }
    if parameters:
        record["parameters"] = parameters
    if operation.body is not None:
        body_kind = "multipart/form-data" if operation.form else "application/json"
        record["requestBody"] = {
            "content": {body_kind: {"schema": _schema(operation.body, operation.form), "example": operation.body}}
        }
    return record


def _schema(example: Any, form: bool = False) -> dict[str, Any]:
    """The types of an example."""
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, int | float):
        return {"type": "number"}
    if isinstance(example, list):
        return {"type": "array", "items": _schema(example[0]) if example else {}}
    if isinstance(example, dict):
        properties = {
            name: {"type": "string", "format": "binary"} if form and name == "file" else _schema(value)
            for name, value in example.items()
        }
        return {"type": "object", "properties": properties}
    return {"type": "string"}
