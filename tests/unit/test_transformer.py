"""The Transformer and PyTorch's own modules agree, in outputs and gradients; sizes, ties and attention maps."""

from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn

from dragoman.errors import Error
from dragoman.models.families import TransformerConfig
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.masks import causal_mask, padding_mask

CLOSE = {"atol": 2e-5, "rtol": 1e-4}


def source_mask() -> Tensor:
    return torch.tensor([[True] * 7, [True] * 4 + [False] * 3, [True] + [False] * 6])


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    """PyTorch keeps the three input projections in one matrix."""
    with torch.no_grad():
        weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
        for linear, weight, bias in zip(
            (ours.query_proj, ours.key_proj, ours.value_proj), weights, biases, strict=True
        ):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        ours.output_proj.weight.copy_(theirs.out_proj.weight)
        ours.output_proj.bias.copy_(theirs.out_proj.bias)


def test_multi_head_attention_equals_pytorchs() -> None:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(16, 4, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    ours = MultiHeadAttention(16, 4)
    copy_attention(theirs, ours)
    x, memory = torch.randn(3, 5, 16, requires_grad=True), torch.randn(3, 7, 16, requires_grad=True)
    expected, maps = theirs(x, memory, memory, key_padding_mask=~source_mask(), average_attn_weights=False)
    got = ours(x, memory, padding_mask(source_mask()))
    torch.testing.assert_close(got, expected, **CLOSE)
    collected: list[Tensor] = []
    torch.testing.assert_close(ours(x, memory, padding_mask(source_mask()), collected), expected, **CLOSE)
    torch.testing.assert_close(collected[0], maps, **CLOSE)
    upstream = torch.randn_like(got)
    for mine, other in zip(
        torch.autograd.grad(got, (x, memory), upstream),
        torch.autograd.grad(expected, (x, memory), upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, **CLOSE)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_whole_transformer_equals_pytorchs(placement: str, activation: str) -> None:
    """Same weights, same embedded input: outputs of the stacks and all gradients are equal."""
    torch.manual_seed(0)
    d_model, heads, d_ff, layers, vocab = 16, 2, 32, 2, 19
    theirs = nn.Transformer(
        d_model, heads, layers, layers, d_ff, 0.0, activation, batch_first=True, norm_first=placement == "pre"
    )
    if placement == "post":  # PyTorch adds final norms in either placement; the paper has none in this one
        theirs.encoder.norm = theirs.decoder.norm = None
    ours = TransformerConfig(
        d_model=d_model, num_heads=heads, d_ff=d_ff, num_encoder_layers=layers, num_decoder_layers=layers, dropout=0.0,
        norm_placement=placement, activation=activation,
    ).build(src_vocab_size=vocab, tgt_vocab_size=vocab, shared_vocab=True, pad_id=0)  # fmt: skip
    pairs = copy_transformer(theirs, ours, placement)
    src, tgt_in = torch.randint(4, vocab, (3, 7)), torch.randint(4, vocab, (3, 5))

    ours_logits = ours(src, source_mask(), tgt_in)
    embedded = [embedding(ids) for embedding, ids in ((ours.src_embedding, src), (ours.tgt_embedding, tgt_in))]
    hidden = theirs(
        *embedded,
        tgt_mask=~causal_mask(5)[0, 0],
        src_key_padding_mask=~source_mask(),
        memory_key_padding_mask=~source_mask(),
    )
    theirs_logits = ours.output(hidden)
    torch.testing.assert_close(ours_logits, theirs_logits, **CLOSE)

    upstream = torch.randn_like(ours_logits)
    mine = torch.autograd.grad(ours_logits, [pair[0] for pair in pairs], upstream, retain_graph=True)
    other = torch.autograd.grad(theirs_logits, [pair[1] for pair in pairs], upstream)
    for (name, part), gradient, expected in zip([pair[2:] for pair in pairs], mine, other, strict=True):
        torch.testing.assert_close(gradient, expected[part], msg=lambda text, name=name: f"{name}: {text}", **CLOSE)


def copy_transformer(
    theirs: nn.Transformer, ours: nn.Module, placement: str
) -> list[tuple[Tensor, Tensor, str, slice]]:
    """Copy PyTorch's weights into ours; returns (our parameter, theirs, name, the rows of theirs that it equals)."""
    pairs: list[tuple[Tensor, Tensor, str, slice]] = []

    def link(own: Tensor, other: Tensor, name: str, part: slice = slice(None)) -> None:
        with torch.no_grad():
            own.copy_(other[part])
        pairs.append((own, other, name, part))

    def module(own: nn.Module, other: nn.Module, name: str) -> None:
        nn.init.normal_(other.bias)
        link(own.weight, other.weight, f"{name}.weight")
        link(own.bias, other.bias, f"{name}.bias")

    def attention(own: MultiHeadAttention, other: nn.MultiheadAttention, name: str) -> None:
        size = other.embed_dim
        nn.init.normal_(other.in_proj_bias)
        for index, linear in enumerate((own.query_proj, own.key_proj, own.value_proj)):
            part = slice(index * size, (index + 1) * size)
            link(linear.weight, other.in_proj_weight, f"{name}.weight.{index}", part)
            link(linear.bias, other.in_proj_bias, f"{name}.bias.{index}", part)
        module(own.output_proj, other.out_proj, f"{name}.out")

    for own, other in zip(ours.encoder_layers, theirs.encoder.layers, strict=True):
        attention(own.self_attention, other.self_attn, "encoder.self")
        module(own.feed_forward.expand, other.linear1, "encoder.linear1")
        module(own.feed_forward.contract, other.linear2, "encoder.linear2")
        module(own.self_attention_residual.norm, other.norm1, "encoder.norm1")
        module(own.feed_forward_residual.norm, other.norm2, "encoder.norm2")
    for own, other in zip(ours.decoder_layers, theirs.decoder.layers, strict=True):
        attention(own.self_attention, other.self_attn, "decoder.self")
        attention(own.cross_attention, other.multihead_attn, "decoder.cross")
        module(own.feed_forward.expand, other.linear1, "decoder.linear1")
        module(own.feed_forward.contract, other.linear2, "decoder.linear2")
        module(own.self_attention_residual.norm, other.norm1, "decoder.norm1")
        module(own.cross_attention_residual.norm, other.norm2, "decoder.norm2")
        module(own.feed_forward_residual.norm, other.norm3, "decoder.norm3")
    if placement == "pre":
        module(ours.encoder_norm, theirs.encoder.norm, "encoder.norm")
        module(ours.decoder_norm, theirs.decoder.norm, "decoder.norm")
    return pairs


def test_sizes_that_do_not_fit_are_refused() -> None:
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 8, "pad_id": 0}
    with raises_error(Error.WRONG_SETTING):
        TransformerConfig(d_model=10, num_heads=4).build(shared_vocab=True, **sizes)
    with raises_error(Error.WRONG_SETTING):
        TransformerConfig(num_heads=4, num_kv_heads=3).build(shared_vocab=True, **sizes)
    with raises_error(Error.WRONG_SETTING):
        TransformerConfig(d_model=12, position={"type": "rotary"}).build(shared_vocab=True, **sizes)
    with raises_error(Error.WRONG_SETTING):
        TransformerConfig(tie_embeddings="all").build(shared_vocab=False, **sizes)


@pytest.mark.parametrize(("d_head", "width"), [(None, 4), (4, 4), (16, 16), (6, 6)])
def test_heads_have_the_width_that_is_set(d_head: int | None, width: int) -> None:
    """Null is d_model / num_heads, number for number; another width is that of all three kinds of attention."""
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "pad_id": 0, "shared_vocab": True}
    small = {"d_model": 16, "num_heads": 4, "d_ff": 8, "num_encoder_layers": 1, "num_decoder_layers": 1}

    def built(**settings: Any) -> Any:
        torch.manual_seed(1)
        return TransformerConfig(**small, **settings).build(**sizes)

    plain, model = built(), built(d_head=d_head)
    layer = model.decoder_layers[0]
    for attention in (model.encoder_layers[0].self_attention, layer.self_attention, layer.cross_attention):
        assert attention.query_proj.weight.shape == attention.key_proj.weight.shape == (4 * width, 16)
        assert attention.output_proj.weight.shape == (16, 4 * width)
    if width == 4:
        assert all(map(torch.equal, plain.state_dict().values(), model.state_dict().values()))
    more = sum(one.numel() for one in model.parameters()) - sum(one.numel() for one in plain.parameters())
    assert more == 3 * 4 * (width - 4) * (4 * 16 + 3)  # three attentions of four heads: four matrices, three biases


