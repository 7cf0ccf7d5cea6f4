# %% [markdown]
# # 0. Before you begin (开始之前)
#
# *What do you need to know, and where does the road lead?*
#
# Time: about 30 minutes to read and try; the cells run in 2 seconds on one core.
# You need nothing from other chapters.
#
# ## For whom
#
# This book is for people who want to understand neural machine translation by running it. You have written functions
# in Python. You know what a matrix product and a derivative are. You need not know a neural network yet.
#
# The book begins with one sentence, "ich möchte ein bier", and its translation, "i want a beer". It ends with a
# translator that is measured on sentences that it has never seen. On the way you write a Transformer of your own, a
# piece in a chapter. All code of the chapters runs, and the code behind it is Dragoman's own: the toolkit that this book
# belongs to. No text says more about an output than the output shows: each such sentence is checked when the book is
# built.

# %% [markdown] lang="zh"
# # 0. 开始之前
#
# *你需要先知道什么？这条路通向哪里？*
#
# 时间：阅读和尝试大约 30 分钟；在一个核上运行各单元格需要 2 秒。
# 不需要其他章的知识。
#
# ## 写给谁
#
# 本书写给想通过亲手运行来理解神经机器翻译的人。你用 Python 写过函数，知道什么是矩阵乘法，什么是导数。
# 不需要预先了解神经网络。
#
# 本书从一个句子“ich möchte ein bier”和它的译文“i want a beer”开始，最后得到一个翻译系统，它的质量在从未见过的句子上测量。
# 一路上你会写出自己的 Transformer，每章写一块。各章的代码全部可以运行，背后的代码就是 Dragoman 自己的代码，本书就属于这个工具包。
# 书中关于输出的每句话都能从输出看出来，并在生成本书时自动检验过。

# %% [markdown]
# ## The PyTorch that suffices
#
# These cells have the lines that the chapters use most. Run them, change them, and guess each output before you look. You
# can come back to them whenever a line of a chapter is strange to you.
#
# ### Tensors, broadcasting, products
#
# A *tensor* is a table of numbers with a *shape*. A matrix of three rows and two columns has the shape (3, 2).
# `@` is the matrix product, and `.T` is the transpose.
#
# *Broadcasting* makes two shapes fit. Write them below each other, aligned at the right. Where one has a 1, or nothing at
# all, its numbers are repeated to the other's size. So (3, 2) + (2,) adds a row to each row. This may happen to both
# tensors: (2, 1) + (3,) has the shape (2, 3).

# %% [markdown] lang="zh"
# ## 够用的 PyTorch
#
# 下面几个单元格，是各章用得最多的代码。请运行它们，修改它们，并在看输出之前先猜一猜。以后读到陌生的一行，随时可以回到这里。
#
# ### 张量、广播、乘积
#
# *张量*（tensor）是一张数表，它有*形状*。三行两列的矩阵，形状是 (3, 2)。`@` 是矩阵乘法，`.T` 是转置。
#
# *广播*（broadcasting）使两个形状相配。把两个形状上下对齐写出，右端对齐。某一维上一方是 1，或者没有这一维，
# 它的数就重复到另一方的大小。所以 (3, 2) + (2,) 把一行加到每一行上。两个张量可能都要重复：(2, 1) + (3,) 的形状是 (2, 3)。

# %%
import torch

x = torch.tensor([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]])
print(x.shape)
print(x + torch.tensor([10.0, 20.0]))  # broadcasting: the row is added to each row
print(torch.tensor([[0], [10]]) + torch.tensor([1, 2, 3]))  # (2, 1) + (3,): both are repeated
print(x.T.shape, (x @ x.T).shape)  # (3, 2) @ (2, 3) gives (3, 3)
print(x @ x.T)  # at [i, j]: the dot product of rows i and j

# %% [markdown]
# ### Softmax, and what it must not see
#
# The *softmax* makes weights of any scores. All weights are positive, and their sum is 1:
#
# $$\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}$$
#
# `masked_fill` writes a number wherever a condition is true. A score of minus infinity gets the weight 0, because
# $e^{-\infty} = 0$. Every attention of the book hides with `masked_fill`, and then takes the softmax.
#
# `dim` names a dimension, and -1 is the last one. A sum or a mean over `dim` makes that dimension disappear. A softmax
# keeps it: along `dim` the weights sum to 1.

