"""Text or image in, label out, on models that know nothing: order, batches, long texts, what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error

import dragoman
from dragoman import config
from dragoman.data.examples import Split
from dragoman.data.inputs import ImageReader, TextReader
from dragoman.errors import Error
from dragoman.inference.classifier import LABELS, Predictor, build_text_classifier, evaluate, logits_of
from dragoman.inference.generator import Generator
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import TextClassifierConfig, ViTConfig
from dragoman.runs import checkpoint
from dragoman.tasks.classification.job import ClassificationRecipe, ImageClassificationRecipe
from dragoman.text.tokenizers.pair import save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 2}
TEXTS = [" ".join(["a cat", "sees", "the dog", "!"][: 1 + number % 4] * (1 + number % 5)) for number in range(50)]


@pytest.fixture(scope="module")
def texts_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory of a random text classifier, put together by hand."""
    folder = tmp_path_factory.mktemp("texts")
    corpus = {"train": {"type": "labelled", "path": "x"}, "max_tokens": 12, "lowercase": True}
    model = {"type": "text_classifier", **SIZES}
    recipe = {"task": "classification", "run_dir": str(folder), "corpus": corpus, "model": model}
    (folder / "config.yaml").write_text(config.to_yaml(config.parse(ClassificationRecipe, recipe)), encoding="utf-8")
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(TEXTS), lambda: iter(()))
    save_tokenizers(tokenizers, folder / "tokenizer")
    (folder / LABELS).write_text('["ant", "bee", "cat"]', encoding="utf-8")
    torch.manual_seed(3)
    built = build_text_classifier(TextClassifierConfig(**SIZES), tokenizers.src, 3)
    checkpoint.save(folder, 1, {"model": checkpoint.weights(built)}, {"step": 1, "score": 1.0})
    return folder


@pytest.fixture(scope="module")
def images_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    source = {"type": "idx", "images": "x", "labels": "y"}
    model = {"type": "vit", **SIZES, "image_size": 8}
    recipe = {"task": "image_classification", "run_dir": str(folder), "corpus": {"train": source}, "model": model}
    (folder / "config.yaml").write_text(
        config.to_yaml(config.parse(ImageClassificationRecipe, recipe)), encoding="utf-8"
    )
    (folder / LABELS).write_text('["0", "1"]', encoding="utf-8")
    torch.manual_seed(3)
    built = ViTConfig(**SIZES, image_size=8).build(num_labels=2)
    checkpoint.save(folder, 1, {"model": checkpoint.weights(built)}, {"step": 1, "score": 1.0})
    return folder


