"""The command line: a command parses its arguments and calls one function. Results to stdout, all else to stderr."""

import contextlib
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dragoman.backends.threads import wait_passively_if_busy
from dragoman.cli.adapt import adapt
from dragoman.cli.bench import bench
from dragoman.cli.calibrate import calibrate
from dragoman.cli.compare import compare
from dragoman.cli.datastore import datastore
from dragoman.cli.distil import distil
from dragoman.cli.diversify import diversify
from dragoman.cli.doctor import doctor
from dragoman.cli.evaluate import evaluate
from dragoman.cli.explain import explain
from dragoman.cli.export import export
from dragoman.cli.fill import fill
from dragoman.cli.import_model import import_
from dragoman.cli.inspect import inspect_app
from dragoman.cli.learn import learn_app
from dragoman.cli.options import (
    Device,
    Overrides,
    Recipe,
    Run,
    RunDir,
    Which,
    check_not_the_same,
    given,
    text_input,
    text_output,
)
from dragoman.cli.reproduce import reproduce
from dragoman.cli.runs import runs
from dragoman.cli.serve import corrections, keys_app, serve
from dragoman.cli.settings import settings as settings_command
from dragoman.cli.sweep import sweep
from dragoman.cli.translate import GuardCommand, score, translate
from dragoman.cli.vocabulary import vocabulary
from dragoman.errors import DragomanError, SaidElsewhere
from dragoman.progress import clock, complain, say, seconds_of
from dragoman.runs.lock import locked
from dragoman.text.lines import language_of_file
from dragoman.version import __version__

