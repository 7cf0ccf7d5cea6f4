"""A text of many lines as one row of ids, and back; stored once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.data.text_corpus import TextCorpusConfig, encode, prepare_text
from dragoman.errors import Error
from dragoman.special_tokens import EOS_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.pair import TOKENIZERS as KINDS
from dragoman.text.tokenizers.pair import CharactersConfig, SentencePieceConfig, WhitespaceConfig, WordsConfig

TEXT = "ROMEO:\nBut, soft! what light\n\n  through yonder window breaks?\tIt ▁is_ the east.\n"


def trained(config: Any, text: str) -> Tokenizer:
    return KINDS[config.type].train(config, iter(text.split("\n")))


def test_characters_and_line_feeds_come_back_exactly() -> None:
    tokenizer = trained(CharactersConfig(), TEXT)
    for text in (TEXT, "", "\n", "\n\n\n", "east", "\neast\n\n", " \n ", TEXT * 3):
        ids = list(tokenizer.encode_text(text))
        assert len(ids) == len(text)
        assert ids.count(EOS_ID) == text.count("\n")
        assert tokenizer.decode_text(ids) == text
    assert tokenizer.vocab_size == len(set(TEXT)) - 1 + len(SPECIALS)  # a line feed needs no piece of its own


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_of_known_characters_comes_back(text: str) -> None:
    tokenizer = trained(CharactersConfig(), text + "a")
    assert tokenizer.decode_text(tokenizer.encode_text(text)) == text


@pytest.mark.parametrize(
    "config", [WordsConfig(), WhitespaceConfig(), SentencePieceConfig(vocab_size=60)], ids=lambda config: config.type
)
def test_other_tokenizers_keep_lines_and_the_words_on_them(config: Any) -> None:
    text = "the cat sees the dog\n\na dog runs , today\nthe cat\n"
    tokenizer = trained(config, text)
    ids = list(tokenizer.encode_text(text))
    assert ids.count(EOS_ID) == 4
    assert tokenizer.decode_text(ids) == text
    assert tokenizer.decode_text(tokenizer.encode_text("the  cat \n a")) == "the cat\na"


def test_what_is_unknown_shows() -> None:
    tokenizer = trained(CharactersConfig(), "abc\n")
    assert list(tokenizer.encode_text("a\nz")) == [4, EOS_ID, UNK_ID]
    assert tokenizer.decode_text([4, EOS_ID, UNK_ID]) == "a\n⁇"


# -- on disk -------------------------------------------------------------------------------------------------------


class Reader:
    """Counts how often a text is read."""

    def __init__(self, text: str) -> None:
        self.text, self.times = text, 0

    def __call__(self) -> str:
        self.times += 1
        return self.text


def test_a_text_is_encoded_once(tmp_path: Path) -> None:
    tokenizer, read = trained(CharactersConfig(), TEXT), Reader(TEXT + "ü")
    ids, report = prepare_text(read, tokenizer, tmp_path / "train", made_from="a")
    assert (report.characters, report.tokens, report.unknown, report.reused) == (len(TEXT) + 1, len(TEXT) + 1, 1, False)
    again, second = prepare_text(read, tokenizer, tmp_path / "train", made_from="a")
    assert isinstance(again, np.memmap)
    assert second.reused
    assert second.characters == report.characters
    np.testing.assert_array_equal(ids, again)
    assert ids.dtype == again.dtype == np.uint16
    assert read.times == 1
    prepare_text(read, tokenizer, tmp_path / "train", made_from="b")
    assert read.times == 2


@pytest.mark.parametrize("damage", ["half ids", "no ids", "no meta", "other meta", "short ids"])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: str) -> None:
    tokenizer, read = trained(CharactersConfig(), TEXT), Reader(TEXT)
    expected, _ = prepare_text(read, tokenizer, tmp_path, made_from="a")
    ids, meta = tmp_path / "ids.npy", tmp_path / "meta.json"
    match damage:
        case "half ids":
            ids.write_bytes(ids.read_bytes()[:-3])
        case "no ids":
            ids.unlink()
        case "no meta":
            meta.unlink()
        case "other meta":
            meta.write_text("[]")
        case "short ids":
            np.save(ids, expected[:-1])
    found, report = prepare_text(read, tokenizer, tmp_path, made_from="a")
    np.testing.assert_array_equal(found, expected)
    assert not report.reused
    assert read.times == 2


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tokenizer = trained(CharactersConfig(), TEXT)
    with raises_error(Error.CANNOT_WRITE, "train", "file/train"):
        prepare_text(Reader(TEXT), tokenizer, tmp_path / "file" / "train", made_from="a")


def test_a_large_vocabulary_takes_wider_ids() -> None:
    text = "".join(map(chr, range(0x4E00, 0x9FFF))) + "".join(map(chr, range(0x20000, 0x2A6DF)))
    tokenizer = trained(CharactersConfig(), text)
    assert encode(tokenizer, text[:5]).dtype == (np.uint32 if tokenizer.vocab_size > 2**16 else np.uint16)


def test_more_context_than_a_window_has_is_refused() -> None:
    source = {"type": "text", "path": "x"}
    with raises_error(Error.WRONG_SETTING):
        parse(TextCorpusConfig, {"train": source, "valid": source, "block_len": 8, "min_context": 9})
