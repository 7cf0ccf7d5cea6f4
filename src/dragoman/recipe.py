"""A recipe says everything about a run; `run` carries it out, from raw text to a scored translator.

recipe = load("recipes/multi30k-en-de.yaml", ["training.max_steps=2000"])
run(recipe)
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from dragoman import checkpoint, config
from dragoman.config import Field, settings
from dragoman.data.batch import collate
from dragoman.data.plan import BatchPlan
from dragoman.data.store import IdCorpus, PrepareReport, prepare
from dragoman.decoding.search import DecodingConfig
from dragoman.device import DeviceName, cpu_capabilities, pick_device, pick_precision
from dragoman.errors import DragomanError
from dragoman.evaluation import EvaluationConfig, Scores, evaluate, spread
from dragoman.models import ModelConfig, TransformerConfig
from dragoman.progress import clock, say
from dragoman.report import write_report
from dragoman.tasks.translation import TranslationTask
from dragoman.text.corpus import CorpusConfig, FilesSource, Pair, Source, fingerprint, read_pairs
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers import TokenizerConfig, TokenizerPair, load_tokenizers, save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.training.estimate import estimate
from dragoman.training.loop import Outcome, Trainer, TrainingConfig
from dragoman.training.runlog import RunLog
from dragoman.translator import Translator, build_model, check_run_dir
from dragoman.version import __version__

MAY_CHANGE = ("training.max_steps", "training.validate_every", "training.validation_beam_size", "training.patience",
              "training.keep_", "training.log_every", "training.samples", "decoding", "evaluation", "corpus.test",
              "run_dir", "device", "workers")  # fmt: skip
"""Settings that a run in progress may be given anew; any other difference makes it another run."""

TEST_SAMPLES = 8
"""Sentences of each test set that the log and the report show."""


@settings
class RunConfig:
    """Everything that makes a run. Relative paths are looked up here, under $DRAGOMAN_DATA, and under ./data."""

    run_dir: str
    seed: int = Field(default=1, ge=0, lt=2**63)
    device: DeviceName = "auto"
    workers: int = Field(default=0, ge=0)
    """Processes that encode a large corpus; 0: one for each core."""
    corpus: CorpusConfig
    tokenizer: TokenizerConfig = Field(default_factory=SentencePieceConfig)
    model: ModelConfig = Field(default_factory=TransformerConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)


def load(path: str | Path, overrides: list[str] | None = None) -> RunConfig:
    """A recipe file with dotted overrides. Without `run_dir` the run goes to `runs/NAME-OF-THE-RECIPE`."""
    data = config.override(config.read_yaml(path), overrides or [])
    data.setdefault("run_dir", f"runs/{Path(path).stem}")
    return config.parse(RunConfig, data, source=str(path))


# --- check: everything that needs no data ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """What `check` found: the size of the model at the vocabulary that the recipe asks for."""

    parameters: int
    src_vocab_size: int
    tgt_vocab_size: int


def check(recipe: RunConfig) -> Check:
    """Build everything that the recipe describes but the corpus, and put one made-up batch through a training step.

    Raises DragomanError where parts do not fit each other.
    """
    src_size, tgt_size, shared = _expected_vocabulary(recipe.tokenizer)
    model = recipe.model.build(src_vocab_size=src_size, tgt_vocab_size=tgt_size, shared_vocab=shared, pad_id=0)
    recipe.training.schedule.build(recipe.training.max_steps, recipe.model.d_model).rate(1)
    recipe.training.optimizer.build(model)
    batch = collate([([4, 5, 6], [6, 5]), ([4], [5, 6, 4, 5])])
    model(batch.src, batch.src_mask, batch.tgt_in).sum().backward()
    pick_precision(recipe.training.precision, pick_device(recipe.device), recipe.model.d_model)
    return Check(sum(parameter.numel() for parameter in model.parameters()), src_size, tgt_size)


def _expected_vocabulary(tokenizer: Any) -> tuple[int, int, bool]:
    """(source size, target size, joint?) as the recipe asks; a vocabulary without a limit counts as 1,000."""

    def size(single: Any) -> int:
        return int(getattr(single, "vocab_size", None) or 1000)

    if tokenizer.type == "separate":
        return size(tokenizer.src), size(tokenizer.tgt), False
    return size(tokenizer), size(tokenizer), True


# --- prepare: steps 1 to 3 ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prepared:
    """A corpus as ids, ready to train on."""

    tokenizers: TokenizerPair
    train: IdCorpus
    valid: IdCorpus
    train_report: PrepareReport
    valid_report: PrepareReport


def prepare_run(recipe: RunConfig) -> Prepared:
    """Steps 1 to 3 into the run directory: tokenizers learnt, ids stored; what is there already and fits is used."""
    run_dir = Path(recipe.run_dir)
    _claim(recipe)
    tokenizers = _tokenizers(recipe, run_dir / "tokenizer")
    workers = recipe.workers or os.cpu_count() or 1

    def encode(split: str, source: Source) -> tuple[IdCorpus, PrepareReport]:
        return prepare(
            source,
            tokenizers,
            run_dir / "prepared" / split,
            normalize=recipe.corpus.normalize,
            max_tokens=recipe.corpus.max_tokens,
            workers=workers,
            title=f"encoding {split}",
        )

    train, train_report = encode("train", recipe.corpus.train)
    valid, valid_report = encode("valid", recipe.corpus.valid)
    return Prepared(tokenizers, train, valid, train_report, valid_report)


def _tokenizers(recipe: RunConfig, directory: Path) -> TokenizerPair:
    """Those of the run directory if they were learnt from this corpus with these settings; otherwise learnt now."""
    made_from = json.dumps(
        [fingerprint(recipe.corpus.train), recipe.corpus.normalize, config.to_dict(recipe)["tokenizer"]]
    )
    identity = hashlib.sha256(made_from.encode()).hexdigest()
    marker = directory / "made-from.txt"
    if marker.is_file() and marker.read_text(encoding="utf-8").strip() == identity:
        return load_tokenizers(directory)
    say("learning the tokenizer")
    tokenizers = train_tokenizers(
        recipe.tokenizer, lambda: _texts(recipe.corpus, "src"), lambda: _texts(recipe.corpus, "tgt")
    )
    save_tokenizers(tokenizers, directory)
    marker.write_text(identity + "\n", encoding="utf-8")
    return tokenizers


def _texts(corpus: CorpusConfig, side: Literal["src", "tgt"]) -> Iterator[str]:
    normalize = NORMALIZERS[corpus.normalize]
    return (normalize(pair.src if side == "src" else pair.tgt) for pair in read_pairs(corpus.train))


def _claim(recipe: RunConfig) -> None:
    """Make the run directory with its config.yaml, or see that it is this recipe's.

    Raises DragomanError listing every difference when the directory belongs to a run with other settings.
    """
    run_dir = Path(recipe.run_dir)
    path = run_dir / "config.yaml"
    if path.exists() and checkpoint.steps(run_dir):
        found = config.changes(config.read_yaml(path), config.to_dict(recipe))
        refused = [change for change in found if not change[0].startswith(MAY_CHANGE)]
        if refused:
            listed = "; ".join(f"{key}: {old!r} -> {new!r}" for key, old, new in refused)
            raise DragomanError(
                f"{run_dir}: holds a run with other settings ({listed}): take those, or choose another run_dir=..."
            )
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        path.write_text(config.to_yaml(recipe), encoding="utf-8")
    except OSError as error:
        raise DragomanError(f"{run_dir}: cannot be written: {error.strerror}; choose another run_dir=...") from error


# --- run: the whole way ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    outcome: Outcome
    tests: dict[str, Scores]
    report: Path
    run_dir: Path


def run(recipe: RunConfig) -> Result:
    """Carry out a recipe: prepare, train (from the newest checkpoint, if there is one), score the tests, report."""
    run_dir = Path(recipe.run_dir)
    tests = {name: list(read_pairs(source)) for name, source in recipe.corpus.test.items()}
    valid_pairs = list(read_pairs(recipe.corpus.valid))
    prepared = prepare_run(recipe)
    with RunLog(run_dir) as log:
        trainer = _trainer(recipe, prepared, valid_pairs, log)
        path = checkpoint.newest(run_dir, complain=say)
        if path:
            trainer.resume(path)
        if trainer.step >= recipe.training.max_steps:
            say(
                f"nothing to train: {trainer.step:,} of {recipe.training.max_steps:,} steps are done; "
                "raise training.max_steps to go on"
            )
            outcome = Outcome("done", trainer.step, trainer.best_step, trainer.best_score, trainer.elapsed_before)
        else:
            if path:
                say(f"going on from step {trainer.step:,} ({path})")
            _print_plan(recipe, prepared, trainer, log)
            outcome = trainer.train()
        results = _test(recipe, tests, log, outcome) if outcome.reason != "interrupted" else {}
    return Result(outcome, results, write_report(run_dir), run_dir)


def _trainer(recipe: RunConfig, prepared: Prepared, valid_pairs: list[Pair], log: RunLog) -> Trainer:
    torch.manual_seed(recipe.seed)
    device = pick_device(recipe.device)
    model = build_model(recipe.model, prepared.tokenizers)
    training = recipe.training
    plan = BatchPlan(
        prepared.train.src_lengths,
        prepared.train.tgt_lengths,
        batch_tokens=training.batch_tokens,
        micro_batches=training.micro_batches,
        seed=recipe.seed,
    )
    decoding = replace(recipe.decoding, beam_size=training.validation_beam_size, n_best=1)
    task = TranslationTask(
        prepared.train,
        plan,
        prepared.valid,
        valid_pairs,
        prepared.tokenizers,
        translator=Translator(
            model,
            prepared.tokenizers,
            decoding=decoding,
            normalize=recipe.corpus.normalize,
            max_src_tokens=recipe.corpus.max_tokens,
            device=device,
        ),
        evaluation=recipe.evaluation,
        tgt_lang=recipe.corpus.tgt_lang,
        seed=recipe.seed,
        samples=training.samples,
    )
    return Trainer(
        training,
        model,
        task,
        run_dir=Path(recipe.run_dir),
        log=log,
        device=device,
        precision=pick_precision(training.precision, device, recipe.model.d_model),
        seed=recipe.seed,
        d_model=recipe.model.d_model,
    )


def _print_plan(recipe: RunConfig, prepared: Prepared, trainer: Trainer, log: RunLog) -> None:
    """The nine steps with this run's own numbers, before the first of them that takes long."""
    task, training, report = trainer.task, recipe.training, prepared.train_report
    assert isinstance(task, TranslationTask)
    steps_per_epoch = task.plan.steps_per_epoch()
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    src_size, tgt_size = prepared.tokenizers.src.vocab_size, prepared.tokenizers.tgt.vocab_size
    took = estimate(trainer)
    left = (training.max_steps - trainer.step) * took.seconds_per_step
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items()) or "none"
    vocabulary = f"{src_size:,} joint" if prepared.tokenizers.shared else f"{src_size:,} source, {tgt_size:,} target"
    lines = {
        "1 read pairs": f"{report.pairs_read:,} for training, {prepared.valid_report.pairs_read:,} for validation",
        "2 normalise and tokenize": f"{recipe.corpus.normalize}, {recipe.tokenizer.type}, vocabulary {vocabulary}",
        "3 ids": f"{report.pairs_kept:,} pairs kept, dropped: {dropped}; {report.src_tokens:,} source and "
        f"{report.tgt_tokens:,} target tokens{' (stored before)' if report.reused else ''}",
        "4 batch": f"{training.batch_tokens:,} tokens x {training.micro_batches}, {steps_per_epoch:,} steps an epoch",
        "5 pad, shift, mask": f"{100 * (1 - task.plan.fill):.1f} % of positions are padding",
        "6 model": f"{recipe.model.type}, {parameters:,} parameters",
        "7 train": f"{training.max_steps:,} steps = {training.max_steps / steps_per_epoch:.1f} epochs on "
        f"{trainer.device} in {trainer.precision}; about {clock(left)}, at least {took.peak_bytes / 2**30:.1f} GiB",
        "8 search": f"beam {recipe.decoding.beam_size} (validation {training.validation_beam_size})",
        "9 detokenize and score": f"BLEU on {', '.join(recipe.corpus.test) or 'the validation set'}",
    }
    for title, text in lines.items():
        say(f"{title:<25} {text}")
    log.event(
        "start",
        dragoman=__version__,
        torch=torch.__version__,
        python=platform.python_version(),
        machine=_machine(trainer.device),
        threads=torch.get_num_threads(),
        device=str(trainer.device),
        precision=trainer.precision,
        elapsed_s=trainer.elapsed_before,
    )
    log.event(
        "plan",
        pairs_read=report.pairs_read,
        pairs_kept=report.pairs_kept,
        dropped=report.dropped,
        src_vocab_size=src_size,
        tgt_vocab_size=tgt_size,
        parameters=parameters,
        steps_per_epoch=steps_per_epoch,
        max_steps=training.max_steps,
        estimated_s=left,
        estimated_bytes=took.peak_bytes,
        elapsed_s=trainer.elapsed_before,
    )


