# %% [markdown]
# # 1. One sentence (一个句子)
#
# *What does it take to learn one sentence by heart?*
#
# Time: about 60 minutes to read and try; the cells run in 40 seconds on one core.
# You need chapter 0: the softmax, the gradient, a step of an optimizer.
#
# The smallest training there is has one pair of sentences: "ich möchte ein bier" and "i want a beer". It shows all parts
# at work: ids, what a decoder reads and what it must say, a loss that falls, and a training that fails.
#
# ## Words and ids (编号)
#
# A *vocabulary* (词表) is a list of tokens (词元), and the place of a token in it is its *id*. Four specials come first in
# every vocabulary of this book: `<pad>` fills up short sentences, `<unk>` stands for an unknown word, `<s>` begins a
# sentence, and `</s>` ends it.

# %% [markdown] lang="zh"
# # 1. 一个句子
#
# *要把一个句子背下来，需要什么？*
#
# 时间：阅读和尝试大约 60 分钟；在一个核上运行各单元格需要 40 秒。
# 需要第 0 章：softmax、梯度、优化器的一步。
#
# 最小的训练只有一个句对：“ich möchte ein bier”和“i want a beer”。所有部分都在其中出现：编号、解码器读什么和该说什么、
# 下降的损失，以及一次失败的训练。
#
# ## 词与编号
#
# *词表*（vocabulary）是词元（token）的列表，词元在其中的位置就是它的*编号*（id）。在本书的每个词表里，最前面都是四个特殊词元：
# `<pad>` 填满较短的句子，`<unk>` 代表未知词，`<s>` 是句子的开头，`</s>` 是句子的结尾。

# %%
from dragoman.learn.one_sentence import SRC_VOCAB, TGT_VOCAB

print("source:", dict(enumerate(SRC_VOCAB)))
print("target:", dict(enumerate(TGT_VOCAB)))
src = [SRC_VOCAB.index(word) for word in ["ich", "möchte", "ein", "bier"]]
tgt = [TGT_VOCAB.index(word) for word in ["i", "want", "a", "beer"]]
print("ich möchte ein bier:", src)
print("i want a beer:      ", tgt)

# %% [markdown]
# These ids stay the same in every chapter. That both sentences have the same four numbers is chance: they are places in
# two different lists.
#
# ## A naive try that fails
#
# A translator has two parts. The *encoder* (编码器) reads the source sentence. The *decoder* (解码器) writes the target
# sentence, a token at a time, and reads what has been written. So we give the decoder the sentence to read and the same
# sentence to say, and train forty steps. Then it must translate alone, from the start token `<s>` on.
#
# `one_sentence` gives the pair as a batch. Its `batch.tgt_out` is the row that must be said, with `</s>` at the end. `build`
# makes a model; the 1 is the seed of its random numbers. `take_step` is the step of chapter 0: a gradient, and a step of
# the optimizer.

# %% [markdown] lang="zh"
# 这些编号在每一章都不变。两个句子恰好有同样的四个数，这是巧合：它们是两张不同列表中的位置。
#
# ## 一次失败的朴素尝试
#
# 翻译模型有两部分。*编码器*（encoder）读源语言句子。*解码器*（decoder）写目标语言句子，每次写一个词元，并读已经写出的部分。
# 于是我们让解码器读这个句子，也说同一个句子，训练四十步。然后它必须独自翻译，从起始符 `<s>` 开始。
#
# `one_sentence` 把句对做成一个批次（batch）。其中 `batch.tgt_out` 是应当说出的那一行，以 `</s>` 结尾。`build` 建立一个模型，
# 1 是随机数的种子。`take_step` 就是第 0 章的一步：求梯度，再走优化器的一步。

# %%
import math

import torch

from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.search import search
from dragoman.learn.one_sentence import SMALL, build, one_sentence, take_step
from dragoman.training.loss import token_loss

batch = one_sentence()


def train(model, decoder_reads, steps=40):
    optimizer = torch.optim.Adam(model.train().parameters(), lr=1e-3)
    for _ in range(steps):
        logits = model(batch.src, batch.src_mask, decoder_reads)
        loss = token_loss(logits, batch.tgt_out, batch.tgt_mask) / batch.num_tokens
        take_step(optimizer, loss)
    return loss.item()


def translate(model):
    [[best]] = search(model.eval(), batch.src, batch.src_mask, DecodingConfig(beam_size=1))
    return " ".join(TGT_VOCAB[token] for token in best.ids)


