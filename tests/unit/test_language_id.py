"""The language of two words, each pair of them by itself."""

import pytest

from dragoman.languages.identification import likely_languages

TEN = ("cs", "de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru")
TWO_WORDS = {
    "cs": ["dobrý den", "děkuji vám", "modré auto", "malé dítě"],
    "de": ["guten Morgen", "vielen Dank", "blaues Auto", "kleines Kind"],
    "en": ["good morning", "thank you", "blue car", "the child"],
    "es": ["buenos días", "muchas gracias", "coche azul", "la ventana"],
    "fr": ["bonne journée", "merci beaucoup", "voiture bleue", "les enfants"],
    "it": ["buona giornata", "grazie mille", "macchina blu", "il bambino"],
    "nl": ["goede morgen", "dank jullie", "blauwe auto", "het kind"],
    "pl": ["dzień dobry", "dziękuję bardzo", "niebieski samochód", "małe dziecko"],
    "pt": ["bom dia", "muito obrigado", "carro azul", "as crianças"],
    "ru": ["доброе утро", "большое спасибо", "синяя машина", "маленький ребёнок"],
}


def test_nine_of_ten_pairs_of_words_are_told() -> None:
    found = {text: likely_languages(text, TEN)[0][0] for texts in TWO_WORDS.values() for text in texts}
    wrong = {text: found[text] for code, texts in TWO_WORDS.items() for text in texts if found[text] != code}
    assert len(wrong) <= 4, wrong


def test_probabilities_add_up_and_what_tells_nothing_says_nothing() -> None:
    for text in ("guten Morgen", "The man sleeps on the street today.", "Ελληνικά"):
        assert sum(share for _, share in likely_languages(text, TEN)) == pytest.approx(1)
    assert {share for _, share in likely_languages("12 + 3", TEN)} == {0.0}
    assert likely_languages("guten Morgen", ["de"]) == [("de", 1.0)]


def test_related_languages_are_told_apart() -> None:
    assert (
        likely_languages("Це речення написане українською мовою, і його їжак теж розуміє.", ["de", "en", "ru", "uk"])[
            0
        ][0]
        == "uk"
    )
    assert likely_languages("Der Mann schläft.", ["de", "en", "ar"])[0][0] == "de"


def test_the_codes_of_a_region_come_back_as_they_were_asked() -> None:
    assert likely_languages("muito obrigado", ["pt-BR", "es"])[0][0] == "pt-BR"
