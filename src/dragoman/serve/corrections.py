"""Corrections of people, in the store: with their author, their state and their history."""

import sqlite3
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from dragoman.pipeline.memory import in_lines
from dragoman.serve.database import Database
from dragoman.text.lookup import lookup_form

State = Literal["own", "pending", "rejected", "shared"]
"""Shared corrections (`shared`) are used for everybody, others for their author only."""

ADDRESS = "address "
"""The beginning of the name of a client that has no key."""
MAX_HISTORY = 1000
"""Corrections of an author that are in force no more, and are kept to be brought back."""

TABLE = """
CREATE TABLE corrections (
    id INTEGER PRIMARY KEY AUTOINCREMENT, src_lang TEXT NOT NULL, tgt_lang TEXT NOT NULL, src TEXT NOT NULL,
    tgt TEXT NOT NULL, created REAL NOT NULL, author TEXT NOT NULL, state TEXT NOT NULL, ended REAL, before INTEGER,
    revision INTEGER NOT NULL
);
CREATE UNIQUE INDEX corrections_in_force ON corrections (
    src_lang, tgt_lang, src, CASE state WHEN 'shared' THEN '' ELSE 'by ' || author END
) WHERE ended IS NULL;
CREATE UNIQUE INDEX corrections_revision ON corrections (revision);
CREATE INDEX corrections_author ON corrections (author, ended);
"""
"""Of a text there is one correction in force for everybody, and one for each author. `ended`: when it was in force
last; `before`: the one whose place it took; `revision`: grows with each change of any."""


class Correction(NamedTuple):
    """A translation as a person wants it."""

    src_lang: str
    tgt_lang: str
    src: str
    tgt: str


class KeptCorrection(NamedTuple):
    """A correction in the store."""

    id: int
    correction: Correction
    created: float
    author: str
    """The name of a key, `address ...` of a client without a key, empty for the user of the server's machine."""
    state: State
    ended: float | None
    before: int | None

    @property
    def in_force(self) -> bool:
        return self.ended is None


_COLUMNS = "id, src_lang, tgt_lang, src, tgt, created, author, state, ended, before"


def _kept(row: Sequence[Any]) -> KeptCorrection:
    return KeptCorrection(row[0], Correction(*row[1:5]), *row[5:])


def migrate(connection: sqlite3.Connection) -> None:
    """Make the table, of the one that older versions had where there is one: what they kept was everybody's."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE name = 'corrections'").fetchall()
    old: dict[Correction, tuple[float, str]] = {}
    if rows:
        for *texts, created, author in connection.execute(
            "SELECT src_lang, tgt_lang, src, tgt, created, author FROM corrections ORDER BY id"
        ):
            one = Correction(*texts)
            old[one._replace(src=in_lines(one.src))] = created, author
        connection.execute("DROP TABLE corrections")
    for statement in TABLE.strip().split(";\n"):
        connection.execute(statement)
    connection.executemany(
        "INSERT OR REPLACE INTO corrections (src_lang, tgt_lang, src, tgt, created, author, state, revision) "
        "VALUES (?, ?, ?, ?, ?, ?, 'shared', ?)",
        [(*one, *rest, revision) for revision, (one, rest) in enumerate(old.items(), start=1)],
    )


class Filter(NamedTuple):
    """Corrections to list: those of some languages, of a state, with a text in them."""

    src_lang: str = ""
    tgt_lang: str = ""
    text: str = ""
    state: str = ""
    author: str | None = None
    """Of this author alone; None: of all."""
    seen_by: str | None = None
    """Those that an author sees: the shared ones and the author's own; None: all."""
    reviews: bool = False
    """`seen_by` reviews, and sees what waits for it."""

    def where(self) -> tuple[str, list[object]]:
        """The condition of SQL, and its values."""
        conditions, values = ["ended IS NULL"], list[object]()
        for column in ("src_lang", "tgt_lang", "state"):
            if value := getattr(self, column):
                conditions.append(f"{column} = ?")
                values.append(value)
        if self.author is not None:
            conditions.append("author = ?")
            values.append(self.author)
        if self.text:
            conditions.append("(instr(folded(src), ?) OR instr(folded(tgt), ?))")
            values += [_folded(self.text)] * 2
        if self.seen_by is not None:
            conditions.append(f"(state = 'shared' OR author = ?{' OR state = ?' if self.reviews else ''})")
            values += [self.seen_by, "pending"][: 1 + self.reviews]
        return " AND ".join(conditions), values


ALL = Filter()


