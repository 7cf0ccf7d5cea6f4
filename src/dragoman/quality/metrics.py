"""Metrics of a test set by name: sacreBLEU's (Post 2018), exact match, and those of other programs and files.

A metric is a function of statistics that are added up over sentences: of BLEU the matching n-grams, of a mean its sum
and its count. So a sum over any sentences, drawn with or without replacement, is scored without looking at text again.
"""

import contextlib
import inspect
import io
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from dragoman.errors import Error
from dragoman.languages.codes import is_chinese, written_without_spaces
from dragoman.progress import say
from dragoman.quality.test_set import TestSet, composed
from dragoman.text.words import UNSPACED as UNSPACED_LETTERS

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

UNSPACED = ("zh", "char", "ja-mecab")
"""Tokenizers for text whose words are not separated: TER then counts Chinese and Japanese characters, where it would
take a sentence for one word. sacreBLEU knows no others: in Thai, Lao, Khmer or Burmese TER still means little."""


class Metric(ABC):
    """A figure of a test set, and how it was computed."""

    name: str
    """Its name in options and settings: "bleu"."""
    title: str
    """Its name in print: "BLEU"."""
    higher_is_better = True

    @abstractmethod
    def statistics(self, test: TestSet, hypotheses: Sequence[str]) -> FloatArray:
        """(sentences, statistics) the sufficient statistics of each sentence, which are added up."""

    @abstractmethod
    def score(self, sums: FloatArray) -> float:
        """The figure of sentences whose statistics have these sums."""

    @abstractmethod
    def signature(self) -> str:
        """The settings that the figure depends on, after `statistics` was called."""

    def resampled(self, resamples: int, seed: int) -> str:
        """The signature of a figure with an interval by the bootstrap."""
        return f"{self.signature()}|bs:{resamples}|seed:{seed}"

    def better(self, one: float, other: float) -> float:
        """The difference in the figure by which `one` is better than `other`; negative where it is worse."""
        return one - other if self.higher_is_better else other - one


class SacreMetric(Metric):
    """A metric of sacreBLEU, with its settings."""

    def __init__(self, name: str, title: str, metric: Any, higher_is_better: bool = True) -> None:
        self.name, self.title, self.metric, self.higher_is_better = name, title, metric, higher_is_better

    def statistics(self, test: TestSet, hypotheses: Sequence[str]) -> FloatArray:
        if not test.references:
            raise Error.MISSING_OPTION(f"{self.title} needs references", "give `ref`")
        references = [composed(lines) for lines in test.references]
        with _warnings_said():
            statistics = self.metric._extract_corpus_statistics(composed(hypotheses), references)
        return np.array(statistics, dtype=np.float64)

    def score(self, sums: FloatArray) -> float:
        return float(self.metric._compute_score_from_stats(sums.tolist()).score)

    def signature(self) -> str:
        return str(self.metric.get_signature())

    def resampled(self, resamples: int, seed: int) -> str:
        kind = type(self.metric)._SIGNATURE_TYPE
        return str(kind({**vars(self.metric), "n_bootstrap": resamples, "seed": seed}))


class ExactMatch(Metric):
    """The percentage of translations that equal one of their references: the metric of the toy tasks."""

    name, title = "exact_match", "exact match, %"

    def __init__(self, *, lowercase: bool = False) -> None:
        self._fold = str.lower if lowercase else str

    def statistics(self, test: TestSet, hypotheses: Sequence[str]) -> FloatArray:
        references = zip(*(composed(lines) for lines in test.references), strict=True)
        same = [
            self._fold(hypothesis) in map(self._fold, lines)
            for hypothesis, lines in zip(composed(hypotheses), references, strict=True)
        ]
        return np.stack([np.array(same, dtype=np.float64), np.ones(len(same))], axis=1)

    def score(self, sums: FloatArray) -> float:
        return float(100 * sums[0] / sums[1]) if sums[1] else 0.0

    def signature(self) -> str:
        return f"case:{'lc' if self._fold is str.lower else 'mixed'}"


TITLES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "ter": "TER",
    "spbleu": "spBLEU",
    "exact_match": "exact match, %",
}
"""The built-in metrics, by name."""

_OURS = {"tokenize", "lowercase"}
"""Settings that are given for all metrics at once, and mean something to each."""


def metric(text: str, tgt_lang: str = "", *, tokenize: str = "auto", lowercase: bool = False) -> Metric:
    """A metric by name, with settings of its own: `bleu`, `chrf++`, `bleu:tokenize=char:lowercase`.

    Settings are the arguments of sacreBLEU's class. Raises DragomanError for a name or setting that is not known.

    >>> metric("chrf++").title, metric("ter").higher_is_better
    ('chrF++', False)
    """
    name, _, settings = text.partition(":")
    name = name.strip().lower()
    if name not in TITLES:
        raise Error.UNKNOWN_NAME(
            f"`metric` {text}: there is no such metric; there are {', '.join(TITLES)}, NAME=FILE for figures of "
            "another program, NAME=!COMMAND to call one, and FILE.py for one of your own"
        )
    given: dict[str, Any] = {}
    for part in filter(None, settings.split(":")):
        key, _, value = part.partition("=")
        given[key.strip()] = value.strip() or "yes"
    lowercase = _truth(text, given.pop("lowercase", "yes" if lowercase else "no"))
    tokenize = given.pop("tokenize", tokenize)
    if name == "exact_match":
        if given:
            raise Error.UNKNOWN_SETTING(
                f"`metric` {text}: exact_match has no setting {next(iter(given))}, only lowercase"
            )
        return ExactMatch(lowercase=lowercase)
    higher_is_better = name != "ter"
    counted = _sacre(text, name, given, tokenize, lowercase, tgt_lang)
    return SacreMetric(name, _title(name, counted), counted, higher_is_better)


