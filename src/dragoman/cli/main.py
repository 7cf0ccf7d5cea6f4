"""The command line: a command parses its arguments and calls one function. Results to stdout, all else to stderr.

Each command is a module of this package, which is imported when the command is called: PyTorch takes a second to load.
"""

import json
import keyword
import os
import re
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dragoman.backends.threads import wait_passively_if_busy
from dragoman.errors import DragomanError, Error, SaidElsewhere
from dragoman.progress import complain, say
from dragoman.version import __version__

GROUPS: dict[str, dict[str, str]] = {
    "Begin": {
        "demo": "The whole way in three minutes: train on the corpus that comes with Dragoman, score it, translate a "
        "sentence.",
        "learn": "Learn how it all works: fourteen chapters that run, exercises that grade themselves, bugs to hunt.",
    },
    "Prepare a corpus": {
        "doctor": "Examine a parallel corpus: bytes, lines, pairs, languages, duplicates, leakage, and where lines "
        "have shifted.",
        "diversify": "Add to a parallel corpus what your own runs make of each of its sides, to train a better model "
        "on all of it.",
        "check": "Build everything that a recipe describes, without its data, in about two seconds.",
        "prepare": "Learn the tokenizer and store the corpus as ids, ahead of training.",
        "data": "Get a corpus: `multi30k`, `libreoffice-help`, or the `demo` corpus that comes with Dragoman.",
    },
    "Train": {
        "train": "Train a translator: from raw text to a run directory with checkpoints, scores and a report.",
        "sweep": "Try settings of a recipe in turn: hopeless ones end early, and a table has mean and spread over "
        "seeds.",
        "import": "Make a run directory of a model of another program: the same to the last bit, or refused with the "
        "reasons.",
        "vocabulary": "Change the vocabulary of an imported run, as a new run to go on from.",
        "distil": "Train a small, fast model to translate as a large one does.",
        "adapt": "Train a run on corrections, and hand the new one over only if that did it good.",
        "bench": "Measure training: tokens/s, the share of this machine's measured peak, memory, time by part and by "
        "operation.",
        "average": "Make one model of several: the mean of the weights of runs that began with the same (`train "
        "--init-from`).",
    },
    "Use": {
        "translate": "Translate lines, or whole files with everything in its place.",
        "datastore": "Make a datastore of a text: `translate --datastore` looks up before each token what was said in "
        "similar places of it (nearest-neighbour translation). Nothing is trained.",
        "score": "Score given translations: `score, tab, log probability` (nats) for each pair of lines.",
        "predict": "Label texts, or images: one line in, one line out; blank lines stay blank.",
        "generate": "Continue a text by a language model, as it is drawn.",
        "fill": "Guess what stands in the gaps of a text, with a masked language model: a line for each gap, best "
        "guess first.",
    },
    "Measure": {
        "evaluate": "Score a run, or a file of translations, on test sets: BLEU, chrF and TER (sacreBLEU, with full "
        "signatures).",
        "compare": "Compare systems on one test set: is a difference more than chance, where is it, in which "
        "sentences?",
        "calibrate": "Calibrate how sure a run is, on its validation text: for `translate --min-confidence`, and for "
        "the chrF that `evaluate` expects of a text without references.",
        "runs": "Show all runs of a folder: where their recipes differ, data, commit, machine, minutes, scores.",
        "reproduce": "Train a run once more from its own record, and say whether the same came out: bytes, or scores.",
    },
    "Look inside": {
        "report": "Write RUN/report.html again: curves, samples, scores, settings, in one file.",
        "explain": "Explain how a run translates a sentence, on one page that needs no network: pieces, shapes, masks, "
        "positions, every head of every layer, the probabilities of each next token, and the tree of the beam.",
        "settings": "Print what can be set in a recipe: key, default, type, unit, meaning, and the version it came "
        "with.",
        "inspect": "Look inside: pictures and tables of what a model is made of and what it does.",
    },
    "Ship": {
        "export": "Write a run in the format of another program, and have that program prove that it translates the "
        "same.",
        "serve": "Serve translators: a page for people, and the APIs of LibreTranslate, DeepL and our own for "
        "programs.",
        "corrections": "Write the corrections that a server was given, as a TMX: for `dragoman adapt`, `--memory`, "
        "other programs.",
        "keys": "API keys of a server: `add`, `list`, `remove`.",
    },
}
"""The commands as `dragoman --help` groups them, with the first paragraph of their own help (a test compares them)."""

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


def load(name: str) -> Any:
    """The command itself. Its module has a function of its name (`import_` for `import`), or an `app` of several."""
    function = name + "_" * keyword.iskeyword(name)
    module = import_module(f"dragoman.cli.{function}")
    loaded = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    loaded.callback()(lambda: None)
    if hasattr(module, "app"):
        loaded.add_typer(module.app, name=name)
    else:
        loaded.command(name, cls=getattr(module, "Command", TyperCommand))(getattr(module, function))
    command: Any = typer.main.get_command(loaded)
    return command.commands[name]


CALLED: list[Any] = []
"""The command that was called."""


class LazyCommand(TyperCommand):
    """The place of a command in the help; the command itself is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        CALLED[:] = [load(str(self.name))]
        return CALLED[0].make_context(info_name, args, parent, **extra)


def with_flags(text: str, command: Any) -> str:
    """A message with the options of a command that it names, such as `src`, as people type them: --src."""
    commands = [command, *getattr(command, "commands", {}).values()]
    flags: dict[str, str] = {}
    for option in (one for each in commands for one in each.params if one.param_type_name == "option"):
        flag = max(option.opts, key=len)
        flags |= {option.name: flag, flag.lstrip("-").replace("-", "_"): flag}
    return re.sub(r"`(\w+)`", lambda name: flags.get(name[1], name[0]), text)


def line_of(error: DragomanError) -> str:
    """The line that says what is wrong: as JSON with --json."""
    text = str(error)
    if CALLED and error.code not in (Error.WRONG_SETTING, Error.UNKNOWN_SETTING):  # a setting has no flag
        text = with_flags(text, CALLED[0])
    if "--json" in sys.argv:
        return json.dumps({**error.as_dict(), "error": text}, ensure_ascii=False)
    return f"dragoman: {text}"


for group, lines in GROUPS.items():
    for command, line in lines.items():
        app.command(command, cls=LazyCommand, help=line, rich_help_panel=group)(lambda: None)


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
        _fail("" if isinstance(error, SaidElsewhere) else line_of(error), debug, code=2)
    except SystemExit as stop:
        # `dragoman translate ... | head`: typer makes 1 of it, a shell expects 128 + SIGPIPE.
        raise SystemExit(141 if isinstance(stop.__context__, BrokenPipeError) else stop.code) from None
    except KeyboardInterrupt:
        _fail("dragoman: stopped", debug, code=130)
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own: a wrong option, a missing argument
            usage = getattr(error, "ctx", None)
            say(usage.get_usage() if usage else "")
            _fail(f"dragoman: {error.format_message()}", debug, code=2)
        if isinstance(error, OSError) and not debug:
            place = error.filename or "standard output or a file"
            _fail(f"dragoman: {place}: {error.strerror or error}", debug, code=2)
        raise


def _fail(message: str, debug: bool, code: int) -> None:
    if debug:
        raise  # inside an except block of `main`
    if message:
        complain(message)
    sys.exit(code)
