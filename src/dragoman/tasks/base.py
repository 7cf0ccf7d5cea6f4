"""A recipe carried out, for every kind of task: prepare, train from where the run stands, test, report."""

import shlex
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import nn

from dragoman import config
from dragoman.analysis import step_titles
from dragoman.backends.compile import pick_compilation
from dragoman.backends.threads import other_busy_threads
from dragoman.config import Field, settings
from dragoman.data.batching import BatchPlan
from dragoman.device import DeviceName, pick_device, pick_precision
from dragoman.errors import Error, writing
from dragoman.export.model_card import write_card
from dragoman.models.base import count_parameters
from dragoman.models.stacks import checkpoint_layers, refuse_dropped
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.directory import CONFIG, TOKENIZER, check_run_dir
from dragoman.runs.log import RunLog, SilentLog
from dragoman.runs.loggers import check_installed
from dragoman.runs.new_run import init_run_dir
from dragoman.tasks import adapter
from dragoman.tasks.adapter import LoraConfig
from dragoman.tasks.announcement import announce
from dragoman.tasks.pretrained import RowNames, check_fits, load_pretrained
from dragoman.tasks.timed_recipe import (
    ANNEALED,
    validated_by_the_clock,
    with_batch_of_run,
    with_epochs,
    with_steps,
    with_steps_of_run,
)
from dragoman.text.lines import check_is_file, container
from dragoman.text.plain_sources import PlainSource, TextSource
from dragoman.text.sources.base import files_of
from dragoman.text.tokenizers.pair import ReuseConfig, TokenizerPair, load_tokenizers, pieces_of
from dragoman.training.config import TrainingConfig, check_division
from dragoman.training.distributed import Ranks
from dragoman.training.loop import Outcome, Trainer
from dragoman.training.optim import frozen_parameters
from dragoman.training.preflight import Estimate, fitting_batch_tokens, preflight
from dragoman.training.state import is_out_of_patience
from dragoman.training.step import TrainingStep
from dragoman.training.task import Task
from dragoman.training.time_budget import TIME_BUDGET_FILE, Deadline

REPORT_SECONDS = 1.5
"""A report takes about so long."""

TEST_SAMPLES = 8
"""Examples of each test set that the log and the report show."""


@settings
class RecipeSettings:
    """The settings that every recipe has, whatever its task."""

    task: str  #: The kind of model: what a recipe's other keys may be follows from it.
    run_dir: str  #: Run directory. Default from the command line: runs/ and the recipe's name.
    seed: int = Field(default=1, ge=0, lt=2**63)  #: Seed of initial weights, batches, dropout and subword sampling.
    device: DeviceName = "auto"  #: Where to compute; `auto`: a GPU where there is one.
    init_from: str | None = None
    """A run directory whose best weights to begin with; steps, optimizer and schedule begin anew all the same."""
    adapter: LoraConfig | None = None
    """A LoRA adapter of `init_from` is trained, in the place of all of its weights; null: no adapter."""
    workers: int = Field(default=0, ge=0)  #: Processes that encode a large corpus; 0: one a core. [processes]
    training: TrainingConfig = Field(default_factory=TrainingConfig)


