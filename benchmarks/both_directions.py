"""Pairs in both directions and noised text to be mended: the corpus of `multi30k.md`, "Both directions and noise".

    python benchmarks/both_directions.py one-round/train.lc.norm.tok.en one-round/train.lc.norm.tok.de both

The pairs of the two files, the same turned round (Ding et al. 2021, bidirectional training), and the 29,000 German
sentences of Multi30k once for each language of `--noised`, with words lost, hidden and moved, to be written as they
were (Lample et al. 2018, section 2.3): text of the target language for a decoder that has little, and nothing from
outside. The word "noise" before a source says that it is to be mended; which way to translate, the text itself says.
"""

import argparse
import random
from pathlib import Path

from dragoman.text.lines import find, read_lines

TOKENISED = "multi30k-tok/train.lc.norm.tok.{}.gz"
LOST, HIDDEN, MOVED = 0.125, 0.125, 3
"""Shares of the words; places that a word may move by."""


def noised(line: str, rng: random.Random) -> str:
    words = [word for word in line.split() if rng.random() >= LOST] or line.split()
    words = ["_" if rng.random() < HIDDEN else word for word in words]
    order = sorted(range(len(words)), key=lambda place: place + rng.random() * MOVED)
    return " ".join(words[place] for place in order)


def main(src: str, tgt: str, out: Path, languages: list[str], seed: int) -> None:
    rng = random.Random(seed)
    given, turned = list(read_lines(find(src))), list(read_lines(find(tgt)))
    pairs = [*zip(given, turned, strict=True), *zip(turned, given, strict=True)]
    for language in languages:
        pairs += [(f"noise {noised(line, rng)}", line) for line in read_lines(find(TOKENISED.format(language)))]
    out.mkdir(parents=True)
    for name, lines in zip(("train.src", "train.tgt"), zip(*pairs, strict=True), strict=True):
        (out / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(pairs):,} pairs in {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("out", type=Path)
    parser.add_argument("--noised", nargs="*", default=["de", "de"], help="one noised copy for each: de, en")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    main(arguments.src, arguments.tgt, arguments.out, arguments.noised, arguments.seed)
