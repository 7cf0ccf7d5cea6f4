"""The page in every script: direction, names of languages, input methods, whole words, fonts."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.system.browsers import BROWSERS
from tests.system.test_page import browser, open_page, server, translated  # noqa: F401 (fixtures)
from tests.system.test_page_states import STREAM, Answers, wait_done, wait_until, whole

from dragoman.languages.codes import direction_of, names_of, script_of, tag_of

pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytestmark = pytest.mark.skipif(not BROWSERS, reason="the page's tests need Chromium (apt-get install chromium)")
Open = Callable[..., Any]

CODES = ["en", "ar", "he", "ur", "hi", "th", "km", "ja", "zh_Hans", "zho_Hant", "sr", "sr-Latn", "am", "kab"]
SENTENCE = "Error executing a method {name} %s."
ARABIC = "Microsoft Word: خطأ في تنفيذ %s و ‎--help"
HEBREW = "Firefox הוא דפדפן"


def listed(reader: str) -> list[dict[str, Any]]:
    """Languages as a server lists them that translates each of CODES to each."""
    return [
        {
            "code": code, "name": name, "tag": tag_of(code), "script": script_of(code), "direction": direction_of(code),
            "targets": [one for one in CODES if one != code],
        }
        for code, name in names_of(CODES, reader).items()
    ]  # fmt: skip


def with_languages(**routes: Any) -> Callable[[Any], None]:
    """What is done to a page before it opens: CODES are served, and addresses answer what is given."""

    def before(page: Any) -> None:
        page.route("**/v1/languages", lambda one: one.fulfill(json=listed(one.request.headers["accept-language"])))
        for address, answers in routes.items():
            page.route(STREAM if address == "stream" else f"**/v1/{address}**", answers)

    return before


def direction(page: Any, selector: str) -> str:
    return str(page.eval_on_selector(selector, "(one) => getComputedStyle(one).direction"))


# -- direction -----------------------------------------------------------------------------------------------------


def test_the_direction_is_the_language_s_whatever_a_text_begins_with(open_page: Open) -> None:  # noqa: F811
    answers = Answers(whole(ARABIC, SENTENCE, alternatives=["Word خطأ", "%s خطأ --x"]))
    page = open_page("#en/ar/", before=with_languages(stream=answers))
    page.fill("#text", SENTENCE)
    wait_done(page)
    assert direction(page, "#output") == "rtl"
    assert page.get_attribute("#output", "lang") == "ar"
    assert direction(page, "#text") == direction(page, ".backdrop") == "ltr"
    assert [direction(page, f".alternatives button >> nth={n}") for n in (0, 1)] == ["rtl", "rtl"]
    assert page.inner_text("#output") == ARABIC
    assert page.locator(".alternatives bdi").all_inner_texts() == ["%s", "--x"]
    page.click("text=History")
    assert direction(page, ".history .block >> nth=0") == "ltr"
    assert direction(page, ".history .block >> nth=1") == "rtl"
    assert page.inner_text(".history small") == "English → Arabic"
    page.click("text=Correct")
    assert direction(page, "#mending") == "rtl"
    page.select_option("#source", "he")
    page.fill("#text", HEBREW)
    assert direction(page, "#text") == direction(page, ".backdrop") == "rtl"
    page.click("text=Glossary")
    assert direction(page, "#glossary") == direction(page, ".lines .backdrop") == "rtl"


def test_the_field_follows_the_language_that_was_detected(open_page: Open) -> None:  # noqa: F811
    found = {"detected": {"language": "he", "name": "Hebrew", "confidence": 0.99, "served": True}}
    answers = Answers(whole("Firefox is a browser", HEBREW, found, source="he"))
    page = open_page("#auto/en/", before=with_languages(stream=answers))
    page.fill("#text", HEBREW)
    assert direction(page, "#text") == "ltr"  # its first letter's, as long as nothing else is known
    wait_done(page)
    assert direction(page, "#text") == "rtl"
    assert page.get_attribute("#text", "lang") == "he"
    page.press("#text", "End")
    page.keyboard.type("!")
    assert direction(page, "#text") == "rtl"  # while it is typed on
    page.fill("#text", "")
    wait_until(page, "document.getElementById('text').dir === 'auto'")


def test_texts_in_doubt_and_corrections_have_the_direction_of_their_language(open_page: Open) -> None:  # noqa: F811
    correction = {
        "id": 1, "source": "en", "target": "he", "text": "Firefox", "translation": HEBREW, "state": "own",
        "in_use": True, "author": "me",
    }  # fmt: skip
    job = {
        "id": "a", "key": "b", "state": "done", "name": "a.en.txt", "source": "he", "target": "en", "done": 1,
        "total": 1, "texts": 1, "doubts": 1,
        "in_doubt": [{"where": "line 1", "text": HEBREW, "reasons": [], "warnings": []}],
    }  # fmt: skip
    memory = [{"source": HEBREW, "target": "%s", "similarity": 0.9}]
    routes = {
        "stream": Answers(whole("browser", HEBREW, {"memory": memory}, source="he")),
        "corrections": Answers({"json": {"corrections": [correction], "total": 1}}),
        "documents": Answers({"json": job}),
    }
    page = open_page("#he/en/", before=with_languages(**routes))
    page.fill("#text", HEBREW)
    wait_done(page)
    assert [direction(page, f".alternatives p span >> nth={n}") for n in (0, 1)] == ["rtl", "ltr"]
    page.click("text=Corrections")
    page.wait_for_selector(".corrections .block")
    assert [direction(page, f".corrections .block >> nth={n}") for n in (0, 1)] == ["ltr", "rtl"]
    page.click("nav button >> nth=1")
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": HEBREW.encode()})
    page.click("summary:text('Texts in doubt')")
    assert direction(page, ".jobs q span") == "rtl"
    assert page.inner_text(".jobs .soft >> nth=0") == "Hebrew → English"


@pytest.mark.parametrize(
    "code", ["%s", "{name}", "--help", "C++", ".NET", "/usr/bin/", "https://example.com/a?b=/", "<b>"]
)
def test_a_code_is_read_as_it_is_written_beside_letters_from_right_to_left(code: str, open_page: Open) -> None:  # noqa: F811
    text = f"استخدم {code} الآن."
    page = open_page("#en/ar/", before=with_languages(stream=Answers(whole(text, "x"))))
    page.fill("#text", "x")
    wait_done(page)
    places = page.evaluate("""(code) => {
        const element = [...document.querySelectorAll("#output bdi")].find((one) => one.textContent === code);
        if (!element) return null;
        const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), places = [];
        while (texts.nextNode()) for (let at = 0; at < texts.currentNode.data.length; at += 1) {
          const range = document.createRange();
          range.setStart(texts.currentNode, at);
          range.setEnd(texts.currentNode, at + 1);
          places.push(range.getBoundingClientRect().left);
        }
        return places;
    }""", code)  # fmt: skip
    assert places == sorted(places)
    assert page.inner_text("#output") == text
    page.hover(".word >> nth=0")
    assert page.inner_text(".word >> nth=0") == "استخدم"


def test_what_is_said_in_another_direction_stands_by_itself(open_page: Open) -> None:  # noqa: F811
    warnings = [{"kind": "marks-lost", "detail": "(", "text": ""}, {"kind": "numbers-lost", "detail": "17", "text": ""}]
    answers = Answers(whole(ARABIC, SENTENCE, warnings=warnings), {"status": 400, "json": {"error": "text: no."}})
    page = open_page("#en/ar/", before=with_languages(stream=answers))
    page.select_option("#locale", "ar")
    page.wait_for_selector("html[lang=ar]")
    page.fill("#text", SENTENCE)
    wait_done(page)
    said = page.locator(".remarks .warning").all_inner_texts()
    assert [one[one.index("\u2068") :] for one in said] == ["\u2068(\u2069", "\u206817\u2069"]
    page.fill("#text", "x")
    page.wait_for_selector(".error:has-text('text: no.')")
    assert page.eval_on_selector(".notes .error", "(one) => getComputedStyle(one).unicodeBidi") == "plaintext"


CODES_IN_TEXTS = {
    "نص (%s) و": ["(%s)"], "نص (%s": ["%s"], "نص Microsoft Word 2010 و": [], "نص، %s.": ["%s"], "نص %s %d و": ["%s %d"],
    "قل \"--x\"، ثم": ["--x"], "%sنص": [], "بـ%s": ["%s"],
    "الFile% و": [], "(الملف file.txt)": [], "في C++، و": ["C++"], "12 345": [],
}  # fmt: skip


def test_which_runs_are_codes(open_page: Open) -> None:  # noqa: F811
    page = open_page()
    found = page.evaluate("""async (texts) => {
        const { stretchesOf } = await import("./page/characters.js");
        return texts.map((text) => stretchesOf(text, "rtl"));
    }""", list(CODES_IN_TEXTS))  # fmt: skip
    codes = {
        text: [one["text"] for one in parts if one["isCode"]] for text, parts in zip(CODES_IN_TEXTS, found, strict=True)
    }
    assert codes == CODES_IN_TEXTS
    for text, parts in zip(CODES_IN_TEXTS, found, strict=True):
        assert "".join(one["text"] for one in parts) == text
        assert all(text[one["from"] :].startswith(one["text"]) for one in parts)


# -- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["en", "de", "ar"])
def test_each_language_has_one_name_in_the_language_of_the_reader(reader: str, open_page: Open) -> None:  # noqa: F811
    page = open_page("#auto/en/", before=with_languages())
    page.select_option("#locale", reader)
    expected = list(names_of(CODES, reader).values())
    page.wait_for_selector(f'#source option:text-is("{expected[-1]}")', state="attached")
    assert page.locator("#source option").all_text_contents()[1:] == expected
    assert len(set(expected)) == len(CODES)
    assert not set(expected) & set(CODES)


# -- input methods -------------------------------------------------------------------------------------------------


class Typist:
    """Somebody who types by an input method, as Chromium's own protocol lets it compose."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)

    def compose(self, text: str) -> None:
        for end in range(1, len(text) + 1):
            given = {"text": text[:end], "selectionStart": end, "selectionEnd": end}
            self.session.send("Input.imeSetComposition", given)

    def cancel(self) -> None:
        self.session.send("Input.imeSetComposition", {"text": "", "selectionStart": 0, "selectionEnd": 0})

    def commit(self, text: str) -> None:
        self.session.send("Input.insertText", {"text": text})

    def press(self, key: str, number: int, **more: Any) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            given = {"type": kind, "key": key, "code": "Enter", "windowsVirtualKeyCode": number, **more}
            self.session.send("Input.dispatchKeyEvent", given)


