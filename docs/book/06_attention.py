# %% [markdown]
# # 6. Attention (注意力)
#
# Instead of one vector for a whole sentence, the decoder looks at all positions of the source before each word: a mean
# of their vectors, weighted by how well each fits its state (Bahdanau et al. 2015).
#
# $$\text{context} = \sum_j \alpha_j h_j, \qquad \alpha = \text{softmax}(\text{score}(s, h_1), \text{score}(s, h_2), \dots)$$
#
# $s$, the decoder's state, is the *query* (查询); the $h_j$ are *keys* (键) in the score and *values* (值) in the sum.
#
# ## Four scores
#
# | name | score | source |
# |---|---|---|
# | additive (加性) | $v \cdot \tanh(W s + U h)$ | Bahdanau et al. 2015 |
# | dot | $s \cdot h$ | Luong et al. 2015 |
# | general | $s \cdot W h$ | Luong et al. 2015 |
# | scaled dot (缩放点积) | $s \cdot h / \sqrt{d}$ | Vaswani et al. 2017 |
#
# > code: nn/recurrent_attention.py: AdditiveAttention.scores
#
# > code: nn/recurrent_attention.py: RecurrentAttention.attend

# %%
import torch

from dragoman.learn.chapter import show
from dragoman.nn.recurrent_attention import SCORES

torch.manual_seed(1)
query, memory = torch.randn(1, 2, 16), torch.randn(1, 5, 16)  # two queries, five positions
real = torch.tensor([[True, True, True, True, False]])
for name, score in SCORES.items():
    attention = score(16)
    context, weights = attention.attend(query, attention.project_keys(memory), memory, real)
    print(f"{name:<11}", [[round(w, 2) for w in row] for row in weights[0].tolist()], tuple(context.shape))

# %% [markdown]
# Each row sums to 1, and the padded position has weight 0.
#
# ## Without tanh the query does nothing
#
# $v \cdot (W s + U h) = v \cdot W s + v \cdot U h$: the first part is the same for all positions, and a softmax does not
# see what is added to all of its inputs. It is the tanh that lets the query choose. That is bug 15 of the laboratory.

# %%
scores = torch.tensor([0.3, 1.2, -0.5])
print(scores.softmax(-1), (scores + 7.0).softmax(-1))

# %% [markdown]
# ## What it learns
#
# A recurrent model with additive attention learns to reverse symbols. Its attention map (注意力图) is the other diagonal:
# to say the first symbol it looks at the last.

# %%
from dragoman.learn.laboratory import pairs, train

trained = train(seed=1, type="recurrent", attention="additive")
print(f"loss {trained.last_loss:.3f}, right {trained.exact('reverse'):.0%}")

# %%
from dragoman.analysis.figure import draw_matrix, new_figure, token_axes
from dragoman.data.batch import collate

src, tgt = next(pair for pair in pairs("reverse", "test", 50) if len(pair[0]) == 6)
batch = collate([(src, tgt)])
with torch.no_grad():
    maps = trained.model.eval().attention_maps(batch.src, batch.src_mask, batch.tgt_in)
weights = next(iter(maps.values()))[0, 0]
figure = new_figure(4.4, 3.6, "Additive attention of a model that reverses")
axes = figure.subplots()
draw_matrix(axes, weights.numpy(), low=0, high=1, aspect="equal")
token_axes(axes, [*[str(i - 3) for i in tgt], "</s>"], [*[str(i - 3) for i in src], "</s>"])
axes.set_xlabel("looks at source symbol")
axes.set_ylabel("symbol to be said next")
show(figure, "reverse-attention")

# %% [markdown]
# ## Two masks that are not the same: 0 and minus infinity
#
# Chapter 3 showed that a score of 0 leaks. `masked_softmax` of d2l sets -1e6, the annotated notebook -1e9, Dragoman
# $-\infty$: in float32 all three give exactly 0 after the softmax. In half precision -1e9 is minus infinity anyway.
#
# ## Does attention help long sentences?
#
# That was the promise of 2015. On Multi30k (measured, `benchmarks/families.md`) the recurrent model with attention
# keeps its BLEU on long sentences; the table by length of any run comes from `dragoman inspect lengths RUN`.
# Here in small: exact matches by length, with and without attention, after the same training on copying.

# %%
plain = train(seed=1, type="recurrent", attention="none", task="copy")
with_attention = train(seed=1, type="recurrent", attention="additive", task="copy")

# %%
from dragoman.learn.laboratory import translate

data = pairs("copy", "test", 400)
figure = new_figure(6, 3.2, "Exact matches by length, copying")
axes = figure.subplots()
for label, model in (("no attention", plain.model), ("additive attention", with_attention.model)):
    found = translate(model, [src for src, _ in data])
    by_length = {n: [a == b[1] for a, b in zip(found, data, strict=True) if len(b[0]) == n] for n in range(2, 7)}
    axes.plot(list(by_length), [sum(v) / max(1, len(v)) for v in by_length.values()], marker="o", label=label)
axes.set_xlabel("symbols")
axes.set_ylabel("share that is right")
axes.set_ylim(0, 1.05)
axes.legend()
show(figure, "by-length")

# %% [markdown]
# ## Where the notes differ
#
# - d2l's additive attention projects query and key to `num_hiddens`; Bahdanau's paper too. Both have the tanh.
# - d2l decodes with `attention` of the *previous* state, as we do; Luong's uses the new one.
#
# ## Exercises and bugs
#
# `dragoman learn check 6`: `additive_scores`, `attention`. Bugs 15 (no tanh), 16 (softmax over queries), 17 (masked with 0).
