# %% [markdown]
# # 9. Norms and residual connections (规范化与残差连接)
#
# *What keeps numbers and gradients in size when many layers stand one on the other?*
#
# Time: about 60 minutes to read and try; the cells run in 20 seconds on one core.
# You need chapter 7: attention with several heads. Chapter 8 gave the words their positions.
#
# An attention is not yet a layer. A layer (层) has a feed-forward network (前馈网络) too, and around both stand two things that
# make deep stacks trainable: a residual connection (残差连接), and a norm.
#
# ## A naive try that fails
#
# We put 24 layers one on the other, each an attention and a feed-forward network, and nothing else. "ich möchte ein bier" goes
# in at the bottom. We look at two things: how alike the four vectors are at the top, and how large the gradients are.

# %% [markdown] lang="zh"
# # 9. 规范化与残差连接
#
# *许多层叠在一起时，靠什么让数值和梯度保持大小？*
#
# 时间：阅读和尝试大约 60 分钟；在一个核上运行各单元格需要 20 秒。
# 需要第 7 章：多头注意力。第 8 章已经给了词以位置。
#
# 注意力还不是一层。一层还有一个前馈网络，并且在两者周围有两样东西，使得深的堆叠可以训练：残差连接和规范化。
#
# ## 一次失败的朴素尝试
#
# 我们把 24 层叠在一起，每层是一个注意力和一个前馈网络，此外什么也没有。“ich möchte ein bier”从底部进入。
# 我们看两件事：到了顶部，四个向量有多相似；以及梯度有多大。

# %%
import torch
from torch import nn
from torch.nn import functional as F

from dragoman.learn.mini_solution import MultiHeadAttention, positions

torch.manual_seed(1)
d_model, depth = 64, 24
words = nn.Embedding(8, d_model)(torch.tensor([[4, 5, 6, 7]])) + positions(4, d_model)


def network(d_model, d_ff):
    return nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


attentions = [MultiHeadAttention(d_model, 4) for _ in range(depth)]
networks = [network(d_model, 128) for _ in range(depth)]
x = words.detach()
for attention, feed_forward in zip(attentions, networks, strict=True):
    x = feed_forward(attention(x, x))
x.square().sum().backward()
alike = torch.cosine_similarity(x[0, 0], x[0, 3], dim=0).item()
first, last = (one[0].weight.grad.norm().item() for one in (networks[0], networks[-1]))
print(f"ich and bier after 24 layers: cosine {alike:.4f}")
print(f"gradient of the last layer {last:.1e}, of the first layer {first:.1e}")

# %% [check]
assert torch.cosine_similarity(words[0, 0], words[0, 3], dim=0) < 0.7
assert alike > 0.999
assert first < 1e-6 * last

# %% [markdown]
# At the top "ich" and "bier" are the same: each attention has mixed them, and nothing has kept them apart. The gradient of the
# first layer is less than a millionth of the last one's. These layers learn nothing.
#
# ## The idea
#
# **Let each sublayer add to what comes in, instead of replacing it, and let it read what comes in normalised.**
#
# $$x \leftarrow x + f(\text{norm}(x))$$
#
# The sum runs from the first layer to the last, with nothing on it but additions. A gradient comes back along it as it is.
#
# The norm is *layer normalisation* (层规范化). It gives the features of one position the mean 0 and the variance 1, then a gain
# and a bias of their own:
#
# $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \, g + b$$
#
# ## In plain PyTorch
#
# A layer of the encoder has two sublayers, a layer of the decoder has three. First its self-attention, which sees no later
# token. Then its cross-attention, which reads `memory`, the output of the encoder. Then the feed-forward network.

