"""An API of the server: its operations, the way from a request to its answer, and the shape of its errors."""

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dragoman.errors import DragomanError, Error
from dragoman.progress import say
from dragoman.serve.clients import Client, anonymous, key_of
from dragoman.serve.corrector import Corrector
from dragoman.serve.errors import CLIENT_GONE, SERVER_FAULTS, ApiError
from dragoman.serve.http import body_length, closing_files, parameters_of, read_body
from dragoman.serve.logs import traced
from dragoman.serve.messages import messages_for
from dragoman.serve.scheduler import Cancelled, DeadlineExceeded, Overloaded, RequestHandle, TooMuch
from dragoman.serve.state import Server

Result = TypeVar("Result")

MAX_SECONDS_UNTIL_BEGUN = 0.25
"""A request that would not be looked at within these is refused at once."""


class Load(NamedTuple):
    """The work of a request, before it begins."""

    tokens: int
    """Source tokens: a guess."""
    characters: int
    """Characters that count for the month."""


@dataclass(frozen=True)
class Call:
    """A request at its handler: who sent it, and what."""

    server: Server
    request: Request
    client: Client
    parameters: Mapping[str, Any]
    deadline: float
    """The time by which the request has to be answered (`time.monotonic`)."""

    @property
    def corrector(self) -> Corrector:
        """The client as an author of corrections."""
        return Corrector.of(self.server, self.request, self.client)

    @property
    def reader(self) -> str:
        """The language of whoever reads the answer, among the languages of the page."""
        return messages_for(self.request).locale

    @contextmanager
    def admitted(self, load: Load) -> Iterator[RequestHandle]:
        """Let work in, for as long as the block lasts; its characters are counted if the block raises nothing.

        Raises ApiError (413, 456) and Overloaded at once, before any work.
        """
        server, limits = self.server, self.server.limits
        handle = RequestHandle(server.service.scheduler, self.deadline, client=self.client.name)
        is_small = load.characters <= limits.text_characters
        try:
            with (
                server.gate.usage.reserved(self.client.key, load.characters),
                server.service.scheduler.admitted(handle, load.tokens, is_small=is_small),
            ):
                yield handle
        except TooMuch as error:
            server.metrics.rejected("too much")
            most = f"about {int(load.characters * error.share):,} characters"
            raise ApiError(
                413, f"Too much for {limits.deadline_seconds:g} s: {most} could be translated, send less at once"
            ) from error

    async def run(self, work: Callable[[RequestHandle], Result], load: Load | None) -> Result:
        """The result of `work`, done in a thread with a handle that ends at the deadline, or when the client goes away.

        `load`: None for a part of what is admitted already. Raises what `admitted` does.
        """
        own = nullcontext(handle_of(self.server, self.client)) if load is None else self.admitted(load)
        with own as handle:
            threads = self.server.request_threads
            working = asyncio.ensure_future(threads.run(handle.client, handle.run, work))
            return await until_gone(self.request, self.server, handle, working)


def handle_of(server: Server, client: Client) -> RequestHandle:
    """A new handle of a client's request, which ends at the deadline."""
    deadline = time.monotonic() + server.limits.deadline_seconds
    return RequestHandle(server.service.scheduler, deadline, client=client.name)


async def until_gone(
    request: Request, server: Server, handle: RequestHandle, working: "asyncio.Future[Result]"
) -> Result:
    """The result of work, unless the client goes away before that."""
    watching = asyncio.ensure_future(_gone(request))
    both: set[asyncio.Future[Any]] = {working, watching}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Cancelled
        return working.result()
    except asyncio.CancelledError as error:
        if server.stopping:  # uvicorn waits no longer: the client still gets an answer
            raise Cancelled from error
        raise
    finally:
        watching.cancel()
        if not working.done():
            handle.cancel()
            working.cancel()


async def _gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@dataclass(frozen=True, eq=False)
class Operation:
    """A route and its description.

    The handler gets a `Call`, and the parameters as its argument `given`, of the model that it names. It runs in a
    thread and returns the answer (data or a Response), or an awaitable of the answer.
    """

    handler: Callable[..., Any]
    methods: tuple[str, ...]
    path: str
    summary: str
    answer: Any
    """The type of the answer, or an example of it."""
    files: bool = False
    """A file is sent."""
    public: bool = False
    """Nobody is asked for a key."""
    translates: bool = False
    """The request holds texts to translate: it is refused before its body is read where too many are waiting."""
    polls: bool = False
    """It is asked again and again, and does not use up the requests of a minute."""
    status: int = 200
    media: tuple[str, ...] = ("application/json",)
    """The media types of the answer."""
    headers: tuple[str, ...] = ()
    """Headers that may be sent, beside the headers of all operations."""

    @property
    def model(self) -> type[BaseModel] | None:
        """The parameters of the operation."""
        return self.handler.__annotations__.get("given")


