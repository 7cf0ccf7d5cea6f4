"""Texts or images in, labels out: the one inference path of classifiers, under the command line and evaluation."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman import config
from dragoman.backends.accelerate import accelerate_inference
from dragoman.data.batch import WIDTH_MULTIPLE
from dragoman.data.eval_batches import even_batches
from dragoman.data.examples import LabelledCorpus, Split
from dragoman.data.inputs import ImageReader, Inputs, TextReader, read_images_in
from dragoman.decoding.rows import padded
from dragoman.device import pick_device
from dragoman.errors import Error
from dragoman.models.families import TextClassifierConfig, ViTConfig
from dragoman.models.text_classifier import TextClassifier
from dragoman.quality.classification import ClassScores, score_labels
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_json
from dragoman.runs.directory import read_run
from dragoman.special_tokens import PAD_ID, UNK_ID
from dragoman.text.lines import STREAM_LINES, in_chunks
from dragoman.text.tokenizers.pair import Tokenizer, load_tokenizers

BATCH_POSITIONS = 8192
"""Positions of a batch in use, pads included."""

LABELS = "labels.json"
"""The file of a run directory that has the labels in the order of the model's logits."""


@dataclass(frozen=True)
class Prediction:
    """A label and how probable the model finds it."""

    label: str
    probability: float


class Predictor:
    """A classifier with what reads its inputs. `dragoman.load_classifier(run)` makes one.

    A text of more than `corpus.max_tokens` tokens is read up to there and its label decided on that, as in training.
    An image of another size is resized. What an input gets does not depend on the others, nor on their number.
    """

    def __init__(
        self,
        model: nn.Module,
        labels: Sequence[str],
        read: Callable[[Sequence[Any]], Inputs],
        *,
        device: torch.device | None = None,
    ) -> None:
        self.model, self.labels, self.read = model, tuple(labels), read
        self.device = device or torch.device("cpu")

    @classmethod
    def load(cls, run: str | Path, *, which: str = "best", device: str = "auto") -> "Predictor":
        """The predictor of a run directory: checkpoint `best`, `last` or a step.

        Raises DragomanError when the run is none of a classifier, or holds no checkpoint that verifies.
        """
        run_dir = Path(run)
        path = checkpoint.select(run_dir, which)
        recipe = read_run(run_dir, *READERS)
        labels = read_labels(run_dir)
        build, read = READERS[recipe["task"]](run_dir, recipe, len(labels))
        model = checkpoint.restored(path, build)
        chosen = pick_device(device)
        accelerate_inference(model, packed=False)
        return cls(model.to(chosen).eval(), labels, read, device=chosen)

    @property
    def reads_images(self) -> bool:
        return isinstance(self.read, ImageReader)

    def predict(self, inputs: Sequence[Any]) -> list[Prediction]:
        """The most probable label of each text, or of each image (a path, or grey values from 0 to 255)."""
        return [predictions[0] for predictions in self.top(inputs, 1)]

    def top(self, inputs: Sequence[Any], count: int) -> list[list[Prediction]]:
        """The `count` most probable labels of each input, best first; of equals, the first of `labels`."""
        probabilities = self.probabilities(inputs)
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
        return [
            [Prediction(self.labels[label], float(row[label])) for label in order]
            for row, order in zip(probabilities, best.tolist(), strict=True)
        ]

    def label_lines(
        self, lines: Iterable[str], count: int = 1, *, waiting: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[str, list[Prediction]]]:
        """`top` for any number of texts: ("", labels), none for a blank line. `waiting`: see `text.lines.in_chunks`."""
        for chunk in in_chunks(lines, STREAM_LINES, waiting):
            labels = iter(self.top([line for line in chunk if line.strip()], count))
            yield from (("", next(labels) if line.strip() else []) for line in chunk)

    def label_files(self, paths: Iterable[str | Path], count: int = 1) -> Iterator[tuple[str, list[Prediction]]]:
        """`top` for the images in files, pictures or idx: (name of the image, labels)."""
        for path in paths:
            names, images = read_images_in(path)
            yield from zip(names, self.top(images, count), strict=True)

    def probabilities(self, inputs: Sequence[Any]) -> Float[np.ndarray, "inputs labels"]:
        """The probability of each of `labels` for each input, in order."""
        if not len(inputs):
            return np.zeros((0, len(self.labels)), dtype=np.float32)
        probabilities: np.ndarray = logits_of(self.model, self.read(inputs), self.device).softmax(dim=-1).numpy()
        return probabilities


