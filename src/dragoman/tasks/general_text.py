"""Fine-tuning without forgetting: text like that which a model was trained on, to mix in and to measure on.

Where such text is to be had in the source language alone, the model's own translations of it, made before it goes on,
are the other side ("pseudo-rehearsal", Robins 1995; "Learning without Forgetting", Li and Hoiem 2016).
"""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, Error, writing
from dragoman.evaluation.comparison import Compared, Pairs, compare
from dragoman.inference.loading import corpus_settings
from dragoman.inference.search_translator import STREAM_LINES, SearchTranslator
from dragoman.progress import Progress, say
from dragoman.runs import atomic_io
from dragoman.runs.directory import check_run_dir
from dragoman.runs.log import RunLog
from dragoman.tasks.auto_recipe import hold_out
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import find, in_chunks, read_lines
from dragoman.text.sources.base import PairSource

OWN_LINES = 20_000
"""Lines of general text that the model itself translates, at most."""

COMPARED = 500
"""Pairs of each kind of text that both models translate, at most."""


@dataclass(frozen=True)
class GeneralText:
    """Text of the old kind."""

    train: Any
    """A `Source` to mix in; None: nothing."""
    test: Pairs
    """Pairs to see on what was forgotten; none where there is no such text."""


def general_text(run: Path, src: Path | None, tgt: Path | None, mix: bool | None, directory: Path) -> GeneralText:
    """The text that was given, or else that which the run was trained and validated on, if it is still there.

    Of a text that is given some pairs are held out in `directory`, the new run's. Without `tgt` the run itself
    translates `src`, its first OWN_LINES lines. Raises DragomanError where `mix` asks for text that is not there.
    """
    if src is not None:
        if tgt is None:
            src, tgt = _own_translations(run, src, directory / "general-own")
        given = FilesSource(src=str(src), tgt=str(tgt))
        files = hold_out(str(src), str(tgt), sum(1 for _ in given.pairs()), directory / "general")
        train, valid = (FilesSource(src=one, tgt=other) for one, other in files)
        return GeneralText(None if mix is False else train, sample(valid, COMPARED))
    corpus = corpus_settings(check_run_dir(run))
    there = bool(sample(corpus.train, 1))
    if not there:
        if mix:
            raise Error.MISSING_CORPUS(
                "its training text is not here any more", "give --general-src and --general-tgt", file=run
            )
        say(f"{run}: its training text is not here: your text alone is learnt, and other text may be translated worse")
    return GeneralText(corpus.train if there and mix is not False else None, sample(corpus.valid, COMPARED))


def _own_translations(run: Path, src: Path, directory: Path) -> tuple[Path, Path]:
    """Lines of a text and what the run makes of them, as two files of `directory`; those of an earlier call serve."""
    files = directory / "general.src", directory / "general.tgt"
    lines = list(dict.fromkeys(line.strip() for line in itertools.islice(read_lines(find(str(src))), OWN_LINES)))
    lines = [line for line in lines if line]
    text = "".join(f"{line}\n" for line in lines)
    if all(path.is_file() for path in files) and files[0].read_text(encoding="utf-8") == text:
        return files
    translator = SearchTranslator.load(run)
    with Progress("the model translates general text", len(lines)) as bar, writing(directory):
        found: list[str] = []
        for chunk in in_chunks(lines, STREAM_LINES):
            found += translator.translate(chunk)
            bar.advance(len(chunk))
        directory.mkdir(parents=True, exist_ok=True)
        atomic_io.replace_text(files[1], "".join(f"{line}\n" for line in found))
        atomic_io.replace_text(files[0], text)
    return files


def sample(source: PairSource, count: int, seed: int = 1) -> Pairs:
    """Some pairs of a source, the same each time; none of one that is not here any more."""
    try:
        pairs = [(pair.src, pair.tgt) for pair in itertools.islice(source.pairs(), 200_000) if pair.src.strip()]
    except DragomanError:
        return []
    return random.Random(seed).sample(pairs, min(count, len(pairs)))


def gained_and_lost(recipe: Any, general: GeneralText, device: str = "auto") -> list[Compared]:
    """Say what the new run has gained on its own validation pairs and lost on general ones, and log it."""
    own = sample(recipe.corpus.valid, COMPARED)
    # Greedy: what is to be seen is a difference, and a model on text that is strange to it searches for long.
    before, after = (
        SearchTranslator.load(run, device=device, beam_size=1) for run in (recipe.init_from, recipe.run_dir)
    )
    sets = {"your text": own, "general text": general.test}
    compared = [compare(name, before, after, pairs) for name, pairs in sets.items() if pairs]
    with RunLog(Path(recipe.run_dir)) as log:
        for one in compared:
            say(str(one))
            log.event("compared", **vars(one))
    return compared
