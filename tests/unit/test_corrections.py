"""Corrections belong to somebody: who may make them, whose texts they are used for, and how they are taken back."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.errors import raises_error
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app as command_line
from dragoman.errors import DragomanError, Error
from dragoman.experiments.corrections import Corrections as GivenCorrections
from dragoman.experiments.datastore import make_datastore
from dragoman.formats.bitext import tmx_entries
from dragoman.inference.nearest_neighbours import by_run
from dragoman.serve import corrections, memories
from dragoman.serve.app import create_app
from dragoman.serve.corrections import Correction, Filter
from dragoman.serve.settings import Limits, Settings
from dragoman.serve.store import Store, this_month

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
PAIR = {"source": "en", "target": "de"}
TEXT = "the old dog barks"
ASKED = {"text": TEXT, **PAIR}
HUND = Correction("en", "de", TEXT, "der alte Hund bellt")
OLD = """
CREATE TABLE keys (
    digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, per_minute INTEGER, per_month INTEGER, created REAL NOT NULL
);
CREATE TABLE usage (
    name TEXT NOT NULL, month TEXT NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (name, month)
);
CREATE TABLE corrections (
    id INTEGER PRIMARY KEY, src_lang TEXT NOT NULL, tgt_lang TEXT NOT NULL, src TEXT NOT NULL, tgt TEXT NOT NULL,
    created REAL NOT NULL, author TEXT NOT NULL DEFAULT '', UNIQUE (src_lang, tgt_lang, src)
);
CREATE TABLE glossaries (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, dictionaries TEXT NOT NULL, created REAL NOT NULL,
    author TEXT NOT NULL DEFAULT ''
);
INSERT INTO keys VALUES ('2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683', 'old', 7, NULL, 1.0);
INSERT INTO usage VALUES ('old', '2020-01', 5);
INSERT INTO corrections VALUES (3, 'en', 'de', 'a  cat', 'eine Katze', 1.0, 'old');
INSERT INTO corrections VALUES (9, 'en', 'de', 'a cat', 'Katze', 2.0, 'address 127.0.0.1');
INSERT INTO glossaries VALUES ('0c9a', 'pub', '[["en", "de", "ale\\tBier"]]', 1.0, 'old');
"""
"""A store of a version without rights and histories; the key is "key"."""


def served(
    tmp_path: Path, ask: Callable[["Asker"], Coroutine[Any, Any, None]], *, base: str = "http://localhost:5000",
    address: str = "127.0.0.1", **settings: Any,
) -> None:  # fmt: skip
    """Call `ask` with a server that is asked under an address by a client at another."""

    async def run() -> None:
        limits = settings.pop("limits", Limits(deadline_seconds=60))
        app = create_app(
            Settings(
                runs=[FIXTURE], device="cpu", threads=1, load_first=True, limits=limits,
                store=tmp_path / "serve.sqlite", **settings,
            )
        )  # fmt: skip
        transport = httpx.ASGITransport(app=app, client=(address, 1))
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url=base) as client:
            await ask(Asker(client, app.state.server))

    asyncio.run(run())


class Asker:
    """A client, and short ways to ask it."""

    def __init__(self, client: httpx.AsyncClient, server: Any) -> None:
        self.client, self.server = client, server

    async def __call__(self, method: str, path: str, key: str = "", **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return await self.client.request(method, path, headers={**headers, **options.pop("headers", {})}, **options)

    async def correct(self, translation: str, key: str = "", **more: Any) -> httpx.Response:
        return await self("POST", "/v1/corrections", key, json={**ASKED, "translation": translation, **more})

    async def translated(self, key: str = "", text: str = TEXT) -> str:
        return str((await self("POST", "/v1/translate", key, json={**ASKED, "text": text})).json()["text"])

    async def statuses(self, key: str, id: int, *ways: str) -> list[int]:
        return [(await self("POST", f"/v1/corrections/{id}/{way}", key)).status_code for way in ways]


def keys(tmp_path: Path, **rights: tuple[str, ...]) -> dict[str, str]:
    store = Store(tmp_path / "serve.sqlite")
    made = {name: store.add_key(name, rights=some) for name, some in rights.items()}
    store.close()
    return made


# Who may


def test_nobody_corrects_a_server_without_a_key_that_may(tmp_path: Path) -> None:
    """LibreTranslate#490, #507: suggestions were taken from whoever sent them."""
    known = keys(tmp_path, reader=(), anna=("correct",))

    async def ask(do: Asker) -> None:
        before = await do.translated()
        for key in ("", known["reader"]):
            assert (await do.correct("x", key)).status_code == 403
            assert (await do("POST", "/suggest", key, json={"q": TEXT, "s": "x", **PAIR})).status_code == 403
            assert (await do("GET", "/v1/corrections", key)).status_code == 403
            assert (await do("GET", "/v1/corrections?format=tmx&source=en&target=de", key)).status_code == 403
            assert (await do("DELETE", "/v1/corrections", key, json=ASKED)).status_code == 403
            assert (await do("DELETE", "/v1/corrections/1", key)).status_code == 403
            assert await do.statuses(key, 1, "undo", "restore", "approve", "reject") == [403] * 4
            rights = (await do("GET", "/v1/limits", key)).json()["corrections"]
            assert rights == {"mode": "review", "may_correct": False, "may_review": False, "scopes": []}
            assert (await do("GET", "/frontend/settings", key)).json()["suggestions"] is False
        assert await do.translated() == before
        assert (await do.correct("x", known["anna"])).json()["state"] == "pending"
        rights = (await do("GET", "/v1/limits", known["anna"])).json()["corrections"]
        assert rights == {
            "mode": "review", "may_correct": True, "may_review": False, "scopes": ["shared", "own"],
        }  # fmt: skip

    served(tmp_path, ask)


