"""The description of the server's APIs for programs (OpenAPI 3.1), made from their operations."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from dragoman.serve.api import Api, Operation
from dragoman.serve.errors import COME_BACK, ApiError
from dragoman.version import __version__

METHODS = ("get", "post", "put", "patch", "delete")
"""The fields of a path object that are operations."""
_ERRORS = {
    400: "What is wrong with the request",
    403: "The key is wrong, or has no right to this, or this part of the server is switched off",
    404: "There is none, or none of this client's",
    408: "The body did not come in time",
    409: "It is in no state for this any more",
    413: "The body, or the file, is too large",
    415: "The body is neither JSON nor a form",
    429: "Too much work, or too many requests",
    456: "The characters of this key for this month are used up",
    503: "Models are still being loaded, the server stops, it has no room, or a document is not done yet",
    504: "Not done in time",
}
"""Statuses of refused and failed requests, and what they mean."""


def openapi(apis: Sequence[Api], address: str) -> dict[str, Any]:
    """The description of APIs of a server at an address."""
    types: list[tuple[tuple[Operation, str], Any, TypeAdapter[Any]]] = []
    operations = [(api, one) for api in apis for one in api.operations]
    for _, one in operations:
        if one.model is not None:
            types.append(((one, "body"), "validation", TypeAdapter(one.model)))
        if not isinstance(one.answer, dict | list | str | None):
            types.append(((one, "answer"), "serialization", TypeAdapter(one.answer)))
    schemas, definitions = TypeAdapter.json_schemas(types, ref_template="#/components/schemas/{model}")
    schema_of = {key: schema for (key, _), schema in schemas.items()}
    paths: dict[str, dict[str, Any]] = {}
    for api, one in operations:
        body, answer = schema_of.get((one, "body")), schema_of.get((one, "answer"))
        for method in one.methods:
            paths.setdefault(one.path, {})[method.lower()] = _described(api, one, method, body, answer)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": __version__,
            "description": "Translation. Errors are JSON with the field `error`, under /v2 `message`; 429 and 503 say "
            "in Retry-After when to come back. Under /v1 errors have a `code`; with `language-not-served` comes what "
            "the text is in: `detected` with `language`, `name`, `confidence` and `served`, and in a list `item`. A "
            "key goes into `Authorization: Bearer KEY` or `api_key`.",
        },
        "servers": [{"url": address}],
        "components": {
            "schemas": {**definitions.get("$defs", {}), **{f"{api.name}Error": _error_schema(api) for api in apis}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
        "paths": paths,
    }


def _described(api: Api, operation: Operation, method: str, body: dict[str, Any] | None, answer: Any) -> dict[str, Any]:
    """The description of an operation by one of its methods; what GET is given stands in the address."""
    content = {"example": operation.answer} if answer is None else {"schema": answer}
    done: dict[str, Any] = {"description": "Done"}
    if operation.status != 204:
        done["content"] = dict.fromkeys(operation.media, content)
    record: dict[str, Any] = {
        "summary": operation.summary,
        "tags": [api.name],
        "responses": {str(operation.status): done, **{str(status): _refused(api, status) for status in _ERRORS}},
    }
    parameters = [_parameter(name, "path") for name in re.findall(r"\{(\w+)\}", operation.path)]
    parameters += [_parameter(name, "header") for name in operation.headers]
    if method == "GET" and operation.model is not None:
        parameters += [_parameter(name, "query") for name in operation.model.model_fields]
        body = None
    if parameters:
        record["parameters"] = parameters
    if operation.files:
        file = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
        body = {"allOf": [file, *([body] if body else [])]}
    if body is not None:
        body_kind = "multipart/form-data" if operation.files else "application/json"
        record["requestBody"] = {"content": {body_kind: {"schema": body}}}
    return record


def _refused(api: Api, status: int) -> dict[str, Any]:
    """The description of an answer to a request that is not done."""
    schema = {"schema": {"$ref": f"#/components/schemas/{api.name}Error"}}
    record: dict[str, Any] = {"description": _ERRORS[status], "content": {"application/json": schema}}
    if status in COME_BACK:
        seconds = {"description": "Seconds after which to try again", "schema": {"type": "integer", "minimum": 0}}
        record["headers"] = {"Retry-After": seconds}
    return record


def _error_schema(api: Api) -> dict[str, Any]:
    """The shape of an API's errors."""
    fields = api.error_body(ApiError(400, "what is wrong"))
    return {
        "type": "object",
        "required": list(fields),
        "properties": {name: {"type": "string", "examples": [text]} for name, text in fields.items()},
    }


def example_of(part: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """An example of what a schema, or a part of a description with an `example`, stands for.

    >>> example_of({"properties": {"text": {"examples": ["Hund"]}, "count": {"default": 6}}}, {})
    {'text': 'Hund', 'count': 6}
    """
    if "example" in part:
        return part["example"]
    one = part.get("schema", part)
    if "$ref" in one:
        one = schemas[one["$ref"].rpartition("/")[2]]
    if "examples" in one:
        return one["examples"][0]
    if "default" in one:
        return one["default"]
    if "allOf" in one:
        return {name: value for each in one["allOf"] for name, value in example_of(each, schemas).items()}
    if "properties" in one:
        return {name: example_of(field, schemas) for name, field in one["properties"].items()}
    if "anyOf" in one:
        return example_of(one["anyOf"][0], schemas)
    if "enum" in one:
        return one["enum"][0]
    if one.get("format") == "binary":
        return "(a file)"
    return {"array": [], "object": {}, "integer": 0, "number": 0, "boolean": False}.get(one.get("type"), "")


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
