"""Matches of a memory that a model reads behind the sentence: in training pairs, and in sentences to be translated."""

import copy
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from rapidfuzz import fuzz
from tests.errors import raises_error

from dragoman.alignment.learnt_memory import (
    LEXICON,
    MAX_TRAINED_SIMILARITY,
    MIN_SIMILARITY,
    links_of_run,
    marked,
    with_match,
)
from dragoman.alignment.lexicon import WordAligner
from dragoman.alignment.links import AlignedPair
from dragoman.decoding.search import DecodingConfig, Hypothesis
from dragoman.errors import Error
from dragoman.formats.base import Options
from dragoman.formats.document import FORMATS, Document
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.learnt_matches import LearntMatches
from dragoman.pipeline.memory import LayeredMemory, TranslationMemory
from dragoman.pipeline.pipeline import BY_CONTEXT, Pipeline
from dragoman.pipeline.translator import Translator
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.annotations import MEMORY, MEMORY_PIECES, PIECE, has_learnt, plain_text, without_pieces
from dragoman.text.augment import TextAugmentConfig
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.training.annotated_matches import BOUNDS, TrainingMatches
from dragoman.training.annotated_pairs import Annotator, pieces_of

VERBS = {"open": "öffnen", "close": "schließen", "print": "drucken", "save": "speichern"}
NOUNS = {"file": "die datei", "window": "das fenster", "page": "die seite", "text": "den text"}
PAIRS = [
    (f"{verb} the {noun} now", f"jetzt {what} {does}") for verb, does in VERBS.items() for noun, what in NOUNS.items()
]


@pytest.fixture(scope="module")
def aligner() -> WordAligner:
    return WordAligner([(src.split(), tgt.split()) for src, tgt in PAIRS * 3])


def tokenizers(*pieces: str) -> TokenizerPair:
    config = SentencePieceConfig(vocab_size=120, user_defined_symbols=list(pieces))
    return train_tokenizers(config, lambda: iter([src for src, _ in PAIRS]), lambda: iter([tgt for _, tgt in PAIRS]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open the file now", "jetzt die datei⟦other⟧ schließen⟦/other⟧"),
        ("Close the window now", "jetzt⟦other⟧ die datei⟦/other⟧ schließen"),  # of two links one is to another word
        ("print the text now", "jetzt⟦other⟧ die datei schließen⟦/other⟧"),
        ("close the file now!", "jetzt die datei schließen"),
    ],
)
def test_words_of_a_match_that_do_not_belong_are_marked(text: str, expected: str) -> None:
    links = [(3, 0), (1, 1), (2, 1), (2, 2), (0, 3)]
    assert marked(text, "close the file now", "jetzt die datei schließen", lambda src, tgt: links) == expected


def test_words_without_links_belong_but_between_words_that_do_not() -> None:
    between = marked("x", "a b", "A : B", lambda src, tgt: [(0, 0), (1, 2)])
    assert between == "⟦other⟧ A : B⟦/other⟧"
    assert marked("a x", "a b", "A : B.", lambda src, tgt: [(0, 0), (1, 2)]) == "A :⟦other⟧ B⟦/other⟧."
    assert marked("a b", "c d", "C D", lambda src, tgt: []) == "C D"  # nothing is known of it


def test_a_match_is_cut_into_the_tokens_of_a_sentence_of_its_own() -> None:
    tokenizer = tokenizers(*MEMORY_PIECES).src
    ids = tokenizer.encode(with_match("open the file now ", "jetzt die datei⟦other⟧ schließen⟦/other⟧"))
    cut = [piece for piece in tokenizer.pieces(ids) if piece not in MEMORY_PIECES]
    alone = [tokenizer.encode(text) for text in ("open the file now", "jetzt die datei schließen")]
    assert cut == tokenizer.pieces([*alone[0], *alone[1]])


