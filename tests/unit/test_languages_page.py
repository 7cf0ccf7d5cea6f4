"""The table of docs/languages.md is that of its script, and the script measures what it says."""

import json
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from tests.scripts import script

from dragoman.languages.codes import language_of

ROOT = Path(__file__).parents[2]
LANGUAGES = script("benchmarks/languages.py")
ROWS = json.loads(LANGUAGES.MEASURED.read_text(encoding="utf-8"))


def test_the_page_has_the_table_of_what_was_measured_and_of_what_the_code_says_now() -> None:
    page = (ROOT / "docs/languages.md").read_text(encoding="utf-8")
    table = page.split("<!-- table -->\n")[1].split("<!-- end -->")[0]
    assert table.split("\n", 2)[2].strip() == LANGUAGES.table(ROWS)


def test_the_page_says_in_how_many_languages_warnings_are_rare() -> None:
    page = (ROOT / "docs/languages.md").read_text(encoding="utf-8")
    rare = sum(100 * figures["loud"] <= LANGUAGES.PAIRS for figures in ROWS.values())
    assert f"{rare} of the {len(ROWS)} languages" in page


def test_at_least_forty_languages_are_measured() -> None:
    assert len({language_of(code) for code in ROWS}) >= 40


@pytest.mark.parametrize("code", ROWS)
def test_the_numbers_of_each_language_are_read(code: str) -> None:
    assert all(LANGUAGES.amounts(code).values())


def test_a_language_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LANGUAGES, "PAIRS", 4)
    monkeypatch.setattr(LANGUAGES, "FEWEST", 4)
    catalog = Catalog("de")
    for english, german in [
        ("The file could not be opened again.", "Die Datei konnte nicht noch einmal geöffnet werden."),
        ("There are 12 pages in this document.", "In diesem Dokument sind 13 Seiten."),
        ("Your changes are saved on the disk.", "Ihre Änderungen werden auf der Platte gespeichert."),
        ("The window is closed after some time.", "Das Fenster wird nach einiger Zeit geschlossen."),
    ]:
        catalog.add(english, german)
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    with (folder / "app.mo").open("wb") as file:
        write_mo(file, catalog)
    [(code, figures)] = LANGUAGES.measure(tmp_path, []).items()
    assert code == "de"
    assert (figures["lines"], figures["identified"], figures["loud"], figures["in_capitals"]) == (4, 4, 1, 0)
    assert (figures["cuts"]["right"], figures["cuts"].get("missed", 0), figures["cuts"].get("false", 0)) == (2, 0, 0)