class Corrections:
    """The corrections in a store."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.define("folded", _folded)

    def matching(self, chosen: Filter = ALL, offset: int = 0, limit: int = -1) -> list[KeptCorrection]:
        """Corrections in force, the newest first."""
        where, values = chosen.where()
        sql = f"SELECT {_COLUMNS} FROM corrections WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?"
        return [_kept(row) for row in self.database.rows(sql, *values, limit, offset)]

    def count(self, chosen: Filter = ALL) -> int:
        where, values = chosen.where()
        return int(self.database.rows(f"SELECT count(*) FROM corrections WHERE {where}", *values)[0][0])

    def total(self) -> int:
        """The number of all corrections, whether they are in force or not."""
        return int(self.database.rows("SELECT count(*) FROM corrections")[0][0])

    def get(self, id: int) -> KeptCorrection | None:
        rows = self.database.rows(f"SELECT {_COLUMNS} FROM corrections WHERE id = ?", id)
        return _kept(rows[0]) if rows else None

    def history(self, one: KeptCorrection) -> list[KeptCorrection]:
        """Corrections that stood in the place of this one before it, the last first."""
        rows = self.database.rows(
            f"WITH RECURSIVE chain AS (SELECT * FROM corrections WHERE id = ? UNION "
            f"SELECT corrections.* FROM corrections JOIN chain ON corrections.id = chain.before) "
            f"SELECT {_COLUMNS} FROM chain WHERE id != ? ORDER BY ended DESC LIMIT 100", one.id, one.id,
        )  # fmt: skip
        return [_kept(row) for row in rows]

    def find(self, src_lang: str, tgt_lang: str, src: str, author: str | None = None) -> KeptCorrection | None:
        """The correction of a text that is in force: of an author, or everybody's."""
        rows = self.database.rows(f"SELECT {_COLUMNS} FROM corrections WHERE {_SLOT}",
                                  src_lang, tgt_lang, in_lines(src), _place(author))  # fmt: skip
        return _kept(rows[0]) if rows else None

    def add(self, correction: Correction, author: str = "", state: State = "shared") -> KeptCorrection:
        """Keep a correction, in the place of the one that is in force."""
        correction = correction._replace(src=in_lines(correction.src))
        with self.database.change() as connection:
            old = self._end(connection, correction, None if state == "shared" else author)
            cursor = connection.execute(
                "INSERT INTO corrections (src_lang, tgt_lang, src, tgt, created, author, state, before, revision) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, {_NEXT})",
                (*correction, time.time(), author, state, old),
            )
            row = connection.execute(f"SELECT {_COLUMNS} FROM corrections WHERE id = ?", (cursor.lastrowid,)).fetchone()
            connection.execute(
                "DELETE FROM corrections WHERE id IN (SELECT id FROM corrections "
                "WHERE author = ? AND ended IS NOT NULL ORDER BY ended DESC LIMIT -1 OFFSET ?)", (author, MAX_HISTORY),
            )  # fmt: skip
        return _kept(row)

    def forget(self, id: int) -> None:
        """Let a correction be in force no more; nothing takes its place."""
        with self.database.change() as connection:
            self._update(connection, id, ended=time.time())

    def undo(self, one: KeptCorrection) -> KeptCorrection | None:
        """Take a correction back: the correction before it is in force again. Returns the earlier correction, if there
        is one."""
        with self.database.change() as connection:
            self._update(connection, one.id, ended=time.time())
            if one.before is None:
                return None
            self._update(connection, one.before, ended=None)
        return self.get(one.before)

    def restore(self, one: KeptCorrection) -> None:
        """Let a correction be in force again, in the place of the one that is."""
        with self.database.change() as connection:
            self._end(connection, one.correction, None if one.state == "shared" else one.author)
            self._update(connection, one.id, ended=None)

    def review(self, one: KeptCorrection, *, approved: bool) -> None:
        """Let a correction that waits for a review be everybody's, or its author's alone."""
        with self.database.change() as connection:
            if approved:
                old = self._end(connection, one.correction, None)
                self._update(connection, one.id, state="shared", before=old)
            else:
                self._update(connection, one.id, state="rejected")

    @staticmethod
    def _end(connection: sqlite3.Connection, correction: Correction, author: str | None) -> int | None:
        """Let what is in force in a place be so no more. Returns its id, if there is anything."""
        row = connection.execute(f"SELECT id FROM corrections WHERE {_SLOT}",
                                 (*correction[:3], _place(author))).fetchone()  # fmt: skip
        if row is None:
            return None
        Corrections._update(connection, row[0], ended=time.time())
        return int(row[0])

    @staticmethod
    def _update(connection: sqlite3.Connection, id: int, **values: object) -> None:
        changes = ", ".join(f"{name} = ?" for name in values)
        connection.execute(f"UPDATE corrections SET {changes}, revision = {_NEXT} WHERE id = ?", (*values.values(), id))

    def since(self, revision: int) -> list[tuple[int, KeptCorrection]]:
        """Corrections that have changed after a revision, in the order of the changes; after revision 0 all corrections
        in force."""
        sql = f"SELECT revision, {_COLUMNS} FROM corrections WHERE revision > ? "
        sql += "ORDER BY revision" if revision else "AND ended IS NULL ORDER BY revision"
        return [(row[0], _kept(row[1:])) for row in self.database.rows(sql, revision)]


_NEXT = "(SELECT coalesce(max(revision), 0) + 1 FROM corrections)"
_SLOT = (
    "src_lang = ? AND tgt_lang = ? AND src = ? AND ended IS NULL "
    "AND CASE state WHEN 'shared' THEN '' ELSE 'by ' || author END = ?"
)


def _place(author: str | None) -> str:
    return "" if author is None else f"by {author}"


def _folded(text: str) -> str:
    return lookup_form(text, cased=False)