def _test(recipe: RunConfig, tests: dict[str, list[Pair]], log: RunLog, outcome: Outcome) -> dict[str, Scores]:
    """Steps 8 and 9 on every test set, with the best checkpoint."""
    if not tests:
        return {}
    translator = Translator.load(recipe.run_dir, device=recipe.device)
    results = {}
    for name, pairs in tests.items():
        found = evaluate(translator, pairs, recipe.evaluation, recipe.corpus.tgt_lang)
        scores = results[name] = found.scores
        log.event(
            "test",
            name=name,
            step=outcome.best_step,
            **scores.to_dict(),
            decode_s=found.decode_s,
            samples=spread(pairs, found.hypotheses, TEST_SAMPLES),
            elapsed_s=outcome.elapsed_s,
        )
        figures = f"BLEU {scores.bleu:.2f}  chrF {scores.chrf:.2f}  TER {scores.ter:.2f}"
        say(f"test {name}: {figures}  in {found.decode_s:.1f} s")
        say(f"  {scores.signatures['bleu']}")
    return results


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cores = os.cpu_count()
    name = cpu_capabilities().get("cpu_name") or platform.processor() or platform.machine()
    return f"{name}, {cores} cores, {platform.system()}"


# --- evaluate: test sets of one's own -------------------------------------------------------------------------------


