# %% [markdown]
# # 12. Decoding (解码)
#
# A model gives the probability of each next token. Decoding makes a sentence of that. We train a small translator
# from Chinese to English on the corpus that Dragoman carries with it, some forty seconds, and watch it translate.

# %%
import contextlib
import io
from pathlib import Path
from tempfile import mkdtemp

from dragoman.config import parse
from dragoman.learn.chapter import show
from dragoman.tasks import recipes
from dragoman.tasks.translation.job import TranslationRecipe

run = Path(mkdtemp()) / "zh-en"
recipe = parse(
    TranslationRecipe,
    {
        "run_dir": str(run),
        "device": "cpu",
        "corpus": {
            "src_lang": "zh",
            "tgt_lang": "en",
            "train": {"type": "demo", "pair": "zh-en", "split": "train"},
            "valid": {"type": "demo", "pair": "zh-en", "split": "valid", "size": 60},
        },
        "tokenizer": {
            "type": "separate",
            "src": {"type": "characters"},
            "tgt": {"type": "sentencepiece", "vocab_size": 1000},
        },
        "model": {
            "type": "transformer",
            "d_model": 64,
            "num_heads": 4,
            "d_ff": 128,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "dropout": 0.0,
            "tie_embeddings": "output",
        },
        "training": {
            "max_steps": 500,
            "batch_tokens": 768,
            "validate_every": 500,
            "schedule": {"type": "linear", "lr": 5e-3, "warmup_steps": 80},
            "label_smoothing": 0.05,
            "samples": 0,
            "precision": "float32",
        },
    },
)
with contextlib.redirect_stderr(io.StringIO()):
    result = recipes.run(recipe)
print(result.best)

# %% [markdown]
# ## Greedy search (贪心搜索)
#
# The most probable token, again and again, until `</s>`. One token at a time, with the next most probable ones:
#
# > code: decoding/greedy.py: greedy_search

# %%
import torch

import dragoman
from dragoman.data.batch import collate_src

translator = dragoman.load(run, beam_size=1, device="cpu")
sentence = "我想要一杯啤酒"
src, src_mask = collate_src([translator.tokenizers.src.encode(sentence)])
model, pieces = translator.model, translator.tokenizers.tgt.pieces
with torch.no_grad():
    state = model.start(model.encode(src, src_mask))
    token = torch.tensor([2])  # <s>
    for step in range(1, 12):
        logits, state = model.decode_step(token, state)
        probabilities, ids = logits.softmax(-1).topk(4)
        cache = state.past[0].key.shape
        print(
            step,
            "cache",
            tuple(cache),
            "  ".join(
                f"{piece} {p:.1%}"
                for piece, p in zip(pieces(ids[0].tolist()), probabilities[0].tolist(), strict=True)
            ),
        )
        token = ids[:, 0]
        if token.item() == 3:  # </s>
            break

# %% [markdown]
# The cache (缓存) holds the keys and values of the tokens so far, (rows, heads, positions, d_head): it grows by one position at a time, and no
# token is computed twice. Without it every step would compute the whole prefix anew.
#
# > code: nn/attention.py: KVCache
#
# > code: models/transformer.py: Transformer.decode_steps
#
# ## Beam search (束搜索)
#
# Keep the `beam_size` most probable prefixes. Those that end are put aside with their score; the search stops when
# nothing that is still alive can beat them.
#
# > code: decoding/beam.py: beam_search

# %%
from dragoman.analysis.search_tree import search_figure, search_table
from dragoman.inference.watched_search import watch_search

watched = watch_search(dragoman.load(run, beam_size=2, device="cpu").search, sentence, top=3)
print(search_table(watched))

# %%
show(search_figure(watched), "beam-tree")

# %% [markdown]
# ## The length penalty (长度惩罚)
#
# Each further token makes a log probability smaller, so a search without a penalty likes short translations. Scores are
# divided by the length (`average`), or by GNMT's $((5 + n)/6)^\alpha$.
#
# > code: decoding/penalties.py: GnmtPenalty.divisor

