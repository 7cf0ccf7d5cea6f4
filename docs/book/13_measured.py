# %% [markdown]
# # 13. Measured (度量)
#
# *How good is a translator, in one number, and what does that number mean?*
#
# Time: about 40 minutes to read and try; the cells run in 50 seconds on one core.
#
# You need a model that searches (chapter 12).

# %% [markdown] lang="zh"
# # 13. 度量
#
# *怎样用一个数说明翻译得好不好？这个数又说明了什么？*
#
# 时间：阅读和动手约 40 分钟；全部代码在一个核上运行 50 秒。
#
# 需要一个会搜索的模型（第 12 章）。

# %% [markdown]
# ## A naive try: count the right words
#
# The reference (参考译文) of our sentence is "i want a beer". The naive way to measure a translation is the share of its
# words that the reference has.

# %% [markdown] lang="zh"
# ## 朴素的尝试：数对了的词
#
# 我们句子的参考译文是 “i want a beer”。朴素的度量是：译文的词中，有多大比例出现在参考译文里。

# %%
reference = "i want a beer"
candidates = ["i want a beer", "i want a beer today", "beer a want i", "a a a a", "a"]


def share_of_words(translation, reference):
    words = translation.split()
    return sum(word in reference.split() for word in words) / len(words)


for candidate in candidates:
    print(f"{share_of_words(candidate, reference):6.1%}  {candidate}")

# %% [check]
shares = [share_of_words(candidate, reference) for candidate in candidates]
assert shares == [1.0, 0.8, 1.0, 1.0, 1.0]

# %% [markdown]
# "a a a a" and "a" get everything, and so does the sentence from back to front. The good translation with one word too
# many gets least.
#
# ## The idea in one sentence
#
# **Count the n-grams (n 元语法) of one to four words that the reference has, each no more often than it stands there, and
# punish what is too short.**
#
# That is BLEU (Papineni et al. 2002). $p_n$ is the precision (精度) of n-grams, $c$ the length of the translation and $r$
# that of the reference:
#
# $$\text{BLEU} = 100 \cdot \text{BP} \cdot \exp\!\left(\tfrac14 \sum_{n=1}^4 \ln p_n\right), \qquad \text{BP} = \min(1, e^{1 - r/c})$$
#
# $\text{BP}$ is the brevity penalty (简短惩罚). Counts and lengths are those of a whole corpus (语料库), not of one sentence.

# %% [markdown] lang="zh"
# “a a a a” 和 “a” 得了满分，把句子倒过来也得满分。只多了一个词的好译文反而最低。
#
# ## 一句话说清思想
#
# **数一数长为一到四个词的 n 元语法有多少出现在参考译文里，每个至多计参考译文中出现的次数，再对太短的译文加以惩罚。**
#
# 这就是 BLEU（Papineni 等 2002）。$p_n$ 是 n 元语法的精度，$c$ 是译文的长度，$r$ 是参考译文的长度：
#
# $$\text{BLEU} = 100 \cdot \text{BP} \cdot \exp\!\left(\tfrac14 \sum_{n=1}^4 \ln p_n\right), \qquad \text{BP} = \min(1, e^{1 - r/c})$$
#
# $\text{BP}$ 是简短惩罚。计数和长度都是整个语料库的，不是一个句子的。

# %%
import math
from collections import Counter


def counts(translation, reference, n):
    """How many n-grams the reference has, of how many."""
    grams = []
    for text in (translation, reference):
        words = text.split()
        grams.append(Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)))
    return (grams[0] & grams[1]).total(), grams[0].total()  # & takes the smaller count of both


def bleu(translations, references):
    """The BLEU of a corpus whose words stand between blanks."""
    precisions = []
    for n in (1, 2, 3, 4):
        of_sentences = [counts(*pair, n) for pair in zip(translations, references, strict=True)]
        matches, total = (sum(column) for column in zip(*of_sentences, strict=True))
        precisions.append(matches / max(1, total))
    c, r = (sum(len(text.split()) for text in texts) for texts in (translations, references))
    if min(precisions) == 0:
        return 0.0, precisions
    mean = math.exp(sum(math.log(p) for p in precisions) / 4)
    return 100 * min(1.0, math.exp(1 - r / c)) * mean, precisions


