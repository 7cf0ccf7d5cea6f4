# %% [markdown]
# # 14. Three uses of the same blocks (三种用途)
#
# *What else can the layers of a translator do?*
#
# Time: about 45 minutes to read and try; the cells run in 60 seconds on one core.
#
# You need the layers of chapter 9, the masks of chapter 5 and the loss of chapter 6.

# %% [markdown] lang="zh"
# # 14. 同样的模块，三种用途
#
# *翻译模型的这些层还能做什么？*
#
# 时间：阅读和动手约 45 分钟；全部代码在一个核上运行 60 秒。
#
# 需要第 9 章的层、第 5 章的掩码和第 6 章的损失。

# %% [markdown]
# A translator has an encoder (编码器) and a decoder (解码器). A decoder alone writes texts. An encoder alone classifies
# texts and images. An encoder that fills gaps learns from plain text. What differs is the mask (掩码) and the target.
#
# ## A naive try: a language model that sees everything
#
# A language model (语言模型) says the next token of a text. The naive way is to take an encoder layer as it is, and to
# ask at each position for the next token. The text here has no order at all: the words of our sentence, "i want a beer",
# drawn at random. So nobody can guess the next one better than one time in four, a loss (损失) of $\ln 4 = 1.39$.

# %% [markdown] lang="zh"
# 翻译模型有编码器和解码器。单独一个解码器能写文本，单独一个编码器能给文本和图像分类，会填空的编码器能从纯文本学习。不同之处在于掩码和目标。
#
# ## 朴素的尝试：什么都看得见的语言模型
#
# 语言模型说出文本的下一个词元。朴素的做法是原样拿一个编码器层，在每个位置问下一个词元。这里的文本毫无顺序：从我们句子 “i want a beer” 的词中随机抽取。
# 所以谁猜下一个词都不会比四次对一次更好，损失是 $\ln 4 = 1.39$。

# %%
import math

import torch
from torch import nn

from dragoman.learn.mini_solution import BOS, EncoderLayer, causal_mask, loss, positions


class OneLayer(nn.Module):
    """A language model of one layer, with the mask that it is given."""

    def __init__(self, mask, vocab=8, d_model=32):
        super().__init__()
        self.mask = mask
        self.embedding, self.output = nn.Embedding(vocab, d_model), nn.Linear(d_model, vocab)
        self.layer = EncoderLayer(d_model, num_heads=2, d_ff=64)

    def forward(self, ids):
        x = self.embedding(ids) + positions(ids.size(1), self.embedding.embedding_dim)
        return self.output(self.layer(x, self.mask))


def trained_loss(mask, steps=300):
    """The mean loss of the last ten steps; each step has a new random text."""
    torch.manual_seed(1)
    model, draw = OneLayer(mask), torch.Generator().manual_seed(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        text = torch.randint(4, 8, (64, 8), generator=draw)  # i, want, a, beer
        value = loss(model(torch.cat([torch.full((64, 1), BOS), text[:, :-1]], dim=1)), text)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return sum(losses[-10:]) / 10


sees_all, sees_the_past = trained_loss(None), trained_loss(causal_mask(8))
print(f"sees everything: {sees_all:.2f}")
print(f"sees the past:   {sees_the_past:.2f}   (ln 4 = {math.log(4):.2f})")

# %% [markdown]
# The first model "guesses" what cannot be guessed. It reads the answer: the next token stands in its input, one place to
# the right. When it writes a text itself, nothing stands there.
#
# ## The idea in one sentence
#
# **The same layers become a translator, a writer, a classifier or a filler of gaps by what each position may see and by
# what it is asked for.**
#
# | use | mask of the self-attention | target |
# |---|---|---|
# | encoder of a translator, classifier | padding | - |
# | decoder, language model | causal | the next token |
# | masked language model | padding | the tokens that were hidden |

# %% [markdown] lang="zh"
# 第一个模型“猜”出了不可能猜到的东西：它读到了答案，下一个词元就在它的输入里，在右边一个位置。等它自己写文本时，那里什么也没有。
#
# ## 一句话说清思想
#
# **同样的层，因为每个位置可以看什么、被问什么的不同，成为翻译模型、写作模型、分类器或填空模型。**
#
# | 用途 | 自注意力的掩码 | 目标 |
# |---|---|---|
# | 翻译模型的编码器、分类器 | 填充 | - |
# | 解码器、语言模型 | 因果 | 下一个词元 |
# | 掩码语言模型 | 填充 | 被遮住的词元 |

# %% [check]
assert sees_all < 0.5 < 1.3 < sees_the_past
assert abs(sees_the_past - math.log(4)) < 0.1

# %% [markdown]
# ## A decoder alone: a language model
#
# The decoder's layer without cross-attention is the encoder's layer with a causal mask. Your layer of chapter 9 and
# Dragoman's are the same, with the same weights:
#
# > code: models/language_model.py: LanguageModel.decode

# %% [markdown] lang="zh"
# ## 单独一个解码器：语言模型
#
# 没有交叉注意力的解码器层，就是带因果掩码的编码器层。第 9 章里你的层与 Dragoman 的层在权重相同时是一样的：
#
# > code: models/language_model.py: LanguageModel.decode

# %%
from dragoman.config import parse
from dragoman.models.language_model import LanguageModelConfig

sizes = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 1, "dropout": 0.0}
of_dragoman = parse(LanguageModelConfig, {"type": "language_model", **sizes}).build(
    vocab_size=8, pad_id=0
)
torch.manual_seed(1)
ours = EncoderLayer(32, num_heads=2, d_ff=64)
[theirs] = of_dragoman.layers
with torch.no_grad():
    for mine, weight in zip(ours.parameters(), theirs.parameters(), strict=True):
        mine.copy_(weight)
    x = torch.randn(2, 5, 32)
    equal = torch.allclose(
        ours(x, causal_mask(5)), theirs(x, causal_mask(5)[None, None]), atol=1e-5
    )
