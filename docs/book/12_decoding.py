# %% [markdown]
# # 12. Decoding (解码)
#
# *How does a sentence come out of the probabilities of single tokens?*
#
# Time: about 45 minutes to read and try; the cells run in 45 seconds on one core.
#
# You need the whole Transformer of chapter 10, and a model that has learnt something (chapter 11).

# %% [markdown] lang="zh"
# # 12. 解码
#
# *怎样由单个词元的概率得到一个句子？*
#
# 时间：阅读和动手约 45 分钟；全部代码在一个核上运行 45 秒。
#
# 需要第 10 章的整个 Transformer，以及一个已经学到东西的模型（第 11 章）。

# %% [markdown]
# ## A naive try: ask for all words at once
#
# In training the decoder (解码器) saw the right target tokens (teacher forcing, 强制教学). Now nobody knows them. The
# naive way gives it five start tokens `<s>`, one for each place, and asks for all five words at once. The model is your
# Transformer, trained for forty steps on our sentence.

# %% [markdown] lang="zh"
# ## 朴素的尝试：一次问出所有的词
#
# 训练时解码器看得到正确的目标词元（强制教学）。现在谁也不知道它们。朴素的做法是给它五个起始符 `<s>`，每个位置一个，一次问出全部五个词。
# 模型是你的 Transformer，在我们的句子上训练了四十步。

# %%
import torch

from dragoman.learn.mini_solution import BOS, EOS, Transformer, batch, train
from dragoman.learn.one_sentence import TGT_VOCAB

sentence = batch([([4, 5, 6, 7], [4, 5, 6, 7])])  # ich möchte ein bier, i want a beer
src = sentence[0]
torch.manual_seed(1)
mini = Transformer(src_vocab=8, tgt_vocab=8)
train(mini, [sentence], steps=40, warmup=40)
mini.eval()
with torch.no_grad():
    logits = mini(src, torch.tensor([[BOS] * 5]))
print([TGT_VOCAB[best] for best in logits.argmax(-1)[0]])

# %% [check]
assert [TGT_VOCAB[best] for best in logits.argmax(-1)[0]] == ["i"] * 5
with torch.no_grad():  # teacher forcing: the model does know the sentence
    assert mini(*sentence[:2]).argmax(-1)[0].tolist() == [4, 5, 6, 7, 3]

# %% [markdown]
# Five times "i". After `<s>` the right word is "i", and the decoder was shown `<s>` at every place. It cannot say "want"
# before it knows that it has said "i".
#
# ## The idea in one sentence
#
# **Let the model say one token, give that token back to it, and ask again, until it says the end token `</s>`.**
#
# Greedy search (贪心搜索) takes the most probable token each time. This is all of it:

# %% [markdown] lang="zh"
# 五次都是 “i”。`<s>` 之后正确的词是 “i”，而每个位置给解码器看的都是 `<s>`。它还不知道自己说过 “i”，就说不出 “want”。
#
# ## 一句话说清思想
#
# **让模型说出一个词元，把这个词元交还给它，再问下一个，直到它说出结束符 `</s>`。**
#
# 贪心搜索每次取概率最大的词元。全部代码如下：


# %%
@torch.no_grad()
def greedy(model, src, max_len=50):
    """Translate one sentence, (1, src_len): say the most probable token, again and again, until it is </s>."""
    model.eval()
    memory, ids = model.encode(src), [BOS]
    while len(ids) <= max_len:
        best = int(model.decode(torch.tensor([ids]), memory, src)[0, -1].argmax())
        if best == EOS:
            break
        ids.append(best)
    return ids[1:]


ids = greedy(mini, src)
print(ids, [TGT_VOCAB[token] for token in ids])

# %% [markdown]
# Dragoman's greedy search says the same with the same weights. `dragoman_model` puts the weights of your Transformer into
# Dragoman's own.
#
# > code: decoding/greedy.py: greedy_search

# %% [markdown] lang="zh"
# 权重相同时，Dragoman 的贪心搜索说出同样的句子。`dragoman_model` 把你的 Transformer 的权重放进 Dragoman 自己的模型。
#
# > code: decoding/greedy.py: greedy_search

# %%
from dragoman.decoding.base import DecodingConfig
from dragoman.decoding.search import search
from dragoman.learn.mini import dragoman_model

model = dragoman_model(mini)
[[best]] = search(model, src, src != 0, DecodingConfig(beam_size=1))
print("equal:", list(best.ids) == ids)

