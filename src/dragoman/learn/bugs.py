"""The laboratory's bugs, classic ones: each is a broken copy of a function of Dragoman's own, and a figure for it.

A copy has what the lesson needs, and no more; its words stand in bugs.yaml. `replaces` is the sound function itself:
after a renaming elsewhere this module cannot be loaded, and says which name is gone. The numbers of `dragoman learn
bug N` are the order here.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from dragoman.data import batch as batches
from dragoman.data import batching
from dragoman.data.batch import Batch, _end, _layout, collate_src
from dragoman.data.random import random_uint64
from dragoman.data.row_order import shuffled
from dragoman.decoding import base as decoding
from dragoman.learn import one_sentence as sentences
from dragoman.learn import symptoms
from dragoman.learn.bug import Bug, Figure
from dragoman.models import blocks, recurrent, stacks
from dragoman.models.stacks import INITIALIZATIONS
from dragoman.nn import attention, dropout, embeddings, kv_cache, masks, positions, recurrent_attention, residual
from dragoman.nn import recurrent as recurrent_layers
from dragoman.nn.attention import repeat_kv
from dragoman.nn.kv_cache import SharedKVCache
from dragoman.nn.positions import LAYOUTS, sinusoidal_rates
from dragoman.nn.residual import NORM_PLACEMENTS
from dragoman.runs.atomic_io import read_yaml
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.training import loss as loss_functions
from dragoman.training import optim, schedules

RECURRENT: dict[str, Any] = {"type": "recurrent", "attention": "none"}
COPY: dict[str, Any] = {**RECURRENT, "task": "copy"}
DEEP_POST: dict[str, Any] = {
    "norm_placement": "post",
    "num_encoder_layers": 6,
    "num_decoder_layers": 6,
    "training": {"schedule": {"type": "linear", "lr": 4e-3, "warmup_steps": 100}},
}

WORDS: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_suffix(".yaml"))
"""By the name of a bug what is said of it: `symptom` and `why` of `Bug`."""
NO_NUMBERS = symptoms.batch_dependence._replace(words=f"{symptoms.batch_dependence.words} (infinite: no numbers)")
FORGETS = symptoms.exact._replace(measure=lambda seed: symptoms.exact(seed, **COPY), limit=0.3)

BUGS: list[Bug] = []


def bug(name: str, replaces: Callable[..., Any], selftest: str, figure: Figure = symptoms.exact, **rest: Any) -> Any:
    """Make the decorated function the broken copy of `replaces`; `rest`: the other attributes of `Bug`."""

    def register(broken: Callable[..., Any]) -> Callable[..., Any]:
        assert broken.__name__ == replaces.__name__, broken.__name__
        BUGS.append(Bug(name, replaces, broken, selftest=selftest, figure=figure, **WORDS[name], **rest))
        return broken

    return register


@bug("the target is not shifted", batches._begin, "the_decoder_reads_one_token_behind")
def _begin(flat, real):
    """Padded ids that the decoder reads: one column wider than `real`."""
    ids = np.full((real.shape[0], real.shape[1] + 1), PAD_ID, dtype=np.int64)
    ids[:, :-1][real] = flat
    ids[np.arange(len(real)), real.sum(axis=1)] = EOS_ID
    return ids


@bug("<s> and </s> exchanged", batches._begin, "the_decoder_reads_one_token_behind", symptoms.exact._replace(limit=0.8))
def _begin(flat, real):
    """Padded ids that the decoder reads: one column wider than `real`."""
    ids = np.full((real.shape[0], real.shape[1] + 1), PAD_ID, dtype=np.int64)
    ids[:, 0] = EOS_ID
    ids[:, 1:][real] = flat
    return ids


@bug(
    "no warm-up",
    schedules.warm_up,
    "the_rate_warms_up",
    symptoms.last_loss._replace(measure=lambda seed: symptoms.last_loss(seed, **DEEP_POST), limit=1.0),
    toy=DEEP_POST,
)
def warm_up(step, warmup_steps):
    """The share of its peak that the rate has at a step, counted from 1."""
    return min(1.0, max(step, warmup_steps) / warmup_steps) if warmup_steps else 1.0


@bug("the loss counts padding", loss_functions.token_loss, "padding_is_not_counted", symptoms.knows_nothing)
def token_loss(logits, tgt_out, tgt_mask, label_smoothing=0.0, **_):
    """Loss in nats, summed over the batch; the caller divides once by the global token count."""
    logits = logits.float() * tgt_mask[..., None]
    return loss_functions.textbook_loss(logits.flatten(0, 1), tgt_out.flatten(), label_smoothing)


@bug("divided by all positions", batches.collate, "a_loss_is_divided_by_real_tokens", symptoms.knows_nothing)
def collate(pairs, rows=None):
    """Pad and shift pairs of (source ids, target ids), given without specials; `rows` says where they come from."""
    src, src_mask = collate_src([src for src, _ in pairs])
    flat, real = _layout([tgt for _, tgt in pairs])
    tgt_out, tgt_mask = _end(flat, real)
    return Batch(
        src=src,
        src_mask=src_mask,
        tgt_in=torch.from_numpy(batches._begin(flat, real)),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        rows=np.arange(len(pairs)) if rows is None else np.asarray(rows),
        num_tokens=tgt_mask.size,
        num_src_tokens=int(src_mask.sum()),
    )


@bug("padding hides rows", blocks.EncoderLayer.forward, "a_sentence_does_not_depend_on_its_batch", NO_NUMBERS)
def forward(self, x, padding_mask, maps=None):
    """`maps`, if given, gets the layer's attention map appended (`MultiHeadAttention.forward`)."""
    x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, padding_mask.mT, maps))
    return self.feed_forward_residual(x, self.feed_forward)


