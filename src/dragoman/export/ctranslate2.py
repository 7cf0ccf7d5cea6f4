"""A run in CTranslate2: the same Transformer in a C++ runtime, with the search of that runtime.

CTranslate2's beam search is not ours: it normalises probabilities after banning tokens, and ends a sentence when enough
hypotheses are finished. So a few translations differ, and an export is held to its scores and to BLEU.
"""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batch import WIDTH_MULTIPLE
from dragoman.data.eval_batches import BATCH_TOKENS, even_batches
from dragoman.decoding.base import DecodingConfig, Hypothesis
from dragoman.decoding.penalties import NoPenalty
from dragoman.decoding.search import default_max_lengths
from dragoman.errors import Error, not_installed
from dragoman.export import shortlist
from dragoman.export.origin import write_origin
from dragoman.export.parameter_names import has_wide_heads, named
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.models.blocks import PositionedEmbedding
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward, SwiGLU
from dragoman.nn.positions import AlibiPositions, LearnedPositions, RotaryPositions
from dragoman.nn.relative_positions import RelativePositions
from dragoman.nn.residual import OutputNorm, PostNorm
from dragoman.nn.ssru import SSRU
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from dragoman.text.tokenizers.pair import TokenizerPair, pieces_of

QUANTIZATIONS = ("int8", "int8_float32", "int16", "float16", "bfloat16")
"""Number formats of the weights. Without one they are the float32 numbers of the checkpoint."""

MIN_POSITIONS = 1024
"""Rows of a table that has no end with us, where the settings do not ask for more."""

BATCH_SENTENCES = {"greedy": 128, "beam": 64}
"""Sentences of a batch at most: more logits than theirs do not stay in the processor's cache
(benchmarks/log/2026-11.md, "the engine's batches")."""

FOLLOWED = (
    "beam_size", "length_penalty", "max_length_ratio", "max_length_extra", "min_length", "n_best", "ban_unk",
    "stopping",
)  # fmt: skip
"""The settings of a search that are followed; any other one must be left at its default. Its stopping rule is its own,
whatever ours is."""


# -- what can be exported ------------------------------------------------------------------------------------------


def problems(translator: SearchTranslator) -> list[str]:
    """Why CTranslate2 cannot represent this model: a line for each reason, with what to change; none: it can."""
    model = translator.model
    if not isinstance(model, Transformer):
        kind = type(model).__name__.lower()
        return [f"the model is of the type {kind}: CTranslate2 knows the Transformer alone (model.type: transformer)"]
    reasons = []
    encoder = model.encoder_layers
    if isinstance(encoder[0].self_attention_residual, OutputNorm):
        reasons.append("model.norm_placement: output has no counterpart in CTranslate2: train with pre or post")
    if isinstance(model.decoder_layers[0].self_attention, SSRU):
        reasons.append("model.decoder_autoreg: rnn is not known to CTranslate2: train with self-attention")
    if has_wide_heads(model):
        reasons.append("model.d_head: is not carried to CTranslate2: train with d_head: null")
    if isinstance(encoder[0].self_attention.positions, AlibiPositions):
        reasons.append(
            "model.position: alibi is known to CTranslate2 in decoders without an encoder only: train with "
            "sinusoidal, learned or rotary positions"
        )
    for side, tokenizer in (("source", translator.tokenizers.src), ("target", translator.tokenizers.tgt)):
        pieces = pieces_of(tokenizer)
        if len(set(pieces)) < len(pieces):
            twice = next(piece for place, piece in enumerate(pieces) if piece in pieces[:place])
            reasons.append(f"the {side} vocabulary has {twice!r} twice: CTranslate2 knows tokens by their names")
    return reasons


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """These settings with those that CTranslate2 does not follow left at their defaults."""
    default = DecodingConfig()
    names = {setting.name for setting in fields(cast(Any, decoding))} - set(FOLLOWED)
    kept = replace(decoding, n_best=1, **{name: getattr(default, name) for name in names})
    return replace(kept, n_best=min(decoding.n_best, kept.num_candidates))


