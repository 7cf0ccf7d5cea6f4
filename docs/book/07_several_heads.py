# %% [markdown]
# # 7. Several heads (多头注意力)
#
# One attention gives one mean. With several heads (头), each in its own part of the features, a position can look at
# several places for several reasons (Vaswani et al. 2017, 3.2.2).
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right) V$$
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# ## Why divided by the square root
#
# A dot product of two vectors of $d$ independent numbers of variance 1 has the variance $d$. The softmax of large
# numbers is nearly 0 and 1, and its gradient is nearly 0: nothing is learnt. Divided by $\sqrt d$ the variance is 1 again.

# %%
import torch

from dragoman.analysis.figure import new_figure
from dragoman.learn.chapter import show

torch.manual_seed(1)
widths = [4, 16, 64, 256, 1024]
rows = []
for d in widths:
    q, k = torch.randn(500, d), torch.randn(500, d)
    products = (q * k).sum(-1)
    scores = q @ k.T
    rows.append(
        (
            d,
            float(products.var()),
            float((products / d**0.5).var()),
            float(scores.softmax(-1).amax(-1).mean()),
            float((scores / d**0.5).softmax(-1).amax(-1).mean()),
        )
    )
    print(
        "d {:>4}: variance {:7.1f}, scaled {:.2f}; largest of 500 weights {:.2f}, scaled {:.3f}".format(
            *rows[-1]
        )
    )

# %%
figure = new_figure(7.5, 3.0, "With and without the square root")
left, right = figure.subplots(1, 2)
left.loglog(widths, [row[1] for row in rows], marker="o", label="Q K")
left.loglog(widths, [row[2] for row in rows], marker="o", label="Q K / sqrt(d)")
left.set_xlabel("d")
left.set_ylabel("variance of a score")
left.legend()
right.semilogx(widths, [row[3] for row in rows], marker="o")
right.semilogx(widths, [row[4] for row in rows], marker="o")
right.set_xlabel("d")
right.set_ylabel("largest weight of a query")
right.set_ylim(0, 1)
show(
    figure,
    "variance",
    "Left: the variance of a score grows with d, divided by the root it stays at 1. Right: the largest weight of a query "
    "goes to 1 with d, scaled it stays small.",
)

# %% [check]
for d, variance, scaled_variance, largest, scaled_largest in rows:
    assert 0.8 * d < variance < 1.25 * d
    assert 0.8 < scaled_variance < 1.25
    assert scaled_largest < 0.05 < largest
assert rows[-1][3] > 0.9

# %% [markdown]
# ## Splitting the heads
#
# (batch, len, d_model) becomes (batch, heads, len, d_head): first the last dimension is split, *then* two are exchanged.
# A `view` to that shape has the right shape and wrong numbers: it cuts positions into pieces. No error is raised.
#
# > code: nn/attention.py: MultiHeadAttention.split_heads

# %%
x = torch.arange(2 * 3 * 4).view(1, 6, 4)  # six positions of four features
print("right, head 0:", x.unflatten(-1, (2, 2)).transpose(1, 2)[0, 0].tolist())
print("view,  head 0:", x.reshape(1, 2, 6, 2)[0, 0].tolist())

# %% [check]
assert x.reshape(1, 2, 6, 2).shape == x.unflatten(-1, (2, 2)).transpose(1, 2).shape
assert not x.reshape(1, 2, 6, 2).equal(x.unflatten(-1, (2, 2)).transpose(1, 2))

# %% [markdown]
# ## The same as PyTorch's
#
# `torch.nn.MultiheadAttention` with the same weights gives the same output and the same maps: a test of everything at
# once (heads, scale, mask, softmax). Its mask has the other convention, True = hidden; chapter 5 shows the trap.
#
# > code: learn/selftests.py: attention_is_pytorchs

# %%
from dragoman.learn.selftests import attention_is_pytorchs

attention_is_pytorchs()
print("equal")

# %% [markdown]
# ## Textbook and fused
#
# Training uses PyTorch's fused kernel, which never stores the weights; the textbook above is what runs where maps are
# asked for. Both are tested against each other.
#
# > code: backends/fused_attention.py: fused_attention

# %%
from dragoman.backends.fused_attention import fused_attention
from dragoman.nn.attention import scaled_dot_product_attention
from dragoman.nn.masks import causal_mask

q, k, v = (torch.randn(2, 4, 7, 8) for _ in range(3))
textbook, _ = scaled_dot_product_attention(q, k, v, causal_mask(7))
print(
    "largest difference", float((textbook - fused_attention(q, k, v, causal_mask(7))).abs().max())
)

# %% [check]
assert torch.allclose(textbook, fused_attention(q, k, v, causal_mask(7)), atol=1e-5)

# %% [markdown]
# ## Parameters (参数)
#
# Four matrices of $d \times d$ and four biases, whatever the number of heads: $4 d^2 + 4 d$. With fewer heads of keys
# and values (grouped-query attention, Ainslie et al. 2023) two of them are narrower, and so is the cache of a search.

# %%
from dragoman.nn.attention import MultiHeadAttention

for heads, kv_heads in ((8, 8), (1, 1), (8, 2), (8, 1)):
    module = MultiHeadAttention(512, heads, num_kv_heads=kv_heads)
    print(
        f"{heads} heads, {kv_heads} of keys and values: {sum(p.numel() for p in module.parameters()):,}"
    )

# %% [check]
for heads in (1, 8):
    assert (
        sum(p.numel() for p in MultiHeadAttention(512, heads).parameters()) == 4 * 512**2 + 4 * 512
    )

# %% [markdown]
# Heads of full width, each with d_model features of its own, multiply the parameters by the number of heads. In the paper,
# and in all recipes here, a head has d_model / num_heads features.

# %%
full = MultiHeadAttention(512, 8, d_head=512)
print(
    f"8 heads of full width: {sum(p.numel() for p in full.parameters()):,}",
    tuple(full(torch.randn(1, 3, 512), torch.randn(1, 5, 512), None).shape),
)

# %% [markdown]
# ## If you come from other notes
#
# d2l's `transpose_qkv` folds heads into the batch, (batch * heads, len, d_head), a sentence's heads side by side; the
# numbers are the same. What belongs to a sentence (`valid_len`) must then be repeated in the same order. In some
# editions it was not: `docs/other-notes.md`.
#
# ## Exercises and bugs
#
# `dragoman learn check 7`: `split_heads`, `merge_heads`, `count_parameters`. Bugs 18 (view) and 19 (the square root).
