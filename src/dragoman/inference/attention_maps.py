"""Attention maps of one sentence pair, of every model family: `Seq2SeqModel.attention_maps` by kind and layer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batch import collate
from dragoman.decoding.search import search
from dragoman.errors import Error
from dragoman.inference.search_translator import SearchTranslator
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.words import JOINER, SPACE


@dataclass(frozen=True, eq=False)
class AttentionKind:
    """All maps of one kind, a key of `LABELS`; `layers[i]` is (num_heads, query_len, key_len)."""

    name: str
    queries: list[str]
    keys: list[str]
    layers: list[np.ndarray]


def attention_of(translator: SearchTranslator, sentence: str, target: str | None = None) -> dict[str, AttentionKind]:
    """The attention maps of a run for `sentence` with `target` (None: its own translation), by kind.

    Raises DragomanError for a blank sentence and for a model that has no attention.
    """
    tokenizers = translator.tokenizers
    src_ids = tokenizers.src.encode(translator.normalize(sentence))
    if not src_ids:
        raise Error.BLANK("there is no attention to show: the sentence is blank")
    if target is None:
        tgt_ids = _translate(translator, src_ids)
        # A translation that was cut off at this length has no position left at which its last token could be read.
        length = translator.model.max_target_length
    else:
        tgt_ids, length = tokenizers.tgt.encode(translator.normalize(target)), None
    batch = collate([(src_ids, tgt_ids)]).to(translator.device)
    tgt_in, tgt_out = batch.tgt_in[:, :length], batch.tgt_out[:, :length]
    with torch.inference_mode():
        maps = translator.model.attention_maps(batch.src, batch.src_mask, tgt_in)
    if not maps:
        raise Error.UNSUPPORTED(
            f"{type(translator.model).__name__}: this model attends to nothing, so there are no maps"
        )
    src = labels(tokenizers.src, batch.src[0].tolist())
    return attention_kinds(maps, src, *(labels(tokenizers.tgt, ids[0].tolist()) for ids in (tgt_in, tgt_out)))


def _translate(translator: SearchTranslator, src_ids: list[int]) -> list[int]:
    """The ids of the best translation: its text encoded again could be other pieces."""
    batch = collate([(src_ids, [])]).to(translator.device)
    decoding = replace(translator.decoding, n_best=translator.decoding.num_candidates)
    [hypotheses] = search(translator.model, batch.src, batch.src_mask, decoding)
    best = translator.ranked(hypotheses)[0].text
    candidates = [hypothesis for hypothesis in hypotheses if translator.tokenizers.tgt.decode(hypothesis.ids) == best]
    return max(candidates, key=lambda hypothesis: hypothesis.score).ids


def attention_kinds(
    maps: Mapping[str, Tensor], src: list[str], tgt_in: list[str], tgt_out: list[str]
) -> dict[str, AttentionKind]:
    """The maps of a batch of one, sorted by kind and layer, with the tokens of their sides."""
    tokens = {"encoder.self": (src, src), "decoder.self": (tgt_in, tgt_in), "decoder.cross": (tgt_out, src)}
    kinds: dict[str, AttentionKind] = {}
    for name, weights in maps.items():
        side, *_, relation = name.split(".")
        kind = f"{side}.{relation}"
        kinds.setdefault(kind, AttentionKind(kind, *tokens[kind], [])).layers.append(weights[0].float().cpu().numpy())
    return kinds


def check_choice(kinds: Mapping[str, AttentionKind], layer: int | None, head: int | None) -> None:
    """Raise DragomanError for a layer or head, counted from 0, that no kind of attention has."""
    layers = max(len(kind.layers) for kind in kinds.values())
    heads = max(len(weights) for kind in kinds.values() for weights in kind.layers)
    for name, chosen, count in (("layer", layer, layers), ("head", head, heads)):
        if chosen is not None and not 0 <= chosen < count:
            raise Error.OUT_OF_RANGE(f"there is no {name} {chosen}: {name}s are 0 to {count - 1}")


def attention_arrays(
    kinds: Mapping[str, AttentionKind], layer: int | None = None, head: int | None = None
) -> dict[str, np.ndarray]:
    """Maps as arrays of (num_heads, query_len, key_len), named `decoder.0.cross`, and the tokens of their sides.

    `layer` and `head` choose one of them; a chosen head keeps its axis, of size 1.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, kind in kinds.items():
        side, relation = name.split(".")
        for number, weights in enumerate(kind.layers):
            if layer in (None, number):
                arrays[f"{side}.{number}.{relation}"] = weights if head is None else weights[head : head + 1]
        arrays |= {f"{name}.queries": np.array(kind.queries), f"{name}.keys": np.array(kind.keys)}
    return arrays


_SHOWN = str.maketrans({" ": "␣", "\t": "⇥", "\n": "⏎", SPACE: "␣", JOINER: ""})


def label(piece: str) -> str:
    """A piece as it can be read on an axis: blanks are visible, the joiner of the words tokenizer is left out.

    >>> label(" "), label("▁Haus"), label("</s>")
    ('␣', '▁Haus', '</s>')
    """
    return piece.translate(_SHOWN) or piece


def labels(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """The label of each id."""
    return [label(piece) for piece in tokenizer.pieces(ids)]
