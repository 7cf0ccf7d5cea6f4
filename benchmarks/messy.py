"""BLEU on messy copies of a test set: capitals, title case, lower case, no final marks, typing errors.

    python benchmarks/messy.py RUN SOURCE.gz REFERENCE.gz [LINES]

In capitals the reference is in capitals, too; without final marks neither side has one; title case, lower case and
typing errors are of the source alone, and the reference stays as it is, cased.
"""

import gzip
import random
import re
import sys
from collections.abc import Callable

import sacrebleu

import dragoman
from dragoman.text.augment import with_typos, without_final_mark

Change = Callable[[str], str]
COPIES: dict[str, tuple[Change, Change]] = {
    "clean": (str, str),
    "CAPITALS": (str.upper, str.upper),
    "Title Case": (lambda line: re.sub(r"(?<!\S)\S", lambda letter: letter.group().upper(), line), str),
    "lower case": (str.lower, str),
    "no final mark": (without_final_mark, without_final_mark),
    "typing errors": (lambda line: with_typos(line, random.Random(line)), str),
}


def main() -> None:
    run, src, ref, *most = sys.argv[1:]
    sides = []
    for path in (src, ref):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sides.append([line.rstrip("\n") for line in file][: int(most[0]) if most else None])
    translator = dragoman.load(run)
    for name, (of_src, of_ref) in COPIES.items():
        hypotheses = translator.translate([of_src(line) for line in sides[0]])
        bleu = sacrebleu.corpus_bleu(hypotheses, [[of_ref(line) for line in sides[1]]]).score
        print(f"{name:14} BLEU {bleu:.2f}", flush=True)


if __name__ == "__main__":
    main()