@pytest.fixture
def typist(browser: Any) -> type[Typist]:  # noqa: F811
    if browser.browser_type.name != "chromium":
        pytest.skip("only Chromium can be made to compose")
    return Typist


def test_nothing_is_sent_of_a_text_that_is_being_composed(open_page: Open, typist: type[Typist]) -> None:  # noqa: F811
    answers = Answers(whole("Japanese", "日本語"))
    page = open_page("#ja/en/", before=with_languages(stream=answers))
    person = typist(page)
    page.focus("#text")
    person.compose("にほんご")
    assert page.input_value("#text") == "にほんご"
    person.press("Process", 229)
    person.press("Enter", 229, modifiers=2)
    page.wait_for_timeout(2500)
    assert answers.requests == []
    person.commit("日本語")
    wait_done(page)
    assert [json.loads(one.post_data)["text"] for one in answers.requests] == ["日本語"]
    person.compose("です")
    person.cancel()
    assert page.input_value("#text") == "日本語"
    page.wait_for_timeout(600)
    assert json.loads(answers.requests[-1].post_data)["text"] == "日本語"  # its last letters were never sent
    person.compose("か")
    page.click("text=History")  # what is left in the field when the focus goes is typed
    wait_until(page, "document.querySelector('#output').getAttribute('aria-busy') === 'false'")
    assert json.loads(answers.requests[-1].post_data)["text"] == "日本語か"


