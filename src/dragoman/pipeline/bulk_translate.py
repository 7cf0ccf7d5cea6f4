"""The translator of a worker of bulk translation, and its identity."""

import hashlib
from dataclasses import replace
from pathlib import Path

from dragoman.inference.search_translator import STREAM_LINES
from dragoman.pipeline.bulk import Translate
from dragoman.pipeline.output import Form
from dragoman.pipeline.pipeline import TranslateOptions, assemble, splits_lines, translate_lines
from dragoman.runs import checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.text.lines import in_chunks


def identity(options: TranslateOptions, form: Form) -> str:
    """SHA-256 over weights and options: what two workers must have in common."""
    weights = checkpoint.inference_digest(checkpoint.select(check_run_dir(options.run), options.which))
    return hashlib.sha256(f"{weights} {replace(options, run=Path(), device='')} {form}".encode()).hexdigest()


def translating(options: TranslateOptions, form: Form) -> Translate:
    """A function that translates the lines of a block, whose model is loaded now."""
    assembled = assemble(options)
    split = options.split if splits_lines(options, assembled.n_best) else ""

    def translate(first: int, lines: list[str]) -> list[str]:
        pairs = [
            pair
            for pairs in translate_lines(assembled, in_chunks(iter(lines), STREAM_LINES), None, split)
            for pair in pairs
        ]
        return [form.text(assembled, number, src, found) for number, (src, found) in enumerate(pairs, start=first)]

    return translate
