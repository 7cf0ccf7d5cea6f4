# %% [markdown]
# # 5. Batches and masks (批次与掩码)
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
# - **Causal mask** (因果掩码), "subsequent mask" in the Annotated Transformer: query $i$ sees keys $0 \dots i$. Shape (1, 1, len, len).
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
show(
    masks_figure(masks),
    "masks",
    "Padding mask, causal mask and both joined, for two sentences: the padding mask takes whole columns away, the causal "
    "mask everything above the diagonal.",
)

# %% [markdown]
# ## Two conventions
#
# In Dragoman **True = may be attended to**, everywhere. Elsewhere it is the other way round: 1 = hidden. Both are printed
# here; before you use a mask of someone else's, print it.

# %%
print(masks_text(masks))
print()
print(masks_text(masks, hidden=True))

# %% [markdown]
# ### The trap: PyTorch has both
#
# `F.scaled_dot_product_attention` takes `attn_mask` with True = **may be seen**. `nn.MultiheadAttention`, in the same
# library, takes `attn_mask` and `key_padding_mask` with True = **hidden**. Both names are the same, both shapes fit, and a
# mask that is right for one is the wrong half for the other. No error is raised. Here one head is computed by both.

# %%
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
module = nn.MultiheadAttention(8, 1, bias=False, batch_first=True).eval()
x = torch.randn(1, 5, 8)
visible = causal_mask(5)[0, 0]  # True = may be seen
q, k, v = (x @ weight.T for weight in module.in_proj_weight.chunk(3))

by_function = F.scaled_dot_product_attention(q, k, v, attn_mask=visible) @ module.out_proj.weight.T
right, right_weights = module(x, x, x, attn_mask=~visible)  # True = hidden
future, wrong_weights = module(x, x, x, attn_mask=visible)
print("module, mask turned round:", float((by_function - right).abs().max().detach()))
print("module, the same mask:    ", "NaN" if future.isnan().any() else float((by_function - future).abs().max()))
print(right_weights[0].detach().numpy().round(2))
print(wrong_weights[0].detach().numpy().round(2))

# %% [markdown]
# With the same mask each position sees the *future* alone, and the last one sees nothing: a row of NaN. That row is luck:
# it is seen at once. With a padding mask turned round every sentence that has padding looks at its padding alone, every
# number is finite, and a sentence *without* padding has nothing left to look at.

# %%
paddings = torch.tensor([[False, False, False, True, True]])  # the module's convention: True = hidden
_, padded_weights = module(x, x, x, key_padding_mask=~paddings)
print("padding mask turned round, first row:", padded_weights[0, 0].detach().numpy().round(2))

# %% [check]
assert torch.allclose(by_function, right, atol=1e-6)
assert wrong_weights[0, 0, 0] == 0
assert torch.allclose(wrong_weights[0, 0, 1:].sum(), torch.tensor(1.0))
assert wrong_weights[0, -1].isnan().all()
assert not wrong_weights[0, :-1].isnan().any()
assert padded_weights.isfinite().all()
assert (padded_weights[0, :, :3] == 0).all()
assert module(x, x, x, key_padding_mask=torch.ones(1, 5, dtype=torch.bool))[0].isnan().all()

# %% [markdown]
# d2l (动手学深度学习) has no mask at all but `valid_len`: the number of real keys of each row, from which `masked_softmax` makes one.
# It is `torch.arange(width) < lengths[:, None]`: the first exercise.
#
# ## Why minus infinity
#
# The softmax is $e^{s_i} / \sum_j e^{s_j}$. A score of $-\infty$ gives $e^{-\infty} = 0$: no weight. A score of 0 gives
# $e^0 = 1$: more weight than many real keys have.

# %%
scores = torch.tensor([2.0, 1.0, -1.0, 0.5, 0.5])
hidden = torch.tensor([False, False, False, True, True])
print("no mask      ", scores.softmax(-1))
print("filled with 0", scores.masked_fill(hidden, 0.0).softmax(-1))
print("filled -inf  ", scores.masked_fill(hidden, -torch.inf).softmax(-1))

# %% [check]
filled = scores.masked_fill(hidden, 0.0).softmax(-1)
assert filled[3] > filled[2]  # padding has more weight than a real key
assert (scores.masked_fill(hidden, -torch.inf).softmax(-1)[3:] == 0).all()

# %% [markdown]
# Many write a large number in place of minus infinity: -1e9, -1e6. In float32 the weights are the same zeros. In half
# precision the number has to exist: float16 ends at 65,504, so it refuses -1e9; bfloat16, which has the range of
# float32, takes it. (`torch.finfo(scores.dtype).min` exists in each.)

# %%
refusals = {}
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    try:
        print(dtype, scores.to(dtype).masked_fill(hidden, -1e9).softmax(-1).tolist()[3:])
    except RuntimeError as error:
        refusals[dtype] = str(error)
        print(dtype, "refuses:", error)

# %% [check]
zeros = [0.0, 0.0]
for dtype in (torch.float32, torch.bfloat16):
    assert scores.to(dtype).masked_fill(hidden, -1e9).softmax(-1).tolist()[3:] == zeros
assert list(refusals) == [torch.float16]
assert "overflow" in refusals[torch.float16]
assert scores.half().masked_fill(hidden, torch.finfo(torch.float16).min).softmax(-1).tolist()[3:] == zeros

# %% [markdown]
# A row in which *everything* is hidden has a softmax of 0/0: NaN. That happens when a mask hides query rows instead of
# key columns: (batch, 1, len, 1) instead of (batch, 1, 1, len).

# %%
wrong = real[1][:, None].expand(5, 5)
print(torch.zeros(5, 5).masked_fill(~wrong, -torch.inf).softmax(-1))

# %% [markdown]
# With -1e9 instead the same row is no NaN: all of its scores are equal, so it looks at everything, padding too. The mistake
# is quieter, not smaller.

# %%
print(torch.zeros(5, 5).masked_fill(~wrong, -1e9).softmax(-1)[3:])

# %% [check]
assert torch.zeros(5, 5).masked_fill(~wrong, -torch.inf).softmax(-1)[3:].isnan().all()
assert torch.allclose(torch.zeros(5, 5).masked_fill(~wrong, -1e9).softmax(-1)[3:], torch.full((2, 5), 0.2))

# %% [markdown]
# ## No padding mask in our decoder
#
# Dragoman's decoder uses the causal mask alone. Padding stands at the end of a target, so no real position can see it:
# everything before it is real. What padded positions compute is not in the loss (chapter 6).
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

change = batch_dependence(seed=1)
print(f"largest change of a logit: {change:.1e}")

# %% [check]
assert change < 1e-4

# %% [markdown]
# ## If you come from other notes
#
# What other notes do with masks, and in which edition, is in `docs/other-notes.md`.
#
# ## Exercises and bugs
#
# `dragoman learn check 5`: `sequence_mask`, `joint_mask`, `to_other_convention`, `masked_softmax`.
# Bugs of this chapter: 6 (padding hides rows), 7 and 9 (the causal mask), 10 (padding is visible).
