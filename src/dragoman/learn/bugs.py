"""The laboratory's bugs, classic ones: each is a broken copy of a function of Dragoman's own, and a figure for it.

A copy has what the lesson needs, and no more. `replaces` is the sound function itself: after a renaming elsewhere this
module cannot be loaded, and says which name is gone. The numbers of `dragoman learn bug N` are the order here.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from dragoman.data import batch as batches
from dragoman.data import batching
from dragoman.data.batch import Batch, _end, _layout, collate_src
from dragoman.data.random import raw_words
from dragoman.data.row_order import shuffled
from dragoman.decoding import base as decoding
from dragoman.decoding.base import SPECIALS
from dragoman.learn import one_sentence as sentences
from dragoman.learn import symptoms
from dragoman.learn.bug import Bug, Figure
from dragoman.models import blocks, recurrent, transformer
from dragoman.models.blocks import DecoderLayer, EncoderLayer, init_linear, stack
from dragoman.models.transformer import Transformer, TransformerMemory
from dragoman.nn import attention, dropout, embeddings, kv_cache, masks, positions, recurrent_attention, residual
from dragoman.nn import recurrent as recurrent_layers
from dragoman.nn.attention import repeat_kv
from dragoman.nn.kv_cache import SharedKVCache
from dragoman.text.tokenizers.base import BOS_ID, EOS_ID, PAD_ID
from dragoman.training import loss as loss_functions
from dragoman.training import optim, schedules

EXACT = Figure("exact matches of 100 unseen sequences (1 = all)", symptoms.exact, "above", 0.5)
FORGETS = EXACT._replace(measure=symptoms.forgets, limit=0.3)
LOSS = Figure("the loss of the last ten of 250 steps, in nats", symptoms.last_loss, "below", 0.5)
KNOWS_NOTHING = Figure("the loss of equal logits, less ln V", symptoms.knows_nothing, "below", 0.05)
AMONG = Figure("change of a sentence's logits beside longer ones", symptoms.batch_dependence, "below", 0.01)
NO_NUMBERS = AMONG._replace(words=f"{AMONG.words} (infinite: no numbers)")

RECURRENT: dict[str, Any] = {"type": "recurrent", "attention": "none"}
COPY: dict[str, Any] = {**RECURRENT, "task": "copy"}
DEEP_POST: dict[str, Any] = {
    "norm_placement": "post",
    "num_encoder_layers": 6,
    "num_decoder_layers": 6,
    "training": {"schedule": {"type": "linear", "lr": 4e-3, "warmup_steps": 100}},
}

BUGS: list[Bug] = []


def bug(name: str, replaces: Callable[..., Any], **rest: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the decorated function the broken copy of `replaces`; `rest`: the other attributes of `Bug`."""

    def register(broken: Callable[..., Any]) -> Callable[..., Any]:
        assert broken.__name__ == replaces.__name__, broken.__name__
        BUGS.append(Bug(name, replaces, broken, **rest))
        return broken

    return register


@bug(
    "the target is not shifted",
    replaces=batches.collate,
    symptom="The loss falls to zero within a hundred steps, faster than anyone hoped. Translations are nonsense.",
    why="The decoder reads the very token that it must say, and learns to copy its input. tgt_in has to begin with <s> and stay one token behind tgt_out.",
    selftest="the_decoder_reads_one_token_behind",
    figure=EXACT,
)
def collate(pairs, rows=None):
    """Pad and shift pairs of (source ids, target ids), given without specials; `rows` says where they come from."""
    src, src_mask = collate_src([src for src, _ in pairs])
    flat, real = _layout([tgt for _, tgt in pairs])
    tgt_in = np.full((real.shape[0], real.shape[1] + 1), PAD_ID, dtype=np.int64)  # (batch, tgt_len)
    tgt_in[:, 0] = BOS_ID
    tgt_in[:, 1:][real] = flat
    tgt_out, tgt_mask = _end(flat, real)
    tgt_in = tgt_out.copy()
    return Batch(
        src=src,
        src_mask=src_mask,
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        rows=np.arange(len(pairs)) if rows is None else np.asarray(rows),
        num_tokens=int(tgt_mask.sum()),
        num_src_tokens=int(src_mask.sum()),
    )