@bug("the causal mask is the other triangle", masks.causal_mask, "no_position_sees_the_future")
def causal_mask(length, device=None):
    """True where a query (a row) may attend to a key (a column)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu()[None, None]


@bug("the future is visible", masks.causal_mask, "no_position_sees_the_future")
def causal_mask(length, device=None):
    """True where a query (a row) may attend to a key (a column)."""
    return torch.ones(length, length, device=device).tril().ge(0)[None, None]


@bug("the causal mask is off by one", masks.causal_mask, "no_position_sees_the_future")
def causal_mask(length, device=None):
    """True where a query (a row) may attend to a key (a column)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(1)[None, None]


@bug(
    "the encoder's padding is visible",
    blocks.EncoderLayer.forward,
    "a_sentence_does_not_depend_on_its_batch",
    symptoms.batch_dependence,
)
def forward(self, x, padding_mask, maps=None):
    """`maps`, if given, gets the layer's attention map appended (`MultiHeadAttention.forward`)."""
    mask = None if padding_mask is None else padding_mask | padding_mask.mT
    x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, mask, maps))
    return self.feed_forward_residual(x, self.feed_forward)


@bug(
    "the LSTM reads padding",
    recurrent_layers.RecurrentLayer.read,
    "a_sentence_does_not_depend_on_its_batch",
    symptoms.batch_dependence._replace(measure=lambda seed: symptoms.batch_dependence(seed, **RECURRENT)),
    toy=RECURRENT,
)
def read(self, x, real, *, reverse=False):
    """(hidden state at every position, last state) of sentences of different lengths, from a state of zeros."""
    x = x.masked_fill(~real[:, :, None], 0.0)  # first of all: a NaN at a pad would come back in gradients
    inputs = list(zip(self.project_input(x).unbind(1), real[:, :, None].unbind(1), strict=True))
    state = (x.new_zeros(x.size(0), self.fast.hidden_size),) * self.num_parts
    outputs = []
    for projected, is_real in reversed(inputs) if reverse else inputs:
        state = self.next_state(projected, state)
        outputs.append(state[0].masked_fill(~is_real, 0.0))
    return torch.stack(outputs[::-1] if reverse else outputs, dim=1), state


@bug("the encoder's state is lost", recurrent.Bridge.forward, "the_source_matters", FORGETS, toy=COPY)
def forward(self, last):
    """The decoder's first state."""
    if not self.maps:
        return tuple(tuple(part.new_zeros(part.shape) for part in layer) for layer in last)
    joined = [torch.cat(part, dim=-1) for part in zip(*last, strict=True)]  # all layers' h, all layers' c
    hidden, *cells = [linear(part).to(part.dtype) for linear, part in zip(self.maps, joined, strict=True)]
    parts = [part.chunk(self.num_decoder_layers, dim=-1) for part in (hidden.tanh(), *cells)]
    return tuple(zip(*parts, strict=True))


