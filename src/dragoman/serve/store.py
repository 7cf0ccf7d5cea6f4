"""The store of a server, one SQLite file: API keys (hashed), their use, and corrections. Texts of requests never."""

import hashlib
import json
import secrets
import sqlite3
import time
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import Error
from dragoman.serve import corrections
from dragoman.serve.corrections import ADDRESS, Corrections
from dragoman.serve.database import Database

RIGHTS = {"correct": "corrects translations", "review": "lets corrections of others be used for everybody"}
"""The rights that a key may have."""

_TABLES = (
    """CREATE TABLE IF NOT EXISTS keys (
        digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, per_minute INTEGER, per_month INTEGER, created REAL NOT NULL
    )""",
    "ALTER TABLE keys ADD COLUMN rights TEXT NOT NULL DEFAULT ''",
    """CREATE TABLE IF NOT EXISTS usage (
        name TEXT NOT NULL, month TEXT NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (name, month)
    )""",
    """CREATE TABLE IF NOT EXISTS glossaries (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, dictionaries TEXT NOT NULL, created REAL NOT NULL,
        author TEXT NOT NULL DEFAULT ''
    )""",
    "ALTER TABLE glossaries ADD COLUMN changed REAL NOT NULL DEFAULT 0",
    "CREATE INDEX glossaries_author ON glossaries (author)",
)


def _first_tables(connection: sqlite3.Connection) -> None:
    """Make all tables, of those that a store without a version has where there are any."""
    for statement in _TABLES:
        connection.execute(statement)
    corrections.migrate(connection)


def _sizes(connection: sqlite3.Connection) -> None:
    """Note how large each glossary is, so that limits cost no reading."""
    connection.execute("ALTER TABLE glossaries ADD COLUMN size INTEGER NOT NULL DEFAULT 0")
    connection.execute("UPDATE glossaries SET size = length(dictionaries)")


MIGRATIONS = (_first_tables, _sizes)


class Key(NamedTuple):
    """An API key by its name; limits are None where there are none."""

    name: str
    per_minute: int | None
    """Requests a minute."""
    per_month: int | None
    """Characters a month."""
    rights: frozenset[str] = frozenset()


_KEY = "name, per_minute, per_month, rights"


def _key(row: Any) -> Key:
    name, per_minute, per_month, rights = row
    return Key(name, per_minute, per_month, frozenset(rights.split()))


class StoredGlossary(NamedTuple):
    """A glossary of a client: for each pair of languages its entries, as tab-separated lines."""

    id: str
    name: str
    dictionaries: dict[tuple[str, str], str]
    created: float


