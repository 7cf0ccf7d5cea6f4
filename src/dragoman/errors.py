"""The one exception for mistakes that a person can mend, and the codes that tell one mistake from another."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any


def show(path: str | Path) -> str:
    """The path for a message, which stays one readable line whatever the file is called."""
    return str(path) if str(path).isprintable() else repr(str(path))


class DragomanError(ValueError):
    """Bad input, a bad setting, a damaged file.

    Its text is one line: in which file and line, what is wrong, and what to do about it (`hint`). Programs look at
    `code`, `file` and `line`; the wording may change. A message that begins with a space goes on after the file's name:
    " is empty". The command line prints the text to stderr and exits with code 2; anything else that is raised is a bug
    of ours.
    """

    def __init__(
        self,
        code: "Error",
        message: str,
        hint: str | None = None,
        *,
        file: str | Path | None = None,
        line: int | None = None,
    ) -> None:
        # ValueError.__init__ is left out: `args` stay those of the call, so that a subclass can be pickled as well
        self.code, self.file, self.line, self.hint = code, None if file is None else str(file), line, hint
        if self.file is not None:
            place = show(self.file) if line is None else f"{show(self.file)}:{line}"
            message = f"{place}{'' if message.startswith(' ') else ': '}{message}"
        self.text = message if hint is None else f"{message}: {hint}"

    def __str__(self) -> str:
        return self.text

    def within(self, context: str, hint: str | None = None) -> "DragomanError":
        """The same mistake, of the same place, with words before it that say what it keeps from being done."""
        error = DragomanError(self.code, f"{context}{self}", hint)
        error.file, error.line, error.hint = self.file, self.line, hint or self.hint
        return error

    def as_dict(self) -> dict[str, Any]:
        """The error for another program: its text, code, file, line and hint."""
        return {"error": self.text, "code": self.code, "file": self.file, "line": self.line, "hint": self.hint}

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> "DragomanError":
        """The error that `as_dict` has told, of another process."""
        error = cls(next(one for one in Error if one == values["code"]), values["error"])
        error.file, error.line, error.hint = values["file"], values["line"], values["hint"]
        return error


class Error(StrEnum):
    """The kinds of mistakes. A code never changes; called, it makes an error:

    >>> str(Error.EMPTY(" is empty", file="corpus.de"))
    'corpus.de is empty'
    """

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "Error":
        code = str.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

    def __call__(
        self, message: str, hint: str | None = None, *, file: str | Path | None = None, line: int | None = None
    ) -> DragomanError:
        return DragomanError(self, message, hint, file=file, line=line)

    # files
    MISSING_FILE = "missing-file", "A file or folder is not there."
    ALREADY_THERE = "already-there", "What is to be made is there already; nothing is written over."
    SAME_FILE = "same-file", "The output, or a second input, is the file that is read."
    WRONG_FILE_TYPE = "wrong-file-type", "A file is not of the kind that its name or its place says."
    UNKNOWN_FORMAT = "unknown-format", "Files of this kind are not read or written here."
    CANNOT_READ = "cannot-read", "The system or a library refuses to read."
    CANNOT_WRITE = "cannot-write", "The system refuses to write, or the text does not fit the file's encoding."
    NO_SPACE = "no-space", "The disk has too little room left."
    DAMAGED = "damaged", "A file is cut off, or its content is not what it was."
    CHANGED = "changed", "A file is another one than before."
    UNSAFE = "unsafe", "A file that might run code, or grow without end, is not opened."
    LOCKED = "locked", "A file is protected by a password."
    TOO_LARGE = "too-large", "More than is read or made here."
    NOT_UTF8 = "not-utf8", "A text in another encoding than it should be in."
    NOT_TEXT = "not-text", "Characters that no text has."
    BAD_SYNTAX = "bad-syntax", "Not valid YAML, JSON, XML or Python."
    WRONG_SHAPE = "wrong-shape", "A line, a column or a field is not as this kind of file has it."
    EMPTY = "empty", "Nothing is left to work on."
    TOO_FEW = "too-few", "Less than is needed."
    UNEQUAL_COUNTS = "unequal-counts", "Things that belong together one by one are not equally many."
    # options and settings
    MISSING_OPTION = "missing-option", "An option, an argument or a setting is needed and was not given."
    CONFLICT = "conflict", "Two things were given that do not go together."
    WRONG_OPTION = "wrong-option", "An option or an argument cannot have this value."
    UNKNOWN_SETTING = "unknown-setting", "There is no setting of this name."
    WRONG_SETTING = "wrong-setting", "A setting cannot have this value, or not beside the other settings."
    OUT_OF_RANGE = "out-of-range", "A number is too small or too large."
    UNKNOWN_NAME = "unknown-name", "None of the choices has this name."
    UNSUPPORTED = "unsupported", "This model, engine or run cannot do what is asked."
    # runs and models
    NOT_A_RUN = "not-a-run", "A folder is no run directory."
    WRONG_TASK = "wrong-task", "A run or recipe of another task."
    NO_CHECKPOINT = "no-checkpoint", "A run has no such checkpoint."
    OTHER_CONTENT = "other-content", "A folder holds what other settings, texts or models began."
    OTHER_VERSION = "other-version", "Made by another version of Dragoman."
    IN_USE = "in-use", "Another process works there."
    MISMATCH = "mismatch", "Models, tokenizers or weights do not fit each other."
    LANGUAGES_DIFFER = "languages-differ", "A run translates between other languages."
    NO_SUCH_LANGUAGE = "no-such-language", "A language or direction that is not there."
    LANGUAGE_NOT_SERVED = "language-not-served", "A text in a language that nothing here translates."
    UNKNOWN_TOKEN = "unknown-token", "The vocabulary has no such token."
    MISSING_CORPUS = "missing-corpus", "The text that a run was trained on is not there any more."
    NOT_CALIBRATED = "not-calibrated", "A run has no calibration of its confidence, or one of another checkpoint."
    CANNOT_IMPORT = "cannot-import", "A model of another program that cannot be taken over exactly."
    CANNOT_EXPORT = "cannot-export", "A run that another program cannot hold exactly."
    EXPORT_DIFFERS = "export-differs", "An export that does not translate as its run does."
    # texts and searches
    BLANK = "blank", "A text without a word."
    TOO_LONG = "too-long", "A text of more tokens than a model or a batch takes."
    SEARCH_FAILED = "search-failed", "No translation keeps to all rules of the search."
    DIVERGED = "diverged", "A model computes no usable numbers: its training diverged, or it is damaged."
    BAD_CORPUS = "bad-corpus", "A finding of the doctor that keeps a corpus from being used."
    WRONG_ANSWER = "wrong-answer", "An answer to an exercise is not right."
    # the machine and other programs
    NOT_INSTALLED = "not-installed", "An optional package is not installed."
    NO_DEVICE = "no-device", "This machine has no such device."
    OUT_OF_MEMORY = "out-of-memory", "A batch does not fit into memory."
    NO_NETWORK = "no-network", "Something cannot be downloaded."
    CANNOT_LISTEN = "cannot-listen", "The server's address is taken or not allowed."
    EXTERNAL_FAILED = "external-failed", "Another program or a library ended with an error."
    PROCESS_FAILED = "process-failed", "One of several processes ended or did not come."
    INCOMPLETE = "incomplete", "Part of the work could not be done."
    INTERRUPTED = "interrupted", "Stopped before the end."
    FAULT = "fault", "A mistake of Dragoman itself, which a file has brought to light."


def not_installed(what: str, extra: str) -> DragomanError:
    """The error for an optional package that is needed, and the extra of ours that brings it.

    Called where an import failed: a package that is there and does not load has to go first, else pip keeps it.
    """
    hint, failed = f"pip install 'dragoman[{extra}]'", sys.exception()
    if isinstance(failed, ImportError) and not isinstance(failed, ModuleNotFoundError):
        what += f", and what is installed does not load ({' '.join(str(failed).split())})"
        hint = f"remove it with pip uninstall, then {hint}"
    return Error.NOT_INSTALLED(what, hint)


class SaidElsewhere(DragomanError):
    """A mistake that another process, which trains with this one, has told already."""

    def __init__(self, text: str) -> None:
        super().__init__(Error.PROCESS_FAILED, text)


class WrongType(DragomanError, TypeError):
    """An argument of a type that a function does not take."""

    def __init__(self, text: str) -> None:
        super().__init__(Error.WRONG_SHAPE, text)


@contextmanager
def writing(path: str | Path, remedy: str = "free space or mend permissions") -> Iterator[None]:
    """Tell a full disk or a missing permission as what could not be written, `path`, and what to do."""
    try:
        yield
    except OSError as error:
        raise Error.CANNOT_WRITE(f"cannot be written: {error.strerror or error}", remedy, file=path) from error