# %% [check]
from dragoman.learn import mini_solution

assert list(best.ids) == ids == [4, 5, 6, 7] == mini_solution.greedy(mini, src)

# %% [markdown]
# ## The cache (缓存)
#
# `greedy` computes the whole prefix (前缀) anew for each token. That is a waste: the mask (掩码) of chapter 5 hides later
# tokens, so keys and values of the earlier ones never change. A decoder can keep them. It then computes one position in
# each step. Here are both ways, on our sentence: the shape of the kept keys, (rows, heads, positions, d_head), and the
# largest difference of the logits.
#
# > code: nn/attention.py: KVCache
#
# > code: models/transformer.py: Transformer.decode_steps

# %% [markdown] lang="zh"
# ## 缓存
#
# `greedy` 为每个词元都把整个前缀重新计算一遍。这是浪费：第 5 章的掩码遮住了后面的词元，所以前面词元的键和值永远不变。解码器可以把它们保存下来，
# 每一步就只计算一个位置。下面在我们的句子上比较两种做法：保存的键的形状（行、头、位置、d_head），以及 logits 的最大差别。
#
# > code: nn/attention.py: KVCache
#
# > code: models/transformer.py: Transformer.decode_steps

# %%
differences = []
with torch.no_grad():
    memory = mini.encode(src)
    state = model.start(model.encode(src, src != 0))
    for n in range(5):
        prefix = torch.tensor([[BOS, *ids][: n + 1]])
        whole = mini.decode(prefix, memory, src)[:, -1]
        one, state = model.decode_step(prefix[:, -1], state)
        differences.append(float((whole - one).abs().max()))
        said = TGT_VOCAB[int(one.argmax())]
        shape = tuple(state.past[0].key.shape)
        read, difference = TGT_VOCAB[prefix[0, -1]], differences[-1]
        print(f"reads {read:<5} keys {shape}  says {said:<5} difference {difference:.0e}")

# %% [markdown]
# ## What the output says
#
# - The cache grows by one position in each step.
# - The logits are the same, up to rounding.

# %% [markdown] lang="zh"
# ## 输出说明了什么
#
# - 缓存每一步增加一个位置。
# - 除舍入误差外，logits 相同。

# %% [check]
assert max(differences) < 1e-3
assert state.past[0].key.shape == (1, 4, 5, 16)

# %% [markdown]
# ## A real translator: "Why do we work?"
#
# One sentence learnt by heart is no translator. The recipe `recipes/why-en-zh.yaml` trains one from English to Chinese on
# the 20,000 sentence pairs (句对) that come with Dragoman. English is read word by word. Chinese is written character by
# character (字符), so you can watch each one come.

# %% [markdown] lang="zh"
# ## 真正的翻译模型：“Why do we work?”
#
# 背下一个句子还算不上翻译。配方 `recipes/why-en-zh.yaml` 用 Dragoman 自带的 20,000 个句对训练一个英译汉的模型。英文按词读入，
# 中文按字符写出，所以你可以看着每个字出现。

# %%
import contextlib
import io
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

import dragoman
from dragoman.corpora import embedded
from dragoman.tasks import recipes

run = Path(mkdtemp()) / "why"
overrides = [f"run_dir={run}", "device=cpu", "training.precision=float32"]
with contextlib.redirect_stderr(io.StringIO()):
    recipes.run(recipes.load("why-en-zh", overrides))

why, they = "Why do we work?", "Why do they work?"
times = Counter(source for source, _ in embedded.sentences("en-zh", "train"))
translator = dragoman.load(run, beam_size=1, device="cpu")
for source, translation in zip([why, they], translator.translate([why, they]), strict=True):
    print(f"{source:<18} {translation:<10} ({times[source]} times in the training text)")

# %% [markdown]
# The first sentence is well known from lecture notes, and the training text repeats it: the model has it by heart. The
# second one is not in the training text. The model puts it together from others.
#
# Here is the first one, one token at a time. In each step you see the shape of the cache, and the four most probable
# tokens with their probabilities (概率). The first of them goes in again.

# %% [markdown] lang="zh"
# 第一个句子因讲义而广为人知，训练文本中重复出现：模型把它背了下来。第二个句子不在训练文本中，是模型由别的句子拼成的。
#
# 下面逐个词元地生成第一个句子。每一步都给出缓存的形状，以及概率最大的四个词元和它们的概率。其中第一个又被送回解码器。