def evaluate_run(
    run_dir: Path,
    *,
    sources: list[Path],
    references: list[Path],
    names: list[str],
    tokenize: str | None = None,
    which: str = "best",
    device: str = "auto",
    **decoding: Any,
) -> dict[str, Scores]:
    """Scores of a run on pairs of files, or on its recipe's own test sets where none are given.

    Raises DragomanError when the lists do not match or there is nothing to score.
    """
    recipe = config.load(RunConfig, check_run_dir(run_dir) / "config.yaml")
    if len(sources) != len(references):
        raise DragomanError(f"{len(sources)} --src but {len(references)} --ref: give one reference for each source")
    if names and len(names) != len(sources):
        raise DragomanError(f"{len(names)} --name for {len(sources)} --src: give one for each, or none")
    tests: dict[str, Source] = dict(recipe.corpus.test)
    if sources:
        titles = names or [path.name for path in sources]
        named = zip(titles, sources, references, strict=True)
        tests = {title: FilesSource(src=str(src), tgt=str(ref)) for title, src, ref in named}
    if not tests:
        raise DragomanError(f"{run_dir}: its recipe names no test set; give --src and --ref")
    evaluation = recipe.evaluation
    if tokenize is not None:
        evaluation = config.parse(EvaluationConfig, {**config.to_dict(evaluation), "tokenize": tokenize}, "--tokenize")
    texts = {name: list(read_pairs(source)) for name, source in tests.items()}
    translator = Translator.load(run_dir, which=which, device=device, **decoding)
    return {
        name: evaluate(translator, pairs, evaluation, recipe.corpus.tgt_lang).scores for name, pairs in texts.items()
    }