@bug(
    "<s> and </s> exchanged",
    replaces=batches.collate,
    symptom="Training and validation loss are those of a good model, yet nothing that it translates is right.",
    why="Training begins each target with </s>; the search begins with <s>, whose vector was never trained.",
    selftest="the_decoder_reads_one_token_behind",
    figure=EXACT._replace(limit=0.8),
)
def collate(pairs, rows=None):
    """Pad and shift pairs of (source ids, target ids), given without specials; `rows` says where they come from."""
    src, src_mask = collate_src([src for src, _ in pairs])
    flat, real = _layout([tgt for _, tgt in pairs])
    tgt_in = np.full((real.shape[0], real.shape[1] + 1), PAD_ID, dtype=np.int64)  # (batch, tgt_len)
    tgt_in[:, 0] = EOS_ID
    tgt_in[:, 1:][real] = flat
    tgt_out, tgt_mask = _end(flat, real)
    return Batch(
        src=src,
        src_mask=src_mask,
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        rows=np.arange(len(pairs)) if rows is None else np.asarray(rows),
        num_tokens=int(tgt_mask.sum()),
        num_src_tokens=int(src_mask.sum()),
    )


@bug(
    "no warm-up",
    replaces=schedules.warm_up,
    symptom="A deep post-norm model stays at the loss of guessing, whatever the data.",
    why="The rate is at its peak from the first step on. In post-norm models the first gradients are large and of no use: weights are thrown far off and do not come back.",
    selftest="the_rate_warms_up",
    figure=LOSS._replace(measure=lambda seed: symptoms.last_loss(seed, **DEEP_POST), limit=1.0),
    toy=DEEP_POST,
)
def warm_up(step, warmup_steps):
    """step / warmup_steps up to 1."""
    return 1.0


@bug(
    "the loss counts padding",
    replaces=loss_functions.token_loss,
    symptom="A model that knows nothing should have a loss of ln V. It has more, and it has all the more the more the lengths in a batch differ.",
    why="The loss is summed over padded positions too, and divided by the number of real ones.",
    selftest="padding_is_not_counted",
    figure=KNOWS_NOTHING,
)
def token_loss(logits, tgt_out, tgt_mask, label_smoothing=0.0, **_):
    """Loss in nats, summed over the real tokens of the batch; the caller divides once by the global token count."""
    real = torch.ones_like(tgt_mask.flatten())
    return loss_functions.textbook_loss(logits.flatten(0, 1)[real].float(), tgt_out.flatten()[real], label_smoothing)


@bug(
    "divided by all positions",
    replaces=batches.collate,
    symptom="Losses look better than those of others with the same model; batches with much padding look best.",
    why="The sum over real tokens is divided by the number of all positions, padding among them.",
    selftest="a_loss_is_divided_by_real_tokens",
    figure=KNOWS_NOTHING,
)
def collate(pairs, rows=None):
    """Pad and shift pairs of (source ids, target ids), given without specials; `rows` says where they come from."""
    src, src_mask = collate_src([src for src, _ in pairs])
    flat, real = _layout([tgt for _, tgt in pairs])
    tgt_in = np.full((real.shape[0], real.shape[1] + 1), PAD_ID, dtype=np.int64)  # (batch, tgt_len)
    tgt_in[:, 0] = BOS_ID
    tgt_in[:, 1:][real] = flat
    tgt_out, tgt_mask = _end(flat, real)
    return Batch(
        src=src,
        src_mask=src_mask,
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        rows=np.arange(len(pairs)) if rows is None else np.asarray(rows),
        num_tokens=tgt_mask.size,
        num_src_tokens=int(src_mask.sum()),
    )


