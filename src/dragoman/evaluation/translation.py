"""Corpus scores by sacreBLEU (Post 2018), each with the signature that says how it was computed."""

import time
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dragoman.config import settings
from dragoman.errors import DragomanError
from dragoman.inference.translator import Translator
from dragoman.text.corpus import Pair
from dragoman.text.languages import is_chinese, written_without_spaces

Tokenize = Literal["auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]

UNSPACED = ("zh", "char", "ja-mecab")
"""Tokenizers for text whose words are not separated: TER then counts Chinese and Japanese characters, where it would
take a sentence for one word. sacreBLEU knows no others: in Thai, Lao, Khmer or Burmese TER still means little."""


@settings
class EvaluationConfig:
    """The settings of scoring."""

    tokenize: Tokenize = "auto"
    """BLEU's own tokenisation of the (detokenised) text; `auto`: `zh` for Chinese, `char` for other languages
    that are written without spaces, else sacreBLEU's default `13a`.
    `none` is for text that is tokenised already, as in the literature's lower-cased Multi30k figures."""
    lowercase: bool = False  #: Lower-case both sides before scoring.


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF in points from 0 to 100, higher is better; TER in percent, lower is better.

    `exact_match`: the percentage of translations that are the reference, which is what toy tasks go by.
    """

    bleu: float
    chrf: float
    ter: float | None
    exact_match: float
    signatures: dict[str, str]
    sentences: int

    def figures(self) -> dict[str, str]:
        """The columns of a table."""
        ter = "-" if self.ter is None else f"{self.ter:.2f}"
        return {
            "sentences": f"{self.sentences:,}",
            "BLEU": f"{self.bleu:.2f}",
            "chrF": f"{self.chrf:.2f}",
            "TER": ter,
            "exact match, %": f"{self.exact_match:.2f}",
        }

    def notes(self) -> list[str]:
        """The signature of each metric, which says how it was computed."""
        return [f"{metric}: {signature}" for metric, signature in self.signatures.items()]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    config: EvaluationConfig,
    tgt_lang: str = "",
    *,
    with_ter: bool = True,
) -> Scores:
    """Score one hypothesis against one reference a line; both are put into NFC first: one letter that is spelt as two
    code points is no difference.

    `with_ter=False` leaves out TER, whose search for shifts takes longer than translating does.
    Raises DragomanError when the counts differ or there is nothing to score.
    """
    if len(hypotheses) != len(references):
        raise DragomanError(f"{len(hypotheses):,} translations cannot be scored against {len(references):,} references")
    if not hypotheses:
        raise DragomanError("there is nothing to score: no sentences")
    hypotheses = [unicodedata.normalize("NFC", line) for line in hypotheses]
    references = [unicodedata.normalize("NFC", line) for line in references]
    metrics = _metrics(config, tgt_lang, with_ter=with_ter)
    values = {name: metric.corpus_score(list(hypotheses), [list(references)]).score for name, metric in metrics.items()}
    return Scores(
        bleu=values["bleu"],
        chrf=values["chrf"],
        ter=values.get("ter"),
        exact_match=_exact_match(hypotheses, references, config.lowercase),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
        sentences=len(hypotheses),
    )


def _metrics(config: EvaluationConfig, tgt_lang: str, *, with_ter: bool) -> dict[str, Any]:
    """sacreBLEU's metrics by name. Raises DragomanError when a tokenizer needs a package that is not there."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    tokenize = bleu_tokenizer(config.tokenize, tgt_lang)
    try:
        # force: sacreBLEU's warning that text looks tokenised is answered by the recipe's own `tokenize`.
        bleu = BLEU(tokenize=tokenize, lowercase=config.lowercase, force=True)
    except (ImportError, RuntimeError) as error:  # the message names what to install
        raise DragomanError(f"evaluation.tokenize {tokenize}: {' '.join(str(error).split())}") from error
    metrics = {"bleu": bleu, "chrf": CHRF(lowercase=config.lowercase)}
    if with_ter:
        unspaced = tokenize in UNSPACED
        metrics["ter"] = TER(case_sensitive=not config.lowercase, asian_support=unspaced, normalized=unspaced)
    return metrics


def _exact_match(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool) -> float:
    fold = str.lower if lowercase else str
    same = sum(fold(hyp) == fold(ref) for hyp, ref in zip(hypotheses, references, strict=True))
    return 100 * same / len(references)


@dataclass(frozen=True)
class Evaluation:
    """A test set translated and scored, with the seconds that translating took."""

    scores: Scores
    hypotheses: list[str]
    decode_s: float


def evaluate(
    translator: Translator, pairs: Sequence[Pair], config: EvaluationConfig, tgt_lang: str, *, with_ter: bool = True
) -> Evaluation:
    """Steps 8 and 9: translate the source side of `pairs` and score against the target side."""
    _metrics(config, tgt_lang, with_ter=with_ter)  # what it lacks should be said before the long work
    start = time.monotonic()
    hypotheses = translate(translator, pairs)
    decode_s = time.monotonic() - start
    scores = score(hypotheses, [pair.tgt for pair in pairs], config, tgt_lang, with_ter=with_ter)
    return Evaluation(scores, hypotheses, decode_s)


def translate(translator: Translator, pairs: Sequence[Pair]) -> list[str]:
    """The translation of each source side, between the languages of its pair."""
    hypotheses = [""] * len(pairs)
    for languages in dict.fromkeys(pair.languages for pair in pairs):
        rows = [row for row, pair in enumerate(pairs) if pair.languages == languages]
        speaking = translator if languages is None else translator.between(*languages)
        for row, text in zip(rows, speaking.translate([pairs[row].src for row in rows]), strict=True):
            hypotheses[row] = text
    return hypotheses


def spread(pairs: Sequence[Pair], hypotheses: Sequence[str], count: int) -> list[dict[str, str]]:
    """Up to `count` samples spread over a test set, the same sentences every time: [{src, ref, hyp}]."""
    count = min(count, len(pairs))
    chosen = [i * len(pairs) // count for i in range(count)]
    return [{"src": pairs[i].src, "ref": pairs[i].tgt, "hyp": hypotheses[i]} for i in chosen]


def bleu_tokenizer(tokenize: str, tgt_lang: str) -> str:
    """The sacreBLEU tokenizer that `auto` stands for in this target language."""
    if tokenize != "auto":
        return tokenize
    return "zh" if is_chinese(tgt_lang) else "char" if written_without_spaces(tgt_lang) else "13a"
