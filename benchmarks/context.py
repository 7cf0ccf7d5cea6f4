"""What the sentences before decide: pronouns and terms, by a contrastive test; terms of a page translated alike; BLEU.

    python benchmarks/context.py make SRC TGT PAGES OUT.jsonl [--train SRC TGT] [--languages en de] [--before 2]
    python benchmarks/context.py score RUN OUT.jsonl
    python benchmarks/context.py pages RUN SRC TGT PAGES

PAGES names the page of each line, its first column (`*.ids.gz` of `dragoman data libreoffice-help`). `make` looks for
two kinds of cases, by links of words:

- pronouns: `it` or `they` at the beginning of a sentence, where its referent cannot be in the sentence itself; the
  translators' pronoun against the one of another gender;
- terms: a word that the training text translates in two ways, which stands in a sentence before as well, translated
  there as here; the translators' word against the other one.

`score` counts the cases in which a run finds the translators' own more probable than the others, with the sentences
before and without (Müller et al. 2018, "A Large-Scale Test Set for the Evaluation of Context-Aware Pronoun
Translation"). `pages` translates pages with both: BLEU, chrF, and the share of words that a page repeats whose
translation is the one that they had last.
"""

import argparse
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import sacrebleu

import dragoman
from dragoman.alignment.lexicon import WordAligner
from dragoman.errors import DragomanError
from dragoman.inference.scoring import score
from dragoman.pipeline.sentence_pairs import sentence_pairs
from dragoman.pipeline.translator import Translator
from dragoman.text.annotations import in_context
from dragoman.text.lines import read_lines
from dragoman.text.words import split_words, words

PRONOUNS = {
    ("en", "de"): {"it": ("er", "sie", "es")},
    ("en", "fr"): {"it": ("il", "elle"), "they": ("ils", "elles")},
}
"""Pronouns of the source, and those of the target that only the gender of their referent tells apart."""
ARTICLES = {
    "er": "der den ein einen dieser diesen", "sie": "die eine diese", "es": "das ein dieses",
    "il": "le un ce cet l", "elle": "la une cette l", "ils": "les des ces", "elles": "les des ces",
}  # fmt: skip
"""What stands before a noun of the gender of each: one of them is in the sentence before, or it decides nothing."""
EMPTY = re.compile(r"\bit( is| was|'s| can be| may be)( not)? \w+ (to|that|if|when)\b", re.IGNORECASE)
"""`It is possible to ...` refers to nothing."""
FIRST = 3
"""Words of a sentence that count as its beginning."""
LETTERS = 4
"""A term has as many letters, at least; and its two translations differ within as many."""
LEAST, SHARE = 10, 0.2
"""Times, and share of all, that the training text has each of the two translations of a term, at least."""
USUAL = 200
"""Words of the source so frequent are no terms."""
READ = 40_000
"""Pairs of the training text that are aligned."""

Pair = tuple[str, str]
Page = list[Pair]


@dataclass(frozen=True)
class Case:
    """A sentence with its translation and others that differ in one word, and the pairs before it."""

    kind: str
    before: list[Pair]
    src: str
    tgt: str
    others: list[str]