def test_the_vocabulary_says_what_is_learnt() -> None:
    assert has_learnt("fuzzy", tokenizers(*MEMORY_PIECES))
    assert not has_learnt("fuzzy", tokenizers())
    assert pieces_of(TextAugmentConfig(fuzzy=0.1)) == MEMORY_PIECES
    assert pieces_of(TextAugmentConfig(tags=0.1, fuzzy=0.1))[-3:] == MEMORY_PIECES
    assert not pieces_of(TextAugmentConfig())


def test_a_lexicon_is_kept_with_the_run(aligner: WordAligner, tmp_path: Path) -> None:
    assert links_of_run(tmp_path)(["open"], ["öffnen"]) == []
    aligner.save(tmp_path / LEXICON)
    for src, tgt in PAIRS:
        assert links_of_run(tmp_path)(src.split(), tgt.split()) == aligner.links(src.split(), tgt.split()) != []
    (tmp_path / LEXICON).write_bytes(b"nothing")
    with raises_error(Error.DAMAGED, LEXICON):
        links_of_run(tmp_path)


def test_training_matches_are_of_all_classes_and_never_the_pair_itself(aligner: WordAligner) -> None:
    rng = random.Random(1)
    words = [f"{chr(97 + a)}{chr(97 + b)}" * 3 for a in range(20) for b in range(10)]
    base = [[rng.choice(words) for _ in range(12)] for _ in range(30)]
    sources = {" ".join(text) for text in base}
    for text in base:  # as of pages that repeat: most of them are nearly the same
        for changes in (1, 1, 1, 1, 2, 3, 4, 5, 6, 7):
            other = list(text)
            for at in rng.sample(range(12), changes):
                other[at] = rng.choice(words)
            sources.add(" ".join(other))
    matches = TrainingMatches([(src, src.upper()) for src in sorted(sources)], aligner.links)
    classes = Counter[int]()
    for src in sorted(sources):
        for seed in range(4):
            found = matches(src, random.Random(seed + hash(len(src))))
            if found is not None:
                similarity = fuzz.ratio(src, found.lower()) / 100
                assert 0.3 <= similarity < MAX_TRAINED_SIMILARITY
                assert found.lower() != src
                classes[sum(similarity < bound for bound in BOUNDS)] += 1
    assert max(classes.values()) < 0.4 * classes.total(), classes
    assert set(classes) >= {1, 2, 3, 4, 5}


def test_pairs_with_matches_are_a_function_of_the_generator() -> None:
    annotator = Annotator.of_pairs(TextAugmentConfig(fuzzy=0.5), PAIRS)
    other = Annotator.of_pairs(TextAugmentConfig(fuzzy=0.5), PAIRS)
    with_matches = 0
    for number, (src, tgt) in enumerate(PAIRS * 8):
        made = annotator(src, tgt, random.Random(number))
        assert made == other(src, tgt, random.Random(number))  # a run that resumes, whatever it has looked up before
        before, piece, match = made[0].partition(MEMORY)
        assert (before, made[1]) == (src, tgt)
        with_matches += bool(piece)
        assert not piece or without_pieces(match.strip())[0] in {said for _, said in PAIRS} - {tgt}
    assert 30 < with_matches < 100


def test_a_match_that_makes_a_pair_too_long_is_left_out() -> None:
    annotator = Annotator.of_pairs(TextAugmentConfig(fuzzy=1.0), PAIRS)
    made = [annotator(*PAIRS[0], random.Random(number))[0] for number in range(20)]
    longest = max(map(len, made))
    short = replace(annotator, fits=lambda src: len(src) < longest)
    again = [short(*PAIRS[0], random.Random(number))[0] for number in range(20)]
    assert again == [src if len(src) < longest else PAIRS[0][0] for src in made]
    assert 0 < sum(MEMORY in src for src in again) < sum(MEMORY in src for src in made)


