# %% [markdown]
# # 6. The masked loss (带掩码的损失)
#
# *How do you score a batch when a part of it is padding?*
#
# Time: about 45 minutes to read and try; the cells run in 6 seconds on one core.
# You need chapter 1: the loss of one sentence. You need chapter 5: a batch, its padding and its masks.
#
# The loss of a token is minus the log probability of the right token. A batch has many tokens, and some of its places hold
# padding (填充). Three mistakes are made again and again: padding is counted, the sum is divided by the wrong number, and
# the softmax is applied twice. None of them raises an error.
#
# ## A naive try that fails
#
# `F.cross_entropy` takes the mean over all places that it is given. Here it scores "i want a beer" twice, by the same
# trained model. The first time the sentence is alone in its batch. The second time a sentence of twice its length stands
# beside it, so its row has padding at the end. We look at the row of "i want a beer" alone.

# %% [markdown] lang="zh"
# # 6. 带掩码的损失
#
# *批次里有一部分是填充时，该怎样打分？*
#
# 时间：阅读和尝试大约 45 分钟；在一个核上运行各单元格需要 6 秒。
# 需要第 1 章：一个句子的损失。需要第 5 章：批次、它的填充和它的掩码。
#
# 一个词元的损失，是正确词元的对数概率取负。一个批次有许多词元，其中有些位置放的是填充。有三个错误一再出现：
# 把填充算了进去，除以了错误的数，用了两次 softmax。它们都不会报错。
#
# ## 一次失败的朴素尝试
#
# `F.cross_entropy` 对给它的所有位置求平均值。这里它用同一个训练好的模型，给“i want a beer”打两次分。
# 第一次，这个句子独自在批次里。第二次，旁边有一个两倍长的句子，于是这一行的末尾有填充。
# 我们只看“i want a beer”这一行。

# %%
import math

import torch
from torch.nn import functional as F

from dragoman.data.batch import collate
from dragoman.learn.one_sentence import TGT_VOCAB, learned_model

model = learned_model()
beer = ([4, 5, 6, 7], [4, 5, 6, 7])  # ich möchte ein bier; i want a beer
longer = ([4, 5, 6, 7, 4, 5, 6, 7], [4, 5, 6, 7, 4, 5, 6, 7])
batches = {"alone": collate([beer]), "beside a longer one": collate([beer, longer])}


@torch.no_grad()
def logits_of(batch):
    return model(batch.src, batch.src_mask, batch.tgt_in)


naive = {}
for name, batch in batches.items():
    naive[name] = F.cross_entropy(logits_of(batch)[0], batch.tgt_out[0]).item()
    print(f"{name:<20} mean over all places: {naive[name]:.4f}")

# %% [check]
alone, beside = batches.values()
assert torch.allclose(logits_of(alone)[0], logits_of(beside)[0, :5], atol=1e-4)
assert naive["alone"] < 0.1
assert naive["beside a longer one"] > 1000 * naive["alone"]

# %% [markdown]
# The model says the same of the five real tokens both times. Only the padding behind them is new, and the number is
# more than a thousand times as large. Here is what each place costs.

# %% [markdown] lang="zh"
# 对五个真实的词元，模型两次说的完全一样。新增的只是后面的填充，而损失却变成了原来的一千倍以上。下面是每个位置的代价。

# %%
batch = batches["beside a longer one"]
costs = F.cross_entropy(logits_of(batch)[0], batch.tgt_out[0], reduction="none")
print("right token ", " ".join(f"{TGT_VOCAB[token]:>6}" for token in batch.tgt_out[0].tolist()))
print("its id      ", " ".join(f"{token:>6}" for token in batch.tgt_out[0].tolist()))
print("mask        ", " ".join(f"{real:>6}" for real in batch.tgt_mask[0].int().tolist()))
print("minus log p ", " ".join(f"{cost:>6.2f}" for cost in costs.tolist()))

# %% [check]
assert batch.tgt_out[0].tolist() == [4, 5, 6, 7, 3, 0, 0, 0, 0]
assert batch.tgt_mask[0].tolist() == [True] * 5 + [False] * 4
assert costs[:5].max() < 0.2 < 1 < costs[5:].min()
table = torch.zeros(
    9, 8, requires_grad=True
)  # a model of this row, trained by the loss without a mask
for _ in range(20):
    (gradient,) = torch.autograd.grad(F.cross_entropy(table, batch.tgt_out[0]), table)
    table = (table - 9.0 * gradient).detach().requires_grad_()
