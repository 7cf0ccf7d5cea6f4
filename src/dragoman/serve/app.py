"""The server: its state, its routes, and what stands around every answer."""

import asyncio
import contextlib
import ctypes
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import DragomanError, Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline.memory import TranslationMemory
from dragoman.progress import say
from dragoman.serve import deepl, libretranslate, v1
from dragoman.serve.clients import Gate
from dragoman.serve.documents import Jobs
from dragoman.serve.http import ApiError, Limits, answering, as_error, new_threads
from dragoman.serve.metrics import Metrics
from dragoman.serve.openapi import openapi
from dragoman.serve.scheduler import BatchScheduler
from dragoman.serve.service import Languages, ServedRun, Service
from dragoman.serve.store import Correction, Store

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TIDY_S = 30.0
OPEN = ("/health", "/ready", "/metrics", "/", "/page/", "/spec", "/docs", "/favicon.ico")
"""Addresses that answer while models are loaded."""


@dataclass(frozen=True)
class Settings:
    """Settings of a server."""

    runs: Sequence[Path] = ()
    device: str = "auto"
    engine: str = "pytorch"
    precision: str | None = None
    threads: int | None = None
    store: Path | None = None
    limits: Limits = field(default_factory=Limits)
    key_required: bool = False
    metrics_key: str = ""
    """The bearer that Prometheus has to send; empty: none."""
    suggestions: bool = True
    """Corrections are taken."""
    documents: bool = True
    work_folder: Path | None = None
    load_first: bool = False
    """The application starts when its runs are loaded; else it starts at once and says 503 until then."""


