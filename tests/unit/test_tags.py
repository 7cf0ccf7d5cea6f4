"""Codes in translations: around the right words where links are right, and once each, nested, whatever links are."""

import random
import re
from collections import Counter

import numpy as np
import pytest

from dragoman.alignment.erasure import _links_of
from dragoman.alignment.links import AlignedPair, aligned_pair
from dragoman.alignment.markup import text_and_codes, transfer_markup, unprotected, with_blanks
from dragoman.formats.base import Code, Item
from dragoman.text.words import Word, words


def items_of(markup: str) -> list[Item]:
    """`a <b>c</b> d <x/> e` as items; `<b>`, `<i>`, `<a>` are pairs, `<x/>` stands alone, `{...}` is protected."""
    out: list[Item] = []
    stack: list[tuple[str, int]] = []
    for number, piece in enumerate(re.split(r"(<[^>]*>|\{[^}]*\})", markup)):
        if piece.startswith("{"):
            out.append(Code(piece, "protected"))
        elif piece.endswith("/>"):
            out.append(Code(piece, "alone"))
        elif piece.startswith("</"):
            out.append(Code(piece, "close", stack.pop()[1]))
        elif piece.startswith("<"):
            stack.append((piece, number))
            out.append(Code(piece, "open", number))
        elif piece:
            out.append(piece)
    return out


def shown(items: list[Item]) -> str:
    return "".join(item if isinstance(item, str) else item.raw for item in items)


def carry(markup: str, tgt: str, pairs: list[tuple[int, int]] | None = None) -> str:
    """The translation with the markup of its source; `pairs`: (target word, source word), else the same order."""
    src, codes, protected = text_and_codes(items_of(markup))
    src_words, tgt_words = words(src), words(tgt)
    links = np.zeros((len(tgt_words), len(src_words)))
    for row, column in pairs if pairs is not None else zip(range(len(tgt_words)), range(len(src_words)), strict=False):
        links[row, column] = 1
    items = transfer_markup(AlignedPair(src, tgt, src_words, tgt_words), codes, links)
    return shown(unprotected(with_blanks(items, items_of(markup)), protected))


@pytest.mark.parametrize(
    "markup",
    [
        "<b>One</b> two <i>three</i>.", "one <b>two <i>three</i></b> four", "one<x/> two", "one <x/>two",
        "one <x/> two", "H<sub>2</sub>O flows",
        "<b> one</b> two", "one<b> two </b>three", "a<b>b</b>c", "one <b></b>two", "<x/>one two<x/>", "one {code} two",
        "<b>{code}</b> one", "<i><b>one</b></i> <a>two</a>", "one. <b>Two. Three.</b> Four.", "<b>one</b><i>two</i>",
    ],
)  # fmt: skip
def test_an_identity_gives_the_source_back(markup: str) -> None:
    src, _, _ = text_and_codes(items_of(markup))
    assert carry(markup, src) == markup


def test_reversed_words_take_their_codes_along() -> None:
    back = [(0, 2), (1, 1), (2, 0)]
    assert carry("<b>one</b> two <i>three</i>", "eerht owt eno", back) == "<i>eerht</i> owt <b>eno</b>"
    assert carry("<b>one two</b> three", "eerht owt eno", back) == "eerht <b>owt eno</b>"
    assert carry("<b>one <i>two</i></b> three", "eerht owt eno", back) == "eerht <b><i>owt</i> eno</b>"
    assert carry("one<x/> two three", "eerht owt eno", back) == "eerht owt eno<x/>"


def test_words_that_nothing_decides_stay_outside() -> None:
    links = [(0, 0), (2, 1)]  # the second target word has no link
    assert carry("see <a>file</a>", "sehen Sie Datei", links) == "sehen Sie <a>Datei</a>"


def test_a_pair_whose_words_are_not_said_goes_where_it_would_be() -> None:
    assert carry("one <b>two</b> three", "eins drei", [(0, 0), (1, 2)]).count("<b>") == 1


def test_chinese_characters_are_words() -> None:
    src, codes, _ = text_and_codes(items_of("my <b>red</b> dog"))
    tgt = "我的红狗"
    links = np.zeros((4, 3))
    for row, column in ((0, 0), (1, 0), (2, 1), (3, 2)):
        links[row, column] = 1
    letters = [Word(place, place + 1) for place in range(4)]
    assert shown(transfer_markup(AlignedPair(src, tgt, words(src), letters), codes, links)) == "我的<b>红</b>狗"


def random_markup(rng: random.Random, depth: int = 0) -> str:
    out = ""
    for _ in range(rng.randint(0, 4)):
        kind = rng.randrange(6 if depth < 4 else 3)
        if kind < 2:
            out += rng.choice(["word ", "a", " ", "two words ", "你好", "x. Y ", ", "])
        elif kind == 2:
            out += rng.choice(["<x/>", "{p}", "<y/> "])
        else:
            name = rng.choice("bia")
            out += f"<{name}>{random_markup(rng, depth + 1)}</{name}>"
    return out