@bug(
    "padding hides rows",
    replaces=transformer.Transformer.encode,
    symptom="The loss is no number, or training stops at a step with padding in its batch.",
    why="The mask hides the query rows of padding and not its key columns. A row in which all is hidden has a softmax of 0/0.",
    selftest="a_sentence_does_not_depend_on_its_batch",
    figure=NO_NUMBERS,
)
def encode(self, src, src_mask, maps=None):
    """`maps`, when given, gets every layer's attention map appended, as in `decode`."""
    # Attention gives pads a weight of zero, but zero times NaN is NaN: so the vectors there become zeros first.
    x, padding_mask = self.src_embedding(src).masked_fill(~src_mask[:, :, None], 0.0), src_mask[:, None, :, None]
    for layer in self.encoder_layers:
        x = layer(x, padding_mask, maps)
    return TransformerMemory(self.encoder_norm(x), src_mask)


@bug(
    "the causal mask is the other triangle",
    replaces=masks.causal_mask,
    symptom="The loss falls nicely; translations have nothing to do with it.",
    why="Each position sees what comes after it and not what came before. In training that is the answer; in a search there is nothing there.",
    selftest="no_position_sees_the_future",
    figure=EXACT,
)
def causal_mask(length, device=None):
    """Row i (a query) may attend to columns 0..i (keys): itself and what came before, never the future."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu()[None, None]


@bug(
    "the future is visible",
    replaces=masks.causal_mask,
    symptom="The loss falls faster and deeper than it can: to zero. Translations are wrong.",
    why="There is no causal mask: position i sees token i + 1, which it is asked for.",
    selftest="no_position_sees_the_future",
    figure=EXACT,
)
def causal_mask(length, device=None):
    """Row i (a query) may attend to columns 0..i (keys): itself and what came before, never the future."""
    return torch.ones(length, length, dtype=torch.bool, device=device)[None, None]


@bug(
    "the causal mask is off by one",
    replaces=masks.causal_mask,
    symptom="The loss is nearly zero after a hundred steps. Translations are wrong.",
    why="Each position sees one token too many: the one that it must say.",
    selftest="no_position_sees_the_future",
    figure=EXACT,
)
def causal_mask(length, device=None):
    """Row i (a query) may attend to columns 0..i (keys): itself and what came before, never the future."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(1)[None, None]


@bug(
    "the encoder's padding is visible",
    replaces=transformer.Transformer.encode,
    symptom="A sentence is translated in one way alone and in another way among longer ones.",
    why="The encoder attends to padding: a sentence's vectors depend on how much of it there is.",
    selftest="a_sentence_does_not_depend_on_its_batch",
    figure=AMONG,
)
def encode(self, src, src_mask, maps=None):
    """`maps`, when given, gets every layer's attention map appended, as in `decode`."""
    # Attention gives pads a weight of zero, but zero times NaN is NaN: so the vectors there become zeros first.
    x, padding_mask = (
        self.src_embedding(src).masked_fill(~src_mask[:, :, None], 0.0),
        masks.padding_mask(torch.ones_like(src_mask)),
    )
    for layer in self.encoder_layers:
        x = layer(x, padding_mask, maps)
    return TransformerMemory(self.encoder_norm(x), src_mask)


@bug(
    "the LSTM reads padding",
    replaces=recurrent_layers.RecurrentLayer.read,
    symptom="Short sentences come out worse when they are in a batch with long ones.",
    why="The state goes on through padding: what the decoder starts from is the state after the last column, not after the last word.",
    selftest="a_sentence_does_not_depend_on_its_batch",
    figure=AMONG._replace(measure=lambda seed: symptoms.batch_dependence(seed, **RECURRENT)),
    toy=RECURRENT,
)
def read(self, x, padding_mask, *, reverse=False):
    """(hidden state at every position, last state) of sentences of different lengths, from a state of zeros."""
    real = padding_mask[:, :, None]
    x = x.masked_fill(~real, 0.0)  # first of all: a NaN at a pad would come back in gradients
    inputs = list(zip(self.project_input(x).unbind(1), real.unbind(1), strict=True))
    state = (x.new_zeros(x.size(0), self.fast.hidden_size),) * self.num_parts
    outputs = []
    for projected, is_real in reversed(inputs) if reverse else inputs:
        new = self.next_state(projected, state)
        state = tuple(after for after, before in zip(new, state, strict=True))
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if reverse else outputs, dim=1), state


