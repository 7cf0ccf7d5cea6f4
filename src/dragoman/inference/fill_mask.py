"""Text with gaps in, likely tokens out: how a masked language model is used."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman import config
from dragoman.backends.accelerate import accelerate_inference
from dragoman.data.batch import collate_src
from dragoman.data.masked_tokens import MASK, MASK_ID
from dragoman.data.text_corpus import LinesCorpusConfig
from dragoman.device import pick_device
from dragoman.errors import Error
from dragoman.models.masked_language_model import MaskedLanguageModel, MaskedLanguageModelConfig
from dragoman.runs import checkpoint
from dragoman.runs.directory import read_run
from dragoman.special_tokens import PAD_ID, SPECIALS
from dragoman.text.normalize import spelling_of
from dragoman.text.tokenizers.pair import Tokenizer, load_tokenizers


@dataclass(frozen=True)
class Guess:
    """A piece for a gap, and how probable the model thinks it is."""

    piece: str
    probability: float


class FillMask:
    """A masked language model with its tokenizer. `FillMask.load(run)` makes one."""

    def __init__(
        self, model: MaskedLanguageModel, tokenizer: Tokenizer, corpus: LinesCorpusConfig, device: torch.device
    ) -> None:
        self.model, self.tokenizer, self.corpus, self.device = model, tokenizer, corpus, device
        self.spelling = spelling_of(corpus)

    @classmethod
    def load(cls, run: str | Path, *, which: str = "best", device: str = "auto") -> "FillMask":
        """The gap filler of a run directory: checkpoint `best`, `last` or a step.

        Raises DragomanError when the run is none of a masked language model, or holds no checkpoint that verifies.
        """
        run_dir = Path(run)
        source = run_dir / "config.yaml"
        recipe = read_run(run_dir, "masked_language_modelling")
        corpus = config.parse(LinesCorpusConfig, recipe.get("corpus", {}), f"{source}: corpus")
        built = config.parse(MaskedLanguageModelConfig, recipe.get("model", {}), f"{source}: model")
        tokenizer = load_tokenizers(run_dir / "tokenizer").src
        path = checkpoint.select(run_dir, which)
        model = checkpoint.restored(path, lambda: built.build(vocab_size=tokenizer.vocab_size, pad_id=PAD_ID))
        chosen = pick_device(device)
        accelerate_inference(model, packed=False)
        return cls(model.to(chosen).eval(), tokenizer, corpus, chosen)

    def fill(self, text: str, count: int = 5) -> list[list[Guess]]:
        """For each `<mask>` of a text the most probable pieces, best first.

        Raises DragomanError for a text without one, or longer than the model reads.
        """
        parts = self.spelling(text).split(MASK)
        if len(parts) < 2:
            raise Error.MISSING_OPTION(
                f"there is no {MASK} in the text", "write it in the place of a word to be guessed"
            )
        ids: list[int] = []
        for number, part in enumerate(parts):
            ids += ([MASK_ID] if number else []) + list(self.tokenizer.encode(part))
        if len(ids) > self.corpus.max_tokens:
            raise Error.TOO_LONG(f"{len(ids)} tokens: more than the {self.corpus.max_tokens} that this run reads")
        src, mask = collate_src([ids])
        with torch.inference_mode():
            logits = self._logits(src, mask)[0, src[0] == MASK_ID]
        probabilities, best = logits.softmax(dim=-1).topk(min(count, logits.size(-1)), dim=-1)
        return [
            [Guess(piece, p) for piece, p in zip(self.tokenizer.pieces(row), chances, strict=True)]
            for row, chances in zip(best.tolist(), probabilities.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def guesses(self, ids: Int[Tensor, "batch len"], mask: Bool[Tensor, "batch len"]) -> Int[Tensor, "batch len"]:
        """The most probable token of each position."""
        was_training = self.model.training
        tokens = self._logits(ids, mask).argmax(dim=-1).cpu()
        self.model.train(was_training)
        return tokens

    def _logits(self, ids: Tensor, mask: Tensor) -> Tensor:
        self.model.eval()
        logits: Tensor = self.model(ids.to(self.device), mask.to(self.device)).float()
        logits[..., : len(SPECIALS)] = -torch.inf  # no gap stands for padding
        return logits