# %% [markdown] lang="zh"
# ### softmax，以及它不该看见的东西
#
# *softmax* 把任意的得分变成权重。所有权重都是正数，它们的和是 1：
#
# $$\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}$$
#
# `masked_fill` 在条件为真的地方写入一个数。得分为负无穷时，权重是 0，因为 $e^{-\infty} = 0$。
# 本书的每一个注意力，都先用 `masked_fill` 隐藏，再做 softmax。
#
# `dim` 指定一个维度，-1 是最后一维。沿 `dim` 求和或求平均，这一维就消失。softmax 则保留它：沿 `dim` 的权重之和是 1。

# %%
scores = torch.tensor([2.0, 1.0, 3.0])
may_be_seen = torch.tensor([True, True, False])
print(scores.softmax(dim=-1))
hidden = scores.masked_fill(~may_be_seen, -torch.inf)  # ~ turns True into False
print(hidden.softmax(dim=-1), "sum", hidden.softmax(dim=-1).sum())

# %% [check]
assert x.shape == (3, 2)
assert (x @ x.T)[0, 1] == 1 * 3 + 2 * 1
assert torch.equal((x + torch.tensor([10.0, 20.0]))[2], torch.tensor([10.0, 22.0]))
assert (torch.zeros(2, 1) + torch.zeros(3)).shape == (2, 3)
assert x.sum(dim=0).shape == x.mean(dim=0).shape == (2,)
assert x.softmax(dim=0).shape == x.shape
assert torch.allclose(x.softmax(dim=0).sum(dim=0), torch.ones(2))
assert (scores.softmax(-1) > 0).all()
assert torch.allclose(hidden.softmax(-1).sum(), torch.tensor(1.0))
assert hidden.softmax(-1)[2] == 0

# %% [markdown]
# ### A gradient, and a step of an optimizer
#
# A network learns by small steps. The *loss* says how wrong it is. The *gradient* says how the loss changes with each
# *parameter*; `backward` computes it. The *optimizer* moves each parameter a little against its gradient. Adam is the
# optimizer of this book; chapter 11 says more of it. Here two parameters learn that the right answer is "once the first
# number plus twice the second".

# %% [markdown] lang="zh"
# ### 梯度，以及优化器的一步
#
# 网络靠小步学习。*损失*（loss）说明它错了多少。*梯度*（gradient）说明损失怎样随每个*参数*（parameter）变化，`backward` 负责计算它。
# *优化器*（optimizer）让每个参数逆着自己的梯度移动一点。Adam 是本书所用的优化器，第 11 章会再讲。这里有两个参数，要学会正确答案是“第一个数加上第二个数的两倍”。

# %%
right = torch.tensor([5.0, 5.0, 4.0])
weight = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=0.1)
for step in range(301):
    loss = ((x @ weight - right) ** 2).mean()
    optimizer.zero_grad()  # forget the gradient of the step before
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step:3}  loss {loss.item():8.4f}  weight {weight.detach()}")

# %% [check]
assert torch.allclose(weight, torch.tensor([1.0, 2.0]), atol=0.05), weight

# %% [markdown]
# ### Lines that the chapters use
#
# Here is a table of two sentences with four places each. The first sentence has two real tokens, the second three.
#
# | code | what it does |
# |---|---|
# | `lengths[:, None]` | a new dimension of size 1 at that place: from (2,) to (2, 1); `lengths[None]` is (1, 2) |
# | `torch.where(real, table, 0)` | takes from `table` where `real` is true, and 0 elsewhere |
# | `table[..., -1]` | `...` stands for all dimensions that are not written |
# | `table[torch.arange(2), lengths - 1]` | one number of each row: of row 0 and column 1, of row 1 and column 2 |
# | `table.gather(1, columns)` | of each row, the numbers at the columns that are given |
# | `table.chunk(2, dim=-1)` | cuts into two parts along a dimension; `torch.cat` joins them again |
# | `table.transpose(-2, -1)` | exchanges the last two dimensions, and leaves those before |
# | `torch.ones(3, 3).tril()` | keeps the lower triangle, and writes 0 above the diagonal |
# | `torch.no_grad()` | inside it no gradient is kept: for models that do not learn now |

