"""Terms that a model reads beside their words: in training pairs, in sentences, and recognised in translations."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman.alignment import term_placement
from dragoman.alignment.links import AlignedPair, with_terms_linked
from dragoman.alignment.term_placement import bound, with_terms
from dragoman.inference.translation import Part, Translation
from dragoman.pipeline.pipeline import as_whole_terms
from dragoman.text import inflection
from dragoman.text.annotations import TERM_PIECES, Placed, with_term_pieces
from dragoman.text.glossary import Found, Glossary
from dragoman.text.inflection import Inflection
from dragoman.text.tokenizers.base import UNK_ID
from dragoman.text.words import Word, words


@pytest.fixture(autouse=True)
def lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lemmatiser of a few words: simplemma takes seconds to load."""
    known = {
        "en": {"spreadsheets": "spreadsheet", "Spreadsheets": "spreadsheet", "panels": "panel", "saw": "see",
               "files": "file", "Pumps": "pump", "pumps": "pump", "settings": "setting", "opened": "open"},
        "de": {"Ausgaben": "Ausgabe", "Häuser": "Haus"},
    }  # fmt: skip
    monkeypatch.setattr(
        inflection, "_lemmatizer", lambda code: (lambda word: known[code].get(word, word)) if code in known else None
    )


def inflected(**terms: str) -> Glossary:
    return Glossary({term.replace("_", " "): target for term, target in terms.items()}).inflected(("en", "de"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two spreadsheets.", ["spreadsheets"]),
        ("Spreadsheets and a spreadsheet", ["Spreadsheets", "spreadsheet"]),
        ("The control panels of files", ["control panels"]),
        ("Control the panel", []),
        ("A sheet", []),
        ("Open https://x.org/spreadsheets", []),
    ],
)
def test_terms_are_found_in_any_form(text: str, expected: list[str]) -> None:
    glossary = inflected(spreadsheet="Tabelle", control_panel="Steuerung")
    assert [text[found.start : found.end] for found in glossary.find(text)] == expected
    assert all(
        found.is_inflected == (text[found.start : found.end].lower()[-1] == "s") for found in glossary.find(text)
    )


def test_a_term_that_is_written_comes_before_another_ones_form_and_a_longer_one_before_both() -> None:
    glossary = inflected(setting="A", settings="B", control="C", control_panel="D")
    assert [found.target for found in glossary.find("The setting, settings, control panels, control")] == [*"ABDC"]


def test_a_term_with_capitals_is_found_with_them_alone() -> None:
    glossary = inflected(Pump="Pumpe", ACME="Acme")
    assert [found.target for found in glossary.find("Pumps, pumps, acmes and ACME")] == ["Pumpe", "Acme"]


def test_a_lemma_that_is_hardly_like_its_word_is_not_taken() -> None:
    assert Inflection("en").lemma("saw") == "saw"
    assert Inflection("en").lemma("Pumps") == "Pump"
    assert Inflection("de").lemma("Häuser") == "Haus"
    assert Inflection("xx").lemma("Häuser") == "Häuser"


@pytest.mark.parametrize(
    ("target", "text", "expected"),
    [
        ("Tabelle", "Zwei Tabellen, eine Tabelle.", ["Tabellen", "Tabelle"]),
        ("Ausgabe", "die Ausgaben", ["Ausgaben"]),
        ("Tabelle", "Der Tabellenkalkulation", ["Tabelle"]),  # spelled in it, as ever
        ("feuille de calcul", "Des feuilles de calcul.", ["feuilles de calcul"]),
        ("книга", "Откройте книгу.", ["книгу"]),
        ("дом", "за домом", ["домом"]),
        ("表格", "打开表格。", ["表格"]),
        ("Datei", "Das Dach", []),
        ("A1", "A12 B1", ["A1"]),
        ("", "x", []),
    ],
)
def test_a_target_is_recognised_in_any_form(target: str, text: str, expected: list[str]) -> None:
    assert [text[slice(*place)] for place in inflected(x="y").written(target, text)] == expected


def test_without_learnt_terms_a_glossary_finds_what_is_written_alone() -> None:
    glossary = Glossary({"spreadsheet": "Tabelle"})
    assert glossary.find("Two spreadsheets") == []
    assert glossary.written("Ausgabe", "Zwei Ausgabe") == [Word(5, 12)]
    assert glossary.said("A spreadsheet", "Die Tabellen") == [(4, 11)]
    assert inflected(spreadsheet="Tabelle").said("A spreadsheet", "Die Tabellen") == [(4, 12)]


