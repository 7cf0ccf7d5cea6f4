"""Messy copies of training pairs: each kind does what it says, the same from the same key, and training goes on."""

import random
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman import config
from dragoman.data.batching import BatchPlan
from dragoman.data.store import IdCorpus, prepare
from dragoman.errors import Error
from dragoman.quality.scores import EvaluationConfig
from dragoman.tasks.translation.task import TranslationTask
from dragoman.text.augment import TextAugmentConfig, with_typos, without_final_mark
from dragoman.text.corpus import FilesSource
from dragoman.text.placeholders import spans
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig

PAIR = ("Ein kleiner Hund läuft über die Straße.", "A small dog runs across the street.")


def changed(**shares: float) -> tuple[str, str]:
    return config.parse(TextAugmentConfig, shares)(*PAIR, random.Random(1))


def test_each_kind_alone() -> None:
    assert changed() == PAIR
    assert changed(upper=1.0) == (PAIR[0].upper(), PAIR[1].upper())
    assert changed(lower=1.0) in [(PAIR[0].lower(), PAIR[1]), (PAIR[0].lower().replace("ß", "ss"), PAIR[1])]
    assert changed(title=1.0) == ("Ein Kleiner Hund Läuft Über Die Straße.", PAIR[1])
    assert changed(unpunctuated=1.0) == (PAIR[0][:-1], PAIR[1][:-1])
    src, tgt = changed(typos=1.0)
    assert src != PAIR[0]
    assert abs(len(src) - len(PAIR[0])) <= 1
    assert tgt == PAIR[1]
    src, tgt = changed(placeholders=1.0)
    assert spans(src) == spans(tgt) != []
    assert changed(spaces=1.0)[0].split() != []


def test_a_placeholder_takes_the_place_of_a_word_that_both_sides_have() -> None:
    augment = TextAugmentConfig(placeholders=1.0)
    src, tgt = augment("Tom schläft.", "Tom sleeps.", random.Random(3))
    [made] = spans(src)
    assert (src, tgt) == (f"{made} schläft.", f"{made} sleeps.")


def test_final_marks() -> None:
    texts = ("Ja!", "Ja ?", "Warte...", "3.5", "好。")
    assert [without_final_mark(text) for text in texts] == ["Ja", "Ja", "Warte...", "3.5", "好"]


def test_typing_errors_leave_short_words_numbers_and_first_letters_alone() -> None:
    for seed in range(200):
        text = with_typos("an 1234 window of it", random.Random(seed))
        assert text.startswith("an 1234 w")
        assert text.endswith(" of it")
    assert with_typos("an of", random.Random(1)) == "an of"


def test_shares_are_kept_on_average() -> None:
    augment = TextAugmentConfig(upper=0.2, lower=0.3)
    made = [augment(*PAIR, random.Random(seed))[0] for seed in range(2_000)]
    assert 0.17 < sum(text.isupper() for text in made) / len(made) < 0.23
    assert 0.27 < sum(text.islower() for text in made) / len(made) < 0.33


def test_shares_of_cases_are_refused_above_one() -> None:
    with raises_error(Error.WRONG_SETTING):
        config.parse(TextAugmentConfig, {"upper": 0.6, "lower": 0.6})
    assert {field.name for field in fields(TextAugmentConfig)} >= {"upper", "lower", "typos"}


@pytest.fixture(scope="module")
def augmented_corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[IdCorpus, TokenizerPair]:
    folder = tmp_path_factory.mktemp("corpus")
    lines = [" ".join(f"word{(row * k) % 17}" for k in range(1, 3 + row % 5)) for row in range(80)]
    both = [*lines, *(line.upper() for line in lines)]
    for side in ("src", "tgt"):
        (folder / side).write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizers = train_tokenizers(SentencePieceConfig(vocab_size=90), lambda: iter(both), lambda: iter(both))
    source = FilesSource(src=str(folder / "src"), tgt=str(folder / "tgt"))
    ids, _ = prepare(source, tokenizers, folder / "ids", normalize="none", max_tokens=40, workers=1)
    return ids, tokenizers


@pytest.fixture
def augmented_task(augmented_corpus: tuple[IdCorpus, TokenizerPair]) -> Callable[[], TranslationTask]:
    ids, tokenizers = augmented_corpus
    translator: Any = SimpleNamespace(max_src_tokens=40, normalize=str, languages=("de", "en"))

    def make() -> TranslationTask:
        plan = BatchPlan(ids.src_lengths, ids.tgt_lengths, batch_tokens=100, seed=1)
        return TranslationTask(
            ids, plan, ids, [], tokenizers, translator=translator, evaluation=EvaluationConfig(), tgt_lang="en",
            seed=1, samples=0, augment=TextAugmentConfig(upper=0.5),
        )  # fmt: skip

    return make


def test_batches_have_other_texts_in_each_epoch_and_the_same_ones_again(
    augmented_task: Callable[[], TranslationTask], augmented_corpus: tuple[IdCorpus, TokenizerPair]
) -> None:
    ids, tokenizers = augmented_corpus

    def texts(epoch: int) -> dict[int, str]:
        task = augmented_task()
        steps = task.plan.steps_per_epoch
        return {
            int(row): tokenizers.src.decode(batch.src[place][batch.src_mask[place]][:-1].tolist())
            for step in range(epoch * steps + 1, (epoch + 1) * steps + 1)
            for batch in task.batches(step)
            for place, row in enumerate(batch.rows)
        }

    first = texts(0)
    assert first == texts(0)
    assert sorted(first) == list(range(len(ids)))
    usual = {row: tokenizers.src.decode(ids.src(row).tolist()) for row in first}
    in_capitals = {row for row, text in first.items() if text == usual[row].upper()}
    assert len(first) / 4 < len(in_capitals) < len(first) * 3 / 4
    assert {row for row, text in texts(1).items() if text == usual[row].upper()} != in_capitals