def test_codes_and_matches_go_together() -> None:
    pairs = [(src.replace("the", "<b>the</b>"), tgt) for src, tgt in PAIRS]
    annotator = Annotator.of_pairs(TextAugmentConfig(tags=1.0, fuzzy=1.0), pairs)
    made = [annotator(*annotator.with_tags(*pair), random.Random(number)) for number, pair in enumerate(pairs)]
    both = [src for src, _ in made if MEMORY in src and PIECE.search(src.partition(MEMORY)[0])]
    assert both
    assert all("<b>" not in src for src in both)
    for src, tgt in made:  # codes are of the pair alone
        sentence, _, match = src.partition(MEMORY)
        assert sorted(PIECE.findall(sentence)) == sorted(PIECE.findall(tgt))
        assert set(PIECE.findall(match)) <= set(MEMORY_PIECES)


def test_tags_stay_in_pairs_whose_codes_are_not_to_be_learnt() -> None:
    annotator = Annotator.of_pairs(TextAugmentConfig(fuzzy=1.0), PAIRS)
    assert annotator.with_tags("<b>a</b> b", "<b>A</b> B") == ("<b>a</b> b", "<b>A</b> B")


# -- at work -------------------------------------------------------------------------------------------------------


class Reads:
    """A search that says the match that it has read, or else the sentence."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        texts = [translator.tokenizers.src.decode(part.ids) for part in parts]
        self.read += texts
        assert not any(MEMORY in part.text for part in parts)
        said = [plain_text(text.rpartition(MEMORY)[2]) for text in texts]
        return [[Hypothesis(translator.tokenizers.tgt.encode(text), -1.0, -2.0)] for text in said]


class Door(NamedTuple):
    pipeline: Pipeline
    engine: Reads


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory, aligner: WordAligner) -> Path:
    run = tmp_path_factory.mktemp("run")
    aligner.save(run / LEXICON)
    return run


@pytest.fixture(scope="module")
def vocabulary() -> TokenizerPair:
    return tokenizers(*MEMORY_PIECES)


@pytest.fixture
def door(run_dir: Path, vocabulary: TokenizerPair) -> Door:
    engine, model = Reads(), SimpleNamespace(alignment_head=None, max_target_length=None)
    search = SearchTranslator(
        model,  # type: ignore[arg-type]
        vocabulary,
        decoding=DecodingConfig(beam_size=1),
        max_src_tokens=60,
        languages=("en", "de"),
    ).searched_by(engine)
    return Door(Pipeline(search, search, keep=False, run=run_dir), engine)


def memory_of(*pairs: tuple[str, str], name: str = "") -> TranslationMemory:
    return TranslationMemory(pairs, ("en", "de"), name)


FILE = ("close the file now", "jetzt die datei schließen")


def test_the_model_reads_the_match_and_the_match_is_told(door: Door) -> None:
    pipeline = replace(door.pipeline, memory=memory_of(FILE, name="a.tmx"))
    [found] = pipeline.texts(["open the file now"])
    assert door.engine.read == ["open the file now⟦memory⟧ jetzt die datei⟦other⟧ schließen⟦/other⟧"]
    assert found.best.text == "jetzt die datei schließen"
    [note] = [one for one in found.best.warnings if one.is_note]
    assert note == Warning(WarningKind.LIKE_MEMORY, "85 %, a.tmx: close the file now")
    assert str(note) == "with a match of the memory: 85 %, a.tmx: close the file now"


def test_what_the_memory_has_is_not_searched_for_and_has_no_match(door: Door) -> None:
    """Also: translate/virtaal issue 732, matches for what is translated already."""
    pipeline = replace(door.pipeline, memory=memory_of(FILE, ("close the file", "datei schließen")))
    [found] = pipeline.texts(["close the file now"])
    assert (found.best.text, door.engine.read) == (FILE[1], [])
    assert [one.kind for one in found.best.warnings] == [WarningKind.FROM_MEMORY]


@pytest.mark.parametrize("text", ["print a page", "zzz", "open"])
def test_without_a_match_all_is_as_without_a_memory(door: Door, text: str) -> None:
    memory = memory_of(("save the text and close the window now", "jetzt den text speichern und das fenster schließen"))
    assert replace(door.pipeline, memory=memory).texts([text]) == door.pipeline.texts([text])
    assert door.engine.read == [text, text]


def test_a_run_without_the_pieces_reads_what_it_read_before(door: Door) -> None:
    own = copy.copy(door.pipeline.own)
    own.tokenizers = tokenizers()
    plain = replace(door.pipeline, search=own, own=own, memory=memory_of(FILE))
    [found] = plain.texts(["open the file now"])
    assert door.engine.read == ["open the file now"]
    assert not [one for one in found.best.warnings if one.is_note]


def test_a_match_that_makes_the_sentence_too_long_is_left_out(door: Door) -> None:
    long = memory_of(("open the file", "jetzt die datei öffnen " * 20))
    [found] = replace(door.pipeline, memory=long).texts(["open the file now"])
    assert door.engine.read == ["open the file now"]
    assert not [one for one in found.best.warnings if one.is_note]


def test_a_translation_does_not_depend_on_the_others(door: Door) -> None:
    pipeline = replace(door.pipeline, memory=memory_of(*PAIRS[:6], name="x"))
    texts = [f"{src} {end}" for src, _ in PAIRS for end in ("!", "please")]
    assert pipeline.texts(texts) == [one for text in texts for one in pipeline.texts([text])]
    assert [item.text for item in Translator(pipeline).with_memory(pipeline.memory).n_best(texts)[0]] == [
        pipeline.texts(texts)[0].best.text
    ]


def test_a_correction_is_a_match_at_once_and_no_more_once_it_is_gone(door: Door) -> None:
    memory = memory_of(name="a correction")
    pipeline = replace(door.pipeline, memory=memory)
    memory.add(*FILE)
    [found] = pipeline.texts(["open the file now"])
    assert "85 %, a correction: close the file now" in [one.detail for one in found.best.warnings]
    memory.remove(FILE[0])
    pipeline.texts(["open the file now"])
    assert [MEMORY in text for text in door.engine.read] == [True, False]


def test_the_match_stands_behind_what_else_the_model_reads(door: Door) -> None:
    def terms(sentence: str) -> str:
        return sentence.replace(" file", "⟦1⟧ file⟦/1⟧")

    own = copy.copy(door.pipeline.own)
    own.annotate = terms
    matches = LearntMatches.of(memory_of(FILE), own, None)
    assert matches is not None
    read = matches.read_by(own).annotate
    assert read("open the file now") == "open the⟦1⟧ file⟦/1⟧ now⟦memory⟧ jetzt die datei schließen"
    assert read("open⟦2⟧ the⟦/2⟧ file") == "open⟦2⟧ the⟦/2⟧⟦1⟧ file⟦/1⟧⟦memory⟧ jetzt die datei schließen"
    assert own.annotate is terms


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.tsv", "one thing\tein Ding\nclose the file now\tjetzt die datei schließen\n", 2),
        ("a.po", 'msgid "one thing"\nmsgstr "ein Ding"\n\nmsgid "close the file now"\nmsgstr "x"\n', 4),
    ],
)
def test_a_match_has_file_and_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    [match] = TranslationMemory.load(path, ("en", "de")).like("close the file")
    assert match.place == f"{path}:{line}"


def test_a_match_in_one_sentence_of_an_entry_has_the_place_of_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tA\nOpen the file. Close it.\tDatei öffnen. Schließen Sie sie.\n", encoding="utf-8")
    match = TranslationMemory.load(path, ("en", "de")).like("Open the files.")[0]
    assert (match.tgt, match.place) == ("Datei öffnen.", f"{path}:2")


LONG = " ".join(f"word{number}" for number in range(120))


@pytest.mark.parametrize(
    ("entry", "text", "expected"),
    [
        # mozilla/pontoon issue 2680: a long text that differs in one word was a match of 100 %.
        (LONG, LONG.replace("word60", "other"), 99),
        # beeware/mobile-wheels pull request 8: the opposite is much like it; it is a match, and marked, not the text.
        ("You can open the file now", "You can not open the file now", 92),
        # WeblateOrg/weblate issue 4999: what is the same but for case is no 90 %; it is told as not quite the same.
        ("Open The File Now", "open the file now", 99),
        # WeblateOrg/weblate issue 13908: at 75 % nothing was offered.
        ("This setting enables you to export the document as a file containing two file formats: PDF and ODF.",
         "This setting enables you to export as .pdf a hybrid that contains two formats, one of which is ODF.", 69),
        # WeblateOrg/weblate issue 973: Log in with ... was the translation of Continue with ...
        ("Log in with Facebook", "Continue with Facebook", 80),
        # WeblateOrg/weblate issue 13733: entries that are mostly marks and tags.
        ("<value>styles;categories</value><value>page styles;style categories</value>",
         "<value>styles;categories</value><value>list styles;style categories</value>", 94),
        # WeblateOrg/weblate issue 2829 and 952: where the percentage of a match begins and ends.
        ("open the file", "open the files of the user that has logged in before", None),
    ],
)  # fmt: skip
def test_percentages_of_public_reports(entry: str, text: str, expected: int | None) -> None:
    found = memory_of((entry, "x"), name="m").like(text, 1, MIN_SIMILARITY)
    assert [str(match) for match in found] == ([] if expected is None else [f"{expected} %, m: {entry}"])


def test_what_has_nothing_but_its_tags_in_common_is_no_match(door: Door) -> None:
    """Also: mozilla/pontoon issue 3730, a text of many tags that was offered another one of many tags."""
    memory = memory_of(("<h1>We're sorry</h1> <p>The page or file you requested <b>was not found</b>.</p>", "x"))
    text = "<h1>A VPN</h1> <p>hides <b>your</b> address.</p>"
    assert memory.like(text, 1, MIN_SIMILARITY)
    assert replace(door.pipeline, memory=memory).texts([text]) == door.pipeline.texts([text])
    [one] = replace(door.pipeline, memory=memory_of(("<b>close</b> it now", "x"))).texts(["<b>close</b> it"])
    assert WarningKind.LIKE_MEMORY in [note.kind for note in one.best.warnings]


def diagonal(_: Any, pairs: Sequence[AlignedPair]) -> list[np.ndarray]:
    return [np.eye(len(pair.tgt_words), len(pair.src_words)) for pair in pairs]


def test_of_several_translations_the_sentences_beside_choose(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also: litepress.cn issue 88, one source with several translations, one of which was taken for all."""
    path = tmp_path / "a.tsv"
    rows = ["File menu.\tMenü Datei.", "Open.\tÖffnen.", "Shop hours.\tZeiten.", "Open.\tOffen.", "Closed.\tZu.",
            "Open.\tÖffnen."]  # fmt: skip
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    pipeline = replace(door.pipeline, memory=TranslationMemory.load(path, ("en", "de")))
    texts = ["File menu. Open.", "Shop hours. Open.", "Open. Closed.", "Open."]
    found = pipeline.texts(texts)
    assert [one.best.text for one in found] == ["Menü Datei. Öffnen.", "Zeiten. Offen.", "Offen. Zu.", "Öffnen."]
    assert found[1].best.warnings[-1].detail == BY_CONTEXT
    assert found == [pipeline.texts([text])[0] for text in texts]
    monkeypatch.setattr("dragoman.pipeline.document.word_links", diagonal)
    document = DocumentTranslator(pipeline)
    made = Document("\n\n".join(texts).encode(), FORMATS["txt"], Options("x", ("en", "de"))).translated(document)
    assert made.decode().split("\n\n") == [one.best.text for one in found]
    page = Document(b"<p>Shop hours. <b>Open</b>.</p>", FORMATS["html"], Options("x", ("en", "de")))
    assert page.translated(DocumentTranslator(pipeline)) == b"<p>Zeiten. <b>Offen</b>.</p>"
    assert pipeline.memory is not None
    assert LayeredMemory([memory_of(("Open.", "Auf.")), pipeline.memory]).in_context("Open.", "Shop hours.", "") is None
    pipeline.memory.add("Open.", "Auf.")
    assert pipeline.texts(["Shop hours. Open."])[0].best.text == "Zeiten. Auf."
