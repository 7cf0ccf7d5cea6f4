"""The attacks of `attack.py`: what each sends, and what it shows."""

import contextlib
import functools
import inspect
import io
import json
import random
import re
import socket
import sqlite3
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from serving import ADDRESSES, Answer, Server, document_form, json_request

from dragoman.corpora import embedded
from dragoman.serve.store import Store

SENTENCE = "ich möchte ein bier und eine große suppe für meine freundin"
ATTACKERS = ADDRESSES
STRANGER = {"Origin": "https://stranger.example"}
NUMBERS = "bier 1.000, "
"""Of a text of these the links of words were cubic."""
FORM = "application/x-www-form-urlencoded"

Shown = dict[str, Any]


class Target:
    """The server that an attack is done to, and the attack's time."""

    def __init__(self, server: Server, folder: Path, keys: Mapping[str, str], small: bool) -> None:
        self.server, self.folder, self.keys, self.small = server, folder, keys, small
        self.until = 0.0
        self.clients = 1
        """Attackers at once."""

    def begin(self, seconds: float) -> None:
        self.until = time.monotonic() + (min(seconds, 2.0) if self.small else seconds)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until or self.server.process.poll() is not None

    def wait(self, seconds: float = 1000.0) -> None:
        """Wait, at most until the attack is over."""
        end = min(time.monotonic() + seconds, self.until)
        while time.monotonic() < end and not self.over:
            time.sleep(0.05)

    def size(self, full: int, small: int) -> int:
        return small if self.small else full

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", *,
        address: str = ATTACKERS[0], headers: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """The answer to an attacker, who hangs up when the attack is over."""
        timeout = max(0.1, self.until - time.monotonic())
        return self.server.answer(method, path, body, kind, address=address, headers=headers, timeout=timeout)

    def translate(self, text: str | list[str], *, address: str = ATTACKERS[0], **more: Any) -> Answer:
        body = {"text": text, "source": self.server.src, "target": self.server.tgt, **more}
        return self.ask("POST", "/v1/translate", body, address=address)

    def bearer(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[name]}"}

    def storm(
        self, sources: Sequence[str], request: Callable[[str], Answer], pause: float = 0.0, each: int = 10**9
    ) -> Shown:
        """The same request from all addresses, again and again: how often what came back, and the slowest answer."""
        statuses: Counter[str] = Counter()
        slowest, self.clients = 0.0, len(sources)

        def client(address: str) -> None:
            nonlocal slowest
            for _ in range(each):
                if self.over:
                    return
                began = time.monotonic()
                status = request(address).status
                statuses[str(status) if status else "no answer"] += 1
                slowest = max(slowest, time.monotonic() - began)
                self.wait(pause)

        with ThreadPoolExecutor(len(sources)) as threads:
            list(threads.map(client, sources))
        answers = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
        return {"attackers get": answers, "slowest": f"{slowest:.1f} s"}

    def sockets(self, number: int, address: str, sent: bytes = b"") -> list[socket.socket]:
        """Connections that send this and nothing more."""
        opened: list[socket.socket] = []
        for _ in range(number):
            with contextlib.suppress(OSError):
                one = socket.create_connection(("127.0.0.1", self.server.port), 2.0, (address, 0))
                one.settimeout(2.0)
                opened.append(one)
                if sent:
                    one.sendall(sent)
        return opened


@dataclass(frozen=True)
class Attack:
    name: str
    point: int
    """The hole of the issue that it goes into."""
    description: str
    work: Callable[[Target], Shown]
    seconds: float = 5.0
    options: tuple[str, ...] = ()
    """Options of the server."""
    keys: tuple[str, ...] = ()
    prepare: Callable[[Path, bool], None] | None = None
    """Fills the store before the server starts."""
    before_stop: float = 1.5
    """Seconds of the second attack after which the server is told to stop; 0: it is told so without one."""

    @staticmethod
    def make_key(store: Path, name: str) -> str:
        """A new key, which may correct where there are rights."""
        kept = Store(store)
        rights = {"rights": ("correct",)} if "rights" in inspect.signature(kept.add_key).parameters else {}
        try:
            return kept.add_key(name, **rights)
        finally:
            kept.close()


