# %% [markdown]
# # 1. One sentence (一个句子)
#
# The smallest training there is: one pair, "ich mochte ein bier" and "i want a beer". It is learnt by heart in seconds,
# and it shows all parts at work: ids, the shift between what a decoder reads and what it must say, a loss that falls.
# The pair is well known from a script: `5-1.Transformer` of graykode's nlp-tutorial, which many lecture notes repeat.
# This chapter also shows what the script does not mention: **with the script's sizes, its rate and the norm where the
# script has it, twenty steps do not teach this sentence**. One change alone cures it.
#
# Every chapter runs Dragoman's own code. Nothing is written a second time for teaching.

# %%
import torch

from dragoman.learn.chapter import show
from dragoman.learn.one_sentence import SRC_WORDS, TGT_WORDS, build, one_sentence, train_one_sentence

print("source words:", dict(enumerate(SRC_WORDS)))
print("target words:", dict(enumerate(TGT_WORDS)))

# %% [markdown]
# ## Words, ids, the shift (移位)
#
# The script has a vocabulary of five words for the source and of seven for the target: `P` is padding, `S` starts a
# sentence, `E` ends it. In Dragoman four specials come first in every vocabulary: `<pad>` 0, `<unk>` 1, `<s>` 2 and
# `</s>` 3, so the words of this pair have the ids 4 to 7.
#
# The decoder (解码器) reads `<s> i want a beer` and must say `i want a beer </s>`: at each position the next token.
# That is *teacher forcing* (强制教学): it reads the right tokens, not its own.
#
# > code: data/batch.py: collate
#
# > code: data/batch.py: _begin

# %%
batch = one_sentence()
print("src     ", batch.src.tolist())
print("tgt_in  ", batch.tgt_in.tolist(), " the decoder reads")
print("tgt_out ", batch.tgt_out.tolist(), " the decoder must say")

# %% [markdown]
# ## A small model learns it
#
# Two layers of 64 features, twenty steps of Adam. The loss (损失) is the mean over the five target tokens of
#
# $$-\log p(y_t \mid y_{<t}, x)$$
#
# in nats. A model that knows nothing and thinks all 8 entries equally likely has $\ln 8 = 2.08$. A model that knows
# which five tokens occur, and not where, has $\ln 5 = 1.61$. 0 is certainty.
#
# > code: training/loss.py: token_loss

# %%
small = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
small_losses = train_one_sentence(seed=1, lr=3e-3, warmup_steps=5, **small)
print(" ".join(f"{loss:.2f}" for loss in small_losses))

# %% [check]
import math

assert batch.tgt_in[0, 1:].tolist() == batch.tgt_out[0, :-1].tolist()  # the next token, at each position
assert batch.tgt_in[0].tolist() == [2, 4, 5, 6, 7]
assert batch.tgt_out[0].tolist() == [4, 5, 6, 7, 3]
assert (round(math.log(8), 2), round(math.log(5), 2)) == (2.08, 1.61)
assert small_losses[-1] < 0.3 < 1.5 < small_losses[0]  # "a small model learns it"

# %% [markdown]
# ## A large model does not; which change cures it?
#
# The script's sizes: d_model 512, 8 heads, 6 + 6 layers, post-norm (the norm stands after each addition, as in the
# paper), Adam at 1e-3 from the first step on; dropout 0.1, as in the paper. That is 44 million parameters for one
# sentence. Guess before you read on: which of these four changes helps? Each is made alone.
#
# - pre-norm: the norm stands before each sublayer, and the addition after it is not normalised;
# - a rate of 3e-4 instead of 1e-3;
# - four steps of warm-up (预热), in which the rate rises from 2.5e-4 to 1e-3;
# - no dropout.

# %%
script = {"norm_placement": "post", "dropout": 0.1, "lr": 1e-3}
print(f"{sum(parameter.numel() for parameter in build(1, norm_placement='post').parameters()):,} parameters")
changes = {
    "nothing changed": {},
    "pre-norm": {"norm_placement": "pre"},
    "rate 3e-4": {"lr": 3e-4},
    "warm-up": {"warmup_steps": 4},
    "no dropout": {"dropout": 0.0},
}
large = {name: train_one_sentence(seed=1, **{**script, **change}) for name, change in changes.items()}
for name, losses in large.items():
    print(f"{name:<16}", " ".join(f"{loss:5.2f}" for loss in losses))

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7, 3.4, "Twenty steps on one sentence")
axes = figure.subplots()
axes.plot(range(1, 21), small_losses, label="small model", linestyle="--")
for label, losses in large.items():
    axes.plot(range(1, 21), losses, label=f"large: {label}")
