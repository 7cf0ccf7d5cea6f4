# %% [markdown]
# # 10. The whole Transformer (完整的 Transformer)
#
# *How do the parts become one model that reads a sentence and writes another?*
#
# Time: about 90 minutes to read and try; the cells run in 45 seconds on one core.
# You need chapters 4 to 9: attention, masks, the loss, heads, positions, layers.
#
# All parts are there. This chapter puts them together, follows one pair through with all shapes, counts parameters, and
# trains the copy task of the Annotated Transformer, whose copies have wrong tokens after so short a training.
#
# ## A naive try that fails
#
# A decoder alone can say a sentence by heart, as in chapter 1. So why read the source? We train on two pairs: "ich möchte ein
# bier", and the same four words from back to front. The decoder gets the right tokens, and zeros where the output of the
# encoder would be. (`mini` is the plain model whose code follows below.)

# %% [markdown] lang="zh"
# # 10. 完整的 Transformer
#
# *各个部分怎样合成一个模型，读一个句子，写另一个句子？*
#
# 时间：阅读和尝试大约 90 分钟；在一个核上运行各单元格需要 45 秒。
# 需要第 4 到第 9 章：注意力、掩码、损失、多头、位置、层。
#
# 所有部分都已经有了。本章把它们拼在一起，跟着一个句对走完全程、看所有的形状，数一数参数，
# 并训练 The Annotated Transformer 的复制任务：训练这么短，复制出来的行里会有错误的词元。
#
# ## 一次失败的朴素尝试
#
# 解码器独自就能背出一个句子，像第 1 章那样。那为什么还要读源语言？我们用两个句对训练：“ich möchte ein bier”，
# 以及倒过来的同样四个词。解码器得到正确的词元，而在编码器输出的位置上只得到零。（`mini` 是一个朴素的模型，代码在下面。）

# %%
import math

import torch
from torch import nn

from dragoman.learn import mini_solution as mini
from dragoman.learn.mini_solution import (
    DecoderLayer,
    EncoderLayer,
    causal_mask,
    padding_mask,
    positions,
)

forwards, backwards = [4, 5, 6, 7], [7, 6, 5, 4]  # ich möchte ein bier; bier ein möchte ich
src, tgt_in, tgt_out = mini.batch([(forwards, forwards), (backwards, backwards)])


class Blind(mini.Transformer):
    def encode(self, src):
        return torch.zeros(*src.shape, self.d_model)


def loss_after_training(model, steps=120):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = mini.loss(model(src, tgt_in), tgt_out)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def print_first_tokens(model):
    for sentence in src:
        first = model(sentence[None], tgt_in[:1])[0, 0].softmax(-1)
        print(f"first token: i {first[4]:.2f}, beer {first[7]:.2f}")


torch.manual_seed(1)
blind = Blind(8, 8)
print(f"loss {loss_after_training(blind):.4f}; ln 2 / 5 = {math.log(2) / 5:.4f}")
print_first_tokens(blind)

# %% [check]
blind_loss = mini.loss(blind(src, tgt_in), tgt_out).item()
assert abs(blind_loss - math.log(2) / 5) < 0.01
assert torch.allclose(
    blind(src, tgt_in[:1].expand(2, -1))[0], blind(src, tgt_in[:1].expand(2, -1))[1], atol=1e-5
)

# %% [markdown]
# The first token is a coin toss between "i" and "beer". Nothing that the decoder has read tells it which sentence is meant. The
# other four tokens follow from the first. So the loss stops at $\ln 2 / 5$: one coin toss in five tokens.
#
# ## The idea
#
# **The encoder reads the source once; each layer of the decoder looks at what it has read; a last matrix turns the
# decoder's vectors into scores of the next token.**
#
# ## In plain PyTorch
#
# Layers, masks and positions are those of the chapters before. What is new is the order in which they are called.