assert table[5:].argmax(-1).tolist() == [0] * 4  # it says <pad>

# %% [markdown]
# The id of `<pad>` is 0, and 0 is the place of an entry of the vocabulary. A loss without a mask takes it for a word, and
# asks the model to say it. A model that gives way learns to say `<pad>`, which is no word of any translation.
#
# ## The idea
#
# **Add up the losses of the real tokens alone, and divide once, by the number of real tokens.**
#
# $$L = -\frac{\sum_t m_t \log p(y_t)}{\sum_t m_t}$$
#
# The mask $m_t$ is 1 at a real token and 0 at padding.
#
# ## In plain PyTorch
#
# `logits` has the shape (batch, length, vocabulary): the scores before a softmax. `gather` takes from each row of log
# probabilities the one of the right token.

# %% [markdown] lang="zh"
# `<pad>` 的编号是 0，而 0 也是词表中一项的位置。没有掩码的损失把它当作一个词，要求模型说出它。
# 模型若是照办，学会的就是说 `<pad>`，而任何译文里都没有这个词。
#
# ## 思想
#
# **只把真实词元的损失加起来，再除以一次真实词元的个数。**
#
# $$L = -\frac{\sum_t m_t \log p(y_t)}{\sum_t m_t}$$
#
# 掩码 $m_t$ 在真实词元处为 1，在填充处为 0。
#
# ## 用普通的 PyTorch 写
#
# `logits` 的形状是（批次，长度，词表）：softmax 之前的得分。`gather` 从每一行对数概率中取出正确词元的那一个。

# %%
PAD = 0


def loss(logits, tgt_out):
    log_probs = logits.log_softmax(dim=-1)
    of_right_token = log_probs.gather(-1, tgt_out[..., None])[..., 0]  # (batch, length)
    return -of_right_token[tgt_out != PAD].mean()


rows = []
for name, batch in batches.items():
    rows.append(loss(logits_of(batch)[:1], batch.tgt_out[:1]))
    print(f"{name:<20} mean over real tokens: {rows[-1]:.4f}")

# %% [markdown]
# Dragoman's loss is a sum over the real tokens. The training step divides once, by the number of real tokens of the whole
# step. So the result stays the same when a step is cut into several smaller batches.
#
# > code: training/loss.py: token_loss
#
# > code: training/step.py: TrainingStep.update

# %% [markdown] lang="zh"
# Dragoman 的损失是真实词元上的和。训练的一步只除一次，除以整个一步中真实词元的个数。
# 所以把一步切成几个较小的批次，结果不变。
#
# > code: training/loss.py: token_loss
#
# > code: training/step.py: TrainingStep.update

# %%
from dragoman.training.loss import token_loss

batch = batches["beside a longer one"]
dragomans = token_loss(logits_of(batch), batch.tgt_out, batch.tgt_mask)  # a sum
print("tokens:", batch.num_tokens, "of", batch.tgt_out.numel(), "places")
ours = loss(logits_of(batch), batch.tgt_out)
print("the same:", torch.allclose(ours, dragomans / batch.num_tokens))

V = len(TGT_VOCAB)
equal = token_loss(torch.zeros(2, 9, V), batch.tgt_out, batch.tgt_mask) / batch.num_tokens
print(f"equal logits: {equal:.4f} nats a token; ln V = {math.log(V):.4f}")

# %% [check]
from dragoman.learn import mini_solution

assert torch.allclose(loss(logits_of(batch), batch.tgt_out), dragomans / batch.num_tokens)
assert torch.equal(
    loss(logits_of(batch), batch.tgt_out), mini_solution.loss(logits_of(batch), batch.tgt_out)
)
assert torch.allclose(rows[0], rows[1], atol=1e-4)
assert abs(equal - math.log(V)) < 1e-5
noise = torch.randn(2, 9, V, generator=torch.Generator().manual_seed(4))
parts = [
    token_loss(noise[n : n + 1], batch.tgt_out[n : n + 1], batch.tgt_mask[n : n + 1])
    for n in range(2)
]
whole = token_loss(noise, batch.tgt_out, batch.tgt_mask)
assert abs(float(sum(parts) - whole)) < 1e-4  # sums: cut as one likes
means = [float(part) / int(mask.sum()) for part, mask in zip(parts, batch.tgt_mask, strict=True)]
assert (
    abs(sum(means) / 2 - float(whole) / batch.num_tokens) > 1e-3
)  # and a mean of means is something else