class Api:
    """The operations of an API, and the shape of its errors."""

    def __init__(
        self,
        name: str,
        error_body: Callable[[ApiError], dict[str, Any]],
        complaint: Callable[[ErrorDetails], str],
        absent: tuple[object, ...] = (None,),
        key_in_body: bool = False,
    ) -> None:
        """`complaint`: the text about a parameter that cannot be meant; `absent`: values that stand for no value;
        `key_in_body`: its clients may send their key there."""
        self.name, self.error_body, self.complaint, self.absent = name, error_body, complaint, absent
        self.key_in_body = key_in_body
        self.operations: list[Operation] = []

    def operation(
        self, methods: str, path: str, summary: str, answer: Any = None, **kind: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Make a function the handler of a route. `kind`: the other fields of `Operation`."""

        def register(handler: Callable[..., Any]) -> Callable[..., Any]:
            self.operations.append(Operation(handler, tuple(methods.split()), path, summary, answer, **kind))
            return handler

        return register

    def routes(self) -> list[Route]:
        return [
            Route(one.path, functools.partial(self._answer, one), methods=list(one.methods)) for one in self.operations
        ]

    async def _answer(self, operation: Operation, request: Request) -> Response:
        server: Server = request.app.state.server
        gate, files = server.gate, operation.files
        try:
            key = key_of(request)
            if operation.public:
                client = gate.known(request, key)
            elif key or not self.key_in_body:
                client = gate.authenticate(request, key, polls=operation.polls)
            else:  # known when its body is read, which may be no long one where strangers are not served
                client, files = anonymous(request), files and not gate.key_required
            known = client if operation.public or key or not self.key_in_body else None
            if (seconds := server.handlers.seconds_until(client.name)) > MAX_SECONDS_UNTIL_BEGUN:
                raise Overloaded(seconds)
            if operation.translates:
                server.service.scheduler.check_room(client.name, body_length(request))
            with server.bodies.lease(client.name, server.limits.bodies_bytes) as take:
                body = await read_body(request, server.limits, take, files=files)
                handle = handle_of(server, client)
                working = server.handlers.run(
                    client.name, handle.run, lambda handle: self._handled(handle, operation, request, body, known)
                )
                answer = await until_gone(request, server, handle, asyncio.ensure_future(working))
            return respond(await answer, operation.status) if inspect.isawaitable(answer) else answer
        except asyncio.CancelledError:
            if not server.stopping:
                raise
            return self.refusal(api_error(Cancelled(), server), request)  # uvicorn waits no longer for its body
        except Exception as exception:
            return self.refusal(api_error(exception, server), request)

    def _handled(
        self, handle: RequestHandle, operation: Operation, request: Request, body: bytes, client: Client | None
    ) -> Any:
        """The answer, or an awaitable of it."""
        server: Server = request.app.state.server
        parameters = parameters_of(request, body)
        with closing_files(parameters):
            client = client or server.gate.authenticate(request, parameters.get("api_key"), polls=operation.polls)
            request.scope["client_name"] = client.name
            call, model = Call(server, request, client, parameters, handle.deadline), operation.model
            if model is None:
                answer = operation.handler(call)
            else:
                answer = operation.handler(call, given=self._read(model, call))
            return answer if inspect.isawaitable(answer) else respond(answer, operation.status)

    def _read(self, model: type[BaseModel], call: Call) -> BaseModel:
        present = {name: value for name, value in call.parameters.items() if value not in self.absent}
        try:
            return model.model_validate(present)
        except ValidationError as error:
            first, *others = error.errors(include_url=False)
            alike = [first, *(other for other in others if other["loc"][0] == first["loc"][0])]
            raise ApiError(400, self.complaint(max(alike, key=lambda one: len(one["loc"])))) from error

    def refusal(self, error: ApiError, request: Request) -> Response:
        """The answer to a request that was refused or failed."""
        return JSONResponse(self.error_body(error), error.status, headers=error.headers)


def respond(answer: Any, status: int = 200) -> Response:
    """An answer as JSON, unless it is a Response already. Fields that are None are left out. Names of languages are in
    the reader's language."""
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=204)
    data = to_json(answer, exclude_none=True, inf_nan_mode="null")
    return Response(data, status, {"Vary": "Accept-Language"}, media_type="application/json")


def api_error(error: BaseException, server: Server) -> ApiError:
    """The answer to a client about an error."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Overloaded):
        server.metrics.rejected("overloaded")
        seconds = str(max(1, round(error.retry_after)))
        return ApiError(429, f"Slowdown: too much work waits, try again in {seconds} s", {"Retry-After": seconds})
    if isinstance(error, DeadlineExceeded):
        server.metrics.rejected("deadline")
        return ApiError(504, f"Not done within {server.limits.deadline_seconds:g} s: send less text at once")
    if isinstance(error, Cancelled | ClientDisconnect):
        if server.stopping:
            return ApiError(503, "The server is stopping", {"Retry-After": "5"})
        return ApiError(CLIENT_GONE, "The client has gone")
    if isinstance(error, DragomanError) and error.code == Error.IN_USE:
        server.metrics.rejected("store in use")
        return ApiError(503, "The server's store is in use: try again", {"Retry-After": "1"})
    if isinstance(error, DragomanError) and error.code not in SERVER_FAULTS and not server.names_own_file(error):
        return ApiError(400, str(error), cause=error)
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, str(error.detail), error.headers)
    say(traced(error))
    return ApiError(500, "Internal error: the server's log has more")