class Server:
    """Everything that handlers share."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.metrics = Metrics()
        self.service = Service(BatchScheduler(settings.threads))
        self.store = Store(settings.store)
        self.gate = Gate(self.store, self.limits, settings.key_required)
        self.jobs = Jobs(self.service, self.metrics, settings.work_folder)
        self.threads = new_threads()
        self.ready = False
        self.stopping = False
        self.problem: DragomanError | None = None
        """Why there is nothing to serve."""
        self.on_problem: Callable[[], None] = lambda: say(f"dragoman: {self.problem}")
        scheduler = self.service.scheduler
        scheduler.on_batch = self.metrics.batch_rows.observe
        scheduler.on_done = self._count
        self.service.on_warnings = self.metrics.guard_warnings.inc
        self.loading = threading.Thread(target=self._load, name="loading", daemon=True)
        self._reloading = threading.Lock()
        self._corrected = threading.Lock()

    def start(self) -> None:
        """Start the scheduler, and load the runs behind it."""
        self.service.scheduler.__enter__()
        for languages in {(item.src_lang, item.tgt_lang) for item in self.store.corrections()}:
            self._remember(languages)
        self.loading.start()

    def stop(self) -> None:
        """End everything; requests that are under way are given up."""
        self.stopping = True
        self.jobs.close()
        self.service.scheduler.__exit__()
        self.threads.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def tidy(self) -> None:
        """Delete old documents, and give the memory back that the C library keeps for later."""
        self.jobs.tidy()
        with contextlib.suppress(OSError, AttributeError):  # of glibc alone
            ctypes.CDLL(None).malloc_trim(0)

    def _load(self) -> None:
        try:
            for path in self.settings.runs:
                self._put(path)
        except Exception as error:
            self.problem = error if isinstance(error, DragomanError) else Error.PROCESS_FAILED(repr(error))
            self.on_problem()
            return
        self.ready = True

    def _put(self, path: Path) -> None:
        started = time.monotonic()
        run = ServedRun.load(
            path,
            self.settings.device,
            self.settings.engine,
            self.settings.precision,
            self.service.scheduler.num_threads,
        )
        before = self.service.runs.get(run.languages)
        if before is not None and before.path != path:
            say(f"{path}: takes the place of {before.path}: both translate {' to '.join(run.languages)}")
        self.service.put(run)
        self.metrics.model.labels(" ".join(run.languages), str(path), run.digest[:12]).set(1)
        if before is not None:
            with contextlib.suppress(KeyError):
                self.metrics.model.remove(" ".join(before.languages), str(before.path), before.digest[:12])
        say(f"serving {' to '.join(run.languages)} from {path} (loaded in {time.monotonic() - started:.1f} s)")

    def reload(self) -> None:
        """Load all runs anew, each in the place of the one that is served; one that fails leaves that as it is."""
        with self._reloading:
            for path in self.settings.runs:
                try:
                    self._put(path)
                except Exception as error:
                    say(f"{path}: not loaded anew, what was served before is served on: {error}")

    def correct(self, correction: Correction, author: str) -> None:
        """Keep a correction, and use it from now on."""
        self.store.correct(correction, author)
        self._remember((correction.src_lang, correction.tgt_lang))

    def forget(self, src_lang: str, tgt_lang: str, src: str) -> bool:
        """Forget the correction of a text; False where there is none."""
        found = self.store.forget(src_lang, tgt_lang, src)
        self._remember((src_lang, tgt_lang))
        return found

    def _remember(self, languages: Languages) -> None:
        with self._corrected:
            pairs = [(item.src, item.tgt) for item in self.store.corrections(*languages)]
            self.service.memories = {**self.service.memories, languages: TranslationMemory(pairs)}

    def _count(self, translator: SearchTranslator, src_tokens: int, tgt_tokens: int) -> None:
        pair = " ".join(translator.languages or ("?", "?"))
        self.metrics.tokens.labels(pair, "source").inc(src_tokens)
        self.metrics.tokens.labels(pair, "target").inc(tgt_tokens)


async def health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def ready(request: Request) -> Response:
    server: Server = request.app.state.server
    if server.ready and not server.stopping:
        return JSONResponse({"status": "ready"})
    state = "stopping" if server.stopping else str(server.problem or "loading")
    return JSONResponse({"status": state}, 503, headers={"Retry-After": "5"})


@answering(as_error)
async def metrics(server: Server, request: Request) -> Response:
    if server.settings.metrics_key and request.headers.get("authorization") != f"Bearer {server.settings.metrics_key}":
        raise ApiError(401, "Unauthorized")
    server.metrics.queue_tokens.set(server.service.scheduler.admitted_tokens)
    server.metrics.tokens_per_second.set(server.service.scheduler.speed.tokens_per_second)
    return PlainTextResponse(server.metrics.page(), media_type="text/plain; version=0.0.4")


async def spec(request: Request) -> Response:
    return JSONResponse(openapi(str(request.base_url).rstrip("/")))


PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/page/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/page/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/page/htm-preact.js": ("htm-preact.js", "text/javascript; charset=utf-8"),
    "/page/style.css": ("style.css", "text/css; charset=utf-8"),
    "/favicon.ico": ("favicon.svg", "image/svg+xml"),
}
"""The files of the page by their address."""


def _page(name: str, kind: str) -> Route:
    path = next(address for address, (file, _) in PAGE.items() if file == name)

    async def answer(request: Request) -> Response:
        data = files("dragoman.serve").joinpath("page", name).read_bytes()
        return Response(
            data, media_type=kind, headers={"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-cache"}
        )

    return Route(path, answer, methods=["GET"])


class ReadinessMiddleware:
    """Pure ASGI, so that a client that goes away is seen: headers, counters, and no work while there are no models."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self.server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        path: str = scope["path"]
        try:
            if not (self.server.ready and not self.server.stopping) and not _is_open(path):
                error = ApiError(
                    503,
                    "Stopping" if self.server.stopping else str(self.server.problem or "The models are being loaded"),
                )
                response = JSONResponse(as_error(503, error.message), 503, headers={"Retry-After": "5"})
                self.server.metrics.rejected("not ready")
                await response(scope, receive, send_with_headers)
            else:
                await self.app(scope, receive, send_with_headers)
        finally:
            route = scope.get("route")
            name = getattr(route, "path", "unknown")
            self.server.metrics.requests.labels(name, str(status)).observe(time.perf_counter() - started)


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith("/page/")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    shape: Callable[[int, str], dict[str, Any]] = (
        deepl.as_error if request.url.path.startswith(("/v2/", "/v3/")) else as_error
    )
    return JSONResponse(shape(error.status_code, str(error.detail)), error.status_code, headers=error.headers)


async def _tidy_now_and_then(server: Server) -> None:
    while True:
        await asyncio.sleep(TIDY_S)
        await asyncio.get_running_loop().run_in_executor(None, server.tidy)


def create_app(settings: Settings) -> Starlette:
    """The ASGI application. It loads its runs when it is started."""
    server = Server(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        server.start()
        if settings.load_first:
            await asyncio.get_running_loop().run_in_executor(None, server.loading.join)
        tidying = asyncio.create_task(_tidy_now_and_then(server))
        try:
            yield
        finally:
            tidying.cancel()
            await asyncio.get_running_loop().run_in_executor(None, server.stop)

    routes = [
        *(_page(name, kind) for name, kind in PAGE.values()),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        Route("/spec", spec),
        *libretranslate.ROUTES,
        *deepl.ROUTES,
        *v1.ROUTES,
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error},
        middleware=[
            Middleware(ReadinessMiddleware, server=server),
            Middleware(
                CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST", "DELETE", "PATCH", "PUT"],
                allow_headers=["*"], expose_headers=["Retry-After"],
            ),
        ],
    )  # fmt: skip
    app.state.server = server
    return app
