"""Tables: which mark parts the columns, which column has which language, and cells as spreadsheets write them."""

import io
from collections.abc import Sequence

import openpyxl
import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.formats.table import entries

EN_FR = ("en", "fr")
ENGLISH = [f"The old house on the hill number {number} was sold last year." for number in range(12)]
FRENCH = [f"La vieille maison sur la colline numéro {number} a été vendue l'an dernier." for number in range(12)]


def pairs(
    text: str | bytes, name: str = "terms.csv", named: tuple[str, str] | None = None, languages: tuple[str, str] = EN_FR
) -> list[tuple[str, str]]:
    data = text.encode() if isinstance(text, str) else text
    return [(entry.src, entry.tgt) for entry in entries(data, name, languages, named)]


def workbook(*sheets: Sequence[Sequence[object]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for rows in sheets:
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_mark_that_parts_columns_is_told(separator: str) -> None:
    rows = [("source", "target"), ("open", "ouvrir"), ("close it", "fermer"), ("yes", "oui")]
    assert pairs("".join(f"{separator.join(row)}\n" for row in rows)) == rows[1:]


@pytest.mark.parametrize(
    "heading",
    ["en,fr", "English,French", "EN-us,FR_ca", "source,target", "English (US),French (FR)", "English:,French:"],
)
def test_a_heading_names_the_columns(heading: str) -> None:
    one, other = heading.split(",")
    assert pairs(f"id;{other};note;{one}\n7;ouvrir;a verb;open\n") == [("open", "ouvrir")]


def test_the_region_that_is_asked_for_comes_before_another() -> None:
    text = "en,pt-PT,pt-BR\nscreen,ecrã,tela\n"
    assert pairs(text, languages=("en", "pt_BR")) == [("screen", "tela")]


def test_columns_are_named_by_heading_or_number() -> None:
    text = "key,alt,neu\nopen,öffnen,aufmachen\n"
    assert pairs(text, named=("key", "NEU")) == [("open", "aufmachen")]
    assert pairs(text, named=("1", "3"))[-1] == ("open", "aufmachen")
    assert pairs("en,fr\nopen,ouvrir\n", named=("1", "2")) == [("open", "ouvrir")]  # a heading all the same
    with raises_error(Error.UNKNOWN_NAME, "terms.csv"):
        pairs(text, named=("key", "French"))


def test_without_a_heading_the_texts_say_their_language() -> None:
    text = "".join(
        f"{number};{french};{english}\n" for number, (english, french) in enumerate(zip(ENGLISH, FRENCH, strict=True))
    )
    assert pairs(text) == list(zip(ENGLISH, FRENCH, strict=True))


def test_two_columns_of_nothing_known_are_source_and_target() -> None:
    assert pairs("open;ouvrir\n") == [("open", "ouvrir")]
    with raises_error(Error.MISSING_OPTION, "terms.csv"):
        pairs("1;open;ouvrir\n")


def test_quoted_cells_hold_separators_line_ends_and_quotation_marks() -> None:
    text = 'source,target\r\n"If ""No"", stop; or\r\nwait",«Non»\r\n'
    assert pairs(text) == [('If "No", stop; or\r\nwait', "«Non»")]


def test_a_semicolon_in_a_cell_does_not_part_columns() -> None:
    assert pairs('source,target\n"one; two","un; deux"\nthree;,trois;\n') == [
        ("one; two", "un; deux"),
        ("three;", "trois;"),
    ]


def test_excels_line_about_the_separator_is_no_row() -> None:
    assert pairs("sep=;\nsource;target\nyes, sir;oui\n") == [("yes, sir", "oui")]


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_byte_order_marks_say_the_encoding(codec: str) -> None:
    text = "source\ttarget\r\nsummer\tété\r\n"
    data = ("\ufeff" + text).encode(codec) if codec == "utf-16-be" else text.encode(codec)
    assert pairs(data, "terms.tsv") == [("summer", "été")]


def test_the_encoding_of_windows_is_read_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert pairs("source,target\nsummer,été\n".encode("latin-1")) == [("summer", "été")]
    assert "terms.csv: not UTF-8, read as windows-1252" in capsys.readouterr().err


def test_damaged_utf_8_is_refused_with_its_line() -> None:
    with raises_error(Error.NOT_UTF8, "terms.csv:3"):
        pairs("source,target\nsummer,été\n".encode() + b"window,fen\xeatre\n")


def test_tab_separated_values_keep_quotation_marks_but_where_all_cells_stand_in_them() -> None:
    assert pairs('"Yes"\tOui\nNo\t"Non"\n', "terms.tsv") == [('"Yes"', "Oui"), ("No", '"Non"')]
    assert pairs('"Yes"\t"Oui"\n"Say ""no"""\t"Dites « non »"\n', "terms.tsv") == [
        ("Yes", "Oui"),
        ('Say "no"', "Dites « non »"),
    ]


def test_a_quotation_mark_that_is_not_closed_is_refused_where_it_stands() -> None:
    text = 'source,target\nopen,ouvrir\n"close,fermer\n' + "yes,oui\n" * 300
    with raises_error(Error.WRONG_SHAPE, "terms.csv:3"):
        pairs(text)


def test_a_column_of_guesses_marks_its_rows() -> None:
    text = '"location","source","target","fuzzy"\n"","open","ouvrir","False"\n"","close","ferme","True"\n'
    assert [(entry.src, entry.state) for entry in entries(text.encode(), "weblate.csv", EN_FR, None)] == [
        ("open", ""),
        ("close", "fuzzy"),
    ]


def test_blank_rows_are_left_out_and_lines_count_them() -> None:
    text = "source,target\n\n , \nopen,ouvrir\nlater,\nshort\n"
    assert [(entry.line, entry.src, entry.state) for entry in entries(text.encode(), "a.csv", EN_FR, None)] == [
        (4, "open", ""),
        (5, "later", "untranslated"),
        (6, "short", "untranslated"),
    ]


def test_each_sheet_of_a_workbook_is_a_table_with_a_heading_of_its_own() -> None:
    data = workbook(
        [("French", "English"), ("ouvrir", "open"), (None, "later"), (12.5, 3)],
        [("English", "note", "French"), ("close", "a verb", "fermer")],
        [],
        [("to do",), ("nothing",)],
    )
    assert pairs(data, "terms.xlsx") == [("open", "ouvrir"), ("later", ""), ("3", "12.5"), ("close", "fermer")]


def test_a_workbook_without_both_languages_and_one_that_is_none_are_refused() -> None:
    with raises_error(Error.MISSING_OPTION, "terms.xlsx"):
        pairs(workbook([("to do",), ("nothing",)]), "terms.xlsx")
    for data in (b"no zip", workbook([("a", "b")])[:-100]):
        with raises_error(Error.DAMAGED, "terms.xlsx"):
            pairs(data, "terms.xlsx")