for candidate in candidates:
    score, precisions = bleu([candidate], [reference])
    print(f"{score:6.2f}  {candidate:<20}", " ".join(f"{p:.2f}" for p in precisions))

# %% [markdown]
# By hand, for "i want a beer today": 4 of 5 words, 3 of 4 pairs, 2 of 3 triples and 1 of 2 fours are in the reference. The
# product is $0.8 \cdot 0.75 \cdot 0.667 \cdot 0.5 = 0.2$. Its fourth root is 0.6687. The translation is not too short. So
# BLEU is 66.87.
#
# - The right sentence has 100.
# - The word salad has 0: it has no pair of words in common with the reference.
# - Every candidate without a common group of four words has 0. So BLEU says little of one short sentence.

# %% [markdown] lang="zh"
# 手算 “i want a beer today”：5 个词中有 4 个、4 个二元组中有 3 个、3 个三元组中有 2 个、2 个四元组中有 1 个出现在参考译文里。乘积是
# $0.8 \cdot 0.75 \cdot 0.667 \cdot 0.5 = 0.2$，四次方根是 0.6687。译文不算太短，所以 BLEU 是 66.87。
#
# - 正确的句子得 100。
# - 打乱的词得 0：它与参考译文没有共同的二元组。
# - 没有共同四元组的候选都得 0。所以 BLEU 对一个短句说明不了多少。

# %% [check]
by_hand = [bleu([candidate], [reference])[0] for candidate in candidates]
assert [round(score, 2) for score in by_hand] == [100.0, 66.87, 0.0, 0.0, 0.0]
assert [counts("i want a beer today", reference, n) for n in (1, 2, 3, 4)] == [
    (4, 5),
    (3, 4),
    (2, 3),
    (1, 2),
]
assert counts("beer a want i", reference, 2)[0] == 0
assert round(0.2**0.25, 4) == 0.6687

# %% [markdown]
# ## A translator and its scores
#
# Now a real one: German to English, trained for 500 steps on the sentence pairs (句对) that come with Dragoman. It is
# scored on 200 sentences of the test set (测试集). The model never saw them.

# %% [markdown] lang="zh"
# ## 一个翻译模型和它的分数
#
# 现在是真正的模型：德译英，在 Dragoman 自带的句对上训练 500 步，在测试集的 200 个句子上打分。模型从未见过这些句子。

# %%
import contextlib
import io
from pathlib import Path
from tempfile import mkdtemp

from dragoman.tasks import recipes

run = Path(mkdtemp()) / "de-en"
changes = [
    f"run_dir={run}",
    "device=cpu",
    "corpus.valid.size=100",
    "corpus.test.test.size=200",
    "tokenizer.vocab_size=1200",
    "model.d_model=64",
    "model.d_ff=160",
    "model.dropout=0",
    "training.max_steps=500",
    "training.batch_tokens=768",
    "training.validate_every=125",
    "training.schedule={type: linear, lr: 6e-3, warmup_steps: 80}",
    "training.samples=0",
    "training.precision=float32",
    "decoding.beam_size=2",
]
with contextlib.redirect_stderr(io.StringIO()):
    recipes.run(recipes.load("demo", changes))

# %%
from dragoman.analysis.plots import training_curves
from dragoman.learn.chapter import show
from dragoman.runs.events import METRICS, read_events

events = list(read_events(run / METRICS))
show(
    training_curves(events),
    "curves",
    "Training and validation loss, the learning rate and BLEU by step: the losses fall, BLEU rises.",
)

# %% [markdown]
# Look at: the BLEU of the validation set. It rises while the losses fall. The first score is much lower than the last.

# %% [markdown] lang="zh"
# 看哪里：验证集上的 BLEU。损失下降时它上升。第一个分数比最后一个低得多。

# %% [check]
validations = [event for event in events if event["event"] == "valid"]
assert validations[-1]["bleu"] > validations[0]["bleu"] + 20
assert validations[-1]["loss"] < validations[0]["loss"]

