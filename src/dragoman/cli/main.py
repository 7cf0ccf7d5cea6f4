"""The command line: a command parses its arguments and calls one function. Results to stdout, all else to stderr.

Each command is a module of this package, which is imported when the command is called (`cli/declaration.py`).
"""

import ast
import gc
import io
import json
import keyword
import os
import re
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dragoman.backends.threads import wait_passively_if_busy
from dragoman.cli.declaration import declared, source_of
from dragoman.errors import DragomanError, Error, SaidElsewhere
from dragoman.progress import complain, say
from dragoman.version import __version__, folder_of

GROUPS = {
    "Begin": ("demo", "learn"),
    "Prepare a corpus": ("doctor", "diversify", "check", "prepare", "data"),
    "Train": ("train", "sweep", "import", "vocabulary", "distil", "adapt", "bench", "average"),
    "Use": ("translate", "datastore", "score", "predict", "generate", "fill"),
    "Measure": ("evaluate", "compare", "calibrate", "metric", "runs", "reproduce"),
    "Look inside": ("report", "explain", "settings", "inspect"),
    "Ship": ("export", "serve", "corrections", "keys"),
}
"""The commands as `dragoman --help` groups them."""


def function_of(name: str) -> str:
    """The name of a command's module, and of its function there: `import_` for `import`."""
    return name + "_" * keyword.iskeyword(name)


def help_of(name: str) -> str:
    """The help of a command: the docstring of its function, or of a module of several."""
    module = ast.parse(source_of(function_of(name)))
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == function_of(name)]
    documented: list[ast.FunctionDef | ast.Module] = [*functions, module]
    return next(filter(None, map(ast.get_docstring, documented)), "")


class Groups(TyperGroup):
    """All commands. Their help is read when it is asked for."""

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for flag in (param for param in params if getattr(param, "is_flag", False) and param.default is None):
            flag.default = False  # for None, typer would load pydantic
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for name, command in self.commands.items():
            command.help = help_of(name)
        super().format_help(ctx, formatter)


app = typer.Typer(
    name="dragoman",
    cls=Groups,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help=f"""Dragoman takes parallel text and gives back a translator.

**First steps**

- `dragoman demo` — the whole way in two minutes, on text that comes with Dragoman

- `dragoman train --src corpus.de --tgt corpus.en` — your own two files, line n of one translating line n of the other

- `dragoman translate runs/NAME < some.de > some.en`

A recipe (a YAML file, see `recipes/`) says everything about a run; `dragoman train RECIPE key=value` changes it here
and there: `dragoman train recipes/multi30k-en-de.yaml training.max_steps=2000 seed=2`. Recipes and the pages that are
named here and there (docs/errors.md) are in {folder_of("docs").parent}
""",
)


@app.callback(invoke_without_command=True)
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: this machine and what is installed, for reports of bugs.")
    ] = False,
) -> None:
    if version:
        typer.echo("\n".join(import_module("dragoman.cli.about").lines()) if verbose else f"dragoman {__version__}")
        raise typer.Exit
    if verbose:
        raise typer.BadParameter("goes with --version", param_hint="--verbose")


def load(name: str) -> Any:
    """The command itself. Its module has a function of its name, or an `app` of several."""
    module = declared(function_of(name))
    loaded = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    loaded.callback()(lambda: None)
    if hasattr(module, "app"):
        loaded.add_typer(module.app, name=name)
    else:
        loaded.command(name, cls=getattr(module, "Command", TyperCommand))(getattr(module, function_of(name)))
    command: Any = typer.main.get_command(loaded)
    return command.commands[name]


CALLED: list[Any] = []
"""The command that was called."""


class LazyCommand(TyperCommand):
    """The place of a command in the help; the command itself is declared when it is called.

    While a shell completes (`resilient_parsing`), a command is declared for its options and their values only, and a
    group (`app`) for its commands. All other words are files, which the shell completes.
    """

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        may_be_value = bool(args) and args[-1].startswith("-")
        is_group = re.search(r"^app\b.* = ", source_of(function_of(str(self.name))), re.MULTILINE)
        if extra.get("resilient_parsing") and not may_be_value and not is_group:
            return self.context_class(self, parent, info_name, obj=args, resilient_parsing=True)
        CALLED[:] = [load(str(self.name))]
        return CALLED[0].make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        if not incomplete.startswith("-"):
            return []
        command = load(str(self.name))
        return command.shell_complete(
            command.make_context(ctx.info_name, ctx.obj, ctx.parent, resilient_parsing=True), incomplete
        )


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


for group, names in GROUPS.items():
    for name in names:
        app.command(name, cls=LazyCommand, rich_help_panel=group)(lambda: None)


def main() -> None:
    """The entry point: one clear line and exit code 2 for mistakes that a person can mend."""
    debug = "--debug" in sys.argv
    completes = os.environ.get("_DRAGOMAN_COMPLETE", "").startswith("complete")  # a message would break the line
    if sys.stderr is None or completes:  # closed: what is said there goes nowhere
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and (sys.stdout.errors == "strict" or sys.stdout.encoding != "utf-8"):
        sys.stdout.reconfigure(errors="backslashreplace")  # for an encoding without our letters
    wait_passively_if_busy()
    gc.disable()  # until a command is called: what is loaded and declared stays
    try:
        # a shell completes a command, which `python -m dragoman` is not
        program = "dragoman" if {"--install-completion", "--show-completion"} & set(sys.argv) else None
        code = app(standalone_mode=False, prog_name=program)
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
            name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_").lower()
            is_setting = name in import_module("dragoman.config").OTHER_NAMES
            hint = f" Settings are written key=value: `dragoman settings {name}` finds its key." if is_setting else ""
            _fail(f"dragoman: {error.format_message()}{hint}", debug, code=2)
        if isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno is None):
            _fail_of_installation(error, debug)
        if isinstance(error, OSError) and not debug:
            nameless = "TMPDIR" if isinstance(error, FileNotFoundError) else "standard output or a file"
            place = error.filename or nameless
            _fail(f"dragoman: {place}: {error.strerror or error}", debug, code=2)
        raise


def _fail_of_installation(error: Exception, debug: bool) -> None:
    """Say which library is missing or does not load. Does nothing for a mistake of ours."""
    library = (getattr(error, "name", None) or "").partition(".")[0]
    again = "install Dragoman again, or the extra that brings it (dragoman --version --verbose lists them)"
    if isinstance(error, OSError):  # a library in C, which the system cannot load
        _fail(f"dragoman: {error}: {again}", debug, code=2)
    if library in sys.stdlib_module_names:  # _lzma, _bz2, _sqlite3
        hint = "take another, or build it again where the headers of that library are"
        _fail(f"dragoman: this Python was built without {library.lstrip('_')}: {hint}", debug, code=2)
    if library not in ("", "dragoman"):
        reason = "is not installed" if isinstance(error, ModuleNotFoundError) else f"does not load ({error})"
        _fail(f"dragoman: {library} {reason}: {again}", debug, code=2)


def _fail(message: str, debug: bool, code: int) -> None:
    if debug:
        raise  # inside an except block of `main`
    if message:
        complain(message)
    sys.exit(code)
