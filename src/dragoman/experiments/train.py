"""Training as people ask for it, by the command or from Python: a recipe or bare text in, a run directory out."""

import contextlib
import functools
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.config import settings
from dragoman.device import pick_device
from dragoman.errors import Error
from dragoman.experiments.callbacks import checked
from dragoman.experiments.evaluate import evaluate
from dragoman.experiments.speed import measured_speed
from dragoman.languages.identification import COMMON_LANGUAGE_SAMPLE, recognised
from dragoman.pipeline.translator import Translator
from dragoman.progress import clock, say, seconds_of
from dragoman.runs.events import METRICS, Event, read_events
from dragoman.runs.lock import locked
from dragoman.tasks import recipes
from dragoman.tasks.auto_recipe import (
    check_changes,
    collected,
    company_recipe,
    default_recipe,
    recipe_for_collection,
    with_room,
)
from dragoman.tasks.base import Result
from dragoman.tasks.fine_tuning import ReplayData, fine_tuning_recipe, kept_from, replay_data, report_forgetting
from dragoman.tasks.kept_corpus import kept
from dragoman.tasks.recipes import Recipe, TranslationRecipe
from dragoman.tasks.sizes import Budget
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import language_of_file
from dragoman.text.sources.records import Corpus
from dragoman.training.distributed import joined
from dragoman.training.loop import Trainer


