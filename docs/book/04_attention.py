# %% [markdown]
# # 4. Attention (注意力)
#
# *How does a decoder find, among all words of the source, the one that it needs now?*
#
# Time: about 75 minutes to read and try; the cells run in 14 seconds on one core.
# You need chapter 0 (softmax) and chapter 3 (encoder and decoder, the bottleneck).
#
# The decoder of chapter 3 knows one vector of the whole sentence. This chapter gives it all vectors of the encoder, one
# for each token, and a way to choose among them (Bahdanau et al. 2015).
#
# ## A naive try that fails
#
# We let four vectors stand for "ich möchte ein bier". Before "a" the decoder needs the third of them, before "beer" the
# fourth. A mean of all four is the same for both. Taking the one that fits best is a choice, but nothing is learnt
# from it: `argmax` has no gradient.

# %% [markdown] lang="zh"
# # 4. 注意力
#
# *解码器怎样在源语言的所有词中，找到现在需要的那一个？*
#
# 时间：阅读和尝试大约 75 分钟；在一个核上运行各单元格需要 14 秒。
# 需要第 0 章（softmax）和第 3 章（编码器与解码器、瓶颈）。
#
# 第 3 章的解码器只知道整个句子的一个向量。本章把编码器的所有向量交给它，每个词元一个，还给它一种在其中选择的办法
# （Bahdanau 等，2015）。
#
# ## 一次失败的朴素尝试
#
# 我们用四个向量代表“ich möchte ein bier”。说“a”之前，解码器需要第三个；说“beer”之前，需要第四个。
# 四个向量的平均值对两者都一样。取最相配的那一个，算是一种选择，但从中学不到东西：`argmax` 没有梯度。

# %%
import torch

torch.manual_seed(1)
memory = torch.randn(4, 16)  # ich, möchte, ein, bier: a vector of 16 numbers for each
queries = memory + 0.3 * torch.randn(4, 16)  # what the decoder asks before i, want, a, beer
queries.requires_grad_()

print("the mean, before any word:", [round(value, 2) for value in memory.mean(dim=0).tolist()[:4]])
chosen = memory[(queries @ memory.T).argmax(dim=-1)]
print("the best of four: a gradient goes back to the queries:", chosen.requires_grad)

# %% [markdown]
# ## The idea
#
# **Compare the query with every key, make weights of the scores by a softmax, and take the mean of the values with these
# weights.**
#
# It is a soft choice: a mean in which the vector that fits best has most of the weight.
#
# $$\text{context} = \sum_j \alpha_j v_j, \qquad \alpha = \text{softmax}(\text{score}(q, k_1), \text{score}(q, k_2), \dots)$$
#
# The *query* (查询) $q$ is what the decoder asks with: its state. The *keys* (键) $k_j$ are compared with it. The *values* (值)
# $v_j$ are what is added up. In this chapter the encoder's vectors are keys and values. The sum is the *context*
# (上下文), and the $\alpha_j$ are the *attention weights* (注意力权重).
#
# ## In plain PyTorch
#
# The score of the Transformer is the dot product, divided by the root of the number of features (chapter 7 measures why):
#
# $$\text{attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^T}{\sqrt{d}}\right) V$$
#
# All queries are computed at once. `mask` says which keys a query may see. It has its own chapter, the next one; here
# every key may be seen.

# %% [markdown] lang="zh"
# ## 思想
#
# **把查询与每个键比较，用 softmax 把得分变成权重，再用这些权重求值的平均。**
#
# 这是软性的选择：一个平均值，其中最相配的向量占大部分权重。
#
# $$\text{context} = \sum_j \alpha_j v_j, \qquad \alpha = \text{softmax}(\text{score}(q, k_1), \text{score}(q, k_2), \dots)$$
#
# *查询*（query）$q$ 是解码器用来提问的东西，即它的状态。*键*（key）$k_j$ 与它比较。*值*（value）$v_j$ 是被加起来的东西。
# 本章中编码器的向量既是键，也是值。得到的和就是*上下文*（context），$\alpha_j$ 是*注意力权重*（attention weight）。
#
# ## 用普通的 PyTorch 写
#
# Transformer 的得分是点积，再除以特征数的平方根（为什么要除：第 7 章用测量来回答）：
#
# $$\text{attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^T}{\sqrt{d}}\right) V$$
#
# 所有查询一次算完。`mask` 即掩码，说明一个查询可以看哪些键。它自成一章，就是下一章；这里每个键都可以看。

