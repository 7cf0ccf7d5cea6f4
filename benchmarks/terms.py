"""Terms of a glossary that the training text mostly translates otherwise: placed, inflected as in the reference, BLEU.

    DRAGOMAN_DATA=... python benchmarks/terms.py RUN [--size 500] [--train SRC TGT] [--test SRC TGT] [--show 20]

Each sentence has a glossary of its own: phrases of it that its reference translates in a way that the training text has
less often than another, as links of words tell. The glossary has the lemma of that translation, as people write it. A
run that has learnt terms (`corpus.augment.terms`) is measured without them, with terms forced alone, annotated alone,
and both.
"""

import argparse
import copy
import functools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.alignment.lexicon import WordAligner
from dragoman.alignment.phrases import Aligned, WordLinks
from dragoman.alignment.term_placement import translations_with_terms, with_glossary
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.text import learnt_terms
from dragoman.text.annotations import has_learnt
from dragoman.text.glossary import Glossary
from dragoman.text.learnt_terms import inflected
from dragoman.text.lines import read_lines
from dragoman.text.lookup import words_like
from dragoman.text.words import split_words, words
from dragoman.training.annotated_terms import TermAnnotator

LONGEST = 2
"""Words of a term, at most."""
LEAST = 3
"""Times that the training text has a term, and its less frequent translation once fewer, at least."""
USUAL = 2
"""Times that the usual translation is as frequent as that of the reference, at least."""
READ = 20_000
"""Pairs of the training text that are aligned."""

Pairs = Sequence[tuple[str, str]]
Way = Callable[[SearchTranslator, Glossary], SearchTranslator]


class Term(NamedTuple):
    """A term, the lemma of its translation, and the form that the reference has."""

    src: str
    tgt: str
    form: str


class Case(NamedTuple):
    """A sentence with terms."""

    src: str
    ref: str
    terms: tuple[Term, ...]

    def glossary(self, languages: tuple[str, str]) -> Glossary:
        return inflected(Glossary({term.src: term.tgt for term in self.terms}), languages)


class Phrases:
    """The phrases of pairs that translate each other, as the terms of training are chosen."""

    def __init__(self, pairs: Pairs, language: str) -> None:
        split = [(split_words(src), split_words(tgt)) for src, tgt in pairs]
        self.aligner, self.annotator = WordAligner(split), TermAnnotator.of_words(split, language)

    def terms(self, src: str, tgt: str) -> list[Term]:
        """All terms of a pair that its training could annotate."""
        links = WordLinks(self.aligner.links(split_words(src), split_words(tgt)))
        pair = Aligned(src, tgt, words(src), words(tgt), links)
        found = []
        for start in range(len(pair.src_words)):
            for end in range(start + 1, min(start + LONGEST, len(pair.src_words)) + 1):
                phrase = links.phrase(start, end)
                if phrase and self.annotator.is_term(pair, phrase):
                    form = tgt[pair.tgt_words[phrase.tgt_start].start : pair.tgt_words[phrase.tgt_end - 1].end]
                    lemma = self.annotator.target(pair, phrase)
                    found.append(Term(src[pair.src_words[start].start : pair.src_words[end - 1].end], lemma, form))
        return found


def cases(train: Pairs, test: Pairs, languages: tuple[str, str], size: int) -> list[Case]:
    """The first `size` sentences of a test set with terms that the training text mostly translates otherwise."""
    phrases = Phrases(train, languages[1])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in train:
        for term in phrases.terms(*pair):
            counts[term.src.lower()][term.tgt.lower()] += 1
    found = []
    for src, ref in test:
        chosen: list[Term] = []
        for term in phrases.terms(src, ref):
            of_term = counts[term.src.lower()]
            own, (usual, most) = (
                of_term[term.tgt.lower()],
                max(of_term.items(), key=lambda one: one[1], default=("", 0)),
            )
            others = {word for other in chosen for word in other.src.lower().split()}
            if (
                min(most, own + 1) >= LEAST
                and most >= USUAL * own
                and usual not in ref.lower()
                and len(words_like(term.src, src)) == 1
                and not others & set(term.src.lower().split())
            ):
                chosen.append(term)
        if chosen:
            found.append(Case(src, ref, tuple(chosen)))
        if len(found) == size:
            break
    return found


def forced(translator: SearchTranslator, glossary: Glossary) -> SearchTranslator:
    """Terms put into a translation of a model that knows nothing of them."""
    return translator.with_terms(Glossary(glossary.targets), apply_glossary=translations_with_terms)


def annotated(translator: SearchTranslator, glossary: Glossary) -> SearchTranslator:
    """Terms read by the model, and none forced."""
    other = copy.copy(translator)
    other.annotate = functools.partial(learnt_terms.annotated, glossary)
    return other


def ways(translator: SearchTranslator) -> dict[str, Way]:
    """What can be done with the terms, by name."""
    found: dict[str, Way] = {"nothing": lambda translator, _: translator, "forced": forced}
    return found | ({"learnt": annotated, "both": with_glossary} if has_learnt("terms", translator.tokenizers) else {})


class Figures(NamedTuple):
    """Shares in per cent, of terms, and BLEU."""

    placed: float
    inflected: float
    bleu: float


def figures(chosen: Sequence[Case], translations: Sequence[str], languages: tuple[str, str]) -> Figures:
    """The figures of the translations of some cases."""
    placed = same = total = 0
    for case, text in zip(chosen, translations, strict=True):
        glossary = case.glossary(languages)
        total += len(case.terms)
        placed += sum(bool(glossary.written(term.tgt, text)) for term in case.terms)
        same += sum(bool(words_like(term.form, text)) for term in case.terms)
    bleu = score(translations, [case.ref for case in chosen], EvaluationConfig(), languages[1], with_ter=False)
    return Figures(100 * placed / total, 100 * same / total, bleu.values["bleu"])


def table(rows: dict[str, Figures], chosen: Sequence[Case]) -> str:
    num_terms = sum(len(case.terms) for case in chosen)
    lines = [
        f"{len(chosen)} sentences, {num_terms} terms",
        "",
        "| terms | placed, % | form of the reference, % | BLEU |",
        "|---|---|---|---|",
    ]
    return "\n".join([*lines, *(f"| {name} | {a:.1f} | {b:.1f} | {c:.2f} |" for name, (a, b, c) in rows.items())])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = Path(os.environ.get("DRAGOMAN_DATA", "data")) / "libreoffice-help-en-de"
    parser.add_argument("run", type=Path)
    parser.add_argument("--size", type=int, default=500)
    for split in ("train", "test"):
        default = [data / f"{split}.{code}.gz" for code in ("en", "de")]
        parser.add_argument(f"--{split}", type=Path, nargs=2, default=default)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args(arguments)
    translator = SearchTranslator.load(options.run, device="cpu", n_best=1)
    languages = translator.languages or ("en", "de")
    train, test = (list(zip(*map(read_lines, files), strict=True)) for files in (options.train, options.test))
    chosen = cases(train[:READ], test, languages, options.size)
    rows = {}
    for name, way in ways(translator).items():
        made = [way(translator, case.glossary(languages)).translate([case.src])[0] for case in chosen]
        rows[name] = figures(chosen, made, languages)
        for case, text in zip(chosen[: options.show], made, strict=False):
            print(
                f"{name}: {case.src}\n  {[f'{term.src} = {term.tgt}' for term in case.terms]}\n  {case.ref}\n  {text}"
            )
    print(table(rows, chosen))


if __name__ == "__main__":
    main()
