"""Cuts between sentences of known number: Dragoman's rules beside pysbd and syntok, where these are installed.

    DRAGOMAN_DATA=FOLDER python benchmarks/sentences.py [FOLDER OF UNIVERSAL DEPENDENCIES TREEBANKS]
    python benchmarks/sentences.py --catalogues /usr/share/locale [LANGUAGE...] [-v]

Lines of a corpus, most of them one sentence, are joined as their language joins sentences, two to six to a text (those
of catalogues two or three); the joints are the boundaries to find. Some lines hold several sentences: a boundary inside
of a line is not counted where two of the systems agree on it, and is a false one where only one says so. Treebanks have
the boundaries that their annotators gave. Lines of catalogues (gettext's .mo) are those that translate one sentence of
English and end with a mark; languages of which there are none are left out.
"""

import argparse
import gzip
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from catalogues import entries

from dragoman.languages.codes import language_of, parsed
from dragoman.languages.punctuation import CLOSING, ENDS, joined_by
from dragoman.text.segment import sentences

CORPORA = {
    "multi30k": [("multi30k/test_2016_flickr.{}.gz", "en de fr cs"), ("multi30k/val.{}.gz", "en de fr cs")],
    "tatoeba": [("tatoeba-en-zh/test.{}.gz", "en zh"), ("tatoeba-en-zh/valid.{}.gz", "en zh")],
    "libreoffice": [("libreoffice-help-en-de/test.{}.gz", "en de"), ("libreoffice-help-en-de/valid.{}.gz", "en de")],
}
PROSE = re.compile(r"[\"'“„«¿¡]?(?![a-zà-ÿ])\w.*[.!?…。！？][\"'”“’»]?")
"""A line that is prose begins with a capital letter, a number or a character without case, and ends with a mark."""


ENGLISH = re.compile(r"[A-Z][^\n\t%{}<>|]{15,300}[a-z)][.!?]")
"""A message of a catalogue that is a sentence, without codes in it."""
_SEVERAL = rf"(?:[^\s.]{{7}}\.|[{ENDS.replace('.', '')}]).*\w"
ENDED = re.compile(rf"(?!.*{_SEVERAL})[^\n]*(?:[{ENDS}]|(?<=[Ͱ-Ͽ]);)[{CLOSING}]*")
"""A translation with one mark, at its end; others may stand behind abbreviations, of up to six letters."""
FEWEST = 20
"""Lines of a language from which on there is a figure of it."""


def ours(text: str, language: str) -> set[int]:
    return {span.end for span in sentences(text, language)}


def pysbd_ends(text: str, language: str) -> set[int]:
    import pysbd

    known = language if language in pysbd.languages.LANGUAGE_CODES else "en"
    found = _segmenter(known).segment(text)
    return {span.start + len(text[span.start : span.end].rstrip()) for span in found}


@cache
def _segmenter(language: str) -> Any:
    import pysbd

    return pysbd.Segmenter(language=language, clean=False, char_span=True)


def syntok_ends(text: str, language: str) -> set[int]:
    from syntok import segmenter

    ends = set()
    for paragraph in segmenter.analyze(text):
        for sentence in paragraph:
            last = sentence[-1]
            ends.add(last.offset + len(last.value))
    return ends


SYSTEMS: dict[str, Callable[[str, str], set[int]]] = {
    "ours": ours,
    **({"pysbd": pysbd_ends} if find_spec("pysbd") else {}),
    **({"syntok": syntok_ends} if find_spec("syntok") else {}),
}


class Joined(NamedTuple):
    """A text of several lines, and where each ends."""

    text: str
    ends: set[int]


def joined(lines: list[str], language: str, rng: random.Random, most: int = 6) -> list[Joined]:
    """Texts of two lines or more, `most` at most."""
    texts, at = [], 0
    while at < len(lines):
        chosen = lines[at : at + rng.randint(2, most)]
        at += len(chosen)
        text, ends = "", set()
        for line in chosen:
            text += (joined_by(language) if text else "") + line
            ends.add(len(text))
        texts.append(Joined(text, ends))
    return texts


