"""Changes to the file of a SentencePiece model: read by SentencePiece itself."""

import io
from typing import Any

import pytest
import sentencepiece as spm
from tests.errors import raises_error

from dragoman.errors import Error
from dragoman.text.tokenizers.sentencepiece_model import with_symbols, without

LINES = [f"a young girl is climbing number {number} into a house" for number in range(300)]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model(request: pytest.FixtureRequest) -> bytes:
    made = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=made, vocab_size=80, model_type=request.param,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    return made.getvalue()


def processor(model: bytes) -> Any:
    return spm.SentencePieceProcessor(model_proto=model)


def test_nothing_changed_is_the_same_bytes(model: bytes) -> None:
    assert without(model, []) == model
    assert with_symbols(model, []) == model


def test_a_piece_that_is_gone_is_cut_into_smaller_ones_and_all_else_stays(model: bytes) -> None:
    before = processor(model)
    pieces = before.EncodeAsPieces("young girl house")
    gone = max(pieces, key=len)
    after = processor(without(model, {gone}))
    found = after.EncodeAsPieces("young girl house")
    assert gone not in found
    assert "".join(found) == "".join(pieces)
    assert after.GetPieceSize() == before.GetPieceSize()
    assert after.DecodePieces(found) == "young girl house"
    others = [line for line in LINES if gone not in before.EncodeAsPieces(line)]
    assert all(after.EncodeAsPieces(line) == before.EncodeAsPieces(line) for line in others)


def test_specials_stay_whatever_is_asked(model: bytes) -> None:
    assert processor(without(model, {"<s>", "</s>", "<unk>"})).IsControl(1)


def test_a_symbol_is_a_piece_of_its_own_wherever_it_stands(model: bytes) -> None:
    after = processor(with_symbols(model, ["<term>", "ჵ"]))
    text = "a <term> youნgჵ girl<term>"
    pieces = after.EncodeAsPieces(text)
    assert pieces.count("<term>") == 2
    assert pieces.count("ჵ") == 1
    assert after.DecodePieces(pieces) == text
    assert after.EncodeAsPieces(LINES[0]) == processor(model).EncodeAsPieces(LINES[0])


def test_a_damaged_model_is_told() -> None:
    for damaged in (b"\x0a\xff", b"\x0b", b"\xff" * 12, b"\x0a\x05ab"):
        with raises_error(Error.DAMAGED):
            without(damaged, {"x"})