def test_terms_and_codes_stand_in_one_sentence() -> None:
    glossary = inflected(open="öffnen", control_panel="Steuerung")
    for text, annotated in (
        ("Open the file.", "⟦term⟧ Open⟦as⟧ öffnen⟦/term⟧ the file."),
        ("⟦1⟧ Open⟦/1⟧ it", "⟦1⟧⟦term⟧ Open⟦as⟧ öffnen⟦/term⟧⟦/1⟧ it"),
        ("A⟦1⟧ control panel⟦/1⟧.", "A⟦1⟧⟦term⟧ control panel⟦as⟧ Steuerung⟦/term⟧⟦/1⟧."),
        ("A control⟦1⟧ panel⟦/1⟧", "A⟦term⟧ control⟦1⟧ panel⟦as⟧ Steuerung⟦/term⟧⟦/1⟧"),
        ("No term⟦1/⟧", "No term⟦1/⟧"),
        ("(open)", "(⟦term⟧open⟦as⟧ öffnen⟦/term⟧)"),
    ):
        assert glossary.annotated(text) == annotated
    assert (
        with_term_pieces("打开表格", [], [(0, 2, "a"), (2, 4, "b")])
        == "⟦term⟧ 打开⟦as⟧ a⟦/term⟧⟦term⟧表格⟦as⟧ b⟦/term⟧"
    )
    assert with_term_pieces("a b", [Placed(1, "⟦1/⟧")], [(0, 1, "x")]) == "⟦term⟧ a⟦as⟧ x⟦/term⟧⟦1/⟧ b"


class Learnt:
    """A translator of a run, whose vocabulary has the pieces of terms or not."""

    languages, join, place_terms, glossary = ("en", "de"), " ", None, None
    decoding = SimpleNamespace(mbr="none", n_best=1)

    def __init__(self, *, has_terms: bool = True) -> None:
        self.tokenizers = SimpleNamespace(
            src=SimpleNamespace(id_of=lambda piece: 9 if has_terms and piece in TERM_PIECES else UNK_ID)
        )

    def with_terms(self, glossary: Glossary | None, banned: Any = None, **_: Any) -> Any:
        return SimpleNamespace(glossary=glossary, annotate=None, tokenizers=self.tokenizers)


def test_only_a_run_that_has_learnt_terms_reads_and_inflects_them() -> None:
    glossary = Glossary({"file": "Datei"})
    learnt = bound(Learnt(), glossary)  # type: ignore[arg-type]
    assert learnt.annotate("Two files") == "Two⟦term⟧ files⟦as⟧ Datei⟦/term⟧"
    plain = bound(Learnt(has_terms=False), learnt.glossary)  # type: ignore[arg-type]
    assert plain.annotate("Two file") == "Two file"
    assert plain.glossary == glossary
    assert bound(Learnt(), None).annotate("a file") == "a file"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("translation", "left", "kept"),
    [
        ("Zwei Dateien öffnen", [], ["Dateien"]),
        ("Zwei Akten öffnen", ["Datei"], []),
        ("⟦1⟧ Dateien⟦/1⟧", [], ["⟦1⟧", "⟦/1⟧", "Dateien"]),
        ("Eine Datei", [], ["Datei"]),
    ],
)
def test_what_the_model_has_inflected_stays_and_what_it_left_out_is_forced(
    translation: str, left: list[str], kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def placing(
        translator: Any, sources: Sequence[str], texts: Sequence[str], terms: Sequence[Sequence[Found]], taken: Any
    ) -> list[term_placement.Placed]:
        asked.append(([[term.target for term in of_row] for of_row in terms], taken))
        return [term_placement.Placed(text) for text in texts]

    monkeypatch.setattr(term_placement, "place_terms", placing)
    monkeypatch.setattr(term_placement, "score", lambda translator, pairs: [])
    parts = [Part([4], [], "Open two files")]
    found = with_terms(Learnt(), inflected(file="Datei"), parts, [[Translation(translation, 0.0, 0.0)]])  # type: ignore[arg-type]
    assert found[0][0].text == translation
    [([terms], [taken])] = asked
    assert terms == left
    assert [translation[slice(*place)] for place in taken] == kept


def test_a_term_that_stands_there_once_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = term_placement.Placed("Die Datei", without_place=(Found(0, 4, "Datei"), Found(0, 4, "Akte")))
    assert [term.target for term in term_placement._without_written(inflected(x="y"), placed).without_place] == ["Akte"]
    assert term_placement._without_written(Glossary({"x": "y"}), placed) == placed


def test_a_text_that_is_a_form_of_a_term_is_translated() -> None:
    def n_best(texts: Sequence[str]) -> list[list[Translation]]:
        return [[Translation("translated", 0.0, 0.0)] for _ in texts]

    found = as_whole_terms(n_best, inflected(file="Datei"), ["File", "Files", "file "])
    assert [items[0].text for items in found] == ["Datei", "translated", "Datei"]


def test_codes_go_around_an_inflected_term() -> None:
    pair = AlignedPair("the files here", "hier Dateien die", words("the files here"), words("hier Dateien die"))
    links = with_terms_linked(pair, np.full((3, 3), 1 / 3), inflected(file="Datei"))
    assert links[:, 1].tolist() == [0, 1, 0]
