# %% [markdown]
# # 7. Several heads (多头注意力)
#
# *How can one position look at several places at once, for several reasons?*
#
# Time: about 50 minutes to read and try; the cells run in 7 seconds on one core.
# You need chapter 4: queries, keys, values and the softmax. You need chapter 5: masks.
#
# One attention gives one mean of the values. With several heads (头), each in its own part of the features, a position
# looks at several places, and what it reads there is kept apart (Vaswani et al. 2017, section 3.2.2).
#
# ## A naive try that fails
#
# One query wants to read two words: the first one and the last one of "ich möchte ein bier". It gives each of them the
# weight 0.5. Then we exchange these two words.

# %% [markdown] lang="zh"
# # 7. 多头注意力
#
# *一个位置怎样同时看几处，而且各有各的理由？*
#
# 时间：阅读和尝试大约 50 分钟；在一个核上运行各单元格需要 7 秒。
# 需要第 4 章：查询、键、值和 softmax。需要第 5 章：掩码。
#
# 一次注意力只给出值的一个平均值。有了多个头，每个头占特征的一部分，一个位置就能看几处，而且在各处读到的东西互不相混
# （Vaswani 等，2017，第 3.2.2 节）。
#
# ## 一次失败的朴素尝试
#
# 一个查询想读两个词：“ich möchte ein bier”的第一个和最后一个。它给两者各 0.5 的权重。然后我们交换这两个词。

# %%
import torch
from torch import nn

from dragoman.learn.mini_solution import attention

torch.manual_seed(1)
words = torch.randn(8, 4)  # a vector of four features for each id
src, exchanged = torch.tensor([4, 5, 6, 7]), torch.tensor([7, 5, 6, 4])
weights = torch.tensor([0.5, 0.0, 0.0, 0.5])
print("ich ... bier:", [round(x, 3) for x in (weights @ words[src]).tolist()])
print("bier ... ich:", [round(x, 3) for x in (weights @ words[exchanged]).tolist()])

# %% [check]
assert torch.equal(weights @ words[src], weights @ words[exchanged])
first, last = torch.eye(4)[0], torch.eye(4)[3]


def two_heads(ids):
    return torch.cat([first @ words[ids][:, :2], last @ words[ids][:, 2:]])


assert not torch.allclose(two_heads(src), two_heads(exchanged))

# %% [markdown]
# The two sentences are different, and the query reads the same numbers. A mean does not say what came from where. Now two
# heads read instead. The first head has the first two features, and looks at the first word. The second head has the other
# two features, and looks at the last word.

# %% [markdown] lang="zh"
# 两个句子不同，查询读到的数却一样。平均值不会说明什么来自哪里。现在改由两个头来读。
# 第一个头占前两个特征，看第一个词。第二个头占另外两个特征，看最后一个词。

# %%
first, last = torch.tensor([1.0, 0, 0, 0]), torch.tensor([0, 0, 0, 1.0])
for ids in (src, exchanged):
    heads = first @ words[ids][:, :2], last @ words[ids][:, 2:]
    print([round(x, 3) for x in torch.cat(heads).tolist()])

# %% [markdown]
# ## The idea
#
# **Cut the features into heads, let each head attend by itself, and put the results side by side.**
#
# $$\text{head}_i = \text{Attention}(Q W^Q_i, K W^K_i, V W^V_i), \qquad
# \text{MultiHead}(Q, K, V) = [\text{head}_1, \dots, \text{head}_h] \, W^O$$
#
# Four matrices are learnt. Three of them project (投影): they make queries, keys and values of what comes in. The fourth one
# mixes the heads again.
#
# ## In plain PyTorch
#
# (batch, length, d_model) becomes (batch, heads, length, d_head). `attention` is the function of chapter 4, and it does
# not mind a further dimension.

# %% [markdown] lang="zh"
# ## 思想
#
# **把特征分成多个头，让每个头各自做注意力，再把结果并排拼接。**
#
# $$\text{head}_i = \text{Attention}(Q W^Q_i, K W^K_i, V W^V_i), \qquad
# \text{MultiHead}(Q, K, V) = [\text{head}_1, \dots, \text{head}_h] \, W^O$$
#
# 要学的有四个矩阵。其中三个是投影：它们把输入变成查询、键和值。第四个把各个头重新混合起来。
#
# ## 用普通的 PyTorch 写
#
# （批次，长度，d_model）变成（批次，头，长度，d_head）。`attention` 就是第 4 章的函数，多一个维度对它没有影响。


# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, d_model)
        self.value_proj = nn.Linear(d_model, d_model)
        self.output_proj = nn.Linear(d_model, d_model)

    def forward(self, query, memory, mask=None):
        def heads(x):  # (batch, length, d_model) to (batch, heads, length, d_head)
            return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

        q, k, v = (
            heads(self.query_proj(query)),
            heads(self.key_proj(memory)),
            heads(self.value_proj(memory)),
        )
        context, _ = attention(q, k, v, mask)
        return self.output_proj(context.transpose(1, 2).flatten(2))  # heads side by side again


ours = MultiHeadAttention(d_model=64, num_heads=4)
print({name: tuple(values.shape) for name, values in ours.state_dict().items()})

# %% [markdown]
# Dragoman's layer has the same names, so it takes the same weights. Its attention may look at two sentences of different
# lengths, one with padding.
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# > code: nn/attention.py: MultiHeadAttention

# %% [markdown] lang="zh"
# Dragoman 的层用同样的名字，所以可以装入同样的权重。这里它的注意力看两个长度不同的句子，其中一个有填充。
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# > code: nn/attention.py: MultiHeadAttention

# %%
from dragoman.nn import attention as dragomans

theirs = dragomans.MultiHeadAttention(64, 4)
theirs.load_state_dict(ours.state_dict())
query, memory = torch.randn(2, 5, 64), torch.randn(2, 6, 64)
mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])[:, None, None, :]
same = torch.allclose(ours(query, memory, mask), theirs(query, memory, mask), atol=1e-6)
print("the same:", same)

# %% [check]
from dragoman.learn import mini_solution

assert torch.allclose(ours(query, memory, mask), theirs(query, memory, mask), atol=1e-6)
reference = mini_solution.MultiHeadAttention(64, 4)
reference.load_state_dict(ours.state_dict())
assert torch.equal(reference(query, memory, mask), ours(query, memory, mask))

# %% [markdown]
# ## The heads of a trained model
#
# The small model of chapter 1 has four heads of 16 features each. It has learnt "ich möchte ein bier". Here are the weights
# of its last cross-attention, a picture for each head. A row is a place of the target: what is read there, and, after the
# arrow, what must be said.

# %% [markdown] lang="zh"
# ## 训练好的模型的各个头
#
# 第 1 章的小模型有四个头，每个头有 16 个特征。它已经学会“ich möchte ein bier”。下面是它最后一层交叉注意力的权重，
# 每个头一张图。一行是目标语言的一个位置：那里读入的词元，箭头后面是应当说出的词元。

# %%
from dragoman.analysis.figure import draw_matrix, new_figure, token_axes
from dragoman.learn.chapter import show
from dragoman.learn.one_sentence import SRC_VOCAB, TGT_VOCAB, learned_model, one_sentence

batch, model = one_sentence(), learned_model()
with torch.no_grad():
    maps = model.attention_maps(batch.src, batch.src_mask, batch.tgt_in)["decoder.1.cross"][0]
reads, says = ([TGT_VOCAB[n] for n in row[0].tolist()] for row in (batch.tgt_in, batch.tgt_out))
rows = [f"{one} → {other}" for one, other in zip(reads, says, strict=True)]
columns = [SRC_VOCAB[n] for n in batch.src[0].tolist()]

figure = new_figure(10, 3.1, "Cross-attention of the last layer, head by head")
for number, axes in enumerate(figure.subplots(1, 4)):
    draw_matrix(axes, maps[number].numpy(), low=0, high=1, aspect="equal")
    token_axes(axes, rows if number == 0 else None, columns)
    axes.set_title(f"head {number}", fontsize=9)
show(
    figure,
    "heads",
    "Four matrices side by side, one for each head: five places of the target look at five places "
    "of the source, and the dark cells stand elsewhere in each head.",
)
for place, looked_at in zip(rows, maps.argmax(-1).T.tolist(), strict=True):
    print(f"{place:<16} most weight on", ", ".join(columns[n] for n in looked_at))

