# %% [markdown]
# # 11. Training (训练)
#
# Rates, smoothing, and what an optimizer step is made of.
#
# ## Noam's schedule (学习率调度)
#
# $$\text{rate} = d_{model}^{-0.5} \min(\text{step}^{-0.5},\ \text{step} \cdot \text{warmup}^{-1.5})$$
#
# It rises in a straight line and falls with the root of the step; both meet at the end of the warm-up. Steps count from
# 1: at 0 the formula has no value.
#
# > code: training/schedules.py: NoamConfig.rate_at

# %%
from dragoman.analysis.schedules import noam_curves, other_curves, plateau_curve, schedules_figure
from dragoman.learn.chapter import show

noam = noam_curves([256, 512], [4000, 8000], 20000)
others = {**other_curves(1e-3, 2000, 20000), "plateau": plateau_curve(1e-3, 2000, 20000)}
show(
    schedules_figure(noam, others, 2000),
    "schedules",
    "Learning rates by step. Noam's rises in a straight line and falls with the root of the step, higher for a smaller "
    "model or a shorter warm-up; beside it the other schedules.",
)

# %% [check]
from dragoman.training.schedules import NoamConfig

schedule = NoamConfig(warmup_steps=4000)
rates = [schedule.rate_at(step, 20_000, 512) for step in (1, 2, 4000, 16000)]
assert abs(rates[1] / rates[0] - 2) < 1e-9
assert abs(rates[2] / rates[3] - 2) < 1e-9
assert rates[2] > max(schedule.rate_at(step, 20_000, 512) for step in (3999, 4001))

# %% [markdown]
# Does the warm-up matter? Bug 3 takes it away from a post-norm model of six layers.

# %%
from dragoman.learn.bugs import BUGS
from dragoman.learn.laboratory import train

no_warm_up = BUGS[2]
losses = {"with warm-up": train(1, **no_warm_up.toy).losses}
with no_warm_up.planted():
    losses["without"] = train(1, **no_warm_up.toy).losses

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7, 3.2, "Six post-norm layers, reversing")
axes = figure.subplots()
for label, values in losses.items():
    axes.plot(range(1, len(values) + 1), values, label=label)
axes.set_xlabel("step")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(
    figure,
    "warm-up",
    "Loss by step of the same model with a warm-up and without one: at the end the one with a warm-up is lower.",
)

# %% [check]
ends = {label: sum(values[-20:]) / 20 for label, values in losses.items()}
assert ends["with warm-up"] < ends["without"]

# %% [markdown]
# ## Label smoothing (标签平滑)
#
# The target is not "1 at the right token" but about $1 - \epsilon$ there and the rest spread over the vocabulary. Two forms
# are in use, and they are not the same:
#
# - ours, PyTorch's and Szegedy's: $\epsilon / V$ for every entry, the right one among them;
# - the Annotated Transformer's: $\epsilon / (V - 2)$ for all but the right token and padding, whose share is 0.
#
# Its `LabelSmoothing(5, 0, 0.4)` is the second row here.
#
# > code: training/loss.py: textbook_loss
#
# > code: analysis/printed.py: without_pad

# %%
from dragoman.analysis.printed import smoothing_text

print(smoothing_text([0.4], vocab_size=5, target=2))

# %% [check]
import torch
from torch.nn import functional as F

log_probs = torch.randn(1, 5).log_softmax(-1)
ours = torch.full((5,), 0.4 / 5).index_add(0, torch.tensor([2]), torch.tensor([0.6]))
by_pytorch = F.cross_entropy(log_probs, torch.tensor([2]), label_smoothing=0.4)
assert torch.allclose(-(ours * log_probs[0]).sum(), by_pytorch)

# %% [markdown]
# Smoothing punishes certainty: from some probability on, the loss rises again. The curve for several $\epsilon$:

# %%
from dragoman.analysis.smoothing import smoothing_figure

show(
    smoothing_figure([0.0, 0.1, 0.2, 0.4]),
    "smoothing",
    "Loss by the probability of the right token for four values of epsilon: without smoothing it falls to the end, with "
    "smoothing it has a lowest point and rises again.",
)

# %% [markdown]
# ## A step
#
# forward, backward, (again for each micro-batch), divide by the number of tokens, clip, update. Gradients of a step are
# those of this step alone: the old ones are cleared. That is `zero_grad`, and bug 27.
#
# > code: training/step.py: TrainingStep.take
#
# > code: training/step.py: TrainingStep.gradients

# %%
from dragoman.learn.one_sentence import train_one_sentence

small = {
    "d_model": 64,
    "num_heads": 4,
    "d_ff": 128,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "dropout": 0.0,
}
cleared = train_one_sentence(1, steps=40, lr=1e-3, **small)
with BUGS[26].planted():
    not_cleared = train_one_sentence(1, steps=40, lr=1e-3, **small)
print("cleared:    ", " ".join(f"{loss:.2f}" for loss in cleared[::4]))
print("not cleared:", " ".join(f"{loss:.2f}" for loss in not_cleared[::4]))

# %% [markdown]
# Not cleared, the loss falls too, more slowly, and jumps up again: each step still goes where the old ones went.

# %% [check]
from itertools import pairwise

assert max(after - before for before, after in pairwise(cleared[::4])) < 0.01
assert max(after - before for before, after in pairwise(not_cleared[::4])) > 0.2
assert not_cleared[20] > 5 * cleared[20]

# %% [markdown]
# ## Batches under a budget of tokens
#
# Sentences of about the same length go together, so that little of a batch is padding; the order of batches is shuffled,
# keyed by (seed, epoch). A killed run goes on with the same batches, to the same bytes.
#
# > code: data/batching.py: BatchPlan

# %%
from dragoman.data.batching import BatchPlan

lengths = [3 + 7 * n % 29 for n in range(600)]
plan = BatchPlan(lengths, lengths, batch_tokens=512)
print(f"by length: {plan.num_batches} batches, {plan.fill:.1%} of their positions are real tokens")
mixed = sum(lengths) + len(lengths)
widest = [max(lengths[start : start + 24]) + 1 for start in range(0, 600, 24)]
fill_in_order = mixed / sum(24 * width for width in widest)
print(f"in the order of the text: {fill_in_order:.1%}")

# %% [check]
assert plan.fill > 0.95 > 0.7 > fill_in_order

# %% [markdown]
# ## If you come from other notes
#
# The Annotated Transformer of 2022 counts steps from 0, so its `rate` takes a step 0 for step 1: the first two steps have
# the same rate. Its smoothing and its vocabulary are in `docs/other-notes.md`.
#
# ## Exercises and bugs
#
# `dragoman learn check 11`: `noam`, `smooth`, `smooth_without_pad`. Bugs 27, 28, 29, 36.
