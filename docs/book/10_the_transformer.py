# %% [markdown]
# # 10. The whole Transformer (完整的 Transformer)
#
# All parts are there. This chapter puts them together, follows one pair through with all shapes, counts parameters, and
# ends with the exercise: write the forward pass yourself, load Dragoman's weights, get the same logits.
#
# > code: models/blocks.py: EncoderLayer.forward
#
# > code: models/blocks.py: DecoderLayer.forward
#
# > code: models/transformer.py: Transformer.encode

# %%
import torch

from dragoman.analysis.architecture import architecture_figure
from dragoman.learn.chapter import show
from dragoman.learn.laboratory import build

model = build(1, d_model=32, num_heads=4, d_ff=64)
show(
    architecture_figure(model),
    "architecture",
    "Boxes of the encoder, left, and of the decoder, right, from embeddings through their layers to the output; an arrow "
    "from the encoder's end to each cross-attention.",
)

# %% [markdown]
# ## One pair, all shapes
#
# Everything from text to text, in the nine steps that head every training of Dragoman.

# %%
from dragoman.analysis.examples import words_of
from dragoman.analysis.trace import trace, trace_table
from dragoman.config import parse
from dragoman.models.families import TransformerConfig

pairs = [("ich möchte ein bier", "i want a beer"), ("wir lesen", "we read")]
tokenizers = words_of([side for pair in pairs for side in pair])
sizes = {
    "d_model": 32,
    "num_heads": 4,
    "d_ff": 64,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "dropout": 0.0,
}
config = parse(TransformerConfig, {**sizes, "tie_embeddings": "output"})
torch.manual_seed(1)
small = config.build(
    src_vocab_size=tokenizers.src.vocab_size,
    tgt_vocab_size=tokenizers.tgt.vocab_size,
    shared_vocab=False,
    pad_id=0,
)
print(trace_table(trace(small.eval(), tokenizers, pairs)))

# %% [markdown]
# ## Parameters
#
# The paper's base model: 6 + 6 layers, d_model 512, d_ff 2048. Without embeddings 44 million parameters; with a joint
# vocabulary of 37,000, whose matrix is used three times, 63 million. (The paper says 65 million.)

# %%
from dragoman.analysis.parameters import parameter_counts, parameter_table

base = parse(
    TransformerConfig,
    {
        "d_model": 512,
        "num_heads": 8,
        "d_ff": 2048,
        "num_encoder_layers": 6,
        "num_decoder_layers": 6,
    },
)
built = base.build(src_vocab_size=37000, tgt_vocab_size=37000, shared_vocab=True, pad_id=0)
print(parameter_table(parameter_counts(built, depth=2)))

