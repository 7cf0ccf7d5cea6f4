"""Recipes for image classification: from labelled images to a scored Vision Transformer."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from dragoman.config import Field, settings
from dragoman.data.examples import ImageCorpus, Split, read_split
from dragoman.data.inputs import ImageReader, Inputs
from dragoman.errors import Error
from dragoman.models.families import ViTConfig
from dragoman.tasks.base import RecipeSettings
from dragoman.tasks.classification.job import ClassifierJob
from dragoman.text.images import IdxSource
from dragoman.training.loop import Trainer


@settings
class ImageClassificationRecipe(RecipeSettings):
    """Everything that makes a run of an image classifier.

    Patches are an image's tokens: a batch has `training.batch_tokens` // (patches + 1) images.
    """

    task: Literal["image_classification"] = "image_classification"
    corpus: ImageCorpus
    model: ViTConfig = Field(default_factory=ViTConfig)


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
