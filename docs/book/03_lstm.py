# %% [markdown]
# # 3. LSTM, encoder and decoder (长短期记忆网络，编码器与解码器)
#
# *How does a network read a sentence word by word, and what does it still know at the end?*
#
# Time: about 75 minutes to read and try; the cells run in 11 seconds on one core.
# You need chapter 1 (the decoder's rows) and chapter 2 (ids, padding).
#
# Before attention there was one vector. An encoder reads the source sentence into a state, and a decoder writes the target
# sentence out of that state (Sutskever, Vinyals and Le 2014). This chapter follows what the state holds.
#
# ## A naive try that fails
#
# Each token of the vocabulary gets a vector of its own, its *embedding* (嵌入). The shortest way from a sentence to one
# vector is the mean of its tokens' vectors. We take it for "ich möchte ein bier", and for the same words from the end to
# the beginning.

# %% [markdown] lang="zh"
# # 3. 长短期记忆网络，编码器与解码器
#
# *网络怎样逐词读一个句子？读到末尾时，它还知道什么？*
#
# 时间：阅读和尝试大约 75 分钟；在一个核上运行各单元格需要 11 秒。
# 需要第 1 章（解码器的两行编号）和第 2 章（编号、填充）。
#
# 在注意力出现之前，只有一个向量。编码器把源语言句子读进一个状态，解码器再从这个状态写出目标语言句子
# （Sutskever、Vinyals 和 Le，2014）。本章追踪这个状态里有什么。
#
# ## 一次失败的朴素尝试
#
# 词表中的每个词元都有自己的向量，即它的*嵌入*（embedding）。从句子到一个向量，最短的路是取各词元向量的平均值。
# 我们对“ich möchte ein bier”这样做，再对同样的词倒过来做一遍。

# %%
import torch

torch.manual_seed(1)
embedding = torch.randn(8, 16)  # eight tokens, a vector of 16 numbers for each
forwards, backwards = [4, 5, 6, 7], [7, 6, 5, 4]
difference = embedding[forwards].mean(dim=0) - embedding[backwards].mean(dim=0)
print(f"largest difference of the two means: {difference.abs().max():.7f}")

# %% [check]
assert difference.abs().max() < 1e-6

# %% [markdown]
# The two vectors are the same, but for rounding. A mean does not know the order of the words, and no decoder can get it back.
#
# ## The idea
#
# **Read one token at a time and carry a state along; gates decide what the state keeps, what is added, and what is shown.**
#
# ## One step, in plain PyTorch
#
# A *recurrent neural network* (循环神经网络) computes a new state from the old state and the next token. An *LSTM*
# (长短期记忆网络) has two: the hidden state (隐状态) $h$, which is shown, and the cell state (记忆元状态) $c$, which is kept. The
# input gate $i$, the forget gate $f$, the output gate $o$ and the candidate $g$ are computed of the token's vector $x$ and
# of $h$. Each has two matrices $W$ and $U$ and a bias (偏置) $b$ of its own:
#
# $$i = \sigma(W_i x + U_i h + b_i), \qquad f = \sigma(W_f x + U_f h + b_f)$$
#
# $$o = \sigma(W_o x + U_o h + b_o), \qquad g = \tanh(W_g x + U_g h + b_g)$$
#
# $$c' = f \odot c + i \odot g, \qquad h' = o \odot \tanh(c')$$
#
# $\sigma$ is the sigmoid: it lies between 0 (shut) and 1 (open). $\odot$ multiplies number by number. Dragoman's layer
# keeps the four matrices below each other, in this order: input, forget, candidate, output.

