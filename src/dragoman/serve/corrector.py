"""A client as one who corrects translations: what it may, and what it does."""

from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request

from dragoman.progress import say
from dragoman.serve.clients import Client
from dragoman.serve.corrections import ADDRESS, Correction, Filter, KeptCorrection, State
from dragoman.serve.errors import ApiError
from dragoman.serve.hosts import host_name, is_local, is_loopback
from dragoman.serve.settings import Mode, Settings
from dragoman.serve.state import Server

Scope = Literal["own", "shared"]
"""The texts that a correction is for: its author's alone, or everybody's."""
_USED = {
    "own": "used for whoever made them",
    "review": "used for everybody after a review",
    "everybody": "used for everybody",
}
NOT_TAKEN = "Corrections are not taken by this server"


def mode_of(settings: Settings) -> Mode:
    """Whose texts corrections are used for, whether the settings say it or not."""
    return settings.corrections or ("everybody" if settings.local else "review")


def taken(settings: Settings) -> str:
    """The line that says whose corrections a server takes, and whom it uses them for."""
    mode = mode_of(settings)
    if mode == "off":
        return "corrections: none are taken (those in the store are used)"
    here = settings.local and not settings.key_required
    if settings.open_corrections:
        givers = "from everybody"
    else:
        givers = (
            "from this machine and " * here
            + "from keys with the right `correct` (dragoman keys add NAME --may correct)"
        )
    return f"corrections: {givers}, {_USED[mode]}"


def is_here(request: Request, settings: Settings) -> bool:
    """True for a request of the user of the server's own machine: no proxy stands between that nobody told us
    about."""
    return (
        settings.local
        and not settings.key_required
        and is_local(request)
        and is_loopback(host_name(request.headers.get("host", "")))
    )