@pytest.mark.system
def test_every_code_comes_once_and_nested_whatever_the_links_are() -> None:
    rng, numbers = random.Random(1), np.random.default_rng(1)
    for round_number in range(10_000):
        items = items_of(random_markup(rng))
        src, codes, protected = text_and_codes(items)
        tgt = "".join(rng.choice(["wort ", "b ", "。", "词", " ", chr(0xE100)]) for _ in range(rng.randrange(12)))
        src_words, tgt_words = words(src), words(tgt)
        links = numbers.random((len(tgt_words), len(src_words)))
        if round_number % 5 == 0:
            links[:] = 0
        if round_number % 5 == 1:
            links[:] = np.nan
        out = transfer_markup(AlignedPair(src, tgt, src_words, tgt_words), codes, links)
        assert Counter(item for item in out if isinstance(item, Code)) == Counter(code for _, code in codes)
        assert "".join(item for item in out if isinstance(item, str)) == tgt
        stack: list[int] = []
        for item in out:
            if isinstance(item, Code) and item.kind == "open":
                stack.append(item.pair)
            elif isinstance(item, Code) and item.kind == "close":
                assert stack.pop() == item.pair
        assert not stack
        assert all(isinstance(piece, str) for piece in protected)


def test_a_word_that_the_source_has_twice_in_parts_and_the_translation_once() -> None:
    markup = "H<sub>2</sub>O is <b>H2</b>O"
    translation = carry(markup, "H2O", [(0, 0)])
    assert re.sub("<[^>]*>", "", translation) == "H2O"
    assert Counter(re.findall("<[^>]*>", translation)) == Counter(re.findall("<[^>]*>", markup))
    assert translation.startswith("H<sub>2</sub>")


def test_codes_may_be_nested_as_deep_as_they_like() -> None:
    markup = "<b>" * 2000 + "one" + "</b>" * 2000 + " two"
    assert carry(markup, "one two") == markup


@pytest.mark.parametrize(
    ("markup", "tgt", "pairs", "expected"),
    [
        (  # browsermt/bergamot-translator pull 253: a tag within a word, and an empty one
            "I <b>like</b> to <u>drive</u> this car.", "Ich fahre gerne dieses Auto.",
            [(0, 0), (1, 3), (2, 1), (3, 4), (4, 5), (5, 6)], "Ich <u>fahre</u> <b>gerne</b> dieses Auto.",
        ),
        ("<b>d</b><i>o</i><a>g</a>", "perro", [(0, 0)], "<b>pe</b><i>r</i><a>ro</a>"),  # issue 288: tags lost
        ("Der <b>Be</b><i>fehl</i> da", "The command there", None, "The <b>co</b><i>mmand</i> there"),
        ("Der <b>Be</b><i>fehl</i> da", "这 令 里", None, "这 <b>令</b><i></i> 里"),  # no letter for each
        (  # issue 288: an element in another one
            "<b>1<i> dentro b</i></b> <i>italic</i>", "1 in b italic", [(0, 0), (1, 1), (2, 2), (3, 3)],
            "<b>1<i> in b</i></b> <i>italic</i>",
        ),
        (  # pull 312: two links of which the translation has one word
            "este a <a>Julio</a> <a>César</a>, quien", "to Caesar, who", [(0, 1), (1, 3), (2, 4), (3, 5)],
            "<a>to</a> <a>Caesar</a>, who",
        ),
        ("hello <u></u> world", "hallo welt", [(0, 0), (1, 1)], "hallo <u></u> welt"),  # pull 266: no text inside
        (  # pull 266: links of names
            "as <a>Meltdown</a> and <a>Spectre</a>.", "als Meltdown und Spectre.", None,
            "als <a>Meltdown</a> und <a>Spectre</a>.",
        ),
        ("<b>Hola</b> mundo", "Hello world", None, "<b>Hello</b> world"),  # mozilla firefox-translations 4
        ("Hello <b><a>world</a></b>!", "Hallo Welt!", None, "Hallo <b><a>Welt</a></b>!"),  # the same
        (  # DeepLcom/deepl-python 93: placeholders at the beginning; the text stays as it is
            "max <x/> karakters in.", "máximo de caracteres.", [(0, 0), (1, 1), (2, 1), (3, 3)],
            "máximo <x/> de caracteres.",
        ),
        (  # gitlocalize/feedback 149: a code twice
            "Text1 {code0}${/code0} Text2", "Text1 \ue100$\ue101 Text2", None, "Text1 {code0}${/code0} Text2",
        ),
    ],
)  # fmt: skip
def test_reports_about_other_programs(
    markup: str, tgt: str, pairs: list[tuple[int, int]] | None, expected: str
) -> None:
    assert carry(markup, tgt, pairs) == expected