@settings
class Options:
    """The corpus of a training without a recipe, two files or a folder, and the options that belong to it."""

    src: Path | None = None  #: Source side.
    tgt: Path | None = None  #: Target side: line n translates line n of the source.
    valid_src: Path | None = None  #: Source of a validation set; null: 2 % are held out.
    valid_tgt: Path | None = None  #: Its target.
    files: list[str] | None = None  #: Folders, files or patterns, in the place of `src` and `tgt`.
    src_lang: str = ""  #: Code of the source language.
    tgt_lang: str = ""  #: Code of the target language.
    columns: tuple[str, ...] | None = None  #: With `files` or a corpus: the columns of tables.
    init_from: Path | None = None  #: The run whose weights to begin with.
    mix: bool | None = None  #: With two files: mix in text that the other run was trained on.
    general_src: Path | None = None  #: The text to mix in.
    general_tgt: Path | None = None  #: Its target side.
    freeze: list[str] | None = None  #: Parts whose weights stay (`training.freeze`).
    lora: int | None = None  #: Rank of an adapter to train in the place of all weights (`adapter.r`).

    @property
    def languages(self) -> tuple[str, str]:
        return self.src_lang, self.tgt_lang

    def given(self, recipe: Any) -> dict[str, Any]:
        """Plain settings of the recipe for `files`, with what is said of them; none without. What another run has
        learnt is its own choice."""
        if not self.files:
            return {}
        given = company_recipe(recipe, self.files, self.languages, self.columns)
        return {"corpus": {**given["corpus"], "augment": {}}} if self.init_from else given

    def made_of(self, corpus: Mapping[str, Any]) -> "Options":
        """The options for the two files of a corpus that was made."""
        made: dict[str, Any] = {}
        for prefix, name in (("", "train"), ("valid_", "valid")):
            made |= {f"{prefix}{side}": Path(corpus[name][side]) for side in ("src", "tgt")}
        return replace(self, **made)

    def check(self, recipe: Any, corpus: Any = None) -> None:
        """Raises DragomanError for options that do not go together."""
        if corpus is not None and any((self.src, self.tgt, self.valid_src, self.valid_tgt, self.files)):
            raise Error.CONFLICT("`corpus` is a corpus by itself", "leave out `src`, `tgt`, `files`")
        if (self.mix is not None or self.general_src or self.general_tgt) and (
            recipe is not None or not self.init_from
        ):
            raise Error.CONFLICT(
                "`mix` and `general_src` go with `init_from`, `src` and `tgt`; a recipe names its own mixture"
            )
        if self.general_tgt and not self.general_src:
            raise Error.MISSING_OPTION("`general_tgt` needs `general_src`, the text that it translates")
        if self.files:
            if any((self.src, self.tgt, self.valid_src, self.valid_tgt, recipe and self.init_from)):
                hint = "leave out the recipe" if recipe and self.init_from else "leave out `src`, `tgt`"
                raise Error.CONFLICT("`files` is a corpus by itself", hint)
            if not all(self.languages):
                hint = "such as `src_lang` en `tgt_lang` fr"
                raise Error.MISSING_OPTION("`files` needs `src_lang` and `tgt_lang`", hint)
        elif corpus is None and (self.columns or any(self.languages)):
            raise Error.MISSING_OPTION("`src_lang`, `tgt_lang` and `columns` go with `files`")
        if recipe is not None and any((self.src, self.tgt, self.valid_src, self.valid_tgt)):
            raise Error.MISSING_OPTION(
                "give a recipe, or `src` and `tgt`; a recipe names its own corpora (corpus.train.src=...)"
            )


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything that a training is asked for."""

    recipe: Recipe | None
    changes: list[str]
    corpus: Corpus | None
    seconds: float | None
    options: Options

    def settings(self, owned: contextlib.ExitStack) -> tuple[Any, ReplayData | None]:
        """The settings, and for fine-tuning on two files the general text. `owned` keeps the run's folder."""
        options = self.options
        if self.recipe is not None and not options.files:
            if self.corpus is None:
                return recipes.load(self.recipe, self.changes), None
            return self._of_recipe_and_corpus(self.recipe, self.corpus, owned), None
        if not options.files and self.corpus is None and (options.src is None or options.tgt is None):
            raise Error.MISSING_OPTION("nothing to train on", "give a recipe, `files`, or both `src` and `tgt`")
        languages = options.languages
        if not options.files and self.corpus is None:
            languages = _languages(str(options.src), str(options.tgt))
        given = options.given(self.recipe)
        plain = {"corpus": {}, "device": "auto", "init_from": None, "adapter": None, **given}
        plain = config.override(plain, self.changes)
        directory = Path(str(plain.get("run_dir") or Path("runs") / "-".join(filter(None, languages))))
        if directory == Path("runs"):
            raise Error.MISSING_OPTION(
                "no `run_dir`, and no languages to name one after", "give one, such as runs/mine"
            )
        check_changes(self.changes, str(directory), plain["init_from"], given)
        owned.enter_context(locked(directory))  # pairs are held out in there before the run begins
        sizing: dict[str, Any] = {"on_gpu": pick_device(str(plain["device"])).type == "cuda"}
        if self.seconds is not None and not plain["init_from"]:
            measured = functools.partial(measured_speed, str(plain["device"]), self.seconds)
            sizing["budget"] = Budget(self.seconds, measured)
        if options.files and not options.init_from:
            data = recipe_for_collection(given, str(directory), self.changes, **sizing)
            data = with_room(config.override(data, self.changes, TranslationRecipe), self.changes)
            return recipes.parsed(data, "settings for a folder of files"), None
        made: dict[str, Any] = {"test": {}}
        if self.corpus is not None:
            made = kept(self.corpus, "translation", languages, directory)
            options, languages = options.made_of(made), _languages_of(made, languages)
        elif options.files:
            theirs = kept_from(str(options.init_from))
            made = collected({"corpus": {**given["corpus"], **theirs}}, str(directory), self.changes)
            options = options.made_of(made)
        return self._of_two_files(options, made, plain, languages, sizing)

    def _of_recipe_and_corpus(self, recipe: Recipe, corpus: Corpus, owned: contextlib.ExitStack) -> Any:
        """The settings of a recipe with a corpus of Python objects in the place of its own."""
        data, source = recipes.read(recipe)
        data = config.override(data, self.changes)
        if not data.get("run_dir"):
            raise Error.MISSING_OPTION("no `run_dir`", "name the folder of the run, such as runs/mine", file=source)
        there = data["corpus"] if isinstance(data.get("corpus"), dict) else {}
        options, task = self.options, str(data.get("task", "translation"))
        src_lang, tgt_lang = (
            str(given or there.get(name) or "")
            for given, name in zip(options.languages, ("src_lang", "tgt_lang"), strict=True)
        )
        owned.enter_context(locked(Path(str(data["run_dir"]))))
        made = kept(corpus, task, (src_lang, tgt_lang), Path(str(data["run_dir"])))
        if task == "translation":
            src_lang, tgt_lang = _languages_of(made, (src_lang, tgt_lang))
            made |= {"src_lang": src_lang, "tgt_lang": tgt_lang}
        tests = made.pop("test") or there.get("test") or {}
        return recipes.parsed({**data, "corpus": {**there, **made, "test": tests}}, source)

    def _of_two_files(
        self,
        options: Options,
        made: Mapping[str, Any],
        plain: Mapping[str, Any],
        languages: tuple[str, str],
        sizing: Mapping[str, Any],
    ) -> tuple[Any, ReplayData | None]:
        """The settings for two files, those of `plain` among them, and the general text."""
        changes = [change for change in self.changes if not (options.files and change.startswith("corpus.files."))]
        directory = Path(str(plain.get("run_dir") or Path("runs") / "-".join(languages)))
        general = None
        if options.init_from is not None:
            general = replay_data(options.init_from, options.general_src, options.general_tgt, options.mix, directory)
        if (options.valid_src is None) != (options.valid_tgt is None):
            raise Error.MISSING_OPTION("give both `valid_src` and `valid_tgt`, or neither")
        corpus, general_source = plain["corpus"], None if general is None else general.train
        base, adapter = str(plain["init_from"]), plain["adapter"]
        go_on = functools.partial(fine_tuning_recipe, base, general=general_source, adapter=adapter)
        make = go_on if plain["init_from"] else default_recipe
        valid = (str(options.valid_src), str(options.valid_tgt)) if options.valid_src and options.valid_tgt else None
        doctor = made.get("doctor") or (corpus.get("doctor", "refuse") if isinstance(corpus, dict) else "refuse")
        data = make(
            str(options.src),
            str(options.tgt),
            str(directory),
            valid=valid,
            languages=languages,
            doctor=doctor,
            **sizing,
        )
        data["corpus"]["test"] = made["test"]
        data = with_room(config.override(data, changes, TranslationRecipe), changes)
        return config.parse(TranslationRecipe, data, "settings for two files"), general


