"""The doctor's look at languages, boilerplate and markup: 100 spoilt corpora of five kinds, and sound ones."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.corpora import embedded
from dragoman.doctor.examine import Examination
from dragoman.text.corpus import FilesSource

Pair = tuple[str, str]
PAIRS = 400
CZECH = ["Dva muži hrají na trávníku {0} fotbal.", "Žena v červených šatech čte {0} knihu.",
         "Malá holčička běží {0} po pláži se psem.", "Skupina lidí stojí {0} před budovou."]  # fmt: skip
WHEN = ["ráno", "večer", "včera", "dnes", "odpoledne", "v neděli"]


def swapped(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    return [(tgt, src) for src, tgt in pairs]


def partly_swapped(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    rows = set(rng.sample(range(len(pairs)), len(pairs) // 10))
    return [pair[::-1] if row in rows else pair for row, pair in enumerate(pairs)]


def another_language(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    rows = set(rng.sample(range(len(pairs)), len(pairs) // 13))
    return [
        (rng.choice(CZECH).format(rng.choice(WHEN)), pair[1]) if row in rows else pair for row, pair in enumerate(pairs)
    ]


def boilerplate(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    rows = set(rng.sample(range(len(pairs)), len(pairs) // 20))
    form = ("Alle Rechte vorbehalten.", "All rights reserved.")
    return [(pair[0], form[1]) if row in rows else pair for row, pair in enumerate(pairs)]


def markup(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    return [(f'<tu><tuv xml:lang="de"><seg>{src}</seg></tuv>', f"<seg>{tgt}</seg></tu>") for src, tgt in pairs]


FAULTS: dict[str, Callable[[list[Pair], random.Random], list[Pair]]] = {
    "swapped sides": swapped,
    "swapped pair": partly_swapped,
    "wrong language": another_language,
    "boilerplate": boilerplate,
    "markup file": markup,
}


def corpus(languages: str, seed: int) -> list[Pair]:
    return list(itertools.islice(embedded.sentences(languages, "train", PAIRS, seed), PAIRS))


def found(folder: Path, pairs: list[Pair], src_lang: str, tgt_lang: str) -> dict[str, str]:
    paths = folder / "corpus.src", folder / "corpus.tgt"
    for side, path in enumerate(paths):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    diagnosis = Examination(FilesSource(src=str(paths[0]), tgt=str(paths[1])), src_lang, tgt_lang).run()
    return {finding.kind: finding.severity for finding in diagnosis.findings}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", FAULTS)
def test_a_spoilt_corpus_is_told(tmp_path: Path, kind: str, seed: int) -> None:
    for number in range(2):
        pairs = FAULTS[kind](corpus("de-en", 2 * seed + number), random.Random(seed))
        assert found(tmp_path, pairs, "de", "en").get(kind) in ("broken", "warning")


@pytest.mark.parametrize("languages", ["de-en", "en-de", "zh-en", "en-zh"])
def test_a_sound_corpus_is_left_alone(tmp_path: Path, languages: str) -> None:
    src_lang, tgt_lang = languages.split("-")
    for seed in range(3):
        kinds = found(tmp_path, corpus(languages, seed), src_lang, tgt_lang)
        assert not {*FAULTS, "wrong script"} & {kind for kind, severity in kinds.items() if severity != "note"}


def test_languages_that_are_not_given_are_told_from_the_text(tmp_path: Path) -> None:
    pairs = another_language(corpus("de-en", 1), random.Random(1))
    assert found(tmp_path, pairs, "src", "")["wrong language"] == "warning"
