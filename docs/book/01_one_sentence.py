# %% [markdown]
# # 1. One sentence (一个句子)
#
# The smallest training there is: one pair, "ich mochte ein bier" and "i want a beer". It is learnt by heart in seconds,
# and it shows all parts at work: ids, the shift between what a decoder reads and what it must say, a loss that falls.
# It also shows the best lesson of the lecture notes, which they do not mention: **with the notes' own settings the
# model does not learn it**.
#
# Every chapter runs Dragoman's own code. Nothing is written a second time for teaching.

# %%
from dragoman.learn.chapter import show
from dragoman.learn.one_sentence import SRC_WORDS, TGT_WORDS, build, one_sentence, train_one_sentence

print("source words:", dict(enumerate(SRC_WORDS)))
print("target words:", dict(enumerate(TGT_WORDS)))

# %% [markdown]
# ## Words, ids, the shift (移位)
#
# The notes have a vocabulary of five words for the source and of seven for the target: `P` is padding, `S` starts a
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
# in nats. A model that knows nothing and thinks all 8 entries equally likely has $\ln 8 = 2.08$; 0 is certainty.
#
# > code: training/loss.py: token_loss

# %%
small = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
small_losses = train_one_sentence(seed=1, lr=3e-3, warmup_steps=5, **small)
print(" ".join(f"{loss:.2f}" for loss in small_losses))

# %% [markdown]
# ## The notes' settings do not
#
# d_model 512, 8 heads, 6 + 6 layers, post-norm (the norm stands after each addition, as in the paper), dropout 0.1,
# Adam at 1e-3 from the first step on: 44 million parameters for one sentence. Here are its twenty losses, and those of
# the same model with four things changed: pre-norm, a rate of 3e-4, four steps of warm-up (预热) instead of none, no
# dropout.

# %%
notes = build(1, norm_placement="post", dropout=0.1)
print(f"{sum(parameter.numel() for parameter in notes.parameters()):,} parameters")
notes_losses = train_one_sentence(seed=1, norm_placement="post", dropout=0.1, lr=1e-3)
mended_losses = train_one_sentence(seed=1, norm_placement="pre", dropout=0.0, lr=3e-4, warmup_steps=4)
print("as in the notes:", " ".join(f"{loss:.2f}" for loss in notes_losses))
print("mended:         ", " ".join(f"{loss:.2f}" for loss in mended_losses))

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7, 3.4, "Twenty steps on one sentence")
axes = figure.subplots()
for label, losses in (
    ("small", small_losses),
    ("44 million, as in the notes", notes_losses),
    ("44 million, mended", mended_losses),
):
    axes.plot(range(1, 21), losses, label=label)
axes.set_xticks(range(0, 21, 5))
axes.set_xlabel("step")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(figure, "one-sentence")

# %% [markdown]
# Why? With post-norm the gradient of the last layers is large at the beginning, and Adam's first steps are as long as
# the rate whatever the gradient is. At 1e-3 all 44 million weights are moved far in a direction that knows nothing yet:
# the loss rises to 7 and 8 and comes back to about 2, near what guessing among the five target tokens costs
# ($\ln 5 = 1.6$). The paper itself warms up for 4,000 steps. Chapter 9 draws the gradients, chapter 11 the schedules.
#
# > code: nn/residual.py: PostNorm
#
# > code: training/schedules.py: warm_up
#
# ## The mended model says it
#
# A greedy search (贪心搜索) takes the most probable token, again and again, until `</s>`. Chapter 12 is about searches.

# %%
import torch

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
# the notes give their words the numbers 1 to 4; ours are 4 to 7, after the specials
[[best]] = search(model, batch.src, batch.src_mask, DecodingConfig(beam_size=1))
print([TGT_WORDS[number - 3] for number in best.ids], f"log probability {best.log_prob:.3f}")

# %% [markdown]
# ## Where the notes differ
#
# - The notes count padding as a word of the vocabulary; here `<pad>` is 0 in every vocabulary and never said.
# - The notes print the loss of 20 steps and stop; with their settings it does not fall below 1.
# - On a computer that others use too, a model this small should use one thread: `dragoman train recipes/toy-beer.yaml`
#   took 4 s alone, 3 minutes 28 s with all threads on a shared machine and 17 s with one.
#   Dragoman takes one by itself for small batches.
#
# ## Exercises and bugs
#
# `dragoman learn check 1`: `shift` makes tgt_in and tgt_out; `settings` makes the large model learn.
# `dragoman learn bug 1` and `bug 2` are about the shift, `bug 3` about the warm-up.