# %%
import math


def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)  # a query's weights sum to 1
    return weights @ value, weights


context, weights = attention(queries, memory, memory)
print("weights of     ich   möchte   ein   bier")
for word, row in zip(["i", "want", "a", "beer"], weights.tolist(), strict=True):
    print(f"before {word:<5}", *(f"{weight:6.2f}" for weight in row))
print("a gradient goes back to the queries:", context.requires_grad)

# %% [markdown]
# Dragoman has this function for the Transformer, with a dimension for sentences and one for heads (chapter 7). The same
# score is there for recurrent decoders.
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# > code: nn/recurrent_attention.py: ScaledDotAttention

# %% [markdown] lang="zh"
# Dragoman 中有 Transformer 用的这个函数，多了句子的维度和头（第 7 章）的维度。循环解码器也有同样的得分。
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# > code: nn/recurrent_attention.py: ScaledDotAttention

# %%
from dragoman.nn.attention import scaled_dot_product_attention
from dragoman.nn.recurrent_attention import SCORES, ScaledDotAttention

q, m = queries[None], memory[None]  # one sentence
theirs, their_weights = scaled_dot_product_attention(q[None], m[None], m[None], mask=None)
print("the Transformer's:", torch.allclose(context, theirs[0, 0], atol=1e-6))
score = ScaledDotAttention(16)
all_real = torch.ones(1, 4, dtype=torch.bool)
theirs, _ = score.attend(q, score.project_keys(m), m, all_real)
print("a recurrent one's:", torch.allclose(context, theirs[0], atol=1e-6))

# %% [check]
from dragoman.learn import mini_solution

assert not chosen.requires_grad
assert context.requires_grad
assert torch.equal(weights.argmax(dim=-1), torch.arange(4))
assert weights.diagonal().min() > 0.5
assert torch.allclose(weights.sum(-1), torch.ones(4))
assert all(map(torch.allclose, attention(q, m, m), mini_solution.attention(q, m, m)))
assert torch.allclose(weights, their_weights[0, 0], atol=1e-6)
assert torch.allclose(context, theirs[0], atol=1e-6)

# %% [markdown]
# ## Four scores
#
# | name | score | source |
# |---|---|---|
# | additive (加性) | $v \cdot \tanh(W q + U k)$ | Bahdanau et al. 2015 |
# | dot (点积) | $q \cdot k$ | Luong et al. 2015 |
# | general (一般) | $q \cdot W k$ | Luong et al. 2015 |
# | scaled dot (缩放点积) | $q \cdot k / \sqrt{d}$ | Vaswani et al. 2017 |
#
# $W$, $U$ and $v$ are learnt. The query and the key are compared in each of the four, and the softmax after it is the same.
#
# > code: nn/recurrent_attention.py: AdditiveAttention.scores
#
# > code: nn/recurrent_attention.py: RecurrentAttention.attend

# %% [markdown] lang="zh"
# ## 四种得分
#
# | 名称 | 得分 | 出处 |
# |---|---|---|
# | 加性 | $v \cdot \tanh(W q + U k)$ | Bahdanau 等，2015 |
# | 点积 | $q \cdot k$ | Luong 等，2015 |
# | 一般 | $q \cdot W k$ | Luong 等，2015 |
# | 缩放点积 | $q \cdot k / \sqrt{d}$ | Vaswani 等，2017 |
#
# $W$、$U$ 和 $v$ 要学习。四种得分都比较查询与键，其后的 softmax 相同。
#
# > code: nn/recurrent_attention.py: AdditiveAttention.scores
#
# > code: nn/recurrent_attention.py: RecurrentAttention.attend

