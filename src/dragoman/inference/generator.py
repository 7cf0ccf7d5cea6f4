"""Text in, more text out: the one way to draw from a language model, under the command line, validation and reports."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from dragoman import config
from dragoman.backends.accelerate import accelerate_inference
from dragoman.data.text_corpus import TextCorpusConfig
from dragoman.decoding.generate import SamplingConfig, generate, stream
from dragoman.device import pick_device
from dragoman.models.language_model import LanguageModel, LanguageModelConfig
from dragoman.runs import checkpoint
from dragoman.runs.directory import read_run
from dragoman.special_tokens import EOS_ID, PAD_ID
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import Tokenizer, load_tokenizers


class Generator:
    """A language model with its tokenizer. `dragoman.load_language_model(run)` makes one.

    A prompt begins at the beginning of a line, as if a line feed stood before it.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        *,
        sampling: SamplingConfig,
        max_context: int,
        normalize: str = "none",
        device: torch.device | None = None,
    ) -> None:
        self.model, self.tokenizer, self.sampling, self.max_context = model, tokenizer, sampling, max_context
        self.normalize = NORMALIZERS[normalize]
        self.device = device or torch.device("cpu")

    @classmethod
    def load(cls, run: str | Path, *, which: str = "best", device: str = "auto", **sampling: Any) -> "Generator":
        """The generator of a run directory: checkpoint `best`, `last` or a step, sampling settings changed at will.

        Raises DragomanError when the run is none of a language model, holds no checkpoint that verifies, or its parts
        do not fit together.
        """
        run_dir = Path(run)
        source = run_dir / "config.yaml"
        recipe = read_run(run_dir, "language_modelling")
        settings = {**recipe.get("decoding", {}), **sampling}
        corpus = config.parse(TextCorpusConfig, recipe.get("corpus", {}), f"{source}: corpus")
        tokenizer = load_tokenizers(run_dir / "tokenizer").tgt
        built = config.parse(LanguageModelConfig, recipe.get("model", {}), f"{source}: model")
        path = checkpoint.select(run_dir, which)
        model = checkpoint.restored(path, lambda: built.build(vocab_size=tokenizer.vocab_size, pad_id=PAD_ID))
        chosen = pick_device(device)
        accelerate_inference(model, packed=False)
        return cls(
            model.to(chosen).eval(),
            tokenizer,
            sampling=config.parse(SamplingConfig, settings, "sampling settings"),
            max_context=corpus.block_len,
            normalize=corpus.normalize,
            device=chosen,
        )

    def generate(self, prompts: Sequence[str], **sampling: Any) -> list[str]:
        """The continuation of each prompt, `max_tokens` tokens long; `sampling` changes settings for this call.

        The prompt number n draws with the seed's n-th row of numbers: equal prompts go on differently, and what a
        prompt's continuation is does not depend on the others.
        """
        return self.continuations([self.ids(prompt) for prompt in prompts], **sampling)

    def stream(self, prompt: str, **sampling: Any) -> Iterator[str]:
        """`generate` for one prompt, in pieces as they are drawn."""
        ids = self.ids(prompt)
        line = ids[len(ids) - ids[::-1].index(EOS_ID) :]  # what stands in the last line, which alone is decoded again
        shown = self.tokenizer.decode(line)
        for [(_, token)] in stream(self.model, [ids], self._settings(sampling), max_context=self.max_context):
            if token == EOS_ID:
                line, shown = [], ""
                yield "\n"
                continue
            line.append(token)
            text = self.tokenizer.decode(line)
            if not text.endswith("\ufffd"):  # a character of several byte pieces that is not whole yet
                yield text.removeprefix(shown)
                shown = text

    def ids(self, prompt: str) -> list[int]:
        """The ids of a prompt, the line feed before it among them."""
        return [EOS_ID, *self.tokenizer.encode_text(self.normalize(prompt))]

    def text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode_text(ids)

    def text_after(self, prompt: Sequence[int], ids: Sequence[int]) -> str:
        """The text of `ids` as it goes on after `prompt`: with the space between them, if there is one."""
        return self.text([*prompt, *ids]).removeprefix(self.text(prompt))

    def continuations(self, prompts: Sequence[Sequence[int]], **sampling: Any) -> list[str]:
        """`generate` for prompts that are already token ids."""
        sequences = generate(self.model, prompts, self._settings(sampling), max_context=self.max_context)
        return [self.text_after(prompt, ids) for prompt, ids in zip(prompts, sequences, strict=True)]

    def _settings(self, changes: dict[str, Any]) -> SamplingConfig:
        return config.changed(self.sampling, changes, "sampling settings") if changes else self.sampling
