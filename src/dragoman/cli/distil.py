"""`dragoman distil`: a small and fast model that learns from a large one."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Device, Overrides, Run
from dragoman.experiments.distil import distil as distilled
from dragoman.progress import say


def distil(
    run: Run,
    overrides: Overrides = None,
    size: Annotated[
        str, typer.Option(help="tiny: 4 + 1 layers of 128; small: 6 + 1 of 256; base: 6 + 2 of 512.")
    ] = "tiny",
    student: Annotated[
        Path | None, typer.Option("--run", help="The student's run directory. [default: RUN-SIZE]", show_default=False)
    ] = None,
    src: Annotated[
        list[Path] | None,
        typer.Option(help="More text for the teacher to translate, a sentence a line; repeat for more files."),
    ] = None,
    src_lang: Annotated[
        str | None, typer.Option(help="Of a teacher that knows several languages: from which. [default: the run's]")
    ] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="To which.")] = None,
    engine: Annotated[
        str,
        typer.Option(help="What the teacher translates with: pytorch, or ctranslate2 (ctranslate2-fast is the same)."),
    ] = "pytorch",
    device: Device = "auto",
) -> None:
    """Train a small, fast model to translate as a large one does.

    The teacher translates the text that it was trained on, and what is given with --src; a student with a deep encoder
    and a decoder of one or two layers learns from that, and searches with a beam of 2. Any run can teach, imported ones
    too. The same command on a student that is there already goes on where it stood.

    Examples:

        dragoman distil runs/mine --size tiny

        dragoman export runs/mine-tiny mine-ct2 --to ctranslate2 --quantize int8 --shortlist
    """
    target = student or run.with_name(f"{run.name}-{size}")
    distillation = distilled(
        run,
        target,
        size,
        src=src or (),
        languages=(src_lang, tgt_lang),
        engine=engine,
        device=device,
        changes=overrides or (),
    )
    if distillation.compared is None:
        say(f"stopped and saved at step {distillation.result.outcome.step:,}; the same command goes on from there")
        return
    bleu, chrf = distillation.compared.tests
    say(
        f"{distillation.compared.name} ({distillation.compared.sentences:,} sentences): "
        f"{distillation.compared.titles[bleu.metric]} {bleu.first:.2f} teacher, "
        f"{bleu.second:.2f} student; chrF {chrf.first:.2f}, {chrf.second:.2f}; {distillation.parameters[0]:,} and "
        f"{distillation.parameters[1]:,} parameters"
    )
    say(f"run {target}, report {distillation.result.report}")
    say(f"export with: dragoman export {target} FOLDER --to ctranslate2 --quantize int8 --shortlist")