# %% [markdown]
# A model that knows nothing has equal logits, and each token costs $\ln V$. That is the first thing to check of any loss.
#
# ## Divided by what?
#
# Now the row of "i want a beer" stands in wider and wider batches. The logits of its five tokens stay the same; at padding
# all logits are equal. Three losses are drawn: the mean over real tokens, the mean over all places, and the masked sum
# divided by the number of all places.

# %% [markdown] lang="zh"
# 一无所知的模型给出相等的 logits，每个词元的代价是 $\ln V$。检查任何损失，都先看这一点。
#
# ## 除以什么？
#
# 现在把“i want a beer”这一行放进越来越宽的批次。五个词元的 logits 不变；填充处的 logits 全都相等。
# 图中有三种损失：真实词元上的平均值、所有位置上的平均值，以及带掩码的和除以所有位置的个数。

# %%
from dragoman.analysis.figure import new_figure
from dragoman.learn.chapter import show

scores = 0.3 * torch.randn(1, 5, V, generator=torch.Generator().manual_seed(3))
scores[0, range(5), [4, 5, 6, 7, 3]] += 1.5  # a model that knows something
shares, right, counted, by_all = [], [], [], []
for width in range(5, 30):
    logits = F.pad(scores, (0, 0, 0, width - 5))
    tgt_out = F.pad(torch.tensor([[4, 5, 6, 7, 3]]), (0, width - 5))
    shares.append(1 - 5 / width)
    right.append(loss(logits, tgt_out).item())
    counted.append(F.cross_entropy(logits[0], tgt_out[0]).item())
    by_all.append(right[-1] * 5 / width)

figure = new_figure(7, 3.2, "The loss of one sentence, by the share of padding in its batch")
axes = figure.subplots()
for label, values in (
    ("mean over real tokens", right),
    ("mean over all places", counted),
    ("masked, divided by all places", by_all),
):
    axes.plot(shares, values, label=label)
axes.axhline(math.log(V), color="gray", linestyle=":", label="ln V")
axes.set_xlabel("share of padding")
axes.set_ylabel("loss [nats per token]")
axes.set_ylim(bottom=0)
axes.legend()
show(
    figure,
    "loss-by-padding",
    "Three curves over the share of padding: the mean over real tokens is level, the mean over all "
    "places rises towards ln V, the masked sum divided by all places falls towards zero.",
)

# %% [markdown]
# Look at: the left end, where the three curves begin at one point. Then look at the right end, where they are far apart.
#
# ## What the output says
#
# - Without padding the three losses are equal. So a test on one sentence finds none of these mistakes.
# - The mean over real tokens is the same at every share of padding.
# - The mean over all places moves towards $\ln V$, the loss at the padding.
# - The masked sum divided by all places falls towards 0. It looks like learning, and it is padding.

# %% [markdown] lang="zh"
# 看图：左端，三条曲线从同一点出发。再看右端，它们相距很远。
#
# ## 输出说明了什么
#
# - 没有填充时，三种损失相等。所以只用一个句子做测试，这些错误一个也发现不了。
# - 真实词元上的平均值，在填充的任何比例下都一样。
# - 所有位置上的平均值趋向 $\ln V$，也就是填充处的损失。
# - 带掩码的和除以所有位置的个数，趋向 0。看起来像是学会了，其实只是填充。

# %% [check]
import itertools

assert abs(right[0] - counted[0]) + abs(right[0] - by_all[0]) < 1e-5
assert max(right) - min(right) < 1e-5
assert all(
    abs(two - math.log(V)) < abs(one - math.log(V)) for one, two in itertools.pairwise(counted)
)
assert all(two < one for one, two in itertools.pairwise(by_all))
assert counted[-1] > 1.3 * right[-1] > 4 * by_all[-1]

# %% [markdown]
# ## Softmax twice
#
# `F.cross_entropy` takes logits and applies the softmax itself. Given probabilities it applies a second softmax. A
# probability lies between 0 and 1, and numbers so near to each other never give a sure distribution. Whatever the model
# says, the loss lies between $\ln(e + V - 1) - 1$ (certain and right) and $\ln(e + V - 1)$ (certain and wrong). That is one
# nat from the best to the worst.
#
# The loss says little, and the gradient says less. A model that is certain and wrong should learn most.