def test_the_user_of_a_machine_corrects_without_a_key_and_nobody_from_elsewhere_does(tmp_path: Path) -> None:
    async def ask(do: Asker) -> None:
        kept = (await do.correct("der alte Hund")).json()
        assert (kept["kept"], kept["state"], kept["author"]) == (True, "shared", "")
        assert await do.translated() == "der alte Hund"
        for headers in ({"x-forwarded-for": "9.9.9.9"}, {"forwarded": "for=9.9.9.9"}, {"via": "1.1 x"}):
            answer = await do("POST", "/v1/corrections", json={**ASKED, "translation": "x"}, headers=headers)
            assert answer.status_code == 403, headers  # a proxy that nobody told us about
        limits = (await do("GET", "/v1/limits")).json()["corrections"]
        assert limits == {
            "mode": "everybody", "may_correct": True, "may_review": True, "scopes": ["shared", "own"],
        }  # fmt: skip

    served(tmp_path, ask, local=True)


@pytest.mark.parametrize("settings", [{}, {"local": True, "key_required": True}, {"local": True, "corrections": "off"}])
def test_where_it_is_off_it_is_off_for_everybody(settings: dict[str, Any], tmp_path: Path) -> None:
    known = keys(tmp_path, reader=(), anna=("correct", "review"))

    async def ask(do: Asker) -> None:
        off = settings.get("corrections") == "off"
        assert (await do.correct("x", known["anna"])).status_code == (403 if off else 200)
        assert (await do.correct("x")).status_code in (400, 403)
        assert (await do.correct("x", known["reader"])).status_code == 403

    served(tmp_path, ask, **settings)


def test_rights_given_and_taken_by_another_process_count_at_once(tmp_path: Path) -> None:
    known = keys(tmp_path, anna=())

    async def ask(do: Asker) -> None:
        assert (await do.correct("x", known["anna"])).status_code == 403
        other = Store(tmp_path / "serve.sqlite")
        other.set_rights("anna", ["correct"])
        assert (await do.correct("x", known["anna"])).status_code == 200
        other.remove_key("anna")
        assert (await do.correct("y", known["anna"])).status_code == 403
        other.close()

    served(tmp_path, ask)


