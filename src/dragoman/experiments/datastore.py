"""The datastore of a run: made of its training text or of other pairs, tuned on its validation text."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.inference.nearest_neighbours import Datastore, build, tuned
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Ids
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import replaced
from dragoman.runs.directory import read_run
from dragoman.tasks import recipes
from dragoman.text.corpus import FilesSource, Pair

MOST_TUNED_ON = 2000
"""Validation pairs that the mixture is chosen by, at most."""


def make_datastore(
    run: Path,
    folder: Path,
    *,
    src: Path | None = None,
    tgt: Path | None = None,
    valid: tuple[Path | None, Path | None] = (None, None),
    which: str = "best",
    device: str = "auto",
) -> Datastore:
    """Read the run's training pairs, or files, into a datastore in a new folder, and choose its mixture by the run's
    validation pairs, or by the files `valid`.

    Raises DragomanError where there are no pairs, or the folder is there already.
    """
    read_run(run, "translation")
    if folder.exists():
        raise Error.ALREADY_THERE("is there already", "choose another folder with -o, or remove it", file=folder)
    recipe: Any = recipes.of_run(run)
    translator = SearchTranslator.load(run, which=which, device=device)
    read = _encoded(translator, _pairs(src, tgt, "`src` and `tgt`") or recipe.corpus.train.pairs())
    held_out = _pairs(*valid, "`valid_src` and `valid_tgt`") or recipe.corpus.valid.pairs()
    store = build(translator.model, read, checkpoint.inference_digest(checkpoint.select(run, which)))
    tuning = _encoded(translator, held_out)
    if not tuning:
        raise Error.EMPTY("there is no validation pair to choose the mixture by: `valid_src` and `valid_tgt`")
    say(f"choosing the mixture by {min(len(tuning), MOST_TUNED_ON):,} validation pairs")
    store = tuned(store, translator.model, tuning[:: max(1, -(-len(tuning) // MOST_TUNED_ON))])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replaced(folder) as partial:
        store.save(partial)
    return store


def _pairs(src: Path | None, tgt: Path | None, names: str) -> Iterable[Pair] | None:
    if (src is None) != (tgt is None):
        raise Error.MISSING_OPTION(f"{names}", "give both, or none")
    return None if src is None else FilesSource(src=str(src), tgt=str(tgt)).pairs()


def _encoded(translator: SearchTranslator, pairs: Iterable[Pair]) -> list[Ids]:
    """Ids of the pairs that the model reads whole; blank and longer ones are left out."""
    limit = translator.model.max_target_length or translator.max_src_tokens + 1
    found = []
    for pair in pairs:
        ids = (
            translator.tokenizers.src.encode(translator.normalize(pair.src)),
            translator.tokenizers.tgt.encode(translator.normalize(pair.tgt)),
        )
        if all(ids) and len(ids[0]) <= translator.max_src_tokens and len(ids[1]) < limit:
            found.append(ids)
    return found