# %% [check]
assert translator.translate([why, they]) == ["为什么要工作？", "他们为什么工作？"]
assert times[why] == 21
assert times[they] == 0

# %%
from dragoman.data.batch import collate_src

characters = translator.tokenizers.tgt.pieces
source, mask = collate_src([translator.tokenizers.src.encode(why)])
written = []
with torch.no_grad():
    state = translator.model.start(translator.model.encode(source, mask))
    token = torch.tensor([BOS])
    while token.item() != EOS:
        logits, state = translator.model.decode_step(token, state)
        probabilities, best = logits.softmax(-1).topk(4)
        likely = zip(characters(best[0].tolist()), probabilities[0].tolist(), strict=True)
        shape = tuple(state.past[0].key.shape)
        print(shape, "  ".join(f"{character} {share:.1%}" for character, share in likely))
        token = best[:, 0]
        written.append((characters(token.tolist())[0], probabilities[0, 0].item()))

# %% [markdown]
# - Six characters come, then the question mark, then `</s>`: eight steps, and eight positions in the cache.
# - The model is least sure at the first character and at 要. Many questions of the training text ask "为什么 ... 工作"
#   without 要.

# %% [markdown] lang="zh"
# - 先出现六个字，再是问号，然后是 `</s>`：共八步，缓存中有八个位置。
# - 模型在第一个字和 “要” 处最没有把握。训练文本中许多问句是没有 “要” 的 “为什么……工作”。

# %% [check]
assert [character for character, _ in written] == [*"为什么要工作？", "</s>"]
assert state.past[0].key.shape[2] == 8
surest = sorted(written, key=lambda one: one[1])
assert {character for character, _ in surest[:2]} == {"为", "要"}
questions = {s: t for s, t in embedded.sentences("en-zh", "train") if "为什么" in t and "工作" in t}
assert len([t for t in questions.values() if "要" not in t]) > 5

# %% [markdown]
# ## Beam search (束搜索)
#
# Greedy search never takes a step back. Here is a model of two steps that one can compute by hand. The first word is "the"
# with 60 %, or "a" with 40 %. After "the" three words are about equally probable. After "a" one word is nearly sure.

# %% [markdown] lang="zh"
# ## 束搜索
#
# 贪心搜索从不回头。下面是一个两步的模型，可以用手算。第一个词是 “the” 的概率为 60 %，是 “a” 的概率为 40 %。“the” 之后三个词的概率差不多；
# “a” 之后有一个词几乎是确定的。

# %%
first = {"the": 0.6, "a": 0.4}
second = {"the": {"dog": 0.34, "cat": 0.33, "cow": 0.33}, "a": {"bird": 0.9, "dog": 0.1}}


def beam(width):
    """The best sentence that keeps the `width` most probable prefixes; width 1 is greedy."""
    kept = sorted(((p, [word]) for word, p in first.items()), reverse=True)[:width]
    return max(
        (p * q, [*words, word]) for p, words in kept for word, q in second[words[-1]].items()
    )


print("width 1:", beam(1))
print("width 2:", beam(2))

# %% [check]
assert (beam(1)[1], beam(2)[1]) == (["the", "dog"], ["a", "bird"])
assert (round(beam(1)[0], 2), round(beam(2)[0], 2)) == (0.2, 0.36)

# %% [markdown]
# Greedy search ends at 20 %, and a beam of two ends at 36 %. The first word of the better sentence was not the most
# probable first word. **A beam search keeps several prefixes alive, the most probable ones, and decides late.**
#
# A prefix that ends in `</s>` is a finished hypothesis (假设). Log probabilities (对数概率) are added, and the sum is
# divided by the number of tokens, so that a long sentence is not worse for being long.

# %% [markdown] lang="zh"
# 贪心搜索得到 20 %，束宽为二的搜索得到 36 %。更好的句子的第一个词并不是最可能的第一个词。
# **束搜索让几个最可能的前缀同时活着，晚一些再决定。**
#
# 以 `</s>` 结尾的前缀是一个完成的假设。对数概率相加，再除以词元的个数，这样长句子不会只因为长而变差。