@bug("the cell forgets", recurrent_layers.LSTMLayer.next_state, "the_lstm_is_pytorchs", FORGETS, toy=COPY)
def next_state(self, projected, state):
    h, c = state
    i, f, g, o = (projected + self.project_state(h)).chunk(4, dim=-1)  # input, forget, candidate, output
    c = f.sigmoid() * h + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h, c


@bug("softmax twice", loss_functions.textbook_loss, "a_sure_and_right_model_has_no_loss", symptoms.last_loss)
def textbook_loss(logits, targets, label_smoothing):
    """Sum over positions, in float32."""
    return F.cross_entropy(logits.float().softmax(dim=-1), targets, reduction="sum", label_smoothing=label_smoothing)


@bug(
    "no tanh in the additive score",
    recurrent_attention.AdditiveAttention.scores,
    "queries_differ_in_what_they_look_at",
    symptoms.spread_of_weights,
    toy={"type": "recurrent"},
)
def scores(self, query, keys):
    hidden = self.query_proj(query)[:, :, None] + keys[:, None]  # (sentences, queries, src_len, d_key)
    return self.score_proj(hidden)[..., 0]


@bug("softmax over queries", attention.scaled_dot_product_attention, "attention_is_pytorchs", NO_NUMBERS)
def scaled_dot_product_attention(query, key, value, mask, dropout=None, bias=None):
    """softmax(Q K^T / sqrt(d_head) + bias) V (equation 1): (the context, the attention weights before dropout)."""
    key, value = repeat_kv(query, key), repeat_kv(query, value)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (batch, num_heads, query_len, key_len)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-2)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


@bug("masked with 0", attention.scaled_dot_product_attention, "no_position_sees_the_future", symptoms.batch_dependence)
def scaled_dot_product_attention(query, key, value, mask, dropout=None, bias=None):
    """softmax(Q K^T / sqrt(d_head) + bias) V (equation 1): (the context, the attention weights before dropout)."""
    key, value = repeat_kv(query, key), repeat_kv(query, value)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (batch, num_heads, query_len, key_len)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, 0.0)
    weights = scores.softmax(dim=-1)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


@bug("heads split by a view", attention.MultiHeadAttention.split_heads, "attention_is_pytorchs")
def split_heads(self, x):
    return x.reshape(x.size(0), -1, x.size(1), self.d_head)  # (batch, heads, len, d_head)


@bug("multiplied by sqrt(d)", attention.scaled_dot_product_attention, "attention_is_pytorchs", symptoms.sharpest_weight)
def scaled_dot_product_attention(query, key, value, mask, dropout=None, bias=None):
    """softmax(Q K^T / sqrt(d_head) + bias) V (equation 1): (the context, the attention weights before dropout)."""
    key, value = repeat_kv(query, key), repeat_kv(query, value)
    scores = query @ key.transpose(-2, -1) * math.sqrt(query.size(-1))  # (batch, num_heads, query_len, key_len)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


@bug("no positions", positions.SinusoidalPositions.forward, "order_matters")
def forward(self, start, length):
    table = self.table
    if start + length > len(table):
        with torch.inference_mode(False):
            table = self._rows(max(start + length, 2 * len(table))).to(table)
        self.table = table
    return table[start].expand(length, -1)


@bug("positions along the batch", blocks.PositionedEmbedding.forward, "order_matters")
def forward(self, ids, start=0):
    """`start`: the position of the first column (decoding feeds one column at a time)."""
    return self.dropout(self.norm(self.tokens(ids) + self.positions(start, ids.size(0))[:, None]))


@bug("one wave for all dimensions", positions.sinusoidal_rates, "positions_are_different", symptoms.alike_positions)
def sinusoidal_rates(d_model, *, base=10_000.0, layout="interleaved"):
    """Radians that each sine goes on by from one position to the next, in float64 (the paper's section 3.5)."""
    spread = d_model - 2 if layout == "fairseq" else d_model
    return torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) // spread * -math.log(base))


@bug(
    "no path around the sublayer",
    residual.PreNorm.forward,
    "norms_are_pytorchs",
    symptoms.last_loss._replace(limit=0.3),
)
def forward(self, x, sublayer):
    return self.dropout(sublayer(self.norm(x)))


