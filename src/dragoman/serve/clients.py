"""Who asks, and how much they may: API keys, and limits of requests a minute and characters a month."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from starlette.requests import Request

from dragoman.serve.corrections import ADDRESS
from dragoman.serve.errors import ApiError
from dragoman.serve.settings import Limits
from dragoman.serve.store import Key, Store

REMEMBERED = 10_000
"""Clients whose requests are counted at a time; of more, those that have not asked for long are forgotten."""


class Client(NamedTuple):
    """Whoever sent a request: the name of the key, or the address."""

    name: str
    key: Key | None


class Gate:
    """The gate that lets requests in, or says why not."""

    def __init__(self, store: Store, limits: Limits, key_required: bool) -> None:
        self.store, self.limits, self.key_required = store, limits, key_required
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}
        """Of each client the requests that it may still send, and when that was so."""

    def authenticate(self, request: Request, given: object = None) -> Client:
        """The client of a request that may go on. `given`: the key in the request's own parameters.

        Where none is needed an unknown key is as good as none: some clients insist on sending one. Raises ApiError: 400
        without a key where one is needed, 403 for a wrong one, 429 for too many requests.
        """
        text = given if isinstance(given, str) and given else _key_in_headers(request)
        key = self.store.key(text) if text else None
        if key is None and self.key_required:
            if text:
                raise ApiError(403, "Invalid API key")
            raise ApiError(400, "Please contact the server operator to get an API key")
        client = _client(request, key)
        limit = (key.per_minute if key else None) or (0 if key else self.limits.requests_per_minute)
        if limit:
            self.take(client.name, limit)
        return client

    def known(self, request: Request) -> Client:
        """The client of a request that is asked for no key, by the key that it sends all the same."""
        text = _key_in_headers(request)
        return _client(request, self.store.key(text) if text else None)

    def count_quota(self, client: Client, characters: int) -> None:
        """Count characters. Raises ApiError (456, as DeepL says it) where the month's are used up."""
        if client.key is None:
            return
        if not self.store.count(client.name, characters, client.key.per_month):
            raise ApiError(456, "Quota exceeded: the characters of this key for this month are used up")

    @contextmanager
    def counted(self, client: Client, characters: int) -> Iterator[None]:
        """Count the characters of what is done in a block, if it is done."""
        self.count_quota(client, characters)
        try:
            yield
        except BaseException:
            if client.key is not None:
                self.store.count(client.name, -characters)
            raise

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
            while len(self._left) > REMEMBERED:
                self._left.pop(next(iter(self._left)))


def _client(request: Request, key: Key | None) -> Client:
    address = request.client.host if request.client else "unknown"
    return Client(key.name, key) if key else Client(f"{ADDRESS}{address}", None)


def _key_in_headers(request: Request) -> str:
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() in ("bearer", "deepl-auth-key"):
        return text.strip()
    return request.headers.get("x-api-key", "")
