"""Symbols of one's own, kept white space, and lines of any length and content, of which none is left out."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.special_tokens import UNK_ID
from dragoman.tasks.auto_recipe import with_room
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import (
    TOKENIZERS,
    SentencePieceConfig,
    TokenizerPair,
    WordsConfig,
    check_tokenizers,
)
from dragoman.text.tokenizers.symbols import WHITE_SPACE, parts

SYMBOLS = ["<br>", "<b>", "</b>", "@@x"]
LINES = [
    "Bonjour\u00a0! Le monde est beau\u202f?",
    "le\tmonde est beau",
    "a  b <br>the dog runs",
    "the dog<br>sees a house",
    "東京\u3000大阪 に行く",
    "x y c < b r > / @ text",
] * 8
PARTS = [
    "<br>",
    "<b>",
    "</b>",
    "@@x",
    " ",
    "  ",
    "\u00a0",
    "\t",
    "\u2003",
    "\u3000",
    "the",
    "dog",
    "a",
    "<",
    "br",
    "東京",
]
KINDS = [
    {"type": "sentencepiece", "vocab_size": 200},
    {"type": "sentencepiece", "vocab_size": 200, "algorithm": "unigram"},
    {"type": "sentencepiece", "vocab_size": 400, "byte_fallback": True},
    {"type": "words"},
    {"type": "words", "rules": "characters"},
    {"type": "characters"},
]
WITH_SPACES = KINDS[:5]


def learnt(lines, **options):
    cls = TOKENIZERS[options["type"]]
    return cls.train(parse(cls.config_class, options, "a test"), iter(lines))


def texts(count=300):
    rng = random.Random(1)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_symbol_is_a_piece_wherever_it_stands(kind):
    """SentencePiece 217, 438 and 459."""
    tokenizer = learnt(LINES, **kind, user_defined_symbols=SYMBOLS)
    for text in texts():
        ids = tokenizer.encode(text)
        if UNK_ID not in ids:
            assert tokenizer.decode(ids) == (text if kind["type"] == "characters" else " ".join(text.split()))
        assert sum(tokenizer.letters(text)) == sum(not letter.isspace() for letter in text)
        for symbol in SYMBOLS:
            assert tokenizer.pieces(ids).count(symbol) == text.count(symbol)


@pytest.mark.parametrize("kind", WITH_SPACES, ids=str)
def test_kept_white_space_comes_back(kind):
    """SentencePiece 650, 684 and 520. A kind that the text to learn from has not becomes a space."""
    tokenizer = learnt(LINES, **kind, user_defined_symbols=SYMBOLS, white_space="keep")
    for text in texts():
        ids = tokenizer.encode(text)
        if UNK_ID not in ids:
            assert tokenizer.decode(ids) == text.replace("\u2003", " ")
        assert len(tokenizer.letters(text)) == len(ids)
    assert [letter for letter in WHITE_SPACE if tokenizer.id_of(letter) != UNK_ID] == [
        "\t",
        "\u00a0",
        "\u202f",
        "\u3000",
    ]


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_other_segmentations_leave_symbols_whole(algorithm):
    options = {"sampling": 0.5, "white_space": "keep", "user_defined_symbols": SYMBOLS, "algorithm": algorithm}
    tokenizer = learnt(LINES, type="sentencepiece", vocab_size=200, **options)
    for number, text in enumerate(texts()):
        ids = tokenizer.encode(text)
        again = tokenizer.sample_segmentation(ids, random.Random(number))
        assert tokenizer.decode(again) == tokenizer.decode(ids)
        assert [index for index in again if index in tokenizer.symbols] == [i for i in ids if i in tokenizer.symbols]


def test_tokens_of_text_that_is_tokenised_are_in_the_vocabulary_however_rare():
    tokenizer = learnt(["a a b b c"], type="whitespace", vocab_size=7, user_defined_symbols=["<br>"])
    assert tokenizer.pieces(range(4, 7)) == ["<br>", "a", "b"]


@pytest.mark.parametrize("symbol", ["", "two words", "\u00a0", "<s>", "▁x", "￭", "<br>"])
@pytest.mark.parametrize("kind", ["sentencepiece", "words", "characters", "whitespace"])
def test_symbols_that_cannot_be_are_refused(kind, symbol):
    with raises_error(Error.WRONG_SETTING):
        parse(TOKENIZERS[kind].config_class, {"type": kind, "user_defined_symbols": ["<br>", symbol]}, "recipe.yaml")


def test_symbols_that_the_spelling_changes_are_refused():
    for symbols, normalize, refused in [(["ﬁ"], "nfkc", True), (["ﬁ"], "nfc", False), (["<br>"], "nfkc", False)]:
        check = (SentencePieceConfig(user_defined_symbols=symbols), NORMALIZERS[normalize])
        if refused:
            with raises_error(Error.CONFLICT):
                check_tokenizers(*check)
        else:
            check_tokenizers(*check)
    with raises_error(Error.CONFLICT):
        check_tokenizers(WordsConfig(white_space="keep"), NORMALIZERS["nfkc"])
    with raises_error(Error.CONFLICT):
        check_tokenizers(WordsConfig(user_defined_symbols=["<BR>"]), str.lower)
    with pytest.raises((ValidationError, ValueError)):
        SentencePieceConfig(languages=["de"], user_defined_symbols=["<2de>"])


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_no_line_is_left_out_of_learning(algorithm, capsys):
    """SentencePiece 214, 463, 517: lines of more than 4,192 bytes, or with its own mark of the unknown, are skipped."""
    lines = [*LINES, "καλημέρα κόσμε " * 200, "龘" * 2000, "Ω ▅ Я"]
    tokenizer = learnt(lines, type="sentencepiece", vocab_size=200, algorithm=algorithm)
    assert UNK_ID not in tokenizer.encode("καλημέρα 龘 Ω Я")
    assert "2 lines of more than 4,096 bytes" in capsys.readouterr().err
    assert learnt(["ein Satz " * 1000], type="sentencepiece", vocab_size=30).decode([]) == ""


def test_lines_beyond_the_largest_number_are_counted(capsys):
    learnt([f"line {number}" for number in range(50)], type="sentencepiece", vocab_size=60, max_sentences=20)
    assert "learns from 20 of 50 lines" in capsys.readouterr().err


@given(st.text(alphabet="aé龘\U0001f600 ", max_size=60), st.integers(4, 20))
def test_parts_of_a_line_are_the_line(text, longest):
    found = list(parts(text, longest))
    assert all(len(part.encode()) <= longest for part in found)
    assert "".join(found).replace(" ", "") == text.replace(" ", "")
    assert " ".join(found).split() == text.split() or any(len(word.encode()) >= longest - 1 for word in text.split())


def test_a_batch_of_chosen_settings_has_room_for_the_longest_pair():
    data = {"corpus": {"max_tokens": 5000}, "training": {"batch_tokens": 1024, "max_steps": 3}}
    assert with_room(data, ["corpus.max_tokens=5000"])["training"] == {"batch_tokens": 5001, "max_steps": 3}
    assert with_room(data, ["training.batch_tokens=900"]) == data
    assert with_room({**data, "corpus": {}}, []) == {**data, "corpus": {}}


@pytest.mark.parametrize("normalize", ["nfc", "nfkc"])
@pytest.mark.parametrize("kind", [*KINDS[:3], KINDS[5]], ids=str)
def test_exported_tokenizers_know_them(kind, normalize):
    pytest.importorskip("tokenizers")
    from dragoman.export.huggingface_tokenizer import build

    keeps = kind["type"] == "sentencepiece" and normalize == "nfc"
    options = {"white_space": "keep"} if keeps else {}
    ours = learnt(LINES, **kind, **options, user_defined_symbols=SYMBOLS)
    theirs = build(TokenizerPair(ours, ours, True), NORMALIZERS[normalize])
    theirs.encode_special_tokens = True
    for text in map(NORMALIZERS[normalize], texts()):
        ids = ours.encode(text)
        if text.strip():
            assert theirs.encode(text, add_special_tokens=False).ids == ids
            assert UNK_ID in ids or theirs.decode(ids) == ours.decode(ids)
