"""Recipes for masked language modelling: from lines of text to an encoder that other runs begin with."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from dragoman import config
from dragoman.config import Field, settings
from dragoman.data.masked_tokens import MaskingConfig
from dragoman.data.text_corpus import LinesCorpusConfig, encoded, lines_of
from dragoman.device import pick_device
from dragoman.inference.fill_mask import FillMask
from dragoman.models.masked_language_model import MaskedLanguageModelConfig
from dragoman.runs.directory import TOKENIZER
from dragoman.special_tokens import PAD_ID
from dragoman.tasks.base import Files, Job, RecipeSettings, refuse_search, scored_texts
from dragoman.tasks.language_modelling.job import LanguageModelTraining
from dragoman.tasks.masked_language_modelling.task import MaskedLanguageModellingTask, MaskedLMScores, score
from dragoman.tasks.vocabulary import check_positions, checked_tokenizer, expected_vocabulary, kept_tokenizers
from dragoman.text.normalize import spelling_of
from dragoman.text.sources.base import fingerprint
from dragoman.text.tokenizers.pair import SentencePieceConfig, SingleConfig
from dragoman.training.loop import Trainer
from dragoman.training.step import pick_losses
from dragoman.training.task import Task


@settings
class MaskedLanguageModellingRecipe(RecipeSettings):
    """Everything that makes a run of a masked language model."""

    task: Literal["masked_language_modelling"]
    corpus: LinesCorpusConfig
    tokenizer: SingleConfig = Field(default_factory=SentencePieceConfig)  #: The tokenizer.
    hiding: MaskingConfig = Field(default_factory=MaskingConfig)
    model: MaskedLanguageModelConfig = Field(default_factory=MaskedLanguageModelConfig)
    training: LanguageModelTraining = Field(default_factory=LanguageModelTraining)

    def __post_init__(self) -> None:
        if getattr(self.tokenizer, "sampling", 0):
            raise ValueError("tokenizer.sampling draws segmentations of sentence pairs; here there are none")
        if self.training.r_drop:
            raise ValueError("training.r_drop is not there for hidden tokens")


class MaskedLanguageModellingJob(Job):
    """Carries out a `MaskedLanguageModellingRecipe`."""

    settings: ClassVar[Any] = MaskedLanguageModellingRecipe
    metrics: ClassVar[tuple[str, ...]] = ("loss", "perplexity", "accuracy")
    next_command: ClassVar[str] = 'guess hidden words with: dragoman fill {run} "a man <mask> a guitar"'
    inference: ClassVar[Any] = FillMask
    matrices: ClassVar[Mapping[str, str]] = {"embedding": "src", "output": "src"}
    recipe: MaskedLanguageModellingRecipe

    def build_untrained(self) -> nn.Module:
        tokenizer = checked_tokenizer(self.recipe.tokenizer, self.run_dir, spelling_of(self.recipe.corpus))
        check_positions(self.recipe.model, self.recipe.corpus.max_tokens)
        model = self.recipe.model.build(vocab_size=expected_vocabulary(tokenizer), pad_id=PAD_ID)
        mask = torch.tensor([[True, True, True], [True, False, False]])
        model(torch.tensor([[4, 5, 3], [3, 0, 0]]), mask).sum().backward()
        return model

    def prepare(self) -> list[str]:
        corpus = self.recipe.corpus
        self.lines = {
            name: lines_of(source, corpus) for name, source in (("train", corpus.train), ("valid", corpus.valid))
        }
        self.tests = {name: lines_of(source, corpus) for name, source in corpus.test.items()}
        self.init_run_dir()
        made_from = [fingerprint(corpus.train), corpus.normalize, corpus.lowercase]
        made_from.append(config.to_dict(self.recipe)["tokenizer"])
        lines = self.lines["train"]
        self.tokenizers = kept_tokenizers(
            self.run_dir / TOKENIZER, made_from, self.recipe.tokenizer, lambda: iter(lines)
        )
        return [f"{name}: {len(lines):,} lines" for name, lines in {**self.lines, **self.tests}.items()]

    def start(self) -> tuple[nn.Module, Task]:
        recipe, corpus, training = self.recipe, self.recipe.corpus, self.recipe.training
        tokenizer = self.tokenizers.src
        train, valid = (encoded(self.lines[name], tokenizer, corpus) for name in ("train", "valid"))
        model = recipe.model.build(vocab_size=tokenizer.vocab_size, pad_id=PAD_ID)
        return model, MaskedLanguageModellingTask(
            train,
            self.batch_plan(train.lengths, train.lengths),
            valid,
            self.lines["valid"],
            filler=FillMask(model, tokenizer, corpus, pick_device(recipe.device)),
            hiding=recipe.hiding,
            seed=recipe.seed,
            shown=training.samples,
            losses=pick_losses(training.backend),
        )

    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        task, recipe = trainer.task, self.recipe
        assert isinstance(task, MaskedLanguageModellingTask)
        steps_per_epoch, vocab_size = task.plan.steps_per_epoch, self.tokenizers.src.vocab_size
        tokens = int(task.train.lengths.sum())
        lines = {
            1: f"{len(self.lines['train']):,} lines for training, {len(self.lines['valid']):,} for validation",
            2: f"{recipe.corpus.normalize}, {recipe.tokenizer.type}, vocabulary {vocab_size:,}",
            3: f"{tokens:,} tokens, the first {recipe.corpus.max_tokens} of each line",
            4: f"{recipe.training.batch_tokens:,} positions x {recipe.training.micro_batches}, "
            f"{steps_per_epoch:,} steps an epoch",
            5: f"{recipe.hiding.share:.0%} of the tokens are to be guessed: {recipe.hiding.hidden:.0%} of them hidden, "
            f"{recipe.hiding.random:.0%} another token, the rest as they are",
            8: f"{', '.join(recipe.corpus.test) or 'the validation text'}",
            9: "nats for each hidden token, and the share that is guessed",
        }
        return lines, {"lines": len(self.lines["train"]), "vocab_size": vocab_size, "steps_per_epoch": steps_per_epoch}

    def tested(self) -> Iterator[tuple[str, MaskedLMScores, dict[str, Any], str]]:
        filler = FillMask.load(self.run_dir, device=self.recipe.device)
        for name, lines in self.tests.items():
            scores = self._score(filler, lines)
            yield name, scores, {}, f"{scores.loss:.4f} nats per hidden token, {scores.accuracy:.2f} % guessed"

    def _score(self, filler: FillMask, lines: list[str]) -> MaskedLMScores:
        texts = encoded(lines, filler.tokenizer, self.recipe.corpus)
        return score(filler.model, texts, self.recipe.hiding, filler.tokenizer.vocab_size, filler.device)

    def score_text(self, score: float) -> str:
        return f"loss {-score:.4f} nats per hidden token (perplexity {math.exp(min(-score, 50.0)):.2f})"

    def evaluate(self, files: Files, which: str, device: str, **options: Any) -> Mapping[str, MaskedLMScores]:
        refuse_search(options, "a masked language model")
        sources = scored_texts(self.recipe, files, "a masked language model")
        filler = FillMask.load(self.run_dir, which=which, device=device)
        return {name: self._score(filler, lines_of(one, self.recipe.corpus)) for name, one in sources.items()}
