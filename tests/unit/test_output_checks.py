"""Planted faults are found and named with their lines, and a clean output has none."""

import random

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.quality.output_checks import check_output, leaks, named
from dragoman.quality.slices import slices
from dragoman.quality.test_set import TestSet

COLOURS = ["red", "green", "blue", "yellow", "black", "white", "brown", "grey", "pink", "golden"]
ANIMALS = ["dog", "cat", "horse", "bird", "fish", "mouse", "tiger", "sheep", "goat", "rabbit", "duck"]
VERBS = ["runs", "jumps", "sleeps", "eats", "waits", "sings", "falls", "hides", "walks", "drinks"]
PLACES = ["house", "garden", "street", "river", "market", "kitchen", "forest", "station", "bridge", "school", "tower"]
GERMAN = {
    "the": "das", "red": "rote", "green": "grüne", "blue": "blaue", "yellow": "gelbe", "black": "schwarze",
    "white": "weiße", "brown": "braune", "grey": "graue", "pink": "rosa", "golden": "goldene", "in": "in",
    "dog": "Hund", "cat": "Katze", "horse": "Pferd", "bird": "Vogel", "fish": "Fisch", "mouse": "Maus",
    "tiger": "Tiger", "sheep": "Schaf", "goat": "Ziege", "rabbit": "Hase", "duck": "Ente", "runs": "läuft",
    "jumps": "springt", "sleeps": "schläft", "eats": "isst", "waits": "wartet", "sings": "singt", "falls": "fällt",
    "hides": "lauert", "walks": "geht", "drinks": "trinkt", "house": "Haus", "garden": "Garten", "street": "Straße",
    "river": "Fluss", "market": "Markt", "kitchen": "Küche", "forest": "Wald", "station": "Bahnhof",
    "bridge": "Brücke", "school": "Schule", "tower": "Turm", "not": "nicht", "with": "mit", "friends": "Freunden",
}  # fmt: skip


def sentence(rng, number):
    words = ["the", rng.choice(COLOURS), rng.choice(ANIMALS), rng.choice(VERBS), "in", "the", rng.choice(COLOURS)]
    words.append(rng.choice(PLACES))
    if number % 8 == 0:
        words.insert(4, "not")
    if number % 7 == 0:
        words += ["with", str(rng.randint(13, 99)), "friends"]
    return words


@pytest.fixture(scope="module")
def outputs():
    """(test set, the output of a system that is mostly right)."""
    rng = random.Random(3)
    lines = [sentence(rng, number) for number in range(200)]
    references = [" ".join(GERMAN.get(word, word) for word in words) + "." for words in lines]
    references = [line[0].upper() + line[1:] for line in references]
    hypotheses = []
    for line in references:
        words = line.split()
        if rng.random() < 0.4:
            words[1] = GERMAN[rng.choice(COLOURS)]
        if rng.random() < 0.2:
            words[2] = GERMAN[rng.choice(ANIMALS)]
        hypotheses.append(" ".join(words))
    sources = [" ".join(words) + "." for words in lines]
    return TestSet(sources, [references], ("en", "de"), "planted"), hypotheses


def kinds(test, lines):
    return {fault.kind: fault for fault in check_output(test, lines)}


def test_a_clean_output_has_no_fault(outputs):
    assert kinds(*outputs) == {}


def test_the_references_themselves_are_told(outputs):
    test, _ = outputs
    assert set(kinds(test, test.references[0])) == {"references"}


@pytest.mark.parametrize("first", [0, 60, 150])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_line_too_many_or_too_few_shifts_the_rest(outputs, first, direction):
    test, lines = outputs
    moved = [*lines[:first], "Ein Satz zu viel.", *lines[first:-1]]
    if direction < 0:
        moved = [*lines[:first], *lines[first + 1 :], "Und Schluss."]
    found = kinds(test, moved)
    assert set(found) == {"shifted"}
    assert abs(found["shifted"].lines[0] - (first + 1)) <= 3
    assert f"{1} line further {'up' if direction > 0 else 'down'}" in found["shifted"].message


