"""One model that reads a source in several segmentations at once, and says the mean of what each makes it say.

A model that was trained with `tokenizer.sampling` knows many ways to cut a text into tokens. After each of them it
makes other mistakes, as several models do (Takase et al. 2022, "Single Model Ensemble for Subword Regularized Models in
Low-Resource Machine Translation"), but there is one set of weights to train and to keep.
"""

import random
from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from dragoman.data.batch import WIDTH_MULTIPLE, collate_src
from dragoman.models.base import Seq2SeqModel
from dragoman.models.ensemble import Ensemble
from dragoman.text.tokenizers.base import PAD_ID

DRAWS = 8
"""So often another segmentation is drawn where one has more tokens than there is room for; then the usual serves."""


class Resegmented(Ensemble):
    """An ensemble of one model with itself: the usual segmentation of a source, and `count` - 1 that are drawn.

    What is drawn depends on the sentence alone, and so does the width that it is padded to, as long as that of the
    usual one does: half as many positions more. A sentence is translated alike in every batch and every time.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        resample: Callable[[list[int], random.Random], list[int]],
        count: int,
        max_src_tokens: int,
    ) -> None:
        """`resample`: `Tokenizer.resample`; `max_src_tokens`: no segmentation has more."""
        super().__init__([model] * count)
        self._resample, self._max_src_tokens = resample, max_src_tokens

    def encode(self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"]) -> tuple[Any, ...]:
        read = [(src, src_mask), *(self.drawn(src, src_mask, number) for number in range(1, len(self.models)))]
        return tuple(model.encode(*segmented) for model, segmented in zip(self._each(), read, strict=True))

    def drawn(
        self, src: Int[Tensor, "batch src_len"], src_mask: Bool[Tensor, "batch src_len"], number: int
    ) -> tuple[Int[Tensor, "batch wider"], Bool[Tensor, "batch wider"]]:
        """Segmentation `number` of each source, and which of its positions are real."""
        width = src.size(1) + src.size(1) // 2
        width = max(src.size(1), min(width + -width % WIDTH_MULTIPLE, self._max_src_tokens + 1))
        sentences = []
        for ids, length in zip(src.tolist(), src_mask.sum(dim=1).tolist(), strict=True):
            usual = ids[: length - 1]  # without </s>
            rng = random.Random(f"{number} {usual}")
            draws = (self._resample(usual, rng) for _ in range(DRAWS))
            sentences.append(next((ids for ids in draws if len(ids) < width), usual))
        other, mask = collate_src(sentences)
        missing = width - other.size(1)
        other, mask = F.pad(other, (0, missing), value=PAD_ID), F.pad(mask, (0, missing), value=False)
        return other.to(src.device), mask.to(src.device)
