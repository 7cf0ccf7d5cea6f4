"""Planted faults: how many outputs of a test set have each of them told (docs/judging.md).

    python benchmarks/planted_faults.py --src test.en --ref test.de --languages en de outputs/*.de

Each fault is put into each output by itself: a line left out, 5 % of the lines swapped two by two, cut in half, left as
their sources, doubled or repeating themselves; a digit of every number exchanged, every word that says no taken out.
The output as it is tells of false alarms; where it has a fault already it cannot be planted, and is not counted.
"""

import argparse
import random
import re
from pathlib import Path

from dragoman.quality.output_checks import check_output
from dragoman.quality.test_set import TestSet
from dragoman.text.lines import find, read_lines
from dragoman.text.negation import negations

SHARE = 0.05


def chosen(lines: list[str], rng: random.Random) -> list[int]:
    """Places of 5 % of the lines, an even number, of those long enough to be told apart."""
    long = [row for row, line in enumerate(lines) if len(line.split()) >= 6]
    return rng.sample(long, max(4, round(SHARE * len(lines)) // 2 * 2))


def shifted(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    place = len(lines) // 3
    return [*lines[:place], *lines[place + 1 :], ""]


def swapped(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    found, rows = list(lines), chosen(lines, rng)
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        found[one], found[other] = lines[other], lines[one]
    return found


def truncated(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    rows = chosen(lines, rng)
    return [" ".join(line.split()[: len(line.split()) // 2]) if row in rows else line for row, line in enumerate(lines)]


def untranslated(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    rows = chosen(test.sources, rng)
    return [test.sources[row] if row in rows else line for row, line in enumerate(lines)]


def repeated(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    rows = chosen(lines, rng)
    return [line + 3 * (" " + " ".join(line.split()[-2:])) if row in rows else line for row, line in enumerate(lines)]


def duplicated(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    rows = chosen(lines, rng)
    return [lines[row - 1] if row in rows and row else line for row, line in enumerate(lines)]


def numbers_changed(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    return [re.sub(r"\d+", lambda match: str(int(match[0]) + 3), line) for line in lines]


def negation_dropped(lines: list[str], test: TestSet, rng: random.Random) -> list[str]:
    language = test.languages[1]
    return [" ".join(word for word in line.split() if not negations(word, language)) or line for line in lines]


PLANTED = {
    "shifted": shifted,
    "swapped": swapped,
    "truncated": truncated,
    "untranslated": untranslated,
    "repeated": repeated,
    "duplicated": duplicated,
    "numbers changed": numbers_changed,
    "negation dropped": negation_dropped,
}


def main(src: Path, ref: Path, languages: tuple[str, str], outputs: list[Path]) -> None:
    test = TestSet(list(read_lines(find(src))), [list(read_lines(find(ref)))], languages)
    told, planted, alarms = dict.fromkeys(PLANTED, 0), dict.fromkeys(PLANTED, 0), []
    for path in outputs:
        lines = list(read_lines(path, may_be_empty=True))
        clean = {fault.kind for fault in check_output(test, lines)}
        alarms += [f"{path.name}: {kind}" for kind in sorted(clean)]
        for kind, plant in PLANTED.items():
            if kind in clean:
                continue
            planted[kind] += 1
            told[kind] += kind in {fault.kind for fault in check_output(test, plant(lines, test, random.Random(1)))}
    for kind in PLANTED:
        print(f"{kind}: {told[kind]} of {planted[kind]}")
    print(f"told of outputs as they are: {len(alarms)}", *alarms, sep="\n  ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outputs", nargs="+", type=Path)
    parser.add_argument("--src", required=True, type=Path)
    parser.add_argument("--ref", required=True, type=Path)
    parser.add_argument("--languages", nargs=2, required=True)
    given = parser.parse_args()
    main(given.src, given.ref, tuple(given.languages), given.outputs)
