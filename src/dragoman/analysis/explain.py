"""One sentence explained on one page: how its translation comes about token by token, other ways that it might have
gone, pieces, shapes, masks, positions, every head with the numbers behind it, every step of the search.

The page is one HTML file that needs no network. Its numbers are those of fresh forward passes of the model; arrays are
float32 as they were computed.
"""

import base64
import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import torch
from torch import nn

from dragoman.analysis import EXPLAIN_PAGE, fonts
from dragoman.analysis.masks import sentence_masks
from dragoman.analysis.trace import trace
from dragoman.analysis.ways import NUM_CHOICES, NUM_NEXT_TOKENS, array, other_ways, source_ids, way
from dragoman.decoding.base import banned_ids
from dragoman.inference.attention_maps import labels
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.watched_search import WatchedSearch, watch_search
from dragoman.models.base import Seq2SeqModel
from dragoman.models.recurrent import AttentionalDecoder, Recurrent
from dragoman.models.transformer import Transformer
from dragoman.nn.positions import LearnedPositions, SinusoidalPositions
from dragoman.nn.ssru import SSRU
from dragoman.runs import atomic_io
from dragoman.text.tokenizers.pair import TokenizerPair
from dragoman.version import __version__


def explain(
    translator: SearchTranslator, model: Seq2SeqModel, sentence: str, run: str, *, alternatives: bool = True
) -> dict[str, Any]:
    """All that the page shows, as JSON holds it. `model`: the run's, of the textbook's modules; `alternatives`: the
    ways beside the best, too, which a server computes when they are chosen.

    Raises DragomanError for a sentence that is blank or has more than MAX_TOKENS tokens.
    """
    tokenizers = translator.tokenizers
    src_ids = source_ids(translator, sentence)
    watched = watch_search(translator, sentence, top=NUM_NEXT_TOKENS)
    hypothesis, text = watched.hypotheses[0], watched.texts[0]
    best = way(translator, model, src_ids, hypothesis.ids, is_cut=hypothesis.cut)
    src = [*src_ids, 3]
    encoder = best["attention"].pop("encoder.self", None)
    half = tokenizers.tgt.decode(hypothesis.ids[: len(hypothesis.ids) // 2])
    lines = [line for line in (text, half) if line.strip() and isinstance(model, Transformer)]  # others have no masks
    pair = (translator.normalize(sentence), text)
    return {
        "run": run,
        "version": __version__,
        "family": type(model).__name__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "src": {"text": sentence, "pieces": labels(tokenizers.src, src), "ids": src},
        "encoder": {} if encoder is None else {"encoder.self": encoder},
        "layers": _layers(model),
        "ways": [best, *(other_ways(translator, model, src_ids, best) if alternatives else [])],
        "choices": NUM_CHOICES,
        "never": banned_ids(translator.decoding, translator.decoding.min_length + 1),
        "trace": [asdict(row) for row in trace(model, tokenizers, [pair])] if text.strip() else [],
        "masks": _masks(lines, tokenizers),
        "positions": _positions(model, len(src)),
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
    script, style, zh = (part.read_text(encoding="utf-8") for part in EXPLAIN_PAGE)
    page = environment.from_string(template).render(
        data=data, font=drawn, script=script, style=style, zh=json.loads(zh)
    )
    atomic_io.replace_text(path, page)


def _masks(lines: list[str], tokenizers: TokenizerPair) -> list[dict[str, Any]]:
    return [
        {"tokens": tokens, "masks": {name: mask.astype(int).tolist() for name, mask in by_name.items()}}
        for tokens, by_name in (sentence_masks(lines, tokenizers.tgt) if lines else [])
    ]


def _layers(model: Seq2SeqModel) -> list[list[str]]:
    """The parts of each layer of the decoder, in the order in which a token goes through them."""
    if isinstance(model, Transformer):
        return [
            [
                "SSRU" if isinstance(layer.self_attention, SSRU) else "masked self-attention",
                *(["attention to the source"] if layer.cross_attention is not None else []),
                "feed-forward",
            ]
            for layer in model.decoder_layers
        ]
    assert isinstance(model, Recurrent)
    cells = [type(module).__name__ for module in model.decoder.modules() if isinstance(module, nn.LSTM | nn.GRU)]
    attends = isinstance(model.decoder, AttentionalDecoder)
    return [*([["attention to the source"]] if attends else []), *([cell] for cell in cells), ["readout"]]


def _positions(model: Seq2SeqModel, length: int) -> dict[str, Any] | None:
    """The vectors that are added to the source's embeddings, and their name; None if nothing is added."""
    positions = getattr(getattr(model, "src_embedding", None), "positions", None)
    if not isinstance(positions, SinusoidalPositions | LearnedPositions):
        return None
    with torch.inference_mode():
        table = positions(0, length)
    return {"name": "sinusoidal" if isinstance(positions, SinusoidalPositions) else "learned", **array(table)}


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
        "why": watched.why,
        "steps": [asdict(step) for step in watched.steps],
        "hypotheses": [
            {"text": text, "score": one.score, "log_prob": one.log_prob}
            for text, one in zip(watched.texts, watched.hypotheses, strict=True)
        ],
    }