def treebank(path: Path) -> list[str]:
    lines = [line[9:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# text = ")]
    return [line for line in lines if PROSE.fullmatch(line)]


def catalogue_lines(folder: Path, most: int) -> list[str]:
    """Translations of single sentences from the catalogues of a language, in an order drawn by chance."""
    lines = set()
    for key, text in entries(folder):
        is_cut = joined_by(folder.name) or not text[-1:].isascii()  # else no space would follow the full stop
        if is_cut and isinstance(key, str) and ENGLISH.fullmatch(key.rpartition("\4")[2]) and ENDED.fullmatch(text):
            lines.add(text)
    lines = {line for line in lines if not ENGLISH.fullmatch(line) or not line.isascii() or " the " not in line}
    chosen = sorted(lines)
    random.Random(1).shuffle(chosen)
    return chosen[:most]


def scores(name: str, language: str, texts: list[Joined]) -> tuple[dict[str, Counter[str]], list[str]]:
    """(right, missed and false cuts of each system, our wrong ones as lines to read)."""
    counts = {system: Counter[str]() for system in SYSTEMS}
    wrong: list[str] = []
    for text, ends in texts:
        cuts = {system: find(text, language) - {len(text)} for system, find in SYSTEMS.items()}
        gold = ends - {len(text)}
        votes = Counter(end for system in cuts.values() for end in system)
        inside = {end for end, count in votes.items() if count > 1 and end not in gold} if name[:2] != "UD" else set()
        for system, own in cuts.items():
            counts[system]["right"] += len(own & gold)
            counts[system]["missed"] += len(gold - own)
            counts[system]["false"] += len(own - gold - inside)
        wrong += [f"  - {text[max(0, end - 30) : end]}|{text[end : end + 20]}" for end in gold - cuts["ours"]]
        wrong += [f"  + {text[max(0, end - 30) : end]}|{text[end : end + 20]}" for end in cuts["ours"] - gold - inside]
    return counts, wrong


def counted(language: str, lines: list[str]) -> Counter[str]:
    """Our right, missed and false cuts in the lines of a catalogue, joined by two and three."""
    texts = joined(lines, language, random.Random(1), most=3)
    return scores("catalogues", language, texts)[0]["ours"]


def report(name: str, language: str, texts: list[Joined], *, verbose: bool) -> None:
    counts, wrong = scores(name, language, texts)
    columns = []
    for system, count in counts.items():
        precision = 100 * count["right"] / max(1, count["right"] + count["false"])
        recall = 100 * count["right"] / max(1, count["right"] + count["missed"])
        columns.append(f"{system} {precision:6.2f} {recall:6.2f}")
    print(f"{name:12} {language:8} {len(texts):5} texts  " + "  ".join(columns), flush=True)
    if verbose:
        print("\n".join(wrong))


def catalogues(folder: Path, languages: list[str], most: int) -> dict[str, list[Joined]]:
    """The texts of each language of which there are enough lines."""
    texts = {}
    for path in sorted(folder.iterdir()):
        if (languages and path.name not in languages) or not parsed(path.name).language:
            continue
        lines = catalogue_lines(path, most) if (path / "LC_MESSAGES").is_dir() else []
        if len(lines) >= FEWEST and language_of(path.name) != "en":
            texts[path.name] = joined(lines, path.name, random.Random(1), most=3)
    return texts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--catalogues", type=Path)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    if given.catalogues:
        for language, texts in catalogues(given.catalogues, given.names, given.most).items():
            report("catalogues", language, texts, verbose=given.v)
        return
    data = Path(os.environ["DRAGOMAN_DATA"])
    for name, parts in CORPORA.items():
        for language in parts[0][1].split():
            lines = []
            for pattern, _ in parts:
                with gzip.open(data / pattern.format(language), "rt", encoding="utf-8") as file:
                    lines += [line.strip() for line in file]
            prose = [line for line in lines if PROSE.fullmatch(line)]
            report(name, language, joined(prose, language, random.Random(1)), verbose=given.v)
    for folder in given.names:
        for path in sorted(Path(folder).glob("*-ud-test.conllu")):
            lines = treebank(path)
            random.Random(1).shuffle(lines)
            texts = joined(lines, path.name[:2], random.Random(1))
            report("UD " + path.name.split("-")[0], path.name[:2], texts, verbose=given.v)


if __name__ == "__main__":
    main()