# %% [markdown] lang="zh"
# ### 各章常用的写法
#
# 下面的表有两个句子，每个四个位置。第一个句子有两个真实的词元，第二个有三个。
#
# | 代码 | 作用 |
# |---|---|
# | `lengths[:, None]` | 在该处增加大小为 1 的维度：从 (2,) 到 (2, 1)；`lengths[None]` 是 (1, 2) |
# | `torch.where(real, table, 0)` | `real` 为真处取 `table` 的数，其余处取 0 |
# | `table[..., -1]` | `...` 代表没有写出的所有维度 |
# | `table[torch.arange(2), lengths - 1]` | 每行取一个数：第 0 行第 1 列，第 1 行第 2 列 |
# | `table.gather(1, columns)` | 每一行取出给定各列上的数 |
# | `table.chunk(2, dim=-1)` | 沿一个维度切成两份；`torch.cat` 再把它们接起来 |
# | `table.transpose(-2, -1)` | 交换最后两个维度，前面的维度不变 |
# | `torch.ones(3, 3).tril()` | 保留下三角，对角线以上写 0 |
# | `torch.no_grad()` | 在它里面不保留梯度：用于此刻不学习的模型 |

# %%
table = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
lengths = torch.tensor([2, 3])
real = torch.arange(4) < lengths[:, None]  # (4,) and (2, 1) give (2, 4)
print("where    ", torch.where(real, table, 0).tolist())
print("...      ", table[..., -1].tolist())
print("arange   ", table[torch.arange(2), lengths - 1].tolist())
columns = torch.tensor([[0, 3], [1, 1]])
print("gather   ", table.gather(1, columns).tolist())
first, second = table.chunk(2, dim=-1)
print("chunk    ", first.tolist(), second.tolist())
print("cat      ", torch.cat([second, first], dim=-1).tolist())
print("transpose", table.transpose(-2, -1).shape)
print("tril     ", torch.ones(3, 3).tril().tolist())
with torch.no_grad():
    print("no_grad  ", (2 * weight).requires_grad, "and outside", weight.requires_grad)

# %% [check]
assert real.tolist() == [[True, True, False, False], [True, True, True, False]]
assert lengths[:, None].shape == (2, 1)
assert lengths[None].shape == (1, 2)
assert torch.where(real, table, 0).tolist() == [[1, 2, 0, 0], [5, 6, 7, 0]]
assert table[..., -1].tolist() == [4, 8]
assert table[torch.arange(2), lengths - 1].tolist() == [2, 7]
assert table.gather(1, columns).tolist() == [[1, 4], [6, 6]]
assert torch.equal(torch.cat([first, second], dim=-1), table)
assert table.transpose(-2, -1).tolist() == table.T.tolist()
assert torch.ones(3, 3).tril().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]

# %% [markdown]
# That is all. Layers such as `torch.nn.Linear` are the same products with parameters inside.
#
# ## A map of the whole
#
# The picture shows the way of a sentence through the toolkit. The numbers are chapters.

# %% [markdown] lang="zh"
# 就是这些。`torch.nn.Linear` 之类的层，也是同样的乘积，只是参数放在里面。
#
# ## 全书地图
#
# 下图是一个句子在工具包中走过的路。数字是章号。

# %%
from dragoman.analysis.figure import INK, MUTED, TRAIN, VALID, new_figure
from dragoman.learn.chapter import chapters, show

figure = new_figure(8.4, 3.9, "From a sentence to a measured translator")
axes = figure.subplots()
axes.axis("off")
axes.set(xlim=(0, 11), ylim=(0.9, 5.3))
places = [  # English, Chinese, chapters, x, y
    ("text", "文本", "", 0.7, 3),
    ("ids", "编号", "2", 2.3, 3),
    ("batches, masks", "批次与掩码", "5", 4.5, 3),
    ("encoder, decoder", "编码器与解码器", "3, 4, 7 to 10", 7.4, 3),
    ("other uses", "其他用途", "14", 7.4, 4.7),
    ("loss", "损失", "1, 6", 7.4, 1.3),
    ("training", "训练", "11", 4.5, 1.3),
    ("search", "搜索", "12", 10, 3),
    ("BLEU", "评分", "13", 10, 1.3),
]
for english, chinese, numbers, x, y in places:
    box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": TRAIN}
    axes.text(x, y, f"{english}\n ", ha="center", va="center", color=INK, bbox=box)
    axes.text(x, y - 0.06, chinese, ha="center", va="top", color=INK, fontsize=8)
    axes.text(x, y + 0.52, numbers, ha="center", color=VALID, weight="bold")
