"""The language of two words, each pair of them by itself."""

import pytest

from dragoman.languages import identification
from dragoman.languages.identification import SAMPLE_LETTERS, likely_languages, other_language, sample, source_language

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


# Words that befell LibreTranslate (#902, #217, #395), and names, which are of no language.
SHORT = [
    "Hallo",
    "Auto",
    "Haus",
    "Danke",
    "Ciabatta!",
    "perro",
    "Pfannkuchen",
    "Max Mustermann",
    "Berlin",
    "OK",
    "12 + 3",
    "...",
]
SENTENCES = {
    "fr": ["Je voudrais une bière.", "Les enfants jouent dans le jardin."],
    "es": ["Buenos días", "El perro duerme en la casa."],
    "it": ["La tua password non è corretta", "Il bambino mangia una mela."],
    "nl": ["Waar kan ik hier een kaartje kopen?"],
    "pl": ["Gdzie jest najbliższy dworzec?"],
    "tr": ["En yakın istasyon nerede acaba?"],
    "ru": ["Где находится вокзал?"],
    "zh": ["如果用于切换输入语言的本地键盘快捷键被主机所捕获，您可能需要使用替代方法。"],
    "ja": ["駅はどこですか。"],
    "ko": ["역이 어디에 있습니까?"],
    "el": ["Πού είναι ο σταθμός;"],
    "ar": ["أين المحطة؟"],
    "hi": ["स्टेशन कहाँ है?"],
}


def test_nine_of_ten_pairs_of_words_are_told() -> None:
    found = {text: likely_languages(text, TEN)[0][0] for texts in TWO_WORDS.values() for text in texts}
    wrong = {text: found[text] for code, texts in TWO_WORDS.items() for text in texts if found[text] != code}
    assert len(wrong) <= 4, wrong


def test_probabilities_add_up_and_what_tells_nothing_says_nothing() -> None:
    for text in ("guten Morgen", "The man sleeps on the street today.", "Ελληνικά"):
        assert sum(share for _, share in likely_languages(text, TEN)) == pytest.approx(1)
    assert {share for _, share in likely_languages("12 + 3", TEN)} == {0.0}
    assert dict(likely_languages("guten Morgen", ["xx", "de"]))["xx"] == 0


def test_related_languages_are_told_apart() -> None:
    ukrainian = "Це речення написане українською мовою, і його їжак теж розуміє."
    assert likely_languages(ukrainian, ["de", "en", "ru", "uk"])[0][0] == "uk"
    assert likely_languages("Der Mann schläft.", ["de", "en", "ar"])[0][0] == "de"


def test_the_codes_of_a_region_come_back_as_they_were_asked() -> None:
    """LibreTranslate#934: Portuguese was not told where Brazilian Portuguese alone was served."""
    assert likely_languages("muito obrigado", ["pt-BR", "es"])[0][0] == "pt-BR"
    assert source_language("Onde fica a estação de comboios?", ["pt-BR"], "en")[0] == "pt-BR"
    assert source_language("Hvor er stasjonen, er du snill?", ["nb"], "en")[0] == "nb"


@pytest.mark.parametrize("text", SHORT)
def test_a_text_that_is_too_short_to_tell_is_translated(text: str) -> None:
    assert source_language(text, ["de"], "en")[0] == "de"


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in SENTENCES.items() for text in texts])
def test_a_language_that_is_not_served_is_taken_for_no_other_and_one_that_is_for_itself(code: str, text: str) -> None:
    assert source_language(text, ["de"], "en")[0] == code
    assert source_language(text, ["de", code], "en")[0] == code
    assert source_language("Привет", ["de"], "en")[0] not in ("de", "en")


def test_what_is_in_the_target_language_stays_only_if_that_is_sure() -> None:
    assert source_language("The man sleeps on the street.", ["de"], "en")[0] == "en"
    assert source_language("Der Mann schläft.", ["de", "fr"], "en")[0] == "de"
    assert source_language("Der Mann schläft.", ["en"], "fr", ["de", "en", "fr"])[0] == "de"
    assert source_language("Guten Morgen", ["en"], "de")[0] == "de"
    assert source_language("hello handsome", [], "en", ["de", "en"])[0] == "en"
    assert source_language("Je voudrais une bière.", ["xx"], "en")[0] == "xx"  # a language that nobody can tell


def test_little_of_a_long_text_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    letters: list[int] = []
    identifier = identification._identifier(())

    class Counted:
        labels = identifier.labels

        def rank(self, text: str) -> object:
            letters.append(len(text))
            return identifier.rank(text)

    monkeypatch.setattr(identification, "_identifier", lambda among: Counted())
    for _ in range(128):
        source_language("Der Mann schläft. " * 300, ["de"], "en")
    assert len(letters) == 128
    assert max(letters) <= sum(SAMPLE_LETTERS) + 3
    assert sample("Anfang " + "x" * 5000).startswith("Anfang")


@pytest.mark.parametrize(
    ("text", "language"),
    [("Hola", "es"), ("Bonjour!", "fr"), ("Ciao", "it"), ("Merci", "fr"), ("obrigado", "pt"), ("Hallo", "de")],
)
def test_what_people_try_first_is_known(text: str, language: str) -> None:
    assert source_language(text, ["de"], "en", ["de", "en"])[0] == language


@pytest.mark.parametrize(
    ("text", "code", "other"),
    [
        ("Нажмите кнопку, чтобы открыть окно с параметрами.", "uk", "ru"),
        ("Нажмите кнопку, чтобы открыть окно с параметрами.", "ru", None),
        ("Натисніть кнопку, щоб відкрити вікно параметрів.", "ru", "uk"),
        ("Натисніть кнопку, щоб відкрити вікно параметрів.", "uk", None),
        ("Націсніце кнопку, каб адкрыць акно параметраў.", "ru", "be"),
        ("Кликнете на копчето за да го отворите прозорецот; најдете ја датотеката.", "bg", "mk"),
        ("Klepnutím na tlačítko otevřete dialogové okno, ve kterém je můžete změnit.", "sk", "cs"),
        ("Kliknutím otvoríte dialógové okno, kde môžete zmeniť veľkosť; ďalšie možnosti sú nižšie.", "cs", "sk"),
        ("文章作成支援。論理演算子。", "ja", None),
        ("部分集合または等価", "zh-CN", "ja"),
        ("请单击该按钮，然后在打开的对话框中选择所需的选项。", "ja", "zh"),
        ("Заменить файл на новый? Файл «Київ» уже есть.", "uk", None),
    ],
)
def test_neighbours_are_told_by_their_own_letters(text: str, code: str, other: str | None) -> None:
    assert other_language(text, code, "en") == other