# %% [markdown] lang="zh"
# ## 两次 softmax
#
# `F.cross_entropy` 接受 logits，自己做 softmax。给它概率，它就再做一次 softmax。概率在 0 和 1 之间，
# 彼此这么接近的数，永远给不出有把握的分布。不论模型说什么，损失都在 $\ln(e + V - 1) - 1$（有把握而且对）
# 和 $\ln(e + V - 1)$（有把握却错）之间。从最好到最坏只差一奈特。
#
# 损失说明不了什么，梯度更说明不了什么。有把握却错的模型，本来应当学得最多。

# %%
four = torch.tensor([4])
print("the model is certain of entry 4")
for target in (4, 5):
    for times in ("once", "twice"):
        sure = (20.0 * F.one_hot(four, V)).requires_grad_()
        given = sure if times == "once" else sure.softmax(-1)
        value = F.cross_entropy(given, torch.tensor([target]))
        value.backward()
        length = sure.grad.norm().item()
        print(f"right {target}, {times:<5}: loss {value.item():7.4f}, gradient {length:.4f}")
print(f"ln(e + V - 1) - 1 = {math.log(math.e + V - 1) - 1:.4f}")

# %% [markdown]
# With one softmax the gradient of the certain and wrong model has the length $\sqrt 2$. With two it is nearly 0, since the
# first softmax is flat there.
#
# A *log*-softmax twice does no harm: its output is normalised, and a second one changes nothing. So a model that ends in
# `log_softmax` may be given to `F.cross_entropy`, and one that ends in `softmax` may not.

# %% [markdown] lang="zh"
# 用一次 softmax 时，有把握却错的模型，其梯度的长度是 $\sqrt 2$。用两次时几乎是 0，因为第一个 softmax 在那里是平的。
#
# 两次*对数* softmax 没有害处：它的输出已经归一化，再做一次什么也不变。所以以 `log_softmax` 结尾的模型可以交给
# `F.cross_entropy`，以 `softmax` 结尾的则不行。

# %% [check]
low = math.log(math.e + V - 1) - 1


def loss_and_gradient(logits: torch.Tensor, target: int, twice: bool) -> tuple[float, float]:
    logits = logits.clone().requires_grad_()
    value = F.cross_entropy(logits.softmax(-1) if twice else logits, torch.tensor([target]))
    value.backward()
    return value.item(), logits.grad.norm().item()


certain = 20.0 * F.one_hot(four, V).float()
assert loss_and_gradient(certain, 4, twice=False)[0] < 1e-5
assert abs(loss_and_gradient(certain, 4, twice=True)[0] - low) < 1e-4
assert abs(loss_and_gradient(certain, 5, twice=True)[0] - low - 1) < 1e-4
assert abs(loss_and_gradient(certain, 5, twice=False)[1] - math.sqrt(2)) < 1e-3
assert loss_and_gradient(certain, 5, twice=True)[1] < 1e-5
many = 8.0 * torch.randn(2000, V, generator=torch.Generator().manual_seed(5))
labels = torch.arange(2000) % V
doubled = F.cross_entropy(many.softmax(-1), labels, reduction="none")
assert low - 1e-5 <= float(doubled.min()) < float(doubled.max()) <= low + 1 + 1e-5
assert torch.allclose(
    F.cross_entropy(many.log_softmax(-1), labels), F.cross_entropy(many, labels), atol=1e-4
)

# %% [markdown]
# ## Perplexity (困惑度)
#
# The *perplexity* is $\exp(L)$: $e$ to the power of the mean loss $L$. It says among how many equally likely tokens the model
# hesitates. Since it is made of the mean loss, padding spoils it in the same way.

# %% [markdown] lang="zh"
# ## 困惑度
#
# *困惑度*（perplexity）是 $\exp(L)$：以 $e$ 为底、平均损失 $L$ 为指数。它说明模型相当于在多少个同样可能的词元之间犹豫。它由平均损失得来，所以填充也会同样地毁掉它。

# %%
for nats in (math.log(V), 1.0, 0.1):
    print(f"a loss of {nats:.2f} is a perplexity of {math.exp(nats):.2f}")
print(f"padding counted: {math.exp(naive['beside a longer one']):.1f}; real: {rows[1].exp():.2f}")

