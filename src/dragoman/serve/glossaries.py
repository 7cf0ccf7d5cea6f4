"""The glossaries that clients keep on a server: within limits, and read once for many requests."""

import threading
from collections import OrderedDict

from dragoman.progress import say
from dragoman.serve.clients import Client, Gate
from dragoman.serve.errors import ApiError
from dragoman.serve.service import Languages
from dragoman.serve.settings import Limits
from dragoman.serve.store import Store, StoredGlossary
from dragoman.text.glossary import Glossary

MAX_READY_GLOSSARIES = 8
"""Glossaries that are held ready for the next request with them, at most."""

Versions = tuple[tuple[str, float], ...]
"""The ids of glossaries, and when each was changed last."""


class Glossaries:
    """The glossaries in a store. Threads may share them."""

    def __init__(self, store: Store, limits: Limits, gate: Gate) -> None:
        self.store, self.limits, self.gate = store, limits, gate
        self.changing = threading.RLock()
        """Held while a glossary changes: it is read, changed and written back."""
        self._ready: OrderedDict[tuple[Versions, Languages], Glossary] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, client: Client, id: str) -> StoredGlossary:
        """A client's glossary. Raises ApiError (404) for an id that is not the client's."""
        known = self.store.glossaries(client.name, id)
        if not known:
            raise ApiError(404, "Glossary not found")
        return known[0]

    def terms(self, client: Client, ids: list[str], languages: Languages) -> Glossary:
        """The terms of a client's glossaries between two languages. Of several, the first that has a term counts.

        Raises ApiError: 404 for an id that is none of the client's, 400 for a glossary of other languages.
        """
        changed = self.store.glossary_changes(client.name, ids)
        if missing := [id for id in ids if id not in changed]:
            return self.terms_of(self.get(client, missing[0]), languages)  # which says that it is not there
        key = tuple((id, changed[id]) for id in ids), languages
        with self._lock:
            if (ready := self._ready.pop(key, None)) is not None:
                self._ready[key] = ready
                return ready
        terms: dict[str, str] = {}
        for id in ids:
            terms = self.terms_of(self.get(client, id), languages).targets | terms
        made = Glossary(terms)
        made.find("")  # its index
        with self._lock:
            self._ready[key] = made
            while len(self._ready) > MAX_READY_GLOSSARIES:
                self._ready.popitem(last=False)
        return made

    @staticmethod
    def terms_of(stored: StoredGlossary, languages: Languages) -> Glossary:
        entries = stored.dictionaries.get(languages)
        if entries is None:
            raise ApiError(400, "The glossary is of other languages.")
        return Glossary(dict(line.split("\t") for line in entries.splitlines()))

    def put(
        self, client: Client, name: str, dictionaries: dict[Languages, str], old: StoredGlossary | None = None
    ) -> StoredGlossary:
        """Keep a glossary, in the place of an older one where there is one. Raises ApiError where it is too much."""
        limits = self.limits
        self.gate.take(f"changes of {client.name}", limits.changes_per_minute)
        count, size = self.store.glossary_sizes(client.name)
        new = sum(map(len, dictionaries.values()))
        before = sum(map(len, old.dictionaries.values())) if old else 0
        if old is None and count >= limits.glossaries_per_client:
            raise ApiError(403, f"At most {limits.glossaries_per_client:,} glossaries of one client: delete some")
        if size - before + new > limits.glossary_characters:
            raise ApiError(413, f"At most {limits.glossary_characters:,} characters in all glossaries of one client")
        if new > before and self.store.glossary_sizes()[1] + new - before > limits.glossary_characters_in_total:
            raise ApiError(403, "The server keeps as many glossaries as it may: ask its operator")
        with self.gate.usage.reserved(client.key, max(0, new - before)):
            stored = self.store.put_glossary(name, dictionaries, client.name, old)
        say(f"glossaries: {client.name} {'changed' if old else 'added'} {stored.id}")
        return stored

    def remove(self, client: Client, id: str) -> None:
        """Delete a client's glossary. Raises ApiError (404) for an id that is not the client's."""
        self.gate.take(f"changes of {client.name}", self.limits.changes_per_minute)
        self.get(client, id)
        self.store.remove_glossary(id, client.name)
        say(f"glossaries: {client.name} removed {id}")
