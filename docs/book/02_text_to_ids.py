# %% [markdown]
# # 2. Text to ids (从文本到编号)
#
# *What gets a number of its own: a word, a character, or something between?*
#
# Time: about 60 minutes to read and try; the cells run in 5 seconds on one core.
# You need chapter 1: the vocabulary, ids, the four specials.
#
# A model computes with numbers, so text becomes a sequence of ids first. The sentence of this book has a vocabulary of
# its own: the four specials, and its words in their order.

# %% [markdown] lang="zh"
# # 2. 从文本到编号
#
# *什么该有自己的编号：词、字符，还是介于两者之间的东西？*
#
# 时间：阅读和尝试大约 60 分钟；在一个核上运行各单元格需要 5 秒。
# 需要第 1 章：词表、编号、四个特殊词元。
#
# 模型用数字计算，所以文本要先变成编号的序列。本书的句子有自己的词表：四个特殊词元，加上按出现次序排列的词。

# %%
text = "ich möchte ein bier"
vocabulary = ["<pad>", "<unk>", "<s>", "</s>", *text.split()]
print(vocabulary)
print([vocabulary.index(word) for word in text.split()])

# %% [markdown]
# ## A naive try that fails
#
# More text has more words. Here are 3,000 German sentences with their English translations; this corpus (语料库) comes with
# Dragoman. We split each sentence at its blanks, and every word of the training text gets an id. Then we read 200
# sentences of the validation text (验证集), which were never counted.

# %% [markdown] lang="zh"
# ## 一次失败的朴素尝试
#
# 文本越多，词就越多。这里有 3,000 个德语句子和它们的英语译文；这个语料库随 Dragoman 提供。
# 我们在空格处切开每个句子，训练文本中的每个词都得到一个编号。然后读 200 个验证集句子，它们从未参与计数。

# %%
from collections import Counter

from dragoman.text.sources.demo import DemoSource

pairs = list(DemoSource(pair="de-en", split="train", size=3000).pairs())
held_out = list(DemoSource(pair="de-en", split="valid", size=200).pairs())
counts = Counter(word for pair in pairs for word in pair.src.split())
words_read = [word for pair in held_out for word in pair.src.split()]
unknown = [word for word in words_read if word not in counts]
print(held_out[0].src)
naive_share = len(unknown) / len(words_read)
print(f"{len(counts):,} words known; unknown in the validation text: {naive_share:.2%}")
print(unknown[:9])

# %% [markdown]
# One word in forty is unknown, and most of these are known but for their punctuation: a word with its comma is another
# word than the same word without it. A model has no way to learn what `<unk>` means.
#
# ## The idea
#
# **Count pieces in the training text, give the frequent ones an id, and spell everything else with smaller pieces that have
# one.**
#
# ## Words (词)
#
# The first cure: punctuation is cut off. A tokenizer (分词器) of words does that. `￭` marks a piece that was joined to its
# neighbour, so that the text can be put together again. The vocabulary is counted from the **training** text alone. If
# the validation or the test text is counted too, there are no unknown words there, and every result is a little too good.
#
# > code: text/tokenizers/words.py: WordsTokenizer

# %% [markdown] lang="zh"
# 每四十个词就有一个是未知词。其中大多数其实是认识的词，只是粘着标点：带逗号的词与不带逗号的同一个词成了两个词。模型无从知道 `<unk>` 是什么意思。
#
# ## 思想
#
# **在训练文本中给片段计数，常见的片段得到一个编号，其余的都用更小的、有编号的片段来拼写。**
#
# ## 词
#
# 第一种办法：把标点切下来。按词切分的分词器就这样做。`￭` 标出原来与邻居相连的片段，这样文本可以再拼回去。
# 词表**只**从训练文本中计数。如果把验证集或测试集的文本也算进去，那里就不会有未知词，每个结果都会略微偏高。
#
# > code: text/tokenizers/words.py: WordsTokenizer

# %%
from dragoman.special_tokens import UNK_ID
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

sources = [pair.src for pair in pairs]
words = train_tokenizers(WordsConfig(), lambda: iter(sources), lambda: iter(())).src
print(words.pieces(words.encode(held_out[0].src)))
ids = [token for pair in held_out for token in words.encode(pair.src)]
share = sum(token == UNK_ID for token in ids) / len(ids)
print(f"{words.vocab_size:,} entries; unknown in the validation text: {share:.2%}")

