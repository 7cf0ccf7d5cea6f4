"""Evaluation as people ask for it, by the command or from Python: a run, or translations, on test sets."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from dragoman import config
from dragoman.config import settings
from dragoman.errors import Error
from dragoman.evaluation.evaluate_output import EvaluationOptions, evaluate_files
from dragoman.experiments.calibrate import project
from dragoman.quality.significance import RESAMPLES
from dragoman.quality.test_set import files_of_sacrebleu
from dragoman.runs.directory import languages_of
from dragoman.tasks import recipes
from dragoman.tasks.kept_corpus import FIELDS, write_records
from dragoman.text.sources.records import TEXT, Corpus, records


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


Paths = Annotated[list[Path], BeforeValidator(_listed)]
Names = Annotated[list[str], BeforeValidator(_listed)]


@settings
class Options:
    """The options of an evaluation, as `dragoman evaluate` has them; null: the recipe's."""

    src: Paths = ()  # type: ignore[assignment]  #: Source texts; a set each.
    ref: Paths = ()  # type: ignore[assignment]  #: References, or labels, of each.
    name: Names = ()  # type: ignore[assignment]  #: Names of the sets.
    src_lang: str | None = None  #: Language of the source.
    tgt_lang: str | None = None  #: Language of the target.
    test_set: str | None = None  #: A test set that sacreBLEU has fetched, such as wmt14.
    language_pair: str | None = None  #: Its languages, such as en-de.
    confidence: bool = False  #: Intervals of the figures by the bootstrap.
    columns: tuple[str, ...] | None = None  #: Columns of a corpus.
    metric: Names = ()  # type: ignore[assignment]  #: Metrics (`bleu`, `chrf++` ...).
    by: Names = ()  # type: ignore[assignment]  #: Parts to score by themselves.
    training_text: Paths = ()  # type: ignore[assignment]  #: Source side of the training text.
    checks: bool = True  #: Look for faults first.
    join: bool = False  #: Join `@@ ` and `▁` pieces first.
    beam_size: int | None = None  #: Of the search.
    length_penalty: float | None = None  #: Its exponent.
    tokenize: str | None = None  #: BLEU's tokenizer.
    lowercase: bool | None = None  #: Lower-case first.
    output: Path | None = None  #: Folder for the translations.
    min_context: int | None = None  #: Of a language model.
    ensemble: Paths | None = None  #: Runs that translate along.
    datastore: Paths | None = None  #: Folders of nearest neighbours.
    precision: Literal["float32", "bfloat16", "int8"] | None = None  #: Number format.
    which: str = "best"  #: Checkpoint.
    device: str = "auto"  #: Device.


