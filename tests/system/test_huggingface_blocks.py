"""A block of the Vision Transformer and one of GPT-2 equal Hugging Face's, in outputs and gradients, weights copied."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dragoman.models.blocks import BlockConfig, DecoderLayer, EncoderLayer
from dragoman.nn.masks import causal_mask

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

CLOSE = {"atol": 2e-5, "rtol": 1e-4}
D_MODEL, HEADS, D_FF = 32, 4, 64
Part = Callable[[Tensor], Tensor]
Links = list[tuple[Tensor, Tensor, Part]]
"""Our parameter, theirs, and the part of theirs (or of its gradient) that ours is equal to."""


def whole(tensor: Tensor) -> Tensor:
    return tensor


def transposed(tensor: Tensor) -> Tensor:
    """Hugging Face's `Conv1D` keeps a matrix the other way round."""
    return tensor.T


def third(index: int) -> Part:
    """Queries, keys or values of a projection that makes all three."""
    return lambda tensor: tensor.t().chunk(3)[index]


def link(ours: nn.Module, theirs: nn.Module, weight: Part = whole, bias: Part = whole) -> Links:
    return [(ours.weight, theirs.weight, weight), (ours.bias, theirs.bias, bias)]


def copy_weights(theirs: nn.Module, links: Links) -> None:
    """Random biases and gains too: one that is forgotten would go unseen at its first value."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            nn.init.normal_(parameter, std=0.3)
        for own, other, part in links:
            own.copy_(part(other))


def assert_equal(ours: Tensor, theirs: Tensor, links: Links) -> None:
    torch.testing.assert_close(ours, theirs, **CLOSE)
    upstream = torch.randn_like(ours)
    mine = torch.autograd.grad(ours, [own for own, _, _ in links], upstream)
    other = torch.autograd.grad(theirs, [other for _, other, _ in links], upstream)
    for gradient, expected, (_, _, part) in zip(mine, other, links, strict=True):
        torch.testing.assert_close(gradient, part(expected), **CLOSE)


def output(result: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Versions of the library differ in whether a block returns a tuple."""
    return result[0] if isinstance(result, tuple) else result


def test_a_block_of_the_vision_transformer() -> None:
    from transformers import ViTConfig
    from transformers.models.vit.modeling_vit import ViTLayer

    torch.manual_seed(0)
    theirs = ViTLayer(
        ViTConfig(
            hidden_size=D_MODEL, num_attention_heads=HEADS, intermediate_size=D_FF, hidden_act="gelu",
            layer_norm_eps=1e-12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )
    )  # fmt: skip
    ours = EncoderLayer(
        BlockConfig(
            d_model=D_MODEL, num_heads=HEADS, d_ff=D_FF, dropout=0.0, activation="gelu", norm_placement="pre",
            norm_eps=1e-12,
        )
    )  # fmt: skip
    attention = ours.self_attention
    projections = [attention.query_proj, attention.key_proj, attention.value_proj, attention.output_proj]
    projections += [ours.feed_forward.expand, ours.feed_forward.contract]
    # Their names differ between versions of the library, their order does not.
    links: Links = []
    for own, other in zip(projections, [m for m in theirs.modules() if isinstance(m, nn.Linear)], strict=True):
        links += link(own, other)
    links += link(ours.self_attention_residual.norm, theirs.layernorm_before)
    links += link(ours.feed_forward_residual.norm, theirs.layernorm_after)
    copy_weights(theirs, links)
    assert len(links) == len(list(ours.parameters())) == len(list(theirs.parameters()))

    patches = torch.randn(3, 7, D_MODEL)
    assert_equal(ours(patches, None), output(theirs(patches)), links)


def test_a_block_of_gpt_2() -> None:
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    torch.manual_seed(0)
    theirs = GPT2Block(
        GPT2Config(
            n_embd=D_MODEL, n_head=HEADS, n_inner=D_FF, activation_function="gelu_new", layer_norm_epsilon=1e-5,
            resid_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
        ),
        layer_idx=0,
    )  # fmt: skip
    config = BlockConfig(
        d_model=D_MODEL, num_heads=HEADS, d_ff=D_FF, dropout=0.0, activation="gelu_tanh", norm_placement="pre"
    )
    ours = DecoderLayer(config, cross_attention=False)
    attention, links = ours.self_attention, Links()
    for index, projection in enumerate((attention.query_proj, attention.key_proj, attention.value_proj)):
        links += link(projection, theirs.attn.c_attn, third(index), third(index))
    links += link(attention.output_proj, theirs.attn.c_proj, transposed)
    links += link(ours.feed_forward.expand, theirs.mlp.c_fc, transposed)
    links += link(ours.feed_forward.contract, theirs.mlp.c_proj, transposed)
    links += link(ours.self_attention_residual.norm, theirs.ln_1)
    links += link(ours.feed_forward_residual.norm, theirs.ln_2)
    copy_weights(theirs, links)
    assert len(links) == len(list(ours.parameters())) == len(list(theirs.parameters())) + 4  # one for three, twice

    x, visible = torch.randn(3, 7, D_MODEL), causal_mask(7)
    additive = torch.zeros(1, 1, 7, 7).masked_fill(~visible, torch.finfo(torch.float32).min)
    assert_equal(ours(x, visible), output(theirs(x, attention_mask=additive)), links)
