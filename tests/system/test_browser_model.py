"""The model for browsers in a browser: served with the npm package as a page has both, and translating as we do.

The package is in the folder that DRAGOMAN_BERGAMOT names: `tests/clients/run.py` sees to it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.system.browsers import BROWSERS, launch
from tests.system.test_export_argos import RNG, taught, tiny
from tests.system.test_export_marian import MARIANS, with_bergamot

from dragoman.export import bergamot

playwright = pytest.importorskip("playwright.sync_api", reason="a browser is driven by playwright")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif("chromium" not in BROWSERS, reason="no Chromium (apt-get install chromium)"),
    with_bergamot,
]
WORDS = ["ab", "bad", "café", "d", "eß", "Ångström", "fi"]
LINES = [" ".join(RNG.choices(WORDS, k=1 + number % 9)) for number in range(100)]
PAGE = """<!doctype html><meta charset=utf-8><script type=module>
import {BatchTranslator} from './package/translator.js';
const translator = new BatchTranslator({registryUrl: 'registry.json', batchSize: 1});
window.translated = lines => Promise.all(lines.map(text =>
  translator.translate({from: 'en', to: 'de', text, html: false}).then(done => done.target.text)));
</script>"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on this machine."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    handler.func.log_message = lambda *_: None  # type: ignore[method-assign]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def in_a_browser(folder: Path, lines: list[str]) -> list[str]:
    """The translations of lines by the package in Chromium, which may ask nobody but the folder's server."""
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    (folder / "package").symlink_to(Path(os.environ[bergamot.PACKAGE]).resolve())
    with served(folder) as address, playwright.sync_playwright() as started:
        running = launch(started, "chromium")
        page = running.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.route("**/*", lambda route: route.continue_() if route.request.url.startswith(address) else route.abort())
        page.goto(f"{address}/index.html")
        page.wait_for_function("() => Boolean(window.translated)")
        found: list[str] = page.evaluate("lines => window.translated(lines)", lines)
        running.close()
    assert problems == []
    return found


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_a_browser_translates_as_we_do(tmp_path: Path, quantize: str | None) -> None:
    """In float32 all lines are equal; in int8 they are what node computes, and most are equal (70 of 100)."""
    translator = taught(tiny({**MARIANS, "d_model": 64}))
    translator = translator.with_decoding(**vars(bergamot.nearest(translator.decoding)))
    bergamot.write(translator, tmp_path, quantize)
    found = in_a_browser(tmp_path, LINES)
    ours = [best.text for [best, *_] in translator.n_best(LINES)]
    assert found == bergamot.translations(tmp_path, LINES, widths=range(len(LINES)))  # each alone: int8 sees a batch
    if quantize is None:
        assert found == ours
    assert sum(map(str.__eq__, found, ours)) > 50
    assert len(set(ours)) > 50
