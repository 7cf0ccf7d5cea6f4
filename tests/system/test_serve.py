"""A live server: its APIs, its limits, its manners."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman.formats.bitext import tmx_entries
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.serve import pages
from dragoman.serve.app import ROUTES
from dragoman.serve.store import Store

LiveServer = Any
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
TEXT = "der hund sieht die frau"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, live_server: Any, run_of_languages: Any) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("served")
    runs = (FIXTURE, run_of_languages(folder, "de", "fr"), run_of_languages(folder, "de", "en"))
    with live_server(folder, "--deadline", "60", runs=runs) as running:  # other work may hold this machine up
        yield running


@pytest.fixture(scope="module")
def translator() -> SearchTranslator:
    return SearchTranslator.load(FIXTURE, device="cpu")


def test_libretranslate_takes_a_query_a_form_a_multipart_and_json(
    server: LiveServer, translator: SearchTranslator
) -> None:
    asked = {"q": TEXT, "source": "en", "target": "de"}
    [expected] = translator.translate([TEXT])
    answers = [
        server.post("/translate", params=asked),
        server.post("/translate", data=asked),
        server.post("/translate", json=asked),
        server.post("/translate", files={name: (None, value) for name, value in asked.items()}),
        server.post("/translate?target=de", data={"q": TEXT, "source": "EN"}),
    ]
    assert [answer.json() for answer in answers] == [{"translatedText": expected}] * 5


def test_markup_has_alternatives_too(server: LiveServer) -> None:
    """LibreTranslate's own answer has none for HTML."""
    asked = {"source": "en", "target": "de", "alternatives": 2}
    plain = server.post("/translate", json={**asked, "q": TEXT}).json()
    found = server.post("/translate", json={**asked, "q": f"<p>{TEXT}</p>", "format": "html"}).json()
    assert len(plain["alternatives"]) == 2
    assert found == {
        "translatedText": f"<p>{plain['translatedText']}</p>",
        "alternatives": [f"<p>{text}</p>" for text in plain["alternatives"]],
    }
    bold = server.post("/translate", json={**asked, "q": f"<p>{TEXT} <b>{TEXT}</b></p>", "format": "html"}).json()
    assert len({bold["translatedText"], *bold["alternatives"]}) == 3
    assert all(text.count("<b>") == text.count("</b>") == 1 for text in bold["alternatives"])


def test_libretranslate_lists_alternatives_and_detection(server: LiveServer) -> None:
    asked = {
        "q": ["The man sleeps on the street.", "Der Mann schläft auf der Straße."],
        "source": "auto",
        "target": "fr",
    }
    found = server.post("/translate", json={**asked, "alternatives": 2}).json()
    assert len(found["translatedText"]) == len(found["alternatives"]) == 2
    assert [one["language"] for one in found["detectedLanguage"]] == ["en", "de"]
    assert all(0 <= one["confidence"] <= 100 for one in found["detectedLanguage"])
    assert server.post("/translate", json={**asked, "q": "Guten Morgen", "target": "de"}).json() == {
        "translatedText": "Guten Morgen",
        "detectedLanguage": {"confidence": pytest.approx(90, abs=10), "language": "de"},
    }
    assert server.post("/detect", data={"q": "Der Mann schläft."}).json()[0]["language"] == "de"
    known = {one["code"]: one for one in server.get("/languages").json()}
    assert known["de"] == {"code": "de", "name": "German", "targets": ["de", "en", "fr"]}


