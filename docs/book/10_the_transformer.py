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
show(architecture_figure(model), "architecture")

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
sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
config = parse(TransformerConfig, {**sizes, "tie_embeddings": "output"})
torch.manual_seed(1)
small = config.build(
    src_vocab_size=tokenizers.src.vocab_size, tgt_vocab_size=tokenizers.tgt.vocab_size, shared_vocab=False, pad_id=0
)
print(trace_table(trace(small.eval(), tokenizers, pairs)))

# %% [markdown]
# ## Parameters
#
# The paper's base model: 6 + 6 layers, d_model 512, d_ff 2048. Without embeddings 44 million parameters; with a joint
# vocabulary of 37,000, whose matrix is used three times, 63 million.

# %%
from dragoman.analysis.parameters import parameter_counts, parameter_table

base = parse(
    TransformerConfig, {"d_model": 512, "num_heads": 8, "d_ff": 2048, "num_encoder_layers": 6, "num_decoder_layers": 6}
)
built = base.build(src_vocab_size=37000, tgt_vocab_size=37000, shared_vocab=True, pad_id=0)
print(parameter_table(parameter_counts(built, depth=2)))

# %% [markdown]
# An encoder layer: $4 d^2 + 4 d$ for attention, $2 d \cdot d_{ff} + d + d_{ff}$ for the network, $4 d$ for two norms.

# %%
d, d_ff = 512, 2048
print(
    f"{4 * d * d + 4 * d + 2 * d * d_ff + d + d_ff + 4 * d:,}",
    f"{sum(p.numel() for p in built.encoder_layers[0].parameters()):,}",
)

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
for axes, task in zip(panels, ("copy", "reverse"), strict=True):
    trained = train(seed=1, task=task)
    src, tgt = next(pair for pair in toy_pairs(task, "test", 50) if len(pair[0]) == 6)
    batch = collate([(src, tgt)])
    with torch.no_grad():
        maps = trained.model.eval().attention_maps(batch.src, batch.src_mask, batch.tgt_in)
    draw_matrix(axes, maps["decoder.1.cross"][0].mean(0).numpy(), low=0, high=1, aspect="equal")
    # symbols have the ids 4, 5, ...: the specials come first
    token_axes(axes, [*[str(i - 3) for i in tgt], "</s>"], [*[str(i - 3) for i in src], "</s>"])
    axes.set_title(f"{task}: {trained.exact(task):.0%} right", fontsize=9)
show(figure, "copy-reverse")

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
# ## Where the notes differ
#
# - The annotated notebook's `Generator` ends in a log-softmax; here the model ends in logits and the loss does the rest.
# - Its encoder clones a layer with `deepcopy`, so all layers begin with equal weights; here each is drawn anew.
# - Names: d2l's `EncoderBlock` and `AddNorm`, the notebook's `SublayerConnection` and PyTorch's `TransformerEncoderLayer` are
#   `EncoderLayer` and `ResidualConnection` here; the table of all names is in `docs/glossary.md`.
#
# ## Exercises and bugs
#
# `dragoman learn check 10`: `transformer`, some forty lines. Bugs 8, 25, 26, 35 and 37.
