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
from dragoman.learn import answers, lesson, mini, mini_compare
from dragoman.learn import audit as auditing
from dragoman.learn.answers import NOT_WRITTEN, progress, record, write_answers
from dragoman.learn.bugs import BUGS
from dragoman.learn.chapter import Cell, chapters, notebook, notebook_name, run
from dragoman.learn.exercises import exercises_of
from dragoman.learn.language import LANGUAGES, current_language, message, translated, use_language
from dragoman.learn.limited import limited
from dragoman.progress import say
from dragoman.runs.atomic_io import replace_text


class LearnGroup(TyperGroup):
    """`learn 3` is `learn open 3`, also behind the language."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        place = 2 if args[:1] == ["--lang"] else 0
        if args[place : place + 1] and args[place].isdigit():
            args = [*args[:place], "open", *args[place:]]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=LearnGroup, invoke_without_command=True, help=__doc__)
Number = Annotated[int, typer.Argument(help="The chapter's number.", show_default=False)]
Language = Annotated[
    str, typer.Option("--lang", help="The language, en or zh; this folder remembers it.", show_default=False)
]


@app.callback()
def learn(ctx: typer.Context, lang: Language = "") -> None:
    if ctx.invoked_subcommand is None:
        list_chapters(lang)
    elif lang:
        _speak(lang)


def _speak(lang: str) -> None:
    """Use a language from now on, also in later commands; without one, the language of earlier commands."""
    before = progress()["language"]
    if before in LANGUAGES or not lang:
        use_language(before)
    if lang:
        use_language(lang)
        answers.remember_language(lang)


@app.command("list")
def list_chapters(lang: Language = "") -> None:
    """List the chapters, and what you have done of them in this folder."""
    _speak(lang)
    done = progress()
    for chapter in chapters():
        names = [f"{chapter.number}-{one.name}" for one in exercises_of(chapter.number)]
        right = sum(name in done["exercises"] for name in names)
        title = chapter.title_in(current_language())
        text = message("exercises {right} of {all}", right=right, all=len(names))
        typer.echo(f"{chapter.number:>3}  {_filled(title)}{text}")
    bugs = message("bugs {right} of {all}", right=len(done["bugs"]), all=len(BUGS))
    typer.echo(f"     {_filled(message('The laboratory'))}{bugs}")
    say(message("dragoman learn 1 opens a chapter, learn check 1 grades its exercises, learn bug 1 plants a bug"))


def _filled(title: str) -> str:
    return title + " " * max(1, 58 - display_width(title))


@app.command("open")
def open_chapter(
    number: Number,
    run: Annotated[bool, typer.Option("--run", help="Run it here, a cell at a time.")] = False,
    lang: Language = "",
) -> None:
    """Write a chapter's notebook and its exercises into this folder; without Jupyter run it here, a cell at a time.

    Example: dragoman learn 3
    """
    _speak(lang)
    language = current_language()
    chapter = _chapter(number).in_language(language)
    written = write_answers(number)
    has_jupyter = any(importlib.util.find_spec(name) for name in ("notebook", "jupyterlab", "ipykernel"))
    path = Path(notebook_name(chapter, language))
    if not path.exists():
        replace_text(path, notebook(chapter))
    typer.echo(path)
    typer.echo(written)
    if own := mini.write(number):
        typer.echo(own)
    if run or (not has_jupyter and sys.stdin.isatty()):
        _run(chapter)
    elif has_jupyter:
        say(message("open it with: jupyter lab {path}", path=path))
    else:
        text = "to open it: pip install jupyterlab, then jupyter lab {path}; or here: dragoman learn {number} --run"
        say(message(text, path=path, number=number))
    say(message("the exercises are in {file}; then: dragoman learn check {number}", file=written, number=number))


@app.command()
def check(
    number: Number,
    hint: Annotated[str, typer.Option("--hint", help="Show the next hint for this exercise.", show_default=False)] = "",
    solution: Annotated[
        str, typer.Option("--solution", help="Show its solution, after two wrong answers.", show_default=False)
    ] = "",
    lang: Language = "",
) -> None:
    """Grade your answers to a chapter's exercises, on inputs that nobody has seen; or show a hint, or a solution.

    Each answer runs in a process of its own, for a minute at most.

    Example: dragoman learn check 5 --hint sequence_mask
    """
    _speak(lang)
    _chapter(number)
    if hint:
        place, count, text = answers.next_hint(answers.exercise_of(number, hint))
        typer.echo(message("hint {place} of {count}: {text}", place=place, count=count, text=text))
        if place == count:
            say(message("there are no more hints"))
        return
    if solution:
        _show_solution(number, solution)
        return
    left = _check_own(number)
    for exercise, problem, printed in answers.verdicts(number):
        left += bool(problem)
        typer.echo(f"{exercise.name}: {message('right') if not problem else translated(problem)}")
        for line in printed:
            typer.echo(f"  | {line}")
        if not problem:
            record("exercises", f"{number}-{exercise.name}")
            typer.echo(f"  {exercise.why()}")
        elif problem != NOT_WRITTEN:
            option = "hint" if answers.record_try(exercise) < answers.TRIES else "solution"
            say(f"  dragoman learn check {number} --{option} {exercise.name}")
    if left:
        raise typer.Exit(1)


def _show_solution(number: int, name: str) -> None:
    exercise = answers.exercise_of(number, name)
    tries = answers.tries_left(exercise)
    if tries:
        typer.echo(message("{name}: {tries} more wrong answers, then its solution may be seen", name=name, tries=tries))
        raise typer.Exit(1)
    typer.echo(exercise.solved())
    typer.echo(f"# {exercise.why()}")


def _check_own(number: int) -> int:
    """Grade the chapter's pieces of the reader's own Transformer: the number of pieces that are not right."""
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
    lang: Language = "",
) -> None:
    """Test your own Transformer or LSTM: each fault in one sentence, with a number that was measured, and the line.

    Example: dragoman learn audit mini_transformer.py
    """
    _speak(lang)
    if template:
        typer.echo(auditing.write_template(module))
        return
    command = f"dragoman learn audit {module} --template"
    hint = message("`{command}` writes an adapter, in which you say how it is called", command=command)
    findings = limited(auditing.audit, str(module), str(adapter or ""), hint, seconds=auditing.SECONDS)
    for finding in findings:
        typer.echo(finding)
    if findings:
        raise typer.Exit(1)
    typer.echo(translated("no fault is there to be seen: {count} checks").format(count=len(auditing.CHECKS)))


@app.command("mini")
def compare_mini(
    seconds: Annotated[float, typer.Option("--seconds", help="The time that your model trains.", min=1.0)] = 60.0,
    lang: Language = "",
) -> None:
    """Train mini_transformer.py and Dragoman on the same batches, from the same weights: speed, loss and BLEU of both.

    Example: dragoman learn mini
    """
    _speak(lang)
    typer.echo(mini_compare.table(limited(mini_compare.compare_file, str(mini.PATH), seconds)))


@app.command()
def bug(
    number: Annotated[int | None, typer.Argument(help="The bug's number.", show_default=False)] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List what is to be seen of each bug.")] = False,
    check_it: Annotated[bool, typer.Option("--check", help="Judge the function that you have fixed.")] = False,
    name: Annotated[str, typer.Option("--name", help="Say which bug it is: a, b, c or d.", show_default=False)] = "",
    page: Annotated[bool, typer.Option("--markdown", hidden=True)] = False,
    lang: Language = "",
) -> None:
    """Plant a bug in Dragoman's own code (for this command alone), show what it does, and let you mend it.

    Example: dragoman learn bug 7
    """
    if page:
        typer.echo(lesson.symptoms_page(), nl=False)
        return
    _speak(lang)
    if list_all or number is None:
        done = progress()["bugs"]
        for place, one in enumerate(BUGS, start=1):
            fixed = message("fixed") if str(place) in done else ""
            typer.echo(f"{place:>3} {fixed}{' ' * (6 - display_width(fixed))}  {translated(one.symptom)}")
        return
    planted, names = lesson.bug_of(number), lesson.names_to_choose_from(number)
    if name:
        if name not in lesson.LETTERS:
            raise Error.UNKNOWN_NAME(message("--name is one of {letters}", letters=", ".join(lesson.LETTERS)))
        right = names[lesson.LETTERS.index(name)] == planted.name
        text = "yes, {name}" if right else "no, it is not: {name}"
        typer.echo(f"{name}: {message(text, name=translated(names[lesson.LETTERS.index(name)]))}")
        raise typer.Exit(0 if right else 1)
    if check_it:
        lesson.check_fix(number)
        record("bugs", str(number))
        typer.echo(message("fixed: {name}. {why}", name=translated(planted.name), why=translated(planted.why)))
        text = "the self-test that catches it: {test} (src/dragoman/learn/selftests.py)"
        typer.echo(message(text, test=planted.selftest))
        return
    _show_bug(number)


def _show_bug(number: int) -> None:
    bug = lesson.bug_of(number)
    typer.echo(message("What you see: {symptom}", symptom=translated(bug.symptom)))
    say(message("measuring, some ten seconds"))
    sound, wrong = lesson.figures(bug)
    values = {"figure": translated(bug.figure.words), "sound": f"{sound:.4g}", "wrong": f"{wrong:.4g}"}
    typer.echo(message("Measured, {figure}: {sound} in a sound model, {wrong} with the bug.", **values))
    typer.echo(save(lesson.lesson_figure(bug, (sound, wrong)), f"bug{number:02}.png"))
    typer.echo(lesson.write_bug(number))
    choices = zip(lesson.LETTERS, lesson.names_to_choose_from(number), strict=True)
    named = "; ".join(f"{letter}: {translated(name)}" for letter, name in choices)
    typer.echo(message("Which is it? {choices}", choices=named))
    text = "name it: dragoman learn bug {number} --name a; mend it in {file}, then: --check"
    say(message(text, number=number, file=lesson.bug_path(number)))


def _chapter(number: int) -> Any:
    by_number = {chapter.number: chapter for chapter in chapters()}
    if number not in by_number:
        text = "there are chapters 0 to {last}, and no chapter {number}"
        raise Error.UNKNOWN_NAME(message(text, last=max(by_number), number=number))
    return by_number[number]


def _run(chapter: Any) -> None:
    """In the terminal, a cell at a time."""

    def before(cell: Cell) -> None:
        if not cell.is_check:
            typer.echo(f"\n{cell.text}\n")
        if cell.is_code and not cell.is_check and sys.stdin.isatty():
            say(message("(Enter runs this)"))
            sys.stdin.readline()

    for _, output in run(chapter, before):
        typer.echo(output.text, nl=False)
        for name, svg, _ in output.figures:
            path = Path(f"{chapter.name}-{name}.svg")
            path.write_text(svg, encoding="utf-8")
            typer.echo(message("(the figure is in {path})", path=path))