@bug(
    "the encoder's state is lost",
    replaces=recurrent.Bridge.forward,
    symptom="A model without attention says the same of every source; its loss stays at that of a language model.",
    why="The decoder starts from zeros: nothing of the source reaches it.",
    selftest="the_source_matters",
    figure=FORGETS,
    toy=COPY,
)
def forward(self, last):
    """The decoder's first state, of the encoder's last one."""
    if not self.maps:
        return tuple(tuple(torch.zeros_like(part) for part in layer) for layer in last)
    joined = [torch.cat(part, dim=-1) for part in zip(*last, strict=True)]  # all layers' h, all layers' c
    hidden, *cells = [linear(part).to(part.dtype) for linear, part in zip(self.maps, joined, strict=True)]
    parts = [part.chunk(self.num_decoder_layers, dim=-1) for part in (hidden.tanh(), *cells)]
    return tuple(zip(*parts, strict=True))


@bug(
    "the cell forgets",
    replaces=recurrent_layers.LSTMLayer.next_state,
    symptom="A model without attention knows the end of a sentence and not its beginning.",
    why="The forget gate's part of the cell is missing: the cell is new at every step, and nothing is carried on but by h.",
    selftest="the_lstm_is_pytorchs",
    figure=FORGETS,
    toy=COPY,
)
def next_state(self, projected, state):
    h, c = state
    i, f, g, o = (projected + self.project_state(h)).chunk(4, dim=-1)  # input, forget, candidate, output
    c = i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h, c


@bug(
    "softmax twice",
    replaces=loss_functions.textbook_loss,
    symptom="The loss falls, and then stays at a value well above zero however long one trains.",
    why="cross_entropy applies the softmax itself. Of probabilities it makes a distribution that can never be sure: with V entries the loss stays above ln(e + V - 1) - 1.",
    selftest="a_sure_and_right_model_has_no_loss",
    figure=LOSS,
)
def textbook_loss(logits, targets, label_smoothing):
    """Sum over positions, in float32."""
    return F.cross_entropy(logits.float().softmax(dim=-1), targets, reduction="sum", label_smoothing=label_smoothing)


@bug(
    "no tanh in the additive score",
    replaces=recurrent_attention.AdditiveAttention.scores,
    symptom="The attention map has the same row for every word that is said.",
    why="v . (W s + U h) is v . W s plus v . U h: the decoder's state adds the same number to all scores, and the softmax takes it out again.",
    selftest="queries_differ_in_what_they_look_at",
    figure=Figure("difference between the attention of decoder states", symptoms.spread_of_weights, "above", 0.001),
    toy={"type": "recurrent"},
)
def scores(self, query, keys):
    hidden = self.query_proj(query)[:, :, None] + keys[:, None]  # (sentences, queries, src_len, d_key)
    return self.score_proj(hidden)[..., 0]


@bug(
    "softmax over queries",
    replaces=attention.scaled_dot_product_attention,
    symptom="Attention maps whose columns sum to 1, and no numbers wherever a key is hidden from all queries.",
    why="The softmax goes over queries. A query's weights should sum to 1 over the keys that it looks at: dim=-1.",
    selftest="attention_is_pytorchs",
    figure=NO_NUMBERS,
)
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


@bug(
    "masked with 0",
    replaces=attention.scaled_dot_product_attention,
    symptom="The loss is better than it should be, translations are worse, and they depend on the batch.",
    why="Hidden scores become 0, and e^0 is 1: padding and the future have weights like everything else.",
    selftest="no_position_sees_the_future",
    figure=AMONG,
)
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


@bug(
    "heads split by a view",
    replaces=attention.MultiHeadAttention.split_heads,
    symptom="Shapes are right everywhere, and the model learns little; what it seems to learn it cannot say.",
    why="A view of (batch, len, heads * d_head) as (batch, heads, len, d_head) cuts positions into heads. Split the last dimension first, then transpose.",
    selftest="attention_is_pytorchs",
    figure=EXACT,
)
def split_heads(self, x):
    return x.reshape(x.size(0), -1, x.size(1), self.d_head)  # (batch, heads, len, d_head)


