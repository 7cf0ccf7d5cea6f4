"""A run that has learnt tags, terms and matches, with all of them at once: what a text's translation depends on."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.scripts import script

import dragoman
from dragoman.export.model_card import card
from dragoman.export.shortlist import _copied
from dragoman.inference.scoring import token_log_probs
from dragoman.inference.translation import Translation
from dragoman.pipeline.learnt_matches import LearntMatches
from dragoman.pipeline.memory import TranslationMemory
from dragoman.text import inflection
from dragoman.text.annotations import CODE_PIECES, PIECES, has_learnt

RUN = Path(__file__).parents[1] / "fixtures" / "run_learnt" / "run"
TERMS = {"text": "Wortlaut", "old page": "alte Seite"}
MEMORY = [("close the window.", "das Fenster zu."), ("open the page now.", "jetzt die Seite auf.")]
TEXTS = [
    "open the file now.",
    "print the <b>text</b> now.",
    "close the <b>window</b>.",
    "close the window.",
    "print %d the page now.",
    "open the file now. close the <b>text</b> now.",
    "print the <b>old</b> page now.",
    "SAVE THE <b>TEXT</b> NOW.",
    "save {n, plural, one {the file} other {the <b>text</b>}} now.",
    "open the ⟦1⟧ file⟦/1⟧ now.",
    "text",
    "",
]


@pytest.fixture(scope="module", autouse=True)
def without_lemmas() -> Iterator[None]:
    """simplemma's dictionaries take a second to load."""
    patch = pytest.MonkeyPatch()
    patch.setattr(inflection, "_lemmatizer", lambda language: None)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def plain() -> dragoman.Translator:
    return dragoman.load(RUN, device="cpu")


@pytest.fixture(scope="module")
def translator(plain: dragoman.Translator) -> dragoman.Translator:
    return plain.with_terms(dragoman.Glossary(TERMS)).with_memory(TranslationMemory(MEMORY, ("en", "de")))


@pytest.fixture(scope="module")
def alone(translator: dragoman.Translator) -> list[list[Translation]]:
    return [translator.n_best([text])[0] for text in TEXTS]


def of_groups(translator: dragoman.Translator, order: Sequence[int], size: int) -> list[list[Translation]]:
    found: dict[int, list[Translation]] = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        found |= zip(rows, translator.n_best([TEXTS[row] for row in rows]), strict=True)
    return [found[row] for row in range(len(TEXTS))]


def test_all_that_is_learnt_is_used(alone: list[list[Translation]]) -> None:
    said = {text: items[0] for text, items in zip(TEXTS, alone, strict=True)}
    assert said["print the <b>text</b> now."].text == "jetzt <b>den Wortlaut</b> drucken."
    kinds = {text: [warning.kind.value for warning in item.warnings] for text, item in said.items()}
    assert kinds["close the window."] == ["from-memory"]
    assert sum("like-memory" in of_text for of_text in kinds.values()) > 5


@pytest.mark.parametrize("size", [1, 3, len(TEXTS)])
def test_a_translation_does_not_depend_on_the_batch(
    size: int, translator: dragoman.Translator, alone: list[list[Translation]]
) -> None:
    order = list(range(len(TEXTS)))
    assert of_groups(translator, order, size) == alone
    random.Random(size).shuffle(order)
    assert of_groups(translator, order, size) == alone


def test_a_translation_does_not_depend_on_threads_or_what_was_given_first(
    plain: dragoman.Translator, translator: dragoman.Translator, alone: list[list[Translation]]
) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert translator.n_best(TEXTS) == alone
    finally:
        torch.set_num_threads(threads)
    memory = TranslationMemory(MEMORY, ("en", "de"))
    assert plain.with_memory(memory).with_terms(dragoman.Glossary(TERMS)).n_best(TEXTS) == alone


