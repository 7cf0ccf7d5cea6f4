"""A run in CTranslate2: the same Transformer in a C++ runtime, and the same search out of it.

CTranslate2's beam search is not ours: it normalises probabilities after banning tokens, ends a sentence when enough
hypotheses are finished, and counts lengths without `</s>`. `settled` says how ours is read off it all the same.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batch import WIDTH_MULTIPLE
from dragoman.data.eval_batches import even_batches
from dragoman.decoding.base import DecodingConfig, Hypothesis
from dragoman.decoding.penalties import AveragePenalty
from dragoman.decoding.search import default_max_lengths
from dragoman.errors import DragomanError
from dragoman.export import shortlist
from dragoman.export.origin import write_origin
from dragoman.inference.search_translator import BATCH_TOKENS, SearchTranslator
from dragoman.inference.translation import Part
from dragoman.models.blocks import DecoderLayer, EncoderLayer, PositionedEmbedding
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.feedforward import FeedForward, SwiGLU
from dragoman.nn.positions import AlibiPositions, LearnedPositions, RotaryPositions
from dragoman.nn.residual import OutputNorm, PostNorm, ResidualConnection
from dragoman.text.tokenizers.base import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Tokenizer
from dragoman.text.tokenizers.pair import TokenizerPair

QUANTIZATIONS = ("int8", "int8_float32", "int16", "float16", "bfloat16")
"""Number formats of the weights. Without one they are the float32 numbers of the checkpoint."""

MIN_POSITIONS = 1024
"""Rows of a table that has no end with us, where the settings do not ask for more."""

BATCH_SENTENCES = {"greedy": 128, "beam": 64}
"""Sentences of a batch at most: more logits than theirs do not stay in the processor's cache (docs/log.md)."""

RAW_SCORES = 1e-30
"""A length penalty by which a score is the bare log probability (a length to this power is 1 in float32). With 0 itself
CTranslate2 would stop at the first finished hypothesis."""

FIRST_TRY = 0.5
"""The part of the lengths allowed after which a beam is looked at first, to see whether anything can still change."""

NEXT_TRY = 1.4
"""The length of the next look, as a multiple of the last one; it begins anew."""

FOLLOWED = ("beam_size", "length_penalty", "max_length_ratio", "max_length_extra", "min_length", "n_best", "ban_unk")
"""The settings of a search that are followed exactly; any other one must be left at its default."""


# -- what can be exported ------------------------------------------------------------------------------------------


def problems(translator: SearchTranslator) -> list[str]:
    """Why CTranslate2 cannot represent this model: a line for each reason, with what to change; none: it can."""
    model = translator.model
    if not isinstance(model, Transformer):
        kind = type(model).__name__.lower()
        return [f"the model is of the type {kind}: CTranslate2 knows the Transformer alone (model.type: transformer)"]
    found = []
    encoder, _ = _layers(model)
    if isinstance(encoder[0].self_attention_residual, OutputNorm):
        found.append("model.norm_placement: output has no counterpart in CTranslate2: train with pre or post")
    if isinstance(encoder[0].self_attention.positions, AlibiPositions):
        found.append(
            "model.position: alibi is known to CTranslate2 in decoders without an encoder only: train with "
            "sinusoidal, learned or rotary positions"
        )
    for side, tokenizer in (("source", translator.tokenizers.src), ("target", translator.tokenizers.tgt)):
        pieces = _pieces(tokenizer)
        if len(set(pieces)) < len(pieces):
            twice = next(piece for place, piece in enumerate(pieces) if piece in pieces[:place])
            found.append(f"the {side} vocabulary has {twice!r} twice: CTranslate2 knows tokens by their names")
    return found


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """These settings with those that CTranslate2 would not follow exactly left at their defaults."""
    default = DecodingConfig()
    names = {setting.name for setting in fields(cast(Any, decoding))} - set(FOLLOWED)
    kept = replace(decoding, n_best=1, **{name: getattr(default, name) for name in names})
    return replace(kept, n_best=min(decoding.n_best, kept.num_candidates))


def check_decoding(decoding: DecodingConfig) -> None:
    """Raises DragomanError for a setting that CTranslate2 would not follow exactly."""
    default = DecodingConfig()
    for setting in fields(cast(Any, decoding)):
        if setting.name not in FOLLOWED and getattr(decoding, setting.name) != getattr(default, setting.name):
            raise DragomanError(
                f"decoding.{setting.name}: CTranslate2 does this in another way, and translations would differ: leave "
                "it at its default, or translate without --engine ctranslate2"
            )