@pytest.mark.parametrize(
    ("asked", "status", "error"),
    [
        ({}, 400, "Invalid request: missing q parameter"),
        ({"q": "x"}, 400, "Invalid request: missing source parameter"),
        ({"q": "x", "source": "en"}, 400, "Invalid request: missing target parameter"),
        ({"q": "x", "source": "en", "target": "de", "alternatives": "x"}, 400,
         "Invalid request: alternatives parameter is not a number"),
        ({"q": "x", "source": "en", "target": "de", "alternatives": 11}, 400,
         "Invalid request: alternatives parameter must be <= 10"),
        ({"q": ["x"] * 129, "source": "en", "target": "de"}, 400,
         "Invalid request: request (129) exceeds text limit (128)"),
        ({"q": "x" * 5001, "source": "en", "target": "de"}, 400,
         "Invalid request: request (5001) exceeds text limit (5000)"),
        ({"q": "x", "source": "en", "target": "zz"}, 400, "zz is not supported"),
        ({"q": "x", "source": "yy", "target": "zz"}, 400, "yy is not supported"),
        ({"q": "x", "source": "en", "target": "de", "format": "rtf"}, 400, "rtf format is not supported"),
        ({"q": "x", "source": "fr", "target": "de"}, 400,
         "German (de) is not available as a target language from French (fr)"),
        ({"q": "x", "source": "en", "target": "de", "format": 1e9}, 400,
         "Invalid request: format parameter is not a text"),
    ],
)  # fmt: skip
def test_libretranslate_says_what_is_wrong(server: LiveServer, asked: dict[str, Any], status: int, error: str) -> None:
    answer = server.post("/translate", json=asked)
    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_broken_bodies_and_wrong_addresses_are_answered_in_json(server: LiveServer) -> None:
    json_header = {"content-type": "application/json"}
    assert server.post("/translate", content="{", headers=json_header).json() == {"error": "Invalid JSON format"}
    deep = '{"q":' * 300 + "1" + "}" * 300
    assert (
        server.post("/translate", content=deep, headers=json_header).json()["error"].startswith("Invalid JSON format")
    )
    surrogate = r'{"q": "\ud800", "source": "en", "target": "de"}'
    assert server.post("/translate", content=surrogate, headers=json_header).status_code == 400
    assert server.post("/translate", content=b"x" * (2**20 + 1)).status_code == 413
    broken = server.post("/translate", content=b"--x", headers={"content-type": "multipart/form-data; boundary=y"})
    assert broken.status_code == 400
    for answer, status in (
        (server.get("/nothing"), 404),
        (server.get("/translate"), 405),
        (server.post("/health"), 405),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}
    assert set(server.get("/v2/nothing").json()) == {"message"}
    assert server.get("/health").json() == {"status": "ok"}


def test_our_own_api_tells_all_that_is_known(server: LiveServer, translator: SearchTranslator) -> None:
    asked = {"text": f"{TEXT}.\n{TEXT}", "source": "en", "target": "de", "alternatives": 2, "alignments": True,
             "warnings": True, "split": True}  # fmt: skip
    found = server.post("/v1/translate", json=asked).json()
    first, second = translator.translate([f"{TEXT}.", TEXT])
    assert found["text"] == f"{first}\n{second}"
    assert found["sentences"] == [[0, 24, 0, len(first)], [25, 48, len(first) + 1, len(found["text"])]]
    assert len(found["alternatives"]) == 2
    assert all(0 <= a < b <= 48 and 0 <= c < d <= len(found["text"]) for a, b, c, d in found["alignments"])
    assert isinstance(found["warnings"], list)
    begun = server.post("/v1/translate", json={**asked, "prefix": "die frau", "alternatives": 0}).json()["text"]
    assert begun.startswith("die frau")
    held = server.post(
        "/v1/translate", json={"text": TEXT, "source": "en", "target": "de", "glossary": {"hund": "könig"}}
    )
    assert "könig" in held.json()["text"]
    for form in ("hund = könig", "hund;könig", '{"hund": "könig"}'):
        again = server.post("/v1/translate", json={"text": TEXT, "source": "en", "target": "de", "glossary": form})
        assert again.json()["text"] == held.json()["text"]
    for wrong in (
        {"glossary": "hund = könig\nfrau ="},
        {"text": 1},
        {"format": "rtf"},
        {"glossary": [1]},
        {"beam_size": 99},
        {"source": "zz"},
        {"split": "x"},
    ):
        answer = server.post("/v1/translate", json={**asked, **wrong})
        assert answer.status_code == 400, wrong
        assert next(iter(wrong)) in answer.json()["error"]
        assert answer.json()["code"] == "bad-request"