# %% [markdown] lang="zh"
# 第一个词元是在“i”和“beer”之间抛硬币。解码器读到的东西里，没有什么告诉它是哪个句子。其余四个词元由第一个决定。
# 所以损失停在 $\ln 2 / 5$：五个词元里抛一次硬币。
#
# ## 思想
#
# **编码器把源语言读一遍；解码器的每一层都看编码器读到的东西；最后一个矩阵把解码器的向量变成下一个词元的得分。**
#
# ## 用普通的 PyTorch 写
#
# 层、掩码和位置都来自前面各章。新的只是调用它们的顺序。

# %%
PAD = 0


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab,
        tgt_vocab,
        d_model=64,
        num_heads=4,
        d_ff=128,
        num_layers=2,
        dropout=0.0,
    ):
        super().__init__()
        self.d_model = d_model
        self.src_embedding = nn.Embedding(src_vocab, d_model, padding_idx=PAD)
        self.tgt_embedding = nn.Embedding(tgt_vocab, d_model, padding_idx=PAD)
        sizes = (d_model, num_heads, d_ff, dropout)
        self.encoder_layers = nn.ModuleList([EncoderLayer(*sizes) for _ in range(num_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(*sizes) for _ in range(num_layers)])
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, tgt_vocab, bias=False)
        self.dropout = nn.Dropout(dropout)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        for embedding in (self.src_embedding, self.tgt_embedding):  # times sqrt(d_model): size 1
            nn.init.normal_(embedding.weight, std=d_model**-0.5)

    def embed(self, embedding, ids):
        vectors = embedding(ids) * math.sqrt(self.d_model)
        return self.dropout(vectors + positions(ids.size(1), self.d_model))

    def encode(self, src):
        x = self.embed(self.src_embedding, src)
        for layer in self.encoder_layers:
            x = layer(x, padding_mask(src))
        return self.encoder_norm(x)

    def decode(self, tgt_in, memory, src):
        x = self.embed(self.tgt_embedding, tgt_in)
        for layer in self.decoder_layers:
            x = layer(x, causal_mask(tgt_in.size(1)), memory, padding_mask(src))
        return self.output(self.decoder_norm(x))

    def forward(self, src, tgt_in):
        return self.decode(tgt_in, self.encode(src), src)


torch.manual_seed(1)
ours = Transformer(8, 8)
print(f"loss {loss_after_training(ours):.4f}")
print_first_tokens(ours)

# %% [markdown]
# Now the loss is nearly zero, and the first token depends on the source. Dragoman's Transformer with the same weights gives the
# same logits, with padding in the batch too.
#
# > code: models/transformer.py: Transformer.encode
#
# > code: models/transformer.py: Transformer.decode

# %% [markdown] lang="zh"
# 现在损失几乎是零，第一个词元取决于源语言。Dragoman 的 Transformer 装入同样的权重，给出同样的 logits，批次里有填充时也一样。
#
# > code: models/transformer.py: Transformer.encode
#
# > code: models/transformer.py: Transformer.decode

# %%
from dragoman.data.batch import collate
from dragoman.learn.mini import dragoman_model

batch = collate([(forwards, forwards), ([4, 5], [4, 5])])  # the second row ends in padding
theirs = dragoman_model(ours)(batch.src, batch.src_mask, batch.tgt_in)
logits = ours(batch.src, batch.tgt_in)
print("logits", tuple(logits.shape), "the same:", torch.allclose(logits, theirs, atol=1e-4))

# %% [check]
assert torch.allclose(logits, theirs, atol=1e-4)
reference = mini.Transformer(8, 8)
reference.load_state_dict(ours.state_dict())
assert torch.equal(reference(src, tgt_in), ours(src, tgt_in))
assert mini.loss(ours(src, tgt_in), tgt_out) < 0.02
firsts = [ours(sentence[None], tgt_in[:1])[0, 0].softmax(-1) for sentence in src]
assert firsts[0][4] > 0.95
assert firsts[1][7] > 0.95

# %% [markdown]
# ## The drawing of it
#
# Dragoman draws any of its models from the modules that it finds in it.

