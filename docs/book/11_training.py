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
show(schedules_figure(noam, others, 2000), "schedules")

# %% [markdown]
# Does the warm-up matter? In a deep post-norm model it is the difference between learning and not (chapter 1). Bug 3
# takes it away.

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
show(figure, "warm-up")

# %% [markdown]
# ## Label smoothing (标签平滑)
#
# The target is not "1 at the right token" but $1 - \epsilon$ there and the rest spread over the vocabulary. There are
# two forms in the notes, and they are not the same:
#
# - ours, PyTorch's and Szegedy's: $\epsilon / V$ for every entry, the right one among them;
# - the annotated notebook's: $\epsilon / (V - 2)$ for all but the right token and padding, whose row is 0.
#
# `LabelSmoothing(5, 0, 0.4)` of the notebook is the second table here.
#
# > code: training/loss.py: textbook_loss
#
# > code: analysis/printed.py: without_pad

# %%
from dragoman.analysis.printed import smoothing_text

print(smoothing_text([0.4], vocab_size=5, target=2))

# %% [markdown]
# Smoothing punishes certainty: from some probability on, the loss rises again. The curve for several $\epsilon$:

# %%
from dragoman.analysis.smoothing import smoothing_figure

show(smoothing_figure([0.0, 0.1, 0.2, 0.4]), "smoothing")

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

small = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
print("cleared:    ", " ".join(f"{loss:.2f}" for loss in train_one_sentence(1, steps=40, lr=1e-3, **small)[::4]))
with BUGS[26].planted():
    print("not cleared:", " ".join(f"{loss:.2f}" for loss in train_one_sentence(1, steps=40, lr=1e-3, **small)[::4]))

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
for name, plan in (("by length", BatchPlan(lengths, lengths, batch_tokens=512)),):
    print(f"{name}: {plan.num_batches} batches, {plan.fill:.1%} of their positions are real tokens")
mixed = sum(lengths) + len(lengths)
widest = [max(lengths[start : start + 24]) + 1 for start in range(0, 600, 24)]
print(f"in the order of the text: {mixed / sum(24 * width for width in widest):.1%}")

# %% [markdown]
# ## Where the notes differ
#
# - The notebook's `rate` guards step 0 by `if step == 0: step = 1`.
# - The notes' Multi30k project uses Adam at a constant rate and `ReduceLROnPlateau` (`schedule: {type: plateau}` here).
#
# ## Exercises and bugs
#
# `dragoman learn check 11`: `noam`, `smooth`, `smooth_without_pad`. Bugs 27, 28, 29, 36.
