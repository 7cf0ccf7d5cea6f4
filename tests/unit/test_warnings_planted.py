"""Guards against planted faults: of 300 faults of twelve kinds at least 95 % are warned of; sound sentences are not."""

import itertools
import re
from collections.abc import Callable

import pytest

from dragoman.corpora import embedded
from dragoman.quality.faults import source_warnings, warnings_of
from dragoman.quality.warnings import Warning, WarningKind

Pair = tuple[str, str]
MONTHS = ["January", "March", "June", "October", "December"]
THINGS = [("Kaffee", "coffee"), ("Frühstück", "breakfast"), ("Wartung", "maintenance"), ("Versand", "shipping"),
          ("Zubehör", "equipment")]  # fmt: skip
LANGUAGES = ("de", "en")


def pairs() -> list[Pair]:
    """25 sound pairs with a version, a date, an amount, quotation marks and two sentences each."""
    found = []
    for (place, month), (german, english) in itertools.product(enumerate(MONTHS), THINGS):
        day, number, price = 3 + 5 * place, 2 * place + 1, 1000 * (place + 2) + 7 * len(german)
        german_price, english_price = f"{price:,}".replace(",", "."), f"{price:,}"
        date = f"{day:02d}.{[1, 3, 6, 10, 12][place]:02d}.2024"
        found.append(
            (
                f"Die Version v2.{number}.1 vom {date} kostet {german_price} € im Jahr. "
                f"Ist der Dienst „{german}“ für {number + 2} Personen in diesem Preis enthalten?",
                f"Version v2.{number}.1 of {day} {month} 2024 costs {english_price} € a year. "
                f"Is the “{english}” service for {number + 2} people included in this price?",
            )
        )
    return found


def replaced(pattern: str, by: str) -> Callable[[Pair], Pair]:
    def fault(pair: Pair) -> Pair:
        text, count = re.subn(pattern, by, pair[1], count=1)
        assert count
        return pair[0], text

    return fault


FAULTS: dict[str, Callable[[Pair], Pair]] = {
    "number lost": replaced(r" for \d+ people", " for people"),
    "amount changed": replaced(r"costs (\d),", r"costs 9\1,"),
    "date changed": replaced(r"of \d+ ", "of 31 "),
    "version lost": replaced(r" v[\d.]+", ""),
    "unit changed": replaced("€", "$"),
    "sentence lost": replaced(r" Is the .*", ""),
    "quotes lost": replaced(r"“(\w+)”", r"\1"),
    "doubled word": replaced(r"costs", "costs costs"),
    "repetition": replaced(r"in this price\?", "in this price in this price in this price in this price?"),
    "not translated": lambda pair: (pair[0], pair[0].replace("Version", "version")),
    "source of another language": lambda pair: (pair[1], pair[1]),
    "source in capitals": lambda pair: (pair[0].upper(), pair[1].upper()),
}


def warned(pair: Pair) -> list[Warning]:
    return warnings_of(*pair, LANGUAGES) + source_warnings(pair[0], LANGUAGES)


def test_planted_faults_are_warned_of() -> None:
    found = {name: sum(bool(warned(fault(pair))) for pair in pairs()) for name, fault in FAULTS.items()}
    assert len(pairs()) * len(FAULTS) == 300
    assert sum(found.values()) >= 0.95 * 300, found
    assert min(found.values()) >= 20, found


def test_a_source_of_another_script_is_named() -> None:
    assert source_warnings("中文句子在这里。", LANGUAGES) == [
        Warning(WarningKind.SOURCE_SCRIPT, "Han script, not in Latin")
    ]
    assert source_warnings("Der Film heißt 英雄.", LANGUAGES) == []


def test_sound_pairs_are_not_warned_of() -> None:
    assert [pair for pair in pairs() if warned(pair)] == []
    for languages in ("de-en", "en-de", "zh-en", "en-zh"):
        src_lang, tgt_lang = languages.split("-")
        sound = list(itertools.islice(embedded.sentences(languages, "test", 250, 1), 250))
        loud = [
            (src, tgt, found)
            for src, tgt in sound
            if (found := warnings_of(src, tgt, (src_lang, tgt_lang)) + source_warnings(src, (src_lang, tgt_lang)))
        ]
        assert len(loud) <= 0.01 * len(sound), (languages, loud[:5])


@pytest.mark.parametrize(
    ("src", "translation", "languages", "warning"),
    [
        ("Er hat 3 Bücher.", "He has fresh books.", ("de", "en"), Warning(WarningKind.NUMBERS_LOST, "3")),
        ("Er hat 3 Bücher.", "He has three books.", ("de", "en"), None),
        (
            "Version v2.3.1-beta kostet 5 €.",
            "The version costs 5 €.",
            ("de", "en"),
            Warning(WarningKind.NUMBERS_LOST, "v2.3.1-beta"),
        ),
        ("Es kostet 1.500,50 €.", "It costs €1,500.50.", ("de", "en"), None),
        ("Am 12.03.2024 um 14:30.", "On March 12, 2024 at 2:30 pm.", ("de", "en"), None),
        ("Am 12.03.2024.", "On March 13, 2024.", ("de", "en"), Warning(WarningKind.NUMBERS_LOST, "12.03.2024")),
        ("It has 26 letters.", "有二十六个字母。", ("en", "zh"), None),
        ("Zwanzig Leute.", "20 people.", ("de", "en"), None),
        ("Viele Leute.", "20 people.", ("de", "en"), Warning(WarningKind.NUMBERS_ADDED, "20")),
        ("Es sind 5 km.", "It is 5 miles.", ("de", "en"), Warning(WarningKind.UNITS_LOST, "km")),
        (
            "Wo ist er? Wo ist sie?",
            "Where is he?",
            ("de", "en"),
            Warning(WarningKind.QUESTIONS_LOST, "2 in the source, 1 here"),
        ),
        ("Dr. Maier kam z. B. gestern.", "Dr. Maier came yesterday, say.", ("de", "en"), None),
        ("Er sagt „ja“.", "He says yes.", ("de", "en"), Warning(WarningKind.MARKS_LOST, "quotation marks")),
        ("Sie, die die Bücher las.", "She who read the books.", ("de", "en"), None),
    ],
)
def test_what_is_and_what_is_not_a_fault(
    src: str, translation: str, languages: tuple[str, str], warning: Warning | None
) -> None:
    assert warnings_of(src, translation, languages) == ([warning] if warning else [])