# %% [markdown] lang="zh"
# 到了顶部，“ich”和“bier”已经一样：每次注意力都把它们混合，却没有什么把它们分开。第一层的梯度不到最后一层的百万分之一。
# 这些层什么也学不到。
#
# ## 思想
#
# **让每个子层在输入上添加，而不是取代它；并且让它读规范化之后的输入。**
#
# $$x \leftarrow x + f(\text{norm}(x))$$
#
# 这个和从第一层一直通到最后一层，途中只有加法。梯度沿着它原样返回。
#
# 这里的规范化是*层规范化*。它使一个位置的特征平均值为 0、方差为 1，然后乘上各自的增益，加上各自的偏置：
#
# $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \, g + b$$
#
# ## 用普通的 PyTorch 写
#
# 编码器的一层有两个子层，解码器的一层有三个。先是自注意力，它看不到后面的词元。然后是交叉注意力，它读 `memory`，
# 即编码器的输出。最后是前馈网络。


# %%
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(2)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        y = self.norms[0](x)
        x = x + self.dropout(self.self_attention(y, y, mask))
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


# %%
class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(3)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask, memory, memory_mask=None):
        y = self.norms[0](x)
        x = x + self.dropout(self.self_attention(y, y, mask))
        x = x + self.dropout(self.cross_attention(self.norms[1](x), memory, memory_mask))
        return x + self.dropout(self.feed_forward(self.norms[2](x)))


# %% [markdown]
# Dragoman's layers have other names for the norms and for the two matrices of the network. With the names changed they take
# the same weights, and give the same output.
#
# > code: models/blocks.py: EncoderLayer.forward
#
# > code: models/blocks.py: DecoderLayer.forward
#
# > code: nn/residual.py: PreNorm.forward

# %% [markdown] lang="zh"
# Dragoman 的层给规范化和网络的两个矩阵起了别的名字。改了名字，就能装入同样的权重，给出同样的输出。
#
# > code: models/blocks.py: EncoderLayer.forward
#
# > code: models/blocks.py: DecoderLayer.forward
#
# > code: nn/residual.py: PreNorm.forward

# %%
from dragoman.models import blocks

NETWORK = {"feed_forward.0": "feed_forward.expand", "feed_forward.2": "feed_forward.contract"}
SUBLAYERS = {
    2: ("self_attention", "feed_forward"),
    3: ("self_attention", "cross_attention", "feed_forward"),
}


def dragomans(ours, theirs):
    names = SUBLAYERS[len(ours.norms)]
    renamed = {**NETWORK, **{f"norms.{n}": f"{name}_residual.norm" for n, name in enumerate(names)}}
    weights = ours.state_dict()
    for old, new in renamed.items():
        weights = {name.replace(f"{old}.", f"{new}."): value for name, value in weights.items()}
    theirs.load_state_dict(weights)
    return theirs


config = blocks.BlockConfig(d_model=64, num_heads=4, d_ff=128, dropout=0.0)
encoder_layer, decoder_layer = EncoderLayer(64, 4, 128), DecoderLayer(64, 4, 128)
memory, tgt = torch.randn(1, 4, 64), torch.randn(1, 5, 64)
causal = torch.ones(1, 1, 5, 5, dtype=torch.bool).tril()
same_encoder = torch.allclose(
    encoder_layer(memory),
    dragomans(encoder_layer, blocks.EncoderLayer(config))(memory, None),
    atol=1e-5,
)
same_decoder = torch.allclose(
    decoder_layer(tgt, causal, memory),
    dragomans(decoder_layer, blocks.DecoderLayer(config))(tgt, causal, memory),
    atol=1e-5,
)
print("the same encoder layer:", same_encoder, "and decoder layer:", same_decoder)

# %% [check]
from dragoman.learn import mini_solution

assert same_encoder
assert same_decoder
for ours, reference, inputs in (
    (encoder_layer, mini_solution.EncoderLayer(64, 4, 128), (memory,)),
    (decoder_layer, mini_solution.DecoderLayer(64, 4, 128), (tgt, causal, memory)),
):
    reference.load_state_dict(ours.state_dict())
    assert torch.equal(ours(*inputs), reference(*inputs))

# %% [markdown]
# The same 24 layers again, now with both.