arrows = [((1.3, 3), (1.8, 3)), ((2.8, 3), (3.3, 3)), ((5.7, 3), (6.1, 3)), ((8.7, 3), (9.3, 3)),
          ((7.4, 2.5), (7.4, 2.1)), ((6.8, 1.3), (5.3, 1.3)), ((5.3, 1.7), (6.4, 2.5)),
          ((10, 2.5), (10, 2.1)), ((7.4, 3.8), (7.4, 4.2))]  # fmt: skip
for start, end in arrows:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": MUTED})
show(
    figure,
    "map",
    "A map with arrows: text, ids (chapter 2), batches and masks (5), encoder and decoder (3, 4, 7 to 10), loss (1, 6), "
    "training (11) and back to the model, search (12), BLEU (13), other uses (14)",
)

# %% [markdown]
# Look at: the arrow from the training back to the encoder and decoder. It is walked thousands of times. The way
# to the search and to BLEU is walked once for each sentence that is translated.
#
# ## One question a chapter
#
# The minutes are an estimate of what reading, trying and the exercises take. The seconds were measured on one core.

# %% [markdown] lang="zh"
# 看图：从训练回到编码器与解码器的箭头，要走成千上万次。到搜索、再到 BLEU 的路，每翻译一个句子只走一次。
#
# ## 每章一个问题
#
# 分钟数是估计，包括阅读、尝试和练习。秒数是在一个核上测得的。

# %%
total = 0
for chapter in chapters():
    minutes, seconds = chapter.times()
    total += minutes
    print(f"{chapter.number:2}. {chapter.title}: {minutes} minutes, {seconds} s")
    print(f"    {chapter.question('en')}\n    {chapter.question('zh')}")
print(f"in all {total / 60:.0f} hours")

# %% [check]
assert [chapter.number for chapter in chapters()] == list(range(15))

# %% [markdown]
# ## How a chapter is made
#
# Each chapter asks a question, tries something naive that fails, and says the idea in one sentence. Then come ten to
# twenty-five lines of plain PyTorch, and a comparison with Dragoman's own function. A picture follows with "Look at".
# "What the output says" has one claim a sentence. Three lines are there to keep. All of it is shown first on the one
# sentence, and then on more data.
#
# A line such as the next one is a link to the code that runs. On a page it opens; in a notebook it names the file.
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# ## How to work with it
#
# | command | what it does |
# |---|---|
# | `dragoman learn` | lists the chapters, and what you have done of them |
# | `dragoman learn 4` | writes chapter 4 as a notebook, and a file for your answers; with `--run` it runs here |
# | `dragoman learn check 4` | grades your answers on inputs that nobody has seen, and says what is wrong |
# | `dragoman learn check 4 --hint attention` | gives a hint, then a larger one |
# | `dragoman learn check 4 --solution attention` | shows the solution, after two wrong answers |
# | `dragoman learn bug 15` | plants a bug in Dragoman's code, for this command alone, and draws what it does |
# | `dragoman learn audit mine.py` | tests a whole Transformer or LSTM of your own: `mini_transformer.py` from chapter 10 on |
# | `make book` | runs all chapters and writes them as pages that need no network |
#
# **Exercises** stand in a ladder. *Predict*: write down what a piece of code will give, before you run it. *Fill*: complete a
# function with a gap. *Write*: write a whole function. *Experiment*: choose settings or data, and be graded by measuring.
#
# **Bugs** are for hunting. A chapter names them by their numbers alone. You see a symptom and a picture, say which of four
# causes it is, and mend the function. `dragoman learn bug --list` lists the symptoms. `docs/not-learning.md` has their
# causes too: read it after the hunt.
#
# **Your own Transformer** grows in the file `mini_transformer.py`. A chapter that has a piece of it says so. Each piece is
# checked beside a right answer, and pieces that you have not written are taken from it. By chapter 12 it trains and
# searches, and chapter 13 compares it with Dragoman.
#
# ## In Chinese
#
# Each text of this book stands in English and in Chinese. A page has a switch at its top: English, Chinese, or both side by
# side. `dragoman learn 4 --lang zh` writes the notebook in Chinese. The important terms are given in both languages where
# they first come. Figures and what programs print are in English. `--lang zh` serves `check`, `bug` and `audit` too.
#
# ## Exercises
#
# `dragoman learn 0` writes a file for your answers, `dragoman learn check 0` grades them, and
# `dragoman learn check 0 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_shape`, the shape of a sum of (2, 3, 1) and (4,).
# - predict: `predict_columns`, the numbers of a mean over dim=0.
#
# ## Read on
#
# - `docs/glossary.md`: words and letters of the field.
# - Zhang, Lipton, Li and Smola, "Dive into Deep Learning", chapter 2: more of tensors and gradients.