# Whose texts


@pytest.mark.system
def test_own_corrections_are_used_for_their_author_at_every_door(tmp_path: Path) -> None:
    known = keys(tmp_path, anna=("correct",), ben=("correct",))

    async def doors(do: Asker, key: str) -> list[str]:
        deepl = {"text": [TEXT, "der hund"], "source_lang": "EN", "target_lang": "DE"}
        answers = [
            (await do("POST", "/v1/translate", key, json={**ASKED, "text": ["der hund", TEXT]})).json()["translations"][
                1
            ],
            json.loads(
                (await do("POST", "/v1/translate/stream", key, json=ASKED)).text.split("data: ")[1].split("\n")[0]
            ),
            (await do("POST", "/v2/translate", key, json=deepl)).json()["translations"][0],
        ]
        libre = (await do("POST", "/translate", key, json={"q": TEXT, **PAIR})).json()["translatedText"]
        sent = {"data": PAIR, "files": {"file": ("a.txt", TEXT.encode())}}
        job = (await do("POST", "/v1/documents", key, **sent)).json()
        address, of_job = f"/v1/documents/{job['id']}", {"key": job["key"]}
        while (await do("GET", address, key, params=of_job)).json()["state"] in ("queued", "translating"):
            await asyncio.sleep(0.02)
        document = (await do("GET", f"{address}/result", key, params=of_job)).text
        return [*(str(answer["text"]) for answer in answers), libre, document]

    async def ask(do: Asker) -> None:
        before = await doors(do, "")
        assert (await do.correct("Annas Hund", known["anna"])).json()["state"] == "own"
        assert (await do.correct("Bens Hund", known["ben"])).json()["state"] == "own"
        assert await doors(do, known["anna"]) == ["Annas Hund"] * 5
        assert await doors(do, known["ben"]) == ["Bens Hund"] * 5
        assert await doors(do, "") == before
        near = {**ASKED, "text": "the old dogs barks", "warnings": True}
        memory = (await do("POST", "/v1/translate", known["anna"], json=near)).json()["memory"]
        assert [one["target"] for one in memory] == ["Annas Hund"]
        assert (await do("POST", "/v1/translate", json=near)).json()["memory"] == []
        listed = (await do("GET", "/v1/corrections", known["anna"])).json()
        assert [one["translation"] for one in listed["corrections"]] == ["Annas Hund"]
        bens = (await do("GET", "/v1/corrections", known["ben"])).json()["corrections"][0]["id"]
        assert await do.statuses(known["anna"], bens, "undo", "restore") == [404, 404]
        assert (await do.correct("x", known["anna"], scope="shared")).status_code == 403

    served(tmp_path, ask, corrections="own")