# %% [markdown] lang="zh"
# ## 它的图
#
# Dragoman 能根据模型里的各个模块，把自己的任何模型画出来。

# %%
from dragoman.analysis.architecture import architecture_figure
from dragoman.learn.chapter import show

show(
    architecture_figure(dragoman_model(ours)),
    "architecture",
    "Boxes of the encoder, left, and of the decoder, right, from embeddings through their layers "
    "to the output; an arrow from the encoder's end to each cross-attention.",
)

# %% [markdown]
# Look at: the arrow that leaves the end of the encoder. It goes into the cross-attention of every layer of the decoder, and it
# is the only way from the source to the target.
#
# ## One pair, all shapes
#
# Everything from text to text, in the nine steps that head every training of Dragoman.

# %% [markdown] lang="zh"
# 看图：从编码器末端出发的箭头。它进入解码器每一层的交叉注意力，是从源语言到目标语言的唯一通路。
#
# ## 一个句对，所有的形状
#
# 从文本到文本的全过程，分九步，Dragoman 的每次训练开头都打印它们。

# %%
from dragoman.analysis.trace import trace, trace_table
from dragoman.text.tokenizers.pair import SeparateConfig, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig


def beginnings(sentence):  # a vocabulary is sorted by frequency: now the first word gets the id 4
    words = sentence.split()
    return lambda: (" ".join(words[:n]) for n in range(1, len(words) + 1))


texts = [("ich möchte ein bier", "i want a beer"), ("ich möchte", "i want")]
sides = SeparateConfig(src=WordsConfig(), tgt=WordsConfig())
tokenizers = train_tokenizers(sides, *(beginnings(side) for side in texts[0]))
small = Transformer(8, 8, d_model=32, num_layers=1)
print(trace_table(trace(dragoman_model(small), tokenizers, texts)))

# %% [markdown]
# ## Parameters (参数)
#
# The paper's base model has 6 + 6 layers, d_model 512, d_ff 2048. Without embeddings it has 44 million parameters. With a joint
# vocabulary of 37,000, whose matrix is used three times, it has 63 million. (The paper says 65 million.)

# %% [markdown] lang="zh"
# ## 参数
#
# 论文的基础模型有 6 + 6 层，d_model 为 512，d_ff 为 2048。不算嵌入有 44 百万个参数。用 37,000 项的共同词表，
# 其矩阵用三次，就有 63 百万个。（论文说是 65 百万。）

# %%
from dragoman.analysis.parameters import parameter_counts, parameter_table
from dragoman.config import parse
from dragoman.models.families import TransformerConfig

layers = {"num_encoder_layers": 6, "num_decoder_layers": 6}
base = parse(TransformerConfig, {"d_model": 512, "num_heads": 8, "d_ff": 2048, **layers})
built = base.build(src_vocab_size=37000, tgt_vocab_size=37000, shared_vocab=True, pad_id=0)
print(parameter_table(parameter_counts(built, depth=2)))

d, d_ff = 512, 2048
of_formula = 4 * d * d + 4 * d + 2 * d * d_ff + d + d_ff + 4 * d
counted = sum(parameter.numel() for parameter in built.encoder_layers[0].parameters())
print(f"an encoder layer: {of_formula:,} by the formula, {counted:,} counted")

# %% [markdown]
# An encoder layer has $4 d^2 + 4 d$ numbers for attention, $2 d \cdot d_{ff} + d + d_{ff}$ for the network, and $4 d$ for two
# norms.
#
# ## The copy task (复制任务)
#
# More data: copying and reversing rows of symbols are learnt in seconds. Cross-attention then shows one diagonal or the other.

# %% [markdown] lang="zh"
# 编码器的一层，注意力有 $4 d^2 + 4 d$ 个数，网络有 $2 d \cdot d_{ff} + d + d_{ff}$ 个，两个规范化有 $4 d$ 个。
#
# ## 复制任务
#
# 用更多的数据：把一行符号照抄或倒过来，几秒钟就能学会。这时交叉注意力呈现一条对角线，或另一条。

