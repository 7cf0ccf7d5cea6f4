"""Confidence of a model in its translations, in numbers that mean what they say.

A model's own probabilities are too high on text that it knows little of, and differ between models. What is wanted: of
all words that have a confidence of 0.8, eight of ten stand in a human's translation. So probabilities are calibrated on
text with references: Platt scaling (1999), a logistic regression on what the model says of a word and of its line. The
confidence of a line is the share of its words that a human's translation is expected to have; a second regression
expects its chrF, and so that of a text.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sacrebleu.metrics import CHRF

from dragoman import config
from dragoman.cancellation import check
from dragoman.config import settings
from dragoman.errors import Error
from dragoman.inference.scoring import token_log_probs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import NBest, Translation
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.runs.atomic_io import read_json, write_json
from dragoman.text.words import is_of_letters, split_words, words

Array = np.ndarray[Any, np.dtype[np.float64]]

FILE = "confidence.json"
FORMAT_VERSION = 2
"""Version of the file: 1 had isotonic steps as well."""
BINS = 10
MIN_LINES = 50
"""Lines with references from which on a calibration means something."""


@dataclass(frozen=True)
class Confidence:
    """The confidence of a translation: of the line, and of each word with where it begins and ends in the text."""

    line: float
    """The share of its words that a human's translation is expected to have."""
    words: tuple[tuple[int, int, float], ...]
    chrf: float
    """The chrF that is expected of the line, from 0 to 100."""


@settings
class Regression:
    """A regression on features that are brought to mean 0 and deviation 1."""

    means: list[float]
    scales: list[float]
    weights: list[float]
    """Weights of the constant and of each feature."""
    bounds: list[float]
    """The least and the most that it gives: its range on the text that it was learnt on, without 1 % at each end."""
    logistic: bool
    """True: it gives a chance. False: any number."""

    def __call__(self, features: Array) -> Array:
        """(rows, features) to (rows)."""
        scores = _with_constant((features - np.array(self.means)) / np.array(self.scales)) @ np.array(self.weights)
        scores = np.clip(scores, self.bounds[0], self.bounds[1])
        return 1 / (1 + np.exp(-scores)) if self.logistic else scores


@settings
class Calibration:
    """The content of `confidence.json` in a run directory."""

    format: int = FORMAT_VERSION
    checkpoint: str  #: The step that it belongs to.
    lines: int  #: Lines with references that it was made on.
    words: Regression  #: The chance that a human's translation has a word.
    chrf: Regression
    bias: float  #: Added to the expected chrF of a text: that of a text is no mean over lines.
    line_error: float  #: Standard deviation of a line's chrF around what is expected.
    text_error: float  #: The same of the mean of many lines, between parts of the validation text that differ.
    usual: float  #: Mean expected chrF of the lines it was made on.
    word_ece: float  #: Expected calibration error of words on lines that were held out.
    line_ece: float  #: The same of lines.


@dataclass(frozen=True)
class Projection:
    """The chrF that is expected of a text without references, with the half width of its 95 % interval."""

    chrf: float
    error: float
    lines: int
    confidence: float


def calibrate(translator: SearchTranslator, pairs: Sequence[tuple[str, str]], checkpoint: str) -> Calibration:
    """Learn what a translator's probabilities are worth from (source, reference) lines, which it translates.

    The errors that are reported are of every second line, by what was learnt on the others; the rest is learnt on all.
    Raises DragomanError for fewer lines than mean anything.
    """
    pairs = [(src, ref) for src, ref in pairs if src.strip() and ref.strip()]
    if len(pairs) < MIN_LINES:
        raise Error.TOO_FEW(f"{len(pairs)} lines with references are too few to calibrate on: {MIN_LINES} or more")
    hypotheses = translator.translate([src for src, _ in pairs])
    rows = [row for row, text in enumerate(hypotheses) if text.strip()]
    if len(rows) < MIN_LINES:
        raise Error.TOO_FEW(f"only {len(rows)} lines have a translation: this model has not learnt to translate yet")
    kept = [pairs[row] for row in rows]
    texts = [hypotheses[row] for row in rows]
    lines = _features(translator, [(src, text) for (src, _), text in zip(kept, texts, strict=True)])
    right = [_in_reference(text, ref) for text, (_, ref) in zip(texts, kept, strict=True)]
    scores = sentence_chrf(texts, [ref for _, ref in kept])
    halves = [list(range(first, len(rows), 2)) for first in (0, 1)]
    learnt, tested = (([lines[row] for row in half], [right[row] for row in half], half) for half in halves)
    trial = _learnt(learnt[0], learnt[1], scores[learnt[2]], checkpoint)
    trials = [_confidence(trial, line) for line in tested[0]]
    word_ece = ece(np.concatenate([[value for _, _, value in it.words] for it in trials]), np.concatenate(tested[1]))
    line_ece = ece(np.array([it.line for it in trials]), np.array([np.mean(line) for line in tested[1]]))
    final = _learnt(lines, right, scores, checkpoint)
    return replace(final, word_ece=word_ece, line_ece=line_ece)