def check_decoding(decoding: DecodingConfig) -> None:
    """Raises DragomanError for a setting that CTranslate2 does not follow."""
    default = DecodingConfig()
    for setting in fields(cast(Any, decoding)):
        if setting.name not in FOLLOWED and getattr(decoding, setting.name) != getattr(default, setting.name):
            raise Error.UNSUPPORTED(
                f"decoding.{setting.name}: CTranslate2 does this in another way",
                "leave it at its default, or translate without `engine` ctranslate2",
            )


# -- writing -------------------------------------------------------------------------------------------------------


def write(translator: SearchTranslator, folder: Path, quantize: str | None) -> None:
    """Write the model, its vocabularies and its configuration into an empty folder, and the tokenizers beside them.

    Raises DragomanError for a quantization that there is not, or when CTranslate2 is not installed.
    """
    write_model(translator, folder, quantize)
    write_origin(translator, folder)


def write_shortlist(prepared: Path, folder: Path, translator: SearchTranslator) -> None:
    """Write `vmap.txt` beside a model (`shortlist.py`)."""
    shortlist.write_shortlist(prepared, folder, translator.tokenizers)


def write_model(translator: SearchTranslator, folder: Path, quantize: str | None) -> None:
    """Write what CTranslate2 itself reads, as `write` does, and no more."""
    if quantize is not None and quantize not in QUANTIZATIONS:
        raise Error.UNKNOWN_NAME(f"`quantize` {quantize}: CTranslate2 has {', '.join(QUANTIZATIONS)}")
    specification = specify(translator)
    specification.validate()
    specification.optimize(quantization=quantize or "float32")
    specification.save(str(folder))


def specify(translator: SearchTranslator) -> Any:
    """The model as CTranslate2's own `TransformerSpec`, which refuses to be saved without every weight that it has."""
    specs = library().specs
    model = translator.model
    assert isinstance(model, Transformer)
    encoder, decoder = model.encoder_layers, model.decoder_layers
    attention, residual = encoder[0].self_attention, encoder[0].self_attention_residual
    feed_forward, norm = encoder[0].feed_forward, residual.norm
    rotary = attention.positions if isinstance(attention.positions, RotaryPositions) else None
    relative = isinstance(attention.positions, RelativePositions)
    shared: dict[str, Any] = {
        "num_heads": attention.query_proj.out_features // attention.d_head,
        "pre_norm": not isinstance(residual, PostNorm),
        "activation": _activation(feed_forward),
        "layernorm_embedding": not isinstance(model.src_embedding.norm, nn.Identity),
        "ffn_glu": isinstance(feed_forward, SwiGLU),
        "rms_norm": isinstance(norm, nn.RMSNorm),
        # All dimensions of a head turn (0), in neighbouring pairs.
        "rotary_dim": None if rotary is None else 0,
        "relative_position": relative,
        "rotary_interleave": True,
        "rotary_base": 10_000.0 if rotary is None else rotary.waves.base,
    }
    spec = specs.TransformerSpec(
        specs.transformer_spec.TransformerEncoderSpec(num_layers=len(encoder), **shared),
        specs.transformer_spec.TransformerDecoderSpec(num_layers=len(decoder), **shared),
    )
    rows = None if rotary or relative else _num_positions(translator)
    _set_embedding(spec.encoder, spec.encoder.embeddings[0], model.src_embedding, rows)
    _set_embedding(spec.decoder, spec.decoder.embeddings, model.tgt_embedding, rows)
    own = [layer.self_attention.positions for layer in encoder] + [layer.self_attention.positions for layer in decoder]
    for layer, positions in zip((*spec.encoder.layer, *spec.decoder.layer), own, strict=True):
        if isinstance(positions, RelativePositions):
            layer.self_attention.relative_position_keys = _array(positions.embedding.weight)
            layer.self_attention.relative_position_values = _array(torch.zeros_like(positions.embedding.weight))
    for name, entry in entries(model).items():
        _set(_at(spec, name), *entry)
    spec.decoder.projection.weight = _array(model.output.weight)
    if model.output.bias is not None:
        spec.decoder.projection.bias = _array(model.output.bias)
    spec.register_source_vocabulary(pieces_of(translator.tokenizers.src))
    spec.register_target_vocabulary(pieces_of(translator.tokenizers.tgt))
    spec.config.add_source_eos = model.src_end
    spec.config.decoder_start_token = spec.config.bos_token = SPECIALS[BOS_ID]
    spec.config.eos_token, spec.config.unk_token = SPECIALS[EOS_ID], SPECIALS[UNK_ID]
    spec.config.layer_norm_epsilon = cast(Any, norm).eps
    return spec