def _languages(src: str, tgt: str) -> tuple[str, str]:
    """The languages of two files by their names, or by their text; `src` and `tgt` where neither says it."""
    codes = language_of_file(src), language_of_file(tgt)
    if all(codes):
        return codes
    pairs = list(itertools.islice(FilesSource(src=src, tgt=tgt).pairs(), COMMON_LANGUAGE_SAMPLE))
    texts = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    src_lang, tgt_lang = (code or recognised(lines) for code, lines in zip(codes, texts, strict=True))
    return src_lang or "src", tgt_lang or "tgt"


def _languages_of(made: Mapping[str, Any], codes: tuple[str, str]) -> tuple[str, str]:
    """The languages of a corpus that was kept: the codes that were given, or else by its text."""
    train = made["train"]
    if all(codes) or train["type"] != "files":
        return codes[0] or "src", codes[1] or "tgt"
    by_text = _languages(train["src"], train["tgt"])
    return codes[0] or by_text[0], codes[1] or by_text[1]


class Training:
    """A training that `dragoman.train` carries out: what callbacks are given, and what it returns.

    training = dragoman.train("demo", {"training.max_steps": 400})
    training.step, training.reason, training.metrics, training.history, training.scores
    training.resume({"training.max_steps": 800})        # go on where it stands, to the bytes of one that never stopped
    training.load().translate(["ein hund"]), training.evaluate([("ein hund", "a dog")])
    """

    def __init__(self, request: Request, callbacks: Any = ()) -> None:
        self.request = request
        self.metrics: dict[str, Any] = {}
        """The figures of the last step (`loss`, `grad_norm`, `lr`) or validation (`score`, `loss`, `bleu` ...)."""
        self.result: Result | None = None
        """After the end."""
        self.recipe: Any = None
        """The settings, once they are known."""
        self._callbacks = checked(callbacks)
        self._trainer: Trainer | None = None
        self._stopped = False

    @property
    def step(self) -> int:
        """Number of steps that are done, including the steps before a resume."""
        return 0 if self._trainer is None else self._trainer.step

    @property
    def run_dir(self) -> Path:
        """The run directory, once the settings are known."""
        return Path(self.recipe.run_dir)

    @property
    def reason(self) -> str | None:
        """Why it ended: `max_steps`, `patience`, `stream`, or `interrupted` (stopped and saved); None before."""
        return None if self.result is None else self.result.outcome.reason

    @property
    def scores(self) -> dict[str, Any]:
        """Scores of the test sets by name, after the end."""
        return {} if self.result is None else self.result.tests

    @property
    def history(self) -> list[Event]:
        """Each validation of the run so far, also of earlier calls, in order of steps."""
        return [event for event in read_events(self.run_dir / METRICS) if event["event"] == "valid"]

    def stop(self) -> None:
        """Save and end after the step (or validation) under way; from a callback or any thread."""
        self._stopped = True
        if self._trainer is not None:
            self._trainer.stop_requested = True

    def resume(self, overrides: Any = None) -> "Training":
        """Go on from the newest checkpoint, with other settings where they may change (`training.max_steps`)."""
        own = replace(self.request, recipe=self.run_dir, corpus=None, changes=[], options=Options())
        self.request = replace(own, changes=config.as_overrides(overrides))
        return self.run()

    def load(self, **options: Any) -> Any:
        """Load what was trained, its best checkpoint: as `dragoman.load`, `load_classifier`, `load_language_model`."""
        inference = recipes.JOBS[self.recipe.task].inference
        return (Translator if self.recipe.task == "translation" else inference).load(self.run_dir, **options)

    def evaluate(self, corpus: Any = None, **options: Any) -> Mapping[str, Any]:
        """Scores of its best checkpoint, as `dragoman.evaluate`."""
        return evaluate(self.run_dir, corpus, **options)

    def run(self) -> "Training":
        """Train, and say what came out. What is made of a corpus is made by the first process, for all."""
        started = time.monotonic()
        self.result, self._stopped = None, False
        with joined() as ranks, contextlib.ExitStack() as owned:
            settings, general = ranks.on_rank_zero(lambda: self.request.settings(owned)) or (None, None)
            data = ranks.broadcast(lambda: config.to_dict(settings))
            self.recipe = settings or recipes.parsed(data, "recipe")
            seconds = self.request.seconds
            left = None if seconds is None else seconds - (time.monotonic() - started)
            from dragoman.analysis.report import write_report  # it draws: matplotlib loads in a second

            self.result = recipes.run(self.recipe, left, ranks, report=write_report, watch=self._watch)
        if ranks.is_first:
            self._report(general)
            self._call("on_end")
        return self

    def _watch(self, trainer: Trainer) -> None:
        self._trainer, trainer.stop_requested = trainer, self._stopped
        trainer.stop_when = self._after_step
        trainer.log.listeners.append(self._logged)
        self._call("on_begin")

    def _call(self, moment: str) -> None:
        for callback in self._callbacks[moment]:
            callback(self)

    def _after_step(self, step: int) -> bool:
        trainer = self._trainer
        assert trainer is not None
        losses, norm = trainer.state.window.losses, trainer.state.window.norm
        self.metrics = {"loss": losses[-1] if losses else None, "grad_norm": norm, "lr": trainer.rate(step)}
        self._call("on_step")
        return self._stopped

    def _logged(self, kind: str, record: Event) -> None:
        if kind == "valid":
            place = ("event", "time", "step", "epoch", "elapsed_s", "rank", "samples")
            self.metrics = {name: value for name, value in record.items() if name not in place}
            self._call("on_validation")

    def _report(self, general: ReplayData | None) -> None:
        assert self.result is not None
        result, outcome = self.result, self.result.outcome
        is_done = outcome.reason != "interrupted"
        if not is_done:
            say(f"stopped and saved at step {outcome.step:,}; the same command goes on from there")
        best = f"best validation {result.best} at step {outcome.best_step:,}; " if result.best else ""
        say(f"{best}trained in {clock(outcome.elapsed_s)}")
        if general is not None and is_done:
            report_forgetting(self.recipe, general)
        say(f"run {result.run_dir}, report {result.report}")
        say(result.quality_warning or result.next_command)

    def __repr__(self) -> str:
        best = f", best validation {self.result.best}" if self.result and self.result.best else ""
        where = "" if self.recipe is None else f" {self.run_dir}"
        return f"<Training{where}: step {self.step:,}, {self.reason or 'not ended'}{best}>"