# %% [markdown]
# ## Three lines to keep
#
# - Sum over real tokens, divide once by the number of real tokens.
# - Equal logits cost $\ln V$ nats a token; check that before you train.
# - Logits go into `F.cross_entropy`, not probabilities.
#
# ## If you come from d2l or from PyTorch
#
# - d2l (d2l.ai, the chapter on sequence to sequence, `MaskedSoftmaxCELoss` of its PyTorch code) multiplies each token's
#   loss by a mask and takes the mean over `num_steps`, padding among them. Then the sum over the sentences is divided by
#   the number of real tokens for the log (`train_seq2seq`). So its printed loss is nats per token divided by `num_steps`:
#   with ten steps a printed 0.02 is 0.2 nats per token.
# - `F.cross_entropy(..., ignore_index=0)` divides by the real tokens, as we do.
#
# ## Exercises
#
# `dragoman learn 6` writes a file for your answers, `dragoman learn check 6` grades them, and
# `dragoman learn check 6 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_perplexity`, a perplexity with padding in the batch.
# - fill: `joined_mean`, the mean loss of several batches.
# - write: `masked_cross_entropy`, the mean loss of real tokens.
# - write: `perplexity`, the perplexity of a batch.
# - experiment: `wrong_with_a_low_loss`, logits that are all wrong, with a low loss.
#
# For your own Transformer: `mini_transformer.py`, piece `loss`.
#
# Bugs to hunt: `dragoman learn bug 4`, `5`, `14`.
#
# ## Read on
#
# - Goodfellow, Bengio and Courville 2016, "Deep Learning", section 6.2.2.3: softmax units and why their log is trained.
# - Jurafsky and Martin, "Speech and Language Processing", third edition (draft), the chapter on n-gram language models:
#   perplexity.

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - 在真实词元上求和，再除以一次真实词元的个数。
# - logits 相等时，每个词元的代价是 $\ln V$ 奈特；训练之前先检查这一点。
# - 交给 `F.cross_entropy` 的是 logits，不是概率。
#
# ## 如果你从 d2l 或 PyTorch 来
#
# - d2l（d2l.ai，序列到序列一章，其 PyTorch 代码中的 `MaskedSoftmaxCELoss`）把每个词元的损失乘以掩码，
#   再对 `num_steps` 求平均值，填充也在其中。然后把各句子的和除以真实词元的个数，记入日志（`train_seq2seq`）。
#   所以它打印的损失是每词元的奈特数再除以 `num_steps`：有十步时，打印出的 0.02 就是每词元 0.2 奈特。
# - `F.cross_entropy(..., ignore_index=0)` 除以真实词元的个数，和这里一样。
#
# ## 练习
#
# `dragoman learn 6` 写出供你作答的文件，`dragoman learn check 6` 批改，`dragoman learn check 6 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_perplexity`，批次中有填充时的困惑度。
# - 填空：`joined_mean`，几个批次合起来的平均损失。
# - 编写：`masked_cross_entropy`，真实词元的平均损失。
# - 编写：`perplexity`，一个批次的困惑度。
# - 实验：`wrong_with_a_low_loss`，全错而损失却低的 logits。
#
# 你自己的 Transformer：`mini_transformer.py`，这一块是 `loss`。
#
# 待捉的错误：`dragoman learn bug 4`、`5`、`14`。
#
# ## 延伸阅读
#
# - Goodfellow、Bengio 与 Courville，2016，《Deep Learning》（中译本《深度学习》），第 6.2.2.3 节：softmax 单元，
#   以及为什么训练它的对数。
# - Jurafsky 与 Martin，《Speech and Language Processing》第三版（草稿），n元语法语言模型一章：困惑度。

# %% [check]
losses = F.cross_entropy(noise.flatten(0, 1), batch.tgt_out.flatten(), reduction="none").view_as(
    batch.tgt_out
)
num_steps = batch.tgt_out.size(1)
d2l_printed = (losses * batch.tgt_mask).mean(dim=1).sum() / batch.tgt_mask.sum()
assert torch.allclose(d2l_printed * num_steps, whole / batch.num_tokens, atol=1e-5)
ignored = F.cross_entropy(noise.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0)
assert torch.allclose(ignored, whole / batch.num_tokens, atol=1e-5)
assert abs(math.exp(math.log(V)) - V) < 1e-9
assert naive["beside a longer one"] > 0.5