def test_a_correction_of_several_sentences_is_used_for_each_until_it_is_undone(tmp_path: Path) -> None:
    """In texts and documents; a sentence that another correction has stays, one that was corrected itself counts."""
    both, again = "A Dog barks. The cat sees 2 men.", "It rains. A Dog barks."

    async def document(do: Asker, text: str) -> str:
        sent = {"data": PAIR, "files": {"file": ("a.html", f"<p><b>{text}</b> {text}</p>".encode())}}
        job = (await do("POST", "/v1/documents", **sent)).json()
        address, of_job = f"/v1/documents/{job['id']}", {"key": job["key"]}
        while (await do("GET", address, params=of_job)).json()["state"] in ("queued", "translating"):
            await asyncio.sleep(0.02)
        return (await do("GET", f"{address}/result", params=of_job)).text

    async def ask(do: Asker) -> None:
        before = await do.translated(text="A Dog barks.")
        first = (await do.correct("Ein Rüde bellt. Die Katze sieht 2 Männer.", text=both)).json()["id"]
        assert await do.translated(text="Hello.\n- A Dog barks.") == (
            (await do.translated(text="Hello.")) + "\n- Ein Rüde bellt."
        )
        assert await do.translated(text="The cat sees 7 men.") == "Die Katze sieht 7 Männer."
        assert "<b>Ein Rüde bellt.</b> Ein Rüde bellt." in await document(do, "A Dog barks.")
        second = (await do.correct("Es regnet. Ein Dackel bellt.", text=again)).json()["id"]
        assert await do.translated(text="A Dog barks.") == "Ein Dackel bellt."
        third = (await do.correct("Ein Hund.", text="A Dog barks.")).json()["id"]
        assert await do.translated(text="A Dog barks.") == "Ein Hund."
        for id, expected in ((third, "Ein Dackel bellt."), (second, "Ein Rüde bellt."), (first, before)):
            assert await do.statuses("", id, "undo") == [200]
            assert await do.translated(text="A Dog barks.") == expected
        assert await do.statuses("", first, "restore") == [200]
        assert await do.translated(text="A Dog barks.") == "Ein Rüde bellt."

    served(tmp_path, ask, local=True)


