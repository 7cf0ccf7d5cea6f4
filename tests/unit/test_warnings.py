"""What is visibly wrong with a translation, and choosing by agreement."""

import random
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.inference import mbr
from dragoman.inference.mbr import expected_utility
from dragoman.quality.faults import Line, warnings_of, words_lost
from dragoman.quality.warnings import Warning, WarningKind


@pytest.mark.parametrize(
    ("src", "translation", "warning"),
    [
        ("Ein Hund läuft.", "", Warning(WarningKind.EMPTY)),
        ("Ein Mann mit Hut.", "a man in a hat in a hat in a hat", Warning(WarningKind.REPETITION, "'in a hat'")),
        ("Er geht.", "he he he he goes", Warning(WarningKind.REPETITION, "'he'")),
        ("Ein Hund läuft im Park.", "Ein Hund läuft im Park.", Warning(WarningKind.SOURCE_ECHOED)),
        (
            "Ein Hund.",
            "A dog " + "and another one here " * 1 + "x" * 120,
            Warning(WarningKind.TOO_LONG, "147 characters for 9"),
        ),
        (
            "Ein sehr langer Satz über einen Hund, der durch einen Park läuft.",
            "Dog",
            Warning(WarningKind.TOO_SHORT, "3 characters for 65"),
        ),
        ("Seite 12 und 1999", "page 12", Warning(WarningKind.NUMBERS_LOST, "1999")),
        ("12 und 12", "and 12", Warning(WarningKind.NUMBERS_LOST, "12")),
    ],
)
def test_what_is_wrong_is_said(src: str, translation: str, warning: Warning) -> None:
    assert warnings_of(src, translation) == [warning]


@pytest.mark.parametrize(
    ("src", "translation", "lost"),
    [
        ("%d Hemden waren blau.", "%d.", "Hemden waren blau"),
        ("Hallo {name}!", "{name}!", "Hallo"),
        ("Seite 12", "12", "Seite"),
        ("<b>Hallo</b> Welt", "<b>-</b>", None),  # a sign may stand for two words
        ("zwölf Hemden waren blau", "12.", "Hemden waren blau"),
        ("他的衬衫是蓝色的。", "。", "他的衬衫是蓝色的"),
        ("%d Prozent", "%d%%", None),
        ("%d Prozent der Dateien", "%d %", "Prozent der Dateien"),
        ("fünf Euro", "5 €", None),
        ("zwölf", "12", None),
        ("von %d bis %d", "%d–%d", None),
        ("halb neun", "8:30", None),
        ("am 3. Mai 2024", "03/05/2024", None),
        ("3D", "3", None),
        ("%d", "%d", None),
        ("%l:%M %p", "%H:%M", None),
        ("%d Hemden", "%d shirts", None),
    ],
)
def test_words_that_are_all_lost(src: str, translation: str, lost: str | None) -> None:
    assert words_lost(Line(src, translation, ("zh" if "他" in src else "de", "en"))) == lost


def test_every_kind_has_its_sentence() -> None:
    """The wordings stand in one file, which a change of the wording changes."""
    written = (Path(__file__).parents[1] / "golden" / "warnings.txt").read_text(encoding="utf-8").splitlines()
    assert [f"{kind}: {Warning(kind, '...')}" for kind in WarningKind] == written


def test_a_warning_for_json() -> None:
    assert Warning(WarningKind.NUMBERS_LOST, "13", (4, 9)).record() == {
        "kind": "numbers-lost", "text": "numbers lost: 13", "detail": "13", "place": [4, 9],
    }  # fmt: skip
    assert Warning(WarningKind.FROM_MEMORY).record() == {"kind": "from-memory", "text": "from the memory"}
    assert [kind for kind in WarningKind if Warning(kind).is_note] == [
        WarningKind.NOT_THE_FIRST, WarningKind.SEARCHED_AGAIN, WarningKind.PLACEHOLDERS_PUT_BACK,
        WarningKind.FROM_MEMORY, WarningKind.LIKE_MEMORY,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("src", "translation"),
    [
        ("Open the file {0}.", "Ouvrez le fichier {0}."),
        ("See https://example.com/7 for the file.", "Voir https://example.com/7 pour le fichier."),
        ("Could not open {1}: file not found", "Impossible d'ouvrir {1} : fichier introuvable"),
        ("Open the file %1$s.", "Ouvrez le fichier %1$s."),
        ('Open <a href="7.html">the file</a>.', 'Ouvrez <a href="7.html">le fichier</a>.'),
        ("Write to me7@example.com &#8212; `x 4` 1️⃣", "Écrivez à me7@example.com &#8212; `x 4` 1️⃣"),
        ("%1$s has %2$d", "%2$d est à %1$s"),
    ],
)
def test_digits_of_placeholders_are_no_numbers(src: str, translation: str) -> None:
    for languages in (("en", "fr"), ("fr", "en"), ("en", "ja"), ("", "")):
        assert not {WarningKind.NUMBERS_LOST, WarningKind.NUMBERS_ADDED, WarningKind.UNITS_LOST} & {
            one.kind for one in warnings_of(src, translation, languages)
        }
    assert warnings_of("Page 7 of {7}", "Seite {7}", ("en", "de")) == [Warning(WarningKind.NUMBERS_LOST, "7")]


