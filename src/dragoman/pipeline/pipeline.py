"""The work of `dragoman translate`: a translator put together from options, lines translated as they come."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import export
from dragoman.errors import DragomanError, Error
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.loading import corpus_settings
from dragoman.inference.mbr import SeveralRuns
from dragoman.inference.reranking import WEIGHT, NoisyChannelReranker, require_opposite
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Reranker, Translation
from dragoman.pipeline.by_sentence import NBest, SentenceTranslator, are_single_sentences
from dragoman.pipeline.capitals import CapitalsTranslator
from dragoman.pipeline.confidence import Calibration, ConfidentTranslator
from dragoman.pipeline.confidence import load as load_calibration
from dragoman.pipeline.guarded import GuardedTranslator
from dragoman.pipeline.memory import RememberingTranslator, TranslationMemory
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.runs.directory import check_run_dir
from dragoman.text.glossary import Glossary
from dragoman.text.lines import read_lines


@dataclass(frozen=True)
class TranslateOptions:
    """A run and all that changes how it translates; each field is the command's option of that name."""

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
    keep: bool = False
    guard: str | None = None
    """`warn` or `fail`."""
    split: str = "auto"
    """`auto`, `never` or `always`: lines of several sentences are translated sentence by sentence."""
    rerank: Path | None = None
    rerank_weight: float | None = None
    mbr: Sequence[Path] = ()
    """Further runs, of any vocabulary: the translation that is most like all of theirs is taken."""
    changes: Sequence[str] = ()
    """Changes of decoding settings, as text."""
    languages: tuple[str | None, str | None] = (None, None)
    """From and to, of a run that knows several languages."""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    """Changes of decoding settings by options of their own."""
    min_confidence: float | None = None
    """Lines of less are in doubt; of a run that was calibrated."""
    datastores: Sequence[Path] = ()

    def __post_init__(self) -> None:
        if self.precision not in (None, "float32", "bfloat16", "int8"):
            raise Error.WRONG_OPTION(
                f"--precision {self.precision}: float32 or bfloat16, or int8 with --engine ctranslate2"
            )
        if self.precision == "int8" and self.engine == "pytorch":
            raise Error.UNSUPPORTED(
                "--precision int8: with --engine ctranslate2 alone; without it bfloat16 is the faster one"
            )
        if self.guard not in (None, "warn", "fail"):
            raise Error.WRONG_OPTION(
                f"--guard={self.guard}: --guard or --guard=warn tells of doubts, --guard=fail fails"
            )
        if self.split not in ("auto", "never", "always"):
            raise Error.WRONG_OPTION(f"--split {self.split}: auto, never or always")
        if self.split == "always" and self.prefix:
            raise Error.CONFLICT("--split always: not with --prefix, which says how a whole line begins")
        if self.rerank_weight is not None and not 0 <= self.rerank_weight <= 1000:
            raise Error.WRONG_OPTION(f"--rerank-weight {self.rerank_weight}: a number from 0 to 1000")
        if self.min_confidence is not None and self.prefix:
            raise Error.CONFLICT("--min-confidence: not with --prefix")
        if self.memory and self.prefix:
            raise Error.CONFLICT("--memory: not with --prefix, which says how a translation begins")
        if self.mbr and self.rerank:
            raise Error.CONFLICT("--mbr and --rerank rank translations", "choose one of both")
        if self.rerank_weight is not None and self.rerank is None:
            raise Error.MISSING_OPTION(
                "--rerank-weight: of what? name a run of the opposite direction with --rerank RUN"
            )
        if self.datastores and self.engine != "pytorch":
            raise Error.UNSUPPORTED(f"--datastore: not with --engine {self.engine}")
        if self.prefix and self.engine != "pytorch":
            raise Error.UNSUPPORTED(f"--prefix: not with --engine {self.engine}")
        if self.prefix and (self.keep or self.guard):
            raise Error.CONFLICT(
                "--prefix says how a translation begins; with --keep or --guard it cannot be held to it"
            )


class Assembled(NamedTuple):
    """A translator as options ask for it, and the one that is asked: the same, or guards around it."""

    translator: SearchTranslator
    guarded: SearchTranslator | GuardedTranslator
    memory: TranslationMemory | None = None
    n_best: int = 1
    """Translations of a line that are asked for; the translator may give more of them, to choose from."""
    calibration: Calibration | None = None
    min_confidence: float = 0.0

    def asked(self) -> NBest:
        """The translator with what it makes of capitals and has from the memory, and how sure it is."""
        by_text: NBest = CapitalsTranslator(self.guarded)
        if self.calibration is not None:
            by_text = ConfidentTranslator(by_text, self.translator, self.calibration, self.min_confidence)
        return by_text if self.memory is None else RememberingTranslator(by_text, self.memory, self.n_best)


