# %% [markdown]
# # 5. Batches and masks (批次与掩码)
#
# *How are sentences of different lengths computed together, without a look at padding or at the future?*
#
# Time: about 90 minutes to read and try; the cells run in 4 seconds on one core.
# You need chapter 1 (`shift`), chapter 2 (padding) and chapter 4 (`attention`).
#
# Sentences are computed many at a time, in a *batch* (批次). Short ones are padded (填充). A *mask* (掩码) says what may be seen.
# Mistakes with masks are silent: shapes fit, the loss falls, and translations are worse.
#
# ## A naive try that fails
#
# Two sentences: "ich möchte ein bier", and "ein bier". A tensor of both needs rows of equal length. So we fill up the
# short one with `<pad>`, id 0.
#
# In chapter 4 a decoder asked, and the source sentence answered. Here every token of a sentence asks all tokens of the same
# sentence. That is *self-attention* (自注意力): query, key and value are the same rows.

# %% [markdown] lang="zh"
# # 5. 批次与掩码
#
# *长度不同的句子怎样一起计算，而又不看填充、不看未来？*
#
# 时间：阅读和尝试大约 90 分钟；在一个核上运行各单元格需要 4 秒。
# 需要第 1 章（`shift`）、第 2 章（填充）和第 4 章（`attention`）。
#
# 训练时许多句子合成一个*批次*（batch），一起算。短的句子要填充。*掩码*（mask）说明哪些可以看。
# 掩码的错误是无声的：形状相配，损失下降，译文却变差。
#
# ## 一次失败的朴素尝试
#
# 两个句子：“ich möchte ein bier”和“ein bier”。要把它们放进一个张量，各行必须一样长。
# 于是我们用 `<pad>`（编号 0）填满短的一行。
#
# 第 4 章中，提问的是解码器，回答的是源语言句子。这里句子中的每个词元，都向同一个句子的所有词元提问。
# 这就是*自注意力*（self-attention）：查询、键和值是同样的几行。

# %%
import torch

from dragoman.learn.mini_solution import attention, shift

torch.manual_seed(1)
embedding = 0.5 * torch.randn(8, 16)
try:
    torch.tensor([[4, 5, 6, 7, 3], [6, 7, 3]])
except ValueError as error:
    print("ValueError:", error)

padded = embedding[torch.tensor([[4, 5, 6, 7, 3], [6, 7, 3, 0, 0]])]
alone = embedding[torch.tensor([6, 7, 3])]
in_batch, weights = attention(padded, padded, padded)
by_itself, _ = attention(alone, alone, alone)
print("ein looks at ein, bier, </s>, <pad>, <pad>:", weights[1, 0].numpy().round(2))
print(f"the batch changes its context by {(in_batch[1, :3] - by_itself).abs().max():.2f}")

# %% [check]
naive_change = (in_batch[1, :3] - by_itself).abs().max()
assert naive_change > 0.1
assert (weights[1, 0, 3:] > 0).all()

# %% [markdown]
# Padding has some of the weight. What "ein bier" becomes depends on the sentence beside it.
#
# ## The idea
#
# **Fill up to a rectangle, and hide padding and the future from every softmax: their scores become minus infinity before it.**
#
# ## In plain PyTorch
#
# `batch` makes the three tensors of a training step. Two masks have the shape of attention's scores, or one that
# broadcasts to it: row = who looks (query), column = what is looked at (key). True = may be seen.
#
# - **Padding mask**: no query looks at padded *keys*. Shape (batch, 1, 1, keys). The first 1 is for the heads of chapter 7,
#   and the second for the queries: all of them see the same columns. Here there are no heads yet. So the cell after the next
#   takes the first 1 away, with `padding_mask(src)[:, 0]`.
# - **Causal mask** (因果掩码): query $i$ sees the keys $0 \dots i$. A decoder needs it, because in training it reads the whole
#   target sentence at once, and the next token must not be seen.
# - Where both must hold, `&` joins them.