# %%
every_weights = {}
for name, make in SCORES.items():
    score = make(16)
    _, rows = score.attend(q, score.project_keys(m), m, all_real)
    every_weights[name] = rows[0].detach()
    print(f"{name:<11} before beer:", *(f"{weight:5.2f}" for weight in rows[0, 3].tolist()))

# %% [markdown]
# Each row sums to 1. The scores without learnt matrices look at `bier`. The other two have been drawn at random, and know
# nothing yet.
#
# ## Where the tanh stands
#
# Add one number to all inputs of a softmax, and its output stays the same. Without the tanh the additive score is
# $v \cdot (W q + U k) = v \cdot W q + v \cdot U k$, and its first part is the same for all keys: whatever the query is, the
# weights are the same. A tanh of each part alone does not help: $v \cdot \tanh(W q)$ is again the same for all keys. Only
# the tanh of the **sum** lets the query choose.

# %% [markdown] lang="zh"
# 每一行的和是 1。没有可学习矩阵的得分看向 `bier`。另外两种是随机初始化的，还什么都不知道。
#
# ## tanh 放在哪里
#
# 给 softmax 的所有输入加上同一个数，输出不变。没有 tanh 时，加性得分是
# $v \cdot (W q + U k) = v \cdot W q + v \cdot U k$，其中第一部分对所有键都相同：无论查询是什么，权重都一样。
# 对每一部分单独取 tanh 也没有用：$v \cdot \tanh(W q)$ 对所有键还是相同。只有对**和**取 tanh，查询才能选择。

# %%
v, W, U = torch.randn(8), torch.randn(8, 16), torch.randn(8, 16)
of_queries, of_keys = (queries @ W.T)[:, None], (memory @ U.T)[None]  # (4, 1, 8) and (1, 4, 8)
spreads = {}
for name, sums in {
    "tanh of the sum": (of_queries + of_keys).tanh(),
    "sum of two tanhs": of_queries.tanh() + of_keys.tanh(),
    "no tanh": of_queries + of_keys,
}.items():
    rows = (sums @ v).softmax(-1)
    spreads[name] = (rows - rows[0]).abs().max().item()
    print(f"{name:<17} the queries' weights differ by up to {spreads[name]:.4f}")

# %% [check]
scores = torch.tensor([0.3, 1.2, -0.5])
assert torch.allclose(scores.softmax(-1), (scores + 7.0).softmax(-1), atol=1e-6)
for name, rows in every_weights.items():
    assert torch.allclose(rows.sum(-1), torch.ones(4), atol=1e-5)
    assert name not in ("dot", "scaled_dot") or rows[3].argmax() == 3
assert spreads["tanh of the sum"] > 0.01
assert max(spreads["sum of two tanhs"], spreads["no tanh"]) < 1e-5

# %% [markdown]
# ## What it learns: first the one sentence
#
# The recurrent model of chapter 3, now with additive attention, learns our sentence. Each row says where it looks before
# it says a word.

# %% [markdown] lang="zh"
# ## 它学到什么：先看那一个句子
#
# 第 3 章的循环模型，现在加上加性注意力，来学我们的句子。每一行说明它在说一个词之前看哪里。

# %%
from dragoman.learn.one_sentence import SRC_VOCAB, TGT_VOCAB, one_sentence, take_step
from dragoman.models.recurrent import RecurrentConfig
from dragoman.training.loss import token_loss

torch.manual_seed(1)
config = RecurrentConfig(d_embedding=32, d_model=48, attention="additive", tie_embeddings="none")
model = config.build(src_vocab_size=8, tgt_vocab_size=8, shared_vocab=False, pad_id=0)
batch, optimizer = one_sentence(), torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    logits = model(batch.src, batch.src_mask, batch.tgt_in)
    take_step(optimizer, token_loss(logits, batch.tgt_out, batch.tgt_mask) / batch.num_tokens)