def test_a_way_through_another_language_is_both_translations(server: LiveServer, translator: SearchTranslator) -> None:
    [middle] = translator.translate([TEXT])
    [expected] = translator.translate([middle])
    assert (
        server.post("/translate", json={"q": TEXT, "source": "en", "target": "fr"}).json()["translatedText"] == expected
    )
    refused = {"text": TEXT, "source": "en", "target": "fr", "glossary": {"hund": "könig"}}
    answer = server.post("/v1/translate", json=refused).json()
    assert (answer["code"], "goes through de" in answer["error"]) == ("unsupported", True)


def test_markup_stays_around_its_words(server: LiveServer) -> None:
    asked = {"q": 'a <b class="x">hund</b> &lt;i&gt; <br> &amp; frau', "source": "en", "target": "de", "format": "html"}
    found = server.post("/translate", json=asked).json()["translatedText"]
    for piece in ('<b class="x">', "</b>", "<br>", "&lt;"):
        assert found.count(piece) == 1
    assert "<i>" not in found


def test_tags_in_tags_stay_and_what_is_not_to_be_translated_is_not(server: LiveServer) -> None:
    asked = {"source": "en", "target": "de", "format": "html"}
    text = "<p>the <b>old <i>dog</i></b> sees <a href='x'>the man</a></p>"
    found = server.post("/translate", json={**asked, "q": text}).json()["translatedText"]
    for tag in ("<p>", "<b>", "<i>", "</i>", "</b>", "<a href='x'>", "</a>", "</p>"):
        assert found.count(tag) == 1
    assert found.index("<b>") < found.index("<i>") < found.index("</i>") < found.index("</b>")
    text = '<p translate="no">the dog</p><p>the king</p><code>the man</code>'
    found = server.post("/translate", json={**asked, "q": text}).json()["translatedText"]
    assert found.startswith('<p translate="no">the dog</p><p>')
    assert found.endswith("</p><code>the man</code>")
    held = server.post(
        "/v1/translate", json={"text": "Hello {name}, see https://x.org/a", "source": "en", "target": "de"}
    )
    assert "{name}" in held.json()["text"]
    assert "https://x.org/a" in held.json()["text"]


def steps_done(server: LiveServer) -> float:
    [line] = [line for line in server.get("/metrics").text.splitlines() if line.startswith("dragoman_batch_rows_count")]
    return float(line.split()[1])


def test_a_list_is_translated_as_a_batch(server: LiveServer) -> None:
    lines = [
        f"the {word} {other} sees the man" for word in ("old", "red", "small") for other in ("dog", "king", "man")
    ] * 3
    asked = {"source": "en", "target": "de"}
    server.post("/translate", json={**asked, "q": lines[0]})
    before = steps_done(server)
    for line in lines[:9]:
        server.post("/translate", json={**asked, "q": line})
    one_by_one = steps_done(server) - before
    server.post("/translate", json={**asked, "q": lines})
    assert steps_done(server) - before - one_by_one < one_by_one / 2


def test_three_documents_at_once_hold_nobody_up(server: LiveServer) -> None:
    text = "".join(f"the old dog {row} sees the man\n" for row in range(600)).encode()
    jobs = []
    for number in range(3):
        form = {"data": {"source": "en", "target": "de"}, "files": {"file": (f"{number}.txt", text)}}
        jobs.append(server.post("/v1/documents", **form).json())
    for row in range(10):
        answer = server.post("/translate", json={"q": f"the king {row}", "source": "en", "target": "de"})
        assert answer.status_code == 200
    states: list[str] = []
    deadline = time.monotonic() + 300
    while states != ["done"] * 3 and time.monotonic() < deadline:
        states = [server.get(f"/v1/documents/{job['id']}", params={"key": job["key"]}).json()["state"] for job in jobs]
        time.sleep(0.1)
    assert states == ["done"] * 3