@bug("no final norm", blocks.BlockConfig.final_norm, "a_stack_ends_in_numbers_of_size_one", symptoms.size_of_memory)
def final_norm(self):
    """Norm at the end of a stack."""
    return self.new_norm() if NORM_PLACEMENTS[self.norm_placement].normalises_output else nn.Identity()


@bug("one layer used many times", stacks.stack, "layers_have_weights_of_their_own", symptoms.parameters_per_layer)
def stack(layers, tied=()):
    """The layers as a module. `tied`: the number, from 1, of the layer that stands in the place of each."""
    own = list(layers)
    return nn.ModuleList([own[number - 1] for number in tied or [1] * len(own)])


@bug(
    "no sqrt(d) at the embedding",
    embeddings.TokenEmbedding.forward,
    "embeddings_are_as_large_as_positions",
    symptoms.size_of_words,
)
def forward(self, ids):
    vectors = self.embedding(ids)
    return vectors if self.zero_id is None else vectors.masked_fill((ids == self.zero_id)[..., None], 0.0)


@bug(
    "gradients are not cleared",
    sentences.take_step,
    "a_plain_loop_uses_each_gradient_once",
    symptoms.loss_that_comes_back,
    curve=symptoms.one_sentence_curve,
)
def take_step(optimizer, loss):
    """Go one step of the optimizer."""
    loss.backward()
    optimizer.step()


@bug("the rate never reaches the optimizer", optim.set_rate, "the_weights_move", symptoms.last_loss._replace(limit=1.0))
def set_rate(optimizer, rate):
    """Let the next step be taken at the schedule's rate, or at the ratio to it that a group of parameters has."""
    for group in optimizer.param_groups:
        group["learning_rate"] = rate * group.get("lr_ratio", 1.0)


@bug(
    "dropout is not scaled",
    dropout.Dropout.forward,
    "dropout_keeps_the_mean",
    symptoms.dropped_mean,
    curve=symptoms.dropped_means,
)
def forward(self, x):
    return x * (torch.rand_like(x) >= self.rate) if self.training and self.rate else x


@bug(
    "dropout while translating",
    dropout.Dropout.forward,
    "a_translation_does_not_change_from_one_time_to_the_next",
    symptoms.agreement,
    toy={"dropout": 0.3},
)
def forward(self, x):
    return F.dropout(x, self.rate) if self.rate else x


@bug("stale cache", kv_cache.SharedKVCache.reorder, "a_search_says_what_the_model_says", symptoms.rescoring)
def reorder(self, rows, kept):
    if kept is None and rows.numel() == self.num_rows:
        return self
    sentences = self.seen.size(0) if kept is None else kept.numel()
    seen = self.seen.flatten(0, 1).index_select(0, rows).unflatten(0, (sentences, -1))
    table = self.table if kept is None else self.table.select(kept)
    return SharedKVCache(table, seen, self.used, self.length)


@bug("every new token at position 0", blocks.PositionedEmbedding.forward, "a_search_says_what_the_model_says")
def forward(self, ids, start=0):
    """`start`: the position of the first column (decoding feeds one column at a time)."""
    return self.dropout(self.norm(self.tokens(ids) + self.positions(0, ids.size(1))))


@bug("</s> is never allowed", decoding.banned_ids, "a_search_stops_at_the_end", symptoms.mean_length)
def banned_ids(config, length):
    """Ids that may not be token number `length` (from 1): `<pad>`, `<s>`, maybe `<unk>`, too early a `</s>`."""
    banned = [PAD_ID, BOS_ID]
    banned += [UNK_ID] if config.ban_unk else []
    banned += [EOS_ID] if length > config.min_length else []
    return banned


@bug("a causal mask in the encoder", blocks.EncoderLayer.forward, "the_encoder_looks_both_ways", symptoms.looks_ahead)
def forward(self, x, padding_mask, maps=None):
    """`maps`, if given, gets the layer's attention map appended (`MultiHeadAttention.forward`)."""
    mask = masks.causal_mask(x.size(1), x.device)
    mask = mask if padding_mask is None else mask & padding_mask
    x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, mask, maps))
    return self.feed_forward_residual(x, self.feed_forward)


