"""BLEU by the class of the best match that a translation memory has.

    python benchmarks/matches.py RUN MEMORY_SOURCE.gz MEMORY_TARGET.gz SOURCE.gz REFERENCE.gz [LINES]

Of each class of lines, by the similarity of the memory's best match: the model alone, the model with the memory, as
`--memory` gives it (a run that has learnt matches, `corpus.augment.fuzzy`, reads them; another has its translations
ranked by them), and the translation of the match in the place of a translation. The memory may be the training pairs.
"""

import gzip
import sys
from pathlib import Path

import sacrebleu

import dragoman
from dragoman.pipeline.memory import Match, TranslationMemory
from dragoman.text.annotations import has_learnt

LEAST = 0.3
"""Matches of less are as good as none: the lines are in the lowest class, and nothing is pasted."""
CLASSES = {
    "0.9-0.99": (0.9, 1.01), "0.8-0.9": (0.8, 0.9), "0.7-0.8": (0.7, 0.8), "0.6-0.7": (0.6, 0.7), "0.5-0.6": (0.5, 0.6),
    "below 0.5": (0.0, 0.5),
}  # fmt: skip


def lines_of(path: str, count: int | None = None) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file][:count]


def class_of(match: Match) -> str:
    return next(name for name, (least, most) in CLASSES.items() if least <= match.similarity < most)


def bleu(hypotheses: list[str], references: list[str]) -> str:
    return f"{sacrebleu.corpus_bleu(hypotheses, [references]).score:.2f}"


def main() -> None:
    run, memory_src, memory_tgt, src_path, ref_path, *count = sys.argv[1:]
    translator = dragoman.load(Path(run))
    pairs = zip(lines_of(memory_src), lines_of(memory_tgt), strict=True)
    memory = TranslationMemory(list(pairs), translator.languages or ("", ""))
    sides = (lines_of(path, int(count[0]) if count else None) for path in (src_path, ref_path))
    rows = [(src, ref) for src, ref in zip(*sides, strict=True) if src not in memory]
    found = [(memory.like(src, 1, LEAST) or [Match("", "", 0.0)])[0] for src, _ in rows]
    ways = {
        "model alone": translator.translate([src for src, _ in rows]),
        "with the memory": translator.with_memory(memory).translate([src for src, _ in rows]),
        "match pasted": [match.tgt for match in found],
    }
    learnt = "has" if has_learnt("fuzzy", translator.tokenizers) else "has not"
    print(
        f"{len(rows):,} lines that are not in the memory, of {len(memory):,} entries; the run {learnt} learnt matches"
    )
    print(f"| best match | lines | {' | '.join(ways)} |\n|---|---|{'---|' * len(ways)}")
    groups = {name: [row for row, match in enumerate(found) if class_of(match) == name] for name in CLASSES}
    for name, chosen in {**groups, "all": list(range(len(rows)))}.items():
        if chosen:
            references = [rows[row][1] for row in chosen]
            scores = (bleu([texts[row] for row in chosen], references) for texts in ways.values())
            print(f"| {name} | {len(chosen):,} | {' | '.join(scores)} |")


if __name__ == "__main__":
    main()
