"""The error that a client of the server gets as its answer."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from dragoman.errors import DragomanError, Error

CLIENT_GONE = 499
"""The status of an answer to a client that did not wait; it sees nothing of it."""
SERVER_FAULTS = frozenset({
    Error.CANNOT_READ, Error.CANNOT_WRITE, Error.NO_SPACE, Error.DAMAGED, Error.OUT_OF_MEMORY, Error.NO_DEVICE,
    Error.DIVERGED, Error.EXTERNAL_FAILED, Error.PROCESS_FAILED, Error.IN_USE,
})  # fmt: skip
"""Errors of the machine, that no other request would mend: a client gets a status of 500 or more. Their messages are
about files, devices and processes, never about a client's text, and stand in the server's log."""
COME_BACK = {429: "5", 503: "5"}
"""Seconds after which a refused request may be sent again, where nobody knows better, by status."""


class ApiError(Exception):
    """A request that is not done, with the status and a text for whoever sent it."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        cause: DragomanError | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """`details`: further fields for programs."""
        super().__init__(message)
        self.status, self.cause, self.details = status, cause, dict(details or {})
        self.message = message.encode(errors="replace").decode()
        self.headers = {**({"Retry-After": COME_BACK[status]} if status in COME_BACK else {}), **(headers or {})}

    def as_dict(self) -> dict[str, Any]:
        """The error for a program: its text and its code, and file, line and hint where it has them."""
        if self.cause is not None:
            known = {name: value for name, value in self.cause.as_dict().items() if value is not None}
            return {**known, "error": self.message, **self.details}
        names = {status.value: status.phrase for status in HTTPStatus}
        return {
            "error": self.message,
            "code": names.get(self.status, "refused").lower().replace(" ", "-"),
            **self.details,
        }