def assemble(options: TranslateOptions) -> Assembled:
    """The translator that `options` describe. Raises DragomanError for what does not go together."""
    precision = {} if options.precision in (None, "int8") else {"precision": options.precision}
    own = SearchTranslator.load(
        check_run_dir(options.run),
        which=options.which,
        device=options.device,
        ensemble=options.ensemble,
        datastores=options.datastores,
        glossary=None if options.glossary is None else _glossary(options),
        banned=None if options.avoid is None else BannedPhrases.load(options.avoid),
        changes=options.changes,
        languages=options.languages,
        **precision,  # type: ignore[arg-type]
        **options.decoding,
    )
    reranker: Reranker | None = None
    if options.mbr:
        reranker, own = _several_runs(options, own, precision), own.with_decoding(mbr="none")
    if options.rerank:
        back = SearchTranslator.load(check_run_dir(options.rerank), device=options.device, **precision)  # type: ignore[arg-type]
        require_opposite(own, back, str(options.rerank))
        reranker = NoisyChannelReranker(back, WEIGHT if options.rerank_weight is None else options.rerank_weight)
    if reranker is not None:
        own.reranked_by(reranker)  # refused now, not when an engine has been made
    translator = own
    if options.engine != "pytorch":
        quantize = "int8" if options.precision == "int8" else None
        translator = export.engine(options.run, options.engine, own, options.which, quantize)
    if reranker is not None:
        translator, own = translator.reranked_by(reranker), own.reranked_by(reranker)
    n_best, memory = own.decoding.n_best, None
    if options.memory is not None:
        memory = TranslationMemory.load(options.memory, own.languages or ("", ""))
        if reranker is None and own.decoding.mbr == "none":
            every = own.decoding.num_candidates  # the memory chooses among them
            translator, own = translator.with_decoding(n_best=every), own.with_decoding(n_best=every)
    guarded: SearchTranslator | GuardedTranslator = translator
    if options.keep or options.guard:
        guarded = GuardedTranslator(translator, keep=options.keep, guard=bool(options.guard), fallback=own)
    if options.min_confidence is None:
        return Assembled(translator, guarded, memory, n_best)
    calibration = load_calibration(options.run, checkpoint.select(options.run, options.which).name)
    return Assembled(translator, guarded, memory, n_best, calibration, options.min_confidence)


def _several_runs(options: TranslateOptions, own: SearchTranslator, precision: Mapping[str, Any]) -> SeveralRuns:
    """The choice among the translations of all runs that --mbr names; `decoding.mbr` says by what likeness."""
    others = []
    for run in options.mbr:
        other = SearchTranslator.load(
            check_run_dir(run), device=options.device, changes=options.changes, **precision, **options.decoding
        )
        if other.languages != own.languages:
            (reads, writes), (src, tgt) = other.languages or ("?", "?"), own.languages or ("?", "?")
            raise Error.LANGUAGES_DIFFER(
                f"--mbr {run}: translates from {reads} to {writes}", f"give runs from {src} to {tgt}"
            )
        others.append(other.with_terms(own.glossary, own.banned).with_decoding(mbr="none"))
    utility = "chrf" if own.decoding.mbr == "none" else own.decoding.mbr
    return SeveralRuns(others, utility, "char" if own.join == "" else "13a")


def _glossary(options: TranslateOptions) -> Glossary:
    assert options.glossary is not None
    corpus = corpus_settings(options.run)
    src_lang, tgt_lang = options.languages
    return Glossary.load(options.glossary, (src_lang or corpus.src_lang, tgt_lang or corpus.tgt_lang))


def splits_lines(options: TranslateOptions, n_best: int) -> bool:
    """True if a line of several sentences is to be translated sentence by sentence.

    `auto`: where the run was trained on lines of one sentence each, which its training corpus shows, and a line has one
    translation.
    """
    if options.split != "auto" or options.prefix or n_best > 1:
        return options.split == "always"
    try:
        corpus = corpus_settings(options.run)
        lines = [pair.src for pair in itertools.islice(corpus.train.pairs(), LINES_LOOKED_AT)]
    except DragomanError:  # it is not here any more; most corpora are of single sentences
        return True
    return are_single_sentences(lines, corpus.src_lang)


LINES_LOOKED_AT = 2_000
"""Lines of the training corpus that show whether they are single sentences."""


class _SplitWatch:
    """Translates lines sentence by sentence, and says so at the first one of several."""

    def __init__(self, asked: NBest, languages: tuple[str, str], told: bool, is_whole: Callable[[str], bool]) -> None:
        self.by_sentence, self.told = SentenceTranslator(asked, languages, is_whole), told

    def n_best(self, lines: Sequence[str]) -> list[list[Translation]]:
        if not self.told and any(len(self.by_sentence.pieces(line)) > 1 for line in lines):
            self.told = True
            say("lines of several sentences are translated sentence by sentence, as this run was mostly trained on "
                "single ones (--split never: as a whole)")  # fmt: skip
        return self.by_sentence.n_best(lines)


def translate_lines(
    assembled: Assembled, chunks: Iterable[list[str]], prefix: Path | None = None, split: str = ""
) -> Iterator[list[tuple[str, list[Translation]]]]:
    """(line, its translations) for the lines of each chunk. `prefix`: a file of the translations' beginnings. `split`:
    lines are translated sentence by sentence, which is told if it is `auto`.

    Raises DragomanError, naming file and line, for a beginning that cannot be written, and where the file has more or
    fewer lines than there are to translate.
    """
    beginnings = None if prefix is None else read_lines(prefix, may_be_empty=True)
    done = 0
    languages = assembled.translator.languages or ("", "")
    asked = assembled.asked()
    if split:
        memory = assembled.memory
        asked = _SplitWatch(asked, languages, split != "auto", lambda text: memory is not None and text in memory)
    for lines in chunks:
        if beginnings is None:
            results = asked.n_best(lines)
        else:
            begin = list(itertools.islice(beginnings, len(lines)))
            if len(begin) < len(lines):
                raise Error.UNEQUAL_COUNTS("fewer lines than there are to translate", "give one for each", file=prefix)
            for number, text in enumerate(begin, start=done + 1):
                try:
                    assembled.translator.check_prefix(text)
                except DragomanError as error:
                    raise error.code(str(error), file=prefix, line=number) from error
            results = assembled.translator.n_best(lines, begin)
        done += len(lines)
        yield list(zip(lines, results, strict=True))
    if beginnings is not None and next(beginnings, None) is not None:
        raise Error.UNEQUAL_COUNTS(
            f"more lines than the {done:,} that were translated", "give one for each", file=prefix
        )