# %% [markdown] lang="zh"
# 再来同样的 24 层，这次两样都有。

# %%
torch.manual_seed(1)
layers = [EncoderLayer(d_model, 4, 128) for _ in range(depth)]
x = words.detach()
for layer in layers:
    x = layer(x)
nn.LayerNorm(d_model)(x)[0, :, 0].sum().backward()
kept_apart = torch.cosine_similarity(x[0, 0], x[0, 3], dim=0).item()
first, last = (one.feed_forward[0].weight.grad.norm().item() for one in (layers[0], layers[-1]))
print(f"ich and bier after 24 layers: cosine {kept_apart:.4f}")
print(f"gradient of the last layer {last:.1e}, of the first layer {first:.1e}")

# %% [check]
assert kept_apart < 0.95
assert 0.1 < first / last < 10

# %% [markdown]
# The words are still apart, and the first layer gets as much of the gradient as the last one.
#
# ## Where the norm stands
#
# There are three places for the norm. *Pre-norm* is the one above; one more norm stands at the end of the stack.
# *Post-norm* is the paper's: $\text{norm}(x + f(x))$. *Output-norm* is $x + \text{norm}(f(x))$. The Annotated Transformer is
# pre-norm, though it quotes the paper's words. Here are the gradients of twelve fresh decoder layers of each kind.
#
# > code: nn/residual.py: PostNorm.forward

# %% [markdown] lang="zh"
# 词仍然分得开，第一层得到的梯度和最后一层一样多。
#
# ## 规范化放在哪里
#
# 规范化有三个位置可放。*前置规范化*就是上面的；堆叠的末尾还有一个规范化。*后置规范化*是论文的：$\text{norm}(x + f(x))$。
# *输出规范化*是 $x + \text{norm}(f(x))$。The Annotated Transformer 用前置规范化，虽然它引用的是论文的原话。
# 下面是三种放法各十二个全新的解码器层的梯度。
#
# > code: nn/residual.py: PostNorm.forward

# %%
from dragoman.analysis.figure import new_figure
from dragoman.data.batch import collate
from dragoman.learn.chapter import show
from dragoman.learn.laboratory import build, pairs
from dragoman.training.loss import token_loss

figure = new_figure(7, 3.3, "Gradient of each decoder layer before training")
axes = figure.subplots()
batch = collate(pairs("reverse", "train", 40))
last_over_first = {}
for placement in ("pre", "post", "output"):
    sizes = {"num_encoder_layers": 12, "num_decoder_layers": 12, "d_model": 64}
    model = build(1, norm_placement=placement, **sizes)
    logits = model(batch.src, batch.src_mask, batch.tgt_in)
    token_loss(logits, batch.tgt_out, batch.tgt_mask).backward()
    norms = [float(layer.feed_forward.expand.weight.grad.norm()) for layer in model.decoder_layers]
    last_over_first[placement] = norms[-1] / norms[0]
    axes.plot(range(1, 13), norms, marker="o", label=f"{placement}-norm")
    print(f"{placement:<7}", " ".join(f"{norm:.2f}" for norm in norms))
axes.set_xlabel("decoder layer")
axes.set_ylabel("norm of the gradient")
axes.set_yscale("log")
axes.legend()
show(
    figure,
    "gradient-by-depth",
    "Gradient of each of twelve decoder layers, on a logarithmic axis: nearly level for pre-norm "
    "and output-norm; for post-norm the first layer's is less than a fiftieth of the last one's.",
)

# %% [markdown]
# Look at: the left end. Two lines are nearly level, one has fallen.
#
# ## What the output says
#
# - With post-norm the gradient of the first layer is less than a fiftieth of the last one's, before training.
# - With pre-norm and with output-norm the first and the last layer differ by less than a factor of two.
# - Post-norm divides the sum itself by its size at each layer. The other two leave the sum alone.

