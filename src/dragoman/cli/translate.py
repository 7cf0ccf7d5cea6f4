"""`dragoman translate`."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from dragoman.cli.options import BeamSize, Datastores, Device, Ensemble, LengthPenalty, Run, Which, decoding_changes
from dragoman.cli.streams import check_not_the_same, text_input, text_output
from dragoman.errors import Error
from dragoman.formats.base import asides_of
from dragoman.formats.table import names_in
from dragoman.pipeline.bulk import BLOCK_LINES, Work, run_worker, shard_of
from dragoman.pipeline.bulk_processes import run_processes
from dragoman.pipeline.bulk_ray import run_on_ray
from dragoman.pipeline.line_requests import translate_objects
from dragoman.pipeline.lines import OutputFormat, identity, translate_lines, translating
from dragoman.pipeline.options import FileOptions, TranslateOptions, build_pipeline
from dragoman.pipeline.pipeline import Pipeline, Translated
from dragoman.progress import Progress, say
from dragoman.quality.warnings import WarningKind, doubts
from dragoman.text.lines import COMPRESSIONS, STREAM_LINES, in_chunks

IN_DOUBT = 3
"""Exit code of `--guard=fail`."""
SPLIT = (
    "lines of several sentences are translated sentence by sentence, as this run was mostly trained on single ones "
    "(--split never: as a whole)"
)


class Command(TyperCommand):
    """A command whose `--guard` may be given without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--guard=warn" if item == "--guard" else item for item in args])