# %%
@torch.no_grad()
def beam_search(model, src, beam, max_len=50):
    """Translate one sentence, (1, src_len): finished translations with their scores, the best first.

    A score is the sum of log probabilities / the number of tokens, </s> counted. In each step the
    `beam` best prefixes that do not end in </s> live on; one that ends in it and is among the
    `beam` best of all is finished. It ends when `beam` are finished, or after `max_len` tokens.
    """
    model.eval()
    memory = model.encode(src)
    alive = [([BOS], 0.0)]
    finished = []
    for length in range(1, max_len + 1):
        prefixes, rows = torch.tensor([ids for ids, _ in alive]), len(alive)
        logits = model.decode(prefixes, memory.expand(rows, -1, -1), src.expand(rows, -1))[:, -1]
        totals = torch.tensor([total for _, total in alive])[:, None] + logits.log_softmax(dim=-1)
        best, places = totals.flatten().topk(min(2 * beam, totals.numel()))
        continued = []
        for total, place in zip(best.tolist(), places.tolist(), strict=True):
            row, token = divmod(place, logits.size(-1))
            continued.append(([*alive[row][0], token], total))
        finished += [
            (ids[1:-1], total / length) for ids, total in continued[:beam] if ids[-1] == EOS
        ]
        alive = [(ids, total) for ids, total in continued if ids[-1] != EOS][:beam]
        if len(finished) >= beam:
            break
    unfinished = [(ids[1:], total / max_len) for ids, total in alive]
    return sorted(finished or unfinished, key=lambda item: -item[1])


for said, score in beam_search(mini, src, beam=2):
    print(f"{score:8.4f}", [TGT_VOCAB[token] for token in said])

# %% [markdown]
# Dragoman's beam search has the same best one with the same score. Then look at a beam of three.
#
# > code: decoding/beam.py: beam_search

# %% [markdown] lang="zh"
# Dragoman 的束搜索得到同样的最佳句子，得分也相同。然后看束宽为三的搜索。
#
# > code: decoding/beam.py: beam_search

# %%
best_ids, best_score = beam_search(mini, src, beam=2)[0]
[[best]] = search(model, src, src != 0, DecodingConfig(beam_size=2))
print("equal:", list(best.ids) == best_ids)
print("equal:", torch.allclose(torch.tensor(best.score), torch.tensor(best_score), atol=1e-5))

wide_ids, wide_score = beam_search(mini, src, beam=3)[0]
[[wide]] = search(model, src, src != 0, DecodingConfig(beam_size=3))
print(f"beam 3, yours    {wide_score:8.4f}", [TGT_VOCAB[token] for token in wide_ids])
print(f"beam 3, Dragoman {wide.score:8.4f}", [TGT_VOCAB[token] for token in wide.ids])

# %% [markdown]
# With a beam of three your search is worse than greedy search. The model is so sure of its sentence that every other
# prefix is hopeless, and hopeless prefixes end early. Three of them had finished before the right sentence, and the search
# stopped there. Dragoman stops later: when no prefix that is alive can still beat the best finished hypothesis.

# %% [markdown] lang="zh"
# 束宽为三时，你的搜索比贪心搜索还差。模型对这个句子太有把握，其余的前缀都没有希望，而没有希望的前缀早早结束。三个这样的前缀在正确的句子之前就完成了，
# 搜索便停了下来。Dragoman 停得更晚：等到活着的前缀都不可能再超过最好的已完成假设。

# %% [check]
assert best_ids == list(best.ids) == list(wide.ids) == [4, 5, 6, 7]
assert abs(best.score - best_score) < 1e-5
assert beam_search(mini, src, beam=2) == mini_solution.beam_search(mini, src, beam=2)
assert wide_ids != ids == [4, 5, 6, 7]
assert wide_score < wide.score - 1
assert len(beam_search(mini, src, beam=3)) == 3  # three had finished

# %% [markdown]
# ## The tree of a search
#
# Now the same for "Why do we work?", with a beam of two. Each line is a candidate (候选): the step, the prefix, its log
# probability, and what became of it.

# %% [markdown] lang="zh"
# ## 搜索树
#
# 现在对 “Why do we work?” 做束宽为二的搜索。每一行是一个候选：步数、前缀、对数概率，以及它后来怎样了。

# %%
from dragoman.analysis.search_tree import fate, search_figure
from dragoman.inference.watched_search import watch_search

watched = watch_search(dragoman.load(run, beam_size=2, device="cpu").search, why, top=3)
for step in watched.steps:
    for one in step.candidates:
        prefix = "".join([*step.alive[one.parent].pieces[1:], one.piece])
        print(f"{step.length}  {one.log_prob:7.2f}  {prefix}  {fate(watched, step, one)}")
print("stopped:", watched.stopped)
print("the winner:", watched.texts[0], f"{watched.hypotheses[0].score:.4f}")

# %%
from dragoman.learn.chapter import show

