# %% [markdown]
# # 6. The masked loss (带掩码的损失)
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
# That holds for logits: they go in as they are, without a softmax. The ids of `tgt_out` are the numbers of the right
# entries, from 0 to $V - 1$; `<pad>` (0) is one of these numbers, so a loss without a mask takes it for a word.
#
# Dragoman's losses are sums. The training step divides once, by the number of real tokens of the whole step, so that
# the result does not depend on how a step is cut into micro-batches.
#
# > code: training/step.py: TrainingStep.update
#
# ## Divided by what?
#
# Here is one sentence of five tokens in wider and wider batches. Its logits stay the same; at padding the model knows
# nothing (equal logits). The right loss does not move. With padding counted it moves towards $\ln V$, the loss at the
# padding; divided by all positions it falls towards 0. Both say how much padding there is.

# %%
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
for label, values in (
    ("real tokens", right),
    ("padding counted", counted),
    ("divided by all positions", by_all),
):
    axes.plot(shares, values, label=label)
axes.set_xlabel("share of padding")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(
    figure,
    "loss-by-padding",
    "Only the mean over real tokens is the same at every share of padding",
)

# %% [check]
import itertools

assert abs(float(loss) / batch.num_tokens - math.log(V)) < 1e-5
assert max(right) - min(right) < 1e-5
assert all(
    abs(two - math.log(V)) < abs(one - math.log(V)) for one, two in itertools.pairwise(counted)
)
assert all(two < one for one, two in itertools.pairwise(by_all))
assert (
    abs(right[0] - counted[0]) + abs(right[0] - by_all[0]) < 1e-5
)  # without padding all three are the same
noise = torch.randn(*batch.tgt_out.shape, V, generator=torch.Generator().manual_seed(4))
parts = [
    token_loss(noise[n : n + 1], batch.tgt_out[n : n + 1], batch.tgt_mask[n : n + 1])
    for n in range(2)
]
whole = token_loss(noise, batch.tgt_out, batch.tgt_mask)
assert abs(float(sum(parts) - whole)) < 1e-4  # sums: cut as one likes
means = [float(part) / int(mask.sum()) for part, mask in zip(parts, batch.tgt_mask, strict=True)]
assert (
    abs(sum(means) / 2 - float(whole) / batch.num_tokens) > 1e-3
)  # and a mean of means is something else

# %% [markdown]
# ## Softmax twice
#
# `F.cross_entropy` takes logits and applies the softmax itself. Given probabilities it applies a second softmax. A
# probability is between 0 and 1, and numbers that are so near to each other never give a sure distribution: whatever
# the model says, the loss lies between $\ln(e + V - 1) - 1$ (it is certain and right) and $\ln(e + V - 1)$ (it is
# certain and wrong). That is one nat from the best to the worst.
#
# The loss says little, and the gradient says less. A model that is certain and wrong should learn most. With one
# softmax the gradient's length is then $\sqrt 2$; with two it is nearly 0, for the first softmax is flat there.

# %%
four = torch.tensor([4])
print("the model is certain of entry 4")
for target in (4, 5):
    for times in ("once", "twice"):
        sure = (20.0 * F.one_hot(four, V)).requires_grad_()
        value = F.cross_entropy(
            sure if times == "once" else sure.softmax(-1), torch.tensor([target])
        )
        value.backward()
        print(
            f"right is {target}, softmax {times:<5}: loss {value.item():7.4f}, gradient {sure.grad.norm().item():.4f}"
        )
print(f"ln(e + V - 1) - 1 = {math.log(math.e + V - 1) - 1:.4f}")

# %% [markdown]
# A *log*-softmax twice does no harm: a log-softmax of log probabilities changes nothing, as they are normalised already.
# So a model that ends in `log_softmax` may be given to `F.cross_entropy`, and one that ends in `softmax` may not.

# %% [check]
low = math.log(math.e + V - 1) - 1


def loss_and_gradient(logits: torch.Tensor, target: int, twice: bool) -> tuple[float, float]:
    logits = logits.clone().requires_grad_()
    value = F.cross_entropy(logits.softmax(-1) if twice else logits, torch.tensor([target]))
    value.backward()
    return value.item(), logits.grad.norm().item()


certain = 20.0 * F.one_hot(four, V).float()
assert loss_and_gradient(certain, 4, twice=False)[0] < 1e-5
assert abs(loss_and_gradient(certain, 4, twice=True)[0] - low) < 1e-4
assert abs(loss_and_gradient(certain, 5, twice=True)[0] - low - 1) < 1e-4
assert abs(loss_and_gradient(certain, 5, twice=False)[1] - math.sqrt(2)) < 1e-3
assert loss_and_gradient(certain, 5, twice=True)[1] < 1e-5
rows = 8.0 * torch.randn(2000, V, generator=torch.Generator().manual_seed(5))
doubled = F.cross_entropy(rows.softmax(-1), torch.arange(2000) % V, reduction="none")
assert low - 1e-5 <= float(doubled.min()) < float(doubled.max()) <= low + 1 + 1e-5
labels = torch.arange(2000) % V
assert torch.allclose(
    F.cross_entropy(rows.log_softmax(-1), labels), F.cross_entropy(rows, labels), atol=1e-4
)

# %% [markdown]
# ## Perplexity (困惑度)
#
# $e$ to the mean loss: among how many equally likely tokens the model hesitates.

# %%
for nats in (math.log(V), 1.0, 0.1):
    print(f"a loss of {nats:.2f} is a perplexity of {math.exp(nats):.2f}")

# %% [markdown]
# ## If you come from d2l or from PyTorch
#
# - d2l (d2l.ai, the chapter on sequence to sequence, `MaskedSoftmaxCELoss` of its PyTorch code) multiplies each token's
#   loss by a mask and takes the mean over `num_steps`, padding among them. Then the sum over the sentences is divided
#   by the number of real tokens for the log (`train_seq2seq`). So its printed loss is nats per token divided by
#   `num_steps`: with ten steps a printed 0.02 is 0.2 nats per token.
# - `F.cross_entropy(..., ignore_index=0)` divides by the real tokens, as we do.

# %% [check]
losses = F.cross_entropy(noise.flatten(0, 1), batch.tgt_out.flatten(), reduction="none").view_as(
    batch.tgt_out
)
num_steps = batch.tgt_out.size(1)
d2l_printed = (losses * batch.tgt_mask).mean(dim=1).sum() / batch.tgt_mask.sum()
assert torch.allclose(d2l_printed * num_steps, whole / batch.num_tokens, atol=1e-5)
ignored = F.cross_entropy(noise.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0)
assert torch.allclose(ignored, whole / batch.num_tokens, atol=1e-5)
assert abs(math.exp(math.log(V)) - V) < 1e-9

# %% [markdown]
# ## Exercises and bugs
#
# `dragoman learn check 6`: `masked_cross_entropy`, `perplexity`. Bugs 4, 5 (divided by what?) and 14 (softmax twice).
