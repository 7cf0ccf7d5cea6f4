"""Recipes for language modelling: from one long text to a model that continues it."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from dragoman import config
from dragoman.config import Field, settings
from dragoman.data.text_corpus import IntArray, TextCorpusConfig, TextReport, encode, prepare_text
from dragoman.data.windows import WindowPlan
from dragoman.decoding.generate import SamplingConfig
from dragoman.device import pick_device
from dragoman.errors import Error
from dragoman.inference.generator import Generator
from dragoman.models.language_model import LanguageModelConfig
from dragoman.runs.directory import TOKENIZER
from dragoman.special_tokens import PAD_ID
from dragoman.tasks.base import TEST_SAMPLES, Files, Job, RecipeSettings, refuse_search, scored_texts
from dragoman.tasks.language_modelling.task import LanguageModellingTask, TextScores, samples, score
from dragoman.tasks.vocabulary import checked_tokenizer, expected_vocabulary, kept_tokenizers
from dragoman.text.normalize import NORMALIZERS, spelling_of
from dragoman.text.plain_sources import PlainSource
from dragoman.text.sources.base import fingerprint
from dragoman.text.tokenizers.characters import CharactersConfig
from dragoman.text.tokenizers.pair import SingleConfig
from dragoman.training.config import TrainingConfig
from dragoman.training.loop import Trainer
from dragoman.training.step import pick_losses
from dragoman.training.task import Task


@settings
class LanguageModelTraining(TrainingConfig):
    """As for every task, but without label smoothing: it lowers the probabilities that are measured."""

    label_smoothing: float = Field(default=0.0, ge=0, lt=1)


@settings
class LanguageModellingRecipe(RecipeSettings):
    """Everything that makes a run. Relative paths are looked up here, under $DRAGOMAN_DATA, and under ./data."""

    task: Literal["language_modelling"]
    corpus: TextCorpusConfig
    tokenizer: SingleConfig = Field(default_factory=CharactersConfig)  #: The tokenizer.
    model: LanguageModelConfig = Field(default_factory=LanguageModelConfig)
    training: LanguageModelTraining = Field(default_factory=LanguageModelTraining)
    decoding: SamplingConfig = Field(default_factory=SamplingConfig)

    def __post_init__(self) -> None:
        if getattr(self.tokenizer, "sampling", 0):
            raise ValueError("tokenizer.sampling draws segmentations of sentence pairs; a language model has none")
        if self.training.batch_sentences:
            raise ValueError("training.batch_sentences: a language model reads windows; give training.batch_tokens")


class LanguageModellingJob(Job):
    """Carries out a `LanguageModellingRecipe`."""

    settings: ClassVar[Any] = LanguageModellingRecipe
    metrics: ClassVar[tuple[str, ...]] = ("loss", "perplexity", "bits_per_character")
    next_command: ClassVar[str] = 'continue a text with: dragoman generate {run} --prompt "..."'
    inference: ClassVar[Any] = Generator
    matrices: ClassVar[Mapping[str, str]] = {"embedding": "tgt", "output": "tgt"}
    recipe: LanguageModellingRecipe

    def build_untrained(self) -> nn.Module:
        tokenizer = checked_tokenizer(self.recipe.tokenizer, self.run_dir, spelling_of(self.recipe.corpus))
        model = self.recipe.model.build(vocab_size=expected_vocabulary(tokenizer), pad_id=PAD_ID)
        model(torch.ones(1, self.recipe.corpus.block_len, dtype=torch.long)).sum().backward()
        return model

    def prepare(self) -> list[str]:
        corpus = self.recipe.corpus
        # Read before the long work: a text that is missing should not be found missing at its end.
        self.tests = {name: self._read(source) for name, source in corpus.test.items()}
        self.init_run_dir()
        self.tokenizers = kept_tokenizers(
            self.run_dir / TOKENIZER,
            self._made_from(corpus.train),
            self.recipe.tokenizer,
            lambda: iter(self._read(corpus.train).split("\n")),
        )
        self.train, self.train_report = self._encode("train", corpus.train)
        self.valid, self.valid_report = self._encode("valid", corpus.valid)
        return [_prepared_line("train", self.train_report), _prepared_line("valid", self.valid_report)]

    def _read(self, source: PlainSource) -> str:
        return NORMALIZERS[self.recipe.corpus.normalize](source.text())

    def _made_from(self, source: PlainSource) -> list[Any]:
        return [fingerprint(source), self.recipe.corpus.normalize, config.to_dict(self.recipe)["tokenizer"]]

    def _encode(self, split: str, source: PlainSource) -> tuple[IntArray, TextReport]:
        made_from = json.dumps([self._made_from(self.recipe.corpus.train), self._made_from(source)])
        return prepare_text(
            lambda: self._read(source),
            self.tokenizers.tgt,
            self.run_dir / "prepared" / split,
            made_from=hashlib.sha256(made_from.encode()).hexdigest(),
        )

    def start(self) -> tuple[nn.Module, Task]:
        recipe, corpus, training = self.recipe, self.recipe.corpus, self.recipe.training
        model = recipe.model.build(vocab_size=self.tokenizers.tgt.vocab_size, pad_id=PAD_ID)
        plan = WindowPlan(
            len(self.train),
            corpus.block_len,
            batch_tokens=training.batch_tokens,
            micro_batches=training.micro_batches,
            seed=recipe.seed,
        )
        generator = Generator(
            model,
            self.tokenizers.tgt,
            sampling=recipe.decoding,
            max_context=corpus.block_len,
            normalize=corpus.normalize,
            device=pick_device(recipe.device),
        )
        return model, LanguageModellingTask(
            self.train,
            plan,
            self.valid,
            self.valid_report.characters,
            generator=generator,
            min_context=corpus.min_context,
            shown=training.samples,
            r_drop=training.r_drop,
            losses=pick_losses(training.backend),
        )

    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        task, training, report = trainer.task, self.recipe.training, self.train_report
        assert isinstance(task, LanguageModellingTask)
        corpus, sampling, vocab_size = self.recipe.corpus, self.recipe.decoding, self.tokenizers.tgt.vocab_size
        lines = {
            1: f"{report.characters:,} characters for training, {self.valid_report.characters:,} for validation",
            2: f"{corpus.normalize}, {self.recipe.tokenizer.type}, vocabulary {vocab_size:,}",
            3: f"{report.tokens:,} tokens, {report.unknown:,} of them unknown"
            f"{' (stored before)' if report.reused else ''}",
            4: f"{training.batch_tokens:,} tokens x {training.micro_batches}, windows of {corpus.block_len}, "
            f"{task.plan.steps_per_epoch:,} steps an epoch",
            5: "each token predicts the next and sees none after itself; nothing is padded",
            8: f"temperature {sampling.temperature:g}, top_k {sampling.top_k or 'all'}, top_p {sampling.top_p:g}",
            9: f"nats per token on {', '.join(corpus.test) or 'the validation text'}, each seen "
            f"from {corpus.min_context} to {corpus.block_len} tokens before it",
        }
        return lines, {
            "characters": report.characters,
            "tokens": report.tokens,
            "unknown": report.unknown,
            "vocab_size": vocab_size,
            "steps_per_epoch": task.plan.steps_per_epoch,
        }

    def tested(self) -> Iterator[tuple[str, TextScores, dict[str, Any], str]]:
        generator = Generator.load(self.run_dir, device=self.recipe.device)
        for name, text in self.tests.items():
            ids = encode(generator.tokenizer, text)
            scores = self._score(generator, ids, len(text))
            figures = f"{scores.loss:.4f} nats per token, perplexity {scores.perplexity:.2f}, "
            figures += f"{scores.bits_per_character:.4f} bits per character"
            yield name, scores, {"samples": samples(generator, ids, TEST_SAMPLES)}, figures

    def _score(
        self, generator: Generator, ids: IntArray, characters: int, min_context: int | None = None
    ) -> TextScores:
        return score(
            generator.model,
            ids,
            characters,
            block_len=self.recipe.corpus.block_len,
            min_context=self.recipe.corpus.min_context if min_context is None else min_context,
            device=generator.device,
        )

    def score_text(self, score: float) -> str:
        return f"loss {-score:.4f} nats per token (perplexity {math.exp(min(-score, 50.0)):.2f})"

    def evaluate(self, files: Files, which: str, device: str, **options: Any) -> Mapping[str, TextScores]:
        min_context = options.pop("min_context", None)
        refuse_search(options, "a language model")
        block_len = self.recipe.corpus.block_len
        if min_context is not None and not 1 <= min_context <= block_len:
            raise Error.OUT_OF_RANGE(f"`min_context` {min_context}: this run's windows allow 1 to {block_len}")
        sources = scored_texts(self.recipe, files, "a language model")
        texts = {name: self._read(source) for name, source in sources.items()}
        generator = Generator.load(self.run_dir, which=which, device=device)
        return {
            name: self._score(generator, encode(generator.tokenizer, text), len(text), min_context)
            for name, text in texts.items()
        }


def _prepared_line(split: str, report: TextReport) -> str:
    return (
        f"{split}: {report.characters:,} characters, {report.tokens:,} tokens, {report.unknown:,} of them unknown; "
        f"{'used what was stored' if report.reused else 'stored'} in {report.seconds:.1f} s"
    )