# %% [check]
total, embedding = sum(p.numel() for p in built.parameters()), 37000 * 512
assert (total // 10**6, (total - embedding) // 10**6) == (63, 44)

# %% [markdown]
# An encoder layer: $4 d^2 + 4 d$ for attention, $2 d \cdot d_{ff} + d + d_{ff}$ for the network, $4 d$ for two norms.

# %%
d, d_ff = 512, 2048
print(
    f"{4 * d * d + 4 * d + 2 * d * d_ff + d + d_ff + 4 * d:,}",
    f"{sum(p.numel() for p in built.encoder_layers[0].parameters()):,}",
)

# %% [check]
expected = 4 * d * d + 4 * d + 2 * d * d_ff + d + d_ff + 4 * d
assert sum(p.numel() for p in built.encoder_layers[0].parameters()) == expected

# %% [markdown]
# ## The copy task (复制任务)
#
# Copying and reversing are learnt in seconds. Cross-attention then shows one diagonal or the other.

# %%
from dragoman.analysis.figure import draw_matrix, new_figure, token_axes
from dragoman.data.batch import collate
from dragoman.learn.laboratory import pairs as toy_pairs
from dragoman.learn.laboratory import train

figure = new_figure(8, 3.6, "Cross-attention, mean of the heads of the last layer")
panels = figure.subplots(1, 2)
diagonals = {}
for axes, task in zip(panels, ("copy", "reverse"), strict=True):
    trained = train(seed=1, task=task)
    src, tgt = next(pair for pair in toy_pairs(task, "test", 50) if len(pair[0]) == 6)
    batch = collate([(src, tgt)])
    with torch.no_grad():
        maps = trained.model.eval().attention_maps(batch.src, batch.src_mask, batch.tgt_in)
    weights = maps["decoder.1.cross"][0].mean(0)
    diagonals[task] = {
        "copy": weights[:6, :6].trace() / 6,
        "reverse": weights[:6, :6].flip(0).trace() / 6,
    }
    draw_matrix(axes, weights.numpy(), low=0, high=1, aspect="equal")
    # symbols have the ids 4, 5, ...: the specials come first
    token_axes(axes, [*[str(i - 3) for i in tgt], "</s>"], [*[str(i - 3) for i in src], "</s>"])
    axes.set_title(f"{task}: {trained.exact(task):.0%} right", fontsize=9)
show(
    figure,
    "copy-reverse",
    "Cross-attention of two trained models as matrices: dark along the falling diagonal where the model copies, along the "
    "rising one where it reverses.",
)

# %% [check]
assert diagonals["copy"]["copy"] > 2 * diagonals["copy"]["reverse"]
assert diagonals["reverse"]["reverse"] > 2 * diagonals["reverse"]["copy"]

# %% [markdown]
# ## Tests before training
#
# Before you train any Transformer for a day, run tests like these: what may depend on what, and what may not. Together
# they take a few seconds, and each catches some of the bugs of the laboratory.

# %%
from dragoman.learn.selftests import SELF_TESTS

for name, test in SELF_TESTS.items():
    test()
    print("ok ", name.replace("_", " "))

# %% [markdown]
# ## Layers that begin as copies
#
# PyTorch's `nn.TransformerEncoder` makes its layers with `deepcopy`: all begin with equal weights, and its documentation
# asks you to draw them anew. The Annotated Transformer clones too, and then draws every matrix anew (Xavier): there only
# the biases begin equal. Here each layer is drawn by itself.

# %%
from copy import deepcopy

from torch import nn

layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
print(
    "PyTorch's encoder, equal:    ",
    stack.layers[0].linear1.weight.equal(stack.layers[1].linear1.weight),
)
clones = nn.ModuleList([deepcopy(layer) for _ in range(2)])
for parameter in clones.parameters():
    if parameter.dim() > 1:
        nn.init.xavier_uniform_(parameter)
print("cloned, then drawn, equal:   ", clones[0].linear1.weight.equal(clones[1].linear1.weight))
print("biases of those, equal:      ", clones[0].linear1.bias.equal(clones[1].linear1.bias))
first, second = (one.feed_forward.expand for one in built.encoder_layers[:2])
print("Dragoman's, equal:           ", first.weight.equal(second.weight))

# %% [check]
assert stack.layers[0].linear1.weight.equal(stack.layers[1].linear1.weight)
assert not clones[0].linear1.weight.equal(clones[1].linear1.weight)
assert clones[0].linear1.bias.equal(clones[1].linear1.bias)
assert clones[0].linear1.bias.any()
assert not first.weight.equal(second.weight)

# %% [markdown]
# ## If you come from other notes
#
# - The Annotated Transformer's `Generator` ends in a log-softmax; here the model ends in logits and the loss does the rest.
# - Names: d2l's `EncoderBlock` and `AddNorm`, the Annotated Transformer's `SublayerConnection` and PyTorch's `TransformerEncoderLayer` are
#   `EncoderLayer` and `ResidualConnection` here; the table of all names is in `docs/glossary.md`.
#
# ## Exercises and bugs
#
# `dragoman learn check 10`: `transformer`, some forty lines. Bugs 8, 25, 26, 35 and 37.