# %% [markdown] lang="zh"
# 看图：左端。两条线几乎是平的，一条降了下去。
#
# ## 输出说明了什么
#
# - 后置规范化时，训练之前，第一层的梯度不到最后一层的五十分之一。
# - 前置规范化和输出规范化时，第一层和最后一层相差不到一倍。
# - 后置规范化在每一层都把和本身除以它的大小。另外两种不动这个和。

# %% [check]
assert last_over_first["post"] > 50
assert 0.5 < last_over_first["pre"] < 2
assert 0.5 < last_over_first["output"] < 2

# %% [markdown]
# ## Weight and height: two norms, two directions
#
# *Batch normalisation* (批量规范化) takes one feature of all examples together. Layer normalisation takes all features of one
# example together. Five people show the difference. They have two features of different size: a weight in kilograms and a
# height in centimetres.

# %% [markdown] lang="zh"
# ## 体重与身高：两种规范化，两个方向
#
# *批量规范化*把所有样本的同一个特征放在一起。层规范化把一个样本的所有特征放在一起。用五个人就能看出区别。
# 他们有两个大小不同的特征：以千克计的体重，以厘米计的身高。

# %%
names = ["Anna", "Ben", "Chen", "Dana", "Emil"]
people = torch.tensor([[52.0, 158], [61, 169], [70, 182], [83, 174], [97, 176]])  # kg, cm
by_feature = F.batch_norm(people, None, None, training=True)
by_person = F.layer_norm(people, (2,))
print("name    kg   cm    BatchNorm       LayerNorm")
for name, (kg, cm), one, other in zip(names, people, by_feature, by_person, strict=True):
    after = "     ".join(f"{kg_after:+.2f} {cm_after:+.2f}" for kg_after, cm_after in (one, other))
    print(f"{name:<5} {kg:4.0f} {cm:4.0f}    {after}")

figure = new_figure(9.5, 3.2, "Five people before and after two norms")
panels = figure.subplots(1, 3)
for axes, (title, values) in zip(
    panels,
    {"before": people, "BatchNorm": by_feature, "LayerNorm": by_person}.items(),
    strict=True,
):
    axes.scatter(values[:, 0], values[:, 1])
    axes.margins(0.2)
    axes.set(title=title, xlabel="weight", ylabel="height")
    if title != "LayerNorm":
        for name, (x_of, y_of) in zip(names, values.tolist(), strict=True):
            axes.annotate(name, (x_of, y_of), xytext=(4, 4), textcoords="offset points", fontsize=8)
panels[2].annotate("all five", (-1, 1), xytext=(6, -12), textcoords="offset points", fontsize=8)
panels[2].set(xlim=(-2, 2), ylim=(-2, 2))
show(
    figure,
    "weight-and-height",
    "Three scatter plots of five people: before, in kilograms and centimetres; after BatchNorm, "
    "the same pattern around zero; after LayerNorm, all five people on one point.",
)

# %% [markdown]
# Look at: the middle picture, where the five people stand to each other as before. Then look at the right picture: one point.
#
# What each norm does to these numbers:
#
# - BatchNorm takes a column. A weight becomes "heavier or lighter than the others here". Kilograms and centimetres are now of
#   one size, and the people differ as before.
# - LayerNorm takes a row. It computes the mean of a weight and a height, which is no quantity at all. Of two numbers, with
#   their mean taken away and their size set to 1, only the order is left: each person becomes -1 and +1, for every height is
#   a larger number than every weight. Who is who is lost.
# - BatchNorm depends on who else is there. Without Emil, Anna becomes other numbers. LayerNorm gives her the same.

# %% [markdown] lang="zh"
# 看图：中图里，五个人之间的关系和原来一样。再看右图：只有一个点。
#
# 两种规范化对这些数做了什么：
#
# - 批量规范化取一列。体重变成了“比这里的其他人重还是轻”。千克和厘米现在大小相当，人与人的差别和原来一样。
# - 层规范化取一行。它求体重和身高的平均值，而这根本不是什么量。两个数减去平均值，再把大小化为 1，剩下的只有先后大小：
#   每个人都变成 -1 和 +1，因为每个身高的数都大于每个体重的数。谁是谁，已经看不出来。
# - 批量规范化取决于在场的还有谁。没有 Emil，Anna 就变成别的数。层规范化给她的数不变。

