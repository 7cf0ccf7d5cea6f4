"""Who asks, and how much they may: API keys, and limits of requests a minute and characters a month."""

import contextlib
import threading
import time
from typing import NamedTuple

from starlette.requests import Request

from dragoman.errors import DragomanError
from dragoman.serve.corrections import ADDRESS
from dragoman.serve.errors import ApiError
from dragoman.serve.hosts import network_of
from dragoman.serve.settings import Limits
from dragoman.serve.store import Key, Store, digest
from dragoman.serve.usage import Usage

MAX_REMEMBERED_CLIENTS = 10_000
"""Clients whose requests are counted at a time; of more, those that have not asked for long are forgotten."""
POLLS_PER_REQUEST = 20
"""Polls that a client may send for each of its requests."""


class Client(NamedTuple):
    """Whoever sent a request: the name of the key, or the address."""

    name: str
    key: Key | None


class Gate:
    """The gate that lets requests in, or says why not. It knows the keys by heart: a store that is locked, or slow,
    holds nobody up."""

    def __init__(self, store: Store, limits: Limits, key_required: bool) -> None:
        self.store, self.limits, self.key_required = store, limits, key_required
        self.usage = Usage(store)
        self._keys = store.keys_by_digest()
        self._version = store.database.changed_elsewhere()
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}
        """Of each client the requests, or polls, that it may still send, and when that was so."""

    def authenticate(self, request: Request, given: object, *, polls: bool = False) -> Client:
        """The client of a request that may go on. `given`: its key.

        Where none is needed an unknown key is as good as none: some clients insist on sending one. Raises ApiError: 400
        without a key where one is needed, 403 for a wrong one, 429 for too many requests.
        """
        key = self._key(given)
        if key is None and self.key_required:
            if given:
                raise ApiError(403, "Invalid API key")
            raise ApiError(400, "Please contact the server operator to get an API key")
        client = Client(key.name, key) if key else anonymous(request)
        limit = (key.per_minute if key else None) or (0 if key else self.limits.requests_per_minute)
        if limit:
            self.take(
                f"polls of {client.name}" if polls else client.name, limit * POLLS_PER_REQUEST if polls else limit
            )
        return client

    def known(self, request: Request, given: str) -> Client:
        """The client of a request that is asked for no key, by the key that it sends all the same."""
        key = self._key(given)
        return Client(key.name, key) if key else anonymous(request)

    def _key(self, given: object) -> Key | None:
        """The key that a client gave; None for an unknown key."""
        if not isinstance(given, str) or not given:
            return None
        with contextlib.suppress(DragomanError):  # locked: what was known is true until it can be read
            version = self.store.database.changed_elsewhere()
            if version is not None and version != self._version:
                self._keys, self._version = self.store.keys_by_digest(), version
        return self._keys.get(digest(given))

    def take(self, name: str, limit: int) -> None:
        """Take one of a bucket that holds `limit` and fills up in a minute. Raises ApiError (429) for an empty one."""
        now = time.monotonic()
        with self._lock:
            left, since = self._left.get(name, (float(limit), now))
            left = min(float(limit), left + (now - since) * limit / 60)
            if left < 1:
                seconds = max(1, round((1 - left) * 60 / limit))
                raise ApiError(429, f"Slowdown: {limit} per 1 minute", {"Retry-After": str(seconds)})
            self._left.pop(name, None)
            self._left[name] = (left - 1, now)
            while len(self._left) > MAX_REMEMBERED_CLIENTS:
                self._left.pop(next(iter(self._left)))


def anonymous(request: Request) -> Client:
    """The client of a request without a key."""
    return Client(f"{ADDRESS}{network_of(request.client.host if request.client else '')}", None)


def key_of(request: Request) -> str:
    """The key in the headers of a request, or in its address; empty if there is none."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() in ("bearer", "deepl-auth-key"):
        return text.strip()
    return request.headers.get("x-api-key", "") or request.query_params.get("api_key", "")
