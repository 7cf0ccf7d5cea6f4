# %% [markdown]
# # 8. Positions (位置编码)
#
# *How does a model know which word comes first?*
#
# Time: about 50 minutes to read and try; the cells run in 30 seconds on one core.
# You need chapter 7: attention with several heads.
#
# Attention computes a weighted mean, and a mean has no order. Exchange two words, and the same numbers come out, exchanged.
# Something has to say where a word stands: a position (位置).
#
# ## A naive try that fails
#
# First we give no positions at all. Self-attention reads "ich möchte ein bier", and then the same words in another order.
# We look at the vector that comes out for "bier".

# %% [markdown] lang="zh"
# # 8. 位置编码
#
# *模型怎么知道哪个词在前面？*
#
# 时间：阅读和尝试大约 50 分钟；在一个核上运行各单元格需要 30 秒。
# 需要第 7 章：多头注意力。
#
# 注意力算的是加权平均值，而平均值没有顺序。交换两个词，得到的还是同样的数，只是也交换了。
# 总要有什么来说明一个词站在哪里：这就是位置。
#
# ## 一次失败的朴素尝试
#
# 先完全不给位置。自注意力先读“ich möchte ein bier”，再读换了顺序的同样的词。我们看“bier”得到的向量。

# %%
import torch
from torch import nn

from dragoman.learn.mini_solution import MultiHeadAttention
from dragoman.learn.one_sentence import SRC_VOCAB

torch.manual_seed(1)
d_model = 64
embedding, self_attention = nn.Embedding(8, d_model), MultiHeadAttention(d_model, 4)


def vector_of_bier(ids, positions=0.0):
    x = embedding(torch.tensor([ids])) + positions
    return self_attention(x, x)[0, ids.index(7)]


right_order, other_order = [4, 5, 6, 7], [7, 6, 5, 4]
for ids in (right_order, other_order):
    numbers = [round(number, 3) for number in vector_of_bier(ids).tolist()[:4]]
    print(f"{' '.join(SRC_VOCAB[n] for n in ids):<20} bier becomes {numbers} ...")

# %% [check]
assert torch.allclose(vector_of_bier(right_order), vector_of_bier(other_order), atol=1e-6)

# %% [markdown]
# The vectors are the same: the model cannot tell the orders apart. The next idea is to add the number of the position itself,
# 0, 1, 2, ..., to all features. Then the orders differ. But look at the sizes.

# %% [markdown] lang="zh"
# 两个向量一样：模型分不清这两种顺序。接下来会想到，把位置的序号 0、1、2、……直接加到所有特征上。
# 这样两种顺序有了区别。但是请看数值的大小。

# %%
numbered = torch.arange(4.0)[:, None]
differ = (vector_of_bier(right_order, numbered) - vector_of_bier(other_order, numbered)).norm()
print(f"with numbers added, the two vectors of bier differ by {differ:.2f}")
word, place = embedding(torch.tensor(7)), torch.full((d_model,), 28.0)
print(f"length of a word's vector {word.norm():.1f}; of 28 in all features {place.norm():.1f}")
near = torch.cosine_similarity(word + place, embedding(torch.tensor(4)) + place, dim=0)
print(f"bier and ich, both at position 28: cosine {near:.4f}")

# %% [check]
assert differ > 0.1
assert place.norm() > 20 * word.norm()
assert near > 0.99
assert torch.cosine_similarity(word, embedding(torch.tensor(4)), dim=0) < 0.5

# %% [markdown]
# At position 28 the number is more than twenty times as long as the word, and "bier" and "ich" look alike. The word drowns.
#
# ## The idea
#
# **Add to each word a vector of its position, made of waves of many lengths: its numbers never grow, and no two positions
# have the same.**
#
# $$PE(pos, 2i) = \sin\!\left(\frac{pos}{10000^{2i/d}}\right), \qquad PE(pos, 2i+1) = \cos\!\left(\frac{pos}{10000^{2i/d}}\right)$$
#
# The dimensions go in pairs. Each pair is the hand of a clock, with a speed of its own. The first hand turns once in 6.3
# positions. The last one of 512 dimensions turns once in about 60,000.
#
# ## In plain PyTorch

