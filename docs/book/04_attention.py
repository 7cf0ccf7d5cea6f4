# %% [markdown]
# # 4. Attention (注意力)
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
every_weights = []
for name, score in SCORES.items():
    attention = score(16)
    context, weights = attention.attend(query, attention.project_keys(memory), memory, real)
    every_weights.append(weights.detach())
    print(f"{name:<11}", [[round(w, 2) for w in row] for row in weights[0].tolist()], tuple(context.shape))

# %% [markdown]
# Each row sums to 1, and the padded position has weight 0.
#
# ## Where the tanh stands
#
# A softmax does not see what is added to all of its inputs. Without the tanh the additive score is
# $v \cdot (W s + U h) = v \cdot W s + v \cdot U h$, and its first part is the same for all positions: whatever the query
# is, the weights are the same. A tanh of each part alone does not help: $v \cdot \tanh(W s)$ is again the same for all
# positions. Only the tanh of the **sum** lets the query choose. A score without it is bug 15 of the laboratory.

# %%
v, W, U = torch.randn(8), torch.randn(8, 16), torch.randn(8, 16)
queries, keys = (query[0] @ W.T)[:, None], (memory[0] @ U.T)[None]  # (2, 1, 8) and (1, 5, 8)
for name, hidden in {
    "tanh of the sum": (queries + keys).tanh(),
    "sum of two tanhs": queries.tanh() + keys.tanh(),
    "no tanh": queries + keys,
}.items():
    first, second = (hidden @ v).softmax(-1)
    print(f"{name:<17} the two queries' weights differ by up to {float((first - second).abs().max()):.4f}")

# %% [check]
scores = torch.tensor([0.3, 1.2, -0.5])
assert torch.allclose(scores.softmax(-1), (scores + 7.0).softmax(-1), atol=1e-6)
for weights in every_weights:
    assert torch.allclose(weights.sum(-1), torch.ones(1, 2), atol=1e-5)
    assert float(weights[..., -1].abs().max()) == 0.0
of_sum = ((queries + keys).tanh() @ v).softmax(-1)
of_parts = ((queries.tanh() + keys.tanh()) @ v).softmax(-1)
without = ((queries + keys) @ v).softmax(-1)
assert float((of_sum[0] - of_sum[1]).abs().max()) > 0.01
assert torch.allclose(of_parts[0], of_parts[1], atol=1e-5)
assert torch.allclose(without[0], without[1], atol=1e-5)

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
show(figure, "reverse-attention", "Weights of a model that reverses: large ones from the upper right to the lower left")

# %% [check]
looks_at = weights[: len(tgt)].argmax(dim=-1).tolist()  # of each symbol to be said, the place in the source
right_places = list(range(len(src)))[::-1]
assert trained.exact("reverse") > 0.8
assert sum(abs(a - b) <= 1 for a, b in zip(looks_at, right_places, strict=True)) >= len(src) - 2, looks_at

# %% [markdown]
# ## Two masks that are not the same: 0 and minus infinity
#
# Chapter 5 showed that a score of 0 leaks. `masked_softmax` of d2l sets -1e6, the Annotated Transformer -1e9, Dragoman
# $-\infty$: in float32 and in bfloat16 all three give exactly 0 after the softmax. In float16 the largest number is
# 65,504: there `masked_fill` with -1e6 or -1e9 stops with an error, and $-\infty$ works.

# %%
hidden_place = torch.tensor([False, False, True])
for kind in (torch.float32, torch.bfloat16, torch.float16):
    for value in (-1e6, -1e9, -torch.inf):
        try:
            weights = torch.tensor([0.3, 1.2, -0.5], dtype=kind).masked_fill(hidden_place, value).softmax(-1)
            print(f"{kind}, {value:9.0e}: the hidden place has the weight {float(weights[2])}")
        except RuntimeError as error:
            print(f"{kind}, {value:9.0e}: {str(error).splitlines()[0]}")