print("equal:", equal)

# %% [check]
assert equal

# %% [markdown]
# Now a real one. It reads the English side of the sentence pairs that come with Dragoman, character by character (字符),
# and then it writes.

# %% [markdown] lang="zh"
# 现在是真正的语言模型。它逐个字符地读 Dragoman 自带句对的英文一侧，然后自己写。

# %%
import contextlib
import io
from pathlib import Path
from tempfile import mkdtemp

import dragoman
from dragoman.tasks import recipes

folder = Path(mkdtemp())


def trained(recipe, name, *changes):
    """Train a recipe that ships with Dragoman, with changes: the folder of the run."""
    run = folder / name
    common = (f"run_dir={run}", "device=cpu", "training.precision=float32", "training.samples=0")
    with contextlib.redirect_stderr(io.StringIO()):
        recipes.run(recipes.load(recipe, [*common, *changes]))
    return run


lm = trained("lm-demo", "lm", "corpus.test={}", "training.validate_every=300")
generator = dragoman.load_language_model(lm, device="cpu")
texts = [generator.generate(["i want "], seed=seed, max_tokens=80)[0] for seed in (1, 2, 3)]
for text in texts:
    print("i want |", repr(text))

# %% [check]
import re

from dragoman.corpora import embedded

known = {
    word
    for _, tgt in embedded.sentences("de-en", "train")
    for word in re.findall(r"[A-Za-z]+", tgt)
}
written = [
    word for text in texts for word in re.findall(r"[A-Za-z]+", text)[:-1]
]  # the last is cut
share = sum(word in known for word in written) / len(written)
assert len(written) > 20
assert share > 0.7, share

# %% [markdown]
# It writes letter by letter, and most of what comes out are words of the training text. They mean little: the model is
# small, and it has read 4,000 sentences.
#
# ## An encoder alone: a classifier (分类器)
#
# The encoder's vectors become one vector: their mean over the real positions, or the vector of a class token that stands
# before them. A matrix makes a logit for each label (标签). Which language is a sentence in?
#
# > code: models/encoder_classifier.py: PooledEncoder.forward

# %% [markdown] lang="zh"
# 它一个字母一个字母地写，写出的大多是训练文本中的词。这些词没有多少意义：模型很小，只读过 4,000 个句子。
#
# ## 单独一个编码器：分类器
#
# 编码器的各个向量合成一个：真实位置上的平均值，或者放在最前面的分类词元的向量。再用一个矩阵给每个标签一个 logit。一个句子是哪种语言？
#
# > code: models/encoder_classifier.py: PooledEncoder.forward

# %%
from dragoman.data.examples import read_split

of_language = trained(
    "language-id-demo",
    "language-id",
    "corpus.test={}",
    "training.validate_every=150",
)
predictor = dragoman.load_classifier(of_language, device="cpu")
texts = ("Ich möchte ein Bier.", "I want a beer.", "我想要一杯啤酒。")
guesses = dict(zip(texts, predictor.predict(texts), strict=True))
for text, guess in guesses.items():
    print(f"{guess.label}  {guess.probability:.0%}  {text}")

# %%
from dragoman.analysis.figure import draw_matrix, new_figure, token_axes
from dragoman.learn.chapter import show

