"""Recipes for classification: from labelled texts or images to a scored classifier."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from dragoman import config
from dragoman.config import Field, settings
from dragoman.data.examples import ImageCorpus, LabelledCorpus, Split, read_split, read_splits
from dragoman.data.inputs import ImageReader, Inputs, TextReader
from dragoman.device import pick_device
from dragoman.errors import Error, writing
from dragoman.inference.classifier import LABELS, Predictor, build_text_classifier, evaluate, read_labels
from dragoman.models.families import TextClassifierConfig, ViTConfig
from dragoman.quality.classification import ClassScores
from dragoman.runs.atomic_io import write_text
from dragoman.runs.directory import TOKENIZER, check_run_dir
from dragoman.special_tokens import PAD_ID, UNK_ID
from dragoman.tasks.base import TEST_SAMPLES, Files, Job, RecipeSettings, refuse_search
from dragoman.tasks.classification.task import ClassificationTask, shown
from dragoman.tasks.pretrained import RowNames
from dragoman.tasks.vocabulary import check_positions, checked_tokenizer, expected_vocabulary, kept_tokenizers
from dragoman.tasks.word_vectors import VectorsConfig, load_vectors, require_words
from dragoman.text.images import IdxSource
from dragoman.text.labelled import LabelledSource
from dragoman.text.lines import read_lines
from dragoman.text.normalize import spelling_of
from dragoman.text.sources.base import fingerprint
from dragoman.text.tokenizers.pair import SingleConfig, WordsConfig
from dragoman.training.loop import Trainer
from dragoman.training.step import pick_losses
from dragoman.training.task import Task


@settings
class ClassificationRecipe(RecipeSettings):
    """Everything that makes a run of a text classifier."""

    task: Literal["classification"] = "classification"
    corpus: LabelledCorpus
    tokenizer: SingleConfig = Field(default_factory=WordsConfig)  #: The tokenizer.
    vectors: VectorsConfig | None = None
    model: TextClassifierConfig = Field(default_factory=TextClassifierConfig)

    def __post_init__(self) -> None:
        if self.vectors:
            require_words(self.tokenizer)


@settings
class ImageClassificationRecipe(RecipeSettings):
    """Everything that makes a run of an image classifier.

    Patches are an image's tokens: a batch has `training.batch_tokens` // (patches + 1) images.
    """

    task: Literal["image_classification"] = "image_classification"
    corpus: ImageCorpus
    model: ViTConfig = Field(default_factory=ViTConfig)


class ClassifierJob(Job):
    """The base of jobs for texts and for images. A subclass says how its inputs are read."""

    metrics: ClassVar[tuple[str, ...]] = ("loss", "accuracy")
    inference: ClassVar[Any] = Predictor
    things: ClassVar[str]
    """The plural name of the labelled items."""
    splits: tuple[Split, Split, dict[str, Split]]
    labels: list[str]

    @abstractmethod
    def read(self, split: Split, *, training: bool) -> Inputs:
        """The items of a split as a model reads them; `training`: with what makes them different in each epoch."""

    @abstractmethod
    def build_model(self) -> nn.Module:
        """The model for the labels of the corpus, freshly initialised."""

    @abstractmethod
    def files_split(self, src: Path, ref: Path | None) -> Split:
        """The examples of files given on the command line."""

    def prepare(self) -> list[str]:
        self.splits = train, valid, tests = read_splits(self.recipe.corpus)
        self.labels = sorted(set(train.labels))
        if len(self.labels) < 2:
            raise Error.TOO_FEW(
                f"all training examples are labelled {self.labels[0]!r}: there is nothing to tell apart"
            )
        for name, split in {"validation": valid, **tests}.items():
            if unknown := sorted(set(split.labels) - set(self.labels)):
                raise Error.UNKNOWN_NAME(
                    f"{name}: the label {unknown[0]!r} is none of the training corpus ({', '.join(self.labels)})",
                    "name labels alike, or move examples of it there",
                )
        self.init_run_dir()
        text = json.dumps(self.labels, ensure_ascii=False, indent=0)
        with writing(self.run_dir / LABELS):
            write_text(self.run_dir / LABELS, text + "\n")
        self.prepare_inputs()
        counts = {name: len(split) for name, split in {"train": train, "valid": valid, **tests}.items()}
        return [f"{name}: {count:,} {self.things}" for name, count in counts.items()] + [
            f"{len(self.labels)} labels: {', '.join(self.labels)}"
        ]

    def prepare_inputs(self) -> None:
        """Learn from the training corpus what is needed to read its inputs."""

    def start(self) -> tuple[nn.Module, Task]:
        recipe, (train, valid, _) = self.recipe, self.splits
        inputs = self.read(train, training=True)
        return self.build_model(), ClassificationTask(
            inputs,
            train,
            self.batch_plan(inputs.lengths, inputs.lengths),
            self.read(valid, training=False),
            valid,
            self.labels,
            device=pick_device(recipe.device),
            samples=recipe.training.samples,
            r_drop=recipe.training.r_drop,
            losses=pick_losses(recipe.training.backend),
        )

    def row_names(self, run: str) -> Mapping[str, RowNames]:
        path, rows = check_run_dir(run), super().row_names(run)
        return {**rows, "head": (self.labels, read_labels(path))} if (path / LABELS).exists() else rows

    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        task, training, (train, valid, tests) = trainer.task, self.recipe.training, self.splits
        assert isinstance(task, ClassificationTask)
        steps_per_epoch = task.plan.steps_per_epoch
        per_step = len(train) / steps_per_epoch
        lines = {
            1: f"{len(train):,} {self.things} for training, {len(valid):,} for validation; "
            f"{len(self.labels)} labels: {', '.join(self.labels)}",
            4: f"{training.batch_tokens:,} positions x {training.micro_batches}, about {per_step:.0f} "
            f"{self.things} a step, {steps_per_epoch:,} steps an epoch",
            5: f"{100 * (1 - task.plan.fill):.1f} % of positions are padding",
            8: f"{', '.join(tests) or 'the validation set'}",
            9: "accuracy and macro F1",
        }
        return lines, {
            "pairs_read": len(train),
            "labels": self.labels,
            "steps_per_epoch": steps_per_epoch,
        }

    def tested(self) -> Iterator[tuple[str, ClassScores, dict[str, Any], str]]:
        predictor = Predictor.load(self.run_dir, device=self.recipe.device)
        for name, split in self.splits[2].items():
            evaluated = evaluate(predictor, split)
            scores, samples = evaluated.scores, shown(split, evaluated.predicted, TEST_SAMPLES)
            fields = {"sentences": scores.examples, "decode_s": evaluated.seconds, "samples": samples}
            figures = f"accuracy {scores.accuracy:.2f}  macro F1 {scores.macro_f1:.2f}"
            yield name, scores, fields, f"{figures}  in {evaluated.seconds:.1f} s"

    def score_text(self, score: float) -> str:
        return f"accuracy {score:.2f} %"

    def evaluate(self, files: Files, which: str, device: str, **options: Any) -> dict[str, ClassScores]:
        refuse_search(options, "a classifier")
        if files:
            tests = {name: self.files_split(src, ref) for name, (src, ref) in files.items()}
        else:
            names = self.recipe.corpus.label_names
            tests = {name: read_split(source, names) for name, source in self.recipe.corpus.test.items()}
        predictor = Predictor.load(self.run_dir, which=which, device=device)
        return {name: evaluate(predictor, split).scores for name, split in tests.items()}


class ClassificationJob(ClassifierJob):
    """Carries out a `ClassificationRecipe`."""

    settings: ClassVar[Any] = ClassificationRecipe
    next_command: ClassVar[str] = "label texts with: dragoman predict {run} < texts"
    things: ClassVar[str] = "texts"
    matrices: ClassVar[Mapping[str, str]] = {"embedding": "src"}
    recipe: ClassificationRecipe
    reader: TextReader

    def build_untrained(self) -> nn.Module:
        tokenizer = checked_tokenizer(self.recipe.tokenizer, self.run_dir, spelling_of(self.recipe.corpus))
        check_positions(self.recipe.model, self.recipe.corpus.max_tokens)
        model = self.recipe.model.build(
            vocab_size=expected_vocabulary(tokenizer), num_labels=2, pad_id=PAD_ID, unk_id=UNK_ID
        )
        mask = torch.tensor([[True, True, True], [True, False, False]])
        model(torch.tensor([[4, 5, 3], [3, 0, 0]]), mask).sum().backward()
        return model

    def prepare_inputs(self) -> None:
        corpus, settings = self.recipe.corpus, config.to_dict(self.recipe)
        made_from = [fingerprint(corpus.train), settings["corpus"]["valid"], corpus.normalize, corpus.lowercase]
        made_from.append(settings["tokenizer"])
        texts, spelling = self.splits[0].items, spelling_of(corpus)
        self.tokenizers = kept_tokenizers(
            self.run_dir / TOKENIZER, made_from, self.recipe.tokenizer, lambda: map(spelling, texts)
        )
        self.reader = TextReader(self.tokenizers.src, corpus)

    def read(self, split: Split, *, training: bool) -> Inputs:
        return self.reader(split.items, training=training, seed=self.recipe.seed)

    def build_model(self) -> nn.Module:
        model = build_text_classifier(self.recipe.model, self.reader.tokenizer, len(self.labels))
        if self.recipe.vectors:
            load_vectors(model.embedding.tokens, self.reader.tokenizer, self.recipe.vectors)
        return model

    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        lines, fields = super().plan(trainer)
        corpus, size = self.recipe.corpus, self.reader.tokenizer.vocab_size
        case = ", lower-cased" if corpus.lowercase else ""
        lines[2] = f"{corpus.normalize}{case}, {self.recipe.tokenizer.type}, vocabulary {size:,}"
        lines[3] = f"the first {corpus.max_tokens} tokens of each text"
        return lines, {**fields, "src_vocab_size": size}

    def files_split(self, src: Path, ref: Path | None) -> Split:
        names = self.recipe.corpus.label_names
        if ref is None:
            return read_split(LabelledSource(path=str(src)), names)
        texts, labels = list(read_lines(src)), [label.strip() for label in read_lines(ref)]
        if len(texts) != len(labels):
            raise Error.UNEQUAL_COUNTS(
                f" has {len(texts):,} lines but {ref} has {len(labels):,}: one label for each text", file=src
            )
        return Split(texts, [names.get(label, label) for label in labels], texts)


class ImageClassificationJob(ClassifierJob):
    """Carries out an `ImageClassificationRecipe`."""

    settings: ClassVar[Any] = ImageClassificationRecipe
    next_command: ClassVar[str] = "label images with: dragoman predict {run} image.png ..."
    things: ClassVar[str] = "images"
    recipe: ImageClassificationRecipe

    def build_untrained(self) -> nn.Module:
        if self.recipe.model.channels != 1:
            raise Error.WRONG_SETTING(
                f"model.channels is {self.recipe.model.channels}, but images are read as grey values, one number a "
                "pixel",
                "leave it at 1",
            )
        model = self.recipe.model.build(num_labels=2)
        size = self.recipe.model.image_size
        model(torch.zeros(2, 1, size, size)).sum().backward()
        return model

    def read(self, split: Split, *, training: bool) -> Inputs:
        reader = ImageReader(self.recipe.model.image_size, self.recipe.model.num_patches)
        augmentation = self.recipe.corpus.augment if training else None
        return reader(split.items, augmentation=augmentation, seed=self.recipe.seed)

    def build_model(self) -> nn.Module:
        return self.recipe.model.build(num_labels=len(self.labels))

    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        lines, fields = super().plan(trainer)
        model = self.recipe.model
        lines[3] = (
            f"{model.image_size} x {model.image_size} pixels, {model.num_patches} patches of {model.patch_size} x "
            f"{model.patch_size}"
        )
        del lines[5]
        return lines, fields

    def files_split(self, src: Path, ref: Path | None) -> Split:
        if ref is None:
            raise Error.MISSING_OPTION(
                "`src` is an idx file of images and needs a `ref`, the idx file of their labels", file=src
            )
        return read_split(IdxSource(images=str(src), labels=str(ref)), self.recipe.corpus.label_names)