# %% [check]
assert torch.allclose(by_person, torch.tensor([[-1.0, 1.0]]).expand(5, -1), atol=1e-3)
assert torch.allclose(by_feature.mean(0), torch.zeros(2), atol=1e-5)
assert torch.allclose(by_feature.var(0, correction=0), torch.ones(2), atol=1e-3)
assert people[:, 1].min() > people[:, 0].max()
without_emil = F.batch_norm(people[:4], None, None, training=True)
assert (without_emil[0] - by_feature[0]).abs().max() > 0.1
assert torch.equal(F.layer_norm(people[:4], (2,)), by_person[:4])

# %% [markdown]
# Does it matter? A classifier (分类器) learns to say of 400 made-up people whether they are heavy for their height, and is
# asked about 400 others. It reads the numbers after a norm. In the last row a linear layer makes 16 features of the two,
# before the LayerNorm.

# %% [markdown] lang="zh"
# 这要紧吗？一个分类器从 400 个虚构的人学习判断一个人相对于身高是否偏重，然后回答另外 400 个人。
# 它读的是规范化之后的数。最后一行里，先由一个线性层把两个特征变成 16 个，再做层规范化。

# %%
torch.manual_seed(1)
cm = 170 + 8 * torch.randn(800)
kg = 25 * (cm / 100) ** 2 + 9 * torch.randn(800)
crowd, heavy = torch.stack([kg, cm], dim=1), (kg > 25 * (cm / 100) ** 2).float()
models = {
    "no norm": nn.Linear(2, 1),
    "BatchNorm": nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)),
    "LayerNorm of 2": nn.Sequential(nn.LayerNorm(2), nn.Linear(2, 1)),
    "LayerNorm of 16": nn.Sequential(nn.Linear(2, 16), nn.LayerNorm(16), nn.Linear(16, 1)),
}
right = {"the more frequent answer": max(heavy[400:].mean().item(), 1 - heavy[400:].mean().item())}
for name, classifier in models.items():
    optimizer = torch.optim.Adam(classifier.parameters(), lr=0.02)
    for _ in range(500):
        loss = F.binary_cross_entropy_with_logits(classifier(crowd[:400])[:, 0], heavy[:400])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    answers = classifier.eval()(crowd[400:])[:, 0] > 0
    right[name] = (answers == heavy[400:].bool()).float().mean().item()
for name, share in right.items():
    print(f"{name:<25} {share:.0%} right")

# %% [check]
assert right["LayerNorm of 2"] < right["the more frequent answer"] + 0.01
assert right["BatchNorm"] > 0.95
assert right["LayerNorm of 16"] > 0.9

# %% [markdown]
# LayerNorm of the two numbers has lost the answer: the classifier is no better than always giving one answer. With 16 features it
# has not. LayerNorm takes two things from a vector, its mean and its size. Of two numbers then only a sign is left. Of 16
# numbers 14 are left, and a Transformer has hundreds. So LayerNorm does harm where few features have units of their own, and
# none where many features were mixed by a matrix before.
#
# ## BatchNorm among sentences
#
# In a batch of sentences the examples are tokens, and some places are padding. Then BatchNorm has one more fault: what a
# sentence becomes depends on its neighbours and on the padding. LayerNorm treats each position alone.

# %% [markdown] lang="zh"
# 对两个数做层规范化，答案就丢了：分类器不比永远给同一个答案更好。有 16 个特征时则没有丢。层规范化从一个向量拿走两样东西：
# 平均值和大小。两个数只剩一个正负号。16 个数还剩 14 个，而 Transformer 有几百个。
# 所以，特征少而且各有单位时，层规范化有害；许多特征先由矩阵混合过，就无害。
#
# ## 句子中的批量规范化
#
# 在句子的批次里，样本是词元，而且有些位置是填充。这时批量规范化还多一个毛病：一个句子变成什么，取决于旁边的句子和填充。
# 层规范化则单独对待每个位置。

