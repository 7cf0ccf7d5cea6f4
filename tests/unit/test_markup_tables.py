"""Tables in light markup: the cells are texts, and the table is drawn again as wide as these are."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dragoman.formats.base import Code, Item, Options, Unit, plain
from dragoman.formats.document import Document, format_of

GRID = """\
Before.

  +------------+-----+
  | ab         | cd  |
  +============+=====+
  | ef *gh*    | 12  |
  |            +-----+
  | - ij       | kl  |
  +------------+-----+
  | mn op            |
  +------------------+
"""
LONG_GRID = """\
Before. long

  +--------------+---------+
  | ab long      | cd long |
  +==============+=========+
  | ef *gh* long | 12      |
  |              +---------+
  | - ij long    | kl long |
  +--------------+---------+
  | mn op long             |
  +------------------------+
"""
SIMPLE = """\
=====  ==  ======
 ab cd     ef
---------  ------
gh     ij  kl
=====  ==  ======
mn         op qr
           st
12     uv
=====  ==  ======
"""
LONG_SIMPLE = """\
=======  =======  =============
 ab cd long       ef long
----------------  -------------
gh long  ij long  kl long
=======  =======  =============
mn long           op qr st long

12       uv long
=======  =======  =============
"""


def longer(units: Sequence[Unit]) -> Iterator[tuple[Item, ...] | None]:
    """Each text with a word more."""
    for unit in units:
        items: list[Item] = []
        for at, item in enumerate(unit.items):
            last = at + 1 == len(unit.items) or unit.items[at + 1] == Code("\0", "break")
            items += [item, " long"] if last else [item]
        yield None if unit.kept else tuple(items)


def read(name: str, text: str) -> Document:
    return Document(text.encode(), format_of(Path(name), text.encode()), Options(name))


def written(name: str, text: str) -> str:
    return read(name, text).translated(longer).decode()


def test_a_grid_grows_where_its_texts_do() -> None:
    assert written("a.rst", GRID) == LONG_GRID


def test_a_simple_table_grows_where_its_texts_do() -> None:
    assert written("a.rst", SIMPLE) == LONG_SIMPLE
    assert written("a.rst", SIMPLE.replace("\n", "\r\n")) == LONG_SIMPLE.replace("\n", "\r\n")


def test_a_wide_character_takes_two_columns() -> None:
    table = read("a.rst", "+----+----+\n| ab | 文 |\n+----+----+\n")
    assert table.translated(lambda units: [("文字", unit.items[1], "文件") for unit in units]).decode() == (
        "+------+------+\n| 文字 | 文件 |\n+------+------+\n"
    )


@pytest.mark.parametrize(
    "table",
    [
        GRID.replace("----+-----+\n  | mn", "----+     |\n  | mn"),
        "==  ==\nab cd ef\n==  ==\n",
        "+----+----+\n| ab | cd\n+----+----+\n",
        "+--+\n| ab cd |\n+--+\n",
    ],
)
def test_a_table_that_cannot_be_read_is_counted(table: str) -> None:
    units = [unit for unit in read("a.rst", table).texts() if "Before" not in plain(unit.items)]
    assert {unit.kept for unit in units} == {"drawn tables whose columns cannot be read"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (",===\nab,\"cd, \"\"ef\"\"\"\n12,\"gh\nij\"\n,===\n",
         ",===\nab long,\"cd, \"\"ef\"\" long\"\n12,\"gh ij long\"\n,===\n"),
        ("[%header,format=csv,separator=;]\n|===\nab;*cd*\n|===\n",
         "[%header,format=csv,separator=;]\n|===\nab long;*cd long*\n|===\n"),
        (":===\nab\\:cd:12\n:===\n", ":===\nab\\:cd long:12\n:===\n"),
        ("[format=tsv]\n|===\nab\tcd\n|===\n", "[format=tsv]\n|===\nab long\tcd long\n|===\n"),
        ("[separator=¦]\n|===\n¦ab|cd ¦ef\n|===\n", "[separator=¦]\n|===\n¦ab|cd long ¦ef long\n|===\n"),
    ],
)  # fmt: skip
def test_cells_of_csv_are_texts(before: str, after: str) -> None:
    assert written("a.adoc", before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("|===\n|ab a|cd\n!===\n!ef !gh\n!===\n\n* ij\n* kl\n|mn\n|===\n",
         "|===\n|ab long a|cd long\n!===\n!ef long !gh long\n!===\n\n* ij long\n* kl long\n|mn long\n|===\n"),
        ("|===\na|ab\n\n----\ncd\n----\n|===\n", "|===\na|ab long\n\n----\ncd\n----\n|===\n"),
        ("[format=psv]\n,===\n|ab |cd\n,===\n", "[format=psv]\n,===\n|ab long |cd long\n,===\n"),
        (',===\n"* ab\n* cd",ef\n,===\n', ',===\n"* ab\n* cd",ef long\n,===\n'),
    ],
)  # fmt: skip
def test_cells_that_hold_blocks(before: str, after: str) -> None:
    assert written("a.adoc", before) == after


def test_an_accent_of_its_own_takes_no_column() -> None:
    accent = "e\u0301"
    table = read("a.rst", f"+-----+----+\n| {accent}ab | cd |\n+-----+----+\n")
    assert table.translated(lambda units: [(accent * 4, units[0].items[1], "x") for _ in units]).decode() == (
        f"+------+----+\n| {accent * 4} | x  |\n+------+----+\n"
    )


def test_a_translation_with_the_separator_gets_quotes() -> None:
    def with_comma(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
        return [tuple(f'{item}, "x"' if isinstance(item, str) else item for item in unit.items) for unit in units]

    assert read("a.adoc", ",===\n*ab*,cd\n,===\n").translated(with_comma).decode() == (
        ',===\n"*ab, ""x""*","cd, ""x"""\n,===\n'
    )
    assert read("a.adoc", ":===\nab:cd\n:===\n").translated(lambda units: [("e: f",) for _ in units]).decode() == (
        ":===\ne\\: f:e\\: f\n:===\n"
    )


def test_a_csv_table_of_restructured_text_has_texts() -> None:
    table = '.. csv-table:: Ab\n   :header: "cd", ef\n   :widths: 1, 2\n\n   gh, "ij ""kl"", mn"\n   12, ``op``\n\nqr\n'
    assert written("a.rst", table) == (
        '.. csv-table:: Ab long\n   :header: "cd long", ef long\n   :widths: 1, 2\n\n'
        '   gh long, "ij ""kl"", mn long"\n   12, ``op``\n\nqr long\n'
    )