def confidences(
    translator: SearchTranslator, calibration: Calibration, pairs: Sequence[tuple[str, str]]
) -> list[Confidence | None]:
    """The confidence of each (source, translation); None where either is blank."""
    rows = [row for row, (src, text) in enumerate(pairs) if src.strip() and text.strip()]
    judgements: list[Confidence | None] = [None] * len(pairs)
    for row, line in zip(rows, _features(translator, [pairs[row] for row in rows]), strict=True):
        judgements[row] = _confidence(calibration, line)
    return judgements


def project(calibration: Calibration, lines: Sequence[Confidence | None]) -> Projection:
    """The chrF expected of a text from the confidences of its lines, longer ones counting more, and its error.

    The error has three parts: of the lines, which goes down with their number; between texts; and that of a text which
    is unlike the one calibrated on, whose expected chrF is far from the usual one.
    """
    known = [it for it in lines if it is not None]
    if not known:
        raise Error.EMPTY("there is nothing to judge: no line has a translation")
    sizes = np.array([max(1, sum(end - begin for begin, end, _ in it.words)) for it in known], dtype=np.float64)
    weights = sizes / sizes.sum()
    expected = float(weights @ np.array([it.chrf for it in known]))
    effective = 1 / float((weights**2).sum())
    far = expected - calibration.usual
    error = 1.96 * (calibration.line_error**2 / effective + calibration.text_error**2 + (SLOPE_ERROR * far) ** 2) ** 0.5
    confidence = float(weights @ np.array([it.line for it in known]))
    chrf = expected + calibration.bias + SLOPE * far
    return Projection(float(np.clip(chrf, 0, 100)), error, len(known), confidence)


SLOPE = 0.4
"""Texts differ more than their lines: so many points more for each point of difference from the usual chrF, because
chance cancels out in the mean of a text (docs/judging.md has the texts of the measurement)."""
SLOPE_ERROR = 0.35
"""The uncertainty of the value above, for each point."""


def load(run: Path, checkpoint: str) -> Calibration:
    """The calibration of a run. Raises DragomanError where there is none, or it is of another checkpoint."""
    path = run / FILE
    if not path.exists():
        raise Error.NOT_CALIBRATED("its confidence is not calibrated yet", f"dragoman calibrate {run}", file=run)
    content = read_json(path, dict)
    if content.get("format") != FORMAT_VERSION:
        raise Error.NOT_CALIBRATED(
            f"format {content.get('format')} is of another version", f"dragoman calibrate {run}", file=path
        )
    calibration = config.parse(Calibration, content, str(path))
    if calibration.checkpoint != checkpoint:
        raise Error.NOT_CALIBRATED(
            f"belongs to {calibration.checkpoint}, and {checkpoint} is used", f"dragoman calibrate {run}", file=path
        )
    return calibration


def save(run: Path, calibration: Calibration) -> Path:
    """Write `confidence.json` into a run directory."""
    write_json(run / FILE, config.to_dict(calibration))
    return run / FILE