def train(
    recipe: Recipe | None = None,
    overrides: Any = None,
    *,
    corpus: Any = None,
    callbacks: Any = (),
    run_dir: str | Path | None = None,
    device: str | None = None,
    budget: str | float | None = None,
    **options: Any,
) -> Training:
    """Train, from raw text to a run directory: the same call on a directory that is there goes on where it stands.

        dragoman.train("recipes/multi30k-en-de.yaml", {"training.max_steps": 2000}, callbacks=[print])
        dragoman.train(corpus=pairs, src_lang="de", tgt_lang="en", run_dir="runs/mine")
        dragoman.train({"model": {...}}, corpus=dragoman.Corpus(train=frame, valid=other), run_dir="runs/mine")

    `recipe`: a file, a name in recipes/, a run directory, YAML text, or a mapping; without one the sizes follow from
    the corpus. `overrides`: a mapping, nested or of dotted keys, or `key=value` texts. `corpus`: a `Corpus`, a mapping
    of splits, or training pairs. `callbacks`: functions, called after each validation, or objects (`Callback`).
    `budget`: seconds, or a text such as "30min". `options`: those of `dragoman train` (`src`, `tgt`, `valid_src`,
    `files`, `src_lang`, `tgt_lang`, `init_from`, `freeze`, `lora` ...), and `columns` of the corpus.

    Ctrl-C finishes the step, saves, and returns. Raises DragomanError for what a person can mend.
    """
    changes = config.as_overrides(overrides)
    if budget is not None and any(change.startswith("training.max_") for change in changes):
        raise Error.CONFLICT("`budget` chooses training.max_steps, and a run that goes on keeps it", "give one of them")
    config.check_names("train", options, Options, "settings of the recipe are overrides: {'training.max_steps': 100}")
    given = config.parse(Options, {name: value for name, value in options.items() if value is not None}, "train")
    changes = recipes.with_options(changes, run_dir=run_dir, device=device, init_from=given.init_from)
    changes += [f"training.freeze={json.dumps(given.freeze)}"] if given.freeze else []
    changes += [f"adapter.r={given.lora}"] if given.lora else []
    given.check(recipe, corpus)
    if corpus is not None:
        corpus = Corpus.of(corpus)
        corpus = replace(corpus, columns=corpus.columns or given.columns)
        given = replace(given, src_lang=given.src_lang or corpus.src_lang, tgt_lang=given.tgt_lang or corpus.tgt_lang)
    seconds = seconds_of(budget) if isinstance(budget, str) else budget
    request = Request(recipe=recipe, changes=changes, corpus=corpus, seconds=seconds, options=given)
    return Training(request, callbacks).run()
