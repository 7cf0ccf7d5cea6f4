"""Capitals: which lines are in them, and how each language writes them."""

import random

import pytest

from dragoman.inference.translation import Translation
from dragoman.pipeline.capitals import in_lower_case
from dragoman.text.augment import TextAugmentConfig
from dragoman.text.case import capitalized, is_in_capitals, lower, upper


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("افتح ملف PDF من القائمة", "ar", False),
        ("NATO在布鲁塞尔举行会议，讨论安全问题。", "zh", False),
        ("이 파일은 PDF 형식입니다", "ko", False),
        ("ไฟล์นี้เป็น PDF ครับ", "th", False),
        ("この ファイルは PDF です", "ja", False),
        ("הקובץ הזה הוא PDF בלבד", "he", False),
        ("የHTML ሰነድ ወደ PDF መላኪያ", "am", False),
        ("PDF EXPORT করুন", "bn", False),
        ("ISO LATIN", "zh_Latn", True),
        ("THE CITY IS OPEN", "en", True),
        ("WELCOME TO 北京 AND ENJOY", "en", True),
        ("GROßE STRAßE GESPERRT", "de", True),
        ("SALIDA Nº 5 CERRADA", "es", True),
        ("NA hÉIREANNAIGH I nGAEILGE", "ga", True),
        ("Na hÉireannaigh i nGaeilge", "ga", False),
        ("ᲓᲦᲔᲡ ᲙᲐᲠᲒᲘ ᲐᲛᲘᲜᲓᲘᲐ", "ka", True),
        ("ეს PDF XML ფაილია", "ka", False),
    ],
)
def test_lines_in_capitals(text: str, language: str, expected: bool) -> None:
    assert is_in_capitals(text, language) == expected
    if language not in ("ga", "bn"):
        assert is_in_capitals(text) == expected, "of no known language"


@pytest.mark.parametrize(
    ("language", "small", "capital"),
    [
        ("tr", "istanbul açık, bilgi işlevleri", "İSTANBUL AÇIK, BİLGİ İŞLEVLERİ"),
        ("az_Cyrl", "ilk", "ILK"),
        ("kk", "қала", "ҚАЛА"),
        ("kk_Latn", "ilk ışık", "İLK IŞIK"),
        ("en", "ice", "ICE"),
        ("el", "ο κόσμος είναι μεγάλος", "Ο ΚΟΣΜΟΣ ΕΙΝΑΙ ΜΕΓΑΛΟΣ"),
        ("el", "μαΐου, τσάι, πλάι, café", "ΜΑΪΟΥ, ΤΣΑΪ, ΠΛΑΪ, CAFÉ"),
        ("el", "ναι ή όχι", "ΝΑΙ Ή ΟΧΙ"),
        ("ga", "na hÉireannaigh i nGaeilge", "NA hÉIREANNAIGH I nGAEILGE"),
        ("ga", "an t-athair ar an mbus, i bhfad", "AN tATHAIR AR AN mBUS, I bhFAD"),
        ("lt", "i\u0307\u0301", "I\u0301"),
        ("hy", "և", "ԵՎ"),
        ("de", "straße", "STRASSE"),
        ("nl", "ijs", "IJS"),
        ("ka", "დღე", "ᲓᲦᲔ"),
        ("hr", "ǆep", "ǄEP"),
    ],
)
def test_capitals(language: str, small: str, capital: str) -> None:
    assert upper(small, language) == capital
    assert upper(capital, language) == capital


@pytest.mark.parametrize(
    ("language", "capital", "small"),
    [
        ("tr", "İSTANBUL'DA IŞIK VAR", "istanbul'da ışık var"),
        ("tr", "I\u0307STANBUL", "istanbul"),
        ("el", "Ο ΚΟΣΜΟΣ ΕΙΝΑΙ", "ο κοσμος ειναι"),
        ("ga", "AN tATHAIR, nATHAIR", "an t-athair, n-athair"),
        ("de", "GROẞE", "große"),
        ("lt", "Í", "i\u0307\u0301"),
        ("ka", "ᲓᲦᲔ", "დღე"),
    ],
)
def test_small_letters(language: str, capital: str, small: str) -> None:
    assert lower(capital, language) == small


def test_the_first_letter() -> None:
    assert capitalized("ijsland", "nl") == "IJsland"
    assert capitalized("იანვარი", "ka") == "იანვარი"  # no title case: str.upper gives Mtavruli
    assert capitalized("", "nl") == ""


def test_lines_in_capitals_are_read_and_answered_by_the_rules_of_their_languages() -> None:
    read: list[str] = []

    def n_best(texts: list[str]) -> list[list[Translation]]:
        read.extend(texts)
        return [[Translation("ο κόσμος {X} είναι μεγάλος", 0.0, 0.0)] for _ in texts]

    made = in_lower_case(n_best, ["İSTANBUL'DA {X} IŞIK VAR", "PDF dosyası"], ("tr", "el"))
    assert read == ["istanbul'da {X} ışık var", "PDF dosyası"]
    assert [items[0].text for items in made] == ["Ο ΚΟΣΜΟΣ {X} ΕΙΝΑΙ ΜΕΓΑΛΟΣ", "ο κόσμος {X} είναι μεγάλος"]


def test_training_pairs_are_put_into_capitals_by_the_rules_of_their_languages() -> None:
    change = TextAugmentConfig(upper=1.0)
    assert change("bilgi", "κόσμος", random.Random(1), ("tr", "el")) == ("BİLGİ", "ΚΟΣΜΟΣ")
    assert change("Idee", "idea", random.Random(1)) == ("IDEE", "IDEA")