def map_of(model, batch):
    with torch.no_grad():
        maps = model.eval().attention_maps(batch.src, batch.src_mask, batch.tgt_in)
    return next(iter(maps.values()))[0, 0]  # (places of the target, places of the source)


by_heart = map_of(model, batch)
print(" " * 12, *(f"{SRC_VOCAB[token]:>6}" for token in batch.src[0].tolist()))
for token, row in zip(batch.tgt_out[0].tolist(), by_heart.tolist(), strict=True):
    print(f"before {TGT_VOCAB[token]:<5}", *(f"{weight:6.2f}" for weight in row))

# %% [markdown]
# The largest weight of every row is at `</s>`. That is no mistake: with one sentence there is nothing to choose, and the
# state alone is enough to say it by heart. A map shows what a task has made a model look at, and this task asks for nothing.
#
# ## Then more data
#
# Another recurrent model with additive attention learns to reverse symbols, from thousands of examples. To say the first
# symbol it needs the last.

# %% [markdown] lang="zh"
# 每一行的最大权重都在 `</s>` 上。这不是错误：只有一个句子时，没有什么可选择的，单凭状态就能把它背出来。
# 注意力图显示任务让模型看了哪里，而这个任务什么也不要求。
#
# ## 再看更多数据
#
# 另一个带加性注意力的循环模型，从数千个例子中学习把符号倒过来。要说第一个符号，它需要最后一个。

# %%
from dragoman.learn.laboratory import pairs, train

trained = train(seed=1, type="recurrent", attention="additive")
print(f"loss {trained.last_loss:.3f}, right {trained.exact('reverse'):.0%}")

# %%
from dragoman.analysis.figure import draw_matrix, new_figure, token_axes
from dragoman.data.batch import collate
from dragoman.learn.chapter import show

src, tgt = next(pair for pair in pairs("reverse", "test", 50) if len(pair[0]) == 6)
reversing = map_of(trained.model, collate([(src, tgt)]))
figure = new_figure(4.4, 3.6, "Additive attention of a model that reverses")
axes = figure.subplots()
draw_matrix(axes, reversing.numpy(), low=0, high=1, aspect="equal")
token_axes(axes, [*[str(i - 3) for i in tgt], "</s>"], [*[str(i - 3) for i in src], "</s>"])
axes.set_xlabel("looks at source symbol")
axes.set_ylabel("symbol to be said next")
show(
    figure,
    "reverse-attention",
    "Weights of a model that reverses: large ones from the upper right to the lower left",
)

# %% [check]
looks_at = (
    reversing[: len(tgt)].argmax(dim=-1).tolist()
)  # of each symbol to be said, the place in the source
right_places = list(range(len(src)))[::-1]
assert trained.exact("reverse") > 0.8
assert sum(abs(a - b) <= 1 for a, b in zip(looks_at, right_places, strict=True)) >= len(src) - 2, (
    looks_at
)
assert (by_heart.argmax(dim=-1) == 4).all()

# %% [markdown]
# Look at: the dark cells from the upper right to the lower left. Row by row, the model goes through the source from its end.
#
# ## Does attention help long sentences?
#
# That was the promise of 2015. BLEU scores translations from 0 to 100, and higher is better (chapter 13). On Multi30k
# (English to German, one run each; `benchmarks/families.md` has all rows):
#
# | words of the source | BLEU without attention | BLEU with the dot product |
# |---|---|---|
# | 1-8 | 39.35 | 45.82 |
# | 15-17 | 23.84 | 35.50 |
# | 21 or more | 13.81 | 23.68 |
#
# Attention helps at each length. It does **not** give long sentences the BLEU of short ones: from the first row to the
# last the model with attention loses 22 points, and the model without loses 26. Of its first row's BLEU the model with attention
# keeps a half, the other a third. `dragoman inspect lengths RUN` makes this table of any run.
#
# Here in small: exact matches by length, with and without attention, after the same training on copying. Copying needs
# every symbol; without attention one vector has to hold them all.

