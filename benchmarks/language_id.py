"""Make and measure the model that tells languages (`text/language_id.npz`).

    python benchmarks/language_id.py train HELP DICTIONARIES
    python benchmarks/language_id.py measure MAN MULTI30K

HELP: a folder that Debian's packages libreoffice-help-* were unpacked into (MPL-2.0), DICTIONARIES: one with
hunspell-*, for words of every day. MAN: one with manpages-*, text of
another kind; MULTI30K: the folder of its files, of another kind again. Measured are two words in a row, each by itself.
"""

import gzip
import random
import re
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dragoman.corpora.libreoffice_help import paragraphs
from dragoman.languages.identification import identify
from dragoman.languages.ngrams import BUCKETS, MODEL, features, language_probabilities

PARAGRAPHS = 5000
SNIPPETS = 9000
TEN = ("cs", "de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru")
CODES = {"en-US": "en", "zh-CN": "zh"}
LEFT_OUT = {"media", "ca-valencia", "zh-TW"}


def texts_of(folder: Path) -> list[str]:
    found: list[str] = []
    pages = sorted(folder.rglob("*.html"))
    random.Random(1).shuffle(pages)
    for page in pages:
        found += [item.text for _, item in paragraphs(page.read_text(encoding="utf-8", errors="replace"))]
        if len(found) > PARAGRAPHS:
            break
    return [re.sub(r"<[^<>]*>", " ", text) for text in found]


def snippet(rng: random.Random, text: str) -> str:
    """One to eight words in a row, some of them as they are in a heading, or all small."""
    words = text.split()
    count = rng.choice([1, 1, 2, 2, 2, 3, 4, 6, 8])
    if len(words) < 3:  # no spaces between words
        start = rng.randrange(len(text))
        return text[start : start + 2 * count + 1]
    start = rng.randrange(len(words))
    found = " ".join(words[start : start + count])
    return rng.choice([found, found, found.lower(), found.capitalize()])


def words_of(folder: Path, language: str) -> list[str]:
    """The words of a spelling dictionary."""
    paths = sorted((folder / "usr/share/hunspell").glob(f"{language}*.dic"))
    if not paths:
        return []
    largest = max(paths, key=lambda path: path.stat().st_size)
    coding = re.search(rb"SET (\S+)", largest.with_suffix(".aff").read_bytes())
    text = largest.read_bytes().decode(coding.group(1).decode() if coding else "utf-8", errors="ignore")
    found = [line.partition("/")[0].strip() for line in text.splitlines()[1:]]
    return [word for word in found if word.isalpha() and 2 < len(word) < 13]


def train(help_folder: Path, dictionaries: Path) -> None:
    rng = random.Random(1)
    places = {place.name: place for place in (help_folder / "usr/share/libreoffice/help").iterdir() if place.is_dir()}
    languages = sorted({CODES.get(name, name) for name in places if name not in LEFT_OUT})
    names = {CODES.get(name, name): name for name in places}
    english = set(texts_of(places["en-US"]))
    rows: list[tuple[list[int], int]] = []
    for label, language in enumerate(languages):
        texts = [text for text in texts_of(places[names[language]]) if any(map(str.isalpha, text))]
        texts = [text for text in texts if language == "en" or text not in english]  # not translated there
        made = [snippet(rng, rng.choice(texts)) for _ in range(SNIPPETS)]
        if words := words_of(dictionaries, language):
            made = made[: SNIPPETS // 2] + [" ".join(rng.choices(words, k=rng.choice([1, 2, 2]))) for _ in made[::2]]
        rows += [(found, label) for text in made if (found := features(text))]
    rng.shuffle(rows)
    print(f"{len(rows):,} snippets of {len(languages)} languages: {' '.join(languages)}", flush=True)
    torch.manual_seed(1)
    weights = nn.EmbeddingBag(BUCKETS, len(languages), mode="mean")
    bias = nn.Parameter(torch.zeros(len(languages)))
    nn.init.zeros_(weights.weight)
    optimizer = torch.optim.Adam([weights.weight, bias], lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / (4 * len(rows) / 512)))
    for epoch in range(4):
        total = 0.0
        for start in range(0, len(rows), 512):
            batch = rows[start : start + 512]
            flat = torch.tensor([bucket for found, _ in batch for bucket in found])
            offsets = torch.tensor(np.cumsum([0, *(len(found) for found, _ in batch)])[:-1])
            labels = torch.tensor([label for _, label in batch])
            loss = nn.functional.cross_entropy(weights(flat, offsets) + bias, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: loss {total / len(rows):.4f}", flush=True)
    values = weights.weight.detach().numpy()
    scale = np.abs(values).max(axis=0) / 127
    np.savez_compressed(
        MODEL, weights=np.round(values / scale).astype(np.int8), scale=scale.astype(np.float32),
        bias=bias.detach().numpy().astype(np.float32), languages=np.array(languages),
    )  # fmt: skip
    print(f"{MODEL}: {MODEL.stat().st_size / 1024:.0f} KiB")


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
    languages = tuple(samples)
    ours = {
        code: sum(language_probabilities(text, languages)[0][0] == code for text in texts) / len(texts)
        for code, texts in samples.items()
    }
    theirs = {
        code: sum(identify(text, languages)[0] == code for text in texts) / len(texts)
        for code, texts in samples.items()
    }
    for title, found in (("ours", ours), ("py3langid", theirs)):
        each = "  ".join(f"{code} {100 * share:.1f}" for code, share in found.items())
        print(f"{name}, {title:10} mean {100 * sum(found.values()) / len(found):.1f} %:  {each}")


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
        "two words of captions, four languages", {code: two_words(texts, 1000) for code, texts in captions.items()}
    )


if __name__ == "__main__":
    {"train": train, "measure": measure}[sys.argv[1]](*map(Path, sys.argv[2:]))