@bug(
    "multiplied by sqrt(d)",
    replaces=attention.scaled_dot_product_attention,
    symptom="Before any training each query looks at one place only, and its gradient is nearly zero.",
    why="Scores of d terms have a variance of d; divided by sqrt(d) it is 1. Multiplied, the softmax is saturated from the beginning.",
    selftest="attention_is_pytorchs",
    figure=Figure("mean of each query's largest weight in an untrained model", symptoms.sharpest_weight, "below", 0.6),
)
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


@bug(
    "no positions",
    replaces=positions.SinusoidalPositions.forward,
    symptom="The model knows which symbols come, and not in which order.",
    why='Attention sees a set. Without positions the encoder cannot tell "a b" from "b a".',
    selftest="order_matters",
    figure=EXACT,
)
def forward(self, start, length):
    table = self.table
    if start + length > len(table):
        self.table = table = self._rows(max(start + length, 2 * len(table))).to(table)
    return torch.zeros_like(table[start : start + length])


@bug(
    "positions along the batch",
    replaces=blocks.PositionedEmbedding.forward,
    symptom="Order is not learnt, and a sentence's translation depends on its row in the batch.",
    why="The positions are added along the wrong axis: all words of a row get the vector of the row's number.",
    selftest="order_matters",
    figure=EXACT,
)
def forward(self, ids, start=0):
    """`start`: the position of the first column (decoding feeds one column at a time)."""
    return self.dropout(self.norm(self.tokens(ids) + self.positions(start, ids.size(0))[:, None]))


@bug(
    "one wave for all dimensions",
    replaces=positions.sinusoidal_rates,
    symptom="Sentences of up to six words are learnt; in long ones words 44 positions apart are confused.",
    why="All pairs turn at the same rate: after 2 pi positions (and nearly exactly after 44) everything begins again.",
    selftest="positions_are_different",
    figure=Figure("how alike two distant positions are (1 = the same)", symptoms.alike_positions, "below", 0.95),
)
def sinusoidal_rates(d_model, *, base=10_000.0, layout="interleaved"):
    """Radians that each sine goes on by from one position to the next, in float64: base^(-2i/d_model)."""
    spread = d_model - 2 if layout == "fairseq" else d_model
    return torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * 0.0 / spread)


@bug(
    "no path around the sublayer",
    replaces=residual.PreNorm.forward,
    symptom="Two layers learn slowly, six learn nothing.",
    why="The residual connection is missing: the gradient has to pass through every sublayer and is lost on the way.",
    selftest="norms_are_pytorchs",
    figure=LOSS._replace(limit=0.3),
)
def forward(self, x, sublayer):
    return self.dropout(sublayer(self.norm(x)))


@bug(
    "no final norm",
    replaces=blocks.BlockConfig.final_norm,
    symptom="The deeper the model, the larger the numbers that reach the output, and the higher the first loss.",
    why="In pre-norm the path is never normalised: it grows with each layer, and the stack has to end in a norm.",
    selftest="a_stack_ends_in_numbers_of_size_one",
    figure=Figure("spread of the vectors after eight layers", symptoms.size_of_memory, "below", 1.2),
)
def final_norm(self):
    """Norm at the end of a stack, unless its output is normalised already."""
    return nn.Identity()


@bug(
    "one layer used many times",
    replaces=transformer.Transformer.__init__,
    symptom="A model of twelve layers is no larger than one of one, and hardly better.",
    why="[layer] * n is n times the same layer, with the same weights.",
    selftest="layers_have_weights_of_their_own",
    figure=Figure("thousands of parameters that a further layer brings", symptoms.parameters_per_layer, "above", 1.0),
)
def __init__(self, config, src, tgt, output):
    super(Transformer, self).__init__()
    self.src_end = config.src_end
    self.src_embedding, self.tgt_embedding = config.positioned(src), config.positioned(tgt)
    self.encoder_layers = stack([EncoderLayer(config)] * config.num_encoder_layers)
    self.decoder_layers = stack(DecoderLayer(config) for _ in range(config.num_decoder_layers))
    self.encoder_norm, self.decoder_norm = config.final_norm(), config.final_norm()
    self.output = output
    self.src_vocab_size, self.tgt_vocab_size = src.embedding.num_embeddings, tgt.embedding.num_embeddings
    self.max_target_length = self.tgt_embedding.max_len
    init_linear(self)