# %% [check]
assert [vocabulary.index(word) for word in text.split()] == [4, 5, 6, 7]
assert 1 / 50 < naive_share < 1 / 33  # one in forty
assert (
    sum(word.rstrip(",.?!") in {known.rstrip(",.?!") for known in counts} for word in unknown)
    > len(unknown) / 2
)
assert 0 < share < naive_share / 5
assert words.vocab_size < len(counts)
assert words.decode(words.encode(held_out[0].src)) == held_out[0].src
assert words.pieces(range(4)) == vocabulary[:4]

# %% [markdown]
# ## Subwords (子词), in plain Python
#
# The second cure leaves no *word* unknown: at worst a word is spelled in characters (字符). Only a character that the
# training text does not have is unknown. *Byte-pair encoding* (BPE, Sennrich et al. 2016) begins with characters. It joins
# the two neighbours that stand together most often, and does that again and again. Frequent words end as one piece. Rare
# words stay in several. `▁` marks the beginning of a word. There is no tensor in it, so this is Python alone.

# %% [markdown] lang="zh"
# ## 子词，用普通的 Python 写
#
# 第二种办法不留下未知的*词*：最坏也能用字符拼出来。只有训练文本中没有的字符才是未知的。
# *字节对编码*（byte-pair encoding，简称 BPE，Sennrich 等，2016）从字符开始。
# 它把最常相邻的两个片段连接起来，这样反复进行。常见的词最后成为一个片段，少见的词仍是几个片段。
# `▁` 标出词的开头。这里没有张量，所以只用 Python。

# %%
import re
from itertools import pairwise


def joined(pieces, pair):
    result = []
    for piece in pieces:
        if result and (result[-1], piece) == pair:
            result[-1] += piece
        else:
            result.append(piece)
    return result


def learn_merges(counts, number):
    words = {word: ["▁", *word] for word in counts}
    merges = []
    for _ in range(number):
        neighbours = Counter()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                neighbours[pair] += counts[word]
        merges.append(max(neighbours, key=neighbours.get))
        words = {word: joined(pieces, merges[-1]) for word, pieces in words.items()}
    return merges


merges = learn_merges(Counter(re.findall(r"\w+", " ".join(sources))), 100)
for word in ["ich", "möchte", "ein", "bier"]:
    pieces = ["▁", *word]
    for pair in merges:  # in the order in which they were learnt
        pieces = joined(pieces, pair)
    print(word, "->", pieces)

# %% [markdown]
# SentencePiece, which Dragoman uses for BPE, learns the same pieces from the same text. Where two pairs are equally
# frequent it may take the other one first, so the order differs here and there.
#
# > code: text/tokenizers/sentencepiece.py: SentencePieceTokenizer

# %% [markdown] lang="zh"
# Dragoman 用 SentencePiece 做 BPE，它从同样的文本中学到同样的片段。两个片段对同样常见时，它可能先取另一个，所以次序偶尔不同。
#
# > code: text/tokenizers/sentencepiece.py: SentencePieceTokenizer

# %%
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig

config = SentencePieceConfig(vocab_size=300)
dragomans = train_tokenizers(config, lambda: iter(sources), lambda: iter(())).src
theirs = dragomans.pieces(range(4, 104))  # the first hundred after the specials
ours = ["".join(pair) for pair in merges]
print("ours:  ", *ours[:12])
print("theirs:", *theirs[:12])
print("equal as sets:", set(ours) == set(theirs))

# %% [check]
assert set(ours) == set(theirs)
assert ours[:12] == theirs[:12]
assert ours != theirs

# %% [markdown]
# ## Characters (字符)
#
# The other extreme: each character is a piece. There are few entries, and hardly anything is unknown. For Chinese, where
# words are not separated by blanks, a character is a natural unit: 我爱你 is three tokens. Between characters `▁` stands for
# the blank.

# %% [markdown] lang="zh"
# ## 字符
#
# 另一个极端：每个字符是一个片段。词表很小，几乎没有未知的东西。中文的词之间没有空格，一个汉字就是自然的单位：“我爱你”是三个词元。
# 在字符之间，`▁` 代表空格。

# %%
from dragoman.text.tokenizers.characters import CharactersConfig