# %%
from dragoman.analysis.norms import normed_batch, norms_figure

sentences, versions = normed_batch(["i want a beer", "we read"])
for name in ("LayerNorm", "BatchNorm1d"):
    effect = versions[name].neighbour_effect
    print(f"{name:<12} 'i want a beer' without its neighbour changes by up to {effect:.2f}")
show(
    norms_figure(sentences, versions),
    "norms",
    "The vectors of a batch of two sentences before a norm, after LayerNorm and after BatchNorm: "
    "LayerNorm treats each position alone, BatchNorm each feature over all tokens.",
)

# %% [markdown]
# Look at: the rows of padding in the second sentence. After BatchNorm they have colours; what is nothing has become numbers.
#
# ## Two ways to divide
#
# The Annotated Transformer (2018 and 2022) divides by the standard deviation with $n - 1$ plus $\epsilon$. PyTorch, and the
# paper of layer normalisation (Ba et al. 2016), divide by the root of (variance with $n$, plus $\epsilon$). With 512 features
# the difference is 0.1 %; with 4 it is 15 %.

# %% [markdown] lang="zh"
# 看图：第二个句子里填充的那几行。批量规范化之后它们有了颜色；本来什么也没有的地方变成了数。
#
# ## 两种除法
#
# The Annotated Transformer（2018 与 2022）除以标准差（用 $n - 1$）加 $\epsilon$。PyTorch，以及层规范化的论文（Ba 等，2016），
# 除以（用 $n$ 的方差加 $\epsilon$）的平方根。512 个特征时相差 0.1 %，4 个特征时相差 15 %。

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
print("LayerNorm        ", F.layer_norm(x, (4,)))
print("with n - 1       ", (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6))
print("RMSNorm, no mean ", F.rms_norm(x, (4,)))

# %% [check]
for width, percent in ((512, 0.1), (4, 15)):
    x_of_width = torch.randn(1, width)
    with_n_minus_1 = (x_of_width - x_of_width.mean()) / (x_of_width.std() + 1e-6)
    ratio = float((F.layer_norm(x_of_width, (width,)) / with_n_minus_1).mean())
    assert abs(100 * (ratio - 1) - percent) < 0.5
assert (
    versions["LayerNorm"].neighbour_effect < 1e-5 < 0.1 < versions["BatchNorm1d"].neighbour_effect
)
padding = torch.tensor(versions["BatchNorm1d"].values[1, 3:])
assert not torch.tensor(versions["before"].values[1, 3:]).any()
assert padding.abs().max() > 0.1

# %% [markdown]
# ## Without the path
#
# More data: the toy task of reversing a row of symbols. The laboratory's model has two and two layers, and misses the residual
# connection already.

# %% [markdown] lang="zh"
# ## 没有这条通路
#
# 用更多的数据：把一行符号倒过来的玩具任务。实验室的模型只有两层加两层，少了残差连接就已经不行。

# %%
from dragoman.learn.bugs import BUGS
from dragoman.learn.laboratory import train

without = next(bug for bug in BUGS if bug.name == "no path around the sublayer")
with_path = train(seed=1).last_loss
print(f"with it:    loss {with_path:.3f}")
with without.planted():
    without_path = train(seed=1).last_loss
print(f"without it: loss {without_path:.3f}")

# %% [check]
assert without_path > 10 * with_path

# %% [markdown]
# ## The feed-forward network
#
# $\text{relu}(x W_1 + b_1) W_2 + b_2$, the same for each position. It is a convolution (卷积) whose kernel is one position wide.
#
# > code: nn/feedforward.py: FeedForward.forward

