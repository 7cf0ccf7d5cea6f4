"""A student beside its teacher: BLEU, and source words a second on one core, both in CTranslate2 with int8 weights.

    python benchmarks/students.py TEACHER STUDENT --src test.en --ref test.de

Both are exported (the student with a shortlist), and translate the same text in turn, `--rounds` times; the best round
of each counts, and the spread is told. The teacher searches as its run says, and greedily as well, to tell
what is won by the smaller model and what by needing no beam. Tokenization is not in the time.
"""

import argparse
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ctranslate2
import sacrebleu

from dragoman.export import export
from dragoman.inference.search_translator import SearchTranslator

BATCH = 32
"""Sentences of a batch: a shortlist holds what all of them may need."""


@dataclass
class Contender:
    """A model with a way to search."""

    name: str
    translator: SearchTranslator
    runtime: Any
    beam_size: int
    shortlist: bool
    seconds: list[float] = field(default_factory=list)
    bleu: float = 0.0

    def translate(self, lines: list[str], references: list[str]) -> None:
        tokenizers = self.translator.tokenizers
        pieces = [tokenizers.src.pieces(tokenizers.src.encode(self.translator.normalize(line))) for line in lines]
        alpha = getattr(self.translator.decoding.length_penalty, "alpha", 0.0)
        started = time.perf_counter()
        found = self.runtime.translate_batch(
            pieces,
            beam_size=self.beam_size,
            length_penalty=alpha,
            use_vmap=self.shortlist,
            max_batch_size=BATCH,
            batch_type="examples",
            disable_unk=True,
        )
        self.seconds.append(time.perf_counter() - started)
        ids = {piece: index for index, piece in enumerate(tokenizers.tgt.pieces(range(tokenizers.tgt.vocab_size)))}
        texts = [tokenizers.tgt.decode([ids[piece] for piece in one.hypotheses[0]]) for one in found]
        self.bleu = sacrebleu.corpus_bleu(texts, [references]).score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("teacher", type=Path)
    parser.add_argument("student", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    lines, references = (path.read_text(encoding="utf-8").splitlines() for path in (options.src, options.ref))
    words = sum(len(line.split()) for line in lines)
    contenders = []
    with tempfile.TemporaryDirectory() as folder:
        runs = {"teacher": options.teacher, "student": options.student}
        for name, run in runs.items():
            export(run, "ctranslate2", Path(folder) / name, quantize="int8", shortlist=name == "student", verify=False)
        os.sched_setaffinity(0, {0})
        for name, run in runs.items():
            translator = SearchTranslator.load(run, device="cpu")
            runtime = ctranslate2.Translator(
                str(Path(folder) / name), inter_threads=1, intra_threads=1, compute_type="int8"
            )
            for beam in dict.fromkeys((translator.decoding.beam_size, 2, 1)):
                for shortlist in (True, False) if name == "student" else (False,):
                    contenders.append(Contender(name, translator, runtime, beam, shortlist))
        for _ in range(options.rounds):
            for one in contenders:
                one.translate(lines, references)
        sizes = {name: (Path(folder) / name / "model.bin").stat().st_size for name in runs}
    own = contenders[0]
    print("| model | beam | shortlist | BLEU | words/s | spread | times the teacher's | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for one in contenders:
        best, worst = (words / extreme(one.seconds) for extreme in (min, max))
        cells = [
            one.name,
            one.beam_size,
            "yes" if one.shortlist else "no",
            f"{one.bleu:.2f}",
            f"{best:,.0f}",
            f"{worst:,.0f} to {best:,.0f}",
            f"{min(own.seconds) / min(one.seconds):.2f}",
            f"{sizes[one.name] / 1e6:.1f}",
        ]
        print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