# %% [markdown]
# Look at: one row in all four pictures. The dark cell of the row stands in another column from head to head.
#
# ## What the output says
#
# - Each row of each head sums to 1. A head has its own softmax.
# - The heads do not agree: in at least one row they have their largest weights at different words.
# - Nobody told a head what to look for. The weights come from training alone.

# %% [markdown] lang="zh"
# 看图：四张图中的同一行。这一行的深色格子，在各个头里落在不同的列。
#
# ## 输出说明了什么
#
# - 每个头的每一行之和都是 1。每个头有自己的 softmax。
# - 各个头并不一致：至少在一行里，它们的最大权重落在不同的词上。
# - 没有人告诉哪个头该找什么。权重完全来自训练。

# %% [check]
assert torch.allclose(maps.sum(-1), torch.ones(4, 5), atol=1e-5)
assert any(len(set(row)) > 1 for row in maps.argmax(-1).T.tolist())
assert maps.shape == (4, 5, 5)
assert model.decoder_layers[1].cross_attention.d_head == 16

# %% [markdown]
# ## Why divided by the square root
#
# A dot product of two vectors of $d$ independent numbers of variance (方差) 1 has the variance $d$. The softmax of large
# numbers is nearly 0 and 1, and its gradient is nearly 0: nothing is learnt. Divided by $\sqrt d$ the variance is 1 again.
# A head has few features, so its root is the root of d_head, and not of d_model.

# %% [markdown] lang="zh"
# ## 为什么除以平方根
#
# 两个向量，各有 $d$ 个独立的、方差为 1 的数，它们的点积的方差是 $d$。数值很大时，softmax 几乎只有 0 和 1，
# 梯度几乎是 0：什么也学不到。除以 $\sqrt d$，方差又是 1。一个头只有少数特征，所以开的是 d_head 的平方根，
# 不是 d_model 的。

# %%
torch.manual_seed(1)
widths = [4, 16, 64, 256, 1024]
rows = []
for d in widths:
    q, k = torch.randn(500, d), torch.randn(500, d)
    products = (q * k).sum(-1)
    scores = q @ k.T
    rows.append(
        (
            d,
            float(products.var()),
            float((products / d**0.5).var()),
            float(scores.softmax(-1).amax(-1).mean()),
            float((scores / d**0.5).softmax(-1).amax(-1).mean()),
        )
    )
    print("d {:>4}: variance {:7.1f}, scaled {:.2f}".format(*rows[-1][:3]), end="; ")
    print("largest of 500 weights {:.2f}, scaled {:.3f}".format(*rows[-1][3:]))

figure = new_figure(7.5, 3.0, "With and without the square root")
left, right = figure.subplots(1, 2)
left.loglog(widths, [row[1] for row in rows], marker="o", label="Q K")
left.loglog(widths, [row[2] for row in rows], marker="o", label="Q K / sqrt(d)")
left.set_xlabel("d")
left.set_ylabel("variance of a score")
left.legend()
right.semilogx(widths, [row[3] for row in rows], marker="o")
right.semilogx(widths, [row[4] for row in rows], marker="o")
right.set_xlabel("d")
right.set_ylabel("largest weight of a query")
right.set_ylim(0, 1)
show(
    figure,
    "variance",
    "Left: the variance of a score grows with d; divided by the root it stays at 1. Right: the "
    "largest weight of a query goes to 1 with d; scaled it stays small.",
)

# %% [markdown]
# Look at: the right picture, at 1024 features. Without the root nearly all weight is on one of 500 keys.

# %% [markdown] lang="zh"
# 看图：右图，特征数为 1024 处。不除以平方根时，几乎全部权重都落在 500 个键中的一个上。

# %% [check]
for d, variance, scaled_variance, largest, scaled_largest in rows:
    assert 0.8 * d < variance < 1.25 * d
    assert 0.8 < scaled_variance < 1.25
    assert scaled_largest < 0.05 < largest
assert rows[-1][3] > 0.9

# %% [markdown]
# ## Splitting the heads
#
# First the last dimension is split, *then* two dimensions are exchanged. A `view` to the final shape has the right shape and
# wrong numbers: it cuts positions into pieces. No error is raised. Here are six positions of four features, all numbered.
#
# > code: nn/attention.py: MultiHeadAttention.split_heads