def test_a_composition_that_is_given_up_changes_nothing(open_page: Open) -> None:  # noqa: F811
    answers = Answers(whole("Japanese", "日本語"))
    page = open_page("#ja/en/", before=with_languages(stream=answers))
    page.fill("#text", "日本語")
    wait_done(page)
    page.focus("#text")
    page.evaluate("""() => {
        for (const type of ["compositionstart", "compositionend"]) {
          document.activeElement.dispatchEvent(new CompositionEvent(type, { bubbles: true }));
        }
    }""")  # fmt: skip
    page.wait_for_timeout(600)
    assert len(answers.requests) == 1


def test_a_text_that_comes_back_before_its_translation_is_translated(open_page: Open) -> None:  # noqa: F811
    answers = Answers("hold", whole("Japanese", "日本語"))
    page = open_page("#ja/en/", before=with_languages(stream=answers))
    page.fill("#text", "日本語")
    page.wait_for_timeout(600)
    assert len(answers.held) == 1
    page.fill("#text", "日本語。")
    page.fill("#text", "日本語")
    wait_done(page)
    assert page.inner_text("#output") == "Japanese"


def test_the_key_that_ends_a_composition_in_safari_is_nobody_s(open_page: Open) -> None:  # noqa: F811
    answers = Answers(whole("Japanese", "日本語"))
    page = open_page("#ja/en/", before=with_languages(stream=answers))
    key = """async (number) => {
        const field = document.getElementById("text");
        field.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
        field.value = "日本語";
        field.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true }));
        field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true, data: "日本語" }));
        await new Promise((done) => setTimeout(done, 50));
        const key = { key: "Enter", keyCode: number, ctrlKey: true, bubbles: true };
        field.dispatchEvent(new KeyboardEvent("keydown", key));
    }"""
    page.evaluate(key, 229)
    page.wait_for_timeout(200)
    assert answers.requests == []
    wait_done(page)
    page.fill("#text", "")
    page.wait_for_timeout(100)
    page.evaluate(key, 13)
    page.wait_for_timeout(200)
    assert len(answers.requests) == 2  # the control: a real Ctrl+Enter does not wait