# %% [markdown] lang="zh"
# 两个向量相同，只差舍入误差。平均值不知道词的次序，任何解码器都无法把它找回来。
#
# ## 思想
#
# **每次读一个词元，并带着一个状态前进；由门来决定状态保留什么、加入什么、显示什么。**
#
# ## 一步，用普通的 PyTorch 写
#
# *循环神经网络*（recurrent neural network）从旧状态和下一个词元算出新状态。*LSTM*（长短期记忆网络）有两个状态：显示在外的隐状态 $h$，
# 和保留在内的记忆元状态 $c$。输入门 $i$、遗忘门 $f$、输出门 $o$ 和候选 $g$ 由词元的向量 $x$ 和 $h$ 算出，
# 各有自己的两个矩阵 $W$、$U$ 和一个偏置 $b$：
#
# $$i = \sigma(W_i x + U_i h + b_i), \qquad f = \sigma(W_f x + U_f h + b_f)$$
#
# $$o = \sigma(W_o x + U_o h + b_o), \qquad g = \tanh(W_g x + U_g h + b_g)$$
#
# $$c' = f \odot c + i \odot g, \qquad h' = o \odot \tanh(c')$$
#
# $\sigma$ 是 sigmoid 函数，取值在 0（关）与 1（开）之间。$\odot$ 是逐个相乘。Dragoman 的层把四个矩阵上下叠放，
# 次序是：输入门、遗忘门、候选、输出门。

# %%
from dragoman.nn.recurrent import LSTMLayer


def step(x, h, c, gates):
    values = {}
    for name, (W, U, b) in gates.items():
        values[name] = W @ x + U @ h + b
    kept = values["forget"].sigmoid() * c
    added = values["input"].sigmoid() * values["candidate"].tanh()
    c = kept + added
    return values["output"].sigmoid() * c.tanh(), c


layer = LSTMLayer(16, 8)  # Dragoman's: its weights serve both
W, U = layer.fast.weight_ih_l0, layer.fast.weight_hh_l0  # (32, 16) and (32, 8)
b = layer.fast.bias_ih_l0 + layer.fast.bias_hh_l0  # PyTorch has two biases, which are added
gates = {
    "input": (W[0:8], U[0:8], b[0:8]),
    "forget": (W[8:16], U[8:16], b[8:16]),
    "candidate": (W[16:24], U[16:24], b[16:24]),
    "output": (W[24:32], U[24:32], b[24:32]),
}


def read(ids):
    h, c = torch.zeros(8), torch.zeros(8)
    for token in ids:
        h, c = step(embedding[token], h, c, gates)
    return h


print("difference of the two orders:", f"{(read(forwards) - read(backwards)).abs().max():.3f}")

# %% [markdown]
# Dragoman's layer takes a whole batch, (batch, length, features). `layer.read` computes the equations step by step, and can
# leave out padding: the encoder reads with it. `layer(...)` computes them by PyTorch's fast layer over the same weights:
# the decoder is trained with it.
#
# > code: nn/recurrent.py: LSTMLayer.next_state
#
# > code: nn/recurrent.py: RecurrentLayer.read

# %% [markdown] lang="zh"
# Dragoman 的层接受整个批次，形状是（批次，长度，特征）。`layer.read` 按公式一步一步算，能够跳过填充，编码器用它来读。
# `layer(...)` 用 PyTorch 的快速层来算，权重相同，解码器训练时用它。
#
# > code: nn/recurrent.py: LSTMLayer.next_state
#
# > code: nn/recurrent.py: RecurrentLayer.read

# %%
x = embedding[torch.tensor([forwards, backwards])]  # (2, 4, 16)
all_real = torch.ones(2, 4, dtype=torch.bool)
_, (h, c) = layer.read(x, all_real)
_, (fast_h, fast_c) = layer(x, (torch.zeros(2, 8), torch.zeros(2, 8)))
print("as ours:    ", torch.allclose(h, torch.stack([read(forwards), read(backwards)]), atol=1e-6))
print("as PyTorch's:", torch.allclose(h, fast_h, atol=1e-6))

# %% [check]
assert torch.allclose(h, torch.stack([read(forwards), read(backwards)]), atol=1e-6)
assert torch.allclose(h, fast_h, atol=1e-6)
assert torch.allclose(c, fast_c, atol=1e-6)
assert (h[0] - h[1]).abs().max() > 0.1

# %% [markdown]
# ## Padding must not be read
#
# The state after the last *word* goes to the decoder, not the state after the last column. Where a place is padding (填充)
# the state stays as it was. `torch.where` chooses for each sentence between the new state and the old one. The mask of one
# place has the shape (batch). It needs a second dimension, `[:, None]`: without it the mask would lie along the features.
# Here "ein bier" is filled up to the length of the whole sentence.