# %% [markdown] lang="zh"
# 看图：从右上到左下的深色格子。模型一行一行地，从源语言的末尾往前看。
#
# ## 注意力对长句有帮助吗？
#
# 这是 2015 年的承诺。BLEU 是译文质量的分数，从 0 到 100，越高越好（第 13 章）。
# 在 Multi30k 上（英译德，各训练一次；完整的表见 `benchmarks/families.md`）：
#
# | 源语言的词数 | 没有注意力的 BLEU | 点积注意力的 BLEU |
# |---|---|---|
# | 1-8 | 39.35 | 45.82 |
# | 15-17 | 23.84 | 35.50 |
# | 21 个及以上 | 13.81 | 23.68 |
#
# 在每种长度上，注意力都有帮助。但它**不能**让长句保持短句那样高的 BLEU：从第一行到最后一行，有注意力的模型降了 22 分，没有的降了 26 分。
# 与自己第一行的 BLEU 相比，有注意力的模型剩下一半，另一个剩下三分之一。`dragoman inspect lengths RUN` 可以对任何一次训练做出这张表。
#
# 这里做一个小的：经过同样的抄写训练，有注意力和没有注意力时，各种长度上完全正确的比例。抄写需要每一个符号；
# 没有注意力时，一个向量要装下全部符号。

# %%
plain = train(seed=1, type="recurrent", attention="none", task="copy")
with_attention = train(seed=1, type="recurrent", attention="additive", task="copy")

# %%
from dragoman.learn.laboratory import translate

data = pairs("copy", "test", 400)
figure = new_figure(6, 3.2, "Exact matches by length, copying")
axes, shares = figure.subplots(), {}
for label, model in (("no attention", plain.model), ("additive attention", with_attention.model)):
    results = zip(translate(model, [src for src, _ in data]), data, strict=True)
    right = [(len(src), translation == tgt) for translation, (src, tgt) in results]
    matches = {n: [is_right for length, is_right in right if length == n] for n in range(2, 7)}
    shares[label] = [sum(each) / len(each) for each in matches.values()]
    axes.plot(list(matches), shares[label], marker="o", label=label)
    row = zip(matches, shares[label], strict=True)
    print(f"{label:<18}", " ".join(f"{n}: {share:.0%}" for n, share in row))
axes.set_xlabel("symbols")
axes.set_ylabel("share that is right")
axes.set_ylim(0, 1.05)
axes.legend()
show(
    figure,
    "by-length",
    "Without attention the share of exact matches falls with the length; with attention it stays",
)

# %% [check]
assert min(shares["additive attention"]) > 0.9
assert shares["no attention"][0] > 0.9
assert shares["no attention"][-1] < 0.7
assert shares["no attention"][-1] < shares["no attention"][-2] < shares["no attention"][0]
assert shares["no attention"][-1] == min(shares["no attention"])