def _activation(feed_forward: nn.Module) -> Any:
    activations = library().specs.Activation
    if isinstance(feed_forward, SwiGLU):
        return activations.SWISH
    activation = cast(FeedForward, feed_forward).activation
    if isinstance(activation, nn.GELU):
        return activations.GELUTanh if activation.approximate == "tanh" else activations.GELU
    if isinstance(activation, nn.SiLU):
        return activations.SWISH
    assert isinstance(activation, nn.ReLU)
    return activations.RELU


def _num_positions(translator: SearchTranslator) -> int:
    """Positions that the source or a translation of it may reach."""
    model = cast(Transformer, translator.model)
    if model.max_target_length is not None:
        return model.max_target_length
    src_len = translator.max_src_tokens + 1
    longest = default_max_lengths(torch.ones(1, src_len, dtype=torch.bool), translator.decoding)
    return max(MIN_POSITIONS, src_len, int(longest))


def _set_embedding(stack: Any, embedding: Any, module: PositionedEmbedding, rows: int | None) -> None:
    """`rows` of the table of positions; None: positions are told inside attention."""
    embedding.weight = _array(module.tokens.vectors())
    stack.scale_embeddings = module.tokens.scale != 1.0
    if rows is not None:
        # A table for positions of any kind: what is not given would be sines in a layout of CTranslate2's own.
        stack.position_encodings.encodings = _array(position_table(module, rows))


def position_table(module: PositionedEmbedding, rows: int) -> Tensor:
    with torch.no_grad():
        table = module.positions(
            0, module.positions.max_len if isinstance(module.positions, LearnedPositions) else rows
        )
    return cast(Tensor, table)


class Entry(NamedTuple):
    """A norm, or the linear layers that stand there as one, and the attention that these belong to."""

    modules: list[nn.Module]
    attention: MultiHeadAttention | None


def entries(model: Transformer) -> dict[str, Entry]:
    """Every parameter but embeddings, positions and the output, by the names of CTranslate2."""
    by_name: dict[str, Entry] = {}
    for one in named(model):
        attention = one.owner if isinstance(one.owner, MultiHeadAttention) else None
        by_name.setdefault(one.ctranslate2, Entry([], attention)).modules.append(one.module)
    return by_name


def _at(spec: Any, name: str) -> Any:
    """The part of a specification that has a name once it is saved: `layer_0` may be the first of a list."""
    for segment in name.split("/"):
        if hasattr(spec, segment):
            spec = getattr(spec, segment)
        else:
            stem, _, number = segment.rpartition("_")
            spec = getattr(spec, stem)[int(number)]
    return spec


def _set(spec: Any, modules: Sequence[nn.Module], attention: MultiHeadAttention | None) -> None:
    """A norm, or a linear layer, or several that read the same input put together."""
    if not isinstance(modules[0], nn.Linear):
        spec.gamma = _array(cast(Tensor, modules[0].weight))
        if isinstance(modules[0], nn.LayerNorm):
            spec.beta = _array(modules[0].bias)
        return
    spec.weight = _array(torch.cat([for_all_heads(cast(Tensor, one.weight), attention) for one in modules]))
    if modules[0].bias is not None:
        spec.bias = _array(torch.cat([for_all_heads(cast(Tensor, one.bias), attention) for one in modules]))