# %% [markdown] lang="zh"
# ## 拆分成多个头
#
# 先拆开最后一个维度，*然后*交换两个维度。直接用 `view` 变成最终的形状，形状是对的，数却是错的：它把位置切成了碎片。
# 而且不会报错。下面是六个位置，各有四个特征，全部编了号。
#
# > code: nn/attention.py: MultiHeadAttention.split_heads

# %%
x = torch.arange(6 * 4).view(1, 6, 4)
print("right, head 0:", x.unflatten(-1, (2, 2)).transpose(1, 2)[0, 0].tolist())
print("view,  head 0:", x.view(1, 2, 6, 2)[0, 0].tolist())

# %% [check]
assert x.view(1, 2, 6, 2).shape == x.unflatten(-1, (2, 2)).transpose(1, 2).shape
assert not x.view(1, 2, 6, 2).equal(x.unflatten(-1, (2, 2)).transpose(1, 2))

# %% [markdown]
# ## The same as PyTorch's, and a faster one
#
# `torch.nn.MultiheadAttention` with the same weights gives the same output and the same maps. That is a test of everything
# at once: heads, scale, mask, softmax. Its mask has the other convention, True = hidden; chapter 5 shows the trap.
#
# Training uses PyTorch's fused kernel (融合算子), which never stores the weights. The textbook form runs where the weights
# are asked for. Both are tested against each other.
#
# > code: learn/selftests.py: attention_is_pytorchs
#
# > code: backends/fused_attention.py: fused_attention

# %% [markdown] lang="zh"
# ## 与 PyTorch 的相同，还有更快的一个
#
# `torch.nn.MultiheadAttention` 装入同样的权重，给出同样的输出和同样的注意力图。这一次就检验了全部：头、缩放、掩码、softmax。
# 它的掩码用相反的约定，True 表示遮住；第 5 章讲了这个陷阱。
#
# 训练时用 PyTorch 的融合算子，它从不保存权重。需要权重的地方，运行的是教科书的写法。两者互相检验。
#
# > code: learn/selftests.py: attention_is_pytorchs
#
# > code: backends/fused_attention.py: fused_attention

# %%
from dragoman.backends.fused_attention import fused_attention
from dragoman.learn.selftests import attention_is_pytorchs
from dragoman.nn.masks import causal_mask

attention_is_pytorchs()
q, k, v = (torch.randn(2, 4, 7, 8) for _ in range(3))
textbook, _ = dragomans.scaled_dot_product_attention(q, k, v, causal_mask(7))
fused = fused_attention(q, k, v, causal_mask(7))
print("PyTorch's module: equal; fused kernel:", torch.allclose(textbook, fused, atol=1e-5))

# %% [check]
assert torch.allclose(textbook, fused, atol=1e-5)

# %% [markdown]
# ## Parameters (参数)
#
# Four matrices of $d \times d$ and four biases, whatever the number of heads: $4 d^2 + 4 d$. With fewer heads of keys and
# values (grouped-query attention, Ainslie et al. 2023) two of the matrices are narrower, and so is the cache of a search.
# The setting is `model.num_kv_heads`.
#
# In some lecture texts each head has the full width: d_model features of its own. Then $h$ heads multiply the matrices by
# $h$, and the last matrix leads from $h \cdot d$ features back to $d$: $4 h d^2 + 3 h d + d$ numbers. The setting is
# `model.d_head`; the paper, and all recipes here, leave it at d_model divided by the number of heads.

# %% [markdown] lang="zh"
# ## 参数
#
# 四个 $d \times d$ 的矩阵和四个偏置，与头的个数无关：$4 d^2 + 4 d$。键和值的头较少时（分组查询注意力，Ainslie 等，2023），
# 其中两个矩阵变窄，搜索时的缓存也变窄。对应的设置是 `model.num_kv_heads`。
#
# 有些讲义里，每个头都有完整的宽度：自己就有 d_model 个特征。这时 $h$ 个头使矩阵变成 $h$ 倍，最后一个矩阵从 $h \cdot d$
# 个特征回到 $d$ 个：一共 $4 h d^2 + 3 h d + d$ 个数。对应的设置是 `model.d_head`；论文和这里的所有配方都不改它，
# 即 d_model 除以头的个数。

# %%
from dragoman.config import parse
from dragoman.models.families import TransformerConfig

