"""`dragoman train`: from raw text to a run directory."""

import contextlib
import functools
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dragoman import config
from dragoman.cli.options import Lora, Overrides, RunDir, two_columns, with_options
from dragoman.device import pick_device
from dragoman.errors import Error
from dragoman.experiments.speed import measured_speed
from dragoman.languages.identification import COMMON, recognised
from dragoman.progress import clock, say, seconds_of
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
from dragoman.tasks.fine_tuning import GeneralText, fine_tuning_recipe, gained_and_lost, general_text, kept_from
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.sizes import Budget
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import language_of_file
from dragoman.training.distributed import joined
from dragoman.training.launch import launch, refuse_processes, without_options

Files = Annotated[
    list[str] | None,
    typer.Option(
        help="Folder (or file, or pattern) of memories, catalogues, tables and documents in both languages, in the "
        "place of --src and --tgt; repeatable. With --src-lang and --tgt-lang.",
        show_default=False,
    ),
]
SrcLang = Annotated[str | None, typer.Option(help="With --files: language code of the source.", show_default=False)]
TgtLang = Annotated[str | None, typer.Option(help="With --files: language code of the target.", show_default=False)]
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="With --files: the columns of tables, by heading or number (English,French). [default: by what they hold]",
        show_default=False,
    ),
]
InitFrom = Annotated[
    Path | None,
    typer.Option(
        "--init-from",
        "--from",
        help="Fine-tuning: begin with this run's weights (and with two files, its model and tokenizer, at a rate "
        "and for as long as suits them).",
    ),
]
Mix = Annotated[
    bool | None,
    typer.Option(
        help="With --from and two files: mix in as much of the text that the other run was trained on, so that it "
        "is not forgotten. [default: where that text is still there]",
        show_default=False,
    ),
]
GeneralTgt = Annotated[Path | None, typer.Option(help="Target side of it. [default: what the other run makes of it]")]
RecipeOrNone = Annotated[
    str | None, typer.Argument(help="Recipe (YAML); not needed with --src and --tgt.", show_default=False)
]
TimeBudget = Annotated[
    str | None, typer.Option(help="Take so long in all (30min, 2h, 90s): the clock decides how many steps.")
]
GeneralSrc = Annotated[
    Path | None, typer.Option(help="Mix in this text in its place, for runs whose text is not there.")
]
Freeze = Annotated[
    str | None, typer.Option(help="Parts whose weights stay, such as embeddings,encoder_layers (training.freeze).")
]
Processes = Annotated[
    int, typer.Option(min=1, help="Train in so many processes of this machine: one a GPU, or one a core or two.")
]
MaxRestarts = Annotated[
    int, typer.Option(min=0, help="Start them again so often from the last checkpoint when one dies.")
]


class CorpusOptions(NamedTuple):
    """A corpus that is given as two files or a folder, without a recipe, and the options that belong to it."""

    src: Path | None
    tgt: Path | None
    valid_src: Path | None
    valid_tgt: Path | None
    init_from: Path | None
    mix: bool | None
    general_src: Path | None
    general_tgt: Path | None
    files: list[str] | None = None
    languages: tuple[str, str] = ("", "")
    columns: str | None = None

    def given(self, recipe: str | None) -> dict[str, Any]:
        """Plain settings of the recipe for --files, with what the command says of them; none without --files. What
        another run has learnt is its own choice."""
        if not self.files:
            return {}
        given = company_recipe(recipe, self.files, self.languages, two_columns(self.columns))
        return {"corpus": {**given["corpus"], "augment": {}}} if self.init_from else given

    def made_of(self, corpus: dict[str, Any]) -> "CorpusOptions":
        """The options for two files, those of a corpus that was made."""
        src, tgt, valid_src, valid_tgt = (
            Path(corpus[name][side]) for name in ("train", "valid") for side in ("src", "tgt")
        )
        return self._replace(src=src, tgt=tgt, valid_src=valid_src, valid_tgt=valid_tgt)


