"""A page of another site, in a real browser, against the server of a user's own machine."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.system.browsers import CHROMIUM

playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page's tests need Chromium (apt-get install chromium)")

ATTACK = """async (server) => {
  const correction = JSON.stringify({ text: "hund", translation: "evil", source: "en", target: "de" });
  const form = new URLSearchParams({ q: "hund", s: "evil", source: "en", target: "de" });
  const file = new FormData();
  file.append("file", new Blob(["hund"]), "a.txt");
  file.append("target", "de");
  const json = { "content-type": "application/json" };
  const sent = [
    ["/v1/corrections", { method: "POST", body: correction, mode: "no-cors" }],
    ["/v1/corrections", { method: "POST", body: new Blob([correction]), mode: "no-cors" }],
    ["/v1/corrections", { method: "POST", body: correction, headers: json }],
    ["/v1/corrections/1", { method: "DELETE" }],
    ["/suggest", { method: "POST", body: form, mode: "no-cors" }],
    ["/v1/documents", { method: "POST", body: file, mode: "no-cors" }],
    ["/v1/corrections", {}],
    ["/v3/glossaries", {}],
  ];
  const read = [];
  for (const [path, options] of sent) {
    try {
      const answer = await fetch(server + path, options);
      if (answer.ok) read.push([path, await answer.text()]);
    } catch {}
  }
  const kind = { method: "POST", headers: json, body: JSON.stringify({ text: "hund", source: "en", target: "de" }) };
  const answer = await fetch(server + "/v1/translate", kind);
  return { read, status: answer.status, text: (await answer.json()).text };
}"""


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title>")

    def log_message(self, *given: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[int]:
    """The port of a web server of somebody else."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_foreign_page_translates_and_does_nothing_else(tmp_path: Path, live_server: Any, site: int) -> None:
    with live_server(tmp_path) as server, playwright.sync_playwright() as started:
        name = "--host-resolver-rules=MAP evil.example 127.0.0.1"
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", name])
        before = server.post("/v1/translate", json={"text": "hund", "source": "en", "target": "de"}).json()["text"]
        port = server.url.rpartition(":")[2]
        made = {"text": "katze", "translation": "cat", "source": "en", "target": "de"}
        assert server.post("/v1/corrections", json=made).json()["id"] == 1
        for address, is_foreign in (
            (f"http://evil.example:{site}/", True), (f"http://localhost:{site}/", True),
            (f"http://evil.example:{port}/docs", True),  # a name of theirs that leads here
            (f"http://localhost:{port}/docs", False),
        ):  # fmt: skip
            page = browser.new_page()
            page.goto(address)
            own = "evil.example" if f"evil.example:{port}" in address else "localhost"
            found = page.evaluate(ATTACK, f"http://{own}:{port}")
            page.close()
            corrections = server.get("/v1/corrections").json()["corrections"]
            texts = [one["text"] for one in corrections]
            if is_foreign:
                assert found == {"read": [], "status": 200, "text": before}, address
                assert texts == ["katze"], address
            else:  # the same script in the server's own page
                assert texts == ["hund"], found
                assert {path for path, _ in found["read"]} >= {"/suggest", "/v1/documents", "/v3/glossaries"}
        browser.close()
