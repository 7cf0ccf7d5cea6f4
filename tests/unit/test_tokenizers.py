"""Tokenizers: text comes back, specials stay out of text, other segmentations spell the same sentence."""

import json
import pickle
import random
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.errors import DragomanError, Error
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.base import UNK_SURFACE, Tokenizer, Vocabulary, sample_lines
from dragoman.text.tokenizers.cased import CasedConfig
from dragoman.text.tokenizers.characters import CharactersConfig, CharactersTokenizer
from dragoman.text.tokenizers.pair import (
    TOKENIZERS,
    SeparateConfig,
    load_tokenizers,
    save_tokenizers,
    train_tokenizers,
)
from dragoman.text.tokenizers.resampling import BpeDropout, UnigramSampling
from dragoman.text.tokenizers.segmenters import segmenter
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig, SentencePieceTokenizer
from dragoman.text.tokenizers.whitespace import WhitespaceConfig, WhitespaceTokenizer
from dragoman.text.tokenizers.words import WordsConfig, WordsTokenizer, join, tokens_of

SYLLABLES = ("ka", "ri", "no", "schu", "té", "lö", "ming", "ar", "ou", "pen", "st", "eau")


def made_up_lines(count: int) -> list[str]:
    rng = random.Random(5)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(300)]
    return [" ".join(rng.choices(words, k=rng.randint(1, 14))) + rng.choice(".!?") for _ in range(count)]


LINES = [*made_up_lines(400), "<s> is not a start, </s> no end, <pad> and <unk> < nothing >", " ".join("0123456789")]
ODD_TEXTS = [
    "",
    " ",
    "<s>",
    "</s> <pad>",
    "a<s>b",
    "☃",
    "two  spaces ",
    "▁",
    "a ▁ b",
    "a\u00a0b\u2028c\td",
    "\u200b",
    "￭￮",
]
# Without the three characters that tokenizers replace on purpose.
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁￭￮"), max_size=40)


def squeeze(text: str) -> str:
    return " ".join(text.split())


def train(config: Any, lines: list[str] = LINES) -> Tokenizer:
    return TOKENIZERS[config.type].train(config, iter(lines))


CONFIGS = [
    SentencePieceConfig(vocab_size=200, sampling=0.3),
    SentencePieceConfig(vocab_size=200, sampling=0.3, algorithm="unigram"),
    SentencePieceConfig(vocab_size=500, sampling=0.3, byte_fallback=True),
    CharactersConfig(),
    WordsConfig(),
    WordsConfig(rules="characters", lowercase=True),
    WhitespaceConfig(),
    CasedConfig(vocab_size=500, sampling=0.3, byte_fallback=True),
]
TRAINED = [train(config) for config in CONFIGS]
every_tokenizer = pytest.mark.parametrize("tokenizer", TRAINED, ids=lambda t: f"{t.config.type}-{t.vocab_size}")


