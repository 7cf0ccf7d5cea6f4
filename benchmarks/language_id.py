"""Accuracy of `languages/identification.py`: on two words in a row, each by itself, among ten languages; and what a
server of German and English makes of texts in all languages that this machine has messages of.

    python benchmarks/language_id.py MAN MULTI30K
    python benchmarks/language_id.py /usr/share/locale

MAN: a folder that Debian's packages manpages-* were unpacked into; MULTI30K: the folder of its files.
"""

import gzip
import random
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from catalogues import entries

from dragoman.languages.codes import language_of
from dragoman.languages.identification import known, source_language

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
        code: sum(source_language(text, TEN, code)[0] == code for text in texts) / len(texts)
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


def messages(locale: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Sentences, and single words up to three, by language: the messages of programs that have no marks in them."""
    sentences, few = defaultdict(set), defaultdict(set)
    for folder in sorted(locale.iterdir()):
        code = folder.name
        if code.startswith("en") or "@" in code or not known(code):
            continue
        for key, text in entries(folder):
            src = key if isinstance(key, str) else key[0]
            if not text or text == src or re.search(r"[%<\n_{/\\$@=|`\[\]-]", text):
                continue
            if 35 <= len(text) <= 200 and len(src.split()) >= 5:
                sentences[language_of(code)].add(text)
            elif 3 <= len(text) <= 25 and len(text.split()) <= 3 and text.replace(" ", "").isalpha():
                few[language_of(code)].add(text)
    rng = random.Random(1)
    return tuple(
        {code: rng.sample(sorted(texts), 100) for code, texts in sorted(one.items()) if len(texts) >= 100}
        for one in (sentences, few)
    )  # type: ignore[return-value]


def is_refused(text: str, sources: Sequence[str], target: str) -> bool:
    return source_language(text, sources, target)[0] not in (*sources, target)


def others(locale: Path) -> None:
    """What becomes of texts in languages that are not served, and in those that are."""
    for name, samples in zip(("sentences", "one to three words"), messages(locale), strict=True):
        unserved = [text for code, texts in samples.items() if code != "de" for text in texts]
        refused = sum(is_refused(text, ["de"], "en") for text in unserved) / max(1, len(unserved))
        german = [source_language(text, ["de"], "en")[0] for text in samples["de"]]
        wrong = {
            code: sum(is_refused(text, [code], "en") for text in texts) / len(texts) for code, texts in samples.items()
        }
        mean, (worst, code) = sum(wrong.values()) / len(wrong), max((share, code) for code, share in wrong.items())
        print(f"{name} in {len(samples)} languages; a server of German and English:")
        print(f"  said to be in a language that is not served: {100 * refused:.1f} % of those that are")
        print(f"  translated from German: {100 * german.count('de') / len(german):.1f} % of the German ones")
        print(f"  refused where their language is served: {100 * mean:.2f} %; most of {code}: {100 * worst:.0f} %")


if __name__ == "__main__":
    (measure if len(sys.argv) > 2 else others)(*map(Path, sys.argv[1:]))