# %% [markdown] lang="zh"
# 在位置 28，这个数的长度是词的二十倍以上，“bier”和“ich”看起来几乎一样。词被淹没了。
#
# ## 思想
#
# **给每个词加上一个位置向量，它由许多种波长的波组成：数值永不变大，任何两个位置都不相同。**
#
# $$PE(pos, 2i) = \sin\!\left(\frac{pos}{10000^{2i/d}}\right), \qquad PE(pos, 2i+1) = \cos\!\left(\frac{pos}{10000^{2i/d}}\right)$$
#
# 维度两两成对。每一对是一根钟表的指针，有自己的转速。第一根指针每 6.3 个位置转一圈。512 维时，最后一根大约 60,000
# 个位置才转一圈。
#
# ## 用普通的 PyTorch 写


# %%
def positions(length, d_model):
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


print(positions(3, 4))

# %% [markdown]
# Dragoman computes the same table.
#
# > code: nn/positions.py: sinusoidal_table

# %% [markdown] lang="zh"
# Dragoman 算出同样的表。
#
# > code: nn/positions.py: sinusoidal_table

# %%
from dragoman.analysis.printed import positions_text
from dragoman.nn.positions import sinusoidal_rates, sinusoidal_table

print("the same:", torch.allclose(positions(100, 64), sinusoidal_table(100, 64), atol=1e-5))
table = positions(4, d_model)
differ = (vector_of_bier(right_order, table) - vector_of_bier(other_order, table)).norm()
print(f"with waves added, the two vectors of bier differ by {differ:.2f}")
print(positions_text(8, [0, 1, 2, 28]))

# %% [check]
from dragoman.learn import mini_solution

assert torch.allclose(positions(100, 64), sinusoidal_table(100, 64), atol=1e-5)
assert torch.equal(positions(100, 64), mini_solution.positions(100, 64))
assert differ > 0.05
assert positions(500, 64).abs().max() <= 1
assert 6.2 < 2 * torch.pi / float(sinusoidal_rates(512)[0]) < 6.3
assert 60_000 < 2 * torch.pi / float(sinusoidal_rates(512)[-1]) < 62_832
apart = torch.cdist(*[sinusoidal_table(300, 8)] * 2, compute_mode="donot_use_mm_for_euclid_dist")
assert (apart + torch.eye(300)).min() > 0.01

# %% [markdown]
# ## The row of position 28
#
# Here is one whole row: all 64 dimensions of position 28. Sines and cosines are drawn apart, since they belong to pairs.
# The second row has another base (底数), 1,000 in the place of 10,000. (`model.position.base` in a recipe.)

# %% [markdown] lang="zh"
# ## 位置 28 的那一行
#
# 下面是完整的一行：位置 28 的全部 64 个维度。正弦和余弦分开画，因为它们成对。第二行用另一个底数，用 1,000 代替 10,000。
# （在配方中是 `model.position.base`。）

# %%
from dragoman.analysis.figure import new_figure
from dragoman.learn.chapter import show

figure = new_figure(9, 4.6, "The row of position 28, d_model 64")
rows = {base: sinusoidal_table(1, 64, base=base, offset=28)[0] for base in (10_000, 1_000)}
for axes, (base, row) in zip(figure.subplots(2, 1, sharex=True), rows.items(), strict=True):
    dimensions = torch.arange(64)
    for offset, name, marker in ((0, "sine, even", "o"), (1, "cosine, odd", "s")):
        axes.plot(dimensions[offset::2], row[offset::2], marker=marker, markersize=4, label=name)
    axes.axhline(0, color="gray", linewidth=0.6)
    axes.set(ylabel="value", ylim=(-1.1, 1.1), title=f"base {base:,}")
    axes.legend(loc="lower right", ncols=2)
axes.set_xlabel("dimension")
show(
    figure,
    "row-28",
    "Two panels, base 10,000 above and 1,000 below: the 64 numbers of position 28, sines and "
    "cosines as two lines, which swing at the left and come to rest near 0 and 1 at the right.",
)
turns = 28 * sinusoidal_rates(64) / (2 * torch.pi)
print("turns of the first four hands: ", [round(turn, 2) for turn in turns[:4].tolist()])
print("turns of the last hand:        ", round(float(turns[-1]), 5))
faster = 28 * sinusoidal_rates(64, base=1000) / (2 * torch.pi)
print("base 1,000, last hand:         ", round(float(faster[-1]), 5))

