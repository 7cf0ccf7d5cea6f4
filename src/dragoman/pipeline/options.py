"""Options of a translation, and the pipeline that is put together from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.alignment.term_placement import with_glossary
from dragoman.errors import Error
from dragoman.formats.base import Options
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.loading import corpus_settings
from dragoman.inference.reranking import DEFAULT_WEIGHT, NoisyChannelReranker, require_opposite
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Reranker
from dragoman.languages.codes import same_languages
from dragoman.models.base import Seq2SeqModel
from dragoman.pipeline.chinese import conversion
from dragoman.pipeline.confidence import load as load_calibration
from dragoman.pipeline.memory import TranslationMemory
from dragoman.pipeline.pipeline import CONTEXTS, Pipeline, learnt_from
from dragoman.pipeline.several_runs import SeveralRuns
from dragoman.progress import say
from dragoman.quality.external_metrics import any_metric
from dragoman.quality.metrics import Metric
from dragoman.runs import checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.text.glossary import Glossary

SPLITS = ("auto", "never", "always")
"""Choices for texts of several sentences."""


@dataclass(frozen=True)
class FileOptions:
    """Choices of `dragoman translate` for files."""

    output: Path | None = None
    resume: bool = False
    everything: bool = False
    """True: texts that have a translation already are translated again."""
    columns: tuple[str, ...] = ()
    """The columns of tables to translate."""
    asides: frozenset[str] = Options().asides
    """The kinds of text beside the main text that are translated."""
    is_folder: bool = False
    """True if the output is a folder, even where there is none yet."""
    join_cues: bool = True
    """A sentence of subtitles that goes on in the next cue is translated as one."""
    bilingual: bool = False
    """Translations are put below their sources, not in their place."""
    its: Path | None = None
    """A file of rules for XML."""


@dataclass(frozen=True)
class TranslateOptions:
    """A run and everything that changes how it translates; each field is the command's option of the same name."""

    run: Path
    which: str = "best"
    device: str = "auto"
    engine: str = "pytorch"
    precision: str | None = None
    ensemble: Sequence[Path] = ()
    glossary: Path | None = None
    avoid: Path | None = None
    prefix: Path | None = None
    memory: Path | None = None
    keep: bool = True
    """Placeholders survive."""
    guard: str | None = None
    """`warn` or `fail`."""
    split: str = "auto"
    """`auto`, `never` or `always`: texts of several sentences are translated sentence by sentence."""
    context: str = "auto"
    """`auto`: what stands before a sentence in its text or document is read, by a run that has learnt it; `previous`:
    lines are one document; `none`."""
    rerank: Path | None = None
    rerank_weight: float | None = None
    mbr: Sequence[Path] = ()
    """Further runs, of any vocabulary: of all runs' translations, the translation most similar to the others is
    taken."""
    mbr_by: str | None = None
    """The metric of minimum Bayes risk, as `evaluate --metric` takes it; without `mbr` over the run's own beam."""
    changes: Sequence[str] = ()
    """Changes of decoding settings, as text."""
    languages: tuple[str | None, str | None] = (None, None)
    """From and to, of a run that knows several languages."""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    """Changes of decoding settings by options of their own."""
    min_confidence: float | None = None
    """Lines of less are in doubt; of a run that was calibrated."""
    datastores: Sequence[Path] = ()
    typography: bool = False
    """Translations have the no-break spaces and quotation marks of their language."""
    convert_han: bool = False
    """Simplified and traditional Chinese are converted around the model."""
    threads: int | None = None
    """Of another engine."""
    base: Seq2SeqModel | None = None
    """The model that the run is an adapter of, to share its tensors."""

    def __post_init__(self) -> None:
        for is_wrong, code, message in self._refusals():
            if is_wrong:
                raise code(message)

    def _refusals(self) -> list[tuple[bool, Error, str]]:
        """(whether an option cannot be so, the code of the mistake, its message)."""
        other_engine, weight, begins = self.engine != "pytorch", self.rerank_weight, self.prefix is not None
        not_begun = "not with `prefix`, which says how a translation begins"
        return [
            (self.precision not in (None, "float32", "bfloat16", "int8"), Error.WRONG_OPTION,
             f"`precision` {self.precision}: float32, bfloat16 or int8"),
            (self.guard not in (None, "warn", "fail"), Error.WRONG_OPTION,
             f"`guard`={self.guard}: warn tells of doubts, fail fails"),
            (self.split not in SPLITS, Error.WRONG_OPTION, f"`split` {self.split}: auto, never or always"),
            (self.context not in CONTEXTS, Error.WRONG_OPTION, f"`context` {self.context}: auto, previous or none"),
            (self.context == "previous" and begins, Error.CONFLICT, f"`context` previous: {not_begun}"),
            (self.split == "always" and begins, Error.CONFLICT, f"`split` always: {not_begun}"),
            (weight is not None and not 0 <= weight <= 1000, Error.WRONG_OPTION,
             f"`rerank_weight` {weight}: a number from 0 to 1000"),
            (self.min_confidence is not None and begins, Error.CONFLICT, f"`min_confidence`: {not_begun}"),
            (self.memory is not None and begins, Error.CONFLICT, f"`memory`: {not_begun}"),
            (self.guard is not None and begins, Error.CONFLICT, f"`guard`: {not_begun}"),
            (bool((self.mbr or self.mbr_by) and self.rerank), Error.CONFLICT,
             "`mbr`: ranks translations, as `rerank` does: choose one of both"),
            (weight is not None and self.rerank is None, Error.MISSING_OPTION,
             "`rerank_weight`: of what? name a run of the opposite direction with `rerank`"),
            (bool(self.datastores) and other_engine, Error.UNSUPPORTED,
             f"`datastore`: not with `engine` {self.engine}"),
            (self.convert_han and (begins or self.glossary is not None or self.avoid is not None), Error.CONFLICT,
             "`convert_han`: not with `prefix`, `glossary` and `avoid`, which are of the model's own script"),
            (begins and other_engine, Error.UNSUPPORTED, f"`prefix`: not with `engine` {self.engine}"),
        ]  # fmt: skip