copying = build(1, **SMALL)
print(f"loss {train(copying, batch.tgt_out):.3f}, and the translation is: {translate(copying)!r}")

# %% [check]
copying_translation = translate(copying)
assert train(build(1, **SMALL), batch.tgt_out) < 0.1
assert copying_translation != "i want a beer"
assert len(copying_translation.split()) > 1 == len(set(copying_translation.split()))

# %% [markdown]
# The loss is nearly zero, and the translation is wrong. The decoder has learnt to repeat the token that it reads. It was
# never trained to read `<s>`, so its first word is chance. That word it repeats.
#
# ## The idea
#
# **The decoder reads the right tokens before a place and must say the token at that place: what it reads is what it must
# say, shifted by one.**
#
# The shift (移位) puts `<s>` before what is read, and `</s>` behind what is said. To read the right tokens, and not one's
# own, is called *teacher forcing* (强制教学).
#
# ## In plain PyTorch
#
# `shift` makes both rows. The rest of the cell is the smallest model that can learn the sentence: a table of *logits*
# (scores before a softmax), a row for each place, a column for each entry of the vocabulary. The *loss* (损失) is the
# mean, over the five places, of minus the log probability of the right token:
#
# $$L = -\frac{1}{5} \sum_{t=1}^{5} \log p(y_t)$$
#
# The logarithm is the natural one, so the unit of the loss is the *nat*.

# %% [markdown] lang="zh"
# 损失几乎是零，译文却是错的。解码器学会了重复它读到的词元。训练时它从未读过 `<s>`，所以它说的第一个词全凭偶然，然后它就一直重复这个词。
#
# ## 思想
#
# **解码器读某个位置之前的正确词元，并说出该位置的词元：它读的就是它该说的，只是移动了一位。**
#
# 移位把 `<s>` 放在所读内容的前面，把 `</s>` 放在所说内容的后面。读正确的词元，而不读自己写出的词元，这叫*强制教学*（teacher forcing）。
#
# ## 用普通的 PyTorch 写
#
# `shift` 生成这两行。单元格的其余部分是能学会这个句子的最小模型：一张 *logits*（softmax 之前的得分）表，
# 每个位置一行，词表的每一项一列。*损失*（loss）是五个位置上，正确词元的负对数概率的平均值：
#
# $$L = -\frac{1}{5} \sum_{t=1}^{5} \log p(y_t)$$
#
# 这里用自然对数，所以损失的单位是*奈特*（nat）。

# %%
PAD, BOS, EOS = 0, 2, 3


def shift(ids):
    return [BOS, *ids], [*ids, EOS]


tgt_in, tgt_out = shift(tgt)
print("the decoder reads", [TGT_VOCAB[token] for token in tgt_in])
print("it must say      ", [TGT_VOCAB[token] for token in tgt_out])