# %% [markdown] lang="zh"
# 填充占去了一些权重。“ein bier”变成什么，竟取决于它旁边的句子。
#
# ## 思想
#
# **填充成矩形，并对每个 softmax 隐藏填充和未来：它们的得分在 softmax 之前变成负无穷。**
#
# ## 用普通的 PyTorch 写
#
# `batch` 生成训练一步所需的三个张量。两种掩码的形状与注意力得分相同，或者能广播成那样：行 = 谁在看（查询），
# 列 = 看什么（键）。True = 可以看。
#
# - **填充掩码**：任何查询都不看填充的*键*。形状是（批次，1，1，键）。第一个 1 留给第 7 章的头，第二个 1 留给查询：
#   它们看到的都是同样的列。这里还没有头，所以再下一个单元格用 `padding_mask(src)[:, 0]` 去掉第一个 1。
# - **因果掩码**（causal mask）：查询 $i$ 看键 $0 \dots i$。解码器需要它，因为训练时它一次读入整个目标语言句子，而下一个词元不能被看见。
# - 两者都要满足时，用 `&` 合起来。

# %%
PAD, EOS = 0, 3


def batch(pairs):
    def padded(rows):
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])

    shifted = [shift(tgt) for _, tgt in pairs]
    return (
        padded([[*src, EOS] for src, _ in pairs]),
        padded([tgt_in for tgt_in, _ in shifted]),
        padded([tgt_out for _, tgt_out in shifted]),
    )


def padding_mask(ids):
    return (ids != PAD)[:, None, None, :]


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


pairs = [([4, 5, 6, 7], [4, 5, 6, 7]), ([6, 7], [6, 7])]  # i want a beer; a beer
src, tgt_in, tgt_out = batch(pairs)
print("src", src, "tgt_in", tgt_in, "tgt_out", tgt_out, sep="\n")

# %% [markdown]
# `src` ends with `</s>`, then comes padding. `tgt_in` begins with `<s>`. `tgt_out` is the same, one place on, and ends with
# `</s>`. Dragoman's functions give the same tensors. Its masks are made of `src_mask` and `tgt_mask`, True at real tokens.
#
# > code: data/batch.py: collate
#
# > code: nn/masks.py: padding_mask
#
# > code: nn/masks.py: causal_mask

# %% [markdown] lang="zh"
# `src` 以 `</s>` 结尾，其后是填充。`tgt_in` 以 `<s>` 开头。`tgt_out` 与它相同，只是往后移一位，并以 `</s>` 结尾。
# Dragoman 的函数给出同样的张量。它的掩码由 `src_mask` 和 `tgt_mask` 做成，在真实词元处为 True。
#
# > code: data/batch.py: collate
#
# > code: nn/masks.py: padding_mask
#
# > code: nn/masks.py: causal_mask

# %%
from dragoman.data.batch import collate
from dragoman.nn import masks as dragomans

theirs = collate(pairs)
print(
    "the same batch:",
    all(map(torch.equal, (src, tgt_in, tgt_out), (theirs.src, theirs.tgt_in, theirs.tgt_out))),
)
print(
    "the same padding mask:",
    torch.equal(padding_mask(src), dragomans.padding_mask(theirs.src_mask)),
)
print("the same causal mask:", torch.equal(causal_mask(5), dragomans.causal_mask(5)[0, 0]))

in_batch, weights = attention(padded, padded, padded, mask=padding_mask(src)[:, 0])
print("ein looks at ein, bier, </s>, <pad>, <pad>:", weights[1, 0].numpy().round(2))
print(f"the batch changes its context by {(in_batch[1, :3] - by_itself).abs().max():.2f}")

# %% [check]
from dragoman.learn import mini_solution

assert all(map(torch.equal, batch(pairs), (theirs.src, theirs.tgt_in, theirs.tgt_out)))
assert all(map(torch.equal, batch(pairs), mini_solution.batch(pairs)))
assert torch.equal(padding_mask(src), dragomans.padding_mask(theirs.src_mask))
assert torch.equal(padding_mask(src), mini_solution.padding_mask(src))
assert torch.equal(causal_mask(5), dragomans.causal_mask(5)[0, 0])
assert torch.equal(causal_mask(5), mini_solution.causal_mask(5))
assert torch.allclose(in_batch[1, :3], by_itself, atol=1e-6)
assert (weights[1, :, 3:] == 0).all()
assert src.tolist() == [[4, 5, 6, 7, 3], [6, 7, 3, 0, 0]]
assert tgt_in.tolist() == [[2, 4, 5, 6, 7], [2, 6, 7, 0, 0]]
assert tgt_out.tolist() == [[4, 5, 6, 7, 3], [6, 7, 3, 0, 0]]

