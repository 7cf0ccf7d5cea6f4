"""Where lines shift against each other, in corpora of the size that people train on."""

import itertools
import os
import random
from pathlib import Path

import pytest

from dragoman.doctor.shifts import Shift, Shifts
from dragoman.text.corpus import DemoSource, FilesSource

DATA = Path(os.environ.get("DRAGOMAN_DATA", Path(__file__).parents[3] / "shared/data"))
MULTI30K = DATA / "multi30k"
needs_multi30k = pytest.mark.skipif(not MULTI30K.exists(), reason="Multi30k is not here (set DRAGOMAN_DATA)")
TATOEBA = DATA / "tatoeba-en-zh"
needs_tatoeba = pytest.mark.skipif(not TATOEBA.exists(), reason="Tatoeba is not here (set DRAGOMAN_DATA)")

Sides = tuple[list[str], list[str]]


def shifts_of(src: list[str], tgt: list[str]) -> list[Shift]:
    finder = Shifts()
    for start in range(0, max(len(src), len(tgt)), 5000):
        finder.add(src[start : start + 5000], tgt[start : start + 5000])
    return finder.finish()


def harmed(sides: Sides, rng: random.Random) -> tuple[str, int, Sides]:
    """(what was done, at which source line, both sides): a line too many, one too few, or one that was cut in two."""
    copies = list(sides[0]), list(sides[1])
    side = rng.randrange(2)
    lines, place = copies[side], rng.randrange(len(copies[side]) - 10)
    what = rng.choice(["inserted", "deleted", "split"])
    if what == "inserted":
        lines.insert(place, rng.choice(lines))
    elif what == "deleted":
        del lines[place]
    else:
        words = lines[place].split()
        lines[place : place + 1] = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
    return f"{what} in side {side}", place + 1, copies


def is_right(found: list[Shift], place: int) -> bool:
    return len(found) == 1 and abs(found[0].line - place) <= 5 and found[0].until is None


def pairs_of(source: DemoSource | FilesSource, count: int | None = None) -> Sides:
    pairs = list(itertools.islice(source.pairs(), count))
    return [pair.src for pair in pairs], [pair.tgt for pair in pairs]


def test_shifts_of_a_small_corpus() -> None:
    sides = pairs_of(DemoSource(split="train"), 3000)
    assert shifts_of(*sides) == []
    rng = random.Random(1)
    missed = []
    for _ in range(8):
        what, place, copies = harmed(sides, rng)
        found = shifts_of(*copies)
        if not is_right(found, place):
            missed.append((what, place, found))
    assert missed == []


def test_a_block_that_is_shifted_and_comes_back(tmp_path: Path) -> None:
    src, tgt = pairs_of(DemoSource(split="train"), 2000)
    tgt.insert(700, tgt[3])
    del tgt[900]
    (shift,) = shifts_of(src, tgt)
    assert shift.offset == 1
    assert abs(shift.line - 701) <= 5
    assert shift.until is not None
    assert abs(shift.until - 900) <= 5


def test_a_list_of_nearly_equal_lines_is_no_shift() -> None:
    """The rules of a calendar: each line has the same words, whose translation is another one elsewhere."""
    ordinals = [(f"ordinal{n}", f"ordnung{n}") for n in range(6)]
    days = [(f"weekday{n}", f"tag{n}") for n in range(9)]
    rng = random.Random(1)
    words = [("on", "auf"), ("the", "der"), *((f"word{n}", f"wort{n}") for n in range(30))]
    sentences = [
        [*rng.sample(words, 3), rng.choice(ordinals)] for _ in range(22_000)
    ]  # the lexicon is learnt from the first 20,000
    src, tgt = [[" ".join(pair[side] for pair in sentence) for sentence in sentences] for side in (0, 1)]
    rules = [
        (f"on the {ordinal} {day}", f"{number}. {tag}")
        for number, (ordinal, _) in enumerate(ordinals)
        for day, tag in days
    ]
    place = 21_000
    src[place:place], tgt[place:place] = [rule for rule, _ in rules], [rule for _, rule in rules]
    assert shifts_of(src, tgt) == []
    del tgt[place - 400]
    (shift,) = shifts_of(src, tgt)
    assert shift.offset == -1
    assert abs(shift.line - (place - 400)) <= 5


def test_a_block_that_is_lost_leaves_lines_that_belong_to_none(tmp_path: Path) -> None:
    src, tgt = pairs_of(DemoSource(split="train"), 2000)
    del tgt[500:700]
    (shift,) = shifts_of(src, tgt)
    assert (shift.offset, shift.until) == (None, None)
    assert abs(shift.line - 501) <= 5


@needs_multi30k
@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "fr", "cs"])
def test_no_alarm_on_clean_corpora(language: str) -> None:
    names = sorted(path.name.split(".")[0] for path in MULTI30K.glob(f"*.{language}.gz"))
    assert names
    for name in names:
        for src, tgt in (("en", language), (language, "en")):
            source = FilesSource(src=str(MULTI30K / f"{name}.{src}.gz"), tgt=str(MULTI30K / f"{name}.{tgt}.gz"))
            assert shifts_of(*pairs_of(source)) == [], name


@needs_tatoeba
@pytest.mark.slow
def test_no_alarm_on_english_and_chinese() -> None:
    for name in ("train", "valid", "test"):
        files = {side: str(TATOEBA / f"{name}.{lang}.gz") for side, lang in (("src", "en"), ("tgt", "zh"))}
        assert shifts_of(*pairs_of(FilesSource(**files))) == [], name


@needs_multi30k
@pytest.mark.slow
def test_two_hundred_shifts_of_multi30k() -> None:
    rng = random.Random(1)
    missed = []
    for language, count in (("de", 80), ("fr", 60), ("cs", 60)):
        source = FilesSource(src=str(MULTI30K / "train.en.gz"), tgt=str(MULTI30K / f"train.{language}.gz"))
        sides = pairs_of(source)
        for _ in range(count):
            what, place, copies = harmed(sides, rng)
            found = shifts_of(*copies)
            if not is_right(found, place):
                missed.append((language, what, place, found))
    print(f"{200 - len(missed)} of 200 found within 5 lines; missed: {missed}")
    assert len(missed) <= 10
