"""The translation task: what its batches hold, drawn segmentations included, and what its validations find."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dragoman.data.batch import collate
from dragoman.data.batching import BatchPlan
from dragoman.data.store import IdCorpus, prepare
from dragoman.inference.loading import build_model
from dragoman.models.families import TransformerConfig
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.tasks.translation.task import TranslationTask
from dragoman.text.corpus import FilesSource, Pair
from dragoman.text.tokenizers.pair import TokenizerPair, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig

WORDS = ["window", "winter", "wind", "windows", "snowing", "snow", "snowman", "mountain", "fountain", "counting"]
LINES = [" ".join(np.random.default_rng(row).choice(WORDS, 1 + row % 9)) for row in range(120)]
BUDGET, MAX_TOKENS = 60, 30


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[IdCorpus, TokenizerPair]:
    folder = tmp_path_factory.mktemp("corpus")
    for side in ("src", "tgt"):
        (folder / side).write_text("\n".join(LINES) + "\n", encoding="utf-8")
    tokenizers = train_tokenizers(
        SentencePieceConfig(vocab_size=60, sampling=0.1), lambda: iter(LINES), lambda: iter(LINES)
    )
    source = FilesSource(src=str(folder / "src"), tgt=str(folder / "tgt"))
    ids, _ = prepare(source, tokenizers, folder / "ids", normalize="none", max_tokens=MAX_TOKENS, workers=1)
    return ids, tokenizers


def task_on(corpus: tuple[IdCorpus, TokenizerPair], seed: int = 1) -> TranslationTask:
    ids, tokenizers = corpus
    plan = BatchPlan(ids.src_lengths, ids.tgt_lengths, batch_tokens=BUDGET, seed=1)
    translator: Any = SimpleNamespace(max_src_tokens=MAX_TOKENS)
    return TranslationTask(
        ids, plan, ids, [], tokenizers, translator=translator, evaluation=EvaluationConfig(), tgt_lang="en", seed=seed,
        samples=0,
    )  # fmt: skip


def sources_in(task: TranslationTask, epoch: int) -> dict[int, list[int]]:
    """The source of each row as it is in an epoch."""
    steps = task.plan.steps_per_epoch
    return {
        int(row): batch.src[place][batch.src_mask[place]][:-1].tolist()
        for step in range(epoch * steps + 1, (epoch + 1) * steps + 1)
        for batch in task.batches(step)
        for place, row in enumerate(batch.rows)
    }


def test_drawn_segmentations_keep_to_the_budget_and_to_max_tokens(
    corpus: tuple[IdCorpus, TokenizerPair],
) -> None:
    task, (ids, tokenizers) = task_on(corpus), corpus
    seen, cut, drawn = [], 0, 0
    for step in range(1, task.plan.steps_per_epoch + 1):
        batches = task.batches(step)
        cut += len(batches) > 1
        for batch in batches:
            assert batch.src.numel() <= BUDGET
            assert batch.tgt_in.numel() <= BUDGET
            assert max(batch.src.size(1), batch.tgt_in.size(1)) <= MAX_TOKENS + 1
            seen += batch.rows.tolist()
            for place, row in enumerate(batch.rows):
                src = batch.src[place][batch.src_mask[place]][:-1].tolist()
                assert tokenizers.src.decode(src) == tokenizers.src.decode(ids.src(row).tolist())
                drawn += src != ids.src(row).tolist()
    assert sorted(seen) == list(range(len(ids)))  # none twice, none lost
    assert cut > 0
    assert drawn > len(ids) / 3


def test_a_segmentation_of_more_than_max_tokens_is_left_for_the_usual_one(
    corpus: tuple[IdCorpus, TokenizerPair],
) -> None:
    task, (ids, _) = task_on(corpus), corpus
    drawn, longest = sources_in(task, 0), int(ids.src_lengths.max())
    task.translator.max_src_tokens = longest
    too_long = {row for row, found in drawn.items() if len(found) > longest}
    assert too_long
    for row, found in sources_in(task, 0).items():
        assert found == (ids.src(row).tolist() if row in too_long else drawn[row])


def test_each_epoch_and_each_seed_has_segmentations_of_its_own(corpus: tuple[IdCorpus, TokenizerPair]) -> None:
    first = sources_in(task_on(corpus), 0)
    for other in (sources_in(task_on(corpus), 1), sources_in(task_on(corpus, seed=2), 0)):
        assert sum(other[row] != found for row, found in first.items()) > len(first) / 3


def test_batches_are_a_pure_function_of_the_step(corpus: tuple[IdCorpus, TokenizerPair]) -> None:
    first, second = task_on(corpus).batches(3), task_on(corpus).batches(3)
    assert all(
        torch.equal(a.src, b.src) and torch.equal(a.tgt_in, b.tgt_in) for a, b in zip(first, second, strict=True)
    )


def test_a_validation_scores_what_is_translated_as_the_recipe_says(corpus: tuple[IdCorpus, TokenizerPair]) -> None:
    task, (ids, tokenizers) = task_on(corpus), corpus
    task.valid_pairs = [Pair(row, line, f"{line}, said the snowman.") for row, line in enumerate(LINES)]
    task.evaluation = EvaluationConfig(tokenize="none", lowercase=True)
    task.translator = SimpleNamespace(  # type: ignore[assignment]
        device=torch.device("cpu"), translate=lambda sentences: [f"{line} , Said a snowman." for line in sentences]
    )
    sizes = TransformerConfig(d_model=16, num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, dropout=0.5)
    model = build_model(sizes, tokenizers).train()
    found = task.validate(model)
    said, references = task.translator.translate(LINES), [pair.tgt for pair in task.valid_pairs]
    expected = score(said, references, task.evaluation, "en")
    assert found.score == found.metrics["bleu"] == expected.bleu
    assert found.metrics["chrf"] == expected.chrf
    assert found.metrics["perplexity"] == pytest.approx(math.exp(found.metrics["loss"]))
    model.eval()
    nats = 0.0
    for row in range(len(ids)):
        pair = collate([(ids.src(row), ids.tgt(row))])
        logits = model(pair.src, pair.src_mask, pair.tgt_in)
        nats += F.cross_entropy(logits[0], pair.tgt_out[0], reduction="sum").item()
    assert found.metrics["loss"] == pytest.approx(nats / (ids.tgt_lengths + 1).sum(), rel=1e-5)
    for other in (EvaluationConfig(), EvaluationConfig(tokenize="none"), EvaluationConfig(lowercase=True)):
        assert score(said, references, other, "en").bleu != expected.bleu
    assert score(references, said, task.evaluation, "en").bleu != expected.bleu