def with_confidence(
    n_best: NBest, own: SearchTranslator, calibration: Calibration, least: float, sentences: Sequence[str]
) -> list[list[Translation]]:
    """The translations of each line, the best with its confidence, and a warning where that is too low.

    `own`: the translator whose model is asked, inside of `n_best`.
    """
    translations = n_best(sentences)
    best = [items[0].text if items else "" for items in translations]
    sure = confidences(own, calibration, list(zip(sentences, best, strict=True)))
    for items, line in zip(translations, sure, strict=True):
        if items and line is not None:
            low = (Warning(WarningKind.LOW_CONFIDENCE, f"{line.line:.2f}"),) if line.line < least else ()
            warnings = (*items[0].warnings, *low)
            items[0] = replace(items[0], warnings=warnings, confidence=line.line, words=line.words)
    return translations


def ece(expected: Array, seen: Array, bins: int = BINS) -> float:
    """The expected calibration error: how far the mean of what was seen is from the mean of what was expected, over
    bins of equal width of what was expected, each by its share (Naeini et al. 2015).

    >>> ece(np.array([0.8] * 10), np.array([1.0] * 8 + [0.0] * 2))
    0.0
    """
    places = np.clip((expected * bins).astype(int), 0, bins - 1)
    total = 0.0
    for place in np.unique(places):
        inside = places == place
        total += inside.mean() * abs(float(expected[inside].mean()) - float(seen[inside].mean()))
    return round(float(total), 12)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Array:
    """chrF of each line by itself, from 0 to 100."""
    metric = CHRF()
    return np.array([metric.sentence_score(hyp, [ref]).score for hyp, ref in zip(hypotheses, references, strict=True)])


@dataclass(frozen=True)
class _Line:
    """Words of a translation with what the model says of them: spans, and features (words, features)."""

    spans: list[tuple[int, int]]
    words: Array
    whole: Array
    """Features of the line."""


def _features(translator: SearchTranslator, pairs: Sequence[tuple[str, str]]) -> list[_Line]:
    """Features of each translation, by the model's probabilities. A side that is too long loses its end."""
    encode_src, tokenizer = translator.tokenizers.src.encode, translator.tokenizers.tgt
    texts = [(translator.normalize(src), translator.normalize(text)) for src, text in pairs]
    ids = [
        (
            encode_src(src)[: translator.max_src_tokens] or [0],
            tokenizer.encode(text)[: translator.max_tgt_tokens] or [0],
        )
        for src, text in texts
    ]
    lines = []
    for (src, tgt), (_, text), values in zip(ids, texts, token_log_probs(translator, ids), strict=True):
        given = len(tokenizer.before)
        lines.append(_line(text, _ends(tokenizer, tgt), np.array(values[:-1]), values[-1], len(src), given))
    return lines


