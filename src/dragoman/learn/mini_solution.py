"""A whole Transformer for translation in plain PyTorch: what a reader's `mini_transformer.py` grows into.

Vaswani et al. 2017, "Attention Is All You Need", with the norm before each sublayer (Xiong et al. 2020). Shapes are
written (batch, length, features). A mask is True where a query may look.
"""

import math

import torch
from torch import Tensor, nn

PAD, BOS, EOS = 0, 2, 3  # <pad>, <s>, </s>; <unk> is 1, and words begin with 4


# Chapter 1: one sentence


def shift(ids: list[int]) -> tuple[list[int], list[int]]:
    """Make (tgt_in, tgt_out) of a target sentence: what the decoder reads, and what it must say after each token."""
    return [BOS, *ids], [*ids, EOS]


# Chapter 4: attention


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute softmax(Q K^T / sqrt(d)) V: (the context, the weights).

    Shapes: query (..., queries, d), key (..., keys, d), value (..., keys, d_value), weights (..., queries, keys).
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)  # a query's weights sum to 1
    return weights @ value, weights


# Chapter 5: batches and masks


def batch(pairs: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor, Tensor]:
    """Make (src, tgt_in, tgt_out), (batch, length) each, of pairs of sentences in ids: </s> after each source, padding
    at the end."""

    def padded(rows: list[list[int]]) -> Tensor:
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])

    shifted = [shift(tgt) for _, tgt in pairs]
    return (
        padded([[*src, EOS] for src, _ in pairs]),
        padded([tgt_in for tgt_in, _ in shifted]),
        padded([tgt_out for _, tgt_out in shifted]),
    )


def padding_mask(ids: Tensor) -> Tensor:
    """Make the mask that shows real tokens, (batch, 1, 1, length): the same for every head and every query."""
    return (ids != PAD)[:, None, None, :]


def causal_mask(length: int) -> Tensor:
    """Make the mask that hides the future, (length, length): query i sees the keys 0 to i."""
    return torch.ones(length, length, dtype=torch.bool).tril()


# Chapter 6: the masked loss


def loss(logits: Tensor, tgt_out: Tensor) -> Tensor:
    """Compute the mean cross-entropy of the real tokens, in nats. `logits` is (batch, length, vocab)."""
    log_probs = logits.log_softmax(dim=-1)
    of_right_token = log_probs.gather(-1, tgt_out[..., None])[..., 0]  # (batch, length)
    return -of_right_token[tgt_out != PAD].mean()


# Chapter 7: several heads


class MultiHeadAttention(nn.Module):
    """Attention in `num_heads` subspaces of d_model / num_heads features each."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, d_model)
        self.value_proj = nn.Linear(d_model, d_model)
        self.output_proj = nn.Linear(d_model, d_model)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let each position of `query` look at the positions of `memory`; in self-attention both are the same."""

        def heads(x: Tensor) -> Tensor:  # (batch, length, d_model) to (batch, heads, length, d_head)
            return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

        q, k, v = heads(self.query_proj(query)), heads(self.key_proj(memory)), heads(self.value_proj(memory))
        context, _ = attention(q, k, v, mask)
        return self.output_proj(context.transpose(1, 2).flatten(2))  # heads side by side again


# Chapter 8: positions


def positions(length: int, d_model: int) -> Tensor:
    """Make the vectors of positions, (length, d_model): 2i is sin(pos / 10000^(2i/d_model)), 2i+1 its cosine."""
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, d_model, 2) / d_model)  # (length, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


# Chapter 9: norms and residual connections


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network; around each of them x + dropout(sublayer(norm(x)))."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(2)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute the next layer's input of x, (batch, length, d_model)."""
        y = self.norms[0](x)
        x = x + self.dropout(self.self_attention(y, y, mask))
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output (`memory`), a feed-forward network."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(3)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Compute the next layer's input of x, (batch, tgt_len, d_model), and of memory, (batch, src_len, d_model)."""
        y = self.norms[0](x)
        x = x + self.dropout(self.self_attention(y, y, mask))
        x = x + self.dropout(self.cross_attention(self.norms[1](x), memory, memory_mask))
        return x + self.dropout(self.feed_forward(self.norms[2](x)))


# Chapter 10: the whole Transformer