class Words:
    """The words of training text, and what each is translated by."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        split = [(split_words(src), split_words(tgt)) for src, tgt in pairs]
        self.aligner = WordAligner(split)
        self.translations: dict[str, Counter[str]] = defaultdict(Counter)
        for src, tgt in pairs:
            for word, (start, end) in self.linked(src, tgt):
                self.translations[word][tgt[start:end]] += 1
        counts = Counter(word.lower() for src, _ in split for word in src)
        self.usual = {word for word, _ in counts.most_common(USUAL)}

    def linked(self, src: str, tgt: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """Each word of a source, in lower case, and where its translation stands, of those with a single link."""
        links = self.aligner.links(split_words(src), split_words(tgt))
        times = [Counter(pair[side] for pair in links) for side in (0, 1)]
        places = words(tgt)
        for one, other in links:
            if times[0][one] == times[1][other] == 1:
                yield split_words(src)[one].lower(), (places[other].start, places[other].end)

    def two(self, word: str) -> list[str]:
        """The two usual translations of a term; none of a word that has one, or many."""
        if len(word) < LETTERS or not word.isalpha() or word in self.usual:
            return []
        counts = self.translations[word]
        both = [form for form, count in counts.most_common(2) if count >= max(LEAST, SHARE * counts.total())]
        begins = {form[:LETTERS].lower() for form in both}
        return both if len(begins) == 2 else []


def pages_of(src: Path, tgt: Path, names: Path) -> list[Page]:
    """The pages of a corpus, in order, each with its pairs."""
    rows = zip(read_lines(names), read_lines(src), read_lines(tgt), strict=True)
    of_page = itertools.groupby(rows, key=lambda row: row[0].split("\t")[0])
    return [[(one, other) for _, one, other in group] for _, group in of_page]


def in_sentences(page: Page, languages: tuple[str, str]) -> Page:
    """The pairs of a page, cut into sentences where those align."""
    return [pair for one in page for pair in sentence_pairs(*one, languages) or [one]]


def cases_of(pages: Sequence[Page], known: Words, languages: tuple[str, str], num_before: int) -> list[Case]:
    """The cases of pages, in their order."""
    cases = []
    for page in (in_sentences(page, languages) for page in pages):
        for row, (src, tgt) in enumerate(page):
            before = page[max(0, row - num_before) : row]
            if before:
                cases += _pronouns(before, src, tgt, known, PRONOUNS.get(languages, {}))
                cases += _terms(before, src, tgt, known)
    return cases


def _pronouns(
    before: list[Pair], src: str, tgt: str, known: Words, pronouns: dict[str, tuple[str, ...]]
) -> Iterator[Case]:
    begins = [word.lower() for word in split_words(src)[:FIRST]]
    if EMPTY.search(src):
        return
    for word, (start, end) in known.linked(src, tgt):
        forms, own = pronouns.get(word, ()), tgt[start:end]
        at_beginning = begins.count(word) == 1 == [one.lower() for one in split_words(src)].count(word)
        if own.lower() not in forms or not at_beginning or (own == "Sie" and start > 0):  # `Sie` elsewhere is "you"
            continue
        articles = ARTICLES[own.lower()].split()
        if any(one.lower() in articles for one in split_words(before[-1][1])):
            others = [tgt[:start] + _like(own, form) + tgt[end:] for form in forms if form != own.lower()]
            yield Case("pronoun", before, src, tgt, others)


def _terms(before: list[Pair], src: str, tgt: str, known: Words) -> Iterator[Case]:
    had = {(word, one[1][slice(*place)]) for one in before for word, place in known.linked(*one)}
    for word, (start, end) in known.linked(src, tgt):
        both, own = known.two(word), tgt[start:end]
        if own in both and (word, own) in had:
            [other] = (form for form in both if form != own)
            if (word, other) not in had:
                yield Case("term", before, src, tgt, [tgt[:start] + other + tgt[end:]])


def _like(own: str, form: str) -> str:
    return form.capitalize() if own[0].isupper() else form


def chosen(translator: Translator, cases: Sequence[Case], count: tuple[int, int]) -> list[bool]:
    """For each case, whether the run finds the translators' own the most probable. `count`: sentences before that are
    read, of the source and of the target."""
    right = []
    for case in cases:
        log_probs = [_log_prob(translator, case, tgt, count) for tgt in (case.tgt, *case.others)]
        right.append(log_probs[0] > max(log_probs[1:]))
    return right


def _log_prob(translator: Translator, case: Case, tgt: str, count: tuple[int, int]) -> float:
    """The log probability of a translation behind as many of the pairs before as fit. That of the translations before
    is in it, and the same for all that are compared."""
    for num_src in range(min(count[0], len(case.before)), -1, -1):
        sides = [case.before[len(case.before) - number :] for number in (num_src, min(count[1], num_src))]
        pair = [in_context([one[side] for one in sides[side]], own) for side, own in enumerate((case.src, tgt))]
        try:
            return score(translator.search, [(pair[0], pair[1])])[0].log_prob
        except DragomanError:  # too long: fewer sentences before
            if not num_src:
                raise
    raise AssertionError("a case has a translation")


def alike(pages: Sequence[Sequence[Pair]], known: Words) -> tuple[int, int]:
    """(words that a page repeats whose translation is the one that they had last there, such words)."""
    same = total = 0
    for page in pages:
        last: dict[str, str] = {}
        for src, tgt in page:
            now = {word: tgt[slice(*place)].lower() for word, place in known.linked(src, tgt)}
            for word, form in now.items():
                if len(word) >= LETTERS and word.isalpha() and word not in known.usual:
                    total += word in last
                    same += last.get(word) == form
                    last[word] = form
    return same, total


def translated(translator: Translator, pages: Sequence[Page], context: str) -> list[Page]:
    """Pages with the run's translations; each is a document."""
    lines = [[src for src, _ in page] for page in pages]
    if context == "none":
        texts = translator.translate([src for page in lines for src in page], context="none")
    else:
        texts = [text for page in lines for text in translator.translate(page, context=context)]
    rest = iter(texts)
    return [[(src, next(rest)) for src in page] for page in lines]


