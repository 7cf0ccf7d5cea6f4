"""`dragoman predict`: labels of texts or images."""

import itertools
import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Device, Run, Which
from dragoman.cli.streams import check_not_the_same, text_input, text_output
from dragoman.errors import Error
from dragoman.inference.classifier import Predictor
from dragoman.progress import Progress
from dragoman.runs.directory import check_run_dir


def predict(
    run: Run,
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Where the run labels images: pictures (light strokes on dark, like MNIST's), or idx files.",
            show_default=False,
        ),
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Texts to label. [default: stdin]")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write it. [default: stdout]")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many labels for each, most probable first.")] = 1,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Show how probable each label is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line.")] = False,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Label texts, or images: one line in, one line out; blank lines stay blank.

    The columns are separated by tabs: an image's name, then each label, with its probability if so asked.

    Examples:

        dragoman predict runs/language-id --probabilities < some.txt

        dragoman predict runs/mnist-vit digit.png --top 3
    """
    check_not_the_same(input, output)
    predictor = Predictor.load(check_run_dir(run), which=which, device=device)
    is_typed = False
    if predictor.reads_images:
        if not images:
            raise Error.MISSING_OPTION(
                " labels images", f"name them, as in `dragoman predict {run} digit.png`", file=run
            )
        results = predictor.label_files(images, top)
    else:
        if images:
            raise Error.MISSING_OPTION(
                " labels texts, line by line", f"give {images[0]} with -i, or on standard input", file=run
            )
        lines, waiting, is_typed = text_input(input)
        results = predictor.label_lines(lines, top, waiting=waiting)
    with text_output(output) as write, Progress("labelling", None, shown=not is_typed) as bar:
        for name, labels in results:
            if as_json:
                record = {"image": name} if name else {}
                write(json.dumps({**record, "labels": [vars(item) for item in labels]}, ensure_ascii=False) + "\n")
            else:
                columns = [(item.label, f"{item.probability:.4f}")[: 1 + probabilities] for item in labels]
                write("\t".join([name, *itertools.chain(*columns)] if name else itertools.chain(*columns)) + "\n")
            bar.advance()
