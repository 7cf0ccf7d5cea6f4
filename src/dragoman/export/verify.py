"""An export is done when its real runtime has translated held-out text as the run itself does."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from dragoman import config
from dragoman.data.store import IdCorpus
from dragoman.errors import DragomanError, Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.progress import size_text
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.quality.test_set import TestSet
from dragoman.runs.directory import read_run
from dragoman.special_tokens import SPECIALS
from dragoman.text.corpus import CorpusConfig, FilesSource, Source
from dragoman.text.lines import read_lines

NEAR_TIE = 1e-5
"""Two translations whose scores differ by less may change places by float32 rounding alone."""
MAX_SCORE_DIFFERENCE = 1e-3
"""Of the same translation by the same float32 weights: what rounding explains, generously."""
MAX_BLEU_LOSS = 0.3
"""In points, that an export with other weights, or with another search, may lose where there are references."""
MIN_TOKEN_AGREEMENT = 0.9
"""The token agreement (`_agreement`) that such an export must reach where there are no references."""
MIN_COMMON_TOKENS = 0.5
"""The token agreement of quantized weights with the same search, whatever BLEU says: below it is another model."""
MADE_UP = "made-up sentences, as the run has no text"


class Engine(Protocol):
    """An export in its own runtime."""

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]: ...


@dataclass(frozen=True)
class Difference:
    """A sentence that came out differently, with the scores of the two translations."""

    src: str
    ours: Translation
    theirs: Translation

    @property
    def is_near_tie(self) -> bool:
        return abs(self.ours.score - self.theirs.score) < NEAR_TIE

    def __str__(self) -> str:
        ours, theirs = (f"{item.text!r} ({item.score:.6f})" for item in (self.ours, self.theirs))
        return f"{self.src!r}: {ours} by PyTorch, {theirs} by the export"


@dataclass(frozen=True)
class ExportComparison:
    """The translations of a text by a translator and by its export."""

    text: TestSet
    differences: list[Difference]
    token_agreement: float
    """The mean over sentences of the share of tokens that both translations have in the same order (`_agreement`)."""
    score_difference: float
    """The largest, among sentences that came out equal."""
    bleu: tuple[float, float] | None
    """The run's and the export's."""
    seconds: tuple[float, float]
    remarks: list[str] = field(default_factory=list)
    bleu_title: str = "BLEU"

    @property
    def near_ties(self) -> list[Difference]:
        return [item for item in self.differences if item.is_near_tie]

    def complaint(self, *, exact: bool, same_search: bool = True) -> str | None:
        """Why the export will not do, in a line; None: it will.

        `exact`: its weights are those of the run; `same_search`: and it finds what our search finds.
        """
        worse = [item for item in self.differences if not item.is_near_tie]
        if exact and same_search and worse:
            return f"{len(worse):,} of {len(self.text.sources):,} sentences differ, the first one {worse[0]}"
        if exact and not self.score_difference <= MAX_SCORE_DIFFERENCE:
            return f"scores of equal translations differ by up to {self.score_difference:.2g}"
        if exact and same_search:
            return None
        # Beams of a weak model differ wherever two searches stop differently: BLEU alone tells whether quality is lost.
        least = MIN_COMMON_TOKENS if same_search else 0.0
        required = MIN_TOKEN_AGREEMENT if self.bleu is None else least
        if not self.token_agreement >= required:
            return f"only {self.token_agreement:.1%} of tokens agree; at least {required:.0%} should"
        if self.bleu is not None:
            ours, theirs = self.bleu
            lost = not ours - theirs <= MAX_BLEU_LOSS
            return f"BLEU {theirs:.2f} instead of {ours:.2f}: more than {MAX_BLEU_LOSS} lost" if lost else None
        return None

    def lines(self, sizes: tuple[int, int]) -> list[str]:
        """The comparison as people read it; `sizes` in bytes of the run's weights and the export."""
        count = len(self.text.sources)
        equal = count - len(self.differences)
        rows = [
            ("sentences", f"{count:,} of {self.text.name}"),
            ("equal", f"{equal:,} ({equal / count:.1%}), near-ties {len(self.near_ties):,}"),
            ("tokens that agree", f"{self.token_agreement:.2%}"),
            ("largest score difference", f"{self.score_difference:.2g}"),
        ]
        if self.bleu is not None:
            rows.append((self.bleu_title, "{:.2f} PyTorch, {:.2f} export".format(*self.bleu)))
        rows.append(("size", "{} PyTorch, {} export".format(*map(size_text, sizes))))
        rows.append(("sentences/s", "{:.1f} PyTorch, {:.1f} export".format(*(count / s for s in self.seconds))))
        shown = [f"{name:<26}{value}" for name, value in rows]
        return [*shown, *self.remarks, *(f"near-tie: {item}" for item in self.near_ties)]