# %% [markdown] lang="zh"
# ## 前馈网络
#
# $\text{relu}(x W_1 + b_1) W_2 + b_2$，对每个位置都一样。它是一个卷积，卷积核只有一个位置宽。
#
# > code: nn/feedforward.py: FeedForward.forward

# %%
from dragoman.nn.feedforward import FeedForward

ffn = FeedForward(4, 16, activation=nn.ReLU())
x = torch.randn(2, 5, 4)
inner = F.conv1d(x.transpose(1, 2), ffn.expand.weight[..., None], ffn.expand.bias).relu()
outer = F.conv1d(inner, ffn.contract.weight[..., None], ffn.contract.bias)
print("a convolution gives the same:", torch.allclose(ffn(x), outer.transpose(1, 2), atol=1e-5))

# %% [check]
assert torch.allclose(ffn(x), outer.transpose(1, 2), atol=1e-5)
from dragoman.nn.residual import PreNorm

assert PreNorm(nn.LayerNorm(4), dropout=0.0)(x, ffn).shape == x.shape

# %% [markdown]
# ## Three lines to keep
#
# - A sublayer adds to the sum; the sum itself has nothing on it but additions.
# - LayerNorm knows one position; BatchNorm knows one feature of all, and padding with them.
# - Pre-norm leaves the sum alone and needs one more norm at the end of the stack.
#
# ## If you come from d2l
#
# d2l's example `PositionWiseFFN(4, 4, 8)` has another output size than its input. In a residual connection that cannot be: what
# is added to $x$ must be as wide as $x$, so `FeedForward` has no such size.
#
# ## Exercises
#
# `dragoman learn check 9` grades them. `dragoman learn check 9 --hint NAME` gives the next hint.
#
# - predict: `predict_norm`, a vector after layer normalisation
# - fill: `rms_norm`, a norm without a mean
# - write: `layer_norm`, layer normalisation
# - write: `as_convolution`, the feed-forward network as a convolution
# - write: `pre_norm`, a residual connection with the norm inside
# - experiment: `alike_after_norm`, two vectors that a norm makes equal
#
# For your own Transformer: `mini_transformer.py`, pieces `EncoderLayer`, `DecoderLayer`.
#
# Bugs to hunt: `dragoman learn bug 23`, `24`.
#
# ## Read on
#
# - Ba, Kiros and Hinton 2016, "Layer Normalization", section 5.1: what each norm does not change under which change of the data.
# - Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", section 3: post-norm and pre-norm.

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - 子层往和上添加；这个和的途中只有加法。
# - 层规范化只认一个位置；批量规范化认所有样本的一个特征，连填充也算在内。
# - 前置规范化不动这个和，但堆叠的末尾还需要一个规范化。
#
# ## 如果你从 d2l 来
#
# d2l 的例子 `PositionWiseFFN(4, 4, 8)` 的输出大小和输入不同。在残差连接里这不可能：加到 $x$ 上的东西必须和 $x$ 一样宽，
# 所以 `FeedForward` 没有这样的大小。
#
# ## 练习
#
# `dragoman learn check 9` 给它们打分。`dragoman learn check 9 --hint NAME` 给出下一个提示。
#
# - 预测：`predict_norm`，层规范化之后的向量
# - 填空：`rms_norm`，不减平均值的规范化
# - 编写：`layer_norm`，层规范化
# - 编写：`as_convolution`，用卷积实现前馈网络
# - 编写：`pre_norm`，规范化在内的残差连接
# - 实验：`alike_after_norm`，规范化之后相等的两个向量
#
# 你自己的 Transformer：`mini_transformer.py`，这两块是 `EncoderLayer` 和 `DecoderLayer`。
#
# 待捉的错误：`dragoman learn bug 23`、`24`。
#
# ## 延伸阅读
#
# - Ba、Kiros 与 Hinton，2016，《Layer Normalization》，第 5.1 节：数据怎样变化时，哪种规范化的结果不变。
# - Xiong 等，2020，《On Layer Normalization in the Transformer Architecture》，第 3 节：后置与前置规范化。