def test_heads_of_their_own_width_need_not_divide_d_model() -> None:
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "pad_id": 0, "shared_vocab": True}
    TransformerConfig(d_model=10, num_heads=4, d_head=3).build(**sizes)
    with raises_error(Error.WRONG_SETTING, "odd number of them: 3"):
        TransformerConfig(d_model=16, num_heads=4, d_head=3, position={"type": "rotary"}).build(**sizes)


def test_tying_shares_the_very_tensor() -> None:
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "pad_id": 0, "shared_vocab": True}
    tied = TransformerConfig(tie_embeddings="all").build(**sizes)
    assert tied.src_embedding.tokens is tied.tgt_embedding.tokens
    assert tied.output.weight is tied.tgt_embedding.tokens.embedding.weight
    two_way = TransformerConfig(tie_embeddings="output").build(**sizes)
    assert two_way.src_embedding.tokens is not two_way.tgt_embedding.tokens
    assert two_way.output.weight is two_way.tgt_embedding.tokens.embedding.weight


@pytest.mark.parametrize("placement", ["pre", "output", "post"])
def test_a_stack_ends_normalised(placement: str) -> None:
    """Where the residual path has not been normalised, one more norm does it."""
    torch.manual_seed(0)
    model = TransformerConfig(norm_placement=placement, dropout=0.0, d_model=16).build(
        src_vocab_size=9, tgt_vocab_size=9, shared_vocab=True, pad_id=0
    )
    hidden = model.encode(torch.randint(4, 9, (3, 7)), source_mask()).hidden
    torch.testing.assert_close(hidden.mean(-1), torch.zeros(3, 7), atol=1e-5, rtol=0)
    torch.testing.assert_close(hidden.std(-1, correction=0), torch.ones(3, 7), atol=1e-3, rtol=0)