def test_a_server_looks_up_in_datastores_of_its_runs(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    valid = FIXTURE.parent / "valid.en", FIXTURE.parent / "valid.de"
    given = GivenCorrections(tmp_path / "c", [(TEXT, "die Katze sieht heute den Hund")])
    folder = tmp_path / "corrections"
    make_datastore(FIXTURE, folder, corrections=given, valid=valid, device="cpu")
    expected = dragoman.load(FIXTURE, device="cpu", datastores=[folder]).translate([TEXT])
    assert expected != dragoman.load(FIXTURE, device="cpu").translate([TEXT])

    async def ask(do: Asker) -> None:
        assert [await do.translated()] == expected

    served(tmp_path, ask, datastores=[folder])
    text = (folder / "datastore.json").read_text()
    (folder / "datastore.json").write_text(text.replace('"weights": "', '"weights": "0'))
    with raises_error(Error.MISMATCH, "corrections"):
        by_run([folder], [FIXTURE])


def test_a_review_makes_a_correction_everybodys(tmp_path: Path) -> None:
    """WeblateOrg/weblate#1073, #7776, #2635: everybody suggests, some approve or reject; #11373: what was approved can
    be taken back."""
    known = keys(tmp_path, anna=("correct",), ben=("correct",), vera=("review",), root=("correct", "review"))

    async def ask(do: Asker) -> None:
        before = await do.translated()
        first = (await do.correct("Annas Hund", known["anna"])).json()["id"]
        assert await do.translated(known["anna"]) == "Annas Hund"
        assert await do.translated(known["ben"]) == before
        assert await do.statuses(known["ben"], first, "approve", "reject", "undo") == [403, 403, 404]
        waiting = (await do("GET", "/v1/corrections?state=pending", known["vera"])).json()
        assert [(one["id"], one["author"]) for one in waiting["corrections"]] == [(first, "anna")]
        assert (await do("POST", f"/v1/corrections/{first}/approve", known["vera"])).json()["state"] == "shared"
        assert await do.statuses(known["vera"], first, "approve", "reject") == [409, 409]
        assert await do.translated() == await do.translated(known["ben"]) == "Annas Hund"
        second = (await do.correct("Bens Hund", known["ben"])).json()["id"]
        assert [await do.translated(known[name]) for name in ("anna", "ben")] == ["Annas Hund", "Bens Hund"]
        assert await do.statuses(known["vera"], second, "reject") == [200]
        assert [await do.translated(known[name]) for name in ("anna", "ben")] == ["Annas Hund", "Bens Hund"]
        assert (await do.correct("der Hund", known["root"])).json()["state"] == "shared"  # who reviews need not wait
        assert await do.translated() == "der Hund"
        assert await do.statuses(known["anna"], first, "restore") == [403]
        assert await do.statuses(known["vera"], first, "restore") == [200]
        assert await do.translated() == "Annas Hund"
        assert (await do("DELETE", f"/v1/corrections/{first}", known["vera"])).json() == {"forgotten": True}
        assert await do.translated() == before
        assert (await do.correct("x", known["vera"])).status_code == 403

    served(tmp_path, ask)


def test_those_who_are_not_known_suggest_and_own_nothing(tmp_path: Path) -> None:
    known = keys(tmp_path, vera=("review",))

    async def ask(do: Asker) -> None:
        before = await do.translated()
        one = (await do.correct("x")).json()
        assert (one["state"], one["author"]) == ("pending", "address 9.9.9.9")
        assert await do.translated() == before
        assert (await do.correct("x", scope="own")).status_code == 403
        assert (await do("GET", "/v1/corrections")).json() == {"corrections": [], "total": 0}
        assert await do.statuses("", one["id"], "undo", "approve") == [404, 403]
        assert await do.statuses(known["vera"], one["id"], "approve") == [200]
        assert await do.translated() == "x"
        do.server.store.corrections.add(HUND, "address 8.8.8.8")
        for key, author in (("", ""), (known["vera"], "address 8.8.8.8")):  # addresses are for those who review
            assert (await do("GET", "/v1/corrections", key)).json()["corrections"][0]["author"] == author

    served(tmp_path, ask, address="9.9.9.9", open_corrections=True)


# History, lists, limits


def test_lists_undo_and_history(tmp_path: Path) -> None:
    """WeblateOrg/weblate#284: a history of each text, and a way back."""

    async def ask(do: Asker) -> None:
        before = await do.translated()
        one, two = [(await do.correct(text)).json()["id"] for text in ("eins", "zwei")]
        again = (await do.correct("zwei")).json()
        assert again["id"] == two  # a button that is pressed twice
        record = (await do("GET", f"/v1/corrections/{two}")).json()
        assert [old["translation"] for old in record["before"]] == ["eins"]
        undone = (await do("POST", f"/v1/corrections/{two}/undo")).json()
        assert undone["in_use"]["id"] == one
        assert await do.translated() == "eins"
        assert await do.statuses("", two, "undo") == [409]
        assert (await do("POST", f"/v1/corrections/{one}/undo")).json() == {"in_use": None}
        assert await do.translated() == before
        assert await do.statuses("", two, "restore") == [200]
        assert await do.translated() == "zwei"
        assert (await do("DELETE", f"/v1/corrections/{two}")).status_code == 200
        assert await do.translated() == before
        for path in ("/v1/corrections/77", "/v1/corrections/x", "/v1/corrections/" + "9" * 30):
            assert (await do("GET", path)).status_code == 404
        for row in range(5):
            await do("POST", "/v1/corrections", json={**ASKED, "text": f"Straße  {row}", "translation": "ÉTÉ"})
        page = (await do("GET", "/v1/corrections?q=STRASSE&offset=1&limit=2")).json()
        assert [item["text"] for item in page["corrections"]] == ["Straße 3", "Straße 2"]
        assert page["total"] == 5
        assert (await do("GET", "/v1/corrections?q=été")).json()["total"] == 5
        assert (await do("GET", "/v1/corrections?q=%25")).json()["total"] == 0
        for wrong in ("offset=-1", "limit=0", "limit=1000000", "state=x", "offset=x", "format=xls"):
            assert (await do("GET", f"/v1/corrections?{wrong}")).status_code == 400

    served(tmp_path, ask, local=True)


def test_there_are_limits_and_quotas(tmp_path: Path) -> None:
    store = Store(tmp_path / "serve.sqlite")
    small = store.add_key("small", per_month=30, rights=["correct"])
    store.close()
    limits = Limits(deadline_seconds=60, changes_per_minute=4, corrections_per_client=2, corrections_in_total=3)

    async def ask(do: Asker) -> None:
        statuses = [(await do.correct("x", text=f"t {row}")).status_code for row in range(5)]
        assert statuses == [200, 200, 403, 403, 429]
        assert (await do.correct("x" * 15, small, text="t")).status_code == 200
        assert (
            await do.correct("y", small, text="t")
        ).status_code == 403  # in all, with those that are in force no more
        assert (await do.correct("x" * 5001)).status_code == 400

    served(tmp_path, ask, local=True, limits=limits)

    async def ask_more(do: Asker) -> None:
        assert (await do.correct("x" * 15, small, text="u")).status_code == 456

    served(tmp_path, ask_more, local=True)


def test_each_change_leaves_a_line_without_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def ask(do: Asker) -> None:
        one = (await do.correct("GEHEIM", text="SECRET")).json()["id"]
        two = (await do.correct("GEHEIMER", text="SECRET")).json()["id"]
        await do.statuses("", two, "undo", "restore")
        await do("DELETE", f"/v1/corrections/{two}")
        await do.statuses("", one, "restore")

    served(tmp_path, ask, local=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("corrections: ")]
    assert lines == [
        f"corrections: this machine {what} (en to de, shared)"
        for what in ("added 1", "added 2", "took back 2", "restored 2", "forgot 2", "restored 1")
    ]


# The store


def test_an_old_store_is_read_and_its_corrections_stay_everybodys(tmp_path: Path) -> None:
    path = tmp_path / "serve.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(OLD)
    connection.close()

    async def ask(do: Asker) -> None:
        assert await do.translated(text="a cat") == "Katze"
        assert (await do("GET", "/v2/glossaries", "key")).json()["glossaries"][0]["name"] == "pub"
        assert (await do.correct("x", "key")).status_code == 403

    served(tmp_path, ask)
    store = Store(path)
    assert [(one.correction.src, one.state) for one in store.corrections.matching()] == [("a cat", "shared")]
    assert [(key.name, key.per_minute, key.rights) for key in store.all_keys()] == [("old", 7, frozenset())]
    store.database._writer.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(DragomanError) as raised:
        Store(path)
    assert raised.value.code == Error.OTHER_VERSION


def test_a_store_that_is_open_elsewhere_changes_under_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr("dragoman.serve.app.COUNT_SECONDS", 3600.0)  # a look gives way to what is being written
    known = keys(tmp_path, anna=("correct",))

    def command(*arguments: str) -> str:
        result = CliRunner().invoke(
            command_line, ["corrections", *arguments, "--store", str(tmp_path / "serve.sqlite")]
        )
        assert result.exit_code == 0, result.output
        return result.output

    async def ask(do: Asker) -> None:
        async def becomes(text: str, key: str = "") -> None:
            """Ask until the server has looked: while a thread writes, it looks at the next request."""
            async with asyncio.timeout(300):
                while (await do.translated(key) == before) != (text == "before"):
                    await asyncio.sleep(0.01)

        before = await do.translated()
        await do.correct("Annas\n\x1b]0;Hund", known["anna"])
        [row] = command("list", "--state", "pending").splitlines()
        assert row.split("\t")[:4] == ["1", "en-de", "pending", "anna"]
        assert row.split("\t")[5:] == [TEXT, "Annas \ufffd]0;Hund"]  # a terminal obeys what is not printable
        command("approve", "1")
        await becomes("another")
        command("undo", "1")
        await becomes("before")
        await do.correct("zwei", known["anna"])
        command("forget", "--author", "anna")
        await becomes("before", known["anna"])

    served(tmp_path, ask)


def test_corrections_are_exported_as_before(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for correction, author, state in ((HUND, "anna", "shared"), (HUND._replace(src="b"), "ben", "pending")):
        store.corrections.add(correction, author, state)  # type: ignore[arg-type]
    store.close()
    for arguments in (["en", "de"], ["export", "en", "de"]):
        command = ["corrections", *arguments, "-o", str(tmp_path / "out.tmx"), "--store", str(tmp_path / "s")]
        assert CliRunner().invoke(command_line, command).exit_code == 0
        with (tmp_path / "out.tmx").open("rb") as stream:
            assert [(one.src, one.tgt) for one in tmx_entries(stream, "x", ("en", "de"))] == [(TEXT, HUND.tgt)]


def test_a_memory_follows_any_changes(tmp_path: Path) -> None:
    """After each of many random changes the memories hold what they would after a new start."""
    import random

    random.seed(5)
    texts = ["a", "b", "c 1", "c 2", "Ab. Cd.", "Cd. Ab."]
    store = Store(tmp_path / "s")
    kept, following = store.corrections, memories.CorrectionMemories(store.corrections)
    for _ in range(300):
        author, text = random.choice(["anna", "ben"]), random.choice(texts)
        some = [one for id in range(1, 400) if (one := kept.get(id)) is not None]
        one = random.choice(some) if some else None
        way = random.randrange(6)
        if way < 2 or one is None:
            state = random.choice(["own", "pending", "shared"])
            tgt = random.choice(["Ef. Gh.", "Ij. Kl."]) if text.endswith(".") else f"{text} {random.random()}"
            kept.add(Correction("en", "de", text, tgt), author, state)  # type: ignore[arg-type]
        elif one.in_force and way == 2:
            kept.forget(one.id)
        elif one.in_force and way == 3:
            kept.undo(one)
        elif not one.in_force and way == 4:
            kept.restore(one)
        elif one.in_force and one.state == "pending":
            kept.review(one, approved=random.random() < 0.7)
        following.read()
        fresh = memories.CorrectionMemories(kept)
        fresh.read()
        for author in ("anna", "ben", None):  # type: ignore[assignment]
            found = [known.memory(("en", "de"), author) for known in (following, fresh)]
            said = [[memory and memory.exact(text) for text in (*texts, "Ab.", "Cd.")] for memory in found]
            assert said[0] == said[1]
    store.close()


def test_a_history_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrections, "MAX_HISTORY", 3)
    store = Store(tmp_path / "s")
    for row in range(10):
        last = store.corrections.add(HUND._replace(tgt=str(row)), "anna", "own")
    assert store.corrections.total() == 4
    assert [one.correction.tgt for one in store.corrections.history(last)] == ["8", "7", "6"]
    assert store.corrections.count(Filter(author="anna")) == 1
    store.close()


# A store that another process locks


def test_a_locked_store_holds_up_no_translation(tmp_path: Path) -> None:
    """yesodweb/yesod#400, TryGhost/node-sqlite3#9, star7th/showdoc#2598: one writer, and every request failed or
    waited."""
    known = keys(tmp_path, anna=("correct",))

    async def ask(do: Asker) -> None:
        await do.correct("Annas Hund", known["anna"])
        other = sqlite3.connect(tmp_path / "serve.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            assert await do.translated(known["anna"]) == "Annas Hund"
            usage = (await do("GET", "/v2/usage", known["anna"])).json()["character_count"]
        for method, path, body in (
            ("POST", "/v1/corrections", {**ASKED, "translation": "x"}),
            ("POST", "/suggest", {"q": "a", "s": "b", **PAIR}),
            ("DELETE", "/v1/corrections/1", None),
            ("POST", "/v3/glossaries", {"name": "a", "dictionaries": [
                {"source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}]}),
        ):  # fmt: skip
            answer = await do(method, path, known["anna"], json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), path
            assert "sqlite" not in answer.text
            assert str(tmp_path) not in answer.text
        assert (await do("GET", "/v1/corrections", known["anna"])).json()["total"] == 1
        other.execute("ROLLBACK")
        other.close()
        assert await do.translated(known["anna"]) == "Annas Hund"
        assert (await do("GET", "/v2/usage", known["anna"])).json()["character_count"] == usage + len(TEXT)

    served(tmp_path, ask)
    store = Store(tmp_path / "serve.sqlite")
    assert store.usage(this_month())["anna"] > 3 * len(TEXT)
    store.close()


def test_a_store_opens_without_a_write_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "serve.sqlite"
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store = Store(path, patience=0.0)
    assert store.all_keys() == []
    with pytest.raises(DragomanError) as raised:
        store.add_key("anna")
    assert raised.value.code == Error.IN_USE
    other.close()
    store.close()


# Glossaries, which are kept for a client too

DICTIONARY = {"source_lang": "en", "target_lang": "de", "entries": "der hund\tHASSO", "entries_format": "tsv"}


def test_a_glossary_is_read_once_for_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = keys(tmp_path, anna=(), ben=())
    read: list[str | None] = []
    glossaries = Store.glossaries

    def counted(self: Store, author: str, id: str | None = None) -> Any:
        read.append(id)
        return glossaries(self, author, id)

    async def ask(do: Asker) -> None:
        made = await do("POST", "/v2/glossaries", known["anna"], json={"name": "a", **DICTIONARY})
        id = made.json()["glossary_id"]
        asked = {"text": ["der hund"], "source_lang": "EN", "target_lang": "DE", "glossary_id": id}
        monkeypatch.setattr(Store, "glossaries", counted)

        async def text() -> str:
            answer = (await do("POST", "/v2/translate", known["anna"], json=asked)).json()
            return str(answer["translations"][0]["text"])

        assert {await text() for _ in range(5)} == {"HASSO"}
        assert read == [id]
        changed = {**DICTIONARY, "entries": "der hund\tREX"}
        await do("PUT", f"/v3/glossaries/{id}/dictionaries", known["anna"], json=changed)
        assert {await text() for _ in range(3)} == {"REX"}
        assert (await do("POST", "/v2/translate", known["ben"], json=asked)).status_code == 404
        assert (await do("DELETE", f"/v3/glossaries/{id}", known["ben"])).status_code == 404
        assert (await do("DELETE", f"/v3/glossaries/{id}", known["anna"])).status_code == 204
        assert (await do("POST", "/v2/translate", known["anna"], json=asked)).status_code == 404

    served(tmp_path, ask)


def test_glossaries_have_limits_a_quota_and_a_line_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "serve.sqlite")
    anna, small = store.add_key("anna"), store.add_key("small", per_month=20)
    store.close()
    limits = Limits(
        deadline_seconds=60, glossaries_per_client=2, glossary_characters=100, glossary_characters_in_total=190,
        changes_per_minute=6,
    )  # fmt: skip

    async def ask(do: Asker) -> None:
        async def put(key: str, length: int) -> httpx.Response:
            entries = "SECRET\t" + "x" * (length - 7)
            return await do("POST", "/v2/glossaries", key, json={**DICTIONARY, "name": "a", "entries": entries})

        assert [(await put(anna, length)).status_code for length in (90, 20, 10, 10)] == [201, 413, 201, 403]
        id = (await do("GET", "/v2/glossaries", anna)).json()["glossaries"][0]["glossary_id"]
        more = {"dictionaries": [{**DICTIONARY, "entries": "b\t" + "x" * 20}]}
        assert (await do("PATCH", f"/v3/glossaries/{id}", anna, json=more)).status_code == 413
        assert [(await put("", length)).status_code for length in (40, 60)] == [201, 403]
        assert [(await put(small, length)).status_code for length in (21, 8, 18)] == [456, 201, 456]
        assert (await do("DELETE", f"/v2/glossaries/{id}", anna)).status_code == 204
        assert (await put(anna, 8)).status_code == 429

    served(tmp_path, ask, limits=limits)
    said = capsys.readouterr().err
    assert "SECRET" not in said
    lines = [line.split()[1:3] for line in said.splitlines() if line.startswith("glossaries: ")]
    assert lines == [
        ["anna", "added"],
        ["anna", "added"],
        ["address", "127.0.0.1"],
        ["small", "added"],
        ["anna", "removed"],
    ]