# -- writing -------------------------------------------------------------------------------------------------------


def write(translator: SearchTranslator, folder: Path, quantize: str | None) -> None:
    """Write the model, its vocabularies and its configuration into an empty folder, and the tokenizers beside them.

    Raises DragomanError for a quantization that there is not, or when CTranslate2 is not installed.
    """
    write_model(translator, folder, quantize)
    write_origin(translator, folder)


def write_model(translator: SearchTranslator, folder: Path, quantize: str | None) -> None:
    """Write what CTranslate2 itself reads, as `write` does, and no more."""
    if quantize is not None and quantize not in QUANTIZATIONS:
        raise DragomanError(f"--quantize {quantize}: CTranslate2 has {', '.join(QUANTIZATIONS)}")
    specification = specify(translator)
    specification.validate()
    specification.optimize(quantization=quantize or "float32")
    specification.save(str(folder))


def specify(translator: SearchTranslator) -> Any:
    """The model as CTranslate2's own `TransformerSpec`, which refuses to be saved without every weight that it has."""
    specs = library().specs
    model = translator.model
    assert isinstance(model, Transformer)
    encoder, decoder = _layers(model)
    attention, residual = encoder[0].self_attention, encoder[0].self_attention_residual
    feed_forward, norm = encoder[0].feed_forward, cast(ResidualConnection, residual).norm
    rotary = attention.positions if isinstance(attention.positions, RotaryPositions) else None
    shared: dict[str, Any] = {
        "num_heads": attention.query_proj.out_features // attention.d_head,
        "pre_norm": not isinstance(residual, PostNorm),
        "activation": _activation(feed_forward),
        "layernorm_embedding": not isinstance(model.src_embedding.norm, nn.Identity),
        "ffn_glu": isinstance(feed_forward, SwiGLU),
        "rms_norm": isinstance(norm, nn.RMSNorm),
        # All dimensions of a head turn (0), in neighbouring pairs.
        "rotary_dim": None if rotary is None else 0,
        "rotary_interleave": True,
        "rotary_base": 10_000.0 if rotary is None else rotary.waves.base,
    }
    spec = specs.TransformerSpec(
        specs.transformer_spec.TransformerEncoderSpec(num_layers=len(encoder), **shared),
        specs.transformer_spec.TransformerDecoderSpec(num_layers=len(decoder), **shared),
    )
    rows = _num_positions(translator)
    _set_embedding(spec.encoder, spec.encoder.embeddings[0], model.src_embedding, None if rotary else rows)
    _set_embedding(spec.decoder, spec.decoder.embeddings, model.tgt_embedding, None if rotary else rows)
    for one, layer in zip(spec.encoder.layer, encoder, strict=True):
        _set_self_attention(one.self_attention, layer.self_attention, layer.self_attention_residual)
        _set_feed_forward(one.ffn, layer.feed_forward, layer.feed_forward_residual)
    for one, last in zip(spec.decoder.layer, decoder, strict=True):
        _set_self_attention(one.self_attention, last.self_attention, last.self_attention_residual)
        _set_cross_attention(
            one.attention, cast(MultiHeadAttention, last.cross_attention), last.cross_attention_residual
        )
        _set_feed_forward(one.ffn, last.feed_forward, last.feed_forward_residual)
    if shared["pre_norm"]:
        _set_norm(spec.encoder.layer_norm, model.encoder_norm)
        _set_norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.decoder.projection.weight = _array(model.output.weight)
    if model.output.bias is not None:
        spec.decoder.projection.bias = _array(model.output.bias)
    spec.register_source_vocabulary(_pieces(translator.tokenizers.src))
    spec.register_target_vocabulary(_pieces(translator.tokenizers.tgt))
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
    embedding.weight = _array(module.tokens.embedding.weight)
    stack.scale_embeddings = module.tokens.scale != 1.0
    if rows is not None:
        # A table for positions of any kind: what is not given would be sines in a layout of CTranslate2's own.
        stack.position_encodings.encodings = _array(_table(module, rows))
    if not isinstance(module.norm, nn.Identity):
        _set_norm(stack.layernorm_embedding, module.norm)