# %% [markdown]
# Look at: the left ends, where both lines swing, and the right ends, where the sine is near 0 and the cosine near 1. There
# the hands have hardly moved since position 0. With the base 1,000 the right end has moved further.
#
# ## What the output says
#
# - At position 28 the first hand has turned more than four times.
# - The last hand has not turned by a thousandth of a circle.
# - With a base of 1,000 the last hand turns more than eight times as fast.
# - All numbers stay between -1 and 1, however long the sentence is.

# %% [markdown] lang="zh"
# 看图：左端，两条线都在摆动；右端，正弦接近 0，余弦接近 1，那里的指针从位置 0 起几乎没有动。
# 底数为 1,000 时，右端动得多一些。
#
# ## 输出说明了什么
#
# - 在位置 28，第一根指针已经转了四圈多。
# - 最后一根指针转了还不到千分之一圈。
# - 底数为 1,000 时，最后一根指针快了八倍以上。
# - 无论句子多长，所有的数都在 -1 和 1 之间。

# %% [check]
assert turns[0] > 4
assert turns[-1] < 0.001
assert sinusoidal_rates(64, base=1000)[-1] / sinusoidal_rates(64)[-1] > 8
assert rows[10_000][-2] < 0.01
assert rows[10_000][-1] > 0.99
assert rows[1_000][-2] > 4 * rows[10_000][-2]
assert sinusoidal_table(5000, 64).abs().max() <= 1
assert 0.70 < float(sinusoidal_table(300, 512).square().mean().sqrt()) < 0.72

# %% [markdown]
# ## A move is a rotation
#
# $\sin(a + b) = \sin a \cos b + \cos a \sin b$. So the vector of $pos + k$ is the vector of $pos$ with each pair turned by
# $k$ times its speed, whatever $pos$ is. "Three words before" is the same rotation (旋转) everywhere. How alike two
# positions are depends on their distance alone.

# %% [markdown] lang="zh"
# ## 移动就是旋转
#
# $\sin(a + b) = \sin a \cos b + \cos a \sin b$。所以把 $pos$ 的向量的每一对，旋转 $k$ 乘以它的转速那么大的角，
# 就得到 $pos + k$ 的向量，不论 $pos$ 是多少。“往前三个词”在哪里都是同一个旋转。两个位置有多相似，只取决于它们的距离。

# %%
d, k = 16, 5
table = positions(60, d)
turn = k * 10_000 ** (-torch.arange(0, d, 2) / d)
sin, cos = table.unflatten(1, (-1, 2)).unbind(-1)
turned = [sin * turn.cos() + cos * turn.sin(), cos * turn.cos() - sin * turn.sin()]
moved = torch.stack(turned, dim=-1).flatten(1)
print("largest difference to PE(pos + 5):", float((moved[:-k] - table[k:]).abs().max()))

alike = table @ table.T / (d / 2)
for distance, starts in ((3, (0, 10, 40)), (20, (0, 10, 30))):
    print(f"distance {distance:>2}:", [round(float(alike[p, p + distance]), 4) for p in starts])

# %% [check]
assert torch.allclose(moved[:-k], table[k:], atol=1e-5)
for distance in (3, 20):
    values = torch.diagonal(alike, distance)
    assert torch.allclose(values, values[0].expand(len(values)), atol=1e-5)

# %% [markdown]
# ## Rotary positions (旋转位置)
#
# If a move is a rotation, one may rotate queries and keys themselves. The score of a query at $m$ and a key at $n$ then
# depends on $m - n$ (Su et al. 2021).
#
# > code: nn/positions.py: RotaryPositions.rotate

# %% [markdown] lang="zh"
# ## 旋转位置
#
# 既然移动就是旋转，那么也可以旋转查询和键本身。位置 $m$ 的查询和位置 $n$ 的键，其得分就只取决于 $m - n$
# （Su 等，2021）。
#
# > code: nn/positions.py: RotaryPositions.rotate

# %%
from dragoman.analysis.positions import rotary_figure

