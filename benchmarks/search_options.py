"""What each way of searching does to BLEU and chrF, and what it costs.

    python benchmarks/search_options.py --run RUN --ensemble RUN --ensemble RUN --src test.en --ref test.de

Prints a table; a row is one translation of the whole file, in turn, after 256 sentences that do not count. The terms
of the row "terms" are one word of five letters or more of each reference, drawn with a fixed seed: what a person who
knows one right word would ask for.
"""

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from dragoman.alignment.term_placement import with_glossary
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.text.glossary import Glossary, TermMatch
from dragoman.text.lines import read_lines

WARM_UP = 256
"""Sentences that do not count: the memory of batches as large as any is there when the clock starts."""


class TermsOfReferences(Glossary):
    """For each source text one word of its reference, both normalised."""

    def normalized(self, normalize: Callable[[str], str]) -> "TermsOfReferences":
        return self  # what is inherited makes a plain glossary, which looks for whole source texts as terms

    def find(self, text: str) -> list[TermMatch]:
        return [TermMatch(0, 0, self.targets[text])] if text in self.targets else []


def terms(src: list[str], ref: list[str], translator: SearchTranslator) -> TermsOfReferences:
    rng = random.Random(1)
    chosen = {}
    for source, reference in zip(src, ref, strict=True):
        words = [word for word in translator.normalize(reference).split() if len(word) >= 5 and word.isalpha()]
        tokenizer = translator.tokenizers.tgt
        words = [word for word in words if tokenizer.decode(tokenizer.encode(word)) == word]
        if words:
            chosen[translator.normalize(source)] = rng.choice(words)
    return TermsOfReferences(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--ensemble", type=Path, action="append", default=[])
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--tokenize", default="auto")
    parser.add_argument("--lang", default="de")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    options = parser.parse_args()
    src, ref = list(read_lines(options.src)), list(read_lines(options.ref))
    one = SearchTranslator.load(options.run)
    several = [
        (f"ensemble of {1 + count}", SearchTranslator.load(options.run, ensemble=options.ensemble[:count]))
        for count in range(1, 1 + len(options.ensemble))
    ]
    wanted = terms(src, ref, one)
    termed = with_glossary(SearchTranslator.load(options.run), wanted)
    drawn = {"samples": 32, "temperature": 1.0}
    rows = [
        ("greedy", SearchTranslator.load(options.run, beam_size=1)),
        ("beam 5", one),
        ("beam 5, bfloat16", SearchTranslator.load(options.run, precision="bfloat16")),
        ("beam 10", SearchTranslator.load(options.run, beam_size=10)),
        ("beam 5, coverage 0.2", SearchTranslator.load(options.run, coverage_penalty=0.2)),
        ("one sample", SearchTranslator.load(options.run, sampling={"samples": 1})),
        *several,
        ("terms: one word of each reference", termed),
        ("MBR (chrF) of a beam of 10", SearchTranslator.load(options.run, beam_size=10, mbr="chrf")),
        ("MBR (BLEU) of a beam of 10", SearchTranslator.load(options.run, beam_size=10, mbr="bleu")),
        ("MBR (chrF) of 32 samples", SearchTranslator.load(options.run, sampling=drawn, mbr="chrf")),
        (
            "MBR (chrF) of 32 samples, top-p 0.8",
            SearchTranslator.load(options.run, sampling={**drawn, "top_p": 0.8}, mbr="chrf"),
        ),
    ]
    print(f"{len(src):,} sentences, {len(wanted.targets):,} of them with a term")
    print("| search | BLEU | chrF | seconds | terms written |")
    print("|---|---|---|---|---|")
    for name, translator in [row for row in rows if options.only in row[0]]:
        translator.translate(src[:WARM_UP])
        started = time.monotonic()
        found = translator.translate(src)
        seconds = time.monotonic() - started
        scores = score(found, ref, EvaluationConfig(tokenize=options.tokenize), options.lang, with_ter=False)
        written = [
            wanted.targets[key] in text.split()
            for key, text in zip(map(translator.normalize, src), found, strict=True)
            if key in wanted.targets
        ]
        print(
            f"| {name} | {scores.bleu:.2f} | {scores.chrf:.2f} | {seconds:.1f} | {sum(written) / len(written):.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