# %% [markdown]
# Look at: the right ends of the two lines. One stays at the top, the other falls.
#
# ## What the output says
#
# - A query that points where a key points gives that key more than half of the weight, and a gradient goes back to it.
# - Our function, the Transformer's and the recurrent decoder's give the same context.
# - Without the tanh of the sum, all queries have the same weights.
# - A model that knows one sentence by heart looks at `</s>` before every word.
# - A model that has learnt to reverse looks at the right place, or beside it, in all rows but two at most.
# - With these few symbols the model with attention copies nearly all of them at each length. The model without copies the
#   shortest, and is worst at the longest. In the table above the fall is there for both: real sentences get harder with
#   their length for other reasons too.
#
# ## Three lines to keep
#
# - Query meets key: a score. Scores to softmax: weights. Weights times values: the context.
# - The choice is soft, so a gradient reaches all keys.
# - A map shows where a model looks, and it means something only if the task needs the choice.
#
# ## If you come from d2l
#
# - `AdditiveAttention` of d2l.ai (edition 1.0) has the tanh of the sum, as Bahdanau's paper has it. `MLPAttention` of its
#   earlier MXNet edition writes that formula, and its code takes a tanh of each projection alone. Versions of that
#   class for PyTorch are passed on, and they have no tanh at all. In both the query drops out, as above.
# - d2l's decoder with Bahdanau's attention asks with the *previous* state, as we do; Luong's asks with the new one.
#
# ## Exercises
#
# `dragoman learn 4` writes a file for your answers, `dragoman learn check 4` grades them, and
# `dragoman learn check 4 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_weights`, the attention weights of two scores.
# - fill: `attend_once`, the attention of one query.
# - write: `additive_scores`, the scores of additive attention.
# - write: `attention`, scaled dot-product attention.
# - experiment: `query_for_bier`, a query that looks at one key of four.
#
# For your own Transformer: `mini_transformer.py`, piece `attention`.
#
# Bugs to hunt: `dragoman learn bug 15`, `16`.
#
# ## Read on
#
# - Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", section 3.1 and
#   appendix A.
# - Luong, Pham and Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.

# %% [markdown] lang="zh"
# 看图：两条线的右端。一条停在顶上，另一条落了下来。
#
# ## 输出说明了什么
#
# - 查询指向某个键所指的方向，这个键就得到一半以上的权重，并且有梯度传回查询。
# - 我们的函数、Transformer 的和循环解码器的，给出同样的上下文。
# - 没有对和取 tanh，所有查询的权重都相同。
# - 背下一个句子的模型，在每个词之前都看 `</s>`。
# - 学会倒序的模型，除了至多两行，都看着正确的位置，或者它的旁边。
# - 符号只有这么几个时，有注意力的模型在每种长度上几乎全部抄对。没有注意力的模型，最短的能抄对，最长的抄得最差。
#   上面的表中两者都下降：真实的句子变长时，还因为别的原因变难。
#
# ## 记住三句话
#
# - 查询遇到键，得到得分；得分经过 softmax，得到权重；权重乘以值，得到上下文。
# - 选择是软性的，所以梯度能到达所有的键。
# - 注意力图显示模型看哪里，只有任务需要选择时，它才有意义。
#
# ## 如果你从 d2l 来
#
# - d2l.ai（1.0 版）的 `AdditiveAttention` 对和取 tanh，与 Bahdanau 的论文相同。更早的 MXNet 版中的 `MLPAttention`
#   写的是这个公式，代码却对每个投影单独取 tanh。有人把这个类改写成 PyTorch，流传开来，其中完全没有 tanh。
#   两种情形下查询都不起作用，如上所示。
# - d2l 带 Bahdanau 注意力的解码器用*前一个*状态提问，与我们相同；Luong 的用新的状态。
#
# ## 练习
#
# `dragoman learn 4` 写出供你作答的文件，`dragoman learn check 4` 批改，`dragoman learn check 4 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_weights`，两个得分的注意力权重。
# - 填空：`attend_once`，一个查询的注意力。
# - 编写：`additive_scores`，加性注意力的得分。
# - 编写：`attention`，缩放点积注意力。
# - 实验：`query_for_bier`，一个只看四个键之一的查询。
#
# 你自己的 Transformer：`mini_transformer.py`，这一块是 `attention`。
#
# 待捉的错误：`dragoman learn bug 15`、`16`。
#
# ## 延伸阅读
#
# - Bahdanau、Cho 和 Bengio，2015，《Neural Machine Translation by Jointly Learning to Align and Translate》，第 3.1 节和附录 A。
# - Luong、Pham 和 Manning，2015，《Effective Approaches to Attention-based Neural Machine Translation》，第 3 节。
