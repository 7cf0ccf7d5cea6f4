"""A run in Marian, in a browser's module, in CTranslate2 and here: the same translations (speed: `translation.py`).

    python benchmarks/marian.py RUN LINES [--ref FILE] [--marian PYTHON] [--bergamot FOLDER]

Counts the lines of which an export's runtime has the same translation as ours, and lists others with the scores that we
give to both. `--marian`: a Python that has pymarian; `--bergamot`: a folder of the npm package
`@browsermt/bergamot-translator`, which node runs. What is not there, or cannot hold the model, is named and left out.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dragoman import export
from dragoman.errors import DragomanError
from dragoman.export import bergamot, marian
from dragoman.export.verify import Difference, ExportComparison, compare_export
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.quality.scores import EvaluationConfig
from dragoman.quality.test_set import TestSet
from dragoman.text.lines import read_lines

COMPARED = [
    ("ctranslate2", 1, None),
    ("ctranslate2", 5, None),
    ("marian", 1, None),
    ("marian", 5, None),
    ("bergamot", 1, None),
    ("bergamot", 1, "int8"),
]
"""Targets with a beam and quantised weights; a browser's search is greedy."""


def equal(options: argparse.Namespace) -> None:
    translator = SearchTranslator.load(options.run, device="cpu")
    references = [list(read_lines(options.ref))] if options.ref else []
    text = TestSet(list(read_lines(options.lines)), references)
    print("| target | beam | weights | equal | largest score difference | BLEU, export's |\n|---|---|---|---|---|---|")
    differing = []
    for name, beam, quantize in COMPARED:
        try:
            found = compared(translator.with_decoding(beam_size=beam, n_best=1), text, name, quantize)
        except DragomanError as error:
            print(f"| {name} | {beam} | {quantize or 'float32'} | {' '.join(str(error).split())} | | |", flush=True)
            continue
        count = f"{len(text) - len(found.differences):,} of {len(text):,}"
        bleu = "{:.2f}, {:.2f}".format(*found.bleu) if found.bleu else ""
        scores = f"{found.score_difference:.1e}" if name != "bergamot" else ""
        print(f"| {name} | {beam} | {quantize or 'float32'} | {count} | {scores} | {bleu} |", flush=True)
        differing.append((f"{name}, beam {beam}, {quantize or 'float32'}", found.differences))
    for title, differences in differing:
        for line in listed(translator, differences[: options.listed]):
            print(f"- {title}: {line}")


def compared(translator: SearchTranslator, text: TestSet, name: str, quantize: str | None) -> ExportComparison:
    """Raises DragomanError where the target cannot hold the model, or its runtime is not there."""
    target = export.target(name)
    export.require_possible(target, translator, Path("the run"), name)
    translator = translator.with_decoding(**vars(target.nearest(translator.decoding)))
    with tempfile.TemporaryDirectory() as folder:
        target.write(translator, Path(folder), quantize)
        return compare_export(translator, target.load(Path(folder), translator), text, EvaluationConfig(), "")


def listed(translator: SearchTranslator, differences: Sequence[Difference]) -> list[str]:
    """Each of them with the scores of both translations, both by PyTorch."""
    lines = []
    for item in differences:
        scored = [
            f"{text!r} ({score(translator, [(item.src, text)])[0].score:.6f})" if text.strip() else "nothing"
            for text in (item.ours.text, item.theirs.text)
        ]
        lines.append(f"{item.src!r}: {scored[0]} by PyTorch, {scored[1]} by the export")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--ref", type=Path)
    parser.add_argument("--marian", metavar="PYTHON", default=os.environ.get(marian.PYTHON))
    parser.add_argument("--bergamot", metavar="FOLDER")
    parser.add_argument("--listed", type=int, default=20, help="at most, for each row")
    options = parser.parse_args()
    for name, value in ((marian.PYTHON, options.marian), (bergamot.PACKAGE, options.bergamot)):
        if value:
            os.environ[name] = value
    equal(options)


if __name__ == "__main__":
    main()
