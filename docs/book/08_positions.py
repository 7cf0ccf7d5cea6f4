# %% [markdown]
# # 8. Positions (位置编码)
#
# Attention sees a set: exchange two words and the same numbers come out, exchanged. Something has to say where a word stands.
#
# ## Sinusoids
#
# $$PE(pos, 2i) = \sin\!\left(\frac{pos}{10000^{2i/d}}\right), \qquad PE(pos, 2i+1) = \cos\!\left(\frac{pos}{10000^{2i/d}}\right)$$
#
# Pairs of dimensions, each a clock hand with its own speed: the first turns once in 6.3 positions, the last of 512
# dimensions once in about 60,000.
#
# > code: nn/positions.py: sinusoidal_table

# %%
import torch

from dragoman.analysis.positions import sinusoidal_figure
from dragoman.analysis.printed import positions_text
from dragoman.learn.chapter import show
from dragoman.nn.positions import sinusoidal_table

print(positions_text(8, [0, 1, 2, 28]))

# %%
show(
    sinusoidal_figure(100, 32, rows=(28,)),
    "sinusoids",
    "Above: the sinusoidal table in four layouts, fast waves left and slow ones right. Below: its row at position 28, and "
    "how alike two positions are: with sine and cosine the curves of different starts coincide.",
)

# %% [markdown]
# At `pos = 28` the first hand has turned more than four times; its row is drawn above. The base need not be 10,000: with
# 1,000 the slowest of these four hands turns 5.6 times as fast, and the vectors of 300 positions are still different.
# (`model.position.base` in a recipe.)

# %%
print(positions_text(8, [28], base=1000))

# %% [check]
from dragoman.nn.positions import sinusoidal_rates

assert 28 / (2 * torch.pi) > 4
assert round(float(sinusoidal_rates(8, base=1000)[-1] / sinusoidal_rates(8)[-1]), 1) == 5.6
assert 60_000 < 2 * torch.pi / float(sinusoidal_rates(512)[-1]) < 62_832
apart = torch.cdist(
    *[sinusoidal_table(300, 8, base=1000)] * 2, compute_mode="donot_use_mm_for_euclid_dist"
)
assert (apart + torch.eye(300)).min() > 0.01
assert 0.70 < float(sinusoidal_table(300, 512).square().mean().sqrt()) < 0.72

# %% [markdown]
# ## A move is a rotation
#
# $\sin(a + b) = \sin a \cos b + \cos a \sin b$: the vector of $pos + k$ is the vector of $pos$ with each pair turned by
# $k$ times its speed, whatever $pos$ is. So "three words before" is the same linear map everywhere.

# %%
d, k = 16, 5
table = sinusoidal_table(60, d)
turn = k * 10_000 ** (-torch.arange(0, d, 2) / d)
sin, cos = table.unflatten(1, (-1, 2)).unbind(-1)
moved = torch.stack(
    [sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()], dim=-1
).flatten(1)
print("largest difference to PE(pos + 5):", float((moved[:-k] - table[k:]).abs().max()))

# %% [check]
assert torch.allclose(moved[:-k], table[k:], atol=1e-5)

# %% [markdown]
# And how alike two positions are depends on their distance alone:

# %%
alike = table @ table.T / (d / 2)
print(
    [round(float(alike[p, p + 3]), 4) for p in (0, 10, 40)],
    "at distance 3;",
    [round(float(alike[p, p + 20]), 4) for p in (0, 10, 30)],
    "at 20",
)

# %% [check]
for distance in (3, 20):
    values = torch.diagonal(alike, distance)
    assert torch.allclose(values, values[0].expand(len(values)), atol=1e-5)

# %% [markdown]
# ## Rotary positions (旋转位置)
#
# Turn queries and keys themselves: the score of a query at $m$ and a key at $n$ then depends on $m - n$ (Su et al. 2021).
# Dragoman's records on Multi30k use it.
#
# > code: nn/positions.py: RotaryPositions.rotate

# %%
from dragoman.analysis.positions import rotary_figure

show(
    rotary_figure(40, 16),
    "rotary",
    "Clock hands that turn with the position, each pair at its own speed; and scores by the distance of query and key: "
    "the curves of three starts coincide.",
)

# %% [markdown]
# ## ALiBi
#
# Subtract from the score a slope times the distance; each head has its own slope (Press et al. 2022).
#
# > code: nn/positions.py: AlibiPositions.bias

# %%
from dragoman.nn.positions import alibi_slopes

print(alibi_slopes(8))

# %% [markdown]
# ## Learned, and none
#
# A trained vector for each of the first `max_len` positions is what BERT and GPT-2 have; longer sentences are refused.
# Without any positions a decoder still knows something of order, by its causal mask; an encoder knows nothing. On the toy task:

# %%
from dragoman.learn.laboratory import train

losses = {}
for scheme in ("sinusoidal", "rotary", "alibi", "learned", "none"):
    trained = train(seed=1, position={"type": scheme})
    losses[scheme] = trained.last_loss
    print(f"{scheme:<11} loss {trained.last_loss:.3f}  right {trained.exact('reverse'):.0%}")

# %% [check]
assert max(losses, key=losses.get) == "none"
assert losses["none"] > 2 * losses["alibi"]

# %% [markdown]
# Without positions next to nothing is right. ALiBi is behind the others here: to reverse is to look far away, and its
# bias makes what is far away small.

# %% [markdown]
# ## Words must not drown
#
# Positions have numbers of size 0.7. Embeddings that serve as output matrix too begin with numbers of $d^{-1/2}$; that is
# why they are multiplied by $\sqrt d$ before positions are added.
#
# > code: nn/embeddings.py: TokenEmbedding
#
# ## If you come from other programs
#
# - Hugging Face's Marian puts all sines first, then all cosines; the numbers are the same in another order
#   (`layout: half_split`). A model's weights fit one order alone. The figure above shows four.
# - tensor2tensor, Marian and fairseq put sines first too, and their speeds are slightly other ones, so that the slowest
#   hand turns by 1/10,000 exactly (`layout: fairseq`). fairseq counts positions from 2.
#
# ## Exercises and bugs
#
# `dragoman learn check 8`: `sinusoid`, `move`. Bugs 20 (no positions), 21 (along the batch), 22 (one wave), 26 (no square root).
