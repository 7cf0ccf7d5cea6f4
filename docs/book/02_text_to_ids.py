# %% [markdown]
# # 2. Text to ids (从文本到编号)
#
# A model computes with numbers, so text becomes a sequence of ids first. The question is what gets an id of its own:
# words, characters, or something between. This chapter looks at all three on the corpus that Dragoman carries with it.

# %%
from dragoman.learn.chapter import show
from dragoman.text.sources.demo import DemoSource

pairs = list(DemoSource(pair="de-en", split="train", size=3000).pairs())
held_out = list(DemoSource(pair="de-en", split="valid", size=200).pairs())
for pair in pairs[:3]:
    print(pair.src, "|", pair.tgt)

# %% [markdown]
# ## Words (词)
#
# A vocabulary (词表) of words is counted from the **training** text alone. Words that stand in it too rarely, and all
# words of other text that are not in it, become `<unk>`. If the validation or the test text is counted too, there are
# no unknown words there, and every score is a little too good.
#
# > code: text/tokenizers/words.py: WordsTokenizer

# %%
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

sources, targets = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
words = train_tokenizers(WordsConfig(vocab_size=2000), lambda: iter(sources + targets), lambda: iter(()))
print(words.src.vocab_size, "entries; the first:", words.src.pieces(range(12)))
text = "ich möchte ein bier"
print(text, "->", words.src.encode(text), "->", words.src.pieces(words.src.encode(text)))

# %% [markdown]
# The first four are the specials, in every tokenizer of Dragoman: `<pad>`, `<unk>`, `<s>`, `</s>`.

# %%
from dragoman.text.tokenizers.base import UNK_ID

ids = [token for pair in held_out for token in words.src.encode(pair.src)]
print(f"unknown words in the validation text: {sum(token == UNK_ID for token in ids) / len(ids):.2%}")

# %% [markdown]
# ## Characters (字符)
#
# Few entries, hardly anything unknown, long sequences. For Chinese, where words are not separated, each Han character
# is a natural unit: 我爱你 is three tokens.

# %%
from dragoman.text.tokenizers.characters import CharactersConfig

characters = train_tokenizers(CharactersConfig(), lambda: iter([*targets, "我爱你", "为什么要工作"]), lambda: iter(()))
print(characters.src.vocab_size, "entries")
for text in ("i want a beer", "我爱你"):
    print(text, "->", characters.src.pieces(characters.src.encode(text)))

# %% [markdown]
# ## Subwords (子词): BPE
#
# Byte-pair encoding begins with characters and joins the pair of neighbours that is most frequent, again and again,
# until the vocabulary is as large as was asked for (Sennrich et al. 2016). Frequent words end as one piece, rare ones
# stay in several, and nothing is unknown. `▁` marks the beginning of a word, so that text can be put together again.
#
# > code: text/tokenizers/sentencepiece.py: SentencePieceTokenizer

# %%
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig

bpe = train_tokenizers(SentencePieceConfig(vocab_size=800), lambda: iter(sources + targets), lambda: iter(()))
for text in ("ich möchte ein bier", "die nachbarin wartet"):
    pieces = bpe.src.pieces(bpe.src.encode(text))
    print(text, "->", pieces, "->", bpe.src.decode(bpe.src.encode(text)))

# %% [markdown]
# ## Lengths
#
# The smaller the pieces, the longer the sequences. Attention costs $n^2$, and every piece is a step of a search.

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7.5, 3.2, "Tokens of a source sentence")
axes = figure.subplots()
for name, tokenizer in (("words", words), ("BPE, 800 entries", bpe), ("characters", characters)):
    lengths = [len(tokenizer.src.encode(text)) for text in sources[:500]]
    axes.hist(lengths, bins=range(0, 60, 2), histtype="step", label=f"{name}, mean {sum(lengths) / len(lengths):.1f}")
axes.set_xlabel("tokens")
axes.set_ylabel("sentences")
axes.legend()
show(
    figure,
    "lengths",
    "Histogram of source lengths in three tokenizers: words are the shortest, BPE a little longer, characters by far the "
    "longest.",
)

# %% [check]
means = {
    name: sum(len(tokenizer.src.encode(text)) for text in sources[:500]) / 500
    for name, tokenizer in (("words", words), ("BPE", bpe), ("characters", characters))
}
assert means["words"] < means["BPE"] < means["characters"]
assert words.src.pieces(range(4)) == ["<pad>", "<unk>", "<s>", "</s>"]
assert characters.src.pieces(characters.src.encode("我爱你")) == ["我", "爱", "你"]
assert all(bpe.src.decode(bpe.src.encode(text)) == text for text in ("ich möchte ein bier", "die nachbarin wartet"))
assert any(token == UNK_ID for token in ids)

# %% [markdown]
# ## What is measured
#
# On Multi30k (29,000 pairs) a joint BPE of 8,000 entries is what all of Dragoman's records are trained with; words with
# spaCy's rules are there too (`tokenizer: {type: words, rules: spacy}`), as in the Annotated Transformer of 2022.
# `benchmarks/log/2026-11.md` has the experiments with other sizes.
#
# ## If you come from other notes
#
# Others number the specials in another way: `<unk>` 0 and `<pad>` 1, or `<s>` 0, `</s>` 1 and `<blank>` 2. The order does
# not matter; that both sides of the code mean the same does. One edition counts its vocabulary from training,
# validation and test text together. Who does what is in `docs/other-notes.md`.
#
# ## Exercises
#
# `dragoman learn check 2`: `build_vocabulary` and `pad`.
