"""Terms that a model reads beside their words: in training pairs, in sentences, and recognised in translations."""

import copy
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.scripts import script

from dragoman.alignment import term_placement
from dragoman.alignment.links import AlignedPair, with_terms_linked
from dragoman.alignment.term_placement import translations_with_terms, with_glossary
from dragoman.decoding.search import DecodingConfig
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment, Translation
from dragoman.models.families import TransformerConfig
from dragoman.pipeline.pipeline import as_whole_terms
from dragoman.special_tokens import UNK_ID
from dragoman.text import inflection, learnt_terms
from dragoman.text.annotations import CODE_PIECES, TERM_PIECES, Placed, with_term_pieces, without_pieces
from dragoman.text.augment import TextAugmentConfig
from dragoman.text.glossary import Glossary, TermMatch
from dragoman.text.inflection import Inflection
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.words import Word, words
from dragoman.training import annotated_terms
from dragoman.training.annotated_pairs import Annotator, pieces_of


@pytest.fixture(autouse=True)
def lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lemmatiser of a few words: simplemma takes seconds to load."""
    known = {
        "en": {"spreadsheets": "spreadsheet", "Spreadsheets": "spreadsheet", "panels": "panel", "saw": "see",
               "files": "file", "Pumps": "pump", "pumps": "pump", "settings": "setting", "opened": "open"},
        "de": {"Ausgaben": "Ausgabe", "Häuser": "Haus", "Spiele": "Spiel"},
        "ru": {"карты": "карта", "справочники": "справочник"},
    }  # fmt: skip
    monkeypatch.setattr(inflection, "_known", lambda code: None)
    monkeypatch.setattr(
        inflection, "_lemmatizer", lambda code: (lambda word: known[code].get(word, word)) if code in known else None
    )


def inflected(**terms: str) -> Glossary:
    glossary = Glossary({term.replace("_", " "): target for term, target in terms.items()})
    return learnt_terms.inflected(glossary, ("en", "de"))


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
        ("магл", "много маглов и магла", ["маглов", "магла"]),  # TranslateBooksWithLLMs 255
        ("Plugin", "Ein Plugin und zwei Plugins", ["Plugin", "Plugins"]),  # GlotDict 359
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
    assert glossary.target_places("A spreadsheet", "Die Tabellen") == [(4, 11)]
    assert inflected(spreadsheet="Tabelle").target_places("A spreadsheet", "Die Tabellen") == [(4, 12)]


@pytest.mark.parametrize(
    ("language", "terms", "text", "found"),
    [
        ("ru", {"карта": "map"}, "Нет карты.", ["map"]),  # Weblate 3023
        ("ru", {"справочник": "reference"}, "Все справочники", ["reference"]),
        ("en", {"files": "F", "opened": "O"}, "A file, files; to open", ["F", "F", "O"]),  # GlotPress 1794
        ("en", {"back to basics": "B"}, "Back to the file and to basics", []),  # Weblate 2183
        ("en", {"gate of hell": "G"}, "Come to think of it", []),  # Weblate 2828
        ("en", {"ON": "EIN", "Enter": "Eingabe"}, "Turn ON, enter on, Enter", ["EIN", "Eingabe"]),  # Weblate 16412
        ("en", {"--": "—"}, "--verbose", ["—"]),  # Weblate 14105
        ("en", {"color": "colour"}, "Color (color)", ["colour", "colour"]),  # GlotPress 703
        ("en", {"control panel": "P"}, "Two control panels end.", ["P"]),  # OpenNMT 65: of several words
        ("de", {"Spiel": "game"}, "Ich habe blind Spiele gesucht, verspielt", ["game"]),  # LanguageTool 6582
    ],
)
def test_terms_of_public_reports(language: str, terms: dict[str, str], text: str, found: list[str]) -> None:
    glossary = learnt_terms.inflected(Glossary(terms), (language, "xx"))
    assert [term.target for term in glossary.find(text)] == found


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
        assert learnt_terms.annotated(glossary, text) == annotated
    assert (
        with_term_pieces("打开表格", [], [(0, 2, "a"), (2, 4, "b")])
        == "⟦term⟧ 打开⟦as⟧ a⟦/term⟧⟦term⟧表格⟦as⟧ b⟦/term⟧"
    )
    assert with_term_pieces("a b", [Placed(1, "⟦1/⟧")], [(0, 1, "x")]) == "⟦term⟧ a⟦as⟧ x⟦/term⟧⟦1/⟧ b"


class Learnt:
    """A translator of a run, whose vocabulary has the pieces of terms or not."""

    languages, join, apply_glossary, glossary = ("en", "de"), " ", None, None
    decoding = SimpleNamespace(mbr="none", n_best=1)

    def __init__(self, *, has_terms: bool = True) -> None:
        self.tokenizers = SimpleNamespace(
            src=SimpleNamespace(id_of=lambda piece: 9 if has_terms and piece in TERM_PIECES else UNK_ID)
        )

    def with_terms(self, glossary: Glossary | None, banned: Any = None, **_: Any) -> Any:
        return SimpleNamespace(glossary=glossary, annotate=None, tokenizers=self.tokenizers)


def test_only_a_run_that_has_learnt_terms_reads_and_inflects_them() -> None:
    glossary = Glossary({"file": "Datei"})
    learnt = with_glossary(Learnt(), glossary)  # type: ignore[arg-type]
    assert learnt.annotate("Two files") == "Two⟦term⟧ files⟦as⟧ Datei⟦/term⟧"
    plain = with_glossary(Learnt(has_terms=False), learnt.glossary)  # type: ignore[arg-type]
    assert plain.annotate("Two file") == "Two file"
    assert plain.glossary == glossary
    assert with_glossary(Learnt(), None).annotate("a file") == "a file"  # type: ignore[arg-type]


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
        translator: Any, sources: Sequence[str], texts: Sequence[str], terms: Sequence[Sequence[TermMatch]], taken: Any
    ) -> list[term_placement.Placed]:
        asked.append(([[term.target for term in of_row] for of_row in terms], taken))
        return [term_placement.Placed(text) for text in texts]

    monkeypatch.setattr(term_placement, "place_terms", placing)
    monkeypatch.setattr(term_placement, "score", lambda translator, pairs, **_: [])
    parts = [Segment([4], [], "Open two files")]
    found = translations_with_terms(Learnt(), inflected(file="Datei"), parts, [[Translation(translation, 0.0, 0.0)]])  # type: ignore[arg-type]
    assert found[0][0].text == translation
    [([terms], [taken])] = asked
    assert terms == left
    assert [translation[slice(*place)] for place in taken] == kept


def test_a_term_that_stands_there_once_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = term_placement.Placed("Die Datei", without_place=(TermMatch(0, 4, "Datei"), TermMatch(0, 4, "Akte")))
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


PAIRS = [
    ("the open file", "die offenen Dateien"),
    ("the closed file", "die geschlossenen Dateien"),
    ("the open window", "die offenen Fenster"),
    ("the closed window", "die geschlossenen Fenster"),
    ("Open the file", "Die Datei"),
] * 3


@pytest.fixture
def annotator(monkeypatch: pytest.MonkeyPatch) -> Annotator:
    monkeypatch.setattr(annotated_terms, "STOP_WORD_SHARE", 0.35)
    return Annotator.of_pairs(TextAugmentConfig(terms=1.0), PAIRS, "de")


def test_pairs_get_terms_beside_their_words(annotator: Annotator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotated_terms.TermAnnotator, "lemma", lambda self, word: word.removesuffix("en").lower())
    assert annotator.terms is not None
    assert annotator.terms.stop_words == {"the"}
    made = {annotator(*PAIRS[0], random.Random(seed)) for seed in range(40)}
    assert {tgt for _, tgt in made} == {PAIRS[0][1]}
    assert {src for src, _ in made} >= {
        "the⟦term⟧ open⟦as⟧ offen⟦/term⟧ file",
        "the⟦term⟧ open⟦as⟧ offen⟦/term⟧⟦term⟧ file⟦as⟧ datei⟦/term⟧",
        "the⟦term⟧ open file⟦as⟧ offen datei⟦/term⟧",
        "the⟦term⟧ open file⟦as⟧ offenen Dateien⟦/term⟧",  # as it is written there
    }
    assert not any("⟦term⟧ the" in src for src, _ in made)
    assert annotator(*PAIRS[0], random.Random(3)) == annotator(*PAIRS[0], random.Random(3))


def test_terms_and_codes_are_learnt_in_one_pair() -> None:
    both = Annotator.of_pairs(TextAugmentConfig(terms=1.0, tags=1.0), PAIRS, "de")
    made = [both(*PAIRS[0], random.Random(seed)) for seed in range(60)]
    assert any("⟦term⟧" in src and "⟦1" in src for src, _ in made)
    for src, tgt in made:
        assert without_pieces(tgt)[0] == PAIRS[0][1]
        assert re.sub(r"⟦as⟧.*?⟦/term⟧|⟦.*?⟧", "", src).strip() == PAIRS[0][0]
        assert src.count("⟦term⟧") == src.count("⟦as⟧") == src.count("⟦/term⟧") > 0


def test_shares_of_other_settings_draw_what_they_drew(annotator: Annotator) -> None:
    """A run with `tags` alone is trained on the same pairs as before there were terms."""
    tags = Annotator(TextAugmentConfig(tags=0.5), annotator.aligner)
    with_terms_off = replace(tags, terms=annotator.terms)
    for seed in range(20):
        assert tags(*PAIRS[0], random.Random(seed)) == with_terms_off(*PAIRS[0], random.Random(seed))
    assert pieces_of(TextAugmentConfig(tags=0.5)) == CODE_PIECES
    assert pieces_of(TextAugmentConfig(terms=0.5)) == TERM_PIECES
    assert annotator.with_tags("<b>a</b>", "<b>b</b>") == ("<b>a</b>", "<b>b</b>")


def test_nothing_inside_of_a_placeholder_is_a_term(annotator: Annotator) -> None:
    aligned = Annotator(TextAugmentConfig(terms=1.0), annotator.aligner, annotator.terms)
    made = {aligned("see https://x.org/file", "die https://x.org/file", random.Random(seed))[0] for seed in range(20)}
    assert made == {"see https://x.org/file"}


def test_the_capital_of_a_sentence_is_no_part_of_a_lemma(annotator: Annotator) -> None:
    assert annotator.terms is not None
    pair = annotator._aligned("open file", "Offenen Dateien")
    phrase = pair.links.phrase(0, 1)
    assert phrase is not None
    assert annotator.terms.target(pair, phrase) == "offenen"


@pytest.fixture(scope="module")
def translator() -> SearchTranslator:
    """A model of random weights that could have learnt terms."""
    config = SentencePieceConfig(vocab_size=90, user_defined_symbols=list(TERM_PIECES))
    src, tgt = ([pair[side] for pair in PAIRS] for side in (0, 1))
    tokenizers = train_tokenizers(config, lambda: iter(src), lambda: iter(tgt))
    torch.manual_seed(1)
    size = TransformerConfig(d_model=16, num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1)
    model = build_model(size, tokenizers).eval()
    decoding = DecodingConfig(beam_size=2, max_length_ratio=1.0, max_length_extra=8)
    return SearchTranslator(model, tokenizers, decoding=decoding, languages=("en", "de"))


def test_the_model_alone_reads_the_terms(translator: SearchTranslator) -> None:
    learnt = with_glossary(translator, Glossary({"window": "Fenster"}))
    [part] = learnt.parts("the windows")
    assert part.text == "the windows"
    assert translator.tokenizers.src.id_of(TERM_PIECES[0]) not in part.ids  # no lemma of it is known here
    [part] = learnt.parts("the window")
    assert [part.ids.count(translator.tokenizers.src.id_of(piece)) for piece in TERM_PIECES] == [1, 1, 1]
    assert translator.parts("the window")[0].ids == translator.tokenizers.src.encode("the window")
    limited = copy.copy(learnt)
    limited.max_src_tokens = 30
    parts = limited.parts("the open file and the closed window. " * 3)
    assert len(parts) > 1
    assert all(len(part.ids) <= 30 for part in parts)
    assert "".join(part.text for part in parts).count("window") == 3


def test_terms_stand_there_whatever_the_neighbours(translator: SearchTranslator) -> None:
    glossary = Glossary({"window": "Fenster", "closed file": "Datei"})
    lines = [src for src, _ in PAIRS[:5]]
    learnt = with_glossary(translator, glossary)
    together = learnt.n_best(lines)
    assert together == [learnt.n_best([line])[0] for line in lines]
    for line, items in zip(lines, together, strict=True):
        for term in glossary.find(line):
            assert term.target in items[0].text
    assert learnt.with_decoding(beam_size=1).annotate == learnt.annotate


def test_the_table_of_terms_that_a_training_text_translates_otherwise(
    translator: SearchTranslator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = script("benchmarks/terms.py")
    train = [*PAIRS, *[("the closed file", "die geschlossenen Akten")] * 2]
    chosen = benchmark.cases(train, [("the open file", "die offenen Akten"), PAIRS[2]], ("en", "de"), 5)
    assert [case.terms for case in chosen] == [(("file", "Akten", "Akten"),)]
    assert list(benchmark.ways(translator)) == ["nothing", "forced", "learnt", "both"]
    found = benchmark.figures(chosen, ["die offene Akte"], ("en", "de"))
    assert found[:2] == (100, 0)
    assert benchmark.figures(chosen, ["die offenen Akten"], ("en", "de"))[:2] == (100, 100)
    files = {}
    for name, pairs in (("train", train), ("test", [("the open file", "die offenen Akten")])):
        for side, code in enumerate(("en", "de")):
            files[name, code] = tmp_path / f"{name}.{code}"
            files[name, code].write_text("\n".join(pair[side] for pair in pairs), encoding="utf-8")
    monkeypatch.setattr(SearchTranslator, "load", lambda *_, **__: translator.with_decoding(n_best=1))
    both = [[f"--{name}", *(str(files[name, code]) for code in ("en", "de"))] for name in ("train", "test")]
    benchmark.main(["run", *both[0], *both[1]])
    rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("|")][2:]
    assert [(name.strip(), placed.strip()) for name, placed in rows if name.strip() in ("forced", "both")] == [
        ("forced", "100.0"), ("both", "100.0"),
    ]  # fmt: skip