# %% [markdown] lang="zh"
# ## 不能读填充
#
# 交给解码器的是最后一个*词*之后的状态，而不是最后一列之后的状态。在填充的位置，状态保持不变。
# `torch.where` 为每个句子在新状态与旧状态之间选择。一个位置的掩码，形状是（批次）。它还需要第二个维度，即 `[:, None]`：
# 没有它，掩码就会沿着特征排列。这里把“ein bier”填充到整个句子的长度。

# %%
x = embedding[torch.tensor([[4, 5, 6, 7], [6, 7, 0, 0]])]
real = torch.tensor([[True, True, True, True], [True, True, False, False]])
_, (h, _) = layer.read(x, real)
_, (read_all, _) = layer.read(x, all_real)
print("padding is not read, as alone:", torch.allclose(h[1], read([6, 7]), atol=1e-6))
print("padding is read, as alone:    ", torch.allclose(read_all[1], read([6, 7]), atol=1e-6))

# %% [check]
assert torch.allclose(h[1], read([6, 7]), atol=1e-6)
assert not torch.allclose(read_all[1], read([6, 7]), atol=1e-2)

# %% [markdown]
# ## From encoder to decoder: `init_state`
#
# The decoder's first state is the encoder's last. d2l calls that `init_state`; in Dragoman it is `start`.
#
# LSTMs can be stacked in layers. The second layer reads the hidden states of the first as if they were vectors of tokens, and
# each layer has a last state of its own. Encoder and decoder may have different numbers of layers. Then `Bridge` maps all
# last states of the one to first states of the other.
#
# An encoder's layer is often bidirectional (双向). One LSTM reads from the first word to the last, another from the last word
# to the first, with half of the features each. So the last state of the backward direction is the one at the *first*
# word. The numbers of both directions are joined, those of the forward direction first.
#
# Such a model learns the sentence of this book in forty steps.
#
# > code: models/recurrent.py: Bridge

# %% [markdown] lang="zh"
# ## 从编码器到解码器：`init_state`
#
# 解码器的第一个状态就是编码器的最后一个状态。d2l 把它叫作 `init_state`，在 Dragoman 里它叫 `start`。
#
# LSTM 可以叠成多层。第二层把第一层的隐状态当作词元的向量来读，每一层都有自己的最后状态。编码器和解码器的层数可以不同，
# 这时由 `Bridge` 把前者各层的最后状态映射成后者各层的初始状态。
#
# 编码器的层往往是双向（bidirectional）的：一个 LSTM 从第一个词读到最后一个，另一个从最后一个词读到第一个，各占一半特征。
# 所以反方向的最后状态，是*第一个*词处的状态。两个方向的数接在一起，正方向的在前。
#
# 这样的模型用四十步学会本书的句子。
#
# > code: models/recurrent.py: Bridge

# %%
from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.search import search
from dragoman.learn.one_sentence import TGT_VOCAB, one_sentence, take_step
from dragoman.models.recurrent import RecurrentConfig
from dragoman.training.loss import token_loss

torch.manual_seed(1)
config = RecurrentConfig(d_embedding=32, d_model=48, attention="none", tie_embeddings="none")
model = config.build(src_vocab_size=8, tgt_vocab_size=8, shared_vocab=False, pad_id=0)
batch, optimizer = one_sentence(), torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    logits = model(batch.src, batch.src_mask, batch.tgt_in)
    loss = token_loss(logits, batch.tgt_out, batch.tgt_mask) / batch.num_tokens
    take_step(optimizer, loss)
[[best]] = search(model.eval(), batch.src, batch.src_mask, DecodingConfig(beam_size=1))
print(f"loss {loss.item():.3f}:", " ".join(TGT_VOCAB[token] for token in best.ids))

# %% [check]
from dragoman.nn.recurrent import RecurrentEncoder

stacked = RecurrentEncoder("lstm", 16, 8, 2, bidirectional=True, dropout=0.0)
hidden, last = stacked(embedding[torch.tensor([forwards])], torch.ones(1, 4, dtype=torch.bool))
assert len(last) == 2  # a state of each layer
assert torch.equal(last[1][0][0, :4], hidden[0, -1, :4])  # forward: at the last word
assert torch.equal(last[1][0][0, 4:], hidden[0, 0, 4:])  # backward: at the first
assert loss < 0.1
assert [TGT_VOCAB[token] for token in best.ids] == ["i", "want", "a", "beer"]

