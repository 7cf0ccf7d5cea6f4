"""Recipes for translation: from raw parallel text to a scored translator."""

import collections
import hashlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from torch import nn

from dragoman import config
from dragoman.alignment.learnt_markup import without_tags
from dragoman.alignment.learnt_memory import LEXICON, copy_links
from dragoman.config import Field, settings
from dragoman.cores import usable_cores
from dragoman.data.batch import collate
from dragoman.data.batching import BatchPlan
from dragoman.data.context import CorpusInContext, places
from dragoman.data.random import hash64
from dragoman.data.store import IdCorpus, PrepareReport, prepare
from dragoman.data.stream_blocks import StreamBlocks
from dragoman.decoding.search import DecodingConfig
from dragoman.device import pick_device, pick_precision
from dragoman.doctor.collection import paths_of
from dragoman.doctor.examine import Examination
from dragoman.errors import DragomanError, Error, show, writing
from dragoman.evaluation.evaluate_output import EvaluationOptions
from dragoman.evaluation.translation import evaluate, spread, translate
from dragoman.inference.loading import build_model, model_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.languages.codes import is_known, name_of
from dragoman.languages.identification import language_or_recognised, recognised
from dragoman.models.base import count_parameters
from dragoman.models.families import ModelConfig, TransformerConfig
from dragoman.progress import say
from dragoman.quality.scores import EvaluationConfig, Scores
from dragoman.quality.test_set import TestSet
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.directory import TOKENIZER, check_run_dir, require_alike
from dragoman.special_tokens import UNK_ID
from dragoman.tasks.base import TEST_SAMPLES, Files, Job, RecipeSettings, dropped_text
from dragoman.tasks.collection import prepare_collection
from dragoman.tasks.translation.leaks import left_out_of, with_leaks, without_leaks
from dragoman.tasks.translation.origins import origins_of
from dragoman.tasks.translation.task import TranslationTask
from dragoman.tasks.vocabulary import check_positions, checked_tokenizer, expected_vocabulary, kept_tokenizers
from dragoman.tasks.word_vectors import VectorsConfig, load_vectors, require_words
from dragoman.text.annotations import PIECES
from dragoman.text.augment import Augment
from dragoman.text.corpus import CorpusConfig, FilesSource, MixSource, Pair, Source
from dragoman.text.lines import find, read_lines
from dragoman.text.normalize import NORMALIZERS, spelling_of
from dragoman.text.sources.base import PairSource, digest, files_of, fingerprint
from dragoman.text.sources.parallel import ParallelSource
from dragoman.text.sources.stream import Stream, StreamEnded, StreamSource
from dragoman.text.tokenizers.pair import (
    ReuseConfig,
    TokenizerConfig,
    TokenizerPair,
    load_tokenizers,
    singles_of,
    with_symbols,
)
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.training.annotated_pairs import Annotator, changed_pairs, pieces_of, taught_by
from dragoman.training.distillation import DistillationConfig, Teachers
from dragoman.training.guided_alignment import GuideConfig, GuidedAlignment, NoGuide, Projector
from dragoman.training.loop import Trainer
from dragoman.training.preflight import Estimate
from dragoman.training.step import pick_losses
from dragoman.training.task import Task

USEFUL_BLEU = 2.0
"""Below it, a translator has learnt nothing of use: it says the same of every sentence."""

TER_SECONDS = 0.01
"""Of a sentence, about: its edits are searched for shifts, which validation leaves out."""

LOOKED_AT_FOR_LEAKS = 1_000_000
"""Training pairs in which the sentences of a test set are looked for when it is scored."""
MOSTLY_KNOWN = 0.2
"""Share of tokens that may be unknown in a training text without a word on it."""

MAX_EXAMINED_PAIRS = 20_000
"""Pairs of a training corpus that are examined before each training; `dragoman doctor` looks at all of them."""


@settings
class SideVectors:
    """Pretrained word vectors for the embedding of either side; with three-way tying that is the same embedding."""

    src: VectorsConfig | None = None  #: Vectors of the source embedding.
    tgt: VectorsConfig | None = None  #: Vectors of the target embedding.