def evaluate(
    run: str | Path | None = None,
    corpus: Any = None,
    *,
    hypotheses: Any = None,
    overrides: Any = None,
    **options: Any,
) -> Mapping[str, Any]:
    """Scores of a run, or of translations of any system, on test sets, by name: `scores["test"].bleu`, `.to_dict()`.

        dragoman.evaluate("runs/mine")                                      # the recipe's test sets
        dragoman.evaluate("runs/mine", [("ein hund", "a dog"), ...], metric=["bleu", "chrf++"])
        dragoman.evaluate("runs/mine", src="test.de", ref="test.en", beam_size=1)
        dragoman.evaluate(hypotheses=["a dog", ...], corpus=pairs, tgt_lang="en")

    `corpus`: one test set, or several by name, as in `Corpus(test=...)`. `hypotheses`: texts with a corpus of one set,
    or files with `src` and `ref`. `overrides`: settings of the search (`decoding.no_repeat_ngram=3`). `options`: as
    in `dragoman evaluate`. With `src` alone a calibrated run's expected chrF (`Projection`) is given.

    Raises DragomanError for what a person can mend.
    """
    config.check_names("evaluate", options, Options)
    chosen = config.parse(Options, {name: value for name, value in options.items() if value is not None}, "evaluate")
    kinds: dict[str, Any] = {
        "metrics": tuple(chosen.metric),
        "by": tuple(chosen.by),
        "training_text": tuple(chosen.training_text),
    }
    evaluation = EvaluationOptions(
        **kinds, checks=chosen.checks, join=chosen.join, resamples=RESAMPLES * chosen.confidence
    )
    scoring = _given(tokenize=chosen.tokenize, lowercase=chosen.lowercase)
    sets = _sets(chosen)
    with TemporaryDirectory(prefix="dragoman-") as folder:
        if corpus is not None:
            if chosen.src or chosen.ref:
                raise Error.CONFLICT("`corpus` is a test set by itself", "leave out `src`, `ref`")
            hypotheses = _write(corpus, run, chosen, sets, hypotheses, Path(folder))
        if hypotheses:
            if run is not None:
                raise Error.CONFLICT(
                    f"{run} and `hypotheses`", "give a run to translate with, or translations, not both"
                )
            return evaluate_files(evaluation, [Path(path) for path in _listed(hypotheses)], **sets, **scoring)
        if run is None:
            raise Error.MISSING_OPTION("give a run directory, or `hypotheses` with `src` and `ref`")
        if chosen.src and not chosen.ref and (Path(run) / "confidence.json").exists():
            return {str(path): project(Path(run), path, chosen.which, chosen.device) for path in chosen.src}
        search = _given(beam_size=chosen.beam_size, alpha=chosen.length_penalty, precision=chosen.precision)
        more = _given(
            datastores=chosen.datastore, ensemble=chosen.ensemble, changes=config.as_overrides(overrides) or None
        )
        shown = _given(
            evaluation_options=None if evaluation == EvaluationOptions() else evaluation,
            output=chosen.output,
            min_context=chosen.min_context,
        )
        return recipes.evaluate(
            run, which=chosen.which, device=chosen.device, **sets, **shown, **scoring | search, **more
        )


def _sets(chosen: Options) -> dict[str, Any]:
    """The sets that are scored: files, or a test set that sacreBLEU fetches by its name and its pair of languages."""
    sources, references, names = list(chosen.src), list(chosen.ref), list(chosen.name)
    languages, name, pair = (chosen.src_lang, chosen.tgt_lang), chosen.test_set, chosen.language_pair
    if name and pair and not (sources or references):
        source, references = files_of_sacrebleu(name, pair)
        sources, names = [source], names or [f"{name} {pair}"]
        languages = languages if any(languages) else (pair.partition("-")[0], pair.partition("-")[2])
    elif name or pair:
        raise Error.CONFLICT("`test_set` and `language_pair` go together", "in the place of `src` and `ref`")
    sets = {"sources": sources, "references": references, "names": names}
    return sets | _given(languages=languages if any(languages) else None)


def _write(
    corpus: Any, run: str | Path | None, chosen: Options, sets: dict[str, Any], hypotheses: Any, folder: Path
) -> list[Path] | None:
    """Write test sets of Python objects into a folder and name them in `sets`; the file of the translations, if any."""
    given = corpus if isinstance(corpus, Corpus) else Corpus(train=(), test=corpus)
    task = "translation" if run is None else recipes.of_run(run).task
    if task not in FIELDS:
        raise Error.UNSUPPORTED(f"`corpus`: pictures for task {task} are named by `src` and `ref`")
    own = languages_of(Path(run)) if run is not None and task == "translation" else ("", "")
    languages = chosen.src_lang or given.src_lang or own[0], chosen.tgt_lang or given.tgt_lang or own[1]
    for number, (name, split) in enumerate(given.tests().items()):
        rows = records(split, FIELDS[task], name, given.columns or chosen.columns, languages)
        source = write_records(rows, folder / str(number), task, ("src", "tgt"), folder)
        sets["names"].append(name)
        sets["sources"].append(Path(source.get("src") or source["path"]))
        sets["references"] += [Path(source["tgt"])] if "tgt" in source else []
    if hypotheses is None:
        return None
    if any(languages):
        sets["languages"] = languages
    path = folder / "hypotheses.txt"
    write_records(
        records(hypotheses, TEXT, "hypotheses", None, languages),
        path.with_suffix(""),
        "language_modelling",
        ("", ""),
        folder,
    )
    return [path]


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given; for the others the recipe decides."""
    return {name: value for name, value in options.items() if value is not None}
