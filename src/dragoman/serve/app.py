"""The ASGI application of a server: its routes, and what stands around every answer."""

import asyncio
import contextlib
import functools
import hmac
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import Error
from dragoman.progress import say
from dragoman.serve import pages
from dragoman.serve.api import Api, api_error, respond
from dragoman.serve.apis import deepl, libretranslate, v1
from dragoman.serve.clients import anonymous
from dragoman.serve.errors import ApiError
from dragoman.serve.fairness import Beginnings
from dragoman.serve.hosts import is_local
from dragoman.serve.http import route_path
from dragoman.serve.openapi import openapi
from dragoman.serve.origins import OriginMiddleware
from dragoman.serve.settings import Settings
from dragoman.serve.state import COUNT_SECONDS, Server

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
]
"""Headers of every answer."""
FREE = {*pages.OPEN, "/plain", "/docs"}
"""Addresses of the page, which tell and change nothing."""
TIDY_SECONDS = 5.0
"""Seconds between two looks for what nobody needs any more: with 30 heaps grew meanwhile (`benchmarks/serving.md`)."""
OPEN = {*pages.OPEN, "/docs", "/health", "/ready", "/metrics", "/spec"}
"""Addresses that answer while models are loaded."""

state = Api("State", libretranslate.error_body, lambda error: error["msg"])
"""Operations that say how the server does. Their handlers run on the event loop: they answer whatever else is busy."""


@state.operation("GET", "/health", "The process lives", {"status": "ok"})
async def health(request: Request) -> Response:
    return respond({"status": "ok"})


@state.operation("GET", "/ready", "Models are loaded (else 503)", {"status": "ready"})
async def ready(request: Request) -> Response:
    server: Server = request.app.state.server
    if (reason := server.unready()) is None:
        return respond({"status": "ready"})
    response = respond({"status": reason}, 503)
    response.headers["Retry-After"] = "5"
    return response


@state.operation("GET", "/metrics", "Counters for Prometheus", "dragoman_queue_tokens 0.0",
                 media=("text/plain",))  # fmt: skip
async def metrics(request: Request) -> Response:
    server: Server = request.app.state.server
    key = server.settings.metrics_key
    given = request.headers.get("authorization", "").encode()
    if key and not hmac.compare_digest(given, f"Bearer {key}".encode()):
        return state.refusal(ApiError(401, "Unauthorized", {"WWW-Authenticate": "Bearer"}), request)
    if not key and not is_local(request):
        return state.refusal(
            ApiError(403, "Counters are for this machine alone, where the server has no `metrics_key`"), request
        )
    server.metrics.queue_tokens.set(server.service.scheduler.shares.total)
    server.metrics.tokens_per_second.set(server.service.scheduler.speed.tokens_per_second)
    return PlainTextResponse(server.metrics.page(), media_type="text/plain; version=0.0.4")


APIS = (v1.api, libretranslate.api, deepl.api, state)


@functools.cache
def _description() -> dict[str, Any]:
    return openapi(APIS, "")


async def _spec(request: Request) -> dict[str, Any]:
    """The description of all APIs at the address that was asked for. It is made once, and takes its time."""
    description = await asyncio.to_thread(_description)
    return {**description, "servers": [{"url": str(request.base_url).rstrip("/")}]}


async def spec(request: Request) -> Response:
    return respond(await _spec(request))


async def docs(request: Request) -> Response:
    return pages.docs(request, await _spec(request))


ROUTES = [
    *pages.ROUTES,
    *(Route(one.path, one.handler) for one in state.operations),
    Route("/spec", spec),
    Route("/docs", docs),
    *(route for api in APIS if api is not state for route in api.routes()),
]


def _api_at(path: str) -> Api:
    """The API whose clients ask for an address; of an unknown address LibreTranslate's."""
    if path in ("/plain", "/explain"):
        return pages.api
    prefixes = {"/v1/": v1.api, "/v2/": deepl.api, "/v3/": deepl.api}
    return prefixes.get(path[:4], libretranslate.api)


