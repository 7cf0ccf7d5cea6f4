"""`dragoman doctor`: the findings about a corpus go to stdout, the verdict is the exit code."""

import contextlib
import glob
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.analysis.collection_page import write_collection_page
from dragoman.cli.options import two_columns
from dragoman.doctor.assembly import assemble, gathered, summary
from dragoman.doctor.collection import OTHER
from dragoman.doctor.examine import Examination, Identify
from dragoman.doctor.findings import EXIT_CODES, Diagnosis, worst
from dragoman.doctor.fix import fix, require_new
from dragoman.errors import DragomanError, Error
from dragoman.formats import table
from dragoman.inference.classifier import Predictor
from dragoman.progress import say
from dragoman.quality.test_set import TestSet
from dragoman.tasks import recipes
from dragoman.text.corpus import CollectionConfig, FilesSource, Source, TsvSource, source_of_file
from dragoman.text.lines import find, kind_of, language_of_file, read_lines

ColumnNames = Annotated[
    str | None, typer.Option(help="Of tables: the columns, by heading or number (English,French).", show_default=False)
]
LanguageId = Annotated[
    Path | None, typer.Option(help="Run directory of a language identifier (recipes/language-id.yaml).")
]


def doctor(
    src: Annotated[
        str,
        typer.Argument(
            help="Source side; or both: a .tmx .xlf .po .mo .csv .tsv .xlsx .jsonl .parquet; a folder; or a recipe.",
            show_default=False,
        ),
    ],
    tgt: Annotated[str | None, typer.Argument(help="Target side: line n translates line n of the source.")] = None,
    src_lang: Annotated[str | None, typer.Option(help="Language code. [default: what the file name ends in]")] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Language code. [default: what the file name ends in]")] = None,
    test_src: Annotated[list[str] | None, typer.Option(help="Test set that must not be in it; repeatable.")] = None,
    test_tgt: Annotated[list[str] | None, typer.Option(help="Target side of each --test-src.")] = None,
    columns: ColumnNames = None,
    language_id: LanguageId = None,
    fix_to: Annotated[
        Path | None, typer.Option("--fix", help="New folder for the corpus without what is wrong with it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Examine a parallel corpus: bytes, lines, pairs, languages, duplicates, leakage, and where lines have shifted.

    Exit code 0: clean, 1: warnings, 2: broken. A recipe's training corpus is compared with its validation and test
    sets, which are examined as well.

    A folder of memories, catalogues, tables and documents is read as one corpus (docs/files.md); --fix writes it as
    plain text, with a page that says what came from where.

    Examples:

        dragoman doctor corpus.de corpus.en --test-src test.de --test-tgt test.en --fix corpus-clean

        dragoman doctor memories/ --src-lang en --tgt-lang fr --fix corpus
    """
    if fix_to is not None:
        require_new(fix_to)
    languages = src_lang or "", tgt_lang or ""
    if tgt is None and (collection := _collection_of(src, languages, two_columns(columns))):
        raise typer.Exit(_examine_collection(*collection, fix_to, as_json))
    if columns:
        raise Error.MISSING_OPTION("--columns goes with tables and folders")
    identify = _identifier(language_id)
    tests = _held_out(test_src or [], test_tgt or [])
    examinations = list(_examinations(src, tgt, *languages, tests, identify))
    if fix_to is not None and len(examinations) > 1:
        raise Error.CONFLICT("--fix mends one corpus", "give its two files instead of a recipe")
    diagnoses = {name: examination.run() for name, examination in examinations}
    if as_json:
        shown: Any = {name: diagnosis.to_dict() for name, diagnosis in diagnoses.items()}
        typer.echo(json.dumps(shown.get("", shown), indent=2, ensure_ascii=False))
    else:
        for name, diagnosis in diagnoses.items():
            _print(name, diagnosis)
    if fix_to is not None:
        report = fix(examinations[0][1], fix_to)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.most_common()) or "none"
        say(f"{report.kept:,} of {report.read:,} pairs kept, {report.repaired:,} of them repaired; dropped: {reasons}")
        say(f"written: {report.src}, {report.tgt}, and {report.report} with every pair that was dropped")
    raise typer.Exit(EXIT_CODES[worst(diagnosis.verdict for diagnosis in diagnoses.values())])


def _collection_of(
    src: str, languages: tuple[str, str], columns: tuple[str, str] | None
) -> tuple[CollectionConfig, tuple[str, str]] | None:
    """The collection that an argument is, with its languages: a folder, a pattern, a table or catalogue, a recipe."""
    path = Path(src)
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        recipe: Any = recipes.load(src)
        files = getattr(recipe.corpus, "files", None)
        return (
            (files, (recipe.corpus.src_lang, recipe.corpus.tgt_lang)) if isinstance(files, CollectionConfig) else None
        )
    is_pattern = glob.has_magic(src) and not path.exists()
    is_table = kind_of(src) in (".mo", *table.SUFFIXES, *OTHER) and (
        columns is not None or kind_of(src) not in (".tsv", *OTHER)
    )
    if not (path.is_dir() or is_pattern or is_table):
        return None
    if not all(languages):
        raise Error.MISSING_OPTION("say with --src-lang and --tgt-lang which languages are meant", file=src)
    return CollectionConfig(paths=[src], columns=columns), languages


def _examine_collection(
    config: CollectionConfig, languages: tuple[str, str], fix_to: Path | None, as_json: bool
) -> int:
    """Print what is made of a folder of files; the exit code."""
    assembly = gathered(config, languages) if fix_to is None else assemble(config, languages, fix_to)
    assert assembly.diagnosis is not None
    if as_json:
        typer.echo(json.dumps(assembly.to_dict(), indent=2, ensure_ascii=False))
    else:
        for line in summary(assembly):
            typer.echo(line)
        for note, count in Counter(record.note for record in assembly.files if record.note).most_common(20):
            typer.echo(f"  not read: {count:,} {note}")
        _print("", assembly.diagnosis)
    if fix_to is not None:
        say(f"written: {fix_to}; what came from where: {write_collection_page(fix_to)}")
    return EXIT_CODES[assembly.diagnosis.verdict]


def _examinations(
    src: str, tgt: str | None, src_lang: str, tgt_lang: str, tests: list[TestSet], identify: "Identify | None"
) -> "Iterator[tuple[str, Examination]]":
    """The examinations, by name, of two files, of a file with both sides, or of a recipe's corpora."""
    if tgt is not None:
        languages = src_lang or language_of_file(src), tgt_lang or language_of_file(tgt)
        yield "", Examination(FilesSource(src=src, tgt=tgt), *languages, tests, identify)
    elif (single := source_of_file(src, src_lang, tgt_lang)) is not None:
        with contextlib.suppress(DragomanError):  # the examination says what is wrong with it
            if isinstance(single, TsvSource) and (count := next(read_lines(find(src))).count("\t") + 1) > 2:
                say(f"{src}: columns 1 and 2 of {count} are read; --columns, --src-lang, --tgt-lang name others")
        yield "", Examination(single, src_lang, tgt_lang, tests, identify)
    elif src_lang or tgt_lang:
        if Path(src).is_file() and Path(src).suffix not in (".yaml", ".yml"):
            hint = (
                "give the target side too; both are in a .tmx .xlf .po .mo .csv .tsv .xlsx .jsonl .parquet or a folder"
            )
            raise Error.WRONG_FILE_TYPE(" is not of a kind that holds pairs", hint, file=src)
        raise Error.CONFLICT("--src-lang and --tgt-lang go with two files; a recipe has its own (corpus.src_lang)")
    else:
        yield from _of_recipe(src, tests, identify)


def _print(name: str, diagnosis: "Diagnosis") -> None:
    title = f"{name}: " if name else ""
    counts = dict.fromkeys((diagnosis.src_lines, diagnosis.tgt_lines))  # one number if they are equal
    lines = " and ".join(f"{count:,}" for count in counts)
    typer.echo(f"{title}{diagnosis.src} | {diagnosis.tgt}: {lines} lines: {diagnosis.verdict}")
    for finding in diagnosis.findings:
        sampled = diagnosis.sampled.get((finding.kind, finding.file))
        of = f" (of {sampled:,} lines that were looked at)" if sampled else ""
        typer.echo(f"  {finding.severity:<8} {finding.count:>9,}  {finding.kind}{of}, first at {finding.place}")
        for text in filter(None, (finding.example, finding.advice)):
            typer.echo(f"{'':21}{text}")
    for file, text in diagnosis.languages.items():
        typer.echo(f"  language of {file}: {text}")


def _identifier(run: Path | None) -> "Identify | None":
    if run is None:
        return None

    predictor = Predictor.load(run)
    return lambda texts: [prediction.label for prediction in predictor.predict(list(texts))]


def _held_out(sources: list[str], targets: list[str]) -> list[TestSet]:
    if len(sources) != len(targets):
        raise Error.UNEQUAL_COUNTS(f"{len(sources)} --test-src but {len(targets)} --test-tgt", "give one for each")
    return [_read(src, FilesSource(src=src, tgt=tgt)) for src, tgt in zip(sources, targets, strict=True)]


def _read(name: str, source: "Source") -> TestSet:
    pairs = list(source.pairs())
    return TestSet([pair.src for pair in pairs], [[pair.tgt for pair in pairs]], name=name)


def _of_recipe(path: str, tests: list[TestSet], identify: "Identify | None") -> "Iterator[tuple[str, Examination]]":
    """The training corpus of a recipe for translation, against `tests` and its other sets, and these by themselves."""
    if not Path(path).exists() and not path.endswith((".yaml", ".yml")):
        raise Error.MISSING_OPTION("give the target side too, or a recipe", file=path)
    recipe: Any = recipes.load(path)
    if recipe.task != "translation":
        raise Error.WRONG_TASK(f"a recipe for {recipe.task}; sentence pairs are what is examined here", file=path)
    corpus = recipe.corpus
    others = {"valid": corpus.valid, **corpus.test}
    languages = corpus.src_lang, corpus.tgt_lang
    readable = []
    for name, source in others.items():
        with contextlib.suppress(DragomanError):  # its own examination says what is wrong with it
            readable.append(_read(name, source))
    yield "train", Examination(corpus.train, *languages, [*tests, *readable], identify)
    for name, source in others.items():
        yield name, Examination(source, *languages, (), identify)
