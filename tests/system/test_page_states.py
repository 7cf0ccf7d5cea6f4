"""The page when things go wrong or come late: failures are faked between the browser and the server."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.system.browsers import BROWSERS
from tests.system.test_page import browser, open_page, server, translated  # noqa: F401 (fixtures)

from dragoman.languages.codes import names_of

pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
pytestmark = pytest.mark.skipif(not BROWSERS, reason="the page's tests need Chromium (apt-get install chromium)")

STREAM = "**/v1/translate/stream"
TEXT = "the dog sees the man"


def part(text: str, src: str = TEXT, **more: Any) -> tuple[str, dict[str, Any]]:
    record = {"text": text, "source": "en", "alternatives": [], "notes": [], "sentences": [[0, len(src), 0, len(text)]]}
    return "part", {**record, **more}


def stream(*events: tuple[str, Any]) -> dict[str, Any]:
    """What a server sends of a stream: all of `events`, and the end of the connection."""
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return {"status": 200, "content_type": "text/event-stream", "body": body}


def whole(text: str, src: str = TEXT, details: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return stream(part(text, src, **more), ("details", details or {}), ("done", {}))


def refusal(status: int, message: str = "no", **headers: str) -> dict[str, Any]:
    return {"status": status, "json": {"error": message}, "headers": headers}


class Answers:
    """The answers to the requests of an address, one after another; the last one again and again.

    None: the connection fails; "hold": there is none until `release`; "real": the server's own.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []
        self.held: list[Any] = []

    def __call__(self, route: Any) -> None:
        self.requests.append(route.request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            route.abort()
        elif answer == "hold":
            self.held.append(route)
        elif answer == "real":
            route.continue_()
        else:
            route.fulfill(**answer)

    def release(self, answer: dict[str, Any]) -> None:
        self.held.pop(0).fulfill(**answer)


def is_off(page: Any, button: str) -> bool:
    return bool(page.is_disabled(f"button:text-is('{button}')"))


def wait_done(page: Any) -> None:
    page.wait_for_selector('#output[aria-busy="false"] .word')


def wait_until(page: Any, expression: str) -> None:
    """(`wait_for_function` evaluates a string in the page, which its policy forbids.)"""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def test_an_old_translation_never_stands_as_that_of_a_new_text(open_page: Callable[..., Any]) -> None:  # noqa: F811
    answers = Answers(whole("der Hund"), "hold", refusal(400, "not this one"))
    page = open_page(before=lambda page: page.route(STREAM, answers))
    page.fill("#text", TEXT)
    wait_done(page)
    assert not is_off(page, "Copy")
    page.press("#text", "x")
    for _ in range(2):  # before the request, and under it
        assert page.get_attribute("#output", "aria-busy") == "true"
        assert "waiting" in page.get_attribute("#output", "class")
        assert page.query_selector("#output .word") is None
        assert is_off(page, "Copy")
        assert is_off(page, "Correct")
        page.wait_for_timeout(600)
    assert len(answers.held) == 1
    page.press("#text", "y")
    page.wait_for_selector("text=not this one")
    assert page.inner_text("#output") == ""
    assert is_off(page, "Copy")
    answers.release(whole("too late"))
    page.wait_for_timeout(200)
    assert page.inner_text("#output") == ""
    answers.answers = [whole("die Katze")]
    page.click("text=Try again")
    wait_done(page)
    assert page.inner_text("#output") == "die Katze"


def asked_by_a_stopped_clock(open_page: Callable[..., Any], answers: "Answers") -> Any:  # noqa: F811
    """A page whose clock is the test's, and which has asked for its first translation."""

    def before(page: Any) -> None:
        page.clock.install()
        page.route(STREAM, answers)

    page = open_page(before=before)
    page.fill("#text", TEXT)
    page.clock.run_for(500)
    return page


def test_a_stream_counts_with_its_done_alone(open_page: Callable[..., Any]) -> None:  # noqa: F811
    half = stream(part("der Hu"), ("part", part("nd")[1]))
    answers = Answers(half, stream(), whole("der Hund"))
    page = asked_by_a_stopped_clock(open_page, answers)
    for tries in (1, 2):
        page.wait_for_selector("text=The connection ended before the translation did.")
        assert page.query_selector("#output .word") is None
        assert is_off(page, "Copy")
        assert page.evaluate("localStorage.getItem('dragoman.history')") is None
        assert len(answers.requests) == tries
        page.clock.run_for(1000 * tries + 100)
    wait_done(page)
    assert page.inner_text("#output") == "der Hund"
    assert "der Hund" in page.evaluate("localStorage.getItem('dragoman.history')")


@pytest.mark.parametrize(
    ("answer", "message", "seconds"),
    [
        (refusal(429, "Slowdown", **{"Retry-After": "30"}), "The server is busy.", 30),
        (refusal(503, "Not ready: loading", **{"Retry-After": "5"}), "Not ready: loading", 5),
        (stream(("error", {"status": 503, "error": "The server is stopping"})), "The server is stopping", 1),
        (None, "The server does not answer.", 1),
    ],
)
def test_what_passes_is_tried_again_after_a_countdown(
    open_page: Callable[..., Any],  # noqa: F811
    answer: Any,
    message: str,
    seconds: int,
) -> None:
    answers = Answers(answer, whole("der Hund"))
    page = asked_by_a_stopped_clock(open_page, answers)
    page.wait_for_selector(f"text={message}")
    shown = page.inner_text(".countdown")
    assert int(re.findall(r"\d+", shown)[0]) in (seconds, seconds - 1)
    assert page.get_attribute(".countdown", "aria-hidden") == "true"
    assert is_off(page, "Copy")
    if seconds > 3:
        page.clock.run_for(1000 * (seconds - 3))
        assert len(answers.requests) == 1
        assert int(re.findall(r"\d+", page.inner_text(".countdown"))[0]) <= 3
        page.clock.run_for(4000)
    else:
        page.click("text=Try now")
    wait_done(page)
    assert page.query_selector(".countdown") is None
    assert len(answers.requests) == 2


def test_the_address_is_written_seldom_and_nothing_depends_on_it(open_page: Callable[..., Any]) -> None:  # noqa: F811
    throws = """
        window.writes = 0;
        history.replaceState = () => { writes += 1; throw new DOMException("more than 100 times", "SecurityError"); };
    """
    page = open_page(before=lambda page: page.add_init_script(throws))
    page.type("#text", "the dog sees the man and the man sees the dog", delay=10)
    wait_done(page)
    assert 1 <= page.evaluate("writes") <= 8


def test_a_changed_address_in_the_same_tab_is_followed(open_page: Callable[..., Any], server: Any) -> None:  # noqa: F811
    page = open_page("#en/de/the%20dog")
    wait_done(page)
    page.goto(f"{server.url}/#de/en/der%20K%C3%B6nig")
    wait_until(page, "document.getElementById('text').value === 'der König'")
    assert page.input_value("#source") == "de"
    assert page.input_value("#target") == "en"
    page.wait_for_selector('#output[lang="en"][aria-busy="false"] .word')


def test_a_draft_belongs_to_its_own_text_and_outlives_a_keystroke_and_a_reload(
    open_page: Callable[..., Any],  # noqa: F811
) -> None:
    page = open_page()
    translated(page, TEXT)
    page.click("text=Correct")
    assert page.evaluate("document.activeElement.id") == "mending"
    page.fill("#mending", "mein Entwurf")
    assert is_off(page, "Copy")
    page.type("#text", " king")
    wait_done(page)
    assert page.input_value("#mending") == "mein Entwurf"
    assert page.inner_text(".draft q") == TEXT
    assert not is_off(page, "Copy")
    page.reload()
    page.wait_for_selector("#mending")
    assert page.input_value("#mending") == "mein Entwurf"
    with page.expect_request("**/v1/corrections") as kept:
        page.click("text=Keep")
    sent = kept.value.post_data_json
    assert (sent["text"], sent["translation"]) == (TEXT, "mein Entwurf")
    page.wait_for_selector("text=Kept:")
    assert page.query_selector("#mending") is None


def test_a_correction_is_used_inside_of_longer_texts_and_lines_stay_lines(
    open_page: Callable[..., Any],  # noqa: F811
    server: Any,  # noqa: F811
) -> None:
    page = open_page()
    text = "The king is old. The small dog sleeps here.\nThe man sees a house."
    before = translated(page, text)
    asked = {"text": text, "source": "en", "target": "de"}
    _, second, _ = (slice(*one[2:]) for one in server.post("/v1/translate", json=asked).json()["sentences"])
    wanted = f"{before[: second.start]}Hier schläft das Hündchen.{before[second.stop :]}"
    page.click("text=Correct")
    page.fill("#mending", wanted)
    with page.expect_request("**/v1/corrections") as kept:
        page.click("text=Keep")
    assert kept.value.post_data_json["text"] == "The small dog sleeps here."
    page.wait_for_selector("text=Kept:")
    wait_done(page)
    assert page.inner_text("#output") == wanted
    assert "Hier schläft das Hündchen." in translated(page, "A man runs. The small dog sleeps here. A woman runs.")


def test_corrections_are_listed_searched_forgotten_and_taken_back(
    open_page: Callable[..., Any],  # noqa: F811
    server: Any,  # noqa: F811
) -> None:
    page = open_page()
    pair = {"source": "en", "target": "de"}
    for number in range(30):
        made = {**pair, "text": f"the number {number} of mice", "translation": f"Zahl {number} der Mäuse"}
        assert server.post("/v1/corrections", json=made).status_code == 200
    before = translated(page, "a man and a mouse")
    page.click("button:text-is('Correct')")
    page.fill("#mending", "Mann und Maus")
    page.select_option("#scope", "own")
    with page.expect_request("**/v1/corrections") as kept:
        page.click("text=Keep")
    assert kept.value.post_data_json["scope"] == "own"
    page.wait_for_selector("text=Kept: your texts are translated so from now on.")
    page.wait_for_selector('#output[aria-busy="false"]:has-text("Mann und Maus")')
    page.click("button:text-is('Corrections')")
    page.wait_for_selector(".corrections li:has-text('Mann und Maus'):has-text('for its author')")
    assert len(page.query_selector_all(".corrections li")) == 20
    page.click("button:text-is('More')")
    page.wait_for_selector(".corrections li:nth-child(30)")
    page.fill("#search", "MAUS")
    page.wait_for_selector("[role=status]:text-is('1 correction')")  # not 31
    row = ".corrections li:has-text('Mann und Maus')"
    page.click(f"{row} >> text=Forget")
    page.wait_for_selector(f"{row} .gone")
    page.wait_for_selector(f'#output[aria-busy="false"]:has-text("{before}")')
    page.click(f"{row} >> text=Use again")
    page.wait_for_selector(f"{row} >> text=Forget")
    page.wait_for_selector('#output[aria-busy="false"]:has-text("Mann und Maus")')
    page.fill("#search", "nothing of the kind")
    page.wait_for_selector("text=None found.")
    page.click("button:text-is('Correct')")
    page.fill("#mending", "etwas anderes")
    page.click("text=Keep")
    page.click("button:text-is('Undo')")
    page.wait_for_selector("text=Taken back.")
    page.wait_for_selector('#output[aria-busy="false"]:has-text("Mann und Maus")')


def test_who_may_not_correct_sees_no_button_and_who_reviews_has_two(open_page: Callable[..., Any]) -> None:  # noqa: F811
    def limits(**rights: Any) -> Callable[[Any], None]:
        def answer(route: Any) -> None:
            record = route.fetch().json()
            route.fulfill(json={**record, "corrections": {"mode": "review", "scopes": [], **rights}})

        return answer

    waiting = {"id": 7, "source": "en", "target": "de", "text": "dog", "translation": "Hund", "author": "anna",
               "created": 1.0, "state": "pending", "in_use": True}  # fmt: skip
    review = Answers({"json": {**waiting, "state": "shared"}})

    def before(page: Any) -> None:
        page.route("**/v1/limits", limits(may_correct=False, may_review=True))
        page.route("**/v1/corrections?*", Answers({"json": {"corrections": [waiting], "total": 1}}))
        page.route("**/v1/corrections/7/approve", review)

    page = open_page(before=before)
    assert page.query_selector("button:text-is('Correct')") is None
    page.click("button:text-is('Corrections')")
    page.click(".corrections li:has-text('waits for a review') >> text=Use for everybody")
    page.wait_for_selector(".corrections li:has-text('for everybody')")
    assert len(review.requests) == 1
    other = open_page(before=lambda page: page.route("**/v1/limits", limits(may_correct=False, may_review=False)))
    assert other.query_selector("button:has-text('Correct')") is None


def test_corrected_pieces_are_as_small_as_can_be_told(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page()

    def pairs(text: str, made: str, sentences: list[list[int]], translation: str) -> Any:
        return page.evaluate(
            "async (given) => (await import('./page/corrections.js')).changedPairs(...given)",
            [text, {"text": made, "sentences": sentences}, translation],
        )

    three = ("A. B. C.", "a. b. c.", [[0, 2, 0, 2], [3, 5, 3, 5], [6, 8, 6, 8]])
    assert pairs(*three, "a. x. c.") == [["B.", "x."]]
    assert pairs(*three, "x. b. c.") == [["A.", "x."]]
    assert pairs(*three, "a. b. x. y.") == [["C.", "x. y."]]
    assert pairs(*three, "a. x. y.") == [["B. C.", "x. y."]]
    assert pairs(*three, "q") == [["A. B. C.", "q"]]
    assert pairs(*three, "a. b. c.") == [["A.", "a."], ["B.", "b."], ["C.", "c."]]
    lines = ("😀 A.\nB. C.", "😀 a.\nb. c.", [[2, 4, 2, 4], [5, 7, 5, 7], [8, 10, 8, 10]])
    assert pairs(*lines, "😀 a.\nb. y.") == [["C.", "y."]]
    assert pairs(*lines, "😀 x.\nb. y.") == [["A.", "x."], ["C.", "y."]]
    assert pairs("A.", "a.", [], "x.") == [["A.", "x."]]
    assert pairs("A.\nB.", "a.\nb.", [], "a.\nx.") == [["B.", "x."]]
    five = ("A.\nB.\nC.\nD.\nE.", "a.\nb.\nc.\nd.\ne.", [[3 * n, 3 * n + 2, 3 * n, 3 * n + 2] for n in range(5)])
    assert pairs(*five, "a.\nb. c.\nd.\ne.") == [["B.\nC.", "b. c."]]  # joined lines are a pair
    assert pairs(*five, "x.\nb.\nc. d.\ne.") == [["A.", "x."], ["C.\nD.", "c. d."]]
    assert pairs(*five, "a. b.\nc.\nd. y.") == [["A.\nB.", "a. b."], ["D.\nE.", "d. y."]]
    assert pairs(*five, "a. b. c. d. e.") == [["A.\nB.\nC.\nD.\nE.", "a. b. c. d. e."]]
    assert pairs(*five, "a.\nb.\nx\ny.\nd.\ne.") == [["C.", "x\ny."]]
    assert pairs(*five, "a.\n\nc.\nd.\ne.") == []
    gap = ("A.\n\nB.", "a.\n\nb.", [[0, 2, 0, 2], [4, 6, 4, 6]])
    assert pairs(*gap, "a. b.") == [["A.\n\nB.", "a. b."]]
    assert pairs("A.\nB.\nC.", "a. b.\nc.", [[0, 5, 0, 5], [6, 8, 6, 8]], "a. b.\nx.") == [["C.", "x."]]


def test_lines_that_were_joined_are_kept_so_and_what_is_not_kept_is_said(
    open_page: Callable[..., Any],  # noqa: F811
) -> None:
    page = open_page()
    text = "The white dog runs.\nThe old king sleeps.\nThe man sees a house."
    lines = translated(page, text).split("\n")
    assert len(lines) == 3
    page.click("text=Correct")
    assert page.inner_text("#loss") == ""
    wanted = f"{lines[0]} Und der König schläft.\n{lines[2]}"
    page.fill("#mending", wanted)
    assert page.inner_text("#loss") == ""
    with page.expect_request("**/v1/corrections") as kept:
        page.click("text=Keep")
    assert kept.value.post_data_json["text"] == "The white dog runs.\nThe old king sleeps."
    page.wait_for_selector("text=Kept:")
    wait_done(page)
    assert page.inner_text("#output") == wanted
    assert f"{lines[0]} Und" not in translated(page, "The white dog runs. The old king sleeps.")  # no lines to join
    long = "".join(f"The man sees {number} houses.\n" for number in range(16))  # a stream of several parts
    for shift in range(3):
        made = translated(page, long + "A dog.\n" * shift + text)
        assert wanted in made
    page.click("button:text-is('Correct')")
    page.fill("#mending", made.replace(lines[2], lines[2].replace(" ", "\n", 1)))
    assert "the line break is kept as a space" in page.inner_text("#loss")
    page.fill("#mending", made.removesuffix(lines[2]))
    assert page.inner_text("#loss").startswith("Not everything is kept")
    assert is_off(page, "Keep")


def test_remarks_stand_once_in_plain_words_and_folded(open_page: Callable[..., Any]) -> None:  # noqa: F811
    lost = [{"kind": "numbers-lost", "text": f"numbers lost: {n}", "detail": str(n), "place": [n, 20]} for n in (1, 2)]
    double = [{"kind": "word-doubled", "text": "doubled word: und", "detail": "und"}] * 2
    note = [{"kind": "searched-again", "text": "searched again"}] * 3
    answers = Answers(
        whole("der Hund", details={"warnings": lost}),
        whole("ein Hund", details={"warnings": lost + double}, notes=note),
    )
    page = open_page(before=lambda page: page.route(STREAM, answers))
    page.fill("#text", TEXT)
    wait_done(page)
    assert [one.inner_text() for one in page.query_selector_all(".remarks li")] == [
        "⚠ Numbers of the text may be missing: 1; 2"
    ]
    page.press("#text", "x")
    page.wait_for_selector("text=3 remarks")
    assert not page.is_visible(".remarks li >> nth=0")
    page.click("text=3 remarks")
    assert [one.inner_text() for one in page.query_selector_all(".remarks li")] == [
        "⚠ Numbers of the text may be missing: 1; 2",
        "⚠ A word stands there twice: und",
        "The first translation repeated itself: this is another one.",
    ]


def test_nothing_is_remarked_about_what_a_person_has_corrected(open_page: Callable[..., Any]) -> None:  # noqa: F811
    src, tgt = "The dog. The man.", "Der Hund. Der Mann."
    sentences = [[0, 8, 0, 9], [9, 17, 10, 19]]
    memory = {"kind": "from-memory", "text": "from the memory"}
    details = {
        "confidence": [[0, 3, 0.1], [4, 8, 0.1], [10, 13, 0.1]],
        "memory": [{"source": "The dog.", "target": "Der Hund.", "similarity": 1}],
    }
    answers = Answers(
        whole(tgt, src, details, sentences=sentences, notes=[{**memory, "place": [0, 8]}]),
        whole(tgt, src, details, sentences=sentences, notes=[memory]),
    )
    page = open_page(before=lambda page: page.route(STREAM, answers))
    page.fill("#text", src)
    wait_done(page)
    assert page.inner_text("#output .doubt-0") == "Der"
    assert len(page.query_selector_all("#output .doubt-0")) == 1
    assert "corrected it before" in page.inner_text(".remarks")
    page.press("#text", "x")
    page.press("#text", "Backspace")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#output[aria-busy="false"] .word:not(.doubt-0) >> nth=3')
    assert page.query_selector("#output .doubt-0") is None
    assert "doubtful" not in page.inner_text(".remarks")
    assert page.query_selector("text=Corrected before") is None


def test_differences_of_alternatives_are_marked_in_a_panel_that_scrolls(
    open_page: Callable[..., Any],  # noqa: F811
) -> None:
    words = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf "
    made = f"{3 * words}der Hund sieht den Mann"
    others = [made.replace("Hund", f"Wolf{n}") for n in range(8)]
    page = open_page(before=lambda page: page.route(STREAM, Answers(whole(made, alternatives=others))))
    page.fill("#text", TEXT)
    wait_done(page)
    assert [one.inner_text() for one in page.query_selector_all(".alternatives mark")] == [f"Wolf{n}" for n in range(8)]
    assert page.inner_text(".alternatives button >> nth=0").startswith("… ")
    assert page.evaluate(
        "(() => { const a = document.querySelector('.alternatives'); return a.scrollHeight > a.clientHeight })()"
    )
    page.click(".alternatives button >> nth=1")
    assert page.inner_text("#output") == others[1]


def test_words_that_an_alternative_leaves_out_are_struck_through(open_page: Callable[..., Any]) -> None:  # noqa: F811
    made = "Ja, der sehr alte Hund sieht heute den Mann."
    shown = {
        "Ja, der Hund sieht heute den Mann.": "Ja, der [sehr alte] Hund sieht heute den Mann.",
        "Ja der sehr alte Hund sieht heute den Mann.": "Ja[,] der sehr alte Hund sieht heute den Mann.",
        "Ja, der sehr alte Hund sieht den Mann": "Ja, der sehr alte Hund sieht [heute] den Mann[.]",
        "der sehr alte Hund sieht heute den Mann.": "[Ja,] der sehr alte Hund sieht heute den Mann.",
        "Ja, der junge Hund sieht den Mann.": "Ja, der <junge> Hund sieht [heute] den Mann.",
        "Ja, der sehr alte Hund sieht heute schon den Mann.": "Ja, der sehr alte Hund sieht heute <schon> den Mann.",
    }
    page = open_page(before=lambda page: page.route(STREAM, Answers(whole(made, alternatives=list(shown)))))
    page.fill("#text", TEXT)
    wait_done(page)
    marked = """all => all.map((one) => {
        one = one.cloneNode(true);
        for (const hidden of one.querySelectorAll(".hidden")) hidden.remove();
        for (const gone of one.querySelectorAll("del")) gone.replaceWith(`[${gone.textContent}]`);
        for (const other of one.querySelectorAll("mark")) other.replaceWith(`<${other.textContent}>`);
        return one.textContent;
    })"""
    found = page.eval_on_selector_all(".alternatives button > span", marked)
    assert found == list(shown.values())
    first = page.query_selector(".alternatives button")
    assert "(without: sehr alte)" in first.text_content()
    assert first.query_selector("del").get_attribute("aria-hidden") == "true"
    first.click()
    assert page.inner_text("#output") == next(iter(shown))


def test_a_text_that_is_too_long_is_told_at_the_field_and_nothing_is_done_silently(
    open_page: Callable[..., Any],  # noqa: F811
) -> None:
    answers = Answers("real")
    page = open_page(before=lambda page: page.route(STREAM, answers))
    page.fill("#text", "man " * 1280)
    page.wait_for_selector("text=120 characters too many: nothing is translated until the text is shorter.")
    assert page.inner_text(".backdrop mark.over") == "man " * 30
    assert page.get_attribute("#text", "aria-invalid") == "true"
    box = page.query_selector("#over").bounding_box()
    assert 0 <= box["y"] < box["y"] + box["height"] < page.viewport_size["height"]  # however long the text is
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(700)
    assert answers.requests == []
    page.fill("#text", "x" * 5001)
    page.wait_for_selector("text=1 character too many:")
    page.click("text=Translate it as a document")
    page.wait_for_selector(".jobs li:has-text('text.txt')")
    page.click("button:text-matches('^Text')")
    page.click("text=Cut it after 5,000 characters")
    assert len(page.input_value("#text")) == 5000
    page.keyboard.press("Control+z")
    assert len(page.input_value("#text")) == 5001


def test_a_language_that_is_not_served_is_told_at_the_field(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page("#auto/de/")
    page.fill("#text", "La niña pequeña está durmiendo en la cama de su habitación.")
    page.wait_for_selector(".pane:nth-child(1) .error:has-text('Spanish, which is not translated here.')")
    assert page.inner_text("#output") == ""
    page.click(".pane:nth-child(1) button:text-is('English')")
    assert page.input_value("#source") == "en"
    wait_done(page)
    assert page.query_selector(".pane:nth-child(1) .error") is None
    page.select_option("#source", "auto")
    page.fill("#text", "Der Mann schläft heute in seinem Haus auf der Straße.")
    page.wait_for_selector("text=The text is in German already.")
    page.click("button:text-is('Translate it to English')")
    assert page.input_value("#target") == "en"


def test_the_list_of_other_words_closes_and_gives_the_focus_back(open_page: Callable[..., Any]) -> None:  # noqa: F811
    words = {"translations": [{"text": f"der {one}", "score": -1} for one in ("Wolf", "Kater", "Ochse")]}
    slow = Answers({"json": words}, {"json": words}, "hold", "hold")

    def before(page: Any) -> None:
        page.route(STREAM, Answers(whole("der Hund")))
        page.route("**/v1/words", slow)

    page = open_page(before=before)
    page.fill("#text", TEXT)
    wait_done(page)
    page.click(".word >> nth=1")
    page.wait_for_selector(".popover strong")
    active = "document.activeElement.innerText.split(' ')[0]"
    assert page.evaluate(active) == "Wolf"
    for key, word in (("ArrowDown", "Kater"), ("ArrowDown", "Ochse"), ("ArrowDown", "Close"), ("ArrowDown", "Wolf"),
                      ("ArrowUp", "Close"), ("Home", "Wolf"), ("End", "Close")):  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate(active) == word
    page.keyboard.press("Escape")
    assert page.query_selector(".popover") is None
    assert page.evaluate(active) == "Hund"
    page.keyboard.press("Enter")
    page.wait_for_selector(".popover strong")
    page.click("footer span")
    assert page.query_selector(".popover") is None
    wait_until(page, "document.activeElement.innerText === 'Hund'")
    page.keyboard.press("Enter")  # an answer that comes late opens nothing
    page.wait_for_selector("text=Looking for other words")
    page.click("#text")
    assert page.query_selector(".popover") is None
    assert page.evaluate("document.activeElement.id") == "text"
    slow.release({"json": words})
    page.wait_for_timeout(200)
    assert page.query_selector(".popover") is None
    page.click(".word >> nth=1")
    page.wait_for_selector("text=Looking for other words")
    page.press(".popover button", "Home")
    page.evaluate("document.getElementById('text').focus()")
    page.keyboard.type("x")
    page.wait_for_selector(".popover", state="detached")


def test_what_is_cleared_swapped_or_taken_comes_back_by_undo(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page()
    made = translated(page, TEXT)
    page.click("text=Clear")
    assert page.input_value("#text") == ""
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.press("Control+z")
    assert page.input_value("#text") == TEXT
    wait_done(page)
    page.click('[aria-label="Swap languages"]')
    assert page.input_value("#text") == made
    page.focus("#text")
    page.keyboard.press("Control+z")
    assert page.input_value("#text") == TEXT
    page.fill("#text", "something else")
    page.click("text=History")
    page.click(f".history button:has-text('{TEXT}') >> nth=0")
    wait_until(page, f"document.getElementById('text').value === '{TEXT}'")
    page.focus("#text")
    page.keyboard.press("Control+z")
    assert page.input_value("#text") == "something else"


def test_two_tabs_share_one_history(open_page: Callable[..., Any], server: Any) -> None:  # noqa: F811
    first = open_page()
    second = first.context.new_page()
    second.goto(f"{server.url}/#en/de/")
    second.wait_for_selector("#target option", state="attached")
    first.click("text=History")
    translated(first, "the old king")
    translated(second, "a small mouse")
    translated(first, "the white house")
    first.wait_for_selector(".history li:has-text('a small mouse')")
    second.click("text=History")
    assert len(second.query_selector_all(".history li")) == 3
    second.click("text=Delete all")
    first.wait_for_selector("text=Nothing yet.")
    translated(first, "the king is old")
    assert len(json.loads(first.evaluate("localStorage.getItem('dragoman.history')"))) == 1


def test_the_field_has_the_focus_and_swap_says_why_it_is_grey(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page("#auto/de/")
    assert page.evaluate("document.activeElement.id") == "text"
    swap = '[aria-label="Swap languages"]'
    assert page.get_attribute(swap, "aria-disabled") == "true"
    assert page.get_attribute(swap, "title") == "The language of the text is not known yet."
    assert (
        page.inner_text(f"#{page.get_attribute(swap, 'aria-describedby')}")
        == "The language of the text is not known yet."
    )
    page.dispatch_event(swap, "click")
    assert page.input_value("#source") == "auto"
    page.select_option("#source", "en")
    assert page.get_attribute(swap, "aria-disabled") == "false"
    assert not page.get_attribute(swap, "title")


def test_a_pasted_page_is_plain_text(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate(
        """navigator.clipboard.write([new ClipboardItem({
            "text/html": new Blob(["<b>the <i>dog</i></b>"], {type: "text/html"}),
            "text/plain": new Blob(["the dog"], {type: "text/plain"})})])"""
    )
    page.focus("#text")
    page.keyboard.press("Control+v")
    assert page.input_value("#text") == "the dog"


@pytest.mark.parametrize(("width", "scale"), [(320, 1), (600, 2)])
def test_nothing_is_scrolled_sideways(browser: Any, server: Any, width: int, scale: int) -> None:  # noqa: F811
    """320 points, and a window of 1,200 at 200 %."""
    context = browser.new_context(viewport={"width": width, "height": 600}, device_scale_factor=scale)
    page = context.new_page()
    long = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 2
    page.route(STREAM, Answers(whole(f"{long} {long}", alternatives=[f"{long} x", f"{long} y"])))
    page.goto(f"{server.url}/#en/de/{TEXT}")
    wait_done(page)

    def is_narrow() -> bool:
        return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    assert is_narrow()
    page.click(".word >> nth=1")
    page.wait_for_selector(".popover button")
    assert is_narrow()
    page.keyboard.press("Escape")
    page.click("text=Correct")
    assert is_narrow()
    for panel in ("Glossary", "History", "API call"):
        page.click(f"button:has-text('{panel}')")
        assert is_narrow(), panel
    page.click("nav button:has-text('Documents')")
    page.set_input_files("#file", {"name": f"{long}.txt", "mimeType": "text/plain", "buffer": b"the dog"})
    page.wait_for_selector("text=1 text translated")
    assert is_narrow()
    context.close()


def test_scripts_from_right_to_left(open_page: Callable[..., Any]) -> None:  # noqa: F811
    languages = [
        {"code": "en", "name": "English", "direction": "ltr", "targets": ["ar-x-law"]},
        {"code": "ar-x-law", "name": "Arabic (law)", "direction": "rtl", "targets": ["en"]},
    ]
    arabic = "الكلب يرى الرجل"

    def before(page: Any) -> None:
        page.route("**/v1/languages", Answers({"json": languages}))
        page.route(STREAM, Answers(whole(arabic)))
        page.route("**/v1/words", Answers({"json": {"translations": [{"text": "الكلب ينظر", "score": -1}]}}))

    page = open_page("#en/ar-x-law/", before=before)
    page.fill("#text", TEXT)
    wait_done(page)
    assert page.evaluate("getComputedStyle(document.getElementById('output')).direction") == "rtl"
    page.focus(".word >> nth=0")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.number") == "2"
    page.keyboard.press("Enter")
    page.wait_for_selector(".popover strong")
    box, field = (page.query_selector(one).bounding_box() for one in (".popover", ".pane:nth-child(2) .field"))
    assert field["x"] <= box["x"]
    assert box["x"] + box["width"] <= field["x"] + field["width"]


def test_an_adapter_beside_its_base_has_a_name_of_its_own(open_page: Callable[..., Any]) -> None:  # noqa: F811
    codes = ["en", "en-x-law-texts2", "en-x-one"]

    def answer(route: Any) -> None:
        names = names_of(["de", *codes], route.request.headers["accept-language"])
        listed = [{"code": one, "name": name, "targets": codes if one == "de" else []} for one, name in names.items()]
        route.fulfill(json=listed)

    page = open_page("#de/en/", before=lambda page: page.route("**/v1/languages", answer))
    assert page.locator("#target option").all_text_contents() == ["English", "English (law-texts2)", "English (one)"]
    page.select_option("#locale", "de")
    page.wait_for_selector('#target option:text("Englisch (one)")', state="attached")
    assert page.locator("#target option").all_text_contents()[1:] == ["Englisch (law-texts2)", "Englisch (one)"]


def send_letter(page: Any, name: str = "letter.txt", text: bytes = b"the dog sees the man\n\nthe king\n") -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": text})


def test_documents_outlive_the_view_and_a_reload(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page("#auto/de/")
    page.click("text=Documents")
    send_letter(page)
    page.click("nav button:text-is('Text')")
    page.click("nav button:has-text('Documents')")
    page.wait_for_selector("text=2 texts translated")
    assert "English → German" in page.inner_text(".jobs li")
    assert page.text_content("#announcer") == "letter.txt: translated"
    page.reload()
    page.click("nav button:has-text('Documents')")
    with page.expect_download() as download:
        page.click("text=Download")
    assert Path(download.value.path()).read_text(encoding="utf-8").strip()
    with page.expect_request(lambda asked: asked.method == "DELETE"):
        page.click("text=Remove")
    page.wait_for_selector(".jobs li", state="detached")
    page.reload()
    page.click("nav button:has-text('Documents')")
    assert page.query_selector(".jobs li") is None


DONE = {
    "state": "done", "name": "letter.de.txt", "source": "en", "target": "de", "done": 1, "total": 1,
    "texts": 1, "doubts": 0, "in_doubt": [],
}  # fmt: skip
BEGUN = {**DONE, "state": "translating", "done": 0, "seconds_left": 1}
HANDED_IN = {"json": {"id": "1", "key": "2", **BEGUN, "state": "queued"}, "status": 202}


def test_a_look_at_a_document_that_fails_is_not_the_end(open_page: Callable[..., Any]) -> None:  # noqa: F811
    looks = Answers(None, refusal(503, "loading"), refusal(429, "Slowdown", **{"Retry-After": "20"}), {"json": DONE})

    def before(page: Any) -> None:
        page.clock.install()
        page.route("**/v1/documents", Answers(refusal(429, "too many", **{"Retry-After": "2"}), HANDED_IN))
        page.route("**/v1/documents/1", looks)

    page = open_page(before=before)
    page.click("text=Documents")
    send_letter(page)
    page.wait_for_selector(".jobs .countdown")
    page.clock.run_for(2100)
    page.wait_for_selector("text=waiting for its turn")
    for message, seconds in (("does not answer", 1), ("loading", 2), ("is busy", 20)):
        page.clock.run_for(600)
        page.wait_for_selector(f".jobs li:has-text('{message}')")
        page.clock.run_for(1000 * seconds + 100)
    page.wait_for_selector("text=1 text translated")
    assert len(looks.requests) == 4


def test_a_document_that_the_server_does_not_know_any_more_is_told_so(
    open_page: Callable[..., Any],  # noqa: F811
) -> None:
    def before(page: Any) -> None:
        page.route("**/v1/documents", Answers(HANDED_IN))
        page.route("**/v1/documents/1", Answers(refusal(404, "There is no such document")))

    page = open_page(before=before)
    page.click("text=Documents")
    send_letter(page)
    page.wait_for_selector(".jobs .error:has-text('documents are kept for an hour')")


def test_looks_at_a_long_document_grow_seldom_and_it_can_be_cancelled(
    open_page: Callable[..., Any],  # noqa: F811
) -> None:
    looks = Answers({"json": {**BEGUN, "seconds_left": 600}})

    def before(page: Any) -> None:
        page.clock.install()
        page.route("**/v1/documents", Answers(HANDED_IN))
        page.route("**/v1/documents/1", looks)

    page = open_page(before=before)
    page.click("text=Documents")
    send_letter(page)
    page.wait_for_selector("text=waiting for its turn")
    for _ in range(60):
        page.clock.run_for(1000)
        page.wait_for_timeout(10)
    assert 4 <= len(looks.requests) <= 10  # two a second would be 120
    page.click("text=Cancel")
    assert looks.requests[-1].method == "DELETE"
    assert page.query_selector(".jobs li") is None
    before_that = len(looks.requests)
    page.clock.run_for(30_000)
    page.wait_for_timeout(50)
    assert len(looks.requests) == before_that


DROP = """([where, name]) => {
    const data = new DataTransfer();
    if (name) data.items.add(new File(["the dog"], name, {type: "text/plain"}));
    else { data.setData("text/html", "<b>the dog</b>"); data.setData("text/plain", "the dog"); }
    const drop = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
    document.querySelector(where).dispatchEvent(drop);
}"""


def test_what_is_dropped_anywhere_is_a_document(open_page: Callable[..., Any]) -> None:  # noqa: F811
    page = open_page()
    page.evaluate(DROP, ["#text", "dropped.txt"])
    page.wait_for_selector(".jobs li:has-text('dropped.txt'):has-text('1 text translated')")
    page.evaluate(DROP, [".drop", ""])
    page.wait_for_selector(".jobs li:has-text('text.txt'):has-text('1 text translated')")
    assert len(page.query_selector_all(".jobs > li")) == 2