def test_subtitles_keep_their_times(server: LiveServer) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,500\nthe dog sees\n\n2\n00:00:03,000 --> 00:00:04,000\nthe man\n"
    asked = {"source": "en", "target": "de"}
    url = server.post("/translate_file", data=asked, files={"file": ("a.srt", text)}).json()["translatedFileUrl"]
    found = server.client.get(url).text.splitlines()
    assert [line for line in found if "-->" in line] == [line for line in text.splitlines() if "-->" in line]
    assert found[2] != "the dog sees"


def test_a_text_comes_in_parts(server: LiveServer) -> None:
    text = "\n".join([f"{TEXT}."] * 40)
    whole = server.post("/v1/translate", json={"text": text, "source": "en", "target": "de"}).json()
    answer = server.post("/v1/translate/stream", json={"text": text, "source": "en", "target": "de"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    names = [lines[0].removeprefix("event: ") for lines in events]
    data = [json.loads(lines[1].removeprefix("data: ")) for lines in events]
    assert names == [*["part"] * (len(names) - 2), "details", "done"]
    assert len(names) > 3
    assert "".join(one["text"] for one in data[:-2]) == whole["text"]
    assert data[-2]["sentences"] == whole["sentences"]
    told = server.post("/v1/translate/stream", json={"text": "The man sleeps here.", "target": "de"}).text
    assert json.loads(told.split("\n")[1].removeprefix("data: "))["detected"]["language"] == "en"
    refused = server.post("/v1/translate/stream", json={"text": "x" * 5001, "source": "en", "target": "de"})
    assert refused.status_code == 400


def test_other_words_begin_alike_and_go_on_differently(server: LiveServer) -> None:
    asked = {"text": TEXT, "source": "en", "target": "de", "prefix": "der", "count": 4}
    texts = [one["text"] for one in server.post("/v1/words", json=asked).json()["translations"]]
    assert len(texts) > 1
    assert all(text.startswith("der") for text in texts)
    following = [text.removeprefix("der").split()[0] for text in texts if text != "der"]
    assert len(set(following)) == len(following)


def test_corrections_are_used_at_once_kept_and_exported(server: LiveServer, tmp_path: Path) -> None:
    asked = {"text": "the old dog barks", "source": "en", "target": "de"}
    before = server.post("/v1/translate", json=asked).json()["text"]
    kept = server.post("/v1/corrections", json={**asked, "translation": "der alte Hund bellt & <bleibt>"})
    assert kept.json()["kept"] is True
    after = server.post("/v1/translate", json=asked).json()
    assert after["text"] == "der alte Hund bellt & <bleibt>"
    assert [note["kind"] for note in after["notes"]] == ["from-memory"]
    assert server.post("/v1/translate", json={**asked, "memory": False}).json()["text"] == before
    near = server.post("/v1/translate", json={**asked, "text": "the old dogs barks", "warnings": True}).json()["memory"]
    assert near[0]["target"] == "der alte Hund bellt & <bleibt>"
    assert server.post("/suggest", data={"q": "cat", "s": "Katze", "source": "en", "target": "de"}).json() == {
        "success": True
    }
    assert (
        server.post("/translate", data={"q": "cat", "source": "en", "target": "de"}).json()["translatedText"] == "Katze"
    )
    exported = tmp_path / "corrections.tmx"
    exported.write_bytes(
        server.get("/v1/corrections", params={"source": "en", "target": "de", "format": "tmx"}).content
    )
    with exported.open("rb") as stream:
        pairs = [(entry.src, entry.tgt) for entry in tmx_entries(stream, "x", ("en", "de"))]
    assert ("the old dog barks", "der alte Hund bellt & <bleibt>") in pairs
    assert server.client.request("DELETE", server.url + "/v1/corrections", json=asked).json() == {"forgotten": True}
    assert server.post("/v1/translate", json=asked).json()["text"] == before


def test_a_document_goes_up_and_comes_down_translated(server: LiveServer, translator: SearchTranslator) -> None:
    data = f"# {TEXT}\n\n```\n{TEXT}\n```\n".encode()
    job = server.post(
        "/v1/documents", data={"source": "en", "target": "de"}, files={"file": ("../../a b.md", data)}
    ).json()
    deadline = time.monotonic() + 300
    state: dict[str, Any] = {"state": "queued"}
    while state["state"] in ("queued", "translating") and time.monotonic() < deadline:
        state = server.get(f"/v1/documents/{job['id']}", params={"key": job["key"]}).json()
        time.sleep(0.05)
    assert state["state"] == "done"
    assert len(state["in_doubt"]) == state["doubts"] == 1
    assert state["in_doubt"][0]["where"] == "line 1"
    assert state["in_doubt"][0]["reasons"]
    result = server.get(f"/v1/documents/{job['id']}/result", params={"key": job["key"]})
    assert result.content.decode() == f"# {translator.translate([TEXT])[0]}\n\n```\n{TEXT}\n```\n"
    assert (
        "a%20b.de.md" in result.headers["content-disposition"] or "a b.de.md" in result.headers["content-disposition"]
    )
    assert server.get(f"/v1/documents/{job['id']}", params={"key": "wrong"}).status_code == 404
    for path, key, status in (("", job["key"], 200), ("/result", job["key"], 200), ("", "wrong", 404)):
        headers = {"X-Document-Key": key}
        assert server.client.get(f"{server.url}/v1/documents/{job['id']}{path}", headers=headers).status_code == status
    removed = server.client.request("DELETE", f"{server.url}/v1/documents/{job['id']}?key={job['key']}")
    assert removed.json() == {"removed": True}
    assert server.get(f"/v1/documents/{job['id']}", params={"key": job["key"]}).status_code == 404


@pytest.mark.parametrize("form", ["hund = könig", "hund\tkönig\n", '{"hund": "könig"}'])
def test_a_document_keeps_to_a_glossary_in_any_form(server: LiveServer, form: str) -> None:
    asked = {"source": "en", "target": "de", "glossary": form}
    job = server.post("/v1/documents", data=asked, files={"file": ("a.txt", TEXT.encode())}).json()
    deadline, key = time.monotonic() + 300, {"key": job["key"]}
    while server.get(f"/v1/documents/{job['id']}", params=key).json()["state"] != "done":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "könig" in server.get(f"/v1/documents/{job['id']}/result", params=key).text
    for wrong in ("hund =", "{}}", "[1]"):
        refused = server.post("/v1/documents", data={**asked, "glossary": wrong}, files={"file": ("a.txt", b"a")})
        assert (refused.status_code, "glossary" in refused.json()["error"]) == (400, True)


def test_libretranslates_files(server: LiveServer) -> None:
    asked = {"source": "en", "target": "de"}
    answer = server.post("/translate_file", data=asked, files={"file": ("a.txt", TEXT.encode())})
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{server.url}/download_file/")
    assert server.client.get(url).status_code == 200
    assert server.client.get(url[:-5] + "x.txt").json() == {"error": "Invalid filename"}
    for name, data, error in (
        ("a.txt", b"", "empty file"), ("a.exe", b"MZ", "file format not supported"),
            ("a.docx", b"PK\x03\x04", "a.docx"),
        ("a.txt", b"\xff\xfe\xff", "a.txt"),
    ):  # fmt: skip
        refused = server.post("/translate_file", data=asked, files={"file": (name, data)})
        assert refused.status_code == 400
        assert error in refused.json()["error"]
    assert server.post("/translate_file", data=asked).json() == {"error": "Invalid request: missing file parameter"}


def test_deepls_texts_documents_and_glossaries(server: LiveServer) -> None:
    asked = {"text": [TEXT, "die frau"], "target_lang": "DE", "source_lang": "EN"}
    found = server.post("/v2/translate", json=asked).json()["translations"]
    assert [one["detected_source_language"] for one in found] == ["EN", "EN"]
    assert [one["billed_characters"] for one in found] == [len(TEXT), 8]
    assert server.post("/v2/translate", data={"text": TEXT, "target_lang": "EN-GB"}).status_code == 200
    for changed, message in (({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
                             ({"glossary_id": "0" * 36}, "Glossary not found")):  # fmt: skip
        assert server.post("/v2/translate", json={**asked, **changed}).json() == {"message": message}
    targets = {one["language"] for one in server.get("/v2/languages", params={"type": "target"}).json()}
    assert targets == {"DE", "EN-GB", "EN-US", "FR"}
    assert set(server.get("/v2/usage").json()) == {"character_count", "character_limit"}
    made = server.post("/v2/glossaries", json={
        "name": "g", "source_lang": "en", "target_lang": "de", "entries": "hund\tkönig\n", "entries_format": "tsv",
    }).json()  # fmt: skip
    id = made["glossary_id"]
    assert made["entry_count"] == 1
    held = server.post("/v2/translate", json={**asked, "glossary_id": id}).json()["translations"][0]["text"]
    assert "könig" in held
    assert server.get(f"/v2/glossaries/{id}/entries").text == "hund\tkönig"
    assert [one["glossary_id"] for one in server.get("/v2/glossaries").json()["glossaries"]] == [id]
    assert server.client.delete(f"{server.url}/v2/glossaries/{id}").status_code == 204
    assert server.get(f"/v2/glossaries/{id}").status_code == 404
    job = server.post(
        "/v2/document", data={"target_lang": "DE", "source_lang": "EN"}, files={"file": ("a.txt", TEXT)}
    ).json()
    assert len(job["document_id"]) == 32
    assert len(job["document_key"]) == 64
    key = {"document_key": job["document_key"]}
    deadline = time.monotonic() + 300
    while server.post(f"/v2/document/{job['document_id']}", json=key).json()["status"] != "done":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert server.post(f"/v2/document/{job['document_id']}/result", json=key).text


def test_every_route_is_described_and_every_description_has_a_route(server: LiveServer) -> None:
    spec = server.get("/spec").json()
    routes = {(route.path, method.lower()) for route in ROUTES for method in route.methods or () if method != "HEAD"}
    described = {(path, method) for path, methods in spec["paths"].items() for method in methods}
    assert described == routes - {
        (route.path, method.lower()) for route in pages.ROUTES for method in route.methods
    } - {(path, "get") for path in ("/docs", "/spec")}
    for path, method in described:
        url = server.url + path.replace("{id}", "x").replace("{name}", "x")
        body = {"json": {}} if method == "post" else {}
        answer = server.client.request(method, url, **body)  # type: ignore[arg-type]
        assert answer.status_code not in (405, 500), (path, method)
    schemas = spec["components"]["schemas"]
    for reference in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(spec)):
        assert reference in schemas
    asked = schemas["dragoman__serve__apis__v1_models__TranslateRequest"]["properties"]
    assert asked["beam_size"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 16}
    assert server.get("/docs").status_code == 200


def test_the_page_runs_only_what_comes_with_it(server: LiveServer) -> None:
    page = server.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for path in ("/page/app.js", "/page/htm-preact.js", "/page/style.css", "/favicon.ico"):
        found = server.get(path)
        assert found.status_code == 200
        for name in re.findall(r'from "\./([\w-]+\.js)"', found.text):
            assert server.get(f"/page/{name}").status_code == 200
    assert server.get("/page/../app.py").status_code == 404


def test_metrics_count_and_hold_no_text(server: LiveServer) -> None:
    server.post("/translate", json={"q": "geheimnis", "source": "en", "target": "de"})
    found = server.get("/metrics").text
    assert 'dragoman_http_request_duration_seconds_count{route="/translate",status="200"}' in found
    assert 'dragoman_tokens_total{pair="en de",side="source"}' in found
    assert "dragoman_model_info{" in found
    assert "geheimnis" not in found + "".join(server.said)


def test_answers_under_load_are_those_of_each_sentence_alone(server: LiveServer, translator: SearchTranslator) -> None:
    words = ["der", "das", "ein", "kleine", "rote", "alte", "hund", "könig", "mann", "frau", "sieht", "hört", "heute"]
    lines = [" ".join(words[(row * 7 + step) % 13] for step in range(1 + row % 11)) for row in range(60)]
    expected = {5: translator.translate(lines), 1: translator.translate(lines, beam_size=1)}

    def ask(request: int) -> None:
        beam = 1 if request % 2 else 5
        rows = [(request * 13 + step) % len(lines) for step in range(1 + request % 5)]
        asked = {
            "text": [lines[row] for row in rows],
            "source": "en",
            "target": "de",
            "beam_size": beam,
            "split": False,
        }
        answer = server.post("/v1/translate", json=asked)
        while answer.status_code == 429:
            time.sleep(0.2)
            answer = server.post("/v1/translate", json=asked)
        texts = [one["text"] for one in answer.json()["translations"]]
        assert texts == [expected[beam][row] for row in rows]

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(ask, range(150)))


def test_too_much_is_refused_at_once_with_a_time_to_come_back(tmp_path: Path, live_server: Any) -> None:
    with live_server(tmp_path, "--deadline", "4") as server:
        long = {"text": [f"{TEXT} {row}. " * 60 for row in range(40)], "source": "en", "target": "de"}
        statuses: list[tuple[int, str]] = []

        def ask() -> None:
            answer = httpx.post(server.url + "/v1/translate", json=long, timeout=300, trust_env=False)
            statuses.append((answer.status_code, answer.headers.get("retry-after", "")))

        for count in range(8, 200, 16):  # until there is more than this machine does in the time
            threads = [threading.Thread(target=ask) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if 429 in {status for status, _ in statuses}:
                break
        assert {status for status, _ in statuses} <= {200, 429, 504}, "".join(server.said)
        assert all(int(after) > 0 for status, after in statuses if status == 429)
        assert 429 in {status for status, _ in statuses}
        assert server.post("/translate", json={"q": TEXT, "source": "en", "target": "de"}).status_code == 200


def test_keys_limits_and_their_use(tmp_path: Path, live_server: Any) -> None:
    store = Store(tmp_path / "serve.sqlite")
    key, small = store.add_key("mine"), store.add_key("small", per_minute=3, per_month=40)
    asked = {"q": TEXT, "source": "en", "target": "de"}
    with live_server(tmp_path, "--key-required", "--metrics-key", "m", "--no-corrections", "--no-documents") as server:
        assert server.post("/translate", json=asked).status_code == 400
        assert server.post("/translate", json={**asked, "api_key": key}).status_code == 200
        for kind in ("Bearer", "DeepL-Auth-Key"):
            assert server.post("/translate", json=asked, headers={"authorization": f"{kind} {key}"}).status_code == 200
        statuses = [server.post("/translate", json={**asked, "api_key": small}).status_code for _ in range(4)]
        assert statuses == [200, 456, 456, 429]
        usage = server.get("/v2/usage", headers={"authorization": f"DeepL-Auth-Key {small}"})
        assert usage.status_code == 429
        page = server.get("/v1/limits").json()
        assert (page["key_required"], page["text_characters"]) == (True, 5000)
        usage = server.get("/v2/usage", headers={"authorization": f"DeepL-Auth-Key {key}"})
        assert usage.json()["character_count"] == 3 * len(TEXT)
        assert server.get("/frontend/settings").json()["keyRequired"] is True
        assert server.get("/metrics").status_code == 401
        assert server.get("/metrics", headers={"authorization": "Bearer m"}).status_code == 200
        refused = server.post("/suggest", json={**asked, "s": "x", "api_key": key})
        assert (refused.status_code, refused.json()["error"]) == (403, "Suggestions are disabled on this server.")
        refused = server.post("/translate_file", data={"source": "en", "target": "de", "api_key": key})
        assert refused.status_code == 403
    assert key not in (tmp_path / "serve.sqlite").read_bytes().decode("latin-1")


def test_a_client_that_goes_away_leaves_nothing_behind(server: LiveServer) -> None:
    body = json.dumps({"text": [f"{TEXT} {row}" for row in range(100)], "source": "en", "target": "de"}).encode()
    head = "POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    port = int(server.url.rpartition(":")[2])
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head.encode() + body)
            time.sleep(0.01)
    # All that was sent before is let in before this one is answered: what is left after it would stay.
    assert server.post("/translate", json={"q": TEXT, "source": "en", "target": "de"}).status_code == 200
    deadline = time.monotonic() + 300
    while not (is_empty := "dragoman_queue_tokens 0.0" in server.get("/metrics").text) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert is_empty


def test_sighup_loads_anew_and_sigterm_answers_what_was_accepted(
    tmp_path: Path, live_server: Any, run_of_languages: Any
) -> None:
    run = run_of_languages(tmp_path, "en", "de")
    with live_server(tmp_path, runs=(run,)) as server:
        asked = {"text": [f"{TEXT} {row}" for row in range(60)], "source": "en", "target": "de"}
        expected = server.post("/v1/translate", json=asked).json()
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 300
        while "".join(server.said).count("serving en to de") < 2 and time.monotonic() < deadline:
            assert server.post("/v1/translate", json=asked).json() == expected
        assert "".join(server.said).count("serving en to de") == 2
        for checkpoint in (run / "checkpoints").iterdir():  # a broken run changes nothing
            for file in checkpoint.glob("*.safetensors"):
                file.write_bytes(b"broken")
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 300
        while "could not be reloaded" not in "".join(server.said) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert "the version before stays in service" in "".join(server.said)
        with ThreadPoolExecutor(4) as threads:
            answers = [threads.submit(server.post, "/v1/translate", json=asked) for _ in range(4)]
            time.sleep(0.1)
            assert server.stop() == 0
            found = [answer.result() for answer in answers]
        assert {answer.status_code for answer in found} <= {200, 429}
        assert [answer.json() for answer in found if answer.status_code == 200] == [expected] * sum(
            answer.status_code == 200 for answer in found
        )
        assert 200 in {answer.status_code for answer in found}  # whichever came first


def test_nothing_to_serve_ends_with_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "serve", str(tmp_path / "none"), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert str(tmp_path / "none") in done.stderr


def test_another_engine_translates_and_leaves_what_it_cannot_to_pytorch(
    tmp_path: Path, live_server: Any, run_of_languages: Any, translator: SearchTranslator
) -> None:
    run = run_of_languages(tmp_path, "en", "de")
    pair = {"source": "en", "target": "de", "text": TEXT}
    with live_server(tmp_path, "--engine", "ctranslate2-fast", runs=(run,)) as server:
        found = server.post("/v1/translate", json={**pair, "alternatives": 2, "alignments": True}).json()
        assert found["text"].strip()
        assert len(found["alternatives"]) == 2
        [scored] = score(translator, [(TEXT, found["text"])])
        # The probability of what is banned goes to the others.
        assert scored.log_prob - 1e-3 < found["log_prob"] < scored.log_prob + 0.5
        term = server.post("/v1/translate", json={**pair, "glossary": {"hund": "frau"}})
        assert "frau" in term.json()["text"]
        begun = server.post("/v1/translate", json={**pair, "prefix": "die"})
        assert begun.json()["text"].startswith("die")
        many = server.post("/v1/translate", json={**pair, "text": [TEXT] * 40, "beam_size": 1}).json()
        assert len(many["translations"]) == 40
        assert server.stop() == 0
    assert (run / "engines").is_dir()