class Scores(Protocol):
    """The scores of a test set."""

    def figures(self) -> dict[str, str]:
        """Columns of a table: the name of each figure, and the figure as it is to be read."""
        ...

    def notes(self) -> list[str]:
        """Lines to read below that table."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """The figures as the log and `--json` have them."""
        return dict(vars(self))


Files = Mapping[str, tuple[Path, Path | None]]
"""(source, reference) files that are scored, by name."""
WriteReport = Callable[[Path], Path]
"""Writes a page about a run directory; its path."""
Watch = Callable[[Trainer], None]
"""Given the trainer of a run that is about to train, to see what it does (`Trainer.stop_when`, `RunLog.listeners`)."""


@dataclass(frozen=True)
class Result:
    """The result of a run: `tests` maps each test set to its scores."""

    outcome: Outcome
    tests: dict[str, Any]
    report: Path | None
    run_dir: Path
    best: str | None
    """The best validation score in words."""
    next_command: str
    """The command to use the run with."""
    quality_warning: str = ""
    """Why a low score says little; "" for other scores."""


def refuse_search(options: Mapping[str, Any], what: str) -> None:
    """Raises DragomanError if an `evaluate` option for the search was given."""
    if options:
        name = min(options)
        special = {
            "changes": "decoding.*",
            "alpha": "`length_penalty`",
            "evaluation_options": "`metric`, `by`, `training_text`, no `checks`",
            "more_references": "several `ref` for one `src`",
        }
        named = special.get(name, f"--{name.replace('_', '-')}")
        raise Error.UNSUPPORTED(f"{named}: {what} is not scored by translating")


def scored_texts(recipe: Any, files: Files, what: str) -> dict[str, PlainSource]:
    """The texts that `evaluate` scores a model of text on: files by name, or else the recipe's own test texts.

    Raises DragomanError for a reference: `what` is scored on text alone.
    """
    for _, ref in files.values():
        if ref is not None:
            raise Error.UNSUPPORTED(f"{what} is scored on `src` alone, without `ref`", file=ref)
    return {name: TextSource(path=str(src)) for name, (src, _) in files.items()} or dict(recipe.corpus.test)


class Job(ABC):
    """A recipe being carried out. One class for each task; `recipe.JOBS` lists them."""

    settings: ClassVar[Any]
    """The settings class of the task's recipes, a `RecipeSettings`."""
    next_command: ClassVar[str]
    """The command to use a run with, `{run}` standing for its directory."""
    metrics: ClassVar[tuple[str, ...]] = ("loss", "perplexity")
    """The figures of its validations, which `training.best_by` may name."""
    inference: ClassVar[Any]
    """The class that its runs are used through; has `load(run, **options)`."""
    matrices: ClassVar[Mapping[str, str]] = {}
    """The parts of the model that have a row for each piece of a vocabulary, and of which side: `src` or `tgt`."""
    tokenizers: TokenizerPair
    """After `prepare`, of a task that reads text."""

    def __init__(self, recipe: Any, ranks: Ranks | None = None) -> None:
        self.recipe = with_batch_of_run(recipe)
        self.run_dir = Path(recipe.run_dir)
        self.ranks = ranks or Ranks()
        """The processes that carry it out together, this one among them."""

    @abstractmethod
    def build_untrained(self) -> nn.Module:
        """Without data: the model at the sizes that the recipe asks for, put through a forward and backward pass."""

    @abstractmethod
    def prepare(self) -> list[str]:
        """Steps 1 to 3 into the run directory, what is there and fits being used; says in a line each what came out."""

    @abstractmethod
    def start(self) -> tuple[nn.Module, Task]:
        """After `prepare`: the model, freshly initialised, and the task to train it on."""

    def row_names(self, run: str) -> Mapping[str, RowNames]:
        """The tokens (and labels) that the rows of matrices stand for, here and in another run."""
        if not self.matrices:
            return {}
        own, theirs = self.tokenizers, load_tokenizers(check_run_dir(run) / TOKENIZER)
        return {
            part: (pieces_of(getattr(own, side)), pieces_of(getattr(theirs, side)))
            for part, side in self.matrices.items()
        }

    @abstractmethod
    def plan(self, trainer: Trainer) -> tuple[dict[int, str], dict[str, Any]]:
        """(a line on each of the nine steps, by its number; the task's own fields of the log's `plan` event)."""

    @abstractmethod
    def tested(self) -> Iterator[tuple[str, Any, dict[str, Any], str]]:
        """Steps 8 and 9 for each test set, with the best checkpoint: (its name, its scores, further fields of the log,
        the scores as people read them)."""

    def test(self, log: RunLog, outcome: Outcome) -> dict[str, Any]:
        """Score the recipe's test sets and log them."""
        results = {}
        for name, scores, fields, text in self.tested() if self.recipe.corpus.test else ():
            step, elapsed_s = outcome.best_step, outcome.elapsed_s
            log.event("test", name=name, step=step, **scores.to_dict(), **fields, elapsed_s=elapsed_s)
            say(f"test {name}: {text}")
            results[name] = scores
        return results

    @abstractmethod
    def score_text(self, score: float) -> str:
        """A validation's score as people read it, with its name."""

    def quality_warning(self, score: float) -> str:
        """A warning for a run whose best validation is so bad that it has learnt nothing of use."""
        return ""

    @abstractmethod
    def evaluate(self, files: Files, which: str, device: str, **options: Any) -> Mapping[str, "Scores"]:
        """Scores of checkpoint `which` on (source, reference) files by name, or else on the recipe's test sets.

        `options` are the task's own (how to search, how to score). Raises DragomanError for those it does not have.
        """

    def batch_plan(self, src_lengths: Any, tgt_lengths: Any, **options: Any) -> BatchPlan:
        """The batches of rows of these lengths, as the recipe asks for them."""
        training = self.recipe.training
        sizes = {"batch_tokens": training.batch_tokens, "micro_batches": training.micro_batches}
        plan = BatchPlan(src_lengths, tgt_lengths, **sizes, seed=self.recipe.seed, **options)
        return plan if training.batch_sentences is None else plan.with_sentences(training.batch_sentences)

    def check(self, *, with_others: bool = False) -> int:
        """Build everything that the recipe describes but its data; the number of parameters.

        Raises DragomanError where parts do not fit each other, or need what this machine does not have; `with_others`
        also where the other runs that it takes something from are not there, or the model of `init_from` is another
        one. The optimizer is left out: its settings are checked as they are read, and the first one built costs
        PyTorch a second.
        """
        for run in self.referenced_runs() if with_others else ():
            check_run_dir(run)
        model, training = self.build_untrained(), self.recipe.training
        frozen_parameters(model, training.freeze)
        check_installed(training.loggers)
        for name in training.best_by:
            if name not in self.metrics:
                raise Error.WRONG_SETTING(f"training.best_by: {name} is not measured here", ", ".join(self.metrics))
        if with_others and self.recipe.init_from:
            check_fits(model, self.recipe.init_from)
        if self.recipe.adapter is not None:
            adapter.refuse(self.recipe)
            adapter.add_adapter(model, self.recipe.adapter)
        if training.reduce == "fast":
            refuse_dropped(model)
        if training.gradient_checkpointing:
            checkpoint_layers(model)
        training.schedule.build(training.max_steps, self.recipe.model.d_model).rate(1)
        device = pick_device(self.recipe.device)
        pick_precision(training.precision, device, self.recipe.model.d_model)
        pick_compilation(training.compile, device)
        return count_parameters(model)

    def check_start(self) -> int:
        """As `check`, with all that the recipe names: files and runs are to be there; the number of parameters."""
        if checkpoint.is_mean(self.run_dir):
            raise Error.UNSUPPORTED(
                "holds the mean of several runs, which cannot be trained further: begin another run with it, "
                "`init_from` "
                f"{self.run_dir}",
                file=self.run_dir,
            )
        # a run that goes on has taken from others what it had to
        parameters = self.check(with_others=not checkpoint.list_checkpoints(self.run_dir))
        self.check_files()
        return parameters

    def sources(self) -> list[Any]:
        """The sources of the corpus, without sources that are made of other files."""
        corpus = self.recipe.corpus
        return [corpus.train, corpus.valid, *corpus.test.values()]

    def check_files(self) -> None:
        """Raises DragomanError for a missing file."""
        for path in (path for source in self.sources() for path in files_of(source)):
            check_is_file(container(path))

    def referenced_runs(self) -> list[str]:
        """The run directories that the recipe takes something from before it trains."""
        tokenizer = getattr(self.recipe, "tokenizer", None)
        runs = [self.recipe.init_from, tokenizer.run if isinstance(tokenizer, ReuseConfig) else None]
        return [run for run in runs if run]

    def run(
        self,
        seconds_left: float | None = None,
        report: WriteReport | None = None,
        watch: Watch | None = None,
    ) -> Result:
        """Prepare, train (from the newest checkpoint, if there is one), score the tests, and write a report.

        `seconds_left`: let the run take so long, whatever `training.max_steps` says. A run that goes on keeps what was
        planned when it began; its rest takes what training has left of the time.
        """
        ranks = self.ranks
        check_division(self.recipe.training, ranks.world)
        deadline = None if seconds_left is None else time.monotonic() + seconds_left
        if seconds_left is not None:
            self.recipe = validated_by_the_clock(self.recipe, seconds_left)
            if checkpoint.list_checkpoints(self.run_dir):
                self.recipe = with_steps_of_run(self.recipe)
        path = self._prepared()
        with RunLog(self.run_dir, self.recipe.training.loggers) if ranks.is_first else SilentLog() as log:
            trainer, outcome = self._trained(log, path, deadline, watch)
            tests = {} if trainer.stop_agreed else ranks.on_rank_zero(lambda: self.test(log, outcome)) or {}
            if trainer.stop_agreed and outcome.reason != "interrupted" and self.recipe.corpus.test:
                say("stopped before the test sets were scored; the same command scores them")
        best = None if outcome.best_score is None else self.score_text(outcome.best_score)
        written = None if report is None else ranks.on_rank_zero(lambda: report(self.run_dir))
        ranks.on_rank_zero(lambda: write_card(self.run_dir))
        next_command = self.next_command.format(run=shlex.quote(str(self.run_dir)))
        quality_warning = "" if outcome.best_score is None else self.quality_warning(outcome.best_score)
        return Result(outcome, tests, written, self.run_dir, best, next_command, quality_warning)

    def _prepared(self) -> Path | None:
        """Prepare, all ranks together; the checkpoint to go on from."""
        if checkpoint.list_checkpoints(self.run_dir):
            say(f"{self.run_dir}: this run has begun already; comparing its corpus and settings with these")
        self.ranks.on_rank_zero(self.check_start)  # what cannot be built is refused before anything is written
        self.ranks.on_rank_zero(self.prepare)
        if self.ranks.world > 1:
            self._join()
        newest = self.ranks.broadcast(self._newest)
        return Path(newest) if newest else None

    def _trained(
        self, log: RunLog, path: Path | None, deadline: float | None, watch: Watch | None = None
    ) -> tuple[Trainer, Outcome]:
        """Train from a checkpoint, or from the beginning."""
        ranks = self.ranks
        step = self.training_step(fresh=path is None)
        trainer = self.trainer(step, log)
        if path and self._is_done(path, trainer.time_budget.end):
            return trainer, self._end_again(trainer, path)
        if path is None and self.recipe.training.workspace is not None:
            tokens = ranks.broadcast(lambda: fitting_batch_tokens(trainer))
            self._change(replace(self.recipe, training=replace(self.recipe.training, batch_tokens=tokens)))
            del step, trainer  # their memory is free before others take it
            step = self.training_step()
            trainer = self.trainer(step, log)
        say("trying the largest batch, some steps, a validation and a checkpoint")
        busy = other_busy_threads()
        took = preflight(trainer)  # before anything is loaded, as its trial leaves the optimizer empty
        training_deadline = None
        if deadline is not None:
            after = partial(self.seconds_after_training, took)
            training_deadline = Deadline(deadline, took.seconds_per_step, took.seconds_per_validation, after)
        if path:
            trainer = self.trainer(step, log, training_deadline)
            trainer.resume(path)
            if training_deadline is not None:  # of which earlier starts have taken their part
                training_deadline.time -= trainer.elapsed_before
            log.forget("test")  # of a run that had been done
            say(f"going on from step {trainer.step:,} ({path})")
        else:
            log.rewind(0)  # of a run that ended before its first checkpoint
            ranks.on_rank_zero(lambda: (self.run_dir / TIME_BUDGET_FILE).unlink(missing_ok=True))
            log.forget("test")
            if deadline is not None:
                self._plan_steps(took, deadline - time.monotonic())
            trainer = self.trainer(step, log, training_deadline)
        if ranks.is_first:
            lines, fields = self.plan(trainer)
            lines = {6: f"{self.recipe.model.type}, {count_parameters(trainer.model):,} parameters", **lines}
            announce(step_titles(self.recipe.task), lines, fields, trainer, took, busy)
        ranks.watch(took.seconds_per_step)
        if watch is not None and ranks.is_first:
            watch(trainer)
        return trainer, trainer.train()

    def _join(self) -> None:
        """Take what rank 0 has prepared, on all other ranks, and see that all of them have the same."""
        mark = self.run_dir / ".shared"

        def marked() -> str:
            name = uuid.uuid4().hex
            atomic_io.replace_text(mark, name)
            return name

        name = self.ranks.broadcast(marked)
        shared = mark.exists() and mark.read_text(encoding="utf-8") == name
        self.ranks.require_alike("there" if shared else "not there", "run directory (all need one on a shared disk)")
        self.ranks.on_rank_zero(mark.unlink)
        # Before the others prepare: of another corpus they would make something else, in the place of what is there.
        texts = [f"{name}: {digest}" for name, digest in self.identity().items()]
        self.ranks.require_alike("\n".join([*texts, f"PyTorch: {torch.__version__}"]), "corpus or program")
        if not self.ranks.is_first:
            self.prepare()

    def _newest(self) -> str:
        """The checkpoint to go on from, nothing where there is none."""
        path = checkpoint.newest(self.run_dir, complain=say)
        if path is None and checkpoint.list_checkpoints(self.run_dir):
            # to begin anew would overwrite what may be mended
            raise checkpoint.none_verifies(self.run_dir)
        return str(path or "")

    def _is_done(self, path: Path, end: int) -> bool:
        """True if a run of `end` steps that stands at this checkpoint has nothing left to train."""
        state = checkpoint.load_state(path)
        return bool(is_out_of_patience(state, self.recipe.training) or state["step"] >= end)

    def _end_again(self, trainer: Trainer, path: Path) -> Outcome:
        """Do for a run that is done what an interruption kept it from: drop checkpoints, log, score the tests."""
        trainer.resume(path)
        training = self.recipe.training
        self.ranks.on_rank_zero(lambda: checkpoint.prune(self.run_dir, training.keep_last, training.keep_best))
        trainer.log.forget("test")
        remedy = "training.max_steps" if trainer.why_done == "max_steps" else "training.patience"
        why = "" if trainer.why_done == "max_steps" else " and patience is at its end"
        say(
            f"nothing to train: {trainer.step:,} of {trainer.time_budget.end:,} steps are done{why}; raise {remedy} "
            f"to go on, or begin another run with this one's weights (init_from={self.run_dir} run_dir=...)"
        )
        return trainer.end()

    def identity(self) -> dict[str, str]:
        """SHA-256 of what the run is trained on, by the setting that names it (`corpus.train.src`).

        A job that trains on more files than its corpus adds them.
        """
        corpus = self.recipe.corpus
        base = {}
        if self.recipe.adapter is not None:  # told by its weights, so that it may be moved
            names = ("init_from", *(["tokenizer.run"] if self.referenced_runs() == [self.recipe.init_from] * 2 else []))
            base = dict.fromkeys(names, checkpoint.inference_digest(self._base()))
        return base | {
            f"corpus.{split}.{setting}": digest
            for split in ("train", "valid")
            for setting, digest in getattr(corpus, split).contents().items()
        }

    def _base(self) -> Path:
        """The checkpoint that this run is an adapter of: that which its own checkpoints name, or else the best."""
        path = checkpoint.newest(self.run_dir)
        if path is not None and checkpoint.adapter_of(path):
            return checkpoint.base_of(path, self.recipe.init_from)
        return checkpoint.select(check_run_dir(self.recipe.init_from))

    def init_run_dir(self) -> None:
        """Make the run directory, or see that it is this recipe's (`init_run_dir`)."""
        if self.ranks.is_first:
            init_run_dir(self.run_dir, self.recipe, self.identity())

    def training_step(self, *, fresh: bool = True) -> TrainingStep:
        """After `prepare`: the steps of the model on the task; with `fresh` from the weights of `init_from`, if any.

        An adapter has them beneath it always, as its checkpoints are without them.
        """
        recipe = self.recipe
        torch.manual_seed(recipe.seed)
        device = pick_device(recipe.device)
        model, task = self.start()
        if recipe.training.max_epochs is not None:
            self.recipe = recipe = with_epochs(recipe, cast(Any, task).plan.steps_per_epoch)
        if recipe.adapter is not None:
            rows = self.row_names(recipe.init_from)
            say(adapter.adapt(model.to(device), recipe.adapter, self._base(), rows))
        elif recipe.init_from and fresh:
            for line in load_pretrained(model, recipe.init_from, self.row_names(recipe.init_from)):
                say(line)
        precision = pick_precision(recipe.training.precision, device, recipe.model.d_model)
        return TrainingStep(
            recipe.training, model, task, device=device, precision=precision, seed=recipe.seed, ranks=self.ranks
        )

    def trainer(self, training_step: TrainingStep, log: RunLog, deadline: Deadline | None = None) -> Trainer:
        """The training of the recipe in its present form."""
        recipe, sizes = self.recipe, {"d_model": self.recipe.model.d_model, "deadline": deadline}
        facts = {} if recipe.adapter is None else adapter.facts(recipe.adapter, self._base())
        return Trainer(recipe.training, training_step, run_dir=self.run_dir, log=log, facts=facts, **sizes)

    def _plan_steps(self, took: Estimate, seconds: float) -> None:
        """Plan for the steps that take so long; the clock may move the end (`training/time_budget.py`)."""
        training = self.recipe.training
        steps = self.ranks.broadcast(
            lambda: took.steps_within(seconds - self.seconds_after_training(took), training.validate_every)
        )
        if not steps:
            raise Error.OUT_OF_RANGE(
                "the time is used up before training begins (what was prepared is kept, so the same command gets "
                "further)",
                "give a longer `budget`",
            )
        self._change(with_steps(self.recipe, steps))
        if training.schedule.type not in ANNEALED:
            say(
                f"training.schedule.type={training.schedule.type} does not fall to 0 at the end, as linear or cosine do"
            )

    def _change(self, recipe: Any) -> None:
        """Go on by another recipe, which the run directory keeps."""
        self.recipe = recipe
        if self.ranks.is_first:
            with writing(self.run_dir):
                atomic_io.replace_text(self.run_dir / CONFIG, config.to_yaml(recipe))

    def seconds_after_training(self, took: Estimate, slower: float = 1.0) -> float:
        """Seconds for the test sets and the report, if validations take so many times longer than was estimated."""
        return REPORT_SECONDS


def dropped_text(dropped: Mapping[str, int]) -> str:
    """`3 blank source, 2 longer than 256 tokens`, or `none`."""
    return ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "none"
