"""Chapter 10: the whole Transformer."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.config import parse
from dragoman.learn import laboratory
from dragoman.learn.exercise import Exercise, Wrong
from dragoman.learn.language import message
from dragoman.models.base import count_parameters
from dragoman.models.families import TransformerConfig
from dragoman.nn.positions import sinusoidal_table


def predict_logits() -> tuple[int, ...]:
    """Predict what this code returns: the shape of the logits of a very small decoder."""
    embedding = torch.zeros(11, 8)
    src, tgt_in = torch.zeros(2, 7, dtype=torch.long), torch.zeros(2, 5, dtype=torch.long)
    memory, x = embedding[src], embedding[tgt_in]
    x = x + (x @ memory.transpose(1, 2)).softmax(dim=-1) @ memory
    return tuple((x @ embedding.T).shape)


def decoder_layer(x: Tensor, memory: Tensor, self_attention: Any, cross_attention: Any, network: Any) -> Tensor:
    """Compute a decoder layer of three sublayers, each with a path around it. Fill in the gap ____.

    `x` is the decoder's (batch, tgt_len, d), `memory` the encoder's output, (batch, src_len, d).
    `self_attention(queries, keys)` and `cross_attention(queries, keys)` attend from the first to the second;
    `network(x)` is the feed-forward network. Norms are inside of them.
    """
    x = x + self_attention(x, x)
    x = x + cross_attention(x, memory)
    return x + network(x)


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
    heads, layers = rng.choice([2, 4]), rng.choice([1, 2, 2])
    sizes = {
        **laboratory.TRANSFORMER,
        "d_model": 16,
        "d_ff": 24,
        "num_heads": heads,
        "num_encoder_layers": layers,
        "num_decoder_layers": layers,
    }
    model = parse(TransformerConfig, sizes).build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0)
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases too: a fresh model has ones and zeros there
            parameter.add_(torch.randn_like(parameter) * 0.2)
    rows, width, tgt_len = rng.randrange(1, 4), rng.randrange(2, 7), rng.randrange(1, 6)
    lengths = torch.tensor([rng.randrange(1, width + 1) for _ in range(rows)])
    src = torch.randint(4, 19, (rows, width)).masked_fill(torch.arange(width) >= lengths[:, None], 0)
    weights = {name: value.detach() for name, value in model.state_dict().items()}
    return weights, src, torch.randint(4, 19, (rows, tgt_len)), heads, layers


def one_million() -> dict[str, int]:
    """Choose the sizes of a Transformer with one million parameters, up to one per cent.

    The keys are d_model, num_heads, d_ff and num_layers (of the encoder, and as many of the decoder, at least 2). The
    vocabulary has 1000 entries; one matrix serves as all embeddings. The check builds Dragoman's and counts.
    """
    return {"d_model": 128, "num_heads": 4, "d_ff": 459, "num_layers": 2}


def grade_one_million(answer: Callable[[], Any]) -> None:
    sizes = answer()
    keys = ("d_model", "num_heads", "d_ff", "num_layers")
    if not isinstance(sizes, dict) or set(sizes) != set(keys):
        raise Wrong(message("a dict with the keys {keys} is asked for", keys=", ".join(keys)))
    if not all(type(size) is int and 0 < size <= 8192 for size in sizes.values()):
        raise Wrong(message("sizes are whole numbers from 1 to 8192"))
    if not 2 <= sizes["num_layers"] <= 64:
        raise Wrong(message("num_layers is {size}: from 2 to 64", size=sizes["num_layers"]))
    if sizes["d_model"] % sizes["num_heads"]:
        raise Wrong(
            message("{heads} heads do not divide a d_model of {size}", heads=sizes["num_heads"], size=sizes["d_model"])
        )
    if sizes["d_model"] % 2:
        raise Wrong(message("d_model is odd: a sine needs its cosine"))
    number = _parameters(**sizes)
    if not 990_000 <= number <= 1_010_000:
        factor = number / 1e6
        raise Wrong(
            message("it has {number} parameters, {factor} million", number=f"{number:,}", factor=f"{factor:.3g}")
        )


def _parameters(num_layers: int, **sizes: int) -> int:
    layers = {"num_encoder_layers": num_layers, "num_decoder_layers": num_layers}
    config = parse(TransformerConfig, {**sizes, **layers})
    with torch.device("meta"):  # shapes without numbers
        return count_parameters(config.build(src_vocab_size=1000, tgt_vocab_size=1000, shared_vocab=True, pad_id=0))


def draw_layer(rng: random.Random) -> tuple[Any, ...]:
    rows, length, src_length, d = (rng.randrange(1, 5) for _ in range(4))
    w, u, v = (torch.randn(d, d) for _ in range(3))

    def attention(matrix: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda queries, keys: (queries @ matrix @ keys.transpose(1, 2)).softmax(dim=-1) @ keys @ matrix

    return (
        torch.randn(rows, length, d),
        torch.randn(rows, src_length, d),
        attention(w),
        attention(u),
        lambda x: (x @ v).relu(),
    )


EXERCISES = [
    Exercise(10, predict_logits),
    Exercise(10, decoder_layer, draw_layer, gap="x + cross_attention(x, memory)"),
    Exercise(10, transformer, draw, given=[attend]),
    Exercise(10, one_million, grade=grade_one_million),
]
