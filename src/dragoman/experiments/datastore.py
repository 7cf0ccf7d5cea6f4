"""The datastore of a run: made of its training text, of other pairs or of corrections, tuned on its validation text."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dragoman.errors import Error
from dragoman.experiments.corrections import Corrections
from dragoman.inference.nearest_neighbours import Datastore, build, tuned, tuned_by_itself
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Ids
from dragoman.pipeline.sentence_pairs import sentence_pairs
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import replaced
from dragoman.runs.directory import read_run
from dragoman.tasks import recipes
from dragoman.text.corpus import FilesSource, Pair

MAX_TUNING_PAIRS = 2000
"""Validation pairs that the mixture is chosen by, at most."""


def make_datastore(
    run: Path,
    folder: Path,
    *,
    corrections: Corrections | None = None,
    src: Path | None = None,
    tgt: Path | None = None,
    valid: tuple[Path | None, Path | None] = (None, None),
    which: str = "best",
    device: str = "auto",
) -> Datastore:
    """Read the run's training pairs, or `src` and `tgt`, into a datastore in a new folder, and choose its mixture by
    the run's validation pairs, or by the files `valid`.

    Of `corrections` few are enough: they are looked up where a text is like them, and other text stays as it is.

    Raises DragomanError where there are no pairs, or the folder is there already.
    """
    read_run(run, "translation")
    if folder.exists():
        raise Error.ALREADY_THERE("is there already", "choose another folder with -o, or remove it", file=folder)
    recipe: Any = recipes.of_run(run)
    translator = SearchTranslator.load(run, which=which, device=device)
    weights = checkpoint.inference_digest(checkpoint.select(run, which))
    given, held_out = _pairs(src, tgt, "`src` and `tgt`"), _pairs(*valid, "`valid_src` and `valid_tgt`")
    tuning = _encoded(translator, held_out or recipe.corpus.valid.pairs())
    if not tuning:
        raise Error.EMPTY("there is no validation pair to choose the mixture by: `valid_src` and `valid_tgt`")
    tuning = tuning[:: max(1, -(-len(tuning) // MAX_TUNING_PAIRS))]
    if corrections is None:
        store = build(translator.model, _encoded(translator, given or recipe.corpus.train.pairs()), weights)
        say(f"choosing the mixture by {len(tuning):,} validation pairs")
        store = tuned(store, translator.model, tuning)
    elif given is not None:
        raise Error.CONFLICT("`src` and `tgt` do not go with corrections", "make a datastore of either")
    else:
        languages = recipe.corpus.src_lang, recipe.corpus.tgt_lang
        groups = [
            _encoded(translator, _as_pairs([pair, *sentence_pairs(*pair, languages)])) for pair in corrections.pairs
        ]
        groups = [group for group in groups if group]
        store = build(translator.model, [ids for group in groups for ids in group], weights, corrections=True)
        store = tuned_by_itself(store, translator.model, groups, tuning)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replaced(folder) as partial:
        store.save(partial)
    return store


def _pairs(src: Path | None, tgt: Path | None, names: str) -> Iterable[Pair] | None:
    if (src is None) != (tgt is None):
        raise Error.MISSING_OPTION(f"{names}", "give both, or none")
    return None if src is None else FilesSource(src=str(src), tgt=str(tgt)).pairs()


def _as_pairs(pairs: Iterable[tuple[str, str]]) -> Iterable[Pair]:
    return (Pair(number, src, tgt) for number, (src, tgt) in enumerate(pairs, start=1))


def _encoded(translator: SearchTranslator, pairs: Iterable[Pair]) -> list[Ids]:
    """Ids of the pairs that the model reads whole; blank and longer ones are left out."""
    limit = translator.model.max_target_length or translator.max_src_tokens + 1
    encoded = []
    for pair in pairs:
        ids = (
            translator.tokenizers.src.encode(translator.normalize(pair.src)),
            translator.tokenizers.tgt.encode(translator.normalize(pair.tgt)),
        )
        if all(ids) and len(ids[0]) <= translator.max_src_tokens and len(ids[1]) < limit:
            encoded.append(ids)
    return encoded