# %% [check]
total, embedding = sum(p.numel() for p in built.parameters()), 37000 * 512
assert (total // 10**6, (total - embedding) // 10**6) == (63, 44)
assert of_formula == counted

# %%
from dragoman.analysis.figure import draw_matrix, new_figure, token_axes
from dragoman.learn.laboratory import pairs, train

figure = new_figure(8, 3.6, "Cross-attention, mean of the heads of the last layer")
diagonals = {}
for axes, task in zip(figure.subplots(1, 2), ("copy", "reverse"), strict=True):
    trained = train(seed=1, task=task)
    source, target = next(pair for pair in pairs(task, "test", 50) if len(pair[0]) == 6)
    one = collate([(source, target)])
    with torch.no_grad():
        maps = trained.model.eval().attention_maps(one.src, one.src_mask, one.tgt_in)
    weights = maps["decoder.1.cross"][0].mean(0)
    falling, rising = weights[:6, :6].trace() / 6, weights[:6, :6].flip(0).trace() / 6
    diagonals[task] = {"copy": falling, "reverse": rising}
    draw_matrix(axes, weights.numpy(), low=0, high=1, aspect="equal")
    # symbols have the ids 4, 5, ...: the specials come first
    sides = [[*[str(token - 3) for token in side], "</s>"] for side in (target, source)]
    token_axes(axes, *sides)
    axes.set_title(f"{task}: {trained.exact(task):.0%} right", fontsize=9)
show(
    figure,
    "copy-reverse",
    "Cross-attention of two trained models as matrices: dark along the falling diagonal where the "
    "model copies, along the rising one where it reverses.",
)

# %% [markdown]
# Look at: the two diagonals. Where the model copies, the first place looks at the first place. Where it reverses, the first place
# looks at the last one.

# %% [markdown] lang="zh"
# 看图：两条对角线。照抄时，第一个位置看第一个位置。倒过来时，第一个位置看最后一个位置。

# %% [check]
assert diagonals["copy"]["copy"] > 2 * diagonals["copy"]["reverse"]
assert diagonals["reverse"]["reverse"] > 2 * diagonals["reverse"]["copy"]

# %% [markdown]
# ## The Annotated Transformer's copy task, at its own settings
#
# Its first edition (2018) trains on rows of ten random symbols, 1 to 10; the first is always 1 and serves as start token.
# Vocabulary 11, two and two layers, dropout 0.1, no label smoothing. Batches of 30 rows, 200 steps. The rate is Noam's with
# factor 1 and a warm-up of 400 steps, so training ends in the middle of the warm-up. Then it copies the row 1 to 10.
#
# One thing is changed here: d_model is 128 and d_ff 512, not 512 and 2048, to fit into the time. The layers are
# Dragoman's.

# %% [markdown] lang="zh"
# ## The Annotated Transformer 的复制任务，用它自己的设置
#
# 它的第一版（2018）用十个随机符号组成的行来训练，符号从 1 到 10；第一个总是 1，充当起始符。
# 词表大小 11，两层加两层，暂退法 0.1，没有标签平滑。每个批次 30 行，共 200 步。学习率是 Noam 的，系数为 1，预热 400 步，
# 所以训练结束时预热才到一半。然后它复制从 1 到 10 的一行。
#
# 这里改了一处：d_model 是 128，d_ff 是 512，不是 512 和 2048，以便控制时间。各层都是 Dragoman 的。

# %%
from dragoman.training.loss import token_loss
from dragoman.training.schedules import NoamConfig

V, WIDTH = 11, 128
sizes = {"d_model": WIDTH, "num_heads": 8, "d_ff": 4 * WIDTH, "dropout": 0.1}
layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "tie_embeddings": "none"}
torch.manual_seed(1)
copier = parse(TransformerConfig, {**sizes, **layers}).build(
    src_vocab_size=V, tgt_vocab_size=V, shared_vocab=False, pad_id=0
)
optimizer = torch.optim.Adam(copier.parameters(), betas=(0.9, 0.98), eps=1e-9)
noam = NoamConfig(factor=1.0, warmup_steps=400)


