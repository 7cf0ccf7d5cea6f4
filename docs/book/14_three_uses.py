# %% [markdown]
# # 14. Three uses of the same blocks (三种用途)
#
# The encoder alone classifies; the decoder alone writes; with a task of filling gaps an encoder learns from plain text.
# All are built of the layers of chapters 6 to 10.
#
# ## A decoder alone: a language model (语言模型)
#
# The decoder's layer without cross-attention; the target is the text itself, one token on.
#
# > code: models/language_model.py: LanguageModel.decode

# %%
import contextlib
import io
from pathlib import Path
from tempfile import mkdtemp

from dragoman.config import parse
from dragoman.tasks import recipes
from dragoman.tasks.language_modelling.job import LanguageModellingRecipe

folder = Path(mkdtemp())


def trained(recipe):
    with contextlib.redirect_stderr(io.StringIO()):
        return recipes.run(recipe)


text = {"type": "embedded_text", "pair": "de-en", "side": "tgt"}
recipe = parse(
    LanguageModellingRecipe,
    {
        "task": "language_modelling",
        "run_dir": str(folder / "lm"),
        "device": "cpu",
        "corpus": {
            "train": {**text, "split": "train", "size": 3000},
            "valid": {**text, "split": "valid", "size": 100},
            "block_len": 48,
        },
        "tokenizer": {"type": "characters"},
        "model": {
            "type": "language_model",
            "d_model": 64,
            "num_heads": 2,
            "d_ff": 128,
            "num_layers": 2,
            "dropout": 0.0,
        },
        "training": {
            "max_steps": 600,
            "batch_tokens": 1536,
            "validate_every": 600,
            "schedule": {"type": "linear", "lr": 5e-3, "warmup_steps": 30},
            "precision": "float32",
        },
    },
)
_ = trained(recipe)

# %%
import dragoman

generator = dragoman.load_language_model(folder / "lm", device="cpu")
for seed in (1, 2):
    print(repr(generator.generate(["the "], seed=seed, max_tokens=120)[0]))

# %% [markdown]
# ## An encoder alone: a classifier (分类器)
#
# The encoder's vectors become one (their mean, or a class token's), and a matrix makes a logit for each label.
#
# > code: models/encoder_classifier.py: PooledEncoder.forward

# %%
from dragoman.tasks.classification.job import ClassificationRecipe

languages = {"type": "embedded_languages"}
recipe = parse(
    ClassificationRecipe,
    {
        "task": "classification",
        "run_dir": str(folder / "language-id"),
        "device": "cpu",
        "corpus": {
            "train": {**languages, "split": "train", "size": 800},
            "valid": {**languages, "split": "valid", "size": 150},
            "max_tokens": 48,
        },
        "tokenizer": {"type": "characters"},
        "model": {
            "type": "text_classifier",
            "d_model": 32,
            "num_heads": 2,
            "d_ff": 64,
            "num_layers": 1,
            "pooling": "mean",
            "dropout": 0.1,
        },
        "training": {
            "max_steps": 120,
            "batch_tokens": 1536,
            "validate_every": 120,
            "schedule": {"type": "linear", "lr": 5e-3, "warmup_steps": 20},
            "precision": "float32",
        },
    },
)
_ = trained(recipe)
predictor = dragoman.load_classifier(folder / "language-id", device="cpu")
for sentence in ("ich möchte ein bier", "i want a beer", "我想要一杯啤酒"):
    print(sentence, "->", predictor.predict([sentence])[0].label)

# %% [markdown]
# ## Images are sequences too: ViT
#
# An image is cut into patches, each patch is a "word". The rest is the same encoder; `recipes/mnist-vit.yaml` reaches
# 99.2 % on MNIST in eight minutes of two cores.
#
# > code: nn/patches.py: PatchEmbedding

# %%
import torch

from dragoman.models.vit import ViTConfig

vit = parse(
    ViTConfig, {"image_size": 28, "patch_size": 4, "d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 2}
).build(num_labels=10)
print("28 x 28 pixels, patches of 4 x 4: logits", tuple(vit(torch.randn(3, 1, 28, 28)).shape))

# %% [markdown]
# ## Where the mask makes the model
#
# | use | mask of the self-attention | target |
# |---|---|---|
# | encoder of a translator, classifier | padding | - |
# | decoder, language model | causal | the next token |
# | masked language model | padding | the tokens that were hidden |
#
# With a causal mask in an encoder its first position sees nothing but itself (bug 34); without one in a language model it
# copies (bug 8).
#
# ## Exercises and bugs
#
# `dragoman learn check 14`: `mean_over_real`, `next_token_pairs`, `hide_tokens`. Bug 34.
