"""The page with its files, and what is there without JavaScript: a form that translates, and the routes of all APIs."""

import functools
import hashlib
import json
import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from dragoman.analysis import EXPLAIN_PAGE
from dragoman.languages.codes import direction_of, script_of, tag_of
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.serve.api import Api, Call
from dragoman.serve.apis import v1
from dragoman.serve.apis.v1_models import Pair
from dragoman.serve.errors import ApiError
from dragoman.serve.messages import FOLDER, LOCALES, Messages, locales, messages_for, own_name, words
from dragoman.serve.openapi import METHODS, example_of
from dragoman.serve.requests import check_size, planned, require
from dragoman.serve.scheduler import RequestHandle
from dragoman.serve.service import AUTO, TranslateParams
from dragoman.serve.state import Server

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
    files |= {f"/page/{path.name}": path for path in EXPLAIN_PAGE if path.suffix != ".json"}
    return {**files, **{address: files.pop(f"/page/{name}") for address, name in _AT_ROOT.items()}}


@functools.cache
def version() -> str:
    """A digest of all files of the page."""
    digest = hashlib.sha256()
    for path in sorted(path for path in FOLDER.rglob("*") if path.suffix in KINDS):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    for path in EXPLAIN_PAGE:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _html(request: Request, name: str, status: int = 200, **parts: str) -> HTMLResponse:
    """An HTML file of the page for the reader of a request, with its addresses under the server's path, `{{a text}}` in
    the reader's language, and `<!-- part -->` replaced."""
    text, root, t = (FOLDER / name).read_text("utf-8"), request.scope.get("root_path", ""), messages_for(request)
    parts |= {
        "locale": t.locale,
        "direction": t.direction,
        "script": script_of(t.locale),
        "locales": escape(json.dumps(locales())),
        "languages": _languages(t, name.removesuffix(".html") if name in ("docs.html", "explain.html") else "plain"),
    }
    text = re.sub(r"\{\{(.*?)\}\}", lambda one: escape(t.known(one[1])), text)
    text = re.sub(r"<!-- (\w+) -->", lambda part: parts[part[1]], text)
    if root:
        text = re.sub(r'(?<=href="|.src=")', f"{escape(root)}/", text)
    return HTMLResponse(text, status, {**NO_CACHE, "Content-Language": t.locale, "Vary": "Accept-Language"})


def _languages(t: Messages, address: str) -> str:
    """Links to a page in its other languages."""
    links = (
        f'<a href="{address}?lang={code}" lang="{code}" hreflang="{code}"'
        f"{' aria-current=true' if code == t.locale else ''}>{escape(own_name(code))}</a>"
        for code in LOCALES
    )
    return f'<nav class="locales" aria-label="{escape(t("Language of this page"))}">{" ".join(links)}</nav>'


async def index(request: Request) -> Response:
    return _html(request, "index.html", form=_form(request))


async def plain(request: Request) -> Response:
    return _html(request, "plain.html", content=_form(request))


async def service_worker(request: Request) -> Response:
    """The service worker, which keeps the page for times without a network; its text changes with every change of the
    page."""
    text = (FOLDER / "sw.js").read_text("utf-8").replace("VERSION", version())
    files = [path[1:] for path in page_files()]
    return PlainTextResponse(text.replace('["FILES"]', json.dumps(files)), media_type=KINDS[".js"], headers=NO_CACHE)


@functools.cache
def _contents(path: Path) -> tuple[bytes, str]:
    """The bytes of a file, and their tag."""
    data = path.read_bytes()
    return data, f'"{hashlib.sha256(data).hexdigest()[:16]}"'


