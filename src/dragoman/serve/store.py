"""The store of a server, one SQLite file: API keys (hashed), their use, and corrections. Texts of requests never."""

import hashlib
import json
import secrets
import sqlite3
import threading
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import Error

_TABLES = """
CREATE TABLE IF NOT EXISTS keys (
    digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, per_minute INTEGER, per_month INTEGER, created REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS usage (
    name TEXT NOT NULL, month TEXT NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (name, month)
);
CREATE TABLE IF NOT EXISTS corrections (
    id INTEGER PRIMARY KEY, src_lang TEXT NOT NULL, tgt_lang TEXT NOT NULL, src TEXT NOT NULL, tgt TEXT NOT NULL,
    created REAL NOT NULL, author TEXT NOT NULL DEFAULT '', UNIQUE (src_lang, tgt_lang, src)
);
CREATE TABLE IF NOT EXISTS glossaries (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, dictionaries TEXT NOT NULL, created REAL NOT NULL,
    author TEXT NOT NULL DEFAULT ''
);
"""


class Key(NamedTuple):
    """An API key by its name; limits are None where there are none."""

    name: str
    per_minute: int | None
    """Requests a minute."""
    per_month: int | None
    """Characters a month."""


class Correction(NamedTuple):
    """A translation as a person wants it."""

    src_lang: str
    tgt_lang: str
    src: str
    tgt: str


class StoredGlossary(NamedTuple):
    """A glossary of a client: for each pair of languages its entries, as tab-separated lines."""

    id: str
    name: str
    dictionaries: dict[tuple[str, str], str]
    created: float


class Store:
    """The file. Threads may share it; another process may write into it as well (`dragoman keys`)."""

    def __init__(self, path: Path | None) -> None:
        """`path`: None keeps everything in memory. Raises DragomanError for a file that is no store or is locked up."""
        self.path = path
        self._lock = threading.Lock()
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=5.0, isolation_level=None)
            if path is not None:
                path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_TABLES)
        except (sqlite3.Error, OSError) as error:
            raise Error.CANNOT_READ(f"no file to keep keys and corrections in: {error}", file=path) from error

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _run(self, sql: str, *values: object) -> tuple[list[Any], int]:
        """The rows that a statement finds, and the number of those that it has changed."""
        with self._lock:
            try:
                cursor = self._db.execute(sql, values)
                return cursor.fetchall(), cursor.rowcount
            except sqlite3.Error as error:
                raise Error.CANNOT_READ(f"{error}", file=self.path or "the store") from error

    def _rows(self, sql: str, *values: object) -> list[Any]:
        return self._run(sql, *values)[0]

    def _change(self, sql: str, *values: object) -> int:
        return self._run(sql, *values)[1]

    def add_key(
        self, name: str, per_minute: int | None = None, per_month: int | None = None, key: str | None = None
    ) -> str:
        """A new key, `key` or a random one, which is shown this once: the store keeps its hash."""
        key = key or secrets.token_urlsafe(24)
        row = (_hash(key), name, per_minute, per_month, time.time())
        if not self._change("INSERT INTO keys VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", *row):
            raise Error.ALREADY_THERE(f"key {name!r}: there is one of that name", "remove it first")
        return key

    def remove_key(self, name: str) -> None:
        """Raises DragomanError where there is none of that name."""
        if not self._change("DELETE FROM keys WHERE name = ?", name):
            raise Error.UNKNOWN_NAME(f"key {name!r}: there is none of that name")

    def all_keys(self) -> list[Key]:
        return [Key(*row) for row in self._rows("SELECT name, per_minute, per_month FROM keys ORDER BY name")]

    def key(self, given: str) -> Key | None:
        """The key that a client gave; None for one that is not known."""
        rows = self._rows("SELECT name, per_minute, per_month FROM keys WHERE digest = ?", _hash(given))
        return Key(*rows[0]) if rows else None

    def characters(self, name: str) -> int:
        """Characters that a key has had translated this month."""
        rows = self._rows("SELECT characters FROM usage WHERE name = ? AND month = ?", name, _month())
        return rows[0][0] if rows else 0

    def count(self, name: str, characters: int, limit: int | None = None) -> bool:
        """Count characters of this month; False, and nothing is counted, if they would be more than `limit`."""
        most = 2**62 if limit is None else limit
        return self._change(
            "INSERT INTO usage SELECT ?1, ?2, ?3 WHERE ?3 <= ?4 "
            "ON CONFLICT DO UPDATE SET characters = characters + ?3 WHERE characters + ?3 <= ?4",
            name, _month(), characters, most,
        ) > 0  # fmt: skip

    def correct(self, correction: Correction, author: str = "") -> None:
        """Keep a correction, in the place of an earlier one of the same text."""
        self._change(
            "INSERT INTO corrections (src_lang, tgt_lang, src, tgt, created, author) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET tgt = excluded.tgt, created = excluded.created, author = excluded.author",
            *correction, time.time(), author,
        )  # fmt: skip

    def forget(self, src_lang: str, tgt_lang: str, src: str) -> bool:
        """Drop the correction of a text; False where there is none."""
        statement = "DELETE FROM corrections WHERE src_lang = ? AND tgt_lang = ? AND src = ?"
        return self._change(statement, src_lang, tgt_lang, src) > 0

    def corrections(self, src_lang: str = "", tgt_lang: str = "") -> list[Correction]:
        """All corrections, or those from one language to another, in the order they came."""
        rows = self._rows(
            "SELECT src_lang, tgt_lang, src, tgt FROM corrections "
            "WHERE ? IN ('', src_lang) AND ? IN ('', tgt_lang) ORDER BY id",
            src_lang, tgt_lang,
        )  # fmt: skip
        return [Correction(*row) for row in rows]

    def put_glossary(
        self, name: str, dictionaries: dict[tuple[str, str], str], author: str, old: StoredGlossary | None = None
    ) -> StoredGlossary:
        """Keep a glossary, in the place of an older one where there is one."""
        id, created = (old.id, old.created) if old else (str(uuid.uuid4()), time.time())
        listed = json.dumps([[*languages, entries] for languages, entries in dictionaries.items()])
        self._change("INSERT OR REPLACE INTO glossaries VALUES (?, ?, ?, ?, ?)", id, name, listed, created, author)
        return StoredGlossary(id, name, dictionaries, created)

    def glossaries(self, author: str) -> list[StoredGlossary]:
        rows = self._rows(
            "SELECT id, name, dictionaries, created FROM glossaries WHERE author = ? ORDER BY created", author
        )
        return [
            StoredGlossary(id, name, {(src, tgt): entries for src, tgt, entries in json.loads(listed)}, created)
            for id, name, listed, created in rows
        ]

    def remove_glossary(self, id: str, author: str) -> None:
        self._change("DELETE FROM glossaries WHERE id = ? AND author = ?", id, author)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _month() -> str:
    return time.strftime("%Y-%m", time.gmtime())
