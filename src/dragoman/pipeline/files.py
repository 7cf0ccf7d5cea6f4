"""The work of `dragoman translate RUN FILE ...`: whole files in, whole files out, with everything in its place."""

import functools
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DragomanError, Error, writing
from dragoman.formats.base import Item, Options, Unit
from dragoman.formats.document import FORMATS, Document, is_compiled, is_known
from dragoman.formats.pdf import output_path
from dragoman.inference.loading import corpus_settings
from dragoman.inference.translation import NBest, Translation
from dragoman.pipeline.document import DocumentTranslator, Report
from dragoman.pipeline.options import FileOptions, TranslateOptions, build_pipeline
from dragoman.pipeline.pipeline import Pipeline
from dragoman.progress import Progress, say
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.directory import check_run_dir

SHOWN_DOUBTS = 20
PARTIAL = ".partial"


class FileTask(NamedTuple):
    """A file, and where its translation goes."""

    source: Path
    target: Path
    is_copy: bool = False
    """True for a file that holds no text, such as a picture: it is copied."""
    is_compiled: bool = False
    """True for a file that is named like a text format but is compiled: it is copied."""


def run_on_files(options: TranslateOptions, paths: Sequence[Path], choices: FileOptions) -> int:
    """Translate files and folders; the number of texts in doubt.

    Raises DragomanError for what cannot be read or written, before the translator is loaded where that can be told.
    """
    src, tgt = options.languages
    if not (src and tgt):
        known = corpus_settings(check_run_dir(options.run))
        src, tgt = src or known.src_lang, tgt or known.tgt_lang
    tasks = tasks_of(paths, choices, f"{src}-{tgt}" if choices.bilingual and src and tgt else tgt)
    pipeline = build_pipeline(options)
    digest = checkpoint.inference_digest(checkpoint.select(options.run, options.which))
    chosen = replace(options, run=Path(), device="")
    return translate_files(pipeline, tasks, choices, hashlib.sha256(f"{digest} {chosen}".encode()).hexdigest())


def tasks_of(paths: Sequence[Path], choices: FileOptions, language: str) -> list[FileTask]:
    """The files to translate. A folder stands for all files in it, which keep their places: those of a known kind
    (tables only if their columns are named) are translated, the others are copied.

    Raises DragomanError for what does not go together.
    """
    output = choices.output
    for path in paths:
        if not path.exists():
            raise Error.MISSING_FILE("no such file or folder", file=path)
    if output and choices.is_folder and output.is_file():
        raise Error.WRONG_FILE_TYPE("is a file, and no folder", "leave out the slash", file=output)
    if len(paths) == 1 and paths[0].is_file():
        return [FileTask(paths[0], _target_of_one(paths[0], choices, language))]
    if output is None:
        raise Error.MISSING_OPTION("several files or a folder", "say with -o FOLDER where their translations go")
    if output.exists() and not output.is_dir():
        raise Error.WRONG_FILE_TYPE("is a file", "name a folder for several translations", file=output)
    tasks = []
    tables = () if choices.columns else FORMATS["csv"].suffixes
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in inside:
            relative = file.relative_to(path) if path.is_dir() else Path(file.name)
            hidden = any(part.startswith((".", "~$")) for part in relative.parts)
            if path.is_dir() and (hidden or output.resolve() in file.resolve().parents or is_partial(file)):
                continue
            target = output / relative
            compiled = path.is_dir() and is_compiled(file)
            is_copy = path.is_dir() and (file.suffix.lower() in tables or not is_known(file) or compiled)
            tasks.append(FileTask(file, _text_of_pdf(target), is_copy, compiled))
    if all(task.is_copy for task in tasks):
        raise Error.EMPTY("no file of a known kind in there", file=paths[0])
    targets = [task.target for task in tasks]
    if len(set(targets)) < len(targets):
        twice = max(targets, key=targets.count)
        raise Error.CONFLICT("the translation of two files would go there", "translate them one by one", file=twice)
    return tasks


def _text_of_pdf(target: Path) -> Path:
    """A place of a translation; of a PDF the text is translated alone."""
    return output_path(target) if target.suffix.lower() == ".pdf" else target


def _target_of_one(path: Path, choices: FileOptions, language: str) -> Path:
    output = choices.output
    if output is not None and (choices.is_folder or output.is_dir()):
        output = _text_of_pdf(output / path.name)
    if output is None:
        output = _text_of_pdf(path.with_name(f"{path.stem}.{language or 'translated'}{path.suffix}"))
    if output.exists() and path.samefile(output):
        raise Error.SAME_FILE("is the file that is read, and would be lost", "name another with -o", file=output)
    return output


def translate_files(pipeline: Pipeline, tasks: Sequence[FileTask], options: FileOptions, identity: str) -> int:
    """Translate files; the number of texts in doubt. A file that cannot be read is told and left out, if there are
    others; then, at the end, DragomanError is raised.

    `identity`: what a stored translation depends on, so that none of another model is taken up.
    """
    doubts = copied = 0
    failed: list[str] = []
    for task in tasks:
        if options.resume and len(tasks) > 1 and task.target.exists():
            say(f"{task.target}: is there already")
            continue
        try:
            if task.is_copy:
                copy_file(task)
                copied += 1
                if task.is_compiled:
                    say(f"{task.source}: no text, although its name is that of one: copied as it is")
                continue
            with _told_in_a_line(task):
                doubts += _translate_file(pipeline, task, options, identity)
        except DragomanError as error:
            if len(tasks) == 1:
                raise
            failed.append(str(error))
            say(f"left out: {error}")
    if copied:
        say(f"{copied:,} other files copied as they are")
    if failed:
        raise Error.INCOMPLETE(f"{len(failed)} of {len(tasks)} files could not be translated, {failed[0]}")
    return doubts


