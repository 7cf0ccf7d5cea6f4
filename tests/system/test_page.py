"""The page in the real browsers that are here (by Playwright): what people do with it, with a mouse and without."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.browsers import BROWSERS, launch

from dragoman.corpora import embedded
from dragoman.experiments.calibrate import calibrate

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytestmark = pytest.mark.skipif(not BROWSERS, reason="the page's tests need Chromium (apt-get install chromium)")

FORMS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 800}, "color_scheme": "light", "has_touch": True},
}
XSS = [
    pattern.format(js)
    for js in ("window.hacked=1", "document.title='hacked'")
    for pattern in (
        "<script>{}</script>", "<img src=x onerror={}>", "<svg onload={}>", "<svg/onload={}>", "<body onload={}>",
        "<iframe src=javascript:{}>", "<a href=javascript:{}>x</a>", "<details open ontoggle={}>", "javascript:{}",
        "<input autofocus onfocus={}>", "<video><source onerror={}>", "<math href=javascript:{}>x</math>",
        "'-{}-'", '"><script>{}</script>', "</textarea><script>{}</script>", "</title><script>{}</script>",
        "<style>@import'javascript:{}'</style>", "<object data=javascript:{}>", "<embed src=javascript:{}>",
        "${{{}}}", "{{{{{}}}}}", "<template><script>{}</script></template>", "<noscript><script>{}</script></noscript>",
        "<marquee onstart={}>", "<form action=javascript:{}><button>x</form>",
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, live_server: Any, run_of_languages: Any) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("page")
    run = shutil.copytree(FIXTURE, folder / "calibrated")
    pairs = list(embedded.sentences("de-en", "test", 60, 1))
    for name, lines in (("src", [en for _, en in pairs]), ("ref", [de for de, _ in pairs])):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    calibrate(run, folder / "src", folder / "ref", device="cpu")
    with live_server(folder, runs=(run, run_of_languages(folder, "de", "en"))) as running:
        yield running


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        running = launch(started, request.param)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, server: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(fragment, form, before)`: the page, which asks nobody but the server, and has no error. `before`: what
    is done to it before it opens."""
    contexts: list[Any] = []
    problems: list[str] = []

    def is_bad(said: Any) -> bool:
        return said.type == "error" and not said.text.startswith("Failed to load resource")  # a test's own doing

    def opened(fragment: str = "#en/de/", form: str = "light", before: Callable[[Any], None] | None = None) -> Any:
        context = browser.new_context(**FORMS[form], reduced_motion="reduce")
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if is_bad(said) else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((server.url, "blob:", "data:")) else problems.append(asked.url),
        )
        if before is not None:
            before(page)
        page.goto(f"{server.url}/{fragment}")
        page.wait_for_selector("#target option", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def translated(page: Any, text: str) -> str:
    """Type a text, and wait for its translation with all that belongs to it. (Never is another text's shown as it.)"""
    page.fill("#text", text)
    page.wait_for_selector('#output[aria-busy="false"] .word')
    return str(page.inner_text("#output"))


def test_typing_translates_and_a_request_before_is_given_up(open_page: Any, server: Any) -> None:
    page = open_page()
    page.type("#text", "the dog sees the man", delay=30)
    page.wait_for_selector('#output[aria-busy="false"] .word')
    said = page.inner_text("#output")
    expected = server.post(
        "/v1/translate", json={"text": "the dog sees the man", "source": "en", "target": "de"}
    ).json()
    assert said == expected["text"]
    assert page.inner_text(".counter") == "20 / 5,000"
    page.wait_for_url("**/#en/de/the%20dog%20sees%20the%20man")
    page.fill("#text", "x" * 5001)
    assert "too long" in page.inner_text(".counter")
    page.click("text=Clear")
    assert page.input_value("#text") == ""


def test_words_are_linked_and_another_word_rewrites_the_rest(open_page: Any) -> None:
    page = open_page()
    before = translated(page, "the dog sees the man")
    page.hover(".word >> nth=0")
    page.wait_for_selector(".backdrop mark", state="attached")
    page.click(".word >> nth=1")
    page.wait_for_selector(".popover button strong")
    word = page.inner_text(".popover button strong >> nth=0")
    page.click(".popover button >> nth=0")
    after = page.inner_text("#output")
    assert after != before
    assert after.split()[0] == before.split()[0]
    assert after.split()[1] == word


def test_doubtful_words_are_underlined_and_a_line_says_why(open_page: Any, server: Any) -> None:
    page = open_page()
    text = "qwertz asdf the dog yxcv"
    translated(page, text)
    asked = {"text": text, "source": "en", "target": "de", "confidence": True}
    found = server.post("/v1/translate", json=asked).json()
    values = {found["text"][begin:end]: value for begin, end, value in found["confidence"]}
    assert min(values.values()) < 0.5
    page.wait_for_selector("#output .doubt-0, #output .doubt-1")
    for word in page.query_selector_all("#output .word"):
        doubtful = "doubt" in word.get_attribute("class")
        assert doubtful == (values[word.inner_text()] < 0.5)
        assert word.get_attribute("title") == f"confidence {round(100 * values[word.inner_text()])} %"
    assert "stand in a human's translation" in page.text_content(".remarks")


def test_swapping_and_detection(open_page: Any) -> None:
    page = open_page("#auto/de/")
    translated(page, "The man sleeps on the street today.")
    assert page.inner_text(".detected").startswith("English")
    said = page.inner_text("#output")
    page.click('[aria-label="Swap languages"]')
    assert page.input_value("#source") == "de"
    assert page.input_value("#target") == "en"
    assert page.input_value("#text") == said


def test_a_glossary_is_kept_to_and_kept(open_page: Any) -> None:
    page = open_page()
    page.click("text=Glossary")
    page.fill("#glossary", "dog = könig")
    said = translated(page, "the dog sees the man")
    assert "könig" in said
    page.reload()
    page.wait_for_selector("text=Glossary (1)")


def test_a_correction_is_used_at_the_next_translation(open_page: Any) -> None:
    page = open_page()
    translated(page, "a small mouse here")
    page.click("text=Correct")
    page.fill("#mending", "hier eine kleine Maus")
    page.click("text=Keep")
    page.wait_for_selector("text=Kept:")
    fresh = open_page()
    assert translated(fresh, "a small mouse here") == "hier eine kleine Maus"
    assert "as a person has corrected it" in fresh.text_content(".remarks")


def test_a_document_goes_up_and_comes_down(open_page: Any, tmp_path: Path) -> None:
    page = open_page()
    page.click("text=Documents")
    source = tmp_path / "letter.txt"
    source.write_text("the dog sees the man\n\nthe king\n", encoding="utf-8")
    page.set_input_files("#file", str(source))
    page.wait_for_selector("text=2 texts translated")
    with page.expect_download() as download:
        page.click("text=Download")
    assert download.value.suggested_filename == "letter.de.txt"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.count("\n") == 3
    assert text.strip()
    page.check("text=Translations below their sources")
    page.set_input_files("#file", str(source))
    page.wait_for_selector(".jobs li:nth-child(2) button.primary")
    with page.expect_download() as download:
        page.wait_for_selector(".jobs li:first-child button.primary")
        page.click(".jobs li:first-child button.primary")
    assert download.value.suggested_filename == "letter.en-de.txt"
    assert "the dog sees the man" in Path(download.value.path()).read_text(encoding="utf-8")
    broken = tmp_path / "broken.docx"
    broken.write_bytes(b"PK\x03\x04 nothing")
    page.set_input_files("#file", str(broken))
    page.wait_for_selector("li:has-text('broken.docx') .error")


def test_the_history_stays_in_this_browser(open_page: Any) -> None:
    page = open_page()
    translated(page, "the old king")
    page.click("text=History")
    assert "the old king" in page.inner_text(".history")
    assert "the old king" not in open_page().evaluate("JSON.stringify(localStorage)")
    page.click("text=Delete all")
    assert page.inner_text(".panel").endswith("Nothing yet.")


def test_the_keyboard_alone_does_it_all(open_page: Any) -> None:
    page = open_page()
    page.focus("#text")
    page.keyboard.type("the dog sees the man")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#output[aria-busy="false"] .word')
    page.wait_for_timeout(800)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('word')"):
            break
    assert page.evaluate("document.activeElement.dataset.number") == "0"
    page.keyboard.press("ArrowRight")
    before = page.inner_text("#output")
    page.keyboard.press("Enter")
    page.wait_for_selector(".popover button strong")
    page.keyboard.press("Escape")
    assert page.query_selector(".popover") is None
    assert page.evaluate("document.activeElement.classList.contains('word')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".popover button strong")
    page.keyboard.press("Enter")
    assert page.inner_text("#output") != before


def test_no_text_becomes_code(open_page: Any) -> None:
    page = open_page()
    assert len(XSS) == 50
    for text in XSS:
        page.fill("#text", text)
        page.keyboard.press("Control+Enter")
    page.click("text=Glossary")
    for text in XSS[::7]:
        page.fill("#glossary", f"dog = {text}")
        translated(page, f"the dog {text}")
        page.click("text=History")
        page.click("text=API call")
        page.click("text=Glossary")
    for text in XSS[::5]:
        other = open_page(f"#en/de/{text}")
        other.wait_for_timeout(150)
        assert other.evaluate("window.hacked") is None
        assert other.title() == "Dragoman: translate"
        other.context.close()
    assert page.evaluate("window.hacked") is None
    assert page.title() == "Dragoman: translate"


@pytest.mark.parametrize("form", list(FORMS))
def test_nothing_is_in_the_way_of_anybody(open_page: Any, form: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="accessibility needs axe-playwright-python"
    )
    page = open_page(form=form)
    translated(page, "the dog sees the man")
    checks = axe.Axe()

    def check(where: str) -> None:
        found = checks.run(page)
        assert found.violations_count == 0, f"{where}: {found.generate_report()}"

    check("text")
    page.click(".word >> nth=1")
    page.wait_for_selector(".popover button strong")
    check("other words")
    page.click("text=Close")
    for panel in ("Glossary", "History", "API call"):
        page.click(f"text={panel}")
        check(panel)
    page.click("text=Documents")
    check("documents")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