show(
    rotary_figure(40, 16),
    "rotary",
    "Clock hands that turn with the position, each pair at its own speed; and scores by the "
    "distance of query and key: the curves of three starts coincide.",
)

# %% [markdown]
# Look at: the clocks of one row from left to right, which are one pair at one position after the other. Then look at the
# curves of the scores: three starts, and one line.
#
# ## ALiBi, learned positions, and none
#
# - *ALiBi* subtracts from each score a slope times the distance; each head has its own slope (Press et al. 2022).
# - *Learned* positions are a trained vector for each of the first `max_len` positions, as in BERT and GPT-2. Longer sentences
#   are refused.
# - With *none* a decoder still knows something of order, by its causal mask. An encoder knows nothing.
#
# More data: the toy task of reversing a row of symbols, with each of the five.
#
# > code: nn/positions.py: AlibiPositions.bias

# %% [markdown] lang="zh"
# 看图：同一行的钟，从左到右，是同一对在一个个位置上的样子。再看得分的曲线：三个起点，一条线。
#
# ## ALiBi、学习的位置，以及没有位置
#
# - *ALiBi* 从每个得分里减去斜率乘以距离；每个头有自己的斜率（Press 等，2022）。
# - *学习的*位置，是给前 `max_len` 个位置各一个训练出来的向量，BERT 和 GPT-2 就是这样。更长的句子会被拒绝。
# - *没有位置*时，解码器凭因果掩码还知道一些顺序。编码器则一无所知。
#
# 用更多的数据：把一行符号倒过来的玩具任务，五种方案各试一次。
#
# > code: nn/positions.py: AlibiPositions.bias

# %%
from dragoman.learn.laboratory import train
from dragoman.nn.positions import alibi_slopes

print("slopes of ALiBi's eight heads:", [round(slope, 4) for slope in alibi_slopes(8).tolist()])
losses, exact = {}, {}
for scheme in ("sinusoidal", "rotary", "alibi", "learned", "none"):
    trained = train(seed=1, position={"type": scheme})
    losses[scheme], exact[scheme] = trained.last_loss, trained.exact("reverse")
    print(f"{scheme:<11} loss {losses[scheme]:.3f}  right {exact[scheme]:.0%}")

# %% [check]
assert max(losses, key=losses.get) == "none"
assert losses["none"] > 2 * losses["alibi"]
assert exact["none"] < 0.1
assert sorted(losses, key=losses.get)[-2] == "alibi"

# %% [markdown]
# Without positions next to nothing is right. ALiBi is behind the other three here. To reverse is to look far away, and its
# bias makes what is far away small.
#
# ## Words must not drown
#
# The numbers of positions have a size of 0.7. Embeddings that serve as output matrix too begin with numbers of the size
# $d^{-1/2}$. That is why they are multiplied by $\sqrt d$ before positions are added.
#
# > code: nn/embeddings.py: TokenEmbedding
#
# ## Three lines to keep
#
# - Attention has no order; what is added to the words, or done to queries and keys, brings it in.
# - A position is a row of clock hands, from fast to slow; the base sets the slowest.
# - A move by $k$ turns each hand by the same angle everywhere.
#
# ## If you come from other programs
#
# - Hugging Face's Marian puts all sines first, then all cosines: the same numbers in another order
#   (`layout: half_split`). A model's weights fit one order alone.
# - tensor2tensor, Marian and fairseq put sines first too, and their speeds are slightly other ones, so that the slowest hand
#   turns by 1/10,000 exactly (`layout: fairseq`). fairseq counts positions from 2.
#
# ## Exercises
#
# `dragoman learn check 8` grades them. `dragoman learn check 8 --hint NAME` gives the next hint.
#
# - predict: `predict_position_0`, the vector of position 0
# - fill: `rotate`, a pair of features turned by an angle
# - write: `sinusoid`, the paper's vector of a position
# - write: `move`, a position's vector moved by a distance
# - experiment: `alike_positions`, two positions that one wave cannot tell apart
#
# For your own Transformer: `mini_transformer.py`, piece `positions`.
#
# Bugs to hunt: `dragoman learn bug 20`, `21`, `22`, `26`, `40`.
#
# ## Read on
#
# - Vaswani et al. 2017, "Attention Is All You Need", section 3.5: why sine and cosine.
# - Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2: rotation of queries and keys.

