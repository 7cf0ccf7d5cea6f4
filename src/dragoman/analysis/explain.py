"""One sentence explained on one page: pieces, shapes, masks, positions, every head, every step of the search.

The page is one HTML file that needs no network. Its numbers are those of fresh forward passes of the model; arrays are
float32 as they were computed.
"""

import base64
import functools
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from torch import Tensor

from dragoman.analysis import fonts
from dragoman.analysis.masks import sentence_masks
from dragoman.analysis.trace import trace
from dragoman.data.batch import collate
from dragoman.errors import Error
from dragoman.inference.attention_maps import attention_kinds, labels
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.watched_search import WatchedSearch, watch_search
from dragoman.models.base import Seq2SeqModel
from dragoman.models.recurrent import Recurrent
from dragoman.models.transformer import Transformer
from dragoman.nn.positions import LearnedPositions, SinusoidalPositions
from dragoman.nn.ssru import SSRU
from dragoman.runs import atomic_io
from dragoman.version import __version__

NUM_NEXT_TOKENS = 10
"""Next tokens shown at each step."""

MAX_TOKENS = 80
"""Of a sentence that is explained: with more the maps are too small to be read."""


def explain(translator: SearchTranslator, model: Seq2SeqModel, sentence: str, run: str) -> dict[str, Any]:
    """All that the page shows, as JSON holds it. `model`: the run's, of the textbook's modules.

    Raises DragomanError for a sentence that is blank or has more than MAX_TOKENS tokens.
    """
    tokenizers = translator.tokenizers
    src_ids = tokenizers.src.encode(translator.normalize(sentence))
    if len(src_ids) > MAX_TOKENS:
        raise Error.TOO_LONG(f"{len(src_ids)} tokens: a page has room for {MAX_TOKENS}", "give a shorter sentence")
    watched = watch_search(translator, sentence, top=NUM_NEXT_TOKENS)
    tgt_ids, text = watched.hypotheses[0].ids, watched.texts[0]
    batch = collate([(src_ids, tgt_ids)])
    written = len(tgt_ids) + (not watched.hypotheses[0].cut)  # one that was cut off has no </s>
    tgt_in, tgt_out = batch.tgt_in[:, :written], batch.tgt_out[:, :written]
    with torch.inference_mode():
        logits = model.eval()(batch.src, batch.src_mask, tgt_in)[0]
        maps = model.attention_maps(batch.src, batch.src_mask, tgt_in)
    sides = [
        labels(tokenizers.src, batch.src[0].tolist()),
        *(labels(tokenizers.tgt, ids[0].tolist()) for ids in (tgt_in, tgt_out)),
    ]
    half = tokenizers.tgt.decode(tgt_ids[: len(tgt_ids) // 2])
    lines = [line for line in (text, half) if line.strip() and isinstance(model, Transformer)]  # others have no masks
    pair = (translator.normalize(sentence), text)
    return {
        "run": run,
        "version": __version__,
        "family": type(model).__name__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "src": {"text": sentence, "pieces": sides[0], "ids": batch.src[0].tolist()},
        "tgt": {"text": text, "pieces": sides[2], "ids": tgt_out[0].tolist()},
        "trace": [asdict(row) for row in trace(model, tokenizers, [pair])] if text.strip() else [],
        "masks": [
            {"tokens": tokens, "masks": {name: mask.astype(int).tolist() for name, mask in by_name.items()}}
            for tokens, by_name in (sentence_masks(lines, tokenizers.tgt) if lines else [])
        ],
        "positions": _positions(model, len(sides[0])),
        "attention": {
            kind.name: {"queries": kind.queries, "keys": kind.keys, **array(np.stack(kind.layers))}
            for kind in attention_kinds(maps, *sides).values()
        },
        "generation": _generation(translator, logits, tgt_out[0], sides[1], sides[2]),
        "cache": _cache(model),
        "beam": _beam(watched),
    }


def write_page(data: dict[str, Any], path: Path) -> None:
    """Write the page, atomically. Characters that not every machine can draw come with it, if this one can."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False}
    template = files("dragoman.analysis").joinpath("explain.html.j2").read_text(encoding="utf-8")
    font = fonts.embedded(json.dumps(data, ensure_ascii=False))
    drawn = base64.b64encode(font).decode("ascii") if font else ""
    atomic_io.replace_text(path, environment.from_string(template).render(data=data, font=drawn))


def array(values: np.ndarray | Tensor) -> dict[str, Any]:
    """An array as the page reads it: its shape, and its float32 numbers in base64."""
    numbers = np.ascontiguousarray(values.detach().cpu().numpy() if isinstance(values, Tensor) else values, dtype="<f4")
    return {"shape": list(numbers.shape), "data": base64.b64encode(numbers.tobytes()).decode("ascii")}


def _positions(model: Seq2SeqModel, length: int) -> dict[str, Any] | None:
    """The vectors that are added to the source's embeddings, and their name; None if nothing is added."""
    positions = getattr(getattr(model, "src_embedding", None), "positions", None)
    if not isinstance(positions, SinusoidalPositions | LearnedPositions):
        return None
    with torch.inference_mode():
        table = positions(0, length)
    return {"name": "sinusoidal" if isinstance(positions, SinusoidalPositions) else "learned", **array(table)}


def _generation(
    translator: SearchTranslator, logits: Tensor, tgt_out: Tensor, tgt_in: Sequence[str], pieces: Sequence[str]
) -> list[dict[str, Any]]:
    """For each token of the translation: what stands before it, how probable it was, and the most probable others."""
    probs = logits.float().softmax(dim=-1)
    names = functools.partial(labels, translator.tokenizers.tgt)
    best = probs.topk(min(NUM_NEXT_TOKENS, probs.size(1)), dim=-1)
    return [
        {
            "prefix": list(tgt_in[: place + 1]),
            "piece": piece,
            "prob": float(probs[place, tgt_out[place]]),
            "next": [[name, prob] for name, prob in zip(names(ids.tolist()), others.tolist(), strict=True)],
        }
        for place, (piece, ids, others) in enumerate(zip(pieces, best.indices, best.values, strict=True))
    ]


def _cache(model: Seq2SeqModel) -> dict[str, Any]:
    """Numbers that the decoder remembers: for each token, or in all."""
    if isinstance(model, Transformer):
        attention = model.decoder_layers[0].self_attention
        if isinstance(attention, SSRU):
            return {"kind": "state", "numbers": len(model.decoder_layers) * attention.input_proj.out_features}
        heads, width = attention.key_proj.out_features // attention.d_head, attention.d_head
        return {"kind": "keys and values", "layers": len(model.decoder_layers), "heads": heads, "width": width}
    assert isinstance(model, Recurrent)
    state = model.start(model.encode(torch.tensor([[3]]), torch.tensor([[True]])))
    return {"kind": "state", "numbers": sum(part.numel() for layer in state.layers for part in layer)}


def _beam(watched: WatchedSearch) -> dict[str, Any]:
    return {
        "size": watched.beam_size,
        "longest": watched.longest,
        "stopped": watched.stopped,
        "steps": [asdict(step) for step in watched.steps],
        "found": [
            {"text": text, "score": one.score, "log_prob": one.log_prob}
            for text, one in zip(watched.texts, watched.hypotheses, strict=True)
        ],
    }
