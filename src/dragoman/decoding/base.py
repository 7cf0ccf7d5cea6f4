"""Shared by every search: its settings, its result, the ranking of next tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from dragoman.config import settings
from dragoman.decoding.filters import DrawConfig
from dragoman.decoding.penalties import AveragePenalty, LengthPenalty
from dragoman.decoding.rows import rows_at_once, top_columns
from dragoman.decoding.rules import NoRepeatNgram, RepetitionPenalty, Rule, Step, WordPenalty
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID

TIE_CANDIDATES = 2
"""Tokens to look at beyond those that are asked for, so that of equally probable tokens the smaller id is taken."""


@settings
class SampledConfig(DrawConfig):
    """Settings of drawing translations."""

    samples: int = Field(default=1, ge=1)  #: Samples drawn for each sentence.


@settings
class DecodingConfig:
    """Settings of the search for a translation. Lengths are counted in target tokens.

    A hypothesis has at most `max_length_ratio * source length + max_length_extra` tokens with its `</s>` (never less
    than one), and at least `min_length` without. `<unk>` is banned by default: the mark tells a reader nothing, and the
    second-best token is a better guess. Banning does not rescale: scores stay log probabilities of the model.
    """

    beam_size: int = Field(default=5, ge=1, le=1000)  #: Hypotheses a sentence; 1: greedy search. [hypotheses]
    length_penalty: LengthPenalty = AveragePenalty()  #: Normalisation of scores by length.
    max_length_ratio: float = Field(default=2.0, ge=0.0, le=1000.0)
    """Longest translation, for each source token. [tokens]"""
    max_length_extra: float = Field(default=20, ge=0, le=100_000)  #: And so many more. [tokens]
    min_length: int = Field(default=0, ge=0, le=100_000)  #: Shortest translation, `</s>` not counted. [tokens]
    n_best: int = Field(default=1, ge=1)  #: Translations given for each sentence.
    ban_unk: bool = True  #: Never write `<unk>`.
    replace_unk: bool = False
    """With `ban_unk: false`: in the place of each `<unk>` write the source word that the model looked at most."""
    phrase_table: str | None = None
    """With `replace_unk`: a file of lines `source|||target`; a word or phrase that it has is written as its target."""
    no_repeat_ngram: int = Field(default=0, ge=0)
    """Length of n-grams that may not come twice in a translation; 0: no limit. [tokens]"""
    no_source_ngram: int = Field(default=0, ge=0)
    """Length of n-grams of the source that may not come in its translation; 0: no limit. Of a joint vocabulary alone.
    [tokens]"""
    repetition_penalty: float = Field(default=1.0, ge=1.0, le=1000.0)
    """Multiplier of the log probability of tokens already written; 1: none."""
    word_penalty: float = Field(default=0.0, ge=0.0, le=1000.0)
    """Log probability that each token loses, `</s>` too, before the length penalty divides, as in Marian. [nats]"""
    stopping: Literal["exact", "likely", "full", "first"] = "exact"
    """When the beam of a sentence is done. `exact`: nothing that may still come can be better than its best. `likely`:
    `beam_size` hypotheses are finished, and no unfinished hypothesis is as good at its present length. `full`:
    `beam_size` hypotheses are finished, as in CTranslate2. `first`: the best continuation of all is a finished one, as
    in OpenNMT-py. transformers has `likely` and `full`. The last three stop earlier than `exact`."""
    patience: float = Field(default=1.0, gt=0.0, le=1000.0)
    """With `likely` and `full`: finished hypotheses for each one of the beam (Kasai et al. 2022, "A Call for Clarity in
    Beam Search")."""
    coverage_penalty: float = Field(default=0.0, ge=0.0, le=1000.0)
    """Beta of `coverage.py`; 0: no coverage penalty. It reranks the `beam_size` best finished hypotheses; drawn samples
    are not reranked."""
    diversity: float = Field(default=0.0, ge=0.0, le=1e6)
    """Of a beam, so that the n best differ more: what a continuation loses in rank (nats) for each better one of the
    same prefix."""
    diversity_groups: int = Field(default=1, ge=1)
    """Above 1 the beam has as many groups, and `diversity` is what a token loses in rank for each place of the groups
    before that has just taken it (Vijayakumar et al. 2018, "Diverse Beam Search")."""
    sampling: SampledConfig | None = None  #: Draw translations instead of searching for the best.
    mbr: Literal["none", "chrf", "bleu"] = "none"
    """Take the translation that is most like all samples, or like all `beam_size` hypotheses (`inference/mbr.py`)."""

    def __post_init__(self) -> None:
        if self.n_best > self.num_candidates:
            name = "beam_size" if self.sampling is None else "sampling.samples"
            raise ValueError(
                f"n_best {self.n_best} is more than {name} {self.num_candidates}: lower n_best or raise it"
            )
        if self.coverage_penalty and self.sampling is not None:
            raise ValueError(
                "coverage_penalty ranks what a beam has found, and sampling draws instead: set coverage_penalty to 0, "
                "or leave the sampling"
            )
        if self.diversity and (self.sampling is not None or self.beam_size == 1):
            other = "beam_size is 1" if self.sampling is None else "sampling draws instead"
            raise ValueError(f"diversity is of the hypotheses of a beam, and {other}: set diversity to 0")
        if self.diversity_groups > 1 and not self.diversity:
            raise ValueError(f"diversity_groups {self.diversity_groups}: nothing keeps them apart; set diversity")
        if self.beam_size % self.diversity_groups:
            raise ValueError(f"beam_size {self.beam_size}: no multiple of diversity_groups {self.diversity_groups}")
        if self.replace_unk and self.ban_unk:
            raise ValueError("replace_unk: `<unk>` is never written with ban_unk; set ban_unk to false")
        if self.phrase_table and not self.replace_unk:
            raise ValueError("phrase_table is for the words of replace_unk: set that to true")
        if self.word_penalty and self.sampling is not None:
            raise ValueError("word_penalty is of what is searched for, and sampling draws instead: set it to 0")
        if self.patience != 1.0 and self.stopping not in ("likely", "full"):
            raise ValueError(f"patience is of stopping likely or full, and it is {self.stopping}: set patience to 1")

    @property
    def num_candidates(self) -> int:
        """Number of hypotheses of a sentence to choose from."""
        return self.beam_size if self.sampling is None else self.sampling.samples

    def rules(self, others: Sequence[Rule] = ()) -> list[Rule]:
        """The rules that these settings ask for, and others before the last one, which looks at their choices too."""
        rules: list[Rule] = []
        if self.repetition_penalty > 1.0:
            rules.append(RepetitionPenalty(self.repetition_penalty))
        if self.no_repeat_ngram:
            rules.append(NoRepeatNgram(self.no_repeat_ngram))
        return [*rules, *others, *([WordPenalty(self.word_penalty)] if self.word_penalty else [])]


@dataclass(frozen=True)
class Hypothesis:
    """A translation: `ids` without `<s>` and `</s>`, `log_prob` (nats, `</s>` counted), `score` to rank by."""

    ids: list[int]
    score: float
    log_prob: float
    cut: bool = False
    """It came to its longest length before a `</s>`."""


def banned_ids(config: DecodingConfig, length: int) -> list[int]:
    """Ids that may not be token number `length` (from 1): `<pad>`, `<s>`, maybe `<unk>`, too early a `</s>`."""
    banned = [PAD_ID, BOS_ID]
    banned += [UNK_ID] if config.ban_unk else []
    banned += [EOS_ID] if length <= config.min_length else []
    return banned


def ban(log_probs: Float[Tensor, "rows vocab"], ids: list[int]) -> None:
    """Set the columns `ids` to -inf, in place, one by one: PyTorch makes a tensor of a list that is an index, and a GPU
    would wait for the copy of that tensor."""
    for column in ids:
        log_probs[:, column] = -math.inf


def best_tokens(
    logits: Float[Tensor, "rows vocab"],
    k: int,
    banned: list[int],
    rules: Sequence[Rule] = (),
    prefixes: Int[Tensor, "rows length"] | None = None,
    sentences: Sequence[int] = (),
) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """The k most probable next tokens of each row, best first: (log probabilities in float32, ids).

    Of tokens with the same probability the smaller id is first (unless more than TIE_CANDIDATES + 1 of them are as
    probable as the last: then `topk` has chosen among them). Columns that banned tokens leave empty have -inf. Without
    `rules` a CPU looks at a few rows at a time: numbers that are read while they are still in its cache, in memory that
    need not be asked for anew (benchmarks/log/2026-11.md, "translation twice as fast").
    """
    if not rules and logits.size(0) > rows_at_once(logits):
        parts = [best_tokens(part, k, banned) for part in logits.split(rows_at_once(logits))]
        return torch.cat([log_probs for log_probs, _ in parts]), torch.cat([ids for _, ids in parts])
    log_probs = logits.float().log_softmax(dim=-1)
    for rule in rules:
        assert prefixes is not None
        rule(Step(log_probs, prefixes, sentences, logits))
    ban(log_probs, banned)
    top, ids = top_columns(log_probs, min(k + TIE_CANDIDATES, logits.size(1)))
    ids, order = ids.sort(dim=1)
    top, order = top.gather(1, order).sort(dim=1, descending=True, stable=True)
    return top[:, :k], ids.gather(1, order)[:, :k]


def divisors(
    penalty: LengthPenalty, max_lengths: Int[Tensor, " slots"], longest: int
) -> Float[Tensor, " longest_plus_1"]:
    """The penalty's divisor for every length up to `longest`, on the device of `max_lengths`. Length 0 never occurs."""
    values = [1.0] + [penalty.divisor(length) for length in range(1, longest + 1)]
    return torch.tensor(values, dtype=torch.float32, device=max_lengths.device)