def train(
    recipe: RecipeOrNone = None,
    overrides: Overrides = None,
    src: Annotated[Path | None, typer.Option(help="Source side of your corpus (text or .gz).")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target side: line n translates line n of the source.")] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source of a validation set. [default: 2 % held out]")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target of the validation set.")] = None,
    files: Files = None,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    columns: ColumnNames = None,
    run_dir: RunDir = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    budget: TimeBudget = None,
    init_from: InitFrom = None,
    mix: Mix = None,
    general_src: GeneralSrc = None,
    general_tgt: GeneralTgt = None,
    freeze: Freeze = None,
    lora: Lora = None,
    processes: Processes = 1,
    max_restarts: MaxRestarts = 0,
) -> None:
    """Train a translator: from raw text to a run directory with checkpoints, scores and a report.

    The tokenizer is learnt on the way. The same command on a run directory that is there already goes on from its
    newest checkpoint. Ctrl-C finishes the step, saves and stops. Every setting: `dragoman settings`, docs/settings.md.

    On several machines: `torchrun --nnodes 2 ... -m dragoman train RECIPE` (docs/scale.md).

    Examples:

        dragoman train recipes/multi30k-en-de.yaml training.max_steps=2000

        dragoman train --src corpus.de.gz --tgt corpus.en.gz --run runs/mine

        dragoman train --files memories --src-lang en --tgt-lang fr --budget 30min

        dragoman train --from runs/base --src manual.de --tgt manual.en --run runs/manual

        dragoman train --from runs/base --lora 8 --src manual.de --tgt manual.en --run runs/manual
    """
    if processes > 1:
        refuse_processes(processes)
        arguments = without_options(sys.argv[1:], ["--processes", "--max-restarts"])
        raise typer.Exit(launch(arguments, processes, max_restarts))
    changes = list(overrides or [])
    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        changes, recipe = [recipe, *changes], None
    if budget is not None and any(change.startswith("training.max_") for change in changes):
        raise Error.CONFLICT("--budget chooses training.max_steps, and a run that goes on keeps it", "give one of them")
    changes = with_options(changes, run_dir=run_dir, device=device, init_from=init_from)
    changes += [f"training.freeze={json.dumps([part.strip() for part in freeze.split(',')])}"] if freeze else []
    changes += [f"adapter.r={lora}"] if lora else []
    languages = src_lang or "", tgt_lang or ""
    corpus = CorpusOptions(
        src, tgt, valid_src, valid_tgt, init_from, mix, general_src, general_tgt, files, languages, columns
    )
    _check_options(recipe, corpus)
    _train(recipe, corpus, changes, None if budget is None else seconds_of(budget))


def _check_options(recipe: str | None, files: CorpusOptions) -> None:
    """Raises DragomanError for options that do not go together."""
    has_mixture = files.mix is not None or files.general_src or files.general_tgt
    if has_mixture and (recipe is not None or files.init_from is None):
        raise Error.CONFLICT(
            "--mix and --general-src are of --from with --src and --tgt; a recipe names its own mixture"
        )
    if files.general_tgt and not files.general_src:
        raise Error.MISSING_OPTION("--general-tgt needs --general-src, the text that it translates")
    if files.files:
        if any((files.src, files.tgt, files.valid_src, files.valid_tgt, recipe and files.init_from)):
            hint = "leave out the recipe" if recipe and files.init_from else "leave out --src, --tgt"
            raise Error.CONFLICT("--files is a corpus by itself", hint)
        if not all(files.languages):
            raise Error.MISSING_OPTION("--files needs --src-lang and --tgt-lang", "such as --src-lang en --tgt-lang fr")
    elif files.columns or any(files.languages):
        raise Error.MISSING_OPTION("--src-lang, --tgt-lang and --columns are of --files")
    if recipe is not None and any((files.src, files.tgt, files.valid_src, files.valid_tgt)):
        raise Error.MISSING_OPTION(
            "give a recipe, or --src and --tgt; a recipe names its own corpora (corpus.train.src=...)"
        )


def _train(recipe: str | None, files: CorpusOptions, changes: list[str], seconds: float | None) -> None:
    """Train, and say what came out. What is made of two files is made by the first process, for all."""
    started = time.monotonic()
    with joined() as ranks, contextlib.ExitStack() as owned:
        settings, general = ranks.first(lambda: _settings(recipe, files, changes, owned, seconds)) or (None, None)
        data = ranks.broadcast(lambda: config.to_dict(settings))
        settings = settings or recipes.parsed(data, "recipe")
        left = None if seconds is None else seconds - (time.monotonic() - started)
        from dragoman.analysis.report import write_report  # it draws: matplotlib loads in a second

        result = recipes.run(settings, left, ranks, report=write_report)
    if ranks.is_first:
        _report(result, settings, general)


