"""Pages of other sites: they may have texts translated, and nothing else.

A browser sends what a page asks for with the rights of whoever looks at the page, and from where that person sits. So
what is kept, changed or private is for programs and for the server's own page.
"""

import ipaddress
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.api import Api
from dragoman.serve.errors import ApiError
from dragoman.serve.hosts import host_name, is_loopback
from dragoman.serve.http import FORMS, route_path
from dragoman.serve.settings import Settings

CROSS_ORIGIN = frozenset({
    "/translate", "/detect", "/languages", "/frontend/settings",
    "/v1/translate", "/v1/translate/stream", "/v1/words", "/v1/detect", "/v1/languages", "/v1/limits",
    "/v2/translate", "/v2/languages", "/v2/glossary-language-pairs", "/spec", "/health", "/ready",
})  # fmt: skip
"""Addresses that pages of all sites may ask (CORS): they keep nothing and tell nothing of anybody."""
SAFE = ("GET", "HEAD", "OPTIONS")


class OriginMiddleware:
    """CORS where pages of other sites may ask; elsewhere a refusal of what they send, also under a name of their own
    that leads here (DNS rebinding)."""

    def __init__(self, app: ASGIApp, settings: Settings, free: Collection[str], api_at: Callable[[str], Api]) -> None:
        """`free`: addresses that tell and change nothing, such as those of the page's files."""
        self.app, self.settings, self.free, self.api_at = app, settings, free, api_at
        self.with_cors = CORSMiddleware(
            app, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["*"],
            expose_headers=["Retry-After"],
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        address = route_path(Request(scope))
        if address in CROSS_ORIGIN:
            await self.with_cors(scope, receive, send)
        elif address in self.free:
            await self.app(scope, receive, send)
        elif error := self._refusal(Headers(scope=scope), scope["method"]):
            await self.api_at(address).refusal(error, Request(scope))(scope, receive, send)
        else:
            await self.app(scope, receive, _alone(send))

    def _refusal(self, headers: Headers, method: str) -> ApiError | None:
        """The reason why a request is not let in, if there is one."""
        host = host_name(headers.get("host", "")).lower().removesuffix(".")
        if host and not self._is_ours(host):
            hint = "its operator may allow it (`allowed_host`, `behind_proxy`)"
            return ApiError(403, f"This server does not answer to the name {host}: {hint}")
        if method in SAFE:
            return None
        if not self._is_same_origin(headers):
            return ApiError(403, "A page of another site may translate here, and nothing else")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if has_body and kind not in (*FORMS, "application/json"):
            # Any page may send text/plain, or no type at all, without asking first.
            return ApiError(415, "Content-Type: send application/json, or a form")
        return None

    def _is_ours(self, host: str) -> bool:
        """True for a name that this server is called by: one that can be no stranger's, or that we were told."""
        is_checked = self.settings.allowed_hosts or self.settings.local
        return not is_checked or self._is_told(host) or is_loopback(host) or _is_address(host)

    def _is_told(self, host: str | None) -> bool:
        return host in [name.lower().removesuffix(".") for name in self.settings.allowed_hosts]

    def _is_same_origin(self, headers: Headers) -> bool:
        """True for a request of the server's own page, or of no page.

        Browsers say so themselves where the page is encrypted or on their own machine, whatever a proxy does to the
        name; elsewhere the page's origin is to be the name that the server was called by.
        """
        if site := headers.get("sec-fetch-site"):
            return site in ("same-origin", "none")
        origin = headers.get("origin")
        if origin is None:
            return True
        try:
            place = urlsplit(origin)
            name, given = place.hostname, place.netloc.lower()
        except ValueError:
            return False
        names = [headers.get("host")] + [headers.get("x-forwarded-host")] * (not self.settings.local)
        usual = ":443" if place.scheme == "https" else ":80"
        return given in [one.lower().removesuffix(usual) for one in names if one] or self._is_told(name)


def _is_address(host: str) -> bool:
    """True for an IP address: no name that leads elsewhere today and here tomorrow."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _alone(send: Send) -> Send:
    """Answers that no page of another site may show or read, in whatever way."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), (b"cross-origin-resource-policy", b"same-origin")]
        await send(message)

    return sending