# %%
from dragoman.analysis.masks import masks_figure
from dragoman.learn.chapter import show
from dragoman.learn.one_sentence import TGT_VOCAB

padding = padding_mask(tgt_in)[:, 0].expand(2, 5, 5)
causal = causal_mask(5).expand(2, 5, 5)
kinds = {"padding": padding, "causal": causal, "padding & causal": padding & causal}
by_sentence = [
    ([TGT_VOCAB[token] for token in row], {name: kind[n].numpy() for name, kind in kinds.items()})
    for n, row in enumerate(tgt_in.tolist())
]
show(
    masks_figure(by_sentence),
    "masks",
    "Padding mask, causal mask and both joined, for two sentences: the padding mask takes whole columns away, the causal "
    "mask everything above the diagonal.",
)

# %% [markdown]
# Look at: the lower left grid. Padding takes away whole *columns*, and the rows of padding themselves stay. In the middle the
# causal mask takes away everything above the diagonal. The right grids have what is left by both.
#
# ## Two conventions
#
# In Dragoman **True = may be seen**, everywhere. Elsewhere it is the other way round: 1 = hidden. Here is the joined mask of
# "a beer" in both. Before you use a mask of someone else's, print it.

# %% [markdown] lang="zh"
# 看图：左下的格子。填充掩码去掉的是整*列*，填充自己的那些行还在。中间，因果掩码去掉对角线以上的一切。右边是两者都留下的部分。
#
# ## 两种约定
#
# 在 Dragoman 中处处是 **True = 可以看**。别处则可能相反：1 = 隐藏。下面是“a beer”的合成掩码，两种写法都有。
# 使用别人的掩码之前，先把它打印出来。

# %%
from dragoman.analysis.printed import masks_text

tokens, masks_of_a_beer = by_sentence[1]
joined = [(tokens, {"padding & causal": masks_of_a_beer["padding & causal"]})]
print(masks_text(joined))
print()
print(masks_text(joined, hidden=True))

# %% [markdown]
# ### The trap: PyTorch has both
#
# `F.scaled_dot_product_attention` takes `attn_mask` with True = **may be seen**. `nn.MultiheadAttention`, in the same
# library, takes `attn_mask` and `key_padding_mask` with True = **hidden**. Both names are the same, both shapes fit, and a
# mask that is right for one is the wrong half for the other. No error is raised. Here one head is computed by both.

# %% [markdown] lang="zh"
# ### 陷阱：PyTorch 两种都有
#
# `F.scaled_dot_product_attention` 的 `attn_mask` 中，True = **可以看**。同一个库的 `nn.MultiheadAttention`，
# 其 `attn_mask` 和 `key_padding_mask` 中，True = **隐藏**。名字相同，形状都相配，对一个正确的掩码，对另一个正好反了。
# 不会报错。这里用两者计算同一个头。

# %%
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
module = nn.MultiheadAttention(8, 1, bias=False, batch_first=True).eval()
x = torch.randn(1, 5, 8)
visible = causal_mask(5)  # True = may be seen
q, k, v = (x @ weight.T for weight in module.in_proj_weight.chunk(3))

by_function = F.scaled_dot_product_attention(q, k, v, attn_mask=visible) @ module.out_proj.weight.T
right, right_weights = module(x, x, x, attn_mask=~visible)  # True = hidden
future, wrong_weights = module(x, x, x, attn_mask=visible)
print("mask turned round, allclose:", torch.allclose(by_function, right, atol=1e-6))
print("the same mask, allclose:    ", torch.allclose(by_function, future, atol=1e-6))
print(right_weights[0].detach().numpy().round(2))
print(wrong_weights[0].detach().numpy().round(2))

# %% [markdown]
# With the same mask each position sees the *future* alone, and the last one sees nothing: a row of NaN. That row of NaN is
# lucky: it is seen at once. With a padding mask turned round every sentence that has padding looks at its padding alone, every
# number is finite, and a sentence *without* padding has nothing left to look at.

# %% [markdown] lang="zh"
# 用同一个掩码时，每个位置只看见*未来*，最后一个位置什么也看不见：一整行 NaN。出现这行 NaN 算是幸运，因为马上就会被发现。
# 填充掩码如果反了，有填充的句子就只看自己的填充，所有的数都是有限的；而*没有*填充的句子，就没有东西可看了。