def test_searches_and_glossaries_wait_for_a_composition(open_page: Open, typist: type[Typist]) -> None:  # noqa: F811
    corrections, terms = (
        Answers({"json": {"corrections": [], "total": 0}}),
        Answers({"json": {"terms": {}, "faults": []}}),
    )
    page = open_page("#ja/en/", before=with_languages(corrections=corrections, glossary=terms))
    person = typist(page)
    page.click("text=Corrections")
    page.wait_for_selector("text=Nothing yet.")
    before = len(corrections.requests)
    page.focus("#search")
    person.compose("にほん")
    page.wait_for_timeout(800)
    assert len(corrections.requests) == before
    person.commit("日本")
    page.wait_for_selector("text=None found.")
    assert all("%E3%81%AB" not in one.url for one in corrections.requests)  # に
    page.click("text=Glossary")
    page.focus("#glossary")
    person.compose("びーる")
    page.wait_for_timeout(1000)
    assert terms.requests == []
    person.commit("ビール = beer")
    page.wait_for_timeout(1000)
    assert len(terms.requests) == 1


def test_a_form_is_not_sent_by_the_key_that_chooses(open_page: Open, typist: type[Typist], server: Any) -> None:  # noqa: F811
    page = open_page()
    page.goto(f"{server.url}/docs")
    details = page.locator('details[data-path="/v1/detect"][data-method="post"]')
    details.locator("summary").click()
    field = details.locator("input[type=text] >> nth=0")
    field.fill("")
    field.focus()
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    person = typist(page)
    person.compose("にほんご")
    person.press("Enter", 229)
    person.press("Enter", 13, text="\r")
    page.wait_for_timeout(500)
    assert asked == []
    person.commit("日本語")
    page.keyboard.press("Enter")
    details.locator(".answer").wait_for()
    assert [one.rpartition("/")[2] for one in asked] == ["detect"]