@settings
class TranslationRecipe(RecipeSettings):
    """Everything that makes a run. Relative paths are looked up here, under $DRAGOMAN_DATA, and under ./data."""

    task: Literal["translation"] = "translation"
    corpus: CorpusConfig
    tokenizer: TokenizerConfig = Field(default_factory=SentencePieceConfig)
    """One tokenizer for both sides, `separate` ones, or `reuse` of another run's."""
    vectors: SideVectors = Field(default_factory=SideVectors)
    model: ModelConfig = Field(default_factory=TransformerConfig)  #: The model's family, sizes and variants.
    distillation: DistillationConfig = Field(default_factory=DistillationConfig)
    guided_alignment: GuideConfig = Field(default_factory=NoGuide)
    """Links of words that a head of the decoder's attention, `model.alignment_head`, is trained to make."""
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        for side in ("src", "tgt"):
            if getattr(self.vectors, side):
                require_words(getattr(self.tokenizer, side, self.tokenizer))
        if self.distillation.teachers and self.training.r_drop:
            raise ValueError("distillation.teachers and training.r_drop are two losses: choose one of them")
        if isinstance(self.model, TransformerConfig) and (head := self.model.alignment_head) is not None:
            sizes = self.model.num_decoder_layers, self.model.num_heads
            if not all(0 <= number < size for number, size in zip(head, sizes, strict=True)):
                last = [size - 1 for size in sizes]
                raise ValueError(f"model.alignment_head={list(head)}: the last layer and head are {last}")
        if self.training.r_drop and self.corpus.weights_in == "loss":
            raise ValueError("corpus.weights_in=loss and training.r_drop: choose one of them")
        if self.guided_alignment.type != "none":
            self._check_guide()
        if self.training.max_epochs and isinstance(self.corpus.train, StreamSource):
            raise ValueError("training.max_epochs: a stream has no end that is known; give max_steps")
        if pieces := pieces_of(self.corpus.augment, self.corpus.context):
            if isinstance(self.corpus.train, StreamSource):
                raise ValueError(
                    "corpus.augment.tags, terms, fuzzy, corpus.context: a stream is read while it is trained on; train "
                    "on files"
                )
            if self.corpus.context.src and self.training.workspace is not None:
                raise ValueError(
                    "corpus.context: what is read with a sentence goes by batch_tokens; leave out workspace"
                )
            if self.corpus.context.src and getattr(self.tokenizer, "languages", None):
                raise ValueError("corpus.context: a document is of one direction; train on two languages")
            if self.corpus.context.src and self.guided_alignment.type != "none":
                raise ValueError("corpus.context: no links of words with sentences before; leave out guided_alignment")
            if self.corpus.augment.fuzzy and getattr(self.tokenizer, "languages", None):
                raise ValueError("corpus.augment.fuzzy: a match is of one direction; train on two languages")
            with_symbols(self.tokenizer, pieces)

    def _check_guide(self) -> None:
        """Raises ValueError where a head cannot be guided."""
        train, model = self.corpus.train, self.model
        if not isinstance(model, TransformerConfig):
            raise ValueError("guided_alignment: needs model.type=transformer")
        if model.alignment_head is None:
            head = [max(model.num_decoder_layers - 2, 0), 0]
            raise ValueError(f"guided_alignment: say which (layer, head) learns it: model.alignment_head={head}")
        if isinstance(train, StreamSource):
            raise ValueError("guided_alignment: a stream is read while it is trained on; train on files")
        if isinstance(train, MixSource) and train.weights and self.guided_alignment.type == "pharaoh":
            raise ValueError("guided_alignment.type=pharaoh: give a weighted mix no weights, or take type=lexical")
        if any(getattr(side, "sampling", 0.0) for side in singles_of(self.tokenizer)):
            raise ValueError("guided_alignment: with tokenizer.sampling the pieces change, and links are of pieces")