class Store:
    """The file. Threads may share it; another process may write into it as well (`dragoman keys`)."""

    def __init__(self, path: Path | None, patience: float = 5.0) -> None:
        """`path`: None keeps everything in memory. `patience`: seconds that another process is waited for.

        Raises DragomanError for a file that is no store or is locked up.
        """
        self.database = Database(path, MIGRATIONS, patience)
        self.corrections = Corrections(self.database)

    @property
    def path(self) -> Path | None:
        return self.database.path

    def close(self) -> None:
        self.database.close()

    def add_key(
        self,
        name: str,
        per_minute: int | None = None,
        per_month: int | None = None,
        key: str | None = None,
        rights: Collection[str] = (),
    ) -> str:
        """A new key, `key` or a random one, which is shown this once: the store keeps its hash."""
        if not name.isprintable() or not name.strip() or name.startswith(ADDRESS):
            raise Error.WRONG_OPTION(f"key {name!r}: cannot be the name of a key", "take one that names its owner")
        key = key or secrets.token_urlsafe(24)
        row = (digest(key), name, per_minute, per_month, time.time(), _written(rights))
        with self.database.change() as connection:
            if not connection.execute(
                "INSERT INTO keys (digest, name, per_minute, per_month, created, rights) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING", row,
            ).rowcount:  # fmt: skip
                raise Error.ALREADY_THERE(f"key {name!r}: this name is taken", "remove it first")
        return key

    def remove_key(self, name: str) -> None:
        """Raises DragomanError where there is none of that name."""
        self._change_key("DELETE FROM keys WHERE name = ?", name)

    def set_rights(self, name: str, rights: Collection[str]) -> None:
        """Give a key these rights and no others. Raises DragomanError where there is none of that name."""
        self._change_key("UPDATE keys SET rights = ?2 WHERE name = ?1", name, _written(rights))

    def _change_key(self, sql: str, name: str, *values: object) -> None:
        with self.database.change() as connection:
            if not connection.execute(sql, (name, *values)).rowcount:
                raise Error.UNKNOWN_NAME(f"key {name!r}: there is none of that name")

    def all_keys(self) -> list[Key]:
        return [_key(row) for row in self.database.rows(f"SELECT {_KEY} FROM keys ORDER BY name")]

    def keys_by_digest(self) -> dict[str, Key]:
        """All keys by what `digest` makes of them."""
        return {row[0]: _key(row[1:]) for row in self.database.rows(f"SELECT digest, {_KEY} FROM keys")}

    def usage(self, month: str) -> dict[str, int]:
        """Characters that each key has had translated in a month."""
        return dict(self.database.rows("SELECT name, characters FROM usage WHERE month = ?", month))

    def count(self, counted: Mapping[tuple[str, str], int], patience: float = 0.0) -> None:
        """Count characters of months and keys. Raises DragomanError where another process holds the file for longer."""
        rows = [(name, month, characters) for (month, name), characters in counted.items()]
        with self.database.change(patience) as connection:
            connection.executemany(
                "INSERT INTO usage VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET characters = characters + ?3", rows
            )

    def put_glossary(
        self, name: str, dictionaries: dict[tuple[str, str], str], author: str, old: StoredGlossary | None = None
    ) -> StoredGlossary:
        """Keep a glossary, in the place of an older one where there is one."""
        now = time.time()
        id, created = (old.id, old.created) if old else (str(uuid.uuid4()), now)
        listed = json.dumps([[*languages, entries] for languages, entries in dictionaries.items()], ensure_ascii=False)
        with self.database.change() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO glossaries (id, name, dictionaries, created, author, changed, size) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (id, name, listed, created, author, now, sum(map(len, dictionaries.values()))),
            )  # fmt: skip
        return StoredGlossary(id, name, dictionaries, created)

    def glossaries(self, author: str, id: str | None = None) -> list[StoredGlossary]:
        """The glossaries of an author, or the one of an id among them."""
        rows = self.database.rows(
            "SELECT id, name, dictionaries, created FROM glossaries WHERE author = ?1 AND coalesce(?2, id) = id "
            "ORDER BY created", author, id,
        )  # fmt: skip
        return [
            StoredGlossary(id, name, {(src, tgt): entries for src, tgt, entries in json.loads(listed)}, created)
            for id, name, listed, created in rows
        ]

    def glossary_changes(self, author: str, ids: Collection[str]) -> dict[str, float]:
        """The time of the last change of each of an author's glossaries."""
        sql = f"SELECT id, changed FROM glossaries WHERE author = ? AND id IN ({', '.join('?' * len(ids))})"
        return dict(self.database.rows(sql, author, *ids))

    def glossary_sizes(self, author: str | None = None) -> tuple[int, int]:
        """The number of an author's glossaries, or of all, and the characters of their entries."""
        sql = "SELECT count(*), coalesce(sum(size), 0) FROM glossaries WHERE coalesce(?, author) = author"
        [(count, size)] = self.database.rows(sql, author)
        return count, size

    def remove_glossary(self, id: str, author: str) -> None:
        with self.database.change() as connection:
            connection.execute("DELETE FROM glossaries WHERE id = ? AND author = ?", (id, author))


def _written(rights: Collection[str]) -> str:
    for right in rights:
        if right not in RIGHTS:
            raise Error.UNKNOWN_NAME(f"right {right!r}: there is none of that name", f"take {' or '.join(RIGHTS)}")
    return " ".join(sorted(set(rights)))


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def this_month() -> str:
    return time.strftime("%Y-%m", time.gmtime())