app = typer.Typer(
    name="dragoman",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="""Dragoman takes parallel text and gives back a translator.

**First steps**

- `dragoman demo` — the whole way in three minutes, on text that comes with Dragoman

- `dragoman train --src corpus.de --tgt corpus.en` — your own two files, line n of one translating line n of the other

- `dragoman translate runs/NAME < some.de > some.en`

A recipe (a YAML file, see `recipes/`) says everything about a run; `dragoman train RECIPE key=value` changes it here
and there: `dragoman train recipes/multi30k-en-de.yaml training.max_steps=2000 seed=2`.
""",
)
data_app = typer.Typer(
    name="data",
    no_args_is_help=True,
    help="Get a corpus: `multi30k`, `libreoffice-help`, or the `demo` corpus that comes with Dragoman.",
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    context.obj = {"debug": debug}
    if version:
        typer.echo(f"dragoman {__version__}")
        raise typer.Exit


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="Recipe (YAML); not needed with --src and --tgt.", show_default=False)
    ] = None,
    overrides: Overrides = None,
    src: Annotated[Path | None, typer.Option(help="Source side of your corpus (text or .gz).")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target side: line n translates line n of the source.")] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source of a validation set. [default: 2 % held out]")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target of the validation set.")] = None,
    run_dir: RunDir = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Take so long in all (30min, 2h, 90s): the clock decides how many steps.")
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option(
            "--init-from",
            "--from",
            help="Fine-tuning: begin with this run's weights (and with two files, its model and tokenizer, at a rate "
            "and for as long as suits them).",
        ),
    ] = None,
    mix: Annotated[
        bool | None,
        typer.Option(
            help="With --from and two files: mix in as much of the text that the other run was trained on, so that it "
            "is not forgotten. [default: where that text is still there]",
            show_default=False,
        ),
    ] = None,
    general_src: Annotated[
        Path | None, typer.Option(help="Mix in this text in its place, for runs whose text is not there.")
    ] = None,
    general_tgt: Annotated[
        Path | None, typer.Option(help="Target side of it. [default: what the other run makes of it]")
    ] = None,
    freeze: Annotated[
        str | None,
        typer.Option(help="Parts whose weights stay, such as embeddings,encoder_layers (training.freeze)."),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(min=1, help="Train in so many processes of this machine: one a GPU, or one a core or two."),
    ] = 1,
    max_restarts: Annotated[
        int, typer.Option(min=0, help="Start them again so often from the last checkpoint when one dies.")
    ] = 0,
) -> None:
    """Train a translator: from raw text to a run directory with checkpoints, scores and a report.

    The tokenizer is learnt on the way. The same command on a run directory that is there already goes on from its
    newest checkpoint. Ctrl-C finishes the step, saves and stops. Every setting: `dragoman settings`, docs/settings.md.

    On several machines: `torchrun --nnodes 2 ... -m dragoman train RECIPE` (docs/scale.md).

    Examples:

        dragoman train recipes/multi30k-en-de.yaml training.max_steps=2000

        dragoman train --src corpus.de.gz --tgt corpus.en.gz --run runs/mine

        dragoman train --from runs/base --src manual.de --tgt manual.en --run runs/manual
    """
    if processes > 1:
        from dragoman.training.launch import launch, refuse_processes, without_options

        refuse_processes(processes)
        raise typer.Exit(
            launch(without_options(sys.argv[1:], ["--processes", "--max-restarts"]), processes, max_restarts)
        )
    from dragoman import config
    from dragoman.tasks import recipes
    from dragoman.training.distributed import joined

    started = time.monotonic()
    changes = list(overrides or [])
    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        changes, recipe = [recipe, *changes], None
    if budget is not None and any(change.startswith("training.max_steps=") for change in changes):
        raise DragomanError("--budget chooses training.max_steps, and a run that goes on keeps it: give one of them")
    changes = _with_options(changes, run_dir=run_dir, device=device, init_from=init_from)
    if freeze:
        changes.append(f"training.freeze={json.dumps([part.strip() for part in freeze.split(',')])}")
    if (mix is not None or general_src or general_tgt) and (recipe is not None or init_from is None):
        raise DragomanError(
            "--mix and --general-src are of --from with --src and --tgt; a recipe names its own mixture"
        )
    if general_tgt and not general_src:
        raise DragomanError("--general-tgt needs --general-src, the text that it translates")
    general: Any = None
    settings: Any = None
    seconds = None if budget is None else seconds_of(budget)
    if recipe is not None and (src or tgt or valid_src or valid_tgt):
        raise DragomanError("give a recipe, or --src and --tgt; a recipe names its own corpora (corpus.train.src=...)")

    def read(owned: contextlib.ExitStack) -> dict[str, Any]:
        """The settings, which the other processes are told: what is made of two files is made once."""
        nonlocal settings, general
        if recipe is not None:
            settings = recipes.load(recipe, changes)
            return config.to_dict(settings)
        if src is None or tgt is None:
            raise DragomanError("nothing to train on: give a recipe, or both --src and --tgt")
        directory = _directory_for_files(src, tgt, changes)
        owned.enter_context(locked(directory))  # pairs are held out in there before the run begins
        if init_from is not None:
            from dragoman.tasks.general_text import general_text

            general = general_text(init_from, general_src, general_tgt, mix, directory)
        settings = _recipe_for_files(src, tgt, valid_src, valid_tgt, directory, changes, general)
        return config.to_dict(settings)

    with joined() as ranks, contextlib.ExitStack() as owned:
        told = ranks.broadcast(lambda: read(owned))
        settings = settings or recipes.of_dict(told)
        left = None if seconds is None else seconds - (time.monotonic() - started)
        result = recipes.run(settings, left, ranks)
    if not ranks.is_first:
        return
    outcome = result.outcome
    if outcome.reason == "interrupted":
        say(f"stopped and saved at step {outcome.step:,}; the same command goes on from there")
    best = f"best validation {result.best} at step {outcome.best_step:,}; " if result.best else ""
    say(f"{best}trained in {clock(outcome.elapsed_s)}")
    if general is not None and outcome.reason != "interrupted":
        from dragoman.tasks.general_text import gained_and_lost

        gained_and_lost(settings, general)
    say(f"run {result.run_dir}, report {result.report}")
    say(result.doubt or result.next_command)