# %% [markdown]
# ## The same, by the reader and by everybody's program
#
# Dragoman leaves BLEU to sacreBLEU (Post 2018), which everybody has. It splits marks from words first (`13a`). Without
# that splitting your `bleu` and sacreBLEU agree on the 200 translations:
#
# > code: quality/scores.py: score

# %% [markdown] lang="zh"
# ## 自己算的和大家都用的程序算的一样
#
# Dragoman 把 BLEU 交给大家都有的 sacreBLEU（Post 2018）。它先把标点与词分开（`13a`）。不做这一步时，你的 `bleu` 与 sacreBLEU 在 200
# 个译文上一致：
#
# > code: quality/scores.py: score

# %%
import sacrebleu

import dragoman
from dragoman.text.sources.demo import DemoSource

pairs = list(DemoSource(pair="de-en", split="test", size=200).pairs())
translations = dragoman.load(run, beam_size=2, device="cpu").translate([pair.src for pair in pairs])
references = [pair.tgt for pair in pairs]
ours, precisions = bleu(translations, references)
theirs = sacrebleu.corpus_bleu(translations, [references], tokenize="none").score
print(f"{ours:.2f} {theirs:.2f} equal: {math.isclose(ours, theirs, abs_tol=1e-6)}")

# %%
from dragoman.analysis.figure import new_figure

pairs_of_words = [f"{n}" for n in (1, 2, 3, 4)]
figure = new_figure(5, 2.8, "The four precisions of the test set")
axes = figure.subplots()
axes.bar(pairs_of_words, [100 * p for p in precisions])
axes.axhline(ours, linestyle="--", color="gray", label=f"BLEU {ours:.1f}")
axes.set_xlabel("words of an n-gram")
axes.set_ylabel("in the reference [%]")
axes.legend()
show(
    figure,
    "precisions",
    "Four bars, the precisions of n-grams of 1 to 4 words: each is lower than the one before; the line of BLEU lies between.",
)

# %% [markdown]
# Look at: the bars from left to right. Longer groups match less often. BLEU lies between the highest bar and the lowest.

# %% [markdown] lang="zh"
# 看哪里：从左到右的柱子。越长的词组越少匹配。BLEU 在最高的柱子和最低的柱子之间。

# %% [check]
assert math.isclose(ours, theirs, abs_tol=1e-6)
assert precisions == sorted(precisions, reverse=True)
assert 100 * precisions[-1] <= ours <= 100 * precisions[0]

# %% [markdown]
# ## The signature
#
# A score means nothing without its signature: how text was split, whether capitals count, which version. Here is the
# line that every program should print, and the same translations scored in four ways.

# %% [markdown] lang="zh"
# ## 签名
#
# 没有签名的分数没有意义：文本怎样切分、是否区分大小写、用哪个版本。下面是每个程序都应当打印的一行，以及同样的译文按四种方式打出的分数。

# %%
tested = next(event for event in events if event["event"] == "test")
print(tested["signatures"]["bleu"])

by_way = {}
for name, options in (
    ("as usual", {}),
    ("lower case", {"lowercase": True}),
    ("no tokenization", {"tokenize": "none"}),
    ("characters", {"tokenize": "char"}),
):
    by_way[name] = sacrebleu.corpus_bleu(translations, [references], **options).score
    print(f"{name:<16} {by_way[name]:.2f}")

# %% [markdown]
# ## What the output says
#
# - The first line is the score that Dragoman reported.
# - The highest and the lowest are more than a point apart, with not one word changed.
#
# On Multi30k, English to German, the literature scores lower-cased text that is split already. That is another number
# than that of raw text. Compare scores with equal signatures only.

# %% [markdown] lang="zh"
# ## 输出说明了什么
#
# - 第一行就是 Dragoman 报告的分数。
# - 最高分与最低分相差一分以上，而译文一个词也没有变。
#
# 在 Multi30k 英译德上，文献对已切分的小写文本打分，得到的数与原始文本的不同。只有签名相同的分数才能比较。

# %% [check]
assert abs(by_way["as usual"] - tested["bleu"]) < 0.01
assert max(by_way.values()) - min(by_way.values()) > 1
assert "tok:13a" in tested["signatures"]["bleu"]