# %% [markdown]
# ## How far does a gradient reach?
#
# To learn from a word, a gradient has to come back to it. The gradient of the last state by the input of $k$ steps before
# is a product of $k$ matrices. In a plain recurrent network this product vanishes (梯度消失). The cell's path
# $c' = f \odot c + \dots$ keeps it, as long as the forget gate is near 1. That is why its bias begins at 1 here
# (Jozefowicz et al. 2015).

# %% [markdown] lang="zh"
# ## 梯度能传多远？
#
# 要从一个词学到东西，梯度必须传回到那个词。最后状态对 $k$ 步之前输入的梯度，是 $k$ 个矩阵的乘积。
# 在普通的循环网络里，这个乘积会消失（梯度消失）。只要遗忘门接近 1，记忆元的通路 $c' = f \odot c + \dots$ 就能保住它。
# 这就是这里遗忘门的偏置从 1 开始的原因（Jozefowicz 等，2015）。

# %%
from torch import nn


def reach(read, length=40, features=32):
    torch.manual_seed(2)
    x = torch.randn(1, length, features, requires_grad=True)
    read(x).norm().backward()
    return x.grad[0].norm(dim=-1).flip(0)  # by distance from the end


torch.manual_seed(1)
rnn, lstm = nn.RNN(32, 32, batch_first=True), LSTMLayer(32, 32)
forgetful = LSTMLayer(32, 32)
forgetful.fast.bias_ih_l0.data[32:64] = 0.0
everything = torch.ones(1, 40, dtype=torch.bool)
curves = {
    "RNN": reach(lambda x: rnn(x)[0][:, -1]),
    "LSTM, forget bias 0": reach(lambda x: forgetful.read(x, everything)[1][0]),
    "LSTM, forget bias 1": reach(lambda x: lstm.read(x, everything)[1][0]),
}
for label, curve in curves.items():
    print(f"{label:<20} 1 step: {curve[1]:.1e}  10 steps: {curve[10]:.1e}  20: {curve[20]:.1e}")

# %%
from dragoman.analysis.figure import new_figure
from dragoman.learn.chapter import show

figure = new_figure(7, 3.4, "Gradient of the last state by an input, by distance")
axes = figure.subplots()
for label, curve in curves.items():
    axes.plot(curve.tolist(), label=label)
axes.set_yscale("log")
axes.set_xlabel("steps before the end")
axes.set_ylabel("norm of the gradient")
axes.legend()
show(
    figure,
    "gradient-by-distance",
    "Norm of the gradient by distance, on a logarithmic axis: the plain RNN falls to nothing first, the LSTM with a forget "
    "bias of 0 next, and the LSTM with a bias of 1 reaches farthest.",
)

# %% [check]
far = {label: float(curve[20]) for label, curve in curves.items()}
assert far["LSTM, forget bias 1"] > 10 * far["LSTM, forget bias 0"] > 100 * far["RNN"], far
assert lstm.fast.bias_ih_l0.data[32:64].mean() + lstm.fast.bias_hh_l0.data[32:64].mean() > 0.9

# %% [markdown]
# Look at: the height of the three curves at 20 steps. The axis is logarithmic: equal distances are equal factors.
#
# ## The bottleneck
#
# One vector has to hold the whole sentence. On more data that shows: the toy task is to copy up to six symbols. A model
# without attention and one with it (chapter 4) have the same size and the same 250 steps.

# %% [markdown] lang="zh"
# 看图：三条曲线在 20 步处的高度。纵轴是对数的：相等的距离就是相等的倍数。
#
# ## 瓶颈
#
# 一个向量要装下整个句子。数据多了就看得出来：玩具任务是抄写至多六个符号。
# 没有注意力的模型和有注意力的模型（第 4 章）大小相同，都训练 250 步。

# %%
from dragoman.learn.laboratory import train

right = {}
for attention in ("none", "additive"):
    trained = train(seed=1, type="recurrent", attention=attention, task="copy")
    right[attention] = trained.exact("copy")
    print(f"attention {attention:<9} loss {trained.last_loss:.3f}  right {right[attention]:.0%}")

# %% [check]
assert right["none"] < right["additive"] - 0.05
assert right["additive"] > 0.95