lines = [*sources, "我爱你", "为什么要工作"]
characters = train_tokenizers(CharactersConfig(), lambda: iter(lines), lambda: iter(())).src
config = SentencePieceConfig(vocab_size=800)
bpe = train_tokenizers(config, lambda: iter(sources), lambda: iter(())).src
print(characters.vocab_size, "characters;", characters.pieces(characters.encode("我爱你")))
for name, tokenizer in {"words": words, "BPE": bpe, "characters": characters}.items():
    print(f"{name:<11}", *tokenizer.pieces(tokenizer.encode(text)))
print("never seen: ", *bpe.pieces(bpe.encode("ich 我 @ é")))

# %% [markdown]
# ## Lengths
#
# The smaller the pieces, the longer the sequences. Each piece of the translation is a step of the search (chapter 12). The
# cost of attention (chapter 4) grows with the square of the length: $n^2$.

# %% [markdown] lang="zh"
# ## 长度
#
# 片段越小，序列越长。译文的每个片段都是搜索（第 12 章）的一步。注意力（第 4 章）的代价随长度的平方增长：$n^2$。

# %%
from dragoman.analysis.figure import new_figure
from dragoman.learn.chapter import show

figure = new_figure(7.5, 3.2, "Tokens of a source sentence")
axes = figure.subplots()
tokenizers = {"words": words, "BPE, 800 entries": bpe, "characters": characters}
means = {}
for name, tokenizer in tokenizers.items():
    lengths = [len(tokenizer.encode(source)) for source in sources[:500]]
    means[name] = sum(lengths) / len(lengths)
    axes.hist(
        lengths, bins=range(0, 80, 2), histtype="step", label=f"{name}, mean {means[name]:.1f}"
    )
    print(f"{name:<17} {means[name]:5.1f} tokens a sentence")
axes.set_xlabel("tokens")
axes.set_ylabel("sentences")
axes.legend()
show(
    figure,
    "lengths",
    "Histogram of source lengths in three tokenizers: words are the shortest, BPE a little longer, characters by far the "
    "longest.",
)

# %% [markdown]
# Look at: the gap between BPE and characters. It is much wider than the gap between words and BPE.
#
# ## Equally long: padding (填充)
#
# A tensor is a rectangle. Sentences of different lengths are filled up at the end with `<pad>`, id 0, and a *mask* (掩码)
# says which places are real. How models keep padding out of their results is the matter of chapter 5.

# %% [markdown] lang="zh"
# 看图：BPE 与字符之间的间隔，比词与 BPE 之间的间隔宽得多。
#
# ## 一样长：填充
#
# 张量是矩形。长度不同的句子在末尾用 `<pad>`（编号 0）填满，这叫填充（padding）。*掩码*（mask）说明哪些位置是真实的。
# 模型怎样不让填充影响结果，是第 5 章的内容。

# %%
from dragoman.data.batch import collate_src

src, mask = collate_src([[4, 5, 6, 7], [6, 7]])  # ich möchte ein bier; ein bier
print(src)
print(mask.int())

# %% [check]
assert src.tolist() == [[4, 5, 6, 7, 3], [6, 7, 3, 0, 0]]
assert mask.tolist() == [[True] * 5, [True, True, True, False, False]]
assert means["words"] < means["BPE, 800 entries"] < means["characters"]
gaps = means["characters"] - means["BPE, 800 entries"], means["BPE, 800 entries"] - means["words"]
assert gaps[0] > 3 * gaps[1]
assert characters.pieces(characters.encode("我爱你")) == ["我", "爱", "你"]
assert all(
    tokenizer.decode(tokenizer.encode(text)) == text for tokenizer in (words, bpe, characters)
)
assert not any(UNK_ID in bpe.encode(pair.src) for pair in held_out)
assert not set("我@é") & set("".join(sources))
assert bpe.pieces(bpe.encode("ich 我 @ é")) == ["▁ich", *["▁", "<unk>"] * 3]
assert characters.pieces(characters.encode(text)).count("▁") == text.count(" ")
assert characters.vocab_size < 800 < words.vocab_size
assert bpe.pieces(bpe.encode(text)) == ["▁ich", "▁möchte", "▁ein", "▁b", "ier"]