class ReadinessMiddleware:
    """Headers, counters, turns at the event loop, and no work while there are no models. Pure ASGI, so that a client
    that goes away is seen."""

    def __init__(self, app: ASGIApp, server: Server, paths: Mapping[object, str]) -> None:
        """`paths`: the path of each endpoint, for the counters."""
        self.app, self.server, self.paths = app, server, paths
        self.beginnings = Beginnings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            await self.beginnings.begin(anonymous(Request(scope)).name)
            reason = self.server.unready()
            address = route_path(Request(scope))
            if reason is None or address in OPEN:
                await self.app(scope, receive, send_with_headers)
            else:
                self.server.metrics.rejected("not ready")
                error = ApiError(503, f"Not ready: {reason}", {"Retry-After": "5"})
                await _api_at(address).refusal(error, Request(scope))(scope, receive, send_with_headers)
        finally:
            path, seconds = self.paths.get(scope.get("endpoint"), "unknown"), time.perf_counter() - started
            self.server.metrics.requests.labels(path, str(status)).observe(seconds)
            if self.server.settings.access_log:
                client = scope.get("client_name") or anonymous(Request(scope)).name
                say(f"{scope['method']} {path} {status} {seconds:.3f} s {client}")


class RootPathMiddleware:
    """The server under a path, behind a proxy that takes the path away from what it hands on, or one that does not."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app, self.root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if path == self.root and scope["method"] in ("GET", "HEAD"):
                await RedirectResponse(f"{self.root}/")(scope, receive, send)
                return
            if not path.startswith(f"{self.root}/"):
                path = self.root + path
            scope = {**scope, "path": path, "root_path": self.root}
        await self.app(scope, receive, send)


def _root_path(written: str) -> str:
    """A path prefix for the middleware. Raises DragomanError for text that is no path, and for a path that would hide
    an address."""
    root = "/" + written.strip("/")
    if root == "/":
        return ""
    if not re.fullmatch(r"(?:/[\w.~-]+)+", root):
        raise Error.WRONG_OPTION(f"`root_path`: {written!r} is no path", "write it as /translate")
    reads = {route.path for route in ROUTES if "GET" in (route.methods or ())}
    if root in reads or any(route.path.startswith(f"{root}/") for route in ROUTES):
        raise Error.CONFLICT(f"`root_path`: {root} is an address of the server itself", "choose another")
    return root


async def _http_error(request: Request, error: Exception) -> Response:
    """The answer about a wrong address or method, and about a mistake of ours outside of every handler."""
    refused = api_error(error, request.app.state.server)
    if refused.status == 405:
        path = route_path(request)
        known = {method for route in ROUTES if route.path_regex.match(path) for method in route.methods or ()}
        refused.headers["Allow"] = ", ".join(sorted({*known, "OPTIONS"}))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=refused.headers)
    return _api_at(route_path(request)).refusal(refused, request)


async def _now_and_then(seconds: float, work: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(work)


def create_app(settings: Settings) -> Starlette:
    """The ASGI application. It loads its runs when it is started. Raises DragomanError for a wrong `root_path`."""
    root = _root_path(settings.root_path)
    server = Server(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        server.start()
        if settings.load_first:
            await asyncio.to_thread(server.loading.join)
        chores = [(TIDY_SECONDS, server.tidy), (COUNT_SECONDS, server.gate.usage.write)]
        tasks = [asyncio.create_task(_now_and_then(*chore)) for chore in chores]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.to_thread(server.stop)

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _http_error},
        middleware=[
            *([Middleware(RootPathMiddleware, root=root)] if root else []),
            Middleware(ReadinessMiddleware, server=server, paths={route.endpoint: route.path for route in ROUTES}),
            Middleware(OriginMiddleware, settings=settings, free=FREE, api_at=_api_at),
        ],
    )  # fmt: skip
    app.state.server = server
    return app