def _table(module: PositionedEmbedding, rows: int) -> Tensor:
    with torch.no_grad():
        table = module.positions(
            0, module.positions.max_len if isinstance(module.positions, LearnedPositions) else rows
        )
    return cast(Tensor, table)


def _set_self_attention(spec: Any, module: MultiHeadAttention, residual: nn.Module) -> None:
    _set_norm(spec.layer_norm, cast(ResidualConnection, residual).norm)
    _set_linear(spec.linear[0], module.query_proj, *_keys_values(module))
    _set_linear(spec.linear[1], module.output_proj)


def _set_cross_attention(spec: Any, module: MultiHeadAttention, residual: nn.Module) -> None:
    _set_norm(spec.layer_norm, cast(ResidualConnection, residual).norm)
    _set_linear(spec.linear[0], module.query_proj)
    _set_linear(spec.linear[1], *_keys_values(module))
    _set_linear(spec.linear[2], module.output_proj)


class Projection(NamedTuple):
    """Weight and bias of a linear layer."""

    weight: Tensor
    bias: Tensor


def _keys_values(module: MultiHeadAttention) -> list[Projection]:
    """The projections of keys and values with as many heads as queries have.

    CTranslate2 has no grouped queries in an attention to the encoder, so a head that serves a group stands there once
    for each of the group: the same numbers from a larger matrix.
    """
    times = module.query_proj.out_features // module.key_proj.out_features

    def repeated(values: Tensor) -> Tensor:
        return values.unflatten(0, (-1, module.d_head)).repeat_interleave(times, dim=0).flatten(0, 1)

    return [
        Projection(repeated(linear.weight), repeated(linear.bias)) for linear in (module.key_proj, module.value_proj)
    ]


def _set_feed_forward(spec: Any, module: nn.Module, residual: nn.Module) -> None:
    _set_norm(spec.layer_norm, cast(ResidualConnection, residual).norm)
    if isinstance(module, SwiGLU):
        _set_linear(spec.linear_0, module.gate)
        _set_linear(spec.linear_0_noact, module.expand)
    else:
        _set_linear(spec.linear_0, cast(FeedForward, module).expand)
    _set_linear(spec.linear_1, cast(FeedForward, module).contract)


def _set_linear(spec: Any, *layers: nn.Linear | Projection) -> None:
    """One layer, or several that read the same input put together."""
    spec.weight = _array(torch.cat([layer.weight for layer in layers]))
    if layers[0].bias is not None:
        spec.bias = _array(torch.cat([layer.bias for layer in layers]))


def _set_norm(spec: Any, module: nn.Module) -> None:
    spec.gamma = _array(cast(Tensor, module.weight))
    if isinstance(module, nn.LayerNorm):
        spec.beta = _array(module.bias)


def _array(values: Tensor) -> np.ndarray:
    """A copy: CTranslate2 quantizes in place, and the model is to go on translating."""
    return np.array(values.detach().to("cpu", torch.float32).numpy())


def _layers(model: Transformer) -> tuple[list[EncoderLayer], list[DecoderLayer]]:
    """Both stacks by their own types, which `nn.ModuleList` forgets."""
    return cast(list[EncoderLayer], list(model.encoder_layers)), cast(list[DecoderLayer], list(model.decoder_layers))


def _pieces(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.vocab_size))


# -- translating ---------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A hypothesis of CTranslate2's: its pieces, what it ended with among them, and its log probability in nats."""

    pieces: list[str]
    log_prob: float


class Undecided(Exception):
    """The result of CTranslate2 does not tell what our search would find."""


def load(
    folder: Path, translator: SearchTranslator, *, fast: bool = False, threads: int | None = None
) -> SearchTranslator:
    """`translator`, searched by the export with its settings. Raises DragomanError for those it cannot follow.

    `fast`: by CTranslate2's own search, which may miss what ours finds; as is that of an export with a shortlist.
    `threads`: those of a CPU; None: PyTorch's.
    """
    check_decoding(translator.decoding)
    kind = FastEngine if fast or (folder / shortlist.FILE).is_file() else CTranslate2Engine
    return translator.searched_by(kind(folder, translator.tokenizers, translator.device, threads))