for settings in (
    {"num_heads": 8},
    {"num_heads": 1},
    {"num_heads": 8, "num_kv_heads": 2},
    {"num_heads": 8, "num_kv_heads": 1},
    {"num_heads": 8, "d_head": 512},
):
    layer = parse(TransformerConfig, {"d_model": 512, **settings}).self_attention()
    count = sum(parameter.numel() for parameter in layer.parameters())
    print(f"{count:>10,} parameters, heads of {layer.d_head:>3} features: {settings}")

# %% [check]
counts = {}
for settings in (
    {"num_heads": 8},
    {"num_heads": 1},
    {"num_heads": 8, "d_head": 512},
    {"num_kv_heads": 1},
):
    layer = parse(TransformerConfig, {"d_model": 512, "num_heads": 8, **settings}).self_attention()
    counts[str(settings)] = sum(parameter.numel() for parameter in layer.parameters())
same, one, wide, grouped = counts.values()
assert same == one == 4 * 512**2 + 4 * 512
assert wide == 4 * 8 * 512**2 + 3 * 8 * 512 + 512
assert grouped < same
assert layer.project_kv(torch.randn(1, 5, 512)).key.shape == (
    1,
    1,
    5,
    64,
)  # the cache of one head of eight
assert parse(TransformerConfig, {}).d_head is None

# %% [markdown]
# ## Three lines to keep
#
# - A head is an attention in a part of the features; heads stand side by side and are mixed by a last matrix.
# - Split the last dimension first, and exchange dimensions after that.
# - Divide by the root of d_head, once.
#
# ## If you come from d2l
#
# `transpose_qkv` of d2l folds heads into the batch, (batch * heads, length, d_head), a sentence's heads side by side; the
# numbers are the same. What belongs to a sentence (`valid_len`) must then be repeated in the same order. In some editions
# it was not: `docs/other-notes.md` names them.
#
# ## Exercises
#
# `dragoman learn check 7` grades them. `dragoman learn check 7 --hint NAME` gives the next hint.
#
# - predict: `predict_heads`, the shape after a split into heads
# - fill: `repeat_heads`, keys of few heads for many heads of queries
# - write: `split_heads`, features split into heads
# - write: `merge_heads`, heads put side by side
# - write: `count_parameters`, the weights of multi-head attention
# - experiment: `small_cache`, an attention with an eighth of the cache
#
# For your own Transformer: `mini_transformer.py`, piece `MultiHeadAttention`.
#
# Bugs to hunt: `dragoman learn bug 18`, `19`, `38`, `39`.
#
# ## Read on
#
# - Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2: multi-head attention, and where it is used.
# - Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", section 3: what is left when heads are cut.

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - 一个头就是在一部分特征里做的注意力；各个头并排拼接，由最后一个矩阵混合。
# - 先拆开最后一个维度，再交换维度。
# - 除以 d_head 的平方根，只除一次。
#
# ## 如果你从 d2l 来
#
# d2l 的 `transpose_qkv` 把头折叠进批次，变成（批次 * 头，长度，d_head），同一个句子的头相邻；数是一样的。
# 属于句子的东西（`valid_len`）这时必须按同样的顺序重复。有些版本没有这样做：`docs/other-notes.md` 列出了它们。
#
# ## 练习
#
# `dragoman learn check 7` 给它们打分。`dragoman learn check 7 --hint NAME` 给出下一个提示。
#
# - 预测：`predict_heads`，分成多个头之后的形状
# - 填空：`repeat_heads`，少数键头供多个查询头共用
# - 编写：`split_heads`，把特征分成多个头
# - 编写：`merge_heads`，把多个头并排拼接
# - 编写：`count_parameters`，多头注意力的参数个数
# - 实验：`small_cache`，缓存只有八分之一的注意力
#
# 你自己的 Transformer：`mini_transformer.py`，这一块是 `MultiHeadAttention`。
#
# 待捉的错误：`dragoman learn bug 18`、`19`、`38`、`39`。
#
# ## 延伸阅读
#
# - Vaswani 等，2017，《Attention Is All You Need》，第 3.2.2 节：多头注意力，以及它用在哪里。
# - Michel、Levy 与 Neubig，2019，《Are Sixteen Heads Really Better than One?》，第 3 节：去掉一些头之后还剩下什么。