def test_no_word_is_glued_to_a_code_that_a_mark_followed() -> None:
    code = Code("<x/>", "alone")
    assert with_blanks(["They ", code, "sleep."], ["Hallo ", code, ", schlaf."]) == ["They ", code, " sleep."]
    assert with_blanks(["Hello ", code, ", sleep."], ["Hallo ", code, ", schlaf."]) == ["Hello ", code, ", sleep."]
    assert with_blanks(["Sleep", code, "."], ["Schlaf", code, "."]) == ["Sleep", code, "."]


@pytest.mark.parametrize("codes", ["x", "xy", "x y", "xyz"])
@pytest.mark.parametrize("marks", ["", "<", ">", "<>"], ids=["none", "behind", "before", "both"])
def test_blanks_between_codes_and_pairs_stand_outside_of_the_pairs(codes: str, marks: str) -> None:
    """`one <!-- x --> **two**` must not become `one <!-- x -->** two**`."""
    begin, end, other, last = (Code(tag, kind, pair) for tag, kind, pair in (
        ("<b>", "open", 1), ("</b>", "close", 1), ("<i>", "open", 2), ("</i>", "close", 2)))  # fmt: skip
    before = [begin, "one", end] if ">" in marks else ["one"]
    after = [other, "two", last] if "<" in marks else ["two"]
    alone = [" " if letter == " " else Code(f"<{letter}/>", "alone") for letter in codes]
    source = [*before, " ", *alone, " ", *after]
    shown = "".join(item if isinstance(item, str) else item.raw for item in source)
    for left, right in (("one ", "two"), ("one", " two")):  # a blank is said once, before the codes or behind them
        one = [begin, left.strip(), end, *([" "] if left[-1] == " " else [])] if ">" in marks else [left]
        two = [*([" "] if right[0] == " " else []), other, right.strip(), last] if "<" in marks else [right]
        out = with_blanks([*one, *(code for code in alone if code != " "), *two], source)
        assert "".join(item if isinstance(item, str) else item.raw for item in out) == shown


def test_blanks_change_nothing_but_blanks() -> None:
    rng = random.Random(3)
    codes = ["<x/>", "<y/>", "<z/>"]
    for _ in range(3000):
        words = [rng.choice(["ein", " zwei", "drei ", " ", ", ", "."]) for _ in range(rng.randrange(1, 6))]
        marks = [rng.choice(codes) for _ in range(rng.randrange(1, 6))]
        sides = []
        for _ in range(2):  # the source, and a translation with other words in another order
            pieces = [*marks]
            for word in rng.sample(words, len(words)):
                pieces.insert(rng.randrange(len(pieces) + 1), word)
            sides.append([item for piece in pieces for item in ([Code(piece, "alone")] if piece in codes else [piece])])
        source, items = (joined(side) for side in sides)
        out = with_blanks(items, source)
        assert [item for item in out if isinstance(item, Code)] == [item for item in items if isinstance(item, Code)]
        assert "".join(shown(out).split()) == "".join(shown(items).split())


def joined(items: list[Item]) -> list[Item]:
    """Items without two texts side by side."""
    out: list[Item] = []
    for item in items:
        if out and isinstance(item, str) and isinstance(out[-1], str):
            out[-1] += item
        else:
            out.append(item)
    return out


def test_a_word_with_a_weak_link_to_a_pair_does_not_make_it_longer() -> None:
    pair = aligned_pair("Choose Insert now", "Wählen Sie Einfügen jetzt")
    links = np.array([[0.9, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9]])
    _, codes, _ = text_and_codes(items_of("Choose <b>Insert</b> now"))
    assert shown(transfer_markup(pair, codes, links)) == "Wählen Sie <b>Einfügen</b> jetzt"


def test_weak_words_of_a_long_pair_stay_together() -> None:
    pair = aligned_pair("the Merge Cells box", "das Feld Zellen verbinden")
    links = np.array([[0.9, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.9], [0.0, 0.0, 0.9, 0.0], [0.0, 0.05, 0.0, 0.05]])
    _, codes, _ = text_and_codes(items_of("the <b>Merge Cells</b> box"))
    assert shown(transfer_markup(pair, codes, links)) == "das Feld <b>Zellen verbinden</b>"


def test_codes_go_between_two_words_without_a_space() -> None:
    pair = aligned_pair("Press Command Ctrl in CreateChart", "BefehlStrg in CreateChart")
    _, codes, _ = text_and_codes(items_of("Press <a>Command</a> <b>Ctrl</b> in <i>CreateChart</i>"))
    links = np.zeros((4, 5))
    links[range(4), range(1, 5)] = 1
    assert shown(transfer_markup(pair, codes, links)) == "<a>Befehl</a><b>Strg</b> in <i>CreateChart</i>"


def test_a_word_that_loses_by_whatever_is_taken_away_has_no_sure_link() -> None:
    links = _links_of(np.array([[2.0, 2.2, 2.0], [0.0, 0.0, 3.0]]))
    assert links[0].sum() < 0.3
    assert links[1, 2] > 0.9
    assert _links_of(np.array([[3.0]]))[0, 0] > 0.9  # there is but one word