Files = Annotated[
    list[str] | None,
    typer.Argument(
        help="Files to translate, or folders of them: .docx .pptx .xlsx .odt .ods .odp .epub .html .md .rst .adoc "
        ".txt .srt .vtt .sbv .ass .ttml .po .xlf .tmx .json .arb .yml .properties .xml (Android) .strings "
        ".stringsdict .xcstrings .resx .ts (Qt) .csv (--columns) .pdf (its text); or, among them, changes to "
        "the search: decoding.no_repeat_ngram=3. Without a file: lines of stdin, or of -i.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Where to write it; `out/` is a folder. [default: stdout; of FILE.docx FILE.en.docx]",
    ),
]
NumBest = Annotated[
    int | None, typer.Option(min=1, help="Translations of each line; above 1: `line ||| text ||| score`.")
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option(
        help="Terms that must be so translated: a .csv, .tsv or .xlsx as spreadsheets write it, a .tbx, or lines of "
        "`term = translation`."
    ),
]
Memory = Annotated[
    Path | None,
    typer.Option(
        help="Earlier translations (.tmx, .xlf, .po, or tab-separated): what is in there is used; like ones are "
        "shown by --json."
    ),
]
Avoid = Annotated[Path | None, typer.Option(help="Words and phrases that no translation may hold: one a line.")]
Prefix = Annotated[
    Path | None, typer.Option(help="How each translation begins: line n for line n; blank leaves it free.")
]
Keep = Annotated[
    bool,
    typer.Option("--keep/--no-keep", help="Placeholders, tags, URLs, addresses and emoji survive as they are."),
]
Guard = Annotated[
    str | None,
    typer.Option(
        metavar="[=warn|fail]",
        help="Avoid translations that repeat themselves, lose numbers, sentences ..., and name the lines in doubt; "
        "`--guard=fail`: exit with 3 where there are any.",
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Name lines with less confidence as in doubt; --json has the confidence of lines and words. After "
        "`dragoman calibrate RUN`.",
    ),
]
Split = Annotated[
    str,
    typer.Option(
        help="Texts of several sentences: `always` or `never` one sentence at a time; `auto`: as the run was trained."
    ),
]
Context = Annotated[
    str,
    typer.Option(
        help="Of a run that has learnt to read the sentences before each: `auto`: in the same line or document; "
        "`previous`: lines are one document, in order; `none`."
    ),
]
Typography = Annotated[
    bool,
    typer.Option(
        "--typography",
        help="No-break spaces by punctuation and the quotation marks of French, German, Russian and their neighbours.",
    ),
]
Bulk = Annotated[
    bool,
    typer.Option(
        "--bulk",
        help="Of a file of lines, of any size: in blocks in the folder -o, which any number of such commands "
        "share; one that is killed loses the block it is at. Compressed files (.gz .zst .xz .bz2) always are.",
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(help="With --bulk: only the blocks of this part, 1/8 to 8/8. [default: any block that is free]"),
]
Ray = Annotated[int | None, typer.Option(min=1, help="With --bulk: by so many workers of a Ray cluster (extra `ray`).")]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="With --bulk: in so many processes of this machine, which share the model in memory."),
]
BlockLines = Annotated[
    int | None,
    typer.Option(min=1, help="With --bulk: lines of a block, equal for all workers. [default: 10,000]"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Of files: go on where the same command was stopped.")]
Everything = Annotated[bool, typer.Option("--all", help="Of PO, XLIFF and TMX: translate what has a translation, too.")]
ColumnNames = Annotated[
    str | None, typer.Option("--columns", help="Of .csv and .tsv: the columns to translate, by heading or number.")
]
JoinCues = Annotated[
    bool,
    typer.Option("--join-cues/--no-join-cues", help="Of subtitles: a sentence over several cues is translated as one."),
]
Its = Annotated[
    Path | None,
    typer.Option(
        help="Of XML: a file of rules (ITS 2.0, or YAML), which elements are text; DocBook and DITA need none."
    ),
]
With = Annotated[
    str | None,
    typer.Option("--with", help="Of documents: translate these too: changes (deletions that are tracked)."),
]
Without = Annotated[
    str | None,
    typer.Option(help="Of documents: leave these as they are: comments, notes, hidden, metadata; with commas between."),
]
Bilingual = Annotated[
    bool,
    typer.Option("--bilingual", help="Of .docx .html .epub .md .txt and subtitles: each translation below its source."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="A JSON object a line: translations, scores, what looks wrong with them.")
]
JsonInput = Annotated[
    bool,
    typer.Option("--json-input", help="Lines are JSON objects: text, and its own constraints, avoid, terms, prefix."),
]
Alignments = Annotated[
    bool, typer.Option("--alignments", help="Add which word comes from which: `text ||| 0-0 1-2` (or in --json).")
]
MosesForm = Annotated[
    bool, typer.Option("--moses", help="Lists as Moses and Marian write them: `0 ||| text ||| F0= -1.2 ||| -0.3`.")
]
Mbr = Annotated[
    list[Path] | None,
    typer.Option(
        help="Another run, of any vocabulary: of all runs' translations take the one that is most like all "
        "(minimum Bayes risk; by chrF, or decoding.mbr=bleu); repeat for more."
    ),
]
MbrBy = Annotated[
    str | None,
    typer.Option(
        help="Minimum Bayes risk by a metric, as evaluate's --metric takes it, COMET's command too: over the beam, or "
        "with --mbr over all runs."
    ),
]
Rerank = Annotated[
    Path | None,
    typer.Option(help="A run of the opposite direction: takes the translation in which it best finds the source."),
]
RerankWeight = Annotated[
    float | None,
    typer.Option(min=0, help="Weight of that run's score beside the translation's own score. [default: 0.3]"),
]
EngineName = Annotated[
    str,
    typer.Option(
        help="pytorch, or ctranslate2: its own search, a few translations differ; converts "
        "the run once. (ctranslate2-fast is the same.)"
    ),
]
EnginePrecision = Annotated[
    str | None,
    typer.Option(
        help="float32; bfloat16: faster on a GPU and on newer CPUs; int8: faster on any CPU, almost the same "
        "translations; with --engine ctranslate2 float32 or int8. [default: float32]"
    ),
]
ConvertHan = Annotated[
    bool,
    typer.Option(
        "--convert-han",
        help="Convert between simplified and traditional Chinese what a model of the other script reads or writes "
        "(extra `opencc`): --tgt-lang zh-TW of a model into zh.",
    ),
]
SrcLang = Annotated[
    str | None, typer.Option(help="Of a run that knows several languages: from which. [default: the run's]")
]


def translate(
    run: Run,
    files: Files = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Lines to translate. [default: stdin]")] = None,
    output: Output = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: NumBest = None,
    glossary: GlossaryFile = None,
    memory: Memory = None,
    avoid: Avoid = None,
    prefix: Prefix = None,
    keep: Keep = True,
    guard: Guard = None,
    min_confidence: MinConfidence = None,
    split: Split = "auto",
    context: Context = "auto",
    typeset: Typography = False,
    bulk: Bulk = False,
    shard: Shard = None,
    ray: Ray = None,
    processes: Processes = None,
    block_lines: BlockLines = None,
    resume: Resume = False,
    everything: Everything = False,
    columns: ColumnNames = None,
    with_: With = None,
    without: Without = None,
    join_cues: JoinCues = True,
    bilingual: Bilingual = False,
    its: Its = None,
    as_json: AsJson = False,
    json_input: JsonInput = False,
    alignments: Alignments = False,
    moses: MosesForm = False,
    ensemble: Ensemble = None,
    datastore: Datastores = None,
    mbr: Mbr = None,
    mbr_by: MbrBy = None,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    engine: EngineName = "pytorch",
    precision: EnginePrecision = None,
    src_lang: SrcLang = None,
    tgt_lang: Annotated[str | None, typer.Option(help="To which.")] = None,
    han: ConvertHan = False,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Translate lines, or whole files with everything in its place; of lines blank ones and the order are kept.

    Example: dragoman translate runs/mine manual.docx -o handbuch.docx
    """
    changes, paths = _changes_and_paths(files or [])
    options = TranslateOptions(run, which, device, engine, precision, ensemble or (), glossary, avoid, prefix, memory,
        keep, guard, split, context, rerank, rerank_weight, mbr or (), mbr_by, changes, (src_lang, tgt_lang),
        decoding_changes(beam_size, length_penalty, n_best), min_confidence, datastore or (), typeset, han)  # fmt: skip
    choices = _file_choices(output, columns, (with_, without), resume, everything, join_cues, bilingual, its)
    _run(options, paths, Lines(input, choices.output, OutputFormat(as_json, alignments, moses), json_input),
         Blocks(bulk, shard, ray, processes, block_lines), choices)  # fmt: skip


def _file_choices(
    output: str | None,
    columns: str | None,
    asides: tuple[str | None, str | None],
    resume: bool,
    everything: bool,
    join_cues: bool,
    bilingual: bool,
    its: Path | None,
) -> FileOptions:
    """The choices for files. Raises DragomanError for kinds of text that are none."""
    is_folder = output is not None and output.endswith(("/", os.sep))
    chosen = asides_of(*(names_in(names or "") for names in asides))
    place = Path(output) if output else None
    return FileOptions(
        place, columns=names_in(columns or ""), asides=chosen, is_folder=is_folder, resume=resume,
        everything=everything, join_cues=join_cues, bilingual=bilingual, its=its,
    )  # fmt: skip


class Lines(NamedTuple):
    """Where lines come from and go to, and what is written of them."""

    input: Path | None
    output: Path | None
    form: OutputFormat
    are_objects: bool = False
    """JSON objects (`pipeline/line_requests.py`)."""


class Blocks(NamedTuple):
    """Options of --bulk."""

    bulk: bool
    shard: str | None
    ray: int | None
    processes: int | None
    lines: int | None


def _run(options: TranslateOptions, paths: list[Path], lines: Lines, blocks: Blocks, files: FileOptions) -> None:
    """Translate a file of lines in blocks, files, or lines. Raises DragomanError for what does not go together."""
    _refuse("with --json it is JSON", moses=lines.form.as_json and lines.form.moses)
    if blocks.bulk or any(path.suffix in COMPRESSIONS for path in paths):
        _refuse("does not go with --bulk", prefix=options.prefix, input=lines.input, resume=files.resume,
                context=options.context == "previous", json_input=lines.are_objects)  # fmt: skip
        _translate_in_blocks(options, paths, lines, blocks)
        return
    _refuse("with --bulk, of a file of lines", shard=blocks.shard, ray=blocks.ray, processes=blocks.processes,
            block_lines=blocks.lines)  # fmt: skip
    if paths:
        n_best = options.decoding.get("n_best")
        _refuse("of lines; with files to translate leave it out",
                input=lines.input, prefix=options.prefix, n_best=n_best, json_input=lines.are_objects,
                **vars(lines.form))  # fmt: skip
        from dragoman.pipeline.files import run_on_files

        doubtful = run_on_files(options, paths, files)
    else:
        _refuse("of files to translate: name one", resume=files.resume, everything=files.everything,
                columns=files.columns, no_join_cues=not files.join_cues, bilingual=files.bilingual,
                its=files.its)  # fmt: skip
        if files.is_folder:
            raise Error.WRONG_FILE_TYPE("is a folder, and lines go to a file", "leave out the slash", file=lines.output)
        doubtful = _translate_lines(options, lines)
    if options.guard == "fail" and doubtful:
        raise typer.Exit(IN_DOUBT)


def _translate_lines(options: TranslateOptions, lines: Lines) -> int:
    """Translate the lines of standard input or of a file; the number of lines in doubt."""
    tells = options.guard is not None
    pipeline = replace(build_pipeline(options), warn=lines.form.as_json or tells)
    check_not_the_same(lines.input, lines.output)
    source = text_input(lines.input)
    chunks = in_chunks(source.lines, STREAM_LINES, source.waiting)
    kinds: Counter[str] = Counter()
    lines_in_doubt, with_matches, split_reported = 0, 0, options.split != "auto"
    with text_output(lines.output) as write, Progress("translating", None, shown=not source.is_typed) as bar:
        for results in _translated(pipeline, chunks, options, lines):
            if not split_reported and pipeline.sentences and any(len(one.sentences) > 1 for _, one in results):
                say(SPLIT)
                split_reported = True
            for src, translation in results:
                bar.advance()
                write(lines.form.text(pipeline, bar.done, src, translation.items))
                matches = [one for one in translation.items[0].warnings if one.kind == WarningKind.LIKE_MEMORY]
                with_matches += bool(matches)
                if matches and tells:
                    bar.say(f"line {bar.done}: {'; '.join(map(str, matches))}")
                if reasons := [one for one in doubts(translation.items[0].warnings) if tells or not one.is_fault]:
                    lines_in_doubt += 1
                    kinds.update(one.kind.label for one in reasons)
                    bar.say(f"line {bar.done}: {'; '.join(map(str, reasons))}")
        total = bar.done
    if with_matches:
        say(f"lines with a match of the memory: {with_matches:,} of {total:,}")
    if tells or lines_in_doubt or options.min_confidence is not None:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
        say(f"lines in doubt: {lines_in_doubt:,} of {total:,}" + (f" ({counts})" if counts else ""))
    return lines_in_doubt


def _translated(
    pipeline: Pipeline, chunks: Iterator[list[str]], options: TranslateOptions, lines: Lines
) -> Iterator[list[tuple[str, Translated]]]:
    """Each line of each chunk, or the text of its object, with its translations."""
    if not lines.are_objects:
        return translate_lines(pipeline, chunks, options.prefix, in_order=options.context == "previous")
    names = ("prefix", "glossary", "avoid")
    _refuse("an object has its own", **{name: getattr(options, name) for name in names})
    _refuse("takes no order of objects", context=options.context == "previous")
    return translate_objects(pipeline, chunks, lines.input)


def _changes_and_paths(items: list[str]) -> tuple[list[str], list[Path]]:
    """The changes to the search (`decoding.beam_size=8`), and the files that stand among them."""
    changes = [item for item in items if "=" in item and not Path(item).exists()]
    return changes, [Path(item) for item in items if item not in changes]


def _refuse(why: str, **options: Any) -> None:
    """Raises DragomanError for the first of these options that was given."""
    for name, value in options.items():
        if value:
            raise Error.CONFLICT(f"`{name}`: {why}")


def _translate_in_blocks(options: TranslateOptions, paths: list[Path], lines: Lines, blocks: Blocks) -> None:
    """The work of --bulk. Raises DragomanError for what does not go with it."""
    output = lines.output
    if len(paths) != 1:
        raise Error.MISSING_OPTION("--bulk translates one file of lines", "name it")
    if not paths[0].is_file():
        raise Error.MISSING_FILE("there is no such file: --bulk translates one file of lines", file=paths[0])
    if output is None or output.is_file():
        raise Error.MISSING_OPTION("--bulk", "say with -o FOLDER where the blocks and the translation go")
    part = None if blocks.shard is None else shard_of(blocks.shard)
    if blocks.processes is not None:
        _refuse("not with --ray, which starts processes itself", processes=blocks.ray is not None)
        _refuse("not with another --engine, whose threads are no part of a copy", processes=options.engine != "pytorch")
    work = Work(paths[0], output, identity(options, lines.form), blocks.lines or BLOCK_LINES)
    if blocks.ray is not None:
        run_on_ray(work, options, lines.form, blocks.ray)
    elif work.is_done:
        typer.echo(work.output)
    elif blocks.processes is not None:
        run_processes(work, lambda: translating(options, lines.form), blocks.processes, part)
    else:
        run_worker(work, translating(options, lines.form), part)