@bug(
    "no sqrt(d) at the embedding",
    replaces=embeddings.TokenEmbedding.forward,
    symptom="Words are learnt late; wide models are slower than narrow ones.",
    why="Embeddings that are also the output matrix have numbers of size d^-0.5; positions have 0.7. Without the factor sqrt(d) words drown in positions.",
    selftest="embeddings_are_as_large_as_positions",
    figure=Figure("a word's numbers, as a multiple of a position's", symptoms.size_of_words, "above", 0.5),
)
def forward(self, ids):
    return self.embedding(ids)


@bug(
    "gradients are not cleared",
    replaces=sentences.train_one_sentence,
    symptom="One sentence is learnt, forgotten, learnt again: the loss jumps about and never gets to zero.",
    why="There is no zero_grad: every step goes along the sum of all gradients so far.",
    selftest="a_plain_loop_uses_each_gradient_once",
    figure=Figure("mean loss of steps 7 to 60 of one sentence", symptoms.one_sentence_loss, "below", 0.04),
)
def train_one_sentence(seed=1, steps=20, lr=1e-3, warmup_steps=0, **model):
    """The loss of each step, in nats per token, of Adam on the one pair."""
    built, batch = sentences.build(seed, **model).train(), sentences.one_sentence()
    optimizer = torch.optim.Adam(built.parameters(), lr=lr)
    losses = []
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = lr * schedules.warm_up(step, warmup_steps)
        logits = built(batch.src, batch.src_mask, batch.tgt_in)
        loss = loss_functions.token_loss(logits, batch.tgt_out, batch.tgt_mask) / batch.num_tokens
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@bug(
    "the rate never reaches the optimizer",
    replaces=optim.set_rate,
    symptom="The log shows a rate, the loss does not move.",
    why="The schedule's rate is written where the optimizer does not read it: it steps with the rate that it was built with.",
    selftest="the_weights_move",
    figure=LOSS._replace(limit=1.0),
)
def set_rate(optimizer, rate):
    """Let the next step be taken at the schedule's rate, or at the ratio to it that a group of parameters has."""
    for group in optimizer.param_groups:
        group["lr_now"] = rate * group.get("lr_ratio", 1.0)


@bug(
    "dropout is not scaled",
    replaces=dropout.Dropout.forward,
    symptom="Training loss and validation loss are of two models: the more dropout, the further apart.",
    why="What is left has to be scaled by 1/(1 - rate) in training, so that sums have the size that they have without dropout.",
    selftest="dropout_keeps_the_mean",
    figure=Figure("the mean of ones after dropout of 0.4", symptoms.dropped_mean, "above", 0.9),
    toy={"dropout": 0.4},
)
def forward(self, x):
    return F.dropout(x, self.rate) * (1 - self.rate) if self.training and self.rate else x


@bug(
    "dropout while translating",
    replaces=dropout.Dropout.forward,
    symptom="The same sentence is translated in another way each time.",
    why="Dropout does not ask whether the model is in training: eval mode has no effect on it.",
    selftest="a_translation_does_not_change_from_one_time_to_the_next",
    figure=Figure("the share of sentences that come out the same twice", symptoms.agreement, "above", 0.95),
    toy={"dropout": 0.3},
)
def forward(self, x):
    return F.dropout(x, self.rate) if self.rate else x


@bug(
    "stale cache",
    replaces=kv_cache.SharedKVCache.reorder,
    symptom="Greedy search is fine; with a beam translations get worse, the more so the wider it is.",
    why="Hypotheses change places in the beam, and the cache is reordered in another way: a prefix reads another one's keys and values.",
    selftest="a_search_says_what_the_model_says",
    figure=Figure(
        "log probability of a beam's translations: by how much the model disagrees", symptoms.rescoring, "below", 0.01
    ),
)
def reorder(self, rows, kept):
    sentences = self.seen.size(0) if kept is None else kept.numel()
    seen = self.seen.flatten(0, 1).index_select(0, rows.sort().values).unflatten(0, (sentences, -1))
    table = self.table if kept is None else self.table.select(kept)
    return SharedKVCache(table, seen, self.used, self.length)


