# %% [markdown]
# # 9. Norms, residual connections, feed-forward (归一化、残差、前馈)
#
# What stands between attentions makes a deep model trainable.
#
# ## LayerNorm (层归一化)
#
# Each position's features get mean 0 and variance 1, then a gain and a bias of their own:
#
# $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \, g + b$$
#
# It knows nothing of other positions or sentences. BatchNorm (批归一化) takes one feature of *all* tokens together, padding
# among them: what a sentence becomes depends on its batch. That is why Transformers do not use it.

# %%
import torch
from torch import nn
from torch.nn import functional as F

from dragoman.analysis.norms import normed_batch, norms_figure
from dragoman.learn.chapter import show

sentences, versions = normed_batch(["i want a beer", "we read"])
show(
    norms_figure(sentences, versions),
    "norms",
    "The vectors of a batch of two sentences before a norm, after LayerNorm and after BatchNorm: LayerNorm treats each "
    "position alone, BatchNorm each feature over all tokens.",
)

# %% [markdown]
# The Annotated Transformer (2018 and 2022) divides by the standard deviation with $n - 1$ plus $\epsilon$. PyTorch, and the
# paper of layer normalization (Ba et al. 2016), divide by the root of (variance with $n$, plus $\epsilon$). With 512
# features the difference is 0.1 %; with 4 it is 15 %.

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
print("LayerNorm        ", F.layer_norm(x, (4,)))
print("with n - 1       ", (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6))
print("RMSNorm, no mean ", F.rms_norm(x, (4,)))

# %% [check]
for width, percent in ((512, 0.1), (4, 15)):
    x_of_width = torch.randn(1, width)
    with_n_minus_1 = (x_of_width - x_of_width.mean()) / (x_of_width.std() + 1e-6)
    ratio = float((F.layer_norm(x_of_width, (width,)) / with_n_minus_1).mean())
    assert abs(100 * (ratio - 1) - percent) < 0.5

# %% [markdown]
# ## Where it stands: post, pre (后置、前置)
#
# post-norm, the paper's: $\text{norm}(x + f(x))$. pre-norm: $x + f(\text{norm}(x))$, with one more norm at the end of the
# stack. output-norm: $x + \text{norm}(f(x))$. The Annotated Transformer is pre-norm, though it quotes the paper's words.
#
# > code: nn/residual.py: PostNorm.forward
#
# > code: nn/residual.py: PreNorm.forward
#
# In pre-norm and output-norm the path from the loss to the first layer has nothing on it but additions. Here are the
# gradients of each layer's feed-forward matrix in twelve fresh layers. In post-norm they shrink layer by layer on their
# way down; in the other two all layers get about the same.

# %%
from dragoman.analysis.figure import new_figure
from dragoman.data.batch import collate
from dragoman.learn.laboratory import build, pairs
from dragoman.training.loss import token_loss

figure = new_figure(7, 3.3, "Gradient of each decoder layer before training")
axes = figure.subplots()
batch = collate(pairs("reverse", "train", 40))
last_over_first = {}
for placement in ("pre", "post", "output"):
    model = build(
        1, norm_placement=placement, num_encoder_layers=12, num_decoder_layers=12, d_model=64
    )
    token_loss(
        model(batch.src, batch.src_mask, batch.tgt_in), batch.tgt_out, batch.tgt_mask
    ).backward()
    norms = [float(layer.feed_forward.expand.weight.grad.norm()) for layer in model.decoder_layers]
    last_over_first[placement] = norms[-1] / norms[0]
    axes.plot(range(1, 13), norms, marker="o", label=f"{placement}-norm")
    print(f"{placement:<7}", " ".join(f"{norm:.2f}" for norm in norms))
axes.set_xlabel("decoder layer")
axes.set_ylabel("norm of the gradient")
axes.set_yscale("log")
axes.legend()
show(
    figure,
    "gradient-by-depth",
    "Gradient of each of twelve decoder layers, on a logarithmic axis: nearly level for pre-norm and output-norm; for "
    "post-norm the first layer's is a hundredth of the last one's.",
)

# %% [check]
assert last_over_first["post"] > 50
assert 0.5 < last_over_first["pre"] < 2
assert 0.5 < last_over_first["output"] < 2

# %% [markdown]
# ## Without the path
#
# The residual connection (残差连接) is what lets deep models be trained at all. The laboratory's model has few layers, and
# misses it already:

# %%
from dragoman.learn.bugs import BUGS
from dragoman.learn.laboratory import train

without = next(bug for bug in BUGS if bug.name == "no path around the sublayer")
with_path = train(seed=1).last_loss
print(f"with it:    loss {with_path:.3f}")
with without.planted():
    without_path = train(seed=1).last_loss
print(f"without it: loss {without_path:.3f}")

# %% [check]
assert without_path > 10 * with_path

# %% [markdown]
# ## The feed-forward network
#
# $\text{relu}(x W_1 + b_1) W_2 + b_2$, the same for each position. It is a convolution (卷积) whose kernel is one position wide.
#
# > code: nn/feedforward.py: FeedForward.forward

# %%
from dragoman.nn.feedforward import FeedForward

network = FeedForward(4, 16, activation=nn.ReLU())
x = torch.randn(2, 5, 4)
inner = F.conv1d(x.transpose(1, 2), network.expand.weight[..., None], network.expand.bias).relu()
as_convolution = F.conv1d(
    inner, network.contract.weight[..., None], network.contract.bias
).transpose(1, 2)
print("largest difference", float((network(x) - as_convolution).abs().max().detach()))

# %% [check]
assert torch.allclose(network(x), as_convolution, atol=1e-5)

# %% [markdown]
# d2l's example `PositionWiseFFN(4, 4, 8)` has another output size than its input. In a residual connection that cannot
# be: what is added to $x$ must be as wide as $x$, so `FeedForward` has no such size.

# %%
from dragoman.nn.residual import PreNorm

print(PreNorm(nn.LayerNorm(4), dropout=0.0)(x, network).shape)

# %% [markdown]
# ## Exercises and bugs
#
# `dragoman learn check 9`: `layer_norm`, `as_convolution`, `pre_norm`. Bugs 23 (no path), 24 (no final norm).