@every_tokenizer
def test_contract(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces(range(4)) == list(SPECIALS)
    assert [tokenizer.id_of(special) for special in SPECIALS] == [PAD_ID, UNK_ID, BOS_ID, EOS_ID]
    every = list(range(tokenizer.vocab_size))
    assert [tokenizer.id_of(piece) for piece in tokenizer.pieces(every)] == every
    assert tokenizer.id_of("never seen") == UNK_ID
    lower = getattr(tokenizer.config, "lowercase", False)
    for line in LINES if tokenizer.config.type != "whitespace" else LINES[:-2]:
        ids = tokenizer.encode(line)
        assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == (line.lower() if lower else line)
    for bad in (-1, tokenizer.vocab_size, 10**9):
        for method in (tokenizer.decode, tokenizer.pieces):
            with raises_error(Error.UNKNOWN_TOKEN):
                method([5, bad])
    assert UNK_SURFACE in tokenizer.decode([UNK_ID])


@every_tokenizer
def test_same_lines_same_tokenizer_and_plain_files(tokenizer: Tokenizer, tmp_path: Path) -> None:
    train(tokenizer.config).save(tmp_path / "again")
    tokenizer.save(tmp_path / "first")
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    for other in (type(tokenizer).load(tmp_path / "first"), pickle.loads(pickle.dumps(tokenizer))):  # noqa: S301
        assert other.config == tokenizer.config
        assert [other.encode(line) for line in LINES] == [tokenizer.encode(line) for line in LINES]
        assert other.sample_segmentation(tokenizer.encode(LINES[0]), random.Random(1)) == tokenizer.sample_segmentation(
            tokenizer.encode(LINES[0]), random.Random(1)
        )


@every_tokenizer
def test_text_never_becomes_a_special(tokenizer: Tokenizer) -> None:
    for text in [*ODD_TEXTS, *SPECIALS, " ".join(SPECIALS), "".join(SPECIALS), LINES[-2]]:
        ids = tokenizer.encode(text)
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(ids)
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(tokenizer.sample_segmentation(ids, random.Random(1)))


@every_tokenizer
@settings(max_examples=30)
@given(text=st.text(st.characters(exclude_categories=["Cs"])), seed=st.integers(0, 9))
def test_any_text_is_encoded(tokenizer: Tokenizer, text: str, seed: int) -> None:
    ids = tokenizer.encode(text)
    again = tokenizer.sample_segmentation(ids, random.Random(seed))
    assert tokenizer.decode(again) == tokenizer.decode(ids)
    assert again.count(UNK_ID) == ids.count(UNK_ID)
    assert all(0 <= index < tokenizer.vocab_size for index in again)


@settings(max_examples=100)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_characters_lose_nothing(text: str) -> None:
    tokenizer = CharactersTokenizer.train(CharactersConfig(), iter([text]))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert CharactersTokenizer.train(CharactersConfig(), iter(["a b"])).pieces([4, 5, 6]) == ["a", "b", "▁"]


@settings(max_examples=200)
@given(any_text)
def test_words_lose_only_whitespace(text: str) -> None:
    for rules in ("rule", "characters"):
        assert join(tokens_of(text, WordsConfig(rules=rules))) == squeeze(text)


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab.,'-(\"0 我の，。"), max_size=20))
def test_marks_lose_only_whitespace(text: str) -> None:
    for rules in ("rule", "characters"):
        assert join(tokens_of(text, WordsConfig(rules=rules))) == squeeze(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't (really).", "Don't (￭ really ￭) ￭."),
        ("It's the dogs' bone, we'll see.", "It ￭'s the dogs ￭' bone ￭, we ￭'ll see ￭."),
        ("L'homme qu’il a vu", "L'￭ homme qu’￭ il a vu"),
        ("Kinder-Garten, z.B. in den U.S.", "Kinder-Garten ￭, z.B. in den U.S."),
        ("1,234.50 at 12:30 on the 3rd...", "1,234.50 at 12:30 on the 3rd ￭..."),
        ("(see https://a.example/b?c=d&e, or me+x@mail.example.org)",
         "(￭ see https://a.example/b?c=d&e ￭, or me+x@mail.example.org ￭)"),
        ("end.Next", "end ￭.￭ Next"),
        ("e\u0301te\u0301 नमस्ते", "e\u0301te\u0301 नमस्ते"),
        ("￭ ￮", "■ ○"),
    ],
)  # fmt: skip
def test_where_words_end(text: str, tokens: str) -> None:
    assert tokens_of(text, WordsConfig()) == tokens.split()


def test_han_characters_stand_alone_and_need_no_mark() -> None:
    config = WordsConfig(rules="characters")
    tokens = tokens_of("我用Python写 代码，好!", config)
    assert tokens == [
        "我",
        "用",
        "￭Python￭",
        "写",
        "￮",
        "代",
        "码",
        "，",
        "好",
        "￭!",
    ]
    assert join(["￭", "￮", "￭Python", "￮", "￭"]) == "Python"