# %%
paddings = torch.tensor([[False, False, False, True, True]])  # the module's: True = hidden
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
# d2l (动手学深度学习) passes no mask on, but `valid_len`: the number of real keys of each row. `masked_softmax` makes a mask
# from it.
#
# ## Why minus infinity: 0 leaks
#
# The softmax is $e^{s_i} / \sum_j e^{s_j}$. A score of $-\infty$ gives $e^{-\infty} = 0$: no weight. A score of 0 gives
# $e^0 = 1$: more weight than some real keys have.

# %% [markdown] lang="zh"
# d2l（动手学深度学习）的接口不传掩码，只传 `valid_len`：每一行真实键的个数，`masked_softmax` 由它做出掩码。
#
# ## 为什么用负无穷：0 会泄漏
#
# softmax 是 $e^{s_i} / \sum_j e^{s_j}$。得分为 $-\infty$ 时，$e^{-\infty} = 0$：没有权重。得分为 0 时，$e^0 = 1$：
# 比某些真实的键的权重还大。

# %%
scores = torch.tensor([2.0, 1.0, -1.0, 0.5, 0.5])
hidden = torch.tensor([False, False, False, True, True])
print("no mask      ", scores.softmax(-1))
print("filled with 0", scores.masked_fill(hidden, 0.0).softmax(-1))
print("filled -inf  ", scores.masked_fill(hidden, -torch.inf).softmax(-1))

# %% [markdown]
# Many write a large number in place of minus infinity. d2l's `masked_softmax` sets -1e6, the Annotated Transformer -1e9. In
# float32 and in bfloat16 all three give exactly 0 after the softmax. In float16 the largest number is 65,504, and
# `masked_fill` refuses the other two. (`torch.finfo(scores.dtype).min` exists in each.)
#
# Others *add* the mask to the scores. Such an additive mask has 0 where a key may be seen, and minus infinity where it is
# hidden: a score plus 0 stays as it is, and a score plus minus infinity is minus infinity. The weights are the same.

# %% [markdown] lang="zh"
# 许多人用一个很大的负数代替负无穷。d2l 的 `masked_softmax` 用 -1e6，Annotated Transformer 用 -1e9。
# 在 float32 和 bfloat16 中，三者经过 softmax 都恰好是 0。在 float16 中，最大的数是 65,504，`masked_fill` 拒绝另外两个。
# （`torch.finfo(scores.dtype).min` 在每种类型中都存在。）
#
# 也有人把掩码*加*到得分上。这种加性掩码在可以看的键处是 0，在隐藏处是负无穷：得分加 0 不变，加负无穷就是负无穷。权重相同。

# %%
refused = []
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for value in (-1e6, -1e9, -torch.inf):
        try:
            weights = scores.to(dtype).masked_fill(hidden, value).softmax(-1)
            print(f"{dtype}, {value:6.0e}: hidden places have {weights[3:].tolist()}")
        except RuntimeError as error:
            refused.append((dtype, value))
            print(f"{dtype}, {value:6.0e}: {str(error).splitlines()[0]}")

# %% [check]
filled = scores.masked_fill(hidden, 0.0).softmax(-1)
assert filled[3] > filled[2]  # padding has more weight than a real key
assert (scores.masked_fill(hidden, -torch.inf).softmax(-1)[3:] == 0).all()
zeros = [0.0, 0.0]
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for value in (-1e6, -1e9, -torch.inf, torch.finfo(dtype).min):
        if (dtype, value) not in refused:
            assert scores.to(dtype).masked_fill(hidden, value).softmax(-1).tolist()[3:] == zeros
assert refused == [(torch.float16, -1e6), (torch.float16, -1e9)]
assert torch.finfo(torch.float16).max == 65504
additive = torch.tensor([0.0, 0.0, 0.0, -torch.inf, -torch.inf])
assert torch.equal(
    (scores + additive).softmax(-1), scores.masked_fill(hidden, -torch.inf).softmax(-1)
)

# %% [markdown]
# A row in which *everything* is hidden has a softmax of 0/0: NaN. That happens when a mask hides query rows instead of
# key columns: (batch, 1, length, 1) instead of (batch, 1, 1, length). With -1e9 the same row is no NaN. All of its scores
# are equal, so it looks at everything, padding too. The mistake is quieter, not smaller.