@dataclass(frozen=True)
class Labelling:
    """A test set labelled and scored, with the seconds that labelling took."""

    scores: ClassScores
    predicted: list[str]
    seconds: float


def evaluate(predictor: Predictor, split: Split) -> Labelling:
    """Label the items of a split and score that against their labels."""
    start = time.monotonic()
    predicted = [prediction.label for prediction in predictor.predict(split.items)]
    seconds = time.monotonic() - start
    return Labelling(score_labels(predicted, split.labels, predictor.labels), predicted, seconds)


@torch.inference_mode()
def logits_of(model: nn.Module, inputs: Inputs, device: torch.device) -> Float[Tensor, "rows labels"]:
    """The logits of every row on the CPU, without dropout; the mode of the model is put back afterwards."""
    was_training = model.training
    model.eval()
    results: list[Tensor] = []
    order: list[np.ndarray] = []
    try:
        for rows in even_batches(inputs.lengths, BATCH_POSITIONS, WIDTH_MULTIPLE):
            filled = np.resize(rows, padded(len(rows), rows_per_slot=1))  # the first ones again
            arguments = [tensor.to(device) for tensor in inputs.collate(filled)]
            results.append(model(*arguments)[: len(rows)].float().cpu())
            order.append(rows)
    finally:
        model.train(was_training)
    return torch.cat(results)[torch.from_numpy(np.argsort(np.concatenate(order)))]


Build = Callable[[], nn.Module]


def read_labels(run_dir: Path) -> list[str]:
    """The labels of a run. Raises DragomanError when they are missing or damaged."""
    path = run_dir / LABELS
    labels: list[Any] = read_json(path, list)
    if not all(isinstance(label, str) for label in labels) or len(labels) < 2:
        raise Error.WRONG_SHAPE("expected a JSON list of the labels, at least two", file=path)
    return labels


def build_text_classifier(model: TextClassifierConfig, tokenizer: Tokenizer, num_labels: int) -> TextClassifier:
    """The model of a recipe's `model:` for this vocabulary, freshly initialised."""
    return model.build(vocab_size=tokenizer.vocab_size, num_labels=num_labels, pad_id=PAD_ID, unk_id=UNK_ID)


def _of_texts(run_dir: Path, recipe: dict[str, Any], num_labels: int) -> tuple[Build, TextReader]:
    source = str(run_dir / "config.yaml")
    corpus = config.parse(LabelledCorpus, recipe.get("corpus", {}), f"{source}: corpus")
    model = config.parse(TextClassifierConfig, recipe.get("model", {}), f"{source}: model")
    tokenizer = load_tokenizers(run_dir / "tokenizer").src
    return lambda: build_text_classifier(model, tokenizer, num_labels), TextReader(tokenizer, corpus)


def _of_images(run_dir: Path, recipe: dict[str, Any], num_labels: int) -> tuple[Build, ImageReader]:
    source = str(run_dir / "config.yaml")
    model = config.parse(ViTConfig, recipe.get("model", {}), f"{source}: model")
    return lambda: model.build(num_labels=num_labels), ImageReader(model.image_size, model.num_patches)


READERS: dict[str, Callable[[Path, dict[str, Any], int], tuple[Build, Any]]] = {
    "classification": _of_texts,
    "image_classification": _of_images,
}
"""The tasks whose runs label things: what builds the model, and what reads its inputs."""