def test_attention_maps_are_named_and_taken_on_the_way() -> None:
    torch.manual_seed(0)
    model = (
        TransformerConfig(num_encoder_layers=2, num_decoder_layers=1)
        .build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0)
        .eval()
    )
    src, tgt_in = torch.randint(4, 19, (3, 7)), torch.randint(4, 19, (3, 5))
    maps = model.attention_maps(src, source_mask(), tgt_in)
    assert list(maps) == ["encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"]
    collected: list[Tensor] = []
    with_maps = model.decode(tgt_in, model.encode(src, source_mask(), collected), collected)
    torch.testing.assert_close(with_maps, model(src, source_mask(), tgt_in), **CLOSE)
    for found, weights in zip(maps.values(), collected, strict=True):
        assert torch.equal(found, weights)
    cross, layer = maps["decoder.0.cross"], model.decoder_layers[0]
    memory = model.encode(src, source_mask()).hidden
    normed = layer.cross_attention_residual.norm(self_attended(layer, model.tgt_embedding(tgt_in)))
    query = layer.cross_attention.query_proj(normed).view(3, 5, 4, 32)
    key = layer.cross_attention.key_proj(memory).view(3, 7, 4, 32)
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / 32**0.5
    torch.testing.assert_close(cross, scores.masked_fill(~padding_mask(source_mask()), -torch.inf).softmax(-1), **CLOSE)


def self_attended(layer: nn.Module, x: Tensor) -> Tensor:
    y = layer.self_attention_residual.norm(x)
    return x + layer.self_attention(y, y, causal_mask(x.size(1)))


def test_each_sublayer_may_begin_smaller() -> None:
    models = []
    for shrink in (True, False):
        torch.manual_seed(1)
        config = TransformerConfig(
            d_model=16, num_heads=2, d_ff=32, num_encoder_layers=8, num_decoder_layers=3, shrink_residuals=shrink
        )
        models.append(config.build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0))
    plain = dict(models[1].named_parameters())
    shrunk = []
    for name, parameter in models[0].named_parameters():
        if not torch.equal(parameter, plain[name]):
            torch.testing.assert_close(parameter, plain[name] / (4 if "encoder" in name else 3))
            shrunk.append(name)
    assert [name.split(".", 2)[2] for name in shrunk if "encoder" in name] == [
        "self_attention.output_proj.weight",
        "feed_forward.contract.weight",
    ] * 8
    assert len([name for name in shrunk if "decoder" in name]) == 3 * 3