ATTACKS: dict[str, Attack] = {}


def attack(name: str, point: int, description: str, **more: Any) -> Callable[[Callable[[Target], Shown]], Any]:
    def register(work: Callable[[Target], Shown]) -> Callable[[Target], Shown]:
        ATTACKS[name] = Attack(name, point, description, work, **more)
        return work

    return register


# Point 1: every stage has a bound, a deadline and a cancellation


@attack("glossary", 1, "a glossary whose target has 100,000 letters, in a request of `/v1/translate`")
def glossary(target: Target) -> Shown:
    term = "ab " * (target.size(100_000, 3_000) // 3)
    return target.storm(
        ATTACKERS[:1], lambda address: target.translate(SENTENCE, address=address, glossary={"bier": term})
    )


@attack("stored-glossary", 1, "the same glossary stored first, then used through `/v2/translate`")
def stored_glossary(target: Target) -> Shown:
    term = "ab " * (target.size(100_000, 3_000) // 3)
    new = {"name": "x", "source_lang": target.server.src, "target_lang": target.server.tgt,
           "entries": f"bier\t{term}", "entries_format": "tsv"}  # fmt: skip
    made = target.ask("POST", "/v2/glossaries", new)
    id = json.loads(made.data).get("glossary_id", "") if made.status == 201 else ""
    body = {"text": [SENTENCE], "source_lang": target.server.src, "target_lang": target.server.tgt, "glossary_id": id}
    found = target.storm(ATTACKERS[:1], lambda address: target.ask("POST", "/v2/translate", body, address=address))
    return {"stored": made.status, **found}


@attack("links", 1, "2.4 KB of `bier 1.000,` with alignments, by two clients who hang up after 2 s")
def links(target: Target) -> Shown:
    text = NUMBERS * target.size(200, 10)

    def ask(address: str) -> Answer:
        body = {"text": text, "source": target.server.src, "target": target.server.tgt, "alignments": True}
        return target.server.answer("POST", "/v1/translate", body, address=address, timeout=2.0)

    return target.storm(ATTACKERS[:2], ask)


@attack("stream-links", 1, "the same text as a stream, whose last event has the links")
def stream_links(target: Target) -> Shown:
    body = {"text": NUMBERS * target.size(200, 10), "source": target.server.src, "target": target.server.tgt}
    ask = lambda address: target.ask("POST", "/v1/translate/stream", body, address=address)  # noqa: E731
    return target.storm(ATTACKERS[:2], ask)


@attack("other-words", 1, "`/v1/words` for a text of 5,000 letters with a beginning of 5,000 letters")
def other_words(target: Target) -> Shown:
    text = "ein bier " * (target.size(4_900, 90) // 9)
    body = {"text": text, "prefix": "a beer " * (target.size(4_900, 70) // 7), "count": 10,
            "source": target.server.src, "target": target.server.tgt}  # fmt: skip
    return target.storm(ATTACKERS[:2], lambda address: target.ask("POST", "/v1/words", body, address=address))


# Point 2: fair admission


def big_list(target: Target) -> list[str]:
    lines = [german for german, _ in embedded.sentences("de-en", "test", size=200)]
    rng = random.Random(1)
    return [" ".join(rng.choices(lines, k=200))[: target.size(5_000, 100)] for _ in range(target.size(128, 3))]


@attack("big-lists", 2, "128 texts of 5,000 letters each 8 s, from one client", seconds=18.0)
def big_lists(target: Target) -> Shown:
    texts = big_list(target)
    return target.storm(ATTACKERS[:1], lambda address: target.translate(texts, address=address), pause=8.0)


@attack("big-lists-keys", 2, "the same from two keys, as soon as they are answered", keys=("one", "two"), seconds=18.0)
def big_lists_keys(target: Target) -> Shown:
    body = {"text": big_list(target), "source": target.server.src, "target": target.server.tgt}
    names = dict(zip(ATTACKERS, target.keys, strict=False))
    return target.storm(
        list(names),
        lambda address: target.ask(
            "POST", "/v1/translate", body, address=address, headers=target.bearer(names[address])
        ),
        pause=1.0,
    )


@attack("crowd", 2, "48 clients with a line each, as fast as they can: a plain overload", seconds=12.0)
def crowd(target: Target) -> Shown:
    number = target.size(48, 3)
    return target.storm(ATTACKERS[:number], lambda address: target.translate(SENTENCE, address=address), pause=0.05)


# Point 3: nothing heavy on the event loop


@attack(
    "detection", 3, "128 texts of 5,000 letters, source `auto`, 8 clients at once, `/v1/detect` and `/v1/translate`"
)
def detection(target: Target) -> Shown:
    texts = big_list(target)

    def ask(address: str) -> Answer:
        if ATTACKERS.index(address) % 2:
            return target.ask("POST", "/v1/detect", {"text": texts}, address=address)
        return target.translate(texts, address=address) if target.small else target.ask(
            "POST", "/translate", {"q": texts, "source": "auto", "target": target.server.tgt}, address=address
        )  # fmt: skip

    return target.storm(ATTACKERS[: target.size(8, 2)], ask)


@attack("warnings", 3, "2,500 lines of `x` with warnings, by two clients")
def warnings(target: Target) -> Shown:
    text = "x\n" * target.size(2_500, 20)
    return target.storm(ATTACKERS[:2], lambda address: target.translate(text, address=address, warnings=True))


@attack("locked-store", 3, "SQLite locked by another process; 8 clients with a key translate", keys=("one",))
def locked_store(target: Target) -> Shown:
    body = {"text": "bier", "source": target.server.src, "target": target.server.tgt}
    other = sqlite3.connect(target.server.store, isolation_level=None, timeout=1.0)
    with contextlib.closing(other), contextlib.suppress(sqlite3.OperationalError):
        other.execute("BEGIN IMMEDIATE")
        ask = lambda address: target.ask("POST", "/v1/translate", body, address=address, headers=target.bearer("one"))  # noqa: E731
        answer = ask(ATTACKERS[0])
        found = target.storm(ATTACKERS[: target.size(8, 2)], ask)
        other.execute("ROLLBACK")
    return {**found, "first answer": f"{answer.status} {answer.data[:60].decode(errors='replace')}".strip()}


def fill_corrections(store: Path, small: bool) -> None:
    """Corrections of somebody who has made very many, in the tables of a store before they belonged to anybody."""
    rows = [
        (f"ein bier mit {number} gästen und {number % 97} suppen", f"a beer {number}", float(number))
        for number in range(200 if small else 50_000)
    ]
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        db.execute(
            "CREATE TABLE corrections (id INTEGER PRIMARY KEY, src_lang TEXT NOT NULL, tgt_lang TEXT NOT NULL,"
            " src TEXT NOT NULL, tgt TEXT NOT NULL, created REAL NOT NULL, author TEXT NOT NULL DEFAULT '',"
            " UNIQUE (src_lang, tgt_lang, src))"
        )
        insert = "INSERT INTO corrections (src_lang, tgt_lang, src, tgt, created) VALUES ('de', 'en', ?, ?, ?)"
        db.executemany(insert, rows)


@attack("corrections", 3, "50,000 corrections, then a new one each half second, and a text like them",
        prepare=fill_corrections, keys=("one",))  # fmt: skip
def corrections(target: Target) -> Shown:
    count = 0

    def ask(address: str) -> Answer:
        nonlocal count
        count += 1
        pair = {"source": target.server.src, "target": target.server.tgt}
        body = {**pair, "text": f"ein bier mit keinen {count} gästen", "translation": "a beer"}
        made = target.ask("POST", "/v1/corrections", body, address=address, headers=target.bearer("one"))
        target.ask("POST", "/v1/translate", {**pair, "text": "ein bier mit drei gästen"}, headers=target.bearer("one"))
        return made

    return target.storm(ATTACKERS[:1], ask, pause=0.5)


@attack("glossaries", 3, "a stored glossary of 30,000 terms, used by four clients")
def glossaries(target: Target) -> Shown:
    entries = "\n".join(f"wort{number}\tword{number}" for number in range(target.size(30_000, 50)))
    new = {"name": "x", "source_lang": target.server.src, "target_lang": target.server.tgt, "entries": entries,
           "entries_format": "tsv"}  # fmt: skip
    made = target.ask("POST", "/v2/glossaries", new)
    id = json.loads(made.data).get("glossary_id", "") if made.status == 201 else ""
    body = {"text": [SENTENCE], "source_lang": target.server.src, "target_lang": target.server.tgt, "glossary_id": id}
    # Glossaries belong to an address, so the clients are of one.
    return {"stored": made.status, **target.storm(
        ATTACKERS[:1] * 4, lambda address: target.ask("POST", "/v2/translate", body, address=address)
    )}  # fmt: skip


# Point 4: documents


def hand_in(target: Target, name: str, data: bytes, address: str = ATTACKERS[0]) -> Answer:
    form = document_form({"source": target.server.src, "target": target.server.tgt}, name, data)
    return target.ask("POST", "/v1/documents", form, "multipart/form-data; boundary=x", address=address)


def document_of(answer: Answer) -> str:
    """The path of a document that was taken, with its key."""
    record = json.loads(answer.data)
    return f"/v1/documents/{record['id']}?key={record['key']}"


def read_document(target: Target, name: str, data: bytes) -> Shown:
    """Hand a document in, wait until the attack is over, and delete it."""
    began = time.monotonic()
    taken = hand_in(target, name, data)
    if taken.status != 202:
        target.wait()
        return {"handed in": f"{taken.status} {taken.data[:80].decode(errors='replace')}"}
    path, record = document_of(taken), {"state": "queued"}
    while not target.over:
        answer = target.ask("GET", path)
        record = json.loads(answer.data) if answer.status == 200 else {"state": str(answer.status)}
        if record["state"] not in ("queued", "translating"):
            break
        target.wait(0.3)
    seconds = time.monotonic() - began
    target.wait()
    if target.server.process.poll() is None:
        target.server.answer("DELETE", path, address=ATTACKERS[0], timeout=5.0)
    error = f" ({record['error'][:60]})" if "error" in record else ""
    return {"document": f"{record['state']}{error} after {seconds:.1f} s"}


def document(name: str, description: str, file: str, data: Callable[[int], bytes], full: int) -> None:
    """An attack by one document of `full` bytes."""
    attack(f"document-{name}", 4, description)(
        lambda target: read_document(target, file, data(target.size(full, min(full, 2_000))))
    )


def repeated(piece: str, before: str = "", after: str = "") -> Callable[[int], bytes]:
    return lambda size: (before + piece * (size // len(piece)) + after).encode()


def zipped(parts: Mapping[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w", kind) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        return stream.getvalue()


_OFFICE = "http://schemas.openxmlformats.org"


def word_document(body: bytes, more: Mapping[str, bytes] | None = None, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    types = f'<Types xmlns="{_OFFICE}/package/2006/content-types"><Override PartName="/word/document.xml" ContentType='
    types += '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    text = f'<w:document xmlns:w="{_OFFICE}/wordprocessingml/2006/main"><w:body>'.encode()
    return zipped(
        {"[Content_Types].xml": types.encode(), "word/document.xml": text + body + b"</w:body></w:document>",
         **(more or {})}, kind,
    )  # fmt: skip


def workbook(size: int) -> bytes:
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {"workbook": "sheet.main", "worksheets/sheet1": "worksheet", "sharedStrings": "sharedStrings"}
    types = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="{main}.{kind}+xml"/>' for name, kind in parts.items()
    )
    sheet = f'xmlns="{_OFFICE}/spreadsheetml/2006/main"'
    cells, strings = '<row><c t="s"><v>0</v></c></row>' * (size // 32), "<si><t>a</t></si>" * (size // 17)
    return zipped({
        "[Content_Types].xml": f'<Types xmlns="{_OFFICE}/package/2006/content-types">{types}</Types>'.encode(),
        "xl/workbook.xml": f"<workbook {sheet}/>".encode(),
        "xl/worksheets/sheet1.xml": f"<worksheet {sheet}><sheetData>{cells}</sheetData></worksheet>".encode(),
        "xl/sharedStrings.xml": f"<sst {sheet}>{strings}</sst>".encode(),
    })  # fmt: skip


CUE = "1\n00:00:01,000 --> 00:00:02,000\nx\n"
document("markdown", "Markdown: 8 MiB of `![`", "a.md", repeated("!["), 8 * 2**20)
document("subtitles-80k", "subtitles without blank lines, 80 KB", "a.srt", repeated(CUE), 80_000)
document("subtitles-2m", "subtitles without blank lines, 2 MB", "a.srt", repeated(CUE), 2_000_000)
document("blank-lines", "10 MB of blank lines", "a.txt", repeated("\n"), 10_000_000)
document("tags", "HTML: 9 MiB of `<a `", "a.html", repeated("<a "), 9 * 2**20)
document("one-line", "a text of one line, 9 MB of letters", "a.txt", repeated("a"), 9_000_000)
document("nested", "HTML: 300,000 elements in each other", "a.html", repeated("<div>a"), 1_800_000)
document("cells", "a workbook of 300,000 cells", "a.xlsx", workbook, 9_600_000)


@attack("document-deleted", 4, "a text of 100,000 lines, deleted while it is translated")
def deleted(target: Target) -> Shown:
    lines = "\n".join(f"{SENTENCE} {number}" for number in range(target.size(100_000, 50))).encode()
    return read_document(target, "a.txt", lines)


def _is_done(answer: Answer) -> bool:
    return answer.status == 200 and json.loads(answer.data)["state"] == "done"


@attack("document-queue", 4, "one client hands in 40 documents; another has one")
def document_queue(target: Target) -> Shown:
    lines = "\n".join(f"{SENTENCE} {number}" for number in range(target.size(2_000, 20))).encode()
    taken = Counter(hand_in(target, "a.txt", lines).status for _ in range(target.size(40, 2)))
    other = hand_in(target, "a.txt", SENTENCE.encode(), address=ATTACKERS[1])
    found: Shown = {"handed in": dict(taken), "the other's document": other.status}
    if other.status == 202:
        began = time.monotonic()
        while not target.over and not _is_done(target.ask("GET", document_of(other), address=ATTACKERS[1])):
            target.wait(0.2)
        found["it takes"] = "longer than the attack" if target.over else f"{time.monotonic() - began:.1f} s"
    target.wait()
    return found


@attack("pictures", 4, "60 documents with 9 MB of pictures each", seconds=20.0, before_stop=0)
def pictures(target: Target) -> Shown:
    body = f'<w:p><w:r><w:t xml:space="preserve">{SENTENCE}</w:t></w:r></w:p>'.encode()
    picture = {"word/media/image1.png": random.Random(1).randbytes(target.size(9_000_000, 9_000))}
    data = word_document(body, picture, zipfile.ZIP_STORED)
    taken: Counter[int] = Counter()
    for _ in range(target.size(60, 3)):
        if target.over:
            break
        taken[hand_in(target, "a.docx", data).status] += 1
        target.wait(0.15)
    target.wait()
    return {"handed in": dict(taken)}


# Point 5: corrections belong to somebody


def foreign_corrections(target: Target) -> Shown:
    pair = {"source": target.server.src, "target": target.server.tgt}
    hostile = {**pair, "text": SENTENCE, "translation": "send your money to me"}
    own = {**pair, "text": "mein bier", "translation": "my beer"}
    json_like = target.ask("POST", "/v1/corrections", hostile, headers=STRANGER)
    no_cors = target.ask("POST", "/v1/corrections", json.dumps(own).encode(), "text/plain", headers=STRANGER)
    suggested = target.ask("POST", "/suggest", {**pair, "q": "ein wein", "s": "no wine"}, headers=STRANGER)
    read = target.ask("GET", "/v1/corrections", headers=STRANGER)
    deleted = target.ask("DELETE", "/v1/corrections", own, headers=STRANGER)
    answered = json.loads(target.translate(SENTENCE).data or b"{}").get("text", "")
    asked = {**STRANGER, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    allowed = {
        path: target.ask("OPTIONS", path, headers=asked).headers.get("access-control-allow-origin", "no")
        for path in ("/v1/translate", "/v1/corrections", "/suggest")
    }
    return {
        "JSON, no-cors, /suggest, read, delete": ", ".join(
            str(one.status) for one in (json_like, no_cors, suggested, read, deleted)
        ),
        "everybody is then answered what the stranger wrote": answered == hostile["translation"],
        "origins allowed": ", ".join(f"{path} {origin}" for path, origin in allowed.items()),
    }


attack("foreign-corrections", 5, "a web page of another origin corrects, reads and deletes", before_stop=0)(
    foreign_corrections
)
attack("foreign-corrections-proxy", 5, "the same on a server behind a proxy", before_stop=0,
       options=("--behind-proxy",))(foreign_corrections)  # fmt: skip


# Point 6: logs and quotas


@attack("logs", 6, "texts and keys in queries, streams and polls of documents, with `--access-log`",
        options=("--access-log",), keys=("one",), before_stop=0)  # fmt: skip
def logs(target: Target) -> Shown:
    text, key = "geheimnisvoll", target.keys["one"]
    pair = {"source": target.server.src, "target": target.server.tgt}
    queries = [
        ("POST", "/translate", {"q": text, **pair, "api_key": key}),
        ("GET", "/v1/translate/stream", {"text": text, **pair, "api_key": key}),
        ("POST", "/detect", {"q": text, "api_key": key}),
        ("GET", "/nothing", {"q": text, "api_key": key}),
        ("POST", "/translate", {"q": f"{text} {text}", "source": "zz", "target": "zz", "api_key": key}),
    ]
    statuses = [str(target.ask(method, f"{path}?{urlencode(query)}").status) for method, path, query in queries]
    escaped = "".join(f"%{byte:02X}" for byte in key.encode())
    statuses.append(str(target.ask("GET", f"/v1/languages?api_key={escaped}").status))
    taken = hand_in(target, f"{text}.txt", text.encode())
    path = document_of(taken) if taken.status == 202 else ""
    if path:
        target.ask("GET", path)
    time.sleep(0.3)
    said = target.server.said.read_text(errors="replace").splitlines()
    secrets = {"text": (text,), "key": (key, escaped), "document's key": (path.partition("key=")[2] or "no document",)}
    return {
        "answers": ", ".join(statuses),
        **{
            f"lines with the {name}": sum(any(one in line for one in forms) for line in said)
            for name, forms in secrets.items()
        },
    }


@attack("quotas", 6, "what is charged for answers that are none: 504, 429; for `/v1/words`, `/v1/detect`",
        options=("--deadline", "0.3"), keys=("one",), before_stop=0)  # fmt: skip
def quotas(target: Target) -> Shown:
    pair = {"source": target.server.src, "target": target.server.tgt}
    used = lambda: json.loads(target.ask("GET", "/v2/usage", headers=target.bearer("one")).data)["character_count"]  # noqa: E731
    post = lambda path, body: target.ask("POST", path, body, headers=target.bearer("one")).status  # noqa: E731
    found: Shown = {}
    long = ["ein bier und eine suppe " * target.size(200, 4)] * target.size(20, 2)
    for name, path, body in (
        ("a text that is not done in time", "/v1/translate", {**pair, "text": long[0]}),
        ("a list that is too much", "/v1/translate", {**pair, "text": long}),
        ("/v1/words", "/v1/words", {**pair, "text": "ein bier", "prefix": ""}),
        ("/v1/detect", "/v1/detect", {"text": "ein bier"}),
        ("a text that is done", "/v1/translate", {**pair, "text": "ein bier"}),
    ):
        before = used()
        status = post(path, body)
        found[name] = f"{status}, {used() - before} charged"
    return found


# Point 7: connections


def closed(sockets: Sequence[socket.socket]) -> int:
    """Connections that the server has closed."""
    count = 0
    for one in sockets:
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            try:
                while data := one.recv(65536):
                    del data
                count += 1
            except ConnectionError:
                count += 1
    return count


def held_open(target: Target, sockets: list[socket.socket]) -> Shown:
    """Hold connections as long as the attack goes on, and let go."""
    target.wait()
    shown = {"opened": len(sockets), "closed by the server": closed(sockets)}
    for one in sockets:
        one.close()
    return shown


@attack("idle-sockets", 7, "1,000 connections that send nothing", seconds=12.0)
def idle_sockets(target: Target) -> Shown:
    return held_open(target, target.sockets(target.size(1000, 20), ATTACKERS[0]))


@attack("half-headers", 7, "1,000 connections that send half a header and then a letter a second, of 64 addresses",
        seconds=12.0)  # fmt: skip
def half_headers(target: Target) -> Shown:
    each = target.size(16, 1)
    sent = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nX-Half: "
    opened = [one for address in ATTACKERS for one in target.sockets(each, address, sent)]
    while not target.over:
        for one in opened:
            with contextlib.suppress(OSError):  # the server has had enough of it
                one.sendall(b"x")
        target.wait(1.0)
    return held_open(target, opened)


@attack("unread", 7, "300 clients that ask for the page's files again and again and read nothing", seconds=12.0)
def unread(target: Target) -> Shown:
    asked = b"GET /page/app.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
    return held_open(target, target.sockets(target.size(300, 5), ATTACKERS[0], asked))


@attack("unread-streams", 7, "200 clients that ask for a stream each and read nothing", seconds=12.0)
def unread_streams(target: Target) -> Shown:
    body = json.dumps({"text": f"{SENTENCE}\n" * target.size(80, 2), "source": target.server.src,
                       "target": target.server.tgt}).encode()  # fmt: skip
    sent, addresses = json_request("/v1/translate/stream", body), ATTACKERS[: target.size(50, 3)]
    return held_open(target, [one for address in addresses for one in target.sockets(4, address, sent)])


@attack("slow-bodies", 7, "500 clients whose bodies never come as a whole, of 50 addresses", seconds=12.0)
def slow_bodies(target: Target) -> Shown:
    sent, addresses = json_request("/v1/translate", b"{", 900_000), ATTACKERS[: target.size(50, 3)]
    return held_open(target, [one for address in addresses for one in target.sockets(10, address, sent)])


# Point 8: answers


@attack("answers", 8, "numbers, names and letters that no client should send", keys=("one",), seconds=15.0,
        before_stop=0)  # fmt: skip
def answers(target: Target) -> Shown:
    pair = {"source": target.server.src, "target": target.server.tgt}
    ask = functools.partial(target.ask, "POST")
    raw = lambda more: json.dumps({**pair, "q": "bier", "text": "bier"})[:-1].encode() + more  # noqa: E731
    multipart = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n\xed\xa0\x80\r\n--b--\r\n'
    doubled = urlencode([("q", "bier"), *pair.items(), *pair.items()]).encode()
    found = {
        "`{\"alternatives\":1e999}`": ask("/translate", raw(b', "alternatives": 1e999}')),
        "the same of `/v1`": ask("/v1/translate", raw(b', "alternatives": 1e999, "beam_size": 1e999}')),
        "doubled fields": ask("/translate", doubled, FORM),
        "the same of `/v1`, `/v2`": ask("/v1/translate", doubled.replace(b"q=", b"text="), FORM),
        "half a surrogate": ask("/translate", raw(rb', "q": "\ud800"}')),
        "half a surrogate as a key": ask("/translate", raw(rb', "api_key": "\ud800"}')),
        "half a surrogate in a glossary": ask("/v1/translate", raw(rb', "glossary": {"\ud800": "\udfff"}}')),
        "bytes that are no letters": ask("/translate", urlencode(pair).encode() + b"&q=%ED%A0%80", FORM),
        "a form in another encoding": ask("/translate", multipart, "multipart/form-data; boundary=b; charset=zlib"),
        "a key of no letters": ask("/translate", raw(b"}"), headers={"Authorization": "Bearer \xff\xfe"}),
        "a nesting of 100,000": ask("/v1/translate", raw(b', "glossary": ' + b"[" * 100_000)),
        "any key on an open server": ask("/v2/translate", {"text": ["bier"], "target_lang": pair["target"]},
                                         headers={"Authorization": "DeepL-Auth-Key of-somebody"}),
    }  # fmt: skip
    shown: Shown = {name: answer.status for name, answer in found.items()}
    other = sqlite3.connect(target.server.store, isolation_level=None)
    with contextlib.closing(other):
        other.execute("BEGIN IMMEDIATE")
        locked = target.ask("POST", "/v1/translate", {**pair, "text": "bier"}, headers=target.bearer("one"))
        other.execute("ROLLBACK")
    shown["a locked store"] = locked.status
    told = b"".join(one.data for one in (*found.values(), locked))
    shown["answers with a path of the server"] = len(re.findall(str(target.folder).encode(), told))
    return shown


@attack("unkeyed-bodies", 8, "bodies of 11 MB without a key, where one is required: is the body waited for?",
        options=("--key-required",), keys=("one",), before_stop=0)  # fmt: skip
def unkeyed_bodies(target: Target) -> Shown:
    shown: Shown = {}
    for path, length in (("/v1/documents", 11_000_000), ("/v1/translate", 1_000_000), ("/translate", 1_000_000)):
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        [one] = target.sockets(1, ATTACKERS[0], f"{head}Content-Length: {length}\r\n\r\n".encode())
        with one, contextlib.suppress(OSError):
            one.settimeout(1.0)
            shown[path] = "waited for"
            shown[path] = f"answered {one.recv(12)[9:].decode()} at once"
    return shown


# Point 9: languages that are not served

FOREIGN = {"es": ["Hola", "¿Dónde está la estación?"], "fr": ["Je voudrais une bière.", "Bonjour"],
           "it": ["Buongiorno a tutti"], "ru": ["Привет"]}  # fmt: skip
GERMAN = ["Hallo", "Auto", "Guten Morgen", "Ich möchte ein Bier."]


@attack("foreign-languages", 9, "texts in languages that a server of German and English does not know", before_stop=0)
def foreign_languages(target: Target) -> Shown:
    def ask(text: str) -> dict[str, Any]:
        answer = target.ask("POST", "/v1/translate", {"text": text, "target": target.server.tgt})
        return json.loads(answer.data) if answer.status == 200 else {}

    served = {target.server.src, target.server.tgt}
    taken = [
        f"{text} ({found['source']}: {found['text']})"
        for texts in FOREIGN.values() for text in texts if (found := ask(text)).get("source") in served
    ]  # fmt: skip
    given_back = [text for text in GERMAN if ask(text).get("text", text).strip(".") == text.strip(".")]
    return {
        f"taken for a served language, of {sum(map(len, FOREIGN.values()))}": ", ".join(taken) or "none",
        f"German not translated, of {len(GERMAN)}": ", ".join(given_back) or "none",
    }