def _title(name: str, counted: Any) -> str:
    """The title of a metric, with BLEU's tokenizer where it is not sacreBLEU's default."""
    tokenizer = getattr(counted, "tokenizer_signature", "13a") if name == "bleu" else "13a"
    return TITLES[name] if tokenizer == "13a" else f"{TITLES[name]} (tok:{tokenizer})"


def _sacre(text: str, name: str, given: dict[str, Any], tokenize: str, lowercase: bool, tgt_lang: str) -> Any:
    """sacreBLEU's object. A tokenizer that the language calls for is used unless another one is given."""
    tokenizer = bleu_tokenizer(tokenize, tgt_lang)
    unspaced = tokenizer in UNSPACED
    # force: no warning that text looks tokenised where the recipe's own `tokenize` says that it is.
    bleu = {"tokenize": tokenizer, "lowercase": lowercase, "force": tokenizer == "none"}
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "bleu": (BLEU, bleu),
        "spbleu": (BLEU, {**bleu, "tokenize": "flores200"}),
        "ter": (TER, {"asian_support": unspaced, "normalized": unspaced}),
        "chrf": (CHRF, {"lowercase": lowercase}),
        "chrf++": (CHRF, {"lowercase": lowercase, "word_order": 2}),
    }
    kind, options = kinds[name]
    options |= {key: _value(text, kind, key, value) for key, value in given.items()}
    try:
        with _quiet():
            return kind(**options)
    except (ImportError, RuntimeError) as error:  # the message names what to install
        what = f"evaluation.tokenize {options.get('tokenize')}"
        raise Error.WRONG_OPTION(f"{what}: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise Error.NO_NETWORK(
            f"{text}: its tokenizer could not be fetched ({error})",
            "on a machine with network once, or put the file into ~/.sacrebleu/models",
        ) from error
    except AssertionError as error:
        raise Error.WRONG_OPTION(f"`metric` {text}: {' '.join(str(error).split())}") from error


def _value(text: str, kind: Any, key: str, value: str) -> Any:
    """A setting in the type of its default."""
    known = {
        name: parameter.default
        for name, parameter in inspect.signature(kind).parameters.items()
        if name not in ("references", "force", "trg_lang")
    }
    if key not in known:
        names = ", ".join(sorted({*known, *_OURS}))
        raise Error.UNKNOWN_SETTING(f"`metric` {text}: there is no setting {key}; there are {names}")
    default = known[key]
    if isinstance(default, bool):
        return _truth(text, value)
    try:
        return type(default)(value) if isinstance(default, int) else float(value) if key == "smooth_value" else value
    except ValueError as error:
        raise Error.WRONG_OPTION(f"`metric` {text}: {key} must be a number, not {value}") from error


def _truth(text: str, value: str) -> bool:
    if value.lower() not in ("yes", "no", "true", "false"):
        raise Error.WRONG_OPTION(f"`metric` {text}: {value} is neither yes nor no")
    return value.lower() in ("yes", "true")


@contextlib.contextmanager
def _quiet() -> Any:
    """sacreBLEU says on standard error and in its log that it fetches a file: here that is said once, if it fails."""
    log = logging.getLogger("sacrebleu")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        log.setLevel(level)


class _Say(logging.Handler):
    """Keeps logged warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def _warnings_said() -> Iterator[None]:
    """Say the warnings that sacreBLEU logs meanwhile."""
    log, handler = logging.getLogger("sacrebleu"), _Say()
    handlers, log.handlers, propagates, log.propagate = log.handlers, [handler], log.propagate, False
    try:
        yield
    finally:
        log.handlers, log.propagate = handlers, propagates
    if handler.messages:
        say(f"warning: sacreBLEU says: {' '.join(handler.messages)}")


def bleu_tokenizer(tokenize: str, tgt_lang: str) -> str:
    """The sacreBLEU tokenizer that `auto` stands for in this target language."""
    if tokenize != "auto":
        return tokenize
    return "zh" if is_chinese(tgt_lang) else "char" if written_without_spaces(tgt_lang) else "13a"


def unsplit(test: TestSet, metrics: Sequence[Metric]) -> str:
    """Why the figure of BLEU means nothing: its tokenizer does not split the references; "" where it does."""
    text = " ".join(line for lines in test.references[:1] for line in lines[:_LOOKED_AT])
    tokenizers = {
        each.metric.tokenizer_signature for each in metrics if isinstance(each, SacreMetric) and each.name == "bleu"
    }
    letters, words = len(_UNSPACED_LETTER.findall(text)), len(text.split())
    if not tokenizers & {"13a", "intl", "none"} or letters < _UNSPLIT * words or 2 * letters < len(text):
        return ""
    return (
        "the references have no spaces between words, and BLEU takes each sentence for one: say with `tgt_lang` which "
        "language it is, or choose with `tokenize`: zh for Chinese, char for other languages"
    )


_LOOKED_AT, _UNSPLIT = 100, 4
"""References that are looked at, and letters between two spaces from which on these do not stand between words."""
_UNSPACED_LETTER = re.compile(f"[{UNSPACED_LETTERS}]")