def _with_options(changes: list[str], **options: Path | str | None) -> list[str]:
    """Changes to the recipe, and those that are options as well. Raises DragomanError for what is given as both."""
    given = {name: str(value) for name, value in options.items() if value}
    for name in given:
        if any(change.startswith(f"{name}=") for change in changes):
            raise DragomanError(f"{name}=... and its option say the same thing twice: give one of them")
    return changes + [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items()]


def _directory_for_files(src: Path, tgt: Path, changes: list[str]) -> Path:
    """Where the run of two bare files goes: `runs/SRC-TGT` by their languages, unless a setting says it."""
    from dragoman import config

    named = Path("runs") / f"{language_of_file(src) or 'src'}-{language_of_file(tgt) or 'tgt'}"
    return Path(str(config.override({}, changes).get("run_dir") or named))


def _recipe_for_files(
    src: Path,
    tgt: Path,
    valid_src: Path | None,
    valid_tgt: Path | None,
    directory: Path,
    changes: list[str],
    general: Any,
) -> Any:
    from dragoman import config
    from dragoman.device import pick_device
    from dragoman.tasks.auto_recipe import FineTuning, default_recipe
    from dragoman.tasks.recipes import TranslationRecipe

    if (valid_src is None) != (valid_tgt is None):
        raise DragomanError("give both --valid-src and --valid-tgt, or neither")
    settings = config.override({"corpus": {}, "device": "auto", "init_from": None}, changes)
    corpus, init_from = settings["corpus"], settings["init_from"]
    data = default_recipe(
        str(src),
        str(tgt),
        str(directory),
        valid=(str(valid_src), str(valid_tgt)) if valid_src and valid_tgt else None,
        languages=(language_of_file(src) or "src", language_of_file(tgt) or "tgt"),
        doctor=corpus.get("doctor", "refuse") if isinstance(corpus, dict) else "refuse",
        goes_on=FineTuning(str(init_from), None if general is None else general.train) if init_from else None,
        on_gpu=pick_device(str(settings["device"])).type == "cuda",
    )
    return config.parse(TranslationRecipe, config.override(data, changes), "settings for two files")


