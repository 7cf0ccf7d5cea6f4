"""Self-tests for a learner's own Transformer or LSTM: which property is missing, by how much, and in which line."""

import warnings
from pathlib import Path

import torch

from dragoman.errors import Error
from dragoman.learn.audit.checks import CHECKS
from dragoman.learn.audit.finding import Finding
from dragoman.learn.audit.subject import TEMPLATE, Subject, subject_of
from dragoman.learn.language import translated, translated_code
from dragoman.learn.limited import allow, reason
from dragoman.runs.atomic_io import replace_text

SECONDS = 120.0
"""The time of a whole audit."""
ONLY_CAUSE = {"weights-unregistered", "nan", "dropout-in-evaluation", "state-kept"}
"""Faults that other checks would only see again."""


def audit(path: str, adapter: str = "", hint: str | None = None) -> list[Finding]:
    """The faults of the model in a file. Raises DragomanError, with `hint`, where it cannot be built or called."""
    allow(SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the learner's code may do what PyTorch warns of
        return _findings(subject_of(Path(path), Path(adapter) if adapter else None, hint))


def _findings(subject: Subject) -> list[Finding]:
    findings: list[Finding] = []
    for check in CHECKS:
        torch.manual_seed(1)
        try:
            findings += check(subject)
        except Exception as error:
            findings.append(Finding("stopped", None, {"name": check.__name__, "reason": reason(error)}))
        if findings and findings[-1].fault in ONLY_CAUSE:
            break
    return findings


def write_template(path: Path) -> Path:
    """An adapter to fill in, beside a module. Raises DragomanError where there is one already."""
    adapter = path.with_name(f"{path.stem}_adapter.py")
    if adapter.exists():
        raise Error.ALREADY_THERE(translated(" is there already"), file=adapter)
    replace_text(adapter, translated_code(TEMPLATE).format(name=adapter.name, module=path.stem))
    return adapter
