"""The embedded corpus: correct sentences, the same everywhere, and splits that hold something out."""

import bz2
import hashlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.corpora import embedded
from dragoman.corpora.embedded import LIMITS, PAIRS, SIZES, sentences, write
from dragoman.errors import Error

BOTH = ("de-en", "zh-en")
WORD = re.compile(r"[\w'-]+")
GOLDEN = {"de-en": "a293f8e2e1b380a1", "zh-en": "fd5c120267a15c9f"}
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def digest(pair, split, size=300, seed=1):
    text = "".join(f"{source}\t{target}\n" for source, target in sentences(pair, split, size, seed))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("pair", BOTH)
def test_the_same_bytes_in_every_process(pair):
    program = (
        "import hashlib; from dragoman.corpora.embedded import sentences;"
        f"t = ''.join(f'{{s}}\\t{{t}}\\n' for s, t in sentences({pair!r}, 'train', 300, 1));"
        "print(hashlib.sha256(t.encode()).hexdigest()[:16])"
    )
    for hash_seed in ("0", "4711"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert result.stdout.strip() == GOLDEN[pair]
    assert digest(pair, "train") == GOLDEN[pair]
    assert digest(pair, "train", seed=2) != GOLDEN[pair]


def test_never_imports_torch():
    program = "import sys, dragoman.corpora.embedded; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("pair", "split", "size", "expected"),
    [
        ("de-en", "train", 20_000, "14cdd87b7269ee8b"),
        ("en-de", "valid", 5_000, "a19b0ef6198efffe"),
        ("zh-en", "test", 10_000, "b9fba0cdcd579676"),
        ("en-zh", "train", 20_000, "cd33d10ae11a66d1"),
        ("en-zh", "test", 10_000, "67af7b725a71013d"),
    ],
)
def test_the_usual_seed_gives_the_same_bytes_for_ever(pair, split, size, expected):
    assert digest(pair, split, size) == expected


@pytest.mark.system
def test_the_grammars_of_the_benchmarks_made_the_data(tmp_path):
    subprocess.run([sys.executable, "-m", "embedded_corpus", tmp_path, "--lines", "300"], cwd=BENCHMARKS, check=True)
    made = {path.name: bz2.decompress(path.read_bytes()) for path in tmp_path.iterdir()}
    assert len(made) == 6
    for name, text in made.items():
        assert bz2.decompress((embedded._FOLDER / name).read_bytes()).startswith(text)
        assert text.count(b"\n") == 300


@pytest.mark.parametrize("split", SIZES)
@pytest.mark.parametrize("pair", PAIRS)
def test_another_seed_is_another_draw(pair, split):
    usual, other = (list(sentences(pair, split, 500, seed)) for seed in (1, 2))
    assert len(set(usual) & set(other)) < 100
    assert list(sentences(pair, split, 400, 2)) == other[:400]
    assert list(sentences(pair, split, 400, -7)) != other[:400]


def test_training_begins_again_after_its_last_block():
    texts = list(sentences("de-en", "train", 120_000))
    assert set(texts[:60_000]) == set(texts[60_000:])
    assert texts[:60_000] != texts[60_000:]


@pytest.mark.system
@pytest.mark.parametrize("pair", PAIRS)
def test_splits_share_no_source(pair):
    train = {source for source, _ in sentences(pair, "train", 60_000, seed=3)}
    valid = [source for source, _ in sentences(pair, "valid", 2_000)]
    test = [source for source, _ in sentences(pair, "test", 4_000)]
    assert len(set(valid)) == 2_000
    assert len(set(test)) == 4_000
    assert not train & {*valid, *test}
    assert not {*valid} & {*test}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("pair", BOTH)
def test_every_word_form_of_the_test_split_is_taught(pair, seed):
    def forms(split):
        found = set()
        for source, target in sentences(pair, split, seed=seed):
            found |= set(source if pair == "zh-en" else WORD.findall(source)) | set(WORD.findall(target))
        return found

    assert forms("test") | forms("valid") <= forms("train")


@pytest.mark.parametrize("pair", BOTH)
def test_held_out_sentences_combine_words_that_training_shows_apart(pair):
    def neighbours(split):
        words = [WORD.findall(target) for _, target in sentences(pair, split)]
        return {couple for row in words for couple in itertools.pairwise(row)}

    apart = neighbours("test") - neighbours("train")
    assert len(apart) > 50
    assert {word for couple in apart for word in couple} <= {word for couple in neighbours("train") for word in couple}


@pytest.mark.parametrize("pair", BOTH)
def test_one_source_has_one_target(pair):
    known = {}
    for source, target in itertools.chain(sentences(pair, "train", 50_000), sentences(pair, "test")):
        assert known.setdefault(source, target) == target


@pytest.mark.parametrize("pair", BOTH)
def test_sentences_look_like_sentences(pair):
    for source, target in itertools.islice(sentences(pair, "test"), 1_000):
        for text in (source, target):
            assert "  " not in text
            assert text == text.strip()
            assert text[-1] in ".?。？"
            assert text[0] == text[0].upper()
            assert "None" not in text
        assert pair != "zh-en" or " " not in source
        assert " a a" not in target
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", target, re.IGNORECASE)


def test_classics_are_in_training():
    german_lines, chinese_lines = set(sentences("de-en")), set(sentences("zh-en"))
    assert ("ich möchte ein bier", "i want a beer") in german_lines
    assert {("我爱你", "i love you"), ("为什么要工作？", "Why do we work?")} <= chinese_lines
    assert next(sentences("en-de")) == ("i want a beer", "ich möchte ein bier")


@pytest.mark.system
def test_streams_far():
    assert sum(1 for _ in sentences("de-en", "train", 200_000)) == 200_000


def test_default_sizes():
    assert {split: sum(1 for _ in sentences("zh-en", split)) for split in SIZES} == SIZES


def test_writes_files(tmp_path):
    paths = write(tmp_path / "corpus", "zh-en", sizes={"train": 40, "test": 7})
    assert [path.name for path in paths] == ["train.zh", "train.en", "test.zh", "test.en"]
    lines = paths[2].read_bytes().decode("utf-8").split("\n")
    assert lines == [source for source, _ in sentences("zh-en", "test", 7)] + [""]
    assert [path.name for path in write(tmp_path, "en-de", sizes={"valid": 1})] == ["valid.en", "valid.de"]


def test_files_of_other_content_are_not_written_over(tmp_path):
    write(tmp_path, sizes={"train": 3, "test": 2})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(write(tmp_path, sizes={"train": 3, "test": 2})) == 4  # the same again
    with raises_error(Error.ALREADY_THERE, "test.de"):
        write(tmp_path, sizes={"valid": 3, "train": 3, "test": 4})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"pair": "fr-en"}, Error.UNKNOWN_NAME),
        ({"split": "dev"}, Error.UNKNOWN_NAME),
        ({"size": 0}, Error.OUT_OF_RANGE),
        ({"split": "valid", "size": LIMITS["valid"] + 1}, Error.OUT_OF_RANGE),
        ({"split": "test", "size": 10**6}, Error.OUT_OF_RANGE),
    ],
)
def test_mistakes_are_told_at_once(arguments, error: Error):
    with raises_error(error):
        sentences(**arguments)
