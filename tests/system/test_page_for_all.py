"""The page for those without JavaScript, without a network, without English; and the routes, tried in the browser."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.browsers import BROWSERS
from tests.system.test_page import FORMS, browser  # noqa: F401 (a fixture)
from tests.system.test_page_states import wait_until

from dragoman.serve.pages import FOLDER

playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytestmark = pytest.mark.skipif(not BROWSERS, reason="the page's tests need Chromium (apt-get install chromium)")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
TEXT = "the dog sees the man"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, live_server: Any, run_of_languages: Any) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("for_all")
    with live_server(folder, runs=(FIXTURE, run_of_languages(folder, "de", "en"))) as running:
        running.store = folder / "serve.sqlite"
        yield running


@pytest.fixture
def new_page(browser: Any, server: Any) -> Iterator[Callable[..., Any]]:  # noqa: F811
    """`new_page(address, ...)`: a page of a browser of its own, with what its console complains of."""
    contexts: list[Any] = []

    def opened(address: str, **options: Any) -> Any:
        context = browser.new_context(**{**FORMS["light"], **options}, reduced_motion="reduce")
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)
        page.goto(f"{server.url}{address}")
        return page

    yield opened
    for context in contexts:
        context.close()


def test_without_javascript_a_text_is_translated(new_page: Any, server: Any) -> None:
    page = new_page("/", java_script_enabled=False)
    page.fill("textarea", TEXT)
    page.select_option("[name=source]", "en")
    page.select_option("[name=target]", "de")
    page.click("button")
    expected = server.post("/v1/translate", json={"text": TEXT, "source": "en", "target": "de"}).json()["text"]
    assert page.inner_text(".output") == expected
    assert page.input_value("textarea") == TEXT
    page.click("text=API")
    page.click("summary:has-text('POST /v1/translate:')")
    assert "Ich möchte ein Bier." in page.inner_text("details[open]")
    assert page.problems == []


@pytest.mark.parametrize("address", ["/plain?lang=ar", "/docs?lang=de", "/docs?lang=ar"])
@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_pages_without_javascript_are_in_nobodys_way(new_page: Any, address: str, color_scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="accessibility needs axe-playwright-python"
    )
    page = new_page(address, viewport={"width": 320, "height": 700}, color_scheme=color_scheme)
    if "docs" in address:
        page.click("summary:has-text('POST /v1/corrections:')")
        page.wait_for_selector(f"text={'Ausprobieren' if 'de' in address else 'جرّبه'}")
        assert "For your own texts" not in page.inner_text("main")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    red, green, blue = map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert (red + green + blue < 384) == (color_scheme == "dark")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.click("a[hreflang=fr]")
    assert page.get_attribute("html", "lang") == "fr"
    assert page.problems == []


def test_a_route_that_is_opened_before_the_script_is_there_can_be_tried(new_page: Any, server: Any) -> None:
    page = new_page("/missing")
    page.problems.clear()
    held: list[Any] = []
    page.route("**/spec", lambda route: held.append(route))
    page.goto(f"{server.url}/docs", wait_until="commit")
    page.click("summary:has-text('POST /v1/translate:')")
    assert page.query_selector("form.try") is None
    for _ in range(300):  # the script may come long after the page, and asks for it then
        if held:
            break
        page.wait_for_timeout(100)
    held.pop().continue_()
    page.wait_for_selector("details[data-path='/v1/translate'] form.try")
    assert page.problems == []


def test_a_route_is_tried_in_the_docs_and_its_curl_answers_the_same(new_page: Any) -> None:
    page = new_page("/docs")
    page.click("summary:has-text('POST /v1/translate:')")
    form = "details[data-path='/v1/translate'] form"
    page.fill(f"{form} label:has-text('text') input >> nth=0", "the dog's man")
    page.fill(f"{form} label:has-text('source') input", "en")
    page.fill(f"{form} label:has-text('target') input", "de")
    page.fill(f"{form} label:has-text('glossary') input", '{"dog": "könig"}')
    page.select_option(f"{form} label:has-text('warnings') select", "true")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('200 OK')")
    shown = page.inner_text(f"{form} .answer")
    assert '"text": "' in shown
    assert "könig" in shown
    curl = page.inner_text(f"{form} .curl")
    done = subprocess.run(shlex.split(curl.replace("\\\n", "")), capture_output=True, check=True, timeout=300)
    assert page.evaluate("([a, b]) => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b))",
                         [done.stdout.decode(), shown])  # fmt: skip
    page.fill(f"{form} label:has-text('target') input", "zz")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('400')")
    assert "is not served" in page.inner_text(f"{form} .answer")
    assert [one for one in page.problems if "status of 400" not in one] == []


def test_a_file_and_a_stream_are_tried_in_the_docs(new_page: Any) -> None:
    page = new_page("/docs")
    page.click("summary:has-text('POST /v1/documents:')")
    form = "details[data-path='/v1/documents'] form"
    page.set_input_files(f"{form} input[type=file]", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.fill(f"{form} label:has-text('source') input", "en")
    page.fill(f"{form} label:has-text('target') input", "de")
    page.fill(f"{form} label:has-text('glossary') input", "")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('202')")
    page.click("summary:has-text('GET /v1/translate/stream')")
    form = "details[data-path='/v1/translate/stream'][data-method=get] form"
    page.fill(f"{form} label:has-text('text') input >> nth=0", TEXT)
    page.fill(f"{form} label:has-text('source') input", "en")
    page.fill(f"{form} label:has-text('target') input", "de")
    page.click(f"{form} >> text=Send")
    page.wait_for_selector(f"{form} :text('event: done')")
    assert page.problems == []


def test_the_page_opens_without_a_network_and_an_upgrade_is_seen_at_once(new_page: Any, server: Any) -> None:
    page = new_page("/")
    context = page.context
    page.wait_for_selector("#target option", state="attached")
    page.evaluate("navigator.serviceWorker.ready")
    wait_until(page, "navigator.serviceWorker.controller !== null")
    kept = page.evaluate(
        "(async () => (await Promise.all((await caches.keys()).map(async (name) =>"
        " (await (await caches.open(name)).keys()).map((one) => one.url)))).flat())()"
    )
    assert f"{server.url}/" in kept
    assert [one for one in kept if re.search("/v1/|/v2/|translate", one)] == []
    page.evaluate("caches.open(`dragoman ${location.origin}/ of yesterday`)")
    context.set_offline(True)
    page.reload()
    page.wait_for_selector("h1:has-text('Dragoman')")
    assert page.evaluate("fetch('v1/languages').then(() => 'answered', () => 'refused')") == "refused"
    context.set_offline(False)
    new = "<!doctype html><title>new</title><h1>tomorrow's page</h1>"
    context.route(f"{server.url}/", lambda route: route.fulfill(body=new, content_type="text/html"))
    page.reload()
    assert page.inner_text("h1") == "tomorrow's page"  # though an older one is kept


# -- languages of the page -----------------------------------------------------------------------------------------

UNMARKED = """() => {
  const own = "pre, textarea, #output, .backdrop, option, .history, .detected, .jobs li > strong, q, noscript"
    + ", [dir=auto], body [data-script], [translate=no]";
  const others = /⟦[^⟧]*⟧|Dragoman|a\\.txt|English → German/gu; // the brand, a person's file, names of languages
  const letters = (text) => /\\p{L}/u.test(text.replace(others, ""));
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (letters(data) && !parentElement.closest(own)) found.push(data);
  }
  for (const element of document.body.querySelectorAll("*")) {
    for (const name of ["aria-label", "title", "placeholder", "alt"]) {
      const value = element.getAttribute(name) ?? "";
      if (letters(value) && value !== "Bier = ale") found.push(`${name}: ${value}`);
    }
  }
  return found;
}"""
PANELS = (".panes + .row button", "header button:has-text('API')", "nav button >> nth=-1")


def with_translation(page: Any, text: str = TEXT) -> Any:
    page.wait_for_selector("#target option", state="attached")
    page.fill("#text", text)
    page.wait_for_selector('#output[aria-busy="false"] .word')
    return page


def panels_of(page: Any) -> Iterator[str]:
    """Everything on the page, opened one after another."""
    for number in range(page.locator(PANELS[0]).count()):
        button = page.locator(PANELS[0]).nth(number)
        button.click()
        yield button.inner_text()
    for selector in PANELS[1:]:
        page.click(selector)
        yield selector


def test_no_text_of_the_page_stands_outside_of_the_messages(new_page: Any, server: Any) -> None:
    english = json.loads((FOLDER / "messages" / "en.json").read_text("utf-8"))
    marked = json.dumps({key: f"⟦{text}⟧" for key, text in english.items()})
    page = new_page("/missing", service_workers="block")
    page.route("**/messages/en.json", lambda route: route.fulfill(body=marked, content_type="application/json"))
    page.problems.clear()
    page.goto(f"{server.url}/#en/de/")
    with_translation(page, "the dog sees 17 $x$ men\nand a house")
    assert page.title() == "⟦Dragoman: translate⟧"
    assert page.evaluate(UNMARKED) == []
    page.click(".word >> nth=1")
    page.wait_for_selector(".popover button strong")
    assert [one for one in page.evaluate(UNMARKED) if one not in page.inner_text(".popover")] == []
    page.keyboard.press("Escape")
    for where in panels_of(page):
        assert (where, page.evaluate(UNMARKED)) == (where, [])
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"the dog\n\nthe man"})
    page.wait_for_selector(".jobs button.primary")
    assert page.evaluate(UNMARKED) == []
    page.click("nav button >> nth=0")
    page.fill("#text", "x" * 5003)
    page.wait_for_selector("#over")
    assert page.evaluate(UNMARKED) == []
    page.context.set_offline(True)
    page.wait_for_selector("#offline")
    assert page.evaluate(UNMARKED) == []
    assert page.problems == []


def test_the_page_speaks_the_language_of_its_reader(new_page: Any) -> None:
    page = new_page("/", locale="de-AT")
    page.wait_for_selector("text=Dokumente")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == ["de", "ltr"]
    assert page.inner_text("#target option >> nth=0") == "Deutsch"
    assert page.inner_text(".counter") == "0 / 5.000"
    assert new_page("/", locale="pt-BR").inner_text("nav button >> nth=0") == "Text"
    with_translation(page)
    page.select_option("#locale", "ar")
    page.wait_for_selector("nav button:has-text('نص')")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == ["ar", "rtl"]
    assert page.input_value("#text") == TEXT
    text, output = (page.locator(one).bounding_box() for one in ("#text", "#output"))
    assert text["x"] > output["x"]  # what is read first stands on the right
    page.reload()
    page.wait_for_selector("nav button:has-text('نص')")
    assert page.problems == []


@pytest.mark.parametrize(("locale", "form"), [("ar", "light"), ("ar", "dark"), ("ar", "phone"), ("de", "phone")])
def test_nothing_is_in_the_way_in_other_languages(new_page: Any, locale: str, form: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="accessibility needs axe-playwright-python"
    )
    page = with_translation(new_page("/#en/de/", locale=locale, **FORMS[form]))
    for where in ("text", *panels_of(page)):
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{where}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where


# -- glossaries ----------------------------------------------------------------------------------------------------


def glossary_of(page: Any, *lines: str) -> None:
    """Write a glossary, and wait until the server has read it."""
    with page.expect_response("**/v1/glossary"):
        page.fill("#glossary", "\n".join(lines))


def translated_with(page: Any, *words: str) -> None:
    """Wait for a translation that has these words."""
    for word in words:
        page.wait_for_selector(f"#output[aria-busy=false] .word:text-is('{word}')")


def test_several_glossaries_are_named_and_chosen(new_page: Any) -> None:
    page = with_translation(new_page("/#en/de/"))
    page.click("text=Glossary")
    glossary_of(page, "dog = könig")
    translated_with(page, "könig")
    page.click("text=New glossary")
    page.fill("#glossary-name", "Zweites")
    glossary_of(page, "man = maus")
    translated_with(page, "könig", "maus")
    page.wait_for_selector("text=Glossary (2)")
    page.uncheck(".glossaries li:has-text('My terms') input")
    page.wait_for_selector("text=Glossary (1)")
    page.reload()
    translated_with(page, "maus")
    assert "könig" not in page.inner_text("#output")
    page.click("text=Glossary")
    page.click(".glossaries li:has-text('Zweites') >> text=Delete")
    assert page.locator(".glossaries li").count() == 1
    assert page.problems == []


def test_what_is_no_term_is_told_at_its_line_and_the_others_are_used(new_page: Any) -> None:
    page = with_translation(new_page("/#en/de/"))
    page.click("text=Glossary")
    glossary_of(page, "dog = könig", "man =", "dog = hund", "# a remark")
    page.wait_for_selector("#faults li >> nth=1")
    assert page.locator("#faults li").all_inner_texts() == [
        "Line 2 A line is a term, =, and its translation.",
        "Line 3 This term has another translation further up: choose one.",
    ]
    assert page.locator(".lines mark").all_inner_texts() == ["man =", "dog = hund"]
    translated_with(page, "könig")
    page.click("#faults >> text=Line 3")
    selected = "(field) => field.value.slice(field.selectionStart, field.selectionEnd)"
    assert page.eval_on_selector("#glossary:focus", selected) == "dog = hund"
    many = "\n".join(f"word{number} = wort{number}" for number in range(1200))
    put = "(field, text) => { field.value = text; field.dispatchEvent(new Event('input', { bubbles: true })); }"
    page.eval_on_selector("#glossary", put, many)  # as pasted: Chromium takes long to type so much
    page.wait_for_selector("text=1,200 terms are in use: only the first 1,000 are sent")
    assert page.problems == []


@pytest.mark.parametrize("kind", ["CSV", "TSV", "TBX"])
def test_a_glossary_is_saved_and_read_again(new_page: Any, kind: str, tmp_path: Path) -> None:
    page = with_translation(new_page("/#en/de/"))
    page.click("text=Glossary")
    glossary_of(page, 'dog = kö "nig", <b>', "red fox\tfuchs & hase")
    page.wait_for_selector("text=Glossary (2)")
    with page.expect_download() as download:
        page.click(f"text={kind}")
    path = tmp_path / f"terms.{kind.lower()}"
    download.value.save_as(path)
    assert download.value.suggested_filename == f"My terms.{kind.lower()}"
    page.click("text=Delete")
    page.set_input_files("#glossary-file", str(path))
    page.wait_for_selector("text=2 terms were read.")
    assert page.input_value("#glossary").split("\n") == ['dog\tkö "nig", <b>', "red fox\tfuchs & hase"]
    page.set_input_files("#glossary-file", {"name": "a.tbx", "mimeType": "text/xml", "buffer": b"<martif><text>"})
    page.wait_for_selector(".glossaries p.error")
    assert [one for one in page.problems if "status of 400" not in one] == []


# -- keys, calls, voices -------------------------------------------------------------------------------------------


def test_a_key_is_checked_used_and_forgotten(new_page: Any, server: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "keys", "add", "pub", "--per-minute", "600", "--per-month", "1000"]
    done = subprocess.run([*command, "--store", str(server.store)], capture_output=True, text=True, check=True)
    key = done.stdout.split()[-1]
    page = new_page("/#en/de/")
    page.click("header >> text=API key")
    page.fill("#key", "wrong")
    page.click("text=Use and check")
    page.wait_for_selector("text=The server does not know this key.")
    page.fill("#key", key)
    page.click("text=Use and check")
    page.wait_for_selector(
        "text=The key “pub” is valid. It allows 600 requests a minute. 1,000 of 1,000 characters are left"
    )
    with_translation(page)
    page.reload()
    page.wait_for_selector("#target option", state="attached")
    page.click("header >> text=API key")
    page.wait_for_selector(f"text={1000 - len(TEXT)} of 1,000 characters are left")
    page.click("text=Forget")
    page.wait_for_selector("text=The key is forgotten.")
    assert key not in page.evaluate("JSON.stringify(localStorage)")
    assert [one for one in page.problems if "status of 403" not in one] == []


@pytest.mark.parametrize("api", ["Dragoman", "LibreTranslate", "DeepL"])
def test_the_calls_on_the_page_answer_what_the_page_shows(new_page: Any, api: str) -> None:
    text = 'the dog\'s man "sees" $x\\n und 😀'
    page = new_page("/#en/de/", permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_selector("#target option", state="attached")
    if api != "LibreTranslate":
        page.click("text=Glossary")
        glossary_of(page, "man = mäus'chen")
    with_translation(page, text)
    page.wait_for_timeout(1000)
    page.wait_for_selector('#output[aria-busy="false"] .word')
    shown = page.inner_text("#output")
    page.click("text=API call")
    page.click(f".panel >> text={api}")
    ways = {"curl": ["bash", "-c"], "Python": [sys.executable, "-c"]}
    if node := shutil.which("node"):
        ways["JavaScript"] = [node, "--input-type=module", "-e"]
    for language, command in ways.items():
        page.click(f".panel button:text-is('{language}')")
        page.click(".panel >> text=Copy")
        code = page.evaluate("navigator.clipboard.readText()")
        assert code == page.inner_text("#api-call")
        done = subprocess.run([*command, code], capture_output=True, text=True, timeout=300, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        said = done.stdout.strip()
        if language == "curl":
            found = json.loads(said)
            said = found.get("text") or found.get("translatedText") or found["translations"][0]["text"]
        assert said == shown, language
    page.evaluate("localStorage.setItem('dragoman.key', '\"a secret\"')")
    page.reload()
    page.click("text=API call")
    page.wait_for_selector("text=Write your key in the place of KEY.")
    assert "a secret" not in page.content()


VOICES = """
window.said = [];
const voices = [{ lang: "en-US", name: "E", default: true }, { lang: "de_DE", name: "D", localService: true }];
Object.defineProperty(window, "SpeechSynthesisUtterance", { value: class { constructor(text) { this.text = text; } } });
Object.defineProperty(window, "speechSynthesis", { value: {
  getVoices: () => voices, addEventListener() {}, removeEventListener() {},
  speak(one) { window.said.push([one.text.trim(), one.voice.name, one.lang]); },
  cancel() { window.said.push("stopped"); },
} });
"""


def test_a_translation_is_read_out_with_a_voice_of_its_language(new_page: Any, server: Any) -> None:
    page = with_translation(new_page("/#en/de/"))
    button = "[aria-label='Read the translation out']"
    assert page.get_attribute(button, "aria-disabled") == "true"
    assert page.get_attribute(button, "title") == "This browser has no voice for German."
    page.add_init_script(VOICES)
    page.reload()
    page.wait_for_selector('#output[aria-busy="false"] .word')
    page.click(button)
    assert page.evaluate("said.at(-1)") == [page.inner_text("#output"), "D", "de_DE"]
    assert page.get_attribute(button, "aria-pressed") == "true"
    page.click(button)
    assert page.evaluate("said.at(-1)") == "stopped"
    page.click("[aria-label='Read the text out']")
    assert page.evaluate("said.at(-1)") == [TEXT, "E", "en-US"]
    page.fill("#text", "the king")
    page.wait_for_selector("[aria-label='Read the text out'][aria-pressed=false]")
    assert page.evaluate("said.at(-1)") == "stopped"
    assert page.problems == []


@pytest.mark.parametrize(("locale", "words"), [("en", "Not ready: loading"), ("de", "Der Server macht sich bereit")])
def test_an_error_of_the_server_is_told_in_the_language_of_its_reader(new_page: Any, locale: str, words: str) -> None:
    page = new_page("/#en/de/", locale=locale)
    page.wait_for_selector("#target option", state="attached")
    body = json.dumps({"error": "Not ready: loading", "code": "service-unavailable"})
    page.route("**/translate/stream", lambda route: route.fulfill(status=503, headers={"Retry-After": "9"}, body=body))
    page.fill("#text", TEXT)
    page.wait_for_selector(f".retry:has-text('{words}')")
