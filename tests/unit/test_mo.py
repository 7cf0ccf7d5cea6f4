"""Compiled catalogues, byte by byte as gettext writes them."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.formats.base import Entry
from dragoman.formats.mo import mo_entries

HEADER = "Language: fr\nContent-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n > 1);\n"


def compiled(messages: Sequence[tuple[str, str]], *, order: str = "<", charset: str = "utf-8") -> bytes:
    """A catalogue of messages, sorted as gettext has them."""
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    for message, translation in sorted(messages):
        sides[0].append(message.encode(charset))
        sides[1].append(translation.encode(charset))
    at = 28 + 16 * len(messages)
    tables, strings = b"", b""
    for side in sides:
        for text in side:
            tables += struct.pack(f"{order}2I", len(text), at + len(strings))
            strings += text + b"\0"
    start = struct.pack(f"{order}7I", 0x950412DE, 0, len(messages), 28, 28 + 8 * len(messages), 0, 0)
    return start + tables + strings


def pairs(data: bytes) -> list[tuple[str, str]]:
    return [(entry.src, entry.tgt) for entry in mo_entries(data, "app.mo")]


@pytest.mark.parametrize("order", ["<", ">"])
def test_messages_are_read_in_both_byte_orders_with_the_languages_of_the_header(order: str) -> None:
    data = compiled([("", HEADER), ("Open", "Ouvrir"), ("Close", "Fermer"), ("Later", "")], order=order)
    assert list(mo_entries(data, "app.mo")) == [
        Entry(2, "Close", "Fermer", languages=("en", "fr")),
        Entry(3, "Later", "", "untranslated", languages=("en", "fr")),
        Entry(4, "Open", "Ouvrir", languages=("en", "fr")),
    ]


def test_a_context_is_no_part_of_the_text() -> None:
    data = compiled([("", HEADER), ("verb\x04Open", "Ouvrir"), ("adjective\x04Open", "Ouvert")])
    assert [(entry.context, entry.src, entry.tgt) for entry in mo_entries(data, "app.mo")] == [
        ("adjective", "Open", "Ouvert"),
        ("verb", "Open", "Ouvrir"),
    ]


def test_a_plural_gives_the_forms_for_one_and_for_many() -> None:
    data = compiled([("", HEADER), ("%d file\0%d files", "%d fichier\0%d fichiers")])
    assert pairs(data) == [("%d file", "%d fichier"), ("%d files", "%d fichiers")]


def test_one_form_for_all_numbers_translates_the_plural() -> None:
    header = "Language: ja\nPlural-Forms: nplurals=1; plural=0;\n"
    assert pairs(compiled([("", header), ("%d file\0%d files", "%d 個のファイル")])) == [
        ("%d files", "%d 個のファイル")
    ]


def test_without_a_header_the_first_message_is_one() -> None:
    assert list(mo_entries(compiled([("bar", "rab"), ("foo", "oof")]), "app.mo")) == [
        Entry(1, "bar", "rab"),
        Entry(2, "foo", "oof"),
    ]


def test_the_header_says_the_encoding() -> None:
    header = "Language: fr\nContent-Type: text/plain; charset=ISO-8859-1\n"
    assert pairs(compiled([("", header), ("Summer", "Été")], charset="latin-1")) == [("Summer", "Été")]


def test_what_is_no_catalogue_or_is_cut_off_is_refused() -> None:
    whole = compiled([("", HEADER), ("Open", "Ouvrir")])
    with raises_error(Error.WRONG_FILE_TYPE, "app.mo"):
        pairs(b"msgid")
    for length in (10, 40, len(whole) - 4):
        with raises_error(Error.DAMAGED, "app.mo"):
            pairs(whole[:length])
    with raises_error(Error.NOT_UTF8, "app.mo"):
        pairs(compiled([("Open", "Ouvrir à")], charset="latin-1"))


def test_the_fixture_of_the_tests_is_what_the_library_reads(tmp_path: Path) -> None:
    import gettext

    path = tmp_path / "app.mo"
    path.write_bytes(compiled([("", HEADER), ("Open", "Ouvrir"), ("%d file\0%d files", "%d fichier\0%d fichiers")]))
    with path.open("rb") as stream:
        catalogue = gettext.GNUTranslations(stream)
    assert catalogue.gettext("Open") == "Ouvrir"
    assert catalogue.ngettext("%d file", "%d files", 3) == "%d fichiers"
