"""Toy tasks: the right answers, splits that share nothing, and refusals where there is too little to share out."""

import doctest
import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.config import parse, to_dict
from dragoman.errors import Error
from dragoman.text.corpus import CorpusConfig, Pair, ToySource
from dragoman.text.sources import toy
from dragoman.text.sources.base import files_of, fingerprint
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer


def sources_of(**changes: Any) -> list[str]:
    return [pair.src for pair in ToySource(**{"task": "copy", **changes}).pairs()]


@pytest.mark.parametrize(
    ("task", "tgt"),
    [("copy", [3, 1, 12, 1]), ("drop_first", [1, 12, 1]), ("reverse", [1, 12, 1, 3]), ("sort", [1, 1, 3, 12])],
)
def test_answers(task: str, tgt: list[int]) -> None:
    assert list(toy.TASKS[task]((3, 1, 12, 1))) == tgt


@settings(max_examples=40)
@given(
    task=st.sampled_from(["copy", "drop_first", "reverse", "sort"]),
    split=st.sampled_from(["train", "valid", "test"]),
    symbols=st.integers(10, 40),
    min_length=st.integers(2, 6),
    more=st.integers(1, 10),
    seed=st.integers(),
)
def test_every_pair_is_as_asked(task: str, split: str, symbols: int, min_length: int, more: int, seed: int) -> None:
    settings = {"size": 30, "symbols": symbols, "min_length": min_length, "max_length": min_length + more, "seed": seed}
    source = parse(ToySource, {"task": task, "split": split, **settings})
    pairs = list(source.pairs())
    assert [pair.line for pair in pairs] == list(range(1, 31))
    for _, src, tgt, *_ in pairs:
        words = src.split(" ")
        assert min_length <= len(words) <= min_length + more
        assert {int(word) for word in words} <= set(range(1, symbols + 1))
        answers = {
            "copy": words,
            "drop_first": words[1:],
            "reverse": [*reversed(words)],
            "sort": sorted(words, key=int),
        }
        assert tgt.split(" ") == answers[task]
    assert pairs == list(source.pairs())


def test_no_split_shares_a_source_with_another_whatever_the_seeds() -> None:
    small = {"symbols": 4, "min_length": 1, "max_length": 6}  # so few that chance alone would share many
    train = {src for seed in range(3) for src in sources_of(split="train", size=3_000, seed=seed, **small)}
    valid = {src for seed in range(3) for src in sources_of(split="valid", size=200, seed=seed, **small)}
    test = {src for seed in range(3) for src in sources_of(split="test", size=200, seed=seed, **small)}
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert len(train) > 2_000


def test_what_is_held_out_is_all_different_up_to_the_limit() -> None:
    limit = sum(3**length for length in range(1, 8)) // 20
    for split in ("valid", "test"):
        sources = sources_of(split=split, size=limit, symbols=3, min_length=1, max_length=7)
        assert len(set(sources)) == limit
    with raises_error(Error.WRONG_SETTING):
        parse(ToySource, {"task": "copy", "split": "test", "size": limit + 1, "symbols": 3, "min_length": 1,
                          "max_length": 7})  # fmt: skip


def test_lengths_and_symbols_are_drawn_evenly() -> None:
    sources = [source.split() for source in sources_of(split="train", symbols=5, min_length=4, max_length=8)]
    for length in range(4, 9):
        assert sum(len(words) == length for words in sources) == pytest.approx(2_000, rel=0.1)
    words = [word for source in sources for word in source]
    for symbol in "12345":
        assert words.count(symbol) == pytest.approx(len(words) / 5, rel=0.05)


def test_splits_and_seeds_differ_and_sizes_are_prefixes() -> None:
    assert [len(sources_of(split=split)) for split in ("train", "valid", "test")] == [10_000, 1_000, 1_000]
    assert sources_of(split="test", size=50) == sources_of(split="test")[:50]
    assert sources_of(split="train", size=50) != sources_of(split="train", size=50, seed=2)


def test_the_same_on_every_machine() -> None:
    text = "\n".join(sources_of(split="train", size=100) + sources_of(split="test", size=100))
    assert hashlib.sha256(text.encode()).hexdigest().startswith("5ff28597d0f8f7e6")


def test_the_example_in_the_text_is_true() -> None:
    assert doctest.testmod(toy) == (0, 1)


def test_beer() -> None:
    source = ToySource(task="beer", split="test", size=3, max_length=1)
    assert list(source.pairs()) == [Pair(line, "ich möchte ein bier", "i want a beer") for line in (1, 2, 3)]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"min_length": 5, "max_length": 4}, (Error.WRONG_SETTING,)),
        ({"task": "drop_first", "min_length": 1}, (Error.WRONG_SETTING,)),
        ({"symbols": 9, "min_length": 1, "max_length": 3}, (Error.WRONG_SETTING,)),
        ({"symbols": 1}, (Error.WRONG_SETTING,)),
        ({"task": "revers"}, (Error.WRONG_SETTING, "reverse")),
        ({"size": 0}, (Error.WRONG_SETTING, "size")),
        ({"split": "dev"}, (Error.WRONG_SETTING, "split")),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], error: tuple[Any, ...]) -> None:
    toy_data = {"type": "toy", "task": "sort", "split": "train", **changes}
    with raises_error(*error):
        parse(CorpusConfig, {"src_lang": "a", "tgt_lang": "b", "train": toy_data, "valid": toy_data})


def test_made_by_the_program() -> None:
    source = ToySource(task="sort", split="train")
    assert files_of(source) == []
    assert fingerprint(source) == fingerprint(parse(ToySource, to_dict(source)))
    assert fingerprint(source) != fingerprint(ToySource(task="sort", split="train", seed=2))


def test_a_word_without_its_marks_is_understood_where_that_is_set() -> None:
    words = "ich möchte mochten schon schön ein bier"
    plain, folding = (
        WhitespaceTokenizer.train(WhitespaceConfig(fold_marks=fold), iter([words])) for fold in (False, True)
    )
    text = "ich mochte mo\u0308chte schon schön böer"
    assert plain.pieces(plain.encode(text)) == ["ich", "<unk>", "<unk>", "schon", "schön", "<unk>"]
    assert folding.pieces(folding.encode(text)) == ["ich", "möchte", "möchte", "schon", "schön", "<unk>"]
    assert plain.encode(words) == folding.encode(words)
    assert folding.encode("<unk> <s>") == [1, 1]


def test_a_vocabulary_may_be_given_whole() -> None:
    words = ["ich", "möchte", "ein", "bier"]
    tokenizer = WhitespaceTokenizer.train(WhitespaceConfig(user_defined_symbols=words), iter(["ich möchte ein bier"]))
    assert tokenizer.encode("ich möchte ein bier") == [4, 5, 6, 7]
    with raises_error(Error.EMPTY):
        WhitespaceTokenizer.train(WhitespaceConfig(), iter([""]))