table = torch.zeros(5, 8, requires_grad=True)
optimizer = torch.optim.SGD([table], lr=10.0)
for step in range(6):
    log_probs = table - table.exp().sum(dim=-1, keepdim=True).log()  # the log of the softmax
    loss = -log_probs[range(5), tgt_out].mean()
    print(f"step {step}: loss {loss.item():.4f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% [markdown]
# Dragoman makes the same rows, and has the same loss. It sums over the tokens, so we divide by their number.
#
# > code: data/batch.py: collate
#
# > code: data/batch.py: _begin
#
# > code: training/loss.py: token_loss

# %% [markdown] lang="zh"
# Dragoman 生成同样的两行，损失也相同。它对词元求和，所以要除以词元的个数。
#
# > code: data/batch.py: collate
#
# > code: data/batch.py: _begin
#
# > code: training/loss.py: token_loss

# %%
print("same rows:", batch.tgt_in.tolist() == [tgt_in], batch.tgt_out.tolist() == [tgt_out])
log_probs = table.log_softmax(dim=-1)
ours = -log_probs[range(5), tgt_out].mean()
dragomans = token_loss(table[None], batch.tgt_out, batch.tgt_mask) / batch.num_tokens
print("same loss:", torch.allclose(ours, dragomans))

# %% [check]
from dragoman.learn import mini_solution

assert shift(tgt) == mini_solution.shift(tgt)
assert (src, tgt) == ([4, 5, 6, 7], [4, 5, 6, 7])
assert batch.src.tolist() == [[*src, EOS]]
assert batch.tgt_in.tolist() == [tgt_in] == [[2, 4, 5, 6, 7]]
assert batch.tgt_out.tolist() == [tgt_out] == [[4, 5, 6, 7, 3]]
assert torch.allclose(ours, dragomans)
assert torch.allclose(
    token_loss(torch.zeros(1, 5, 8), batch.tgt_out, batch.tgt_mask) / 5, torch.tensor(math.log(8))
)
assert ours < 0.1

# %% [markdown]
# A table of zeros thinks all 8 entries equally likely. Its loss is $\ln 8 = 2.08$: that is guessing. A model that knows
# which five tokens occur, and not where, has $\ln 5 = 1.61$. A loss of 0 is certainty.
#
# The table has learnt the sentence by heart, and it can do nothing else: it does not read the source. A model that reads
# comes next.
#
# ## A small model learns it
#
# A Transformer with two layers and vectors of 64 features (a feature is one number of a vector), and the shifted rows.
# Chapter 10 explains what is in it. A *greedy search* (贪心搜索) takes the most probable token, again and again, until `</s>`; chapter 12 is about searches.

# %% [markdown] lang="zh"
# 全零的表认为 8 个词元的可能性相同，它的损失是 $\ln 8 = 2.08$：这就是瞎猜。知道会出现哪五个词元、却不知道在哪里的模型，
# 损失是 $\ln 5 = 1.61$。损失为 0 就是完全确定。
#
# 这张表把句子背了下来，别的什么也不会：它不读源语言句子。下面是一个会读的模型。
#
# ## 小模型学会了
#
# 一个两层的 Transformer，向量是 64 维（每一维是一个特征），加上移位后的两行。里面有什么，第 10 章解释。*贪心搜索*（greedy search）每次取概率最大的词元，
# 一直取到 `</s>`；第 12 章专讲搜索。

# %%
reading = build(1, **SMALL)
print(f"loss {train(reading, batch.tgt_in):.3f}, and the translation is: {translate(reading)!r}")

# %% [check]
assert translate(reading) == "i want a beer"

# %% [markdown]
# ## A large model does not; which change cures it?
#
# The sentence is well known from a script: `5-1.Transformer` of graykode's nlp-tutorial. Its model has vectors of 512
# features, 8 heads (chapter 7) and 6 + 6 layers: 44 million parameters (参数). The norm (chapter 9) stands after each
# addition ("post-norm"), as in the paper of Vaswani et al. 2017. The learning rate (学习率) of Adam is 1e-3 from the first
# step on. We add a dropout (暂退法) of 0.1, as in the paper: in training a tenth of the numbers, drawn at random, is set to 0.
#
# Guess before you read on. Which of these four changes helps? Each is made alone.
#
# - pre-norm: the norm stands before each sublayer (a step inside a layer, chapter 9), and the addition after it is not
#   normalised;
# - a rate of 3e-4 instead of 1e-3;
# - four steps of warm-up (预热), in which the rate rises from 2.5e-4 to 1e-3;
# - no dropout.

# %% [markdown] lang="zh"
# ## 大模型却学不会；哪种改动能治好它？
#
# 这个句子因一个脚本而出名：graykode 的 nlp-tutorial 中的 `5-1.Transformer`。它的模型中每个向量有 512 个特征，有 8 个头（第 7 章）、6 + 6 层，
# 一共 4400 万个参数。规范化（第 9 章）放在每次相加之后（“post-norm”，后置规范化），与 Vaswani 等 2017 年的论文相同。Adam 的学习率从第一步起就是 1e-3。
# 我们加上 0.1 的暂退法（dropout），也与论文相同：训练时随机把十分之一的数置零。
#
# 请先猜再往下读。下面四种改动，哪一种有用？每次只改一处。
#
# - 前置规范化（pre-norm）：规范化放在每个子层（层里的一步，第 9 章）之前，其后的相加不再规范化；
# - 学习率用 3e-4，而不是 1e-3；
# - 四步预热（warm-up），学习率从 2.5e-4 升到 1e-3；
# - 不用暂退法。

# %%
from dragoman.learn.one_sentence import train_one_sentence

script = {"norm_placement": "post", "dropout": 0.1, "lr": 1e-3}
large_model = build(1, norm_placement="post")
print(f"{sum(parameter.numel() for parameter in large_model.parameters()):,} parameters")
changes = {
    "nothing changed": {},
    "pre-norm": {"norm_placement": "pre"},
    "rate 3e-4": {"lr": 3e-4},
    "warm-up": {"warmup_steps": 4},
    "no dropout": {"dropout": 0.0},
}
small_losses = train_one_sentence(seed=1, lr=3e-3, warmup_steps=5, **SMALL)
large = {name: train_one_sentence(seed=1, **{**script, **each}) for name, each in changes.items()}
print("losses at the steps 1, 3, 5 to 19")
for name, losses in {"small model": small_losses, **large}.items():
    print(f"{name:<16}", " ".join(f"{loss:4.2f}" for loss in losses[::2]))

# %%
from dragoman.analysis.figure import new_figure
from dragoman.learn.chapter import show

figure = new_figure(7, 3.4, "Twenty steps on one sentence")
axes = figure.subplots()
axes.plot(range(1, 21), small_losses, label="small model", linestyle="--")
for label, losses in large.items():
    axes.plot(range(1, 21), losses, label=f"large: {label}")
axes.axhline(math.log(8), color="gray", linewidth=0.8, label="guessing: ln 8")
axes.axhline(math.log(5), color="gray", linewidth=0.8, linestyle=":", label="the right five: ln 5")
axes.set_xticks(range(0, 21, 5))
axes.set_xlabel("step")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(
    figure,
    "one-sentence",
    "Losses of twenty steps: the small model and the large one with pre-norm learn the sentence, the others do not",
)

# %% [check]
post = [losses for name, losses in large.items() if name != "pre-norm"]
ends = [sum(losses[-3:]) / 3 for losses in post]
assert all(1.2 < end < 2.6 for end in ends), ends
assert large["pre-norm"][-1] < 0.5 < 1.0 < min(min(losses) for losses in post)
assert all(max(losses) > 3.0 > math.log(8) for losses in large.values())
assert 43_500_000 < sum(parameter.numel() for parameter in large_model.parameters()) < 44_500_000
assert small_losses[-1] < 0.3 < 1.5 < small_losses[0]
assert small_losses == sorted(small_losses, reverse=True)
drawn = [line for line in axes.get_lines() if len(set(line.get_ydata())) == 1]
assert [line.get_ydata()[0] for line in drawn] == [math.log(8), math.log(5)]
assert all(len(losses[::2]) == 10 for losses in large.values())


def share_moved_by_the_rate(lr: float) -> float:
    """The share of the weights that Adam's first step moves by 0.99 to 1.01 times the rate."""
    model = build(1, **{**SMALL, "norm_placement": "post"}).train()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    logits = model(batch.src, batch.src_mask, batch.tgt_in)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    take_step(optimizer, token_loss(logits, batch.tgt_out, batch.tgt_mask) / 5)
    moved = torch.cat(
        [(a - b).abs().flatten() for a, b in zip(model.parameters(), before, strict=True)]
    )
    return float(((moved > 0.99 * lr) & (moved < 1.01 * lr)).float().mean())


assert share_moved_by_the_rate(1e-3) > 0.8

# %% [markdown]
# Look at: the right end of the curves. Two of them are near zero. The others stay near the two gray lines. Then look at
# the first steps: every curve of the large model rises far above the gray lines, and the small model's falls at once.
#
# ## What the output says
#
# - The small model learns the sentence, with the shift. Its translation is right.
# - Of the four changes, only pre-norm cures the large model.
# - The other three changes, each with post-norm, end where the unchanged model ends: between $\ln 5$ and $\ln 8$,
#   the two losses of guessing, or near them.
# - Every large model, the one with pre-norm too, first gets worse than a model that knows nothing.
#
# Why does each loss of the large model rise? Adam divides a gradient by its own size. So its first step moves nearly every weight by the
# rate, however small the gradient is: here millions of weights by 1e-3 at once, along the gradient of five tokens.
# Why does pre-norm come back, and post-norm not? With pre-norm a sum runs from the first layer to the last, and nothing
# divides it; the gradient comes back along it. With post-norm the sum is divided by its size at each addition. Twenty
# steps at one setting show that the change helps. That this is the reason is what chapter 9 measures, where the
# gradients are drawn. The paper has post-norm, and warms up for 4,000 steps: a warm-up of four does not replace that.
#
# > code: nn/residual.py: PostNorm
#
# > code: training/schedules.py: warm_up

# %% [markdown] lang="zh"
# 看图：曲线的右端。有两条接近零，其余的停在两条灰线附近。再看最初几步：大模型的每条曲线都升到灰线上方很远，小模型的曲线则一开始就下降。
#
# ## 输出说明了什么
#
# - 有了移位，小模型学会了这个句子，译文正确。
# - 四种改动中，只有前置规范化治好了大模型。
# - 另外三种改动都用后置规范化，结果和未改动的模型一样：停在 $\ln 5$ 与 $\ln 8$ 这两个猜测的损失之间，或在它们附近。
# - 每个大模型，包括前置规范化的那个，起先都变得比一无所知的模型更差。
#
# 大模型的损失为什么都会上升？Adam 把梯度除以它自己的大小。所以无论梯度多小，第一步都让几乎每个权重移动一个学习率那么多：
# 这里是数百万个权重同时沿着五个词元的梯度移动 1e-3。
# 为什么前置规范化能回来，后置规范化不能？前置规范化时，各层不断累加成的那个和，从第一层一直通到最后一层，
# 中途没有被缩小，梯度就沿着它传回来。
# 后置规范化时，每次相加之后，和都要除以自己的大小。一种设置下的二十步训练说明这个改动有用；原因是否就在这里，由第 9 章测量，
# 那里画出了梯度。论文用后置规范化，预热 4,000 步：四步的预热代替不了它。
#
# > code: nn/residual.py: PostNorm
#
# > code: training/schedules.py: warm_up

# %% [markdown]
# ## Three lines to keep
#
# - A decoder reads `<s>` and the right tokens, and must say the next token at each place: one shift, two rows.
# - The loss is minus the mean log probability of the right tokens; guessing among $V$ entries costs $\ln V$.
# - More parameters do not learn better by themselves: where the norm stands decided this training.
#
# ## If you come from that script
#
# - It names its specials `S`, `E` and `P`, and counts `P`, the padding (填充), as word 0 of the source. Here `<pad>` is 0 in
#   every vocabulary, and a search never says it.
# - It prints some losses and the translation of the sentence that it was trained on. Chapter 12 translates others.
#
# ## Exercises
#
# `dragoman learn 1` writes a file for your answers, `dragoman learn check 1` grades them, and
# `dragoman learn check 1 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_first_loss`, the loss of a model that knows nothing of 8 tokens.
# - fill: `descend`, one step of gradient descent.
# - write: `shift`, what the decoder reads and what it must say.
# - experiment: `settings`, settings with which the large model learns.
#
# For your own Transformer: `mini_transformer.py`, piece `shift`.
#
# Bugs to hunt: `dragoman learn bug 1`, `3`.
#
# ## Read on
#
# - Vaswani et al. 2017, "Attention Is All You Need", section 5.3: the learning rate, and why it warms up.
# - Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", section 3: post-norm and pre-norm.

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - 解码器读 `<s>` 和正确的词元，在每个位置说出下一个词元：一次移位，两行编号。
# - 损失是正确词元的对数概率的平均值取负；在 $V$ 项中猜，代价是 $\ln V$。
# - 参数多，并不会自动学得更好：这次训练的成败取决于规范化放在哪里。
#
# ## 如果你从那个脚本来
#
# - 它把特殊词元叫作 `S`、`E` 和 `P`，并把 `P`，即填充，算作源语言的第 0 个词。这里每个词表的 `<pad>` 都是 0，搜索从不说它。
# - 它打印一些损失，以及训练用的那个句子的译文。第 12 章翻译别的句子。
#
# ## 练习
#
# `dragoman learn 1` 写出供你作答的文件，`dragoman learn check 1` 批改，`dragoman learn check 1 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_first_loss`，一无所知的模型在 8 个词元上的损失。
# - 填空：`descend`，梯度下降的一步。
# - 编写：`shift`，解码器读入什么，应当说出什么。
# - 实验：`settings`，让大模型学得会的设置。
#
# 你自己的 Transformer：`mini_transformer.py`，这一块是 `shift`。
#
# 待捉的错误：`dragoman learn bug 1`、`3`。
#
# ## 延伸阅读
#
# - Vaswani 等，2017，《Attention Is All You Need》，第 5.3 节：学习率，以及它为什么要预热。
# - Xiong 等，2020，《On Layer Normalization in the Transformer Architecture》，第 3 节：后置与前置规范化。