# %% [markdown]
# ## What the output says
#
# - Cutting off punctuation makes unknown words more than five times as rare, with fewer entries.
# - Our hundred merges and SentencePiece's first hundred pieces are the same.
# - With BPE of 800 entries no piece of the validation text is unknown. `bier` is two pieces, `ich` is one.
# - The training text has no 我, no @ and no é. Each of these characters becomes `<unk>`.
# - Characters have the smallest vocabulary of the three and the longest sequences.
# - Each of the three puts the sentence together again as it was.
#
# On Multi30k (29,000 pairs) all of Dragoman's records are trained with a joint BPE of 8,000 entries: source and target
# share one vocabulary. Words by spaCy's rules are there too (`tokenizer: {type: words, rules: spacy}`). `benchmarks/log/2026-11.md` has the experiments with
# other sizes.
#
# ## Three lines to keep
#
# - A vocabulary is counted from the training text alone.
# - BPE joins the most frequent neighbours; common words become one piece, and only an unseen character is
#   unknown.
# - Smaller pieces mean fewer entries and longer sequences.
#
# ## If you come from elsewhere
#
# Others number the specials in another way: `<unk>` 0 and `<pad>` 1, or `<s>` 0, `</s>` 1 and `<blank>` 2. The order does
# not matter. It matters that encoding and decoding use the same ids. One edition of the Annotated Transformer counts its
# vocabulary from training, validation and test text together. `docs/other-notes.md` says who does what.
#
# ## Exercises
#
# `dragoman learn 2` writes a file for your answers, `dragoman learn check 2` grades them, and
# `dragoman learn check 2 --hint NAME` helps you, a step at a time.
#
# - predict: `predict_ids`, the ids of a sentence with an unknown word.
# - fill: `merge_pair`, one merge of byte-pair encoding.
# - write: `build_vocabulary`, the entries of a vocabulary in order.
# - write: `pad`, rows of ids made equally long.
# - experiment: `text_for_merges`, a text from which BPE learns `bier` in three merges.
#
# Bugs to hunt: `dragoman learn bug 2`.
#
# ## Read on
#
# - Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words with Subword Units", section 3.2.
# - `docs/importing.md`: tokenizers of your own.

# %% [markdown] lang="zh"
# ## 输出说明了什么
#
# - 切下标点后，未知词减少到五分之一以下，词表反而更小。
# - 我们的一百次合并，与 SentencePiece 的前一百个片段相同。
# - 用 800 项的 BPE，验证集文本中没有未知的片段。`bier` 是两个片段，`ich` 是一个。
# - 训练文本中没有“我”、@ 和 é。这三个字符都变成 `<unk>`。
# - 三者之中，字符的词表最小，序列最长。
# - 三者都能把句子原样拼回去。
#
# 在 Multi30k（29,000 个句对）上，Dragoman 的所有记录都用 8,000 项的联合 BPE（源语言和目标语言共用一张词表）训练。也可以按 spaCy 的规则切词
# （`tokenizer: {type: words, rules: spacy}`）。其他大小的实验见 `benchmarks/log/2026-11.md`。
#
# ## 记住三句话
#
# - 词表只从训练文本中计数。
# - BPE 连接最常相邻的片段；常见的词成为一个片段，只有没见过的字符才是未知的。
# - 片段越小，词表越小，序列越长。
#
# ## 如果你从别处来
#
# 别处给特殊词元另外编号：`<unk>` 是 0、`<pad>` 是 1，或者 `<s>` 是 0、`</s>` 是 1、`<blank>` 是 2。
# 次序不重要，重要的是编码和解码两端用同一套编号。Annotated Transformer 的一个版本把训练、验证、测试文本合在一起给词表计数。
# 谁怎样做，见 `docs/other-notes.md`。
#
# ## 练习
#
# `dragoman learn 2` 写出供你作答的文件，`dragoman learn check 2` 批改，`dragoman learn check 2 --hint NAME` 一步一步地提示。
#
# - 预测：`predict_ids`，含有未知词的句子的编号。
# - 填空：`merge_pair`，字节对编码（BPE）的一次合并。
# - 编写：`build_vocabulary`，按顺序列出词表的条目。
# - 编写：`pad`，把几行编号填充到一样长。
# - 实验：`text_for_merges`，让 BPE 用三次合并学到 `bier` 的文本。
#
# 待捉的错误：`dragoman learn bug 2`。
#
# ## 延伸阅读
#
# - Sennrich、Haddow 和 Birch，2016，《Neural Machine Translation of Rare Words with Subword Units》，第 3.2 节。
# - `docs/importing.md`：你自己的分词器。
