"""Plain text: lines, and paragraphs that somebody has broken at a width."""

import random
import textwrap

import pytest

from dragoman.formats.base import Options, Unit, plain
from dragoman.formats.plain_text import units

SENTENCES = (
    "Das Hemd war blau und die Jacke, die er gestern in der Stadt gekauft hatte, war ihm viel zu klein. "
    "Er brachte sie am nächsten Morgen in das Geschäft zurück, obwohl es regnete und er keinen Schirm hatte."
)


def texts(text: str) -> list[str]:
    return [plain(unit.items) for unit in units(text, Options())]


def rewritten(text: str, unit: Unit, translation: str) -> str:
    return text[: unit.start] + unit.render((translation,)) + text[unit.end :]


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100])
@pytest.mark.parametrize(
    ("first", "other"),
    [("", ""), ("  ", "  "), ("- ", "  "), (" * ", "   "), ("1. ", "   "), ("> ", "> "), ("# ", "# ")],
)
def test_lines_that_are_broken_at_a_width_are_one_text(width: int, first: str, other: str) -> None:
    text = textwrap.fill(SENTENCES, width, initial_indent=first, subsequent_indent=other)
    assert "\n" in text
    [unit] = units(text, Options())
    assert plain(unit.items) == SENTENCES
    assert unit.render(unit.items) == text[len(first) :]
    longest = max(map(len, text.split("\n")))
    new = rewritten(text, unit, SENTENCES.upper() * 2)
    assert max(map(len, new.split("\n"))) <= longest
    assert all(line.startswith(other) for line in new.split("\n")[1:])


def test_paragraphs_and_items_are_texts_of_their_own_and_line_ends_stay() -> None:
    one = textwrap.fill(SENTENCES, 60)
    item = textwrap.fill(SENTENCES, 60, initial_indent="- ", subsequent_indent="  ")
    text = f"{one}\n\n{item}\n- Noch ein Punkt\n- Ein dritter\n".replace("\n", "\r\n")
    assert texts(text) == [SENTENCES, SENTENCES, "Noch ein Punkt", "Ein dritter"]
    first = next(units(text, Options()))
    assert "\n" not in rewritten(text, first, SENTENCES).replace("\r\n", "")


@pytest.mark.parametrize(
    "text",
    [
        "Das Hemd war blau.\nDie Jacke war neu.\nEin Mann geht die Straße entlang.\n",
        "Anna Meyer\nLange Straße 7 im Hinterhof rechts\n12345 Berlin\n",
        "ein mann in einem blauen hemd steht auf einer leiter\nzwei frauen reden\nein hund läuft über das gras\n",
        "Es war einmal ein König, der hatte ein Schloss.\nDas Schloss stand auf einem hohen Berg im Land.\n",
        "Der Mond ist aufgegangen,\ndie goldnen Sternlein prangen\nam Himmel hell und klar;\n",
        "- ein Punkt ohne Ende und mit vielen Wörtern darin\n- noch ein Punkt ohne Ende und mit Wörtern\n",
        "他今天早上在城里买了一件蓝色的衬衫和一件外套然后就回家了但是外面\n正在下雨他没有带伞所以全身都湿透了他很不高兴地坐在家里看书喝茶听\n音乐\n",
    ],
)
def test_lines_that_stand_by_themselves_are_texts_of_their_own(text: str) -> None:
    assert len(texts(text)) == text.count("\n")


def test_sentences_of_any_length_a_line_are_not_taken_for_paragraphs() -> None:
    rng = random.Random(1)
    words = SENTENCES.replace(".", "").split()
    for _ in range(300):
        lines = [
            " ".join(rng.choices(words, k=rng.randint(2, 14))).capitalize() + "." for _ in range(rng.randint(2, 6))
        ]
        assert texts("\n".join(lines)) == lines


def test_a_hyphen_at_the_end_of_a_line() -> None:
    text = "Das Hemd war so blau wie der Himmel über der Ost-\nsee, und die Jacke, die er sah."
    assert texts(text) == [text.replace("-\n", "-").replace("\n", " ")]
    text = "Das Hemd war so blau wie der Himmel über der Ost-\nund Nordsee, die er gestern gesehen hatte."
    assert texts(text) == [text.replace("\n", " ")]