class CTranslate2Engine:
    """An `inference.search_translator.Engine` whose search runs in CTranslate2 and finds what ours finds.

    Banned tokens are declared ends of a sentence: CTranslate2 puts hypotheses that end aside and goes on with others,
    which is what banning means, and leaves the probabilities as they are. Lengths allowed are tried in turn, the usual
    one first, as CTranslate2 does not stop by itself where ours would (`settled`).
    """

    exact = True
    """It finds what ours finds."""

    def __init__(
        self, folder: Path, tokenizers: TokenizerPair, device: torch.device, threads: int | None = None
    ) -> None:
        kind = "cuda" if device.type == "cuda" else "cpu"
        # On a CPU, workers of one thread each get more done together than one worker with all threads.
        pytorchs = torch.get_num_threads()
        workers = {"inter_threads": threads or pytorchs, "intra_threads": 1} if kind == "cpu" else {}
        try:
            self.runtime = library().SearchTranslator(str(folder), device=kind, **workers)
        except (RuntimeError, ValueError) as error:
            raise DragomanError(f"{folder}: CTranslate2 cannot load it: {' '.join(str(error).split())}") from error
        finally:
            torch.set_num_threads(pytorchs)  # they share OpenMP, whose count CTranslate2 sets for itself
        self.src_pieces, self.tgt_pieces = _pieces(tokenizers.src), _pieces(tokenizers.tgt)
        self.tgt_ids = {piece: index for index, piece in enumerate(self.tgt_pieces)}
        self.searched, self.searched_by_pytorch = 0, 0

    def remarks(self) -> list[str]:
        """Remarks for the reader of a comparison, on how the translations came about."""
        if not self.searched_by_pytorch:
            return []
        return [
            f"{self.searched_by_pytorch:,} of {self.searched:,} searches, in which a banned token was among the best "
            "or a language comes first, were left to PyTorch; their scores are CTranslate2's"
        ]

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Part]) -> list[list[Hypothesis]]:
        """Raises DragomanError for settings that are not followed, and for terms and prefixes."""
        check_decoding(translator.decoding)
        given = list(translator.tokenizers.tgt.before)
        if any(part.terms or list(part.prefix) != given for part in parts):
            raise DragomanError(
                "CTranslate2 is not asked for terms or prefixes: translate without --engine ctranslate2"
            )
        sentences = [part.ids for part in parts]
        if given and self.exact:  # after a prefix CT2's beams lose a `</s>` that comes at once (4.8.5)
            self.searched += len(sentences)
            self.searched_by_pytorch += len(sentences)
            return self._by_pytorch(translator, sentences)
        return self._searched(translator, sentences)

    def _searched(self, translator: SearchTranslator, sentences: list[list[int]]) -> list[list[Hypothesis]]:
        decoding = translator.decoding
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        limits = self._limits(translator, [len(ids) + 1 for ids in sentences])
        undecided: list[int] = []
        turn = [
            (rows, self._usual(decoding, max(limits[row] for row in rows)))
            for rows in self._batches(decoding, [len(ids) for ids in sentences])
        ]
        while turn:
            # The most work first, so that no worker is left with it at the end.
            turn.sort(key=lambda job: -len(job[0]) * job[1])
            unfinished: dict[int, list[int]] = {}
            for rows, reached, answers in [(*job, self._submit(translator, sentences, *job)) for job in turn]:
                for row, answer in zip(rows, answers, strict=True):
                    try:
                        found = settled(_found(answer), reached, limits[row], decoding)
                    except Undecided:
                        undecided.append(row)
                        continue
                    if found is None:
                        longer = min(math.ceil(NEXT_TRY * reached), limits[row])
                        unfinished.setdefault(longer, []).append(row)
                    else:
                        results[row] = [self._hypothesis(decoding, item) for item in found]
            turn = [
                ([left[place] for place in places], longer)
                for longer, left in unfinished.items()
                for places in self._batches(decoding, [len(sentences[row]) for row in left])
            ]
        self.searched += len(sentences)
        self.searched_by_pytorch += len(undecided)
        for row, hypotheses in zip(
            undecided, self._by_pytorch(translator, [sentences[row] for row in undecided]), strict=True
        ):
            results[row] = hypotheses
        return results

    def _batches(self, decoding: DecodingConfig, lengths: list[int]) -> list[list[int]]:
        """The numbers of the sentences of each batch, all of one width."""
        most = BATCH_SENTENCES["greedy" if decoding.beam_size == 1 else "beam"]
        batches = []
        for rows in even_batches(lengths, BATCH_TOKENS, WIDTH_MULTIPLE):
            parts = math.ceil(len(rows) / most)
            batches += [list(rows[part::parts]) for part in range(parts)]
        return batches

    def _given(self, translator: SearchTranslator, rows: int) -> list[list[str]] | None:
        """The pieces that each translation begins with, at no cost there as here: the tag of a language."""
        given = [self.tgt_pieces[index] for index in translator.tokenizers.tgt.before]
        return [given] * rows if given else None

    def _submit(
        self, translator: SearchTranslator, sentences: list[list[int]], rows: list[int], longest: int
    ) -> list[Any]:
        """The searches of some sentences, under way; nothing but banning and `longest` ends one of their beams."""
        decoding = translator.decoding
        banned = [PAD_ID, BOS_ID, *([UNK_ID] if decoding.ban_unk else [])]
        beam = decoding.beam_size
        return self._told(
            self.runtime.translate_batch,
            [[self.src_pieces[index] for index in sentences[row]] for row in rows],
            target_prefix=self._given(translator, len(rows)),
            asynchronous=True,
            beam_size=beam,
            num_hypotheses=beam * longest if beam > 1 else 1,
            patience=longest,
            length_penalty=RAW_SCORES,
            end_token=[EOS_ID, *banned],
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=longest,
            min_decoding_length=0,
            return_scores=True,
        )

    def _by_pytorch(self, translator: SearchTranslator, sentences: list[list[int]]) -> list[list[Hypothesis]]:
        """Our own search, whose hypotheses CTranslate2 scores."""
        own, decoding = translator.searched_by(None), translator.decoding
        given = list(translator.tokenizers.tgt.before)
        results = []
        limits = self._limits(translator, [len(ids) + 1 for ids in sentences])
        for ids, limit, hypotheses in zip(
            sentences, limits, own.hypotheses([Part(ids, given) for ids in sentences]), strict=True
        ):
            src = [self.src_pieces[index] for index in ids]
            tgt = [[self.tgt_pieces[index] for index in item.ids] for item in hypotheses]
            scored = self._told(self.runtime.score_batch, [src] * len(tgt), tgt, max_input_length=0)
            of_sentence = []
            for item, values in zip(hypotheses, scored, strict=True):
                length = min(len(item.ids) + 1, limit)  # of one that was cut there, no </s> counts
                log_prob = sum(values.log_probs[len(given) : length])
                of_sentence.append(Hypothesis(item.ids, log_prob / decoding.length_penalty.divisor(length), log_prob))
            results.append(of_sentence)
        return results

    def _hypothesis(self, decoding: DecodingConfig, item: Found) -> Hypothesis:
        ids = [self.tgt_ids[piece] for piece in item.pieces]
        written = [index for index in ids if index != EOS_ID]
        return Hypothesis(written, item.log_prob / decoding.length_penalty.divisor(len(ids)), item.log_prob)

    def _limits(self, translator: SearchTranslator, src_lengths: list[int]) -> list[int]:
        """The number of tokens that a translation may have, `</s>` among them, as `search` sets it."""
        if not src_lengths:
            return []
        mask = torch.arange(max(src_lengths)) < torch.tensor(src_lengths)[:, None]
        limits = default_max_lengths(mask, translator.decoding) + len(translator.tokenizers.tgt.before)
        if translator.model.max_target_length is not None:
            limits = limits.clamp(max=translator.model.max_target_length)
        return [int(limit) for limit in limits]

    def _usual(self, decoding: DecodingConfig, limit: int) -> int:
        """The length that is tried first: greedy search stops by itself, beams of most sentences are settled by it."""
        shortest = min(decoding.min_length, limit)  # nothing ends before
        return limit if decoding.beam_size == 1 else shortest + math.ceil(FIRST_TRY * (limit - shortest))

    @staticmethod
    def _told(call: Any, *arguments: Any, **options: Any) -> Any:
        """A call to CTranslate2, whose complaints are told as ours."""
        try:
            return call(*arguments, **options)
        except (RuntimeError, ValueError) as error:
            raise DragomanError(f"CTranslate2: {' '.join(str(error).split())}") from error