class TranslationJob(Job):
    """Carries out a `TranslationRecipe`."""

    settings: ClassVar[Any] = TranslationRecipe
    metrics: ClassVar[tuple[str, ...]] = ("loss", "perplexity", "bleu", "chrf")
    next_command: ClassVar[str] = "translate with: dragoman translate {run} < text"
    inference: ClassVar[Any] = SearchTranslator
    matrices: ClassVar[Mapping[str, str]] = {"src_embedding": "src", "tgt_embedding": "tgt", "output": "tgt"}
    recipe: TranslationRecipe
    stream: Stream | None = None

    def build_untrained(self) -> nn.Module:
        tokenizer = checked_tokenizer(self.recipe.tokenizer, self.run_dir, spelling_of(self.recipe.corpus))
        check_positions(self.recipe.model, self.recipe.corpus.max_tokens)
        sizes = [expected_vocabulary(getattr(tokenizer, side, tokenizer)) for side in ("src", "tgt")]
        shared = getattr(tokenizer, "joint", True)
        model = self.recipe.model.build(src_vocab_size=sizes[0], tgt_vocab_size=sizes[1], shared_vocab=shared, pad_id=0)
        batch = collate([([4, 5, 6], [6, 5]), ([4], [5, 6, 4, 5])])
        model(batch.src, batch.src_mask, batch.tgt_in).sum().backward()
        return model

    def referenced_runs(self) -> list[str]:
        return [*super().referenced_runs(), *self.recipe.distillation.teachers]

    def sources(self) -> list[Any]:
        return [] if self.recipe.corpus.files else super().sources()

    def check_files(self) -> None:
        super().check_files()
        recipe, corpus = self.recipe, self.recipe.corpus
        if corpus.files and not paths_of(corpus.files):
            raise Error.EMPTY("corpus.files: no file in it", file=corpus.files.paths[0])
        train: Any = corpus.train
        if corpus.weights_in == "loss":  # weights that are read when training begins, after the tokenizer is learnt
            collections.deque(train.with_weights(), maxlen=0)
        files_of(recipe.guided_alignment)
        for vectors in filter(None, (recipe.vectors.src, recipe.vectors.tgt)):
            find(vectors.path)
        recipe.evaluation.metrics(corpus.tgt_lang, with_ter=False)
        is_begun = (self.run_dir / TOKENIZER).is_dir()  # it has the other run's
        if isinstance(recipe.tokenizer, ReuseConfig) and not is_begun:
            tokenizers = load_tokenizers(Path(recipe.tokenizer.run) / TOKENIZER)
            tokenizers = tokenizers.between(corpus.src_lang, corpus.tgt_lang)
            _check_pieces(tokenizers, taught_by(corpus.augment, corpus.context))

    def prepare(self) -> list[str]:
        corpus = self.recipe.corpus
        if corpus.files is not None and self.ranks.is_first:
            codes = corpus.augment.tags > 0
            prepare_collection(corpus.files, (corpus.src_lang, corpus.tgt_lang), self.run_dir, codes=codes)
        # Read before the long work: a test set that is missing should not be found missing at its end.
        self.tests = {name: list(source.pairs()) for name, source in corpus.test.items()}
        self.valid_pairs = list(corpus.valid.pairs())
        if self.ranks.is_first:
            _say_languages(corpus, self.valid_pairs)
        augment = self.augment
        train_source: Any
        valid: Any = corpus.valid
        if isinstance(corpus.train, StreamSource):
            self.init_run_dir()
            split, train_source = self._begin_stream(corpus.train)
        else:
            split, train_source = "train", corpus.trained_on
            plain: Any = train_source
            if isinstance(augment, Annotator):
                plain = changed_pairs(train_source, augment.without_tags)
            if self.ranks.is_first and not checkpoint.list_checkpoints(self.run_dir):
                examine(plain, corpus.src_lang, corpus.tgt_lang, corpus.doctor)
            self.init_run_dir()
            if corpus.leaks == "drop":
                held_out = {**self.tests, "valid": self.valid_pairs}
                train_source = replace(without_leaks(plain, held_out, self.run_dir / "prepared"), source=train_source)
        leakless = train_source
        if isinstance(augment, Annotator):
            train_source = changed_pairs(train_source, augment.with_tags, numbered=bool(corpus.context.src))
            valid = changed_pairs(valid, augment.without_tags)
            self.valid_pairs = list(valid.pairs())
        if self.ranks.is_first:
            self._keep_lexicon()
        self.tokenizers = _tokenizers(self.recipe, train_source, self.run_dir / TOKENIZER).between(
            corpus.src_lang, corpus.tgt_lang
        )
        _check_pieces(self.tokenizers, taught_by(corpus.augment, corpus.context))
        self.train, report = self._encode(split, train_source)
        if corpus.context.src:
            self.train = self._in_context(self.train)
        self.train_report = with_leaks(report, leakless)
        if self.ranks.is_first:
            _say_unknown(report)
        self.valid, self.valid_report = self._encode("valid", valid)
        return [_prepared_line("train", self.train_report), _prepared_line("valid", self.valid_report)]

    def _in_context(self, train: IdCorpus) -> IdCorpus:
        """The training pairs behind the sentences before them."""
        corpus = self.recipe.corpus
        left_out = (left_out_of(self.run_dir / "prepared") or {}) if corpus.leaks == "drop" else {}
        numbered = enumerate(places(corpus.trained_on, corpus.context.documents))
        where = np.array([place for number, place in numbered if number not in left_out], dtype=np.int64)
        longest = min(corpus.max_tokens, self.recipe.training.batch_tokens - 1)
        in_context = CorpusInContext(train, where[train.lines - 1], corpus.context, self.tokenizers, longest)
        say(f"corpus.context: {100 * in_context.share:.0f} % of the training pairs have a sentence before them")
        return in_context

    def _keep_lexicon(self) -> None:
        """Write the word links by which matches are marked, those of a run whose tokenizer has their pieces too."""
        tokenizer = self.recipe.tokenizer
        if isinstance(self.augment, Annotator) and self.augment.matches is not None:
            self.augment.aligner.save(self.run_dir / LEXICON)
        elif isinstance(tokenizer, ReuseConfig):
            copy_links(Path(tokenizer.run), self.run_dir)

    def _begin_stream(self, source: StreamSource) -> tuple[str, Source]:
        """(name, text) of the oldest block on the disk, or else of the first one of the stream."""
        if self.ranks.world > 1:
            raise Error.UNSUPPORTED(
                "corpus.train.type=stream: a pipe has one reader", "train in one process, or from files"
            )
        self.stream = Stream(source, self.run_dir / "prepared" / "stream")
        number = min(self.stream.numbers(), default=0)
        try:
            block = self.stream.block(number)
        except StreamEnded as error:
            raise Error.EMPTY(f"corpus.train: nothing came through {source.path}") from error
        return f"stream/{self.stream.path(number).stem}", block

    def _encode(self, split: str, source: Source) -> tuple[IdCorpus, PrepareReport]:
        return prepare(
            source,
            self.tokenizers,
            self.run_dir / "prepared" / split,
            normalize=self.recipe.corpus.normalize,
            max_tokens=self.recipe.corpus.max_tokens,
            cut=self.recipe.corpus.longer_pairs == "cut",
            workers=self.recipe.workers or usable_cores(),
            languages=(self.recipe.corpus.src_lang, self.recipe.corpus.tgt_lang),
        )

    def start(self) -> tuple[nn.Module, Task]:
        recipe, tokenizers, training = self.recipe, self.tokenizers, self.recipe.training
        model = build_model(recipe.model, tokenizers)
        sides = {"src": tokenizers.src, "tgt": tokenizers.tgt}
        for side, tokenizer in sides.items():
            if vectors := getattr(recipe.vectors, side):
                load_vectors(model.embeddings()[side], tokenizer, vectors)
        if self.stream is None:
            plan, blocks = self._batch_plan(self.train, self._orders()), None
        else:
            blocks = StreamBlocks(
                self.stream,
                lambda name, text: self._encode(f"stream/{name}", text)[0],
                lambda corpus: self._batch_plan(corpus, None),
            )
            plan = blocks.first().plan
        # The one best that is searched for: what is drawn would make the scores of steps differ by chance.
        beam_size = training.validation_beam_size
        decoding = replace(
            recipe.decoding, beam_size=beam_size, n_best=1, sampling=None, mbr="none", diversity=0.0, diversity_groups=1
        )
        translator = SearchTranslator(
            model,
            tokenizers,
            decoding=decoding,
            normalize=recipe.corpus.normalize,
            max_src_tokens=recipe.corpus.max_tokens,
            device=pick_device(recipe.device),
            languages=(recipe.corpus.src_lang, recipe.corpus.tgt_lang),
        )
        return model, TranslationTask(
            self.train,
            plan,
            self.valid,
            self.valid_pairs,
            tokenizers,
            translator=translator,
            evaluation=recipe.evaluation,
            tgt_lang=recipe.corpus.tgt_lang,
            seed=recipe.seed,
            samples=training.samples,
            r_drop=training.r_drop,
            losses=pick_losses(training.backend),
            teachers=self._teachers(),
            guide=self._guide(),
            augment=self._augment_that_fits(),
            origin=_origin(recipe.corpus.train),
            unit="pair" if isinstance(recipe.corpus.train, MixSource) or recipe.corpus.context.src else "line",
            weights=self._weights(),
            ranks=self.ranks,
            stream=blocks,
        )

    def _weights(self) -> np.ndarray | None:
        """The multiplier of each training pair's loss, by its line; None: 1 for all."""
        corpus: Any = self.recipe.corpus
        if corpus.weights_in == "epoch":
            return None
        weights = np.zeros(int(self.train.lines.max()) + 1, dtype=np.float32)
        for pair, weight in corpus.train.with_weights():
            if pair.line < len(weights):  # those behind it were dropped
                weights[pair.line] = weight
        if not weights[self.train.lines].any():
            raise Error.EMPTY(
                "no pair that is left has a weight above 0", "raise its weights", file=_origin(corpus.train)
            )
        return weights

    def _orders(self) -> Path:
        """The folder for the row orders of the corpus as it is stored now; row orders of other corpora are deleted."""
        everything = self.run_dir / "prepared" / "orders"
        folder = everything / self.train.meta["fingerprint"][:16]
        if self.ranks.is_first and everything.is_dir():
            for other in everything.iterdir():
                if other != folder:
                    atomic_io.remove(other)
        return folder

    def _batch_plan(self, corpus: IdCorpus, folder: Path | None) -> BatchPlan:
        return self.batch_plan(corpus.src_lengths, corpus.tgt_lengths, lines=corpus.lines, folder=folder)

    def identity(self) -> dict[str, str]:
        taught_by = [
            checkpoint.inference_digest(checkpoint.select(check_run_dir(run)))
            for run in self.recipe.distillation.teachers
        ]
        more = {"distillation.teachers": " ".join(taught_by)} if taught_by else {}
        corpus = self.recipe.corpus
        if corpus.leaks == "drop":  # which pairs these are the tests say
            tests = " ".join(map(fingerprint, corpus.test.values()))
            more["corpus.leaks"] = hashlib.sha256(tests.encode()).hexdigest()
        guided = self.recipe.guided_alignment.contents()
        more |= {f"guided_alignment.{setting}": digest for setting, digest in guided.items()}
        if corpus.context.documents:
            more["corpus.context.documents"] = digest([find(corpus.context.documents)])
        return {**super().identity(), **more}

    def _teachers(self) -> Teachers:
        recipe = self.recipe
        runs, device = recipe.distillation.teachers, pick_device(recipe.device)
        precision = pick_precision(recipe.training.precision, device, recipe.model.d_model)
        precision = "float32" if precision == "float16" else precision  # autocast takes its products to float16
        for run in runs:
            require_alike(self.run_dir, Path(run))
            try:
                check_positions(model_settings(Path(run)), recipe.corpus.max_tokens)
            except DragomanError as error:
                raise error.within(f"{run} cannot teach this run: ") from error
        models = [SearchTranslator.load(run, device=recipe.device, precision=precision).model for run in runs]
        return Teachers(models, recipe.distillation.weight)

    @cached_property
    def augment(self) -> Augment:
        """The changes of training pairs; pieces need the links of words, which are learnt first."""
        corpus: Any = self.recipe.corpus
        if not (taught := taught_by(corpus.augment, corpus.context)):
            return corpus.augment
        if taught != ["context"]:
            say("learning the links of words for corpus.augment")
        pairs, normalize = corpus.train.unweighted().pairs(), NORMALIZERS[corpus.normalize]
        texts = ((normalize(pair.src), normalize(pair.tgt)) for pair in pairs)
        return replace(Annotator.of_pairs(corpus.augment, texts, corpus.tgt_lang), context=corpus.context)

    def _augment_that_fits(self) -> Augment:
        """The changes of training pairs, which add nothing that makes a source too long for a batch."""
        if not isinstance(self.augment, Annotator):
            return self.augment
        encode, normalize = self.tokenizers.src.encode, NORMALIZERS[self.recipe.corpus.normalize]
        longest = min(self.recipe.corpus.max_tokens, self.recipe.training.batch_tokens - 1)
        return replace(self.augment, fits=lambda src: len(encode(normalize(src))) <= longest)

    def _guide(self) -> GuidedAlignment:
        recipe, guide, corpus = self.recipe, self.recipe.guided_alignment, self.recipe.corpus
        head = getattr(recipe.model, "alignment_head", None)
        if isinstance(guide, NoGuide) or head is None:
            return GuidedAlignment()
        projector = Projector(self.tokenizers, corpus.normalize, (corpus.src_lang, corpus.tgt_lang))
        source: Any = recipe.corpus.train
        source = source.unweighted()
        if isinstance(self.augment, Annotator):
            source = changed_pairs(source, self.augment.with_tags)
        links = projector.links(self.train, guide, source, self.run_dir / "prepared" / "links.npz")
        return GuidedAlignment(links, guide.weight, head[1])

    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        task, training, report = trainer.task, self.recipe.training, self.train_report
        assert isinstance(task, TranslationTask)
        tokenizers, corpus = self.tokenizers, self.recipe.corpus
        src_size, tgt_size = tokenizers.src.vocab_size, tokenizers.tgt.vocab_size
        vocabulary = f"{src_size:,} joint" if tokenizers.shared else f"{src_size:,} source, {tgt_size:,} target"
        steps_per_epoch = task.plan.steps_per_epoch
        teachers = self.recipe.distillation.teachers
        lines = {
            1: f"{report.pairs_read:,} for training, {self.valid_report.pairs_read:,} for validation",
            2: f"{corpus.normalize}, {self.recipe.tokenizer.type}, vocabulary {vocabulary}",
            3: f"{report.pairs_kept:,} pairs kept, dropped: {dropped_text(report.dropped)}; "
            f"{report.src_tokens:,} source and {report.tgt_tokens:,} target tokens"
            f"{' (stored before)' if report.reused else ''}",
            4: f"{training.batch_tokens:,} tokens x {training.micro_batches}, {steps_per_epoch:,} steps an epoch",
            5: f"{100 * (1 - task.plan.fill):.1f} % of positions are padding",
            6: f"{self.recipe.model.type}, {count_parameters(trainer.model):,} parameters"
            f"{f'; teachers: {len(teachers)}' if teachers else ''}",
            8: f"beam {self.recipe.decoding.beam_size} (validation {training.validation_beam_size})",
            9: f"{self.bleu_title} on {', '.join(corpus.test) or 'the validation set'}",
        }
        return lines, {
            "pairs_read": report.pairs_read,
            "pairs_kept": report.pairs_kept,
            "dropped": report.dropped,
            "origins": origins_of(corpus.train, report.pairs_read),
            "src_vocab_size": src_size,
            "tgt_vocab_size": tgt_size,
            "steps_per_epoch": steps_per_epoch,
            "titles": {"bleu": self.bleu_title},
        }

    def tested(self) -> Iterator[tuple[str, Scores, dict[str, Any], str]]:
        translator = SearchTranslator.load(self.run_dir, device=self.recipe.device)
        for name, pairs in self.tests.items():
            evaluated = evaluate(translator, pairs, self.recipe.evaluation, self.recipe.corpus.tgt_lang)
            scores, samples = evaluated.scores, spread(pairs, evaluated.hypotheses, TEST_SAMPLES)
            figures = f"{scores.titles['bleu']} {scores.bleu:.2f}  chrF {scores.chrf:.2f}  TER {scores.ter:.2f}"
            text = f"{figures}  exact match {scores.exact_match:.2f} %  in {evaluated.decode_s:.1f} s"
            fields = {"decode_s": evaluated.decode_s, "samples": samples}
            yield name, scores, fields, f"{text}\n  {scores.signatures['bleu']}"

    def seconds_after_training(self, took: Estimate, slower: float = 1.0) -> float:
        sentences, recipe = sum(map(len, self.tests.values())), self.recipe
        wider = recipe.decoding.beam_size / recipe.training.validation_beam_size
        each = slower * took.seconds_per_validation * wider / len(self.valid_pairs) + TER_SECONDS
        return super().seconds_after_training(took) + sentences * each

    def score_text(self, score: float) -> str:
        return f"{self.bleu_title} {score:.2f}"

    @cached_property
    def bleu_title(self) -> str:
        """The name of the score, with its tokenizer where that is not the usual one."""
        language = language_or_recognised(self.recipe.corpus.tgt_lang, [pair.tgt for pair in self.valid_pairs])
        return next(each.title for each in self.recipe.evaluation.metrics(language, with_ter=False))

    def quality_warning(self, score: float) -> str:
        if score >= USEFUL_BLEU:
            return ""
        return (
            f"with {self.score_text(score)} this model has not learnt to translate yet: train it longer "
            "(training.max_steps, `budget`), or on more pairs; the report shows how its loss fell"
        )

    def evaluate(self, files: Files, which: str, device: str, **options: Any) -> dict[str, Scores]:
        tests: dict[str, Source] = dict(self.recipe.corpus.test)
        more: dict[str, list[Path]] = options.pop("more_references", {})
        if files:
            tests = {}
            for name, (src, ref) in files.items():
                if ref is None:
                    raise Error.MISSING_OPTION(
                        "`src` needs a `ref`, the reference translation of each line; without one a run that "
                        "`dragoman calibrate` has seen says what it expects",
                        file=src,
                    )
                tests[name] = FilesSource(src=str(src), tgt=str(ref))
        if "min_context" in options:
            raise Error.UNSUPPORTED("`min_context`: of language models, and this run translates")
        scoring: dict[str, Any] = {name: options.pop(name) for name in ("tokenize", "lowercase") if name in options}
        evaluation = config.parse(
            EvaluationConfig, {**config.to_dict(self.recipe.evaluation), **scoring}, "`tokenize` or `lowercase`"
        )
        output = options.pop("output", None)
        evaluation_options: EvaluationOptions = options.pop("evaluation_options", EvaluationOptions())
        evaluation_options = replace(evaluation_options, training=self._training_sources)
        src_lang, tgt_lang = options.get("languages", (None, None))
        languages = src_lang or self.recipe.corpus.src_lang, tgt_lang or self.recipe.corpus.tgt_lang
        texts = {name: list(source.pairs()) for name, source in tests.items()}
        sets = {name: _test_set(name, pairs, more.get(name, []), languages) for name, pairs in texts.items()}
        metrics = {
            name: evaluation_options.build_metrics(
                test.languages[1], tokenize=evaluation.tokenize, lowercase=evaluation.lowercase
            )
            for name, test in sets.items()
        }
        translator = SearchTranslator.load(self.run_dir, which=which, device=device, **options)
        scores = {}
        for (name, pairs), file in zip(texts.items(), atomic_io.file_names(texts), strict=True):
            hypotheses = translate(translator, pairs)
            if output is not None:
                path = Path(output) / f"{file}.{languages[1]}"
                with writing(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    atomic_io.replace_text(path, "".join(line + "\n" for line in hypotheses))
            scores[name] = evaluation_options.evaluate(sets[name], hypotheses, metrics[name])
        return scores

    def _training_sources(self) -> Iterator[str] | None:
        """The source lines that were trained on, the first million at most; None where they are not there any more."""
        source = self.recipe.corpus.trained_on
        if isinstance(source, StreamSource):
            return None
        try:
            if not files_of(source):
                return None
            pairs = source.pairs()
            if self.recipe.corpus.leaks == "drop":
                left_out = left_out_of(self.run_dir / "prepared") or {}
                pairs = (pair for number, pair in enumerate(pairs) if number not in left_out)
            first = next(pairs, None)
        except DragomanError:
            return None
        rest = itertools.islice(pairs, LOOKED_AT_FOR_LEAKS - 1)
        sources = (pair.src for pair in itertools.chain([first] if first is not None else [], rest))
        return map(without_tags, sources) if self.recipe.corpus.augment.tags else sources


def _test_set(name: str, pairs: list[Pair], more: list[Path], languages: tuple[str, str]) -> TestSet:
    """The lines of pairs, with further references from files."""
    references = [list(read_lines(find(path))) for path in more]
    test = TestSet([pair.src for pair in pairs], [[pair.tgt for pair in pairs], *references], languages, name)
    return test.with_languages()


def _say_languages(corpus: CorpusConfig, pairs: list[Pair]) -> None:
    """Say which languages are meant by codes that are none, as far as their text says it."""
    for name, code, texts in (
        ("src_lang", corpus.src_lang, [pair.src for pair in pairs]),
        ("tgt_lang", corpus.tgt_lang, [pair.tgt for pair in pairs]),
    ):
        if not is_known(code) and (language := recognised(texts)):
            what = f"warning: corpus.{name} {code!r} is no language code, and its text is {name_of(language)}"
            say(f"{what}: say {language}, as scores and the joining of sentences depend on it")


def examine(source: Source, src_lang: str, tgt_lang: str, doctor: str) -> None:
    """Have the doctor look at the first pairs of a training corpus: a shift is dear to find out about later.

    Raises DragomanError for what makes it unfit, unless `doctor` is to `warn` only, or the corpus to be skipped.
    """
    if doctor == "skip" or not files_of(source):
        return
    if isinstance(source, ParallelSource):
        for src, tgt in source.every_direction():
            examine(source.of_direction(src, tgt), src, tgt, doctor)
        return
    diagnosis = Examination(source, src_lang, tgt_lang, limit=MAX_EXAMINED_PAIRS).run()
    broken = [finding for finding in diagnosis.findings if finding.severity == "broken"]
    if broken and doctor == "refuse":
        # Where counts differ too, a shift says in which line.
        worst = next((finding for finding in broken if finding.kind == "shift"), broken[0])
        if worst.kind != "shift":
            for _ in source.pairs():  # what no setting lets through is said by the reader that refuses it
                pass
        remedy = f"{worst.advice}; see `dragoman doctor`, or set corpus.doctor=warn"
        raise Error.BAD_CORPUS(worst.described, remedy, file=worst.file, line=worst.line)
    for finding in diagnosis.findings:
        if finding.severity != "note":
            say(f"doctor: {finding.severity}: {finding.summary}, {finding.count:,} of {finding.looked_at:,} pairs")


def _say_unknown(report: PrepareReport) -> None:
    """Warn of a training text that the vocabulary, maybe another's, mostly does not have."""
    sides = {"source": (report.src_unknown, report.src_tokens), "target": (report.tgt_unknown, report.tgt_tokens)}
    for side, (unknown, tokens) in sides.items():
        if unknown > MOSTLY_KNOWN * tokens:
            share = f"warning: {unknown / tokens:.0%} of the {side} tokens of the training text are unknown"
            say(f"{share}: is it cut, and written, as the tokenizer's vocabulary is?")


def _prepared_line(split: str, report: PrepareReport) -> str:
    return (
        f"{split}: {report.pairs_read:,} pairs read, {report.pairs_kept:,} kept, dropped: "
        f"{dropped_text(report.dropped)}; {report.src_tokens:,} + {report.tgt_tokens:,} tokens, "
        f"{report.src_unknown:,} + {report.tgt_unknown:,} of them unknown; "
        f"{'used what was stored' if report.reused else 'stored'} in {report.seconds:.1f} s"
    )


def _tokenizers(recipe: TranslationRecipe, train: PairSource, directory: Path) -> TokenizerPair:
    corpus = recipe.corpus
    made_from = [fingerprint(train), corpus.normalize, config.to_dict(recipe)["tokenizer"]]
    if corpus.augment.is_on:
        made_from.append([config.to_dict(corpus.augment), recipe.seed])
    sides = (lambda: _texts(recipe, train, "src")), (lambda: _texts(recipe, train, "tgt"))
    tokenizer = with_symbols(recipe.tokenizer, pieces_of(corpus.augment, corpus.context))
    return kept_tokenizers(directory, made_from, tokenizer, *sides)


def _check_pieces(tokenizers: TokenizerPair, taught: Sequence[str]) -> None:
    """Raises DragomanError where the vocabulary of another run has no pieces for what is to be learnt."""
    sides = tokenizers.src, tokenizers.tgt
    missing = [name for name in taught if any(side.id_of(piece) == UNK_ID for side in sides for piece in PIECES[name])]
    if missing:
        settings = ", ".join("corpus.context" if name == "context" else f"corpus.augment.{name}" for name in missing)
        more = f" (and {', '.join(missing[1:])})" if missing[1:] else ""
        raise Error.CONFLICT(
            f"{settings}: the vocabulary that this run begins with has no pieces for it",
            f"give it some: `dragoman vocabulary RUN NEW --teach {missing[0]}`{more}, and train from NEW",
        )


def _origin(source: PairSource) -> str:
    names = " and ".join(map(show, files_of(source))) or f"the {source.type} corpus"
    return f"the mixture of {names}" if isinstance(source, MixSource) else names


def _texts(recipe: TranslationRecipe, train: PairSource, side: Literal["src", "tgt"]) -> Iterator[str]:
    """The normalised texts of a side, augmented: a tokenizer learns words in capitals too if a model will see them.

    Raises DragomanError at their end where all were blank, or none was there.
    """
    corpus = recipe.corpus
    normalize, languages = NORMALIZERS[corpus.normalize], (corpus.src_lang, corpus.tgt_lang)
    blank, there_are = True, False
    for number, pair in enumerate(train.pairs()):
        texts = pair.src, pair.tgt
        if corpus.augment.is_on:
            texts = corpus.augment(*texts, random.Random(hash64(f"({recipe.seed}, tokenizer, {number})")), languages)
        text = normalize(texts[0] if side == "src" else texts[1])
        blank, there_are = blank and not text.strip(), True
        yield text
    if not there_are:
        raise Error.EMPTY("no pair is left of it", "raise its weights", file=_origin(train))
    if blank:
        files = [show(path) for path in files_of(train)] or [f"the {train.type} corpus"]
        raise Error.EMPTY(f"every {side} text is blank", file=files[0 if side == "src" else -1])