def test_words_from_libraries_that_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for rules, module, extra in (("spacy", "spacy", "spacy"), ("jieba", "jieba", "chinese")):
        monkeypatch.setitem(sys.modules, module, None)
        with raises_error(Error.NOT_INSTALLED, f"dragoman[{extra}]"):
            WordsTokenizer.train(WordsConfig(rules=rules, lang="unheard"), iter(["a"]))


def test_words_from_jieba(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.ModuleType("jieba")
    fake.setLogLevel = lambda level: None  # type: ignore[attr-defined]
    fake.lcut = lambda text: ["我们", "用", "Python", " ", "写", "代码", "!"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jieba", fake)
    tokens = tokens_of("我们用Python 写代码!", WordsConfig(rules="jieba", lang="made up"))
    assert tokens == ["我们", "用", "￭Python", "写", "代码", "￭!"]
    assert join(tokens) == "我们用Python 写代码!"


def test_words_from_spacy() -> None:
    pytest.importorskip("spacy")
    tokens = tokens_of("We don't know: 3km.", WordsConfig(rules="spacy"))
    assert tokens == ["We", "do", "￭n't", "know", "￭:", "3", "￭km", "￭."]
    with raises_error(Error.NO_SUCH_LANGUAGE):
        segmenter("spacy", "nowhere")


def test_vocabulary_by_frequency_then_code_point() -> None:
    lines = ["b a c a <s> <s> <s>", "b d"]
    tokenizer = WhitespaceTokenizer.train(WhitespaceConfig(vocab_size=7), iter(lines))
    assert tokenizer.pieces(range(4, 7)) == ["a", "b", "c"]
    assert tokenizer.encode("a d <s> <unk>") == [4, UNK_ID, UNK_ID, UNK_ID]
    often = WhitespaceTokenizer.train(WhitespaceConfig(min_count=2), iter(lines))
    assert often.vocab_size == 6
    with raises_error(Error.EMPTY):
        WhitespaceTokenizer.train(WhitespaceConfig(min_count=9), iter(lines))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("[", (Error.BAD_SYNTAX, "vocabulary.json")),
        ("{}", (Error.WRONG_SHAPE, "vocabulary.json")),
        ('["a"]', (Error.WRONG_SHAPE, "vocabulary.json")),
        (json.dumps([*SPECIALS, "a", 5]), (Error.WRONG_SHAPE, "vocabulary.json")),
        (json.dumps([*SPECIALS, "a", None]), (Error.WRONG_SHAPE, "vocabulary.json")),
        (json.dumps([*SPECIALS, "a", "b", "b"]), (Error.WRONG_SHAPE, "vocabulary.json")),
        (json.dumps([*SPECIALS, "<s>"]), (Error.WRONG_SHAPE, "vocabulary.json")),
    ],
)
def test_damaged_vocabulary_is_refused(tmp_path: Path, content: str, error: tuple[Any, ...]) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_text(content, encoding="utf-8")
    with raises_error(*error):
        Vocabulary.load(path)
    Vocabulary(["a\u2028", "b", "\n"]).save(path)
    assert [Vocabulary.load(path)[index] for index in (4, 5, 6)] == ["a\u2028", "b", "\n"]


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_sentencepiece_loses_only_whitespace(algorithm: str) -> None:
    config = SentencePieceConfig(vocab_size=200, algorithm=algorithm)  # type: ignore[arg-type]
    tokenizer = train(config)

    @settings(max_examples=100)
    @given(st.text(st.sampled_from(sorted({*"".join(LINES), "\t", "\u00a0", "\u2028"}))))
    def check(text: str) -> None:
        assert tokenizer.decode(tokenizer.encode(text)) == squeeze(text)

    check()
    assert tokenizer.decode(tokenizer.encode("kari ☃☃ pe☃no")) == f"kari {UNK_SURFACE} pe{UNK_SURFACE}no"
    assert not tokenizer.sampling
    assert tokenizer.sample_segmentation(ids := tokenizer.encode(LINES[0]), random.Random(1)) is ids