def _file(address: str, path: Path) -> Route:
    """The route of a file, which is read once: opened for each request it takes three threads and their turns."""

    async def answer(request: Request) -> Response:
        data, tag = _contents(path)
        headers = {**NO_CACHE, "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=KINDS[path.suffix], headers=headers)

    return Route(address, answer)


class Form(Pair):
    text: Annotated[str, AfterValidator(lambda text: text.replace("\r\n", "\n"))] = ""
    """As it was typed: a form sends each end of a line as two characters."""


class _PlainApi(Api):
    """Operations that a form of HTML asks for: answers and errors are pages."""

    def refusal(self, error: ApiError, request: Request) -> Response:
        t, words_of = messages_for(request), words()["refusals"].get(str(error.status))
        if words_of is None or t.locale == LOCALES[0]:  # the server's own words are English, and say more
            message = f'<span lang="en" dir="ltr">{escape(error.message)}</span>'
        else:
            message = escape(t.known(words_of))
        back = f'<p><a href="plain?lang={t.locale}">{escape(t("Back to the form"))}</a></p>'
        content = f'<p class="error" role="alert">{message}</p>{back}'
        response = _html(request, "plain.html", error.status, content=content)
        response.headers.update(error.headers)
        return response


api = _PlainApi("Plain", ApiError.as_dict, v1.api.complaint)


@api.operation("POST", "/plain", "Translate the text of a form of HTML; answers a page", "<!doctype html>")
def translate(call: Call, given: Form) -> Awaitable[Response]:
    check_size(call.server, [given.text])
    src, tgt = v1.languages_of(call, given, auto=True)
    work, tokens = planned(call, [given.text], src, tgt, TranslateParams(warnings=True))

    def answer(handle: RequestHandle) -> Response:
        [made] = work(handle)
        t, best = messages_for(call.request), made.item.best
        languages = f"<p>{escape(t.pair(made.src, tgt))}</p>"
        text = f'<div class="pane output" {_writing(tgt)}>{escape(best.text)}</div>'
        notes = _remarks(t, best.warnings)
        if made.src == tgt:
            notes.append(t("The text is in {language} already.", language=t.names([tgt])[tgt]))
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        content = f'{languages}{text}<ul class="notes">{listed}</ul>{_form(call.request, given, made.src)}'
        return _html(call.request, "plain.html", content=content)

    return call.run(answer, tokens)


def _writing(code: str) -> str:
    """The attributes of an element with a text in a language; where that is not known its first letter says how."""
    if code == AUTO:
        return 'dir="auto"'
    return f'lang="{escape(tag_of(code))}" dir="{direction_of(code)}" data-script="{script_of(code)}"'


def _remarks(t: Messages, warnings: Iterable[Warning]) -> list[str]:
    """The remarks about a translation, one for each kind."""
    details: dict[WarningKind, dict[str, None]] = {}
    for one in warnings:
        details.setdefault(one.kind, {}).update({one.detail: None} if one.detail else {})
    return [t.known(words()["remarks"][kind], what="; ".join(of_kind)) for kind, of_kind in details.items()]


def _form(request: Request, given: Form | None = None, src: str = AUTO) -> str:
    """The form that works without JavaScript, filled in as it was sent with a text in language `src`."""
    server: Server = request.app.state.server
    t, known = messages_for(request), server.service.languages()
    if not known:
        wait = t("The models are being loaded: reload this page in a minute.")
        return f"<p>{escape(wait)}</p>"
    names = t.names(known)
    sources = {AUTO: t("Detect language"), **{code: names[code] for code, targets in known.items() if targets}}
    targets = {code: names[code] for code in sorted({one for targets in known.values() for one in targets})}
    key = f'<p><label>{escape(t("API key"))} <input name="api_key" type="password" autocomplete="off"></label></p>'
    limit = server.limits.text_characters
    label = escape(t("Text, up to {n} characters", n=t.number(limit)))
    text = f'rows="8" {_writing(src)} required>{escape(given.text if given else "")}'
    return f"""<form class="panel" action="plain?lang={t.locale}" method="post" accept-charset="utf-8">
<p><label>{escape(t("From"))} {_select("source", sources, given.source if given else AUTO)}</label>
<label>{escape(t("To"))} {_select("target", targets, given.target if given else "")}</label></p>
<p><label>{label}<br><textarea name="text" {text}</textarea></label></p>
{key if server.settings.key_required else ""}<p><button class="primary">{escape(t("Translate"))}</button></p></form>"""


def _select(name: str, options: Mapping[str, str], chosen: str) -> str:
    rows = (
        f'<option value="{escape(code)}"{" selected" if code == chosen else ""}>{escape(label)}</option>'
        for code, label in options.items()
    )
    return f'<select name="{name}">{"".join(rows)}</select>'


@api.operation("GET", "/explain", "The page that explains a sentence", "<!doctype html>", public=True)
def explain(call: Call) -> Response:
    server, t = call.server, messages_for(call.request)
    require(server.settings.explain, "Sentences are not explained by this server")
    pairs = {" ".join(pair): t.pair(*pair) for pair in sorted(server.service.runs)}
    content = f"""<p><label>{escape(t("From and to"))} {_select("pair", pairs, "")}</label></p>
<div class="row"><label for="sentence">{escape(t("Sentence"))}</label>
<input id="sentence" dir="auto" maxlength="{server.limits.text_characters}" autocomplete="off" required>
<button class="primary">{escape(t("Explain"))}</button></div>"""
    if not pairs:
        wait = t("The models are being loaded: reload this page in a minute.")
        content = f"<p>{escape(wait)}</p>"
    zh = EXPLAIN_PAGE[-1].read_text("utf-8").replace("<", "\\u003c")
    required = "true" if server.settings.key_required else ""
    return _html(call.request, "explain.html", pairs=content, zh=zh, required=required)


def docs(request: Request, spec: Mapping[str, Any]) -> HTMLResponse:
    """The routes of an OpenAPI description with their fields and examples; `docs.js` lets them be tried."""
    operations = [
        (path, method, one) for path, item in spec["paths"].items() for method, one in item.items() if method in METHODS
    ]
    tags = dict.fromkeys(one["tags"][0] for _, _, one in operations)
    t = messages_for(request)
    sections = [
        f'<section class="panel"><h2>{escape(t.known(tag))}</h2>'
        + "".join(_operation(t, path, method, one, spec) for path, method, one in operations if one["tags"][0] == tag)
        + "</section>"
        for tag in tags
    ]
    heading = re.sub("`([^`]+)`", r"<code>\1</code>", f"<p>{escape(t.known(spec['info']['description']))}</p>")
    return _html(request, "docs.html", version=escape(spec["info"]["version"]), routes=heading + "".join(sections))


def _operation(t: Messages, path: str, method: str, operation: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    schemas = spec["components"]["schemas"]
    answer = next(iter(next(iter(operation["responses"].values())).get("content", {}).values()), {"example": None})
    body = next(iter(operation.get("requestBody", {}).get("content", {}).values()), None)
    shown = example_of(answer, schemas)
    parts = [_fields(operation.get("parameters", ()))]
    if body is not None:
        parts.append(f'<p class="soft">{escape(t("Sent"))}</p>{_pre(example_of(body, schemas))}')
    if shown not in (None, ""):
        parts.append(f'<p class="soft">{escape(t("Answered"))}</p>{_pre(shown)}')
    name = f"{method.upper()} {path}"
    return (
        f'<details data-method="{escape(method)}" data-path="{escape(path)}"><summary><code>{escape(name)}</code>: '
        f"{escape(t.known(operation['summary']))}</summary>{''.join(parts)}</details>"
    )


def _fields(parameters: Sequence[Mapping[str, Any]]) -> str:
    rows = (f"<li><code>{escape(one['name'])}</code> (<code>{escape(one['in'])}</code>)</li>" for one in parameters)
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