def random_rows(count):
    rows = torch.randint(1, V, (count, 10))
    rows[:, 0] = 1
    return rows


def train_copier(first, last):
    copier.train()
    for step in range(first, last + 1):
        optimizer.param_groups[0]["lr"] = noam.rate_at(step, last, WIDTH)
        rows = random_rows(30)
        real = torch.ones_like(rows, dtype=torch.bool)
        logits = copier(rows, real, rows[:, :-1])
        loss = token_loss(logits, rows[:, 1:], real[:, 1:]) / (30 * 9)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def copies(rows):
    """Greedy copies, and the log probabilities of all symbols at each place but the first."""
    copier.eval()
    real, output, log_probs = torch.ones_like(rows, dtype=torch.bool), rows[:, :1], []
    for _ in range(9):
        log_probs.append(copier(rows, real, output)[:, -1].log_softmax(-1))
        output = torch.cat([output, log_probs[-1].argmax(-1, keepdim=True)], dim=1)
    return output, torch.stack(log_probs, dim=1)


counting, unseen = torch.arange(1, V)[None], random_rows(200)


def right_rows():
    return (copies(unseen)[0] == unseen).all(dim=1).float().mean().item()


train_copier(1, 100)
half_way = copies(counting)[0]
print("after 100 steps 1 to 10 is copied as", half_way[0].tolist())
train_copier(101, 200)
print("after 200 steps 1 to 10 is copied as", copies(counting)[0][0].tolist())
print(f"of 200 unseen rows {right_rows():.0%} are copied right")

# %% [markdown]
# After 100 steps the copy of 1 to 10 is wrong. After 200 steps it is right. But that is one row, and of the unseen rows many are
# still wrong. Here is the first wrong copy, and what the model thought at its first wrong place: the two best symbols with their
# log probabilities (对数概率).

# %% [markdown] lang="zh"
# 训练 100 步之后，从 1 到 10 的一行复制错了。200 步之后，它是对的。但这只是一行，没见过的行里还有许多是错的。
# 下面是第一个错误的复制，以及模型在第一个错处想的是什么：最好的两个符号和它们的对数概率。


# %%
def first_mistakes(rows):
    """(row, place, symbol said, log probabilities there) of each wrong copy's first wrong place."""
    output, log_probs = copies(rows)
    for number in (output != rows).any(dim=1).nonzero()[:, 0].tolist():
        place = int((output[number] != rows[number]).int().argmax())
        yield rows[number].tolist(), place, int(output[number, place]), log_probs[number, place - 1]


mistakes = list(first_mistakes(unseen))
row, place, said, log_probs = mistakes[0]
print("the row ", row)
print("its copy", copies(torch.tensor([row]))[0][0].tolist())
for symbol in log_probs.topk(2).indices.tolist():
    right = "  (right)" if symbol == row[place] else ""
    print(f"place {place}: symbol {symbol:>2}, log probability {log_probs[symbol]:.2f}{right}")

second_is_right = [scores.topk(2).indices[1] == row[place] for row, place, _, scores in mistakes]
stands_elsewhere = [said in row for row, _, said, _ in mistakes]
gaps = [float(scores.topk(2).values.diff().abs()) for _, _, _, scores in mistakes]
output, every = copies(unseen)
sure = every.topk(2).values.diff().abs()[..., 0][(output == unseen)[:, 1:]]
print(f"{len(mistakes)} wrong copies; at the first wrong place of each:")
print(f"  the second best symbol is the right one:     {sum(second_is_right) / len(mistakes):.0%}")
print(f"  the symbol said stands elsewhere in the row: {sum(stands_elsewhere) / len(mistakes):.0%}")
print(f"  median distance of the two best, in nats:    {sorted(gaps)[len(gaps) // 2]:.2f}")
print(f"  median distance where a symbol is right:     {sure.median():.2f}")