@dataclass(frozen=True)
class Corrector:
    """A client with its rights."""

    server: Server
    client: Client
    mode: Mode
    author: str
    """The name that its corrections are kept under."""
    has_own: bool
    """The client has an identity, so it can have corrections of its own."""
    may_correct: bool
    may_review: bool

    @classmethod
    def of(cls, server: Server, request: Request, client: Client) -> "Corrector":
        settings, rights = server.settings, client.key.rights if client.key else frozenset[str]()
        mode, here = mode_of(settings), is_here(request, settings)
        anybody = client.key is None and settings.open_corrections
        author = "" if here and client.key is None else client.name
        is_on = mode != "off"
        return cls(
            server, client, mode, author, not author.startswith(ADDRESS),
            is_on and (here or anybody or "correct" in rights), is_on and (here or "review" in rights),
        )  # fmt: skip

    @property
    def own_author(self) -> str | None:
        """The author whose own corrections this client's texts are translated with."""
        return self.author if self.has_own else None

    @property
    def scopes(self) -> list[Scope]:
        """For whom this client may correct, the usual first."""
        own: list[Scope] = ["own"] if self.has_own else []
        shared: list[Scope] = ["shared"] if self.mode != "own" else []
        return [*shared, *own] if self.may_correct else []

    def as_dict(self) -> dict[str, Any]:
        """The client's rights, for a page."""
        return {"mode": self.mode, "may_correct": self.may_correct, "may_review": self.may_review,
                "scopes": self.scopes}  # fmt: skip

    def require(self, refusal: str = NOT_TAKEN) -> None:
        """Raises ApiError (403) for a client that may neither correct nor review."""
        if not (self.may_correct or self.may_review):
            hint = "" if self.mode == "off" else ": it takes a key with the right `correct`"
            raise ApiError(403, refusal + hint)

    def add(self, correction: Correction, scope: Scope | None = None) -> KeptCorrection:
        """Keep a correction, and use it from now on for the clients that it is meant for. Raises ApiError beyond the
        limit."""
        self.require()
        scope = scope or next(iter(self.scopes), None)
        if scope is None or scope not in self.scopes:
            raise ApiError(403, self._why_not(scope))
        state: State = "own"
        if scope == "shared":
            state = "pending" if self.mode == "review" and not self.may_review else "shared"
        corrections = self.server.store.corrections
        there = corrections.find(*correction[:3], author=None if state == "shared" else self.author)
        if there is not None and (there.correction.tgt, there.state) == (correction.tgt, state):
            return there
        self._take_turn()
        self._check_limits()
        with self.server.gate.usage.reserved(self.client.key, len(correction.src) + len(correction.tgt)):
            kept = corrections.add(correction, self.author, state)
        self._done("added", kept)
        return kept

    def _why_not(self, scope: Scope | None) -> str:
        if not self.may_correct:
            return "This key may review, and not correct"
        if scope == "shared":
            return "This server uses corrections for their author alone"
        return "A correction for yourself alone takes a key: nobody knows you again without one"

    def _take_turn(self) -> None:
        """Raises ApiError (429) for a client that changes too much in a minute."""
        self.server.gate.take(f"changes of {self.client.name}", self.server.limits.changes_per_minute)

    def _check_limits(self) -> None:
        limits, kept = self.server.limits, self.server.store.corrections
        if kept.count(Filter(author=self.author)) >= limits.corrections_per_client:
            raise ApiError(403, f"At most {limits.corrections_per_client:,} corrections of one client: forget some")
        if kept.total() >= limits.corrections_in_total:
            raise ApiError(
                403, f"At most {limits.corrections_in_total:,} corrections are kept here: ask the server's operator"
            )

    def seen(self, chosen: Filter) -> Filter:
        """The corrections that this client may see."""
        return chosen._replace(seen_by=self.author if self.has_own else ADDRESS, reviews=self.may_review)

    def get(self, id: int) -> KeptCorrection:
        """A correction that this client may see. Raises ApiError (404) for others."""
        one = self.server.store.corrections.get(id)
        visible = one is not None and (
            one.state == "shared" or one.author == self.own_author or (self.may_review and one.state == "pending")
        )
        if one is None or not visible:
            raise ApiError(404, "There is no such correction")
        return one

    def _changeable(self, id: int) -> KeptCorrection:
        """A correction that this client may change. Raises ApiError for others."""
        one = self.get(id)
        is_mine = one.author == self.own_author and one.state != "shared" and self.may_correct
        if not (is_mine or self.may_review or (one.state == "shared" and self.mode == "everybody")):
            raise ApiError(403, "It is everybody's: that takes a key with the right `review`")
        self._take_turn()
        return one

    def forget(self, id: int) -> None:
        """Let a correction be used no more."""
        one = self._changeable(id)
        if not one.in_force:
            raise ApiError(404, "It is not in use any more")
        self.server.store.corrections.forget(id)
        self._done("forgot", one)

    def undo(self, id: int) -> KeptCorrection | None:
        """Take a correction back. Returns what is in force again, if there is anything."""
        one = self._changeable(id)
        if not one.in_force:
            raise ApiError(409, "It is not in use any more")
        before = self.server.store.corrections.undo(one)
        self._done("took back", one)
        return before

    def restore(self, id: int) -> KeptCorrection:
        """Let a correction be used again that was forgotten, taken back or replaced."""
        one = self._changeable(id)
        if one.in_force:
            raise ApiError(409, "It is in use")
        self._check_limits()
        self.server.store.corrections.restore(one)
        self._done("restored", one)
        return self.get(id)

    def review(self, id: int, *, approved: bool) -> KeptCorrection:
        """Let a correction that waits for it be everybody's, or its author's alone."""
        if not self.may_review:
            raise ApiError(403, "That takes a key with the right `review`")
        self._take_turn()
        one = self.get(id)
        if one.state != "pending" or not one.in_force:
            raise ApiError(409, "It waits for no review")
        self.server.store.corrections.review(one, approved=approved)
        self._done("approved" if approved else "rejected", one)
        return self.server.store.corrections.get(id) or one

    def record(self, one: KeptCorrection) -> dict[str, Any]:
        """A correction for this client: only reviewers see other clients' addresses."""
        src_lang, tgt_lang, src, tgt = one.correction
        is_hidden = one.author.startswith(ADDRESS) and one.author != self.author and not self.may_review
        return {
            "id": one.id, "source": src_lang, "target": tgt_lang, "text": src, "translation": tgt,
            "author": "" if is_hidden else one.author, "created": one.created, "state": one.state,
            "in_use": one.in_force,
        }  # fmt: skip

    def _done(self, what: str, one: KeptCorrection) -> None:
        """Use it from now on, and leave a line in the log, which never holds a text."""
        self.server.memories.read()
        languages = f"{one.correction.src_lang} to {one.correction.tgt_lang}"
        say(f"corrections: {self.author or 'this machine'} {what} {one.id} ({languages}, {one.state})")