def build_pipeline(options: TranslateOptions) -> Pipeline:
    """The pipeline that `options` describe. Raises DragomanError for what does not go together."""
    kept = options.precision is None or (options.precision == "int8" and options.engine != "pytorch")
    precision: Any = {} if kept else {"precision": options.precision}
    loaded = SearchTranslator.load(
        check_run_dir(options.run),
        which=options.which,
        device=options.device,
        ensemble=options.ensemble,
        datastores=options.datastores,
        changes=options.changes,
        languages=(None, None) if options.convert_han else options.languages,
        base=options.base,
        **precision,
        **options.decoding,
    )
    banned = None if options.avoid is None else BannedPhrases.load(options.avoid)
    learnt = learnt_from(options.run)
    sentences = learnt.sentences if options.split == "auto" else options.split == "always"
    pipeline = (
        Pipeline(
            loaded,
            loaded,
            keep=options.keep,
            guard=bool(options.guard),
            **learnt._replace(sentences=sentences)._asdict(),
            run=options.run,
            typography=options.typography,
        )
        .reading(options.context)
        .with_terms(None if options.glossary is None else _glossary(options), banned)
    )
    reranker = _reranker(options, pipeline.own, precision)
    if options.mbr or options.mbr_by:
        pipeline = pipeline.with_decoding(mbr="none")
    if reranker is not None:
        pipeline.own.reranked_by(reranker)  # refused now, not when an engine has been made
    if options.engine != "pytorch":
        quantize = "int8" if options.precision == "int8" else None
        from dragoman import export

        other = export.engine(options.run, options.engine, pipeline.own, options.which, quantize, options.threads)
        pipeline = replace(pipeline, search=other)
    if reranker is not None:
        pipeline = pipeline.with_search(lambda search: search.reranked_by(reranker))
    if options.convert_han:
        pipeline = _converting(pipeline, options.languages)
    if options.memory is not None:
        pipeline = replace(pipeline, memory=TranslationMemory.load(options.memory, pipeline.languages))
    if options.min_confidence is not None:
        calibration = load_calibration(options.run, checkpoint.select(options.run, options.which).name)
        pipeline = replace(pipeline, calibration=calibration, min_confidence=options.min_confidence)
    return pipeline


def _converting(pipeline: Pipeline, languages: tuple[str | None, str | None]) -> Pipeline:
    """The pipeline between other scripts of Chinese than the model's, which is told."""
    own = pipeline.languages
    of_texts = languages[0] or own[0], languages[1] or own[1]
    chinese = conversion(of_texts, own)
    say(f"Chinese is converted by OpenCC: the model is from {' to '.join(own)}, texts are from {' to '.join(of_texts)}")
    return replace(pipeline, chinese=chinese)


def _reranker(options: TranslateOptions, own: SearchTranslator, precision: Mapping[str, Any]) -> Reranker | None:
    """The ranking of a search's translations that options ask for."""
    if options.mbr or options.mbr_by:
        return _several_runs(options, own, precision)
    if options.rerank is None:
        return None
    back = SearchTranslator.load(check_run_dir(options.rerank), device=options.device, **precision)
    require_opposite(own, back, str(options.rerank))
    return NoisyChannelReranker(back, DEFAULT_WEIGHT if options.rerank_weight is None else options.rerank_weight)


def _several_runs(options: TranslateOptions, own: SearchTranslator, precision: Mapping[str, Any]) -> SeveralRuns:
    """The choice among the translations of all runs that `mbr` names, by `mbr_by` or the likeness of `decoding.mbr`."""
    others = []
    for run in options.mbr:
        other = SearchTranslator.load(
            check_run_dir(run), device=options.device, changes=options.changes, **precision, **options.decoding
        )
        if not same_languages(other.languages, own.languages):
            (reads, writes), (src, tgt) = other.languages or ("?", "?"), own.languages or ("?", "?")
            raise Error.LANGUAGES_DIFFER(
                f"`mbr` {run}: translates from {reads} to {writes}", f"give runs from {src} to {tgt}"
            )
        other = with_glossary(other, own.glossary, own.banned)
        others.append(other.with_decoding(mbr="none"))
    utility: str | Metric = "chrf" if own.decoding.mbr == "none" else own.decoding.mbr
    if options.mbr_by:
        utility = any_metric(options.mbr_by, own.languages[1] if own.languages else "")
    return SeveralRuns(others, utility, "char" if own.join == "" else "13a")


def _glossary(options: TranslateOptions) -> Glossary:
    assert options.glossary is not None
    corpus = corpus_settings(options.run)
    src_lang, tgt_lang = options.languages
    return Glossary.load(options.glossary, (src_lang or corpus.src_lang, tgt_lang or corpus.tgt_lang))
