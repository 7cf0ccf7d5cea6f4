"""The stages of a text take about as much work as it is long, whatever it holds: counted in calls, not by a clock."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.steps import calls_of

from dragoman.alignment.links import aligned_pair
from dragoman.pipeline import splitter as splitter_module
from dragoman.pipeline.memory import TranslationMemory
from dragoman.pipeline.splitter import MAX_CHARS, Splitter
from dragoman.quality.faults import source_warnings, warnings_of
from dragoman.text.glossary import Glossary
from dragoman.text.placeholders import MAX_LOST_SPANS, mask_spans, without_spans
from dragoman.text.segment import sentences

LANGUAGES = ("de", "en")
GLOSSARY = Glossary({f"w{number}": f"z{number}" for number in range(1000)})
MEMORY = TranslationMemory([(f"w{number} hund {number % 7}", "dog") for number in range(2000)])
STAGES: dict[str, Callable[[str], Any]] = {
    "sentences": lambda text: sentences(text, "de"),
    "pieces": Splitter(LANGUAGES).pieces,
    "warnings": lambda text: warnings_of(text, "y" + text[len(text) // 3 :], LANGUAGES),
    "warnings of a source": lambda text: source_warnings(text, LANGUAGES),
    "placeholders": lambda text: (mask_spans(text, codes=True), without_spans(text)),
    "terms": lambda text: (GLOSSARY.find(text), GLOSSARY.target_places(text, text)),
    "words": lambda text: aligned_pair(text, text + "x"),
    "memory": MEMORY.like,
}
UNITS = [
    "x\n", "x ", "a", "A", "1.000,", "1/2 ", "1) ", "1", "12:30 ", "\U0001f600", "e\u0301", "[", "(", "{a} ", '"',
    "<b>a. ", "https://", "a@", "%d ", "`", "C:\\a ", "ABC-12 ", "A. B. ", "我。", "nicht ", "10 km ",
    "{n, plural, other {a}} ", "(1)[a];", " ", "\t", "\ue100", "<%", "_x000D_",
]  # fmt: skip


def test_the_count_tells_what_grows_with_the_square_of_a_text() -> None:
    assert calls_of(lambda: ["".find(letter) for letter in "a" * 400 for _ in "a" * 400]) > 16 * 9_000


@pytest.mark.parametrize("stage", STAGES)
def test_work_grows_with_the_length_of_a_text(stage: str) -> None:
    work = STAGES[stage]
    for text in ("Ein Hund.", "x\n" * 1001):  # what is loaded once is no work of a text
        work(text)
    for unit in [*UNITS, *(" ".join(map(str, range(2000))), " ".join(f"w{number}" for number in range(2000)))]:
        texts = ((unit * (size // len(unit) + 1))[:size] for size in (500, 2000))
        short, long = (calls_of(partial(work, text)) for text in texts)
        assert long < 8 * short + 2000, (unit[:20], short, long)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stage", ["sentences", "pieces", "warnings", "warnings of a source", "placeholders"])
def test_no_pattern_goes_on_for_ever(stage: str) -> None:
    """`(1)[a];` forty times held the lock of all threads for longer than anybody waits: each 1 was read in two ways."""
    for unit in UNITS:
        STAGES[stage](unit * (2000 // len(unit)) + "(1)[a")


def test_intervals_are_read_as_they_were() -> None:
    text = "(1)[one dog];(2-7)[a few dogs];(7-inf)[many dogs];(-3)[x y z];"
    assert [piece.text for piece in Splitter(LANGUAGES).pieces(text)] == ["one dog", "a few dogs", "many dogs", "x y z"]


def test_leaders_take_the_spaces_before_them_with_them() -> None:
    assert [piece.text for piece in Splitter(LANGUAGES).pieces("Chapter    ........   12 of all")] == [
        "Chapter",
        "12 of all",
    ]


def test_spans_that_have_no_words_do_not_try_for_ever() -> None:
    text = "{a}{b}" * 500
    assert len(text) > MAX_LOST_SPANS
    assert mask_spans(text) == (text, [])


def test_a_very_long_text_is_cut_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    masked = splitter_module.masked
    monkeypatch.setattr(splitter_module, "masked", lambda text: (read.append(len(text)), masked(text))[1])
    text = " ".join(f"Das ist Satz {number} von vielen." for number in range(3000))
    pieces = Splitter(LANGUAGES).pieces(text, codes=[5, 50_000])
    assert max(read) <= MAX_CHARS
    assert len(pieces) == 3000
    assert all(text[slice(*piece.span)] == piece.text for piece in pieces)
    solid = "x" * (2 * MAX_CHARS + 5)
    assert "".join(piece.text for piece in Splitter(LANGUAGES).pieces(solid)) == solid
