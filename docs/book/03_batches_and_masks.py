# %% [markdown]
# # 3. Batches and masks (批次与掩码)
#
# Sentences of different lengths are computed together: short ones are padded (填充). A mask (掩码) says what is real.
# More code goes wrong here than anywhere else, and silently: shapes fit, the loss falls, translations are worse.

# %%
import torch

from dragoman.analysis.examples import words_of
from dragoman.analysis.printed import batch_text, masks_text
from dragoman.learn.chapter import show

pairs = [("ich möchte ein bier", "i want a beer"), ("wir lesen", "we read")]
tokenizers = words_of([side for pair in pairs for side in pair])
print(batch_text(pairs, tokenizers))

# %% [markdown]
# `src` ends with `</s>`, then padding. `tgt_in` begins with `<s>`; `tgt_out` is the same, one position on, and ends
# with `</s>`. The masks of a batch are `True` at real tokens, `</s>` among them.
#
# > code: data/batch.py: collate
#
# > code: data/batch.py: _begin
#
# ## Three masks
#
# Scores of attention have the shape (batch, heads, query, key): row = who looks, column = what is looked at.
#
# - **Padding mask**: no query looks at padded *keys*. Shape (batch, 1, 1, key): the same columns for every row.
# - **Causal mask** (因果掩码), "subsequent mask" in the annotated notebook: query $i$ sees keys $0 \dots i$. Shape (1, 1, len, len).
# - **Joint mask**: both, by `&`.
#
# > code: nn/masks.py: padding_mask
#
# > code: nn/masks.py: causal_mask

# %%
from dragoman.nn.masks import causal_mask, padding_mask

real = torch.tensor([[True, True, True, True, True], [True, True, True, False, False]])
print("padding mask", tuple(padding_mask(real).shape))
print(padding_mask(real).int())
print("causal mask", tuple(causal_mask(5).shape))
print(causal_mask(5).int()[0, 0])
print("both, second sentence")
print((padding_mask(real) & causal_mask(5)).int()[1, 0])

# %%
from dragoman.analysis.masks import masks_figure, sentence_masks

masks = sentence_masks([target for _, target in pairs], tokenizers.tgt)
show(masks_figure(masks), "masks")

# %% [markdown]
# ## Two conventions
#
# In Dragoman **True = may be attended to**, everywhere. In half of the notes it is the other way round: 1 = hidden, as
# in `masked_fill(mask, -1e9)` of a reversed mask or PyTorch's `attn_mask`. Both are printed here; before you use a mask of
# someone else's, print it.

# %%
print(masks_text(masks))
print()
print(masks_text(masks, hidden=True))

# %% [markdown]
# d2l has no mask at all but `valid_len`: the number of real keys of each row, from which `masked_softmax` makes one.
# It is `torch.arange(width) < lengths[:, None]`: the first exercise.
#
# ## Why minus infinity
#
# The softmax is $e^{s_i} / \sum_j e^{s_j}$. A score of $-\infty$ gives $e^{-\infty} = 0$: no weight. A score of 0 gives
# $e^0 = 1$: more weight than many real keys have. The notes' own "softmax without a mask" leaks exactly so.

# %%
scores = torch.tensor([2.0, 1.0, -1.0, 0.5, 0.5])
hidden = torch.tensor([False, False, False, True, True])
print("no mask      ", scores.softmax(-1))
print("filled with 0", scores.masked_fill(hidden, 0.0).softmax(-1))
print("filled -inf  ", scores.masked_fill(hidden, -torch.inf).softmax(-1))

# %% [markdown]
# A row in which *everything* is hidden has a softmax of 0/0: NaN. That happens when a mask hides query rows instead of
# key columns, which one project of the notes does: (batch, 1, len, 1) instead of (batch, 1, 1, len).

# %%
wrong = real[1][:, None].expand(5, 5)
print(torch.zeros(5, 5).masked_fill(~wrong, -torch.inf).softmax(-1))

# %% [markdown]
# ## No padding mask in our decoder
#
# Dragoman's decoder uses the causal mask alone. Padding stands at the end of a target, so no real position can see it:
# everything before it is real. What padded positions compute is not in the loss (chapter 5).
#
# > code: models/transformer.py: Transformer.decode
#
# ## Does it matter? A test
#
# A sentence's output must not depend on the other sentences of its batch. That is a test which catches nearly all of
# these mistakes, in a second, on any model:
#
# > code: learn/selftests.py: a_sentence_does_not_depend_on_its_batch

# %%
from dragoman.learn.symptoms import batch_dependence

print(f"largest change of a logit: {batch_dependence(seed=1):.1e}")

# %% [markdown]
# ## Exercises and bugs
#
# `dragoman learn check 3`: `sequence_mask`, `joint_mask`, `to_other_convention`, `masked_softmax`.
# Bugs of this chapter: 6 (padding hides rows), 7 and 9 (the causal mask), 10 (padding is visible).