def resampler_of(config: SentencePieceConfig, amount: float) -> tuple[Tokenizer, Any]:
    tokenizer = SentencePieceTokenizer.train(config, iter(made_up_lines(2000)))
    known = range(len(SPECIALS), tokenizer.vocab_size)
    pieces = {index: (tokenizer.pieces([index])[0], tokenizer._processor.GetScore(index)) for index in known}
    return tokenizer, (BpeDropout if config.algorithm == "bpe" else UnigramSampling)(pieces, amount)


@pytest.mark.parametrize(("algorithm", "amount"), [("bpe", 0.0), ("unigram", 1000.0)])
def test_resampling_without_chance_is_sentencepieces_own(algorithm: Any, amount: float) -> None:
    tokenizer, sample_segmentation = resampler_of(SentencePieceConfig(vocab_size=150, algorithm=algorithm), amount)
    texts = [*made_up_lines(2000), "kari ☃ pen☃no ?riming!schu", "noschukamingreau" * 20]
    for text in texts:
        ids = tokenizer.encode(text)
        assert sample_segmentation(ids, random.Random(1)) == ids


@pytest.mark.parametrize("tokenizer", TRAINED[:3])
def test_resampling_is_another_spelling_of_the_same(tokenizer: Tokenizer) -> None:
    assert tokenizer.sampling
    ids = tokenizer.encode("karino schutélö ☃ ming☃arou, peneau pentélö.")
    drawn = [tokenizer.sample_segmentation(ids, random.Random(seed)) for seed in range(200)]
    assert drawn == [tokenizer.sample_segmentation(ids, random.Random(seed)) for seed in range(200)]
    assert len({tuple(other) for other in drawn}) > 10
    assert {tokenizer.decode(other) for other in drawn} == {tokenizer.decode(ids)}
    not_words = [[index for index in other if tokenizer.pieces([index])[0].startswith("<")] for other in drawn]
    assert all(kept == not_words[0] != [] for kept in not_words)


def test_bpe_dropout_leaves_out_merges_at_its_rate() -> None:
    sample_segmentation = BpeDropout({1: ("a", 0), 2: ("b", 0), 3: ("ab", -1), 4: ("aba", -2)}, 0.25)
    rng = random.Random(1)
    counts = Counter(tuple(sample_segmentation([4], rng)) for _ in range(20_000))
    # ab merges with 3/4; then aba with 3/4 of that; the last a stays alone otherwise.
    expected = {(4,): 9 / 16, (3, 1): 3 / 16, (1, 2, 1): 1 / 4}
    assert counts.keys() == expected.keys()
    for ids, probability in expected.items():
        assert counts[ids] / 20_000 == pytest.approx(probability, abs=0.01)


def test_unigram_sampling_follows_the_pieces_probabilities() -> None:
    scores = {1: ("a", -1.0), 2: ("b", -2.0), 3: ("ab", -2.5), 4: ("ba", -0.5), 5: ("bab", -9.0)}
    sample_segmentation = UnigramSampling(scores, 0.5)
    ways = {(1, 2, 1): -4.0, (3, 1): -3.5, (1, 4): -1.5}
    total = sum(2.718281828 ** (0.5 * score) for score in ways.values())
    rng = random.Random(1)
    counts = Counter(tuple(sample_segmentation([3, 1], rng)) for _ in range(20_000))
    assert counts.keys() == ways.keys()
    for ids, score in ways.items():
        assert counts[ids] / 20_000 == pytest.approx(2.718281828 ** (0.5 * score) / total, abs=0.01)


@pytest.mark.parametrize(
    ("config", "lines", "error"),
    [
        (SentencePieceConfig(), [], Error.EMPTY),
        (SentencePieceConfig(), [" ", "▁"], Error.EMPTY),
        (SentencePieceConfig(vocab_size=10), ["abcdefghijklm"], Error.WRONG_SETTING),
        (CharactersConfig(), [""], Error.EMPTY),
        (WordsConfig(), [" "], Error.EMPTY),
    ],
)
def test_too_little_to_learn_from(config: Any, lines: list[str], error: Error) -> None:
    with raises_error(error) as caught:
        train(config, lines)
    assert "\n" not in str(caught.value)


