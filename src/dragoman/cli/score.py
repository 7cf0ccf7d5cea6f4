"""`dragoman score`: how probable a run finds given translations."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    Device,
    Ensemble,
    LengthPenalty,
    Precision,
    Run,
    Which,
    decoding_changes,
    precision_given,
)
from dragoman.cli.streams import text_output
from dragoman.inference import scoring
from dragoman.inference.search_translator import SearchTranslator
from dragoman.progress import Progress
from dragoman.runs.directory import check_run_dir
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import STREAM_LINES


def score(
    run: Run,
    src: Annotated[Path, typer.Option(help="Source text.")],
    tgt: Annotated[Path, typer.Option(help="Its translations: line n translates line n.")],
    length_penalty: LengthPenalty = None,
    ensemble: Ensemble = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with every token.")] = False,
    precision: Precision = None,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Score given translations: `score, tab, log probability` (nats) for each pair of lines.

    Example: dragoman score runs/mine --src test.de --tgt test.en
    """
    pairs = [(pair.src, pair.tgt) for pair in FilesSource(src=str(src), tgt=str(tgt)).pairs()]
    translator = SearchTranslator.load(
        check_run_dir(run),
        which=which,
        device=device,
        ensemble=ensemble or (),
        **precision_given(precision, ("float32", "bfloat16")),
        **decoding_changes(None, length_penalty),
    )
    with text_output(None) as write, Progress("scoring", len(pairs)) as bar:
        for start in range(0, len(pairs), STREAM_LINES):
            for scored in scoring.score(translator, pairs[start : start + STREAM_LINES], 1 + start):
                line = f"{scored.score:.6f}\t{scored.log_prob:.6f}"
                write((json.dumps(scored._asdict(), ensure_ascii=False) if as_json else line) + "\n")
                bar.advance()
