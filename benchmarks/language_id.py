"""Accuracy of `languages/identification.py` on two words in a row, each by itself, among ten languages.

    python benchmarks/language_id.py MAN MULTI30K

MAN: a folder that Debian's packages manpages-* were unpacked into; MULTI30K: the folder of its files.
"""

import gzip
import random
import re
import sys
from pathlib import Path

from dragoman.languages.identification import likely_languages

TEN = ("cs", "de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru")


def two_words(texts: list[str], count: int) -> list[str]:
    rng = random.Random(2)
    found = []
    while len(found) < count:
        words = re.findall(r"[^\W\d_]+", rng.choice(texts))
        if len(words) >= 2:
            start = rng.randrange(len(words) - 1)
            pair = " ".join(words[start : start + 2])
            if len(pair) >= 6:
                found.append(pair)
    return found


def accuracy(name: str, samples: dict[str, list[str]]) -> None:
    found = {
        code: sum(likely_languages(text, TEN)[0][0] == code for text in texts) / len(texts)
        for code, texts in samples.items()
    }
    each = "  ".join(f"{code} {100 * share:.1f}" for code, share in found.items())
    print(f"{name}: mean {100 * sum(found.values()) / len(found):.1f} %:  {each}")


def measure(man: Path, multi30k: Path) -> None:
    samples = {}
    for code in TEN:
        folder = man / "usr/share/man" / {"pt": "pt_BR", "en": ""}.get(code, code)
        texts = []
        for path in sorted(folder.glob("man[1-8]/*.gz"))[:400]:
            lines = gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace").splitlines()
            texts += [line for line in lines if line[:1].isalpha() and len(line.split()) > 5 and "\\" not in line]
        samples[code] = two_words(texts, 1000)
    accuracy("two words of manual pages, ten languages", samples)
    captions = {
        code: gzip.decompress((multi30k / f"test_2016_flickr.{code}.gz").read_bytes()).decode().splitlines()
        for code in ("cs", "de", "en", "fr")
    }
    accuracy(
        "two words of captions in four of them", {code: two_words(texts, 1000) for code, texts in captions.items()}
    )


if __name__ == "__main__":
    measure(*map(Path, sys.argv[1:]))