def test_a_match_does_not_depend_on_the_order_in_which_entries_came(plain: dragoman.Translator) -> None:
    entries = [(f"open the {noun} now", f"jetzt {noun}") for noun in ("fine", "fire", "five", "life")]
    notes = set()
    for seed in range(4):
        random.Random(seed).shuffle(entries)
        memory = TranslationMemory(entries[:seed], ("en", "de"))
        memory.like("x")  # it has its index
        for entry in entries[seed:]:
            memory.add(*entry)
        [best] = plain.with_memory(memory).n_best(["open the file now"])[0]
        notes |= {str(one) for one in best.warnings if one.is_note}
    assert notes == {"with a match of the memory: 94 %: open the fine now"}


def test_scores_are_of_what_the_model_has_read(translator: dragoman.Translator) -> None:
    [item] = translator.n_best(["open the text now."])[0]
    assert item.text == "jetzt den Wortlaut öffnen."
    pipeline = translator.pipeline
    matches = LearntMatches.of(pipeline.memory, pipeline.own, RUN)
    assert matches is not None
    read = matches.read_by(pipeline.own)
    ids = read.source_ids("open the text now.")
    assert {"⟦term⟧", "⟦memory⟧"} <= set(read.tokenizers.src.pieces(ids))
    [values] = token_log_probs(read, [(ids, read.tokenizers.tgt.encode(item.text))])
    assert item.log_prob == pytest.approx(sum(values))


def test_matches_of_arms_and_of_texts_with_tags_are_told(translator: dragoman.Translator) -> None:
    arms, tags = translator.n_best(
        ["{n, plural, one {close a window} other {open a page now}}", "close <b>a</b> window."]
    )
    assert [one.detail for one in arms[0].warnings if one.is_note] == [
        "83 %: close the window.",
        "84 %: open the page now.",
    ]
    assert [one.detail for one in tags[0].warnings if one.is_note] == ["87 %: close the window."]


def test_the_card_says_what_is_read_beside_the_text(tmp_path: Path) -> None:
    text = card(RUN)
    for piece, how in (("⟦/1⟧", "documents"), ("⟦as⟧", "--glossary"), ("⟦memory⟧", "--memory")):
        assert any(piece in line and how in line for line in text.splitlines())
    assert "a share of 0.7" in text
    assert "`lexicon.safetensors`" in text
    assert "Another program writes them by hand" in card(RUN, "ctranslate2")
    assert "beside the text" not in card(Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished")


def test_a_shortlist_has_the_pieces_that_plain_pairs_lack(plain: dragoman.Translator) -> None:
    tokenizers = plain.tokenizers
    copied = dict(_copied(tokenizers))
    for piece in CODE_PIECES:
        assert copied[tokenizers.src.id_of(piece)] == tokenizers.tgt.id_of(piece)
    assert copied[tokenizers.src.id_of("▁die")] == tokenizers.tgt.id_of("▁die")  # of a term
    assert all(has_learnt(name, tokenizers) for name in PIECES if name != "context")


def test_the_benchmark_of_speed_has_lines_of_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = script("benchmarks/learnt_speed.py")
    assert benchmark.longest_words(["open the spreadsheet", "close it", "the spreadsheet"]) == ["spreadsheet", "close"]
    assert benchmark.other_lines(["a b c", "d e f"]) == ["a e c", "d b f"]
    (tmp_path / "lines").write_text("open the window now.\nprint the page now.\n", encoding="utf-8")
    benchmark.main([str(RUN), str(tmp_path / "lines"), "--times", "1"])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[4:]]
    assert [row[0] for row in rows] == ["| plain", "| codes", "| terms", "| a match", "| all"]
    assert all(float(row[1]) > 0 and float(row[2]) > 0 for row in rows)


def test_words_that_do_not_begin_alike_are_no_forms_and_ask_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def lemma(word: str) -> str:
        asked.append(word)
        return {"betrachtungen": "betrachten"}.get(word, word)

    monkeypatch.setattr(inflection, "_lemmatizer", lambda language: lemma)
    monkeypatch.setattr(inflection, "_known", lambda language: None)
    german = inflection.Inflection("de")
    assert not german.are_forms("Tabelle", "Ausgabe")
    assert german.are_forms("Tabelle", "Tabellen")
    assert asked == []
    assert german.are_forms("betrachtungen", "betrachten")
    assert asked
    assert replace(german, language="en").are_forms("1", "1")