# %% [markdown] lang="zh"
# 没有位置，几乎什么也不对。ALiBi 在这里落后于另外三种。倒序要求看得很远，而它的偏置使远处的得分变小。
#
# ## 词不能被淹没
#
# 位置的数大小约为 0.7。同时用作输出矩阵的嵌入，起初的数大小为 $d^{-1/2}$。所以在加上位置之前，要先乘以 $\sqrt d$。
#
# > code: nn/embeddings.py: TokenEmbedding
#
# ## 记住三句话
#
# - 注意力没有顺序；加到词上的东西，或对查询和键做的变换，把顺序带了进来。
# - 一个位置就是一排由快到慢的指针；底数决定最慢的那根。
# - 移动 $k$ 个位置，每根指针在任何地方都转同样的角。
#
# ## 如果你从别的程序来
#
# - Hugging Face 的 Marian 先放所有的正弦，再放所有的余弦：同样的数，另一种次序（`layout: half_split`）。
#   一个模型的权重只适合一种次序。
# - tensor2tensor、Marian 和 fairseq 也先放正弦，而且转速略有不同，使最慢的指针每步恰好转 1/10,000
#   （`layout: fairseq`）。fairseq 的位置从 2 数起。
#
# ## 练习
#
# `dragoman learn check 8` 给它们打分。`dragoman learn check 8 --hint NAME` 给出下一个提示。
#
# - 预测：`predict_position_0`，位置 0 的向量
# - 填空：`rotate`，把一对特征旋转一个角度
# - 编写：`sinusoid`，论文中一个位置的向量
# - 编写：`move`，把位置向量移动一段距离
# - 实验：`alike_positions`，一个波分不清的两个位置
#
# 你自己的 Transformer：`mini_transformer.py`，这一块是 `positions`。
#
# 待捉的错误：`dragoman learn bug 20`、`21`、`22`、`26`、`40`。
#
# ## 延伸阅读
#
# - Vaswani 等，2017，《Attention Is All You Need》，第 3.5 节：为什么用正弦和余弦。
# - Su 等，2021，《RoFormer: Enhanced Transformer with Rotary Position Embedding》，第 3.2 节：查询和键的旋转。

# %% [check]
from dragoman.analysis.positions import rotary_scores
from dragoman.errors import DragomanError
from dragoman.models.families import TransformerConfig

first, *others = rotary_scores(20, 16, [0, 5, 30]).values()
assert all(torch.allclose(first, other, atol=1e-3) for other in others)

layers = [mini_solution.EncoderLayer(d_model, 4, 128) for _ in range(2)]


def vector_of_last(ids, mask):
    x = embedding(torch.tensor([ids]))
    for layer in layers:
        x = layer(x, mask)
    return x[0, -1]


orders = [4, 5, 6, 7], [6, 5, 4, 7]
hidden, shown = (
    [vector_of_last(ids, mask) for ids in orders] for mask in (mini_solution.causal_mask(4), None)
)
assert torch.allclose(*shown, atol=1e-5)  # an encoder knows nothing of order
assert not torch.allclose(*hidden, atol=1e-3)  # a causal mask says something of it

short = TransformerConfig(d_model=16, position={"type": "learned", "max_len": 4})
limited = short.build(src_vocab_size=9, tgt_vocab_size=9, shared_vocab=True, pad_id=0)
try:
    limited.src_embedding(torch.ones(1, 5, dtype=torch.long))
except DragomanError:
    pass
else:
    raise AssertionError("a longer sentence must be refused")

halves = sinusoidal_table(40, 16, layout="half_split")
pairs = torch.cat([positions(40, 16)[:, 0::2], positions(40, 16)[:, 1::2]], dim=1)
assert torch.allclose(halves, pairs, atol=1e-5)
slowest = sinusoidal_table(2, 16, layout="fairseq")[1, 7]  # sin of the slowest speed
assert abs(float(slowest) - 1e-4) < 1e-7
fresh = TransformerConfig(d_model=256).build(
    src_vocab_size=99, tgt_vocab_size=99, shared_vocab=True, pad_id=0
)
assert abs(float(fresh.output.weight[4:].detach().std()) * 256**0.5 - 1) < 0.05