show(
    search_figure(watched),
    "beam-tree",
    "A tree of prefixes by step. The orange path is the winner, with 要; the blue one begins with 我们 and ends one step "
    "later with a lower score. Grey candidates were dropped.",
)

# %% [markdown]
# Look at: the two paths of boxes from left to right. The orange one with the star is the winner. The blue one begins with
# 我们: it is the translation word by word, "我们为什么工作？". It stays alive to its end, and its score is lower. Grey words died
# because others were more probable in that step.
#
# When can no prefix beat the best finished hypothesis any more? A prefix can only lose probability. So there is a best
# score that it can still reach: its log probability, divided by the largest length. The line "stopped" has it.

# %% [markdown] lang="zh"
# 看哪里：从左到右的两条方框路径。带星号的橙色路径是胜者。蓝色路径以 “我们” 开头，是逐词的翻译 “我们为什么工作？”。它一直活到结束，但得分较低。
# 灰色的字在那一步被淘汰，因为别的候选概率更大。
#
# 前缀什么时候不可能再超过最好的已完成假设？前缀的概率只会变小，所以它还能达到的最好得分是可以算出的：对数概率除以最大长度。
# “stopped” 一行给出了这个数。

# %% [check]
assert watched.texts[0] == "为什么要工作？"
finished = {
    "".join(step.alive[one.parent].pieces[1:]): one.score
    for step in watched.steps
    for one in step.candidates
    if one.score is not None
}
assert [one.piece for step in watched.steps for one in step.candidates if one.wins] == [
    *"为什么要工作？",
    "</s>",
]
assert set(finished) == {"为什么要工作？", "我们为什么工作？"}
assert finished["我们为什么工作？"] < finished["为什么要工作？"] == watched.hypotheses[0].score
assert "can still reach" in watched.stopped
assert all(
    one.fate == "outranked"
    for step in watched.steps
    for one in step.candidates
    if one.place is None and one.score is None
)

# %% [markdown]
# ## The length penalty (长度惩罚)
#
# Each further token makes a log probability smaller. So a search that compares sums likes short translations. Scores are
# divided by the length (`average`), or by $((5 + n)/6)^\alpha$ (`gnmt`, Wu et al. 2016, equation 14). Here are two
# hypotheses of four and of eight tokens:
#
# > code: decoding/penalties.py: GnmtPenalty.divisor

# %% [markdown] lang="zh"
# ## 长度惩罚
#
# 每多一个词元，对数概率就更小。只比较总和的搜索因此偏爱短译文。得分要除以长度（`average`），或者除以 $((5 + n)/6)^\alpha$（`gnmt`，Wu 等
# 2016，式 14）。下面是四个词元和八个词元的两个假设：
#
# > code: decoding/penalties.py: GnmtPenalty.divisor

# %%
from dragoman.decoding.penalties import AveragePenalty, GnmtPenalty, NoPenalty

divided = {}
for length, log_prob in ((4, -2.0), (8, -2.3)):
    for penalty in (NoPenalty(), AveragePenalty(), GnmtPenalty()):
        divided[length, penalty.type] = log_prob / penalty.divisor(length)
    shown = "  ".join(f"{name} {score:.3f}" for (n, name), score in divided.items() if n == length)
    print(f"{length} tokens, ln p {log_prob}:  {shown}")

# %% [markdown]
# The longer one is less probable, and it is better by either penalty.

# %% [markdown] lang="zh"
# 较长的一个概率较小，但按两种惩罚都更好。

# %% [check]
assert divided[8, "none"] < divided[4, "none"]
assert divided[8, "average"] > divided[4, "average"]
assert divided[8, "gnmt"] > divided[4, "gnmt"]

# %% [markdown]
# ## Is a wider beam better?
#
# A wider beam finds what the model thinks most probable. That is one question. Whether it is the better translation is
# another one. Here are three beams on sixty validation sentences: the mean score, and how many translations are the
# reference (参考译文), character by character.

# %% [markdown] lang="zh"
# ## 束越宽越好吗？
#
# 束越宽，越能找到模型认为最可能的句子。这是一个问题。它是不是更好的译文，是另一个问题。下面是三种束宽在六十个验证句子上的结果：平均得分，
# 以及有多少译文与参考译文一字不差。

