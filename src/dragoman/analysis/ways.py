"""Ways of a translation: a given target, token by token, with its probabilities, its attention, and the numbers behind
each attention weight."""

import base64
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batch import collate
from dragoman.decoding.base import Hypothesis, banned_ids
from dragoman.errors import Error
from dragoman.inference.attention_maps import attention_kinds, labels
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.models.base import Seq2SeqModel
from dragoman.nn.attention import KVCache, MultiHeadAttention, repeat_kv
from dragoman.nn.recurrent_attention import AdditiveAttention, DotAttention, RecurrentAttention
from dragoman.special_tokens import EOS_ID

MAX_TOKENS = 80
"""Of a sentence that is explained: with more the maps are too small to be read."""
NUM_NEXT_TOKENS = 10
"""Next tokens shown at each step."""
NUM_CHOICES = 3
"""So many of them may be chosen on a page without a server."""
MAX_WAYS = 60
"""Ways beside the best on a page without a server; of more those that begin most probably."""
MAX_MAP_CHARACTERS = 4_000_000
"""Characters of their attention in the page; the ways behind these have none."""
SHOWN_DIMENSIONS = 16
"""Numbers shown of each query and key."""


def array(values: np.ndarray | Tensor) -> dict[str, Any]:
    """An array as the page reads it: its shape, and its float32 numbers in base64."""
    numbers = np.ascontiguousarray(values.detach().cpu().numpy() if isinstance(values, Tensor) else values, dtype="<f4")
    return {"shape": list(numbers.shape), "data": base64.b64encode(numbers.tobytes()).decode("ascii")}


def source_ids(translator: SearchTranslator, sentence: str) -> list[int]:
    """Its tokens. Raises DragomanError for more than MAX_TOKENS."""
    ids = translator.tokenizers.src.encode(translator.normalize(sentence))
    if len(ids) > MAX_TOKENS:
        raise Error.TOO_LONG(f"{len(ids)} tokens: a page has room for {MAX_TOKENS}", "give a shorter sentence")
    return ids


@torch.inference_mode()
def way(
    translator: SearchTranslator, model: Seq2SeqModel, src_ids: list[int], ids: list[int], *, is_cut: bool
) -> dict[str, Any]:
    """All that the page shows of one target; `is_cut`: it has no `</s>`. Log probabilities are those of one pass with
    teacher forcing, as `inference.scoring.score` has them."""
    tokenizers, tgt = translator.tokenizers, translator.tokenizers.tgt
    batch, written, given = collate([(src_ids, ids)]), len(ids) + (not is_cut), len(tgt.before)
    tgt_in, tgt_out = batch.tgt_in[:, :written], batch.tgt_out[:, :written]
    log_probs = model.eval()(batch.src, batch.src_mask, tgt_in)[0].log_softmax(dim=-1, dtype=torch.float32)
    best = log_probs.topk(min(NUM_NEXT_TOKENS, log_probs.size(1)), dim=-1)
    written_log_probs = log_probs.gather(1, tgt_out[0, :, None])[:, 0].tolist()
    with _recorded(model) as calls:
        maps = model.attention_maps(batch.src, batch.src_mask, tgt_in)
    src = labels(tokenizers.src, batch.src[0].tolist())
    inputs, pieces = (labels(tgt, row[0].tolist()) for row in (tgt_in, tgt_out))
    kinds = attention_kinds(maps, src, inputs, pieces)
    layers = {name: [call for call in calls if call.kind == name] for name in kinds}
    return {
        "ids": tgt_out[0].tolist(),
        "inputs": inputs,
        "pieces": pieces,
        "text": tgt.decode(ids),
        # A character may be several pieces: before its last one there is none.
        "so_far": [tgt.decode(ids[:length]).rstrip("\ufffd") for length in range(1, written + 1)],
        "log_probs": [0.0] * given + written_log_probs[given:],  # as in a search: a tag is not said
        "next": [
            [[id, piece, math.exp(value)] for id, piece, value in zip(row, labels(tgt, row), values, strict=True)]
            for row, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ],
        "attention": {
            name: {"queries": kind.queries, "keys": kind.keys, **_numbers(layers[name], len(kind.layers))}
            for name, kind in kinds.items()
        },
    }


def other_ways(
    translator: SearchTranslator, model: Seq2SeqModel, src_ids: list[int], best: dict[str, Any]
) -> list[dict[str, Any]]:
    """Ways that leave the best one at one token for another of the NUM_CHOICES most probable, the most probable first,
    each continued greedily."""
    begins = []
    for place in range(len(translator.tokenizers.tgt.before), len(best["ids"])):
        written, banned = best["ids"][: place + 1], banned_ids(translator.decoding, place + 1)
        for id, _, prob in best["next"][place][:NUM_CHOICES]:
            if id != written[-1] and id not in banned:
                begins.append((prob, [*written[:-1], id]))
    chosen = [begin for _, begin in sorted(begins, key=lambda one: -one[0])[:MAX_WAYS]]
    left, ways = MAX_MAP_CHARACTERS, []
    for ids, is_cut in continued(translator, src_ids, chosen):
        one = way(translator, model, src_ids, ids, is_cut=is_cut)
        one["attention"].pop("encoder.self", None)
        left -= len(json.dumps(one["attention"]))
        ways.append(one if left > 0 else {**one, "attention": {}})
    return ways


