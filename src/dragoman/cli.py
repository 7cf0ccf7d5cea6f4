"""The command line: a command parses its arguments and calls one function. Results to stdout, all else to stderr."""

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli_doctor import doctor
from dragoman.cli_export import export
from dragoman.cli_inspect import inspect_app
from dragoman.errors import DragomanError, writing
from dragoman.lock import locked
from dragoman.progress import clock, say, seconds_of
from dragoman.text.languages import of_file
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
    no_args_is_help=True, help="Get a corpus: `multi30k`, or the `demo` corpus that comes with Dragoman."
)
app.add_typer(data_app, name="data")
app.add_typer(inspect_app, name="inspect")
app.command(name="doctor")(doctor)
app.command(name="export")(export)

Run = Annotated[Path, typer.Argument(help="Run directory, as `dragoman train` leaves it.", show_default=False)]
Recipe = Annotated[Path, typer.Argument(help="Recipe (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Changes to the recipe: key.subkey=value ...", show_default=False)
]
Which = Annotated[str, typer.Option("--checkpoint", help="`best`, `last`, or the number of a step.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Ensemble = Annotated[list[Path] | None, typer.Option(help="Another run whose model translates along; repeat for more.")]
BeamSize = Annotated[int | None, typer.Option(help="Hypotheses kept in search; 1 is greedy. [default: the recipe's]")]
LengthPenalty = Annotated[
    float | None, typer.Option(help="Exponent of the length penalty; more favours longer. [default: the recipe's]")
]


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


@app.command()
def train(
    recipe: Annotated[
        str | None, typer.Argument(help="Recipe (YAML); not needed with --src and --tgt.", show_default=False)
    ] = None,
    overrides: Overrides = None,
    src: Annotated[Path | None, typer.Option(help="Source side of your corpus (text or .gz).")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target side: line n translates line n of the source.")] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source of a validation set. [default: 2 % held out]")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target of the validation set.")] = None,
    run_dir: Annotated[Path | None, typer.Option("--run", help="Run directory. [default: runs/NAME]")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Take so long (30min, 2h, 90s): the number of steps is chosen for it.")
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option(help="Fine-tuning: begin with this run's weights (and with two files, its model and tokenizer)."),
    ] = None,
) -> None:
    """Train a translator: from raw text to a run directory with checkpoints, scores and a report.

    The tokenizer is learnt on the way. The same command on a run directory that is there already goes on from its
    newest checkpoint. Ctrl-C finishes the step, saves and stops.

    Examples:

        dragoman train recipes/multi30k-en-de.yaml training.max_steps=2000

        dragoman train --src corpus.de.gz --tgt corpus.en.gz --run runs/mine
    """
    from dragoman import recipe as recipes

    started = time.monotonic()
    changes = list(overrides or [])
    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        changes, recipe = [recipe, *changes], None
    changes += [f"run_dir={json.dumps(str(run_dir))}"] if run_dir else []
    changes += [f"device={device}"] if device else []
    changes += [f"init_from={json.dumps(str(init_from))}"] if init_from else []
    seconds = None if budget is None else seconds_of(budget)
    if recipe is not None:
        if src or tgt or valid_src or valid_tgt:
            raise DragomanError(
                "give a recipe, or --src and --tgt; a recipe names its own corpora (corpus.train.src=...)"
            )
        owned: Any = contextlib.nullcontext()
    else:
        owned = locked(_directory_for_files(src, tgt, run_dir))  # pairs are held out in there before the run begins
    with owned:
        if recipe is not None:
            settings = recipes.load(recipe, changes)
        else:
            other = str(init_from) if init_from else None
            settings = _recipe_for_files(src, tgt, valid_src, valid_tgt, run_dir, changes, other)
        left = None if seconds is None else seconds - (time.monotonic() - started)
        result = recipes.run(settings, left)
    outcome = result.outcome
    if outcome.reason == "interrupted":
        say(f"stopped and saved at step {outcome.step:,}; the same command goes on from there")
    best = f"best validation {result.best} at step {outcome.best_step:,}; " if result.best else ""
    say(f"{best}trained in {clock(outcome.elapsed_s)}")
    say(f"run {result.run_dir}, report {result.report}")
    say(result.next_command)


def _directory_for_files(src: Path | None, tgt: Path | None, run_dir: Path | None) -> Path:
    """Where the run of two bare files goes: `runs/SRC-TGT` by their languages."""
    if src is None or tgt is None:
        raise DragomanError("nothing to train on: give a recipe, or both --src and --tgt")
    return run_dir or Path("runs") / f"{of_file(src) or 'src'}-{of_file(tgt) or 'tgt'}"


def _recipe_for_files(
    src: Path | None,
    tgt: Path | None,
    valid_src: Path | None,
    valid_tgt: Path | None,
    run_dir: Path | None,
    changes: list[str],
    init_from: str | None,
) -> Any:
    from dragoman import config
    from dragoman.default_recipe import default_recipe
    from dragoman.recipe import TranslationRun

    directory = _directory_for_files(src, tgt, run_dir)
    assert src is not None
    assert tgt is not None
    if (valid_src is None) != (valid_tgt is None):
        raise DragomanError("give both --valid-src and --valid-tgt, or neither")
    languages = (of_file(src) or "src", of_file(tgt) or "tgt")
    valid = (str(valid_src), str(valid_tgt)) if valid_src and valid_tgt else None
    doctor = config.override({}, changes).get("corpus", {}).get("doctor", "refuse")
    data = default_recipe(
        str(src), str(tgt), str(directory), valid=valid, languages=languages, doctor=doctor, init_from=init_from
    )
    return config.parse(TranslationRun, config.override(data, changes), "settings for two files")


@app.command()
def translate(
    run: Run,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Text to translate. [default: stdin]")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write it. [default: stdout]")] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Translations of each line; above 1: `line ||| text ||| score`.")
    ] = None,
    ensemble: Ensemble = None,
    engine: Annotated[
        str, typer.Option(help="pytorch, or ctranslate2: the same translations faster; converts on first use.")
    ] = "pytorch",
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Translate text: one line in, one line out; blank lines and order are kept.

    Example: dragoman translate runs/demo --beam-size 1 < letter.de > letter.en
    """
    from dragoman.progress import Progress
    from dragoman.translator import STREAM_LINES, Translator, check_run_dir

    translator = Translator.load(
        check_run_dir(run),
        which=which,
        device=device,
        ensemble=ensemble or (),
        **_decoding(beam_size, length_penalty, n_best),
    )
    if engine != "pytorch":
        from dragoman import export as exports

        translator = exports.engine(run, engine, translator, which)
    lines, interactive = _input(input)
    with _output(output) as write, Progress("translating", None, shown=not interactive) as bar:
        results = translator.stream(lines, 1 if interactive else STREAM_LINES)
        for number, found in enumerate(results, start=1):
            if translator.decoding.n_best == 1:
                write(found[0].text + "\n")
            else:
                for item in found:
                    write(f"{number} ||| {item.text} ||| {item.score:.4f}\n")
            bar.advance()


@app.command()
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
    from dragoman.predictor import Predictor
    from dragoman.progress import Progress
    from dragoman.translator import STREAM_LINES, check_run_dir

    predictor = Predictor.load(check_run_dir(run), which=which, device=device)
    interactive = False
    if predictor.reads_images:
        if not images:
            raise DragomanError(f"{run} labels images: name them, as in `dragoman predict {run} digit.png`")
        results = predictor.label_files(images, top)
    else:
        if images:
            raise DragomanError(f"{run} labels texts, line by line: give {images[0]} with -i, or on standard input")
        lines, interactive = _input(input)
        results = predictor.label_lines(lines, top, buffer=1 if interactive else STREAM_LINES)
    with _output(output) as write, Progress("labelling", None, shown=not interactive) as bar:
        for name, found in results:
            if as_json:
                record = {"image": name} if name else {}
                write(json.dumps({**record, "labels": [vars(item) for item in found]}, ensure_ascii=False) + "\n")
            else:
                columns = [(item.label, f"{item.probability:.4f}")[: 1 + probabilities] for item in found]
                write("\t".join([name, *itertools.chain(*columns)] if name else itertools.chain(*columns)) + "\n")
            bar.advance()


def _input(path: Path | None) -> tuple[Iterator[str], bool]:
    """(the lines of a file or of standard input, whether somebody types them)."""
    from dragoman.text.lines import lines_in, read_lines

    if path is not None:
        return read_lines(path, may_be_empty=True), False
    if sys.stdin is None:
        raise DragomanError("standard input is closed: name a file with -i")
    if interactive := sys.stdin.isatty():
        say("type or paste text, a line at a time; Ctrl-D ends")
    return lines_in(sys.stdin.buffer, "standard input"), interactive


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given on the command line; for the others the recipe decides."""
    return {name: value for name, value in options.items() if value is not None}


