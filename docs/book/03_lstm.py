# %% [markdown]
# # 3. LSTM, encoder and decoder (编码器与解码器)
#
# Before attention there was one vector: an encoder reads the source word by word into a state, and a decoder writes
# the target out of that state (Sutskever, Vinyals and Le 2014). This chapter follows what the state holds.
#
# ## One step
#
# An LSTM (长短期记忆) has a hidden state $h$ and a cell $c$. Four gates (门) are computed of the input and of $h$:
#
# $$i, f, o = \sigma(\dots), \quad g = \tanh(\dots), \qquad c' = f \odot c + i \odot g, \qquad h' = o \odot \tanh(c')$$
#
# > code: nn/recurrent.py: LSTMLayer.next_state
#
# The same weights run in PyTorch's fast layer; the equations give the same numbers.

# %%
import torch

from dragoman.learn.chapter import show
from dragoman.nn.recurrent import LSTMLayer

torch.manual_seed(1)
layer = LSTMLayer(5, 7)
x = torch.randn(2, 6, 5)  # (batch, len, features)
step_by_step, (h, c) = layer.read(x, torch.ones(2, 6, dtype=torch.bool))
fast, _ = layer(x, (torch.zeros(2, 7), torch.zeros(2, 7)))
print("states", tuple(step_by_step.shape), "largest difference", float((step_by_step - fast).abs().max().detach()))

# %% [check]
assert torch.allclose(step_by_step, fast, atol=1e-5)

# %% [markdown]
# ## Padding must not be read
#
# The state after the last *word* goes to the decoder, not the state after the last column. Where a position is padding
# the state stays as it was.
#
# > code: nn/recurrent.py: RecurrentLayer.read

# %%
real = torch.tensor([[True] * 6, [True, True, True, False, False, False]])
_, (h, _) = layer.read(x, real)
_, (alone, _) = layer.read(x[1:, :3], torch.ones(1, 3, dtype=torch.bool))
print("second sentence, padded and alone:", torch.allclose(h[1], alone[0], atol=1e-6))

# %% [check]
assert torch.allclose(h[1], alone[0], atol=1e-6)

# %% [markdown]
# ## From encoder to decoder: `init_state`
#
# d2l calls it `init_state`: the decoder's first state is the encoder's last. In Dragoman it is `start`, and `Bridge`
# maps the layers where their numbers differ. Encoders read from both sides (双向), half of the features each.
#
# > code: models/recurrent.py: Bridge
#
# ## How far does a gradient reach?
#
# The gradient of the last state by the input of $k$ steps before is a product of $k$ Jacobians. In a plain RNN it vanishes (梯度消失);
# the cell's path $c' = f \odot c + \dots$ keeps it, as long as the forget gate is near 1. That is why its bias
# begins at 1 here (Jozefowicz et al. 2015).

# %%
from torch import nn


def reach(read, length=40, features=32):
    torch.manual_seed(2)
    x = torch.randn(1, length, features, requires_grad=True)
    read(x).norm().backward()
    return x.grad[0].norm(dim=-1).flip(0)  # by distance from the end


torch.manual_seed(1)
rnn, lstm = nn.RNN(32, 32, batch_first=True), LSTMLayer(32, 32)
forgetful = LSTMLayer(32, 32)
forgetful.fast.bias_ih_l0.data[32:64] = 0.0
everything = torch.ones(1, 40, dtype=torch.bool)
curves = {
    "RNN": reach(lambda x: rnn(x)[0][:, -1]),
    "LSTM, forget bias 0": reach(lambda x: forgetful.read(x, everything)[1][0]),
    "LSTM, forget bias 1": reach(lambda x: lstm.read(x, everything)[1][0]),
}

# %%
from dragoman.analysis.figure import new_figure

figure = new_figure(7, 3.4, "Gradient of the last state by an input, by distance")
axes = figure.subplots()
for label, curve in curves.items():
    axes.plot(curve.tolist(), label=label)
axes.set_yscale("log")
axes.set_xlabel("steps before the end")
axes.set_ylabel("norm of the gradient")
axes.legend()
show(
    figure,
    "gradient-by-distance",
    "Norm of the gradient by distance, on a logarithmic axis: the plain RNN falls to nothing first, the LSTM with a forget "
    "bias of 0 next, and the LSTM with a bias of 1 reaches farthest.",
)

# %% [check]
far = {label: float(curve[20]) for label, curve in curves.items()}
assert far["LSTM, forget bias 1"] > far["LSTM, forget bias 0"] > far["RNN"]
assert lstm.fast.bias_ih_l0.data[32:64].mean() + lstm.fast.bias_hh_l0.data[32:64].mean() > 0.9

# %% [markdown]
# ## The bottleneck
#
# One vector has to hold the whole sentence. On the toy task of copying up to six symbols, a model without attention
# stays behind one with it, at the same size and the same 250 steps. (A trick of 2014: read the source from its end, so
# that its first words are near the target's first words.)

# %%
from dragoman.learn.laboratory import train

right = {}
for attention in ("none", "additive"):
    trained = train(seed=1, type="recurrent", attention=attention, task="copy")
    right[attention] = trained.exact("copy")
    print(f"attention {attention:<9} loss {trained.last_loss:.3f}  right {right[attention]:.0%}")

# %% [check]
assert right["none"] < right["additive"]

# %% [markdown]
# ## If you come from other notes
#
# - In d2l (动手学深度学习) tensors are (time, batch, features) inside the recurrent layer: an LSTM up to 0.14, a GRU from
#   0.15 on. Dragoman's are (batch, time, features) everywhere. A transposition too few swaps batch and time, shapes
#   fit, and sentences are mixed.
# - From 0.15 on d2l gives the encoder's last state to the decoder at every step (`context`). Up to 0.14 it begins the
#   decoder alone, as here.
#
# ## Exercises and bugs
#
# `dragoman learn check 3`: `lstm_step`, `init_state`, `last_states`. Bugs 11 (padding is read), 12 (the state is lost), 13 (the cell forgets).