held_out = read_split(recipes.of_run(of_language).corpus.valid, {})
names, labels = list(predictor.labels), [one.label for one in predictor.predict(held_out.items)]
pairs = list(zip(held_out.labels, labels, strict=True))
table = [[sum(pair == (row, column) for pair in pairs) for column in names] for row in names]
figure = new_figure(3.6, 3.0, "Which language? Validation texts")
axes = figure.subplots()
draw_matrix(axes, table, low=0, high=max(map(max, table)), aspect="equal")
token_axes(axes, names, names)
for row, line in enumerate(table):
    for column, count in enumerate(line):
        color = "white" if count > 30 else "black"
        axes.text(column, row, str(count), ha="center", va="center", color=color)
show(
    figure,
    "confusion",
    "Matrix of languages: each row a text's own language, each column the classifier's; most texts are on the diagonal.",
)

# %% [markdown]
# Look at: the diagonal, where the row's language and the classifier's answer are the same.
#
# ## What the output says
#
# - Most texts stand there.
# - Our sentence is recognised in all three languages.

# %% [markdown] lang="zh"
# 看哪里：对角线，那里行的语言与分类器的回答相同。
#
# ## 输出说明了什么
#
# - 大多数文本在对角线上。
# - 我们的句子在三种语言中都被认出。

# %% [check]
assert sum(table[i][i] for i in range(len(names))) > 0.9 * sum(map(sum, table))
assert [guess.label for guess in guesses.values()] == ["de", "en", "zh"]

# %% [markdown]
# ## Images are sequences too: ViT
#
# The Vision Transformer (Dosovitskiy et al. 2021) cuts an image into patches (图像块). Each patch is a "word": its pixels
# times a matrix are its embedding (嵌入). The rest is the same encoder. The cutting in plain PyTorch, and Dragoman's own:
#
# > code: nn/patches.py: PatchEmbedding

# %% [markdown] lang="zh"
# ## 图像也是序列：ViT
#
# 视觉 Transformer（Dosovitskiy 等 2021）把图像切成图像块。每个图像块是一个“词”：它的像素乘以一个矩阵就是它的嵌入。其余部分是同样的编码器。
# 下面用普通的 PyTorch 切块，并与 Dragoman 的比较：
#
# > code: nn/patches.py: PatchEmbedding

# %%
from dragoman.nn.patches import PatchEmbedding


def cut(images, size):
    """Patches of images, (batch, height, width): (batch, patches, size * size), row by row."""
    rows = images.unfold(1, size, size).unfold(2, size, size)  # (batch, down, across, size, size)
    return rows.flatten(1, 2).flatten(2)


images = torch.rand(3, 28, 28)
embedding = PatchEmbedding(channels=1, patch_size=4, d_model=32)
matrix = embedding.projection.weight.flatten(1)  # (32, 16)
by_matrix = cut(images, 4) @ matrix.T + embedding.projection.bias
by_convolution = embedding(images[:, None])
print(tuple(cut(images, 4).shape), "equal:", torch.allclose(by_matrix, by_convolution, atol=1e-5))

# %% [check]
assert torch.allclose(by_matrix, by_convolution, atol=1e-5)
assert cut(images, 4).shape == (3, 49, 16)
assert torch.equal(
    cut(images, 4)[0, 8].reshape(4, 4), images[0, 4:8, 4:8]
)  # row by row: the second of the second row

# %% [markdown]
# Which images? MNIST (`recipes/mnist-vit.yaml`) must be downloaded. So this chapter draws its own digits: ten figures of
# 5 by 7 dots, each turned, stretched and moved at random, with noise. These are easier than handwriting, and the number
# below is not one of MNIST. The recipe is that of MNIST, with a smaller model and the files that are written here.

# %% [markdown] lang="zh"
# 用哪些图像？MNIST（`recipes/mnist-vit.yaml`）需要下载，所以本章自己画数字：十个 5 乘 7 点的字形，每个都随机旋转、拉伸、平移，再加噪声。
# 它们比手写数字容易，下面的数不是 MNIST 上的数。配方就是 MNIST 的配方，只是模型更小，并使用这里写出的文件。

# %%
import struct

