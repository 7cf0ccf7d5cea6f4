"""F1 of sentence boundaries on joined lines of corpora: Dragoman's rules beside pysbd and syntok (pip install both).

    DRAGOMAN_DATA=FOLDER python benchmarks/sentences.py [FOLDER OF UNIVERSAL DEPENDENCIES TREEBANKS]

Lines of a corpus, most of them one sentence, are joined by spaces, two to six to a text; the joints are the boundaries
to find. Some lines hold several sentences: a boundary inside of a line is not counted where two of the three agree on
it, and is a false one where only one says so. Treebanks have the boundaries that their annotators gave.
"""

import gzip
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dragoman.languages.codes import written_without_spaces
from dragoman.text.segment import sentences

CORPORA = {
    "multi30k": [("multi30k/test_2016_flickr.{}.gz", "en de fr cs"), ("multi30k/val.{}.gz", "en de fr cs")],
    "tatoeba": [("tatoeba-en-zh/test.{}.gz", "en zh"), ("tatoeba-en-zh/valid.{}.gz", "en zh")],
    "libreoffice": [("libreoffice-help-en-de/test.{}.gz", "en de"), ("libreoffice-help-en-de/valid.{}.gz", "en de")],
}
PROSE = re.compile(r"[\"'“„«¿¡]?(?![a-zà-ÿ])\w.*[.!?…。！？][\"'”“’»]?")
"""A line that is prose begins with a capital letter, a number or a character without case, and ends with a mark."""


def ours(text: str, language: str) -> set[int]:
    return {span.end for span in sentences(text, language)}


def pysbd_ends(text: str, language: str) -> set[int]:
    import pysbd

    known = language if language in pysbd.languages.LANGUAGE_CODES else "en"
    found = pysbd.Segmenter(language=known, clean=False, char_span=True).segment(text)
    return {span.start + len(text[span.start : span.end].rstrip()) for span in found}


def syntok_ends(text: str, language: str) -> set[int]:
    from syntok import segmenter

    ends = set()
    for paragraph in segmenter.analyze(text):
        for sentence in paragraph:
            last = sentence[-1]
            ends.add(last.offset + len(last.value))
    return ends


def joined(lines: list[str], language: str, rng: random.Random) -> list[tuple[str, set[int]]]:
    """Texts of several lines, and where those end."""
    between = "" if written_without_spaces(language) else " "
    texts, at = [], 0
    while at < len(lines):
        chosen = lines[at : at + rng.randint(2, 6)]
        at += len(chosen)
        text, ends = "", set()
        for line in chosen:
            text += (between if text else "") + line
            ends.add(len(text))
        texts.append((text, ends))
    return texts


def treebank(path: Path) -> list[str]:
    found = [line[9:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# text = ")]
    return [line for line in found if PROSE.fullmatch(line)]


def report(name: str, language: str, texts: list[tuple[str, set[int]]]) -> None:
    systems: dict[str, Callable[[str, str], set[int]]] = {"ours": ours, "pysbd": pysbd_ends, "syntok": syntok_ends}
    counts = {system: Counter[str]() for system in systems}
    wrong: list[str] = []
    for text, gold in texts:
        found = {system: ends(text, language) - {len(text)} for system, ends in systems.items()}
        gold = gold - {len(text)}
        votes = Counter(end for ends in found.values() for end in ends)
        inside = {end for end, count in votes.items() if count > 1 and end not in gold} if name[:2] != "UD" else set()
        for system, ends in found.items():
            counts[system]["right"] += len(ends & gold)
            counts[system]["missed"] += len(gold - ends)
            counts[system]["false"] += len(ends - gold - inside)
        wrong += [f"  - {text[max(0, end - 30) : end]}|{text[end : end + 20]}" for end in gold - found["ours"]]
        wrong += [f"  + {text[max(0, end - 30) : end]}|{text[end : end + 20]}" for end in found["ours"] - gold - inside]
    columns = []
    for system, count in counts.items():
        f1 = 200 * count["right"] / (2 * count["right"] + count["missed"] + count["false"])
        columns.append(f"{system} {f1:6.2f}")
    print(f"{name:12} {language:3} {len(texts):5} texts  " + "  ".join(columns))
    if "-v" in sys.argv:
        print("\n".join(wrong))


def main() -> None:
    data = Path(os.environ["DRAGOMAN_DATA"])
    for name, parts in CORPORA.items():
        for language in parts[0][1].split():
            lines = []
            for pattern, _ in parts:
                with gzip.open(data / pattern.format(language), "rt", encoding="utf-8") as file:
                    lines += [line.strip() for line in file]
            report(
                name, language, joined([line for line in lines if PROSE.fullmatch(line)], language, random.Random(1))
            )
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).glob("*-ud-test.conllu")) if folder != "-v" else ():
            lines = treebank(path)
            random.Random(1).shuffle(lines)
            report("UD " + path.name.split("-")[0], path.name[:2], joined(lines, path.name[:2], random.Random(1)))


if __name__ == "__main__":
    main()