# %% [markdown]
# ## What the output says
#
# - The model is not lost where it is wrong. Mostly its second best symbol is the right one, and the two are near each other.
# - Where it is right, the distance of the two best is at least twice as large.
# - What it says instead stands in the row too, at another place. It knows the symbols before it knows the places: its attention
#   has not yet found the exact one.
# - So training was too short. If that is the reason, more steps must mend it. We train on to step 500.

# %% [markdown] lang="zh"
# ## 输出说明了什么
#
# - 模型在出错的地方并没有迷失。它的第二选择大多就是正确的符号，而且两者相差不大。
# - 在说对的地方，最好的两个之间的距离至少大一倍。
# - 它错说的符号，也在这一行里，只是在别的位置。它先知道有哪些符号，后知道在什么位置：它的注意力还没有找到确切的位置。
# - 所以是训练太短。如果原因在此，多训练一些步就应当治好。我们训练到第 500 步。

# %%
before = right_rows()
train_copier(201, 500)
print(f"rows right after 200 steps: {before:.0%}; after 500 steps: {right_rows():.0%}")
print("the wrong copy from above: ", copies(torch.tensor([row]))[0][0].tolist())

# %% [check]
assert not half_way.equal(counting)
assert len(mistakes) >= 20
assert sum(second_is_right) > 0.6 * len(mistakes)
assert sum(stands_elsewhere) > 0.95 * len(mistakes)
symbols = sum(len(set(row)) for row, *_ in mistakes) / len(mistakes)
assert symbols < 8  # a symbol drawn at random would stand in four rows of five at most
assert sure.median() > 2 * sorted(gaps)[len(gaps) // 2]
assert before < 0.9
assert right_rows() > before
assert copies(counting)[0].equal(counting)
assert copies(torch.tensor([row]))[0][0].tolist() == row

# %% [markdown]
# It was the reason: more rows are right, and the wrong copy from above is right now. The second edition (2022) of that text asks for the copy of 0, 1, ..., 9, with 0 as start
# token. In training no row has a 0: it is the id of padding. What a model says after a token that it has never seen says
# nothing about its training.
#
# ## Tests before training
#
# Before you train any Transformer for a day, run tests like these: what may depend on what, and what may not. Together they take a
# few seconds, and each catches some of the bugs of the laboratory.

# %% [markdown] lang="zh"
# 原因正是如此：对的行变多了，上面那个错误的复制现在也对了。那段文字的第二版（2022）要求复制 0、1、……、9，并以 0 作起始符。训练时没有一行含有 0：
# 它是填充的编号。模型在从未见过的词元之后说什么，说明不了训练得怎样。
#
# ## 训练之前的测试
#
# 在你把任何 Transformer 训练一整天之前，先跑这样的测试：什么可以取决于什么，什么不可以。全部只要几秒钟，
# 每一个都能捉住实验室里的一些错误。

# %%
from dragoman.learn.selftests import SELF_TESTS

for name, test in SELF_TESTS.items():
    test()
    print("ok ", name.replace("_", " "))

# %% [markdown]
# ## Layers that begin as copies
#
# PyTorch's `nn.TransformerEncoder` makes its layers with `deepcopy`: all begin with equal weights, and its documentation asks you
# to draw them anew. The Annotated Transformer clones too, and then draws every matrix anew (Xavier): there only the biases begin
# equal. Here each layer is drawn by itself.

# %% [markdown] lang="zh"
# ## 起初是副本的层
#
# PyTorch 的 `nn.TransformerEncoder` 用 `deepcopy` 生成各层：它们起初权重都相等，它的文档请你重新随机初始化。
# The Annotated Transformer 也是先复制，然后把每个矩阵重新初始化（Xavier）：那里只有偏置起初相等。这里每一层都各自初始化。

# %%
from copy import deepcopy

layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
one, two = (copied.linear1 for copied in stack.layers)
print("PyTorch's encoder, equal:    ", one.weight.equal(two.weight))
clones = nn.ModuleList([deepcopy(layer) for _ in range(2)])
for parameter in clones.parameters():
    if parameter.dim() > 1:
        nn.init.xavier_uniform_(parameter)
print("cloned, then drawn, equal:   ", clones[0].linear1.weight.equal(clones[1].linear1.weight))
print("biases of those, equal:      ", clones[0].linear1.bias.equal(clones[1].linear1.bias))
first, second = (layer.feed_forward.expand for layer in built.encoder_layers[:2])
print("Dragoman's, equal:           ", first.weight.equal(second.weight))

# %% [check]
assert one.weight.equal(two.weight)
assert not clones[0].linear1.weight.equal(clones[1].linear1.weight)
assert clones[0].linear1.bias.equal(clones[1].linear1.bias)
assert clones[0].linear1.bias.any()
assert not first.weight.equal(second.weight)

# %% [markdown]
# ## Three lines to keep
#
# - The encoder runs once; cross-attention is the only way from the source to the target.
# - Count the parameters and check the logits before you train; a wrong assembly raises no error.
# - One right example is no measure: look at the second best symbol, and at many rows.
#
# ## If you come from d2l, PyTorch or the Annotated Transformer
#
# - The Annotated Transformer's `Generator` ends in a log-softmax; here the model ends in logits and the loss does the rest.
# - d2l's `EncoderBlock` and `AddNorm`, the Annotated Transformer's `SublayerConnection` and PyTorch's `TransformerEncoderLayer` are
#   `EncoderLayer` and `ResidualConnection` here; the table of all names is in `docs/glossary.md`.
#
# ## Exercises
#
# `dragoman learn check 10` grades them. `dragoman learn check 10 --hint NAME` gives the next hint.
#
# - predict: `predict_logits`, the shape of the logits
# - fill: `decoder_layer`, the three sublayers of a decoder layer
# - write: `transformer`, the whole Transformer
# - experiment: `one_million`, a Transformer of one million parameters
#
# For your own Transformer: `mini_transformer.py`, piece `Transformer`.
#
# Bugs to hunt: `dragoman learn bug 8`, `25`, `26`, `35`, `37`.
#
# ## Read on
#
# - Vaswani et al. 2017, "Attention Is All You Need", section 3.1: the encoder and decoder stacks.
# - `docs/architecture.md`: the files of Dragoman, in the order in which to read them.

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - 编码器只运行一次；交叉注意力是从源语言到目标语言的唯一通路。
# - 训练之前先数参数、核对 logits；拼错了并不会报错。
# - 一个对的例子不是衡量：要看第二好的符号，要看许多行。
#
# ## 如果你从 d2l、PyTorch 或 The Annotated Transformer 来
#
# - The Annotated Transformer 的 `Generator` 以对数 softmax 结尾；这里模型以 logits 结尾，其余由损失完成。
# - d2l 的 `EncoderBlock` 和 `AddNorm`、The Annotated Transformer 的 `SublayerConnection`、PyTorch 的
#   `TransformerEncoderLayer`，在这里是 `EncoderLayer` 和 `ResidualConnection`；全部名称的对照表在 `docs/glossary.md`。
#
# ## 练习
#
# `dragoman learn check 10` 给它们打分。`dragoman learn check 10 --hint NAME` 给出下一个提示。
#
# - 预测：`predict_logits`，logits 的形状
# - 填空：`decoder_layer`，解码器层的三个子层
# - 编写：`transformer`，整个 Transformer
# - 实验：`one_million`，恰有一百万个参数的 Transformer
#
# 你自己的 Transformer：`mini_transformer.py`，这一块是 `Transformer`。
#
# 待捉的错误：`dragoman learn bug 8`、`25`、`26`、`35`、`37`。
#
# ## 延伸阅读
#
# - Vaswani 等，2017，《Attention Is All You Need》，第 3.1 节：编码器和解码器的堆叠。
# - `docs/architecture.md`：Dragoman 的各个文件，按阅读顺序排列。
