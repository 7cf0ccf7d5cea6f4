"""The page with its files, and what is there without JavaScript: a form that translates, and the routes of all APIs."""

import functools
import hashlib
import json
import re
from collections.abc import Awaitable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from dragoman.languages.codes import name_of
from dragoman.serve.api import Api, Call
from dragoman.serve.apis import v1
from dragoman.serve.apis.v1_models import Pair
from dragoman.serve.errors import ApiError
from dragoman.serve.openapi import METHODS, example_of
from dragoman.serve.requests import check_size, planned
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, Choices
from dragoman.serve.state import Server

FOLDER = Path(__file__).with_name("page")
KINDS = {
    ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".png": "image/png",
    ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json", ".html": "text/html",
}  # fmt: skip
"""The kinds of the page's files: what else lies in the folder is not sent."""
NO_CACHE = {"Cache-Control": "no-cache"}
"""A browser asks each time whether a file is still the same: an upgrade is seen at once."""
_AT_ROOT = {"/favicon.ico": "favicon.svg", "/manifest.webmanifest": "manifest.webmanifest"}


def page_files() -> dict[str, Path]:
    """The files of the page by their address, but for those that the server writes into."""
    paths = (path for path in sorted(FOLDER.rglob("*")) if path.suffix in KINDS.keys() - {".html"})
    files = {f"/page/{path.relative_to(FOLDER).as_posix()}": path for path in paths if path.name != "sw.js"}
    return {**files, **{address: files.pop(f"/page/{name}") for address, name in _AT_ROOT.items()}}


@functools.cache
def version() -> str:
    """A digest of all that the page consists of."""
    digest = hashlib.sha256()
    for path in sorted(path for path in FOLDER.rglob("*") if path.suffix in KINDS):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _html(request: Request, name: str, **parts: str) -> HTMLResponse:
    """An HTML file of the page, with its addresses under the server's path, and `<!-- part -->` replaced."""
    text, root = (FOLDER / name).read_text("utf-8"), request.scope.get("root_path", "")
    if root:
        text = re.sub(r'(?<=href="|.src=")', f"{escape(root)}/", text)
    return HTMLResponse(re.sub(r"<!-- (\w+) -->", lambda part: parts[part[1]], text), headers=NO_CACHE)


async def index(request: Request) -> Response:
    return _html(request, "index.html", form=_form(request.app.state.server))


async def plain(request: Request) -> Response:
    return _html(request, "plain.html", content=_form(request.app.state.server))


async def service_worker(request: Request) -> Response:
    """The script that keeps the page for a time without a network; it is another one with every other page."""
    text = (FOLDER / "sw.js").read_text("utf-8").replace("VERSION", version())
    files = [path[1:] for path in page_files()]
    return PlainTextResponse(text.replace('["FILES"]', json.dumps(files)), media_type=KINDS[".js"], headers=NO_CACHE)


def _file(address: str, path: Path) -> Route:
    async def answer(request: Request) -> Response:
        return FileResponse(path, media_type=KINDS[path.suffix], headers=NO_CACHE)

    return Route(address, answer)


class Form(Pair):
    text: str = ""


class _PlainApi(Api):
    """Operations that a form of HTML asks for: answers and errors are pages."""

    def refusal(self, error: ApiError) -> Response:
        text = f'<p class="error" role="alert">{escape(error.message)}</p><p><a href="plain">Back to the form</a></p>'
        page = (FOLDER / "plain.html").read_text("utf-8").replace("<!-- content -->", text)
        return HTMLResponse(page, error.status, headers=error.headers)


api = _PlainApi("Plain", ApiError.as_dict, v1.api.complaint)


@api.operation("POST", "/plain", "Translate the text of a form of HTML; answers a page", "<!doctype html>")
def translate(call: Call, given: Form) -> Awaitable[Response]:
    check_size(call.server, [given.text])
    src, tgt = v1.languages_of(call, given, auto=True)
    work, tokens = planned(call, [given.text], src, tgt, Choices(warnings=True))

    def answer(handle: RequestHandle) -> Response:
        [made] = work(handle)
        told = f"<p>{escape(name_of(made.src))} → {escape(name_of(tgt))}</p>"
        best = made.item.best
        text = f'<div class="pane output" lang="{escape(tgt)}" dir="auto">{escape(best.text)}</div>'
        notes = [one.record()["text"] for one in best.warnings]
        if made.src == tgt:
            notes.append(f"This text is {name_of(tgt)} already: choose another language below.")
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        content = f'{told}{text}<ul class="notes">{listed}</ul>{_form(call.server, given)}'
        return _html(call.request, "plain.html", content=content)

    return call.run(answer, tokens)


