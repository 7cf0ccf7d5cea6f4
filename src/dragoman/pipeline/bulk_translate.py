"""The translator of a worker of bulk translation, and its identity."""

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path

from dragoman.inference.search_translator import STREAM_LINES
from dragoman.pipeline.bulk import Translate
from dragoman.pipeline.lines import Form
from dragoman.pipeline.options import TranslateOptions, assemble
from dragoman.runs import checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.text.lines import in_chunks


def identity(options: TranslateOptions, form: Form) -> str:
    """SHA-256 over weights and options: what two workers must have in common."""
    weights = checkpoint.inference_digest(checkpoint.select(check_run_dir(options.run), options.which))
    return hashlib.sha256(f"{weights} {replace(options, run=Path(), device='')} {form}".encode()).hexdigest()


def translating(options: TranslateOptions, form: Form) -> Translate:
    """A function that translates the lines of a block, whose model is loaded now."""
    pipeline = replace(assemble(options), warn=form.as_json)

    def translate(first: int, lines: list[str]) -> list[str]:
        found = itertools.chain.from_iterable(map(pipeline.texts, in_chunks(iter(lines), STREAM_LINES)))
        pairs = enumerate(zip(lines, found, strict=True), start=first)
        return [form.text(pipeline, number, src, translated.items) for number, (src, translated) in pairs]

    return translate