def test_probabilities_are_the_models_own_in_order(texts_run: Path) -> None:
    predictor = Predictor.load(texts_run, device="cpu")
    found = predictor.probabilities(TEXTS)
    assert found.shape == (50, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert isinstance(predictor.read, TextReader)
    for row, text in enumerate(TEXTS):
        ids = torch.tensor([[*predictor.read.tokenizer.encode(text)[:12], 3]])
        with torch.no_grad():
            logits = predictor.model(ids, torch.ones_like(ids, dtype=torch.bool))
        np.testing.assert_allclose(found[row], logits.softmax(dim=-1)[0].numpy(), atol=1e-5)
        best = predictor.top([text], 3)[0]
        assert [item.label for item in best] == [predictor.labels[label] for label in np.argsort(-found[row])]
        assert [item.probability for item in best] == pytest.approx(sorted(found[row], reverse=True), abs=1e-6)
    assert predictor.probabilities([]).shape == (0, 3)
    assert predictor.predict([]) == []


@pytest.mark.parametrize("run", ["texts_run", "images_run"])
def test_neighbours_do_not_change_a_bit(run: str, request: pytest.FixtureRequest) -> None:
    predictor = Predictor.load(request.getfixturevalue(run), device="cpu")
    rng = np.random.default_rng(1)
    images = list(rng.integers(0, 256, (50, 8, 8), dtype=np.uint8))
    inputs: list[Any] = images if predictor.reads_images else TEXTS
    together = predictor.probabilities(inputs)
    alone = np.concatenate([predictor.probabilities([item]) for item in inputs])
    assert np.array_equal(together, alone)
    order = rng.permutation(50)
    assert np.array_equal(predictor.probabilities([inputs[row] for row in order]), together[order])


def test_lines_stay_lines(texts_run: Path) -> None:
    predictor = Predictor.load(texts_run, device="cpu")
    lines = [TEXTS[number] if number % 7 else " " * (number % 3) for number in range(50)]
    found = list(predictor.label_lines(iter(lines), 2, waiting=iter([False, True, False] * 50).__next__))
    assert [labels for _, labels in found] == [predictor.top([line], 2)[0] if line.strip() else [] for line in lines]


def test_a_long_text_is_labelled_by_its_beginning(texts_run: Path) -> None:
    predictor = Predictor.load(texts_run, device="cpu")
    start = "cat dog " * 6  # 12 words, corpus.max_tokens
    assert predictor.predict([start + "sees the " * 500]) == predictor.predict([start])
    assert predictor.predict([start.upper()]) == predictor.predict([start])


def test_the_mode_of_the_model_is_put_back(images_run: Path) -> None:
    predictor = Predictor.load(images_run, device="cpu")
    inputs = ImageReader(8, 4)([np.zeros((8, 8))])
    for mode in (True, False):
        logits_of(predictor.model.train(mode), inputs, torch.device("cpu"))
        assert predictor.model.training == mode


def test_scores_are_those_of_the_predictions(texts_run: Path) -> None:
    predictor = Predictor.load(texts_run, device="cpu")
    predicted = [found.label for found in predictor.predict(TEXTS)]
    right = [label if number % 5 else "bee" for number, label in enumerate(predicted)]
    found = evaluate(predictor, Split(TEXTS, right, TEXTS))
    assert found.predicted == predicted
    expected = 100 * sum(a == b for a, b in zip(predicted, right, strict=True)) / 50
    assert found.scores.accuracy == pytest.approx(expected)


def test_pictures_in_files(images_run: Path, tmp_path: Path) -> None:
    from matplotlib.image import imsave

    values = np.random.default_rng(1).integers(0, 256, (2, 8, 8), dtype=np.uint8)
    for name, image in zip("ab", values, strict=True):
        imsave(tmp_path / f"{name}.png", np.repeat(image[..., None], 3, axis=2))
    header = bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in (2, 8, 8))
    (tmp_path / "both-ubyte").write_bytes(header + values.tobytes())
    predictor = dragoman.load_classifier(str(images_run), device="cpu")
    assert isinstance(predictor, Predictor)
    paths = [str(tmp_path / name) for name in ("a.png", "b.png", "both-ubyte")]
    found = list(predictor.label_files(paths, 1))
    assert [name for name, _ in found] == [*paths[:2], f"{paths[2]}:1", f"{paths[2]}:2"]
    expected = predictor.probabilities(list(values)).max(axis=1)
    np.testing.assert_allclose([labels[0].probability for _, labels in found], [*expected, *expected], atol=1e-4)


def test_runs_are_used_with_what_they_are_for(texts_run: Path, images_run: Path, tmp_path: Path) -> None:
    assert dragoman.load_classifier(str(texts_run), device="cpu").labels == ("ant", "bee", "cat")
    for run, task in ((texts_run, "classification"), (images_run, "image classification")):
        for other in (SearchTranslator, Generator):
            with raises_error(Error.WRONG_TASK, task):
                other.load(run)
    (tmp_path / "config.yaml").write_text("task: translation\n", encoding="utf-8")
    checkpoint.save(tmp_path, 1, {"model": {"x": torch.zeros(1)}}, {"step": 1})
    with raises_error(Error.WRONG_TASK):
        Predictor.load(tmp_path)


def test_loading_names_what_is_wrong(texts_run: Path, tmp_path: Path) -> None:
    with raises_error(Error.MISSING_FILE, "none"):
        Predictor.load(tmp_path / "none")
    labels = (texts_run / LABELS).read_text(encoding="utf-8")
    try:
        for damaged, code in [
            ("[", Error.BAD_SYNTAX), ("{}", Error.WRONG_SHAPE), ('["one"]', Error.WRONG_SHAPE),
            ("[1, 2]", Error.WRONG_SHAPE),
        ]:  # fmt: skip
            (texts_run / LABELS).write_text(damaged, encoding="utf-8")
            with raises_error(code, LABELS):
                Predictor.load(texts_run)
        (texts_run / LABELS).write_text('["ant", "bee"]', encoding="utf-8")
        with raises_error(Error.MISMATCH, "step-00000001"):
            Predictor.load(texts_run)
    finally:
        (texts_run / LABELS).write_text(labels, encoding="utf-8")