def _form(server: Server, given: Form | None = None) -> str:
    """The form that works without JavaScript, filled in as it was sent."""
    known = server.service.languages()
    if not known:
        return "<p>The models are being loaded: reload this page in a minute.</p>"
    sources = {AUTO: "Detect language", **{code: name_of(code) for code, targets in known.items() if targets}}
    targets = {code: name_of(code) for code in sorted({one for targets in known.values() for one in targets})}
    key = '<p><label>API key <input name="api_key" type="password" autocomplete="off"></label></p>'
    limit = server.limits.text_characters
    text = f'maxlength="{limit}" rows="8" dir="auto" required>{escape(given.text if given else "")}'
    return f"""<form class="panel" action="plain" method="post" accept-charset="utf-8">
<p><label>From {_select("source", sources, given.source if given else AUTO)}</label>
<label>To {_select("target", targets, given.target if given else "")}</label></p>
<p><label>Text, up to {limit:,} characters<br><textarea name="text" {text}</textarea></label></p>
{key if server.settings.key_required else ""}<p><button class="primary">Translate</button></p></form>"""


def _select(name: str, options: Mapping[str, str], chosen: str) -> str:
    rows = (
        f'<option value="{escape(code)}"{" selected" if code == chosen else ""}>{escape(said)}</option>'
        for code, said in options.items()
    )
    return f'<select name="{name}">{"".join(rows)}</select>'


def docs(request: Request, spec: Mapping[str, Any]) -> HTMLResponse:
    """The routes of an OpenAPI description with their fields and examples; `docs.js` lets them be tried."""
    operations = [
        (path, method, one) for path, item in spec["paths"].items() for method, one in item.items() if method in METHODS
    ]
    tags = dict.fromkeys(one["tags"][0] for _, _, one in operations)
    sections = [
        f'<section class="panel"><h2>{escape(tag)}</h2>'
        + "".join(_operation(path, method, one, spec) for path, method, one in operations if one["tags"][0] == tag)
        + "</section>"
        for tag in tags
    ]
    heading = re.sub("`([^`]+)`", r"<code>\1</code>", f"<p>{escape(spec['info']['description'])}</p>")
    return _html(request, "docs.html", version=escape(spec["info"]["version"]), routes=heading + "".join(sections))


def _operation(path: str, method: str, operation: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    schemas = spec["components"]["schemas"]
    answer = next(iter(next(iter(operation["responses"].values())).get("content", {}).values()), {"example": None})
    body = next(iter(operation.get("requestBody", {}).get("content", {}).values()), None)
    shown = example_of(answer, schemas)
    parts = [_fields(operation.get("parameters", ()))]
    if body is not None:
        parts.append(f'<p class="soft">Sent</p>{_pre(example_of(body, schemas))}')
    if shown not in (None, ""):
        parts.append(f'<p class="soft">Answered</p>{_pre(shown)}')
    name = f"{method.upper()} {path}"
    return (
        f'<details data-method="{escape(method)}" data-path="{escape(path)}"><summary><code>{escape(name)}</code>: '
        f"{escape(operation['summary'])}</summary>{''.join(parts)}</details>"
    )


def _fields(parameters: Sequence[Mapping[str, Any]]) -> str:
    rows = (f"<li><code>{escape(one['name'])}</code> ({escape(one['in'])})</li>" for one in parameters)
    return f"<ul>{''.join(rows)}</ul>" if parameters else ""


def _pre(example: Any) -> str:
    text = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=1)
    return f'<pre tabindex="0">{escape(text)}</pre>'


ROUTES = [
    Route("/", index),
    Route("/plain", plain),
    Route("/sw.js", service_worker),
    *(_file(address, path) for address, path in page_files().items()),
    *api.routes(),
]
OPEN = {route.path for route in ROUTES} - {"/plain"}
"""Addresses that answer while models are loaded."""