def for_all_heads(values: Tensor, attention: MultiHeadAttention | None) -> Tensor:
    """A projection of keys or values with as many heads as queries have.

    CTranslate2 has no grouped queries in an attention to the encoder, so a head that serves a group stands there once
    for each of the group: the same numbers from a larger matrix.
    """
    if attention is None or (times := attention.query_proj.out_features // len(values)) == 1:
        return values
    return values.unflatten(0, (-1, attention.d_head)).repeat_interleave(times, dim=0).flatten(0, 1)


def _array(values: Tensor) -> np.ndarray:
    """A copy: CTranslate2 quantizes in place, and the model is to go on translating."""
    return np.array(values.detach().to("cpu", torch.float32).numpy())


# -- translating ---------------------------------------------------------------------------------------------------


def load(folder: Path, translator: SearchTranslator, *, threads: int | None = None) -> SearchTranslator:
    """`translator`, searched by the export with the translator's settings. Raises DragomanError for settings that the
    export cannot follow.

    `threads`: those of a CPU; None: PyTorch's.
    """
    check_decoding(translator.decoding)
    return translator.searched_by(CTranslate2Engine(folder, translator.tokenizers, translator.device, threads))


class CTranslate2Engine:
    """An `inference.translation.Searcher` that lets CTranslate2 search.

    Its search ends a sentence when `beam_size` hypotheses are finished, whatever might still overtake them, as ours
    does with `stopping` full: few translations differ (benchmarks/translation.md).
    """

    def __init__(
        self, folder: Path, tokenizers: TokenizerPair, device: torch.device, threads: int | None = None
    ) -> None:
        kind = "cuda" if device.type == "cuda" else "cpu"
        # On a CPU, workers of one thread each get more done together than one worker with all threads.
        pytorchs = torch.get_num_threads()
        workers = {"inter_threads": threads or pytorchs, "intra_threads": 1} if kind == "cpu" else {}
        try:
            self.runtime = library().Translator(str(folder), device=kind, **workers)
        except (RuntimeError, ValueError) as error:
            raise Error.CANNOT_READ(
                f"CTranslate2 cannot load it: {' '.join(str(error).split())}", file=folder
            ) from error
        finally:
            torch.set_num_threads(pytorchs)  # they share OpenMP, whose count CTranslate2 sets for itself
        self.src_pieces, self.tgt_pieces = pieces_of(tokenizers.src), pieces_of(tokenizers.tgt)
        self.tgt_ids = {piece: index for index, piece in enumerate(self.tgt_pieces)}

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """Raises DragomanError for settings that are not followed, and for terms and prefixes."""
        decoding, tags = translator.decoding, list(translator.tokenizers.tgt.before)
        check_decoding(decoding)
        if any(part.terms or list(part.prefix) != ([] if part.read else tags) for part in parts):
            raise Error.UNSUPPORTED(
                "CTranslate2 is not asked for terms or prefixes", "translate without `engine` ctranslate2"
            )
        sources = [[self.src_pieces[index] for index in part.ids] for part in parts]
        # What each translation begins with, at no cost there as here: the tag of a language, the sentences before.
        given = [[self.tgt_pieces[index] for index in part.read or tags] for part in parts]
        batches = _batches(decoding, [len(part.ids) for part in parts])
        limits = _longest(translator, [len(part.ids) + 1 for part in parts], [len(pieces) for pieces in given])
        results: list[list[Hypothesis]] = [[] for _ in parts]
        try:
            searches = [
                self._submit([(sources[row], given[row]) for row in rows], decoding, max(limits[row] for row in rows))
                for rows in batches
            ]
            chosen = [
                [_best(answer.result(), decoding, limits[row]) for row, answer in zip(rows, of_batch, strict=True)]
                for rows, of_batch in zip(batches, searches, strict=True)
            ]
            # Its search counts what it bans as impossible, so all else as more probable: what is found is scored anew.
            scorings = [
                self.runtime.score_batch(
                    [sources[row] for row, best in zip(rows, of_batch, strict=True) for _ in best],
                    [[piece for piece in pieces if piece != SPECIALS[EOS_ID]] for best in of_batch for pieces in best],
                    max_input_length=0,
                    asynchronous=True,
                )
                for rows, of_batch in zip(batches, chosen, strict=True)
            ]
            for rows, of_batch, scored in zip(batches, chosen, scorings, strict=True):
                values = iter(scored)
                for row, best in zip(rows, of_batch, strict=True):
                    scores = (next(values).result().log_probs for _ in best)
                    own = [
                        (pieces[len(given[row]) :], scored[len(given[row]) :])
                        for pieces, scored in zip(best, scores, strict=True)
                    ]
                    items = [self._hypothesis(*item, decoding, [] if parts[row].read else tags) for item in own]
                    results[row] = sorted(items, key=lambda item: -item.score)
        except (RuntimeError, ValueError) as error:
            raise Error.EXTERNAL_FAILED(f"CTranslate2: {' '.join(str(error).split())}") from error
        return results

    def _submit(self, sentences: Sequence[tuple[list[str], list[str]]], decoding: DecodingConfig, longest: int) -> Any:
        """The searches of the sentences of a batch, under way: the pieces of each, and those it begins with."""
        return self.runtime.translate_batch(
            [source for source, _ in sentences],
            target_prefix=[given for _, given in sentences] if any(given for _, given in sentences) else None,
            asynchronous=True,
            beam_size=decoding.beam_size,
            num_hypotheses=decoding.beam_size,
            length_penalty=_alpha(decoding),
            disable_unk=decoding.ban_unk,
            suppress_sequences=[[SPECIALS[PAD_ID]], [SPECIALS[BOS_ID]]],
            max_input_length=0,
            max_decoding_length=longest,
            min_decoding_length=decoding.min_length,
            use_vmap=True,  # where there is a shortlist
            return_end_token=True,
            return_scores=True,
        )

    def _hypothesis(
        self, pieces: Sequence[str], scored: Sequence[float], decoding: DecodingConfig, tags: Sequence[int]
    ) -> Hypothesis:
        """`scored`: the log probability of each piece and of the `</s>` that one that was cut does not have. `tags`
        stand before the pieces."""
        log_prob = sum(scored[: len(pieces)])
        ids = [*tags, *(self.tgt_ids[piece] for piece in pieces if piece != SPECIALS[EOS_ID])]
        return Hypothesis(ids, log_prob / decoding.length_penalty.divisor(max(1, len(tags) + len(pieces))), log_prob)


def _alpha(decoding: DecodingConfig) -> float:
    """The power of the length that CTranslate2 divides log probabilities by."""
    return 0.0 if isinstance(decoding.length_penalty, NoPenalty) else decoding.length_penalty.alpha


def _best(answer: Any, decoding: DecodingConfig, limit: int) -> list[list[str]]:
    """The pieces of the `n_best` best by our length penalty, which may be another function of the length.

    `limit`: the most pieces of one; the longest sentence of a batch may have more.
    """

    def score(item: tuple[list[str], float]) -> float:
        length = len(item[0])
        return item[1] * length ** _alpha(decoding) / decoding.length_penalty.divisor(length)

    ranked = sorted(zip(answer.hypotheses, answer.scores, strict=True), key=score, reverse=True)
    return [pieces[:limit] for pieces, _ in ranked[: decoding.n_best]]


def _longest(translator: SearchTranslator, src_lengths: Sequence[int], given: Sequence[int]) -> list[int]:
    """The number of tokens that each translation may have, `</s>` and those it begins with among them, as `search` sets
    it."""
    if not src_lengths:
        return []
    mask = torch.arange(max(src_lengths)) < torch.tensor(src_lengths)[:, None]
    limits = default_max_lengths(mask, translator.decoding) + torch.tensor(given)
    if translator.model.max_target_length is not None:
        limits = limits.clamp(max=translator.model.max_target_length)
    return [int(limit) for limit in limits]


def _batches(decoding: DecodingConfig, lengths: list[int]) -> list[list[int]]:
    """The numbers of the sentences of each batch. The sentences of a batch have the same width."""
    most = BATCH_SENTENCES["greedy" if decoding.beam_size == 1 else "beam"]
    batches = []
    for rows in even_batches(lengths, BATCH_TOKENS, WIDTH_MULTIPLE):
        parts = math.ceil(len(rows) / most)
        batches += [list(rows[part::parts]) for part in range(parts)]
    return batches


def library() -> Any:
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError as error:
        raise not_installed("CTranslate2 is not installed", "ctranslate2") from error
    return ctranslate2