def predict(
    run: Run,
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Where the run labels images: pictures (light strokes on dark, like MNIST's), or idx files.",
            show_default=False,
        ),
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Texts to label. [default: stdin]")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write it. [default: stdout]")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many labels for each, most probable first.")] = 1,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Show how probable each label is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line.")] = False,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Label texts, or images: one line in, one line out; blank lines stay blank.

    The columns are separated by tabs: an image's name, then each label, with its probability if so asked.

    Examples:

        dragoman predict runs/language-id --probabilities < some.txt

        dragoman predict runs/mnist-vit digit.png --top 3
    """
    from dragoman.inference.classifier import Predictor
    from dragoman.progress import Progress
    from dragoman.runs.directory import check_run_dir

    check_not_the_same(input, output)
    predictor = Predictor.load(check_run_dir(run), which=which, device=device)
    is_typed = False
    if predictor.reads_images:
        if not images:
            raise DragomanError(f"{run} labels images: name them, as in `dragoman predict {run} digit.png`")
        results = predictor.label_files(images, top)
    else:
        if images:
            raise DragomanError(f"{run} labels texts, line by line: give {images[0]} with -i, or on standard input")
        lines, waiting, is_typed = text_input(input)
        results = predictor.label_lines(lines, top, waiting=waiting)
    with text_output(output) as write, Progress("labelling", None, shown=not is_typed) as bar:
        for name, found in results:
            if as_json:
                record = {"image": name} if name else {}
                write(json.dumps({**record, "labels": [vars(item) for item in found]}, ensure_ascii=False) + "\n")
            else:
                columns = [(item.label, f"{item.probability:.4f}")[: 1 + probabilities] for item in found]
                write("\t".join([name, *itertools.chain(*columns)] if name else itertools.chain(*columns)) + "\n")
            bar.advance()


def generate(
    run: Run,
    prompt: Annotated[str, typer.Option(help="Text to continue. [default: none, a line begins]")] = "",
    max_tokens: Annotated[int | None, typer.Option(help="Tokens to draw. [default: the recipe's, as for all]")] = None,
    temperature: Annotated[float | None, typer.Option(help="Less is more cautious; 0 takes the likeliest.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw from so many of the likeliest.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw from the likeliest that make up this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another text.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Texts to write, a line `---` between them.")] = 1,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Continue a text by a language model, as it is drawn.

    Example: dragoman generate runs/tiny-shakespeare --prompt "ROMEO:" --max-tokens 300 --temperature 0.8
    """
    from dragoman.inference.generator import Generator
    from dragoman.text.tokenizers.base import UNK_ID

    sampling = given(max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    generator = Generator.load(run, which=which, device=device, **sampling)
    if unknown := generator.ids(prompt).count(UNK_ID):
        say(f"tokens of the prompt that the model does not know: {unknown}")
    with text_output(None) as write:
        if count == 1:
            write(prompt)
            for piece in generator.stream(prompt):
                write(piece)
            write("\n")
        else:
            write("\n---\n".join(prompt + text for text in generator.generate([prompt] * count)) + "\n")


def average(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, two or more.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="New run directory.", show_default=False)],
    which: Which = "best",
) -> None:
    """Make one model of several: the mean of the weights of runs that began with the same (`train --init-from`).

    It is as fast as one of them, and can be better than each. Runs that began apart are for `translate --ensemble`.

    Example: dragoman average runs/tuned-1 runs/tuned-2 -o runs/tuned
    """
    from dragoman.experiments.model_soup import average as run

    say(f"written: {run(runs, out, which)}")


def prepare(recipe: Recipe, overrides: Overrides = None, run_dir: RunDir = None) -> None:
    """Learn the tokenizer and store the corpus as ids, ahead of training."""
    from dragoman.tasks import recipes

    for line in recipes.prepare(recipes.load(recipe, _with_options(overrides or [], run_dir=run_dir))):
        say(line)


def check(recipe: Recipe, overrides: Overrides = None) -> None:
    """Build everything that a recipe describes, without its data, in about two seconds."""
    from dragoman.tasks import recipes

    settings: Any = recipes.load(recipe, overrides)
    parameters = recipes.check(settings)
    typer.echo(
        f"{recipe}: good. {settings.model.type}, about {parameters:,} parameters (the data decide how many words and "
        f"labels there are), run {settings.run_dir}"
    )


def report(run: Run) -> None:
    """Write RUN/report.html again: curves, samples, scores, settings, in one file."""
    from dragoman.analysis.report import write_report

    typer.echo(write_report(run))


def demo(
    recipe: Annotated[Path | None, typer.Option(help="The demo's recipe. [default: Dragoman's own]")] = None,
    overrides: Overrides = None,
) -> None:
    """The whole way in three minutes: train on the corpus that comes with Dragoman, score it, translate a sentence."""
    from dragoman.experiments.demo import run_demo

    typer.echo(run_demo(recipe, overrides or []))


@data_app.command("multi30k")
def data_multi30k(
    from_dir: Annotated[
        Path | None, typer.Option("--from", help="Folder that has the files. [default: download them]")
    ] = None,
    to: Annotated[Path, typer.Option(help="Where to put them.")] = Path("data/multi30k"),
) -> None:
    """Multi30k: 29,000 image captions in English, German, French and Czech, with checksums."""
    from dragoman.corpora.multi30k import fetch

    for path in fetch(to, from_dir):
        typer.echo(path)


