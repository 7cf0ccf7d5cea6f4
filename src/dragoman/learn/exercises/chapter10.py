"""Chapter 10: the whole Transformer."""

import math
import random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.config import parse
from dragoman.learn import laboratory
from dragoman.learn.exercise import Exercise
from dragoman.models.families import TransformerConfig
from dragoman.nn.positions import sinusoidal_table


def attend(weights: dict[str, Tensor], queries: Tensor, memory: Tensor, mask: Tensor, num_heads: int) -> Tensor:
    """Multi-head attention with the weights of one of Dragoman's: `query_proj.weight`, `.bias`, and so on for key_proj,
    value_proj and output_proj. `queries` is (batch, query_len, d_model), `memory` (batch, key_len, d_model), `mask`
    broadcasts to (batch, heads, query_len, key_len), True where a query may look.
    """
    q = F.linear(queries, weights["query_proj.weight"], weights["query_proj.bias"])
    k = F.linear(memory, weights["key_proj.weight"], weights["key_proj.bias"])
    v = F.linear(memory, weights["value_proj.weight"], weights["value_proj.bias"])
    q, k, v = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (q, k, v))
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).masked_fill(~mask, -math.inf)
    context = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return F.linear(context, weights["output_proj.weight"], weights["output_proj.bias"])


def transformer(weights: dict[str, Tensor], src: Tensor, tgt_in: Tensor, num_heads: int, num_layers: int) -> Tensor:
    """Compute the logits, (batch, tgt_len, vocab), of a pre-norm Transformer of `num_layers` + `num_layers` layers.

    `weights` are Dragoman's, all embeddings one matrix; ids of 0 are padding (at the end of `src`). Print the names of
    `weights` to see what there is. `attend`, above, and `sinusoidal_table` are there to be used. In words: embeddings
    times sqrt(d_model) plus positions; in each layer x + sublayer(norm(x)), where the sublayers are self-attention, in
    the decoder then attention to the memory, and a feed-forward network with a ReLU; a norm at the end of each stack;
    logits by the embedding matrix. `attend` takes the weights of one attention, with names that begin with
    `query_proj.`: choose those of the layer and cut their names.
    """
    embedding = weights["src_embedding.tokens.embedding.weight"]
    d_model = embedding.size(1)

    def inside(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (d_model,), weights[f"{name}.weight"], weights[f"{name}.bias"])

    def network(x: Tensor, name: str) -> Tensor:
        inner = F.linear(x, weights[f"{name}.expand.weight"], weights[f"{name}.expand.bias"]).relu()
        return F.linear(inner, weights[f"{name}.contract.weight"], weights[f"{name}.contract.bias"])

    def embed(ids: Tensor) -> Tensor:
        return embedding[ids] * math.sqrt(d_model) + sinusoidal_table(ids.size(1), d_model)

    real = (src != 0)[:, None, None, :]
    memory = embed(src)
    for number in range(num_layers):
        layer = f"encoder_layers.{number}"
        y = norm(memory, f"{layer}.self_attention_residual.norm")
        memory = memory + attend(inside(f"{layer}.self_attention."), y, y, real, num_heads)
        memory = memory + network(norm(memory, f"{layer}.feed_forward_residual.norm"), f"{layer}.feed_forward")
    memory = norm(memory, "encoder_norm")

    length = tgt_in.size(1)
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    x = embed(tgt_in)
    for number in range(num_layers):
        layer = f"decoder_layers.{number}"
        y = norm(x, f"{layer}.self_attention_residual.norm")
        x = x + attend(inside(f"{layer}.self_attention."), y, y, causal, num_heads)
        y = norm(x, f"{layer}.cross_attention_residual.norm")
        x = x + attend(inside(f"{layer}.cross_attention."), y, memory, real, num_heads)
        x = x + network(norm(x, f"{layer}.feed_forward_residual.norm"), f"{layer}.feed_forward")
    return norm(x, "decoder_norm") @ embedding.T


def draw(rng: random.Random) -> tuple[Any, ...]:
    sizes = {**laboratory.TRANSFORMER, "d_model": 16, "d_ff": 24}
    model = parse(TransformerConfig, sizes).build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0)
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases too: a fresh model has ones and zeros there
            parameter.add_(torch.randn_like(parameter) * 0.2)
    src = torch.randint(4, 19, (3, 6)).masked_fill(torch.arange(6) >= torch.tensor([6, 4, 2])[:, None], 0)
    return {name: value.detach() for name, value in model.state_dict().items()}, src, torch.randint(4, 19, (3, 5)), 4, 2


EXERCISES = [Exercise(10, transformer, draw, given=[attend])]