# %% [markdown]
# ## What the output says
#
# - The mean of the vectors is the same for both orders of the words. The LSTM's state is not.
# - Our equations, Dragoman's and PyTorch's fast layer give the same states.
# - A padded sentence has the state of the sentence alone, if padding is not read; and another state if it is.
# - Twenty steps back, the LSTM with a forget bias of 1 has more than ten times the gradient of the one with 0, and that one
#   more than ten times the gradient of the plain RNN.
# - On copying, the model without attention stays behind the one with it.
#
# ## Three lines to keep
#
# - An LSTM adds to its cell instead of writing it anew, so gradients reach far back.
# - The decoder starts from the state after the last real token.
# - One vector for a whole sentence is a bottleneck; attention removes it.
#
# ## If you come from d2l
#
# - In d2l (动手学深度学习) tensors are (time, batch, features) inside the recurrent layer: an LSTM up to 0.14, a GRU from
#   0.15 on. Dragoman's are (batch, time, features) everywhere. A transposition too few swaps batch and time, shapes
#   fit, and sentences are mixed.
# - From 0.15 on d2l gives the encoder's last state to the decoder at every step (`context`). Up to 0.14 it begins the
#   decoder alone, as here.
#
# ## Exercises
#
# `dragoman learn 3` writes a file for your answers, `dragoman learn check 3` grades them, and
# `dragoman learn check 3 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_cell`, the cell of an LSTM with an open and a shut gate.
# - fill: `read_all`, a padded batch read step by step.
# - write: `lstm_step`, one step of an LSTM.
# - write: `init_state`, a decoder's first state.
# - write: `last_states`, the state after the last real token.
# - experiment: `remember`, biases of gates with which a cell remembers for 50 steps.
#
# Bugs to hunt: `dragoman learn bug 11`, `12`, `13`, `41`.
#
# ## Read on
#
# - Hochreiter and Schmidhuber 1997, "Long Short-Term Memory", sections 3 and 4: why gradients vanish, and the cell.
# - Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning with Neural Networks", section 3: two LSTMs, and the
#   source read from its end.

# %% [markdown] lang="zh"
# ## 输出说明了什么
#
# - 词的两种次序，向量的平均值相同，LSTM 的状态不同。
# - 我们的公式、Dragoman 和 PyTorch 的快速层，给出同样的状态。
# - 不读填充时，填充后的句子与单独的句子状态相同；读了填充，状态就不同。
# - 往回二十步，遗忘门偏置为 1 的 LSTM，梯度是偏置为 0 的十倍以上；而后者又是普通 RNN 的十倍以上。
# - 在抄写任务上，没有注意力的模型落后于有注意力的模型。
#
# ## 记住三句话
#
# - LSTM 往记忆元里添加，而不是重写它，所以梯度能传得很远。
# - 解码器从最后一个真实词元之后的状态开始。
# - 用一个向量装整个句子是瓶颈，注意力消除了它。
#
# ## 如果你从 d2l 来
#
# - 在 d2l（动手学深度学习）的循环层里，张量的形状是（时间，批次，特征）：0.14 及以前是 LSTM，0.15 起是 GRU。
#   Dragoman 的张量处处都是（批次，时间，特征）。少一次转置，批次和时间就对调了，形状相配，句子却混在了一起。
# - 从 0.15 起，d2l 在每一步都把编码器的最后状态交给解码器（`context`）。0.14 及以前只用它作解码器的开头，与这里相同。
#
# ## 练习
#
# `dragoman learn 3` 写出供你作答的文件，`dragoman learn check 3` 批改，`dragoman learn check 3 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_cell`，一个门开、一个门关时 LSTM 的记忆元。
# - 填空：`read_all`，逐步读入填充过的批次。
# - 编写：`lstm_step`，LSTM 的一步。
# - 编写：`init_state`，解码器的初始状态。
# - 编写：`last_states`，最后一个真实词元之后的状态。
# - 实验：`remember`，让记忆元记住 50 步的门偏置。
#
# 待捉的错误：`dragoman learn bug 11`、`12`、`13`、`41`。
#
# ## 延伸阅读
#
# - Hochreiter 和 Schmidhuber，1997，《Long Short-Term Memory》，第 3、4 节：梯度为什么消失，以及记忆元。
# - Sutskever、Vinyals 和 Le，2014，《Sequence to Sequence Learning with Neural Networks》，第 3 节：两个 LSTM，以及把源语言句子
#   倒过来读。
