# %% [markdown]
# # 5. The masked loss (带掩码的损失)
#
# The loss of a token is $-\log p$ of the right one. The loss of a batch is the mean over **real** tokens. Three
# mistakes are made again and again: padding is counted, it is divided by the wrong number, softmax is applied twice.

# %%
import math

import torch
from torch.nn import functional as F

from dragoman.data.batch import collate
from dragoman.learn.chapter import show
from dragoman.training.loss import token_loss

batch = collate([([5, 6, 7], [8, 9, 10, 11, 12]), ([5], [8])])
print(batch.tgt_out)
print(batch.tgt_mask.int(), "real tokens:", batch.num_tokens)

# %% [markdown]
# ## A model that knows nothing
#
# With equal logits over $V$ entries each token costs $\ln V$. That is the first thing to check of any loss.
#
# > code: training/loss.py: token_loss

# %%
V = 14
logits = torch.zeros(2, batch.tgt_out.size(1), V)
loss = token_loss(logits, batch.tgt_out, batch.tgt_mask)  # a sum
print(f"{float(loss) / batch.num_tokens:.4f} nats a token; ln V = {math.log(V):.4f}")

# %% [markdown]
# Dragoman's losses are sums. The training step divides once, by the number of real tokens of the whole step, so that
# the result does not depend on how a step is cut into micro-batches.
#
# > code: training/step.py: TrainingStep.update
#
# ## Divided by what?
#
# Here is the same batch with more and more padding. The right loss does not move. With padding counted, or divided by
# all positions, it tells how much padding there is.

# %%
torch.manual_seed(1)
shares, right, counted, by_all = [], [], [], []
for width in range(5, 30):
    scores = torch.randn(1, 5, V, generator=torch.Generator().manual_seed(3))
    targets = torch.tensor([[4, 5, 6, 7, 8]])
    padded = F.pad(scores, (0, 0, 0, width - 5))
    tgt = F.pad(targets, (0, width - 5))
    real = torch.arange(width)[None] < 5
    each = F.cross_entropy(padded.flatten(0, 1), tgt.flatten(), reduction="none")
    shares.append(1 - 5 / width)
    right.append(float(token_loss(padded, tgt, real)) / 5)
    counted.append(float(each.mean()))
    by_all.append(float((each * real.flatten()).mean()))

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7, 3.2, "One sentence's loss, by the share of padding in its batch")
axes = figure.subplots()
for label, values in (("real tokens", right), ("padding counted", counted), ("divided by all positions", by_all)):
    axes.plot(shares, values, label=label)
axes.set_xlabel("share of padding")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(figure, "loss-by-padding")

# %% [markdown]
# ## Softmax twice
#
# `F.cross_entropy` takes logits and applies the softmax itself. Given probabilities it applies a second one: a model
# that is certain, $p = (1, 0, \dots, 0)$, still has the loss $\ln(e + V - 1) - 1$, and its gradients are tiny.

# %%
sure = 20.0 * F.one_hot(torch.tensor([4]), V).float()
print(f"once  {float(F.cross_entropy(sure, torch.tensor([4]))):.4f}")
print(
    f"twice {float(F.cross_entropy(sure.softmax(-1), torch.tensor([4]))):.4f}; ln(e + V - 1) - 1 = {math.log(math.e + V - 1) - 1:.4f}"
)

# %% [markdown]
# ## Perplexity (困惑度)
#
# $e$ to the mean loss: among how many equally likely tokens the model hesitates.

# %%
print(f"loss 2.64 is a perplexity of {math.exp(2.64):.1f}; 1.57 (our Multi30k models) one of {math.exp(1.57):.1f}")

# %% [markdown]
# ## Where the notes differ
#
# - d2l's `MaskedSoftmaxCELoss` multiplies by a mask of weights and takes the mean over all `num_steps`: divided by the
#   padded length, so short sentences count less. PyTorch's `ignore_index` divides by real tokens, as we do.
# - One project of the notes applies a softmax in its model and `CrossEntropyLoss` after it.
#
# ## Exercises and bugs
#
# `dragoman learn check 5`: `masked_cross_entropy`, `perplexity`. Bugs 4, 5 (divided by what?) and 14 (softmax twice).
