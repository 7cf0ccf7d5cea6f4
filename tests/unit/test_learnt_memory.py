"""Matches of a memory that a model reads behind the sentence: in training pairs, and in sentences to be translated."""

import random
from collections import Counter
from pathlib import Path

import pytest
from rapidfuzz import fuzz
from tests.errors import raises_error

from dragoman.alignment.learnt_memory import ALIKE, LEXICON, has_learnt_matches, links_of_run, marked, with_match
from dragoman.alignment.lexicon import WordAligner
from dragoman.errors import Error
from dragoman.text.annotations import MEMORY, MEMORY_PIECES, PIECE, without_pieces
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
    assert has_learnt_matches(tokenizers(*MEMORY_PIECES))
    assert not has_learnt_matches(tokenizers())
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
                assert 0.3 <= similarity < ALIKE
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
