"""Recipes for classifiers, carried out: labels, resuming, word vectors, what is refused; and that they learn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error

from dragoman import config
from dragoman.data.batching import BatchPlan
from dragoman.data.examples import LabelledCorpus, Split
from dragoman.data.inputs import ImageInputs, TextInputs, TextReader
from dragoman.errors import Error
from dragoman.inference.classifier import Predictor
from dragoman.models.families import TextClassifierConfig
from dragoman.tasks import recipes
from dragoman.tasks.classification.job import (
    ClassificationJob,
    ClassificationRecipe,
    ImageClassificationJob,
    ImageClassificationRecipe,
)
from dragoman.tasks.classification.task import ClassificationTask
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig, SentencePieceTokenizer
from dragoman.training.nonfinite import listed

TINY = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 1, "dropout": 0.0}
TRAINING = {
    "max_steps": 4,
    "batch_tokens": 64,
    "validate_every": 2,
    "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 2},
}


def task_over(labels: list[str], seed: int = 1) -> ClassificationTask:
    ids = [[4 + number % 3] * (1 + number % 5) for number in range(len(labels))]
    inputs = TextInputs(ids, seed=seed)
    plan = BatchPlan(inputs.lengths, inputs.lengths, batch_tokens=16, seed=seed)
    split = Split(ids, labels, [str(text) for text in ids])
    return ClassificationTask(
        inputs, split, plan, inputs, split, sorted(set(labels)), device=torch.device("cpu"), samples=2
    )


def test_every_example_comes_once_an_epoch_with_its_label() -> None:
    labels = ["x", "y", "z"] * 13
    task = task_over(labels)
    steps = task.plan.steps_per_epoch
    seen = []
    for step in range(1, steps + 1):
        assert task.position(step) == (0, step - 1)
        for batch in task.batches(step):
            ids, mask = batch.inputs
            assert ids.numel() <= 16
            assert batch.num_positions == int(mask.sum())
            assert batch.labels.tolist() == (ids[:, 0] - 4).tolist()  # text n begins with id 4 + n % 3
            seen += batch.labels.tolist()
    assert sorted(seen) == sorted([0, 1, 2] * 13)
    assert task.position(steps + 1) == (1, 0)


def test_drawn_segmentations_keep_to_the_budget_and_to_max_tokens() -> None:
    words = ["window", "winter", "snowing", "snowman", "mountain", "fountain"]
    lines = [" ".join(np.random.default_rng(row).choice(words, 1 + row % 9)) for row in range(120)]
    tokenizer = SentencePieceTokenizer.train(SentencePieceConfig(vocab_size=60, sampling=0.3), iter(lines))
    corpus = config.parse(LabelledCorpus, {"train": {"type": "labelled", "path": "x"}, "max_tokens": 30})
    inputs = TextReader(tokenizer, corpus)(lines, training=True)
    plan = BatchPlan(inputs.lengths, inputs.lengths, batch_tokens=40, seed=1)
    split = Split(lines, [str(row % 2) for row in range(120)], lines)
    task = ClassificationTask(inputs, split, plan, inputs, split, ["0", "1"], device=torch.device("cpu"), samples=0)
    seen, cut, drawn = [], 0, 0
    for step in range(1, plan.steps_per_epoch + 1):
        batches = task.batches(step)
        cut += len(batches) > 1
        for batch in batches:
            ids, mask = batch.inputs
            assert ids.numel() <= 40
            assert batch.num_positions == int(mask.sum())
            assert batch.labels.tolist() == (batch.rows % 2).tolist()
            assert task.describe(batch) == listed("example", batch.rows + 1)
            seen += batch.rows.tolist()
            drawn += sum(
                text[real][:-1].tolist() != inputs.ids(row).tolist()
                for text, real, row in zip(ids, mask, batch.rows, strict=True)
            )
    assert sorted(seen) == list(range(120))  # none twice, none lost
    assert cut > 0
    assert drawn > 60
    assert task.worst_case_batch(40).inputs[0].size(1) == inputs.lengths[plan.worst_case_batch(40)].max() + 1


def test_loss_and_validation_are_the_definitions() -> None:
    torch.manual_seed(1)
    labels = ["x", "y", "z"] * 5
    task = task_over(labels)
    model = TextClassifierConfig(**TINY).build(vocab_size=9, num_labels=3, pad_id=0, unk_id=1).eval()
    batch = task.batches(1)[0]
    loss, count, positions = task.loss(model, batch, 0.1)
    log_probs = model(*batch.inputs).log_softmax(dim=-1)
    by_hand = sum(
        0.9 * -row[label] + 0.1 * -row.mean() for row, label in zip(log_probs, batch.labels.tolist(), strict=True)
    )
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-5)
    assert (count, positions) == (len(batch), batch.num_positions)
    found = task.validate(model)
    with torch.no_grad():
        logits = [model(*task.valid.collate(np.array([row])))[0] for row in range(15)]
    right = [row.argmax().item() == number % 3 for number, row in enumerate(logits)]
    assert found.score == found.metrics["accuracy"] == pytest.approx(100 * sum(right) / 15)
    nats = [-row.log_softmax(dim=-1)[number % 3].item() for number, row in enumerate(logits)]
    assert found.metrics["loss"] == pytest.approx(sum(nats) / 15, rel=1e-4)
    assert [(sample["src"], sample["ref"]) for sample in found.samples] == [("[4]", "x"), ("[5, 5, 5]", "y")]  # 0 and 7
    assert {sample["hyp"] for sample in found.samples} <= {"x", "y", "z"}


def write_texts(path: Path, count: int, labels: str = "xyz") -> dict[str, str]:
    lines = [f"{labels[number % len(labels)]}\tword{number % len(labels)} common {number}" for number in range(count)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"type": "labelled", "path": str(path)}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    corpus = {"train": write_texts(tmp_path / "train.tsv", 120), "test": {"t": write_texts(tmp_path / "test.tsv", 9)}}
    model = {"type": "text_classifier", **TINY}
    run = {"run_dir": str(tmp_path / "run"), "device": "cpu", "corpus": corpus, "model": model, "training": TRAINING}
    return {"task": "classification", **run}


def parsed(settings: dict[str, Any], changes: dict[str, Any]) -> ClassificationRecipe:
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    return config.parse(ClassificationRecipe, config.override(settings, overrides))


def run(settings: dict[str, Any], **changes: Any) -> recipes.Result:
    return recipes.run(parsed(settings, changes))


def test_a_run_is_scored_logged_and_goes_on(settings: dict[str, Any]) -> None:
    found = run(settings)
    assert found.best is not None
    assert found.best.startswith("accuracy ")
    assert found.tests["t"].examples == 9
    events = [json.loads(line) for line in (found.run_dir / "metrics.jsonl").read_text().splitlines()]
    valid = [event for event in events if event["event"] == "valid"]
    assert [event["step"] for event in valid] == [2, 4]
    assert all(event["score"] == event["accuracy"] for event in valid)
    test = next(event for event in events if event["event"] == "test")
    assert test["accuracy"] == found.tests["t"].accuracy
    assert np.array(test["confusion"]).sum() == 9
    assert {sample["ref"] for sample in test["samples"]} == {"x", "y", "z"}
    assert json.loads((found.run_dir / "labels.json").read_text()) == ["x", "y", "z"]
    assert run(settings, **{"training.max_steps": 6}).outcome.step == 6
    scores = recipes.evaluate(found.run_dir, sources=[], references=[], names=[], device="cpu")
    assert scores["t"].examples == 9


def test_a_stopped_run_equals_one_never_stopped(settings: dict[str, Any], tmp_path: Path) -> None:
    """Crops, dropped words and dropout are keyed, so the second half comes out the same."""
    varied = {"corpus.crop": {"min_tokens": 1}, "model.word_dropout": 0.2, "model.dropout": 0.2}
    varied["training.schedule"] = {"type": "constant", "lr": 0.01}
    straight = run(settings, **varied, run_dir=str(tmp_path / "straight"))
    run(settings, **varied, **{"training.max_steps": 2})
    resumed = run(settings, **varied)
    probabilities = [
        Predictor.load(found.run_dir, which="last", device="cpu").probabilities(["word0 common 1", "word2"])
        for found in (straight, resumed)
    ]
    assert np.array_equal(*probabilities)


def test_labels_are_renamed_and_files_scored(settings: dict[str, Any], tmp_path: Path) -> None:
    names = {"x": "ex", "z": "zed"}
    found = run(settings, **{"corpus.label_names": names})
    assert found.tests["t"].labels == ("ex", "y", "zed")
    (tmp_path / "texts").write_text("word0 common\nword1 common\n", encoding="utf-8")
    (tmp_path / "labels").write_text("x\nzed\n", encoding="utf-8")
    pair = {"sources": [tmp_path / "texts"], "references": [tmp_path / "labels"]}
    scores = recipes.evaluate(found.run_dir, **pair, names=["mine"], device="cpu")["mine"]
    assert scores.per_label["ex"].examples == scores.per_label["zed"].examples == 1
    tsv = recipes.evaluate(found.run_dir, sources=[tmp_path / "test.tsv"], references=[], names=[], device="cpu")
    assert tsv["test.tsv"].examples == 9
    (tmp_path / "labels").write_text("x\n", encoding="utf-8")
    with raises_error(Error.UNEQUAL_COUNTS, "texts"):
        recipes.evaluate(found.run_dir, **pair, names=[], device="cpu")
    (tmp_path / "labels").write_text("x\nw\n", encoding="utf-8")
    with raises_error(Error.UNKNOWN_NAME):
        recipes.evaluate(found.run_dir, **pair, names=[], device="cpu")
    with raises_error(Error.UNSUPPORTED):
        recipes.evaluate(found.run_dir, sources=[], references=[], names=[], device="cpu", beam_size=3)


def test_labels_that_do_not_fit_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    one = write_texts(tmp_path / "one.tsv", 9, labels="x")
    with raises_error(Error.TOO_FEW):
        run(settings, **{"corpus.train": one, "corpus.test": {}, "corpus.valid": one})
    other = write_texts(tmp_path / "other.tsv", 9, labels="xw")
    with raises_error(Error.UNKNOWN_NAME):
        run(settings, **{"corpus.test": {"other": other}})
    run(settings)
    write_texts(tmp_path / "train.tsv", 120, labels="uxyz")
    with raises_error(Error.OTHER_CONTENT, "run"):
        run(settings)


@pytest.mark.parametrize("freeze", [True, False])
def test_word_vectors_begin_the_embedding(settings: dict[str, Any], tmp_path: Path, freeze: bool) -> None:
    rng = np.random.default_rng(1)
    vectors = {word: rng.normal(size=16) for word in ("common", "word1", "elsewhere")}
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items()]
    (tmp_path / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    recipe = parsed(settings, {"vectors": {"path": str(tmp_path / "vectors.txt"), "freeze": freeze}})
    job = ClassificationJob(recipe)
    job.prepare()
    torch.manual_seed(1)
    model, _ = job.start()
    table, tokenizer = model.embedding.tokens.embedding.weight, job.reader.tokenizer
    started = table.detach().clone()
    rows = [started[tokenizer.id_of(word)].numpy() for word in ("common", "word1")]
    for row, word in zip(rows, ("common", "word1"), strict=True):
        assert np.corrcoef(row, vectors[word])[0, 1] == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]) == pytest.approx(
        np.linalg.norm(vectors["common"]) / np.linalg.norm(vectors["word1"]), rel=1e-4
    )
    recipes.run(recipe)
    trained = Predictor.load(recipe.run_dir, which="last", device="cpu").model.embedding.tokens.embedding.weight
    torch.manual_seed(1)
    assert torch.equal(trained, started) == freeze


def test_word_vectors_need_words(settings: dict[str, Any]) -> None:
    with raises_error(Error.WRONG_SETTING):
        parsed(settings, {"vectors": {"path": "x"}, "tokenizer": {"type": "characters"}})


def idx_files(folder: Path, name: str, count: int) -> dict[str, str]:
    """Images of 8 x 8 with a bright left or right half."""
    rng = np.random.default_rng(count)
    labels = rng.integers(0, 2, count).astype(np.uint8)
    pixels = rng.integers(0, 60, (count, 8, 8)).astype(np.uint8)
    for image, label in zip(pixels, labels, strict=True):
        image[:, 4 * label : 4 * label + 4] += 150
    for kind, values in (("images", pixels), ("labels", labels)):
        header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
        (folder / f"{name}-{kind}").write_bytes(header + values.tobytes())
    return {"type": "idx", "images": str(folder / f"{name}-images"), "labels": str(folder / f"{name}-labels")}


def test_a_vision_transformer_learns_where_it_is_bright(tmp_path: Path) -> None:
    corpus = {
        "train": idx_files(tmp_path, "train", 300),
        "valid": {"type": "held_out", "share": 0.2},
        "test": {"t": idx_files(tmp_path, "test", 50)},
        "label_names": {"0": "left", "1": "right"},
        "augment": {"degrees": 5, "zoom": 0.05, "shift": 1, "bend": 0.5},
    }
    training = {**TRAINING, "max_steps": 60, "batch_tokens": 160, "validate_every": 30}
    model = {"type": "vit", **TINY, "image_size": 8, "patch_size": 4}
    settings = {"task": "image_classification", "run_dir": str(tmp_path / "run"), "device": "cpu"}
    recipe = config.parse(
        ImageClassificationRecipe, {**settings, "corpus": corpus, "training": training, "model": model}
    )
    found = recipes.run(recipe)
    assert found.tests["t"].accuracy >= 98
    assert found.tests["t"].labels == ("left", "right")
    job = ImageClassificationJob(recipe)
    job.prepare()
    _, task = job.start()
    assert isinstance(task, ClassificationTask)
    assert isinstance(task.train, ImageInputs)
    sizes = [len(task.batches(step)[0]) for step in range(1, task.plan.steps_per_epoch + 1)]
    assert max(sizes) == 32  # 160 // (4 patches + 1)
    assert sum(sizes) == len(job.splits[0])
    assert sizes.count(32) >= len(sizes) - 1
    with raises_error(Error.MISSING_OPTION, "x"):
        recipes.evaluate(found.run_dir, sources=[tmp_path / "x"], references=[], names=[], device="cpu")


def test_images_of_several_channels_are_refused_before_training(tmp_path: Path) -> None:
    settings = {"task": "image_classification", "run_dir": str(tmp_path / "run"), "model": {"type": "vit", **TINY}}
    corpus = {"train": {"type": "idx", "images": "nowhere", "labels": "nowhere"}}
    recipe = config.parse(
        ImageClassificationRecipe, config.override({**settings, "corpus": corpus}, ["model.channels=3"])
    )
    with raises_error(Error.WRONG_SETTING):
        ImageClassificationJob(recipe).build_untrained()


@pytest.mark.system
def test_the_language_of_the_embedded_corpus_is_learnt_in_seconds(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "recipes/language-id-demo.yaml"
    smaller = ["training.max_steps=120", "training.validate_every=120", "device=cpu", f"run_dir={tmp_path / 'run'}"]
    found = recipes.run(recipes.load(path, smaller))
    assert found.tests["test"].accuracy > 99
    predictor = Predictor.load(found.run_dir, device="cpu")
    short = {"guten Morgen": "de", "the dog": "en", "我们喝水": "zh"}
    assert [item.label for item in predictor.predict(list(short))] == list(short.values())