class FastEngine(CTranslate2Engine):
    """An `inference.search_translator.Engine` that lets CTranslate2 search in its own way.

    It ends a sentence when `beam_size` hypotheses are finished, whatever might still overtake them: on text with long
    sentences five times as fast as finding what our search finds, and few translations differ (benchmarks/serving.md).
    The sentences of a batch have one longest length.
    """

    exact = False

    def _searched(self, translator: SearchTranslator, sentences: list[list[int]]) -> list[list[Hypothesis]]:
        decoding = translator.decoding
        penalty = decoding.length_penalty
        alpha = penalty.alpha if isinstance(penalty, AveragePenalty) else 0.0
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        limits = self._limits(translator, [len(ids) + 1 for ids in sentences])
        under_way = []
        for rows in self._batches(decoding, [len(ids) for ids in sentences]):
            answers = self._told(
                self.runtime.translate_batch,
                [[self.src_pieces[index] for index in sentences[row]] for row in rows],
                target_prefix=self._given(translator, len(rows)),
                asynchronous=True,
                beam_size=decoding.beam_size,
                num_hypotheses=decoding.n_best,
                length_penalty=alpha,
                disable_unk=decoding.ban_unk,
                suppress_sequences=[[SPECIALS[PAD_ID]], [SPECIALS[BOS_ID]]],
                max_input_length=0,
                max_decoding_length=max(limits[row] for row in rows),
                min_decoding_length=decoding.min_length,
                use_vmap=True,  # where there is a shortlist
                return_end_token=True,
                return_scores=True,
            )
            under_way.append((rows, answers))
        self.searched += len(sentences)
        for rows, answers in under_way:
            for row, answer in zip(rows, answers, strict=True):
                results[row] = [
                    # Its score is the log probability over a power of the length; nothing that is banned counts in it.
                    self._hypothesis(decoding, Found(item.pieces, item.log_prob * len(item.pieces) ** alpha))
                    for item in _found(answer)
                ]
        return results