# %% [check]
import contextlib

for kind in (torch.float32, torch.bfloat16, torch.float16):
    for value in (-1e6, -1e9, -torch.inf):
        if kind == torch.float16 and value > -torch.inf:
            is_refused = True
            with contextlib.suppress(RuntimeError):
                torch.zeros(3, dtype=kind).masked_fill(hidden_place, value)
                is_refused = False
            assert is_refused
        else:
            assert float(torch.zeros(3, dtype=kind).masked_fill(hidden_place, value).softmax(-1)[2]) == 0.0
assert torch.finfo(torch.float16).max == 65504

# %% [markdown]
# ## Does attention help long sentences?
#
# That was the promise of 2015. On Multi30k (English to German, one run each; `benchmarks/families.md` has all rows):
#
# | words of the source | BLEU without attention | BLEU with the dot product |
# |---|---|---|
# | 1-8 | 39.35 | 45.82 |
# | 15-17 | 23.84 | 35.50 |
# | 21 or more | 13.81 | 23.68 |
#
# Attention helps at each length. It does **not** keep the BLEU of short sentences: from the first row to the last the
# model with attention loses 22 points, and the model without loses 26. Of its first row's BLEU the model with attention
# keeps a half, the other a third. `dragoman inspect lengths RUN` makes this table of any run.
#
# Here in small: exact matches by length, with and without attention, after the same training on copying. Copying needs
# every symbol; without attention one vector has to hold them all.

# %%
plain = train(seed=1, type="recurrent", attention="none", task="copy")
with_attention = train(seed=1, type="recurrent", attention="additive", task="copy")

# %%
from dragoman.learn.laboratory import translate

data = pairs("copy", "test", 400)
figure = new_figure(6, 3.2, "Exact matches by length, copying")
axes, shares = figure.subplots(), {}
for label, model in (("no attention", plain.model), ("additive attention", with_attention.model)):
    results = zip(translate(model, [src for src, _ in data]), data, strict=True)
    right = [(len(src), translation == tgt) for translation, (src, tgt) in results]
    matches = {n: [is_right for length, is_right in right if length == n] for n in range(2, 7)}
    shares[label] = [sum(each) / len(each) for each in matches.values()]
    axes.plot(list(matches), shares[label], marker="o", label=label)
    print(f"{label:<18}", " ".join(f"{n}: {share:.0%}" for n, share in zip(matches, shares[label], strict=True)))
axes.set_xlabel("symbols")
axes.set_ylabel("share that is right")
axes.set_ylim(0, 1.05)
axes.legend()
show(figure, "by-length", "Without attention the share of exact matches falls with the length; with attention it stays")

# %% [check]
assert min(shares["additive attention"]) > 0.9
assert shares["no attention"][0] > 0.9
assert shares["no attention"][-1] < 0.7
assert shares["no attention"][-1] < shares["no attention"][-2] < shares["no attention"][0]

# %% [markdown]
# What the output says: with these few symbols the model with attention copies nearly all of them at each length. The
# model without attention copies the shortest, and loses more with each symbol. In the table above the fall is there for
# both: real sentences get harder with their length for other reasons too.
#
# ## If you come from d2l
#
# - `AdditiveAttention` of d2l.ai (edition 1.0) has the tanh of the sum, as Bahdanau's paper has it. `MLPAttention` of its
#   earlier MXNet edition writes that formula, and its code takes a tanh of each projection alone. Translations of that
#   class to PyTorch are passed on in lecture notes, and they have no tanh at all. In both the query drops out, as above.
# - d2l's decoder with Bahdanau's attention asks with the *previous* state, as we do; Luong's asks with the new one.
#
# ## Exercises and bugs
#
# `dragoman learn check 4`: `additive_scores`, `attention`. Bugs 15 (no tanh), 16 (softmax over queries), 17 (masked with 0).
