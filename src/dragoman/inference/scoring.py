"""Probabilities of given translations, the same to the last bit whatever pairs are scored beside them."""

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from dragoman.backends.cpu_search.fast_transformer import FastTransformer
from dragoman.cancellation import check
from dragoman.data.batch import WIDTH_MULTIPLE, collate, collate_src
from dragoman.data.eval_batches import BATCH_TOKENS
from dragoman.decoding.rows import FoundNothing, check_finite
from dragoman.device import side_by_side
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Ids, Scored
from dragoman.models.base import ROW_MULTIPLE
from dragoman.special_tokens import EOS_ID, PAD_ID, SPECIALS


def score(
    translator: SearchTranslator, pairs: Sequence[tuple[str, str]], first: int = 1, *, as_read: bool = False
) -> list[Scored]:
    """The probability of each translation of (source, translation) pairs, in order.

    Nothing is cut or left out. `first` is the number of the first pair. `as_read`: sources are read as in a search,
    with the terms and matches of a model that has learnt them. Raises DragomanError, naming the pair, for a blank side,
    for more tokens than are read at once (`max_src_tokens`, `max_tgt_tokens`), and for probabilities that are none.
    """
    encoded = [_encoded(translator, pair, number, as_read) for number, pair in enumerate(pairs, start=first)]
    results = []
    given = len(translator.tokenizers.tgt.before)
    try:
        log_probs = token_log_probs(translator, encoded)
    except FoundNothing as error:
        raise error.code(f"pair {first + error.sentence:,}: {error.why}") from error
    for (_, tgt), values in zip(encoded, log_probs, strict=True):
        values[:given] = [0.0] * given  # as in a search: a tag is not said
        pieces = [*translator.tokenizers.tgt.pieces(tgt), SPECIALS[EOS_ID]]
        total, decoding = sum(values), translator.decoding
        score = (total - decoding.word_penalty * len(values)) / decoding.length_penalty.divisor(len(values))
        results.append(Scored(score, total, list(zip(pieces, values, strict=True))))
    return results


def token_log_probs(translator: SearchTranslator, pairs: Sequence[Ids]) -> list[list[float]]:
    """The log probability (nats) of each target token of (source ids, target ids), `</s>` among them.

    What a pair gets does not depend on the others. Sides are no longer than `max_src_tokens` and `max_tgt_tokens`.
    Raises DragomanError where the model's logits are not numbers.
    """
    log_probs = _of_model(translator, pairs)
    for number, values in enumerate(log_probs):
        if math.isnan(sum(values)):
            check_finite(math.nan, number)
    return log_probs


def _of_model(translator: SearchTranslator, pairs: Sequence[Ids]) -> list[list[float]]:
    """`token_log_probs`, whatever they are."""
    results: list[list[float]] = [[] for _ in pairs]
    model = translator.model.eval()
    with_ends = [([*src, EOS_ID], [*tgt, EOS_ID]) for src, tgt in pairs]
    if isinstance(model, FastTransformer) and model.can_force(with_ends):
        return _forced(model, with_ends)
    # Of the same size in every batch, as in a search: pads go up to the next multiple of 8 on both sides, and rows
    # repeat the last one. A pair so long that a batch has no room for ROW_MULTIPLE rows is alone in it, in one row.
    widths = [tuple(-(-(1 + len(ids)) // WIDTH_MULTIPLE) for ids in pair) for pair in pairs]
    batches = []
    for width in sorted(set(widths), reverse=True):
        rows_of_width = [row for row in range(len(pairs)) if widths[row] == width]
        size, filled = BATCH_TOKENS // (WIDTH_MULTIPLE * max(width)), ROW_MULTIPLE
        if size < ROW_MULTIPLE:
            size = filled = 1
        batches += [(rows_of_width[start : start + size], filled) for start in range(0, len(rows_of_width), size)]

    def of_batch(batch: tuple[Sequence[int], int]) -> list[list[float]]:
        check()
        return _log_probs(translator, [pairs[row] for row in batch[0]], batch[1])

    computed = side_by_side(of_batch, batches, translator.device)
    for (rows, _), log_probs in zip(batches, computed, strict=True):
        for row, values in zip(rows, log_probs, strict=True):
            results[row] = values[: 1 + len(pairs[row][1])]  # what comes after </s> is padding
    return results


def _forced(model: FastTransformer, pairs: Sequence[Ids]) -> list[list[float]]:
    """`token_log_probs` of ids with `</s>` by the search in C, without padding."""
    batches, tokens = list[list[Ids]](), 0
    for src, tgt in pairs:
        tokens += len(src) + len(tgt)
        if not batches or tokens > model.forced_tokens:
            tokens = len(src) + len(tgt)
            batches.append([])
        batches[-1].append((src, tgt))

    def of_batch(batch: list[Ids]) -> list[list[float]]:
        check()
        return model.forced_log_probs(batch)

    computed = side_by_side(of_batch, batches, torch.device("cpu"))
    return [values for of_pairs in computed for values in of_pairs]


def _encoded(translator: SearchTranslator, pair: tuple[str, str], number: int, as_read: bool) -> Ids:
    src, tgt = map(translator.normalize, pair)
    encode = translator.source_ids if as_read else translator.tokenizers.src.encode
    ids = encode(src), translator.tokenizers.tgt.encode(tgt)
    for side, tokens in zip(("source", "translation"), ids, strict=True):
        if not tokens:
            raise Error.BLANK(f"pair {number:,}: the {side} is blank: it has no probability")
    if len(ids[0]) > translator.max_src_tokens:
        raise Error.TOO_LONG(
            f"pair {number:,}: the source has {len(ids[0])} tokens; a translator reads up to "
            f"{translator.max_src_tokens} at once",
            "cut it",
        )
    if len(ids[1]) > translator.max_tgt_tokens:
        raise Error.TOO_LONG(
            f"pair {number:,}: the translation has {len(ids[1])} tokens; up to {translator.max_tgt_tokens} are read at "
            "once",
            "cut it",
        )
    return ids


@torch.inference_mode()
def _log_probs(translator: SearchTranslator, pairs: Sequence[Ids], filled: int) -> list[list[float]]:
    """For each token of translations of one padded width, including `</s>` and pads. Rows are padded to a multiple of
    `filled`."""
    model, device = translator.model, translator.device
    rows = [*pairs, *[pairs[-1]] * (-len(pairs) % filled)]
    batch = collate(rows).to(device)
    src, src_mask = collate_src([src for src, _ in rows], WIDTH_MULTIPLE, translator.max_src_tokens)
    extra = -batch.tgt_in.size(1) % WIDTH_MULTIPLE
    if (limit := model.max_target_length) is not None:
        extra = max(0, min(extra, limit - batch.tgt_in.size(1)))
    tgt_in, tgt_out = (functional.pad(ids, (0, extra), value=PAD_ID) for ids in (batch.tgt_in, batch.tgt_out))
    logits = model(src.to(device), src_mask.to(device), tgt_in)
    # Row by row: the log probabilities of all would take as much memory again as the logits.
    return [
        of_row.log_softmax(dim=-1, dtype=torch.float32).gather(1, out[:, None])[:, 0].tolist()
        for of_row, out in zip(logits[: len(pairs)], tgt_out, strict=False)
    ]