@data_app.command("libreoffice-help")
def data_libreoffice_help(
    from_dir: Annotated[Path, typer.Option("--from", help="Folder that the packages were unpacked into.")],
    src: Annotated[str, typer.Option(help="The source's language, as its folder is called.")] = "en-US",
    tgt: Annotated[str, typer.Option(help="The target's: de, eu, gl, km, vi ...")] = "de",
    to: Annotated[Path | None, typer.Option(help="Where to write. [default: data/libreoffice-help-SRC-TGT]")] = None,
) -> None:
    """LibreOffice's help in 35 languages, paragraphs with their markup, from Debian's libreoffice-help-* packages."""
    from dragoman.corpora.libreoffice_help import write

    codes = [code.partition("-")[0].lower() for code in (src, tgt)]
    folder = to or Path(f"data/libreoffice-help-{codes[0]}-{codes[1]}")
    for split, pairs in write(from_dir, src, tgt, folder).items():
        typer.echo(f"{folder}/{split}.{codes[0]}.gz, .{codes[1]}.gz: {pairs:,} pairs")


@data_app.command("demo")
def data_demo(
    pair: Annotated[str, typer.Option(help="de-en, zh-en, en-de or en-zh.")] = "de-en",
    to: Annotated[Path, typer.Option(help="Where to write train, valid and test.")] = Path("data/demo"),
    train_size: Annotated[int | None, typer.Option(min=1, help="Training pairs.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another corpus.")] = 1,
) -> None:
    """Write the embedded corpus to files, to look at it or to train on it as on your own."""
    from dragoman.corpora.embedded import SIZES, write

    for path in write(to, pair, seed, {**SIZES, "train": train_size or SIZES["train"]}):
        typer.echo(path)


GROUPS: dict[str, tuple[Any, ...]] = {
    "Begin": (demo, learn_app),
    "Prepare a corpus": (doctor, data_app, diversify, check, prepare),
    "Train": (train, sweep, import_, vocabulary, distil, adapt, bench, average),
    "Use": (translate, datastore, score, predict, generate, fill),
    "Measure": (evaluate, compare, calibrate, runs, reproduce),
    "Look inside": (report, explain, inspect_app, settings_command),
    "Ship": (export, serve, keys_app, corrections),
}
"""The commands, as `dragoman --help` groups them; a command of several has an app of its own."""


def name_of(command: Any) -> str:
    """The name of a command on the command line; `import` is a word of Python's, and its function is `import_`."""
    return str(command.__name__).rstrip("_").replace("_", "-")


for group, commands in GROUPS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=group)
        else:
            kind = GuardCommand if command is translate else TyperCommand
            app.command(name_of(command), rich_help_panel=group, cls=kind)(command)


def main() -> None:
    """The entry point: one clear line and exit code 2 for mistakes that a person can mend."""
    debug = "--debug" in sys.argv
    if sys.stderr is None:  # closed: what is said there goes nowhere
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    wait_passively_if_busy()
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer's for Ctrl-C
            say("dragoman: stopped")
        sys.exit(code if isinstance(code, int) else 0)
    except DragomanError as error:
        _fail("" if isinstance(error, SaidElsewhere) else str(error), debug, code=2)
    except SystemExit as stop:
        # `dragoman translate ... | head`: typer makes 1 of it, a shell expects 128 + SIGPIPE.
        raise SystemExit(141 if isinstance(stop.__context__, BrokenPipeError) else stop.code) from None
    except KeyboardInterrupt:
        _fail("stopped", debug, code=130)
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own: a wrong option, a missing argument
            usage = getattr(error, "ctx", None)
            say(usage.get_usage() if usage else "")
            _fail(error.format_message(), debug, code=2)
        if isinstance(error, OSError) and not debug:
            _fail(f"{error.filename or 'standard output or a file'}: {error.strerror or error}", debug, code=2)
        raise


def _fail(message: str, debug: bool, code: int) -> None:
    if debug:
        raise  # inside an except block of `main`
    if message:
        complain(f"dragoman: {message}")
    sys.exit(code)