def _decoding(beam_size: int | None, length_penalty: float | None, n_best: int | None = None) -> dict[str, Any]:
    return _given(beam_size=beam_size, alpha=length_penalty, n_best=n_best)


@app.command()
def score(
    run: Run,
    src: Annotated[Path, typer.Option(help="Source text.")],
    tgt: Annotated[Path, typer.Option(help="Its translations: line n translates line n.")],
    length_penalty: LengthPenalty = None,
    ensemble: Ensemble = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with every token.")] = False,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """How probable a run finds given translations: `score, tab, log probability` (nats) for each pair of lines.

    Example: dragoman score runs/mine --src test.de --tgt test.en
    """
    from dragoman.text.corpus import FilesSource, read_pairs
    from dragoman.translator import Translator, check_run_dir

    pairs = [(pair.src, pair.tgt) for pair in read_pairs(FilesSource(src=str(src), tgt=str(tgt)))]
    translator = Translator.load(
        check_run_dir(run), which=which, device=device, ensemble=ensemble or (), **_decoding(None, length_penalty)
    )
    for scored in translator.score(pairs):
        if as_json:
            typer.echo(json.dumps(scored._asdict(), ensure_ascii=False))
        else:
            typer.echo(f"{scored.score:.6f}\t{scored.log_prob:.6f}")


@app.command()
def generate(
    run: Run,
    prompt: Annotated[str, typer.Option(help="Text to continue. [default: none, a line begins]")] = "",
    max_tokens: Annotated[int | None, typer.Option(help="Tokens to draw. [default: the recipe's, as for all]")] = None,
    temperature: Annotated[float | None, typer.Option(help="Less is bolder; 0 takes the likeliest.")] = None,
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
    from dragoman.generator import Generator
    from dragoman.text.tokenizers.base import UNK_ID

    sampling = _given(max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    generator = Generator.load(run, which=which, device=device, **sampling)
    if unknown := generator.ids(prompt).count(UNK_ID):
        say(f"tokens of the prompt that the model does not know: {unknown}")
    with _output(None) as write:
        if count == 1:
            write(prompt)
            for piece in generator.stream(prompt):
                write(piece)
            write("\n")
        else:
            write("\n---\n".join(prompt + text for text in generator.generate([prompt] * count)) + "\n")


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[Any]:
    """A function that writes text: to stdout as UTF-8 with LF, or to a file that appears only when it is complete."""
    if path is None:
        if sys.stdout is None:
            raise DragomanError("standard output is closed: name a file with -o")
        out = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False)  # noqa: SIM115

        def write(text: str) -> None:
            out.write(text)
            if sys.stdout.isatty():
                out.flush()

        try:
            yield write
            out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise DragomanError(f"standard output cannot be written: {error.strerror}") from error
        return
    if path.exists() and not path.is_file():  # a pipe or a device: to be written to, not replaced
        with writing(path), path.open("w", encoding="utf-8", newline="\n") as file:
            yield file.write
        return
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file.write
        partial.replace(path)
    except OSError as error:
        raise DragomanError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


@app.command()
def evaluate(
    run: Run,
    src: Annotated[list[Path] | None, typer.Option(help="Source text; repeat for several sets.")] = None,
    ref: Annotated[list[Path] | None, typer.Option(help="Reference translations, or labels, of each --src.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Name of each set. [default: the source file's]")] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    tokenize: Annotated[
        str | None, typer.Option(help="BLEU's tokenizer: auto, 13a, intl, zh, char, none. [default: the recipe's]")
    ] = None,
    min_context: Annotated[
        int | None, typer.Option(help="For a language model: tokens seen before each. [default: the recipe's]")
    ] = None,
    ensemble: Ensemble = None,
    which: Which = "best",
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score a run on test sets: translations by BLEU, chrF and TER (sacreBLEU, with full signatures).

    A language model is scored on --src alone, in nats per token and bits per character. A classifier's accuracy, F1
    and confusion matrix need a label in --ref for each line of --src, or lines of `label, tab, text` in --src alone.
    Without --src and --ref, the test sets of the run's own recipe are scored.

    Example: dragoman evaluate runs/mine --src test.de --ref test.en --json
    """
    from dragoman import recipe as recipes

    results = recipes.evaluate(
        run,
        sources=src or [],
        references=ref or [],
        names=name or [],
        which=which,
        device=device,
        **_given(tokenize=tokenize, min_context=min_context, ensemble=ensemble),
        **_decoding(beam_size, length_penalty),
    )
    if as_json:
        typer.echo(json.dumps({key: scores.to_dict() for key, scores in results.items()}, indent=2, ensure_ascii=False))
        return
    rows = {key: scores.figures() for key, scores in results.items()}
    width = max(len(key) for key in rows)
    typer.echo(f"{'':<{width}}" + "".join(f"  {title:>9}" for title in next(iter(rows.values()))))
    for key, figures in rows.items():
        typer.echo(f"{key:<{width}}" + "".join(f"  {text:>{max(9, len(title))}}" for title, text in figures.items()))
    for notes in dict.fromkeys(tuple(scores.notes()) for scores in results.values()):
        for note in notes:
            typer.echo(note)


@app.command()
def prepare(recipe: Recipe, overrides: Overrides = None) -> None:
    """Learn the tokenizer and store the corpus as ids, ahead of training."""
    from dragoman import recipe as recipes

    for line in recipes.prepare(recipes.load(recipe, overrides)):
        say(line)


@app.command()
def check(recipe: Recipe, overrides: Overrides = None) -> None:
    """Build everything that a recipe describes, without its data, in about two seconds."""
    from dragoman import recipe as recipes

    settings: Any = recipes.load(recipe, overrides)
    parameters = recipes.check(settings)
    typer.echo(f"{recipe}: good. {settings.model.type}, {parameters:,} parameters, run {settings.run_dir}")


@app.command()
def report(run: Run) -> None:
    """Write RUN/report.html again: curves, samples, scores, settings, in one file."""
    from dragoman.report import write_report

    typer.echo(write_report(run))


@app.command()
def demo(
    recipe: Annotated[Path | None, typer.Option(help="The demo's recipe. [default: Dragoman's own]")] = None,
    overrides: Overrides = None,
) -> None:
    """The whole way in three minutes: train on the corpus that comes with Dragoman, score it, translate a sentence."""
    from dragoman.demo import run_demo

    typer.echo(run_demo(recipe, overrides or []))


@data_app.command("multi30k")
def data_multi30k(
    from_dir: Annotated[
        Path | None, typer.Option("--from", help="Folder that has the files. [default: download them]")
    ] = None,
    to: Annotated[Path, typer.Option(help="Where to put them.")] = Path("data/multi30k"),
) -> None:
    """Multi30k: 29,000 image captions in English, German, French and Czech, with checksums."""
    from dragoman.text.multi30k import fetch

    for path in fetch(to, from_dir):
        typer.echo(path)


@data_app.command("demo")
def data_demo(
    pair: Annotated[str, typer.Option(help="de-en, zh-en, en-de or en-zh.")] = "de-en",
    to: Annotated[Path, typer.Option(help="Where to write train, valid and test.")] = Path("data/demo"),
    train_size: Annotated[int | None, typer.Option(min=1, help="Training pairs.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another corpus.")] = 1,
) -> None:
    """Write the embedded corpus to files, to look at it or to train on it as on your own."""
    from dragoman.text.embedded import SIZES, write

    for path in write(to, pair, seed, {**SIZES, "train": train_size or SIZES["train"]}):
        typer.echo(path)


def main() -> None:
    """The entry point: one clear line and exit code 2 for mistakes that a person can mend."""
    debug = "--debug" in sys.argv
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer's for Ctrl-C
            say("dragoman: stopped")
        sys.exit(code if isinstance(code, int) else 0)
    except DragomanError as error:
        _fail(str(error), debug, code=2)
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
    say(f"dragoman: {message}")
    sys.exit(code)
