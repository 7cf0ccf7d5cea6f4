"""The variants of a recipe that `debian.py` compares: what each one trains on, and its settings."""

import importlib.util
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import export
from dragoman.config import parse
from dragoman.corpora import debian
from dragoman.data.random import hash64
from dragoman.doctor.assembly import LEFT_OUT, ORIGINS, RECORD, SPLITS, cleaned, near_key
from dragoman.doctor.collection import collect
from dragoman.experiments.speed import measured_speed
from dragoman.inference import scoring
from dragoman.inference.search_translator import SearchTranslator
from dragoman.tasks import sizes
from dragoman.tasks.auto_recipe import settings_of
from dragoman.text.corpus import CollectionConfig, FilesSource
from dragoman.text.lines import in_chunks, read_lines

Texts = tuple[str, str]
CHUNK = 2_000
"""Pairs that are scored or translated at once."""
REASONS = {
    "languages": ("wrong language", "wrong script", "other languages", "swapped pair"),
    "lengths": ("odd length ratio",),
    "copies": ("copy", "duplicate", "copy of the source"),
    "conflicts": ("another translation",),
    "placeholders": ("placeholders differ",),
    "untranslated": ("same on both sides", "no words", "no letters"),
    "fuzzy": ("fuzzy",),
    "leaks": ("nearly held out",),
}
"""Filters of the assembly by the reasons that they give for leaving out a pair."""


class Change(NamedTuple):
    """The difference of a variant from the recipe."""

    train: Mapping[str, Any] | None = None
    """Plain settings of its training pairs; None: the recipe's."""
    settings: Mapping[str, Any] = {}
    """Sections of the recipe that it has anew."""
    overrides: tuple[str, ...] = ()
    """Settings as on the command line."""
    facts: Mapping[str, Any] = {}
    """For the row of the results."""


@dataclass
class Bench:
    """A corpus, the languages, the time, and a folder for what variants train on."""

    pair: Texts
    folder: Path
    work: Path
    minutes: float
    base: Callable[[], Path]
    """The run of the recipe as it is, which is trained where it is not there yet."""
    share: float = 0.1

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    def source(self, split: str) -> dict[str, str]:
        return _files(self.corpus / split, self.pair)

    def pairs(self, split: str) -> Iterator[Texts]:
        return ((pair.src, pair.tgt) for pair in parse(FilesSource, self.source(split), split).pairs())

    def write(self, name: str, pairs: Iterable[Texts]) -> dict[str, str]:
        """Write the training pairs of a variant; plain settings of them."""
        self.work.mkdir(parents=True, exist_ok=True)
        stem = self.work / name
        paths = [Path(path) for path in (f"{stem}.{self.pair[0]}", f"{stem}.{self.pair[1]}")]
        with paths[0].open("w", encoding="utf-8") as src, paths[1].open("w", encoding="utf-8") as tgt:
            for one, other in pairs:
                src.write(one + "\n")
                tgt.write(other + "\n")
        return _files(stem, self.pair)

    def held_documents(self) -> set[str]:
        """Documents, that is packages, of which pairs are for validation or test; none where those are single pairs."""
        record = json.loads((self.corpus / RECORD).read_text(encoding="utf-8"))
        if record["split_by"] != "document":
            return set()
        return {file["document"] for file in record["files"] if file["fates"].keys() & set(SPLITS[1:])}


def _files(stem: Path, pair: Texts) -> dict[str, str]:
    return {"type": "files", "src": f"{stem}.{pair[0]}", "tgt": f"{stem}.{pair[1]}"}


# -- filters ---------------------------------------------------------------------------------------------------------


def raw(bench: Bench) -> Change:
    """Every entry of the files that has a translation, as it is written there; nothing of held-out packages."""
    held, taken = bench.held_documents(), set[str]()
    for split in SPLITS[1:]:
        taken.update(near_key(text) for texts in bench.pairs(split) for text in texts)

    def pairs() -> Iterator[Texts]:
        config = CollectionConfig(paths=[str(bench.folder / "files")], documents="folder")
        for record, entries in collect(config, bench.pair):
            for entry in entries if record.document not in held else ():
                texts = " ".join(entry.src.split()), " ".join(entry.tgt.split())
                bare = (text for src, tgt, _ in cleaned(entry) for text in (src, tgt))
                if all(texts) and entry.state != "fuzzy" and not any(near_key(text) in taken for text in bare):
                    yield texts

    return Change(bench.write("raw", pairs()))


def without_filters(names: Iterable[str]) -> Callable[[Bench], Change]:
    """The training pairs, and with them those that some filters have left out."""
    reasons = {reason for name in names for reason in REASONS[name]}

    def change(bench: Bench) -> Change:
        held, more = bench.held_documents(), list[Texts]()
        lines = read_lines(bench.corpus / LEFT_OUT)
        next(lines)
        for line in lines:
            file, _, reason, src, tgt = line.split("\t")
            if reason in reasons and src and tgt and file.partition("/")[0] not in held:
                more.append((src, tgt))
        leaks = ("corpus.leaks=keep",) if "nearly held out" in reasons else ()
        name = f"unfiltered-{hash64(' '.join(sorted(reasons))):x}"
        return Change(bench.write(name, [*bench.pairs("train"), *more]), overrides=leaks, facts={"more": len(more)})

    return change