@bug("cross-attention looks at itself", blocks.DecoderLayer.forward, "the_source_matters")
def forward(self, x, causal_mask, memory=None, memory_mask=None, maps=None):
    """`maps`, if given, gets the layer's attention maps appended, self before cross."""
    x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, causal_mask, maps))
    if self.cross_attention is not None:
        cross = self.cross_attention
        x = self.cross_attention_residual(x, lambda y: cross(y, y, causal_mask, maps))
    return self.feed_forward_residual(x, self.feed_forward)


@bug(
    "batches from long to short",
    batching.BatchPlan._plan,
    "batches_are_shuffled",
    symptoms.rise_of_batches,
    curve=symptoms.lengths_curve,
)
def _plan(self, epoch):
    """(rows, order of the batches) of an epoch."""
    rows, order = self._rows, np.arange(self.num_batches, dtype=np.int32)
    if not self.shuffle:
        words = random_uint64(self.seed, epoch)
        order = np.argsort(words(self.num_batches), kind="stable").astype(np.int32)
        rows = shuffled(rows, self._groups, words, None)
    return rows, order


@bug("all weights begin at zero", stacks.init_linear, "gradients_arrive_everywhere")
def init_linear(model, how="xavier_uniform"):
    """First weights of every projection by INITIALIZATIONS, and its bias."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            INITIALIZATIONS[how](module.weight, name)
            for parameter in module.parameters():
                nn.init.zeros_(parameter)


@bug(
    "heads of keys in another order",
    attention.repeat_kv,
    "a_search_says_what_the_model_says",
    symptoms.rescoring._replace(measure=lambda seed: symptoms.rescoring(seed, num_kv_heads=2)),
    toy={"num_kv_heads": 2},
)
def repeat_kv(query, heads):
    """Heads of keys or values, one for each head of the queries."""
    groups = query.size(1) // heads.size(1)
    return heads if groups == 1 else heads.repeat(1, groups, 1, 1)


@bug(
    "the scale knows the heads twice",
    attention.scaled_dot_product_attention,
    "attention_is_pytorchs",
    symptoms.sharpest_weight._replace(measure=lambda seed: symptoms.sharpest_weight(seed, num_heads=16), limit=0.35),
)
def scaled_dot_product_attention(query, key, value, mask, dropout=None, bias=None):
    """softmax(Q K^T / sqrt(d_head) + bias) V (equation 1): (the context, the attention weights before dropout)."""
    key, value = repeat_kv(query, key), repeat_kv(query, value)
    d_head = query.size(-1) / query.size(1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_head)  # (batch, num_heads, query_len, key_len)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return (dropout(weights) if dropout is not None else weights) @ value, weights


@bug(
    "sine and cosine are no pair",
    positions.sinusoidal_table,
    "positions_are_different",
    symptoms.spread_of_products,
    curve=symptoms.products_curve,
)
def sinusoidal_table(length, d_model, *, base=10_000.0, layout="interleaved", offset=0):
    """A sine or a cosine of the position in each dimension (Vaswani et al. 2017, section 3.5)."""
    position = torch.arange(offset, offset + length, dtype=torch.float64)[:, None]
    rate = sinusoidal_rates(d_model, base=base, layout=layout)
    angles, next_angles = position * rate, position * rate * base ** (-1 / d_model)
    table = torch.stack([angles.sin(), next_angles.cos()], dim=LAYOUTS[layout]).flatten(1)
    return table[:, :d_model].float()


@bug(
    "read backwards, and left so",
    recurrent_layers.RecurrentLayer.read,
    "the_lstm_is_pytorchs",
    symptoms.share_of_its_own,
    toy={"type": "recurrent"},
)
def read(self, x, real, *, reverse=False):
    """(hidden state at every position, last state) of sentences of different lengths, from a state of zeros."""
    x = x.masked_fill(~real[:, :, None], 0.0)  # first of all: a NaN at a pad would come back in gradients
    inputs = list(zip(self.project_input(x).unbind(1), real[:, :, None].unbind(1), strict=True))
    state = (x.new_zeros(x.size(0), self.fast.hidden_size),) * self.num_parts
    outputs = []
    for projected, is_real in reversed(inputs) if reverse else inputs:
        new = self.next_state(projected, state)
        state = tuple(torch.where(is_real, after, before) for after, before in zip(new, state, strict=True))
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state