@pytest.mark.parametrize(
    ("src", "translation"),
    [
        ("Ein Hund läuft.", "A dog runs."),
        ("", ""),
        ("nein, nein, nein, nein", "no, no, no, no"),
        ("Berlin", "Berlin"),
        ("两个人在街上走路，旁边有一条狗。", "Two people are walking along the street and beside them there is a dog."),
        ("3 dogs", "drei Hunde"),
        ("1000 Leute, ١٢ Hunde", "1,000 people, 12 dogs"),
        ("https://x.org/a/b/c/d", "https://x.org/a/b/c/d"),
        ("Nein!", "No, that is not so."),
        ("very very very good", "sehr gut"),
        ("Sehr gut", "very very very good"),
    ],
)
def test_no_alarm(src: str, translation: str) -> None:
    assert warnings_of(src, translation) == []


@pytest.mark.parametrize(
    ("src", "translation", "languages"),
    [
        ("HAH HAH! HEH HEH HEH!", "ХАХ ХАХ! ХЕ ХЕ ХЕ!", ("en", "ru")),  # Weblate 4023
        ("Remove the comments (``#``) at the front.", "Távolítsa el a (``#``) karaktereket.", ("en", "hu")),  # 5576
        ("He goes home slowly.", "वह धीरे धीरे घर जाता है।", ("en", "hi")),  # 8224
        ("He goes home slowly.", "Dia pulang pelan pelan saja.", ("en", "id")),
        ("Yes, come with us.", "Jo jo, kom mei mei ús.", ("en", "fy")),  # 6773
        ("Once it is accepted, it is marked.", "Sobald sie angenommen wird, wird er markiert.", ("en", "de")),  # 9351
        ("%d Hz", "%d Hz", ("en", "de")),  # translate-toolkit 236
        ("Call 12 people.", "با ۱۲ نفر تماس بگیرید.", ("en", "fa")),  # Pootle 4203
    ],
)
def test_reports_of_false_alarms_elsewhere(src: str, translation: str, languages: tuple[str, str]) -> None:
    assert warnings_of(src, translation, languages) == []


@pytest.mark.parametrize(
    ("translation", "warning"),
    [
        ("Ein Hund läuft, im Park!", Warning(WarningKind.SOURCE_ECHOED)),  # case and marks are no translation
        ("A dog runs there. A dog runs there.", Warning(WarningKind.REPETITION, "'a dog runs there'")),
        ("一只狗在公园里一只狗在公园里一只狗在公园里", Warning(WarningKind.REPETITION, "'一只狗在公园里'")),
        ("一只狗在公园里 一只狗在公园里 一只狗在公园里", Warning(WarningKind.REPETITION, "'一只狗在公园里'")),
    ],
)
def test_every_door_calls_the_same_a_copy_and_a_repetition(translation: str, warning: Warning) -> None:
    assert warning in warnings_of("Ein Hund läuft im Park.", translation)


@pytest.mark.parametrize(("utility", "metric"), [("chrf", CHRF()), ("bleu", BLEU(effective_order=True))])
def test_expected_utility_is_the_mean_over_all_pairs(utility: str, metric: CHRF | BLEU) -> None:
    texts = ["a man walks .", "a man is walking .", "a man walks .", "two dogs", ""]
    found = expected_utility(texts, utility)
    assert list(found) == ["a man walks .", "a man is walking .", "two dogs", ""]
    for text, value in found.items():
        expected = sum(metric.sentence_score(text, [other]).score for other in texts) / len(texts)
        assert value == pytest.approx(expected)
    assert max(found, key=lambda text: found[text]) == "a man walks ."


@pytest.mark.parametrize(("utility", "metric"), [("chrf", CHRF()), ("bleu", BLEU(effective_order=True))])
def test_utilities_are_those_of_sacrebleu(utility: str, metric: CHRF | BLEU) -> None:
    rng = random.Random(4)
    words = ["a", "man", "ein", "Hund", ".", "(x)", "狗在跑", "e\u0301", "\u00a0", " ", "100%", "-", "ha"]
    texts = ["", " ", "a", "ha ha ha ha ha", "hahahaha", *(" ".join(rng.choices(words, k=n % 13)) for n in range(30))]
    found = mbr.UTILITIES[utility](texts, "13a")
    for row, text in enumerate(texts):
        for column, other in enumerate(texts):
            expected = metric.sentence_score(text, [other]).score
            assert found[row, column] == pytest.approx(expected, abs=1e-9), (text, other)


def test_n_grams_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["abcabc", "cab", "bca", "", "zz"]
    shared, totals = mbr.overlaps(texts)
    monkeypatch.setattr(mbr, "NGRAMS_AT_ONCE", 2)
    assert all(map(np.array_equal, mbr.overlaps(texts), (shared, totals)))
    assert mbr.overlaps(["", ""])[0].tolist() == [[0, 0], [0, 0]]


def test_an_unknown_utility_is_refused() -> None:
    with raises_error(Error.UNKNOWN_NAME):
        expected_utility(["a"], "ter")