# %% [markdown] lang="zh"
# *全部*被隐藏的一行，softmax 是 0/0，即 NaN。掩码隐藏了查询的行而不是键的列，就会这样：形状是（批次，1，长度，1），
# 而不是（批次，1，1，长度）。用 -1e9 时，同一行不是 NaN。它的得分全都相等，所以什么都看，也看填充。错误更安静，但并没有更小。

# %%
rows = torch.tensor([True, True, True, False, False])[:, None].expand(5, 5)  # hides rows: wrong
print(torch.zeros(5, 5).masked_fill(~rows, -torch.inf).softmax(-1)[3:])
print(torch.zeros(5, 5).masked_fill(~rows, -1e9).softmax(-1)[3:])

# %% [check]
assert torch.zeros(5, 5).masked_fill(~rows, -torch.inf).softmax(-1)[3:].isnan().all()
assert torch.allclose(
    torch.zeros(5, 5).masked_fill(~rows, -1e9).softmax(-1)[3:], torch.full((2, 5), 0.2)
)

# %% [markdown]
# ## No padding mask on the target
#
# Where Dragoman's decoder looks at its own sentence, it uses the causal mask alone. Padding stands at the end of a target
# sentence, so no real position can see it: everything before it is real. What padded positions compute is not in the loss
# (chapter 6). Where the decoder looks at the source, it needs the padding mask of the source: nothing else hides that
# padding.
#
# > code: models/transformer.py: Transformer.decode
#
# ## Padding costs time: sort by length
#
# Padded places are computed too, and for nothing. Four sentences of 2, 9, 2 and 9 tokens in one batch have 36 places, and 14
# of them are padding. Sort the sentences by length, and cut the row into two batches of two: then no place is padding. The
# share of padding is large where short sentences stand beside a long one.
#
# ## Does it matter? A test
#
# A sentence's output must not depend on the other sentences of its batch. That is a test which catches nearly all of
# these mistakes, in a second, on any model:
#
# > code: learn/selftests.py: a_sentence_does_not_depend_on_its_batch

# %% [markdown] lang="zh"
# ## 目标语言一侧不用填充掩码
#
# Dragoman 的解码器看自己的句子时，只用因果掩码。填充在目标语言句子的末尾，真实的位置都看不到它：它之前的一切都是真实的。
# 填充位置算出的东西不进入损失（第 6 章）。解码器看源语言句子时，需要源语言的填充掩码：那里的填充没有别的东西来隐藏。
#
# > code: models/transformer.py: Transformer.decode
#
# ## 填充费时间：按长度排序
#
# 填充的位置也要计算，而且是白算。四个句子各有 2、9、2、9 个词元，放在一个批次里有 36 个位置，其中 14 个是填充。
# 把句子按长度排序，再切成两个批次，每批两个句子：这样就没有填充了。短句与一个长句放在一起时，填充的比例就大。
#
# ## 这重要吗？一个测试
#
# 一个句子的输出，不能取决于同一批次的其他句子。这个测试能抓住上面几乎所有的错误，只要一秒，对任何模型都行：
#
# > code: learn/selftests.py: a_sentence_does_not_depend_on_its_batch

# %%
from dragoman.learn.symptoms import batch_dependence

change = batch_dependence(seed=1)
print(f"largest change of a logit: {change:.1e}")

# %% [check]
from dataclasses import replace

from dragoman.data.batch import collate_src
from dragoman.learn.one_sentence import SMALL, build

assert change < 1e-4
model = build(1, **SMALL).eval()
with torch.no_grad():
    seen = model.encode(theirs.src, theirs.src_mask)
    padding_seen = replace(seen, mask=torch.ones_like(seen.mask))
    logits = [model.decode(theirs.tgt_in, memory) for memory in (seen, padding_seen)]
changes = (logits[0] - logits[1]).abs().amax(dim=(1, 2))
assert changes[0] < 1e-5  # no padding in this source
assert changes[1] > 1e-3
two, nine = [4] * 1, [4] * 8  # and </s>
_, together = collate_src([two, nine, two, nine])
assert (together.numel(), int((~together).sum())) == (36, 14)
assert all(collate_src([one, one])[1].all() for one in (two, nine))