# %% [markdown]
# ## What leaks
#
# If test sentences are in the training text, the score is too good. `dragoman doctor` looks for that. On this corpus:
#
# > code: quality/leakage.py: Leakage

# %% [markdown] lang="zh"
# ## 泄漏
#
# 如果测试句子出现在训练文本中，分数就好得不真实。`dragoman doctor` 会检查这一点。在这个语料库上：
#
# > code: quality/leakage.py: Leakage

# %%
seen = {pair.src for pair in DemoSource(pair="de-en", split="train").pairs()}
leaked = sum(pair.src in seen for pair in pairs)
print(leaked, "of 200 test sentences stand in the training text")

# %% [check]
assert leaked == 0

# %% [markdown]
# ## How sure is a difference?
#
# 200 sentences are few. Draw 200 of them again and again, some of them twice, and score each drawn set: the scores
# spread. That is the bootstrap (Koehn 2004), and `dragoman evaluate` does it. Here 300 times, with your `bleu`:

# %% [markdown] lang="zh"
# ## 差别有多可靠？
#
# 200 个句子不多。从中反复有放回地抽取 200 个句子，给每一组打分：分数是分散的。这就是自助法（Koehn 2004），`dragoman evaluate` 也这样做。
# 下面用你的 `bleu` 做 300 次：

# %%
import random

rng = random.Random(1)
drawn_scores = []
for _ in range(300):
    drawn = rng.choices(range(200), k=200)
    drawn_scores.append(bleu([translations[i] for i in drawn], [references[i] for i in drawn])[0])
drawn_scores.sort()
low, high = drawn_scores[7], drawn_scores[-8]
print(f"BLEU {ours:.1f}; 95 of 100 drawn sets lie between {low:.1f} and {high:.1f}")

# %% [markdown]
# Two systems whose scores both lie in such a range cannot be told apart by 200 sentences. Seeds differ too. On the 1,000
# test sentences of Multi30k, English to German, three seeds of one recipe have 41.31, 40.88 and 41.22 BLEU
# (`speedrun/README.md`).

# %% [markdown] lang="zh"
# 两个系统的分数都落在这样的范围内时，200 个句子分不出它们的高下。随机种子也带来差别：在 Multi30k 英译德的 1,000 个测试句子上，同一个配方的三个种子得到
# 41.31、40.88 和 41.22 BLEU（`speedrun/README.md`）。

# %% [check]
from dragoman.version import folder_of

assert low < ours < high
assert high - low > 2
assert "41.31, 40.88 and 41.22 BLEU" in (folder_of("docs").parent / "speedrun/README.md").read_text(
    encoding="utf-8"
)

# %% [markdown]
# ## Where it looks
#
# A number says nothing of the reasons. The cross-attention (the decoder's attention, 注意力, to the source) of a
# translation shows which word looked at which:

# %% [markdown] lang="zh"
# ## 它看哪里
#
# 一个数说不出原因。一个译文的交叉注意力（解码器对源语言的注意力）显示哪个词看了哪个词：

# %%
from dragoman.analysis.attention import attention_figure
from dragoman.inference.attention_maps import attention_of

kinds = attention_of(dragoman.load(run, device="cpu").search, "ich möchte ein bier")
show(
    attention_figure(kinds["decoder.cross"]),
    "cross-attention",
    "Cross-attention of a translation, a matrix for each layer and head: rows are the English pieces, columns the German "
    "ones.",
)

# %% [markdown]
# Look at: the dark cells of each row, the English piece that is to be said. Some heads look at one German word, others
# spread. Each row sums to 1.

# %% [markdown] lang="zh"
# 看哪里：每一行（将要说出的英文片段）中深色的格子。有的头只看一个德文词，有的头分散。每一行的和为 1。

# %% [check]
rows = [layer.sum(-1) for layer in kinds["decoder.cross"].layers]
assert all(abs(row - 1).max() < 1e-4 for row in rows)
sharpest = [float(layer.max(-1).mean(-1).max()) for layer in kinds["decoder.cross"].layers]
broadest = [float(layer.max(-1).mean(-1).min()) for layer in kinds["decoder.cross"].layers]
assert max(sharpest) > 0.6 > min(broadest)  # "some heads look at one German word, others spread"