def _found(answer: Any) -> list[Found]:
    try:
        answer = answer.result()
    except (RuntimeError, ValueError) as error:
        raise DragomanError(f"CTranslate2: {' '.join(str(error).split())}") from error
    return [Found(*item) for item in zip(answer.hypotheses, answer.scores, strict=True)]


def settled(found: Iterable[Found], reached: int, limit: int, decoding: DecodingConfig) -> list[Found] | None:
    """The hypotheses of our search, out of all that CTranslate2 finished in `reached` tokens; None: it has to go on.

    `found` are the hypotheses that ended (in `</s>` or a banned token) among the best `beam_size` candidates of a step,
    and the best `beam_size` candidates of the last. Our search takes those that end in `</s>`, and may stop when the
    best prefix alive cannot overtake the last of its `n_best` any more, were it as long as `limit` allows.

    A banned token among the best candidates may have pushed a `</s>` out of them, which ours would have taken. That one
    was as long and less probable, so it does not matter unless the banned one itself would be among the `n_best`.

    Raises Undecided where it would, where greedy search came to such an end, and for what went on after its end, for
    want of candidates.
    """
    ends = {SPECIALS[EOS_ID], SPECIALS[PAD_ID], SPECIALS[BOS_ID], *([SPECIALS[UNK_ID]] if decoding.ban_unk else [])}
    finished: list[tuple[float, Found]] = []
    struck: list[float] = []
    alive: list[Found] = []
    last: list[float] = []
    for item in found:
        length = len(item.pieces)
        if length > limit:
            continue
        if not ends.isdisjoint(item.pieces[:-1]):
            raise Undecided
        if length == reached:
            last.append(item.log_prob)
        score = item.log_prob / decoding.length_penalty.divisor(length)
        if item.pieces[-1] not in ends:
            alive.append(item)
        elif item.pieces[-1] == SPECIALS[EOS_ID] and length > decoding.min_length:
            finished.append((score, item))
        elif length > decoding.min_length:
            struck.append(score)
    finished.sort(key=lambda entry: (-entry[0], len(entry[1].pieces)))
    best = finished[: decoding.n_best]
    worst = best[-1][0] if len(best) == decoding.n_best else -math.inf
    if reached < limit:
        possible = max((item.log_prob for item in alive), default=min(last, default=0.0))
        if worst == -math.inf or worst < possible / decoding.length_penalty.divisor(limit):
            return None
    elif reached > limit and not best:
        return None
    if struck and max(struck) > worst:
        raise Undecided
    if best:
        return [item for _, item in best]
    if not alive:
        raise Undecided
    alive.sort(key=lambda item: -item.log_prob)
    return alive[: decoding.n_best]


def library() -> Any:
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError as error:
        raise DragomanError("CTranslate2 is not installed: pip install 'dragoman[ctranslate2]'") from error
    return ctranslate2