# %% [markdown]
# ## What the output says
#
# - Without a mask padding has some of the weight, and a sentence depends on its batch. With the mask it does not.
# - Our batch and our masks are Dragoman's.
# - The module and the function of PyTorch give the same output if the mask is turned round for one of them.
# - Filled with 0, a padded place has more weight than the weakest real key. Filled with minus infinity, it has none.
# - float16 refuses -1e6 and -1e9. The other two types take them.
# - A row that is hidden as a whole is NaN with minus infinity, and looks at everything equally with -1e9.
# - A logit of Dragoman's Transformer changes by less than 0.0001 when longer sentences join the batch.
#
# ## Three lines to keep
#
# - A mask hides keys (columns), never queries (rows), and does it before the softmax.
# - Print a mask before you trust it: True means "seen" in one library and "hidden" in the next.
# - A sentence's output must not depend on its batch: test it.
#
# ## If you come from elsewhere
#
# What d2l, the Annotated Transformer and PyTorch do with masks, and in which edition, is in `docs/other-notes.md`.
#
# ## Exercises
#
# `dragoman learn 5` writes a file for your answers, `dragoman learn check 5` grades them, and
# `dragoman learn check 5 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_mask_shape`, the shape of a padding mask and a causal mask together.
# - fill: `padding_share`, the share of padding in a batch.
# - write: `sequence_mask`, the mask of padded rows.
# - write: `joint_mask`, the mask of a decoder's self-attention. (Ours needs no padding there. Others join both, as here.)
# - write: `to_other_convention`, an additive mask, for those who add it to the scores.
# - write: `masked_softmax`, a softmax over real keys.
# - experiment: `uneven_lengths`, lengths for which sorting saves most of the padding.
#
# For your own Transformer: `mini_transformer.py`, pieces `batch`, `padding_mask`, `causal_mask`.
#
# Bugs to hunt: `dragoman learn bug 6`, `7`, `8`, `9`, `10`, `17`.
#
# ## Read on
#
# - Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3: where each mask stands in the model.
# - `docs/other-notes.md`: the masks of others, edition by edition.

# %% [markdown] lang="zh"
# ## 输出说明了什么
#
# - 没有掩码时，填充占去一些权重，句子取决于它的批次。有了掩码就不会。
# - 我们的批次和掩码与 Dragoman 的相同。
# - 只要把其中一方的掩码取反，PyTorch 的模块和函数就给出同样的输出。
# - 填 0 时，填充的位置比最弱的真实键权重更大。填负无穷时，它没有权重。
# - float16 拒绝 -1e6 和 -1e9。另外两种类型接受它们。
# - 整行被隐藏时，用负无穷得到 NaN，用 -1e9 则对所有位置一视同仁。
# - 更长的句子加入批次时，Dragoman 的 Transformer 的 logit 变化不到 0.0001。
#
# ## 记住三句话
#
# - 掩码隐藏键（列），从不隐藏查询（行），并且在 softmax 之前。
# - 相信一个掩码之前先打印它：True 在一个库里是“可以看”，在另一个库里是“隐藏”。
# - 一个句子的输出不能取决于它的批次：要测试这一点。
#
# ## 如果你从别处来
#
# d2l、Annotated Transformer 和 PyTorch 怎样处理掩码，在哪个版本里，见 `docs/other-notes.md`。
#
# ## 练习
#
# `dragoman learn 5` 写出供你作答的文件，`dragoman learn check 5` 批改，`dragoman learn check 5 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_mask_shape`，填充掩码与因果掩码相合的形状。
# - 填空：`padding_share`，批次中填充所占的比例。
# - 编写：`sequence_mask`，填充后各行的掩码。
# - 编写：`joint_mask`，解码器自注意力的掩码。（我们的解码器在这里不需要填充掩码，别处则像这里一样，把两者合起来。）
# - 编写：`to_other_convention`，换成加性掩码，供把掩码加到得分上的人使用。
# - 编写：`masked_softmax`，只对真实的键做 softmax。
# - 实验：`uneven_lengths`，按长度排序能省去大部分填充的一组长度。
#
# 你自己的 Transformer：`mini_transformer.py`，这几块是 `batch`、`padding_mask`、`causal_mask`。
#
# 待捉的错误：`dragoman learn bug 6`、`7`、`8`、`9`、`10`、`17`。
#
# ## 延伸阅读
#
# - Vaswani 等，2017，《Attention Is All You Need》，第 3.2.3 节：每种掩码在模型的什么地方。
# - `docs/other-notes.md`：别人的掩码，逐版对照。