def test_small_corpus_gives_a_small_vocabulary() -> None:
    for algorithm in ("bpe", "unigram"):
        tokenizer = train(SentencePieceConfig(algorithm=algorithm), ["one small line", "two"])  # type: ignore[arg-type]
        assert 4 < tokenizer.vocab_size < 60
        assert tokenizer.decode(tokenizer.encode("two lone lines")) == "two lone lines"


def test_sample_is_uniform_and_repeatable() -> None:
    lines = [str(number) for number in range(1000)]
    assert sample_lines(iter(lines), 1000) == lines
    some = sample_lines(iter(lines), 100)
    assert some == sample_lines(iter(lines), 100)
    assert len(set(some)) == 100
    assert 400 < sum(map(int, some)) / 100 < 600


def sides() -> tuple[Any, Any]:
    def src() -> Iterator[str]:
        return iter(LINES[:200])

    def tgt() -> Iterator[str]:
        return iter(LINES[200:])

    return src, tgt


def test_pairs_of_tokenizers(tmp_path: Path) -> None:
    shared = train_tokenizers(SentencePieceConfig(vocab_size=200), *sides())
    assert shared.shared
    assert shared.src is shared.tgt
    config = parse(SeparateConfig, {"src": {"type": "characters"}, "tgt": {"type": "words", "lowercase": True}})
    separate = train_tokenizers(config, *sides())
    for name, pair in (("shared", shared), ("separate", separate)):
        save_tokenizers(pair, tmp_path / name)
        loaded = load_tokenizers(tmp_path / name)
        assert loaded.shared == pair.shared == (loaded.src is loaded.tgt)
        for line in LINES:
            assert loaded.src.encode(line) == pair.src.encode(line)
            assert loaded.tgt.encode(line) == pair.tgt.encode(line)


def test_damaged_tokenizer_folders_are_refused(tmp_path: Path) -> None:
    with raises_error(Error.CANNOT_READ, "tokenizers.json"):
        load_tokenizers(tmp_path)
    save_tokenizers(train_tokenizers(SentencePieceConfig(vocab_size=200), *sides()), tmp_path)
    model = tmp_path / "shared" / "sentencepiece.model"
    for damage in (b"", b"junk", model.read_bytes()[:-7]):
        model.write_bytes(damage)
        with pytest.raises(DragomanError) as caught:
            load_tokenizers(tmp_path)
        assert caught.value.code in (Error.DAMAGED, Error.MISMATCH)
        assert Path(caught.value.file or "").name == "sentencepiece.model"
    model.unlink()
    with raises_error(Error.CANNOT_READ, "sentencepiece.model"):
        load_tokenizers(tmp_path)
    (tmp_path / "shared" / "config.json").write_text('{"type": "sentencepiece", "vocab": 3}')
    with raises_error(Error.UNKNOWN_SETTING, "config.json"):
        load_tokenizers(tmp_path)
    (tmp_path / "tokenizers.json").write_text('{"shared": "letters"}')
    with raises_error(Error.UNKNOWN_NAME, "tokenizers.json"):
        load_tokenizers(tmp_path)
    (tmp_path / "tokenizers.json").write_text('{"src": "words"}')
    with raises_error(Error.WRONG_SHAPE, "tokenizers.json"):
        load_tokenizers(tmp_path)


def test_what_cannot_be_learnt_names_its_side() -> None:
    config = SeparateConfig(src=SentencePieceConfig(vocab_size=200), tgt=SentencePieceConfig(vocab_size=8))
    with raises_error(Error.WRONG_SETTING, "tokenizer.tgt"):
        train_tokenizers(config, *sides())