# %% [markdown]
# ## Your own Transformer beside Dragoman
#
# Is your `mini_transformer.py` as good? Both are trained for as many steps on the same pairs with the same sizes, and
# measured on the same sentences. `dragoman learn mini` does this with your file. In this chapter the file is the
# solution that comes with Dragoman, and the time is short.

# %% [markdown] lang="zh"
# ## 你自己的 Transformer 与 Dragoman 相比
#
# 你的 `mini_transformer.py` 一样好吗？两者用同样的句对、同样的大小训练同样多的步数，在同样的句子上度量。`dragoman learn mini`
# 对你的文件做这件事。本章用的是 Dragoman 附带的解答，时间也较短。

# %%
from dragoman.learn import mini_solution
from dragoman.learn.mini_compare import compare, table

with contextlib.redirect_stderr(io.StringIO()):
    rows = compare(mini_solution, seconds=12)
print(table(rows))

# %% [markdown]
# - The losses are nearly the same: both models began with the same weights, and read the same batches.
# - Which one is faster depends on your computer. Look at tokens/s, and at sentences/s: Dragoman translates all sentences
#   in one batch, with a cache (chapter 12).
#
# The BLEU is low, because the training is short. With `--seconds 120` it is longer.

# %% [markdown] lang="zh"
# - 损失几乎相同：两个模型从同样的权重开始，读同样的批次。
# - 哪一个更快取决于你的计算机。看 tokens/s，也看 sentences/s：Dragoman 把所有句子放在一个批次中翻译，并使用缓存（第 12 章）。
#
# BLEU 很低，因为训练很短。用 `--seconds 120` 可以训练得长一些。

# %% [check]
mine, theirs = rows
assert abs(mine.loss - theirs.loss) < 0.05
assert mine.bleu < ours
assert min(mine.tokens_per_second, theirs.tokens_per_second) > 0

# %% [markdown]
# ## Three lines to keep
#
# - BLEU counts common groups of one to four words over a whole test set.
# - A score without its signature, its test set and its spread means little.
# - What the training text contains must not be in the test.
#
# ## Exercises
#
# `dragoman learn 13` writes the file for your answers, `dragoman learn check 13` grades them, and `--hint NAME` gives a
# hint.
#
# - Predict: `predict_matches`, clipped matches of a translation.
# - Fill: `brevity_penalty`, the penalty of short translations.
# - Write: `modified_precision`, clipped n-gram matches; `bleu`, the BLEU of a corpus; `read_signature`, what sacreBLEU
#   says of a score.
# - Experiment: `better_bleu_worse_meaning`, a higher BLEU with the opposite meaning.
#
# For your own Transformer: `mini_transformer.py` is complete; `dragoman learn mini` compares it with Dragoman.
#
# ## Read on
#
# - Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", section 2.
# - Post 2018, "A Call for Clarity in Reporting BLEU Scores".

# %% [markdown] lang="zh"
# ## 记住三句话
#
# - BLEU 在整个测试集上数一到四个词的共同词组。
# - 没有签名、测试集和波动范围的分数没有多少意义。
# - 训练文本里有的，测试里不能有。
#
# ## 练习
#
# `dragoman learn 13` 写出供你作答的文件，`dragoman learn check 13` 评分，`--hint NAME` 给出提示。
#
# - 预测：`predict_matches`，一个译文的截断匹配数。
# - 填空：`brevity_penalty`，对短译文的惩罚。
# - 编写：`modified_precision`，截断的 n 元语法匹配；`bleu`，语料库的 BLEU；`read_signature`，sacreBLEU 对分数的说明。
# - 实验：`better_bleu_worse_meaning`，BLEU 更高而意思相反。
#
# 你自己的 Transformer：`mini_transformer.py` 已经完整；`dragoman learn mini` 把它与 Dragoman 比较。
#
# ## 延伸阅读
#
# - Papineni 等 2002，“BLEU: a Method for Automatic Evaluation of Machine Translation”，第 2 节。
# - Post 2018，“A Call for Clarity in Reporting BLEU Scores”。