def test_what_needs_no_choice_is_sent_after_a_rest(
    open_page: Open,  # noqa: F811
    browser: Any,  # noqa: F811
    server: Any,  # noqa: F811
    typist: type[Typist],
) -> None:
    """The last syllable of Korean is composed until another one is begun, and so is each word on Android."""
    answers = Answers(whole("Hello", "안녕"))
    page = open_page("#ja/en/", before=with_languages(stream=answers))
    page.focus("#text")
    typist(page).compose("안녕")
    page.wait_for_timeout(1000)
    assert answers.requests == []
    wait_done(page)
    assert json.loads(answers.requests[-1].post_data)["text"] == "안녕"
    context = browser.new_context(user_agent="Mozilla/5.0 (Linux; Android 14) Chrome/120 Mobile")
    try:
        page, answers = context.new_page(), Answers(whole("Hund", "dog"))
        page.route(STREAM, answers)
        page.goto(f"{server.url}/#en/de/")
        page.focus("#text")
        typist(page).compose("dog")
        page.wait_for_timeout(1000)
        assert answers.requests == []
        wait_done(page)
    finally:
        context.close()


# -- words ---------------------------------------------------------------------------------------------------------

WORDS = {
    "hi": ("यह विधि {name} को कार्यान्वित करता है।", ["यह", "विधि", "name", "को", "कार्यान्वित", "करता", "है"]),
    "th": ("การทำงานของโปรแกรม", ["การ", "ทำงาน", "ของ", "โปรแกรม"]),
    "ar": ("تَنْفيذُ الطَّريقةِ", ["تَنْفيذُ", "الطَّريقةِ"]),
    "km": ("ការងារ និង", ["ការងារ", "និង"]),
}


@pytest.mark.parametrize("code", WORDS)
def test_words_are_whole(code: str, open_page: Open) -> None:  # noqa: F811
    text, words = WORDS[code]
    links = [[0, 1, end - 1, end] for end in range(1, len(text) + 1)]
    page = open_page(f"#en/{code}/", before=with_languages(stream=Answers(whole(text, "x", {"alignments": links}))))
    page.fill("#text", "x")
    wait_done(page)
    assert page.inner_text("#output") == text
    assert page.locator("#output .word").all_inner_texts() == words
    page.hover(".word >> nth=1")
    page.wait_for_selector(".backdrop mark", state="attached")
    assert page.locator(".word.linked").all_inner_texts() == [words[1]]


@pytest.mark.parametrize("code", WORDS)
def test_marks_are_of_whole_words(code: str, open_page: Open) -> None:  # noqa: F811
    text, words = WORDS[code]
    at = text.index(words[1])
    inside = [at + 1, at + 2, 0, 1]  # a mark of the word, as a server may link it
    answers = Answers(whole("x", text, {"alignments": [inside]}, source=code))
    page = open_page(f"#{code}/en/", before=with_languages(stream=answers))
    page.fill("#text", text)
    wait_done(page)
    page.hover(".word")
    page.wait_for_selector(".backdrop mark", state="attached")
    assert page.locator(".backdrop mark").all_inner_texts() == [words[1]]
    assert page.inner_text(".backdrop") == text