DOTS = """
01110 00100 01110 11111 00010 11111 00110 11111 01110 01110
10001 01100 10001 00010 00110 10000 01000 00001 10001 10001
10011 00100 00001 00100 01010 11110 10000 00010 10001 10001
10101 00100 00010 00010 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""
dots = [float(dot) for dot in DOTS if dot in "01"]
GLYPHS = torch.tensor(dots).reshape(7, 10, 5).transpose(0, 1)  # (digit, row, column)


def draw_digits(count, seed):
    """Grey images, (count, 28, 28), 0 to 255, and what they show."""
    torch.manual_seed(seed)
    shown = torch.randint(10, (count,))
    large = nn.functional.interpolate(
        nn.functional.pad(GLYPHS[shown], (2, 2, 1, 1))[:, None], size=(28, 28)
    )
    angle, stretch = 0.2 * torch.randn(count), 1 + 0.15 * torch.randn(count)
    turns = torch.stack(
        [
            torch.stack([stretch * angle.cos(), -angle.sin(), 0.1 * torch.randn(count)], dim=1),
            torch.stack([angle.sin(), angle.cos(), 0.1 * torch.randn(count)], dim=1),
        ],
        dim=1,
    )  # (count, 2, 3): for each image a turn, a stretch and a shift
    grid = nn.functional.affine_grid(turns, [count, 1, 28, 28], align_corners=False)
    moved = nn.functional.grid_sample(large, grid, align_corners=False)[:, 0]
    return (255 * (moved + 0.1 * torch.randn(count, 28, 28)).clamp(0, 1)).byte(), shown


def write_digits(name, count, seed):
    """Files in the format of MNIST: four bytes, the sizes, and the values."""
    pixels, shown = draw_digits(count, seed)
    for kind, values in (("images", pixels), ("labels", shown.byte())):
        head = struct.pack(f">BBBB{values.dim()}I", 0, 0, 8, values.dim(), *values.shape)
        (folder / f"{name}-{kind}").write_bytes(head + values.numpy().tobytes())
    return f"{{type: idx, images: {folder / name}-images, labels: {folder / name}-labels}}"


vit = trained(
    "mnist-vit",
    "vit",
    f"corpus.train={write_digits('train', 4000, 1)}",
    f"corpus.valid={write_digits('valid', 200, 2)}",
    "corpus.test={}",
    "corpus.augment=null",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ff=64",
    "model.num_layers=2",
    "training.max_steps=400",
    "training.batch_tokens=3200",
    "training.validate_every=400",
    "training.schedule={type: linear, lr: 4e-3, warmup_steps: 60}",
    "training.averaging={type: none}",
)
digits = dragoman.load_classifier(vit, device="cpu")
pixels, shown = draw_digits(500, seed=3)
answers = digits.predict(list(pixels.numpy()))
right = sum(int(one.label) == digit for one, digit in zip(answers, shown.tolist(), strict=True))
print(f"{right} of 500 digits that it has never seen are right")

# %% [check]
assert right > 430

# %%
with torch.no_grad():
    model = digits.model
    x = model.patches(pixels[:4, None] / 255)
    x = x + model.positions(0, x.size(1))
    x, maps = torch.cat([model.encoder.class_token.expand(4, 1, -1), x], dim=1), []
    for layer in model.encoder.layers:
        x = layer(x, None, maps)
looks = (
    maps[-1][:, :, 0, 1:].mean(1).reshape(4, 7, 7)
)  # what the class token looks at, a weight for each patch

figure = new_figure(7.2, 4.2, "Four digits, their 49 patches, and what the class token looks at")
for n, (top, bottom) in enumerate(zip(*figure.subplots(2, 4), strict=True)):
    draw_matrix(top, pixels[n], low=0, high=255, aspect="equal")
    top.set_xticks([edge - 0.5 for edge in range(4, 28, 4)], labels=[])
    top.set_yticks([edge - 0.5 for edge in range(4, 28, 4)], labels=[])
    top.grid(visible=True, color="gray", linewidth=0.4)
    top.set_title(f"a {shown[n]}", fontsize=9)
    draw_matrix(bottom, looks[n], low=0, high=float(looks.max()), aspect="equal")
    bottom.set_xticks([])
    bottom.set_yticks([])
show(
    figure,
    "patches",
    "Above: four drawn digits on 28 by 28 pixels with the lines between their 49 patches. Below: the attention of the class "
    "token to each patch in the last layer; it is not even.",
)

# %% [markdown]
# Look at: the upper row, the lines that cut each digit into seven times seven patches. In the lower row a dark cell is a
# patch that the class token looks at.
#
# - The attention is not even: some patches get several times their equal share.
# - The patches it looks at most are not the same for all digits.

# %% [markdown] lang="zh"
# 看哪里：上面一行中的线，它们把每个数字切成七乘七个图像块。下面一行中深色的格子是分类词元所看的图像块。
#
# - 注意力并不均匀：有的图像块得到的是平均份额的好几倍。
# - 看得最多的图像块并非对所有数字都相同。

# %% [check]
assert abs(maps[-1][:, :, 0].sum(-1) - 1).max() < 1e-4
assert looks.max() > 3 / 50
assert len({int(one.argmax()) for one in looks.flatten(1)}) > 1

# %% [markdown]
# ## An encoder that learns from plain text: the masked language model (掩码语言模型)
#
# BERT's task (Devlin et al. 2019): hide one token in seven, and guess it from both sides. Of the tokens that are asked
# for, 80 % are hidden, 10 % are another token, and 10 % stay as they are, so that the model cannot know which it is asked
# for. A hidden token is written as `<s>` here: no encoder reads that otherwise.
#
# > code: data/masked_tokens.py: mask_tokens
#
# > code: models/masked_language_model.py: MaskedLanguageModel.forward

# %% [markdown] lang="zh"
# ## 从纯文本学习的编码器：掩码语言模型
#
# BERT 的任务（Devlin 等 2019）：每七个词元遮住一个，从两侧猜出它。被问到的词元中，80 % 被遮住，10 % 换成别的词元，10 % 保持原样，
# 这样模型就不知道问的是哪一个。被遮住的词元在这里写作 `<s>`：编码器在别处读不到它。
#
# > code: data/masked_tokens.py: mask_tokens
#
# > code: models/masked_language_model.py: MaskedLanguageModel.forward

# %%
from dragoman.inference.fill_mask import FillMask

masked = trained(
    "masked-demo",
    "masked",
    "corpus.test={}",
    "tokenizer={type: words, vocab_size: 2000}",
    "training.max_steps=900",
    "training.batch_tokens=1024",
    "training.validate_every=900",
    "training.schedule={type: linear, lr: 8e-3, warmup_steps: 80}",
    "training.averaging={type: ema, decay: 0.97}",
)
filler = FillMask.load(masked, device="cpu")
filled = {}
for text in ("I <mask> a beer.", "i want a <mask>"):
    [filled[text]] = filler.fill(text, 4)
    likely = ", ".join(f"{guess.piece} {guess.probability:.0%}" for guess in filled[text])
    print(f"{text:<18} {likely}")

# %% [markdown]
# In both texts the most probable word is the one of our sentence. The model looks to both sides: for the first gap "beer"
# stands on the right.

# %% [markdown] lang="zh"
# 在两个文本中，概率最大的词都是我们句子里的那个词。模型看两侧：对第一个空，“beer” 在右边。

# %% [check]
assert [guesses[0].piece for guesses in filled.values()] == ["want", "beer"]

# %% [markdown]
# Other runs begin with its encoder: `dragoman train RECIPE --init-from RUN` with a classifier's or a translator's recipe
# of the same sizes.
#
# ## Three lines to keep
#
# - The mask says what a position may see, the target says what it is asked for; the layers are the same.
# - An encoder's vectors become one vector by a mean or by a class token.
# - An image is a sequence of patches.
#
# ## Exercises
#
# `dragoman learn 14` writes the file for your answers, `dragoman learn check 14` grades them, and `--hint NAME` gives a
# hint.
#
# - Predict: `predict_patches`, the positions that an image becomes.
# - Fill: `patches`, an image cut into patches.
# - Write: `mean_over_real`, one vector for a text; `next_token_pairs`, what a language model reads and says;
#   `hide_tokens`, what a masked language model reads and says.
# - Experiment: `text_for_a_model`, a text from which a language model learns a sentence.
#
# Bugs to hunt: `dragoman learn bug 8`, `34`.
#
# ## Read on
#
# - Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section 3.1.
# - Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1.

# %% [markdown] lang="zh"
# 别的训练可以从它的编码器开始：`dragoman train RECIPE --init-from RUN`，配方是大小相同的分类器或翻译模型的配方。
#
# ## 记住三句话
#
# - 掩码决定一个位置可以看什么，目标决定它被问什么；层是一样的。
# - 编码器的各个向量由平均值或分类词元合成一个向量。
# - 图像是图像块的序列。
#
# ## 练习
#
# `dragoman learn 14` 写出供你作答的文件，`dragoman learn check 14` 评分，`--hint NAME` 给出提示。
#
# - 预测：`predict_patches`，一幅图像变成多少个位置。
# - 填空：`patches`，把图像切成图像块。
# - 编写：`mean_over_real`，一段文本的一个向量；`next_token_pairs`，语言模型读什么、说什么；`hide_tokens`，掩码语言模型读什么、说什么。
# - 实验：`text_for_a_model`，让语言模型学会一个句子的文本。
#
# 找错误：`dragoman learn bug 8`、`34`。
#
# ## 延伸阅读
#
# - Devlin 等 2019，“BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding”，第 3.1 节。
# - Dosovitskiy 等 2021，“An Image is Worth 16x16 Words”，第 3.1 节。