def test_swapped_lines_are_named(outputs):
    test, lines = outputs
    swapped = list(lines)
    for one, other in ((3, 150), (20, 21), (77, 90), (8, 199), (33, 111)):
        swapped[one], swapped[other] = swapped[other], swapped[one]
    found = kinds(test, swapped)
    assert set(found) == {"swapped"}
    assert set(found["swapped"].lines) == {4, 151, 21, 22, 78, 91, 9, 200, 34, 112}


def change(lines, rows, function):
    return [function(row, line) if row in rows else line for row, line in enumerate(lines)]


SOME = range(5, 200, 20)


@pytest.mark.parametrize(
    ("kind", "rows", "function"),
    [
        ("truncated", SOME, lambda test, row, line: " ".join(line.split()[:4])),
        ("untranslated", SOME, lambda test, row, line: test.sources[row]),
        ("repeated", SOME, lambda test, row, line: line[:-1] + " in das Haus in das Haus in das Haus."),
        ("empty", SOME, lambda test, row, line: " "),
        ("duplicated", SOME, lambda test, row, line: "Das rote Pferd schläft in das blaue Haus."),
        ("negation dropped", range(200), lambda test, row, line: line.replace(" nicht", "")),
        ("numbers changed", range(200), lambda test, row, line: "".join("7" if c.isdigit() else c for c in line)),
    ],
)
def test_planted_faults_are_named_with_their_lines(outputs, kind, rows, function):
    test, lines = outputs
    planted = change(lines, rows, lambda row, line: function(test, row, line))
    found = kinds(test, planted)
    assert kind in found
    changed = {row + 1 for row in range(200) if planted[row] != lines[row]}
    assert set(found[kind].lines) <= changed
    assert len(found[kind].lines) >= 0.8 * len(changed)


def test_another_language_is_named():
    german = ["Ein Mann geht mit seinem Hund durch den Park.", "Die Frau kauft auf dem Markt frisches Brot ein."] * 5
    french = ["Un homme marche avec son chien dans le parc.", "La femme achète du pain frais au marché."] * 5
    english = ["A man walks through the park with his dog.", "The woman buys fresh bread at the market."] * 5
    found = kinds(TestSet(english, [german], ("en", "de")), french)
    assert "10 lines are in French, not German" in found["wrong language"].message


def test_what_the_reference_does_is_no_fault(outputs):
    test, lines = outputs
    without = [line.replace(" nicht", "") for line in test.references[0]]
    loose = TestSet(test.sources, [without], test.languages)
    assert "negation dropped" not in kinds(loose, [line.replace(" nicht", "") for line in lines])


def test_leaks_name_the_test_lines(outputs):
    test, _ = outputs
    assert leaks(test, ["nothing of it", "another"]) == []
    (found,) = leaks(test, [test.sources[9].upper(), test.sources[4].replace(".", "!")])
    assert found.lines == (5, 10)


def test_only_some_lines_are_listed():
    assert named(()) == ""
    assert named([7]) == " (line 7)"


def test_parts_by_length_rarity_and_label(tmp_path):
    test = TestSet(["one two", "three " * 12, "two"], [["x"] * 3], ("en", "de"))
    assert slices(test, "length") == {"length 1-10": [0, 2], "length 11-20": [1]}
    training = ["two two two three", "two"]
    assert slices(test, "rarity", training) == {
        "rarest word 0 times": [0],
        "rarest word 1-5 times": [1, 2],
    }
    with raises_error(Error.MISSING_OPTION):
        slices(test, "rarity")
    (tmp_path / "labels").write_text("law\nnews\nlaw\n", encoding="utf-8")
    assert slices(test, str(tmp_path / "labels")) == {"law": [0, 2], "news": [1]}
    (tmp_path / "labels").write_text("law\n", encoding="utf-8")
    with raises_error(Error.UNEQUAL_COUNTS):
        slices(test, str(tmp_path / "labels"))
