"""Learn how it all works: fifteen chapters that run, exercises that grade themselves, bugs to hunt.

Example: dragoman learn 3
"""

import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dragoman.analysis.figure import save
from dragoman.errors import Error
from dragoman.formats.paragraphs import display_width
from dragoman.learn import audit as auditing
from dragoman.learn import lesson, mini, mini_compare
from dragoman.learn.answers import graded, progress, read_answers, record, write_answers
from dragoman.learn.bugs import BUGS
from dragoman.learn.chapter import Cell, chapters, notebook, notebook_name, run
from dragoman.learn.exercises import exercises_of
from dragoman.learn.language import translated, use_language
from dragoman.learn.limited import limited
from dragoman.progress import say
from dragoman.runs.atomic_io import replace_text


class LearnGroup(TyperGroup):
    """`learn 3` is `learn open 3`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].isdigit():
            args = ["open", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=LearnGroup, invoke_without_command=True, help=__doc__)
Number = Annotated[int, typer.Argument(help="The chapter's number.", show_default=False)]


@app.callback()
def learn(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        list_chapters()


@app.command("list")
def list_chapters() -> None:
    """List the chapters, and what you have done of them in this folder."""
    done = progress()
    for chapter in chapters():
        names = [f"{chapter.number}-{one.name}" for one in exercises_of(chapter.number)]
        right = sum(name in done["exercises"] for name in names)
        blanks = " " * max(1, 58 - display_width(chapter.title))
        typer.echo(f"{chapter.number:>3}  {chapter.title}{blanks}exercises {right} of {len(names)}")
    typer.echo(f"     {'The laboratory':<58}bugs {len(done['bugs'])} of {len(BUGS)}")
    say("dragoman learn 1 opens a chapter, learn check 1 grades its exercises, learn bug 1 plants a bug")


@app.command("open")
def open_chapter(
    number: Number,
    run: Annotated[bool, typer.Option("--run", help="Run it here, a cell at a time.")] = False,
    lang: Annotated[str, typer.Option("--lang", help="The language of the text: en or zh.")] = "en",
) -> None:
    """Write a chapter's notebook and its exercises into this folder; without Jupyter run it here, a cell at a time.

    Example: dragoman learn 3
    """
    use_language(lang)
    chapter = _chapter(number).in_language(lang)
    answers = write_answers(number)
    has_jupyter = any(importlib.util.find_spec(name) for name in ("notebook", "jupyterlab", "ipykernel"))
    path = Path(notebook_name(chapter, lang))
    if not path.exists():
        replace_text(path, notebook(chapter))
    typer.echo(path)
    typer.echo(answers)
    if own := mini.write(number):
        typer.echo(own)
    if run or (not has_jupyter and sys.stdin.isatty()):
        _run(chapter)
    elif has_jupyter:
        say(f"open it with: jupyter lab {path}")
    else:
        say(f"to open it: pip install jupyterlab, then jupyter lab {path}; or here: dragoman learn {number} --run")
    say(f"the exercises are in {answers}; then: dragoman learn check {number}")


@app.command()
def check(number: Number) -> None:
    """Grade your answers to a chapter's exercises, on inputs that nobody has seen.

    Example: dragoman learn check 3
    """
    _chapter(number)
    answers, left = read_answers(number), _check_own(number)
    for exercise in exercises_of(number):
        verdict = graded(exercise, answers)
        typer.echo(f"{exercise.name}: {verdict}")
        if verdict == "right":
            record("exercises", f"{number}-{exercise.name}")
        else:
            left += 1
    if left:
        raise typer.Exit(1)


def _check_own(number: int) -> int:
    """Grade the chapter's pieces of the reader's own Transformer: the number of those that are not right."""
    left = 0
    for name, verdict in mini.verdicts(number).items():
        typer.echo(f"{mini.PATH}, {name}: {verdict}")
        if verdict == translated("right"):
            record("exercises", f"mini-{name}")
        else:
            left += 1
    return left


@app.command()
def audit(
    module: Annotated[Path, typer.Argument(help="Your Transformer or LSTM.", show_default=False)],
    adapter: Annotated[
        Path | None, typer.Option("--adapter", help="A file that says how your model is called.", show_default=False)
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Write such a file, to be filled in.")] = False,
    lang: Annotated[str, typer.Option("--lang", help="The language of the sentences: en or zh.")] = "en",
) -> None:
    """Test your own Transformer or LSTM: each fault in one sentence, with a number that was measured, and the line.

    Example: dragoman learn audit mini_transformer.py
    """
    use_language(lang)
    if template:
        typer.echo(auditing.write_template(module))
        return
    findings = limited(auditing.audit, str(module), str(adapter or ""), seconds=auditing.SECONDS)
    for finding in findings:
        typer.echo(finding)
    if findings:
        raise typer.Exit(1)
    typer.echo(translated("no fault is there to be seen: {count} checks").format(count=len(auditing.CHECKS)))


@app.command("mini")
def compare_mini(
    seconds: Annotated[float, typer.Option("--seconds", help="The time that your model trains.", min=1.0)] = 60.0,
) -> None:
    """Train mini_transformer.py and Dragoman on the same batches, from the same weights: speed, loss and BLEU of both.

    Example: dragoman learn mini
    """
    typer.echo(mini_compare.table(limited(mini_compare.compare_file, str(mini.PATH), seconds)))


@app.command()
def bug(
    number: Annotated[int | None, typer.Argument(help="The bug's number.", show_default=False)] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List what is to be seen of each.")] = False,
    check_it: Annotated[bool, typer.Option("--check", help="Judge the function that you have fixed.")] = False,
    name: Annotated[str, typer.Option("--name", help="Say which bug it is: a, b, c or d.", show_default=False)] = "",
    page: Annotated[bool, typer.Option("--markdown", hidden=True)] = False,
) -> None:
    """Plant a bug in Dragoman's own code (for this command alone), show what it does, and let you mend it.

    Example: dragoman learn bug 7
    """
    if page:
        typer.echo(lesson.symptoms_page(), nl=False)
        return
    if list_all or number is None:
        done = progress()["bugs"]
        for place, one in enumerate(BUGS, start=1):
            typer.echo(f"{place:>3} {'fixed ' if str(place) in done else '      '}  {one.symptom}")
        return
    planted, names = lesson.bug_of(number), lesson.names_to_choose_from(number)
    if name:
        if name not in lesson.LETTERS:
            raise Error.UNKNOWN_NAME(f"--name is one of {', '.join(lesson.LETTERS)}")
        right = names[lesson.LETTERS.index(name)] == planted.name
        typer.echo(f"{name}: {'yes' if right else 'no'}, {names[lesson.LETTERS.index(name)]}")
        raise typer.Exit(0 if right else 1)
    if check_it:
        lesson.check_fix(number)
        record("bugs", str(number))
        typer.echo(f"fixed: {planted.name}. {planted.why}")
        typer.echo(f"the self-test that catches it: {planted.selftest} (src/dragoman/learn/selftests.py)")
        return
    _show_bug(number)


def _show_bug(number: int) -> None:
    bug = lesson.bug_of(number)
    typer.echo(f"What you see: {bug.symptom}")
    say("measuring, some ten seconds")
    sound, wrong = lesson.figures(bug)
    typer.echo(f"Measured, {bug.figure.words}: {sound:.4g} in a sound model, {wrong:.4g} with the bug.")
    typer.echo(save(lesson.lesson_figure(bug, (sound, wrong)), f"bug{number:02}.png"))
    typer.echo(lesson.write_bug(number))
    choices = zip(lesson.LETTERS, lesson.names_to_choose_from(number), strict=True)
    typer.echo("Which is it? " + "; ".join(f"{letter}: {name}" for letter, name in choices))
    say(f"name it: dragoman learn bug {number} --name a; mend it in {lesson.bug_path(number)}, then: --check")


def _chapter(number: int) -> Any:
    by_number = {chapter.number: chapter for chapter in chapters()}
    if number not in by_number:
        raise Error.UNKNOWN_NAME(f"there are chapters 0 to {max(by_number)}, and no chapter {number}")
    return by_number[number]


def _run(chapter: Any) -> None:
    """In the terminal, a cell at a time."""

    def before(cell: Cell) -> None:
        if not cell.is_check:
            typer.echo(f"\n{cell.text}\n")
        if cell.is_code and not cell.is_check and sys.stdin.isatty():
            say("(Enter runs this)")
            sys.stdin.readline()

    for _, output in run(chapter, before):
        typer.echo(output.text, nl=False)
        for name, svg, _ in output.figures:
            path = Path(f"{chapter.name}-{name}.svg")
            path.write_text(svg, encoding="utf-8")
            typer.echo(f"(the figure is in {path})")