axes.set_xticks(range(0, 21, 5))
axes.set_xlabel("step")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(
    figure, "one-sentence", "Losses of twenty steps: the small model and the large one with pre-norm learn the sentence"
)

# %% [markdown]
# What the output says: only pre-norm cures it. The other three changes, each with post-norm, end where the unchanged
# model ends: between the two losses of guessing, or near them ($\ln 5 = 1.61$, $\ln 8 = 2.08$). And every large model,
# the one with pre-norm too, first gets worse than a model that knows nothing.
#
# Why does each loss rise? Adam divides a gradient by its own size. So its first step moves nearly every weight by the
# rate, however small the gradient is: here millions of weights by 1e-3 at once, along the gradient of five tokens.
# Why does pre-norm come back, and post-norm not? With pre-norm a sum runs from the first layer to the last, and nothing
# divides it; the gradient comes back along it. With post-norm each of the twelve layers' sums is divided by its size.
# Twenty steps at one setting show that the change helps; that this is the reason is what chapter 9 measures, where the
# gradients are drawn. The paper has post-norm, and warms up for 4,000 steps: a warm-up of four does not replace that.
#
# > code: nn/residual.py: PostNorm
#
# > code: training/schedules.py: warm_up

# %% [check]
post = [losses for name, losses in large.items() if name != "pre-norm"]
ends = [sum(losses[-3:]) / 3 for losses in post]
assert all(1.2 < end < 2.6 for end in ends), ends
assert large["pre-norm"][-1] < 0.5 < 1.0 < min(min(losses) for losses in post)
assert all(max(losses) > 3.0 > math.log(8) for losses in large.values())
assert 43_500_000 < sum(parameter.numel() for parameter in build(1).parameters()) < 44_500_000


def share_moved_by_the_rate(lr: float) -> float:
    """The share of the weights that Adam's first step moves by 0.99 to 1.01 times the rate."""
    from dragoman.learn.one_sentence import take_step
    from dragoman.training.loss import token_loss

    model = build(1, **{**small, "norm_placement": "post"}).train()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    logits = model(batch.src, batch.src_mask, batch.tgt_in)
    take_step(torch.optim.Adam(model.parameters(), lr=lr), token_loss(logits, batch.tgt_out, batch.tgt_mask) / 5)
    moved = torch.cat([(a - b).abs().flatten() for a, b in zip(model.parameters(), before, strict=True)])
    return float(((moved > 0.99 * lr) & (moved < 1.01 * lr)).float().mean())


assert share_moved_by_the_rate(1e-3) > 0.8

# %% [markdown]
# ## The small model says it
#
# A greedy search (贪心搜索) takes the most probable token, again and again, until `</s>`. Chapter 12 is about searches.

# %%
from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.search import search
from dragoman.training.loss import token_loss

torch.manual_seed(1)
model = build(1, norm_placement="pre", **small).train()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(30):
    loss = token_loss(model(batch.src, batch.src_mask, batch.tgt_in), batch.tgt_out, batch.tgt_mask) / batch.num_tokens
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# the script gives its target words the numbers 1 to 4; ours are 4 to 7, after the specials
[[best]] = search(model, batch.src, batch.src_mask, DecodingConfig(beam_size=1))
print([TGT_WORDS[number - 3] for number in best.ids], f"log probability {best.log_prob:.3f}")

# %% [check]
assert [TGT_WORDS[number - 3] for number in best.ids] == ["i", "want", "a", "beer"]

# %% [markdown]
# ## If you come from that script
#
# - It counts padding as a word of the vocabulary, with the number 0. Here `<pad>` is 0 in every vocabulary too, and a
#   search never says it.
# - It prints some losses and the translation of the sentence that it was trained on. Chapter 12 translates others.
# - On a computer that others use too, a model this small should use one thread: `dragoman train recipes/toy-beer.yaml`
#   took 4 s alone, 3 minutes 28 s with all threads on a shared machine and 17 s with one.
#   Dragoman takes one by itself for small batches.
#
# ## Exercises and bugs
#
# `dragoman learn check 1`: `shift` makes tgt_in and tgt_out; `settings` makes the large model learn.
# `dragoman learn bug 1` and `bug 2` are about the shift, `bug 3` about the warm-up.