def _ends(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """The place in the text where each token ends: the length of the decoded tokens up to it."""
    ends = []
    for place in range(len(ids)):
        check()
        ends.append(len(tokenizer.decode(ids[: place + 1])))
    return ends


def _line(text: str, ends: Sequence[int], values: Array, at_end: float, src_tokens: int, given: int) -> _Line:
    """Features of a line, and of each of its words; the comments below name the columns in their order.

    `ends`: where each token ends in the text. `values`: log probability (nats) of each token, of which the first
    `given` were not chosen. `at_end`: log probability of `</s>`.
    """
    # 1. The log probabilities of each word's tokens.
    spans = [(word.start, word.end) for word in words(text)]
    own: list[list[float]] = [[] for _ in spans]
    place = 0
    for token, end in enumerate(ends):
        if token < given:
            continue
        while place + 1 < len(spans) and end > spans[place][1]:
            place += 1
        if own:
            own[place].append(float(values[token]))
    # 2. The line: mean, mean of the lowest fifth, share of tokens above one half, log of the length, log of the
    # ratio of lengths, `</s>`.
    everything = values[given:] if len(values) > given else np.zeros(1)
    mean, low = float(everything.mean()), float(np.sort(everything)[: max(1, len(everything) // 5)].mean())
    sure = float((everything > np.log(0.5)).mean())
    ratio = float(np.log(max(1, len(values)) / max(1, src_tokens)))
    whole = np.array([mean, low, sure, float(np.log(max(1, len(values)))), ratio, at_end])
    # 3. Each word: mean, least and sum of its tokens, log of their number, probability; the line's mean and lowest
    # fifth; the mean of its neighbours; 1 for letters.
    rows = []
    for place, of_word in enumerate(own):
        logs = np.array(of_word or [mean])
        near = [float(np.mean(own[other])) for other in (place - 1, place + 1) if 0 <= other < len(own) and own[other]]
        begin, end = spans[place]
        word = [logs.mean(), logs.min(), logs.sum(), np.log(len(logs)), float(np.exp(logs.sum()))]
        rows.append([*word, mean, low, float(np.mean(near or [mean])), float(is_of_letters(text[begin:end]))])
    return _Line(spans, np.array(rows, dtype=np.float64).reshape(len(spans), 9), whole)


def _in_reference(text: str, reference: str) -> Array:
    """Of each word of a translation, 1 if the reference has it, each of its words once."""
    left = Counter(split_words(reference))
    hits = []
    for word in split_words(text):
        hits.append(float(left[word] > 0))
        left[word] -= 1
    return np.array(hits)


def _learnt(lines: Sequence[_Line], right: Sequence[Array], scores: Array, checkpoint: str) -> Calibration:
    """The calibration of a checkpoint: first of words, then of lines, whose features hold the words' confidences.

    `right`: for each word of each line, 1 if the reference has it. `scores`: chrF of each line, from 0 to 100.
    """
    words = _fitted(np.concatenate([line.words for line in lines]), np.concatenate(right), logistic=True)
    whole = _whole(words, lines)
    chrf = _fitted(whole, scores, logistic=False)
    expected = np.clip(chrf(whole), 0, 100)
    sizes = np.array([max(1, sum(end - begin for begin, end in line.spans)) for line in lines], dtype=np.float64)
    rest = scores - expected
    # Parts of the text that differ: by the length of lines and by how sure the model is of them.
    order = np.argsort(whole[:, 0], kind="stable")
    parts = [part for part in np.array_split(order, 8) if len(part)]
    of_parts = [float(np.average(rest[part], weights=sizes[part])) for part in parts]
    # Their means differ by chance as well: that variance is taken away.
    noise = float(rest.std()) ** 2 / max(1, len(rest) / len(parts))
    between = max(0.0, float(np.var(of_parts)) - noise) ** 0.5
    return Calibration(
        checkpoint=checkpoint,
        lines=len(lines),
        words=words,
        chrf=chrf,
        bias=float(np.average(scores, weights=sizes) - np.average(expected, weights=sizes)),
        line_error=float(rest.std()),
        text_error=between + TEXT_ERROR,
        usual=float(np.average(expected, weights=sizes)),
        word_ece=0.0,
        line_ece=0.0,
    )


TEXT_ERROR = 1.0
"""Points of chrF by which texts differ that a model is equally sure of, at the least."""


def _whole(words: Regression, lines: Sequence[_Line]) -> Array:
    """Features of lines: the model's, and the mean confidence of their words."""
    return np.array([[*line.whole, float(words(line.words).mean()) if len(line.words) else 0.0] for line in lines])


def _confidence(calibration: Calibration, line: _Line) -> Confidence:
    values = calibration.words(line.words) if len(line.words) else np.zeros(0)
    spans = tuple((begin, end, float(value)) for (begin, end), value in zip(line.spans, values, strict=True))
    chrf = float(np.clip(calibration.chrf(_whole(calibration.words, [line]))[0], 0, 100))
    return Confidence(float(values.mean()) if len(values) else 0.0, spans, chrf)


def _fitted(features: Array, targets: Array, *, logistic: bool) -> Regression:
    """The regression of targets on features, with a ridge of 1 on all weights but the constant."""
    means, scales = features.mean(axis=0), features.std(axis=0)
    scales = np.where(scales > 1e-9, scales, 1.0)
    rows, goals = (torch.from_numpy(it) for it in (_with_constant((features - means) / scales), targets))
    weights = torch.zeros(rows.size(1), dtype=rows.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        predictions = rows @ weights
        misfit = F.binary_cross_entropy_with_logits if logistic else F.mse_loss
        total = misfit(predictions, goals, reduction="sum") + 0.5 * weights[1:].square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    best = weights.detach()
    bounds = np.quantile((rows @ best).numpy(), [0.01, 0.99])
    arrays = {"means": means, "scales": scales, "weights": best, "bounds": bounds}
    return Regression(**{name: array.tolist() for name, array in arrays.items()}, logistic=logistic)


def _with_constant(features: Array) -> Array:
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)