@bug(
    "every new token at position 0",
    replaces=blocks.PositionedEmbedding.forward,
    symptom="The validation loss is good; translations begin well and then stutter.",
    why="In a search each token is embedded alone, and its position has to be given: here each is at position 0.",
    selftest="a_search_says_what_the_model_says",
    figure=EXACT,
)
def forward(self, ids, start=0):
    """`start`: the position of the first column (decoding feeds one column at a time)."""
    return self.dropout(self.norm(self.tokens(ids) + self.positions(0, ids.size(1))))


@bug(
    "</s> is never allowed",
    replaces=decoding.banned_ids,
    symptom="Translations begin right and then go on and on, to the longest length that is allowed.",
    why="A comparison is the wrong way round: instead of before the shortest length, </s> is banned after it.",
    selftest="a_search_stops_at_the_end",
    figure=Figure("length of translations, as a multiple of the right one", symptoms.mean_length, "below", 1.1),
)
def banned_ids(config, length):
    """Ids that may not be token number `length` (from 1): `<pad>`, `<s>`, maybe `<unk>`, too early a `</s>`."""
    banned = [SPECIALS.pad_id, SPECIALS.bos_id]
    banned += [SPECIALS.unk_id] if config.ban_unk else []
    banned += [SPECIALS.eos_id] if length > config.min_length else []
    return banned


@bug(
    "a causal mask in the encoder",
    replaces=blocks.EncoderLayer.forward,
    symptom="Classifiers that look at the first position are as good as guessing; translators lose a little.",
    why="The encoder may look both ways; with a causal mask its first position knows nothing but itself.",
    selftest="the_encoder_looks_both_ways",
    figure=Figure("change of the encoder's first vector by the last token", symptoms.looks_ahead, "above", 0.001),
)
def forward(self, x, padding_mask, maps=None):
    """`maps`, if given, gets the layer's attention map appended (`MultiHeadAttention.forward`)."""
    mask = masks.causal_mask(x.size(1)) & (True if padding_mask is None else padding_mask)
    x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, mask, maps))
    return self.feed_forward_residual(x, self.feed_forward)


@bug(
    "cross-attention looks at itself",
    replaces=blocks.DecoderLayer.forward,
    symptom="A fluent decoder that says the same whatever the source is.",
    why="Keys and values of the second attention have to come from the encoder's memory, not from the decoder.",
    selftest="the_source_matters",
    figure=EXACT,
)
def forward(self, x, causal_mask, memory=None, memory_mask=None, maps=None):
    """`maps`, if given, gets the layer's attention maps appended, self before cross."""
    x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, causal_mask, maps))
    if self.cross_attention is not None:
        cross = self.cross_attention
        x = self.cross_attention_residual(x, lambda y: cross(y, y, causal_mask, maps))
    return self.feed_forward_residual(x, self.feed_forward)


@bug(
    "batches from long to short",
    replaces=batching.BatchPlan._plan,
    symptom="The loss has a saw's teeth: it falls within each epoch and jumps back at the next.",
    why="Batches are made of sentences of like lengths, and their order has to be shuffled; here every epoch goes from long ones to short ones.",
    selftest="batches_are_shuffled",
    figure=Figure("share of steps with longer sentences than the one before", symptoms.rise_of_batches, "above", 0.3),
)
def _plan(self, epoch):
    """(rows, order of the batches) of an epoch."""
    rows, order = self._rows, np.arange(self.num_batches, dtype=np.int32)
    if not self.shuffle:
        words = raw_words(self.seed, epoch)
        order = np.argsort(words(self.num_batches), kind="stable").astype(np.int32)
        rows = shuffled(rows, self._groups, words, None)
    return rows, order


@bug(
    "all weights begin at zero",
    replaces=blocks.init_linear,
    symptom="The loss stays where guessing is: the source makes no difference.",
    why="Where all weights of a layer are equal all its outputs are, and so are their gradients; of zeros they are zero.",
    selftest="gradients_arrive_everywhere",
    figure=EXACT,
)
def init_linear(model):
    """Glorot and Bengio's uniform initialisation (2010) for every projection, zero for its bias."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
