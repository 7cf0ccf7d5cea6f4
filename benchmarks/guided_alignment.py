"""Links of words by what a run has: codes carried to the translators' own text by each, and what that takes.

    python benchmarks/guided_alignment.py SOURCE.markup.gz TARGET.markup.gz RUN... [--most LINES] [--terms TERM=WORD...]

For each run the pairs of codes around the translators' words (`markup.py`), by its trained head (of a run with
`model.alignment_head`), by its attention as it is without one, and by erasure; and seconds of processor time a
paragraph. A lexicon alone, learnt from the run's training pairs, needs no model. With terms, also the share of them
whose translation, in the translators' text, has its strongest link to the term (each standing once in its paragraph).
"""

import argparse
import gzip
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from localisation import items_of
from markup import LinksOf, agreement, by_links, rows_of

from dragoman.alignment.attention import attention_links_if_any, head_links
from dragoman.alignment.erasure import erasure_links
from dragoman.alignment.lexicon import MAX_PAIRS, WordAligner
from dragoman.alignment.links import AlignedPair, Links, aligned_pair
from dragoman.alignment.markup import text_and_codes
from dragoman.alignment.word_links import with_identical
from dragoman.inference.search_translator import SearchTranslator
from dragoman.tasks import recipes
from dragoman.text.words import Word, split_words


def of_lexicon(run: Path) -> LinksOf:
    """Links by a lexicon of the pairs that a run was trained on."""
    pairs = recipes.of_run(run).corpus.train.pairs()  # type: ignore[attr-defined]
    aligner = WordAligner([(split_words(pair.src), split_words(pair.tgt)) for pair, _ in zip(pairs, range(MAX_PAIRS))])  # noqa: B905

    def texts(text: str, words: Sequence[Word]) -> list[str]:
        return [text[slice(*word)] for word in words]

    def links_of(pair: AlignedPair) -> Links:
        links = np.zeros((len(pair.tgt_words), len(pair.src_words)))
        for src, tgt in aligner.links(texts(pair.src, pair.src_words), texts(pair.tgt, pair.tgt_words)):
            links[tgt, src] = 1.0
        return links / np.maximum(links.sum(axis=1, keepdims=True), 1)

    return links_of


def kinds(translator: SearchTranslator) -> dict[str, LinksOf]:
    """Ways of linking the words of a pair, words that stand on both sides linked to themselves."""
    head = translator.model.alignment_head

    def identical(links: LinksOf) -> LinksOf:
        return lambda pair: with_identical(pair, links(pair))

    by: dict[str, LinksOf] = {"erasure": lambda pair: erasure_links(translator, [pair])[0]}
    if head is not None:
        by = {"head": lambda pair: head_links(translator, pair), **by}
    else:
        by = {"attention": lambda pair: attention_links_if_any(translator, pair), **by}
    return {name: identical(links) for name, links in by.items()}


def plain_pairs(translator: SearchTranslator, *paths: str) -> list[AlignedPair]:
    """All paragraphs that the run can read, without their codes."""
    sides = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sides.append([text_and_codes(items_of(line.rstrip("\n")) or [])[0] for line in file])
    readers, limit = (translator.tokenizers.src, translator.tokenizers.tgt), translator.max_src_tokens
    rows = [row for row in zip(*sides, strict=True) if all(row)]
    return [
        aligned_pair(*row)
        for row in rows
        if all(len(reader.encode(text)) < limit for reader, text in zip(readers, row, strict=True))
    ]


def terms_linked(pairs: Sequence[AlignedPair], links_of: LinksOf, terms: Mapping[str, str]) -> tuple[int, int]:
    """(number whose strongest link is the term's word, number) of the translations of terms that stand once."""
    right = every = 0
    for pair in pairs:
        src, tgt = (
            [text[slice(*word)].lower() for word in words] for text, words in zip(pair[:2], pair[2:], strict=True)
        )
        there = [(src.index(a), tgt.index(b)) for a, b in terms.items() if src.count(a) == tgt.count(b) == 1]
        if there:
            links = links_of(pair)
            right += sum(int(links[row].argmax()) == column for column, row in there)
            every += len(there)
    return right, every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--most", type=int, help="lines that are read, at most")
    parser.add_argument("--terms", nargs="*", default=[], metavar="TERM=WORD", help="in lower case")
    options = parser.parse_args()
    terms = dict(term.split("=") for term in options.terms)
    every = rows_of(options.src, options.tgt, options.most)
    print("| run | links by | around the translators' words | ms a paragraph |\n|---|---|---|---|")
    for number, run in enumerate(options.runs):
        translator = SearchTranslator.load(run)
        limit, encode = translator.max_src_tokens, translator.tokenizers.src.encode
        rows = [row for row in every if len(encode(text_and_codes(row[0])[0])) < limit]
        for name, links_of in {**kinds(translator), **({} if number else {"lexicon": of_lexicon(run)})}.items():
            started = time.process_time()
            share, common = agreement(rows, by_links(links_of))
            each = 1000 * (time.process_time() - started) / max(len(rows), 1)
            print(f"| {run.name} | {name} | {share:.1f} % of {common} | {each:.1f} |", flush=True)
            if terms:
                right, there = terms_linked(plain_pairs(translator, options.src, options.tgt), links_of, terms)
                print(f"terms: {run.name}, {name}: {100 * right / max(there, 1):.1f} % of {there}", flush=True)


if __name__ == "__main__":
    main()