class Transformer(nn.Module):
    """Encoder and decoder, from ids to logits."""

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        d_model: int = 64,
        num_heads: int = 4,
        d_ff: int = 128,
        num_layers: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.src_embedding = nn.Embedding(src_vocab, d_model, padding_idx=PAD)
        self.tgt_embedding = nn.Embedding(tgt_vocab, d_model, padding_idx=PAD)
        sizes = (d_model, num_heads, d_ff, dropout)
        self.encoder_layers = nn.ModuleList([EncoderLayer(*sizes) for _ in range(num_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(*sizes) for _ in range(num_layers)])
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, tgt_vocab, bias=False)
        self.dropout = nn.Dropout(dropout)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        for embedding in (self.src_embedding, self.tgt_embedding):  # times sqrt(d_model) a word is as large as 1
            nn.init.normal_(embedding.weight, std=d_model**-0.5)

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        """Make vectors of ids: the word's, times sqrt(d_model), plus the position's."""
        vectors = embedding(ids) * math.sqrt(self.d_model)
        return self.dropout(vectors + positions(ids.size(1), self.d_model))

    def encode(self, src: Tensor) -> Tensor:
        """Read the source, (batch, src_len): the memory, (batch, src_len, d_model)."""
        x = self.embed(self.src_embedding, src)
        for layer in self.encoder_layers:
            x = layer(x, padding_mask(src))
        return self.encoder_norm(x)

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor) -> Tensor:
        """Compute the logits, (batch, tgt_len, tgt_vocab), of the token after each one of `tgt_in`."""
        x = self.embed(self.tgt_embedding, tgt_in)
        for layer in self.decoder_layers:
            x = layer(x, causal_mask(tgt_in.size(1)), memory, padding_mask(src))
        return self.output(self.decoder_norm(x))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Compute the logits of all positions at once, as in training."""
        return self.decode(tgt_in, self.encode(src), src)


# Chapter 11: training


def rate(step: int, d_model: int, warmup: int = 400) -> float:
    """Compute the paper's learning rate (equation 3) of a step, from 1: up for `warmup` steps, then down."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def train(
    model: Transformer, batches: list[tuple[Tensor, Tensor, Tensor]], steps: int, warmup: int = 400
) -> list[float]:
    """Train on (src, tgt_in, tgt_out), batch after batch and again from the first: the loss of each step.

    Adam has the paper's settings (section 5.3): betas 0.9 and 0.98, eps 1e-9.
    """
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    model.train()
    losses = []
    for step in range(1, steps + 1):
        src, tgt_in, tgt_out = batches[(step - 1) % len(batches)]
        optimizer.param_groups[0]["lr"] = rate(step, model.d_model, warmup)
        value = loss(model(src, tgt_in), tgt_out)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


# Chapter 12: decoding


@torch.no_grad()
def greedy(model: Transformer, src: Tensor, max_len: int = 50) -> list[int]:
    """Translate one sentence, (1, src_len): say the most probable token, again and again, until it is </s>."""
    model.eval()
    memory, ids = model.encode(src), [BOS]
    while len(ids) <= max_len:
        best = int(model.decode(torch.tensor([ids]), memory, src)[0, -1].argmax())
        if best == EOS:
            break
        ids.append(best)
    return ids[1:]


@torch.no_grad()
def beam_search(model: Transformer, src: Tensor, beam: int, max_len: int = 50) -> list[tuple[list[int], float]]:
    """Translate one sentence, (1, src_len): finished translations with their scores, the best first.

    A score is the sum of log probabilities / the number of tokens, </s> counted. In each step the `beam` best prefixes
    that do not end in </s> live on; one that ends in it and is among the `beam` best of all is finished. It ends when
    `beam` are finished, or after `max_len` tokens.
    """
    model.eval()
    memory = model.encode(src)
    alive: list[tuple[list[int], float]] = [([BOS], 0.0)]
    finished: list[tuple[list[int], float]] = []
    for length in range(1, max_len + 1):
        prefixes, rows = torch.tensor([ids for ids, _ in alive]), len(alive)
        logits = model.decode(prefixes, memory.expand(rows, -1, -1), src.expand(rows, -1))[:, -1]  # (rows, vocab)
        totals = torch.tensor([total for _, total in alive])[:, None] + logits.log_softmax(dim=-1)
        best, places = totals.flatten().topk(min(2 * beam, totals.numel()))  # a half of them may end in </s>
        continued = []
        for total, place in zip(best.tolist(), places.tolist(), strict=True):
            row, token = divmod(place, logits.size(-1))
            continued.append(([*alive[row][0], token], total))
        finished += [(ids[1:-1], total / length) for ids, total in continued[:beam] if ids[-1] == EOS]
        alive = [(ids, total) for ids, total in continued if ids[-1] != EOS][:beam]
        if len(finished) >= beam:
            break
    unfinished = [(ids[1:], total / max_len) for ids, total in alive]
    return sorted(finished or unfinished, key=lambda item: -item[1])