def compare_export(
    translator: SearchTranslator, engine: Engine, text: TestSet, evaluation: EvaluationConfig, tgt_lang: str
) -> ExportComparison:
    """Translate a text by the model and by the export."""
    sides, seconds = [], []
    for one in (translator, engine):
        one.n_best(text.sources[:1])  # what is only done once shall not count
        started = time.monotonic()
        sides.append([translations[0] for translations in one.n_best(text.sources)])
        seconds.append(max(time.monotonic() - started, 1e-9))
    remarks = engine.remarks() if hasattr(engine, "remarks") else []
    if as_written := getattr(engine, "as_written", None):  # what it writes otherwise is named, and the rest compared
        written = [replace(item, text=as_written(item.text)) for item in sides[0]]
        other = sum(item.text != ours.text for item, ours in zip(written, sides[0], strict=True))
        why = getattr(engine, "writes", "")
        remarks += [f"{other:,} translations compared as it writes them: {why}"] if other else []
        sides[0] = written
    differences, score_difference, scored = [], 0.0, getattr(engine, "scored", True)
    for src, ours, theirs in zip(text.sources, *sides, strict=True):
        if ours.text != theirs.text:
            differences.append(Difference(src, ours, theirs))
        elif scored and not abs(ours.score - theirs.score) <= score_difference:  # also where it is no number
            score_difference = abs(ours.score - theirs.score)
    bleu, title = None, "BLEU"
    if text.references:
        first, second = (
            score([item.text for item in side], text.references[0], evaluation, tgt_lang, with_ter=False)
            for side in sides
        )
        bleu, title = (first.bleu, second.bleu), first.titles["bleu"]
    return ExportComparison(
        text=text,
        differences=differences,
        token_agreement=_agreement(translator, *sides),
        score_difference=score_difference,
        bleu=bleu,
        seconds=(seconds[0], seconds[1]),
        remarks=remarks,
        bleu_title=title,
    )


def _agreement(translator: SearchTranslator, ours: list[Translation], theirs: list[Translation]) -> float:
    """The mean over sentences of the share of tokens that both translations have in the same order.

    A sentence counts once, however long: where one of the two runs on in a loop up to its longest length, as a weak
    model may, it would otherwise outweigh a hundred others.
    """
    shares = []
    for pair in zip(ours, theirs, strict=True):
        first, second = (translator.tokenizers.tgt.encode(item.text) for item in pair)
        matcher = SequenceMatcher(None, first, second, autojunk=False)
        shares.append(1.0 if first == second else matcher.ratio())
    return sum(shares) / len(shares) if shares else 1.0


def held_out(
    run: Path, translator: SearchTranslator, count: int, src: Path | None = None, ref: Path | None = None
) -> TestSet:
    """Up to `count` sentences: of the files given, or of the run's own test and validation sets.

    Where those are not to be found any more, the validation pairs that the run keeps as ids; sentences that are made
    up where it never had any. Raises DragomanError when
    there is no text at all, or a reference without a source.
    """
    if src is not None:
        if ref is None:
            return _some(str(src), [(line, "") for line in islice(read_lines(src), count)], with_references=False)
        pairs = FilesSource(src=str(src), tgt=str(ref)).pairs()
        return _some(str(src), [(pair.src, pair.tgt) for pair in islice(pairs, count)])
    if ref is not None:
        raise Error.MISSING_OPTION(f"`ref` {ref} needs `src`, the text that it translates")
    recipe = read_run(run, "translation")
    corpus = config.parse(CorpusConfig, recipe.get("corpus", {}), f"{run / 'config.yaml'}: corpus")
    sources: dict[str, Source] = {**corpus.test, "the validation set": corpus.valid}
    for name, source in sources.items():
        try:
            return _some(name, [(pair.src, pair.tgt) for pair in islice(source.pairs(), count)])
        except DragomanError:  # moved or deleted since
            continue
    if not (run / "prepared").exists():  # an imported run never had a text
        return _made_up(translator, count)
    return _kept(run / "prepared" / "valid", translator, count)


def _made_up(translator: SearchTranslator, count: int) -> TestSet:
    """Sentences of random pieces of the vocabulary, always the same ones: whether two programs agree shows in any."""
    tokenizer, rng = translator.tokenizers.src, random.Random(1)
    ids = [
        [rng.randrange(len(SPECIALS), tokenizer.vocab_size) for _ in range(rng.randint(1, 12))] for _ in range(count)
    ]
    return TestSet([tokenizer.decode(one) for one in ids], [], name=MADE_UP)


def _kept(folder: Path, translator: SearchTranslator, count: int) -> TestSet:
    tokenizers = translator.tokenizers
    try:
        ids = IdCorpus(folder, (tokenizers.src.vocab_size, tokenizers.tgt.vocab_size))
    except (DragomanError, OSError) as error:
        raise Error.EMPTY(
            "there is no held-out text to compare translations of",
            "give `src` FILE (and `ref` FILE), or no `verify`",
            file=folder,
        ) from error
    rows = range(min(count, len(ids)))
    pairs = [(tokenizers.src.decode(ids.src(row)), tokenizers.tgt.decode(ids.tgt(row))) for row in rows]
    return _some("the validation pairs that the run keeps", pairs)


def _some(name: str, pairs: list[tuple[str, str]], *, with_references: bool = True) -> TestSet:
    if not any(src.strip() for src, _ in pairs):
        raise Error.EMPTY("has no text to compare translations of", "give another `src` FILE", file=name)
    return TestSet([src for src, _ in pairs], [[ref for _, ref in pairs]] if with_references else [], name=name)


def settings_of(run: Path) -> tuple[EvaluationConfig, str]:
    """(how a run scores translations, its target language)."""
    recipe: dict[str, Any] = read_run(run, "translation")
    source = f"{run / 'config.yaml'}: evaluation"
    return config.parse(EvaluationConfig, recipe.get("evaluation", {}), source), recipe["corpus"]["tgt_lang"]