def without_worst(bench: Bench) -> Change:
    """Without the pairs that the recipe's own model finds least probable."""
    translator = SearchTranslator.load(bench.base())
    started = time.monotonic()
    scores: list[float] = []
    for chunk in in_chunks(bench.pairs("train"), CHUNK):
        fits = [_fits(translator, pair) for pair in chunk]
        scored = iter(scoring.score(translator, [pair for pair, fit in zip(chunk, fits, strict=True) if fit]))
        scores += [next(scored).score if fit else float("-inf") for fit in fits]
    worst = sorted(scores)[int(bench.share * len(scores))]
    kept = (pair for pair, score in zip(bench.pairs("train"), scores, strict=True) if score >= worst)
    source = bench.write(f"scores-{bench.share:g}", kept)
    return Change(source, facts={"share": bench.share, "before_minutes": _minutes(started)})


def _fits(translator: SearchTranslator, pair: Texts) -> bool:
    """True for a pair that training keeps."""
    sides = zip((translator.tokenizers.src, translator.tokenizers.tgt), pair, strict=True)
    return all(0 < len(tokenizer.encode(text)) <= translator.max_src_tokens for tokenizer, text in sides)


# -- mixtures, teachers ----------------------------------------------------------------------------------------------


def by_temperature(temperature: float) -> Callable[[Bench], Change]:
    """The training pairs as a mixture of kinds, small kinds more often."""

    def change(bench: Bench) -> Change:
        groups: defaultdict[str, list[Texts]] = defaultdict(list)
        for line, pair in zip(read_lines(bench.corpus / ORIGINS), bench.pairs("train"), strict=True):
            groups[debian.kind_of(line.partition("\t")[0])].append(pair)
        sources = [bench.write(f"kind-{kind}", pairs) for kind, pairs in sorted(groups.items())]
        counts = {kind: len(pairs) for kind, pairs in sorted(groups.items())}
        mix = {"type": "mix", "sources": sources, "weights": {"temperature": temperature}}
        return Change(mix, facts={"kinds": counts})

    return change


def taught(bench: Bench) -> Change:
    """The teacher is the recipe's run: its translations are in the place of people's, as far as the time goes."""
    teacher = bench.base()
    translator = SearchTranslator.load(teacher, beam_size=1)
    if importlib.util.find_spec("ctranslate2"):
        translator = export.engine(teacher, "ctranslate2", translator)
    pairs = list(bench.pairs("train"))
    order = sorted(range(len(pairs)), key=lambda number: hash64(pairs[number][0]))
    started, translated = time.monotonic(), dict[int, str]()
    for rows in in_chunks(order, CHUNK):
        if time.monotonic() - started > 60 * bench.minutes:
            break
        translated |= zip(rows, translator.translate([pairs[row][0] for row in rows]), strict=True)
    texts = ((src, translated.get(row, "").strip() or tgt) for row, (src, tgt) in enumerate(pairs))
    facts = {"translated": len(translated), "before_minutes": _minutes(started)}
    return Change(bench.write("taught", texts), facts=facts)


def beside_teacher(bench: Bench) -> Change:
    """The teacher's probabilities of each token are half of what is learnt."""
    teacher = str(bench.base())
    reuse, distillation = {"type": "reuse", "run": teacher}, {"teachers": [teacher]}
    return Change(overrides=(f"tokenizer={json.dumps(reuse)}", f"distillation={json.dumps(distillation)}"))


def _minutes(started: float) -> float:
    return round((time.monotonic() - started) / 60, 2)


# -- sizes -----------------------------------------------------------------------------------------------------------


def by_pairs(bench: Bench) -> Change:
    """The sizes that the number of pairs gives where nobody says how much time there is."""
    size = sizes.size_for(sum(1 for _ in bench.pairs("train")))
    return Change(settings=settings_of(size), facts={"size": vars(size)})


def by_budget(bench: Bench) -> Change:
    """The sizes that `--budget` takes for the corpus and the time on this machine."""
    size, explained = size_within(bench)
    return Change(settings=settings_of(size), facts={"size": vars(size), "explanation": explained})


def size_within(bench: Bench) -> tuple[sizes.TrainingSize, str]:
    """The sizes for the time, and the choice in words."""
    seconds = 60 * bench.minutes
    budget = sizes.Budget(seconds, lambda: measured_speed("cpu", seconds))
    tokens = sizes.PIECES_A_WORD * sizes.words_of(parse(FilesSource, bench.source("train"), "train"))
    size = sizes.size_within(budget, tokens)
    return size, sizes.explanation(size, budget, tokens)


def alone(*overrides: str) -> Callable[[Bench], Change]:
    """The recipe but for some settings."""
    return lambda bench: Change(overrides=overrides)


VARIANTS: dict[str, tuple[str, Callable[[Bench], Change]]] = {
    "recipe": ("the recipe as it is", alone()),
    "raw": ("all entries as they stand in the files, nothing cleaned or left out", raw),
    "unfiltered": ("cleaned, but nothing left out", without_filters(name for name in REASONS if name != "leaks")),
    **{
        f"unfiltered-{name}": (f"cleaned, {name} not left out", without_filters([name]))
        for name in REASONS
    },
    "scores": ("without the worst tenth (--share) by `dragoman score` of the recipe's run", without_worst),
    "temperature": ("kinds mixed at temperature 5", by_temperature(5.0)),
    "temperature-2": ("kinds mixed at temperature 2", by_temperature(2.0)),
    "bpe-dropout": ("BPE-dropout of 0.1", alone("tokenizer.sampling=0.1")),
    "distillation": ("trained on translations of the recipe's run", taught),
    "teacher": ("the recipe's run teaches each token", beside_teacher),
    "no-averaging": ("without an average of the weights", alone("training.averaging={type: none}")),
    "by-pairs": ("the sizes that the number of pairs gives", by_pairs),
    "by-budget": ("the sizes that --budget gives", by_budget),
}  # fmt: skip
"""Name of a variant: (what it is, its difference from the recipe)."""