@contextmanager
def _told_in_a_line(task: FileTask) -> Iterator[None]:
    """Whatever a file holds that nobody thought of ends the work on this file alone. Raises DragomanError."""
    try:
        yield
    except (DragomanError, OSError):
        raise
    except Exception as error:
        mistake = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise Error.FAULT(
            f"a mistake of Dragoman ({mistake})", "please report it, with the file", file=task.source
        ) from error


def _translate_file(pipeline: Pipeline, task: FileTask, options: FileOptions, identity: str) -> int:
    document = Document.load(
        task.source,
        Options(
            str(task.source),
            pipeline.languages,
            options.everything,
            options.columns,
            options.asides,
            options.join_cues,
            options.bilingual,
            options.its,
        ),
    )
    total = sum(1 for _ in document.texts())
    with writing(task.target):
        task.target.parent.mkdir(parents=True, exist_ok=True)
    with _Journal(task.target, identity, options.resume) as journal:
        translate = DocumentTranslator(pipeline, lambda stage: functools.partial(journal.n_best, stage))
        with Progress(f"translating {task.source.name}", total) as bar:

            def of_units(units: Sequence[Unit]) -> list[tuple[Item, ...] | None]:
                translations = translate(units)
                bar.advance(len(units))
                return translations

            data = document.translated(of_units)
        with writing(task.target):
            atomic_io.replace_bytes(task.target, data)
    _tell(task, translate.report)
    return len(translate.report.doubts)


def copy_file(task: FileTask) -> None:
    """Copy a file to its place, whole or not at all. Raises DragomanError where it cannot be read or written."""
    with writing(task.target):
        task.target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_io.replaced(task.target) as partial:
            shutil.copy2(task.source, partial)


def is_partial(path: Path) -> bool:
    """True for what an unfinished translation has left beside its place."""
    return path.name.endswith(PARTIAL)


class _Journal:
    """Translations of an unfinished file, kept beside it until it is complete, so that a stopped command can go on."""

    def __init__(self, target: Path, identity: str, resume: bool) -> None:
        self.path = target.with_name(target.name + PARTIAL)
        self.identity, self.resume = identity, resume
        self.known: dict[str, Translation] = {}

    def __enter__(self) -> "_Journal":
        if self.resume and self.path.exists():
            self._read()
        known, self.known = self.known, {}
        with writing(self.path):
            self.file = self.path.open("w", encoding="utf-8")
            self.file.write(self._first_line() + "\n")
            for src, item in known.items():
                self.add(src, item)
        return self

    def _read(self) -> None:
        first, *lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        if first != self._first_line():
            raise Error.OTHER_CONTENT(
                "was begun with another model or other options", "delete it, or leave out `resume`", file=self.path
            )
        for line in lines:
            try:
                src, text, score, log_prob, warnings = json.loads(line)
            except ValueError:  # the last line, in the middle of which it was stopped
                break
            known = tuple(Warning(WarningKind(kind), detail) for kind, detail in warnings)
            self.known[src] = Translation(text, score, log_prob, known)

    def _first_line(self) -> str:
        return json.dumps({"identity": self.identity})

    def add(self, src: str, item: Translation) -> None:
        self.known[src] = item
        record = [src, item.text, item.score, item.log_prob, [(one.kind, one.detail) for one in item.warnings]]
        self.file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def n_best(self, translate: NBest, sentences: Sequence[str]) -> list[list[Translation]]:
        """The best translation of each sentence, each made once and written down."""
        new = [text for text in dict.fromkeys(sentences) if text not in self.known]
        for text, items in zip(new, translate(new) if new else [], strict=True):
            self.add(text, items[0])
        self.file.flush()
        return [[self.known[text]] for text in sentences]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.file.close()
        if kind is None:
            self.path.unlink()
        elif self.known:
            say(f"what was translated until then is kept in {self.path}: the same command with `resume` goes on")
        else:
            self.path.unlink()


def _tell(task: FileTask, report: Report) -> None:
    """Say on stderr what was done."""
    for listed, what in ((report.matches, "with a match of the memory"), (report.doubts, "in doubt")):
        for one in listed[:SHOWN_DOUBTS]:
            say(f"{task.source.name}, {one.where}: {'; '.join(map(str, one.reasons))}")
        if len(listed) > SHOWN_DOUBTS:
            say(f"... and {len(listed) - SHOWN_DOUBTS:,} more {what}")
    parts = [f"{report.translated:,} texts translated"]
    parts += [f"{count:,} left as they are ({reason})" for reason, count in report.kept.most_common()]
    counts = {
        "with the memory's help": report.remembered, "with matches of it": len(report.matches),
        "codes kept": report.codes,
        "with their codes around the whole": report.wrapped, "in doubt": len(report.doubts),
    }  # fmt: skip
    parts += [f"{count:,} {what}" for what, count in counts.items() if count]
    say(f"{task.target}: {', '.join(parts)}")