def show_pages(run: Path, pages: Sequence[Page], known: Words) -> None:
    translator = dragoman.load(run)
    references = [tgt for page in pages for _, tgt in page]
    print("| | BLEU | chrF | words of a page translated as before |\n|---|---|---|---|")
    ways = ["none", "previous"] if translator.pipeline.context[0] else ["none"]
    for name in ("the translators", *ways):
        of_way = pages if name == "the translators" else translated(translator, pages, name)
        texts = [tgt for page in of_way for _, tgt in page]
        same, total = alike(of_way, known)
        bleu, chrf = (metric(texts, [references]).score for metric in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf))
        print(f"| {name} | {bleu:.2f} | {chrf:.2f} | {100 * same / max(1, total):.1f} % of {total:,} |", flush=True)


def show_score(run: Path, cases: Sequence[Case]) -> None:
    translator = dragoman.load(run)
    print("| cases | | without | with the sentences before |\n|---|---|---|---|")
    for kind in sorted({case.kind for case in cases}):
        of_kind = [case for case in cases if case.kind == kind]
        shares = []
        for count in ((0, 0), translator.pipeline.context):
            shares.append(f"{100 * sum(chosen(translator, of_kind, count)) / len(of_kind):.1f} %")
        print(f"| {kind} | {len(of_kind):,} | {' | '.join(shares)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    modes = parser.add_subparsers(dest="mode", required=True)
    make, of_score, of_pages = (modes.add_parser(name) for name in ("make", "score", "pages"))
    for mode in (of_score, of_pages):
        mode.add_argument("run", type=Path)
    for mode in (make, of_pages):
        for name in ("src", "tgt", "names"):
            mode.add_argument(name, type=Path)
        mode.add_argument("--train", type=Path, nargs=2, help="Text to learn links and translations of words from.")
    make.add_argument("out", type=Path)
    make.add_argument("--languages", nargs=2, default=("en", "de"))
    make.add_argument("--before", type=int, default=2)
    of_score.add_argument("cases", type=Path)
    options = parser.parse_args(arguments)
    if options.mode == "score":
        show_score(options.run, [Case(**json.loads(line)) for line in read_lines(options.cases)])
        return
    pages = pages_of(options.src, options.tgt, options.names)
    train = options.train or (options.src, options.tgt)
    known = Words(list(itertools.islice(zip(*map(read_lines, train), strict=True), READ)))
    if options.mode == "pages":
        show_pages(options.run, pages, known)
        return
    cases = cases_of(pages, known, tuple(options.languages), options.before)
    options.out.write_text(
        "".join(json.dumps(asdict(case), ensure_ascii=False) + "\n" for case in cases), encoding="utf-8"
    )
    print(f"{options.out}: {dict(Counter(case.kind for case in cases))} in {len(pages):,} pages")


if __name__ == "__main__":
    main()