def continued(
    translator: SearchTranslator, src_ids: list[int], begins: Sequence[list[int]]
) -> list[tuple[list[int], bool]]:
    """Beginnings of a translation, each with the most probable next tokens up to its end: (ids without `</s>`, True if
    the longest length cut it). A beginning that ends with `</s>` is whole."""
    greedy = translator.searched_by(None).with_decoding(beam_size=1, n_best=1, diversity=0.0, coverage_penalty=0.0)
    segments = [Segment(src_ids, begin) for begin in begins if begin[-1] != EOS_ID]
    results = iter([best for [best, *_] in greedy.hypotheses(segments)] if segments else [])
    whole = [Hypothesis(begin[:-1], 0.0, 0.0) if begin[-1] == EOS_ID else next(results) for begin in begins]
    return [(one.ids, one.cut) for one in whole]


@dataclass(frozen=True)
class _Call:
    """The attention of a layer: queries and keys by head, and the scores before the mask."""

    kind: str
    query: Tensor
    key: Tensor
    scores: Tensor
    mask: Tensor | None
    bias: Tensor | None
    formula: dict[str, Any]


@contextmanager
def _recorded(model: Seq2SeqModel) -> Iterator[list[_Call]]:
    """Record the attention of a model of the textbook's modules. Not for a model that other threads use."""
    calls: list[_Call] = []
    changed = []

    def replaced(module: Any, name: str, method: Any) -> None:
        module.__dict__[name] = method
        changed.append((module, name))

    def multi_head(module: MultiHeadAttention, kind: str) -> None:
        plain = module.attend_heads

        def attend_heads(query: Tensor, memory: KVCache, mask: Any, bias: Any, maps: Any) -> Tensor:
            scale = 1 / math.sqrt(query.size(-1))
            scores = query @ repeat_kv(query, memory.key).transpose(-2, -1) * scale
            scores = scores if bias is None else scores + bias
            formula = {"formula": "dot", "scale": scale}
            calls.append(_Call(kind, query[0], memory.key[0], scores[0], mask, bias, formula))
            return plain(query, memory, mask, bias, maps)

        replaced(module, "attend_heads", attend_heads)

    def recurrent(module: RecurrentAttention) -> None:
        plain = module.scores

        def scores(query: Tensor, keys: Tensor) -> Tensor:
            values: Tensor = plain(query, keys)
            formula: dict[str, Any] = {"formula": "other"}
            if isinstance(module, DotAttention):
                formula = {"formula": "dot", "scale": module.scale}
            elif isinstance(module, AdditiveAttention):
                shown = module.score_proj.weight[0, :SHOWN_DIMENSIONS].tolist()
                query, formula = module.query_proj(query), {"formula": "additive", "v": shown}
            calls.append(_Call("decoder.cross", query, keys, values, None, None, formula))
            return values

        replaced(module, "scores", scores)

    try:
        for path, module in model.named_modules():
            if isinstance(module, MultiHeadAttention):
                side = "encoder" if path.startswith("encoder") else "decoder"
                multi_head(module, f"{side}.{'cross' if path.endswith('cross_attention') else 'self'}")
            elif isinstance(module, RecurrentAttention):
                recurrent(module)
        yield calls
    finally:
        for module, name in changed:
            del module.__dict__[name]


def _numbers(calls: Sequence[_Call], num_layers: int) -> dict[str, Any]:
    """The numbers of a kind of attention: (layers, heads, queries, keys) of scores, (layers, heads, length, dimensions)
    of queries and keys, the first SHOWN_DIMENSIONS of each."""
    per_layer = len(calls) // num_layers  # a recurrent decoder attends once for each token
    layers = [calls[start : start + per_layer] for start in range(0, len(calls), per_layer)]
    first = calls[0]

    def stacked(name: str, *, joined: bool = True) -> Tensor:
        rows = [torch.cat([getattr(call, name) for call in of[: None if joined else 1]], dim=-2) for of in layers]
        return torch.stack(rows).float()

    scores = stacked("scores")
    shown = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if first.mask is not None:
        shown = first.mask[0, 0].expand_as(shown)
    numbers = {
        **first.formula,
        "width": first.query.size(-1),
        "mask": ["".join("1" if one else "0" for one in row) for row in shown.tolist()],
        "scores": array(scores),
        "query": array(stacked("query")[..., :SHOWN_DIMENSIONS]),
        "key": array(stacked("key", joined=False)[..., :SHOWN_DIMENSIONS]),
    }
    if first.bias is not None:
        biases = [of[0].bias[0].expand_as(of[0].scores) for of in layers if of[0].bias is not None]
        numbers["bias"] = array(torch.stack(biases))
    return numbers