def _settings(
    recipe: str | None,
    files: CorpusOptions,
    changes: list[str],
    owned: contextlib.ExitStack,
    seconds: float | None,
) -> tuple[Any, GeneralText | None]:
    """The settings, and for fine-tuning on two files the general text. `owned` keeps the run's folder."""
    if recipe is not None and not files.files:
        return recipes.load(recipe, changes), None
    if not files.files and (files.src is None or files.tgt is None):
        raise Error.MISSING_OPTION("nothing to train on", "give a recipe, --files, or both --src and --tgt")
    languages = files.languages if files.files else _languages(str(files.src), str(files.tgt))
    given = files.given(recipe)
    settings = config.override({"corpus": {}, "device": "auto", "init_from": None, "adapter": None, **given}, changes)
    directory = Path(str(settings.get("run_dir") or Path("runs") / "-".join(languages)))
    check_changes(changes, str(directory), settings["init_from"], given)
    owned.enter_context(locked(directory))  # pairs are held out in there before the run begins
    device = str(settings["device"])
    sizing: dict[str, Any] = {"on_gpu": pick_device(device).type == "cuda"}
    if seconds is not None and not settings["init_from"]:
        sizing["budget"] = Budget(seconds, functools.partial(measured_speed, device, seconds))
    if files.files and not files.init_from:
        data = recipe_for_collection(given, str(directory), changes, **sizing)
        data = with_room(config.override_kinds(TranslationRecipe, data, changes), changes)
        return recipes.parsed(data, "settings for a folder of files"), None
    made: dict[str, Any] = {"test": {}}
    if files.files:
        theirs = kept_from(str(files.init_from))
        made = collected({"corpus": {**given["corpus"], **theirs}}, str(directory), changes)
        files = files.made_of(made)
        changes = [change for change in changes if not change.startswith("corpus.files.")]
    src, tgt, valid_src, valid_tgt, init_from, mix, general_src, general_tgt = files[:8]
    general = None
    if init_from is not None:
        general = general_text(init_from, general_src, general_tgt, mix, directory)
    if (valid_src is None) != (valid_tgt is None):
        raise Error.MISSING_OPTION("give both --valid-src and --valid-tgt, or neither")
    corpus, general_source = settings["corpus"], None if general is None else general.train
    base, adapter = str(settings["init_from"]), settings["adapter"]
    go_on = functools.partial(fine_tuning_recipe, base, general=general_source, adapter=adapter)
    make = go_on if settings["init_from"] else default_recipe
    data = make(
        str(src),
        str(tgt),
        str(directory),
        valid=(str(valid_src), str(valid_tgt)) if valid_src and valid_tgt else None,
        languages=languages,
        doctor=made.get("doctor") or (corpus.get("doctor", "refuse") if isinstance(corpus, dict) else "refuse"),
        **sizing,
    )
    data["corpus"]["test"] = made["test"]
    data = with_room(config.override_kinds(TranslationRecipe, data, changes), changes)
    return config.parse(TranslationRecipe, data, "settings for two files"), general


def _languages(src: str, tgt: str) -> tuple[str, str]:
    """The languages of two files by their names, or by their text; `src` and `tgt` where neither says it."""
    codes = language_of_file(src), language_of_file(tgt)
    if all(codes):
        return codes
    pairs = list(itertools.islice(FilesSource(src=src, tgt=tgt).pairs(), COMMON))
    texts = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    src_lang, tgt_lang = (code or recognised(lines) for code, lines in zip(codes, texts, strict=True))
    return src_lang or "src", tgt_lang or "tgt"


def _report(result: Result, settings: Any, general: GeneralText | None) -> None:
    outcome = result.outcome
    is_done = outcome.reason != "interrupted"
    if not is_done:
        say(f"stopped and saved at step {outcome.step:,}; the same command goes on from there")
    best = f"best validation {result.best} at step {outcome.best_step:,}; " if result.best else ""
    say(f"{best}trained in {clock(outcome.elapsed_s)}")
    if general is not None and is_done:
        gained_and_lost(settings, general)
    say(f"run {result.run_dir}, report {result.report}")
    say(result.doubt or result.next_command)