def test_differences_and_other_words_are_of_whole_words(open_page: Open) -> None:  # noqa: F811
    text, other = "การทำงานของโปรแกรม", "การทำงานของระบบ"
    routes = {
        "stream": Answers(whole(text, "x", alternatives=[other])),
        "words": Answers({"json": {"translations": [{"text": "การทดสอบของโปรแกรม", "score": -1}]}}),
    }
    page = open_page("#en/th/", before=with_languages(**routes))
    page.fill("#text", "x")
    wait_done(page)
    assert page.locator(".alternatives mark").all_inner_texts() == ["ระบบ"]
    page.click(".word >> nth=1")
    page.wait_for_selector(".popover strong")
    assert page.inner_text(".popover strong") == "ทดสอบ"
    assert page.inner_text(".popover button >> nth=0") == "ทดสอบของโปรแกรม"


def test_a_text_is_cut_between_letters_and_counted_as_the_server_does(open_page: Open, server: Any) -> None:  # noqa: F811
    page = open_page()
    found = page.evaluate("""async () => {
        const { beginning, ending, lengthOf, letters } = await import("./page/characters.js");
        const text = "है👩‍👧कि";
        const both = (most) => [beginning, ending].map((of) => of(letters(text), most));
        return [1, 2, 4, 5, 6, 7, 9].map((most) => [...both(most), lengthOf(text)]);
    }""")  # fmt: skip
    assert [one[2] for one in found] == [len("है👩‍👧कि")] * 7
    assert [one[0] for one in found] == ["", "है", "है", "है👩‍👧", "है👩‍👧", "है👩‍👧कि", "है👩‍👧कि"]
    assert [one[1] for one in found] == ["", "कि", "कि", "👩‍👧कि", "👩‍👧कि", "है👩‍👧कि", "है👩‍👧कि"]
    limit = server.get("/v1/limits").json()["text_characters"]
    text = "कि" * (limit // 2) + "😀"
    page.fill("#text", text)
    page.click("text=Cut it after")
    assert page.input_value("#text") == "कि" * (limit // 2)
    assert page.inner_text(".counter") == f"{limit:,} / {limit:,}"
    answer = server.post("/v1/detect", json={"text": page.input_value("#text")})
    assert answer.status_code == 200
    assert server.post("/v1/detect", json={"text": text}).status_code == 400


# -- fonts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "lang", "font"),
    [
        ("ar", "ar", "Noto Sans Arabic"), ("ur", "ur", "Noto Nastaliq Urdu"), ("hi", "hi", "Noto Sans Devanagari"),
        ("th", "th", "Noto Sans Thai"), ("km", "km", "Noto Sans Khmer"), ("ja", "ja", "Hiragino Sans"),
        ("zh_Hans", "zh", "PingFang SC"), ("zho_Hant", "zh-Hant", "PingFang TC"), ("en", "en", "system-ui"),
    ],
)  # fmt: skip
def test_each_script_has_fonts_and_lines_of_its_own(code: str, lang: str, font: str, open_page: Open) -> None:  # noqa: F811
    page = open_page(f"#{code}/{'en' if code != 'en' else 'ar'}/", before=with_languages())
    assert page.get_attribute("#text", "lang") == lang
    field, behind = (
        page.eval_on_selector(selector, """(one) => {
            const { fontFamily, lineHeight, fontSize, ...style } = getComputedStyle(one);
            const leading = parseFloat(lineHeight) / parseFloat(fontSize);
            return { fontFamily, leading, rest: [style.letterSpacing, style.fontStyle, style.fontSynthesisWeight] };
        }""")
        for selector in ("#text", ".backdrop")
    )  # fmt: skip
    assert field == behind
    assert field["fontFamily"].strip('"').startswith(font)
    tall = {"Latn": 1.5, "Arab": 1.75, "Thai": 1.8, "Khmr": 2, "Deva": 1.75}.get(script_of(code), 1.65)
    assert field["leading"] >= (2.3 if code == "ur" else tall)
    assert field["rest"] == ["normal", "normal", "none"]