# %% [markdown] lang="zh"
# ## 一章是怎样写的
#
# 每章先提一个问题，作一次失败的朴素尝试，再用一句话说出思想。接着是十到二十五行普通的 PyTorch，并与 Dragoman 自己的函数比较。
# 然后是一张图，附有“看图”。“输出说明了什么”一句只说一个论断。最后有三句话要记住。这一切都先在那一个句子上展示，再用更多的数据。
#
# 像下一行这样的，是指向真正运行的代码的链接。在网页上可以展开；在笔记本里，它写着文件名。
#
# > code: nn/attention.py: scaled_dot_product_attention
#
# ## 怎样使用
#
# | 命令 | 作用 |
# |---|---|
# | `dragoman learn` | 列出各章，以及你做过的部分 |
# | `dragoman learn 4` | 把第 4 章写成笔记本，并写出供你作答的文件；加上 `--run` 就在这里运行 |
# | `dragoman learn check 4` | 用谁也没见过的输入批改你的答案，并说出错在哪里 |
# | `dragoman learn check 4 --hint attention` | 给一个提示，下次给更多 |
# | `dragoman learn check 4 --solution attention` | 两次答错之后，给出答案 |
# | `dragoman learn bug 15` | 在 Dragoman 的代码里放进一个错误（只对这条命令有效），并画出它的后果 |
# | `dragoman learn audit mine.py` | 测试你自己写的完整 Transformer 或 LSTM：`mini_transformer.py` 从第 10 章起 |
# | `make book` | 运行所有章，写成不需要网络的网页 |
#
# **练习**是一级一级的。*预测*：在运行之前，写下一段代码会给出什么。*填空*：补全一个有缺口的函数。
# *编写*：写出整个函数。*实验*：选择设置或数据，靠测量来评分。
#
# **错误**是用来捉的。各章只写出它们的编号。你会看到一个症状和一张图，说出它是四种原因中的哪一种，再把函数改好。
# `dragoman learn bug --list` 列出所有症状，加上 `--lang zh` 就是中文。`docs/not-learning.md`（英文）还写出了原因：捉完之后再读。
#
# **你自己的 Transformer** 在文件 `mini_transformer.py` 中逐渐长成。有其中一块的章会说明。每一块都与参考答案对照检查，
# 你还没有写的部分取自参考答案。到第 12 章，它能训练、能搜索；第 13 章把它与 Dragoman 比较。
#
# ## 用中文读
#
# 本书的每段文字都有英文和中文。网页顶部有一个开关：英文、中文，或两者并排。
# `dragoman learn 4 --lang zh` 写出中文的笔记本。重要的术语第一次出现时，附有英文原词；图和程序的输出是英文。
# `check`、`bug` 和 `audit` 也可以加上 `--lang zh`。
#
# ## 练习
#
# `dragoman learn 0` 写出供你作答的文件，`dragoman learn check 0` 批改，`dragoman learn check 0 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_shape`，(2, 3, 1) 与 (4,) 相加后的形状。
# - 预测：`predict_columns`，沿 dim=0 求平均得到的数。
#
# ## 延伸阅读
#
# - `docs/glossary.md`（英文，附中文术语）：这个领域的词和字母。
# - Zhang、Lipton、Li 和 Smola，《Dive into Deep Learning》（《动手学深度学习》），第 2 章：更多关于张量和梯度的内容。
