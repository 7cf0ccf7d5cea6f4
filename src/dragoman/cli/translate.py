"""`dragoman translate`."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dragoman.cli.options import (
    BeamSize,
    Datastores,
    Device,
    Ensemble,
    LengthPenalty,
    Run,
    Which,
    check_not_the_same,
    decoding_changes,
    text_input,
    text_output,
)
from dragoman.errors import Error

IN_DOUBT = 3
"""Exit code of `--guard=fail`."""


class Command(TyperCommand):
    """A command whose `--guard` may be given without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--guard=warn" if item == "--guard" else item for item in args])


def translate(
    run: Run,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files to translate, or folders of them: .docx .pptx .xlsx .odt .ods .odp .epub .html .md .txt .srt "
            ".vtt .po .xlf .tmx .json .properties .xml (Android) .pdf (its text); or, among them, changes to the "
            "search: decoding.no_repeat_ngram=3. Without a file: lines of standard input, or of -i.",
            show_default=False,
        ),
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Lines to translate. [default: stdin]")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write it. [default: stdout; of FILE.docx FILE.en.docx]"),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Translations of each line; above 1: `line ||| text ||| score`.")
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(help="Terms that must be so translated: lines of `term, tab, translation`, a .csv or a .tbx."),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            help="Earlier translations (.tmx, .xlf, .po, or tab-separated): what is in there is used; like ones are "
            "shown by --json."
        ),
    ] = None,
    avoid: Annotated[
        Path | None, typer.Option(help="Words and phrases that no translation may hold: one a line.")
    ] = None,
    prefix: Annotated[
        Path | None, typer.Option(help="How each translation begins: line n for line n; blank leaves it free.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Placeholders, tags, URLs, addresses and emoji survive as they are.")
    ] = False,
    guard: Annotated[
        str | None,
        typer.Option(
            metavar="[=warn|fail]",
            help="Avoid translations that repeat themselves, lose numbers, sentences ..., and name the lines in doubt; "
            "`--guard=fail`: exit with 3 where there are any.",
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Name lines of less as in doubt; --json has the confidence of lines and words. After `dragoman "
            "calibrate RUN`.",
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Lines of several sentences: `always` or `never` one sentence at a time; `auto`: as the run was "
            "trained. Files are always."
        ),
    ] = "auto",
    bulk: Annotated[
        bool,
        typer.Option(
            "--bulk",
            help="Of a file of lines, of any size: in blocks in the folder -o, which any number of such commands "
            "share; one that is killed loses the block it is at. Compressed files (.gz .zst .xz .bz2) always are.",
        ),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(help="With --bulk: only the blocks of this part, 1/8 to 8/8. [default: any block that is free]"),
    ] = None,
    ray: Annotated[
        int | None, typer.Option(min=1, help="With --bulk: by so many workers of a Ray cluster (extra `ray`).")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Of files: go on where the same command was stopped.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Of PO, XLIFF and TMX: translate what has a translation, too.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line: translations, scores, what looks wrong with them.")
    ] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Add which word comes from which: `text ||| 0-0 1-2` (or in --json).")
    ] = False,
    ensemble: Ensemble = None,
    datastore: Datastores = None,
    mbr: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another run, of any vocabulary: of all runs' translations take the one that is most like all "
            "(minimum Bayes risk; by chrF, or decoding.mbr=bleu); repeat for more."
        ),
    ] = None,
    rerank: Annotated[
        Path | None,
        typer.Option(help="A run of the opposite direction: takes the translation in which it best finds the source."),
    ] = None,
    rerank_weight: Annotated[
        float | None,
        typer.Option(min=0, help="How much that counts beside the translation's own score. [default: 0.3]"),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="pytorch, or ctranslate2: its own search, several times as fast, a few translations differ; converts "
            "the run once. (ctranslate2-fast is the same.)"
        ),
    ] = "pytorch",
    precision: Annotated[
        str | None,
        typer.Option(
            help="float32, or bfloat16: faster on a GPU and on newer CPUs; with --engine ctranslate2 float32, or int8: "
            "faster, almost the same translations. [default: float32]"
        ),
    ] = None,
    src_lang: Annotated[
        str | None, typer.Option(help="Of a run that knows several languages: from which. [default: the run's]")
    ] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="To which.")] = None,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Translate lines, or whole files with everything in its place.

    Text of standard input: one line in, one line out; blank lines and order are kept.

    Examples:

        dragoman translate runs/demo --beam-size 1 < letter.de > letter.en

        dragoman translate runs/mine manual.docx -o handbuch.docx

        dragoman translate runs/mine web.de.zst --bulk -o web-en

        dragoman translate runs/nllb --src-lang eng_Latn --tgt-lang fra_Latn < letter.en

        dragoman translate runs/demo decoding.sampling.samples=32 decoding.mbr=chrf --keep --json < letter.de
    """
    from dragoman.inference.search_translator import STREAM_LINES
    from dragoman.pipeline.files import FileOptions, run_on_files
    from dragoman.pipeline.output import Form
    from dragoman.pipeline.pipeline import TranslateOptions, assemble, splits_lines, translate_lines
    from dragoman.progress import Progress, say
    from dragoman.quality.warnings import doubts
    from dragoman.text.lines import COMPRESSIONS, in_chunks

    changes = [item for item in files or () if _is_change(item)]
    paths = [Path(item) for item in files or () if not _is_change(item)]
    bulk = bulk or any(path.suffix in COMPRESSIONS for path in paths)
    options = TranslateOptions(
        run, which, device, engine, precision, ensemble or (), glossary, avoid, prefix, memory,
        keep or (bool(paths) and not bulk), guard,
        split, rerank, rerank_weight, changes=changes, languages=(src_lang, tgt_lang),
        decoding=decoding_changes(beam_size, length_penalty, n_best), min_confidence=min_confidence,
        datastores=datastore or (), mbr=mbr or (),
    )  # fmt: skip
    if bulk:
        _in_blocks(
            options, paths, output, Form(as_json, alignments), shard, ray, prefix=prefix, input=input, resume=resume
        )
        return
    if shard or ray:
        raise Error.CONFLICT("--shard and --ray: with --bulk, of a file of lines")
    if paths:
        _check_for_files(input=input, prefix=prefix, n_best=n_best, as_json=as_json, alignments=alignments)
        doubtful = run_on_files(options, paths, FileOptions(output, resume, everything))
        if guard == "fail" and doubtful:
            raise typer.Exit(IN_DOUBT)
        return
    if resume or everything:
        raise Error.CONFLICT("--resume and --all: of files to translate", "name one")
    assembled = assemble(options)
    check_not_the_same(input, output)
    source, form = text_input(input), Form(as_json, alignments)
    chunks = in_chunks(source.lines, STREAM_LINES, source.waiting)
    kinds: Counter[str] = Counter()
    lines_in_doubt = 0
    with text_output(output) as write, Progress("translating", None, shown=not source.is_typed) as bar:
        for results in translate_lines(
            assembled, chunks, prefix, split if splits_lines(options, assembled.n_best) else ""
        ):
            for src, translations in results:
                bar.advance()
                write(form.text(assembled, bar.done, src, translations))
                if reasons := doubts(translations[0].warnings):
                    lines_in_doubt += 1
                    kinds.update(one.kind.label for one in reasons)
                    bar.say(f"line {bar.done}: {'; '.join(map(str, reasons))}")
        total = bar.done
    if guard or lines_in_doubt or min_confidence is not None:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
        say(f"lines in doubt: {lines_in_doubt:,} of {total:,}" + (f" ({counts})" if counts else ""))
    if guard == "fail" and lines_in_doubt:
        raise typer.Exit(IN_DOUBT)


def _is_change(item: str) -> bool:
    """True for a change to the search among the files: `decoding.beam_size=8`."""
    return "=" in item and not Path(item).exists()


def _check_for_files(**options: Any) -> None:
    names = {"input": "-i", "n_best": "--n-best", "as_json": "--json"}
    for name, value in options.items():
        if value:
            raise Error.CONFLICT(f"{names.get(name, '--' + name)}: of lines; with files to translate leave it out")


def _in_blocks(
    options: Any, paths: list[Path], output: Path | None, form: Any, shard: str | None, ray: int | None, **others: Any
) -> None:
    """The work of --bulk. Raises DragomanError for what does not go with it."""
    from dragoman.pipeline.bulk import Work, run_worker, shard_of
    from dragoman.pipeline.bulk_translate import identity, translating

    for name, value in others.items():
        if value:
            raise Error.CONFLICT(f"--{name}: does not go with --bulk")
    if len(paths) != 1:
        raise Error.MISSING_OPTION("--bulk translates one file of lines", "name it")
    if not paths[0].is_file():
        raise Error.MISSING_FILE("there is no such file: --bulk translates one file of lines", file=paths[0])
    if output is None or output.is_file():
        raise Error.MISSING_OPTION("--bulk", "say with -o FOLDER where the blocks and the translation go")
    part = None if shard is None else shard_of(shard)
    work = Work(paths[0], output, identity(options, form))
    if ray is not None:
        from dragoman.pipeline.bulk_ray import run_on_ray

        run_on_ray(work, options, form, ray)
    elif not work.is_done:
        run_worker(work, translating(options, form), part)
    else:
        typer.echo(work.output)
