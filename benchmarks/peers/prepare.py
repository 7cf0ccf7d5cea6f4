"""Write the corpus that all toolkits train on: Multi30k, English to German, tokenised, as pieces of one joint BPE.

    DRAGOMAN_DATA=... python benchmarks/peers/prepare.py FOLDER

Pieces and batches are those that Dragoman's Trainer has under its recipe for this corpus.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from task import SHAPES, SOURCE, TARGET, Corpus
from train_dragoman import pieces_of, recipe_of, translation_task

from dragoman.data.store import IdCorpus
from dragoman.experiments.bench.batches import subject
from dragoman.tasks.translation.task import TranslationTask

BATCHES = 500


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_text(corpus: Corpus, task: TranslationTask) -> None:
    """The pieces of the pairs, whose numbers in a file are those in Dragoman's corpus, and the vocabulary."""

    def write_split(name: str, ids: IdCorpus) -> None:
        src, tgt = task.tokenizers.src, task.tokenizers.tgt
        rows = range(len(ids))
        write_lines(corpus.text(name, SOURCE), (" ".join(src.pieces(ids.src(row))) for row in rows))
        write_lines(corpus.text(name, TARGET), (" ".join(tgt.pieces(ids.tgt(row))) for row in rows))

    write_split("train", task.train)
    write_split("valid", task.valid)
    write_lines(corpus.pieces, pieces_of(task))


def first_batches(task: TranslationTask) -> list[list[int]]:
    return [rows.tolist() for step in range(BATCHES) for rows in task.plan.step(*task.position(1 + step))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    corpus = Corpus(parser.parse_args().folder)
    corpus.folder.mkdir(parents=True, exist_ok=True)
    batches = {}
    for shape_name in SHAPES:
        with subject(recipe_of(shape_name, "float32")) as trainer:
            task = translation_task(trainer)
            batches[shape_name] = first_batches(task)
            write_text(corpus, task)
            print(f"{shape_name}: {len(task.train):,} pairs, fill {task.plan.fill:.3f}")
    corpus.batches.write_text(json.dumps(batches), encoding="utf-8")


if __name__ == "__main__":
    main()