# %%
validation = list(embedded.sentences("en-zh", "valid", 60))
mean_scores = {}
for beam_size in (1, 2, 5):
    searcher = dragoman.load(run, beam_size=beam_size, device="cpu")
    best_items = [items[0] for items in searcher.n_best([source for source, _ in validation])]
    mean_scores[beam_size] = sum(item.score for item in best_items) / len(best_items)
    right = sum(item.text == tgt for item, (_, tgt) in zip(best_items, validation, strict=True))
    print(
        f"beam {beam_size}: mean score {mean_scores[beam_size]:.4f}, {right} of 60 are the reference"
    )

# %% [markdown]
# The mean score does not fall as the beam grows. For one sentence it may: a beam is no exact search. And a better score
# can be a worse translation. Koehn and Knowles (2017, "Six Challenges for Neural Machine Translation") saw BLEU fall with
# very wide beams. Why can the most probable sentence be a bad one? Think of what the length penalty is there for, and of
# your search with a beam of three. The exercise `beam_worse` asks you for a model of your own with which a beam of 5 is worse than greedy search.

# %% [markdown] lang="zh"
# 束变宽时平均得分没有下降。对单个句子它可能下降：束搜索不是精确搜索。而且得分更高的也可能是更差的译文。Koehn 和 Knowles（2017，“Six
# Challenges for Neural Machine Translation”）看到束很宽时 BLEU 下降。为什么最可能的句子会是差的句子？想一想长度惩罚是为了什么，再想想你的束宽为三的搜索。练习
# `beam_worse` 请你自己造一个模型，使束宽为 5 的搜索比贪心搜索差。

# %% [check]
assert mean_scores[1] <= mean_scores[2] + 0.005
assert mean_scores[2] <= mean_scores[5] + 0.005

# %% [markdown]
# ## All of it on one page
#
# `dragoman train recipes/why-en-zh.yaml`, then `dragoman explain runs/why-en-zh "Why do we work?" -o page.html`. The page
# shows all of this for a sentence of yours: pieces, ids, masks, heads, the next tokens of each step, the tree.
#
# ## Three lines to keep
#
# - A decoder says one token, reads it, and says the next, until `</s>`.
# - The cache keeps keys and values; the logits stay the same.
# - A beam keeps several prefixes and compares scores that are divided by a length.
#
# ## Exercises
#
# `dragoman learn 12` writes the file for your answers, `dragoman learn check 12` grades them, and `--hint NAME` gives a
# hint.
#
# - Predict: `predict_greedy`, the translation of greedy search.
# - Fill: `length_score`, a score divided by the paper's length penalty.
# - Write: `greedy`, greedy search; `beam_search`, beam search.
# - Experiment: `beam_worse`, a model with which beam 5 is worse than greedy.
#
# For your own Transformer: `mini_transformer.py`, pieces `greedy` and `beam_search`.
#
# Bugs to hunt: `dragoman learn bug 30`, `31`, `32`, `33`.
#
# ## Read on
#
# - Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning with Neural Networks", section 3.2: beam search.
# - Wu et al. 2016, "Google's Neural Machine Translation System", section 7: the length penalty.

# %% [markdown] lang="zh"
# ## 全部在一页上
#
# 先运行 `dragoman train recipes/why-en-zh.yaml`，再运行 `dragoman explain runs/why-en-zh "Why do we work?" -o page.html`。
# 这一页为你给的句子显示上面的一切：片段、编号、掩码、头、每一步的下一个词元、搜索树。
#
# ## 记住三句话
#
# - 解码器说出一个词元，读入它，再说下一个，直到 `</s>`。
# - 缓存保存键和值；logits 不变。
# - 束搜索保留几个前缀，比较除以长度之后的得分。
#
# ## 练习
#
# `dragoman learn 12` 写出供你作答的文件，`dragoman learn check 12` 评分，`--hint NAME` 给出提示。
#
# - 预测：`predict_greedy`，贪心搜索得到的译文。
# - 填空：`length_score`，用长度惩罚归一化的得分。
# - 编写：`greedy`，贪心搜索；`beam_search`，束搜索。
# - 实验：`beam_worse`，束宽为 5 反而比贪心差的模型。
#
# 你自己的 Transformer：`mini_transformer.py` 中的 `greedy` 和 `beam_search`。
#
# 找错误：`dragoman learn bug 30`、`31`、`32`、`33`。
#
# ## 延伸阅读
#
# - Sutskever、Vinyals 和 Le 2014，“Sequence to Sequence Learning with Neural Networks”，第 3.2 节：束搜索。
# - Wu 等 2016，“Google's Neural Machine Translation System”，第 7 节：长度惩罚。
