"""False alarms of the guards on people's translations in many languages, and how many planted faults they see.

    python benchmarks/guards.py FOLDER [LANGUAGE ...] [--pairs 200] [--reverse] [-v]

FOLDER has catalogues, `LANGUAGE/LC_MESSAGES/*.mo` (`/usr/share/locale`; `program/resource` of LibreOffice's packages
`libreoffice-l10n-*`), or pages, `LANGUAGE/text/**/*.html` (`help` of `libreoffice-help-*`). Of each language so many
pairs with English are drawn by chance, half of them with a digit where there are so many; `--reverse`: into English.
Each warning counts as false, though some translations do lack something. Each fault is then planted into each pair in
which it can be, and is seen where there is a warning that was not there before.
"""

import argparse
import html
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from catalogues import entries

from dragoman.languages.codes import language_of, parsed
from dragoman.languages.punctuation import joined_by
from dragoman.quality.faults import source_warnings, warnings_of
from dragoman.quality.warnings import WarningKind
from dragoman.text.placeholders import spans
from dragoman.text.segment import sentences
from dragoman.text.words import is_of_letters, split_words

Pair = tuple[str, str]
WORDS, LONGEST = 4, 400
"""Words of an English text, at least, and its characters, at most."""
OTHERS = {"zh_CN": "zh_TW", "zh_TW": "zh_CN", "zh-CN": "zh-TW", "zh-TW": "zh-CN", "sr": "sr@latin", "sr@latin": "sr"}
"""The language whose translation stands for a wrong script; for others Greek, for Greek Russian."""
_DIGIT = re.compile(r"\d")
_BLOCK = re.compile(r'<(p|h[1-6])\b[^>]*\bid="([^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)


def catalogues(folder: Path) -> dict[str, str]:
    """The translation of each message of a language."""
    found: dict[str, str] = {}
    for key, text in entries(folder):
        if isinstance(key, str) and key.rpartition("\4")[2] != text:
            found.setdefault(key.rpartition("\4")[2], text)
    return found


def blocks(folder: Path) -> dict[str, str]:
    """The text of each paragraph of a language's pages by the page's path and the paragraph's name."""
    found = {}
    for path in sorted(folder.glob("text/**/*.html")):
        page = path.read_text(encoding="utf-8", errors="replace")
        for match in _BLOCK.finditer(page):
            text = " ".join(html.unescape(re.sub(r"<[^>]*>", "", match[3])).split())
            found[f"{path.relative_to(folder)}#{match[2]}"] = text
    return found


def pairs(folder: Path, language: str) -> dict[str, str]:
    """The translation of each English text that is long enough, and not too long."""
    if (folder / language / "LC_MESSAGES").is_dir():
        found = catalogues(folder / language)
    else:
        english, other = blocks(folder / "en-US"), blocks(folder / language)
        found = {english[key]: text for key, text in other.items() if english.get(key, text) != text}
    return {
        src: text
        for src, text in found.items()
        if text and "\n" not in src + text and len(src) <= LONGEST and len(re.findall(r"[A-Za-z]{2,}", src)) >= WORDS
    }


def drawn(found: dict[str, str], count: int) -> list[Pair]:
    """Pairs drawn by chance, half of them with a digit where there are so many."""
    rng = random.Random(1)
    rows = sorted(found.items())
    rng.shuffle(rows)
    numbers = [row for row in rows if _DIGIT.search(row[0])][: count // 2]
    taken = set(numbers)
    return (numbers + [row for row in rows if row not in taken])[:count]


def number_changed(pair: Pair, language: str) -> str | None:
    """The last digit of the first number of two digits or more, one more; not in what is a placeholder."""
    held = "".join(spans(pair[1]))
    match = next((m for m in re.finditer(r"(?<!\w)\d+(?!\w)", pair[1]) if m[0] not in held and len(m[0]) > 1), None)
    if match is None or not _DIGIT.search(pair[0]):
        return None
    digit = pair[1][match.end() - 1]
    other = chr(ord(digit) + (1 if int(digit) < 9 else -3))
    return pair[1][: match.end() - 1] + other + pair[1][match.end() :]


def sentence_lost(pair: Pair, language: str) -> str | None:
    """The longest sentence of several."""
    here = sentences(pair[1], language)
    if len(here) < 2 or len(here) != len(sentences(pair[0], "en")):
        return None
    longest = max(here, key=lambda span: span.end - span.start)
    return joined_by(language).join(pair[1][span.start : span.end] for span in here if span != longest)


def word_doubled(pair: Pair, language: str) -> str | None:
    """The longest word twice."""
    longest = max((word for word in split_words(pair[1]) if is_of_letters(word)), key=len, default="")
    if len(longest) < 4 or pair[1].count(longest) > 1:
        return None
    return pair[1].replace(longest, f"{longest} {longest}")


def quotes_lost(pair: Pair, language: str) -> str | None:
    if len(re.findall('["“”]', pair[0])) < 2:
        return None
    bare = re.sub('["“”„«»「」『』‘’״״《》]', "", pair[1])
    return bare if bare != pair[1] else None


FAULTS: dict[str, Callable[[Pair, str], str | None]] = {
    "number changed": number_changed,
    "sentence lost": sentence_lost,
    "word doubled": word_doubled,
    "quotes lost": quotes_lost,
}


def warned(src: str, tgt: str, codes: Pair) -> Counter[WarningKind]:
    return Counter(warning.kind for warning in warnings_of(src, tgt, codes) + source_warnings(src, codes))


class Report:
    """The counts of one language."""

    def __init__(self, language: str, *, reverse: bool, verbose: bool) -> None:
        self.language, self.reverse, self.verbose = language, reverse, verbose
        self.pairs, self.loud = 0, 0
        self.false: Counter[str] = Counter()
        self.planted: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()

    def count(self, rows: Iterable[Pair], others: dict[str, str]) -> None:
        for src, tgt in rows:
            codes, sides = ("en", self.language), (src, tgt)
            if self.reverse:
                codes, sides = (self.language, "en"), (tgt, src)
            before = warned(*sides, codes)
            self.pairs += 1
            self.loud += bool(before)
            self.false.update(map(str, before))
            if self.verbose and before:
                said = [str(one) for one in warnings_of(*sides, codes) + source_warnings(sides[0], codes)]
                print(f"  {sides[0]!r}\n  {sides[1]!r}\n    {said}")
            if self.reverse:
                planted = {name: plant((tgt, src), "en") for name, plant in FAULTS.items()}
            else:
                planted = {name: plant((src, tgt), self.language) for name, plant in FAULTS.items()}
                planted["wrong script"] = others.get(src)
            for name, text in planted.items():
                if text and text != sides[1]:
                    self.planted[name] += 1
                    self.seen[name] += bool(warned(sides[0], text, codes) - before)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.false.most_common())
        recall = ", ".join(f"{name} {self.seen[name]}/{self.planted[name]}" for name in self.planted)
        share = 100 * self.loud / max(1, self.pairs)
        return f"{self.language:10} {self.pairs:4} {self.loud:3} {share:5.1f} %  [{kinds}]  seen: {recall}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="*")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    total = Report("all", reverse=given.reverse, verbose=False)
    for path in sorted(given.folder.iterdir()):
        name = path.name
        if (given.languages and name not in given.languages) or not parsed(name).language or language_of(name) == "en":
            continue
        found = pairs(given.folder, name) if path.is_dir() else {}
        if len(found) < given.pairs:
            continue
        other = OTHERS.get(name, "ru" if name == "el" else "el")
        others = pairs(given.folder, other) if (given.folder / other).is_dir() and not given.reverse else {}
        report = Report(name, reverse=given.reverse, verbose=given.v)
        report.count(drawn(found, given.pairs), others)
        print(report, flush=True)
        for field in ("false", "planted", "seen"):
            getattr(total, field).update(getattr(report, field))
        total.pairs, total.loud = total.pairs + report.pairs, total.loud + report.loud
    print(total)


if __name__ == "__main__":
    main()