# %%
from dragoman.decoding.penalties import AveragePenalty, GnmtPenalty, NoPenalty

for log_prob, length in ((-2.0, 4), (-2.3, 8)):
    scores = {
        type(p).__name__: log_prob / p.divisor(length)
        for p in (NoPenalty(), AveragePenalty(), GnmtPenalty())
    }
    print(
        f"ln p {log_prob}, {length} tokens:",
        {name: round(score, 3) for name, score in scores.items()},
    )

# %% [markdown]
# The longer hypothesis is less probable, and better by either penalty.
#
# ## Why the best first step may be the wrong one
#
# Greedy search never takes a step back. Here is a model of two steps that one can compute by hand. The first word is "the"
# with 60 %, or "a" with 40 %. After "the" three words are about equally probable. After "a" one word is nearly sure.

# %%
first = {"the": 0.6, "a": 0.4}
second = {"the": {"dog": 0.34, "cat": 0.33, "cow": 0.33}, "a": {"bird": 0.9, "dog": 0.1}}


def beam(width):
    """The best sentence of a search that keeps the `width` most probable prefixes; width 1 is greedy search."""
    prefixes = sorted(((p, [word]) for word, p in first.items()), reverse=True)[:width]
    return max(
        (p * q, [*words, word]) for p, words in prefixes for word, q in second[words[-1]].items()
    )


print("width 1:", beam(1))
print("width 2:", beam(2))

# %% [check]
assert beam(1)[1] == ["the", "dog"]
assert beam(2)[1] == ["a", "bird"]
assert round(beam(1)[0], 2) == 0.2
assert round(beam(2)[0], 2) == 0.36

# %% [markdown]
# Greedy search ends at 20 %, and a beam of two ends at 36 %. The first word of the better sentence was not the most probable
# first word.
#
# ## A wider beam on a real model
#
# The same with our translator, on its validation sentences. The score is the log probability of a translation, divided by
# its length.

# %%
from dragoman.corpora import embedded

validation = list(embedded.sentences("zh-en", "valid", 60))
scores = {}
for beam_size in (1, 2, 5):
    search = dragoman.load(run, beam_size=beam_size, device="cpu")
    best = [items[0] for items in search.n_best([src for src, _ in validation])]
    scores[beam_size] = sum(item.score for item in best) / len(best)
    right = sum(item.text == tgt for item, (_, tgt) in zip(best, validation, strict=True))
    print(
        f"beam {beam_size}: mean score {scores[beam_size]:.4f}, {right} of {len(best)} are the reference"
    )

# %% [check]
assert scores[1] <= scores[2] + 0.005
assert scores[2] <= scores[5] + 0.005

# %% [markdown]
# The mean score does not fall as the beam grows (for one sentence it may: a beam is no exact search). Whether more
# translations are right is another question. A wider beam finds what the model thinks most probable, and that is not
# always the better translation: Koehn and Knowles (2017, "Six Challenges for Neural Machine Translation") saw BLEU fall
# with very wide beams.
#
# Here are the first sentences with their references. Read them: a mean says little of a single sentence.

# %%
for (src, tgt), item in list(zip(validation, best, strict=True))[:6]:
    print(f"{src}\n   reference  {tgt}\n   beam 5     {item.text}   ({item.score:.2f})")

# %% [markdown]
# ## All of it on one page
#
# `dragoman explain RUN "为什么要工作" -o page.html` writes one page with all of this for a sentence of yours: pieces, ids,
# masks, positions, every head of every layer, the next tokens at each step, the tree.
#
# ## Where other notes differ
#
# - The annotated notebook's `greedy_decode` computes the whole prefix at each step and always writes `max_len` tokens; it
#   is `model.train()` until one says `eval()`: with dropout on, each run says something else (bug 30).
# - d2l's `predict_seq2seq` keeps a state, as here.
#
# ## Exercises and bugs
#
# `dragoman learn check 12`: `greedy`, `beam_search`. Bugs 30 (dropout), 31 (stale cache), 32 (position 0), 33 (no end).
